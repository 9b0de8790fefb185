//! A state of the exploration: the world, the runs under way, and what the laws need of what has been.

use crate::process::{Keyed, Process};
use reveille::domain::{AlertKey, Instant, NodeId, NodeSeen};
use reveille::run::Call;
use reveille::world::World;
use std::collections::{BTreeMap, BTreeSet};

/// What is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Law {
    /// Nobody who was told ready loses the node to us.
    Ready,
    /// No live lease loses its node to us.
    Lease,
    /// Unknown stops no node.
    Unknown,
    /// One reading that lags stops no node.
    Readings,
    /// No more is started than is wanted and not there.
    Supply,
    /// Without a crash no message goes out twice.
    Twice,
    /// Every wanted node ends started, or somebody was told.
    Wanted,
    /// Every idle node ends stopped, or a person was told.
    Idle,
}

/// What may still go wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    /// Calls that fail: refused, unanswered without or with effect, or taking effect late.
    pub(crate) faults: u8,
    /// Runs that die between two calls.
    pub(crate) deaths: u8,
    /// Answers that show an earlier instant.
    pub(crate) stale: u8,
    /// Ledger updates that are sent again after they took effect.
    pub(crate) repeats: u8,
}

/// A START or STOP that was sent and not answered: it takes effect until then, or never.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flight {
    pub(crate) call: Call,
    pub(crate) by: String,
    pub(crate) until: Instant,
}

impl std::hash::Hash for Flight {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (format!("{:?}", self.call), &self.by, self.until).hash(state);
    }
}

/// A node as EC2 may still show it, though it is so no more.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct View {
    pub(crate) seen: NodeSeen,
    pub(crate) ended: Instant,
}

/// What the laws need of the past.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct Book {
    pub(crate) broken: Option<Law>,
    /// When each node was last said to be ready to somebody who wants it.
    pub(crate) ready: BTreeMap<NodeId, Instant>,
    /// The wakes that were recorded and neither met nor answered with a refusal.
    pub(crate) unmet: BTreeSet<String>,
    /// Messages that went out.
    pub(crate) told: BTreeSet<AlertKey>,
    /// A run died, or a call about a message failed.
    pub(crate) crashed: bool,
    /// Nodes that a person has started or stopped.
    pub(crate) by_hand: BTreeSet<NodeId>,
}

/// A state.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct State {
    pub(crate) world: Keyed<World>,
    pub(crate) live: Vec<Keyed<Process>>,
    /// The next instant of the schedule.
    pub(crate) next: usize,
    pub(crate) flights: Vec<Flight>,
    pub(crate) views: Vec<View>,
    pub(crate) left: Budget,
    /// Which of a person's acts are still to come.
    pub(crate) hands: u8,
    pub(crate) book: Keyed<Book>,
    /// The calm after the schedule is over too.
    pub(crate) is_over: bool,
}
