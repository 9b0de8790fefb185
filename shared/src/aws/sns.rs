//! SNS: alerts to people.

use super::errors::{call_error, malformed};
use crate::error::CallError;
use crate::run::Alert;
use aws_sdk_sns::Client;
use aws_sdk_sns::types::MessageAttributeValue;

/// Publishes one alert with attributes that machines can filter by.
pub(super) async fn publish(client: &Client, topic_arn: &str, alert: &Alert) -> Result<(), CallError> {
    let act = format!("publish {}", alert.key.0);
    let text = |value: &str| {
        let value = MessageAttributeValue::builder().data_type("String").string_value(value).build();
        value.map_err(|error| malformed(&act, error))
    };
    let mut request = client
        .publish()
        .topic_arn(topic_arn)
        .subject(&alert.subject)
        .message(&alert.body)
        .message_attributes("kind", text(alert.kind.as_str())?);
    for (name, value) in &alert.attributes {
        request = request.message_attributes(name, text(value)?);
    }
    if let Some(pool) = &alert.pool {
        request = request.message_attributes("pool", text(pool.as_str())?);
    }
    if let Some(node) = &alert.node {
        request = request.message_attributes("node", text(node.as_str())?);
    }
    request.send().await.map(|_| ()).map_err(|error| call_error(act, &error))
}
