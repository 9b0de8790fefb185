//! Which thresholds of the budget are crossed, and what becomes of the gate?

use super::Reason;
use crate::domain::{Gate, GateKeeper, Instant, Usd};
use crate::spend::Month;
use serde::{Deserialize, Serialize};

/// What the budget does beyond telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforce {
    /// Nothing.
    Alert,
    /// At 100 % no wake is taken until the month ends or the amount is raised.
    Gate,
    /// As gate, and running nodes are drained: no call is cut, each node stops when it has none.
    Stop,
}

/// What the operator allows for a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetPolicy {
    /// The AWS budget's name.
    pub name: String,
    /// The amount for a month, above zero, in US dollars.
    pub amount: Usd,
    /// Percentages of what is spent at which people are told, rising.
    pub actual: Vec<u32>,
    /// Percentages of what is forecast, rising.
    pub forecast: Vec<u32>,
    /// What happens at 100 %.
    pub enforce: Enforce,
    /// Mail addresses of AWS's own notifications, the second line; none, no notifications.
    pub mail: Vec<String>,
    /// What one unit of the operator's own costs, such as a call or a turn: what is left is told in these too.
    pub units: Vec<(String, Usd)>,
}

/// Which figure a threshold is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// What is spent.
    Actual,
    /// What the month will have cost.
    Forecast,
}

/// The two figures of the month, each the larger of our own and AWS's: ours is early, AWS's confirms (field case 38).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Spent.
    pub actual: Usd,
    /// At the month's end; absent with less than a day of history and no figure of AWS's.
    pub forecast: Option<Usd>,
}

/// A crossed threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crossed {
    /// Which figure.
    pub basis: Basis,
    /// Percent of the amount.
    pub percent: u32,
}

/// What becomes of the gate of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateAction {
    /// Stays as it is.
    Leave,
    /// Is closed, or its end or reason moved.
    Close(Gate),
    /// Is opened: the budget closed it, and no longer wants to.
    Open,
}

/// Every threshold that is crossed, rising; each is told once a month and amount.
pub fn crossed(policy: &BudgetPolicy, figures: Figures) -> Vec<Crossed> {
    let over = |figure: Usd, percent: &u32| figure >= policy.amount.times(i64::from(*percent), 100);
    let of = |basis, percents: &[u32], figure: Option<Usd>| -> Vec<Crossed> {
        let crossed = percents.iter().filter(|percent| figure.is_some_and(|figure| over(figure, percent)));
        crossed.map(|percent| Crossed { basis, percent: *percent }).collect()
    };
    let mut all = of(Basis::Actual, &policy.actual, Some(figures.actual));
    all.extend(of(Basis::Forecast, &policy.forecast, figures.forecast));
    all
}

/// The gate of one pool. Falls to leave: only a known crossing closes it, nothing unknown opens it, and a person's gate is a
/// person's to open.
pub fn gate(
    policy: &BudgetPolicy,
    spent: Usd,
    standing: Option<&Gate>,
    month: Month,
    now: Instant,
) -> (GateAction, Reason) {
    let by_person = standing.is_some_and(|gate| gate.by == GateKeeper::Person && gate.until.is_none_or(|at| now < at));
    if by_person {
        return (GateAction::Leave, Reason::GateHeldByPerson);
    }
    let drain = policy.enforce == Enforce::Stop;
    // Closed is closed until the month ends, or the amount or the setting changes: a figure that falls because a source could
    // not be read, or because AWS has cleared its own, opens nothing.
    let stands =
        |gate: &Gate| gate.until == Some(month.to) && gate.drain == drain && gate.amount == Some(policy.amount);
    if policy.enforce != Enforce::Alert && standing.is_some_and(stands) {
        return (GateAction::Leave, Reason::GateStaysClosed);
    }
    if policy.enforce == Enforce::Alert || spent < policy.amount {
        return match standing {
            Some(_) => (GateAction::Open, Reason::GateOpens),
            None => (GateAction::Leave, Reason::BudgetWithin),
        };
    }
    let reason = format!("the budget for {} is spent", month.name());
    let amount = Some(policy.amount);
    let gate = Gate { by: GateKeeper::Budget, since: now, reason, amount, until: Some(month.to), drain };
    (GateAction::Close(gate), Reason::GateCloses)
}
