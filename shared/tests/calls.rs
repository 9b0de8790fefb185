//! What a run costs in calls, path by path: the node's bill is watched by something that has to be nearly free itself.

mod support;

use reveille::run::UptimeRun;
use reveille::world::World;
use support::*;

/// The calls that this makes.
fn calls_of(world: &mut World, act: impl FnOnce(&mut World)) -> Vec<&'static str> {
    let before = world.calls.len();
    act(world);
    world.calls[before..].to_vec()
}

fn in_use(n: usize) -> World {
    let node = |n: usize| node(&format!("i-{n:02}")).running_since("09:00").ready_since("09:01");
    let mut world = fleet("10:00", (0..n).map(node));
    for n in 0..n {
        request(&mut world, &format!("i-{n:02}"), "09:55");
    }
    world
}

#[test]
fn a_prewarm_of_a_sleeping_node_takes_four_calls() {
    let mut world = fleet("10:00", [node("i-a")]);
    let calls = calls_of(&mut world, |world| drop(prewarm(world)));
    assert_eq!(calls, ["demand", "describe", "claim", "start"]);
}

#[test]
fn a_prewarm_of_a_running_node_asks_anew_whether_it_is_ready() {
    let mut world = in_use(1);
    let calls = calls_of(&mut world, |world| drop(prewarm(world)));
    assert_eq!(calls, ["demand", "describe", "readiness"]);
}

#[test]
fn a_prewarm_of_a_starting_node_takes_two() {
    let mut world = fleet("10:00", [node("i-a").pending_since("09:59:50")]);
    let calls = calls_of(&mut world, |world| drop(prewarm(world)));
    assert_eq!(calls.len(), 2, "{calls:?}");
}

#[test]
fn a_prewarm_of_a_stopping_node_takes_two() {
    let mut world = fleet("10:00", [node("i-a").stopping_since("09:59:50")]);
    let calls = calls_of(&mut world, |world| drop(prewarm(world)));
    assert_eq!(calls.len(), 2, "{calls:?}");
}

#[test]
fn a_prewarm_during_a_cooldown_takes_two() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "start", "VcpuLimitExceeded");
    prewarm(&mut world);
    let calls = calls_of(&mut world, |world| drop(prewarm_at(world, "10:05")));
    assert_eq!(calls.len(), 2, "{calls:?}");
}

#[test]
fn a_prewarm_that_names_a_sleeping_node_takes_four() {
    let mut world = fleet("10:00", [node("i-a").named("gpu-1")]);
    let calls = calls_of(&mut world, |world| drop(prewarm_nodes(world, &["gpu-1"])));
    assert_eq!(calls.len(), 4, "{calls:?}");
}

#[test]
fn a_tick_that_changes_nothing_takes_three() {
    for n in [1, 50] {
        let mut world = in_use(n);
        // The first one writes down that the nodes are up.
        tick(&mut world);
        let calls = calls_of(&mut world, |world| drop(tick(world)));
        assert_eq!(calls, ["describe", "read_ledger", "activity"], "{n} nodes");
    }
}

#[test]
fn a_tick_with_nothing_running_takes_two() {
    for n in [0, 1, 50] {
        let mut world = fleet("10:00", (0..n).map(|n| node(&format!("i-{n:02}"))));
        tick(&mut world);
        let calls = calls_of(&mut world, |world| drop(tick(world)));
        assert_eq!(calls, ["describe", "read_ledger"], "{n} nodes");
    }
}

#[test]
fn a_first_reading_costs_one_write_for_all_nodes_of_a_pool() {
    let node = |n: usize| node(&format!("i-{n:02}")).running_since("09:00").ready_since("09:01");
    let mut world = fleet("09:20", (0..50).map(node));
    tick(&mut world);
    let calls = calls_of(&mut world, |world| drop(tick_at(world, "09:26")));
    assert_eq!(calls, ["describe", "read_ledger", "activity", "facts"]);
}

#[test]
fn a_launch_costs_one_write_when_it_is_seen_and_one_when_it_is_over() {
    let mut world = fleet("10:00", [node("i-a").running_since("09:55").ready_since("09:56")]);
    let calls = calls_of(&mut world, |world| drop(tick(world)));
    assert_eq!(calls, ["describe", "read_ledger", "activity", "launches"]);
    world.stop(&id("i-a"), false).expect("accepted");
    let calls = calls_of(&mut world, |world| drop(tick_at(world, "10:05")));
    assert_eq!(calls, ["describe", "read_ledger", "launches"]);
}

#[test]
fn an_uptime_look_takes_four_and_one_write_for_what_runs() {
    let mut world = in_use(50);
    tick(&mut world);
    let calls = calls_of(&mut world, |world| {
        world.set_now(at("10:15"));
        let ctx = context(world);
        world.drive(&mut UptimeRun::new(ctx));
    });
    assert_eq!(calls, ["describe", "read_ledger", "history", "samples", "launches"]);
}

#[test]
fn a_stop_takes_three_more_calls_than_a_look() {
    let mut world = fleet("10:00", [node("i-a").running_since("09:00").ready_since("09:01")]);
    tick(&mut world);
    let calls = calls_of(&mut world, |world| drop(tick_at(world, "10:05")));
    assert_eq!(calls, ["describe", "read_ledger", "activity", "claim", "stop", "record"]);
}

#[test]
fn status_changes_nothing_and_takes_three_calls_at_most() {
    let mut world = fleet("10:00", [node("i-a").running_since("09:59")]);
    let calls = calls_of(&mut world, |world| drop(status(world)));
    assert_eq!(calls, ["read_ledger", "describe", "readiness"]);
}

#[test]
fn status_of_a_sleeping_node_starts_nothing() {
    let mut world = fleet("10:00", [node("i-a")]);
    let calls = calls_of(&mut world, |world| drop(status(world)));
    assert_eq!(calls, ["read_ledger", "describe"]);
}

#[test]
fn a_state_change_with_nothing_to_do_takes_two() {
    let mut world = in_use(1);
    tick(&mut world);
    let calls = calls_of(&mut world, |world| drop(state_change(world)));
    assert_eq!(calls, ["read_ledger", "describe"]);
}

#[test]
fn an_alert_sent_before_costs_one_call() {
    let mut world = fleet("10:00", [node("i-a").gone()]);
    prewarm(&mut world);
    let calls = calls_of(&mut world, |world| drop(prewarm_at(world, "10:01")));
    assert_eq!(calls, ["demand", "describe", "claim_alert"]);
}
