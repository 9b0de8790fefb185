//! The report of a demo day: one HTML page that opens from disk, fetches nothing and runs no script.
//!
//! `picture` draws the day and `month` its money, both over the time of `axis`; `page` writes what stands around them,
//! with `messages`. `events` says how each event shows, `gates` when the gate was closed; `dollars` and `labels` place
//! what the month's chart shows.

mod axis;
mod dollars;
mod events;
mod gates;
mod labels;
mod messages;
mod month;
mod page;
mod picture;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use serde::Serialize;

/// A day on the stage, and what came of it.
///
/// Lists may be in any order: the report sorts by time. What lies outside `from` to `to` is drawn at the edge, never
/// left out.
#[derive(Debug, Clone)]
pub struct Day {
    /// The heading.
    pub title: String,
    /// Where the picture begins.
    pub from: DateTime<Utc>,
    /// Where the picture ends; the last state of a node holds until then.
    pub to: DateTime<Utc>,
    /// The nodes, one lane each, in this order.
    pub nodes: Vec<NodeDay>,
    /// The calls of people.
    pub calls: Vec<Call>,
    /// When a pre-warm asked for a node.
    pub prewarms: Vec<DateTime<Utc>>,
    /// Log lines that must wake nothing: when, and how many.
    pub noise: Vec<(DateTime<Utc>, u64)>,
    /// What the functions did and saw, and what people did.
    pub events: Vec<Event>,
    /// What had to hold on this day.
    pub checks: Vec<Check>,
    /// What the day costs under each plan.
    pub money: Vec<MoneyRow>,
    /// Messages as they arrived at the topic.
    pub messages: Vec<Message>,
    /// When the gate was closed: from, to (None: still closed), and why.
    pub gates: Vec<GateClosed>,
    /// The month's money over the day; absent where no budget guard ran.
    pub spend: Option<SpendLine>,
}

/// A node over the day.
#[derive(Debug, Clone)]
pub struct NodeDay {
    /// Its name; events and calls are laid to it by this name.
    pub name: String,
    /// `stopped`, `pending`, `running`, `ready` or `stopping`, each from its instant on. Before the first one nothing
    /// is drawn; another word is drawn as an unknown state.
    pub states: Vec<(DateTime<Utc>, String)>,
}

/// A call.
#[derive(Debug, Clone)]
pub struct Call {
    /// When it came in.
    pub at: DateTime<Utc>,
    /// How long it was served, from the end of its wait on.
    pub seconds: f64,
    /// The node that served it; `None` when none did.
    pub node: Option<String>,
    /// How long it waited for a node; zero when one was ready.
    pub waited_seconds: f64,
}

/// Something that happened: a line of the timeline.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// When.
    pub at: DateTime<Utc>,
    /// The function that did or saw it.
    pub function: String,
    /// The node, if it concerns one.
    pub node: Option<String>,
    /// `demand`, `noise`, `start`, `start_failed`, `launched`, `running`, `ready`, `idle_mark`, `stop`, `stop_failed`,
    /// `stopped`, `ended`, `resized`, `gate_closed`, `gate_opened`, `budget_repaired`, `blind`, `sees_again`, `alert`,
    /// `refused` or `person`. Another word is shown with a question mark.
    pub event: String,
    /// Why.
    pub reason: String,
}

/// One thing that had to hold.
#[derive(Debug, Clone)]
pub struct Check {
    /// What had to hold.
    pub name: String,
    /// Whether it held.
    pub ok: bool,
    /// What was seen.
    pub detail: String,
}

/// What the day costs under one plan.
#[derive(Debug, Clone)]
pub struct MoneyRow {
    /// The plan, such as "24/7".
    pub plan: String,
    /// Billed hours of all nodes.
    pub node_hours: f64,
    /// United States dollars per day. Shown only, never added up: hence no money type.
    pub usd_day: f64,
    /// How it was reckoned.
    pub note: String,
}

/// A message as it arrived at the topic.
#[derive(Debug, Clone)]
pub struct Message {
    /// When it arrived.
    pub at: DateTime<Utc>,
    /// Its subject. An alert of the timeline with this text as its reason, within a minute of it, links to it.
    pub subject: String,
    /// Its text; line breaks are kept.
    pub body: String,
}

/// One closing of the gate.
#[derive(Debug, Clone)]
pub struct GateClosed {
    /// When it was closed.
    pub from: DateTime<Utc>,
    /// When it was opened; `None` when it is still closed at the day's end.
    pub to: Option<DateTime<Utc>>,
    /// Why it was closed.
    pub reason: String,
}

/// What the month has cost, as it was known over the day. United States dollars, shown only, never added up: hence no
/// money type. A figure that is no number is left out.
#[derive(Debug, Clone)]
pub struct SpendLine {
    /// What the operator allows for the month.
    pub amount_usd: f64,
    /// Where people are told, in percent of the amount. Not drawn where the amount is not above zero.
    pub thresholds: Vec<f64>,
    /// The guard's own estimate for the month so far, at each of its runs.
    pub own: Vec<(DateTime<Utc>, f64)>,
    /// AWS's figure for the month so far as each run read it; hours late, so it stands still between updates.
    pub aws: Vec<(DateTime<Utc>, f64)>,
}

/// Writes the page.
///
/// Every text of `day` is escaped; the page carries a policy under which a browser fetches nothing.
pub fn html(day: &Day) -> String {
    page::page(day).into_string()
}

/// Writes instants of a day: the date only where the picture spans more than one.
#[derive(Debug, Clone, Copy)]
struct Clock {
    dated: bool,
}

impl Clock {
    fn of(day: &Day) -> Self {
        let last = day.to - chrono::TimeDelta::seconds(1);
        Self { dated: day.from.date_naive() != last.date_naive() }
    }

    fn second(self, at: DateTime<Utc>) -> String {
        at.format(if self.dated { "%-d %b %H:%M:%S" } else { "%H:%M:%S" }).to_string()
    }

    fn minute(self, at: DateTime<Utc>) -> String {
        at.format(if self.dated { "%-d %b %H:%M" } else { "%H:%M" }).to_string()
    }
}

/// Writes a length of time in its two largest units; below zero, or no number, counts as zero.
fn span(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes, seconds) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
