//! Can each node be found, and stopped?

use super::{Case, Check, Finding, called};
use crate::ops::aws::{self, Tagged};
use crate::ops::fault::line;
use chrono::Duration;
use reveille::domain::{NodeId, NodeSeen, PoolName, TagHold, read_tags};
use reveille::error::CallError;
use std::collections::BTreeSet;

/// The tag that makes an instance a node.
const POOL_TAG: &str = "reveille:pool";
/// Wrong, absent, added or swapped letters.
const MOST_TYPOS: usize = 2;

/// Instances whose tags are nearly right: a pool nobody configured, a key that is misspelt, a hold that cannot be followed.
pub(super) async fn tags(case: &Case<'_>) -> Check {
    let looked = aws::instances(&case.session.sdk).await;
    let pools: BTreeSet<&PoolName> = case.config().pools.keys().collect();
    Check::of(
        "tags",
        looked.map(|instances| {
            let mut findings: Vec<Finding> = instances.iter().flat_map(|one| judge_tags(case, one, &pools)).collect();
            findings.extend(pools.iter().filter(|pool| no_node(&instances, pool)).map(|pool| {
                Finding::new(
                    format!("no instance has the tag {POOL_TAG}={pool}"),
                    "a wake of the pool starts nothing",
                    format!("aws ec2 create-tags --resources INSTANCE --tags Key={POOL_TAG},Value={pool}"),
                )
            }));
            findings
        }),
    )
}

fn no_node(instances: &[Tagged], pool: &PoolName) -> bool {
    instances.iter().all(|one| one.tags.get(POOL_TAG).map(String::as_str) != Some(pool.as_str()))
}

fn judge_tags(case: &Case<'_>, one: &Tagged, pools: &BTreeSet<&PoolName>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let costs = |running: bool| match running {
        true => "it runs, and nothing will ever stop it",
        false => "nothing starts it, and once somebody does nothing stops it",
    };
    let retag =
        |value: &str| format!("aws ec2 create-tags --resources {} --tags 'Key={POOL_TAG},Value={value}'", one.id);
    match one.tags.get(POOL_TAG) {
        Some(value) if pools.iter().any(|pool| pool.as_str() == value) => {}
        Some(value) => {
            let known = nearest(value, pools.iter().map(|pool| pool.as_str()));
            let known = known.or_else(|| pools.iter().next().map(|pool| pool.as_str())).unwrap_or("POOL");
            findings.push(Finding::new(
                format!("{} has the tag {POOL_TAG}={}, and no such pool is configured", one.id, line(value)),
                costs(one.running),
                format!("{}, or add the pool to REVEILLE_POOLS", retag(known)),
            ));
        }
        None => findings.extend(one.tags.iter().filter(|(key, _)| is_near(key)).map(|(key, value)| {
            Finding::new(
                format!(
                    "{} has the tag {}={}, which is {POOL_TAG} but for its spelling",
                    one.id,
                    line(key),
                    line(value)
                ),
                costs(one.running),
                retag(&line(value)),
            )
        })),
    }
    let is_node = one.tags.contains_key(POOL_TAG);
    findings.extend(Some(strange_hold(case, one)).filter(|_| is_node).flatten());
    findings
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn is_near(key: &str) -> bool {
    key != POOL_TAG && strsim::osa_distance(&plain(key), &plain(POOL_TAG)) <= MOST_TYPOS
}

fn nearest<'a>(value: &str, pools: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    pools.min_by_key(|pool| strsim::osa_distance(&plain(value), &plain(pool)))
}

fn strange_hold(case: &Case<'_>, one: &Tagged) -> Option<Finding> {
    let tags = one.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let (zone, now) = (case.config().policy.zone, case.session.now);
    let what = match read_tags(tags, zone, now) {
        TagHold::None | TagHold::Until(_) => return None,
        TagHold::NoEnd => format!("{} is held by its tag without an end", one.id),
        TagHold::Unreadable { key, value } | TagHold::NearMiss { key, value } => {
            format!("{} has the tag {key}={value}, which nobody can follow", one.id)
        }
    };
    let end = (now + Duration::hours(2)).format("%Y-%m-%dT%H:%MZ");
    Some(Finding::new(
        what,
        "it is kept for as long as it runs",
        format!("reveille:keep-until={end} or another end, or no such tag and `reveille hold --for 2h --note …`"),
    ))
}

/// Instances that two pools take for theirs: by two tags that read alike, or by one signal that both count.
pub(super) async fn shared(case: &Case<'_>) -> Check {
    let looked = aws::instances(&case.session.sdk).await;
    Check::of(
        "shared nodes",
        looked.map(|instances| instances.iter().filter_map(two_pools).chain(shared_signals(case)).collect()),
    )
}

fn two_pools(one: &Tagged) -> Option<Finding> {
    let own = one.tags.get(POOL_TAG)?;
    let (key, other) = one.tags.iter().find(|(key, value)| is_near(key) && *value != own)?;
    Some(Finding::new(
        format!("{} is tagged {POOL_TAG}={} and {}={}", one.id, line(own), line(key), line(other)),
        format!("pool {} stops it while pool {} takes it for its own", line(own), line(other)),
        format!("aws ec2 delete-tags --resources {} --tags 'Key={}'", one.id, line(key)),
    ))
}

/// What one pool's callers use keeps the other's nodes.
fn shared_signals(case: &Case<'_>) -> Vec<Finding> {
    let pools: Vec<_> = case.config().pools.iter().collect();
    let mut findings = Vec::new();
    for (n, (one, settings)) in pools.iter().enumerate() {
        for (other, others) in &pools[n + 1..] {
            let metrics = settings.policy.signals.iter().map(|signal| &signal.metric);
            let both = metrics.filter(|metric| others.policy.signals.iter().any(|signal| signal.metric == **metric));
            let of_no_node =
                |metric: &&reveille::run::MetricRef| !metric.dimensions.values().any(|value| value.contains("{node}"));
            findings.extend(both.filter(of_no_node).map(|metric| {
                Finding::new(
                    format!(
                        "pools {one} and {other} both count {} {}: the same requests",
                        metric.namespace, metric.metric
                    ),
                    "what one pool's callers use keeps the nodes of both",
                    format!("REVEILLE_POOLS.{other}: the signals of its own nodes"),
                )
            }));
        }
    }
    findings
}

/// Nodes that EC2 refuses to stop.
pub(super) async fn stop_protection(case: &Case<'_>) -> Check {
    let mut check = Check::new("stop protection");
    for seen in case.alive() {
        match aws::is_stop_protected(&case.session.sdk, &seen.id).await {
            Ok(true) => check.findings.push(Finding::new(
                format!("{} has stop protection", called(seen)),
                format!("EC2 refuses each STOP: {}", case.hour(seen)),
                format!("aws ec2 modify-instance-attribute --instance-id {} --no-disable-api-stop", seen.id),
            )),
            Ok(false) => {}
            Err(error) => check.missed(error),
        }
    }
    check
}

/// Spot nodes of a one-time request: they can only be terminated.
pub(super) async fn spot(case: &Case<'_>) -> Check {
    let spot: Vec<&NodeSeen> = case.alive().filter(|seen| seen.spot).collect();
    let ids: BTreeSet<NodeId> = spot.iter().map(|seen| seen.id.clone()).collect();
    let persistent = match ids.is_empty() {
        true => Ok::<_, CallError>(BTreeSet::new()),
        false => aws::persistent_spot(&case.session.sdk, &ids).await,
    };
    let one_time = |persistent: BTreeSet<NodeId>| {
        let never = spot.iter().filter(move |seen| !persistent.contains(&seen.id));
        let finding = |seen: &&NodeSeen| {
            Finding::new(
                format!("{} is a spot instance of a one-time request", called(seen)),
                format!(
                    "it can be terminated and never stopped: {} at the on-demand price, less by spot",
                    case.hour(seen)
                ),
                "launch it again with MarketType=spot, SpotInstanceType=persistent, InstanceInterruptionBehavior=stop",
            )
        };
        never.map(finding).collect()
    };
    Check::of("spot", persistent.map(one_time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_near_by_case_punctuation_or_two_letters() {
        for key in ["Reveille:Pool", "reveille_pool", "revielle:pool", "reveille:pol", "reveile:pools"] {
            assert!(is_near(key), "{key}");
        }
        for key in [POOL_TAG, "Name", "reveille:keep-until", "pool", "reveille"] {
            assert!(!is_near(key), "{key}");
        }
    }

    #[test]
    fn two_tags_of_one_pool_share_nothing() {
        let tagged = |tags: &[(&str, &str)]| Tagged {
            id: NodeId::new("i-a").expect("an id"),
            running: true,
            tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        assert!(two_pools(&tagged(&[(POOL_TAG, "voice"), ("Reveille:Pool", "batch")])).is_some());
        assert_eq!(two_pools(&tagged(&[(POOL_TAG, "voice"), ("Reveille:Pool", "voice")])), None);
        assert_eq!(two_pools(&tagged(&[("Reveille:Pool", "batch")])), None);
    }
}
