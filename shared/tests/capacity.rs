//! No capacity: the next node, then other instance types in the pool's order, then a wait that grows and a try by the tick.
//! The pool's types here are g6.xlarge, g6.2xlarge and g5.xlarge, the preferred one first.

mod support;
mod support_money;

use chrono::TimeDelta;
use reveille::decide::Reason;
use reveille::domain::{Fault, FaultKind, InstanceType, NodeState, WakeSource};
use reveille::error::{CallError, ErrorClass, TookEffect, class_of};
use reveille::run::{Cause, Context, IdleRun, Outcome, PoolPolicy, Target, WakeRun, WakeWish};
use reveille::world::World;
use std::collections::BTreeSet;
use support::*;
use support_money::*;

const TYPES: [&str; 3] = ["g6.xlarge", "g6.2xlarge", "g5.xlarge"];

/// The default context, with these types in each pool's list.
fn typed(world: &World, types: &[&str]) -> Context {
    let types: Vec<InstanceType> = types.iter().map(|kind| instance_type(kind)).collect();
    let pools = [voice(), pool("batch")];
    let policy = PoolPolicy { types, ..PoolPolicy::from(signals()) };
    Context { pools: pools.map(|pool| (pool, policy.clone())).into(), ..context(world) }
}

fn wake_as(world: &mut World, types: &[&str]) -> Outcome {
    let wish = WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm);
    let ctx = typed(world, types);
    world.drive(&mut WakeRun::new(ctx, Cause::Wishes(vec![wish])))
}

fn wake(world: &mut World) -> Outcome {
    wake_as(world, &TYPES)
}

fn tick_typed(world: &mut World) -> Outcome {
    let ctx = typed(world, &TYPES);
    world.drive(&mut IdleRun::new(ctx))
}

/// A tick every five minutes, both ends included.
fn ticks_typed(world: &mut World, from: &str, to: &str) -> Vec<Outcome> {
    let (mut now, to) = (at(from), at(to));
    let mut outcomes = Vec::new();
    while now <= to {
        world.set_now(now);
        outcomes.push(tick_typed(world));
        now += minutes(5);
    }
    outcomes
}

/// EC2 has none of these types.
fn out_of(world: &mut World, types: &[&str]) {
    world.no_capacity_types = types.iter().map(|kind| instance_type(kind)).collect();
}

fn kind_of(world: &World, node: &str) -> String {
    world.node(&id(node)).and_then(|seen| seen.instance_type.clone()).expect("a type").to_string()
}

fn fault_of(world: &mut World, node: &str) -> Fault {
    world.record(&voice()).node(&id(node)).fault.expect("a refusal")
}

// The next node, then the next type.

#[test]
fn without_capacity_on_one_node_the_next_is_started_as_it_is() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b")]);
    world.no_capacity(&id("i-a"), true);
    let answer = only_answer(&wake(&mut world));
    assert_eq!((starts(&world), count(&world, "resize")), (vec!["10:00 i-b".to_owned()], 0));
    assert_eq!(answer.reason, Reason::AlreadyStarting);
}

#[test]
fn without_capacity_on_any_node_the_next_type_is_tried_in_the_same_run() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    let answer = only_answer(&wake(&mut world));
    assert_eq!((starts(&world), kind_of(&world, "i-a")), (vec!["10:00 i-a".to_owned()], "g6.2xlarge".to_owned()));
    assert_eq!(answer.reason, Reason::AlreadyStarting);
}

#[test]
fn types_are_tried_in_the_order_of_the_list() {
    let rows: [(&str, &[&str], &str, usize); 3] = [
        ("the preferred one is there", &[], "g6.xlarge", 0),
        ("the second is there", &["g6.xlarge"], "g6.2xlarge", 1),
        ("only the last is there", &["g6.xlarge", "g6.2xlarge"], "g5.xlarge", 2),
    ];
    for (name, none, kind, resizes) in rows {
        let mut world = fleet("10:00", [node("i-a")]);
        out_of(&mut world, none);
        wake(&mut world);
        assert_eq!((starts(&world).len(), kind_of(&world, "i-a")), (1, kind.to_owned()), "{name}");
        assert_eq!(count(&world, "resize"), resizes, "{name}");
    }
}

#[test]
fn every_node_is_tried_before_any_type_is_changed() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b")]);
    out_of(&mut world, &["g6.xlarge"]);
    wake(&mut world);
    let acts: Vec<&str> = world.calls.iter().filter(|call| ["start", "resize"].contains(*call)).copied().collect();
    assert_eq!(acts, ["start", "start", "resize", "start"]);
    assert_eq!((starts(&world).len(), kind_of(&world, "i-b")), (1, "g6.xlarge".to_owned()));
}

#[test]
fn a_pool_without_a_list_changes_no_type() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    let answer = only_answer(&wake_as(&mut world, &[]));
    assert_eq!((answer.reason, count(&world, "resize"), count(&world, "start")), (Reason::CoolingDown, 0, 1));
}

#[test]
fn a_named_node_is_tried_as_other_types_too() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b").named("b")]);
    out_of(&mut world, &["g6.xlarge"]);
    let wish = WakeWish::new(Target::Node("b".to_owned()), WakeSource::Prewarm);
    let ctx = typed(&world, &TYPES);
    world.drive(&mut WakeRun::new(ctx, Cause::Wishes(vec![wish])));
    assert_eq!((starts(&world), kind_of(&world, "i-b")), (vec!["10:00 i-b".to_owned()], "g6.2xlarge".to_owned()));
    assert_eq!(kind_of(&world, "i-a"), "g6.xlarge");
}

#[test]
fn a_node_that_runs_is_never_changed() {
    let mut world = fleet("10:00", [unused(), node("i-b")]);
    out_of(&mut world, &["g6.xlarge"]);
    let answer = only_answer(&wake(&mut world));
    assert_eq!((answer.reason, count(&world, "resize")), (Reason::AlreadyReady, 0));
}

#[test]
fn the_launch_is_written_down_as_the_type_it_ran_as() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    wake(&mut world);
    ticks_typed(&mut world, "10:05", "10:05");
    let launch = world.record(&voice()).node(&id("i-a")).launch.expect("a launch");
    assert_eq!(launch.instance_type, Some(instance_type("g6.2xlarge")));
}

// All refused.

/// Every type is out, and a caller asks at 10:00.
fn all_out() -> (World, Outcome) {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &TYPES);
    let outcome = wake(&mut world);
    (world, outcome)
}

#[test]
fn without_any_type_the_caller_is_told_to_wait() {
    let (mut world, outcome) = all_out();
    let answer = only_answer(&outcome);
    assert_eq!(
        (answer.reason, answer.fault_code.as_deref()),
        (Reason::CoolingDown, Some("InsufficientInstanceCapacity"))
    );
    assert_eq!(answer.fault_since, Some(at("10:00")));
    let retry = fault_of(&mut world, "i-a").retry_at;
    assert!(retry > at("10:01:35") && retry <= at("10:02"), "two minutes, less a fifth at most: {retry}");
    assert_eq!(answer.retry_after_seconds, Some((retry - at("10:00")).num_seconds()));
    assert_eq!((count(&world, "start"), starts(&world)), (3, vec![]), "each type once");
}

#[test]
fn a_round_of_types_is_one_try() {
    let (mut world, _) = all_out();
    let fault = fault_of(&mut world, "i-a");
    let tried: BTreeSet<String> = fault.types.iter().map(InstanceType::to_string).collect();
    assert_eq!((fault.tries, tried), (1, TYPES.map(str::to_owned).into()));
}

#[test]
fn a_second_caller_within_the_wait_starts_nothing() {
    let (mut world, _) = all_out();
    world.set_now(at("10:01"));
    let answer = only_answer(&wake(&mut world));
    assert_eq!((answer.reason, count(&world, "start")), (Reason::CoolingDown, 3));
}

#[test]
fn case_06_the_tick_tries_again_with_no_further_request() {
    let (mut world, _) = all_out();
    world.set_now(at("10:03"));
    out_of(&mut world, &[]);
    ticks_typed(&mut world, "10:05", "10:15");
    assert_eq!(starts(&world), ["10:05 i-a"]);
}

#[test]
fn a_wake_that_has_aged_is_not_tried_for_ever() {
    let (mut world, _) = all_out();
    ticks_typed(&mut world, "10:05", "11:00");
    let tried = count(&world, "start");
    ticks_typed(&mut world, "11:05", "13:00");
    assert_eq!(count(&world, "start"), tried);
}

/// A request a minute and a tick every five, for an hour.
fn an_hour_of_requests(world: &mut World, types: &[&str]) {
    for minute in 0..60 {
        past_ten(world, minute);
        wake_as(world, types);
        if minute % 5 == 0 {
            let ctx = typed(world, types);
            world.drive(&mut IdleRun::new(ctx));
        }
    }
}

#[test]
fn requests_that_keep_coming_make_no_storm_of_starts() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    an_hour_of_requests(&mut world, &[]);
    let sent = count(&world, "start");
    assert!((5..=6).contains(&sent), "waits of 2, 4, 8, 16 and 30 minutes, less a fifth at most: {sent}");
}

#[test]
fn requests_that_keep_coming_try_each_type_once_a_wait() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &TYPES);
    an_hour_of_requests(&mut world, &TYPES);
    let sent = count(&world, "start");
    assert!((15..=18).contains(&sent), "{sent}");
}

#[test]
fn no_capacity_for_an_hour_is_one_message() {
    for types in [&TYPES[..], &[]] {
        let mut world = fleet("10:00", [node("i-a")]);
        out_of(&mut world, &TYPES);
        an_hour_of_requests(&mut world, types);
        assert_eq!(told(&world), ["start_failed"], "{types:?}");
    }
}

#[test]
fn case_06_the_next_tick_starts_whichever_type_is_there_again() {
    let started = |kind: &str| {
        let (mut world, _) = all_out();
        world.set_now(at("10:03"));
        let others: Vec<&str> = TYPES.into_iter().filter(|other| *other != kind).collect();
        out_of(&mut world, &others);
        ticks_typed(&mut world, "10:05", "10:30");
        (starts(&world), kind_of(&world, "i-a"))
    };
    let late: Vec<_> = TYPES.map(|kind| (kind, started(kind))).into();
    let at_once = TYPES.map(|kind| (kind, (vec!["10:05 i-a".to_owned()], kind.to_owned())));
    assert_eq!(late, at_once);
}

#[test]
fn case_06_the_next_tick_starts_whichever_node_has_capacity_again() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b")]);
    world.no_capacity(&id("i-a"), true);
    world.no_capacity(&id("i-b"), true);
    prewarm(&mut world);
    world.set_now(at("10:03"));
    world.no_capacity(&id("i-b"), false);
    ticks(&mut world, "10:05", "10:30");
    assert_eq!(starts(&world), ["10:05 i-b"]);
}

#[test]
fn a_refusal_after_the_wait_is_the_second_try_and_waits_for_longer() {
    let (mut world, _) = all_out();
    world.set_now(at("10:02"));
    wake(&mut world);
    let fault = fault_of(&mut world, "i-a");
    assert_eq!((fault.tries, fault.since), (2, at("10:00")));
    assert!(fault.retry_at > at("10:05:10") && fault.retry_at <= at("10:06"), "{}", fault.retry_at);
    assert_eq!(count(&world, "start"), 6, "each type again");
}

// Jitter.

fn refusal(code: &str) -> CallError {
    CallError {
        act: "start node".to_owned(),
        code: code.to_owned(),
        message: "x".to_owned(),
        class: class_of(code),
        effect: TookEffect::No,
    }
}

/// The waits of one node, refused again as soon as each is over.
fn waits(node: &str, code: &str, tries: usize) -> Vec<TimeDelta> {
    let mut fault: Option<Fault> = None;
    let mut now = at("10:00");
    let mut waits = Vec::new();
    for _ in 0..tries {
        let next = Fault::next(FaultKind::Start, fault.as_ref(), &id(node), &refusal(code), now);
        waits.push(next.retry_at - now);
        now = next.retry_at;
        fault = Some(next);
    }
    waits
}

#[test]
fn a_wait_is_the_backoff_less_a_fifth_at_most() {
    for (code, class) in [
        ("InsufficientInstanceCapacity", ErrorClass::Capacity),
        ("VcpuLimitExceeded", ErrorClass::Quota),
        ("SomethingNew", ErrorClass::Unknown),
    ] {
        for n in 0..100 {
            for (tries, wait) in (1..).zip(waits(&format!("i-{n}"), code, 8)) {
                let full = class.backoff(tries);
                assert!(wait <= full && wait * 5 >= full * 4, "{code}, node {n}, try {tries}: {wait} of {full}");
            }
        }
    }
}

#[test]
fn nodes_that_were_refused_together_come_back_apart() {
    for tries in 1..=5 {
        let last = |n: i32| waits(&format!("i-0abc{n}"), "InsufficientInstanceCapacity", tries)[tries - 1];
        let waits: BTreeSet<TimeDelta> = (0..10).map(last).collect();
        assert!(waits.len() >= 5, "try {tries}: {waits:?}");
    }
}

#[test]
fn the_same_refusal_of_the_same_node_waits_as_long() {
    assert_eq!(waits("i-a", "VcpuLimitExceeded", 8), waits("i-a", "VcpuLimitExceeded", 8));
}

#[test]
fn what_is_repaired_by_the_next_tick_does_not_wait() {
    assert_eq!(waits("i-a", "RequestLimitExceeded", 2), [TimeDelta::zero(); 2]);
}

// Quota.

#[test]
fn case_07_a_quota_is_no_reason_for_another_type() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail_times(&mut world, "start", "VcpuLimitExceeded", 99);
    let answer = only_answer(&wake(&mut world));
    assert_eq!((count(&world, "resize"), count(&world, "start")), (0, 1));
    assert_eq!((answer.reason, answer.fault_code.as_deref()), (Reason::CoolingDown, Some("VcpuLimitExceeded")));
    assert!(answer.retry_after_seconds >= Some(12 * 60), "{answer:?}");
}

#[test]
fn case_07_a_quota_is_one_message_and_few_tries() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail_times(&mut world, "start", "VcpuLimitExceeded", 99);
    an_hour_of_requests(&mut world, &TYPES);
    let sent = count(&world, "start");
    assert!((2..=3).contains(&sent), "waits of 15 and 30 minutes, less a fifth at most: {sent}");
    assert_eq!((told(&world), count(&world, "resize")), (vec!["start_failed"], 0));
    assert!(world.published[0].body.contains("quota"), "{}", world.published[0].body);
}

#[test]
fn a_quota_that_the_second_type_meets_leaves_the_third_its_turn() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "start", "InsufficientInstanceCapacity");
    fail(&mut world, "start", "VcpuLimitExceeded");
    let answer = only_answer(&wake(&mut world));
    assert_eq!((count(&world, "start"), count(&world, "resize")), (3, 2));
    assert_eq!(answer.reason, Reason::AlreadyStarting, "each family has a quota of its own");
}

// Put back.

/// Started as g6.2xlarge at 10:00, seen ready at 10:05, stopped for being idle at 10:35.
fn asleep_as_another_type() -> World {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    wake(&mut world);
    ticks_typed(&mut world, "10:05", "10:35");
    assert_eq!((stops(&world), kind_of(&world, "i-a")), (vec!["10:35 i-a".to_owned()], "g6.2xlarge".to_owned()));
    world
}

#[test]
fn a_node_that_sleeps_and_is_not_wanted_becomes_the_preferred_type_again() {
    let mut world = asleep_as_another_type();
    let outcomes = ticks_typed(&mut world, "10:40", "11:10");
    assert_eq!(kind_of(&world, "i-a"), "g6.xlarge");
    assert_eq!(count(&world, "resize"), 2, "once there, once back");
    let back = outcomes.iter().filter(|outcome| reason(outcome, "i-a") == Reason::PutBack).count();
    assert_eq!((back, state(&world, "i-a")), (1, NodeState::Stopped));
}

#[test]
fn a_node_that_runs_as_another_type_is_left_as_it_is() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    wake(&mut world);
    open_call(&mut world, "i-a", "10:01", "13:00");
    ticks_typed(&mut world, "10:05", "12:00");
    assert_eq!((kind_of(&world, "i-a"), count(&world, "resize")), ("g6.2xlarge".to_owned(), 1));
}

#[test]
fn a_node_that_somebody_waits_for_is_not_put_back() {
    let (mut world, _) = all_out();
    let resizes = count(&world, "resize");
    world.set_now(at("10:01"));
    let outcome = tick_typed(&mut world);
    assert_eq!((count(&world, "resize"), reason(&outcome, "i-a")), (resizes, Reason::Asleep));
}

#[test]
fn a_type_that_is_not_on_the_list_is_somebody_s_choice() {
    let mut world = fleet("10:00", []);
    world.add_node(off_since("i-a", "p5.48xlarge", at("05:00"), at("06:00")));
    ticks_typed(&mut world, "10:00", "10:30");
    assert_eq!((kind_of(&world, "i-a"), count(&world, "resize")), ("p5.48xlarge".to_owned(), 0));
}

/// It would become the pool's preferred type in the end, and never again what somebody chose.
#[test]
fn a_type_that_is_not_on_the_list_is_not_changed_for_want_of_capacity_either() {
    let mut world = fleet("10:00", []);
    world.add_node(off_since("i-a", "p5.48xlarge", at("05:00"), at("06:00")));
    out_of(&mut world, &["p5.48xlarge"]);
    let answer = only_answer(&wake(&mut world));
    assert_eq!((kind_of(&world, "i-a"), answer.reason), ("p5.48xlarge".to_owned(), Reason::CoolingDown));
}

#[test]
fn the_preferred_type_is_left_as_it_is() {
    let mut world = fleet("10:00", [node("i-a")]);
    ticks_typed(&mut world, "10:00", "10:30");
    assert_eq!(count(&world, "resize"), 0);
}

#[test]
fn a_put_back_that_is_refused_for_good_is_told_once_a_day_and_tried_again() {
    let mut world = asleep_as_another_type();
    fail_times(&mut world, "resize", "UnauthorizedOperation", 99);
    ticks_typed(&mut world, "10:40", "11:30");
    assert_eq!(told_at(&world, "controller_fault").len(), 1, "{:?}", told(&world));
    assert!(count(&world, "resize") > 3);
}

#[test]
fn a_put_back_that_meets_a_start_by_hand_is_nobody_s_fault() {
    let mut world = asleep_as_another_type();
    ticks_typed(&mut world, "10:40", "10:55");
    let before = told(&world).len();
    world.set_now(at("11:00"));
    let mut run = Stepper::new(IdleRun::new(typed(&world, &TYPES)));
    run.run_until(&mut world, "resize");
    world.start(&id("i-a")).expect("a start by hand");
    run.finish(&mut world);
    assert_eq!((told(&world).len(), kind_of(&world, "i-a")), (before, "g6.2xlarge".to_owned()));
    assert_eq!(state(&world, "i-a"), NodeState::Pending);
}

#[test]
fn a_wake_before_the_put_back_starts_the_type_that_the_node_has() {
    let mut world = asleep_as_another_type();
    world.set_now(at("10:40"));
    wake(&mut world);
    assert_eq!((starts(&world).len(), kind_of(&world, "i-a")), (2, "g6.2xlarge".to_owned()));
}

// The change of the type fails.

#[test]
fn a_type_that_ec2_refuses_is_passed_over_for_the_next() {
    for code in ["InvalidInstanceAttributeValue", "UnauthorizedOperation", "SomethingNew"] {
        let mut world = fleet("10:00", [node("i-a")]);
        out_of(&mut world, &["g6.xlarge"]);
        fail(&mut world, "resize", code);
        wake(&mut world);
        assert_eq!((starts(&world).len(), kind_of(&world, "i-a")), (1, "g5.xlarge".to_owned()), "{code}");
        assert_eq!(count(&world, "start"), 2, "{code}: not as the second type");
    }
}

#[test]
fn a_change_that_is_refused_for_every_type_waits_and_is_told() {
    for code in ["InvalidInstanceAttributeValue", "UnauthorizedOperation"] {
        let mut world = fleet("10:00", [node("i-a")]);
        out_of(&mut world, &["g6.xlarge"]);
        fail_times(&mut world, "resize", code, 2);
        let answer = only_answer(&wake(&mut world));
        assert_eq!((answer.reason, starts(&world)), (Reason::CoolingDown, vec![]), "{code}");
        assert!(world.published.iter().any(|alert| alert.body.contains(code)), "{code}: {:?}", world.published);
        assert!(answer.retry_after_seconds.is_some_and(|seconds| seconds <= 120), "{code}: {answer:?}");
    }
}

/// Somebody has started or stopped it between the look and the change.
#[test]
fn a_change_that_meets_another_state_starts_nothing_and_is_tried_with_the_next_request() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    fail(&mut world, "resize", "IncorrectInstanceState");
    wake(&mut world);
    assert_eq!((starts(&world), count(&world, "start"), kind_of(&world, "i-a").as_str()), (vec![], 1, "g6.xlarge"));
    world.set_now(at("10:01"));
    wake(&mut world);
    assert_eq!((starts(&world), kind_of(&world, "i-a")), (vec!["10:01 i-a".to_owned()], "g6.2xlarge".to_owned()));
    assert_eq!(told(&world), ["start_failed"], "of the capacity, once");
}

#[test]
fn a_refused_change_leaves_no_claim_behind() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    fail_times(&mut world, "resize", "InvalidInstanceAttributeValue", 2);
    wake(&mut world);
    out_of(&mut world, &[]);
    ticks_typed(&mut world, "10:05", "10:10");
    assert_eq!((starts(&world), kind_of(&world, "i-a")), (vec!["10:05 i-a".to_owned()], "g6.xlarge".to_owned()));
}

#[test]
fn a_change_whose_answer_was_lost_starts_nothing_in_the_dark() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    lose_answer(&mut world, "resize");
    let answer = only_answer(&wake_as(&mut world, &TYPES[..2]));
    assert_eq!((starts(&world), count(&world, "start")), (vec![], 1));
    assert_eq!(answer.reason, Reason::CoolingDown);
    assert!(told(&world).contains(&"start_failed"), "{:?}", told(&world));
}

#[test]
fn a_change_whose_answer_was_lost_is_met_by_the_next_request() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    lose_answer(&mut world, "resize");
    wake_as(&mut world, &TYPES[..2]);
    world.set_now(at("10:02"));
    wake_as(&mut world, &TYPES[..2]);
    assert_eq!((starts(&world), kind_of(&world, "i-a")), (vec!["10:02 i-a".to_owned()], "g6.2xlarge".to_owned()));
}

#[test]
fn a_change_of_a_node_that_another_run_has_claimed_is_not_made() {
    let mut world = fleet("10:00", [node("i-a")]);
    out_of(&mut world, &["g6.xlarge"]);
    let wish = WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm);
    let wishes = Cause::Wishes(vec![wish]);
    let ctx = |name: &str, world: &World| world.context(name, &typed(world, &TYPES));
    let (one, other) = (ctx("one", &world), ctx("other", &world));
    let mut one = Stepper::new(WakeRun::new(one, wishes.clone()));
    let mut other = Stepper::new(WakeRun::new(other, wishes));
    while one.step(&mut world) | other.step(&mut world) {}
    assert_eq!((starts(&world).len(), state(&world, "i-a")), (1, NodeState::Pending));
    assert_eq!((count(&world, "resize"), kind_of(&world, "i-a")), (1, "g6.2xlarge".to_owned()));
}

// Others are not held up.

#[test]
fn case_05_a_pool_without_capacity_holds_up_no_other_pool() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b").in_pool("batch")]);
    world.no_capacity(&id("i-a"), true);
    let wish = |name: &str| WakeWish::new(Target::Pool(pool(name)), WakeSource::Prewarm);
    let ctx = typed(&world, &TYPES);
    let outcome = world.drive(&mut WakeRun::new(ctx, Cause::Wishes(vec![wish("voice"), wish("batch")])));
    assert_eq!(starts(&world), ["10:00 i-b"]);
    let reasons: BTreeSet<(String, &str)> =
        outcome.answers.iter().map(|answer| (answer.pool.to_string(), answer.reason.as_str())).collect();
    let expected = [("voice".to_owned(), "cooling_down"), ("batch".to_owned(), "already_starting")];
    assert_eq!(reasons, expected.into());
}

#[test]
fn case_04_a_refused_start_leaves_no_word_that_the_node_is_awake() {
    let (mut world, _) = all_out();
    let record = world.record(&voice()).node(&id("i-a"));
    assert_eq!((record.ready, record.launch), (None, None));
    let answer = only_answer(&wake(&mut world));
    assert_eq!(answer.address, None);
}
