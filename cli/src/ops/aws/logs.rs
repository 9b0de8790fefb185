//! Lines of a log, page by page.

use aws_config::SdkConfig;
use aws_sdk_cloudwatchlogs::Client;
use reveille::aws::call_error;
use reveille::domain::Instant;
use reveille::error::CallError;
use std::time::Duration;

/// FilterLogEvents may be called five times a second in an account and region, and the idle checks call it too.
const BETWEEN_PAGES: Duration = Duration::from_millis(250);

/// Some lines of a log.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Each with the instant it was written at, oldest first.
    pub(crate) lines: Vec<(Instant, String)>,
    /// False where the log has more than was read.
    pub(crate) complete: bool,
}

/// What is read of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) group: &'a str,
    pub(crate) pattern: Option<&'a str>,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    pub(crate) most_pages: usize,
}

/// Reads it; `seen` is told after each page how much of the time is behind it, in thousandths.
///
/// # Errors
/// The log is not there or may not be read.
pub(crate) async fn read(sdk: &SdkConfig, part: Part<'_>, mut seen: impl FnMut(u64)) -> Result<Lines, CallError> {
    let client = Client::new(sdk);
    let (mut read, mut token) = (Lines::default(), None);
    for page in 0..part.most_pages {
        if page > 0 {
            tokio::time::sleep(BETWEEN_PAGES).await;
        }
        let sent = client
            .filter_log_events()
            .log_group_name(part.group)
            .set_filter_pattern(part.pattern.map(str::to_owned))
            .start_time(part.from.timestamp_millis())
            .end_time(part.to.timestamp_millis())
            .set_next_token(token)
            .send()
            .await;
        let answer = sent.map_err(|error| call_error(format!("read log group {}", part.group), &error))?;
        let lines = answer.events.unwrap_or_default().into_iter();
        read.lines
            .extend(lines.filter_map(|line| Some((Instant::from_timestamp_millis(line.timestamp?)?, line.message?))));
        token = answer.next_token;
        if token.is_none() {
            read.complete = true;
            return Ok(read);
        }
        seen(behind(&part, read.lines.last().map(|(at, _)| *at)));
    }
    Ok(read)
}

/// Pages come oldest first.
fn behind(part: &Part<'_>, newest: Option<Instant>) -> u64 {
    let whole = (part.to - part.from).num_milliseconds().max(1);
    let done = newest.map_or(0, |at| (at - part.from).num_milliseconds());
    u64::try_from((done * 1000 / whole).clamp(0, 1000)).unwrap_or(0)
}
