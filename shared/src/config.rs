//! The environment of the functions, read once. This is the only room that reads it. All faults are listed at once;
//! nothing is guessed.

mod access;
mod money;
mod pools;
#[cfg(test)]
mod tests;

use crate::access_log::Filter;
use crate::decide::budget::BudgetPolicy;
use crate::domain::PoolName;
use crate::policy::Policy;
use crate::prices::{AS_OF, Prices, regions};
use crate::run::PoolPolicy;
use chrono::TimeDelta;
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub use access::Access;

/// One setting, as the reference page shows it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// The default, or none where it has to be set.
    pub default: Option<&'static str>,
    /// What its value may be.
    pub kind: Kind,
    /// What it does.
    pub doc: &'static str,
}

/// What the value of a setting may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number from, to, both included, and its unit.
    Number(i64, i64, &'static str),
    /// One of these words.
    Word(&'static [&'static str]),
    /// An IANA zone.
    Zone,
    /// JSON, which the reference page explains.
    Json,
    /// Any other text, and what it has to be.
    Text(&'static str),
}

impl Kind {
    /// The range as people read it.
    pub fn range(&self) -> String {
        match self {
            Self::Number(least, most, unit) => format!("{least} to {most} {unit}"),
            Self::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or "),
            Self::Zone => "an IANA zone such as `Asia/Seoul`".to_owned(),
            Self::Json => "JSON, see below".to_owned(),
            Self::Text(what) => (*what).to_owned(),
        }
    }
}

const ACCESS: &str = "REVEILLE_ACCESS";
const TOKEN_SHA256: &str = "REVEILLE_TOKEN_SHA256";
const TARGET_URL: &str = "REVEILLE_TARGET_URL";
/// The pools: with it, the settings of this shell are meant.
pub const POOLS: &str = "REVEILLE_POOLS";
const DEFAULT_POOL: &str = "REVEILLE_DEFAULT_POOL";
const TABLE: &str = "REVEILLE_TABLE";
const TOPIC: &str = "REVEILLE_ALERT_TOPIC_ARN";
const IDLE: &str = "REVEILLE_IDLE_MINUTES";
const TICK: &str = "REVEILLE_TICK_MINUTES";
const GRACE: &str = "REVEILLE_GRACE_MINUTES";
const WISH: &str = "REVEILLE_WISH_MINUTES";
const BOOT: &str = "REVEILLE_BOOT_SECONDS";
const PREWARM: &str = "REVEILLE_PREWARM_MINUTES";
const READY: &str = "REVEILLE_READY_MINUTES";
const WAKES_EACH: &str = "REVEILLE_CALLER_WAKES_PER_MINUTE";
const WAKES_ALL: &str = "REVEILLE_WAKES_PER_MINUTE";
const FORCE: &str = "REVEILLE_FORCE_STOP_MINUTES";
const UPTIME: &str = "REVEILLE_UPTIME_HOURS";
const ZONE: &str = "REVEILLE_ZONE";
const BUDGET: &str = "REVEILLE_BUDGET";
const PRICES: &str = "REVEILLE_PRICES";
/// The region that prices are read of.
pub const REGION: &str = "AWS_REGION";
/// Where virtual time comes from.
pub const CLOCK: &str = "REVEILLE_CLOCK_URL";

/// Every setting, in the order of the reference page.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: POOLS,
        default: None,
        kind: Kind::Json,
        doc: "The pools: their signals, and which request logs wake them.",
    },
    Setting {
        name: DEFAULT_POOL,
        default: Some("the only pool"),
        kind: Kind::Text("a pool's name"),
        doc: "The pool that a wake without a name means. Without it, such a wake is answered 400 where there are several pools.",
    },
    Setting {
        name: ACCESS,
        default: Some("iam"),
        kind: Kind::Word(&["iam", "token"]),
        doc: "Who may ask the wake function: callers that AWS_IAM has verified, or who has a token; see below.",
    },
    Setting {
        name: TOKEN_SHA256,
        default: Some("none; needed with token"),
        kind: Kind::Json,
        doc: "The SHA-256 of each token that is taken, by its name. Refused with `iam`.",
    },
    Setting {
        name: TARGET_URL,
        default: Some("none"),
        kind: Kind::Text("an http or https URL, or a path"),
        doc: "Where the waiting page (`GET /status` in a browser) leads once a node is ready.",
    },
    Setting {
        name: TABLE,
        default: None,
        kind: Kind::Text("a table's name"),
        doc: "The DynamoDB table of the ledger: string keys `pk` and `sk`.",
    },
    Setting { name: TOPIC, default: None, kind: Kind::Text("an SNS topic's ARN"), doc: "Where people are told." },
    Setting {
        name: IDLE,
        default: Some("30"),
        kind: Kind::Number(10, 1440, "minutes"),
        doc: "A node idle for this long is stopped. Has to be at least one tick and 5 minutes.",
    },
    Setting {
        name: PREWARM,
        default: Some("REVEILLE_IDLE_MINUTES"),
        kind: Kind::Number(10, 1440, "minutes"),
        doc: "How long a pre-warm (`POST /wake`) that leads to no request and no lease keeps a node. Has to be at least one tick and 5 minutes.",
    },
    Setting {
        name: TICK,
        default: Some("5"),
        kind: Kind::Number(5, 60, "minutes"),
        doc: "How often the idle check is scheduled; it has to match the schedule.",
    },
    Setting {
        name: GRACE,
        default: Some("10"),
        kind: Kind::Number(0, 120, "minutes"),
        doc: "No node is judged idle for this long after its launch.",
    },
    Setting {
        name: WISH,
        default: Some("60"),
        kind: Kind::Number(5, 1440, "minutes"),
        doc: "How long a wake that could not be met is tried again without a further request.",
    },
    Setting {
        name: BOOT,
        default: Some("60"),
        kind: Kind::Number(5, 1800, "seconds"),
        doc: "The time from start to ready that callers are told until it is learnt from the pool's last boots.",
    },
    Setting {
        name: READY,
        default: Some("10"),
        kind: Kind::Number(3, 60, "minutes"),
        doc: "A node that runs and is not ready so long after its launch is told, stopped and started once more, whoever keeps asking for it; after a second time it is left stopped for a day. Has to be longer than `REVEILLE_BOOT_SECONDS`.",
    },
    Setting {
        name: WAKES_EACH,
        default: Some("600"),
        kind: Kind::Number(1, 100_000, "a minute"),
        doc: "Wakes that one caller (token or role, and address) may send in a minute, and `PUT /leases` that found no room; more are answered 429.",
    },
    Setting {
        name: WAKES_ALL,
        default: Some("1200"),
        kind: Kind::Number(1, 100_000, "a minute"),
        doc: "The same for all callers of a pool together.",
    },
    Setting {
        name: FORCE,
        default: Some("10"),
        kind: Kind::Number(5, 120, "minutes"),
        doc: "A node that is `stopping` for longer is stopped by force.",
    },
    Setting {
        name: UPTIME,
        default: Some("20"),
        kind: Kind::Number(1, 23, "hours"),
        doc: "A node that ran for longer in a day of the zone is told, once a node and day.",
    },
    Setting {
        name: ZONE,
        default: Some("UTC"),
        kind: Kind::Zone,
        doc: "The zone of the uptime day, and of the times in messages. Months of money are in UTC, as AWS bills.",
    },
    Setting {
        name: BUDGET,
        default: Some("none; the budget guard needs it"),
        kind: Kind::Json,
        doc: "The amount for a month, its thresholds, and what happens at 100 %.",
    },
    Setting {
        name: PRICES,
        default: Some("the price table"),
        kind: Kind::Json,
        doc: "Your own prices; they come before the table of the region that `AWS_REGION` names.",
    },
    Setting {
        name: CLOCK,
        default: Some("the real clock"),
        kind: Kind::Text("an http URL on loopback"),
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
    /// Who may ask the wake function over HTTP; the other functions have no caller.
    pub access: Access,
    /// Where the waiting page leads.
    pub target_url: Option<String>,
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

/// The variables of this process, as far as they are text.
pub fn environment() -> BTreeMap<String, String> {
    #[expect(clippy::disallowed_methods, reason = "the one room that reads the environment")]
    let vars =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    vars.collect()
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
        Self::from_vars(&environment())
    }

    /// Reads these variables.
    ///
    /// # Errors
    /// Every fault, each with the name of its variable.
    pub fn from_vars(vars: &BTreeMap<String, String>) -> Result<Self, ConfigFaults> {
        let mut read = Read { vars, faults: Vec::new() };
        read.refuse_unknown_names();
        let idle = read.number(IDLE, 30);
        let policy = Policy {
            idle: TimeDelta::minutes(idle),
            prewarm: TimeDelta::minutes(read.number(PREWARM, idle)),
            ready_within: TimeDelta::minutes(read.number(READY, 10)),
            wakes_each: read.count(WAKES_EACH, 600),
            wakes_all: read.count(WAKES_ALL, 1200),
            tick: TimeDelta::minutes(read.number(TICK, 5)),
            grace: TimeDelta::minutes(read.number(GRACE, 10)),
            wish: TimeDelta::minutes(read.number(WISH, 60)),
            boot: TimeDelta::seconds(read.number(BOOT, 60)),
            force_after: TimeDelta::minutes(read.number(FORCE, 10)),
            uptime: TimeDelta::hours(read.number(UPTIME, 20)),
            zone: read.zone(),
        };
        if policy.idle < policy.tick + TimeDelta::minutes(5) {
            read.fault(IDLE, "must be at least REVEILLE_TICK_MINUTES and 5 minutes: two readings have to fit in");
        }
        if read.get(PREWARM).is_some() && policy.prewarm < policy.tick + TimeDelta::minutes(5) {
            read.fault(PREWARM, "must be at least REVEILLE_TICK_MINUTES and 5 minutes: two readings have to fit in");
        }
        if policy.ready_within <= policy.boot {
            read.fault(READY, "must be longer than REVEILLE_BOOT_SECONDS: every boot would be stopped before its end");
        }
        let pools = read.pools();
        let config = Self {
            policy,
            default_pool: read.default_pool(&pools),
            pools,
            access: read.access(),
            target_url: read.target_url(),
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

    /// A number within the range of its setting.
    fn number(&mut self, name: &str, default: i64) -> i64 {
        let Some(text) = self.get(name).map(str::to_owned) else { return default };
        let (least, most) = range(name).expect("the setting is a number");
        match text.parse::<i64>() {
            Ok(value) if (least..=most).contains(&value) => value,
            Ok(_) | Err(_) => {
                self.fault(name, format_args!("{text:?} is not a whole number from {least} to {most}"));
                default
            }
        }
    }

    fn count(&mut self, name: &str, default: i64) -> u32 {
        u32::try_from(self.number(name, default)).unwrap_or(u32::MAX)
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

    fn target_url(&mut self) -> Option<String> {
        let url = self.get(TARGET_URL)?.to_owned();
        let place =
            url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).or_else(|| url.strip_prefix('/'));
        // `//host` would be another host; blanks and quotes have no place in a URL.
        let is_plain = |rest: &str| rest.chars().all(|c| c.is_ascii_graphic() && !"\"'<>;".contains(c));
        let is_path = url.starts_with('/');
        let is_good =
            place.is_some_and(|rest| is_plain(rest) && !rest.starts_with('/') && (is_path || !rest.is_empty()));
        if !is_good || url.len() > 2048 {
            self.fault(
                TARGET_URL,
                format_args!("{url:?} is not a URL such as https://app.example.com/ or a path such as /talk"),
            );
        }
        Some(url)
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
}

fn range(name: &str) -> Option<(i64, i64)> {
    SETTINGS.iter().filter(|setting| setting.name == name).find_map(|setting| match setting.kind {
        Kind::Number(least, most, _) => Some((least, most)),
        Kind::Word(_) | Kind::Zone | Kind::Json | Kind::Text(_) => None,
    })
}

/// The configuration reference, as it stands in `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = String::from(include_str!("config/head.md"));
    for setting in SETTINGS {
        let default = setting.default.map_or("has to be set".to_owned(), |value| format!("`{value}`"));
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", setting.name, setting.kind.range(), default, setting.doc);
    }
    page + include_str!("config/tail.md")
}
