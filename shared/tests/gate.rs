//! The gate: closed by a spent budget or by a person, it takes no wake and starts nothing; drained, it sends running nodes to
//! sleep without cutting a call. The month of these tests ends at 24:00.

mod support;
mod support_money;

use reveille::decide::Reason;
use reveille::decide::budget::{BudgetPolicy, Enforce};
use reveille::domain::{Gate, GateKeeper, NodeState, PoolRecord};
use reveille::observation::SignalKind;
use reveille::policy::Policy;
use reveille::run::{BudgetRun, Context, EffectKind, IdleRun, Outcome, PoolPolicy};
use reveille::world::World;
use support::*;
use support_money::*;

/// The budget of 100 dollars is spent, as AWS shows it.
fn spent(world: &mut World, enforce: Enforce) -> Outcome {
    aws_shows(world, &enforcing(enforce, "100"), "100");
    guard(world, &enforcing(enforce, "100"))
}

fn gate_of(world: &mut World) -> Option<Gate> {
    let now = world.now();
    world.record(&voice()).closed_gate(now).cloned()
}

fn pool_record(world: &mut World) -> PoolRecord {
    world.record(&voice()).clone()
}

// Closing.

#[test]
fn a_spent_budget_closes_the_gate_of_every_pool_until_the_month_ends() {
    let mut world = fleet("10:00", [node("i-a")]);
    let outcome = spent(&mut world, Enforce::Gate);
    let closed: Vec<_> = outcome.effects.iter().filter(|effect| effect.event == EffectKind::GateClosed).collect();
    assert_eq!(closed.len(), 2, "voice and batch");
    let gate = gate_of(&mut world).expect("a closed gate");
    assert_eq!((gate.by, gate.since, gate.until), (GateKeeper::Budget, at("10:00"), Some(at("24:00"))));
    assert!(!gate.drain, "running nodes are left");
}

#[test]
fn a_cent_less_closes_nothing() {
    let mut world = fleet("10:00", [node("i-a")]);
    aws_shows(&mut world, &budget("100"), "99.99");
    let outcome = guard(&mut world, &enforcing(Enforce::Gate, "100"));
    assert_eq!((gate_of(&mut world), count(&world, "set_gate")), (None, 0));
    assert_eq!(outcome.decided[0].reason, Reason::BudgetWithin);
}

#[test]
fn a_forecast_closes_nothing() {
    let mut world = fleet("10:00", [node("i-a")]);
    let budget = BudgetPolicy { forecast: vec![100], ..enforcing(Enforce::Gate, "100") };
    aws_shows(&mut world, &budget, "10");
    world.budgets.get_mut("reveille").expect("a budget").forecast = Some(usd("500"));
    guard(&mut world, &budget);
    assert_eq!((gate_of(&mut world), told(&world)), (None, vec!["budget"]));
}

#[test]
fn a_budget_that_only_tells_closes_nothing() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Alert);
    assert_eq!((gate_of(&mut world), count(&world, "set_gate"), told(&world).len()), (None, 0, 3));
    prewarm(&mut world);
    assert_eq!(starts(&world), ["10:00 i-a"]);
}

#[test]
fn a_closed_gate_is_not_written_again_every_hour() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    let before = pool_record(&mut world);
    for clock in ["11:00", "12:00", "13:00"] {
        world.set_now(at(clock));
        let outcome = spent(&mut world, Enforce::Gate);
        assert_eq!(outcome.decided[0].reason, Reason::GateStaysClosed);
    }
    assert_eq!((pool_record(&mut world), count(&world, "set_gate")), (before, 2));
}

#[test]
fn a_gate_that_could_not_be_written_fails_the_run_and_is_closed_an_hour_later() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail_times(&mut world, "set_gate", "InternalServerError", 2);
    let outcome = spent(&mut world, Enforce::Gate);
    let effects = outcome.effects.iter().filter(|effect| effect.event == EffectKind::GateClosed).count();
    assert_eq!((outcome.unrecorded.is_some(), effects), (true, 0));
    world.set_now(at("11:00"));
    spent(&mut world, Enforce::Gate);
    assert!(gate_of(&mut world).is_some());
}

#[test]
fn a_gate_whose_guard_died_before_its_message_is_told_by_the_next_tick_and_once() {
    let mut world = fleet("10:00", [node("i-a")]);
    aws_shows(&mut world, &enforcing(Enforce::Gate, "100"), "100");
    let run = BudgetRun::new(context(&world), enforcing(Enforce::Gate, "100"));
    Stepper::new(run).run_until(&mut world, "claim_alert");
    assert!(gate_of(&mut world).is_some(), "it had closed the gate");
    ticks(&mut world, "10:05", "10:15");
    world.set_now(at("11:00"));
    guard(&mut world, &enforcing(Enforce::Gate, "100"));
    let subjects = world.published.iter().filter(|alert| alert.subject.contains("gate closed"));
    assert_eq!(subjects.count(), 1);
    assert_eq!(world.published[0].attributes["at"], "2026-11-30T10:05:00Z");
}

#[test]
fn a_gate_that_a_person_closed_is_told_to_nobody() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.record(&voice()).gate = Some(person_gate(None));
    ticks(&mut world, "10:00", "10:10");
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn a_setting_that_turns_from_gate_to_stop_drains_too() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    world.set_now(at("11:00"));
    spent(&mut world, Enforce::Stop);
    let gate = gate_of(&mut world).expect("a closed gate");
    assert_eq!((gate.drain, gate.since), (true, at("11:00")));
}

// What a closed gate keeps out.

#[test]
fn a_wake_at_a_closed_gate_is_answered_with_the_reason_and_the_end() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    let answer = only_answer(&prewarm_at(&mut world, "10:05"));
    assert_eq!((answer.reason, answer.gate_until), (Reason::GateClosed, Some(at("24:00"))));
    let reason = answer.gate_reason.expect("a reason");
    assert_eq!(reason, "the budget for 2026-11 is spent", "callers are told no figures");
}

#[test]
fn a_wake_at_a_closed_gate_is_neither_recorded_nor_met() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    let before = pool_record(&mut world);
    let outcome = prewarm_at(&mut world, "10:05");
    world.set_now(at("10:06"));
    prewarm_nodes(&mut world, &["i-a"]);
    log_line(&mut world);
    assert_eq!(pool_record(&mut world), before);
    ticks(&mut world, "10:10", "10:30");
    assert_eq!((starts(&world), count(&world, "claim")), (vec![], 0));
    assert!(!outcome.effects.iter().any(|effect| effect.event == EffectKind::Demand), "{:?}", outcome.effects);
}

#[test]
fn a_caller_of_a_closed_gate_is_no_fault() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    let before = told(&world).len();
    let outcome = prewarm_at(&mut world, "10:05");
    assert_eq!((outcome.failed, outcome.blind, outcome.unrecorded), (vec![], None, None));
    assert_eq!(told(&world).len(), before);
}

#[test]
fn a_status_look_says_that_the_gate_is_closed() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    let answer = status(&mut world);
    assert_eq!((answer.reason, answer.gate_until), (Reason::GateClosed, Some(at("24:00"))));
}

/// Woken at 10:00 with no capacity; the budget is spent at 10:01.
fn unmet_wake_at_a_closed_gate() -> World {
    let mut world = fleet("10:00", [node("i-a")]);
    world.no_capacity(&id("i-a"), true);
    prewarm(&mut world);
    world.set_now(at("10:01"));
    spent(&mut world, Enforce::Gate);
    world.no_capacity(&id("i-a"), false);
    world
}

#[test]
fn a_wake_that_stood_before_the_gate_closed_is_not_started_by_the_tick() {
    let mut world = unmet_wake_at_a_closed_gate();
    ticks(&mut world, "10:05", "10:55");
    state_change(&mut world);
    assert_eq!(starts(&world), [""; 0]);
}

#[test]
fn a_wake_that_still_stands_when_the_gate_opens_is_started() {
    let mut world = unmet_wake_at_a_closed_gate();
    ticks(&mut world, "10:05", "10:15");
    guard(&mut world, &enforcing(Enforce::Gate, "200"));
    ticks(&mut world, "10:20", "10:25");
    assert_eq!(starts(&world), ["10:20 i-a"]);
}

#[test]
fn a_closed_gate_leaves_a_running_node_that_is_used_and_stops_one_that_is_idle() {
    let mut world = fleet("10:00", [unused(), node("i-b").running_since("09:00").ready_since("09:01")]);
    open_call(&mut world, "i-b", "09:00", "11:00");
    spent(&mut world, Enforce::Gate);
    ticks(&mut world, "10:00", "10:30");
    assert_eq!(stops(&world), ["10:05 i-a"]);
}

#[test]
fn a_start_that_was_decided_before_the_gate_closed_is_not_sent_after() {
    let mut world = fleet("10:00", [node("i-a")]);
    let mut wake = Stepper::new(prewarm_run(&world));
    wake.run_until(&mut world, "claim");
    spent(&mut world, Enforce::Gate);
    let outcome = wake.finish(&mut world);
    assert_eq!((starts(&world), only_answer(&outcome).reason), (vec![], Reason::GateClosed));
}

#[test]
fn a_tick_s_start_that_was_decided_before_the_gate_closed_is_not_sent_after() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.no_capacity(&id("i-a"), true);
    prewarm(&mut world);
    world.no_capacity(&id("i-a"), false);
    world.set_now(at("10:05"));
    let mut tick = Stepper::new(IdleRun::new(context(&world)));
    tick.run_until(&mut world, "claim");
    spent(&mut world, Enforce::Gate);
    tick.finish(&mut world);
    assert_eq!(starts(&world), [""; 0]);
}

#[test]
fn a_start_that_was_claimed_before_the_gate_closed_is_let_through() {
    let mut world = fleet("10:00", [node("i-a")]);
    let mut wake = Stepper::new(prewarm_run(&world));
    wake.run_until(&mut world, "start");
    spent(&mut world, Enforce::Gate);
    wake.finish(&mut world);
    assert_eq!(starts(&world), ["10:00 i-a"]);
}

// Opening.

#[test]
fn the_guard_opens_the_gate_in_the_next_month() {
    let mut world = fleet("23:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    world.set_now(at("24:00"));
    aws_shows(&mut world, &budget("100"), "0");
    let outcome = guard(&mut world, &enforcing(Enforce::Gate, "100"));
    assert_eq!(outcome.decided[0].reason, Reason::GateOpens);
    assert_eq!(pool_record(&mut world).gate, None);
}

#[test]
fn the_gate_opens_by_itself_in_the_next_month_where_the_guard_is_dead() {
    let mut world = fleet("23:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    prewarm_at(&mut world, "23:59:59");
    assert_eq!(starts(&world), [""; 0]);
    let answer = only_answer(&prewarm_at(&mut world, "24:00"));
    assert_eq!((starts(&world), answer.gate_reason), (vec!["00:00 i-a".to_owned()], None));
}

#[test]
fn a_raised_amount_opens_the_gate() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    world.set_now(at("11:00"));
    let outcome = guard(&mut world, &enforcing(Enforce::Gate, "101"));
    let opened = outcome.effects.iter().filter(|effect| effect.event == EffectKind::GateOpened).count();
    assert_eq!((gate_of(&mut world), opened), (None, 2));
    assert_eq!(only_answer(&prewarm_at(&mut world, "11:01")).reason, Reason::AlreadyStarting);
}

#[test]
fn a_setting_that_turns_from_gate_to_alert_opens_the_gate() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    world.set_now(at("11:00"));
    spent(&mut world, Enforce::Alert);
    assert_eq!(gate_of(&mut world), None);
}

#[test]
fn a_raised_amount_that_is_spent_too_closes_the_gate_anew() {
    let mut world = fleet("10:00", [node("i-a")]);
    aws_shows(&mut world, &enforcing(Enforce::Gate, "100"), "150");
    guard(&mut world, &enforcing(Enforce::Gate, "100"));
    aws_shows(&mut world, &enforcing(Enforce::Gate, "100"), "150");
    world.set_now(at("11:00"));
    guard(&mut world, &enforcing(Enforce::Gate, "120"));
    assert_eq!(gate_of(&mut world).expect("a closed gate").amount, Some(usd("120")));
}

#[test]
fn a_gate_whose_budget_cannot_be_counted_stays_as_it_is() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    fail(&mut world, "history", "InternalServerError");
    world.set_now(at("11:00"));
    guard(&mut world, &enforcing(Enforce::Gate, "500"));
    assert!(gate_of(&mut world).is_some());
}

// A person's gate.

#[test]
fn a_person_s_gate_keeps_wakes_out_and_says_why() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.record(&voice()).gate = Some(person_gate(Some("12:00")));
    let answer = only_answer(&prewarm(&mut world));
    let expected = (Reason::GateClosed, Some("maintenance".to_owned()), Some(at("12:00")));
    assert_eq!((answer.reason, answer.gate_reason, answer.gate_until), expected);
}

#[test]
fn the_guard_leaves_a_person_s_gate_whatever_the_budget_says() {
    let rows = [
        ("nothing is spent", "0", Enforce::Gate),
        ("all is spent", "200", Enforce::Stop),
        ("only told", "200", Enforce::Alert),
    ];
    for (name, actual, enforce) in rows {
        for until in [None, Some("12:00")] {
            let mut world = fleet("10:00", [node("i-a")]);
            world.record(&voice()).gate = Some(person_gate(until));
            aws_shows(&mut world, &budget("100"), actual);
            let outcome = guard(&mut world, &enforcing(enforce, "100"));
            let reason = outcome.decided.iter().find(|line| line.pool == voice()).map(|line| line.reason);
            assert_eq!(reason, Some(Reason::GateHeldByPerson), "{name}, until {until:?}");
            assert_eq!(pool_record(&mut world).gate, Some(person_gate(until)), "{name}, until {until:?}");
        }
    }
}

#[test]
fn a_person_s_gate_that_came_between_is_not_overwritten() {
    let mut world = fleet("10:00", [node("i-a")]);
    aws_shows(&mut world, &budget("100"), "100");
    let ctx = context(&world);
    let mut run = Stepper::new(BudgetRun::new(ctx, enforcing(Enforce::Gate, "100")));
    run.run_until(&mut world, "set_gate");
    world.record(&voice()).gate = Some(person_gate(None));
    run.finish(&mut world);
    assert_eq!(pool_record(&mut world).gate, Some(person_gate(None)));
}

#[test]
fn a_person_s_gate_whose_end_has_passed_gives_way_to_the_budget_s() {
    let mut world = fleet("12:00", [node("i-a")]);
    world.record(&voice()).gate = Some(person_gate(Some("12:00")));
    spent(&mut world, Enforce::Gate);
    assert_eq!(gate_of(&mut world).map(|gate| gate.by), Some(GateKeeper::Budget));
}

// Drain.

/// Ready since 09:00 with a call that is open until 11:00; the budget is spent at 10:30.
fn drained_with_a_call() -> World {
    let mut world = fleet("10:29", [unused()]);
    open_call(&mut world, "i-a", "09:30", "11:00");
    prewarm(&mut world);
    world.set_now(at("10:30"));
    spent(&mut world, Enforce::Stop);
    world
}

#[test]
fn a_drained_node_keeps_its_call_and_stops_when_it_has_ended() {
    let mut world = drained_with_a_call();
    request(&mut world, "i-a", "10:58");
    let outcomes = ticks(&mut world, "10:35", "11:00");
    assert!(outcomes.iter().all(|outcome| reason(outcome, "i-a") == Reason::OpenCall), "{outcomes:?}");
    ticks(&mut world, "11:05", "11:25");
    assert_eq!(
        stops(&world),
        ["11:15 i-a"],
        "quiet from 11:00, two minutes unsettled and five of nothing, two readings"
    );
}

#[test]
fn a_drained_node_without_a_call_stops_after_two_readings() {
    let mut world = fleet("10:10", [unused()]);
    request(&mut world, "i-a", "10:00");
    spent(&mut world, Enforce::Stop);
    let outcome = tick(&mut world);
    assert_eq!((reason(&outcome, "i-a"), stops(&world)), (Reason::Draining, vec![]));
    let outcome = tick_at(&mut world, "10:15");
    assert_eq!((reason(&outcome, "i-a"), stops(&world)), (Reason::Drain, vec!["10:15 i-a".to_owned()]));
}

#[test]
fn a_tick_that_is_delivered_three_times_is_one_reading_of_a_drain() {
    let mut world = fleet("10:10", [unused()]);
    request(&mut world, "i-a", "10:00");
    spent(&mut world, Enforce::Stop);
    for clock in ["10:10", "10:10:01", "10:13"] {
        tick_at(&mut world, clock);
    }
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn a_reading_from_before_the_last_call_is_none_of_the_drain_s() {
    let mut world = fleet("09:30", [unused()]);
    // A first reading is made, then a call comes and goes, and the budget is spent.
    let outcome = tick_at(&mut world, "09:30");
    assert_eq!(reason(&outcome, "i-a"), Reason::FirstReading);
    open_call(&mut world, "i-a", "09:32", "09:34");
    world.set_now(at("09:44"));
    spent(&mut world, Enforce::Stop);
    tick_at(&mut world, "09:45");
    assert_eq!(stops(&world), [""; 0]);
    tick_at(&mut world, "09:50");
    assert_eq!(stops(&world), ["09:50 i-a"]);
}

#[test]
fn a_call_that_opens_between_the_readings_keeps_the_drained_node() {
    let mut world = fleet("10:10", [unused()]);
    spent(&mut world, Enforce::Stop);
    tick(&mut world);
    open_call(&mut world, "i-a", "10:12", "10:40");
    ticks(&mut world, "10:15", "10:40");
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn a_drained_node_stays_stopped() {
    let mut world = drained_with_a_call();
    ticks(&mut world, "10:35", "11:15");
    prewarm_at(&mut world, "11:16");
    ticks(&mut world, "11:20", "11:45");
    assert_eq!((starts(&world), state(&world, "i-a")), (vec![], NodeState::Stopped));
}

/// The pools of the default context, with requests as the only signal.
fn unobserved(world: &World) -> Context {
    let only_requests: Vec<_> = signals().into_iter().filter(|signal| signal.kind == SignalKind::Requests).collect();
    let pools = [voice(), pool("batch")].map(|pool| (pool, PoolPolicy::from(only_requests.clone())));
    Context { pools: pools.into(), ..context_with(world, Policy::default()) }
}

#[test]
fn where_calls_cannot_be_seen_a_drain_waits_for_the_idle_time() {
    let mut world = fleet("10:30", [unused()]);
    request(&mut world, "i-a", "10:25");
    spent(&mut world, Enforce::Stop);
    let mut now = at("10:35");
    while now <= at("11:10") {
        world.set_now(now);
        let ctx = unobserved(&world);
        world.drive(&mut IdleRun::new(ctx));
        now += minutes(5);
    }
    assert_eq!(stops(&world), ["11:05 i-a"], "the request of 10:25 may be a call of half an hour; then two readings");
}

#[test]
fn a_drain_that_waits_for_an_hour_is_told_once_and_the_call_is_left() {
    let mut world = fleet("10:30", [unused()]);
    open_call(&mut world, "i-a", "09:30", "14:00");
    spent(&mut world, Enforce::Stop);
    ticks(&mut world, "10:35", "11:25");
    assert_eq!(told_at(&world, "cannot_stop"), [""; 0]);
    ticks(&mut world, "11:30", "13:55");
    assert_eq!(told_at(&world, "cannot_stop"), ["2026-11-30T11:30:00Z"]);
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn a_drain_that_waits_for_an_hour_because_requests_may_be_calls_is_told() {
    let mut world = fleet("10:30", [unused()]);
    spent(&mut world, Enforce::Stop);
    let mut now = at("10:30");
    while now <= at("11:35") {
        world.set_now(now);
        world.point(&request_metric("i-a"), bucket(now), 1.0);
        let ctx = unobserved(&world);
        world.drive(&mut IdleRun::new(ctx));
        now += minutes(5);
    }
    assert_eq!(told_at(&world, "cannot_stop"), ["2026-11-30T11:30:00Z"]);
}

#[test]
fn a_drain_of_an_hour_that_waits_only_for_its_second_reading_is_told_to_nobody() {
    let mut world = fleet("10:00", [unused()]);
    let (by, reason) = (GateKeeper::Person, "closed by hand".to_owned());
    world.record(&voice()).gate = Some(Gate { by, since: at("08:00"), reason, amount: None, until: None, drain: true });
    // The first reading, and the same tick delivered again.
    for clock in ["10:00", "10:02"] {
        let outcome = tick_at(&mut world, clock);
        assert_eq!((support::reason(&outcome, "i-a"), told(&world)), (Reason::Draining, vec![]), "{clock}");
    }
    tick_at(&mut world, "10:05");
    assert_eq!((stops(&world), told(&world)), (vec!["10:05 i-a".to_owned()], vec![]));
}

#[test]
fn unknown_keeps_a_drained_node_and_is_told() {
    let mut world = fleet("10:30", [unused().without_proof_of_life()]);
    spent(&mut world, Enforce::Stop);
    ticks(&mut world, "10:35", "12:00");
    assert_eq!(stops(&world), [""; 0]);
    assert!(told(&world).contains(&"blind"), "{:?}", told(&world));
    assert_eq!(told_at(&world, "cannot_stop"), ["2026-11-30T11:30:00Z"]);
}

#[test]
fn a_gate_that_opens_ends_the_drain() {
    let mut world = fleet("10:10", [unused()]);
    request(&mut world, "i-a", "10:05");
    spent(&mut world, Enforce::Stop);
    world.set_now(at("10:12"));
    guard(&mut world, &enforcing(Enforce::Stop, "500"));
    let outcomes = ticks(&mut world, "10:15", "10:30");
    assert!(outcomes.iter().all(|outcome| reason(outcome, "i-a") != Reason::Drain), "{outcomes:?}");
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn a_gate_without_a_drain_stops_nothing_that_was_used_lately() {
    let mut world = fleet("10:10", [unused()]);
    request(&mut world, "i-a", "10:00");
    spent(&mut world, Enforce::Gate);
    ticks(&mut world, "10:10", "10:25");
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn case_24_the_reason_of_a_drain_stands_in_the_decided_line_and_in_what_people_were_told() {
    let mut world = fleet("10:10", [unused()]);
    spent(&mut world, Enforce::Stop);
    tick(&mut world);
    let outcome = tick_at(&mut world, "10:15");
    assert_eq!(line(&outcome, "i-a").action, "stop");
    assert_eq!(reason(&outcome, "i-a"), Reason::Drain);
    let body = &of_kind(&world, "budget").last().expect("a message").body;
    assert!(body.contains("each running node is stopped once it has no call"), "{body}");
}

#[test]
fn neither_a_status_look_nor_a_state_change_moves_a_gate() {
    let mut world = fleet("10:00", [node("i-a")]);
    spent(&mut world, Enforce::Gate);
    let before = pool_record(&mut world);
    status(&mut world);
    state_change(&mut world);
    let after = pool_record(&mut world);
    assert_eq!((after.gate, after.claims), (before.gate, before.claims));
}
