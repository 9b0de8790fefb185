//! The SDK's configuration inside of Lambda, from the environment alone.
//!
//! Lambda sets region and credentials as variables. The SDK's own loader would look for profiles, roles and metadata services
//! besides, and each of its providers is linked into every function: 0.6 MB of program that never runs.

use super::{http_client, retries, time_outs};
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_ec2::config::{SharedAsyncSleep, SharedCredentialsProvider};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};
use std::collections::BTreeMap;

/// What every client of a function is made with.
pub(super) fn sdk_config(vars: &BTreeMap<String, String>) -> SdkConfig {
    let is_set = |name: &str| vars.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(vars.get("AWS_REGION").or_else(|| vars.get("AWS_DEFAULT_REGION")).cloned().map(Region::new))
        .credentials_provider(SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new()))
        .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
        .use_fips(is_set("AWS_USE_FIPS_ENDPOINT"))
        .use_dual_stack(is_set("AWS_USE_DUALSTACK_ENDPOINT"))
        .service_config(Endpoints(vars.clone()))
        .http_client(http_client())
        .timeout_config(time_outs())
        .retry_config(retries())
        .build()
}

/// The variables that lead to another endpoint than AWS's own: of one service, else of all.
#[derive(Debug)]
struct Endpoints(BTreeMap<String, String>);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let of_service = format!("{}_{}", key.env(), key.service_id().to_uppercase().replace([' ', '-'], "_"));
        self.0.get(&of_service).or_else(|| self.0.get(key.env())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint_of(vars: &[(&str, &str)], service: &str) -> Option<String> {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let key = ServiceConfigKey::builder().service_id(service).profile("endpoint_url").env("AWS_ENDPOINT_URL");
        sdk_config(&vars).service_config()?.load_config(key.build().unwrap())
    }

    #[test]
    fn an_endpoint_of_one_service_comes_before_that_of_all() {
        let vars = [("AWS_ENDPOINT_URL", "http://all"), ("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "http://logs")];
        assert_eq!(endpoint_of(&vars, "CloudWatch Logs").as_deref(), Some("http://logs"));
        assert_eq!(endpoint_of(&vars, "EC2").as_deref(), Some("http://all"));
        assert_eq!(endpoint_of(&[], "EC2"), None);
    }

    #[test]
    fn the_region_is_the_one_that_lambda_sets() {
        let vars = [("AWS_REGION", "ap-northeast-2"), ("AWS_DEFAULT_REGION", "us-east-1")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(sdk_config(&vars).region().map(Region::as_ref), Some("ap-northeast-2"));
    }
}
