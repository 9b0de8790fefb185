//! One wake: records the demand, looks, claims and starts, and says what the callers are told. Also the read-only status
//! look, and the look after a state-change event.

use super::act::{Act, Acts, Intent};
use super::alert::{About, Alert, Whom};
use super::call::{Answer, Call, Demanded, take_demand, take_ledger, take_nodes, take_readiness};
use super::evidence::note_fallen_start;
use super::launches::{self, Launches, Sight};
use super::look::{decided, without_use};
use super::outcome::{Decided, Effect, EffectKind, PoolAnswer};
use super::{Context, Outcome, Run, Step};
use crate::decide::wake::{WakeAction, WakeDecision, decide, tried};
use crate::decide::{Look, Reason};
use crate::domain::{
    ClaimKind, Fault, FaultKind, InstanceType, NodeId, NodeSeen, NodeState, Phase, PoolName, PoolRecord, ReadyFact,
    Wake, WakeSource,
};
use crate::error::ErrorClass;
use crate::policy::MOST_TRIES;
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};

/// Which nodes are meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Any node of the pool.
    Pool(PoolName),
    /// The node with this Name tag or id.
    Node(String),
}

/// One wish of a caller or a log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeWish {
    /// What is wanted.
    pub target: Target,
    /// Where it came from.
    pub source: WakeSource,
}

/// Why the run was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Somebody wants nodes.
    Wishes(Vec<WakeWish>),
    /// Somebody asks; nothing is changed.
    Status(Target),
    /// EC2 says that some node changed its state: a hint to look whether an unmet wake can be met now.
    StateChange,
}

/// What callers are told a stop takes; EC2 promises nothing ("a few minutes" at most before it is hard).
const STOP_TAKES: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Start,
    /// Only a describe: a node was named, and which pool's item it belongs to is not known yet.
    Find,
    Demand {
        with_nodes: bool,
    },
    Read,
    Readiness,
    Act(Box<Acts>),
    LookAgain,
    Over,
}

/// A node and the type it is started as.
type Tried = (NodeId, Option<InstanceType>);

/// The wake run.
#[derive(Debug, Clone, PartialEq)]
pub struct WakeRun {
    ctx: Context,
    cause: Cause,
    stage: Stage,
    nodes: Vec<NodeSeen>,
    records: BTreeMap<PoolName, PoolRecord>,
    /// What is asked of each pool: any node, or one.
    questions: BTreeSet<(PoolName, Option<NodeId>)>,
    ready: BTreeSet<NodeId>,
    /// What this run has meant to start, and as which type: each is tried once, or twice where its claim was lost.
    tried: BTreeSet<Tried>,
    looked_again: bool,
    outcome: Outcome,
}

impl WakeRun {
    /// A run that is ready for its first `next`.
    pub fn new(ctx: Context, cause: Cause) -> Self {
        Self {
            ctx,
            cause,
            stage: Stage::Start,
            nodes: Vec::new(),
            records: BTreeMap::new(),
            questions: BTreeSet::new(),
            ready: BTreeSet::new(),
            tried: BTreeSet::new(),
            looked_again: false,
            outcome: Outcome::default(),
        }
    }
}

impl Run for WakeRun {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => self.start(),
            Stage::Find => self.found(answers),
            Stage::Demand { with_nodes } => self.demanded(answers, with_nodes),
            Stage::Read | Stage::LookAgain => self.read(answers),
            Stage::Readiness => self.readiness(answers),
            Stage::Act(acts) => self.acted(*acts, answers),
            Stage::Over => self.done(),
        }
    }
}

impl WakeRun {
    fn start(&mut self) -> Step {
        let targets: Vec<Target> = match &self.cause {
            Cause::Wishes(wishes) => wishes.iter().map(|wish| wish.target.clone()).collect(),
            Cause::Status(target) => vec![target.clone()],
            Cause::StateChange => self.ctx.pools.keys().cloned().map(Target::Pool).collect(),
        };
        let pools: Option<BTreeSet<PoolName>> = targets.iter().map(pool_of).collect();
        let Some(pools) = pools else {
            self.stage = Stage::Find;
            return Step::Calls(vec![Call::DescribeNodes { pools: Some(self.ctx.pools.keys().cloned().collect()) }]);
        };
        self.questions = pools.iter().map(|pool| (pool.clone(), None)).collect();
        if matches!(self.cause, Cause::Wishes(_)) {
            self.stage = Stage::Demand { with_nodes: true };
            let describe = Call::DescribeNodes { pools: Some(pools) };
            return Step::Calls(self.demands().chain([describe]).collect());
        }
        self.read_both(Stage::Read)
    }

    /// The named nodes and their pools are known now.
    fn found(&mut self, answers: Vec<Answer>) -> Step {
        match take_nodes(answers.into_iter().next()) {
            Ok(nodes) => self.nodes = nodes,
            Err(error) => return self.blind(error),
        }
        let targets: Vec<Target> = match &self.cause {
            Cause::Wishes(wishes) => wishes.iter().map(|wish| wish.target.clone()).collect(),
            Cause::Status(target) => vec![target.clone()],
            Cause::StateChange => Vec::new(),
        };
        for target in targets {
            match self.question(&target) {
                Some(question) => {
                    self.questions.insert(question);
                }
                None => self.outcome.not_found = Some(named(&target)),
            }
        }
        if self.questions.is_empty() {
            return self.done();
        }
        if matches!(self.cause, Cause::Wishes(_)) {
            self.stage = Stage::Demand { with_nodes: false };
            return Step::Calls(self.demands().collect());
        }
        self.read_both(Stage::Read)
    }

    fn question(&self, target: &Target) -> Option<(PoolName, Option<NodeId>)> {
        match target {
            Target::Pool(pool) => Some((pool.clone(), None)),
            // A terminated node may still be listed beside a new one of the same name (field case 09).
            Target::Node(word) => {
                let alive = |node: &&NodeSeen| node.is_called(word) && node.state != NodeState::Gone;
                self.nodes.iter().find(alive).map(|node| (node.pool.clone(), Some(node.id.clone())))
            }
        }
    }

    fn demands(&self) -> impl Iterator<Item = Call> + '_ {
        let wake = Wake { at: self.ctx.now, source: self.source() };
        self.questions.iter().map(move |(pool, node)| Call::RecordDemand {
            pool: pool.clone(),
            node: node.clone(),
            wake: wake.clone(),
        })
    }

    fn source(&self) -> WakeSource {
        match &self.cause {
            Cause::Wishes(wishes) => wishes.first().map_or(WakeSource::Prewarm, |wish| wish.source),
            Cause::Status(_) | Cause::StateChange => WakeSource::Prewarm,
        }
    }

    fn demanded(&mut self, answers: Vec<Answer>, with_nodes: bool) -> Step {
        let mut answers = answers.into_iter();
        for (pool, node) in self.questions.clone() {
            match take_demand(answers.next()) {
                Ok(Demanded::Recorded(record)) => {
                    self.records.insert(pool.clone(), record);
                    let reason = self.source().as_str().to_owned();
                    self.outcome.effects.push(Effect { event: EffectKind::Demand, pool: Some(pool), node, reason });
                }
                // The gate is closed, and the item says why: the decision says so too.
                Ok(Demanded::Refused(record)) => {
                    self.records.insert(pool.clone(), record);
                }
                Err(error) => self.outcome.blind = Some(error),
            }
        }
        if with_nodes {
            match take_nodes(answers.next()) {
                Ok(nodes) => self.nodes = nodes,
                Err(error) => return self.blind(error),
            }
        }
        // A pool whose demand could not be recorded is not acted on; the others are.
        self.questions.retain(|(pool, _)| self.records.contains_key(pool));
        self.decide()
    }

    fn read_both(&mut self, stage: Stage) -> Step {
        self.stage = stage;
        let pools: BTreeSet<PoolName> = self.questions.iter().map(|(pool, _)| pool.clone()).collect();
        Step::Calls(vec![Call::ReadLedger { pools: pools.clone() }, Call::DescribeNodes { pools: Some(pools) }])
    }

    fn read(&mut self, answers: Vec<Answer>) -> Step {
        let mut answers = answers.into_iter();
        match (take_ledger(answers.next()), take_nodes(answers.next())) {
            (Ok(records), Ok(nodes)) => {
                self.records = records;
                self.nodes = nodes;
            }
            (Err(error), _) | (_, Err(error)) => return self.blind(error),
        }
        if !matches!(self.cause, Cause::Status(_)) {
            return self.decide();
        }
        let unready: BTreeSet<NodeId> = self.all_looks().filter(is_running_unready).map(|look| look.seen.id).collect();
        if unready.is_empty() {
            return self.done();
        }
        self.stage = Stage::Readiness;
        Step::Calls(vec![Call::ReadReadiness { nodes: unready }])
    }

    fn readiness(&mut self, answers: Vec<Answer>) -> Step {
        match take_readiness(answers.into_iter().next()) {
            Ok(ready) => self.ready = ready,
            Err(error) => self.outcome.failed.push(error),
        }
        self.done()
    }

    fn all_looks(&self) -> impl Iterator<Item = Look> + '_ {
        self.questions.iter().flat_map(|(pool, _)| self.looks(pool))
    }

    fn looks(&self, pool: &PoolName) -> Vec<Look> {
        let none = PoolRecord::default();
        let record = self.records.get(pool).unwrap_or(&none);
        let of_pool = self.nodes.iter().filter(|node| node.pool == *pool);
        of_pool.map(|seen| self.with_readiness(without_use(&self.ctx, seen.clone(), record))).collect()
    }

    fn with_readiness(&self, mut look: Look) -> Look {
        if self.ready.contains(&look.seen.id) {
            look.record.ready = Some(ReadyFact { at: look.now, launched_at: look.seen.launched_at });
        }
        look
    }

    fn decision(&self, looks: &[Look], pool: &PoolName, node: Option<&NodeId>) -> WakeDecision {
        let none = PoolRecord::default();
        decide(looks, self.records.get(pool).unwrap_or(&none), node, &self.ctx.policy, self.ctx.now)
    }

    fn decide(&mut self) -> Step {
        let (mut intents, mut writes, mut alerts) = (Vec::<Intent>::new(), Vec::new(), Vec::<Alert>::new());
        let mut launches: BTreeMap<PoolName, Launches> = BTreeMap::new();
        for (pool, node) in self.questions.clone() {
            let mut looks = self.looks(&pool);
            // A caller waits for the other causes; what they see of launches is written down by the next tick.
            let writes_down = self.cause == Cause::StateChange;
            for look in looks.iter_mut().filter(|look| writes_down && has_moved(look)) {
                launches.entry(pool.clone()).or_default().note(look, Sight::State, &mut self.outcome);
            }
            for fallen in looks.iter_mut().filter_map(|look| note_fallen_start(&self.ctx, look)) {
                writes.push(fallen.write);
                alerts.push(fallen.alert);
                self.outcome.effects.push(fallen.effect);
            }
            self.keep_records_of(&looks);
            let decision = self.decision(&looks, &pool, node.as_ref());
            self.log(&pool, &looks, &decision);
            if decision.reason == Reason::NoNode {
                alerts.push(About::new(&self.ctx, Whom::pool(&pool)).no_node());
            }
            let (id, kind) = match decision.action {
                WakeAction::Nothing => continue,
                WakeAction::Start(id) => (id, None),
                WakeAction::StartAs(id, kind) => (id, Some(kind)),
            };
            let look = looks.iter().find(|look| look.seen.id == id);
            if let Some(look) = look.filter(|_| !intents.iter().any(|intent| intent.is_for(&id))) {
                let tried = kind.clone().or_else(|| look.seen.instance_type.clone());
                intents.push(Intent::new(look, Act::Start, decision.reason).with_type(kind));
                self.tried.insert((id, tried));
            }
        }
        writes.extend(launches::calls(launches));
        let acts = Acts::new(&self.ctx, self.records.clone(), intents, writes, alerts);
        self.acted(acts, Vec::new())
    }

    fn keep_records_of(&mut self, looks: &[Look]) {
        for look in looks {
            let record = self.records.entry(look.seen.pool.clone()).or_default();
            record.nodes.insert(look.seen.id.clone(), look.record.clone());
        }
    }

    fn log(&mut self, pool: &PoolName, looks: &[Look], decision: &WakeDecision) {
        let action = match decision.action {
            WakeAction::Nothing => "nothing",
            WakeAction::Start(_) => "start",
            WakeAction::StartAs(..) => "change_type_and_start",
        };
        let none = PoolRecord::default();
        let record = self.records.get(pool).unwrap_or(&none);
        let look = looks.iter().find(|look| Some(&look.seen.id) == decision.node.as_ref());
        let line = match look {
            Some(look) => decided(look, action, decision.reason, None, record),
            None => Decided {
                pool: pool.clone(),
                node: None,
                action: action.to_owned(),
                reason: decision.reason,
                inputs: serde_json::json!({"demand": record.demand}),
                stops_not_before: None,
                generation: record.claims,
            },
        };
        self.outcome.decided.retain(|earlier| earlier.pool != *pool || earlier.node != line.node);
        self.outcome.decided.push(line);
    }

    fn acted(&mut self, mut acts: Acts, answers: Vec<Answer>) -> Step {
        if let Some(calls) = acts.next(answers, &mut self.outcome) {
            self.stage = Stage::Act(Box::new(acts));
            return Step::Calls(calls);
        }
        self.records = acts.records().clone();
        self.nodes = std::mem::take(&mut self.nodes).into_iter().map(|seen| acts.as_changed(seen)).collect();
        let wanted = self.still_to_start();
        let is_enough = self.tried.len() >= MOST_TRIES;
        let has_next_candidate = !is_enough && wanted.iter().any(|tried| !self.tried.contains(tried));
        let lost_the_first = !acts.lost.is_empty() && !wanted.is_empty() && !self.looked_again;
        if has_next_candidate || lost_the_first {
            self.looked_again = true;
            self.tried.extend(wanted);
            return self.read_both(Stage::LookAgain);
        }
        self.done()
    }

    /// The nodes that are to be started after this run has acted: a claim was lost, or a candidate was refused and the
    /// next one has its turn.
    fn still_to_start(&self) -> BTreeSet<Tried> {
        let mut wanted = BTreeSet::new();
        for (pool, node) in &self.questions {
            let looks = self.looks(pool);
            wanted.extend(tried(&self.decision(&looks, pool, node.as_ref()).action, &looks));
        }
        wanted
    }

    fn blind(&mut self, error: crate::error::CallError) -> Step {
        self.outcome.blind = Some(error);
        Step::Done(std::mem::take(&mut self.outcome))
    }

    fn done(&mut self) -> Step {
        let asked = !matches!(self.cause, Cause::StateChange);
        for (pool, node) in self.questions.iter().filter(|_| asked) {
            let looks = self.looks(pool);
            let decision = self.decision(&looks, pool, node.as_ref());
            self.outcome.answers.push(self.answer(pool, &looks, &decision));
        }
        Step::Done(std::mem::take(&mut self.outcome))
    }

    /// What the caller is told. A START that is still wanted after this run has acted was refused as "not now": the node is
    /// on its way down, and the next look starts it.
    fn answer(&self, pool: &PoolName, looks: &[Look], decision: &WakeDecision) -> PoolAnswer {
        let asks_only = matches!(self.cause, Cause::Status(_));
        let look = looks.iter().find(|look| Some(&look.seen.id) == decision.node.as_ref());
        let start_fault = |look: &Look| look.record.fault.clone().filter(|fault| fault.kind == FaultKind::Start);
        let is_refused = |fault: Fault| fault.class != ErrorClass::Conflict;
        // The node spoken of says it itself; where it was not tried for want of time, those that were say it.
        let tried = |look: &&Look| self.tried.iter().any(|(id, _)| *id == look.seen.id);
        let was_refused = match look.and_then(start_fault) {
            Some(fault) => is_refused(fault),
            None => looks.iter().filter(tried).filter_map(start_fault).any(is_refused),
        };
        let reason = match decision.action {
            WakeAction::Nothing => decision.reason,
            WakeAction::Start(_) | WakeAction::StartAs(..) if asks_only => decision.reason,
            WakeAction::Start(_) | WakeAction::StartAs(..) if was_refused => Reason::CoolingDown,
            WakeAction::Start(_) | WakeAction::StartAs(..) => Reason::StoppingWillStart,
        };
        let up = looks.iter().find(|look| look.phase() == Phase::Ready);
        // Status of a node that runs with no wake behind it (started by hand): it is as ready as any other.
        let up = up.filter(|_| reason == Reason::NotWanted);
        let (look, reason) = up.map_or((look, reason), |up| (Some(up), Reason::AlreadyReady));
        let fault = look.and_then(|look| look.record.fault.as_ref()).filter(|_| reason == Reason::CoolingDown);
        let gate = self.records.get(pool).and_then(|record| record.closed_gate(self.ctx.now));
        PoolAnswer {
            pool: pool.clone(),
            node: look.map(|look| look.seen.id.clone()),
            phase: look.map(Look::phase),
            reason,
            fault_code: fault.map(|fault| fault.code.clone()),
            fault_since: fault.map(|fault| fault.since),
            ready_in_seconds: look.and_then(|look| self.ready_in(look, reason)),
            retry_after_seconds: fault.map(|fault| (fault.retry_at - self.ctx.now).num_seconds().max(1)),
            gate_reason: gate.map(|gate| gate.reason.clone()),
            gate_until: gate.and_then(|gate| gate.until),
            address: look.filter(|_| reason == Reason::AlreadyReady).and_then(|look| look.seen.address.clone()),
        }
    }

    /// The configured boot time less what has passed since the START, at least 5 seconds; a node that is going down first
    /// has to arrive there.
    fn ready_in(&self, look: &Look, reason: Reason) -> Option<i64> {
        let boot = self.ctx.policy.boot;
        if reason == Reason::AlreadyReady {
            return Some(0);
        }
        if reason == Reason::AlreadyStarting {
            let claim = look.record.claim.as_ref().filter(|claim| claim.kind == ClaimKind::Start);
            let since = look.seen.launched_at.max(claim.map(|claim| claim.at)).unwrap_or(self.ctx.now);
            return Some((boot - (self.ctx.now - since)).num_seconds().max(5));
        }
        let stops_first = reason == Reason::StoppingWillStart;
        stops_first.then(|| (boot + STOP_TAKES).num_seconds())
    }
}

fn pool_of(target: &Target) -> Option<PoolName> {
    match target {
        Target::Pool(pool) => Some(pool.clone()),
        Target::Node(_) => None,
    }
}

fn named(target: &Target) -> String {
    match target {
        Target::Pool(pool) => pool.as_str().to_owned(),
        Target::Node(word) => word.clone(),
    }
}

/// A launch that begins or ends. A wake does not say whether the node was used, and renews no sight.
fn has_moved(look: &Look) -> bool {
    look.record
        .launch
        .as_ref()
        .is_none_or(|known| Some(known.launched_at) != look.seen.launched_at || look.seen.state != NodeState::Running)
}

fn is_running_unready(look: &Look) -> bool {
    look.seen.state == NodeState::Running && look.phase() == Phase::Starting
}
