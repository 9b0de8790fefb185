//! The sequences (observe, decide, claim, look again, act, record) as step machines without I/O: a run asks for calls and
//! gets their answers. The same code runs over AWS, in memory, under a model checker and in the planner.

mod act;
mod alert;
mod budget;
mod call;
mod evidence;
mod idle;
mod launches;
mod lease;
mod look;
mod operator;
mod outcome;
mod readiness;
mod uptime;
mod wake;

pub use alert::{Alert, AlertKind};
pub use budget::{BudgetRun, fleet, notices};
pub use call::{
    Activity, AlertClaimed, Answer, BudgetNote, BudgetSeen, Call, Cap, Claimed, Demanded, Fact, History, LeaseGround,
    Leased, LogActivity, LogSource, MetricRef, Notice, Permit, PoolPolicy, Samples, Signal, Started, Stopped, Waiting,
    fact_name, take_activity, take_alert_claim, take_beats, take_budget, take_budget_note, take_claim, take_demand,
    take_disks, take_gate_set, take_history, take_hold_set, take_lease, take_ledger, take_logs, take_nodes,
    take_published, take_readiness, take_recorded, take_resized, take_samples, take_start, take_stop,
};
pub use idle::IdleRun;
pub use lease::{LeaseRun, LeaseWish};
pub use operator::{Obeyed, OperatorRun, Order};
pub use outcome::{ColdStart, Decided, Effect, EffectKind, LeaseAnswer, Outcome, PoolAnswer};
pub use uptime::UptimeRun;
pub use wake::{Caller, Cause, Target, WakeRun, WakeWish};

use crate::domain::{Instant, PoolName, RunId};
use crate::policy::{MOST_AHEAD, Policy};
use crate::prices::Prices;
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// What every run is given at its start.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// This run.
    pub run: RunId,
    /// The instant all decisions of this run are made at.
    pub now: Instant,
    /// How long the run may take at most; a call it sends is not in flight after that.
    pub time_out: TimeDelta,
    /// The limits.
    pub policy: Policy,
    /// The pools, and what is configured for each.
    pub pools: BTreeMap<PoolName, PoolPolicy>,
    /// What things cost.
    pub prices: Prices,
}

impl Context {
    /// The answers with what nobody can have written by now taken out of the ledger's items.
    fn credible(&self, mut answers: Vec<Answer>) -> Vec<Answer> {
        let latest = self.now + MOST_AHEAD;
        let records = answers.iter_mut().flat_map(Answer::records_mut);
        records.for_each(|record| record.forget_later_than(latest));
        answers
    }
}

/// What a run wants next.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one step of a run is Done; a box would buy nothing")]
pub enum Step {
    /// Carry these out, at once where possible, and answer in the same order.
    Calls(Vec<Call>),
    /// The run is over.
    Done(Outcome),
}

/// A sequence that is driven from outside. The first `next` is given no answers.
pub trait Run {
    /// Takes the answers to the calls asked for last, in their order.
    fn next(&mut self, answers: Vec<Answer>) -> Step;
}
