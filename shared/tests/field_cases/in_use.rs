use crate::support::*;
use reveille::decide::Reason;
use reveille::observation::Unread;
use reveille::run::{Answer, IdleRun, Outcome};
use reveille::world::World;

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

#[test]
fn case_16_points_are_read_in_any_order_and_what_is_no_count_proves_nothing() {
    let points = |rows: &[(&str, f64)]| rows.iter().map(|(clock, value)| (at(clock), *value)).collect::<Vec<_>>();
    let rows = [
        ("newest first, the use in the middle", points(&[("10:04", 0.0), ("09:50", 1.0), ("09:20", 0.0)]), vec![]),
        ("a fraction of a request", points(&[("09:50", 0.25)]), vec![]),
        ("without bounds", points(&[("09:50", f64::INFINITY)]), vec![]),
        ("of the minutes to come", points(&[("10:09", 1.0)]), vec![]),
        ("no number", points(&[("09:50", f64::NAN)]), vec!["blind"]),
        ("less than nothing", points(&[("09:50", -3.0)]), vec!["blind"]),
        ("less than nothing, and a request", points(&[("09:20", -3.0), ("09:50", 1.0)]), vec![]),
    ];
    for (name, points, expected) in rows {
        let mut world = fleet("10:00", [unused()]);
        ticks_with_series(&mut world, |series| series.as_mut().expect("points").points.clone_from(&points));
        assert_eq!((stops(&world), told(&world)), (vec![], expected), "{name}");
    }
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

// 18: a node that nobody used.

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

// 19: a metric under a dimension that nothing is written to.

#[test]
fn case_19_a_metric_that_never_has_a_point_is_never_silence_and_is_told() {
    // The balancer's name is wrong in the signal and in its proof of life: valid answers, and empty for ever.
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    let outcomes = ticks(&mut world, "10:00", "34:00");
    assert_eq!(stops(&world), [""; 0]);
    let reasons: Vec<_> = outcomes.iter().map(|outcome| reason(outcome, "i-a")).collect();
    assert!(reasons.iter().all(|reason| *reason == Reason::SignalsUnknown), "{reasons:?}");
    // After three ticks, an hour, four hours and a day.
    assert_eq!(told(&world), ["blind"; 4]);
    assert!(world.published[0].body.contains("dimensions"), "{}", world.published[0].body);
}
