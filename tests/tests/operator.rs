//! The operator's command on the local AWS: what it shows and does, and what it says of a mistake.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use chrono::{DateTime, TimeDelta, Utc};
use reveille::domain::NodeId;
use reveille_tests::local_aws::LocalAws;
use reveille_tests::operator::{Operated, Said, clock, only_looks};
use reveille_tests::stage::{LOG_GROUP, Stage, TABLE, pool_behind, root, voice_pools};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn nine() -> DateTime<Utc> {
    "2026-11-30T09:00:00Z".parse().unwrap()
}

/// One node that was started by hand 40 minutes ago and is proved alive since, with a request 12 minutes ago.
async fn used() -> (Operated, NodeId) {
    let began = nine() - TimeDelta::minutes(40);
    let operated = Operated::on(Stage::open(began).await.unwrap()).await.unwrap();
    let node = operated.stage.add_node("gpu-1", "voice", true).await.unwrap();
    operated.tick().await.unwrap();
    operated.stage.pass(TimeDelta::minutes(38)).await;
    operated.stage.prove_alive(began).await.unwrap();
    operated.stage.put_points(&[("RequestCount", nine() - TimeDelta::minutes(12), 3.0)]).await.unwrap();
    (operated, node)
}

/// One sleeping node.
async fn asleep() -> (Operated, NodeId) {
    let stage = Stage::open(nine() - TimeDelta::minutes(4)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    (Operated::on(stage).await.unwrap(), node)
}

fn is_good(said: &Said) {
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
}

/// One line that says what to do, with this exit code.
fn is_refused(said: &Said, code: i32, has: &[&str]) {
    assert_eq!((said.code, said.out.as_str()), (code, ""), "{said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    assert!(said.err.starts_with("reveille: "), "{said:?}");
    has.iter().for_each(|text| assert!(said.err.contains(text), "{text}: {said:?}"));
}

/// The text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn operators_page() -> String {
    std::fs::read_to_string(root().join("docs/operator.md")).unwrap()
}

// Status.

#[tokio::test]
async fn status_says_why_a_node_is_on_and_when_it_may_stop() {
    let (operated, node) = used().await;
    operated.stage.aws.clear_calls().await;
    let said = operated.reveille(&["status", "--json"]).await;
    is_good(&said);
    let status = said.json();
    assert_eq!((&status["region"], &status["unread"]), (&json!("us-east-1"), &json!([])));
    let pool = &status["pools"][0];
    assert_eq!((&pool["pool"], &pool["gate"], &pool["today_seconds"]), (&json!("voice"), &Value::Null, &json!(2400)));
    assert_eq!(pool["month"]["amount"], "1000.00");
    let seen = &pool["nodes"][0];
    let expected = json!({
        "node": node, "name": "gpu-1", "state": "running", "phase": "ready", "since": "2026-11-30T08:20:00Z",
        "reason": "recent_use", "last_use_at": "2026-11-30T08:49:00Z", "stops_not_before": "2026-11-30T09:19:00Z",
        "today_seconds": 2400, "calls": 0, "unknown": null,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&seen[name], value, "{name}: {seen}");
    }
    let changes: Vec<_> = operated.stage.aws.calls().await.into_iter().filter(|call| !only_looks(call)).collect();
    assert!(changes.is_empty(), "it only looks: {changes:?}");
}

#[tokio::test]
async fn status_counts_a_node_that_was_replaced_today() {
    let (operated, node) = used().await;
    operated.tick().await.unwrap();
    let ec2 = aws_sdk_ec2::Client::new(&operated.stage.sdk);
    ec2.terminate_instances().instance_ids(node.as_str()).send().await.unwrap();
    operated.stage.pass(TimeDelta::minutes(5)).await;
    operated.tick().await.unwrap();
    operated.stage.add_node("gpu-2", "voice", true).await.unwrap();
    operated.stage.pass(TimeDelta::minutes(8)).await;
    let pool = operated.reveille(&["status", "--json"]).await.json()["pools"][0].clone();
    assert_eq!(pool["nodes"].as_array().unwrap().len(), 1, "{pool}");
    assert_eq!(pool["today_seconds"], json!((40 + 10) * 60), "{pool}");
    let (all, own) = (&pool["today_usd"], &pool["nodes"][0]["today_usd"]);
    let dollars = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
    assert!(dollars(all) > 4.0 * dollars(own), "{pool}");
}

#[tokio::test]
async fn status_tells_a_figure_of_aws_that_was_not_read_from_one_that_is_not_there_yet() {
    let (operated, _) = used().await;
    let fault =
        json!([{"service": "budgets", "action": "DescribeBudget", "code": "AccessDeniedException", "times": -1}]);
    operated.stage.aws.faults(fault).await;
    let text = flat(&operated.reveille(&["status"]).await.out);
    assert!(text.contains("AWS's own figure was not read.") && !text.contains("nothing yet"), "{text}");
    operated.stage.aws.clear_faults().await;
    // The guard's look is lost as a whole.
    operated
        .stage
        .aws
        .faults(json!([{"service": "dynamodb", "action": "Query", "code": "AccessDeniedException", "times": -1}]))
        .await;
    let text = flat(&operated.reveille(&["status"]).await.out);
    assert!(!text.contains("nothing yet"), "{text}");
}

#[tokio::test]
async fn what_somebody_wrote_into_a_tag_repaints_no_terminal() {
    let (operated, node) = used().await;
    let ec2 = aws_sdk_ec2::Client::new(&operated.stage.sdk);
    let tag = aws_sdk_ec2::types::Tag::builder().key("Name").value("gpu\u{9b}2J\u{202e}\n1").build();
    ec2.create_tags().resources(node.as_str()).tags(tag).send().await.unwrap();
    is_good(&operated.reveille(&["gate", "close", "--note", "moved"]).await);
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let dynamodb = aws_sdk_dynamodb::Client::new(&operated.stage.sdk);
    let update = dynamodb.update_item().table_name(TABLE).key("pk", text("pool#voice")).key("sk", text("-"));
    let update = update.update_expression("SET gate.reason = :reason");
    update.expression_attribute_values(":reason", text("moved\u{1b}[2J")).send().await.unwrap();
    for words in [&["status"][..], &["events"], &["doctor"], &["wake"], &["wait"]] {
        let said = operated.reveille(words).await;
        let text = format!("{}{}", said.out, said.err);
        let odd = |c: &char| c.is_control() && *c != '\n' || ('\u{202a}'..='\u{202e}').contains(c);
        assert_eq!(text.chars().find(odd), None, "{words:?}: {text:?}");
        if words == ["status"] {
            assert!(text.contains("gate CLOSED") && text.contains("moved [2J"), "{text:?}");
        }
    }
}

#[tokio::test]
async fn status_is_a_table_within_eighty_columns() {
    let (operated, _) = used().await;
    let said = operated.reveille(&["status"]).await;
    is_good(&said);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    for text in ["gpu-1", "ready", "08:20", "08:49", "09:19", "0 h 40 min", "recent_use", "gate open"] {
        assert!(said.out.contains(text), "{text}: {}", said.out);
    }
    assert!(operators_page().contains(&said.out), "docs/operator.md shows another one: {}", said.out);
}

#[tokio::test]
async fn status_tells_a_node_that_nothing_will_stop_and_a_source_that_cannot_be_read() {
    let (operated, _) = used().await;
    operated.stage.add_node("stray", "vioce", false).await.unwrap();
    let fault = json!([{"service": "cloudwatch", "action": "GetMetricData", "code": "AccessDenied", "times": -1}]);
    operated.stage.aws.faults(fault).await;
    let said = operated.reveille(&["status"]).await;
    is_good(&said);
    for text in
        ["Pool vioce", "nothing will ever stop its nodes", "unknown: failed", "read activity failed: AccessDenied"]
    {
        assert!(said.out.contains(text), "{text}: {}", said.out);
    }
    let pools = operated.reveille(&["status", "--json"]).await.json()["pools"].clone();
    assert_eq!((&pools[0]["pool"], &pools[1]["configured"]), (&json!("vioce"), &json!(true)), "{pools}");
    assert_eq!(pools[1]["nodes"][0]["reason"], "signals_unknown");
}

#[tokio::test]
async fn status_shows_times_of_the_configured_zone() {
    let stage = Stage::open_with(nine(), &voice_pools(), &[("REVEILLE_ZONE", "Asia/Seoul")]).await.unwrap();
    let operated = Operated::on(stage).await.unwrap();
    let said = operated.reveille(&["status"]).await;
    assert!(said.out.starts_with("reveille in us-east-1, 2026-11-30 18:00:00 KST"), "{said:?}");
    assert!(said.out.contains("No node has the tag reveille:pool=voice."), "{said:?}");
}

// Steering.

#[tokio::test]
async fn a_wake_starts_the_node_under_the_functions_own_rights() {
    let (operated, node) = asleep().await;
    operated.stage.aws.clear_calls().await;
    let said = operated.reveille(&["wake"]).await;
    is_good(&said);
    assert!(said.out.contains("is starting, ready in about 60 s"), "{said:?}");
    assert_eq!(operated.stage.state(&node).await.unwrap(), "pending");
    let again = operated.reveille(&["wake", "gpu-1", "--json"]).await;
    is_good(&again);
    assert_eq!((&again.json()["state"], &again.json()["woken_by"]["caller"]), (&json!("starting"), &json!("cli:moto")));
    let starts = operated.stage.aws.calls().await.iter().filter(|call| call.action == "StartInstances").count();
    assert_eq!(starts, 1);
}

#[tokio::test]
async fn a_hold_keeps_a_node_until_it_is_released() {
    let (operated, _) = used().await;
    let said = operated.reveille(&["hold", "--for", "2h", "--note", "demonstration at ten"]).await;
    is_good(&said);
    assert!(said.out.contains("is held until 2026-11-30 11:00 UTC"), "{said:?}");
    let status = flat(&operated.reveille(&["status"]).await.out);
    assert!(status.contains("held. A person holds it"), "{status}");
    assert!(status.contains("Held until 11:00: demonstration at ten (cli:moto)."), "{status}");
    let longer = operated.reveille(&["hold", "--for", "1h", "--note", "a test"]).await;
    let both =
        "is held until 2026-11-30 11:00 UTC; it was held until 2026-11-30 11:00 UTC: demonstration at ten (cli:moto)";
    assert!(longer.out.contains(both), "the later end stays: {longer:?}");
    let released = operated.reveille(&["release", "gpu-1"]).await;
    is_good(&released);
    assert!(
        released.out.contains("is over; it was until 2026-11-30 11:00 UTC: a test (cli:moto); demon"),
        "{released:?}"
    );
    let status = operated.reveille(&["status", "--json"]).await.json();
    assert_eq!(status["pools"][0]["nodes"][0]["reason"], "recent_use");
    is_refused(&operated.reveille(&["release"]).await, 1, &["had no hold"]);
    let said = operated.reveille(&["release", "--json"]).await;
    assert_eq!((said.code, &said.json()["exit_code"]), (1, &json!(1)), "{said:?}");
    assert!(said.json()["error"].as_str().unwrap().ends_with("had no hold"), "{said:?}");
}

#[tokio::test]
async fn a_hold_of_a_sleeping_node_says_that_it_starts_nothing() {
    let (operated, _) = asleep().await;
    let said = operated.reveille(&["hold", "--for", "1h", "--note", "demonstration"]).await;
    is_good(&said);
    assert!(said.out.contains("it is stopped, and a hold starts nothing: `reveille wake`"), "{said:?}");
}

#[tokio::test]
async fn an_order_whose_answer_is_lost_is_not_sent_again() {
    let (operated, _) = used().await;
    is_good(&operated.reveille(&["hold", "--for", "2h", "--note", "demonstration"]).await);
    operated.functions.lose_answers(1);
    is_refused(&operated.reveille(&["release"]).await, 3, &["invoke reveille-wake failed", "ServiceException"]);
    let again = operated.reveille(&["release"]).await;
    is_refused(&again, 1, &["had no hold"]);
}

#[tokio::test]
async fn an_order_goes_to_no_deployment_that_is_only_guessed() {
    let (mut operated, _) = asleep().await;
    operated.shell.extend(operated.stage.vars.clone());
    let close = ["gate", "close", "--note", "moving"];
    is_refused(&operated.reveille(&close).await, 2, &["REVEILLE_POOLS is set in this shell", "--name"]);
    is_good(&operated.reveille(&[&close[..], &["--name", "reveille"]].concat()).await);
}

#[tokio::test]
async fn a_hold_without_an_end_or_a_note_is_refused_with_what_to_write() {
    let (mut operated, _) = asleep().await;
    // Told before anything is asked of anybody.
    operated.shell.insert("AWS_ACCESS_KEY_ID".to_owned(), String::new());
    let note = ["--note", "demonstration"];
    is_refused(&operated.reveille(&[&["hold"], &note[..]].concat()).await, 2, &["--for 2h"]);
    is_refused(&operated.reveille(&[&["hold", "--for", "40d"], &note[..]].concat()).await, 2, &["31 days at most"]);
    is_refused(&operated.reveille(&["hold", "--for", "2h"]).await, 2, &["--note"]);
    is_refused(&operated.reveille(&["gate", "close", "--for", "2h"]).await, 2, &["--note"]);
    is_refused(&operated.reveille(&[&["gate", "close", "--for", "500d"], &note[..]].concat()).await, 2, &["400 days"]);
    is_refused(&operated.reveille(&["events", "--since", "300000y"]).await, 2, &["--since", "400 days"]);
}

#[tokio::test]
async fn a_closed_gate_takes_no_wake_until_it_is_opened() {
    let (operated, node) = asleep().await;
    let said = operated.reveille(&["gate", "close", "--note", "the model is being moved"]).await;
    is_good(&said);
    assert!(said.out.contains("closed until a person opens it"), "{said:?}");
    let (status, answer, _) = operated.stage.prewarm(&Value::Null).await;
    assert_eq!((status, &answer["gate"]), (403, &json!("the model is being moved")), "no operator's name");
    is_refused(&operated.reveille(&["wake"]).await, 1, &["the gate is closed: the model is being moved"]);
    is_refused(&operated.reveille(&["wait"]).await, 1, &["the gate is closed"]);
    let again = operated.reveille(&["gate", "close", "--for", "1h", "--note", "short"]).await;
    assert!(
        flat(&again.out).contains("stays closed until a person opens it as it was: the model is being"),
        "{again:?}"
    );
    let shown = operated.reveille(&["status"]).await.out;
    assert!(shown.contains("gate CLOSED until a person opens it: the model is being moved"), "{shown}");
    let opened = operated.reveille(&["gate", "open", "--note", "it is moved"]).await;
    is_good(&opened);
    assert!(opened.out.contains("is open; a person had closed it"), "{opened:?}");
    is_good(&operated.reveille(&["wake"]).await);
    assert_eq!(operated.stage.state(&node).await.unwrap(), "pending");
}

#[tokio::test]
async fn a_gate_with_an_end_opens_by_itself() {
    let (operated, _) = asleep().await;
    let said = operated.reveille(&["gate", "close", "--for", "90m", "--note", "moving"]).await;
    assert!(said.out.contains("until 2026-11-30 10:30 UTC"), "{said:?}");
    operated.stage.pass(TimeDelta::minutes(90)).await;
    is_good(&operated.reveille(&["wake"]).await);
}

// Waiting.

#[tokio::test]
async fn wait_ends_when_the_node_is_ready() {
    let (mut operated, node) = asleep().await;
    is_refused(&operated.reveille(&["wait"]).await, 1, &["nobody wants one", "reveille wake"]);
    is_good(&operated.reveille(&["wake"]).await);
    is_refused(&operated.reveille(&["wait", "--timeout", "0s"]).await, 1, &["already_starting"]);
    // Its first look finds the node on its way; three minutes pass until it looks again.
    let endpoint = operated.stage.aws.endpoint().to_owned();
    let look = move |n: usize| {
        let aws = LocalAws::attach(&endpoint);
        async move {
            if n == 1 {
                aws.advance_clock(TimeDelta::minutes(3)).await;
            }
            aws.now().await
        }
    };
    let (url, _server) = clock(look).await.unwrap();
    operated.shell.insert("REVEILLE_CLOCK_URL".to_owned(), url);
    let said = operated.reveille(&["wait", "--json"]).await;
    is_good(&said);
    assert_eq!((&said.json()["state"], &said.json()["node"]), (&json!("ready"), &json!(node)));
}

// Events.

/// A node that a line of the request log woke at ten in the evening, and that was stopped when nobody used it any more.
async fn night() -> (Operated, NodeId) {
    let ten: DateTime<Utc> = "2026-11-30T22:00:00Z".parse().unwrap();
    let stage = Stage::open(ten - TimeDelta::minutes(4)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    let operated = Operated::on(stage).await.unwrap();
    let line = r#"192.0.2.7 - - [30/Nov/2026:22:00:00 +0000] "POST /v1/calls HTTP/1.1" 200 3 "-" "voice-app/3.1""#;
    let woken = operated.stage.log_lines(LOG_GROUP, &[line.to_owned()]).await;
    operated.log("wake", &woken.logs).await.unwrap();
    for n in 0..10 {
        operated.stage.pass(TimeDelta::minutes(5)).await;
        operated.stage.prove_alive(ten + TimeDelta::minutes(n * 5)).await.unwrap();
        operated.tick().await.unwrap();
    }
    assert_eq!(operated.stage.state(&node).await.unwrap(), "stopped");
    let morning: DateTime<Utc> = "2026-12-01T07:00:00Z".parse().unwrap();
    operated.stage.aws.set_clock(morning).await;
    (operated, node)
}

#[tokio::test]
async fn events_say_why_it_was_on_last_night() {
    let (operated, node) = night().await;
    let said = operated.reveille(&["events", "--since", "12h"]).await;
    is_good(&said);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    assert!(operators_page().contains(&said.out), "docs/operator.md shows another one: {}", said.out);
    let text = flat(&said.out);
    let in_order = [
        "2026-11-30 19:00 UTC to 2026-12-01 07:00 UTC",
        "* demand log_line for /v1/calls by voice-app",
        "start wanted",
        "* start wanted",
        "* launched g6.xlarge, log_line",
        "keep recent_start",
        "* idle_mark first_reading",
        "stop idle",
        "* stop idle",
        "* ended ran 35 min, nobody used it",
        "keep asleep",
    ];
    let mut from = 0;
    for part in in_order {
        let found = text[from..].find(part).unwrap_or_else(|| panic!("{part} after {from}: {text}"));
        from += found + part.len();
    }
    let events = operated.reveille(&["events", "gpu-1", "--since", "12h", "--json"]).await.json();
    let events = events["events"].as_array().unwrap().clone();
    assert!(events.iter().all(|event| event["node"] == json!(node)), "{events:?}");
    let kept = events.iter().filter(|event| event["what"] == "keep").count();
    let each = operated.reveille(&["events", node.as_str(), "--since", "12h", "--each"]).await.out;
    assert_eq!(each.lines().filter(|line| line.contains(" keep ")).count(), kept, "a line for each: {each}");
    assert!(!operated.reveille(&["events", "--since", "1h"]).await.out.contains("demand"), "not so far back");
}

#[tokio::test]
async fn an_operators_own_orders_are_events() {
    let (operated, _) = asleep().await;
    for words in [
        &["hold", "--for", "1h", "--note", "demonstration"][..],
        &["release"],
        &["gate", "close", "--note", "moving"],
        &["gate", "open", "--note", "moved"],
        &["wake"],
    ] {
        is_good(&operated.reveille(words).await);
    }
    let text = flat(&operated.reveille(&["events"]).await.out);
    for part in [
        "* held until 2026-11-30 10:00:00 UTC: demonstration (cli:moto)",
        "* released cli:moto",
        "* gate_closed moving (cli:moto)",
        "* gate_opened moved (cli:moto)",
        "* demand prewarm by cli:moto",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_log_that_is_not_there_or_may_not_be_read_is_named() {
    let (mut operated, _) = asleep().await;
    let refuse = |times: i64| json!([{"service": "logs", "action": "FilterLogEvents", "code": "AccessDeniedException", "times": times}]);
    operated.stage.aws.faults(refuse(1)).await;
    let said = operated.reveille(&["events"]).await;
    is_good(&said);
    assert!(
        flat(&said.out).contains("Not read: read log group /aws/lambda/reveille-wake failed: AccessDenied"),
        "{said:?}"
    );
    operated.stage.aws.faults(refuse(-1)).await;
    is_refused(&operated.reveille(&["events"]).await, 3, &["/aws/lambda/reveille-wake", "docs/operator.md"]);
    operated.stage.aws.clear_faults().await;
    operated.shell.extend(operated.stage.vars.clone());
    let said = operated.reveille(&["events", "--name", "other"]).await;
    is_refused(&said, 2, &["no log group /aws/lambda/other-* in us-east-1", "--name"]);
    is_refused(&operated.reveille(&["events", "gpu-9"]).await, 2, &["no node is called"]);
    let said = operated.reveille(&["events", "--since", "yesterday"]).await;
    assert_eq!((said.code, said.err.contains("2h, 90m or 3d")), (2, true), "{said:?}");
}

// Mistakes.

#[tokio::test]
async fn without_credentials_or_a_region_it_says_what_to_do() {
    let (mut operated, _) = asleep().await;
    let region = operated.shell.insert("AWS_REGION".to_owned(), String::new()).unwrap();
    is_refused(&operated.reveille(&["status"]).await, 2, &["no region", "--region"]);
    operated.shell.insert("AWS_REGION".to_owned(), region);
    operated.shell.insert("AWS_SECRET_ACCESS_KEY".to_owned(), String::new());
    operated.shell.insert("AWS_ACCESS_KEY_ID".to_owned(), String::new());
    is_refused(&operated.reveille(&["status"]).await, 2, &["no AWS credentials", "aws sso login"]);
    is_refused(&operated.reveille(&["status", "--profile", "nobody"]).await, 2, &["no AWS credentials", "nobody"]);
}

#[tokio::test]
async fn a_deployment_that_is_not_there_is_named() {
    let (operated, _) = asleep().await;
    let said = operated.reveille(&["status", "--name", "other"]).await;
    is_refused(&said, 2, &["no function other-idle-check in us-east-1", "--region", "--name"]);
}

#[tokio::test]
async fn the_settings_of_the_shell_come_before_the_deployed_ones() {
    let (mut operated, _) = asleep().await;
    operated.shell.extend(operated.stage.vars.clone());
    operated.shell.insert("REVEILLE_IDLE_MINUTES".to_owned(), "5".to_owned());
    is_refused(&operated.reveille(&["status"]).await, 2, &["REVEILLE_IDLE_MINUTES"]);
    operated.shell.insert("REVEILLE_IDLE_MINUTES".to_owned(), "45".to_owned());
    is_good(&operated.reveille(&["status", "--name", "no-such-function"]).await);
    operated.shell.insert("REVEILLE_TABLE".to_owned(), "elsewhere".to_owned());
    is_refused(&operated.reveille(&["status"]).await, 2, &["no table elsewhere in us-east-1", "REVEILLE_TABLE"]);
}

#[tokio::test]
async fn a_pool_or_node_that_is_not_meant_is_named() {
    let pools = json!({"voice": voice_pools()["voice"], "batch": pool_behind("app/batch/1")});
    let operated = Operated::on(Stage::open_with(nine(), &pools, &[]).await.unwrap()).await.unwrap();
    for words in [&["wake"][..], &["hold", "--for", "1h", "--note", "x"], &["gate", "open", "--note", "x"], &["wait"]] {
        is_refused(&operated.reveille(words).await, 2, &["several pools", "--pool (batch, voice)"]);
    }
    is_refused(
        &operated.reveille(&["wake", "--pool", "vioce"]).await,
        2,
        &["no pool \"vioce\"; there is batch, voice"],
    );
    is_refused(&operated.reveille(&["status", "--pool", "x"]).await, 2, &["no pool \"x\""]);
    is_refused(
        &operated.reveille(&["wake", "gpu-9"]).await,
        2,
        &["no node of a configured pool has this Name tag or id"],
    );
    is_refused(&operated.reveille(&["wait", "gpu-9"]).await, 2, &["gpu-9"]);
    is_refused(&operated.reveille(&["wake", "gpu-9", "--pool", "voice"]).await, 2, &["not both"]);
    for name in ["gpu-1", "gpu-2"] {
        operated.stage.add_node(name, "voice", false).await.unwrap();
    }
    let said = operated.reveille(&["hold", "--pool", "voice", "--for", "1h", "--note", "x"]).await;
    is_refused(&said, 2, &["no one node is meant: name one by its id (i-"]);
}

#[tokio::test]
async fn a_refusal_of_aws_is_one_line_with_what_to_do() {
    let rows = [
        ("ec2", "DescribeInstances", "UnauthorizedOperation", "docs/operator.md"),
        ("dynamodb", "BatchGetItem", "AccessDeniedException", "docs/operator.md"),
        ("sts", "GetCallerIdentity", "ExpiredToken", "sign in again"),
    ];
    let (operated, _) = asleep().await;
    for (service, action, code, todo) in rows {
        let fault = json!([{"service": service, "action": action, "code": code, "times": -1}]);
        operated.stage.aws.faults(fault).await;
        let command = if service == "sts" { "wake" } else { "status" };
        is_refused(&operated.reveille(&[command]).await, 3, &[code, todo]);
        operated.stage.aws.clear_faults().await;
    }
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_is_named() {
    let (mut operated, _) = asleep().await;
    operated.shell.insert("AWS_ENDPOINT_URL_LAMBDA".to_owned(), "http://127.0.0.1:9".to_owned());
    is_refused(
        &operated.reveille(&["status"]).await,
        3,
        &["read the settings of reveille-idle-check failed: NoAnswer"],
    );
}

// Rights.

/// The policy of docs/operator.md, for this stage.
fn documented_policy(operated: &Operated) -> Value {
    let page = operators_page();
    let block = page.split("```json\n").find(|block| block.contains("\"Statement\"")).unwrap();
    let account = operated.stage.vars["REVEILLE_ALERT_TOPIC_ARN"].split(':').nth(4).unwrap();
    let policy = block.split("```").next().unwrap().replace("REGION", "us-east-1").replace("ACCOUNT", account);
    serde_json::from_str(&policy).unwrap()
}

#[tokio::test]
async fn the_documented_policy_is_enough_and_no_more() {
    let (mut operated, node) = asleep().await;
    let policy = documented_policy(&operated);
    operated.shell.insert("AWS_ACCESS_KEY_ID".to_owned(), "AKIAOPERATOR".to_owned());
    operated.stage.aws.role("operator", &policy, "AKIAOPERATOR").await;
    // So that each kind of call is made.
    operated.stage.aws.config(json!({"instance": node, "spot": true})).await;
    let logs = aws_sdk_cloudwatchlogs::Client::new(&operated.stage.sdk);
    logs.create_log_group().log_group_name(LOG_GROUP).send().await.unwrap();
    operated.stage.look_at_budget().await;
    let events = aws_sdk_eventbridge::Client::new(&operated.stage.sdk);
    let rule = events.put_rule().name("reveille-idle-check").schedule_expression("rate(5 minutes)");
    rule.send().await.unwrap();
    let note = ["--note", "x"];
    for words in [
        &[&["gate", "close"], &note[..]].concat()[..],
        &[&["gate", "open"], &note[..]].concat(),
        &["wake"],
        &["status"],
        &[&["hold", "--for", "1h"], &note[..]].concat(),
        &["release"],
        &["events"],
    ] {
        is_good(&operated.reveille(words).await);
    }
    operated.stage.pass(TimeDelta::minutes(3)).await;
    is_good(&operated.reveille(&["status"]).await);
    is_good(&operated.reveille(&["wait"]).await);
    is_good(&operated.reveille(&["report"]).await);
    let doctor = operated.reveille(&["doctor", "--json"]).await;
    let unchecked: Vec<Value> =
        doctor.json()["checks"].as_array().unwrap().iter().map(|one| one["not_checked"].clone()).collect();
    assert!(unchecked.iter().all(|why| *why == json!([])), "{unchecked:?}");
    let report = operated.stage.aws.iam_used().await;
    assert_eq!(report["refused"], json!([]));
    let (mut unused, mut of_lambda) = (Vec::new(), BTreeSet::new());
    for permission in report["permissions"].as_array().unwrap() {
        let action = permission["action"].as_str().unwrap();
        // The emulator of Lambda asks no IAM.
        if action.starts_with("lambda:") {
            of_lambda.insert(action.to_owned());
        } else if permission["used"] == 0 {
            unused.push(format!("{}: {action}", permission["sid"]));
        }
    }
    assert!(unused.is_empty(), "{unused:?}");
    assert!(!of_lambda.is_empty());
    let statements = policy["Statement"].as_array().unwrap().iter();
    let granted: BTreeSet<(String, String)> = statements
        .filter(|one| one["Action"].as_str().is_some_and(|action| action.starts_with("lambda:")))
        .flat_map(|one| {
            let action = one["Action"].as_str().unwrap().to_owned();
            let resources = one["Resource"].as_array().cloned().unwrap_or_else(|| vec![one["Resource"].clone()]);
            let name = |arn: &Value| arn.as_str().unwrap().rsplit(':').next().unwrap().to_owned();
            resources.iter().map(name).map(|name| (action.clone(), name)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(granted, operated.functions.asked(), "what Lambda was asked, and nothing else");
}

// Help.

#[tokio::test]
async fn help_has_examples_and_exit_codes_and_fits_a_terminal() {
    let (operated, _) = asleep().await;
    let help = operated.reveille(&["--help"]).await;
    is_good(&help);
    assert!(help.out.contains("Exit codes:"), "{help:?}");
    let commands = [
        "status",
        "wake",
        "wait",
        "hold",
        "release",
        "events",
        "report",
        "gate close",
        "gate open",
        "doctor",
        "completions",
    ];
    for command in commands {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let said = operated.reveille(&words).await;
        is_good(&said);
        assert!(said.out.contains("Example"), "{command}: {}", said.out);
        let long: Vec<&str> = said.out.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{command}: {long:#?}");
    }
    assert!(operated.reveille(&["completions", "bash"]).await.out.contains("_reveille()"));
}
