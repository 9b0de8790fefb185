//! A stage with an operator: the built command `reveille` against the local AWS, the functions it asks, and their logs.

use crate::lambda_api::{Deployed, Functions, serve};
use crate::local_aws::CallSeen;
use crate::runtime_api::{Function, Invocation, LocalServer};
use crate::stage::{Stage, StageResult, binary};
use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use axum::Router;
use axum::routing::get;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::process::Command;

/// The deployment's name.
pub const NAME: &str = "reveille";
const STREAM: &str = "2026/11/30/[$LATEST]0123456789abcdef0123456789abcdef";
/// PutLogEvents takes 10,000.
const MOST_EVENTS: usize = 5_000;
const FUNCTIONS: [&str; 4] = ["wake", "idle-check", "uptime-alarm", "budget-guard"];

/// What the command said.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Standard output as JSON.
    ///
    /// # Panics
    /// It is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The stage and its operator.
#[derive(Debug)]
pub struct Operated {
    /// The stage.
    pub stage: Stage,
    /// What the operator's shell has; an empty value takes one away.
    pub shell: BTreeMap<String, String>,
    /// The functions, as Lambda has them.
    pub functions: Functions,
    _lambda: LocalServer,
}

impl Operated {
    /// Deploys the stage's functions as `reveille-…`, with their log groups.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn on(stage: Stage) -> StageResult<Self> {
        let deployed = |function| {
            let variables = stage.vars.clone().into_iter().filter(|(name, _)| name.starts_with("REVEILLE_"));
            // Only the wake function has callers.
            let secret = ["REVEILLE_ACCESS", "REVEILLE_TOKEN_SHA256"];
            Deployed { function, variables: variables.filter(|(name, _)| !secret.contains(&name.as_str())).collect() }
        };
        let functions = Functions::new(BTreeMap::from([
            (format!("{NAME}-wake"), deployed(Arc::clone(&stage.wake))),
            (format!("{NAME}-idle-check"), deployed(Arc::new(stage.function_with("idle-check", &[])?))),
        ]));
        let lambda = serve(functions.clone()).await?;
        let logs = aws_sdk_cloudwatchlogs::Client::new(&stage.sdk);
        for function in FUNCTIONS {
            let group = group(function);
            logs.create_log_group().log_group_name(&group).send().await?;
            logs.create_log_stream().log_group_name(&group).log_stream_name(STREAM).send().await?;
        }
        let vars = [
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_ENDPOINT_URL", stage.aws.endpoint()),
            ("AWS_ENDPOINT_URL_LAMBDA", &format!("http://{}", lambda.address())),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self { shell: vars.into_iter().collect(), stage, functions, _lambda: lambda })
    }

    /// The command with these words, as a shell takes them; without a home, so that nobody's profile is read.
    pub fn command(&self, words: &[&str]) -> StageResult<Command> {
        let mut command = Command::new(binary("reveille")?);
        let set = self.shell.iter().filter(|(_, value)| !value.is_empty());
        command.env_clear().env("HOME", "/nonexistent").envs(set).args(words).kill_on_drop(true);
        Ok(command)
    }

    /// Runs it to its end, and keeps what the functions logged.
    ///
    /// # Panics
    /// It is not built, or the local AWS refused.
    pub async fn reveille(&self, words: &[&str]) -> Said {
        let output = self.command(words).expect("it is built").output().await.expect("it runs");
        for (function, line) in self.functions.take_logs() {
            let function = function.strip_prefix(&format!("{NAME}-")).unwrap_or(&function).to_owned();
            self.log(&function, &[line]).await.expect("the local AWS takes lines");
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// One idle check, whose log goes where Lambda puts it.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn tick(&self) -> StageResult<Invocation> {
        let run = self.stage.tick().await;
        self.log("idle-check", &run.logs).await?;
        Ok(run)
    }

    /// Puts all that the stage's functions have written so far where Lambda would have put it, each line at its own time.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn keep_logs(&self) -> StageResult<()> {
        let stage = &self.stage;
        let all = [&*stage.wake, &stage.idle, &stage.uptime, &stage.budget];
        for (function, lines) in FUNCTIONS.into_iter().zip(all.map(Function::logs)) {
            let mut at = None;
            let mut timed: Vec<(DateTime<Utc>, String)> = Vec::new();
            for line in lines {
                // A line without a virtual time belongs to the run before it.
                at = time_in(&line).or(at);
                timed.extend(at.map(|at| (at, line)));
            }
            timed.sort_by_key(|(at, _)| *at);
            // AWS takes a day in one request; hours are less.
            for hour in timed.chunk_by(|one, other| one.0.timestamp() / 3600 == other.0.timestamp() / 3600) {
                self.write_at(&group(function), STREAM, hour).await?;
            }
        }
        Ok(())
    }

    /// Lines of a function's log, now.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn log(&self, function: &str, lines: &[String]) -> StageResult<()> {
        self.write(&group(function), STREAM, lines).await
    }

    /// Lines of any log, now.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn write(&self, group: &str, stream: &str, lines: &[String]) -> StageResult<()> {
        let now = self.stage.aws.now().await;
        self.write_at(group, stream, &lines.iter().map(|line| (now, line.clone())).collect::<Vec<_>>()).await
    }

    async fn write_at(&self, group: &str, stream: &str, lines: &[(DateTime<Utc>, String)]) -> StageResult<()> {
        let logs = aws_sdk_cloudwatchlogs::Client::new(&self.stage.sdk);
        for lines in lines.chunks(MOST_EVENTS) {
            let event = |(at, line): &(DateTime<Utc>, String)| {
                InputLogEvent::builder().timestamp(at.timestamp_millis()).message(line).build()
            };
            let events = lines.iter().map(event).collect::<Result<Vec<_>, _>>()?;
            let put = logs.put_log_events().log_group_name(group).log_stream_name(stream);
            put.set_log_events(Some(events)).send().await?;
        }
        Ok(())
    }
}

/// The virtual time of a line; the logger's own lines have a real one.
fn time_in(line: &str) -> Option<DateTime<Utc>> {
    let line: Value = serde_json::from_str(line).ok()?;
    line["at"].as_str().or(line["batch"]["at"].as_str())?.parse().ok()
}

/// Where Lambda puts the log of a function.
pub fn group(function: &str) -> String {
    format!("/aws/lambda/{NAME}-{function}")
}

/// What a look may ask of AWS.
const READS: [&str; 17] = [
    "BatchGetItem",
    "DescribeBudget",
    "DescribeInstanceAttribute",
    "DescribeInstanceStatus",
    "DescribeInstances",
    "DescribeNotificationsForBudget",
    "DescribeRule",
    "DescribeSpotInstanceRequests",
    "DescribeVolumes",
    "FilterLogEvents",
    "GetCallerIdentity",
    "GetItem",
    "GetMetricData",
    "ListMetrics",
    "ListSubscriptionsByTopic",
    "ListTargetsByRule",
    "Query",
];

/// Dry runs, which EC2 answers with 412: they change nothing.
const DRY_RUNS: [&str; 3] = ["ModifyInstanceAttribute", "StartInstances", "StopInstances"];

/// The stage keeps the functions' lines, as Lambda does.
const KEPT: &str = "PutLogEvents";

/// Whether a call changed nothing.
pub fn only_looks(call: &CallSeen) -> bool {
    let action = call.action.as_str();
    READS.contains(&action) || action == KEPT || call.status == 412 && DRY_RUNS.contains(&action)
}

/// A clock for `REVEILLE_CLOCK_URL`: its address, and what serves it until it is dropped. `answer` is told how often it was
/// looked at before.
///
/// # Errors
/// There is no free port.
pub async fn clock<F, Answer>(answer: F) -> StageResult<(String, LocalServer)>
where
    F: Fn(usize) -> Answer + Clone + Send + Sync + 'static,
    Answer: Future<Output = DateTime<Utc>> + Send + 'static,
{
    let looks = Arc::new(AtomicUsize::new(0));
    let look = move || {
        let answer = answer(looks.fetch_add(1, Ordering::SeqCst));
        async move { axum::Json(json!({ "now_ms": answer.await.timestamp_millis() })) }
    };
    let server = LocalServer::start(Router::new().route("/clock", get(look)), 0).await?;
    Ok((format!("http://{}/clock", server.address()), server))
}
