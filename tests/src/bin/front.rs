//! The wake function behind a URL on loopback, on a local AWS with one sleeping node `gpu-1` of pool `voice`.

use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use reveille_tests::front::{FrontSpec, serve};
use reveille_tests::stage::{Stage, StageResult, TOKEN, voice_pools};
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
    /// How many virtual seconds pass in a real one, 0 to 60; with 0 it stands unless the local AWS's clock is moved.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=60))]
    speed: u32,
    /// A further variable of the functions, such as `REVEILLE_BOOT_SECONDS=70`; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    set: Vec<(String, String)>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("has to be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
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
    let more: Vec<_> = args.set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let stage = Stage::open_with(four_minutes_to_nine, &voice_pools(), &more).await?;
    stage.add_node("gpu-1", "voice", false).await?;
    let url = serve(Arc::clone(&stage.wake), FrontSpec { port: args.port, ..FrontSpec::default() }).await?;
    let address = url.address();
    println!("The local AWS is at {}.", stage.aws.endpoint());
    println!("The wake function is at http://{address}; one node, gpu-1, sleeps. Ctrl-C ends it. Try:\n");
    println!("  curl -i -X POST -H 'Authorization: Bearer {TOKEN}' http://{address}/wake");
    println!("  curl -i -H 'Authorization: Bearer {TOKEN}' http://{address}/status\n");
    tokio::select! {
        ended = tokio::signal::ctrl_c() => Ok(ended?),
        failed = live(&stage, args.speed) => failed,
    }
}

/// Lets virtual time follow the real one, and shows the effects, until something fails.
async fn live(stage: &Stage, speed: u32) -> StageResult<()> {
    let from = stage.aws.now().await;
    let (mut last, mut time, mut printed) = (Instant::now(), Time { proved: from, ticked: from }, [0, 0]);
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let real = last.elapsed();
        last += real;
        if speed > 0 {
            time.pass(stage, TimeDelta::from_std(real * speed)?).await?;
        }
        for (printed, lines) in printed.iter_mut().zip([stage.wake.logs(), stage.idle.logs()]) {
            lines.iter().skip(*printed).for_each(|line| show(line));
            *printed = lines.len();
        }
    }
}

/// What comes with time, and when it came last.
struct Time {
    proved: DateTime<Utc>,
    ticked: DateTime<Utc>,
}

impl Time {
    /// Moves the clock on from wherever it is: others may have moved it too.
    async fn pass(&mut self, stage: &Stage, time: TimeDelta) -> StageResult<()> {
        for event in stage.aws.advance_clock(time).await {
            println!("ec2     {} {}", event["detail"]["instance-id"], event["detail"]["state"]);
            stage.wake.invoke(&event).await;
        }
        let now = stage.aws.now().await;
        if now - self.proved >= TimeDelta::minutes(1) {
            stage.prove_alive(self.proved).await?;
            self.proved = now;
        }
        if now - self.ticked >= TimeDelta::minutes(5) {
            stage.tick().await;
            self.ticked = now;
        }
        Ok(())
    }
}

fn show(line: &str) {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    if line["effect"] == true {
        println!("effect  {} {} {} {} {}", line["at"], line["function"], line["event"], line["node"], line["reason"]);
    }
}
