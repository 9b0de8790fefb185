//! What a line says about use: from when to when somebody was served.

use super::{Filter, RequestLine};
use chrono::{DateTime, TimeDelta, Utc};

const MINUTE: TimeDelta = TimeDelta::minutes(1);

/// What one line is for the question whether a node is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineUse {
    /// A request that the filter counts, from its start to its end, both included; one instant if the line does not say
    /// how long it took.
    Use {
        /// When it began.
        from: DateTime<Utc>,
        /// When it ended.
        to: DateTime<Utc>,
    },
    /// No use: a health check, a look-up, another path or status, a line that is not understood. It proves only that
    /// the source writes.
    Alive,
}

/// Says what a raw line with this event time is for the use of a pool with this filter.
///
/// Use is what would wake, by the same paths, methods, agents and statuses, and also the line that ends a long call,
/// which wakes nothing any more. The same statuses, because a refused stranger (401, 404) was not served by the node, and
/// a 502 to 504 or 499 is somebody who wants it now: to stop the node under him would start it again at once. What is
/// not understood is [`LineUse::Alive`]: a log in a format that is not read proves no use, so show its unread lines.
///
/// A line is written at its request's end. An agent that stamps events with the start shifts the use to earlier, unless
/// the line tells its own start; see [`RequestLine::span`].
pub fn line_use(filter: &Filter, line: &[u8], event_at: DateTime<Utc>) -> LineUse {
    let counted = filter.read(line).filter(|line| filter.is_use(line));
    match counted.as_ref().and_then(|line: &RequestLine| line.span(Some(event_at))) {
        Some((from, to)) => LineUse::Use { from, to },
        None => LineUse::Alive,
    }
}

/// Gives the starts of the 1-minute buckets that a use covers within the window, in order.
///
/// The window includes its start and excludes its end; the bucket that its start lies in is given as a whole. There are
/// never more than the window's buckets, however long the use: a call of 3 hours that ended a minute ago fills a window of
/// 5 minutes with 5. [`LineUse::Alive`] covers none.
pub fn minutes(
    line_use: LineUse,
    window_from: DateTime<Utc>,
    window_to: DateTime<Utc>,
) -> impl Iterator<Item = DateTime<Utc>> {
    let seen = match line_use {
        LineUse::Use { from, to } => (from < window_to && to >= window_from).then_some((from.max(window_from), to)),
        LineUse::Alive => None,
    };
    seen.into_iter().flat_map(move |(from, to)| {
        std::iter::successors(minute_of(from), |minute| minute.checked_add_signed(MINUTE))
            .take_while(move |minute| *minute <= to && *minute < window_to)
    })
}

fn minute_of(at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(at.timestamp().div_euclid(60) * 60, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(clock: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(&format!("2026-11-30T{clock}Z")).unwrap().to_utc()
    }

    fn covered(from: &str, to: &str, window: (&str, &str)) -> Vec<String> {
        let line_use = LineUse::Use { from: at(from), to: at(to) };
        minutes(line_use, at(window.0), at(window.1)).map(|minute| minute.format("%H:%M").to_string()).collect()
    }

    #[test]
    fn a_use_covers_its_minutes_within_the_window() {
        let hour = ("09:00:00", "10:00:00");
        let rows = [
            ("an instant", "09:05:59", "09:05:59", hour, vec!["09:05"]),
            ("on the minute", "09:05:00", "09:05:00", hour, vec!["09:05"]),
            ("both ends", "09:05:59", "09:07:00", hour, vec!["09:05", "09:06", "09:07"]),
            ("hours before", "06:00:00", "09:01:30", hour, vec!["09:00", "09:01"]),
            ("beyond the end", "09:58:10", "12:00:00", hour, vec!["09:58", "09:59"]),
            ("before the window", "08:00:00", "08:59:59", hour, vec![]),
            ("at its end", "10:00:00", "10:00:00", hour, vec![]),
            ("all of it", "06:00:00", "12:00:00", ("09:00:00", "09:03:00"), vec!["09:00", "09:01", "09:02"]),
            ("window within a minute", "09:00:20", "09:00:20", ("09:00:10", "09:00:30"), vec!["09:00"]),
            ("window backwards", "09:00:20", "09:00:20", ("09:01:00", "09:00:00"), vec![]),
        ];
        for (name, from, to, window, expected) in rows {
            assert_eq!(covered(from, to, window), expected, "{name}");
        }
        assert_eq!(minutes(LineUse::Alive, at("09:00:00"), at("10:00:00")).count(), 0);
    }

    #[test]
    fn a_call_of_three_hours_gives_no_more_than_the_window() {
        assert_eq!(covered("06:00:00", "09:04:30", ("09:00:00", "09:05:00")).len(), 5);
    }

    proptest! {
        #[test]
        fn a_window_cut_in_two_gives_the_same_minutes(
            from in 0_i64..7200, length in 0_i64..7200, start in 0_i64..3600, cut in 0_i64..60, rest in 0_i64..60,
        ) {
            let second = |n: i64| DateTime::from_timestamp(1_796_029_200 + n, 0).unwrap();
            let line_use = LineUse::Use { from: second(from), to: second(from + length) };
            let (cut, end) = (start + cut * 60, start + (cut + rest) * 60);
            let whole: Vec<_> = minutes(line_use, second(start), second(end)).collect();
            let mut halves: Vec<_> = minutes(line_use, second(start), second(cut)).collect();
            halves.extend(minutes(line_use, second(cut), second(end)));
            // A cut within a minute gives that minute to both sides.
            halves.dedup();
            prop_assert_eq!(whole, halves);
        }

        #[test]
        fn a_window_cut_on_the_minute_gives_each_minute_once(
            from in 0_i64..7200, length in 0_i64..7200, cut in 0_i64..60, rest in 0_i64..60,
        ) {
            let second = |n: i64| DateTime::from_timestamp(1_796_029_200 + n, 0).unwrap();
            let line_use = LineUse::Use { from: second(from), to: second(from + length) };
            let (cut, end) = (second(cut * 60), second((cut + rest) * 60));
            let halves = minutes(line_use, second(0), cut).chain(minutes(line_use, cut, end));
            let whole: Vec<_> = minutes(line_use, second(0), end).collect();
            prop_assert_eq!(whole, halves.collect::<Vec<_>>());
        }
    }
}
