//! The limits that the rules hold nodes to. Values are validated in `config.rs`; inside, a policy is valid.

use crate::domain::WarmWindow;
use chrono::TimeDelta;
use chrono_tz::Tz;

/// The newest buckets of a metric are still being filled: a quiet reading says nothing of them. Field case 13; the general
/// ingestion delay is not documented, two minutes is what the design sets.
pub const UNSETTLED: TimeDelta = TimeDelta::minutes(2);

/// A source that was silent for longer than this proves nothing of that time.
pub const LONGEST_GAP: TimeDelta = TimeDelta::minutes(5);

/// The two idle readings are at least this far apart, so that a repeated event is one reading (field case 36).
pub const BETWEEN_READINGS: TimeDelta = TimeDelta::minutes(4);

/// Alerts and launches that have ended are kept for a little more than a year.
pub const KEPT: TimeDelta = TimeDelta::days(400);

/// How long a describe may be stale (EC2 is eventually consistent: "seconds to about five minutes"). An unanswered or
/// accepted call whose effect does not show by then is sent again, on the same node. Just under a tick, so that the next
/// tick repeats it.
pub const STALE_LOOK: TimeDelta = TimeDelta::minutes(4);

/// How long an open-calls gauge has to stand at nothing before a drained node is stopped, beyond the unsettled buckets.
pub const DRAIN_QUIET: TimeDelta = TimeDelta::minutes(5);

/// A drain that still waits for calls after this long is told; the calls are left (design: "drain deadline").
pub const DRAIN_DEADLINE: TimeDelta = TimeDelta::minutes(60);

/// Nodes and types that one run tries to start, one after the other; a refusal takes a second or two, and a caller waits.
/// The rest has its turn at the next tick or call.
pub const MOST_TRIES: usize = 6;

/// A beat that is older says nothing of now: it comes each minute, and two may be lost.
pub const FRESH_BEAT: TimeDelta = TimeDelta::minutes(3);

/// A beat of the future is a clock that is off; so much is clocks being clocks.
pub const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(30);

/// A fact of the ledger that is dated later than this from now was written by a clock that was off, and is taken for one
/// that nobody can read. One within it only ages later: clocks of two functions that differ by seconds lose no wake.
pub const MOST_AHEAD: TimeDelta = TimeDelta::hours(1);

/// A call that found no node with room is taken to wait for so long after it last asked: twice the 90 s of a patient caller.
pub const WAITING: TimeDelta = TimeDelta::seconds(180);

/// So many waiting calls are remembered at most: the item has a size.
pub const MOST_WAITING: usize = 64;

/// So many leases a node can have at most, whatever is configured: the item has a size.
pub const MOST_LEASES: u32 = 100;

/// A node that never became ready is started once more, and left stopped for so long after the second time.
pub const LEFT_STOPPED: TimeDelta = TimeDelta::days(1);

/// What the operator configured of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRules {
    /// What tells that a node is ready.
    pub ready: ReadySource,
    /// The calls in progress that one node can take; absent: no limit is known, and one node is wanted at most.
    pub calls_per_node: Option<u32>,
    /// Percent of `calls_per_node` from which on another node is wanted; 1 to 100.
    pub fill_percent: u32,
    /// The app takes a lease for every call.
    pub leased: bool,
    /// The nodes' beats are a signal of use.
    pub beat: bool,
    /// When how many nodes are wanted whoever asks.
    pub warm: Vec<WarmWindow>,
}

/// What tells that a node is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadySource {
    /// EC2's status checks: the machine is up, whatever runs on it.
    Checks,
    /// The node's own beat, so many times in a row.
    Beat(u32),
    /// The load balancer's count of healthy hosts.
    HealthyHosts,
}

impl Default for PoolRules {
    fn default() -> Self {
        Self {
            ready: ReadySource::Checks,
            calls_per_node: None,
            fill_percent: 100,
            leased: false,
            beat: false,
            warm: Vec::new(),
        }
    }
}

impl PoolRules {
    /// The nodes that so many calls want: none for none, and one where it is not known how many a node can take.
    pub fn nodes_for(&self, calls: usize) -> usize {
        let Some(per_node) = self.calls_per_node else { return calls.min(1) };
        let hundredths = (u64::from(per_node) * u64::from(self.fill_percent)).max(1);
        let calls = u64::try_from(calls).unwrap_or(u64::MAX);
        usize::try_from(calls.saturating_mul(100).div_ceil(hundredths)).unwrap_or(usize::MAX)
    }

    /// Whether a node with so many calls can take one more.
    pub fn has_room(&self, calls: usize) -> bool {
        calls < usize::try_from(self.most_leases()).unwrap_or(usize::MAX)
    }

    /// The leases that a node can have.
    pub fn most_leases(&self) -> u32 {
        self.calls_per_node.unwrap_or(MOST_LEASES).min(MOST_LEASES)
    }
}

/// What the operator configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// A node idle for this long is stopped.
    pub idle: TimeDelta,
    /// How long a pre-warm that leads to no call keeps a node.
    pub prewarm: TimeDelta,
    /// How often the idle check runs.
    pub tick: TimeDelta,
    /// After a launch no node is judged for this long.
    pub grace: TimeDelta,
    /// How long an unmet wake is tried again without a further request.
    pub wish: TimeDelta,
    /// The time from START to ready that callers are told until it is learnt.
    pub boot: TimeDelta,
    /// A node that is not ready so long after its launch will not become so by itself.
    pub ready_within: TimeDelta,
    /// Wakes a minute by one caller; more are refused.
    pub wakes_each: u32,
    /// The same by all callers together.
    pub wakes_all: u32,
    /// A node that is `stopping` for longer is forced.
    pub force_after: TimeDelta,
    /// A node up for longer than this in a local day is told.
    pub uptime: TimeDelta,
    /// The zone of local days, and of times in messages.
    pub zone: Tz,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            idle: TimeDelta::minutes(30),
            prewarm: TimeDelta::minutes(30),
            tick: TimeDelta::minutes(5),
            grace: TimeDelta::minutes(10),
            wish: TimeDelta::minutes(60),
            boot: TimeDelta::seconds(60),
            ready_within: TimeDelta::minutes(10),
            wakes_each: 600,
            wakes_all: 1200,
            force_after: TimeDelta::minutes(10),
            uptime: TimeDelta::hours(20),
            zone: Tz::UTC,
        }
    }
}

impl Policy {
    /// How far back the signals are read: the idle time, one tick, and the longest gap that still proves something.
    pub fn look_back(&self) -> TimeDelta {
        self.idle + self.tick + LONGEST_GAP
    }
}
