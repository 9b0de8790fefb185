//! Holds: a person keeps a node up, by a record in the ledger or by a tag on the node.

use super::{Instant, local};
use chrono::{Days, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

/// An operator's hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// Its end, which is no longer held: a hold without one would be forgotten.
    pub until: Instant,
    /// Why and by whom, for the next person.
    pub note: String,
    /// When it was made.
    pub since: Instant,
}

impl Hold {
    /// Whether it keeps its nodes at this instant.
    pub fn keeps(&self, now: Instant) -> bool {
        now < self.until
    }
}

/// The tag that holds a node, with its end: `2026-11-30T18:00+09:00`. AWS keeps the case of a key, people do not.
const KEY: &str = "reveille:keep-until";

/// What the tags of a node say of a hold.
///
/// Falls to keep: a tag that a person may have meant as a hold keeps its node, and somebody is told (field case 25).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TagHold {
    /// No hold, or one that says no.
    None,
    /// Held up to this instant; it may have passed.
    Until(Instant),
    /// Held by a plain yes. A person is told: a hold needs an end.
    NoEnd,
    /// Our tag with a value that cannot be read: kept, and a person is told.
    Unreadable {
        /// The key, at most 60 printable ASCII characters.
        key: String,
        /// The value, likewise.
        value: String,
    },
    /// A tag that is ours but for its spelling: kept, and a person is told.
    NearMiss {
        /// The key, at most 60 printable ASCII characters.
        key: String,
        /// The value, likewise.
        value: String,
    },
}

impl TagHold {
    /// Whether it keeps its node at this instant. A node is free from the end of its hold on.
    pub fn keeps(&self, now: Instant) -> bool {
        match self {
            Self::None => false,
            Self::Until(until) => now < *until,
            Self::NoEnd | Self::Unreadable { .. } | Self::NearMiss { .. } => true,
        }
    }

    /// Its end, if it has a readable one; it may have passed.
    pub fn until(&self) -> Option<Instant> {
        match self {
            Self::Until(until) => Some(*until),
            Self::None | Self::NoEnd | Self::Unreadable { .. } | Self::NearMiss { .. } => None,
        }
    }

    /// The highest counts where several tags speak; the texts only make the order of the tags no matter.
    fn rank(&self, now: Instant) -> (u8, Option<Instant>, &str, &str) {
        match self {
            Self::Until(until) if now < *until => (5, Some(*until), "", ""),
            Self::NoEnd => (4, None, "", ""),
            Self::Unreadable { key, value } => (3, None, key, value),
            Self::NearMiss { key, value } => (2, None, key, value),
            Self::Until(until) => (1, Some(*until), "", ""),
            Self::None => (0, None, "", ""),
        }
    }
}

/// Reads the hold among the tags of a node; `zone` is that of an end without one.
///
/// Keys are compared without case and blanks, values likewise. An end may be written as
///
/// * `2026-11-30T18:00Z`, `2026-11-30T18:00:00+09:00`: seconds may be absent, a blank may stand for the `T`;
/// * `2026-11-30T18:00`: in `zone`;
/// * `2026-11-30 18:00 Asia/Seoul`: in that zone;
/// * `2026-11-30`: up to the end of that day.
///
/// Where a local time happens twice the second is meant, so that no hold ends early. `true`, `yes`, `1`, `on` and
/// `always` hold without an end, `false`, `no`, `0`, `off` and `never` do not hold; anything else is unreadable.
///
/// Of several tags the first of these counts: an end to come (the latest), a yes, an unreadable value, a near miss, an
/// end that has passed, a no. `now` tells an end to come from one that has passed.
pub fn read_tags<'a>(tags: impl IntoIterator<Item = (&'a str, &'a str)>, zone: Tz, now: Instant) -> TagHold {
    let holds = tags.into_iter().filter_map(|(key, value)| read_tag(key.trim(), value.trim(), zone, now));
    holds.max_by(|one, other| one.rank(now).cmp(&other.rank(now))).unwrap_or(TagHold::None)
}

fn read_tag(key: &str, value: &str, zone: Tz, now: Instant) -> Option<TagHold> {
    if key.eq_ignore_ascii_case(KEY) {
        return Some(match Said::of(value, zone) {
            Said::Yes => TagHold::NoEnd,
            Said::No => TagHold::None,
            Said::Until(until) => TagHold::Until(until),
            Said::Unknown => TagHold::Unreadable { key: shown(key), value: shown(value) },
        });
    }
    let may_hold = is_near(key)
        && match Said::of(value, zone) {
            Said::Yes | Said::Unknown => true,
            Said::No => false,
            Said::Until(until) => now < until,
        };
    may_hold.then(|| TagHold::NearMiss { key: shown(key), value: shown(value) })
}

/// What people write for [`KEY`], without case and punctuation.
const NEAR_KEYS: [&str; 6] =
    ["keepuntil", "keepawake", "keepawakeuntil", "reveillekeep", "reveillekeepawake", "reveillekeepawakeuntil"];

/// Wrong, absent, added or swapped letters; more would take in tags of others.
const MOST_TYPOS: usize = 2;

fn is_near(key: &str) -> bool {
    let plain: String = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    NEAR_KEYS.contains(&plain.as_str()) || strsim::osa_distance(&plain, "reveillekeepuntil") <= MOST_TYPOS
}

/// For mails and logs: a tag may hold anything in 256 characters.
fn shown(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}

/// What a value says.
enum Said {
    Yes,
    No,
    Until(Instant),
    Unknown,
}

impl Said {
    fn of(value: &str, zone: Tz) -> Said {
        let value = value.to_ascii_uppercase();
        match value.as_str() {
            "TRUE" | "YES" | "1" | "ON" | "ALWAYS" => Said::Yes,
            "FALSE" | "NO" | "0" | "OFF" | "NEVER" => Said::No,
            other => end(other, zone).map_or(Said::Unknown, Said::Until),
        }
    }
}

/// Reads an end in capitals: date, time and place, of which the last two may be absent.
fn end(value: &str, zone: Tz) -> Option<Instant> {
    let (date, rest) = value.split_at_checked("2026-11-30".len())?;
    // chrono also reads `26-11-30`, as a year long over: such a hold would be lost without a word.
    let date = (shape(date) == "0000-00-00").then(|| NaiveDate::parse_from_str(date, "%Y-%m-%d").ok())??;
    let day_end = date.checked_add_days(Days::new(1))?.and_time(NaiveTime::MIN);
    let (local, place) = match rest.chars().next() {
        None => (day_end, ""),
        Some(' ') if !rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) => (day_end, rest),
        Some('T' | ' ') => {
            let rest = rest.strip_prefix(['T', ' '])?.trim_start();
            let clock_length = rest.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(rest.len());
            let (clock, place) = rest.split_at(clock_length);
            (date.and_time(time(clock)?), place)
        }
        Some(_) => return None,
    };
    instant(local, place.trim_start(), zone)
}

fn time(clock: &str) -> Option<NaiveTime> {
    let format = match shape(clock).as_str() {
        "00:00" => "%H:%M",
        "00:00:00" => "%H:%M:%S",
        // JavaScript writes thousandths.
        longer if longer.starts_with("00:00:00.0") => "%H:%M:%S%.f",
        _ => return None,
    };
    NaiveTime::parse_from_str(clock, format).ok()
}

fn instant(local: NaiveDateTime, place: &str, zone: Tz) -> Option<Instant> {
    match shape(place).as_str() {
        "" => local::last(zone, local),
        "Z" => Some(local.and_utc()),
        "+00:00" | "-00:00" | "+0000" | "-0000" => {
            let offset: FixedOffset = place.parse().ok()?;
            Some(local.and_local_timezone(offset).single()?.to_utc())
        }
        _ => local::last(zone_called(place)?, local),
    }
}

fn zone_called(name: &str) -> Option<Tz> {
    chrono_tz::TZ_VARIANTS.into_iter().find(|zone| zone.name().eq_ignore_ascii_case(name))
}

/// The text with every digit as a zero.
fn shape(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

#[cfg(test)]
#[path = "hold_tests.rs"]
mod tests;
