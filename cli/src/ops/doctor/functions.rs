//! Do the functions run, and may they do what they have to?

use super::{Case, Check, Finding};
use crate::ops::FUNCTIONS;
use crate::ops::aws::{self, Part, Rule};
use crate::ops::fault::{Fault, is_refusal, line};
use chrono::{DurationRound as _, TimeDelta};
use reveille::domain::Instant;
use reveille::observation::{Series, SignalKind, Unread};
use reveille::operator::{Ask, Asked, Right};
use reveille::run::{Call, MetricRef, take_activity};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What each schedule is for.
const SCHEDULES: [(&str, &str); 3] = [
    ("idle-check", "nothing is stopped: every node that runs is paid for until somebody stops it by hand"),
    ("uptime-alarm", "nobody is told of a node that is up for too long"),
    ("budget-guard", "no threshold of the budget is told, and the gate never closes"),
];

/// The rule that hands EC2's state changes on.
const STATE_CHANGES: &str = "node-stopped";

/// Rules that are missing, disabled, call nothing, or at another pace than is configured.
pub(super) async fn schedules(case: &Case<'_>) -> Check {
    let mut check = Check::new("schedules");
    let pace = case.config().policy.tick.num_minutes();
    let of_states = (STATE_CHANGES, "a wake that meets a stopping node waits for the next tick");
    for (function, costs) in SCHEDULES.into_iter().chain([of_states]) {
        let name = case.full_name(function);
        let called = if function == STATE_CHANGES { case.full_name("wake") } else { name.clone() };
        let rule = match aws::rule(&case.session.sdk, &name).await {
            Ok(rule) => rule,
            Err(error) => {
                check.missed(error);
                continue;
            }
        };
        check.findings.extend(judge_rule(&name, &called, costs, rule.as_ref()));
        let is_tick = |_: &&Rule| function == "idle-check";
        check.findings.extend(rule.as_ref().filter(is_tick).and_then(|rule| judge_pace(&name, pace, rule)));
    }
    check
}

fn judge_rule(name: &str, called: &str, costs: &str, rule: Option<&Rule>) -> Option<Finding> {
    let Some(rule) = rule else {
        let change = "infra/modules/controller/triggers.tf: terraform apply makes it again";
        return Some(Finding::new(format!("there is no rule {name}"), costs, change));
    };
    if !rule.enabled {
        let change = format!("aws events enable-rule --name {name}");
        return Some(Finding::new(format!("the rule {name} is disabled"), costs, change));
    }
    let calls = rule.targets.iter().any(|arn| arn.ends_with(&format!(":function:{called}")));
    (!calls).then(|| {
        let change = "infra/modules/controller/triggers.tf: terraform apply sets its target again";
        Finding::new(format!("the rule {name} does not call the function {called}"), costs, change)
    })
}

/// The rules reckon with the tick that is configured: with another one the two idle readings come at other times.
fn judge_pace(name: &str, minutes: i64, rule: &Rule) -> Option<Finding> {
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    let expected = format!("rate({minutes} {unit})");
    (rule.schedule != expected).then(|| {
        Finding::new(
            format!("the rule {name} runs at {:?}, and REVEILLE_TICK_MINUTES is {minutes}", rule.schedule),
            "nodes are stopped later than the idle time says, or readings are too close to count",
            format!("the rule's schedule to {expected}, or REVEILLE_TICK_MINUTES (tick_minutes of the module)"),
        )
    })
}

/// The heartbeat is looked for this far back.
const LOOK_BACK: TimeDelta = TimeDelta::hours(3);
/// A beat older than three ticks of five minutes is a beat that stopped: as the alarm has it.
const LATE: TimeDelta = TimeDelta::minutes(15);

/// The idle check's own heartbeat.
pub(super) async fn heartbeat(case: &Case<'_>) -> Check {
    let ticks = MetricRef { namespace: "Reveille".to_owned(), metric: "Ticks".to_owned(), dimensions: BTreeMap::new() };
    let now = case.session.now;
    let from = (now - LOOK_BACK).duration_trunc(TimeDelta::minutes(1)).unwrap_or(now - LOOK_BACK);
    let metrics = BTreeMap::from([(ticks.clone(), SignalKind::Requests)]);
    let call = Call::ReadActivity { metrics, from, to: now };
    let mut looker = crate::ops::look::Looker::new(&case.session.aws);
    let mut activity = match take_activity(looker.answer_all(&[call]).await.into_iter().next()) {
        Ok(activity) => activity,
        Err(error) => return Check::not("heartbeat", error),
    };
    let mut check = Check::new("heartbeat");
    let (newest, complete) = newest(activity.remove(&ticks));
    // A tick that is slower than the alarm's three periods has its own pace.
    let late = LATE.max(case.config().policy.tick * 2);
    if newest.is_some_and(|at| now - at <= late + TimeDelta::minutes(1)) {
        return check;
    }
    if !complete {
        check.not_checked.push("CloudWatch did not tell all points of Reveille Ticks".to_owned());
        return check;
    }
    let zone = case.config().policy.zone;
    let since = newest.map_or_else(
        || format!("in the last {} h", LOOK_BACK.num_hours()),
        |at| format!("since {}", crate::ops::show::clock(at, now, zone)),
    );
    check.findings.push(Finding::new(
        format!("no idle check did all of its job {since}: the metric Reveille Ticks has no point"),
        "nothing is watched: a node that runs is paid for, and a wake that could not be met stays unmet",
        format!("the log /aws/lambda/{} says what failed; then the schedule", case.full_name("idle-check")),
    ));
    check
}

/// The newest point above zero, and whether CloudWatch told all of them.
fn newest(series: Option<Result<Series, Unread>>) -> (Option<Instant>, bool) {
    let Some(Ok(series)) = series else { return (None, false) };
    (series.points.into_iter().filter(|(_, value)| *value > 0.0).map(|(at, _)| at).max(), series.complete)
}

/// What the functions' own roles may do, by EC2's dry runs: the rights that are hardly ever used.
pub(super) async fn rights(case: &Case<'_>) -> Check {
    let by = match case.session.by().await {
        Ok(by) => by,
        Err(fault) => return Check::not("rights", fault),
    };
    let mut check = Check::new("rights");
    for function in ["wake", "idle-check"] {
        let asked = Asked { by: by.clone(), ask: Ask::Rights };
        match case.session.functions.ask(function, &asked, &case.session.region).await {
            Ok(answer) => match read_rights(&answer) {
                Some(rights) => rights.iter().for_each(|right| judge_right(case, function, right, &mut check)),
                None => check.not_checked.push(format!("{} gave no rights", case.full_name(function))),
            },
            Err(fault) => check.not_checked.push(fault.to_string()),
        }
    }
    check
}

/// The wake function answers as it answers over HTTP.
fn read_rights(answer: &Value) -> Option<Vec<Right>> {
    let body = answer["body"].as_str().and_then(|body| serde_json::from_str::<Value>(body).ok());
    let rights = body.as_ref().unwrap_or(answer).get("rights")?.clone();
    serde_json::from_value(rights).ok()
}

fn judge_right(case: &Case<'_>, function: &str, right: &Right, check: &mut Check) {
    let Some(code) = &right.refused else { return };
    let name = case.full_name(function);
    let seen = case.alive().find(|seen| seen.id == right.node);
    let node = seen.map_or_else(|| right.node.to_string(), super::called);
    if !is_refusal(code) {
        check.not_checked.push(format!("{name}: a dry run of {} on {node} answered {}", right.act, line(code)));
        return;
    }
    let costs = match right.act.as_str() {
        "ec2:StopInstances" => {
            let hour = seen.map_or_else(|| "its price every hour".to_owned(), |seen| case.hour(seen));
            format!("the node is never stopped: {hour}")
        }
        "ec2:StartInstances" => "a wake starts nothing: callers wait for nothing".to_owned(),
        _ => "without capacity no other type is tried".to_owned(),
    };
    check.findings.push(Finding::new(
        format!("{name} may not {} on {node} ({code})", right.act),
        costs,
        format!("the role of {name}: allow {} where aws:ResourceTag/reveille:pool is {}", right.act, pool(seen)),
    ));
}

fn pool(seen: Option<&reveille::domain::NodeSeen>) -> String {
    seen.map_or_else(|| "its pool".to_owned(), |seen| seen.pool.to_string())
}

/// Codes by which a service refuses a function its right.
const REFUSALS: &str = "?AccessDenied ?AccessDeniedException ?UnauthorizedOperation ?AuthorizationError";
const MOST_PAGES: usize = 20;

/// Rights that were missing when they were needed: the functions' own logs of the last day.
pub(super) async fn refusals(case: &Case<'_>) -> Check {
    let mut check = Check::new("refusals");
    let now = case.session.now;
    for function in FUNCTIONS {
        let group = format!("/aws/lambda/{}", case.full_name(function));
        let part = Part {
            group: &group,
            pattern: Some(REFUSALS),
            from: now - TimeDelta::days(1),
            to: now,
            most_pages: MOST_PAGES,
        };
        match aws::read_log(&case.session.sdk, part, |_| ()).await {
            Ok(read) => {
                let acts: BTreeSet<String> = read.lines.iter().filter_map(|(_, line)| refused(line)).collect();
                check.findings.extend(acts.into_iter().map(|act| {
                    Finding::new(
                        format!("{} was refused in the last day: {act}", case.full_name(function)),
                        "what it could not do was not done, at each of its runs",
                        format!(
                            "the role of {}: infra/modules/controller/roles.tf has its rights",
                            case.full_name(function)
                        ),
                    )
                }));
                if !read.complete {
                    check.not_checked.push(format!("{group} has more than {MOST_PAGES} pages of refusals"));
                }
            }
            Err(error) => check.not_checked.push(Fault::from(error).to_string()),
        }
    }
    check
}

/// The act and the code, of a line that tells of a refusal.
fn refused(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let code = value["code"].as_str().filter(|code| is_refusal(code))?;
    let message = value["message"].as_str().unwrap_or_default();
    let act = message.split(" failed: ").next().filter(|act| !act.is_empty()).unwrap_or("a call");
    Some(format!("{} ({code})", line(act)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(enabled: bool, schedule: &str, target: &str) -> Rule {
        let targets = vec![format!("arn:aws:lambda:eu-central-1:123456789012:function:{target}")];
        Rule { enabled, schedule: schedule.to_owned(), targets }
    }

    #[test]
    fn a_rule_that_calls_its_function_at_its_pace_is_well() {
        let good = rule(true, "rate(5 minutes)", "reveille-idle-check");
        assert_eq!(judge_rule("reveille-idle-check", "reveille-idle-check", "x", Some(&good)), None);
        assert_eq!(judge_pace("reveille-idle-check", 5, &good), None);
    }

    #[test]
    fn a_rule_that_is_missing_disabled_aimless_or_slow_is_found() {
        let of = |rule: Option<&Rule>| judge_rule("r-idle-check", "r-idle-check", "x", rule).expect("a finding").what;
        assert_eq!(of(None), "there is no rule r-idle-check");
        assert_eq!(of(Some(&rule(false, "", "r-idle-check"))), "the rule r-idle-check is disabled");
        assert!(of(Some(&rule(true, "", "other-r-idle-check"))).contains("does not call"));
        let slow = judge_pace("r-idle-check", 5, &rule(true, "rate(15 minutes)", "x")).expect("a finding");
        assert!(slow.what.contains("rate(15 minutes)") && slow.change.contains("rate(5 minutes)"), "{slow:?}");
    }

    #[test]
    fn a_refusal_is_known_by_its_code_and_not_by_words_in_a_message() {
        let line = r#"{"level":"WARN","code":"AccessDenied","message":"read activity failed: AccessDenied: no"}"#;
        assert_eq!(refused(line).as_deref(), Some("read activity (AccessDenied)"));
        for other in [r#"{"code":"Timeout","message":"AccessDenied"}"#, "AccessDenied", "{}"] {
            assert_eq!(refused(other), None, "{other}");
        }
    }
}
