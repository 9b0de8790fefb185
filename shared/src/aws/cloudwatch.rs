//! CloudWatch: every signal in one GetMetricData call.

use super::errors::{call_error, names_a_next, whole};
use crate::domain::{Instant, NodeId};
use crate::error::CallError;
use crate::observation::{Series, SignalKind, Unread};
use crate::run::{Activity, MetricRef, Samples};
use aws_sdk_cloudwatch::Client;
use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{Dimension, Metric, MetricDataQuery, MetricDataResult, MetricStat, StatusCode};
use std::collections::{BTreeMap, BTreeSet};

/// GetMetricData takes at most 500 queries.
const MOST_QUERIES: usize = 500;

/// Reads the metrics in 1-minute buckets; `from` inclusive, `to` exclusive.
pub(super) async fn activity(
    client: &Client,
    metrics: &BTreeMap<MetricRef, SignalKind>,
    from: Instant,
    to: Instant,
) -> Result<Activity, CallError> {
    let all: Vec<(&MetricRef, &SignalKind)> = metrics.iter().collect();
    let mut read = Activity::new();
    for chunk in all.chunks(MOST_QUERIES) {
        let queries = chunk.iter().enumerate().map(|(n, (metric, kind))| query(n, metric, **kind)).collect();
        let mut found = series(client, "read activity", queries, from, to).await?;
        // A query the service did not answer is Unknown, not empty.
        let series = |n: usize| found.remove(&format!("q{n}")).unwrap_or(Err(Unread::Failed));
        read.extend(chunk.iter().map(|(metric, _)| (*metric).clone()).zip((0..chunk.len()).map(series)));
    }
    Ok(read)
}

/// EC2's status checks of each node, counted in 5-minute buckets: one sample a minute while it runs. A period of 5 minutes is
/// kept for 63 days.
pub(super) async fn samples(
    client: &Client,
    nodes: &BTreeSet<NodeId>,
    from: Instant,
    to: Instant,
) -> Result<Samples, CallError> {
    let all: Vec<&NodeId> = nodes.iter().collect();
    let mut read = Samples::new();
    for chunk in all.chunks(MOST_QUERIES) {
        let queries = chunk.iter().enumerate().map(|(n, node)| samples_query(n, node)).collect();
        let mut found = series(client, "read status-check samples", queries, from, to).await?;
        for (n, node) in chunk.iter().enumerate() {
            // What is missing is too little: the launches know it better.
            if let Some(Ok(series)) = found.remove(&format!("q{n}")) {
                read.insert((*node).clone(), series.points);
            }
        }
    }
    Ok(read)
}

/// The answers to some queries, by their ids, all pages of them.
async fn series(
    client: &Client,
    act: &str,
    queries: Vec<MetricDataQuery>,
    from: Instant,
    to: Instant,
) -> Result<BTreeMap<String, Result<Series, Unread>>, CallError> {
    let mut pages = client
        .get_metric_data()
        .set_metric_data_queries(Some(queries))
        .start_time(DateTime::from_secs(from.timestamp()))
        .end_time(DateTime::from_secs(to.timestamp()))
        .into_paginator()
        .send();
    let (mut found, mut more) = (BTreeMap::new(), false);
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| call_error(act, &error))?;
        more = names_a_next(page.next_token());
        page.metric_data_results().iter().for_each(|result| add(&mut found, result));
    }
    whole(act, more)?;
    Ok(found)
}

fn samples_query(n: usize, node: &NodeId) -> MetricDataQuery {
    let dimension = Dimension::builder().name("InstanceId").value(node.as_str()).build();
    let metric = Metric::builder().namespace("AWS/EC2").metric_name("StatusCheckFailed").dimensions(dimension).build();
    let stat = MetricStat::builder().metric(metric).period(300).stat("SampleCount").build();
    MetricDataQuery::builder().id(format!("q{n}")).metric_stat(stat).build()
}

fn query(n: usize, metric: &MetricRef, kind: SignalKind) -> MetricDataQuery {
    let dimension = |(name, value): (&String, &String)| Dimension::builder().name(name).value(value).build();
    let metric = Metric::builder()
        .namespace(&metric.namespace)
        .metric_name(&metric.metric)
        .set_dimensions(Some(metric.dimensions.iter().map(dimension).collect()));
    let stat = match kind {
        SignalKind::Requests => "Sum",
        SignalKind::Open => "Maximum",
    };
    let stat = MetricStat::builder().metric(metric.build()).period(60).stat(stat).build();
    MetricDataQuery::builder().id(format!("q{n}")).metric_stat(stat).build()
}

/// The status of the last page counts: PartialData before a further page is no loss.
fn add(found: &mut BTreeMap<String, Result<Series, Unread>>, result: &MetricDataResult) {
    let Some(id) = result.id() else { return };
    let earlier = found.remove(id).and_then(Result::ok).unwrap_or_default();
    let read = match result.status_code() {
        Some(StatusCode::Complete) => Some(true),
        Some(StatusCode::PartialData) => Some(false),
        _ => None,
    };
    let times = result.timestamps().iter().filter_map(|at| Instant::from_timestamp(at.secs(), 0));
    let mut series = earlier;
    series.points.extend(times.zip(result.values().iter().copied()));
    let series = match read {
        Some(complete) => Ok(Series { complete, ..series }),
        // Points that came before the failure still count as use.
        None if series.points.iter().any(|(_, value)| *value > 0.0) => Ok(Series { complete: false, ..series }),
        None => Err(Unread::Failed),
    };
    found.insert(id.to_owned(), series);
}
