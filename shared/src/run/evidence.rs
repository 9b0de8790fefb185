//! What a look proves beyond what the ledger knew.

use super::alert::About;
use super::call::{Call, Fact};
use super::outcome::{Effect, EffectKind};
use super::{Alert, Context};
use crate::decide::Look;
use crate::domain::{ClaimAnswer, ClaimKind, Fault, FaultKind, Instant, NeverReady, NodeState, StateReason};
use crate::error::{CallError, ErrorClass, TookEffect, class_of};
use crate::observation::is_overdue;
use crate::policy::{LEFT_STOPPED, Policy, STALE_LOOK};

/// EC2's code where the node's own system asked for the stop.
const OS_SHUTDOWN: &str = "Client.InstanceInitiatedShutdown";

/// The code of a start that was accepted and led to nothing.
pub(super) const NEVER_READY: &str = "NeverReady";

/// A START that fell back, as it is to be recorded and told.
pub(super) struct FallenStart {
    pub(super) write: Call,
    pub(super) alert: Alert,
    pub(super) effect: Effect,
}

/// Notes in the look that its START fell back, if it did: the claim is void and the node waits before the next try.
pub(super) fn note_fallen_start(ctx: &Context, look: &mut Look) -> Option<FallenStart> {
    let error = fell_back(look)?;
    let mut fault = Fault::next(FaultKind::Start, look.record.fault.as_ref(), &look.seen.id, &error, look.now)
        .with_type(look.seen.instance_type.as_ref());
    // Each fallen start bills a minute; whatever the cause, callers that keep asking do not start it again at once.
    fault.retry_at = fault.retry_at.max(look.now + STALE_LOOK);
    let claim = look.record.claim.as_mut()?;
    claim.answer = Some(ClaimAnswer::Refused);
    look.record.fault = Some(fault.clone());
    let (pool, node) = (look.seen.pool.clone(), look.seen.id.clone());
    let about = About::node(ctx, &look.seen);
    let (alert, run) = (about.start_failed(&error, fault.since, fault.retry_at), claim.run.clone());
    let effect = Effect {
        event: EffectKind::StartFailed,
        pool: Some(pool.clone()),
        node: Some(node.clone()),
        reason: error.code.clone(),
    };
    let write = Call::RecordAnswer { pool, node, run, answer: ClaimAnswer::Refused, fault: Some(fault) };
    Some(FallenStart { write, alert, effect })
}

/// An accepted START that ended `stopped` without ever having been ready, for a cause that nobody asked for: LaunchTime
/// moved, or it did not and the effect is overdue (field case 03).
fn fell_back(look: &Look) -> Option<CallError> {
    let claim = look.record.claim.as_ref().filter(|claim| claim.kind == ClaimKind::Start && claim.answer.is_none())?;
    let was_ready = look.record.was_ready(look.seen.launched_at);
    let ended = look.seen.launched_at > claim.launched_at || is_overdue(&look.record, look.now);
    // A system that powers itself off before it was ever ready failed to boot, whatever EC2 calls it.
    let fell = |reason: &&StateReason| !reason.was_asked_for() || reason.code == OS_SHUTDOWN;
    let reason = look.seen.state_reason.as_ref().filter(fell)?;
    let before_claim = look.seen.transition_at.is_some_and(|at| at < claim.at);
    if look.seen.state != NodeState::Stopped || was_ready || !ended || before_claim {
        return None;
    }
    Some(CallError {
        act: format!("start node {}", look.seen.id),
        code: reason.code.clone(),
        message: reason.message.clone(),
        class: class_of(&reason.code),
        effect: TookEffect::No,
    })
}

/// Running for longer than a start may take, and never ready, whether that is known or could not be read.
pub(super) fn is_late(look: &Look, policy: &Policy) -> bool {
    let overdue = look.seen.launched_at.is_some_and(|at| look.now - at >= policy.ready_within);
    look.seen.state == NodeState::Running && !look.record.was_ready(look.seen.launched_at) && overdue
}

/// How many launches before this one were stopped in a row because the node did not become ready.
pub(super) fn never_ready_tries(look: &Look) -> u32 {
    let row = look.record.fault.as_ref().and_then(|fault| fault.never_ready);
    row.map_or(0, |row| row.times.saturating_sub(u32::from(row.launched_at == look.seen.launched_at)))
}

/// The fault of a node that is stopped because it does not become ready: it may be started again at once the first time, and
/// after a day from the second on (design: "stopped and started once more, then left stopped").
pub(super) fn never_ready(look: &Look, now: Instant) -> Fault {
    let times = never_ready_tries(look) + 1;
    of_row(look, NeverReady { times, launched_at: look.seen.launched_at }, now)
}

fn of_row(look: &Look, row: NeverReady, now: Instant) -> Fault {
    let earlier = look.record.fault.as_ref().filter(|fault| fault.code == NEVER_READY);
    Fault {
        kind: FaultKind::Start,
        class: ErrorClass::Permanent,
        code: NEVER_READY.to_owned(),
        since: earlier.map_or(row.launched_at.unwrap_or(now), |fault| fault.since),
        tries: row.times,
        retry_at: if row.times > 1 { now + LEFT_STOPPED } else { now },
        types: Vec::new(),
        never_ready: Some(row),
    }
}

/// Takes out of the look a fault that is over: a refused START once the node is ready, a refused STOP once it is stopped.
/// Where that STOP was for a node that did not become ready, what it was to leave behind takes its place. Gives the fact to
/// write.
pub(super) fn settle_fault(look: &mut Look) -> Option<Fact> {
    let fault = look.record.fault.as_ref()?;
    let is_over = match fault.kind {
        FaultKind::Start => look.seen.state == NodeState::Running && look.record.was_ready(look.seen.launched_at),
        FaultKind::Stop => look.seen.state == NodeState::Stopped,
    };
    let left = fault.never_ready.filter(|row| fault.kind == FaultKind::Stop && !look.record.was_ready(row.launched_at));
    let next = left.map(|row| of_row(look, row, look.now));
    is_over.then(|| {
        look.record.fault.clone_from(&next);
        Fact::Fault(next)
    })
}
