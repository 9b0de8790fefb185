//! Laws of the wake function's HTTP face. The files around it are those of the function: `access`, `event` and `http`.

use crate::access::{Caller, admit};
use crate::event::{Event, EventFault};
use crate::http::{Ask, answer, read};
use aws_lambda_events::http::header::AUTHORIZATION;
use aws_lambda_events::lambda_function_urls::LambdaFunctionUrlRequest;
use chrono::{DateTime, TimeDelta, Utc};
use reveille::config::{Access, Config};
use reveille::domain::{Gate, GateKeeper, NodeId, NodeSeen, NodeState, PoolName, ReadyFact, RunId, WakeSource};
use reveille::run::{Cause, Context, LeaseRun, LeaseWish, Outcome, WakeRun, WakeWish};
use reveille::world::World;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TOKEN: &str = "c2VjcmV0LXRva2VuLW9mLXRoZS1hcHA=";

static TOKENS: LazyLock<Access> =
    LazyLock::new(|| Access::Token(BTreeMap::from([("app".to_owned(), Sha256::digest(TOKEN).into())])));

static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    let pool = r#"{"requests": [{"namespace": "N", "metric": "M"}], "calls": "leased", "calls_per_node": 2}"#;
    let vars = [
        ("REVEILLE_POOLS", format!(r#"{{"voice": {pool}, "batch": {pool}}}"#)),
        ("REVEILLE_DEFAULT_POOL", "voice".to_owned()),
        ("REVEILLE_TABLE", "ledger".to_owned()),
        ("REVEILLE_ALERT_TOPIC_ARN", "arn:aws:sns:eu-central-1:000000000000:alerts".to_owned()),
    ];
    Config::from_vars(&vars.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()).expect("valid")
});

/// An event as JSON; or its parts, a line each: method, path, query as JSON, `Authorization` (`T` for the right token), what
/// EC2 shows of the node, and the body.
pub(crate) fn http(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.splitn(6, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let event = if text.starts_with('{') { serde_json::from_str(&text).ok() } else { None };
    let (event, state) = match event {
        Some(event) => (event, ""),
        None => {
            let (method, path, query, authorization, state) = (next(), next(), next(), next(), next());
            (of_parts(method, path, query, authorization, next()), state)
        }
    };
    match Event::read(event.clone()) {
        Ok(Event::Request(request)) => is_asked(&request, state),
        Ok(Event::LogBatch(data)) => assert_eq!(event["awslogs"]["data"], data),
        Ok(Event::NodeStopped) => assert_eq!(event["detail"]["state"], "stopped"),
        Ok(Event::OtherState(state)) => assert_eq!(event["detail"]["state"], state),
        Ok(Event::Operator(asked)) => {
            assert_eq!(event["operator"], asked);
            assert!(event.pointer("/requestContext/http").is_none(), "a caller of the URL is no operator");
        }
        Err(fault) => says_nothing_of_the_event(&fault),
    }
}

fn of_parts(method: &str, path: &str, query: &str, authorization: &str, body: &str) -> Value {
    let authorization = if authorization == "T" { format!("Bearer {TOKEN}") } else { authorization.to_owned() };
    let query: Value = serde_json::from_str(query).unwrap_or_default();
    json!({"version": "2.0", "rawPath": path, "headers": {"authorization": authorization}, "queryStringParameters": query,
        "requestContext": {"http": {"method": method, "path": path, "sourceIp": "192.0.2.7"}},
        "body": body, "isBase64Encoded": method.len().is_multiple_of(2) && path.ends_with('/')})
}

fn says_nothing_of_the_event(fault: &EventFault) {
    let known = [
        "awslogs.data: not a string",
        "requestContext: not a function-URL request of payload 2.0 (Data)",
        "detail.state: not a string",
        "neither a function-URL request (requestContext.http), nor a log batch (awslogs), nor an EC2 state change (detail-type)",
    ];
    assert!(known.contains(&fault.0.as_str()), "{fault}");
}

fn is_asked(request: &LambdaFunctionUrlRequest, state: &str) {
    if let Ok(caller) = admit(&Access::Iam, request) {
        assert!(request.request_context.authorizer.is_some());
        is_no_secret(&caller, "iam:");
    }
    match admit(&TOKENS, request) {
        Ok(caller) => {
            let headers: Vec<_> = request.headers.get_all(AUTHORIZATION).iter().collect();
            assert!(headers.len() == 1 && headers[0].as_bytes().trim_ascii().ends_with(TOKEN.as_bytes()));
            assert_eq!(caller.class, "token:app");
            is_no_secret(&caller, "token:");
        }
        Err(refusal) => is_a_refusal(&refusal, &[401], request),
    }
    match read(&CONFIG, request) {
        Ok(ask) => {
            let answer = run(ask, state);
            is_an_answer(&answer, &[200, 202, 204, 403, 404, 409, 410, 429, 503]);
            repeats_nothing(&answer, request, 12);
        }
        Err(refusal) => is_a_refusal(&refusal, &[400, 404, 405, 413], request),
    }
}

fn is_no_secret(caller: &Caller, kind: &str) {
    let name = caller.class.strip_prefix(kind).expect("a class begins with its kind");
    assert!((1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic()), "{caller:?}");
    // Who names a role after a token gets it told.
    assert!(caller.rate_key() < 64 && (kind == "iam:" || !name.contains(TOKEN)));
}

fn is_a_refusal(answer: &Value, statuses: &[u64], request: &LambdaFunctionUrlRequest) {
    let body = is_an_answer(answer, statuses);
    assert_eq!((&body["status"], &body["type"]), (&answer["statusCode"], &json!("about:blank")), "{answer}");
    assert!(body["title"].is_string() && body["field"].is_string() && body["detail"].is_string(), "{answer}");
    repeats_nothing(answer, request, 8);
}

/// Gives the body.
fn is_an_answer(answer: &Value, statuses: &[u64]) -> Value {
    let status = answer["statusCode"].as_u64().expect("a status");
    assert!(statuses.contains(&status), "{answer}");
    let headers = answer["headers"].as_object().expect("headers");
    assert!(headers.values().all(Value::is_string) && headers["cache-control"] == "no-store", "{answer}");
    let retry = headers.get("retry-after").map(|text| text.as_str().and_then(|text| text.parse::<i64>().ok()));
    assert!(retry.is_none_or(|seconds| seconds.is_some_and(|seconds| seconds >= 0)), "{answer}");
    let Some(body) = answer["body"].as_str() else { return assert_eq_204(status) };
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert!(body.is_object(), "{answer}");
    body
}

fn assert_eq_204(status: u64) -> Value {
    assert_eq!(status, 204, "every other answer has a body");
    Value::Null
}

/// What an answer may say: the texts of the function, and HTTP's own names of its statuses.
const OWN_WORDS: [&str; 3] = [
    include_str!("../../functions/wake/src/http.rs"),
    include_str!("../../functions/wake/src/access.rs"),
    "Bad Request Unauthorized Forbidden Not Found Method Not Allowed Conflict Gone Content Payload Too Large Many Requests",
];

/// No word of the request is in the answer unless the function would say it to anybody.
fn repeats_nothing(answer: &Value, request: &LambdaFunctionUrlRequest, shortest: usize) {
    let answer = answer.to_string();
    assert!(!answer.contains(TOKEN), "{answer}");
    let headers = request.headers.values().filter_map(|value| value.to_str().ok());
    let query = request.query_string_parameters.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    let given =
        [request.body.as_deref(), request.raw_path.as_deref()].into_iter().flatten().chain(headers).chain(query);
    for word in given.flat_map(|text| text.split(|c: char| !c.is_alphanumeric())).filter(|word| word.len() >= shortest)
    {
        assert!(!answer.contains(word) || OWN_WORDS.iter().any(|own| own.contains(word)), "{word:?} in {answer}");
    }
}

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_040_000, 0).expect("a time")
}

/// Carries out what was asked for in a world with one node, and gives the answer.
fn run(ask: Ask, state: &str) -> Value {
    let caller = reveille::run::Caller { class: "token:app".to_owned(), bucket: Some("c01".to_owned()) };
    let mut world = world(state);
    let outcome: Outcome = match ask {
        Ask::Wake(target) => {
            let wish = WakeWish { caller: Some(caller), ..WakeWish::new(target, WakeSource::Prewarm) };
            world.drive(&mut WakeRun::new(context(), Cause::Wishes(vec![wish])))
        }
        Ask::Status(target) => world.drive(&mut WakeRun::new(context(), Cause::Status(target))),
        Ask::Lease { id, target, lasts, renews } => {
            world.drive(&mut LeaseRun::new(context(), LeaseWish { id, target, lasts, renews, caller }))
        }
    };
    answer(&outcome, noon())
}

fn context() -> Context {
    Context {
        run: RunId("run-1".to_owned()),
        now: noon(),
        time_out: TimeDelta::seconds(30),
        policy: CONFIG.policy.clone(),
        pools: CONFIG.pool_policies(),
        prices: CONFIG.prices.clone(),
    }
}

fn world(state: &str) -> World {
    let (id, voice) = (NodeId::new("i-a").expect("an id"), PoolName::new("voice").expect("a name"));
    let launched_at = Some(noon() - TimeDelta::minutes(180));
    let mut world = World::at(noon());
    let record = world.record(&voice);
    if state.contains('g') {
        let (by, reason) = (GateKeeper::Person, "closed".to_owned());
        record.gate = Some(Gate { by, since: noon(), reason, amount: None, until: None, drain: false });
    }
    if state.contains('y') {
        record.nodes.entry(id.clone()).or_default().ready = Some(ReadyFact { at: noon(), launched_at, lost_at: None });
    }
    let state = match state.chars().next() {
        Some('r') => NodeState::Running,
        Some('p') => NodeState::Pending,
        Some('d') => NodeState::Stopping,
        Some('x') => NodeState::Gone,
        Some(_) | None => NodeState::Stopped,
    };
    world.add_node(NodeSeen {
        id,
        name: Some("gpu-1".to_owned()),
        pool: voice,
        tags: BTreeMap::new(),
        state,
        launched_at,
        state_reason: None,
        transition_at: None,
        address: Some("10.0.0.5".to_owned()),
        spot: false,
        instance_type: None,
        public_address: None,
    });
    world
}
