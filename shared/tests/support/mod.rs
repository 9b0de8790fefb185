//! Builders for the tests of the core: nodes, worlds and runs on 30 November 2026, read from the clock of that day.
#![allow(dead_code, reason = "each test file uses its own part")]

use chrono::TimeDelta;
use reveille::decide::{Look, Readiness, Reason};
use reveille::domain::{
    Claim, ClaimAnswer, ClaimKind, Fault, FaultKind, Hold, InstanceType, Instant, Lease, LeaseId, Mark, NodeId,
    NodeRecord, NodeSeen, NodeState, PoolName, ReadyFact, RunId, StateReason, TagHold, WakeSource,
};
use reveille::error::class_of;
use reveille::observation::{SignalKind, Unread, Use};
use reveille::policy::Policy;
use reveille::prices::Prices;
use reveille::run::{
    Answer, Call, Cause, Context, Decided, IdleRun, MetricRef, Outcome, PoolAnswer, Run, Signal, Step, Target, WakeRun,
    WakeWish,
};
use reveille::world::{World, WorldFault, call_name};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

/// `HH:MM` or `HH:MM:SS` of the day; hours above 23 are the next day's.
pub(crate) fn at(clock: &str) -> Instant {
    let parts: Vec<i64> = clock.split(':').map(|part| part.parse().expect("a number")).collect();
    let seconds = parts[0] * 3600 + parts[1] * 60 + parts.get(2).copied().unwrap_or(0);
    midnight() + TimeDelta::seconds(seconds)
}

pub(crate) fn midnight() -> Instant {
    "2026-11-30T00:00:00Z".parse().expect("a date")
}

/// The clock of an instant, as short as it can be written.
pub(crate) fn clock(at: Instant) -> String {
    let whole = at.timestamp() % 60 == 0;
    at.format(if whole { "%H:%M" } else { "%H:%M:%S" }).to_string()
}

pub(crate) fn minutes(n: i64) -> TimeDelta {
    TimeDelta::minutes(n)
}

pub(crate) fn seconds(n: i64) -> TimeDelta {
    TimeDelta::seconds(n)
}

pub(crate) fn id(word: &str) -> NodeId {
    NodeId::new(word).expect("an id")
}

pub(crate) fn instance_type(word: &str) -> InstanceType {
    InstanceType::new(word).expect("a type")
}

/// The pool of every node that names no other.
pub(crate) fn voice() -> PoolName {
    pool("voice")
}

pub(crate) fn pool(word: &str) -> PoolName {
    PoolName::new(word).expect("a pool")
}

/// A node as EC2 shows it, and what the ledger knows of it.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    seen: NodeSeen,
    ready: Option<Instant>,
    proves_life: bool,
}

/// A node that stopped the day before and was never seen since.
pub(crate) fn node(word: &str) -> Node {
    let seen = NodeSeen {
        id: id(word),
        name: None,
        pool: voice(),
        state: NodeState::Stopped,
        launched_at: Some(midnight() - TimeDelta::hours(9)),
        state_reason: Some(asked_for()),
        transition_at: Some(midnight() - TimeDelta::hours(6)),
        address: Some("10.0.0.5".to_owned()),
        spot: false,
        instance_type: Some(instance_type("g6.xlarge")),
        public_address: None,
        tags: BTreeMap::new(),
    };
    Node { seen, ready: None, proves_life: true }
}

pub(crate) fn asked_for() -> StateReason {
    state_reason("Client.UserInitiatedShutdown")
}

pub(crate) fn state_reason(code: &str) -> StateReason {
    StateReason { code: code.to_owned(), message: "x".to_owned() }
}

impl Node {
    fn up(mut self, state: NodeState, launched: &str) -> Self {
        self.seen.state = state;
        self.seen.launched_at = Some(at(launched));
        (self.seen.state_reason, self.seen.transition_at) = (None, None);
        self
    }

    pub(crate) fn running_since(self, launched: &str) -> Self {
        self.up(NodeState::Running, launched)
    }

    pub(crate) fn pending_since(self, launched: &str) -> Self {
        self.up(NodeState::Pending, launched)
    }

    pub(crate) fn stopping_since(mut self, asked: &str) -> Self {
        self.seen.state = NodeState::Stopping;
        self.seen.transition_at = Some(at(asked));
        self
    }

    /// Stopped long ago, for a cause that EC2 still names.
    pub(crate) fn stopped_for(mut self, code: &str) -> Self {
        self.seen.state_reason = Some(state_reason(code));
        self
    }

    pub(crate) fn gone(mut self) -> Self {
        self.seen.state = NodeState::Gone;
        self
    }

    /// Running, and seen ready at this instant.
    pub(crate) fn ready_since(mut self, ready: &str) -> Self {
        self.ready = Some(at(ready));
        self
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.seen.name = Some(name.to_owned());
        self
    }

    pub(crate) fn in_pool(mut self, name: &str) -> Self {
        self.seen.pool = pool(name);
        self
    }

    pub(crate) fn spot(mut self) -> Self {
        self.seen.spot = true;
        self
    }

    /// Nothing says that the source of its signals is alive.
    pub(crate) fn without_proof_of_life(mut self) -> Self {
        self.proves_life = false;
        self
    }

    pub(crate) fn seen(&self) -> NodeSeen {
        self.seen.clone()
    }
}

thread_local! {
    /// The call that fails in every world that is made meanwhile.
    static FOUL: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// What a scene comes to if this call fails throughout.
pub(crate) fn in_foul_weather(call: &'static str, scene: fn() -> World) -> World {
    FOUL.set(Some(call));
    let world = scene();
    FOUL.set(None);
    world
}

/// A world with these nodes; each node's metrics are proved alive all day.
pub(crate) fn fleet(now: &str, nodes: impl IntoIterator<Item = Node>) -> World {
    let mut world = World::at(at(now));
    if let Some(call) = FOUL.get() {
        fail_times(&mut world, call, "InternalError", u32::MAX);
    }
    for node in nodes {
        let (id, launched_at) = (node.seen.id.clone(), node.seen.launched_at);
        if node.proves_life {
            prove_life(&mut world, id.as_str(), "00:00", "30:00");
        }
        if let Some(ready) = node.ready {
            let known = world.record(&node.seen.pool).nodes.entry(id).or_default();
            known.ready = Some(ReadyFact { at: ready, launched_at, lost_at: None });
        }
        world.add_node(node.seen);
    }
    world
}

fn metric(name: &str, node: &str) -> MetricRef {
    let dimensions = BTreeMap::from([("TargetGroup".to_owned(), node.to_owned())]);
    MetricRef { namespace: "AWS/ApplicationELB".to_owned(), metric: name.to_owned(), dimensions }
}

pub(crate) fn request_metric(node: &str) -> MetricRef {
    metric("RequestCount", node)
}

pub(crate) fn open_metric(node: &str) -> MetricRef {
    metric("ActiveConnectionCount", node)
}

pub(crate) fn alive_metric(node: &str) -> MetricRef {
    metric("HealthyHostCount", node)
}

/// Requests and open connections, both proved alive by the count of healthy hosts.
pub(crate) fn signals() -> Vec<Signal> {
    let alive = Some(alive_metric("{node}"));
    vec![
        Signal { kind: SignalKind::Requests, metric: request_metric("{node}"), alive: alive.clone() },
        Signal { kind: SignalKind::Open, metric: open_metric("{node}"), alive },
    ]
}

/// The start of the bucket that holds this instant.
pub(crate) fn bucket(at: Instant) -> Instant {
    at - TimeDelta::seconds(at.timestamp().rem_euclid(60))
}

fn each_minute(from: &str, to: &str) -> impl Iterator<Item = Instant> {
    let (from, to) = (bucket(at(from)), at(to));
    (0..).map(move |n| from + TimeDelta::minutes(n)).take_while(move |minute| *minute < to)
}

/// A point a minute that proves the node's source alive, the last before `to`.
pub(crate) fn prove_life(world: &mut World, node: &str, from: &str, to: &str) {
    each_minute(from, to).for_each(|minute| world.point(&alive_metric(node), minute, 1.0));
}

/// One request counted at this instant.
pub(crate) fn request(world: &mut World, node: &str, clock: &str) {
    world.point(&request_metric(node), bucket(at(clock)), 1.0);
}

/// An open call in every bucket from `from` until before `to`.
pub(crate) fn open_call(world: &mut World, node: &str, from: &str, to: &str) {
    each_minute(from, to).for_each(|minute| world.point(&open_metric(node), minute, 1.0));
}

/// The context of the next run: default limits, a minute's time-out, a run id of its own.
pub(crate) fn context(world: &World) -> Context {
    context_with(world, Policy::default())
}

pub(crate) fn context_with(world: &World, policy: Policy) -> Context {
    Context {
        run: RunId(format!("run-{}", world.calls.len())),
        now: world.now(),
        time_out: TimeDelta::seconds(60),
        policy,
        pools: [voice(), pool("batch")].into_iter().map(|pool| (pool, signals().into())).collect(),
        prices: Prices::new("us-east-1", BTreeMap::new()),
    }
}

/// One idle check, now.
pub(crate) fn tick(world: &mut World) -> Outcome {
    let ctx = context(world);
    world.drive(&mut IdleRun::new(ctx))
}

pub(crate) fn tick_at(world: &mut World, clock: &str) -> Outcome {
    world.set_now(at(clock));
    tick(world)
}

/// A tick every five minutes, both ends included.
pub(crate) fn ticks(world: &mut World, from: &str, to: &str) -> Vec<Outcome> {
    let (mut now, to) = (at(from), at(to));
    let mut outcomes = Vec::new();
    while now <= to {
        world.set_now(now);
        outcomes.push(tick(world));
        now += minutes(5);
    }
    outcomes
}

fn wish(target: Target, source: WakeSource) -> Cause {
    Cause::Wishes(vec![WakeWish::new(target, source)])
}

/// A run of the pre-warm call for the default pool.
pub(crate) fn prewarm_run(world: &World) -> WakeRun {
    WakeRun::new(context(world), wish(Target::Pool(voice()), WakeSource::Prewarm))
}

/// The pre-warm call for the default pool, now.
pub(crate) fn prewarm(world: &mut World) -> Outcome {
    let mut run = prewarm_run(world);
    world.drive(&mut run)
}

pub(crate) fn prewarm_at(world: &mut World, clock: &str) -> Outcome {
    world.set_now(at(clock));
    prewarm(world)
}

/// A pre-warm call that names nodes.
pub(crate) fn prewarm_nodes(world: &mut World, words: &[&str]) -> Outcome {
    let wish = |word: &&str| WakeWish::new(Target::Node((*word).to_owned()), WakeSource::Prewarm);
    let ctx = context(world);
    world.drive(&mut WakeRun::new(ctx, Cause::Wishes(words.iter().map(wish).collect())))
}

/// A line of the request log, now.
pub(crate) fn log_line(world: &mut World) -> Outcome {
    let ctx = context(world);
    world.drive(&mut WakeRun::new(ctx, wish(Target::Pool(voice()), WakeSource::LogLine)))
}

/// EC2's hint that a node changed its state, now.
pub(crate) fn state_change(world: &mut World) -> Outcome {
    let ctx = context(world);
    world.drive(&mut WakeRun::new(ctx, Cause::StateChange))
}

/// What `GET /status` says of the default pool.
pub(crate) fn status(world: &mut World) -> PoolAnswer {
    let ctx = context(world);
    let outcome = world.drive(&mut WakeRun::new(ctx, Cause::Status(Target::Pool(voice()))));
    only_answer(&outcome)
}

/// The answer of a run with one wish.
pub(crate) fn only_answer(outcome: &Outcome) -> PoolAnswer {
    assert_eq!(outcome.answers.len(), 1, "one wish, one answer: {outcome:?}");
    outcome.answers[0].clone()
}

/// The reason of the newest `decided` line of a node.
pub(crate) fn reason(outcome: &Outcome, node: &str) -> Reason {
    line(outcome, node).reason
}

pub(crate) fn line<'a>(outcome: &'a Outcome, node: &str) -> &'a Decided {
    let of_node = |line: &&Decided| line.node.as_ref().is_some_and(|id| id.as_str() == node);
    outcome.decided.iter().rfind(of_node).unwrap_or_else(|| panic!("no line for {node} in {outcome:?}"))
}

fn effects(world: &World, kind: &str) -> Vec<String> {
    let of_kind = world.effects.iter().filter(|(_, effect, _)| *effect == kind);
    of_kind.map(|(at, _, node)| format!("{} {node}", clock(*at))).collect()
}

/// Accepted STARTs, by anyone, such as `10:05 i-a`.
pub(crate) fn starts(world: &World) -> Vec<String> {
    effects(world, "start")
}

/// Accepted STOPs of running nodes, by anyone, such as `10:35 i-a`.
pub(crate) fn stops(world: &World) -> Vec<String> {
    effects(world, "stop")
}

pub(crate) fn state(world: &World, node: &str) -> NodeState {
    world.node(&id(node)).expect("a node").state
}

/// How many calls of this kind were made so far.
pub(crate) fn count(world: &World, call: &str) -> usize {
    world.calls.iter().filter(|made| **made == call).count()
}

/// The next such call is refused, or never arrives.
pub(crate) fn fail(world: &mut World, call: &'static str, code: &'static str) {
    fail_times(world, call, code, 1);
}

pub(crate) fn fail_times(world: &mut World, call: &'static str, code: &'static str, times: u32) {
    world.fail(WorldFault { call, node: None, code, after: false, times });
}

/// The next such call about this node is refused.
pub(crate) fn fail_node(world: &mut World, call: &'static str, node: &str, code: &'static str) {
    world.fail(WorldFault { call, node: Some(id(node)), code, after: false, times: 1 });
}

/// The next such call is carried out, and its answer is lost.
pub(crate) fn lose_answer(world: &mut World, call: &'static str) {
    world.fail(WorldFault { call, node: None, code: "Timeout", after: true, times: 1 });
}

/// Drives a run with answers that something on the way has changed.
pub(crate) fn drive_with(world: &mut World, run: &mut impl Run, meddle: impl Fn(&Call, Answer) -> Answer) -> Outcome {
    let mut answers = Vec::new();
    loop {
        match run.next(std::mem::take(&mut answers)) {
            Step::Calls(calls) => {
                for call in &calls {
                    let answer = world.answer(call);
                    answers.push(meddle(call, answer));
                }
            }
            Step::Done(outcome) => return outcome,
        }
    }
}

/// A run that is driven call by call, so that others may come between.
pub(crate) struct Stepper<R> {
    run: R,
    pending: VecDeque<Call>,
    answers: Vec<Answer>,
    pub(crate) outcome: Option<Outcome>,
}

impl<R: Run> Stepper<R> {
    pub(crate) fn new(run: R) -> Self {
        Self { run, pending: VecDeque::new(), answers: Vec::new(), outcome: None }
    }

    /// The call that is made next, unless the run is over.
    pub(crate) fn peek(&mut self) -> Option<&Call> {
        if self.outcome.is_none() && self.pending.is_empty() {
            match self.run.next(std::mem::take(&mut self.answers)) {
                Step::Calls(calls) => self.pending = calls.into(),
                Step::Done(outcome) => self.outcome = Some(outcome),
            }
        }
        self.pending.front()
    }

    /// Makes one call; false once the run is over.
    pub(crate) fn step(&mut self, world: &mut World) -> bool {
        self.peek();
        let Some(call) = self.pending.pop_front() else { return false };
        self.answers.push(world.answer(&call));
        true
    }

    /// Goes on until the next call is of this kind.
    pub(crate) fn run_until(&mut self, world: &mut World, name: &str) {
        while self.peek().is_some_and(|call| call_name(call) != name) {
            self.step(world);
        }
        assert!(self.outcome.is_none(), "the run ended before any {name}: {:?}", self.outcome);
    }

    pub(crate) fn finish(mut self, world: &mut World) -> Outcome {
        while self.step(world) {}
        self.outcome.expect("a run that is over")
    }
}

/// One look at a node, for the rules.
#[derive(Debug, Clone)]
pub(crate) struct LookBuilder(pub(crate) Look);

/// A look at noon at the node `i-a`, stopped, with an empty ledger; its use is unread.
pub(crate) fn look() -> LookBuilder {
    look_at(node("i-a"))
}

pub(crate) fn look_at(node: Node) -> LookBuilder {
    let record = NodeRecord::default();
    LookBuilder(Look {
        seen: node.seen,
        record,
        demand: 0,
        wake: None,
        wake_source: None,
        wake_path: None,
        used: Err(Unread::SourceSilent),
        now: at("12:00"),
        drained_since: None,
        observes_calls: true,
        readiness: Readiness::Unknown,
        tag_hold: TagHold::None,
        warm: false,
        reserve: false,
        types: Vec::new(),
    })
}

/// The common node of the idle rules: launched at 06:00, long ready, quiet ever since.
pub(crate) fn idle_look() -> LookBuilder {
    look().running_since("06:00").ready_at("06:01").quiet_since("06:00")
}

impl LookBuilder {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Look)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn now(self, clock: &str) -> Self {
        self.with(|look| look.now = at(clock))
    }

    pub(crate) fn state(self, state: NodeState) -> Self {
        self.with(|look| look.seen.state = state)
    }

    pub(crate) fn running_since(mut self, launched: &str) -> Self {
        let node = Node { seen: self.0.seen, ready: None, proves_life: true };
        self.0.seen = node.running_since(launched).seen;
        self
    }

    pub(crate) fn launched_at(self, launched: Option<Instant>) -> Self {
        self.with(|look| look.seen.launched_at = launched)
    }

    pub(crate) fn stopping_since(self, asked: &str) -> Self {
        self.state(NodeState::Stopping).with(|look| look.seen.transition_at = Some(at(asked)))
    }

    pub(crate) fn stopped_by_hand_at(self, asked: &str) -> Self {
        self.state(NodeState::Stopped).with(|look| {
            look.seen.transition_at = Some(at(asked));
            look.seen.state_reason = Some(asked_for());
        })
    }

    /// Seen ready since its present launch.
    pub(crate) fn ready_at(self, clock: &str) -> Self {
        self.with(|look| {
            look.record.ready = Some(ReadyFact { at: at(clock), launched_at: look.seen.launched_at, lost_at: None });
        })
    }

    /// No use in sight, and silence is proved from here on.
    pub(crate) fn quiet_since(self, clock: &str) -> Self {
        self.with(|look| look.used = Ok(Use { last_seen: None, last_possible: at(clock), open_now: false }))
    }

    /// The newest bucket with a request ended here, and silence is proved since.
    pub(crate) fn used_at(self, clock: &str) -> Self {
        let at = at(clock);
        self.with(|look| look.used = Ok(Use { last_seen: Some(at), last_possible: at, open_now: false }))
    }

    pub(crate) fn open_now(self) -> Self {
        self.with(|look| look.used = Ok(Use { last_seen: Some(look.now), last_possible: look.now, open_now: true }))
    }

    pub(crate) fn unknown(self, why: Unread) -> Self {
        self.with(|look| look.used = Err(why))
    }

    pub(crate) fn woken_at(self, clock: &str) -> Self {
        self.with(|look| look.wake = Some(at(clock)))
    }

    pub(crate) fn demand(self, demand: u64) -> Self {
        self.with(|look| look.demand = demand)
    }

    /// Marked idle in this launch.
    pub(crate) fn marked_at(self, clock: &str) -> Self {
        self.with(|look| {
            look.record.mark = Some(Mark { at: at(clock), launched_at: look.seen.launched_at });
        })
    }

    /// Claimed in this launch with no wake in view, unanswered; the claiming run had a minute.
    pub(crate) fn claimed(self, kind: ClaimKind, clock: &str) -> Self {
        self.with(|look| look.record.claim = Some(claim(kind, clock, look.seen.launched_at)))
    }

    pub(crate) fn claim(self, change: impl FnOnce(&mut Claim)) -> Self {
        self.with(|look| change(look.record.claim.as_mut().expect("a claim")))
    }

    pub(crate) fn answered(self, answer: ClaimAnswer) -> Self {
        self.claim(|claim| claim.answer = Some(answer))
    }

    /// A call in progress, until then.
    pub(crate) fn leased_until(self, until: &str) -> Self {
        self.with(|look| {
            let lease = Lease { by: "token:app".to_owned(), at: look.now, until: at(until) };
            look.record.leases.insert(lease_id(until), lease);
        })
    }

    /// A person holds it in the ledger.
    pub(crate) fn held_until(self, until: &str) -> Self {
        let hold = Hold { until: at(until), note: "demo for a customer".to_owned(), since: at("06:00") };
        self.with(|look| look.record.hold = Some(hold))
    }

    /// Known not to be ready, and never ready in this launch.
    pub(crate) fn never_ready(self) -> Self {
        self.with(|look| {
            look.record.ready = None;
            look.readiness = Readiness::NotReady;
        })
    }

    /// The last such call was refused with this code and is not tried before `retry`.
    pub(crate) fn refused(self, kind: FaultKind, code: &str, retry: &str) -> Self {
        self.with(|look| look.record.fault = Some(fault(kind, code, retry)))
    }
}

pub(crate) fn lease_id(word: &str) -> LeaseId {
    LeaseId::new(word.replace(':', "-")).expect("a lease id")
}

/// A claim of another run.
pub(crate) fn claim(kind: ClaimKind, clock: &str, launched_at: Option<Instant>) -> Claim {
    Claim {
        kind,
        run: RunId("another".to_owned()),
        at: at(clock),
        launched_at,
        open_until: at(clock) + seconds(60),
        wake: None,
        source: None,
        path: None,
        tries: 1,
        answer: None,
    }
}

pub(crate) fn fault(kind: FaultKind, code: &str, retry: &str) -> Fault {
    let retry_at = at(retry);
    Fault {
        kind,
        class: class_of(code),
        code: code.to_owned(),
        since: retry_at - minutes(15),
        tries: 1,
        retry_at,
        types: Vec::new(),
        never_ready: None,
    }
}

/// A node that has been up since 09:00, ready and unused.
pub(crate) fn unused() -> Node {
    node("i-a").running_since("09:00").ready_since("09:01")
}

/// The kinds of what was published.
pub(crate) fn told(world: &World) -> Vec<&str> {
    world.published.iter().map(|alert| alert.kind.as_str()).collect()
}

/// The caller is told that the node is up or on its way, not that something is wrong.
pub(crate) fn is_200_or_202(answer: &PoolAnswer) -> bool {
    [Reason::AlreadyReady, Reason::AlreadyStarting, Reason::StoppingWillStart].contains(&answer.reason)
}

/// Moves the clock to so many minutes past ten.
pub(crate) fn past_ten(world: &mut World, minute: i64) -> &mut World {
    world.set_now(at("10:00") + minutes(minute));
    world
}
