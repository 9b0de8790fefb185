//! What people read of the month's money: what is spent, what is left, and in what it can be counted.

use super::{Account, BudgetRun};
use crate::decide::budget::{Basis, Crossed, Enforce};
use crate::domain::{InstanceType, Usd};
use crate::run::alert::{BudgetText, hours, shown};
use crate::spend::Fleet;
use std::collections::BTreeSet;

impl BudgetRun {
    pub(super) fn threshold(&self, threshold: Crossed, account: &Account, fleet: &Fleet) -> BudgetText {
        let Crossed { basis, percent } = threshold;
        let (amount, month) = (self.budget.amount, account.month.name());
        let (word, figure) = match basis {
            Basis::Actual => ("spent", account.figures.actual),
            Basis::Forecast => ("forecast", account.figures.forecast.unwrap_or_default()),
        };
        let threshold = format!("{} {percent} %", if basis == Basis::Actual { "actual" } else { "forecast" });
        BudgetText {
            occasion: format!("{}#{month}#{}#{word}{percent}", self.budget.name, amount.plain()),
            subject: format!("{percent} % of the {month} budget of USD {amount} {word}").replace('$', ""),
            what: format!(
                "{percent} % of the budget {} is {word}: USD {} of {}",
                self.budget.name,
                cents(figure),
                cents(amount)
            ),
            since: account.month.from,
            hourly: account.hourly,
            done: self.done(basis, percent),
            todo:
                "see which node runs and why (the newest `decided` line names the reason); stop it, or raise the amount"
                    .to_owned(),
            left: self.left(account, fleet),
            threshold,
            month,
        }
    }

    fn done(&self, basis: Basis, percent: u32) -> String {
        match (self.budget.enforce, basis == Basis::Actual && percent >= 100) {
            (Enforce::Alert, _) | (_, false) => "nothing: this only tells".to_owned(),
            (Enforce::Gate, true) => "the gate is to be closed; a message of its own says when it is".to_owned(),
            (Enforce::Stop, true) => {
                "the gate is to be closed and running nodes drained; a message of its own says when it is".to_owned()
            }
        }
    }

    /// What is spent and what is left, in money, node hours and the operator's own units.
    fn left(&self, account: &Account, fleet: &Fleet) -> String {
        let (spend, zone) = (&account.spend, self.ctx.policy.zone);
        let left = (self.budget.amount - account.figures.actual).max(Usd::ZERO);
        let mut text = format!(
            "Spent: USD {} by Reveille's own estimate since {} (compute {} for {}, disks {}, addresses {})\n",
            cents(spend.total()),
            shown(account.month.from, zone),
            spend.compute,
            hours(spend.seconds),
            spend.disk,
            spend.address
        );
        let aws = account.seen.as_ref().and_then(|seen| seen.actual);
        text += &aws.map_or_else(
            || "AWS:   has no figure yet; it lags by 8 to 12 hours\n".to_owned(),
            |aws| format!("AWS:   shows USD {} so far; it lags by 8 to 12 hours\n", cents(aws)),
        );
        if let Some(forecast) = account.own_forecast {
            text += &format!("Month: USD {} at its end if it goes on as in the last days\n", cents(forecast));
        }
        text += &format!("Left:  USD {}{}\n", cents(left), self.left_in_units(left, fleet));
        if !spend.unpriced.is_empty() {
            let names: Vec<&str> = spend.unpriced.iter().map(String::as_str).collect();
            text += &format!("Note:  without a price, so not in the estimate: {}\n", names.join(", "));
        }
        text
    }

    fn left_in_units(&self, left: Usd, fleet: &Fleet) -> String {
        let mut parts = Vec::new();
        let kinds: BTreeSet<&InstanceType> =
            fleet.values().filter_map(|node| node.seen.as_ref()?.instance_type.as_ref()).collect();
        for kind in kinds {
            let Some(price) = self.ctx.prices.hour(kind) else { continue };
            let minutes = left.pays_for(price.times(1, 60)).unwrap_or(0);
            parts.push(format!("about {} of {kind}", hours(minutes * 60)));
        }
        for (unit, price) in &self.budget.units {
            parts.extend(left.pays_for(*price).map(|count| format!("{count} {unit} at USD {}", price.plain())));
        }
        if parts.is_empty() { String::new() } else { format!(", that is {}", parts.join(", or ")) }
    }
}

/// To the cent, for people.
pub(super) fn cents(amount: Usd) -> String {
    amount.to_string().replace('$', "")
}
