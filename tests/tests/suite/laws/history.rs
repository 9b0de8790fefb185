//! Launches: the ended ones by pool and end, the newest one of each node in its pool's item.

use crate::bench::{
    Bench, claim, claim_of, demand, id, kind, minutes, morning, pool, record, seconds, voice, write_facts,
};
use crate::local::Local;
use reveille::domain::{
    ClaimKind, Instant, Launch, Mark, NodeId, NodeRecord, PoolName, PoolRecord, WakeSource, merged,
};
use reveille::run::{Call, Fact, History, Permit, take_history, take_recorded};
use std::collections::{BTreeMap, BTreeSet};

fn gpu() -> NodeId {
    id("i-0123456789abcdef0")
}

fn other_gpu() -> NodeId {
    id("i-0123456789abcdef1")
}

/// A launch at a minute of the morning; one that ended ended at another.
pub(crate) fn launch(at: i64, ended: Option<i64>) -> Launch {
    Launch {
        instance_type: Some(kind("g6.xlarge")),
        seen_at: morning() + minutes(at) + seconds(90),
        ended_at: ended.map(|minute| morning() + minutes(minute)),
        used: Some(true),
        source: Some(WakeSource::LogLine),
        ..Launch::at(morning() + minutes(at))
    }
}

type Launches = Vec<(NodeId, Launch)>;

async fn note(bench: &mut impl Bench, pool: &PoolName, ended: Launches, newest: Launches) {
    let call = Call::NoteLaunches { pool: pool.clone(), ended, newest };
    take_recorded(Some(bench.answer(&call).await)).expect("note launches");
}

async fn read(bench: &mut impl Bench, pools: &[PoolName], from: Instant) -> History {
    let call = Call::ReadHistory { pools: pools.iter().cloned().collect(), from };
    take_history(Some(bench.answer(&call).await)).expect("read the history")
}

/// The history of the pool `voice`, oldest end first.
async fn of_voice(bench: &mut impl Bench, from: Instant) -> Launches {
    let mut launches = read(bench, &[voice()], from).await.remove(&voice()).expect("an entry for each pool asked for");
    launches.sort_by_key(|(node, launch)| (launch.ended_at, node.clone()));
    launches
}

/// A launch that runs on, for a write that needs one.
fn running() -> Launches {
    vec![(gpu(), launch(600, None))]
}

pub(crate) async fn ended_launches_come_back_from_their_end_on(bench: &mut impl Bench) {
    let bare = Launch { instance_type: None, used: None, source: None, ..launch(10, Some(21)) };
    let unused = Launch { used: Some(false), ..launch(30, Some(40)) };
    let ended = vec![(gpu(), launch(0, Some(20))), (other_gpu(), bare), (gpu(), unused)];
    note(bench, &voice(), ended.clone(), running()).await;
    let end = morning() + minutes(20);
    let rows = [
        ("long before", morning() - minutes(60), &ended[..]),
        ("a second before the first end", end - seconds(1), &ended[..]),
        ("at the first end", end, &ended[..]),
        ("a second after it", end + seconds(1), &ended[1..]),
        ("while a later one ran", morning() + minutes(35), &ended[2..]),
        ("after all", morning() + minutes(41), &[]),
    ];
    for (name, from, expected) in rows {
        assert_eq!(of_voice(bench, from).await, expected, "{name}");
    }
}

pub(crate) async fn a_launch_that_is_written_twice_counts_once(bench: &mut impl Bench) {
    let (once, later) = (launch(0, Some(20)), launch(0, Some(21)));
    for ended in [&once, &once, &later] {
        note(bench, &voice(), vec![(gpu(), ended.clone())], running()).await;
    }
    let found = of_voice(bench, morning()).await;
    assert_eq!(found, [(gpu(), once.clone()), (gpu(), later)], "the same end is one entry, another end is another");
    assert_eq!(merged(found.iter().map(|(_, launch)| launch)), [once]);
}

pub(crate) async fn launches_of_two_nodes_that_ended_at_once_are_two(bench: &mut impl Bench) {
    let both = vec![(gpu(), launch(0, Some(20))), (other_gpu(), launch(5, Some(20)))];
    note(bench, &voice(), both.clone(), running()).await;
    assert_eq!(of_voice(bench, morning()).await, both);
}

pub(crate) async fn each_pool_has_a_history_of_its_own(bench: &mut impl Bench) {
    let (batch, idle) = (pool("batch"), pool("idle"));
    let launches = |n| vec![(gpu(), launch(n, Some(n + 10)))];
    note(bench, &voice(), launches(0), running()).await;
    note(bench, &batch, launches(20), running()).await;
    let expected = BTreeMap::from([(voice(), launches(0)), (batch.clone(), launches(20)), (idle.clone(), Vec::new())]);
    assert_eq!(read(bench, &[voice(), batch, idle], morning()).await, expected);
    let nobodys = pool("nobodys");
    let empty = BTreeMap::from([(nobodys.clone(), Vec::new())]);
    assert_eq!(read(bench, &[nobodys], morning()).await, empty, "an empty pool");
    assert_eq!(read(bench, &[], morning()).await, BTreeMap::new(), "no pool");
}

pub(crate) async fn hundreds_of_launches_come_back_whole(bench: &mut impl Bench) {
    let ended: Launches =
        (0..150).flat_map(|n| [gpu(), other_gpu()].map(|node| (node, launch(n * 10, Some(n * 10 + 5))))).collect();
    note(bench, &voice(), ended.clone(), running()).await;
    assert_eq!(of_voice(bench, morning()).await, ended);
    assert_eq!(of_voice(bench, morning() + minutes(100 * 10)).await, ended[200..], "the last third");
}

/// The world has no pages.
pub(crate) async fn a_history_of_several_pages_comes_back_whole(bench: &mut Local) {
    let ended: Launches = (0..12).map(|n| (gpu(), launch(n * 10, Some(n * 10 + 5)))).collect();
    note(bench, &voice(), ended.clone(), running()).await;
    assert!(!bench.fatten_history("voice").await, "two pages at least");
    assert_eq!(of_voice(bench, morning()).await, ended);
}

pub(crate) async fn the_newest_launch_stands_in_the_item_beside_the_other_facts(bench: &mut impl Bench) {
    let mark = Mark { at: morning(), launched_at: Some(morning()) };
    write_facts(bench, vec![(gpu(), Fact::Mark(Some(mark)))]).await.expect("a fact");
    claim(bench, &gpu(), Permit { claims: 0, demand: None }, &claim_of(ClaimKind::Start, "run-1")).await;
    let before = demand(bench).await;
    let with = |ours: Launch, others: Launch| {
        let nodes = BTreeMap::from([
            (gpu(), NodeRecord { launch: Some(ours), ..before.node(&gpu()) }),
            (other_gpu(), NodeRecord { launch: Some(others), ..NodeRecord::default() }),
        ]);
        PoolRecord { nodes, ..before.clone() }
    };
    let first = vec![(gpu(), launch(0, None)), (other_gpu(), launch(1, Some(2)))];
    note(bench, &voice(), Vec::new(), first).await;
    assert_eq!(record(bench).await, with(launch(0, None), launch(1, Some(2))), "both nodes; no counter moves");
    note(bench, &voice(), vec![(gpu(), launch(0, Some(20)))], vec![(gpu(), launch(0, Some(20)))]).await;
    assert_eq!(record(bench).await, with(launch(0, Some(20)), launch(1, Some(2))), "replaced; the other node's stands");
    assert_eq!(of_voice(bench, morning()).await, [(gpu(), launch(0, Some(20)))], "only what is called ended");
}

pub(crate) async fn a_history_is_no_part_of_the_item(bench: &mut impl Bench) {
    note(bench, &voice(), vec![(other_gpu(), launch(0, Some(20)))], running()).await;
    let nodes: BTreeSet<NodeId> = record(bench).await.nodes.into_keys().collect();
    assert_eq!(nodes, BTreeSet::from([gpu()]));
}
