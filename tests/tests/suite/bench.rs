//! What a law asks of a world, and the calls that laws make often.

use chrono::TimeDelta;
use reveille::domain::{
    Beat, Claim, ClaimKind, Disk, InstanceType, Instant, LeaseId, NodeId, NodeSeen, NodeState, PoolName, PoolRecord,
    RunId, StateReason, Wake, WakeSource,
};
use reveille::error::{CallError, ErrorClass, TookEffect};
use reveille::run::{
    Answer, Call, Claimed, Demanded, Fact, MetricRef, Outcome, Permit, Run, Started, Stopped, take_claim, take_demand,
    take_ledger, take_nodes, take_recorded, take_resized, take_start, take_stop,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// When every world begins. Whole seconds: EC2 tells no finer ones.
pub(crate) fn morning() -> Instant {
    "2026-11-30T08:00:00Z".parse().expect("a date")
}

/// How the coming calls go wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trouble {
    /// Answered with this code, and not carried out.
    Refused(&'static str),
    /// Carried out, and answered with this code.
    FailedAfter(&'static str),
    /// Carried out, and the connection breaks before the answer.
    AnswerLost,
}

/// A message that reached people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) subject: String,
    pub(crate) body: String,
    /// The message attributes, by which machines filter.
    pub(crate) attributes: BTreeMap<String, String>,
}

/// A world that answers calls. Laws hold in each.
pub(crate) trait Bench {
    /// Carries out one call.
    async fn answer(&mut self, call: &Call) -> Answer;
    /// Carries out calls, at once where the world can; the answers are in the order of the calls.
    async fn answers(&mut self, calls: &[Call]) -> Vec<Answer>;
    /// Drives a run to its end.
    async fn drive(&mut self, run: &mut impl Run) -> Outcome;

    async fn now(&mut self) -> Instant;
    async fn pass(&mut self, time: TimeDelta);

    /// A g6.xlarge in this state, `Running` or `Stopped`, for two minutes by now.
    async fn add_node(&mut self, name: &str, pool: &str, state: NodeState) -> NodeId;
    /// An instance without the pool's tag, where a world can have one.
    async fn add_stranger(&mut self);
    /// The node becomes a one-time spot node.
    async fn make_spot(&mut self, node: &NodeId);
    /// Somebody sets stop protection.
    async fn protect_from_stop(&mut self, node: &NodeId);
    /// The node's next `stopping` does not end by itself.
    async fn hang_in_stopping(&mut self, node: &NodeId);
    /// The node's next start ends `stopped` after 20 seconds, with this reason.
    async fn fall_back(&mut self, node: &NodeId, reason: StateReason);
    async fn start_by_hand(&mut self, node: &NodeId);
    async fn stop_by_hand(&mut self, node: &NodeId);
    async fn terminate_by_hand(&mut self, node: &NodeId);
    /// Somebody sets a tag of the node, other than its name and its pool.
    async fn tag(&mut self, node: &NodeId, key: &str, value: &str);
    /// Somebody writes an attribute of the item of the pool `voice` by hand, such that it cannot be read.
    async fn write_unreadable(&mut self, attribute: &str, value: Value);
    /// The node's agent writes its beat.
    async fn beat(&mut self, node: &NodeId, beat: &Beat);
    /// Something that is no beat is written where the node's beat stands.
    async fn write_unreadable_beat(&mut self, node: &NodeId, value: Value);

    /// There is no capacity for these instance types from now on, and for all others there is.
    async fn no_room_for(&mut self, types: &[&str]);
    /// There is no capacity for this node, whatever its type.
    async fn no_room_for_node(&mut self, node: &NodeId);
    /// Takes off what disks a world gives a new node unasked.
    async fn strip_disks(&mut self, node: &NodeId);
    /// Attaches a volume; it is created now.
    async fn add_disk(&mut self, node: &NodeId, disk: &Disk);

    /// A point of a metric; a gauge may have several in a minute.
    async fn point(&mut self, metric: &MetricRef, at: Instant, value: f64);
    /// A log group without a line.
    async fn add_log_group(&mut self, group: &str);
    /// A line of a log group that is there, written at this instant.
    async fn log(&mut self, group: &str, at: Instant, line: &str);
    /// Logs are read two lines at a time, and the first page is empty, where a world has pages.
    async fn page_logs_small(&mut self);
    /// What AWS shows as spent and as forecast of a budget, in dollars.
    async fn set_figures(&mut self, budget: &str, actual: &str, forecast: Option<&str>);

    /// The next `times` calls of this name (see `reveille::world::call_name`) go wrong, retries of the executor not
    /// counted.
    async fn fail(&mut self, call: &'static str, trouble: Trouble, times: u32);
    /// How many START (`start`) or STOP (`stop`) requests arrived, by anyone, since the last look.
    async fn take_sent(&mut self, call: &'static str) -> usize;
    /// What was published.
    async fn published(&mut self) -> Vec<Told>;
}

pub(crate) fn voice() -> PoolName {
    pool("voice")
}

pub(crate) fn pool(word: &str) -> PoolName {
    PoolName::new(word).expect("a pool")
}

pub(crate) fn id(word: &str) -> NodeId {
    NodeId::new(word).expect("an id")
}

pub(crate) fn lease_id(word: &str) -> LeaseId {
    LeaseId::new(word).expect("a lease id")
}

pub(crate) fn kind(word: &str) -> InstanceType {
    InstanceType::new(word).expect("an instance type")
}

pub(crate) fn run(word: &str) -> RunId {
    RunId(word.to_owned())
}

pub(crate) fn minutes(n: i64) -> TimeDelta {
    TimeDelta::minutes(n)
}

pub(crate) fn seconds(n: i64) -> TimeDelta {
    TimeDelta::seconds(n)
}

pub(crate) async fn describe(bench: &mut impl Bench) -> Vec<NodeSeen> {
    let call = Call::DescribeNodes { pools: None };
    take_nodes(Some(bench.answer(&call).await)).expect("describe")
}

pub(crate) async fn seen(bench: &mut impl Bench, node: &NodeId) -> NodeSeen {
    describe(bench).await.into_iter().find(|seen| seen.id == *node).expect("the node is listed")
}

pub(crate) async fn state(bench: &mut impl Bench, node: &NodeId) -> NodeState {
    seen(bench, node).await.state
}

pub(crate) async fn start(bench: &mut impl Bench, node: &NodeId) -> Result<Started, CallError> {
    take_start(Some(bench.answer(&Call::Start { node: node.clone() }).await))
}

pub(crate) async fn stop(bench: &mut impl Bench, node: &NodeId) -> Result<Stopped, CallError> {
    take_stop(Some(bench.answer(&Call::Stop { node: node.clone(), force: false }).await))
}

pub(crate) async fn force_stop(bench: &mut impl Bench, node: &NodeId) -> Result<Stopped, CallError> {
    take_stop(Some(bench.answer(&Call::Stop { node: node.clone(), force: true }).await))
}

pub(crate) async fn resize(bench: &mut impl Bench, node: &NodeId, to: &str) -> Result<(), CallError> {
    take_resized(Some(bench.answer(&Call::Resize { node: node.clone(), to: kind(to) }).await))
}

/// A refusal proves that nothing was done.
pub(crate) fn is_refused<T>(answer: Result<T, CallError>, class: ErrorClass, code: &str) -> bool {
    answer.is_err_and(|error| (error.class, error.effect, error.code.as_str()) == (class, TookEffect::No, code))
}

/// The ledger's item of the pool `voice`.
pub(crate) async fn record(bench: &mut impl Bench) -> PoolRecord {
    let call = Call::ReadLedger { pools: BTreeSet::from([voice()]) };
    take_ledger(Some(bench.answer(&call).await)).expect("read ledger").remove(&voice()).expect("an item for each pool")
}

pub(crate) fn wake(at: Instant) -> Wake {
    Wake::new(at, WakeSource::Prewarm)
}

/// A wake of any node of the pool `voice`.
pub(crate) fn any_demand(at: Instant) -> Call {
    Call::RecordDemand {
        pool: voice(),
        node: None,
        wake: wake(at),
        cap: None,
        waiting: reveille::run::Waiting::default(),
    }
}

/// A wake of any node of the pool `voice`, recorded now.
pub(crate) async fn demand(bench: &mut impl Bench) -> PoolRecord {
    let call = any_demand(bench.now().await);
    recorded(bench.answer(&call).await)
}

/// What became of a wake.
pub(crate) async fn demanded(bench: &mut impl Bench, call: &Call) -> Demanded {
    take_demand(Some(bench.answer(call).await)).expect("record demand")
}

/// The item after a wake that was taken.
pub(crate) fn recorded(answer: Answer) -> PoolRecord {
    match take_demand(Some(answer)).expect("record demand") {
        Demanded::Recorded(item) => item,
        Demanded::Refused(item) => panic!("no gate was to be closed: {item:?}"),
        Demanded::TooMany => panic!("no cap was given"),
    }
}

pub(crate) fn claim_of(kind: ClaimKind, by: &str) -> Claim {
    Claim {
        kind,
        run: run(by),
        at: morning() + TimeDelta::milliseconds(1_250),
        launched_at: Some(morning() - minutes(30)),
        open_until: morning() + seconds(60),
        wake: Some(morning()),
        source: Some(WakeSource::LogLine),
        path: None,
        tries: 1,
        answer: None,
    }
}

pub(crate) fn claim_call(node: &NodeId, permit: Permit, claim: &Claim) -> Call {
    Call::Claim { pool: voice(), node: node.clone(), permit, leased: None, claim: claim.clone() }
}

pub(crate) async fn claim(bench: &mut impl Bench, node: &NodeId, permit: Permit, claim: &Claim) -> Claimed {
    take_claim(Some(bench.answer(&claim_call(node, permit, claim)).await)).expect("claim")
}

pub(crate) async fn write_facts(bench: &mut impl Bench, facts: Vec<(NodeId, Fact)>) -> Result<(), CallError> {
    take_recorded(Some(bench.answer(&Call::WriteFacts { pool: voice(), facts }).await))
}
