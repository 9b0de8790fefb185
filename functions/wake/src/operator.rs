//! What an operator asks. The answers look as those of the function URL do.

use crate::handler::{Times, drive, log};
use crate::http::{self, problem, reply, target, without_nulls};
use chrono::TimeDelta;
use reveille::aws::Controller;
use reveille::config::Config;
use reveille::decide::Reason;
use reveille::domain::{PoolName, WakeSource};
use reveille::operator::{Ask, Asked, Meant};
use reveille::run::{Caller, Cause, Context, Obeyed, OperatorRun, Order, Outcome, Target, WakeWish};
use serde_json::{Value, json};

/// One bucket for all operators: they are few, and a script that errs is held up by it.
const BUCKET: &str = "operator";

/// Does what is asked; a refusal is an answer too.
pub(crate) async fn answer(controller: &Controller, context: Context, asked: Value, times: Times) -> Value {
    let Ok(asked) = serde_json::from_value::<Asked>(asked) else {
        return problem(400, "operator", "not an order that this version knows");
    };
    if let Err((field, rule)) = asked.check() {
        return problem(400, field, rule);
    }
    let Asked { by, ask } = asked;
    tracing::info!(caller = %by, asks = word(&ask), "asked");
    let (config, now) = (&controller.config, context.now);
    let order = match order(config, ask) {
        Ok(Some(order)) => order,
        Ok(None) => return rights(controller).await,
        Err(refusal) => return refusal,
    };
    match order {
        Wanted::Wake(target) => {
            let caller = Some(Caller { class: by, bucket: Some(BUCKET.to_owned()) });
            let wish = WakeWish { caller, line_at: Some(now), ..WakeWish::new(target, WakeSource::Prewarm) };
            let outcome = drive(controller, context, Cause::Wishes(vec![wish]), times).await;
            http::answer(&outcome, now)
        }
        Wanted::Order(order) => {
            let outcome = controller.drive(&mut OperatorRun::new(context, order, by), times.deadline_ms).await;
            log(controller, now, &outcome, times.started);
            told(&outcome)
        }
    }
}

/// A wake has its own run.
enum Wanted {
    Wake(Target),
    Order(Order),
}

fn word(ask: &Ask) -> &'static str {
    match ask {
        Ask::Wake(_) => "wake",
        Ask::Hold { .. } => "hold",
        Ask::Release(_) => "release",
        Ask::CloseGate { .. } => "close_gate",
        Ask::OpenGate { .. } => "open_gate",
        Ask::Rights => "rights",
    }
}

/// None where only the function's rights are asked for.
fn order(config: &Config, ask: Ask) -> Result<Option<Wanted>, Value> {
    let order = match ask {
        Ask::Wake(meant) => return Ok(Some(Wanted::Wake(target(config, meant)?))),
        Ask::Rights => return Ok(None),
        Ask::Hold { meant, seconds, note } => {
            Order::Hold { target: target(config, meant)?, lasts: lasts(seconds), note }
        }
        Ask::Release(meant) => Order::Release { target: target(config, meant)? },
        Ask::CloseGate { pool, seconds, drain, note } => {
            Order::CloseGate { pool: named(config, pool)?, lasts: seconds.map(lasts), drain, note }
        }
        Ask::OpenGate { pool, note } => Order::OpenGate { pool: named(config, pool)?, note },
    };
    Ok(Some(Wanted::Order(order)))
}

fn lasts(seconds: u32) -> TimeDelta {
    TimeDelta::seconds(i64::from(seconds))
}

fn named(config: &Config, pool: Option<String>) -> Result<PoolName, Value> {
    match target(config, Meant { pool, node: None })? {
        Target::Pool(pool) => Ok(pool),
        Target::Node(_) => Err(problem(400, "pool", "a gate is a pool's")),
    }
}

async fn rights(controller: &Controller) -> Value {
    match controller.aws.rights(&controller.config.pool_policies(), false).await {
        Ok(rights) => reply(200, "application/json", None, &json!({ "state": "rights", "rights": rights })),
        Err(error) => unknown(&error.code),
    }
}

/// The answer to an order.
fn told(outcome: &Outcome) -> Value {
    if outcome.not_found.is_some() {
        return problem(404, "node", "no node of a configured pool has this Name tag or id");
    }
    let body = match &outcome.obeyed {
        Some(Obeyed::Held { pool, node, until, was, phase }) => {
            json!({ "state": "held", "pool": pool, "node": node, "until": until, "was": was, "phase": phase })
        }
        Some(Obeyed::Released { pool, node, was, by_tag }) => {
            json!({ "state": "released", "pool": pool, "node": node, "was": was, "held_by_tag": by_tag })
        }
        Some(Obeyed::Closed { pool, gate, was }) => {
            json!({ "state": "gate_closed", "pool": pool, "until": gate.until, "gate": gate, "was": was })
        }
        Some(Obeyed::Opened { pool, was }) => json!({ "state": "gate_open", "pool": pool, "was": was }),
        Some(Obeyed::Which(nodes)) => {
            let detail = "no one node is meant: name one by its id";
            let mut answer = problem(409, "node", detail);
            answer["nodes"] = json!(nodes);
            return answer;
        }
        None => return unknown(outcome.blind.as_ref().map_or("Unknown", |error| error.code.as_str())),
    };
    reply(200, "application/json", None, &without_nulls(body))
}

/// It may be done or not; to order it again is safe.
fn unknown(code: &str) -> Value {
    let body = json!({ "state": "unknown", "reason": Reason::CannotLook, "code": code });
    reply(503, "application/json", None, &body)
}
