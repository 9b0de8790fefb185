//! Messages to people: what, which node, since when, what it costs an hour, what was done, what to do.

mod messages;

use super::Context;
use super::outcome::{Effect, EffectKind};
use crate::decide::uptime::LocalDay;
use crate::domain::{AlertKey, InstanceType, Instant, NodeId, NodeSeen, PoolName, Usd};
use crate::prices::AS_OF;
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    pub attributes: BTreeMap<String, String>,
}

impl Alert {
    /// As it is kept until it can be sent.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a message is texts under texts")
    }

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
    fn attributes(&self, key: &AlertKey, text: &Text) -> BTreeMap<String, String> {
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
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
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
