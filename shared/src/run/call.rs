//! The calls a run can ask for, and their answers. SDK types end in `aws/`, which answers these over the network;
//! `world.rs` answers them in memory.

use super::alert::Alert;
use crate::access_log::Filter;
use crate::decide::budget::{Basis, BudgetPolicy};
use crate::domain::{
    AlertKey, Beat, Blind, Boots, Claim, ClaimAnswer, ClaimKind, Disk, Fault, Gate, GateKeeper, Hold, InstanceType,
    Instant, Launch, Lease, LeaseId, Mark, NodeId, NodeSeen, NodeState, Noise, PoolName, PoolRecord, ReadyFact, RunId,
    Usd, Wake,
};
use crate::error::CallError;
use crate::observation::{Series, SignalKind, Unread};
use crate::policy::PoolRules;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A CloudWatch metric under its exact dimensions. The value `{node}` stands for the node's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRef {
    /// Such as `AWS/ApplicationELB`.
    pub namespace: String,
    /// Such as `RequestCount`.
    pub metric: String,
    /// Exact names and values: a wrong one gives an empty, valid answer (field case 19).
    #[serde(default)]
    pub dimensions: BTreeMap<String, String>,
}

impl MetricRef {
    /// This metric for one node.
    pub fn of(&self, node: &NodeId) -> MetricRef {
        let filled = |value: &String| value.replace("{node}", node.as_str());
        let dimensions = self.dimensions.iter().map(|(name, value)| (name.clone(), filled(value))).collect();
        MetricRef { dimensions, ..self.clone() }
    }
}

/// One configured signal of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Requests (Sum) or open calls (Maximum).
    pub kind: SignalKind,
    /// The metric.
    pub metric: MetricRef,
    /// A metric that has points whenever the source is alive, used or not.
    pub alive: Option<MetricRef>,
}

/// A request log that is counted where there is no metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSource {
    /// The pool whose use it is: two pools may count different lines of one log.
    pub pool: PoolName,
    /// The log group.
    pub group: String,
    /// Which of its lines are use. Any line proves that the source is alive.
    pub filter: Filter,
    /// A metric that has points whenever the source works; needed where the log may be silent for minutes.
    pub alive: Option<MetricRef>,
}

/// What a run has to know of a pool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PoolPolicy {
    /// Metrics of use.
    pub signals: Vec<Signal>,
    /// Logs of use.
    pub logs: Vec<LogSource>,
    /// The instance types a node may be started as where there is no capacity, the preferred one first; empty: never changed.
    pub types: Vec<InstanceType>,
    /// The load balancer's count of healthy hosts, where readiness is read from it.
    pub healthy_hosts: Option<MetricRef>,
    /// Readiness, calls and warm windows.
    pub rules: PoolRules,
}

impl From<Vec<Signal>> for PoolPolicy {
    fn from(signals: Vec<Signal>) -> Self {
        Self { signals, ..Self::default() }
    }
}

/// The points of every log asked for, by pool and group: above zero where a line was use, zero where one only proves life.
pub type LogActivity = BTreeMap<(PoolName, String), Result<Series, Unread>>;

impl LogSource {
    /// What its points are found by.
    pub fn key(&self) -> (PoolName, String) {
        (self.pool.clone(), self.group.clone())
    }
}

/// The launches of each pool's nodes.
pub type History = BTreeMap<PoolName, Vec<(NodeId, Launch)>>;

/// Status-check samples of each node: the start of each five minutes and the number of samples in it, one a minute while it
/// runs.
pub type Samples = BTreeMap<NodeId, Vec<(Instant, f64)>>;

/// One notification of AWS's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Notice {
    /// Which figure.
    pub basis: Basis,
    /// Percent of the amount.
    pub percent: u32,
}

/// What the ledger keeps of the AWS budget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BudgetNote {
    /// The amount that was configured when the budget was last found to have it.
    pub amount: Option<Usd>,
    /// The pools that it counted then.
    #[serde(default)]
    pub pools: BTreeSet<PoolName>,
    /// The highest figure that AWS has shown in a month, and the month: an update of the budget clears AWS's own.
    #[serde(default)]
    pub shown: Option<(String, Usd)>,
    /// Since when the guard has been at work: before that, no launches are known.
    #[serde(default)]
    pub since: Option<Instant>,
}

/// The AWS budget as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BudgetSeen {
    /// Its amount, as AWS writes it.
    pub amount: String,
    /// Its currency.
    pub unit: String,
    /// AWS's figure of what is spent; 8 to 12 hours late.
    pub actual: Option<Usd>,
    /// AWS's forecast; it needs about five weeks of data.
    pub forecast: Option<Usd>,
    /// Its notifications that are percentages of GREATER_THAN.
    pub notices: BTreeSet<Notice>,
}

/// The points of every metric asked for, or why there are none.
pub type Activity = BTreeMap<MetricRef, Result<Series, Unread>>;

/// A fact of one node, written without a condition; `None` removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// The first idle reading.
    Mark(Option<Mark>),
    /// Readiness.
    Ready(Option<ReadyFact>),
    /// A refusal.
    Fault(Option<Fault>),
    /// Unknown signals.
    Blind(Option<Blind>),
    /// Launches that served nobody.
    Noise(Option<Noise>),
    /// What the last boots took.
    Boots(Option<Boots>),
}

/// The attribute that holds a fact of a node: `KIND#NODE`. One attribute a fact, at the top level.
pub fn fact_name(kind: &str, node: &NodeId) -> String {
    format!("{kind}#{node}")
}

/// Caps on the wakes of one minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// The caller's bucket.
    pub caller: String,
    /// The most wakes of this caller.
    pub each: u32,
    /// The most of all callers.
    pub all: u32,
}

/// A call that waits for a node with room, and those whose wait is over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The call, and until when it is taken to wait; none where so many wait already that one more says nothing.
    pub call: Option<(LeaseId, Instant)>,
    /// Those that are cleared away: their wait is over.
    pub over: Vec<LeaseId>,
}

/// What a new lease was decided on; if it has changed, the decision is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseGround {
    /// The node's newest claim: a STOP that was claimed since must not be overtaken.
    pub claim: Option<(RunId, ClaimKind)>,
    /// The most leases the node can have.
    pub most: u32,
    /// The node has none yet, not even one that ran out.
    pub is_first: bool,
    /// Those that ran out, and are cleared away.
    pub over: Vec<LeaseId>,
    /// Whether the call was waiting; it no longer is.
    pub was_waiting: bool,
}

/// On which counters a claim depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    /// The claim counter as it was read.
    pub claims: u64,
    /// The demand counter as it was read with the demand that the decision saw; absent for START and for a repeated STOP
    /// of a node that is on its way down.
    pub demand: Option<u64>,
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// DescribeInstances, all pages, of the nodes with the tag `reveille:pool`; of these pools only, or of all.
    DescribeNodes {
        /// Which pools; `None` for every node with the tag.
        pools: Option<BTreeSet<PoolName>>,
    },
    /// A consistent read of the items of these pools.
    ReadLedger {
        /// Which.
        pools: BTreeSet<PoolName>,
    },
    /// Records a wake: one update that moves the demand counter and returns the new item. It is refused by a closed gate, by
    /// a caller who asks too often, and by nothing else.
    RecordDemand {
        /// The pool.
        pool: PoolName,
        /// A named node, or any of the pool.
        node: Option<NodeId>,
        /// The wake.
        wake: Wake,
        /// Caps for callers; none for lines of a log.
        cap: Option<Cap>,
        /// The call that waits, where it is one.
        waiting: Waiting,
    },
    /// Gives a lease on a node: one update that moves the demand counter, if what it was decided on still stands. Refused
    /// by a closed gate too.
    GiveLease {
        /// The pool.
        pool: PoolName,
        /// The node.
        node: NodeId,
        /// The lease's name.
        id: LeaseId,
        /// The lease.
        lease: Lease,
        /// What has to stand still.
        ground: LeaseGround,
    },
    /// Renews a live lease of this caller; the gate has no say in it. It moves no counter: every call of a pool renews each
    /// minute, and no STOP of another node would ever get through.
    RenewLease {
        /// The pool.
        pool: PoolName,
        /// The node it is on.
        node: NodeId,
        /// The lease's name.
        id: LeaseId,
        /// Until when now, whose it is, and the instant of the call.
        lease: Lease,
    },
    /// Ends a lease of this caller.
    EndLease {
        /// The pool.
        pool: PoolName,
        /// The node it is on.
        node: NodeId,
        /// The lease's name.
        id: LeaseId,
        /// Whose it is.
        by: String,
        /// When.
        at: Instant,
    },
    /// A call that waits has hung up.
    StopWaiting {
        /// The pool.
        pool: PoolName,
        /// The call.
        id: LeaseId,
    },
    /// The newest beats of these nodes; a node without one, or with one that cannot be read, is not in the answer.
    ReadBeats {
        /// Which.
        nodes: BTreeSet<NodeId>,
    },
    /// Sets or ends an operator's hold of a node, and moves the demand counter. The answer is the item before it.
    SetHold {
        /// The pool.
        pool: PoolName,
        /// The node.
        node: NodeId,
        /// The hold, or none to end it.
        hold: Option<Hold>,
    },
    /// GetMetricData in 1-minute buckets.
    ReadActivity {
        /// What, and whether Sum (requests, alive) or Maximum (gauges).
        metrics: BTreeMap<MetricRef, SignalKind>,
        /// Inclusive.
        from: Instant,
        /// Exclusive.
        to: Instant,
    },
    /// FilterLogEvents, for groups that have no metric.
    ReadLogs {
        /// Which groups, and which of their lines are use.
        sources: Vec<LogSource>,
        /// Inclusive.
        from: Instant,
        /// Exclusive.
        to: Instant,
    },
    /// The launches that ended at or after an instant; the open ones stand in the pools' items.
    ReadHistory {
        /// Of which pools' nodes.
        pools: BTreeSet<PoolName>,
        /// From when on.
        from: Instant,
    },
    /// SampleCount of EC2's status checks in 5-minute buckets: free, and none of the idle sources.
    ReadSamples {
        /// Which nodes.
        nodes: BTreeSet<NodeId>,
        /// Inclusive.
        from: Instant,
        /// Exclusive.
        to: Instant,
    },
    /// DescribeVolumes of what is attached to these nodes.
    ReadDisks {
        /// Which nodes.
        nodes: BTreeSet<NodeId>,
    },
    /// DescribeBudget and its notifications; none where there is no such budget.
    ReadBudget {
        /// Its name.
        name: String,
    },
    /// What the ledger knows of the AWS budget.
    ReadBudgetNote {
        /// The budget's name.
        name: String,
    },
    /// CreateBudget with its notifications.
    CreateBudget {
        /// As it is to be.
        budget: BudgetPolicy,
        /// The pools whose cost it counts.
        pools: BTreeSet<PoolName>,
    },
    /// UpdateBudget: sets the amount and the pools, and clears AWS's calculated spend; then, and only then, notes it.
    SetBudgetAmount {
        /// As it is to be.
        budget: BudgetPolicy,
        /// The pools whose cost it counts.
        pools: BTreeSet<PoolName>,
        /// What is noted once it is set.
        note: BudgetNote,
    },
    /// CreateNotification, one by one.
    CreateNotices {
        /// Of which budget, and to which addresses.
        budget: BudgetPolicy,
        /// Which.
        notices: BTreeSet<Notice>,
    },
    /// Notes in the ledger what is known of the AWS budget.
    NoteBudget {
        /// The budget's name.
        name: String,
        /// The note.
        note: BudgetNote,
    },
    /// Closes or opens the gate of a pool; moves the claim counter, so that no START goes out that was decided on the gate
    /// as it was before.
    SetGate {
        /// The pool.
        pool: PoolName,
        /// Who does: the budget leaves a gate that a person holds as it is.
        by: GateKeeper,
        /// Closed, or none to open it.
        gate: Option<Gate>,
        /// When: a person's gate whose end has passed is open.
        at: Instant,
    },
    /// ModifyInstanceAttribute: another instance type for a stopped node.
    Resize {
        /// The node.
        node: NodeId,
        /// The type.
        to: InstanceType,
    },
    /// Writes launches down: ended ones into the history first, then the newest of each node into the pool's item.
    NoteLaunches {
        /// The pool.
        pool: PoolName,
        /// Ended launches.
        ended: Vec<(NodeId, Launch)>,
        /// The newest launch of each node.
        newest: Vec<(NodeId, Launch)>,
    },
    /// DescribeInstanceStatus: which of these running nodes pass their status checks.
    ReadReadiness {
        /// Which.
        nodes: BTreeSet<NodeId>,
    },
    /// Writes a claim if the permit's counters have not moved, and moves the claim counter.
    Claim {
        /// The pool.
        pool: PoolName,
        /// The node.
        node: NodeId,
        /// The condition.
        permit: Permit,
        /// When a lease of the node was last written, as the decision saw it: where the permit depends on the demand, it
        /// must not have been since. A renewal keeps its own node, and no other.
        leased: Option<Instant>,
        /// The claim.
        claim: Claim,
    },
    /// StartInstances of one id, never retried by the SDK.
    Start {
        /// The node.
        node: NodeId,
    },
    /// StopInstances of one id, never retried by the SDK.
    Stop {
        /// The node.
        node: NodeId,
        /// Hard, where the graceful stop hangs.
        force: bool,
    },
    /// Records what EC2 answered, if the claim is still this run's, and moves the claim counter.
    RecordAnswer {
        /// The pool.
        pool: PoolName,
        /// The node.
        node: NodeId,
        /// Whose claim.
        run: RunId,
        /// What EC2 answered.
        answer: ClaimAnswer,
        /// A refusal to wait out.
        fault: Option<Fault>,
    },
    /// Writes facts of nodes of one pool.
    WriteFacts {
        /// The pool.
        pool: PoolName,
        /// The facts.
        facts: Vec<(NodeId, Fact)>,
    },
    /// Claims the right to send an alert.
    ClaimAlert {
        /// Its key.
        key: AlertKey,
        /// When.
        at: Instant,
    },
    /// Publishes to the topic.
    Publish {
        /// The alert.
        alert: Alert,
    },
    /// Keeps a message that could not be sent, or takes it away again.
    KeepUntold {
        /// With whose item it is kept.
        pool: PoolName,
        /// Its key.
        key: AlertKey,
        /// The message as text; none once it is out.
        text: Option<String>,
    },
    /// Notes that a claimed alert was published. One that was claimed and not published is sent again by a later run.
    MarkPublished {
        /// Its key.
        key: AlertKey,
    },
}

impl Call {
    /// Its short name, such as `read_ledger`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::DescribeNodes { .. } => "describe",
            Self::ReadLedger { .. } => "read_ledger",
            Self::RecordDemand { .. } => "demand",
            Self::ReadActivity { .. } => "activity",
            Self::ReadReadiness { .. } => "readiness",
            Self::Claim { .. } => "claim",
            Self::Start { .. } => "start",
            Self::Stop { .. } => "stop",
            Self::RecordAnswer { .. } => "record",
            Self::WriteFacts { .. } => "facts",
            Self::ClaimAlert { .. } => "claim_alert",
            Self::Publish { .. } => "publish",
            Self::MarkPublished { .. } => "mark_published",
            Self::KeepUntold { .. } => "untold",
            Self::ReadLogs { .. } => "logs",
            Self::ReadHistory { .. } => "history",
            Self::ReadSamples { .. } => "samples",
            Self::ReadDisks { .. } => "disks",
            Self::ReadBudget { .. } => "budget",
            Self::ReadBudgetNote { .. } => "budget_note",
            Self::CreateBudget { .. } => "create_budget",
            Self::SetBudgetAmount { .. } => "set_budget_amount",
            Self::CreateNotices { .. } => "create_notices",
            Self::NoteBudget { .. } => "note_budget",
            Self::SetGate { .. } => "set_gate",
            Self::Resize { .. } => "resize",
            Self::NoteLaunches { .. } => "launches",
            Self::GiveLease { .. } => "give_lease",
            Self::RenewLease { .. } => "renew_lease",
            Self::EndLease { .. } => "end_lease",
            Self::StopWaiting { .. } => "stop_waiting",
            Self::ReadBeats { .. } => "beats",
            Self::SetHold { .. } => "hold",
        }
    }

    /// Whether it only reads: it changes nothing in AWS and nothing in the ledger.
    pub fn only_reads(&self) -> bool {
        match self {
            Self::DescribeNodes { .. }
            | Self::ReadLedger { .. }
            | Self::ReadBeats { .. }
            | Self::ReadActivity { .. }
            | Self::ReadLogs { .. }
            | Self::ReadHistory { .. }
            | Self::ReadSamples { .. }
            | Self::ReadDisks { .. }
            | Self::ReadBudget { .. }
            | Self::ReadBudgetNote { .. }
            | Self::ReadReadiness { .. } => true,
            Self::RecordDemand { .. }
            | Self::GiveLease { .. }
            | Self::RenewLease { .. }
            | Self::EndLease { .. }
            | Self::StopWaiting { .. }
            | Self::SetHold { .. }
            | Self::CreateBudget { .. }
            | Self::SetBudgetAmount { .. }
            | Self::CreateNotices { .. }
            | Self::NoteBudget { .. }
            | Self::SetGate { .. }
            | Self::Resize { .. }
            | Self::NoteLaunches { .. }
            | Self::Claim { .. }
            | Self::Start { .. }
            | Self::Stop { .. }
            | Self::RecordAnswer { .. }
            | Self::WriteFacts { .. }
            | Self::ClaimAlert { .. }
            | Self::Publish { .. }
            | Self::KeepUntold { .. }
            | Self::MarkPublished { .. } => false,
        }
    }

    /// The answer to this call where it failed.
    pub fn failed(&self, error: CallError) -> Answer {
        match self {
            Self::DescribeNodes { .. } => Answer::Nodes(Err(error)),
            Self::ReadLedger { .. } => Answer::Ledger(Err(error)),
            Self::RecordDemand { .. } => Answer::Demand(Err(error)),
            // A group that cannot be read is Unknown and holds up no other.
            Self::ReadLogs { sources, .. } => {
                let unread = |source: &LogSource| (source.key(), Err(Unread::Failed));
                Answer::Logs(Ok(sources.iter().map(unread).collect()))
            }
            Self::ReadHistory { .. } => Answer::History(Err(error)),
            Self::ReadSamples { .. } => Answer::Samples(Err(error)),
            Self::ReadDisks { .. } => Answer::Disks(Err(error)),
            Self::ReadBudget { .. } => Answer::Budget(Err(error)),
            Self::ReadBudgetNote { .. } => Answer::BudgetNote(Err(error)),
            Self::Resize { .. } => Answer::Resized(Err(error)),
            Self::ReadActivity { .. } => Answer::Activity(Err(error)),
            Self::ReadReadiness { .. } => Answer::Readiness(Err(error)),
            Self::Claim { .. } => Answer::Claim(Err(error)),
            Self::Start { .. } => Answer::Start(Err(error)),
            Self::Stop { .. } => Answer::Stop(Err(error)),
            Self::ClaimAlert { .. } => Answer::AlertClaim(Err(error)),
            Self::Publish { .. } => Answer::Published(Err(error)),
            Self::RecordAnswer { .. }
            | Self::WriteFacts { .. }
            | Self::MarkPublished { .. }
            | Self::KeepUntold { .. }
            | Self::CreateBudget { .. }
            | Self::SetBudgetAmount { .. }
            | Self::CreateNotices { .. }
            | Self::NoteBudget { .. }
            | Self::StopWaiting { .. }
            | Self::NoteLaunches { .. } => Answer::Recorded(Err(error)),
            Self::SetHold { .. } => Answer::HoldSet(Err(error)),
            Self::GiveLease { .. } | Self::RenewLease { .. } | Self::EndLease { .. } => Answer::Lease(Err(error)),
            Self::ReadBeats { .. } => Answer::Beats(Err(error)),
            Self::SetGate { .. } => Answer::GateSet(Err(error)),
        }
    }
}

/// The outcome of a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Claimed {
    /// Granted; the item as it is now.
    Granted(PoolRecord),
    /// The counters had moved; the item as it is now.
    Lost(PoolRecord),
}

/// Whose an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertClaimed {
    /// This run's: it publishes.
    Mine,
    /// It was published before.
    Published,
    /// Another run has claimed it a moment ago, and may or may not get it out.
    Another,
}

/// What became of a wake.
#[derive(Debug, Clone, PartialEq)]
pub enum Demanded {
    /// Recorded; the item as it is now.
    Recorded(PoolRecord),
    /// Refused by a closed gate; the item as it is.
    Refused(PoolRecord),
    /// Too many wakes in this minute, by this caller or by all.
    TooMany,
}

/// What became of a lease.
#[derive(Debug, Clone, PartialEq)]
pub enum Leased {
    /// Given, renewed or ended; the item as it is now.
    Done(PoolRecord),
    /// What it was decided on has changed; the item as it is now.
    Moved(PoolRecord),
}

/// What StartInstances answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The state before the call: the API's own answer, not a stale describe.
    pub before: NodeState,
}

/// What StopInstances answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// The state before the call.
    pub before: NodeState,
}

/// The answer to a call of the same name.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the answer to the call of its name")]
pub enum Answer {
    Nodes(Result<Vec<NodeSeen>, CallError>),
    Ledger(Result<BTreeMap<PoolName, PoolRecord>, CallError>),
    Demand(Result<Demanded, CallError>),
    Activity(Result<Activity, CallError>),
    Readiness(Result<BTreeSet<NodeId>, CallError>),
    Claim(Result<Claimed, CallError>),
    Start(Result<Started, CallError>),
    Stop(Result<Stopped, CallError>),
    Recorded(Result<(), CallError>),
    AlertClaim(Result<AlertClaimed, CallError>),
    Published(Result<(), CallError>),
    Logs(Result<LogActivity, CallError>),
    History(Result<History, CallError>),
    Samples(Result<Samples, CallError>),
    Disks(Result<BTreeMap<NodeId, Vec<Disk>>, CallError>),
    Budget(Result<Option<BudgetSeen>, CallError>),
    BudgetNote(Result<BudgetNote, CallError>),
    /// The item before the write.
    HoldSet(Result<PoolRecord, CallError>),
    /// The item before the write; none where a person holds the gate and nothing was written.
    GateSet(Result<Option<PoolRecord>, CallError>),
    Resized(Result<(), CallError>),
    Lease(Result<Leased, CallError>),
    Beats(Result<BTreeMap<NodeId, Beat>, CallError>),
}

impl Answer {
    /// Why there is none, where the call failed.
    pub fn failure(&self) -> Option<&CallError> {
        match self {
            Self::Nodes(answer) => answer.as_ref().err(),
            Self::Ledger(answer) => answer.as_ref().err(),
            Self::Demand(answer) => answer.as_ref().err(),
            Self::Activity(answer) => answer.as_ref().err(),
            Self::Readiness(answer) => answer.as_ref().err(),
            Self::Claim(answer) => answer.as_ref().err(),
            Self::Start(answer) => answer.as_ref().err(),
            Self::Stop(answer) => answer.as_ref().err(),
            Self::AlertClaim(answer) => answer.as_ref().err(),
            Self::Recorded(answer) | Self::Published(answer) | Self::Resized(answer) => answer.as_ref().err(),
            Self::Logs(answer) => answer.as_ref().err(),
            Self::History(answer) => answer.as_ref().err(),
            Self::Samples(answer) => answer.as_ref().err(),
            Self::Disks(answer) => answer.as_ref().err(),
            Self::Budget(answer) => answer.as_ref().err(),
            Self::BudgetNote(answer) => answer.as_ref().err(),
            Self::HoldSet(answer) => answer.as_ref().err(),
            Self::GateSet(answer) => answer.as_ref().err(),
            Self::Lease(answer) => answer.as_ref().err(),
            Self::Beats(answer) => answer.as_ref().err(),
        }
    }

    /// The pools' items in it.
    pub(super) fn records_mut(&mut self) -> Vec<&mut PoolRecord> {
        match self {
            Self::Ledger(Ok(records)) => records.values_mut().collect(),
            Self::Demand(Ok(Demanded::Recorded(record) | Demanded::Refused(record)))
            | Self::Claim(Ok(Claimed::Granted(record) | Claimed::Lost(record)))
            | Self::Lease(Ok(Leased::Done(record) | Leased::Moved(record)))
            | Self::HoldSet(Ok(record))
            | Self::GateSet(Ok(Some(record))) => vec![record],
            Self::Demand(_)
            | Self::Ledger(_)
            | Self::Claim(_)
            | Self::Lease(_)
            | Self::Nodes(_)
            | Self::Activity(_)
            | Self::Readiness(_)
            | Self::Start(_)
            | Self::Stop(_)
            | Self::Recorded(_)
            | Self::AlertClaim(_)
            | Self::Published(_)
            | Self::Logs(_)
            | Self::History(_)
            | Self::Samples(_)
            | Self::Disks(_)
            | Self::Budget(_)
            | Self::BudgetNote(_)
            | Self::HoldSet(_)
            | Self::GateSet(_)
            | Self::Resized(_)
            | Self::Beats(_) => Vec::new(),
        }
    }
}

macro_rules! takes {
    ($($name:ident, $variant:ident, $value:ty, $act:literal;)*) => {
        $(
            #[doc = concat!("Takes the answer to: ", $act, ".")]
            ///
            /// # Errors
            /// The call's own, or a wrong answer.
            pub fn $name(answer: Option<Answer>) -> Result<$value, CallError> {
                if let Some(Answer::$variant(value)) = answer { value } else { Err(CallError::wrong_answer($act)) }
            }
        )*
    };
}

takes! {
    take_nodes, Nodes, Vec<NodeSeen>, "describe nodes";
    take_ledger, Ledger, BTreeMap<PoolName, PoolRecord>, "read ledger";
    take_demand, Demand, Demanded, "record demand";
    take_activity, Activity, Activity, "read activity";
    take_readiness, Readiness, BTreeSet<NodeId>, "read readiness";
    take_claim, Claim, Claimed, "claim";
    take_start, Start, Started, "start node";
    take_stop, Stop, Stopped, "stop node";
    take_recorded, Recorded, (), "record";
    take_alert_claim, AlertClaim, AlertClaimed, "claim alert";
    take_published, Published, (), "publish";
    take_logs, Logs, LogActivity, "read logs";
    take_history, History, History, "read history";
    take_samples, Samples, Samples, "read status-check samples";
    take_disks, Disks, BTreeMap<NodeId, Vec<Disk>>, "read volumes";
    take_budget, Budget, Option<BudgetSeen>, "read budget";
    take_budget_note, BudgetNote, BudgetNote, "read the budget's note";
    take_resized, Resized, (), "change the instance type";
    take_hold_set, HoldSet, PoolRecord, "set the hold";
    take_gate_set, GateSet, Option<PoolRecord>, "set the gate";
    take_lease, Lease, Leased, "lease";
    take_beats, Beats, BTreeMap<NodeId, Beat>, "read beats";
}
