//! The uptime alarm: its rule, the days of a zone, and whole runs over the in-memory world. The limit is 20 hours.

mod support;
mod support_money;

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use reveille::decide::Reason;
use reveille::decide::uptime::{LocalDay, Running, UptimeAction, decide};
use reveille::domain::{Instant, Launch, NodeSeen, NodeState, PublicAddress, ReadyFact};
use reveille::policy::Policy;
use reveille::run::{Answer, Call, EffectKind, Samples, UptimeRun, take_history};
use reveille::world::World;
use std::collections::BTreeSet;
use support::*;
use support_money::*;

// The rule.

const LIMIT: i64 = 20 * 3600;

#[test]
fn the_larger_source_counts_and_unknown_is_told() {
    use Reason::{UptimeOver, UptimeUnknown, UptimeWithin};
    let rows = [
        ("neither source could be read", None, None, UptimeUnknown, 0),
        ("nothing ran", Some(0), Some(0), UptimeWithin, 0),
        ("exactly the limit", Some(LIMIT), Some(LIMIT), UptimeWithin, LIMIT),
        ("a second more by the launches", Some(LIMIT + 1), Some(LIMIT), UptimeOver, LIMIT + 1),
        ("a second more by the samples", Some(LIMIT), Some(LIMIT + 1), UptimeOver, LIMIT + 1),
        ("the launches know of more", Some(LIMIT + 60), Some(60), UptimeOver, LIMIT + 60),
        ("the samples know of more", Some(60), Some(LIMIT + 60), UptimeOver, LIMIT + 60),
        ("only the launches could be read", Some(LIMIT + 1), None, UptimeOver, LIMIT + 1),
        ("only the samples could be read", None, Some(LIMIT + 1), UptimeOver, LIMIT + 1),
        ("only the launches could be read, and they are few", Some(5), None, UptimeWithin, 5),
        ("only the samples could be read, and they are few", None, Some(5), UptimeWithin, 5),
    ];
    for (name, launches, samples, reason, seconds) in rows {
        let decision = decide(Running { launches, all_launches: launches.is_some(), samples }, hours(20));
        assert_eq!((decision.reason, decision.seconds), (reason, seconds), "{name}");
        let tells = if reason == UptimeWithin { UptimeAction::Nothing } else { UptimeAction::Tell };
        assert_eq!(decision.action, tells, "{name}");
    }
}

// The day of a zone.

struct DayRow {
    name: &'static str,
    zone: &'static str,
    date: &'static str,
    from: &'static str,
    minutes: i64,
}

fn day_row(name: &'static str, zone: &'static str, from: &'static str, date: &'static str, minutes: i64) -> DayRow {
    DayRow { name, zone, date, from, minutes }
}

fn odd_days() -> Vec<DayRow> {
    vec![
        day_row("Berlin in spring", "Europe/Berlin", "2026-03-28 23:00", "2026-03-29", 23 * 60),
        day_row("Berlin in autumn", "Europe/Berlin", "2026-10-24 22:00", "2026-10-25", 25 * 60),
        day_row("New York in spring", "America/New_York", "2026-03-08 05:00", "2026-03-08", 23 * 60),
        day_row("New York in autumn", "America/New_York", "2026-11-01 04:00", "2026-11-01", 25 * 60),
        day_row("Auckland in its autumn", "Pacific/Auckland", "2026-04-04 11:00", "2026-04-05", 25 * 60),
        day_row("Auckland in its spring", "Pacific/Auckland", "2026-09-26 12:00", "2026-09-27", 23 * 60),
        day_row("Lord Howe goes back half an hour", "Australia/Lord_Howe", "2026-04-04 13:00", "2026-04-05", 1470),
        day_row("Lord Howe goes on half an hour", "Australia/Lord_Howe", "2026-10-03 13:30", "2026-10-04", 1410),
        day_row("Cairo has no midnight", "Africa/Cairo", "2026-04-23 22:00", "2026-04-24", 23 * 60),
        day_row(
            "Cairo goes back at midnight to the day before",
            "Africa/Cairo",
            "2026-10-28 21:00",
            "2026-10-29",
            1500,
        ),
        day_row("Beirut has no midnight", "Asia/Beirut", "2026-03-28 22:00", "2026-03-29", 23 * 60),
        day_row(
            "Beirut goes back at midnight to the day before",
            "Asia/Beirut",
            "2026-10-23 21:00",
            "2026-10-24",
            1500,
        ),
        day_row("Havana has no midnight", "America/Havana", "2026-03-08 05:00", "2026-03-08", 23 * 60),
        day_row("Havana has two midnights", "America/Havana", "2026-11-01 04:00", "2026-11-01", 25 * 60),
        day_row("Kolkata is half an hour off", "Asia/Kolkata", "2026-11-29 18:30", "2026-11-30", 24 * 60),
    ]
}

fn date(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}

#[test]
fn a_day_begins_and_ends_where_its_zone_says() {
    for DayRow { name, zone: of, date: text, from, minutes: length } in odd_days() {
        let day = LocalDay::on(zone(of), date(text));
        assert_eq!((day.date, day.from, day.to), (date(text), on(from), on(from) + minutes(length)), "{name}");
    }
}

#[test]
fn a_day_holds_its_first_second_and_its_last_and_no_other() {
    for DayRow { name, zone: of, date: text, .. } in odd_days() {
        let (zone, day) = (zone(of), LocalDay::on(zone(of), date(text)));
        let holds = |at: Instant| LocalDay::of(zone, at) == day;
        assert_eq!((holds(day.from), holds(day.to - seconds(1))), (true, true), "{name}");
        assert_eq!((holds(day.from - seconds(1)), holds(day.to)), (false, false), "{name}");
    }
}

#[test]
fn the_days_of_a_year_leave_no_second_out_and_none_twice() {
    for DayRow { zone: of, .. } in odd_days() {
        let zone = zone(of);
        let mut day = LocalDay::on(zone, date("2026-01-01"));
        while day.date < date("2027-01-01") {
            let next = LocalDay::of(zone, day.to);
            assert_eq!((next.from, next.before(zone)), (day.to, day), "{of} {}", day.date);
            day = next;
        }
    }
}

#[test]
fn a_date_that_a_zone_left_out_is_empty() {
    let day = LocalDay::on(zone("Pacific/Apia"), date("2011-12-30"));
    assert_eq!(day.from, day.to);
}

// Whole runs: a node that runs on and on.

#[test]
fn a_node_that_runs_through_is_told_once_a_day_at_the_first_run_after_twenty_hours() {
    for DayRow { name, zone: of, date: text, .. } in odd_days() {
        let (zone, day) = (zone(of), LocalDay::on(zone(of), date(text)));
        let next = LocalDay::of(zone, day.to);
        let mut world = world_at(day.from, [up_since("i-a", "g6.xlarge", day.from)]);
        quarters(&mut world, zone, day.from, next.to + hours(1));
        let first_after = |day: LocalDay| (day.from + hours(20) + minutes(15)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        assert_eq!(told_at(&world, "uptime"), [first_after(day), first_after(next)], "{name}");
        let named: Vec<bool> = of_kind(&world, "uptime")
            .iter()
            .zip([day, next])
            .map(|(alert, day)| alert.subject.contains(&day.date.to_string()))
            .collect();
        assert_eq!(named, [true, true], "{name}: the message names the day of the zone");
    }
}

/// Running since midnight, seen in every quarter of an hour until 19:45.
fn running_since_midnight() -> World {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    quarters(&mut world, Tz::UTC, midnight(), at("19:45"));
    world
}

#[test]
fn exactly_twenty_hours_is_not_told() {
    let mut world = running_since_midnight();
    uptime_at(&mut world, "20:00");
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn a_second_more_is_told() {
    let mut world = running_since_midnight();
    uptime_at(&mut world, "20:00:01");
    assert_eq!(told(&world), ["uptime"]);
}

#[test]
fn a_limit_of_the_operator_is_held_to() {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    world.set_now(at("03:15"));
    let ctx = context_with(&world, Policy { uptime: hours(3), ..Policy::default() });
    world.drive(&mut UptimeRun::new(ctx));
    assert_eq!(told(&world), ["uptime"]);
    assert!(world.published[0].subject.contains("3 h"), "{}", world.published[0].subject);
}

#[test]
fn a_run_that_is_delivered_three_times_tells_once() {
    let mut world = running_since_midnight();
    for _ in 0..3 {
        uptime_at(&mut world, "20:15");
    }
    assert_eq!(told(&world), ["uptime"]);
}

#[test]
fn two_runs_side_by_side_tell_once() {
    let mut world = running_since_midnight();
    world.set_now(at("20:15"));
    let (one, other) = (UptimeRun::new(context(&world)), UptimeRun::new(context_with(&world, Policy::default())));
    let (mut one, mut other) = (Stepper::new(one), Stepper::new(other));
    while one.step(&mut world) | other.step(&mut world) {}
    assert_eq!(told(&world), ["uptime"]);
}

#[test]
fn what_is_crossed_between_the_last_run_and_midnight_is_told_after_midnight_for_yesterday() {
    let mut world = world_at(at("03:50"), [up_since("i-a", "g6.xlarge", at("03:50"))]);
    quarters(&mut world, Tz::UTC, at("04:00"), at("23:45"));
    assert_eq!(told(&world), [""; 0], "19 h 55 min by then");
    quarters(&mut world, Tz::UTC, at("24:00"), at("25:00"));
    assert_eq!(told(&world), ["uptime"]);
    let alert = &world.published[0];
    assert!(alert.subject.contains("2026-11-30") && alert.body.contains("20 h 10 min"), "{}", alert.body);
}

#[test]
fn yesterday_ends_at_midnight_however_long_the_node_runs_on() {
    let mut world = world_at(at("05:00"), [up_since("i-a", "g6.xlarge", at("05:00"))]);
    quarters(&mut world, Tz::UTC, at("05:00"), at("30:00"));
    assert_eq!(told(&world), [""; 0], "19 h of the one day and 6 h of the other");
}

#[test]
fn the_message_says_what_the_node_is_and_costs_and_for_how_long_it_ran() {
    let mut world = running_since_midnight();
    uptime_at(&mut world, "20:15");
    let body = &world.published[0].body;
    for part in ["20 h 15 min", "20 h 00 min", "i-a", "g6.xlarge", "USD 0.8048 an hour", "2026-11-30 00:00 UTC"] {
        assert!(body.contains(part), "{part}: {body}");
    }
}

#[test]
fn the_alarm_only_tells_and_asks_none_of_the_idle_check_s_sources() {
    let mut world = running_since_midnight();
    quarters(&mut world, Tz::UTC, at("20:00"), at("21:00"));
    assert!(!touches_nodes(&world), "{:?}", world.calls);
    let idle_sources = ["activity", "logs", "readiness"];
    assert!(!world.calls.iter().any(|call| idle_sources.contains(call)), "{:?}", world.calls);
}

// Two sources that know nothing of each other.

#[test]
fn samples_tell_of_a_launch_that_no_run_ever_saw() {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    world.set_now(at("10:15"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    world.set_now(at("10:20"));
    world.start(&id("i-a")).expect("a start by hand");
    world.set_now(at("20:40"));
    let outcome = uptime(&mut world);
    assert_eq!(told(&world), ["uptime"], "10 h 15 min and 10 h 20 min, of which the launches know the second");
    let inputs = &outcome.decided.iter().find(|line| line.reason == Reason::UptimeOver).expect("a line").inputs;
    assert!(inputs["by_launches_seconds"].as_i64() < Some(LIMIT), "{inputs}");
}

#[test]
fn launches_tell_where_the_samples_are_few() {
    let mut world = running_since_midnight();
    world.set_now(at("20:15"));
    let mut run = UptimeRun::new(context(&world));
    drive_with(&mut world, &mut run, |_, answer| {
        if let Answer::Samples(Ok(_)) = answer { Answer::Samples(Ok(Samples::new())) } else { answer }
    });
    assert_eq!(told(&world), ["uptime"]);
}

#[test]
fn more_samples_than_minutes_are_no_uptime() {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    world.set_now(at("12:00"));
    let mut run = UptimeRun::new(context(&world));
    drive_with(&mut world, &mut run, |_, answer| {
        if let Answer::Samples(Ok(samples)) = answer {
            let twice = |points: Vec<(Instant, f64)>| points.into_iter().map(|(at, n)| (at, 2.0 * n)).collect();
            Answer::Samples(Ok(samples.into_iter().map(|(id, points)| (id, twice(points))).collect()))
        } else {
            answer
        }
    });
    assert_eq!(told(&world), [""; 0], "a bucket of five minutes holds five");
}

/// Ran from midnight to 11:50 and runs again since 11:55; all of it was seen. At 23:00 that is 22 h 55 min.
fn restarted_at_noon() -> World {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    quarters(&mut world, Tz::UTC, midnight(), at("11:45"));
    world.set_now(at("11:50"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    world.set_now(at("11:51"));
    uptime(&mut world);
    world.set_now(at("11:55"));
    world.start(&id("i-a")).expect("a start by hand");
    quarters(&mut world, Tz::UTC, at("12:00"), at("19:45"));
    world.set_now(at("23:00"));
    world
}

fn without(world: &mut World, sources: &[&'static str]) -> reveille::run::Outcome {
    sources.iter().for_each(|call| fail(world, call, "InternalServerError"));
    uptime(world)
}

#[test]
fn any_one_source_that_cannot_be_read_leaves_what_the_others_show() {
    for source in ["describe", "read_ledger", "history", "samples"] {
        let mut world = restarted_at_noon();
        without(&mut world, &[source]);
        assert!(told(&world).contains(&"uptime"), "{source}: {:?}", told(&world));
        let over = of_kind(&world, "uptime").iter().any(|alert| alert.body.contains("22 h 5"));
        assert!(over, "{source}: {:?}", of_kind(&world, "uptime"));
    }
}

/// A part of the day is no proof that the rest was quiet: what cannot be known is told.
#[test]
fn several_sources_that_cannot_be_read_are_never_taken_for_quiet() {
    let rows: [&[&'static str]; 10] = [
        &["describe", "read_ledger"],
        &["describe", "history"],
        &["describe", "samples"],
        &["read_ledger", "history"],
        &["read_ledger", "samples"],
        &["history", "samples"],
        &["describe", "read_ledger", "samples"],
        &["describe", "history", "samples"],
        &["read_ledger", "history", "samples"],
        &["describe", "read_ledger", "history"],
    ];
    let silent = |sources: &&&[&'static str]| {
        let mut world = restarted_at_noon();
        let outcome = without(&mut world, sources);
        let nothing_is_known = sources.starts_with(&["describe", "read_ledger", "history"]);
        let shows = if nothing_is_known { outcome.blind.is_some() } else { told(&world).contains(&"uptime") };
        !shows
    };
    let silent: Vec<_> = rows.iter().filter(silent).collect();
    assert!(silent.is_empty(), "22 h 55 min, and nobody is told without: {silent:?}");
}

#[test]
fn a_look_that_fails_shows_in_the_outcome() {
    for source in ["describe", "read_ledger"] {
        let mut world = restarted_at_noon();
        let outcome = without(&mut world, &[source]);
        assert!(outcome.blind.is_some(), "{source}");
    }
    for source in ["history", "samples"] {
        let mut world = restarted_at_noon();
        let outcome = without(&mut world, &[source]);
        assert_eq!((outcome.blind, outcome.failed.len()), (None, 1), "{source}");
    }
}

#[test]
fn a_refusal_that_does_not_pass_is_told_beside_the_uptime() {
    for source in ["history", "samples"] {
        let mut world = restarted_at_noon();
        fail(&mut world, source, "AccessDeniedException");
        uptime(&mut world);
        assert_eq!(told(&world), ["controller_fault", "uptime"], "{source}");
    }
}

#[test]
fn without_the_ledger_it_is_told_once_an_hour_and_not_at_every_run() {
    let mut world = running_since_midnight();
    fail_times(&mut world, "read_ledger", "InternalServerError", 99);
    fail_times(&mut world, "claim_alert", "InternalServerError", 99);
    quarters(&mut world, Tz::UTC, at("21:00"), at("22:45"));
    assert_eq!(told_at(&world, "uptime"), ["2026-11-30T21:00:00Z", "2026-11-30T22:00:00Z"]);
}

#[test]
fn a_message_that_could_not_be_sent_goes_out_with_the_next_run() {
    let mut world = running_since_midnight();
    fail(&mut world, "publish", "InternalError");
    let outcome = uptime_at(&mut world, "20:15");
    assert_eq!((outcome.unrecorded.is_some(), told(&world).len()), (true, 0));
    uptime_at(&mut world, "20:30");
    assert_eq!(told(&world), ["uptime"]);
}

// Which nodes.

#[test]
fn a_node_of_a_pool_that_nobody_configured_is_told_too() {
    let mut seen = up_since("i-a", "g6.xlarge", midnight());
    seen.pool = pool("mystery");
    let mut world = world_at(midnight(), [seen]);
    quarters(&mut world, Tz::UTC, midnight(), at("20:30"));
    assert_eq!(told(&world), ["uptime"]);
    assert_eq!(world.published[0].pool, Some(pool("mystery")));
}

/// From midnight to 20:30, and terminated.
fn terminated(world: &mut World) {
    let mut seen = up_since("i-a", "g6.xlarge", midnight());
    (seen.state, seen.transition_at) = (NodeState::Gone, Some(at("20:30")));
    world.set_now(at("20:30"));
    world.add_node(seen);
}

#[test]
fn a_terminated_node_counts_to_its_end() {
    let mut world = running_since_midnight();
    terminated(&mut world);
    quarters(&mut world, Tz::UTC, at("23:00"), at("24:30"));
    assert_eq!(told(&world), ["uptime"]);
    let body = &world.published[0].body;
    assert!(body.contains("20 h 30 min"), "{body}");
}

#[test]
fn a_terminated_node_that_is_no_longer_listed_is_still_told_for_its_day() {
    let mut world = running_since_midnight();
    terminated(&mut world);
    fail_times(&mut world, "publish", "InternalError", 1);
    uptime_at(&mut world, "20:35");
    world.forget(&id("i-a"));
    uptime_at(&mut world, "21:00");
    assert_eq!(told(&world), ["uptime"]);
}

#[test]
fn a_node_that_is_gone_has_lines_for_the_two_days_only_if_it_ran_in_one() {
    for (end, lines) in [("2026-11-09 00:00", 0), ("2026-11-09 00:01", 2)] {
        let mut world = world_at(on("2026-11-10 12:00"), []);
        remember(&mut world, "i-a", [launch("g6.xlarge", on("2026-11-08 20:00"), Some(on(end)))]);
        assert_eq!(uptime(&mut world).decided.len(), lines, "ran until {end}");
    }
}

#[test]
fn a_running_node_that_vanishes_is_told_once_and_counts_to_where_it_was_last_seen() {
    let mut world = running_since_midnight();
    uptime_at(&mut world, "20:00");
    world.forget(&id("i-a"));
    quarters(&mut world, Tz::UTC, at("20:15"), at("26:00"));
    assert_eq!(told(&world), ["misconfigured", "uptime"]);
    assert!(world.published[1].body.contains("20 h 15 min"), "{}", world.published[1].body);
}

#[test]
fn each_node_is_told_on_its_own() {
    let nodes = [up_since("i-a", "g6.xlarge", midnight()), up_since("i-b", "g6.xlarge", at("02:00"))];
    let mut world = world_at(at("02:00"), nodes);
    quarters(&mut world, Tz::UTC, at("02:00"), at("24:00"));
    let whom: Vec<_> = world.published.iter().map(|alert| alert.node.clone().expect("a node").to_string()).collect();
    assert_eq!(whom, ["i-a", "i-b"]);
}

#[test]
fn a_node_that_sleeps_all_day_is_no_business_of_the_alarm() {
    let mut world = world_at(midnight(), [node("i-a").seen()]);
    let outcomes = quarters(&mut world, Tz::UTC, midnight(), at("26:00"));
    assert_eq!(told(&world), [""; 0]);
    let all = outcomes.iter().flat_map(|outcome| &outcome.decided);
    let of_today: Vec<_> = all.filter(|line| line.inputs["day"] == "2026-11-30").collect();
    assert!(!of_today.is_empty() && of_today.iter().all(|line| line.inputs["seconds"] == 0), "it ran the day before");
}

// 37: LaunchTime restarts with every stop and start.

fn start_and_stop_are_noted(world: &mut World) {
    world.set_now(at("11:50"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    world.set_now(at("11:50:45"));
    state_change(world);
    world.set_now(at("11:55"));
    world.start(&id("i-a")).expect("a start by hand");
    world.set_now(at("11:55:30"));
    state_change(world);
}

#[test]
fn case_37_a_restart_at_noon_does_not_hide_the_hours_before_it() {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    state_change(&mut world);
    start_and_stop_are_noted(&mut world);
    fail(&mut world, "samples", "InternalServerError");
    uptime_at(&mut world, "24:05");
    assert_eq!(told(&world), ["uptime"]);
    let alert = &world.published[0];
    assert!(alert.subject.contains("2026-11-30") && alert.body.contains("23 h 55 min"), "{}", alert.body);
}

#[test]
fn case_37_the_status_checks_alone_know_it_too() {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    world.set_now(at("11:50"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    world.set_now(at("11:55"));
    world.start(&id("i-a")).expect("a start by hand");
    uptime_at(&mut world, "24:05");
    assert_eq!(told(&world), ["uptime"]);
    assert!(world.published[0].body.contains("23 h 5"), "{}", world.published[0].body);
}

#[test]
fn case_37_a_reboot_resets_nothing() {
    let mut world = running_since_midnight();
    world.set_now(at("20:15"));
    let mut run = UptimeRun::new(context(&world));
    // A reboot keeps LaunchTime; some status checks of that time are missing.
    drive_with(&mut world, &mut run, |_, answer| {
        if let Answer::Samples(Ok(samples)) = answer {
            let left = |points: Vec<(Instant, f64)>| {
                points.into_iter().filter(|(point, _)| *point < at("12:00") || *point >= at("13:00")).collect()
            };
            Answer::Samples(Ok(samples.into_iter().map(|(id, points)| (id, left(points))).collect()))
        } else {
            answer
        }
    });
    assert_eq!(told(&world), ["uptime"]);
    assert!(world.published[0].body.contains("20 h 15 min"), "{}", world.published[0].body);
}

#[test]
fn case_37_the_state_change_writes_the_end_down_where_the_alarm_would_have_come_too_late() {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    state_change(&mut world);
    start_and_stop_are_noted(&mut world);
    let ended: Vec<&Launch> = world.history()[&voice()].iter().map(|(_, launch)| launch).collect();
    let spans: Vec<_> = ended.iter().map(|launch| (launch.launched_at, launch.ended_at)).collect();
    assert_eq!(spans, [(midnight(), Some(at("11:50")))]);
}

// 08: a throttled look is not "off".

fn open_launch(world: &mut World) -> Launch {
    world.record(&voice()).node(&id("i-a")).launch.expect("a launch")
}

#[test]
fn case_08_a_throttled_look_does_not_reset_the_uptime_clock() {
    let mut world = world_at(midnight(), [up_since("i-a", "g6.xlarge", midnight())]);
    quarters(&mut world, Tz::UTC, midnight(), at("09:45"));
    let before = open_launch(&mut world);
    fail_times(&mut world, "describe", "RequestLimitExceeded", 5);
    let blind = quarters(&mut world, Tz::UTC, at("10:00"), at("11:00"));
    assert!(blind.iter().all(|outcome| outcome.blind.is_some()), "each of them failed, and shows it");
    assert_eq!(open_launch(&mut world), before, "nothing is concluded from an error");
    quarters(&mut world, Tz::UTC, at("11:15"), at("21:00"));
    assert_eq!(told_at(&world, "uptime"), ["2026-11-30T20:15:00Z"]);
}

#[test]
fn case_08_the_limit_is_told_while_the_look_is_throttled() {
    let mut world = running_since_midnight();
    fail_times(&mut world, "describe", "RequestLimitExceeded", 5);
    uptime_at(&mut world, "20:15");
    assert_eq!(told(&world), ["uptime"]);
    assert!(!touches_nodes(&world));
}

#[test]
fn case_08_idle_checks_that_cannot_look_end_no_launch() {
    let mut world = running_since_midnight();
    fail_times(&mut world, "describe", "RequestLimitExceeded", 5);
    world.set_now(at("19:50"));
    tick(&mut world);
    state_change(&mut world);
    assert_eq!(open_launch(&mut world).ended_at, None);
}

#[test]
fn a_stale_look_does_not_bring_an_ended_launch_back() {
    let mut world = running_since_midnight();
    let stale = world.node(&id("i-a")).cloned().expect("a node");
    world.set_now(at("19:50"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    world.set_now(at("19:51"));
    state_change(&mut world);
    world.set_now(at("19:52"));
    let mut run = UptimeRun::new(context(&world));
    drive_with(&mut world, &mut run, |_, answer| {
        if let Answer::Nodes(Ok(_)) = answer { Answer::Nodes(Ok(vec![stale.clone()])) } else { answer }
    });
    assert_eq!(open_launch(&mut world).ended_at, Some(at("19:50")));
    quarters(&mut world, Tz::UTC, at("20:00"), at("23:45"));
    assert_eq!(told(&world), [""; 0], "19 h 50 min");
}

#[test]
fn a_run_renews_the_sight_of_what_runs() {
    let mut world = running_since_midnight();
    assert_eq!(open_launch(&mut world).seen_at, at("19:45"));
    assert_eq!(at("19:45") - open_launch(&mut world).launched_at, TimeDelta::minutes(19 * 60 + 45));
}

/// Launched at eight, and seen again at noon.
#[test]
fn what_a_later_look_makes_of_a_launch() {
    let (eight, nine, noon) = (on("2026-11-10 08:00"), on("2026-11-10 09:00"), on("2026-11-10 12:00"));
    let known = launch("g6.xlarge", eight, None);
    let presumed = Launch { ended_at: Some(eight + minutes(20)), presumed: true, ..known.clone() };
    let seen_to_end = Launch { ended_at: Some(nine), ..known.clone() };
    let with_address = Launch { automatic_address: true, ..known.clone() };
    let up = || up_since("i-a", "g6.xlarge", eight);
    let off = |at: Option<Instant>| NodeSeen { transition_at: at, ..off_since("i-a", "g6.xlarge", eight, nine) };
    let addressed = || NodeSeen { public_address: Some(PublicAddress::Automatic), ..up() };
    let rows = [
        ("presumed to be over, and EC2 tells when", &presumed, off(Some(nine)), seen_to_end.clone()),
        ("presumed to be over, and EC2 tells no time", &presumed, off(None), presumed.clone()),
        ("a time of before the launch", &presumed, off(Some(eight - minutes(1))), presumed.clone()),
        ("a time that has not come", &presumed, off(Some(noon + minutes(1))), presumed.clone()),
        ("presumed to be over, and up", &presumed, up(), known.clone()),
        ("seen to end", &seen_to_end, off(Some(nine + minutes(1))), seen_to_end.clone()),
        ("its end was not seen before", &known, off(Some(nine)), seen_to_end.clone()),
        ("an address that came while it booted", &known, addressed(), with_address.clone()),
        ("an address that is not shown any more", &with_address, up(), with_address.clone()),
    ];
    for (name, before, seen, after) in rows {
        let mut world = world_at(noon, [seen]);
        world.record(&voice()).nodes.entry(id("i-a")).or_default().launch = Some(before.clone());
        uptime(&mut world);
        let noted = open_launch(&mut world);
        assert_eq!(Launch { seen_at: after.seen_at, ..noted }, after, "{name}");
    }
}

/// The ledger's own fact is the next launch's soon.
#[test]
fn a_launch_whose_end_nobody_saw_keeps_when_it_was_ready() {
    let (eight, nine, noon) = (on("2026-11-10 08:00"), on("2026-11-10 09:00"), on("2026-11-10 12:00"));
    let ready = |launched: Instant| ReadyFact { at: eight + seconds(50), launched_at: Some(launched), lost_at: None };
    let rows = [
        ("its node is gone", None, ready(eight), Some(eight + seconds(50))),
        ("its node runs anew", Some(up_since("i-a", "g6.xlarge", nine)), ready(eight), Some(eight + seconds(50))),
        ("another launch was ready", None, ready(nine), None),
    ];
    for (name, listed, ready, expected) in rows {
        let mut world = world_at(noon, listed);
        let known = world.record(&voice()).nodes.entry(id("i-a")).or_default();
        (known.launch, known.ready) = (Some(launch("g6.xlarge", eight, None)), Some(ready));
        uptime(&mut world);
        let history = world.answer(&Call::ReadHistory { pools: BTreeSet::from([voice()]), from: eight });
        let history = take_history(Some(history)).expect("a history").remove(&voice()).unwrap_or_default();
        assert_eq!(history.iter().map(|(_, launch)| launch.ready_at).collect::<Vec<_>>(), [expected], "{name}");
    }
}

#[test]
fn the_end_of_a_launch_says_since_when_it_ran() {
    let (eight, nine) = (on("2026-11-10 08:00"), on("2026-11-10 09:00"));
    let mut world = world_at(nine, [off_since("i-a", "g6.xlarge", eight, nine)]);
    let outcome = uptime(&mut world);
    let ended: Vec<_> = outcome.effects.iter().filter(|effect| effect.event == EffectKind::Ended).collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].reason, "ran since 2026-11-10 08:00:00 UTC");
}

/// Noon, and a launch of which the ledger knows nothing.
#[test]
fn what_a_first_look_makes_of_a_launch() {
    let (eight, noon) = (on("2026-11-10 08:00"), on("2026-11-10 12:00"));
    let off = |launched: Instant, at: Option<Instant>| NodeSeen {
        transition_at: at,
        ..off_since("i-a", "g6.xlarge", launched, noon)
    };
    let (nine, lately) = (eight + hours(1), noon - minutes(20));
    let rows = [
        ("up", up_since("i-a", "g6.xlarge", eight), Some(None)),
        ("over, and EC2 tells when", off(eight, Some(nine)), Some(Some(nine))),
        ("over in the second of its launch", off(eight, Some(eight)), Some(Some(eight))),
        ("over, and EC2 tells no time", off(eight, None), None),
        ("a time of before the launch", off(eight, Some(eight - minutes(1))), None),
        ("a time that has not come", off(eight, Some(noon + minutes(1))), None),
        ("launched lately, over, no time", off(lately, None), Some(Some(noon))),
        ("launched a second before that, over, no time", off(lately - seconds(1), None), None),
    ];
    for (name, seen, expected) in rows {
        let mut world = world_at(noon, [seen]);
        uptime(&mut world);
        let noted = world.record(&voice()).node(&id("i-a")).launch;
        assert_eq!(noted.map(|launch| launch.ended_at), expected, "{name}");
    }
}
