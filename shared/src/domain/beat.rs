//! What a node says of itself: the beat, written each minute by the agent on the node.

use super::Instant;
use serde::{Deserialize, Serialize};

/// The newest beat of a node: the attribute `beat` of its own ledger item `beat#NODE`. The agent keeps what has to be
/// remembered from beat to beat (rows, newest uses) for as long as the node is up; nothing in it is older than the boot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Beat {
    /// When it was made, by the node's clock.
    pub at: Instant,
    /// Whether the readiness endpoint answered 2xx.
    pub ready: bool,
    /// How many answers in a row, up to and with this one, were ready; 0 where this one is not.
    pub row: u32,
    /// The first of that row.
    #[serde(default)]
    pub ready_since: Option<Instant>,
    /// Connections (calls) open now; absent where they could not be read.
    #[serde(default)]
    pub open: Option<u32>,
    /// Requests that are use, counted since the beat before; absent where none are counted.
    #[serde(default)]
    pub counted: Option<u32>,
    /// GPU use in percent, the busiest GPU; absent where there is none to ask.
    #[serde(default)]
    pub gpu: Option<u8>,
    /// The newest beat that saw a connection open.
    #[serde(default)]
    pub open_at: Option<Instant>,
    /// The newest beat that counted a request, or saw the GPU above its threshold.
    #[serde(default)]
    pub used_at: Option<Instant>,
    /// From when on every minute has a complete beat: what was not seen since then was not there. Absent where something
    /// that is configured could not be read.
    #[serde(default)]
    pub since: Option<Instant>,
}
