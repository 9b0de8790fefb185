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

/// The calls of a trace with their entries. An entry lies before its call, so calls are read an hour ahead.
pub struct Events {
    calls: Calls,
    announced: Announced,
    lead: LogNormal<f64>,
    random: StdRng,
    held: BinaryHeap<Reverse<Event>>,
    /// No event before this is to come any more.
    known_to: i64,
    is_over: bool,
}

impl Events {
    /// None where the lead is no distribution: its median is not above zero, or its spread is no number.
    pub fn new(calls: Calls, announced: Announced, seed: u64) -> Option<Self> {
        let lead = LogNormal::new(announced.lead_seconds.ln(), announced.lead_sigma).ok()?;
        let random = StdRng::seed_from_u64(seed ^ 0x0065_6e74_7279);
        let (held, known_to, is_over) = (BinaryHeap::new(), i64::MIN, false);
        Some(Self { calls, announced, lead, random, held, known_to, is_over })
    }

    /// The next event.
    ///
    /// # Errors
    /// As for [`Calls::next_call`].
    pub fn next_event(&mut self) -> Result<Option<Event>, TraceFault> {
        while !self.is_over && self.held.peek().is_none_or(|Reverse(first)| first.at >= self.known_to) {
            match self.calls.next_call()? {
                Some(call) => self.announce(call),
                None => self.is_over = true,
            }
        }
        Ok(self.held.pop().map(|Reverse(event)| event))
    }

    fn announce(&mut self, call: Call) {
        self.known_to = call.at - LONGEST_LEAD;
        self.held.push(Reverse(Event { at: call.at, what: Outside::Call { lasts: call.lasts } }));
        if self.random.random_bool(self.announced.share) {
            let lead = (self.lead.sample(&mut self.random).round() as i64).clamp(0, LONGEST_LEAD);
            self.held.push(Reverse(Event { at: call.at - lead, what: Outside::Entry }));
        }
        // Entries that lead nowhere keep the calls' rhythm: each lies within an hour of a call.
        let mut nowhere = self.announced.share * self.announced.without_call / (1.0 - self.announced.without_call);
        while nowhere > 0.0 {
            if self.random.random_bool(nowhere.min(1.0)) {
                let off = self.random.random_range(-LONGEST_LEAD..=LONGEST_LEAD);
                self.held.push(Reverse(Event { at: call.at + off, what: Outside::Entry }));
            }
            nowhere -= 1.0;
        }
    }
}
