//! What happens from outside, in order of time: calls, and the pre-warms that announce them or lead nowhere.

use crate::trace::{Call, Calls, TraceFault};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, LogNormal};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No pre-warm is longer before its call: a call further off announces nothing.
const LONGEST_LEAD: i64 = 3600;
/// An entry that leads nowhere keeps the calls' rhythm without lying beside one: it comes at about the time of day of a call of
/// the day before or after.
const A_DAY_OFF: i64 = 86_400;
const ABOUT: i64 = 3600;
/// So far before a call one of its entries may lie.
const FURTHEST: i64 = A_DAY_OFF + ABOUT;

/// How the app's entry announces calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Announced {
    /// The share of the calls that an entry announces.
    pub share: f64,
    /// Half of the entries come at least so long before their call, in seconds.
    pub lead_seconds: f64,
    /// The standard deviation of the lead's logarithm.
    pub lead_sigma: f64,
    /// The share of the entries that lead to no call.
    pub without_call: f64,
}

impl Default for Announced {
    fn default() -> Self {
        Self { share: 0.95, lead_seconds: 45.0, lead_sigma: 0.6, without_call: 0.5 }
    }
}

/// Something from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// When, in seconds since 1970.
    pub at: i64,
    /// What.
    pub what: Outside,
}

/// What happens. At the same second an entry comes before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// Somebody opens the app.
    Entry,
    /// Somebody calls, for so long once the call is connected.
    Call {
        /// In seconds.
        lasts: i64,
    },
}

/// The calls of a trace with their entries. An entry lies before its call, and one that leads nowhere a day off, so calls
/// are read a day and an hour ahead.
pub struct Events {
    calls: Calls,
    announced: Announced,
    lead: LogNormal<f64>,
    random: StdRng,
    held: BinaryHeap<Reverse<Event>>,
    /// No event before this is to come any more.
    known_to: i64,
    is_over: bool,
    from: i64,
    to: i64,
}

impl Events {
    /// Of what counts from `from` to `to`. None where the lead is no distribution: its median is not above zero, or its spread
    /// is no number.
    pub fn new(calls: Calls, announced: Announced, (from, to): (i64, i64), seed: u64) -> Option<Self> {
        let lead = LogNormal::new(announced.lead_seconds.ln(), announced.lead_sigma).ok()?;
        let random = StdRng::seed_from_u64(seed ^ 0x0065_6e74_7279);
        let (held, known_to, is_over) = (BinaryHeap::new(), i64::MIN, false);
        Some(Self { calls, announced, lead, random, held, known_to, is_over, from, to })
    }

    /// The next event.
    ///
    /// # Errors
    /// As for [`Calls::next_call`].
    pub fn next_event(&mut self) -> Result<Option<Event>, TraceFault> {
        loop {
            while !self.is_over && self.held.peek().is_none_or(|Reverse(first)| first.at > self.known_to) {
                match self.calls.next_call()? {
                    Some(call) => self.announce(call),
                    None => self.is_over = true,
                }
            }
            // One that does not count says nothing of the next, before which others may be to come.
            match self.held.pop() {
                Some(Reverse(event)) if !(self.from..self.to).contains(&event.at) => {}
                event => return Ok(event.map(|Reverse(event)| event)),
            }
        }
    }

    fn announce(&mut self, call: Call) {
        self.known_to = call.at - FURTHEST;
        self.held.push(Reverse(Event { at: call.at, what: Outside::Call { lasts: call.lasts } }));
        if self.random.random_bool(self.announced.share) {
            let lead = (self.lead.sample(&mut self.random).round() as i64).clamp(0, LONGEST_LEAD);
            self.held.push(Reverse(Event { at: call.at - lead, what: Outside::Entry }));
        }
        let mut nowhere = self.announced.share * self.announced.without_call / (1.0 - self.announced.without_call);
        while nowhere > 0.0 {
            if self.random.random_bool(nowhere.min(1.0)) {
                let day = if self.random.random_bool(0.5) { A_DAY_OFF } else { -A_DAY_OFF };
                let off = day + self.random.random_range(-ABOUT..=ABOUT);
                self.held.push(Reverse(Event { at: call.at + off, what: Outside::Entry }));
            }
            nowhere -= 1.0;
        }
    }
}
