//! Foul weather: calls that fail once, looks that are a moment old, settings that meet each other. What is told must reach
//! people, what is counted must count once, and nothing that merely fell silent opens, stops or forgets anything.

mod support;
mod support_money;

use reveille::access_log::Filter;
use reveille::decide::Reason;
use reveille::decide::budget::Enforce;
use reveille::domain::{
    Gate, GateKeeper, InstanceType, Launch, NodeSeen, NodeState, Noise, PoolName, PoolRecord, RunId, UNSEEN, Usd, Wake,
    WakeSource,
};
use reveille::policy::MOST_TRIES;
use reveille::prices::Prices;
use reveille::run::{
    Alert, BudgetRun, Cause, Context, Decided, EffectKind, IdleRun, LogSource, Outcome, PoolPolicy, Target, WakeRun,
    WakeWish,
};
use reveille::spend::{Fleet, NodeCosts, forecast};
use reveille::world::World;
use std::collections::BTreeMap;
use support::*;
use support_money::*;

/// Each message's subject, such as `gate closed`, without the sender's name and whom it is about.
fn subjects(world: &World) -> Vec<&str> {
    world.published.iter().map(|alert| subject(&alert.subject)).collect()
}

fn subject(whole: &str) -> &str {
    let text = whole.strip_prefix("Reveille: ").expect("the sender's name");
    text.rsplit_once(": ").map_or(text, |(text, _)| text)
}

/// When each message of this subject was sent.
fn sent_at(world: &World, wanted: &str) -> Vec<String> {
    let of = world.published.iter().filter(|alert| subject(&alert.subject) == wanted);
    of.map(|alert| alert.attributes["at"].clone()).collect()
}

fn record(world: &mut World) -> PoolRecord {
    world.record(&voice()).clone()
}

// Logs and signals.

fn counts_lines(name: &str, path: &str) -> (PoolName, PoolPolicy) {
    let spec = serde_json::from_str(&format!(r#"{{"paths":["{path}"]}}"#)).expect("a filter's settings");
    let filter = Filter::new(spec).expect("a filter");
    let log = LogSource { pool: pool(name), group: "/app/front".to_owned(), filter, alive: None };
    (pool(name), PoolPolicy { logs: vec![log], ..PoolPolicy::default() })
}

fn log_batch_each_minute(world: &mut World, from: &str, times: i64) {
    let line = r#"192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] "GET /batch/x HTTP/1.1" 200 5 "-" "curl/8""#;
    (0..times).for_each(|minute| world.log("/app/front", at(from) + minutes(minute), line));
}

#[test]
fn two_pools_that_count_one_log_are_each_judged_by_their_own_lines() {
    let up = |word: &str| node(word).running_since("07:00").ready_since("07:01");
    for pools in [["batch", "voice"], ["voice", "batch"]] {
        let [served, silent] = pools;
        let mut world = fleet("08:00", [up("i-a").in_pool(served), up("i-b").in_pool(silent)]);
        log_batch_each_minute(&mut world, "07:00", 180);
        let mut now = at("08:00");
        while now <= at("09:00") {
            world.set_now(now);
            let pools = [counts_lines(served, "/batch"), counts_lines(silent, "/v1/calls")].into();
            let ctx = Context { pools, ..context(&world) };
            world.drive(&mut IdleRun::new(ctx));
            now += minutes(5);
        }
        assert_eq!(stops(&world), ["08:05 i-b"], "{served} is served each minute, {silent} never");
    }
}

/// Both the metrics and the log of a pool count.
fn with_logs(world: &World) -> Context {
    let (name, logs) = counts_lines("voice", "/batch");
    let voice = PoolPolicy { logs: logs.logs, ..PoolPolicy::from(signals()) };
    let batch = PoolPolicy::from(signals());
    Context { pools: [(name, voice), (pool("batch"), batch)].into(), ..context(world) }
}

#[test]
fn a_second_look_after_a_lost_claim_reads_no_signals_again() {
    let mut world = fleet("10:00", [unused()]);
    world.log("/app/front", at("08:00"), "a line");
    prove_life_in_log(&mut world);
    let ctx = with_logs(&world);
    world.drive(&mut IdleRun::new(ctx));
    world.set_now(at("10:05"));
    let before = (count(&world, "activity"), count(&world, "logs"));
    let mut idle = Stepper::new(IdleRun::new(with_logs(&world)));
    idle.run_until(&mut world, "claim");
    prewarm(&mut world);
    let outcome = idle.finish(&mut world);
    assert_eq!((before, count(&world, "describe")), ((1, 1), 4), "two looks of the second tick, one of the wake");
    assert_eq!((count(&world, "activity"), count(&world, "logs")), (2, 2));
    assert_eq!((stops(&world), reason(&outcome, "i-a")), (vec![], Reason::RecentWake));
}

#[test]
fn no_log_is_read_of_a_pool_that_sleeps() {
    let other = node("i-b").running_since("09:00").ready_since("09:01").in_pool("batch");
    let mut world = fleet("10:00", [node("i-a"), other]);
    let ctx = with_logs(&world);
    world.drive(&mut IdleRun::new(ctx));
    assert_eq!((count(&world, "activity"), count(&world, "logs")), (1, 0));
}

/// A line a minute that is no use.
fn prove_life_in_log(world: &mut World) {
    let line = r#"192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] "GET /health HTTP/1.1" 200 5 "-" "curl/8""#;
    (0..90).for_each(|minute| world.log("/app/front", at("09:00") + minutes(minute), line));
}

#[test]
fn a_second_look_for_the_next_candidate_reads_no_signals_again() {
    let up = node("i-c").running_since("08:00").ready_since("08:01").in_pool("batch");
    let mut world = fleet("10:00", [node("i-a"), node("i-b"), up]);
    world.no_capacity(&id("i-a"), true);
    world.record(&voice()).wake = Some(Wake::new(at("09:59"), WakeSource::Prewarm));
    tick(&mut world);
    assert_eq!((starts(&world), count(&world, "describe")), (vec!["10:00 i-b".to_owned()], 2));
    assert_eq!(count(&world, "activity"), 1);
}

#[test]
fn a_lost_claim_holds_up_the_rest_of_its_own_pool_only() {
    let up = |word: &str| node(word).running_since("09:00").ready_since("09:01");
    let batch = |word: &str| up(word).in_pool("batch");
    let mut world = fleet("10:00", [up("i-a"), up("i-b"), batch("i-c"), batch("i-d")]);
    tick(&mut world);
    world.set_now(at("10:05"));
    let mut idle = Stepper::new(IdleRun::new(context(&world)));
    idle.run_until(&mut world, "claim");
    prewarm(&mut world);
    idle.finish(&mut world);
    assert_eq!(stops(&world), ["10:05 i-c", "10:05 i-d"]);
    assert_eq!(count(&world, "claim"), 3, "none for the second node of the pool that was woken");
}

#[test]
fn a_second_look_decides_only_what_lost_its_claim() {
    let young = node("i-c").running_since("09:40").ready_since("09:41").in_pool("batch");
    let mut world = fleet("10:00", [unused(), young]);
    tick(&mut world);
    world.set_now(at("10:06"));
    let mut idle = Stepper::new(IdleRun::new(context(&world)));
    idle.run_until(&mut world, "claim");
    prewarm(&mut world);
    let outcome = idle.finish(&mut world);
    assert_eq!(["i-a", "i-c"].map(|node| reason(&outcome, node)), [Reason::RecentWake, Reason::FirstReading]);
    let marks = outcome.effects.iter().filter(|effect| effect.event == EffectKind::IdleMark).count();
    assert_eq!(marks, 1);
}

// Types.

fn typed(world: &World, types: &[&str]) -> Context {
    let types: Vec<InstanceType> = types.iter().map(|kind| instance_type(kind)).collect();
    let policy = PoolPolicy { types, ..PoolPolicy::from(signals()) };
    Context { pools: [(voice(), policy)].into(), ..context(world) }
}

fn wish() -> Cause {
    Cause::Wishes(vec![WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm)])
}

fn wake_as(world: &mut World, types: &[&str]) -> Outcome {
    let ctx = typed(world, types);
    world.drive(&mut WakeRun::new(ctx, wish()))
}

fn tick_as(world: &mut World, types: &[&str]) -> Outcome {
    let ctx = typed(world, types);
    world.drive(&mut IdleRun::new(ctx))
}

fn kind_of(world: &World, word: &str) -> String {
    world.node(&id(word)).and_then(|seen| seen.instance_type.clone()).expect("a type").to_string()
}

#[test]
fn a_type_that_the_zone_does_not_offer_is_passed_over_in_the_same_run() {
    let types = ["g6.xlarge", "g6e.xlarge", "g5.xlarge"];
    let mut world = fleet("10:00", [node("i-a")]);
    fail(&mut world, "start", "InsufficientInstanceCapacity");
    fail(&mut world, "start", "Unsupported");
    let answer = only_answer(&wake_as(&mut world, &types));
    assert_eq!((starts(&world), kind_of(&world, "i-a")), (vec!["10:00 i-a".to_owned()], "g5.xlarge".to_owned()));
    assert_eq!((answer.reason, count(&world, "start")), (Reason::AlreadyStarting, 3));
    // The tick does the same for a wish that is kept.
    let mut world = fleet("10:00", [node("i-a")]);
    world.record(&voice()).wake = Some(Wake::new(at("09:59"), WakeSource::Prewarm));
    fail(&mut world, "start", "InsufficientInstanceCapacity");
    fail(&mut world, "start", "Unsupported");
    tick_as(&mut world, &types);
    assert_eq!((starts(&world), kind_of(&world, "i-a")), (vec!["10:00 i-a".to_owned()], "g5.xlarge".to_owned()));
}

const FOUR: [&str; 4] = ["g6.xlarge", "g6.2xlarge", "g5.xlarge", "g5.2xlarge"];

#[test]
fn one_run_tries_so_many_starts_at_most_and_the_caller_is_told_to_wait() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b"), node("i-c")]);
    world.no_capacity_types = FOUR.map(instance_type).into();
    let answer = only_answer(&wake_as(&mut world, &FOUR));
    assert_eq!((count(&world, "start"), answer.reason), (MOST_TRIES, Reason::CoolingDown));
    assert!(answer.retry_after_seconds.is_some(), "{answer:?}");
    world.set_now(at("10:05"));
    tick_as(&mut world, &FOUR);
    assert!(count(&world, "start") <= 2 * MOST_TRIES, "{}", count(&world, "start"));
}

#[test]
fn what_one_run_has_not_tried_has_its_turn_at_later_ticks() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b"), node("i-c")]);
    for word in ["i-a", "i-b"] {
        world.no_capacity(&id(word), true);
    }
    world.no_capacity_types = FOUR[..3].iter().map(|kind| instance_type(kind)).collect();
    wake_as(&mut world, &FOUR);
    assert_eq!(starts(&world), [""; 0]);
    for n in 1..=6 {
        past_ten(&mut world, 5 * n);
        tick_as(&mut world, &FOUR);
    }
    assert_eq!((starts(&world).len(), kind_of(&world, "i-c")), (1, "g5.2xlarge".to_owned()), "{:?}", starts(&world));
    assert!(starts(&world)[0].ends_with("i-c"));
}

/// A node that sleeps as the second type, and the preferred one has no capacity.
fn asleep_as_another_type() -> World {
    let mut world = fleet("10:00", []);
    let mut seen = node("i-a").seen();
    seen.instance_type = Some(instance_type("g6.2xlarge"));
    world.add_node(seen);
    world.no_capacity_types = [instance_type("g6.xlarge")].into();
    world
}

const TWO: [&str; 2] = ["g6.xlarge", "g6.2xlarge"];

fn idle_in(world: &World) -> Stepper<IdleRun> {
    let ctx = Context { run: RunId("idle".to_owned()), ..typed(world, &TWO) };
    Stepper::new(IdleRun::new(ctx))
}

fn wake_in(world: &World) -> Stepper<WakeRun> {
    let ctx = Context { run: RunId("wake".to_owned()), ..typed(world, &TWO) };
    Stepper::new(WakeRun::new(ctx, wish()))
}

#[test]
fn a_type_is_put_back_where_nobody_comes() {
    let mut world = asleep_as_another_type();
    let outcome = idle_in(&world).finish(&mut world);
    assert_eq!(kind_of(&world, "i-a"), "g6.xlarge");
    assert!(outcome.effects.iter().any(|effect| effect.event == EffectKind::Resized), "{:?}", outcome.effects);
}

#[test]
fn a_type_that_a_wake_gave_after_the_tick_s_look_is_not_put_back() {
    for until in ["read_ledger", "resize"] {
        let mut world = asleep_as_another_type();
        let mut idle = idle_in(&world);
        idle.run_until(&mut world, until);
        if until == "read_ledger" {
            idle.step(&mut world);
            idle.run_until(&mut world, until);
        }
        let answer = only_answer(&wake_in(&world).finish(&mut world));
        assert_eq!((answer.reason, kind_of(&world, "i-a")), (Reason::AlreadyStarting, "g6.2xlarge".to_owned()));
        idle.finish(&mut world);
        assert_eq!((starts(&world).len(), kind_of(&world, "i-a")), (1, "g6.2xlarge".to_owned()), "{until}");
    }
}

#[test]
fn a_type_that_a_wake_is_about_to_start_is_not_put_back() {
    let mut world = asleep_as_another_type();
    let mut idle = idle_in(&world);
    idle.run_until(&mut world, "read_ledger");
    idle.step(&mut world);
    idle.run_until(&mut world, "read_ledger");
    let mut wake = wake_in(&world);
    wake.run_until(&mut world, "start");
    wake.step(&mut world);
    wake.run_until(&mut world, "start");
    assert_eq!(kind_of(&world, "i-a"), "g6.2xlarge", "and its START is the next call");
    idle.finish(&mut world);
    wake.finish(&mut world);
    assert_eq!((starts(&world).len(), kind_of(&world, "i-a")), (1, "g6.2xlarge".to_owned()));
}

// The gate.

fn is_closed(world: &mut World) -> bool {
    let now = world.now();
    world.record(&voice()).closed_gate(now).is_some()
}

/// Asleep, with ten hours of the day before behind it: the own estimate is ten dollars.
fn asleep_in_mid_month() -> World {
    let (from, to) = (on("2026-11-14 00:00"), on("2026-11-14 10:00"));
    let mut world = world_at(on("2026-11-15 00:00"), [off_since("i-a", "g6.xlarge", from, to)]);
    remember(&mut world, "i-a", [launch("g6.xlarge", from, Some(to))]);
    world
}

#[test]
fn a_gate_that_closes_is_told_by_a_message_of_its_own() {
    for (enforce, subject) in [(Enforce::Gate, "gate closed"), (Enforce::Stop, "gate closed, nodes drained")] {
        let mut budget = enforcing(enforce, "10");
        budget.actual = vec![50, 80];
        let mut world = asleep_in_mid_month();
        guards(&mut world, &budget, "2026-11-15 01:00", "2026-11-15 05:00");
        assert!(is_closed(&mut world));
        assert_eq!(sent_at(&world, subject), ["2026-11-15T01:00:00Z"], "once for all pools");
        let of_gate = |alert: &&&Alert| alert.subject.contains("gate closed");
        assert_eq!(of_kind(&world, "budget").iter().filter(of_gate).count(), 1);
    }
}

#[test]
fn a_gate_that_could_not_be_closed_is_not_told_as_closed() {
    let budget = enforcing(Enforce::Gate, "10");
    let mut world = asleep_in_mid_month();
    fail_times(&mut world, "set_gate", "AccessDeniedException", 99);
    let outcomes = guards(&mut world, &budget, "2026-11-15 01:00", "2026-11-15 05:00");
    assert!(!is_closed(&mut world));
    assert!(outcomes.iter().all(|outcome| outcome.unrecorded.is_some()));
    assert_eq!(told_at(&world, "controller_fault"), ["2026-11-15T01:00:00Z"]);
    assert!(!subjects(&world).iter().any(|subject| subject.starts_with("gate closed")), "{:?}", subjects(&world));
    for alert in of_kind(&world, "budget") {
        assert!(!alert.body.contains("the gate closes") && !alert.body.contains("is closed"), "{}", alert.body);
    }
}

#[test]
fn a_gate_that_closes_at_the_second_try_is_told_then() {
    let budget = enforcing(Enforce::Gate, "10");
    let mut world = asleep_in_mid_month();
    // One for each pool.
    fail_times(&mut world, "set_gate", "InternalServerError", 2);
    guards(&mut world, &budget, "2026-11-15 01:00", "2026-11-15 04:00");
    assert_eq!(sent_at(&world, "gate closed"), ["2026-11-15T02:00:00Z"]);
}

#[test]
fn a_gate_that_opens_is_told_too() {
    let mut world = asleep_in_mid_month();
    guard_on(&mut world, &enforcing(Enforce::Gate, "10"), "2026-11-15 01:00");
    guards(&mut world, &enforcing(Enforce::Gate, "100"), "2026-11-15 02:00", "2026-11-15 04:00");
    assert!(!is_closed(&mut world));
    assert_eq!(sent_at(&world, "gate open again"), ["2026-11-15T02:00:00Z"]);
}

#[test]
fn a_gate_message_that_was_lost_goes_out_at_the_next_run() {
    let mut budget = enforcing(Enforce::Gate, "10");
    (budget.actual, budget.mail) = (vec![], vec![]);
    let mut world = asleep_in_mid_month();
    fail(&mut world, "publish", "InternalError");
    guards(&mut world, &budget, "2026-11-15 01:00", "2026-11-15 04:00");
    assert!(is_closed(&mut world));
    assert_eq!(sent_at(&world, "gate closed").len(), 1, "{:?}", subjects(&world));
}

#[test]
fn a_gate_whose_closing_was_not_answered_is_told() {
    let budget = enforcing(Enforce::Gate, "10");
    let mut world = asleep_in_mid_month();
    lose_answer(&mut world, "set_gate");
    lose_answer(&mut world, "set_gate");
    guards(&mut world, &budget, "2026-11-15 01:00", "2026-11-15 04:00");
    assert!(is_closed(&mut world));
    assert_eq!(sent_at(&world, "gate closed").len(), 1, "{:?}", subjects(&world));
}

#[test]
fn a_closed_gate_stays_closed_when_aws_s_budget_cannot_be_read() {
    let budget = enforcing(Enforce::Gate, "200");
    let mut world = asleep_in_mid_month();
    aws_shows(&mut world, &budget, "205");
    guard_on(&mut world, &budget, "2026-11-15 01:00");
    let closed = record(&mut world).gate;
    assert!(closed.is_some());
    fail(&mut world, "budget", "ThrottlingException");
    let outcome = guard_on(&mut world, &budget, "2026-11-15 02:00");
    assert_eq!((record(&mut world).gate, outcome.decided[0].reason), (closed, Reason::GateStaysClosed));
}

#[test]
fn a_closed_gate_stays_closed_when_a_source_of_the_estimate_fails() {
    for (call, code) in [("disks", "RequestLimitExceeded"), ("describe", "RequestLimitExceeded")] {
        let budget = enforcing(Enforce::Stop, "20");
        let up = up_since("i-a", "g6.xlarge", on("2026-11-15 00:00"));
        let mut world = world_at(on("2026-11-15 00:00"), [up]);
        world.add_disk(&id("i-a"), gp3(1000));
        guard_on(&mut world, &budget, "2026-11-15 01:00");
        let closed = record(&mut world).gate;
        assert!(closed.is_some(), "{call}");
        fail(&mut world, call, code);
        let outcome = guard_on(&mut world, &budget, "2026-11-15 02:00");
        assert!(estimate(&outcome) < budget.amount, "{call}: the figure has fallen");
        assert_eq!(record(&mut world).gate, closed, "{call}");
        assert_eq!(sent_at(&world, "gate closed, nodes drained").len(), 1, "{call}: and it is told once");
    }
}

#[test]
fn a_closed_gate_stays_closed_when_a_node_with_a_large_disk_is_terminated() {
    let budget = enforcing(Enforce::Gate, "40");
    let mut world = asleep_in_mid_month();
    world.add_node(off_since("i-b", "g6.xlarge", on("2026-10-14 00:00"), on("2026-10-14 10:00")));
    world.add_disk(&id("i-b"), gp3(1000));
    guard_on(&mut world, &budget, "2026-11-15 01:00");
    assert!(is_closed(&mut world));
    world.forget(&id("i-b"));
    let outcome = guard_on(&mut world, &budget, "2026-11-15 02:00");
    assert!(estimate(&outcome) < budget.amount);
    assert!(is_closed(&mut world));
}

#[test]
fn what_aws_has_shown_holds_the_gate_when_an_update_clears_it() {
    let mut world = asleep_in_mid_month();
    aws_shows(&mut world, &budget("200"), "230");
    guards(&mut world, &enforcing(Enforce::Gate, "200"), "2026-11-15 01:00", "2026-11-15 02:00");
    assert!(is_closed(&mut world));
    guard_on(&mut world, &enforcing(Enforce::Gate, "220"), "2026-11-15 03:00");
    assert_eq!((count(&world, "set_budget_amount"), world.budgets["reveille"].actual), (1, Some(usd("0"))));
    for clock in ["03:30", "04:00", "05:00"] {
        assert!(is_closed(&mut world), "before {clock}");
        guard_on(&mut world, &enforcing(Enforce::Gate, "220"), &format!("2026-11-15 {clock}"));
    }
    assert_eq!(record(&mut world).gate.and_then(|gate| gate.amount), Some(usd("220")));
    guard_on(&mut world, &enforcing(Enforce::Gate, "240"), "2026-11-15 06:00");
    assert!(!is_closed(&mut world), "more than AWS has ever shown");
}

/// AWS has shown 230, and an update has cleared it.
fn cleared_by_an_update() -> World {
    let mut world = asleep_in_mid_month();
    aws_shows(&mut world, &budget("200"), "230");
    guards(&mut world, &enforcing(Enforce::Gate, "200"), "2026-11-15 01:00", "2026-11-15 02:00");
    guards(&mut world, &enforcing(Enforce::Gate, "220"), "2026-11-15 03:00", "2026-11-15 04:00");
    assert_eq!(world.budgets["reveille"].actual, Some(usd("0")));
    world
}

#[test]
fn what_aws_has_shown_speaks_until_aws_has_a_figure_of_its_own_again() {
    let mut world = cleared_by_an_update();
    for (amount, clock) in [("225", "05:00"), ("227", "06:00")] {
        guard_on(&mut world, &enforcing(Enforce::Gate, amount), &format!("2026-11-15 {clock}"));
        let closed_at = record(&mut world).gate.and_then(|gate| gate.amount);
        assert_eq!(closed_at, Some(usd(amount)), "230 are more than that too");
    }
    aws_shows(&mut world, &budget("227"), "100");
    guard_on(&mut world, &enforcing(Enforce::Gate, "227"), "2026-11-15 14:00");
    guard_on(&mut world, &enforcing(Enforce::Gate, "150"), "2026-11-15 15:00");
    assert!(!is_closed(&mut world), "100 is what AWS says now");
}

#[test]
fn a_budget_that_is_made_again_has_shown_nothing() {
    let mut world = cleared_by_an_update();
    world.budgets.clear();
    guard_on(&mut world, &enforcing(Enforce::Gate, "220"), "2026-11-15 05:00");
    assert!(is_closed(&mut world));
    guard_on(&mut world, &enforcing(Enforce::Gate, "225"), "2026-11-15 06:00");
    assert!(!is_closed(&mut world));
}

#[test]
fn a_budget_whose_pools_have_changed_is_updated_once() {
    let mut world = asleep_in_mid_month();
    guard_on(&mut world, &budget("100"), "2026-11-15 01:00");
    for clock in ["02:00", "03:00"] {
        world.set_now(on(&format!("2026-11-15 {clock}")));
        let mut ctx = context_priced(&world, "1.00");
        ctx.pools.remove(&pool("batch"));
        world.drive(&mut BudgetRun::new(ctx, budget("100")));
    }
    assert_eq!(count(&world, "set_budget_amount"), 1);
}

#[test]
fn what_aws_has_shown_of_a_month_says_nothing_of_the_next() {
    let budget = enforcing(Enforce::Gate, "200");
    let mut world = asleep_in_mid_month();
    aws_shows(&mut world, &budget, "230");
    guards(&mut world, &budget, "2026-11-15 01:00", "2026-11-15 02:00");
    assert!(is_closed(&mut world));
    aws_shows(&mut world, &budget, "3");
    guard_on(&mut world, &budget, "2026-12-02 01:00");
    assert!(!is_closed(&mut world));
}

#[test]
fn a_gate_of_a_person_is_neither_moved_nor_told() {
    let mut world = asleep_in_mid_month();
    let held = Gate { by: GateKeeper::Person, ..person_gate(None) };
    for name in [voice(), pool("batch")] {
        world.record(&name).gate = Some(held.clone());
    }
    guards(&mut world, &enforcing(Enforce::Gate, "5"), "2026-11-15 01:00", "2026-11-15 03:00");
    assert_eq!(record(&mut world).gate, Some(held));
    assert!(!subjects(&world).iter().any(|subject| subject.contains("gate")), "{:?}", subjects(&world));
}

// Messages.

fn wasted(world: &mut World, from: i64, times: i64, wake: fn(&mut World) -> Outcome) {
    for n in 0..times {
        let begin = midnight() + minutes(from + 50 * n);
        world.set_now(begin);
        wake(world);
        for tick_no in 0..10 {
            world.set_now(begin + minutes(5 * tick_no));
            tick(world);
        }
    }
}

#[test]
fn noise_of_pre_warms_is_told_and_then_noise_of_lines() {
    let mut world = fleet("00:00", [node("i-a")]);
    wasted(&mut world, 0, 7, prewarm);
    ticks(&mut world, "05:50", "05:55");
    let noise =
        |world: &World| of_kind(world, "noise_wakes").iter().map(|alert| alert.body.clone()).collect::<Vec<_>>();
    assert_eq!(noise(&world).len(), 1, "{:?}", subjects(&world));
    assert!(noise(&world)[0].contains("pre-warms go on waking"), "{:?}", noise(&world));
    wasted(&mut world, 360, 7, log_line);
    ticks(&mut world, "11:50", "12:00");
    assert_eq!(noise(&world).len(), 2, "{:?}", subjects(&world));
    assert!(noise(&world)[1].contains("lines of the request log wake nothing more"), "{:?}", noise(&world));
    log_line(&mut world);
    assert_eq!(starts(&world).len(), 14, "and so it is");
}

/// Seen up at 01:00, gone from the list afterwards.
fn vanished() -> World {
    let mut world = world_at(on("2026-11-10 01:00"), [up_since("i-a", "g6.xlarge", on("2026-11-10 00:00"))]);
    uptime(&mut world);
    world.forget(&id("i-a"));
    world
}

fn uptime_on(world: &mut World, text: &str) -> Outcome {
    world.set_now(on(text));
    uptime(world)
}

#[test]
fn a_vanished_node_is_told_once_however_often_one_looks() {
    let mut world = vanished();
    for clock in ["01:15", "01:30", "01:45", "02:00"] {
        uptime_on(&mut world, &format!("2026-11-10 {clock}"));
    }
    assert_eq!(sent_at(&world, "a running node is no longer listed"), ["2026-11-10T01:15:00Z"]);
}

#[test]
fn a_vanished_node_whose_message_failed_is_told_at_the_next_run() {
    let mut world = vanished();
    fail(&mut world, "publish", "InternalError");
    for clock in ["01:15", "01:30", "01:45", "02:00"] {
        uptime_on(&mut world, &format!("2026-11-10 {clock}"));
    }
    assert_eq!(sent_at(&world, "a running node is no longer listed"), ["2026-11-10T01:30:00Z"]);
}

#[test]
fn a_vanished_node_whose_message_failed_is_told_though_the_failed_run_is_repeated_at_once() {
    let mut world = vanished();
    fail(&mut world, "publish", "InternalError");
    // The run that failed is delivered again a minute and two minutes later.
    for clock in ["01:15", "01:16", "01:18", "01:30", "01:45", "02:00"] {
        uptime_on(&mut world, &format!("2026-11-10 {clock}"));
    }
    assert_eq!(sent_at(&world, "a running node is no longer listed").len(), 1);
}

#[test]
fn the_launch_of_a_vanished_node_ends_once_where_it_was_last_seen_and_its_neighbour_s_goes_on() {
    let launched = on("2026-11-10 00:00");
    let nodes = ["i-a", "i-b"].map(|word| up_since(word, "g6.xlarge", launched));
    let mut world = world_at(on("2026-11-10 01:00"), nodes);
    uptime(&mut world);
    world.forget(&id("i-a"));
    uptime_on(&mut world, "2026-11-10 03:15");
    uptime_on(&mut world, "2026-11-10 03:30");
    let ended: Vec<_> =
        world.history()[&voice()].iter().map(|(id, launch)| (id.to_string(), launch.ended_at)).collect();
    assert_eq!(ended, [("i-a".to_owned(), Some(on("2026-11-10 01:00") + UNSEEN))]);
    let open = ["i-a", "i-b"].map(|word| world.record(&voice()).node(&id(word)).launch.expect("a launch").ended_at);
    assert_eq!(open.map(|end| end.is_none()), [false, true]);
}

/// Told of blindness at 10:10, and signals are back from 10:20 on.
fn blind_and_back() -> World {
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    ticks(&mut world, "10:00", "10:15");
    assert_eq!(told(&world), ["blind"]);
    prove_life(&mut world, "i-a", "09:00", "13:00");
    request(&mut world, "i-a", "10:18");
    world
}

const SEES_AGAIN: &str = "sees again whether a node is used";

#[test]
fn seeing_again_is_told_once() {
    let mut world = blind_and_back();
    ticks(&mut world, "10:20", "10:40");
    assert_eq!(sent_at(&world, SEES_AGAIN), ["2026-11-30T10:20:00Z"]);
}

#[test]
fn seeing_again_whose_message_failed_is_told_at_the_next_tick() {
    let mut world = blind_and_back();
    fail(&mut world, "publish", "InternalError");
    ticks(&mut world, "10:20", "10:40");
    assert_eq!(sent_at(&world, SEES_AGAIN), ["2026-11-30T10:25:00Z"]);
}

#[test]
fn seeing_again_whose_message_failed_is_told_though_the_failed_tick_is_repeated_at_once() {
    let mut world = blind_and_back();
    fail(&mut world, "publish", "InternalError");
    for clock in ["10:20", "10:21", "10:23"] {
        tick_at(&mut world, clock);
    }
    ticks(&mut world, "10:25", "10:40");
    assert_eq!(sent_at(&world, SEES_AGAIN).len(), 1);
}

#[test]
fn two_denied_calls_of_one_run_are_two_messages() {
    let mut world = asleep_in_mid_month();
    for _ in 0..3 {
        fail(&mut world, "budget", "AccessDeniedException");
        fail(&mut world, "describe", "AccessDeniedException");
    }
    guards(&mut world, &budget("1000"), "2026-11-15 01:00", "2026-11-15 03:00");
    let faults = of_kind(&world, "controller_fault");
    assert_eq!(told_at(&world, "controller_fault"), ["2026-11-15T01:00:00Z"; 2], "each once a day");
    let acts: Vec<bool> =
        ["budget", "describe"].iter().map(|call| faults.iter().any(|alert| alert.body.contains(call))).collect();
    assert_eq!(acts, [true, true], "{faults:?}");
}

/// A launch that was over two days before.
fn over_long_ago() -> Launch {
    launch("g6.xlarge", midnight() - hours(50), Some(midnight() - hours(49)))
}

#[test]
fn describes_that_fail_tell_nothing_of_a_node_whose_launch_is_over() {
    let mut world = fleet("10:00", [unused()]);
    world.record(&voice()).nodes.entry(id("i-dead")).or_default().launch = Some(over_long_ago());
    tick(&mut world);
    fail_times(&mut world, "describe", "RequestLimitExceeded", 3);
    world.set_now(at("10:01"));
    let outcomes = ticks(&mut world, "10:05", "10:25");
    let about: Vec<Option<&str>> =
        world.published.iter().map(|alert| alert.node.as_ref().map(|node| node.as_str())).collect();
    assert!(about.contains(&Some("i-a")) && !about.contains(&Some("i-dead")), "{about:?}");
    let lines = outcomes.iter().flat_map(|outcome| &outcome.decided);
    assert!(!lines.into_iter().any(|line| line.node == Some(id("i-dead"))));
    assert_eq!(record(&mut world).node(&id("i-dead")).blind, None);
}

#[test]
fn a_throttled_history_tells_nothing_of_nodes_that_are_no_longer_listed() {
    let mut world = world_at(on("2026-11-20 12:00"), [up_since("i-a", "g6.xlarge", on("2026-11-20 11:00"))]);
    for n in 0..3 {
        let over = launch("g6.xlarge", on("2026-10-01 00:00"), Some(on("2026-10-01 01:00")));
        world.record(&voice()).nodes.entry(id(&format!("i-dead{n}"))).or_default().launch = Some(over);
    }
    fail(&mut world, "history", "ThrottlingException");
    uptime(&mut world);
    assert_eq!(told(&world), [""; 0]);
    fail(&mut world, "history", "AccessDeniedException");
    uptime(&mut world);
    assert_eq!(told(&world), ["controller_fault"]);
}

// The history.

#[test]
fn a_denied_history_is_told_once_a_day_and_moves_no_gate() {
    let budget = enforcing(Enforce::Gate, "5");
    let mut world = asleep_in_mid_month();
    fail_times(&mut world, "history", "AccessDeniedException", 99);
    let outcomes = guards(&mut world, &budget, "2026-11-15 01:00", "2026-11-16 02:00");
    assert!(outcomes.iter().all(|outcome| outcome.blind.is_some()));
    assert_eq!((is_closed(&mut world), count(&world, "set_gate")), (false, 0));
    assert_eq!(told_at(&world, "controller_fault"), ["2026-11-15T01:00:00Z", "2026-11-16T00:00:00Z"]);
    assert_eq!(of_kind(&world, "budget").len(), 0);
}

#[test]
fn a_denied_history_opens_no_gate() {
    let mut world = asleep_in_mid_month();
    guard_on(&mut world, &enforcing(Enforce::Gate, "5"), "2026-11-15 01:00");
    let closed = record(&mut world).gate;
    fail(&mut world, "history", "AccessDeniedException");
    guard_on(&mut world, &enforcing(Enforce::Gate, "1000"), "2026-11-15 02:00");
    assert!(closed.is_some());
    assert_eq!(record(&mut world).gate, closed);
}

#[test]
fn a_throttled_history_tells_nobody_and_the_run_is_blind() {
    let mut world = asleep_in_mid_month();
    fail(&mut world, "history", "ThrottlingException");
    let outcome = guard_on(&mut world, &enforcing(Enforce::Gate, "5"), "2026-11-15 01:00");
    assert!(outcome.blind.is_some());
    assert_eq!((told(&world), count(&world, "set_gate")), (vec![], 0));
}

// Time and money.

fn seconds_of_day(outcome: &Outcome, day: &str) -> i64 {
    let of_day = outcome.decided.iter().rfind(|line| line.inputs["day"] == day).expect("a line of the day");
    of_day.inputs["by_launches_seconds"].as_i64().expect("seconds")
}

fn is_near(amount: Usd, dollars: i64) -> bool {
    amount >= usd(&dollars.to_string()).times(99, 100) && amount <= usd(&dollars.to_string()).times(101, 100)
}

#[test]
fn a_node_that_one_listing_left_out_goes_on_being_counted() {
    let seen = up_since("i-a", "g6.xlarge", on("2026-11-10 00:00"));
    for missing in [&["01:15"][..], &["01:15", "01:30"], &["01:15", "01:45"]] {
        let mut world = world_at(on("2026-11-10 01:00"), [seen.clone()]);
        for clock in ["01:00", "01:15", "01:30", "01:45", "02:00", "02:15"] {
            if missing.contains(&clock) {
                world.forget(&id("i-a"));
            } else if world.node(&id("i-a")).is_none() {
                world.add_node(seen.clone());
            }
            uptime_on(&mut world, &format!("2026-11-10 {clock}"));
        }
        // Each vanishing is a matter of its own: the node was there between the two.
        let twice = missing == ["01:15", "01:45"];
        let expected =
            if twice { &["2026-11-10T01:15:00Z", "2026-11-10T01:45:00Z"][..] } else { &["2026-11-10T01:15:00Z"] };
        assert_eq!(sent_at(&world, "a running node is no longer listed"), expected, "{missing:?}");
        let day = uptime_on(&mut world, "2026-11-19 23:00");
        assert_eq!(seconds_of_day(&day, "2026-11-19"), 23 * 3600, "{missing:?}");
        assert_eq!(told_at(&world, "uptime").len(), 2, "{missing:?}: today and yesterday");
        let outcome = guard_on(&mut world, &budget("1000"), "2026-11-20 00:00");
        assert!(is_near(estimate(&outcome), 240), "{missing:?}: {}", estimate(&outcome));
        world.stop(&id("i-a"), false).expect("a stop by hand");
        uptime_on(&mut world, "2026-11-20 00:15");
        let outcome = guard_on(&mut world, &budget("1000"), "2026-11-25 00:00");
        assert!(is_near(estimate(&outcome), 240), "{missing:?}: {}", estimate(&outcome));
    }
}

#[test]
fn a_node_that_came_back_to_the_list_only_after_its_stop_is_counted_to_its_stop() {
    let launched = on("2026-11-10 00:00");
    let mut world = vanished();
    uptime_on(&mut world, "2026-11-10 01:15");
    uptime_on(&mut world, "2026-11-11 01:00");
    world.add_node(off_since("i-a", "g6.xlarge", launched, on("2026-11-11 00:00")));
    uptime_on(&mut world, "2026-11-11 01:15");
    let outcome = guard_on(&mut world, &budget("1000"), "2026-11-12 00:00");
    assert!(is_near(estimate(&outcome), 24), "EC2 tells when it stopped: {}", estimate(&outcome));
}

/// Two hours on the 10th, one in each pool, and ten on the 11th.
fn retagged(from: &str, to: &str) -> World {
    let mut seen = up_since("i-a", "g6.xlarge", on("2026-11-10 00:00"));
    seen.pool = pool(from);
    let mut world = world_at(on("2026-11-10 01:00"), [seen.clone()]);
    uptime(&mut world);
    world.forget(&id("i-a"));
    world.add_node(NodeSeen { pool: pool(to), ..seen });
    uptime_on(&mut world, "2026-11-10 02:00");
    world.stop(&id("i-a"), false).expect("a stop by hand");
    uptime_on(&mut world, "2026-11-10 02:15");
    world.set_now(on("2026-11-11 00:00"));
    world.start(&id("i-a")).expect("a start by hand");
    uptime_on(&mut world, "2026-11-11 00:15");
    world.set_now(on("2026-11-11 10:00"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    uptime_on(&mut world, "2026-11-11 10:15");
    world
}

fn shares(outcome: &Outcome) -> Vec<String> {
    let share = |line: &Decided| line.inputs["this_pool"].as_str().expect("an amount").to_owned();
    outcome.decided.iter().map(share).collect()
}

#[test]
fn a_node_that_moved_to_another_pool_costs_its_time_once() {
    for (from, to) in [("voice", "batch"), ("batch", "voice")] {
        let mut world = retagged(from, to);
        let outcome = guard_on(&mut world, &budget("10000"), "2026-11-20 00:00");
        assert_eq!(estimate(&outcome), usd("12"), "{from} to {to}");
        assert_eq!(told(&world), [""; 0], "{from} to {to}: nothing has vanished");
    }
}

#[test]
fn a_node_that_moved_and_was_terminated_is_in_the_share_of_one_pool() {
    let mut world = retagged("voice", "batch");
    world.forget(&id("i-a"));
    let outcome = guard_on(&mut world, &budget("10000"), "2026-11-20 00:00");
    assert_eq!(estimate(&outcome), usd("12"));
    assert_eq!(shares(&outcome), ["12.00", "0.00"], "of batch, where it was seen last, and of voice");
}

#[test]
fn a_node_that_moved_to_another_pool_goes_on_being_up_there() {
    let mut seen = up_since("i-a", "g6.xlarge", on("2026-11-10 00:00"));
    let mut world = world_at(on("2026-11-10 01:00"), [seen.clone()]);
    uptime(&mut world);
    seen.pool = pool("batch");
    world.forget(&id("i-a"));
    world.add_node(seen);
    let mut now = on("2026-11-10 10:00");
    while now <= on("2026-11-10 23:00") {
        world.set_now(now);
        uptime(&mut world);
        now += minutes(15);
    }
    assert_eq!(told_at(&world, "uptime"), ["2026-11-10T20:15:00Z"]);
    assert_eq!(of_kind(&world, "uptime")[0].pool, Some(pool("batch")));
    let outcome = uptime_on(&mut world, "2026-11-10 23:30");
    assert_eq!(seconds_of_day(&outcome, "2026-11-10"), 23 * 3600 + 1800);
}

// The AWS budget.

#[test]
fn a_budget_that_was_there_before_with_another_amount_is_told_and_left() {
    let mut world = asleep_in_mid_month();
    aws_shows(&mut world, &budget("5000"), "1234");
    let before = world.budgets["reveille"].clone();
    guards(&mut world, &budget("200"), "2026-11-15 01:00", "2026-11-15 05:00");
    assert_eq!((count(&world, "set_budget_amount"), world.budgets["reveille"].clone()), (0, before));
    assert_eq!(told_at(&world, "misconfigured"), ["2026-11-15T01:00:00Z"]);
}

#[test]
fn an_amount_that_is_configured_anew_is_set_once() {
    let mut world = asleep_in_mid_month();
    guards(&mut world, &budget("200"), "2026-11-15 01:00", "2026-11-15 03:00");
    guards(&mut world, &budget("300"), "2026-11-15 04:00", "2026-11-15 08:00");
    assert_eq!((count(&world, "set_budget_amount"), world.budgets["reveille"].amount.as_str()), (1, "300.00"));
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn a_budget_that_was_made_by_the_run_before_is_known_as_one_s_own() {
    let mut world = asleep_in_mid_month();
    guard_on(&mut world, &budget("200"), "2026-11-15 01:00");
    assert_eq!(count(&world, "create_budget"), 1);
    guards(&mut world, &budget("300"), "2026-11-15 02:00", "2026-11-15 04:00");
    assert_eq!((count(&world, "set_budget_amount"), told(&world)), (1, vec![]));
}

// Noise and causes.

fn noise(lines: u32, prewarms: u32, counted: &str, line_at: Option<&str>) -> Noise {
    let (at_end, launched_at) = (at("24:00"), at("00:00"));
    let line_times = line_at.map(|clock| vec![at(clock); lines as usize]).unwrap_or_default();
    Noise { lines, prewarms, at: at(counted), line_times, launched_at, until: at_end }
}

fn noisy(nodes: impl IntoIterator<Item = (&'static str, Noise)>) -> PoolRecord {
    let mut record = PoolRecord::default();
    for (word, noise) in nodes {
        record.nodes.entry(id(word)).or_default().noise = Some(noise);
    }
    record
}

#[test]
fn six_wakes_by_lines_are_not_what_seven_by_pre_warms_are_blamed_on() {
    let mut world = fleet("10:00", [node("i-a")]);
    *world.record(&voice()) = noisy([("i-a", noise(6, 7, "09:00", Some("08:00")))]);
    tick(&mut world);
    let body = &of_kind(&world, "noise_wakes")[0].body;
    assert!(body.contains("pre-warms go on waking"), "{body}");
    log_line(&mut world);
    assert_eq!(starts(&world), ["10:00 i-a"], "and lines still wake");
}

#[test]
fn a_line_that_was_ignored_stays_ignored_when_a_pre_warm_is_counted_later() {
    let full = noisy([("i-a", noise(7, 0, "10:00", Some("10:00")))]);
    assert!(full.is_noise(at("10:49")) && !full.is_noise(at("09:59")));
    let later = noisy([("i-a", noise(7, 1, "10:50", Some("10:00")))]);
    assert!(later.is_noise(at("10:49")) && !later.is_noise(at("09:59")));
    let elsewhere = noisy([("i-a", noise(7, 0, "10:00", Some("10:00"))), ("i-b", noise(0, 1, "10:50", None))]);
    assert!(elsewhere.is_noise(at("10:49")));
}

#[test]
fn a_line_that_was_ignored_stays_ignored_when_another_line_is_counted_later() {
    // The second node was on its way when the count of the first was full.
    let later = noisy([("i-a", noise(7, 0, "10:00", Some("10:00"))), ("i-b", noise(1, 0, "10:50", Some("10:50")))]);
    assert!(later.is_noise(at("10:49")));
}

#[test]
fn an_ignored_line_starts_nothing_after_a_wasted_pre_warm() {
    let mut world = fleet("00:00", [node("i-a")]);
    wasted(&mut world, 0, 7, log_line);
    prewarm_at(&mut world, "06:00");
    let mut now = at("06:00");
    while stops(&world).len() < 8 {
        world.set_now(now);
        tick(&mut world);
        now += minutes(5);
    }
    world.set_now(now - minutes(2));
    log_line(&mut world);
    let counted = record(&mut world).node(&id("i-a")).noise.expect("a count");
    assert_eq!((counted.lines, counted.prewarms), (7, 0), "the line came before the count");
    ticks(&mut world, &clock(now), "08:00");
    let counted = record(&mut world).node(&id("i-a")).noise.expect("a count");
    assert_eq!((counted.lines, counted.prewarms, starts(&world).len()), (7, 1, 8));
}

#[test]
fn a_launch_by_hand_hours_after_our_own_has_no_wake_behind_it() {
    let mut world = fleet("08:00", [node("i-a")]);
    log_line(&mut world);
    ticks(&mut world, "08:05", "08:05");
    world.set_now(at("08:10"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    tick_at(&mut world, "08:15");
    let before = record(&mut world).node(&id("i-a")).noise;
    world.set_now(at("13:00"));
    world.start(&id("i-a")).expect("a start by hand");
    ticks(&mut world, "13:05", "13:40");
    let known = record(&mut world).node(&id("i-a"));
    let launch = known.launch.expect("a launch");
    assert_eq!((launch.launched_at, launch.source), (at("13:00"), None));
    ticks(&mut world, "13:45", "14:30");
    let known = record(&mut world).node(&id("i-a"));
    assert_eq!((known.noise, stops(&world).len()), (before, 2), "the launch by hand is over and is nobody's noise");
}

#[test]
fn a_launch_by_our_own_start_has_its_wake_behind_it() {
    let mut world = fleet("08:00", [node("i-a")]);
    log_line(&mut world);
    tick_at(&mut world, "08:05");
    let launch = record(&mut world).node(&id("i-a")).launch.expect("a launch");
    assert_eq!(launch.source, Some(WakeSource::LogLine));
}

// The forecast.

fn one_launch_of_ten_hours() -> Fleet {
    let launches = vec![launch("g6.xlarge", on("2026-11-18 23:00"), Some(on("2026-11-19 09:00")))];
    [(id("i-a"), NodeCosts { launches, ..NodeCosts::default() })].into()
}

#[test]
fn the_forecast_counts_the_quiet_before_the_first_launch() {
    let (now, fleet) = (on("2026-11-20 00:00"), one_launch_of_ten_hours());
    let prices = Prices::new("us-east-1", BTreeMap::from([("g6.xlarge".to_owned(), usd("1"))]));
    let of = |since: Option<&str>| forecast(&fleet, since.map(on), now, &prices).map(|amount| amount.to_string());
    // Ten dollars so far, and ten a week for the eleven days that are left.
    assert_eq!(of(Some("2026-11-13 00:00")).as_deref(), Some("$25.71"));
    assert_eq!(of(Some("2026-10-01 00:00")).as_deref(), Some("$25.71"), "a week, not longer");
    // Without it only the 25 hours since the launch are known.
    assert_eq!(of(None).as_deref(), Some("$115.60"));
}

#[test]
fn the_guard_s_forecast_counts_from_its_own_first_run() {
    let mut world = world_at(on("2026-11-13 00:00"), []);
    guard(&mut world, &budget("1000"));
    let [(word, costs)] = one_launch_of_ten_hours().into_iter().collect::<Vec<_>>().try_into().expect("one node");
    world.add_node(off_since(word.as_str(), "g6.xlarge", on("2026-11-18 23:00"), on("2026-11-19 09:00")));
    remember(&mut world, word.as_str(), costs.launches);
    let outcome = guard_on(&mut world, &budget("1000"), "2026-11-20 00:00");
    let own = usd(input(&outcome, "own_forecast").as_str().expect("a forecast"));
    assert_eq!(own.to_string(), "$25.71");
}

#[test]
fn an_update_of_the_aws_budget_that_failed_is_tried_again_and_called_what_it_is() {
    let mut world = asleep_in_mid_month();
    guards(&mut world, &budget("100"), "2026-11-15 01:00", "2026-11-15 02:00");
    fail(&mut world, "set_budget_amount", "ThrottlingException");
    guards(&mut world, &budget("150"), "2026-11-15 03:00", "2026-11-15 05:00");
    assert_eq!((world.budgets["reveille"].amount.as_str(), told(&world)), ("150.00", vec![]));
    assert_eq!(count(&world, "set_budget_amount"), 2);
}

#[test]
fn a_describe_that_is_forbidden_while_everything_sleeps_is_told() {
    let mut world = fleet("10:00", [node("i-a")]);
    tick(&mut world);
    fail_times(&mut world, "describe", "UnauthorizedOperation", 99);
    ticks(&mut world, "10:05", "10:30");
    assert_eq!(told(&world), ["controller_fault"; 2], "one for each pool in this hour");
}

#[test]
fn a_node_that_is_going_down_is_not_called_a_node_without_capacity() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b")]);
    fail_node(&mut world, "start", "i-a", "InsufficientInstanceCapacity");
    fail_node(&mut world, "start", "i-b", "IncorrectInstanceState");
    assert_eq!(only_answer(&prewarm(&mut world)).reason, Reason::StoppingWillStart);
}

#[test]
fn launches_that_follow_each_other_without_a_tick_between_are_counted_too() {
    let mut world = fleet("00:00", [node("i-a")]);
    for round in 0..8_i64 {
        world.set_now(at("00:00") + minutes(45 * round));
        log_line(&mut world);
        // Ticks until the node goes down; its stop is seen by the state change alone, and the next line starts it at once.
        let mut now = world.now();
        while state(&world, "i-a") != NodeState::Stopping {
            now += minutes(5);
            world.set_now(now);
            tick(&mut world);
        }
        world.set_now(now + minutes(1));
        state_change(&mut world);
    }
    tick_at(&mut world, "08:00");
    assert_eq!(told(&world), ["noise_wakes"]);
}
