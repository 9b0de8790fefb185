//! Wake: a pre-warm call, a batch of request-log lines, a state-change event or an operator's order; several may come at
//! once, one START goes out.

mod access;
#[cfg(test)]
mod corpus_tests;
mod event;
mod handler;
mod http;
mod operator;
mod page;

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
