//! What holds after any of the days: deliveries, alarms, the dashboard, settings.

use super::alarms;
use super::day::Day;
use super::services::rate;
use crate::stage::StageResult;
use chrono::{DateTime, TimeDelta, Utc};
use reveille::config::Config;
use serde_json::Value;
use std::collections::BTreeSet;

/// Alarms that trouble has to raise, by the end of their names; all others have to be silent.
const RAISED_BY_TROUBLE: [&str; 5] =
    ["no-tick", "errors-wake", "errors-idle-check", "errors-uptime-alarm", "failed-events"];

pub(super) async fn checks(day: &mut Day) -> StageResult<()> {
    println!("\nAfter the day:");
    deliveries(day)?;
    settings(day);
    alarms_stood(day).await?;
    dashboards(day);
    rights(day).await;
    Ok(())
}

fn deliveries(day: &mut Day) -> StageResult<()> {
    let refused = day.services.refused.clone();
    day.check("whatever was made to invoke a function may do so", refused.is_empty(), refused.join("; "));
    let elapsed = day.now() - day.from;
    for rule in day.services.wiring.rules.clone().iter().filter(|rule| rule.enabled) {
        let Some(expression) = &rule.schedule else { continue };
        let runs = day.services.ran.iter().filter(|ran| ran.by == rule.name).count();
        let wanted = elapsed.num_seconds() / rate(expression)?.num_seconds();
        // The last of the day is due some seconds after its end.
        let ok = i64::try_from(runs)? == wanted - 1;
        day.check(&format!("{} runs by {expression}", rule.name), ok, format!("{runs} runs"));
    }
    let stopped = day.moved.iter().filter(|moved| moved.state == "stopped").count();
    let events: Vec<&str> =
        day.services.wiring.rules.iter().filter(|rule| rule.pattern.is_some()).map(|rule| rule.name.as_str()).collect();
    let told = day.services.ran.iter().filter(|ran| events.contains(&ran.by.as_str())).count();
    day.check(
        "each stop of a node, and no other state, runs the wake function",
        told == stopped && stopped > 0,
        format!("{told} runs, {stopped} stops"),
    );
    let failed: Vec<String> = day
        .services
        .ran
        .iter()
        .filter(|ran| ran.error.is_some() && !is_in_trouble(day, ran.at))
        .map(|ran| format!("{} at {}: {}", ran.function, ran.at, ran.error.as_deref().unwrap_or_default()))
        .collect();
    let beats = day.lost_beats.iter().filter(|(at, _)| !is_in_trouble(day, *at));
    let failed: Vec<String> = failed.into_iter().chain(beats.map(|(at, fault)| format!("{at}: {fault}"))).collect();
    let runs = day.services.ran.len();
    day.check(
        "no run and no beat failed but where trouble was made",
        failed.is_empty(),
        if failed.is_empty() { format!("{runs} runs") } else { failed.join("; ") },
    );
    Ok(())
}

/// Also while what trouble broke is tried again.
fn is_in_trouble(day: &Day, at: DateTime<Utc>) -> bool {
    day.trouble.iter().any(|(from, to)| *from <= at && at <= *to + TimeDelta::minutes(5))
}

fn settings(day: &mut Day) {
    for made in day.services.wiring.functions.clone() {
        let read = Config::from_vars(&made.environment);
        let ok = read.is_ok() && made.runtime == "provided.al2023";
        day.check(
            &format!("{} reads its settings", made.name),
            ok,
            read.err().map_or(made.runtime, |fault| fault.to_string()),
        );
    }
}

async fn alarms_stood(day: &mut Day) -> StageResult<()> {
    let cloudwatch = aws_sdk_cloudwatch::Client::new(&day.services.sdk);
    let topics: Vec<String> = day.services.wiring.topics.iter().map(|topic| topic.arn.clone()).collect();
    for alarm in day.services.wiring.alarms.clone() {
        let spans = alarms::spans(&cloudwatch, &alarm, day.from, day.now()).await?;
        let near = |(from, to): &alarms::Span| {
            day.trouble.iter().any(|(begin, end)| *from >= *begin && *to <= *end + TimeDelta::minutes(30))
        };
        let is_raised = !spans.is_empty();
        let wanted = if alarm.namespace == "AWS/EC2" {
            day.up() > TimeDelta::hours(20)
        } else {
            !day.trouble.is_empty() && RAISED_BY_TROUBLE.iter().any(|name| alarm.name.ends_with(name))
        };
        let in_place = alarm.namespace == "AWS/EC2" || alarm.namespace == "AWS/SQS" || spans.iter().all(near);
        let told = alarm.actions.iter().all(|action| topics.contains(action)) && !alarm.actions.is_empty();
        let detail = format!("{}, {} time(s) in ALARM", if wanted { "raised" } else { "silent" }, spans.len());
        day.check(&format!("alarm {}", alarm.name), is_raised == wanted && in_place && told, detail);
    }
    for service in ["cloudwatch.amazonaws.com", "budgets.amazonaws.com"] {
        let may = day.services.may_publish(service)?;
        day.check(
            &format!("case 39: {service} may publish to the topic"),
            may,
            if may { "for this account" } else { "it may not" },
        );
    }
    Ok(())
}

/// Every field that a widget's query asks for is in a line that its functions wrote that day, and every alarm is there.
fn dashboards(day: &mut Day) {
    let names: BTreeSet<String> = day.services.wiring.alarms.iter().map(|alarm| alarm.name.clone()).collect();
    for body in day.services.wiring.dashboards.clone() {
        for widget in body["widgets"].as_array().into_iter().flatten() {
            let title = widget["properties"]["title"].as_str().unwrap_or("untitled");
            if let Some(query) = widget["properties"]["query"].as_str() {
                let missing: Vec<&str> =
                    fields(query).into_iter().filter(|field| !is_said(day, query, field)).collect();
                day.check(
                    &format!("dashboard: {title}"),
                    missing.is_empty(),
                    if missing.is_empty() {
                        "its fields were written".to_owned()
                    } else {
                        format!("nobody writes {}", missing.join(", "))
                    },
                );
            }
            let alarms = widget["properties"]["alarms"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let unknown: Vec<&str> =
                alarms.filter(|arn| !arn.rsplit(':').next().is_some_and(|name| names.contains(name))).collect();
            if widget["type"] == "alarm" {
                day.check(&format!("dashboard: {title}"), unknown.is_empty(), unknown.join(", "));
            }
        }
    }
}

/// What stands in the brackets of a query's functions: `latest(inputs.state)`.
fn fields(query: &str) -> Vec<&str> {
    let inside = ["ispresent(", "latest(", "max(", "min("]
        .into_iter()
        .flat_map(|name| query.match_indices(name).map(move |(at, _)| at + name.len()));
    inside.filter_map(|at| query[at..].split(')').next()).collect()
}

fn is_said(day: &Day, query: &str, field: &str) -> bool {
    let pointer = format!("/{}", field.replace('.', "/"));
    day.services.said.iter().any(|said| {
        query.contains(&format!("'/aws/lambda/{}'", said.function))
            && said.line.pointer(&pointer).is_some_and(|value| !value.is_null())
    })
}

async fn rights(day: &mut Day) {
    let refused = day.services.aws.iam_used().await["refused"].as_array().cloned().unwrap_or_default();
    let text: Vec<String> =
        refused.iter().map(|call| format!("{} {} {}", call["role"], call["iam_action"], call["resource"])).collect();
    day.check("every call of every function is permitted by its own role", refused.is_empty(), text.join("; "));
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn the_fields_of_a_query_are_what_its_functions_take() {
        let query =
            "SOURCE '/aws/lambda/x' | filter ispresent(generation) | stats latest(inputs.state) as state by pool";
        assert_eq!(fields(query), ["generation", "inputs.state"]);
    }
}
