//! Joins the answers of one look (describe, ledger, metrics) to one [`Look`] a node.

use super::call::{Activity, Fact, LogActivity, LogSource, MetricRef, Signal, fact_name};
use super::outcome::Decided;
use super::{Context, Outcome};
use crate::decide::{Look, Readiness, Reason};
use crate::domain::{Beat, Instant, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, Wake, WakeSource, read_tags};
use crate::error::CallError;
use crate::observation::{SignalKind, SignalReading, Unread, UseReading, beat_signals, read_use};
use crate::run::Call;
use chrono::{DurationRound, TimeDelta};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The look of a node whose use was not asked for: it is not running, or the question is only whether to start it.
pub(super) fn without_use(ctx: &Context, seen: NodeSeen, record: &PoolRecord) -> Look {
    let pool = ctx.pools.get(&seen.pool);
    let wake = record.last_wake(&seen.id);
    let cause = wake.map(|newest| cause(ctx, newest, record.wakes(&seen.id)));
    Look {
        record: record.node(&seen.id),
        demand: record.demand,
        wake: wake.map(|wake| wake.at),
        wake_source: cause.map(|wake| wake.source),
        wake_path: cause.and_then(|wake| wake.path.clone()),
        used: Err(Unread::Failed),
        now: ctx.now,
        drained_since: record.closed_gate(ctx.now).filter(|gate| gate.drain).map(|gate| gate.since),
        observes_calls: pool.is_some_and(|pool| {
            let gauge = pool.signals.iter().any(|signal| signal.kind == SignalKind::Open);
            gauge || pool.rules.beat || pool.rules.leased
        }),
        types: pool.map(|pool| pool.types.clone()).unwrap_or_default(),
        readiness: Readiness::Unknown,
        tag_hold: read_tags(
            seen.tags.iter().map(|(key, value)| (key.as_str(), value.as_str())),
            ctx.policy.zone,
            ctx.now,
        ),
        warm: false,
        reserve: false,
        seen,
    }
}

/// A pre-warm takes nothing from what woke the node for longer a little earlier.
fn cause<'a>(ctx: &Context, newest: &'a Wake, wakes: impl Iterator<Item = &'a Wake>) -> &'a Wake {
    let ends = newest.at + ctx.policy.prewarm;
    let mut longer = wakes.filter(|wake| wake.source != WakeSource::Prewarm && wake.at + ctx.policy.idle > ends);
    longer.next().filter(|_| newest.source == WakeSource::Prewarm).unwrap_or(newest)
}

/// The call that reads every signal of the running nodes; none where no running node has a signal.
pub(super) fn activity_call(ctx: &Context, nodes: &[NodeSeen]) -> Option<Call> {
    let mut metrics = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.state == NodeState::Running) {
        let Some(pool) = ctx.pools.get(&node.pool) else { continue };
        // Before the proofs of life, of which one may be the same metric: there only the presence of points counts.
        metrics.extend(pool.healthy_hosts.iter().map(|healthy| (healthy.of(&node.id), SignalKind::Open)));
        for signal in &pool.signals {
            metrics.insert(signal.metric.of(&node.id), signal.kind);
        }
        let of_signals = pool.signals.iter().filter_map(|signal| signal.alive.as_ref());
        for alive in of_signals.chain(pool.logs.iter().filter_map(|log| log.alive.as_ref())) {
            metrics.entry(alive.of(&node.id)).or_insert(SignalKind::Requests);
        }
    }
    if metrics.is_empty() {
        return None;
    }
    let (from, to) = look_back(ctx);
    Some(Call::ReadActivity { metrics, from, to })
}

/// The call that reads every log of the running nodes' pools; none where no running node's pool has one.
pub(super) fn logs_call(ctx: &Context, nodes: &[NodeSeen]) -> Option<Call> {
    let running = |pool: &PoolName| nodes.iter().any(|node| node.pool == *pool && node.state == NodeState::Running);
    let awake = ctx.pools.iter().filter(|(name, _)| running(name));
    let sources: Vec<LogSource> = awake.flat_map(|(_, pool)| pool.logs.clone()).collect();
    let (from, to) = look_back(ctx);
    (!sources.is_empty()).then_some(Call::ReadLogs { sources, from, to })
}

/// Whole minutes, as buckets are; the minute that has begun is in it.
fn look_back(ctx: &Context) -> (Instant, Instant) {
    (whole_minute(ctx.now - ctx.policy.look_back()), whole_minute(ctx.now) + TimeDelta::minutes(1))
}

fn whole_minute(at: Instant) -> Instant {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)
}

/// What was read of use and readiness in one look.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Signals {
    pub(super) activity: Result<Activity, CallError>,
    pub(super) logs: Result<LogActivity, CallError>,
    pub(super) beats: Result<BTreeMap<NodeId, Beat>, CallError>,
}

/// The use of a node since its launch, from what was read.
pub(super) fn used(ctx: &Context, seen: &NodeSeen, record: &PoolRecord, read: &Signals) -> UseReading {
    let Signals { activity, logs, beats } = read;
    // A claim that cannot be read might be a STOP under way or a wake's START, a lease a call in progress, a hold a
    // person's word: nothing is concluded from the rest.
    if ["claim", "leases", "leased", "hold"].iter().any(|kind| record.unread.contains(&fact_name(kind, &seen.id))) {
        return Err(Unread::Failed);
    }
    let (Ok(activity), Ok(logs)) = (activity, logs) else { return Err(Unread::Failed) };
    let Some(pool) = ctx.pools.get(&seen.pool) else { return Err(Unread::NoSignals) };
    // Beats that cannot be read hold up only the nodes whose use they show.
    let none = BTreeMap::new();
    let beats = match beats {
        Ok(beats) => beats,
        Err(_) if pool.rules.beat => return Err(Unread::Failed),
        Err(_) => &none,
    };
    let of_metrics = pool.signals.iter().map(|signal| reading(signal, seen, activity));
    let of_logs = pool.logs.iter().map(|log| log_reading(log, seen, activity, logs));
    let of_beat = pool.rules.beat.then(|| beat_signals(beats.get(&seen.id), seen, ctx.now)).into_iter().flatten();
    let readings: Vec<_> = of_metrics.chain(of_logs).chain(of_beat).collect();
    read_use(&readings, seen.launched_at.unwrap_or(ctx.now), ctx.now, ctx.policy.idle)
}

fn reading(signal: &Signal, seen: &NodeSeen, activity: &Activity) -> SignalReading {
    let read = |metric: &MetricRef| activity.get(&metric.of(&seen.id)).cloned().unwrap_or(Err(Unread::Failed));
    SignalReading { kind: signal.kind, own: read(&signal.metric), alive: signal.alive.as_ref().map(read) }
}

fn log_reading(log: &LogSource, seen: &NodeSeen, activity: &Activity, logs: &LogActivity) -> SignalReading {
    let alive = |metric: &MetricRef| activity.get(&metric.of(&seen.id)).cloned().unwrap_or(Err(Unread::Failed));
    let own = logs.get(&log.key()).cloned().unwrap_or(Err(Unread::Failed));
    SignalReading { kind: SignalKind::Requests, own, alive: log.alive.as_ref().map(alive) }
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

/// The line of a node, or of a whole pool, of which nothing can be decided for this failure.
pub(super) fn cannot_look(pool: &PoolName, node: Option<&NodeId>, error: &CallError) -> Decided {
    Decided {
        pool: pool.clone(),
        node: node.cloned(),
        action: "nothing".to_owned(),
        reason: Reason::CannotLook,
        inputs: json!({"unknown": Unread::Failed, "failed": error.act, "code": error.code}),
        stops_not_before: None,
        generation: 0,
    }
}

/// Such a line for every configured pool that has none: each run says of each pool what it decided, or why it could not.
pub(super) fn unseen_pools(ctx: &Context, outcome: &mut Outcome, error: &CallError) {
    for pool in ctx.pools.keys() {
        if outcome.decided.iter().all(|line| line.pool != *pool) {
            outcome.decided.push(cannot_look(pool, None, error));
        }
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
        "calls": look.record.calls(look.now),
        "ready": look.record.is_ready(look.seen.launched_at),
        "held_until": look.record.hold.as_ref().map(|hold| hold.until).max(look.tag_hold.until()),
        "first_reading_at": look.record.mark.as_ref().map(|mark| mark.at),
        "claim": look.record.claim.as_ref().map(|claim| json!({"kind": claim.kind, "at": claim.at, "answer": claim.answer})),
        "fault": look.record.fault.as_ref().map(|fault| json!({"code": fault.code, "since": fault.since, "retry_at": fault.retry_at})),
        "demand": look.demand,
    })
}

/// Facts to write, pool by pool.
pub(super) type Facts = BTreeMap<PoolName, Vec<(NodeId, Fact)>>;
