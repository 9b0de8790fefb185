//! Whether nodes are ready, by what their pools are configured to believe, and what a first readiness teaches.

use super::call::{Activity, Answer, Call, Fact, MetricRef, take_activity, take_beats, take_readiness};
use super::evidence::settle_fault;
use super::look::without_use;
use super::outcome::{ColdStart, Effect, EffectKind};
use super::{Context, Outcome};
use crate::decide::{Look, Readiness};
use crate::domain::{Beat, Instant, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, ReadyFact};
use crate::error::CallError;
use crate::observation::{SignalKind, fresh};
use crate::policy::ReadySource;
use chrono::{DurationRound, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};

/// A count of healthy hosts that is older says nothing of now; load balancers write one a minute, a minute late.
const FRESH_COUNT: TimeDelta = TimeDelta::minutes(4);

/// The calls that were asked for, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Asked {
    checks: bool,
    beats: bool,
    hosts: bool,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Read {
    pub(super) checks: Option<BTreeSet<NodeId>>,
    pub(super) beats: Option<BTreeMap<NodeId, Beat>>,
    pub(super) hosts: Option<Activity>,
}

fn source(ctx: &Context, pool: &PoolName) -> ReadySource {
    ctx.pools.get(pool).map_or(ReadySource::Checks, |pool| pool.rules.ready)
}

/// The running nodes whose readiness is read from this kind of source.
pub(super) fn nodes_by(ctx: &Context, nodes: &[NodeSeen], is_it: fn(ReadySource) -> bool) -> BTreeSet<NodeId> {
    let running = nodes.iter().filter(|seen| seen.state == NodeState::Running && is_it(source(ctx, &seen.pool)));
    running.map(|seen| seen.id.clone()).collect()
}

pub(super) fn by_checks(source: ReadySource) -> bool {
    source == ReadySource::Checks
}

pub(super) fn by_beat(source: ReadySource) -> bool {
    matches!(source, ReadySource::Beat(_))
}

/// The calls that tell a caller's run which of these nodes are ready; none where none of them runs.
pub(super) fn calls(ctx: &Context, nodes: &[NodeSeen]) -> (Asked, Vec<Call>) {
    let (checks, beats) = (nodes_by(ctx, nodes, by_checks), nodes_by(ctx, nodes, by_beat));
    let hosts = host_metrics(ctx, nodes);
    let asked = Asked { checks: !checks.is_empty(), beats: !beats.is_empty(), hosts: !hosts.is_empty() };
    let mut calls = Vec::new();
    if asked.checks {
        calls.push(Call::ReadReadiness { nodes: checks });
    }
    if asked.beats {
        calls.push(Call::ReadBeats { nodes: beats });
    }
    if asked.hosts {
        let (from, to) = (whole_minute(ctx.now - FRESH_COUNT), whole_minute(ctx.now) + TimeDelta::minutes(1));
        calls.push(Call::ReadActivity { metrics: hosts, from, to });
    }
    (asked, calls)
}

fn whole_minute(at: Instant) -> Instant {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)
}

/// Where the load balancer that tells of this node writes its count.
fn host_metric(ctx: &Context, seen: &NodeSeen) -> Option<MetricRef> {
    Some(ctx.pools.get(&seen.pool)?.healthy_hosts.as_ref()?.of(&seen.id))
}

fn host_metrics(ctx: &Context, nodes: &[NodeSeen]) -> BTreeMap<MetricRef, SignalKind> {
    let running = nodes.iter().filter(|seen| seen.state == NodeState::Running);
    running.filter_map(|seen| Some((host_metric(ctx, seen)?, SignalKind::Open))).collect()
}

/// Takes the answers in the order of the calls; what failed stays Unknown, and is listed.
pub(super) fn read(asked: &Asked, answers: &mut impl Iterator<Item = Answer>, failed: &mut Vec<CallError>) -> Read {
    let mut keep = |error| failed.push(error);
    Read {
        checks: asked.checks.then(|| take_readiness(answers.next()).map_err(&mut keep).ok()).flatten(),
        beats: asked.beats.then(|| take_beats(answers.next()).map_err(&mut keep).ok()).flatten(),
        hosts: asked.hosts.then(|| take_activity(answers.next()).map_err(&mut keep).ok()).flatten(),
    }
}

/// What is known of one node now. `peers` are the nodes of its pool.
pub(super) fn of(ctx: &Context, seen: &NodeSeen, peers: &[NodeSeen], record: &PoolRecord, read: &Read) -> Readiness {
    if seen.state != NodeState::Running {
        return Readiness::Unknown;
    }
    match source(ctx, &seen.pool) {
        ReadySource::Checks => read.checks.as_ref().map_or(Readiness::Unknown, |ok| {
            if ok.contains(&seen.id) { Readiness::Ready(None) } else { Readiness::NotReady }
        }),
        // No beat, or an old one: the node does not say that it is ready.
        ReadySource::Beat(row) => read.beats.as_ref().map_or(Readiness::Unknown, |beats| {
            let beat = beats.get(&seen.id).filter(|beat| fresh(beat, seen.launched_at, ctx.now));
            match beat.filter(|beat| beat.ready && beat.row >= row) {
                Some(beat) => Readiness::Ready(beat.ready_since),
                None => Readiness::NotReady,
            }
        }),
        ReadySource::HealthyHosts => healthy(ctx, seen, peers, record, read),
    }
}

/// The load balancer does not say which hosts are healthy: all that it counts where it counts as many as run; else those
/// that were, as long as it counts as many as these. Another one may be among those that it counts or not.
fn healthy(ctx: &Context, seen: &NodeSeen, peers: &[NodeSeen], record: &PoolRecord, read: &Read) -> Readiness {
    let metric = host_metric(ctx, seen);
    let series = metric.as_ref().and_then(|metric| read.hosts.as_ref()?.get(metric)?.as_ref().ok());
    // The newest first. The minute that holds the launch may have counted another node.
    let mut points = series.map(|series| series.points.clone()).unwrap_or_default();
    points.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
    let Some((newest, healthy)) = points.first().copied().filter(|(at, _)| *at >= ctx.now - FRESH_COUNT) else {
        return Readiness::Unknown;
    };
    let is_of_this_launch = |at: Instant| seen.launched_at.is_none_or(|launched| at >= launched);
    // Where each node has a target group of its own, each is counted alone.
    let of_pool = peers.iter().filter(|peer| peer.pool == seen.pool && peer.state == NodeState::Running);
    let running = of_pool.filter(|peer| host_metric(ctx, peer) == metric);
    let known = |peer: &&NodeSeen| record.node(&peer.id).is_ready(peer.launched_at);
    let (all, before) = (running.clone().count(), running.filter(known).count());
    let counts = |healthy: f64, nodes: usize| healthy >= f64::from(u32::try_from(nodes).unwrap_or(u32::MAX));
    let is_known = record.node(&seen.id).is_ready(seen.launched_at);
    if !is_of_this_launch(newest) || !(counts(healthy, all) || (is_known && counts(healthy, before))) {
        let may_be_it =
            is_of_this_launch(newest) && healthy > 0.0 && !record.node(&seen.id).was_ready(seen.launched_at);
        return if may_be_it { Readiness::Unknown } else { Readiness::NotReady };
    }
    // A tick may look minutes late: a boot ended with the first of the minutes that count as many.
    let row = points.iter().take_while(|(at, healthy)| is_of_this_launch(*at) && counts(*healthy, all));
    Readiness::Ready(Some(row.last().map_or(newest, |(at, _)| *at)))
}

/// The looks of a pool for who answers a caller: what was just read counts. What such a look finds out is told and written
/// down elsewhere.
pub(super) fn looks(ctx: &Context, nodes: &[NodeSeen], pool: &PoolName, record: &PoolRecord, read: &Read) -> Vec<Look> {
    let look = |seen: &NodeSeen| {
        let mut look = fresh_look(ctx, seen, nodes, record, read);
        note(ctx, &mut look, record, false, &mut Outcome::default());
        settle_fault(&mut look);
        look
    };
    nodes.iter().filter(|seen| seen.pool == *pool).map(look).collect()
}

/// What was just read of a pool's nodes and is to be written down; `sharp` as for [`note`].
pub(super) fn facts(
    ctx: &Context,
    nodes: &[NodeSeen],
    pool: &PoolName,
    record: &PoolRecord,
    read: &Read,
    sharp: bool,
    outcome: &mut Outcome,
) -> Vec<(NodeId, Fact)> {
    let mut facts = Vec::new();
    for seen in nodes.iter().filter(|seen| seen.pool == *pool) {
        let mut look = fresh_look(ctx, seen, nodes, record, read);
        let noted = note(ctx, &mut look, record, sharp, outcome);
        facts.extend(noted.into_iter().map(|fact| (seen.id.clone(), fact)));
    }
    facts
}

fn fresh_look(ctx: &Context, seen: &NodeSeen, peers: &[NodeSeen], record: &PoolRecord, read: &Read) -> Look {
    Look { readiness: of(ctx, seen, peers, record, read), ..without_use(ctx, seen.clone(), record) }
}

/// Takes what was read into the look: a new readiness, a lost one, one that has come back. Gives the facts that changed.
/// `sharp`: the first sight of readiness tells when it came, to within seconds.
pub(super) fn note(ctx: &Context, look: &mut Look, pool: &PoolRecord, sharp: bool, outcome: &mut Outcome) -> Vec<Fact> {
    let launched_at = look.seen.launched_at;
    let known = look.record.ready.clone().filter(|ready| ready.launched_at == launched_at);
    match (look.readiness, known) {
        (Readiness::Ready(since), None) => {
            // A clock that is behind the launch does not tell when.
            let since = since.filter(|since| launched_at.is_none_or(|launched| *since >= launched));
            let at = since.unwrap_or(look.now);
            let fact = ReadyFact { at: at.min(look.now), launched_at, lost_at: None };
            look.record.ready = Some(fact.clone());
            let learnt = learn(ctx, look, pool, fact.at, since.is_some() || sharp, outcome);
            std::iter::once(Fact::Ready(Some(fact))).chain(learnt).collect()
        }
        (Readiness::Ready(_), Some(fact)) if fact.lost_at.is_some() => {
            outcome.effects.push(effect(look, EffectKind::Ready, "ready again".to_owned()));
            set(look, ReadyFact { lost_at: None, ..fact })
        }
        (Readiness::NotReady, Some(fact)) if fact.lost_at.is_none() => {
            outcome.effects.push(effect(look, EffectKind::Unready, "not ready any more".to_owned()));
            set(look, ReadyFact { lost_at: Some(look.now), ..fact })
        }
        (Readiness::Ready(_) | Readiness::NotReady | Readiness::Unknown, _) => Vec::new(),
    }
}

fn set(look: &mut Look, fact: ReadyFact) -> Vec<Fact> {
    look.record.ready = Some(fact.clone());
    vec![Fact::Ready(Some(fact))]
}

/// A boot whose end is known teaches what the next one takes.
fn learn(
    ctx: &Context,
    look: &mut Look,
    pool: &PoolRecord,
    ready_at: Instant,
    sharp: bool,
    outcome: &mut Outcome,
) -> Option<Fact> {
    let took = ready_at - look.seen.launched_at?;
    let expected = pool.boot_time(Some(&look.seen.id), ctx.policy.boot).median;
    let reason = format!("{} s after its start ({} s expected)", took.num_seconds(), expected.num_seconds());
    outcome.effects.push(effect(look, EffectKind::Ready, reason));
    if !sharp {
        return None;
    }
    outcome.cold_starts.push(ColdStart {
        pool: look.seen.pool.clone(),
        node: look.seen.id.clone(),
        seconds: took.num_seconds().max(0),
    });
    let boots = look.record.boots.clone().unwrap_or_default().with(took);
    look.record.boots = Some(boots.clone());
    Some(Fact::Boots(Some(boots)))
}

fn effect(look: &Look, event: EffectKind, reason: String) -> Effect {
    Effect { event, pool: Some(look.seen.pool.clone()), node: Some(look.seen.id.clone()), reason }
}
