//! Does every configured metric exist under its exact dimensions? A wrong one gives an empty, valid answer.

use super::{Case, Check, Finding};
use crate::ops::aws;
use crate::ops::look::Looker;
use crate::ops::show::hours;
use chrono::{DurationRound as _, TimeDelta};
use reveille::domain::{PoolName, running_seconds};
use reveille::observation::{Series, SignalKind};
use reveille::run::{Call, MetricRef, PoolPolicy, take_activity};
use std::collections::{BTreeMap, BTreeSet};

/// Names and values.
type Dimensions = BTreeMap<String, String>;

/// Metrics that had no point in the last two weeks, which is as far as CloudWatch lists them; and which.
pub(super) async fn metrics(case: &Case<'_>) -> (Check, BTreeSet<MetricRef>) {
    let (mut check, mut all_missing) = (Check::new("metrics"), BTreeSet::new());
    let mut listed: BTreeMap<(String, String), Option<Vec<Dimensions>>> = BTreeMap::new();
    for (name, pool) in &case.config().pools {
        for metric in wanted(&pool.policy) {
            let key = (metric.namespace.clone(), metric.metric.clone());
            if !listed.contains_key(&key) {
                let found = aws::dimensions(&case.session.sdk, &key.0, &key.1).await;
                listed.insert(key.clone(), found.map_err(|error| check.missed(error)).ok());
            }
            let Some(Some(there)) = listed.get(&key) else { continue };
            let mut missing = exact(case, name, metric);
            missing.retain(|metric| !there.contains(&metric.dimensions));
            check.findings.extend(missing.iter().map(|metric| finding(name.as_str(), metric, there)));
            all_missing.extend(missing);
        }
    }
    (check, all_missing)
}

/// The metric, or that of each node; a pool without a node has none of its nodes' metrics.
fn exact(case: &Case<'_>, pool: &PoolName, metric: &MetricRef) -> BTreeSet<MetricRef> {
    if metric.dimensions.values().any(|value| value.contains("{node}")) {
        return case.of_pool(pool).map(|seen| metric.of(&seen.id)).collect();
    }
    BTreeSet::from([metric.clone()])
}

const WEEK: TimeDelta = TimeDelta::days(7);

/// Metrics that counted nothing though their pool ran. A metric filter whose pattern matches no line gives zeros: they prove
/// that the source is alive, and say that nobody came.
pub(super) async fn counted(case: &Case<'_>, looker: &mut Looker<'_>, missing: &BTreeSet<MetricRef>) -> Check {
    let mut check = Check::new("counted requests");
    let to = case.session.now;
    let from = (to - WEEK).duration_trunc(TimeDelta::minutes(1)).unwrap_or(to - WEEK);
    let pools = case.config().pools.iter().flat_map(|(name, pool)| {
        let requests = pool.policy.signals.iter().filter(|signal| signal.kind == SignalKind::Requests);
        requests.map(move |signal| (name, &signal.metric))
    });
    // One that is missing is found already.
    let uses = pools.map(|(name, metric)| (name, metric, &exact(case, name, metric) - missing));
    let uses: Vec<_> = uses.filter(|(.., exact)| !exact.is_empty()).collect();
    let metrics: BTreeMap<_, _> = uses
        .iter()
        .flat_map(|(.., exact)| exact.iter().cloned())
        .map(|metric| (metric, SignalKind::Requests))
        .collect();
    if uses.is_empty() {
        return check;
    }
    let activity =
        take_activity(looker.answer_all(&[Call::ReadActivity { metrics, from, to }]).await.into_iter().next());
    let (activity, fleet) = match (activity, looker.fleet(case.config(), from, to).await) {
        (Ok(activity), Ok(fleet)) => (activity, fleet),
        (Err(error), _) | (_, Err(error)) => {
            check.missed(error);
            return check;
        }
    };
    let members = looker.members();
    for (name, metric, exact) in uses {
        let of_pool = members.get(name).into_iter().flatten().filter_map(|id| fleet.get(id));
        let ran = of_pool.map(|node| running_seconds(&node.launches, from, to, to)).sum();
        let read: Vec<_> =
            exact.iter().map(|metric| activity.get(metric).and_then(|series| series.as_ref().ok())).collect();
        judge_count(name, metric, &read, ran, &mut check);
    }
    check
}

/// `read` has what each metric counted, where CloudWatch told it.
fn judge_count(pool: &PoolName, metric: &MetricRef, read: &[Option<&Series>], ran: i64, check: &mut Check) {
    let counted = |series: &&Series| series.points.iter().any(|(_, value)| *value > 0.0);
    if read.iter().flatten().any(counted) {
        return;
    }
    let name = format!("{} {} with {}", metric.namespace, metric.metric, shown(&metric.dimensions));
    if read.iter().any(|series| !series.is_some_and(|series| series.complete)) {
        check.not_checked.push(format!("CloudWatch did not tell all points of {name}"));
    } else if ran == 0 {
        check.undecided.push(format!("{name} counted no request in a week, and no node of pool {pool} ran"));
    } else {
        check.findings.push(Finding::new(
            format!("{name} counted no request in a week, and pool {pool} ran {}", hours(ran)),
            "if it was used in that time, no request of it is ever counted: a node that is used is stopped as idle",
            format!(
                "REVEILLE_POOLS.{pool}.requests; of a metric filter its pattern: does it match the line of a call?"
            ),
        ));
    }
}

fn wanted(pool: &PoolPolicy) -> BTreeSet<&MetricRef> {
    let of_signals = pool.signals.iter().flat_map(|signal| [Some(&signal.metric), signal.alive.as_ref()]).flatten();
    let of_logs = pool.logs.iter().filter_map(|log| log.alive.as_ref());
    of_signals.chain(of_logs).chain(pool.healthy_hosts.as_ref()).collect()
}

fn finding(pool: &str, metric: &MetricRef, there: &[BTreeMap<String, String>]) -> Finding {
    let dimensions = shown(&metric.dimensions);
    let other = nearest(&metric.dimensions, there);
    let change = match other {
        Some(other) => format!("REVEILLE_POOLS.{pool}: CloudWatch has it with {}", shown(other)),
        None => format!(
            "REVEILLE_POOLS.{pool}: CloudWatch has no {} {} at all; is its source on?",
            metric.namespace, metric.metric
        ),
    };
    Finding::new(
        format!("{} {} with {dimensions} had no point in two weeks", metric.namespace, metric.metric),
        "its silence proves nothing, so a node of the pool is kept running as unknown, and a person is told each day",
        change,
    )
}

/// The one that shares most with what is configured.
fn nearest<'a>(
    wanted: &BTreeMap<String, String>,
    there: &'a [BTreeMap<String, String>],
) -> Option<&'a BTreeMap<String, String>> {
    let same = |other: &BTreeMap<String, String>| {
        let names = other.keys().filter(|name| wanted.contains_key(*name)).count();
        let values = other.iter().filter(|(name, value)| wanted.get(*name) == Some(value)).count();
        (values, names, std::cmp::Reverse(other.len()))
    };
    there.iter().max_by_key(|other| same(other))
}

fn shown(dimensions: &BTreeMap<String, String>) -> String {
    if dimensions.is_empty() {
        return "no dimension".to_owned();
    }
    dimensions.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimensions(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_nearest_shares_most_values() {
        let there = [
            dimensions(&[("LoadBalancer", "app/b/2")]),
            dimensions(&[("LoadBalancer", "app/a/1"), ("AvailabilityZone", "a")]),
            dimensions(&[("LoadBalancer", "app/a/1"), ("TargetGroup", "t")]),
        ];
        let wanted = dimensions(&[("LoadBalancer", "app/a/1"), ("TargetGroup", "T")]);
        assert_eq!(nearest(&wanted, &there), Some(&there[2]));
        assert_eq!(nearest(&wanted, &[]), None);
    }
}
