//! The limits that the rules hold nodes to. Values are validated in `config.rs`; inside, a policy is valid.

use chrono::TimeDelta;
use chrono_tz::Tz;

/// The newest buckets of a metric are still being filled: a quiet reading says nothing of them. Field case 13; the general
/// ingestion delay is not documented, two minutes is what the design sets.
pub const UNSETTLED: TimeDelta = TimeDelta::minutes(2);

/// A source that was silent for longer than this proves nothing of that time.
pub const LONGEST_GAP: TimeDelta = TimeDelta::minutes(5);

/// The two idle readings are at least this far apart, so that a repeated event is one reading (field case 36).
pub const BETWEEN_READINGS: TimeDelta = TimeDelta::minutes(4);

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

/// What the operator configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// A node idle for this long is stopped.
    pub idle: TimeDelta,
    /// How often the idle check runs.
    pub tick: TimeDelta,
    /// After a launch no node is judged for this long.
    pub grace: TimeDelta,
    /// How long an unmet wake is tried again without a further request.
    pub wish: TimeDelta,
    /// The time from START to ready that callers are told until it is learnt.
    pub boot: TimeDelta,
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
            tick: TimeDelta::minutes(5),
            grace: TimeDelta::minutes(10),
            wish: TimeDelta::minutes(60),
            boot: TimeDelta::seconds(60),
            force_after: TimeDelta::minutes(10),
            uptime: TimeDelta::hours(20),
            zone: Tz::UTC,
        }
    }
}

impl Policy {
    /// The age at which the first reading may be made: one tick before the idle time, so that the STOP falls on the first
    /// tick at or after it.
    pub fn first_reading_at(&self) -> TimeDelta {
        self.idle - self.tick
    }

    /// How far back the signals are read: the idle time, one tick, and the longest gap that still proves something.
    pub fn look_back(&self) -> TimeDelta {
        self.idle + self.tick + LONGEST_GAP
    }
}
