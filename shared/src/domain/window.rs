//! Warm windows: the hours of the week in which a pool wants nodes without being asked.

use super::{Instant, local};
use chrono::{Datelike, Days, NaiveDate, NaiveTime, TimeDelta, Weekday, WeekdaySet};
use chrono_tz::Tz;
use serde::Deserialize;

/// A window as it is configured.
///
/// ```json
/// {"days": ["mon-fri", 6], "from": "07:00", "to": "23:00", "nodes": 2, "zone": "Asia/Seoul"}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// The days on which it starts; default every day.
    #[serde(default)]
    pub days: Option<Vec<DaySpec>>,
    /// When it starts, such as `07:00`.
    pub from: String,
    /// When it ends, on the next day where that is not after `from`; `24:00` is the end of the day.
    pub to: String,
    /// How many nodes it wants, 1 to 100; default 1.
    #[serde(default = "one")]
    pub nodes: i64,
    /// The IANA zone of days and times; the caller has the default.
    #[serde(default)]
    pub zone: Option<String>,
}

/// One entry of a window's days.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "`days` takes names such as \"mon\" or \"mon-fri\" and numbers from 0 to 7 (0 and 7 are Sunday)"
)]
pub enum DaySpec {
    /// As cron counts: 1 is Monday, 0 and 7 are Sunday.
    Number(i64),
    /// A day, or the first and the last of some: `fri-mon` goes over the weekend.
    Names(String),
}

fn one() -> i64 {
    1
}

/// What is wrong with a [`WindowSpec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowFault {
    /// No weekday.
    #[error("days: {value} is no weekday: write \"mon\", \"mon-fri\" or a number from 0 to 7 (0 and 7 are Sunday)")]
    Day {
        /// The entry as written.
        value: String,
    },
    /// A list without an entry.
    #[error("days: empty, the window would never open: leave it out for every day")]
    NoDay,
    /// No time of day.
    #[error("{field}: {value:?} is no time of day: write it as \"07:00\", and the end of the day as `to` \"24:00\"")]
    Time {
        /// `from` or `to`.
        field: &'static str,
        /// The entry as written.
        value: String,
    },
    /// A window that ends as it starts: nothing, or a whole day?
    #[error("to: {value:?} is also `from`: write a whole day as `from` \"00:00\" and `to` \"24:00\"")]
    NoLength {
        /// The entry as written.
        value: String,
    },
    /// None, or more than any pool has.
    #[error("nodes: {value} is not a number from 1 to 100")]
    Nodes {
        /// The entry as written.
        value: i64,
    },
    /// An unknown zone.
    #[error("zone: {value:?} is not an IANA zone such as Europe/Berlin")]
    Zone {
        /// The entry as written.
        value: String,
    },
}

/// Hours of the week in which a pool wants nodes.
///
/// On the nights on which the clocks are moved a time that is left out is the first instant after the gap, and a time
/// that happens twice is its first occurrence (field case 27). A window that lies in a gap does not open that day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmWindow {
    days: WeekdaySet,
    from: NaiveTime,
    /// Not after `from`: of the next day. Midnight is always that.
    to: NaiveTime,
    nodes: u32,
    zone: Tz,
}

/// From its first instant to its end, which is no longer part of it.
type Span = (Instant, Instant);

impl WarmWindow {
    /// Checks a window.
    ///
    /// # Errors
    /// Names the first field that is wrong, and what to write there.
    pub fn new(spec: WindowSpec, default_zone: Tz) -> Result<Self, WindowFault> {
        let (from, to) = (time("from", &spec.from)?, end_time(&spec.to)?);
        if from == to && (from != NaiveTime::MIN || spec.to != DAY_END) {
            return Err(WindowFault::NoLength { value: spec.to });
        }
        let nodes = u32::try_from(spec.nodes).ok().filter(|nodes| (1..=100).contains(nodes));
        let zone = match spec.zone {
            None => default_zone,
            Some(value) => value.parse().map_err(|_| WindowFault::Zone { value })?,
        };
        Ok(Self {
            days: spec.days.map_or(Ok(WeekdaySet::ALL), |days| weekdays(&days))?,
            from,
            to,
            nodes: nodes.ok_or(WindowFault::Nodes { value: spec.nodes })?,
            zone,
        })
    }

    /// The span of this window that holds the instant: its start, and its end, which is no longer in it.
    ///
    /// A span belongs to the weekday on which it starts, in the window's zone, whatever the day in UTC (field case 26).
    pub fn span_at(&self, at: Instant) -> Option<(Instant, Instant)> {
        self.spans(at, at).find(|(start, end)| *start <= at && at < *end)
    }

    /// Every span that touches these instants, in order; some beside them too.
    fn spans(&self, from: Instant, to: Instant) -> impl Iterator<Item = Span> {
        let [first, last] = [from, to].map(|at| at.with_timezone(&self.zone).date_naive());
        // One that started the day before; and the day after, for a clock that is put back over midnight.
        let first = first.pred_opt().unwrap_or(first);
        let last = last.succ_opt().unwrap_or(last);
        first.iter_days().take_while(move |date| *date <= last).filter_map(|date| self.on(date))
    }

    /// The span that starts on this date.
    fn on(&self, date: NaiveDate) -> Option<Span> {
        if !self.days.contains(date.weekday()) {
            return None;
        }
        let last = if self.to <= self.from { date.checked_add_days(Days::new(1))? } else { date };
        let start = local::first(self.zone, date.and_time(self.from))?;
        let end = local::first(self.zone, last.and_time(self.to))?;
        (start < end).then_some((start, end))
    }
}

/// What the windows of a pool want at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmWish {
    /// The most nodes that one of the windows wants.
    pub nodes: u32,
    /// The earliest of their starts; after now where a node is only being made ready.
    pub from: Instant,
    /// The latest of their ends.
    pub until: Instant,
}

/// A window comes round after a week: a longer lead would only make it its own forerunner.
const LONGEST_LEAD: TimeDelta = TimeDelta::days(7);

/// How far [`next_opening`] looks: two weeks, as one opening of a weekly window may lie in a gap.
const HORIZON: TimeDelta = TimeDelta::days(15);

/// What the windows want now. A window is in force from `lead` before its start, so that its nodes are ready when it
/// opens, up to its end, which is no longer in it. A lead below zero counts as none, one over a week as a week.
pub fn wanted(windows: &[WarmWindow], now: Instant, lead: TimeDelta) -> Option<WarmWish> {
    let soon = later(now, lead.clamp(TimeDelta::zero(), LONGEST_LEAD));
    let in_force = windows.iter().flat_map(|window| {
        let spans = window.spans(now, soon).filter(|(start, end)| *start <= soon && now < *end);
        spans.map(|(from, until)| WarmWish { nodes: window.nodes, from, until })
    });
    in_force.reduce(|one, other| WarmWish {
        nodes: one.nodes.max(other.nodes),
        from: one.from.min(other.from),
        until: one.until.max(other.until),
    })
}

/// When the next of the windows opens: the earliest start after now, whether another is open or not.
pub fn next_opening(windows: &[WarmWindow], now: Instant) -> Option<Instant> {
    let spans = windows.iter().flat_map(|window| window.spans(now, later(now, HORIZON)));
    spans.map(|(start, _)| start).filter(|start| now < *start).min()
}

fn later(now: Instant, by: TimeDelta) -> Instant {
    now.checked_add_signed(by).unwrap_or(now)
}

fn weekdays(days: &[DaySpec]) -> Result<WeekdaySet, WindowFault> {
    let mut set = WeekdaySet::EMPTY;
    for day in days {
        set = set.union(
            match day {
                DaySpec::Number(number) => cron_day(*number).map(WeekdaySet::single),
                DaySpec::Names(names) => named_days(names),
            }
            .ok_or_else(|| WindowFault::Day { value: day.to_string() })?,
        );
    }
    if set.is_empty() { Err(WindowFault::NoDay) } else { Ok(set) }
}

impl std::fmt::Display for DaySpec {
    /// As it is written in JSON.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Names(names) => write!(f, "{names:?}"),
        }
    }
}

fn cron_day(number: i64) -> Option<Weekday> {
    let number = u8::try_from(number).ok().filter(|number| *number <= 7)?;
    // chrono counts from Monday, as 0.
    Weekday::try_from((number + 6) % 7).ok()
}

fn named_days(names: &str) -> Option<WeekdaySet> {
    let (first, last) = names.split_once('-').unwrap_or((names, names));
    let first: Weekday = first.trim().parse().ok()?;
    let last: Weekday = last.trim().parse().ok()?;
    let count = last.days_since(first) + 1;
    Some(WeekdaySet::ALL.iter(first).take(count as usize).collect())
}

const DAY_END: &str = "24:00";

fn end_time(value: &str) -> Result<NaiveTime, WindowFault> {
    if value == DAY_END { Ok(NaiveTime::MIN) } else { time("to", value) }
}

/// Two digits each: `7:5` could be meant as 07:05 or 07:50.
fn time(field: &'static str, value: &str) -> Result<NaiveTime, WindowFault> {
    let plain = value.len() == 5 && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    let parsed = NaiveTime::parse_from_str(value, "%H:%M").ok().filter(|_| plain);
    parsed.ok_or_else(|| WindowFault::Time { field, value: value.to_owned() })
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
