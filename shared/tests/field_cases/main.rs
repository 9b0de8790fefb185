//! The field cases that the core answers for, each through whole runs over the in-memory world. One file a section of the
//! cases: the state machine, capacity and quota, batches, a node in use, an unreadable ledger, repeated events.

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod capacity;
mod in_use;
mod ledger;
mod repeated;
mod start_stop;
