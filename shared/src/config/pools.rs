//! The pools: their signals and logs, which lines wake them, and as which types their nodes may start.

use super::{DEFAULT_POOL, POOLS, Pool, Read};
use crate::access_log::{Filter, FilterSpec};
use crate::domain::{InstanceType, PoolName, WarmWindow, WindowSpec};
use crate::observation::SignalKind;
use crate::policy::{MOST_LEASES, PoolRules, ReadySource};
use crate::run::{LogSource, MetricRef, PoolPolicy, Signal};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolSpec {
    #[serde(default)]
    requests: Vec<SignalSpec>,
    #[serde(default)]
    open: Vec<SignalSpec>,
    #[serde(default)]
    logs: Vec<LogSpec>,
    #[serde(default)]
    log_groups: BTreeSet<String>,
    wake: Option<FilterSpec>,
    calls: Option<String>,
    #[serde(default)]
    instance_types: Vec<String>,
    #[serde(default)]
    beat: bool,
    ready: Option<ReadySpec>,
    ready_beats: Option<u32>,
    calls_per_node: Option<u32>,
    fill_percent: Option<u32>,
    #[serde(default)]
    warm: Vec<WindowSpec>,
}

/// What readiness is read from: a word, or the load balancer's metric.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ReadySpec {
    Word(String),
    HealthyHosts(MetricRef),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogSpec {
    group: String,
    lines: FilterSpec,
    alive: Option<MetricRef>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignalSpec {
    namespace: String,
    metric: String,
    #[serde(default)]
    dimensions: BTreeMap<String, String>,
    alive: Option<MetricRef>,
}

impl SignalSpec {
    fn signal(self, kind: SignalKind) -> Signal {
        let metric = MetricRef { namespace: self.namespace, metric: self.metric, dimensions: self.dimensions };
        Signal { kind, metric, alive: self.alive }
    }
}

impl Read<'_> {
    pub(super) fn default_pool(&mut self, pools: &BTreeMap<PoolName, Pool>) -> Option<PoolName> {
        let Some(text) = self.get(DEFAULT_POOL).map(str::to_owned) else {
            return (pools.len() == 1).then(|| pools.keys().next().cloned()).flatten();
        };
        match PoolName::new(text) {
            Ok(name) if pools.contains_key(&name) => Some(name),
            Ok(name) => {
                self.fault(DEFAULT_POOL, format_args!("{name} is not in {POOLS}"));
                None
            }
            Err(fault) => {
                self.fault(DEFAULT_POOL, fault);
                None
            }
        }
    }

    pub(super) fn pools(&mut self) -> BTreeMap<PoolName, Pool> {
        let text = self.required(POOLS);
        if text.is_empty() {
            return BTreeMap::new();
        }
        let specs: BTreeMap<String, PoolSpec> = match serde_json::from_str(&text) {
            Ok(specs) => specs,
            Err(error) => {
                self.fault(POOLS, error);
                return BTreeMap::new();
            }
        };
        if specs.is_empty() {
            self.fault(POOLS, "names no pool");
        }
        let mut pools = BTreeMap::new();
        for (name, spec) in specs {
            match PoolName::new(name) {
                Ok(name) => {
                    let pool = self.pool(&name, spec);
                    pools.insert(name, pool);
                }
                Err(fault) => self.fault(POOLS, fault),
            }
        }
        self.refuse_shared_log_groups(&pools);
        pools
    }

    fn pool(&mut self, name: &PoolName, spec: PoolSpec) -> Pool {
        let at = format!("{POOLS}.{name}");
        let rules = self.rules(&at, &spec);
        let has_gauge = !spec.open.is_empty() || spec.beat;
        let calls_observed = has_gauge || rules.leased;
        if spec.requests.is_empty() && spec.open.is_empty() && spec.logs.is_empty() && !spec.beat {
            self.fault(
                &at,
                "needs at least one signal in `requests`, `open`, `logs` or `beat`: nothing else tells that a node is idle",
            );
        }
        match spec.calls.as_deref() {
            Some("leased") => {}
            None if has_gauge => {}
            Some("unobserved") if !has_gauge => {}
            Some("unobserved") => {
                self.fault(&at, "`calls` is \"unobserved\" although `open` or `beat` observes them: remove one")
            }
            None => self.fault(
                &at,
                "request counts cannot see a call in progress: add an `open` signal or the `beat`, say \"calls\": \"leased\" where the app takes a lease for every call, or \"unobserved\"",
            ),
            Some(other) => {
                self.fault(&at, format_args!("`calls` may only be \"leased\" or \"unobserved\", not {other:?}"))
            }
        }
        if spec.log_groups.is_empty() != spec.wake.is_none() {
            self.fault(&at, "`log_groups` and `wake` go together: which log, and which of its lines");
        }
        self.refuse_own_log_groups(&at, &spec.log_groups);
        let wake = spec
            .wake
            .and_then(|filter| Filter::new(filter).map_err(|fault| self.fault(&format!("{at}.wake"), fault)).ok());
        let requests = spec.requests.into_iter().map(|signal| signal.signal(SignalKind::Requests));
        let open = spec.open.into_iter().map(|signal| signal.signal(SignalKind::Open));
        let signals = requests.chain(open).collect();
        let counted: BTreeSet<String> = spec.logs.iter().map(|log| log.group.clone()).collect();
        self.refuse_own_log_groups(&at, &counted);
        if counted.len() < spec.logs.len() {
            self.fault(&at, "`logs` names a group twice");
        }
        let logs = spec.logs.into_iter().filter_map(|log| self.log_source(&at, name, log)).collect();
        let types = self.instance_types(&at, spec.instance_types);
        let healthy_hosts = match spec.ready {
            Some(ReadySpec::HealthyHosts(metric)) => Some(metric),
            Some(ReadySpec::Word(_)) | None => None,
        };
        let mut policy = PoolPolicy { signals, logs, types, healthy_hosts, rules };
        self.settle_dimensions(&at, &mut policy);
        Pool { policy, log_groups: spec.log_groups, wake, calls_observed }
    }

    fn rules(&mut self, at: &str, spec: &PoolSpec) -> PoolRules {
        let row = self.ranged(at, "ready_beats", spec.ready_beats, 2, 1, 10);
        let ready = match &spec.ready {
            None if spec.beat => ReadySource::Beat(row),
            None => ReadySource::Checks,
            Some(ReadySpec::HealthyHosts(_)) => ReadySource::HealthyHosts,
            Some(ReadySpec::Word(word)) => match word.as_str() {
                "beat" => ReadySource::Beat(row),
                "checks" => ReadySource::Checks,
                other => {
                    self.fault(at, format_args!("`ready` may be \"beat\", \"checks\" or the metric of a load balancer's healthy hosts, not {other:?}"));
                    ReadySource::Checks
                }
            },
        };
        if spec.ready_beats.is_some() && !matches!(ready, ReadySource::Beat(_)) {
            self.fault(at, "`ready_beats` says nothing where `ready` is not \"beat\"");
        }
        if spec.fill_percent.is_some() && spec.calls_per_node.is_none() {
            self.fault(at, "`fill_percent` is a share of `calls_per_node`, which is not set");
        }
        let calls_per_node =
            spec.calls_per_node.map(|calls| self.ranged(at, "calls_per_node", Some(calls), 1, 1, MOST_LEASES));
        let leased = spec.calls.as_deref() == Some("leased");
        if calls_per_node.is_some() && !leased {
            self.fault(at, "`calls_per_node` counts leases: say \"calls\": \"leased\"");
        }
        PoolRules {
            ready,
            calls_per_node,
            fill_percent: self.ranged(at, "fill_percent", spec.fill_percent, 100, 1, 100),
            leased,
            beat: spec.beat,
            warm: self.windows(at, &spec.warm),
        }
    }

    fn ranged(&mut self, at: &str, name: &str, value: Option<u32>, default: u32, least: u32, most: u32) -> u32 {
        let Some(value) = value else { return default };
        if !(least..=most).contains(&value) {
            self.fault(at, format_args!("`{name}` is {value}, and has to be from {least} to {most}"));
        }
        value.clamp(least, most)
    }

    fn windows(&mut self, at: &str, specs: &[WindowSpec]) -> Vec<WarmWindow> {
        let zone = self.get(super::ZONE).and_then(|zone| zone.parse().ok()).unwrap_or_default();
        let window = |spec: &WindowSpec| {
            WarmWindow::new(spec.clone(), zone).map_err(|fault| self.fault(&format!("{at}.warm"), fault)).ok()
        };
        specs.iter().filter_map(window).collect()
    }

    fn log_source(&mut self, at: &str, pool: &PoolName, log: LogSpec) -> Option<LogSource> {
        let LogSpec { group, lines, alive } = log;
        match Filter::new(lines) {
            Ok(filter) if !group.is_empty() => Some(LogSource { pool: pool.clone(), group, filter, alive }),
            Ok(_) => {
                self.fault(at, "`logs` names no `group`");
                None
            }
            Err(fault) => {
                self.fault(&format!("{at}.logs.{group}.lines"), fault);
                None
            }
        }
    }

    fn instance_types(&mut self, at: &str, words: Vec<String>) -> Vec<InstanceType> {
        let mut types = Vec::new();
        for word in words {
            match InstanceType::new(word) {
                Ok(kind) if types.contains(&kind) => {
                    self.fault(at, format_args!("`instance_types` names {kind} twice"))
                }
                // Family and size, as every type has.
                Ok(kind)
                    if kind
                        .as_str()
                        .split_once('.')
                        .is_some_and(|(family, size)| !family.is_empty() && !size.is_empty()) =>
                {
                    types.push(kind);
                }
                Ok(kind) => self.fault(at, format_args!("`instance_types`: {kind} is not a type such as g6.xlarge")),
                Err(fault) => self.fault(at, fault),
            }
        }
        if types.iter().any(is_arm) && !types.iter().all(is_arm) {
            self.fault(at, "`instance_types` mixes Arm and x86 types: a volume boots on one of them");
        }
        types
    }

    /// Field case 35: a function that is fed its own log feeds itself.
    fn refuse_own_log_groups(&mut self, at: &str, groups: &BTreeSet<String>) {
        let own = self.get("AWS_LAMBDA_LOG_GROUP_NAME").map(str::to_owned);
        for group in groups.iter().filter(|group| Some(*group) == own.as_ref()) {
            self.fault(at, format_args!("log group {group} is this function's own: it would feed itself"));
        }
    }

    fn refuse_shared_log_groups(&mut self, pools: &BTreeMap<PoolName, Pool>) {
        let mut seen = BTreeMap::new();
        for (name, group) in
            pools.iter().flat_map(|(name, pool)| pool.log_groups.iter().map(move |group| (name, group)))
        {
            if let Some(other) = seen.insert(group.clone(), name.clone()) {
                self.fault(
                    POOLS,
                    format_args!("log group {group} is in pools {other} and {name}: which one does it wake?"),
                );
            }
        }
    }

    /// Field case 19: under a wrong dimension a load balancer gives an empty, valid answer. An ARN is cut to what CloudWatch
    /// writes; a proof of life has to be the same balancer's, or it would vouch for a metric that never has a point.
    fn settle_dimensions(&mut self, at: &str, policy: &mut PoolPolicy) {
        let wrong: BTreeSet<String> = metrics_of(policy).filter_map(settle_balancer).collect();
        wrong.into_iter().for_each(|wrong| self.fault(at, wrong));
        for signal in &policy.signals {
            let Some(alive) = signal.alive.as_ref().filter(|alive| alive.namespace == signal.metric.namespace) else {
                continue;
            };
            let balancer = |metric: &MetricRef| metric.dimensions.get("LoadBalancer").cloned();
            let both = balancer(&signal.metric).zip(balancer(alive));
            if let Some((own, other)) = both.filter(|(own, other)| own != other) {
                self.fault(at, format_args!("`alive` is of load balancer {other:?}, and its signal of {own:?}"));
            }
        }
    }
}

fn metrics_of(policy: &mut PoolPolicy) -> impl Iterator<Item = &mut MetricRef> {
    let of_signals =
        policy.signals.iter_mut().flat_map(|signal| std::iter::once(&mut signal.metric).chain(&mut signal.alive));
    of_signals.chain(policy.logs.iter_mut().filter_map(|log| log.alive.as_mut())).chain(&mut policy.healthy_hosts)
}

/// Cuts the ARNs among a load balancer's dimensions; says what no load balancer has.
fn settle_balancer(metric: &mut MetricRef) -> Option<String> {
    let kind = match metric.namespace.as_str() {
        "AWS/ApplicationELB" => "app",
        "AWS/NetworkELB" => "net",
        _ => return None,
    };
    metric.dimensions.iter_mut().find_map(|(name, value)| {
        let (cut, first) = match name.as_str() {
            "LoadBalancer" => (value.rsplit_once("loadbalancer/").map(|(_, end)| end.to_owned()), kind),
            "TargetGroup" => (value.rfind("targetgroup/").map(|at| value.split_off(at)), "targetgroup"),
            "AvailabilityZone" => return None,
            other => return Some(format!("load balancers have no dimension {other:?}")),
        };
        *value = cut.unwrap_or_else(|| value.clone());
        let parts: Vec<&str> = value.split('/').collect();
        let fits = parts.len() == 3 && parts[0] == first && parts.iter().all(|part| !part.is_empty());
        (!fits).then(|| format!("dimension {name} {value:?} must be {first}/NAME/HASH, or the ARN that ends so"))
    })
}

/// Graviton families have a `g` behind their generation: `g5g`, `m7gd`.
fn is_arm(kind: &InstanceType) -> bool {
    let family = kind.as_str().split('.').next().unwrap_or_default();
    let behind =
        family.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start_matches(|c: char| c.is_ascii_digit());
    behind.contains('g')
}
