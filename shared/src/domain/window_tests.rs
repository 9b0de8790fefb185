//! Tables of the nights on which clocks are moved, and laws over any window, zone and instant.

use super::*;
use chrono::{Offset, TimeZone, Timelike};
use proptest::prelude::*;
use proptest::sample::select;

fn utc(text: &str) -> Instant {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn spec(json: &str) -> WindowSpec {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn fault(json: &str) -> String {
    WarmWindow::new(spec(json), Tz::UTC).expect_err(json).to_string()
}

/// `mon-fri 07:00-23:00 Asia/Seoul`
fn window(text: &str) -> WarmWindow {
    let [days, hours, zone] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let (from, to) = hours.split_once('-').unwrap();
    let json = format!(r#"{{"days": ["{days}"], "from": "{from}", "to": "{to}", "zone": "{zone}"}}"#);
    WarmWindow::new(spec(&json), Tz::UTC).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

fn of(nodes: u32, text: &str) -> WarmWindow {
    WarmWindow { nodes, ..window(text) }
}

fn shown(span: Option<Span>) -> String {
    span.map_or("none".to_owned(), |(start, end)| format!("{} {}", start.format("%dT%H:%MZ"), end.format("%dT%H:%MZ")))
}

#[test]
fn days_are_names_ranges_and_numbers_of_cron() {
    use Weekday::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
    let rows: [(&str, &[Weekday]); 10] = [
        (r#"["mon-fri"]"#, &[Mon, Tue, Wed, Thu, Fri]),
        (r#"["mon","wed"]"#, &[Mon, Wed]),
        ("[1,2,5]", &[Mon, Tue, Fri]),
        ("[0]", &[Sun]),
        ("[7, 0]", &[Sun]),
        (r#"["fri-mon"]"#, &[Fri, Sat, Sun, Mon]),
        (r#"["sat", 3, "Monday - TUE"]"#, &[Sat, Wed, Mon, Tue]),
        (r#"["sun-sun"]"#, &[Sun]),
        (r#"["mon-sun"]"#, &[Mon, Tue, Wed, Thu, Fri, Sat, Sun]),
        ("null", &[Mon, Tue, Wed, Thu, Fri, Sat, Sun]),
    ];
    for (days, expected) in rows {
        let json = format!(r#"{{"days": {days}, "from": "07:00", "to": "08:00"}}"#);
        let days = WarmWindow::new(spec(&json), Tz::UTC).map(|window| window.days);
        assert_eq!(days, Ok(expected.iter().copied().collect()), "{json}");
    }
}

#[test]
fn days_nodes_and_zone_have_defaults() {
    let window = WarmWindow::new(spec(r#"{"from": "07:00", "to": "23:00"}"#), chrono_tz::Asia::Seoul).unwrap();
    assert_eq!((window.days, window.nodes, window.zone), (WeekdaySet::ALL, 1, chrono_tz::Asia::Seoul));
}

#[test]
fn a_fault_names_the_field_and_what_to_write() {
    let hours = r#""from": "07:00", "to": "23:00""#;
    let rows = [
        (format!(r#"{{"days": [], {hours}}}"#), "days: empty"),
        (format!(r#"{{"days": ["mo"], {hours}}}"#), r#"days: "mo" is no weekday: write "mon", "mon-fri" or a number"#),
        (format!(r#"{{"days": ["mon,tue"], {hours}}}"#), r#"days: "mon,tue" is no weekday"#),
        (format!(r#"{{"days": ["1-5"], {hours}}}"#), r#"days: "1-5" is no weekday"#),
        (format!(r#"{{"days": ["mon-"], {hours}}}"#), r#"days: "mon-" is no weekday"#),
        (format!(r#"{{"days": [8], {hours}}}"#), "days: 8 is no weekday"),
        (format!(r#"{{"days": [-1], {hours}}}"#), "days: -1 is no weekday"),
        (r#"{"from": "24:00", "to": "07:00"}"#.to_owned(), r#"from: "24:00" is no time of day: write it as "07:00""#),
        (r#"{"from": "7:00", "to": "23:00"}"#.to_owned(), r#"from: "7:00" is no time"#),
        (r#"{"from": "07:00", "to": "23:60"}"#.to_owned(), r#"to: "23:60" is no time"#),
        (r#"{"from": "07:00", "to": "23:0"}"#.to_owned(), r#"to: "23:0" is no time"#),
        (r#"{"from": "07:00", "to": " 9:00"}"#.to_owned(), r#"to: " 9:00" is no time"#),
        (r#"{"from": "07:00", "to": "23:00:00"}"#.to_owned(), r#"to: "23:00:00" is no time"#),
        (r#"{"from": "07:00", "to": "07:00"}"#.to_owned(), r#"to: "07:00" is also `from`"#),
        (r#"{"from": "00:00", "to": "00:00"}"#.to_owned(), r#"to: "00:00" is also `from`: write a whole day as"#),
        (format!(r#"{{"nodes": 0, {hours}}}"#), "nodes: 0 is not a number from 1 to 100"),
        (format!(r#"{{"nodes": 101, {hours}}}"#), "nodes: 101 is not"),
        (format!(r#"{{"nodes": -1, {hours}}}"#), "nodes: -1 is not"),
        (format!(r#"{{"zone": "Seoul", {hours}}}"#), r#"zone: "Seoul" is not an IANA zone"#),
    ];
    for (json, expected) in rows {
        let fault = fault(&json);
        assert!(fault.starts_with(expected), "{json}: {fault}");
    }
}

#[test]
fn what_is_no_window_is_refused_as_it_is_read() {
    let rows = [
        (r#"{"to": "23:00"}"#, "missing field `from`"),
        (r#"{"from": "07:00"}"#, "missing field `to`"),
        (r#"{"from": "07:00", "to": "23:00", "node": 2}"#, "unknown field `node`"),
        (r#"{"from": "07:00", "to": "23:00", "days": [1.5]}"#, "`days` takes names such as"),
        (r#"{"from": "07:00", "to": "23:00", "days": [["mon"]]}"#, "`days` takes names such as"),
    ];
    for (json, expected) in rows {
        let error = serde_json::from_str::<WindowSpec>(json).expect_err(json).to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn case_26_weekday_and_hour_are_those_of_the_zone() {
    let rows = [
        ("Monday by both", "mon-fri 02:00-06:00 America/New_York", "2026-11-30T07:30:00Z", true),
        ("Friday 23:30, Saturday in UTC", "mon-fri 02:00-06:00 America/New_York", "2026-12-05T04:30:00Z", false),
        ("Sunday 22:00, Monday in UTC", "mon-fri 02:00-23:00 America/New_York", "2026-11-30T03:00:00Z", false),
        ("Friday 22:00, Saturday in UTC", "mon-fri 02:00-23:00 America/New_York", "2026-12-05T03:00:00Z", true),
        ("Monday 02:00, Sunday in UTC", "mon-fri 02:00-06:00 Asia/Kolkata", "2026-11-29T20:30:00Z", true),
        ("Monday 01:59, Sunday in UTC", "mon-fri 02:00-06:00 Asia/Kolkata", "2026-11-29T20:29:59Z", false),
        ("Friday 05:59 in Kolkata", "mon-fri 02:00-06:00 Asia/Kolkata", "2026-12-04T00:29:59Z", true),
        ("Friday 06:00 in Kolkata", "mon-fri 02:00-06:00 Asia/Kolkata", "2026-12-04T00:30:00Z", false),
        ("Saturday 02:30 in Kolkata", "mon-fri 02:00-06:00 Asia/Kolkata", "2026-12-04T21:00:00Z", false),
        ("Monday in Auckland, Sunday in UTC", "mon-fri 02:00-06:00 Pacific/Auckland", "2026-11-29T13:00:00Z", true),
        ("Saturday in Auckland, Friday in UTC", "mon-fri 02:00-06:00 Pacific/Auckland", "2026-12-04T13:30:00Z", false),
    ];
    for (name, text, at, expected) in rows {
        assert_eq!(window(text).span_at(utc(at)).is_some(), expected, "{name}");
    }
}

#[test]
fn case_26_a_night_belongs_to_the_day_on_which_it_starts() {
    let week = "mon-fri 23:00-06:00 America/New_York";
    let rows = [
        ("Sunday night", week, "2026-11-30T04:30:00Z", "none"),
        ("Monday before it", week, "2026-12-01T03:59:59Z", "none"),
        ("Monday as it starts", week, "2026-12-01T04:00:00Z", "01T04:00Z 01T11:00Z"),
        ("Tuesday's small hours", week, "2026-12-01T10:59:59Z", "01T04:00Z 01T11:00Z"),
        ("Tuesday as it ends", week, "2026-12-01T11:00:00Z", "none"),
        ("Friday's night is still Friday's", week, "2026-12-05T10:00:00Z", "05T04:00Z 05T11:00Z"),
        ("Saturday night", week, "2026-12-06T04:30:00Z", "none"),
        ("Sunday to Monday", "sun 23:00-06:00 Asia/Seoul", "2026-11-29T20:00:00Z", "29T14:00Z 29T21:00Z"),
        ("Monday to Tuesday", "sun 23:00-06:00 Asia/Seoul", "2026-11-30T20:00:00Z", "none"),
        ("to midnight", "sun 18:00-24:00 Asia/Seoul", "2026-11-29T14:59:59Z", "29T09:00Z 29T15:00Z"),
        ("at midnight", "sun 18:00-00:00 Asia/Seoul", "2026-11-29T15:00:00Z", "none"),
        ("a whole day", "sun 00:00-24:00 Asia/Seoul", "2026-11-29T00:00:00Z", "28T15:00Z 29T15:00Z"),
    ];
    for (name, text, at, expected) in rows {
        assert_eq!(shown(window(text).span_at(utc(at))), expected, "{name}");
    }
}

#[test]
fn case_27_a_start_that_is_left_out_is_the_end_of_the_gap() {
    let windows = [window("mon-sun 02:30-06:00 America/New_York")];
    let now = utc("2027-03-14T06:59:00Z");
    assert_eq!(wanted(&windows, now, TimeDelta::zero()), None);
    assert_eq!(next_opening(&windows, now), Some(utc("2027-03-14T07:00:00Z")));
    let wish = WarmWish { nodes: 1, from: utc("2027-03-14T07:00:00Z"), until: utc("2027-03-14T10:00:00Z") };
    assert_eq!(wanted(&windows, wish.from, TimeDelta::zero()), Some(wish));
}

#[test]
fn case_27_a_start_that_happens_twice_opens_once() {
    let windows = [window("mon-sun 02:30-02:45 Europe/Berlin")];
    let mut openings = Vec::new();
    let mut now = utc("2026-10-24T12:00:00Z");
    while now < utc("2026-10-25T12:00:00Z") {
        openings.extend(next_opening(&windows, now).filter(|at| *at == now + TimeDelta::minutes(1)));
        now += TimeDelta::minutes(1);
    }
    assert_eq!(openings, [utc("2026-10-25T00:30:00Z")]);
    assert_eq!(windows[0].span_at(utc("2026-10-25T01:30:00Z")), None, "02:30 for the second time");
}

#[test]
#[rustfmt::skip]
fn case_27_nights_on_which_clocks_are_moved() {
    let rows = [
        // New York, 14 March 2027: 02:00 EST is 03:00 EDT, 07:00Z.
        ("start left out", "sun 02:30-06:00 America/New_York", "2027-03-14T08:00:00Z", "14T07:00Z 14T10:00Z"),
        ("end left out", "sun 01:00-02:30 America/New_York", "2027-03-14T06:30:00Z", "14T06:00Z 14T07:00Z"),
        ("all of it left out", "sun 02:00-03:00 America/New_York", "2027-03-14T07:00:00Z", "none"),
        ("inside the gap", "sun 02:15-02:45 America/New_York", "2027-03-14T07:00:00Z", "none"),
        ("a night an hour shorter", "sat 23:00-06:00 America/New_York", "2027-03-14T07:00:00Z", "14T04:00Z 14T10:00Z"),
        ("a night an hour longer", "sat 23:00-06:00 America/New_York", "2026-11-01T06:30:00Z", "01T03:00Z 01T11:00Z"),
        ("a day of 23 hours", "sun 00:00-24:00 America/New_York", "2027-03-14T12:00:00Z", "14T05:00Z 15T04:00Z"),
        ("a day of 25 hours", "sun 00:00-24:00 America/New_York", "2026-11-01T12:00:00Z", "01T04:00Z 02T05:00Z"),
        // Berlin, 25 October 2026: 03:00 CEST is 02:00 CET, 01:00Z.
        ("start twice", "sun 02:30-06:00 Europe/Berlin", "2026-10-25T01:15:00Z", "25T00:30Z 25T05:00Z"),
        ("end twice", "sun 01:00-02:30 Europe/Berlin", "2026-10-25T00:29:59Z", "24T23:00Z 25T00:30Z"),
        ("the end's second time", "sun 01:00-02:30 Europe/Berlin", "2026-10-25T01:15:00Z", "none"),
        ("both twice", "sun 02:15-02:45 Europe/Berlin", "2026-10-25T00:30:00Z", "25T00:15Z 25T00:45Z"),
        ("both twice, the second time", "sun 02:15-02:45 Europe/Berlin", "2026-10-25T01:30:00Z", "none"),
        ("over both hours", "sun 02:00-03:00 Europe/Berlin", "2026-10-25T01:59:59Z", "25T00:00Z 25T02:00Z"),
        ("Berlin's night in spring", "sat 23:00-06:00 Europe/Berlin", "2026-03-29T01:00:00Z", "28T22:00Z 29T04:00Z"),
        // Lord Howe moves by half an hour, at 02:00.
        ("half an hour left out", "sun 02:10-04:00 Australia/Lord_Howe", "2026-10-03T16:00:00Z", "03T15:30Z 03T17:00Z"),
        ("collapsed half an hour", "sun 02:00-02:30 Australia/Lord_Howe", "2026-10-03T15:30:00Z", "none"),
        ("half an hour twice", "sun 01:45-04:00 Australia/Lord_Howe", "2026-04-04T16:00:00Z", "04T14:45Z 04T17:30Z"),
        // Havana moves at midnight.
        ("no midnight", "sun 00:00-06:00 America/Havana", "2026-03-08T05:00:00Z", "08T05:00Z 08T10:00Z"),
        ("a day before no midnight", "sat 18:00-24:00 America/Havana", "2026-03-08T04:59:59Z", "07T23:00Z 08T05:00Z"),
        ("two midnights", "sun 00:00-06:00 America/Havana", "2026-11-01T05:30:00Z", "01T04:00Z 01T11:00Z"),
        ("ends at the first midnight", "sat 18:00-24:00 America/Havana", "2026-11-01T03:59:59Z", "31T22:00Z 01T04:00Z"),
        ("not at the second", "sat 18:00-24:00 America/Havana", "2026-11-01T04:30:00Z", "none"),
        // Cairo and Beirut have no midnight either; Santiago puts 24:00 back to 23:00, on the Saturday.
        ("Cairo", "fri 00:00-24:00 Africa/Cairo", "2026-04-23T22:00:00Z", "23T22:00Z 24T21:00Z"),
        ("Beirut", "sat 23:00-06:00 Asia/Beirut", "2026-03-28T22:00:00Z", "28T21:00Z 29T03:00Z"),
        ("Santiago", "sat 22:00-24:00 America/Santiago", "2026-04-05T03:30:00Z", "05T01:00Z 05T04:00Z"),
        ("Santiago's start twice", "sat 23:30-06:00 America/Santiago", "2026-04-05T03:00:00Z", "05T02:30Z 05T10:00Z"),
        // St John's put 00:01 back to 23:01, on the Saturday, when Sunday had begun.
        ("St John's", "sun 00:00-06:00 America/St_Johns", "2010-11-07T03:00:00Z", "07T02:30Z 07T09:30Z"),
        // Auckland, 26 September 2026 in UTC; Kolkata never moves.
        ("Auckland", "sun 02:30-06:00 Pacific/Auckland", "2026-09-26T14:00:00Z", "26T14:00Z 26T17:00Z"),
        ("Kolkata", "sun 02:30-06:00 Asia/Kolkata", "2026-10-24T21:00:00Z", "24T21:00Z 25T00:30Z"),
        // Apia left out Friday, 30 December 2011, 10:00Z.
        ("the day that was left out", "fri 07:00-23:00 Pacific/Apia", "2011-12-30T10:00:00Z", "none"),
        ("the night before it", "thu 23:00-06:00 Pacific/Apia", "2011-12-30T09:59:59Z", "30T09:00Z 30T10:00Z"),
        ("its own night", "fri 23:00-06:00 Pacific/Apia", "2011-12-30T10:00:00Z", "30T10:00Z 30T16:00Z"),
        ("the day after it", "sat 00:00-24:00 Pacific/Apia", "2011-12-30T10:00:00Z", "30T10:00Z 31T10:00Z"),
    ];
    for (name, text, at, expected) in rows {
        assert_eq!(shown(window(text).span_at(utc(at))), expected, "{name}");
    }
}

#[test]
fn nodes_are_wanted_from_the_lead_before_the_start_to_the_end() {
    let windows = [window("mon-fri 07:00-23:00 Asia/Seoul")];
    let rows = [
        ("before the lead", "2026-11-29T21:51:59Z", false),
        ("as the lead begins", "2026-11-29T21:52:00Z", true),
        ("as it opens", "2026-11-29T22:00:00Z", true),
        ("just before its end", "2026-11-30T13:59:59Z", true),
        ("at its end", "2026-11-30T14:00:00Z", false),
        ("no lead into Saturday", "2026-12-04T21:55:00Z", false),
    ];
    let wish = WarmWish { nodes: 1, from: utc("2026-11-29T22:00:00Z"), until: utc("2026-11-30T14:00:00Z") };
    for (name, now, expected) in rows {
        assert_eq!(wanted(&windows, utc(now), TimeDelta::minutes(8)), expected.then_some(wish), "{name}");
    }
}

#[test]
fn the_most_nodes_of_all_windows_in_force_are_wanted() {
    let windows = [
        of(1, "mon-fri 07:00-23:00 Asia/Seoul"),
        of(3, "mon-fri 12:00-14:00 Asia/Seoul"),
        of(2, "mon-fri 22:00-01:00 Asia/Seoul"),
    ];
    let rows = [
        ("one", "2026-11-30T02:00:00Z", Some((1, "2026-11-29T22:00:00Z", "2026-11-30T14:00:00Z"))),
        (
            "two, the second by its lead",
            "2026-11-30T02:55:00Z",
            Some((3, "2026-11-29T22:00:00Z", "2026-11-30T14:00:00Z")),
        ),
        ("the second is over", "2026-11-30T05:00:00Z", Some((1, "2026-11-29T22:00:00Z", "2026-11-30T14:00:00Z"))),
        ("two that end apart", "2026-11-30T13:30:00Z", Some((2, "2026-11-29T22:00:00Z", "2026-11-30T16:00:00Z"))),
        ("the last alone", "2026-11-30T14:00:00Z", Some((2, "2026-11-30T13:00:00Z", "2026-11-30T16:00:00Z"))),
        ("none", "2026-11-30T16:00:00Z", None),
    ];
    for (name, now, expected) in rows {
        let expected = expected.map(|(nodes, from, until)| WarmWish { nodes, from: utc(from), until: utc(until) });
        assert_eq!(wanted(&windows, utc(now), TimeDelta::minutes(10)), expected, "{name}");
    }
    assert_eq!(wanted(&[], utc("2026-11-30T02:00:00Z"), TimeDelta::minutes(10)), None);
}

#[test]
fn the_next_opening_is_the_first_start_after_now() {
    let windows = [window("mon-fri 07:00-23:00 Asia/Seoul"), window("sun 12:00-13:00 UTC")];
    let rows = [
        ("before one", "2026-11-30T21:00:00Z", "2026-11-30T22:00:00Z"),
        ("as one opens", "2026-11-30T22:00:00Z", "2026-12-01T22:00:00Z"),
        ("over the weekend", "2026-12-04T00:00:00Z", "2026-12-06T12:00:00Z"),
        ("while another is open", "2026-12-06T12:30:00Z", "2026-12-06T22:00:00Z"),
    ];
    for (name, now, expected) in rows {
        assert_eq!(next_opening(&windows, utc(now)), Some(utc(expected)), "{name}");
    }
    assert_eq!(next_opening(&[], utc("2026-11-30T21:00:00Z")), None);
    let skipped = [window("sun 02:15-02:45 America/New_York")];
    let now = utc("2027-03-07T08:00:00Z");
    assert_eq!(next_opening(&skipped, now), Some(utc("2027-03-21T06:15:00Z")), "the 14th does not have it");
}

#[test]
fn a_lead_out_of_range_is_cut_to_its_range() {
    let windows = [window("sun 12:00-13:00 UTC")];
    let now = utc("2026-11-29T13:00:00Z");
    assert_eq!(wanted(&windows, now, TimeDelta::MIN), None);
    assert_eq!(wanted(&windows, now, TimeDelta::MAX).map(|wish| wish.from), Some(utc("2026-12-06T12:00:00Z")));
}

/// Every sort of clock there is: none moved, by an hour, by half an hour, over midnight, a date line crossed.
const ZONES: [Tz; 14] = [
    Tz::UTC,
    Tz::Asia__Seoul,
    Tz::Asia__Kolkata,
    Tz::Asia__Kathmandu,
    Tz::America__New_York,
    Tz::Europe__Berlin,
    Tz::Pacific__Auckland,
    Tz::Australia__Lord_Howe,
    Tz::America__Havana,
    Tz::America__Santiago,
    Tz::Asia__Beirut,
    Tz::Africa__Cairo,
    Tz::Antarctica__Troll,
    Tz::Pacific__Apia,
];

fn any_window() -> impl Strategy<Value = WarmWindow> {
    // Quarters hit the edges of gaps; single minutes miss them.
    let minute = || prop_oneof![(0_u32..96).prop_map(|quarter| quarter * 15), 0_u32..1440];
    let time = |minute: u32| NaiveTime::from_hms_opt(minute / 60, minute % 60, 0).unwrap();
    (1_u8..128, minute(), minute(), 1_u32..=100, select(&ZONES[..]))
        .prop_filter("no length", |(_, from, to, _, _)| from != to || *from == 0)
        .prop_map(move |(days, from, to, nodes, zone)| {
            let days = (0..7).filter(|day| days & (1 << day) != 0).map(|day| Weekday::try_from(day).unwrap()).collect();
            WarmWindow { days, from: time(from), to: time(to), nodes, zone }
        })
}

fn any_instant() -> impl Strategy<Value = Instant> {
    // 2026 to 2028; and the turn of 2011, when Apia changed sides.
    let seconds = |from: &str, days: i64| {
        (0..days * 86_400).prop_map({
            let from = utc(from);
            move |second| from + TimeDelta::seconds(second)
        })
    };
    prop_oneof![4 => seconds("2026-01-01T00:00:00Z", 1096), 1 => seconds("2011-12-20T00:00:00Z", 20)]
}

/// The spans of a year or so, each found from an instant inside it.
fn spans_of(window: &WarmWindow, from: Instant, days: i64) -> Vec<Span> {
    let until = from + TimeDelta::days(days);
    let mut spans = Vec::new();
    let mut now = from;
    while let Some(start) = next_opening(std::slice::from_ref(window), now).filter(|start| *start < until) {
        spans.extend(window.span_at(start));
        now = start;
    }
    spans
}

/// What the wall clock and the calendar on the wall say, read by hand.
fn wall_says_open(window: &WarmWindow, at: Instant) -> bool {
    let wall = at.with_timezone(&window.zone);
    let minutes = |time: NaiveTime| time.num_seconds_from_midnight();
    let (now, from, to) = (minutes(wall.time()), minutes(window.from), minutes(window.to));
    let today = window.days.contains(wall.weekday());
    let yesterday = window.days.contains(wall.weekday().pred());
    if from < to { today && from <= now && now < to } else { today && from <= now || yesterday && now < to }
}

fn clock_is_moved_near(zone: Tz, at: Instant) -> bool {
    let offset = |days: i64| zone.offset_from_utc_datetime(&(at + TimeDelta::days(days)).naive_utc()).fix();
    (-2..=2).any(|days| offset(days) != offset(0))
}

proptest! {
    #[test]
    fn case_26_away_from_moved_clocks_a_span_is_what_the_wall_clock_says(window in any_window(), at in any_instant()) {
        prop_assume!(!clock_is_moved_near(window.zone, at));
        prop_assert_eq!(window.span_at(at).is_some(), wall_says_open(&window, at));
    }

    #[test]
    fn case_27_where_a_span_is_open_it_started_at_its_time_or_at_the_end_of_a_gap(window in any_window(), at in any_instant()) {
        if let Some((start, end)) = window.span_at(at) {
            let wall = start.with_timezone(&window.zone);
            prop_assert!(wall.time() == window.from || clock_is_moved_near(window.zone, start));
            prop_assert!(end.with_timezone(&window.zone).time() == window.to || clock_is_moved_near(window.zone, end));
            prop_assert!(start <= at && at < end && end - start <= TimeDelta::hours(26));
        }
    }

    #[test]
    fn a_span_is_the_same_from_wherever_in_it_one_asks(window in any_window(), at in any_instant(), part in 0.0_f64..1.0) {
        if let Some((start, end)) = window.span_at(at) {
            #[expect(clippy::cast_possible_truncation, reason = "a place in the span")]
            let inside = start + TimeDelta::seconds(((end - start).num_seconds() as f64 * part) as i64);
            for probe in [start, inside, end - TimeDelta::nanoseconds(1)] {
                prop_assert_eq!(window.span_at(probe), Some((start, end)));
            }
            prop_assert_ne!(window.span_at(end), Some((start, end)));
            prop_assert_ne!(window.span_at(start - TimeDelta::nanoseconds(1)), Some((start, end)));
        }
    }

    #[test]
    fn a_lead_only_reaches_back(window in any_window(), at in any_instant(), lead in 0_i64..3 * 86_400) {
        let windows = [window];
        let lead = TimeDelta::seconds(lead);
        let open = |now: Instant| wanted(&windows, now, TimeDelta::zero());
        let opens = next_opening(&windows, at).filter(|start| *start <= at + lead);
        let wish = wanted(&windows, at, lead);
        prop_assert_eq!(wish.is_some(), open(at).is_some() || opens.is_some());
        if let Some(wish) = wish {
            prop_assert_eq!(wish.from, open(at).map_or_else(|| opens.unwrap(), |open| open.from));
            prop_assert!(at < wish.until && wish.from <= at + lead);
            prop_assert_eq!(open(wish.until - TimeDelta::nanoseconds(1)).map(|last| last.until), Some(wish.until));
        }
    }

    #[test]
    fn what_several_windows_want_is_the_most_of_each(
        windows in proptest::collection::vec(any_window(), 0..5), at in any_instant(), lead in 0_i64..7200,
    ) {
        let lead = TimeDelta::seconds(lead);
        let alone: Vec<WarmWish> =
            windows.iter().filter_map(|window| wanted(std::slice::from_ref(window), at, lead)).collect();
        let all = wanted(&windows, at, lead);
        prop_assert_eq!(all.map(|wish| wish.nodes), alone.iter().map(|wish| wish.nodes).max());
        prop_assert_eq!(all.map(|wish| wish.from), alone.iter().map(|wish| wish.from).min());
        prop_assert_eq!(all.map(|wish| wish.until), alone.iter().map(|wish| wish.until).max());
        let turned: Vec<WarmWindow> = windows.iter().rev().cloned().collect();
        prop_assert_eq!(all, wanted(&turned, at, lead), "in any order");
        prop_assert_eq!(next_opening(&windows, at), next_opening(&turned, at));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_spans_of_one_window_never_overlap_and_add_up_to_its_year(window in any_window(), start in any_instant()) {
        let spans = spans_of(&window, start, 364);
        for pair in spans.windows(2) {
            prop_assert!(pair[0].1 <= pair[1].0, "{pair:?}");
        }
        let open: TimeDelta = spans.iter().map(|(start, end)| *end - *start).sum();
        let mut a_day = (window.to - window.from).num_minutes();
        if a_day <= 0 {
            a_day += 1440;
        }
        let expected = TimeDelta::minutes(a_day) * 52 * i32::from(window.days.len());
        // Two moved nights, and Apia's day.
        prop_assert!((open - expected).abs() <= TimeDelta::hours(4 + 24), "{open} and not {expected}");
        prop_assert!((52 * usize::from(window.days.len())).abs_diff(spans.len()) <= 2, "{} spans", spans.len());
    }
}
