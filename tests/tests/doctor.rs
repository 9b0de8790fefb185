//! `reveille doctor` on the local AWS: a deployment that is well, and each check made wrong by itself.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use chrono::{DateTime, TimeDelta, Utc};
use reveille::aws::BeatWriter;
use reveille::domain::{Beat, NodeId};
use reveille_tests::local_aws::LocalAws;
use reveille_tests::operator::{NAME, Operated, Said, clock, only_looks};
use reveille_tests::stage::{LOAD_BALANCER, LOG_GROUP, Stage, TABLE, pool_behind, voice_pools};
use serde_json::{Value, json};

fn nine() -> DateTime<Utc> {
    "2026-11-30T09:00:00Z".parse().unwrap()
}

/// The functions that a schedule calls, and at which pace.
const SCHEDULES: [(&str, &str); 3] =
    [("idle-check", "rate(5 minutes)"), ("uptime-alarm", "rate(15 minutes)"), ("budget-guard", "rate(60 minutes)")];

const CALL: &str = r#"192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] "POST /v1/calls HTTP/1.1" 200 3 "-" "voice-app/3.1""#;

/// A deployment in which nothing is wrong: one node that is running, a subscriber who has confirmed, every metric, a log with a
/// call, rules, a heartbeat, a budget.
struct Scene {
    operated: Operated,
    node: NodeId,
}

impl Scene {
    async fn new() -> Self {
        Self::with(&voice_pools(), &[]).await
    }

    async fn with(pools: &Value, more: &[(&str, &str)]) -> Self {
        Self::at(nine(), pools, more).await
    }

    async fn at(now: DateTime<Utc>, pools: &Value, more: &[(&str, &str)]) -> Self {
        let began = now - TimeDelta::minutes(30);
        let operated = Operated::on(Stage::open_with(began, pools, more).await.unwrap()).await.unwrap();
        let node = operated.stage.add_node("gpu-1", "voice", true).await.unwrap();
        operated.stage.pass(TimeDelta::minutes(28)).await;
        let stage = &operated.stage;
        stage.put_points(&[("RequestCount", began, 1.0), ("ActiveConnectionCount", began, 1.0)]).await.unwrap();
        stage.prove_alive(began).await.unwrap();
        let scene = Self { operated, node };
        scene.beat(now - TimeDelta::minutes(5)).await;
        scene.subscribe("sqs", "arn:aws:sqs:us-east-1:123456789012:people").await;
        for (function, pace) in SCHEDULES {
            scene.schedule(function, pace).await;
        }
        let events = scene.events();
        let rule = format!("{NAME}-node-stopped");
        events.put_rule().name(&rule).event_pattern(r#"{"source": ["aws.ec2"]}"#).send().await.unwrap();
        scene.aim(&rule, "wake").await;
        scene.log_lines(LOG_GROUP, &[CALL.to_owned()]).await;
        if !scene.stage().vars["REVEILLE_BUDGET"].is_empty() {
            assert!(scene.stage().look_at_budget().await.result.is_ok());
        }
        scene
    }

    fn stage(&self) -> &Stage {
        &self.operated.stage
    }

    fn events(&self) -> aws_sdk_eventbridge::Client {
        aws_sdk_eventbridge::Client::new(&self.stage().sdk)
    }

    async fn schedule(&self, function: &str, pace: &str) {
        let rule = format!("{NAME}-{function}");
        self.events().put_rule().name(&rule).schedule_expression(pace).send().await.unwrap();
        self.aim(&rule, function).await;
    }

    async fn aim(&self, rule: &str, function: &str) {
        let arn = format!("arn:aws:lambda:us-east-1:123456789012:function:{NAME}-{function}");
        let target = aws_sdk_eventbridge::types::Target::builder().id("1").arn(arn).build().unwrap();
        self.events().put_targets().rule(rule).targets(target).send().await.unwrap();
    }

    /// One heartbeat of the idle check.
    async fn beat(&self, at: DateTime<Utc>) {
        let datum = aws_sdk_cloudwatch::types::MetricDatum::builder()
            .metric_name("Ticks")
            .timestamp(aws_sdk_cloudwatch::primitives::DateTime::from_secs(at.timestamp()))
            .value(1.0)
            .build();
        let cloudwatch = aws_sdk_cloudwatch::Client::new(&self.stage().sdk);
        cloudwatch.put_metric_data().namespace("Reveille").metric_data(datum).send().await.unwrap();
    }

    fn topic(&self) -> &str {
        &self.stage().vars["REVEILLE_ALERT_TOPIC_ARN"]
    }

    async fn subscribe(&self, protocol: &str, endpoint: &str) {
        let sns = aws_sdk_sns::Client::new(&self.stage().sdk);
        sns.subscribe().topic_arn(self.topic()).protocol(protocol).endpoint(endpoint).send().await.unwrap();
    }

    async fn log_lines(&self, group: &str, lines: &[String]) {
        let logs = aws_sdk_cloudwatchlogs::Client::new(&self.stage().sdk);
        // Made once.
        let _ = logs.create_log_group().log_group_name(group).send().await;
        let _ = logs.create_log_stream().log_group_name(group).log_stream_name("front-1").send().await;
        self.operated.write(group, "front-1", lines).await.unwrap();
    }

    /// AWS shows this much of the month.
    async fn bill(&self, usd: &str) {
        let account = self.topic().split(':').nth(4).unwrap();
        self.stage().aws.bill(account, "reveille", usd, None).await;
    }

    async fn doctor(&self) -> Said {
        self.operated.reveille(&["doctor", "--json"]).await
    }

    /// Exactly these checks find something, and nothing is left unchecked.
    async fn finds(&self, checks: &[&str], texts: &[&str]) -> Said {
        let said = self.doctor().await;
        let report = said.json();
        let (mut found, mut unchecked) = (Vec::new(), Vec::new());
        for check in report["checks"].as_array().unwrap() {
            let name = check["check"].as_str().unwrap().to_owned();
            if !check["findings"].as_array().unwrap().is_empty() {
                found.push(name.clone());
            }
            if !check["not_checked"].as_array().unwrap().is_empty() {
                unchecked.push(name);
            }
        }
        assert_eq!(
            (found, unchecked),
            (checks.iter().map(|name| (*name).to_owned()).collect(), vec![]),
            "{}",
            said.out
        );
        assert_eq!(said.code, i32::from(!checks.is_empty()), "{said:?}");
        texts.iter().for_each(|text| assert!(said.out.contains(text), "{text}: {}", said.out));
        said
    }
}

#[tokio::test]
async fn a_deployment_that_is_well_has_no_finding_and_nothing_is_changed() {
    let scene = Scene::new().await;
    scene.stage().aws.clear_calls().await;
    scene.finds(&[], &[]).await;
    let changes: Vec<_> = scene.stage().aws.calls().await.into_iter().filter(|call| !only_looks(call)).collect();
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(scene.stage().state(&scene.node).await.unwrap(), "running", "its dry runs are dry");
}

/// The row of one check.
fn row<'a>(report: &'a Value, check: &str) -> &'a Value {
    report["checks"].as_array().unwrap().iter().find(|row| row["check"] == check).unwrap()
}

/// The texts of one check's list.
fn texts(report: &Value, check: &str, list: &str) -> String {
    row(report, check)[list].to_string()
}

/// The fault of one call.
fn refuse(service: &str, action: &str, times: i64) -> Value {
    json!([{"service": service, "action": action, "code": "AccessDenied", "times": times}])
}

/// The pool `voice` with something else in it.
fn voice_with(field: &str, value: Value) -> Value {
    let mut pools = voice_pools();
    pools["voice"][field] = value;
    pools
}

#[tokio::test]
async fn settings_that_no_function_starts_with() {
    let mut scene = Scene::new().await;
    scene.operated.shell.extend(scene.stage().vars.clone());
    scene.operated.shell.insert("REVEILLE_ZONE".to_owned(), "Europe/Atlantis".to_owned());
    let said = scene.doctor().await;
    let report = said.json();
    assert_eq!((said.code, report["checks"].as_array().unwrap().len()), (1, 1), "{said:?}");
    let finding = &report["checks"][0]["findings"][0];
    assert!(finding["what"].as_str().unwrap().contains("Europe/Atlantis"), "{finding}");
    assert!(finding["change"].as_str().unwrap().starts_with("REVEILLE_ZONE of the functions"), "{finding}");
    assert_eq!(report["checks"][0]["not_checked"], json!(["all other checks need valid settings"]));
}

#[tokio::test]
async fn calls_that_nobody_observes() {
    let mut pools = voice_with("calls", json!("unobserved"));
    pools["voice"].as_object_mut().unwrap().remove("open");
    Scene::with(&pools, &[]).await.finds(&["observed calls"], &["longer than 30 min", "REVEILLE_POOLS.voice"]).await;
}

#[tokio::test]
async fn a_schedule_that_is_disabled_missing_aimless_or_slow() {
    let scene = Scene::new().await;
    let events = scene.events();
    let idle = format!("{NAME}-idle-check");
    events.disable_rule().name(&idle).send().await.unwrap();
    scene.finds(&["schedules"], &["is disabled", "aws events enable-rule --name reveille-idle-check"]).await;
    events.enable_rule().name(&idle).send().await.unwrap();
    scene.schedule("idle-check", "rate(15 minutes)").await;
    scene.finds(&["schedules"], &["rate(15 minutes)", "REVEILLE_TICK_MINUTES is 5"]).await;
    scene.schedule("idle-check", "rate(5 minutes)").await;
    events.remove_targets().rule(&idle).ids("1").send().await.unwrap();
    scene.finds(&["schedules"], &["does not call the function reveille-idle-check"]).await;
    scene.aim(&idle, "idle-check").await;
    let guard = format!("{NAME}-budget-guard");
    events.remove_targets().rule(&guard).ids("1").send().await.unwrap();
    events.delete_rule().name(&guard).send().await.unwrap();
    scene.finds(&["schedules"], &["there is no rule reveille-budget-guard", "the gate never closes"]).await;
}

#[tokio::test]
async fn a_heartbeat_that_stopped() {
    let scene = Scene::new().await;
    scene.stage().pass(TimeDelta::minutes(11)).await;
    scene.finds(&[], &[]).await;
    scene.stage().pass(TimeDelta::minutes(1)).await;
    scene.finds(&["heartbeat"], &["since 08:55", "/aws/lambda/reveille-idle-check"]).await;
}

#[tokio::test]
async fn a_heartbeat_that_cloudwatch_did_not_answer_is_not_one_that_stopped() {
    let scene = Scene::new().await;
    // The first call of a look is for the signals, the next for the heartbeat.
    let fault = json!([{"service": "cloudwatch", "action": "GetMetricData", "skip": 1, "body": {"status_code": "InternalError"}, "times": -1}]);
    scene.stage().aws.faults(fault).await;
    let report = scene.doctor().await.json();
    assert_eq!(row(&report, "heartbeat")["findings"], json!([]), "{report}");
    assert!(texts(&report, "heartbeat", "not_checked").contains("Reveille Ticks"), "{report}");
}

#[tokio::test]
async fn what_one_question_could_not_ask_hides_nothing_of_the_others() {
    let scene = Scene::with(&voice_with("instance_types", json!(["g6.xlarge", "trn1.2xlarge"])), &[]).await;
    let stage = scene.stage();
    let second = stage.add_node("gpu-2", "voice", true).await.unwrap();
    for node in [&scene.node, &second] {
        stage.aws.config(json!({"instance": node, "disable_api_stop": true})).await;
    }
    scene.events().disable_rule().name(format!("{NAME}-budget-guard")).send().await.unwrap();
    // The first call of each kind.
    for (service, action) in
        [("events", "DescribeRule"), ("ec2", "DescribeInstanceAttribute"), ("cloudwatch", "ListMetrics")]
    {
        stage.aws.faults(refuse(service, action, 1)).await;
    }
    stage.aws.faults(refuse("dynamodb", "Query", -1)).await;
    let report = scene.doctor().await.json();
    let found = [
        ("schedules", "reveille-budget-guard is disabled", "read rule reveille-idle-check"),
        // Which of the two is asked first is a matter of their ids.
        ("stop protection", "gpu-", "read the stop protection"),
        ("prices", "trn1.2xlarge", "read history"),
    ];
    for (check, finding, why) in found {
        assert!(texts(&report, check, "findings").contains(finding), "{check}: {report}");
        assert!(texts(&report, check, "not_checked").contains(why), "{check}: {report}");
    }
    assert!(texts(&report, "metrics", "not_checked").contains("list metrics"), "{report}");
}

#[tokio::test]
async fn without_the_list_of_nodes_no_metric_is_well() {
    let metric = json!([{"namespace": "App", "metric": "Sessions", "dimensions": {"Node": "{node}"}}]);
    let scene = Scene::with(&voice_with("open", metric), &[]).await;
    scene.stage().aws.faults(refuse("ec2", "DescribeInstances", -1)).await;
    let report = scene.doctor().await.json();
    for check in ["metrics", "counted requests", "stop protection", "spot", "beats", "clocks", "prices"] {
        assert!(texts(&report, check, "not_checked").contains("describe nodes failed"), "{check}: {report}");
    }
}

#[tokio::test]
async fn a_right_that_a_function_lacks_before_it_is_needed() {
    let scene = Scene::new().await;
    let refuse =
        |action: &str| json!([{"service": "ec2", "action": action, "code": "UnauthorizedOperation", "times": -1}]);
    scene.stage().aws.faults(refuse("StopInstances")).await;
    let texts = ["reveille-idle-check may not ec2:StopInstances on gpu-1", "never stopped: $0.8048 an hour"];
    scene.finds(&["rights"], &texts).await;
    scene.stage().aws.clear_faults().await;
    scene.stage().aws.faults(refuse("StartInstances")).await;
    scene
        .finds(&["rights"], &["reveille-wake may not ec2:StartInstances", "aws:ResourceTag/reveille:pool is voice"])
        .await;
}

#[tokio::test]
async fn a_right_that_was_missing_when_it_was_needed() {
    let scene = Scene::new().await;
    let fault = json!([{"service": "cloudwatch", "action": "GetMetricData", "code": "AccessDenied", "times": 1}]);
    scene.stage().aws.faults(fault).await;
    scene.operated.tick().await.unwrap();
    scene
        .finds(&["refusals"], &["reveille-idle-check was refused in the last day: read activity (AccessDenied)"])
        .await;
}

#[tokio::test]
async fn a_right_whose_lack_ends_the_run() {
    let budget = ("REVEILLE_BUDGET", r#"{"amount": 1, "currency": "USD"}"#);
    let scene = Scene::with(&voice_pools(), &[budget]).await;
    let stage = scene.stage();
    stage.pass(TimeDelta::minutes(40)).await;
    stage.aws.faults(json!([{"service": "sns", "action": "Publish", "code": "AuthorizationError", "times": -1}])).await;
    let guard = stage.look_at_budget().await;
    assert!(guard.result.is_err(), "it fails visibly: {guard:?}");
    scene.operated.log("budget-guard", &guard.logs).await.unwrap();
    stage.aws.clear_faults().await;
    stage.aws.faults(refuse("dynamodb", "BatchGetItem", -1)).await;
    let alarm = stage.look_at_uptime().await;
    assert!(alarm.result.is_err(), "it fails visibly: {alarm:?}");
    scene.operated.log("uptime-alarm", &alarm.logs).await.unwrap();
    stage.aws.clear_faults().await;
    let report = scene.doctor().await.json();
    let refused = texts(&report, "refusals", "findings");
    for text in [
        "reveille-budget-guard was refused in the last day: publish alert#all#budget",
        "(AuthorizationError)",
        "reveille-uptime-alarm was refused in the last day: read ledger (AccessDenied)",
    ] {
        assert!(refused.contains(text), "{text}: {refused}");
    }
}

#[tokio::test]
async fn a_topic_that_tells_nobody() {
    let scene = Scene::new().await;
    let sns = aws_sdk_sns::Client::new(&scene.stage().sdk);
    let all = sns.list_subscriptions_by_topic().topic_arn(scene.topic()).send().await.unwrap();
    for one in all.subscriptions() {
        sns.unsubscribe().subscription_arn(one.subscription_arn().unwrap()).send().await.unwrap();
    }
    scene.finds(&["subscribers"], &["has no subscriber", "aws sns subscribe --topic-arn"]).await;
    sns.delete_topic().topic_arn(scene.topic()).send().await.unwrap();
    scene.finds(&["subscribers"], &["there is no topic", "REVEILLE_ALERT_TOPIC_ARN"]).await;
}

#[tokio::test]
async fn a_metric_whose_dimension_never_had_a_point() {
    let mut pools = voice_pools();
    pools["voice"]["requests"] = pool_behind("app/vioce/0123456789abcdef")["requests"].clone();
    let near = format!("CloudWatch has it with LoadBalancer={LOAD_BALANCER}");
    Scene::with(&pools, &[])
        .await
        .finds(&["metrics"], &["RequestCount with LoadBalancer=app/vioce/0123456789abcdef", &near])
        .await;
}

#[tokio::test]
async fn a_metric_of_each_node_that_one_node_does_not_send() {
    let metric = json!([{"namespace": "App", "metric": "Sessions", "dimensions": {"Node": "{node}"}}]);
    let scene = Scene::with(&voice_with("open", metric), &[]).await;
    let texts = [format!("App Sessions with Node={} had no point", scene.node), "no App Sessions at all".to_owned()];
    scene.finds(&["metrics"], &texts.each_ref().map(String::as_str)).await;
}

#[tokio::test]
async fn a_metric_that_counted_no_request_in_a_week() {
    let mut pools = voice_pools();
    let metric = |name: &str| json!({"namespace": "App", "metric": name, "dimensions": {"Front": "a"}});
    pools["voice"]["requests"] = json!([metric("Requests")]);
    let scene = Scene::with(&pools, &[]).await;
    let put = async |value: f64| {
        let front = aws_sdk_cloudwatch::types::Dimension::builder().name("Front").value("a").build();
        let datum = aws_sdk_cloudwatch::types::MetricDatum::builder()
            .metric_name("Requests")
            .dimensions(front)
            .timestamp(aws_sdk_cloudwatch::primitives::DateTime::from_secs(nine().timestamp() - 600))
            .value(value)
            .build();
        let cloudwatch = aws_sdk_cloudwatch::Client::new(&scene.stage().sdk);
        cloudwatch.put_metric_data().namespace("App").metric_data(datum).send().await.unwrap();
    };
    put(0.0).await;
    let texts = ["App Requests with Front=a counted no request in a week, and pool voice ran", "stopped as idle"];
    scene.finds(&["counted requests"], &texts).await;
    put(1.0).await;
    scene.finds(&[], &[]).await;
}

#[tokio::test]
async fn a_pool_that_did_not_run_says_nothing_of_its_metric() {
    let scene = Scene::new().await;
    let ec2 = aws_sdk_ec2::Client::new(&scene.stage().sdk);
    ec2.stop_instances().instance_ids(scene.node.as_str()).send().await.unwrap();
    scene.stage().pass(TimeDelta::minutes(2)).await;
    scene.operated.tick().await.unwrap();
    scene.stage().pass(TimeDelta::days(8)).await;
    let now = nine() + TimeDelta::days(8);
    scene.beat(now - TimeDelta::minutes(3)).await;
    scene.bill("3.00").await;
    scene.log_lines(LOG_GROUP, &[CALL.to_owned()]).await;
    let report = scene.finds(&[], &[]).await.json();
    assert!(texts(&report, "counted requests", "undecided").contains("no node of pool voice ran"), "{report}");
}

#[tokio::test]
async fn a_filter_that_matched_nothing_in_a_week() {
    let noise = CALL.replace("/v1/calls", "/health");
    let logs = json!([{"group": "/app/api", "lines": {"paths": ["/v2"]}}]);
    let scene = Scene::with(&voice_with("logs", logs), &[]).await;
    scene.log_lines("/app/api", &[noise.clone(), noise.clone()]).await;
    let said =
        scene.finds(&["log matches"], &["no line of /app/api matched `logs` of pool voice in a week, of 2"]).await;
    assert!(!said.out.contains(LOG_GROUP), "the other log has a call: {}", said.out);
    scene.stage().pass(TimeDelta::days(8)).await;
    let now = nine() + TimeDelta::days(8);
    scene.beat(now - TimeDelta::minutes(3)).await;
    scene.bill("120.00").await;
    scene.stage().put_points(&[("RequestCount", now - TimeDelta::hours(1), 1.0)]).await.unwrap();
    scene.finds(&["log matches"], &["the log /app/front of pool voice had no line in a week"]).await;
}

#[tokio::test]
async fn log_lines_in_no_known_format() {
    let scene = Scene::new().await;
    let lines = vec!["call of anna@example.com went well".to_owned(); 3];
    scene.log_lines(LOG_GROUP, &lines).await;
    let said = scene.finds(&["log formats"], &["3 of 4 lines of /app/front", "`format` and `fields`"]).await;
    assert!(!said.out.contains("anna"), "a line may be anything that somebody said: {}", said.out);
}

#[tokio::test]
async fn a_tag_that_is_misspelt() {
    let scene = Scene::new().await;
    let ec2 = aws_sdk_ec2::Client::new(&scene.stage().sdk);
    let tag = |key: &str, value: &str| aws_sdk_ec2::types::Tag::builder().key(key).value(value).build();
    let set = |key: &'static str, value: &'static str| {
        ec2.create_tags().resources(scene.node.as_str()).tags(tag(key, value)).send()
    };
    set("reveille:keep-until", "tomorrow").await.unwrap();
    scene.finds(&["tags"], &["reveille:keep-until=tomorrow, which nobody can follow", "reveille hold --for 2h"]).await;
    ec2.delete_tags().resources(scene.node.as_str()).tags(tag("reveille:keep-until", "tomorrow")).send().await.unwrap();
    set("reveille:pool", "vioce").await.unwrap();
    let texts = ["reveille:pool=vioce, and no such pool", "it runs, and nothing will ever stop it", "Value=voice"];
    scene.finds(&["tags"], &texts).await;
    ec2.delete_tags().resources(scene.node.as_str()).tags(tag("reveille:pool", "vioce")).send().await.unwrap();
    set("Reveille:Pool", "voice").await.unwrap();
    scene.finds(&["tags"], &["Reveille:Pool=voice, which is reveille:pool but for its spelling"]).await;
}

#[tokio::test]
async fn two_pools_that_share_a_node() {
    let scene = Scene::new().await;
    let ec2 = aws_sdk_ec2::Client::new(&scene.stage().sdk);
    let tag = aws_sdk_ec2::types::Tag::builder().key("Reveille:Pool").value("batch").build();
    ec2.create_tags().resources(scene.node.as_str()).tags(tag).send().await.unwrap();
    scene.finds(&["shared nodes"], &["pool voice stops it while pool batch takes it for its own"]).await;
}

#[tokio::test]
async fn two_pools_that_count_the_same_requests() {
    let mut pools = voice_pools();
    pools["batch"] = pool_behind(LOAD_BALANCER);
    let scene = Scene::with(&pools, &[("REVEILLE_DEFAULT_POOL", "voice")]).await;
    scene.stage().add_node("batch-1", "batch", false).await.unwrap();
    scene.finds(&["shared nodes"], &["pools batch and voice both count AWS/ApplicationELB RequestCount"]).await;
}

#[tokio::test]
async fn a_node_that_ec2_refuses_to_stop() {
    let scene = Scene::new().await;
    scene.stage().aws.config(json!({"instance": scene.node, "disable_api_stop": true})).await;
    scene.finds(&["stop protection"], &["has stop protection", "$0.8048 an hour", "--no-disable-api-stop"]).await;
    scene.stage().aws.config(json!({"instance": scene.node, "disable_api_stop": false, "spot": true})).await;
    scene.finds(&["spot"], &["one-time request", "SpotInstanceType=persistent"]).await;
}

#[tokio::test]
async fn a_price_that_is_unknown() {
    let types = voice_with("instance_types", json!(["g6.xlarge", "trn1.2xlarge"]));
    let scene = Scene::with(&types, &[]).await;
    scene
        .finds(&["prices"], &["no price is known of instance type trn1.2xlarge in us-east-1", "\\\"trn1.2xlarge\\\""])
        .await;
}

#[tokio::test]
async fn a_budget_that_counts_nothing() {
    let tenth: DateTime<Utc> = "2026-11-10T09:00:00Z".parse().unwrap();
    let scene = Scene::at(tenth, &voice_pools(), &[]).await;
    scene.stage().look_at_budget().await;
    scene.stage().pass(TimeDelta::hours(24)).await;
    scene.beat(tenth + TimeDelta::hours(24) - TimeDelta::minutes(5)).await;
    scene.finds(&[], &[]).await;
    scene.stage().pass(TimeDelta::hours(2)).await;
    scene.beat(tenth + TimeDelta::hours(26) - TimeDelta::minutes(5)).await;
    scene.finds(&["cost tag"], &["shows nothing spent", "TagKey=reveille:pool,Status=Active"]).await;
    scene.bill("0.40").await;
    scene.finds(&[], &[]).await;
}

#[tokio::test]
async fn a_budget_that_nobody_made() {
    let scene = Scene::new().await;
    let account = scene.topic().split(':').nth(4).unwrap().to_owned();
    let budgets = aws_sdk_budgets::Client::new(&scene.stage().sdk);
    let report = scene.finds(&[], &[]).await.json();
    assert!(texts(&report, "cost tag", "undecided").contains("less than $1"), "{report}");
    budgets.delete_budget().account_id(&account).budget_name("reveille").send().await.unwrap();
    scene.finds(&["cost tag"], &["there is no AWS budget reveille", "/aws/lambda/reveille-budget-guard"]).await;
}

#[tokio::test]
async fn no_budget_at_all() {
    Scene::with(&voice_pools(), &[("REVEILLE_BUDGET", "")])
        .await
        .finds(&["cost tag"], &["no budget is configured"])
        .await;
}

fn beat(at: DateTime<Utc>) -> Beat {
    let (open, counted) = (Some(0), Some(0));
    Beat {
        at,
        ready: true,
        row: 3,
        ready_since: Some(at),
        open,
        counted,
        gpu: None,
        open_at: None,
        used_at: None,
        since: Some(at),
    }
}

#[tokio::test]
async fn a_beat_that_stopped_and_a_clock_that_is_ahead() {
    let scene = Scene::with(&voice_with("beat", json!(true)), &[]).await;
    scene.finds(&["beats"], &["has sent no beat since its launch", "systemctl status reveille-beat"]).await;
    let writer = BeatWriter::new(&scene.stage().sdk, TABLE);
    writer.write(&scene.node, &beat(nine() - TimeDelta::minutes(1))).await.unwrap();
    scene.finds(&[], &[]).await;
    writer.write(&scene.node, &beat(nine() - TimeDelta::minutes(4))).await.unwrap();
    scene.finds(&["beats"], &["has sent no beat since 08:56"]).await;
    writer.write(&scene.node, &beat(nine() + TimeDelta::minutes(2))).await.unwrap();
    scene.finds(&["clocks"], &["is 120 s ahead", "timedatectl set-ntp true"]).await;
}

#[tokio::test]
async fn a_clock_of_this_machine_that_is_off() {
    let mut scene = Scene::new().await;
    let (url, _server) = clock(|_| async { nine() + TimeDelta::seconds(90) }).await.unwrap();
    scene.operated.shell.insert("REVEILLE_CLOCK_URL".to_owned(), url);
    scene.finds(&["clocks"], &["the clock of this machine is 90 s ahead of AWS's"]).await;
}

#[tokio::test]
async fn the_time_that_the_checks_take_is_nobodys_clock_that_is_off() {
    let mut scene = Scene::with(&voice_with("beat", json!(true)), &[]).await;
    let endpoint = scene.stage().aws.endpoint().to_owned();
    // Ninety seconds pass once it has begun.
    let look = move |n: usize| {
        let aws = LocalAws::attach(&endpoint);
        async move {
            let now = aws.now().await;
            if n == 0 {
                aws.advance_clock(TimeDelta::seconds(90)).await;
            }
            now
        }
    };
    let (url, _server) = clock(look).await.unwrap();
    scene.operated.shell.insert("REVEILLE_CLOCK_URL".to_owned(), url);
    let writer = BeatWriter::new(&scene.stage().sdk, TABLE);
    writer.write(&scene.node, &beat(nine() + TimeDelta::seconds(80))).await.unwrap();
    scene.finds(&[], &[]).await;
}

#[tokio::test]
async fn a_fact_of_the_ledger_that_a_clock_ahead_has_written() {
    let scene = Scene::new().await;
    let in_a_day = (nine() + TimeDelta::days(1)).to_rfc3339();
    let wake = aws_sdk_dynamodb::types::AttributeValue::M(
        [("at", in_a_day.as_str()), ("source", "prewarm")]
            .map(|(name, text)| (name.to_owned(), aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned())))
            .into(),
    );
    let key = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let dynamodb = aws_sdk_dynamodb::Client::new(&scene.stage().sdk);
    let update = dynamodb.update_item().table_name(TABLE).key("pk", key("pool#voice")).key("sk", key("-"));
    let update = update.update_expression("SET wake = :wake").expression_attribute_values(":wake", wake);
    update.send().await.unwrap();
    scene.finds(&["clocks"], &["the fact `wake` of pool voice", "remove `wake` from the item pool#voice"]).await;
}

#[tokio::test]
async fn what_may_not_be_looked_at_is_said_and_never_taken_for_well() {
    let scene = Scene::new().await;
    let refuse = |service: &str, action: &str| json!({"service": service, "action": action, "code": "AccessDenied", "times": -1});
    let faults = [refuse("sns", "ListSubscriptionsByTopic"), refuse("events", "DescribeRule")];
    scene.stage().aws.faults(json!(faults)).await;
    let said = scene.operated.reveille(&["doctor"]).await;
    println!("{}", said.out);
    assert_eq!((said.code, said.err.as_str()), (3, ""), "{said:?}");
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    for text in ["subscribers", "schedules", "not checked:", "0 found something in all, 2 not checked", "spot"] {
        assert!(said.out.contains(text), "{text}: {}", said.out);
    }
}
