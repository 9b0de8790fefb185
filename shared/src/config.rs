//! The environment of the functions, read once. This is the only room that reads it. All faults are listed at once;
//! nothing is guessed.

use crate::access_log::{Filter, FilterSpec};
use crate::decide::budget::{BudgetPolicy, Enforce};
use crate::domain::{InstanceType, PoolName, Usd, UsdFault};
use crate::observation::SignalKind;
use crate::policy::Policy;
use crate::prices::{AS_OF, Prices, regions};
use crate::run::{LogSource, MetricRef, PoolPolicy, Signal};
use chrono::TimeDelta;
use chrono_tz::Tz;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// One setting, as the reference page shows it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// The default, or none where it has to be set.
    pub default: Option<&'static str>,
    /// The range, with its unit.
    pub range: &'static str,
    /// What it does.
    pub doc: &'static str,
}

const POOLS: &str = "REVEILLE_POOLS";
const DEFAULT_POOL: &str = "REVEILLE_DEFAULT_POOL";
const TABLE: &str = "REVEILLE_TABLE";
const TOPIC: &str = "REVEILLE_ALERT_TOPIC_ARN";
const IDLE: &str = "REVEILLE_IDLE_MINUTES";
const TICK: &str = "REVEILLE_TICK_MINUTES";
const GRACE: &str = "REVEILLE_GRACE_MINUTES";
const WISH: &str = "REVEILLE_WISH_MINUTES";
const BOOT: &str = "REVEILLE_BOOT_SECONDS";
const FORCE: &str = "REVEILLE_FORCE_STOP_MINUTES";
const UPTIME: &str = "REVEILLE_UPTIME_HOURS";
const ZONE: &str = "REVEILLE_ZONE";
const BUDGET: &str = "REVEILLE_BUDGET";
const PRICES: &str = "REVEILLE_PRICES";
const REGION: &str = "AWS_REGION";
const CLOCK: &str = "REVEILLE_CLOCK_URL";

/// Every setting, in the order of the reference page.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: POOLS,
        default: None,
        range: "JSON, see below",
        doc: "The pools: their signals, and which request logs wake them.",
    },
    Setting {
        name: DEFAULT_POOL,
        default: Some("the only pool"),
        range: "a pool's name",
        doc: "The pool that a wake without a name means. Without it, such a wake is answered 400 where there are several pools.",
    },
    Setting {
        name: TABLE,
        default: None,
        range: "a table's name",
        doc: "The DynamoDB table of the ledger: string keys `pk` and `sk`.",
    },
    Setting { name: TOPIC, default: None, range: "an SNS topic's ARN", doc: "Where people are told." },
    Setting {
        name: IDLE,
        default: Some("30"),
        range: "10 to 1440 minutes",
        doc: "A node idle for this long is stopped. Has to be at least one tick and 5 minutes.",
    },
    Setting {
        name: TICK,
        default: Some("5"),
        range: "5 to 60 minutes",
        doc: "How often the idle check is scheduled; it has to match the schedule.",
    },
    Setting {
        name: GRACE,
        default: Some("10"),
        range: "0 to 120 minutes",
        doc: "No node is judged idle for this long after its launch.",
    },
    Setting {
        name: WISH,
        default: Some("60"),
        range: "5 to 1440 minutes",
        doc: "How long a wake that could not be met is tried again without a further request.",
    },
    Setting {
        name: BOOT,
        default: Some("60"),
        range: "5 to 1800 seconds",
        doc: "The time from start to ready that callers are told.",
    },
    Setting {
        name: FORCE,
        default: Some("10"),
        range: "5 to 120 minutes",
        doc: "A node that is `stopping` for longer is stopped by force.",
    },
    Setting {
        name: UPTIME,
        default: Some("20"),
        range: "1 to 23 hours",
        doc: "A node that ran for longer in a day of the zone is told, once a node and day.",
    },
    Setting {
        name: ZONE,
        default: Some("UTC"),
        range: "an IANA zone such as `Asia/Seoul`",
        doc: "The zone of the uptime day, and of the times in messages. Months of money are in UTC, as AWS bills.",
    },
    Setting {
        name: BUDGET,
        default: Some("none; the budget guard needs it"),
        range: "JSON, see below",
        doc: "The amount for a month, its thresholds, and what happens at 100 %.",
    },
    Setting {
        name: PRICES,
        default: Some("the price table"),
        range: "JSON, see below",
        doc: "Your own prices; they come before the table of the region that `AWS_REGION` names.",
    },
    Setting {
        name: CLOCK,
        default: Some("the real clock"),
        range: "an http URL on loopback",
        doc: "Virtual time for tests, as `{\"now_ms\": …}`. Refused where AWS_EXECUTION_ENV is set.",
    },
];

/// The valid configuration of a function.
#[derive(Debug, Clone)]
pub struct Config {
    /// The limits.
    pub policy: Policy,
    /// The pools.
    pub pools: BTreeMap<PoolName, Pool>,
    /// What a wake without a name means; absent where there are several pools and none was chosen.
    pub default_pool: Option<PoolName>,
    /// The ledger's table.
    pub table: String,
    /// The topic for people.
    pub topic_arn: String,
    /// What the operator allows for a month.
    pub budget: Option<BudgetPolicy>,
    /// What things cost in this region.
    pub prices: Prices,
    /// Where virtual time comes from.
    pub clock_url: Option<String>,
}

/// One configured pool.
#[derive(Debug, Clone)]
pub struct Pool {
    /// What counts as use, and as which types a node may be started.
    pub policy: PoolPolicy,
    /// Log groups whose lines may wake it.
    pub log_groups: BTreeSet<String>,
    /// Which lines do.
    pub wake: Option<Filter>,
    /// Whether calls in progress can be seen. `unobserved` has to be said in so many words: then a call longer than the idle
    /// time can be cut.
    pub calls_observed: bool,
}

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
struct BudgetSpec {
    amount: Number,
    currency: Option<String>,
    #[serde(default = "default_name")]
    name: String,
    #[serde(default = "default_actual")]
    actual: Vec<u32>,
    #[serde(default = "default_forecast")]
    forecast: Vec<u32>,
    #[serde(default = "default_enforce")]
    enforce: Enforce,
    #[serde(default)]
    mail: Vec<String>,
    #[serde(default)]
    units: BTreeMap<String, Number>,
}

/// An amount, as a JSON number or as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(serde_json::Number),
    Text(String),
}

impl Number {
    fn usd(&self) -> Result<Usd, UsdFault> {
        match self {
            Self::Plain(number) => Usd::parse(&number.to_string()),
            Self::Text(text) => Usd::parse(text),
        }
    }
}

fn default_name() -> String {
    "reveille".to_owned()
}

fn default_actual() -> Vec<u32> {
    vec![50, 80, 100]
}

fn default_forecast() -> Vec<u32> {
    vec![100]
}

fn default_enforce() -> Enforce {
    Enforce::Alert
}

/// AWS takes five notifications a budget at least by one of its pages, ten by another: five are safe.
const MOST_NOTICES: usize = 5;
/// AWS takes ten mail addresses a notification.
const MOST_MAIL: usize = 10;

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

/// Everything that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("configuration: {}", .0.join("; "))]
pub struct ConfigFaults(pub Vec<String>);

impl Config {
    /// Reads the process environment.
    ///
    /// # Errors
    /// Every fault, each with the name of its variable.
    pub fn from_env() -> Result<Self, ConfigFaults> {
        #[expect(clippy::disallowed_methods, reason = "the one room that reads the environment")]
        let vars =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::from_vars(&vars.collect())
    }

    /// Reads these variables.
    ///
    /// # Errors
    /// Every fault, each with the name of its variable.
    pub fn from_vars(vars: &BTreeMap<String, String>) -> Result<Self, ConfigFaults> {
        let mut read = Read { vars, faults: Vec::new() };
        read.refuse_unknown_names();
        let policy = Policy {
            idle: TimeDelta::minutes(read.number(IDLE, 30, 10, 1440)),
            tick: TimeDelta::minutes(read.number(TICK, 5, 5, 60)),
            grace: TimeDelta::minutes(read.number(GRACE, 10, 0, 120)),
            wish: TimeDelta::minutes(read.number(WISH, 60, 5, 1440)),
            boot: TimeDelta::seconds(read.number(BOOT, 60, 5, 1800)),
            force_after: TimeDelta::minutes(read.number(FORCE, 10, 5, 120)),
            uptime: TimeDelta::hours(read.number(UPTIME, 20, 1, 23)),
            zone: read.zone(),
        };
        if policy.idle < policy.tick + TimeDelta::minutes(5) {
            read.fault(IDLE, "must be at least REVEILLE_TICK_MINUTES and 5 minutes: two readings have to fit in");
        }
        let pools = read.pools();
        let config = Self {
            policy,
            default_pool: read.default_pool(&pools),
            pools,
            table: read.required(TABLE),
            topic_arn: read.topic(),
            budget: read.budget(),
            prices: read.prices(),
            clock_url: read.clock_url(),
        };
        if read.faults.is_empty() { Ok(config) } else { Err(ConfigFaults(read.faults)) }
    }

    /// The pool that this log group wakes, with its filter.
    pub fn pool_of_log_group(&self, log_group: &str) -> Option<(&PoolName, &Filter)> {
        let (name, pool) = self.pools.iter().find(|(_, pool)| pool.log_groups.contains(log_group))?;
        Some((name, pool.wake.as_ref()?))
    }

    /// The pools, as a run takes them.
    pub fn pool_policies(&self) -> BTreeMap<PoolName, PoolPolicy> {
        self.pools.iter().map(|(name, pool)| (name.clone(), pool.policy.clone())).collect()
    }

    /// What the budget guard needs beyond what every function needs.
    ///
    /// # Errors
    /// No budget, or a region of which nothing has a price: an estimate of zero would never tell anybody anything.
    pub fn for_budget_guard(&self) -> Result<BudgetPolicy, ConfigFaults> {
        let mut faults = Vec::new();
        if self.budget.is_none() {
            faults.push(format!("{BUDGET}: is not set"));
        }
        if !self.prices.is_known() {
            let (region, known) = (self.prices.region(), regions().join(", "));
            faults.push(format!(
                "{PRICES}: region {region:?} is not in the price table of {AS_OF} ({known}): give the prices of your nodes"
            ));
        }
        self.budget.clone().filter(|_| faults.is_empty()).ok_or(ConfigFaults(faults))
    }

    /// The AWS account, from the topic's ARN.
    pub fn account(&self) -> &str {
        self.topic_arn.split(':').nth(4).unwrap_or_default()
    }
}

struct Read<'a> {
    vars: &'a BTreeMap<String, String>,
    faults: Vec<String>,
}

impl Read<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    fn fault(&mut self, name: &str, what: impl std::fmt::Display) {
        self.faults.push(format!("{name}: {what}"));
    }

    /// A misspelt setting would be a default that nobody chose.
    fn refuse_unknown_names(&mut self) {
        let known = |name: &str| SETTINGS.iter().any(|setting| setting.name == name);
        let unknown: Vec<String> =
            self.vars.keys().filter(|name| name.starts_with("REVEILLE_") && !known(name)).cloned().collect();
        for name in unknown {
            self.fault(&name, "is not a setting; see docs/configuration.md");
        }
    }

    fn required(&mut self, name: &str) -> String {
        match self.get(name).map(str::to_owned) {
            Some(value) => value,
            None => {
                self.fault(name, "is not set");
                String::new()
            }
        }
    }

    fn number(&mut self, name: &str, default: i64, least: i64, most: i64) -> i64 {
        let Some(text) = self.get(name).map(str::to_owned) else { return default };
        match text.parse::<i64>() {
            Ok(value) if (least..=most).contains(&value) => value,
            Ok(_) | Err(_) => {
                self.fault(name, format_args!("{text:?} is not a whole number from {least} to {most}"));
                default
            }
        }
    }

    fn topic(&mut self) -> String {
        let topic = self.required(TOPIC);
        // The account of the budget is read from it.
        let parts: Vec<&str> = topic.split(':').collect();
        let is_topic = match parts.as_slice() {
            ["arn", partition, "sns", _, account, name] => {
                partition.starts_with("aws") && !account.is_empty() && !name.is_empty()
            }
            _ => false,
        };
        if !is_topic && !topic.is_empty() {
            self.fault(TOPIC, format_args!("{topic:?} is not a topic's ARN"));
        }
        if topic.ends_with(".fifo") {
            self.fault(TOPIC, "a FIFO topic delivers to no mail, text message or web address: take a standard one");
        }
        topic
    }

    fn zone(&mut self) -> Tz {
        let Some(text) = self.get(ZONE).map(str::to_owned) else { return Tz::UTC };
        text.parse().unwrap_or_else(|_| {
            self.fault(ZONE, format_args!("{text:?} is not an IANA zone such as Europe/Berlin"));
            Tz::UTC
        })
    }

    fn prices(&mut self) -> Prices {
        let region = self.get(REGION).unwrap_or_default().to_owned();
        let Some(text) = self.get(PRICES).map(str::to_owned) else { return Prices::new(region, BTreeMap::new()) };
        let given: BTreeMap<String, Number> = serde_json::from_str(&text).unwrap_or_else(|error| {
            self.fault(PRICES, error);
            BTreeMap::new()
        });
        let mut own = BTreeMap::new();
        for (item, price) in given {
            if let Some(price) = self.price(PRICES, &item, &price) {
                own.insert(item, price);
            }
        }
        Prices::new(region, own)
    }

    /// A price of nothing would make every estimate zero and every alert silent.
    fn price(&mut self, setting: &str, item: &str, price: &Number) -> Option<Usd> {
        match price.usd() {
            Ok(price) if price > Usd::ZERO => Some(price),
            Ok(_) => {
                self.fault(setting, format_args!("the price of {item} is zero"));
                None
            }
            Err(fault) => {
                self.fault(setting, format_args!("the price of {item}: {fault}"));
                None
            }
        }
    }

    fn budget(&mut self) -> Option<BudgetPolicy> {
        let text = self.get(BUDGET)?.to_owned();
        let spec: BudgetSpec = match serde_json::from_str(&text) {
            Ok(spec) => spec,
            Err(error) => {
                self.fault(BUDGET, error);
                return None;
            }
        };
        self.check_budget(&spec);
        let amount = self.price(BUDGET, "amount", &spec.amount)?;
        let mut units = Vec::new();
        for (unit, price) in &spec.units {
            units.extend(self.price(BUDGET, unit, price).map(|price| (unit.clone(), price)));
        }
        let BudgetSpec { name, actual, forecast, enforce, mail, .. } = spec;
        Some(BudgetPolicy { name, amount, actual, forecast, enforce, mail, units })
    }

    fn check_budget(&mut self, spec: &BudgetSpec) {
        match spec.currency.as_deref() {
            Some("USD") => {}
            None => self.fault(BUDGET, "`currency` is missing: say \"USD\", the only one AWS budgets in"),
            Some(other) => self.fault(BUDGET, format_args!("`currency` {other:?}: AWS budgets in USD only")),
        }
        // AWS's own rule for names.
        let fits = (1..=100).contains(&spec.name.len()) && !spec.name.contains([':', '\\']);
        if !fits || spec.name.contains("/action/") {
            self.fault(
                BUDGET,
                format_args!("`name` {:?} must have 1 to 100 characters, without ':' and '\\'", spec.name),
            );
        }
        for (name, percents) in [("actual", &spec.actual), ("forecast", &spec.forecast)] {
            if !percents.windows(2).all(|pair| pair[0] < pair[1]) {
                self.fault(BUDGET, format_args!("`{name}` {percents:?} has to rise from one threshold to the next"));
            }
            if percents.iter().any(|percent| !(1..=1000).contains(percent)) {
                self.fault(BUDGET, format_args!("`{name}` {percents:?} has to be percentages from 1 to 1000"));
            }
        }
        if spec.actual.is_empty() {
            self.fault(BUDGET, "`actual` has no threshold: nobody would ever be told");
        } else if spec.enforce != Enforce::Alert && !spec.actual.contains(&100) {
            self.fault(BUDGET, "`actual` has to hold 100 where `enforce` closes the gate at it");
        }
        if !spec.mail.is_empty() && spec.actual.len() + spec.forecast.len() > MOST_NOTICES {
            self.fault(BUDGET, format_args!("with `mail` at most {MOST_NOTICES} thresholds in all: AWS takes no more"));
        }
        let wrong = spec.mail.iter().any(|mail| !mail.contains('@') || mail.contains(char::is_whitespace));
        if wrong || spec.mail.len() > MOST_MAIL {
            self.fault(BUDGET, format_args!("`mail` must be at most {MOST_MAIL} addresses"));
        }
    }

    fn clock_url(&mut self) -> Option<String> {
        let url = self.get(CLOCK)?.to_owned();
        // OS-only runtimes may not set the first; the second is where Lambda unpacks every zip.
        if self.get("AWS_EXECUTION_ENV").is_some() || self.get("LAMBDA_TASK_ROOT") == Some("/var/task") {
            self.fault(
                CLOCK,
                "virtual time is for tests and refused on AWS (AWS_EXECUTION_ENV or LAMBDA_TASK_ROOT says so)",
            );
        }
        if !url.starts_with("http://127.0.0.1:") && !url.starts_with("http://localhost:") {
            self.fault(CLOCK, "must be an http URL on loopback");
        }
        Some(url)
    }

    fn default_pool(&mut self, pools: &BTreeMap<PoolName, Pool>) -> Option<PoolName> {
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

    fn pools(&mut self) -> BTreeMap<PoolName, Pool> {
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
        let calls_observed = !spec.open.is_empty();
        if spec.requests.is_empty() && spec.open.is_empty() && spec.logs.is_empty() {
            self.fault(
                &at,
                "needs at least one signal in `requests`, `open` or `logs`: nothing else tells that a node is idle",
            );
        }
        match spec.calls.as_deref() {
            None if calls_observed => {}
            Some("unobserved") if !calls_observed => {}
            Some("unobserved") => {
                self.fault(&at, "`calls` is \"unobserved\" although `open` observes them: remove one")
            }
            None => self.fault(
                &at,
                "request counts cannot see a call in progress: add an `open` signal, or say \"calls\": \"unobserved\"",
            ),
            Some(other) => self.fault(&at, format_args!("`calls` may only be \"unobserved\", not {other:?}")),
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
        let policy = PoolPolicy { signals, logs, types };
        self.check_dimensions(&at, &policy.signals);
        Pool { policy, log_groups: spec.log_groups, wake, calls_observed }
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

    /// Field case 19: a load balancer's dimension is `app/NAME/HASH`; anything else gives an empty, valid answer.
    fn check_dimensions(&mut self, at: &str, signals: &[Signal]) {
        let metrics = signals.iter().flat_map(|signal| std::iter::once(&signal.metric).chain(&signal.alive));
        let wrong: BTreeSet<String> = metrics
            .filter(|metric| metric.namespace == "AWS/ApplicationELB")
            .filter_map(|metric| metric.dimensions.get("LoadBalancer"))
            .filter(|value| !(value.starts_with("app/") && value.matches('/').count() == 2))
            .cloned()
            .collect();
        for value in wrong {
            self.fault(
                at,
                format_args!(
                    "dimension LoadBalancer {value:?} must be app/NAME/HASH, the end of the load balancer's ARN"
                ),
            );
        }
    }
}

/// Graviton families have a `g` behind their generation: `g5g`, `m7gd`.
fn is_arm(kind: &InstanceType) -> bool {
    let family = kind.as_str().split('.').next().unwrap_or_default();
    let behind =
        family.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start_matches(|c: char| c.is_ascii_digit());
    behind.contains('g')
}

/// The configuration reference, as it stands in `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = String::from(include_str!("config_head.md"));
    for setting in SETTINGS {
        let default = setting.default.map_or("has to be set".to_owned(), |value| format!("`{value}`"));
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", setting.name, setting.range, default, setting.doc);
    }
    page + include_str!("config_pools.md")
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
