//! When the gate was closed, within the day and in words.

use super::{Clock, Day, GateClosed, span};
use chrono::{DateTime, Utc};

/// From when to when the gate was closed within the day; what lies outside is at the edge, and an open end is the day's.
pub(super) fn within(day: &Day, gate: &GateClosed) -> (DateTime<Utc>, DateTime<Utc>) {
    let inside = |at: DateTime<Utc>| at.max(day.from).min(day.to);
    let from = inside(gate.from);
    (from, inside(gate.to.unwrap_or(day.to)).max(from))
}

/// The day's stretches with a closed gate, in order; those that meet are one, as several pools may close theirs at once.
pub(super) fn closed(day: &Day) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let mut spans: Vec<_> = day.gates.iter().map(|gate| within(day, gate)).collect();
    spans.sort_unstable();
    let mut merged: Vec<(DateTime<Utc>, DateTime<Utc>)> = Vec::new();
    for (from, to) in spans {
        match merged.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// For how long the gate was closed within the day.
pub(super) fn closed_seconds(day: &Day) -> f64 {
    closed(day).into_iter().fold(0.0, |sum, (from, to)| sum + to.signed_duration_since(from).as_seconds_f64())
}

/// A sentence about the whole day; nothing when the gate was open throughout.
pub(super) fn sentence(day: &Day, clock: Clock) -> Option<String> {
    let spans: Vec<String> = closed(day).into_iter().map(|(from, to)| stretch(day, clock, from, to)).collect();
    (!spans.is_empty()).then(|| format!("The gate was closed for {}: {}.", span(closed_seconds(day)), spans.join(", ")))
}

fn stretch(day: &Day, clock: Clock, from: DateTime<Utc>, to: DateTime<Utc>) -> String {
    let from = if from == day.from { "the day's start".to_owned() } else { clock.minute(from) };
    let to = if to == day.to { "the day's end".to_owned() } else { clock.minute(to) };
    format!("{from} to {to}")
}

/// One closing, for the hover text.
pub(super) fn text(day: &Day, clock: Clock, gate: &GateClosed) -> String {
    // Without its date an hour of another day would be taken for one of this day.
    let from = if gate.from < day.from {
        "since before this day".to_owned()
    } else {
        format!("from {}", clock.second(gate.from))
    };
    let to = match gate.to {
        None => ", still closed".to_owned(),
        Some(to) if to > day.to => " to beyond this day".to_owned(),
        Some(to) => format!(" to {}", clock.second(to)),
    };
    format!("gate closed {from}{to}: {}", gate.reason)
}
