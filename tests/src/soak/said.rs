//! What the functions are called with, and what their answers and log lines say.

use crate::runtime_api::{Function, FunctionError, Invocation};
use crate::stage::{Stage, http_answer, log_batch, url_event};
use reveille::domain::{Instant, NodeId, PoolName};
use reveille_soak::stage::{Ask, Line, Reply};
use serde_json::{Value, json};

/// The function that is asked.
pub(super) fn function<'a>(stage: &'a Stage, ask: &Ask) -> &'a Function {
    match ask {
        Ask::Idle => &stage.idle,
        Ask::Uptime => &stage.uptime,
        Ask::Budget => &stage.budget,
        Ask::Wake(..)
        | Ask::Status(_)
        | Ask::Lease(..)
        | Ask::Renew(..)
        | Ask::EndLease(_)
        | Ask::LogLine(_)
        | Ask::StateChange => &stage.wake,
    }
}

/// The event it gets.
pub(super) fn event(ask: &Ask, now: Instant) -> Value {
    match ask {
        Ask::Wake(_, Some(node)) => url_event("POST", "/wake", &json!({"node": node})),
        Ask::Wake(pool, None) => url_event("POST", "/wake", &json!({"pool": pool})),
        Ask::Status(pool) => {
            let mut event = url_event("GET", "/status", &Value::Null);
            event["rawQueryString"] = json!(format!("pool={pool}"));
            event["queryStringParameters"] = json!({"pool": pool});
            event
        }
        Ask::Lease(pool, id, seconds) => url_event("PUT", &format!("/leases/{id}"), &lease(pool, *seconds, false)),
        Ask::Renew(pool, id, seconds) => url_event("PUT", &format!("/leases/{id}"), &lease(pool, *seconds, true)),
        Ask::EndLease(id) => url_event("DELETE", &format!("/leases/{id}"), &Value::Null),
        Ask::LogLine(pool) => log_batch(&format!("/{pool}/front"), &[line(now)]),
        Ask::StateChange => json!({"version": "0", "detail-type": "EC2 Instance State-change Notification",
            "source": "aws.ec2", "time": now, "detail": {"instance-id": "i-0123456789abcdef0", "state": "stopped"}}),
        Ask::Idle | Ask::Uptime | Ask::Budget => {
            json!({"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {}})
        }
    }
}

fn lease(pool: &PoolName, seconds: i64, renews: bool) -> Value {
    json!({"pool": pool, "ttl_seconds": seconds, "renew": renews})
}

fn line(now: Instant) -> Value {
    let at = now.format("%d/%b/%Y:%H:%M:%S +0000");
    let message = format!("192.0.2.77 - - [{at}] \"POST /v1/calls HTTP/1.1\" 200 312 \"-\" \"voice-app/3.1\"");
    json!({"id": "e0", "timestamp": now.timestamp_millis(), "message": message})
}

/// An `effect` line.
#[derive(Debug)]
pub(super) struct Did {
    pub(super) event: String,
    pub(super) pool: Option<PoolName>,
    pub(super) node: Option<NodeId>,
    pub(super) reason: String,
}

/// What one invocation said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) died: bool,
    pub(super) failed: bool,
    pub(super) decided: Vec<Line>,
    pub(super) did: Vec<Did>,
    pub(super) reply: Option<Reply>,
}

impl Said {
    pub(super) fn by(ask: &Ask, invocation: &Invocation) -> Self {
        let lines: Vec<Value> = invocation.logs.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let has_error = lines.iter().any(|line| line["level"] == "ERROR");
        let died = match &invocation.result {
            Ok(_) | Err(FunctionError::Unhandled { .. }) => false,
            Err(FunctionError::TimedOut | FunctionError::Exited { .. } | FunctionError::Throttled) => true,
        };
        Self {
            died,
            failed: invocation.result.is_err() || has_error,
            decided: lines.iter().filter(|line| line["decided"] == true).filter_map(decided).collect(),
            did: lines.iter().filter(|line| line["effect"] == true).map(did).collect(),
            reply: (!ask.is_event() && invocation.result.is_ok()).then(|| reply(invocation)),
        }
    }

    /// Whether it says that it did this to the node.
    pub(super) fn tells(&self, event: &str, node: &NodeId) -> bool {
        self.did.iter().any(|did| did.event == event && did.node.as_ref() == Some(node))
    }

    /// The pools, and named nodes, whose demand it recorded.
    pub(super) fn demanded(&self) -> Vec<(PoolName, Option<NodeId>)> {
        let demand = self.did.iter().filter(|did| did.event == "demand");
        demand.filter_map(|did| Some((did.pool.clone()?, did.node.clone()))).collect()
    }
}

fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or_default()
}

fn decided(line: &Value) -> Option<Line> {
    Some(Line {
        pool: PoolName::new(text(line, "pool")).ok()?,
        node: NodeId::new(text(line, "node")).ok(),
        action: text(line, "action").to_owned(),
        reason: text(line, "reason").to_owned(),
    })
}

fn did(line: &Value) -> Did {
    Did {
        event: text(line, "event").to_owned(),
        pool: PoolName::new(text(line, "pool")).ok(),
        node: NodeId::new(text(line, "node")).ok(),
        reason: text(line, "reason").to_owned(),
    }
}

fn reply(invocation: &Invocation) -> Reply {
    let (status, body) = http_answer(invocation);
    Reply { status, state: text(&body, "state").to_owned(), node: NodeId::new(text(&body, "node")).ok() }
}
