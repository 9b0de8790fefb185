//! One event file through a built function, on a local AWS with one sleeping node `gpu-1` of pool `voice`.

use chrono::{DateTime, Utc};
use clap::Parser;
use reveille_tests::stage::{Stage, StageResult};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows what a function answers to an event, what it logs and which AWS calls it makes.
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  invoke wake events/wake/prewarm.json")]
struct Args {
    /// `wake`, `idle-check`, `uptime-alarm` or `budget-guard`.
    function: String,
    /// The event.
    event: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match invoke(&Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("invoke: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn invoke(args: &Args) -> StageResult<bool> {
    let text = std::fs::read_to_string(&args.event).map_err(|error| format!("{}: {error}", args.event.display()))?;
    let event: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", args.event.display()))?;
    let four_minutes_to_nine: DateTime<Utc> = "2026-11-30T08:56:00Z".parse()?;
    let stage = Stage::open(four_minutes_to_nine).await?;
    stage.add_node("gpu-1", "voice", false).await?;
    stage.aws.clear_calls().await;
    let invocation = match args.function.as_str() {
        "wake" => stage.wake.invoke(&event).await,
        "idle-check" => stage.idle.invoke(&event).await,
        "uptime-alarm" => stage.uptime.invoke(&event).await,
        "budget-guard" => stage.budget.invoke(&event).await,
        other => {
            return Err(format!("no function {other:?}: wake, idle-check, uptime-alarm or budget-guard").into());
        }
    };
    invocation.logs.iter().for_each(|line| println!("log     {line}"));
    for call in stage.aws.calls().await {
        println!("call    {}:{} {} {}", call.service, call.action, call.target.unwrap_or_default(), call.status);
    }
    match &invocation.result {
        Ok(answer) => println!("answer  {answer}"),
        Err(error) => println!("error   {error}"),
    }
    Ok(invocation.result.is_ok())
}
