//! The built agent on a node with a real nginx, and what it writes into the ledger of the local AWS.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

mod nginx;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use nginx::{Folder, Nginx, until};
use reveille::domain::Beat;
use reveille_tests::stage::{Stage, TABLE, binary};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use tokio::process::{Child, Command};

const NODE: &str = "i-0abc";
const CALLER: &str = "User-Agent: app\r\nConnection: close\r\n";
const HEALTH_CHECK: &str = "User-Agent: ELB-HealthChecker/2.0\r\nConnection: close\r\n";

fn nine() -> DateTime<Utc> {
    "2026-11-30T09:00:00Z".parse().unwrap()
}

/// A node with its nginx, and the ledger.
struct Node {
    stage: Stage,
    nginx: Nginx,
    vars: BTreeMap<String, String>,
    state: Folder,
}

impl Node {
    async fn new(is_ready: bool) -> Self {
        let (stage, nginx, state) = (Stage::open(nine()).await.unwrap(), Nginx::start(is_ready).await, Folder::new());
        let mut node = Self { stage, nginx, vars: BTreeMap::new(), state };
        for name in ["AWS_ENDPOINT_URL", "AWS_REGION", "REVEILLE_CLOCK_URL", "REVEILLE_TABLE"] {
            node.vars.insert(name.to_owned(), node.stage.vars[name].clone());
        }
        node.set("AWS_ACCESS_KEY_ID", "local");
        node.set("AWS_SECRET_ACCESS_KEY", "local");
        node.set("REVEILLE_BEAT_NODE", NODE);
        node.set("REVEILLE_BEAT_READY_URL", &node.nginx.url("/ready"));
        node.set("REVEILLE_BEAT_OPEN_URL", &node.nginx.url("/connections"));
        node.set("REVEILLE_BEAT_LOG", &node.nginx.log().display().to_string());
        node.set("REVEILLE_BEAT_LINES", r#"{"paths": ["/v1/", "/ready"]}"#);
        node.set("REVEILLE_BEAT_FAST_SECONDS", "1");
        node.set("REVEILLE_BEAT_NVIDIA_SMI", "/no/such/nvidia-smi");
        node.set("REVEILLE_BEAT_STATE", &node.state.0.join("state.json").display().to_string());
        node
    }

    fn set(&mut self, name: &str, value: &str) {
        self.vars.insert(name.to_owned(), value.to_owned());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary("reveille-beat").unwrap());
        let path = ("PATH", "/usr/bin:/bin");
        command.args(arguments).env_clear().envs([path]).envs(&self.vars).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// One run to its end: the exit code, the output and the log.
    async fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let done = self.command(arguments).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
    }

    /// One run a minute after the last, and the beat it wrote.
    async fn beat(&self) -> Beat {
        self.stage.pass(TimeDelta::minutes(1)).await;
        let (code, _, log) = self.run(&[]).await;
        assert_eq!(code, 0, "{log}");
        self.written().await.expect("a beat was written")
    }

    /// A run that goes on for as long as the node is not ready.
    fn begin(&self) -> Child {
        self.command(&[]).stderr(Stdio::null()).spawn().unwrap()
    }

    async fn item(&self) -> Option<BTreeMap<String, AttributeValue>> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let dynamodb = aws_sdk_dynamodb::Client::new(&self.stage.sdk);
        let got = dynamodb.get_item().table_name(TABLE).key("pk", text(&format!("beat#{NODE}"))).key("sk", text("-"));
        got.send().await.unwrap().item.map(|item| item.into_iter().collect())
    }

    async fn written(&self) -> Option<Beat> {
        let item = self.item().await?;
        Some(serde_dynamo::from_attribute_value(item["beat"].clone()).unwrap())
    }

    async fn until_written(&self, what: &str, is: impl Fn(&Beat) -> bool) -> Beat {
        until(what, async || self.written().await.filter(|beat| is(beat))).await
    }

    async fn writes(&self) -> usize {
        self.stage.aws.calls().await.iter().filter(|call| call.action == "PutItem").count()
    }
}

#[tokio::test]
async fn a_settled_node_writes_once_a_minute_into_its_own_item() {
    let node = Node::new(true).await;
    let first = node.beat().await;
    assert_eq!((first.ready, first.row, first.open, first.counted, first.gpu), (true, 2, Some(0), Some(0), None));
    assert_eq!((first.at, first.since), (nine() + TimeDelta::minutes(1), Some(nine() + TimeDelta::minutes(1))));
    assert_eq!(node.writes().await, 2, "the first look, and the one that made the row stand");
    let second = node.beat().await;
    assert_eq!((second.row, second.ready_since, second.since), (3, first.ready_since, first.since));
    assert_eq!((second.open_at, second.used_at), (None, None), "nobody was there, and our own looks are no use");
    assert_eq!(node.writes().await, 3);
    let item = node.item().await.unwrap();
    let expiry = (second.at + TimeDelta::days(7)).timestamp().to_string();
    assert_eq!(item["expires_at"], AttributeValue::N(expiry));
    assert_eq!(item.len(), 4);
}

#[tokio::test]
async fn open_are_streams_sockets_and_polls_but_not_idle_connections() {
    let node = Node::new(true).await;
    node.beat().await;
    let idle = node.nginx.request("/v1/short", "User-Agent: app\r\n").await;
    assert_eq!(node.beat().await.open, Some(0), "keep-alive");
    let stream = node.nginx.request("/v1/stream", CALLER).await;
    let live = node.nginx.request("/v1/live", "User-Agent: app\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n").await;
    let poll = node.nginx.request("/v1/poll", CALLER).await;
    let busy =
        until("nginx reads all three", async || Some(node.beat().await).filter(|beat| beat.open == Some(3))).await;
    assert_eq!(busy.open_at, Some(busy.at));
    drop((stream, live, poll));
    let over = until("nginx sees them go", async || Some(node.beat().await).filter(|beat| beat.open == Some(0))).await;
    assert!(over.open_at >= busy.open_at && over.open_at < Some(over.at), "the newest beat that saw one");
    drop(idle);
}

#[tokio::test]
async fn our_own_look_is_no_open_call_even_where_it_hangs() {
    let mut node = Node::new(true).await;
    node.set("REVEILLE_BEAT_READY_URL", &node.nginx.url("/v1/poll"));
    for _ in 0..2 {
        let (_, output, log) = node.run(&["--print"]).await;
        let beat: Beat = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {log}"));
        assert_eq!((beat.ready, beat.open), (false, Some(0)));
    }
}

#[tokio::test]
async fn calls_are_counted_and_checks_are_not_also_through_rotation() {
    let node = Node::new(true).await;
    node.beat().await;
    // Each look asks for /ready through nginx, whose lines are in the filter's paths: they are ours, and no use.
    assert!(node.nginx.lines() > 0, "our own looks are logged");
    for headers in [HEALTH_CHECK, CALLER, HEALTH_CHECK] {
        node.nginx.logged(headers).await;
    }
    let used = node.beat().await;
    assert_eq!((used.counted, used.used_at), (Some(1), Some(used.at)));

    node.nginx.logged(CALLER).await;
    node.nginx.rotate(HEALTH_CHECK).await;
    node.nginx.logged(CALLER).await;
    let rotated = node.beat().await;
    assert_eq!((rotated.counted, rotated.since), (Some(2), used.since), "both, and the row of complete beats goes on");
    let quiet = node.beat().await;
    assert_eq!((quiet.counted, quiet.used_at), (Some(0), rotated.used_at));
}

#[tokio::test]
async fn a_node_that_comes_up_is_told_within_seconds_and_a_flap_begins_anew() {
    let node = Node::new(false).await;
    let mut run = node.begin();
    let first = node.until_written("the first look is written", |_| true).await;
    assert_eq!((first.ready, first.row, first.ready_since), (false, 0, None));
    assert!(first.since.is_some(), "it was seen, and it was not ready");
    node.nginx.set_ready(true);
    node.until_written("it is ready twice in a row", |beat| beat.row == 2).await;
    assert!(run.wait().await.unwrap().success(), "the run ends when the row stands");

    node.nginx.set_ready(false);
    node.stage.pass(TimeDelta::minutes(1)).await;
    let mut run = node.begin();
    let flapped = node.until_written("the flap is written", |beat| !beat.ready).await;
    assert_eq!((flapped.row, flapped.since), (0, first.since));
    node.nginx.set_ready(true);
    let again = node.until_written("it is ready twice again", |beat| beat.row == 2).await;
    assert_eq!(again.ready_since, Some(flapped.at), "a row of its own; virtual time stood still");
    assert!(run.wait().await.unwrap().success());
}

#[tokio::test]
async fn without_nginx_it_is_not_ready_and_nothing_is_proved() {
    let mut node = Node::new(true).await;
    node.beat().await;
    node.nginx.stop();
    let run = node.begin();
    let blind = node.until_written("the look is written", |beat| !beat.ready).await;
    assert_eq!((blind.open, blind.since), (None, None));
    drop(run);
}

#[tokio::test]
async fn a_refused_write_is_an_exit_code_and_loses_no_use() {
    let node = Node::new(true).await;
    let before = node.beat().await;
    node.nginx.logged(CALLER).await;
    node.stage
        .aws
        .faults(json!([{"service": "dynamodb", "action": "PutItem", "code": "AccessDeniedException", "status": 400, "times": -1}]))
        .await;
    node.stage.pass(TimeDelta::minutes(1)).await;
    let seen = node.stage.aws.now().await;
    let (code, _, log) = node.run(&[]).await;
    assert_eq!(code, 1, "{log}");
    let error =
        log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).find(|line| line["level"] == "ERROR");
    assert_eq!(error.unwrap()["code"], "AccessDeniedException");
    assert_eq!(node.written().await.unwrap(), before);

    node.stage.aws.clear_faults().await;
    let after = node.beat().await;
    assert_eq!((after.counted, after.used_at), (Some(1), Some(seen)));
    assert_eq!(after.since, before.since, "the node did see the minute between");
}

#[tokio::test]
async fn print_shows_a_look_and_leaves_no_trace() {
    let node = Node::new(true).await;
    let (code, output, log) = node.run(&["--print"]).await;
    let beat: Beat = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}{log}"));
    assert_eq!((code, beat.ready, beat.row, beat.open), (0, true, 1, Some(0)));
    assert_eq!((node.written().await, node.writes().await), (None, 0));
    assert_eq!(node.beat().await.row, 2, "nothing was remembered");
}

#[tokio::test]
async fn a_gpu_at_work_is_use_and_a_broken_driver_leaves_the_beat_complete() {
    let mut node = Node::new(true).await;
    let smi = node.state.0.join("nvidia-smi");
    let install = |script: &str| {
        fs::write(&smi, script).unwrap();
        fs::set_permissions(&smi, fs::Permissions::from_mode(0o755)).unwrap();
    };
    node.set("REVEILLE_BEAT_NVIDIA_SMI", &smi.display().to_string());
    install("#!/bin/sh\nprintf '3\\n41\\n'\n");
    let busy = node.beat().await;
    assert_eq!((busy.gpu, busy.used_at), (Some(41), Some(busy.at)));
    install("#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n");
    let broken = node.beat().await;
    assert_eq!((broken.gpu, broken.used_at, broken.since), (None, busy.used_at, busy.since));
}

#[tokio::test]
async fn a_command_may_count_the_calls() {
    let mut node = Node::new(true).await;
    node.vars.remove("REVEILLE_BEAT_OPEN_URL");
    node.set("REVEILLE_BEAT_OPEN_COMMAND", "echo 7");
    assert_eq!(node.beat().await.open, Some(7));
    node.set("REVEILLE_BEAT_OPEN_COMMAND", "echo many");
    let blind = node.beat().await;
    assert_eq!((blind.open, blind.since, blind.ready), (None, None, true));
}

#[tokio::test]
async fn the_instance_says_its_own_name() {
    let mut node = Node::new(true).await;
    node.vars.remove("REVEILLE_BEAT_NODE");
    node.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", &metadata_service().await);
    assert_eq!(node.beat().await.row, 2);
}

/// IMDSv2, as far as it is asked.
async fn metadata_service() -> String {
    use axum::routing::{get, put};
    let token = || async { ([("x-aws-ec2-metadata-token-ttl-seconds", "21600")], "token") };
    let id = |headers: axum::http::HeaderMap| async move {
        assert_eq!(headers["x-aws-ec2-metadata-token"], "token");
        NODE
    };
    let service =
        axum::Router::new().route("/latest/api/token", put(token)).route("/latest/meta-data/instance-id", get(id));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, service).await });
    format!("http://{address}")
}

#[tokio::test]
async fn two_runs_never_interleave() {
    let node = Node::new(false).await;
    let mut run = node.begin();
    node.until_written("the first run is at work", |_| true).await;
    let (code, _, log) = node.run(&[]).await;
    assert_eq!(code, 0);
    assert!(log.contains("another run is at work"), "{log}");
    node.nginx.set_ready(true);
    assert!(run.wait().await.unwrap().success());
}

#[tokio::test]
async fn wrong_settings_are_listed_at_once_and_nothing_is_written() {
    let mut node = Node::new(true).await;
    node.set("REVEILLE_BEAT_ROW", "0");
    node.set("REVEILLE_BEAT_OPNE_URL", "http://127.0.0.1/");
    let (code, _, log) = node.run(&[]).await;
    assert_eq!(code, 2);
    assert!(log.contains("REVEILLE_BEAT_ROW") && log.contains("REVEILLE_BEAT_OPNE_URL"), "{log}");
    assert_eq!(node.writes().await, 0);
}
