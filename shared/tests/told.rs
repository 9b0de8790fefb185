//! What must be told or must show, and what must not come back: each of these went silently wrong once.

mod support;

use reveille::domain::{NodeState, StateReason};
use reveille::run::{EffectKind, IdleRun, Outcome};
use support::*;

#[test]
fn an_alert_that_cannot_be_published_fails_the_run() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "start", "InsufficientInstanceCapacity");
    fail(&mut world, "publish", "AuthorizationError");
    let outcome = prewarm(&mut world);
    assert_eq!(outcome.unrecorded.map(|error| error.code), Some("AuthorizationError".to_owned()));
}

#[test]
fn a_first_reading_that_cannot_be_written_fails_the_run() {
    let mut world = fleet("10:00", [unused()]);
    fail(&mut world, "facts", "AccessDeniedException");
    assert!(tick(&mut world).unrecorded.is_some());
}

#[test]
fn a_blind_alert_whose_publish_failed_goes_out_at_the_next_tick() {
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    ticks(&mut world, "10:00", "10:05");
    fail(&mut world, "publish", "InternalError");
    tick_at(&mut world, "10:10");
    assert_eq!(told(&world), [] as [&str; 0]);
    ticks(&mut world, "10:15", "10:30");
    assert_eq!(told(&world), ["blind"]);
}

#[test]
fn a_ledger_that_cannot_be_read_is_told_once_an_hour() {
    let mut world = fleet("10:00", [unused()]);
    fail_times(&mut world, "read_ledger", "ResourceNotFoundException", 99);
    fail_times(&mut world, "claim_alert", "ResourceNotFoundException", 99);
    let outcomes = ticks(&mut world, "10:00", "11:55");
    assert!(outcomes.iter().all(|outcome| outcome.blind.is_some()));
    // Two pools are configured, two hours have begun.
    assert_eq!(told(&world), ["controller_fault"; 4]);
}

#[test]
fn a_describe_that_is_forbidden_from_the_first_day_on_is_told() {
    let mut world = fleet("10:00", [unused()]);
    *world.record(&voice()) = Default::default();
    fail_times(&mut world, "describe", "UnauthorizedOperation", 99);
    ticks(&mut world, "10:00", "10:30");
    assert_eq!(told(&world), ["controller_fault"; 2], "one for each pool in this hour");
}

#[test]
fn a_describe_that_is_throttled_on_the_first_day_is_told_to_nobody() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail_times(&mut world, "describe", "RequestLimitExceeded", 99);
    ticks(&mut world, "10:00", "10:30");
    assert_eq!(told(&world), [""; 0], "no node is known yet, and it passes");
}

#[test]
fn a_system_that_powers_off_before_it_was_ready_is_a_start_that_fell_back() {
    let mut world = fleet("10:00", [node("i-a")]);
    let off = StateReason { code: "Client.InstanceInitiatedShutdown".to_owned(), message: "off".to_owned() };
    world.fall_back(&id("i-a"), off);
    prewarm(&mut world);
    world.set_now(at("10:01"));
    state_change(&mut world);
    for second in ["10:01:10", "10:01:20", "10:01:30"] {
        prewarm_at(&mut world, second);
    }
    assert_eq!((starts(&world).len(), told(&world)), (1, vec!["start_failed"]));
    ticks(&mut world, "10:05", "10:20");
    assert_eq!(starts(&world).len(), 2, "and the wish is kept");
}

#[test]
fn a_stop_that_is_accepted_again_and_again_without_effect_is_told() {
    let mut world = fleet("10:00", [unused()]);
    for clock in ["10:00", "10:05", "10:10", "10:15", "10:20", "10:25"] {
        world.set_now(at(clock));
        let mut run = IdleRun::new(context(&world));
        // EC2 accepts, and the node runs on.
        drive_with(&mut world, &mut run, |call, answer| match (call, answer) {
            (reveille::run::Call::DescribeNodes { .. }, _) => reveille::run::Answer::Nodes(Ok(vec![unused().seen()])),
            (_, answer) => answer,
        });
    }
    assert_eq!(told(&world), ["cannot_stop"]);
    // First reading, first STOP at 10:05, and the third has no effect either.
    assert_eq!(world.published[0].attributes["at"], "2026-11-30T10:15:00Z");
}

#[test]
fn trouble_that_passes_is_told_when_it_does_not() {
    let rows =
        [("RequestLimitExceeded", "10:10", "at the third refusal"), ("Timeout", "10:05", "at the second silence")];
    for (code, clock, when) in rows {
        let mut world = fleet("10:00", [node("i-a")]);
        fail_times(&mut world, "start", code, 9);
        prewarm(&mut world);
        ticks(&mut world, "10:05", "10:15");
        assert_eq!(told(&world), ["start_failed"], "{code}: {when}");
        assert_eq!(world.published[0].attributes["at"], format!("2026-11-30T{clock}:00Z"), "{code}: {when}");
    }
}

#[test]
fn a_message_that_cannot_be_marked_as_sent_fails_the_run() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "start", "InsufficientInstanceCapacity");
    fail(&mut world, "mark_published", "AccessDeniedException");
    let outcome = prewarm(&mut world);
    assert_eq!(told(&world), ["start_failed"]);
    assert_eq!(outcome.unrecorded.map(|error| error.code), Some("AccessDeniedException".to_owned()));
}

/// The effects of this kind that a run counts.
fn effects_of(outcome: &Outcome, kind: EffectKind) -> usize {
    outcome.effects.iter().filter(|effect| effect.event == kind).count()
}

#[test]
fn a_stop_is_counted_where_it_stopped_something() {
    let mut world = fleet("10:00", [unused()]);
    let outcomes = ticks(&mut world, "10:00", "10:05");
    assert_eq!(effects_of(&outcomes[1], EffectKind::Stop), 1, "it ran");

    let mut world = fleet("10:00", [unused()]);
    tick(&mut world);
    world.set_now(at("10:05"));
    let mut idle = Stepper::new(IdleRun::new(context(&world)));
    idle.run_until(&mut world, "stop");
    world.stop(&id("i-a"), false).expect("a stop by hand");
    assert_eq!(effects_of(&idle.finish(&mut world), EffectKind::Stop), 0, "somebody was quicker");

    let mut world = fleet("10:00", [unused().stopping_since("09:40")]);
    let outcome = tick(&mut world);
    assert_eq!((count(&world, "stop"), effects_of(&outcome, EffectKind::Stop)), (1, 1), "it hung, and was forced");
}

#[test]
fn a_node_that_does_not_become_ready_is_told_once_a_launch() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.checks = minutes(600);
    prewarm(&mut world);
    ticks(&mut world, "10:05", "10:25");
    assert_eq!(told(&world), ["not_ready"]);
}

#[test]
fn a_source_with_gaps_that_keeps_a_node_for_ever_is_told() {
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    for ten in 0..18 {
        world.point(&alive_metric("i-a"), bucket(at("09:00") + minutes(10 * ten)), 1.0);
    }
    ticks(&mut world, "10:00", "11:00");
    assert_eq!(stops(&world), [] as [&str; 0]);
    assert!(told(&world).contains(&"blind"), "{:?}", told(&world));
}

#[test]
fn a_spent_wake_of_one_node_does_not_come_back_with_a_wake_of_another() {
    let mut world = fleet("10:00", [node("i-a").named("a"), node("i-b").named("b")]);
    prewarm_nodes(&mut world, &["a"]);
    ticks(&mut world, "10:05", "10:35");
    assert_eq!(state(&world, "i-a"), NodeState::Stopping);
    world.set_now(at("10:40"));
    prewarm_nodes(&mut world, &["b"]);
    ticks(&mut world, "10:45", "10:55");
    assert_eq!(starts(&world), ["10:00 i-a", "10:40 i-b"]);
}

#[test]
fn wakes_that_name_another_node_do_not_keep_this_one() {
    let mut world = fleet("10:00", [unused(), node("i-b").named("b").running_since("09:00").ready_since("09:01")]);
    for clock in ["10:00", "10:05", "10:10"] {
        world.set_now(at(clock));
        prewarm_nodes(&mut world, &["b"]);
        tick(&mut world);
    }
    assert_eq!(stops(&world), ["10:05 i-a"]);
}

#[test]
fn a_forced_stop_does_not_undo_a_person_s_stop() {
    let mut world = fleet("10:00", [node("i-a")]);
    prewarm(&mut world);
    world.set_now(at("10:07"));
    world.hang_in_stopping(&id("i-a"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    ticks(&mut world, "10:10", "10:40");
    assert_eq!((starts(&world), state(&world, "i-a")), (vec!["10:00 i-a".to_owned()], NodeState::Stopped));
}

#[test]
fn a_lost_stop_on_a_node_that_nobody_can_see_any_more_is_told() {
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    prove_life(&mut world, "i-a", "08:00", "10:02");
    fail(&mut world, "stop", "InternalError");
    ticks(&mut world, "10:00", "10:05");
    ticks(&mut world, "10:10", "10:40");
    assert_eq!(told(&world), ["blind"]);
}

#[test]
fn a_node_of_a_pool_that_nobody_configured_is_told_where_it_runs_and_once_a_run() {
    let mut world = fleet("10:00", [node("i-x").in_pool("vioce"), unused()]);
    tick(&mut world);
    assert_eq!(told(&world), [""; 0], "it sleeps");
    world.start(&id("i-x")).expect("a start by hand");
    world.set_now(at("10:05"));
    // Claims that are lost make the run look twice.
    let mut idle = Stepper::new(IdleRun::new(context(&world)));
    idle.run_until(&mut world, "claim");
    prewarm(&mut world);
    let outcome = idle.finish(&mut world);
    let of_it: Vec<_> = outcome.decided.iter().filter(|line| line.node == Some(id("i-x"))).collect();
    assert_eq!((told(&world), of_it.len()), (vec!["misconfigured"], 1));
    assert_eq!(of_it[0].inputs["unknown"], "no_signals");
}
