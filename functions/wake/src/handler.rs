//! Parse the event, run, answer.

use crate::access::admit;
use crate::event::{Event, EventFault};
use crate::http::{self, Ask};
use crate::operator;
use crate::page::{page, prefers_page};
use aws_lambda_events::lambda_function_urls::LambdaFunctionUrlRequest;
use lambda_runtime::{Error, LambdaEvent};
use reveille::aws::Controller;
use reveille::domain::WakeSource;
use reveille::log_batch::{self, Batch, Outcome as BatchOutcome};
use reveille::run::{Caller, Cause, Context, LeaseRun, LeaseWish, Outcome, Target, WakeRun, WakeWish};
use serde_json::{Value, json};
use std::time::Instant;

/// A batch of at most 1 MB arrives; inflated it may be much more. Lines are read as a stream, so this bounds the time, and
/// the memory of one absurd line.
const MOST_INFLATED_BYTES: u64 = 32 * 1024 * 1024;

/// When the handling of an event began, and when Lambda ends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) started: Instant,
    pub(crate) deadline_ms: u64,
}

/// Handles one event.
///
/// # Errors
/// The event is malformed, or the run could not do its job and no caller waits for an answer: Lambda tries such an event
/// again and the failure shows in the function's error metric. A caller at the function URL always gets an HTTP answer.
pub(crate) async fn handle(controller: &Controller, event: LambdaEvent<Value>) -> Result<Value, Error> {
    let times = Times { started: Instant::now(), deadline_ms: event.context.deadline };
    let context = controller.context(&event.context.request_id, times.deadline_ms).await?;
    match Event::read(event.payload)? {
        Event::Request(request) => Ok(answer(controller, context, &request, times).await),
        Event::LogBatch(data) => log_lines(controller, context, &data, times).await,
        Event::NodeStopped => finish(drive(controller, context, Cause::StateChange, times).await),
        Event::OtherState(state) => Ok(json!({ "ignored_state": state })),
        Event::Operator(asked) => Ok(operator::answer(controller, context, asked, times).await),
    }
}

/// Who asks comes first, then what is asked; a refusal is an answer too.
async fn answer(controller: &Controller, context: Context, request: &LambdaFunctionUrlRequest, times: Times) -> Value {
    let asked = admit(&controller.config.access, request)
        .and_then(|caller| http::read(&controller.config, request).map(|ask| (caller, ask)));
    let (caller, ask) = match asked {
        Ok(asked) => asked,
        Err(refusal) => {
            tracing::info!(status = %refusal["statusCode"], "request refused");
            return refusal;
        }
    };
    // Who wakes spends: the log says who it was, by a name that is no secret.
    tracing::info!(caller = %caller.class, rate_key = caller.rate_key(), asks = ask.word(), "asked");
    let (of_run, now) = (caller.of_run(), context.now);
    let accept = request.headers.get("accept").and_then(|accept| accept.to_str().ok());
    let wants_page = prefers_page(accept) && matches!(ask, Ask::Wake(_) | Ask::Status(_));
    let outcome = match ask {
        Ask::Wake(target) => {
            let line_at = Some(context.now);
            let wish = WakeWish {
                path: Some("/wake".to_owned()),
                caller: Some(of_run),
                line_at,
                ..WakeWish::new(target, WakeSource::Prewarm)
            };
            drive(controller, context, Cause::Wishes(vec![wish]), times).await
        }
        Ask::Status(target) => drive(controller, context, Cause::Status(target), times).await,
        Ask::Lease { id, target, lasts, renews } => {
            let wish = LeaseWish { id, target, lasts, renews, caller: of_run };
            let outcome = controller.drive(&mut LeaseRun::new(context, wish), times.deadline_ms).await;
            log(controller, now, &outcome, times.started);
            outcome
        }
    };
    let query = request.raw_query_string.as_deref().unwrap_or_default();
    let page = wants_page.then(|| page(&outcome, query, controller.config.target_url.as_deref())).flatten();
    page.unwrap_or_else(|| http::answer(&outcome, now))
}

pub(crate) async fn drive(controller: &Controller, context: Context, cause: Cause, times: Times) -> Outcome {
    let now = context.now;
    let outcome = controller.drive(&mut WakeRun::new(context, cause), times.deadline_ms).await;
    log(controller, now, &outcome, times.started);
    outcome
}

pub(crate) fn log(controller: &Controller, now: chrono::DateTime<chrono::Utc>, outcome: &Outcome, started: Instant) {
    controller.log("wake", now, outcome, started.elapsed());
}

fn finish(outcome: Outcome) -> Result<Value, Error> {
    match outcome.blind.or(outcome.unrecorded) {
        Some(error) => Err(error.into()),
        None => Ok(json!({ "decided": outcome.decided.len() })),
    }
}

async fn log_lines(controller: &Controller, context: Context, data: &str, times: Times) -> Result<Value, Error> {
    // A line older than the idle time is nobody waiting: a batch that was delivered late wakes nothing.
    let oldest = context.now - context.policy.idle;
    let filter = |group: &str| controller.config.pool_of_log_group(group).map(|(_, filter)| filter);
    let batch =
        log_batch::read(data, MOST_INFLATED_BYTES, oldest, filter).map_err(|fault| EventFault(fault.to_string()))?;
    note(&batch, context.now);
    let Some(source) = source(&batch) else { return Ok(json!({ "woken": false })) };
    let group = batch.log_group.as_deref().unwrap_or_default();
    let Some((pool, _)) = controller.config.pool_of_log_group(group) else { return Ok(json!({ "woken": false })) };
    let (path, agent, line_at) = match &batch.outcome {
        BatchOutcome::Woken(woken) => (woken.path_class.clone(), woken.agent_class.clone(), woken.at),
        BatchOutcome::Quiet | BatchOutcome::Control | BatchOutcome::Ignored | BatchOutcome::TooLarge => {
            (None, None, None)
        }
    };
    let caller = agent.map(|class| Caller { class, bucket: None });
    let wish = WakeWish { path, caller, line_at, ..WakeWish::new(Target::Pool(pool.clone()), source) };
    finish(drive(controller, context, Cause::Wishes(vec![wish]), times).await)
}

fn source(batch: &Batch) -> Option<WakeSource> {
    match batch.outcome {
        BatchOutcome::Woken(_) => Some(WakeSource::LogLine),
        BatchOutcome::TooLarge => Some(WakeSource::UnreadableBatch),
        BatchOutcome::Quiet | BatchOutcome::Control | BatchOutcome::Ignored => None,
    }
}

/// One line a batch, with counts and the shape of one that could not be read; fields are nested,
/// so that no reader takes this line for a request (field case 35).
fn note(batch: &Batch, now: chrono::DateTime<chrono::Utc>) {
    let noise: serde_json::Map<String, Value> =
        batch.counts.noise.iter().map(|(reason, count)| (reason.as_str().to_owned(), json!(count))).collect();
    let line = json!({ "batch": {
        "at": now,
        "log_group": batch.log_group,
        "outcome": match &batch.outcome {
            BatchOutcome::Woken(_) => "woken",
            BatchOutcome::Quiet => "quiet",
            BatchOutcome::Control => "control",
            BatchOutcome::Ignored => "ignored_log_group",
            BatchOutcome::TooLarge => "too_large",
        },
        "lines": batch.counts.read,
        "noise": noise,
        "unread": batch.counts.unread,
        "unread_sample": batch.unread_sample,
        "late": batch.counts.late,
    }});
    println!("{line}");
    if matches!(batch.outcome, BatchOutcome::Ignored) {
        tracing::warn!(log_group = ?batch.log_group, "no pool is woken by this log group; is the subscription right?");
    }
}
