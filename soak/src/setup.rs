//! What the operator of a day has configured, as the functions read it: environment variables.

use chrono::{DateTime, Utc};
use reveille::config::{Config, ConfigFaults};
use reveille::domain::{NodeId, PoolName, WordFault};
use reveille::run::MetricRef;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What tells that a node is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyBy {
    /// EC2's status checks.
    Checks,
    /// The node's beats.
    Beat,
    /// The load balancer.
    Hosts,
}

/// One pool of the day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSetup {
    /// Its name.
    pub name: String,
    /// Its nodes' ids.
    pub nodes: Vec<String>,
    /// What tells that they are ready.
    pub ready: ReadyBy,
    /// Requests are counted by a metric.
    pub requests: bool,
    /// Open calls are shown by a gauge.
    pub gauge: bool,
    /// The nodes' beats are use.
    pub beat: bool,
    /// Requests are counted in a log.
    pub logs: bool,
    /// The app takes a lease for every call.
    pub leased: bool,
    /// The calls a node can take.
    pub per_node: Option<u32>,
    /// The share of them from which on another node is wanted.
    pub fill_percent: Option<u32>,
    /// A warm window: from, to, nodes.
    pub warm: Option<(String, String, u32)>,
    /// The instance types a node may be started as.
    pub types: Vec<String>,
}

/// The budget of the day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSetup {
    /// US dollars a month.
    pub amount: String,
    /// `alert`, `gate` or `stop`.
    pub enforce: String,
}

/// The configuration of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The first instant of the local day.
    pub start: DateTime<Utc>,
    /// How long the day lasts, in hours.
    pub hours: i64,
    /// The operator's zone.
    pub zone: String,
    /// The pools.
    pub pools: Vec<PoolSetup>,
    /// The budget, where there is one.
    pub budget: Option<BudgetSetup>,
    /// How long a pre-warm keeps a node, where that is not the idle time.
    pub prewarm_minutes: Option<i64>,
    /// From how much uptime on a person is told.
    pub uptime_hours: i64,
    /// How long the nodes' app takes to come up, in seconds.
    pub boot_seconds: i64,
}

impl PoolSetup {
    /// Its name as the runs know it.
    ///
    /// # Errors
    /// It is no word.
    pub fn pool(&self) -> Result<PoolName, WordFault> {
        PoolName::new(self.name.clone())
    }

    /// The log in which its requests are counted.
    pub fn log_group(&self) -> String {
        format!("/{}/node", self.name)
    }

    fn spec(&self) -> Value {
        let alive = |name: &str| {
            let mut spec = metric_spec(name);
            spec["alive"] = metric_spec("Healthy");
            spec
        };
        let lines = json!({ "paths": ["/v1/calls"] });
        let mut spec = json!({ "log_groups": [format!("/{}/front", self.name)], "wake": lines });
        if self.requests {
            spec["requests"] = json!([alive("Requests")]);
        }
        if self.gauge {
            spec["open"] = json!([alive("Open")]);
        }
        if self.logs {
            spec["logs"] = json!([{ "group": self.log_group(), "lines": lines, "alive": metric_spec("Healthy") }]);
        }
        spec["beat"] = json!(self.beat);
        spec["ready"] = match self.ready {
            ReadyBy::Checks => json!("checks"),
            ReadyBy::Beat => json!("beat"),
            ReadyBy::Hosts => metric_spec("Healthy"),
        };
        if self.leased {
            spec["calls"] = json!("leased");
        } else if !self.gauge && !self.beat {
            spec["calls"] = json!("unobserved");
        }
        if let Some(calls) = self.per_node {
            spec["calls_per_node"] = json!(calls);
        }
        if let Some(percent) = self.fill_percent {
            spec["fill_percent"] = json!(percent);
        }
        if let Some((from, to, nodes)) = &self.warm {
            spec["warm"] = json!([{ "from": from, "to": to, "nodes": nodes }]);
        }
        if !self.types.is_empty() {
            spec["instance_types"] = json!(self.types);
        }
        spec
    }
}

fn metric_spec(name: &str) -> Value {
    json!({ "namespace": "Voice", "metric": name, "dimensions": { "Node": "{node}" } })
}

/// One of a node's metrics: `Requests`, `Open` or `Healthy`.
pub fn metric(name: &str, node: &NodeId) -> MetricRef {
    let dimensions = BTreeMap::from([("Node".to_owned(), node.as_str().to_owned())]);
    MetricRef { namespace: "Voice".to_owned(), metric: name.to_owned(), dimensions }
}

impl Setup {
    /// The environment of the functions.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let pools: BTreeMap<&str, Value> = self.pools.iter().map(|pool| (pool.name.as_str(), pool.spec())).collect();
        let mut vars = BTreeMap::from([
            ("REVEILLE_POOLS".to_owned(), json!(pools).to_string()),
            ("REVEILLE_TABLE".to_owned(), "reveille".to_owned()),
            ("REVEILLE_ALERT_TOPIC_ARN".to_owned(), "arn:aws:sns:us-east-1:123456789012:reveille".to_owned()),
            ("REVEILLE_ZONE".to_owned(), self.zone.clone()),
            ("REVEILLE_UPTIME_HOURS".to_owned(), self.uptime_hours.to_string()),
            ("AWS_REGION".to_owned(), "us-east-1".to_owned()),
        ]);
        if let Some(minutes) = self.prewarm_minutes {
            vars.insert("REVEILLE_PREWARM_MINUTES".to_owned(), minutes.to_string());
        }
        if let Some(budget) = &self.budget {
            let mail = ["ops@example.com"];
            let spec = json!({ "amount": budget.amount, "currency": "USD", "enforce": budget.enforce, "mail": mail });
            vars.insert("REVEILLE_BUDGET".to_owned(), spec.to_string());
        }
        vars
    }

    /// The configuration as the functions read it.
    ///
    /// # Errors
    /// Every fault of the configuration.
    pub fn config(&self) -> Result<Config, ConfigFaults> {
        Config::from_vars(&self.environment())
    }
}
