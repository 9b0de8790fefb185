//! One look at the node: readiness, open connections, new log lines, GPU.

use crate::command::{CommandFault, answer_of};
use crate::lines::{Trail, follow};
use crate::memory::{Lines, Sample};
use crate::settings::{Open, Settings};
use crate::web::{Web, WebFault};
use std::time::Duration;
use tokio::process::Command;

/// Who is still there after a second holds a connection. A health check that passes through at the moment of the look
/// does not.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// `nvidia-smi` wakes a sleeping driver in two or three seconds; with a broken one it never ends.
const LONGEST_COMMAND: Duration = Duration::from_secs(5);

const NVIDIA_SMI: [&str; 2] = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"];

/// Looks at the node.
#[derive(Debug)]
pub(crate) struct Looker<'a> {
    settings: &'a Settings,
    web: Web,
    /// It failed in this run, and is not asked again: each try may leave a process that cannot be killed.
    gpu_failed: bool,
}

impl<'a> Looker<'a> {
    pub(crate) fn new(settings: &'a Settings) -> Self {
        Self { settings, web: Web::new(), gpu_failed: false }
    }

    /// Looks once and moves the trail on. Readiness comes last, so that our own request for it, which may hang, is not
    /// counted as an open connection.
    pub(crate) async fn look(&mut self, trail: &mut Option<Trail>) -> Sample {
        let (open, gpu) = tokio::join!(self.open(), self.gpu());
        let open = open.inspect_err(|fault| tracing::warn!(%fault, "open connections cannot be read")).ok();
        let gpu = gpu.unwrap_or_else(|fault| {
            tracing::warn!(%fault, "the GPU's use cannot be read");
            self.gpu_failed = true;
            None
        });
        let lines = match &self.settings.log {
            Some(log) => {
                let (after, lines) = follow(&log.path, &log.filter, trail.take());
                *trail = after;
                lines
            }
            None => Lines::Off,
        };
        let ready = self.web.is_ready(&self.settings.ready).await;
        if let Err(fault) = &ready {
            tracing::info!(%fault, "not ready");
        }
        Sample { ready: ready.is_ok(), open, lines, gpu }
    }

    async fn open(&self) -> Result<u32, Unread> {
        let url = match &self.settings.open {
            Open::Url(url) => url,
            Open::Command(line) => return number(&answer_of(program("sh", &["-c", line]), LONGEST_COMMAND).await?),
        };
        let first = open_connections(&self.web.page(url).await?)?;
        if first == 0 {
            return Ok(0);
        }
        tokio::time::sleep(SECOND_LOOK).await;
        Ok(first.min(open_connections(&self.web.page(url).await?)?))
    }

    /// None where GPUs are not asked, or where the node has none.
    async fn gpu(&self) -> Result<Option<u8>, Unread> {
        let Some(gpu) = self.settings.gpu.as_ref().filter(|_| !self.gpu_failed) else { return Ok(None) };
        match answer_of(program(&gpu.nvidia_smi, &NVIDIA_SMI), LONGEST_COMMAND).await {
            Ok(answer) => busiest(&answer).map(Some),
            Err(CommandFault::Absent) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }
}

/// Why a figure could not be read.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(transparent)]
    Web(#[from] WebFault),
    #[error(transparent)]
    Command(#[from] CommandFault),
    /// The answer makes no sense.
    #[error("the answer is not {0}")]
    Answer(&'static str),
}

fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments);
    command
}

/// Connections that nginx reads a request from or writes an answer to; those that wait for a next request are idle. One of
/// them is ours. An upgraded connection (WebSocket) and a long poll are written to until they end.
fn open_connections(stub_status: &str) -> Result<u32, Unread> {
    let number = |name: &str| stub_status.split_whitespace().skip_while(|word| *word != name).nth(1)?.parse().ok();
    let sum = |reading: u32, writing: u32| reading.checked_add(writing)?.checked_sub(1);
    let open = number("Reading:").zip(number("Writing:")).and_then(|(reading, writing)| sum(reading, writing));
    open.ok_or(Unread::Answer("nginx's stub_status"))
}

fn number(answer: &str) -> Result<u32, Unread> {
    answer.trim().parse().map_err(|_| Unread::Answer("a whole number"))
}

/// The busiest GPU. One that reports no use, as when it is split by MIG, is passed over where another one does.
fn busiest(answer: &str) -> Result<u8, Unread> {
    let percents = answer.lines().filter_map(|line| line.trim().parse::<u8>().ok());
    percents.filter(|percent| *percent <= 100).max().ok_or(Unread::Answer("a percentage"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(reading: u32, writing: u32, waiting: u32) -> String {
        format!(
            "Active connections: 291 \nserver accepts handled requests\n 16630948 16630948 31070465 \n\
             Reading: {reading} Writing: {writing} Waiting: {waiting} \n"
        )
    }

    #[test]
    fn open_is_what_is_read_and_written_without_our_own_request() {
        let rows = [
            ("only ours", page(0, 1, 0), Some(0)),
            ("idle ones wait", page(0, 1, 106), Some(0)),
            ("one is read, two are written", page(1, 3, 5), Some(3)),
            ("not even ours", page(0, 0, 7), None),
            ("too many", page(u32::MAX, 1, 0), None),
            ("another page", "<html>Writing: 3</html>".to_owned(), None),
            ("empty", String::new(), None),
            ("cut", "Reading: 0 Writing:".to_owned(), None),
            ("below zero", "Reading: 0 Writing: -1".to_owned(), None),
        ];
        for (name, page, open) in rows {
            assert_eq!(open_connections(&page).ok(), open, "{name}");
        }
    }

    #[test]
    fn the_busiest_gpu_speaks() {
        let rows = [
            ("one", "37\n", Some(37)),
            ("several", " 0\n99\n 7\n", Some(99)),
            ("one does not say", "[N/A]\n12\n", Some(12)),
            ("none says", "[N/A]\n", None),
            ("words", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", None),
            ("no percentage", "101\n", None),
            ("empty", "", None),
        ];
        for (name, answer, percent) in rows {
            assert_eq!(busiest(answer).ok(), percent, "{name}");
        }
    }

    #[test]
    fn a_command_answers_a_whole_number() {
        let rows = [("0\n", Some(0)), (" 12 ", Some(12)), ("1.5", None), ("-1", None), ("", None), ("3 open", None)];
        for (answer, open) in rows {
            assert_eq!(number(answer).ok(), open, "{answer:?}");
        }
    }

    proptest! {
        #[test]
        fn every_page_of_nginx_is_read(reading in 0_u32..9000, writing in 1_u32..9000, waiting in 0_u32..9000) {
            prop_assert_eq!(open_connections(&page(reading, writing, waiting)).ok(), Some(reading + writing - 1));
        }

        #[test]
        fn no_page_makes_it_fall(page in ".{0,200}") {
            let _ = open_connections(&page);
            let _ = busiest(&page);
        }
    }
}
