//! Runs a program for its short answer: bounded in time and length.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

const MOST_BYTES: u64 = 64 * 1024;

/// Why a program gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandFault {
    /// There is no such program.
    #[error("there is no such program")]
    Absent,
    /// It could not be started or read.
    #[error("it could not be run: {0}")]
    Run(io::Error),
    /// It failed.
    #[error("it ended with {0}")]
    Ended(ExitStatus),
    /// It was killed.
    #[error("it did not end within {} s", .0.as_secs())]
    Hung(Duration),
}

/// What it wrote to standard output, up to 64 KiB; its standard error is nobody's, as it may tell anything.
pub(crate) async fn answer_of(mut command: Command, limit: Duration) -> Result<String, CommandFault> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let absent_or = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound { CommandFault::Absent } else { CommandFault::Run(error) }
    };
    let mut child = command.spawn().map_err(absent_or)?;
    let stdout = child.stdout.take();
    let run = async {
        let mut text = Vec::new();
        if let Some(stdout) = stdout {
            // Closed behind the limit: a program that writes on fails by it.
            stdout.take(MOST_BYTES).read_to_end(&mut text).await?;
        }
        Ok((child.wait().await?, text))
    };
    let (status, text) =
        timeout(limit, run).await.map_err(|_| CommandFault::Hung(limit))?.map_err(CommandFault::Run)?;
    if status.success() { Ok(String::from_utf8_lossy(&text).into_owned()) } else { Err(CommandFault::Ended(status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far longer than any of these takes.
    const LONG: Duration = Duration::from_secs(60);

    async fn shell(line: &str, limit: Duration) -> Result<String, CommandFault> {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        answer_of(command, limit).await
    }

    #[tokio::test]
    async fn its_output_is_the_answer() {
        assert_eq!(shell("echo 3; echo secret >&2", LONG).await.unwrap(), "3\n");
    }

    #[tokio::test]
    async fn what_went_wrong_is_named() {
        assert_eq!(shell("exit 9", LONG).await.unwrap_err().to_string(), "it ended with exit status: 9");
        assert!(matches!(answer_of(Command::new("/no/such/program"), LONG).await, Err(CommandFault::Absent)));
    }

    #[tokio::test]
    async fn one_that_writes_for_ever_is_ended() {
        assert!(matches!(shell("exec yes", LONG).await, Err(CommandFault::Ended(_))));
    }

    #[tokio::test]
    async fn one_that_hangs_is_killed() {
        let fault = shell("exec sleep 600", Duration::from_millis(20)).await.unwrap_err();
        assert!(matches!(fault, CommandFault::Hung(_)), "{fault}");
    }
}
