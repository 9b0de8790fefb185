//! What an operator orders: a hold or its end, a gate closed or opened. One look, one write; an operator's word goes before
//! what the functions decide. Two persons' words stand beside each other: the longer hold, the later end of a gate.

use super::call::{Answer, Call, take_gate_set, take_hold_set, take_ledger, take_nodes};
use super::outcome::{Effect, EffectKind};
use super::{Context, Outcome, Run, Step, Target};
use crate::domain::{
    Gate, GateKeeper, Hold, Instant, NodeId, NodeSeen, NodeState, Phase, PoolName, PoolRecord, TagHold, read_tags,
};
use crate::error::CallError;
use crate::observation::phase;
use chrono::{SubsecRound as _, TimeDelta};
use std::collections::BTreeSet;

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
        /// The hold that stood: the later end of the two is kept.
        was: Option<Hold>,
        /// The node's phase as the hold was written: a hold starts nothing, and calls no STOP back.
        phase: Phase,
    },
    /// The ledger's hold is over.
    Released {
        /// The pool.
        pool: PoolName,
        /// The node.
        node: NodeId,
        /// The hold that stood.
        was: Option<Hold>,
        /// The node's tag holds it still; this takes no tag away.
        by_tag: bool,
    },
    /// The gate is closed.
    Closed {
        /// The pool.
        pool: PoolName,
        /// The gate that stands now.
        gate: Gate,
        /// The gate that stood; the same where it keeps all that was asked for, and nothing was written.
        was: Option<Gate>,
    },
    /// The gate is open.
    Opened {
        /// The pool.
        pool: PoolName,
        /// The gate that stood.
        was: Option<Gate>,
    },
    /// The order means no one node: its word or its pool has several, or the pool has none.
    Which(Vec<NodeId>),
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Start,
    Look,
    Holding { seen: NodeSeen, tries: Tries<Hold> },
    Releasing { seen: NodeSeen },
    Closing { pool: PoolName, tries: Tries<Gate> },
    Opening { pool: PoolName },
    Over,
}

/// What was written over what was believed to stand. Where another person was quicker, it is joined with theirs and written
/// again.
#[derive(Debug, Clone, PartialEq)]
struct Tries<T> {
    written: T,
    believed: Option<T>,
    /// What stood when this began.
    was: Option<T>,
    left: u8,
}

impl<T: Clone + PartialEq> Tries<T> {
    fn of(written: T, was: Option<T>) -> Self {
        Self { written, believed: was.clone(), was, left: 3 }
    }

    /// None where what was believed is what stood.
    fn again(self, stood: Option<T>, join: impl Fn(Option<&T>) -> T) -> Result<Self, Self> {
        if stood == self.believed || self.left == 0 {
            return Err(self);
        }
        let written = join(stood.as_ref());
        Ok(Self { believed: Some(self.written), was: stood, written, left: self.left - 1 })
    }
}

/// The longest note of a hold that has been joined with others, in characters.
const LONGEST_JOINED: usize = 400;

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
        let record = |pool: &PoolName| records.get(pool).cloned().unwrap_or_default();
        match self.order.clone() {
            Order::Hold { target, .. } => match self.node(&target, &nodes) {
                Ok(seen) => {
                    let was = record(&seen.pool).node(&seen.id).hold;
                    let tries = Tries::of(self.joined_hold(was.as_ref()), was);
                    self.write_hold(seen.clone(), tries)
                }
                Err(outcome) => Step::Done(*outcome),
            },
            Order::Release { target } => match self.node(&target, &nodes) {
                Ok(seen) => {
                    self.stage = Stage::Releasing { seen: seen.clone() };
                    Step::Calls(vec![Call::SetHold { pool: seen.pool.clone(), node: seen.id.clone(), hold: None }])
                }
                Err(outcome) => Step::Done(*outcome),
            },
            Order::CloseGate { pool, .. } => {
                let was = record(&pool).gate;
                let gate = self.joined_gate(was.as_ref());
                if was.as_ref() == Some(&gate) {
                    return done(Obeyed::Closed { pool, gate, was }, Vec::new());
                }
                self.write_gate(pool, Tries::of(gate, was))
            }
            Order::OpenGate { pool, .. } => {
                self.stage = Stage::Opening { pool: pool.clone() };
                Step::Calls(vec![Call::SetGate { pool, by: GateKeeper::Person, gate: None, at: self.ctx.now }])
            }
        }
    }

    /// The node that is meant, or the end of the run.
    fn node<'a>(&self, target: &Target, nodes: &'a [NodeSeen]) -> Result<&'a NodeSeen, Box<Outcome>> {
        let alive = nodes.iter().filter(|seen| seen.state != NodeState::Gone);
        let meant: Vec<&NodeSeen> = match target {
            Target::Node(word) => match alive.clone().find(|seen| seen.id.as_str() == word) {
                Some(seen) => vec![seen],
                // EC2 lists in no order: the first of several of one name may be another one the next time.
                None => alive.filter(|seen| seen.is_called(word)).collect(),
            },
            Target::Pool(_) => alive.collect(),
        };
        match (target, &meant[..]) {
            (_, [only]) => Ok(only),
            (Target::Node(word), []) => Err(Box::new(Outcome { not_found: Some(word.clone()), ..Outcome::default() })),
            _ => {
                let which = Obeyed::Which(meant.iter().map(|seen| seen.id.clone()).collect());
                Err(Box::new(Outcome { obeyed: Some(which), ..Outcome::default() }))
            }
        }
    }

    fn write_hold(&mut self, seen: NodeSeen, tries: Tries<Hold>) -> Step {
        let (pool, node, hold) = (seen.pool.clone(), seen.id.clone(), Some(tries.written.clone()));
        self.stage = Stage::Holding { seen, tries };
        Step::Calls(vec![Call::SetHold { pool, node, hold }])
    }

    fn write_gate(&mut self, pool: PoolName, tries: Tries<Gate>) -> Step {
        let gate = Some(tries.written.clone());
        self.stage = Stage::Closing { pool: pool.clone(), tries };
        Step::Calls(vec![Call::SetGate { pool, by: GateKeeper::Person, gate, at: self.ctx.now }])
    }

    /// The ordered hold beside the one that stands: neither person's node is let go before the time they were told.
    fn joined_hold(&self, standing: Option<&Hold>) -> Hold {
        let (since, note) = (self.ctx.now, self.note());
        let standing = standing.filter(|hold| hold.keeps(since));
        let mine = (since + self.lasts().unwrap_or_default()).trunc_subsecs(0);
        let until = standing.map_or(mine, |standing| standing.until.max(mine));
        let note = standing.map_or_else(|| note.clone(), |standing| format!("{note}; {}", standing.note));
        Hold { until, note: note.chars().take(LONGEST_JOINED).collect(), since }
    }

    /// The ordered gate beside the one that stands: it opens no earlier and drains no less.
    fn joined_gate(&self, standing: Option<&Gate>) -> Gate {
        let (since, lasts) = (self.ctx.now, self.lasts());
        let (drain, reason) = match &self.order {
            Order::CloseGate { drain, note, .. } => (*drain, note.clone()),
            Order::Hold { .. } | Order::Release { .. } | Order::OpenGate { .. } => (false, String::new()),
        };
        // Whole seconds, as DynamoDB compares texts.
        let until = lasts.map(|lasts| (since + lasts).trunc_subsecs(0));
        let mine = Gate { by: GateKeeper::Person, since, reason, amount: None, until, drain };
        let Some(standing) = standing.filter(|gate| gate.until.is_none_or(|until| since < until)) else { return mine };
        let outlasts = standing.until.is_none_or(|theirs| until.is_some_and(|mine| mine <= theirs));
        let drain = drain || standing.drain;
        if outlasts { Gate { drain, ..standing.clone() } } else { Gate { drain, ..mine } }
    }

    fn lasts(&self) -> Option<TimeDelta> {
        match &self.order {
            Order::Hold { lasts, .. } => Some(*lasts),
            Order::CloseGate { lasts, .. } => *lasts,
            Order::Release { .. } | Order::OpenGate { .. } => None,
        }
    }

    /// Why, signed.
    fn note(&self) -> String {
        match &self.order {
            Order::Hold { note, .. } | Order::CloseGate { note, .. } | Order::OpenGate { note, .. } => {
                format!("{note} ({})", self.by)
            }
            Order::Release { .. } => self.by.clone(),
        }
    }

    fn held(&mut self, seen: NodeSeen, tries: Tries<Hold>, before: &PoolRecord) -> Step {
        let now = self.ctx.now;
        match tries.again(before.node(&seen.id).hold, |standing| self.joined_hold(standing)) {
            Ok(tries) => self.write_hold(seen, tries),
            Err(Tries { written: Hold { until, note, .. }, was, .. }) => {
                let was = was.filter(|hold| hold.keeps(now));
                let phase = phase(&seen, &before.node(&seen.id), now);
                let (pool, node) = (seen.pool, seen.id);
                let effect = effect(EffectKind::Held, &pool, Some(&node), format!("until {until}: {note}"));
                done(Obeyed::Held { pool, node, until, was, phase }, vec![effect])
            }
        }
    }

    fn released(&self, seen: NodeSeen, before: &PoolRecord) -> Step {
        let now = self.ctx.now;
        let tags = seen.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let by_tag = TagHold::keeps(&read_tags(tags, self.ctx.policy.zone, now), now);
        let was = before.node(&seen.id).hold.filter(|hold| hold.keeps(now));
        let (pool, node) = (seen.pool, seen.id);
        let effect = effect(EffectKind::Released, &pool, Some(&node), self.note());
        done(Obeyed::Released { pool, node, was, by_tag }, vec![effect])
    }

    fn closed(&mut self, pool: PoolName, tries: Tries<Gate>, before: PoolRecord) -> Step {
        match tries.again(before.gate, |standing| self.joined_gate(standing)) {
            Ok(tries) => self.write_gate(pool, tries),
            Err(Tries { written: gate, was, .. }) => {
                let was = was.filter(|gate| gate.until.is_none_or(|until| self.ctx.now < until));
                let effect = effect(EffectKind::GateClosed, &pool, None, self.note());
                done(Obeyed::Closed { pool, gate, was }, vec![effect])
            }
        }
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
            Stage::Holding { seen, tries } => match take_hold_set(answers.into_iter().next()) {
                Ok(before) => self.held(seen, tries, &before),
                Err(error) => blind(error),
            },
            Stage::Releasing { seen } => match take_hold_set(answers.into_iter().next()) {
                Ok(before) => self.released(seen, &before),
                Err(error) => blind(error),
            },
            // A person's word is unconditional: there is always an item before it.
            Stage::Closing { pool, tries } => match take_gate_set(answers.into_iter().next()) {
                Ok(before) => self.closed(pool, tries, before.unwrap_or_default()),
                Err(error) => blind(error),
            },
            Stage::Opening { pool } => match take_gate_set(answers.into_iter().next()) {
                Ok(before) => {
                    let was = before.and_then(|before| before.closed_gate(self.ctx.now).cloned());
                    let effect = effect(EffectKind::GateOpened, &pool, None, self.note());
                    done(Obeyed::Opened { pool, was }, vec![effect])
                }
                Err(error) => blind(error),
            },
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
