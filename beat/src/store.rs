//! Keeps the memory in a file that a reboot empties, and lets one run at a time have it.

use crate::lines::Trail;
use crate::memory::Memory;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;

/// Everything that is kept from run to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) memory: Memory,
    pub(crate) trail: Option<Trail>,
}

/// The state could not be kept. Without it no silence is ever proved, so the run fails.
#[derive(Debug, thiserror::Error)]
#[error("{act} {} failed", .path.display())]
pub(crate) struct StoreFault {
    act: &'static str,
    path: PathBuf,
    #[source]
    error: io::Error,
}

/// The state file.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
}

impl Store {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The lock that a run holds to its end; none where another run has it.
    pub(crate) fn lock(&self) -> Result<Option<File>, StoreFault> {
        let path = self.path.with_extension("lock");
        let fault = |error| StoreFault { act: "lock", path: path.clone(), error };
        let file = File::options().create(true).append(true).open(&path).map_err(fault)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(fault(error)),
        }
    }

    /// What was kept. What cannot be read is logged, and the rows begin anew.
    pub(crate) fn load(&self) -> Kept {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Kept::default(),
            Err(error) => {
                tracing::warn!(%error, "the state cannot be read; rows begin anew");
                return Kept::default();
            }
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, "the state is not understood; rows begin anew");
            Kept::default()
        })
    }

    /// Keeps it, whole or not at all.
    pub(crate) fn save(&self, kept: &Kept) -> Result<(), StoreFault> {
        let fault = |error| StoreFault { act: "write", path: self.path.clone(), error };
        let text = serde_json::to_vec(kept).map_err(|error| fault(error.into()))?;
        let new = self.path.with_extension("new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path)).map_err(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Sample, next};
    use crate::tests::Folder;

    fn kept() -> Kept {
        let sample = Sample { ready: true, open: Some(1), ..Sample::default() };
        let (memory, _) = next(&Memory::default(), &sample, 10, "2026-11-30T10:00:00Z".parse().unwrap());
        Kept { memory, trail: None }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = Folder::new("kept");
        let store = Store::new(folder.0.join("state.json"));
        assert_eq!(store.load(), Kept::default(), "the first run of a boot");
        store.save(&kept()).unwrap();
        assert_eq!(store.load(), kept());
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_state_that_is_not_understood_begins_anew() {
        let folder = Folder::new("torn");
        for text in ["", "{", "[]", r#"{"memory": {"row": -1}}"#] {
            fs::write(folder.0.join("state.json"), text).unwrap();
            assert_eq!(Store::new(folder.0.join("state.json")).load(), Kept::default(), "{text:?}");
        }
    }

    #[test]
    fn one_run_at_a_time_has_the_lock() {
        let folder = Folder::new("lock");
        let store = Store::new(folder.0.join("state.json"));
        let held = store.lock().unwrap();
        assert!(held.is_some() && store.lock().unwrap().is_none());
        drop(held);
        assert!(store.lock().unwrap().is_some());
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let fault = Store::new("/no/such/folder/state.json").save(&Kept::default()).unwrap_err();
        assert_eq!(fault.to_string(), "write /no/such/folder/state.json failed");
    }
}
