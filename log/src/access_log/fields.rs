//! Blank-separated fields, some of them quoted.

use super::{RequestLine, Stamp, hex_byte, no_request, split_request};
use chrono::{DateTime, TimeDelta, Utc};
use memchr::{memchr, memchr2};

/// A line of these parts. One with a time but without a request is a connection that sent none; without a time it is
/// some other text.
pub(super) fn line_of(
    request: &str,
    status: Option<u16>,
    agent: Option<String>,
    at: Option<DateTime<Utc>>,
    took: Option<TimeDelta>,
) -> Option<RequestLine> {
    let (method, path) = split_request(request).or_else(|| at.map(|_| no_request()))?;
    let agent = agent.filter(|agent| agent != "-" && !agent.is_empty());
    Some(RequestLine { method, path, status, agent, at, stamp: Stamp::End, took })
}

pub(super) fn unescaped_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..)?) {
        at += found;
        if bytes[at] == b'"' {
            return Some(at);
        }
        // The backslash, and what it is for.
        at += 2;
    }
    None
}

pub(super) struct Field<'a> {
    pub(super) raw: &'a [u8],
    pub(super) quoted: bool,
}

impl Field<'_> {
    pub(super) fn text(&self) -> String {
        unescape(self.raw)
    }
}

/// Fields from left to right; a quoted one that is cut off runs to the end of the line.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let rest = self.0.trim_ascii_start();
        let quoted = *rest.first()? == b'"';
        let body = if quoted { &rest[1..] } else { rest };
        let end = if quoted { unescaped_quote(body) } else { body.iter().position(u8::is_ascii_whitespace) };
        let (raw, rest) = body.split_at(end.unwrap_or(body.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        Some(Field { raw, quoted })
    }
}

/// Undoes `\"`, `\\` and `\xNN`; what is then not UTF-8 is replaced.
fn unescape(raw: &[u8]) -> String {
    if memchr(b'\\', raw).is_none() {
        return String::from_utf8_lossy(raw).into_owned();
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [first, after @ ..] = rest {
        let (byte, length) = match after {
            [b'x', high, low, ..] if *first == b'\\' => hex_byte(*high, *low).map_or((b'\\', 1), |byte| (byte, 4)),
            [mark @ (b'"' | b'\\'), ..] if *first == b'\\' => (*mark, 2),
            _ => (*first, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
