//! CloudWatch Logs: the use of groups that have no metric, counted by FilterLogEvents.

use super::errors::call_error;
use crate::domain::Instant;
use crate::error::CallError;
use crate::observation::{Series, Unread, log_points};
use crate::run::{LogActivity, LogSource};
use aws_sdk_cloudwatchlogs::Client;
use std::time::Duration;

/// FilterLogEvents may be called five times a second in an account and region, and that is fixed: one call after the other,
/// this far apart, leaves others their part.
const BETWEEN_CALLS: Duration = Duration::from_millis(250);

/// Pages of one group and tick. What is behind them is not read: use that was found counts, silence is not proved.
const MOST_PAGES: usize = 20;

/// Reads every group, one after the other. A group that cannot be read is Unknown and holds up no other.
pub(super) async fn activity(client: &Client, sources: &[LogSource], from: Instant, to: Instant) -> LogActivity {
    let mut read = LogActivity::new();
    for source in sources {
        let series = group(client, source, from, to).await.map_err(|error| {
            tracing::warn!(log_group = %source.group, code = %error.code, "{error}");
            Unread::Failed
        });
        read.insert(source.group.clone(), series);
    }
    read
}

/// Events come oldest first, so every page is read; one may be empty and have a next one.
async fn group(client: &Client, source: &LogSource, from: Instant, to: Instant) -> Result<Series, CallError> {
    let mut series = Series { points: Vec::new(), complete: true };
    let mut token = None;
    for page in 0.. {
        if page == MOST_PAGES {
            series.complete = false;
            break;
        }
        tokio::time::sleep(BETWEEN_CALLS).await;
        let sent = client
            .filter_log_events()
            .log_group_name(&source.group)
            .start_time(from.timestamp_millis())
            .end_time(to.timestamp_millis() - 1)
            .set_next_token(token)
            .send()
            .await;
        let answer = sent.map_err(|error| call_error(format!("read log group {}", source.group), &error))?;
        let lines = answer.events().iter().filter_map(|event| {
            Some((Instant::from_timestamp_millis(event.timestamp()?)?, event.message()?.as_bytes()))
        });
        series.points.extend(log_points(lines, &source.filter, from, to));
        token = answer.next_token;
        if token.is_none() {
            break;
        }
    }
    Ok(series)
}
