//! One lease: given on a ready node with room, renewed, or ended. A call that finds no room wakes one more node.

use super::call::{Answer, Call, LeaseGround, Leased, take_lease, take_ledger, take_nodes, take_recorded};
use super::outcome::{Effect, EffectKind, LeaseAnswer};
use super::readiness::{self, Asked, Read};
use super::wake::{Caller, Target, WakeRun, WakeWish};
use super::{Context, Outcome, Run, Step};
use crate::decide::Reason;
use crate::decide::lease::{LeaseAsk, LeaseDecision, decide, holder};
use crate::domain::{Instant, Lease, LeaseId, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, WakeSource};
use crate::error::{CallError, ErrorClass, TookEffect};
use crate::policy::WAITING;
use chrono::{SubsecRound as _, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};

/// Whoever is told to wait is told to ask again after 5 or 10 seconds; who does has seen what changed in between.
const BETWEEN_ASKS: TimeDelta = TimeDelta::seconds(30);

/// What it was decided on may change under it so often; a caller waits.
const MOST_ROUNDS: usize = 8;

/// What a caller wants of a lease.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseWish {
    /// The lease.
    pub id: LeaseId,
    /// On which nodes; to end one, in which pools.
    pub target: Option<Target>,
    /// For so long from now on; none to end it.
    pub lasts: Option<TimeDelta>,
    /// Only if it is live already.
    pub renews: bool,
    /// Who asks.
    pub caller: Caller,
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Start,
    /// A node was named, and its pool is not known yet.
    Find,
    Look {
        with_nodes: bool,
    },
    Readiness(Asked),
    Written {
        pool: PoolName,
        node: NodeId,
    },
    Note,
    Wake(Box<WakeRun>),
    Over,
}

/// The lease run.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseRun {
    ctx: Context,
    wish: LeaseWish,
    stage: Stage,
    nodes: Vec<NodeSeen>,
    records: BTreeMap<PoolName, PoolRecord>,
    ready: Read,
    node: Option<NodeId>,
    rounds: usize,
    /// It was told to wait a moment ago.
    has_just_asked: bool,
    outcome: Outcome,
}

impl LeaseRun {
    /// A run that is ready for its first `next`.
    pub fn new(ctx: Context, wish: LeaseWish) -> Self {
        Self {
            ctx,
            wish,
            stage: Stage::Start,
            nodes: Vec::new(),
            records: BTreeMap::new(),
            ready: Read::default(),
            node: None,
            rounds: 0,
            has_just_asked: false,
            outcome: Outcome::default(),
        }
    }
}

impl Run for LeaseRun {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        let answers = self.ctx.credible(answers);
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => self.start(),
            Stage::Find => self.found(answers),
            Stage::Look { with_nodes } => self.looked(answers, with_nodes),
            Stage::Readiness(asked) => {
                self.ready = readiness::read(&asked, &mut answers.into_iter(), &mut self.outcome.failed);
                self.decide()
            }
            Stage::Written { pool, node } => self.written(&pool, &node, answers),
            Stage::Note => {
                if let Err(error) = take_recorded(answers.into_iter().next()) {
                    self.outcome.unrecorded = Some(error);
                }
                self.done()
            }
            Stage::Wake(run) => self.wake(*run, answers),
            Stage::Over => self.done(),
        }
    }
}

impl LeaseRun {
    fn start(&mut self) -> Step {
        let all: BTreeSet<PoolName> = self.ctx.pools.keys().cloned().collect();
        match self.wish.target.clone() {
            Some(Target::Node(_)) => {
                self.stage = Stage::Find;
                Step::Calls(vec![Call::DescribeNodes { pools: Some(all) }])
            }
            Some(Target::Pool(pool)) => self.look(BTreeSet::from([pool])),
            None => self.look(all),
        }
    }

    fn look(&mut self, pools: BTreeSet<PoolName>) -> Step {
        let with_nodes = self.wish.lasts.is_some();
        self.stage = Stage::Look { with_nodes };
        let read = Call::ReadLedger { pools: pools.clone() };
        // Whether a lease may end depends on no node.
        Step::Calls(if with_nodes { vec![read, Call::DescribeNodes { pools: Some(pools) }] } else { vec![read] })
    }

    fn found(&mut self, answers: Vec<Answer>) -> Step {
        match take_nodes(answers.into_iter().next()) {
            Ok(nodes) => self.nodes = nodes,
            Err(error) => return self.blind(error),
        }
        let Some(Target::Node(word)) = self.wish.target.clone() else { return self.done() };
        let alive = |seen: &&NodeSeen| seen.is_called(&word) && seen.state != NodeState::Gone;
        let Some(seen) = self.nodes.iter().find(alive).cloned() else {
            self.outcome.not_found = Some(word);
            return self.done();
        };
        self.node = Some(seen.id);
        self.stage = Stage::Look { with_nodes: false };
        Step::Calls(vec![Call::ReadLedger { pools: BTreeSet::from([seen.pool]) }])
    }

    fn looked(&mut self, answers: Vec<Answer>, with_nodes: bool) -> Step {
        let mut answers = answers.into_iter();
        match take_ledger(answers.next()) {
            Ok(records) => self.records = records,
            Err(error) => return self.blind(error),
        }
        if with_nodes {
            match take_nodes(answers.next()) {
                Ok(nodes) => self.nodes = nodes,
                Err(error) => return self.blind(error),
            }
        }
        if self.wish.lasts.is_none() {
            return self.end();
        }
        self.nodes.retain(|seen| self.records.contains_key(&seen.pool));
        let (asked, calls) = readiness::calls(&self.ctx, &self.nodes);
        // One that is there is renewed whether its node is ready just now or not.
        let is_known = self.records.values().any(|record| holder(record, &self.wish.id).is_some());
        if calls.is_empty() || is_known || self.wish.renews {
            return self.decide();
        }
        self.stage = Stage::Readiness(asked);
        Step::Calls(calls)
    }

    /// Ends it wherever it is; one that is not there is over.
    fn end(&mut self) -> Step {
        let held = |(pool, record): (&PoolName, &PoolRecord)| {
            let node = holder(record, &self.wish.id)?.clone();
            let is_own = record.nodes.get(&node)?.leases.get(&self.wish.id)?.by == self.wish.caller.class;
            Some((is_own, pool.clone(), node))
        };
        // Ids are the callers' own: another one may have the same in another pool.
        let found = self.records.iter().filter_map(held).max_by_key(|(is_own, ..)| *is_own);
        let Some((is_own, pool, node)) = found else { return self.wait_no_more() };
        if !is_own {
            return self.answered(LeaseAnswer::Foreign);
        }
        let (id, by, at) = (self.wish.id.clone(), self.wish.caller.class.clone(), self.now());
        self.stage = Stage::Written { pool: pool.clone(), node: node.clone() };
        Step::Calls(vec![Call::EndLease { pool, node, id, by, at }])
    }

    /// It had no lease yet, but may wait for one: no node is started for a call that has hung up.
    fn wait_no_more(&mut self) -> Step {
        let waits = self.records.iter().find(|(_, record)| record.waiting.contains_key(&self.wish.id));
        self.outcome.lease = Some(LeaseAnswer::Over);
        let Some((pool, _)) = waits else { return self.done() };
        self.stage = Stage::Note;
        Step::Calls(vec![Call::StopWaiting { pool: pool.clone(), id: self.wish.id.clone() }])
    }

    /// Whole seconds, as leases are kept in.
    fn now(&self) -> Instant {
        self.ctx.now.trunc_subsecs(0)
    }

    fn decide(&mut self) -> Step {
        let Some((pool, record)) = self.records.iter().next().map(|(pool, record)| (pool.clone(), record.clone()))
        else {
            return self.done();
        };
        self.rounds += 1;
        if self.rounds > MOST_ROUNDS {
            return self.blind(contended(&self.wish.id));
        }
        let asked = record.waiting.get(&self.wish.id).map(|until| *until - WAITING);
        self.has_just_asked |= asked.is_some_and(|at| self.ctx.now - at <= BETWEEN_ASKS);
        let rules = self.ctx.pools.get(&pool).map(|pool| pool.rules.clone()).unwrap_or_default();
        let looks = readiness::looks(&self.ctx, &self.nodes, &pool, &record, &self.ready);
        let ask = LeaseAsk {
            id: &self.wish.id,
            by: &self.wish.caller.class,
            renews: self.wish.renews,
            target: self.node.as_ref(),
        };
        let (id, lease) = (self.wish.id.clone(), self.lease());
        match decide(&looks, &record, &ask, &rules, self.ctx.now) {
            LeaseDecision::Renew(node) => {
                self.stage = Stage::Written { pool: pool.clone(), node: node.clone() };
                Step::Calls(vec![Call::RenewLease { pool, node, id, lease }])
            }
            LeaseDecision::Give(node) => {
                let ground = ground(&record, &node, &id, rules.most_leases(), self.ctx.now);
                self.stage = Stage::Written { pool: pool.clone(), node: node.clone() };
                Step::Calls(vec![Call::GiveLease { pool, node, id, lease, ground }])
            }
            LeaseDecision::Ended => self.answered(LeaseAnswer::Ended),
            LeaseDecision::Foreign => self.answered(LeaseAnswer::Foreign),
            // The wake says what there is to say: the gate, the boot, the fault; and starts one more node.
            LeaseDecision::GateClosed | LeaseDecision::NoRoom => self.wake_one_more(pool),
        }
    }

    fn lease(&self) -> Lease {
        let lasts = self.wish.lasts.unwrap_or_else(TimeDelta::zero);
        Lease { by: self.wish.caller.class.clone(), at: self.now(), until: self.now() + lasts }
    }

    fn wake_one_more(&mut self, pool: PoolName) -> Step {
        let target = match &self.wish.target {
            Some(Target::Node(word)) => Target::Node(word.clone()),
            Some(Target::Pool(_)) | None => Target::Pool(pool),
        };
        let wish = WakeWish {
            path: Some("/leases".to_owned()),
            caller: Some(self.wish.caller.clone()),
            line_at: Some(self.ctx.now),
            call: Some(self.wish.id.clone()),
            ..WakeWish::new(target, WakeSource::Call)
        };
        let run = WakeRun::for_call(self.ctx.clone(), wish, self.records.clone());
        self.wake(run, Vec::new())
    }

    fn wake(&mut self, mut run: WakeRun, answers: Vec<Answer>) -> Step {
        match run.next(answers) {
            Step::Calls(calls) => {
                self.stage = Stage::Wake(Box::new(run));
                Step::Calls(calls)
            }
            Step::Done(outcome) => {
                // Room came while the wake was recorded. Who asks for a lease and is told "ready" would begin a call that
                // nothing protects.
                let has_room = outcome.answers.iter().any(|answer| answer.reason == Reason::AlreadyReady);
                let before = std::mem::take(&mut self.outcome);
                self.outcome = Outcome { lease: Some(LeaseAnswer::NotYet), ..outcome };
                self.outcome.failed.extend(before.failed);
                self.outcome.effects.extend(before.effects);
                if has_room {
                    (self.outcome.lease, self.outcome.answers) = (None, Vec::new());
                    return self.look(self.records.keys().cloned().collect());
                }
                self.done()
            }
        }
    }

    fn written(&mut self, pool: &PoolName, node: &NodeId, answers: Vec<Answer>) -> Step {
        let record = match take_lease(answers.into_iter().next()) {
            Ok(Leased::Done(record)) => record,
            // The write took effect and its answer was lost on the way, or another delivery of the same request won.
            Ok(Leased::Moved(record)) if self.stands(&record, node) => record,
            Ok(Leased::Moved(record)) => {
                self.records = BTreeMap::from([(pool.clone(), record)]);
                return if self.wish.lasts.is_some() { self.decide() } else { self.end() };
            }
            Err(error) => return self.blind(error),
        };
        self.records = BTreeMap::from([(pool.clone(), record)]);
        if self.wish.lasts.is_none() {
            self.effect(EffectKind::LeaseEnded, pool, node);
            return self.answered(LeaseAnswer::Over);
        }
        self.effect(EffectKind::Leased, pool, node);
        let address = self.nodes.iter().find(|seen| seen.id == *node).and_then(|seen| seen.address.clone());
        let until = self.lease().until;
        self.outcome.lease = Some(LeaseAnswer::Held { pool: pool.clone(), node: node.clone(), address, until });
        self.note_readiness(pool)
    }

    /// What was written stands in the item already.
    fn stands(&self, record: &PoolRecord, node: &NodeId) -> bool {
        let known = record.nodes.get(node).and_then(|node| node.leases.get(&self.wish.id));
        self.wish.lasts.is_some() && known == Some(&self.lease())
    }

    /// A call that has just been told to wait sees a node become ready to within seconds; any other may come long after.
    fn note_readiness(&mut self, pool: &PoolName) -> Step {
        let record = self.records.get(pool).cloned().unwrap_or_default();
        let (nodes, sharp, outcome) = (&self.nodes, self.has_just_asked, &mut self.outcome);
        let facts = readiness::facts(&self.ctx, nodes, pool, &record, &self.ready, sharp, outcome);
        if facts.is_empty() {
            return self.done();
        }
        self.stage = Stage::Note;
        Step::Calls(vec![Call::WriteFacts { pool: pool.clone(), facts }])
    }

    fn effect(&mut self, event: EffectKind, pool: &PoolName, node: &NodeId) {
        let (pool, node, reason) = (Some(pool.clone()), Some(node.clone()), self.wish.id.to_string());
        self.outcome.effects.push(Effect { event, pool, node, reason });
    }

    fn answered(&mut self, answer: LeaseAnswer) -> Step {
        self.outcome.lease = Some(answer);
        self.done()
    }

    fn blind(&mut self, error: CallError) -> Step {
        self.outcome.blind = Some(error);
        self.done()
    }

    fn done(&mut self) -> Step {
        Step::Done(std::mem::take(&mut self.outcome))
    }
}

fn ground(record: &PoolRecord, node: &NodeId, id: &LeaseId, most: u32, now: Instant) -> LeaseGround {
    let known = record.node(node);
    let over = known.leases.iter().filter(|(_, lease)| !lease.is_live(now)).map(|(id, _)| id.clone());
    LeaseGround {
        claim: known.claim.as_ref().map(|claim| (claim.run.clone(), claim.kind)),
        most,
        is_first: known.leases.is_empty(),
        over: over.collect(),
        was_waiting: record.waiting.contains_key(id),
    }
}

fn contended(id: &LeaseId) -> CallError {
    CallError {
        act: format!("lease {id}"),
        code: "Contended".to_owned(),
        message: "others wrote at every try".to_owned(),
        class: ErrorClass::Transient,
        effect: TookEffect::No,
    }
}
