//! One wake: records the demand, looks, claims and starts, and says what the callers are told. Also the read-only status
//! look, and the look after a state-change event.

use super::act::{Act, Acts, Intent};
use super::alert::{About, Alert, Whom};
use super::call::{Answer, Call, Cap, Demanded, Waiting, take_demand, take_ledger, take_nodes};
use super::evidence::note_fallen_start;
use super::launches::{self, Launches, Sight};
use super::look::{Facts, cannot_look, decided};
use super::outcome::{Decided, Effect, EffectKind, PoolAnswer};
use super::readiness::{self, Asked, Read};
use super::{Context, Outcome, Run, Step};
use crate::decide::wake::{WakeAction, WakeDecision, decide, is_for_wake, tried};
use crate::decide::{Look, Reason};
use crate::domain::{
    BootTime, ClaimKind, Fault, FaultKind, InstanceType, Instant, LeaseId, NodeId, NodeSeen, NodeState, Phase,
    PoolName, PoolRecord, Wake, WakeSource,
};
use crate::error::{CallError, ErrorClass, TookEffect};
use crate::policy::{MOST_TRIES, MOST_WAITING, PoolRules, WAITING};
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
    /// The beginning of a path that was asked for, out of the configured ones.
    pub path: Option<String>,
    /// Who asked, where it is a caller.
    pub caller: Option<Caller>,
    /// When the line was written.
    pub line_at: Option<Instant>,
    /// The call that waits, where it is one.
    pub call: Option<LeaseId>,
}

impl WakeWish {
    /// A wish of which no more is known than what is wanted and where it came from.
    pub fn new(target: Target, source: WakeSource) -> Self {
        Self { target, source, path: None, caller: None, line_at: None, call: None }
    }
}

/// Who called: never who it is in person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// A token's or a role's name, or the product in a log line's user agent.
    pub class: String,
    /// The bucket its wakes are counted in; none where they are not counted, as those of log lines.
    pub bucket: Option<String>,
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
    Readiness(Asked),
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
    /// The pools whose item has taken, or refused, the wake.
    recorded: BTreeSet<PoolName>,
    /// What is asked of each pool: any node, or one.
    questions: BTreeSet<(PoolName, Option<NodeId>)>,
    ready: Read,
    facts: Facts,
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
            recorded: BTreeSet::new(),
            questions: BTreeSet::new(),
            ready: Read::default(),
            facts: Facts::new(),
            tried: BTreeSet::new(),
            looked_again: false,
            outcome: Outcome::default(),
        }
    }

    /// The run of a call that found no node with room. `records` are the items as they were just read.
    pub(super) fn for_call(ctx: Context, wish: WakeWish, records: BTreeMap<PoolName, PoolRecord>) -> Self {
        Self { records, ..Self::new(ctx, Cause::Wishes(vec![wish])) }
    }
}

impl Run for WakeRun {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        let answers = self.ctx.credible(answers);
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => self.start(),
            Stage::Find => self.found(answers),
            Stage::Demand { with_nodes } => self.demanded(answers, with_nodes),
            Stage::Read | Stage::LookAgain => self.read(answers),
            Stage::Readiness(asked) => self.readiness(&asked, answers),
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
        let wish = match &self.cause {
            Cause::Wishes(wishes) => wishes.first(),
            Cause::Status(_) | Cause::StateChange => None,
        };
        let caller = wish.and_then(|wish| wish.caller.as_ref());
        let (each, all) = (self.ctx.policy.wakes_each, self.ctx.policy.wakes_all);
        let wake = Wake {
            at: self.ctx.now,
            source: self.source(),
            path: wish.and_then(|wish| wish.path.clone()),
            caller: caller.map(|caller| caller.class.clone()),
            line_at: wish.and_then(|wish| wish.line_at),
        };
        let cap = caller.and_then(|caller| Some(Cap { caller: caller.bucket.clone()?, each, all }));
        // A call that waits for a named node is served by no other.
        let any = wish.filter(|wish| matches!(wish.target, Target::Pool(_)));
        let call = any.and_then(|wish| wish.call.clone());
        self.questions.iter().map(move |(pool, node)| Call::RecordDemand {
            pool: pool.clone(),
            node: node.clone(),
            wake: wake.clone(),
            cap: cap.clone(),
            waiting: self.waiting(pool, call.as_ref()),
        })
    }

    /// A call that waits is remembered with the demand; those whose wait is over are cleared away on the occasion.
    fn waiting(&self, pool: &PoolName, call: Option<&LeaseId>) -> Waiting {
        let (now, none) = (self.ctx.now, PoolRecord::default());
        let record = self.records.get(pool).unwrap_or(&none);
        let over = record.waiting.iter().filter(|(id, until)| now >= **until && Some(*id) != call);
        let is_known = call.is_some_and(|id| record.waiting.contains_key(id));
        let has_room = is_known || record.calls_waiting(now) < MOST_WAITING;
        Waiting {
            call: call.filter(|_| has_room).map(|id| (id.clone(), now + WAITING)),
            // More may have waited, as many read at once that there is room; an expression has at most 4 KB.
            over: over.map(|(id, _)| id.clone()).take(MOST_WAITING).collect(),
        }
    }

    fn source(&self) -> WakeSource {
        match &self.cause {
            Cause::Wishes(wishes) => wishes.first().map_or(WakeSource::Prewarm, |wish| wish.source),
            Cause::Status(_) | Cause::StateChange => WakeSource::Prewarm,
        }
    }

    /// Such as `log_line for /v1/calls by okhttp`: classes only, and nobody in person.
    fn who_wants(&self) -> String {
        let wish = match &self.cause {
            Cause::Wishes(wishes) => wishes.first(),
            Cause::Status(_) | Cause::StateChange => None,
        };
        let path = wish.and_then(|wish| wish.path.as_deref()).map(|path| format!(" for {path}"));
        let caller = wish.and_then(|wish| wish.caller.as_ref()).map(|caller| format!(" by {}", caller.class));
        format!("{}{}{}", self.source().as_str(), path.unwrap_or_default(), caller.unwrap_or_default())
    }

    fn demanded(&mut self, answers: Vec<Answer>, with_nodes: bool) -> Step {
        let mut answers = answers.into_iter();
        for (pool, node) in self.questions.clone() {
            match take_demand(answers.next()) {
                Ok(Demanded::Recorded(record)) => {
                    self.records.insert(pool.clone(), record);
                    self.recorded.insert(pool.clone());
                    let reason = self.who_wants();
                    self.outcome.effects.push(Effect { event: EffectKind::Demand, pool: Some(pool), node, reason });
                }
                // The gate is closed, and the item says why: the decision says so too.
                Ok(Demanded::Refused(record)) => {
                    self.recorded.insert(pool.clone());
                    self.records.insert(pool.clone(), record);
                }
                Ok(Demanded::TooMany) => self.outcome.too_many = true,
                Err(error) => {
                    self.outcome.decided.push(cannot_look(&pool, node.as_ref(), &error));
                    self.outcome.blind = Some(error);
                }
            }
        }
        if with_nodes {
            match take_nodes(answers.next()) {
                Ok(nodes) => self.nodes = nodes,
                Err(error) => return self.blind(error),
            }
        }
        // A pool whose demand could not be recorded is not acted on; the others are.
        self.questions.retain(|(pool, _)| self.recorded.contains(pool));
        self.ask_readiness()
    }

    fn ask_readiness(&mut self) -> Step {
        let asked_about = |seen: &&NodeSeen| self.questions.iter().any(|(pool, _)| *pool == seen.pool);
        let nodes: Vec<NodeSeen> = self.nodes.iter().filter(asked_about).cloned().collect();
        // Lines of a log and events have nobody who waits for the answer.
        let is_heard = match &self.cause {
            Cause::Wishes(wishes) => wishes.iter().any(|wish| !wish.source.is_log()),
            Cause::Status(_) => true,
            Cause::StateChange => false,
        };
        let (asked, calls) = readiness::calls(&self.ctx, &nodes);
        if calls.is_empty() || !is_heard || self.looked_again {
            return self.decide();
        }
        self.stage = Stage::Readiness(asked);
        Step::Calls(calls)
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
        self.ask_readiness()
    }

    fn readiness(&mut self, asked: &Asked, answers: Vec<Answer>) -> Step {
        self.ready = readiness::read(asked, &mut answers.into_iter(), &mut self.outcome.failed);
        self.decide()
    }

    fn looks(&self, pool: &PoolName) -> Vec<Look> {
        let none = PoolRecord::default();
        let record = self.records.get(pool).unwrap_or(&none);
        readiness::looks(&self.ctx, &self.nodes, pool, record, &self.ready)
    }

    fn rules(&self, pool: &PoolName) -> PoolRules {
        self.ctx.pools.get(pool).map(|pool| pool.rules.clone()).unwrap_or_default()
    }

    fn decision(&self, looks: &[Look], pool: &PoolName, node: Option<&NodeId>) -> WakeDecision {
        let none = PoolRecord::default();
        let record = self.records.get(pool).unwrap_or(&none);
        decide(looks, record, node, &self.ctx.policy, &self.rules(pool), self.ctx.now)
    }

    fn is_for_wake(&self, looks: &[Look], pool: &PoolName, node: Option<&NodeId>) -> bool {
        let record = self.records.get(pool).cloned().unwrap_or_default();
        is_for_wake(looks, &record, node, &self.ctx.policy, self.ctx.now)
    }

    /// When a node became ready a caller's first sight does not tell: it may come long after. What a status look sees is not
    /// written down.
    fn note_readiness(&mut self, pool: &PoolName) {
        let record = self.records.get(pool).cloned().unwrap_or_default();
        let (nodes, outcome) = (&self.nodes, &mut self.outcome);
        let facts = readiness::facts(&self.ctx, nodes, pool, &record, &self.ready, false, outcome);
        if !facts.is_empty() {
            self.facts.entry(pool.clone()).or_default().extend(facts);
        }
    }

    fn decide(&mut self) -> Step {
        if matches!(self.cause, Cause::Status(_)) {
            return self.done();
        }
        let pools: BTreeSet<PoolName> = self.questions.iter().map(|(pool, _)| pool.clone()).collect();
        if !self.looked_again {
            pools.iter().for_each(|pool| self.note_readiness(pool));
        }
        let (mut intents, mut writes, mut alerts) = (Vec::<Intent>::new(), Vec::new(), Vec::<Alert>::new());
        let mut launches: BTreeMap<PoolName, Launches> = BTreeMap::new();
        let is_unread = !self.looked_again && self.source() == WakeSource::UnreadableBatch;
        alerts.extend(pools.iter().filter(|_| is_unread).map(|pool| self.unread_batch(pool)));
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
                let by_wake = self.is_for_wake(&looks, &pool, node.as_ref());
                let intent = Intent::new(look, Act::Start, decision.reason).with_type(kind);
                intents.push(intent.caused_by_wake(by_wake));
                self.tried.insert((id, tried));
            }
        }
        writes.extend(launches::calls(launches));
        let facts = std::mem::take(&mut self.facts);
        writes.extend(facts.into_iter().map(|(pool, facts)| Call::WriteFacts { pool, facts }));
        let acts = Acts::new(&self.ctx, self.records.clone(), intents, writes, alerts);
        self.acted(acts, Vec::new())
    }

    /// A batch too big to read is taken for a wake, and who pays for it is told once a day (field case 32).
    fn unread_batch(&self, pool: &PoolName) -> Alert {
        let error = CallError {
            act: format!("read a log batch for pool {pool}"),
            code: "TooLarge".to_owned(),
            message: "it inflates to more than is read, without a call so far".to_owned(),
            class: ErrorClass::Permanent,
            effect: TookEffect::No,
        };
        let done = "it was taken for a wake: what was not read may hold a call";
        About::new(&self.ctx, Whom::pool(pool)).cannot_do(&error, done)
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

    fn blind(&mut self, error: CallError) -> Step {
        // A node was named, and which pool it is of is not known: it may be any.
        let any = self.questions.is_empty().then(|| self.ctx.pools.keys().map(|pool| (pool, None)));
        let asked = self.questions.iter().map(|(pool, node)| (pool, node.as_ref()));
        let lines = asked.chain(any.into_iter().flatten()).map(|(pool, node)| cannot_look(pool, node, &error));
        let known = &self.outcome.decided;
        let new: Vec<Decided> = lines
            .filter(|line| known.iter().all(|other| (&other.pool, &other.node) != (&line.pool, &line.node)))
            .collect();
        self.outcome.decided.extend(new);
        self.outcome.blind = Some(error);
        Step::Done(std::mem::take(&mut self.outcome))
    }

    fn done(&mut self) -> Step {
        let asked = !matches!(self.cause, Cause::StateChange);
        for (pool, node) in self.questions.iter().filter(|_| asked) {
            let looks = self.looks(pool);
            let decision = self.decision(&looks, pool, node.as_ref());
            self.outcome.answers.push(self.answer(pool, node.as_ref(), &looks, &decision));
        }
        Step::Done(std::mem::take(&mut self.outcome))
    }

    /// What the caller is told. A START that is still wanted after this run has acted was refused as "not now": the node is
    /// on its way down, and the next look starts it. A ready node with room is ready, whatever else is wanted.
    fn answer(&self, pool: &PoolName, node: Option<&NodeId>, looks: &[Look], decision: &WakeDecision) -> PoolAnswer {
        let asks_only = matches!(self.cause, Cause::Status(_));
        let rules = self.rules(pool);
        let meant = || looks.iter().filter(|look| node.is_none_or(|id| *id == look.seen.id));
        let ready = || meant().filter(|look| look.phase() == Phase::Ready);
        let coming = || meant().find(|look| look.phase() == Phase::Starting && !look.is_of_no_use(&self.ctx.policy));
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
        let with_room = ready().find(|look| rules.has_room(look.record.calls(look.now)));
        let (look, reason) = match (reason, with_room, ready().next()) {
            (Reason::GateClosed, _, _) => (look, reason),
            (_, Some(up), _) => (Some(up), Reason::AlreadyReady),
            (_, None, Some(full)) => (Some(full), Reason::Full),
            // It was started for a named node, or by hand: it comes up all the same.
            (Reason::NotWanted, None, None) => match coming() {
                Some(look) => (Some(look), Reason::AlreadyStarting),
                None => (look, reason),
            },
            (_, None, None) => (look, reason),
        };
        let fault = look.and_then(|look| look.record.fault.as_ref()).filter(|_| reason == Reason::CoolingDown);
        let record = self.records.get(pool);
        let gate = record.and_then(|record| record.closed_gate(self.ctx.now));
        let boot = look.map(|look| self.boot_time(look));
        PoolAnswer {
            pool: pool.clone(),
            node: look.map(|look| look.seen.id.clone()),
            phase: look.map(Look::phase),
            reason,
            fault_code: fault.map(|fault| fault.code.clone()),
            fault_class: fault.map(|fault| fault.class),
            fault_since: fault.map(|fault| fault.since),
            ready_in_seconds: look.and_then(|look| self.ready_in(look, reason, looks)),
            boot_seconds: boot.as_ref().map(|boot| {
                let down = if reason == Reason::StoppingWillStart { STOP_TAKES } else { TimeDelta::zero() };
                (boot.median + down).num_seconds()
            }),
            spread_seconds: boot.filter(|boot| boot.boots > 0).map(|boot| boot.spread.num_seconds()),
            retry_after_seconds: fault.map(|fault| (fault.retry_at - self.ctx.now).num_seconds().max(1)),
            gate_reason: gate.map(|gate| gate.reason.clone()),
            gate_until: gate.and_then(|gate| gate.until),
            address: look.filter(|_| reason == Reason::AlreadyReady).and_then(|look| look.seen.address.clone()),
            woken_by: record.zip(look).and_then(|(record, look)| record.last_wake(&look.seen.id).cloned()),
            calls: look.map_or(0, |look| look.record.calls(self.ctx.now)),
        }
    }

    fn boot_time(&self, look: &Look) -> BootTime {
        let none = PoolRecord::default();
        let record = self.records.get(&look.seen.pool).unwrap_or(&none);
        record.boot_time(Some(&look.seen.id), self.ctx.policy.boot)
    }

    /// What the last boots took, less what has passed since the START, at least 5 seconds; a node that is going down first
    /// has to arrive there. Where all are full, the next one that is on its way.
    fn ready_in(&self, look: &Look, reason: Reason, looks: &[Look]) -> Option<i64> {
        if reason == Reason::AlreadyReady {
            return Some(0);
        }
        if reason == Reason::AlreadyStarting {
            return Some(self.rest_of_boot(look));
        }
        if reason == Reason::Full {
            let coming = looks.iter().filter(|look| look.phase() == Phase::Starting);
            return coming.map(|look| self.rest_of_boot(look)).min();
        }
        let stops_first = reason == Reason::StoppingWillStart;
        stops_first.then(|| (self.boot_time(look).median + STOP_TAKES).num_seconds())
    }

    fn rest_of_boot(&self, look: &Look) -> i64 {
        let claim = look.record.claim.as_ref().filter(|claim| claim.kind == ClaimKind::Start);
        let since = look.seen.launched_at.max(claim.map(|claim| claim.at)).unwrap_or(self.ctx.now);
        (self.boot_time(look).median - (self.ctx.now - since)).num_seconds().max(5)
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
