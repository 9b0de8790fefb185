//! Leases: given where what they were decided on still stands, renewed and ended by whom they belong to.

use crate::bench::{Bench, claim, claim_of, demand, id, lease_id, morning, pool, record, run, seconds, voice, wake};
use chrono::TimeDelta;
use reveille::domain::{
    Claim, ClaimKind, Gate, GateKeeper, Instant, Lease, LeaseId, NodeId, NodeRecord, PoolRecord, Wake, WakeSource,
};
use reveille::run::{
    Call, Claimed, Demanded, LeaseGround, Leased, Permit, Waiting, fact_name, take_claim, take_demand, take_gate_set,
    take_lease, take_ledger,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

const APP: &str = "token:app";
const OTHER: &str = "iam:role/other";

fn gpu() -> NodeId {
    id("i-0123456789abcdef0")
}

fn other_gpu() -> NodeId {
    id("i-0123456789abcdef1")
}

fn at(n: i64) -> Instant {
    morning() + seconds(n)
}

/// Taken at one second of the morning for another.
fn lease(from: i64, until: i64) -> Lease {
    Lease { by: APP.to_owned(), at: at(from), until: at(until) }
}

/// A node without a claim and without leases.
fn first(most: u32) -> LeaseGround {
    LeaseGround { claim: None, most, is_first: true, over: Vec::new(), was_waiting: false }
}

/// A node with leases, of which these ran out.
fn next(most: u32, over: &[&str]) -> LeaseGround {
    let over = over.iter().map(|word| lease_id(word)).collect();
    LeaseGround { is_first: false, over, ..first(most) }
}

/// What a run would decide on.
fn seen(item: &PoolRecord, most: u32, now: Instant) -> LeaseGround {
    let known = item.node(&gpu());
    LeaseGround {
        claim: known.claim.as_ref().map(|claim| (claim.run.clone(), claim.kind)),
        is_first: known.leases.is_empty(),
        over: known.leases.iter().filter(|(_, lease)| !lease.is_live(now)).map(|(id, _)| id.clone()).collect(),
        ..first(most)
    }
}

fn give_call(word: &str, lease: &Lease, ground: &LeaseGround) -> Call {
    let (pool, node, id) = (voice(), gpu(), lease_id(word));
    Call::GiveLease { pool, node, id, lease: lease.clone(), ground: ground.clone() }
}

async fn leased(bench: &mut impl Bench, call: &Call) -> Leased {
    take_lease(Some(bench.answer(call).await)).expect("no error, whatever the item is like")
}

/// Gives a lease that is to be given.
async fn given(bench: &mut impl Bench, word: &str, lease: &Lease, ground: &LeaseGround) -> PoolRecord {
    done(bench, &give_call(word, lease, ground)).await
}

async fn renew(bench: &mut impl Bench, word: &str, lease: &Lease) -> Leased {
    let (pool, node, id) = (voice(), gpu(), lease_id(word));
    leased(bench, &Call::RenewLease { pool, node, id, lease: lease.clone() }).await
}

fn end_call(word: &str, by: &str, at: Instant) -> Call {
    Call::EndLease { pool: voice(), node: gpu(), id: lease_id(word), by: by.to_owned(), at }
}

/// The item after a call that is to take effect: the answer is what is read.
async fn done(bench: &mut impl Bench, call: &Call) -> PoolRecord {
    let item = match leased(bench, call).await {
        Leased::Done(item) => item,
        Leased::Moved(item) => panic!("{call:?} was to take effect: {item:?}"),
    };
    assert_eq!(record(bench).await, item);
    item
}

/// The call changes nothing, and answers the item as it is.
async fn is_moved(bench: &mut impl Bench, name: &str, call: &Call) {
    let before = record(bench).await;
    assert_eq!(leased(bench, call).await, Leased::Moved(before.clone()), "{name}");
    assert_eq!(record(bench).await, before, "{name}");
}

fn leases(entries: &[(&str, Lease)]) -> BTreeMap<LeaseId, Lease> {
    entries.iter().map(|(word, lease)| (lease_id(word), lease.clone())).collect()
}

fn node_with(entries: &[(&str, Lease)], leased: Instant) -> NodeRecord {
    NodeRecord { leases: leases(entries), leased: Some(leased), ..NodeRecord::default() }
}

fn pool_with(demand: u64, node: NodeRecord) -> PoolRecord {
    PoolRecord { demand, nodes: BTreeMap::from([(gpu(), node)]), ..PoolRecord::default() }
}

// -- given

pub(crate) async fn the_first_lease_of_a_node_moves_demand(bench: &mut impl Bench) {
    let item = given(bench, "call-1", &lease(0, 60), &first(4)).await;
    assert_eq!(item, pool_with(1, node_with(&[("call-1", lease(0, 60))], at(0))), "in an item that was not there");
    let others = Call::ReadLedger { pools: BTreeSet::from([pool("batch")]) };
    let others = take_ledger(Some(bench.answer(&others).await)).expect("read ledger");
    assert_eq!(others[&pool("batch")], PoolRecord::default(), "another pool's item is its own");
}

pub(crate) async fn leases_stand_beside_each_other_and_beside_other_facts(bench: &mut impl Bench) {
    let start = claim_of(ClaimKind::Start, "run-1");
    claim(bench, &gpu(), Permit { claims: 0, demand: None }, &start).await;
    demand(bench).await;
    let ground = LeaseGround { claim: Some((run("run-1"), ClaimKind::Start)), ..first(4) };
    let foreign = Lease { by: OTHER.to_owned(), ..lease(1, 61) };
    given(bench, "call-1", &lease(0, 60), &ground).await;
    let item = given(bench, "call.2_B-x", &foreign, &LeaseGround { is_first: false, ..ground }).await;
    let both = [("call-1", lease(0, 60)), ("call.2_B-x", foreign)];
    let node = NodeRecord { claim: Some(start), ..node_with(&both, at(1)) };
    let expected = PoolRecord { claims: 1, wake: Some(wake(morning())), ..pool_with(3, node) };
    assert_eq!(item, expected);
}

pub(crate) async fn leases_of_two_nodes_are_told_apart(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(1)).await;
    let (pool, ground) = (voice(), first(1));
    let call = Call::GiveLease { pool, node: other_gpu(), id: lease_id("call-2"), lease: lease(1, 61), ground };
    let item = done(bench, &call).await;
    assert_eq!(item.node(&gpu()), node_with(&[("call-1", lease(0, 60))], at(0)));
    assert_eq!(item.node(&other_gpu()), node_with(&[("call-2", lease(1, 61))], at(1)));
}

pub(crate) async fn a_node_that_lost_its_last_lease_takes_another(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(1)).await;
    done(bench, &end_call("call-1", APP, at(5))).await;
    let item = given(bench, "call-2", &lease(10, 70), &first(1)).await;
    assert_eq!(item, pool_with(2, node_with(&[("call-2", lease(10, 70))], at(10))), "seen as empty");
    done(bench, &end_call("call-2", APP, at(15))).await;
    let item = given(bench, "call-3", &lease(20, 80), &next(1, &[])).await;
    let expected = pool_with(3, node_with(&[("call-3", lease(20, 80))], at(20)));
    assert_eq!(item, expected, "seen with a lease that was ended meanwhile");
}

pub(crate) async fn a_node_takes_as_many_as_it_has_room_for(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(3)).await;
    for word in ["call-2", "call-3"] {
        given(bench, word, &lease(1, 61), &next(3, &[])).await;
    }
    is_moved(bench, "full", &give_call("call-4", &lease(2, 62), &next(3, &[]))).await;
    done(bench, &end_call("call-2", APP, at(5))).await;
    let item = given(bench, "call-4", &lease(6, 66), &next(3, &[])).await;
    assert_eq!(item.node(&gpu()).leases.len(), 3);
    let wider = given(bench, "call-5", &lease(7, 67), &next(4, &[])).await;
    assert_eq!(wider.node(&gpu()).leases.len(), 4, "room that was made by the settings");
    is_moved(bench, "over-full", &give_call("call-6", &lease(8, 68), &next(2, &[]))).await;
}

pub(crate) async fn leases_that_ran_out_are_cleared_as_one_is_given(bench: &mut impl Bench) {
    given(bench, "old-1", &lease(0, 30), &first(4)).await;
    given(bench, "old-2", &lease(0, 60), &next(4, &[])).await;
    given(bench, "live", &lease(0, 61), &next(4, &[])).await;
    let item = given(bench, "new", &lease(60, 120), &next(4, &["old-1", "old-2"])).await;
    let left = [("live", lease(0, 61)), ("new", lease(60, 120))];
    assert_eq!(item, pool_with(4, node_with(&left, at(60))), "a lease is over at its end");
}

pub(crate) async fn a_node_full_of_leases_that_ran_out_has_room(bench: &mut impl Bench) {
    given(bench, "old-1", &lease(0, 30), &first(2)).await;
    given(bench, "old-2", &lease(0, 30), &next(2, &[])).await;
    is_moved(bench, "none is cleared", &give_call("new-1", &lease(40, 90), &next(2, &[]))).await;
    given(bench, "new-1", &lease(40, 90), &next(2, &["old-1"])).await;
    is_moved(bench, "cleared already", &give_call("new-2", &lease(41, 91), &next(2, &["old-1"]))).await;
    let item = given(bench, "new-2", &lease(41, 91), &next(2, &["old-2"])).await;
    let left = [("new-1", lease(40, 90)), ("new-2", lease(41, 91))];
    assert_eq!(item, pool_with(4, node_with(&left, at(41))));
}

pub(crate) async fn a_hundred_leases_that_ran_out_are_cleared_at_once(bench: &mut impl Bench) {
    for n in 0..100 {
        let ground = if n == 0 { first(100) } else { next(100, &[]) };
        given(bench, &format!("call-{n}"), &lease(0, 60), &ground).await;
    }
    let full = record(bench).await;
    let ground = seen(&full, 100, at(60));
    assert_eq!(ground.over.len(), 100);
    let item = given(bench, "new", &lease(60, 120), &ground).await;
    assert_eq!(item, pool_with(101, node_with(&[("new", lease(60, 120))], at(60))));
}

pub(crate) async fn a_lease_that_was_renewed_meanwhile_is_not_cleared(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(1)).await;
    assert!(matches!(renew(bench, "call-1", &lease(50, 110)).await, Leased::Done(_)));
    is_moved(bench, "renewed", &give_call("call-2", &lease(61, 121), &next(1, &["call-1"]))).await;
    is_moved(bench, "a second before its end", &give_call("call-2", &lease(109, 121), &next(1, &["call-1"]))).await;
    let item = given(bench, "call-2", &lease(110, 170), &next(1, &["call-1"])).await;
    assert_eq!(item.node(&gpu()).leases, leases(&[("call-2", lease(110, 170))]));
}

pub(crate) async fn an_id_that_is_there_is_not_given_again(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    is_moved(bench, "live", &give_call("call-1", &lease(10, 70), &next(4, &[]))).await;
    is_moved(bench, "seen as the first", &give_call("call-1", &lease(10, 70), &first(4))).await;
    let foreign = Lease { by: OTHER.to_owned(), ..lease(10, 70) };
    is_moved(bench, "by another caller", &give_call("call-1", &foreign, &next(4, &[]))).await;
    is_moved(bench, "run out", &give_call("call-1", &lease(90, 150), &next(4, &[]))).await;
    is_moved(bench, "run out and to be cleared", &give_call("call-1", &lease(90, 150), &next(4, &["call-1"]))).await;
    is_moved(bench, "another is no longer the first", &give_call("call-2", &lease(10, 70), &first(4))).await;
}

pub(crate) async fn a_claim_since_the_look_takes_the_ground_of_a_lease(bench: &mut impl Bench) {
    let on =
        |claim: Option<(&str, ClaimKind)>| LeaseGround { claim: claim.map(|(by, kind)| (run(by), kind)), ..first(4) };
    let call = |ground: &LeaseGround| give_call("call-1", &lease(0, 60), ground);
    is_moved(bench, "a claim that is gone", &call(&on(Some(("run-1", ClaimKind::Start))))).await;
    let newer = |claims, kind, by: &str| (Permit { claims, demand: None }, claim_of(kind, by));
    let (permit, start) = newer(0, ClaimKind::Start, "run-1");
    claim(bench, &gpu(), permit, &start).await;
    is_moved(bench, "claimed for START since there was none", &call(&on(None))).await;
    is_moved(bench, "by another run", &call(&on(Some(("run-2", ClaimKind::Start))))).await;
    is_moved(bench, "of another kind", &call(&on(Some(("run-1", ClaimKind::Stop))))).await;
    let (permit, stop) = newer(1, ClaimKind::Stop, "run-2");
    claim(bench, &gpu(), permit, &stop).await;
    is_moved(bench, "claimed for STOP since", &call(&on(Some(("run-1", ClaimKind::Start))))).await;
    let (permit, start) = newer(2, ClaimKind::Start, "run-3");
    claim(bench, &other_gpu(), permit, &start).await;
    let item = done(bench, &call(&on(Some(("run-2", ClaimKind::Stop))))).await;
    let expected = NodeRecord { claim: Some(stop), ..node_with(&[("call-1", lease(0, 60))], at(0)) };
    assert_eq!(item.node(&gpu()), expected, "a claim of another node is beside the point");
    let ground = LeaseGround { is_first: false, ..on(Some(("run-2", ClaimKind::Start))) };
    is_moved(bench, "beside other leases too", &give_call("call-2", &lease(0, 60), &ground)).await;
}

fn gate(by: GateKeeper, until: Option<Instant>) -> Gate {
    Gate { by, since: morning(), reason: "closed".to_owned(), amount: None, until, drain: true }
}

async fn set_gate(bench: &mut impl Bench, gate: Option<Gate>) {
    let call = Call::SetGate { pool: voice(), by: GateKeeper::Budget, gate, at: morning() };
    assert!(matches!(take_gate_set(Some(bench.answer(&call).await)), Ok(Some(_))));
}

pub(crate) async fn a_closed_gate_gives_no_lease_and_the_item_tells_so(bench: &mut impl Bench) {
    let closed = gate(GateKeeper::Budget, Some(at(3600)));
    set_gate(bench, Some(closed.clone())).await;
    is_moved(bench, "the first", &give_call("call-1", &lease(0, 60), &first(4))).await;
    assert_eq!(record(bench).await, PoolRecord { claims: 1, gate: Some(closed.clone()), ..PoolRecord::default() });
    set_gate(bench, None).await;
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    for gate in [closed, gate(GateKeeper::Budget, None), gate(GateKeeper::Person, None)] {
        set_gate(bench, Some(gate.clone())).await;
        is_moved(bench, "another", &give_call("call-2", &lease(0, 60), &next(4, &[]))).await;
        assert_eq!(record(bench).await.closed_gate(at(0)), Some(&gate));
    }
}

pub(crate) async fn a_gate_whose_end_has_passed_gives_leases(bench: &mut impl Bench) {
    set_gate(bench, Some(gate(GateKeeper::Person, Some(at(60))))).await;
    is_moved(bench, "a second before its end", &give_call("call-1", &lease(59, 120), &first(4))).await;
    given(bench, "call-1", &lease(60, 120), &first(4)).await;
    let late = Lease { at: at(60) + TimeDelta::milliseconds(400), ..lease(60, 120) };
    let item = given(bench, "call-2", &late, &next(4, &[])).await;
    assert_eq!((item.demand, item.gate.is_some(), item.node(&gpu()).leases.len()), (2, true, 2));
}

pub(crate) async fn a_call_that_gets_its_lease_waits_no_longer(bench: &mut impl Bench) {
    for word in ["call-1", "call-2"] {
        let waiting = Waiting { call: Some((lease_id(word), at(180))), over: Vec::new() };
        let wake = Wake::new(at(0), WakeSource::Call);
        let call = Call::RecordDemand { pool: voice(), node: None, wake, cap: None, waiting };
        let answered = take_demand(Some(bench.answer(&call).await));
        assert!(matches!(answered, Ok(Demanded::Recorded(_))), "{answered:?}");
    }
    let full = give_call("call-1", &lease(5, 65), &LeaseGround { was_waiting: true, ..next(0, &[]) });
    is_moved(bench, "no lease, and it goes on waiting", &full).await;
    let item = given(bench, "call-1", &lease(5, 65), &LeaseGround { was_waiting: true, ..first(4) }).await;
    assert_eq!(item.waiting, BTreeMap::from([(lease_id("call-2"), at(180))]));
    let ground = LeaseGround { was_waiting: true, ..next(4, &[]) };
    let item = given(bench, "call-3", &lease(6, 66), &ground).await;
    assert_eq!(item.waiting.len(), 1, "a wait that was cleared meanwhile does no harm");
    let item = given(bench, "call-2", &lease(7, 67), &ground).await;
    assert_eq!((item.demand, item.waiting), (5, BTreeMap::new()));
}

/// All at once, each on what it saw; who lost it sees it anew, until nobody gets one any more.
async fn storm(bench: &mut impl Bench, calls: usize, most: u32, now: i64) -> BTreeSet<LeaseId> {
    let mut ground = seen(&record(bench).await, most, at(now));
    let mut open: Vec<String> = (0..calls).map(|n| format!("storm-{n}")).collect();
    let mut given = BTreeSet::new();
    loop {
        let asked: Vec<Call> = open.iter().map(|word| give_call(word, &lease(now, now + 60), &ground)).collect();
        let answers = bench.answers(&asked).await;
        let before = given.len();
        let mut left = Vec::new();
        for (word, answer) in open.into_iter().zip(answers) {
            match take_lease(Some(answer)).expect("a storm is no error") {
                Leased::Done(item) => {
                    assert!(item.node(&gpu()).leases.contains_key(&lease_id(&word)), "{word}: {item:?}");
                    given.insert(lease_id(&word));
                }
                Leased::Moved(_) => left.push(word),
            }
        }
        open = left;
        ground = seen(&record(bench).await, most, at(now));
        if given.len() == before {
            return given;
        }
    }
}

pub(crate) async fn four_of_twelve_calls_at_once_fit_on_a_node_for_four(bench: &mut impl Bench) {
    let given = storm(bench, 12, 4, 0).await;
    assert_eq!(given.len(), 4);
    let item = record(bench).await;
    assert_eq!((item.demand, item.node(&gpu()).leases.keys().cloned().collect()), (4, given), "a node without a map");
    let given = storm(bench, 12, 4, 60).await;
    assert_eq!(given.len(), 4);
    let item = record(bench).await;
    assert_eq!((item.demand, item.node(&gpu()).leases.keys().cloned().collect()), (8, given), "full of others' ends");
}

pub(crate) async fn four_of_twelve_calls_at_once_get_in_with_one_look(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    done(bench, &end_call("call-1", APP, at(1))).await;
    let call = |n: usize| give_call(&format!("storm-{n}"), &lease(2, 62), &next(4, &[]));
    let answers = bench.answers(&(0..12).map(call).collect::<Vec<_>>()).await.into_iter();
    let answers = answers.map(|answer| take_lease(Some(answer)).expect("a storm is no error"));
    let (done, moved): (Vec<Leased>, Vec<Leased>) = answers.partition(|answer| matches!(answer, Leased::Done(_)));
    assert_eq!(done.len(), 4);
    let item = record(bench).await;
    assert_eq!((item.demand, item.node(&gpu()).leases.len()), (5, 4));
    assert!(moved.iter().all(|answer| *answer == Leased::Moved(item.clone())), "each sees the full node: {moved:?}");
}

// -- renewed

pub(crate) async fn a_live_lease_is_renewed_by_its_caller(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    given(bench, "call-2", &lease(0, 60), &next(4, &[])).await;
    let Leased::Done(item) = renew(bench, "call-1", &lease(59, 119)).await else { panic!("it is live") };
    let both = [("call-1", lease(0, 119)), ("call-2", lease(0, 60))];
    assert_eq!(item, pool_with(2, node_with(&both, at(59))), "it began when it was given, and no demand is new");
    assert_eq!(record(bench).await, item);
    let Leased::Done(item) = renew(bench, "call-1", &lease(61, 90)).await else { panic!("it is live") };
    let shorter = [("call-1", lease(0, 90)), ("call-2", lease(0, 60))];
    assert_eq!(item, pool_with(2, node_with(&shorter, at(61))), "by the newest word, also where that is shorter");
}

pub(crate) async fn a_lease_that_is_not_the_callers_or_not_live_is_not_renewed(bench: &mut impl Bench) {
    let renew = |word: &str, lease: Lease| {
        let (pool, node, id) = (voice(), gpu(), lease_id(word));
        Call::RenewLease { pool, node, id, lease }
    };
    is_moved(bench, "there is no item", &renew("call-1", lease(10, 70))).await;
    assert_eq!(record(bench).await, PoolRecord::default(), "and none is made");
    demand(bench).await;
    is_moved(bench, "the node has no leases", &renew("call-1", lease(10, 70))).await;
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    is_moved(bench, "another id", &renew("call-2", lease(10, 70))).await;
    is_moved(bench, "another caller", &renew("call-1", Lease { by: OTHER.to_owned(), ..lease(10, 70) })).await;
    is_moved(bench, "at its end", &renew("call-1", lease(60, 120))).await;
    is_moved(bench, "long after", &renew("call-1", lease(3600, 3660))).await;
    done(bench, &end_call("call-1", APP, at(20))).await;
    is_moved(bench, "ended, and the map is empty", &renew("call-1", lease(21, 81))).await;
}

pub(crate) async fn a_renewal_is_held_to_the_instant_of_the_call(bench: &mut impl Bench) {
    let with_fraction = |lease: Lease, fraction| Lease { at: lease.at + TimeDelta::milliseconds(fraction), ..lease };
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    let late = with_fraction(lease(60, 120), 400);
    let (pool, node, id) = (voice(), gpu(), lease_id("call-1"));
    is_moved(bench, "in the second after its end", &Call::RenewLease { pool, node, id, lease: late }).await;
    let last = with_fraction(lease(59, 120), 999);
    let Leased::Done(item) = renew(bench, "call-1", &last).await else { panic!("it is live") };
    assert_eq!(item, pool_with(1, node_with(&[("call-1", lease(0, 120))], last.at)), "in its last second");
}

pub(crate) async fn a_lease_is_over_within_the_second_of_its_end_for_those_that_follow(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(1)).await;
    let before = Lease { at: at(59) + TimeDelta::milliseconds(999), ..lease(59, 120) };
    is_moved(bench, "live", &give_call("call-2", &before, &next(1, &["call-1"]))).await;
    let after = Lease { at: at(60) + TimeDelta::milliseconds(1), ..lease(60, 120) };
    let item = given(bench, "call-2", &after, &next(1, &["call-1"])).await;
    assert_eq!(item.node(&gpu()), node_with(&[("call-2", after.clone())], after.at));
}

pub(crate) async fn a_closed_gate_cuts_no_call_in_progress(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    set_gate(bench, Some(gate(GateKeeper::Person, None))).await;
    let Leased::Done(item) = renew(bench, "call-1", &lease(10, 70)).await else { panic!("the gate has no say") };
    assert_eq!((item.demand, item.node(&gpu()).leases), (1, leases(&[("call-1", lease(0, 70))])));
    let item = done(bench, &end_call("call-1", APP, at(20))).await;
    assert_eq!(item.node(&gpu()), node_with(&[], at(20)));
}

pub(crate) async fn a_claim_keeps_no_lease_from_being_renewed(bench: &mut impl Bench) {
    let item = given(bench, "call-1", &lease(0, 60), &first(4)).await;
    let stop: Claim = claim_of(ClaimKind::Stop, "run-1");
    let look = Permit { claims: 0, demand: Some(1) };
    assert!(matches!(claim_as_leased(bench, look, &stop, item.node(&gpu()).leased).await, Claimed::Granted(_)));
    let Leased::Done(item) = renew(bench, "call-1", &lease(10, 70)).await else { panic!("it is live") };
    let node = NodeRecord { claim: Some(stop), ..node_with(&[("call-1", lease(0, 70))], at(10)) };
    assert_eq!(item, PoolRecord { claims: 1, ..pool_with(1, node) });
}

/// A STOP is claimed on the node's stamp too: a renewal moves that, and no demand.
pub(crate) async fn a_lease_loses_a_stop_its_claim(bench: &mut impl Bench) {
    let mut seen = given(bench, "call-1", &lease(0, 60), &first(4)).await;
    let stop = claim_of(ClaimKind::Stop, "run-1");
    let look = |seen: &PoolRecord| (Permit { claims: 0, demand: Some(seen.demand) }, seen.node(&gpu()).leased);
    let (permit, leased) = look(&seen);
    renew(bench, "call-1", &lease(10, 70)).await;
    let lost = claim_as_leased(bench, permit, &stop, leased).await;
    seen = record(bench).await;
    assert_eq!(lost, Claimed::Lost(seen.clone()), "a renewal");
    let (permit, leased) = look(&seen);
    given(bench, "call-2", &lease(11, 71), &next(4, &[])).await;
    let lost = claim_as_leased(bench, permit, &stop, leased).await;
    seen = record(bench).await;
    assert_eq!(lost, Claimed::Lost(seen.clone()), "a new lease");
    let (permit, leased) = look(&seen);
    let on_another = claim(bench, &other_gpu(), permit, &claim_of(ClaimKind::Stop, "run-2")).await;
    assert!(matches!(on_another, Claimed::Granted(_)), "the node beside it has no lease");
    let granted = claim_as_leased(bench, Permit { claims: 1, ..permit }, &stop, leased).await;
    assert_eq!(granted, Claimed::Granted(record(bench).await), "nothing has moved");
}

/// The claim of a STOP that saw this stamp.
async fn claim_as_leased(bench: &mut impl Bench, permit: Permit, claim: &Claim, leased: Option<Instant>) -> Claimed {
    let (pool, node, claim) = (voice(), gpu(), claim.clone());
    take_claim(Some(bench.answer(&Call::Claim { pool, node, permit, claim, leased }).await)).expect("claim")
}

// -- ended

pub(crate) async fn a_lease_is_ended_by_its_caller(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    given(bench, "call-2", &lease(0, 60), &next(4, &[])).await;
    let item = done(bench, &end_call("call-1", APP, at(30))).await;
    let left = [("call-2", lease(0, 60))];
    assert_eq!(item, pool_with(2, node_with(&left, at(30))), "demand stays: nobody wants more");
    let item = done(bench, &end_call("call-2", APP, at(90) + TimeDelta::milliseconds(250))).await;
    let expected = node_with(&[], at(90) + TimeDelta::milliseconds(250));
    assert_eq!(item.node(&gpu()), expected, "one that ran out too");
}

pub(crate) async fn a_lease_that_is_not_the_callers_or_not_there_is_not_ended(bench: &mut impl Bench) {
    is_moved(bench, "there is no item", &end_call("call-1", APP, at(10))).await;
    assert_eq!(record(bench).await, PoolRecord::default(), "and none is made");
    demand(bench).await;
    is_moved(bench, "the node has no leases", &end_call("call-1", APP, at(10))).await;
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    is_moved(bench, "another id", &end_call("call-2", APP, at(10))).await;
    is_moved(bench, "another caller", &end_call("call-1", OTHER, at(10))).await;
    is_moved(bench, "another caller, after it ran out", &end_call("call-1", OTHER, at(90))).await;
    done(bench, &end_call("call-1", APP, at(10))).await;
    is_moved(bench, "ended already", &end_call("call-1", APP, at(11))).await;
}

pub(crate) async fn no_trace_of_a_node_is_left_by_what_changed_nothing(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    let (pool, node, id) = (voice(), other_gpu(), lease_id("call-1"));
    let renewal = Call::RenewLease { pool, node, id, lease: lease(10, 70) };
    let (pool, node, id) = (voice(), other_gpu(), lease_id("call-1"));
    let end = Call::EndLease { pool, node, id, by: APP.to_owned(), at: at(10) };
    for (name, call) in [("renewed on another node", renewal), ("ended on another node", end)] {
        is_moved(bench, name, &call).await;
    }
    assert_eq!(record(bench).await.nodes.into_keys().collect::<Vec<_>>(), [gpu()]);
}

// -- that cannot be read

pub(crate) async fn leases_of_which_one_cannot_be_read_are_listed_and_none_is_given(bench: &mut impl Bench) {
    given(bench, "call-1", &lease(0, 60), &first(4)).await;
    let before = record(bench).await;
    let good = json!({"by": APP, "at": at(0), "until": at(60)});
    let name = fact_name("leases", &gpu());
    bench.write_unreadable(&name, json!({"call-1": good, "call-2": {"by": APP, "until": "soon"}})).await;
    let item = record(bench).await;
    let node = NodeRecord { leases: BTreeMap::new(), ..before.node(&gpu()) };
    let nodes = BTreeMap::from([(gpu(), node)]);
    assert_eq!(item, PoolRecord { unread: vec![name], nodes, ..before }, "the node is Unknown by that");
    let ground = seen(&item, 4, at(1));
    is_moved(bench, "seen as none", &give_call("call-3", &lease(1, 61), &ground)).await;
    assert_eq!(demand(bench).await.demand, 2, "a wake is taken");
    let (pool, ground) = (voice(), first(4));
    let call = Call::GiveLease { pool, node: other_gpu(), id: lease_id("call-3"), lease: lease(1, 61), ground };
    let item = done(bench, &call).await;
    assert_eq!(item.node(&other_gpu()), node_with(&[("call-3", lease(1, 61))], at(1)), "as is a lease of another node");
}
