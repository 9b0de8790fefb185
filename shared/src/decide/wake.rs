//! Is a node of this pool to be started, and what is the caller told?

use super::{Look, Reason};
use crate::domain::{
    Claim, ClaimAnswer, ClaimKind, Fault, FaultKind, InstanceType, Instant, NodeId, NodeState, Phase, PoolRecord, Wake,
    WarmWish,
};
use crate::error::ErrorClass;
use crate::observation::is_overdue;
use crate::policy::{Policy, PoolRules};
use chrono::TimeDelta;
use serde::Serialize;

/// What is done for the wish.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeAction {
    /// Nothing.
    Nothing,
    /// Claims and starts this node.
    Start(NodeId),
    /// Claims this node, makes it another instance type and starts it.
    StartAs(NodeId, InstanceType),
}

/// The answer for one pool, or for one named node of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeDecision {
    /// What to do.
    pub action: WakeAction,
    /// Why.
    pub reason: Reason,
    /// The node the reason speaks of.
    pub node: Option<NodeId>,
}

/// Decides for the nodes that may serve one wish. Falls to start: only what is known keeps it from starting a wanted node.
pub fn decide(
    looks: &[Look],
    record: &PoolRecord,
    target: Option<&NodeId>,
    policy: &Policy,
    rules: &PoolRules,
    now: Instant,
) -> WakeDecision {
    let looks: Vec<&Look> = looks.iter().filter(|look| target.is_none_or(|id| *id == look.seen.id)).collect();
    let nothing = |reason, look: Option<&&Look>| WakeDecision {
        action: WakeAction::Nothing,
        reason,
        node: look.map(|look| look.seen.id.clone()),
    };
    let start = |reason, look: &Look| WakeDecision {
        action: WakeAction::Start(look.seen.id.clone()),
        reason,
        node: Some(look.seen.id.clone()),
    };
    if record.closed_gate(now).is_some() {
        return nothing(Reason::GateClosed, looks.first());
    }
    let wanted = nodes_wanted(&looks, record, target, policy, rules, now);
    if wanted == 0 {
        return nothing(Reason::NotWanted, looks.first());
    }
    if looks.iter().all(|look| look.phase() == Phase::Gone) {
        return nothing(Reason::NoNode, looks.first());
    }
    let ready: Vec<&&Look> = looks.iter().filter(|look| look.phase() == Phase::Ready).collect();
    let coming: Vec<&&Look> = looks.iter().filter(|look| is_coming(look, policy)).collect();
    let up = |reason_of_none| match (ready.first(), coming.first()) {
        (Some(look), _) => nothing(Reason::AlreadyReady, Some(look)),
        (None, Some(look)) => nothing(Reason::AlreadyStarting, Some(look)),
        (None, None) => reason_of_none,
    };
    if ready.len() + coming.len() >= wanted {
        return up(nothing(Reason::NotWanted, looks.first()));
    }
    if let Some(look) = looks.iter().find(|look| start_is_unresolved(look)) {
        return start(Reason::StartUnresolved, look);
    }
    if let Some(look) = looks.iter().find(|look| stop_is_unresolved(look)) {
        return start(Reason::StopUnresolved, look);
    }
    if let Some(look) = looks.iter().find(|look| is_free(look) && !is_left_alone(look, rules, record, policy)) {
        return start_as_preferred(look);
    }
    if let Some((look, kind)) = looks.iter().find_map(|look| Some((look, untried_type(look)?))) {
        let node = look.seen.id.clone();
        let action = WakeAction::StartAs(node.clone(), kind.clone());
        return WakeDecision { action, reason: Reason::OtherType, node: Some(node) };
    }
    let going_down = looks.iter().find(|look| look.phase() == Phase::Stopping || stop_may_be_in_flight(look));
    let waiting = match (going_down, looks.iter().find(|look| look.is_of_no_use(policy))) {
        (Some(look), _) => nothing(Reason::StoppingWillStart, Some(look)),
        // It runs still; where it never was ready it is stopped and started once more.
        (None, Some(look)) => nothing(Reason::AlreadyStarting, Some(look)),
        (None, None) => nothing(Reason::CoolingDown, looks.first()),
    };
    up(waiting)
}

/// A node that will not become ready is no supply: whoever waits for it waits for nothing.
fn is_coming(look: &Look, policy: &Policy) -> bool {
    look.phase() == Phase::Starting && !start_is_unresolved(look) && !look.is_of_no_use(policy)
}

/// Whether a START is for a wake. Where the wake has its node already, or none stands, it is for calls or a window, and says
/// nothing of who woke last.
pub fn is_for_wake(
    looks: &[Look],
    record: &PoolRecord,
    target: Option<&NodeId>,
    policy: &Policy,
    now: Instant,
) -> bool {
    let all: Vec<&Look> = looks.iter().collect();
    let is_met = looks.iter().any(|look| look.phase() == Phase::Ready || is_coming(look, policy));
    target.is_some() || (!is_met && is_wanted(&all, record, None, policy, now))
}

/// How many nodes are wanted: by a wake, by calls in progress and waiting, or by a warm window; of a named node only itself.
pub fn nodes_wanted(
    looks: &[&Look],
    record: &PoolRecord,
    target: Option<&NodeId>,
    policy: &Policy,
    rules: &PoolRules,
    now: Instant,
) -> usize {
    let by_wake = usize::from(is_wanted(looks, record, target, policy, now));
    if target.is_some() {
        return by_wake;
    }
    let by_calls = nodes_for_calls(looks, record, policy, rules, now);
    // A person who stopped a node within the window meant it.
    let by_window = warm_wish(rules, record, policy, now).map_or(0, |wish| {
        let taken_back = looks.iter().filter(|look| is_taken_back(look, &wish, lead(record, policy))).count();
        usize::try_from(wish.nodes).unwrap_or(usize::MAX).saturating_sub(taken_back)
    });
    by_wake.max(by_calls).max(by_window)
}

/// How many nodes the calls in progress and waiting want. Those on a node that is no supply have it, and want no other.
pub fn nodes_for_calls(
    looks: &[&Look],
    record: &PoolRecord,
    policy: &Policy,
    rules: &PoolRules,
    now: Instant,
) -> usize {
    let up = |look: &&&Look| matches!(look.phase(), Phase::Ready | Phase::Starting) && !look.is_of_no_use(policy);
    let in_progress: usize = looks.iter().filter(up).map(|look| look.record.calls(now)).sum();
    rules.nodes_for(in_progress + record.calls_waiting(now))
}

/// What the pool's warm windows want now, or by the time that nearly every boot takes and a tick is over.
pub fn warm_wish(rules: &PoolRules, record: &PoolRecord, policy: &Policy, now: Instant) -> Option<WarmWish> {
    crate::domain::wanted(&rules.warm, now, lead(record, policy))
}

fn lead(record: &PoolRecord, policy: &Policy) -> TimeDelta {
    record.boot_time(None, policy.boot).safe() + policy.tick
}

/// Stopped by hand since the window opened, or since we started it for that.
fn is_taken_back(look: &Look, wish: &WarmWish, lead: TimeDelta) -> bool {
    let ahead = wish.from - lead;
    let is_ours = |claim: &Claim| claim.kind == ClaimKind::Start && claim.at >= ahead;
    let was_started = look.record.claim.as_ref().is_some_and(is_ours);
    was_stopped_by_hand(look, if was_started { ahead } else { wish.from })
}

/// Stopped by hand within a warm window, which is then no reason to start it.
fn is_left_alone(look: &Look, rules: &PoolRules, record: &PoolRecord, policy: &Policy) -> bool {
    let window = warm_wish(rules, record, policy, look.now);
    let woken_since = look.wake.is_some_and(|wake| look.seen.transition_at.is_some_and(|at| wake > at));
    let calls = record.calls_waiting(look.now) > 0;
    window.is_some_and(|wish| is_taken_back(look, &wish, lead(record, policy))) && !woken_since && !calls
}

/// The node that an action starts, and as which type.
pub fn tried(action: &WakeAction, looks: &[Look]) -> Option<(NodeId, Option<InstanceType>)> {
    match action {
        WakeAction::Nothing => None,
        WakeAction::StartAs(id, kind) => Some((id.clone(), Some(kind.clone()))),
        WakeAction::Start(id) => {
            let look = looks.iter().find(|look| look.seen.id == *id);
            Some((id.clone(), look.and_then(|look| look.seen.instance_type.clone())))
        }
    }
}

/// Whether a wish stands: a wake younger than the wish time that no stop decision has seen, and that nobody has taken back
/// by stopping the node by hand since.
pub fn is_wanted(looks: &[&Look], record: &PoolRecord, target: Option<&NodeId>, policy: &Policy, now: Instant) -> bool {
    let Some(wake) = wish(record, target) else { return false };
    now - wake.at < policy.wish
        && !looks.iter().any(|look| was_judged_idle(look, wake.at) || was_stopped_by_hand(look, wake.at))
}

fn wish<'a>(record: &'a PoolRecord, target: Option<&NodeId>) -> Option<&'a Wake> {
    match target {
        Some(id) => record.nodes.get(id).and_then(|node| node.wake.as_ref()),
        None => record.newest_wake(),
    }
}

/// A STOP was claimed with this wake in view: the wish is spent.
fn was_judged_idle(look: &Look, wake: Instant) -> bool {
    let saw_it = |seen: Option<Instant>| seen.is_some_and(|seen| seen >= wake);
    look.record.claim.as_ref().is_some_and(|claim| claim.kind == ClaimKind::Stop && saw_it(claim.wake))
}

/// Somebody stopped the node after the wake, and it was not us: the stop is younger than our newest claim too. An older one
/// was our own STOP, whose claim a START has replaced since.
fn was_stopped_by_hand(look: &Look, wake: Instant) -> bool {
    let claim = look.record.claim.as_ref();
    let ours = claim.is_some_and(|claim| claim.kind == ClaimKind::Stop && claim.launched_at == look.seen.launched_at);
    let newest = claim.map_or(wake, |claim| claim.at.max(wake));
    look.seen.state == NodeState::Stopped
        && !ours
        && look.seen.state_reason.as_ref().is_some_and(|reason| reason.was_asked_for())
        && look.seen.transition_at.is_some_and(|at| at > newest)
        && claim.is_none_or(|claim| claim.answer != Some(ClaimAnswer::Refused))
}

fn stop_is_unresolved(look: &Look) -> bool {
    look.seen.state == NodeState::Running && look.phase() == Phase::Stopping && is_overdue(&look.record, look.now)
}

/// A START without an answer, and nothing to show for it. Where the node runs it was sent to settle a STOP, and only its
/// answer can.
fn start_is_unresolved(look: &Look) -> bool {
    let same_launch = |claim: &Claim| {
        claim.kind == ClaimKind::Start && claim.answer.is_none() && claim.launched_at == look.seen.launched_at
    };
    let in_doubt =
        look.phase() == Phase::Stopped || (look.seen.state == NodeState::Running && is_overdue(&look.record, look.now));
    in_doubt && look.record.claim.as_ref().is_some_and(same_launch) && !start_fault_waits(look)
}

fn is_free(look: &Look) -> bool {
    look.phase() == Phase::Stopped && !stop_may_be_in_flight(look) && !start_fault_waits(look)
}

/// A free node that is still of another type of the pool's list, from a time without capacity, starts as the preferred one.
fn start_as_preferred(look: &Look) -> WakeDecision {
    let node = look.seen.id.clone();
    let position = look.types.iter().position(|kind| Some(kind) == look.seen.instance_type.as_ref());
    let action = match (position, look.types.first()) {
        (Some(position), Some(preferred)) if position > 0 => WakeAction::StartAs(node.clone(), preferred.clone()),
        _ => WakeAction::Start(node.clone()),
    };
    WakeDecision { action, reason: Reason::Wanted, node: Some(node) }
}

/// The first type of the pool's list that this row of capacity refusals has not tried, on a node that is off. A node of a
/// type that is not on the list is somebody's choice and left alone.
fn untried_type(look: &Look) -> Option<&InstanceType> {
    let no_capacity = |fault: &&Fault| fault.kind == FaultKind::Start && fault.class == ErrorClass::Capacity;
    let fault = look.record.fault.as_ref().filter(no_capacity)?;
    let off = look.phase() == Phase::Stopped && !stop_may_be_in_flight(look);
    let listed = look.seen.instance_type.as_ref().is_some_and(|kind| look.types.contains(kind));
    let fresh = |kind: &&InstanceType| !fault.types.contains(kind);
    look.types.iter().find(fresh).filter(|_| off && listed && start_fault_waits(look))
}

/// A STOP without an answer whose run has not ended: a START now could be overtaken by it.
fn stop_may_be_in_flight(look: &Look) -> bool {
    look.record
        .claim
        .as_ref()
        .is_some_and(|claim| claim.kind == ClaimKind::Stop && claim.answer.is_none() && look.now < claim.open_until)
}

fn start_fault_waits(look: &Look) -> bool {
    look.record.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Start && look.now < fault.retry_at)
}
