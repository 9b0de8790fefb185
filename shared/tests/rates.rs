//! Caps on wakes: whoever can wake can spend, so that nobody can flood.

mod support;
mod support_rules;

use reveille::decide::Reason;
use reveille::domain::{GateKeeper, WakeSource};
use reveille::run::{LeaseAnswer, Outcome, Target, WakeWish};
use reveille::world::World;
use support::*;
use support_rules::*;

/// Three wakes a minute by one caller, five by all.
fn capped() -> Setup {
    calls_per_node(4).with(|setup| (setup.policy.wakes_each, setup.policy.wakes_all) = (3, 5))
}

fn wake(world: &mut World, name: &str) -> Outcome {
    let wish = WakeWish { caller: Some(caller(name)), ..WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm) };
    capped().wake(world, wish)
}

/// So many wakes; how many of them were refused.
fn refused(world: &mut World, name: &str, wakes: usize) -> usize {
    (0..wakes).filter(|_| wake(world, name).too_many).count()
}

#[test]
fn a_caller_has_his_wakes_of_the_minute_and_no_more() {
    let mut world = fleet("10:00:30", [node("i-a")]);
    assert_eq!((refused(&mut world, "app", 3), refused(&mut world, "app", 2)), (0, 2));
}

#[test]
fn all_callers_together_have_theirs() {
    let mut world = fleet("10:00:30", [node("i-a")]);
    let of_each = ["app", "web", "third"].map(|name| refused(&mut world, name, 3));
    assert_eq!(of_each, [0, 1, 3]);
}

#[test]
fn one_caller_who_floods_leaves_room_for_another() {
    let mut world = fleet("10:00:30", [node("i-a")]);
    assert_eq!((refused(&mut world, "flood", 100), refused(&mut world, "app", 2)), (97, 0));
}

#[test]
fn a_refused_wake_records_nothing_and_starts_nothing() {
    let mut world = fleet("10:00:30", [node("i-a")]);
    refused(&mut world, "app", 3);
    world.stop(&id("i-a"), true).expect("a stop by hand");
    world.set_now(at("10:00:50"));
    let (before, wakes) = (item(&mut world), starts(&world).len());
    let outcome = wake(&mut world, "app");
    let after = item(&mut world);
    assert_eq!((after.demand, after.wake, after.waiting), (before.demand, before.wake, before.waiting));
    assert_eq!((outcome.answers, outcome.blind, starts(&world).len()), (vec![], None, wakes));
}

#[test]
fn in_the_next_minute_a_caller_is_free_again() {
    let mut world = fleet("10:00:59", [node("i-a")]);
    assert_eq!(refused(&mut world, "app", 4), 1);
    world.set_now(at("10:01:00"));
    assert_eq!(refused(&mut world, "app", 4), 1);
}

#[test]
fn a_run_that_is_late_counts_in_the_newest_minute() {
    let mut world = fleet("10:00:59", [node("i-a")]);
    let mut late = capped().context(&world);
    world.set_now(at("10:01:00"));
    refused(&mut world, "app", 3);
    late.run.0 = "late".to_owned();
    let wish = WakeWish { caller: Some(caller("app")), ..WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm) };
    let mut run = reveille::run::WakeRun::new(late, reveille::run::Cause::Wishes(vec![wish]));
    assert!(world.drive(&mut run).too_many, "the count is not begun anew by an older minute");
    assert_eq!(refused(&mut world, "app", 1), 1);
}

#[test]
fn lines_of_a_log_are_never_capped() {
    let mut world = fleet("10:00:30", [node("i-a")]);
    refused(&mut world, "app", 3);
    refused(&mut world, "web", 3);
    let told: Vec<bool> = (0..100).map(|_| capped().log_line(&mut world).too_many).collect();
    assert_eq!((told, item(&mut world).demand), (vec![false; 100], 105));
}

#[test]
fn status_looks_are_never_capped() {
    let mut world = fleet("10:00:30", [node("i-a")]);
    refused(&mut world, "app", 4);
    assert_eq!(capped().status(&mut world).reason, Reason::AlreadyStarting);
}

#[test]
fn a_call_that_waits_is_capped_and_a_renewal_is_not() {
    let mut world = fleet("10:00:30", [node("i-a").running_since("09:00").ready_since("09:01")]);
    leased(&mut world, "i-a", "call", "10:02");
    refused(&mut world, "app", 3);
    ["a", "b", "c"].iter().for_each(|id| leased(&mut world, "i-a", id, "12:00"));
    let refusal = capped().put(&mut world, "new");
    assert_eq!((refusal.lease, refusal.too_many), (Some(LeaseAnswer::NotYet), true));
    assert_eq!(waiting(&mut world), []);
    assert_eq!(held_on(&capped().put(&mut world, "call")), "i-a");
    let ended = capped().lease(&mut world, end("call"));
    assert_eq!((ended.lease, ended.too_many), (Some(LeaseAnswer::Over), false));
}

#[test]
fn a_closed_gate_is_told_before_the_cap_and_counts_no_wake() {
    let mut world = fleet("10:00:30", [node("i-a")]);
    close_gate(&mut world, "10:00", false);
    assert_eq!(refused(&mut world, "app", 100), 0);
    assert_eq!(only_answer(&wake(&mut world, "app")).reason, Reason::GateClosed);
    assert_eq!(item(&mut world).rate, None);
    assert_eq!(item(&mut world).gate.map(|gate| gate.by), Some(GateKeeper::Budget));
}

#[test]
fn each_pool_has_its_own_minute() {
    let mut world = fleet("10:00:30", [node("i-a"), node("i-b").in_pool("batch")]);
    refused(&mut world, "app", 3);
    let wish =
        WakeWish { caller: Some(caller("app")), ..WakeWish::new(Target::Pool(pool("batch")), WakeSource::Prewarm) };
    assert!(!capped().wake(&mut world, wish).too_many);
}
