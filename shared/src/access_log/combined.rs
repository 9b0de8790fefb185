//! Lines of blank-separated fields with a quoted request: combined, common, load balancer.

use super::{RequestLine, hex_byte, no_request, split_request, status_of, time_of};
use chrono::{DateTime, Utc};

/// First fields of an Application Load Balancer line.
const BALANCER_TYPES: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

pub(super) fn read(line: &[u8]) -> Option<RequestLine> {
    balancer(line).or_else(|| quoted_request_then_status(line))
}

/// Combined and common, and what is like them. The first quoted field is the request, because nginx and Apache escape
/// every quote that a client can bring in; the time is the last bracket before it.
fn quoted_request_then_status(line: &[u8]) -> Option<RequestLine> {
    let (head, tail) = line.split_at(unescaped_quote(line)?);
    let at = last_bracket(head).and_then(|text| time_of(&text));
    let mut fields = Fields(tail);
    let request = fields.next()?.text();
    let status = status_of(&fields.next()?.text())?;
    let agent = fields.filter(|field| field.quoted).nth(1);
    line_of(&request, status, agent, at)
}

/// Type, time, balancer, client, target, three durations, status, target status, two sizes, request, agent: the order
/// of the AWS page "Access logs for your Application Load Balancer".
fn balancer(line: &[u8]) -> Option<RequestLine> {
    let mut fields = Fields(line);
    fields.next().filter(|kind| BALANCER_TYPES.contains(&kind.raw))?;
    let at = time_of(&fields.next()?.text())?;
    let status = status_of(&fields.nth(6)?.text())?;
    let request = fields.nth(3)?.text();
    line_of(&request, status, fields.next(), Some(at))
}

/// A line with a time but without a request is a connection that sent none; without a time it is some other text.
fn line_of(request: &str, status: Option<u16>, agent: Option<Field>, at: Option<DateTime<Utc>>) -> Option<RequestLine> {
    let (method, path) = split_request(request).or_else(|| at.map(|_| no_request()))?;
    let agent = agent.map(|field| field.text()).filter(|agent| agent != "-" && !agent.is_empty());
    Some(RequestLine { method, path, status, agent, at })
}

fn last_bracket(head: &[u8]) -> Option<String> {
    let open = head.iter().rposition(|b| *b == b'[')?;
    let length = head[open..].iter().position(|b| *b == b']')?;
    Some(String::from_utf8_lossy(&head[open + 1..open + length]).into_owned())
}

fn unescaped_quote(bytes: &[u8]) -> Option<usize> {
    let mut escaped = false;
    bytes.iter().position(|b| {
        let found = *b == b'"' && !escaped;
        escaped = *b == b'\\' && !escaped;
        found
    })
}

struct Field<'a> {
    raw: &'a [u8],
    quoted: bool,
}

impl Field<'_> {
    fn text(&self) -> String {
        unescape(self.raw)
    }
}

/// Fields from left to right; a quoted one that is cut off runs to the end of the line.
struct Fields<'a>(&'a [u8]);

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
