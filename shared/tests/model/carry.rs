//! Carries out one call of a run, in every way in which that may go.

use crate::process::{Process, Slot};
use crate::scenario::{Sabotage, Scenario};
use crate::state::{Budget, View};
use crate::support::{minutes, voice};
use chrono::TimeDelta;
use reveille::domain::{ClaimKind, Instant, Mark, NodeSeen, PoolRecord};
use reveille::run::{Answer, Call, Claimed, Demanded, Leased, Permit};
use reveille::world::{World, WorldFault, call_name};
use std::collections::BTreeSet;

/// So far may a metric lag behind without seeming silent: the longest gap beside the unsettled minutes, in whole minutes.
const LAG: TimeDelta = TimeDelta::minutes(7);

/// How a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Plain,
    /// The service refuses it for a moment.
    Refused,
    /// It never arrives, and nobody says so.
    NoAnswer,
    /// It takes effect, and its answer is lost.
    Lost,
    /// It is not answered, and may take effect later.
    Late,
    /// EC2 shows a node as it was: the number of the view.
    Stale(usize),
    /// Signals lag behind; status checks say "not yet".
    Lags,
    /// It takes effect, its answer is lost, and the SDK sends it again.
    Again,
}

/// A call that no other run can tell of, nor tell apart when it is made: it is made at once, which loses no order.
pub(crate) fn is_private(call: &Call) -> bool {
    matches!(call, Call::ReadActivity { .. } | Call::ReadDisks { .. } | Call::Publish { .. })
}

/// Changes something outside the run.
pub(crate) fn is_effect(call: &Call) -> bool {
    !matches!(
        call,
        Call::DescribeNodes { .. }
            | Call::ReadLedger { .. }
            | Call::ReadBeats { .. }
            | Call::ReadActivity { .. }
            | Call::ReadReadiness { .. }
            | Call::ReadLogs { .. }
            | Call::ReadHistory { .. }
            | Call::ReadSamples { .. }
            | Call::ReadDisks { .. }
            | Call::ReadBudget { .. }
            | Call::ReadBudgetNote { .. }
    )
}

/// START and STOP are never sent again by the SDK, and messages are no update of the ledger.
fn is_sent_again(call: &Call) -> bool {
    is_effect(call) && !matches!(call, Call::Start { .. } | Call::Stop { .. } | Call::Publish { .. })
}

pub(crate) fn is_about_messages(call: &Call) -> bool {
    matches!(call, Call::ClaimAlert { .. } | Call::Publish { .. } | Call::MarkPublished { .. })
}

/// The ways in which a call may go within what may still go wrong.
pub(crate) fn ways(slot: &Slot, left: Budget, views: &[View]) -> Vec<How> {
    let mut ways = vec![How::Plain];
    let sends = matches!(slot.call, Call::Start { .. } | Call::Stop { .. });
    if left.faults > 0 {
        ways.push(How::Refused);
        ways.extend(is_effect(&slot.call).then_some(How::Lost));
        // Of all other calls a run makes the same of "no" and of no answer.
        ways.extend(sends.then_some([How::NoAnswer, How::Late]).into_iter().flatten());
    }
    if left.stale > 0 {
        match slot.call {
            Call::DescribeNodes { .. } => ways.extend((0..views.len()).map(How::Stale)),
            Call::ReadActivity { .. } | Call::ReadReadiness { .. } => ways.push(How::Lags),
            _ => {}
        }
    }
    if left.repeats > 0 && !slot.again && is_sent_again(&slot.call) {
        ways.push(How::Again);
    }
    ways
}

pub(crate) fn spend(left: &mut Budget, how: How) {
    match how {
        How::Plain => {}
        How::Refused | How::NoAnswer | How::Lost | How::Late => left.faults -= 1,
        How::Stale(_) | How::Lags => left.stale -= 1,
        How::Again => left.repeats -= 1,
    }
}

/// Makes the call in this world; one that is sent again stays open.
pub(crate) fn carry(scenario: &Scenario, world: &mut World, process: &mut Process, n: usize, how: How, views: &[View]) {
    let call = tampered_call(scenario, world, &process.slots[n].call);
    let is_update = matches!(call, Call::RecordDemand { .. });
    if scenario.sabotage == Some(Sabotage::SameItem) && is_update && process.slots[n].read.is_none() {
        let record = world.record(&voice()).clone();
        return process.answer(n, Answer::Demand(Ok(Demanded::Recorded(record))), false);
    }
    let answer = match how {
        How::Plain => world.answer(&call),
        How::Refused => failed(world, &call, "RequestLimitExceeded", false),
        How::NoAnswer | How::Late => failed(world, &call, "Timeout", false),
        How::Lost => failed(world, &call, "Timeout", true),
        How::Stale(view) => as_of_before(world.answer(&call), &views[view].seen),
        How::Lags => lagging(world, &call),
        How::Again => {
            world.answer(&call);
            process.slots[n].again = true;
            return;
        }
    };
    let answer = process.slots[n].read.clone().filter(|_| how == How::Plain).unwrap_or(answer);
    process.answer(n, tampered_answer(scenario, world, answer, process.born), true);
}

fn failed(world: &mut World, call: &Call, code: &'static str, after: bool) -> Answer {
    world.fail(WorldFault { call: call_name(call), node: None, code, after, times: 1 });
    world.answer(call)
}

fn as_of_before(answer: Answer, view: &NodeSeen) -> Answer {
    match answer {
        Answer::Nodes(Ok(nodes)) => {
            let shown = |node: NodeSeen| if node.id == view.id { view.clone() } else { node };
            Answer::Nodes(Ok(nodes.into_iter().map(shown).collect()))
        }
        other => other,
    }
}

fn lagging(world: &mut World, call: &Call) -> Answer {
    match call {
        Call::ReadActivity { metrics, from, to } => {
            world.answer(&Call::ReadActivity { metrics: metrics.clone(), from: *from, to: *to - LAG })
        }
        _ => Answer::Readiness(Ok(BTreeSet::new())),
    }
}

fn tampered_call(scenario: &Scenario, world: &mut World, call: &Call) -> Call {
    match (scenario.sabotage, call) {
        (Some(Sabotage::Claims), Call::Claim { pool, node, permit, claim, .. }) => {
            let record = world.record(pool);
            let permit = Permit { claims: record.claims, demand: permit.demand.map(|_| record.demand) };
            let leased = record.node(node).leased;
            Call::Claim { pool: pool.clone(), node: node.clone(), permit, leased, claim: claim.clone() }
        }
        _ => call.clone(),
    }
}

fn tampered_answer(scenario: &Scenario, world: &World, mut answer: Answer, now: Instant) -> Answer {
    for record in records_in(&mut answer) {
        for (id, node) in &mut record.nodes {
            match scenario.sabotage {
                Some(Sabotage::Readings) => {
                    let launched_at = world.node(id).and_then(|seen| seen.launched_at);
                    node.mark = Some(Mark { at: now - minutes(5), launched_at });
                }
                Some(Sabotage::Evidence) => {
                    node.claim = node.claim.take().filter(|claim| {
                        claim.kind == ClaimKind::Start || (claim.answer.is_none() && now < claim.open_until)
                    });
                }
                Some(Sabotage::Claims | Sabotage::SameItem) | None => {}
            }
        }
    }
    answer
}

fn records_in(answer: &mut Answer) -> Vec<&mut PoolRecord> {
    match answer {
        Answer::Ledger(Ok(records)) => records.values_mut().collect(),
        Answer::Demand(Ok(Demanded::Recorded(record) | Demanded::Refused(record)))
        | Answer::Claim(Ok(Claimed::Granted(record) | Claimed::Lost(record)))
        | Answer::Lease(Ok(Leased::Done(record) | Leased::Moved(record))) => vec![record],
        _ => Vec::new(),
    }
}
