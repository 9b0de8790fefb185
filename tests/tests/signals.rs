//! The built functions on the local AWS: what counts as use, what is no use, and where a node starts without capacity.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use chrono::{DateTime, TimeDelta, Utc};
use reveille::domain::NodeId;
use reveille_tests::runtime_api::Invocation;
use reveille_tests::stage::{LOG_GROUP, Stage, voice_pools};
use serde_json::{Value, json};

/// The request log of the node itself.
const NODE_LOG: &str = "/node/nginx";

fn nine() -> DateTime<Utc> {
    "2026-11-30T09:00:00Z".parse().unwrap()
}

/// A stage whose pool is seen through the node's own log only.
async fn seen_by_log() -> (Stage, NodeId) {
    let pools = json!({"voice": {"logs": [{"group": NODE_LOG, "lines": {"paths": ["/v1/"]}}], "calls": "unobserved"}});
    let stage = Stage::open_with(nine() - TimeDelta::minutes(2), &pools, &[]).await.unwrap();
    let logs = aws_sdk_cloudwatchlogs::Client::new(&stage.sdk);
    logs.create_log_group().log_group_name(NODE_LOG).send().await.unwrap();
    logs.create_log_stream().log_group_name(NODE_LOG).log_stream_name("gpu-1").send().await.unwrap();
    let node = stage.add_node("gpu-1", "voice", true).await.unwrap();
    (stage, node)
}

async fn write(stage: &Stage, lines: impl IntoIterator<Item = (DateTime<Utc>, String)>) {
    let event = |(at, line): (DateTime<Utc>, String)| {
        InputLogEvent::builder().timestamp(at.timestamp_millis()).message(line).build().unwrap()
    };
    let logs = aws_sdk_cloudwatchlogs::Client::new(&stage.sdk);
    let sent = logs.put_log_events().log_group_name(NODE_LOG).log_stream_name("gpu-1");
    sent.set_log_events(Some(lines.into_iter().map(event).collect())).send().await.unwrap();
}

fn line(at: DateTime<Utc>, request: &str, agent: &str) -> String {
    format!("10.0.0.9 - - [{}] \"{request} HTTP/1.1\" 200 2 \"-\" \"{agent}\"", at.format("%d/%b/%Y:%H:%M:%S +0000"))
}

/// Health checks every 10 seconds and a monitor's HEAD every minute, as they stand in the node's log.
fn pings(from: DateTime<Utc>, minutes: i64) -> Vec<(DateTime<Utc>, String)> {
    let at = |second| from + TimeDelta::seconds(second);
    let health = (0..minutes * 6).map(|n| (at(10 * n), line(at(10 * n), "GET /healthz", "ELB-HealthChecker/2.0")));
    let heads = (0..minutes).map(|n| (at(60 * n + 5), line(at(60 * n + 5), "HEAD /", "UptimeMonitor")));
    let mut all: Vec<_> = health.chain(heads).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Ticks every five minutes with pings between them; the last state.
async fn pass_pinged(stage: &Stage, node: &NodeId, minutes: i64) -> String {
    for _ in 0..minutes / 5 {
        let from = stage.aws.now().await;
        stage.pass(TimeDelta::minutes(5)).await;
        write(stage, pings(from, 5)).await;
        let run = stage.tick().await;
        assert!(run.result.is_ok(), "{run:?}");
    }
    stage.state(node).await.unwrap()
}

#[tokio::test]
async fn case_21_status_pings_in_the_log_do_not_keep_the_node() {
    let (stage, node) = seen_by_log().await;
    assert_eq!(pass_pinged(&stage, &node, 25).await, "running");
    let state = pass_pinged(&stage, &node, 15).await;
    assert!(["stopping", "stopped"].contains(&state.as_str()), "{state}");
    assert_eq!(stage.aws.published().await, []);
}

#[tokio::test]
async fn a_request_in_the_log_keeps_the_node_and_the_end_of_a_long_call_counts_from_its_start() {
    let (stage, node) = seen_by_log().await;
    pass_pinged(&stage, &node, 20).await;
    let now = stage.aws.now().await;
    // The call began ten minutes ago and ends now.
    let ended = json!({"time": now.to_rfc3339(), "request": "POST /v1/calls HTTP/1.1", "status": "200", "request_time": "600.0"});
    write(&stage, [(now, ended.to_string())]).await;
    assert_eq!(pass_pinged(&stage, &node, 25).await, "running", "the call ended 25 minutes ago");
    let state = pass_pinged(&stage, &node, 15).await;
    assert!(["stopping", "stopped"].contains(&state.as_str()), "{state}");
}

#[tokio::test]
async fn a_log_that_falls_silent_or_cannot_be_read_is_unknown_and_told() {
    let (stage, node) = seen_by_log().await;
    pass_pinged(&stage, &node, 10).await;
    for _ in 0..10 {
        stage.pass(TimeDelta::minutes(5)).await;
        assert!(stage.tick().await.result.is_ok());
    }
    assert_eq!(stage.state(&node).await.unwrap(), "running");
    let told = stage.aws.published().await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].attributes["kind"], "blind");
}

#[tokio::test]
async fn a_log_is_read_within_its_quota_one_call_after_the_other() {
    let (stage, _) = seen_by_log().await;
    stage.aws.config(json!({"filter_events_per_page": 50})).await;
    let from = stage.aws.now().await;
    stage.pass(TimeDelta::minutes(15)).await;
    write(&stage, pings(from, 15)).await;
    stage.aws.clear_calls().await;
    assert!(stage.tick().await.result.is_ok());
    let pages = stage.aws.calls().await.into_iter().filter(|call| call.action == "FilterLogEvents").count();
    assert_eq!(pages, 3, "105 lines at 50 a page");
}

#[tokio::test]
async fn case_14_an_open_stream_keeps_its_node_and_its_end_frees_it() {
    let stage = Stage::open(nine() - TimeDelta::minutes(4)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", true).await.unwrap();
    let mut stopped_at = None;
    for minute in 0..90 {
        let at = nine() + TimeDelta::minutes(minute);
        stage.aws.set_clock(at).await;
        let mut points = vec![("HealthyHostCount", at - TimeDelta::minutes(1), 1.0)];
        points.extend((minute == 1).then_some(("RequestCount", at - TimeDelta::minutes(1), 1.0)));
        points.extend((minute < 45).then_some(("ActiveConnectionCount", at - TimeDelta::minutes(1), 1.0)));
        stage.put_points(&points).await.unwrap();
        if minute % 5 == 0 {
            stage.tick().await;
        }
        if stopped_at.is_none() && stage.state(&node).await.unwrap() != "running" {
            stopped_at = Some(minute);
        }
    }
    assert_eq!(stopped_at, Some(75), "half an hour after the stream closed at 09:45, on the tick");
}

async fn type_of(stage: &Stage, node: &NodeId) -> String {
    let ec2 = aws_sdk_ec2::Client::new(&stage.sdk);
    let found = ec2.describe_instances().instance_ids(node.as_str()).send().await.unwrap();
    found.reservations()[0].instances()[0].instance_type().unwrap().as_str().to_owned()
}

#[tokio::test]
async fn a_node_without_capacity_starts_as_another_type_and_is_put_back_when_it_sleeps() {
    let mut pools = voice_pools();
    pools["voice"]["instance_types"] = json!(["g6.xlarge", "g5.xlarge", "g4dn.xlarge"]);
    let stage = Stage::open_with(nine() - TimeDelta::minutes(4), &pools, &[]).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    stage.aws.config(json!({"no_capacity_types": ["g6.xlarge", "g5.xlarge"]})).await;
    let (status, answer, _) = stage.prewarm(&Value::Null).await;
    assert_eq!((status, answer["state"].as_str()), (202, Some("starting")), "{answer}");
    assert_eq!(type_of(&stage, &node).await, "g4dn.xlarge");
    let told = stage.aws.published().await;
    assert_eq!(told.len(), 1, "once for the day, though two types were refused: {told:?}");
    let calls = stage.aws.calls().await;
    assert_eq!(calls.iter().filter(|call| call.action == "StartInstances").count(), 3, "one attempt a type");
    for _ in 0..16 {
        let from = stage.aws.now().await;
        stage.pass(TimeDelta::minutes(5)).await;
        stage.prove_alive(from).await.unwrap();
        assert!(stage.tick().await.result.is_ok());
    }
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    assert_eq!(type_of(&stage, &node).await, "g6.xlarge", "its wish is over and it sleeps");
}

#[tokio::test]
async fn case_07_a_quota_is_told_once_and_tries_no_other_type() {
    let mut pools = voice_pools();
    pools["voice"]["instance_types"] = json!(["g6.xlarge", "g5.xlarge"]);
    let stage = Stage::open_with(nine() - TimeDelta::minutes(4), &pools, &[]).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    let quota = json!([{"service": "ec2", "action": "StartInstances", "code": "VcpuLimitExceeded", "status": 400,
        "message": "You have requested more vCPU capacity than your current limit", "times": -1}]);
    stage.aws.faults(quota).await;
    for _ in 0..10 {
        let call = line(stage.aws.now().await, "POST /v1/calls", "voice-app/3.1").replace("\" 200 ", "\" 503 ");
        stage.log_lines(LOG_GROUP, &[call]).await;
        stage.pass(TimeDelta::minutes(5)).await;
        stage.tick().await;
    }
    let calls = stage.aws.calls().await;
    let starts = calls.iter().filter(|call| call.action == "StartInstances").count();
    assert!((2..=4).contains(&starts), "one a backoff step in 50 minutes: {starts}");
    assert_eq!(stage.aws.published().await.len(), 1);
    assert_eq!(type_of(&stage, &node).await, "g6.xlarge");
    let (status, answer, _) = stage.status().await;
    assert_eq!((status, answer["fault"].as_str()), (503, Some("VcpuLimitExceeded")), "{answer}");
}

fn batch_line(run: &Invocation) -> Value {
    let lines = run.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.into_iter().find(|line| line.get("batch").is_some()).unwrap()["batch"].clone()
}

#[tokio::test]
async fn an_unknown_line_is_counted_and_its_shape_is_shown_once() {
    let stage = Stage::open(nine()).await.unwrap();
    let lines = [
        "level=info route=/v1/calls?token=abc key=AKIAIOSFODNN7EXAMPLE".to_owned(),
        r#"{"level":"info","said":"my PIN is 4711","request":{"Authorization":"Basic dXNlcjpwYXNz"}}"#.to_owned(),
    ];
    let shapes = ["aaa…=aaaa aaa…=/a9/aaa…?…", r#"{"level": text, "said": text, "request": {"Authorization": text}}"#];
    let batch = batch_line(&stage.log_lines(LOG_GROUP, &lines).await);
    assert_eq!((&batch["unread"], &batch["unread_sample"]), (&json!(2), &json!(shapes[0])));
    let batch = batch_line(&stage.log_lines(LOG_GROUP, &lines[1..]).await);
    assert_eq!((&batch["unread"], &batch["unread_sample"]), (&json!(1), &json!(shapes[1])));
}
