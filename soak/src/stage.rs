//! What carries a day out: the functions, the services they call, and the truth about the nodes.

use crate::faults::{Fault, Kind};
use reveille::domain::{Beat, Gate, Hold, Instant, LeaseId, NodeId, NodeSeen, PoolName, PoolRecord};
use reveille::run::{Alert, History, MetricRef};
use serde::{Deserialize, Serialize};

/// What a function is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// `POST /wake`.
    Wake(PoolName, Option<NodeId>),
    /// `GET /status`.
    Status(PoolName),
    /// `PUT /leases/{id}` for so many seconds.
    Lease(PoolName, LeaseId, i64),
    /// The same for a lease that is there.
    Renew(PoolName, LeaseId, i64),
    /// `DELETE /leases/{id}`.
    EndLease(LeaseId),
    /// A batch of the front's log with a line that wakes.
    LogLine(PoolName),
    /// EC2's event that a node has stopped.
    StateChange,
    /// The idle check's schedule.
    Idle,
    /// The uptime alarm's schedule.
    Uptime,
    /// The budget guard's schedule.
    Budget,
}

impl Ask {
    /// Whether nobody waits for the answer: such an event is delivered again if it failed.
    pub fn is_event(&self) -> bool {
        match self {
            Self::Wake(..) | Self::Status(_) | Self::Lease(..) | Self::Renew(..) | Self::EndLease(_) => false,
            Self::LogLine(_) | Self::StateChange | Self::Idle | Self::Uptime | Self::Budget => true,
        }
    }
}

/// Names one invocation; also its Lambda request id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey(pub String);

/// A fault that struck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strike {
    /// What went wrong.
    pub kind: Kind,
    /// With which call.
    pub call: String,
}

/// START or STOP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// StartInstances.
    Start,
    /// StopInstances.
    Stop,
    /// StopInstances by force.
    Force,
}

/// EC2 accepted a call of a run, and the node changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Whose.
    pub run: RunKey,
    /// What.
    pub act: Act,
    /// Which node.
    pub node: NodeId,
    /// The instant the run decided at, by the function's clock.
    pub clock: Instant,
    /// When its signals were read, where they were.
    pub read_at: Option<Instant>,
    /// What had struck the run by then.
    pub struck: Vec<Strike>,
}

/// What a run decided of a node or a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The pool.
    pub pool: PoolName,
    /// The node, where there is one.
    pub node: Option<NodeId>,
    /// The action's word.
    pub action: String,
    /// The reason's word.
    pub reason: String,
}

/// What a caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The word for it.
    pub state: String,
    /// The node spoken of.
    pub node: Option<NodeId>,
}

/// The end of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub run: RunKey,
    /// What it was called with.
    pub ask: Ask,
    /// When it began.
    pub began: Instant,
    /// The instant it decided at, by the function's clock.
    pub clock: Instant,
    /// It died, and nothing of what it knew is left.
    pub died: bool,
    /// It failed visibly.
    pub failed: bool,
    /// What it decided.
    pub decided: Vec<Line>,
    /// The pools, and named nodes, whose demand it recorded.
    pub demanded: Vec<(PoolName, Option<NodeId>)>,
    /// What its caller is told.
    pub reply: Option<Reply>,
    /// What struck it.
    pub struck: Vec<Strike>,
    /// The same answers lead to the same calls and the same end; absent where that was not tried.
    pub replays: Option<bool>,
}

/// What happened while time went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A START or STOP of a run was accepted.
    Accepted(Accepted),
    /// A person was told something, by this run.
    Told(RunKey, Alert),
    /// A fault struck a call of this run.
    Struck(RunKey, Strike),
    /// A run is over.
    Ended(Ended),
}

/// What people, nodes and AWS itself do.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A person starts a node.
    Start(NodeId),
    /// A person stops a node.
    Stop(NodeId),
    /// A person holds a node, or no more.
    Hold(PoolName, NodeId, Option<Hold>),
    /// A person closes or opens the gate.
    Gate(PoolName, Option<Gate>),
    /// EC2 has no capacity for a node, or has again.
    NoCapacity(NodeId, bool),
    /// EC2 has no capacity for an instance type, or has again.
    NoCapacityType(String, bool),
    /// EC2 refuses to stop a node with this code, or no longer.
    RefuseStop(NodeId, Option<String>),
    /// The node's next stop hangs.
    Hang(NodeId),
    /// The node's next start falls back, with this code.
    FallBack(NodeId, String),
    /// A metric's point becomes visible.
    Point(MetricRef, Instant, f64),
    /// A node's beat.
    Beat(NodeId, Beat),
    /// A line in a request log.
    Log(String, Instant, String),
    /// The functions' clock is off by so many seconds from now on.
    ClockOff(i64),
    /// Every such call is refused for so many seconds.
    Outage(String, String, i64),
    /// A person deletes the AWS budget.
    BudgetGone,
    /// A person deletes its notifications.
    NoticesGone,
    /// The operator configures another amount.
    Amount(String),
    /// The next invocation of a function is slow: its first call goes out so many seconds late.
    Slow(i64),
}

/// Carries a day out. Time only goes on in [`Stage::advance`].
pub trait Stage {
    /// The instant it is.
    fn now(&self) -> Instant;

    /// Calls a function now; it goes on as time does.
    fn begin(&mut self, run: RunKey, ask: Ask);

    /// Lets time go on to this instant, or to the first thing that happens before.
    fn advance(&mut self, to: Instant) -> Option<Happened>;

    /// A fault waits for the next call it fits.
    fn arm(&mut self, fault: Fault);

    /// Something changes now; what EC2 refuses a person is no change.
    fn change(&mut self, change: Change);

    /// The nodes as they truly are.
    fn nodes(&self) -> Vec<NodeSeen>;

    /// The ledger's item of a pool.
    fn record(&mut self, pool: &PoolName) -> PoolRecord;

    /// The ended launches that were written down.
    fn history(&self) -> History;
}
