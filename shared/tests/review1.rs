//! Calls, wakes and windows that meet: what one of them wants is never laid at another's door, and never cut by it.

mod support;
mod support_rules;

use reveille::domain::{Hold, NodeState, Wake, WakeSource};
use reveille::policy::MOST_WAITING;
use reveille::run::{Call, LeaseAnswer, LeaseWish, Target};
use reveille::world::World;
use support::*;
use support_rules::*;

/// Up since nine and ready.
fn up(word: &str) -> Node {
    node(word).running_since("09:00").ready_since("09:01")
}

fn four() -> Setup {
    calls_per_node(4)
}

fn long(id: &str) -> LeaseWish {
    LeaseWish { lasts: Some(minutes(60)), ..put(id) }
}

// Launches for calls are no noise of the log.

#[test]
fn spare_nodes_for_calls_that_nobody_used_do_not_make_the_log_noisy() {
    let setup = four().with(|setup| setup.pool.rules.fill_percent = 75);
    let mut world = fleet("09:50", [up("i-a"), node("i-b")]);
    world.record(&voice()).line_wake = Some(Wake::new(at("09:00"), WakeSource::LogLine));
    let hold = Hold { until: at("17:00"), note: "the day".to_owned(), since: at("09:00") };
    facts(&mut world, "i-a").hold = Some(hold);
    for cycle in 0..8 {
        for call in 1..=4 {
            let until = at("10:10") + minutes(55 * cycle);
            leased(&mut world, "i-a", &format!("call-{call}"), &clock(until));
        }
        let from = at("10:00") + minutes(55 * cycle);
        setup.ticks(&mut world, &clock(from), &clock(from + minutes(50)));
    }
    assert_eq!(starts(&world).len(), 8, "a spare node each time: {:?}", world.effects);
    setup.ticks(&mut world, "17:20", "18:30");
    assert_eq!((state(&world, "i-a"), state(&world, "i-b")), (NodeState::Stopped, NodeState::Stopped));
    setup.log_line(&mut world);
    assert_eq!(starts(&world).len(), 9, "the line of a person who waits");
    assert!(!told(&world).contains(&"noise_wakes"), "{:?}", told(&world));
}

// Readiness by healthy hosts.

#[test]
fn a_node_in_use_is_not_stopped_because_a_full_one_beside_it_fails_the_health_check() {
    // One healthy host of two: it may be either.
    let mut world = fleet("09:55", [up("i-a"), node("i-b").running_since("09:45")]);
    leased(&mut world, "i-a", "long", "12:00");
    for minute in 0..90 {
        let clock = clock(at("09:30") + minutes(minute));
        healthy(&mut world, &clock, 1.0);
        request(&mut world, "i-b", &clock);
    }
    ready_by_hosts().ticks(&mut world, "09:55", "10:40");
    assert_eq!(stops(&world), [""; 0]);
}

#[test]
fn a_count_of_hosts_for_each_node_speaks_of_that_node() {
    let setup = ready_by_hosts().with(|setup| setup.pool.healthy_hosts = Some(alive_metric("{node}")));
    let mut world = fleet("10:00", ["i-a", "i-b"].map(|word| node(word).running_since("09:50")));
    setup.tick(&mut world);
    for word in ["i-a", "i-b"] {
        assert!(facts(&mut world, word).is_ready(Some(at("09:50"))), "{word}");
    }
}

// Leases.

#[test]
fn a_lease_of_before_the_nodes_launch_is_over() {
    let mut world = fleet("10:00", [up("i-a")]);
    assert_eq!(held_on(&four().lease(&mut world, long("call"))), "i-a");
    world.stop(&id("i-a"), false).expect("a stop by hand");
    world.set_now(at("10:02"));
    four().prewarm(&mut world);
    for (clock, what) in [("10:02:30", "while it boots"), ("10:04", "once it is ready")] {
        world.set_now(at(clock));
        for wish in [put("call"), renew("call")] {
            assert_eq!(four().lease(&mut world, wish).lease, Some(LeaseAnswer::Ended), "{what}");
        }
    }
}

#[test]
fn renewals_on_one_node_do_not_keep_another_from_being_stopped() {
    let mut world = fleet("10:00", [up("i-a"), up("i-b")]);
    for call in 1..=4 {
        leased(&mut world, "i-a", &format!("call-{call}"), "12:00");
    }
    for tick in 0..8 {
        past_ten(&mut world, 5 * tick);
        let mut idle = Stepper::new(four().idle_run(&world));
        while let Some(call) = idle.peek().cloned() {
            if matches!(call, Call::Claim { .. }) {
                let renewed = LeaseWish { renews: true, ..long("call-1") };
                assert_eq!(held_on(&four().lease(&mut world, renewed)), "i-a");
            }
            idle.step(&mut world);
        }
    }
    assert_eq!(stops(&world), ["10:05 i-b"], "many calls renew between any look and its claim");
}

#[test]
fn a_renewal_on_the_same_node_makes_its_stop_lose() {
    let mut world = fleet("10:00", [up("i-a")]);
    leased(&mut world, "i-a", "call", "11:00");
    let mut ahead = four().context(&world);
    ahead.now = at("11:40");
    facts(&mut world, "i-a").mark = Some(reveille::domain::Mark { at: at("11:31"), launched_at: Some(at("09:00")) });
    let mut idle = Stepper::new(reveille::run::IdleRun::new(ahead));
    idle.run_until(&mut world, "claim");
    let renewed = LeaseWish { lasts: Some(minutes(120)), ..renew("call") };
    assert_eq!(held_on(&four().lease(&mut world, renewed)), "i-a");
    idle.finish(&mut world);
    assert_eq!(count(&world, "stop"), 0);
}

#[test]
fn a_call_that_waits_for_a_named_node_wants_no_other() {
    let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
    for call in 1..=4 {
        leased(&mut world, "i-a", &format!("call-{call}"), "12:00");
    }
    let named = LeaseWish { target: Some(Target::Node("i-a".to_owned())), ..put("named") };
    for minute in 0..10 {
        past_ten(&mut world, minute);
        four().lease(&mut world, named.clone());
        if minute % 5 == 0 {
            four().tick(&mut world);
        }
    }
    assert_eq!((starts(&world), waiting(&mut world)), (vec![], vec![]));
}

#[test]
fn one_write_clears_away_no_more_waits_than_an_expression_can_name() {
    let mut world = fleet("10:00", [node("i-a")]);
    for n in 0..1000 {
        world.record(&voice()).waiting.insert(lease_id(&format!("gone-{n}")), at("09:00"));
    }
    let mut run = Stepper::new(four().lease_run(&world, put("call")));
    run.run_until(&mut world, "demand");
    match run.peek() {
        Some(Call::RecordDemand { waiting, .. }) => assert!(waiting.over.len() <= MOST_WAITING, "4 KB is the limit"),
        other => panic!("{other:?}"),
    }
    assert_eq!(run.finish(&mut world).blind, None);
}

// Readiness that was lost.

/// Ready at nine, and from half past nine on not any more.
fn lost_for_long() -> World {
    let mut world = fleet("09:30", [up("i-a"), node("i-b")]);
    for clock in ["09:30", "09:35", "09:40", "09:45"] {
        world.set_now(at(clock));
        beats(&mut world, "i-a", unready(clock));
        request(&mut world, "i-a", clock);
        ready_by_beat().tick(&mut world);
    }
    world
}

#[test]
fn a_node_that_is_not_ready_any_more_for_long_keeps_no_other_from_being_started() {
    let mut world = lost_for_long();
    ready_by_beat().prewarm(&mut world);
    assert_eq!(starts(&world), ["09:45 i-b"]);
}

#[test]
fn a_node_that_is_ready_again_is_supply_again() {
    let mut world = lost_for_long();
    world.set_now(at("09:46"));
    beats(&mut world, "i-a", beat("09:46"));
    ready_by_beat().prewarm(&mut world);
    assert_eq!(starts(&world), [""; 0]);
}

#[test]
fn a_spare_node_beside_calls_on_one_that_is_not_ready_any_more_is_not_started_in_turn() {
    let mut setup = ready_by_beat();
    setup.pool.rules.calls_per_node = Some(4);
    setup.pool.rules.warm = warm(&[r#"{"from": "09:40", "to": "13:00"}"#]).pool.rules.warm;
    let mut world = lost_for_long();
    leased(&mut world, "i-a", "call", "13:00");
    let mut now = at("09:50");
    while now < at("12:30") {
        world.set_now(now);
        beats(&mut world, "i-a", unready(&clock(now)));
        if state(&world, "i-b") == NodeState::Running {
            beats(&mut world, "i-b", beat(&clock(now)));
        }
        setup.tick(&mut world);
        now += minutes(5);
    }
    assert_eq!((starts(&world).len(), stops(&world)), (1, vec![]), "{:?}", world.effects);
}

// Learnt boots.

#[test]
fn a_node_whose_clock_is_behind_teaches_no_boot_time() {
    let mut world = fleet("10:05", [node("i-a").running_since("10:00")]);
    let early = reveille::domain::Beat { ready_since: Some(at("09:59:30")), ..beat("10:04:30") };
    beats(&mut world, "i-a", early);
    ready_by_beat().tick(&mut world);
    assert_eq!(facts(&mut world, "i-a").boots, None);
}

#[test]
fn a_prewarm_does_not_shorten_what_a_line_of_the_log_wants() {
    let setup = four().with(|setup| setup.policy.prewarm = minutes(10));
    let mut world = fleet("10:00", [node("i-a").running_since("08:00").ready_since("08:01")]);
    setup.log_line(&mut world);
    setup.prewarm_at(&mut world, "10:03");
    setup.ticks(&mut world, "10:05", "10:45");
    assert_eq!(stops(&world), ["10:35 i-a"]);
}
