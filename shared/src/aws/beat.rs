//! The node's own call: it writes its beat, and knows its own name.

use super::errors::{call_error, malformed};
use super::item::attribute;
use crate::domain::{Beat, NodeId};
use crate::error::{CallError, ErrorClass, TookEffect};
use aws_config::SdkConfig;
use aws_config::imds::Client as Imds;
use aws_config::provider_config::ProviderConfig;
use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;

/// A beat tells of a node that is up. A week later it tells nothing any more, and the item of a node that was terminated
/// goes by itself.
const KEPT: TimeDelta = TimeDelta::days(7);

/// Writes beats into the ledger, and asks the instance for its name.
#[derive(Debug, Clone)]
pub struct BeatWriter {
    dynamodb: aws_sdk_dynamodb::Client,
    imds: Imds,
    table: String,
}

impl BeatWriter {
    /// A writer into this table.
    pub fn new(sdk: &SdkConfig, table: impl Into<String>) -> Self {
        let mut provider = ProviderConfig::without_region();
        if let Some(http) = sdk.http_client() {
            provider = provider.with_http_client(http);
        }
        let imds = Imds::builder().configure(&provider).build();
        Self { dynamodb: aws_sdk_dynamodb::Client::new(sdk), imds, table: table.into() }
    }

    /// The instance that this program runs on, by IMDSv2.
    ///
    /// # Errors
    /// The metadata service does not answer (it is off, or the program runs elsewhere).
    pub async fn this_node(&self) -> Result<NodeId, CallError> {
        let act = "read the instance id from IMDS";
        let id = self.imds.get("/latest/meta-data/instance-id").await;
        let id = id.map_err(|error| CallError {
            act: act.to_owned(),
            code: "NoAnswer".to_owned(),
            message: DisplayErrorContext(error).to_string().chars().take(200).collect(),
            class: ErrorClass::Transient,
            effect: TookEffect::No,
        })?;
        NodeId::new(id.as_ref()).map_err(|fault| malformed(act, fault))
    }

    /// Puts the beat in the place of the node's last one, whole: the agent on the node is its only writer.
    ///
    /// # Errors
    /// The call failed, by its class.
    pub async fn write(&self, node: &NodeId, beat: &Beat) -> Result<(), CallError> {
        let act = format!("write the beat of node {node}");
        let sent = self
            .dynamodb
            .put_item()
            .table_name(&self.table)
            .item("pk", AttributeValue::S(format!("beat#{node}")))
            .item("sk", AttributeValue::S("-".to_owned()))
            .item("beat", attribute(beat).map_err(|error| malformed(&act, error))?)
            .item("expires_at", AttributeValue::N((beat.at + KEPT).timestamp().to_string()))
            .send()
            .await;
        sent.map(|_| ()).map_err(|error| call_error(act, &error))
    }
}
