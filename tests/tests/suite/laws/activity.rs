//! Signals in 1-minute buckets.

use crate::bench::{Bench, minutes, morning, seconds};
use reveille::domain::Instant;
use reveille::observation::{Series, SignalKind};
use reveille::run::{Activity, Call, MetricRef, take_activity};
use std::collections::BTreeMap;

fn metric(name: &str, dimensions: &[(&str, &str)]) -> MetricRef {
    let dimensions = dimensions.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    MetricRef { namespace: "AWS/ApplicationELB".to_owned(), metric: name.to_owned(), dimensions }
}

fn requests() -> MetricRef {
    metric("RequestCount", &[("LoadBalancer", "app/voice/1")])
}

fn open() -> MetricRef {
    metric("ActiveConnectionCount", &[("LoadBalancer", "app/voice/1")])
}

async fn read(bench: &mut impl Bench, metrics: &[(MetricRef, SignalKind)], from: Instant, to: Instant) -> Activity {
    let call = Call::ReadActivity { metrics: metrics.iter().cloned().collect(), from, to };
    take_activity(Some(bench.answer(&call).await)).expect("read activity")
}

/// The points of a complete series, as minutes after the morning.
fn points(series: &Activity, metric: &MetricRef) -> BTreeMap<i64, f64> {
    let Ok(Series { points, complete: true }) = &series[metric] else { panic!("{series:?}") };
    let by_minute: BTreeMap<i64, f64> = points
        .iter()
        .map(|(at, value)| {
            assert_eq!(at.timestamp() % 60, 0, "each point stands at the start of its minute");
            ((*at - morning()).num_minutes(), *value)
        })
        .collect();
    assert_eq!(by_minute.len(), points.len(), "one point a minute");
    by_minute
}

pub(crate) async fn requests_are_summed_and_gauges_take_the_highest_by_the_minute(bench: &mut impl Bench) {
    bench.pass(minutes(10)).await;
    for (second, value) in [(0, 2.0), (59, 3.0), (20, 4.0), (60, 1.0), (240, 0.0)] {
        for metric in [requests(), open()] {
            bench.point(&metric, morning() + seconds(second), value).await;
        }
    }
    let both = [(requests(), SignalKind::Requests), (open(), SignalKind::Open)];
    let read = read(bench, &both, morning(), morning() + minutes(10)).await;
    assert_eq!(points(&read, &requests()), BTreeMap::from([(0, 9.0), (1, 1.0), (4, 0.0)]));
    assert_eq!(points(&read, &open()), BTreeMap::from([(0, 4.0), (1, 1.0), (4, 0.0)]));
}

pub(crate) async fn an_empty_series_is_complete(bench: &mut impl Bench) {
    bench.pass(minutes(10)).await;
    bench.point(&open(), morning(), 1.0).await;
    let both = [(requests(), SignalKind::Requests), (open(), SignalKind::Open)];
    let read = read(bench, &both, morning() + minutes(5), morning() + minutes(10)).await;
    assert_eq!(points(&read, &requests()), BTreeMap::new(), "a metric nobody has written");
    assert_eq!(points(&read, &open()), BTreeMap::new(), "a metric with no point in the span");
}

pub(crate) async fn the_span_begins_with_its_first_minute_and_ends_before_its_last(bench: &mut impl Bench) {
    bench.pass(minutes(10)).await;
    for minute in 0..10 {
        bench.point(&requests(), morning() + minutes(minute), minute as f64).await;
    }
    let counted = [(requests(), SignalKind::Requests)];
    let whole = read(bench, &counted, morning() + minutes(3), morning() + minutes(5)).await;
    assert_eq!(points(&whole, &requests()), BTreeMap::from([(3, 3.0), (4, 4.0)]));
    let (from, to) = (morning() + minutes(3) + seconds(40), morning() + minutes(5) + seconds(1));
    let broken = read(bench, &counted, from, to).await;
    let expected = BTreeMap::from([(3, 3.0), (4, 4.0), (5, 5.0)]);
    assert_eq!(points(&broken, &requests()), expected, "a minute that has begun counts whole");
}

pub(crate) async fn metrics_of_one_call_are_told_apart_by_their_dimensions(bench: &mut impl Bench) {
    bench.pass(minutes(10)).await;
    let name = "RequestCount";
    let told_apart = [
        (metric(name, &[("LoadBalancer", "app/voice/1")]), 1.0),
        (metric(name, &[("LoadBalancer", "app/voice/2")]), 2.0),
        (metric(name, &[("LoadBalancer", "app/voice/1"), ("TargetGroup", "t/1")]), 3.0),
        (metric(name, &[]), 4.0),
    ];
    for (metric, value) in &told_apart {
        bench.point(metric, morning(), *value).await;
    }
    let near_misses = [
        metric(name, &[("TargetGroup", "t/1")]),
        MetricRef { namespace: "AWS/NetworkELB".to_owned(), ..requests() },
        metric("NewConnectionCount", &[("LoadBalancer", "app/voice/1")]),
    ];
    let all: Vec<_> = told_apart.iter().map(|(metric, _)| metric).chain(&near_misses).cloned().collect();
    let asked: Vec<_> = all.iter().map(|metric| (metric.clone(), SignalKind::Requests)).collect();
    let read = read(bench, &asked, morning(), morning() + minutes(10)).await;
    assert_eq!(read.len(), all.len(), "an answer for each");
    for (metric, value) in &told_apart {
        assert_eq!(points(&read, metric), BTreeMap::from([(0, *value)]), "{metric:?}");
    }
    for metric in &near_misses {
        assert_eq!(points(&read, metric), BTreeMap::new(), "{metric:?}: a wrong name is no error");
    }
}
