//! An in-memory world that answers the same calls as AWS, on virtual time, with faults. Tests, soak and planner drive runs
//! over it; one suite holds it and the executor over AWS to the same behaviour.

use crate::decide::budget::BudgetPolicy;
use crate::domain::{
    AlertKey, Beat, Claim, ClaimAnswer, Disk, Fault, Gate, GateKeeper, Hold, InstanceType, Instant, Launch, Lease,
    LeaseId, NodeId, NodeRecord, NodeSeen, NodeState, PoolName, PoolRecord, Rate, RunId, StateReason, Usd, Wake,
};
use crate::error::{CallError, TookEffect, class_of, effect_of};
use crate::observation::{Series, SignalKind, Unread, log_points};
use crate::policy::STALE_LOOK;
use crate::run::{
    Activity, Alert, AlertClaimed, Answer, BudgetNote, BudgetSeen, Call, Cap, Claimed, Context, Demanded, Fact,
    History, LeaseGround, Leased, LogActivity, LogSource, MetricRef, Notice, Outcome, Permit, Run, Samples, Started,
    Step, Stopped, Waiting, fact_name, notices,
};
use chrono::{DurationRound, TimeDelta};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::mem::discriminant;

/// How a call fails.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorldFault {
    /// The call's kind, such as `start`; see [`call_name`].
    pub call: &'static str,
    /// Only calls about this node.
    pub node: Option<NodeId>,
    /// The service's code.
    pub code: &'static str,
    /// Whether the call is carried out before its answer is lost.
    pub after: bool,
    /// How many times.
    pub times: u32,
}

/// The short name of a call.
pub fn call_name(call: &Call) -> &'static str {
    call.name()
}

/// The node that a call acts on.
fn about(call: &Call) -> Option<&NodeId> {
    match call {
        Call::Start { node }
        | Call::Stop { node, .. }
        | Call::Claim { node, .. }
        | Call::Resize { node, .. }
        | Call::GiveLease { node, .. }
        | Call::RenewLease { node, .. }
        | Call::EndLease { node, .. }
        | Call::SetHold { node, .. } => Some(node),
        Call::DescribeNodes { .. }
        | Call::ReadLedger { .. }
        | Call::RecordDemand { .. }
        | Call::ReadActivity { .. }
        | Call::ReadReadiness { .. }
        | Call::RecordAnswer { .. }
        | Call::WriteFacts { .. }
        | Call::ClaimAlert { .. }
        | Call::Publish { .. }
        | Call::MarkPublished { .. }
        | Call::KeepUntold { .. }
        | Call::ReadLogs { .. }
        | Call::ReadHistory { .. }
        | Call::ReadSamples { .. }
        | Call::ReadDisks { .. }
        | Call::ReadBudget { .. }
        | Call::ReadBudgetNote { .. }
        | Call::CreateBudget { .. }
        | Call::SetBudgetAmount { .. }
        | Call::CreateNotices { .. }
        | Call::NoteBudget { .. }
        | Call::SetGate { .. }
        | Call::ReadBeats { .. }
        | Call::StopWaiting { .. }
        | Call::NoteLaunches { .. } => None,
    }
}

#[derive(Debug, Clone, PartialEq, Hash)]
struct WorldNode {
    seen: NodeSeen,
    /// The state it goes to by itself, and when.
    due: Option<(Instant, NodeState, Option<StateReason>)>,
    checks_ok_at: Option<Instant>,
    stuck: bool,
    falls_back: Option<StateReason>,
    refuses_stop: Option<&'static str>,
    no_capacity: bool,
    /// From when to when it was running; the last may be open.
    ran: Vec<(Instant, Option<Instant>)>,
}

/// One minute of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bucket {
    sum: f64,
    highest: f64,
}

impl Hash for Bucket {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.sum.to_bits(), self.highest.to_bits()).hash(state);
    }
}

/// The world. Its hash is of all it holds, so that a model checker can tell its states apart.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct World {
    now: Instant,
    nodes: BTreeMap<NodeId, WorldNode>,
    ledger: BTreeMap<PoolName, PoolRecord>,
    metrics: BTreeMap<MetricRef, BTreeMap<Instant, Bucket>>,
    /// When each was claimed, and whether it was marked as published.
    alerts: BTreeMap<AlertKey, (Instant, bool)>,
    faults: Vec<WorldFault>,
    history: History,
    logs: BTreeMap<String, Vec<(Instant, String)>>,
    disks: BTreeMap<NodeId, Vec<Disk>>,
    /// The AWS budgets, to look at or to change.
    pub budgets: BTreeMap<String, BudgetSeen>,
    budget_notes: BTreeMap<String, BudgetNote>,
    /// The nodes' newest beats, to look at or to change.
    pub beats: BTreeMap<NodeId, Beat>,
    /// Instance types that EC2 has no capacity for.
    pub no_capacity_types: BTreeSet<InstanceType>,
    /// How long `pending` lasts.
    pub pending: TimeDelta,
    /// How long `stopping` lasts.
    pub stopping: TimeDelta,
    /// From launch to status checks ok.
    pub checks: TimeDelta,
    /// Every call that was made, in order.
    pub calls: Vec<&'static str>,
    /// What was published.
    pub published: Vec<Alert>,
    /// Every accepted START and STOP.
    pub effects: Vec<(Instant, &'static str, NodeId)>,
}

impl World {
    /// An empty world at this instant.
    pub fn at(now: Instant) -> Self {
        Self {
            now,
            nodes: BTreeMap::new(),
            ledger: BTreeMap::new(),
            metrics: BTreeMap::new(),
            alerts: BTreeMap::new(),
            faults: Vec::new(),
            history: History::new(),
            logs: BTreeMap::new(),
            disks: BTreeMap::new(),
            budgets: BTreeMap::new(),
            budget_notes: BTreeMap::new(),
            beats: BTreeMap::new(),
            no_capacity_types: BTreeSet::new(),
            pending: TimeDelta::seconds(20),
            stopping: TimeDelta::seconds(40),
            checks: TimeDelta::seconds(60),
            calls: Vec::new(),
            published: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// The instant it is.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Moves time forward; nodes change state on the way.
    pub fn set_now(&mut self, now: Instant) {
        self.now = self.now.max(now);
        for node in self.nodes.values_mut() {
            settle(node, self.now);
        }
    }

    /// Puts a node there, as it is.
    pub fn add_node(&mut self, seen: NodeSeen) {
        let checks_ok_at = seen.launched_at.map(|at| at + self.checks);
        let ran = match (seen.state, seen.launched_at) {
            (NodeState::Running, Some(at)) => vec![(at, None)],
            _ => Vec::new(),
        };
        let (due, falls_back, refuses_stop) = (None, None, None);
        let (stuck, no_capacity) = (false, false);
        let node = WorldNode { seen, due, checks_ok_at, stuck, falls_back, refuses_stop, no_capacity, ran };
        self.nodes.insert(node.seen.id.clone(), node);
    }

    /// The node as it truly is now.
    pub fn node(&self, id: &NodeId) -> Option<&NodeSeen> {
        self.nodes.get(id).map(|node| &node.seen)
    }

    /// Every node that is listed.
    pub fn node_ids(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.keys()
    }

    /// The ledger's item of a pool, to look at or to change.
    pub fn record(&mut self, pool: &PoolName) -> &mut PoolRecord {
        self.ledger.entry(pool.clone()).or_default()
    }

    /// Adds a point to the minute that holds this instant.
    pub fn point(&mut self, metric: &MetricRef, at: Instant, value: f64) {
        let minutes = self.metrics.entry(metric.clone()).or_default();
        let bucket = minutes.entry(minute(at)).or_insert(Bucket { sum: 0.0, highest: f64::NEG_INFINITY });
        *bucket = Bucket { sum: bucket.sum + value, highest: bucket.highest.max(value) };
    }

    /// Makes a coming call fail.
    pub fn fail(&mut self, fault: WorldFault) {
        self.faults.push(fault);
    }

    /// Nothing fails any more.
    pub fn heal(&mut self) {
        self.faults.clear();
    }

    /// The node hangs in its next `stopping` until it is forced.
    pub fn hang_in_stopping(&mut self, id: &NodeId) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.stuck = true;
        }
    }

    /// The node's next START is accepted and falls back to `stopped`.
    pub fn fall_back(&mut self, id: &NodeId, reason: StateReason) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.falls_back = Some(reason);
        }
    }

    /// EC2 refuses every STOP of the node with this code.
    pub fn refuse_stop(&mut self, id: &NodeId, code: &'static str) {
        self.refuse_stops(id, Some(code));
    }

    /// EC2 refuses every STOP of the node with this code, or none any more.
    pub fn refuse_stops(&mut self, id: &NodeId, code: Option<&'static str>) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.refuses_stop = code;
        }
    }

    /// EC2 has no capacity for this node, whatever its type, until told otherwise.
    pub fn no_capacity(&mut self, id: &NodeId, none: bool) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.no_capacity = none;
        }
    }

    /// A line of a request log, written at this instant.
    pub fn log(&mut self, group: &str, at: Instant, line: &str) {
        self.logs.entry(group.to_owned()).or_default().push((at, line.to_owned()));
    }

    /// A volume of a node.
    pub fn add_disk(&mut self, id: &NodeId, disk: Disk) {
        self.disks.entry(id.clone()).or_default().push(disk);
    }

    /// A node is no longer listed: terminated long ago, or without its tag.
    pub fn forget(&mut self, id: &NodeId) {
        self.nodes.remove(id);
    }

    /// The ended launches that were written down.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// A person starts the node in the console.
    ///
    /// # Errors
    /// As EC2 answers.
    pub fn start(&mut self, id: &NodeId) -> Result<Started, CallError> {
        let (now, pending) = (self.now, self.pending);
        let checks = self.checks;
        let node = self.nodes.get_mut(id).ok_or_else(|| refuse("start", id, "InvalidInstanceID.NotFound"))?;
        let before = node.seen.state;
        match before {
            NodeState::Pending | NodeState::Running => return Ok(Started { before }),
            NodeState::Stopping | NodeState::Gone => return Err(refuse("start", id, "IncorrectInstanceState")),
            NodeState::Stopped => {}
        }
        let full = node.seen.instance_type.as_ref().is_some_and(|kind| self.no_capacity_types.contains(kind));
        if full || node.no_capacity {
            return Err(refuse("start", id, "InsufficientInstanceCapacity"));
        }
        node.seen.state = NodeState::Pending;
        node.seen.launched_at = Some(now);
        (node.seen.state_reason, node.seen.transition_at) = (None, None);
        node.checks_ok_at = Some(now + checks);
        let fallen = node.falls_back.take();
        let to = if fallen.is_some() { NodeState::Stopped } else { NodeState::Running };
        node.due = Some((now + pending, to, fallen));
        self.effects.push((now, "start", id.clone()));
        Ok(Started { before })
    }

    /// A person stops the node in the console.
    ///
    /// # Errors
    /// As EC2 answers.
    pub fn stop(&mut self, id: &NodeId, force: bool) -> Result<Stopped, CallError> {
        let (now, stopping) = (self.now, self.stopping);
        let node = self.nodes.get_mut(id).ok_or_else(|| refuse("stop", id, "InvalidInstanceID.NotFound"))?;
        let before = node.seen.state;
        if let Some(code) = node.refuses_stop {
            return Err(refuse("stop", id, code));
        }
        match before {
            NodeState::Stopping if force => {
                node.stuck = false;
                let forced = now + TimeDelta::seconds(10);
                let at = node.due.as_ref().map_or(forced, |(at, _, _)| forced.min(*at));
                node.due = Some((at, NodeState::Stopped, None));
            }
            NodeState::Stopping | NodeState::Stopped => {}
            NodeState::Pending if !force => return Err(refuse("stop", id, "IncorrectInstanceState")),
            NodeState::Gone => return Err(refuse("stop", id, "IncorrectInstanceState")),
            NodeState::Pending | NodeState::Running => {
                if let Some((_, end)) = node.ran.last_mut() {
                    *end = end.or(Some(now));
                }
                node.seen.state = NodeState::Stopping;
                node.seen.transition_at = Some(now);
                let code = "Client.UserInitiatedShutdown".to_owned();
                node.seen.state_reason =
                    Some(StateReason { message: format!("{code}: User initiated shutdown"), code });
                node.due = (!node.stuck).then_some((now + stopping, NodeState::Stopped, None));
                self.effects.push((now, "stop", id.clone()));
            }
        }
        Ok(Stopped { before })
    }

    /// Carries out one call.
    pub fn answer(&mut self, call: &Call) -> Answer {
        self.calls.push(call_name(call));
        let Some(fault) = self.take_fault(call) else { return self.carry_out(call) };
        if fault.after {
            self.carry_out(call);
        }
        let effect = if fault.after { TookEffect::Maybe } else { effect_of(fault.code, status_of(fault.code)) };
        let (name, code) = (call_name(call), fault.code);
        let error = about(call).map_or_else(|| refuse_words(name, code), |node| refuse(name, node, code));
        call.failed(CallError { effect, ..error })
    }

    fn take_fault(&mut self, call: &Call) -> Option<WorldFault> {
        let (name, about) = (call_name(call), about(call));
        let fits = |fault: &WorldFault| fault.call == name && (fault.node.is_none() || fault.node.as_ref() == about);
        let n = self.faults.iter().position(|fault| fault.times > 0 && fits(fault))?;
        self.faults[n].times -= 1;
        let fault = self.faults[n].clone();
        self.faults.retain(|fault| fault.times > 0);
        Some(fault)
    }

    fn carry_out(&mut self, call: &Call) -> Answer {
        match call {
            Call::DescribeNodes { pools } => Answer::Nodes(Ok(self.describe(pools.as_ref()))),
            Call::ReadLedger { pools } => {
                let read = |pool: &PoolName| (pool.clone(), self.ledger.get(pool).cloned().unwrap_or_default());
                Answer::Ledger(Ok(pools.iter().map(read).collect()))
            }
            Call::RecordDemand { pool, node, wake, cap, waiting } => {
                Answer::Demand(Ok(self.demand(pool, node.as_ref(), wake, cap.as_ref(), waiting)))
            }
            Call::GiveLease { pool, node, id, lease, ground } => {
                Answer::Lease(Ok(self.give_lease(pool, node, id, lease, ground)))
            }
            Call::RenewLease { pool, node, id, lease } => Answer::Lease(Ok(self.renew_lease(pool, node, id, lease))),
            Call::EndLease { pool, node, id, by, at } => Answer::Lease(Ok(self.end_lease(pool, node, id, by, *at))),
            Call::StopWaiting { pool, id } => {
                self.ledger.get_mut(pool).map(|record| record.waiting.remove(id));
                Answer::Recorded(Ok(()))
            }
            Call::ReadBeats { nodes } => {
                let of = |id: &NodeId| Some((id.clone(), self.beats.get(id)?.clone()));
                Answer::Beats(Ok(nodes.iter().filter_map(of).collect()))
            }
            Call::SetHold { pool, node, hold } => Answer::HoldSet(Ok(self.set_hold(pool, node, hold.as_ref()))),
            Call::ReadLogs { sources, from, to } => Answer::Logs(Ok(self.read_logs(sources, *from, *to))),
            Call::ReadHistory { pools, from } => Answer::History(Ok(self.read_history(pools, *from))),
            Call::ReadSamples { nodes, from, to } => Answer::Samples(Ok(self.samples(nodes, *from, *to))),
            Call::ReadDisks { nodes } => {
                let of = |id: &NodeId| (id.clone(), self.disks.get(id).cloned().unwrap_or_default());
                Answer::Disks(Ok(nodes.iter().map(of).collect()))
            }
            Call::ReadBudget { name } => Answer::Budget(Ok(self.budgets.get(name).cloned())),
            Call::ReadBudgetNote { name } => {
                Answer::BudgetNote(Ok(self.budget_notes.get(name).cloned().unwrap_or_default()))
            }
            Call::CreateBudget { budget, .. } => Answer::Recorded(self.create_budget(budget)),
            Call::SetBudgetAmount { budget, note, .. } => {
                let set = self.set_budget_amount(budget);
                if set.is_ok() {
                    self.budget_notes.insert(budget.name.clone(), note.clone());
                }
                Answer::Recorded(set)
            }
            Call::CreateNotices { budget, notices } => Answer::Recorded(self.create_notices(&budget.name, notices)),
            Call::NoteBudget { name, note } => {
                self.budget_notes.insert(name.clone(), note.clone());
                Answer::Recorded(Ok(()))
            }
            Call::SetGate { pool, by, gate, at } => Answer::GateSet(Ok(self.set_gate(pool, *by, gate.as_ref(), *at))),
            Call::Resize { node, to } => Answer::Resized(self.resize(node, to)),
            Call::NoteLaunches { pool, ended, newest } => {
                self.note_launches(pool, ended, newest);
                Answer::Recorded(Ok(()))
            }
            Call::ReadActivity { metrics, from, to } => Answer::Activity(Ok(self.activity(metrics, *from, *to))),
            Call::ReadReadiness { nodes } => Answer::Readiness(self.readiness(nodes)),
            Call::Claim { pool, node, permit, leased, claim } => {
                Answer::Claim(Ok(self.claim(pool, node, *permit, *leased, claim)))
            }
            Call::Start { node } => Answer::Start(self.start(node)),
            Call::Stop { node, force } => Answer::Stop(self.stop(node, *force)),
            Call::RecordAnswer { pool, node, run, answer, fault } => {
                self.record_answer(pool, node, run, answer, fault.as_ref());
                Answer::Recorded(Ok(()))
            }
            Call::WriteFacts { pool, facts } => Answer::Recorded(self.write_facts(pool, facts)),
            Call::ClaimAlert { key, at } => {
                let known = self.alerts.get(key);
                let claimed = match known {
                    Some((_, true)) => AlertClaimed::Published,
                    Some((claimed, false)) if *claimed > *at - STALE_LOOK => AlertClaimed::Another,
                    Some(_) | None => AlertClaimed::Mine,
                };
                if claimed == AlertClaimed::Mine {
                    self.alerts.insert(key.clone(), (*at, false));
                }
                Answer::AlertClaim(Ok(claimed))
            }
            Call::Publish { alert } => {
                self.published.push(alert.clone());
                Answer::Published(Ok(()))
            }
            Call::KeepUntold { pool, key, text } => {
                let untold = &mut self.record(pool).untold;
                match text {
                    Some(text) => drop(untold.insert(key.clone(), text.clone())),
                    None => drop(untold.remove(key)),
                }
                Answer::Recorded(Ok(()))
            }
            Call::MarkPublished { key } => {
                self.alerts.entry(key.clone()).or_insert((self.now, true)).1 = true;
                Answer::Recorded(Ok(()))
            }
        }
    }

    fn describe(&self, pools: Option<&BTreeSet<PoolName>>) -> Vec<NodeSeen> {
        let wanted = |node: &&WorldNode| pools.is_none_or(|pools| pools.contains(&node.seen.pool));
        self.nodes.values().filter(wanted).map(|node| node.seen.clone()).collect()
    }

    fn demand(
        &mut self,
        pool: &PoolName,
        node: Option<&NodeId>,
        wake: &Wake,
        cap: Option<&Cap>,
        waiting: &Waiting,
    ) -> Demanded {
        let record = self.record(pool);
        if record.closed_gate(wake.at).is_some() {
            return Demanded::Refused(record.clone());
        }
        if let Some(cap) = cap {
            let minute = wake.at.timestamp().div_euclid(60);
            let known = record.rate.clone().filter(|rate| rate.minute >= minute);
            let mut rate = known.unwrap_or_else(|| Rate { minute, ..Rate::default() });
            let own = rate.by.entry(cap.caller.clone()).or_default();
            if rate.all >= cap.all || *own >= cap.each {
                return Demanded::TooMany;
            }
            *own += 1;
            rate.all += 1;
            record.rate = Some(rate);
        }
        record.demand += 1;
        match node {
            Some(id) => record.nodes.entry(id.clone()).or_default().wake = Some(wake.clone()),
            None if wake.source.is_log() => record.line_wake = Some(wake.clone()),
            None => record.wake = Some(wake.clone()),
        }
        record.waiting.retain(|id, _| !waiting.over.contains(id));
        record.waiting.extend(waiting.call.clone());
        Demanded::Recorded(record.clone())
    }

    fn give_lease(
        &mut self,
        pool: &PoolName,
        id: &NodeId,
        name: &LeaseId,
        lease: &Lease,
        ground: &LeaseGround,
    ) -> Leased {
        let record = self.record(pool);
        let known = record.node(id);
        let claim = known.claim.as_ref().map(|claim| (claim.run.clone(), claim.kind));
        let is_over = |name: &LeaseId| known.leases.get(name).is_some_and(|lease_of| !lease_of.is_live(lease.at));
        let room = usize::try_from(ground.most).unwrap_or(usize::MAX) + ground.over.len();
        // Once there was a lease there is a map of them, though it may be empty.
        let has_map = !known.leases.is_empty() || known.leased.is_some();
        let stands = claim == ground.claim
            && record.closed_gate(lease.at).is_none()
            && ["claim", "leases"].iter().all(|kind| !record.unread.contains(&fact_name(kind, id)))
            && !known.leases.contains_key(name)
            && (if ground.is_first { known.leases.is_empty() } else { has_map })
            && known.leases.len() < room
            && ground.over.iter().all(is_over);
        if !stands {
            return Leased::Moved(record.clone());
        }
        record.demand += 1;
        if ground.was_waiting {
            record.waiting.remove(name);
        }
        let node = record.nodes.entry(id.clone()).or_default();
        ground.over.iter().for_each(|name| drop(node.leases.remove(name)));
        node.leases.insert(name.clone(), lease.clone());
        node.leased = Some(lease.at);
        Leased::Done(record.clone())
    }

    fn renew_lease(&mut self, pool: &PoolName, id: &NodeId, name: &LeaseId, lease: &Lease) -> Leased {
        let record = self.record(pool);
        let live = |known: &&mut Lease| known.by == lease.by && known.is_live(lease.at);
        let known =
            record.nodes.get_mut(id).and_then(|node| Some((node.leases.get_mut(name).filter(live)?, &mut node.leased)));
        let Some((known, leased)) = known else { return Leased::Moved(record.clone()) };
        (known.until, *leased) = (lease.until, Some(lease.at));
        Leased::Done(record.clone())
    }

    fn end_lease(&mut self, pool: &PoolName, id: &NodeId, name: &LeaseId, by: &str, at: Instant) -> Leased {
        let record = self.record(pool);
        let is_own = |node: &&mut NodeRecord| node.leases.get(name).is_some_and(|lease| lease.by == by);
        let Some(node) = record.nodes.get_mut(id).filter(is_own) else { return Leased::Moved(record.clone()) };
        node.leases.remove(name);
        node.leased = Some(at);
        Leased::Done(record.clone())
    }

    /// Replaces one that could not be read, too; a node of which no fact is left is not there.
    fn set_hold(&mut self, pool: &PoolName, id: &NodeId, hold: Option<&Hold>) -> PoolRecord {
        let record = self.record(pool);
        let before = record.clone();
        record.demand += 1;
        record.unread.retain(|name| *name != fact_name("hold", id));
        record.nodes.entry(id.clone()).or_default().hold = hold.cloned();
        record.nodes.retain(|_, node| *node != NodeRecord::default());
        before
    }

    fn set_gate(&mut self, pool: &PoolName, by: GateKeeper, gate: Option<&Gate>, now: Instant) -> Option<PoolRecord> {
        let record = self.record(pool);
        let of_person = record.closed_gate(now).is_some_and(|gate| gate.by == GateKeeper::Person);
        if by == GateKeeper::Budget && of_person {
            return None;
        }
        let before = record.clone();
        record.gate = gate.cloned();
        record.claims += 1;
        Some(before)
    }

    fn note_launches(&mut self, pool: &PoolName, ended: &[(NodeId, Launch)], newest: &[(NodeId, Launch)]) {
        let known = self.history.entry(pool.clone()).or_default();
        for (id, launch) in ended {
            // Keyed by end and node: the same end written twice is one entry.
            known.retain(|(node, other)| node != id || other.ended_at != launch.ended_at);
            known.push((id.clone(), launch.clone()));
        }
        for (id, launch) in newest {
            self.record(pool).nodes.entry(id.clone()).or_default().launch = Some(launch.clone());
        }
    }

    fn read_history(&self, pools: &BTreeSet<PoolName>, from: Instant) -> History {
        let of = |pool: &PoolName| {
            let launches = self.history.get(pool).into_iter().flatten();
            let recent = launches.filter(|(_, launch)| launch.ended_at.is_some_and(|end| end >= from));
            (pool.clone(), recent.cloned().collect())
        };
        pools.iter().map(of).collect()
    }

    /// A sample at the start of every minute in which the node runs.
    fn samples(&self, nodes: &BTreeSet<NodeId>, from: Instant, to: Instant) -> Samples {
        let of = |id: &NodeId| {
            let mut buckets: BTreeMap<Instant, f64> = BTreeMap::new();
            let ran = self.nodes.get(id).map(|node| node.ran.as_slice()).unwrap_or_default();
            for (start, end) in ran {
                let end = end.unwrap_or(self.now).min(to).min(self.now);
                let first = minute(*start + TimeDelta::seconds(59)).max(from);
                let minutes = (0..).map(|n| first + TimeDelta::minutes(n)).take_while(|at| *at < end);
                for at in minutes {
                    *buckets.entry(at.duration_trunc(TimeDelta::minutes(5)).unwrap_or(at)).or_default() += 1.0;
                }
            }
            (id.clone(), buckets.into_iter().collect())
        };
        nodes.iter().map(of).collect()
    }

    fn read_logs(&self, sources: &[LogSource], from: Instant, to: Instant) -> LogActivity {
        let of = |source: &LogSource| {
            let Some(lines) = self.logs.get(&source.group) else { return (source.key(), Err(Unread::Failed)) };
            let lines = lines.iter().filter(|(at, _)| *at >= from && *at < to).map(|(at, line)| (*at, line.as_bytes()));
            let points = log_points(lines, &source.filter, from, to);
            (source.key(), Ok(Series { points, complete: true }))
        };
        sources.iter().map(of).collect()
    }

    /// One that somebody has made meanwhile is as good.
    fn create_budget(&mut self, budget: &BudgetPolicy) -> Result<(), CallError> {
        if self.budgets.contains_key(&budget.name) {
            return Ok(());
        }
        let (amount, unit) = (budget.amount.plain(), "USD".to_owned());
        let actual = Some(Usd::ZERO);
        let seen = BudgetSeen { amount, unit, actual, forecast: None, notices: notices(budget) };
        self.budgets.insert(budget.name.clone(), seen);
        Ok(())
    }

    /// An update clears what AWS had calculated.
    fn set_budget_amount(&mut self, budget: &BudgetPolicy) -> Result<(), CallError> {
        let known = self.budgets.get_mut(&budget.name);
        let known = known.ok_or_else(|| refuse_words("set the budget's amount", "NotFoundException"))?;
        (known.amount, known.unit) = (budget.amount.plain(), "USD".to_owned());
        (known.actual, known.forecast) = (Some(Usd::ZERO), None);
        Ok(())
    }

    fn create_notices(&mut self, name: &str, notices: &BTreeSet<Notice>) -> Result<(), CallError> {
        let known = self.budgets.get_mut(name);
        let known = known.ok_or_else(|| refuse_words("create notifications", "NotFoundException"))?;
        known.notices.extend(notices);
        Ok(())
    }

    fn resize(&mut self, id: &NodeId, to: &InstanceType) -> Result<(), CallError> {
        let act = "change the instance type of";
        let node = self.nodes.get_mut(id).ok_or_else(|| refuse(act, id, "InvalidInstanceID.NotFound"))?;
        if node.seen.state != NodeState::Stopped {
            return Err(refuse(act, id, "IncorrectInstanceState"));
        }
        node.seen.instance_type = Some(to.clone());
        Ok(())
    }

    fn activity(&self, metrics: &BTreeMap<MetricRef, SignalKind>, from: Instant, to: Instant) -> Activity {
        let points = |metric: &MetricRef, kind: SignalKind| {
            let value = |bucket: &Bucket| match kind {
                SignalKind::Requests => bucket.sum,
                SignalKind::Open => bucket.highest,
            };
            let found = self.metrics.get(metric).into_iter().flat_map(|minutes| minutes.range(minute(from)..to));
            found.map(|(at, bucket)| (*at, value(bucket))).collect()
        };
        let read = |(metric, kind): (&MetricRef, &SignalKind)| {
            (metric.clone(), Ok::<_, Unread>(Series { points: points(metric, *kind), complete: true }))
        };
        metrics.iter().map(read).collect()
    }

    fn readiness(&self, nodes: &BTreeSet<NodeId>) -> Result<BTreeSet<NodeId>, CallError> {
        if nodes.iter().any(|id| !self.nodes.contains_key(id)) {
            return Err(refuse_words("readiness", "InvalidInstanceID.NotFound"));
        }
        let is_ok = |id: &&NodeId| {
            let node = self.nodes.get(id).filter(|node| node.seen.state == NodeState::Running);
            node.and_then(|node| node.checks_ok_at).is_some_and(|at| at <= self.now)
        };
        Ok(nodes.iter().filter(is_ok).cloned().collect())
    }

    /// One update of one item: no fact may be named twice in it, and a node of which no fact is left is not there.
    fn write_facts(&mut self, pool: &PoolName, facts: &[(NodeId, Fact)]) -> Result<(), CallError> {
        let named: HashSet<_> = facts.iter().map(|(node, fact)| (node, discriminant(fact))).collect();
        if facts.is_empty() || named.len() < facts.len() {
            return Err(refuse_words("facts", "ValidationException"));
        }
        let nodes = &mut self.record(pool).nodes;
        facts.iter().for_each(|(node, fact)| write(nodes.entry(node.clone()).or_default(), fact));
        nodes.retain(|_, node| *node != NodeRecord::default());
        Ok(())
    }

    fn claim(
        &mut self,
        pool: &PoolName,
        node: &NodeId,
        permit: Permit,
        leased: Option<Instant>,
        claim: &Claim,
    ) -> Claimed {
        let record = self.record(pool);
        let was_leased = record.node(node).leased != leased;
        if record.claims != permit.claims || permit.demand.is_some_and(|demand| demand != record.demand || was_leased) {
            return Claimed::Lost(record.clone());
        }
        record.claims += 1;
        record.nodes.entry(node.clone()).or_default().claim = Some(claim.clone());
        Claimed::Granted(record.clone())
    }

    fn record_answer(
        &mut self,
        pool: &PoolName,
        node: &NodeId,
        run: &RunId,
        answer: &ClaimAnswer,
        fault: Option<&Fault>,
    ) {
        let record = self.record(pool);
        let Some(known) = record.nodes.get_mut(node) else { return };
        let Some(claim) = known.claim.as_mut().filter(|claim| claim.run == *run) else { return };
        claim.answer = Some(answer.clone());
        known.fault = fault.cloned().or(known.fault.take());
        record.claims += 1;
    }

    /// Drives a run to its end, every step's calls in order.
    pub fn drive(&mut self, run: &mut impl Run) -> Outcome {
        let mut answers = Vec::new();
        loop {
            match run.next(std::mem::take(&mut answers)) {
                Step::Calls(calls) => answers = calls.iter().map(|call| self.answer(call)).collect(),
                Step::Done(outcome) => return outcome,
            }
        }
    }

    /// The context of a run in this world, now.
    pub fn context(&self, run: &str, base: &Context) -> Context {
        Context { run: RunId(run.to_owned()), now: self.now, ..base.clone() }
    }
}

fn settle(node: &mut WorldNode, now: Instant) {
    let Some((_, state, reason)) = node.due.clone().filter(|(at, _, _)| *at <= now) else { return };
    if let (NodeState::Running, Some((at, _, _))) = (state, &node.due) {
        node.ran.push((*at, None));
    }
    node.due = None;
    node.seen.state = state;
    // EC2 tells why a start fell back, not when.
    if reason.is_some() {
        node.seen.state_reason = reason;
    }
}

fn write(node: &mut NodeRecord, fact: &Fact) {
    match fact {
        Fact::Mark(mark) => node.mark.clone_from(mark),
        Fact::Ready(ready) => node.ready.clone_from(ready),
        Fact::Fault(fault) => node.fault.clone_from(fault),
        Fact::Blind(blind) => node.blind.clone_from(blind),
        Fact::Noise(noise) => node.noise.clone_from(noise),
        Fact::Boots(boots) => node.boots.clone_from(boots),
    }
}

/// The minute that holds this instant, as CloudWatch names it: by its start.
fn minute(at: Instant) -> Instant {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)
}

/// The HTTP status that AWS sends with a code; none where there was no answer.
fn status_of(code: &str) -> Option<u16> {
    match code {
        "Timeout" | "NoAnswer" => None,
        "InternalError"
        | "InternalFailure"
        | "InternalServerError"
        | "InternalServiceError"
        | "Server.InternalError"
        | "InsufficientInstanceCapacity" => Some(500),
        "RequestLimitExceeded" | "ServiceUnavailable" | "ServiceUnavailableException" | "Unavailable" => Some(503),
        _ => Some(400),
    }
}

fn refuse(what: &str, id: &NodeId, code: &str) -> CallError {
    CallError { act: format!("{what} node {id}"), ..refuse_words(what, code) }
}

fn refuse_words(act: &str, code: &str) -> CallError {
    CallError {
        act: act.to_owned(),
        code: code.to_owned(),
        message: "refused by the in-memory world".to_owned(),
        class: class_of(code),
        effect: TookEffect::No,
    }
}
