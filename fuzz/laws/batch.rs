//! Laws of the batch reader.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use flate2::Crc;
use reveille::access_log::{Filter, Verdict};
use reveille::log_batch::{Batch, BatchFault, Outcome, read};
use serde_json::Value;
use std::sync::LazyLock;

const GROUP: &str = "/front/access";
const MOST: u64 = 1 << 20;

/// 2026-11-30T08:30:00Z.
fn oldest() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_027_400, 0).expect("a time")
}

static FILTER: LazyLock<Filter> =
    LazyLock::new(|| Filter::new(serde_json::from_str(r#"{"paths": ["/v1/"]}"#).expect("a spec")).expect("a filter"));

fn read_within(data: &str, most: u64) -> Result<Batch, BatchFault> {
    read(data, most, oldest(), |group| (group == GROUP).then_some(&*FILTER))
}

/// Any text as `awslogs.data`.
pub(crate) fn data(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let batch = read_within(&text, MOST);
    holds(&batch);
    let with_newline = read_within(&format!("{text}\r\n"), MOST);
    assert_eq!(short(&with_newline), short(&batch), "a newline at the end changes nothing");
}

/// Any JSON, packed as CloudWatch Logs does; the first byte says where the gzip is cut in two and broken off.
pub(crate) fn packed(data: &[u8]) {
    let Some((place, json)) = data.split_first() else { return };
    let place = usize::from(*place);
    let whole = read_within(&STANDARD.encode(gzip(json)), MOST);
    holds(&whole);
    is_the_same_in_two_members(json, place, &whole);
    is_not_quiet_unless_read_to_its_end(json, place);
    if let Ok(value) = serde_json::from_slice::<Value>(json) {
        agrees_with_a_plain_reading(&value);
    }
}

/// One gzip member that holds the bytes as they are: making it takes no time and leaves it to be read.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let blocks = bytes.len().div_ceil(0xffff).max(1);
    for place in 0..blocks {
        let block = &bytes[place * 0xffff..bytes.len().min((place + 1) * 0xffff)];
        let length = block.len() as u16;
        member.push(u8::from(place + 1 == blocks));
        member.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        member.extend(block);
    }
    let mut sum = Crc::new();
    sum.update(bytes);
    member.extend([sum.sum().to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat());
    member
}

fn short(batch: &Result<Batch, BatchFault>) -> Result<Batch, String> {
    batch.as_ref().map_err(BatchFault::to_string).cloned()
}

/// What holds of every answer.
fn holds(batch: &Result<Batch, BatchFault>) {
    match batch {
        Ok(batch) => counts_add_up(batch),
        Err(fault) => says_nothing_of_the_batch(&fault.to_string()),
    }
}

fn counts_add_up(batch: &Batch) {
    let woke = u64::from(matches!(batch.outcome, Outcome::Woken(_)));
    let noise: u64 = batch.counts.noise.values().sum();
    assert_eq!(batch.counts.read, noise + batch.counts.unread + batch.counts.late + woke, "{batch:?}");
    assert_eq!(batch.unread_sample.is_some(), batch.counts.unread > 0, "{batch:?}");
    assert!(batch.unread_sample.as_deref().is_none_or(is_harmless), "{batch:?}");
    if let Outcome::Woken(woken) = &batch.outcome {
        assert!(["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&woken.method.as_str()), "{woken:?}");
        assert_eq!(woken.path_class.as_deref(), Some("/v1/"));
        assert!(woken.path.starts_with("/v1/") && is_harmless(&woken.path), "{woken:?}");
        assert!(woken.agent_class.as_ref().is_none_or(|class| class.len() <= 32), "{woken:?}");
    }
    assert!(!matches!(batch.outcome, Outcome::Control | Outcome::Ignored) || batch.counts.read == 0, "{batch:?}");
}

fn is_harmless(shown: &str) -> bool {
    shown.chars().count() <= 200 && !shown.contains(char::is_control)
}

fn says_nothing_of_the_batch(fault: &str) {
    let words = fault.strip_prefix("awslogs.data: ").expect("the field comes first");
    let plain: String = words.chars().filter(|c| !c.is_ascii_digit()).collect();
    let known = [
        "not base at character ",
        "not gzip, or broken",
        "not JSON at line , byte ",
        "JSON of another shape than a log batch at line , byte ",
        "logGroup is missing",
        "logEvents is missing",
    ];
    assert!(known.contains(&plain.as_str()), "{fault}");
}

fn is_the_same_in_two_members(json: &[u8], place: usize, whole: &Result<Batch, BatchFault>) {
    let (head, tail) = json.split_at(place.min(json.len()));
    let members = [gzip(head), gzip(b""), gzip(tail)].concat();
    assert_eq!(short(&read_within(&STANDARD.encode(members), MOST)), short(whole), "members of a gzip are one text");
}

fn is_not_quiet_unless_read_to_its_end(json: &[u8], place: usize) {
    let quiet = |batch: Result<Batch, BatchFault>| batch.is_ok_and(|batch| batch.outcome == Outcome::Quiet);
    let most = (json.len() as u64).saturating_sub(1 + place as u64 / 4);
    assert!(!quiet(read_within(&STANDARD.encode(gzip(json)), most)), "{most} bytes of {}", json.len());
    let packed = gzip(json);
    let cut = packed.len().saturating_sub(1 + place);
    assert!(!quiet(read_within(&STANDARD.encode(&packed[..cut]), MOST)), "broken off at {cut}");
}

/// A batch whose fields have the types that CloudWatch Logs gives them, read without a stream.
fn agrees_with_a_plain_reading(value: &Value) {
    let is_batch = value["messageType"] == "DATA_MESSAGE" && value["logGroup"] == GROUP;
    let Some(events) = value["logEvents"].as_array().filter(|_| is_batch) else { return };
    let Some(events) = events.iter().map(event).collect::<Option<Vec<_>>>() else { return };
    let batch = read_within(&STANDARD.encode(gzip(value.to_string().as_bytes())), MOST);
    let batch = batch.expect("a batch of the right types is read");
    let wakes = |(at, text): &(Option<DateTime<Utc>>, &str)| {
        let line = FILTER.read(text.as_bytes()).filter(|_| at.is_none_or(|at| at >= oldest()));
        line.is_some_and(|line| FILTER.judge(&line) == Verdict::Wakes)
    };
    let first = events.iter().position(wakes);
    assert_eq!(matches!(batch.outcome, Outcome::Woken(_)), first.is_some(), "{value}");
    assert_eq!(batch.counts.read, first.map_or(events.len(), |place| place + 1) as u64, "{value}");
}

fn event(event: &Value) -> Option<(Option<DateTime<Utc>>, &str)> {
    let at = event.get("timestamp").map(Value::as_i64);
    let text = event.as_object()?.get("message")?.as_str()?;
    let at = if let Some(at) = at { DateTime::from_timestamp_millis(at?) } else { None };
    Some((at, text))
}
