//! Reads a batch of a CloudWatch Logs subscription up to the first line that wakes.
//!
//! The batch is base64 around gzip around JSON and is read as a stream: a few KiB of buffers and one line at a time,
//! however large it inflates. What is found stands, also when the rest turns out to be broken.

mod usual;

use crate::access_log::{Filter, KnownAgents, MAX_LINE_BYTES, NoiseReason, RequestLine, Verdict, sample, shown};
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::read::DecoderReader;
use chrono::{DateTime, Utc};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read};

/// The only `messageType` whose lines count; all others are control messages (field case 28).
const DATA_MESSAGE: &str = "DATA_MESSAGE";

/// What a batch held, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Log group the lines come from; `None` if reading ended before it was known.
    pub log_group: Option<String>,
    /// What the batch means for the node.
    pub outcome: Outcome,
    /// What was made of the lines.
    pub counts: Counts,
    /// First line that was not understood, for the log: cut at the first `?` and to 200 characters, control characters
    /// escaped, and what looks like a secret or a mail address masked with `…`.
    pub unread_sample: Option<String>,
}

/// What a batch means for the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A call was found, and reading stopped there.
    Woken(Woken),
    /// All lines were read, none is a call.
    Quiet,
    /// A message of CloudWatch Logs itself; no line was judged.
    Control,
    /// The log group has no filter, so no line was judged: one's own group, or one that is not configured (field
    /// case 35).
    Ignored,
    /// More than may be read, without a call so far. Take it as a wake: what was not read may hold one (field case 32).
    TooLarge,
}

/// The line that wakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Woken {
    /// Time of the log event; where it has none, the time in the line.
    pub at: Option<DateTime<Utc>>,
    /// Method in capitals.
    pub method: String,
    /// Path without query, cut to 200 characters, control characters escaped.
    pub path: String,
    /// The configured beginning that its path has: a class, and nobody's own.
    pub path_class: Option<String>,
    /// The first product in its user agent, such as `okhttp`.
    pub agent_class: Option<String>,
}

/// How many lines were read and what became of them. Lines behind the one that wakes are not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// All lines looked at: noise, unread and late ones, and the one that wakes.
    pub read: u64,
    /// Lines that are no calls, by reason.
    pub noise: BTreeMap<NoiseReason, u64>,
    /// Lines whose format is not understood.
    pub unread: u64,
    /// Lines older than the caller's oldest, which were not judged.
    pub late: u64,
}

/// Why a batch could not be read to its end. No call was found before that place; one behind it is lost, so this is an
/// error to be told, not a quiet batch. No variant holds text of the batch.
#[derive(Debug, thiserror::Error)]
pub enum BatchFault {
    /// Not base64 from the given place on.
    #[error("awslogs.data: not base64 at character {at}")]
    NotBase64 {
        /// Place in the data, from 0.
        at: usize,
    },
    /// No gzip, or gzip that breaks off or is corrupt.
    #[error("awslogs.data: not gzip, or broken")]
    NotGzip(#[source] io::Error),
    /// What was packed is no JSON, or breaks off.
    #[error("awslogs.data: not JSON at line {line}, byte {byte}")]
    NotJson {
        /// Line of the inflated text, from 1.
        line: usize,
        /// Byte in that line.
        byte: usize,
    },
    /// JSON, but with a field of another type than a batch has.
    #[error("awslogs.data: JSON of another shape than a log batch at line {line}, byte {byte}")]
    NotABatch {
        /// Line of the inflated text, from 1.
        line: usize,
        /// Byte in that line.
        byte: usize,
    },
    /// A batch without a field that every batch has.
    #[error("awslogs.data: {field} is missing")]
    Missing {
        /// Name of the field.
        field: &'static str,
    },
}

/// Reads `awslogs.data` up to the first line that wakes.
///
/// `filter_for` gives the filter of a log group; without one no line is judged. Lines whose event is older than
/// `oldest` are late and do not wake: a delivery repeated hours later must not start a node. An event without a
/// timestamp is not late. A batch that inflates to exactly `max_inflated_bytes` is read. Memory follows the packed batch
/// and its longest string, not what it inflates to; a batch forged as one string takes up to three times `max_inflated_bytes`, so
/// set that below a third of the function's memory.
///
/// # Errors
/// The batch is broken and no line before that place wakes.
pub fn read<'f>(
    data: &str,
    max_inflated_bytes: u64,
    oldest: DateTime<Utc>,
    filter_for: impl Fn(&str) -> Option<&'f Filter>,
) -> Result<Batch, BatchFault> {
    let mut pass = Pass::new(oldest, &filter_for);
    if usual::run(&mut pass, data, max_inflated_bytes).is_some() {
        return pass.finish(Ok(()));
    }
    read_any(data, max_inflated_bytes, oldest, &filter_for)
}

/// The way that takes any JSON, and judges what is broken.
fn read_any(
    data: &str,
    max_inflated_bytes: u64,
    oldest: DateTime<Utc>,
    filter_for: Filters,
) -> Result<Batch, BatchFault> {
    let mut pass = Pass::new(oldest, filter_for);
    let mut ended = pass.run(data, max_inflated_bytes);
    if pass.needs_second_pass() {
        pass.message_type.get_or_insert_with(|| DATA_MESSAGE.to_owned());
        ended = pass.run(data, max_inflated_bytes);
    }
    pass.finish(ended)
}

/// The filter of a log group, where it has one.
type Filters<'p, 'f> = &'p dyn Fn(&str) -> Option<&'f Filter>;

/// One way through the batch. Reading is broken off, with an error that nobody sees, as soon as the outcome is known.
struct Pass<'p, 'f> {
    filter_for: Filters<'p, 'f>,
    oldest: DateTime<Utc>,
    message_type: Option<String>,
    log_group: Option<String>,
    seen_events: bool,
    /// Lines came before the header and were skipped.
    skipped_events: bool,
    outcome: Option<Outcome>,
    counts: Counts,
    unread_sample: Option<String>,
    agents: KnownAgents,
}

impl<'p, 'f> Pass<'p, 'f> {
    fn new(oldest: DateTime<Utc>, filter_for: Filters<'p, 'f>) -> Self {
        Pass {
            filter_for,
            oldest,
            message_type: None,
            log_group: None,
            seen_events: false,
            skipped_events: false,
            outcome: None,
            counts: Counts::default(),
            unread_sample: None,
            agents: KnownAgents::default(),
        }
    }

    fn run(&mut self, data: &str, max_inflated_bytes: u64) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_reader(inflated(data, max_inflated_bytes));
        json.deserialize_map(self)?;
        // Reads on to the check sum of the gzip.
        json.end()
    }

    fn needs_second_pass(&self) -> bool {
        self.outcome.is_none() && self.skipped_events && self.log_group.is_some()
    }

    fn finish(self, ended: Result<(), serde_json::Error>) -> Result<Batch, BatchFault> {
        let outcome = match (self.outcome, ended) {
            (Some(outcome), _) => outcome,
            (None, Err(error)) if error.io_error_kind() == Some(io::ErrorKind::FileTooLarge) => Outcome::TooLarge,
            (None, Err(error)) => return Err(fault(error)),
            (None, Ok(())) if self.log_group.is_none() => return Err(BatchFault::Missing { field: "logGroup" }),
            (None, Ok(())) if !self.seen_events => return Err(BatchFault::Missing { field: "logEvents" }),
            (None, Ok(())) => Outcome::Quiet,
        };
        let Pass { log_group, counts, unread_sample, .. } = self;
        Ok(Batch { log_group, outcome, counts, unread_sample })
    }

    fn read_message_type<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        let text = map.next_value::<Option<Text>>()?.map(Text::into_string);
        // Of two the first stands, as with the group: a later one does not take back lines that were judged.
        if self.message_type.is_none() && text.as_deref().is_some_and(|text| text != DATA_MESSAGE) {
            return self.stop(Outcome::Control);
        }
        self.message_type = self.message_type.take().or(text);
        Ok(())
    }

    fn read_log_group<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        let text = map.next_value::<Option<Text>>()?.map(Text::into_string);
        self.log_group = self.log_group.take().or(text);
        Ok(())
    }

    fn read_log_events<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        self.seen_events = true;
        let (Some(_), Some(log_group)) = (&self.message_type, &self.log_group) else {
            self.skipped_events = true;
            return map.next_value::<IgnoredAny>().map(drop);
        };
        match (self.filter_for)(log_group) {
            Some(filter) => map.next_value_seed(Events { pass: self, filter }),
            None => self.stop(Outcome::Ignored),
        }
    }

    fn take<E: serde::de::Error>(&mut self, event: Event, filter: &Filter) -> Result<(), E> {
        self.counts.read += 1;
        let at = event.timestamp.and_then(DateTime::from_timestamp_millis);
        if at.is_some_and(|at| at < self.oldest) {
            self.counts.late += 1;
            return Ok(());
        }
        let text = event.message.unwrap_or_default().0;
        let Some(line) = filter.read(&text) else {
            self.counts.unread += 1;
            self.unread_sample.get_or_insert_with(|| sample(&String::from_utf8_lossy(&text)));
            return Ok(());
        };
        match filter.judge_known(&line, &mut self.agents) {
            Verdict::Wakes => self.stop(Outcome::Woken(woken_by(filter, &line, at))),
            Verdict::Noise(reason) => {
                *self.counts.noise.entry(reason).or_default() += 1;
                Ok(())
            }
        }
    }

    fn stop<E: serde::de::Error>(&mut self, outcome: Outcome) -> Result<(), E> {
        self.outcome = Some(outcome);
        Err(E::custom("the outcome is known"))
    }
}

fn woken_by(filter: &Filter, line: &RequestLine, at: Option<DateTime<Utc>>) -> Woken {
    Woken {
        at: at.or(line.at),
        method: line.method.clone(),
        path: shown(&line.path),
        path_class: filter.path_class(line).map(str::to_owned),
        agent_class: line.agent_class(),
    }
}

fn fault(error: serde_json::Error) -> BatchFault {
    let (line, byte) = (error.line(), error.column());
    match error.classify() {
        Category::Io => io_fault(error.into()),
        Category::Syntax | Category::Eof => BatchFault::NotJson { line, byte },
        Category::Data => BatchFault::NotABatch { line, byte },
    }
}

fn io_fault(error: io::Error) -> BatchFault {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(NotBase64(at)) => BatchFault::NotBase64 { at: *at },
        None => BatchFault::NotGzip(error),
    }
}

// ---- JSON ----

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    MessageType,
    LogGroup,
    LogEvents,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    timestamp: Option<i64>,
    #[serde(default)]
    message: Option<Text>,
}

impl<'de> Visitor<'de> for &mut Pass<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a log batch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key()? {
            match field {
                Field::MessageType => self.read_message_type(&mut map)?,
                Field::LogGroup => self.read_log_group(&mut map)?,
                Field::LogEvents => self.read_log_events(&mut map)?,
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Takes the events one by one as they are parsed.
struct Events<'e, 'p, 'f> {
    pass: &'e mut Pass<'p, 'f>,
    filter: &'f Filter,
}

impl<'de> DeserializeSeed<'de> for Events<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("log events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element()? {
            self.pass.take(event, self.filter)?;
        }
        Ok(())
    }
}

/// A JSON string as bytes, cut at the longest line: serde_json checks neither UTF-8 nor surrogates in bytes, so that one
/// odd line does not hide the others (field case 29).
#[derive(Default)]
pub(crate) struct Text(pub(crate) Vec<u8>);

impl Text {
    fn into_string(self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
        Ok(Text(bytes[..bytes.len().min(MAX_LINE_BYTES)].to_vec()))
    }
}

// ---- base64 and gzip ----

/// Compressed bytes that are inflated at a time. A corrupt place costs what is inflated together with it, so small
/// steps save the good lines before it.
const STEP_BYTES: usize = 64;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn inflated(data: &str, max_bytes: u64) -> impl Read {
    let data = data.trim_end().as_bytes();
    let sound = sound_base64(data);
    let decoder = DecoderReader::new(&data[..sound], &BASE64).chain(BrokenAt((sound < data.len()).then_some(sound)));
    let gzip = MultiGzDecoder::new(BufReader::with_capacity(STEP_BYTES, decoder));
    BufReader::new(Capped { inner: gzip, left: max_bytes })
}

/// How much of the text is base64 that a decoder takes: all of it, or the whole groups before the first odd character.
fn sound_base64(text: &[u8]) -> usize {
    let is_digit = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let digits = text.iter().take_while(|b| is_digit(b)).count();
    let padding = &text[digits..];
    let whole = digits % 4 != 1 && padding.len() <= (4 - digits % 4) % 4 && padding.iter().all(|b| *b == b'=');
    if whole { text.len() } else { digits / 4 * 4 }
}

#[derive(Debug, thiserror::Error)]
#[error("not base64 at character {0}")]
struct NotBase64(usize);

/// Ends a stream, with a fault if there is one.
struct BrokenAt(Option<usize>);

impl Read for BrokenAt {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.map_or(Ok(0), |at| Err(io::Error::new(io::ErrorKind::InvalidData, NotBase64(at))))
    }
}

/// Fails with `FileTooLarge` at the first byte over the limit; plain `take` would look like text that breaks off.
struct Capped<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let more = self.inner.read(&mut [0])? > 0;
            return if more { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(0) };
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..room])?;
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
#[path = "log_batch_tests.rs"]
mod tests;
