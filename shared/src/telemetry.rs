//! What leaves a function through its log: the `decided` lines, the effects and the few metrics, as JSON.

use crate::domain::Instant;
use crate::run::{Decided, Effect, EffectKind, Outcome};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The metrics' namespace.
const NAMESPACE: &str = "Reveille";

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

/// The lines of one run: one `decided` a node, one an effect, one with the metrics if anything happened that is counted.
pub fn lines(function: &str, now: Instant, outcome: &Outcome, took: Duration) -> Vec<String> {
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let decided = outcome.decided.iter().map(|decision| {
        serde_json::to_string(&DecidedLine { decided: true, function, at: now, decision, duration_ms })
    });
    let effects = outcome
        .effects
        .iter()
        .map(|effect| serde_json::to_string(&EffectLine { effect: true, function, at: now, effect_seen: effect }));
    let metrics = metrics(now, outcome).map(|value| Ok(value.to_string()));
    decided.chain(effects).chain(metrics).filter_map(Result::ok).collect()
}

/// Embedded metric format: counted after the effect, by pool. Each name is a custom metric and costs money, so there are
/// four, and nothing is sent for a run in which nothing happened.
fn metrics(now: Instant, outcome: &Outcome) -> Option<Value> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for effect in &outcome.effects {
        if let Some(name) = metric_name(effect.event) {
            *counts.entry(name).or_default() += 1;
        }
    }
    if counts.is_empty() {
        return None;
    }
    let names: Vec<Value> = counts.keys().map(|name| json!({"Name": name, "Unit": "Count"})).collect();
    let mut line = Map::new();
    line.insert(
        "_aws".to_owned(),
        json!({"Timestamp": now.timestamp_millis(),
               "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [[]], "Metrics": names}]}),
    );
    line.extend(counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))));
    Some(Value::Object(line))
}

fn metric_name(event: EffectKind) -> Option<&'static str> {
    match event {
        EffectKind::Start => Some("Starts"),
        EffectKind::Stop => Some("Stops"),
        EffectKind::StartFailed => Some("StartFailures"),
        EffectKind::StopFailed => Some("StopFailures"),
        EffectKind::Demand | EffectKind::Ready | EffectKind::IdleMark | EffectKind::Alert | EffectKind::Refused => None,
    }
}

/// Starts logging: JSON lines to standard output, `info` and above.
pub fn start_logging() {
    // A second call, as in a test, keeps the first logger.
    let _ = tracing_subscriber::fmt().json().flatten_event(true).with_current_span(false).with_target(false).try_init();
}
