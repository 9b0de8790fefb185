//! The way through a batch that is written as CloudWatch Logs writes it: the fields of the header, then the lines, then the
//! end. Several times faster than the way that takes any JSON, because serde_json reads slices much faster than streams.
//!
//! What is found here is what the other way finds; only of a batch whose gzip is broken one may find a call before the broken
//! place that the other does not. Whatever is not as it usually is (other fields behind the lines, a broken place, too many
//! bytes) is left to the other way, which begins anew.

use super::{BASE64, Capped, DATA_MESSAGE, Event, Filter, Outcome, Pass, Text};
use base64::Engine as _;
use chrono::{DateTime, Utc};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::Read;

/// Read at a time. A broken place is found by the other way to the byte.
const CHUNK: usize = 32 * 1024;
/// A header or line that is longer is not usual.
const LONGEST: usize = 2 * 1024 * 1024;

/// As much of the text as is read on for before the next event is looked at.
const NEAR: usize = 4 * 1024;

/// Digits of an event's id.
const ID_DIGITS: usize = 56;
/// Digits of a time in milliseconds, in this century and the next.
const MS_DIGITS: usize = 13;
const MOST_MS: i64 = 9_999_999_999_999;

/// Behind other fields: a quote after a comma is not one within a text.
const LINES: &[u8] = b",\"logEvents\":[";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    message_type: Text,
    log_group: Text,
    /// The beginning of the lines, as an empty list: a second one, however its name is written, is refused.
    #[serde(rename = "logEvents")]
    _log_events: Vec<IgnoredAny>,
}

/// Goes through the batch; `None` where it is not as usual, and then the pass is worth nothing. Compiled here, for speed: what
/// goes into whoever calls it is compiled for size.
#[inline(never)]
pub(super) fn run(pass: &mut Pass, data: &str, max_inflated_bytes: u64) -> Option<()> {
    // In one piece, which is several times as fast: Lambda delivers a megabyte at most.
    let packed = BASE64.decode(data.trim_end()).ok()?;
    let from = Capped { inner: MultiGzDecoder::new(packed.as_slice()), left: max_inflated_bytes };
    let mut text = Window { from, room: vec![0; 2 * CHUNK], at: 0, end: 0, broken: false };
    let header = text.header()?;
    if header.message_type.0 != DATA_MESSAGE.as_bytes() {
        return None;
    }
    let log_group = header.log_group.into_string();
    let filter = (pass.filter_for)(&log_group)?;
    pass.log_group = Some(log_group);
    pass.seen_events = true;
    let oldest = digits(pass.oldest);
    loop {
        if text.glance(pass, filter, &oldest).is_none() {
            let event = text.event()?;
            // An error is how reading is broken off.
            if pass.take::<serde_json::Error>(event, filter).is_err() {
                return matches!(pass.outcome, Some(Outcome::Woken(_))).then_some(());
            }
        }
        match text.next_byte()? {
            b',' => {}
            b']' => return text.ends().then_some(()),
            _ => return None,
        }
    }
}

/// `{"id":"…","timestamp":…,"message":"`: the digits of the time in milliseconds, and where the message begins.
fn beginning(event: &[u8]) -> Option<(&[u8; MS_DIGITS], usize)> {
    let (id, rest) = event.strip_prefix(b"{\"id\":\"")?.split_first_chunk::<ID_DIGITS>()?;
    let (time, rest) = rest.strip_prefix(b"\",\"timestamp\":")?.split_first_chunk()?;
    let rest = rest.strip_prefix(b",\"message\":\"")?;
    let is_usual = is_plain(id) && time.iter().all(u8::is_ascii_digit) && time[0] != b'0';
    is_usual.then_some((time, event.len() - rest.len()))
}

/// Whether an id is of digits, as they are, and of the few signs behind these: none of them is special in JSON. Eight at a
/// time, and not by a loop that the compiler may or may not make such.
fn is_plain(id: &[u8; ID_DIGITS]) -> bool {
    const HIGH: u64 = u64::from_ne_bytes([0xf0; 8]);
    const OF_DIGITS: u64 = u64::from_ne_bytes([0x30; 8]);
    id.as_chunks().0.iter().all(|eight| u64::from_ne_bytes(*eight) & HIGH == OF_DIGITS)
}

/// An instant as the events have it, so that the digits compare as the instants do; one that is out of their reach is later
/// than all of them.
fn digits(at: DateTime<Utc>) -> Vec<u8> {
    format!("{:0MS_DIGITS$}", at.timestamp_millis().clamp(0, MOST_MS)).into_bytes()
}

/// A part of the inflated text, as long as one line at least.
struct Window<R> {
    from: R,
    room: Vec<u8>,
    /// What lies before is done with.
    at: usize,
    /// What lies behind is not read yet.
    end: usize,
    /// Reading has failed: what comes of it is not the end.
    broken: bool,
}

impl<R: Read> Window<R> {
    fn bytes(&self) -> &[u8] {
        &self.room[self.at..self.end]
    }

    /// Reads on; false where that is not possible.
    fn more(&mut self) -> bool {
        self.room.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        if self.end > LONGEST {
            return false;
        }
        // Twice as much, whatever the pieces are that come: a line is parsed anew each time that more of it is there.
        let full = self.end + CHUNK.max(self.end);
        if self.room.len() < full {
            self.room.resize(full, 0);
        }
        let before = self.end;
        while self.end < full {
            match self.from.read(&mut self.room[self.end..full]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(_) => {
                    self.broken = true;
                    break;
                }
            }
        }
        self.end > before
    }

    /// What stands before the lines, as an object of its own: where the mark belongs to something else it is none.
    fn header(&mut self) -> Option<Header> {
        let end = loop {
            match self.bytes().windows(LINES.len()).position(|window| window == LINES) {
                Some(place) => break place + LINES.len(),
                None if self.more() => {}
                None => return None,
            }
        };
        let object = [&self.bytes()[..end], b"]}"].concat();
        self.at += end;
        serde_json::from_slice(&object).ok()
    }

    /// Takes the next event where a glance is enough.
    fn glance(&mut self, pass: &mut Pass, filter: &Filter, oldest: &[u8]) -> Option<()> {
        // An event that is cut off by the window is not one to look at.
        if self.end - self.at < NEAR {
            self.more();
        }
        let (time, begins) = beginning(self.bytes())?;
        // Within its millisecond the other way compares.
        if time.as_slice() <= oldest {
            return None;
        }
        let text = &self.bytes()[begins..];
        let (reason, length) = filter.glance(text, &mut pass.agents)?;
        if text.get(length) != Some(&b'}') {
            return None;
        }
        pass.counts.read += 1;
        *pass.counts.noise.entry(reason).or_default() += 1;
        self.at += begins + length + 1;
        Some(())
    }

    fn event(&mut self) -> Option<Event> {
        loop {
            let mut events = serde_json::Deserializer::from_slice(self.bytes()).into_iter::<Event>();
            match events.next() {
                Some(Ok(event)) => {
                    self.at += events.byte_offset();
                    return Some(event);
                }
                Some(Err(error)) if !error.is_eof() => return None,
                Some(Err(_)) | None => {}
            }
            if !self.more() {
                return None;
            }
        }
    }

    fn next_byte(&mut self) -> Option<u8> {
        if self.bytes().is_empty() && !self.more() {
            return None;
        }
        let byte = self.bytes().first().copied();
        self.at += 1;
        byte
    }

    /// Whether the object ends here, and the gzip with it, check sum and all.
    fn ends(&mut self) -> bool {
        if self.next_byte() != Some(b'}') || !self.bytes().is_empty() || self.broken {
            return false;
        }
        matches!(self.from.read(&mut [0]), Ok(0))
    }
}
