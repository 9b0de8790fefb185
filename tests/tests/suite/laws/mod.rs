//! The laws, by what they are about.

pub(crate) mod activity;
pub(crate) mod alerts;
pub(crate) mod faults;
pub(crate) mod ledger;
pub(crate) mod nodes;
