//! The in-memory world as a bench.

use crate::bench::{Bench, Told, Trouble, id, kind, minutes, morning, pool, voice};
use chrono::TimeDelta;
use reveille::domain::{Beat, Disk, Instant, NodeId, NodeSeen, NodeState, PoolName, StateReason, Usd};
use reveille::run::{Alert, Answer, Call, MetricRef, Outcome, Run};
use reveille::world::{World, WorldFault};
use serde_json::Value;

pub(crate) struct InMemory {
    world: World,
    nodes: u32,
}

impl InMemory {
    pub(crate) fn open() -> Self {
        Self { world: World::at(morning()), nodes: 0 }
    }

    /// Changes a node from outside.
    fn change(&mut self, node: &NodeId, change: impl FnOnce(&mut NodeSeen)) {
        let mut seen = self.world.node(node).expect("a node").clone();
        change(&mut seen);
        self.world.add_node(seen);
    }
}

impl Bench for InMemory {
    async fn answer(&mut self, call: &Call) -> Answer {
        self.world.answer(call)
    }

    async fn answers(&mut self, calls: &[Call]) -> Vec<Answer> {
        calls.iter().map(|call| self.world.answer(call)).collect()
    }

    async fn drive(&mut self, run: &mut impl Run) -> Outcome {
        self.world.drive(run)
    }

    async fn now(&mut self) -> Instant {
        self.world.now()
    }

    async fn pass(&mut self, time: TimeDelta) {
        let now = self.world.now();
        self.world.set_now(now + time);
    }

    async fn add_node(&mut self, name: &str, pool_name: &str, state: NodeState) -> NodeId {
        self.nodes += 1;
        let node = id(&format!("i-{:017x}", self.nodes));
        self.world.add_node(NodeSeen {
            id: node.clone(),
            name: Some(name.to_owned()),
            pool: pool(pool_name),
            state: NodeState::Running,
            launched_at: Some(self.world.now()),
            state_reason: None,
            transition_at: None,
            address: Some(format!("10.0.0.{}", self.nodes)),
            spot: false,
            instance_type: Some(kind("g6.xlarge")),
            public_address: None,
            tags: std::collections::BTreeMap::new(),
        });
        self.pass(minutes(2)).await;
        if state == NodeState::Stopped {
            self.stop_by_hand(&node).await;
            self.pass(minutes(2)).await;
        }
        node
    }

    async fn add_stranger(&mut self) {
        // The world holds nothing but nodes with the tag.
    }

    async fn make_spot(&mut self, node: &NodeId) {
        self.change(node, |seen| seen.spot = true);
        self.world.refuse_stop(node, "UnsupportedOperation");
    }

    async fn protect_from_stop(&mut self, node: &NodeId) {
        self.world.refuse_stop(node, "OperationNotPermitted");
    }

    async fn hang_in_stopping(&mut self, node: &NodeId) {
        self.world.hang_in_stopping(node);
    }

    async fn fall_back(&mut self, node: &NodeId, reason: StateReason) {
        self.world.fall_back(node, reason);
    }

    async fn start_by_hand(&mut self, node: &NodeId) {
        self.world.start(node).expect("a start by hand");
    }

    async fn stop_by_hand(&mut self, node: &NodeId) {
        self.world.stop(node, false).expect("a stop by hand");
    }

    async fn terminate_by_hand(&mut self, node: &NodeId) {
        self.change(node, |seen| seen.state = NodeState::Gone);
    }

    async fn tag(&mut self, node: &NodeId, key: &str, value: &str) {
        self.change(node, |seen| drop(seen.tags.insert(key.to_owned(), value.to_owned())));
    }

    async fn write_unreadable(&mut self, attribute: &str, _value: Value) {
        // The world keeps records, not attributes: of one that cannot be read it knows no more than its name.
        let record = self.world.record(&voice());
        record.unread.push(attribute.to_owned());
        if let Some((kind, node)) = attribute.split_once('#').filter(|(kind, _)| *kind != "wait") {
            let node = record.nodes.entry(id(node)).or_default();
            match kind {
                "leases" => node.leases.clear(),
                "hold" => node.hold = None,
                other => panic!("no law writes {other}"),
            }
        }
    }

    async fn beat(&mut self, node: &NodeId, beat: &Beat) {
        self.world.beats.insert(node.clone(), beat.clone());
    }

    async fn write_unreadable_beat(&mut self, node: &NodeId, _value: Value) {
        self.world.beats.remove(node);
    }

    async fn no_room_for(&mut self, types: &[&str]) {
        self.world.no_capacity_types = types.iter().map(|word| kind(word)).collect();
    }

    async fn no_room_for_node(&mut self, node: &NodeId) {
        self.world.no_capacity(node, true);
    }

    async fn strip_disks(&mut self, _node: &NodeId) {
        // The world gives a node no disk unasked.
    }

    async fn add_disk(&mut self, node: &NodeId, disk: &Disk) {
        self.world.add_disk(node, disk.clone());
    }

    async fn point(&mut self, metric: &MetricRef, at: Instant, value: f64) {
        self.world.point(metric, at, value);
    }

    async fn add_log_group(&mut self, group: &str) {
        // A group is there from its first line on: one that no law looks back to.
        self.world.log(group, morning() - TimeDelta::days(10), "-");
    }

    async fn log(&mut self, group: &str, at: Instant, line: &str) {
        self.world.log(group, at, line);
    }

    async fn page_logs_small(&mut self) {
        // The world has no pages.
    }

    async fn set_figures(&mut self, budget: &str, actual: &str, forecast: Option<&str>) {
        let usd = |text: &str| Usd::parse(text).expect("an amount");
        let known = self.world.budgets.get_mut(budget).expect("a budget");
        (known.actual, known.forecast) = (Some(usd(actual)), forecast.map(usd));
    }

    async fn fail(&mut self, call: &'static str, trouble: Trouble, times: u32) {
        let (code, after) = match trouble {
            Trouble::Refused(code) => (code, false),
            Trouble::FailedAfter(code) => (code, true),
            Trouble::AnswerLost => ("NoAnswer", true),
        };
        self.world.fail(WorldFault { call, node: None, code, after, times });
    }

    async fn take_sent(&mut self, call: &'static str) -> usize {
        let sent = self.world.calls.iter().filter(|made| **made == call).count();
        self.world.calls.clear();
        sent
    }

    async fn published(&mut self) -> Vec<Told> {
        self.world.published.iter().map(told).collect()
    }
}

/// The message as SNS would carry it.
fn told(alert: &Alert) -> Told {
    let (pool, node) = (alert.pool.as_ref().map(PoolName::as_str), alert.node.as_ref().map(NodeId::as_str));
    let named = [("kind", Some(alert.kind.as_str())), ("pool", pool), ("node", node)];
    let further = alert.attributes.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
    let attributes =
        named.into_iter().chain(further).filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    Told { subject: alert.subject.clone(), body: alert.body.clone(), attributes: attributes.collect() }
}
