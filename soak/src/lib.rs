//! Random days, with faults at random calls, and an observer that holds the product to its promises.
//!
//! [`day`] draws a day from a seed. [`play`] plays it on a [`stage`]: callers, nodes, people and schedules. [`watch`] holds
//! the promises against what truly happened. [`memory`] is the stage in memory; another one may carry the same days out.

pub mod day;
pub mod draw;
pub mod faults;
pub mod memory;
pub mod play;
pub mod setup;
pub mod shrink;
pub mod stage;
pub mod trace;
pub mod watch;
