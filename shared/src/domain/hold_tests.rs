//! Every form of a hold's tag, and laws over any tags.

use super::*;
use proptest::prelude::*;
use proptest::sample::select;

const SEOUL: Tz = Tz::Asia__Seoul;

fn utc(text: &str) -> Instant {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn now() -> Instant {
    utc("2026-11-30T12:00:00Z")
}

fn read(tags: &[(&str, &str)]) -> TagHold {
    read_tags(tags.iter().copied(), SEOUL, now())
}

fn until(text: &str) -> TagHold {
    TagHold::Until(utc(text))
}

fn unreadable(key: &str, value: &str) -> TagHold {
    TagHold::Unreadable { key: key.to_owned(), value: value.to_owned() }
}

fn near_miss(key: &str, value: &str) -> TagHold {
    TagHold::NearMiss { key: key.to_owned(), value: value.to_owned() }
}

#[test]
fn case_25_keys_and_values_in_any_case_and_an_unreadable_value_keeps() {
    let rows = [
        (("Reveille:Keep-Until", "TRUE"), TagHold::NoEnd),
        (("reveille:keep-until", "True "), TagHold::NoEnd),
        (("reveille:keep_until", "yes"), near_miss("reveille:keep_until", "yes")),
        (("reveille:keep-until", "until tomorrow"), unreadable("reveille:keep-until", "until tomorrow")),
    ];
    for (tag, expected) in rows {
        assert_eq!(read(&[tag]), expected, "{tag:?}");
        assert!(expected.keeps(now()), "{tag:?}");
    }
}

#[test]
fn case_25_every_form_of_an_end() {
    let rows = [
        ("2026-11-30T18:00Z", "2026-11-30T18:00:00Z"),
        ("2026-11-30t18:00:00z", "2026-11-30T18:00:00Z"),
        ("2026-11-30 18:00Z", "2026-11-30T18:00:00Z"),
        ("2026-11-30T18:00:00.000Z", "2026-11-30T18:00:00Z"),
        ("2026-11-30T18:00+09:00", "2026-11-30T09:00:00Z"),
        ("2026-11-30T18:00:30-05:30", "2026-11-30T23:30:30Z"),
        ("2026-11-30T18:00:00+0900", "2026-11-30T09:00:00Z"),
        ("2026-11-30 18:00 +09:00", "2026-11-30T09:00:00Z"),
        ("2026-11-30T18:00", "2026-11-30T09:00:00Z"),
        ("2026-11-30T18:00:59", "2026-11-30T09:00:59Z"),
        ("2026-11-30 18:00", "2026-11-30T09:00:00Z"),
        (" 2026-11-30  18:00:00 ", "2026-11-30T09:00:00Z"),
        ("2026-11-30 18:00 Europe/Berlin", "2026-11-30T17:00:00Z"),
        ("2026-11-30T18:00:00 asia/kolkata", "2026-11-30T12:30:00Z"),
        ("2026-11-30 18:00 UTC", "2026-11-30T18:00:00Z"),
        ("2026-11-30", "2026-11-30T15:00:00Z"),
        ("2026-11-30 America/New_York", "2026-12-01T05:00:00Z"),
        ("2028-02-29", "2028-02-29T15:00:00Z"),
        ("9999-12-31", "9999-12-31T15:00:00Z"),
    ];
    for (value, end) in rows {
        assert_eq!(read(&[("reveille:keep-until", value)]), until(end), "{value:?}");
    }
}

#[test]
fn case_25_yes_no_and_neither() {
    for value in ["true", "yes", "1", "on", "always", "TRUE", "Yes", " On\t"] {
        assert_eq!(read(&[("reveille:keep-until", value)]), TagHold::NoEnd, "{value:?}");
    }
    for value in ["false", "no", "0", "off", "never", "FALSE", "Never", " No "] {
        assert_eq!(read(&[("reveille:keep-until", value)]), TagHold::None, "{value:?}");
    }
    #[rustfmt::skip]
    let unread = [
        "", "?", "tomorrow", "18:00", "30.11.2026", "11/30/2026", "30-11-2026", "26-11-30", "2026-1-1", "20261130",
        "2026-11-31", "2026-13-01", "2026-02-29", "2026-11-30T", "2026-11-30Z", "2026-11-30T25:00", "2026-11-30T18:60",
        "2026-11-30T18", "2026-11-30T18:0", "2026-11-30T1800", "2026-11-3018:00", "2026-11-30-18:00", "2026-11-30T18:00.5",
        "2026-11-30T18:00:00.", "2026-11-30T18:00:00.0.0", "2026-11-30T18:00:00.Z", "2026-11-30T18:00+9",
        "2026-11-30T18:00+99:00", "2026-11-30T18:00+09:60", "2026-11-30T18:00 KST", "2026-11-30 18:00 Seoul",
        "2026-11-30 18:00 Asia/Seoul please", "2026-11-30T18:00+09:00 Asia/Seoul", "2026-11-30 or later", "1795975200",
        "+2026-11-30", "2026\u{2011}11-30", "２０２６-11-30", "yes!", "not", "2",
    ];
    for value in unread {
        let hold = read(&[("reveille:keep-until", value)]);
        assert!(matches!(hold, TagHold::Unreadable { .. }), "{value:?}: {hold:?}");
        assert!(hold.keeps(now()) && hold.until().is_none(), "{value:?}");
    }
}

#[test]
fn case_27_a_hold_does_not_end_early_where_clocks_are_moved() {
    let rows = [
        ("left out", "2027-03-14 02:30 America/New_York", "2027-03-14T07:00:00Z"),
        ("twice: the second", "2026-10-25 02:30 Europe/Berlin", "2026-10-25T01:30:00Z"),
        ("said by its offset: the first", "2026-10-25T02:30+02:00", "2026-10-25T00:30:00Z"),
        ("a day of 25 hours", "2026-10-25 Europe/Berlin", "2026-10-25T23:00:00Z"),
        ("the next day has no midnight", "2026-03-07 America/Havana", "2026-03-08T05:00:00Z"),
        ("the next day has two midnights", "2026-10-31 America/Havana", "2026-11-01T05:00:00Z"),
        ("half an hour twice", "2026-04-05 01:45 Australia/Lord_Howe", "2026-04-04T15:15:00Z"),
        ("a day left out", "2011-12-30 12:00 Pacific/Apia", "2011-12-30T10:00:00Z"),
    ];
    for (name, value, end) in rows {
        assert_eq!(read(&[("reveille:keep-until", value)]), until(end), "{name}");
    }
    let hold = read_tags([("reveille:keep-until", "2026-10-25 02:30")], Tz::Europe__Berlin, now());
    assert_eq!(hold, until("2026-10-25T01:30:00Z"), "twice, in the configured zone");
}

#[test]
fn a_hold_keeps_up_to_its_end() {
    let end = "2026-11-30T12:00:00Z";
    let hold = read(&[("reveille:keep-until", end)]);
    assert_eq!((hold.until(), &hold), (Some(utc(end)), &until(end)), "an end that has passed is still read");
    assert!(hold.keeps(utc("2026-11-30T11:59:59Z")) && !hold.keeps(utc(end)));
    assert!(!TagHold::None.keeps(now()) && TagHold::NoEnd.keeps(now()));
}

#[test]
fn case_25_a_misspelt_key_is_told_and_keeps() {
    #[rustfmt::skip]
    let near = [
        "reveille:keepuntil", "Reveille_Keep_Until", "keep-until", "reveille:keep_until", "keep-awake", "KeepAwake",
        "keep_awake", "keepawake", "reveille:keep", "reveille:keep-awake", "keep-awake-until", "REVEILLE KEEP UNTIL",
        "reveille/keep-until", "reveille::keep-until", "reveille:keep-until:", "reveille: keep-until", "reveille:keep–until",
        "reveile:keep-until", "reveille:kepe-utnil", "reveille:keep-untill", "reveillé:keep-untl", "revelle:keep-util",
    ];
    for key in near {
        let hold = read(&[(key, "2026-12-24")]);
        assert!(matches!(hold, TagHold::NearMiss { .. }), "{key}: {hold:?}");
        assert!(hold.keeps(now()), "{key}");
    }
}

#[test]
fn case_25_tags_of_others_are_no_near_misses() {
    #[rustfmt::skip]
    let others = [
        "reveille:pool", "Name", "keep-warm", "KeepAliveInterval", "aws:autoscaling:groupName", "aws:keep-until", "keep",
        "until", "", "awake", "Reveille", "reveille:note", "reveille:until", "acme:keep-until", "retain-until", "housekeeping",
        "keep-alive", "reveille:keep-pool", "revel:keep-util",
    ];
    for key in others {
        assert_eq!(read(&[(key, "true")]), TagHold::None, "{key}");
    }
}

#[test]
fn a_misspelt_key_is_passed_over_where_it_holds_nothing() {
    for value in ["false", "No", "0", "off", "never", "2026-11-29", "2026-11-30T12:00:00Z"] {
        assert_eq!(read(&[("keep-awake", value)]), TagHold::None, "{value}");
    }
    for value in ["", "true", "maybe", "2026-11-30T12:00:01Z"] {
        assert_eq!(read(&[("keep-awake", value)]), near_miss("keep-awake", value), "{value}");
    }
}

#[test]
fn of_several_tags_the_one_that_keeps_longest_counts() {
    // From the strongest to the weakest; AWS takes keys that differ in case only as different keys.
    let tags = [
        (("REVEILLE:keep-until", "2026-12-24"), until("2026-12-24T15:00:00Z")),
        (("reveille:KEEP-until", "2026-12-01"), until("2026-12-01T15:00:00Z")),
        (("reveille:keep-UNTIL", "true"), TagHold::NoEnd),
        (("Reveille:keep-until", "soon"), unreadable("Reveille:keep-until", "soon")),
        (("keep-awake", "2027-01-01"), near_miss("keep-awake", "2027-01-01")),
        (("reveille:keeP-until", "2026-11-30T12:00:00Z"), until("2026-11-30T12:00:00Z")),
        (("reveille:Keep-until", "2026-11-29"), until("2026-11-29T15:00:00Z")),
        (("reveille:keep-until", "2026-11-28"), until("2026-11-28T15:00:00Z")),
        (("reveille:keep-Until", "no"), TagHold::None),
        (("Name", "gpu-1"), TagHold::None),
    ];
    for from in 0..tags.len() {
        let mut some: Vec<(&str, &str)> = tags[from..].iter().map(|(tag, _)| *tag).collect();
        assert_eq!(read(&some), tags[from].1, "{some:?}");
        some.reverse();
        assert_eq!(read(&some), tags[from].1, "{some:?}");
    }
    assert_eq!(read(&[]), TagHold::None);
}

#[test]
fn text_of_tags_is_cut_to_sixty_printable_characters() {
    let value = format!("bis Weihnachten\nfür alle{}", "!".repeat(200));
    let shown = format!("bis Weihnachten?f?r alle{}", "!".repeat(36));
    assert_eq!(read(&[("reveille:keep-until", &value)]), unreadable("reveille:keep-until", &shown));
    let key = format!("keep{}awake", "-".repeat(100));
    assert_eq!(read(&[(&key, "yes")]), near_miss(&key[..60], "yes"));
}

#[test]
fn a_record_without_an_end_or_a_note_is_no_hold() {
    let json = r#"{"until":"2026-11-30T18:00:00Z","note":"load test, Kim","since":"2026-11-30T12:00:00Z"}"#;
    let hold: Hold = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&hold).unwrap(), json);
    assert!(hold.keeps(utc("2026-11-30T17:59:59Z")) && !hold.keeps(utc("2026-11-30T18:00:00Z")));
    let rows = [
        (r#"{"note":"load test","since":"2026-11-30T12:00:00Z"}"#, "missing field `until`"),
        (r#"{"until":null,"note":"load test","since":"2026-11-30T12:00:00Z"}"#, "null"),
        (r#"{"until":"2026-11-30T18:00:00Z","since":"2026-11-30T12:00:00Z"}"#, "missing field `note`"),
        (r#"{"until":"2026-11-30T18:00:00Z","note":null,"since":"2026-11-30T12:00:00Z"}"#, "null"),
        (r#"{"until":"2026-11-30T18:00:00Z","note":"load test"}"#, "missing field `since`"),
    ];
    for (json, expected) in rows {
        let error = serde_json::from_str::<Hold>(json).expect_err(json).to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

/// Text near the forms that are read, and any other.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        r"[0-9]{1,5}-[0-9]{1,2}-[0-9]{1,2}([Tt ]{0,2}[0-9]{1,2}:[0-9]{1,2}(:[0-9]{2}(\.[0-9]{0,12})?)?)? ?(Z|[+-][0-9]{2}:?[0-9]{2}|[A-Za-z]{3}|Asia/Seoul)?",
        r"[0-9:. TZ+/a-z-]{0,30}",
        select(vec!["true", "no", "NEVER", "2026-12-24", "2026-11-01T00:00Z", ""]).prop_map(str::to_owned),
        ".{0,80}",
    ]
}

fn any_key() -> impl Strategy<Value = String> {
    let ours =
        vec!["reveille:keep-until", "Reveille:Keep-Until", "keep-awake", "reveille:keep", "revelle:keep-until", "Name"];
    prop_oneof![4 => select(ours).prop_map(str::to_owned), 1 => ".{0,30}"]
}

proptest! {
    #[test]
    fn no_value_makes_it_panic_and_an_unreadable_one_keeps(value in any_value(), zone in select(&chrono_tz::TZ_VARIANTS[..])) {
        match read_tags([("reveille:keep-until", value.as_str())], zone, now()) {
            TagHold::None => {
                let said = value.trim().to_ascii_lowercase();
                prop_assert!(["false", "no", "0", "off", "never"].contains(&said.as_str()), "{value:?} is no clear no");
            }
            TagHold::Until(_) => {
                let date = value.trim().get(..10).unwrap();
                prop_assert!(NaiveDate::parse_from_str(date, "%Y-%m-%d").is_ok(), "{value:?} begins with no date");
            }
            hold @ (TagHold::NoEnd | TagHold::Unreadable { .. }) => prop_assert!(hold.keeps(now()), "{value:?}"),
            TagHold::NearMiss { .. } => prop_assert!(false, "the key is exact"),
        }
    }

    #[test]
    fn any_instant_that_is_written_is_read(second in 0_i64..4_102_444_800, zone in select(&chrono_tz::TZ_VARIANTS[..])) {
        let end = chrono::DateTime::from_timestamp(second, 0).unwrap();
        for text in [end.to_rfc3339(), end.format("%F %TZ").to_string(), end.format("%FT%T+0000").to_string()] {
            prop_assert_eq!(read_tags([("reveille:keep-until", text.as_str())], zone, now()), TagHold::Until(end));
        }
        let local = end.with_timezone(&zone).format("%F %T").to_string();
        let named = format!("{local} {}", zone.name());
        let hold = read_tags([("reveille:keep-until", local.as_str())], zone, now());
        prop_assert_eq!(&hold, &read_tags([("reveille:keep-until", named.as_str())], Tz::UTC, now()));
        prop_assert!(hold.until().is_some_and(|until| end <= until), "{named} ends early");
    }

    #[test]
    fn tags_count_in_any_order_and_one_more_never_frees_a_node(
        tags in proptest::collection::vec((any_key(), any_value()), 0..6), more in (any_key(), any_value()),
    ) {
        let all = || tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let hold = read_tags(all(), SEOUL, now());
        prop_assert_eq!(&hold, &read_tags(all().rev(), SEOUL, now()));
        let with_more = read_tags(all().chain([(more.0.as_str(), more.1.as_str())]), SEOUL, now());
        prop_assert!(!hold.keeps(now()) || with_more.keeps(now()), "{hold:?} by {more:?} to {with_more:?}");
    }

    #[test]
    fn two_typos_in_the_key_are_a_near_miss(place in 0_usize..19, other in 0_usize..19, letter in "[a-z]") {
        let mut key: Vec<char> = KEY.chars().collect();
        key[place] = letter.chars().next().unwrap();
        key.remove(other);
        let key: String = key.into_iter().collect();
        let hold = read(&[(key.as_str(), "true")]);
        prop_assert!(matches!(hold, TagHold::NearMiss { .. }), "{key}: {hold:?}");
    }
}
