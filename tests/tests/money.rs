//! The built uptime alarm and budget guard on the local AWS, with the files of `events/uptime-alarm` and
//! `events/budget-guard`, and what the gate does to the wake function.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use chrono::{DateTime, TimeDelta, Utc};
use reveille::domain::NodeId;
use reveille_tests::local_aws::Published;
use reveille_tests::runtime_api::Invocation;
use reveille_tests::stage::{Stage, root, voice_pools};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Whose budgets the local AWS keeps.
const ACCOUNT: &str = "123456789012";

fn at(clock: &str) -> DateTime<Utc> {
    format!("2026-11-{clock}:00Z").parse().unwrap()
}

/// A stage from this instant on, with these variables.
async fn stage_from(now: DateTime<Utc>, more: &[(&str, &str)]) -> Stage {
    Stage::open_with(now, &voice_pools(), more).await.unwrap()
}

fn event(function: &str, case: &str) -> Value {
    let path = root().join(format!("events/{function}/{case}.json"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

fn decided(run: &Invocation) -> Vec<Value> {
    let lines = run.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["decided"] == json!(true)).collect()
}

fn of_kind(told: &[Published], kind: &str) -> Vec<Published> {
    told.iter().filter(|message| message.attributes["kind"] == kind).cloned().collect()
}

async fn told(stage: &Stage, kind: &str) -> Vec<Published> {
    of_kind(&stage.aws.published().await, kind)
}

/// Lets the clock go on to this instant with a look at the uptime every 15 minutes and one at the budget every hour.
async fn watch_until(stage: &Stage, to: DateTime<Utc>) {
    loop {
        let now = stage.aws.now().await;
        let next = now - TimeDelta::seconds(now.timestamp() % 900) + TimeDelta::minutes(15);
        if next > to {
            break;
        }
        stage.aws.set_clock(next).await;
        let run = stage.look_at_uptime().await;
        assert!(run.result.is_ok(), "{run:?}");
        if next.timestamp() % 3600 == 0 {
            let run = stage.look_at_budget().await;
            assert!(run.result.is_ok(), "{run:?}");
        }
    }
}

async fn stop_by_hand(stage: &Stage, node: &NodeId) {
    aws_sdk_ec2::Client::new(&stage.sdk).stop_instances().instance_ids(node.as_str()).send().await.unwrap();
}

#[tokio::test]
async fn every_event_file_has_its_answer() {
    let stage = stage_from(at("30T09:56"), &[]).await;
    stage.add_node("gpu-1", "voice", true).await.unwrap();
    for (function, cases) in [
        ("uptime-alarm", &["tick", "empty", "null"][..]),
        ("budget-guard", &["tick", "empty", "null", "late_notice"][..]),
    ] {
        let files = std::fs::read_dir(root().join("events").join(function)).unwrap();
        let there: BTreeSet<String> =
            files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(there, cases.iter().map(|case| (*case).to_owned()).collect(), "each file of events/{function}");
        for case in cases {
            let event = event(function, case);
            let run = match function {
                "uptime-alarm" => stage.uptime.invoke(&event).await,
                _ => stage.budget.invoke(&event).await,
            };
            assert!(run.result.is_ok(), "{function} {case}: {run:?}");
            assert!(!decided(&run).is_empty(), "{function} {case}: {run:?}");
        }
    }
    assert_eq!(stage.aws.published().await, [], "nothing is wrong, so nobody is told");
}

#[tokio::test]
async fn case_37_a_restart_does_not_hide_the_hours_of_the_day() {
    let stage = stage_from(at("28T23:56"), &[]).await;
    let node = stage.add_node("gpu-1", "voice", true).await.unwrap();
    watch_until(&stage, at("29T11:50")).await;
    stage.aws.set_clock(at("29T11:50")).await;
    stop_by_hand(&stage, &node).await;
    stage.aws.set_clock(at("29T11:55")).await;
    stage.start_by_hand(&node).await.unwrap();
    watch_until(&stage, at("29T20:05")).await;
    assert_eq!(told(&stage, "uptime").await, [], "less than 20 hours so far, with five minutes off");
    watch_until(&stage, at("30T00:05")).await;
    let alerts = told(&stage, "uptime").await;
    assert_eq!(alerts.len(), 1, "once, and not again after midnight: {alerts:?}");
    let first = &alerts[0];
    assert!(first.at_ms <= at("29T20:35").timestamp_millis(), "at the first look after the crossing");
    assert_eq!(first.subject.as_deref(), Some("Reveille: up for more than 20 h on 2026-11-29: gpu-1 (voice)"));
    for part in ["What:", "gpu-1", "g6.xlarge", "Since: 2026-11-29 11:55 UTC", "USD 0.8048 an hour", "Done:", "To do:"]
    {
        assert!(first.message.contains(part), "{part}: {}", first.message);
    }
    assert_eq!(first.attributes["usd_per_hour"], "0.8048");
}

#[tokio::test]
async fn the_uptime_of_a_node_is_told_from_its_status_checks_when_the_ledger_knows_nothing() {
    let stage = stage_from(at("28T23:56"), &[]).await;
    stage.add_node("gpu-1", "voice", true).await.unwrap();
    // The node was restarted at noon, and nobody looked before.
    let node = stage.add_node("gpu-2", "voice", true).await.unwrap();
    stage.aws.set_clock(at("29T12:00")).await;
    stop_by_hand(&stage, &node).await;
    stage.aws.set_clock(at("29T12:05")).await;
    stage.start_by_hand(&node).await.unwrap();
    stage.aws.set_clock(at("29T21:00")).await;
    let run = stage.look_at_uptime().await;
    assert!(run.result.is_ok(), "{run:?}");
    let alerts = told(&stage, "uptime").await;
    assert_eq!(alerts.len(), 2, "{alerts:?}");
    let line =
        decided(&run).into_iter().find(|line| line["node"] == node.as_str() && line["inputs"]["day"] == "2026-11-29");
    let inputs = line.unwrap()["inputs"].clone();
    assert!(inputs["by_launches_seconds"].as_i64().unwrap() < 10 * 3600, "{inputs}");
    assert!(inputs["by_status_checks_seconds"].as_i64().unwrap() > 20 * 3600, "{inputs}");
}

fn limits(notification: &Value) -> (String, f64) {
    let of = &notification["notification"];
    (of["NotificationType"].as_str().unwrap().to_owned(), of["Threshold"].as_f64().unwrap())
}

#[tokio::test]
async fn the_aws_budget_is_made_and_made_again_when_it_is_gone() {
    let stage = stage_from(at("30T09:56"), &[]).await;
    stage.add_node("gpu-1", "voice", false).await.unwrap();
    assert!(stage.look_at_budget().await.result.is_ok());
    let budgets = stage.aws.budgets().await;
    assert_eq!(budgets.len(), 1, "{budgets:?}");
    assert_eq!(budgets[0]["budget"]["BudgetLimit"], json!({"Amount": "1000.00", "Unit": "USD"}));
    assert_eq!(budgets[0]["budget"]["CostFilters"], json!({"TagKeyValue": ["user:reveille:pool$voice"]}));
    let made = budgets[0]["notifications"].as_array().unwrap();
    let limits: Vec<_> = made.iter().map(limits).collect();
    let actual = |percent| ("ACTUAL".to_owned(), percent);
    assert_eq!(limits, [actual(50.0), actual(80.0), actual(100.0), ("FORECASTED".to_owned(), 100.0)]);
    assert_eq!(made[0]["subscribers"], json!([{"Address": "ops@example.com", "SubscriptionType": "EMAIL"}]));

    let client = aws_sdk_budgets::Client::new(&stage.sdk);
    client.delete_budget().account_id(ACCOUNT).budget_name("reveille").send().await.unwrap();
    assert!(stage.look_at_budget().await.result.is_ok());
    assert_eq!(stage.aws.budgets().await[0]["notifications"].as_array().unwrap().len(), 4, "all is there again");

    stage.aws.clear_calls().await;
    assert!(stage.look_at_budget().await.result.is_ok());
    let calls: Vec<String> = stage.aws.calls().await.into_iter().map(|call| call.action).collect();
    assert!(calls.iter().all(|call| !call.starts_with("Create") && call != "UpdateBudget"), "{calls:?}");
}

#[tokio::test]
async fn an_amount_that_was_configured_anew_is_set_once_and_one_edited_in_aws_is_told_and_left() {
    let mut stage = stage_from(at("30T09:56"), &[]).await;
    stage.add_node("gpu-1", "voice", false).await.unwrap();
    assert!(stage.look_at_budget().await.result.is_ok());
    assert!(stage.look_at_budget().await.result.is_ok());
    stage.aws.bill(ACCOUNT, "reveille", "3.00", None).await;
    stage.give_budget(r#"{"amount": 900, "currency": "USD", "mail": ["ops@example.com"]}"#).unwrap();
    for _ in 0..3 {
        assert!(stage.look_at_budget().await.result.is_ok());
    }
    let calls = stage.aws.calls().await;
    assert_eq!(calls.iter().filter(|call| call.action == "UpdateBudget").count(), 1);
    assert_eq!(stage.aws.budgets().await[0]["budget"]["BudgetLimit"]["Amount"], "900.00");

    edit_in_console(&stage, "5000").await;
    for _ in 0..3 {
        assert!(stage.look_at_budget().await.result.is_ok());
    }
    assert_eq!(stage.aws.budgets().await[0]["budget"]["BudgetLimit"]["Amount"], "5000", "left as it is");
    let alerts = told(&stage, "misconfigured").await;
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!(alerts[0].message.contains("5000") && alerts[0].message.contains("900.00"), "{}", alerts[0].message);
}

async fn edit_in_console(stage: &Stage, amount: &str) {
    use aws_sdk_budgets::types::{Budget, BudgetType, Spend, TimeUnit};
    let limit = Spend::builder().amount(amount).unit("USD").build().unwrap();
    let budget = Budget::builder()
        .budget_name("reveille")
        .budget_type(BudgetType::Cost)
        .time_unit(TimeUnit::Monthly)
        .budget_limit(limit)
        .build()
        .unwrap();
    let client = aws_sdk_budgets::Client::new(&stage.sdk);
    client.update_budget().account_id(ACCOUNT).new_budget(budget).send().await.unwrap();
}

#[tokio::test]
async fn case_38_the_guard_acts_on_its_own_estimate_and_not_again_when_aws_is_late() {
    let spent = r#"{"amount": 10, "currency": "USD", "enforce": "gate", "units": {"calls": "0.03"}}"#;
    let stage = stage_from(at("30T00:56"), &[("REVEILLE_BUDGET", spent)]).await;
    stage.add_node("gpu-1", "voice", true).await.unwrap();
    stage.look_at_budget().await;
    stage.aws.bill(ACCOUNT, "reveille", "3.00", None).await;
    watch_until(&stage, at("30T14:00")).await;
    let mut alerts = told(&stage, "budget").await;
    alerts.retain(|alert| alert.attributes.contains_key("threshold"));
    let subjects: Vec<_> = alerts.iter().map(|alert| alert.subject.clone().unwrap()).collect();
    assert_eq!(
        subjects,
        [
            "Reveille: 50 % of the 2026-11 budget of USD 10.00 spent: all pools",
            "Reveille: 80 % of the 2026-11 budget of USD 10.00 spent: all pools",
            "Reveille: 100 % of the 2026-11 budget of USD 10.00 spent: all pools"
        ]
    );
    assert!(alerts[0].message.contains("shows USD 3.00 so far"), "{}", alerts[0].message);
    assert!(alerts[0].message.contains("of g6.xlarge") && alerts[0].message.contains(" calls at USD 0.03"));
    stage.aws.bill(ACCOUNT, "reveille", "10.40", None).await;
    stage.aws.clear_calls().await;
    let run = stage.budget.invoke(&event("budget-guard", "late_notice")).await;
    assert!(run.result.is_ok(), "{run:?}");
    assert_eq!(told(&stage, "budget").await.len(), 4, "three thresholds and the gate, and no second message");
    let calls: Vec<String> = stage.aws.calls().await.into_iter().map(|call| call.action).collect();
    assert!(!calls.iter().any(|call| call == "StartInstances" || call == "StopInstances"), "{calls:?}");
}

#[tokio::test]
async fn a_spent_budget_closes_the_gate_and_the_next_month_opens_it() {
    let spent = r#"{"amount": "0.50", "currency": "USD", "enforce": "gate"}"#;
    let stage = stage_from(at("30T20:56"), &[("REVEILLE_BUDGET", spent)]).await;
    let node = stage.add_node("gpu-1", "voice", true).await.unwrap();
    watch_until(&stage, at("30T22:00")).await;
    stop_by_hand(&stage, &node).await;
    stage.pass(TimeDelta::minutes(2)).await;
    let (status, answer, _) = stage.prewarm(&Value::Null).await;
    assert_eq!((status, answer["reason"].as_str()), (403, Some("gate_closed")), "{answer}");
    assert!(answer["gate"].as_str().unwrap().contains("the budget for 2026-11 is spent"), "{answer}");
    assert_eq!(answer["gate_until"], "2026-12-01T00:00:00Z");
    assert_eq!(stage.status().await.0, 403);
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    stage.aws.set_clock("2026-12-01T00:00:10Z".parse().unwrap()).await;
    assert_eq!(stage.prewarm(&Value::Null).await.0, 202, "the gate's end has come, whatever the guard does");
    assert!(stage.look_at_budget().await.result.is_ok());
    let subjects: Vec<_> = told(&stage, "budget").await.into_iter().filter_map(|alert| alert.subject).collect();
    assert_eq!(subjects.len(), 5, "each threshold, the closing and the opening, once: {subjects:?}");
}

#[tokio::test]
async fn a_budget_that_stops_drains_the_idle_node_and_leaves_the_one_with_a_call() {
    let spent = r#"{"amount": "0.20", "currency": "USD", "enforce": "stop"}"#;
    let stage = stage_from(at("30T20:56"), &[("REVEILLE_BUDGET", spent)]).await;
    let node = stage.add_node("gpu-1", "voice", true).await.unwrap();
    let alive = async |minutes: i64, open: bool| {
        for _ in 0..minutes / 5 {
            let from = stage.aws.now().await;
            stage.pass(TimeDelta::minutes(5)).await;
            stage.prove_alive(from).await.unwrap();
            let points: Vec<_> = (0..5).map(|n| ("ActiveConnectionCount", from + TimeDelta::minutes(n), 1.0)).collect();
            if open {
                stage.put_points(&points).await.unwrap();
            }
            let run = stage.tick().await;
            assert!(run.result.is_ok(), "{run:?}");
        }
    };
    alive(20, true).await;
    assert!(stage.look_at_budget().await.result.is_ok());
    alive(20, true).await;
    assert_eq!(stage.state(&node).await.unwrap(), "running", "no call is cut");
    alive(20, false).await;
    assert_eq!(stage.state(&node).await.unwrap(), "stopped", "and not after the idle time of 30 minutes");
}

#[tokio::test]
async fn bad_money_is_named_at_start() {
    let rows = [
        ("another currency", "REVEILLE_BUDGET", r#"{"amount": 20, "currency": "EUR"}"#, "USD only"),
        ("no currency", "REVEILLE_BUDGET", r#"{"amount": 20}"#, "`currency` is missing"),
        (
            "thresholds out of order",
            "REVEILLE_BUDGET",
            r#"{"amount": 20, "currency": "USD", "actual": [80, 50]}"#,
            "has to rise",
        ),
        ("an amount of nothing", "REVEILLE_BUDGET", r#"{"amount": 0, "currency": "USD"}"#, "amount is zero"),
        ("an unknown word", "REVEILLE_BUDGET", r#"{"amount": 20, "currency": "USD", "enforce": "kill"}"#, "kill"),
        ("no budget", "REVEILLE_BUDGET", "", "REVEILLE_BUDGET: is not set"),
        ("a price of zero", "REVEILLE_PRICES", r#"{"g6.xlarge": 0}"#, "the price of g6.xlarge is zero"),
        ("an unknown region", "AWS_REGION", "mars-north-1", "mars-north-1"),
        ("an unknown zone", "REVEILLE_ZONE", "Europe/Atlantis", "Europe/Atlantis"),
    ];
    let stage = stage_from(at("30T09:56"), &[]).await;
    for (name, setting, value, named) in rows {
        let guard = stage.function_with("budget-guard", &[(setting, value)]).unwrap();
        let run = guard.invoke(&json!({})).await;
        assert!(run.result.is_err(), "{name}: {run:?}");
        let text = run.logs.join("\n");
        assert!(text.contains(named), "{name}: {text}");
    }
    assert_eq!(stage.aws.budgets().await.len(), 0);
}

#[tokio::test]
async fn a_type_without_a_price_is_told_and_the_rest_is_counted() {
    let stage = stage_from(at("30T09:52"), &[]).await;
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    let kind = aws_sdk_ec2::types::AttributeValue::builder().value("t3.large").build();
    let ec2 = aws_sdk_ec2::Client::new(&stage.sdk);
    ec2.modify_instance_attribute().instance_id(node.as_str()).instance_type(kind).send().await.unwrap();
    stage.start_by_hand(&node).await.unwrap();
    stage.pass(TimeDelta::minutes(2)).await;
    let run = stage.look_at_budget().await;
    assert!(run.result.is_ok(), "{run:?}");
    let alerts = told(&stage, "misconfigured").await;
    assert!(
        alerts.iter().any(|alert| alert.message.contains("no price is known of instance type t3.large in us-east-1")),
        "{alerts:?}"
    );
}

#[tokio::test]
async fn a_topic_that_refuses_shows_in_the_functions_error_metric() {
    let stage = stage_from(at("28T23:56"), &[]).await;
    stage.add_node("gpu-1", "voice", true).await.unwrap();
    stage.aws.set_clock(at("29T21:00")).await;
    stage
        .aws
        .faults(json!([{"service": "sns", "action": "Publish", "code": "AuthorizationError", "status": 403,
            "message": "not authorized", "times": 1}]))
        .await;
    let run = stage.look_at_uptime().await;
    assert!(run.result.is_err(), "{run:?}");
    stage.aws.set_clock(at("29T21:15")).await;
    assert!(stage.look_at_uptime().await.result.is_ok());
    assert_eq!(told(&stage, "uptime").await.len(), 1, "and the next run sends it");
}

#[tokio::test]
async fn counts_the_aws_calls_of_the_two() {
    let stage = stage_from(at("30T09:56"), &[]).await;
    stage.add_node("gpu-1", "voice", true).await.unwrap();
    for _ in 0..2 {
        stage.look_at_uptime().await;
        stage.look_at_budget().await;
    }
    stage.pass(TimeDelta::minutes(15)).await;
    stage.aws.clear_calls().await;
    stage.look_at_uptime().await;
    let calls: Vec<String> = stage.aws.calls().await.into_iter().map(|call| call.action).collect();
    assert_eq!(calls.len(), 5, "describe, ledger, history, samples, and the sight renewed: {calls:?}");
    stage.aws.clear_calls().await;
    stage.look_at_budget().await;
    let calls: Vec<String> = stage.aws.calls().await.into_iter().map(|call| call.action).collect();
    assert_eq!(calls.len(), 7, "describe, budget, its notices, its note, ledger, history, volumes: {calls:?}");
}
