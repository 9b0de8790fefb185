//! What the model check has found, each as one order of calls over the in-memory world.

mod support;

use reveille::decide::Reason;
use reveille::domain::{NodeSeen, NodeState, RunId};
use reveille::run::{Answer, Call, Context, IdleRun};
use reveille::world::World;
use support::*;

/// A node whose STOP took from 10:00 to 10:07:30, and what EC2 showed of it on the way.
fn slow_to_stop() -> (World, NodeSeen) {
    let mut world = fleet("09:55", [unused()]);
    tick(&mut world);
    world.stopping = seconds(450);
    tick_at(&mut world, "10:00");
    let stopping = world.node(&id("i-a")).expect("a node").clone();
    assert_eq!(stopping.state, NodeState::Stopping);
    (world, stopping)
}

/// The tick of 10:10 is shown the node as it was before 10:07:30.
fn tick_with_an_old_look(world: &mut World, old: &NodeSeen) {
    world.set_now(at("10:10"));
    let mut run = IdleRun::new(context(world));
    drive_with(world, &mut run, |call, answer| {
        if matches!(call, Call::DescribeNodes { .. }) { Answer::Nodes(Ok(vec![old.clone()])) } else { answer }
    });
}

#[test]
fn a_look_from_before_our_start_forces_no_node_that_was_told_ready() {
    let (mut world, old) = slow_to_stop();
    prewarm_at(&mut world, "10:08");
    assert_eq!(only_answer(&prewarm_at(&mut world, "10:09:30")).reason, Reason::AlreadyReady);
    tick_with_an_old_look(&mut world, &old);
    assert_eq!(state(&world, "i-a"), NodeState::Running);
}

#[test]
fn a_look_from_before_a_start_by_hand_forces_no_node_that_was_told_ready() {
    let (mut world, old) = slow_to_stop();
    world.set_now(at("10:08"));
    world.start(&id("i-a")).expect("a start");
    assert_eq!(only_answer(&prewarm_at(&mut world, "10:09:30")).reason, Reason::AlreadyReady);
    tick_with_an_old_look(&mut world, &old);
    assert_eq!(state(&world, "i-a"), NodeState::Running);
}

#[test]
fn the_same_event_delivered_twice_sends_one_stop() {
    let mut world = fleet("09:55", [unused()]);
    tick(&mut world);
    world.set_now(at("10:00"));
    let same = |world: &World| Context { run: RunId("the-same".to_owned()), ..context(world) };
    let mut first = Stepper::new(IdleRun::new(same(&world)));
    first.run_until(&mut world, "claim");
    world.set_now(at("10:00:01"));
    let mut second = Stepper::new(IdleRun::new(same(&world)));
    second.run_until(&mut world, "claim");
    first.step(&mut world);
    // The second claims, finds a claim of its own name, and must not take it for its own.
    while second.step(&mut world) {}
    fail(&mut world, "stop", "RequestLimitExceeded");
    first.finish(&mut world);
    assert_eq!(only_answer(&prewarm(&mut world)).reason, Reason::AlreadyReady);
    assert_eq!((count(&world, "stop"), state(&world, "i-a")), (1, NodeState::Running));
}
