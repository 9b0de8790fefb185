//! A closer look at one replay: when in the week its nodes ran and calls came, and one whole day of it.

use chrono::{DateTime, Datelike as _, Timelike as _};
use chrono_tz::Tz;

/// Hours of a week, from Monday's midnight on.
pub const WEEK: usize = 168;

/// A call of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayCall {
    /// When it came.
    pub at: i64,
    /// How long it waited and then lasted; absent where it was never connected.
    pub served: Option<(i64, i64)>,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    zone: Tz,
    /// From when to when the day is.
    pub day: (i64, i64),
    /// Seconds of running by hour of the week.
    pub node_seconds: Vec<i64>,
    /// Calls by hour of the week.
    pub calls: Vec<u64>,
    /// When nodes ran on that day.
    pub runs: Vec<(i64, i64)>,
    /// The calls of that day.
    pub day_calls: Vec<DayCall>,
}

impl Watch {
    /// Looks at this day, and at the weeks of this zone.
    pub fn new(day: (i64, i64), zone: Tz) -> Self {
        let (node_seconds, calls) = (vec![0; WEEK], vec![0; WEEK]);
        Self { zone, day, node_seconds, calls, runs: Vec::new(), day_calls: Vec::new() }
    }

    /// The hour of the week, and the first second of the next hour.
    fn hour(&self, at: i64) -> (usize, i64) {
        let local = DateTime::from_timestamp(at, 0).unwrap_or_default().with_timezone(&self.zone);
        let hour = local.weekday().num_days_from_monday() * 24 + local.hour();
        let left = 3600 - i64::from(local.minute() * 60 + local.second());
        (hour as usize % WEEK, at + left.max(1))
    }

    pub(super) fn call(&mut self, at: i64, served: Option<(i64, i64)>) {
        let (hour, _) = self.hour(at);
        self.calls[hour] += 1;
        if (self.day.0..self.day.1).contains(&at) {
            self.day_calls.push(DayCall { at, served });
        }
    }

    pub(super) fn ran(&mut self, from: i64, to: i64) {
        if from < self.day.1 && to > self.day.0 {
            self.runs.push((from, to));
        }
        let mut at = from;
        while at < to {
            let (hour, next) = self.hour(at);
            let end = next.min(to);
            self.node_seconds[hour] += end - at;
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Monday's midnight in UTC.
    const MONDAY: i64 = 1_795_996_800;

    #[test]
    fn hours_of_the_week_are_those_of_the_zone() {
        let mut watch = Watch::new((0, 0), Tz::Asia__Seoul);
        watch.ran(MONDAY - 1800, MONDAY + 5400);
        assert_eq!((watch.node_seconds[8], watch.node_seconds[9], watch.node_seconds[10]), (1800, 3600, 1800));
        watch.call(MONDAY - 9 * 3600 - 1, None);
        assert_eq!(watch.calls[167], 1, "Sunday's last hour in Seoul");
        assert_eq!(watch.node_seconds.iter().sum::<i64>(), 7200);
    }

    #[test]
    fn a_zone_with_half_hours_loses_no_second() {
        let mut watch = Watch::new((0, 0), Tz::Asia__Kolkata);
        watch.ran(MONDAY, MONDAY + 7 * 86_400);
        assert!(watch.node_seconds.iter().all(|seconds| *seconds == 3600), "{:?}", watch.node_seconds);
    }

    #[test]
    fn the_day_has_its_calls_and_runs() {
        let mut watch = Watch::new((MONDAY, MONDAY + 86_400), Tz::UTC);
        watch.ran(MONDAY - 100, MONDAY + 100);
        watch.ran(MONDAY - 100, MONDAY);
        watch.call(MONDAY, Some((0, 60)));
        watch.call(MONDAY + 86_400, None);
        assert_eq!((watch.runs.len(), watch.day_calls.len()), (1, 1));
    }
}
