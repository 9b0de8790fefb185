//! Plans that no rule of the functions decides: a node that always runs, one that runs by the clock, and the bounds of who knows
//! the future. Each has room for every call.

use super::Seconds;
use super::events::{Event, Outside};
use super::tally::Tally;
use chrono::{DateTime, Days, NaiveTime, TimeZone as _, Timelike as _};
use chrono_tz::Tz;
use reveille::domain::{Instant, WarmWindow, next_opening};

fn instant(at: i64) -> Instant {
    Instant::from_timestamp(at, 0).unwrap_or_default()
}

/// Which hours of the day a node runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Hours {
    /// So many hours in a row, from the hour on at which they would have held the most of the calls until that midnight; from
    /// 07:00 on until there is a past.
    Learnt(u32, Tz),
    /// These.
    Given(WarmWindow),
}

/// A node that runs by the clock. A call outside its hours is not served; one that began within them is not cut.
#[derive(Debug, Clone)]
pub(super) struct ByTheClock {
    hours: Hours,
    boot: Seconds,
    /// How many calls came in each hour of the day.
    seen: [u64; 24],
    /// The midnight up to which spans are known, or the end of the last given one.
    known_to: i64,
    /// The span that is open or was last, stretched by its calls; it ends at the second.
    span: Option<(i64, i64)>,
    /// The one after that.
    next: Option<(i64, i64)>,
    /// The end of the last call.
    busy_to: i64,
}

const FIRST_HOUR: u32 = 7;

impl ByTheClock {
    pub(super) fn new(hours: Hours, boot: Seconds, from: i64) -> Self {
        Self { hours, boot, seen: [0; 24], known_to: from, span: None, next: None, busy_to: from }
    }

    pub(super) fn take(&mut self, tally: &mut Tally, event: Event) {
        let Outside::Call { lasts } = event.what else { return };
        self.roll(tally, event.at);
        match self.span.filter(|(open, close)| (*open..*close).contains(&event.at)) {
            Some(_) => {
                tally.served(event.at, 0, lasts);
                self.busy_to = self.busy_to.max(event.at + lasts);
            }
            None => tally.gave_up(event.at),
        }
        if let Hours::Learnt(_, zone) = self.hours {
            self.seen[instant(event.at).with_timezone(&zone).hour() as usize] += 1;
        }
    }

    /// Opens and closes what lies before this instant.
    fn roll(&mut self, tally: &mut Tally, at: i64) {
        loop {
            if self.next.is_none() {
                self.next = self.span_after(tally.to());
            }
            let Some(next) = self.next.filter(|(open, _)| *open <= at) else { return };
            match &mut self.span {
                // Without a pause between them they are one.
                Some((_, close)) if next.0 - self.boot <= (*close).max(self.busy_to) => *close = (*close).max(next.1),
                Some(_) => {
                    self.close(tally);
                    self.span = Some(next);
                }
                None => self.span = Some(next),
            }
            self.next = None;
        }
    }

    fn close(&mut self, tally: &mut Tally) {
        if let Some((open, close)) = self.span.take() {
            tally.starts += 1;
            tally.ran(open - self.boot, close.max(self.busy_to));
        }
    }

    pub(super) fn finish(&mut self, tally: &mut Tally) {
        self.roll(tally, tally.to());
        self.close(tally);
    }

    /// The next span that is not known yet; none after `to`.
    fn span_after(&mut self, to: i64) -> Option<(i64, i64)> {
        if self.known_to >= to {
            return None;
        }
        let span = match &self.hours {
            Hours::Learnt(hours, zone) => {
                let (midnight, after) = (self.known_to, next_midnight(self.known_to, *zone));
                self.known_to = after;
                let open = midnight + i64::from(best_start(&self.seen, *hours)) * 3600;
                Some((open, open + i64::from(*hours) * 3600))
            }
            Hours::Given(window) => {
                let at = instant(self.known_to);
                let open = window.span_at(at).or_else(|| {
                    let opens = next_opening(std::slice::from_ref(window), at)?;
                    window.span_at(opens)
                });
                open.map(|(open, close)| (open.timestamp(), close.timestamp()))
            }
        };
        if let (Hours::Given(_), Some((_, close))) = (&self.hours, span) {
            self.known_to = close;
        }
        span.filter(|(open, _)| *open < to)
    }
}

fn next_midnight(at: i64, zone: Tz) -> i64 {
    let date = instant(at).with_timezone(&zone).date_naive();
    let next = date.checked_add_days(Days::new(1)).unwrap_or(date).and_time(NaiveTime::MIN);
    // Where midnight does not exist the day begins an hour later.
    let local = zone.from_local_datetime(&next).earliest();
    local.map_or(at + 86_400, |local: DateTime<Tz>| local.timestamp()).max(at + 3600)
}

/// The hour from which on so many hours hold the most calls; the first of equals from 07:00 on.
fn best_start(seen: &[u64; 24], hours: u32) -> u32 {
    let held = |start: u32| -> u64 { (start..start + hours).map(|hour| seen[(hour % 24) as usize]).sum() };
    let starts = (FIRST_HOUR..FIRST_HOUR + 24).map(|start| start % 24);
    starts.rev().max_by_key(|start| held(*start)).unwrap_or(FIRST_HOUR)
}

/// Who knows every call to come.
#[derive(Debug, Clone)]
pub(super) struct Clairvoyant {
    boot: Seconds,
    /// Starts a boot ahead of a call, so that nobody waits.
    ahead: bool,
    /// Stays up over gaps that are no longer, and is off over all others.
    keeps: Seconds,
    run: Option<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    launched: i64,
    ready: i64,
    ends: i64,
}

impl Clairvoyant {
    /// With a signal of each call. Over a gap no longer than a boot it costs less to stay.
    pub(super) fn ahead(boot: Seconds) -> Self {
        Self { boot, ahead: true, keeps: boot, run: None }
    }

    /// Without one: a gap that is slept through makes the next call cold, and of all sets of so many gaps the longest cost the
    /// most to keep.
    pub(super) fn keeps(boot: Seconds, keeps: Seconds) -> Self {
        Self { boot, ahead: false, keeps, run: None }
    }

    pub(super) fn take(&mut self, tally: &mut Tally, event: Event) {
        let Outside::Call { lasts } = event.what else { return };
        let at = event.at;
        if let Some(run) = &mut self.run
            && at - run.ends <= self.keeps
        {
            let waits = (run.ready - at).max(0);
            tally.served(at, waits, lasts);
            run.ends = run.ends.max(at + waits + lasts);
            return;
        }
        self.finish(tally);
        let ready = if self.ahead { at } else { at + self.boot };
        tally.starts += 1;
        tally.served(at, ready - at, lasts);
        self.run = Some(Run { launched: ready - self.boot, ready, ends: ready + lasts });
    }

    pub(super) fn finish(&mut self, tally: &mut Tally) {
        if let Some(run) = self.run.take() {
            tally.ran(run.launched, run.ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille::domain::WindowSpec;

    const DAY: i64 = 86_400;
    /// A midnight.
    const FROM: i64 = 1_795_996_800;

    fn tally(days: i64) -> Tally {
        Tally::new(FROM, FROM + days * DAY, 55, 90)
    }

    fn call(hour: i64, lasts: i64) -> Event {
        Event { at: FROM + hour * 3600, what: Outside::Call { lasts } }
    }

    fn by_the_clock(hours: Hours, days: i64, calls: &[Event]) -> Tally {
        let (mut tally, mut plan) = (tally(days), ByTheClock::new(hours, 55, FROM));
        calls.iter().for_each(|call| plan.take(&mut tally, *call));
        plan.finish(&mut tally);
        tally
    }

    #[test]
    fn the_best_hours_are_those_of_the_past_only() {
        // At two in the night, each day: known from the second midnight on, and the span from 11:00 on holds the third.
        let calls: Vec<Event> = (0..4).map(|day| call(day * 24 + 2, 60)).collect();
        let tally = by_the_clock(Hours::Learnt(16, Tz::UTC), 4, &calls);
        assert_eq!((tally.calls, tally.unserved), (4, 2));
        // The last span ends three hours after what counts, and each has its boot; 11:00 to 03:00 leaves a pause.
        assert_eq!(tally.node_seconds, (4 * 16 - 3) * 3600 + 4 * 55);
    }

    #[test]
    fn of_equal_hours_the_morning_s_come_first() {
        assert_eq!(best_start(&[0; 24], 16), 7);
        let mut night = [0; 24];
        night[3] = 5;
        assert_eq!(best_start(&night, 4), 0, "0 to 4 is the first from 07:00 on that holds it");
    }

    #[test]
    fn a_given_window_serves_what_begins_within_it_and_cuts_no_call() {
        let spec = WindowSpec { days: None, from: "09:00".into(), to: "17:00".into(), nodes: 1, zone: None };
        let window = WarmWindow::new(spec, Tz::UTC).unwrap();
        let tally = by_the_clock(Hours::Given(window), 2, &[call(8, 60), call(9, 60), call(16, 7200), call(20, 60)]);
        assert_eq!((tally.calls, tally.unserved, tally.starts), (4, 2, 2));
        assert_eq!(tally.node_seconds, 2 * (8 * 3600 + 55) + 3600, "the long call holds it for an hour more");
    }

    #[test]
    fn who_knows_the_future_pays_for_boots_and_calls_only() {
        let (mut tally, mut plan) = (tally(1), Clairvoyant::ahead(55));
        [call(1, 300), call(2, 300)].into_iter().for_each(|call| plan.take(&mut tally, call));
        plan.take(&mut tally, Event { at: FROM + 7200 + 300 + 55, what: Outside::Call { lasts: 10 } });
        plan.finish(&mut tally);
        assert_eq!((tally.node_seconds, tally.starts, tally.cold), (355 + 355 + 65, 2, 0));
    }

    #[test]
    fn without_a_signal_a_gap_is_kept_or_makes_a_cold_call() {
        let calls = [call(1, 300), call(2, 300), call(5, 300)];
        let of = |keeps| {
            let (mut tally, mut plan) = (tally(1), Clairvoyant::keeps(55, keeps));
            calls.into_iter().for_each(|call| plan.take(&mut tally, call));
            plan.finish(&mut tally);
            (tally.node_seconds, tally.cold)
        };
        assert_eq!(of(0), (3 * 355, 3));
        assert_eq!(of(3600), (3600 + 300 + 355, 2));
    }
}
