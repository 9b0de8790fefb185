//! Does each node say that it lives, and does everybody agree what time it is?

use super::{Case, Check, Finding, called};
use crate::ops::aws;
use crate::ops::look::Looker;
use crate::ops::show::clock;
use chrono::TimeDelta;
use reveille::domain::{Beat, Instant, NodeId, NodeSeen, NodeState};
use reveille::error::CallError;
use reveille::policy::{CLOCK_SKEW, FRESH_BEAT, MOST_AHEAD, ReadySource};
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

async fn read(case: &Case<'_>, looker: &mut Looker<'_>) -> Result<BTreeMap<NodeId, Beat>, CallError> {
    let nodes: BTreeSet<NodeId> = beating(case).into_iter().map(|seen| seen.id.clone()).collect();
    super::beats(looker, nodes).await
}

/// Nodes that run and whose beat stopped, or never came.
pub(super) async fn beats(case: &Case<'_>, looker: &mut Looker<'_>) -> Check {
    let beats = match read(case, looker).await {
        Ok(beats) => beats,
        Err(error) => return Check::not("beats", error),
    };
    let (now, zone) = (case.session.now, case.config().policy.zone);
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
pub(super) async fn clocks(case: &Case<'_>, looker: &mut Looker<'_>) -> Check {
    let (beats, date) = (read(case, looker).await, aws::date(&case.session.sdk).await);
    let (beats, date) = match (beats, date) {
        (Ok(beats), Ok(date)) => (beats, date),
        (Err(error), _) | (_, Err(error)) => return Check::not("clocks", error),
    };
    let now = case.session.now;
    let mut findings = Vec::new();
    findings.extend(date.and_then(|date| own_clock(now, date)));
    for seen in beating(case) {
        let ahead = beats.get(&seen.id).map(|beat| beat.at - now).filter(|ahead| *ahead > CLOCK_SKEW);
        findings.extend(ahead.map(|ahead| {
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
        findings.extend(late.map(|name| {
            Finding::new(
                format!("the fact `{name}` of pool {pool} in the ledger is dated more than an hour ahead"),
                "it is taken for unreadable until then: a wake is lost, or a node kept",
                format!("the clock of whoever wrote it; then remove `{name}` from the item pool#{pool}"),
            )
        }));
    }
    Check::of("clocks", Ok(findings))
}

fn own_clock(now: Instant, date: Instant) -> Option<Finding> {
    let off = now - date;
    (off.abs() > MOST_OFF).then(|| {
        let way = if off > TimeDelta::zero() { "ahead of" } else { "behind" };
        Finding::new(
            format!("the clock of this machine is {} s {way} AWS's", off.num_seconds().abs()),
            "what `status` and `events` say of times is off by it; from five minutes on AWS refuses every call",
            "on this machine: timedatectl set-ntp true",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_clocks_being_clocks() {
        let date: Instant = "2026-11-30T10:00:00Z".parse().expect("a date");
        let off = |seconds| own_clock(date + TimeDelta::seconds(seconds), date).map(|finding| finding.what);
        assert_eq!((off(60), off(-60)), (None, None));
        assert_eq!(off(61).as_deref(), Some("the clock of this machine is 61 s ahead of AWS's"));
        assert_eq!(off(-90).as_deref(), Some("the clock of this machine is 90 s behind AWS's"));
    }
}
