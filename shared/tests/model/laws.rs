//! Holds what has happened against what is promised, at the moment it happens. What is true is read from the world itself,
//! never from what a run was shown.

use crate::carry::{How, is_about_messages};
use crate::process::{Arrival, Process};
use crate::scenario::Scenario;
use crate::state::{Book, Law};
use crate::support::voice;
use reveille::decide::Reason;
use reveille::domain::{Claim, ClaimKind, Instant, NodeId, NodeSeen, NodeState, Phase, PoolRecord};
use reveille::observation::phase;
use reveille::run::{Answer, Call, LeaseAnswer, Outcome};
use reveille::world::World;

/// What an exploration has to have met, or its laws were never put to the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    SaidReady,
    Stopped,
    Started,
    ClaimLost,
    Leased,
    StopClaimedBesideLease,
    LateEffect,
    GateClosed,
    Told,
    MessageHeldBack,
    MetAfterWait,
    Blind,
    StaleLook,
    ByHand,
}

impl Event {
    pub(crate) const ALL: [Event; 14] = [
        Self::SaidReady,
        Self::Stopped,
        Self::Started,
        Self::ClaimLost,
        Self::Leased,
        Self::StopClaimedBesideLease,
        Self::LateEffect,
        Self::GateClosed,
        Self::Told,
        Self::MessageHeldBack,
        Self::MetAfterWait,
        Self::Blind,
        Self::StaleLook,
        Self::ByHand,
    ];
}

/// What of the truth a call may change.
pub(crate) struct Before {
    nodes: Vec<NodeSeen>,
    demand: u64,
    claim: Option<Claim>,
}

impl Before {
    pub(crate) fn new(world: &mut World, call: Option<&Call>) -> Self {
        let record = world.record(&voice()).clone();
        let claim = match call {
            Some(Call::Claim { node, .. }) => record.node(node).claim,
            _ => None,
        };
        let nodes = record.nodes.keys().filter_map(|id| world.node(id).cloned()).collect();
        Self { nodes, demand: record.demand, claim }
    }

    /// The nodes that are not as they were, as they were.
    pub(crate) fn changed<'a>(&'a self, world: &'a World) -> impl Iterator<Item = &'a NodeSeen> {
        self.nodes.iter().filter(|was| world.node(&was.id) != Some(was))
    }
}

/// The truth before and after a call.
pub(crate) struct Moment<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) before: &'a Before,
    pub(crate) after: &'a World,
    /// The ledger's item after the call.
    pub(crate) record: &'a PoolRecord,
}

impl Moment<'_> {
    /// What this call of this run has broken, noted in the book; and what was met on the way.
    pub(crate) fn judge(&self, call: &Call, by: &Process, n: usize, how: How, book: &mut Book) -> Vec<Event> {
        let mut met = Vec::new();
        if matches!(how, How::Refused | How::NoAnswer | How::Lost) && is_about_messages(call) {
            book.crashed = true;
        }
        match call {
            Call::Start { node } | Call::Stop { node, .. } => met.extend(self.effect_on(node, book)),
            Call::Claim { node, claim, .. } if self.record.node(node).claim != self.before.claim => {
                match claim.kind {
                    ClaimKind::Start => self.start_claimed(node, book),
                    ClaimKind::Stop => self.stop_claimed(node, by, book),
                }
                let leased = self.record.nodes.values().any(|node| node.calls(self.after.now()) > 0);
                met.extend((claim.kind == ClaimKind::Stop && leased).then_some(Event::StopClaimedBesideLease));
            }
            Call::Claim { .. } => met.push(Event::ClaimLost),
            Call::RecordDemand { .. } if self.record.demand > self.before.demand => {
                book.unmet.insert(by.name.clone());
            }
            Call::Publish { alert } if matches!(how, How::Plain | How::Lost) => {
                met.push(Event::Told);
                let is_new = book.told.insert(alert.key.clone());
                breaks(book, !is_new && !book.crashed, Law::Twice);
            }
            Call::ClaimAlert { .. } if by.slots.get(n).is_some_and(|slot| is_held_back(slot.answer.as_ref())) => {
                met.push(Event::MessageHeldBack);
            }
            Call::SetGate { gate: Some(_), .. } if self.record.gate.is_some() => met.push(Event::GateClosed),
            _ => {}
        }
        met
    }

    /// A START or STOP that has changed its node.
    pub(crate) fn effect_on(&self, node: &NodeId, book: &mut Book) -> Option<Event> {
        let before = self.before.nodes.iter().find(|seen| seen.id == *node).map(|seen| seen.state);
        let after = self.after.node(node).map(|seen| seen.state);
        if before == after {
            return None;
        }
        if after == Some(NodeState::Pending) {
            return Some(Event::Started);
        }
        let (now, known) = (self.after.now(), self.record.node(node));
        let was_running = matches!(before, Some(NodeState::Pending | NodeState::Running));
        let said_ready = book.ready.get(node).is_some_and(|at| now - *at < self.scenario.policy.prewarm);
        breaks(book, was_running && known.calls(now) > 0, Law::Lease);
        breaks(book, was_running && said_ready, Law::Ready);
        was_running.then_some(Event::Stopped)
    }

    /// With this one no more nodes are up or started than are wanted.
    fn start_claimed(&self, node: &NodeId, book: &mut Book) {
        let now = self.after.now();
        let is_supply = |id: &NodeId| {
            let seen = self.after.node(id).expect("a node");
            let is_down = matches!(phase(seen, &self.record.node(id), now), Phase::Stopping | Phase::Stopped);
            id != node && !is_down && !book.by_hand.contains(id)
        };
        let supply = self.record.nodes.keys().filter(|id| is_supply(id)).count();
        let calls = self.record.nodes.values().map(|node| node.calls(now)).sum::<usize>();
        let by_calls = self.scenario.rules.nodes_for(calls + self.record.calls_waiting(now));
        // A wake that was met long ago wants nothing any more.
        let is_young = self.record.wake.as_ref().is_some_and(|wake| now - wake.at < self.scenario.policy.prewarm);
        let wanted = usize::from(is_young || !book.unmet.is_empty()).max(by_calls);
        breaks(book, supply + 1 > wanted, Law::Supply);
    }

    fn stop_claimed(&self, node: &NodeId, by: &Process, book: &mut Book) {
        let is_up = self.after.node(node).is_some_and(|seen| seen.state == NodeState::Running);
        breaks(book, is_up && by.is_blind, Law::Unknown);
        // There to be seen by two readings, of which one at most lagged.
        let age = |at: Instant| self.after.now() - at;
        let was_there = |(id, at): &(NodeId, Instant)| {
            id == node && age(*at) < self.scenario.policy.idle && age(*at) >= self.scenario.policy.tick
        };
        breaks(book, is_up && self.scenario.used.iter().any(was_there), Law::Readings);
    }

    /// What a run that is over has told its caller.
    pub(crate) fn judge_end(&self, by: &Process, outcome: &Outcome, book: &mut Book) -> Vec<Event> {
        let mut met = Vec::new();
        let wants = matches!(by.arrival, Arrival::Wake);
        for answer in outcome.answers.iter().filter(|_| by.arrival.has_caller()) {
            let is_refusal =
                matches!(answer.reason, Reason::GateClosed | Reason::CoolingDown | Reason::NoNode | Reason::Full);
            if is_refusal {
                book.unmet.remove(&by.name);
            }
            if let Some(node) = answer.node.as_ref().filter(|_| wants && answer.reason == Reason::AlreadyReady) {
                met.push(Event::SaidReady);
                self.said_ready(node, by.born, book, Law::Ready);
            }
        }
        if let Some(LeaseAnswer::Held { node, .. }) = &outcome.lease {
            met.push(Event::Leased);
            self.said_ready(node, by.born, book, Law::Lease);
        }
        met
    }

    /// What is said now has to be true now, as far as we had a hand in it.
    fn said_ready(&self, node: &NodeId, at: Instant, book: &mut Book, law: Law) {
        let is_down = self.after.node(node).is_some_and(|seen| {
            matches!(seen.state, NodeState::Stopping | NodeState::Stopped) && !book.by_hand.contains(node)
        });
        breaks(book, is_down, law);
        let newest = book.ready.entry(node.clone()).or_insert(at);
        *newest = at.max(*newest);
    }
}

fn breaks(book: &mut Book, is_broken: bool, law: Law) {
    book.broken = book.broken.or(is_broken.then_some(law));
}

fn is_held_back(answer: Option<&Answer>) -> bool {
    use reveille::run::AlertClaimed;
    matches!(answer, Some(Answer::AlertClaim(Ok(AlertClaimed::Another | AlertClaimed::Published))))
}

/// A node runs or boots, and no STOP of ours is under way.
pub(crate) fn is_up(world: &World, record: &PoolRecord, node: &NodeId) -> bool {
    let Some(seen) = world.node(node) else { return false };
    let is_on = matches!(seen.state, NodeState::Pending | NodeState::Running);
    is_on && phase(seen, &record.node(node), world.now()) != Phase::Stopping
}

/// A message has said why nothing was started.
pub(crate) fn is_told_of_wish(book: &Book) -> bool {
    has_kind(book, None, &["start_failed", "controller_fault", "not_ready", "budget"])
}

/// A message has said why this node goes on running.
pub(crate) fn is_told_of_node(book: &Book, node: &NodeId) -> bool {
    has_kind(book, Some(node), &["cannot_stop", "blind", "not_ready", "controller_fault"])
}

/// Keys read `alert#PLACE#KIND#OCCASION`.
fn has_kind(book: &Book, node: Option<&NodeId>, kinds: &[&str]) -> bool {
    book.told.iter().any(|key| {
        let mut parts = key.0.split('#').skip(1);
        let (place, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        kinds.contains(&kind) && node.is_none_or(|node| place == node.as_str())
    })
}
