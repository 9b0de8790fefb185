//! Drives the functions' own runs and carries out nothing that changes anything: what a run would decide now, and why.

use reveille::aws::Aws;
use reveille::config::Config;
use reveille::domain::{Instant, NodeId, NodeSeen, NodeState, PoolName, PoolRecord};
use reveille::error::CallError;
use reveille::run::{Answer, Call, Outcome, Run, Step, fleet, take_disks, take_history};
use reveille::spend::Fleet;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant as Moment, timeout_at};

/// So long one step may take; reading logs takes most.
const LONGEST_STEP: Duration = Duration::from_secs(30);

/// A run asks again after a write that failed; no run has so many steps.
const MOST_STEPS: usize = 64;

/// One look: what was read once is not read again, so that every run sees the same.
pub(crate) struct Looker<'a> {
    aws: &'a Aws,
    answers: Vec<(Call, Answer)>,
}

impl<'a> Looker<'a> {
    pub(crate) fn new(aws: &'a Aws) -> Self {
        Self { aws, answers: Vec::new() }
    }

    /// Drives a run to its end. What it would have done fails, and what it decided before stands.
    pub(crate) async fn drive(&mut self, run: &mut impl Run) -> Outcome {
        let mut answers = Vec::new();
        for _ in 0..MOST_STEPS {
            match run.next(std::mem::take(&mut answers)) {
                Step::Calls(calls) => answers = self.answer_all(&calls).await,
                Step::Done(outcome) => return outcome,
            }
        }
        Outcome { blind: Some(CallError::timed_out("look")), ..Outcome::default() }
    }

    /// The answers to calls that only read, at once where they are new.
    pub(crate) async fn answer_all(&mut self, calls: &[Call]) -> Vec<Answer> {
        let known = |call: &Call| self.answers.iter().any(|(other, _)| other == call);
        let new: Vec<Call> = calls.iter().filter(|call| call.only_reads() && !known(call)).cloned().collect();
        let read = futures::future::join_all(new.iter().map(|call| read(self.aws, call))).await;
        self.answers.extend(new.into_iter().zip(read));
        calls.iter().map(|call| self.known(call)).collect()
    }

    fn known(&self, call: &Call) -> Answer {
        let found = self.answers.iter().find(|(other, _)| other == call);
        found.map_or_else(|| call.failed(CallError::not_sent(call.name())), |(_, answer)| answer.clone())
    }

    /// The nodes of the whole list, if it was read.
    pub(crate) fn nodes(&self) -> &[NodeSeen] {
        let whole = |(call, answer): &'_ (Call, Answer)| {
            matches!((call, answer), (Call::DescribeNodes { pools: None }, Answer::Nodes(Ok(_))))
        };
        match self.answers.iter().find(|one| whole(one)) {
            Some((_, Answer::Nodes(Ok(nodes)))) => nodes,
            Some(_) | None => &[],
        }
    }

    /// The pools' items, as far as any was read.
    pub(crate) fn records(&self) -> BTreeMap<PoolName, PoolRecord> {
        let mut records = BTreeMap::new();
        for (_, answer) in &self.answers {
            if let Answer::Ledger(Ok(read)) = answer {
                records.extend(read.clone());
            }
        }
        records
    }

    /// What is known of every node's cost since an instant: launches, disks, addresses.
    ///
    /// # Errors
    /// The history or the disks cannot be read: a sum without them would be too low.
    pub(crate) async fn fleet(&mut self, config: &Config, from: Instant, now: Instant) -> Result<Fleet, CallError> {
        let nodes = self.nodes().to_vec();
        let pools = config.pools.keys().cloned().chain(nodes.iter().map(|seen| seen.pool.clone())).collect();
        let alive = nodes.iter().filter(|seen| seen.state != NodeState::Gone);
        let ids: BTreeSet<NodeId> = alive.map(|seen| seen.id.clone()).collect();
        let history = self.answer_all(&[Call::ReadHistory { pools, from }]).await;
        let history = take_history(history.into_iter().next())?;
        let disks = if ids.is_empty() {
            BTreeMap::new()
        } else {
            take_disks(self.answer_all(&[Call::ReadDisks { nodes: ids }]).await.into_iter().next())?
        };
        Ok(fleet(&nodes, &self.records(), &history, disks, now))
    }

    /// The nodes of each pool: those that are listed, and those that are gone and were its own.
    pub(crate) fn members(&self) -> BTreeMap<PoolName, BTreeSet<NodeId>> {
        let alive = || self.nodes().iter().filter(|seen| seen.state != NodeState::Gone);
        let listed: BTreeSet<&NodeId> = alive().map(|seen| &seen.id).collect();
        let mut members: BTreeMap<PoolName, BTreeSet<NodeId>> = BTreeMap::new();
        let mut add = |pool: &PoolName, id: &NodeId| {
            members.entry(pool.clone()).or_default().insert(id.clone());
        };
        alive().for_each(|seen| add(&seen.pool, &seen.id));
        for (pool, record) in &self.records() {
            record.nodes.keys().filter(|id| !listed.contains(id)).for_each(|id| add(pool, id));
        }
        for (_, answer) in &self.answers {
            if let Answer::History(Ok(history)) = answer {
                for (pool, ended) in history {
                    ended.iter().filter(|(id, _)| !listed.contains(id)).for_each(|(id, _)| add(pool, id));
                }
            }
        }
        members
    }

    /// Why the nodes or the ledger are not known: what stands on them is not known either.
    pub(crate) fn lost(&self) -> Option<CallError> {
        lost(&self.answers)
    }

    /// Whether AWS's own figure of the month was read.
    pub(crate) fn has_budget(&self) -> bool {
        self.answers.iter().any(|(_, answer)| matches!(answer, Answer::Budget(Ok(_))))
    }

    /// What could not be read.
    pub(crate) fn failures(&self) -> Vec<CallError> {
        self.answers.iter().filter_map(|(_, answer)| answer.failure().cloned()).collect()
    }
}

fn lost(answers: &[(Call, Answer)]) -> Option<CallError> {
    let of_the_look = |call: &Call| matches!(call, Call::DescribeNodes { .. } | Call::ReadLedger { .. });
    let mut of_the_look = answers.iter().filter(|(call, _)| of_the_look(call));
    of_the_look.find_map(|(_, answer)| answer.failure().cloned())
}

async fn read(aws: &Aws, call: &Call) -> Answer {
    let until = Moment::now() + LONGEST_STEP;
    let answered = timeout_at(until, aws.answer(call, until)).await;
    answered.unwrap_or_else(|_| call.failed(CallError::timed_out(call.name().replace('_', " "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_was_cut_off_is_lost_as_one_that_was_refused() {
        let all = Call::DescribeNodes { pools: None };
        let ledger = Call::ReadLedger { pools: BTreeSet::new() };
        let budget = Call::ReadBudget { name: "reveille".to_owned() };
        let nodes = || (all.clone(), Answer::Nodes(Ok(Vec::new())));
        let failed = |call: &Call| (call.clone(), call.failed(CallError::timed_out("describe")));
        assert_eq!(lost(&[nodes(), failed(&budget)]), None);
        for call in [&all, &ledger] {
            let error = lost(&[nodes(), failed(call)]).expect("it is lost");
            assert_eq!(error.code, "Timeout");
        }
    }
}
