//! The rules. Each file answers one question with values: no clock, no client, no error. Rules run top down and the first
//! that applies wins; each names one [`Reason`].

pub mod blind;
pub mod budget;
pub mod idle;
pub mod lease;
mod reason;
pub mod uptime;
pub mod wake;

pub use reason::{Question, Reason};

use crate::domain::{InstanceType, Instant, NodeRecord, NodeSeen, NodeState, Phase, TagHold, WakeSource};
use crate::observation::{UseReading, phase};
use crate::policy::Policy;

/// Whether a node is ready, by what its pool is configured to believe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It is, and since when if that is known to the second.
    Ready(Option<Instant>),
    /// It is not.
    NotReady,
    /// It was not asked, or could not be read: what the ledger knows stands.
    Unknown,
}

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
    /// The beginning of a path that it asked for.
    pub wake_path: Option<String>,
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
    /// What was just read of its readiness; the ledger's fact already says the same.
    pub readiness: Readiness,
    /// What its tags say of a hold.
    pub tag_hold: TagHold,
    /// It is one of the nodes that a warm window wants now.
    pub warm: bool,
    /// It is one of the nodes that the calls in progress and waiting want now.
    pub reserve: bool,
}

impl Look {
    /// What is held to be true of the node.
    pub fn phase(&self) -> Phase {
        phase(&self.seen, &self.record, self.now)
    }

    /// Whether a person holds it, by its tags or in the ledger.
    pub fn is_held(&self) -> bool {
        self.tag_hold.keeps(self.now) || self.record.hold.as_ref().is_some_and(|hold| self.now < hold.until)
    }

    /// Since when it has been ready no more, where it runs, is known not to be ready, was ready since its launch, and that
    /// is longer ago than a start may take: whoever waits for it may wait for ever.
    pub fn out_since(&self, policy: &Policy) -> Option<Instant> {
        let ready = self.record.ready.as_ref().filter(|ready| ready.launched_at == self.seen.launched_at)?;
        let is_known = self.seen.state == NodeState::Running && self.readiness == Readiness::NotReady;
        ready.lost_at.filter(|lost| is_known && self.now - *lost >= policy.ready_within)
    }

    /// Running, known not to be ready, and never ready since its launch, for longer than a start may take: it will not
    /// become so by itself (field case 42).
    pub fn is_stuck(&self, policy: &Policy) -> bool {
        self.seen.state == NodeState::Running
            && self.readiness == Readiness::NotReady
            && !self.record.was_ready(self.seen.launched_at)
            && self.seen.launched_at.is_some_and(|at| self.now - at >= policy.ready_within)
    }

    /// Running, and no supply: it will not become ready by itself, or is not ready any more for as long. Calls may go on
    /// on the latter.
    pub fn is_of_no_use(&self, policy: &Policy) -> bool {
        self.is_stuck(policy) || self.out_since(policy).is_some()
    }
}
