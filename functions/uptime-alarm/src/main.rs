//! The uptime alarm: every quarter of an hour it tells of nodes that were up for too long in a local day.

mod handler;

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use reveille::aws::Controller;
use reveille::telemetry;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::start_logging();
    let controller = &Controller::start().await.inspect_err(|faults| tracing::error!("{faults}"))?;
    run(service_fn(move |event: LambdaEvent<Value>| handler::handle(controller, event))).await
}
