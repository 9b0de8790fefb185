//! The picture of the day: lanes over one time axis, as SVG.
//!
//! Written with the page's own markup macro, not with a plotting library: `plotters`, the nearest one, gives its SVG no
//! hover text, no description, no fill patterns and fixed colours only, so tooltips, dark mode and the second,
//! colourless sign of every state would have to be patched into its output.

use super::axis::{Scale, Spoken, axis, rounded, scroll_box};
use super::events::{self, Kind};
use super::{Call, Day, Event, GateClosed, NodeDay, gates, span};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

const GAP: f64 = 16.0;
const BAND: f64 = 26.0;
const ROW: f64 = 16.0;
/// More rows than this would make a burst of marks taller than the day is wide; further marks overlap in the last row.
const MOST_ROWS: usize = 6;
/// Ten minutes each on a day of 24 hours.
const SLOTS: usize = 144;

/// The states in the order of a node's life, with what the legend says.
const STATES: [(&str, &str); 5] = [
    ("stopped", "stopped"),
    ("pending", "pending"),
    ("running", "running, not ready"),
    ("ready", "ready"),
    ("stopping", "stopping"),
];

const PREWARM: &str = "M0-6 6 0 0 6-6 0Z";
const HOURGLASS: &str = "M-4-6H4L0 0 4 6H-4L0 0Z";

/// A lane: its name, a second line under it, and what is drawn, from its own top edge down.
struct Lane {
    name: String,
    note: String,
    height: f64,
    body: Markup,
}

/// The figure: the picture in a box that scrolls sideways, and its legend.
pub(super) fn figure(day: &Day, summary: &str) -> Markup {
    let scale = Scale::of(day);
    let mut top = GAP / 2.0;
    let mut placed = Vec::new();
    for lane in lanes(scale, day) {
        let height = lane.height;
        placed.push((top, lane));
        top += height + GAP;
    }
    let spoken = Spoken {
        id: "picture",
        region: "Picture of the day",
        title: "The day as lanes over time",
        desc: format!("{summary} Every decision is also in the timeline table below."),
    };
    html! {
        figure {
            (scroll_box(&spoken, top + scale.axis_height(), names(&placed), plot(scale, top, &placed)))
            (legend(day))
        }
    }
}

fn lanes(scale: Scale, day: &Day) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = day.nodes.iter().map(|node| node_lane(scale, day, node)).collect();
    lanes.extend(gate_lane(scale, day));
    lanes.extend([pool_lane(scale, day), calls_lane(scale, &day.calls), quiet_lane(scale, day)]);
    lanes
}

fn names(placed: &[(f64, Lane)]) -> Markup {
    html! {
        @for (top, lane) in placed {
            g transform={ "translate(0 " (top) ")" } {
                text.name x="10" y="14" { title { (lane.name) } (shortened(&lane.name)) }
                text.note x="10" y="29" { (lane.note) }
            }
        }
    }
}

fn plot(scale: Scale, bottom: f64, placed: &[(f64, Lane)]) -> Markup {
    html! {
        (patterns())
        (axis(scale, bottom))
        @for (top, lane) in placed {
            g transform={ "translate(0 " (top) ")" } { (lane.body) }
        }
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= 15 { name.to_owned() } else { name.chars().take(14).chain(['…']).collect() }
}

/// The fill of each state. The hatching tells them apart without colour.
fn patterns() -> Markup {
    html! {
        defs {
            pattern id="f-pending" width="8" height="8" patternUnits="userSpaceOnUse" {
                rect.c-pending width="8" height="8" {}
                path.ink d="M-2 2 2-2M0 8 8 0M6 10 10 6" {}
            }
            pattern id="f-running" width="6" height="6" patternUnits="userSpaceOnUse" {
                rect.c-running width="6" height="6" {}
                circle.dot cx="3" cy="3" r="1" {}
            }
            pattern id="f-stopping" width="8" height="8" patternUnits="userSpaceOnUse" {
                rect.c-stopping width="8" height="8" {}
                path.ink d="M-2 6 2 10M0 0 8 8M6-2 10 2" {}
            }
            pattern id="f-wait" width="4" height="4" patternUnits="userSpaceOnUse" {
                rect.c-wait width="4" height="4" {}
                path.ink d="M0 0V4" {}
            }
            // The month's chart fills with it too.
            pattern id="f-gate" width="8" height="8" patternUnits="userSpaceOnUse" {
                rect.c-gate width="8" height="8" {}
                path.gate-ink d="M-2 2 2-2M0 8 8 0M6 10 10 6" {}
            }
        }
    }
}

fn node_lane(scale: Scale, day: &Day, node: &NodeDay) -> Lane {
    let hours = super::page::up_seconds(day, node) / 3600.0;
    let (rows, marks) = marks(scale, day.events.iter().filter(|event| event.node.as_ref() == Some(&node.name)));
    Lane {
        name: node.name.clone(),
        note: format!("{hours:.1} h billed"),
        height: BAND + 4.0 + rows * ROW,
        body: html! {
            @for (from, to, state) in stretches(day, node) { (band(scale, &node.name, from, to, state)) }
            g transform={ "translate(0 " (BAND + 4.0) ")" } { (marks) }
        },
    }
}

/// The node's states with both ends, within the day, in order.
pub(super) fn stretches<'a>(day: &Day, node: &'a NodeDay) -> Vec<(DateTime<Utc>, DateTime<Utc>, &'a str)> {
    let mut states: Vec<_> = node.states.iter().collect();
    states.sort_by_key(|(at, _)| *at);
    let ends = states.iter().skip(1).map(|(at, _)| *at).chain([day.to]).collect::<Vec<_>>();
    let within = |at: DateTime<Utc>| at.max(day.from).min(day.to);
    let all = states.iter().zip(ends).map(|((from, state), to)| (within(*from), within(to), state.as_str()));
    all.filter(|(from, to, _)| from < to).collect()
}

fn band(scale: Scale, node: &str, from: DateTime<Utc>, to: DateTime<Utc>, state: &str) -> Markup {
    let (left, right) = (scale.x(from, 0.0), scale.x(to, 0.0));
    let width = rounded(right - left);
    let known = STATES.iter().any(|(name, _)| *name == state);
    let class = format!("s-{}", if known { state } else { "unknown" });
    let seconds = to.signed_duration_since(from).as_seconds_f64();
    let long = format!("{state} {}", span(seconds));
    // 6.6 units a letter at the style's 12 units: what does not fit stays in the hover text.
    let fits = |text: &str| text.chars().count() as f64 * 6.6 + 8.0 < width;
    let label = [long.as_str(), state].into_iter().find(|text| fits(text));
    html! {
        g {
            title { (node) ": " (long) ", " (scale.clock.second(from)) " to " (scale.clock.second(to)) }
            @if state == "stopped" {
                // A node that costs nothing takes little ink.
                rect.s-stopped x=(left) y=(BAND - 5.0) width=(width) height="5" {}
                rect.hit x=(left) y="0" width=(width) height=(BAND) {}
            } @else {
                rect class=(class) x=(left) y="0" width=(width.max(0.8)) height=(BAND) {}
            }
            @if let Some(label) = label {
                @let (y, class) = if state == "stopped" { (BAND - 10.0, "quiet") } else { (BAND / 2.0 + 4.0, "inside") };
                text class=(class) x=((left + right) / 2.0) y=(y) { (label) }
            }
        }
    }
}

/// Marks of the events that have one, side by side where they would overlap; with the number of rows that took.
fn marks<'a>(scale: Scale, events: impl Iterator<Item = &'a Event>) -> (f64, Markup) {
    let mut events: Vec<(&Event, &Kind)> = events.map(|event| (event, events::kind(&event.event))).collect();
    events.retain(|(_, kind)| !kind.path.is_empty());
    events.sort_by_key(|(event, _)| event.at);
    let mut rows = Rows::default();
    let body = html! {
        @for (event, kind) in events {
            @let x = scale.x(event.at, 0.0);
            @let y = rows.place(x - kind.half, x + kind.half) * ROW + ROW / 2.0;
            g transform={ "translate(" (x) " " (y) ")" } {
                title { (scale.clock.second(event.at)) " " (event.event) ": " (event.reason) }
                rect.hit x=(-kind.half) y="-7" width=(2.0 * kind.half) height="14" {}
                path class=(kind.class) d=(kind.path) {}
            }
        }
    };
    (rows.count(), body)
}

/// Fills rows from the top: each thing goes to the first row that is free where it begins.
#[derive(Default)]
struct Rows(Vec<f64>);

impl Rows {
    fn place(&mut self, left: f64, right: f64) -> f64 {
        let free = self.0.iter().position(|taken| *taken <= left);
        let row = free.unwrap_or(self.0.len()).min(MOST_ROWS - 1);
        self.0.resize(self.0.len().max(row + 1), f64::MIN);
        self.0[row] = right.max(self.0[row]);
        row as f64
    }

    fn count(&self) -> f64 {
        self.0.len().max(1) as f64
    }
}

/// When the gate was closed; no lane when it never was.
fn gate_lane(scale: Scale, day: &Day) -> Option<Lane> {
    let mut gates: Vec<&GateClosed> = day.gates.iter().collect();
    gates.sort_by_key(|gate| gate.from);
    let mut rows = Rows::default();
    let body = html! { @for gate in &gates { (gate_band(scale, day, gate, &mut rows)) } };
    let note = format!("closed {}", span(gates::closed_seconds(day)));
    let height = (rows.count() * ROW).max(32.0);
    (!gates.is_empty()).then(|| Lane { name: "Gate".to_owned(), note, height, body })
}

fn gate_band(scale: Scale, day: &Day, gate: &GateClosed, rows: &mut Rows) -> Markup {
    let (from, to) = gates::within(day, gate);
    let left = scale.x(from, 0.0);
    let width = rounded(scale.x(to, 0.0) - left).max(0.8);
    let y = rows.place(left, left + width) * ROW + 2.0;
    html! {
        g transform={ "translate(0 " (y) ")" } {
            title { (gates::text(day, scale.clock, gate)) }
            rect.s-gate x=(left) y="0" width=(width) height="12" {}
        }
    }
}

/// What concerns no node, or a node that has no lane.
fn pool_lane(scale: Scale, day: &Day) -> Lane {
    let laid = |event: &&Event| !day.nodes.iter().any(|node| event.node.as_ref() == Some(&node.name));
    let (rows, body) = marks(scale, day.events.iter().filter(laid));
    Lane { name: "Pool".to_owned(), note: "no single node".to_owned(), height: (rows * ROW).max(32.0), body }
}

fn calls_lane(scale: Scale, calls: &[Call]) -> Lane {
    let mut calls: Vec<&Call> = calls.iter().collect();
    calls.sort_by_key(|call| call.at);
    let waited = calls.iter().filter(|call| call.waited_seconds > 0.0).count();
    let note = format!("{} · {waited} waited", calls.len());
    let mut rows = Rows::default();
    let body = html! {
        @for call in calls {
            @let waits = call.waited_seconds > 0.0;
            @let left = scale.x(call.at, 0.0);
            @let served = scale.x(call.at, call.waited_seconds);
            @let width = (scale.x(call.at, call.waited_seconds.max(0.0) + call.seconds) - served).max(2.0);
            @let y = rows.place(left - if waits { 12.0 } else { 1.0 }, served + width + 1.0) * ROW;
            g transform={ "translate(0 " (y) ")" } {
                title { (call_text(scale, call)) }
                @if waits {
                    path.m-wait transform={ "translate(" (left - 6.0) " 8)" } d=(HOURGLASS) {}
                    rect.s-wait x=(left) y="2" width=(served - left) height="12" {}
                }
                rect class=(if call.node.is_some() { "call" } else { "call-lost" }) x=(served) y="2" width=(width) height="12" {}
            }
        }
    };
    Lane { name: "Calls".to_owned(), note, height: (rows.count() * ROW).max(32.0), body }
}

fn call_text(scale: Scale, call: &Call) -> String {
    let node = call.node.as_ref().map_or_else(|| "no node".to_owned(), |node| format!("on {node}"));
    let at = scale.clock.second(call.at);
    if call.waited_seconds > 0.0 {
        format!("{at} call waited {}, then {} {node}", span(call.waited_seconds), span(call.seconds))
    } else {
        format!("{at} call, {} {node}", span(call.seconds))
    }
}

/// Pre-warms, and the noise under them as bars.
fn quiet_lane(scale: Scale, day: &Day) -> Lane {
    let mut slots = [0_u64; SLOTS];
    for (at, lines) in &day.noise {
        let slot = (scale.share(*at, 0.0) * SLOTS as f64) as usize;
        let sum = &mut slots[slot.min(SLOTS - 1)];
        *sum = sum.saturating_add(*lines);
    }
    let tallest = slots.iter().max().copied().unwrap_or(0).max(1) as f64;
    let body = html! {
        @for at in &day.prewarms {
            g transform={ "translate(" (scale.x(*at, 0.0)) " 8)" } {
                title { (scale.clock.second(*at)) " pre-warm" }
                path.m-prewarm d=(PREWARM) {}
            }
        }
        @for (slot, lines) in slots.iter().enumerate().filter(|(_, lines)| **lines > 0) {
            @let wide = scale.seconds / SLOTS as f64;
            @let height = (*lines as f64 / tallest * 24.0).max(2.0).round();
            @let left = scale.x(scale.from, slot as f64 * wide);
            @let from = scale.from + TimeDelta::seconds((slot as f64 * wide) as i64);
            rect.noise x=(left) y=(44.0 - height) width="6" height=(height) {
                title { (scale.clock.minute(from)) ", " (span(wide)) ": " (lines) " noise lines" }
            }
        }
    };
    let note = format!("{} · {} noise", day.prewarms.len(), slots.iter().fold(0_u64, |sum, n| sum.saturating_add(*n)));
    Lane { name: "Pre-warms".to_owned(), note, height: 44.0, body }
}

/// Every state, call and mark with its meaning. Also what this day does not show, so that its absence can be seen.
fn legend(day: &Day) -> Markup {
    let swatch = |class: &str, text: &str| {
        html! { li { svg.swatch viewBox="0 0 26 16" aria-hidden="true" { rect class=(class) x="1" y="2" width="24" height="12" {} } (text) } }
    };
    let sign = |class: &str, path: &str, text: &str| {
        html! { li { svg.inline viewBox="-8 -8 16 16" aria-hidden="true" { path class=(class) d=(path) {} } (text) } }
    };
    let unknown = day.events.iter().map(|event| events::kind(&event.event)).find(|kind| kind.name == "unknown");
    html! {
        figcaption {
            ul.legend {
                @for (state, text) in STATES { (swatch(&format!("s-{state}"), text)) }
                (swatch("s-gate", "gate closed"))
                (swatch("call", "call"))
                (swatch("call-lost", "call without a node"))
                (sign("m-wait", HOURGLASS, "call waited"))
                (sign("m-prewarm", PREWARM, "pre-warm"))
                (swatch("noise", &format!("noise lines, per {}", span(Scale::of(day).seconds / SLOTS as f64))))
            }
            ul.legend {
                @for kind in events::KINDS.iter().chain(unknown).filter(|kind| !kind.path.is_empty()) {
                    @if kind.name == "start_failed" { (sign(kind.class, kind.path, "start or stop failed")) }
                    @else if kind.name != "stop_failed" { (sign(kind.class, kind.path, kind.meaning)) }
                }
            }
        }
    }
}
