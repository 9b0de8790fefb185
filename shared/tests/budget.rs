//! The budget guard: which thresholds are told and when, what becomes of the AWS budget, and what the estimate counts. A
//! node of the type `g6.xlarge` costs one dollar an hour here, so that hours read as dollars.

mod support;
mod support_money;

use reveille::decide::Reason;
use reveille::decide::budget::{Basis, BudgetPolicy, Enforce};
use reveille::domain::{Disk, Launch, Noise, PublicAddress, Usd};
use reveille::prices::Prices;
use reveille::run::{AlertKind, BudgetRun, Context, Notice, Outcome, UptimeRun, notices};
use reveille::spend::{Fleet, Month, NodeCosts, spend};
use reveille::world::World;
use std::collections::{BTreeMap, BTreeSet};
use support::*;
use support_money::*;

/// Up since the month began, and nobody stops it.
fn up_all_month() -> World {
    world_at(on("2026-11-01 00:00"), [up_since("i-a", "g6.xlarge", on("2026-11-01 00:00"))])
}

// Thresholds.

#[test]
fn each_threshold_is_told_once_in_the_hour_in_which_it_is_reached() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-01 01:00", "2026-11-06 00:00");
    let expected =
        ["2026-11-03T02:00:00Z actual 50 %", "2026-11-04T08:00:00Z actual 80 %", "2026-11-05T04:00:00Z actual 100 %"];
    assert_eq!(thresholds(&world), expected);
}

#[test]
fn a_threshold_is_reached_at_its_very_amount_and_not_a_second_before() {
    let mut world = up_all_month();
    guard_on(&mut world, &budget("100"), "2026-11-03 01:59:59");
    assert_eq!(thresholds(&world), [""; 0]);
    guard_on(&mut world, &budget("100"), "2026-11-03 02:00:00");
    assert_eq!(thresholds(&world), ["2026-11-03T02:00:00Z actual 50 %"]);
}

#[test]
fn the_next_month_is_told_anew() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-05 04:00", "2026-11-05 06:00");
    guard_on(&mut world, &budget("100"), "2026-11-30 23:59");
    guard_on(&mut world, &budget("100"), "2026-12-01 00:00");
    assert_eq!(thresholds(&world).len(), 3, "the new month begins at nothing");
    guards(&mut world, &budget("100"), "2026-12-03 01:00", "2026-12-03 03:00");
    assert_eq!(thresholds(&world)[3..], ["2026-12-03T02:00:00Z actual 50 %"]);
}

#[test]
fn a_new_amount_is_told_anew() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-03 02:00", "2026-11-03 04:00");
    guards(&mut world, &budget("90"), "2026-11-03 05:00", "2026-11-03 07:00");
    let expected = ["2026-11-03T02:00:00Z actual 50 %", "2026-11-03T05:00:00Z actual 50 %"];
    assert_eq!(thresholds(&world), expected);
}

#[test]
fn several_that_are_crossed_at_once_are_all_told_in_one_run() {
    let mut world = up_all_month();
    guard_on(&mut world, &budget("100"), "2026-11-05 04:00");
    let expected = ["actual 50 %", "actual 80 %", "actual 100 %"];
    let told: Vec<String> = thresholds(&world).iter().map(|line| line[21..].to_owned()).collect();
    assert_eq!(told, expected);
}

#[test]
fn a_run_that_is_delivered_twice_tells_once() {
    let mut world = up_all_month();
    for _ in 0..2 {
        guard_on(&mut world, &budget("100"), "2026-11-03 02:00");
    }
    assert_eq!(thresholds(&world).len(), 1);
}

#[test]
fn two_runs_side_by_side_tell_once_and_make_one_budget() {
    let mut world = up_all_month();
    world.set_now(on("2026-11-03 02:00"));
    let run = |world: &World, name: &str| {
        let ctx = world.context(name, &context_priced(world, "1.00"));
        Stepper::new(BudgetRun::new(ctx, budget("100")))
    };
    let (mut one, mut other) = (run(&world, "one"), run(&world, "other"));
    while one.step(&mut world) | other.step(&mut world) {}
    assert_eq!((thresholds(&world).len(), world.budgets.len()), (1, 1));
}

#[test]
fn a_message_that_could_not_be_sent_goes_out_an_hour_later() {
    let mut world = up_all_month();
    fail(&mut world, "publish", "InternalError");
    let outcome = guard_on(&mut world, &budget("100"), "2026-11-03 02:00");
    assert!(outcome.unrecorded.is_some());
    guard_on(&mut world, &budget("100"), "2026-11-03 03:00");
    assert_eq!(thresholds(&world), ["2026-11-03T03:00:00Z actual 50 %"]);
}

#[test]
fn the_forecast_is_told_when_a_day_of_history_says_so_and_not_before() {
    let mut world = up_all_month();
    let budget = BudgetPolicy { actual: Vec::new(), forecast: vec![100], ..budget("700") };
    guards(&mut world, &budget, "2026-11-01 01:00", "2026-11-01 23:00");
    assert_eq!(thresholds(&world), [""; 0]);
    guards(&mut world, &budget, "2026-11-02 00:00", "2026-11-02 03:00");
    assert_eq!(thresholds(&world), ["2026-11-02T00:00:00Z forecast 100 %"], "24/7 is 720 dollars");
}

#[test]
fn a_node_that_runs_half_the_day_is_forecast_at_half() {
    let day = |n: i64| on("2026-11-01 00:00") + hours(24 * n);
    let stopped = off_since("i-a", "g6.xlarge", day(9), day(9) + hours(12));
    let mut world = world_at(on("2026-11-11 00:00"), [stopped]);
    remember(&mut world, "i-a", (0..10).map(|n| launch("g6.xlarge", day(n), Some(day(n) + hours(12)))));
    let outcome = guard(&mut world, &budget("1000"));
    assert_eq!(input(&outcome, "own_estimate"), "120.00");
    assert_eq!(input(&outcome, "own_forecast"), "360.00");
}

#[test]
fn aws_s_forecast_counts_where_it_is_the_larger() {
    let mut world = up_all_month();
    let budget = BudgetPolicy { actual: Vec::new(), forecast: vec![100], ..budget("1000") };
    aws_shows(&mut world, &budget, "0");
    world.budgets.get_mut("reveille").expect("a budget").forecast = Some(usd("1000"));
    guard_on(&mut world, &budget, "2026-11-02 02:00");
    assert_eq!(thresholds(&world), ["2026-11-02T02:00:00Z forecast 100 %"]);
}

#[test]
fn aws_s_figures_of_the_month_before_close_nothing_on_the_first_day() {
    let mut world = up_all_month();
    let budget = BudgetPolicy { enforce: Enforce::Gate, ..budget("100") };
    aws_shows(&mut world, &budget, "99.00");
    world.budgets.get_mut("reveille").expect("a budget").actual = Some(usd("120"));
    guards(&mut world, &budget, "2026-11-01 00:00", "2026-11-01 23:00");
    assert_eq!((thresholds(&world).len(), world.record(&voice()).gate.clone()), (0, None));
    guard_on(&mut world, &budget, "2026-11-02 00:00");
    assert!(world.record(&voice()).gate.is_some(), "from the second day on they are this month's");
}

// The two figures.

#[test]
fn the_own_estimate_tells_long_before_aws_has_a_figure() {
    let mut world = up_all_month();
    aws_shows(&mut world, &budget("100"), "3");
    guard_on(&mut world, &budget("100"), "2026-11-03 02:00");
    assert_eq!(thresholds(&world).len(), 1);
    let body = &world.published[0].body;
    assert!(body.contains("USD 50.00 by Reveille's own estimate") && body.contains("shows USD 3.00"), "{body}");
}

#[test]
fn aws_s_figure_tells_where_it_is_the_larger() {
    let mut world = up_all_month();
    aws_shows(&mut world, &budget("100"), "80.00");
    guard_on(&mut world, &budget("100"), "2026-11-02 10:00");
    let told: Vec<String> = thresholds(&world).iter().map(|line| line[21..].to_owned()).collect();
    assert_eq!(told, ["actual 50 %", "actual 80 %"]);
    assert!(world.published[1].body.contains("USD 80.00 of 100.00"), "{}", world.published[1].body);
}

// The AWS budget.

fn wanted_notices(budget: &BudgetPolicy) -> BTreeSet<Notice> {
    budget.actual.iter().map(|percent| Notice { basis: Basis::Actual, percent: *percent }).collect()
}

#[test]
fn a_missing_aws_budget_is_made_once_with_its_notifications() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-01 01:00", "2026-11-01 04:00");
    let made = &world.budgets["reveille"];
    assert_eq!((made.amount.as_str(), made.unit.as_str()), ("100.00", "USD"));
    assert_eq!(made.notices, wanted_notices(&budget("100")));
    let calls = ["create_budget", "create_notices", "set_budget_amount", "note_budget"].map(|call| count(&world, call));
    assert_eq!(calls, [1, 0, 0, 1]);
}

#[test]
fn a_budget_that_somebody_deleted_is_made_again() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-01 01:00", "2026-11-01 03:00");
    world.budgets.clear();
    guards(&mut world, &budget("100"), "2026-11-01 04:00", "2026-11-01 05:00");
    assert_eq!((world.budgets.len(), count(&world, "create_budget")), (1, 2));
}

#[test]
fn missing_notifications_are_made_again_and_only_those() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-01 01:00", "2026-11-01 03:00");
    world.budgets.get_mut("reveille").expect("a budget").notices.retain(|notice| notice.percent != 80);
    let outcomes = guards(&mut world, &budget("100"), "2026-11-01 04:00", "2026-11-01 06:00");
    assert_eq!(world.budgets["reveille"].notices, wanted_notices(&budget("100")));
    assert_eq!(count(&world, "create_notices"), 1);
    let repaired: Vec<&str> = outcomes.iter().flat_map(|o| &o.effects).map(|effect| effect.reason.as_str()).collect();
    assert_eq!(repaired, ["1 notifications of reveille were missing"]);
}

#[test]
fn without_an_address_there_is_no_notification_to_miss() {
    let mut world = up_all_month();
    let budget = BudgetPolicy { mail: Vec::new(), ..budget("100") };
    guards(&mut world, &budget, "2026-11-01 01:00", "2026-11-01 03:00");
    assert!(world.budgets["reveille"].notices.is_empty() && notices(&budget).is_empty());
    assert_eq!(count(&world, "create_notices"), 0);
}

#[test]
fn an_amount_that_was_changed_in_the_configuration_is_set_once() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-01 01:00", "2026-11-01 03:00");
    guards(&mut world, &budget("150"), "2026-11-01 04:00", "2026-11-01 08:00");
    assert_eq!(world.budgets["reveille"].amount, "150.00");
    assert_eq!((count(&world, "set_budget_amount"), told(&world)), (1, vec![]));
}

#[test]
fn an_amount_that_somebody_changed_in_aws_is_told_once_and_left() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-01 01:00", "2026-11-01 03:00");
    world.budgets.get_mut("reveille").expect("a budget").amount = "80".to_owned();
    guards(&mut world, &budget("100"), "2026-11-01 04:00", "2026-11-02 04:00");
    assert_eq!((world.budgets["reveille"].amount.as_str(), count(&world, "set_budget_amount")), ("80", 0));
    assert_eq!(told_at(&world, "misconfigured"), ["2026-11-01T04:00:00Z"]);
    let body = &world.published[0].body;
    assert!(body.contains("80 USD") && body.contains("100.00 USD"), "{body}");
    world.budgets.get_mut("reveille").expect("a budget").amount = "90".to_owned();
    guard_on(&mut world, &budget("100"), "2026-11-02 05:00");
    assert_eq!(told_at(&world, "misconfigured").len(), 2, "another amount is another change");
}

#[test]
fn an_amount_written_another_way_is_the_same_amount() {
    let mut world = up_all_month();
    guards(&mut world, &budget("100"), "2026-11-01 01:00", "2026-11-01 03:00");
    world.budgets.get_mut("reveille").expect("a budget").amount = "100.0".to_owned();
    guards(&mut world, &budget("100"), "2026-11-01 04:00", "2026-11-01 05:00");
    assert_eq!((count(&world, "set_budget_amount"), told(&world)), (0, vec![]));
}

fn budget_in_euro(world: &mut World) {
    aws_shows(world, &budget("100"), "90");
    world.budgets.get_mut("reveille").expect("a budget").unit = "EUR".to_owned();
}

#[test]
fn case_41_figures_in_another_currency_are_told_and_not_read() {
    let mut world = up_all_month();
    budget_in_euro(&mut world);
    let outcome = guard_on(&mut world, &budget("100"), "2026-11-01 02:00");
    assert_eq!(thresholds(&world), [""; 0], "90 euro are not 90 dollars");
    assert_eq!((told(&world), input(&outcome, "aws_actual")), (vec!["misconfigured"], serde_json::Value::Null));
    assert!(world.published[0].body.contains("EUR"), "{}", world.published[0].body);
}

#[test]
fn case_41_the_own_estimate_goes_on_beside_a_budget_in_another_currency() {
    let mut world = up_all_month();
    budget_in_euro(&mut world);
    guard_on(&mut world, &budget("100"), "2026-11-03 02:00");
    assert_eq!(thresholds(&world).len(), 1);
}

/// The message asks a person to delete it or to choose another name: then it is not overwritten meanwhile.
#[test]
fn case_41_a_budget_in_another_currency_is_left_to_the_person_who_is_told_of_it() {
    let mut world = up_all_month();
    budget_in_euro(&mut world);
    guards(&mut world, &budget("100"), "2026-11-01 02:00", "2026-11-01 05:00");
    assert_eq!((world.budgets["reveille"].unit.as_str(), count(&world, "set_budget_amount")), ("EUR", 0));
}

#[test]
fn a_budget_that_may_not_be_read_is_told_once_and_the_own_estimate_goes_on() {
    let mut world = up_all_month();
    fail_times(&mut world, "budget", "AccessDeniedException", 99);
    guards(&mut world, &budget("100"), "2026-11-03 01:00", "2026-11-03 03:00");
    assert_eq!(told(&world), ["controller_fault", "budget"]);
    assert_eq!((world.budgets.len(), count(&world, "create_budget")), (0, 0), "refused is not missing");
}

#[test]
fn without_the_note_of_the_amount_nothing_is_set() {
    let mut world = up_all_month();
    aws_shows(&mut world, &budget("80"), "0");
    fail(&mut world, "budget_note", "InternalServerError");
    let outcome = guard_on(&mut world, &budget("100"), "2026-11-01 01:00");
    assert_eq!((count(&world, "set_budget_amount"), outcome.failed.len()), (0, 1));
}

#[test]
fn a_budget_that_cannot_be_made_fails_the_run_and_not_the_estimate() {
    let mut world = up_all_month();
    fail(&mut world, "create_budget", "AccessDeniedException");
    let outcome = guard_on(&mut world, &budget("100"), "2026-11-03 02:00");
    assert_eq!((outcome.unrecorded.is_some(), thresholds(&world).len()), (true, 1));
}

// What cannot be read.

/// The ledger has seen the launch.
fn seen_by_the_alarm() -> World {
    let mut world = up_all_month();
    world.set_now(on("2026-11-01 00:15"));
    uptime(&mut world);
    world
}

#[test]
fn case_08_a_node_that_cannot_be_looked_at_costs_on() {
    let mut world = seen_by_the_alarm();
    fail_times(&mut world, "describe", "RequestLimitExceeded", 9);
    let outcome = guard_on(&mut world, &budget("100"), "2026-11-05 04:00");
    assert_eq!(estimate(&outcome), usd("100"));
    assert_eq!(thresholds(&world).len(), 3);
    assert_eq!(outcome.failed.len(), 1, "and the failure shows");
}

#[test]
fn without_the_ledger_the_run_is_blind_and_closes_nothing() {
    for source in ["read_ledger", "history"] {
        let mut world = seen_by_the_alarm();
        aws_shows(&mut world, &budget("100"), "200");
        fail(&mut world, source, "InternalServerError");
        let outcome = guard_on(&mut world, &enforcing(Enforce::Stop, "100"), "2026-11-05 04:00");
        assert!(outcome.blind.is_some(), "{source}");
        let expected = if source == "read_ledger" { vec!["controller_fault"] } else { vec![] };
        assert_eq!(
            (told(&world), count(&world, "set_gate")),
            (expected, 0),
            "{source}: what passes is told if it stays"
        );
        let reasons: Vec<_> = outcome.decided.iter().map(|line| line.reason).collect();
        assert_eq!(reasons, [Reason::CannotLook; 2], "{source}: nothing is decided on nothing, and that is said");
    }
}

#[test]
fn without_the_volumes_the_rest_is_counted_and_the_gap_is_told() {
    let mut world = up_all_month();
    world.add_disk(&id("i-a"), gp3(1000));
    fail(&mut world, "disks", "UnauthorizedOperation");
    let outcome = guard_on(&mut world, &budget("100"), "2026-11-03 02:00");
    assert_eq!(estimate(&outcome), usd("50"));
    assert_eq!(told(&world), ["controller_fault", "budget"]);
}

#[test]
fn a_type_without_a_price_is_told_and_the_rest_is_counted() {
    let nodes =
        [up_since("i-a", "g6.xlarge", on("2026-11-01 00:00")), up_since("i-b", "x9.huge", on("2026-11-01 00:00"))];
    let mut world = world_at(on("2026-11-03 02:00"), nodes);
    let outcome = guard(&mut world, &budget("100"));
    guard(&mut world, &budget("100"));
    assert_eq!((estimate(&outcome), told(&world)), (usd("50"), vec!["budget", "misconfigured"]));
    let alert = of_kind(&world, "misconfigured")[0];
    assert!(alert.body.contains("x9.huge") && alert.body.contains("REVEILLE_PRICES"), "{}", alert.body);
    assert!(world.published[0].body.contains("without a price, so not in the estimate: instance type x9.huge"));
}

#[test]
fn a_volume_without_a_price_is_told() {
    let mut world = up_all_month();
    world.add_disk(&id("i-a"), Disk { kind: "io2".to_owned(), ..gp3(100) });
    guard_on(&mut world, &budget("100"), "2026-11-01 02:00");
    assert_eq!(told(&world), ["misconfigured"]);
    assert!(world.published[0].body.contains("io2"), "{}", world.published[0].body);
}

#[test]
fn an_own_price_comes_before_the_table() {
    let mut world = up_all_month();
    world.set_now(on("2026-11-01 10:00"));
    let listed = context(&world);
    let by_table = world.drive(&mut BudgetRun::new(listed, budget("100")));
    let by_own = guard(&mut world, &budget("100"));
    assert_eq!((estimate(&by_table), estimate(&by_own)), (usd("8.048"), usd("10")));
}

// What is counted.

#[test]
fn a_node_of_an_unknown_pool_costs_like_any_other() {
    let mut seen = up_since("i-a", "g6.xlarge", on("2026-11-01 00:00"));
    seen.pool = pool("mystery");
    let mut world = world_at(on("2026-11-01 07:00"), [seen]);
    assert_eq!(estimate(&guard(&mut world, &budget("100"))), usd("7"));
}

#[test]
fn a_launch_that_the_ledger_does_not_know_yet_counts_beside_those_it_knows() {
    let mut world = world_at(on("2026-11-02 05:00"), [up_since("i-a", "g6.xlarge", on("2026-11-02 00:00"))]);
    remember(&mut world, "i-a", [launch("g6.xlarge", on("2026-11-01 00:00"), Some(on("2026-11-01 10:00")))]);
    assert_eq!(estimate(&guard(&mut world, &budget("100"))), usd("15"));
}

#[test]
fn what_ran_before_the_month_costs_nothing_in_it() {
    let mut world = world_at(on("2026-12-01 05:00"), [up_since("i-a", "g6.xlarge", on("2026-11-20 00:00"))]);
    remember(&mut world, "i-a", [launch("g6.xlarge", on("2026-11-01 00:00"), Some(on("2026-11-10 00:00")))]);
    assert_eq!(estimate(&guard(&mut world, &budget("100"))), usd("5"));
}

#[test]
fn a_launch_over_the_turn_of_the_month_counts_from_the_first_on() {
    let off = off_since("i-a", "g6.xlarge", on("2026-11-30 20:00"), on("2026-12-01 03:00"));
    let mut world = world_at(on("2026-12-05 00:00"), [off]);
    remember(&mut world, "i-a", [launch("g6.xlarge", on("2026-11-30 20:00"), Some(on("2026-12-01 03:00")))]);
    assert_eq!(estimate(&guard(&mut world, &budget("100"))), usd("3"));
}

#[test]
fn a_terminated_node_stays_in_the_month_s_sum() {
    let mut world = world_at(on("2026-11-05 00:00"), []);
    remember(&mut world, "i-a", [launch("g6.xlarge", on("2026-11-02 00:00"), Some(on("2026-11-02 09:00")))]);
    assert_eq!(estimate(&guard(&mut world, &budget("100"))), usd("9"));
}

#[test]
fn each_pool_is_shown_its_own_share() {
    let mut batch = up_since("i-b", "g6.xlarge", on("2026-11-01 00:00"));
    batch.pool = pool("batch");
    let mut world = world_at(on("2026-11-01 04:00"), [up_since("i-a", "g6.xlarge", on("2026-11-01 01:00")), batch]);
    let outcome = guard(&mut world, &budget("100"));
    let share = |name: &str| {
        let line = outcome.decided.iter().find(|line| line.pool == pool(name)).expect("a line");
        (line.inputs["this_pool"].clone(), line.inputs["own_estimate"].clone())
    };
    assert_eq!(share("voice"), ("3.00".into(), "7.00".into()));
    assert_eq!(share("batch"), ("4.00".into(), "7.00".into()));
}

/// The fleet of one node, as the ledger and EC2 know it.
fn fleet_of(node: NodeCosts) -> Fleet {
    Fleet::from([(id("i-a"), node)])
}

fn listed() -> Prices {
    Prices::new("us-east-1", BTreeMap::new())
}

/// 102 hours from 1 November on: 4 starts that ran for 7,180 s and 20 s together, off the rest of the time.
fn two_hours_of_hundred_and_two() -> NodeCosts {
    let start = |clock: &str, seconds_up: i64| {
        let from = on(&format!("2026-11-02 {clock}"));
        launch("g6.xlarge", from, Some(from + seconds(seconds_up)))
    };
    NodeCosts {
        launches: vec![start("08:00", 3600), start("10:00", 3000), start("12:00", 20), start("14:00", 580)],
        disks: vec![gp3(100)],
        ..NodeCosts::default()
    }
}

#[test]
fn case_40_running_seconds_are_charged_with_a_minute_a_start_at_least() {
    let (from, to) = (on("2026-11-01 00:00"), on("2026-11-05 06:00"));
    let spent = spend(&fleet_of(two_hours_of_hundred_and_two()), from, to, to, &listed());
    assert_eq!(spent.seconds, 7200 + 40, "2 h, of which 20 s are billed as 60 s");
    assert_eq!(spent.compute, Usd::from_micro(1_618_542), "7240 s × 0.8048 ÷ 3600");
}

#[test]
fn case_40_disks_are_charged_while_the_node_sleeps() {
    let (from, to) = (on("2026-11-01 00:00"), on("2026-11-05 06:00"));
    let spent = spend(&fleet_of(two_hours_of_hundred_and_two()), from, to, to, &listed());
    assert_eq!(spent.disk, Usd::from_micro(1_133_333), "100 GiB × 0.08 × 102 h ÷ 720 h");
    assert_eq!(spent.total(), Usd::from_micro(1_618_542 + 1_133_333));
}

#[test]
fn case_40_a_node_that_never_ran_costs_its_disk_only() {
    let (from, to) = (on("2026-11-01 00:00"), on("2026-11-05 06:00"));
    let seen = Some(off_since("i-a", "g6.xlarge", on("2026-10-01 00:00"), on("2026-10-02 00:00")));
    let node = NodeCosts { seen, disks: vec![gp3(100)], ..NodeCosts::default() };
    let spent = spend(&fleet_of(node), from, to, to, &listed());
    assert_eq!((spent.compute, spent.address, spent.seconds), (Usd::ZERO, Usd::ZERO, 0));
    assert_eq!(spent.disk, Usd::from_micro(1_133_333));
}

/// Nobody has written the end down yet; EC2 shows it.
#[test]
fn case_40_a_node_that_ec2_shows_stopped_is_charged_to_its_stop() {
    let mut world = seen_by_the_alarm();
    world.set_now(on("2026-11-01 10:00"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    assert_eq!(estimate(&guard_on(&mut world, &budget("100"), "2026-11-01 10:30")), usd("10"));
    assert_eq!(estimate(&guard_on(&mut world, &budget("100"), "2026-11-03 10:00")), usd("10"));
    assert_eq!(thresholds(&world), [""; 0]);
}

#[test]
fn disks_and_addresses_are_charged_for_what_they_are() {
    let (from, to) = (on("2026-11-01 00:00"), on("2026-12-01 00:00"));
    let launches = [launch("g6.xlarge", on("2026-11-02 00:00"), Some(on("2026-11-02 10:00")))];
    let with_address = |kind| {
        let mut seen = off_since("i-a", "g6.xlarge", on("2026-11-02 00:00"), on("2026-11-02 10:00"));
        seen.public_address = Some(kind);
        let automatic_address = kind == PublicAddress::Automatic;
        let launches = launches.iter().map(|launch| Launch { automatic_address, ..launch.clone() }).collect();
        NodeCosts { seen: Some(seen), launches, disks: Vec::new() }
    };
    let disk = |disk| NodeCosts { disks: vec![disk], ..NodeCosts::default() };
    let born = Some(on("2026-11-16 00:00"));
    let rows = [
        ("a gp3 volume with what is included", disk(gp3(125)), "10", "0"),
        ("1000 operations more", disk(Disk { iops: 4000, ..gp3(125) }), "15", "0"),
        ("125 MiB/s more", disk(Disk { mibps: 250, ..gp3(125) }), "15", "0"),
        ("fewer operations than are included", disk(Disk { iops: 100, ..gp3(125) }), "10", "0"),
        ("made in the middle of the month", disk(Disk { created_at: born, ..gp3(125) }), "5", "0"),
        ("an Elastic address, all hours", with_address(PublicAddress::Elastic), "0", "3.60"),
        ("an automatic address, while it runs", with_address(PublicAddress::Automatic), "0", "0.05"),
    ];
    for (name, node, disks, address) in rows {
        let spent = spend(&fleet_of(node), from, to, to, &listed());
        assert_eq!((spent.disk, spent.address), (usd(disks), usd(address)), "{name}");
        assert!(spent.unpriced.is_empty(), "{name}: {:?}", spent.unpriced);
    }
}

#[test]
fn a_disk_costs_its_month_s_price_in_a_short_month_too() {
    let disk = NodeCosts { disks: vec![gp3(125)], ..NodeCosts::default() };
    for month in ["2026-02-01 00:00", "2026-03-01 00:00", "2026-04-01 00:00", "2028-02-01 00:00"] {
        let Month { from, to } = Month::of(on(month));
        assert_eq!(spend(&fleet_of(disk.clone()), from, to, to, &listed()).disk, usd("10"), "{month}");
    }
}

#[test]
fn a_type_that_was_changed_between_launches_is_charged_as_it_ran() {
    let launches = vec![
        launch("g6.xlarge", on("2026-11-02 00:00"), Some(on("2026-11-02 01:00"))),
        launch("g5.xlarge", on("2026-11-02 02:00"), Some(on("2026-11-02 03:00"))),
    ];
    let seen = Some(off_since("i-a", "g6.2xlarge", on("2026-11-02 02:00"), on("2026-11-02 03:00")));
    let node = NodeCosts { seen, launches, disks: Vec::new() };
    let (from, to) = (on("2026-11-01 00:00"), on("2026-11-03 00:00"));
    assert_eq!(spend(&fleet_of(node), from, to, to, &listed()).compute, usd("1.8108"));
}

// 38: billing data are hours old.

fn listed_guard(world: &mut World, budget: &BudgetPolicy) -> Outcome {
    let ctx = context(world);
    world.drive(&mut BudgetRun::new(ctx, budget.clone()))
}

#[test]
fn case_38_the_guard_acts_on_its_own_estimate_and_aws_s_late_figure_changes_nothing() {
    let mut world = world_at(on("2026-11-12 00:00"), [up_since("i-a", "g5.xlarge", on("2026-11-12 00:00"))]);
    let limit = BudgetPolicy { actual: vec![100], ..enforcing(Enforce::Gate, "20") };
    aws_shows(&mut world, &limit, "3");
    world.set_now(on("2026-11-12 19:59"));
    let outcome = listed_guard(&mut world, &limit);
    assert_eq!(estimate(&outcome), Usd::from_micro(20_103_233), "1.006 × 19 h 59 min");
    assert_eq!(thresholds(&world), ["2026-11-12T19:59:00Z actual 100 %"]);
    assert!(world.record(&voice()).closed_gate(on("2026-11-12 19:59")).is_some(), "it acts by itself");
    world.stop(&id("i-a"), false).expect("a stop by hand");
    let gate = world.record(&voice()).gate.clone();
    aws_shows(&mut world, &limit, "20.10");
    world.set_now(on("2026-11-13 07:59"));
    let outcome = listed_guard(&mut world, &limit);
    assert_eq!((thresholds(&world).len(), outcome.effects.len()), (1, 0), "no second message, and no error");
    assert_eq!(world.record(&voice()).gate, gate);
    assert!(!touches_nodes(&world), "{:?}", world.calls);
}

#[test]
fn case_38_a_minute_before_the_limit_nothing_is_done() {
    let mut world = world_at(on("2026-11-12 00:00"), [up_since("i-a", "g5.xlarge", on("2026-11-12 00:00"))]);
    let limit = BudgetPolicy { actual: vec![100], ..enforcing(Enforce::Gate, "20") };
    world.set_now(on("2026-11-12 19:52"));
    let outcome = listed_guard(&mut world, &limit);
    assert_eq!((told(&world), count(&world, "set_gate")), (vec![], 0), "{:?}", estimate(&outcome));
}

// What is said.

#[test]
fn the_message_says_what_is_left_in_money_hours_and_calls() {
    let mut world = up_all_month();
    let units = vec![("calls".to_owned(), usd("0.03")), ("turns".to_owned(), usd("0.5"))];
    let budget = BudgetPolicy { units, actual: vec![50], ..budget("100") };
    world.set_now(on("2026-11-03 02:00"));
    let ctx = context_priced(&world, "1.20");
    world.drive(&mut BudgetRun::new(ctx, budget));
    let body = &world.published[0].body;
    let left =
        "Left:  USD 40.00, that is about 33 h 20 min of g6.xlarge, or 1333 calls at USD 0.03, or 80 turns at USD 0.50";
    assert!(body.contains(left), "{body}");
    for part in ["USD 60.00 of 100.00", "50 h 00 min", "USD 1.20 an hour", "compute $60.00", "no figure yet"] {
        assert!(body.contains(part), "{part}: {body}");
    }
}

#[test]
fn nothing_is_left_of_what_is_overspent() {
    let mut world = up_all_month();
    guard_on(&mut world, &BudgetPolicy { actual: vec![100], ..budget("100") }, "2026-11-20 00:00");
    assert!(world.published[0].body.contains("Left:  USD 0.00"), "{}", world.published[0].body);
}

#[test]
fn the_subject_names_the_share_the_month_and_the_amount() {
    let mut world = up_all_month();
    guard_on(&mut world, &BudgetPolicy { actual: vec![50], ..budget("100") }, "2026-11-03 02:00");
    let alert = &world.published[0];
    assert_eq!(alert.subject, "Reveille: 50 % of the 2026-11 budget of USD 100.00 spent: all pools");
    assert_eq!((alert.attributes["month"].as_str(), alert.attributes["usd_per_hour"].as_str()), ("2026-11", "1.00"));
}

#[test]
fn the_message_says_what_is_done_about_it() {
    let rows = [
        (Enforce::Alert, "nothing: this only tells"),
        (Enforce::Gate, "the gate is to be closed;"),
        (Enforce::Stop, "running nodes drained"),
    ];
    for (enforce, words) in rows {
        let mut world = up_all_month();
        guard_on(&mut world, &BudgetPolicy { actual: vec![50, 100], ..enforcing(enforce, "100") }, "2026-11-05 04:00");
        let of_thresholds =
            of_kind(&world, "budget").into_iter().filter(|alert| alert.attributes.contains_key("threshold"));
        let done: Vec<bool> = of_thresholds.map(|alert| alert.body.contains(words)).collect();
        let half = enforce == Enforce::Alert;
        assert_eq!(done, [half, true], "{enforce:?}");
    }
}

#[test]
fn the_guard_s_line_says_what_it_saw() {
    let mut world = up_all_month();
    aws_shows(&mut world, &budget("100"), "3");
    let outcome = guard_on(&mut world, &budget("100"), "2026-11-02 10:00");
    let expected = [
        ("month", "2026-11"),
        ("currency", "USD"),
        ("amount", "100.00"),
        ("own_estimate", "34.00"),
        ("aws_actual", "3.00"),
        ("usd_per_hour", "1.00"),
    ];
    for (name, value) in expected {
        assert_eq!(input(&outcome, name), value, "{name}");
    }
    assert_eq!((input(&outcome, "running_seconds"), outcome.decided[0].reason), (122_400.into(), Reason::BudgetWithin));
}

// Every message there is.

/// As long as EC2 lets a Name tag be, and nothing an SNS subject takes.
fn long_name() -> String {
    "Sprachknoten-Köln-音声\n".repeat(11)
}

fn nameless_world(nodes: impl IntoIterator<Item = Node>) -> World {
    fleet("10:00", nodes.into_iter().map(|node| node.named(&long_name())))
}

fn a_failed_start() -> World {
    let mut world = nameless_world([node("i-a")]);
    fail(&mut world, "start", "VcpuLimitExceeded");
    prewarm(&mut world);
    world
}

fn a_refused_stop() -> World {
    let mut world = nameless_world([unused()]);
    world.refuse_stop(&id("i-a"), "OperationNotPermitted");
    ticks(&mut world, "10:00", "10:05");
    world
}

fn a_node_that_is_never_ready() -> World {
    let mut world = nameless_world([node("i-a")]);
    world.checks = minutes(6000);
    prewarm(&mut world);
    ticks(&mut world, "10:05", "10:15");
    world
}

fn a_blind_pool() -> World {
    let mut world = nameless_world([unused().without_proof_of_life()]);
    ticks(&mut world, "10:00", "10:10");
    world
}

fn a_noisy_pool() -> World {
    let mut world = nameless_world([node("i-a")]);
    let noise = Noise {
        lines: 7,
        prewarms: 0,
        at: at("09:00"),
        line_times: vec![at("09:00"); 7],
        launched_at: at("08:00"),
        until: at("24:00"),
    };
    world.record(&voice()).nodes.entry(id("i-a")).or_default().noise = Some(noise);
    tick(&mut world);
    world
}

fn a_lost_ledger() -> World {
    let mut world = nameless_world([unused()]);
    fail(&mut world, "read_ledger", "ResourceNotFoundException");
    tick(&mut world);
    world
}

fn an_unknown_pool() -> World {
    let name = "a-pool-with-a-name-as-long-as-it-may-be-x";
    let mut world = nameless_world([unused().in_pool(name)]);
    tick(&mut world);
    world
}

fn a_long_day() -> World {
    let mut world = nameless_world([node("i-a").running_since("00:00").without_proof_of_life()]);
    world.set_now(at("21:00"));
    let ctx = Context { prices: Prices::new("us-east-1", BTreeMap::new()), ..context(&world) };
    world.drive(&mut UptimeRun::new(ctx));
    world
}

fn a_spent_budget() -> World {
    let mut world = nameless_world([node("i-a").running_since("00:00")]);
    let name = "Sprachdienst-Köln-".repeat(20);
    let budget = BudgetPolicy { name, forecast: vec![100], ..budget("1") };
    guard(&mut world, &budget);
    world
}

#[test]
fn every_kind_of_message_has_a_subject_and_attributes_that_sns_takes() {
    let worlds = [
        a_failed_start(),
        a_refused_stop(),
        a_node_that_is_never_ready(),
        a_blind_pool(),
        a_noisy_pool(),
        a_lost_ledger(),
        an_unknown_pool(),
        a_long_day(),
        a_spent_budget(),
    ];
    let all: Vec<_> = worlds.iter().flat_map(|world| &world.published).collect();
    let kinds: BTreeSet<AlertKind> = all.iter().map(|alert| alert.kind).collect();
    assert_eq!(kinds, AlertKind::ALL.iter().copied().collect(), "each kind is met");
    for alert in all {
        let subject = &alert.subject;
        assert!(subject.len() < 100 && subject.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{subject:?}");
        assert!(subject.starts_with("Reveille: ") && !alert.body.is_empty(), "{subject:?}");
        let fits = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(!alert.attributes.is_empty(), "{subject:?}");
        for (name, value) in &alert.attributes {
            assert!(fits(name) && !value.trim().is_empty(), "{subject:?}: {name}={value:?}");
        }
    }
}
