//! Every quarter of an hour: tells of nodes that were up for too long in a local day, and renews the sight of running ones.
//! It uses none of the idle check's sources: launches from the ledger, samples from EC2's own status checks.

use super::act::Acts;
use super::alert::{About, Alert, Whom};
use super::call::{Answer, Call, History, Samples, take_history, take_ledger, take_nodes, take_samples};
use super::launches::{Launches, Sight};
use super::look::{unseen_pools, without_use};
use super::outcome::Decided;
use super::{Context, Outcome, Run, Step};
use crate::decide::Reason;
use crate::decide::uptime::{LocalDay, Running, UptimeAction, UptimeDecision, decide};
use crate::domain::{
    Instant, Launch, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, PublicAddress, running_seconds,
};
use crate::error::CallError;
use chrono::{TimeDelta, Timelike as _};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Samples are read in buckets of this length; every zone's midnight lies on one.
const BUCKET_MINUTES: i64 = 5;

/// How often the function is scheduled.
const SCHEDULE_MINUTES: u32 = 15;

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Start,
    Look,
    Read { nodes: Result<Vec<NodeSeen>, CallError>, samples: bool },
    Act(Box<Acts>),
    Over,
}

/// The uptime alarm.
#[derive(Debug, Clone, PartialEq)]
pub struct UptimeRun {
    ctx: Context,
    stage: Stage,
    outcome: Outcome,
    writes: Vec<Call>,
    alerts: Vec<Alert>,
}

impl UptimeRun {
    /// A run that is ready for its first `next`.
    pub fn new(ctx: Context) -> Self {
        Self { ctx, stage: Stage::Start, outcome: Outcome::default(), writes: Vec::new(), alerts: Vec::new() }
    }
}

impl Run for UptimeRun {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => {
                self.stage = Stage::Look;
                Step::Calls(vec![Call::DescribeNodes { pools: None }])
            }
            Stage::Look => self.looked(take_nodes(answers.into_iter().next())),
            Stage::Read { nodes, samples } => self.read(nodes, samples, answers),
            Stage::Act(acts) => self.acted(*acts, answers),
            Stage::Over => Step::Done(std::mem::take(&mut self.outcome)),
        }
    }
}

/// One node with all that is known of its day.
struct Seen<'a> {
    id: &'a NodeId,
    whom: Whom,
    pool: &'a PoolName,
    launches: Vec<Launch>,
    all_launches: bool,
    samples: Option<Vec<(Instant, f64)>>,
}

impl UptimeRun {
    /// Today, and yesterday for what was crossed between its last run and midnight.
    fn days(&self) -> [LocalDay; 2] {
        let today = LocalDay::of(self.ctx.policy.zone, self.ctx.now);
        [today.before(self.ctx.policy.zone), today]
    }

    fn looked(&mut self, nodes: Result<Vec<NodeSeen>, CallError>) -> Step {
        let listed = nodes.as_deref().unwrap_or_default();
        // A node of a pool that nobody configured runs up money like any other.
        let pools: BTreeSet<PoolName> =
            self.ctx.pools.keys().cloned().chain(listed.iter().map(|node| node.pool.clone())).collect();
        let from = self.days()[0].from;
        let ids: BTreeSet<NodeId> =
            listed.iter().filter(|node| node.launched_at.is_some()).map(|node| node.id.clone()).collect();
        let mut calls = vec![Call::ReadLedger { pools: pools.clone() }, Call::ReadHistory { pools, from }];
        let samples = !ids.is_empty();
        if samples {
            calls.push(Call::ReadSamples { nodes: ids, from, to: self.ctx.now });
        }
        self.stage = Stage::Read { nodes, samples };
        Step::Calls(calls)
    }

    fn read(&mut self, nodes: Result<Vec<NodeSeen>, CallError>, samples: bool, answers: Vec<Answer>) -> Step {
        let mut answers = answers.into_iter();
        let records = take_ledger(answers.next());
        let history = take_history(answers.next());
        let samples = if samples { take_samples(answers.next()) } else { Ok(Samples::new()) };
        self.note_failures(&nodes, &records, &history, &samples);
        let (mut known, listed) = (records.as_ref().ok().cloned().unwrap_or_default(), nodes.unwrap_or_default());
        // Both the list and the ledger were read.
        if self.outcome.blind.is_none() {
            self.note_launches(&listed, &mut known);
        }
        self.judge(&listed, records.is_ok().then_some(&known), history.ok().as_ref(), samples.ok().as_ref());
        if let Some(error) = self.outcome.blind.clone() {
            unseen_pools(&self.ctx, &mut self.outcome, &error);
        }
        let (writes, mut alerts) = (std::mem::take(&mut self.writes), std::mem::take(&mut self.alerts));
        // What keeps a message from being sent twice cannot be read: once an hour, instead of at every run.
        if records.is_err() && self.ctx.now.minute() >= SCHEDULE_MINUTES {
            alerts.clear();
        }
        let acts = Acts::new(&self.ctx, known, Vec::new(), writes, alerts);
        self.acted(acts, Vec::new())
    }

    /// Without the list nothing is known of new nodes; without any other one source the rest still tells.
    fn note_failures(
        &mut self,
        nodes: &Result<Vec<NodeSeen>, CallError>,
        records: &Result<BTreeMap<PoolName, PoolRecord>, CallError>,
        history: &Result<History, CallError>,
        samples: &Result<Samples, CallError>,
    ) {
        let errors = [nodes.as_ref().err(), records.as_ref().err(), history.as_ref().err(), samples.as_ref().err()];
        for error in errors.into_iter().flatten() {
            if error.class.tells_at_once() {
                let about = About::new(&self.ctx, Whom::default());
                self.alerts.push(about.cannot_do(error, "uptime is counted from the other sources"));
            }
            self.outcome.failed.push(error.clone());
        }
        self.outcome.blind = nodes.as_ref().err().or(records.as_ref().err()).cloned();
    }

    /// New, ended and running launches; a node that was running and is no longer listed.
    fn note_launches(&mut self, listed: &[NodeSeen], known: &mut BTreeMap<PoolName, PoolRecord>) {
        let mut launches: BTreeMap<PoolName, Launches> = BTreeMap::new();
        for seen in listed {
            let record = known.entry(seen.pool.clone()).or_default();
            let mut look = without_use(&self.ctx, seen.clone(), record);
            launches.entry(seen.pool.clone()).or_default().note(&mut look, Sight::Renewed, &mut self.outcome);
            record.nodes.insert(seen.id.clone(), look.record);
        }
        for (pool, record) in known.iter() {
            let is_here = |id: &NodeId| listed.iter().any(|seen| seen.id == *id && seen.pool == *pool);
            for (id, launch) in open_launches(record).filter(|(id, _)| !is_here(id)) {
                launches.entry(pool.clone()).or_default().note_lost(id, launch, &record.node(id), self.ctx.now);
            }
            self.tell_vanished(pool, record, listed);
        }
        self.writes.extend(super::launches::calls(launches));
    }

    /// At every run of a day, until one gets it out. A node that moved to another pool goes on there.
    fn tell_vanished(&mut self, pool: &PoolName, record: &PoolRecord, listed: &[NodeSeen]) {
        for (id, launch) in record.nodes.iter().filter_map(|(id, node)| Some((id, node.launch.as_ref()?))) {
            let unseen = launch.ended_at.is_none() || launch.presumed;
            let lately = self.ctx.now - launch.seen_at < TimeDelta::days(1);
            if unseen && lately && listed.iter().all(|seen| seen.id != *id) {
                let whom = Whom::node(pool, id, launch.instance_type.clone());
                self.alerts.push(About::new(&self.ctx, whom).vanished(launch.launched_at, launch.seen_at));
            }
        }
    }

    fn judge(
        &mut self,
        listed: &[NodeSeen],
        known: Option<&BTreeMap<PoolName, PoolRecord>>,
        history: Option<&History>,
        samples: Option<&Samples>,
    ) {
        let is_listing_known = self.outcome.blind.is_none();
        for (pool, id, whom) in everyone(listed, known, history) {
            let seen = listed.iter().find(|seen| seen.id == id);
            let all_launches = known.is_some() && history.is_some();
            let mut launches = of_node(&pool, &id, known, history);
            // The present launch is known from the describe alone, whatever becomes of the ledger.
            if let Some(present) = seen.and_then(present_launch)
                && launches.iter().all(|launch| launch.launched_at != present.launched_at)
            {
                launches.push(present);
            }
            // A node that is gone and did not run in either day has no uptime to tell of.
            let ran = launches.iter().any(|launch| launch.end(self.ctx.now) > self.days()[0].from);
            if seen.is_none() && (all_launches || is_listing_known) && !ran {
                continue;
            }
            let samples = samples.and_then(|samples| samples.get(&id).cloned());
            let node = Seen { id: &id, whom, pool: &pool, launches, all_launches, samples };
            for day in self.days() {
                self.judge_day(&node, day, known);
            }
        }
    }

    fn judge_day(&mut self, node: &Seen, day: LocalDay, known: Option<&BTreeMap<PoolName, PoolRecord>>) {
        let now = self.ctx.now;
        let running = Running {
            launches: Some(running_seconds(&node.launches, day.from, day.to.min(now), now)),
            all_launches: node.all_launches,
            samples: node.samples.as_ref().map(|points| sampled_seconds(points, day)),
        };
        let decision = decide(running, self.ctx.policy.uptime);
        let about = About::new(&self.ctx, node.whom.clone());
        let since = node.launches.iter().map(|launch| launch.launched_at).max();
        match (decision.action, decision.reason) {
            (UptimeAction::Nothing, _) => {}
            (UptimeAction::Tell, Reason::UptimeUnknown) => self.alerts.push(about.uptime_unknown(day)),
            (UptimeAction::Tell, _) => self.alerts.push(about.uptime(day, decision.seconds, since)),
        }
        let generation = known.and_then(|known| known.get(node.pool)).map_or(0, |record| record.claims);
        self.outcome.decided.push(line(node, day, running, decision, generation));
    }

    fn acted(&mut self, mut acts: Acts, answers: Vec<Answer>) -> Step {
        if let Some(calls) = acts.next(answers, &mut self.outcome) {
            self.stage = Stage::Act(Box::new(acts));
            return Step::Calls(calls);
        }
        Step::Done(std::mem::take(&mut self.outcome))
    }
}

fn open_launches(record: &PoolRecord) -> impl Iterator<Item = (&NodeId, &Launch)> {
    let open = record.nodes.iter().filter_map(|(id, node)| Some((id, node.launch.as_ref()?)));
    open.filter(|(_, launch)| launch.ended_at.is_none())
}

/// Listed nodes, and nodes that are only known from their launches: terminated since, or the list could not be read.
fn everyone(
    listed: &[NodeSeen],
    known: Option<&BTreeMap<PoolName, PoolRecord>>,
    history: Option<&History>,
) -> Vec<(PoolName, NodeId, Whom)> {
    let mut all: BTreeMap<NodeId, (PoolName, Whom)> = BTreeMap::new();
    let mut add = |pool: &PoolName, id: &NodeId, launch: &Launch| {
        let whom = Whom::node(pool, id, launch.instance_type.clone());
        all.entry(id.clone()).or_insert_with(|| (pool.clone(), whom));
    };
    for (pool, record) in known.into_iter().flatten() {
        record
            .nodes
            .iter()
            .filter_map(|(id, node)| Some((id, node.launch.as_ref()?)))
            .for_each(|(id, l)| add(pool, id, l));
    }
    for (pool, launches) in history.into_iter().flatten() {
        launches.iter().for_each(|(id, launch)| add(pool, id, launch));
    }
    for seen in listed {
        all.insert(seen.id.clone(), (seen.pool.clone(), Whom::of(seen)));
    }
    all.into_iter().map(|(id, (pool, whom))| (pool, id, whom)).collect()
}

/// Every launch of a node that the ledger has, as far as it could be read.
pub(super) fn of_node(
    pool: &PoolName,
    id: &NodeId,
    known: Option<&BTreeMap<PoolName, PoolRecord>>,
    history: Option<&History>,
) -> Vec<Launch> {
    let of_pool = history.and_then(|history| history.get(pool)).into_iter().flatten();
    let ended = of_pool.filter(|(node, _)| node == id).map(|(_, launch)| launch.clone());
    let record = known.and_then(|known| known.get(pool)).and_then(|record| record.nodes.get(id));
    ended.chain(record.and_then(|node| node.launch.clone())).collect()
}

pub(super) fn present_launch(seen: &NodeSeen) -> Option<Launch> {
    let up = matches!(seen.state, NodeState::Pending | NodeState::Running);
    let launched_at = seen.launched_at.filter(|_| up)?;
    Some(Launch {
        instance_type: seen.instance_type.clone(),
        automatic_address: seen.public_address == Some(PublicAddress::Automatic),
        ..Launch::at(launched_at)
    })
}

/// One sample a minute while running; never more than a bucket holds.
fn sampled_seconds(points: &[(Instant, f64)], day: LocalDay) -> i64 {
    let of_day = points.iter().filter(|(at, _)| *at >= day.from && *at < day.to);
    let minutes = |count: f64| if count >= BUCKET_MINUTES as f64 { BUCKET_MINUTES } else { count.max(0.0) as i64 };
    of_day.map(|(_, count)| minutes(*count) * 60).sum()
}

fn line(node: &Seen, day: LocalDay, running: Running, decision: UptimeDecision, generation: u64) -> Decided {
    let action = match decision.action {
        UptimeAction::Nothing => "nothing",
        UptimeAction::Tell => "tell",
    };
    Decided {
        pool: node.pool.clone(),
        node: Some(node.id.clone()),
        action: action.to_owned(),
        reason: decision.reason,
        inputs: json!({
            "day": day.date,
            "day_from": day.from,
            "seconds": decision.seconds,
            "by_launches_seconds": running.launches,
            "by_status_checks_seconds": running.samples,
        }),
        stops_not_before: None,
        generation,
    }
}
