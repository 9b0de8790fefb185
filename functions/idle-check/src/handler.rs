//! One tick.

use lambda_runtime::{Error, LambdaEvent};
use reveille::aws::Controller;
use reveille::run::IdleRun;
use serde_json::{Value, json};

/// Runs one tick, whatever the event holds: a tick needs no payload (field case 33).
///
/// # Errors
/// As [`Controller::scheduled`].
pub(crate) async fn handle(controller: &Controller, event: LambdaEvent<Value>) -> Result<Value, Error> {
    let (id, deadline) = (&event.context.request_id, event.context.deadline);
    let outcome = controller.scheduled("idle-check", id, deadline, IdleRun::new).await?;
    Ok(json!({ "nodes": outcome.decided.len(), "failed": outcome.failed.len() }))
}
