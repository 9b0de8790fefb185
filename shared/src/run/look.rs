//! Joins the answers of one look (describe, ledger, metrics) to one [`Look`] a node.

use super::Context;
use super::call::{Activity, Fact, MetricRef, Signal, fact_name};
use super::outcome::Decided;
use crate::decide::{Look, Reason};
use crate::domain::{Instant, NodeSeen, NodeState, PoolName, PoolRecord};
use crate::error::CallError;
use crate::observation::{SignalKind, SignalReading, Unread, UseReading, read_use};
use crate::run::Call;
use chrono::{DurationRound, TimeDelta};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The look of a node whose use was not asked for: it is not running, or the question is only whether to start it.
pub(super) fn without_use(ctx: &Context, seen: NodeSeen, record: &PoolRecord) -> Look {
    Look {
        record: record.node(&seen.id),
        demand: record.demand,
        wake: record.last_wake(&seen.id),
        used: Err(Unread::Failed),
        now: ctx.now,
        seen,
    }
}

/// The call that reads every signal of the running nodes; none where no running node has a signal.
pub(super) fn activity_call(ctx: &Context, nodes: &[NodeSeen]) -> Option<Call> {
    let mut metrics = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.state == NodeState::Running) {
        for signal in ctx.pools.get(&node.pool).into_iter().flatten() {
            metrics.insert(signal.metric.of(&node.id), signal.kind);
            if let Some(alive) = &signal.alive {
                metrics.entry(alive.of(&node.id)).or_insert(SignalKind::Requests);
            }
        }
    }
    if metrics.is_empty() {
        return None;
    }
    let to = whole_minute(ctx.now) + TimeDelta::minutes(1);
    Some(Call::ReadActivity { metrics, from: whole_minute(ctx.now - ctx.policy.look_back()), to })
}

fn whole_minute(at: Instant) -> Instant {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)
}

/// The use of a node since its launch, from what was read.
pub(super) fn used(
    ctx: &Context,
    seen: &NodeSeen,
    record: &PoolRecord,
    activity: &Result<Activity, CallError>,
) -> UseReading {
    // A claim that cannot be read might be a STOP under way or a wake's START: nothing is concluded from the rest.
    if record.unread.contains(&fact_name("claim", &seen.id)) {
        return Err(Unread::Failed);
    }
    let Ok(activity) = activity else { return Err(Unread::Failed) };
    let signals = ctx.pools.get(&seen.pool).map_or(&[][..], Vec::as_slice);
    let readings: Vec<_> = signals.iter().map(|signal| reading(signal, seen, activity)).collect();
    read_use(&readings, seen.launched_at.unwrap_or(ctx.now), ctx.now, ctx.policy.idle)
}

fn reading(signal: &Signal, seen: &NodeSeen, activity: &Activity) -> SignalReading {
    let read = |metric: &MetricRef| activity.get(&metric.of(&seen.id)).cloned().unwrap_or(Err(Unread::Failed));
    SignalReading { kind: signal.kind, own: read(&signal.metric), alive: signal.alive.as_ref().map(read) }
}

/// The `decided` line of a node.
pub(super) fn decided(
    look: &Look,
    action: &str,
    reason: Reason,
    stops: Option<Instant>,
    record: &PoolRecord,
) -> Decided {
    Decided {
        pool: look.seen.pool.clone(),
        node: Some(look.seen.id.clone()),
        action: action.to_owned(),
        reason,
        inputs: inputs(look),
        stops_not_before: stops,
        generation: record.claims,
    }
}

fn inputs(look: &Look) -> Value {
    let used = look.used.as_ref().ok();
    json!({
        "state": look.seen.state,
        "phase": look.phase(),
        "launched_at": look.seen.launched_at,
        "last_wake_at": look.wake,
        "last_use_at": used.and_then(|used| used.last_seen),
        "silence_proved_from": used.map(|used| used.last_possible),
        "open_now": used.map(|used| used.open_now),
        "unknown": (look.seen.state == NodeState::Running).then(|| look.used.as_ref().err()).flatten(),
        "first_reading_at": look.record.mark.as_ref().map(|mark| mark.at),
        "claim": look.record.claim.as_ref().map(|claim| json!({"kind": claim.kind, "at": claim.at, "answer": claim.answer})),
        "fault": look.record.fault.as_ref().map(|fault| json!({"code": fault.code, "since": fault.since, "retry_at": fault.retry_at})),
        "demand": look.demand,
    })
}

/// Facts to write, pool by pool.
pub(super) type Facts = BTreeMap<PoolName, Vec<(crate::domain::NodeId, Fact)>>;
