//! Model check: the runs of all functions, stepped call by call in every order that a bounded world allows, each call going
//! wrong in every way that its budget allows. It is the product's own step machines over the product's own world that are
//! explored; no rule is written down twice.
#![expect(clippy::wildcard_enum_match_arm, reason = "of most calls and answers there is nothing to say")]

mod carry;
mod deep;
mod explore;
mod laws;
mod process;
mod report;
mod scenario;
mod scenarios;
mod state;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support_money/mod.rs"]
mod support_money;

use laws::Event;
use report::{check, find};
use scenario::Sabotage;
use state::Law;

#[test]
fn two_wakes_start_one_node() {
    check(scenarios::two_wakes().faults(1).deaths(1), &[Event::Started, Event::ClaimLost, Event::MetAfterWait]);
}

#[test]
fn a_node_without_capacity_is_passed_over_for_one_other() {
    check(scenarios::no_capacity(), &[Event::Started, Event::ClaimLost, Event::Told]);
}

#[test]
fn no_wake_that_was_told_ready_loses_its_node() {
    let events = [Event::SaidReady, Event::Stopped, Event::ClaimLost];
    check(scenarios::a_wake_beside_a_stop().faults(1), &events);
    check(scenarios::a_wake_beside_a_stop().deaths(1).stale(1).repeats(1), &events);
}

#[test]
fn a_stop_whose_answer_is_lost_neither_cuts_a_wake_nor_loses_one() {
    check(scenarios::lost_stop().faults(1), &[Event::SaidReady, Event::Stopped, Event::Started, Event::LateEffect]);
}

#[test]
fn no_old_look_forces_a_node_that_runs_again() {
    check(scenarios::slow_stop().stale(1), &[Event::SaidReady, Event::StaleLook, Event::Started]);
}

#[test]
fn a_person_may_start_and_stop_nodes_between_any_two_calls() {
    check(scenarios::by_hand(), &[Event::ByHand, Event::Started, Event::ClaimLost]);
}

#[test]
fn no_live_lease_loses_its_node() {
    check(scenarios::lease_runs_out(), &[Event::Leased, Event::Stopped, Event::ClaimLost]);
    check(scenarios::renewals(), &[Event::Leased, Event::Stopped]);
    check(scenarios::drain(), &[Event::Leased, Event::Stopped]);
}

#[test]
fn no_start_goes_through_a_gate_that_closes() {
    check(scenarios::gate(), &[Event::GateClosed, Event::Started, Event::Told]);
}

#[test]
fn no_message_goes_out_twice_by_two_runs() {
    check(scenarios::same_message(), &[Event::Told, Event::MessageHeldBack]);
    check(scenarios::two_guards(), &[Event::Told, Event::MessageHeldBack]);
}

#[test]
fn one_reading_that_lags_stops_no_node() {
    check(scenarios::late_counts().stale(1), &[Event::Stopped]);
    check(scenarios::late_counts().faults(1), &[Event::Stopped, Event::Blind]);
}

#[test]
fn all_four_functions_beside_each_other() {
    check(scenarios::all_four(), &[Event::Stopped, Event::Told]);
}

// The rules that keep these laws, each taken out by answers that lie: the checker finds what they are for.

#[test]
fn without_the_claim_a_node_that_was_told_ready_is_stopped() {
    find(scenarios::a_wake_beside_a_stop().without(Sabotage::Claims), Law::Ready);
}

#[test]
fn without_the_claim_a_live_lease_loses_its_node() {
    find(scenarios::lease_runs_out().without(Sabotage::Claims), Law::Lease);
}

#[test]
fn without_the_claim_two_nodes_are_started_for_one_wish() {
    find(scenarios::start_race().stale(1).without(Sabotage::Claims), Law::Supply);
}

#[test]
fn without_the_second_reading_one_that_lags_stops_a_used_node() {
    find(scenarios::late_counts().stale(1).without(Sabotage::Readings), Law::Readings);
}

#[test]
fn without_the_evidence_rule_a_node_going_down_is_told_ready() {
    find(scenarios::lost_stop().stale(1).without(Sabotage::Evidence), Law::Ready);
}

#[test]
fn without_the_same_item_a_wake_overlooks_a_stop() {
    find(scenarios::a_wake_beside_a_stop().without(Sabotage::SameItem), Law::Ready);
}
