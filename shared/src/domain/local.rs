//! A local time as an instant, on the nights too on which the clocks are moved (field case 27).

use super::Instant;
use chrono::{LocalResult, NaiveDateTime, TimeZone};
use chrono_tz::{GapInfo, Tz};

/// The instant of this local time. Where it happens twice the first; where the clock is put forward over it the first
/// instant after the gap. Never earlier for a later local time. None only outside the calendar.
pub(crate) fn first(zone: Tz, local: NaiveDateTime) -> Option<Instant> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.to_utc()),
        LocalResult::None => gap_end(zone, local),
    }
}

/// The same, but where the local time happens twice the second.
pub(super) fn last(zone: Tz, local: NaiveDateTime) -> Option<Instant> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(_, at) => Some(at.to_utc()),
        LocalResult::None => gap_end(zone, local),
    }
}

fn gap_end(zone: Tz, local: NaiveDateTime) -> Option<Instant> {
    GapInfo::new(&local, &zone)?.end.map(|at| at.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn at(zone: &str, local: &str) -> [Option<String>; 2] {
        let zone = zone.parse().unwrap();
        let local = local.parse().unwrap();
        [first(zone, local), last(zone, local)].map(|at| at.map(|at| at.format("%FT%TZ").to_string()))
    }

    #[test]
    fn case_27_every_local_time_has_an_instant() {
        let rows = [
            ("a plain time", "Asia/Kolkata", "2026-11-30T02:30:00", "2026-11-29T21:00:00Z", None),
            ("left out", "America/New_York", "2027-03-14T02:30:00", "2027-03-14T07:00:00Z", None),
            ("the first left out", "America/New_York", "2027-03-14T02:00:00", "2027-03-14T07:00:00Z", None),
            ("the last left out", "America/New_York", "2027-03-14T02:59:59", "2027-03-14T07:00:00Z", None),
            ("left out, on no quarter", "Europe/Berlin", "2026-03-29T02:07:00", "2026-03-29T01:00:00Z", None),
            ("twice", "Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z", Some("2026-10-25T01:30:00Z")),
            ("no midnight", "America/Havana", "2026-03-08T00:00:00", "2026-03-08T05:00:00Z", None),
            (
                "two midnights",
                "America/Havana",
                "2026-11-01T00:00:00",
                "2026-11-01T04:00:00Z",
                Some("2026-11-01T05:00:00Z"),
            ),
            ("the hour before midnight twice", "America/Santiago", "2026-04-05T00:00:00", "2026-04-05T04:00:00Z", None),
            ("half an hour left out", "Australia/Lord_Howe", "2026-10-04T02:10:00", "2026-10-03T15:30:00Z", None),
            ("a day left out", "Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00Z", None),
        ];
        for (name, zone, local, once, again) in rows {
            assert_eq!(at(zone, local), [Some(once.to_owned()), Some(again.unwrap_or(once).to_owned())], "{name}");
        }
    }

    #[test]
    fn the_ends_of_the_calendar_do_not_make_it_panic() {
        for zone in chrono_tz::TZ_VARIANTS {
            for local in [NaiveDateTime::MIN, NaiveDateTime::MAX] {
                assert!(first(zone, local) <= last(zone, local), "{zone}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_later_local_time_is_never_earlier(
            zone in select(&chrono_tz::TZ_VARIANTS[..]), minute in 0_i64..70 * 525_600, more in 0_i64..3 * 1440,
        ) {
            let local = |minute: i64| chrono::DateTime::UNIX_EPOCH.naive_utc() + chrono::TimeDelta::minutes(minute);
            let [early, late] = [first(zone, local(minute)), first(zone, local(minute + more))];
            prop_assert!(early.is_some() && early <= late);
            prop_assert!(early <= last(zone, local(minute)));
        }
    }
}
