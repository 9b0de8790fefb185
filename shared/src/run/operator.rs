//! What an operator orders: a hold or its end, a gate closed or opened. One look, one write; an operator's word goes before
//! what the functions decide, and is never repeated by itself.

use super::call::{Answer, Call, take_gate_set, take_ledger, take_nodes, take_recorded};
use super::outcome::{Effect, EffectKind};
use super::{Context, Outcome, Run, Step, Target};
use crate::domain::{
    Gate, GateKeeper, Hold, Instant, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, TagHold, read_tags,
};
use crate::error::CallError;
use chrono::{SubsecRound as _, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Keeps a node for so long from now on.
    Hold {
        /// A named node, or the only one of a pool.
        target: Target,
        /// How long.
        lasts: TimeDelta,
        /// Why, for the next person.
        note: String,
    },
    /// Ends a hold.
    Release {
        /// A named node, or the only one of a pool.
        target: Target,
    },
    /// No wake is taken any more.
    CloseGate {
        /// The pool.
        pool: PoolName,
        /// For so long; without, until a person opens it.
        lasts: Option<TimeDelta>,
        /// Running nodes are drained too.
        drain: bool,
        /// Why: callers are told it.
        note: String,
    },
    /// Wakes are taken again.
    OpenGate {
        /// The pool.
        pool: PoolName,
        /// Why.
        note: String,
    },
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obeyed {
    /// The node is held.
    Held {
        /// The pool.
        pool: PoolName,
        /// The node.
        node: NodeId,
        /// Up to this instant.
        until: Instant,
    },
    /// The ledger's hold is over.
    Released {
        /// The pool.
        pool: PoolName,
        /// The node.
        node: NodeId,
        /// Whether there was one.
        was_held: bool,
        /// The node's tag holds it still; this takes no tag away.
        by_tag: bool,
    },
    /// The gate is closed.
    Closed {
        /// The pool.
        pool: PoolName,
        /// Until it opens by itself.
        until: Option<Instant>,
    },
    /// The gate is open.
    Opened {
        /// The pool.
        pool: PoolName,
        /// The gate that stood.
        was: Option<Gate>,
    },
    /// The order names no node, and the pool has not exactly one.
    Which(Vec<NodeId>),
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Start,
    Look,
    Written(Obeyed, Effect),
    Over,
}

/// The run of one order.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorRun {
    ctx: Context,
    order: Order,
    /// Who ordered it, for the log and for the next person.
    by: String,
    stage: Stage,
}

impl OperatorRun {
    /// A run that is ready for its first `next`.
    pub fn new(ctx: Context, order: Order, by: String) -> Self {
        Self { ctx, order, by, stage: Stage::Start }
    }

    fn pools(&self) -> BTreeSet<PoolName> {
        match &self.order {
            Order::Hold { target: Target::Pool(pool), .. }
            | Order::Release { target: Target::Pool(pool) }
            | Order::CloseGate { pool, .. }
            | Order::OpenGate { pool, .. } => BTreeSet::from([pool.clone()]),
            Order::Hold { target: Target::Node(_), .. } | Order::Release { target: Target::Node(_) } => {
                self.ctx.pools.keys().cloned().collect()
            }
        }
    }

    fn looked(&mut self, answers: Vec<Answer>) -> Step {
        let mut answers = answers.into_iter();
        let (nodes, records) = match (take_nodes(answers.next()), take_ledger(answers.next())) {
            (Ok(nodes), Ok(records)) => (nodes, records),
            (Err(error), _) | (_, Err(error)) => return blind(error),
        };
        match self.order.clone() {
            Order::Hold { target, lasts, note } => match self.node(&target, &nodes) {
                Ok(seen) => self.hold(seen, lasts, &note),
                Err(outcome) => Step::Done(*outcome),
            },
            Order::Release { target } => match self.node(&target, &nodes) {
                Ok(seen) => self.release(seen, &records),
                Err(outcome) => Step::Done(*outcome),
            },
            Order::CloseGate { pool, lasts, drain, note } => {
                let since = self.ctx.now;
                // Whole seconds, as DynamoDB compares texts.
                let until = lasts.map(|lasts| (since + lasts).trunc_subsecs(0));
                let gate = Gate { by: GateKeeper::Person, since, reason: note, amount: None, until, drain };
                self.set_gate(pool.clone(), Some(gate), Obeyed::Closed { pool, until })
            }
            Order::OpenGate { pool, .. } => {
                let was = records.get(&pool).and_then(|record| record.closed_gate(self.ctx.now)).cloned();
                self.set_gate(pool.clone(), None, Obeyed::Opened { pool, was })
            }
        }
    }

    /// The node that is meant, or the end of the run.
    fn node<'a>(&self, target: &Target, nodes: &'a [NodeSeen]) -> Result<&'a NodeSeen, Box<Outcome>> {
        let alive = || nodes.iter().filter(|seen| seen.state != NodeState::Gone);
        match target {
            Target::Node(word) => alive()
                .find(|seen| seen.is_called(word))
                .ok_or_else(|| Box::new(Outcome { not_found: Some(word.clone()), ..Outcome::default() })),
            Target::Pool(_) => {
                let all: Vec<&NodeSeen> = alive().collect();
                let which = || Obeyed::Which(all.iter().map(|seen| seen.id.clone()).collect());
                let unsure = || Box::new(Outcome { obeyed: Some(which()), ..Outcome::default() });
                if let [only] = all[..] { Ok(only) } else { Err(unsure()) }
            }
        }
    }

    fn hold(&mut self, seen: &NodeSeen, lasts: TimeDelta, note: &str) -> Step {
        let (pool, node, since) = (seen.pool.clone(), seen.id.clone(), self.ctx.now);
        let until = (since + lasts).trunc_subsecs(0);
        let note = self.signed(note);
        let effect = effect(EffectKind::Held, &pool, Some(&node), format!("until {until}: {note}"));
        self.stage = Stage::Written(Obeyed::Held { pool: pool.clone(), node: node.clone(), until }, effect);
        Step::Calls(vec![Call::SetHold { pool, node, hold: Some(Hold { until, note, since }) }])
    }

    fn release(&mut self, seen: &NodeSeen, records: &BTreeMap<PoolName, PoolRecord>) -> Step {
        let (pool, node, now) = (seen.pool.clone(), seen.id.clone(), self.ctx.now);
        let tags = seen.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let by_tag = TagHold::keeps(&read_tags(tags, self.ctx.policy.zone, now), now);
        let hold = records.get(&pool).and_then(|record| record.nodes.get(&node)).and_then(|node| node.hold.clone());
        let was_held = hold.is_some_and(|hold| hold.keeps(now));
        let effect = effect(EffectKind::Released, &pool, Some(&node), self.by.clone());
        self.stage =
            Stage::Written(Obeyed::Released { pool: pool.clone(), node: node.clone(), was_held, by_tag }, effect);
        Step::Calls(vec![Call::SetHold { pool, node, hold: None }])
    }

    fn set_gate(&mut self, pool: PoolName, gate: Option<Gate>, obeyed: Obeyed) -> Step {
        let event = if gate.is_some() { EffectKind::GateClosed } else { EffectKind::GateOpened };
        let note = match &self.order {
            Order::CloseGate { note, .. } | Order::OpenGate { note, .. } => self.signed(note),
            Order::Hold { .. } | Order::Release { .. } => self.by.clone(),
        };
        self.stage = Stage::Written(obeyed, effect(event, &pool, None, note));
        Step::Calls(vec![Call::SetGate { pool, by: GateKeeper::Person, gate, at: self.ctx.now }])
    }

    fn signed(&self, note: &str) -> String {
        format!("{note} ({})", self.by)
    }
}

impl Run for OperatorRun {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        let answers = self.ctx.credible(answers);
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => {
                self.stage = Stage::Look;
                let pools = self.pools();
                Step::Calls(vec![Call::DescribeNodes { pools: Some(pools.clone()) }, Call::ReadLedger { pools }])
            }
            Stage::Look => self.looked(answers),
            Stage::Written(obeyed, effect) => {
                let answer = answers.into_iter().next();
                let written = match answer {
                    Some(Answer::GateSet(_)) => take_gate_set(answer).map(|_| ()),
                    answer => take_recorded(answer),
                };
                match written {
                    Ok(()) => done(obeyed, vec![effect]),
                    Err(error) => blind(error),
                }
            }
            Stage::Over => Step::Done(Outcome::default()),
        }
    }
}

fn effect(event: EffectKind, pool: &PoolName, node: Option<&NodeId>, reason: String) -> Effect {
    Effect { event, pool: Some(pool.clone()), node: node.cloned(), reason }
}

fn done(obeyed: Obeyed, effects: Vec<Effect>) -> Step {
    Step::Done(Outcome { obeyed: Some(obeyed), effects, ..Outcome::default() })
}

/// Nothing was written, or it may have been: the operator looks and says it again.
fn blind(error: CallError) -> Step {
    Step::Done(Outcome { blind: Some(error), ..Outcome::default() })
}
