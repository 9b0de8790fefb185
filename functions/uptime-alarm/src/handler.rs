//! One look at the day.

use lambda_runtime::{Error, LambdaEvent};
use reveille::aws::Controller;
use reveille::run::UptimeRun;
use serde_json::{Value, json};
use std::time::Instant;

/// Looks at every node's day, whatever the event holds: a schedule needs no payload (field case 33).
///
/// # Errors
/// Nodes or ledger could not be read, something could not be written, or nobody could be told: the failure has to show in
/// the function's error metric. What could be told was.
pub(crate) async fn handle(controller: &Controller, event: LambdaEvent<Value>) -> Result<Value, Error> {
    let started = Instant::now();
    let context = controller.context(&event.context.request_id, event.context.deadline).await?;
    let now = context.now;
    let outcome = controller.aws.drive(&mut UptimeRun::new(context)).await;
    controller.log("uptime-alarm", now, &outcome, started.elapsed());
    match outcome.blind.or(outcome.unrecorded) {
        Some(error) => Err(error.into()),
        None => Ok(json!({ "node_days": outcome.decided.len(), "failed": outcome.failed.len() })),
    }
}
