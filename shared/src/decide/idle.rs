//! Is this node to be stopped?

use super::{Look, Reason};
use crate::domain::{ClaimAnswer, ClaimKind, FaultKind, Instant, Mark, NodeState, Phase, WakeSource};
use crate::observation::{Use, is_overdue};
use crate::policy::{BETWEEN_READINGS, DRAIN_QUIET, Policy, UNSETTLED};
use chrono::TimeDelta;
use serde::Serialize;
use std::cmp::max_by_key;

/// What the idle check does with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleAction {
    /// Nothing.
    Keep,
    /// Writes down the first idle reading.
    Mark,
    /// Claims and stops.
    Stop,
    /// Claims and stops by force a node that hangs in `stopping`.
    ForceStop,
    /// Makes a stopped node its pool's preferred instance type again.
    PutBack,
}

/// The answer for one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleDecision {
    /// What to do.
    pub action: IdleAction,
    /// Why.
    pub reason: Reason,
    /// The earliest instant at which a stop is possible if nothing more happens; absent where none is in sight.
    pub stops_not_before: Option<Instant>,
}

/// Decides for one node. Falls to keep: whatever is unknown, unproved or in doubt keeps the node.
pub fn decide(look: &Look, policy: &Policy) -> IdleDecision {
    let keep = |reason| IdleDecision { action: IdleAction::Keep, reason, stops_not_before: None };
    let act = |action, reason| IdleDecision { action, reason, stops_not_before: Some(look.now) };
    let phase = look.phase();
    if phase == Phase::Gone {
        return keep(Reason::Terminated);
    }
    if phase == Phase::Stopped && is_of_another_type(look, policy) {
        return IdleDecision { action: IdleAction::PutBack, reason: Reason::PutBack, stops_not_before: None };
    }
    if look.seen.state == NodeState::Stopped {
        return keep(Reason::Asleep);
    }
    if look.seen.state == NodeState::Pending {
        return keep(Reason::StillPending);
    }
    if look.seen.state == NodeState::Stopping && phase == Phase::Stopping && hangs(look, policy) {
        return act(IdleAction::ForceStop, Reason::HangsInStopping);
    }
    if phase == Phase::Stopping && stop_had_no_effect(look, policy) {
        return act(IdleAction::Stop, Reason::StopHadNoEffect);
    }
    if look.seen.state == NodeState::Stopping || phase == Phase::Stopping {
        return keep(Reason::GoingDown);
    }
    decide_running(look, policy)
}

fn decide_running(look: &Look, policy: &Policy) -> IdleDecision {
    let keep = |reason, at| IdleDecision { action: IdleAction::Keep, reason, stops_not_before: at };
    // Calls and people first: what they say needs no signal.
    let lease_ends = look.record.live_leases(look.now).map(|(_, lease)| lease.until).max();
    if let Some(ends) = lease_ends {
        return keep(Reason::Leased, Some(ends + policy.idle));
    }
    if look.used.is_ok_and(|used| used.open_now) {
        return keep(Reason::OpenCall, None);
    }
    if look.is_held() {
        let of_ledger = look.record.hold.as_ref().map(|hold| hold.until);
        return keep(Reason::Held, look.tag_hold.until().max(of_ledger));
    }
    if look.warm {
        return keep(Reason::WarmWindow, None);
    }
    // The signals of a node that is still coming up may well be unknown, and nobody needs to be told.
    if let Some(launched) = look.seen.launched_at.filter(|at| look.now - *at < policy.grace) {
        return keep(Reason::BootGrace, Some(launched + policy.idle.min(policy.prewarm)));
    }
    let Ok(used) = look.used else {
        return keep(Reason::SignalsUnknown, None);
    };
    let claims = Claims::of(look, &used, policy);
    let not_before = claims.until.max(earliest_by_marks(look));
    if look.drained_since.is_some() {
        return drain(look, &used, policy);
    }
    if look.is_stuck(policy) {
        return stuck(look);
    }
    if look.reserve {
        return keep(Reason::Reserve, None);
    }
    let left = claims.until - look.now;
    if left > policy.tick {
        return keep(claims.reason, Some(not_before));
    }
    if stop_fault_waits(look) {
        return keep(Reason::StopRefused, look.record.fault.as_ref().map(|fault| fault.retry_at));
    }
    let Some(mark) = look.record.mark.as_ref().filter(|mark| is_valid(mark, look, claims.newest)) else {
        return IdleDecision {
            action: IdleAction::Mark,
            reason: Reason::FirstReading,
            stops_not_before: Some(not_before),
        };
    };
    if left > TimeDelta::zero() {
        return keep(claims.reason, Some(not_before));
    }
    if look.now - mark.at < BETWEEN_READINGS {
        return keep(Reason::ReadingsTooClose, Some(mark.at + BETWEEN_READINGS));
    }
    IdleDecision { action: IdleAction::Stop, reason: Reason::Idle, stops_not_before: Some(look.now) }
}

/// Nobody can be using a node that never became ready, whoever keeps asking for it; two readings all the same.
fn stuck(look: &Look) -> IdleDecision {
    let launched = look.seen.launched_at.unwrap_or(look.now);
    let made = look.record.mark.as_ref().filter(|mark| is_valid(mark, look, launched));
    let action = match made {
        _ if stop_fault_waits(look) => IdleAction::Keep,
        None => IdleAction::Mark,
        Some(mark) if look.now - mark.at < BETWEEN_READINGS => IdleAction::Keep,
        Some(_) => IdleAction::Stop,
    };
    IdleDecision { action, reason: Reason::NeverReady, stops_not_before: Some(earliest_by_marks(look)) }
}

/// The pool's budget is spent. Where calls can be seen the node goes as soon as none has been open for a while; where they
/// cannot, a request within the idle time may be a call. Wakes no longer speak for it.
fn drain(look: &Look, used: &Use, policy: &Policy) -> IdleDecision {
    let quiet = if look.observes_calls { UNSETTLED + DRAIN_QUIET } else { policy.idle };
    // A call whose lease has just ended was a call.
    let last = look.record.last_leased(look.now).map_or(used.last_possible, |at| at.max(used.last_possible));
    let ready_at = last + quiet;
    let (keep, mark) = ((IdleAction::Keep, Reason::Draining), (IdleAction::Mark, Reason::Draining));
    let made = look.record.mark.as_ref().filter(|mark| is_valid(mark, look, last));
    let (action, reason) = match made {
        _ if look.now < ready_at => keep,
        _ if stop_fault_waits(look) => (IdleAction::Keep, Reason::StopRefused),
        None => mark,
        Some(mark) if look.now - mark.at < BETWEEN_READINGS => keep,
        Some(_) => (IdleAction::Stop, Reason::Drain),
    };
    IdleDecision { action, reason, stops_not_before: Some(ready_at.max(earliest_by_marks(look))) }
}

/// Off, of a type of the pool's list that is not the preferred one, and nobody waits for it. A type that is not on the list
/// is somebody's choice and left alone.
fn is_of_another_type(look: &Look, policy: &Policy) -> bool {
    let position = look.types.iter().position(|kind| Some(kind) == look.seen.instance_type.as_ref());
    let wanted = look.wake.is_some_and(|wake| look.now - wake < policy.wish);
    let in_flight = look.record.claim.as_ref().is_some_and(|claim| look.now < claim.open_until);
    position.is_some_and(|position| position > 0) && !wanted && !in_flight
}

/// What speaks for a node: until when, why, and the newest instant of all that does.
struct Claims {
    until: Instant,
    reason: Reason,
    newest: Instant,
}

impl Claims {
    /// Absent facts count as the launch, never as "never" (field case 23); nothing before the launch counts as idle time
    /// (field case 18). A launch that a pre-warm caused, and its readiness, speak for no longer than the pre-warm does.
    fn of(look: &Look, used: &Use, policy: &Policy) -> Self {
        let launched = look.seen.launched_at.unwrap_or(look.now);
        let ready = look.record.ready.as_ref().filter(|ready| ready.launched_at == look.seen.launched_at);
        let by =
            |source: Option<WakeSource>| if source == Some(WakeSource::Prewarm) { policy.prewarm } else { policy.idle };
        let launch = look.record.launch.as_ref().filter(|launch| Some(launch.launched_at) == look.seen.launched_at);
        let started = by(launch.and_then(|launch| launch.source));
        // Silence is proved from the launch on at best, and that is no use.
        let possible = Some(used.last_possible).filter(|at| *at > launched);
        let others = [
            (possible, policy.idle, Reason::RecentUse),
            (ready.map(|ready| ready.at), started, Reason::RecentStart),
            (look.wake, by(look.wake_source), Reason::RecentWake),
            (look.record.last_leased(look.now), policy.idle, Reason::RecentLease),
        ];
        let others = others.into_iter().filter_map(|(at, stays, reason)| at.map(|at| (at, at + stays, reason)));
        let newest = others.clone().map(|(at, ..)| at).fold(launched, Instant::max);
        let launch = (launched, launched + started, Reason::RecentStart);
        let (_, until, reason) = others.fold(launch, |one, other| max_by_key(one, other, |(_, until, _)| *until));
        Self { until, reason, newest }
    }
}

fn is_valid(mark: &Mark, look: &Look, last_use: Instant) -> bool {
    mark.launched_at == look.seen.launched_at && mark.at >= last_use && mark.at <= look.now
}

fn earliest_by_marks(look: &Look) -> Instant {
    look.record.mark.as_ref().map_or(look.now + BETWEEN_READINGS, |mark| mark.at + BETWEEN_READINGS)
}

fn stop_fault_waits(look: &Look) -> bool {
    look.record.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Stop && look.now < fault.retry_at)
}

/// Stopping for too long, by EC2's own time of the transition or by our claim. With neither there is nothing to measure
/// from, and the node is left to EC2. A look that is older than a launch the ledger knows says nothing: forced, the node
/// that runs since would be cut.
fn hangs(look: &Look, policy: &Policy) -> bool {
    let launches = [look.record.launch.as_ref().map(|launch| launch.launched_at), ready_launch(look)];
    if launches.into_iter().any(|known| known > look.seen.launched_at) {
        return false;
    }
    let claim = look
        .record
        .claim
        .as_ref()
        .filter(|claim| claim.kind == ClaimKind::Stop && claim.launched_at == look.seen.launched_at);
    // A forced STOP gets as long again before it is repeated.
    let since = look.seen.transition_at.max(claim.map(|claim| claim.at));
    since.is_some_and(|at| look.now - at >= policy.force_after)
}

fn ready_launch(look: &Look) -> Option<Instant> {
    look.record.ready.as_ref().and_then(|ready| ready.launched_at)
}

/// A claimed STOP that shows no effect, and nothing speaks for the node: neither a wake nor use for the idle time, whenever
/// it was counted. Where a wake does, the wake rule sends a START instead, whose answer tells for certain, unless another
/// node has met the wake: then this one is stopped when the wake has aged.
fn stop_had_no_effect(look: &Look, policy: &Policy) -> bool {
    let Some(claim) = look.record.claim.as_ref() else { return false };
    // A live lease speaks by its claim.
    let spoken_for = look.is_held() || look.warm;
    let is_quiet = |used: Use| !used.open_now && Claims::of(look, &used, policy).until <= look.now;
    let still_idle = !spoken_for && look.used.is_ok_and(is_quiet);
    look.seen.state == NodeState::Running
        && claim.answer != Some(ClaimAnswer::Refused)
        && is_overdue(&look.record, look.now)
        && still_idle
}
