//! Work and memory follow the size of the input, whatever it says: nobody who writes a line, a tag or a request can make a
//! function miss its time-out. Measured as the thread's own CPU time, which other programs on the machine do not move.
#![cfg(target_os = "linux")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, write::GzEncoder};
use reveille::access_log::{Filter, FilterSpec};
use reveille::config::Config;
use reveille::domain::{Instant, read_tags};
use reveille::log_batch;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Write as _;

const MB: usize = 1_000_000;

fn cpu_seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let spent = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the scheduler's figures");
        text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).expect("a number")
    };
    let before = spent();
    black_box(work());
    (spent() - before) / 1e9
}

fn noon() -> Instant {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

fn filter(format: &str) -> Filter {
    let (paths, format) = (vec!["/".to_owned()], Some(format.to_owned()));
    Filter::new(FilterSpec { paths, format, ..FilterSpec::default() }).expect("a filter")
}

/// Objects in objects, each the text of a `log` of the one around it: nginx's escaping makes a level cost three bytes a quote.
fn wrappers(levels: usize, most: usize) -> String {
    let quote = |level: usize| if level == 0 { "\"".to_owned() } else { format!("\\{}x22", "x5c".repeat(level - 1)) };
    let heads: String = (0..levels).map(|level| format!("{{{q}log{q}:{q}", q = quote(level))).collect();
    let rest = most.saturating_sub(heads.len());
    heads + &"x".repeat(rest)
}

#[test]
fn a_megabyte_of_line_takes_less_than_a_second_in_every_format() {
    let head = r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" ""#;
    let json = |key: &str, unit: &str| format!("{{\"method\":\"GET\",\"path\":\"/\",\"status\":200,\"{key}\":\"{unit}");
    let rows = [
        ("quotes", String::new(), "\""),
        ("backslashes", "\"".to_owned(), "\\"),
        ("brackets", String::new(), "["),
        ("fields", head.to_owned(), "\" \""),
        ("names of bots", head.to_owned(), "bots"),
        ("letters that grow in small", head.to_owned(), "İ"),
        ("digits behind a time", format!("{head}\" 1"), "1"),
        ("blanks in the URL", "h \"GET /".to_owned(), " "),
        ("bytes of nginx", json("a", ""), r"\x22"),
        ("unknown escapes", json("a", ""), r"\z"),
        ("lists", "{\"a\":".to_owned(), "["),
        ("objects", String::new(), "{\"a\":"),
        ("names", "{".to_owned(), "\"a\":1,"),
        ("digits", "{\"status\":".to_owned(), "9"),
        ("a duration", json("duration", "1"), "1ms"),
        ("wrappers", String::new(), "{\"log\":\""),
    ];
    let filters = ["auto", "combined", "common", "alb", "json", "apigateway", "caddy"].map(filter);
    for (name, head, unit) in rows {
        let line = head + &unit.repeat(MB / unit.len());
        is_read_in_time(&filters, name, &line);
    }
    for levels in [50, 150, 240] {
        is_read_in_time(&filters, "wrappers in nginx's escaping", &wrappers(levels, MB));
    }
}

fn is_read_in_time(filters: &[Filter], name: &str, line: &str) {
    for filter in filters {
        let took = cpu_seconds(|| filter.read(line.as_bytes()).map(|read| filter.judge(&read)));
        println!("{name}: {took:.3} s");
        assert!(took < 1.0, "{name}: {took} s");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory")
}

/// Members of nothing cost the most: the inflater is made anew for each. Without optimisation that is ten times slower.
#[test]
fn a_megabyte_of_batch_takes_less_than_a_second() {
    let most = if cfg!(debug_assertions) { 6.0 } else { 1.0 };
    let empty = gzip(b"");
    let members = empty.repeat(MB * 3 / 4 / empty.len());
    let rows = [
        ("not base64", "%".repeat(MB)),
        ("no gzip", "A".repeat(MB)),
        ("members of nothing", STANDARD.encode(members)),
        (
            "a header without end",
            STANDARD.encode([&[0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3], &[b'x'; MB * 3 / 4][..]].concat()),
        ),
        ("nested lists", STANDARD.encode(gzip("[".repeat(MB).as_bytes()))),
        ("nested fields", STANDARD.encode(gzip("{\"a\":".repeat(MB / 5).as_bytes()))),
    ];
    for (name, data) in rows {
        let took = cpu_seconds(|| log_batch::read(&data, 32 << 20, noon(), |_| None));
        println!("{name}: {took:.3} s");
        assert!(took < most, "{name}: {took} s");
    }
}

#[test]
fn a_megabyte_of_tags_takes_less_than_a_second() {
    // What EC2 allows is 50 tags of 256 characters.
    let value = "2026-11-30 18:00 Nowhere/Nowhere".repeat(8);
    let tags: Vec<_> = (0..MB / value.len()).map(|n| (format!("reveille:keep-until{n}"), value.clone())).collect();
    let read = || read_tags(tags.iter().map(|(key, value)| (key.as_str(), value.as_str())), chrono_tz::UTC, noon());
    let took = cpu_seconds(read);
    println!("tags: {took:.3} s");
    assert!(took < 1.0, "{took} s");
}

#[test]
fn a_megabyte_of_configuration_takes_less_than_a_second() {
    let windows = r#"{"from":"07:00","to":"23:00"},"#.repeat(MB / 30);
    let pools = [
        "[".repeat(MB),
        format!(r#"{{"v": {{"warm": [{}]}}}}"#, windows.trim_end_matches(',')),
        format!(r#"{{"v": {{"instance_types": [{}"g6.xlarge"]}}}}"#, "\"g6.xlarge\",".repeat(MB / 12)),
    ];
    for pools in pools {
        let vars = BTreeMap::from([("REVEILLE_POOLS".to_owned(), pools)]);
        let took = cpu_seconds(|| Config::from_vars(&vars));
        println!("configuration: {took:.3} s");
        assert!(took < 1.0, "{took} s");
    }
}
