//! The page around the pictures: key figures, checks, money, messages and timeline.

use super::events::{inline_mark, kind};
use super::messages::Messages;
use super::{Check, Clock, Day, Event, MoneyRow, NodeDay, month, picture, span};
use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::collections::BTreeMap;

const STYLE: &str = include_str!("style.css");
/// Makes "fetches nothing" a rule the browser keeps.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub(super) fn page(day: &Day) -> Markup {
    let clock = Clock::of(day);
    let messages = Messages::of(day);
    let figures = Figures::of(day);
    let summary = figures.sentence();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (day.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header {
                        h1 { (day.title) }
                        p.when { (long_time(day.from)) " to " (long_time(day.to)) ", all times UTC" }
                        p.summary { (summary) }
                    }
                    (figures.tiles())
                    section aria-labelledby="day" { h2 id="day" { "The day" } (picture::figure(day, &summary)) }
                    @if let Some(spend) = &day.spend { (month::section(day, spend)) }
                    (checks(&day.checks))
                    (money(&day.money))
                    (messages.section(clock))
                    (timeline(day, clock, &messages))
                }
            }
        }
    }
}

fn long_time(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (at.format("%a %-d %B %Y, %H:%M")) } }
}

/// How long EC2 bills a node on this day: in `running` and `ready`, not in `pending` or `stopping`.
pub(super) fn up_seconds(day: &Day, node: &NodeDay) -> f64 {
    let up = picture::stretches(day, node).into_iter().filter(|(_, _, state)| matches!(*state, "running" | "ready"));
    // Not `sum`: over nothing it gives -0.0, and the page would say so.
    up.fold(0.0, |sum, (from, to, _)| sum + to.signed_duration_since(from).as_seconds_f64())
}

/// The key figures of the day.
struct Figures {
    nodes: usize,
    hours: f64,
    calls: usize,
    unserved: usize,
    /// The waits of the calls that waited, shortest first.
    waits: Vec<f64>,
    starts: usize,
    failures: usize,
    alerts: usize,
    checks: usize,
    held: usize,
}

impl Figures {
    fn of(day: &Day) -> Self {
        let count = |names: &[&str]| day.events.iter().filter(|event| names.contains(&event.event.as_str())).count();
        let mut waits: Vec<f64> = day.calls.iter().map(|call| call.waited_seconds).filter(|wait| *wait > 0.0).collect();
        waits.sort_by(f64::total_cmp);
        Self {
            nodes: day.nodes.len(),
            hours: day.nodes.iter().fold(0.0, |sum, node| sum + up_seconds(day, node)) / 3600.0,
            calls: day.calls.len(),
            unserved: day.calls.iter().filter(|call| call.node.is_none()).count(),
            waits,
            starts: count(&["start"]),
            failures: count(&["start_failed", "stop_failed"]),
            alerts: count(&["alert"]),
            checks: day.checks.len(),
            held: day.checks.iter().filter(|check| check.ok).count(),
        }
    }

    fn sentence(&self) -> String {
        let waits = match (self.waits.get(self.waits.len() / 2), self.waits.last()) {
            (Some(median), Some(longest)) => format!(
                "{} of them waited for a node (median {}, longest {})",
                self.waits.len(),
                span(*median),
                span(*longest)
            ),
            _ => "none of them waited for a node".to_owned(),
        };
        format!(
            "{} ran for {:.1} node hours and met {}; {waits}.",
            plural(self.nodes, "node"),
            self.hours,
            plural(self.calls, "call")
        )
    }

    fn tiles(&self) -> Markup {
        let longest = self.waits.last().map_or_else(|| "none".to_owned(), |wait| span(*wait));
        let tiles = [
            ("Node hours", format!("{:.1}", self.hours)),
            ("Calls", self.calls.to_string()),
            ("Unserved calls", self.unserved.to_string()),
            ("Longest wait", longest),
            ("Starts", self.starts.to_string()),
            ("Failed acts", self.failures.to_string()),
            ("Alerts", self.alerts.to_string()),
            ("Checks held", format!("{} of {}", self.held, self.checks)),
        ];
        html! { dl.tiles { @for (name, value) in tiles { div { dt { (name) } dd { (value) } } } } }
    }
}

fn plural(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn checks(checks: &[Check]) -> Markup {
    html! {
        section aria-labelledby="checks" {
            h2 id="checks" { "Checks" }
            @if checks.is_empty() { p { "No check was made." } }
            ul.checks {
                @for check in checks {
                    @let (class, sign, word) = if check.ok { ("ok", "✓", "held") } else { ("bad", "✗", "failed") };
                    li class=(class) {
                        span.sign aria-hidden="true" { (sign) }
                        span.unseen { (word) ": " }
                        div { strong { (check.name) } " " span.detail { (check.detail) } }
                    }
                }
            }
        }
    }
}

fn money(rows: &[MoneyRow]) -> Markup {
    let dearest = rows.iter().map(|row| row.usd_day).fold(0.0, f64::max);
    html! {
        section aria-labelledby="money" {
            h2 id="money" { "Money" }
            @if rows.is_empty() { p { "No plan was reckoned." } } @else {
                table.money {
                    caption { "What a day like this costs under each plan" }
                    thead { tr {
                        th scope="col" { "Plan" }
                        th.number scope="col" { "Node hours" }
                        th.number scope="col" { "USD a day" }
                        th scope="col" { "Of the dearest" }
                        th scope="col" { "Note" }
                    } }
                    tbody { @for row in rows {
                        // Written so that no number, however odd, reaches the width as anything but 0 to 100.
                        @let share = if dearest > 0.0 { (row.usd_day.max(0.0) / dearest).min(1.0) * 100.0 } else { 0.0 };
                        tr {
                            th scope="row" { (row.plan) }
                            td.number data-name="node hours" { (format!("{:.1}", row.node_hours)) }
                            td.number data-name="USD a day" { (format!("{:.2}", row.usd_day)) }
                            td.share {
                                svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                                    rect.trough width="100" height="10" {}
                                    rect.bar width=(format!("{share:.1}")) height="10" {}
                                }
                                span { (format!("{share:.0} %")) }
                            }
                            td.note { (row.note) }
                        }
                    } }
                }
            }
        }
    }
}

/// The events in order, as rows of one event or of a run of noise.
///
/// Idle marks come every few minutes and do not end a run; whatever else does, so that no decision moves. A run stands
/// where it began.
fn rows(events: &[Event]) -> Vec<Vec<&Event>> {
    let mut events: Vec<&Event> = events.iter().collect();
    events.sort_by_key(|event| event.at);
    let mut rows: Vec<Vec<&Event>> = Vec::new();
    let mut run: Option<usize> = None;
    for event in events {
        if let (Some(run), "noise") = (run, event.event.as_str()) {
            rows[run].push(event);
            continue;
        }
        match event.event.as_str() {
            "noise" => run = Some(rows.len()),
            "idle_mark" => {}
            _ => run = None,
        }
        rows.push(vec![event]);
    }
    rows
}

fn timeline(day: &Day, clock: Clock, messages: &Messages<'_>) -> Markup {
    let rows = rows(&day.events);
    html! {
        section aria-labelledby="timeline" {
            h2 id="timeline" { "Timeline" }
            table.timeline {
                caption { (plural(day.events.len(), "event")) " in " (plural(rows.len(), "row")) "; a run of noise is one row" }
                thead { tr { @for name in ["Time", "Function", "Node", "Event", "Reason"] {
                    th scope="col" class=(name.to_lowercase()) { (name) }
                } } }
                tbody { @for row in &rows { (timeline_row(row, clock, messages)) } }
            }
        }
    }
}

fn timeline_row(run: &[&Event], clock: Clock, messages: &Messages<'_>) -> Markup {
    let [first, ..] = run else { return html! {} };
    let kind = kind(&first.event);
    html! {
        tr class=[(!kind.class.is_empty()).then_some(kind.class)] {
            th.time scope="row" {
                time datetime=(first.at.to_rfc3339()) { (clock.second(first.at)) }
                @if let [_, .., last] = run { " to " time datetime=(last.at.to_rfc3339()) { (clock.second(last.at)) } }
            }
            td.function { (counted(run.iter().map(|event| event.function.as_str()))) }
            td.node { (counted(run.iter().map(|event| event.node.as_deref().unwrap_or("–")))) }
            td.event { (inline_mark(kind)) (first.event) @if run.len() > 1 { " × " (run.len()) } }
            td.reason {
                @let reason = counted(run.iter().map(|event| event.reason.as_str()));
                @if let Some(name) = messages.of_alert(first) { a href={ "#" (name) } { (reason) } } @else { (reason) }
            }
        }
    }
}

/// The text itself, or each of several with its count, the most frequent first.
fn counted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    match counts.as_slice() {
        [(text, _)] => (*text).to_owned(),
        several => several.iter().map(|(text, count)| format!("{text} × {count}")).collect::<Vec<_>>().join(", "),
    }
}
