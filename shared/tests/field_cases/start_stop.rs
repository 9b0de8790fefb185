use crate::support::*;
use reveille::decide::Reason;
use reveille::domain::{ClaimKind, NodeSeen, NodeState, Phase};
use reveille::world::World;

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
