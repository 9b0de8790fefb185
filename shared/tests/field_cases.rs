//! The field cases that the core answers for, each through whole runs over the in-memory world.

mod support;

use reveille::decide::Reason;
use reveille::domain::{ClaimKind, NodeSeen, NodeState, Phase};
use reveille::observation::Unread;
use reveille::run::{Answer, IdleRun, Outcome};
use reveille::world::World;
use support::*;

// 01: a stop sent while `pending`.

#[test]
fn case_01_pending_is_kept_and_the_idle_node_beside_it_is_stopped() {
    let other = node("i-b").running_since("06:00").ready_since("06:01");
    let mut world = fleet("10:05", [node("i-a").pending_since("10:04:30"), other]);
    tick(&mut world);
    let outcome = tick_at(&mut world, "10:10");
    assert_eq!(stops(&world), ["10:10 i-b"]);
    assert_eq!(reason(&outcome, "i-a"), Reason::StillPending);
    assert_eq!((outcome.failed, outcome.blind), (vec![], None), "a node that boots is no error");
}

#[test]
fn case_01_a_stop_that_slips_through_is_not_now_and_holds_up_no_other() {
    let other = node("i-b").running_since("09:00").ready_since("09:01");
    let mut world = fleet("10:00", [unused(), other]);
    fail_node(&mut world, "stop", "i-a", "IncorrectInstanceState");
    ticks(&mut world, "10:00", "10:10");
    assert_eq!(stops(&world), ["10:05 i-b", "10:10 i-a"]);
}

#[test]
fn case_01_a_refusal_for_now_wakes_nobody_up_at_night() {
    let mut world = fleet("10:00", [unused()]);
    fail_node(&mut world, "stop", "i-a", "IncorrectInstanceState");
    ticks(&mut world, "10:00", "10:10");
    assert_eq!(told(&world), [""; 0]);
}

// 02: a wake that meets `stopping`.

fn stopping_until(clock: &str) -> World {
    let mut world = fleet("10:00", [unused()]);
    world.stopping = at(clock) - at("10:00");
    world.stop(&id("i-a"), false).expect("a stop by hand");
    world
}

#[test]
fn case_02_a_wake_that_meets_stopping_is_told_so() {
    let mut world = stopping_until("10:04");
    let answer = only_answer(&prewarm_at(&mut world, "10:01"));
    assert_eq!((answer.reason, answer.phase), (Reason::StoppingWillStart, Some(Phase::Stopping)));
    assert!(answer.ready_in_seconds.is_some_and(|seconds| seconds > 60), "{answer:?}");
}

#[test]
fn case_02_a_wake_that_meets_stopping_sends_no_start_yet() {
    let mut world = stopping_until("10:04");
    prewarm_at(&mut world, "10:01");
    assert_eq!(count(&world, "start"), 0);
}

#[test]
fn case_02_the_tick_starts_it_once_it_is_stopped_and_once_only() {
    let mut world = stopping_until("10:04");
    prewarm_at(&mut world, "10:01");
    ticks(&mut world, "10:05", "10:20");
    assert_eq!(starts(&world), ["10:05 i-a"]);
}

#[test]
fn case_02_the_state_change_starts_it_sooner() {
    let mut world = stopping_until("10:01:30");
    prewarm_at(&mut world, "10:01");
    world.set_now(at("10:01:31"));
    state_change(&mut world);
    ticks(&mut world, "10:05", "10:10");
    assert_eq!(starts(&world), ["10:01:31 i-a"]);
}

#[test]
fn case_02_a_start_that_lost_the_race_is_kept_and_repeated() {
    let mut world = fleet("10:01", [node("i-a")]);
    fail(&mut world, "start", "IncorrectInstanceState");
    let outcome = prewarm(&mut world);
    assert!(is_200_or_202(&only_answer(&outcome)), "{outcome:?}");
    ticks(&mut world, "10:05", "10:15");
    assert_eq!(starts(&world), ["10:05 i-a"]);
}

#[test]
fn case_02_a_node_stopped_by_hand_after_the_wake_stays_off() {
    let mut world = fleet("10:00", [node("i-a")]);
    prewarm(&mut world);
    world.set_now(at("10:07"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    ticks(&mut world, "10:10", "11:30");
    assert_eq!(starts(&world), ["10:00 i-a"]);
}

// 03: a start that falls back.

fn fallen(code: &str) -> World {
    let mut world = fleet("10:01", [node("i-a")]);
    world.fall_back(&id("i-a"), state_reason(code));
    log_line(&mut world);
    world
}

#[test]
fn case_03_one_message_names_the_reason_and_points_at_kms() {
    let mut world = fallen("Client.InternalError");
    ticks(&mut world, "10:05", "10:15");
    assert_eq!(told(&world), ["start_failed"]);
    let body = &world.published[0].body;
    assert!(body.contains("Client.InternalError") && body.contains("kms:CreateGrant"), "{body}");
}

#[test]
fn case_03_requests_that_keep_coming_make_no_storm_of_starts() {
    let mut world = fallen("Client.InternalError");
    for minute in 2..16 {
        log_line(past_ten(&mut world, minute));
    }
    assert_eq!(starts(&world), ["10:01 i-a"]);
}

#[test]
fn case_03_status_names_the_failure() {
    let mut world = fallen("Client.InternalError");
    tick_at(&mut world, "10:05");
    let answer = status(&mut world);
    assert_eq!((answer.reason, answer.fault_code.as_deref()), (Reason::CoolingDown, Some("Client.InternalError")));
}

#[test]
fn case_03_the_caller_whose_run_sees_it_first_is_told_the_failure() {
    let mut world = fallen("Client.InternalError");
    let answer = only_answer(&prewarm_at(&mut world, "10:02"));
    assert_eq!((answer.reason, answer.fault_code.as_deref()), (Reason::CoolingDown, Some("Client.InternalError")));
}

#[test]
fn case_03_it_is_tried_again_when_its_wait_is_over() {
    let mut world = fallen("Client.InternalError");
    ticks(&mut world, "10:05", "10:25");
    assert_eq!(starts(&world), ["10:01 i-a", "10:20 i-a"]);
}

#[test]
fn case_03_a_passing_fault_waits_at_least_four_minutes_too() {
    let mut world = fallen("Server.InternalError");
    for minute in 2..6 {
        log_line(past_ten(&mut world, minute));
    }
    assert_eq!(starts(&world), ["10:01 i-a"]);
}

#[test]
fn case_03_a_stop_by_hand_after_the_start_is_no_failed_start() {
    let mut world = fleet("10:01", [node("i-a")]);
    log_line(&mut world);
    world.set_now(at("10:02"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    ticks(&mut world, "10:05", "10:15");
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn case_03_a_stop_from_before_the_start_is_no_failed_start() {
    let mut world = fleet("10:01", [node("i-a").stopped_for("Server.InternalError")]);
    fail(&mut world, "start", "Timeout");
    log_line(&mut world);
    tick_at(&mut world, "10:05");
    assert_eq!((told(&world), starts(&world)), (vec![], vec!["10:05 i-a".to_owned()]));
}

/// A START was claimed at ten, and nobody has an answer yet.
#[test]
fn case_03_what_counts_as_a_start_that_fell_back() {
    let started = || node("i-a").running_since("10:00").seen();
    let before = || node("i-a").seen();
    let stopped = |mut seen: NodeSeen, code: &str, clock: Option<&str>| {
        (seen.state, seen.state_reason) = (NodeState::Stopped, Some(state_reason(code)));
        seen.transition_at = clock.map(at);
        seen
    };
    let stopping = NodeSeen { state: NodeState::Stopping, ..stopped(started(), "Server.InternalError", Some("10:01")) };
    let rows = [
        ("it was launched, and stopped", stopped(started(), "Server.InternalError", Some("10:01")), "10:02", true),
        ("it was launched, and is stopping still", stopping, "10:02", false),
        ("a person stopped it", stopped(started(), "Client.UserInitiatedShutdown", Some("10:01")), "10:02", false),
        ("it powered itself off", stopped(started(), "Client.InstanceInitiatedShutdown", Some("10:01")), "10:02", true),
        ("it stopped before, overdue", stopped(before(), "Server.InternalError", Some("09:59:59")), "10:05", false),
        ("it stopped in the same second", stopped(before(), "Server.InternalError", Some("10:00")), "10:05", true),
        ("EC2 tells no time, nothing shows yet", stopped(before(), "Server.InternalError", None), "10:03:59", false),
        ("EC2 tells no time, overdue", stopped(before(), "Server.InternalError", None), "10:04", true),
    ];
    for (name, seen, clock, fell) in rows {
        let mut world = fleet(clock, []);
        let known = world.record(&voice()).nodes.entry(id("i-a")).or_default();
        known.claim = Some(claim(ClaimKind::Start, "10:00", before().launched_at));
        world.add_node(seen);
        tick(&mut world);
        assert_eq!(told(&world), if fell { vec!["start_failed"] } else { vec![] }, "{name}");
    }
}

#[test]
fn case_03_a_node_that_was_ready_and_breaks_down_is_no_failed_start() {
    let mut seen = unused().seen();
    seen.state_reason = Some(state_reason("Server.InternalError"));
    (seen.state, seen.transition_at) = (NodeState::Stopped, Some(at("10:01")));
    let mut world = fleet("10:02", [unused()]);
    let known = world.record(&voice()).nodes.entry(id("i-a")).or_default();
    known.claim = Some(claim(ClaimKind::Start, "08:59", Some(at("05:00"))));
    world.add_node(seen);
    tick(&mut world);
    assert_eq!(told(&world), [""; 0]);
}

// 04: bookkeeping before the start is confirmed.

#[test]
fn case_04_a_refused_start_leaves_the_node_a_candidate() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "start", "InsufficientInstanceCapacity");
    prewarm(&mut world);
    prewarm_at(&mut world, "10:03");
    assert_eq!(starts(&world), ["10:03 i-a"]);
}

#[test]
fn case_04_a_refused_start_is_not_told_as_started() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "start", "InsufficientInstanceCapacity");
    let answer = only_answer(&prewarm(&mut world));
    assert_eq!((answer.reason, answer.phase), (Reason::CoolingDown, Some(Phase::Stopped)));
}

// 05: no capacity for one node.

fn big_and_small() -> World {
    let mut world = fleet("10:00", [node("i-big").named("gpu-big"), node("i-small").named("gpu-small")]);
    fail_node(&mut world, "start", "i-big", "InsufficientInstanceCapacity");
    world
}

#[test]
fn case_05_the_other_named_node_is_started() {
    let mut world = big_and_small();
    prewarm_nodes(&mut world, &["gpu-big", "gpu-small"]);
    assert_eq!(starts(&world), ["10:00 i-small"]);
}

#[test]
fn case_05_the_result_lists_both() {
    let mut world = big_and_small();
    let outcome = prewarm_nodes(&mut world, &["gpu-big", "gpu-small"]);
    let listed: Vec<_> = outcome.answers.iter().map(|answer| answer.reason).collect();
    assert_eq!(listed, [Reason::CoolingDown, Reason::AlreadyStarting]);
    let wait = outcome.answers[0].retry_after_seconds.expect("it is waited out");
    assert!((96..=120).contains(&wait), "two minutes, less up to a fifth: {wait}");
}

#[test]
fn case_05_any_node_of_the_pool_will_do_so_the_next_candidate_is_started_at_once() {
    let mut world = big_and_small();
    let outcome = prewarm(&mut world);
    assert_eq!(starts(&world), ["10:00 i-small"]);
    assert_eq!(only_answer(&outcome).reason, Reason::AlreadyStarting);
}

#[test]
fn case_05_every_candidate_is_tried_before_the_cooldown() {
    let mut world = fleet("10:00", ["i-a", "i-b", "i-c", "i-d"].map(node));
    for node in ["i-a", "i-b", "i-c"] {
        fail_node(&mut world, "start", node, "InsufficientInstanceCapacity");
    }
    prewarm(&mut world);
    assert_eq!(starts(&world), ["10:00 i-d"]);
}

#[test]
fn case_05_a_pool_without_capacity_holds_up_no_other_pool() {
    let mut world = fleet("10:00", [node("i-big"), node("i-small").in_pool("batch")]);
    fail_node(&mut world, "start", "i-big", "InsufficientInstanceCapacity");
    prewarm_nodes(&mut world, &["i-big", "i-small"]);
    assert_eq!(starts(&world), ["10:00 i-small"]);
}

// 06: a capacity error does not lose the wake.

fn no_capacity_twice() -> World {
    let mut world = fleet("09:00", [node("i-a")]);
    fail_times(&mut world, "start", "InsufficientInstanceCapacity", 2);
    log_line(&mut world);
    world
}

#[test]
fn case_06_the_tick_retries_with_no_further_request() {
    let mut world = no_capacity_twice();
    ticks(&mut world, "09:05", "09:20");
    assert_eq!(starts(&world), ["09:10 i-a"]);
}

#[test]
fn case_06_status_says_waiting_for_capacity_since_nine() {
    let mut world = no_capacity_twice();
    tick_at(&mut world, "09:05");
    let answer = status(&mut world);
    assert_eq!(answer.fault_code.as_deref(), Some("InsufficientInstanceCapacity"));
    assert_eq!(answer.fault_since, Some(at("09:00")));
}

#[test]
fn case_06_a_code_nobody_has_classed_keeps_the_wake() {
    let mut world = fleet("09:00", [node("i-a")]);
    fail(&mut world, "start", "SomethingNew");
    log_line(&mut world);
    ticks(&mut world, "09:05", "09:20");
    assert_eq!(starts(&world), ["09:05 i-a"]);
    assert_eq!(told(&world), ["start_failed"]);
}

// 07: quota.

fn out_of_quota() -> World {
    let mut world = fleet("10:00", [node("i-a")]);
    fail_times(&mut world, "start", "VcpuLimitExceeded", 100);
    for step in 0..10 {
        past_ten(&mut world, step * 5);
        log_line(&mut world);
        tick(&mut world);
    }
    world
}

#[test]
fn case_07_ten_batches_make_one_alert() {
    assert_eq!(told(&out_of_quota()), ["start_failed"]);
}

#[test]
fn case_07_one_start_a_backoff_step() {
    // 10:00, then after 15 minutes, then after 30.
    assert_eq!(count(&out_of_quota(), "start"), 3);
}

#[test]
fn case_07_status_names_the_quota() {
    let mut world = out_of_quota();
    assert_eq!(status(&mut world).fault_code.as_deref(), Some("VcpuLimitExceeded"));
}

// 08: a throttled describe.

fn throttled(times: u32) -> World {
    let mut world = fleet("10:00", [unused()]);
    tick(&mut world);
    fail_times(&mut world, "describe", "RequestLimitExceeded", times);
    world
}

#[test]
fn case_08_a_describe_that_failed_is_no_state() {
    let mut world = throttled(3);
    let outcomes = ticks(&mut world, "10:05", "10:15");
    assert_eq!((count(&world, "start"), count(&world, "stop")), (0, 0));
    let last = outcomes.last().expect("a tick");
    assert_eq!(reason(last, "i-a"), Reason::SignalsUnknown);
}

#[test]
fn case_08_the_run_fails_visibly() {
    let mut world = throttled(1);
    let outcome = tick_at(&mut world, "10:05");
    assert_eq!(outcome.blind.map(|error| error.code).as_deref(), Some("RequestLimitExceeded"));
}

#[test]
fn case_08_the_line_says_unknown_since_when() {
    let mut world = throttled(2);
    ticks(&mut world, "10:05", "10:05");
    let outcome = tick_at(&mut world, "10:10");
    assert_eq!(line(&outcome, "i-a").inputs["unknown_since"], serde_json::json!(at("10:05")));
}

#[test]
fn case_08_a_person_is_told_after_three_ticks_and_not_again_within_the_hour() {
    let mut world = throttled(12);
    ticks(&mut world, "10:05", "10:10");
    assert_eq!(told(&world), [""; 0], "two ticks may pass");
    ticks(&mut world, "10:15", "11:00");
    assert_eq!(told(&world), ["blind"]);
}

#[test]
fn case_08_the_idle_node_is_stopped_once_it_can_be_seen() {
    let mut world = throttled(3);
    ticks(&mut world, "10:05", "10:25");
    assert_eq!(stops(&world), ["10:20 i-a"]);
}

#[test]
fn case_08_a_wake_that_sees_nothing_is_recorded_and_met_by_the_tick() {
    let mut world = fleet("10:01", [node("i-a")]);
    fail(&mut world, "describe", "RequestLimitExceeded");
    assert!(prewarm(&mut world).blind.is_some(), "the caller is told of the failure");
    tick_at(&mut world, "10:05");
    assert_eq!(starts(&world), ["10:05 i-a"]);
}

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

// 13: work arrives between the idle check and the stop.

#[test]
fn case_13_a_wake_since_the_first_reading_cancels_the_stop() {
    let mut world = fleet("10:05", [unused()]);
    tick(&mut world);
    world.set_now(at("10:09:50"));
    log_line(&mut world);
    let outcome = tick_at(&mut world, "10:10");
    assert_eq!((count(&world, "stop"), reason(&outcome, "i-a")), (0, Reason::RecentWake));
}

#[test]
fn case_13_a_wake_between_the_look_and_the_claim_cancels_the_stop() {
    let mut world = fleet("10:05", [unused()]);
    tick(&mut world);
    world.set_now(at("10:10"));
    let mut check = Stepper::new(IdleRun::new(context(&world)));
    check.run_until(&mut world, "claim");
    log_line(&mut world);
    let outcome = check.finish(&mut world);
    assert_eq!((count(&world, "stop"), reason(&outcome, "i-a")), (0, Reason::RecentWake));
}

/// The latest instant that no rule can see: the STOP is on its way.
fn wake_after_the_claim() -> (World, Outcome) {
    let mut world = fleet("10:05", [unused()]);
    tick(&mut world);
    world.set_now(at("10:10"));
    let mut check = Stepper::new(IdleRun::new(context(&world)));
    check.run_until(&mut world, "stop");
    let woken = log_line(&mut world);
    check.finish(&mut world);
    (world, woken)
}

#[test]
fn case_13_a_wake_after_the_claim_is_never_told_ready() {
    let (_, woken) = wake_after_the_claim();
    assert_eq!(only_answer(&woken).reason, Reason::StoppingWillStart);
}

#[test]
fn case_13_a_wake_after_the_claim_is_met_when_the_node_has_stopped() {
    let (mut world, _) = wake_after_the_claim();
    tick_at(&mut world, "10:15");
    assert_eq!(starts(&world), ["10:15 i-a"]);
}

// 15: idle time counts from the last request.

fn used_until_half_past_nine() -> World {
    let mut world = fleet("09:05", [unused()]);
    for clock in ["09:10", "09:20", "09:29:59"] {
        request(&mut world, "i-a", clock);
    }
    world
}

#[test]
fn case_15_a_node_used_a_second_ago_is_kept() {
    let mut world = used_until_half_past_nine();
    let outcomes = ticks(&mut world, "09:05", "09:55");
    assert_eq!(stops(&world), [""; 0]);
    assert_eq!(reason(&outcomes[5], "i-a"), Reason::RecentUse, "at 09:30");
}

#[test]
fn case_15_it_is_stopped_half_an_hour_after_its_last_request() {
    let mut world = used_until_half_past_nine();
    ticks(&mut world, "09:05", "10:10");
    assert_eq!(stops(&world), ["10:00 i-a"]);
}

// 14: the core's part; the gauge decides, not arrivals.

#[test]
fn case_14_an_open_call_with_no_further_request_keeps_the_node() {
    let mut world = fleet("09:05", [unused()]);
    request(&mut world, "i-a", "09:00");
    open_call(&mut world, "i-a", "09:00", "09:45");
    let outcomes = ticks(&mut world, "09:05", "09:40");
    assert_eq!(reason(outcomes.last().expect("a tick"), "i-a"), Reason::OpenCall);
    ticks(&mut world, "09:45", "10:30");
    assert_eq!(stops(&world), ["10:15 i-a"]);
}

// 16: empty, zero and error are three answers.

#[test]
fn case_16a_empty_is_idle_where_the_source_is_proved_alive() {
    let mut world = fleet("10:00", [unused()]);
    ticks(&mut world, "10:00", "10:05");
    assert_eq!(stops(&world), ["10:05 i-a"]);
}

#[test]
fn case_16b_empty_is_unknown_where_nothing_proves_the_source() {
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    let outcomes = ticks(&mut world, "10:00", "11:30");
    assert_eq!(stops(&world), [""; 0]);
    assert_eq!(line(&outcomes[3], "i-a").inputs["unknown"], serde_json::json!(Unread::SourceSilent));
}

#[test]
fn case_16b_unknown_for_too_long_is_told() {
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    ticks(&mut world, "10:00", "10:10");
    assert_eq!(told(&world), ["blind"]);
}

/// An idle check whose request metric is answered otherwise.
fn ticks_with_series(world: &mut World, change: impl Fn(&mut Result<reveille::observation::Series, Unread>)) {
    for clock in ["10:00", "10:05", "10:10"] {
        world.set_now(at(clock));
        let mut run = IdleRun::new(context(world));
        drive_with(world, &mut run, |_, answer| {
            let Answer::Activity(Ok(mut activity)) = answer else { return answer };
            change(activity.get_mut(&request_metric("i-a")).expect("the metric was asked for"));
            Answer::Activity(Ok(activity))
        });
    }
}

#[test]
fn case_16c_an_error_for_the_metric_is_unknown() {
    let mut world = fleet("10:00", [unused()]);
    ticks_with_series(&mut world, |series| *series = Err(Unread::Failed));
    assert_eq!((stops(&world), told(&world)), (vec![], vec!["blind"]));
}

#[test]
fn case_16c_a_call_that_failed_is_unknown() {
    let mut world = fleet("10:00", [unused()]);
    fail_times(&mut world, "activity", "InternalFailure", 2);
    let outcomes = ticks(&mut world, "10:00", "10:05");
    assert_eq!(reason(&outcomes[1], "i-a"), Reason::SignalsUnknown);
}

#[test]
fn case_16d_partial_data_with_a_request_are_use() {
    let mut world = fleet("10:00", [unused()]);
    world.point(&request_metric("i-a"), at("09:50"), 3.0);
    ticks_with_series(&mut world, |series| series.as_mut().expect("points").complete = false);
    assert_eq!((stops(&world), told(&world)), (vec![], vec![]), "busy, and nothing to tell");
}

#[test]
fn case_16d_partial_data_without_a_request_prove_nothing() {
    let mut world = fleet("10:00", [unused()]);
    ticks_with_series(&mut world, |series| series.as_mut().expect("points").complete = false);
    assert_eq!((stops(&world), told(&world)), (vec![], vec!["blind"]));
}

// 17: one request in a long window.

#[test]
fn case_17_one_request_in_half_an_hour_is_use_however_it_is_counted() {
    for (name, value) in [("a sum", 1.0), ("a rate averaged over half an hour", 0.000_555_5)] {
        let mut world = fleet("10:00", [unused()]);
        each_minute_zero(&mut world);
        world.point(&request_metric("i-a"), at("09:37"), value);
        ticks(&mut world, "10:00", "10:05");
        assert_eq!(stops(&world), [""; 0], "{name}");
    }
}

fn each_minute_zero(world: &mut World) {
    (0..60).for_each(|minute| world.point(&request_metric("i-a"), at("09:00") + minutes(minute), 0.0));
}

// 18, 23: a node that nobody used.

#[test]
fn case_18_a_node_started_by_hand_is_kept_for_the_idle_time_and_then_stopped() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.start(&id("i-a")).expect("a start by hand");
    ticks(&mut world, "10:05", "11:00");
    // Ready was seen at 10:05.
    assert_eq!(stops(&world), ["10:35 i-a"]);
}

#[test]
fn case_18_points_from_before_the_start_are_no_idle_time() {
    let mut world = fleet("10:00", [node("i-a")]);
    (0..600).for_each(|minute| world.point(&request_metric("i-a"), at("00:00") + minutes(minute), 0.0));
    world.start(&id("i-a")).expect("a start by hand");
    for minute in 5..30 {
        tick(past_ten(&mut world, minute));
    }
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn case_23_a_node_that_was_never_used_is_idle_since_its_launch() {
    let mut world = fleet("09:00", [node("i-a").running_since("06:00").ready_since("06:01")]);
    ticks(&mut world, "09:00", "09:05");
    assert_eq!(stops(&world), ["09:05 i-a"]);
}

#[test]
fn case_23_facts_that_cannot_be_read_do_not_switch_the_check_off() {
    let mut world = fleet("09:00", [node("i-a").running_since("06:00")]);
    world.record(&voice()).unread = vec!["mark#i-a".to_owned(), "ready#i-a".to_owned(), "wake".to_owned()];
    ticks(&mut world, "09:00", "09:30");
    // Ready is seen anew at 09:00; that is later than any use.
    assert_eq!(stops(&world), ["09:30 i-a"]);
}

#[test]
fn case_23_a_claim_that_cannot_be_read_is_unknown() {
    let mut world = fleet("09:00", [node("i-a").running_since("06:00").ready_since("06:01")]);
    world.record(&voice()).unread = vec!["claim#i-a".to_owned()];
    ticks(&mut world, "09:00", "09:30");
    assert_eq!((stops(&world), told(&world)), (vec![], vec!["blind"]));
}

// 36: an event that is delivered more than once.

#[test]
fn case_36_a_tick_delivered_three_times_is_one_reading() {
    let mut world = fleet("10:00", [unused()]);
    for second in [0, 1, 150] {
        world.set_now(at("10:00") + seconds(second));
        tick(&mut world);
    }
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn case_36_a_tick_repeated_after_it_published_sends_one_message() {
    let mut world = fleet("10:00", [unused()]);
    world.refuse_stop(&id("i-a"), "OperationNotPermitted");
    tick(&mut world);
    fail(&mut world, "mark_published", "InternalServerError");
    for second in [0, 60, 120] {
        world.set_now(at("10:05") + seconds(second));
        tick(&mut world);
    }
    assert_eq!(told(&world), ["cannot_stop"]);
}

#[test]
fn case_36_unknown_ticks_are_counted_once_however_often_they_come() {
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    for second in [0, 1, 2, 60, 120] {
        world.set_now(at("10:00") + seconds(second));
        tick(&mut world);
    }
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn case_36_a_prewarm_delivered_twice_is_one_start() {
    let mut world = fleet("10:00", [node("i-a")]);
    prewarm(&mut world);
    prewarm_at(&mut world, "10:00:01");
    assert_eq!(count(&world, "start"), 1);
}

#[test]
fn case_36_two_prewarms_in_step_are_one_start() {
    let mut world = fleet("10:00", [node("i-a")]);
    let mut one = Stepper::new(prewarm_run(&world));
    one.run_until(&mut world, "claim");
    let two = prewarm(&mut world);
    let one = one.finish(&mut world);
    assert_eq!(count(&world, "start"), 1);
    assert!(is_200_or_202(&only_answer(&one)) && is_200_or_202(&only_answer(&two)), "{one:?} {two:?}");
}
