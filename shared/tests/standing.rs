//! What keeps a node without a call: holds of people, warm windows, and a pre-warm while it lasts; through whole runs.

mod support;
mod support_money;
mod support_rules;

use reveille::decide::Reason;
use reveille::decide::budget::Enforce;
use reveille::domain::{Hold, NodeState, WakeSource};
use reveille::policy::{Policy, PoolRules};
use reveille::run::{Alert, Call, PoolPolicy, Target, WakeWish};
use reveille::world::World;
use support::*;
use support_money::{enforcing, guard};
use support_rules::*;

/// Up since nine, ready and unused, with this tag.
fn tagged(key: &str, value: &str) -> World {
    let mut seen = unused().seen();
    seen.tags.insert(key.to_owned(), value.to_owned());
    let mut world = fleet("10:00", [unused()]);
    world.add_node(seen);
    world
}

fn hold(world: &mut World, until: Option<&str>) {
    let note = "demo for a customer".to_owned();
    let hold = until.map(|until| Hold { until: at(until), note, since: world.now() });
    world.answer(&Call::SetHold { pool: voice(), node: id("i-a"), hold });
}

fn of_kind<'a>(world: &'a World, kind: &str) -> Vec<&'a Alert> {
    world.published.iter().filter(|alert| alert.kind.as_str() == kind).collect()
}

// Holds.

#[test]
fn a_tag_holds_its_node_to_its_end_and_no_longer() {
    let mut world = tagged("reveille:keep-until", "2026-11-30T12:00Z");
    let outcomes = ticks(&mut world, "10:00", "12:10");
    let held = outcomes.iter().take_while(|outcome| reason(outcome, "i-a") == Reason::Held).count();
    assert_eq!((held, stops(&world)), (24, vec!["12:05 i-a".to_owned()]), "two readings from 12:00 on");
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn a_hold_in_the_ledger_keeps_its_node_to_its_end_and_no_longer() {
    let mut world = fleet("10:00", [unused()]);
    hold(&mut world, Some("12:00"));
    let outcomes = ticks(&mut world, "10:00", "12:10");
    assert_eq!(reason(&outcomes[0], "i-a"), Reason::Held);
    assert_eq!(line(&outcomes[0], "i-a").stops_not_before, Some(at("12:00")));
    assert_eq!(stops(&world), ["12:05 i-a"]);
}

#[test]
fn a_hold_that_is_taken_back_keeps_no_more() {
    let mut world = fleet("10:00", [unused()]);
    hold(&mut world, Some("18:00"));
    ticks(&mut world, "10:00", "10:10");
    hold(&mut world, None);
    ticks(&mut world, "10:15", "10:25");
    assert_eq!(stops(&world), ["10:20 i-a"]);
}

#[test]
fn the_later_of_tag_and_ledger_holds() {
    for (tag, ledger) in [("2026-11-30T11:00Z", "10:30"), ("2026-11-30T10:30Z", "11:00")] {
        let mut world = tagged("reveille:keep-until", tag);
        hold(&mut world, Some(ledger));
        ticks(&mut world, "10:00", "11:10");
        assert_eq!(stops(&world), ["11:05 i-a"], "{tag} {ledger}");
    }
}

#[test]
fn a_hold_wakes_nothing() {
    let mut world = fleet("10:00", [node("i-a")]);
    hold(&mut world, Some("12:00"));
    ticks(&mut world, "10:00", "10:30");
    assert_eq!(starts(&world), [""; 0]);
}

#[test]
fn a_hold_between_the_look_and_the_claim_makes_a_decided_stop_lose() {
    let mut world = fleet("10:00", [unused()]);
    tick(&mut world);
    world.set_now(at("10:05"));
    let mut idle = Stepper::new(reveille::run::IdleRun::new(context(&world)));
    idle.run_until(&mut world, "claim");
    hold(&mut world, Some("12:00"));
    let outcome = idle.finish(&mut world);
    assert_eq!((count(&world, "stop"), reason(&outcome, "i-a")), (0, Reason::Held));
}

#[test]
fn a_hold_on_a_node_that_cannot_be_judged_is_no_sight() {
    // A person is told that the node cannot be judged, and holds it: nothing is seen any better.
    let mut world = fleet("10:00", [unused().without_proof_of_life()]);
    ticks(&mut world, "10:00", "10:10");
    assert_eq!(told(&world), ["blind"]);
    hold(&mut world, Some("11:00"));
    ticks(&mut world, "10:15", "10:55");
    assert_eq!(told(&world), ["blind"]);
    let blind = facts(&mut world, "i-a").blind.clone().expect("it is blind still");
    assert_eq!(blind.since, at("10:00"));
}

/// Idle since nine, held until 18:00, and the month's budget is spent at noon.
fn held_and_spent(enforce: Enforce) -> World {
    let mut world = tagged("reveille:keep-until", "2026-11-30T18:00Z");
    let budget = enforcing(enforce, "2.90");
    ticks(&mut world, "10:00", "11:55");
    world.set_now(at("12:00"));
    guard(&mut world, &budget);
    ticks(&mut world, "12:00", "18:10");
    world
}

#[test]
fn case_24_the_hold_beats_the_spent_budget_and_whoever_pays_is_told_so() {
    let world = held_and_spent(Enforce::Stop);
    let told = of_kind(&world, "cannot_stop");
    assert_eq!(told.len(), 1, "once, not each tick");
    let (body, told_at) = (&told[0].body, &told[0].attributes["at"]);
    assert!(told_at.starts_with("2026-11-30T12:00"), "at once: {told_at}");
    assert!(
        body.contains("the budget is spent") && body.contains("a person holds it until 2026-11-30 18:00"),
        "{body}"
    );
    assert!(body.contains("a hold goes before the budget"), "{body}");
}

#[test]
fn case_24_it_is_stopped_when_the_hold_ends_and_never_before() {
    assert_eq!(stops(&held_and_spent(Enforce::Stop)), ["18:05 i-a"]);
}

#[test]
fn case_24_where_the_budget_only_tells_the_hold_is_no_matter_for_it() {
    for enforce in [Enforce::Alert, Enforce::Gate] {
        let world = held_and_spent(enforce);
        assert_eq!(of_kind(&world, "cannot_stop").len(), 0, "{enforce:?}");
        assert_eq!(stops(&world), ["18:05 i-a"], "{enforce:?}");
    }
}

#[test]
fn case_24_without_a_hold_the_stop_by_the_budget_was_told_with_its_reason() {
    let mut world = fleet("10:00", [unused()]);
    request(&mut world, "i-a", "11:50");
    world.set_now(at("12:00"));
    guard(&mut world, &enforcing(Enforce::Stop, "2.90"));
    let outcomes = ticks(&mut world, "12:00", "12:10");
    assert_eq!(stops(&world), ["12:05 i-a"]);
    assert_eq!(reason(&outcomes[1], "i-a"), Reason::Drain);
    let closed =
        of_kind(&world, "budget").into_iter().find(|alert| alert.subject.contains("gate closed")).expect("told");
    assert!(closed.body.contains("each running node is stopped once it has no call"), "{}", closed.body);
}

#[test]
fn case_24_a_call_beats_both() {
    let mut world = tagged("reveille:keep-until", "2026-11-30T12:30Z");
    leased(&mut world, "i-a", "call", "13:00");
    world.set_now(at("12:00"));
    guard(&mut world, &enforcing(Enforce::Stop, "2.90"));
    let outcomes = ticks(&mut world, "12:00", "13:20");
    assert_eq!(reason(&outcomes[0], "i-a"), Reason::Leased);
    assert_eq!(stops(&world), ["13:15 i-a"], "seven quiet minutes from 13:00, first reading at 13:10");
}

#[test]
fn case_25_each_of_the_four_tags_keeps_and_only_what_cannot_be_followed_is_told_once_a_day() {
    let rows = [
        ("REVEILLE:Keep-Until", "TRUE", "holds it without an end"),
        ("reveille:keep-until ", "True ", "holds it without an end"),
        ("keep_awake", "yes", "looks like a hold"),
        ("reveille:keep-until", "until tomorrow", "cannot be read as a time"),
    ];
    for (key, value, what) in rows {
        let mut world = tagged(key, value);
        ticks(&mut world, "10:00", "23:55");
        let told = of_kind(&world, "misconfigured");
        assert_eq!((told.len(), stops(&world)), (1, vec![]), "{key}={value}");
        assert!(told[0].body.contains(what) && told[0].body.contains("the node is kept"), "{}", told[0].body);
        ticks(&mut world, "24:00", "26:00");
        assert_eq!((of_kind(&world, "misconfigured").len(), stops(&world)), (2, vec![]), "{key}={value}: the next day");
    }
}

#[test]
fn case_25_an_end_in_any_case_is_followed_and_not_told() {
    let mut world = tagged("Reveille:KEEP-until", " 2026-11-30t11:00z ");
    ticks(&mut world, "10:00", "11:10");
    assert_eq!((stops(&world), told(&world)), (vec!["11:05 i-a".to_owned()], vec![]));
}

#[test]
fn case_25_a_tag_on_a_sleeping_node_is_told_when_it_runs() {
    let mut seen = node("i-a").seen();
    seen.tags.insert("keep_awake".to_owned(), "yes".to_owned());
    let mut world = fleet("10:00", [node("i-a")]);
    world.add_node(seen);
    ticks(&mut world, "10:00", "10:10");
    assert_eq!(told(&world), [""; 0]);
    prewarm_at(&mut world, "10:11");
    ticks(&mut world, "10:15", "10:20");
    assert_eq!(told(&world), ["misconfigured"]);
}

#[test]
fn a_tag_that_says_no_holds_nothing_and_is_told_to_nobody() {
    let mut world = tagged("reveille:keep-until", "false");
    ticks(&mut world, "10:00", "10:10");
    assert_eq!((stops(&world), told(&world)), (vec!["10:05 i-a".to_owned()], vec![]));
}

// Warm windows.

const NOON: &str = r#"{"from": "11:00", "to": "13:00"}"#;

#[test]
fn a_window_starts_its_node_a_boot_and_a_tick_ahead_and_keeps_it_to_its_end() {
    let mut world = fleet("10:00", [node("i-a")]);
    let outcomes = warm(&[NOON]).ticks(&mut world, "10:00", "14:00");
    assert_eq!((starts(&world), stops(&world)), (vec!["10:55 i-a".to_owned()], vec!["13:05 i-a".to_owned()]));
    assert_eq!(reason(&outcomes[30], "i-a"), Reason::WarmWindow, "at 12:30");
}

#[test]
fn a_window_starts_its_node_earlier_where_boots_were_longer() {
    let rows: [(&[u32], &str); 3] = [
        (&[300, 300], "10:50 i-a"),
        // The median and the spread: nearly every boot is through by then.
        (&[300, 300, 600, 600], "10:45 i-a"),
        (&[30], "10:55 i-a"),
    ];
    for (seconds, started) in rows {
        let mut world = fleet("10:00", [node("i-a")]);
        booted_in(&mut world, "i-a", seconds);
        warm(&[NOON]).ticks(&mut world, "10:00", "11:00");
        assert_eq!(starts(&world), [started], "{seconds:?}");
    }
}

#[test]
fn a_window_keeps_a_node_that_is_up_already_and_starts_no_other() {
    let mut world = fleet("10:50", [node("i-b"), node("i-a").running_since("10:10").ready_since("10:11")]);
    warm(&[NOON]).ticks(&mut world, "10:50", "12:55");
    assert_eq!((starts(&world), stops(&world)), (vec![], vec![]));
}

#[test]
fn a_node_in_use_at_the_end_of_a_window_is_kept_for_its_use() {
    let mut world = fleet("10:00", [node("i-a")]);
    request(&mut world, "i-a", "12:58");
    warm(&[NOON]).ticks(&mut world, "10:00", "14:00");
    assert_eq!(stops(&world), ["13:30 i-a"]);
}

#[test]
fn a_window_for_two_nodes_starts_both_in_one_run() {
    let mut world = fleet("10:00", ["i-a", "i-b", "i-c"].map(node));
    let setup = warm(&[r#"{"from": "11:00", "to": "13:00", "nodes": 2}"#]);
    setup.ticks(&mut world, "10:00", "12:55");
    assert_eq!((starts(&world), stops(&world)), (vec!["10:55 i-a".to_owned(), "10:55 i-b".to_owned()], vec![]));
}

#[test]
fn a_window_for_more_nodes_than_there_are_starts_what_is_there() {
    let mut world = fleet("10:55", ["i-a", "i-b"].map(node));
    let setup = warm(&[r#"{"from": "11:00", "to": "13:00", "nodes": 5}"#]);
    setup.ticks(&mut world, "10:55", "11:10");
    assert_eq!(starts(&world).len(), 2);
}

#[test]
fn a_third_node_beside_a_window_for_two_is_stopped_when_it_is_idle() {
    let up = |word: &str, since: &str| node(word).running_since(since).ready_since("10:20");
    let mut world = fleet("11:00", [up("i-a", "10:10"), up("i-b", "10:00"), up("i-c", "10:05")]);
    let setup = warm(&[r#"{"from": "11:00", "to": "13:00", "nodes": 2}"#]);
    setup.ticks(&mut world, "11:00", "12:00");
    assert_eq!(stops(&world), ["11:05 i-a"], "the oldest two are kept");
}

#[test]
fn a_window_for_one_keeps_the_node_that_is_ready_and_not_the_older_one_that_boots() {
    let boots = node("i-a").running_since("11:59:30");
    let ready = node("i-b").running_since("11:59:40").ready_since("11:59:50");
    let mut world = fleet("12:00", [boots, ready]);
    let outcome = warm(&[NOON]).tick(&mut world);
    assert_eq!(["i-a", "i-b"].map(|node| reason(&outcome, node)), [Reason::BootGrace, Reason::WarmWindow]);
}

#[test]
fn a_node_without_capacity_leaves_the_window_to_the_next() {
    let mut world = fleet("10:55", ["i-a", "i-b"].map(node));
    world.no_capacity(&id("i-a"), true);
    warm(&[NOON]).ticks(&mut world, "10:55", "11:00");
    assert_eq!(starts(&world), ["10:55 i-b"]);
}

/// A node started for the window, and stopped by a person at 11:20.
fn stopped_by_hand() -> World {
    let mut world = fleet("10:50", [node("i-a")]);
    warm(&[NOON]).ticks(&mut world, "10:50", "11:15");
    world.set_now(at("11:20"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    warm(&[NOON]).ticks(&mut world, "11:20", "11:45");
    world
}

#[test]
fn a_stop_by_a_person_within_the_window_is_respected() {
    assert_eq!(starts(&stopped_by_hand()), ["10:55 i-a"]);
}

#[test]
fn a_stop_by_a_person_within_the_window_is_no_reason_to_start_another_node() {
    let mut world = fleet("10:50", ["i-a", "i-b"].map(node));
    warm(&[NOON]).ticks(&mut world, "10:50", "11:15");
    world.stop(&id("i-a"), false).expect("a stop by hand");
    warm(&[NOON]).ticks(&mut world, "11:20", "12:55");
    assert_eq!(starts(&world), ["10:55 i-a"]);
}

#[test]
fn a_stop_by_a_person_of_a_node_that_is_being_made_ready_is_respected_too() {
    let mut world = fleet("10:50", [node("i-a")]);
    warm(&[NOON]).ticks(&mut world, "10:50", "10:55");
    world.set_now(at("10:58"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    warm(&[NOON]).ticks(&mut world, "11:00", "12:55");
    assert_eq!(starts(&world), ["10:55 i-a"]);
}

#[test]
fn a_stop_by_a_person_before_the_window_started_anything_is_no_word_about_it() {
    let mut world = fleet("10:50", [node("i-a").running_since("10:30").ready_since("10:31")]);
    world.set_now(at("10:54:10"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    warm(&[NOON]).ticks(&mut world, "10:55", "11:05");
    assert_eq!(starts(&world), ["10:55 i-a"]);
}

#[test]
fn a_wake_after_a_stop_by_a_person_starts_the_node_within_the_window() {
    let mut world = stopped_by_hand();
    world.set_now(at("11:46"));
    warm(&[NOON]).prewarm(&mut world);
    warm(&[NOON]).ticks(&mut world, "11:50", "12:55");
    assert_eq!((starts(&world).len(), state(&world, "i-a")), (2, NodeState::Running), "and the window keeps it again");
}

#[test]
fn a_stop_by_a_person_holds_for_this_opening_and_not_for_the_next_day() {
    let mut world = stopped_by_hand();
    prove_life(&mut world, "i-a", "30:00", "60:00");
    warm(&[NOON]).ticks(&mut world, "34:50", "35:05");
    assert_eq!(starts(&world).len(), 2);
}

#[test]
fn a_call_starts_a_node_that_a_person_stopped_within_the_window() {
    let mut world = stopped_by_hand();
    let setup = warm(&[NOON]).with(|setup| setup.pool.rules.leased = true);
    setup.put(&mut world, "call");
    assert_eq!(starts(&world).len(), 2);
}

#[test]
fn a_closed_gate_keeps_the_window_s_nodes_and_starts_none() {
    let mut world = fleet("10:50", [node("i-a").running_since("10:00").ready_since("10:01"), node("i-b")]);
    close_gate(&mut world, "10:45", true);
    let setup = warm(&[r#"{"from": "11:00", "to": "13:00", "nodes": 2}"#]);
    setup.ticks(&mut world, "10:55", "12:55");
    assert_eq!((starts(&world), stops(&world)), (vec![], vec![]));
    let told = of_kind(&world, "cannot_stop");
    assert_eq!(told.len(), 1);
    assert!(told[0].body.contains("a window goes before the budget; none is started"), "{}", told[0].body);
}

#[test]
fn a_drained_node_is_stopped_when_its_window_ends() {
    let mut world = fleet("10:50", [node("i-a").running_since("10:00").ready_since("10:01")]);
    close_gate(&mut world, "10:45", true);
    warm(&[NOON]).ticks(&mut world, "10:55", "13:10");
    assert_eq!(stops(&world), ["13:05 i-a"]);
}

#[test]
fn two_windows_want_the_larger_number_and_not_the_sum() {
    let mut world = fleet("10:55", ["i-a", "i-b", "i-c"].map(node));
    let setup = warm(&[NOON, r#"{"from": "11:00", "to": "12:00", "nodes": 2}"#]);
    setup.ticks(&mut world, "10:55", "12:55");
    assert_eq!((starts(&world).len(), stops(&world).len()), (2, 1), "{:?}", world.effects);
}

#[test]
fn case_26_weekday_and_hour_are_those_of_the_window_s_zone() {
    let new_york = r#"{"days": ["mon-fri"], "from": "02:00", "to": "06:00", "zone": "America/New_York"}"#;
    // 30 November 2026 is a Monday. Clocks are of UTC, hours above 23 are later days.
    let rows = [
        ("Monday 02:30 in New York", new_york, "07:30", true),
        ("Friday 23:30 in New York", new_york, "124:30", false),
        ("Saturday 02:30 in New York", new_york, "127:30", false),
        ("Monday 01:50 in New York", new_york, "06:50", false),
        (
            "Monday 23:00 UTC is Tuesday 04:30 in Kolkata",
            r#"{"days": ["tue"], "from": "04:00", "to": "06:00", "zone": "Asia/Kolkata"}"#,
            "23:00",
            true,
        ),
        (
            "Monday 18:00 UTC is Tuesday 07:00 in Auckland",
            r#"{"days": ["tue"], "from": "07:00", "to": "09:00", "zone": "Pacific/Auckland"}"#,
            "18:00",
            true,
        ),
    ];
    for (name, window, now, is_warm) in rows {
        let mut world = fleet(now, [node("i-a")]);
        warm(&[window]).tick(&mut world);
        assert_eq!(starts(&world).len(), usize::from(is_warm), "{name}");
    }
}

/// A stopped node at an instant of any year, its past far behind.
fn asleep_on(text: &str) -> World {
    let now = support_money::on(text);
    let mut seen = node("i-a").seen();
    (seen.launched_at, seen.transition_at) =
        (Some(now - chrono::TimeDelta::days(9)), Some(now - chrono::TimeDelta::days(8)));
    support_money::world_at(now, [seen])
}

/// Ticks each five minutes for so many, and the starts since.
fn starts_in(setup: &Setup, world: &mut World, ticks: i64) -> Vec<String> {
    let begin = world.now();
    for n in 0..=ticks {
        world.set_now(begin + minutes(5 * n));
        setup.tick(world);
    }
    starts(world)
}

#[test]
fn case_27_a_window_that_begins_in_the_gap_begins_after_it() {
    // 02:30 does not exist on this night: it is 03:00, which is 07:00 in UTC.
    let setup = warm(&[r#"{"from": "02:30", "to": "05:00", "zone": "America/New_York"}"#]);
    let mut world = asleep_on("2027-03-14 06:00");
    assert_eq!(starts_in(&setup, &mut world, 12), ["06:55 i-a"]);
}

#[test]
fn case_27_a_window_of_a_time_that_comes_twice_opens_once() {
    // 02:30 is at 00:30 and again at 01:30 in UTC.
    let setup = warm(&[r#"{"from": "02:30", "to": "02:45", "zone": "Europe/Berlin"}"#]);
    let mut world = asleep_on("2026-10-25 00:00");
    assert_eq!(starts_in(&setup, &mut world, 36), ["00:25 i-a"]);
}

#[test]
fn case_27_every_tick_of_a_night_on_which_clocks_move_is_decided() {
    let zones = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"];
    for zone in zones {
        for date in ["2026-10-03 12:00", "2026-10-24 12:00", "2026-10-31 12:00", "2027-03-13 12:00", "2027-03-27 12:00"]
        {
            let window = format!(r#"{{"from": "02:30", "to": "02:15", "zone": "{zone}"}}"#);
            let mut world = asleep_on(date);
            starts_in(&warm(&[&window]), &mut world, 288);
            assert_eq!(state(&world, "i-a"), NodeState::Running, "{zone} {date}");
        }
    }
}

// The end of a pre-warm.

fn quarter_of_an_hour() -> Setup {
    let policy = Policy { prewarm: minutes(15), ..Policy::default() };
    Setup { policy, pool: PoolPolicy { rules: PoolRules::default(), ..signals().into() } }
}

/// A pre-warm or another wake at ten, and what comes next.
fn woken(source: WakeSource, next: impl Fn(&mut World)) -> World {
    let mut world = fleet("10:00", [node("i-a")]);
    quarter_of_an_hour().wake(&mut world, WakeWish::new(Target::Pool(voice()), source));
    next(&mut world);
    quarter_of_an_hour().ticks(&mut world, "10:05", "11:30");
    world
}

#[test]
fn a_prewarm_that_leads_to_no_call_expires_through_ticks() {
    // Seen ready by the tick of 10:05.
    assert_eq!(stops(&woken(WakeSource::Prewarm, |_| {})), ["10:20 i-a"]);
}

#[test]
fn a_log_line_keeps_its_node_for_the_idle_time() {
    assert_eq!(stops(&woken(WakeSource::LogLine, |_| {})), ["10:35 i-a"]);
}

#[test]
fn a_call_that_gave_up_keeps_its_node_for_the_idle_time() {
    assert_eq!(stops(&woken(WakeSource::Call, |_| {})), ["10:35 i-a"]);
}

#[test]
fn a_request_after_the_prewarm_keeps_the_node_for_the_idle_time() {
    assert_eq!(stops(&woken(WakeSource::Prewarm, |world| request(world, "i-a", "10:10"))), ["10:45 i-a"]);
}

#[test]
fn a_lease_after_the_prewarm_keeps_the_node_for_the_idle_time() {
    assert_eq!(stops(&woken(WakeSource::Prewarm, |world| leased(world, "i-a", "call", "10:12"))), ["10:45 i-a"]);
}

#[test]
fn a_prewarm_of_a_node_that_runs_keeps_it_no_longer_than_its_own_time() {
    let mut world = fleet("10:00", [unused()]);
    quarter_of_an_hour().prewarm(&mut world);
    quarter_of_an_hour().ticks(&mut world, "10:00", "10:30");
    assert_eq!(stops(&world), ["10:15 i-a"]);
}

#[test]
fn a_prewarm_does_not_shorten_what_a_request_has_given() {
    let mut world = fleet("10:00", [unused()]);
    request(&mut world, "i-a", "09:59");
    quarter_of_an_hour().prewarm(&mut world);
    quarter_of_an_hour().ticks(&mut world, "10:00", "10:45");
    assert_eq!(stops(&world), ["10:30 i-a"]);
}
