//! Replays a trace of calls on virtual time through the decision code of the functions, and says what each plan costs and whom
//! it keeps waiting.

pub mod answers;
pub mod costs;
pub mod history;
pub mod plans;
pub mod replay;
pub mod report;
pub mod run;
pub mod trace;
