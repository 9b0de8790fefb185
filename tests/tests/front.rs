//! The built wake function behind its URL, asked over real HTTP.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use reveille::domain::NodeId;
use reveille_tests::client::{ask, bearer};
use reveille_tests::front::{FrontSpec, UrlAuth, serve};
use reveille_tests::runtime_api::LocalServer;
use reveille_tests::stage::{Stage, http_answer, root};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A stage at nine o'clock with one sleeping node, and its wake function's URL.
async fn asleep() -> (Stage, NodeId, LocalServer) {
    let nine: DateTime<Utc> = "2026-11-30T09:00:00Z".parse().unwrap();
    let stage = Stage::open(nine - TimeDelta::minutes(4)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    stage.aws.clear_calls().await;
    let url = serve(Arc::clone(&stage.wake), FrontSpec::default()).await.unwrap();
    (stage, node, url)
}

/// The calls that changed something or tried to.
async fn changes(stage: &Stage) -> Vec<String> {
    let calls = stage.aws.calls().await.into_iter().map(|call| call.action);
    calls.filter(|action| !action.starts_with("Describe") && action != "BatchGetItem").collect()
}

#[tokio::test]
async fn two_hundred_callers_in_two_seconds_make_one_start_and_all_are_answered() {
    let (stage, node, url) = asleep().await;
    let token = bearer();
    let call = |n: u64| {
        let (url, token) = (&url, token.as_str());
        async move {
            tokio::time::sleep(Duration::from_millis(10 * n)).await;
            ask(url, "POST", "/wake", &[("authorization", token)], "").await
        }
    };
    let answers = join_all((0..200).map(call)).await;
    let statuses: BTreeSet<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    assert_eq!(statuses, BTreeSet::from([202]));
    assert!(
        answers.iter().all(|answer| answer.body["state"] == "starting" && answer.headers.contains_key("retry-after"))
    );
    let starts: Vec<_> = stage.aws.calls().await.into_iter().filter(|call| call.action == "StartInstances").collect();
    assert_eq!(starts.len(), 1, "{starts:?}");
    assert_eq!(stage.state(&node).await.unwrap(), "pending");
}

#[tokio::test]
async fn what_a_caller_does_wrong_is_a_problem_document_and_changes_nothing() {
    let (stage, node, url) = asleep().await;
    let token = bearer();
    let (good, json) = (("authorization", token.as_str()), ("content-type", "application/json"));
    let wrong = ("authorization", "Bearer wrong");
    let too_long = "x".repeat(4097);
    let huge = format!("/status?pool={}", "x".repeat(20_000));
    let rows = [
        ("a body too long", "POST", "/wake", vec![good, json], too_long.as_str(), 413),
        ("a body too long, of no type", "POST", "/wake", vec![good], too_long.as_str(), 413),
        ("no JSON", "POST", "/wake", vec![good, json], "pool=voice", 400),
        ("no JSON, of no type", "POST", "/wake", vec![good], "pool=voice", 400),
        ("an unknown node", "POST", "/wake", vec![good, json], r#"{"node": "nobody"}"#, 404),
        ("an unknown pool", "GET", "/status?pool=nobody", vec![good], "", 404),
        ("a huge query", "GET", &huge, vec![good], "", 400),
        ("a pool twice", "GET", "/status?pool=voice&pool=voice", vec![good], "", 400),
        ("an unknown path", "GET", "/admin", vec![good], "", 404),
        ("another method", "GET", "/wake", vec![good], "", 405),
        ("a wrong token", "POST", "/wake", vec![wrong], "", 401),
        ("a wrong token and path", "GET", "/admin", vec![wrong], "", 401),
        ("no token", "GET", "/status", vec![], "", 401),
        ("a token twice", "POST", "/wake", vec![good, good], "", 401),
    ];
    for (name, method, path, headers, body, status) in rows {
        let answer = ask(&url, method, path, &headers, body).await;
        let title = answer.status.canonical_reason();
        assert_eq!(answer.status, status, "{name}: {}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{name}");
        assert_eq!(answer.headers["cache-control"], "no-store", "{name}");
        assert_eq!(answer.body["type"], "about:blank", "{name}");
        assert_eq!((&answer.body["status"], answer.body["title"].as_str()), (&json!(status), title), "{name}");
        assert!(answer.body["detail"].is_string(), "{name}: {}", answer.body);
        let challenge = answer.headers.get("x-amzn-remapped-www-authenticate").map(|value| value.to_str().unwrap());
        assert_eq!(challenge, (status == 401).then_some("Bearer"), "{name}");
        assert_eq!(answer.headers.get("allow").is_some(), status == 405, "{name}");
    }
    // What no request over HTTP can be made into: the URL encodes the body itself.
    let event = std::fs::read_to_string(root().join("events/wake/prewarm_bad_base64.json")).unwrap();
    let run = stage.wake.invoke(&serde_json::from_str(&event).unwrap()).await;
    assert_eq!(http_answer(&run).0, 400, "{run:?}");
    assert_eq!(changes(&stage).await, Vec::<String>::new(), "neither the ledger nor EC2 was changed");
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
}

#[tokio::test]
async fn a_caller_waits_for_its_node_by_the_answers_alone() {
    let (stage, _, url) = asleep().await;
    let token = bearer();
    let good = [("authorization", token.as_str()), ("content-type", "application/json")];
    assert_eq!(ask(&url, "GET", "/status", &good, "").await.status, 503);
    assert_eq!(ask(&url, "POST", "/wake", &good, r#"{"node": "gpu-1"}"#).await.status, 202);
    let starting = ask(&url, "GET", "/status?node=gpu-1", &good, "").await;
    assert_eq!(starting.status, 202, "{}", starting.body);
    stage.pass(TimeDelta::minutes(3)).await;
    let ready = ask(&url, "GET", "/status?node=gpu%2D1", &good, "").await;
    assert_eq!((ready.status.as_u16(), &ready.body["state"]), (200, &json!("ready")), "{}", ready.body);
}

#[tokio::test]
async fn behind_aws_iam_the_url_says_who_asks() {
    let (stage, _, _) = asleep().await;
    let wake = stage.function_with("wake", &[("REVEILLE_ACCESS", "iam"), ("REVEILLE_TOKEN_SHA256", "")]).unwrap();
    let wake = Arc::new(wake);
    let user_arn = "arn:aws:sts::123456789012:assumed-role/front/i-0abc".to_owned();
    let spec = FrontSpec { auth: UrlAuth::Iam { user_arn }, ..FrontSpec::default() };
    let (verified, open) =
        (serve(Arc::clone(&wake), spec).await.unwrap(), serve(Arc::clone(&wake), FrontSpec::default()).await.unwrap());
    let signed = [("authorization", "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261130/us-east-1/lambda/aws4_request")];
    assert_eq!(ask(&verified, "POST", "/wake", &[], "").await.status, 403, "the URL itself refuses");
    assert_eq!(ask(&open, "POST", "/wake", &signed, "").await.status, 401, "a URL that verifies nothing");
    assert_eq!(changes(&stage).await, Vec::<String>::new());
    assert_eq!(ask(&verified, "POST", "/wake", &signed, "").await.status, 202);
    let lines = wake.logs();
    assert!(lines.iter().any(|line| line.contains("iam:front")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("AKIAEXAMPLE")), "{lines:?}");
}
