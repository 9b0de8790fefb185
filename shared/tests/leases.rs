//! Leases, through whole runs over the in-memory world: who gets one and where, what keeps it, what ends it, and that no
//! call loses its node.

mod support;
mod support_rules;

use reveille::decide::Reason;
use reveille::domain::{ClaimAnswer, ClaimKind, LeaseId, NodeState, RunId, WakeSource};
use reveille::policy::MOST_WAITING;
use reveille::run::{EffectKind, LeaseAnswer, LeaseWish, Outcome, Target};
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

fn ids(prefix: &str, from: u32, to: u32) -> Vec<String> {
    (from..=to).map(|n| format!("{prefix}-{n}")).collect()
}

/// Why there is no lease yet.
fn refusal(outcome: &Outcome) -> Reason {
    assert_eq!((&outcome.lease, &outcome.blind), (&Some(LeaseAnswer::NotYet), &None));
    only_answer(outcome).reason
}

// Given.

#[test]
fn a_lease_is_given_on_the_fullest_ready_node_with_room() {
    let mut world = fleet("10:00", ["i-a", "i-b", "i-c", "i-d"].map(up));
    leased(&mut world, "i-a", "a-1", "12:00");
    ids("b", 1, 2).iter().for_each(|id| leased(&mut world, "i-b", id, "12:00"));
    ids("c", 1, 4).iter().for_each(|id| leased(&mut world, "i-c", id, "12:00"));
    let outcome = four().put(&mut world, "new");
    assert_eq!(held_on(&outcome), "i-b");
    assert_eq!(live(&mut world, "i-b"), ["b-1", "b-2", "new"]);
}

#[test]
fn of_equally_full_nodes_the_first_by_name_is_taken() {
    let mut world = fleet("10:00", ["i-b", "i-a"].map(up));
    assert_eq!(held_on(&four().put(&mut world, "new")), "i-a");
}

#[test]
fn leases_that_ran_out_take_no_room() {
    let mut world = fleet("10:00", [up("i-a")]);
    ids("old", 1, 4).iter().for_each(|id| leased(&mut world, "i-a", id, "09:30"));
    assert_eq!(held_on(&four().put(&mut world, "new")), "i-a");
}

#[test]
fn a_new_lease_clears_away_those_that_ran_out() {
    let mut world = fleet("10:00", [up("i-a")]);
    leased(&mut world, "i-a", "old", "09:30");
    leased(&mut world, "i-a", "young", "10:30");
    four().put(&mut world, "new");
    let known: Vec<LeaseId> = facts(&mut world, "i-a").leases.keys().cloned().collect();
    assert_eq!(known, ["new", "young"].map(lease_id));
}

#[test]
fn the_caller_is_told_the_node_its_address_and_the_end() {
    let mut world = fleet("10:00", [up("i-a")]);
    let (pool, node, address) = (voice(), id("i-a"), Some("10.0.0.5".to_owned()));
    let held = LeaseAnswer::Held { pool, node, address, until: at("10:03") };
    assert_eq!(four().put(&mut world, "new").lease, Some(held));
}

#[test]
fn a_lease_for_a_named_node_is_on_that_node_or_waits_for_it() {
    let mut world = fleet("10:00", [up("i-a"), up("i-b").named("gpu-2")]);
    leased(&mut world, "i-a", "a-1", "12:00");
    let wish = |id: &str| LeaseWish { target: Some(Target::Node("gpu-2".to_owned())), ..put(id) };
    for n in 1..=4 {
        assert_eq!(held_on(&four().lease(&mut world, wish(&format!("b-{n}")))), "i-b", "call {n}");
    }
    assert_eq!(refusal(&four().lease(&mut world, wish("b-5"))), Reason::Full);
}

#[test]
fn where_no_limit_is_configured_one_node_takes_many_calls() {
    let mut world = fleet("10:00", [up("i-a")]);
    let setup = four().with(|setup| setup.pool.rules.calls_per_node = None);
    let told: Vec<String> = ids("call", 1, 20).iter().map(|id| held_on(&setup.put(&mut world, id))).collect();
    assert_eq!(told, ["i-a"; 20]);
}

// Renewed.

#[test]
fn a_renewal_keeps_the_node_and_moves_the_end() {
    let mut world = fleet("10:00", [up("i-a"), up("i-b")]);
    four().put(&mut world, "call");
    ids("b", 1, 3).iter().for_each(|id| leased(&mut world, "i-b", id, "12:00"));
    world.set_now(at("10:02"));
    let outcome = four().lease(&mut world, renew("call"));
    assert!(matches!(outcome.lease, Some(LeaseAnswer::Held { until, .. }) if until == at("10:05")), "{outcome:?}");
    assert_eq!((live(&mut world, "i-a"), live(&mut world, "i-b").len()), (vec!["call".to_owned()], 3));
}

#[test]
fn the_same_put_twice_is_one_lease() {
    let mut world = fleet("10:00", [up("i-a")]);
    let first = four().put(&mut world, "call");
    let second = four().put(&mut world, "call");
    assert_eq!((first.lease, live(&mut world, "i-a").len()), (second.lease, 1));
}

#[test]
fn the_same_put_delivered_twice_at_once_is_one_lease() {
    let mut world = fleet("10:00", [up("i-a"), up("i-b")]);
    let mut slow = Stepper::new(four().lease_run(&world, put("call")));
    slow.run_until(&mut world, "give_lease");
    world.set_now(at("10:00:05"));
    assert_eq!(held_on(&four().put(&mut world, "call")), "i-a");
    assert_eq!(held_on(&slow.finish(&mut world)), "i-a");
    assert_eq!((live(&mut world, "i-a").len(), live(&mut world, "i-b").len()), (1, 0));
}

#[test]
fn a_lost_answer_is_asked_for_again_and_is_one_lease() {
    for call in ["give_lease", "renew_lease"] {
        let mut world = fleet("10:00", [up("i-a"), up("i-b")]);
        if call == "renew_lease" {
            four().put(&mut world, "call");
        }
        lose_answer(&mut world, call);
        let lost = four().put(&mut world, "call");
        assert!(lost.blind.is_some() && lost.lease.is_none(), "{call}: {lost:?}");
        world.set_now(at("10:00:10"));
        assert_eq!(held_on(&four().put(&mut world, "call")), "i-a", "{call}");
        assert_eq!((live(&mut world, "i-a").len(), live(&mut world, "i-b").len()), (1, 0), "{call}");
    }
}

#[test]
fn a_write_that_is_repeated_on_the_way_is_one_lease() {
    let mut world = fleet("10:00", [up("i-a"), up("i-b")]);
    let mut run = Stepper::new(four().lease_run(&world, put("call")));
    run.run_until(&mut world, "give_lease");
    let repeated = run.peek().cloned().expect("the write");
    world.answer(&repeated);
    assert_eq!(held_on(&run.finish(&mut world)), "i-a");
    assert_eq!(count(&world, "renew_lease"), 0, "what stands is not written again");
    assert_eq!((live(&mut world, "i-a").len(), live(&mut world, "i-b").len()), (1, 0));
}

#[test]
fn a_renewal_does_not_ask_whether_the_node_is_ready_just_now() {
    let mut world = fleet("10:00", [up("i-a")]);
    four().put(&mut world, "call");
    let ready = facts(&mut world, "i-a").ready.as_mut().expect("readiness");
    ready.lost_at = Some(at("10:00:30"));
    world.set_now(at("10:01"));
    let before = count(&world, "readiness");
    assert_eq!(held_on(&four().put(&mut world, "call")), "i-a");
    assert_eq!(count(&world, "readiness"), before);
}

// Ended.

#[test]
fn giving_a_lease_and_ending_it_are_effects_that_name_it() {
    let mut world = fleet("10:00", [up("i-a")]);
    for (wish, event) in [(put("call"), EffectKind::Leased), (end("call"), EffectKind::LeaseEnded)] {
        let effects = four().lease(&mut world, wish).effects;
        let named: Vec<_> = effects.iter().filter(|effect| effect.event == event).collect();
        assert_eq!(named.len(), 1, "{event:?}: {effects:?}");
        assert_eq!((named[0].node.clone(), named[0].reason.as_str()), (Some(id("i-a")), "call"));
    }
}

#[test]
fn a_lease_is_ended_twice_without_harm() {
    let mut world = fleet("10:00", [up("i-a")]);
    four().put(&mut world, "call");
    for time in ["first", "second"] {
        let outcome = four().lease(&mut world, end("call"));
        assert_eq!((outcome.lease, outcome.blind), (Some(LeaseAnswer::Over), None), "{time}");
    }
    assert_eq!(live(&mut world, "i-a"), [""; 0]);
}

#[test]
fn a_lost_answer_to_the_end_of_a_lease_is_asked_for_again() {
    let mut world = fleet("10:00", [up("i-a")]);
    four().put(&mut world, "call");
    lose_answer(&mut world, "end_lease");
    assert!(four().lease(&mut world, end("call")).blind.is_some());
    assert_eq!(four().lease(&mut world, end("call")).lease, Some(LeaseAnswer::Over));
}

#[test]
fn a_lease_of_somebody_else_is_neither_renewed_nor_ended() {
    for wish in [put("call"), renew("call"), end("call")] {
        let mut world = fleet("10:00", [up("i-a")]);
        four().put(&mut world, "call");
        let before = item(&mut world);
        let outcome = four().lease(&mut world, LeaseWish { caller: caller("other"), ..wish.clone() });
        assert_eq!(outcome.lease, Some(LeaseAnswer::Foreign), "{wish:?}");
        assert_eq!(item(&mut world), before, "{wish:?}");
    }
}

#[test]
fn a_lease_that_ran_out_is_ended_and_nothing_changes() {
    for wish in [put("call"), renew("call")] {
        let mut world = fleet("10:00", [up("i-a")]);
        leased(&mut world, "i-a", "call", "10:00");
        let before = item(&mut world);
        assert_eq!(four().lease(&mut world, wish.clone()).lease, Some(LeaseAnswer::Ended), "{wish:?}");
        assert_eq!(item(&mut world), before, "{wish:?}");
    }
}

#[test]
fn a_second_before_its_end_a_lease_is_renewed() {
    let mut world = fleet("10:00", [up("i-a")]);
    leased(&mut world, "i-a", "call", "10:00:01");
    assert_eq!(held_on(&four().lease(&mut world, renew("call"))), "i-a");
}

#[test]
fn a_renewal_of_an_unknown_lease_is_ended_and_wakes_nothing() {
    let mut world = fleet("10:00", [node("i-a")]);
    let before = item(&mut world);
    assert_eq!(four().lease(&mut world, renew("call")).lease, Some(LeaseAnswer::Ended));
    assert_eq!((item(&mut world), starts(&world)), (before, vec![]));
}

#[test]
fn a_lease_whose_node_has_gone_is_ended_at_its_renewal() {
    let rows = [
        ("stopped", node("i-a")),
        ("stopping", node("i-a").stopping_since("09:59")),
        ("terminated", node("i-a").gone()),
    ];
    for (name, node) in rows {
        let mut world = fleet("10:00", [node, up("i-b")]);
        leased(&mut world, "i-a", "call", "10:02");
        let before = item(&mut world);
        assert_eq!(four().put(&mut world, "call").lease, Some(LeaseAnswer::Ended), "{name}");
        assert_eq!(item(&mut world), before, "{name}");
    }
}

#[test]
fn a_lease_ends_when_a_stop_is_claimed_for_its_node() {
    let mut world = fleet("10:00", [up("i-a")]);
    leased(&mut world, "i-a", "call", "10:02");
    facts(&mut world, "i-a").claim = Some(claim(ClaimKind::Stop, "09:59:50", Some(at("09:00"))));
    assert_eq!(four().put(&mut world, "call").lease, Some(LeaseAnswer::Ended));
}

// Calls that wait.

#[test]
fn a_call_that_finds_no_ready_node_starts_one_and_waits() {
    let mut world = fleet("10:00", [node("i-a")]);
    let outcome = four().put(&mut world, "call");
    assert_eq!(refusal(&outcome), Reason::AlreadyStarting);
    assert_eq!(starts(&world), ["10:00 i-a"]);
    let wake = item(&mut world).wake.expect("a wake");
    assert_eq!((wake.source, wake.path.as_deref(), wake.caller.as_deref()), {
        (WakeSource::Call, Some("/leases"), Some("token:app"))
    });
    assert_eq!((wake.at, wake.line_at), (at("10:00"), Some(at("10:00"))));
    assert_eq!(waiting(&mut world), [lease_id("call")]);
}

#[test]
fn a_call_that_waited_has_its_lease_once_the_node_is_ready_and_waits_no_more() {
    let mut world = fleet("10:00", [node("i-a")]);
    four().put(&mut world, "call");
    world.set_now(at("10:01"));
    assert_eq!(held_on(&four().put(&mut world, "call")), "i-a");
    assert_eq!(waiting(&mut world), []);
}

/// Eight calls on a ready node with room for four, beside one that sleeps.
fn eight_calls() -> (World, Vec<Outcome>) {
    let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
    let outcomes = ids("call", 1, 8).iter().map(|id| four().put(&mut world, id)).collect();
    (world, outcomes)
}

#[test]
fn of_eight_calls_four_are_leased_and_four_told_full() {
    let (mut world, outcomes) = eight_calls();
    let (first, last) = outcomes.split_at(4);
    assert_eq!(first.iter().map(held_on).collect::<Vec<_>>(), ["i-a"; 4]);
    assert_eq!(last.iter().map(refusal).collect::<Vec<_>>(), [Reason::Full; 4]);
    assert!(last.iter().all(|outcome| only_answer(outcome).ready_in_seconds == Some(60)), "{last:?}");
    assert_eq!(waiting(&mut world).len(), 4);
}

#[test]
fn eight_calls_start_the_second_node_once() {
    let (mut world, _) = eight_calls();
    four().tick_at(&mut world, "10:00:30");
    assert_eq!((starts(&world), count(&world, "start")), (vec!["10:00 i-b".to_owned()], 1));
}

#[test]
fn the_other_four_are_leased_on_the_second_node_and_none_is_lost() {
    let (mut world, _) = eight_calls();
    world.set_now(at("10:01:05"));
    let told: Vec<String> = ids("call", 5, 8).iter().map(|id| held_on(&four().put(&mut world, id))).collect();
    assert_eq!(told, ["i-b"; 4]);
    assert_eq!((live(&mut world, "i-a"), live(&mut world, "i-b")), (ids("call", 1, 4), ids("call", 5, 8)));
    assert_eq!((waiting(&mut world).len(), count(&world, "start")), (0, 1));
}

#[test]
fn nine_waiting_calls_start_three_nodes_in_one_run() {
    let mut world = fleet("10:00", ["i-a", "i-b", "i-c", "i-d"].map(node));
    for id in ids("call", 1, 8) {
        world.record(&voice()).waiting.insert(lease_id(&id), at("10:02"));
    }
    four().put(&mut world, "call-9");
    assert_eq!(starts(&world), ["10:00 i-a", "10:00 i-b", "10:00 i-c"]);
}

#[test]
fn a_call_that_has_stopped_asking_wants_no_node_after_three_minutes() {
    let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
    ids("a", 1, 4).iter().for_each(|id| leased(&mut world, "i-a", id, "12:00"));
    fail(&mut world, "start", "InsufficientInstanceCapacity");
    four().put(&mut world, "call");
    four().ticks(&mut world, "10:05", "10:30");
    assert_eq!(starts(&world), [""; 0]);
}

#[test]
fn a_fifth_call_on_a_pool_of_one_node_is_told_full_and_nothing_can_be_started() {
    let mut world = fleet("10:00", [up("i-a")]);
    ids("a", 1, 4).iter().for_each(|id| leased(&mut world, "i-a", id, "12:00"));
    let outcome = four().put(&mut world, "call");
    assert_eq!((refusal(&outcome), only_answer(&outcome).ready_in_seconds), (Reason::Full, None));
    assert_eq!((count(&world, "start"), waiting(&mut world)), (0, vec![lease_id("call")]));
    four().lease(&mut world, end("a-1"));
    assert_eq!(held_on(&four().put(&mut world, "call")), "i-a");
}

#[test]
fn room_that_comes_while_the_wake_is_recorded_is_a_lease_and_no_mere_ready() {
    // Whoever asked for a lease and is told "ready" would begin a call that nothing protects.
    let mut world = fleet("10:00", [up("i-a")]);
    ids("a", 1, 4).iter().for_each(|id| leased(&mut world, "i-a", id, "12:00"));
    let mut run = Stepper::new(four().lease_run(&world, put("call")));
    run.run_until(&mut world, "demand");
    four().lease(&mut world, end("a-1"));
    assert_eq!(held_on(&run.finish(&mut world)), "i-a");
    assert_eq!(waiting(&mut world), []);
}

#[test]
fn a_node_that_becomes_ready_while_the_wake_is_recorded_is_leased() {
    let mut world = fleet("10:00", [node("i-a")]);
    four().prewarm(&mut world);
    world.set_now(at("10:00:59"));
    let mut run = Stepper::new(four().lease_run(&world, put("call")));
    run.run_until(&mut world, "demand");
    world.set_now(at("10:01:01"));
    assert_eq!(held_on(&run.finish(&mut world)), "i-a");
}

#[test]
fn so_many_waiting_calls_are_remembered_and_every_one_is_counted_as_demand() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail_times(&mut world, "start", "VcpuLimitExceeded", 10);
    let calls = u32::try_from(MOST_WAITING).expect("a number") + 6;
    ids("call", 1, calls).iter().for_each(|id| drop(four().put(&mut world, id)));
    assert_eq!((waiting(&mut world).len(), item(&mut world).demand), (MOST_WAITING, u64::from(calls)));
}

#[test]
fn a_call_that_asks_again_is_remembered_however_many_wait() {
    let mut world = fleet("10:00", [node("i-a")]);
    fail_times(&mut world, "start", "VcpuLimitExceeded", 10);
    ids("call", 1, u32::try_from(MOST_WAITING).expect("a number"))
        .iter()
        .for_each(|id| drop(four().put(&mut world, id)));
    world.set_now(at("10:02"));
    four().put(&mut world, "call-1");
    assert_eq!(item(&mut world).waiting[&lease_id("call-1")], at("10:05"));
}

#[test]
fn waits_that_are_over_are_cleared_away_by_the_next_call_that_waits() {
    let mut world = fleet("10:00", [node("i-a")]);
    four().put(&mut world, "gone");
    world.set_now(at("10:03"));
    world.stop(&id("i-a"), false).expect("a stop by hand");
    four().put(&mut world, "call");
    assert_eq!(waiting(&mut world), [lease_id("call")]);
}

// Percent of a node from which on one more is wanted.

fn three_quarters() -> Setup {
    four().with(|setup| setup.pool.rules.fill_percent = 75)
}

#[test]
fn from_the_configured_percent_on_the_tick_starts_one_more_node() {
    let rows = [(3, [""; 0].as_slice()), (4, ["10:05 i-b"].as_slice())];
    for (calls, started) in rows {
        let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
        for id in ids("call", 1, calls) {
            assert_eq!(held_on(&three_quarters().lease(&mut world, long(&id))), "i-a", "the node is not full");
        }
        three_quarters().tick_at(&mut world, "10:05");
        assert_eq!(starts(&world), started, "{calls} calls");
    }
}

fn long(id: &str) -> LeaseWish {
    LeaseWish { lasts: Some(minutes(60)), ..put(id) }
}

#[test]
fn a_node_that_is_wanted_in_reserve_is_not_stopped_and_started_in_turn() {
    let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
    ids("call", 1, 4).iter().for_each(|id| leased(&mut world, "i-a", id, "12:30"));
    three_quarters().ticks(&mut world, "10:05", "12:25");
    assert_eq!((starts(&world), stops(&world)), (vec!["10:05 i-b".to_owned()], vec![]));
}

#[test]
fn a_reserve_is_stopped_when_the_calls_that_want_it_are_over() {
    let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
    ids("call", 1, 4).iter().for_each(|id| leased(&mut world, "i-a", id, "11:30"));
    three_quarters().ticks(&mut world, "10:05", "12:10");
    assert_eq!(stops(&world), ["11:35 i-b", "12:00 i-a"]);
}

#[test]
fn a_closed_gate_lets_no_call_in_and_needs_no_reserve() {
    let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
    ids("call", 1, 4).iter().for_each(|id| leased(&mut world, "i-a", id, "12:30"));
    three_quarters().ticks(&mut world, "10:05", "10:30");
    close_gate(&mut world, "10:31", false);
    three_quarters().ticks(&mut world, "10:35", "12:25");
    assert_eq!((starts(&world), stops(&world)), (vec!["10:05 i-b".to_owned()], vec!["10:40 i-b".to_owned()]));
}

#[test]
fn a_reserve_is_drained_with_the_rest() {
    let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
    ids("call", 1, 4).iter().for_each(|id| leased(&mut world, "i-a", id, "12:30"));
    three_quarters().ticks(&mut world, "10:05", "10:30");
    close_gate(&mut world, "10:31", true);
    three_quarters().ticks(&mut world, "10:35", "10:45");
    assert_eq!(stops(&world), ["10:40 i-b"]);
}

// The gate.

#[test]
fn a_closed_gate_refuses_a_new_lease_and_remembers_no_wait() {
    let mut world = fleet("10:00", [up("i-a")]);
    close_gate(&mut world, "09:30", false);
    let before = item(&mut world);
    let outcome = four().put(&mut world, "call");
    assert_eq!(refusal(&outcome), Reason::GateClosed);
    assert_eq!(only_answer(&outcome).address, None);
    assert_eq!(item(&mut world), before);
}

#[test]
fn a_closed_gate_lets_a_call_in_progress_renew_its_lease() {
    let mut world = fleet("10:00", [up("i-a")]);
    leased(&mut world, "i-a", "call", "10:02");
    close_gate(&mut world, "09:30", true);
    assert_eq!(held_on(&four().put(&mut world, "call")), "i-a");
}

#[test]
fn a_gate_that_closes_between_look_and_write_refuses_the_lease() {
    let mut world = fleet("10:00", [up("i-a")]);
    let mut run = Stepper::new(four().lease_run(&world, put("call")));
    run.run_until(&mut world, "give_lease");
    close_gate(&mut world, "10:00", false);
    assert_eq!(refusal(&run.finish(&mut world)), Reason::GateClosed);
    assert_eq!(live(&mut world, "i-a"), [""; 0]);
}

#[test]
fn a_drained_pool_keeps_a_live_lease_and_stops_at_the_second_reading_after_its_end() {
    let mut world = fleet("10:00", [up("i-a")]);
    leased(&mut world, "i-a", "call", "10:20");
    close_gate(&mut world, "10:00", true);
    let outcomes = four().ticks(&mut world, "10:00", "10:40");
    let reasons: Vec<Reason> = outcomes.iter().take(5).map(|outcome| reason(outcome, "i-a")).collect();
    assert_eq!(reasons, [Reason::Leased, Reason::Leased, Reason::Leased, Reason::Leased, Reason::Draining]);
    assert_eq!(stops(&world), ["10:35 i-a"], "seven quiet minutes from 10:20, first reading at 10:30");
}

// STOP and lease at once.

/// Idle, and to be stopped by the tick that is due now.
fn about_to_be_stopped() -> World {
    let mut world = fleet("10:00", [up("i-a")]);
    four().tick(&mut world);
    world.set_now(at("10:05"));
    world
}

#[test]
fn a_stop_between_the_look_and_the_lease_is_decided_anew_and_the_call_waits_for_the_node() {
    let mut world = about_to_be_stopped();
    let mut call = Stepper::new(four().lease_run(&world, put("call")));
    call.run_until(&mut world, "give_lease");
    four().tick(&mut world);
    assert_eq!(refusal(&call.finish(&mut world)), Reason::StoppingWillStart);
    assert_eq!((live(&mut world, "i-a"), stops(&world)), (vec![], vec!["10:05 i-a".to_owned()]));
    four().ticks(&mut world, "10:10", "10:15");
    assert_eq!(starts(&world), ["10:10 i-a"], "the wait is met by the tick");
}

#[test]
fn a_stop_that_is_claimed_and_not_sent_yet_lets_no_lease_be_given() {
    let mut world = about_to_be_stopped();
    let mut idle = Stepper::new(four().idle_run(&world));
    idle.run_until(&mut world, "stop");
    let outcome = four().put(&mut world, "call");
    assert_eq!(refusal(&outcome), Reason::StoppingWillStart);
    idle.finish(&mut world);
    assert_eq!(live(&mut world, "i-a"), [""; 0]);
}

#[test]
fn a_lease_between_the_look_and_the_claim_makes_the_stop_lose() {
    let mut world = about_to_be_stopped();
    let mut idle = Stepper::new(four().idle_run(&world));
    idle.run_until(&mut world, "claim");
    assert_eq!(held_on(&four().put(&mut world, "call")), "i-a");
    let outcome = idle.finish(&mut world);
    assert_eq!((count(&world, "stop"), reason(&outcome, "i-a")), (0, Reason::Leased));
}

#[test]
fn a_renewal_between_the_look_and_the_claim_makes_the_stop_lose() {
    // A drain is decided seven minutes after the lease has ended for a clock that is ahead.
    let mut world = fleet("10:00", [up("i-a")]);
    leased(&mut world, "i-a", "call", "10:06");
    close_gate(&mut world, "09:00", true);
    let mut early = four().with(|setup| setup.pool.rules.leased = true).context(&world);
    early.now = at("10:13");
    facts(&mut world, "i-a").mark = Some(reveille::domain::Mark { at: at("10:07"), launched_at: Some(at("09:00")) });
    let mut idle = Stepper::new(reveille::run::IdleRun::new(early));
    idle.run_until(&mut world, "claim");
    assert_eq!(held_on(&four().lease(&mut world, long("call"))), "i-a");
    idle.finish(&mut world);
    assert_eq!(count(&world, "stop"), 0);
}

#[test]
fn wherever_a_lease_comes_in_an_idle_check_the_call_is_not_cut() {
    // Every place: a lease that is told to be held is on a node that runs, and a node that stops has none.
    for place in 0.. {
        let mut world = about_to_be_stopped();
        let mut idle = Stepper::new(four().idle_run(&world));
        let made = (0..place).take_while(|_| idle.step(&mut world)).count();
        let outcome = four().put(&mut world, "call");
        while idle.step(&mut world) {}
        let is_up = state(&world, "i-a") == NodeState::Running;
        assert_eq!(held_on(&outcome) == "i-a", is_up, "a lease after {made} calls: {outcome:?}");
        assert_eq!(live(&mut world, "i-a").len(), usize::from(is_up), "a lease after {made} calls");
        if made < place {
            return;
        }
    }
}

#[test]
fn others_that_write_at_every_try_end_in_a_503_and_not_in_a_guess() {
    let mut world = fleet("10:00", [up("i-a")]);
    let mut run = Stepper::new(four().lease_run(&world, put("call")));
    let mut tries = 0;
    while run.peek().is_some() {
        if run.peek().is_some_and(|call| reveille::world::call_name(call) == "give_lease") {
            tries += 1;
            let mut other = claim(ClaimKind::Start, "09:50", Some(at("09:00")));
            (other.run, other.answer) = (RunId(format!("other-{tries}")), Some(ClaimAnswer::AlreadyRunning));
            facts(&mut world, "i-a").claim = Some(other);
        }
        run.step(&mut world);
    }
    let outcome = run.finish(&mut world);
    assert_eq!((tries, outcome.lease), (8, None));
    assert_eq!(outcome.blind.map(|error| error.code), Some("Contended".to_owned()));
    assert_eq!(live(&mut world, "i-a"), [""; 0]);
}

#[test]
fn four_calls_at_once_for_the_last_place_are_one_lease() {
    let mut world = fleet("10:00", [up("i-a")]);
    ids("a", 1, 3).iter().for_each(|id| leased(&mut world, "i-a", id, "12:00"));
    let names = ids("call", 1, 4);
    let mut runs: Vec<_> = names.iter().map(|id| Stepper::new(four().lease_run(&world, put(id)))).collect();
    runs.iter_mut().for_each(|run| run.run_until(&mut world, "give_lease"));
    let held = runs.into_iter().map(|run| held_on(&run.finish(&mut world))).filter(|node| !node.is_empty()).count();
    assert_eq!((held, live(&mut world, "i-a").len()), (1, 4));
}

#[test]
fn a_look_that_fails_is_no_lease_and_no_refusal() {
    for call in ["read_ledger", "describe", "give_lease"] {
        let mut world = fleet("10:00", [up("i-a")]);
        fail(&mut world, call, "RequestLimitExceeded");
        let outcome = four().put(&mut world, "call");
        assert!(outcome.blind.is_some() && outcome.lease.is_none(), "{call}: {outcome:?}");
    }
}

// Long calls and crashed apps.

/// A call from 10:00 to 13:00 with no request, renewed each minute, and a tick each five.
fn three_hours() -> (World, Vec<String>) {
    let mut world = fleet("10:00", [up("i-a"), node("i-b")]);
    let mut told = Vec::new();
    for minute in 0..=180 {
        past_ten(&mut world, minute);
        told.push(held_on(&four().put(&mut world, "call")));
        if minute % 5 == 0 {
            four().tick(&mut world);
        }
    }
    (world, told)
}

#[test]
fn a_call_of_three_hours_with_no_request_is_never_cut() {
    let (mut world, told) = three_hours();
    assert!(told.iter().all(|node| node == "i-a"), "{told:?}");
    assert_eq!((stops(&world), starts(&world)), (vec![], vec![]));
    assert_eq!(live(&mut world, "i-a"), ["call"]);
}

#[test]
fn a_lease_whose_app_has_crashed_ends_by_itself_and_its_node_sleeps_within_forty_minutes() {
    let (mut world, _) = three_hours();
    four().ticks(&mut world, "13:05", "13:45");
    assert_eq!(stops(&world), ["13:35 i-a"], "the lease ended at 13:03");
}

#[test]
fn a_call_that_ended_in_order_is_use_up_to_its_end() {
    let mut world = fleet("10:00", [up("i-a")]);
    four().lease(&mut world, long("call"));
    four().ticks(&mut world, "10:00", "10:15");
    past_ten(&mut world, 16);
    four().lease(&mut world, end("call"));
    four().ticks(&mut world, "10:20", "11:00");
    assert_eq!(stops(&world), ["10:50 i-a"]);
}

#[test]
fn a_call_that_hangs_up_while_it_waits_wants_no_node_any_more() {
    let mut world = fleet("10:00", [node("i-a")]);
    calls_per_node(4).put(&mut world, "call");
    assert!(world.record(&voice()).waiting.contains_key(&lease_id("call")));
    let outcome = calls_per_node(4).lease(&mut world, end("call"));
    assert_eq!(outcome.lease, Some(LeaseAnswer::Over));
    assert!(world.record(&voice()).waiting.is_empty());
    let before = world.calls.len();
    assert_eq!(calls_per_node(4).lease(&mut world, end("call")).lease, Some(LeaseAnswer::Over), "twice is once");
    assert_eq!(world.calls[before..], ["read_ledger"]);
}
