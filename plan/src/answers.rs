//! What is told of each plan, and what it was reckoned with.

use crate::costs::{Cost, MONTH_HOURS, Rates};
use crate::plans::{Plan, Standing};
use crate::replay::tally::Tally;
use crate::trace::Survey;
use reveille::domain::Usd;
use serde::Serialize;

/// One plan's figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Such as `on-demand idle 30`.
    pub name: String,
    /// Whether it can be had.
    pub standing: Standing,
    /// Hours of all nodes in a month of 730.5 hours, a minute at least for each start.
    pub node_hours_month: f64,
    /// The share of the calls that waited for 95 % of a boot at least, or in vain.
    pub cold_share: f64,
    /// The share of the calls that waited at all.
    pub waited_share: f64,
    /// The mean wait; an unserved call has waited as long as its caller's patience.
    pub wait_mean_seconds: f64,
    /// Half of the calls waited no longer.
    pub wait_p50_seconds: i64,
    /// 95 % of the calls waited no longer.
    pub wait_p95_seconds: i64,
    /// The share of the calls that were never connected.
    pub unserved_share: f64,
    /// Starts that EC2 accepted.
    pub starts_per_day: f64,
    /// Starts that EC2 refused.
    pub refused_starts_per_day: f64,
    /// Calls in progress on a running node, on average.
    pub calls_per_node_mean: f64,
    /// The most calls at once on one node; absent where the plan does not place calls on nodes.
    pub calls_per_node_most: Option<usize>,
    /// Compute, disk, address and controller.
    pub cost_month_usd: f64,
    /// The parts of it.
    pub cost_parts: Parts,
    /// A month's cost by a month's calls, those that were not served among them.
    pub cost_per_call_usd: f64,
    /// What a call costs with the price of the call itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_cost_per_call_usd: Option<f64>,
    /// How many calls a day the daily budget pays for, beyond what the node costs a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_calls_per_day: Option<i64>,
    /// The same in turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_turns_per_day: Option<i64>,
    /// The settings that make it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Vec<String>>,
}

/// A month's cost in parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Parts {
    /// Running nodes.
    pub compute_usd: f64,
    /// Disks.
    pub disk_usd: f64,
    /// Addresses.
    pub address_usd: f64,
    /// Functions, ledger, alarms.
    pub controller_usd: f64,
}

/// What a call costs beside its node, and what a day may cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallPrices {
    /// A call's own price: models, telephony.
    pub call: Option<Usd>,
    /// What a day may cost in all.
    pub daily_budget: Option<Usd>,
    /// Turns of a call.
    pub turns: Option<u32>,
}

/// What the figures stand on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assumption {
    /// What is assumed.
    pub what: String,
    /// The value.
    pub value: String,
    /// Where it comes from.
    pub source: String,
}

/// The trace as it was replayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// The file.
    pub file: String,
    /// What was found in it.
    #[serde(flatten)]
    pub survey: Survey,
    /// Days that count.
    pub days: f64,
    /// Calls that were replayed.
    pub calls_replayed: u64,
    /// The same a day.
    pub calls_per_day: f64,
    /// What was put right, in sentences.
    pub repaired: Vec<String>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was replayed.
    pub trace: Replayed,
    /// What it stands on.
    pub assumptions: Vec<Assumption>,
    /// The plans.
    pub plans: Vec<Answer>,
}

fn dollars(usd: Usd) -> f64 {
    usd.micro() as f64 / 1e6
}

/// The figures of one plan.
pub fn answer(plan: &Plan, tally: &Tally, rates: &Rates, prices: CallPrices) -> Answer {
    let days = tally.span() as f64 / 86_400.0;
    let cost = Cost::of(tally, rates, plan.is_controlled());
    let month = dollars(cost.total());
    let months = tally.span() as f64 / (MONTH_HOURS * 3600.0);
    let per_call = month * months / tally.calls.max(1) as f64;
    let parts = Parts {
        compute_usd: dollars(cost.compute),
        disk_usd: dollars(cost.disk),
        address_usd: dollars(cost.address),
        controller_usd: dollars(cost.controller),
    };
    let calls_a_day = prices.daily_budget.zip(prices.call).and_then(|(budget, call)| {
        // What is left of the day's money once the node is paid.
        let left = budget - cost.total().times(10 * 24, 7305);
        left.pays_for(call)
    });
    Answer {
        name: plan.name.clone(),
        standing: plan.standing,
        node_hours_month: tally.node_seconds as f64 / tally.span() as f64 * MONTH_HOURS,
        cold_share: tally.share(tally.cold),
        waited_share: tally.share(tally.waited()),
        wait_mean_seconds: tally.mean_wait(),
        wait_p50_seconds: tally.wait_at(50),
        wait_p95_seconds: tally.wait_at(95),
        unserved_share: tally.share(tally.unserved),
        starts_per_day: tally.starts as f64 / days,
        refused_starts_per_day: tally.refused as f64 / days,
        calls_per_node_mean: tally.call_seconds as f64 / tally.node_seconds.max(1) as f64,
        calls_per_node_most: plan.is_controlled().then_some(tally.most_calls),
        cost_month_usd: month,
        cost_parts: parts,
        cost_per_call_usd: per_call,
        whole_cost_per_call_usd: prices.call.map(|call| per_call + dollars(call)),
        budget_calls_per_day: calls_a_day,
        budget_turns_per_day: calls_a_day.zip(prices.turns).map(|(calls, turns)| calls * i64::from(turns)),
        configuration: plan.configuration(),
    }
}
