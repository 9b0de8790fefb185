//! The HTTP face: what a request asks for, and how a run's answer looks to the caller.

use aws_lambda_events::http::StatusCode;
use aws_lambda_events::lambda_function_urls::LambdaFunctionUrlRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use reveille::config::Config;
use reveille::decide::Reason;
use reveille::domain::{LeaseId, PoolName};
use reveille::error::ErrorClass;
use reveille::operator::Meant;
use reveille::run::{LeaseAnswer, Outcome, PoolAnswer, Target};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value, json};
use std::ops::RangeInclusive;

/// A body is a few names; more is a mistake or an attack. Counted in bytes after base64.
const LONGEST_BODY: usize = 4096;

/// A lease that says no time lasts so long: two lost renewals of a minute.
const DEFAULT_LEASE_SECONDS: i64 = 120;
/// A crashed app's lease ends within an hour; a call of ten seconds needs no lease.
const LEASE_SECONDS: RangeInclusive<i64> = 10..=3600;

/// What a caller asks for.
pub(crate) enum Ask {
    /// `POST /wake`.
    Wake(Target),
    /// `GET /status`.
    Status(Target),
    /// `PUT /leases/{id}`, or without a time `DELETE /leases/{id}`.
    Lease { id: LeaseId, target: Option<Target>, lasts: Option<TimeDelta>, renews: bool },
}

impl Ask {
    /// For the log.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Wake(_) => "wake",
            Self::Status(_) => "status",
            Self::Lease { lasts: Some(_), .. } => "lease",
            Self::Lease { lasts: None, .. } => "end_of_lease",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaseBody {
    pool: Option<String>,
    node: Option<String>,
    ttl_seconds: Option<Number>,
    #[serde(default)]
    renew: bool,
}

const WAKE_BODY: &str = "must be empty or a JSON object with `pool` or `node`, each a string";
const LEASE_BODY: &str =
    "must be empty or a JSON object with `ttl_seconds` (a whole number), `renew` (true or false), and `pool` or `node`";

/// Reads the request; a refusal is already an answer.
pub(crate) fn read(config: &Config, request: &LambdaFunctionUrlRequest) -> Result<Ask, Value> {
    let http = &request.request_context.http;
    let path = request.raw_path.as_deref().or(http.path.as_deref()).unwrap_or("/").trim_end_matches('/');
    let method = http.method.as_deref().unwrap_or_default();
    if let Some(id) = path.strip_prefix("/leases/") {
        let id = LeaseId::new(id);
        let id = id.map_err(|_| problem(400, "lease", "an id has 1 to 64 letters, digits, '.', '_' or '-'"))?;
        return lease(config, request, method, id);
    }
    let other = |allowed: &str| Err(with_header(problem(405, "method", USES), "allow", allowed));
    match (path, method) {
        ("/wake", "POST") => {
            let named: Meant = body(request, WAKE_BODY)?;
            // The waiting page's button is a form, which names them in the query.
            let is_named = named.pool.is_some() || named.node.is_some();
            Ok(Ask::Wake(target(config, if is_named { named } else { query(request) })?))
        }
        ("/status", "GET") => Ok(Ask::Status(target(config, query(request))?)),
        ("/wake", _) => other("POST"),
        ("/status", _) => other("GET"),
        _ => Err(problem(404, "path", USES)),
    }
}

const USES: &str = "there is POST /wake, GET /status, PUT and DELETE /leases/{id}";

fn lease(config: &Config, request: &LambdaFunctionUrlRequest, method: &str, id: LeaseId) -> Result<Ask, Value> {
    match method {
        "PUT" => {
            let LeaseBody { pool, node, ttl_seconds, renew } = body(request, LEASE_BODY)?;
            let seconds = ttl_seconds.map_or(Some(DEFAULT_LEASE_SECONDS), |given| whole(&given));
            let seconds = seconds.filter(|seconds| LEASE_SECONDS.contains(seconds)).ok_or_else(|| {
                problem(400, "ttl_seconds", "must be a whole number from 10 to 3600; renew while the call lasts")
            })?;
            let target = target(config, Meant { pool, node })?;
            Ok(Ask::Lease { id, target: Some(target), lasts: Some(TimeDelta::seconds(seconds)), renews: renew })
        }
        // Wherever it is, unless a pool is named.
        "DELETE" => {
            let named = query(request);
            let is_named = named.pool.is_some() || named.node.is_some();
            let target = is_named.then(|| target(config, named)).transpose()?;
            Ok(Ask::Lease { id, target, lasts: None, renews: false })
        }
        _ => Err(with_header(problem(405, "method", USES), "allow", "PUT, DELETE")),
    }
}

/// A number without a fraction, however it is written: JSON knows one kind of number, and 120.0 is 120.
fn whole(number: &Number) -> Option<i64> {
    let text = number.to_string();
    text.strip_suffix(".0").unwrap_or(&text).parse().ok()
}

/// The body, decoded in one place: function URLs send some content types as base64, a missing one too (field case 34).
fn body<T: DeserializeOwned + Default>(request: &LambdaFunctionUrlRequest, shape: &str) -> Result<T, Value> {
    let Some(body) = request.body.as_deref().filter(|body| !body.is_empty()) else { return Ok(T::default()) };
    let too_long = || problem(413, "body", "longer than 4096 bytes");
    // Base64 has four characters for three bytes: what is longer needs no decoding to be refused.
    let longest = if request.is_base64_encoded { LONGEST_BODY.div_ceil(3) * 4 } else { LONGEST_BODY };
    if body.len() > longest {
        return Err(too_long());
    }
    let bytes = if request.is_base64_encoded {
        STANDARD.decode(body).map_err(|_| problem(400, "body", "isBase64Encoded is set, and it is not base64"))?
    } else {
        body.as_bytes().to_vec()
    };
    if bytes.len() > LONGEST_BODY {
        return Err(too_long());
    }
    // A list would be read as the object's values in their order.
    match bytes.trim_ascii_start().first() {
        None => return Ok(T::default()),
        Some(b'{') => {}
        Some(_) => return Err(problem(400, "body", shape)),
    }
    serde_json::from_slice(&bytes).map_err(|_| problem(400, "body", shape))
}

fn query(request: &LambdaFunctionUrlRequest) -> Meant {
    let named = |name: &str| request.query_string_parameters.get(name).cloned().filter(|value| !value.is_empty());
    Meant { pool: named("pool"), node: named("node") }
}

pub(crate) fn target(config: &Config, body: Meant) -> Result<Target, Value> {
    match (body.node, body.pool) {
        (Some(_), Some(_)) => Err(problem(400, "node", "`pool` and `node` exclude each other")),
        (Some(node), None) if node.is_empty() || node.chars().count() > 256 => {
            Err(problem(400, "node", "must have 1 to 256 characters"))
        }
        (Some(node), None) => Ok(Target::Node(node)),
        (None, Some(pool)) => match PoolName::new(pool) {
            Ok(pool) if config.pools.contains_key(&pool) => Ok(Target::Pool(pool)),
            Ok(_) => Err(problem(404, "pool", "no pool of this name is configured")),
            Err(_) => Err(problem(400, "pool", "must be 1 to 64 letters, digits, '.', '_' or '-'")),
        },
        (None, None) => config
            .default_pool
            .clone()
            .map(Target::Pool)
            .ok_or_else(|| problem(400, "pool", "there are several pools and no default: name one")),
    }
}

/// A refusal in the form of RFC 9457. It names the field and never repeats what was sent. `about:blank` says that the status
/// is the whole type, and the title is then HTTP's own phrase for it.
pub(crate) fn problem(status: u16, field: &str, detail: &str) -> Value {
    let title = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reply(
        status,
        "application/problem+json",
        None,
        &json!({ "type": "about:blank", "status": status, "title": title, "field": field, "detail": detail }),
    )
}

/// The answer with one header more.
pub(crate) fn with_header(mut answer: Value, name: &str, value: &str) -> Value {
    answer["headers"][name] = json!(value);
    answer
}

/// The answer to a run's caller.
pub(crate) fn answer(outcome: &Outcome, now: DateTime<Utc>) -> Value {
    if outcome.not_found.is_some() {
        return problem(404, "node", "no node of a configured pool has this Name tag or id");
    }
    if outcome.too_many {
        // The count begins anew with the minute.
        let left = 60 - now.timestamp().rem_euclid(60);
        return with_header(
            problem(429, "rate", "too many wakes in this minute; the wish is not recorded"),
            "retry-after",
            &left.to_string(),
        );
    }
    match outcome.lease.as_ref().filter(|_| outcome.blind.is_none()) {
        Some(LeaseAnswer::Held { pool, node, address, until }) => {
            let body =
                json!({ "state": "leased", "pool": pool, "node": node, "address": address, "expires_at": until });
            return reply(200, "application/json", None, &without_nulls(body));
        }
        Some(LeaseAnswer::Over) => return json!({ "statusCode": 204, "headers": { "cache-control": "no-store" } }),
        Some(LeaseAnswer::Ended) => {
            return problem(
                410,
                "lease",
                "it ran out, was never given, or its node is gone: take a new one under a new id",
            );
        }
        Some(LeaseAnswer::Foreign) => return problem(409, "lease", "another caller holds a lease of this id"),
        Some(LeaseAnswer::NotYet) | None => {}
    }
    match outcome.answers.first().filter(|_| outcome.blind.is_none()) {
        Some(answer) => told(answer),
        // The demand may be recorded or not; asking again is safe, and where it is the tick starts the node.
        None => {
            let code = outcome.blind.as_ref().map_or("Unknown", |error| error.code.as_str());
            let body =
                json!({ "state": "unknown", "reason": Reason::CannotLook, "code": code, "retry_after_seconds": 10 });
            reply(503, "application/json", Some(10), &body)
        }
    }
}

fn told(answer: &PoolAnswer) -> Value {
    let Face { status, state, retry } = face(answer);
    let body = json!({
        "state": state,
        "reason": answer.reason,
        "pool": answer.pool,
        "node": answer.node,
        "address": answer.address,
        "ready_in_seconds": answer.ready_in_seconds,
        "spread_seconds": answer.spread_seconds,
        "calls": answer.calls,
        "woken_by": answer.woken_by,
        "retry_after_seconds": retry,
        "fault": answer.fault_code,
        "fault_since": answer.fault_since,
        "gate": answer.gate_reason,
        "gate_until": answer.gate_until,
    });
    reply(status, "application/json", retry, &without_nulls(body))
}

/// How an answer looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Face {
    /// The HTTP status. 200 is ready and nothing else is.
    pub(crate) status: u16,
    /// The word for the state.
    pub(crate) state: &'static str,
    /// Retry-After, in seconds.
    pub(crate) retry: Option<i64>,
}

/// How the answer for each reason looks.
pub(crate) fn face(answer: &PoolAnswer) -> Face {
    let (status, state, retry) = match answer.reason {
        Reason::AlreadyReady => (200, "ready", None),
        Reason::AlreadyStarting => (202, "starting", Some(5)),
        Reason::StoppingWillStart => (202, "stopping_will_start", Some(10)),
        // A status look at a node that is wanted and that the next run starts.
        Reason::Wanted | Reason::OtherType | Reason::StartUnresolved | Reason::StopUnresolved => {
            (202, "will_start", Some(5))
        }
        Reason::CoolingDown if answer.fault_class == Some(ErrorClass::Capacity) => {
            (503, "no_capacity", answer.retry_after_seconds.or(Some(60)))
        }
        Reason::CoolingDown => (503, "fault", answer.retry_after_seconds.or(Some(60))),
        Reason::NoNode => (503, "no_node", Some(300)),
        Reason::NotWanted => (503, "asleep", None),
        Reason::Full => (429, "full", Some(answer.ready_in_seconds.unwrap_or(30))),
        Reason::GateClosed => (403, "gate_closed", answer.retry_after_seconds),
        // The answers of the other questions never reach a caller.
        Reason::CannotLook
        | Reason::Terminated
        | Reason::PutBack
        | Reason::Drain
        | Reason::Draining
        | Reason::UptimeUnknown
        | Reason::UptimeOver
        | Reason::UptimeWithin
        | Reason::GateHeldByPerson
        | Reason::GateOpens
        | Reason::BudgetWithin
        | Reason::GateStaysClosed
        | Reason::GateCloses
        | Reason::Asleep
        | Reason::StillPending
        | Reason::HangsInStopping
        | Reason::GoingDown
        | Reason::StopHadNoEffect
        | Reason::BootGrace
        | Reason::Leased
        | Reason::Held
        | Reason::WarmWindow
        | Reason::NeverReady
        | Reason::Reserve
        | Reason::RecentLease
        | Reason::SignalsUnknown
        | Reason::OpenCall
        | Reason::RecentWake
        | Reason::RecentUse
        | Reason::RecentStart
        | Reason::StopRefused
        | Reason::FirstReading
        | Reason::ReadingsTooClose
        | Reason::Idle => (503, "unknown", Some(10)),
    };
    Face { status, state, retry }
}

pub(crate) fn without_nulls(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    body
}

pub(crate) fn reply(status: u16, kind: &str, retry_after: Option<i64>, body: &Value) -> Value {
    let mut headers = json!({ "content-type": kind, "cache-control": "no-store" });
    if let Some(seconds) = retry_after {
        headers["retry-after"] = json!(seconds.to_string());
    }
    json!({ "statusCode": status, "headers": headers, "body": body.to_string(), "isBase64Encoded": false })
}
