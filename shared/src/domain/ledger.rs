//! The ledger's item of one pool: demand, claims and the few facts that EC2 cannot tell.

use super::{Instant, NodeId};
use crate::error::{CallError, ErrorClass};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of a function: the Lambda request id. A claim carries it, so that a run knows its own claim again when the
/// answer to the write was lost.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

/// The item `pool#NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PoolRecord {
    /// Moved by every wake; a STOP is claimed only if it has not moved since the decision's look.
    pub demand: u64,
    /// Moved by every claim and every recorded answer.
    pub claims: u64,
    /// The newest wake that asked for any node of the pool.
    pub wake: Option<Wake>,
    /// What is known of each node.
    pub nodes: BTreeMap<NodeId, NodeRecord>,
    /// Attributes that could not be read. They count as absent, except that a node with an unreadable claim is Unknown.
    pub unread: Vec<String>,
}

impl PoolRecord {
    /// The record of one node; an absent one is empty.
    pub fn node(&self, id: &NodeId) -> NodeRecord {
        self.nodes.get(id).cloned().unwrap_or_default()
    }

    /// The newest wake that may mean this node.
    pub fn last_wake(&self, id: &NodeId) -> Option<Instant> {
        let named = self.nodes.get(id).and_then(|node| node.wake.as_ref());
        [self.wake.as_ref(), named].into_iter().flatten().map(|wake| wake.at).max()
    }
}

/// The facts of one node. Each is an attribute of its own, so that writers of different facts never undo each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NodeRecord {
    /// The newest wake that named this node.
    pub wake: Option<Wake>,
    /// The newest claim; it ends by evidence, not by time.
    pub claim: Option<Claim>,
    /// The first of the two idle readings.
    pub mark: Option<Mark>,
    /// Readiness seen since a launch.
    pub ready: Option<ReadyFact>,
    /// The newest refusal, with its backoff.
    pub fault: Option<Fault>,
    /// How long the signals have been unknown.
    pub blind: Option<Blind>,
}

/// Somebody wants a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wake {
    /// When the demand was recorded.
    pub at: Instant,
    /// Where it came from.
    pub source: WakeSource,
}

/// Where a wake came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeSource {
    /// `POST /wake`, the app's call on entry.
    Prewarm,
    /// A line of a request log.
    LogLine,
    /// A log batch too big to read: one wake too many costs half an hour, one too few costs a call.
    UnreadableBatch,
}

/// What a claim is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// One START is sent under it.
    Start,
    /// One STOP is sent under it; until it is proved void the node is read as Stopping.
    Stop,
}

/// The right to send one START or STOP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// START or STOP.
    pub kind: ClaimKind,
    /// The run that claimed.
    pub run: RunId,
    /// When it claimed.
    pub at: Instant,
    /// The LaunchTime it saw. A newer one means that somebody started the node since.
    pub launched_at: Option<Instant>,
    /// The end of the run's time-out: until then an unanswered call may still be in flight.
    pub open_until: Instant,
    /// The newest wake that a STOP's decision had in view: that wake is spent, a later one is not.
    pub wake: Option<Instant>,
    /// How many times in a row this call was claimed without effect, from 1.
    pub tries: u32,
    /// What EC2 answered; absent while unanswered, and after an accepted START (the LaunchTime is its evidence).
    pub answer: Option<ClaimAnswer>,
}

/// What EC2 answered to the call under a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimAnswer {
    /// Done or on its way.
    Accepted,
    /// A START found the node running: no earlier STOP took effect.
    AlreadyRunning,
    /// EC2 said no, or the start fell back: the claim is void.
    Refused,
}

/// The first idle reading: the node was idle at this instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// When the reading was made; a later wake or use voids it.
    pub at: Instant,
    /// The launch the reading belongs to; a later launch voids it.
    pub launched_at: Option<Instant>,
}

/// Readiness was seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReadyFact {
    /// When it was seen first.
    pub at: Instant,
    /// The launch it belongs to; a later launch voids it.
    pub launched_at: Option<Instant>,
}

/// Which call keeps failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// START refused, or accepted and fallen back.
    Start,
    /// STOP refused.
    Stop,
}

/// A refusal that is waited out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fault {
    /// Which call.
    pub kind: FaultKind,
    /// The class, which sets the backoff.
    pub class: ErrorClass,
    /// The service's code.
    pub code: String,
    /// When the first of this row of refusals came.
    pub since: Instant,
    /// How many in a row, from 1.
    pub tries: u32,
    /// No call of this kind before.
    pub retry_at: Instant,
}

impl Fault {
    /// The fault after one more refusal: the row goes on if `earlier` is of the same kind.
    pub fn next(kind: FaultKind, earlier: Option<&Fault>, error: &CallError, now: Instant) -> Fault {
        let row = earlier.filter(|fault| fault.kind == kind);
        let tries = row.map_or(1, |fault| fault.tries.saturating_add(1));
        Fault {
            kind,
            class: error.class,
            code: error.code.clone(),
            since: row.map_or(now, |fault| fault.since),
            tries,
            retry_at: now + error.class.backoff(tries),
        }
    }
}

/// How long a node's signals have been unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Blind {
    /// The first unknown tick.
    pub since: Instant,
    /// The newest unknown tick.
    pub at: Instant,
    /// Unknown ticks in a row, from 1.
    pub ticks: u32,
    /// How many times a person has been told.
    pub told: u32,
}

/// Names one alert: it is sent once for each (node, rule, day or occasion).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AlertKey(pub String);
