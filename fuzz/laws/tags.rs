//! Laws of the tags that hold a node.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use reveille::domain::{TagHold, read_tags};

const KEY: &str = "reveille:keep-until";

/// A line for the zone, a line for the time it is, then a tag a line: `key=value`.
pub(crate) fn tags(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let zone: Tz = lines.next().and_then(|name| name.parse().ok()).unwrap_or(Tz::UTC);
    let now = lines.next().and_then(|time| time.parse().ok()).unwrap_or_else(noon);
    let tags: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once('=')).collect();
    let read = |tags: &[(&str, &str)]| read_tags(tags.iter().copied(), zone, now);
    let all = read(&tags);
    let reversed: Vec<_> = tags.iter().rev().copied().collect();
    assert_eq!(read(&reversed), all, "the order of the tags is no matter");
    let each: Vec<TagHold> = tags.iter().map(|tag| read(&[*tag])).collect();
    let one_keeps = each.iter().any(|hold| hold.keeps(now));
    assert_eq!(all.keeps(now), one_keeps, "one that keeps is enough: {each:?}");
    assert!(each.iter().filter_map(TagHold::until).all(|end| end <= now || all.until() >= Some(end)), "{each:?}");
    for ((key, value), hold) in tags.iter().zip(&each) {
        shows_little(hold);
        if key.trim().eq_ignore_ascii_case(KEY) {
            keeps_unless_it_says_so(value.trim(), hold, now);
        }
    }
}

fn noon() -> DateTime<Utc> {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

fn shows_little(hold: &TagHold) {
    if let TagHold::Unreadable { key, value } | TagHold::NearMiss { key, value } = hold {
        let is_plain = |text: &str| text.len() <= 60 && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        assert!(is_plain(key) && is_plain(value), "{hold:?}");
    }
}

/// A value that cannot be read keeps its node.
fn keeps_unless_it_says_so(value: &str, hold: &TagHold, now: DateTime<Utc>) {
    if !hold.keeps(now) {
        let is_no = ["FALSE", "NO", "0", "OFF", "NEVER"].contains(&value.to_ascii_uppercase().as_str());
        let is_over = hold.until().is_some_and(|end| end <= now);
        assert!(is_no || is_over, "{value:?} is read as {hold:?}");
    }
    if let Ok(end) = DateTime::parse_from_rfc3339(value) {
        // chrono also takes a minus sign that is not ASCII: kept as unreadable.
        assert!(*hold == TagHold::Until(end.to_utc()) || (hold.keeps(now) && !value.is_ascii()), "{value:?}: {hold:?}");
    }
}
