//! Messages to people: what, which node, since when, what it costs an hour, what was done, what to do.

use super::Context;
use super::outcome::{Effect, EffectKind};
use crate::decide::Look;
use crate::decide::uptime::LocalDay;
use crate::domain::{AlertKey, Gate, InstanceType, Instant, NodeId, NodeSeen, PoolName, Usd};
use crate::error::{CallError, ErrorClass};
use crate::observation::Unread;
use crate::prices::AS_OF;
use chrono_tz::Tz;
use serde::Serialize;
use std::collections::BTreeMap;

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// A node was up for too long in a day.
    Uptime,
    /// A threshold of the budget is crossed.
    Budget,
    /// A START was refused or fell back.
    StartFailed,
    /// A STOP was refused for a lasting cause, or a drain waits for calls.
    CannotStop,
    /// A node has been running for longer than a start may take and is not ready.
    NotReady,
    /// Signals have been unknown for too long, or are known again.
    Blind,
    /// A source wakes for nothing too often.
    NoiseWakes,
    /// The controller itself cannot do its job.
    ControllerFault,
    /// Something in AWS does not fit the configuration.
    Misconfigured,
}

impl AlertKind {
    /// Every kind.
    pub const ALL: &'static [AlertKind] = &[
        Self::Uptime,
        Self::Budget,
        Self::StartFailed,
        Self::CannotStop,
        Self::NotReady,
        Self::Blind,
        Self::NoiseWakes,
        Self::ControllerFault,
        Self::Misconfigured,
    ];

    /// The word in message attributes and keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uptime => "uptime",
            Self::Budget => "budget",
            Self::StartFailed => "start_failed",
            Self::CannotStop => "cannot_stop",
            Self::NotReady => "not_ready",
            Self::Blind => "blind",
            Self::NoiseWakes => "noise_wakes",
            Self::ControllerFault => "controller_fault",
            Self::Misconfigured => "misconfigured",
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Sent once under this key.
    pub key: AlertKey,
    /// What it is about.
    pub kind: AlertKind,
    /// The pool, where it is about one.
    pub pool: Option<PoolName>,
    /// The node, where it is about one.
    pub node: Option<NodeId>,
    /// Under 100 ASCII characters, as SNS asks.
    pub subject: String,
    /// For a person at 3 a.m.
    pub body: String,
    /// For machines, beside kind, pool and node: never empty, names of letters and `_`.
    pub attributes: BTreeMap<&'static str, String>,
}

impl Alert {
    /// The effect of having sent it.
    pub(super) fn sent(&self) -> Effect {
        let (pool, node, reason) = (self.pool.clone(), self.node.clone(), self.subject.clone());
        Effect { event: EffectKind::Alert, pool, node, reason }
    }
}

/// SNS takes subjects of fewer than 100 characters.
const LONGEST_SUBJECT: usize = 99;

/// Whom an alert speaks of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Whom {
    pub(super) pool: Option<PoolName>,
    pub(super) node: Option<NodeId>,
    pub(super) name: Option<String>,
    pub(super) kind: Option<InstanceType>,
}

impl Whom {
    pub(super) fn of(seen: &NodeSeen) -> Self {
        let (pool, node) = (Some(seen.pool.clone()), Some(seen.id.clone()));
        Self { pool, node, name: seen.name.clone(), kind: seen.instance_type.clone() }
    }

    pub(super) fn pool(pool: &PoolName) -> Self {
        Self { pool: Some(pool.clone()), ..Self::default() }
    }

    pub(super) fn node(pool: &PoolName, node: &NodeId, kind: Option<InstanceType>) -> Self {
        Self { pool: Some(pool.clone()), node: Some(node.clone()), name: None, kind }
    }

    /// Short, for a subject.
    fn short(&self) -> String {
        let node = self.node.as_ref().map(NodeId::as_str);
        match (self.name.as_deref().or(node), &self.pool) {
            (Some(node), Some(pool)) => format!("{node} ({pool})"),
            (Some(node), None) => node.to_owned(),
            (None, Some(pool)) => format!("pool {pool}"),
            (None, None) => "all pools".to_owned(),
        }
    }

    /// In full: name, id, type, pool.
    fn long(&self) -> String {
        let parts = [
            self.name.clone(),
            self.node.as_ref().map(NodeId::to_string),
            self.kind.as_ref().map(InstanceType::to_string),
            self.pool.as_ref().map(|pool| format!("pool {pool}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "all pools".to_owned() } else { parts.join(", ") }
    }

    fn place(&self) -> String {
        let node = self.node.as_ref().map(NodeId::to_string);
        node.or_else(|| self.pool.as_ref().map(PoolName::to_string)).unwrap_or_else(|| "all".to_owned())
    }
}

/// What the matter costs while it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// The node runs.
    Running,
    /// The node does not run.
    Stopped,
    /// The whole fleet, as it is now; none where something that runs has no price.
    Fleet(Option<Usd>),
    /// It cannot be told.
    Unknown,
}

/// The parts of a message.
struct Text<'a> {
    kind: AlertKind,
    occasion: String,
    subject: &'a str,
    what: String,
    since: Option<Instant>,
    cost: Cost,
    done: String,
    todo: String,
}

/// Writes the messages of one run about one node, pool, or all of them.
pub(super) struct About<'a> {
    ctx: &'a Context,
    whom: Whom,
}

/// An instant for people: UTC, and the operator's zone beside it where that is another.
pub(super) fn shown(at: Instant, zone: Tz) -> String {
    let utc = at.format("%Y-%m-%d %H:%M UTC");
    if zone == Tz::UTC { utc.to_string() } else { format!("{utc} ({})", at.with_timezone(&zone).format("%H:%M %Z")) }
}

/// Hours and minutes.
pub(super) fn hours(seconds: i64) -> String {
    format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60)
}

impl<'a> About<'a> {
    pub(super) fn new(ctx: &'a Context, whom: Whom) -> Self {
        Self { ctx, whom }
    }

    pub(super) fn node(ctx: &'a Context, seen: &NodeSeen) -> Self {
        Self::new(ctx, Whom::of(seen))
    }

    fn alert(&self, text: Text) -> Alert {
        let subject = format!("Reveille: {}: {}", text.subject, self.whom.short());
        let body = format!(
            "What:  {}\nNode:  {}\nSince: {}\nCost:  {}\nDone:  {}\nTo do: {}\n",
            text.what,
            self.whom.long(),
            text.since.map_or_else(|| "not known".to_owned(), |at| self.shown(at)),
            self.cost(text.cost),
            text.done,
            text.todo
        );
        let key = AlertKey(format!("alert#{}#{}#{}", self.whom.place(), text.kind.as_str(), text.occasion));
        Alert {
            attributes: self.attributes(&key, &text),
            key,
            kind: text.kind,
            pool: self.whom.pool.clone(),
            node: self.whom.node.clone(),
            subject: ascii(&subject).chars().take(LONGEST_SUBJECT).collect(),
            body,
        }
    }

    /// `key` is the same for the same matter: who gets a message twice can tell.
    fn attributes(&self, key: &AlertKey, text: &Text) -> BTreeMap<&'static str, String> {
        let mut attributes = BTreeMap::from([("key", key.0.clone())]);
        attributes.insert("at", self.ctx.now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
        if let Some(since) = text.since {
            attributes.insert("since", since.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
        }
        let hourly = match text.cost {
            Cost::Running => self.hour().map(Usd::plain),
            Cost::Fleet(hourly) => hourly.map(Usd::plain),
            Cost::Stopped => Some(Usd::ZERO.plain()),
            Cost::Unknown => None,
        };
        attributes.extend(hourly.map(|usd| ("usd_per_hour", usd)));
        attributes
    }

    fn hour(&self) -> Option<Usd> {
        self.whom.kind.as_ref().and_then(|kind| self.ctx.prices.hour(kind))
    }

    fn cost(&self, cost: Cost) -> String {
        let region = self.ctx.prices.region();
        match (cost, self.hour(), &self.whom.kind) {
            (Cost::Running, Some(price), Some(kind)) => {
                let own = self.ctx.prices.is_own(kind.as_str());
                let source = if own { "your own price".to_owned() } else { format!("list price of {AS_OF}") };
                format!("USD {} an hour while it runs ({kind}, {region}, {source}; disks aside)", price.plain())
            }
            (Cost::Running, _, Some(kind)) => {
                format!("not known: {kind} in {region} has no price; set REVEILLE_PRICES")
            }
            (Cost::Running, _, None) => "not known: the instance type could not be read".to_owned(),
            (Cost::Stopped, _, _) => "USD 0.00 an hour while it is stopped, disks aside".to_owned(),
            (Cost::Fleet(Some(hourly)), _, _) => {
                format!("USD {} an hour for what runs now, disks aside", hourly.plain())
            }
            (Cost::Fleet(None) | Cost::Unknown, _, _) => "not known: nodes that run are billed".to_owned(),
        }
    }

    fn shown(&self, at: Instant) -> String {
        shown(at, self.ctx.policy.zone)
    }

    fn day(&self) -> String {
        LocalDay::of(self.ctx.policy.zone, self.ctx.now).date.to_string()
    }

    /// A START failed.
    pub(super) fn start_failed(&self, error: &CallError, since: Instant, retry_at: Instant) -> Alert {
        let todo = match error.class {
            ErrorClass::Capacity => {
                "nothing if it passes; else add a node in another zone, or `instance_types` to the pool"
            }
            ErrorClass::Quota => {
                "raise the account's vCPU quota for this instance family; it is tried rarely until then"
            }
            ErrorClass::Permanent if error.code == "Client.InternalError" => {
                "the volume's KMS key is the usual cause: let the starting role use kms:CreateGrant on it"
            }
            ErrorClass::Permanent => "check the role's permissions and the node's settings",
            ErrorClass::Transient | ErrorClass::Conflict | ErrorClass::NotFound | ErrorClass::Unknown => {
                "look the code up in the EC2 console"
            }
        };
        self.alert(Text {
            kind: AlertKind::StartFailed,
            occasion: format!("{}#{}", error.code, self.day()),
            subject: &format!("start failed ({})", error.code),
            what: format!("somebody wants the node, and starting it failed: {}: {}", error.code, error.message),
            since: Some(since),
            cost: Cost::Stopped,
            done: format!(
                "the wake is kept; other nodes and types of the pool are tried; this one not before {}",
                self.shown(retry_at)
            ),
            todo: todo.to_owned(),
        })
    }

    /// A STOP is refused for a lasting cause.
    pub(super) fn cannot_stop(&self, error: &CallError, since: Instant, retry_at: Instant) -> Alert {
        let todo = match error.code.as_str() {
            "OperationNotPermitted" => "somebody set stop protection (disableApiStop); clear it if the node may sleep",
            "UnsupportedOperation" => "a one-time spot node cannot be stopped; use a persistent request or on demand",
            _ => "look the code up; stop the node by hand if it is not needed",
        };
        self.alert(Text {
            kind: AlertKind::CannotStop,
            occasion: self.day(),
            subject: "idle node cannot be stopped",
            what: format!("the node is idle and cannot be stopped: {}: {}", error.code, error.message),
            since: Some(since),
            cost: Cost::Running,
            done: format!("other nodes are not held up; tried again not before {}", self.shown(retry_at)),
            todo: todo.to_owned(),
        })
    }

    /// The signals have been unknown for too long.
    pub(super) fn blind(&self, why: Unread, since: Instant, told: u32) -> Alert {
        let cause = match why {
            Unread::Failed => "the metrics, the log or the node list could not be read (throttled, refused or down)",
            Unread::SourceSilent => "its source of requests is silent and nothing proves that it is alive",
            Unread::Partial => "CloudWatch says that points are missing",
            Unread::NoSignals => "the pool has no signals in REVEILLE_POOLS",
            Unread::Gaps => "its source has gaps, and silence is not proved for long enough since the last one",
        };
        self.alert(Text {
            kind: AlertKind::Blind,
            occasion: format!("{since}#{told}"),
            subject: if told > 1 { "still cannot see whether a node is used" } else { "cannot see whether a node is used" },
            what: format!("whether the node is used cannot be told: {cause}"),
            since: Some(since),
            cost: Cost::Running,
            done: "it is kept running: unknown never stops a node".to_owned(),
            todo: "check the metric's name and dimensions and the function's permissions; stop the node by hand if it is not needed".to_owned(),
        })
    }

    /// The signals are known again, after somebody was told that they are not.
    pub(super) fn sees_again(&self, since: Instant) -> Alert {
        self.alert(Text {
            kind: AlertKind::Blind,
            occasion: format!("{since}#ended"),
            subject: "sees again whether a node is used",
            what: "whether the node is used can be told again".to_owned(),
            since: Some(since),
            cost: Cost::Running,
            done: "it is judged as usual, and stopped when it is idle".to_owned(),
            todo: "nothing".to_owned(),
        })
    }

    /// Nodes or ledger cannot be read at all.
    pub(super) fn cannot_look(&self, error: &CallError) -> Alert {
        self.alert(Text {
            kind: AlertKind::ControllerFault,
            occasion: self.ctx.now.format("%Y-%m-%dT%H").to_string(),
            subject: "cannot look at anything",
            what: format!("Reveille cannot work: {error}"),
            since: Some(self.ctx.now),
            cost: Cost::Unknown,
            done: "nothing is started or stopped; running nodes run on".to_owned(),
            todo: "check the functions' permissions, the table and the region; stop idle nodes by hand until then"
                .to_owned(),
        })
    }

    /// Something of the controller's own work fails, and the rest goes on.
    pub(super) fn cannot_do(&self, error: &CallError, consequence: &str) -> Alert {
        self.alert(Text {
            kind: AlertKind::ControllerFault,
            occasion: format!("{}#{}#{}", error.act, error.code, self.day()),
            subject: "a part of the work fails",
            what: error.to_string(),
            since: Some(self.ctx.now),
            cost: Cost::Unknown,
            done: consequence.to_owned(),
            todo: "check the function's permissions; it is tried again at every run".to_owned(),
        })
    }

    /// A node that runs and does not become ready.
    pub(super) fn not_ready(&self, launched_at: Option<Instant>) -> Alert {
        self.alert(Text {
            kind: AlertKind::NotReady,
            occasion: launched_at.map_or_else(|| "unknown".to_owned(), |at| at.to_string()),
            subject: "node does not become ready",
            what: "the node runs and is not ready: its EC2 status checks have not passed, or could not be read"
                .to_owned(),
            since: launched_at,
            cost: Cost::Running,
            done: "callers are told \"starting\"; it is stopped when it is idle".to_owned(),
            todo: "look at the node's status checks and system log".to_owned(),
        })
    }

    /// A running node whose pool the configuration does not name: nothing would ever stop it.
    pub(super) fn unknown_pool(&self, launched_at: Option<Instant>) -> Alert {
        let pool = self.whom.pool.as_ref().map(PoolName::to_string).unwrap_or_default();
        self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: self.day(),
            subject: "node in an unknown pool",
            what: format!(
                "the node runs with the tag reveille:pool={pool}, and REVEILLE_POOLS does not name that pool"
            ),
            since: launched_at,
            cost: Cost::Running,
            done: "nothing: nothing can tell whether it is used, so nothing will stop it".to_owned(),
            todo: "correct the tag, or add the pool".to_owned(),
        })
    }

    /// A node that was seen running and is no longer listed.
    pub(super) fn vanished(&self, launched_at: Instant) -> Alert {
        self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: format!("vanished#{launched_at}"),
            subject: "a running node is no longer listed",
            what: "the node was seen running and is no longer listed: it was terminated, or its tag reveille:pool was removed".to_owned(),
            since: Some(launched_at),
            cost: Cost::Running,
            done: "its time is counted to when it was last seen; a node without the tag is never stopped".to_owned(),
            todo: "if it still runs, put the tag back".to_owned(),
        })
    }

    /// A wake for a pool without a usable node.
    pub(super) fn no_node(&self) -> Alert {
        let pool = self.whom.pool.as_ref().map(PoolName::to_string).unwrap_or_default();
        self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: self.day(),
            subject: "no node to wake",
            what: format!(
                "somebody wants a node, and none has the tag reveille:pool={pool}, or every one is terminated"
            ),
            since: Some(self.ctx.now),
            cost: Cost::Stopped,
            done: "the wake is kept".to_owned(),
            todo: "tag a stopped instance".to_owned(),
        })
    }

    /// A source that wakes for nothing.
    pub(super) fn noise_wakes(&self, lines: u32, prewarms: u32, since: Instant) -> Alert {
        let done = if lines > crate::domain::MOST_NOISE_WAKES {
            "lines of the request log wake nothing more until the end of the day; pre-warms still do"
        } else {
            "nothing: pre-warms go on waking"
        };
        self.alert(Text {
            kind: AlertKind::NoiseWakes,
            occasion: format!("{}#{}", self.day(), if lines > crate::domain::MOST_NOISE_WAKES { "lines" } else { "prewarms" }),
            subject: "woken for nothing too often",
            what: format!(
                "{} launches of today served no request: {lines} were caused by log lines, {prewarms} by pre-warms",
                lines + prewarms
            ),
            since: Some(since),
            cost: Cost::Stopped,
            done: done.to_owned(),
            todo: "make the wake filter stricter (paths, methods, statuses), or let the app pre-warm with its token instead of waking by log lines".to_owned(),
        })
    }

    /// A node up for too long in a day.
    pub(super) fn uptime(&self, day: LocalDay, seconds: i64, launched_at: Option<Instant>) -> Alert {
        let limit = hours(self.ctx.policy.uptime.num_seconds());
        self.alert(Text {
            kind: AlertKind::Uptime,
            occasion: day.date.to_string(),
            subject: &format!("up for more than {} h on {}", self.ctx.policy.uptime.num_hours(), day.date),
            what: format!(
                "the node ran for {} on {} ({}), the limit is {limit}",
                hours(seconds),
                day.date,
                self.ctx.policy.zone
            ),
            since: launched_at,
            cost: Cost::Running,
            done: "nothing: this only tells; the node is stopped when it is idle".to_owned(),
            todo:
                "see what keeps it up (the newest `decided` line names the reason); stop it by hand if it is not needed"
                    .to_owned(),
        })
    }

    /// A node of whose uptime nothing could be read.
    pub(super) fn uptime_unknown(&self, day: LocalDay) -> Alert {
        self.alert(Text {
            kind: AlertKind::Uptime,
            occasion: format!("unknown#{}", day.date),
            subject: "uptime cannot be read",
            what: format!(
                "how long the node ran on {} can be read neither from the ledger nor from its status checks",
                day.date
            ),
            since: Some(self.ctx.now),
            cost: Cost::Running,
            done: "nothing: the next run looks again".to_owned(),
            todo: "check the function's permissions, and by hand whether the node runs".to_owned(),
        })
    }

    /// A drain that waits for calls past its deadline.
    pub(super) fn drain_waits(&self, look: &Look, since: Instant) -> Alert {
        self.alert(Text {
            kind: AlertKind::CannotStop,
            occasion: format!("drain#{since}"),
            subject: "drained node still has calls",
            what: "the budget is spent and the node is to stop, but a call is open or cannot be ruled out".to_owned(),
            since: Some(since),
            cost: Cost::Running,
            done: "its calls are left; it is stopped when none is open".to_owned(),
            todo: format!("stop {} by hand if its calls may be cut, or raise the budget", look.seen.id),
        })
    }

    /// A threshold of the budget. `lines` are what is spent and left.
    pub(super) fn budget(&self, told: &BudgetText) -> Alert {
        let mut alert = self.alert(Text {
            kind: AlertKind::Budget,
            occasion: told.occasion.clone(),
            subject: &told.subject,
            what: told.what.clone(),
            since: Some(told.since),
            cost: Cost::Fleet(told.hourly),
            done: told.done.clone(),
            todo: told.todo.clone(),
        });
        alert.body.push_str(&told.left);
        alert.attributes.insert("threshold", told.threshold.clone());
        alert.attributes.insert("month", told.month.clone());
        alert
    }

    /// The gates were closed or opened by the budget; the same closing is one matter, whichever run gets it out.
    pub(super) fn gate(&self, gate: Option<&Gate>) -> Alert {
        let (zone, since) = (self.ctx.policy.zone, gate.map_or(self.ctx.now, |gate| gate.since));
        let until =
            gate.and_then(|gate| gate.until).map_or_else(String::new, |at| format!(" until {}", shown(at, zone)));
        let (subject, what, done) = match gate {
            Some(gate) if gate.drain => (
                "gate closed, nodes drained",
                &gate.reason,
                format!("no wake is taken{until}, and each running node is stopped once it has no call"),
            ),
            Some(gate) => {
                ("gate closed", &gate.reason, format!("no wake is taken{until}; what runs is stopped when it is idle"))
            }
            None => ("gate open again", &"the budget has room again".to_owned(), "wakes are taken as usual".to_owned()),
        };
        self.alert(Text {
            kind: AlertKind::Budget,
            occasion: format!("gate#{}#{since}", if gate.is_some() { "closed" } else { "opened" }),
            subject,
            what: what.clone(),
            since: Some(since),
            cost: Cost::Unknown,
            done,
            todo: if gate.is_some() { "raise the amount in REVEILLE_BUDGET if calls are to go on" } else { "nothing" }
                .to_owned(),
        })
    }

    /// Something about the AWS budget, or a price, that a person has to put right; told once an occasion.
    pub(super) fn budget_fault(&self, occasion: &str, subject: &str, what: String, done: &str, todo: &str) -> Alert {
        self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: occasion.to_owned(),
            subject,
            what,
            since: Some(self.ctx.now),
            cost: Cost::Unknown,
            done: done.to_owned(),
            todo: todo.to_owned(),
        })
    }
}

/// The parts of a budget message.
pub(super) struct BudgetText {
    pub(super) occasion: String,
    pub(super) subject: String,
    pub(super) what: String,
    pub(super) since: Instant,
    pub(super) hourly: Option<Usd>,
    pub(super) done: String,
    pub(super) todo: String,
    pub(super) left: String,
    pub(super) threshold: String,
    pub(super) month: String,
}

/// Printable ASCII; anything else becomes `?`, so that a name is not silently another one.
fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}
