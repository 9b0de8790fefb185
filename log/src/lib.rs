//! Reads what fronts log: single lines of a dozen formats, and the batches in which CloudWatch Logs sends them. Says which
//! requests are calls that wake a node, and which are use of it.

pub mod access_log;
pub mod log_batch;
