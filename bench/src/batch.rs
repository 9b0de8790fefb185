//! A batch of a log subscription made of the lines of a real access log, and what is done with it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use reveille::access_log::Filter;
use reveille::log_batch::{self, Outcome};
use serde_json::json;
use std::error::Error;
use std::hint::black_box;
use std::io::{Read as _, Write as _};

/// Lines of a site as Apache wrote them: `tests/data/README.md`.
const SAMPLE: &[u8] = include_bytes!("../../tests/data/apache_combined_sample.log.gz");
const GROUP: &str = "/app/front";
/// No line of the sample has this path.
const COUNTED: &str = r#"192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] "POST /v1/calls HTTP/1.1" 503 5 "-" "okhttp/4.9""#;
/// 30 November 2026, nine o'clock, in milliseconds.
const NINE_MS: i64 = 1_796_029_200_000;

/// Where the line stands that wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    First,
    Last,
    Absent,
}

/// The batch as `awslogs.data`, and how long it is inflated.
pub(crate) fn batch(lines: usize, counted: Counted) -> Result<(String, usize), Box<dyn Error>> {
    let mut sample = String::new();
    GzDecoder::new(SAMPLE).read_to_string(&mut sample)?;
    let mut messages: Vec<&str> = sample.lines().cycle().take(lines).collect();
    match counted {
        Counted::First => messages.insert(0, COUNTED),
        Counted::Last => messages.push(COUNTED),
        Counted::Absent => {}
    }
    let event = |(n, message): (usize, &&str)| {
        let at = NINE_MS + i64::try_from(n).unwrap_or(i64::MAX);
        format!(r#"{{"id":"{n:056}","timestamp":{at},"message":{}}}"#, json!(message))
    };
    let events: Vec<_> = messages.iter().enumerate().map(event).collect();
    // In the order of CloudWatch Logs, around the lines and in them.
    let text = format!(
        r#"{{"messageType":"DATA_MESSAGE","owner":"123456789012","logGroup":"{GROUP}","logStream":"front-1","subscriptionFilters":["reveille"],"logEvents":[{}]}}"#,
        events.join(",")
    );
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes())?;
    Ok((STANDARD.encode(gzip.finish()?), text.len()))
}

pub(crate) fn filter() -> Result<Filter, Box<dyn Error>> {
    Ok(Filter::new(serde_json::from_str(r#"{"paths": ["/v1/calls"]}"#)?)?)
}

/// The limit of what can be had: the same bytes through the same decoders, looked at by nobody.
pub(crate) fn inflate(data: &str, bytes: usize) -> Result<(), Box<dyn Error>> {
    let packed = STANDARD.decode(data)?;
    let mut gzip = MultiGzDecoder::new(packed.as_slice());
    let mut room = vec![0_u8; 32 * 1024];
    let mut inflated = 0;
    loop {
        let read = gzip.read(black_box(&mut room))?;
        if read == 0 {
            break;
        }
        inflated += read;
    }
    if inflated == bytes { Ok(()) } else { Err(format!("{inflated} of {bytes} bytes").into()) }
}

pub(crate) fn read(data: &str, filter: &Filter, lines: usize, wakes: bool) -> Result<(), Box<dyn Error>> {
    let oldest: DateTime<Utc> = DateTime::from_timestamp_millis(NINE_MS).ok_or("no date")?;
    let batch = log_batch::read(black_box(data), u64::MAX, oldest, |group| (group == GROUP).then_some(filter))?;
    let as_it_should = match batch.outcome {
        Outcome::Woken(_) => wakes,
        Outcome::Quiet => !wakes && batch.counts.read == lines as u64,
        Outcome::Control | Outcome::Ignored | Outcome::TooLarge => false,
    };
    if as_it_should { Ok(()) } else { Err(format!("{:?} after {:?}", batch.outcome, batch.counts).into()) }
}
