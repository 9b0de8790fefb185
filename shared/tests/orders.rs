//! What an operator orders: holds and gates, through whole runs.

mod support;
mod support_money;

use reveille::decide::Reason;
use reveille::decide::budget::Enforce;
use reveille::domain::{Gate, GateKeeper, Hold, Instant, NodeState, Phase};
use reveille::run::{Call, EffectKind, Obeyed, OperatorRun, Order, Outcome, Run as _, Step, Target};
use reveille::world::World;
use support::*;
use support_money::*;

fn order(world: &mut World, order: Order) -> Outcome {
    let ctx = context(world);
    world.drive(&mut OperatorRun::new(ctx, order, "cli:anna".to_owned()))
}

fn hold(world: &mut World, target: Target, lasts: i64) -> Outcome {
    order(world, Order::Hold { target, lasts: minutes(lasts), note: "a demonstration".to_owned() })
}

/// A hold that was made with nothing before it.
fn held(node: &str, until: &str, phase: Phase) -> Option<Obeyed> {
    Some(Obeyed::Held { pool: voice(), node: id(node), until: at(until), was: None, phase })
}

/// The run of an order, between whose look and write something happens.
fn order_while(world: &mut World, order: Order, meanwhile: impl FnOnce(&mut World)) -> Outcome {
    let mut run = OperatorRun::new(context(world), order, "cli:ben".to_owned());
    let Step::Calls(looks) = run.next(Vec::new()) else { panic!("it looks first") };
    let seen = looks.iter().map(|call| world.answer(call)).collect();
    meanwhile(world);
    let mut step = run.next(seen);
    loop {
        match step {
            Step::Calls(calls) => step = run.next(calls.iter().map(|call| world.answer(call)).collect()),
            Step::Done(outcome) => return outcome,
        }
    }
}

fn only() -> Target {
    Target::Pool(voice())
}

fn named(word: &str) -> Target {
    Target::Node(word.to_owned())
}

fn close(world: &mut World, lasts: Option<i64>, drain: bool) -> Outcome {
    order(world, Order::CloseGate { pool: voice(), lasts: lasts.map(minutes), drain, note: "maintenance".to_owned() })
}

fn open(world: &mut World) -> Outcome {
    order(world, Order::OpenGate { pool: voice(), note: "it is over".to_owned() })
}

fn said(outcome: &Outcome) -> Vec<(EffectKind, &str)> {
    outcome.effects.iter().map(|effect| (effect.event, effect.reason.as_str())).collect()
}

#[test]
fn a_hold_keeps_its_node_to_its_end_and_says_who_made_it() {
    let mut world = fleet("10:00", [node("i-a").running_since("08:00").ready_since("08:01")]);
    let outcome = hold(&mut world, only(), 120);
    assert_eq!(outcome.obeyed, held("i-a", "12:00", Phase::Ready));
    assert_eq!(said(&outcome), [(EffectKind::Held, "until 2026-11-30 12:00:00 UTC: a demonstration (cli:anna)")]);
    let kept = world.record(&voice()).node(&id("i-a")).hold.expect("a hold");
    assert_eq!((kept.note.as_str(), kept.since), ("a demonstration (cli:anna)", at("10:00")));
    let outcomes = ticks(&mut world, "10:00", "12:05");
    assert!(outcomes[..24].iter().all(|outcome| reason(outcome, "i-a") == Reason::Held));
    assert_eq!(stops(&world), ["12:05 i-a"]);
}

#[test]
fn a_node_is_meant_by_its_name_or_id_in_whatever_pool() {
    let nodes = || [node("i-a").named("gpu-1"), node("i-b").named("gpu-2").in_pool("batch")];
    for word in ["gpu-2", "i-b"] {
        let mut world = fleet("10:00", nodes());
        let outcome = hold(&mut world, named(word), 60);
        let pool = pool("batch");
        let held = Obeyed::Held { pool, node: id("i-b"), until: at("11:00"), was: None, phase: Phase::Stopped };
        assert_eq!(outcome.obeyed, Some(held), "{word}");
    }
    let mut world = fleet("10:00", nodes());
    assert_eq!(hold(&mut world, named("gpu-3"), 60).not_found.as_deref(), Some("gpu-3"));
    assert_eq!(count(&world, "hold"), 0);
}

#[test]
fn of_several_nodes_none_is_taken_for_the_one_that_is_meant() {
    let gone = || node("i-z").gone();
    let rows = [
        (vec![gone(), node("i-a"), node("i-b")], vec![id("i-a"), id("i-b")]),
        (vec![gone()], vec![]),
        (vec![node("i-c").in_pool("batch")], vec![]),
    ];
    for (nodes, which) in rows {
        let mut world = fleet("10:00", nodes);
        assert_eq!(hold(&mut world, only(), 60).obeyed, Some(Obeyed::Which(which)));
        assert_eq!(count(&world, "hold"), 0);
    }
    let mut world = fleet("10:00", [gone(), node("i-a")]);
    assert!(matches!(hold(&mut world, only(), 60).obeyed, Some(Obeyed::Held { .. })), "one is alive");
}

#[test]
fn a_release_ends_the_ledgers_hold_and_tells_of_the_tags() {
    let stood =
        |until: &str| Hold { until: at(until), note: "a demonstration (cli:anna)".to_owned(), since: at("10:00") };
    let released = |was, by_tag| Some(Obeyed::Released { pool: voice(), node: id("i-a"), was, by_tag });
    let mut world = fleet("10:00", [node("i-a").running_since("08:00")]);
    hold(&mut world, only(), 600);
    let outcome = order(&mut world, Order::Release { target: only() });
    assert_eq!(
        (outcome.obeyed.clone(), said(&outcome)),
        (released(Some(stood("20:00")), false), vec![(EffectKind::Released, "cli:anna")])
    );
    assert_eq!(world.record(&voice()).node(&id("i-a")).hold, None);
    assert_eq!(order(&mut world, Order::Release { target: only() }).obeyed, released(None, false), "a second time");
    hold(&mut world, only(), 10);
    world.set_now(at("10:10"));
    assert_eq!(order(&mut world, Order::Release { target: only() }).obeyed, released(None, false), "it had ended");
    let mut seen = node("i-a").running_since("08:00").seen();
    seen.tags.insert("reveille:keep-until".to_owned(), "2026-12-24T18:00Z".to_owned());
    let mut world = world_at(at("10:00"), [seen]);
    assert_eq!(order(&mut world, Order::Release { target: named("i-a") }).obeyed, released(None, true));
}

#[test]
fn two_holds_keep_their_node_to_the_later_end() {
    let mut world = fleet("10:00", [node("i-a").running_since("08:00").ready_since("08:01")]);
    hold(&mut world, only(), 600);
    world.set_now(at("10:30"));
    let ben = Order::Hold { target: only(), lasts: minutes(30), note: "a demo".to_owned() };
    let outcome = order_while(&mut world, ben, |_| {});
    let Some(Obeyed::Held { until, was: Some(was), .. }) = outcome.obeyed else { panic!("it is held") };
    assert_eq!((until, was.note.as_str()), (at("20:00"), "a demonstration (cli:anna)"));
    let kept = world.record(&voice()).node(&id("i-a")).hold.expect("a hold");
    assert_eq!(kept.note, "a demo (cli:ben); a demonstration (cli:anna)");
    // A longer one replaces the end, and an old one that is over has no say.
    assert!(matches!(hold(&mut world, only(), 660).obeyed, Some(Obeyed::Held { until, .. }) if until == at("21:30")));
    world.set_now(at("22:00"));
    assert_eq!(hold(&mut world, only(), 10).obeyed, held("i-a", "22:10", Phase::Ready));
}

#[test]
fn a_hold_that_was_made_in_the_same_second_is_not_cut_short() {
    let mut world = fleet("10:00", [node("i-a").running_since("08:00").ready_since("08:01")]);
    let ben = Order::Hold { target: only(), lasts: minutes(60), note: "a demo".to_owned() };
    let outcome = order_while(&mut world, ben, |world| drop(hold(world, only(), 600)));
    let Some(Obeyed::Held { until, was: Some(was), .. }) = outcome.obeyed else { panic!("it is held") };
    assert_eq!((until, was.note.as_str()), (at("20:00"), "a demonstration (cli:anna)"));
    assert_eq!(world.record(&voice()).node(&id("i-a")).hold.map(|hold| hold.until), Some(at("20:00")));
}

#[test]
fn a_hold_says_where_it_comes_too_late() {
    let mut world = fleet("10:00", [node("i-a")]);
    assert_eq!(hold(&mut world, only(), 60).obeyed, held("i-a", "11:00", Phase::Stopped), "it starts nothing");
    // Idle since eight: the ticks claim a STOP and send it.
    let mut world = fleet("10:00", [node("i-a").running_since("07:00").ready_since("07:01")]);
    ticks(&mut world, "10:00", "10:05");
    let late = Order::Hold { target: only(), lasts: minutes(60), note: "a demo".to_owned() };
    let outcome = order_while(&mut world, late, |world| drop(ticks(world, "10:10", "10:10")));
    assert_eq!(stops(&world).len(), 1);
    assert_eq!(outcome.obeyed, held("i-a", "11:05", Phase::Stopping), "the claim was written before the hold");
}

#[test]
fn a_name_that_two_nodes_have_means_none_of_them() {
    let nodes = || [node("i-a").named("gpu"), node("i-b").named("gpu"), node("i-c").named("i-a")];
    let mut world = fleet("10:00", nodes());
    assert_eq!(hold(&mut world, named("gpu"), 60).obeyed, Some(Obeyed::Which(vec![id("i-a"), id("i-b")])));
    assert_eq!(count(&world, "hold"), 0);
    assert_eq!(hold(&mut world, named("i-a"), 60).obeyed, held("i-a", "11:00", Phase::Stopped), "an id is one node's");
}

fn gate_of(by: GateKeeper, until: Option<&str>, drain: bool) -> Gate {
    let (since, until): (Instant, _) = (at("09:00"), until.map(at));
    Gate { by, since, reason: "stood".to_owned(), amount: None, until, drain }
}

#[test]
fn a_gate_that_is_closed_again_opens_no_earlier_and_drains_no_less() {
    use GateKeeper::{Budget, Person};
    // What stands; for how long and with what drain it is closed again; whose it is then, until when, with a drain.
    let table = [
        (gate_of(Budget, Some("24:00"), true), Some(120), false, (Budget, Some("24:00"), true)),
        (gate_of(Budget, Some("24:00"), false), Some(120), true, (Budget, Some("24:00"), true)),
        (gate_of(Budget, Some("11:00"), true), Some(120), false, (Person, Some("12:00"), true)),
        (gate_of(Budget, Some("24:00"), true), None, false, (Person, None, true)),
        (gate_of(Person, None, false), Some(10), false, (Person, None, false)),
        (gate_of(Person, Some("10:30"), false), Some(60), false, (Person, Some("11:00"), false)),
        // It is over.
        (gate_of(Person, Some("09:30"), true), Some(60), false, (Person, Some("11:00"), false)),
    ];
    for (standing, lasts, drain, (by, until, drains)) in table {
        let mut world = fleet("10:00", [node("i-a")]);
        world.record(&voice()).gate = Some(standing.clone());
        let outcome = close(&mut world, lasts, drain);
        let Some(Obeyed::Closed { gate, was, .. }) = outcome.obeyed else { panic!("it is closed") };
        assert_eq!((gate.by, gate.until, gate.drain), (by, until.map(at), drains), "{standing:?}");
        assert_eq!(world.record(&voice()).gate, Some(gate.clone()), "{standing:?}");
        let is_as_it_was = gate == standing;
        assert_eq!((count(&world, "set_gate"), outcome.effects.len()), if is_as_it_was { (0, 0) } else { (1, 1) });
        assert_eq!(was, Some(standing).filter(|was| was.until != Some(at("09:30"))));
    }
}

#[test]
fn a_gate_that_the_guard_closes_in_the_same_second_is_joined_with_the_persons() {
    let mut world = fleet("10:00", [node("i-a")]);
    let order = Order::CloseGate { pool: voice(), lasts: Some(minutes(60)), drain: false, note: "moving".to_owned() };
    let budget = gate_of(GateKeeper::Budget, Some("24:00"), true);
    let outcome = order_while(&mut world, order, |world| {
        let (pool, by, gate, at) = (voice(), GateKeeper::Budget, Some(budget.clone()), at("10:00"));
        world.answer(&Call::SetGate { pool, by, gate, at });
    });
    assert_eq!(outcome.obeyed, Some(Obeyed::Closed { pool: voice(), gate: budget.clone(), was: Some(budget.clone()) }));
    assert_eq!(world.record(&voice()).gate, Some(budget));
}

#[test]
fn a_gate_closed_by_a_person_takes_no_wake_until_its_end() {
    let mut world = fleet("10:00", [node("i-a")]);
    let outcome = close(&mut world, Some(60), false);
    let Some(Obeyed::Closed { gate, was: None, .. }) = &outcome.obeyed else { panic!("it is closed") };
    assert_eq!((gate.until, gate.by), (Some(at("11:00")), GateKeeper::Person));
    assert_eq!(said(&outcome), [(EffectKind::GateClosed, "maintenance (cli:anna)")]);
    let answer = only_answer(&prewarm_at(&mut world, "10:59"));
    assert_eq!((answer.reason, answer.gate_reason.as_deref()), (Reason::GateClosed, Some("maintenance")), "no name");
    prewarm_at(&mut world, "11:00");
    assert_eq!(starts(&world).len(), 1);
}

#[test]
fn a_gate_without_an_end_is_opened_by_a_person_and_not_by_the_guard() {
    let mut world = fleet("10:00", [node("i-a")]);
    close(&mut world, None, false);
    guard(&mut world, &enforcing(Enforce::Gate, "100"));
    let was = world.record(&voice()).gate.clone();
    assert_eq!(was.as_ref().map(|gate| gate.by), Some(GateKeeper::Person));
    let outcome = open(&mut world);
    assert_eq!(outcome.obeyed, Some(Obeyed::Opened { pool: voice(), was }));
    assert_eq!(said(&outcome), [(EffectKind::GateOpened, "it is over (cli:anna)")]);
    prewarm(&mut world);
    assert_eq!(starts(&world).len(), 1);
    assert_eq!(open(&mut world).obeyed, Some(Obeyed::Opened { pool: voice(), was: None }), "it was open");
}

#[test]
fn a_drain_stops_what_runs_once_no_call_is_left() {
    let mut world = fleet("10:00", [node("i-a").running_since("09:00").ready_since("09:01")]);
    request(&mut world, "i-a", "09:58");
    close(&mut world, None, true);
    ticks(&mut world, "10:00", "10:15");
    assert_eq!(stops(&world).len(), 1, "though it was used within the idle time");
}

#[test]
fn a_person_opens_the_gate_of_a_spent_budget_and_the_guard_closes_it_again() {
    let mut world = fleet("10:00", [node("i-a")]);
    aws_shows(&mut world, &enforcing(Enforce::Gate, "100"), "100");
    guard(&mut world, &enforcing(Enforce::Gate, "100"));
    let Some(Obeyed::Opened { was: Some(was), .. }) = open(&mut world).obeyed else { panic!("it was closed") };
    assert_eq!((was.by, was.until), (GateKeeper::Budget, Some(at("24:00"))));
    assert_eq!(only_answer(&prewarm(&mut world)).reason, Reason::AlreadyStarting);
    world.set_now(at("11:00"));
    guard(&mut world, &enforcing(Enforce::Gate, "100"));
    assert_eq!(only_answer(&prewarm(&mut world)).reason, Reason::GateClosed);
}

#[test]
fn what_cannot_be_read_or_written_is_told_and_nothing_is_done() {
    for (call, writes) in [("describe", 0), ("read_ledger", 0), ("hold", 1)] {
        let mut world = fleet("10:00", [node("i-a").running_since("08:00")]);
        fail(&mut world, call, "AccessDeniedException");
        let outcome = hold(&mut world, only(), 60);
        let code = outcome.blind.as_ref().map(|error| error.code.as_str());
        assert_eq!((code, outcome.obeyed.is_none()), (Some("AccessDeniedException"), true), "{call}");
        assert_eq!((count(&world, "hold"), said(&outcome)), (writes, vec![]), "{call}");
        assert_eq!(state(&world, "i-a"), NodeState::Running);
    }
}
