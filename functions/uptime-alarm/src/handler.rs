//! One look at the day.

use lambda_runtime::{Error, LambdaEvent};
use reveille::aws::Controller;
use reveille::run::UptimeRun;
use serde_json::{Value, json};

/// Looks at every node's day, whatever the event holds: a schedule needs no payload (field case 33).
///
/// # Errors
/// As [`Controller::scheduled`].
pub(crate) async fn handle(controller: &Controller, event: LambdaEvent<Value>) -> Result<Value, Error> {
    let (id, deadline) = (&event.context.request_id, event.context.deadline);
    let outcome = controller.scheduled("uptime-alarm", id, deadline, UptimeRun::new).await?;
    Ok(json!({ "node_days": outcome.decided.len(), "failed": outcome.failed.len() }))
}
