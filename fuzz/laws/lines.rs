//! Laws of the log readers and of the wake filter.

use chrono::{DateTime, TimeDelta, Utc};
use reveille::access_log::{Filter, FilterSpec, LineUse, NoiseReason, RequestLine, Verdict, line_use, minutes};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// 2026-11-30T12:00:00Z.
fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_040_000, 0).expect("a time")
}

const AUTO: usize = 0;
const FORMATS: [&str; 7] = ["auto", "combined", "common", "alb", "json", "apigateway", "caddy"];

/// A filter of each format that takes every path.
static FILTERS: LazyLock<[Filter; 7]> = LazyLock::new(|| {
    let spec = |format: &str| FilterSpec { paths: every_path(), format: Some(format.to_owned()), ..Default::default() };
    FORMATS.map(|format| Filter::new(spec(format)).expect("a filter"))
});

fn every_path() -> Vec<String> {
    vec!["/".to_owned()]
}

/// A line of text in each of its formats.
pub(crate) fn text(line: &[u8]) {
    [AUTO, 1, 2, 3].iter().for_each(|format| holds(&FILTERS[*format], line));
    is_read_alike_in_its_wrapper(line);
}

/// A line of JSON in each of its formats; with a line before it, also under the field names that stand there.
pub(crate) fn json(data: &[u8]) {
    let (names, line) = split_line(data).unwrap_or((b"", data));
    [AUTO, 4, 5, 6].iter().for_each(|format| holds(&FILTERS[*format], line));
    is_read_alike_in_its_wrapper(line);
    let fields = serde_json::from_slice::<BTreeMap<String, String>>(names).unwrap_or_default();
    let spec = FilterSpec { paths: every_path(), fields, ..Default::default() };
    match Filter::new(spec) {
        Ok(filter) => holds(&filter, line),
        Err(fault) => assert!(fault.to_string().starts_with("fields"), "{fault}"),
    }
}

/// A filter as it is configured, then lines for it.
pub(crate) fn filter(data: &[u8]) {
    let (spec, mut rest) = split_line(data).unwrap_or((data, b""));
    let Ok(spec) = serde_json::from_slice::<FilterSpec>(spec) else { return };
    let filter = match Filter::new(spec.clone()) {
        Ok(filter) => filter,
        Err(fault) => return names_its_field(&fault.to_string()),
    };
    while let Some((line, more)) = split_line(rest) {
        holds(&filter, line);
        wakes_only_as_configured(&spec, &filter, line);
        rest = more;
    }
}

fn split_line(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    Some((&data[..end], &data[end + 1..]))
}

fn names_its_field(fault: &str) {
    let fields = ["paths", "methods", "statuses", "ignore_agents", "long_call_seconds", "format", "fields"];
    assert!(fields.iter().any(|field| fault.starts_with(field)), "{fault}");
}

/// What holds of every line and filter.
fn holds(filter: &Filter, line: &[u8]) {
    let seen = line_use(filter, line, noon());
    let Some(read) = filter.read(line) else {
        return assert_eq!(seen, LineUse::Alive, "what is not understood is no use");
    };
    is_within_its_line(&read, line);
    let is_use = match filter.judge(&read) {
        Verdict::Wakes | Verdict::Noise(NoiseReason::EndedCall) => true,
        Verdict::Noise(_) => false,
    };
    assert_eq!((filter.is_use(&read), seen != LineUse::Alive), (is_use, is_use), "{read:?}");
    assert!(!is_use || filter.path_class(&read).is_some(), "{read:?}");
    covers_no_more_than_its_window(seen);
}

/// A reader invents nothing.
fn is_within_its_line(read: &RequestLine, line: &[u8]) {
    let is_method = read.method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    assert!(is_method && !read.method.is_empty() && read.method.len() <= line.len(), "{read:?}");
    assert!(read.path.chars().count() <= line.len() && !read.path.contains(['?', '#']), "{read:?}");
    assert!(read.path.starts_with('/') || ["*", "-"].contains(&read.path.as_str()), "{read:?}");
    assert!(read.agent.as_ref().is_none_or(|agent| agent.chars().count() <= line.len()), "{read:?}");
    assert!(read.status.is_none_or(|status| (100..1000).contains(&status)), "{read:?}");
    let month = TimeDelta::zero()..=TimeDelta::days(31);
    assert!(read.took.is_none_or(|took| month.contains(&took)), "{read:?}");
    assert!(read.agent_class().is_none_or(|class| (1..=32).contains(&class.len())), "{read:?}");
    for event_at in [None, Some(noon())] {
        let Some((from, to)) = read.span(event_at) else { continue };
        assert!(from <= to && event_at.is_none_or(|at| at <= to), "{read:?}");
    }
}

fn covers_no_more_than_its_window(seen: LineUse) {
    let window = (noon() - TimeDelta::minutes(50), noon() + TimeDelta::minutes(10));
    let covered: Vec<_> = minutes(seen, window.0, window.1).collect();
    assert!(covered.len() <= 60 && covered.is_sorted() && covered.iter().all(|at| (window.0..window.1).contains(at)));
}

/// What one format reads, `auto` reads; and a container runtime's wrapper changes nothing of a text.
fn is_read_alike_in_its_wrapper(line: &[u8]) {
    let auto = FILTERS[AUTO].read(line);
    let by_one = FORMATS.iter().zip(FILTERS.iter()).find(|(_, filter)| filter.read(line).is_some());
    assert!(by_one.is_none() || auto.is_some(), "{:?} reads it", by_one.map(|(format, _)| format));
    // An object may be a wrapper itself, of which not any number is opened.
    let Some(text) = std::str::from_utf8(line).ok().filter(|text| !text.trim_ascii().starts_with('{')) else { return };
    let wrapped = serde_json::json!({"log": text, "stream": "stdout"}).to_string();
    assert_eq!(FILTERS[AUTO].read(wrapped.as_bytes()), auto, "{wrapped}");
}

fn wakes_only_as_configured(spec: &FilterSpec, filter: &Filter, line: &[u8]) {
    let Some(read) = filter.read(line).filter(|read| filter.judge(read) == Verdict::Wakes) else { return };
    assert!(!["HEAD", "OPTIONS", "-"].contains(&read.method.as_str()), "{read:?}");
    let is_configured = |methods: &Vec<String>| methods.iter().any(|method| method.eq_ignore_ascii_case(&read.method));
    assert!(spec.methods.as_ref().is_none_or(is_configured), "{read:?}");
    let class = spec.paths.iter().filter(|path| read.path.starts_with(path.as_str())).max_by_key(|path| path.len());
    assert_eq!(filter.path_class(&read), class.map(String::as_str), "{read:?}");
    assert!(class.is_some() && read.status.is_some(), "{read:?}");
    let agent = read.agent.as_deref().unwrap_or_default().to_lowercase();
    let is_ignored = spec.ignore_agents.iter().any(|part| agent.contains(&part.trim().to_lowercase()));
    assert!(!is_ignored, "{read:?}");
}
