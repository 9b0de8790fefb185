//! Starts the local AWS of `tests/local-aws/` and steers it: its clock, its faults, what it saw.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Method, Request, header};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Loading moto takes a second or two; a first start, without compiled Python files, several. On a machine that is busy
/// with twenty other things it took over a minute.
const START_LIMIT: Duration = Duration::from_secs(240);

/// A running local AWS; dropping it ends it, unless it was [attached to](LocalAws::attach).
///
/// # Panics
/// Each call under `/local-aws/` panics with the launcher's message if it is refused: the test asked for the wrong thing.
#[derive(Debug)]
pub struct LocalAws {
    /// None where somebody else has started it.
    child: Option<Child>,
    endpoint: String,
}

/// An AWS call that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CallSeen {
    /// When, in milliseconds of the virtual clock.
    pub at_ms: i64,
    /// The service, `ec2`.
    pub service: String,
    /// The action, `StartInstances`.
    pub action: String,
    /// The HTTP status of the answer; 0 if the answer was lost.
    pub status: u16,
    /// What it was about, an instance id or a table, where the launcher can tell.
    pub target: Option<String>,
}

/// A message that was published to a topic.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Published {
    /// The topic's ARN.
    pub topic: String,
    /// The subject line.
    pub subject: Option<String>,
    /// The text.
    pub message: String,
    /// The message attributes.
    pub attributes: BTreeMap<String, String>,
    /// When, in milliseconds of the virtual clock.
    pub at_ms: i64,
}

#[derive(Deserialize)]
struct Clock {
    now_ms: i64,
    #[serde(default)]
    events: Vec<Value>,
}

impl LocalAws {
    /// Starts it for the project folder `root`, with the clock at the launcher's own beginning.
    ///
    /// # Errors
    /// Its Python packages are not installed, or it ended or did not listen within four minutes.
    pub async fn start(root: &Path) -> io::Result<Self> {
        Self::launch(root, &[]).await
    }

    /// Starts it with the clock at `now`.
    ///
    /// # Errors
    /// As [`LocalAws::start`].
    pub async fn start_at(root: &Path, now: DateTime<Utc>) -> io::Result<Self> {
        Self::launch(root, &["--now", &now.to_rfc3339_opts(SecondsFormat::Millis, true)]).await
    }

    /// Steers one that somebody else has started, and will end.
    pub fn attach(endpoint: &str) -> Self {
        Self { child: None, endpoint: endpoint.to_owned() }
    }

    async fn launch(root: &Path, arguments: &[&str]) -> io::Result<Self> {
        let packages = root.join(".tools/python");
        if !packages.is_dir() {
            let hint = "the local AWS lacks its Python packages: run `make setup` (or `sh tests/local-aws/install.sh`)";
            return Err(io::Error::new(io::ErrorKind::NotFound, hint));
        }
        let mut child = Command::new("python3")
            .arg(root.join("tests/local-aws/launcher.py"))
            .args(["--port", "0", "--exit-with-stdin"])
            .args(arguments)
            .env("PYTHONPATH", packages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| io::Error::new(e.kind(), format!("start python3 for the local AWS failed: {e}")))?;
        let stdout = child.stdout.take().expect("stdout is piped");
        // Built before the wait, so that a start that fails or is given up ends the process too.
        let mut local_aws = Self { child: Some(child), endpoint: String::new() };
        let (found, endpoint) = oneshot::channel();
        std::thread::spawn(move || find_endpoint(BufReader::new(stdout), found));
        local_aws.endpoint = match tokio::time::timeout(START_LIMIT, endpoint).await {
            Ok(Ok(endpoint)) => endpoint,
            Ok(Err(_)) => return Err(io::Error::other("the local AWS ended before it listened; stderr says why")),
            Err(_) => return Err(io::Error::other("the local AWS did not listen within four minutes")),
        };
        Ok(local_aws)
    }

    /// Gives the address for `AWS_ENDPOINT_URL`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Gives the time of the virtual clock.
    pub async fn now(&self) -> DateTime<Utc> {
        instant(self.ask::<Clock>(Method::GET, "clock", None).await.now_ms)
    }

    /// Moves the clock forward to `to` and gives the events that this caused, oldest first; they are given once.
    pub async fn set_clock(&self, to: DateTime<Utc>) -> Vec<Value> {
        let body = json!({"now_ms": to.timestamp_millis(), "drain": true});
        self.ask::<Clock>(Method::POST, "clock", Some(body)).await.events
    }

    /// Moves the clock forward by this, wherever it is; otherwise as [`LocalAws::set_clock`].
    pub async fn advance_clock(&self, by: TimeDelta) -> Vec<Value> {
        let body = json!({"advance_ms": by.num_milliseconds(), "drain": true});
        self.ask::<Clock>(Method::POST, "clock", Some(body)).await.events
    }

    /// Adds a fault or a list of faults for calls to come.
    pub async fn faults(&self, faults: Value) {
        self.ask::<Value>(Method::POST, "faults", Some(faults)).await;
    }

    /// Removes the faults that wait and gives what is left of them.
    pub async fn take_faults(&self) -> Vec<Value> {
        let left = self.waiting_faults().await;
        self.clear_faults().await;
        left
    }

    /// Gives the faults that wait.
    pub async fn waiting_faults(&self) -> Vec<Value> {
        self.ask(Method::GET, "faults", None).await
    }

    /// Removes the faults that wait.
    pub async fn clear_faults(&self) {
        self.ask::<Value>(Method::DELETE, "faults", None).await;
    }

    /// Changes settings, of one instance if `instance` names it.
    pub async fn config(&self, settings: Value) {
        self.ask::<Value>(Method::POST, "config", Some(settings)).await;
    }

    /// Gives the AWS calls since the start or the last clearing.
    pub async fn calls(&self) -> Vec<CallSeen> {
        self.ask(Method::GET, "calls", None).await
    }

    /// Gives the AWS calls seen so far and forgets them.
    pub async fn take_calls(&self) -> Vec<CallSeen> {
        self.ask(Method::DELETE, "calls", None).await
    }

    /// Forgets the calls seen so far.
    pub async fn clear_calls(&self) {
        self.ask::<Value>(Method::DELETE, "calls", None).await;
    }

    /// Lets calls with these access keys act as the roles named beside them: from now on their policies are asked.
    pub async fn iam(&self, keys: &BTreeMap<String, String>) {
        self.ask::<Value>(Method::POST, "iam", Some(json!({"keys": keys}))).await;
    }

    /// How often each statement of those roles allowed a call, and which calls were refused.
    pub async fn iam_used(&self) -> Value {
        self.ask(Method::GET, "iam", None).await
    }

    /// Sets what AWS shows as spent and forecast of a budget, in dollars: billing lags, and a test plays how.
    pub async fn bill(&self, account: &str, name: &str, actual: &str, forecast: Option<&str>) {
        let figures = json!({"account": account, "name": name, "actual": actual, "forecast": forecast});
        self.ask::<Value>(Method::POST, "budgets", Some(figures)).await;
    }

    /// Gives every AWS budget with its notifications.
    pub async fn budgets(&self) -> Vec<Value> {
        self.ask(Method::GET, "budgets", None).await
    }

    /// Gives the messages published since the start or the last reset.
    pub async fn published(&self) -> Vec<Published> {
        self.ask(Method::GET, "published", None).await
    }

    /// Makes a role with this one policy; `keys` act as it from now on.
    ///
    /// # Panics
    /// The policy is none.
    pub async fn role(&self, name: &str, policy: &Value, key: &str) {
        let version = json!({"Version": "2012-10-17", "Statement": []}).to_string();
        let made = [("RoleName", name), ("AssumeRolePolicyDocument", &version)];
        self.iam_query("CreateRole", &made).await;
        let policy = policy.to_string();
        let put = [("RoleName", name), ("PolicyName", "operator"), ("PolicyDocument", &policy)];
        self.iam_query("PutRolePolicy", &put).await;
        self.iam(&BTreeMap::from([(key.to_owned(), name.to_owned())])).await;
    }

    /// IAM's own protocol: a form.
    async fn iam_query(&self, action: &str, parameters: &[(&str, &str)]) {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", action).append_pair("Version", "2010-05-08").extend_pairs(parameters);
        let scope =
            "AWS4-HMAC-SHA256 Credential=local/20261130/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0";
        let request = Request::post(&self.endpoint)
            .header(header::AUTHORIZATION, scope)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(form.finish())))
            .expect("the launcher printed a valid address");
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request).await.unwrap_or_else(|e| panic!("{action} failed: {e}"));
        let status = response.status();
        let answer = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        assert!(status.is_success(), "{action} answered {status}: {}", String::from_utf8_lossy(&answer));
    }

    /// Gives the messages published so far and forgets them.
    pub async fn take_published(&self) -> Vec<Published> {
        self.ask(Method::DELETE, "published", None).await
    }

    /// Makes it an empty account again, at the time it began with.
    pub async fn reset(&self) {
        self.ask::<Value>(Method::POST, "reset", None).await;
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, what: &str, body: Option<Value>) -> T {
        let asked = format!("{method} {}/local-aws/{what}", self.endpoint);
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/local-aws/{what}", self.endpoint))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.map_or_else(String::new, |body| body.to_string()))))
            .expect("the launcher printed a valid address");
        // A client of its own per call: a pooled connection would be bound to the runtime of one test.
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request).await.unwrap_or_else(|e| panic!("{asked} failed: {e}"));
        let status = response.status();
        let answer =
            response.into_body().collect().await.unwrap_or_else(|e| panic!("{asked} broke off: {e}")).to_bytes();
        assert!(status.is_success(), "{asked} answered {status}: {}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).unwrap_or_else(|e| panic!("{asked} answered something else: {e}"))
    }
}

impl Drop for LocalAws {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Fails only if it has ended already.
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Sends the address that the launcher prints, then reads on so that its output never fills up.
fn find_endpoint(stdout: impl BufRead, found: oneshot::Sender<String>) {
    let mut found = Some(found);
    for line in stdout.lines().map_while(Result::ok) {
        let endpoint = line.strip_prefix("listening on ");
        if let (Some(endpoint), Some(found)) = (endpoint, found.take_if(|_| endpoint.is_some())) {
            // Nobody waits for it if the start was given up.
            found.send(endpoint.to_owned()).ok();
        }
    }
}

fn instant(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).expect("the clock is within chrono's range")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    async fn started() -> LocalAws {
        LocalAws::start_at(root(), at("2026-01-05T10:00:00Z")).await.unwrap()
    }

    #[tokio::test]
    async fn missing_packages_are_named_with_the_remedy() {
        let error = LocalAws::start(Path::new("no/such/root")).await.unwrap_err();
        assert!(error.to_string().contains("make setup"), "{error}");
    }

    #[tokio::test]
    async fn the_clock_stands_until_it_is_set_and_reset_turns_it_back() {
        let aws = started().await;
        assert_eq!(aws.now().await, at("2026-01-05T10:00:00Z"));
        assert!(aws.set_clock(at("2026-01-05T10:07:00Z")).await.is_empty(), "nothing runs, so nothing happens");
        assert_eq!(aws.now().await, at("2026-01-05T10:07:00Z"));
        aws.reset().await;
        assert_eq!(aws.now().await, at("2026-01-05T10:00:00Z"));
    }

    #[tokio::test]
    #[should_panic(expected = "unknown in a fault: nonsense")]
    async fn a_refused_request_panics_with_the_launchers_words() {
        started().await.faults(json!([{"nonsense": 1}])).await;
    }

    #[tokio::test]
    async fn dropping_it_ends_it() {
        let aws = started().await;
        let address = aws.endpoint().strip_prefix("http://").unwrap().to_owned();
        drop(aws);
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn lists_calls_and_messages() {
        let aws = started().await;
        assert_eq!((aws.calls().await, aws.published().await), (vec![], vec![]));
        aws.config(json!({"pending_seconds": 5})).await;
        aws.faults(json!({"service": "sns", "action": "CreateTopic", "times": -1, "code": "InternalFailure"})).await;
        assert_eq!(sns(&aws, "Action=CreateTopic&Name=alerts").await, 500);
        aws.clear_faults().await;
        assert_eq!(sns(&aws, "Action=CreateTopic&Name=alerts").await, 200);
        let seen: Vec<_> = aws.calls().await.into_iter().map(|call| (call.service, call.action, call.status)).collect();
        assert_eq!(seen, [("sns".into(), "CreateTopic".into(), 500), ("sns".into(), "CreateTopic".into(), 200)]);
        let topic = "arn:aws:sns:us-east-1:123456789012:alerts";
        sns(&aws, &format!("Action=Publish&TopicArn={topic}&Subject=news&Message=up")).await;
        let at_ms = at("2026-01-05T10:00:00Z").timestamp_millis();
        let news = Published {
            topic: topic.into(),
            subject: Some("news".into()),
            message: "up".into(),
            attributes: BTreeMap::new(),
            at_ms,
        };
        assert_eq!(aws.published().await, [news]);
        aws.clear_calls().await;
        assert_eq!(aws.calls().await, []);
    }

    /// Sends a query-protocol call to SNS and gives the status.
    async fn sns(aws: &LocalAws, form: &str) -> u16 {
        let request = Request::post(aws.endpoint())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::AUTHORIZATION, "AWS4-HMAC-SHA256 Credential=local/20260105/us-east-1/sns/aws4_request, x")
            .body(Full::new(Bytes::from(form.to_owned())))
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        client.request(request).await.unwrap().status().as_u16()
    }
}
