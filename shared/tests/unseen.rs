//! What cannot be seen is said: each run has a line for each pool it was asked about, whatever could not be read.

mod support;

use reveille::decide::Reason;
use reveille::decide::budget::{BudgetPolicy, Enforce};
use reveille::domain::{AlertKey, PoolName, Usd};
use reveille::run::{BudgetRun, Outcome, UptimeRun};
use reveille::world::World;
use std::collections::BTreeSet;
use support::*;

type Runs = (&'static str, fn(&mut World) -> Outcome, &'static [&'static str]);

fn uptime(world: &mut World) -> Outcome {
    let ctx = context(world);
    world.drive(&mut UptimeRun::new(ctx))
}

fn guard(world: &mut World) -> Outcome {
    let (ctx, amount) = (context(world), Usd::from_micro(200_000_000));
    let (name, actual, forecast) = ("reveille".to_owned(), vec![100], Vec::new());
    let (enforce, mail, units) = (Enforce::Gate, Vec::new(), Vec::new());
    world.drive(&mut BudgetRun::new(ctx, BudgetPolicy { name, amount, actual, forecast, enforce, mail, units }))
}

/// (function, run, the pools it is asked about)
const RUNS: [Runs; 6] = [
    ("idle", tick, &["batch", "voice"]),
    ("wake", prewarm, &["voice"]),
    ("wake by a line", log_line, &["voice"]),
    ("wake by a change", state_change, &["batch", "voice"]),
    ("uptime", uptime, &["batch", "voice"]),
    ("budget", guard, &["batch", "voice"]),
];

fn pools_of(outcome: &Outcome) -> BTreeSet<PoolName> {
    outcome.decided.iter().map(|line| line.pool.clone()).collect()
}

#[test]
fn each_run_says_of_each_pool_what_it_decided_or_why_it_could_not() {
    for (name, run, asked) in RUNS {
        for lost in [&["describe"][..], &["read_ledger", "demand"], &["describe", "read_ledger", "demand"]] {
            let mut world = fleet("10:00", [unused()]);
            lost.iter().for_each(|call| fail_times(&mut world, call, "Timeout", 9));
            let outcome = run(&mut world);
            // Its pools' launches tell the guard of nodes, and a list of nodes tells the alarm.
            if lost.contains(&"describe") || name != "uptime" {
                assert!(
                    pools_of(&outcome).is_superset(&asked.iter().map(|word| pool(word)).collect()),
                    "{name}, {lost:?}: {outcome:?}"
                );
            }
            assert_eq!((starts(&world).len(), stops(&world).len()), (0, 0), "{name}, {lost:?}");
            let fails = outcome.blind.is_some();
            assert_eq!(fails, name != "budget" || lost.contains(&"read_ledger"), "{name}, {lost:?}: the failure shows");
        }
    }
}

#[test]
fn a_node_that_was_asked_for_by_name_has_its_line_in_every_pool_it_may_be_of() {
    let mut world = fleet("10:00", [node("i-a").named("a")]);
    fail(&mut world, "describe", "Timeout");
    let outcome = prewarm_nodes(&mut world, &["a"]);
    let lines: Vec<_> = outcome.decided.iter().map(|line| (line.pool.as_str(), line.reason)).collect();
    assert_eq!(lines, [("batch", Reason::CannotLook), ("voice", Reason::CannotLook)]);
}

#[test]
fn a_second_look_that_fails_takes_nothing_from_what_the_first_decided() {
    let mut world = fleet("10:00", [unused(), node("i-b").running_since("09:00").ready_since("09:01")]);
    tick(&mut world);
    world.set_now(at("10:05"));
    let mut run = Stepper::new(reveille::run::IdleRun::new(context(&world)));
    run.run_until(&mut world, "claim");
    world.record(&voice()).claims += 1;
    fail(&mut world, "read_ledger", "Timeout");
    let outcome = run.finish(&mut world);
    let lines: Vec<_> = outcome.decided.iter().map(|line| (line.node.clone(), line.reason)).collect();
    let of = |node: &str| Some(id(node));
    assert!(lines.starts_with(&[(of("i-a"), Reason::Idle), (of("i-b"), Reason::Idle)]), "{lines:?}");
    assert_eq!(lines.iter().filter(|(node, _)| node.is_some()).count(), 2, "one line a node: {lines:?}");
    assert!(outcome.blind.is_some());
}

#[test]
fn a_kept_message_that_nobody_can_read_is_told_by_its_name_and_kept_no_longer() {
    let mut world = fleet("10:00", [node("i-a")]);
    let key = AlertKey("alert#i-a#uptime#2026-11-30".to_owned());
    world.record(&voice()).untold.insert(key, "{".to_owned());
    ticks(&mut world, "10:00", "10:10");
    assert_eq!(told(&world), ["controller_fault"]);
    assert!(world.published[0].body.contains("alert#i-a#uptime#2026-11-30"), "{}", world.published[0].body);
    assert!(world.record(&voice()).untold.is_empty());
}
