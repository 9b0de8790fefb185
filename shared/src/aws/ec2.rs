//! EC2: describe, status checks, start, stop.

use super::errors::{call_error, malformed, names_a_next, whole};
use crate::domain::{Disk, InstanceType, Instant, NodeId, NodeSeen, NodeState, PoolName, PublicAddress, StateReason};
use crate::error::CallError;
use crate::run::{Started, Stopped};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::types::{
    AttributeValue, Filter, Instance, InstanceLifecycleType, InstanceStateName, SummaryStatus, Tag, Volume,
};
use chrono::NaiveDateTime;
use std::collections::{BTreeMap, BTreeSet};

const POOL_TAG: &str = "reveille:pool";
/// DescribeInstanceStatus takes at most 100 ids with a page size.
const STATUS_IDS: usize = 100;

/// Every node with the pool tag. Pages end where there is no token, never where a page is short (field case 12).
pub(super) async fn describe(client: &Client, pools: Option<&BTreeSet<PoolName>>) -> Result<Vec<NodeSeen>, CallError> {
    let filter = match pools {
        Some(pools) => Filter::builder()
            .name(format!("tag:{POOL_TAG}"))
            .set_values(Some(pools.iter().map(|pool| pool.as_str().to_owned()).collect())),
        None => Filter::builder().name("tag-key").values(POOL_TAG),
    };
    let mut pages = client.describe_instances().filters(filter.build()).into_paginator().send();
    let (mut nodes, mut more) = (BTreeMap::new(), false);
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| call_error("describe nodes", &error))?;
        more = names_a_next(page.next_token());
        for instance in page.reservations().iter().flat_map(|reservation| reservation.instances()) {
            if let Some(node) = seen(instance) {
                nodes.insert(node.id.clone(), node);
            }
        }
    }
    whole("describe nodes", more)?;
    Ok(nodes.into_values().collect())
}

fn seen(instance: &Instance) -> Option<NodeSeen> {
    let id = NodeId::new(instance.instance_id()?).ok()?;
    let tag = |key: &str| instance.tags().iter().find(|tag| tag.key() == Some(key)).and_then(|tag| tag.value());
    let reason = instance.state_reason().and_then(|reason| {
        let (code, message) = (reason.code()?.to_owned(), reason.message().unwrap_or_default().to_owned());
        Some(StateReason { code, message })
    });
    Some(NodeSeen {
        id,
        name: tag("Name").filter(|name| !name.is_empty()).map(str::to_owned),
        pool: pool(tag(POOL_TAG)?),
        tags: tags(instance),
        state: state(instance.state()?.name()?),
        launched_at: instance.launch_time().and_then(|at| Instant::from_timestamp(at.secs(), at.subsec_nanos())),
        state_reason: reason.filter(|reason| !reason.code.is_empty()),
        transition_at: instance.state_transition_reason().and_then(transition_time),
        address: instance.private_ip_address().or(instance.public_ip_address()).map(str::to_owned),
        instance_type: instance.instance_type().and_then(|kind| InstanceType::new(kind.as_str()).ok()),
        public_address: public_address(instance),
        spot: instance.instance_lifecycle() == Some(&InstanceLifecycleType::Spot),
    })
}

/// All but the name and the pool, which are fields of their own.
fn tags(instance: &Instance) -> BTreeMap<String, String> {
    let pair = |tag: &Tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned()));
    instance.tags().iter().filter_map(pair).filter(|(key, _)| key != "Name" && key != POOL_TAG).collect()
}

/// An automatic address belongs to `amazon`, an Elastic IP to the account; one of each is billed alike, and the kept one
/// counts.
fn public_address(instance: &Instance) -> Option<PublicAddress> {
    let interfaces = instance.network_interfaces().iter();
    let owners = interfaces.filter_map(|interface| interface.association()?.ip_owner_id());
    owners
        .map(|owner| if owner == "amazon" { PublicAddress::Automatic } else { PublicAddress::Elastic })
        .max_by_key(|address| *address == PublicAddress::Elastic)
}

/// DescribeVolumes takes at most 200 values a filter.
const VOLUME_NODES: usize = 200;

/// The volumes attached to these nodes; pages end where there is no token.
pub(super) async fn disks(client: &Client, nodes: &BTreeSet<NodeId>) -> Result<BTreeMap<NodeId, Vec<Disk>>, CallError> {
    let ids: Vec<String> = nodes.iter().map(|node| node.as_str().to_owned()).collect();
    let mut found: BTreeMap<NodeId, Vec<Disk>> = BTreeMap::new();
    for chunk in ids.chunks(VOLUME_NODES) {
        let attached = Filter::builder().name("attachment.instance-id").set_values(Some(chunk.to_vec())).build();
        let mut pages = client.describe_volumes().filters(attached).into_paginator().send();
        let mut more = false;
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| call_error("read volumes", &error))?;
            more = names_a_next(page.next_token());
            for volume in page.volumes() {
                let owner = volume.attachments().iter().find_map(|attached| NodeId::new(attached.instance_id()?).ok());
                if let Some(owner) = owner {
                    found.entry(owner).or_default().push(disk(volume));
                }
            }
        }
        whole("read volumes", more)?;
    }
    Ok(found)
}

fn disk(volume: &Volume) -> Disk {
    Disk {
        kind: volume.volume_type().map_or("unknown", |kind| kind.as_str()).to_owned(),
        gib: volume.size().unwrap_or(0).into(),
        iops: volume.iops().unwrap_or(0).into(),
        mibps: volume.throughput().unwrap_or(0).into(),
        created_at: volume.create_time().and_then(|at| Instant::from_timestamp(at.secs(), 0)),
    }
}

/// One attribute a call, and only while the node is stopped. Not retried: the next tick decides afresh.
pub(super) async fn resize(client: &Client, node: &NodeId, to: &InstanceType) -> Result<(), CallError> {
    let act = format!("change node {node} to {to}");
    let once = aws_sdk_ec2::config::Builder::new().retry_config(RetryConfig::disabled());
    let request = client
        .modify_instance_attribute()
        .instance_id(node.as_str())
        .instance_type(AttributeValue::builder().value(to.as_str()).build());
    let sent = request.customize().config_override(once).send().await;
    sent.map(|_| ()).map_err(|error| call_error(act, &error))
}

/// A tag value that can be no pool's name becomes the name of a pool that no configuration has, so that the node is seen,
/// kept and told, never skipped.
fn pool(value: &str) -> PoolName {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    PoolName::new(value).unwrap_or_else(|fault| {
        tracing::warn!(tag = POOL_TAG, %fault, "tag value is no pool name");
        let cleaned: String = value.chars().take(48).map(plain).collect();
        PoolName::new(format!("unreadable-{cleaned}")).expect("cleaned to the word's letters and length")
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the SDK's enum is open: EC2 may add a state")]
fn state(name: &InstanceStateName) -> NodeState {
    match name {
        InstanceStateName::Pending => NodeState::Pending,
        InstanceStateName::Running => NodeState::Running,
        InstanceStateName::Stopping => NodeState::Stopping,
        InstanceStateName::Stopped => NodeState::Stopped,
        // A state that EC2 adds one day is neither started nor stopped.
        _ => NodeState::Gone,
    }
}

/// `User initiated (2026-11-30 10:05:00 GMT)`; other causes may carry no time.
fn transition_time(reason: &str) -> Option<Instant> {
    let inside = reason.rsplit_once('(')?.1.trim_end_matches(')');
    Some(NaiveDateTime::parse_from_str(inside, "%Y-%m-%d %H:%M:%S GMT").ok()?.and_utc())
}

/// Which of these running nodes pass both status checks.
pub(super) async fn readiness(client: &Client, nodes: &BTreeSet<NodeId>) -> Result<BTreeSet<NodeId>, CallError> {
    let ids: Vec<String> = nodes.iter().map(|node| node.as_str().to_owned()).collect();
    let mut ready = BTreeSet::new();
    for chunk in ids.chunks(STATUS_IDS) {
        let statuses = client
            .describe_instance_status()
            .set_instance_ids(Some(chunk.to_vec()))
            .send()
            .await
            .map_err(|error| call_error("read readiness", &error))?;
        for status in statuses.instance_statuses() {
            let ok = |summary: Option<&SummaryStatus>| summary == Some(&SummaryStatus::Ok);
            let both = ok(status.instance_status().and_then(|status| status.status()))
                && ok(status.system_status().and_then(|status| status.status()));
            ready.extend(status.instance_id().filter(|_| both).and_then(|id| NodeId::new(id).ok()));
        }
    }
    Ok(ready)
}

/// One id, one attempt: a repeated START would be a second claim's business (field cases 09, 10).
pub(super) async fn start(client: &Client, node: &NodeId) -> Result<Started, CallError> {
    let act = format!("start node {node}");
    let once = aws_sdk_ec2::config::Builder::new().retry_config(RetryConfig::disabled());
    let sent = client.start_instances().instance_ids(node.as_str()).customize().config_override(once).send().await;
    let answer = sent.map_err(|error| call_error(&act, &error))?;
    let change = answer.starting_instances().first();
    let before = change.and_then(|change| change.previous_state()).and_then(|state| state.name());
    before.map(|name| Started { before: state(name) }).ok_or_else(|| malformed(act, "no previous state in the answer"))
}

/// One id, one attempt.
pub(super) async fn stop(client: &Client, node: &NodeId, force: bool) -> Result<Stopped, CallError> {
    let act = format!("stop node {node}");
    let once = aws_sdk_ec2::config::Builder::new().retry_config(RetryConfig::disabled());
    let request = client.stop_instances().instance_ids(node.as_str()).set_force(force.then_some(true));
    let sent = request.customize().config_override(once).send().await;
    let answer = sent.map_err(|error| call_error(&act, &error))?;
    let change = answer.stopping_instances().first();
    let before = change.and_then(|change| change.previous_state()).and_then(|state| state.name());
    before.map(|name| Stopped { before: state(name) }).ok_or_else(|| malformed(act, "no previous state in the answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_time_of_a_transition_where_there_is_one() {
        let at = transition_time("User initiated (2026-11-30 10:05:00 GMT)");
        assert_eq!(at, "2026-11-30T10:05:00Z".parse().ok());
        for none in ["", "Server.InternalError", "User initiated", "User initiated (soon)", "(()"] {
            assert_eq!(transition_time(none), None, "{none}");
        }
    }

    #[test]
    fn a_tag_value_that_is_no_name_becomes_a_pool_of_no_configuration() {
        assert_eq!(pool("voice").as_str(), "voice");
        assert_eq!(pool("voice pool ü").as_str(), "unreadable-voice_pool__");
        assert_eq!(pool("").as_str(), "unreadable-");
    }
}
