//! The day of `examples/voice-node`.

use super::day::{Day, Signal};
use super::node::Node;
use super::services::Services;
use crate::demo::trace;
use crate::stage::{StageResult, root};
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::path::Path;

/// The example's types, the one that the node was made with first.
const TYPES: [&str; 2] = ["g6.xlarge", "g5.xlarge"];

/// Plays it.
pub(super) async fn play(services: Services, out: &Path) -> StageResult<Day> {
    let endpoint = services.aws.endpoint().to_owned();
    let began = services.aws.now().await;
    let mut nodes = Vec::new();
    for made in &services.wiring.nodes {
        nodes.push(Node::new(made, &services.wiring, &endpoint, out, Some(began)).await?);
    }
    let group = services.wiring.subscriptions.first().ok_or("no log group wakes the pool")?.group.clone();
    let noise = trace::noise(&root())?;
    let mut day = Day::begin(services, Signal::Beats(nodes)).await?;
    first_night(&mut day, &group, &noise).await?;
    calls(&mut day, &group).await?;
    trouble(&mut day, &group).await?;
    long_call(&mut day).await?;
    Ok(day)
}

async fn first_night(day: &mut Day, group: &str, noise: &[String]) -> StageResult<()> {
    day.tell("the node was just made, and nobody wants it");
    day.until(day.at(1, 0)).await?;
    let began = day.from;
    day.check_sleep("a node that was made and not used goes to sleep", began);
    day.tell("strangers, crawlers and probes all night");
    for (n, lines) in (0..).zip(noise.chunks(40)) {
        day.until(day.at(1, 10 + 15 * n)).await?;
        let mut lines = lines.to_vec();
        lines.extend(trace::probe_lines(day.now()));
        day.log(group, &lines).await?;
        if n == 7 {
            break;
        }
    }
    let batches = day.services.ran.iter().filter(|ran| ran.by == group).count();
    let started = day.first("running", day.from);
    day.check(
        "lines of strangers reach the function and wake nothing",
        batches == 8 && started.is_none(),
        format!("{batches} batches"),
    );
    let head = format!(
        "203.0.113.8 - - [{}] \"HEAD /v1/calls HTTP/1.1\" 200 0 \"-\" \"app\"",
        day.now().format("%d/%b/%Y:%H:%M:%S +0000")
    );
    day.log(group, &[head]).await?;
    let after = day.services.ran.iter().filter(|ran| ran.by == group).count();
    day.check(
        "a line that the subscription's pattern does not take costs no run",
        after == batches,
        format!("{after} batches"),
    );
    Ok(())
}

async fn calls(day: &mut Day, group: &str) -> StageResult<()> {
    day.until(day.at(4, 0)).await?;
    let stranger = format!("arn:aws:iam::{}:role/stranger", day.services.wiring.account);
    let refused = day.ask_as(&stranger, "POST", "/wake", &Value::Null).await?.is_none();
    day.check(
        "a role that url_callers does not name is not let in",
        refused,
        if refused { "403 by Lambda's front" } else { "let in" },
    );
    day.tell("somebody opens the app and calls");
    let call = day.call("morning", TimeDelta::minutes(10), true).await?;
    let waited = (call.connected - call.asked).num_seconds();
    day.check("a call at the URL wakes the node", waited <= 180, format!("connected after {waited} s"));
    day.until(call.ended + TimeDelta::minutes(45)).await?;
    day.check_kept("the call is not cut", call.asked, call.ended);
    day.check_sleep("the node sleeps after the call", call.ended);

    day.until(day.at(6, 0)).await?;
    day.tell("a request at the front, whose log wakes the node");
    let line = trace::call_line(day.now(), 503);
    day.log(group, &[line]).await?;
    let asked = day.now();
    day.until(asked + TimeDelta::minutes(1)).await?;
    let started = day.first("running", asked).map(|at| (at - asked).num_seconds());
    day.check("a line in the front's log wakes the node", started.is_some(), format!("running after {started:?} s"));
    day.until(asked + TimeDelta::minutes(60)).await?;
    day.check_sleep("and it sleeps again", asked);
    Ok(())
}

async fn trouble(day: &mut Day, group: &str) -> StageResult<()> {
    day.until(day.at(8, 0)).await?;
    day.tell("EC2 has no machine of the first type");
    day.services.aws.config(json!({"no_capacity_types": [TYPES[0]]})).await;
    let asked = day.now();
    let call = day.call("other-type", TimeDelta::minutes(5), true).await?;
    day.services.aws.config(json!({"no_capacity_types": []})).await;
    let resized = day.services.said.iter().any(|said| said.line["event"] == "resized");
    day.check(
        "without capacity the next type is taken",
        resized && call.connected > asked,
        format!("ready after {} s", (call.connected - asked).num_seconds()),
    );
    day.tell("a person holds the node by its tag until 9:30");
    let held_until = day.at(9, 30);
    day.hold(held_until).await?;
    day.until(day.at(10, 30)).await?;
    day.check_kept("a held node is kept", call.ended, held_until);
    let stopped = day.first("stopped", held_until);
    let ok = stopped.is_some_and(|at| at < held_until + TimeDelta::minutes(15));
    day.check("and stopped when the hold has ended", ok, format!("{stopped:?}"));

    day.tell("EC2 has no machine of any type for seven minutes");
    day.services.aws.config(json!({"no_capacity_types": TYPES})).await;
    let (status, answer) = day.ask("POST", "/wake", &Value::Null).await?;
    let asked = day.now();
    day.until(asked + TimeDelta::minutes(7)).await?;
    day.services.aws.config(json!({"no_capacity_types": []})).await;
    day.until(asked + TimeDelta::minutes(20)).await?;
    let running = day.first("running", asked).map(|at| (at - asked).num_minutes());
    let ok = status == 503 && answer["state"] == "no_capacity" && running.is_some();
    day.check(
        "a wake without capacity is met by a later tick",
        ok,
        format!("{status}, running after {running:?} minutes"),
    );

    day.tell("the ledger fails for ten minutes, and a request comes");
    let from = day.at(11, 1);
    day.until(from).await?;
    day.services
        .aws
        .faults(json!([{"service": "dynamodb", "code": "InternalServerError", "status": 500, "times": -1}]))
        .await;
    let line = trace::call_line(day.now(), 503);
    day.log(group, &[line]).await?;
    day.until(from + TimeDelta::minutes(10)).await?;
    day.services.aws.clear_faults().await;
    day.trouble.push((from, day.now()));
    let attempts = day.services.ran.iter().filter(|ran| ran.by == group && ran.at >= from).count();
    let letters = day.services.dead_letters;
    day.check(
        "an event that fails is tried three times and kept in the queue",
        attempts == 3 && letters == 1,
        format!("{attempts} attempts, {letters} kept"),
    );

    day.tell("EC2 cannot be seen for half an hour");
    let from = day.at(13, 1);
    day.until(from).await?;
    day.services.aws.faults(json!([{"service": "ec2", "action": "DescribeInstances", "code": "InternalError", "status": 500, "times": -1}])).await;
    day.until(from + TimeDelta::minutes(30)).await?;
    day.services.aws.clear_faults().await;
    day.trouble.push((from, day.now()));

    day.until(day.at(15, 0)).await?;
    day.tell("somebody deletes the budget in the console");
    let budgets = aws_sdk_budgets::Client::new(&day.services.sdk);
    budgets.delete_budget().account_id(&day.services.wiring.account).budget_name("reveille").send().await?;
    day.until(day.at(16, 10)).await?;
    let made = day.services.aws.budgets().await.len();
    day.check("the guard makes a budget again that somebody deleted", made == 1, format!("{made} budget"));
    Ok(())
}

async fn long_call(day: &mut Day) -> StageResult<()> {
    day.until(day.at(17, 0)).await?;
    day.tell("a call of three idle times without a single request");
    // The agent looks twice, a real second apart, at whatever is open: each minute of a call costs a second here.
    let call = day.call("long", TimeDelta::minutes(95), true).await?;
    day.check_kept("a long call is not cut", call.asked, call.ended);
    day.until(call.ended + TimeDelta::minutes(45)).await?;
    day.check_sleep("and the node sleeps after it", call.ended);
    Ok(())
}
