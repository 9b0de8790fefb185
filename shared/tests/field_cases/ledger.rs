use crate::support::*;

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
