//! EventBridge rules.

use aws_config::SdkConfig;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::RuleState;
use reveille::aws::call_error;
use reveille::error::CallError;

/// A rule as it is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) enabled: bool,
    /// Such as `rate(5 minutes)`; empty of a rule for events.
    pub(crate) schedule: String,
    /// The ARNs of what it calls.
    pub(crate) targets: Vec<String>,
}

/// None where there is no such rule.
///
/// # Errors
/// It cannot be read.
pub(crate) async fn rule(sdk: &SdkConfig, name: &str) -> Result<Option<Rule>, CallError> {
    let client = Client::new(sdk);
    let sent = client.describe_rule().name(name).send().await;
    let answer = match sent.map_err(|error| call_error(format!("read rule {name}"), &error)) {
        Ok(answer) => answer,
        Err(error) if crate::ops::fault::is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let sent = client.list_targets_by_rule().rule(name).send().await;
    let targets = sent.map_err(|error| call_error(format!("read the targets of rule {name}"), &error))?;
    Ok(Some(Rule {
        enabled: answer.state() != Some(&RuleState::Disabled),
        schedule: answer.schedule_expression().unwrap_or_default().to_owned(),
        targets: targets.targets().iter().map(|target| target.arn().to_owned()).collect(),
    }))
}
