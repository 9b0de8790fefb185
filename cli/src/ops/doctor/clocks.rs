//! Does each node say that it lives, and does everybody agree what time it is?

use super::{Case, Check, Finding, called};
use crate::ops::aws;
use crate::ops::fault::Fault;
use crate::ops::look::Looker;
use crate::ops::show::clock;
use chrono::TimeDelta;
use reveille::aws::Clock;
use reveille::domain::{Beat, Instant, NodeId, NodeSeen, NodeState};
use reveille::error::CallError;
use reveille::policy::{CLOCK_SKEW, FRESH_BEAT, MOST_AHEAD, ReadySource};
use reveille::run::{Call, take_beats};
use std::collections::{BTreeMap, BTreeSet};

/// Running nodes whose pool goes by their beat.
fn beating<'a>(case: &'a Case<'_>) -> Vec<&'a NodeSeen> {
    let by_beat = |seen: &&NodeSeen| {
        let rules = case.config().pools.get(&seen.pool).map(|pool| &pool.policy.rules);
        seen.state == NodeState::Running
            && rules.is_some_and(|rules| rules.beat || matches!(rules.ready, ReadySource::Beat(_)))
    };
    case.alive().filter(by_beat).collect()
}

/// Clocks and beats of one instant: the checks before take as long as the logs are long, and a beat that came meanwhile is of
/// no clock that is ahead.
pub(super) struct Read {
    now: Result<Instant, Fault>,
    date: Result<Option<Instant>, CallError>,
    beats: Result<BTreeMap<NodeId, Beat>, CallError>,
}

pub(super) async fn read(case: &Case<'_>) -> Read {
    let date = aws::date(&case.session.sdk).await;
    let now = Clock::new(case.config().clock_url.as_deref()).now().await;
    Read { now: now.map_err(|fault| Fault::Aws(fault.to_string())), date, beats: newest_beats(case).await }
}

async fn newest_beats(case: &Case<'_>) -> Result<BTreeMap<NodeId, Beat>, CallError> {
    let nodes: BTreeSet<NodeId> = beating(case).into_iter().map(|seen| seen.id.clone()).collect();
    if nodes.is_empty() {
        return Ok(BTreeMap::new());
    }
    // A look of its own: what was read at the beginning is old by now.
    let mut looker = Looker::new(&case.session.aws);
    take_beats(looker.answer_all(&[Call::ReadBeats { nodes }]).await.into_iter().next())
}

/// Nodes that run and whose beat stopped, or never came.
pub(super) fn beats(case: &Case<'_>, read: &Read) -> Check {
    let (now, beats) = match (&read.now, &read.beats) {
        (Ok(now), Ok(beats)) => (*now, beats),
        (Err(fault), _) => return Check::not("beats", fault.clone()),
        (_, Err(error)) => return Check::not("beats", error.clone()),
    };
    let zone = case.config().policy.zone;
    // One that is still coming up has not beaten yet.
    let up = |seen: &&NodeSeen| seen.launched_at.is_some_and(|at| now - at >= case.config().policy.ready_within);
    let stopped = beating(case).into_iter().filter(up).filter_map(|seen| {
        let newest = beats.get(&seen.id).map(|beat| beat.at).filter(|at| Some(*at) >= seen.launched_at);
        let is_late = newest.is_none_or(|at| now - at > FRESH_BEAT);
        let since = newest.map_or_else(|| "has sent no beat since its launch".to_owned(), |at| {
            format!("has sent no beat since {}", clock(at, now, zone))
        });
        is_late.then(|| {
            Finding::new(
                format!("{} runs and {since}", called(seen)),
                format!("whether it is used is unknown, so it is kept: {}", case.hour(seen)),
                "on the node: systemctl status reveille-beat; then its role (files/beat-policy.json) and its clock (timedatectl)",
            )
        })
    });
    Check::of("beats", Ok(stopped.collect()))
}

/// How far the operator's clock may be off: a hold ends by the function's clock, so little hangs on it.
const MOST_OFF: TimeDelta = TimeDelta::seconds(60);

/// Clocks that are apart: a node's, this machine's, or one that wrote to the ledger.
pub(super) fn clocks(case: &Case<'_>, read: Read) -> Check {
    let now = match read.now {
        Ok(now) => now,
        Err(fault) => return Check::not("clocks", fault),
    };
    let mut check = Check::new("clocks");
    match read.date {
        Ok(date) => judge_own(now, date, &mut check),
        Err(error) => check.missed(error),
    }
    let beats = read.beats.unwrap_or_else(|error| {
        check.missed(error);
        BTreeMap::new()
    });
    for seen in beating(case) {
        let ahead = beats.get(&seen.id).map(|beat| beat.at - now).filter(|ahead| *ahead > CLOCK_SKEW);
        check.findings.extend(ahead.map(|ahead| {
            Finding::new(
                format!("the clock of {} is {} s ahead", called(seen), ahead.num_seconds()),
                format!(
                    "its beat is not believed, so whether it is used is unknown and it is kept: {}",
                    case.hour(seen)
                ),
                "on the node: timedatectl set-ntp true",
            )
        }));
    }
    for (pool, record) in &case.records {
        let mut heeded = record.clone();
        heeded.forget_later_than(now + MOST_AHEAD);
        let late = heeded.unread.iter().filter(|name| !record.unread.contains(name));
        check.findings.extend(late.map(|name| {
            Finding::new(
                format!("the fact `{name}` of pool {pool} in the ledger is dated more than an hour ahead"),
                "it is taken for unreadable until then: a wake is lost, or a node kept",
                format!("the clock of whoever wrote it; then remove `{name}` from the item pool#{pool}"),
            )
        }));
    }
    check
}

/// This machine's clock against AWS's, by the `Date` of an answer.
fn judge_own(now: Instant, date: Option<Instant>, check: &mut Check) {
    let Some(date) = date else {
        check.not_checked.push("AWS's answer has no Date to compare this machine's clock with".to_owned());
        return;
    };
    let off = now - date;
    if off.abs() > MOST_OFF {
        let way = if off > TimeDelta::zero() { "ahead of" } else { "behind" };
        check.findings.push(Finding::new(
            format!("the clock of this machine is {} s {way} AWS's", off.num_seconds().abs()),
            "what `status` and `events` say of times is off by it; from five minutes on AWS refuses every call",
            "on this machine: timedatectl set-ntp true",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_clocks_being_clocks() {
        let now: Instant = "2026-11-30T10:00:00Z".parse().expect("a time");
        let judged = |date| {
            let mut check = Check::new("clocks");
            judge_own(now, date, &mut check);
            check
        };
        let off = |seconds| judged(Some(now - TimeDelta::seconds(seconds))).findings.pop().map(|finding| finding.what);
        assert_eq!((off(60), off(-60)), (None, None));
        assert_eq!(off(61).as_deref(), Some("the clock of this machine is 61 s ahead of AWS's"));
        assert_eq!(off(-90).as_deref(), Some("the clock of this machine is 90 s behind AWS's"));
        assert_eq!(judged(None).not_checked.len(), 1, "an answer without a date says nothing");
    }
}
