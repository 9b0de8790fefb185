//! One tick.

use lambda_runtime::{Error, LambdaEvent};
use reveille::aws::Controller;
use reveille::run::IdleRun;
use serde_json::{Value, json};
use std::time::Instant;

/// Runs one tick, whatever the event holds: a tick needs no payload (field case 33).
///
/// # Errors
/// Nothing could be looked at, the ledger could not be read or written, or nobody could be told: the failure has to show in the function's error metric.
pub(crate) async fn handle(controller: &Controller, event: LambdaEvent<Value>) -> Result<Value, Error> {
    let started = Instant::now();
    let context = controller.context(&event.context.request_id, event.context.deadline).await?;
    let now = context.now;
    let outcome = controller.aws.drive(&mut IdleRun::new(context)).await;
    controller.log("idle-check", now, &outcome, started.elapsed());
    match outcome.blind.or(outcome.unrecorded) {
        Some(error) => Err(error.into()),
        None => Ok(json!({ "nodes": outcome.decided.len(), "failed": outcome.failed.len() })),
    }
}
