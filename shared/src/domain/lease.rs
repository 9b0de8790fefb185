//! A client's claim that keeps a node up while a call lasts.

use super::Instant;
use serde::{Deserialize, Serialize};

/// One call in progress, in the map `leases#NODE` of the pool's item. It ends by DELETE, or by itself where the app died.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The class of the caller that took it; nobody else may renew or end it.
    pub by: String,
    /// When it was given.
    pub at: Instant,
    /// When it ends unless it is renewed, in whole seconds: DynamoDB compares texts.
    pub until: Instant,
}

impl Lease {
    /// Whether it still holds its node.
    pub fn is_live(&self, now: Instant) -> bool {
        now < self.until
    }
}
