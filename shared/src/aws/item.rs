//! The pool's item: attributes to facts and back.

use crate::domain::{AlertKey, Gate, GateKeeper, Instant, LeaseId, NodeId, NodeRecord, PoolRecord, is_computable};
use crate::run::Fact;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;

pub(super) type Item = HashMap<String, AttributeValue>;

/// What the attribute of a message that could not be sent begins with; its key stands behind.
pub(super) const UNTOLD: &str = "untold#";

/// Reads an item. An attribute that cannot be read counts as absent and is listed: one bad fact never hides the others
/// (field case 23). One of NULL, which only a person writes, is no absent one: DynamoDB's conditions hold it to be there.
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
        _ if value.is_null() => false,
        "pk" | "sk" => true,
        "demand" => put(&mut record.demand, value),
        "claims" => put(&mut record.claims, value),
        "wake" => put(&mut record.wake, value),
        "line_wake" => put(&mut record.line_wake, value),
        "gate" => put(&mut record.gate, value),
        "rate" => put(&mut record.rate, value),
        _ if name.starts_with("wait#") => read_waiting(record, name, value),
        _ if name.starts_with(UNTOLD) => read_untold(record, name, value),
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

fn read_untold(record: &mut PoolRecord, name: &str, value: AttributeValue) -> bool {
    let key = name.strip_prefix(UNTOLD).map(|key| AlertKey(key.to_owned()));
    let text = serde_dynamo::from_attribute_value(value).ok();
    key.zip(text).map(|(key, text)| record.untold.insert(key, text)).is_some()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Mark, Wake, WakeSource};

    const OF_POOL: [&str; 8] = ["demand", "claims", "wake", "line_wake", "gate", "rate", "wait#call-1", "nobody"];
    const OF_NODE: [&str; 13] = [
        "wake", "claim", "mark", "ready", "fault", "blind", "launch", "noise", "leases", "leased", "hold", "boots",
        "nothing",
    ];

    /// What no attribute but `leases`, which may be empty, is.
    fn wrong_values() -> [(&'static str, AttributeValue); 8] {
        let map = |name: &str, value| AttributeValue::M(HashMap::from([(name.to_owned(), value)]));
        let text = |text: &str| AttributeValue::S(text.to_owned());
        [
            ("text", text("soon")),
            ("nothing", text("")),
            ("a number below zero", AttributeValue::N("-1".to_owned())),
            ("a fraction", AttributeValue::N("0.5".to_owned())),
            ("yes", AttributeValue::Bool(true)),
            ("NULL", AttributeValue::Null(true)),
            ("a list", AttributeValue::L(vec![text("x")])),
            ("a map of something else", map("at", text("soon"))),
        ]
    }

    #[test]
    fn case_23_an_attribute_of_a_wrong_type_is_listed_and_hides_no_other() {
        let at = "2026-11-30T10:00:00Z".parse().unwrap();
        let (mark, wake) = (Mark { at, launched_at: None }, Wake::new(at, WakeSource::Call));
        let good = [("mark#i-good", attribute(&mark).unwrap()), ("wake#i-good", attribute(&wake).unwrap())];
        let of_node = OF_NODE.map(|kind| format!("{kind}#i-bad"));
        for name in OF_POOL.map(str::to_owned).into_iter().chain(of_node) {
            for (what, value) in wrong_values() {
                let good = good.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
                let read = record(good.chain([(name.clone(), value)]).collect());
                assert_eq!(read.unread, [name.as_str()], "{name} is {what}");
                let node = read.node(&NodeId::new("i-good").unwrap());
                assert_eq!((node.mark.as_ref(), node.wake.as_ref()), (Some(&mark), Some(&wake)), "{name} is {what}");
                assert_eq!(read.gate.is_some(), name == "gate", "{name} is {what}: a gate that is there is closed");
            }
        }
    }

    #[test]
    fn case_23_a_kind_that_a_later_version_writes_is_no_kind_of_this_one() {
        let at = "2026-11-30T10:00:00Z".parse().unwrap();
        let mut wake = attribute(&Wake::new(at, WakeSource::Call)).unwrap();
        if let AttributeValue::M(fields) = &mut wake {
            fields.insert("source".to_owned(), AttributeValue::S("telepathy".to_owned()));
        }
        let read = record(Item::from([("wake".to_owned(), wake)]));
        assert_eq!((read.wake, read.unread), (None, vec!["wake".to_owned()]));
    }

    /// A run knows its claim by its instant: a clock counts nanoseconds, and none may be lost on the way.
    #[test]
    fn an_instant_comes_back_to_the_nanosecond() {
        let at: Instant = "2026-11-30T10:00:00.123456789Z".parse().unwrap();
        let read = record(Item::from([("wake".to_owned(), attribute(&Wake::new(at, WakeSource::Call)).unwrap())]));
        assert_eq!(read.wake.map(|wake| wake.at), Some(at));
    }
}
