//! Why is it on, since when, what counted last, when will it stop at the earliest, and what does it cost?

mod text;

use super::fault::Fault;
use super::look::Looker;
use super::session::{Reach, Session};
use super::show;
use reveille::decide::uptime::LocalDay;
use reveille::decide::{Question, Reason};
use reveille::domain::{
    Gate, InstanceType, Instant, Launch, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, Usd, Wake,
};
use reveille::error::CallError;
use reveille::policy::MOST_AHEAD;
use reveille::run::{BudgetRun, Cause, Decided, IdleRun, PoolAnswer, Target, UptimeRun, WakeRun};
use reveille::spend::{Fleet, history_from, spend};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// All that is known at one instant.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    pub(crate) at: Instant,
    pub(crate) name: String,
    pub(crate) region: String,
    pub(crate) zone: &'static str,
    pub(crate) pools: Vec<PoolStatus>,
    /// What could not be read, each a line: what is missing above is unknown, and not zero.
    pub(crate) unread: Vec<String>,
}

/// One pool.
#[derive(Debug, Serialize)]
pub(crate) struct PoolStatus {
    pub(crate) pool: PoolName,
    /// Nothing of it is started or stopped where it is not.
    pub(crate) configured: bool,
    pub(crate) gate: Option<Gate>,
    /// What a caller would be told now.
    pub(crate) caller: Option<CallerView>,
    pub(crate) today_seconds: Option<i64>,
    pub(crate) today_usd: Option<String>,
    pub(crate) month: Option<Value>,
    /// Whether the month has AWS's own figure, as far as AWS shows one.
    pub(crate) aws_month_read: bool,
    pub(crate) nodes: Vec<NodeStatus>,
}

/// The answer of `GET /status`.
#[derive(Debug, Serialize)]
pub(crate) struct CallerView {
    pub(crate) reason: Reason,
    pub(crate) ready_in_seconds: Option<i64>,
    pub(crate) fault: Option<String>,
}

/// One node.
#[derive(Debug, Serialize)]
pub(crate) struct NodeStatus {
    pub(crate) node: NodeId,
    pub(crate) name: Option<String>,
    pub(crate) instance_type: Option<InstanceType>,
    pub(crate) state: NodeState,
    /// What is held to be true of it once the ledger is read beside EC2.
    pub(crate) phase: Value,
    /// Since when it runs, where it does.
    pub(crate) since: Option<Instant>,
    /// The newest wake that may mean it.
    pub(crate) woken_by: Option<Wake>,
    /// Why the idle check keeps it, or would not.
    pub(crate) reason: Option<Reason>,
    pub(crate) rule: Option<&'static str>,
    /// What the idle check would do now.
    pub(crate) action: Option<String>,
    pub(crate) last_use_at: Value,
    pub(crate) unknown: Value,
    pub(crate) calls: usize,
    pub(crate) held_until: Value,
    pub(crate) hold_note: Option<String>,
    pub(crate) stops_not_before: Option<Instant>,
    pub(crate) today_seconds: Option<i64>,
    pub(crate) today_usd: Option<String>,
}

/// # Errors
/// The nodes or the ledger cannot be read: nothing is known.
pub(crate) async fn show(reach: &Reach, pool: Option<&str>) -> Result<String, Fault> {
    let session = Session::open(reach).await?;
    let only = pool.map(|pool| session.pool(Some(pool))).transpose()?;
    let status = show::waiting("looking at nodes, ledger, signals and money", look(&session, only.as_ref())).await?;
    Ok(if reach.json { show::json(&json!(status)) } else { text::write(&status, session.config.policy.zone) })
}

/// Drives every function's run as far as it only looks.
///
/// # Errors
/// The nodes or the ledger cannot be read.
pub(crate) async fn look(session: &Session, only: Option<&PoolName>) -> Result<Status, Fault> {
    let (ctx, now, zone) = (session.context(), session.now, session.config.policy.zone);
    let mut looker = Looker::new(&session.aws);
    let idle = looker.drive(&mut IdleRun::new(ctx.clone())).await;
    if let Some(error) = looker.lost() {
        return Err(of_the_ledger(error, session));
    }
    let uptime = looker.drive(&mut UptimeRun::new(ctx.clone())).await;
    let mut callers = BTreeMap::new();
    for pool in session.config.pools.keys() {
        let run = &mut WakeRun::new(ctx.clone(), Cause::Status(Target::Pool(pool.clone())));
        callers.extend(looker.drive(run).await.answers.into_iter().next().map(|answer| (pool.clone(), answer)));
    }
    let months = match &session.config.budget {
        Some(budget) => looker.drive(&mut BudgetRun::new(ctx, budget.clone())).await.decided,
        None => Vec::new(),
    };
    let day = LocalDay::of(zone, now);
    let fleet = looker.fleet(&session.config, history_from(now).min(day.from), now).await.ok();
    let today = |line: &&Decided| line.inputs["day"] == json!(day.date);
    let seen = Seen {
        idle: idle.decided,
        today: uptime.decided.iter().filter(today).filter_map(seconds_of).collect(),
        callers,
        months,
        has_budget: looker.has_budget(),
        fleet,
        members: looker.members(),
        day,
        records: credible(looker.records(), now),
        nodes: looker.nodes().to_vec(),
    };
    let unread: BTreeSet<String> = looker.failures().into_iter().map(|error| Fault::from(error).to_string()).collect();
    Ok(Status {
        at: now,
        name: session.name.clone(),
        region: session.region.clone(),
        zone: zone.name(),
        pools: seen.pools(session).into_iter().filter(|pool| only.is_none_or(|only| *only == pool.pool)).collect(),
        unread: unread.into_iter().collect(),
    })
}

/// A table that is not there is a setting that is wrong.
pub(super) fn of_the_ledger(error: CallError, session: &Session) -> Fault {
    if error.act == "read ledger" && super::fault::is_missing(&error) {
        let (table, region) = (&session.config.table, &session.region);
        return Fault::Usage(format!("no table {table} in {region}: correct REVEILLE_TABLE, or give --region"));
    }
    error.into()
}

fn seconds_of(line: &Decided) -> Option<(NodeId, i64)> {
    Some((line.node.clone()?, line.inputs["seconds"].as_i64()?))
}

fn credible(mut records: BTreeMap<PoolName, PoolRecord>, now: Instant) -> BTreeMap<PoolName, PoolRecord> {
    records.values_mut().for_each(|record| record.forget_later_than(now + MOST_AHEAD));
    records
}

/// What the runs have seen.
struct Seen {
    idle: Vec<Decided>,
    today: BTreeMap<NodeId, i64>,
    callers: BTreeMap<PoolName, PoolAnswer>,
    months: Vec<Decided>,
    has_budget: bool,
    fleet: Option<Fleet>,
    members: BTreeMap<PoolName, BTreeSet<NodeId>>,
    day: LocalDay,
    records: BTreeMap<PoolName, PoolRecord>,
    nodes: Vec<NodeSeen>,
}

impl Seen {
    fn pools(&self, session: &Session) -> Vec<PoolStatus> {
        let of_nodes = self.nodes.iter().map(|seen| &seen.pool);
        let names: BTreeSet<&PoolName> = session.config.pools.keys().chain(of_nodes).collect();
        names.into_iter().map(|name| self.pool(name, session)).collect()
    }

    fn pool(&self, name: &PoolName, session: &Session) -> PoolStatus {
        let listed = self.nodes.iter().filter(|seen| seen.pool == *name && seen.state != NodeState::Gone);
        let nodes: Vec<NodeStatus> = listed.map(|seen| self.node(seen, session)).collect();
        let listed: BTreeSet<&NodeId> = nodes.iter().map(|node| &node.node).collect();
        let ids: BTreeSet<&NodeId> = self.members.get(name).into_iter().flatten().collect();
        // One that was replaced today ran today.
        let gone = ids.difference(&listed).map(|id| self.seconds_by_launches(id, session));
        let seconds = nodes.iter().map(|node| node.today_seconds).chain(gone);
        let month = self.months.iter().find(|line| line.pool == *name).map(|line| line.inputs.clone());
        PoolStatus {
            pool: name.clone(),
            configured: session.config.pools.contains_key(name),
            gate: self.records.get(name).and_then(|record| record.closed_gate(session.now)).cloned(),
            caller: self.callers.get(name).map(|answer| CallerView {
                reason: answer.reason,
                ready_in_seconds: answer.ready_in_seconds,
                fault: answer.fault_code.clone(),
            }),
            today_seconds: seconds.sum(),
            today_usd: self.today_usd(&|id| ids.contains(id), session).map(Usd::plain),
            // A guard's look that is lost has no figure at all.
            aws_month_read: self.has_budget && month.as_ref().is_some_and(|month| month.get("aws_actual").is_some()),
            month,
            nodes,
        }
    }

    fn node(&self, seen: &NodeSeen, session: &Session) -> NodeStatus {
        let none = PoolRecord::default();
        let record = self.records.get(&seen.pool).unwrap_or(&none);
        let known = record.node(&seen.id);
        let line = self.idle.iter().find(|line| line.node.as_ref() == Some(&seen.id) && is_of_idle(line.reason));
        let input = |name: &str| line.map(|line| line.inputs[name].clone()).unwrap_or_default();
        let up = matches!(seen.state, NodeState::Pending | NodeState::Running | NodeState::Stopping);
        let hold = known.hold.as_ref().filter(|hold| hold.keeps(session.now));
        NodeStatus {
            node: seen.id.clone(),
            name: seen.name.clone(),
            instance_type: seen.instance_type.clone(),
            state: seen.state,
            phase: input("phase"),
            since: seen.launched_at.filter(|_| up),
            woken_by: record.last_wake(&seen.id).cloned(),
            reason: line.map(|line| line.reason),
            rule: line.map(|line| line.reason.rule()),
            action: line.map(|line| line.action.clone()),
            last_use_at: input("last_use_at"),
            unknown: input("unknown"),
            calls: known.calls(session.now),
            held_until: input("held_until"),
            hold_note: hold.map(|hold| hold.note.clone()),
            stops_not_before: line.and_then(|line| line.stops_not_before).filter(|_| up),
            today_seconds: self.today.get(&seen.id).copied().or_else(|| self.seconds_by_launches(&seen.id, session)),
            today_usd: self.today_usd(&|id| *id == seen.id, session).map(Usd::plain),
        }
    }

    /// The uptime alarm has no line for a node that did not run today, and neither a sample nor a launch.
    fn seconds_by_launches(&self, id: &NodeId, session: &Session) -> Option<i64> {
        let launches: &[Launch] = self.fleet.as_ref()?.get(id).map(|node| node.launches.as_slice())?;
        Some(reveille::domain::running_seconds(launches, self.day.from, session.now, session.now))
    }

    /// None where something has no price, or could not be read: a sum without it would be too low.
    fn today_usd(&self, is_meant: &dyn Fn(&NodeId) -> bool, session: &Session) -> Option<Usd> {
        let part = self.fleet.as_ref()?.iter().filter(|(id, _)| is_meant(id));
        let part: Fleet = part.map(|(id, node)| (id.clone(), node.clone())).collect();
        let spend = spend(&part, self.day.from, session.now, session.now, &session.config.prices);
        spend.unpriced.is_empty().then(|| spend.total())
    }
}

/// A node that is to be started has a second line, of the wake rule.
fn is_of_idle(reason: Reason) -> bool {
    matches!(reason.question(), Question::Idle | Question::Look)
}
