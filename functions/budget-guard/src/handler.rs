//! One look at the month.

use lambda_runtime::{Error, LambdaEvent};
use reveille::aws::Controller;
use reveille::decide::budget::BudgetPolicy;
use reveille::run::BudgetRun;
use serde_json::{Value, json};
use std::time::Instant;

/// Looks at the month's money, whatever the event holds. AWS's own notice that a budget is exceeded may come hours after
/// this function acted on its own estimate: it is one more look, and changes nothing (field case 38).
///
/// # Errors
/// The ledger could not be read, something could not be written, or nobody could be told: the failure has to show in the
/// function's error metric.
pub(crate) async fn handle(
    controller: &Controller,
    budget: &BudgetPolicy,
    event: LambdaEvent<Value>,
) -> Result<Value, Error> {
    let started = Instant::now();
    let context = controller.context(&event.context.request_id, event.context.deadline).await?;
    let now = context.now;
    let outcome = controller.aws.drive(&mut BudgetRun::new(context, budget.clone())).await;
    controller.log("budget-guard", now, &outcome, started.elapsed());
    match outcome.blind.or(outcome.unrecorded) {
        Some(error) => Err(error.into()),
        None => Ok(json!({ "pools": outcome.decided.len(), "failed": outcome.failed.len() })),
    }
}
