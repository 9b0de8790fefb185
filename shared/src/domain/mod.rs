//! The words of the field as types: pools, nodes, what EC2 says of them and what is held to be true.

mod beat;
mod boots;
mod hold;
mod ids;
mod launch;
mod lease;
mod ledger;
pub(crate) mod local;
mod usd;
mod window;

pub use beat::Beat;
pub use boots::{BootTime, Boots};
pub use hold::{Hold, TagHold, read_tags};
pub use ids::{InstanceType, LeaseId, NodeId, PoolName, WordFault};
pub use launch::{Launch, UNSEEN, merged, running_seconds};
pub use lease::Lease;
pub use ledger::{
    AlertKey, Blind, Claim, ClaimAnswer, ClaimKind, Fault, FaultKind, Gate, GateKeeper, MOST_NOISE_WAKES, Mark,
    NeverReady, NodeRecord, Noise, PoolRecord, Rate, ReadyFact, RunId, Wake, WakeSource,
};
pub use usd::{Usd, UsdFault};
pub use window::{DaySpec, WarmWindow, WarmWish, WindowFault, WindowSpec, next_opening, wanted};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An instant in UTC. Zones are applied at the edge only.
pub type Instant = DateTime<Utc>;

/// What DescribeInstances says of a node, word for word; it may be stale for minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Started, not yet billed.
    Pending,
    /// Billed.
    Running,
    /// Going down; cannot be started until it is `stopped`.
    Stopping,
    /// Off; disks are still billed.
    Stopped,
    /// Being terminated, or terminated and still listed for about an hour.
    Gone,
}

/// What is held to be true of a node once the ledger's claims are read beside the describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Off and free to be started.
    Stopped,
    /// On its way up, or running and not yet known to be ready.
    Starting,
    /// Running, and its readiness was seen since its last launch.
    Ready,
    /// Takes no new lease and is stopped once it is empty.
    Draining,
    /// Going down, or claimed for a STOP that has not been proved void.
    Stopping,
    /// Terminated: neither started nor stopped again.
    Gone,
}

/// Why EC2 last changed a node's state: a code such as `Client.InternalError` and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StateReason {
    /// EC2's code, such as `Client.UserInitiatedShutdown`.
    pub code: String,
    /// EC2's sentence; shown to people, never parsed.
    pub message: String,
}

impl StateReason {
    /// True where a person, a tool of theirs or the node's own system asked for the stop; every other code of a node that
    /// stopped right after a START is a start that fell back (field case 03).
    pub fn was_asked_for(&self) -> bool {
        ["Client.UserInitiatedShutdown", "Client.InstanceInitiatedShutdown", "Client.UserInitiatedHibernate"]
            .contains(&self.code.as_str())
    }
}

/// One node as DescribeInstances showed it to this run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeSeen {
    /// EC2's id.
    pub id: NodeId,
    /// The Name tag.
    pub name: Option<String>,
    /// The value of the tag `reveille:pool`.
    pub pool: PoolName,
    /// Its other tags: a hold may be among them.
    pub tags: BTreeMap<String, String>,
    /// EC2's word.
    pub state: NodeState,
    /// LaunchTime: changes at every start, so it tells an old look from a new one.
    pub launched_at: Option<Instant>,
    /// StateReason, absent while the node runs.
    pub state_reason: Option<StateReason>,
    /// When the last transition was asked for, where StateTransitionReason carries a time; it may be absent.
    pub transition_at: Option<Instant>,
    /// The address a caller connects to: the private one, else the public one.
    pub address: Option<String>,
    /// A spot node: a one-time request can never be stopped (field case 10).
    pub spot: bool,
    /// Its instance type now; it may be changed while the node is stopped.
    pub instance_type: Option<InstanceType>,
    /// A public IPv4 address and whether it is kept while the node is stopped.
    pub public_address: Option<PublicAddress>,
}

/// A public IPv4 address, billed by the hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublicAddress {
    /// Goes back to AWS while the node is stopped.
    Automatic,
    /// An Elastic IP: billed all hours.
    Elastic,
}

/// One volume of a node, as it is billed: for all hours from its creation on, whether the node runs or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Disk {
    /// Such as `gp3`.
    pub kind: String,
    /// Size in GiB.
    pub gib: i64,
    /// Operations a second it is provisioned for.
    pub iops: i64,
    /// MiB a second it is provisioned for.
    pub mibps: i64,
    /// Since when it is billed.
    pub created_at: Option<Instant>,
}

impl NodeSeen {
    /// Whether a caller may mean this node by `word`: its Name tag or its id.
    pub fn is_called(&self, word: &str) -> bool {
        self.id.as_str() == word || self.name.as_deref() == Some(word)
    }
}
