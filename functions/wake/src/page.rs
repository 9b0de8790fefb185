//! The waiting page: what `GET /status` and `POST /wake` answer to a browser. No script, nothing from elsewhere; it asks again by
//! itself, and goes to the target once a node is ready.

use crate::http::{Face, face};
use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use reveille::domain::Phase;
use reveille::run::{Outcome, PoolAnswer};
use serde_json::{Value, json};

/// What is not expected to change soon is looked at so often, in seconds.
const SELDOM: i64 = 60;

/// The page's only style, within it.
const STYLE: &str = include_str!("page.css");

/// What a state says to people.
struct Words {
    title: &'static str,
    /// A sentence or two.
    text: String,
}

/// The page in place of the answer to a run, where the run has one that is about a node or its absence. The page asks again with the
/// same query.
pub(crate) fn page(outcome: &Outcome, query: &str, target: Option<&str>) -> Option<Value> {
    if outcome.not_found.is_some() || outcome.too_many || outcome.lease.is_some() {
        return None;
    }
    let answer = outcome.answers.first().filter(|_| outcome.blind.is_none());
    let face = answer.map_or(Face { status: 503, state: "unknown", retry: Some(10) }, face);
    let target = target.filter(|_| face.state == "ready");
    let body = document(&face, answer, query, target).into_string();
    let mut headers = json!({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "vary": "accept",
    });
    if let Some(seconds) = face.retry {
        headers["retry-after"] = json!(seconds.to_string());
    }
    Some(json!({ "statusCode": face.status, "headers": headers, "body": body, "isBase64Encoded": false }))
}

fn document(face: &Face, answer: Option<&PoolAnswer>, query: &str, target: Option<&str>) -> Markup {
    let words = words(face.state, answer);
    let with_query = |path: &str| if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    // Relative, so that the page works wherever a proxy has put it; after a wake the look is what asks again.
    let again = target.map_or_else(
        || format!("{}; url={}", face.retry.unwrap_or(SELDOM), with_query("status")),
        |target| format!("0; url={target}"),
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                @if face.state != "ready" || target.is_some() { meta http-equiv="refresh" content=(again); }
                title { (words.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main data-state=(face.state) {
                    h1 { (words.title) }
                    p { (words.text) }
                    @if let Some((passed, whole)) = answer.and_then(progress) {
                        progress max=(whole) value=(passed) aria-label="Start of the node" { (passed) " of " (whole) " seconds" }
                    }
                    @if let Some(target) = target { p { a href=(target) { "Go on" } } }
                    @if face.state == "asleep" { form method="post" action=(with_query("wake")) { button type="submit" { "Wake it" } } }
                    @if face.state != "ready" { p.small { (asks_again(face.retry)) } }
                    @if let Some(of) = answer.and_then(of_which) { p.small { (of) } }
                }
            }
        }
    }
}

/// Which node it is, and how far: what somebody who asks for help is asked.
fn of_which(answer: &PoolAnswer) -> Option<String> {
    let (node, phase) = (answer.node.as_ref()?, answer.phase?);
    let phase = match phase {
        Phase::Stopped => "stopped",
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Draining => "taking no new calls",
        Phase::Stopping => "stopping",
        Phase::Gone => "gone",
    };
    Some(format!("Node {node} of {}: {phase}.", answer.pool))
}

fn asks_again(retry: Option<i64>) -> String {
    match retry.unwrap_or(SELDOM) {
        seconds @ ..120 => format!("This page looks again every {seconds} seconds."),
        seconds => format!("This page looks again in about {} minutes.", seconds / 60),
    }
}

/// Seconds that have passed of those that the last boots took.
fn progress(answer: &PoolAnswer) -> Option<(i64, i64)> {
    let (left, whole) = (answer.ready_in_seconds?, answer.boot_seconds?);
    (left > 0 && whole > 0).then(|| ((whole - left).clamp(0, whole), whole))
}

fn words(state: &str, answer: Option<&PoolAnswer>) -> Words {
    let left = answer.and_then(|answer| answer.ready_in_seconds).map(|left| format!(" About {left} seconds are left."));
    let left = left.unwrap_or_default();
    let code = answer.and_then(|answer| answer.fault_code.as_deref()).unwrap_or("no reason was given");
    let (title, text) = match state {
        "ready" => ("The node is ready", "You can go on.".to_owned()),
        "starting" => ("The node is starting", format!("It was asleep and is being started.{left}")),
        "stopping_will_start" => (
            "The node is going down first",
            format!("It was on its way to sleep, and is started again as soon as it is down.{left}"),
        ),
        "will_start" => ("The node will be started", "It is wanted, and is started within minutes.".to_owned()),
        "full" => ("All places are taken", format!("Every ready node has as many calls as it takes.{left}")),
        "no_capacity" => (
            "No machine is free",
            format!("AWS has no machine of this kind{}. It is tried again by itself.", since(answer)),
        ),
        "fault" => (
            "The node cannot be started",
            format!("AWS has refused it{}: {code}. A person has been told, and it is tried again.", since(answer)),
        ),
        "asleep" => ("The node is asleep", "Nobody has asked for it. Starting it takes about a minute.".to_owned()),
        "no_node" => ("There is no node", "None is set up here. A person has been told.".to_owned()),
        "gate_closed" => ("The node is not started now", gate(answer)),
        _ => ("The node cannot be seen", "AWS could not be asked just now. Nothing was changed.".to_owned()),
    };
    Words { title, text }
}

fn since(answer: Option<&PoolAnswer>) -> String {
    answer.and_then(|answer| answer.fault_since).map_or_else(String::new, |at| format!(" since {}", clock(at)))
}

fn gate(answer: Option<&PoolAnswer>) -> String {
    let why = answer.and_then(|answer| answer.gate_reason.as_deref()).unwrap_or("the gate is closed");
    let until = answer.and_then(|answer| answer.gate_until);
    until.map_or_else(|| format!("Why: {why}."), |until| format!("Why: {why}. It opens by itself at {}.", clock(until)))
}

fn clock(at: DateTime<Utc>) -> String {
    at.format("%H:%M UTC on %-d %B").to_string()
}

/// Whether the caller would rather have a page: it names `text/html`, and weighs it above JSON (RFC 9110, section 12.5.1).
/// Whoever takes anything gets JSON.
pub(crate) fn prefers_page(accept: Option<&str>) -> bool {
    let weight = |kind: &str| {
        let ranges = accept.unwrap_or_default().split(',').map(|range| range.split(';').map(str::trim));
        ranges
            .filter_map(|mut parts| {
                let is_kind = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(kind));
                let q = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse::<f32>().ok());
                q.filter(|_| is_kind)
            })
            .fold(0.0, f32::max)
    };
    weight("text/html") > weight("application/json")
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
