//! CloudWatch Logs: the use of groups that have no metric, counted by FilterLogEvents.

use super::errors::call_error;
use crate::domain::Instant;
use crate::error::CallError;
use crate::observation::{Series, Unread, log_points};
use crate::run::{LogActivity, LogSource};
use aws_sdk_cloudwatchlogs::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant as Moment, timeout_at};

/// FilterLogEvents may be called five times a second in an account and region, and that is fixed: one call after the other,
/// this far apart, leaves others their part.
const BETWEEN_CALLS: Duration = Duration::from_millis(250);

/// Pages of one group and tick. What is behind them is not read: use that was found counts, silence is not proved.
const MOST_PAGES: usize = 20;

/// All groups together: a tick has half a minute, and most of it is for stopping and starting. What is not read by then is
/// Unknown.
const LONGEST: Duration = Duration::from_secs(8);

/// So long before the call's own end, so that what was read is still given.
const TO_GIVE: Duration = Duration::from_millis(50);

/// Reads every group once, one after the other; each source counts its own lines. A group that cannot be read, or not in
/// time, is Unknown and holds up no other.
pub(super) async fn activity(
    client: &Client,
    sources: &[LogSource],
    from: Instant,
    to: Instant,
    until: Moment,
) -> LogActivity {
    let end = (Moment::now() + LONGEST).min(until - TO_GIVE);
    let groups: BTreeSet<&str> = sources.iter().map(|source| source.group.as_str()).collect();
    let mut read = LogActivity::new();
    for (n, name) in groups.iter().copied().enumerate() {
        // Its share of what is left, so that a busy group leaves the others theirs.
        let left = end.saturating_duration_since(Moment::now());
        let deadline = Moment::now() + left / u32::try_from(groups.len() - n).unwrap_or(1);
        let of_group: Vec<&LogSource> = sources.iter().filter(|source| source.group == name).collect();
        let mut found: BTreeMap<usize, Series> = BTreeMap::new();
        let ended = timeout_at(deadline, group(client, name, &of_group, &mut found, from, to)).await;
        let failed = match ended {
            Ok(Ok(complete)) => {
                found.values_mut().for_each(|series| series.complete = complete);
                false
            }
            Ok(Err(error)) => {
                tracing::warn!(log_group = name, code = %error.code, "{error}");
                true
            }
            Err(_) => {
                tracing::warn!(log_group = name, "the log group was not read in time");
                false
            }
        };
        for (n, source) in of_group.iter().enumerate() {
            // Not in time: what was read counts as use, and proves no silence.
            let series = found.remove(&n).unwrap_or_default();
            read.insert(source.key(), if failed { Err(Unread::Failed) } else { Ok(series) });
        }
    }
    read
}

/// Events come oldest first, so every page is read; one may be empty and have a next one. False where pages were left.
async fn group(
    client: &Client,
    name: &str,
    sources: &[&LogSource],
    found: &mut BTreeMap<usize, Series>,
    from: Instant,
    to: Instant,
) -> Result<bool, CallError> {
    let mut token = None;
    for _ in 0..MOST_PAGES {
        tokio::time::sleep(BETWEEN_CALLS).await;
        let sent = client
            .filter_log_events()
            .log_group_name(name)
            .start_time(from.timestamp_millis())
            .end_time(to.timestamp_millis() - 1)
            .set_next_token(token)
            .send()
            .await;
        let answer = sent.map_err(|error| call_error(format!("read log group {name}"), &error))?;
        let lines: Vec<(Instant, &[u8])> = answer
            .events()
            .iter()
            .filter_map(|event| {
                Some((Instant::from_timestamp_millis(event.timestamp()?)?, event.message()?.as_bytes()))
            })
            .collect();
        for (n, source) in sources.iter().enumerate() {
            let points = log_points(lines.iter().copied(), &source.filter, from, to);
            found.entry(n).or_default().points.extend(points);
        }
        token = answer.next_token;
        if token.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}
