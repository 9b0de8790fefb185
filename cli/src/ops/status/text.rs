//! The status as people read it.

use super::{NodeStatus, PoolStatus, Status};
use crate::ops::show::{clock, dollars, hours, paragraph, plain, table};
use chrono_tz::Tz;
use reveille::decide::Reason;
use reveille::domain::{Gate, Instant, Wake};
use serde_json::Value;

pub(super) fn write(status: &Status, zone: Tz) -> String {
    let now = status.at.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S %Z");
    let mut text = format!("{} in {}, {now}\n", status.name, status.region);
    for pool in &status.pools {
        text.push('\n');
        text += &of_pool(pool, status.at, zone);
    }
    for unread in &status.unread {
        text += &paragraph(&format!("Not read: {unread}"));
    }
    text
}

fn of_pool(pool: &PoolStatus, now: Instant, zone: Tz) -> String {
    let mut text = plain(&format!("Pool {}: {}", pool.pool, gate(pool.gate.as_ref(), now, zone))) + "\n";
    if !pool.configured {
        text += &paragraph("REVEILLE_POOLS does not name this pool: nothing will ever stop its nodes.");
    }
    text += &paragraph(&money(pool));
    if pool.nodes.is_empty() {
        text += &paragraph(&format!("No node has the tag reveille:pool={}.", pool.pool));
        return text;
    }
    let rows = pool.nodes.iter().map(|node| row(node, now, zone)).collect();
    text += &table(&["node", "phase", "since", "last use", "stops not before", "today"], rows);
    pool.nodes.iter().for_each(|node| text += &paragraph(&why(node, now, zone)));
    text
}

fn gate(gate: Option<&Gate>, now: Instant, zone: Tz) -> String {
    let Some(gate) = gate else { return "gate open".to_owned() };
    let until =
        gate.until.map_or_else(|| "until a person opens it".to_owned(), |at| format!("until {}", clock(at, now, zone)));
    let drain = if gate.drain { ", nodes are drained" } else { "" };
    format!("gate CLOSED {until}{drain}: {}", gate.reason)
}

fn money(pool: &PoolStatus) -> String {
    let seconds = pool.today_seconds.map_or_else(|| "unknown hours".to_owned(), hours);
    let mut text = format!("Today {seconds}, {}.", dollars(pool.today_usd.as_deref()));
    let Some(month) = &pool.month else { return text };
    let figure = |name: &str| dollars(month[name].as_str());
    let name = month["month"].as_str().unwrap_or("This month");
    text += &format!(" All pools in {name}: {} of {}", figure("own_estimate"), figure("amount"));
    if month["own_forecast"].is_string() {
        text += &format!(", {} at its end if it goes on so", figure("own_forecast"));
    }
    text += &match (pool.aws_month_read, month["aws_actual"].as_str()) {
        (true, Some(actual)) => format!("; AWS shows {}, hours late.", dollars(Some(actual))),
        (true, None) => "; AWS shows nothing yet.".to_owned(),
        (false, _) => ". AWS's own figure was not read.".to_owned(),
    };
    text
}

fn row(node: &NodeStatus, now: Instant, zone: Tz) -> Vec<String> {
    let shown = |at: Option<Instant>| at.map_or_else(|| "-".to_owned(), |at| clock(at, now, zone));
    let last_use = match node.unknown.as_str() {
        Some(why) => format!("unknown: {why}"),
        None => shown(instant(&node.last_use_at)),
    };
    vec![
        node.name.clone().unwrap_or_else(|| node.node.to_string()),
        node.phase.as_str().unwrap_or("unknown").to_owned(),
        shown(node.since),
        last_use,
        shown(node.stops_not_before),
        node.today_seconds.map_or_else(|| "unknown".to_owned(), hours),
    ]
}

fn why(node: &NodeStatus, now: Instant, zone: Tz) -> String {
    let name = node.name.as_deref().unwrap_or(node.node.as_str());
    let reason = node.reason.map_or("unknown", Reason::as_str);
    let mut text = format!("{name}: {reason}. {}", node.rule.unwrap_or("It could not be looked at."));
    if let Some(wake) = &node.woken_by {
        text += &format!(" Woken last {}.", woken(wake, now, zone));
    }
    if let Some(until) = instant(&node.held_until) {
        let note = node.hold_note.as_deref().map_or_else(String::new, |note| format!(": {note}"));
        text += &format!(" Held until {}{note}.", clock(until, now, zone));
    }
    if node.calls > 0 {
        text += &format!(" Calls in progress: {}.", node.calls);
    }
    text
}

fn woken(wake: &Wake, now: Instant, zone: Tz) -> String {
    let by = wake.caller.as_deref().map_or_else(String::new, |caller| format!(" by {caller}"));
    let path = wake.path.as_deref().map_or_else(String::new, |path| format!(" for {path}"));
    format!("at {} ({}{by}{path})", clock(wake.at, now, zone), wake.source.as_str())
}

fn instant(value: &Value) -> Option<Instant> {
    value.as_str()?.parse().ok()
}
