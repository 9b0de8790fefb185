//! EC2: tags of every instance, stop protection, spot requests.

use aws_config::SdkConfig;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{Filter, InstanceAttributeName, InstanceStateName, SpotInstanceType};
use reveille::aws::{call_error, names_a_next, whole};
use reveille::domain::NodeId;
use reveille::error::CallError;
use std::collections::{BTreeMap, BTreeSet};

/// An instance with all its tags, as they are spelt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tagged {
    pub(crate) id: NodeId,
    pub(crate) running: bool,
    pub(crate) tags: BTreeMap<String, String>,
}

/// Every instance of the region that is not terminated, tagged or not: a tag that is misspelt is found by no filter.
///
/// # Errors
/// They cannot be listed to the end.
pub(crate) async fn instances(sdk: &SdkConfig) -> Result<Vec<Tagged>, CallError> {
    let act = "list instances";
    let mut pages = Client::new(sdk).describe_instances().into_paginator().send();
    let (mut found, mut more) = (Vec::new(), false);
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| call_error(act, &error))?;
        more = names_a_next(page.next_token());
        for instance in page.reservations().iter().flat_map(|reservation| reservation.instances()) {
            let state = instance.state().and_then(|state| state.name());
            let gone = matches!(state, Some(InstanceStateName::Terminated | InstanceStateName::ShuttingDown));
            let Some(id) = instance.instance_id().and_then(|id| NodeId::new(id).ok()).filter(|_| !gone) else {
                continue;
            };
            let pairs = instance.tags().iter();
            let tags =
                pairs.filter_map(|tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned())));
            let running = matches!(state, Some(InstanceStateName::Running | InstanceStateName::Pending));
            found.push(Tagged { id, running, tags: tags.collect() });
        }
    }
    whole(act, more)?;
    Ok(found)
}

/// Whether EC2 refuses to stop it.
///
/// # Errors
/// It cannot be read.
pub(crate) async fn is_stop_protected(sdk: &SdkConfig, node: &NodeId) -> Result<bool, CallError> {
    let request = Client::new(sdk).describe_instance_attribute().instance_id(node.as_str());
    let sent = request.attribute(InstanceAttributeName::DisableApiStop).send().await;
    let answer = sent.map_err(|error| call_error(format!("read the stop protection of {node}"), &error))?;
    Ok(answer.disable_api_stop().and_then(|value| value.value()).unwrap_or(false))
}

/// Of these spot instances those whose request is persistent: the only ones that can be stopped.
///
/// # Errors
/// They cannot be read.
pub(crate) async fn persistent_spot(sdk: &SdkConfig, nodes: &BTreeSet<NodeId>) -> Result<BTreeSet<NodeId>, CallError> {
    let act = "read spot requests";
    let ids = nodes.iter().map(|node| node.as_str().to_owned()).collect();
    let filter = Filter::builder().name("instance-id").set_values(Some(ids)).build();
    let sent = Client::new(sdk).describe_spot_instance_requests().filters(filter).send().await;
    let answer = sent.map_err(|error| call_error(act, &error))?;
    whole(act, names_a_next(answer.next_token()))?;
    let persistent =
        answer.spot_instance_requests().iter().filter(|one| one.r#type() == Some(&SpotInstanceType::Persistent));
    Ok(persistent.filter_map(|one| NodeId::new(one.instance_id()?).ok()).collect())
}
