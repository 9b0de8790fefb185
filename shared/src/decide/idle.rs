//! Is this node to be stopped?

use super::{Look, Reason};
use crate::domain::{ClaimAnswer, ClaimKind, FaultKind, Instant, Mark, NodeState, Phase};
use crate::observation::{Use, is_overdue};
use crate::policy::{BETWEEN_READINGS, DRAIN_QUIET, Policy, UNSETTLED};
use serde::Serialize;

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
    if look.seen.state == NodeState::Stopping && hangs(look, policy) {
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
    // Young first: the signals of a node that is still coming up may well be unknown, and nobody needs to be told.
    if let Some(launched) = look.seen.launched_at.filter(|at| look.now - *at < policy.grace) {
        return keep(Reason::BootGrace, Some(launched + policy.idle));
    }
    let Ok(used) = look.used else {
        return keep(Reason::SignalsUnknown, None);
    };
    let (last, newest) = last_use(look, &used);
    let not_before = (last + policy.idle).max(earliest_by_marks(look));
    if used.open_now {
        return keep(Reason::OpenCall, None);
    }
    if look.drained_since.is_some() {
        return drain(look, &used, policy);
    }
    let age = look.now - last;
    if age < policy.first_reading_at() {
        return keep(newest, Some(not_before));
    }
    if stop_fault_waits(look) {
        return keep(Reason::StopRefused, look.record.fault.as_ref().map(|fault| fault.retry_at));
    }
    let Some(mark) = look.record.mark.as_ref().filter(|mark| is_valid(mark, look, last)) else {
        return IdleDecision {
            action: IdleAction::Mark,
            reason: Reason::FirstReading,
            stops_not_before: Some(not_before),
        };
    };
    if age < policy.idle {
        return keep(newest, Some(not_before));
    }
    if look.now - mark.at < BETWEEN_READINGS {
        return keep(Reason::ReadingsTooClose, Some(mark.at + BETWEEN_READINGS));
    }
    IdleDecision { action: IdleAction::Stop, reason: Reason::Idle, stops_not_before: Some(look.now) }
}

/// The pool's budget is spent. Where calls can be seen the node goes as soon as none has been open for a while; where they
/// cannot, a request within the idle time may be a call. Wakes no longer speak for it.
fn drain(look: &Look, used: &Use, policy: &Policy) -> IdleDecision {
    let quiet = if look.observes_calls { UNSETTLED + DRAIN_QUIET } else { policy.idle };
    let ready_at = used.last_possible + quiet;
    let (keep, mark) = ((IdleAction::Keep, Reason::Draining), (IdleAction::Mark, Reason::Draining));
    let made = look.record.mark.as_ref().filter(|mark| is_valid(mark, look, used.last_possible));
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

/// The newest instant at which somebody may have wanted or used the node, and what it was. Absent facts count as the
/// launch, never as "never" (field case 23); nothing before the launch counts as idle time (field case 18).
fn last_use(look: &Look, used: &Use) -> (Instant, Reason) {
    let launched = look.seen.launched_at.unwrap_or(look.now);
    let ready = look.record.ready.as_ref().filter(|ready| ready.launched_at == look.seen.launched_at);
    // Of equal instants the last is named: silence is proved from the launch on at best, and that is no use.
    let candidates = [
        (Some(used.last_possible), Reason::RecentUse),
        (Some(launched), Reason::RecentStart),
        (ready.map(|ready| ready.at), Reason::RecentStart),
        (look.wake, Reason::RecentWake),
    ];
    candidates
        .into_iter()
        .filter_map(|(at, reason)| at.map(|at| (at, reason)))
        .max_by_key(|(at, _)| *at)
        .unwrap_or((launched, Reason::RecentStart))
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
/// from, and the node is left to EC2.
fn hangs(look: &Look, policy: &Policy) -> bool {
    let claim = look
        .record
        .claim
        .as_ref()
        .filter(|claim| claim.kind == ClaimKind::Stop && claim.launched_at == look.seen.launched_at);
    // A forced STOP gets as long again before it is repeated.
    let since = look.seen.transition_at.max(claim.map(|claim| claim.at));
    since.is_some_and(|at| look.now - at >= policy.force_after)
}

/// A claimed STOP that shows no effect, and nothing speaks for the node: neither a wake nor use for the idle time, whenever
/// it was counted. Where a wake does, the wake rule sends a START instead, whose answer tells for certain, unless another
/// node has met the wake: then this one is stopped when the wake has aged.
fn stop_had_no_effect(look: &Look, policy: &Policy) -> bool {
    let Some(claim) = look.record.claim.as_ref() else { return false };
    let still_idle = look.used.is_ok_and(|used| !used.open_now && look.now - last_use(look, &used).0 >= policy.idle);
    look.seen.state == NodeState::Running
        && claim.answer != Some(ClaimAnswer::Refused)
        && is_overdue(&look.record, look.now)
        && still_idle
}
