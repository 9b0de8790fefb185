//! What only an operator asks of AWS. Like `shared/src/aws`, a room in which the SDK's types end.

mod date;
mod ec2;
mod functions;
mod identity;
mod logs;
mod metrics;
mod rules;
mod topic;

pub(crate) use date::date;
pub(crate) use ec2::{Tagged, instances, is_stop_protected, persistent_spot};
pub(crate) use functions::Functions;
pub(crate) use identity::whoami;
pub(crate) use logs::{Lines, Part, read as read_log};
pub(crate) use metrics::dimensions;
pub(crate) use rules::{Rule, rule};
pub(crate) use topic::{Subscribers, subscribers};
