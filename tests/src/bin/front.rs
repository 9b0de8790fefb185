//! The wake function behind a URL on loopback, on a local AWS with one sleeping node `gpu-1` of pool `voice`.

use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use reveille_tests::front::{FrontSpec, serve};
use reveille_tests::stage::{Stage, StageResult, TOKEN};
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Serves the wake function until Ctrl-C and lets virtual time pass: EC2 events and the idle check every five minutes come
/// as on AWS, and each effect is printed.
#[derive(Debug, Parser)]
#[command(
    after_help = "Example:\n  front --speed 60   a minute passes each second: the node sleeps again after half a minute"
)]
struct Args {
    /// The loopback port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// How many virtual seconds pass in a real one, 1 to 60.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    speed: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    match play(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("front: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn play(args: &Args) -> StageResult<()> {
    let four_minutes_to_nine: DateTime<Utc> = "2026-11-30T08:56:00Z".parse()?;
    let stage = Stage::open(four_minutes_to_nine).await?;
    stage.add_node("gpu-1", "voice", false).await?;
    let url = serve(Arc::clone(&stage.wake), FrontSpec { port: args.port, ..FrontSpec::default() }).await?;
    let address = url.address();
    println!("The wake function is at http://{address}; one node, gpu-1, sleeps. Ctrl-C ends it. Try:\n");
    println!("  curl -i -X POST -H 'Authorization: Bearer {TOKEN}' http://{address}/wake");
    println!("  curl -i -H 'Authorization: Bearer {TOKEN}' http://{address}/status\n");
    tokio::select! {
        ended = tokio::signal::ctrl_c() => Ok(ended?),
        failed = live(&stage, args.speed) => failed,
    }
}

/// Lets virtual time follow the real one until something fails.
async fn live(stage: &Stage, speed: u32) -> StageResult<()> {
    let (began, from) = (Instant::now(), stage.aws.now().await);
    let (mut proved, mut ticked, mut printed) = (from, from, [0, 0]);
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = from + TimeDelta::from_std(began.elapsed() * speed)?;
        for event in stage.aws.set_clock(now).await {
            println!("ec2     {} {}", event["detail"]["instance-id"], event["detail"]["state"]);
            stage.wake.invoke(&event).await;
        }
        if now - proved >= TimeDelta::minutes(1) {
            stage.prove_alive(proved).await?;
            proved = now;
        }
        if now - ticked >= TimeDelta::minutes(5) {
            stage.tick().await;
            ticked = now;
        }
        for (printed, lines) in printed.iter_mut().zip([stage.wake.logs(), stage.idle.logs()]) {
            lines.iter().skip(*printed).for_each(|line| show(line));
            *printed = lines.len();
        }
    }
}

fn show(line: &str) {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    if line["effect"] == true {
        println!("effect  {} {} {} {} {}", line["at"], line["function"], line["event"], line["node"], line["reason"]);
    }
}
