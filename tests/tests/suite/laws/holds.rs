//! An operator's hold in the ledger.

use crate::bench::{Bench, claim, claim_of, demand, id, minutes, morning, record, voice, write_facts};
use chrono::TimeDelta;
use reveille::domain::{Boots, ClaimKind, Hold, NodeId, NodeRecord, PoolRecord};
use reveille::run::{Call, Claimed, Fact, Permit, fact_name, take_hold_set};
use serde_json::json;
use std::collections::BTreeMap;

fn gpu() -> NodeId {
    id("i-0123456789abcdef0")
}

fn other_gpu() -> NodeId {
    id("i-0123456789abcdef1")
}

fn hold() -> Hold {
    Hold {
        until: morning() + minutes(600),
        note: "load test, Kim (#ops)".to_owned(),
        since: morning() + TimeDelta::milliseconds(1_250),
    }
}

/// The item after a hold was set or ended.
async fn set(bench: &mut impl Bench, node: &NodeId, hold: Option<Hold>) -> PoolRecord {
    let call = Call::SetHold { pool: voice(), node: node.clone(), hold };
    let before = record(bench).await;
    assert_eq!(take_hold_set(Some(bench.answer(&call).await)), Ok(before), "what stood before is told");
    record(bench).await
}

fn held_by(demand: u64, holds: &[(NodeId, Hold)]) -> PoolRecord {
    let of = |hold: &Hold| NodeRecord { hold: Some(hold.clone()), ..NodeRecord::default() };
    let nodes = holds.iter().map(|(node, hold)| (node.clone(), of(hold))).collect();
    PoolRecord { demand, nodes, ..PoolRecord::default() }
}

pub(crate) async fn a_hold_is_set_replaced_and_ended_and_each_moves_demand(bench: &mut impl Bench) {
    let longer = Hold { until: morning() + minutes(900), note: String::new(), ..hold() };
    assert_eq!(set(bench, &gpu(), Some(hold())).await, held_by(1, &[(gpu(), hold())]), "in an item that was not there");
    let both = [(gpu(), hold()), (other_gpu(), hold())];
    assert_eq!(set(bench, &other_gpu(), Some(hold())).await, held_by(2, &both), "of another node");
    let both = [(gpu(), longer.clone()), (other_gpu(), hold())];
    assert_eq!(set(bench, &gpu(), Some(longer)).await, held_by(3, &both), "replaced");
    assert_eq!(set(bench, &gpu(), None).await, held_by(4, &[(other_gpu(), hold())]), "ended");
    assert_eq!(set(bench, &gpu(), None).await, held_by(5, &[(other_gpu(), hold())]), "ended twice");
    assert_eq!(set(bench, &other_gpu(), None).await, held_by(6, &[]));
}

pub(crate) async fn the_end_of_a_hold_that_never_was_leaves_no_trace_of_its_node(bench: &mut impl Bench) {
    assert_eq!(set(bench, &gpu(), None).await, held_by(1, &[]));
}

pub(crate) async fn a_hold_loses_a_stop_its_claim(bench: &mut impl Bench) {
    for hold in [Some(hold()), None] {
        let seen = record(bench).await;
        let item = set(bench, &gpu(), hold).await;
        let permit = Permit { claims: seen.claims, demand: Some(seen.demand) };
        let lost = claim(bench, &gpu(), permit, &claim_of(ClaimKind::Stop, "run-1")).await;
        assert_eq!(lost, Claimed::Lost(item));
    }
}

pub(crate) async fn a_hold_stands_beside_the_other_facts(bench: &mut impl Bench) {
    claim(bench, &gpu(), Permit { claims: 0, demand: None }, &claim_of(ClaimKind::Start, "run-1")).await;
    let boots = |seconds: &[u32]| Fact::Boots(Some(Boots { seconds: seconds.to_vec() }));
    write_facts(bench, vec![(gpu(), boots(&[44]))]).await.expect("a fact");
    let before = demand(bench).await;
    let held = |hold, boots| NodeRecord { hold, boots, ..before.node(&gpu()) };
    let item = |demand, node| PoolRecord { demand, nodes: BTreeMap::from([(gpu(), node)]), ..before.clone() };
    let learnt = Some(Boots { seconds: vec![44, 55] });
    assert_eq!(set(bench, &gpu(), Some(hold())).await, item(2, held(Some(hold()), before.node(&gpu()).boots)));
    write_facts(bench, vec![(gpu(), boots(&[44, 55]))]).await.expect("a fact");
    assert_eq!(record(bench).await, item(2, held(Some(hold()), learnt.clone())), "facts move no counter");
    assert_eq!(set(bench, &gpu(), None).await, item(3, held(None, learnt)));
    write_facts(bench, vec![(gpu(), Fact::Boots(None))]).await.expect("a fact");
    assert_eq!(record(bench).await, item(3, held(None, None)), "what was learnt is forgotten beside the claim");
}

pub(crate) async fn a_hold_by_hand_without_a_note_or_an_end_is_listed_until_it_is_replaced(bench: &mut impl Bench) {
    demand(bench).await;
    let (until, since) = (morning() + minutes(600), morning());
    let rows = [
        ("without a note", json!({"until": until, "since": since})),
        ("without an end", json!({"note": "load test", "since": since})),
        ("without a beginning", json!({"until": until, "note": "load test"})),
        ("with an end that is none", json!({"until": "tomorrow", "note": "load test", "since": since})),
        (
            "with an end of no calendar",
            json!({"until": "+262142-12-31T23:59:59Z", "note": "load test", "since": since}),
        ),
        ("a plain yes", json!(true)),
    ];
    for (name, value) in rows {
        let before = record(bench).await;
        bench.write_unreadable(&fact_name("hold", &gpu()), value).await;
        let item = record(bench).await;
        assert_eq!(item.unread, [fact_name("hold", &gpu())], "{name}");
        assert_eq!((item.node(&gpu()).hold, item.demand, &item.wake), (None, before.demand, &before.wake), "{name}");
        let item = set(bench, &gpu(), Some(hold())).await;
        let held = NodeRecord { hold: Some(hold()), ..NodeRecord::default() };
        let nodes = BTreeMap::from([(gpu(), held)]);
        assert_eq!(item, PoolRecord { demand: before.demand + 1, nodes, unread: vec![], ..before }, "{name}: replaced");
    }
    bench.write_unreadable(&fact_name("hold", &gpu()), json!("yes")).await;
    let item = set(bench, &gpu(), None).await;
    assert_eq!((item.unread, item.nodes), (vec![], BTreeMap::new()), "ended");
}
