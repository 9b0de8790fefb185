//! EC2's status checks as a count of the minutes in which a node ran.

use crate::bench::{Bench, id, minutes, morning, seconds, start};
use reveille::domain::{Instant, NodeId, NodeState};
use reveille::run::{Call, Samples, take_samples};
use std::collections::BTreeSet;

async fn read(bench: &mut impl Bench, nodes: &[&NodeId], from: Instant, to: Instant) -> Samples {
    let nodes: BTreeSet<NodeId> = nodes.iter().map(|node| (*node).clone()).collect();
    take_samples(Some(bench.answer(&Call::ReadSamples { nodes, from, to }).await)).expect("read samples")
}

/// The buckets of one node as minutes after the morning, in order of time; each stands at a whole five minutes.
fn buckets(samples: &Samples, node: &NodeId) -> Vec<(i64, f64)> {
    let mut buckets: Vec<(i64, f64)> =
        samples[node].iter().map(|(at, count)| ((*at - morning()).num_minutes(), *count)).collect();
    buckets.sort_by_key(|(minute, _)| *minute);
    assert!(samples[node].iter().all(|(at, _)| at.timestamp() % 300 == 0), "{samples:?}");
    assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0), "one bucket of each five minutes: {samples:?}");
    buckets
}

/// The samples of `[from, to)` in minutes after the morning.
fn sum(buckets: &[(i64, f64)], from: i64, to: i64) -> f64 {
    buckets.iter().filter(|(minute, _)| (from..to).contains(minute)).map(|(_, count)| count).sum()
}

/// Runs twice: from 8:00 to 8:32 and from 9:00 to 9:47, and is off at 10:30.
async fn ran_twice(bench: &mut impl Bench) -> NodeId {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.pass(minutes(30)).await;
    bench.stop_by_hand(&node).await;
    bench.pass(minutes(28)).await;
    start(bench, &node).await.expect("a start");
    bench.pass(minutes(47)).await;
    bench.stop_by_hand(&node).await;
    bench.pass(minutes(43)).await;
    node
}

pub(crate) async fn minutes_of_running_are_counted_by_five(bench: &mut impl Bench) {
    let node = ran_twice(bench).await;
    let samples = read(bench, &[&node], morning(), morning() + minutes(150)).await;
    let buckets = buckets(&samples, &node);
    for (name, from, to, ran) in [("the first run", 0, 60, 32.0), ("the second run", 60, 150, 47.0)] {
        let counted = sum(&buckets, from, to);
        assert!((counted - ran).abs() <= 1.0, "{name}: {counted} samples, {ran} minutes");
    }
    let full: Vec<_> = (5..30).step_by(5).chain((65..105).step_by(5)).map(|minute| (minute, 5.0)).collect();
    let found: Vec<_> = buckets.iter().filter(|bucket| full.contains(bucket)).copied().collect();
    assert_eq!(found, full, "five in each bucket between a start and a stop");
}

pub(crate) async fn nothing_is_counted_while_a_node_is_off(bench: &mut impl Bench) {
    let node = ran_twice(bench).await;
    let samples = read(bench, &[&node], morning(), morning() + minutes(150)).await;
    let buckets = buckets(&samples, &node);
    for (name, from, to) in [("between the runs", 35, 60), ("after them", 110, 150)] {
        assert_eq!(sum(&buckets, from, to), 0.0, "{name}: {buckets:?}");
    }
}

pub(crate) async fn a_node_that_runs_is_counted_up_to_now(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.pass(minutes(18)).await;
    let samples = read(bench, &[&node], morning(), morning() + minutes(600)).await;
    let buckets = buckets(&samples, &node);
    let counted = sum(&buckets, 0, 600);
    assert!((counted - 20.0).abs() <= 1.0, "{counted} samples in 20 minutes");
    assert_eq!(sum(&buckets, 25, 600), 0.0, "nothing of what is to come: {buckets:?}");
}

pub(crate) async fn the_span_of_samples_includes_its_start_and_not_its_end(bench: &mut impl Bench) {
    let node = ran_twice(bench).await;
    for (name, from, to, expected) in [
        ("three buckets", 5, 20, vec![(5, 5.0), (10, 5.0), (15, 5.0)]),
        ("one bucket", 70, 75, vec![(70, 5.0)]),
        ("off all the while", 40, 55, vec![]),
    ] {
        let samples = read(bench, &[&node], morning() + minutes(from), morning() + minutes(to)).await;
        assert_eq!(buckets(&samples, &node), expected, "{name}");
    }
}

pub(crate) async fn a_node_that_never_ran_has_no_samples_and_others_have_theirs(bench: &mut impl Bench) {
    let never = id("i-0000000000000dead");
    let up = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.pass(minutes(18)).await;
    let samples = read(bench, &[&up, &never], morning(), morning() + minutes(20)).await;
    assert_eq!(buckets(&samples, &never), []);
    assert!(sum(&buckets(&samples, &up), 0, 20) >= 19.0, "{samples:?}");
    assert_eq!(read(bench, &[], morning(), morning() + minutes(20)).await, Samples::new(), "nobody was asked for");
}

pub(crate) async fn a_start_within_a_minute_is_counted_to_a_minute(bench: &mut impl Bench) {
    bench.pass(seconds(47)).await;
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.pass(minutes(8) + seconds(33)).await;
    bench.stop_by_hand(&node).await;
    bench.pass(minutes(9)).await;
    let samples = read(bench, &[&node], morning(), morning() + minutes(20)).await;
    let counted = sum(&buckets(&samples, &node), 0, 20);
    assert!((counted - 10.55).abs() <= 1.55, "{counted} samples in ten and a half minutes");
}
