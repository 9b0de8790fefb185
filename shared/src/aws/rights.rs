//! EC2's dry runs: whether this role may do what it hardly ever does, asked before it has to.

use super::errors::call_error;
use super::{Aws, ec2};
use crate::domain::{InstanceType, NodeId, NodeSeen, NodeState, PoolName};
use crate::error::CallError;
use crate::operator::Right;
use crate::run::PoolPolicy;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_ec2::types::AttributeValue;
use futures::future::join_all;
use std::collections::{BTreeMap, BTreeSet};

/// What EC2 answers where the call would have been carried out.
const WOULD_HAVE: &str = "DryRunOperation";

impl Aws {
    /// Asks for each node whether it may be started, changed where its pool allows several types, and, if `stops`, stopped.
    ///
    /// # Errors
    /// The nodes cannot be listed.
    pub async fn rights(&self, pools: &BTreeMap<PoolName, PoolPolicy>, stops: bool) -> Result<Vec<Right>, CallError> {
        let names: BTreeSet<PoolName> = pools.keys().cloned().collect();
        let nodes = ec2::describe(&self.ec2, Some(&names)).await?;
        let alive = nodes.iter().filter(|seen| seen.state != NodeState::Gone);
        let asked = join_all(alive.map(|seen| self.rights_on(seen, pools.get(&seen.pool), stops))).await;
        Ok(asked.into_iter().flatten().collect())
    }

    async fn rights_on(&self, seen: &NodeSeen, pool: Option<&PoolPolicy>, stops: bool) -> Vec<Right> {
        let types = pool.map(|pool| pool.types.as_slice()).unwrap_or_default();
        let mut rights = Vec::new();
        let mut add = |act: &str, asked: Result<(), CallError>| {
            let refused = asked.err().map(|error| error.code);
            rights.push(Right { act: act.to_owned(), node: seen.id.clone(), refused });
        };
        add("ec2:StartInstances", start(&self.ec2, &seen.id).await);
        if stops {
            add("ec2:StopInstances", stop(&self.ec2, &seen.id).await);
        }
        if let Some(other) = types.iter().find(|kind| Some(*kind) != seen.instance_type.as_ref()) {
            add("ec2:ModifyInstanceAttribute", resize(&self.ec2, &seen.id, other).await);
        }
        rights
    }
}

async fn start(client: &Client, node: &NodeId) -> Result<(), CallError> {
    would_have("start", client.start_instances().instance_ids(node.as_str()).dry_run(true).send().await)
}

async fn stop(client: &Client, node: &NodeId) -> Result<(), CallError> {
    would_have("stop", client.stop_instances().instance_ids(node.as_str()).dry_run(true).send().await)
}

async fn resize(client: &Client, node: &NodeId, to: &InstanceType) -> Result<(), CallError> {
    let value = AttributeValue::builder().value(to.as_str()).build();
    let request = client.modify_instance_attribute().instance_id(node.as_str()).instance_type(value).dry_run(true);
    would_have("change the type", request.send().await)
}

/// A dry run never succeeds: where it may, it is refused by a code of its own.
fn would_have<T, E>(act: &str, sent: Result<T, SdkError<E, HttpResponse>>) -> Result<(), CallError>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    match sent {
        Ok(_) => Ok(()),
        Err(error) if error.as_service_error().and_then(ProvideErrorMetadata::code) == Some(WOULD_HAVE) => Ok(()),
        Err(error) => Err(call_error(format!("try to {act}"), &error)),
    }
}
