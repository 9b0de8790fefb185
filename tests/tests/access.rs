//! Who may ask the built wake function, and what a caller can do to it: nothing that is not asked for with a token, and
//! nothing that shows in a log.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use reveille::domain::NodeId;
use reveille_tests::runtime_api::Invocation;
use reveille_tests::stage::{Stage, TOKEN, http_answer};
use serde_json::{Value, json};

/// A stage at nine o'clock with one sleeping node.
async fn asleep() -> (Stage, NodeId) {
    let nine: DateTime<Utc> = "2026-11-30T09:00:00Z".parse().unwrap();
    let stage = Stage::open(nine - TimeDelta::minutes(4)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    stage.aws.clear_calls().await;
    (stage, node)
}

fn bearer(token: &str) -> Value {
    json!({"authorization": format!("Bearer {token}"), "content-type": "application/json"})
}

fn event(method: &str, path: &str, headers: &Value, body: &str) -> Value {
    json!({"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers,
        "requestContext": {"http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"}},
        "body": body, "isBase64Encoded": false})
}

/// Asserts that the answer is a problem document of RFC 9457 with this status.
fn assert_problem(run: &Invocation, status: u16, case: &str) {
    let (seen, body) = http_answer(run);
    assert_eq!(seen, status, "{case}: {run:?}");
    let reply = run.result.as_ref().unwrap();
    assert_eq!(reply["headers"]["content-type"], "application/problem+json", "{case}: {reply}");
    assert_eq!((&body["type"], &body["status"]), (&json!("about:blank"), &json!(status)), "{case}: {body}");
    assert!(body["title"].is_string() && body["detail"].is_string(), "{case}: {body}");
}

#[tokio::test]
async fn a_caller_without_a_valid_token_is_refused_before_anything_is_read() {
    let (stage, node) = asleep().await;
    let headers = [json!({}), bearer("wrong"), bearer(""), json!({"authorization": format!("Basic {TOKEN}")})];
    let requests = [
        ("POST", "/wake", ""),
        ("POST", "/wake", "not JSON"),
        ("POST", "/wake", &"x".repeat(5000)),
        ("GET", "/wake", ""),
        ("GET", "/status", ""),
        ("PUT", "/leases/a", "{}"),
        ("GET", "/", ""),
        ("GET", "/admin", ""),
    ];
    for (method, path, body) in requests {
        for headers in &headers {
            let run = stage.wake.invoke(&event(method, path, headers, body)).await;
            assert_problem(&run, 401, &format!("{method} {path} {headers}"));
            assert_eq!(run.result.unwrap()["headers"]["www-authenticate"], "Bearer");
        }
    }
    assert_eq!(stage.aws.calls().await, [], "neither the ledger nor EC2 was asked");
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    assert_eq!(http_answer(&stage.wake.invoke(&event("POST", "/wake", &bearer(TOKEN), "")).await).0, 202);
}

#[tokio::test]
async fn with_iam_only_a_caller_that_lambda_has_verified_is_let_in() {
    let (stage, _) = asleep().await;
    let wake = stage.function_with("wake", &[("REVEILLE_ACCESS", "iam"), ("REVEILLE_TOKEN_SHA256", "")]).unwrap();
    let mut request = event("POST", "/wake", &bearer(TOKEN), "");
    assert_problem(&wake.invoke(&request).await, 401, "nobody verified the caller");
    assert_eq!(stage.aws.calls().await, [], "neither the ledger nor EC2 was asked");
    request["requestContext"]["authorizer"] = json!({"iam": {"accountId": "123456789012", "accessKey": "AKIAEXAMPLE",
        "userArn": "arn:aws:sts::123456789012:assumed-role/front/session-7", "userId": "AROAEXAMPLE:session-7"}});
    let run = wake.invoke(&request).await;
    assert_eq!(http_answer(&run).0, 202, "{run:?}");
    let text = run.logs.join("\n");
    assert!(text.contains("iam:front"), "who woke it is in the log: {text}");
    for private in ["session-7", "AKIAEXAMPLE", "AROAEXAMPLE", "assumed-role"] {
        assert!(!text.contains(private), "{private}: {text}");
    }
}

#[tokio::test]
async fn no_log_line_holds_a_token_a_header_a_path_a_query_or_a_body() {
    let (stage, _) = asleep().await;
    let good_body = r#"{ "pool" : "voice" }"#;
    let with_query = |mut event: Value, query: &str, pool: &str| {
        event["rawQueryString"] = json!(query);
        event["queryStringParameters"] = json!({"pool": pool});
        event
    };
    let mut good = bearer(TOKEN);
    good["user-agent"] = json!("xyzzy-agent");
    good["x-other"] = json!("xyzzy-header");
    good["cookie"] = json!("xyzzy-cookie");
    let mut not_text = event("POST", "/wake", &good, "xyzzy-body");
    not_text["isBase64Encoded"] = json!(true);
    let mut broken = event("POST", "/wake", &good, "xyzzy-body");
    broken["requestContext"]["timeEpoch"] = json!("xyzzy-time");
    let events = [
        event("POST", "/wake", &good, good_body),
        with_query(event("GET", "/status", &good, ""), "pool=voice", "voice"),
        with_query(event("GET", "/status", &good, ""), "pool=xyzzy-query", "xyzzy-query"),
        with_query(event("GET", "/status", &bearer("xyzzy-token"), ""), "pool=xyzzy-query", "xyzzy-query"),
        event("POST", "/wake", &bearer("xyzzy-token"), "xyzzy-body"),
        event("POST", "/wake", &good, "xyzzy-body"),
        event("POST", "/wake", &good, r#"{"xyzzy-body": 1}"#),
        event("POST", "/wake", &good, r#"{"pool": "xyzzy-body"}"#),
        event("POST", "/wake", &good, r#"{"pool": "xyzzy body"}"#),
        event("POST", "/wake", &good, r#"{"node": "xyzzy-body"}"#),
        event("POST", "/wake", &good, &"xyzzy-body".repeat(1000)),
        event("xyzzy-method", "/xyzzy-path", &good, ""),
        not_text,
        broken,
    ];
    for event in &events {
        let run = stage.wake.invoke(event).await;
        let answer = run.result.map_or_else(|error| error.to_string(), |answer| answer.to_string());
        assert!(!answer.contains("xyzzy"), "an answer repeats nothing that was sent: {answer}");
    }
    let lines = stage.wake.logs();
    assert!(lines.len() > events.len(), "{lines:?}");
    let escaped = good_body.replace('"', "\\\"");
    for secret in [TOKEN, "xyzzy", "Bearer", "pool=voice", good_body, &escaped] {
        assert_eq!(lines.iter().find(|line| line.contains(secret)), None, "{secret}");
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused_or_harmless() {
    let (stage, node) = asleep().await;
    let good = bearer(TOKEN);
    let padded = |bytes: usize| r#"{"node": "nobody"}"#.to_owned() + &" ".repeat(bytes - 18);
    let base64 = |bytes: usize| {
        let mut event = event("POST", "/wake", &good, &STANDARD.encode(padded(bytes)));
        event["isBase64Encoded"] = json!(true);
        event
    };
    let mut headers = good.clone();
    headers["x-huge"] = json!("h".repeat(1 << 20));
    let mut query = event("GET", "/status", &good, "");
    query["rawQueryString"] = json!(format!("pool={}", "q".repeat(1 << 20)));
    query["queryStringParameters"] = json!({"pool": "q".repeat(1 << 20)});
    let rows = [
        ("a body of 4096 bytes", event("POST", "/wake", &good, &padded(4096)), 404),
        ("a body of 4097 bytes", event("POST", "/wake", &good, &padded(4097)), 413),
        ("base64 of 4096 bytes", base64(4096), 404),
        ("base64 of 4097 bytes", base64(4097), 413),
        ("base64 of 4098 bytes, as long as that of 4096", base64(4098), 413),
        ("base64 of 3 MB", base64(3 << 20), 413),
        ("a body of 5 MB", event("POST", "/wake", &good, &padded(5 << 20)), 413),
        ("a huge path", event("POST", &format!("/wake/{}", "p".repeat(1 << 20)), &good, ""), 404),
        ("a huge query", query, 400),
        ("a huge token", event("POST", "/wake", &bearer(&"t".repeat(1 << 20)), ""), 401),
        ("a huge header", event("GET", "/admin", &headers, ""), 404),
    ];
    for (name, event, status) in rows {
        let run = stage.wake.invoke(&event).await;
        assert!(http_answer(&run).1.to_string().len() < 300, "{name}: the answer stays small");
        assert_problem(&run, status, name);
        assert!(run.logs.iter().all(|line| line.len() < 500), "{name}: so does the log");
    }
    let calls = stage.aws.calls().await;
    assert!(
        calls.iter().all(|call| call.action.starts_with("Describe") || call.action.starts_with("BatchGet")),
        "{calls:?}"
    );
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
}
