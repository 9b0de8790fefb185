//! What an apply has made, as `tests/infra/wiring.py` reads it back through AWS's own calls.

use crate::stage::{StageResult, root};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that drives the functions, and what watches them.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Wiring {
    /// The region of all of it.
    pub region: String,
    /// The account.
    pub account: String,
    /// The functions.
    pub functions: Vec<FunctionMade>,
    /// EventBridge's rules.
    pub rules: Vec<Rule>,
    /// Subscriptions of log groups.
    pub subscriptions: Vec<Subscription>,
    /// CloudWatch's alarms.
    pub alarms: Vec<Alarm>,
    /// The bodies of the dashboards.
    pub dashboards: Vec<Value>,
    /// Instances that are not terminated.
    pub nodes: Vec<NodeMade>,
    /// SNS topics.
    pub topics: Vec<Topic>,
    /// SQS queues: the URL by the ARN.
    pub queues: BTreeMap<String, String>,
}

/// A function.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FunctionMade {
    /// Its name.
    pub name: String,
    /// Its ARN.
    pub arn: String,
    /// Its role's name.
    pub role: String,
    /// Its runtime.
    pub runtime: String,
    /// The time-out, in seconds.
    pub timeout_seconds: u64,
    /// The memory, in MiB.
    pub memory_mb: u32,
    /// Its own variables.
    pub environment: BTreeMap<String, String>,
    /// Where its lines go.
    pub log_group: String,
    /// The program that was in the deployed zip.
    pub binary: PathBuf,
    /// The statements of its resource policy.
    pub policy: Vec<Value>,
    /// How it is invoked by events; absent: AWS's own defaults.
    pub invoke: Option<InvokeConfig>,
    /// Its URL.
    pub url: Option<Url>,
}

/// How asynchronous invocations are repeated.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct InvokeConfig {
    /// Repeats after the first attempt.
    pub retries: u32,
    /// The greatest age of an event, in seconds.
    pub max_age_seconds: u64,
    /// Where an event goes that failed for good: a queue's ARN.
    pub on_failure: Option<String>,
}

/// A function URL.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Url {
    /// `AWS_IAM` or `NONE`.
    pub auth: String,
}

/// A rule with its targets.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Rule {
    /// Its name.
    pub name: String,
    /// Its ARN.
    pub arn: String,
    /// Whether it is on.
    pub enabled: bool,
    /// `rate(…)`, for a scheduled one.
    pub schedule: Option<String>,
    /// The event pattern, for the others.
    pub pattern: Option<String>,
    /// Whom it tells.
    pub targets: Vec<Target>,
}

/// A target of a rule.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Target {
    /// The function's ARN.
    pub arn: String,
    /// A constant event, if there is one.
    pub input: Option<String>,
}

/// A subscription of a log group.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Subscription {
    /// The log group.
    pub group: String,
    /// The filter pattern.
    pub pattern: String,
    /// The function's ARN.
    pub destination: String,
}

/// A metric alarm.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Alarm {
    /// Its name.
    pub name: String,
    /// The metric's namespace.
    pub namespace: String,
    /// The metric.
    pub metric: String,
    /// The metric's dimensions.
    pub dimensions: BTreeMap<String, String>,
    /// `Sum`, `Maximum` or `SampleCount`.
    pub statistic: String,
    /// The length of a period, in seconds.
    pub period_seconds: i32,
    /// How many of them have to breach.
    pub periods: usize,
    /// The comparison's name.
    pub comparison: String,
    /// What is compared with.
    pub threshold: f64,
    /// What a period without a point counts as.
    pub missing: String,
    /// Whom it tells.
    pub actions: Vec<String>,
}

/// An instance.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct NodeMade {
    /// Its id.
    pub id: String,
    /// The role of its instance profile.
    pub role: Option<String>,
    /// Its user data, decoded.
    pub user_data: Option<String>,
}

/// A topic.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Topic {
    /// Its ARN.
    pub arn: String,
    /// The statements of its policy.
    pub policy: Vec<Value>,
}

impl Wiring {
    /// Reads everything; the programs of the deployed zips are unpacked below `out`.
    ///
    /// # Errors
    /// A call was refused, or no zip of `package` is the one that was deployed.
    pub(super) fn read(endpoint: &str, region: &str, package: &Path, out: &Path) -> StageResult<Self> {
        let ran = Command::new("python3")
            .arg(root().join("tests/infra/wiring.py"))
            .args([endpoint, region])
            .args([package, out])
            .env("PYTHONPATH", root().join(".tools/python"))
            .output()?;
        if !ran.status.success() {
            return Err(format!("wiring.py: {}", String::from_utf8_lossy(&ran.stderr)).into());
        }
        Ok(serde_json::from_slice(&ran.stdout)?)
    }

    /// The function whose name ends so.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn function(&self, ending: &str) -> StageResult<&FunctionMade> {
        let found = self.functions.iter().find(|function| function.name.ends_with(ending));
        found.ok_or_else(|| format!("no function {ending} was made").into())
    }
}

impl NodeMade {
    /// The variables in a file that the node's first boot writes, as systemd reads it.
    ///
    /// # Errors
    /// The user data has no such file.
    pub(super) fn env_file(&self, path: &str) -> StageResult<BTreeMap<String, String>> {
        let data = self.user_data.as_deref().ok_or("the node has no user data")?;
        let config: Value = serde_json::from_str(data.strip_prefix("#cloud-config\n").ok_or("no cloud-config")?)?;
        let files = config["write_files"].as_array().ok_or("cloud-config writes no files")?;
        let file = files.iter().find(|file| file["path"] == path).ok_or_else(|| format!("nothing writes {path}"))?;
        let lines = file["content"].as_str().ok_or("a file without content")?.lines();
        let unquoted = |value: &str| value.trim_matches('\'').to_owned();
        Ok(lines
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), unquoted(value)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_from_the_file_that_the_first_boot_writes() {
        let file = serde_json::json!({"path": "/etc/x.env", "content": "A=1\nB='{\"c\": [\"/v1/\"]}'\n"});
        let data = format!("#cloud-config\n{}", serde_json::json!({"write_files": [file]}));
        let node = NodeMade { id: "i-1".to_owned(), role: None, user_data: Some(data) };
        let vars = node.env_file("/etc/x.env").unwrap();
        assert_eq!(vars["A"], "1");
        assert_eq!(vars["B"], r#"{"c": ["/v1/"]}"#);
        assert!(node.env_file("/etc/y.env").is_err());
    }
}
