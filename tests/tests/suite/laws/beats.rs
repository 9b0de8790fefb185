//! The beats that nodes write of themselves.

use crate::bench::{Bench, id, minutes, morning, record, seconds};
use chrono::TimeDelta;
use reveille::domain::{Beat, NodeId, PoolRecord};
use reveille::run::{Call, take_beats};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

fn node(n: u32) -> NodeId {
    id(&format!("i-{n:017x}"))
}

/// One that says all that a beat can say.
fn whole(n: u32) -> Beat {
    let at = morning() + seconds(n.into()) + TimeDelta::milliseconds(125);
    Beat {
        at,
        ready: true,
        row: n,
        ready_since: Some(morning() - minutes(5)),
        open: Some(3),
        counted: Some(17),
        gpu: Some(97),
        open_at: Some(at),
        used_at: Some(morning()),
        since: Some(morning() - minutes(4)),
    }
}

/// One of a node that knows nothing but that it is not ready.
fn bare() -> Beat {
    Beat {
        at: morning(),
        ready: false,
        row: 0,
        ready_since: None,
        open: None,
        counted: None,
        gpu: None,
        open_at: None,
        used_at: None,
        since: None,
    }
}

async fn read(bench: &mut impl Bench, nodes: impl IntoIterator<Item = u32>) -> BTreeMap<NodeId, Beat> {
    let call = Call::ReadBeats { nodes: nodes.into_iter().map(node).collect() };
    take_beats(Some(bench.answer(&call).await)).expect("read beats")
}

pub(crate) async fn beats_are_told_by_node_and_those_that_are_not_there_are_left_out(bench: &mut impl Bench) {
    assert_eq!(read(bench, 1..=3).await, BTreeMap::new(), "no beat at all");
    for (n, beat) in [(1, whole(1)), (2, bare()), (4, whole(4))] {
        bench.beat(&node(n), &beat).await;
    }
    assert_eq!(read(bench, 1..=3).await, BTreeMap::from([(node(1), whole(1)), (node(2), bare())]));
    bench.beat(&node(1), &bare()).await;
    assert_eq!(read(bench, [1]).await, BTreeMap::from([(node(1), bare())]), "the newest");
    assert_eq!(read(bench, []).await, BTreeMap::new(), "of no node");
    assert_eq!(record(bench).await, PoolRecord::default(), "beats are no part of a pool's item");
}

pub(crate) async fn a_beat_that_cannot_be_read_is_left_out(bench: &mut impl Bench) {
    for n in 1..=6 {
        bench.beat(&node(n), &whole(n)).await;
    }
    let rows = [
        (1, json!("alive")),
        (2, json!({"at": morning(), "row": 1})),
        (3, json!({"at": "now", "ready": true, "row": 1})),
        (4, json!({"at": morning(), "ready": true, "row": 1, "open": -1})),
        (6, json!({"at": morning(), "ready": true, "row": 1, "since": "-262143-01-01T00:00:00Z"})),
    ];
    for (n, value) in rows {
        bench.write_unreadable_beat(&node(n), value).await;
    }
    assert_eq!(read(bench, 1..=6).await, BTreeMap::from([(node(5), whole(5))]));
}

pub(crate) async fn the_beats_of_a_hundred_and_fifty_nodes_are_read(bench: &mut impl Bench) {
    for n in 0..150 {
        bench.beat(&node(n), &whole(n)).await;
    }
    assert_eq!(read(bench, 0..150).await, (0..150).map(|n| (node(n), whole(n))).collect());
    let some: BTreeSet<u32> = (0..300).step_by(2).collect();
    assert_eq!(read(bench, some).await, (0..150).step_by(2).map(|n| (node(n), whole(n))).collect(), "half are absent");
}
