//! One day of a small staging node in about a minute: the built functions against a local AWS on virtual time.

use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use reveille_soak::trace::Trace;
use reveille_tests::demo::{self, DayLog, Money, trace};
use reveille_tests::operator::Operated;
use reveille_tests::report::{self, Check, Event, Message, SpendLine};
use reveille_tests::stage::{Stage, StageResult, binary, root};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs one virtual day, prints its timeline, checks what it has to show and writes timeline.json and report.html.
#[derive(Debug, Parser)]
#[command(
    after_help = "Examples:\n  demo                      the day of the README\n  demo --calls 60 --seed 7  a busier day"
)]
struct Args {
    /// About how many calls the day has; the built-in checks are made for about 20.
    #[arg(long, default_value_t = 20.0)]
    calls: f64,
    /// Seed of the day.
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// Which day of the trace, 0 to 13.
    #[arg(long, default_value_t = 5)]
    day: usize,
    /// Lets the local AWS run on at the end of the day, to be asked with the operator's command.
    #[arg(long)]
    keep: bool,
    /// Where the two files go.
    #[arg(long, default_value = "target/demo")]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match play(&Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn play(args: &Args) -> StageResult<bool> {
    let midnight: DateTime<Utc> = "2026-11-30T00:00:00Z".parse()?;
    let (from, to) = (midnight, midnight + TimeDelta::days(1));
    println!("Reveille: one day of a small team, on virtual time, with the four built functions on a local AWS.\n");
    let (stage, nodes) = demo::open(midnight).await?;
    let trace = Trace::open(&root())?;
    let arrivals = trace.arrivals(args.day, args.calls, midnight, args.seed).ok_or("the trace is shorter")?;
    let noise = trace::noise(&root())?;
    println!("{} calls from the trace, {} lines of other people's requests.\n", arrivals.len(), noise.len());
    let mut log = demo::run(&stage, &nodes, arrivals, &noise, to, &mut show).await?;
    std::fs::create_dir_all(&args.out)?;
    for (node, name) in [(&nodes.voice, "gpu-1"), (&nodes.batch, "gpu-2"), (&nodes.lab, "gpu-3")] {
        log.call_by_name(node.as_str(), name);
    }
    let timeline = args.out.join("timeline.json");
    std::fs::write(&timeline, serde_json::to_string_pretty(&log.events)?)?;
    let checks = log.checks(from, to);
    summary(&log, &checks, from, to);
    let (page, messages) = (args.out.join("report.html"), args.out.join("messages.txt"));
    std::fs::write(&page, report::html(&picture(&log, checks.clone(), from, to)))?;
    std::fs::write(&messages, log.messages.iter().map(in_full).collect::<String>())?;
    println!("\nWritten: {}, {} and {} (open it in a browser)", timeline.display(), messages.display(), page.display());
    if args.keep {
        keep(stage).await?;
    } else {
        println!("To ask it questions with the operator's command: make demo KEEP=1");
    }
    Ok(checks.iter().all(|check| check.ok))
}

/// Until Ctrl-C.
async fn keep(stage: Stage) -> StageResult<()> {
    let operated = Operated::on(stage).await?;
    operated.keep_logs().await?;
    println!("\nThe local AWS runs on; its clock stands at the end of the day. In another shell:\n");
    for (name, value) in &operated.shell {
        println!("  export {name}={value}");
    }
    let command = binary("reveille")?;
    for words in ["status", "events --since 1d", "report", "doctor"] {
        println!("  {} {words}", command.display());
    }
    println!("\nCtrl-C ends it.");
    tokio::signal::ctrl_c().await?;
    Ok(())
}

fn in_full(message: &Message) -> String {
    format!("{}  {}\n{}\n", message.at.format("%Y-%m-%d %H:%M:%S UTC"), message.subject, message.body)
}

/// Noise comes every 20 minutes and is counted at the end; everything else is a line.
fn show(event: &Event) {
    if event.event != "noise" {
        let node = event.node.as_deref().unwrap_or("-");
        println!(
            "{}  {:<10}  {:<19}  {:<12}  {}",
            event.at.format("%H:%M:%S"),
            event.function,
            node,
            event.event,
            event.reason
        );
    }
}

fn summary(log: &DayLog, checks: &[Check], from: DateTime<Utc>, to: DateTime<Utc>) {
    println!("\nWhat the day had to show:");
    for check in checks {
        println!("  {} {}: {}", if check.ok { "ok  " } else { "MISS" }, check.name, check.detail);
    }
    println!("\nWhat people were told ({} messages):", log.messages.len());
    for message in &log.messages {
        println!("  {}  {}", message.at.format("%d %H:%M"), message.subject);
    }
    println!("\nAWS calls of the four functions: {}", log.aws_calls.values().sum::<usize>());
    if let Some((_, own, aws)) = log.spend.iter().rev().find(|(at, _, _)| *at <= to) {
        println!("\nThe month so far, all three nodes with their disks: ${own:.2} by the guard; AWS shows ${aws:.2}");
    }
    println!("\nHours and money of the voice node (g6.xlarge, us-east-1, compute only):");
    for money in log.money(from, to) {
        let cents = (money.micro_usd() + 5_000) / 10_000;
        println!(
            "  {:<32} {:>5.1} h  ${:>2}.{:02}  {}",
            money.plan,
            money.hours(),
            cents / 100,
            cents % 100,
            money.note
        );
    }
}

/// Up to midnight: the new month begins at nothing.
fn spend_line(log: &DayLog, to: DateTime<Utc>) -> SpendLine {
    let of_day = || log.spend.iter().filter(|(at, _, _)| *at < to);
    SpendLine {
        amount_usd: demo::AMOUNT_USD as f64,
        thresholds: vec![50.0, 80.0, 100.0],
        own: of_day().map(|(at, own, _)| (*at, *own)).collect(),
        aws: of_day().map(|(at, _, aws)| (*at, *aws)).collect(),
    }
}

/// The day as the report shows it.
fn picture(log: &DayLog, checks: Vec<Check>, from: DateTime<Utc>, to: DateTime<Utc>) -> report::Day {
    let seconds = |span: TimeDelta| span.as_seconds_f64();
    let node_of = |connected: bool| connected.then(|| log.voice.clone());
    let call = |call: &reveille_tests::demo::CallSeen| report::Call {
        at: call.at,
        seconds: call.connected.zip(call.ended).map_or(0.0, |(from, to)| seconds(to - from)),
        node: node_of(call.connected.is_some()),
        // Who is refused at once has not waited.
        waited_seconds: call.connected.map_or(if call.refused { 0.0 } else { 90.0 }, |at| seconds(at - call.at)),
    };
    let money = |money: Money| report::MoneyRow {
        node_hours: money.hours(),
        // For display only; the figure itself is whole micro-dollars.
        usd_day: TimeDelta::microseconds(money.micro_usd()).as_seconds_f64(),
        plan: money.plan,
        note: money.note,
    };
    let node = |(name, states): (&String, &Vec<(DateTime<Utc>, String)>)| report::NodeDay {
        name: name.clone(),
        states: states.clone(),
    };
    report::Day {
        title: "A day of a small team".to_owned(),
        messages: log.messages.clone(),
        gates: log.gates.clone(),
        spend: Some(spend_line(log, to)),
        from,
        to,
        nodes: log.states.iter().map(node).collect(),
        calls: log.calls.iter().map(call).collect(),
        prewarms: log.prewarms.clone(),
        noise: log.noise.clone(),
        events: log.events.clone(),
        checks,
        money: log.money(from, to).into_iter().map(money).collect(),
    }
}
