use crate::support::*;
use chrono::TimeDelta;
use reveille::domain::{
    Blind, Claim, ClaimKind, Fault, FaultKind, Lease, Mark, NodeRecord, PoolRecord, ReadyFact, Wake, WakeSource,
};
use reveille::world::World;
use std::collections::BTreeMap;

// 23: a fact that is not there, or that nobody can read.

#[test]
fn case_23_a_node_that_was_never_used_is_idle_since_its_launch() {
    let mut world = fleet("09:00", [node("i-a").running_since("06:00").ready_since("06:01")]);
    ticks(&mut world, "09:00", "09:05");
    assert_eq!(stops(&world), ["09:05 i-a"]);
}

#[test]
fn case_23_facts_that_cannot_be_read_do_not_switch_the_check_off() {
    let mut world = fleet("09:00", [node("i-a").running_since("06:00")]);
    world.record(&voice()).unread = vec!["mark#i-a".to_owned(), "ready#i-a".to_owned(), "wake".to_owned()];
    ticks(&mut world, "09:00", "09:30");
    // Ready is seen anew at 09:00; that is later than any use.
    assert_eq!(stops(&world), ["09:30 i-a"]);
}

#[test]
fn case_23_a_claim_that_cannot_be_read_is_unknown() {
    let mut world = fleet("09:00", [node("i-a").running_since("06:00").ready_since("06:01")]);
    world.record(&voice()).unread = vec!["claim#i-a".to_owned()];
    ticks(&mut world, "09:00", "09:30");
    assert_eq!((stops(&world), told(&world)), (vec![], vec!["blind"]));
}

/// Every attribute of the item that a person, or an older version, may have left unreadable.
const FACTS: [&str; 17] = [
    "demand",
    "claims",
    "wake",
    "line_wake",
    "gate",
    "rate",
    "wait#call-1",
    "wake#i-a",
    "claim#i-a",
    "mark#i-a",
    "ready#i-a",
    "fault#i-a",
    "blind#i-a",
    "launch#i-a",
    "noise#i-a",
    "leases#i-a",
    "leased#i-a",
];

#[test]
fn case_23_no_fact_that_cannot_be_read_leaves_the_node_up_untold() {
    for fact in FACTS {
        let mut world = fleet("09:00", [unused()]);
        world.record(&voice()).unread = vec![fact.to_owned()];
        ticks(&mut world, "10:00", "11:00");
        assert!(!stops(&world).is_empty() || !told(&world).is_empty(), "{fact}");
    }
}

#[test]
fn case_23_a_counter_that_cannot_be_read_is_told_once_a_day() {
    for counter in ["demand", "claims"] {
        let mut world = fleet("09:00", [node("i-a")]);
        world.record(&voice()).unread = vec![counter.to_owned()];
        ticks(&mut world, "09:00", "10:00");
        assert_eq!(told(&world), ["controller_fault"], "{counter}");
        assert!(world.published[0].body.contains(counter), "{:?}", world.published);
    }
}

/// A node unused for an hour, and this in its pool's item.
fn with_fact(change: impl FnOnce(&mut PoolRecord)) -> World {
    let mut world = fleet("09:00", [unused()]);
    change(world.record(&voice()));
    world
}

fn with_node_fact(change: impl FnOnce(&mut NodeRecord)) -> World {
    with_fact(|record| change(record.nodes.entry(id("i-a")).or_default()))
}

/// Facts as a clock that was off by ten years, or a person's hand, may have left them.
#[test]
fn case_23_no_fact_from_the_future_keeps_a_node_untold() {
    let at = at("09:00") + TimeDelta::days(3650);
    let launched_at = unused().seen().launched_at;
    let wake = || Some(Wake::new(at, WakeSource::LogLine));
    let claim = |kind| Some(Claim { at, open_until: at, ..claim(kind, "09:00", launched_at) });
    let refused = Some(Fault { since: at, retry_at: at, ..fault(FaultKind::Stop, "OperationNotPermitted", "09:00") });
    let lease = Lease { by: "token:app".to_owned(), at, until: at };
    let calls = BTreeMap::from([(lease_id("a"), lease)]);
    let rows = [
        ("a wake", with_fact(|pool| pool.wake = wake()), vec!["10:05 i-a"]),
        ("a line's wake", with_fact(|pool| pool.line_wake = wake()), vec!["10:05 i-a"]),
        ("a named node's wake", with_node_fact(|node| node.wake = wake()), vec!["10:05 i-a"]),
        ("a wait", with_fact(|pool| pool.waiting.extend([(lease_id("a"), at)])), vec!["10:05 i-a"]),
        ("a reading", with_node_fact(|node| node.mark = Some(Mark { at, launched_at })), vec!["10:05 i-a"]),
        ("a refused stop", with_node_fact(|node| node.fault = refused), vec!["10:05 i-a"]),
        // Seen anew at 10:00.
        (
            "readiness",
            with_node_fact(|node| node.ready = Some(ReadyFact { at, launched_at, lost_at: None })),
            vec!["10:30 i-a"],
        ),
        ("a claim to start", with_node_fact(|node| node.claim = claim(ClaimKind::Start)), vec![]),
        ("a claim to stop", with_node_fact(|node| node.claim = claim(ClaimKind::Stop)), vec![]),
        ("leases", with_node_fact(|node| node.leases = calls), vec![]),
        ("the end of a lease", with_node_fact(|node| node.leased = Some(at)), vec![]),
    ];
    for (name, mut world, stopped) in rows {
        ticks(&mut world, "10:00", "10:40");
        assert_eq!(stops(&world), stopped, "{name}");
        assert_eq!(told(&world).is_empty(), !stopped.is_empty(), "{name}: {:?}", told(&world));
    }
}

#[test]
fn case_23_a_count_of_unknown_ticks_from_the_future_begins_anew() {
    let at = at("09:00") + TimeDelta::days(3650);
    let mut world = with_node_fact(|node| node.blind = Some(Blind { since: at, at, ticks: 1, told: 0 }));
    fail_times(&mut world, "activity", "InternalFailure", 3);
    ticks(&mut world, "10:00", "10:10");
    assert_eq!(told(&world), ["blind"]);
}

#[test]
fn case_23_a_wake_from_the_future_starts_nothing() {
    let mut world = fleet("09:00", [node("i-a")]);
    world.record(&voice()).wake = Some(Wake::new(at("09:00") + TimeDelta::days(3650), WakeSource::Call));
    state_change(&mut world);
    ticks(&mut world, "09:00", "09:30");
    assert_eq!(starts(&world), [""; 0]);
}

#[test]
fn case_23_a_wake_by_a_clock_that_is_minutes_ahead_is_met() {
    let mut world = fleet("09:00", [node("i-a")]);
    world.record(&voice()).wake = Some(Wake::new(at("09:10"), WakeSource::Call));
    tick(&mut world);
    assert_eq!(starts(&world), ["09:00 i-a"]);
}
