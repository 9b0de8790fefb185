//! What a node is made of: its instance type, its disks, its address.

use crate::bench::{Bench, describe, id, is_refused, kind, minutes, resize, seen, start, state};
use crate::local::Local;
use reveille::domain::{Disk, InstanceType, NodeId, NodeState, PublicAddress};
use reveille::error::ErrorClass;
use reveille::run::{Call, take_disks};
use std::collections::{BTreeMap, BTreeSet};

async fn type_of(bench: &mut impl Bench, node: &NodeId) -> Option<InstanceType> {
    seen(bench, node).await.instance_type
}

pub(crate) async fn a_stopped_node_takes_another_type_and_starts_as_it(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    let before = seen(bench, &node).await;
    assert_eq!(before.instance_type, Some(kind("g6.xlarge")));
    for to in ["g5.xlarge", "g5.xlarge", "g4dn.xlarge"] {
        resize(bench, &node, to).await.expect("another type");
        let after = seen(bench, &node).await;
        assert_eq!(
            (after.instance_type, after.launched_at, after.state),
            (Some(kind(to)), before.launched_at, before.state)
        );
    }
    start(bench, &node).await.expect("a start");
    bench.pass(minutes(1)).await;
    assert_eq!(state(bench, &node).await, NodeState::Running);
    assert_eq!(type_of(bench, &node).await, Some(kind("g4dn.xlarge")));
}

pub(crate) async fn a_node_that_is_not_stopped_keeps_its_type(bench: &mut impl Bench) {
    let up = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    let on_its_way_up = bench.add_node("gpu-2", "voice", NodeState::Stopped).await;
    let on_its_way_down = bench.add_node("gpu-3", "voice", NodeState::Running).await;
    start(bench, &on_its_way_up).await.expect("a start");
    bench.stop_by_hand(&on_its_way_down).await;
    let rows =
        [(NodeState::Running, &up), (NodeState::Pending, &on_its_way_up), (NodeState::Stopping, &on_its_way_down)];
    for (expected, node) in rows {
        assert_eq!(state(bench, node).await, expected);
        let refused = resize(bench, node, "g5.xlarge").await;
        assert!(
            is_refused(refused.clone(), ErrorClass::Conflict, "IncorrectInstanceState"),
            "{expected:?}: {refused:?}"
        );
        assert_eq!(type_of(bench, node).await, Some(kind("g6.xlarge")), "{expected:?}");
    }
}

pub(crate) async fn a_type_of_a_node_that_never_was_is_not_found(bench: &mut impl Bench) {
    let refused = resize(bench, &id("i-0000000000000dead"), "g5.xlarge").await;
    assert!(is_refused(refused.clone(), ErrorClass::NotFound, "InvalidInstanceID.NotFound"), "{refused:?}");
}

/// The world knows no list of types.
pub(crate) async fn a_type_that_ec2_does_not_know_is_refused_for_good(bench: &mut Local) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    let refused = resize(bench, &node, "g6.gigantic").await;
    assert!(is_refused(refused.clone(), ErrorClass::Permanent, "InvalidInstanceAttributeValue"), "{refused:?}");
    assert_eq!(type_of(bench, &node).await, Some(kind("g6.xlarge")));
}

pub(crate) async fn a_type_without_capacity_refuses_a_start_in_one_attempt(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    let up = bench.add_node("gpu-2", "voice", NodeState::Running).await;
    bench.no_room_for(&["g6.xlarge", "g6.2xlarge"]).await;
    let before = seen(bench, &node).await;
    bench.take_sent("start").await;
    let refused = start(bench, &node).await;
    assert!(is_refused(refused.clone(), ErrorClass::Capacity, "InsufficientInstanceCapacity"), "{refused:?}");
    assert_eq!(bench.take_sent("start").await, 1);
    assert_eq!(seen(bench, &node).await, before, "nothing was launched");
    let running = start(bench, &up).await.map(|started| started.before);
    assert_eq!(running, Ok(NodeState::Running), "a node that is up needs no room");
    resize(bench, &node, "g5.xlarge").await.expect("another type");
    assert_eq!(
        start(bench, &node).await.map(|started| started.before),
        Ok(NodeState::Stopped),
        "another type has room"
    );
}

pub(crate) async fn capacity_that_comes_back_starts_the_node(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    bench.no_room_for(&["g6.xlarge"]).await;
    let refused = start(bench, &node).await;
    assert!(is_refused(refused.clone(), ErrorClass::Capacity, "InsufficientInstanceCapacity"), "{refused:?}");
    bench.no_room_for(&[]).await;
    assert_eq!(start(bench, &node).await.map(|started| started.before), Ok(NodeState::Stopped));
}

pub(crate) async fn a_node_without_capacity_refuses_a_start_whatever_its_type(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    let other = bench.add_node("gpu-2", "voice", NodeState::Stopped).await;
    bench.no_room_for_node(&node).await;
    for to in ["g6.xlarge", "g5.xlarge"] {
        resize(bench, &node, to).await.expect("another type");
        let refused = start(bench, &node).await;
        assert!(is_refused(refused.clone(), ErrorClass::Capacity, "InsufficientInstanceCapacity"), "{to}: {refused:?}");
    }
    start(bench, &other).await.expect("the next candidate has room");
}

async fn disks(bench: &mut impl Bench, nodes: &[&NodeId]) -> BTreeMap<NodeId, Vec<Disk>> {
    let nodes: BTreeSet<NodeId> = nodes.iter().map(|node| (*node).clone()).collect();
    let mut found = take_disks(Some(bench.answer(&Call::ReadDisks { nodes }).await)).expect("read volumes");
    // A node without a disk may stand there with none.
    found.retain(|_, disks| !disks.is_empty());
    found.values_mut().for_each(|disks| disks.sort_by_key(|disk| disk.gib));
    found
}

pub(crate) async fn disks_are_told_by_node_as_they_are_billed(bench: &mut impl Bench) {
    let one = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    let two = bench.add_node("gpu-2", "voice", NodeState::Stopped).await;
    let none = bench.add_node("gpu-3", "voice", NodeState::Running).await;
    for node in [&one, &two, &none] {
        bench.strip_disks(node).await;
    }
    let now = bench.now().await;
    let disk = |gib, iops, mibps| Disk { kind: "gp3".to_owned(), gib, iops, mibps, created_at: Some(now) };
    let (small, fast, other) = (disk(100, 3000, 125), disk(200, 6000, 500), disk(80, 4000, 250));
    for (node, disk) in [(&one, &small), (&one, &fast), (&two, &other)] {
        bench.add_disk(node, disk).await;
    }
    bench.pass(minutes(90)).await;
    let (ours, others) = ((one.clone(), vec![small, fast]), (two.clone(), vec![other]));
    let all = disks(bench, &[&one, &two, &none]).await;
    assert_eq!(all, BTreeMap::from([ours.clone(), others.clone()]), "running or stopped; none of a node without");
    assert_eq!(disks(bench, &[&two]).await, BTreeMap::from([others]), "of the node asked for");
    assert_eq!(
        disks(bench, &[&none, &id("i-0000000000000dead")]).await,
        BTreeMap::new(),
        "a node that never was has none"
    );
    assert_eq!(disks(bench, &[]).await, BTreeMap::new(), "nobody was asked for");
    bench.stop_by_hand(&one).await;
    bench.pass(minutes(2)).await;
    assert_eq!(disks(bench, &[&one]).await, BTreeMap::from([ours]), "a stop takes no disk off");
}

async fn address(bench: &mut Local, node: &NodeId) -> Option<PublicAddress> {
    seen(bench, node).await.public_address
}

/// The world's addresses are what a test says they are.
pub(crate) async fn an_automatic_address_goes_with_a_stop_and_comes_with_a_start(bench: &mut Local) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    assert_eq!(address(bench, &node).await, Some(PublicAddress::Automatic));
    bench.stop_by_hand(&node).await;
    bench.pass(minutes(2)).await;
    assert_eq!(address(bench, &node).await, None);
    start(bench, &node).await.expect("a start");
    bench.pass(minutes(1)).await;
    assert_eq!(address(bench, &node).await, Some(PublicAddress::Automatic));
}

/// The world's addresses are what a test says they are.
pub(crate) async fn an_elastic_address_is_kept_while_the_node_is_stopped(bench: &mut Local) {
    let up = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    let down = bench.add_node("gpu-2", "voice", NodeState::Stopped).await;
    for node in [&up, &down] {
        bench.give_elastic(node).await;
        assert_eq!(address(bench, node).await, Some(PublicAddress::Elastic));
    }
    bench.stop_by_hand(&up).await;
    bench.pass(minutes(2)).await;
    let all: Vec<_> = describe(bench).await.into_iter().map(|node| (node.state, node.public_address)).collect();
    assert_eq!(all, [(NodeState::Stopped, Some(PublicAddress::Elastic)); 2]);
}
