//! One day of a small team on virtual time: the built functions against the local AWS.

mod alarm;
mod checks;
mod driver;
mod scenes;
pub mod trace;

pub use checks::Money;
pub use driver::run;
pub use scenes::{AMOUNT_USD, Nodes, open};

use crate::report::{Event, GateClosed, Message};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// Everything that happened, as the checks and the report see it.
#[derive(Debug, Default)]
pub struct DayLog {
    /// The node that serves the calls.
    pub voice: String,
    /// The node of the long job.
    pub batch: String,
    /// The node of the laboratory.
    pub lab: String,
    /// In order of time.
    pub events: Vec<Event>,
    /// EC2's states of each node, from each instant on.
    pub states: BTreeMap<String, Vec<(DateTime<Utc>, String)>>,
    /// The calls that were made.
    pub calls: Vec<CallSeen>,
    /// Leases that were given.
    pub leases: usize,
    /// How often one was renewed.
    pub renewals: usize,
    /// Renewals and ends of leases that were refused.
    pub lost_leases: usize,
    /// When an app died in the middle of its call.
    pub died: Option<DateTime<Utc>>,
    /// The pre-warms.
    pub prewarms: Vec<DateTime<Utc>>,
    /// Noise lines by batch.
    pub noise: Vec<(DateTime<Utc>, u64)>,
    /// When the node was started by hand.
    pub started_by_hand: Option<DateTime<Utc>>,
    /// When a wake met a node that was going down.
    pub met_stopping: Option<DateTime<Utc>>,
    /// When somebody opened the app while the gate was closed, and what that was answered.
    pub refused_by_gate: Option<(DateTime<Utc>, u16, String)>,
    /// When the gate was closed.
    pub gates: Vec<GateClosed>,
    /// The guard's own estimate of the month and AWS's figure, in dollars, at each of its runs.
    pub spend: Vec<(DateTime<Utc>, f64, f64)>,
    /// Messages as they arrived at the topic.
    pub messages: Vec<Message>,
    /// What each of them is about, as its attribute `key` says.
    pub message_keys: Vec<String>,
    /// AWS calls of the functions, by action.
    pub aws_calls: BTreeMap<String, usize>,
}

/// One call as it went.
#[derive(Debug, Clone)]
pub struct CallSeen {
    /// When the caller wanted to talk.
    pub at: DateTime<Utc>,
    /// When the call was connected; absent if the caller gave up after 90 s, or was refused.
    pub connected: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended: Option<DateTime<Utc>>,
    /// Whether the app announced it.
    pub announced: bool,
    /// Whether it was refused by the closed gate, with a reason.
    pub refused: bool,
}

impl DayLog {
    /// Shows people a node by its Name tag instead of its id.
    pub fn call_by_name(&mut self, id: &str, name: &str) {
        for event in self.events.iter_mut().filter(|event| event.node.as_deref() == Some(id)) {
            event.node = Some(name.to_owned());
        }
        if let Some(states) = self.states.remove(id) {
            self.states.insert(name.to_owned(), states);
        }
        for known in [&mut self.voice, &mut self.batch, &mut self.lab] {
            if known == id {
                name.clone_into(known);
            }
        }
    }
}
