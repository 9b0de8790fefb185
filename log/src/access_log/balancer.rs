//! Lines of an Application Load Balancer: fields in the order of the AWS page "Access logs for your Application Load
//! Balancer".

use super::fields::{Field, Fields, line_of};
use super::took::{self, Unit};
use super::{RequestLine, status_of, time_of};
use chrono::TimeDelta;

/// First fields of a line.
const TYPES: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// Whether a line that begins so may be one.
pub(super) fn may_begin(line: &[u8]) -> bool {
    // Most lines begin with an address.
    line.first().is_some_and(u8::is_ascii_alphabetic) && TYPES.iter().any(|kind| line.starts_with(kind))
}

/// Type, time, balancer, client, target, three durations, status, target status, two sizes, request, agent, seven
/// more, time of creation. The first time is the end: when the response was generated or the WebSocket was closed.
pub(super) fn read(line: &[u8]) -> Option<RequestLine> {
    let mut fields = Fields(line);
    fields.next().filter(|kind| TYPES.contains(&kind.raw))?;
    let at = time_of(&fields.next()?.text())?;
    let waits = [fields.nth(3)?, fields.next()?, fields.next()?];
    let status = status_of(&fields.next()?.text())?;
    let request = fields.nth(3)?.text();
    let agent = fields.next().map(|field| field.text());
    let created = fields.nth(7).and_then(|field| time_of(&field.text()));
    let took = sum(&waits).max(created.and_then(|created| took::between(created, at)));
    line_of(&request, status, agent, Some(at), took)
}

/// Request, target and response time, in seconds. They end at the response's first byte, so a WebSocket of hours has
/// milliseconds here; its creation time tells. `-1` stands for a part that did not happen: then the sum says nothing.
fn sum(waits: &[Field; 3]) -> Option<TimeDelta> {
    waits.iter().try_fold(TimeDelta::zero(), |sum, wait| sum.checked_add(&took::of_text(&wait.text(), Unit::Seconds)?))
}
