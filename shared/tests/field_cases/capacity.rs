use crate::support::*;
use reveille::decide::Reason;
use reveille::world::World;

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
