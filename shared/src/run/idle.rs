//! One tick: looks at every node, stops what is idle, repeats what had no effect, starts what an unmet wake still wants.

use super::act::{Act, Acts, Intent};
use super::alert::{About, Alert};
use super::call::{Activity, Answer, Call, Fact, take_activity, take_ledger, take_nodes, take_readiness};
use super::evidence::{fault_is_over, is_late, note_fallen_start};
use super::look::{Facts, activity_call, decided, used, without_use};
use super::outcome::{Decided, Effect, EffectKind};
use super::{Context, Outcome, Run, Step};
use crate::decide::idle::{IdleAction, IdleDecision};
use crate::decide::wake::WakeAction;
use crate::decide::{Look, Reason, blind, idle, wake};
use crate::domain::{Mark, NodeId, NodeRecord, NodeSeen, NodeState, Phase, PoolName, PoolRecord, ReadyFact};
use crate::error::CallError;
use crate::observation::{Unread, is_overdue};
use chrono::{TimeDelta, Timelike as _};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Start,
    Look,
    Signals { nodes: Vec<NodeSeen>, activity: bool, readiness: bool },
    Act(Box<Acts>),
    Over,
}

/// The idle check.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleRun {
    ctx: Context,
    stage: Stage,
    records: BTreeMap<PoolName, PoolRecord>,
    outcome: Outcome,
    /// On the second look: only these nodes are decided again.
    only: Option<BTreeSet<NodeId>>,
    facts: Facts,
    writes: Vec<Call>,
    alerts: Vec<Alert>,
    intents: Vec<Intent>,
}

impl IdleRun {
    /// A run that is ready for its first `next`.
    pub fn new(ctx: Context) -> Self {
        Self {
            ctx,
            stage: Stage::Start,
            records: BTreeMap::new(),
            outcome: Outcome::default(),
            only: None,
            facts: Facts::new(),
            writes: Vec::new(),
            alerts: Vec::new(),
            intents: Vec::new(),
        }
    }
}

impl Run for IdleRun {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => self.look(),
            Stage::Look => self.looked(answers),
            Stage::Signals { nodes, activity, readiness } => {
                let mut answers = answers.into_iter();
                let points = if activity { take_activity(answers.next()) } else { Ok(Activity::new()) };
                let ready = if readiness { take_readiness(answers.next()) } else { Ok(BTreeSet::new()) };
                self.signalled(nodes, &points, ready)
            }
            Stage::Act(acts) => self.acted(*acts, answers),
            Stage::Over => Step::Done(std::mem::take(&mut self.outcome)),
        }
    }
}

impl IdleRun {
    fn look(&mut self) -> Step {
        self.stage = Stage::Look;
        let pools = self.ctx.pools.keys().cloned().collect();
        Step::Calls(vec![Call::DescribeNodes { pools: None }, Call::ReadLedger { pools }])
    }

    fn looked(&mut self, answers: Vec<Answer>) -> Step {
        let mut answers = answers.into_iter();
        let (nodes, records) = (take_nodes(answers.next()), take_ledger(answers.next()));
        match (nodes, records) {
            (Ok(nodes), Ok(records)) => {
                self.records = records;
                self.ask_signals(nodes)
            }
            // An error is never a state (field case 08): nothing is done, and it is told if it lasts.
            (Err(error), Ok(records)) => {
                self.records = records;
                self.count_every_node_as_unknown(&error);
                self.outcome.blind = Some(error);
                self.act()
            }
            (_, Err(error)) => {
                self.tell_that_the_ledger_is_lost(&error);
                self.outcome.blind = Some(error);
                self.act()
            }
        }
    }

    fn ask_signals(&mut self, nodes: Vec<NodeSeen>) -> Step {
        let activity = activity_call(&self.ctx, &nodes);
        let unready: BTreeSet<NodeId> =
            nodes.iter().filter(|node| self.is_unready(node)).map(|node| node.id.clone()).collect();
        let readiness = (!unready.is_empty()).then_some(Call::ReadReadiness { nodes: unready });
        self.stage = Stage::Signals { nodes, activity: activity.is_some(), readiness: readiness.is_some() };
        let calls: Vec<Call> = activity.into_iter().chain(readiness).collect();
        if calls.is_empty() { self.next(Vec::new()) } else { Step::Calls(calls) }
    }

    /// Running since a launch at which nobody has seen it ready yet.
    fn is_unready(&self, node: &NodeSeen) -> bool {
        let known =
            self.record(&node.pool).node(&node.id).ready.is_some_and(|ready| ready.launched_at == node.launched_at);
        node.state == NodeState::Running && self.ctx.pools.contains_key(&node.pool) && !known
    }

    fn record(&self, pool: &PoolName) -> PoolRecord {
        self.records.get(pool).cloned().unwrap_or_default()
    }

    fn signalled(
        &mut self,
        nodes: Vec<NodeSeen>,
        activity: &Result<Activity, CallError>,
        ready: Result<BTreeSet<NodeId>, CallError>,
    ) -> Step {
        self.outcome.failed.extend(activity.as_ref().err().cloned());
        let ready = ready.unwrap_or_else(|error| {
            self.outcome.failed.push(error);
            BTreeSet::new()
        });
        let mut looks: BTreeMap<PoolName, Vec<Look>> =
            self.ctx.pools.keys().map(|pool| (pool.clone(), vec![])).collect();
        for seen in nodes {
            let Some(pool) = looks.get_mut(&seen.pool) else {
                self.meet_unknown_pool(seen);
                continue;
            };
            let record = self.records.entry(seen.pool.clone()).or_default();
            let reading = used(&self.ctx, &seen, record, activity);
            pool.push(Look { used: reading, ..without_use(&self.ctx, seen, record) });
        }
        for looks in looks.values_mut() {
            for look in looks.iter_mut() {
                self.note_evidence(look, &ready);
            }
        }
        for (pool, looks) in &looks {
            self.decide_idle(looks);
            self.decide_wakes(pool, looks);
        }
        self.act()
    }

    /// Nothing can tell whether such a node is used: it is kept, and a person is told.
    fn meet_unknown_pool(&mut self, seen: NodeSeen) {
        if seen.state == NodeState::Running && self.only.is_none() {
            let about = About { pool: &seen.pool, node: Some(&seen.id), now: self.ctx.now };
            self.alerts.push(about.unknown_pool());
            let look = Look { used: Err(Unread::NoSignals), ..without_use(&self.ctx, seen, &PoolRecord::default()) };
            let line = decided(&look, "keep", Reason::SignalsUnknown, None, &PoolRecord::default());
            self.outcome.decided.push(line);
        }
    }

    /// What this look proves, beyond what the ledger knew: readiness, a start that fell back, a refusal that is over.
    fn note_evidence(&mut self, look: &mut Look, ready: &BTreeSet<NodeId>) {
        if ready.contains(&look.seen.id) {
            let fact = ReadyFact { at: look.now, launched_at: look.seen.launched_at };
            look.record.ready = Some(fact.clone());
            self.fact(look, Fact::Ready(Some(fact)));
            self.effect(look, EffectKind::Ready, "status checks ok".to_owned());
        }
        if is_late(look) {
            let about = About { pool: &look.seen.pool, node: Some(&look.seen.id), now: self.ctx.now };
            self.alerts.push(about.not_ready(look.seen.launched_at));
        }
        if let Some(fallen) = note_fallen_start(&self.ctx, look) {
            self.writes.push(fallen.write);
            self.alerts.push(fallen.alert);
            self.outcome.effects.push(fallen.effect);
        }
        if fault_is_over(look) {
            look.record.fault = None;
            self.fact(look, Fact::Fault(None));
        }
    }

    fn decide_idle(&mut self, looks: &[Look]) {
        let asked: Vec<&Look> = looks.iter().filter(|look| self.is_asked(&look.seen.id)).collect();
        for look in asked {
            let decision = idle::decide(look, &self.ctx.policy);
            self.count_unknown(look, &decision);
            match decision.action {
                IdleAction::Keep => {}
                IdleAction::Mark => {
                    let mark = Mark { at: look.now, launched_at: look.seen.launched_at };
                    self.fact(look, Fact::Mark(Some(mark)));
                    self.effect(look, EffectKind::IdleMark, decision.reason.as_str().to_owned());
                }
                IdleAction::Stop => self.intents.push(Intent::new(look, Act::Stop, decision.reason)),
                IdleAction::ForceStop => self.intents.push(Intent::new(look, Act::ForceStop, decision.reason)),
            }
            let record = self.record(&look.seen.pool);
            let line = decided(look, word(decision.action), decision.reason, decision.stops_not_before, &record);
            self.outcome.decided.retain(|earlier| earlier.node.as_ref() != Some(&look.seen.id));
            self.outcome.decided.push(line);
        }
    }

    /// Starts what a wake still wants: for the pool, and for each node that was named.
    fn decide_wakes(&mut self, pool: &PoolName, looks: &[Look]) {
        let record = self.record(pool);
        let named = record.nodes.iter().filter(|(_, node)| node.wake.is_some()).map(|(id, _)| Some(id.clone()));
        for target in std::iter::once(None).chain(named) {
            let decision = wake::decide(looks, &record, target.as_ref(), &self.ctx.policy, self.ctx.now);
            if decision.reason == Reason::NoNode && target.is_none() {
                self.alerts.push(About { pool, node: None, now: self.ctx.now }.no_node());
            }
            let WakeAction::Start(id) = decision.action else { continue };
            let claimed = self.intents.iter().any(|intent| intent.is_for(&id));
            let look = looks.iter().find(|look| look.seen.id == id);
            if let Some(look) = look.filter(|look| !claimed && self.is_asked(&look.seen.id)) {
                self.intents.push(Intent::new(look, Act::Start, decision.reason));
                self.outcome.decided.push(decided(look, "start", decision.reason, None, &record));
            }
        }
    }

    fn is_asked(&self, id: &NodeId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(id))
    }

    fn count_unknown(&mut self, look: &Look, decision: &IdleDecision) {
        if decision.reason == Reason::SignalsUnknown
            || is_kept_by_missing_proof(look, decision)
            || is_stop_in_the_dark(look)
        {
            let why = look.used.as_ref().err().copied().unwrap_or(Unread::SourceSilent);
            self.one_more_unknown(&look.seen.pool, &look.seen.id, &look.record, why);
        } else if look.record.blind.is_some() {
            self.fact(look, Fact::Blind(None));
        }
    }

    fn one_more_unknown(&mut self, pool: &PoolName, id: &NodeId, record: &NodeRecord, why: Unread) {
        let blind = blind::one_more(record.blind.as_ref(), self.ctx.now);
        if blind.told > 0 {
            let about = About { pool, node: Some(id), now: self.ctx.now };
            self.alerts.push(about.blind(why, blind.since, blind.told));
        }
        self.facts.entry(pool.clone()).or_default().push((id.clone(), Fact::Blind(Some(blind))));
    }

    /// The ledger that keeps alerts from being sent twice cannot be read: told in the first tick of each hour instead.
    fn tell_that_the_ledger_is_lost(&mut self, error: &CallError) {
        let into_the_hour = TimeDelta::minutes(i64::from(self.ctx.now.minute()));
        if into_the_hour < self.ctx.policy.tick {
            self.tell_pools(error);
        }
    }

    fn tell_pools(&mut self, error: &CallError) {
        for pool in self.ctx.pools.keys() {
            self.alerts.push(About { pool, node: None, now: self.ctx.now }.cannot_look(error));
        }
    }

    /// EC2 cannot be read: every node the ledger knows is unknown. Where it knows none, as on the first day, a lasting
    /// refusal is told at once: nothing else would ever count it.
    fn count_every_node_as_unknown(&mut self, error: &CallError) {
        if error.class.tells_at_once() && self.records.values().all(|record| record.nodes.is_empty()) {
            self.tell_pools(error);
        }
        for (pool, record) in self.records.clone() {
            for (id, node) in &record.nodes {
                self.one_more_unknown(&pool, id, node, Unread::Failed);
                self.outcome.decided.push(unseen(&pool, id, &record));
            }
        }
    }

    fn fact(&mut self, look: &Look, fact: Fact) {
        self.facts.entry(look.seen.pool.clone()).or_default().push((look.seen.id.clone(), fact));
    }

    fn effect(&mut self, look: &Look, event: EffectKind, reason: String) {
        let (pool, node) = (look.seen.pool.clone(), Some(look.seen.id.clone()));
        self.outcome.effects.push(Effect { event, pool, node, reason });
    }

    fn act(&mut self) -> Step {
        let mut facts = std::mem::take(&mut self.facts);
        // A START or STOP of this run may bring a fault of its own; the writes go out at once, so the old one is left to it.
        let acted_on = |node: &NodeId| self.intents.iter().any(|intent| intent.is_for(node));
        facts.values_mut().for_each(|facts| facts.retain(|(node, fact)| *fact != Fact::Fault(None) || !acted_on(node)));
        facts.retain(|_, facts| !facts.is_empty());
        let mut writes = std::mem::take(&mut self.writes);
        writes.extend(facts.into_iter().map(|(pool, facts)| Call::WriteFacts { pool, facts }));
        let (intents, alerts) = (std::mem::take(&mut self.intents), std::mem::take(&mut self.alerts));
        let acts = Acts::new(&self.ctx, self.records.clone(), intents, writes, alerts);
        self.acted(acts, Vec::new())
    }

    fn acted(&mut self, mut acts: Acts, answers: Vec<Answer>) -> Step {
        if let Some(calls) = acts.next(answers, &mut self.outcome) {
            self.stage = Stage::Act(Box::new(acts));
            return Step::Calls(calls);
        }
        if self.only.is_none() && !acts.lost.is_empty() {
            self.only = Some(std::mem::take(&mut acts.lost));
            return self.look();
        }
        Step::Done(std::mem::take(&mut self.outcome))
    }
}

/// Neither a request nor the launch keeps it, only that silence is not proved for long enough: a source with gaps would
/// keep it for ever.
fn is_kept_by_missing_proof(look: &Look, decision: &IdleDecision) -> bool {
    let unproved = look.used.as_ref().is_ok_and(|used| {
        Some(used.last_possible) != used.last_seen && Some(used.last_possible) > look.seen.launched_at
    });
    decision.reason == Reason::RecentUse && unproved
}

/// A STOP that shows no effect, on a node whose use is unknown: it is neither sent again nor given up.
fn is_stop_in_the_dark(look: &Look) -> bool {
    look.seen.state == NodeState::Running
        && look.phase() == Phase::Stopping
        && is_overdue(&look.record, look.now)
        && look.used.is_err()
}

/// The line of a node that could not be looked at.
fn unseen(pool: &PoolName, id: &NodeId, record: &PoolRecord) -> Decided {
    let blind = record.nodes.get(id).and_then(|node| node.blind.as_ref());
    Decided {
        pool: pool.clone(),
        node: Some(id.clone()),
        action: "keep".to_owned(),
        reason: Reason::SignalsUnknown,
        inputs: serde_json::json!({"unknown": Unread::Failed, "unknown_since": blind.map(|blind| blind.since)}),
        stops_not_before: None,
        generation: record.claims,
    }
}

fn word(action: IdleAction) -> &'static str {
    match action {
        IdleAction::Keep => "keep",
        IdleAction::Mark => "mark",
        IdleAction::Stop => "stop",
        IdleAction::ForceStop => "force_stop",
    }
}
