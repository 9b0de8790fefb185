//! Does every configured metric exist under its exact dimensions? A wrong one gives an empty, valid answer.

use super::{Case, Check, Finding};
use crate::ops::aws;
use reveille::error::CallError;
use reveille::run::{MetricRef, PoolPolicy};
use std::collections::{BTreeMap, BTreeSet};

/// Metrics that had no point in the last two weeks, which is as far as CloudWatch lists them.
pub(super) async fn metrics(case: &Case<'_>) -> Check {
    let mut findings = Vec::new();
    let mut listed: BTreeMap<(String, String), Vec<BTreeMap<String, String>>> = BTreeMap::new();
    for (name, pool) in &case.config().pools {
        for metric in wanted(&pool.policy) {
            let key = (metric.namespace.clone(), metric.metric.clone());
            if !listed.contains_key(&key) {
                match aws::dimensions(&case.session.sdk, &key.0, &key.1).await {
                    Ok(found) => drop(listed.insert(key.clone(), found)),
                    Err(error) => return Check::not("metrics", error),
                }
            }
            let there = listed.get(&key).map(Vec::as_slice).unwrap_or_default();
            let of_nodes: Vec<MetricRef> = case.of_pool(name).map(|seen| metric.of(&seen.id)).collect();
            // A pool without a node has none of its nodes' metrics.
            let is_templated = metric.dimensions.values().any(|value| value.contains("{node}"));
            let exact = if is_templated { of_nodes } else { vec![metric.clone()] };
            let missing: BTreeSet<MetricRef> =
                exact.into_iter().filter(|metric| !there.contains(&metric.dimensions)).collect();
            findings.extend(missing.iter().map(|metric| finding(name.as_str(), metric, there)));
        }
    }
    Check::of("metrics", Ok::<_, CallError>(findings))
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
