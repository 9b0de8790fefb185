//! How a run spends its time, so that it ends before Lambda ends it, whatever hangs.
//!
//! Each step of a run (its calls go out at once) may take half of what is left. What comes first has most depending on it
//! and gets most: without a look nothing is decided. And half is always left for what comes after: the claim, the call to
//! EC2, its record, the message. So one service that never answers costs its step, not the steps behind it.

use super::Aws;
use crate::domain::Instant;
use crate::error::CallError;
use crate::run::{Answer, Call, Outcome, Run, Step};
use chrono::TimeDelta;
use futures::future::join_all;
use std::time::Duration;
use tokio::time::{Instant as Moment, timeout_at};

/// Left over when the last call ends, for the lines of the log and the answer to Lambda. It also lies between the last
/// START or STOP and the instant from which on its claim says that it is not in flight any more.
const RESERVE: Duration = Duration::from_secs(1);

/// With less than this a call would only be cut off, and nobody would know what became of it: it is not sent.
const LEAST: Duration = Duration::from_millis(250);

/// How long the next step may take, of what is left of the run's time.
fn share(left: Duration) -> Option<Duration> {
    Some(left / 2).filter(|share| *share >= LEAST)
}

/// The time to Lambda's deadline, by the real clock; a call sent now is not in flight after it.
pub(super) fn time_left(deadline_ms: u64) -> TimeDelta {
    let deadline = i64::try_from(deadline_ms).ok().and_then(Instant::from_timestamp_millis);
    deadline.map_or(TimeDelta::seconds(60), |deadline| (deadline - super::clock::real_now()).max(TimeDelta::zero()))
}

impl Aws {
    /// Drives a run to its end within this time, less what the lines of the log take; the calls of one step go out at once.
    /// A call that has no answer when its step's time is over is answered as failed, and the run goes on with that.
    pub async fn drive(&self, run: &mut impl Run, time_out: TimeDelta) -> Outcome {
        let end = Moment::now() + time_out.to_std().unwrap_or_default().saturating_sub(RESERVE);
        let mut answers = Vec::new();
        loop {
            match run.next(std::mem::take(&mut answers)) {
                Step::Calls(calls) => {
                    let now = Moment::now();
                    let until = share(end.saturating_duration_since(now)).map(|share| now + share);
                    answers = join_all(calls.iter().map(|call| self.answer_by(call, until))).await;
                }
                Step::Done(outcome) => return outcome,
            }
        }
    }

    async fn answer_by(&self, call: &Call, until: Option<Moment>) -> Answer {
        let act = call.name().replace('_', " ");
        let Some(until) = until else { return call.failed(CallError::not_sent(act)) };
        let answered = timeout_at(until, self.answer(call, until)).await;
        answered.unwrap_or_else(|_| call.failed(CallError::timed_out(act)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each step gets if every one of them takes all that it may.
    fn shares(mut left: Duration) -> Vec<u128> {
        let mut shares = Vec::new();
        while let Some(share) = share(left) {
            left -= share;
            shares.push(share.as_millis());
        }
        shares
    }

    #[test]
    fn each_step_gets_as_much_as_all_behind_it_together() {
        assert_eq!(shares(Duration::from_secs(29)), [14_500, 7_250, 3_625, 1_812, 906, 453]);
    }

    #[test]
    fn a_call_that_could_not_be_answered_is_not_sent() {
        assert_eq!((share(2 * LEAST), share(2 * LEAST - Duration::from_millis(2))), (Some(LEAST), None));
    }

    #[test]
    fn a_deadline_that_has_passed_leaves_no_time() {
        assert_eq!((time_left(0), time_left(u64::MAX)), (TimeDelta::zero(), TimeDelta::seconds(60)));
    }
}
