//! The executor over the local AWS as a bench.

use crate::bench::{Bench, Told, Trouble, morning, voice};
use aws_config::retry::RetryConfig;
use aws_sdk_cloudwatch::primitives::DateTime as SdkDateTime;
use aws_sdk_cloudwatch::types::{Dimension, MetricDatum};
use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_ec2::types::{Filter, Tag, Volume};
use axum::body::Bytes;
use axum::http::Request;
use chrono::TimeDelta;
use futures::future::join_all;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reveille::aws::Aws;
use reveille::domain::{Beat, Disk, Instant, NodeId, NodeState, StateReason};
use reveille::error::{ErrorClass, class_of};
use reveille::run::{Answer, Call, MetricRef, Outcome, Run};
use reveille_tests::local_aws::Published;
use reveille_tests::stage::{Stage, TABLE};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant as Moment;

/// The stream of every log group.
const STREAM: &str = "front-1";

/// As `aws/mod.rs` sets it for all calls but START, STOP and the change of a type.
const ATTEMPTS: u32 = 3;

/// No law is about the time that a call may take.
const LONGEST: Duration = Duration::from_secs(30);

/// Stages that no law is using: one takes a second to start and a blink to reset.
static FREE: Mutex<Vec<Stage>> = Mutex::new(Vec::new());

pub(crate) struct Local {
    /// There until the bench is dropped.
    stage: Option<Stage>,
    aws: Aws,
    ec2: aws_sdk_ec2::Client,
}

impl Local {
    pub(crate) async fn open() -> Self {
        let free = FREE.lock().expect("nothing panics while it holds the lock").pop();
        let stage = match free {
            Some(mut stage) => {
                stage.reset().await.expect("a reset stage");
                stage
            }
            None => Stage::open(morning()).await.expect("a stage"),
        };
        let retries =
            RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(Duration::from_millis(1));
        let sdk = stage.sdk.to_builder().retry_config(retries).build();
        let (aws, ec2) = (Aws::with(&sdk, &stage.config()), aws_sdk_ec2::Client::new(&sdk));
        Self { stage: Some(stage), aws, ec2 }
    }

    fn stage(&self) -> &Stage {
        self.stage.as_ref().expect("there until the bench is dropped")
    }

    async fn set(&self, node: &NodeId, mut settings: Value) {
        settings["instance"] = json!(node.as_str());
        self.stage().aws.config(settings).await;
    }

    /// Gives a node an Elastic IP.
    pub(crate) async fn give_elastic(&self, node: &NodeId) {
        let address = self.ec2.allocate_address().send().await.expect("an Elastic IP");
        let id = address.allocation_id.expect("an allocation");
        self.ec2.associate_address().instance_id(node.as_str()).allocation_id(id).send().await.expect("an association");
    }

    /// FilterLogEvents gives this many lines at a time.
    pub(crate) async fn page_logs_by(&self, lines: u32) {
        self.stage().aws.config(json!({"filter_events_per_page": lines})).await;
    }

    /// Makes every item of a pool's history 200 KB long; a page of a query is 1 MB. Says whether one page holds all.
    pub(crate) async fn fatten_history(&self, pool: &str) -> bool {
        let dynamodb = aws_sdk_dynamodb::Client::new(&self.stage().sdk);
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let key = format!("hist#{pool}");
        let query = dynamodb.query().table_name(TABLE).key_condition_expression("pk = :pk");
        let query = query.expression_attribute_values(":pk", text(&key));
        let found = query.clone().send().await.expect("the history").items.unwrap_or_default();
        for item in found {
            let update = dynamodb.update_item().table_name(TABLE).key("pk", text(&key)).key("sk", item["sk"].clone());
            let update = update.update_expression("SET padding = :padding");
            let padding = text(&"x".repeat(200_000));
            update.expression_attribute_values(":padding", padding).send().await.expect("a longer item");
        }
        query.send().await.expect("the history").last_evaluated_key.is_none()
    }

    /// Writes an attribute of an item of the ledger.
    async fn write(&self, pk: &str, attribute: &str, value: &Value) {
        let dynamodb = aws_sdk_dynamodb::Client::new(&self.stage().sdk);
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let update = dynamodb.update_item().table_name(TABLE).key("pk", text(pk)).key("sk", text("-"));
        let update = update.update_expression("SET #a = :a").expression_attribute_names("#a", attribute);
        update.expression_attribute_values(":a", stored(value)).send().await.expect("an attribute");
    }

    async fn volumes(&self, node: &NodeId) -> Vec<Volume> {
        let attached = Filter::builder().name("attachment.instance-id").values(node.as_str()).build();
        self.ec2.describe_volumes().filters(attached).send().await.expect("volumes").volumes.unwrap_or_default()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // A law that failed may have left anything behind.
        if let Some(stage) = self.stage.take().filter(|_| !std::thread::panicking()) {
            FREE.lock().expect("nothing panics while it holds the lock").push(stage);
        }
    }
}

impl Bench for Local {
    async fn answer(&mut self, call: &Call) -> Answer {
        self.aws.answer(call, Moment::now() + LONGEST).await
    }

    async fn answers(&mut self, calls: &[Call]) -> Vec<Answer> {
        join_all(calls.iter().map(|call| self.aws.answer(call, Moment::now() + LONGEST))).await
    }

    async fn drive(&mut self, run: &mut impl Run) -> Outcome {
        self.aws.drive(run, TimeDelta::seconds(30)).await
    }

    async fn now(&mut self) -> Instant {
        self.stage().aws.now().await
    }

    async fn pass(&mut self, time: TimeDelta) {
        self.stage().pass(time).await;
    }

    async fn add_node(&mut self, name: &str, pool: &str, state: NodeState) -> NodeId {
        self.stage().add_node(name, pool, state == NodeState::Running).await.expect("a node")
    }

    async fn add_stranger(&mut self) {
        let launched = self.ec2.run_instances().image_id("ami-12c6146b").min_count(1).max_count(1).send().await;
        launched.expect("an instance without tags");
    }

    async fn make_spot(&mut self, node: &NodeId) {
        self.set(node, json!({"spot": true})).await;
    }

    async fn protect_from_stop(&mut self, node: &NodeId) {
        self.set(node, json!({"disable_api_stop": true})).await;
    }

    async fn hang_in_stopping(&mut self, node: &NodeId) {
        self.set(node, json!({"stopping_seconds": 86_400})).await;
    }

    async fn fall_back(&mut self, node: &NodeId, reason: StateReason) {
        let back = json!({"code": reason.code, "message": reason.message, "after_seconds": 20});
        self.set(node, json!({"falls_back": back})).await;
    }

    async fn start_by_hand(&mut self, node: &NodeId) {
        self.stage().start_by_hand(node).await.expect("a start by hand");
    }

    async fn stop_by_hand(&mut self, node: &NodeId) {
        self.ec2.stop_instances().instance_ids(node.as_str()).send().await.expect("a stop by hand");
    }

    async fn terminate_by_hand(&mut self, node: &NodeId) {
        self.ec2.terminate_instances().instance_ids(node.as_str()).send().await.expect("a termination by hand");
    }

    async fn tag(&mut self, node: &NodeId, key: &str, value: &str) {
        let tag = Tag::builder().key(key).value(value).build();
        self.ec2.create_tags().resources(node.as_str()).tags(tag).send().await.expect("a tag");
    }

    async fn write_unreadable(&mut self, attribute: &str, value: Value) {
        self.write(&format!("pool#{}", voice()), attribute, &value).await;
    }

    async fn beat(&mut self, node: &NodeId, beat: &Beat) {
        let value = serde_json::to_value(beat).expect("a beat as JSON");
        self.write(&format!("beat#{node}"), "beat", &value).await;
    }

    async fn write_unreadable_beat(&mut self, node: &NodeId, value: Value) {
        self.write(&format!("beat#{node}"), "beat", &value).await;
    }

    async fn no_room_for(&mut self, types: &[&str]) {
        self.stage().aws.config(json!({"no_capacity_types": types})).await;
    }

    async fn no_room_for_node(&mut self, node: &NodeId) {
        self.set(node, json!({"no_capacity": true})).await;
    }

    async fn strip_disks(&mut self, node: &NodeId) {
        for volume in self.volumes(node).await {
            let id = volume.volume_id().expect("a volume has an id");
            let device = volume.attachments().first().and_then(|attached| attached.device()).expect("a device");
            let off = self.ec2.detach_volume().volume_id(id).instance_id(node.as_str()).device(device).send().await;
            off.expect("a volume that is taken off");
            self.ec2.delete_volume().volume_id(id).send().await.expect("a volume that is deleted");
        }
    }

    async fn add_disk(&mut self, node: &NodeId, disk: &Disk) {
        let number = |value: i64| i32::try_from(value).expect("a number that EC2 takes");
        let made = self
            .ec2
            .create_volume()
            .availability_zone("us-east-1a")
            .volume_type(disk.kind.as_str().into())
            .size(number(disk.gib))
            .iops(number(disk.iops))
            .throughput(number(disk.mibps))
            .send();
        let id = made.await.expect("a volume").volume_id.expect("a volume has an id");
        let device = format!("/dev/sd{}", (b'f' + self.volumes(node).await.len() as u8) as char);
        let attached = self.ec2.attach_volume().volume_id(id).instance_id(node.as_str()).device(device).send().await;
        attached.expect("a volume that is attached");
    }

    async fn point(&mut self, metric: &MetricRef, at: Instant, value: f64) {
        let dimension = |(name, value): (&String, &String)| Dimension::builder().name(name).value(value).build();
        let datum = MetricDatum::builder()
            .metric_name(&metric.metric)
            .set_dimensions(Some(metric.dimensions.iter().map(dimension).collect()))
            .timestamp(SdkDateTime::from_millis(at.timestamp_millis()))
            .value(value)
            .build();
        let cloudwatch = aws_sdk_cloudwatch::Client::new(&self.stage().sdk);
        let sent = cloudwatch.put_metric_data().namespace(&metric.namespace).metric_data(datum).send().await;
        sent.expect("a point");
    }

    async fn add_log_group(&mut self, group: &str) {
        let logs = aws_sdk_cloudwatchlogs::Client::new(&self.stage().sdk);
        logs.create_log_group().log_group_name(group).send().await.expect("a log group");
        logs.create_log_stream().log_group_name(group).log_stream_name(STREAM).send().await.expect("a log stream");
    }

    async fn log(&mut self, group: &str, at: Instant, line: &str) {
        let event = InputLogEvent::builder().timestamp(at.timestamp_millis()).message(line).build().expect("an event");
        let logs = aws_sdk_cloudwatchlogs::Client::new(&self.stage().sdk);
        let sent = logs.put_log_events().log_group_name(group).log_stream_name(STREAM).log_events(event).send().await;
        assert!(sent.expect("a line").rejected_log_events_info.is_none(), "too old or too new: {at}");
    }

    async fn page_logs_small(&mut self) {
        self.stage().aws.config(json!({"filter_events_per_page": 2, "empty_first_log_page": true})).await;
    }

    async fn set_figures(&mut self, budget: &str, actual: &str, forecast: Option<&str>) {
        let stage = self.stage();
        let account = stage.config().account().to_owned();
        let figures = json!({"account": account, "name": budget, "actual": actual, "forecast": forecast});
        let request = Request::post(format!("{}/local-aws/budgets", stage.aws.endpoint()))
            .body(Full::new(Bytes::from(figures.to_string())))
            .expect("a request");
        let answer = Client::builder(TokioExecutor::new()).build_http().request(request).await.expect("an answer");
        assert!(answer.status().is_success(), "the figures of {budget}: {}", answer.status());
    }

    async fn fail(&mut self, call: &'static str, trouble: Trouble, times: u32) {
        let (code, after) = match trouble {
            Trouble::Refused(code) => (Some(code), false),
            Trouble::FailedAfter(code) => (Some(code), true),
            Trouble::AnswerLost => (None, true),
        };
        let is_sent_once = matches!(call, "start" | "stop" | "resize");
        let is_retried = code.is_none_or(|code| class_of(code) == ErrorClass::Transient) && !is_sent_once;
        let mut fault = wire(call);
        fault["after"] = json!(after);
        fault["times"] = json!(if is_retried { times * ATTEMPTS } else { times });
        if let Some(code) = code {
            fault["code"] = json!(code);
        }
        self.stage().aws.faults(fault).await;
    }

    async fn take_sent(&mut self, call: &'static str) -> usize {
        let action = wire(call)["action"].clone();
        let sent = self.stage().aws.calls().await.iter().filter(|seen| action == json!(seen.action)).count();
        self.stage().aws.clear_calls().await;
        sent
    }

    async fn published(&mut self) -> Vec<Told> {
        let told = |published: Published| Told {
            subject: published.subject.unwrap_or_default(),
            body: published.message,
            attributes: published.attributes,
        };
        self.stage().aws.published().await.into_iter().map(told).collect()
    }
}

/// JSON as DynamoDB keeps it.
fn stored(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(yes) => AttributeValue::Bool(*yes),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Array(list) => AttributeValue::L(list.iter().map(stored).collect()),
        Value::Object(map) => AttributeValue::M(map.iter().map(|(key, one)| (key.clone(), stored(one))).collect()),
    }
}

/// How the launcher knows a call: service, action and, where several calls share an action, a piece of its body.
fn wire(call: &str) -> Value {
    let (service, action, piece) = match call {
        "describe" => ("ec2", "DescribeInstances", None),
        "readiness" => ("ec2", "DescribeInstanceStatus", None),
        "start" => ("ec2", "StartInstances", None),
        "stop" => ("ec2", "StopInstances", None),
        "resize" => ("ec2", "ModifyInstanceAttribute", None),
        "disks" => ("ec2", "DescribeVolumes", None),
        "activity" | "samples" => ("cloudwatch", "GetMetricData", None),
        "logs" => ("logs", "FilterLogEvents", None),
        "budget" => ("budgets", "DescribeBudget", None),
        "create_budget" => ("budgets", "CreateBudget", None),
        "set_budget_amount" => ("budgets", "UpdateBudget", None),
        "create_notices" => ("budgets", "CreateNotification", None),
        "read_ledger" => ("dynamodb", "BatchGetItem", Some("pool#")),
        "beats" => ("dynamodb", "BatchGetItem", Some("beat#")),
        "history" => ("dynamodb", "Query", None),
        "budget_note" => ("dynamodb", "GetItem", None),
        "note_budget" => ("dynamodb", "UpdateItem", Some("#note = :note")),
        "set_gate" => ("dynamodb", "UpdateItem", Some("#gate.#by = :budget")),
        "launches" => ("dynamodb", "UpdateItem", Some("#l0 = :l0")),
        "claim_alert" => ("dynamodb", "PutItem", None),
        "demand" => ("dynamodb", "UpdateItem", Some(r##""#n3":"wake"##)),
        "give_lease" => ("dynamodb", "UpdateItem", Some("size(")),
        "renew_lease" => ("dynamodb", "UpdateItem", Some(" > :v")),
        "end_lease" => ("dynamodb", "UpdateItem", Some("REMOVE #n0.#n1")),
        "hold" => ("dynamodb", "UpdateItem", Some("\"hold#")),
        "claim" => ("dynamodb", "UpdateItem", Some("#claim = :claim")),
        "record" => ("dynamodb", "UpdateItem", Some("#claim.#answer = :answer")),
        "facts" => ("dynamodb", "UpdateItem", Some("#f0")),
        "mark_published" => ("dynamodb", "UpdateItem", Some("published = :yes")),
        "untold" => ("dynamodb", "UpdateItem", Some("#untold")),
        "publish" => ("sns", "Publish", None),
        other => panic!("no call is named {other}"),
    };
    json!({"service": service, "action": action, "match": piece})
}
