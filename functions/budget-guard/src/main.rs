//! The budget guard: every hour it keeps the AWS budget, estimates the month's cost, tells of thresholds and keeps the gate.

mod handler;

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use reveille::aws::Controller;
use reveille::telemetry;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::start_logging();
    let controller = &Controller::start().await.inspect_err(|faults| tracing::error!("{faults}"))?;
    let budget = &controller.config.for_budget_guard().inspect_err(|faults| tracing::error!("{faults}"))?;
    run(service_fn(move |event: LambdaEvent<Value>| handler::handle(controller, budget, event))).await
}
