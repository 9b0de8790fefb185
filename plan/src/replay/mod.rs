//! Replays of a trace on virtual time.

pub mod events;
pub mod on_demand;
pub mod tally;

/// A span of time.
pub type Seconds = i64;
