//! Counts the new lines of an access log that are use, through every rotation.

use crate::memory::Lines;
use reveille::access_log::Filter;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// More than this since the last look is not read but counts as one use: no health check writes 16 MiB in a minute.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// How far a log was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trail {
    /// The log; another one in the settings begins anew.
    path: PathBuf,
    files: Vec<Mark>,
}

/// How far one file of it was read. A file is known by its inode: rotation changes its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    inode: u64,
    offset: u64,
    /// It was seen under another name. It is read once more, because the server goes on writing to it until it has
    /// opened the new one, and then forgotten.
    rotated: bool,
}

/// What one file had to say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    used: u32,
    offset: u64,
    /// Something was written that is not counted.
    missed: Option<&'static str>,
}

/// Reads what is new since the trail was left. Without a trail it begins at the log's end: what was before, nobody can
/// date. What cannot be read is logged and makes the answer [`Lines::AtLeast`].
pub(crate) fn follow(path: &Path, filter: &Filter, before: Option<Trail>) -> (Option<Trail>, Lines) {
    let now = match current(path) {
        Ok(now) => now,
        Err(error) => {
            tracing::warn!(%error, "the access log cannot be read");
            return (before, Lines::AtLeast(0));
        }
    };
    let Some(before) = before.filter(|trail| trail.path == path) else {
        let files = vec![Mark { inode: now.ino(), offset: now.len(), rotated: false }];
        return (Some(Trail { path: path.to_owned(), files }), Lines::Counted(0));
    };
    let mut marks = before.files;
    if !marks.iter().any(|mark| mark.inode == now.ino()) {
        marks.push(Mark { inode: now.ino(), offset: 0, rotated: false });
    }
    let (mut files, mut used, mut missed) = (Vec::new(), 0_u32, false);
    for mark in marks {
        let is_current = mark.inode == now.ino();
        let place = if is_current { Some(path.to_owned()) } else { renamed(path, mark.inode) };
        let read = match place.map(|place| read_on(&place, mark.offset, filter)) {
            Some(Ok(read)) => read,
            Some(Err(error)) => {
                tracing::warn!(%error, "the access log cannot be read");
                missed = true;
                files.push(mark);
                continue;
            }
            // One that was read after its rotation may be compressed or gone.
            None if mark.rotated => continue,
            None => Read { offset: mark.offset, missed: Some("it was rotated and is not to be found"), used: 0 },
        };
        used = used.saturating_add(read.used);
        if let Some(what) = read.missed {
            tracing::warn!(what, "lines of the access log are not counted");
            missed = true;
        }
        if is_current || !mark.rotated {
            files.push(Mark { inode: mark.inode, offset: read.offset, rotated: !is_current });
        }
    }
    let lines = if missed { Lines::AtLeast(used) } else { Lines::Counted(used) };
    (Some(Trail { path: path.to_owned(), files }), lines)
}

fn current(path: &Path) -> io::Result<fs::Metadata> {
    let found = fs::metadata(path)?;
    if found.is_file() { Ok(found) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The file under its new name, which begins with the old one: `access.log.1`, `access.log-20261130`.
fn renamed(path: &Path, inode: u64) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    // A folder that may not be listed can be entered all the same.
    let usual = path.with_file_name(format!("{name}.1"));
    if fs::metadata(&usual).is_ok_and(|found| found.ino() == inode) {
        return Some(usual);
    }
    let is_it = |entry: &fs::DirEntry| entry.ino() == inode && entry.file_name().to_string_lossy().starts_with(name);
    fs::read_dir(path.parent()?).ok()?.flatten().find(is_it).map(|entry| entry.path())
}

/// Reads whole lines from here on; a last one without its end waits for the next look.
fn read_on(path: &Path, offset: u64, filter: &Filter) -> io::Result<Read> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let (offset, cut) = if length < offset { (0, Some("it was cut")) } else { (offset, None) };
    if length - offset > MOST_BYTES {
        return Ok(Read { used: 1, offset: length, missed: cut });
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut new = Vec::new();
    file.take(length - offset).read_to_end(&mut new)?;
    let whole = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let requests: Vec<_> = new[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let understood: Vec<_> = requests.iter().filter_map(|line| filter.read(line)).collect();
    let used = understood.iter().filter(|line| filter.is_use(line)).count();
    // A log in a format that is not read proves no silence.
    let foreign = (understood.is_empty() && !requests.is_empty()).then_some("none of them is in a format that is read");
    Ok(Read { used: u32::try_from(used).unwrap_or(u32::MAX), offset: offset + whole as u64, missed: cut.or(foreign) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    const CALL: &str = r#"10.0.0.9 - - [30/Nov/2026:10:00:00 +0000] "POST /v1/calls HTTP/1.1" 200 2 "-" "app""#;
    const CHECK: &str =
        r#"10.0.0.9 - - [30/Nov/2026:10:00:00 +0000] "GET /v1/calls HTTP/1.1" 200 2 "-" "ELB-HealthChecker/2.0""#;
    const PROBE: &str = r#"127.0.0.1 - - [30/Nov/2026:10:00:00 +0000] "GET /v1/calls HTTP/1.1" 200 2 "-" "reveille-beat/1 (health-check)""#;

    /// A log in a folder of its own, and how far it was read.
    struct Log {
        folder: crate::tests::Folder,
        trail: Option<Trail>,
    }

    impl Log {
        /// One whose first look is over.
        fn new(name: &str) -> Self {
            let mut log = Self::unseen(name);
            log.write(&format!("{CALL}\n"));
            assert_eq!(log.look(), Lines::Counted(0), "what was before the first look");
            log
        }

        fn unseen(name: &str) -> Self {
            Self { folder: crate::tests::Folder::new(name), trail: None }
        }

        fn path(&self) -> PathBuf {
            self.folder.0.join("access.log")
        }

        fn write(&self, text: &str) {
            self.write_to("access.log", text);
        }

        fn write_to(&self, name: &str, text: &str) {
            let mut file = File::options().append(true).create(true).open(self.folder.0.join(name)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn rename(&self, to: &str) {
            fs::rename(self.path(), self.folder.0.join(to)).unwrap();
        }

        fn look(&mut self) -> Lines {
            let filter = Filter::new(serde_json::from_str(r#"{"paths": ["/v1/"]}"#).unwrap()).unwrap();
            let (trail, lines) = follow(&self.path(), &filter, self.trail.take());
            self.trail = trail;
            lines
        }
    }

    #[test]
    fn counts_new_calls_once_and_no_checks() {
        let mut log = Log::new("counts");
        log.write(&format!("{CHECK}\n{CALL}\n{PROBE}\n\n{CALL}\n"));
        assert_eq!((log.look(), log.look()), (Lines::Counted(2), Lines::Counted(0)));
    }

    #[test]
    fn a_line_is_counted_when_it_is_whole() {
        let mut log = Log::new("partial");
        let (head, tail) = CALL.split_at(40);
        log.write(head);
        assert_eq!(log.look(), Lines::Counted(0));
        log.write(&format!("{tail}\n"));
        assert_eq!(log.look(), Lines::Counted(1));
    }

    #[test]
    fn a_renamed_log_is_read_to_its_end() {
        for name in ["access.log.1", "access.log-20261130"] {
            let mut log = Log::new(&format!("renamed-{name}"));
            log.write(&format!("{CALL}\n"));
            log.rename(name);
            log.write(&format!("{CALL}\n{CALL}\n"));
            assert_eq!(log.look(), Lines::Counted(3), "{name}");
            log.write_to(name, &format!("{CALL}\n"));
            assert_eq!(log.look(), Lines::Counted(1), "{name}: the server wrote on until it had opened the new one");
            fs::remove_file(log.folder.0.join(name)).unwrap();
            log.write(&format!("{CALL}\n"));
            assert_eq!((log.look(), log.look()), (Lines::Counted(1), Lines::Counted(0)), "{name}");
        }
    }

    #[test]
    fn between_rename_and_the_new_file_nothing_is_lost() {
        let mut log = Log::new("between");
        log.rename("access.log.1");
        log.write_to("access.log.1", &format!("{CALL}\n"));
        assert_eq!(log.look(), Lines::AtLeast(0), "there is no log");
        log.write(&format!("{CHECK}\n"));
        assert_eq!(log.look(), Lines::Counted(1));
    }

    #[test]
    fn a_log_that_is_gone_after_its_rotation_is_told() {
        let mut log = Log::new("gone");
        log.rename("elsewhere");
        log.write(&format!("{CALL}\n"));
        assert_eq!((log.look(), log.look()), (Lines::AtLeast(1), Lines::Counted(0)));
    }

    #[test]
    fn a_log_that_was_cut_is_read_from_its_start_and_told() {
        let mut log = Log::new("cut");
        log.write(&format!("{CHECK}\n{CHECK}\n"));
        log.look();
        fs::copy(log.path(), log.folder.0.join("access.log.1")).unwrap();
        File::options().write(true).truncate(true).open(log.path()).unwrap();
        log.write(&format!("{CALL}\n"));
        assert_eq!((log.look(), log.look()), (Lines::AtLeast(1), Lines::Counted(0)));
    }

    #[test]
    fn too_much_is_use_and_is_not_read() {
        let mut log = Log::new("much");
        let file = File::options().write(true).open(log.path()).unwrap();
        file.set_len(MOST_BYTES + 2 * CALL.len() as u64).unwrap();
        assert_eq!((log.look(), log.look()), (Lines::Counted(1), Lines::Counted(0)));
    }

    #[test]
    fn a_log_that_is_not_understood_proves_no_silence() {
        let mut log = Log::new("foreign");
        log.write("10:00 call from 10.0.0.9\n");
        assert_eq!(log.look(), Lines::AtLeast(0));
        log.write(&format!("10:01 call from 10.0.0.9\n{CHECK}\n"));
        assert_eq!(log.look(), Lines::Counted(0), "some are");
    }

    #[test]
    fn a_log_that_is_not_there_is_told_until_it_is() {
        let mut log = Log::unseen("absent");
        assert_eq!(log.look(), Lines::AtLeast(0));
        log.write(&format!("{CALL}\n"));
        assert_eq!(log.look(), Lines::Counted(0), "the first look at it");
        fs::remove_file(log.path()).unwrap();
        fs::create_dir(log.path()).unwrap();
        assert_eq!(log.look(), Lines::AtLeast(0), "a folder");
    }

    #[test]
    fn another_log_in_the_settings_begins_anew() {
        let mut log = Log::new("another");
        log.trail.as_mut().unwrap().path = PathBuf::from("/elsewhere");
        log.write(&format!("{CALL}\n"));
        assert_eq!(log.look(), Lines::Counted(0));
    }

    /// What happens to a log.
    #[derive(Debug, Clone)]
    enum Event {
        Write(usize),
        Rotate,
        Look,
    }

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![(1_usize..200).prop_map(Event::Write), Just(Event::Rotate), Just(Event::Look)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_call_is_counted_once_however_it_is_cut_and_rotated(
            calls in 1_usize..20, events in proptest::collection::vec(any_event(), 1..40),
        ) {
            let mut log = Log::new("law");
            let text = format!("{CALL}\n").repeat(calls);
            let (mut written, mut counted, mut rotations, mut looked) = (0, 0, 0, true);
            let mut look = |log: &mut Log| match log.look() {
                Lines::Counted(count) => counted += count,
                other @ (Lines::Off | Lines::AtLeast(_)) => panic!("{other:?}"),
            };
            for event in events {
                match event {
                    Event::Write(bytes) => {
                        let end = (written + bytes).min(text.len());
                        log.write(&text[written..end]);
                        written = end;
                    }
                    // A server ends its line before it turns to the new file, and no log is rotated twice in a minute.
                    Event::Rotate if looked && (written == 0 || text[..written].ends_with('\n')) => {
                        rotations += 1;
                        log.rename(&format!("access.log.{rotations}"));
                        log.write("");
                        looked = false;
                    }
                    Event::Rotate => {}
                    Event::Look => {
                        look(&mut log);
                        looked = true;
                    }
                }
            }
            log.write(&text[written..]);
            look(&mut log);
            prop_assert_eq!(counted as usize, calls);
        }
    }
}
