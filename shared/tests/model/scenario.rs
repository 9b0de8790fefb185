//! The bounds of one exploration: where it begins, who comes when, and what may go wrong.

use crate::process::Arrival;
use crate::state::Budget;
use crate::support::*;
use chrono::TimeDelta;
use reveille::domain::{Instant, NodeId, NodeSeen, RunId, Usd};
use reveille::policy::{Policy, PoolRules, STALE_LOOK};
use reveille::prices::Prices;
use reveille::run::{Context, PoolPolicy};
use reveille::world::World;
use std::collections::BTreeMap;

/// A rule that is taken out, by answers that lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Every claim is granted, whatever the counters say.
    Claims,
    /// The ledger always shows an old enough first reading.
    Readings,
    /// A STOP's claim is gone once it was answered, or its run's time is over.
    Evidence,
    /// A wake is answered with the item as it was read before the update.
    SameItem,
}

/// What a person may do, once each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Hand {
    Start(&'static str),
    Stop(&'static str),
}

/// A bounded world.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) start: World,
    pub(crate) policy: Policy,
    pub(crate) rules: PoolRules,
    /// Who comes when; the first instant is the start.
    pub(crate) schedule: Vec<(Instant, Vec<Arrival>)>,
    pub(crate) budget: Budget,
    /// The use of nodes that their metrics show.
    pub(crate) used: Vec<(NodeId, Instant)>,
    pub(crate) hands: Vec<Hand>,
    /// What EC2 may still show at the start.
    pub(crate) views: Vec<(NodeSeen, Instant)>,
    pub(crate) stale_for: TimeDelta,
    /// The calls of one step are made in any order, not only as listed.
    pub(crate) any_order: bool,
    pub(crate) sabotage: Option<Sabotage>,
}

/// Short times, so that a schedule of minutes holds a whole life: idle after 10 minutes, no grace.
pub(crate) fn brisk() -> Policy {
    Policy { idle: minutes(10), prewarm: minutes(10), grace: TimeDelta::zero(), ..Policy::default() }
}

impl Scenario {
    pub(crate) fn new(name: &'static str, start: World) -> Self {
        Self {
            name,
            start,
            policy: brisk(),
            rules: PoolRules::default(),
            schedule: Vec::new(),
            budget: Budget::default(),
            used: Vec::new(),
            hands: Vec::new(),
            views: Vec::new(),
            stale_for: STALE_LOOK,
            any_order: false,
            sabotage: None,
        }
    }

    pub(crate) fn at(mut self, clock: &str, arrivals: impl IntoIterator<Item = Arrival>) -> Self {
        self.schedule.push((at(clock), arrivals.into_iter().collect()));
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn faults(self, faults: u8) -> Self {
        self.with(|scenario| scenario.budget.faults = faults)
    }

    pub(crate) fn deaths(self, deaths: u8) -> Self {
        self.with(|scenario| scenario.budget.deaths = deaths)
    }

    pub(crate) fn stale(self, stale: u8) -> Self {
        self.with(|scenario| scenario.budget.stale = stale)
    }

    pub(crate) fn repeats(self, repeats: u8) -> Self {
        self.with(|scenario| scenario.budget.repeats = repeats)
    }

    pub(crate) fn without(self, rule: Sabotage) -> Self {
        self.with(|scenario| scenario.sabotage = Some(rule))
    }

    pub(crate) fn context(&self, run: &str, now: Instant) -> Context {
        let pool = PoolPolicy { rules: self.rules.clone(), ..signals().into() };
        let own = BTreeMap::from([("g6.xlarge".to_owned(), Usd::parse("1.00").expect("an amount"))]);
        Context {
            run: RunId(run.to_owned()),
            now,
            time_out: seconds(60),
            policy: self.policy.clone(),
            pools: BTreeMap::from([(voice(), pool)]),
            prices: Prices::new("us-east-1", own),
        }
    }
}
