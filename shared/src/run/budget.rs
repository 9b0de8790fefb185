//! Every hour: keeps the AWS budget and its notifications, estimates the month's cost, tells of thresholds, and closes and
//! opens the gate. AWS's own figures lag by hours; the estimate decides and AWS's figure confirms (field case 38).

mod text;

use super::act::Acts;
use super::alert::{About, Alert, Whom};
use super::call::{
    Answer, BudgetNote, BudgetSeen, Call, History, Notice, take_budget, take_budget_note, take_disks, take_history,
    take_ledger, take_nodes,
};
use super::look::unseen_pools;
use super::outcome::Decided;
use super::uptime::of_node;
use super::{Context, Outcome, Run, Step};
use crate::decide::Reason;
use crate::decide::budget::{Basis, BudgetPolicy, Figures, GateAction, crossed, gate};
use crate::domain::{Disk, Gate, GateKeeper, Instant, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, Usd};
use crate::error::CallError;
use crate::spend::{Fleet, Month, NodeCosts, Spend, forecast, history_from, hourly, spend};
use chrono::TimeDelta;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// AWS renews its figures up to three times a day, 8 to 12 hours apart: on a month's first day they may still be the last
/// month's, and AWS tells no time of theirs. They count from the second day on.
const AWS_LAG: TimeDelta = TimeDelta::days(1);

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Start,
    Look,
    Read(Box<Looked>),
    Act(Box<Acts>),
    Over,
}

/// What the first look brought.
#[derive(Debug, Clone, PartialEq)]
struct Looked {
    nodes: Result<Vec<NodeSeen>, CallError>,
    budget: Result<Option<BudgetSeen>, CallError>,
    note: Result<BudgetNote, CallError>,
    disks: bool,
}

/// The budget guard.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetRun {
    ctx: Context,
    budget: BudgetPolicy,
    stage: Stage,
    outcome: Outcome,
    writes: Vec<Call>,
    alerts: Vec<Alert>,
}

/// What the month has cost, and what is said of it.
struct Account {
    spend: Spend,
    figures: Figures,
    own_forecast: Option<Usd>,
    seen: Option<BudgetSeen>,
    hourly: Option<Usd>,
    month: Month,
}

impl BudgetRun {
    /// A run that is ready for its first `next`.
    pub fn new(ctx: Context, budget: BudgetPolicy) -> Self {
        Self { ctx, budget, stage: Stage::Start, outcome: Outcome::default(), writes: Vec::new(), alerts: Vec::new() }
    }
}

impl Run for BudgetRun {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => self.look(),
            Stage::Look => self.looked(answers),
            Stage::Read(looked) => self.read(*looked, answers),
            Stage::Act(acts) => self.acted(*acts, answers),
            Stage::Over => Step::Done(std::mem::take(&mut self.outcome)),
        }
    }
}

impl BudgetRun {
    fn look(&mut self) -> Step {
        self.stage = Stage::Look;
        let name = self.budget.name.clone();
        Step::Calls(vec![
            Call::DescribeNodes { pools: None },
            Call::ReadBudget { name: name.clone() },
            Call::ReadBudgetNote { name },
        ])
    }

    fn looked(&mut self, answers: Vec<Answer>) -> Step {
        let mut answers = answers.into_iter();
        let nodes = take_nodes(answers.next());
        let (budget, note) = (take_budget(answers.next()), take_budget_note(answers.next()));
        let listed = nodes.as_deref().unwrap_or_default();
        let pools: BTreeSet<PoolName> =
            self.ctx.pools.keys().cloned().chain(listed.iter().map(|node| node.pool.clone())).collect();
        let alive = listed.iter().filter(|node| node.state != NodeState::Gone);
        let ids: BTreeSet<NodeId> = alive.map(|node| node.id.clone()).collect();
        let mut calls = vec![
            Call::ReadLedger { pools: pools.clone() },
            Call::ReadHistory { pools, from: history_from(self.ctx.now) },
        ];
        let disks = !ids.is_empty();
        if disks {
            calls.push(Call::ReadDisks { nodes: ids });
        }
        self.stage = Stage::Read(Box::new(Looked { nodes, budget, note, disks }));
        Step::Calls(calls)
    }

    fn read(&mut self, looked: Looked, answers: Vec<Answer>) -> Step {
        let mut answers = answers.into_iter();
        let (records, history) = (take_ledger(answers.next()), take_history(answers.next()));
        let disks = if looked.disks { take_disks(answers.next()) } else { Ok(BTreeMap::new()) };
        let lost = records.as_ref().err().or(history.as_ref().err()).cloned();
        if let Err(error) = &records {
            self.tell_lost(error);
        } else if let Err(error) = &history {
            self.note_failure(error, "no estimate is made and the gate stays as it is; wakes and stops go on");
        }
        let (known, history) = (records.unwrap_or_default(), history.unwrap_or_default());
        let fleet = self.fleet(&looked.nodes, &known, &history, disks);
        self.keep_aws_budget(&looked);
        let seen = self.usable(looked.budget.ok().flatten());
        let account = self.account(&fleet, seen, &looked.note.unwrap_or_default());
        // Without the ledger the estimate is of no use, and AWS's figure alone is hours late: nothing is closed on it.
        match &lost {
            None => {
                self.tell_thresholds(&account, &fleet);
                self.tell_unpriced(&account);
                self.keep_gates(&account, &known, &history, &fleet);
            }
            Some(error) => unseen_pools(&self.ctx, &mut self.outcome, error),
        }
        self.outcome.blind = lost;
        let (writes, alerts) = (std::mem::take(&mut self.writes), std::mem::take(&mut self.alerts));
        self.acted(Acts::new(&self.ctx, known, Vec::new(), writes, alerts), Vec::new())
    }

    fn all(&self) -> About<'_> {
        About::new(&self.ctx, Whom::default())
    }

    /// Told at every run, which is once an hour: the ledger that would keep it from being repeated is what is lost.
    fn tell_lost(&mut self, error: &CallError) {
        let alert = self.all().cannot_look(error);
        self.alerts.push(alert);
    }

    /// One source less, and the rest goes on; what does not pass is told.
    fn note_failure(&mut self, error: &CallError, consequence: &str) {
        if error.class.tells_at_once() {
            let alert = self.all().cannot_do(error, consequence);
            self.alerts.push(alert);
        }
        self.outcome.failed.push(error.clone());
    }

    /// Every node that is listed or has a launch. A list that cannot be read stops no clock: open launches cost on (field
    /// case 08).
    fn fleet(
        &mut self,
        nodes: &Result<Vec<NodeSeen>, CallError>,
        known: &BTreeMap<PoolName, PoolRecord>,
        history: &History,
        disks: Result<BTreeMap<NodeId, Vec<Disk>>, CallError>,
    ) -> Fleet {
        if let Err(error) = nodes {
            self.note_failure(error, "nodes that were seen running are taken to run on; disks are left out");
        }
        let disks = disks.unwrap_or_else(|error| {
            self.note_failure(&error, "the estimate leaves the disks out and is too low");
            BTreeMap::new()
        });
        fleet(nodes.as_deref().unwrap_or_default(), known, history, disks, self.ctx.now)
    }

    /// Makes what is missing, and the amount where the configured one has changed: an update clears AWS's spend, so a budget
    /// that a person edited is told and left.
    fn keep_aws_budget(&mut self, looked: &Looked) {
        let (seen, note) = match (&looked.budget, &looked.note) {
            (Ok(seen), Ok(note)) => (seen, note),
            (Err(error), _) => {
                return self
                    .note_failure(error, "AWS's budget is neither read nor kept; Reveille's own estimate goes on");
            }
            (Ok(_), Err(error)) => return self.outcome.failed.push(error.clone()),
        };
        let (budget, pools): (_, BTreeSet<PoolName>) = (self.budget.clone(), self.ctx.pools.keys().cloned().collect());
        let Some(seen) = seen else {
            self.write_note(note, BudgetNote { shown: None, ..self.noted(note, pools.clone()) });
            return self.writes.push(Call::CreateBudget { budget, pools });
        };
        // One in another currency is somebody else's: told, and left.
        if seen.unit != "USD" {
            return;
        }
        let same = Usd::parse(&seen.amount) == Ok(budget.amount);
        // Its amount was ours before, and the configuration has changed, or the pools that it counts have.
        let was_ours = note.amount.is_some_and(|amount| Usd::parse(&seen.amount) == Ok(amount));
        let same_pools = note.pools.is_empty() || note.pools == pools;
        if was_ours && !(same && same_pools) {
            // An update clears AWS's figure; of other pools it says nothing.
            let shown = if same_pools { self.shown(note, seen.actual) } else { None };
            let note = BudgetNote { shown, ..self.noted(note, pools.clone()) };
            self.writes.push(Call::SetBudgetAmount { budget: budget.clone(), pools, note });
        } else if same {
            // AWS has a figure of its own again.
            let is_known = seen.actual.is_some_and(|actual| actual > Usd::ZERO);
            let shown = if is_known { None } else { note.shown.clone() };
            self.write_note(note, BudgetNote { shown, ..self.noted(note, pools) });
        } else {
            self.tell_edited(seen);
        }
        let missing: BTreeSet<Notice> = notices(&budget).difference(&seen.notices).copied().collect();
        if !missing.is_empty() {
            self.writes.push(Call::CreateNotices { budget, notices: missing });
        }
    }

    /// The note once the budget has the configured amount and counts these pools.
    fn noted(&self, known: &BudgetNote, pools: BTreeSet<PoolName>) -> BudgetNote {
        let since = known.since.or(Some(self.ctx.now));
        BudgetNote { amount: Some(self.budget.amount), pools, since, ..known.clone() }
    }

    /// The highest figure of AWS's in this month, which an update is about to clear.
    fn shown(&self, known: &BudgetNote, actual: Option<Usd>) -> Option<(String, Usd)> {
        let month = Month::of(self.ctx.now);
        let before = known.shown.as_ref().filter(|(of, _)| *of == month.name()).map(|(_, figure)| *figure);
        let now = actual.filter(|_| self.ctx.now - month.from >= AWS_LAG);
        now.max(before).map(|figure| (month.name(), figure))
    }

    fn write_note(&mut self, known: &BudgetNote, note: BudgetNote) {
        if note != *known {
            self.writes.push(Call::NoteBudget { name: self.budget.name.clone(), note });
        }
    }

    fn tell_edited(&mut self, seen: &BudgetSeen) {
        let what = format!(
            "the AWS budget {} has the amount {} {} now, and the configured one is {} USD: it was changed in AWS, or is somebody else's",
            self.budget.name,
            seen.amount,
            seen.unit,
            self.budget.amount.plain()
        );
        let occasion = format!("edited#{}#{}", self.budget.name, seen.amount);
        let done =
            "it is left as it is, since an update would clear AWS's spend; Reveille holds to the configured amount";
        let alert = self.all().budget_fault(&occasion, "AWS budget differs", what, done, "change one of the two");
        self.alerts.push(alert);
    }

    /// AWS's figures, unless they are in another currency, or of the month before.
    fn usable(&mut self, seen: Option<BudgetSeen>) -> Option<BudgetSeen> {
        let mut seen = seen?;
        if seen.unit == "USD" {
            if self.ctx.now - Month::of(self.ctx.now).from < AWS_LAG {
                (seen.actual, seen.forecast) = (None, None);
            }
            return Some(seen);
        }
        let what = format!("the AWS budget {} is in {}, not in USD", self.budget.name, seen.unit);
        let alert = self.all().budget_fault(
            &format!("currency#{}#{}", self.budget.name, Month::of(self.ctx.now).name()),
            "AWS budget is not in USD",
            what,
            "its figures are not read; Reveille's own estimate goes on",
            "delete that budget, or give another `name` in REVEILLE_BUDGET",
        );
        self.alerts.push(alert);
        None
    }

    fn account(&self, fleet: &Fleet, seen: Option<BudgetSeen>, note: &BudgetNote) -> Account {
        let (now, month) = (self.ctx.now, Month::of(self.ctx.now));
        let spend = spend(fleet, month.from, now, now, &self.ctx.prices);
        let own_forecast = forecast(fleet, note.since, now, &self.ctx.prices);
        // What AWS has shown in this month stays true where an update has cleared it.
        let shown = note.shown.as_ref().filter(|(of, _)| *of == month.name()).map(|(_, figure)| *figure);
        let aws = |figure: fn(&BudgetSeen) -> Option<Usd>| seen.as_ref().and_then(figure);
        let figures = Figures {
            actual: spend.total().max(aws(|seen| seen.actual).max(shown).unwrap_or_default()),
            forecast: own_forecast.max(aws(|seen| seen.forecast)),
        };
        Account { spend, figures, own_forecast, hourly: hourly(fleet, &self.ctx.prices), seen, month }
    }

    fn tell_thresholds(&mut self, account: &Account, fleet: &Fleet) {
        for threshold in crossed(&self.budget, account.figures) {
            let text = self.threshold(threshold, account, fleet);
            let alert = self.all().budget(&text);
            self.alerts.push(alert);
        }
    }

    fn tell_unpriced(&mut self, account: &Account) {
        for item in &account.spend.unpriced {
            let what =
                format!("no price is known of {item} in {}, so the estimate is too low", self.ctx.prices.region());
            let alert = About::new(&self.ctx, Whom::default()).budget_fault(
                &format!("unpriced#{item}#{}", account.month.name()),
                "something has no price",
                what,
                "AWS's own figure still counts, hours late",
                "give its price in REVEILLE_PRICES",
            );
            self.alerts.push(alert);
        }
    }

    fn keep_gates(
        &mut self,
        account: &Account,
        known: &BTreeMap<PoolName, PoolRecord>,
        history: &History,
        fleet: &Fleet,
    ) {
        for pool in self.ctx.pools.keys().cloned().collect::<Vec<_>>() {
            let record = known.get(&pool).cloned().unwrap_or_default();
            let (action, reason) =
                gate(&self.budget, account.figures.actual, record.gate.as_ref(), account.month, self.ctx.now);
            let share = self.share(&pool, account, known, history, fleet);
            self.outcome.decided.push(self.line(&pool, &record, &action, reason, account, share));
            match action {
                // Told once, by the run that closed it or by the first that finds it closed.
                GateAction::Leave if reason == Reason::GateStaysClosed => {
                    let alert = self.all().gate(record.gate.as_ref());
                    self.alerts.push(alert);
                }
                GateAction::Leave => {}
                GateAction::Close(gate) => self.set_gate(pool, Some(gate)),
                GateAction::Open => self.set_gate(pool, None),
            }
        }
    }

    fn set_gate(&mut self, pool: PoolName, gate: Option<Gate>) {
        self.writes.push(Call::SetGate { pool, by: GateKeeper::Budget, gate, at: self.ctx.now });
    }

    /// This pool's part of the month's cost.
    fn share(
        &self,
        pool: &PoolName,
        account: &Account,
        known: &BTreeMap<PoolName, PoolRecord>,
        history: &History,
        fleet: &Fleet,
    ) -> Usd {
        let ids: BTreeSet<&NodeId> = known
            .get(pool)
            .into_iter()
            .flat_map(|record| record.nodes.keys())
            .chain(history.get(pool).into_iter().flatten().map(|(id, _)| id))
            .collect();
        // One that is no longer listed counts where it was seen last.
        let is_last_here = |id: &NodeId| {
            let of = |record: &PoolRecord| record.nodes.get(id)?.launch.as_ref().map(|launch| launch.presumed);
            let seen_last = known.iter().filter_map(|(pool, record)| Some((of(record)?, pool))).min_by_key(|one| one.0);
            seen_last.is_none_or(|(_, last)| last == pool)
        };
        let is_of = |(id, node): &(&NodeId, &NodeCosts)| {
            node.seen.as_ref().map_or_else(|| ids.contains(id) && is_last_here(id), |seen| seen.pool == *pool)
        };
        let part: Fleet = fleet.iter().filter(is_of).map(|(id, node)| (id.clone(), node.clone())).collect();
        spend(&part, account.month.from, self.ctx.now, self.ctx.now, &self.ctx.prices).total()
    }

    fn line(
        &self,
        pool: &PoolName,
        record: &PoolRecord,
        action: &GateAction,
        reason: Reason,
        account: &Account,
        share: Usd,
    ) -> Decided {
        let action = match action {
            GateAction::Leave => "nothing",
            GateAction::Close(_) => "close_gate",
            GateAction::Open => "open_gate",
        };
        Decided {
            pool: pool.clone(),
            node: None,
            action: action.to_owned(),
            reason,
            inputs: json!({
                "month": account.month.name(),
                "currency": "USD",
                "amount": self.budget.amount.plain(),
                "own_estimate": account.spend.total().plain(),
                "own_forecast": account.own_forecast.map(Usd::plain),
                "aws_actual": account.seen.as_ref().and_then(|seen| seen.actual).map(Usd::plain),
                "aws_forecast": account.seen.as_ref().and_then(|seen| seen.forecast).map(Usd::plain),
                "this_pool": share.plain(),
                "running_seconds": account.spend.seconds,
                "usd_per_hour": account.hourly.map(Usd::plain),
                "unpriced": account.spend.unpriced,
            }),
            stops_not_before: None,
            generation: record.claims,
        }
    }

    fn acted(&mut self, mut acts: Acts, answers: Vec<Answer>) -> Step {
        if let Some(calls) = acts.next(answers, &mut self.outcome) {
            self.stage = Stage::Act(Box::new(acts));
            return Step::Calls(calls);
        }
        Step::Done(std::mem::take(&mut self.outcome))
    }
}

/// What is known of the cost of each node that is listed or has a launch, as of `now`.
pub fn fleet(
    nodes: &[NodeSeen],
    known: &BTreeMap<PoolName, PoolRecord>,
    history: &History,
    disks: BTreeMap<NodeId, Vec<Disk>>,
    now: Instant,
) -> Fleet {
    let mut fleet = Fleet::new();
    for (pool, record) in known {
        let ids = record.nodes.keys().chain(history.get(pool).into_iter().flatten().map(|(id, _)| id));
        for id in ids.collect::<BTreeSet<_>>() {
            // A node that changed its pool has launches in both.
            fleet.entry(id.clone()).or_default().launches.extend(of_node(pool, id, Some(known), Some(history)));
        }
    }
    nodes.iter().for_each(|seen| fleet.entry(seen.id.clone()).or_default().seen = Some(seen.clone()));
    for (id, disks) in disks {
        fleet.entry(id).or_default().disks = disks;
    }
    fleet.values_mut().for_each(|node| take_in_what_ec2_shows(node, now));
    fleet
}

/// What the ledger does not know yet: a launch that is new, or one that EC2 shows to be over.
fn take_in_what_ec2_shows(node: &mut NodeCosts, now: Instant) {
    let Some(seen) = &node.seen else { return };
    let open = node.launches.iter_mut().filter(|launch| launch.ended_at.is_none());
    for launch in open.filter(|launch| Some(launch.launched_at) == seen.launched_at) {
        launch.ended_at = launch.end_as_shown(seen.state, seen.transition_at, now);
    }
    let Some(present) = super::uptime::present_launch(seen) else { return };
    if !node.launches.iter().any(|launch| launch.launched_at == present.launched_at) {
        node.launches.push(present);
    }
}

/// AWS's own notifications, to mail only: the second line. None without an address, since AWS refuses one nobody gets.
pub fn notices(budget: &BudgetPolicy) -> BTreeSet<Notice> {
    if budget.mail.is_empty() {
        return BTreeSet::new();
    }
    let of = |basis, percents: &[u32]| -> Vec<Notice> {
        percents.iter().map(|percent| Notice { basis, percent: *percent }).collect()
    };
    let (actual, forecast) = (of(Basis::Actual, &budget.actual), of(Basis::Forecast, &budget.forecast));
    actual.into_iter().chain(forecast).collect()
}
