//! What a look proves of launches: one that is new, one that has ended, one that nobody saw.

use super::call::Call;
use super::outcome::{Effect, EffectKind};
use super::{Context, Outcome};
use crate::decide::Look;
use crate::decide::uptime::LocalDay;
use crate::domain::{
    Claim, ClaimKind, Instant, Launch, NodeId, NodeRecord, NodeState, Noise, PoolName, PoolRecord, PublicAddress,
    UNSEEN, WakeSource,
};
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// What a run looks at nodes for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Its state only.
    State,
    /// Its state, which is written down anew while it runs.
    Renewed,
    /// Its state and its use.
    Judged,
}

/// What is to be written down of one pool's launches.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Launches {
    ended: Vec<(NodeId, Launch)>,
    newest: Vec<(NodeId, Launch)>,
}

impl Launches {
    /// The write, where there is anything to write.
    pub(super) fn call(self, pool: &PoolName) -> Option<Call> {
        let Self { ended, newest } = self;
        (!newest.is_empty()).then(|| Call::NoteLaunches { pool: pool.clone(), ended, newest })
    }

    /// Takes in what this look proves, and puts it into the look's own record.
    pub(super) fn note(&mut self, look: &mut Look, sight: Sight, outcome: &mut Outcome) {
        let Some(newest) = newest(look, sight).map(|launch| with_readiness(launch, &look.record)) else { return };
        let id = look.seen.id.clone();
        let known = look.record.launch.clone();
        let is_new = known.as_ref().is_none_or(|known| known.launched_at != newest.launched_at);
        let left_open = known.filter(|known| is_new && known.ended_at.is_none());
        let unseen = |known| with_readiness(ended_unseen(&known, newest.launched_at), &look.record);
        self.ended.extend(left_open.map(|known| (id.clone(), unseen(known))));
        if newest.ended_at.is_some() {
            outcome.effects.push(effect(look, EffectKind::Ended, format!("ran since {}", clock(newest.launched_at))));
            self.ended.push((id.clone(), newest.clone()));
        } else if is_new {
            let kind = newest.instance_type.as_ref().map_or("of unknown type", |kind| kind.as_str());
            outcome.effects.push(effect(look, EffectKind::Launched, kind.to_owned()));
        }
        look.record.launch = Some(newest.clone());
        self.newest.push((id, newest));
    }

    /// A launch whose node is no longer listed: it ended when it was last seen, or a little later.
    pub(super) fn note_lost(&mut self, id: &NodeId, launch: &Launch, record: &NodeRecord, now: Instant) {
        let ended = with_readiness(ended_unseen(launch, now), record);
        self.ended.push((id.clone(), ended.clone()));
        self.newest.push((id.clone(), ended));
    }
}

fn ended_unseen(launch: &Launch, no_later_than: Instant) -> Launch {
    Launch { ended_at: Some(launch.unseen_end(no_later_than)), presumed: true, ..launch.clone() }
}

/// With the end of a launch goes when it was ready: the ledger's own fact is the next launch's soon.
fn with_readiness(launch: Launch, record: &NodeRecord) -> Launch {
    let of_launch = record.ready.as_ref().filter(|ready| ready.launched_at == Some(launch.launched_at));
    let ready_at = launch.ready_at.or(of_launch.filter(|_| launch.ended_at.is_some()).map(|ready| ready.at));
    Launch { ready_at, ..launch }
}

/// The newest launch as it is to be written, if that differs from what is written.
fn newest(look: &Look, sight: Sight) -> Option<Launch> {
    let launched_at = look.seen.launched_at?;
    let known = look.record.launch.as_ref();
    // An older look than the ledger's, or a node seen up after it was seen to end: the describe is stale.
    if known.is_some_and(|known| known.launched_at > launched_at) {
        return None;
    }
    let same = known.filter(|known| known.launched_at == launched_at);
    let up = matches!(look.seen.state, NodeState::Pending | NodeState::Running);
    // Nobody saw it end, and it is up: it never did.
    if let Some(known) = same.filter(|known| known.presumed && up) {
        return Some(Launch { ended_at: None, presumed: false, seen_at: look.now, ..known.clone() });
    }
    // Nobody saw it end, and EC2 tells when it did.
    let told_end = look.seen.transition_at.filter(|at| *at >= launched_at && *at <= look.now);
    if let Some((known, end)) = same.filter(|known| known.presumed).zip(told_end) {
        return Some(Launch { ended_at: Some(end), presumed: false, ..known.clone() });
    }
    if same.is_some_and(|known| known.ended_at.is_some()) {
        return None;
    }
    match same {
        Some(known) if up => {
            let used = if sight == Sight::Judged { used(look, launched_at, known.used) } else { known.used };
            let seen_at = if sight == Sight::Renewed { look.now } else { known.seen_at };
            // It is given while the node comes up, so the first look may not show it.
            let automatic_address = known.automatic_address || has_automatic_address(look);
            let newest = Launch { used, seen_at, automatic_address, ..known.clone() };
            (newest != *known).then_some(newest)
        }
        Some(known) => {
            let ended_at = known.end_as_shown(look.seen.state, look.seen.transition_at, look.now);
            Some(Launch { ended_at, ..known.clone() })
        }
        None => first_sight(look, launched_at, up),
    }
}

/// Use that was seen stays; silence stands as long as it is proved, and unknown is not silence.
fn used(look: &Look, launched_at: Instant, known: Option<bool>) -> Option<bool> {
    // The bucket that holds the launch may only hold the request that caused it: a later one is use.
    let seen = |last: Option<Instant>| last.is_some_and(|at| at - launched_at > TimeDelta::minutes(1));
    match look.used {
        _ if known == Some(true) => known,
        _ if look.record.last_leased(look.now) >= Some(launched_at) => Some(true),
        Ok(used) => Some(seen(used.last_seen)),
        Err(_) => None,
    }
}

/// A launch the ledger does not know. One that is over is only written where EC2 tells when: the end of a node that has been
/// off for weeks is not now.
fn first_sight(look: &Look, launched_at: Instant, up: bool) -> Option<Launch> {
    let told_end = look.seen.transition_at.filter(|at| *at >= launched_at && *at <= look.now);
    if !up && told_end.is_none() && look.now - launched_at > UNSEEN {
        return None;
    }
    let cause = cause(look, launched_at);
    let by_wake = cause.filter(|claim| claim.source.is_some());
    let launch = Launch {
        instance_type: look.seen.instance_type.clone(),
        seen_at: look.now,
        used: used(look, launched_at, None),
        source: cause.and_then(|claim| claim.source),
        wanted_at: by_wake.and_then(|claim| claim.wake),
        path: by_wake.and_then(|claim| claim.path.clone()),
        automatic_address: has_automatic_address(look),
        ..Launch::at(launched_at)
    };
    let ended_at = launch.end_as_shown(look.seen.state, look.seen.transition_at, look.now);
    Some(Launch { ended_at, ..launch })
}

fn has_automatic_address(look: &Look) -> bool {
    look.seen.public_address == Some(PublicAddress::Automatic)
}

/// Our own START caused it if it was claimed on the launch before and not long before this one.
fn cause(look: &Look, launched_at: Instant) -> Option<&Claim> {
    let soon = |at: Instant| launched_at <= at + UNSEEN && at <= launched_at + UNSEEN;
    let ours =
        |claim: &&Claim| claim.kind == ClaimKind::Start && claim.launched_at < Some(launched_at) && soon(claim.at);
    look.record.claim.as_ref().filter(ours)
}

/// The count of launches for nothing after one more: the newest launch if it is over, or the one before it, which nobody may
/// have seen end. It counts if it was ready, provably served nobody and is not counted yet; a start that fell back, or a node
/// that never became ready, says nothing of its source. `before`: what the ledger had when the run began.
pub(super) fn wasted(ctx: &Context, before: &NodeRecord, look: &Look) -> Option<Noise> {
    let newest = look.record.launch.as_ref();
    let replaced =
        before.launch.as_ref().filter(|launch| newest.is_some_and(|newest| newest.launched_at > launch.launched_at));
    let over = newest.filter(|launch| launch.ended_at.is_some());
    let was_ready = |launch: &Launch| {
        let facts = [before.ready.as_ref(), look.record.ready.as_ref()];
        facts.into_iter().flatten().any(|ready| ready.launched_at == Some(launch.launched_at))
    };
    let earlier = look.record.noise.as_ref();
    let is_new = |launch: &&Launch| earlier.is_none_or(|noise| noise.launched_at < launch.launched_at);
    let counts = |launch: &&Launch| launch.used == Some(false) && launch.source.is_some() && was_ready(launch);
    let launch = replaced.into_iter().chain(over).filter(is_new).find(counts)?;
    let day = LocalDay::of(ctx.policy.zone, ctx.now);
    let today = earlier.filter(|noise| noise.until == day.to);
    let (mut line_times, mut prewarms) =
        today.map_or((Vec::new(), 0), |noise| (noise.line_times.clone(), noise.prewarms));
    if launch.source.is_some_and(WakeSource::is_log) {
        line_times.push(ctx.now)
    } else {
        prewarms += 1
    }
    let lines = u32::try_from(line_times.len()).unwrap_or(u32::MAX);
    Some(Noise { lines, prewarms, at: ctx.now, line_times, launched_at: launch.launched_at, until: day.to })
}

/// Launches for nothing today, by log lines and by pre-warms, over all nodes of the pool.
pub(super) fn wasted_today(record: &PoolRecord, now: Instant) -> (u32, u32) {
    let today = record.nodes.values().filter_map(|node| node.noise.as_ref()).filter(|noise| now < noise.until);
    today.fold((0, 0), |(lines, prewarms), noise| (lines + noise.lines, prewarms + noise.prewarms))
}

/// The writes of all pools.
pub(super) fn calls(launches: BTreeMap<PoolName, Launches>) -> impl Iterator<Item = Call> {
    launches.into_iter().filter_map(|(pool, launches)| launches.call(&pool))
}

fn effect(look: &Look, event: EffectKind, reason: String) -> Effect {
    Effect { event, pool: Some(look.seen.pool.clone()), node: Some(look.seen.id.clone()), reason }
}

fn clock(at: Instant) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}
