//! Events as people read them: what stays the same from tick to tick is one row.

use super::parse::{Event, Kind};
use crate::ops::show::{clock, paragraph, table};
use chrono_tz::Tz;
use reveille::domain::{Instant, NodeId};
use std::collections::BTreeMap;

/// The same decision of the same function on the same node, from tick to tick.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    from: Instant,
    to: Instant,
    /// How often it was decided.
    times: usize,
    event: Event,
}

/// Where the rows stand of the newest look of one function at one node, and of the look before it: the uptime alarm decides on
/// two days in one look.
#[derive(Debug, Default)]
struct Looks {
    at: Option<Instant>,
    newest: Vec<usize>,
    before: Vec<usize>,
}

pub(super) fn write(
    events: &[Event],
    names: &BTreeMap<NodeId, String>,
    each: bool,
    (from, to): (Instant, Instant),
    zone: Tz,
    unread: &[String],
) -> String {
    let span = |at: Instant| at.with_timezone(&zone).format("%Y-%m-%d %H:%M %Z").to_string();
    let mut text = format!("{} to {}\n", span(from), span(to));
    if events.is_empty() {
        text += "Nothing was decided or done.\n";
    } else {
        let rows = joined(events, each).into_iter().map(|row| cells(&row, names, to, zone)).collect();
        text += &table(&["when", "node", "what", "why"], rows);
    }
    unread.iter().for_each(|unread| text += &paragraph(&format!("Not read: {unread}")));
    text
}

fn joined(events: &[Event], each: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut looks: BTreeMap<(&str, Option<&NodeId>, Option<&str>), Looks> = BTreeMap::new();
    for event in events {
        let row = Row { from: event.at, to: event.at, times: 1, event: event.clone() };
        if each || event.kind != Kind::Decided {
            rows.push(row);
            continue;
        }
        let function = event.function.as_deref().unwrap_or_default();
        let key = (function, event.node.as_ref(), event.pool.as_ref().map(|pool| pool.as_str()));
        let looks = looks.entry(key).or_default();
        if looks.at != Some(event.at) {
            looks.before = std::mem::take(&mut looks.newest);
            looks.at = Some(event.at);
        }
        let same = |n: &&usize| {
            rows.get(**n).is_some_and(|row| row.event.what == event.what && row.event.reason == event.reason)
        };
        if looks.newest.iter().any(|n| same(&n)) {
            continue;
        }
        let before = looks.before.iter().find(same).copied();
        looks.newest.push(before.unwrap_or(rows.len()));
        match before.and_then(|n| rows.get_mut(n)) {
            Some(row) => (row.to, row.times) = (event.at, row.times + 1),
            None => rows.push(row),
        }
    }
    rows
}

fn cells(row: &Row, names: &BTreeMap<NodeId, String>, now: Instant, zone: Tz) -> Vec<String> {
    let event = &row.event;
    let from = clock(row.from, now, zone);
    let day = |at: Instant| at.with_timezone(&zone).date_naive();
    // The date stands there once.
    let to = if day(row.to) == day(row.from) { clock(row.to, row.to, zone) } else { clock(row.to, now, zone) };
    let when = if row.times > 1 { format!("{from} to {to}") } else { from };
    let pool = || event.pool.as_ref().map_or_else(|| "all".to_owned(), |pool| format!("pool {pool}"));
    let name = |id: &NodeId| names.get(id).cloned().unwrap_or_else(|| id.to_string());
    let times = if row.times > 1 { format!(" ({} times)", row.times) } else { String::new() };
    let mark = if event.kind == Kind::Decided { "" } else { "* " };
    vec![
        when,
        event.node.as_ref().map_or_else(pool, name),
        format!("{mark}{}", event.what),
        format!("{}{times}", event.reason),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille::domain::PoolName;

    fn at(minute: i64) -> Instant {
        let nine: Instant = "2026-11-30T09:00:00Z".parse().expect("a time");
        nine + chrono::TimeDelta::minutes(minute)
    }

    fn event(minute: i64, kind: Kind, node: &str, what: &str, reason: &str) -> Event {
        Event {
            at: at(minute),
            kind,
            function: Some("idle-check".to_owned()),
            pool: PoolName::new("voice").ok(),
            node: NodeId::new(node).ok(),
            what: what.to_owned(),
            reason: reason.to_owned(),
            stops_not_before: None,
        }
    }

    fn rows(events: &[Event], each: bool) -> Vec<(i64, i64, usize)> {
        let minutes = |to: Instant| (to - at(0)).num_minutes();
        joined(events, each).iter().map(|row| (minutes(row.from), minutes(row.to), row.times)).collect()
    }

    #[test]
    fn what_stays_the_same_is_one_row_of_each_node() {
        let keep = |minute, node, reason| event(minute, Kind::Decided, node, "keep", reason);
        let events = [
            keep(0, "i-a", "recent_use"),
            keep(0, "i-b", "asleep"),
            keep(5, "i-a", "recent_use"),
            keep(5, "i-b", "asleep"),
            event(6, Kind::Effect, "i-a", "leased", "call-1"),
            event(6, Kind::Effect, "i-a", "leased", "call-1"),
            keep(10, "i-a", "leased"),
            keep(15, "i-a", "recent_use"),
        ];
        let expected = [(0, 5, 2), (0, 5, 2), (6, 6, 1), (6, 6, 1), (10, 10, 1), (15, 15, 1)];
        assert_eq!(rows(&events, false), expected, "an effect is never joined, and another reason ends the row");
        assert_eq!(rows(&events, true).len(), events.len());
    }

    #[test]
    fn two_days_of_one_look_count_once() {
        let within = || event(0, Kind::Decided, "i-a", "nothing", "uptime_within");
        assert_eq!(rows(&[within(), within()], false), [(0, 0, 1)]);
    }

    #[test]
    fn two_days_of_which_one_is_over_are_two_rows() {
        let told = |minute, reason| event(minute, Kind::Decided, "i-a", "tell", reason);
        let day = |minute| [told(minute, "uptime_over"), told(minute, "uptime_within")];
        let events: Vec<Event> = [0, 15, 30].into_iter().flat_map(day).collect();
        assert_eq!(rows(&events, false), [(0, 30, 3), (0, 30, 3)]);
        let parted = [told(0, "uptime_over"), told(15, "uptime_within"), told(30, "uptime_over")];
        assert_eq!(rows(&parted, false), [(0, 0, 1), (15, 15, 1), (30, 30, 1)], "what came back is a row of its own");
    }
}
