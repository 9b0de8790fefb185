//! More inputs of the kinds that the field cases report, through the built functions on the local AWS: what a service, a
//! caller or a person may send that no case has written down.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use aws_config::SdkConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use reveille::aws::Aws;
use reveille::domain::NodeId;
use reveille::run::{Answer, Call};
use reveille_tests::runtime_api::Invocation;
use reveille_tests::stage::{LOAD_BALANCER, LOG_GROUP, Stage, TABLE, TOKEN, http_answer, pool_behind};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn nine() -> DateTime<Utc> {
    "2026-11-30T09:00:00Z".parse().unwrap()
}

/// A stage with one node that has been running, proved alive and unused for an hour.
async fn idle() -> (Stage, NodeId) {
    let stage = Stage::open(nine() - TimeDelta::minutes(62)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", true).await.unwrap();
    stage.pass(TimeDelta::minutes(60)).await;
    (stage, node)
}

/// Five minutes with a live load balancer, and a tick at their end.
async fn tick(stage: &Stage) -> Invocation {
    stage.pass(TimeDelta::minutes(5)).await;
    let now = stage.aws.now().await;
    stage.prove_alive(now - TimeDelta::minutes(70)).await.unwrap();
    stage.tick().await
}

async fn write(stage: &Stage, attribute: &str, value: Option<AttributeValue>) {
    let dynamodb = aws_sdk_dynamodb::Client::new(&stage.sdk);
    let key = |text: &str| AttributeValue::S(text.into());
    let update = dynamodb.update_item().table_name(TABLE).key("pk", key("pool#voice")).key("sk", key("-"));
    let update = update.expression_attribute_names("#a", attribute);
    match value {
        Some(value) => update.update_expression("SET #a = :a").expression_attribute_values(":a", value),
        None => update.update_expression("REMOVE #a"),
    }
    .send()
    .await
    .unwrap();
}

async fn forget(stage: &Stage) {
    let dynamodb = aws_sdk_dynamodb::Client::new(&stage.sdk);
    let key = |text: &str| AttributeValue::S(text.into());
    let delete = dynamodb.delete_item().table_name(TABLE).key("pk", key("pool#voice")).key("sk", key("-"));
    delete.send().await.unwrap();
}

#[tokio::test]
async fn case_23_a_counter_that_is_no_number_is_told_also_while_the_node_sleeps() {
    for counter in ["demand", "claims"] {
        let (stage, node) = idle().await;
        aws_sdk_ec2::Client::new(&stage.sdk).stop_instances().instance_ids(node.as_str()).send().await.unwrap();
        write(&stage, counter, Some(AttributeValue::S("7".into()))).await;
        stage.prewarm(&Value::Null).await;
        assert_eq!(stage.state(&node).await.unwrap(), "stopping", "{counter}");
        for _ in 0..3 {
            tick(&stage).await;
        }
        let told = stage.aws.published().await;
        assert_eq!(told.len(), 1, "{counter}: {told:?}");
        assert!(told[0].message.contains(counter), "{told:?}");
        write(&stage, counter, None).await;
        assert_eq!(stage.prewarm(&Value::Null).await.0, 202, "{counter}");
        assert_eq!(stage.state(&node).await.unwrap(), "pending", "{counter}");
    }
}

#[tokio::test]
async fn case_23_a_gate_of_null_is_a_closed_gate_that_says_what_to_do() {
    let (stage, _) = idle().await;
    write(&stage, "gate", Some(AttributeValue::Null(true))).await;
    let (status, answer, run) = stage.prewarm(&Value::Null).await;
    assert_eq!((status, answer["state"].as_str()), (403, Some("gate_closed")), "{run:?}");
}

async fn stop_by_hand(stage: &Stage, node: &NodeId) {
    aws_sdk_ec2::Client::new(&stage.sdk).stop_instances().instance_ids(node.as_str()).send().await.unwrap();
    stage.pass(TimeDelta::minutes(2)).await;
}

/// Off again, and nothing is known of it.
async fn sleep_again(stage: &Stage, node: &NodeId) {
    stage.pass(TimeDelta::minutes(1)).await;
    stop_by_hand(stage, node).await;
    forget(stage).await;
}

async fn count(stage: &Stage, action: &str) -> usize {
    stage.aws.calls().await.iter().filter(|call| call.action == action).count()
}

fn fault(action: &str, code: &str, status: u16) -> Value {
    json!({"service": "ec2", "action": action, "code": code, "status": status, "message": "no", "times": 1})
}

fn reasons(run: &Invocation) -> BTreeSet<String> {
    let lines = run.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|line| line["decided"] == json!(true))
        .map(|line| line["reason"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn case_01_a_pending_node_is_kept_and_a_refused_stop_of_another_is_not_now() {
    let (stage, idle) = idle().await;
    let booting = stage.add_node("gpu-2", "voice", false).await.unwrap();
    for _ in 0..7 {
        tick(&stage).await;
    }
    assert_eq!(stage.state(&idle).await.unwrap(), "stopping");
    sleep_again(&stage, &idle).await;
    stage.aws.config(json!({"instance": booting.as_str(), "pending_seconds": 3600})).await;
    stage.start_by_hand(&booting).await.unwrap();
    stage.start_by_hand(&idle).await.unwrap();
    stage.pass(TimeDelta::minutes(2)).await;
    tick(&stage).await;
    stage.aws.faults(json!([fault("StopInstances", "IncorrectInstanceState", 400)])).await;
    stage.aws.clear_calls().await;
    for _ in 0..6 {
        let run = tick(&stage).await;
        assert!(run.result.is_ok() && reasons(&run).contains("still_pending"), "{run:?}");
    }
    assert_eq!(stage.state(&idle).await.unwrap(), "running", "refused once");
    tick(&stage).await;
    assert_eq!(stage.state(&idle).await.unwrap(), "stopping");
    let stops = stage.aws.calls().await.into_iter().filter(|call| call.action == "StopInstances");
    assert!(stops.map(|call| call.target).all(|target| target.as_deref() == Some(idle.as_str())));
    assert_eq!(stage.aws.published().await.len(), 0, "nobody is woken up at night");
}

#[tokio::test]
async fn case_06_a_refusal_of_any_kind_is_told_as_one_and_keeps_the_wake() {
    let (stage, node) = idle().await;
    stop_by_hand(&stage, &node).await;
    // (code, its status, what the caller is told, the minutes within which it is tried again, whether a person is told)
    let rows = [
        ("InsufficientReservedInstanceCapacity", 500, "no_capacity", 5, true),
        ("InsufficientAddressCapacity", 500, "no_capacity", 5, true),
        ("InsufficientVolumeCapacity", 500, "no_capacity", 5, true),
        ("BandwidthLimitExceeded", 503, "fault", 5, false),
        ("SomethingNew", 400, "fault", 5, true),
        ("Unsupported", 400, "fault", 15, true),
        ("PendingVerification", 400, "fault", 15, true),
        ("AddressLimitExceeded", 400, "fault", 15, true),
    ];
    for (code, status, state, minutes, is_told) in rows {
        let told = stage.aws.published().await.len();
        stage.aws.faults(json!([fault("StartInstances", code, status)])).await;
        let (http, answer, _) = stage.prewarm(&Value::Null).await;
        assert_eq!(
            (http, answer["state"].as_str(), answer["fault"].as_str()),
            (503, Some(state), Some(code)),
            "{answer}"
        );
        for _ in 0..minutes / 5 {
            assert_eq!(stage.state(&node).await.unwrap(), "stopped", "{code}");
            tick(&stage).await;
        }
        assert_eq!(stage.state(&node).await.unwrap(), "pending", "{code}");
        assert_eq!(stage.aws.published().await.len() - told, usize::from(is_told), "{code}");
        sleep_again(&stage, &node).await;
    }
}

#[tokio::test]
async fn case_12_a_list_that_breaks_off_at_its_second_page_is_no_list() {
    let (stage, node) = idle().await;
    tick(&stage).await;
    stage.aws.config(json!({"empty_first_page": true})).await;
    let broken = json!([{"service": "ec2", "action": "DescribeInstances", "match": "NextToken", "code": "InternalError",
        "status": 500, "message": "no", "times": -1}]);
    stage.aws.faults(broken).await;
    for _ in 0..3 {
        let run = tick(&stage).await;
        assert!(run.result.is_err(), "{run:?}");
        assert_eq!(reasons(&run), BTreeSet::from(["signals_unknown".to_owned()]), "{run:?}");
    }
    let (status, answer, _) = stage.prewarm(&Value::Null).await;
    assert_eq!((status, answer["reason"].as_str()), (503, Some("cannot_look")), "not `no_node`: {answer}");
    assert_eq!(stage.state(&node).await.unwrap(), "running");
    let kinds: Vec<_> = stage.aws.published().await.into_iter().map(|told| told.attributes["kind"].clone()).collect();
    assert_eq!(kinds, ["blind"]);
}

/// An EC2 whose every page is empty and names this next one, and how often it was asked.
async fn endless_pages(stage: &Stage, token: &'static str) -> (SdkConfig, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let page = move || {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            let set = format!("<reservationSet/><nextToken>{token}</nextToken>");
            format!(
                r#"<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">{set}</DescribeInstancesResponse>"#
            )
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(page)).await });
    (stage.sdk.to_builder().endpoint_url(endpoint).build(), asked)
}

#[tokio::test]
async fn case_12_a_page_that_names_itself_as_the_next_one_ends_in_an_error() {
    let stage = Stage::open(nine()).await.unwrap();
    let (sdk, asked) = endless_pages(&stage, "again").await;
    let answer = Aws::with(&sdk, &stage.config()).answer(&Call::DescribeNodes { pools: None }).await;
    assert!(matches!(answer, Answer::Nodes(Err(_))), "{answer:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn case_17_one_request_half_an_hour_ago_keeps_the_node() {
    let (stage, node) = idle().await;
    tick(&stage).await;
    let at = stage.aws.now().await - TimeDelta::minutes(1);
    stage.put_points(&[("RequestCount", at, 1.0)]).await.unwrap();
    for _ in 0..5 {
        tick(&stage).await;
    }
    assert_eq!(stage.state(&node).await.unwrap(), "running");
    for _ in 0..2 {
        tick(&stage).await;
    }
    assert_ne!(stage.state(&node).await.unwrap(), "running");
}

#[tokio::test]
async fn case_33_every_scheduled_function_takes_any_payload() {
    let (stage, _) = idle().await;
    for payload in
        [json!({"node": "gpu-1"}), json!({}), Value::Null, json!([1]), json!("tick"), json!({"detail": null})]
    {
        for function in [&stage.idle, &stage.uptime, &stage.budget] {
            let run = function.invoke(&payload).await;
            assert!(run.result.is_ok() && !reasons(&run).is_empty(), "{payload}: {run:?}");
        }
    }
}

#[tokio::test]
async fn case_19_a_load_balancer_by_its_arn_is_seen_and_one_by_its_name_arms_nothing() {
    let arn = format!("arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/{LOAD_BALANCER}");
    for (balancer, expected) in
        [(arn.as_str(), "stopping"), ("voice", "running"), ("app/other/0123456789abcdef", "running")]
    {
        let pools = json!({"voice": pool_behind(balancer)});
        let stage = Stage::open_with(nine() - TimeDelta::minutes(62), &pools, &[]).await.unwrap();
        let node = stage.add_node("gpu-1", "voice", true).await.unwrap();
        stage.pass(TimeDelta::minutes(60)).await;
        let mut last = None;
        for _ in 0..7 {
            last = Some(tick(&stage).await);
        }
        assert_eq!(stage.state(&node).await.unwrap(), expected, "{balancer}: {last:?}");
        let (told, failed) = (stage.aws.published().await.len(), last.unwrap().result.is_err());
        let is_shown = told > 0 || failed;
        assert_eq!(is_shown, expected == "running", "{balancer}");
    }
}

#[tokio::test]
async fn case_22_looking_at_the_status_page_keeps_no_node() {
    let (stage, node) = idle().await;
    for _ in 0..7 {
        for _ in 0..5 {
            assert_eq!(stage.status().await.0, 200);
        }
        tick(&stage).await;
    }
    assert_eq!((stage.state(&node).await.unwrap().as_str(), count(&stage, "StartInstances").await), ("stopping", 0));
}

#[tokio::test]
async fn case_25_a_hold_is_followed_whatever_its_case_and_one_that_cannot_be_read_is_told() {
    // (key, value, whether it keeps the node, whether a person is told)
    let rows = [
        ("Reveille:Keep-Until", "2026-11-30t23:00z", true, false),
        ("reveille:keep-until", "2026-11-30T09:10Z", false, false),
        ("reveille:keep-until", "until tomorrow", true, true),
        ("keep_awake", "yes", true, true),
    ];
    for (key, value, keeps, is_told) in rows {
        let (stage, node) = idle().await;
        let tag = aws_sdk_ec2::types::Tag::builder().key(key).value(value).build();
        aws_sdk_ec2::Client::new(&stage.sdk).create_tags().resources(node.as_str()).tags(tag).send().await.unwrap();
        for _ in 0..8 {
            tick(&stage).await;
        }
        assert_eq!(stage.state(&node).await.unwrap() == "running", keeps, "{key}={value}");
        assert_eq!(stage.aws.published().await.len(), usize::from(is_told), "{key}={value}");
    }
}

fn gzip(parts: &[&[u8]]) -> Vec<u8> {
    let pack = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    parts.iter().flat_map(|part| pack(part)).collect()
}

fn batch_of(data: &[u8]) -> Value {
    json!({"awslogs": {"data": STANDARD.encode(data)}})
}

/// A batch whose events are this JSON.
fn with_events(events: &str) -> String {
    format!(r#"{{"messageType":"DATA_MESSAGE","logGroup":"{LOG_GROUP}","logEvents":{events}}}"#)
}

fn call_line() -> String {
    r#"[{"id":"e","timestamp":1796040000000,"message":"192.0.2.7 - - [30/Nov/2026:09:30:00 +0000] \"POST /v1/calls HTTP/1.1\" 503 3 \"-\" \"app\""}]"#.to_owned()
}

#[tokio::test]
async fn case_28_to_32_batches_of_every_shape_wake_or_fail_by_what_was_read() {
    let (stage, node) = idle().await;
    stop_by_hand(&stage, &node).await;
    let call = with_events(&call_line());
    let (head, tail) = call.split_at(call.len() / 2);
    let line = |message: &str| with_events(&json!([{"id": "e", "message": message}]).to_string());
    let many =
        format!("[{}{}]", r#"{"message":"GET /healthz"},"#.repeat(50_000), &call_line()[1..call_line().len() - 1]);
    // (name, the packed data, "started", "quiet" or "error")
    let rows: Vec<(&str, Vec<u8>, &str)> = vec![
        ("as it should be", gzip(&[call.as_bytes()]), "started"),
        ("in two gzip members", gzip(&[head.as_bytes(), tail.as_bytes()]), "started"),
        ("rubbish behind the gzip", [gzip(&[call.as_bytes()]), b"rubbish".to_vec()].concat(), "started"),
        ("cut in the check sum", gzip(&[call.as_bytes()])[..gzip(&[call.as_bytes()]).len() - 3].to_vec(), "started"),
        ("rubbish behind a quiet one", [gzip(&[with_events("[]").as_bytes()]), b"rubbish".to_vec()].concat(), "error"),
        ("a message of another type", gzip(&[call.replace("DATA_MESSAGE", "HEALTH_MESSAGE").as_bytes()]), "quiet"),
        ("no events", gzip(&[with_events("[]").as_bytes()]), "quiet"),
        ("events of null", gzip(&[with_events("null").as_bytes()]), "error"),
        ("an event of null", gzip(&[with_events("[null]").as_bytes()]), "error"),
        ("an event of nothing", gzip(&[with_events("[{}]").as_bytes()]), "quiet"),
        (
            "a huge id",
            gzip(&[with_events(&call_line().replace("\"e\"", &format!("\"{}\"", "9".repeat(100_000)))).as_bytes()]),
            "started",
        ),
        ("no group", gzip(&[call.replace("logGroup", "group").as_bytes()]), "error"),
        ("the last of 50 000 lines", gzip(&[with_events(&many).as_bytes()]), "started"),
        (
            "a blank in the URL",
            gzip(&[line(
                "192.0.2.7 - - [30/Nov/2026:09:30:00 +0000] \"GET /v1/calls?q=a b c HTTP/1.1\" 200 3 \"-\" \"app\"",
            )
            .as_bytes()]),
            "started",
        ),
        (
            "JSON that is none",
            gzip(&[
                line(r#"{"request":"GET /v1/calls HTTP/1.1","status":"200","ua":"x \xC3\xA9 \x22y\x22"}"#).as_bytes()
            ]),
            "started",
        ),
        (
            "Chinese",
            gzip(&[line(
                "192.0.2.7 - - [30/Nov/2026:09:30:00 +0000] \"GET /v1/calls/搜索?q=é HTTP/1.1\" 200 3 \"-\" \"app\"",
            )
            .as_bytes()]),
            "started",
        ),
        ("a long one of zeros", gzip(&[&vec![0; 1 << 20]]), "error"),
        (
            "too big to read",
            gzip(&[with_events("[").trim_end_matches('}').as_bytes(), &vec![b' '; 40 << 20]]),
            "started",
        ),
    ];
    for (name, data, expected) in rows {
        let run = stage.wake.invoke(&batch_of(&data)).await;
        let seen = match (&run.result, stage.state(&node).await.unwrap().as_str()) {
            (Err(_), "stopped") => "error",
            (Ok(_), "stopped") => "quiet",
            (Ok(_), "pending") => "started",
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(seen, expected, "{name}: {run:?}");
        if seen == "started" {
            sleep_again(&stage, &node).await;
        }
    }
    let told = stage.aws.published().await;
    assert_eq!(told.len(), 1, "of the one that is too big: {told:?}");
}

#[tokio::test]
async fn case_34_requests_of_every_shape_get_an_http_answer() {
    let (stage, _) = idle().await;
    let event = json!({"version": "2.0", "rawPath": "/wake", "rawQueryString": "",
        "headers": {"authorization": format!("Bearer {TOKEN}")}, "isBase64Encoded": false,
        "requestContext": {"http": {"method": "POST", "path": "/wake", "sourceIp": "192.0.2.1"}}});
    let base64 = |text: &str| json!({"isBase64Encoded": true, "body": STANDARD.encode(text)});
    let path = |path: &str| json!({"rawPath": path});
    let method = |method: &str| json!({"requestContext": {"http": {"method": method, "path": "/wake"}}});
    let body = |body: &str| json!({"body": body});
    let rows = [
        ("the case", base64(r#"{"node":"gpu-1"}"#), 200),
        ("no body", json!({"isBase64Encoded": true, "body": null}), 200),
        ("an empty body", json!({"isBase64Encoded": true, "body": ""}), 200),
        ("blanks for a body", base64("  \n"), 200),
        ("no base64", json!({"isBase64Encoded": true, "body": "%%%"}), 400),
        ("base64 of no text", json!({"isBase64Encoded": true, "body": "//79"}), 400),
        ("base64 without its padding", json!({"isBase64Encoded": true, "body": "e30"}), 400),
        ("a form", base64("node=gpu-1"), 400),
        ("a key twice", body(r#"{"node":"gpu-1","node":"gpu-2"}"#), 400),
        ("a deep one", body(&"[".repeat(4000)), 400),
        ("6 MB", body(&"x".repeat(6_000_000)), 413),
        (
            "null for everything that may be absent",
            json!({"isBase64Encoded": null, "body": null, "cookies": null, "queryStringParameters": null, "rawQueryString": null,
                "requestContext": {"timeEpoch": null, "authorizer": null, "http": {"method": "POST", "path": "/wake", "sourceIp": null}}}),
            200,
        ),
        ("a header of null", json!({"headers": {"authorization": format!("Bearer {TOKEN}"), "x-a": null}}), 200),
        ("no headers", json!({"headers": null}), 401),
        ("a header in capitals", json!({"headers": {"AUTHORIZATION": format!("Bearer {TOKEN}")}}), 200),
        (
            "cookies and a query",
            json!({"cookies": ["a=b"], "rawQueryString": "a=b&a=c", "queryStringParameters": {"a": "b,c"}}),
            200,
        ),
        ("a slash behind", path("/wake/"), 200),
        ("two slashes before", path("//wake"), 404),
        ("an encoded letter", path("/%77ake"), 404),
        ("a way around", path("/x/../wake"), 404),
        ("only the other path", json!({"rawPath": null}), 200),
        ("HEAD", method("HEAD"), 405),
        ("OPTIONS", method("OPTIONS"), 405),
        ("no method of HTTP", method("WAKE UP"), 405),
        ("no method", json!({"requestContext": {"http": {"path": "/wake"}}}), 405),
    ];
    for (name, changes, expected) in rows {
        let mut event = event.clone();
        changes.as_object().unwrap().iter().for_each(|(field, value)| event[field] = value.clone());
        let run = stage.wake.invoke(&event).await;
        assert_eq!(http_answer(&run).0, expected, "{name}: {:?}", run.result);
    }
}

#[tokio::test]
async fn case_42_a_node_that_runs_and_never_is_ready_is_told_and_stopped_whoever_keeps_asking() {
    let (stage, node) = idle().await;
    stop_by_hand(&stage, &node).await;
    stage.aws.config(json!({"instance": node.as_str(), "status_ok_seconds": 360_000})).await;
    let mut states = BTreeSet::new();
    for _ in 0..9 {
        for _ in 0..3 {
            let (status, answer, run) = stage.prewarm(&Value::Null).await;
            assert!(
                status == 202 || (status == 503 && answer["state"] == "fault"),
                "never ready: {status} {answer} {run:?}"
            );
            states.insert(answer["state"].as_str().unwrap().to_owned());
        }
        tick(&stage).await;
    }
    let told: Vec<_> = stage.aws.published().await.into_iter().map(|told| told.attributes["kind"].clone()).collect();
    assert!(told.iter().all(|kind| kind == "not_ready") && !told.is_empty(), "{told:?}");
    let (starts, stops) = (count(&stage, "StartInstances").await, count(&stage, "StopInstances").await);
    // One STOP was by hand.
    assert_eq!((starts, stops - 1), (2, 2), "started once more, then left stopped: {states:?}");
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
}
