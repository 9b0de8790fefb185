//! The promises of a wanted node and of an idle one, through whole runs over the in-memory world, whichever call fails on
//! the way.

mod support;

use reveille::decide::Reason;
use reveille::domain::{NodeSeen, NodeState};
use reveille::run::{Answer, Call, Cause, EffectKind, IdleRun, Outcome, PoolAnswer, Target, WakeRun};
use reveille::world::World;
use support::*;

// Promise 1: a wanted node is started, or somebody is told why not.

#[test]
fn a_wanted_node_is_started_in_the_same_run() {
    let mut world = fleet("10:00", [node("i-a")]);
    let outcome = prewarm(&mut world);
    assert_eq!(starts(&world), ["10:00 i-a"]);
    assert_eq!(only_answer(&outcome).reason, Reason::AlreadyStarting);
}

#[test]
fn a_wake_that_meets_our_own_stop_is_met_when_it_is_over() {
    let mut world = fleet("10:00", [unused()]);
    world.stopping = minutes(3);
    ticks(&mut world, "10:00", "10:05");
    let answer = only_answer(&prewarm_at(&mut world, "10:06"));
    assert_eq!(answer.reason, Reason::StoppingWillStart);
    ticks(&mut world, "10:10", "10:15");
    assert_eq!(starts(&world), ["10:10 i-a"]);
}

#[test]
fn two_hundred_wakes_at_once_are_one_start() {
    let (mut world, outcomes) = two_hundred_wakes();
    assert_eq!((starts(&world), count(&world, "start")), (vec!["10:00 i-a".to_owned()], 1));
    assert_eq!(outcomes.len(), 200);
    assert_eq!(world.record(&voice()).demand, 200, "no wake is lost");
}

#[test]
fn two_hundred_wakes_at_once_are_all_told_that_the_node_is_on_its_way() {
    let (_, outcomes) = two_hundred_wakes();
    for outcome in &outcomes {
        assert!(outcome.blind.is_none() && is_200_or_202(&only_answer(outcome)), "{outcome:?}");
    }
}

fn two_hundred_wakes() -> (World, Vec<Outcome>) {
    let mut world = fleet("10:00", [node("i-a"), node("i-b")]);
    let wish = |n: u32| {
        let mut ctx = context(&world);
        ctx.run.0 = format!("caller-{n}");
        let wake = reveille::run::WakeWish::new(Target::Pool(voice()), reveille::domain::WakeSource::Prewarm);
        Stepper::new(WakeRun::new(ctx, Cause::Wishes(vec![wake])))
    };
    let mut runs: Vec<_> = (0..200).map(wish).collect();
    loop {
        let mut moved = 0;
        for run in &mut runs {
            moved += usize::from(run.step(&mut world));
        }
        if moved == 0 {
            let outcomes = runs.into_iter().map(|run| run.outcome.expect("every run ends")).collect();
            return (world, outcomes);
        }
    }
}

#[test]
fn a_start_whose_answer_was_lost_is_not_sent_to_the_next_candidate() {
    let mut world = fleet("10:01", [node("i-a"), node("i-b")]);
    fail(&mut world, "start", "Timeout");
    prewarm(&mut world);
    ticks(&mut world, "10:05", "10:15");
    assert_eq!(starts(&world), ["10:05 i-a"]);
}

#[test]
fn a_start_that_took_effect_unheard_is_not_repeated() {
    let mut world = fleet("10:01", [node("i-a"), node("i-b")]);
    lose_answer(&mut world, "start");
    prewarm(&mut world);
    ticks(&mut world, "10:05", "10:15");
    assert_eq!((starts(&world), count(&world, "start")), (vec!["10:01 i-a".to_owned()], 1));
}

/// Drives a run whose describe shows these nodes as they were.
fn with_describe(world: &mut World, run: &mut WakeRun, old: &[NodeSeen]) -> Outcome {
    drive_with(world, run, |call, answer| {
        if matches!(call, Call::DescribeNodes { .. }) { Answer::Nodes(Ok(old.to_vec())) } else { answer }
    })
}

/// An accepted START that the describe does not show for three minutes.
fn stale_after_the_start() -> World {
    let mut world = fleet("10:01", [node("i-a"), node("i-b")]);
    let old = vec![node("i-a").seen(), node("i-b").seen()];
    prewarm(&mut world);
    for minute in 2..5 {
        past_ten(&mut world, minute);
        let mut run = prewarm_run(&world);
        with_describe(&mut world, &mut run, &old);
    }
    world
}

#[test]
fn a_stale_describe_after_a_start_makes_no_second_start() {
    assert_eq!(count(&stale_after_the_start(), "start"), 1);
}

#[test]
fn a_stale_running_after_our_stop_is_never_told_ready() {
    let mut world = fleet("10:00", [unused()]);
    ticks(&mut world, "10:00", "10:05");
    world.set_now(at("10:07"));
    let mut run = prewarm_run(&world);
    let outcome = with_describe(&mut world, &mut run, &[unused().seen()]);
    assert_eq!(only_answer(&outcome).reason, Reason::StoppingWillStart);
}

#[test]
fn a_claim_whose_answer_was_lost_is_the_run_s_own_when_the_write_is_repeated() {
    // The SDK repeats the write; the second finds the counters moved by the first.
    let mut world = fleet("10:00", [node("i-a")]);
    let mut run = Stepper::new(prewarm_run(&world));
    run.run_until(&mut world, "claim");
    let repeated = run.peek().cloned().expect("the claim");
    world.answer(&repeated);
    run.finish(&mut world);
    assert_eq!(starts(&world), ["10:00 i-a"]);
}

#[test]
fn a_claim_whose_answer_was_lost_for_good_is_met_by_a_tick() {
    let mut world = fleet("10:01", [node("i-a"), node("i-b")]);
    lose_answer(&mut world, "claim");
    let outcome = prewarm(&mut world);
    assert!(is_200_or_202(&only_answer(&outcome)), "{outcome:?}");
    ticks(&mut world, "10:05", "10:15");
    assert_eq!(starts(&world).len(), 1, "{:?}", starts(&world));
}

#[test]
fn a_lost_claim_answer_of_a_stop_is_repeated_by_the_next_tick() {
    let mut world = fleet("10:00", [unused()]);
    lose_answer(&mut world, "claim");
    ticks(&mut world, "10:00", "10:15");
    assert_eq!(stops(&world), ["10:10 i-a"]);
}

#[test]
fn a_claim_that_never_arrived_is_made_again_in_the_same_run() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "claim", "Timeout");
    prewarm(&mut world);
    assert_eq!(starts(&world), ["10:00 i-a"]);
}

#[test]
fn a_wake_of_the_pool_and_one_of_its_node_are_one_start() {
    let mut world = fleet("10:01", [node("i-a")]);
    fail_times(&mut world, "start", "IncorrectInstanceState", 2);
    prewarm(&mut world);
    prewarm_nodes(&mut world, &["i-a"]);
    let refused = count(&world, "start");
    tick_at(&mut world, "10:05");
    assert_eq!((refused, count(&world, "start")), (2, 3));
}

#[test]
fn a_demand_that_could_not_be_recorded_is_told_to_the_caller() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "demand", "ProvisionedThroughputExceededException");
    assert!(prewarm(&mut world).blind.is_some());
}

// Promise 2: an idle node is stopped within 40 minutes.

/// Last used at 09:30, one failing call on the way, ticks until 10:10.
fn last_used_at_half_past_nine(spoil: impl FnOnce(&mut World)) -> World {
    let mut world = fleet("09:30", [unused()]);
    request(&mut world, "i-a", "09:29:30");
    ticks(&mut world, "09:30", "09:50");
    spoil(&mut world);
    ticks(&mut world, "09:55", "10:10");
    world
}

#[test]
fn an_idle_node_is_stopped_within_40_minutes_though_one_call_fails() {
    let calls = ["describe", "read_ledger", "activity", "claim", "stop", "facts", "record"];
    for call in calls {
        for code in ["RequestLimitExceeded", "Timeout", "InternalError"] {
            let world = last_used_at_half_past_nine(|world| fail(world, call, code));
            let stopped = stops(&world);
            assert!(stopped == ["10:00 i-a"] || stopped == ["10:05 i-a"], "{call} {code}: {stopped:?}");
        }
    }
}

#[test]
fn an_idle_node_is_stopped_once_though_one_answer_is_lost() {
    for call in ["claim", "stop", "facts", "record"] {
        let world = last_used_at_half_past_nine(|world| lose_answer(world, call));
        let stopped = stops(&world);
        assert!(stopped == ["10:00 i-a"] || stopped == ["10:05 i-a"], "{call}: {stopped:?}");
    }
}

#[test]
fn a_stop_that_fails_twice_is_told() {
    let world = last_used_at_half_past_nine(|world| fail_times(world, "stop", "Timeout", 2));
    assert_eq!((stops(&world), told(&world)), (vec!["10:10 i-a".to_owned()], vec!["cannot_stop"]));
}

#[test]
fn a_node_used_after_a_lost_stop_is_stopped_within_40_minutes_of_that_use() {
    let mut world = fleet("10:00", [unused()]);
    tick(&mut world);
    fail(&mut world, "stop", "Timeout");
    tick_at(&mut world, "10:05");
    request(&mut world, "i-a", "10:07");
    ticks(&mut world, "10:10", "11:30");
    assert_eq!(stops(&world), ["10:40 i-a"]);
}

#[test]
fn a_request_that_is_counted_late_keeps_a_node_whose_stop_was_lost() {
    let mut world = fleet("10:00", [unused()]);
    tick(&mut world);
    fail(&mut world, "stop", "Timeout");
    tick_at(&mut world, "10:05");
    request(&mut world, "i-a", "10:03");
    tick_at(&mut world, "10:10");
    assert_eq!(stops(&world), [""; 0]);
}

/// The STOP is sent at 10:05 and its answer is lost; a wake comes at 10:07.
fn woken_after_a_lost_stop(spoil: impl FnOnce(&mut World)) -> (World, PoolAnswer) {
    let mut world = fleet("10:00", [unused()]);
    tick(&mut world);
    spoil(&mut world);
    tick_at(&mut world, "10:05");
    let answer = only_answer(&prewarm_at(&mut world, "10:07"));
    (world, answer)
}

#[test]
fn a_lost_stop_without_effect_is_told_as_stopping_until_it_is_settled() {
    let (_, answer) = woken_after_a_lost_stop(|world| fail(world, "stop", "Timeout"));
    assert_eq!(answer.reason, Reason::StoppingWillStart);
}

#[test]
fn a_lost_stop_without_effect_is_settled_by_a_start_as_probe() {
    let (mut world, _) = woken_after_a_lost_stop(|world| fail(world, "stop", "Timeout"));
    tick_at(&mut world, "10:10");
    assert_eq!((count(&world, "start"), state(&world, "i-a")), (1, NodeState::Running));
    assert_eq!(status(&mut world).reason, Reason::AlreadyReady);
}

#[test]
fn a_probe_whose_answer_was_lost_is_sent_again() {
    let (mut world, _) = woken_after_a_lost_stop(|world| fail(world, "stop", "Timeout"));
    fail(&mut world, "start", "Timeout");
    ticks(&mut world, "10:10", "10:15");
    assert_eq!(status(&mut world).reason, Reason::AlreadyReady);
}

#[test]
fn a_lost_stop_is_repeated_though_another_node_has_met_the_wake() {
    let mut world = fleet("10:00", [unused(), node("i-b")]);
    tick(&mut world);
    fail(&mut world, "stop", "Timeout");
    tick_at(&mut world, "10:05");
    prewarm_at(&mut world, "10:07");
    assert_eq!(starts(&world), ["10:07 i-b"]);
    ticks(&mut world, "10:10", "10:40");
    assert!(stops(&world).contains(&"10:40 i-a".to_owned()), "{:?}", stops(&world));
}

#[test]
fn a_probe_that_finds_the_node_running_is_no_start() {
    let (mut world, _) = woken_after_a_lost_stop(|world| fail(world, "stop", "Timeout"));
    let outcome = tick_at(&mut world, "10:10");
    assert!(!outcome.effects.iter().any(|effect| effect.event == EffectKind::Start), "{outcome:?}");
    assert_eq!(starts(&world), [""; 0]);
}

#[test]
fn a_lost_stop_with_effect_is_followed_by_a_start() {
    let (mut world, answer) = woken_after_a_lost_stop(|world| lose_answer(world, "stop"));
    assert!(is_200_or_202(&answer), "{answer:?}");
    ticks(&mut world, "10:10", "10:15");
    assert_eq!(starts(&world), ["10:07 i-a"]);
}

#[test]
fn no_start_is_claimed_while_a_stop_may_still_be_in_flight() {
    let mut world = fleet("10:00", [unused()]);
    tick(&mut world);
    lose_answer(&mut world, "stop");
    world.stopping = seconds(5);
    tick_at(&mut world, "10:05");
    let answer = only_answer(&prewarm_at(&mut world, "10:05:59"));
    assert_eq!((answer.reason, starts(&world)), (Reason::StoppingWillStart, vec![]));
}

#[test]
fn a_node_started_by_hand_is_stopped_within_40_minutes_of_being_ready() {
    let mut world = fleet("10:00", [node("i-a")]);
    tick(&mut world);
    world.set_now(at("10:01"));
    world.start(&id("i-a")).expect("a start by hand");
    ticks(&mut world, "10:05", "11:00");
    assert_eq!(stops(&world), ["10:35 i-a"]);
}

#[test]
fn a_node_started_by_hand_again_after_our_stop_is_judged_anew() {
    let mut world = fleet("10:00", [unused()]);
    ticks(&mut world, "10:00", "10:10");
    world.set_now(at("10:11"));
    world.start(&id("i-a")).expect("a start by hand");
    ticks(&mut world, "10:15", "11:00");
    assert_eq!(stops(&world), ["10:05 i-a", "10:45 i-a"]);
}

fn hanging() -> World {
    let mut world = fleet("10:00", [unused()]);
    world.hang_in_stopping(&id("i-a"));
    ticks(&mut world, "10:00", "10:10");
    world
}

#[test]
fn a_node_that_hangs_in_stopping_is_forced_after_ten_minutes() {
    let mut world = hanging();
    assert_eq!(state(&world, "i-a"), NodeState::Stopping);
    let outcome = tick_at(&mut world, "10:15");
    assert_eq!(line(&outcome, "i-a").action, "force_stop");
    world.set_now(at("10:16"));
    assert_eq!(state(&world, "i-a"), NodeState::Stopped);
}

#[test]
fn a_wake_that_waits_for_a_hanging_node_is_met_after_the_force() {
    let mut world = hanging();
    prewarm_at(&mut world, "10:12");
    ticks(&mut world, "10:15", "10:25");
    assert_eq!(starts(&world), ["10:20 i-a"]);
}

#[test]
fn a_node_somebody_stopped_by_hand_that_hangs_is_forced_too() {
    let mut world = fleet("10:00", [unused()]);
    world.hang_in_stopping(&id("i-a"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    ticks(&mut world, "10:05", "10:15");
    assert_eq!(state(&world, "i-a"), NodeState::Stopped);
}

#[test]
fn a_refused_force_does_not_bring_a_spent_wake_back() {
    // A wake of 09:00 that the stop decision of 10:05 has seen; wakes stand for three hours here.
    let mut world = fleet("09:00", [unused()]);
    prewarm(&mut world);
    world.set_now(at("10:00"));
    world.hang_in_stopping(&id("i-a"));
    let policy = reveille::policy::Policy { wish: minutes(180), ..Default::default() };
    let tick = |world: &mut World, clock: &str| {
        world.set_now(at(clock));
        let ctx = context_with(world, policy.clone());
        world.drive(&mut IdleRun::new(ctx))
    };
    for clock in ["10:00", "10:05", "10:10"] {
        tick(&mut world, clock);
    }
    fail(&mut world, "stop", "RequestLimitExceeded");
    for clock in ["10:15", "10:20", "10:25", "10:30", "10:35"] {
        tick(&mut world, clock);
    }
    assert_eq!((state(&world, "i-a"), starts(&world)), (NodeState::Stopped, vec![]));
}

#[test]
fn a_running_node_of_a_pool_nobody_configured_is_kept_and_told_once_a_day() {
    let mut world = fleet("10:00", [node("i-a").running_since("06:00").in_pool("vioce")]);
    ticks(&mut world, "10:00", "10:30");
    assert_eq!((stops(&world), told(&world)), (vec![], vec!["misconfigured"]));
}

#[test]
fn an_alert_that_could_not_be_published_is_sent_by_a_later_run() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail_times(&mut world, "start", "InsufficientInstanceCapacity", 2);
    fail(&mut world, "publish", "InternalError");
    prewarm(&mut world);
    ticks(&mut world, "10:05", "10:10");
    assert_eq!(told(&world), ["start_failed"]);
}
