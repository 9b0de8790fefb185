//! Carries decisions out: claim, call, record, tell. Shared by every run that starts or stops a node.

use super::alert::{About, Alert, Whom};
use super::call::{
    AlertClaimed, Answer, Call, Claimed, Fact, Permit, Started, Stopped, take_alert_claim, take_claim, take_gate_set,
    take_ledger, take_published, take_recorded, take_resized, take_start, take_stop,
};
use super::outcome::{Effect, EffectKind};
use super::{Context, Outcome};
use crate::decide::{Look, Reason};
use crate::domain::{
    AlertKey, Claim, ClaimAnswer, ClaimKind, Fault, FaultKind, InstanceType, Instant, NodeId, NodeSeen, NodeState,
    PoolName, PoolRecord, WakeSource,
};
use crate::error::{CallError, ErrorClass, TookEffect};
use std::collections::{BTreeMap, BTreeSet};

/// Messages that are kept with one pool: an outage of a day is a few, and an item has its size. One more is lost, and the
/// run that lost it has failed.
const MOST_UNTOLD: usize = 20;

/// Which call is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Start,
    Stop,
    ForceStop,
}

/// One START or STOP that was decided.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Intent {
    pool: PoolName,
    node: NodeId,
    act: Act,
    reason: Reason,
    launched_at: Option<Instant>,
    /// The newest wake the decision had in view, where it came from and what it asked for.
    wake: Option<Instant>,
    source: Option<WakeSource>,
    path: Option<String>,
    whom: Whom,
    /// Another instance type, to be set before the START.
    to_type: Option<InstanceType>,
    /// The demand counter that must not have moved since the decision's look; for a first STOP.
    demand: Option<u64>,
    /// When a lease of the node was last written.
    leased: Option<Instant>,
    tries: u32,
    fault: Option<Fault>,
    /// What is recorded with an accepted STOP: the node did not become ready. The wakes in view stay unmet.
    once_stopped: Option<Fault>,
}

impl Intent {
    pub(super) fn new(look: &Look, act: Act, reason: Reason) -> Self {
        let kind = if act == Act::Start { ClaimKind::Start } else { ClaimKind::Stop };
        let same = |claim: &&Claim| claim.kind == kind && claim.launched_at == look.seen.launched_at;
        let newest = look.record.claim.as_ref().filter(same);
        let earlier = newest.filter(|claim| claim.answer != Some(ClaimAnswer::Refused));
        // A forced STOP must not spend a wake that came after the first one, nor bring one back that was spent: it keeps what
        // that one saw, or, where a person stopped the node, what came before that.
        let wake = match act {
            Act::Start | Act::Stop => look.wake,
            Act::ForceStop => newest
                .map_or_else(|| look.wake.filter(|wake| Some(*wake) < look.seen.transition_at), |claim| claim.wake),
        };
        Self {
            pool: look.seen.pool.clone(),
            node: look.seen.id.clone(),
            act,
            reason,
            launched_at: look.seen.launched_at,
            wake,
            source: look.wake_source,
            path: look.wake_path.clone(),
            whom: Whom::of(&look.seen),
            to_type: None,
            demand: (act == Act::Stop).then_some(look.demand),
            leased: look.record.leased,
            tries: earlier.map_or(1, |claim| claim.tries.saturating_add(1)),
            fault: look.record.fault.clone(),
            once_stopped: None,
        }
    }

    /// The same, of a node that does not become ready: the wishes for it stand.
    pub(super) fn with_fault_once_stopped(self, fault: Fault) -> Self {
        Self { once_stopped: Some(fault), wake: None, ..self }
    }

    /// The same, and where `by_wake` is false nobody's wake is what caused it.
    pub(super) fn caused_by_wake(self, by_wake: bool) -> Self {
        Self { source: self.source.filter(|_| by_wake), path: self.path.filter(|_| by_wake), ..self }
    }

    /// The same, as another instance type.
    pub(super) fn with_type(self, to_type: Option<InstanceType>) -> Self {
        Self { to_type, ..self }
    }

    /// The type that a START is tried as.
    fn tried_type(&self) -> Option<&InstanceType> {
        self.to_type.as_ref().or(self.whom.kind.as_ref())
    }

    pub(super) fn is_for(&self, node: &NodeId) -> bool {
        self.node == *node
    }

    fn kind(&self) -> ClaimKind {
        match self.act {
            Act::Start => ClaimKind::Start,
            Act::Stop | Act::ForceStop => ClaimKind::Stop,
        }
    }

    fn fault_kind(&self) -> FaultKind {
        match self.act {
            Act::Start => FaultKind::Start,
            Act::Stop | Act::ForceStop => FaultKind::Stop,
        }
    }

    fn call(&self) -> Call {
        let node = self.node.clone();
        match self.act {
            Act::Start => Call::Start { node },
            Act::Stop => Call::Stop { node, force: false },
            Act::ForceStop => Call::Stop { node, force: true },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Claim,
    LookAgain,
    Resize,
    Send,
    Record,
    ClaimAlert,
    Publish,
    MarkPublished,
    Over,
}

/// The sequence. Claims of one pool go one after the other, since each moves the counter that the next depends on; calls
/// to EC2 go out at once, so that one that hangs holds up no other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Acts {
    ctx: Context,
    stage: Stage,
    waiting: Vec<Intent>,
    asked: Vec<Intent>,
    granted: Vec<Intent>,
    records: BTreeMap<PoolName, PoolRecord>,
    writes: Vec<Call>,
    written: Vec<Call>,
    /// Writes that end the occasion of a message: they wait until it is out.
    deferred: Vec<(AlertKey, Call)>,
    alerts: Vec<Alert>,
    /// The alerts that are kept in the ledger because an earlier run could not send them, each with its pool.
    kept: BTreeMap<AlertKey, PoolName>,
    /// What becomes of those, and of what this run could not send.
    keeps: Vec<Call>,
    /// Sleeping nodes that become their pool's preferred type again.
    put_back: Vec<(Whom, InstanceType)>,
    /// What the nodes are now that EC2 has changed.
    changed: BTreeMap<NodeId, InstanceType>,
    /// Nodes whose claim was lost: the world has moved and is worth a second look.
    pub(super) lost: BTreeSet<NodeId>,
}

impl Acts {
    /// `records` are the items that the decisions saw. `writes` and `alerts` go out with the rest.
    pub(super) fn new(
        ctx: &Context,
        records: BTreeMap<PoolName, PoolRecord>,
        intents: Vec<Intent>,
        writes: Vec<Call>,
        alerts: Vec<Alert>,
    ) -> Self {
        Self {
            ctx: ctx.clone(),
            stage: Stage::Claim,
            waiting: intents,
            asked: Vec::new(),
            granted: Vec::new(),
            records,
            writes,
            written: Vec::new(),
            deferred: Vec::new(),
            alerts,
            kept: BTreeMap::new(),
            keeps: Vec::new(),
            put_back: Vec::new(),
            changed: BTreeMap::new(),
            lost: BTreeSet::new(),
        }
    }

    /// In place of a kept message that nobody can read: it would be kept for ever, and whom it was for would not know.
    fn unread_message(&self, pool: &PoolName, key: &AlertKey) -> Alert {
        let error = CallError {
            act: format!("read the kept message {}", key.0),
            code: "Unreadable".to_owned(),
            message: "another version or a person has written it".to_owned(),
            class: ErrorClass::Permanent,
            effect: TookEffect::No,
        };
        let about = About::new(&self.ctx, Whom::pool(pool));
        Alert { key: key.clone(), ..about.cannot_do(&error, "it is removed; its name tells what it was about") }
    }

    /// Sends what earlier runs of any function could not send, too.
    pub(super) fn with_untold(mut self) -> Self {
        for (pool, record) in &self.records {
            for (key, text) in &record.untold {
                let alert = serde_json::from_str::<Alert>(text).unwrap_or_else(|_| self.unread_message(pool, key));
                self.kept.insert(key.clone(), pool.clone());
                if self.alerts.iter().all(|other| other.key != *key) {
                    self.alerts.push(alert);
                }
            }
        }
        self
    }

    /// These writes go out only once the message of their key is out: they end what it is about, and nobody would ever be
    /// told if it was lost.
    pub(super) fn with_deferred(self, deferred: Vec<(AlertKey, Call)>) -> Self {
        Self { deferred, ..self }
    }

    /// Changes the types of these sleeping nodes too. Nobody waits for them, so no claim is needed: EC2 refuses the change
    /// where somebody has started the node meanwhile.
    pub(super) fn with_put_back(self, put_back: Vec<(Whom, InstanceType)>) -> Self {
        Self { put_back, ..self }
    }

    /// The node with the type that this run has given it: the describe of before does not know.
    pub(super) fn as_changed(&self, mut seen: NodeSeen) -> NodeSeen {
        seen.instance_type = self.changed.get(&seen.id).cloned().or(seen.instance_type);
        seen
    }

    /// The items as this run knows them now: claims granted and answers recorded are in them.
    pub(super) fn records(&self) -> &BTreeMap<PoolName, PoolRecord> {
        &self.records
    }

    /// Takes the answers to the last calls; the next calls, or none when all is done.
    pub(super) fn next(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) -> Option<Vec<Call>> {
        self.absorb(answers, outcome);
        loop {
            let calls = self.calls();
            if !calls.is_empty() {
                return Some(calls);
            }
            self.stage = match self.stage {
                Stage::Claim => Stage::LookAgain,
                Stage::LookAgain => Stage::Resize,
                Stage::Resize => Stage::Send,
                Stage::Send => Stage::Record,
                Stage::Record => Stage::ClaimAlert,
                Stage::ClaimAlert => Stage::Publish,
                Stage::Publish => Stage::MarkPublished,
                Stage::MarkPublished | Stage::Over => {
                    self.stage = Stage::Over;
                    return None;
                }
            };
        }
    }

    fn calls(&mut self) -> Vec<Call> {
        match self.stage {
            Stage::Claim => self.next_claims(),
            // The decision to put a type back may be seconds old: nobody must have come meanwhile.
            Stage::LookAgain if self.put_back.is_empty() => Vec::new(),
            Stage::LookAgain => {
                let pools = self.put_back.iter().filter_map(|(whom, _)| whom.pool.clone()).collect();
                vec![Call::ReadLedger { pools }]
            }
            Stage::Resize => self.next_resizes(),
            Stage::Send => {
                self.asked = std::mem::take(&mut self.granted);
                self.asked.iter().map(Intent::call).collect()
            }
            Stage::Record => {
                self.written = std::mem::take(&mut self.writes);
                self.written.clone()
            }
            Stage::ClaimAlert => {
                let at = self.ctx.now;
                self.alerts.iter().map(|alert| Call::ClaimAlert { key: alert.key.clone(), at }).collect()
            }
            Stage::Publish => self.alerts.iter().map(|alert| Call::Publish { alert: alert.clone() }).collect(),
            Stage::MarkPublished => {
                let marks =
                    std::mem::take(&mut self.alerts).into_iter().map(|alert| Call::MarkPublished { key: alert.key });
                let ended = std::mem::take(&mut self.deferred).into_iter().map(|(_, call)| call);
                marks.chain(ended).chain(std::mem::take(&mut self.keeps)).collect()
            }
            Stage::Over => Vec::new(),
        }
    }

    fn absorb(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        if answers.is_empty() {
            return;
        }
        match self.stage {
            Stage::Claim => self.absorb_claims(answers, outcome),
            Stage::LookAgain => {
                self.drop_moved_pools(take_ledger(answers.into_iter().next()));
                self.stage = Stage::Resize;
            }
            Stage::Resize => self.absorb_resizes(answers, outcome),
            Stage::Send => self.absorb_sends(answers, outcome),
            Stage::Record => {
                self.absorb_written(answers, outcome);
                self.stage = Stage::ClaimAlert;
            }
            Stage::ClaimAlert => self.absorb_alert_claims(answers, outcome),
            Stage::Publish => self.absorb_published(answers, outcome),
            Stage::MarkPublished | Stage::Over => note_failures(answers, outcome),
        }
    }

    /// One claim a pool at a time.
    fn next_claims(&mut self) -> Vec<Call> {
        let mut later = Vec::new();
        for intent in std::mem::take(&mut self.waiting) {
            let taken = self.asked.iter().any(|asked| asked.pool == intent.pool);
            if taken { later.push(intent) } else { self.asked.push(intent) }
        }
        self.waiting = later;
        self.asked.iter().map(|intent| self.claim(intent)).collect()
    }

    fn claim(&self, intent: &Intent) -> Call {
        let claims = self.records.get(&intent.pool).map_or(0, |record| record.claims);
        Call::Claim {
            pool: intent.pool.clone(),
            node: intent.node.clone(),
            permit: Permit { claims, demand: intent.demand },
            leased: intent.leased,
            claim: Claim {
                kind: intent.kind(),
                run: self.ctx.run.clone(),
                at: self.ctx.now,
                launched_at: intent.launched_at,
                open_until: self.ctx.now + self.ctx.time_out,
                wake: intent.wake,
                source: intent.source,
                path: intent.path.clone(),
                tries: intent.tries,
                answer: None,
            },
        }
    }

    fn absorb_claims(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        for (intent, answer) in std::mem::take(&mut self.asked).into_iter().zip(answers) {
            match take_claim(Some(answer)) {
                Ok(Claimed::Granted(record)) => self.grant(intent, record),
                // The write took effect and its answer was lost on the way: the claim is this run's own.
                Ok(Claimed::Lost(record)) if self.is_mine(&intent, &record) => self.grant(intent, record),
                Ok(Claimed::Lost(record)) => {
                    self.records.insert(intent.pool.clone(), record);
                    self.give_up(&intent);
                }
                // Without the ledger nothing may be started or stopped: the run has failed, and has to show it.
                Err(error) => {
                    self.give_up(&intent);
                    outcome.blind.get_or_insert(error);
                }
            }
        }
    }

    /// The claim was not granted. Further claims on the same pool were decided on an item that has moved.
    fn give_up(&mut self, intent: &Intent) {
        self.lost.insert(intent.node.clone());
        let (dropped, kept) =
            std::mem::take(&mut self.waiting).into_iter().partition(|other| other.pool == intent.pool);
        self.waiting = kept;
        let dropped: Vec<Intent> = dropped;
        self.lost.extend(dropped.into_iter().map(|other| other.node));
    }

    /// The same event delivered twice has one request id, and the other delivery's claim is not this run's to send under: it
    /// may be refused, and void the claim, while this one's call is on its way. Their clocks tell them apart.
    fn is_mine(&self, intent: &Intent, record: &PoolRecord) -> bool {
        let claim = record.nodes.get(&intent.node).and_then(|node| node.claim.as_ref());
        let is_own = |claim: &Claim| claim.run == self.ctx.run && claim.at == self.ctx.now;
        claim.is_some_and(|claim| is_own(claim) && claim.kind == intent.kind() && claim.answer.is_none())
    }

    fn grant(&mut self, intent: Intent, record: PoolRecord) {
        self.records.insert(intent.pool.clone(), record);
        self.granted.push(intent);
    }

    /// A pool whose counters have moved is left to the next tick.
    fn drop_moved_pools(&mut self, seen: Result<BTreeMap<PoolName, PoolRecord>, CallError>) {
        let (seen, known) = (seen.unwrap_or_default(), &self.records);
        let counters = |record: Option<&PoolRecord>| record.map(|record| (record.demand, record.claims));
        self.put_back.retain(|(whom, _)| {
            let pool = whom.pool.as_ref();
            pool.is_some_and(|pool| counters(seen.get(pool)) == counters(known.get(pool)))
        });
    }

    /// The granted ones that are to be another type first; the others wait in `granted`.
    fn next_resizes(&mut self) -> Vec<Call> {
        let (resized, plain) =
            std::mem::take(&mut self.granted).into_iter().partition(|intent| intent.to_type.is_some());
        (self.asked, self.granted) = (resized, plain);
        let call = |intent: &Intent| Some(Call::Resize { node: intent.node.clone(), to: intent.to_type.clone()? });
        let back = |(whom, to): &(Whom, InstanceType)| Some(Call::Resize { node: whom.node.clone()?, to: to.clone() });
        self.asked.iter().filter_map(call).chain(self.put_back.iter().filter_map(back)).collect()
    }

    fn absorb_resizes(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        let mut answers = answers.into_iter();
        for mut intent in std::mem::take(&mut self.asked) {
            match take_resized(answers.next()) {
                Ok(()) => {
                    let kind = intent.to_type.as_ref().map(InstanceType::to_string).unwrap_or_default();
                    outcome.effects.push(effect(&intent, EffectKind::Resized, kind));
                    self.changed.extend(intent.to_type.clone().map(|kind| (intent.node.clone(), kind)));
                    intent.whom.kind.clone_from(&intent.to_type);
                    self.granted.push(intent);
                }
                // Nothing was started: the claim is void, whatever became of the type.
                Err(error) => self.not_resized(&intent, error, outcome),
            }
        }
        for (whom, to) in std::mem::take(&mut self.put_back) {
            self.put_back_answered(whom, &to, take_resized(answers.next()), outcome);
        }
        self.stage = Stage::Send;
    }

    /// A refusal that does not pass is told; the node starts as the type it has meanwhile.
    fn put_back_answered(&mut self, whom: Whom, to: &InstanceType, sent: Result<(), CallError>, outcome: &mut Outcome) {
        match sent {
            Ok(()) => {
                let (pool, node) = (whom.pool.clone(), whom.node.clone());
                outcome.effects.push(Effect {
                    event: EffectKind::Resized,
                    pool,
                    node,
                    reason: format!("back to {to}"),
                });
            }
            Err(error) => {
                if error.class.tells_at_once() {
                    let done = format!("the node starts as the type it has; {to} is tried again at every tick");
                    self.alerts.push(About::new(&self.ctx, whom).cannot_do(&error, &done));
                }
                outcome.failed.push(error);
            }
        }
    }

    /// A type that EC2 does not let the node become is passed over like one without capacity; a node in another state, or
    /// trouble that passes, is looked at again.
    fn not_resized(&mut self, intent: &Intent, error: CallError, outcome: &mut Outcome) {
        let waits = CallError { effect: TookEffect::No, ..error.clone() };
        self.refused(intent, &waits, error, outcome);
    }

    fn absorb_sends(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        for (intent, answer) in std::mem::take(&mut self.asked).into_iter().zip(answers) {
            let sent = match intent.act {
                Act::Start => take_start(Some(answer)).map(|started| self.started(&intent, started, outcome)),
                Act::Stop | Act::ForceStop => {
                    take_stop(Some(answer)).map(|stopped| self.stopped(&intent, stopped, outcome))
                }
            };
            if let Err(error) = sent {
                self.refused(&intent, &error.clone(), error, outcome);
            }
        }
        self.stage = Stage::Record;
    }

    /// An accepted START needs no record: a newer LaunchTime is its evidence. One that found the node running proves that
    /// no STOP took effect, which nothing else can tell.
    fn started(&mut self, intent: &Intent, started: Started, outcome: &mut Outcome) {
        self.tell_of_no_effect(intent);
        if started.before == NodeState::Running {
            self.record(intent, ClaimAnswer::AlreadyRunning, None);
        } else {
            outcome.effects.push(effect(intent, EffectKind::Start, intent.reason.as_str().to_owned()));
        }
    }

    fn stopped(&mut self, intent: &Intent, stopped: Stopped, outcome: &mut Outcome) {
        self.tell_of_no_effect(intent);
        self.record(intent, ClaimAnswer::Accepted, intent.once_stopped.clone());
        if stopped.before == NodeState::Running || intent.act == Act::ForceStop {
            outcome.effects.push(effect(intent, EffectKind::Stop, intent.reason.as_str().to_owned()));
        }
    }

    /// `waits` sets how long is waited and whether the claim is void; `error` is what people are told.
    fn refused(&mut self, intent: &Intent, waits: &CallError, error: CallError, outcome: &mut Outcome) {
        let waits = &as_another_type(intent, waits);
        let kind = intent.fault_kind();
        let event = match kind {
            FaultKind::Start => EffectKind::StartFailed,
            FaultKind::Stop => EffectKind::StopFailed,
        };
        outcome.effects.push(effect(intent, event, error.code.clone()));
        let fault = Fault::next(kind, intent.fault.as_ref(), &intent.node, waits, self.ctx.now);
        let mut fault = fault.with_type(intent.tried_type().filter(|_| kind == FaultKind::Start));
        // The launch counts whatever becomes of its STOP.
        fault.never_ready = intent.once_stopped.as_ref().map_or(fault.never_ready, |stopped| stopped.never_ready);
        // Trouble that the next tick repairs is told when it does not pass. A STOP may first be sent 35 minutes after the last
        // use, and whoever pays is told before 40 are over that the second has failed too.
        let passes = match (kind, waits.effect) {
            (FaultKind::Start, TookEffect::No) => fault.tries < 3,
            (FaultKind::Stop, _) | (_, TookEffect::Maybe) => fault.tries < 2,
        };
        if error.class.tells_at_once() || !passes {
            self.tell(intent, &error, &fault);
        }
        match waits.effect {
            TookEffect::No => self.record(intent, ClaimAnswer::Refused, Some(fault)),
            // It may have happened, or may happen yet: the claim stands and ends by evidence.
            TookEffect::Maybe => self.write_fact(intent, Fact::Fault(Some(fault))),
        }
        outcome.failed.push(error);
    }

    /// The third claim in a row for the same call on the same launch: EC2 accepts it, and nothing changes.
    fn tell_of_no_effect(&mut self, intent: &Intent) {
        if intent.tries < 3 {
            return;
        }
        let error = CallError {
            act: "start or stop node".to_owned(),
            code: "NoEffect".to_owned(),
            message: format!("EC2 accepted the call {} times and the node did not change", intent.tries),
            class: ErrorClass::Unknown,
            effect: TookEffect::Maybe,
        };
        let fault = Fault::next(intent.fault_kind(), intent.fault.as_ref(), &intent.node, &error, self.ctx.now);
        self.tell(intent, &error, &fault);
    }

    fn tell(&mut self, intent: &Intent, error: &CallError, fault: &Fault) {
        let about = About::new(&self.ctx, intent.whom.clone());
        let alert = match intent.act {
            Act::Start => about.start_failed(error, fault.since, fault.retry_at),
            Act::Stop | Act::ForceStop => about.cannot_stop(error, fault.since, fault.retry_at),
        };
        self.alerts.push(alert);
    }

    /// Writes the answer, and notes it in this run's own copy, from which callers are answered.
    fn record(&mut self, intent: &Intent, answer: ClaimAnswer, fault: Option<Fault>) {
        let node = self.records.entry(intent.pool.clone()).or_default().nodes.entry(intent.node.clone()).or_default();
        if let Some(claim) = node.claim.as_mut() {
            claim.answer = Some(answer.clone());
        }
        node.fault = fault.clone().or(node.fault.take());
        let (pool, node, run) = (intent.pool.clone(), intent.node.clone(), self.ctx.run.clone());
        self.writes.push(Call::RecordAnswer { pool, node, run, answer, fault });
    }

    fn write_fact(&mut self, intent: &Intent, fact: Fact) {
        self.writes.push(Call::WriteFacts { pool: intent.pool.clone(), facts: vec![(intent.node.clone(), fact)] });
    }

    /// What a write has done is told once it is known to be done; one that is refused for good is told too.
    fn absorb_written(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        for (call, answer) in std::mem::take(&mut self.written).into_iter().zip(answers) {
            let done = if matches!(call, Call::SetGate { .. }) {
                take_gate_set(Some(answer)).map(|before| before.is_some())
            } else {
                take_recorded(Some(answer)).map(|()| true)
            };
            match done {
                Ok(true) => self.written(call, outcome),
                // A person holds the gate: nothing was written.
                Ok(false) => {}
                Err(error) => {
                    if error.class.tells_at_once() {
                        let about = About::new(&self.ctx, Whom::default());
                        self.alerts.push(about.cannot_do(&error, "it is tried again at the next run"));
                    }
                    outcome.unrecorded = Some(error);
                }
            }
        }
    }

    fn written(&mut self, call: Call, outcome: &mut Outcome) {
        if let Call::SetGate { gate, .. } = &call {
            // One message for the gates of all pools.
            let alert = About::new(&self.ctx, Whom::default()).gate(gate.as_ref());
            let is_new = self.alerts.iter().all(|other| other.key != alert.key);
            self.alerts.extend(is_new.then_some(alert));
        }
        outcome.effects.extend(effect_of_write(call));
    }

    fn absorb_alert_claims(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        let mut mine = Vec::new();
        for (alert, answer) in std::mem::take(&mut self.alerts).into_iter().zip(answers) {
            match take_alert_claim(Some(answer)) {
                Ok(AlertClaimed::Mine) => mine.push(alert),
                Ok(AlertClaimed::Published) => self.keep_no_more(&alert.key),
                // Whether it gets out is not known: what it is about stands, and a later run sees to it.
                Ok(AlertClaimed::Another) => self.deferred.retain(|(key, _)| *key != alert.key),
                // Twice is better than never.
                Err(error) => {
                    outcome.failed.push(error);
                    mine.push(alert);
                }
            }
        }
        self.alerts = mine;
        self.stage = Stage::Publish;
    }

    /// What it is about may have passed by the next run, and nobody would ever be told. A message of no configured pool is
    /// kept with the first.
    fn keep(&mut self, alert: &Alert) {
        let own = alert.pool.as_ref().filter(|pool| self.ctx.pools.contains_key(pool));
        let Some(pool) = own.or(self.ctx.pools.keys().next()).cloned() else { return };
        let of_pool = |call: &&Call| matches!(call, Call::KeepUntold { pool: kept_with, .. } if *kept_with == pool);
        let known = self.records.get(&pool).map_or(0, |record| record.untold.len());
        let has_room = known + self.keeps.iter().filter(of_pool).count() < MOST_UNTOLD;
        if has_room && !self.kept.contains_key(&alert.key) {
            let (key, text) = (alert.key.clone(), Some(alert.to_text()));
            self.keeps.push(Call::KeepUntold { pool, key, text });
        }
    }

    fn keep_no_more(&mut self, key: &AlertKey) {
        if let Some(pool) = self.kept.remove(key) {
            self.keeps.push(Call::KeepUntold { pool, key: key.clone(), text: None });
        }
    }

    fn absorb_published(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        let mut sent = Vec::new();
        for (alert, answer) in std::mem::take(&mut self.alerts).into_iter().zip(answers) {
            match take_published(Some(answer)) {
                Ok(()) => {
                    outcome.effects.push(alert.sent());
                    self.keep_no_more(&alert.key);
                    sent.push(alert);
                }
                // Nobody has been told: the failure has to show where something watches, and the occasion stands.
                Err(error) => {
                    self.deferred.retain(|(key, _)| *key != alert.key);
                    self.keep(&alert);
                    outcome.unrecorded = Some(error);
                }
            }
        }
        self.alerts = sent;
        self.stage = Stage::MarkPublished;
    }
}

/// A refusal of another type of the list says nothing of the types behind it, whatever its cause (not offered in the zone,
/// its own quota): it is waited out like missing capacity, and the next type has its turn.
fn as_another_type(intent: &Intent, error: &CallError) -> CallError {
    let passes =
        matches!(error.class, ErrorClass::Transient | ErrorClass::Conflict) || error.effect == TookEffect::Maybe;
    let class = if intent.to_type.is_none() || passes { error.class } else { ErrorClass::Capacity };
    CallError { class, ..error.clone() }
}

fn effect(intent: &Intent, event: EffectKind, reason: String) -> Effect {
    Effect { event, pool: Some(intent.pool.clone()), node: Some(intent.node.clone()), reason }
}

/// What a write has done, once it is known to be done.
fn effect_of_write(call: Call) -> Option<Effect> {
    let of_budget = |reason: String| Some(Effect { event: EffectKind::BudgetRepaired, pool: None, node: None, reason });
    match call {
        Call::SetGate { pool, gate: Some(gate), .. } => {
            Some(Effect { event: EffectKind::GateClosed, pool: Some(pool), node: None, reason: gate.reason })
        }
        Call::SetGate { pool, gate: None, .. } => {
            let reason = "the budget has room again".to_owned();
            Some(Effect { event: EffectKind::GateOpened, pool: Some(pool), node: None, reason })
        }
        Call::CreateBudget { budget, .. } => of_budget(format!("budget {} was missing", budget.name)),
        Call::SetBudgetAmount { budget, .. } => {
            of_budget(format!("amount of {} is {} now", budget.name, budget.amount))
        }
        Call::CreateNotices { budget, notices } => {
            of_budget(format!("{} notifications of {} were missing", notices.len(), budget.name))
        }
        Call::DescribeNodes { .. }
        | Call::ReadLedger { .. }
        | Call::RecordDemand { .. }
        | Call::GiveLease { .. }
        | Call::RenewLease { .. }
        | Call::EndLease { .. }
        | Call::StopWaiting { .. }
        | Call::ReadBeats { .. }
        | Call::SetHold { .. }
        | Call::ReadActivity { .. }
        | Call::ReadLogs { .. }
        | Call::ReadHistory { .. }
        | Call::ReadSamples { .. }
        | Call::ReadDisks { .. }
        | Call::ReadBudget { .. }
        | Call::ReadBudgetNote { .. }
        | Call::ReadReadiness { .. }
        | Call::NoteBudget { .. }
        | Call::Resize { .. }
        | Call::NoteLaunches { .. }
        | Call::Claim { .. }
        | Call::Start { .. }
        | Call::Stop { .. }
        | Call::RecordAnswer { .. }
        | Call::WriteFacts { .. }
        | Call::ClaimAlert { .. }
        | Call::Publish { .. }
        | Call::MarkPublished { .. }
        | Call::KeepUntold { .. } => None,
    }
}

fn note_failures(answers: Vec<Answer>, outcome: &mut Outcome) {
    for answer in answers {
        if let Err(error) = take_recorded(Some(answer)) {
            outcome.unrecorded = Some(error);
        }
    }
}
