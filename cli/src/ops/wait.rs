//! Waits until a node is ready, with what the last boots took as the measure.

use super::fault::{Fault, line};
use super::look::Looker;
use super::session::{Reach, Session};
use super::show;
use chrono::TimeDelta;
use indicatif::ProgressBar;
use reveille::decide::Reason;
use reveille::operator::Meant;
use reveille::run::{Cause, PoolAnswer, Target, WakeRun};
use serde_json::json;
use std::time::{Duration, Instant as Moment};

/// As often as callers are told to ask.
const BETWEEN: Duration = Duration::from_secs(5);

/// # Errors
/// No node becomes ready in time, or none is on its way.
pub(crate) async fn wait(reach: &Reach, meant: Meant, most: TimeDelta) -> Result<String, Fault> {
    let mut session = Session::open(reach).await?;
    let target = match meant.node {
        Some(node) => Target::Node(node),
        None => Target::Pool(session.pool(meant.pool.as_deref())?),
    };
    let (began, most) = (Moment::now(), most.to_std().unwrap_or_default());
    let bar = show::bar("{msg} [{bar:30}] {pos} of about {len} s", 1);
    bar.set_message("looking");
    loop {
        let (answer, boot) = look(&session, &target).await?;
        if answer.reason == Reason::AlreadyReady {
            bar.finish_and_clear();
            return Ok(ready(reach, &answer));
        }
        on_its_way(&answer)?;
        let left = answer.ready_in_seconds.unwrap_or(boot).max(0);
        moved(&bar, &answer, boot.max(left), left);
        if began.elapsed() + BETWEEN > most {
            return Err(Fault::No(format!("no node is ready within {} s: {}", most.as_secs(), answer.reason.as_str())));
        }
        tokio::time::sleep(BETWEEN).await;
        session.look_at_the_clock().await?;
    }
}

/// What a caller would be told now, and what a boot takes in seconds.
async fn look(session: &Session, target: &Target) -> Result<(PoolAnswer, i64), Fault> {
    let mut looker = Looker::new(&session.aws);
    let outcome = looker.drive(&mut WakeRun::new(session.context(), Cause::Status(target.clone()))).await;
    if let Some(word) = outcome.not_found {
        return Err(Fault::Usage(format!("no node of a configured pool is called {:?}", line(&word))));
    }
    if let Some(error) = outcome.blind {
        return Err(error.into());
    }
    let none = || Fault::Aws("the pool could not be looked at".to_owned());
    let answer = outcome.answers.into_iter().next().ok_or_else(none)?;
    let record = looker.records().remove(&answer.pool).unwrap_or_default();
    let boot = record.boot_time(answer.node.as_ref(), session.config.policy.boot);
    Ok((answer, boot.median.num_seconds()))
}

/// # Errors
/// Waiting would be for nothing.
fn on_its_way(answer: &PoolAnswer) -> Result<(), Fault> {
    let is = |reason| answer.reason == reason;
    let why = if is(Reason::NotWanted) {
        "no node is on its way and nobody wants one: `reveille wake`".to_owned()
    } else if is(Reason::NoNode) {
        format!("no node has the tag reveille:pool={}", answer.pool)
    } else if is(Reason::GateClosed) {
        format!("the gate is closed: {}", line(answer.gate_reason.as_deref().unwrap_or_default()))
    } else if is(Reason::CoolingDown) {
        let code = answer.fault_code.as_deref().unwrap_or("refused");
        let again = answer.retry_after_seconds.unwrap_or_default();
        format!("no node can be started now ({code}), tried again in {again} s")
    } else {
        return Ok(());
    };
    Err(Fault::No(why))
}

fn ready(reach: &Reach, answer: &PoolAnswer) -> String {
    let (node, address) = (answer.node.as_ref().map(ToString::to_string), answer.address.clone());
    if reach.json {
        return show::json(&json!({ "state": "ready", "pool": answer.pool, "node": node, "address": address }));
    }
    format!("{} is ready at {}\n", node.unwrap_or_default(), address.unwrap_or_else(|| "no address".to_owned()))
}

fn moved(bar: &ProgressBar, answer: &PoolAnswer, whole: i64, left: i64) {
    bar.set_length(u64::try_from(whole).unwrap_or(1));
    bar.set_position(u64::try_from(whole - left).unwrap_or(0));
    let node = answer.node.as_ref().map_or_else(|| answer.pool.to_string(), ToString::to_string);
    bar.set_message(format!("{node} {}", answer.reason.as_str()));
}
