//! One tick: looks at every node, stops what is idle, repeats what had no effect, starts what an unmet wake still wants.

use super::act::{Act, Acts, Intent};
use super::alert::{About, Alert, Whom};
use super::call::{
    Activity, Answer, Call, Fact, LogActivity, take_activity, take_beats, take_ledger, take_logs, take_nodes,
    take_readiness,
};
use super::evidence::{NEVER_READY, is_late, never_ready, never_ready_tries, note_fallen_start, settle_fault};
use super::launches::{Launches, Sight, wasted, wasted_today};
use super::look::{Facts, Signals, activity_call, cannot_look, decided, logs_call, unseen_pools, used, without_use};
use super::outcome::{Decided, Effect, EffectKind};
use super::readiness::{self, Read};
use super::{Context, Outcome, Run, Step};
use crate::decide::idle::{IdleAction, IdleDecision};
use crate::decide::uptime::LocalDay;
use crate::decide::wake::WakeAction;
use crate::decide::{Look, Readiness, Reason, blind, idle, wake};
use crate::domain::{
    AlertKey, Blind, Fault, FaultKind, GateKeeper, InstanceType, Instant, MOST_NOISE_WAKES, Mark, NodeId, NodeRecord,
    NodeSeen, NodeState, Phase, PoolName, PoolRecord,
};
use crate::error::{CallError, ErrorClass, TookEffect};
use crate::observation::{Unread, is_overdue};
use crate::policy::{BETWEEN_READINGS, DRAIN_DEADLINE, MOST_TRIES, PoolRules};
use chrono::{TimeDelta, Timelike as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What wakes and claims depend on.
const COUNTERS: [&str; 2] = ["demand", "claims"];

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Start,
    Look,
    Signals { nodes: Vec<NodeSeen>, activity: bool, logs: bool, beats: bool, readiness: bool },
    Act(Box<Acts>),
    Over,
}

/// The idle check.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleRun {
    ctx: Context,
    stage: Stage,
    /// Shared, because every node's look needs the whole of its pool's.
    records: BTreeMap<PoolName, Arc<PoolRecord>>,
    outcome: Outcome,
    /// On the second look: only these nodes are decided again.
    only: Option<BTreeSet<NodeId>>,
    facts: Facts,
    writes: Vec<Call>,
    alerts: Vec<Alert>,
    intents: Vec<Intent>,
    /// What the first look read of use.
    signals: Option<Signals>,
    /// And of readiness: a second look knows no more.
    ready: Read,
    /// Writes that wait until the message of their key is out.
    deferred: Vec<(AlertKey, Call)>,
    /// The nodes as they were listed last, and what was tried to be started, each once a run.
    nodes: Vec<NodeSeen>,
    tried: BTreeSet<(NodeId, Option<InstanceType>)>,
    /// Stopped nodes that are made the preferred type again.
    resizes: Vec<(Whom, InstanceType)>,
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
            signals: None,
            ready: Read::default(),
            deferred: Vec::new(),
            nodes: Vec::new(),
            tried: BTreeSet::new(),
            resizes: Vec::new(),
        }
    }
}

impl Run for IdleRun {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        let answers = self.ctx.credible(answers);
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => self.look(),
            Stage::Look => self.looked(answers),
            Stage::Signals { nodes, activity, logs, beats, readiness } => {
                let mut answers = answers.into_iter();
                let activity = if activity { take_activity(answers.next()) } else { Ok(Activity::new()) };
                let logs = if logs { take_logs(answers.next()) } else { Ok(LogActivity::new()) };
                let beats = if beats { take_beats(answers.next()) } else { Ok(BTreeMap::new()) };
                let checks = if readiness { take_readiness(answers.next()) } else { Ok(BTreeSet::new()) };
                let read = Signals { activity, logs, beats };
                self.ready = Read {
                    checks: checks.map_err(|error| self.outcome.failed.push(error)).ok(),
                    beats: read.beats.as_ref().ok().cloned(),
                    hosts: read.activity.as_ref().ok().cloned(),
                };
                self.signals = Some(read.clone());
                self.signalled(nodes, &read)
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
                self.records = shared(records);
                self.tell_of_lost_counters();
                self.ask_signals(nodes)
            }
            // An error is never a state (field case 08): nothing is done, and it is told if it lasts.
            (Err(error), Ok(records)) => {
                self.records = shared(records);
                self.count_every_node_as_unknown(&error);
                self.outcome.blind = Some(error);
                self.act()
            }
            (nodes, Err(error)) => {
                self.tell_that_the_ledger_is_lost(&error);
                // Where the second look failed, what the first one decided stands.
                if self.only.is_none() {
                    let nodes = nodes.unwrap_or_default();
                    let lines = nodes.iter().map(|seen| cannot_look(&seen.pool, Some(&seen.id), &error));
                    self.outcome.decided.extend(lines);
                }
                unseen_pools(&self.ctx, &mut self.outcome, &error);
                self.outcome.blind = Some(error);
                self.act()
            }
        }
    }

    fn ask_signals(&mut self, nodes: Vec<NodeSeen>) -> Step {
        self.nodes.clone_from(&nodes);
        // A second look asks what has been claimed meanwhile: the use was read a moment ago, and reading logs takes seconds.
        if let Some(read) = self.signals.clone() {
            return self.signalled(nodes, &read);
        }
        let (activity, logs) = (activity_call(&self.ctx, &nodes), logs_call(&self.ctx, &nodes));
        let beating: BTreeSet<NodeId> =
            nodes.iter().filter(|node| self.beats(node)).map(|node| node.id.clone()).collect();
        let beats = (!beating.is_empty()).then_some(Call::ReadBeats { nodes: beating });
        let unready: BTreeSet<NodeId> =
            nodes.iter().filter(|node| self.is_to_be_checked(node)).map(|node| node.id.clone()).collect();
        let readiness = (!unready.is_empty()).then_some(Call::ReadReadiness { nodes: unready });
        self.stage = Stage::Signals {
            nodes,
            activity: activity.is_some(),
            logs: logs.is_some(),
            beats: beats.is_some(),
            readiness: readiness.is_some(),
        };
        let calls: Vec<Call> = activity.into_iter().chain(logs).chain(beats).chain(readiness).collect();
        if calls.is_empty() { self.next(Vec::new()) } else { Step::Calls(calls) }
    }

    /// A running node whose beat is use, or readiness.
    fn beats(&self, node: &NodeSeen) -> bool {
        let rules = self.ctx.pools.get(&node.pool).map(|pool| &pool.rules);
        node.state == NodeState::Running && rules.is_some_and(|rules| rules.beat || readiness::by_beat(rules.ready))
    }

    /// Running since a launch at which nobody has seen its status checks pass yet. Later ticks save the call; who answers a
    /// caller asks again.
    fn is_to_be_checked(&self, node: &NodeSeen) -> bool {
        let known = self.record(&node.pool).node(&node.id).was_ready(node.launched_at);
        let by_checks = self.ctx.pools.get(&node.pool).is_some_and(|pool| readiness::by_checks(pool.rules.ready));
        node.state == NodeState::Running && by_checks && !known
    }

    fn record(&self, pool: &PoolName) -> Arc<PoolRecord> {
        self.records.get(pool).cloned().unwrap_or_default()
    }

    fn signalled(&mut self, nodes: Vec<NodeSeen>, read: &Signals) -> Step {
        // The second look has them from the first.
        if self.only.is_none() {
            let of_use = read.activity.as_ref().err().into_iter().chain(read.logs.as_ref().err());
            self.outcome.failed.extend(of_use.chain(read.beats.as_ref().err()).cloned());
        }
        let peers = nodes.clone();
        let mut looks: BTreeMap<PoolName, Vec<Look>> =
            self.ctx.pools.keys().map(|pool| (pool.clone(), vec![])).collect();
        for seen in nodes {
            let Some(pool) = looks.get_mut(&seen.pool) else {
                self.meet_unknown_pool(seen);
                continue;
            };
            let record = self.record(&seen.pool);
            let reading = used(&self.ctx, &seen, &record, read);
            let readiness = self.readiness_of(&seen, &peers, &record);
            pool.push(Look { used: reading, readiness, ..without_use(&self.ctx, seen, &record) });
        }
        for (pool, looks) in &mut looks {
            for look in looks.iter_mut() {
                self.note_evidence(look);
            }
            self.keep_wanted(pool, looks);
        }
        // A second look decides again; what happened was written down by the first.
        if self.only.is_none() {
            self.note_launches(&mut looks);
        }
        for (pool, looks) in &looks {
            self.decide_idle(looks);
            self.decide_wakes(pool, looks);
        }
        self.act()
    }

    fn readiness_of(&self, seen: &NodeSeen, peers: &[NodeSeen], record: &PoolRecord) -> Readiness {
        let readiness = readiness::of(&self.ctx, seen, peers, record, &self.ready);
        // A tick that saved the call knows nothing new.
        let saved = readiness == Readiness::NotReady && record.node(&seen.id).was_ready(seen.launched_at);
        let by_checks = self.ctx.pools.get(&seen.pool).is_some_and(|pool| readiness::by_checks(pool.rules.ready));
        if saved && by_checks { Readiness::Unknown } else { readiness }
    }

    /// Nothing can tell whether such a node is used: it is kept, and a person is told.
    fn meet_unknown_pool(&mut self, seen: NodeSeen) {
        if seen.state == NodeState::Running && self.only.is_none() {
            self.alerts.push(About::node(&self.ctx, &seen).unknown_pool(seen.launched_at));
            let look = Look { used: Err(Unread::NoSignals), ..without_use(&self.ctx, seen, &PoolRecord::default()) };
            let line = decided(&look, "keep", Reason::SignalsUnknown, None, &PoolRecord::default());
            self.outcome.decided.push(line);
        }
    }

    /// What this look proves, beyond what the ledger knew: readiness, a start that fell back, a refusal that is over.
    fn note_evidence(&mut self, look: &mut Look) {
        let record = self.record(&look.seen.pool);
        // On the second look what the first has seen is known.
        let mut unheard = Outcome::default();
        let outcome = if self.only.is_none() { &mut self.outcome } else { &mut unheard };
        for fact in readiness::note(&self.ctx, look, &record, false, outcome) {
            self.fact(look, fact);
        }
        if is_late(look, &self.ctx.policy) {
            let tries = never_ready_tries(look);
            self.alerts.push(About::node(&self.ctx, &look.seen).not_ready(look, tries, &self.ctx.policy));
        }
        // Where its use is unknown too a person is told of that, and once is enough.
        if let Some(lost_at) = look.out_since(&self.ctx.policy).filter(|_| look.used.is_ok()) {
            self.alerts.push(About::node(&self.ctx, &look.seen).ready_no_more(look, lost_at, &self.ctx.policy));
        }
        self.tell_of_hold(look);
        if let Some(fallen) = note_fallen_start(&self.ctx, look) {
            self.writes.push(fallen.write);
            self.alerts.push(fallen.alert);
            self.outcome.effects.push(fallen.effect);
        }
        if let Some(fact) = settle_fault(look) {
            self.fact(look, fact);
        }
    }

    /// The nodes that a warm window or calls want are kept, or the wake rule would start them again: those with calls first,
    /// those that are ready before those that boot, and the oldest first. One that will not become ready is of no use to
    /// either.
    fn keep_wanted(&self, pool: &PoolName, looks: &mut [Look]) {
        let (record, rules) = (self.record(pool), self.rules(pool));
        let (policy, now) = (&self.ctx.policy, self.ctx.now);
        let warm = wake::warm_wish(&rules, &record, policy, now).map_or(0, |wish| wish.nodes);
        let warm = usize::try_from(warm).unwrap_or(usize::MAX);
        // A closed gate lets no call in.
        let is_open = record.closed_gate(now).is_none();
        let all: Vec<&Look> = looks.iter().collect();
        let by_calls = if is_open { wake::nodes_for_calls(&all, &record, policy, &rules, now) } else { 0 };
        let is_up =
            |look: &&mut Look| matches!(look.phase(), Phase::Ready | Phase::Starting) && !look.is_of_no_use(policy);
        let mut up: Vec<&mut Look> = looks.iter_mut().filter(is_up).collect();
        up.sort_by_key(|look| {
            let calls = std::cmp::Reverse(look.record.calls(now));
            (calls, look.phase() != Phase::Ready, look.seen.launched_at, look.seen.id.clone())
        });
        for (n, look) in up.into_iter().enumerate() {
            (look.warm, look.reserve) = (n < warm, n < by_calls);
        }
    }

    fn rules(&self, pool: &PoolName) -> PoolRules {
        self.ctx.pools.get(pool).map(|pool| pool.rules.clone()).unwrap_or_default()
    }

    /// A tag that keeps a running node and that no rule can follow is told once a day (field case 25).
    fn tell_of_hold(&mut self, look: &Look) {
        if look.seen.state == NodeState::Running && self.only.is_none() {
            self.alerts.extend(About::node(&self.ctx, &look.seen).strange_hold(&look.tag_hold));
        }
    }

    /// Launches that are new, used for the first time, or over; one that served nobody is counted (field case 20).
    fn note_launches(&mut self, looks: &mut BTreeMap<PoolName, Vec<Look>>) {
        for (pool, looks) in looks {
            let mut launches = Launches::default();
            for look in looks.iter_mut() {
                let before = self.records.get(pool).map(|record| record.node(&look.seen.id)).unwrap_or_default();
                launches.note(look, Sight::Judged, &mut self.outcome);
                if let Some(noise) = wasted(&self.ctx, &before, look) {
                    let record = Arc::make_mut(self.records.entry(pool.clone()).or_default());
                    record.nodes.entry(look.seen.id.clone()).or_default().noise = Some(noise.clone());
                    self.fact(look, Fact::Noise(Some(noise)));
                }
            }
            self.tell_noise(pool);
            self.writes.extend(launches.call(pool));
        }
    }

    fn tell_noise(&mut self, pool: &PoolName) {
        let record = self.record(pool);
        let (lines, prewarms) = wasted_today(&record, self.ctx.now);
        if lines.max(prewarms) > MOST_NOISE_WAKES {
            let since = LocalDay::of(self.ctx.policy.zone, self.ctx.now).from;
            self.alerts.push(About::new(&self.ctx, Whom::pool(pool)).noise_wakes(lines, prewarms, since));
        }
    }

    fn decide_idle(&mut self, looks: &[Look]) {
        let asked: Vec<&Look> = looks.iter().filter(|look| self.is_asked(&look.seen.id)).collect();
        // What an earlier look said of them is no more.
        let again: BTreeSet<&NodeId> = asked.iter().map(|look| &look.seen.id).collect();
        self.outcome.decided.retain(|earlier| earlier.node.as_ref().is_none_or(|node| !again.contains(node)));
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
                IdleAction::Stop if decision.reason == Reason::NeverReady => {
                    let fault = never_ready(look, self.ctx.now);
                    self.intents.push(Intent::new(look, Act::Stop, decision.reason).with_fault_once_stopped(fault));
                }
                IdleAction::Stop => self.intents.push(Intent::new(look, Act::Stop, decision.reason)),
                IdleAction::ForceStop => self.intents.push(Intent::new(look, Act::ForceStop, decision.reason)),
                IdleAction::PutBack => self.put_back(look),
            }
            self.tell_waiting_drain(look, &decision);
            if decision.action == IdleAction::Keep && look.seen.state == NodeState::Running {
                self.tell_of_refusal(look, FaultKind::Stop);
            }
            let record = self.record(&look.seen.pool);
            let line = decided(look, word(decision.action), decision.reason, decision.stops_not_before, &record);
            self.outcome.decided.push(line);
        }
    }

    fn put_back(&mut self, look: &Look) {
        let Some(to) = look.types.first().cloned() else { return };
        self.resizes.push((Whom::of(&look.seen), to));
    }

    fn tell_waiting_drain(&mut self, look: &Look, decision: &IdleDecision) {
        // A person's hold beats the budget's drain, and whoever pays is told at once (field case 24).
        let is_kept = matches!(decision.reason, Reason::Held | Reason::WarmWindow);
        // Between its two readings it waits for no call.
        let is_read = |mark: &Mark| look.now - mark.at < BETWEEN_READINGS;
        let for_a_reading = decision.action == IdleAction::Mark || look.record.mark.as_ref().is_some_and(is_read);
        let for_calls = matches!(decision.reason, Reason::Leased | Reason::OpenCall | Reason::SignalsUnknown);
        let waits = for_calls || (decision.reason == Reason::Draining && !for_a_reading);
        let is_due = |since: &Instant| is_kept || (waits && look.now - *since >= DRAIN_DEADLINE);
        let since = look.drained_since.filter(is_due);
        if let Some(since) = since {
            self.alerts.push(About::node(&self.ctx, &look.seen).drain_waits(look, since, decision.reason));
        }
    }

    /// A refusal that is waited out is told by every tick until one gets it out: the run that met it may have died before.
    fn tell_of_refusal(&mut self, look: &Look, kind: FaultKind) {
        let waits = |fault: &&Fault| fault.kind == kind && fault.class.tells_at_once() && look.now < fault.retry_at;
        let Some(fault) = look.record.fault.as_ref().filter(waits).filter(|fault| fault.code != NEVER_READY) else {
            return;
        };
        let (about, error) = (About::node(&self.ctx, &look.seen), noted(fault));
        let alert = match kind {
            FaultKind::Start => about.start_failed(&error, fault.since, fault.retry_at),
            FaultKind::Stop => about.cannot_stop(&error, fault.since, fault.retry_at),
        };
        if self.alerts.iter().all(|other| other.key != alert.key) {
            self.alerts.push(alert);
        }
    }

    /// A gate that the budget closed is told by the first run that finds it closed: the guard may have died before its
    /// message, and looks again an hour later.
    fn tell_of_gate(&mut self, record: &PoolRecord) {
        let gate = record.closed_gate(self.ctx.now).filter(|gate| gate.by == GateKeeper::Budget);
        let alert = gate.map(|gate| About::new(&self.ctx, Whom::default()).gate(Some(gate)));
        let is_new = |alert: &Alert| self.alerts.iter().all(|other| other.key != alert.key);
        if let Some(alert) = alert.filter(is_new) {
            self.alerts.push(alert);
        }
    }

    /// Starts what a wake still wants: for the pool, and for each node that was named.
    fn decide_wakes(&mut self, pool: &PoolName, looks: &[Look]) {
        let record = self.record(pool);
        let named = record.nodes.iter().filter(|(_, node)| node.wake.is_some()).map(|(id, _)| Some(id.clone()));
        for target in std::iter::once(None).chain(named) {
            let decision =
                wake::decide(looks, &record, target.as_ref(), &self.ctx.policy, &self.rules(pool), self.ctx.now);
            if decision.reason == Reason::CoolingDown {
                looks.iter().for_each(|look| self.tell_of_refusal(look, FaultKind::Start));
            }
            if decision.reason == Reason::GateClosed {
                self.tell_of_gate(&record);
            }
            if decision.reason == Reason::NoNode && target.is_none() {
                self.alerts.push(About::new(&self.ctx, Whom::pool(pool)).no_node());
            }
            let (id, kind) = match decision.action {
                WakeAction::Nothing => continue,
                WakeAction::Start(id) => (id, None),
                WakeAction::StartAs(id, kind) => (id, Some(kind)),
            };
            let claimed = self.intents.iter().any(|intent| intent.is_for(&id));
            let look = looks.iter().find(|look| look.seen.id == id);
            if let Some(look) = look.filter(|look| !claimed && self.is_asked(&look.seen.id)) {
                self.tried.insert((id, kind.clone().or_else(|| look.seen.instance_type.clone())));
                let by_wake = wake::is_for_wake(looks, &record, target.as_ref(), &self.ctx.policy, self.ctx.now);
                let intent = Intent::new(look, Act::Start, decision.reason).with_type(kind);
                self.intents.push(intent.caused_by_wake(by_wake));
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
            let why = look.used.as_ref().err().copied().unwrap_or(Unread::Gaps);
            let whom = Whom::of(&look.seen);
            self.one_more_unknown(whom, &look.seen.pool, &look.seen.id, &look.record, why);
            return;
        }
        // Kept for another reason, and as unknown as before: that is no sight.
        let is_unknown = look.seen.state == NodeState::Running && look.used.is_err();
        if let Some(blind) = look.record.blind.as_ref().filter(|_| !is_unknown) {
            self.sees_again(look, blind);
        }
    }

    /// Who was told of blindness is told of its end.
    fn sees_again(&mut self, look: &Look, blind: &Blind) {
        if blind.told == 0 {
            return self.fact(look, Fact::Blind(None));
        }
        let alert = About::node(&self.ctx, &look.seen).sees_again(blind.since);
        let (pool, facts) = (look.seen.pool.clone(), vec![(look.seen.id.clone(), Fact::Blind(None))]);
        self.deferred.push((alert.key.clone(), Call::WriteFacts { pool, facts }));
        self.alerts.push(alert);
        self.effect(look, EffectKind::SeesAgain, "its signals can be read again".to_owned());
    }

    fn one_more_unknown(&mut self, whom: Whom, pool: &PoolName, id: &NodeId, record: &NodeRecord, why: Unread) {
        let blind = blind::one_more(record.blind.as_ref(), self.ctx.now);
        if blind.told > 0 {
            self.alerts.push(About::new(&self.ctx, whom).blind(why, blind.since, blind.told));
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

    /// A counter that is no number refuses every wake, or every claim: nothing of the pool is started or stopped (field case
    /// 23).
    fn tell_of_lost_counters(&mut self) {
        // The second look knows it from the first.
        for (pool, record) in self.records.iter().filter(|_| self.only.is_none()) {
            for counter in COUNTERS.into_iter().filter(|counter| record.unread.iter().any(|name| name == counter)) {
                let error = CallError {
                    act: format!("read the counter `{counter}` of pool {pool}"),
                    code: "Unreadable".to_owned(),
                    message: format!("the ledger's item pool#{pool} has no number there"),
                    class: ErrorClass::Permanent,
                    effect: TookEffect::No,
                };
                let done = format!("nothing of the pool is started or stopped until a person removes `{counter}`");
                self.alerts.push(About::new(&self.ctx, Whom::pool(pool)).cannot_do(&error, &done));
            }
        }
    }

    fn tell_pools(&mut self, error: &CallError) {
        for pool in self.ctx.pools.keys() {
            self.alerts.push(About::new(&self.ctx, Whom::pool(pool)).cannot_look(error));
        }
    }

    /// EC2 cannot be read: every node the ledger knows is unknown. Where it knows none, as on the first day, a lasting
    /// refusal is told at once: nothing else would ever count it.
    fn count_every_node_as_unknown(&mut self, error: &CallError) {
        let up = |node: &NodeRecord| node.launch.as_ref().is_none_or(|launch| launch.ended_at.is_none());
        if error.class.tells_at_once() && !self.records.values().any(|record| record.nodes.values().any(up)) {
            self.tell_pools(error);
        }
        for (pool, record) in self.records.clone() {
            // A node whose launch is over is not running, seen or unseen.
            for (id, node) in record.nodes.iter().filter(|(_, node)| up(node)) {
                let kind = node.launch.as_ref().and_then(|launch| launch.instance_type.clone());
                self.one_more_unknown(Whom::node(&pool, id, kind), &pool, id, node, Unread::Failed);
                self.outcome.decided.push(unseen(&pool, id, &record));
            }
        }
        unseen_pools(&self.ctx, &mut self.outcome, error);
    }

    fn fact(&mut self, look: &Look, fact: Fact) {
        self.facts.entry(look.seen.pool.clone()).or_default().push((look.seen.id.clone(), fact));
    }

    fn effect(&mut self, look: &Look, event: EffectKind, reason: String) {
        let (pool, node) = (Some(look.seen.pool.clone()), Some(look.seen.id.clone()));
        self.outcome.effects.push(Effect { event, pool, node, reason });
    }

    fn act(&mut self) -> Step {
        let mut facts = std::mem::take(&mut self.facts);
        // A START or STOP of this run may bring a fault of its own; the writes go out at once, so the old one is left to it.
        let acted_on = |node: &NodeId| self.intents.iter().any(|intent| intent.is_for(node));
        facts
            .values_mut()
            .for_each(|facts| facts.retain(|(node, fact)| !matches!(fact, Fact::Fault(_)) || !acted_on(node)));
        facts.retain(|_, facts| !facts.is_empty());
        let mut writes = std::mem::take(&mut self.writes);
        writes.extend(facts.into_iter().map(|(pool, facts)| Call::WriteFacts { pool, facts }));
        let (intents, alerts) = (std::mem::take(&mut self.intents), std::mem::take(&mut self.alerts));
        let records = self.records.iter().map(|(pool, record)| (pool.clone(), PoolRecord::clone(record))).collect();
        let acts = Acts::new(&self.ctx, records, intents, writes, alerts)
            .with_put_back(std::mem::take(&mut self.resizes))
            .with_deferred(std::mem::take(&mut self.deferred));
        // Once a run; the second look has the same.
        let acts = if self.only.is_none() { acts.with_untold() } else { acts };
        self.acted(acts, Vec::new())
    }

    /// A START was refused in this run, or more nodes are wanted than one: the next node of the pool, or the next type, has its
    /// turn at once. Each is tried once.
    fn next_candidates(&self, acts: &Acts) -> BTreeSet<NodeId> {
        let started = |effect: &&Effect| matches!(effect.event, EffectKind::StartFailed | EffectKind::Start);
        let pools: BTreeSet<&PoolName> =
            self.outcome.effects.iter().filter(started).filter_map(|effect| effect.pool.as_ref()).collect();
        let mut next = BTreeSet::new();
        for pool in pools {
            let Some(record) = acts.records().get(pool) else { continue };
            let of_pool = self.nodes.iter().filter(|seen| seen.pool == *pool);
            let look = |seen: &NodeSeen| {
                let readiness = self.readiness_of(seen, &self.nodes, record);
                Look { readiness, ..without_use(&self.ctx, acts.as_changed(seen.clone()), record) }
            };
            let looks: Vec<Look> = of_pool.map(look).collect();
            let named = record.nodes.iter().filter(|(_, node)| node.wake.is_some()).map(|(id, _)| Some(id.clone()));
            for target in std::iter::once(None).chain(named) {
                let (policy, rules) = (&self.ctx.policy, self.rules(pool));
                let decision = wake::decide(&looks, record, target.as_ref(), policy, &rules, self.ctx.now);
                let of_pool = |id: &NodeId| looks.iter().any(|look| look.seen.id == *id);
                let is_enough = self.tried.iter().filter(|(id, _)| of_pool(id)).count() >= MOST_TRIES;
                let untried =
                    wake::tried(&decision.action, &looks).filter(|one| !is_enough && !self.tried.contains(one));
                next.extend(untried.map(|(node, _)| node));
            }
        }
        next
    }

    fn acted(&mut self, mut acts: Acts, answers: Vec<Answer>) -> Step {
        if let Some(calls) = acts.next(answers, &mut self.outcome) {
            self.stage = Stage::Act(Box::new(acts));
            return Step::Calls(calls);
        }
        let mut again = self.next_candidates(&acts);
        if self.only.is_none() {
            again.append(&mut acts.lost);
        }
        if !again.is_empty() {
            self.only = Some(again);
            return self.look();
        }
        Step::Done(std::mem::take(&mut self.outcome))
    }
}

fn shared(records: BTreeMap<PoolName, PoolRecord>) -> BTreeMap<PoolName, Arc<PoolRecord>> {
    records.into_iter().map(|(pool, record)| (pool, Arc::new(record))).collect()
}

/// The refusal as the ledger has it: what EC2 said in words is not kept.
fn noted(fault: &Fault) -> CallError {
    CallError {
        act: "start or stop node".to_owned(),
        code: fault.code.clone(),
        message: "as an earlier run has noted".to_owned(),
        class: fault.class,
        effect: TookEffect::No,
    }
}

/// Neither a request nor the launch keeps it, only that silence is not proved for long enough: a source with gaps would
/// keep it for ever.
fn is_kept_by_missing_proof(look: &Look, decision: &IdleDecision) -> bool {
    let unproved = look.used.as_ref().is_ok_and(|used| Some(used.last_possible) != used.last_seen);
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
        IdleAction::PutBack => "change_type",
    }
}
