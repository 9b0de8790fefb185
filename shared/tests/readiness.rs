//! Readiness by what a pool is configured to believe, what boots teach, and beats as a signal of use.

mod support;
mod support_rules;

use reveille::decide::Reason;
use reveille::domain::{Beat, NodeState, Phase, ReadyFact, Wake, WakeSource};
use reveille::observation::Unread;
use reveille::policy::PoolRules;
use reveille::run::{EffectKind, Outcome, PoolAnswer};
use reveille::world::World;
use support::*;
use support_rules::*;

/// Launched at 09:50, and never seen ready.
fn booting() -> Node {
    node("i-a").running_since("09:50")
}

fn is_ready(answer: &PoolAnswer) -> bool {
    answer.reason == Reason::AlreadyReady
}

fn effects_of(outcome: &Outcome, kind: EffectKind) -> usize {
    outcome.effects.iter().filter(|effect| effect.event == kind).count()
}

/// All three who look agree: a status look, a caller, and a tick's fact.
fn all_say(setup: &Setup, world: &World) -> bool {
    let (mut one, mut two, mut three) = (world.clone(), world.clone(), world.clone());
    let status = is_ready(&setup.status(&mut one));
    let caller = is_ready(&only_answer(&setup.prewarm(&mut two)));
    setup.tick(&mut three);
    let launched_at = three.node(&id("i-a")).expect("a node").launched_at;
    let tick = facts(&mut three, "i-a").is_ready(launched_at);
    assert_eq!((status, caller), (tick, tick), "status, caller and tick differ");
    tick
}

// By beats.

#[test]
fn a_beat_makes_a_node_ready_if_it_is_of_now_and_of_this_launch_and_the_row_is_long_enough() {
    let rows = [
        ("two in a row", Some(beat("09:59:30")), true),
        ("three in a row", Some(Beat { row: 3, ..beat("09:59:30") }), true),
        ("the first of a row", Some(Beat { row: 1, ..beat("09:59:30") }), false),
        ("not ready", Some(unready("09:59:30")), false),
        ("not ready, with a row of before", Some(Beat { row: 2, ..unready("09:59:30") }), false),
        ("no beat", None, false),
        ("three minutes old", Some(beat("09:57")), true),
        ("a second older than three minutes", Some(beat("09:56:59")), false),
        ("half a minute ahead", Some(beat("10:00:30")), true),
        ("more than half a minute ahead", Some(beat("10:00:31")), false),
    ];
    for (name, newest, ready) in rows {
        let mut world = fleet("10:00", [booting()]);
        newest.into_iter().for_each(|beat| beats(&mut world, "i-a", beat));
        assert_eq!(all_say(&ready_by_beat(), &world), ready, "{name}");
    }
}

#[test]
fn a_beat_of_an_earlier_launch_makes_no_node_ready() {
    let rows = [("a second before the launch", "09:58:59", false), ("at the launch", "09:59", true)];
    for (name, clock, ready) in rows {
        let mut world = fleet("10:00", [node("i-a").running_since("09:59")]);
        beats(&mut world, "i-a", beat(clock));
        assert_eq!(all_say(&ready_by_beat(), &world), ready, "{name}");
    }
}

#[test]
fn a_beat_of_another_node_says_nothing() {
    let mut world = fleet("10:00", [booting()]);
    beats(&mut world, "i-b", beat("09:59:30"));
    assert!(!all_say(&ready_by_beat(), &world));
}

#[test]
fn beats_that_cannot_be_read_change_nothing() {
    let rows = [("known to be ready", booting().ready_since("09:52"), true), ("not known", booting(), false)];
    for (name, node, ready) in rows {
        let mut world = fleet("10:00", [node]);
        beats(&mut world, "i-a", beat("09:59:30"));
        let before = item(&mut world).nodes.get(&id("i-a")).and_then(|node| node.ready.clone());
        fail(&mut world, "beats", "RequestLimitExceeded");
        let outcome = ready_by_beat().tick(&mut world);
        assert_eq!((facts(&mut world, "i-a").ready.clone(), outcome.failed.len()), (before, 1), "{name}");
        fail(&mut world, "beats", "RequestLimitExceeded");
        assert_eq!(is_ready(&ready_by_beat().status(&mut world)), ready, "{name}");
    }
}

/// Ready at 09:52, and its beat of 10:04:30 says that it is not.
fn lost() -> World {
    let mut world = fleet("10:05", [booting().ready_since("09:52")]);
    beats(&mut world, "i-a", unready("10:04:30"));
    world
}

#[test]
fn a_node_that_is_not_ready_any_more_is_taken_back_whoever_looks() {
    assert!(!all_say(&ready_by_beat(), &lost()));
    assert_eq!(ready_by_beat().status(&mut lost()).phase, Some(Phase::Starting));
    assert_eq!(ready_by_beat().put(&mut lost(), "call").answers[0].reason, Reason::AlreadyStarting);
}

#[test]
fn when_readiness_was_lost_is_kept_and_told_once() {
    let mut world = lost();
    let first = ready_by_beat().tick(&mut world);
    world.set_now(at("10:07"));
    beats(&mut world, "i-a", unready("10:06:30"));
    let second = ready_by_beat().tick(&mut world);
    let fact = ReadyFact { at: at("09:52"), launched_at: Some(at("09:50")), lost_at: Some(at("10:05")) };
    assert_eq!(facts(&mut world, "i-a").ready, Some(fact));
    assert_eq!((effects_of(&first, EffectKind::Unready), effects_of(&second, EffectKind::Unready)), (1, 0));
}

#[test]
fn a_node_that_is_ready_again_has_its_first_readiness_and_teaches_no_boot() {
    let mut world = lost();
    ready_by_beat().tick(&mut world);
    beats(&mut world, "i-a", beat("10:09:30"));
    world.set_now(at("10:10"));
    let outcome = ready_by_beat().tick(&mut world);
    let fact = ReadyFact { at: at("09:52"), launched_at: Some(at("09:50")), lost_at: None };
    assert_eq!((facts(&mut world, "i-a").ready.clone(), facts(&mut world, "i-a").boots.clone()), (Some(fact), None));
    assert_eq!((effects_of(&outcome, EffectKind::Ready), outcome.cold_starts), (1, vec![]));
}

#[test]
fn what_a_caller_s_run_sees_of_readiness_is_written_down_and_its_decision_too() {
    let mut world = fleet("10:00", [booting()]);
    beats(&mut world, "i-a", beat("09:59:30"));
    let outcome = ready_by_beat().prewarm(&mut world);
    assert!(facts(&mut world, "i-a").is_ready(Some(at("09:50"))));
    let lines: Vec<_> =
        outcome.decided.iter().map(|line| (line.node.clone(), line.action.as_str(), line.reason)).collect();
    assert_eq!(lines, [(Some(id("i-a")), "nothing", Reason::AlreadyReady)]);
}

#[test]
fn a_status_look_writes_no_readiness_down() {
    let mut world = lost();
    let before = item(&mut world);
    ready_by_beat().status(&mut world);
    assert_eq!(item(&mut world), before);
}

#[test]
fn a_call_in_progress_keeps_a_node_that_is_not_ready_any_more() {
    let mut world = lost();
    leased(&mut world, "i-a", "call", "12:00");
    facts(&mut world, "i-a").leases.values_mut().for_each(|lease| lease.at = at("09:52"));
    let setup = calls_per_node(4).with(|setup| setup.pool.rules.ready = ready_by_beat().pool.rules.ready);
    assert_eq!(held_on(&setup.put(&mut world, "call")), "i-a");
    assert_eq!(setup.put(&mut world, "new").answers[0].reason, Reason::AlreadyStarting);
}

// By healthy hosts.

#[test]
fn one_node_is_ready_when_the_load_balancer_counts_one() {
    let rows = [
        ("one in the newest minute", vec![("09:58", 0.0), ("09:59", 1.0)], true),
        ("none in the newest minute", vec![("09:58", 1.0), ("09:59", 0.0)], false),
        ("one, four minutes ago", vec![("09:56", 1.0)], true),
        ("one, five minutes ago", vec![("09:55", 1.0)], false),
        ("no data", vec![], false),
    ];
    for (name, points, ready) in rows {
        let mut world = fleet("10:00", [booting()]);
        points.into_iter().for_each(|(clock, hosts)| healthy(&mut world, clock, hosts));
        assert_eq!(all_say(&ready_by_hosts(), &world), ready, "{name}");
    }
}

#[test]
fn a_count_from_before_the_launch_is_of_another_node() {
    let mut world = fleet("10:00", [node("i-a").running_since("09:59:10")]);
    healthy(&mut world, "09:59", 1.0);
    assert!(!all_say(&ready_by_hosts(), &world));
}

#[test]
fn of_two_nodes_those_are_ready_that_the_count_can_only_mean() {
    let a = || node("i-a").running_since("09:00");
    let b = || node("i-b").running_since("09:50");
    let rows = [
        ("two of two", a(), 2.0, (true, true)),
        ("one of two, neither known", a(), 1.0, (false, false)),
        ("one of two, the older known to be ready", a().ready_since("09:02"), 1.0, (true, false)),
        ("none of two, the older known to be ready", a().ready_since("09:02"), 0.0, (false, false)),
    ];
    for (name, a, hosts, ready) in rows {
        let mut world = fleet("10:00", [a, b()]);
        healthy(&mut world, "09:59", hosts);
        ready_by_hosts().tick(&mut world);
        let of = |world: &mut World, node: &str, launched: &str| facts(world, node).is_ready(Some(at(launched)));
        assert_eq!((of(&mut world, "i-a", "09:00"), of(&mut world, "i-b", "09:50")), ready, "{name}");
    }
}

#[test]
fn a_node_is_ready_since_the_first_minute_of_its_launch_from_which_on_the_count_means_it() {
    let rows = [
        (
            "it came and went before",
            "09:50",
            vec![("09:53", 1.0), ("09:54", 0.0), ("09:56", 1.0), ("09:57", 1.0)],
            "09:56",
        ),
        (
            "another was counted before the launch",
            "09:55:30",
            vec![("09:55", 1.0), ("09:56", 1.0), ("09:57", 1.0)],
            "09:56",
        ),
    ];
    for (name, launched, points, since) in rows {
        let mut world = fleet("10:00", [node("i-a").running_since(launched)]);
        points.into_iter().for_each(|(clock, hosts)| healthy(&mut world, clock, hosts));
        ready_by_hosts().tick(&mut world);
        assert_eq!(facts(&mut world, "i-a").ready.clone().map(|ready| ready.at), Some(at(since)), "{name}");
    }
}

#[test]
fn a_node_that_the_count_leaves_out_for_sure_is_not_ready_and_one_that_it_may_mean_is_unknown() {
    let [older, late] = [("i-a", "09:00"), ("i-b", "09:45")].map(|(word, launched)| node(word).running_since(launched));
    let mut world = fleet("10:00", [late.clone()]);
    healthy(&mut world, "09:59", 0.0);
    assert_eq!(reason(&ready_by_hosts().tick(&mut world), "i-b"), Reason::NeverReady, "none is counted");

    let mut world = fleet("10:00", [older.clone(), late.clone()]);
    healthy(&mut world, "09:59", 1.0);
    assert_eq!(reason(&ready_by_hosts().tick(&mut world), "i-b"), Reason::RecentStart, "one of two, and it may be it");

    let mut world = fleet("10:00", [older.ready_since("09:02"), late.ready_since("09:46")]);
    facts(&mut world, "i-b").ready.as_mut().expect("readiness").lost_at = Some(at("09:48"));
    healthy(&mut world, "09:59", 1.0);
    ready_by_hosts().tick(&mut world);
    assert_eq!(told(&world), ["not_ready"], "it was lost, the other was not, and one is counted");
}

#[test]
fn a_sleeping_node_of_the_pool_need_not_be_counted() {
    let mut world = fleet("10:00", [booting(), node("i-b")]);
    healthy(&mut world, "09:59", 1.0);
    assert!(all_say(&ready_by_hosts(), &world));
}

#[test]
fn a_count_without_data_takes_no_readiness_back() {
    let world = fleet("10:00", [booting().ready_since("09:52")]);
    assert!(all_say(&ready_by_hosts(), &world));
}

// By status checks.

#[test]
fn by_checks_a_node_is_ready_once_they_pass() {
    for (clock, ready) in [("09:50:59", false), ("09:51", true)] {
        let world = fleet(clock, [booting()]);
        assert_eq!(all_say(&setup(PoolRules::default()), &world), ready, "{clock}");
    }
}

#[test]
fn checks_that_cannot_be_read_change_nothing() {
    for (node, ready) in [(booting().ready_since("09:52"), true), (booting(), false)] {
        let mut world = fleet("10:00", [node]);
        fail(&mut world, "readiness", "RequestLimitExceeded");
        assert_eq!(is_ready(&only_answer(&prewarm(&mut world))), ready);
    }
}

// What boots teach.

fn boots(world: &mut World, node: &str) -> Vec<u32> {
    facts(world, node).boots.clone().map(|boots| boots.seconds).unwrap_or_default()
}

fn cold_starts(outcome: &Outcome) -> Vec<i64> {
    outcome.cold_starts.iter().map(|start| start.seconds).collect()
}

#[test]
fn a_tick_learns_a_boot_from_the_beat_that_says_since_when() {
    let mut world = fleet("09:55", [booting()]);
    beats(&mut world, "i-a", Beat { ready_since: Some(at("09:50:44")), ..beat("09:54:30") });
    let outcome = ready_by_beat().tick(&mut world);
    assert_eq!((boots(&mut world, "i-a"), cold_starts(&outcome)), (vec![44], vec![44]));
    assert_eq!(facts(&mut world, "i-a").ready.as_ref().map(|ready| ready.at), Some(at("09:50:44")));
}

#[test]
fn a_caller_who_may_have_come_long_after_learns_no_boot_by_checks() {
    let mut world = fleet("10:00", [node("i-a")]);
    prewarm(&mut world);
    assert_eq!(
        cold_starts(&prewarm_at(&mut world, "10:01:05")),
        [0; 0],
        "a wake does not say when the one before it was"
    );
    assert_eq!(boots(&mut world, "i-a"), [0; 0]);
    let mut world = fleet("10:00", [node("i-a")]);
    prewarm(&mut world);
    world.set_now(at("10:04:50"));
    let outcome = calls_per_node(4).put(&mut world, "call");
    assert_eq!((cold_starts(&outcome), boots(&mut world, "i-a")), (vec![], vec![]), "the call came minutes later");
}

#[test]
fn a_call_that_was_told_to_wait_a_moment_ago_learns_a_boot_by_checks() {
    let asked = |clocks: &[&str]| {
        let mut world = fleet("10:00", [node("i-a")]);
        let mut learnt = Vec::new();
        for clock in clocks {
            world.set_now(at(clock));
            learnt.extend(cold_starts(&calls_per_node(4).put(&mut world, "call")));
        }
        (learnt, boots(&mut world, "i-a"))
    };
    assert_eq!(asked(&["10:00", "10:00:55", "10:01:05"]), (vec![65], vec![65]));
    assert_eq!(asked(&["10:00", "10:00:55", "10:01:25"]), (vec![85], vec![85]), "half a minute at most");
    assert_eq!(asked(&["10:00", "10:00:55", "10:01:26"]), (vec![], vec![]));
    assert_eq!(asked(&["10:00", "10:01:05"]), (vec![], vec![]), "it last asked more than half a minute ago");
}

#[test]
fn a_tick_learns_no_boot_by_checks_for_it_may_come_minutes_late() {
    let mut world = fleet("10:00", [node("i-a")]);
    prewarm(&mut world);
    let outcome = tick_at(&mut world, "10:05");
    assert_eq!((effects_of(&outcome, EffectKind::Ready), cold_starts(&outcome)), (1, vec![]));
    assert_eq!(boots(&mut world, "i-a"), [0; 0]);
}

#[test]
fn a_status_look_learns_no_boot() {
    let mut world = fleet("10:00", [node("i-a")]);
    prewarm(&mut world);
    world.set_now(at("10:01:05"));
    status(&mut world);
    assert_eq!(boots(&mut world, "i-a"), [0; 0]);
}

#[test]
fn only_the_newest_eight_boots_are_remembered() {
    let mut world = fleet("10:00", [node("i-a")]);
    booted_in(&mut world, "i-a", &[1, 2, 3, 4, 5, 6, 7, 8]);
    for clock in ["10:00", "10:00:55", "10:01:05"] {
        world.set_now(at(clock));
        calls_per_node(4).put(&mut world, "call");
    }
    assert_eq!(boots(&mut world, "i-a"), [2, 3, 4, 5, 6, 7, 8, 65]);
}

#[test]
fn a_boot_is_expected_by_the_node_s_own_then_by_the_pool_s_then_by_the_guess() {
    let rows = [
        ("nothing is known", vec![], vec![], (60, None)),
        ("the other node's boots", vec![], vec![100, 120], (100, Some(20))),
        ("its own boots", vec![44, 55, 50, 300], vec![100], (50, Some(11))),
        ("one of its own", vec![40], vec![100, 120], (40, Some(0))),
    ];
    for (name, own, other, expected) in &rows {
        let mut world = fleet("10:00", [node("i-a"), node("i-b")]);
        for (node, seconds) in [("i-a", own), ("i-b", other)].into_iter().filter(|(_, seconds)| !seconds.is_empty()) {
            booted_in(&mut world, node, seconds);
        }
        let answer = only_answer(&prewarm(&mut world));
        assert_eq!((answer.ready_in_seconds, answer.spread_seconds), (Some(expected.0), expected.1), "{name}");
    }
}

#[test]
fn callers_are_told_when_the_node_is_ready_in_each_phase() {
    let booted = || {
        let mut world = fleet("10:00", [node("i-a")]);
        booted_in(&mut world, "i-a", &[50]);
        world
    };
    let asleep = status(&mut booted());
    assert_eq!((asleep.reason, asleep.ready_in_seconds), (Reason::NotWanted, None), "asleep");
    let mut world = booted();
    let rows = [("10:00", Some(50)), ("10:00:20", Some(30)), ("10:00:46", Some(5)), ("10:00:59", Some(5))];
    for (clock, expected) in rows {
        let answer = only_answer(&prewarm_at(&mut world, clock));
        assert_eq!((answer.reason, answer.ready_in_seconds), (Reason::AlreadyStarting, expected), "{clock}");
    }
    let ready = only_answer(&prewarm_at(&mut world, "10:01"));
    assert_eq!((ready.reason, ready.ready_in_seconds), (Reason::AlreadyReady, Some(0)), "ready");
    world.stop(&id("i-a"), false).expect("a stop by hand");
    let stopping = only_answer(&prewarm_at(&mut world, "10:01:10"));
    // The boots of 50 and 60 seconds have a median of 50.
    assert_eq!((stopping.reason, stopping.ready_in_seconds), (Reason::StoppingWillStart, Some(110)), "stopping");
    let mut refused = booted();
    fail(&mut refused, "start", "VcpuLimitExceeded");
    let answer = only_answer(&prewarm(&mut refused));
    assert_eq!((answer.reason, answer.ready_in_seconds), (Reason::CoolingDown, None), "refused");
}

#[test]
fn what_is_told_of_a_node_that_nobody_woke() {
    let rows = [
        ("it boots, started by hand", node("i-a").running_since("09:59:30"), "10:00", Reason::AlreadyStarting),
        ("it was started by hand and never becomes ready", booting(), "10:00", Reason::NotWanted),
        ("it sleeps", node("i-a"), "10:00", Reason::NotWanted),
    ];
    for (name, node, clock, told) in rows {
        let mut world = fleet(clock, [node]);
        beats(&mut world, "i-a", unready("09:59:50"));
        assert_eq!(ready_by_beat().status(&mut world).reason, told, "{name}");
    }
}

#[test]
fn a_status_look_at_a_wake_that_is_not_met_yet_says_that_it_stands() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.record(&voice()).wake = Some(Wake::new(at("09:59"), WakeSource::Prewarm));
    assert_eq!(status(&mut world).reason, Reason::Wanted);
}

#[test]
fn a_wake_of_a_node_that_is_not_there_names_it() {
    let mut world = fleet("10:00", [node("i-a")]);
    assert_eq!(prewarm_nodes(&mut world, &["gpu-9"]).not_found, Some("gpu-9".to_owned()));
}

#[test]
fn the_time_since_the_start_counts_where_the_describe_does_not_show_it_yet() {
    let mut world = fleet("10:00", [node("i-a")]);
    lose_answer(&mut world, "start");
    prewarm(&mut world);
    assert_eq!(only_answer(&prewarm_at(&mut world, "10:00:20")).ready_in_seconds, Some(40));
}

// Beats as the only signal of use.

/// Up since nine, ready, and its newest beat of a minute ago; every minute since the launch is proved.
fn beating(now: &str, change: impl Fn(Beat) -> Beat) -> World {
    let mut world = fleet(now, [node("i-a").running_since("09:00").ready_since("09:01").without_proof_of_life()]);
    beating_on(&mut world, &change);
    world
}

/// The beat of half a minute ago.
fn beating_on(world: &mut World, change: impl Fn(Beat) -> Beat) {
    let at = world.now() - seconds(30);
    let newest = Beat {
        at,
        ready_since: Some(support::at("09:01")),
        since: Some(support::at("09:00:30")),
        row: 50,
        ..beat("09:00")
    };
    beats(world, "i-a", change(newest));
}

#[test]
fn a_node_whose_beats_prove_silence_is_stopped() {
    let mut world = beating("10:00", |beat| beat);
    beats_alone().ticks_after(&mut world, "10:00", "10:10", |world| beating_on(world, |beat| beat));
    assert_eq!(stops(&world), ["10:05 i-a"]);
}

#[test]
fn case_14_a_stream_that_the_beats_show_open_is_no_silence() {
    // One request at 09:00 and none until 09:45, one connection all the time; then nothing.
    let mut world = fleet("08:50", [node("i-a").running_since("08:50").ready_since("08:51").without_proof_of_life()]);
    let newest = |world: &mut World| {
        let now = world.now() - seconds(30);
        let open = now < at("09:45");
        let open_at = Some(now.min(at("09:44:30")));
        let since = Some(at("08:50:30"));
        let newest = Beat {
            at: now,
            open: Some(u32::from(open)),
            open_at,
            used_at: Some(at("09:00:30")),
            since,
            ..beat("09:00")
        };
        beats(world, "i-a", newest);
    };
    let outcomes = beats_alone().ticks_after(&mut world, "09:05", "10:30", newest);
    assert_eq!(reason(&outcomes[7], "i-a"), Reason::OpenCall, "at 09:40");
    assert_eq!(stops(&world), ["10:15 i-a"]);
}

#[test]
fn a_connection_that_closed_between_two_ticks_is_use() {
    let mut world = beating("10:00", |beat| Beat { open_at: Some(at("09:52:10")), ..beat });
    let outcome = beats_alone().tick(&mut world);
    assert_eq!(reason(&outcome, "i-a"), Reason::RecentUse);
    assert_eq!(line(&outcome, "i-a").inputs["last_use_at"], "2026-11-30T09:53:00Z");
}

#[test]
fn beats_that_are_not_complete_prove_no_silence_and_still_show_use() {
    let incomplete = |beat| Beat { since: None, ..beat };
    let rows = [
        ("nothing seen", incomplete(beat("10:00")), Reason::SignalsUnknown, Some(Unread::Partial)),
        (
            "a request a while ago",
            Beat { used_at: Some(at("09:50")), ..incomplete(beat("10:00")) },
            Reason::RecentUse,
            None,
        ),
        (
            "a connection open now",
            Beat { open_at: Some(at("09:59:30")), ..incomplete(beat("10:00")) },
            Reason::OpenCall,
            None,
        ),
    ];
    for (name, row, expected, why) in rows {
        let mut world = beating("10:00", |known| Beat { at: known.at, ..row.clone() });
        let outcome = beats_alone().tick(&mut world);
        assert_eq!(reason(&outcome, "i-a"), expected, "{name}");
        let unknown = serde_json::to_value(why).expect("a word");
        assert_eq!(line(&outcome, "i-a").inputs["unknown"], unknown, "{name}");
    }
}

#[test]
fn silence_is_proved_from_the_first_complete_beat_on_and_not_before() {
    let since = |clock: &'static str| move |beat| Beat { since: Some(at(clock)), ..beat };
    let mut world = beating("10:00", since("09:40"));
    beats_alone().ticks_after(&mut world, "10:00", "10:20", |world| beating_on(world, since("09:40")));
    assert_eq!(stops(&world), ["10:10 i-a"], "half an hour from 09:40");
}

#[test]
fn a_node_whose_beats_stop_is_kept_and_told() {
    let mut world = beating("10:00", |beat| beat);
    let outcomes = beats_alone().ticks(&mut world, "10:00", "12:00");
    assert_eq!(reason(&outcomes[1], "i-a"), Reason::SignalsUnknown);
    assert_eq!((stops(&world), state(&world, "i-a")), (vec![], NodeState::Running));
    assert_eq!(told(&world), ["blind", "blind"], "after three ticks, and after an hour");
    assert!(world.published[0].attributes["at"].starts_with("2026-11-30T10:15"), "{:?}", world.published[0]);
}

#[test]
fn a_node_whose_beats_never_came_is_kept_and_told_twice() {
    // Neither readiness nor use is known to anybody: it may be in use, and a person has to look.
    let mut world = fleet("10:00", [node("i-a").running_since("09:45").without_proof_of_life()]);
    beats_alone().ticks(&mut world, "10:00", "10:20");
    assert_eq!((stops(&world), told(&world)), (vec![], vec!["not_ready", "blind"]));
}

#[test]
fn a_clock_that_is_ahead_proves_nothing() {
    let mut world = beating("10:00", |beat| Beat { at: at("10:02"), ..beat });
    assert_eq!(reason(&beats_alone().tick(&mut world), "i-a"), Reason::SignalsUnknown);
}

#[test]
fn beats_that_cannot_be_read_are_a_failed_call_and_not_a_silent_node() {
    let mut world = fleet("10:00", [unused()]);
    fail(&mut world, "beats", "RequestLimitExceeded");
    let outcome = beats_alone().tick(&mut world);
    assert_eq!(line(&outcome, "i-a").inputs["unknown"], "failed");
}

#[test]
fn beats_that_cannot_be_read_keep_the_node() {
    let mut world = beating("10:00", |beat| beat);
    beats_alone().tick(&mut world);
    world.set_now(at("10:05"));
    beating_on(&mut world, |beat| beat);
    fail(&mut world, "beats", "RequestLimitExceeded");
    let outcome = beats_alone().tick(&mut world);
    assert_eq!((reason(&outcome, "i-a"), stops(&world)), (Reason::SignalsUnknown, vec![]));
}

#[test]
fn beats_that_cannot_be_read_hold_up_no_node_whose_use_they_do_not_show() {
    let mut world = fleet("10:00", [unused()]);
    for clock in ["10:00", "10:05"] {
        fail(&mut world, "beats", "RequestLimitExceeded");
        ready_by_beat().tick_at(&mut world, clock);
    }
    assert_eq!(world.node(&id("i-a")).map(|seen| seen.state), Some(NodeState::Stopping));
}
