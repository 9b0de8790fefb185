//! What random days with faults have found, each as a short scene.

mod support;

use reveille::run::{IdleRun, Run};
use reveille::world::World;
use support::*;

/// The node's run gets as far as its message, and dies.
fn dies_before_its_message(world: &mut World, run: impl Run) {
    Stepper::new(run).run_until(world, "claim_alert");
}

#[test]
fn a_refused_start_is_told_by_the_next_tick_though_its_run_died_before_the_message() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "start", "VcpuLimitExceeded");
    let run = prewarm_run(&world);
    dies_before_its_message(&mut world, run);
    ticks(&mut world, "10:05", "10:10");
    assert_eq!(told(&world), ["start_failed"]);
}

#[test]
fn a_start_that_fell_back_is_told_by_the_next_tick_though_the_run_that_saw_it_died() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.fall_back(&id("i-a"), state_reason("Client.InternalError"));
    prewarm(&mut world);
    world.set_now(at("10:01"));
    let run = prewarm_run(&world);
    dies_before_its_message(&mut world, run);
    tick_at(&mut world, "10:05");
    assert_eq!(told(&world), ["start_failed"]);
}

#[test]
fn a_refused_stop_is_told_by_the_next_tick_though_its_run_died_before_the_message() {
    let mut world = fleet("10:00", [unused()]);
    world.refuse_stop(&id("i-a"), "OperationNotPermitted");
    tick(&mut world);
    world.set_now(at("10:05"));
    let run = IdleRun::new(context(&world));
    dies_before_its_message(&mut world, run);
    tick_at(&mut world, "10:10");
    assert_eq!(told(&world), ["cannot_stop"]);
}

#[test]
fn a_refusal_that_nobody_waits_for_any_more_is_not_told_again() {
    let mut world = fleet("22:30", [node("i-a")]);
    fail_times(&mut world, "start", "VcpuLimitExceeded", 9);
    prewarm(&mut world);
    ticks(&mut world, "22:35", "24:30");
    assert_eq!(told(&world), ["start_failed"]);
}

#[test]
fn a_stop_that_is_refused_twice_as_not_now_is_told_within_40_minutes() {
    // The last use ends just after a tick: the node is idle for 35 minutes at the first STOP and for 40 at the second.
    let mut world = fleet("09:00", [unused()]);
    request(&mut world, "i-a", "09:30");
    world.refuse_stop(&id("i-a"), "IncorrectInstanceState");
    ticks(&mut world, "09:35", "10:10");
    assert_eq!((count(&world, "stop"), told(&world)), (2, vec!["cannot_stop"]));
}
