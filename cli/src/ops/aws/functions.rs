//! The deployed functions: their settings, and what is asked of them by an invocation.

use crate::ops::fault::{Fault, is_missing, line};
use aws_config::SdkConfig;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::Builder;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::timeout::TimeoutConfig;
use aws_sdk_lambda::primitives::Blob;
use reveille::aws::call_error;
use reveille::operator::{Asked, FIELD};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The function whose variables are the settings. The wake function has the tokens' hashes besides, which are no operator's
/// business.
const WITH_SETTINGS: &str = "idle-check";

const CONNECT: Duration = Duration::from_secs(2);
/// A little longer than the longest time-out of the two functions that are asked (infra/modules/controller).
const LONGEST_RUN: Duration = Duration::from_secs(70);

/// The functions of one deployment.
#[derive(Debug)]
pub(crate) struct Functions {
    /// For what may be asked again.
    settings: Client,
    client: Client,
    name: String,
}

impl Functions {
    pub(crate) fn new(sdk: &SdkConfig, name: &str) -> Self {
        // An order is sent once: the answer to a second one would tell of the first.
        let time_outs = TimeoutConfig::builder()
            .connect_timeout(CONNECT)
            .read_timeout(LONGEST_RUN)
            .operation_attempt_timeout(LONGEST_RUN)
            .operation_timeout(LONGEST_RUN)
            .build();
        let config = Builder::from(sdk).retry_config(RetryConfig::disabled()).timeout_config(time_outs).build();
        Self { settings: Client::new(sdk), client: Client::from_conf(config), name: name.to_owned() }
    }

    /// The full name of one.
    pub(crate) fn full_name(&self, function: &str) -> String {
        format!("{}-{function}", self.name)
    }

    /// The variables of the deployed idle check.
    ///
    /// # Errors
    /// It is not there, its variables are encrypted with a key that this caller may not use, or AWS was not reached.
    pub(crate) async fn settings(&self, region: &str) -> Result<BTreeMap<String, String>, Fault> {
        let function = self.full_name(WITH_SETTINGS);
        let sent = self.settings.get_function_configuration().function_name(&function).send().await;
        let answer = sent.map_err(|error| {
            let error = call_error(format!("read the settings of {function}"), &error);
            if is_missing(&error) { no_function(&function, region) } else { error.into() }
        })?;
        let variables = answer.environment();
        if let Some(error) = variables.and_then(|variables| variables.error()) {
            let why = line(error.message().unwrap_or_default());
            return Err(Fault::Aws(format!("the settings of {function} cannot be read: {why}")));
        }
        Ok(variables.and_then(|variables| variables.variables()).cloned().unwrap_or_default().into_iter().collect())
    }

    /// Asks a function, and waits for its answer.
    ///
    /// # Errors
    /// It is not there, may not be invoked, or failed.
    pub(crate) async fn ask(&self, function: &str, asked: &Asked, region: &str) -> Result<Value, Fault> {
        let function = self.full_name(function);
        let payload = Blob::new(json!({ FIELD: asked }).to_string());
        let sent = self.client.invoke().function_name(&function).payload(payload).send().await;
        let answer = sent.map_err(|error| {
            let error = call_error(format!("invoke {function}"), &error);
            if is_missing(&error) { no_function(&function, region) } else { error.into() }
        })?;
        let body = answer.payload().map(|payload| String::from_utf8_lossy(payload.as_ref()).into_owned());
        let body = body.unwrap_or_default();
        if answer.function_error().is_some() {
            return Err(Fault::Aws(format!("{function} failed: {}; its log says why", line(&body))));
        }
        serde_json::from_str(&body).map_err(|_| Fault::Aws(format!("{function} gave no answer that can be read")))
    }
}

fn no_function(function: &str, region: &str) -> Fault {
    Fault::Usage(format!("no function {function} in {region}: give --region or --name, or set REVEILLE_POOLS"))
}
