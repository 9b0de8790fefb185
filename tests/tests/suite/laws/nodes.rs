//! What EC2 shows of nodes, and their life.

use crate::bench::{
    Bench, describe, force_stop, id, is_refused, kind, minutes, morning, pool, seconds, seen, start, state, stop, voice,
};
use reveille::domain::{NodeId, NodeSeen, NodeState, StateReason};
use reveille::error::{CallError, ErrorClass, TookEffect};
use reveille::run::{Call, take_nodes, take_readiness};
use std::collections::BTreeSet;

fn asked_for() -> StateReason {
    let code = "Client.UserInitiatedShutdown".to_owned();
    StateReason { message: format!("{code}: User initiated shutdown"), code }
}

pub(crate) async fn describe_shows_every_node_with_the_tag_as_it_is(bench: &mut impl Bench) {
    bench.add_stranger().await;
    let up = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    let down = bench.add_node("gpu-2", "batch", NodeState::Stopped).await;
    let mut listed = describe(bench).await;
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    // A law of its own: EC2 gives what is launched here an address, the world does not.
    listed.iter_mut().for_each(|node| node.public_address = None);
    let addresses: Vec<_> = listed.iter().filter_map(|node| node.address.clone()).collect();
    let expected = [
        NodeSeen {
            id: up,
            name: Some("gpu-1".to_owned()),
            pool: voice(),
            state: NodeState::Running,
            launched_at: Some(morning()),
            state_reason: None,
            transition_at: None,
            address: addresses.first().cloned(),
            spot: false,
            instance_type: Some(kind("g6.xlarge")),
            public_address: None,
            tags: std::collections::BTreeMap::new(),
        },
        NodeSeen {
            id: down,
            name: Some("gpu-2".to_owned()),
            pool: pool("batch"),
            state: NodeState::Stopped,
            launched_at: Some(morning() + minutes(2)),
            state_reason: Some(asked_for()),
            transition_at: Some(morning() + minutes(4)),
            address: addresses.last().cloned(),
            spot: false,
            instance_type: Some(kind("g6.xlarge")),
            public_address: None,
            tags: std::collections::BTreeMap::new(),
        },
    ];
    assert_eq!(listed, expected);
    assert!(addresses.len() == 2 && addresses[0] != addresses[1], "{addresses:?}");
}

pub(crate) async fn describe_shows_the_nodes_of_the_pools_asked_for(bench: &mut impl Bench) {
    let mut nodes = Vec::new();
    for name in ["voice", "batch", "other"] {
        nodes.push(bench.add_node("gpu", name, NodeState::Running).await);
    }
    for (pools, expected) in [(&["voice"][..], &nodes[..1]), (&["voice", "batch"], &nodes[..2]), (&["nobodys"], &[])] {
        let call = Call::DescribeNodes { pools: Some(pools.iter().map(|name| pool(name)).collect()) };
        let listed = take_nodes(Some(bench.answer(&call).await)).expect("describe");
        let listed: BTreeSet<_> = listed.into_iter().map(|node| node.id).collect();
        assert_eq!(listed, expected.iter().cloned().collect(), "{pools:?}");
    }
}

pub(crate) async fn a_start_goes_through_pending_to_running_and_moves_the_launch_time(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    for round in 0..2 {
        let began = bench.now().await;
        start(bench, &node).await.expect("a start");
        let pending = seen(bench, &node).await;
        assert_eq!((pending.state, pending.launched_at), (NodeState::Pending, Some(began)), "round {round}");
        assert_eq!((pending.state_reason, pending.transition_at), (None, None), "round {round}");
        bench.pass(minutes(1)).await;
        let running = seen(bench, &node).await;
        assert_eq!((running.state, running.launched_at), (NodeState::Running, Some(began)), "round {round}");
        bench.stop_by_hand(&node).await;
        bench.pass(minutes(2)).await;
        assert_eq!(seen(bench, &node).await.launched_at, Some(began), "a stop moves no LaunchTime");
    }
}

pub(crate) async fn a_stop_goes_through_stopping_to_stopped_and_says_when_and_why(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    let asked = bench.now().await;
    stop(bench, &node).await.expect("a stop");
    for (later, state) in [(0, NodeState::Stopping), (120, NodeState::Stopped)] {
        bench.pass(seconds(later)).await;
        let shown = seen(bench, &node).await;
        assert_eq!((shown.state, shown.transition_at), (state, Some(asked)));
        assert_eq!(shown.state_reason, Some(asked_for()), "{state:?}");
    }
}

pub(crate) async fn a_start_answers_the_state_before(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    let launched = bench.now().await;
    for before in [NodeState::Stopped, NodeState::Pending] {
        assert_eq!(start(bench, &node).await.map(|started| started.before), Ok(before));
    }
    bench.pass(minutes(1)).await;
    assert_eq!(start(bench, &node).await.map(|started| started.before), Ok(NodeState::Running));
    assert_eq!(seen(bench, &node).await.launched_at, Some(launched), "a start of a node that is up starts nothing");
    bench.stop_by_hand(&node).await;
    assert!(is_refused(start(bench, &node).await, ErrorClass::Conflict, "IncorrectInstanceState"), "while stopping");
}

pub(crate) async fn a_stop_answers_the_state_before(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    for before in [NodeState::Running, NodeState::Stopping] {
        assert_eq!(stop(bench, &node).await.map(|stopped| stopped.before), Ok(before));
    }
    bench.pass(minutes(2)).await;
    assert_eq!(stop(bench, &node).await.map(|stopped| stopped.before), Ok(NodeState::Stopped));
    bench.start_by_hand(&node).await;
    assert!(is_refused(stop(bench, &node).await, ErrorClass::Conflict, "IncorrectInstanceState"), "while pending");
    assert_eq!(force_stop(bench, &node).await.map(|stopped| stopped.before), Ok(NodeState::Pending));
    assert_eq!(state(bench, &node).await, NodeState::Stopping);
}

async fn ready(bench: &mut impl Bench, nodes: &[&NodeId]) -> Result<BTreeSet<NodeId>, CallError> {
    let call = Call::ReadReadiness { nodes: nodes.iter().map(|node| (*node).clone()).collect() };
    take_readiness(Some(bench.answer(&call).await))
}

pub(crate) async fn a_node_is_ready_once_it_runs_and_its_status_checks_pass(bench: &mut impl Bench) {
    let (up, down) = (
        bench.add_node("gpu-1", "voice", NodeState::Running).await,
        bench.add_node("gpu-2", "voice", NodeState::Stopped).await,
    );
    assert_eq!(ready(bench, &[]).await, Ok(BTreeSet::new()), "nobody was asked for");
    start(bench, &down).await.expect("a start");
    for (step, is_ready) in [(0, false), (30, false), (29, false), (1, true)] {
        bench.pass(seconds(step)).await;
        let expected = [Some(&up), is_ready.then_some(&down)].into_iter().flatten().cloned().collect();
        assert_eq!(ready(bench, &[&up, &down]).await, Ok(expected), "after {step} seconds more");
    }
    bench.stop_by_hand(&up).await;
    assert_eq!(ready(bench, &[&up]).await, Ok(BTreeSet::new()), "stopping");
    let missing = ready(bench, &[&down, &id("i-0000000000000dead")]).await;
    assert!(is_refused(missing, ErrorClass::NotFound, "InvalidInstanceID.NotFound"));
}

pub(crate) async fn a_start_that_falls_back_ends_stopped_with_its_reason(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    let reason = StateReason {
        code: "Client.InternalError".to_owned(),
        message: "Client.InternalError: Client error on launch".to_owned(),
    };
    bench.fall_back(&node, reason.clone()).await;
    let began = bench.now().await;
    assert_eq!(start(bench, &node).await.map(|started| started.before), Ok(NodeState::Stopped));
    assert_eq!(state(bench, &node).await, NodeState::Pending);
    bench.pass(minutes(1)).await;
    let fallen = seen(bench, &node).await;
    assert_eq!((fallen.state, fallen.launched_at), (NodeState::Stopped, Some(began)));
    assert_eq!((fallen.state_reason, fallen.transition_at), (Some(reason), None), "EC2 tells why, not when");
    start(bench, &node).await.expect("a second start");
    bench.pass(minutes(1)).await;
    assert_eq!(state(bench, &node).await, NodeState::Running, "it falls back once");
}

pub(crate) async fn force_ends_a_hanging_stop(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.hang_in_stopping(&node).await;
    stop(bench, &node).await.expect("a stop");
    bench.pass(minutes(20)).await;
    assert_eq!(state(bench, &node).await, NodeState::Stopping);
    stop(bench, &node).await.expect("a second stop");
    bench.pass(minutes(20)).await;
    assert_eq!(state(bench, &node).await, NodeState::Stopping, "asking nicely again does not help");
    assert_eq!(force_stop(bench, &node).await.map(|stopped| stopped.before), Ok(NodeState::Stopping));
    bench.pass(minutes(1)).await;
    assert_eq!(state(bench, &node).await, NodeState::Stopped);
}

pub(crate) async fn force_does_not_lengthen_a_stop_that_is_nearly_over(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    stop(bench, &node).await.expect("a stop");
    bench.pass(seconds(38)).await;
    force_stop(bench, &node).await.expect("a forced stop");
    bench.pass(seconds(2)).await;
    assert_eq!(state(bench, &node).await, NodeState::Stopped);
}

pub(crate) async fn a_protected_node_refuses_to_stop_for_good(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.protect_from_stop(&node).await;
    for _ in 0..2 {
        assert!(is_refused(stop(bench, &node).await, ErrorClass::Permanent, "OperationNotPermitted"));
    }
    assert!(is_refused(force_stop(bench, &node).await, ErrorClass::Permanent, "OperationNotPermitted"));
    assert_eq!(state(bench, &node).await, NodeState::Running);
}

pub(crate) async fn a_one_time_spot_node_is_seen_as_one_and_refuses_to_stop_for_good(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.make_spot(&node).await;
    assert!(seen(bench, &node).await.spot);
    assert!(is_refused(stop(bench, &node).await, ErrorClass::Permanent, "UnsupportedOperation"));
    assert_eq!(state(bench, &node).await, NodeState::Running);
}

pub(crate) async fn a_terminated_node_is_gone_and_neither_starts_nor_stops(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.terminate_by_hand(&node).await;
    for later in [0, 5] {
        bench.pass(minutes(later)).await;
        assert_eq!(state(bench, &node).await, NodeState::Gone);
        assert!(is_refused(start(bench, &node).await, ErrorClass::Conflict, "IncorrectInstanceState"));
        assert!(is_refused(stop(bench, &node).await, ErrorClass::Conflict, "IncorrectInstanceState"));
        assert!(is_refused(force_stop(bench, &node).await, ErrorClass::Conflict, "IncorrectInstanceState"));
    }
    assert_eq!(ready(bench, &[&node]).await, Ok(BTreeSet::new()));
}

pub(crate) async fn a_node_that_never_was_is_not_found(bench: &mut impl Bench) {
    let node = id("i-0000000000000dead");
    for error in [start(bench, &node).await.err(), stop(bench, &node).await.err()] {
        let error = error.expect("a refusal");
        assert_eq!((error.class, error.effect), (ErrorClass::NotFound, TookEffect::No), "{error}");
        assert!(error.act.ends_with("node i-0000000000000dead"), "the error names the act: {error}");
    }
}

pub(crate) async fn describe_brings_the_other_tags_of_a_node(bench: &mut impl Bench) {
    let held = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    let plain = bench.add_node("gpu-2", "voice", NodeState::Stopped).await;
    let tags = [
        ("reveille:keep-until", "2026-11-30T18:00+09:00"),
        ("Reveille:Keep-Until", " TRUE "),
        ("team", ""),
        ("name", "no name"),
    ];
    for (key, value) in tags {
        bench.tag(&held, key, value).await;
    }
    let node = seen(bench, &held).await;
    let expected = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    assert_eq!(node.tags, expected, "without those that are fields of their own");
    assert_eq!((node.name.as_deref(), node.pool), (Some("gpu-1"), voice()));
    bench.tag(&held, "team", "voice").await;
    assert_eq!(seen(bench, &held).await.tags.get("team").map(String::as_str), Some("voice"), "changed");
    assert!(seen(bench, &plain).await.tags.is_empty(), "another node's are its own");
}
