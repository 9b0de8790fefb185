use crate::support::*;
use reveille::decide::Reason;
use reveille::domain::WakeSource;
use reveille::run::{Cause, Target, WakeRun, WakeWish};
use reveille::world::World;

// 09: terminated nodes that are still listed.

#[test]
fn case_09_only_the_stopped_node_is_started() {
    let mut world = fleet("10:00", [node("i-mid").gone(), node("i-new"), node("i-old").gone()]);
    prewarm(&mut world);
    assert_eq!(starts(&world), ["10:00 i-new"]);
    assert_eq!(count(&world, "start"), 1);
}

#[test]
fn case_09_a_name_means_the_living_node() {
    let mut world = fleet("10:00", [node("i-a-old").gone().named("gpu-1"), node("i-b-new").named("gpu-1")]);
    prewarm_nodes(&mut world, &["gpu-1"]);
    assert_eq!(starts(&world), ["10:00 i-b-new"]);
}

#[test]
fn case_09_a_pool_of_terminated_nodes_is_told_once() {
    let mut world = fleet("10:00", [node("i-old").gone()]);
    let answer = only_answer(&prewarm(&mut world));
    assert_eq!(answer.reason, Reason::NoNode);
    prewarm_at(&mut world, "10:01");
    ticks(&mut world, "10:05", "10:30");
    assert_eq!(told(&world), ["misconfigured"]);
}

// 10, 11: nodes that cannot be stopped.

fn unstoppable(code: &'static str) -> World {
    let spot = node("i-spot").spot().running_since("09:00").ready_since("09:01");
    let mut world = fleet("10:00", [spot, node("i-od").running_since("09:00").ready_since("09:01")]);
    world.refuse_stop(&id("i-spot"), code);
    ticks(&mut world, "10:00", "12:00");
    world
}

#[test]
fn case_10_the_other_node_is_stopped() {
    assert_eq!(stops(&unstoppable("UnsupportedOperation")), ["10:05 i-od"]);
}

#[test]
fn case_10_a_node_that_cannot_be_stopped_is_told_once() {
    let world = unstoppable("UnsupportedOperation");
    assert_eq!(told(&world), ["cannot_stop"]);
    assert_eq!(world.published[0].node, Some(id("i-spot")));
}

#[test]
fn case_11_the_other_node_is_stopped() {
    assert_eq!(stops(&unstoppable("OperationNotPermitted")), ["10:05 i-od"]);
}

#[test]
fn case_11_protection_is_told_as_protection() {
    let world = unstoppable("OperationNotPermitted");
    assert!(world.published[0].body.contains("disableApiStop"), "{:?}", world.published);
}

#[test]
fn case_11_a_protected_node_is_tried_again_rarely() {
    // 10:05, then after 15, 30 and 60 minutes; the other node's one stop is counted too.
    assert_eq!(count(&unstoppable("OperationNotPermitted"), "stop"), 4 + 1);
}

#[test]
fn case_11_the_node_is_stopped_when_the_protection_is_gone() {
    let mut world = fleet("10:00", [unused()]);
    fail(&mut world, "stop", "OperationNotPermitted");
    ticks(&mut world, "10:00", "10:30");
    assert_eq!(stops(&world), ["10:20 i-a"]);
}

// 12: every node of the listing is handled (the pages themselves are the executor's).

#[test]
fn case_12_every_idle_node_of_a_long_listing_is_stopped_in_one_tick() {
    let idle = |n: u32| node(&format!("i-{n:03}")).running_since("09:00").ready_since("09:01");
    let mut world = fleet("10:00", (0..120).map(idle));
    tick(&mut world);
    tick_at(&mut world, "10:05");
    assert_eq!(stops(&world).len(), 120);
}

// 32: a batch that is too big to read.

fn unreadable_batch(world: &mut World) {
    let wish = WakeWish::new(Target::Pool(voice()), WakeSource::UnreadableBatch);
    let ctx = context(world);
    world.drive(&mut WakeRun::new(ctx, Cause::Wishes(vec![wish])));
}

#[test]
fn case_32_a_batch_that_is_too_big_to_read_is_a_wake_and_told_once_a_day() {
    let mut world = fleet("10:00", [node("i-a")]);
    for _ in 0..3 {
        unreadable_batch(&mut world);
    }
    assert_eq!((starts(&world), told(&world)), (vec!["10:00 i-a".to_owned()], vec!["controller_fault"]));
    assert!(world.published[0].body.contains("TooLarge"), "{:?}", world.published);
    world.set_now(at("25:00"));
    unreadable_batch(&mut world);
    assert_eq!(told(&world), ["controller_fault"; 2]);
}
