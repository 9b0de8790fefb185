//! Has this node been up for too long today?

use super::Reason;
use crate::domain::{Instant, local};
use chrono::{Days, NaiveDate, NaiveTime, TimeDelta};
use chrono_tz::Tz;

/// A day of the operator's zone. It has 23, 24 or 25 hours, or others where a zone was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalDay {
    /// Its date in the zone.
    pub date: NaiveDate,
    /// Its first instant.
    pub from: Instant,
    /// The first instant of the next day.
    pub to: Instant,
}

impl LocalDay {
    /// The day that holds this instant.
    pub fn of(zone: Tz, now: Instant) -> LocalDay {
        Self::on(zone, now.with_timezone(&zone).date_naive())
    }

    /// The day of a date.
    pub fn on(zone: Tz, date: NaiveDate) -> LocalDay {
        let next = date.checked_add_days(Days::new(1)).unwrap_or(date);
        LocalDay { date, from: first_instant(zone, date), to: first_instant(zone, next) }
    }

    /// The day before.
    pub fn before(self, zone: Tz) -> LocalDay {
        Self::on(zone, self.date.checked_sub_days(Days::new(1)).unwrap_or(self.date))
    }
}

/// Midnight; where it happens twice the first; where the clock is put forward over it the first instant after the gap.
fn first_instant(zone: Tz, date: NaiveDate) -> Instant {
    let midnight = date.and_time(NaiveTime::MIN);
    local::first(zone, midnight).unwrap_or_else(|| midnight.and_utc())
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UptimeAction {
    /// Nothing.
    Nothing,
    /// A person is told, once a node and day.
    Tell,
}

/// The answer for one node and day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UptimeDecision {
    /// What to do.
    pub action: UptimeAction,
    /// Why.
    pub reason: Reason,
    /// Seconds of running in the day, the larger of the two sources.
    pub seconds: i64,
}

/// The running seconds of a day by the two sources, which know nothing of each other: the ledger's launches, and EC2's status
/// checks, one sample a minute while running. None where a source could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// From the launches, with the node's present launch counted on to now.
    pub launches: Option<i64>,
    /// Whether every launch could be read: part of them may say "over", never "within".
    pub all_launches: bool,
    /// From the samples.
    pub samples: Option<i64>,
}

/// Decides for one node and day. Falls to tell: the larger source counts, and a node that neither knows is told.
pub fn decide(running: Running, limit: TimeDelta) -> UptimeDecision {
    let seconds = running.launches.max(running.samples).unwrap_or(0);
    if seconds > limit.num_seconds() {
        return UptimeDecision { action: UptimeAction::Tell, reason: Reason::UptimeOver, seconds };
    }
    if running.samples.is_none() && !running.all_launches {
        return UptimeDecision { action: UptimeAction::Tell, reason: Reason::UptimeUnknown, seconds };
    }
    UptimeDecision { action: UptimeAction::Nothing, reason: Reason::UptimeWithin, seconds }
}
