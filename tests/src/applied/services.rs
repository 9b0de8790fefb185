//! What AWS does by itself with what was made: EventBridge and CloudWatch Logs deliver, Lambda lets in, invokes, repeats, keeps
//! what failed and writes the functions' lines, CloudWatch counts. Everything that steers it was read back from the resources.

use super::policy::{Asks, permits};
use super::wiring::{FunctionMade, Rule, Wiring};
use crate::local_aws::LocalAws;
use crate::runtime_api::{Function, FunctionSpec, Invocation};
use crate::stage::{StageResult, log_batch};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_cloudwatch::primitives::DateTime as SdkDateTime;
use aws_sdk_cloudwatch::types::{Dimension, MetricDatum};
use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use aws_sdk_ec2::config::Credentials;
use axum::body::Bytes;
use axum::http::{Request, header};
use chrono::{DateTime, TimeDelta, Utc};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Lambda waits so long before the first repeat of an event, and twice as long before the second ("Error handling for
/// asynchronous invocation", AWS Lambda Developer Guide).
const FIRST_REPEAT: TimeDelta = TimeDelta::minutes(1);
const LOG_STREAM: &str = "day";

/// A line that a function wrote.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// The function's name.
    pub function: String,
    /// The line, read as JSON.
    pub line: Value,
}

/// A run of a function.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    /// When it was invoked.
    pub at: DateTime<Utc>,
    /// The function's name.
    pub function: String,
    /// What invoked it: a rule, a log group or `url`.
    pub by: String,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// An event that is to be tried again.
#[derive(Debug, Clone)]
pub(super) struct Repeat {
    /// When.
    pub at: DateTime<Utc>,
    delivery: Delivery,
}

#[derive(Debug, Clone)]
struct Delivery {
    function: String,
    by: String,
    event: Value,
    since: DateTime<Utc>,
    attempt: u32,
}

/// The account as the day goes on.
#[derive(Debug)]
pub(super) struct Services {
    /// The local AWS.
    pub aws: LocalAws,
    /// What was made.
    pub wiring: Wiring,
    /// Clients of the person at the console.
    pub sdk: SdkConfig,
    /// Every run.
    pub ran: Vec<Ran>,
    /// Every line.
    pub said: Vec<Said>,
    /// Deliveries that a resource's policy did not permit.
    pub refused: Vec<String>,
    /// Events that failed for good and were sent to a queue.
    pub dead_letters: usize,
    functions: BTreeMap<String, Running>,
    streams: usize,
}

#[derive(Debug)]
struct Running {
    function: Function,
    logs: aws_sdk_cloudwatchlogs::Client,
    has_stream: bool,
}

impl Services {
    /// Takes up the functions that were made. Each acts as its own role: the local AWS judges its calls.
    ///
    /// # Errors
    /// The local AWS refused, or a program is missing.
    pub(super) async fn start(aws: LocalAws, wiring: Wiring) -> StageResult<Self> {
        let sdk = sdk_config(aws.endpoint(), &wiring.region, "console").await;
        let mut functions = BTreeMap::new();
        let mut keys = BTreeMap::new();
        for made in &wiring.functions {
            keys.insert(made.name.clone(), made.role.clone());
            let own = sdk_config(aws.endpoint(), &wiring.region, &made.name).await;
            let running = Running {
                function: Function::start(spec(made, &aws, &wiring.region))?,
                logs: aws_sdk_cloudwatchlogs::Client::new(&own),
                has_stream: false,
            };
            functions.insert(made.arn.clone(), running);
        }
        for node in &wiring.nodes {
            keys.extend(node.role.clone().map(|role| (node_key(&node.id), role)));
        }
        aws.iam(&keys).await;
        let (ran, said, refused) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { aws, wiring, sdk, ran, said, refused, dead_letters: 0, functions, streams: 0 })
    }

    /// Runs every target of the scheduled rule.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn fire(&mut self, rule: &Rule) -> StageResult<Vec<Repeat>> {
        let now = self.aws.now().await;
        let event = json!({"version": "0", "id": format!("tick-{}", now.timestamp()), "detail-type": "Scheduled Event",
            "source": "aws.events", "account": self.wiring.account, "time": now.to_rfc3339(), "region": self.wiring.region,
            "resources": [rule.arn], "detail": {}});
        self.tell(rule, &event).await
    }

    /// Gives an event to every rule whose pattern it matches; EventBridge's own operation says whether it does.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn publish(&mut self, event: &Value) -> StageResult<Vec<Repeat>> {
        let mut repeats = Vec::new();
        for rule in self.wiring.rules.clone().iter().filter(|rule| rule.enabled) {
            let Some(pattern) = &rule.pattern else { continue };
            let asked = json!({"EventPattern": pattern, "Event": event.to_string()});
            if self.ask("events", "AWSEvents.TestEventPattern", "console", &asked).await?["Result"] == true {
                repeats.extend(self.tell(rule, event).await?);
            }
        }
        Ok(repeats)
    }

    async fn tell(&mut self, rule: &Rule, event: &Value) -> StageResult<Vec<Repeat>> {
        let mut repeats = Vec::new();
        for target in &rule.targets {
            let context = BTreeMap::from([("aws:sourcearn", rule.arn.clone())]);
            let event = target.input.as_ref().map_or_else(|| Ok(event.clone()), |input| serde_json::from_str(input))?;
            repeats.extend(self.invoke_event(&target.arn, "events.amazonaws.com", context, &rule.name, event).await?);
        }
        Ok(repeats)
    }

    /// Writes lines into a log group and hands those that a subscription's pattern takes to its function. Which these are, the
    /// local AWS says by its reading of filter patterns.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn log(&mut self, group: &str, lines: &[String]) -> StageResult<Vec<Repeat>> {
        let logs = aws_sdk_cloudwatchlogs::Client::new(&self.sdk);
        let now = self.aws.now().await;
        self.streams += 1;
        let stream = format!("front-{}", self.streams);
        logs.create_log_stream().log_group_name(group).log_stream_name(&stream).send().await?;
        let events = lines.iter().map(|line| log_event(now, line)).collect::<StageResult<Vec<_>>>()?;
        logs.put_log_events()
            .log_group_name(group)
            .log_stream_name(&stream)
            .set_log_events(Some(events))
            .send()
            .await?;
        let mut repeats = Vec::new();
        for subscription in self.wiring.subscriptions.clone().iter().filter(|one| one.group == group) {
            let read = logs
                .filter_log_events()
                .log_group_name(group)
                .log_stream_names(&stream)
                .filter_pattern(&subscription.pattern)
                .send()
                .await?;
            let taken: Vec<Value> = read
                .events()
                .iter()
                .map(
                    |event| json!({"id": event.event_id(), "timestamp": event.timestamp(), "message": event.message()}),
                )
                .collect();
            if taken.is_empty() {
                continue;
            }
            let (region, account) = (&self.wiring.region, &self.wiring.account);
            let context = BTreeMap::from([
                ("aws:sourcearn", format!("arn:aws:logs:{region}:{account}:log-group:{group}:*")),
                ("aws:sourceaccount", account.clone()),
            ]);
            let event = log_batch(group, &taken);
            repeats.extend(
                self.invoke_event(&subscription.destination, "logs.amazonaws.com", context, group, event).await?,
            );
        }
        Ok(repeats)
    }

    /// A signed request to the URL of the function whose name ends so; none where Lambda's front does not let it in.
    ///
    /// # Errors
    /// The local AWS refused, or the function has no URL.
    pub(super) async fn request(&mut self, ending: &str, who: &str, request: &Value) -> StageResult<Option<Value>> {
        let made = self.wiring.function(ending)?.clone();
        let auth = made.url.as_ref().ok_or("the function has no URL")?.auth.clone();
        let may = |action, key: &'static str, value: String| {
            permits(&made.policy, &Asks { who, action, context: BTreeMap::from([(key, value)]) })
        };
        if !may("lambda:InvokeFunctionUrl", "lambda:functionurlauthtype", auth)?
            || !may("lambda:InvokeFunction", "lambda:invokedviafunctionurl", "true".to_owned())?
        {
            return Ok(None);
        }
        let invocation = self.run(&made, "url", request).await?;
        Ok(Some(invocation.result.unwrap_or(Value::Null)))
    }

    /// Tries an event again.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn repeat(&mut self, repeat: Repeat) -> StageResult<Option<Repeat>> {
        self.attempt(repeat.delivery).await
    }

    async fn invoke_event(
        &mut self,
        arn: &str,
        who: &str,
        context: BTreeMap<&'static str, String>,
        by: &str,
        event: Value,
    ) -> StageResult<Option<Repeat>> {
        let made = self.wiring.functions.iter().find(|function| function.arn == arn);
        let made = made.ok_or_else(|| format!("{by} names a function that is not there: {arn}"))?;
        if !permits(&made.policy, &Asks { who, action: "lambda:InvokeFunction", context })? {
            self.refused.push(format!("{by} may not invoke {}", made.name));
            return Ok(None);
        }
        let since = self.aws.now().await;
        self.attempt(Delivery { function: arn.to_owned(), by: by.to_owned(), event, since, attempt: 0 }).await
    }

    /// One attempt at an asynchronous invocation, as the function's own settings have it.
    async fn attempt(&mut self, mut delivery: Delivery) -> StageResult<Option<Repeat>> {
        let made = self.wiring.functions.iter().find(|function| function.arn == delivery.function);
        let made = made.ok_or("the function is gone")?.clone();
        if self.run(&made, &delivery.by, &delivery.event).await?.result.is_ok() {
            return Ok(None);
        }
        let (retries, max_age, on_failure) =
            made.invoke.map_or((2, 21_600, None), |invoke| (invoke.retries, invoke.max_age_seconds, invoke.on_failure));
        let at = self.aws.now().await + FIRST_REPEAT * i32::try_from(delivery.attempt + 1)?;
        let is_young = (at - delivery.since).num_seconds() <= i64::try_from(max_age)?;
        if delivery.attempt < retries && is_young {
            delivery.attempt += 1;
            return Ok(Some(Repeat { at, delivery }));
        }
        if let Some(queue) = on_failure {
            let url = self.wiring.queues.get(&queue).ok_or_else(|| format!("no such queue: {queue}"))?;
            let body = json!({"requestPayload": delivery.event, "condition": "RetriesExhausted"}).to_string();
            self.ask("sqs", "AmazonSQS.SendMessage", &made.name, &json!({"QueueUrl": url, "MessageBody": body}))
                .await?;
            self.dead_letters += 1;
            self.count(
                "AWS/SQS",
                "ApproximateNumberOfMessagesVisible",
                &[("QueueName", last(&queue, ':'))],
                self.dead_letters,
            )
            .await?;
        }
        Ok(None)
    }

    async fn run(&mut self, made: &FunctionMade, by: &str, event: &Value) -> StageResult<Invocation> {
        let at = self.aws.now().await;
        let running = self.functions.get_mut(&made.arn).ok_or("the function is not running")?;
        let invocation = running.function.invoke(event).await;
        running.write(made, at, &invocation.logs).await?;
        let lines = invocation.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<Value> = lines.collect();
        for line in &lines {
            self.extract(line).await?;
        }
        let function = made.name.clone();
        self.said.extend(lines.into_iter().map(|line| Said { function: function.clone(), line }));
        let error = invocation.result.as_ref().err().map(ToString::to_string);
        if error.is_some() {
            self.count("AWS/Lambda", "Errors", &[("FunctionName", &function)], 1).await?;
        }
        self.ran.push(Ran { at, function, by: by.to_owned(), error });
        Ok(invocation)
    }

    /// CloudWatch makes metrics of lines in its embedded format.
    async fn extract(&self, line: &Value) -> StageResult<()> {
        for directive in line["_aws"]["CloudWatchMetrics"].as_array().into_iter().flatten() {
            let namespace = directive["Namespace"].as_str().ok_or("a metric without a namespace")?;
            for metric in directive["Metrics"].as_array().into_iter().flatten() {
                let name = metric["Name"].as_str().ok_or("a metric without a name")?;
                if let Some(value) = line[name].as_u64() {
                    self.count(namespace, name, &[], usize::try_from(value)?).await?;
                }
            }
        }
        Ok(())
    }

    async fn count(&self, namespace: &str, metric: &str, dimensions: &[(&str, &str)], value: usize) -> StageResult<()> {
        let now = self.aws.now().await;
        let dimensions =
            dimensions.iter().map(|(name, value)| Dimension::builder().name(*name).value(*value).build()).collect();
        let datum = MetricDatum::builder()
            .metric_name(metric)
            .timestamp(SdkDateTime::from_secs(now.timestamp()))
            .set_dimensions(Some(dimensions))
            .value(f64::from(u32::try_from(value)?))
            .build();
        let cloudwatch = aws_sdk_cloudwatch::Client::new(&self.sdk);
        cloudwatch.put_metric_data().namespace(namespace).metric_data(datum).send().await?;
        Ok(())
    }

    /// A call of a service whose client is not needed otherwise.
    async fn ask(&self, service: &str, target: &str, key: &str, body: &Value) -> StageResult<Value> {
        let scope = format!("{key}/20260101/{}/{service}/aws4_request", self.wiring.region);
        let request = Request::post(self.aws.endpoint())
            .header(header::CONTENT_TYPE, "application/x-amz-json-1.1")
            .header("x-amz-target", target)
            .header(
                header::AUTHORIZATION,
                format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"),
            )
            .body(Full::new(Bytes::from(body.to_string())))?;
        let response = Client::builder(TokioExecutor::new()).build_http().request(request).await?;
        let status = response.status();
        let answer = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            return Err(format!("{target} answered {status}: {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Whether a service may publish to every topic, for this account.
    ///
    /// # Errors
    /// A policy says what is not known here.
    pub(super) fn may_publish(&self, service: &str) -> StageResult<bool> {
        let context = BTreeMap::from([("aws:sourceaccount", self.wiring.account.clone())]);
        let asks = Asks { who: service, action: "sns:Publish", context };
        let may = self.wiring.topics.iter().map(|topic| permits(&topic.policy, &asks));
        let may = may.collect::<Result<BTreeSet<bool>, String>>()?;
        Ok(may == BTreeSet::from([true]))
    }
}

impl Running {
    /// Lambda writes a function's lines, with the function's own role, where its settings say.
    async fn write(&mut self, made: &FunctionMade, at: DateTime<Utc>, lines: &[String]) -> StageResult<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let group = &made.log_group;
        if !self.has_stream {
            self.logs.create_log_stream().log_group_name(group).log_stream_name(LOG_STREAM).send().await?;
            self.has_stream = true;
        }
        let events = lines.iter().map(|line| log_event(at, line)).collect::<StageResult<Vec<_>>>()?;
        let put = self.logs.put_log_events().log_group_name(group).log_stream_name(LOG_STREAM);
        put.set_log_events(Some(events)).send().await?;
        Ok(())
    }
}

/// The access key by which a node is known.
pub(super) fn node_key(id: &str) -> String {
    format!("node-{id}")
}

fn spec(made: &FunctionMade, aws: &LocalAws, region: &str) -> FunctionSpec {
    let mut env = made.environment.clone();
    env.extend(
        [
            ("AWS_ENDPOINT_URL", aws.endpoint()),
            ("REVEILLE_CLOCK_URL", &format!("{}/local-aws/clock", aws.endpoint())),
            ("AWS_REGION", region),
            ("AWS_DEFAULT_REGION", region),
            ("AWS_ACCESS_KEY_ID", &made.name),
            ("AWS_SECRET_ACCESS_KEY", "local"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    FunctionSpec {
        name: made.name.clone(),
        binary: Path::new(&made.binary).to_owned(),
        env,
        timeout: Duration::from_secs(made.timeout_seconds),
        memory_mb: made.memory_mb,
        max_instances: 4,
    }
}

async fn sdk_config(endpoint: &str, region: &str, key: &str) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(endpoint)
        .region(Region::new(region.to_owned()))
        .credentials_provider(Credentials::new(key, "local", None, None, "applied"))
        .load()
        .await
}

fn log_event(at: DateTime<Utc>, line: &str) -> StageResult<InputLogEvent> {
    Ok(InputLogEvent::builder().timestamp(at.timestamp_millis()).message(line).build()?)
}

fn last(text: &str, separator: char) -> &str {
    text.rsplit(separator).next().unwrap_or(text)
}

/// The minutes in `rate(5 minutes)`.
///
/// # Errors
/// It is another kind of expression.
pub(super) fn rate(expression: &str) -> StageResult<TimeDelta> {
    let inner = expression.strip_prefix("rate(").and_then(|rest| rest.strip_suffix(')'));
    let minutes = inner.and_then(|inner| inner.strip_suffix(" minutes")).and_then(|number| number.parse().ok());
    minutes.map(TimeDelta::minutes).ok_or_else(|| format!("a schedule that is not known here: {expression}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_as_eventbridge_writes_it() {
        assert_eq!(rate("rate(5 minutes)").unwrap(), TimeDelta::minutes(5));
        assert!(rate("rate(5 minute)").is_err());
        assert!(rate("cron(0 * * * ? *)").is_err());
    }
}
