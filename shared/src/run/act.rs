//! Carries decisions out: claim, call, record, tell. Shared by every run that starts or stops a node.

use super::alert::{About, Alert};
use super::call::{
    Answer, Call, Claimed, Fact, Permit, Started, Stopped, take_alert_claim, take_claim, take_published, take_recorded,
    take_start, take_stop,
};
use super::outcome::{Effect, EffectKind};
use super::{Context, Outcome};
use crate::decide::{Look, Reason};
use crate::domain::{
    Claim, ClaimAnswer, ClaimKind, Fault, FaultKind, Instant, NodeId, NodeState, PoolName, PoolRecord,
};
use crate::error::{CallError, ErrorClass, TookEffect};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The newest wake the decision had in view.
    wake: Option<Instant>,
    /// The demand counter that must not have moved since the decision's look; for a first STOP.
    demand: Option<u64>,
    tries: u32,
    fault: Option<Fault>,
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
            demand: (act == Act::Stop).then_some(look.demand),
            tries: earlier.map_or(1, |claim| claim.tries.saturating_add(1)),
            fault: look.record.fault.clone(),
        }
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
    alerts: Vec<Alert>,
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
            alerts,
            lost: BTreeSet::new(),
        }
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
                Stage::Claim => Stage::Send,
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
            Stage::Send => {
                self.asked = std::mem::take(&mut self.granted);
                self.asked.iter().map(Intent::call).collect()
            }
            Stage::Record => std::mem::take(&mut self.writes),
            Stage::ClaimAlert => {
                let at = self.ctx.now;
                self.alerts.iter().map(|alert| Call::ClaimAlert { key: alert.key.clone(), at }).collect()
            }
            Stage::Publish => self.alerts.iter().map(|alert| Call::Publish { alert: alert.clone() }).collect(),
            Stage::MarkPublished => std::mem::take(&mut self.alerts)
                .into_iter()
                .map(|alert| Call::MarkPublished { key: alert.key })
                .collect(),
            Stage::Over => Vec::new(),
        }
    }

    fn absorb(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        if answers.is_empty() {
            return;
        }
        match self.stage {
            Stage::Claim => self.absorb_claims(answers, outcome),
            Stage::Send => self.absorb_sends(answers, outcome),
            Stage::Record => {
                note_failures(answers, outcome);
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
            claim: Claim {
                kind: intent.kind(),
                run: self.ctx.run.clone(),
                at: self.ctx.now,
                launched_at: intent.launched_at,
                open_until: self.ctx.now + self.ctx.time_out,
                wake: intent.wake,
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

    fn is_mine(&self, intent: &Intent, record: &PoolRecord) -> bool {
        let claim = record.nodes.get(&intent.node).and_then(|node| node.claim.as_ref());
        claim.is_some_and(|claim| claim.run == self.ctx.run && claim.kind == intent.kind() && claim.answer.is_none())
    }

    fn grant(&mut self, intent: Intent, record: PoolRecord) {
        self.records.insert(intent.pool.clone(), record);
        self.granted.push(intent);
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
                self.refused(&intent, error, outcome);
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
        self.record(intent, ClaimAnswer::Accepted, None);
        if stopped.before == NodeState::Running || intent.act == Act::ForceStop {
            outcome.effects.push(effect(intent, EffectKind::Stop, intent.reason.as_str().to_owned()));
        }
    }

    fn refused(&mut self, intent: &Intent, error: CallError, outcome: &mut Outcome) {
        let (kind, event) = match intent.act {
            Act::Start => (FaultKind::Start, EffectKind::StartFailed),
            Act::Stop | Act::ForceStop => (FaultKind::Stop, EffectKind::StopFailed),
        };
        outcome.effects.push(effect(intent, event, error.code.clone()));
        let fault = Fault::next(kind, intent.fault.as_ref(), &error, self.ctx.now);
        // Trouble that the next tick repairs is told when it does not pass.
        let passes = match error.effect {
            TookEffect::No => fault.tries < 3,
            TookEffect::Maybe => fault.tries < 2,
        };
        if error.class.tells_at_once() || !passes {
            self.tell(intent, &error, &fault);
        }
        match error.effect {
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
        let kind = if intent.act == Act::Start { FaultKind::Start } else { FaultKind::Stop };
        self.tell(intent, &error, &Fault::next(kind, intent.fault.as_ref(), &error, self.ctx.now));
    }

    fn tell(&mut self, intent: &Intent, error: &CallError, fault: &Fault) {
        let about = About { pool: &intent.pool, node: Some(&intent.node), now: self.ctx.now };
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

    fn absorb_alert_claims(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        let mut mine = Vec::new();
        for (alert, answer) in std::mem::take(&mut self.alerts).into_iter().zip(answers) {
            match take_alert_claim(Some(answer)) {
                Ok(true) => mine.push(alert),
                Ok(false) => {}
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

    fn absorb_published(&mut self, answers: Vec<Answer>, outcome: &mut Outcome) {
        let mut sent = Vec::new();
        for (alert, answer) in std::mem::take(&mut self.alerts).into_iter().zip(answers) {
            match take_published(Some(answer)) {
                Ok(()) => {
                    let (pool, node, reason) = (alert.pool.clone(), alert.node.clone(), alert.subject.clone());
                    outcome.effects.push(Effect { event: EffectKind::Alert, pool, node, reason });
                    sent.push(alert);
                }
                // Nobody has been told: the failure has to show where something watches.
                Err(error) => outcome.unrecorded = Some(error),
            }
        }
        self.alerts = sent;
        self.stage = Stage::MarkPublished;
    }
}

fn effect(intent: &Intent, event: EffectKind, reason: String) -> Effect {
    Effect { event, pool: intent.pool.clone(), node: Some(intent.node.clone()), reason }
}

fn note_failures(answers: Vec<Answer>, outcome: &mut Outcome) {
    for answer in answers {
        if let Err(error) = take_recorded(Some(answer)) {
            outcome.unrecorded = Some(error);
        }
    }
}
