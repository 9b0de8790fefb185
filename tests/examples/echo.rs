//! The function that the Runtime API emulator is tested with: it does what the event's `do` names.
#![expect(clippy::disallowed_methods, reason = "a test function that shows its environment")]

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    println!("started as {}", std::process::id());
    if let Ok(code) = std::env::var("EXIT_IN_INIT") {
        std::process::exit(code.parse()?);
    }
    run(service_fn(answer)).await
}

async fn answer(event: LambdaEvent<Value>) -> Result<Value, Error> {
    let (event, context) = event.into_parts();
    match event["do"].as_str() {
        Some("sleep") => tokio::time::sleep(Duration::from_millis(event["ms"].as_u64().unwrap_or(0))).await,
        Some("fail") => return Err("the disk is full".into()),
        Some("grow") => return Ok("x".repeat(7 << 20).into()),
        Some("exit") => std::process::exit(3),
        Some("print") => {
            println!("to stdout");
            eprintln!("to stderr");
            print!("without a line end");
            std::io::Write::flush(&mut std::io::stdout())?;
        }
        Some(_) | None => {}
    }
    if event["rawPath"] == "/made" {
        return Ok(
            json!({"statusCode": 201, "headers": {"x-made": "yes"}, "body": "bWFkZQ==", "isBase64Encoded": true}),
        );
    }
    Ok(json!({
        "event": event,
        "pid": std::process::id(),
        "deadline_ms": context.deadline,
        "arn": context.invoked_function_arn,
        "environment": std::env::vars().collect::<std::collections::BTreeMap<_, _>>(),
    }))
}
