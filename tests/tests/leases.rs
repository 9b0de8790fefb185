//! Calls and the nodes they hold, through the built functions and the function URL.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use reveille::aws::BeatWriter;
use reveille::domain::{Beat, NodeId};
use reveille_tests::client::{Answer, ask, bearer};
use reveille_tests::front::{FrontSpec, serve};
use reveille_tests::runtime_api::LocalServer;
use reveille_tests::stage::{Stage, TABLE, voice_pools};
use serde_json::{Value, json};
use std::sync::Arc;

fn nine() -> DateTime<Utc> {
    "2026-11-30T09:00:00Z".parse().unwrap()
}

/// Pool `voice`, whose app takes a lease for every call, four to a node.
fn leased() -> Value {
    let mut pools = voice_pools();
    pools["voice"]["calls"] = json!("leased");
    pools["voice"]["calls_per_node"] = json!(4);
    pools
}

struct Scene {
    stage: Stage,
    url: LocalServer,
    nodes: Vec<NodeId>,
}

impl Scene {
    /// So many sleeping nodes.
    async fn new(pools: &Value, nodes: usize) -> Self {
        let stage = Stage::open_with(nine(), pools, &[]).await.unwrap();
        let mut ids = Vec::new();
        for n in 0..nodes {
            ids.push(stage.add_node(&format!("gpu-{}", n + 1), "voice", false).await.unwrap());
        }
        // Launching and stopping them was not ours.
        stage.aws.clear_calls().await;
        let url = serve(Arc::clone(&stage.wake), FrontSpec::default()).await.unwrap();
        Self { stage, url, nodes: ids }
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let (token, body) = (bearer(), if body.is_null() { String::new() } else { body.to_string() });
        let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
        ask(&self.url, method, path, &headers, &body).await
    }

    async fn lease(&self, id: &str, body: Value) -> Answer {
        self.ask("PUT", &format!("/leases/{id}"), &body).await
    }

    /// The loop that callers are told to use: wake, then ask until the node is ready.
    async fn wake_and_wait(&self) {
        self.ask("POST", "/wake", &Value::Null).await;
        for _ in 0..18 {
            if self.ask("GET", "/status", &Value::Null).await.status == 200 {
                return;
            }
            self.stage.pass(TimeDelta::seconds(5)).await;
        }
        panic!("not ready within 90 s");
    }

    async fn calls(&self, action: &str) -> usize {
        self.stage.aws.calls().await.iter().filter(|call| call.action == action).count()
    }

    /// Five minutes of silence, whose proof goes on, and a tick.
    async fn tick(&self) {
        let from = self.stage.aws.now().await;
        self.stage.pass_with_events(TimeDelta::minutes(5)).await;
        self.stage.prove_alive(from).await.unwrap();
        let run = self.stage.tick().await;
        assert!(run.result.is_ok(), "{run:?}");
    }
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    statuses
}

#[tokio::test]
async fn eight_calls_at_four_a_node_run_on_two_nodes() {
    let scene = Scene::new(&leased(), 2).await;
    scene.wake_and_wait().await;
    scene.stage.aws.clear_calls().await;
    let call = |n: usize| (format!("call-{n}"), json!({"ttl_seconds": 600}));
    let asked = |n: usize| {
        let (id, body) = call(n);
        let scene = &scene;
        async move { scene.lease(&id, body).await }
    };
    let answers = join_all((0..8).map(asked)).await;
    assert_eq!(statuses(&answers), [200, 200, 200, 200, 429, 429, 429, 429], "{answers:?}");
    let first = answers.iter().find(|answer| answer.status == 200).unwrap().body["node"].clone();
    let full: Vec<usize> = (0..8).filter(|n| answers[*n].status == 429).collect();
    for answer in answers.iter().filter(|answer| answer.status == 429) {
        assert_eq!(answer.body["state"], "full", "{}", answer.body);
        assert!(answer.headers.contains_key("retry-after"));
    }
    assert_eq!(scene.calls("StartInstances").await, 1, "one more node is wanted, and started once");
    scene.stage.pass(TimeDelta::minutes(3)).await;
    let again = join_all(full.into_iter().map(asked)).await;
    assert_eq!(statuses(&again), [200, 200, 200, 200]);
    assert!(again.iter().all(|answer| answer.body["node"] != first && answer.body["address"].is_string()));
    assert_eq!(scene.calls("StartInstances").await, 1);
    let ninth = scene.lease("call-9", json!({})).await;
    assert_eq!((ninth.status.as_u16(), &ninth.body["state"]), (429, &json!("full")), "{}", ninth.body);
    assert_eq!(scene.ask("GET", "/status", &Value::Null).await.status, 429, "full is told to who asks, too");
}

#[tokio::test]
async fn a_call_of_three_hours_without_a_request_is_never_cut_and_its_end_frees_the_node() {
    let scene = Scene::new(&leased(), 1).await;
    scene.wake_and_wait().await;
    assert_eq!(scene.lease("long", json!({"ttl_seconds": 600})).await.status, 200);
    for _ in 0..36 {
        scene.tick().await;
        let renewed = scene.lease("long", json!({"ttl_seconds": 600, "renew": true})).await;
        assert_eq!((renewed.status.as_u16(), renewed.body["node"].as_str()), (200, Some(scene.nodes[0].as_str())));
    }
    assert_eq!(scene.calls("StopInstances").await, 0);
    assert_eq!(scene.ask("DELETE", "/leases/long", &Value::Null).await.status, 204);
    assert_eq!(scene.ask("DELETE", "/leases/long", &Value::Null).await.status, 204, "twice is once");
    for _ in 0..7 {
        scene.tick().await;
    }
    assert_eq!(scene.calls("StopInstances").await, 1, "within 40 minutes of the call's end");
}

#[tokio::test]
async fn the_lease_of_an_app_that_died_ends_by_itself() {
    let scene = Scene::new(&leased(), 1).await;
    scene.wake_and_wait().await;
    assert_eq!(scene.lease("lost", json!({"ttl_seconds": 600})).await.status, 200);
    for _ in 0..7 {
        scene.tick().await;
    }
    assert_eq!(scene.calls("StopInstances").await, 0, "ten minutes of lease, and not yet thirty of silence");
    for _ in 0..2 {
        scene.tick().await;
    }
    assert_eq!(scene.calls("StopInstances").await, 1);
    let late = scene.lease("lost", json!({"renew": true})).await;
    assert_eq!(late.status, 410, "{}", late.body);
}

#[tokio::test]
async fn what_is_wrong_with_a_lease_is_a_problem_document_and_changes_nothing() {
    let scene = Scene::new(&leased(), 1).await;
    scene.wake_and_wait().await;
    assert_eq!(scene.lease("mine", json!({"ttl_seconds": 60})).await.status, 200);
    assert_eq!(scene.lease("short", json!({"ttl_seconds": 10})).await.status, 200);
    scene.stage.pass(TimeDelta::seconds(11)).await;
    scene.stage.aws.clear_calls().await;
    let rows = [
        ("negative", "PUT", "/leases/a", json!({"ttl_seconds": -1}), 400),
        ("zero", "PUT", "/leases/a", json!({"ttl_seconds": 0}), 400),
        ("huge", "PUT", "/leases/a", json!({"ttl_seconds": 86400}), 400),
        ("beyond any number", "PUT", "/leases/a", json!({"ttl_seconds": 1e300}), 400),
        ("not whole", "PUT", "/leases/a", json!({"ttl_seconds": 60.5}), 400),
        ("text", "PUT", "/leases/a", json!({"ttl_seconds": "60"}), 400),
        ("an unknown field", "PUT", "/leases/a", json!({"ttl": 60}), 400),
        ("a body too long", "PUT", "/leases/a", json!({"pool": "x".repeat(5000)}), 413),
        ("an unknown pool", "PUT", "/leases/a", json!({"pool": "nobody"}), 404),
        ("an unknown node", "PUT", "/leases/a", json!({"node": "nobody"}), 404),
        ("both", "PUT", "/leases/a", json!({"pool": "voice", "node": "gpu-1"}), 400),
        ("no id", "PUT", "/leases/", json!({}), 404),
        ("an id too long", "PUT", &format!("/leases/{}", "x".repeat(65)), json!({}), 400),
        ("an id of other letters", "PUT", "/leases/a%2Fb", json!({}), 400),
        ("a path below", "PUT", "/leases/a/b", json!({}), 400),
        ("another method", "POST", "/leases/a", json!({}), 405),
        ("never given", "PUT", "/leases/never", json!({"renew": true}), 410),
        ("run out", "PUT", "/leases/short", json!({"renew": true}), 410),
        ("run out, and not said to be renewed", "PUT", "/leases/short", json!({}), 410),
    ];
    for (name, method, path, body, status) in rows {
        let answer = scene.ask(method, path, &body).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{name}");
    }
    for (name, status) in [("mine", 409), ("short", 409)] {
        let other = scene.stage.function_with("wake", &[("REVEILLE_TOKEN_SHA256", &other_hash())]).unwrap();
        let url = serve(Arc::new(other), FrontSpec::default()).await.unwrap();
        let headers = [("authorization", "Bearer another-token"), ("content-type", "application/json")];
        for method in ["PUT", "DELETE"] {
            let answer = ask(&url, method, &format!("/leases/{name}"), &headers, "").await;
            assert_eq!(answer.status, status, "{method} of somebody else's {name}: {}", answer.body);
        }
    }
    let writes = ["UpdateItem", "PutItem", "StartInstances", "StopInstances"];
    for action in writes {
        assert_eq!(scene.calls(action).await, 0, "{action}");
    }
}

#[tokio::test]
async fn a_caller_who_wakes_too_often_is_told_when_the_minute_ends_and_nothing_is_recorded() {
    let scene = Scene::new(&leased(), 1).await;
    let capped = scene.stage.function_with("wake", &[("REVEILLE_CALLER_WAKES_PER_MINUTE", "2")]).unwrap();
    let url = serve(Arc::new(capped), FrontSpec::default()).await.unwrap();
    let token = bearer();
    let wake = async || ask(&url, "POST", "/wake", &[("authorization", token.as_str())], "").await;
    assert_eq!((wake().await.status.as_u16(), wake().await.status.as_u16()), (202, 202));
    let third = wake().await;
    assert_eq!((third.status.as_u16(), &third.body["field"]), (429, &json!("rate")), "{}", third.body);
    let wait: i64 = third.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let status = ask(&url, "GET", "/status", &[("authorization", token.as_str())], "").await;
    assert_eq!(status.status, 202, "who only asks is not counted");
    scene.stage.pass(TimeDelta::seconds(wait)).await;
    assert!(wake().await.status.is_success(), "a new minute");
}

/// A configuration that knows another caller by another name.
fn other_hash() -> String {
    // printf %s another-token | sha256sum
    json!({"other": "9e78bcb94091b75109fd6773524fc8d6a4f8a6dfb3dae39a9c26c5001879bcf3"}).to_string()
}

/// A beat of this moment, as the agent writes it.
fn beat(at: DateTime<Utc>, since: DateTime<Utc>, row: u32, open: u32) -> Beat {
    Beat {
        at,
        ready: row > 0,
        row,
        ready_since: (row > 0).then_some(at - TimeDelta::seconds(5 * i64::from(row))),
        open: Some(open),
        counted: Some(0),
        gpu: Some(0),
        open_at: (open > 0).then_some(at),
        used_at: None,
        since: Some(since),
    }
}

#[tokio::test]
async fn a_node_is_ready_when_its_beat_says_so_twice_and_its_open_connections_hold_it() {
    let pools = json!({"voice": {"beat": true, "log_groups": ["/app/front"], "wake": {"paths": ["/v1/calls"]}}});
    let scene = Scene::new(&pools, 1).await;
    let (node, writer) = (&scene.nodes[0], BeatWriter::new(&scene.stage.sdk, TABLE));
    let status = async || scene.ask("GET", "/status", &Value::Null).await;
    assert_eq!(scene.ask("POST", "/wake", &Value::Null).await.status, 202);
    scene.stage.pass(TimeDelta::minutes(1)).await;
    let booted = scene.stage.aws.now().await;
    assert_eq!(status().await.body["state"], "starting", "it runs, and says nothing yet");
    let mut now = booted;
    for (row, state) in [(0, "starting"), (1, "starting"), (2, "ready"), (0, "starting"), (1, "starting"), (2, "ready")]
    {
        writer.write(node, &beat(now, booted, row, 0)).await.unwrap();
        assert_eq!(status().await.body["state"], state, "{row} in a row");
        scene.stage.pass(TimeDelta::seconds(5)).await;
        now = scene.stage.aws.now().await;
    }
    // A call that holds one connection for an hour, and no request.
    for n in 0..12 {
        now = scene.stage.aws.now().await;
        writer.write(node, &beat(now, booted, 2, 1)).await.unwrap();
        assert!(scene.stage.tick().await.result.is_ok());
        scene.stage.pass(TimeDelta::minutes(5)).await;
        assert_eq!(scene.calls("StopInstances").await, 0, "tick {n}");
    }
    let ended = now;
    for _ in 0..8 {
        now = scene.stage.aws.now().await;
        writer.write(node, &Beat { open_at: Some(ended), ..beat(now, booted, 2, 0) }).await.unwrap();
        assert!(scene.stage.tick().await.result.is_ok());
        scene.stage.pass(TimeDelta::minutes(5)).await;
    }
    assert_eq!(scene.calls("StopInstances").await, 1, "silence is proved by the beats alone");
    assert_eq!(status().await.body["state"], "asleep");
}
