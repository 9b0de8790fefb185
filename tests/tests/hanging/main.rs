//! The built functions while a service takes their requests and never answers: each ends before its time-out, says what it
//! could not know, stops nothing, and works again as soon as the service does.
//!
//! The time-out is 8 s here instead of Lambda's 30, so every share of it is about a quarter; the services' own limits (4 s an
//! attempt, 9 s a call) are not scaled, so it is the run's own clock that ends these. One case runs at full length.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

mod front;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use front::{Front, Manner};
use reveille::domain::NodeId;
use reveille_tests::local_aws::CallSeen;
use reveille_tests::runtime_api::{Function, FunctionError, FunctionSpec, Invocation};
use reveille_tests::stage::{
    LOAD_BALANCER, LOG_GROUP, Stage, TABLE, TOKEN, binary, http_answer, log_batch, voice_pools,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const SHORT: Duration = Duration::from_secs(8);
const LAMBDAS_OWN: Duration = Duration::from_secs(30);

/// A local AWS takes a second or two to start; all of these at once take a small machine a minute each.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const NODE_LOG: &str = "/node/nginx";

/// The services, by the variable that gives the SDK their address.
const SERVICES: [(&str, &str); 6] = [
    ("ec2", "AWS_ENDPOINT_URL_EC2"),
    ("cloudwatch", "AWS_ENDPOINT_URL_CLOUDWATCH"),
    ("logs", "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS"),
    ("dynamodb", "AWS_ENDPOINT_URL_DYNAMODB"),
    ("budgets", "AWS_ENDPOINT_URL_BUDGETS"),
    ("sns", "AWS_ENDPOINT_URL_SNS"),
];
const ALL: &str = "all";

fn at(clock: &str) -> DateTime<Utc> {
    format!("2026-11-30T{clock}:00Z").parse().unwrap()
}

/// A function whose services can each be made to hang.
struct Play {
    name: String,
    stage: Stage,
    fronts: BTreeMap<&'static str, Front>,
    function: Function,
}

impl Play {
    async fn open(name: &str, now: &str, pools: &Value, more: &[(&str, &str)], time_out: Duration) -> Self {
        let stage = {
            let _turn = ONE_AT_A_TIME.lock().await;
            Stage::open_with(at(now), pools, more).await.unwrap()
        };
        let (mut fronts, mut env) = (BTreeMap::new(), stage.vars.clone());
        for (service, variable) in SERVICES {
            let front = Front::of(stage.aws.endpoint()).await;
            env.insert(variable.to_owned(), front.address().to_owned());
            fronts.insert(service, front);
        }
        let (name, binary) = (name.to_owned(), binary(name).unwrap());
        let spec =
            FunctionSpec { name: name.clone(), binary, env, timeout: time_out, memory_mb: 128, max_instances: 1 };
        Self { name, stage, fronts, function: Function::start(spec).unwrap() }
    }

    fn set(&self, service: &str, manner: Manner) {
        assert!(service == ALL || self.fronts.contains_key(service), "{service}");
        self.fronts
            .iter()
            .filter(|(name, _)| service == ALL || **name == service)
            .for_each(|(_, front)| front.set(manner));
    }

    async fn run(&self, event: &Value) -> Invocation {
        self.function.invoke(event).await
    }

    /// One run while this service behaves like that; what has been asked of EC2 before is forgotten.
    async fn run_with(&self, service: &str, manner: Manner, event: &Value) -> Invocation {
        self.stage.aws.clear_calls().await;
        self.set(service, manner);
        let run = self.run(event).await;
        self.set(service, Manner::Answers);
        ends_in_time(&format!("{} {service} {manner:?}", self.name), &run);
        run
    }

    async fn calls(&self, action: &str) -> Vec<CallSeen> {
        self.stage.aws.calls().await.into_iter().filter(|call| call.action == action).collect()
    }

    /// An attribute of the pool's item, past the fronts.
    async fn fact(&self, name: &str) -> Option<AttributeValue> {
        let get = aws_sdk_dynamodb::Client::new(&self.stage.sdk).get_item().table_name(TABLE).consistent_read(true);
        let get = get.key("pk", AttributeValue::S("pool#voice".into())).key("sk", AttributeValue::S("-".into()));
        get.send().await.unwrap().item.and_then(|mut item| item.remove(name))
    }

    /// Lets this many minutes pass, with the load balancer alive.
    async fn pass(&self, minutes: i64) {
        let from = self.stage.aws.now().await;
        self.stage.pass(TimeDelta::minutes(minutes)).await;
        self.stage.prove_alive(from).await.unwrap();
    }
}

/// Killed at its time-out it would have recorded nothing, and every line would be missing.
fn ends_in_time(case: &str, run: &Invocation) {
    eprintln!("{case}: {} ms, {}", run.duration.as_millis(), if run.result.is_ok() { "ok" } else { "failed visibly" });
    assert_ne!(run.result.as_ref().err(), Some(&FunctionError::TimedOut), "{case}: {run:?}");
    assert!(!decided(run).is_empty(), "{case} says what it decided: {run:?}");
}

fn decided(run: &Invocation) -> Vec<Value> {
    let lines = run.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["decided"] == json!(true)).collect()
}

fn reasons(run: &Invocation) -> Vec<String> {
    decided(run).iter().map(|line| line["reason"].as_str().unwrap().to_owned()).collect()
}

/// The heartbeat of a tick that did its job.
fn beats(run: &Invocation) -> bool {
    run.logs.iter().any(|line| line.contains("\"_aws\"") && line.contains("\"Ticks\":1"))
}

fn tick() -> Value {
    json!({})
}

/// The stage's pool, whose requests are counted in the node's log too.
fn pools_with_log() -> Value {
    let mut pools = voice_pools();
    pools["voice"]["logs"] = json!([{"group": NODE_LOG, "lines": {"paths": ["/v1/"]},
        "alive": {"namespace": "AWS/ApplicationELB", "metric": "HealthyHostCount", "dimensions": {"LoadBalancer": LOAD_BALANCER}}}]);
    pools
}

/// A tick that would stop the node, and does as soon as the service answers.
struct IdleCase {
    service: &'static str,
    manner: Manner,
    fails_visibly: bool,
    reason: &'static str,
    /// Unknown is written down, where the ledger can take it.
    is_recorded: bool,
}

fn idle_cases() -> Vec<IdleCase> {
    use Manner::{BreaksOff, Drips, Hangs};
    let case = |service, manner, fails_visibly, reason, is_recorded| IdleCase {
        service,
        manner,
        fails_visibly,
        reason,
        is_recorded,
    };
    vec![
        case("ec2", Hangs, true, "signals_unknown", true),
        case("ec2", BreaksOff, true, "signals_unknown", true),
        case("cloudwatch", Hangs, false, "signals_unknown", true),
        case("cloudwatch", Drips, false, "signals_unknown", true),
        case("logs", Hangs, false, "signals_unknown", true),
        case("dynamodb", Hangs, true, "cannot_look", false),
        case("dynamodb", Drips, true, "cannot_look", false),
        case(ALL, Hangs, true, "cannot_look", false),
    ]
}

async fn the_idle_check() {
    let more = [("REVEILLE_IDLE_MINUTES", "10"), ("REVEILLE_GRACE_MINUTES", "0")];
    let play = Play::open("idle-check", "09:03", &pools_with_log(), &more, SHORT).await;
    aws_sdk_cloudwatchlogs::Client::new(&play.stage.sdk)
        .create_log_group()
        .log_group_name(NODE_LOG)
        .send()
        .await
        .unwrap();
    let node = play.stage.add_node("gpu-1", "voice", false).await.unwrap();
    for case in idle_cases() {
        let name = format!("{} {:?}", case.service, case.manner);
        about_to_be_stopped(&play, &node).await;
        let run = play.run_with(case.service, case.manner, &tick()).await;
        assert_eq!(reasons(&run), [case.reason], "{name}");
        assert_eq!(run.result.is_err(), case.fails_visibly, "{name}: {run:?}");
        assert_eq!(
            beats(&run),
            !case.fails_visibly,
            "{name}: a node of unknown use is the node's matter, not the tick's"
        );
        assert_eq!(play.fact(&format!("blind#{node}")).await.is_some(), case.is_recorded, "{name}");
        assert_eq!(play.calls("StopInstances").await, [], "{name}: unknown never stops a node");
        let run = play.run(&tick()).await;
        assert_eq!((reasons(&run), beats(&run)), (vec!["idle".to_owned()], true), "{name}, and back again: {run:?}");
        assert_eq!(play.calls("StopInstances").await.len(), 1, "{name}, and back again");
    }
    a_message_that_hangs(&play, &node).await;
}

/// Started by hand, looked at twice, and idle for as long as it takes by the next tick.
async fn about_to_be_stopped(play: &Play, node: &NodeId) {
    play.pass(2).await;
    play.stage.start_by_hand(node).await.unwrap();
    play.pass(2).await;
    let mut last = Vec::new();
    for _ in 0..6 {
        let run = play.run(&tick()).await;
        assert!(run.result.is_ok(), "{run:?}");
        last = reasons(&run);
        if last == ["first_reading"] {
            return play.pass(5).await;
        }
        play.pass(5).await;
    }
    panic!("no first reading: {last:?}");
}

/// What can be done is done; that nobody was told shows, and the next run tells.
async fn a_message_that_hangs(play: &Play, node: &NodeId) {
    about_to_be_stopped(play, node).await;
    let stranger = play.stage.add_node("gpu-x", "vioce", true).await.unwrap();
    let before = play.stage.aws.published().await.len();
    let run = play.run_with("sns", Manner::Hangs, &tick()).await;
    assert!(run.result.is_err() && !beats(&run), "nobody was told: {run:?}");
    assert_eq!(play.calls("StopInstances").await.len(), 1, "a message holds up nothing");
    play.pass(5).await;
    assert!(play.run(&tick()).await.result.is_ok());
    let told = play.stage.aws.published().await.split_off(before);
    let nodes: Vec<_> = told.iter().map(|message| message.attributes["node"].as_str()).collect();
    assert_eq!(nodes, [stranger.as_str()], "the next run tells");
}

fn prewarm() -> Value {
    json!({"version": "2.0", "routeKey": "$default", "rawPath": "/wake", "rawQueryString": "",
        "headers": {"content-type": "application/json", "authorization": format!("Bearer {TOKEN}")},
        "requestContext": {"http": {"method": "POST", "path": "/wake", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "app"}},
        "isBase64Encoded": false})
}

async fn call_in_log(play: &Play) -> Value {
    let at = play.stage.aws.now().await;
    let line = format!(
        "192.0.2.7 - - [{}] \"POST /v1/calls HTTP/1.1\" 503 3 \"-\" \"voice-app/3.1\"",
        at.format("%d/%b/%Y:%H:%M:%S +0000")
    );
    log_batch(LOG_GROUP, &[json!({"id": "e", "timestamp": at.timestamp_millis(), "message": line})])
}

async fn the_wake() {
    let mut pools = voice_pools();
    pools["voice"]["ready"] = json!({"namespace": "AWS/ApplicationELB", "metric": "HealthyHostCount", "dimensions": {"LoadBalancer": LOAD_BALANCER}});
    let play = Play::open("wake", "09:00", &pools, &[], SHORT).await;
    let node = play.stage.add_node("gpu-1", "voice", false).await.unwrap();
    for (service, manner) in
        [("ec2", Manner::Hangs), ("dynamodb", Manner::Hangs), ("dynamodb", Manner::BreaksOff), (ALL, Manner::Hangs)]
    {
        let name = format!("{service} {manner:?}");
        let run = play.run_with(service, manner, &prewarm()).await;
        assert_eq!((http_answer(&run).0, reasons(&run)), (503, vec!["cannot_look".to_owned()]), "{name}: {run:?}");
        assert_eq!(play.calls("StartInstances").await, [], "{name}");
        // Nobody waits for the answer to a line of a log: Lambda tries again, and the failure shows.
        let run = play.run_with(service, manner, &call_in_log(&play).await).await;
        assert!(run.result.is_err(), "{name}: {run:?}");
        let run = play.run(&prewarm()).await;
        assert_eq!(http_answer(&run).0, 202, "{name}, and back again: {run:?}");
        assert_eq!(play.calls("StartInstances").await.len(), 1, "{name}, and back again");
        play.pass(2).await;
        readiness_that_hangs(&play, &name).await;
        aws_sdk_ec2::Client::new(&play.stage.sdk).stop_instances().instance_ids(node.as_str()).send().await.unwrap();
        play.pass(2).await;
    }
    let no_capacity = json!([{"service": "ec2", "action": "StartInstances", "code": "InsufficientInstanceCapacity", "status": 500,
        "message": "no capacity", "times": 1}]);
    play.stage.aws.faults(no_capacity).await;
    let run = play.run_with("sns", Manner::Hangs, &prewarm()).await;
    let (status, answer) = http_answer(&run);
    assert_eq!((status, answer["state"].as_str()), (503, Some("no_capacity")), "the caller's answer is true: {run:?}");
    assert!(run.logs.iter().any(|line| line.contains("ERROR") && line.contains("publish")), "{run:?}");
}

/// A node whose readiness cannot be read is not told as ready.
async fn readiness_that_hangs(play: &Play, name: &str) {
    let run = play.run_with("cloudwatch", Manner::Hangs, &prewarm()).await;
    assert_eq!(http_answer(&run).0, 202, "{name}, then cloudwatch: {run:?}");
    let run = play.run(&prewarm()).await;
    assert_eq!(http_answer(&run).0, 200, "{name}, then cloudwatch, and back again: {run:?}");
}

async fn the_uptime_alarm() {
    let play = Play::open("uptime-alarm", "09:00", &voice_pools(), &[("REVEILLE_UPTIME_HOURS", "1")], SHORT).await;
    play.stage.add_node("gpu-1", "voice", true).await.unwrap();
    play.stage.pass(TimeDelta::hours(2)).await;
    let run = play.run_with("sns", Manner::Hangs, &tick()).await;
    assert!(run.result.is_err(), "nobody was told: {run:?}");
    play.stage.pass(TimeDelta::minutes(15)).await;
    assert!(play.run(&tick()).await.result.is_ok());
    assert_eq!(play.stage.aws.published().await.len(), 1, "the next run tells");
    // (service, fails visibly, what is said of today: launches and status checks each tell it alone)
    for (service, fails_visibly, reason) in [
        ("ec2", true, "uptime_over"),
        ("cloudwatch", false, "uptime_over"),
        ("dynamodb", true, "uptime_over"),
        (ALL, true, "cannot_look"),
    ] {
        let run = play.run_with(service, Manner::Hangs, &tick()).await;
        assert_eq!(run.result.is_err(), fails_visibly, "{service}: {run:?}");
        assert_eq!(reasons(&run).last().map(String::as_str), Some(reason), "{service}: {run:?}");
        assert!(play.run(&tick()).await.result.is_ok(), "{service}, and back again");
    }
    assert_eq!(play.stage.aws.published().await.len(), 1, "and once a day is enough");
}

const TINY: &str = r#"{"amount": "0.01", "currency": "USD", "enforce": "gate"}"#;

async fn the_budget_guard() {
    let play = Play::open("budget-guard", "09:00", &voice_pools(), &[("REVEILLE_BUDGET", TINY)], SHORT).await;
    play.stage.add_node("gpu-1", "voice", true).await.unwrap();
    play.stage.pass(TimeDelta::minutes(30)).await;
    let run = play.run_with("sns", Manner::Hangs, &tick()).await;
    assert!(run.result.is_err(), "nobody was told: {run:?}");
    assert!(play.fact("gate").await.is_some(), "the gate is closed all the same");
    play.stage.pass(TimeDelta::hours(1)).await;
    assert!(play.run(&tick()).await.result.is_ok());
    let told = play.stage.aws.published().await.len();
    assert!(told >= 4, "three thresholds and the gate, by the next run: {told}");
    for (service, fails_visibly, reason) in [
        ("ec2", false, "gate_stays_closed"),
        ("budgets", false, "gate_stays_closed"),
        ("dynamodb", true, "cannot_look"),
        (ALL, true, "cannot_look"),
    ] {
        let run = play.run_with(service, Manner::Hangs, &tick()).await;
        assert_eq!(
            (run.result.is_err(), reasons(&run)),
            (fails_visibly, vec![reason.to_owned()]),
            "{service}: {run:?}"
        );
        assert!(play.run(&tick()).await.result.is_ok(), "{service}, and back again");
    }
    assert!(play.fact("gate").await.is_some(), "and nothing opened it");
}

/// The ledger is asked three times in a row: the longest of all runs.
async fn the_budget_guard_at_full_length() {
    let play = Play::open("budget-guard", "09:00", &voice_pools(), &[], LAMBDAS_OWN).await;
    play.stage.add_node("gpu-1", "voice", true).await.unwrap();
    let run = play.run_with("dynamodb", Manner::Hangs, &tick()).await;
    assert!(run.duration < Duration::from_secs(29), "{:?}", run.duration);
    let told = play.stage.aws.published().await;
    assert_eq!(told.len(), 1, "and a person was told in what was left: {told:?}");
}

#[tokio::test]
async fn case_43_whatever_hangs_a_function_ends_in_time_and_says_what_it_does_not_know() {
    tokio::join!(
        the_idle_check(),
        the_wake(),
        the_uptime_alarm(),
        the_budget_guard(),
        the_budget_guard_at_full_length()
    );
}

/// Two nodes of one pool and one of another, each about to be stopped by the next tick.
async fn three_about_to_be_stopped() -> (Play, [NodeId; 3]) {
    let pool = voice_pools()["voice"].clone();
    let mut small = pool.clone();
    small["log_groups"] = json!(["/app/other"]);
    let pools = json!({"voice": pool, "small": small});
    let more = [("REVEILLE_IDLE_MINUTES", "10"), ("REVEILLE_GRACE_MINUTES", "0"), ("REVEILLE_DEFAULT_POOL", "voice")];
    let play = Play::open("idle-check", "09:03", &pools, &more, SHORT).await;
    let mut nodes = Vec::new();
    for (name, pool) in [("gpu-1", "voice"), ("gpu-2", "voice"), ("gpu-3", "small")] {
        nodes.push(play.stage.add_node(name, pool, false).await.unwrap());
    }
    for node in &nodes {
        play.stage.start_by_hand(node).await.unwrap();
    }
    for _ in 0..6 {
        play.pass(5).await;
        let run = play.run(&tick()).await;
        assert!(run.result.is_ok(), "{run:?}");
        if reasons(&run) == ["first_reading"; 3] {
            break;
        }
    }
    (play, nodes.try_into().unwrap())
}

/// The next such call about each of these nodes has no answer.
fn hangs(action: &str, nodes: &[NodeId]) -> Value {
    faults(nodes, &json!({"service": "ec2", "action": action, "code": "InternalError", "delay_ms": 60_000}))
}

/// Or an answer that leaves everything open.
fn fails(action: &str, nodes: &[NodeId]) -> Value {
    faults(nodes, &json!({"service": "ec2", "action": action, "code": "InternalError"}))
}

fn faults(nodes: &[NodeId], fault: &Value) -> Value {
    let of = |node: &NodeId| {
        let mut fault = fault.clone();
        fault["match"] = json!(node.as_str());
        fault
    };
    nodes.iter().map(of).collect()
}

#[tokio::test]
async fn a_stop_that_hangs_or_fails_holds_up_no_other_node() {
    for trouble in [hangs, fails] {
        let (play, nodes) = three_about_to_be_stopped().await;
        play.pass(5).await;
        play.stage.aws.faults(trouble("StopInstances", &nodes[..1])).await;
        let run = play.run(&tick()).await;
        ends_in_time("a STOP", &run);
        assert!(run.result.is_ok() && beats(&run), "the tick did its job: {run:?}");
        assert_eq!(states(&play, &nodes).await, ["running", "stopping", "stopping"]);
        for node in &nodes[1..] {
            assert!(has_answer(&play, node).await != Some(false), "and what EC2 said of {node} is written down");
        }
        play.stage.aws.clear_faults().await;
        play.pass(5).await;
        let run = play.run(&tick()).await;
        assert!(reasons(&run).contains(&"stop_had_no_effect".to_owned()), "{run:?}");
        assert_eq!(states(&play, &nodes).await[0], "stopping", "and the one that hung is stopped by the next tick");
    }
}

/// Whether the claim of this node of the pool `voice` was answered; none of another pool's.
async fn has_answer(play: &Play, node: &NodeId) -> Option<bool> {
    let claim = play.fact(&format!("claim#{node}")).await?;
    Some(claim.as_m().unwrap().get("answer").is_some_and(|answer| !answer.is_null()))
}

async fn states(play: &Play, nodes: &[NodeId]) -> Vec<String> {
    let mut states = Vec::new();
    for node in nodes {
        states.push(play.stage.state(node).await.unwrap());
    }
    states
}

#[tokio::test]
async fn a_start_that_hangs_or_fails_holds_up_no_other_pool() {
    for trouble in [hangs, fails] {
        let (play, nodes) = three_about_to_be_stopped().await;
        for node in &nodes {
            aws_sdk_ec2::Client::new(&play.stage.sdk)
                .stop_instances()
                .instance_ids(node.as_str())
                .send()
                .await
                .unwrap();
        }
        play.pass(2).await;
        // Both wishes meet a throttled EC2 first, so that the next tick has both to start.
        let throttled =
            json!([{"service": "ec2", "action": "StartInstances", "code": "RequestLimitExceeded", "times": -1}]);
        play.stage.aws.faults(throttled).await;
        for pool in ["voice", "small"] {
            play.stage.prewarm(&json!({ "pool": pool })).await;
        }
        play.stage.aws.clear_faults().await;
        play.pass(5).await;
        play.stage.aws.clear_calls().await;
        play.stage.aws.faults(trouble("StartInstances", &nodes[..2])).await;
        let run = play.run(&tick()).await;
        ends_in_time("a START", &run);
        assert!(run.result.is_ok(), "{run:?}");
        assert_eq!(states(&play, &nodes).await, ["stopped", "stopped", "pending"], "{run:?}");
        play.stage.aws.clear_faults().await;
        play.pass(5).await;
        assert!(play.run(&tick()).await.result.is_ok());
        let line = decided(&run).into_iter().find(|line| line["action"] == "start" && line["pool"] == "voice").unwrap();
        let up = |node: &NodeId| if line["node"] == node.as_str() { "pending" } else { "stopped" };
        let expected: Vec<&str> = nodes[..2].iter().map(up).collect();
        assert_eq!(states(&play, &nodes[..2]).await, expected, "repeated on the same node, never on the next");
    }
}

#[tokio::test]
async fn a_wake_whose_start_hangs_holds_up_no_other_wake() {
    let (play, nodes) = three_about_to_be_stopped().await;
    for node in &nodes {
        aws_sdk_ec2::Client::new(&play.stage.sdk).stop_instances().instance_ids(node.as_str()).send().await.unwrap();
    }
    play.pass(2).await;
    play.stage.aws.faults(hangs("StartInstances", &nodes[..2])).await;
    let (voice, small) = (json!({"pool": "voice"}), json!({"pool": "small"}));
    let (hung, other) = tokio::join!(play.stage.prewarm(&voice), play.stage.prewarm(&small));
    assert_eq!((hung.0, other.0), (202, 202), "the claim stands, and is repeated by the tick: {hung:?}");
    assert!(other.2.duration < hung.2.duration, "{:?} and {:?}", other.2.duration, hung.2.duration);
    assert_eq!(states(&play, &nodes).await, ["stopped", "stopped", "pending"]);
}
