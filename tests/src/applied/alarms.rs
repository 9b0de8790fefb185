//! When the alarms that were made would have stood in ALARM, by CloudWatch's documented rule ("Evaluating an alarm", Amazon
//! CloudWatch User Guide): all of the last periods breach. Periods are laid from the day's begin.

use super::wiring::Alarm;
use crate::stage::StageResult;
use aws_sdk_cloudwatch::primitives::DateTime as SdkDateTime;
use aws_sdk_cloudwatch::types::{Dimension, Statistic};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;

/// A time in which an alarm stood in ALARM; it begins with the end of the last period that it looked at.
pub(super) type Span = (DateTime<Utc>, DateTime<Utc>);

/// Reads the alarm's metric and gives its spans in ALARM between `from` and `to`.
///
/// # Errors
/// The local AWS refused, or the alarm uses a word that is not known here.
pub(super) async fn spans(
    cloudwatch: &aws_sdk_cloudwatch::Client,
    alarm: &Alarm,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> StageResult<Vec<Span>> {
    let dimensions =
        alarm.dimensions.iter().map(|(name, value)| Dimension::builder().name(name).value(value).build()).collect();
    let read = cloudwatch
        .get_metric_statistics()
        .namespace(&alarm.namespace)
        .metric_name(&alarm.metric)
        .set_dimensions(Some(dimensions))
        .start_time(SdkDateTime::from_secs(from.timestamp()))
        .end_time(SdkDateTime::from_secs(to.timestamp()))
        .period(alarm.period_seconds)
        .statistics(Statistic::from(alarm.statistic.as_str()))
        .send()
        .await?;
    let mut points = BTreeMap::new();
    for point in read.datapoints() {
        let value = match alarm.statistic.as_str() {
            "Sum" => point.sum(),
            "Maximum" => point.maximum(),
            "SampleCount" => point.sample_count(),
            other => return Err(format!("{}: an unknown statistic: {other}", alarm.name).into()),
        };
        let at = point.timestamp().ok_or("a point without a time")?.secs();
        points
            .insert((at - from.timestamp()) / i64::from(alarm.period_seconds), value.ok_or("a point without a value")?);
    }
    let period = TimeDelta::seconds(i64::from(alarm.period_seconds));
    let periods = (to - from).num_seconds() / i64::from(alarm.period_seconds);
    let breaching = (0..periods).map(|n| breaches(alarm, points.get(&n).copied())).collect::<StageResult<Vec<_>>>()?;
    Ok(in_alarm(&breaching, alarm.periods)
        .map(|(first, last)| (from + period * index(first + 1), from + period * index(last + 1)))
        .collect())
}

fn index(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn breaches(alarm: &Alarm, value: Option<f64>) -> StageResult<bool> {
    let Some(value) = value else {
        return match alarm.missing.as_str() {
            "breaching" => Ok(true),
            "notBreaching" => Ok(false),
            other => Err(format!("{}: an unknown word for missing points: {other}", alarm.name).into()),
        };
    };
    match alarm.comparison.as_str() {
        "GreaterThanThreshold" => Ok(value > alarm.threshold),
        "GreaterThanOrEqualToThreshold" => Ok(value >= alarm.threshold),
        "LessThanThreshold" => Ok(value < alarm.threshold),
        other => Err(format!("{}: an unknown comparison: {other}", alarm.name).into()),
    }
}

/// Runs of periods, first and last, at whose ends so many periods in a row have breached.
fn in_alarm(breaching: &[bool], row: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for n in 0..breaching.len() {
        let stands = n + 1 >= row && breaching[n + 1 - row..=n].iter().all(|breaches| *breaches);
        match runs.last_mut() {
            Some((_, last)) if stands && *last + 1 == n => *last = n,
            _ if stands => runs.push((n, n)),
            _ => {}
        }
    }
    runs.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_stands_from_the_last_of_so_many_periods_until_one_is_well() {
        let bits = |text: &str| text.chars().map(|c| c == 'x').collect::<Vec<_>>();
        let runs = |text: &str, row| in_alarm(&bits(text), row).collect::<Vec<_>>();
        assert_eq!(runs("..xxxx..xx.xxx", 3), [(4, 5), (13, 13)]);
        assert_eq!(runs("x.x", 1), [(0, 0), (2, 2)]);
        assert_eq!(runs("xx", 3), []);
    }
}
