//! Combined and common lines, and what else has a quoted request followed by a status.

use super::fields::{Field, Fields, line_of, unescaped_quote};
use super::took::{self, Unit};
use super::{RequestLine, Stamp, status_of, time_of};
use chrono::{DateTime, TimeDelta, Utc};

/// How much of the format a line has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request and a status are enough.
    Any,
    /// With a time, and a referer in quotes; the agent behind it may be cut off.
    Combined,
    /// With a time, and nothing in quotes but the request: a combined line read as common would lose its agent, and a
    /// health check would be a call.
    Common,
}

/// The first quoted field is the request, because nginx and Apache escape every quote that a client can bring in; the
/// time is the last bracket before it. nginx writes the time of the end, Apache's `%t` is the start; a line of either
/// has no duration, so both are one instant.
pub(super) fn read(line: &[u8], kind: Kind) -> Option<RequestLine> {
    let (head, tail) = line.split_at(unescaped_quote(line)?);
    let at = last_bracket(head).and_then(|text| time_of(&text));
    let mut fields = Fields(tail);
    let request = fields.next()?.text();
    let status = status_of(&fields.next()?.text())?;
    let rest: Vec<Field> = fields.collect();
    if !kind.fits(at, &rest) {
        return None;
    }
    let agent = rest.iter().filter(|field| field.quoted).nth(1).map(Field::text);
    Some(timed(line_of(&request, status, agent, at, None)?, &rest))
}

impl Kind {
    fn fits(self, at: Option<DateTime<Utc>>, rest: &[Field]) -> bool {
        let quoted = rest.iter().filter(|field| field.quoted).count();
        match self {
            Kind::Any => true,
            Kind::Combined => at.is_some() && quoted > 0,
            Kind::Common => at.is_some() && quoted == 0,
        }
    }
}

/// Traefik ends its lines with the duration, unit and all (`12ms`), and writes the time of the start. A bare number there
/// may be anything and is not read.
fn timed(line: RequestLine, rest: &[Field]) -> RequestLine {
    match rest.last().filter(|field| !field.quoted).and_then(millis) {
        Some(took) => RequestLine { took: Some(took), stamp: Stamp::Start, ..line },
        None => line,
    }
}

fn millis(field: &Field) -> Option<TimeDelta> {
    let number = std::str::from_utf8(field.raw).ok()?.strip_suffix("ms")?;
    took::of_number(number.parse().ok()?, Unit::Millis)
}

/// Whether what stands before the request holds a time that is understood.
pub(super) fn has_time(head: &[u8]) -> bool {
    last_bracket(head).and_then(|text| time_of(&text)).is_some()
}

fn last_bracket(head: &[u8]) -> Option<String> {
    let open = head.iter().rposition(|b| *b == b'[')?;
    let length = head[open..].iter().position(|b| *b == b']')?;
    Some(String::from_utf8_lossy(&head[open + 1..open + length]).into_owned())
}
