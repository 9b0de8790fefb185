//! One look at the month.

use lambda_runtime::{Error, LambdaEvent};
use reveille::aws::Controller;
use reveille::decide::budget::BudgetPolicy;
use reveille::run::BudgetRun;
use serde_json::{Value, json};

/// Looks at the month's money, whatever the event holds. AWS's own notice that a budget is exceeded may come hours after
/// this function acted on its own estimate: it is one more look, and changes nothing (field case 38).
///
/// # Errors
/// As [`Controller::scheduled`].
pub(crate) async fn handle(
    controller: &Controller,
    budget: &BudgetPolicy,
    event: LambdaEvent<Value>,
) -> Result<Value, Error> {
    let (id, deadline) = (&event.context.request_id, event.context.deadline);
    let run = |context| BudgetRun::new(context, budget.clone());
    let outcome = controller.scheduled("budget-guard", id, deadline, run).await?;
    Ok(json!({ "pools": outcome.decided.len(), "failed": outcome.failed.len() }))
}
