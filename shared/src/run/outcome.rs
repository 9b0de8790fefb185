//! What a run decided and did, as values for logs, answers and tests.

use super::operator::Obeyed;
use crate::decide::Reason;
use crate::domain::{Instant, NodeId, Phase, PoolName, Wake};
use crate::error::{CallError, ErrorClass};
use serde::Serialize;
use serde_json::Value;

/// One decision, as it stands in the `decided` line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decided {
    /// The pool.
    pub pool: PoolName,
    /// The node, where there is one.
    pub node: Option<NodeId>,
    /// `keep`, `mark`, `stop`, `force_stop`, `start` or `nothing`.
    pub action: String,
    /// Why.
    pub reason: Reason,
    /// What the rule saw.
    pub inputs: Value,
    /// The earliest possible stop, where one is in sight.
    pub stops_not_before: Option<Instant>,
    /// The claim counter that the decision saw.
    pub generation: u64,
}

/// Something that happened because of this run, or was seen by it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// A wake was recorded.
    Demand,
    /// A START was accepted.
    Start,
    /// A START was refused, got no answer, or fell back.
    StartFailed,
    /// Readiness was seen for the first time since a launch, or again.
    Ready,
    /// A node that was ready is not ready any more.
    Unready,
    /// A lease was given.
    Leased,
    /// A lease was ended.
    LeaseEnded,
    /// The first idle reading was written down.
    IdleMark,
    /// A STOP was accepted.
    Stop,
    /// A STOP was refused or got no answer.
    StopFailed,
    /// A person was told.
    Alert,
    /// The instance type of a stopped node was changed.
    Resized,
    /// A launch was seen for the first time.
    Launched,
    /// The end of a launch was written down.
    Ended,
    /// The gate was closed.
    GateClosed,
    /// The gate was opened.
    GateOpened,
    /// An operator holds a node.
    Held,
    /// An operator has ended a hold.
    Released,
    /// The AWS budget, its amount or its notifications were made again.
    BudgetRepaired,
    /// A node that could not be judged can be judged again.
    SeesAgain,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// What.
    pub event: EffectKind,
    /// The pool, where it is about one.
    pub pool: Option<PoolName>,
    /// The node, where there is one.
    pub node: Option<NodeId>,
    /// Why, in a few words.
    pub reason: String,
}

/// What a caller is told of one pool (or of one node of it).
#[derive(Debug, Clone, PartialEq)]
pub struct PoolAnswer {
    /// The pool.
    pub pool: PoolName,
    /// The node spoken of.
    pub node: Option<NodeId>,
    /// Its phase, where there is a node.
    pub phase: Option<Phase>,
    /// Why.
    pub reason: Reason,
    /// The code of the refusal that is waited out, where there is one.
    pub fault_code: Option<String>,
    /// Since when that refusal lasts.
    pub fault_since: Option<Instant>,
    /// Ready in about so many seconds, where it is on its way.
    pub ready_in_seconds: Option<i64>,
    /// What all of that takes, from the START or the way down on, in seconds.
    pub boot_seconds: Option<i64>,
    /// How far the last boots lay apart, in seconds, where it was learnt from boots.
    pub spread_seconds: Option<i64>,
    /// The class of the refusal that is waited out.
    pub fault_class: Option<ErrorClass>,
    /// The newest wake that may mean the node: why it is awake.
    pub woken_by: Option<Wake>,
    /// The calls in progress on the node, where leases are taken.
    pub calls: usize,
    /// Not worth asking again before, in seconds.
    pub retry_after_seconds: Option<i64>,
    /// Where a ready node answers.
    pub address: Option<String>,
    /// Why the gate is closed, where it is.
    pub gate_reason: Option<String>,
    /// When a closed gate opens by itself.
    pub gate_until: Option<Instant>,
}

/// A boot whose end was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColdStart {
    /// The pool.
    pub pool: PoolName,
    /// The node.
    pub node: NodeId,
    /// From START to ready.
    pub seconds: i64,
}

/// What a caller is told of a lease.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseAnswer {
    /// It holds this node until then.
    Held {
        /// The pool.
        pool: PoolName,
        /// The node.
        node: NodeId,
        /// Where it answers.
        address: Option<String>,
        /// The end unless it is renewed.
        until: Instant,
    },
    /// It is over, whether it was there or not.
    Over,
    /// It ran out, or its node is gone.
    Ended,
    /// It is somebody else's.
    Foreign,
    /// There is none yet; what the pool's answer says is why.
    NotYet,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// One decision a node (or pool), in the order they were made.
    pub decided: Vec<Decided>,
    /// What was done.
    pub effects: Vec<Effect>,
    /// What the callers are told, one a wish.
    pub answers: Vec<PoolAnswer>,
    /// What the caller is told of its lease, where it asked for one.
    pub lease: Option<LeaseAnswer>,
    /// What became of an operator's order.
    pub obeyed: Option<Obeyed>,
    /// The caller, or all callers, asked too often in this minute: nothing was recorded.
    pub too_many: bool,
    /// Boots that ended.
    pub cold_starts: Vec<ColdStart>,
    /// A named node that no pool has.
    pub not_found: Option<String>,
    /// Calls that failed, each handled where it stands: the next run repeats what matters.
    pub failed: Vec<CallError>,
    /// Something that has to be written down or told was not: the next run may do it again, and the function has to fail
    /// visibly. What callers are told stays true.
    pub unrecorded: Option<CallError>,
    /// The run as a whole could not do its job (no look, or no ledger): the function has to fail visibly.
    pub blind: Option<CallError>,
}

impl Outcome {
    /// Whether the run did all of its job: it looked, read the ledger, wrote what was to be written and told who was to be
    /// told. A node whose use is unknown, or whose START or STOP failed, takes nothing from that: it was kept, and has a
    /// message of its own.
    pub fn succeeded(&self) -> bool {
        self.blind.is_none() && self.unrecorded.is_none()
    }
}
