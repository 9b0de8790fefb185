//! The built functions on the local AWS: the files of `events/wake` and `events/idle-check`, answers, field cases, counted
//! calls.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use flate2::{Compression, write::GzEncoder};
use reveille::domain::NodeId;
use reveille_tests::local_aws::CallSeen;
use reveille_tests::runtime_api::{Function, FunctionError, FunctionSpec, Invocation};
use reveille_tests::stage::{LOG_GROUP, Stage, binary, http_answer, log_batch, root, voice_pools};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;

const MINUTES_5: TimeDelta = TimeDelta::minutes(5);

fn nine() -> DateTime<Utc> {
    "2026-11-30T09:00:00Z".parse().unwrap()
}

/// A stage at nine o'clock with one sleeping node.
async fn asleep() -> (Stage, NodeId) {
    let stage = Stage::open(nine() - TimeDelta::minutes(4)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    stage.aws.clear_calls().await;
    (stage, node)
}

/// A stage with one node that has been running and seen ready.
async fn awake() -> (Stage, NodeId) {
    let stage = Stage::open(nine() - TimeDelta::minutes(2)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", true).await.unwrap();
    stage.prove_alive(nine() - TimeDelta::minutes(10)).await.unwrap();
    assert!(stage.tick().await.result.is_ok());
    stage.aws.clear_calls().await;
    (stage, node)
}

/// Lets five minutes pass with a live load balancer, then ticks.
async fn next_tick(stage: &Stage) -> Invocation {
    let from = stage.aws.now().await;
    stage.pass(MINUTES_5).await;
    stage.prove_alive(from).await.unwrap();
    stage.tick().await
}

async fn ticks(stage: &Stage, times: u32) {
    for _ in 0..times {
        let run = next_tick(stage).await;
        assert!(run.result.is_ok(), "{run:?}");
    }
}

fn event(function: &str, case: &str) -> Value {
    let path = root().join(format!("events/{function}/{case}.json"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

fn line(path: &str, status: u16) -> String {
    format!("192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] \"POST {path} HTTP/1.1\" {status} 3 \"-\" \"voice-app/3.1\"")
}

fn count(calls: &[CallSeen], action: &str) -> usize {
    calls.iter().filter(|call| call.action == action).count()
}

async fn starts(stage: &Stage) -> usize {
    count(&stage.aws.calls().await, "StartInstances")
}

async fn stops(stage: &Stage) -> usize {
    count(&stage.aws.calls().await, "StopInstances")
}

fn decided(run: &Invocation) -> Vec<Value> {
    let lines = run.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["decided"] == json!(true)).collect()
}

fn reasons(run: &Invocation) -> Vec<String> {
    decided(run).iter().map(|line| line["reason"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_event_file_has_its_answer() {
    // (file, HTTP status or "ok" or "error", whether the node is started)
    let wake = [
        ("prewarm", "202", true),
        ("prewarm_empty", "202", true),
        ("prewarm_base64_node", "202", true),
        ("prewarm_bad_base64", "400", false),
        ("status", "503", false),
        ("node_stopped", "ok", false),
        ("log_call", "ok", true),
        ("log_json", "ok", true),
        ("log_noise", "ok", false),
        ("log_non_ascii", "ok", true),
        ("log_own_group", "ok", false),
        ("log_control", "ok", false),
        ("log_bad_gzip", "error", false),
        ("operator_wake", "202", true),
        ("operator_hold", "200", false),
        ("operator_release", "200", false),
        ("operator_close_gate", "200", false),
        ("operator_open_gate", "200", false),
        ("operator_rights", "200", false),
        ("operator_unknown", "400", false),
    ];
    let idle = [
        ("tick", ["asleep"].as_slice()),
        ("custom_input", &["asleep"]),
        ("empty", &["asleep"]),
        ("null", &["asleep"]),
        ("null_detail", &["asleep"]),
        ("operator_rights", &[]),
        // No tick: whoever only asks must not stop a node.
        ("operator_unknown", &[]),
    ];
    for (function, named) in [
        ("wake", wake.iter().map(|row| row.0).collect::<BTreeSet<_>>()),
        ("idle-check", idle.iter().map(|row| row.0).collect()),
    ] {
        let files = std::fs::read_dir(root().join("events").join(function)).unwrap();
        let there: BTreeSet<String> =
            files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(
            there,
            named.iter().map(|name| (*name).to_owned()).collect(),
            "each file of events/{function} is a row here"
        );
    }
    let (stage, node) = asleep().await;
    for (case, expected, started) in wake {
        let run = stage.wake.invoke(&event("wake", case)).await;
        let seen = match (&run.result, http_answer(&run).0) {
            (Err(_), _) => "error".to_owned(),
            (Ok(_), 0) => "ok".to_owned(),
            (Ok(_), status) => status.to_string(),
        };
        assert_eq!(seen, expected, "{case}: {run:?}");
        let state = stage.state(&node).await.unwrap();
        assert_eq!(state == "pending", started, "{case}: {state} {run:?}");
        sleep_again(&stage, &node).await;
    }
    for (case, expected) in idle {
        let run = stage.idle.invoke(&event("idle-check", case)).await;
        assert_eq!(
            (run.result.is_ok(), reasons(&run)),
            (true, expected.iter().map(|word| (*word).to_owned()).collect()),
            "{case}: {run:?}"
        );
    }
}

/// Puts the node and the ledger back.
async fn sleep_again(stage: &Stage, node: &NodeId) {
    stage.pass(TimeDelta::seconds(30)).await;
    aws_sdk_ec2::Client::new(&stage.sdk).stop_instances().instance_ids(node.as_str()).send().await.unwrap();
    stage.pass(TimeDelta::minutes(1)).await;
    forget(stage, "pool#voice").await;
}

async fn forget(stage: &Stage, pk: &str) {
    use aws_sdk_dynamodb::types::AttributeValue;
    let delete = aws_sdk_dynamodb::Client::new(&stage.sdk).delete_item().table_name(reveille_tests::stage::TABLE);
    delete.key("pk", AttributeValue::S(pk.into())).key("sk", AttributeValue::S("-".into())).send().await.unwrap();
}

#[tokio::test]
async fn bad_input_is_refused_by_name_and_changes_nothing() {
    let (stage, node) = asleep().await;
    let rows = [
        ("POST", "/wake", json!("not an object"), 400, "body"),
        ("POST", "/wake", json!([null, null]), 400, "body"),
        ("POST", "/wake", json!(["voice", null]), 400, "body"),
        ("PUT", "/leases/call-1", json!(["voice", null, 60]), 400, "body"),
        ("PUT", "/leases/call-1", json!({"ttl_seconds": 60.5}), 400, "ttl_seconds"),
        ("PUT", "/leases/call-1", json!({"node": "nobody", "ttl_seconds": 60.0}), 404, "node"),
        ("POST", "/wake", json!({"node": "ü".repeat(256)}), 404, "node"),
        ("POST", "/wake", json!({"pool": 7}), 400, "body"),
        ("POST", "/wake", json!({"pol": "voice"}), 400, "body"),
        ("POST", "/wake", json!({"pool": "a b"}), 400, "pool"),
        ("POST", "/wake", json!({"pool": "nobody"}), 404, "pool"),
        ("POST", "/wake", json!({"node": "nobody"}), 404, "node"),
        ("POST", "/wake", json!({"node": ""}), 400, "node"),
        ("POST", "/wake", json!({"node": "a", "pool": "voice"}), 400, "node"),
        ("POST", "/wake", json!({"pool": "x".repeat(5000)}), 413, "body"),
        ("GET", "/wake", Value::Null, 405, "method"),
        ("DELETE", "/status", Value::Null, 405, "method"),
        ("GET", "/admin", Value::Null, 404, "path"),
    ];
    for (method, path, body, expected, field) in rows {
        let (status, answer, run) = stage.request(method, path, &body).await;
        assert_eq!((status, answer["field"].as_str()), (expected, Some(field)), "{method} {path} {body}: {run:?}");
    }
    let events = [
        (json!({}), "neither"),
        (json!(null), "neither"),
        (json!([1, 2]), "neither"),
        (json!({"awslogs": {}}), "awslogs.data"),
        (json!({"awslogs": {"data": "%%%"}}), "awslogs.data"),
        (json!({"detail-type": "EC2 Instance State-change Notification", "detail": {}}), "detail.state"),
        (json!({"requestContext": {"http": 7}}), "requestContext"),
    ];
    for (event, named) in events {
        let run = stage.wake.invoke(&event).await;
        match &run.result {
            Err(FunctionError::Unhandled { message, .. }) => assert!(message.contains(named), "{event}: {message}"),
            other => panic!("{event}: {other:?}"),
        }
    }
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    let calls = stage.aws.calls().await;
    assert_eq!(count(&calls, "UpdateItem"), 0, "nothing was written");
}

#[tokio::test]
async fn counts_the_aws_calls_of_each_path() {
    let (stage, _) = asleep().await;
    assert_eq!(stage.prewarm(&Value::Null).await.0, 202);
    let actions: Vec<String> = stage.aws.calls().await.into_iter().map(|call| call.action).collect();
    assert_eq!(actions.len(), 4, "pre-warm on a sleeping node: {actions:?}");
    stage.pass(TimeDelta::minutes(2)).await;
    stage.prove_alive(nine()).await.unwrap();
    stage.tick().await;
    stage.aws.clear_calls().await;
    assert_eq!(stage.prewarm(&Value::Null).await.0, 200);
    assert_eq!(stage.aws.calls().await.len(), 3, "pre-warm on a running node: it asks anew whether it is ready");
    stage.aws.clear_calls().await;
    next_tick(&stage).await;
    let calls = stage.aws.calls().await;
    let of_tick: Vec<_> = calls.iter().filter(|call| call.action != "PutMetricData").collect();
    assert_eq!(of_tick.len(), 3, "a tick that changes nothing: {of_tick:?}");
}

#[tokio::test]
async fn a_tick_of_a_hundred_nodes_makes_three_calls() {
    let stage = Stage::open(nine() - TimeDelta::minutes(30)).await.unwrap();
    stage.launch("voice", 100).await.unwrap();
    let launched = stage.aws.now().await;
    stage.pass(TimeDelta::minutes(2)).await;
    stage.prove_alive(launched).await.unwrap();
    assert!(stage.tick().await.result.is_ok());
    stage.aws.clear_calls().await;
    let run = stage.tick().await;
    assert_eq!(decided(&run).len(), 100, "{run:?}");
    let calls = stage.aws.calls().await;
    assert_eq!(calls.len(), 3, "{calls:?}");
}

/// DynamoDB takes expressions of 4 KiB: what is first seen of many nodes at once is written in parts.
#[tokio::test]
async fn the_first_tick_of_three_hundred_nodes_writes_its_facts_in_parts() {
    let stage = Stage::open(nine() - TimeDelta::minutes(30)).await.unwrap();
    stage.launch("voice", 300).await.unwrap();
    let launched = stage.aws.now().await;
    stage.pass(TimeDelta::minutes(2)).await;
    stage.prove_alive(launched).await.unwrap();
    let run = stage.tick().await;
    assert!(run.result.is_ok(), "{:?}", run.result);
    let calls = stage.aws.calls().await;
    assert!(calls.iter().all(|call| call.status == 200), "{calls:?}");
    assert!(count(&calls, "UpdateItem") >= 3, "{calls:?}");
}

/// CloudWatch takes 500 queries a call: 300 nodes with two metrics each of their own are two pages, and the rest does not grow.
#[tokio::test]
async fn a_tick_of_many_nodes_grows_by_pages_alone() {
    let of_node = |name: &str| json!({"namespace": "App", "metric": name, "dimensions": {"Node": "{node}"}});
    let pools = json!({"voice": {"requests": [of_node("Requests")], "open": [of_node("OpenCalls")]}});
    let stage = Stage::open_with(nine() - TimeDelta::minutes(30), &pools, &[]).await.unwrap();
    stage.launch("voice", 300).await.unwrap();
    stage.pass(TimeDelta::minutes(2)).await;
    let run = stage.tick().await;
    assert_eq!(decided(&run).len(), 300, "{run:?}");
    let calls = stage.aws.calls().await;
    let counts = ["DescribeInstances", "BatchGetItem", "GetMetricData"].map(|action| count(&calls, action));
    assert_eq!(counts, [1, 1, 2], "describe, ledger, metrics");
}

#[tokio::test]
async fn several_causes_at_once_make_one_start() {
    let (stage, _) = asleep().await;
    let none = Value::Null;
    let lines = [line("/v1/calls", 503)];
    let (first, second) = (event("wake", "node_stopped"), event("wake", "log_call"));
    tokio::join!(
        stage.prewarm(&none),
        stage.log_lines(LOG_GROUP, &lines),
        stage.wake.invoke(&first),
        stage.wake.invoke(&second),
        stage.tick(),
    );
    assert_eq!(starts(&stage).await, 1);
}

#[tokio::test]
async fn case_02_a_wake_that_meets_stopping_is_kept_and_met() {
    let (stage, node) = awake().await;
    ticks(&stage, 6).await;
    assert_eq!(stage.state(&node).await.unwrap(), "stopping");
    stage.wake.kill_idle();
    let (status, answer, run) = stage.prewarm(&Value::Null).await;
    assert_eq!((status, answer["state"].as_str()), (202, Some("stopping_will_start")), "{run:?}");
    stage.wake.kill_idle();
    let runs = stage.pass_with_events(TimeDelta::minutes(1)).await;
    assert!(!runs.is_empty());
    let accepted =
        stage.aws.calls().await.iter().filter(|call| call.action == "StartInstances" && call.status == 200).count();
    assert_eq!(accepted, 1);
    assert_eq!(stage.state(&node).await.unwrap(), "pending");
}

#[tokio::test]
async fn case_02_a_start_refused_for_a_state_that_flipped_is_not_an_error_for_the_caller() {
    let (stage, node) = asleep().await;
    stage
        .aws
        .faults(json!([{"service": "ec2", "action": "StartInstances", "code": "IncorrectInstanceState", "status": 400,
        "message": "not in a state from which it can be started", "times": 1}]))
        .await;
    let (status, answer, run) = stage.prewarm(&Value::Null).await;
    assert_eq!((status, answer["state"].as_str()), (202, Some("stopping_will_start")), "{run:?}");
    stage.prove_alive(nine()).await.unwrap();
    next_tick(&stage).await;
    assert_eq!(stage.state(&node).await.unwrap(), "pending");
}

#[tokio::test]
async fn case_03_a_start_that_falls_back_is_told_once_and_waited_out() {
    let (stage, node) = asleep().await;
    stage
        .aws
        .config(json!({"instance": node.as_str(), "falls_back": {"code": "Client.InternalError",
        "message": "Client.InternalError: Client error on launch", "after_seconds": 5, "times": 5}}))
        .await;
    stage.log_lines(LOG_GROUP, &[line("/v1/calls", 503)]).await;
    for _ in 0..3 {
        next_tick(&stage).await;
        let (status, answer, _) = stage.prewarm(&Value::Null).await;
        assert_eq!((status, answer["fault"].as_str()), (503, Some("Client.InternalError")), "{answer}");
        assert_eq!(answer["state"], "fault", "{answer}");
    }
    assert_eq!(starts(&stage).await, 1, "no storm of starts while requests keep coming");
    let told = stage.aws.published().await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.contains("kms:CreateGrant"), "{}", told[0].message);
}

fn two_pools() -> Value {
    let pool = voice_pools()["voice"].clone();
    let mut small = pool.clone();
    small["log_groups"] = json!(["/app/other"]);
    json!({"voice": pool, "small": small})
}

#[tokio::test]
async fn case_05_no_capacity_for_one_node_holds_up_no_other() {
    let stage = Stage::open_with(nine() - TimeDelta::minutes(8), &two_pools(), &[]).await.unwrap();
    let big = stage.add_node("gpu-big", "voice", false).await.unwrap();
    let small = stage.add_node("gpu-small", "small", false).await.unwrap();
    stage
        .aws
        .faults(
            json!([{"service": "ec2", "action": "StartInstances", "code": "InsufficientInstanceCapacity", "status": 500,
        "message": "no capacity", "times": 9, "match": big.as_str()}]),
        )
        .await;
    let (_, refused, _) = stage.prewarm(&json!({"pool": "voice"})).await;
    assert_eq!(refused["fault"], "InsufficientInstanceCapacity");
    assert_eq!(refused["state"], "no_capacity", "{refused}");
    assert_eq!(stage.prewarm(&json!({"pool": "small"})).await.0, 202);
    next_tick(&stage).await;
    assert_eq!(stage.state(&small).await.unwrap(), "running");
    assert_eq!(stage.state(&big).await.unwrap(), "stopped");
}

#[tokio::test]
async fn case_06_a_wake_without_capacity_is_met_by_a_tick_with_no_further_request() {
    let (stage, node) = asleep().await;
    stage
        .aws
        .faults(
            json!([{"service": "ec2", "action": "StartInstances", "code": "InsufficientInstanceCapacity", "status": 500,
        "message": "no capacity", "times": 2}]),
        )
        .await;
    stage.log_lines(LOG_GROUP, &[line("/v1/calls", 503)]).await;
    let (status, answer, _) = stage.status().await;
    assert_eq!((status, answer["fault_since"].as_str()), (503, Some("2026-11-30T09:00:00Z")), "{answer}");
    ticks(&stage, 1).await;
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    ticks(&stage, 1).await;
    assert_eq!(stage.state(&node).await.unwrap(), "pending");
}

#[tokio::test]
async fn case_08_a_throttled_describe_is_unknown_and_told_if_it_lasts() {
    let (stage, _) = awake().await;
    stage
        .aws
        .faults(json!([{"service": "ec2", "action": "DescribeInstances", "code": "RequestLimitExceeded", "status": 503,
        "message": "throttled", "times": -1}]))
        .await;
    for _ in 0..4 {
        let run = next_tick(&stage).await;
        assert!(run.result.is_err(), "the failure shows in the function's error metric");
        assert_eq!(reasons(&run), ["signals_unknown"]);
    }
    assert_eq!((starts(&stage).await, stops(&stage).await), (0, 0));
    let told = stage.aws.published().await;
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test]
async fn case_09_a_terminated_node_of_the_pool_does_not_hold_up_the_start() {
    let (stage, node) = asleep().await;
    let old = stage.add_node("gpu-1", "voice", false).await.unwrap();
    aws_sdk_ec2::Client::new(&stage.sdk).terminate_instances().instance_ids(old.as_str()).send().await.unwrap();
    assert_eq!(stage.prewarm(&json!({"node": "gpu-1"})).await.0, 202);
    assert_eq!(stage.state(&node).await.unwrap(), "pending");
    let asked: Vec<_> = stage.aws.calls().await.into_iter().filter(|call| call.action == "StartInstances").collect();
    assert_eq!(asked.iter().map(|call| call.target.as_deref()).collect::<Vec<_>>(), [Some(node.as_str())]);
}

#[tokio::test]
async fn case_10_a_one_time_spot_node_is_told_once_and_the_other_is_stopped() {
    let (stage, node) = awake().await;
    let spot = stage.add_node("gpu-spot", "voice", true).await.unwrap();
    stage.aws.config(json!({"instance": spot.as_str(), "spot": true})).await;
    ticks(&stage, 9).await;
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    assert_eq!(stage.state(&spot).await.unwrap(), "running");
    let told = stage.aws.published().await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.contains("UnsupportedOperation"), "{told:?}");
}

#[tokio::test]
async fn case_11_stop_protection_is_told_and_never_cleared() {
    let (stage, node) = awake().await;
    let ec2 = aws_sdk_ec2::Client::new(&stage.sdk);
    let yes = aws_sdk_ec2::types::AttributeBooleanValue::builder().value(true).build();
    ec2.modify_instance_attribute().instance_id(node.as_str()).disable_api_stop(yes).send().await.unwrap();
    stage.aws.clear_calls().await;
    ticks(&stage, 9).await;
    assert_eq!(stage.state(&node).await.unwrap(), "running");
    assert_eq!(count(&stage.aws.calls().await, "ModifyInstanceAttribute"), 0);
    assert_eq!(stage.aws.published().await.len(), 1);
}

#[tokio::test]
async fn case_12_a_node_behind_an_empty_first_page_is_found_and_stopped() {
    let (stage, node) = awake().await;
    stage.aws.config(json!({"empty_first_page": true})).await;
    ticks(&stage, 8).await;
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
}

#[tokio::test]
async fn case_13_a_request_between_the_readings_keeps_the_node() {
    let (stage, node) = awake().await;
    ticks(&stage, 4).await;
    let marked = next_tick(&stage).await;
    assert_eq!(reasons(&marked), ["first_reading"]);
    stage.pass(TimeDelta::seconds(290)).await;
    stage.log_lines(LOG_GROUP, &[line("/v1/calls", 200)]).await;
    stage.pass(TimeDelta::seconds(10)).await;
    stage.prove_alive(nine()).await.unwrap();
    assert_eq!(reasons(&stage.tick().await), ["recent_wake"]);
    assert_eq!(stage.state(&node).await.unwrap(), "running");
}

#[tokio::test]
async fn case_16_an_empty_metric_is_quiet_only_with_a_proof_of_life() {
    let (stage, node) = awake().await;
    for _ in 0..8 {
        stage.pass(MINUTES_5).await;
        assert!(stage.tick().await.result.is_ok());
    }
    assert_eq!(stage.state(&node).await.unwrap(), "running", "no point of the source: unknown");
    assert_eq!(stage.aws.published().await.len(), 1, "told after three ticks");
    stage
        .aws
        .faults(json!([{"service": "cloudwatch", "action": "GetMetricData", "times": -1,
        "body": {"status_code": "InternalError"}}]))
        .await;
    ticks(&stage, 8).await;
    assert_eq!(stops(&stage).await, 0, "an error answer is no silence");
    stage.aws.clear_faults().await;
    ticks(&stage, 3).await;
    assert_eq!(stops(&stage).await, 1);
}

#[tokio::test]
async fn case_28_a_control_message_is_success_and_no_wake() {
    let (stage, _) = asleep().await;
    assert!(stage.wake.invoke(&event("wake", "log_control")).await.result.is_ok());
    assert_eq!(stage.aws.calls().await.len(), 0);
}

#[tokio::test]
async fn case_29_bytes_that_are_no_text_hide_no_good_line() {
    let (stage, node) = asleep().await;
    let run = stage.wake.invoke(&event("wake", "log_non_ascii")).await;
    assert_eq!(stage.state(&node).await.unwrap(), "pending", "{run:?}");
    assert!(run.logs.iter().any(|line| line.contains("\"unread\":1")), "{run:?}");
}

#[tokio::test]
async fn case_33_a_tick_needs_no_payload() {
    let (stage, _) = asleep().await;
    for case in ["custom_input", "empty", "null", "tick", "null_detail"] {
        assert_eq!(reasons(&stage.idle.invoke(&event("idle-check", case)).await), ["asleep"], "{case}");
    }
}

#[tokio::test]
async fn case_34_a_base64_body_is_decoded_and_a_bad_one_refused() {
    let (stage, node) = asleep().await;
    assert_eq!(http_answer(&stage.wake.invoke(&event("wake", "prewarm_bad_base64")).await).0, 400);
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    assert_eq!(http_answer(&stage.wake.invoke(&event("wake", "prewarm_base64_node")).await).0, 202);
    assert_eq!(stage.state(&node).await.unwrap(), "pending");
}

#[tokio::test]
async fn case_35_the_functions_own_log_wakes_nothing_and_is_not_echoed() {
    let (stage, node) = asleep().await;
    let own = "/aws/lambda/wake";
    let run = stage.log_lines(own, &[line("/v1/calls", 200)]).await;
    assert!(run.logs.iter().any(|line| line.contains("WARN")), "{run:?}");
    assert!(!run.logs.iter().any(|line| line.contains("/v1/calls")), "{run:?}");
    // What the function itself logs, fed back in, is no request either.
    let woken = stage.log_lines(LOG_GROUP, &[line("/v1/calls", 503)]).await;
    sleep_again(&stage, &node).await;
    let fed_back = stage.log_lines(LOG_GROUP, &woken.logs).await;
    assert_eq!(stage.state(&node).await.unwrap(), "stopped", "{fed_back:?}");
    let mut pools = voice_pools();
    pools["voice"]["log_groups"] = json!([own]);
    let refused = Stage::open_with(nine(), &pools, &[]).await.unwrap();
    assert!(refused.prewarm(&Value::Null).await.2.result.is_err(), "and the configuration refuses it");
}

#[tokio::test]
async fn case_36_a_tick_delivered_three_times_is_one_reading_and_one_message() {
    let (stage, node) = awake().await;
    ticks(&stage, 4).await;
    assert_eq!(reasons(&next_tick(&stage).await), ["first_reading"]);
    let again = [stage.tick().await, stage.tick().await];
    assert_eq!(again.iter().flat_map(reasons).collect::<Vec<_>>(), ["recent_start", "recent_start"]);
    assert_eq!(stage.state(&node).await.unwrap(), "running");
    let batch = log_batch(
        LOG_GROUP,
        &[json!({"id": "e", "timestamp": stage.aws.now().await.timestamp_millis(), "message": line("/v1/calls", 503)})],
    );
    sleep_again(&stage, &node).await;
    stage.aws.clear_calls().await;
    tokio::join!(stage.wake.invoke(&batch), stage.wake.invoke(&batch));
    assert_eq!(starts(&stage).await, 1);
}

#[tokio::test]
async fn case_43_a_service_that_never_answers_ends_before_the_time_out() {
    let (stage, _) = awake().await;
    stage.aws.faults(json!([{"service": "ec2", "action": "DescribeInstances", "delay_ms": 60000, "times": -1}])).await;
    let run = stage.tick().await;
    match &run.result {
        Err(FunctionError::Unhandled { message, .. }) => assert!(message.contains("Timeout"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert!(run.duration.as_secs() < 25, "{:?}", run.duration);
    stage.aws.clear_faults().await;
    assert!(stage.tick().await.result.is_ok(), "the next one works on a fresh connection");
}

#[tokio::test]
async fn a_stop_whose_answer_is_lost_is_repeated_until_the_node_is_stopped() {
    for after in [true, false] {
        let (stage, node) = awake().await;
        ticks(&stage, 5).await;
        stage
            .aws
            .faults(json!([{"service": "ec2", "action": "StopInstances", "code": "InternalError", "status": 500,
            "message": "lost", "times": 1, "after": after}]))
            .await;
        ticks(&stage, 1).await;
        assert_eq!(stops(&stage).await, 1, "sent once, without a retry of the SDK");
        ticks(&stage, 2).await;
        assert_eq!(stage.state(&node).await.unwrap(), "stopped", "effect before the loss: {after}");
    }
}

#[tokio::test]
async fn a_hanging_stop_is_forced_and_the_wake_that_waits_for_it_is_met() {
    let (stage, node) = awake().await;
    stage.aws.config(json!({"instance": node.as_str(), "stopping_seconds": 36000})).await;
    ticks(&stage, 6).await;
    assert_eq!(stage.state(&node).await.unwrap(), "stopping");
    assert_eq!(stage.prewarm(&Value::Null).await.0, 202);
    ticks(&stage, 2).await;
    stage.aws.config(json!({"instance": node.as_str(), "stopping_seconds": 40})).await;
    stage.pass_with_events(TimeDelta::minutes(1)).await;
    let state = stage.state(&node).await.unwrap();
    assert!(["pending", "running"].contains(&state.as_str()), "{state}");
}

#[tokio::test]
async fn a_node_with_a_pool_tag_nobody_configured_is_kept_and_told() {
    let (stage, _) = asleep().await;
    let node = stage.add_node("gpu-x", "vioce", true).await.unwrap();
    ticks(&stage, 9).await;
    assert_eq!(stage.state(&node).await.unwrap(), "running");
    let told = stage.aws.published().await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.contains("vioce"));
}

#[tokio::test]
async fn a_bad_configuration_names_every_fault_and_does_nothing() {
    let stage = Stage::open_with(
        nine(),
        &json!({"a b": {}}),
        &[("REVEILLE_IDLE_MINUTES", "soon"), ("REVEILLE_IDEL_MINUTES", "5")],
    )
    .await
    .unwrap();
    let run = stage.tick().await;
    assert!(run.result.is_err());
    let text = run.logs.join("\n");
    for name in ["REVEILLE_IDLE_MINUTES", "REVEILLE_IDEL_MINUTES", "REVEILLE_POOLS"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(stage.aws.calls().await.iter().all(|call| ["CreateTopic", "CreateTable"].contains(&call.action.as_str())));
}

#[tokio::test]
async fn a_start_that_stays_throttled_is_told_and_the_caller_is_not_told_stopping() {
    let (stage, _) = asleep().await;
    let throttled = json!([{"service": "ec2", "action": "StartInstances", "code": "RequestLimitExceeded", "status": 503,
        "message": "Request limit exceeded.", "times": -1}]);
    stage.aws.faults(throttled).await;
    let (status, answer, _) = stage.prewarm(&Value::Null).await;
    assert_eq!((status, answer["fault"].as_str()), (503, Some("RequestLimitExceeded")), "{answer}");
    ticks(&stage, 2).await;
    let told = stage.aws.published().await;
    assert_eq!(told.len(), 1, "{told:?}");
    stage.aws.clear_faults().await;
    ticks(&stage, 1).await;
    assert_eq!(starts(&stage).await, 4, "and it is started as soon as it can be");
}

#[tokio::test]
async fn a_ledger_that_takes_no_claim_fails_the_run_and_starts_nothing() {
    let (stage, node) = asleep().await;
    let refused = json!([{"service": "dynamodb", "action": "UpdateItem", "code": "AccessDeniedException", "status": 400,
        "message": "not authorized", "times": -1, "match": "claim#"}]);
    stage.aws.faults(refused).await;
    let (status, answer, _) = stage.prewarm(&Value::Null).await;
    assert_eq!((status, answer["code"].as_str()), (503, Some("AccessDeniedException")), "{answer}");
    assert!(next_tick(&stage).await.result.is_err(), "it shows in the function's error metric");
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    stage.aws.clear_faults().await;
    ticks(&stage, 1).await;
    assert_eq!(stage.state(&node).await.unwrap(), "pending", "the wish was kept");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One member of a gzip file may follow another: 1 GiB that takes 1 MB to hold.
fn gibibyte_of(head: &str, byte: u8) -> Value {
    let members = [gzip(head.as_bytes()), gzip(&vec![byte; 1 << 20]).repeat(1024)].concat();
    json!({"awslogs": {"data": STANDARD.encode(members)}})
}

/// The event, and what the batch is noted as; none where it cannot be read at all.
fn huge_batches() -> [(&'static str, Value, Option<&'static str>); 4] {
    let filler = format!("{} {}", line("/.env", 404), "x".repeat(260));
    let mut lines = vec![filler; 49_999];
    lines.push(line("/v1/calls", 502));
    let event = |line: &String| json!({"id": "1", "timestamp": nine().timestamp_millis(), "message": line});
    let events: Vec<Value> = lines.iter().map(event).collect();
    let head = r#"{"messageType":"DATA_MESSAGE","logGroup":"/app/front","logEvents":["#;
    [
        ("a gibibyte of zeros", gibibyte_of("", 0), None),
        ("a gibibyte of blanks", gibibyte_of(head, b' '), Some("too_large")),
        ("a gibibyte of one line", gibibyte_of(&format!("{head}{{\"message\":\""), b'x'), Some("too_large")),
        ("50,000 lines, the last a call", log_batch(LOG_GROUP, &events), Some("woken")),
    ]
}

/// A wake function in a process of its own. Built without optimisation it reads 20 MB for many seconds.
fn patient_wake(stage: &Stage) -> Function {
    let (name, binary, env) = ("wake".to_owned(), binary("wake").unwrap(), stage.vars.clone());
    let timeout = std::time::Duration::from_secs(300);
    Function::start(FunctionSpec { name, binary, env, timeout, memory_mb: 128, max_instances: 1 }).unwrap()
}

/// Of the 128 MB that the functions are given. The worst is a batch forged as one line.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn case_32_no_batch_takes_more_than_80_mib() {
    let (stage, _) = asleep().await;
    for (name, event, outcome) in huge_batches() {
        let run = patient_wake(&stage).invoke(&event).await;
        assert_eq!(run.result.is_ok(), outcome.is_some(), "{name}: {run:?}");
        let noted = run.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let noted: Vec<Value> = noted.filter_map(|line| line["batch"].get("outcome").cloned()).collect();
        assert_eq!(noted, outcome.map(Value::from).into_iter().collect::<Vec<_>>(), "{name}");
        let (mib, took) = (run.max_memory_kib.unwrap() / 1024, run.duration);
        println!("{name}: {mib} MiB, {took:?}");
        assert!(mib < 80, "{name}: {mib} MiB");
    }
}
