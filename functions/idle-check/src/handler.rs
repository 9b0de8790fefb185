//! One tick.

use lambda_runtime::{Error, LambdaEvent};
use reveille::aws::Controller;
use reveille::operator::{Ask, Asked, FIELD};
use reveille::run::IdleRun;
use serde_json::{Value, json};

/// Runs one tick, whatever the event holds: a tick needs no payload (field case 33). Only an operator gets an answer instead:
/// what this function's role may do, or that this version knows no such question. It must not stop a node.
///
/// # Errors
/// As [`Controller::scheduled`].
pub(crate) async fn handle(controller: &Controller, event: LambdaEvent<Value>) -> Result<Value, Error> {
    if let Some(asked) = event.payload.get(FIELD) {
        let asked = serde_json::from_value::<Asked>(asked.clone());
        if !asked.is_ok_and(|asked| asked.ask == Ask::Rights) {
            return Ok(json!({ "state": "refused" }));
        }
        let rights = controller.aws.rights(&controller.config.pool_policies(), true).await?;
        return Ok(json!({ "state": "rights", "rights": rights }));
    }
    let (id, deadline) = (&event.context.request_id, event.context.deadline);
    let outcome = controller.scheduled("idle-check", id, deadline, IdleRun::new).await?;
    Ok(json!({ "nodes": outcome.decided.len(), "failed": outcome.failed.len() }))
}
