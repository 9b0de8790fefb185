//! Cold starts: from the start of the process to its first answer, alternating with the Python handler of the same work.

use super::Plan;
use super::row::{Row, Target};
use super::sides::{FUNCTIONS, Sides, answered};
use crate::runtime_api::Function;
use crate::stage::{Stage, StageResult, TABLE, http_answer, url_event};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use reveille::domain::NodeId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const PYTHON: &str = "Python";
const TIMES_FASTER: f64 = 12.0;
const TIMES_LESS_CPU: f64 = 40.0;
const TIMES_LESS_MEMORY: f64 = 6.0;

/// One cold start.
#[derive(Debug)]
struct Cold {
    next_ms: f64,
    /// Without the time that the local AWS thought.
    answer_ms: f64,
    /// With it.
    whole_ms: f64,
    cpu_ms: f64,
    peak_mib: f64,
    calls: BTreeMap<String, usize>,
}

pub(super) async fn rows(
    plan: &Plan,
    stage: &Stage,
    sides: &Sides,
    say: &mut dyn FnMut(&str),
) -> StageResult<Vec<Row>> {
    let node = stage.add_node("gpu-1", "voice", false).await?;
    let mut rows = Vec::new();
    for name in FUNCTIONS {
        if name == FUNCTIONS[1] {
            // From here on one node runs and is used: nothing is to be done.
            prepare_quiet(stage, &node).await?;
        }
        let (mut own, mut peer, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for run in 0..=plan.runs {
            say(&format!("cold start of {name}: {run} of {}", plan.runs));
            let ours = cold(stage, sides, &sides.own(name)?, name, "Rust", &node).await?;
            let theirs = cold(stage, sides, &sides.peer(name)?, name, PYTHON, &node).await?;
            let one_root =
                cold(stage, sides, &sides.own_with_one_root(name)?, name, "Rust with one root", &node).await?;
            // The first of each fills the caches of the disk, and settles what is recorded once.
            if run > 0 {
                own.push(ours);
                peer.push(theirs);
                bare.push(one_root);
            }
        }
        rows.extend(compared(name, &own, &peer)?);
        rows.extend(limits(name, &own, &bare));
    }
    Ok(rows)
}

/// What is left where the machine's roots are not read: all who trust them read them, so nobody gets below.
fn limits(name: &str, own: &[Cold], bare: &[Cold]) -> [Row; 3] {
    let beside = |what: &str, unit: &'static str, of: fn(&Cold) -> f64| {
        let pick = |side: &[Cold]| side.iter().map(of).collect::<Vec<_>>();
        let what = format!("{name}, cold, beside itself with one root certificate: {what}");
        Row::beside(what, unit, &pick(own), "with one root", &pick(bare))
    };
    [
        beside("start to first answer", "ms", |cold| cold.answer_ms),
        beside("processor time to first answer", "ms", |cold| cold.cpu_ms),
        beside("peak memory", "MiB", |cold| cold.peak_mib),
    ]
}

async fn prepare_quiet(stage: &Stage, node: &NodeId) -> StageResult<()> {
    forget(stage).await?;
    stage.pass(TimeDelta::minutes(2)).await;
    if stage.state(node).await? != "running" {
        stage.start_by_hand(node).await?;
        stage.pass(TimeDelta::minutes(2)).await;
    }
    super::warm::traffic(stage).await
}

async fn cold(
    stage: &Stage,
    sides: &Sides,
    function: &Function,
    name: &str,
    side: &str,
    node: &NodeId,
) -> StageResult<Cold> {
    if name == "wake" {
        sleep(stage, node).await?;
    }
    stage.aws.clear_calls().await;
    sides.https.take_thought();
    let event = if name == "wake" { url_event("POST", "/wake", &Value::Null) } else { json!({}) };
    let run = function.invoke(&event).await;
    let thought = sides.https.take_thought();
    answered(&format!("{name} in {side}"), &run)?;
    if name == "wake" && http_answer(&run).0 != 202 {
        return Err(format!("wake in {side} answered {:?}", run.result).into());
    }
    let mut calls = BTreeMap::new();
    for call in stage.aws.take_calls().await {
        *calls.entry(call.action).or_default() += 1;
    }
    let init = run.init_duration.ok_or("it was warm")?;
    let unknown = "the system does not say how much memory and processor time a process has taken";
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(Cold {
        next_ms: ms(init),
        answer_ms: ms((init + run.duration).saturating_sub(thought)),
        whole_ms: ms(init + run.duration),
        cpu_ms: ms(run.processor.ok_or(unknown)?),
        peak_mib: run.max_memory_kib.ok_or(unknown)? as f64 / 1024.0,
        calls,
    })
}

/// The node sleeps, and the ledger knows nothing of it.
pub(super) async fn sleep(stage: &Stage, node: &NodeId) -> StageResult<()> {
    forget(stage).await?;
    if stage.state(node).await? != "stopped" {
        stage.pass(TimeDelta::minutes(2)).await;
        aws_sdk_ec2::Client::new(&stage.sdk).stop_instances().instance_ids(node.as_str()).send().await?;
        stage.pass(TimeDelta::minutes(2)).await;
    }
    Ok(())
}

async fn forget(stage: &Stage) -> StageResult<()> {
    let key = |text: &str| AttributeValue::S(text.to_owned());
    let dynamodb = aws_sdk_dynamodb::Client::new(&stage.sdk);
    // The peers keep items of their own.
    for pk in ["pool#voice", "peer#voice"] {
        dynamodb.delete_item().table_name(TABLE).key("pk", key(pk)).key("sk", key("-")).send().await?;
    }
    Ok(())
}

fn compared(name: &str, own: &[Cold], peer: &[Cold]) -> StageResult<Vec<Row>> {
    let last = own.last().zip(peer.last()).ok_or("no runs")?;
    if last.0.calls != last.1.calls {
        return Err(format!("{name}: not the same work: {:?} here, {:?} in Python", last.0.calls, last.1.calls).into());
    }
    let pick = |of: fn(&Cold) -> f64| (own.iter().map(of).collect::<Vec<_>>(), peer.iter().map(of).collect::<Vec<_>>());
    let row = |what: &str, unit: &'static str, of: fn(&Cold) -> f64| {
        let (own, peer) = pick(of);
        Row::beside(format!("{name}, cold: {what}"), unit, &own, PYTHON, &peer)
    };
    let calls: Vec<String> = last.0.calls.iter().map(|(action, count)| format!("{count} {action}")).collect();
    Ok(vec![
        row("start to first answer", "ms", |cold| cold.answer_ms)
            .target(Target::Times(TIMES_FASTER))
            .note(calls.join(", ")),
        row("the same with the local AWS's own time", "ms", |cold| cold.whole_ms),
        row("start to ready for an event", "ms", |cold| cold.next_ms),
        row("processor time to first answer", "ms", |cold| cold.cpu_ms).target(Target::Times(TIMES_LESS_CPU)),
        row("peak memory", "MiB", |cold| cold.peak_mib).target(Target::Times(TIMES_LESS_MEMORY)),
    ])
}
