//! Laws of runs over the in-memory world: whole days with faults, and runs in every order. Fixed seeds: a failure is the
//! same failure tomorrow.

mod support;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError};
use reveille::decide::Reason;
use reveille::domain::{ClaimKind, Instant, NodeId, NodeState, Phase, RunId, WakeSource};
use reveille::observation::phase;
use reveille::run::{
    AlertKind, Answer, Call, Cause, Claimed, Context, IdleRun, Outcome, Run, Step, Target, WakeRun, WakeWish,
};
use reveille::world::{World, WorldFault};
use std::collections::BTreeMap;
use support::*;

fn laws(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(20_261_130), failure_persistence: None, ..Config::default() }
}

const NODES: [&str; 2] = ["i-a", "i-b"];

fn ids() -> [NodeId; 2] {
    NODES.map(id)
}

/// What is true of a node that runs or boots: it is up, unless a STOP of ours is under way.
fn is_up(world: &mut World, node: &NodeId) -> bool {
    let now = world.now();
    let record = world.record(&voice()).node(node);
    let seen = world.node(node).expect("a node");
    let phase = phase(seen, &record, now);
    matches!(seen.state, NodeState::Pending | NodeState::Running) && phase != Phase::Stopping
}

/// Makes one call of a run, and says which law that breaks.
fn make(world: &mut World, call: &Call) -> (Answer, Result<(), String>) {
    let broken = match call {
        Call::Stop { node, .. } => {
            let state = world.node(node).expect("a node").state;
            (state == NodeState::Pending).then(|| format!("STOP for {node}, which is pending"))
        }
        // What is true when the START is claimed counts: a STOP may still be refused before the START is sent.
        Call::Claim { node, claim, .. } if claim.kind == ClaimKind::Start => {
            let other = ids().into_iter().find(|other| other != node && is_up(world, other));
            other.map(|other| format!("START of {node} claimed while {other} is up"))
        }
        Call::WriteFacts { facts, .. } => {
            // DynamoDB refuses an update that names an attribute twice.
            let kind = |(node, fact): &(NodeId, reveille::run::Fact)| (node.clone(), std::mem::discriminant(fact));
            let kinds: std::collections::HashSet<_> = facts.iter().map(kind).collect();
            (kinds.len() != facts.len()).then(|| format!("a fact is written twice in one update: {facts:?}"))
        }
        Call::DescribeNodes { .. }
        | Call::ReadLedger { .. }
        | Call::RecordDemand { .. }
        | Call::GiveLease { .. }
        | Call::RenewLease { .. }
        | Call::EndLease { .. }
        | Call::StopWaiting { .. }
        | Call::ReadBeats { .. }
        | Call::SetHold { .. }
        | Call::ReadActivity { .. }
        | Call::ReadReadiness { .. }
        | Call::Claim { .. }
        | Call::Start { .. }
        | Call::RecordAnswer { .. }
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
        | Call::Resize { .. }
        | Call::NoteLaunches { .. } => None,
    };
    let answer = world.answer(call);
    let lost = matches!(answer, Answer::Claim(Ok(Claimed::Lost(_))));
    let broken = broken.filter(|_| !lost);
    (answer, broken.map_or(Ok(()), |what| Err(format!("{} at {}", what, clock(world.now())))))
}

fn drive(world: &mut World, mut run: impl Run) -> Result<Outcome, String> {
    let mut answers = Vec::new();
    loop {
        match run.next(std::mem::take(&mut answers)) {
            Step::Done(outcome) => return Ok(outcome),
            Step::Calls(calls) => {
                for call in &calls {
                    let (answer, lawful) = make(world, call);
                    lawful?;
                    answers.push(answer);
                }
            }
        }
    }
}

fn wish() -> Cause {
    Cause::Wishes(vec![WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm)])
}

// Days.

#[derive(Debug, Clone)]
enum Event {
    Prewarm,
    /// A request that is counted this many seconds later.
    Request(usize, i64),
    /// An open call in this minute.
    OpenMinute(usize),
    HandStart(usize),
    HandStop(usize),
    Hang(usize),
    StateChange,
    /// One of the coming calls fails.
    Fault(WorldFault),
}

fn codes(call: &str) -> Vec<&'static str> {
    match call {
        "start" => {
            vec!["RequestLimitExceeded", "Timeout", "InsufficientInstanceCapacity", "VcpuLimitExceeded", "SomethingNew"]
        }
        "stop" => {
            vec!["RequestLimitExceeded", "Timeout", "IncorrectInstanceState", "OperationNotPermitted", "SomethingNew"]
        }
        _ => vec!["RequestLimitExceeded", "Timeout", "InternalError"],
    }
}

fn any_fault(calls: &[&'static str]) -> impl Strategy<Value = WorldFault> {
    let with_code = |call| (Just(call), select(codes(call)), proptest::bool::weighted(0.3));
    select(calls.to_vec()).prop_flat_map(with_code).prop_map(|(call, code, after)| {
        let code = if after { "Timeout" } else { code };
        WorldFault { call, node: None, code, after, times: 1 }
    })
}

const ACTS: &[&str] = &["claim", "start", "stop", "record"];

const CALLS: &[&str] = &[
    "describe",
    "read_ledger",
    "demand",
    "activity",
    "readiness",
    "claim",
    "start",
    "stop",
    "record",
    "facts",
    "claim_alert",
    "publish",
    "mark_published",
];

/// What may happen at some second of the six hours from 10:00.
fn any_event() -> impl Strategy<Value = Vec<(i64, Event)>> {
    let one = prop_oneof![
        4 => Just(Event::Prewarm),
        4 => (0_usize..2, 0_i64..=120).prop_map(|(node, late)| Event::Request(node, late)),
        1 => (0_usize..2).prop_map(Event::HandStart),
        1 => (0_usize..2).prop_map(Event::HandStop),
        1 => (0_usize..2).prop_map(Event::Hang),
        2 => Just(Event::StateChange),
    ];
    let event = (0_i64..21_600, one).prop_map(|(second, event)| vec![(second, event)]);
    let call = (0_i64..21_600, 0_usize..2, 1_i64..90).prop_map(|(second, node, minutes)| {
        let seconds = (0..minutes).map(|minute| second + minute * 60).filter(|second| *second < 21_600);
        seconds.map(|second| (second, Event::OpenMinute(node))).collect()
    });
    prop_oneof![9 => event, 1 => call]
}

fn events() -> impl Strategy<Value = Vec<(i64, Event)>> {
    proptest::collection::vec(any_event(), 0..40).prop_map(|events| events.into_iter().flatten().collect())
}

/// One fault in each hour at most.
fn rare_faults() -> impl Strategy<Value = Vec<(i64, Event)>> {
    let hourly = proptest::option::of((0_i64..3600, any_fault(CALLS)));
    proptest::collection::vec(hourly, 6).prop_map(|hours| {
        let hours = hours.into_iter().enumerate();
        let at = |hour: usize, second: i64| i64::try_from(hour).expect("an hour") * 3600 + second;
        hours.filter_map(|(hour, fault)| fault.map(|(second, fault)| (at(hour, second), Event::Fault(fault)))).collect()
    })
}

fn a_storm_of_faults() -> impl Strategy<Value = Vec<(i64, Event)>> {
    let fault = (0_i64..21_600, any_fault(CALLS)).prop_map(|(second, fault)| (second, Event::Fault(fault)));
    proptest::collection::vec(fault, 0..60)
}

/// A day under way: the world, and what a person with a notebook would have written down.
struct Day {
    world: World,
    /// The end of each visible bucket with use, and from when on it is visible.
    used: Vec<(usize, Instant, Instant)>,
    late: Vec<(Instant, usize, Instant)>,
    last_wake: Option<Instant>,
    /// Wakes that nobody has met nor answered with a failure.
    unmet: Vec<Instant>,
    /// The faults that have not struck yet: the calls of the kind made before.
    armed: BTreeMap<&'static str, usize>,
    struck_at: Option<Instant>,
    one_at_a_time: bool,
}

impl Day {
    fn new(one_at_a_time: bool) -> Self {
        Self {
            world: fleet("10:00", NODES.map(node)),
            used: Vec::new(),
            late: Vec::new(),
            last_wake: None,
            unmet: Vec::new(),
            armed: BTreeMap::new(),
            struck_at: None,
            one_at_a_time,
        }
    }

    /// Runs the events in their order between ticks, and ticks on for two calm hours.
    fn run(&mut self, mut events: Vec<(i64, Event)>) -> Result<(), String> {
        events.sort_by_key(|(second, _)| *second);
        let mut events = events.into_iter().peekable();
        let end = 21_600 + 7_200;
        for tick in (0..=end).step_by(300) {
            while let Some((second, event)) = events.next_if(|(second, _)| *second < tick) {
                self.advance(at("10:00") + seconds(second));
                self.happen(event)?;
                self.note();
            }
            self.advance(at("10:00") + seconds(tick));
            self.tick()?;
            self.note();
            self.check_promises()?;
        }
        Ok(())
    }

    fn advance(&mut self, now: Instant) {
        self.world.set_now(now);
        let (due, late): (Vec<_>, Vec<_>) = std::mem::take(&mut self.late).into_iter().partition(|(at, ..)| *at <= now);
        self.late = late;
        for (_, n, bucket) in due {
            self.count(n, &request_metric(NODES[n]), bucket);
        }
    }

    fn count(&mut self, n: usize, metric: &reveille::run::MetricRef, bucket: Instant) {
        self.world.point(metric, bucket, 1.0);
        self.used.push((n, bucket + minutes(1), self.world.now()));
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        let now = self.world.now();
        let running = |n: usize| state(&self.world, NODES[n]) == NodeState::Running;
        match event {
            Event::Prewarm => self.prewarm()?,
            Event::Request(n, late) if running(n) => self.late.push((now + seconds(late), n, bucket(now))),
            Event::OpenMinute(n) if running(n) => self.count(n, &open_metric(NODES[n]), bucket(now)),
            Event::HandStart(n) => drop(self.world.start(&id(NODES[n]))),
            Event::HandStop(n) if running(n) => {
                drop(self.world.stop(&id(NODES[n]), false));
                // Whoever stops a node by hand after a wake takes the wake back.
                self.unmet.clear();
            }
            Event::Hang(n) => self.world.hang_in_stopping(&id(NODES[n])),
            Event::StateChange => {
                let ctx = context(&self.world);
                drive(&mut self.world, WakeRun::new(ctx, Cause::StateChange))?;
            }
            Event::Fault(fault) => self.arm(fault),
            Event::Request(..) | Event::OpenMinute(_) | Event::HandStop(_) => {}
        }
        Ok(())
    }

    fn arm(&mut self, fault: WorldFault) {
        let rested = self.struck_at.is_none_or(|at| self.world.now() - at >= minutes(60));
        let alone = self.armed.is_empty() && rested;
        if !self.armed.contains_key(fault.call) && (alone || !self.one_at_a_time) {
            self.armed.insert(fault.call, count(&self.world, fault.call));
            self.world.fail(fault);
        }
    }

    fn prewarm(&mut self) -> Result<(), String> {
        let (now, demand) = (self.world.now(), self.world.record(&voice()).demand);
        let ctx = context(&self.world);
        let outcome = drive(&mut self.world, WakeRun::new(ctx, wish()))?;
        if self.world.record(&voice()).demand > demand {
            self.last_wake = Some(now);
        }
        let told = outcome.blind.is_some() || outcome.answers.iter().any(|answer| answer.reason == Reason::CoolingDown);
        if !told {
            self.unmet.push(now);
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), String> {
        let now = self.world.now();
        let before = self.world.effects.len();
        let ctx = context(&self.world);
        drive(&mut self.world, IdleRun::new(ctx))?;
        for (_, effect, node) in &self.world.effects[before..] {
            let seen = |(n, end, visible): &&(usize, Instant, Instant)| {
                NODES[*n] == node.as_str() && *visible <= now && now - (*end).min(now) < minutes(30)
            };
            if *effect == "stop" && self.used.iter().any(|used| seen(&used)) {
                return Err(format!("{node} was stopped at {} with use in sight", clock(now)));
            }
        }
        Ok(())
    }

    /// What is settled by now.
    fn note(&mut self) {
        let now = self.world.now();
        let armed = self.armed.len();
        self.armed.retain(|call, before| count(&self.world, call) == *before);
        if self.armed.len() < armed {
            self.struck_at = Some(now);
        }
        let told = self.world.published.iter().any(|alert| alert.kind == AlertKind::StartFailed);
        if told || ids().iter().any(|node| is_up(&mut self.world, node)) {
            self.unmet.clear();
        }
    }

    fn told_of(&self, node: &NodeId) -> bool {
        let about = |kind| matches!(kind, AlertKind::CannotStop | AlertKind::Blind);
        self.world.published.iter().any(|alert| about(alert.kind) && alert.node.as_ref() == Some(node))
    }

    /// The newest instant that speaks for this node.
    fn last_use(&mut self, n: usize) -> Instant {
        let record = self.world.record(&voice()).node(&id(NODES[n]));
        let seen = self.world.node(&id(NODES[n])).expect("a node");
        let ready = record.ready.filter(|ready| ready.launched_at == seen.launched_at).map(|ready| ready.at);
        let used = self.used.iter().filter(|(of, ..)| *of == n).map(|(_, end, _)| *end).max();
        [seen.launched_at, ready, used, self.last_wake].into_iter().flatten().max().expect("a launch")
    }

    fn check_promises(&mut self) -> Result<(), String> {
        let now = self.world.now();
        if !self.one_at_a_time {
            return Ok(());
        }
        for (n, node) in ids().iter().enumerate() {
            let idle_for = now - self.last_use(n);
            if state(&self.world, NODES[n]) == NodeState::Running && idle_for > minutes(40) && !self.told_of(node) {
                return Err(format!("{node} runs at {}, idle for {} minutes", clock(now), idle_for.num_minutes()));
            }
            let up_for = now - self.world.node(node).and_then(|seen| seen.launched_at).unwrap_or(now);
            let record = self.world.record(&voice()).node(node);
            let phase = phase(self.world.node(node).expect("a node"), &record, now);
            if state(&self.world, NODES[n]) == NodeState::Running && up_for > minutes(15) && phase == Phase::Starting {
                return Err(format!("{node} has run for {} minutes and is still said to start", up_for.num_minutes()));
            }
        }
        match self.unmet.first() {
            // A node that hangs holds a wake up for the force time, a tick on either side, and one failed call.
            Some(wake) if now - *wake > minutes(35) => {
                Err(format!("the wake of {} is not met at {}", clock(*wake), clock(now)))
            }
            _ => Ok(()),
        }
    }

    fn check_end(&mut self) -> Result<(), String> {
        self.world.set_now(self.world.now() + minutes(1));
        let awake = ids()
            .into_iter()
            .find(|node| state(&self.world, node.as_str()) != NodeState::Stopped && !self.told_of(node));
        awake.map_or(Ok(()), |node| Err(format!("{node} is {:?} at the end", state(&self.world, node.as_str()))))
    }
}

fn failed(day: &Day, why: String) -> TestCaseError {
    TestCaseError::fail(format!("{why}\neffects: {:?}\ncalls: {}", day.world.effects, day.world.calls.len()))
}

proptest! {
    #![proptest_config(laws(100))]

    #[test]
    fn on_a_day_with_a_fault_an_hour_every_idle_node_sleeps_within_40_minutes_and_every_wake_is_met(
        events in events(), faults in rare_faults(),
    ) {
        let mut day = Day::new(true);
        let all = events.into_iter().chain(faults).collect();
        let kept = day.run(all).and_then(|()| day.check_end());
        kept.map_err(|why| failed(&day, why))?;
    }

    #[test]
    fn after_a_storm_of_faults_every_node_sleeps_or_is_told(events in events(), faults in a_storm_of_faults()) {
        let mut day = Day::new(false);
        let all = events.into_iter().chain(faults).collect();
        let kept = day.run(all).and_then(|()| day.check_end());
        kept.map_err(|why| failed(&day, why))?;
    }
}

// Orders.

#[derive(Debug, Clone, Copy)]
enum Kind {
    Wake,
    Idle,
    StateChange,
}

/// A run of which any call of the present step may be made next.
struct Racer {
    run: Box<dyn Run>,
    calls: Vec<(Call, Option<Answer>)>,
    outcome: Option<Outcome>,
}

impl Racer {
    fn new(kind: Kind, ctx: Context) -> Self {
        let run: Box<dyn Run> = match kind {
            Kind::Wake => Box::new(WakeRun::new(ctx, wish())),
            Kind::Idle => Box::new(IdleRun::new(ctx)),
            Kind::StateChange => Box::new(WakeRun::new(ctx, Cause::StateChange)),
        };
        let mut racer = Self { run, calls: Vec::new(), outcome: None };
        racer.go_on();
        racer
    }

    /// Asks for the next calls once every answer is there.
    fn go_on(&mut self) {
        if self.outcome.is_none() && self.calls.iter().all(|(_, answer)| answer.is_some()) {
            let answers = std::mem::take(&mut self.calls).into_iter().filter_map(|(_, answer)| answer).collect();
            match self.run.next(answers) {
                Step::Calls(calls) => self.calls = calls.into_iter().map(|call| (call, None)).collect(),
                Step::Done(outcome) => self.outcome = Some(outcome),
            }
        }
    }

    fn step(&mut self, world: &mut World, which: usize) -> Result<(), String> {
        let open: Vec<usize> = (0..self.calls.len()).filter(|n| self.calls[*n].1.is_none()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let n = open[which % open.len()];
        let (answer, lawful) = make(world, &self.calls[n].0);
        self.calls[n].1 = Some(answer);
        self.go_on();
        lawful
    }
}

/// How things stand at 10:05.
fn situation(which: usize) -> World {
    let up = || node("i-a").running_since("09:00").ready_since("09:01");
    match which {
        0 => fleet("10:05", NODES.map(node)),
        1 => {
            let mut idle = fleet("10:00", [up(), node("i-b")]);
            tick(&mut idle);
            idle.set_now(at("10:05"));
            idle
        }
        2 => {
            let mut lost = fleet("09:55", [up(), node("i-b")]);
            tick(&mut lost);
            fail(&mut lost, "stop", "Timeout");
            tick_at(&mut lost, "10:00");
            lost.set_now(at("10:05"));
            lost
        }
        3 => {
            let mut stopping = fleet("10:05", [up(), node("i-b").gone()]);
            stopping.stop(&id("i-a"), false).expect("a stop");
            stopping
        }
        _ => {
            let mut starting = fleet("10:00", NODES.map(node));
            lose_answer(&mut starting, "start");
            prewarm(&mut starting);
            starting.set_now(at("10:05"));
            starting
        }
    }
}

/// Who moves next, and with which of its open calls.
fn orders() -> impl Strategy<Value = Vec<(usize, usize)>> {
    proptest::collection::vec((0_usize..6, 0_usize..4), 0..120)
}

struct Race {
    world: World,
    racers: Vec<(Kind, Racer)>,
}

/// The runs in this order, then each to its end.
fn race(mut world: World, kinds: &[Kind], order: Vec<(usize, usize)>) -> Result<Race, String> {
    let context = |n: usize| Context { run: RunId(format!("racer-{n}")), ..context(&world) };
    let mut racers: Vec<(Kind, Racer)> =
        kinds.iter().enumerate().map(|(n, kind)| (*kind, Racer::new(*kind, context(n)))).collect();
    let last = (0..kinds.len()).flat_map(|n| std::iter::repeat_n((n, 0), 60));
    for (who, which) in order.into_iter().chain(last) {
        let later = world.now() + chrono::TimeDelta::milliseconds(20);
        world.set_now(later);
        let who = who % racers.len();
        racers[who].1.step(&mut world, which)?;
    }
    assert!(racers.iter().all(|(_, racer)| racer.outcome.is_some()), "every run ends");
    Ok(Race { world, racers })
}

impl Race {
    /// Nobody who was told ready has the node stopped under him by us.
    fn check_ready(&self) -> Result<(), String> {
        let answers =
            self.racers.iter().filter_map(|(_, racer)| racer.outcome.as_ref()).flat_map(|outcome| &outcome.answers);
        let ready: BTreeMap<_, _> = answers
            .filter(|answer| answer.reason == Reason::AlreadyReady)
            .map(|answer| (answer.node.clone(), ()))
            .collect();
        for node in ready.into_keys().flatten() {
            if matches!(state(&self.world, node.as_str()), NodeState::Stopping | NodeState::Stopped) {
                return Err(format!("{node} was told ready and is stopped"));
            }
        }
        Ok(())
    }

    /// The ticks of the next twenty minutes meet what the race has left.
    fn settle(&mut self) -> Result<(), String> {
        let woken = self.racers.iter().any(|(kind, _)| matches!(kind, Kind::Wake));
        let mut met = !woken;
        for clock in ["10:10", "10:15", "10:20", "10:25"] {
            self.world.set_now(at(clock));
            let ctx = context(&self.world);
            drive(&mut self.world, IdleRun::new(ctx))?;
            met |= ids().iter().any(|node| is_up(&mut self.world, node));
        }
        if met { Ok(()) } else { Err("the wake is never met".to_owned()) }
    }
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let kind = prop_oneof![3 => Just(Kind::Wake), 2 => Just(Kind::Idle), 1 => Just(Kind::StateChange)];
    proptest::collection::vec(kind, 2..6)
}

proptest! {
    #![proptest_config(laws(500))]

    #[test]
    fn in_every_order_one_start_a_pool_and_nobody_told_ready_is_stopped(
        which in 0_usize..5, kinds in kinds(), order in orders(), fault in proptest::option::of(any_fault(ACTS)),
    ) {
        let mut world = situation(which);
        if let Some(fault) = fault {
            world.fail(fault);
        }
        let kept = race(world, &kinds, order).and_then(|mut race| {
            race.check_ready()?;
            race.settle()
        });
        kept.map_err(TestCaseError::fail)?;
    }
}
