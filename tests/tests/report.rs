//! `reveille report` on the local AWS: a history of three months, a day as the functions wrote it, and mistakes.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use chrono::{DateTime, TimeDelta, Utc};
use reveille::aws::Aws;
use reveille::domain::{InstanceType, Launch, NodeId, PoolName, WakeSource};
use reveille::run::{Call, take_recorded};
use reveille_tests::operator::{Operated, Said};
use reveille_tests::stage::{LOG_GROUP, Stage, pool_behind, root, voice_pools};
use serde_json::{Value, json};
use std::time::Duration;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn nine() -> DateTime<Utc> {
    at("2026-11-30T09:00:00Z")
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

/// A launch from this instant on for so many minutes, woken seven seconds before and ready after so many seconds.
fn launch(from: DateTime<Utc>, minutes: i64, by: Option<(WakeSource, Option<&str>)>, ready: Option<i64>) -> Launch {
    Launch {
        instance_type: InstanceType::new("g6.xlarge").ok(),
        ended_at: Some(from + TimeDelta::minutes(minutes)),
        used: Some(true),
        source: by.map(|(source, _)| source),
        wanted_at: by.map(|_| from - TimeDelta::seconds(7)),
        path: by.and_then(|(_, path)| path).map(str::to_owned),
        ready_at: ready.map(|seconds| from + TimeDelta::seconds(seconds)),
        ..Launch::at(from)
    }
}

/// From the 11th of September to the 29th of November: a call at eight each working day, which keeps the node for four hours;
/// a pre-warm each Saturday; a page of the documentation each Sunday, for nothing.
fn three_months() -> Vec<Launch> {
    let first = at("2026-09-11T08:00:00Z");
    let days = (0..80).map(|n| first + TimeDelta::days(n));
    // The 11th of September 2026 is a Friday.
    let of_day = |(n, day): (usize, DateTime<Utc>)| match n % 7 {
        1 => launch(day, 90, Some((WakeSource::Prewarm, None)), Some(48)),
        2 => Launch { used: Some(false), ..launch(day, 40, Some((WakeSource::LogLine, Some("/docs"))), Some(53 + 60)) },
        _ => launch(day, 240, Some((WakeSource::Call, None)), Some(43 + i64::try_from(n).unwrap() % 5)),
    };
    days.enumerate().map(of_day).collect()
}

async fn remember(operated: &Operated, node: &NodeId, launches: Vec<Launch>) {
    let aws = Aws::with(&operated.stage.sdk, &operated.stage.config());
    let ended = launches.iter().map(|launch| (node.clone(), launch.clone())).collect();
    let newest = launches.last().map(|launch| (node.clone(), launch.clone())).into_iter().collect();
    let call = Call::NoteLaunches { pool: PoolName::new("voice").unwrap(), ended, newest };
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    take_recorded(Some(aws.answer(&call, until).await)).unwrap();
}

/// One sleeping node, and what it did in three months.
async fn seeded(zone: &str) -> Operated {
    let began = nine() - TimeDelta::minutes(4);
    let stage = Stage::open_with(began, &voice_pools(), &[("REVEILLE_ZONE", zone)]).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    let operated = Operated::on(stage).await.unwrap();
    remember(&operated, &node, three_months()).await;
    operated
}

#[tokio::test]
async fn three_months_are_told_month_by_month() {
    let operated = seeded("Europe/Berlin").await;
    operated.stage.aws.clear_calls().await;
    let said = operated.reveille(&["report"]).await;
    is_good(&said);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    let page = std::fs::read_to_string(root().join("docs/operator.md")).unwrap();
    assert!(page.contains(&said.out), "docs/operator.md shows another one: {}", said.out);
    let writes = ["UpdateItem", "PutItem", "StopInstances", "StartInstances", "Publish", "InvokeFunction"];
    let calls = operated.stage.aws.calls().await;
    assert!(calls.iter().all(|call| !writes.contains(&call.action.as_str())), "it only looks: {calls:?}");

    let told = operated.reveille(&["report", "--json"]).await.json();
    assert_eq!((&told["zone"], &told["pools"][0]["pool"]), (&json!("Europe/Berlin"), &json!("voice")));
    let months = told["pools"][0]["months"].as_array().unwrap();
    // Counted here once more, by the calendar: no launch of the history lies over midnight.
    for (month, name) in months.iter().zip(["2026-09", "2026-10", "2026-11"]) {
        let all = three_months();
        let of = all.iter().filter(|launch| launch.launched_at.format("%Y-%m").to_string() == name);
        let of: Vec<&Launch> = of.collect();
        let seconds: i64 = of.iter().map(|launch| (launch.ended_at.unwrap() - launch.launched_at).num_seconds()).sum();
        let cold = of.iter().filter(|launch| launch.source != Some(WakeSource::Prewarm)).count();
        let vain = of.iter().filter(|launch| launch.used == Some(false)).count();
        let expected = json!({
            "month": name, "node_seconds": seconds, "starts": of.len(), "cold_starts": cold, "waits_known": cold,
            "for_nothing": vain, "for_nothing_hours": vain as f64 * 40.0 / 60.0,
        });
        for (figure, value) in expected.as_object().unwrap() {
            assert_eq!(&month[figure], value, "{figure} of {month}");
        }
    }
    assert_eq!(months.len(), 3);
    assert_eq!(months[1]["plans"][0], json!({"name": "24/7", "node_hours": 745.0, "cost_usd": 745.0 * 0.8048}));
}

#[tokio::test]
async fn it_can_be_asked_for_less_and_in_every_format() {
    let operated = seeded("UTC").await;
    let names = async |words: &[&str]| -> Vec<Value> {
        let said = operated.reveille(&[&["report", "--json"], words].concat()).await;
        is_good(&said);
        let months = said.json()["pools"][0]["months"].as_array().unwrap().clone();
        months.iter().map(|month| month["month"].clone()).collect()
    };
    assert_eq!(names(&["--months", "1"]).await, ["2026-11"]);
    assert_eq!(names(&["--months", "2"]).await, ["2026-10", "2026-11"]);
    assert_eq!(names(&["--since", "2026-10"]).await, ["2026-10", "2026-11"]);
    assert_eq!(names(&["--since", "2025-11", "--pool", "voice"]).await, ["2026-09", "2026-10", "2026-11"]);
    let csv = operated.reveille(&["report", "--format", "csv"]).await;
    is_good(&csv);
    let cells: Vec<usize> = csv.out.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(cells, [25; 4], "{}", csv.out);
    let page = operated.reveille(&["report", "--format", "md"]).await;
    is_good(&page);
    assert!(page.out.starts_with("| pool | month |") && page.out.contains("| voice | 2026-10 |"), "{page:?}");
    let (json, format) =
        (operated.reveille(&["report", "--json"]).await, operated.reveille(&["report", "--format", "json"]).await);
    assert_eq!(json.out, format.out);
}

/// A line of the request log wakes the node, nobody comes, and it is stopped: as the functions themselves write it down.
#[tokio::test]
async fn what_woke_it_for_nothing_is_told_from_what_the_functions_wrote() {
    let stage = Stage::open(nine() - TimeDelta::minutes(4)).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    let line = r#"192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] "POST /v1/calls HTTP/1.1" 200 3 "-" "voice-app/3.1""#;
    stage.log_lines(LOG_GROUP, &[line.to_owned()]).await;
    let operated = Operated::on(stage).await.unwrap();
    let causes = async || -> Value {
        let said = operated.reveille(&["report", "--json"]).await;
        is_good(&said);
        said.json()["pools"][0]["all"].clone()
    };
    for n in 0..10 {
        operated.stage.pass(TimeDelta::minutes(5)).await;
        operated.stage.prove_alive(nine() + TimeDelta::minutes(n * 5)).await.unwrap();
        operated.tick().await.unwrap();
        if n == 1 {
            let running = causes().await;
            assert_eq!((&running["cold_starts"], &running["for_nothing"]), (&json!(1), &json!(0)), "it still runs");
            assert_eq!(running["waits_known"], 1, "the ledger's own fact says when it was ready: {running}");
        }
    }
    assert_eq!(operated.stage.state(&node).await.unwrap(), "stopped");
    let over = causes().await;
    let cause = over["causes"].as_array().unwrap().iter().find(|cause| cause["source"] == "log_line").unwrap().clone();
    assert_eq!((&cause["path"], &cause["starts"], &cause["for_nothing"]), (&json!("/v1/calls"), &json!(1), &json!(1)));
    assert_eq!((&over["cold_starts"], &over["waits_known"]), (&json!(1), &json!(1)));
    assert_eq!(over["wait_p50_seconds"], 300, "without a beat it is seen at the first tick");
}

#[tokio::test]
async fn each_pool_has_its_own_figures_and_its_part_of_the_controller() {
    let pools = json!({"voice": voice_pools()["voice"], "batch": pool_behind("app/batch/1")});
    let stage = Stage::open_with(nine() - TimeDelta::minutes(4), &pools, &[]).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    let operated = Operated::on(stage).await.unwrap();
    remember(&operated, &node, three_months()).await;
    let told = operated.reveille(&["report", "--json", "--controller-usd", "6"]).await.json();
    let told = told["pools"].as_array().unwrap();
    assert_eq!((told.len(), &told[0]["pool"], &told[0]["months"]), (2, &json!("batch"), &json!([])));
    let october = &told[1]["months"][1];
    let part = october["cost_parts"]["controller_usd"].as_f64().unwrap();
    assert!((part - 3.0 * 744.0 / 730.5).abs() < 1e-5, "{october}");
    let text = operated.reveille(&["report"]).await.out;
    assert!(text.contains("Pool batch: no launch is known in these months"), "{text}");
    is_refused(&operated.reveille(&["report", "--pool", "batch"]).await, 1, &["no launch is written down yet"]);
    is_refused(&operated.reveille(&["report", "--pool", "x"]).await, 2, &["no pool \"x\"; there is batch, voice"]);
}

// Mistakes.

#[tokio::test]
async fn a_mistake_is_one_line_that_says_what_to_do() {
    let mut operated = Operated::on(Stage::open(nine()).await.unwrap()).await.unwrap();
    is_refused(&operated.reveille(&["report"]).await, 1, &["no launch is written down yet", "reveille doctor"]);
    for words in [["--months", "14"], ["--months", "0"], ["--since", "2025-10"]] {
        let said = operated.reveille(&[&["report"], &words[..]].concat()).await;
        is_refused(&said, 2, &["400 days", "1 to 13 months, or since 2025-11"]);
    }
    is_refused(&operated.reveille(&["report", "--since", "2026-12"]).await, 2, &["in the future"]);
    let said = operated.reveille(&["report", "--since", "November"]).await;
    assert_eq!((said.code, said.err.contains("no month such as 2026-11")), (2, true), "{said:?}");
    let rows = [
        ("ec2", "DescribeInstances", "UnauthorizedOperation"),
        ("dynamodb", "BatchGetItem", "AccessDeniedException"),
        ("dynamodb", "Query", "AccessDeniedException"),
    ];
    for (service, action, code) in rows {
        operated.stage.aws.faults(json!([{"service": service, "action": action, "code": code, "times": -1}])).await;
        is_refused(&operated.reveille(&["report"]).await, 3, &[code, "docs/operator.md"]);
        operated.stage.aws.clear_faults().await;
    }
    operated.shell.extend(operated.stage.vars.clone());
    operated.shell.insert("REVEILLE_TABLE".to_owned(), "elsewhere".to_owned());
    is_refused(&operated.reveille(&["report"]).await, 2, &["no table elsewhere in us-east-1", "REVEILLE_TABLE"]);
}
