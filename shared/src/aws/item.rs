//! The pool's item: attributes to facts and back.

use crate::domain::{Gate, GateKeeper, Instant, LeaseId, NodeId, NodeRecord, PoolRecord, is_computable};
use crate::run::Fact;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;

pub(super) type Item = HashMap<String, AttributeValue>;

/// Reads an item. An attribute that cannot be read counts as absent and is listed: one bad fact never hides the others
/// (field case 23).
pub(super) fn record(item: Item) -> PoolRecord {
    let mut record = PoolRecord::default();
    for (name, value) in item {
        let gate = (name == "gate").then(|| value.clone());
        if !read(&mut record, &name, value) {
            // A gate that somebody wrote by hand, and that DynamoDB holds against every wake.
            if let Some(gate) = gate {
                record.gate = Some(gate_by_hand(&gate));
            }
            tracing::warn!(attribute = %name, "ledger attribute cannot be read");
            record.unread.push(name);
        }
    }
    record
}

/// What can be read of it: DynamoDB holds to its end, and to the budget's hand, whatever else is wrong.
fn gate_by_hand(value: &AttributeValue) -> Gate {
    let text = |name: &str| value.as_m().ok()?.get(name)?.as_s().ok();
    let by_budget = text("by").is_some_and(|by| by == "budget");
    Gate {
        by: if by_budget { GateKeeper::Budget } else { GateKeeper::Person },
        since: Instant::UNIX_EPOCH,
        reason: "the gate in the ledger cannot be read: correct or remove the attribute `gate` of the pool's item"
            .to_owned(),
        amount: None,
        until: text("until").and_then(|until| until.parse().ok()).filter(|until| is_computable(*until)),
        drain: false,
    }
}

fn read(record: &mut PoolRecord, name: &str, value: AttributeValue) -> bool {
    match name {
        "pk" | "sk" => true,
        "demand" => put(&mut record.demand, value),
        "claims" => put(&mut record.claims, value),
        "wake" => put(&mut record.wake, value),
        "line_wake" => put(&mut record.line_wake, value),
        "gate" => put(&mut record.gate, value),
        "rate" => put(&mut record.rate, value),
        _ if name.starts_with("wait#") => read_waiting(record, name, value),
        _ => match name.split_once('#').and_then(|(kind, id)| Some((kind, NodeId::new(id).ok()?))) {
            Some((kind, id)) => read_fact(record.nodes.entry(id).or_default(), kind, value),
            None => false,
        },
    }
}

/// `wait#LEASE`: until when a call is taken to wait.
fn read_waiting(record: &mut PoolRecord, name: &str, value: AttributeValue) -> bool {
    let id = name.split_once('#').and_then(|(_, id)| LeaseId::new(id).ok());
    let until = from_attribute(value);
    id.zip(until).map(|(id, until)| record.waiting.insert(id, until)).is_some()
}

fn read_fact(node: &mut NodeRecord, kind: &str, value: AttributeValue) -> bool {
    match kind {
        "wake" => put(&mut node.wake, value),
        "claim" => put(&mut node.claim, value),
        "mark" => put(&mut node.mark, value),
        "ready" => put(&mut node.ready, value),
        "fault" => put(&mut node.fault, value),
        "blind" => put(&mut node.blind, value),
        "launch" => put(&mut node.launch, value),
        "noise" => put(&mut node.noise, value),
        "leases" => put(&mut node.leases, value),
        "leased" => put(&mut node.leased, value),
        "hold" => put(&mut node.hold, value),
        "boots" => put(&mut node.boots, value),
        _ => false,
    }
}

fn put<T: DeserializeOwned>(place: &mut T, value: AttributeValue) -> bool {
    from_attribute(value).map(|value| *place = value).is_some()
}

/// The one place where a fact is read: none where it is not of its type, or holds a time that no run can compute with.
pub(super) fn from_attribute<T: DeserializeOwned>(value: AttributeValue) -> Option<T> {
    if has_odd_time(&value) { None } else { serde_dynamo::from_attribute_value(value).ok() }
}

fn has_odd_time(value: &AttributeValue) -> bool {
    let is_odd = |text: &String| text.parse::<Instant>().is_ok_and(|at| !is_computable(at));
    value.as_s().is_ok_and(is_odd)
        || value.as_m().is_ok_and(|fields| fields.values().any(has_odd_time))
        || value.as_l().is_ok_and(|entries| entries.iter().any(has_odd_time))
}

/// A fact as an attribute.
pub(super) fn attribute<T: Serialize>(value: &T) -> Result<AttributeValue, serde_dynamo::Error> {
    serde_dynamo::to_attribute_value(value)
}

/// The kind of a fact and its value; none to remove it.
pub(super) fn fact(fact: &Fact) -> Result<(&'static str, Option<AttributeValue>), serde_dynamo::Error> {
    Ok(match fact {
        Fact::Mark(mark) => ("mark", mark.as_ref().map(attribute).transpose()?),
        Fact::Ready(ready) => ("ready", ready.as_ref().map(attribute).transpose()?),
        Fact::Fault(fault) => ("fault", fault.as_ref().map(attribute).transpose()?),
        Fact::Blind(blind) => ("blind", blind.as_ref().map(attribute).transpose()?),
        Fact::Noise(noise) => ("noise", noise.as_ref().map(attribute).transpose()?),
        Fact::Boots(boots) => ("boots", boots.as_ref().map(attribute).transpose()?),
    })
}
