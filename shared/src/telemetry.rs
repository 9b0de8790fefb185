//! What leaves a function through its log: the `decided` lines, the effects and the few metrics, as JSON.

use crate::domain::Instant;
use crate::run::{Decided, Effect, EffectKind, Outcome};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The metrics' namespace.
const NAMESPACE: &str = "Reveille";

/// One idle check that did all of its job: see [`Outcome::succeeded`].
const HEARTBEAT: &str = "Ticks";

/// The function that has a heartbeat. The others fail visibly whenever they do not do their job, so that AWS's own count of
/// their invocations and errors, which is free, tells the same.
const BEATING: &str = "idle-check";

/// From START to ready, in seconds, of every boot whose end was seen.
const COLD_START: &str = "ColdStartSeconds";

#[derive(Serialize)]
struct DecidedLine<'a> {
    decided: bool,
    function: &'a str,
    at: Instant,
    #[serde(flatten)]
    decision: &'a Decided,
    duration_ms: u64,
}

#[derive(Serialize)]
struct EffectLine<'a> {
    effect: bool,
    function: &'a str,
    at: Instant,
    #[serde(flatten)]
    effect_seen: &'a Effect,
}

/// The lines of one run: one `decided` a node, one an effect, one with the metrics if there is anything to count.
pub fn lines(function: &str, now: Instant, outcome: &Outcome, took: Duration) -> Vec<String> {
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let decided = outcome.decided.iter().map(|decision| {
        serde_json::to_string(&DecidedLine { decided: true, function, at: now, decision, duration_ms })
    });
    let effects = outcome
        .effects
        .iter()
        .map(|effect| serde_json::to_string(&EffectLine { effect: true, function, at: now, effect_seen: effect }));
    let metrics = metrics(function, now, outcome).map(|value| Ok(value.to_string()));
    decided.chain(effects).chain(metrics).filter_map(Result::ok).collect()
}

/// Embedded metric format: counted after the effect, over all pools. Each name is a custom metric and costs money (about
/// $0.30 a month), so there are six. The heartbeat is sent by every tick that did its job; the others only when something
/// happened.
fn metrics(function: &str, now: Instant, outcome: &Outcome) -> Option<Value> {
    let beats = function == BEATING && outcome.succeeded();
    let mut counts: BTreeMap<&str, u64> = beats.then_some((HEARTBEAT, 1)).into_iter().collect();
    for effect in &outcome.effects {
        if let Some(name) = metric_name(effect.event) {
            *counts.entry(name).or_default() += 1;
        }
    }
    let cold: Vec<i64> = outcome.cold_starts.iter().map(|start| start.seconds).collect();
    if counts.is_empty() && cold.is_empty() {
        return None;
    }
    let mut names: Vec<Value> = counts.keys().map(|name| json!({"Name": name, "Unit": "Count"})).collect();
    if !cold.is_empty() {
        names.push(json!({"Name": COLD_START, "Unit": "Seconds"}));
    }
    let mut line = Map::new();
    line.insert(
        "_aws".to_owned(),
        json!({"Timestamp": now.timestamp_millis(),
               "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [[]], "Metrics": names}]}),
    );
    line.extend(counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))));
    if !cold.is_empty() {
        line.insert(COLD_START.to_owned(), json!(cold));
    }
    Some(Value::Object(line))
}

fn metric_name(event: EffectKind) -> Option<&'static str> {
    match event {
        EffectKind::Start => Some("Starts"),
        EffectKind::Stop => Some("Stops"),
        EffectKind::StartFailed => Some("StartFailures"),
        EffectKind::StopFailed => Some("StopFailures"),
        EffectKind::Demand
        | EffectKind::Ready
        | EffectKind::Unready
        | EffectKind::Leased
        | EffectKind::LeaseEnded
        | EffectKind::IdleMark
        | EffectKind::Alert
        | EffectKind::Resized
        | EffectKind::Launched
        | EffectKind::Ended
        | EffectKind::GateClosed
        | EffectKind::GateOpened
        | EffectKind::Held
        | EffectKind::Released
        | EffectKind::BudgetRepaired
        | EffectKind::SeesAgain => None,
    }
}

/// Starts logging: JSON lines to standard output, `info` and above.
pub fn start_logging() {
    // A second call, as in a test, keeps the first logger.
    let _ = tracing_subscriber::fmt().json().flatten_event(true).with_current_span(false).with_target(false).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Reason;
    use crate::domain::{NodeId, PoolName};
    use crate::error::CallError;
    use crate::run::ColdStart;
    use std::collections::BTreeSet;

    fn outcome(events: &[EffectKind]) -> Outcome {
        let pool = PoolName::new("voice").unwrap();
        let effect =
            |event: &EffectKind| Effect { event: *event, pool: Some(pool.clone()), node: None, reason: String::new() };
        let decided = Decided {
            pool: pool.clone(),
            node: NodeId::new("i-a").ok(),
            action: "keep".to_owned(),
            reason: Reason::RecentUse,
            inputs: json!({}),
            stops_not_before: None,
            generation: 7,
        };
        Outcome { decided: vec![decided], effects: events.iter().map(effect).collect(), ..Outcome::default() }
    }

    fn logged(events: &[EffectKind]) -> Vec<Value> {
        logged_by("idle-check", &outcome(events))
    }

    fn logged_by(function: &str, outcome: &Outcome) -> Vec<Value> {
        let now = "2026-11-30T10:00:00Z".parse().unwrap();
        let lines = lines(function, now, outcome, Duration::from_millis(12));
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What is counted, by its name.
    fn counted(lines: &[Value]) -> Vec<(String, Value)> {
        let Some(line) = lines.iter().find(|line| line.get("_aws").is_some()) else { return Vec::new() };
        let names = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap().iter();
        names
            .map(|named| named["Name"].as_str().unwrap().to_owned())
            .map(|name| (name.clone(), line[&name].clone()))
            .collect()
    }

    #[test]
    fn a_decided_line_has_the_fields_that_later_tools_read() {
        let line = logged(&[]).remove(0);
        let fields: BTreeSet<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        for name in ["pool", "node", "action", "reason", "inputs", "stops_not_before", "generation", "duration_ms"] {
            assert!(fields.contains(name), "{name}: {line}");
        }
        assert_eq!((&line["reason"], &line["duration_ms"]), (&json!("recent_use"), &json!(12)));
    }

    #[test]
    fn a_boot_that_ended_is_a_metric_of_seconds() {
        let (pool, node) = (PoolName::new("voice").unwrap(), NodeId::new("i-a").unwrap());
        let mut outcome = outcome(&[EffectKind::Ready]);
        outcome.cold_starts.push(ColdStart { pool, node, seconds: 44 });
        let lines = lines("wake", "2026-11-30T10:00:00Z".parse().unwrap(), &outcome, Duration::ZERO);
        let metrics: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        assert_eq!(metrics["ColdStartSeconds"], json!([44]));
        assert_eq!(metrics["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Unit"], "Seconds");
    }

    #[test]
    fn a_tick_that_did_its_job_is_a_heartbeat_whatever_happened_in_it() {
        assert_eq!(counted(&logged(&[])), [("Ticks".to_owned(), json!(1))]);
        assert_eq!(counted(&logged(&[EffectKind::StopFailed])).len(), 2, "one node's failure is told as its own");
    }

    #[test]
    fn a_tick_that_saw_nothing_or_could_not_write_or_tell_is_no_heartbeat() {
        let error = || Some(CallError::timed_out("publish"));
        for failed in [Outcome { blind: error(), ..outcome(&[]) }, Outcome { unrecorded: error(), ..outcome(&[]) }] {
            assert_eq!(counted(&logged_by("idle-check", &failed)), [], "{failed:?}");
        }
    }

    #[test]
    fn a_wake_in_which_nothing_happened_sends_no_metric() {
        assert_eq!(counted(&logged_by("wake", &outcome(&[EffectKind::Demand]))), []);
    }

    #[test]
    fn effects_are_counted_in_the_embedded_metric_format() {
        let lines = logged_by("wake", &outcome(&[EffectKind::Stop, EffectKind::Stop, EffectKind::StartFailed]));
        let expected = [("StartFailures".to_owned(), json!(1)), ("Stops".to_owned(), json!(2))];
        assert_eq!(counted(&lines), expected, "only what happened is named");
    }
}
