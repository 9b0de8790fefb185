//! Reveille wakes an EC2 GPU node when somebody wants it and puts it to sleep when nobody does.
//!
//! The core does no I/O: [`decide`] takes values and returns a decision, a [`run`] asks for calls and gets answers.
//! `aws` (feature `aws`) answers them over the network, [`world`] in memory.

#[cfg(feature = "aws")]
pub mod aws;
pub mod config;
pub mod decide;
pub mod domain;
pub mod error;
pub mod observation;
pub mod operator;
pub mod policy;
pub mod prices;
pub mod run;
pub mod spend;
pub mod telemetry;
pub mod world;

pub use reveille_log::{access_log, log_batch};
