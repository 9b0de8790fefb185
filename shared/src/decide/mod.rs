//! The rules. Each file answers one question with values: no clock, no client, no error. Rules run top down and the first
//! that applies wins; each names one [`Reason`].

pub mod blind;
pub mod budget;
pub mod idle;
mod reason;
pub mod uptime;
pub mod wake;

pub use reason::{Question, Reason};

use crate::domain::{InstanceType, Instant, NodeRecord, NodeSeen, Phase, WakeSource};
use crate::observation::{UseReading, phase};

/// One node as one run sees it: the describe, the ledger and the signals side by side.
#[derive(Debug, Clone)]
pub struct Look {
    /// What EC2 says.
    pub seen: NodeSeen,
    /// What the ledger holds.
    pub record: NodeRecord,
    /// The pool's demand counter, as read with the record.
    pub demand: u64,
    /// The newest wake that may mean this node.
    pub wake: Option<Instant>,
    /// Where that wake came from.
    pub wake_source: Option<WakeSource>,
    /// Its use. Only asked for where the node runs.
    pub used: UseReading,
    /// The instant of the look.
    pub now: Instant,
    /// Since when the pool is drained: its gate is closed and running nodes are to stop once no call is left.
    pub drained_since: Option<Instant>,
    /// Whether a signal shows calls in progress; without one a call may be open that nobody sees.
    pub observes_calls: bool,
    /// The instance types the pool allows, the preferred one first; empty where the type is never changed.
    pub types: Vec<InstanceType>,
}

impl Look {
    /// What is held to be true of the node.
    pub fn phase(&self) -> Phase {
        phase(&self.seen, &self.record, self.now)
    }
}
