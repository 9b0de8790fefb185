//! Warm invocations: processor time and AWS calls of each path, and how they grow with nodes and lines.

use super::Plan;
use super::cold::sleep;
use super::https::Https;
use super::row::{Row, Target, median};
use super::sides::{HOURS_BACK, Sides, answered};
use crate::runtime_api::{Function, real_now};
use crate::stage::{LOG_GROUP, Stage, StageResult, http_answer, log_batch, url_event};
use chrono::{DurationRound as _, TimeDelta};
use reveille::domain::NodeId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const NODES: [i32; 4] = [1, 10, 100, MOST_NODES];
const MOST_NODES: i32 = 1000;
const LINES: [usize; 2] = [1, 10_000];
const WAKE_CALLS: f64 = 4.0;
const TICK_CALLS: f64 = 3.0;
const MOST_FIRST_LOOKS: usize = 10;
/// In a row: it has nothing else to do.
const QUICK_ANSWERS: usize = 10;
const PYTHON: &str = "Python";

/// AWS calls of one path, by name.
pub(super) type Calls = BTreeMap<String, usize>;

/// The counted calls of the paths that the month is made of.
#[derive(Debug, Default)]
pub(super) struct Counts(pub(super) BTreeMap<&'static str, Calls>);

/// Requests of every minute, an hour and a half back and as much ahead: whatever the run takes, the node is in use. The local
/// AWS's clock is set to the real one, beyond which it takes no points.
pub(super) async fn traffic(stage: &Stage) -> StageResult<()> {
    stage.aws.set_clock(real_now()).await;
    let now = real_now().duration_trunc(TimeDelta::minutes(1))?;
    let minutes = (-90..90).map(|minute| now + TimeDelta::minutes(minute));
    let points: Vec<_> = minutes
        .flat_map(|at| [("HealthyHostCount", at, 1.0), ("RequestCount", at, 3.0), ("ActiveConnectionCount", at, 0.0)])
        .collect();
    for some in points.chunks(500) {
        stage.put_points(some).await?;
    }
    Ok(())
}

/// A warm function, and what it had taken when it was last asked.
struct Side {
    name: &'static str,
    function: Function,
    taken: Duration,
}

/// One warm invocation.
#[derive(Debug)]
struct Warm {
    cpu_ms: f64,
    peak_mib: f64,
    calls: Calls,
    status: u16,
}

impl Side {
    /// Invoked once, so that it is warm.
    async fn new(name: &'static str, function: Function, event: &Value) -> StageResult<Self> {
        let run = function.invoke(event).await;
        answered(name, &run)?;
        Ok(Self { name, function, taken: run.processor.unwrap_or_default() })
    }

    async fn invoke(&mut self, stage: &Stage, https: &Https, event: &Value) -> StageResult<Warm> {
        stage.aws.clear_calls().await;
        https.take_kept();
        let run = self.function.invoke(event).await;
        answered(self.name, &run)?;
        let mut calls = Calls::new();
        for call in stage.aws.take_calls().await {
            *calls.entry(call.action).or_default() += 1;
        }
        if let kept @ 1.. = https.take_kept() {
            *calls.entry("DescribeInstances".to_owned()).or_default() += kept;
        }
        let taken = run.processor.ok_or("the system does not say how much processor time a process has taken")?;
        let cpu = taken.saturating_sub(std::mem::replace(&mut self.taken, taken));
        Ok(Warm {
            cpu_ms: cpu.as_secs_f64() * 1e3,
            peak_mib: run.max_memory_kib.unwrap_or_default() as f64 / 1024.0,
            calls,
            status: http_answer(&run).0,
        })
    }
}

pub(super) async fn rows(plan: &Plan, say: &mut dyn FnMut(&str)) -> StageResult<(Vec<Row>, Counts)> {
    let mut counts = Counts::default();
    let mut stage = Stage::open(real_now() - TimeDelta::hours(HOURS_BACK)).await?;
    let sides = Sides::open(plan, &stage).await?;
    let mut rows = wakes(plan, &stage, &sides, say, &mut counts).await?;
    for nodes in NODES {
        stage.reset().await?;
        rows.extend(ticks(plan, &stage, &sides, nodes, say, &mut counts).await?);
    }
    Ok((rows, counts))
}

fn words(calls: &Calls) -> String {
    calls.iter().map(|(action, count)| format!("{count} {action}")).collect::<Vec<_>>().join(", ")
}

fn total(calls: &Calls) -> f64 {
    calls.values().sum::<usize>() as f64
}

/// A sleeping node is woken by a caller, by one line and by the last of many; then the paths of a node that runs.
async fn wakes(
    plan: &Plan,
    stage: &Stage,
    sides: &Sides,
    say: &mut dyn FnMut(&str),
    counts: &mut Counts,
) -> StageResult<Vec<Row>> {
    let node = stage.add_node("gpu-1", "voice", false).await?;
    let prewarm = url_event("POST", "/wake", &Value::Null);
    let mut own = Side::new("wake", sides.own("wake")?, &prewarm).await?;
    let mut peer = Side::new("wake in Python", sides.peer("wake")?, &prewarm).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 0..plan.runs {
        say(&format!("warm wake: {run} of {}", plan.runs));
        sleep(stage, &node).await?;
        ours.push(own.invoke(stage, &sides.https, &prewarm).await?);
        sleep(stage, &node).await?;
        theirs.push(peer.invoke(stage, &sides.https, &prewarm).await?);
    }
    if let Some(odd) = ours.iter().chain(&theirs).find(|warm| warm.status != 202) {
        return Err(format!("a sleeping node was not woken: {odd:?}").into());
    }
    let mut rows = compared("wake of a sleeping node, warm", &ours, &theirs);
    let calls = ours.last().map(|warm| warm.calls.clone()).unwrap_or_default();
    rows.push(
        Row::of("wake of a sleeping node: AWS calls", total(&calls), "calls")
            .target(Target::AtMost(WAKE_CALLS))
            .note(words(&calls)),
    );
    counts.0.insert("wake, asleep", calls);
    rows.extend(line_wakes(plan, stage, sides, &node, say).await?);
    traffic(stage).await?;
    stage.pass(TimeDelta::minutes(2)).await;
    for (path, event) in [
        ("wake, awake", prewarm.clone()),
        ("lease given", url_event("PUT", "/leases/call-1", &json!({"ttl_seconds": 120}))),
        ("lease renewed", url_event("PUT", "/leases/call-1", &json!({"ttl_seconds": 120, "renew": true}))),
        ("lease ended", url_event("DELETE", "/leases/call-1", &Value::Null)),
    ] {
        // The first that meets a node which has just become ready writes that down.
        if path == "wake, awake" {
            own.invoke(stage, &sides.https, &event).await?;
        }
        let warm = own.invoke(stage, &sides.https, &event).await?;
        if !(200..300).contains(&warm.status) {
            return Err(format!("{path}: {warm:?}").into());
        }
        let mut said = words(&warm.calls);
        if path == "wake, awake" {
            // The first of a minute begins the caller's count in one write; the others find it begun.
            said += "; one fewer for the first wake of a minute";
        }
        rows.push(Row::of(format!("{path}: AWS calls"), total(&warm.calls), "calls").note(said));
        counts.0.insert(path, warm.calls);
    }
    Ok(rows)
}

/// A batch of lines that are no calls, and behind them one that is.
async fn line_wakes(
    plan: &Plan,
    stage: &Stage,
    sides: &Sides,
    node: &NodeId,
    say: &mut dyn FnMut(&str),
) -> StageResult<Vec<Row>> {
    let mut rows = Vec::new();
    for lines in LINES {
        let at = real_now();
        let line = |n: usize| {
            let path = if n + 1 == lines { "/v1/calls" } else { "/index.html" };
            let message = format!(
                "192.0.2.7 - - [{}] \"POST {path} HTTP/1.1\" 503 5 \"-\" \"okhttp/4.9\"",
                at.format("%d/%b/%Y:%H:%M:%S %z")
            );
            json!({"id": format!("{n:056}"), "timestamp": at.timestamp_millis(), "message": message})
        };
        let event = log_batch(LOG_GROUP, &(0..lines).map(line).collect::<Vec<_>>());
        sleep(stage, node).await?;
        let mut own = Side::new("wake", sides.own("wake")?, &event).await?;
        let mut ours = Vec::new();
        for run in 0..plan.runs {
            say(&format!("wake by the last of {lines} lines: {run} of {}", plan.runs));
            sleep(stage, node).await?;
            ours.push(own.invoke(stage, &sides.https, &event).await?);
        }
        rows.extend(alone(&format!("wake by the last of {lines} lines"), &ours, Some(WAKE_CALLS)));
    }
    Ok(rows)
}

/// Nodes that run and are used, so that a tick changes nothing.
async fn ticks(
    plan: &Plan,
    stage: &Stage,
    sides: &Sides,
    nodes: i32,
    say: &mut dyn FnMut(&str),
    counts: &mut Counts,
) -> StageResult<Vec<Row>> {
    say(&format!("tick of {nodes} nodes"));
    if nodes == 1 {
        // Asleep first: that is how a quiet node spends its month.
        let node = stage.add_node("gpu-1", "voice", false).await?;
        for (path, name) in [
            ("tick, asleep", "idle-check"),
            ("uptime alarm, asleep", "uptime-alarm"),
            ("budget guard, asleep", "budget-guard"),
        ] {
            let mut own = Side::new(name, sides.own(name)?, &json!({})).await?;
            counts.0.insert(path, own.invoke(stage, &sides.https, &json!({})).await?.calls);
        }
        stage.start_by_hand(&node).await?;
    } else {
        stage.launch("voice", nodes).await?;
    }
    stage.pass(TimeDelta::minutes(2)).await;
    traffic(stage).await?;
    sides.https.keep_descriptions(nodes > 100);
    if nodes > 100 {
        // It gives up before the local AWS has described the nodes; the answer is kept.
        sides.own("idle-check")?.invoke(&json!({})).await;
        sides.https.kept_one().await?;
        // The first look writes facts of each node, which the local AWS is slow to take: until it has them all.
        for _ in 0..MOST_FIRST_LOOKS {
            idle(stage).await;
            if sides.own("idle-check")?.invoke(&json!({})).await.result.is_ok() {
                break;
            }
        }
        idle(stage).await;
    }
    let mut own = Side::new("idle-check", sides.own("idle-check")?, &json!({})).await?;
    let mut peer = Side::new("idle-check in Python", sides.peer("idle-check")?, &json!({})).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..if nodes > 100 { 3 } else { plan.runs } {
        ours.push(own.invoke(stage, &sides.https, &json!({})).await?);
        if nodes == 1 {
            theirs.push(peer.invoke(stage, &sides.https, &json!({})).await?);
        }
    }
    if nodes == 1 {
        counts.0.insert("tick, awake", ours.last().map(|warm| warm.calls.clone()).unwrap_or_default());
        let mut rows = compared("tick that changes nothing, warm", &ours, &theirs);
        rows.extend(alone("tick of 1 node", &ours, Some(TICK_CALLS)));
        return Ok(rows);
    }
    // The nodes are one page, and so are the metrics, which are the pool's and not each node's.
    Ok(alone(&format!("tick of {nodes} nodes"), &ours, Some(TICK_CALLS)))
}

/// Waits until the local AWS has nothing to do, for three minutes at most: what the SDK gave up waiting for it still describes,
/// and others would wait behind that.
async fn idle(stage: &Stage) {
    let began = Instant::now();
    let mut quick = 0;
    while quick < QUICK_ANSWERS && began.elapsed() < Duration::from_secs(180) {
        let asked = Instant::now();
        stage.aws.now().await;
        quick = if asked.elapsed() < Duration::from_millis(50) { quick + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn compared(what: &str, own: &[Warm], peer: &[Warm]) -> Vec<Row> {
    let cpu = |side: &[Warm]| side.iter().map(|warm| warm.cpu_ms).collect::<Vec<_>>();
    vec![Row::beside(format!("{what}: processor time"), "ms", &cpu(own), PYTHON, &cpu(peer))]
}

fn alone(what: &str, own: &[Warm], most_calls: Option<f64>) -> Vec<Row> {
    let cpu: Vec<f64> = own.iter().map(|warm| warm.cpu_ms).collect();
    let peak = own.iter().map(|warm| warm.peak_mib).fold(0.0, f64::max);
    let calls = own.last().map(|warm| warm.calls.clone()).unwrap_or_default();
    let counted = Row::of(format!("{what}: AWS calls"), total(&calls), "calls").note(words(&calls));
    vec![
        most_calls.map_or(counted.clone(), |most| counted.target(Target::AtMost(most))),
        Row::of(format!("{what}: processor time"), median(&cpu), "ms"),
        Row::of(format!("{what}: peak memory"), peak, "MiB"),
    ]
}
