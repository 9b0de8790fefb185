//! Laws of what the ledger holds: a pool's item and a node's beat, as every run meets them.

use chrono::{DateTime, TimeDelta, Utc};
use reveille::domain::{
    Beat, ClaimKind, Hold, Instant, LeaseId, Mark, NodeId, NodeRecord, NodeSeen, NodeState, PoolName, PoolRecord,
    ReadyFact, RunId, WakeSource, is_computable,
};
use reveille::policy::{Policy, PoolRules, ReadySource};
use reveille::prices::Prices;
use reveille::run::{
    Caller, Cause, Context, IdleRun, LeaseRun, LeaseWish, Outcome, PoolPolicy, Run, Target, UptimeRun, WakeRun,
    WakeWish,
};
use reveille::world::World;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_dynamo::{AttributeValue, from_attribute_value, to_attribute_value};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// 2026-11-30T12:00:00Z.
fn noon() -> Instant {
    DateTime::from_timestamp(1_796_040_000, 0).expect("a time")
}

fn minutes_ago(minutes: i64) -> Instant {
    noon() - TimeDelta::minutes(minutes)
}

fn voice() -> PoolName {
    PoolName::new("voice").expect("a name")
}

fn gpu() -> NodeId {
    NodeId::new("i-a").expect("an id")
}

/// A beat as JSON, on a node that was marked as idle ten minutes ago: whatever it says, no run falls, and it is stopped only
/// on a beat of now that proves half an hour of silence.
pub(crate) fn beat(data: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(data) else { return };
    // With times that the executor would refuse, too: no node's word makes a run fall.
    let Ok(value) = to_attribute_value::<_, AttributeValue>(&json) else { return };
    let Ok(beat) = from_attribute_value::<_, Beat>(value) else { return };
    is_written_as_it_was_read(&beat);
    let mut world = world(NodeState::Running);
    world.beats.insert(gpu(), beat.clone());
    let known = world.record(&voice()).nodes.entry(gpu()).or_default();
    known.mark = Some(Mark { at: minutes_ago(10), launched_at: Some(minutes_ago(180)) });
    every_run(&world, |_, after| {
        let proves_silence = beat.since.is_some_and(|since| since <= minutes_ago(29));
        let used = [beat.open_at, beat.used_at].into_iter().flatten().any(|at| at.min(beat.at) > minutes_ago(30));
        let is_of_now = (minutes_ago(3)..=minutes_ago(-1)).contains(&beat.at);
        assert!(!was(after, "stop") || (is_of_now && proves_silence && !used), "{beat:?}");
    });
}

/// A pool's item as JSON; the first byte says what EC2 shows of its node.
pub(crate) fn ledger(data: &[u8]) {
    let Some((state, json)) = data.split_first() else { return };
    let Ok(Value::Object(item)) = serde_json::from_slice(json) else { return };
    let mut world = world(STATES[usize::from(*state) % STATES.len()]);
    world.beats.insert(gpu(), quiet_beat());
    let record = record(item);
    *world.record(&voice()) = record.clone();
    let node = record.node(&gpu());
    every_run(&world, |name, after| {
        assert!(record.closed_gate(noon()).is_none() || !was(after, "start"), "{name}: the gate is closed");
        let stops = node.claim.as_ref().is_some_and(|claim| claim.kind == ClaimKind::Stop);
        let kept = node.hold.as_ref().is_some_and(|hold| hold.keeps(noon())) || node.calls(noon()) > 0;
        let is_unread = record.unread.iter().any(|name| name == "claim#i-a");
        assert!(!(kept || is_unread) || stops || !was(after, "stop") || is_going_down(&world), "{name}: {record:?}");
    });
}

const STATES: [NodeState; 5] =
    [NodeState::Running, NodeState::Stopped, NodeState::Pending, NodeState::Stopping, NodeState::Gone];

fn is_going_down(world: &World) -> bool {
    world.node(&gpu()).is_some_and(|seen| seen.state == NodeState::Stopping)
}

fn was(world: &World, effect: &str) -> bool {
    world.effects.iter().any(|(_, what, _)| *what == effect)
}

fn quiet_beat() -> Beat {
    let since = Some(minutes_ago(170));
    let (open, counted, gpu, open_at, used_at) = (Some(0), Some(0), None, None, None);
    Beat { at: noon(), ready: true, row: 9, ready_since: since, open, counted, gpu, open_at, used_at, since }
}

fn world(state: NodeState) -> World {
    let mut world = World::at(noon());
    world.add_node(NodeSeen {
        id: gpu(),
        name: Some("gpu-1".to_owned()),
        pool: voice(),
        tags: BTreeMap::new(),
        state,
        launched_at: Some(minutes_ago(180)),
        state_reason: None,
        transition_at: None,
        address: Some("10.0.0.5".to_owned()),
        spot: false,
        instance_type: None,
        public_address: None,
    });
    let ready = ReadyFact { at: minutes_ago(179), launched_at: Some(minutes_ago(180)), lost_at: None };
    world.record(&voice()).nodes.entry(gpu()).or_default().ready = Some(ready);
    world
}

fn context() -> Context {
    let ready = ReadySource::Beat(1);
    let rules = PoolRules { ready, beat: true, leased: true, calls_per_node: Some(2), ..PoolRules::default() };
    Context {
        run: RunId("run-1".to_owned()),
        now: noon(),
        time_out: TimeDelta::seconds(60),
        policy: Policy::default(),
        pools: BTreeMap::from([(voice(), PoolPolicy { rules, ..PoolPolicy::default() })]),
        prices: Prices::new("us-east-1", BTreeMap::new()),
    }
}

/// Every kind of run, each in a world of its own.
fn every_run(world: &World, holds: impl Fn(&str, &World)) {
    let drive = |name: &str, mut run: Box<dyn Run>| {
        let mut world = world.clone();
        let outcome = drive(&mut world, run.as_mut());
        // A lease is refused where the node's claim or its leases cannot be read; nothing else gives up.
        assert!(outcome.blind.is_none() || name == "lease", "{name}: {outcome:?}");
        holds(name, &world);
    };
    let target = || Target::Pool(voice());
    let wishes = |source| Cause::Wishes(vec![WakeWish::new(target(), source)]);
    let caller = || Caller { class: "token:app".to_owned(), bucket: Some("c01".to_owned()) };
    let id = || LeaseId::new("call-1").expect("an id");
    let put = |lasts| LeaseWish { id: id(), target: Some(target()), lasts, renews: false, caller: caller() };
    drive("idle", Box::new(IdleRun::new(context())));
    drive("status", Box::new(WakeRun::new(context(), Cause::Status(target()))));
    drive("prewarm", Box::new(WakeRun::new(context(), wishes(WakeSource::Prewarm))));
    drive("line", Box::new(WakeRun::new(context(), wishes(WakeSource::LogLine))));
    drive("state", Box::new(WakeRun::new(context(), Cause::StateChange)));
    drive("lease", Box::new(LeaseRun::new(context(), put(Some(TimeDelta::seconds(120))))));
    drive("end of lease", Box::new(LeaseRun::new(context(), put(None))));
    drive("uptime", Box::new(UptimeRun::new(context())));
}

fn drive(world: &mut World, run: &mut dyn Run) -> Outcome {
    let mut answers = Vec::new();
    loop {
        match run.next(std::mem::take(&mut answers)) {
            reveille::run::Step::Calls(calls) => answers = calls.iter().map(|call| world.answer(call)).collect(),
            reveille::run::Step::Done(outcome) => return outcome,
        }
    }
}

/// As the executor reads a fact: not one with a time that no run can compute with.
fn fact<T: DeserializeOwned>(json: &Value) -> Option<T> {
    let value: AttributeValue = to_attribute_value(json).ok()?;
    if has_odd_time(json) { None } else { from_attribute_value(value).ok() }
}

fn has_odd_time(json: &Value) -> bool {
    let is_odd = |text: &str| text.parse::<Instant>().is_ok_and(|at| !is_computable(at));
    json.as_str().is_some_and(is_odd)
        || json.as_object().is_some_and(|fields| fields.values().any(has_odd_time))
        || json.as_array().is_some_and(|entries| entries.iter().any(has_odd_time))
}

fn is_written_as_it_was_read<T: Serialize + DeserializeOwned + PartialEq + Debug>(read: &T) {
    let written: AttributeValue = to_attribute_value(read).expect("what was read can be written");
    assert_eq!(from_attribute_value::<_, T>(written).as_ref().ok(), Some(read));
}

/// As the executor reads an item.
fn record(item: serde_json::Map<String, Value>) -> PoolRecord {
    let mut record = PoolRecord::default();
    for (name, value) in item {
        if !put(&mut record, &name, &value) {
            record.unread.push(name);
        }
    }
    // DynamoDB does these sums, and no number of its own ends at 64 bits.
    record.demand = record.demand.min(u64::from(u32::MAX));
    record.claims = record.claims.min(u64::from(u32::MAX));
    record
}

fn put(record: &mut PoolRecord, name: &str, value: &Value) -> bool {
    match name {
        "demand" => set(&mut record.demand, value),
        "claims" => set(&mut record.claims, value),
        "wake" => set(&mut record.wake, value),
        "line_wake" => set(&mut record.line_wake, value),
        "gate" => set(&mut record.gate, value),
        "rate" => set(&mut record.rate, value),
        _ => match name.split_once('#') {
            Some(("wait", id)) => {
                let waiting = LeaseId::new(id).ok().zip(fact::<DateTime<Utc>>(value));
                waiting.map(|(id, until)| record.waiting.insert(id, until)).is_some()
            }
            Some((kind, id)) => {
                NodeId::new(id).is_ok_and(|id| put_of_node(record.nodes.entry(id).or_default(), kind, value))
            }
            None => false,
        },
    }
}

fn put_of_node(node: &mut NodeRecord, kind: &str, value: &Value) -> bool {
    match kind {
        "wake" => set(&mut node.wake, value),
        "claim" => set(&mut node.claim, value),
        "mark" => set(&mut node.mark, value),
        "ready" => set(&mut node.ready, value),
        "fault" => set(&mut node.fault, value),
        "blind" => set(&mut node.blind, value),
        "launch" => set(&mut node.launch, value),
        "noise" => set(&mut node.noise, value),
        "leases" => set(&mut node.leases, value),
        "leased" => set(&mut node.leased, value),
        "hold" => set::<Option<Hold>>(&mut node.hold, value),
        "boots" => set(&mut node.boots, value),
        _ => false,
    }
}

fn set<T: Serialize + DeserializeOwned + PartialEq + Debug>(place: &mut T, value: &Value) -> bool {
    let Some(read) = fact::<T>(value) else { return false };
    is_written_as_it_was_read(&read);
    *place = read;
    true
}
