//! Builders for the tests of money and uptime: instants of any date, launches of the past, and runs of the uptime alarm and
//! the budget guard. A node of the type `g6.xlarge` costs one dollar an hour here, so that hours read as dollars.
#![allow(dead_code, reason = "each test file uses its own part")]

use crate::support::*;
use chrono_tz::Tz;
use reveille::decide::budget::{BudgetPolicy, Enforce};
use reveille::domain::{Disk, Gate, GateKeeper, Instant, Launch, NodeId, NodeSeen, NodeState, Usd};
use reveille::policy::Policy;
use reveille::prices::Prices;
use reveille::run::{Alert, BudgetRun, BudgetSeen, Call, Context, Outcome, UptimeRun};
use reveille::world::World;
use std::collections::{BTreeMap, BTreeSet};

/// An instant in UTC, such as `2026-11-12 19:59` or `2026-11-12 19:59:30`.
pub(crate) fn on(text: &str) -> Instant {
    let (date, clock) = text.split_once(' ').expect("a date and a clock");
    let seconds = if clock.len() == 5 { ":00" } else { "" };
    format!("{date}T{clock}{seconds}Z").parse().expect("an instant")
}

pub(crate) fn hours(n: i64) -> chrono::TimeDelta {
    chrono::TimeDelta::hours(n)
}

pub(crate) fn usd(text: &str) -> Usd {
    Usd::parse(text).expect("an amount")
}

pub(crate) fn zone(name: &str) -> Tz {
    name.parse().expect("a zone")
}

/// A running node of this type.
pub(crate) fn up_since(word: &str, kind: &str, launched: Instant) -> NodeSeen {
    let mut seen = node(word).running_since("00:00").seen();
    (seen.launched_at, seen.instance_type) = (Some(launched), Some(instance_type(kind)));
    seen
}

/// A node of this type that stopped at this instant.
pub(crate) fn off_since(word: &str, kind: &str, launched: Instant, stopped: Instant) -> NodeSeen {
    let mut seen = node(word).seen();
    (seen.launched_at, seen.instance_type) = (Some(launched), Some(instance_type(kind)));
    (seen.state, seen.transition_at) = (NodeState::Stopped, Some(stopped));
    seen
}

/// A world at this instant with these nodes.
pub(crate) fn world_at(now: Instant, nodes: impl IntoIterator<Item = NodeSeen>) -> World {
    let mut world = World::at(now);
    nodes.into_iter().for_each(|seen| world.add_node(seen));
    world
}

pub(crate) fn launch(kind: &str, from: Instant, to: Option<Instant>) -> Launch {
    Launch {
        instance_type: Some(instance_type(kind)),
        seen_at: to.unwrap_or(from),
        ended_at: to,
        used: Some(true),
        ..Launch::at(from)
    }
}

/// Writes ended launches into the ledger's history, as earlier runs did.
pub(crate) fn remember(world: &mut World, word: &str, launches: impl IntoIterator<Item = Launch>) {
    let ended: Vec<(NodeId, Launch)> = launches.into_iter().map(|launch| (id(word), launch)).collect();
    world.answer(&Call::NoteLaunches { pool: voice(), ended, newest: Vec::new() });
}

/// A gp3 volume with nothing beyond what gp3 includes.
pub(crate) fn gp3(gib: i64) -> Disk {
    Disk { kind: "gp3".to_owned(), gib, iops: 3000, mibps: 125, created_at: None }
}

// The uptime alarm.

/// One run of the uptime alarm, now, with days of this zone.
pub(crate) fn uptime_in(world: &mut World, zone: Tz) -> Outcome {
    let ctx = context_with(world, Policy { zone, ..Policy::default() });
    world.drive(&mut UptimeRun::new(ctx))
}

/// One run of the uptime alarm, now, with days of UTC.
pub(crate) fn uptime(world: &mut World) -> Outcome {
    uptime_in(world, Tz::UTC)
}

pub(crate) fn uptime_at(world: &mut World, clock: &str) -> Outcome {
    world.set_now(at(clock));
    uptime(world)
}

/// A run each quarter of an hour, both ends included.
pub(crate) fn quarters(world: &mut World, zone: Tz, from: Instant, to: Instant) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut now = from;
    while now <= to {
        world.set_now(now);
        outcomes.push(uptime_in(world, zone));
        now += minutes(15);
    }
    outcomes
}

// The budget guard.

/// A budget that tells at 50, 80 and 100 % of what is spent.
pub(crate) fn budget(amount: &str) -> BudgetPolicy {
    BudgetPolicy {
        name: "reveille".to_owned(),
        amount: usd(amount),
        actual: vec![50, 80, 100],
        forecast: Vec::new(),
        enforce: Enforce::Alert,
        mail: vec!["team@example.com".to_owned()],
        units: Vec::new(),
    }
}

pub(crate) fn enforcing(enforce: Enforce, amount: &str) -> BudgetPolicy {
    BudgetPolicy { enforce, ..budget(amount) }
}

/// The context of a run that knows this price of an hour of `g6.xlarge`.
pub(crate) fn context_priced(world: &World, hour: &str) -> Context {
    let own = BTreeMap::from([("g6.xlarge".to_owned(), usd(hour))]);
    Context { prices: Prices::new("us-east-1", own), ..context(world) }
}

/// One run of the budget guard, now.
pub(crate) fn guard(world: &mut World, budget: &BudgetPolicy) -> Outcome {
    let ctx = context_priced(world, "1.00");
    world.drive(&mut BudgetRun::new(ctx, budget.clone()))
}

pub(crate) fn guard_on(world: &mut World, budget: &BudgetPolicy, text: &str) -> Outcome {
    world.set_now(on(text));
    guard(world, budget)
}

/// A run each hour, both ends included.
pub(crate) fn guards(world: &mut World, budget: &BudgetPolicy, from: &str, to: &str) -> Vec<Outcome> {
    let (mut now, to) = (on(from), on(to));
    let mut outcomes = Vec::new();
    while now <= to {
        world.set_now(now);
        outcomes.push(guard(world, budget));
        now += hours(1);
    }
    outcomes
}

/// The AWS budget of this name shows this as spent, and stands as it is configured.
pub(crate) fn aws_shows(world: &mut World, budget: &BudgetPolicy, actual: &str) {
    let known = world.budgets.entry(budget.name.clone()).or_insert_with(|| BudgetSeen {
        amount: budget.amount.plain(),
        unit: "USD".to_owned(),
        actual: None,
        forecast: None,
        notices: reveille::run::notices(budget),
    });
    known.actual = Some(usd(actual));
}

/// The messages of one kind.
pub(crate) fn of_kind<'a>(world: &'a World, kind: &str) -> Vec<&'a Alert> {
    world.published.iter().filter(|alert| alert.kind.as_str() == kind).collect()
}

/// When each message of this kind was sent.
pub(crate) fn told_at(world: &World, kind: &str) -> Vec<String> {
    of_kind(world, kind).iter().map(|alert| alert.attributes["at"].clone()).collect()
}

/// The thresholds that were told, such as `actual 50 %`, each with when: `2026-11-03T02:00:00Z actual 50 %`.
pub(crate) fn thresholds(world: &World) -> Vec<String> {
    let of = |alert: &&Alert| Some(format!("{} {}", alert.attributes["at"], alert.attributes.get("threshold")?));
    of_kind(world, "budget").iter().filter_map(of).collect()
}

/// An input of the guard's newest line of the default pool.
pub(crate) fn input(outcome: &Outcome, name: &str) -> serde_json::Value {
    let line = outcome.decided.iter().rfind(|line| line.pool == voice()).expect("a line of the pool");
    line.inputs[name].clone()
}

/// The guard's own estimate.
pub(crate) fn estimate(outcome: &Outcome) -> Usd {
    usd(input(outcome, "own_estimate").as_str().expect("an amount"))
}

/// Whether a run asked for any call that starts, stops or claims a node.
pub(crate) fn touches_nodes(world: &World) -> bool {
    let acts: BTreeSet<&str> = ["start", "stop", "claim", "resize"].into();
    world.calls.iter().any(|call| acts.contains(call))
}

/// A gate that a person closed.
pub(crate) fn person_gate(until: Option<&str>) -> Gate {
    Gate {
        by: GateKeeper::Person,
        since: at("08:00"),
        reason: "maintenance".to_owned(),
        amount: None,
        until: until.map(at),
        drain: false,
    }
}
