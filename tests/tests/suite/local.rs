//! The executor over the local AWS as a bench.

use crate::bench::{Bench, Told, Trouble, morning};
use aws_config::retry::RetryConfig;
use aws_sdk_cloudwatch::primitives::DateTime as SdkDateTime;
use aws_sdk_cloudwatch::types::{Dimension, MetricDatum};
use chrono::TimeDelta;
use futures::future::join_all;
use reveille::aws::Aws;
use reveille::domain::{Instant, NodeId, NodeState, StateReason};
use reveille::error::{ErrorClass, class_of};
use reveille::run::{Answer, Call, MetricRef, Outcome, Run};
use reveille_tests::local_aws::Published;
use reveille_tests::stage::Stage;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

/// As `aws/mod.rs` sets it for all calls but START and STOP.
const ATTEMPTS: u32 = 3;

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
        self.aws.answer(call).await
    }

    async fn answers(&mut self, calls: &[Call]) -> Vec<Answer> {
        join_all(calls.iter().map(|call| self.aws.answer(call))).await
    }

    async fn drive(&mut self, run: &mut impl Run) -> Outcome {
        self.aws.drive(run).await
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

    async fn fail(&mut self, call: &'static str, trouble: Trouble, times: u32) {
        let (code, after) = match trouble {
            Trouble::Refused(code) => (Some(code), false),
            Trouble::FailedAfter(code) => (Some(code), true),
            Trouble::AnswerLost => (None, true),
        };
        let is_sent_once = matches!(call, "start" | "stop");
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
        let told = |mut published: Published| Told {
            subject: published.subject.unwrap_or_default(),
            body: published.message,
            kind: published.attributes.remove("kind").unwrap_or_default(),
            pool: published.attributes.remove("pool").unwrap_or_default(),
            node: published.attributes.remove("node"),
        };
        self.stage().aws.published().await.into_iter().map(told).collect()
    }
}

/// How the launcher knows a call: service, action and, where several calls share an action, a piece of its body.
fn wire(call: &str) -> Value {
    let (service, action, piece) = match call {
        "describe" => ("ec2", "DescribeInstances", None),
        "readiness" => ("ec2", "DescribeInstanceStatus", None),
        "start" => ("ec2", "StartInstances", None),
        "stop" => ("ec2", "StopInstances", None),
        "activity" => ("cloudwatch", "GetMetricData", None),
        "read_ledger" => ("dynamodb", "BatchGetItem", None),
        "claim_alert" => ("dynamodb", "PutItem", None),
        "demand" => ("dynamodb", "UpdateItem", Some("#wake = :wake")),
        "claim" => ("dynamodb", "UpdateItem", Some("#claim = :claim")),
        "record" => ("dynamodb", "UpdateItem", Some("#claim.#answer = :answer")),
        "facts" => ("dynamodb", "UpdateItem", Some("#f0")),
        "mark_published" => ("dynamodb", "UpdateItem", Some("published = :yes")),
        "publish" => ("sns", "Publish", None),
        other => panic!("no call is named {other}"),
    };
    json!({"service": service, "action": action, "match": piece})
}
