//! The laws, by what they are about.

pub(crate) mod activity;
pub(crate) mod alerts;
pub(crate) mod beats;
pub(crate) mod budget;
pub(crate) mod demand;
pub(crate) mod faults;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod holds;
pub(crate) mod leases;
pub(crate) mod ledger;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod parts;
pub(crate) mod samples;
