//! The budget and the prices.

use super::{BUDGET, PRICES, REGION, Read};
use crate::decide::budget::{BudgetPolicy, Enforce};
use crate::domain::{Usd, UsdFault};
use crate::prices::Prices;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetSpec {
    amount: Number,
    currency: Option<String>,
    #[serde(default = "default_name")]
    name: String,
    #[serde(default = "default_actual")]
    actual: Vec<u32>,
    #[serde(default = "default_forecast")]
    forecast: Vec<u32>,
    #[serde(default = "default_enforce")]
    enforce: Enforce,
    #[serde(default)]
    mail: Vec<String>,
    #[serde(default)]
    units: BTreeMap<String, Number>,
}

/// An amount, as a JSON number or as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(serde_json::Number),
    Text(String),
}

impl Number {
    fn usd(&self) -> Result<Usd, UsdFault> {
        match self {
            Self::Plain(number) => Usd::parse(&number.to_string()),
            Self::Text(text) => Usd::parse(text),
        }
    }
}

fn default_name() -> String {
    "reveille".to_owned()
}

fn default_actual() -> Vec<u32> {
    vec![50, 80, 100]
}

fn default_forecast() -> Vec<u32> {
    vec![100]
}

fn default_enforce() -> Enforce {
    Enforce::Alert
}

/// AWS takes five notifications a budget at least by one of its pages, ten by another: five are safe.
const MOST_NOTICES: usize = 5;
/// AWS takes ten mail addresses a notification.
const MOST_MAIL: usize = 10;

impl Read<'_> {
    pub(super) fn prices(&mut self) -> Prices {
        let region = self.get(REGION).unwrap_or_default().to_owned();
        let Some(text) = self.get(PRICES).map(str::to_owned) else { return Prices::new(region, BTreeMap::new()) };
        let given: BTreeMap<String, Number> = serde_json::from_str(&text).unwrap_or_else(|error| {
            self.fault(PRICES, error);
            BTreeMap::new()
        });
        let mut own = BTreeMap::new();
        for (item, price) in given {
            if let Some(price) = self.price(PRICES, &item, &price) {
                own.insert(item, price);
            }
        }
        Prices::new(region, own)
    }

    /// A price of nothing would make every estimate zero and every alert silent.
    fn price(&mut self, setting: &str, item: &str, price: &Number) -> Option<Usd> {
        match price.usd() {
            Ok(price) if price > Usd::ZERO => Some(price),
            Ok(_) => {
                self.fault(setting, format_args!("the price of {item} is zero"));
                None
            }
            Err(fault) => {
                self.fault(setting, format_args!("the price of {item}: {fault}"));
                None
            }
        }
    }

    pub(super) fn budget(&mut self) -> Option<BudgetPolicy> {
        let text = self.get(BUDGET)?.to_owned();
        let spec: BudgetSpec = match serde_json::from_str(&text) {
            Ok(spec) => spec,
            Err(error) => {
                self.fault(BUDGET, error);
                return None;
            }
        };
        self.check_budget(&spec);
        let amount = self.price(BUDGET, "amount", &spec.amount)?;
        let mut units = Vec::new();
        for (unit, price) in &spec.units {
            units.extend(self.price(BUDGET, unit, price).map(|price| (unit.clone(), price)));
        }
        let BudgetSpec { name, actual, forecast, enforce, mail, .. } = spec;
        Some(BudgetPolicy { name, amount, actual, forecast, enforce, mail, units })
    }

    fn check_budget(&mut self, spec: &BudgetSpec) {
        match spec.currency.as_deref() {
            Some("USD") => {}
            None => self.fault(BUDGET, "`currency` is missing: say \"USD\", the only one AWS budgets in"),
            Some(other) => self.fault(BUDGET, format_args!("`currency` {other:?}: AWS budgets in USD only")),
        }
        // AWS's own rule for names.
        let fits = (1..=100).contains(&spec.name.len()) && !spec.name.contains([':', '\\']);
        if !fits || spec.name.contains("/action/") {
            self.fault(
                BUDGET,
                format_args!("`name` {:?} must have 1 to 100 characters, without ':' and '\\'", spec.name),
            );
        }
        for (name, percents) in [("actual", &spec.actual), ("forecast", &spec.forecast)] {
            if !percents.windows(2).all(|pair| pair[0] < pair[1]) {
                self.fault(BUDGET, format_args!("`{name}` {percents:?} has to rise from one threshold to the next"));
            }
            if percents.iter().any(|percent| !(1..=1000).contains(percent)) {
                self.fault(BUDGET, format_args!("`{name}` {percents:?} has to be percentages from 1 to 1000"));
            }
        }
        if spec.actual.is_empty() {
            self.fault(BUDGET, "`actual` has no threshold: nobody would ever be told");
        } else if spec.enforce != Enforce::Alert && !spec.actual.contains(&100) {
            self.fault(BUDGET, "`actual` has to hold 100 where `enforce` closes the gate at it");
        }
        if !spec.mail.is_empty() && spec.actual.len() + spec.forecast.len() > MOST_NOTICES {
            self.fault(BUDGET, format_args!("with `mail` at most {MOST_NOTICES} thresholds in all: AWS takes no more"));
        }
        let wrong = spec.mail.iter().any(|mail| !mail.contains('@') || mail.contains(char::is_whitespace));
        if wrong || spec.mail.len() > MOST_MAIL {
            self.fault(BUDGET, format_args!("`mail` must be at most {MOST_MAIL} addresses"));
        }
    }
}
