//! The stage in memory: the runs' own step machines over the in-memory world. Every call takes its own time, so that the
//! calls of several invocations come between each other.

use crate::draw;
use crate::faults::{Fault, Kind, can_strike, codes};
use crate::setup::Setup;
use crate::stage::{Accepted, Act, Ask, Change, Ended, Happened, Line, Reply, RunKey, Stage, Strike};
use chrono::TimeDelta;
use reveille::config::{Config, ConfigFaults};
use reveille::decide::budget::BudgetPolicy;
use reveille::domain::{
    Disk, InstanceType, Instant, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, RunId, StateReason, Usd, WakeSource,
};
use reveille::observation::{Series, Unread};
use reveille::run::{
    Answer, BudgetRun, Call, Caller, Cause, Context, EffectKind, History, IdleRun, LeaseAnswer, LeaseRun, LeaseWish,
    Outcome, Run, Step, Target, UptimeRun, WakeRun, WakeWish,
};
use reveille::world::{World, WorldFault, call_name};
use std::collections::{BTreeSet, VecDeque};

/// How long a run may take.
const TIME_OUT: TimeDelta = TimeDelta::seconds(60);

/// How long a call waits for its answer, its client's own repetitions with it.
const NO_ANSWER: TimeDelta = TimeDelta::seconds(9);

/// A describe is at most so old: the product takes EC2's word for settled after four minutes.
const MOST_STALE_SECONDS: i64 = 220;

/// Answers a call instead of the world; for tests that the checks bite.
pub type Meddle = fn(&mut World, &Call) -> Option<Answer>;

#[derive(Debug, Clone)]
enum Machine {
    Wake(Box<WakeRun>),
    Lease(Box<LeaseRun>),
    Idle(Box<IdleRun>),
    Uptime(Box<UptimeRun>),
    Budget(Box<BudgetRun>),
}

impl Run for Machine {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        match self {
            Self::Wake(run) => run.next(answers),
            Self::Lease(run) => run.next(answers),
            Self::Idle(run) => run.next(answers),
            Self::Uptime(run) => run.next(answers),
            Self::Budget(run) => run.next(answers),
        }
    }
}

/// A call that is on its way.
struct Sent {
    at: Instant,
    place: usize,
    call: Call,
}

struct Active {
    key: RunKey,
    ask: Ask,
    began: Instant,
    clock: Instant,
    machine: Machine,
    /// The same machine as it was at first, and every step it has made since.
    first: Machine,
    steps: Vec<(Vec<Call>, Vec<Answer>)>,
    sent: Vec<Sent>,
    answers: Vec<Option<Answer>>,
    /// The step is over when its last answer is there.
    next_at: Instant,
    calls: usize,
    read_at: Option<Instant>,
    struck: Vec<Strike>,
}

/// The stage in memory.
pub struct Memory {
    world: World,
    config: Config,
    seed: u64,
    clock_off: TimeDelta,
    active: Vec<Active>,
    /// Calls that arrive after their run has given them up.
    strays: Vec<(Instant, RunKey, Instant, Call)>,
    armed: Vec<Fault>,
    outages: Vec<(Instant, String, String)>,
    /// The nodes as they were, newest last.
    looks: VecDeque<(Instant, Vec<NodeSeen>)>,
    slow: i64,
    happened: VecDeque<Happened>,
    meddle: Option<Meddle>,
}

impl Memory {
    /// A stage for a day; `seed` draws how long calls take.
    ///
    /// # Errors
    /// The day's configuration has faults.
    pub fn new(setup: &Setup, seed: u64) -> Result<Self, ConfigFaults> {
        let config = setup.config()?;
        let mut world = World::at(setup.start);
        for pool in &setup.pools {
            let name = pool.pool().map_err(|fault| ConfigFaults(vec![fault.to_string()]))?;
            for id in &pool.nodes {
                let id = NodeId::new(id.clone()).map_err(|fault| ConfigFaults(vec![fault.to_string()]))?;
                let kind = pool.types.first().cloned().unwrap_or_else(|| "g6.xlarge".to_owned());
                world.add_node(asleep(&id, &name, &kind, setup.start));
                world.add_disk(&id, disk(setup.start));
            }
            world.log(&pool.log_group(), setup.start - TimeDelta::days(1), "-");
        }
        let mut stage = Self {
            world,
            config,
            seed,
            clock_off: TimeDelta::zero(),
            active: Vec::new(),
            strays: Vec::new(),
            armed: Vec::new(),
            outages: Vec::new(),
            looks: VecDeque::new(),
            slow: 0,
            happened: VecDeque::new(),
            meddle: None,
        };
        stage.note_nodes();
        Ok(stage)
    }

    /// The same, where something answers in the world's place.
    pub fn meddled(self, meddle: Meddle) -> Self {
        Self { meddle: Some(meddle), ..self }
    }

    fn context(&self, key: &RunKey) -> Context {
        Context {
            run: RunId(key.0.clone()),
            now: self.world.now() + self.clock_off,
            time_out: TIME_OUT,
            policy: self.config.policy.clone(),
            pools: self.config.pool_policies(),
            prices: self.config.prices.clone(),
        }
    }

    fn machine(&self, key: &RunKey, ask: &Ask) -> Option<Machine> {
        let ctx = self.context(key);
        let wakes = |cause| Some(Machine::Wake(Box::new(WakeRun::new(self.context(key), cause))));
        let leases = |wish| Some(Machine::Lease(Box::new(LeaseRun::new(self.context(key), wish))));
        let lease = |id: &_, pool: Option<&PoolName>, lasts: Option<i64>, renews| LeaseWish {
            id: Clone::clone(id),
            target: pool.cloned().map(Target::Pool),
            lasts: lasts.map(TimeDelta::seconds),
            renews,
            caller: caller(),
        };
        match ask {
            Ask::Wake(pool, node) => {
                let target = node.as_ref().map_or(Target::Pool(pool.clone()), |id| Target::Node(id.to_string()));
                let wish = WakeWish { caller: Some(caller()), ..WakeWish::new(target, WakeSource::Prewarm) };
                wakes(Cause::Wishes(vec![wish]))
            }
            Ask::LogLine(pool) => {
                wakes(Cause::Wishes(vec![WakeWish::new(Target::Pool(pool.clone()), WakeSource::LogLine)]))
            }
            Ask::Status(pool) => wakes(Cause::Status(Target::Pool(pool.clone()))),
            Ask::StateChange => wakes(Cause::StateChange),
            Ask::Lease(pool, id, lasts) => leases(lease(id, Some(pool), Some(*lasts), false)),
            Ask::Renew(pool, id, lasts) => leases(lease(id, Some(pool), Some(*lasts), true)),
            Ask::EndLease(id) => leases(lease(id, None, None, false)),
            Ask::Idle => Some(Machine::Idle(Box::new(IdleRun::new(ctx)))),
            Ask::Uptime => Some(Machine::Uptime(Box::new(UptimeRun::new(ctx)))),
            Ask::Budget => {
                self.config.budget.clone().map(|budget| Machine::Budget(Box::new(BudgetRun::new(ctx, budget))))
            }
        }
    }

    /// The next instant at which something is due, and whether it is a run's (by its place) or a stray's.
    fn next_due(&self) -> Option<(Instant, Option<usize>)> {
        let of_runs = self.active.iter().enumerate().map(|(n, run)| {
            let call = run.sent.iter().map(|sent| sent.at).min().unwrap_or(run.next_at);
            (call.min(run.began + TIME_OUT), Some(n))
        });
        of_runs.chain(self.strays.iter().map(|(at, ..)| (*at, None))).min_by_key(|(at, _)| *at)
    }

    fn set_now(&mut self, to: Instant) {
        self.world.set_now(to);
        self.note_nodes();
    }

    /// Keeps the nodes as they were, for stale looks.
    fn note_nodes(&mut self) {
        let nodes = self.nodes();
        if self.looks.back().is_none_or(|(_, last)| *last != nodes) {
            self.looks.push_back((self.world.now(), nodes));
        }
        let oldest = self.world.now() - TimeDelta::seconds(MOST_STALE_SECONDS);
        while self.looks.get(1).is_some_and(|(since, _)| *since < oldest) {
            self.looks.pop_front();
        }
    }

    fn step(&mut self, place: Option<usize>) {
        let Some(n) = place else { return self.arrive_late() };
        let mut run = self.active.swap_remove(n);
        let now = self.world.now();
        if now >= run.began + TIME_OUT {
            return self.die(run);
        }
        let first = run.sent.iter().enumerate().min_by_key(|(_, sent)| (sent.at, sent.place)).map(|(n, _)| n);
        match first {
            Some(n) if run.sent[n].at <= now => {
                let sent = run.sent.swap_remove(n);
                if let Some(run) = self.make(run, sent) {
                    self.active.push(run);
                }
            }
            Some(_) => self.active.push(run),
            None => self.go_on(run),
        }
    }

    /// All answers are there: the run goes on.
    fn go_on(&mut self, mut run: Active) {
        let answers: Vec<Answer> = std::mem::take(&mut run.answers).into_iter().flatten().collect();
        if let Some((_, given)) = run.steps.last_mut() {
            given.clone_from(&answers);
        }
        match run.machine.next(answers) {
            Step::Calls(calls) => {
                self.send(&mut run, calls);
                self.active.push(run);
            }
            Step::Done(outcome) => self.end(run, outcome),
        }
    }

    fn send(&mut self, run: &mut Active, calls: Vec<Call>) {
        run.answers = vec![None; calls.len()];
        run.steps.push((calls.clone(), Vec::new()));
        let now = self.world.now();
        for (place, call) in calls.into_iter().enumerate() {
            run.calls += 1;
            let takes = draw::between(self.seed, (&run.key, run.calls), 15, 400);
            run.sent.push(Sent { at: now + TimeDelta::milliseconds(takes), place, call });
        }
        run.next_at = run.sent.iter().map(|sent| sent.at).max().unwrap_or(now);
    }

    /// One call arrives. None where the run has died of it.
    fn make(&mut self, mut run: Active, sent: Sent) -> Option<Active> {
        let name = call_name(&sent.call);
        if ["activity", "logs", "beats"].contains(&name) {
            run.read_at = Some(self.world.now());
        }
        let fault = self.take_fault(&sent.call);
        let (kind, code) = match fault {
            None => {
                run.answers[sent.place] = Some(self.carry_out(&run, &sent.call));
                return Some(run);
            }
            Some(fault) => (fault.kind, fault.code),
        };
        let strike = Strike { kind, call: name.to_owned() };
        run.struck.push(strike.clone());
        self.happened.push_back(Happened::Struck(run.key.clone(), strike));
        let answer = self.struck(&mut run, &sent, kind, code.as_deref());
        if kind == Kind::Killed {
            self.die(run);
            return None;
        }
        run.answers[sent.place] = Some(answer);
        Some(run)
    }

    fn struck(&mut self, run: &mut Active, sent: &Sent, kind: Kind, code: Option<&str>) -> Answer {
        let (call, now) = (&sent.call, self.world.now());
        match kind {
            Kind::Refused => self.fail(call, code.unwrap_or("RequestLimitExceeded")),
            Kind::Hangs => {
                run.next_at = run.next_at.max(now + NO_ANSWER);
                self.fail(call, "Timeout")
            }
            Kind::Lost => {
                self.carry_out(run, call);
                run.next_at = run.next_at.max(now + NO_ANSWER);
                self.fail(call, "Timeout")
            }
            Kind::Late => {
                let left = (run.began + TIME_OUT - now).num_seconds().max(1);
                let after = draw::between(self.seed, (&run.key, run.calls, "late"), 1, left + 1);
                self.strays.push((now + TimeDelta::seconds(after), run.key.clone(), run.clock, call.clone()));
                run.next_at = run.next_at.max(now + NO_ANSWER);
                self.fail(call, "Timeout")
            }
            Kind::Twice => {
                self.carry_out(run, call);
                self.carry_out(run, call)
            }
            Kind::Killed => self.carry_out(run, call),
            Kind::Stale => self.stale(call).unwrap_or_else(|| self.carry_out(run, call)),
            Kind::Partial => partial(self.carry_out(run, call)),
        }
    }

    /// The first fault that fits the call. One that would change nothing waits on.
    fn take_fault(&mut self, call: &Call) -> Option<Fault> {
        let (name, now) = (call_name(call), self.world.now());
        self.outages.retain(|(until, ..)| now < *until);
        if let Some((_, _, code)) = self.outages.iter().find(|(_, of, _)| of == name) {
            return Some(Fault { kind: Kind::Refused, call: name.to_owned(), code: Some(code.clone()) });
        }
        let fits = |fault: &Fault| {
            let tells = match fault.kind {
                Kind::Stale => self.stale(call).is_some(),
                Kind::Refused | Kind::Hangs | Kind::Lost | Kind::Late | Kind::Twice | Kind::Killed | Kind::Partial => {
                    true
                }
            };
            fault.call == name && can_strike(fault.kind, name) && tells
        };
        let place = self.armed.iter().position(fits)?;
        Some(self.armed.remove(place))
    }

    fn fail(&mut self, call: &Call, code: &str) -> Answer {
        let call_kind = call_name(call);
        let known = codes(call_kind).iter().find(|known| **known == code);
        let code = known.copied().unwrap_or("Timeout");
        self.world.fail(WorldFault { call: call_kind, node: None, code, after: false, times: 1 });
        self.world.answer(call)
    }

    /// What EC2 said some time ago; none where that is what it says now.
    fn stale(&self, call: &Call) -> Option<Answer> {
        if let Call::DescribeNodes { pools } = call {
            self.stale_nodes(pools.as_ref())
        } else {
            self.stale_checks(call)
        }
    }

    fn stale_nodes(&self, pools: Option<&BTreeSet<PoolName>>) -> Option<Answer> {
        let now = self.world.now();
        let age = draw::between(self.seed, (now.timestamp_millis(), "stale"), 5, MOST_STALE_SECONDS);
        let at = now - TimeDelta::seconds(age);
        let (_, nodes) = self.looks.iter().rev().find(|(since, _)| *since <= at)?;
        let wanted = |node: &&NodeSeen| pools.is_none_or(|pools| pools.contains(&node.pool));
        let then: Vec<NodeSeen> = nodes.iter().filter(wanted).cloned().collect();
        (!then.iter().eq(self.nodes().iter().filter(wanted))).then_some(Answer::Nodes(Ok(then)))
    }

    /// Status checks that have just passed do not show yet.
    fn stale_checks(&self, call: &Call) -> Option<Answer> {
        let Call::ReadReadiness { nodes } = call else { return None };
        let recent = |id: &&NodeId| {
            let launched = self.world.node(id).and_then(|seen| seen.launched_at);
            launched.is_some_and(|at| self.world.now() - at < self.world.checks + TimeDelta::minutes(2))
        };
        let old = || nodes.iter().filter(|id| !recent(id)).cloned().collect();
        nodes.iter().any(|id| recent(&id)).then(|| Answer::Readiness(Ok(old())))
    }

    /// Carries a call out, and notes what it did to nodes and people.
    fn carry_out(&mut self, run: &Active, call: &Call) -> Answer {
        let accepted = |act, node: &NodeId| Accepted {
            run: run.key.clone(),
            act,
            node: node.clone(),
            clock: run.clock,
            read_at: run.read_at,
            struck: run.struck.clone(),
        };
        self.carried_out(&run.key, call, accepted)
    }

    fn carried_out(&mut self, key: &RunKey, call: &Call, accepted: impl Fn(Act, &NodeId) -> Accepted) -> Answer {
        let (effects, told) = (self.world.effects.len(), self.world.published.len());
        let meddled = self.meddle.and_then(|meddle| meddle(&mut self.world, call));
        let answer = meddled.unwrap_or_else(|| self.world.answer(call));
        if self.world.effects.len() > effects {
            let did = if let Call::Start { node } = call {
                Some(accepted(Act::Start, node))
            } else if let Call::Stop { node, force } = call {
                Some(accepted(if *force { Act::Force } else { Act::Stop }, node))
            } else {
                None
            };
            self.happened.extend(did.map(Happened::Accepted));
        }
        let new = self.world.published.get(told..).unwrap_or_default().to_vec();
        self.happened.extend(new.into_iter().map(|alert| Happened::Told(key.clone(), alert)));
        self.note_nodes();
        answer
    }

    fn arrive_late(&mut self) {
        let Some(n) = (0..self.strays.len()).min_by_key(|n| self.strays[*n].0) else { return };
        let (_, key, clock, call) = self.strays.swap_remove(n);
        let struck = vec![Strike { kind: Kind::Late, call: call_name(&call).to_owned() }];
        let run = key.clone();
        let accepted = |act, node: &NodeId| Accepted {
            run: run.clone(),
            act,
            node: node.clone(),
            clock,
            read_at: None,
            struck: struck.clone(),
        };
        self.carried_out(&key, &call, accepted);
    }

    fn die(&mut self, run: Active) {
        let ended = Ended {
            run: run.key,
            ask: run.ask,
            began: run.began,
            clock: run.clock,
            died: true,
            failed: true,
            decided: Vec::new(),
            demanded: Vec::new(),
            reply: None,
            struck: run.struck,
            replays: None,
        };
        self.happened.push_back(Happened::Ended(ended));
    }

    fn end(&mut self, run: Active, outcome: Outcome) {
        let replays = replay(run.first, &run.steps, &outcome);
        let demand = |effect: &&reveille::run::Effect| effect.event == EffectKind::Demand;
        let demanded = outcome.effects.iter().filter(demand);
        let line = |line: &reveille::run::Decided| Line {
            pool: line.pool.clone(),
            node: line.node.clone(),
            action: line.action.clone(),
            reason: line.reason.as_str().to_owned(),
        };
        let ended = Ended {
            reply: (!run.ask.is_event()).then(|| reply(&outcome)),
            run: run.key,
            ask: run.ask,
            began: run.began,
            clock: run.clock,
            died: false,
            failed: outcome.blind.is_some() || outcome.unrecorded.is_some(),
            decided: outcome.decided.iter().map(line).collect(),
            demanded: demanded.filter_map(|effect| Some((effect.pool.clone()?, effect.node.clone()))).collect(),
            struck: run.struck,
            replays: Some(replays),
        };
        self.happened.push_back(Happened::Ended(ended));
    }

    fn change_budget(&mut self, change: impl Fn(&mut World, &str)) {
        let Some(name) = self.config.budget.as_ref().map(|budget| budget.name.clone()) else { return };
        change(&mut self.world, &name);
    }
}

impl Stage for Memory {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn begin(&mut self, key: RunKey, ask: Ask) {
        let Some(mut machine) = self.machine(&key, &ask) else { return };
        let first = machine.clone();
        let (began, clock) = (self.world.now(), self.world.now() + self.clock_off);
        let late = std::mem::take(&mut self.slow);
        let step = machine.next(Vec::new());
        let mut run = Active {
            key,
            ask,
            began,
            clock,
            machine,
            first,
            steps: Vec::new(),
            sent: Vec::new(),
            answers: Vec::new(),
            next_at: began,
            calls: 0,
            read_at: None,
            struck: Vec::new(),
        };
        match step {
            Step::Calls(calls) => self.send(&mut run, calls),
            Step::Done(outcome) => return self.end(run, outcome),
        }
        run.sent.iter_mut().for_each(|sent| sent.at += TimeDelta::seconds(late));
        run.next_at += TimeDelta::seconds(late);
        self.active.push(run);
    }

    fn advance(&mut self, to: Instant) -> Option<Happened> {
        loop {
            if let Some(happened) = self.happened.pop_front() {
                return Some(happened);
            }
            let due = self.next_due().filter(|(at, _)| *at <= to);
            let Some((at, place)) = due else {
                self.set_now(to);
                return None;
            };
            self.set_now(at);
            self.step(place);
        }
    }

    fn arm(&mut self, fault: Fault) {
        self.armed.push(fault);
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Start(node) => drop(self.world.start(&node)),
            Change::Stop(node) => drop(self.world.stop(&node, false)),
            Change::Hold(pool, node, hold) => drop(self.world.answer(&Call::SetHold { pool, node, hold })),
            Change::Gate(pool, gate) => self.world.record(&pool).gate = gate,
            Change::NoCapacity(node, none) => self.world.no_capacity(&node, none),
            Change::NoCapacityType(kind, none) => {
                let Ok(kind) = InstanceType::new(kind) else { return };
                if none {
                    self.world.no_capacity_types.insert(kind);
                } else {
                    self.world.no_capacity_types.remove(&kind);
                }
            }
            Change::RefuseStop(node, code) => {
                let known = |code: String| codes("stop").iter().find(|known| **known == code).copied();
                self.world.refuse_stops(&node, code.and_then(known));
            }
            Change::Hang(node) => self.world.hang_in_stopping(&node),
            Change::FallBack(node, code) => {
                let message = format!("{code}: the start fell back");
                self.world.fall_back(&node, StateReason { code, message });
            }
            Change::Point(metric, at, value) => self.world.point(&metric, at, value),
            Change::Beat(node, beat) => drop(self.world.beats.insert(node, beat)),
            Change::Log(group, at, line) => self.world.log(&group, at, &line),
            Change::ClockOff(seconds) => self.clock_off = TimeDelta::seconds(seconds),
            Change::Outage(call, code, lasts) => {
                self.outages.push((self.world.now() + TimeDelta::seconds(lasts), call, code));
            }
            Change::BudgetGone => self.change_budget(|world, name| drop(world.budgets.remove(name))),
            Change::NoticesGone => self.change_budget(|world, name| {
                world.budgets.get_mut(name).into_iter().for_each(|budget| budget.notices.clear());
            }),
            Change::Amount(amount) => {
                let amount = Usd::parse(&amount).ok();
                let known = self.config.budget.as_mut().zip(amount);
                known.into_iter().for_each(|(budget, amount): (&mut BudgetPolicy, Usd)| budget.amount = amount);
            }
            Change::Slow(seconds) => self.slow = seconds,
        }
        self.note_nodes();
    }

    fn nodes(&self) -> Vec<NodeSeen> {
        let all = self.world.node_ids();
        all.filter_map(|id| self.world.node(id)).cloned().collect()
    }

    fn record(&mut self, pool: &PoolName) -> PoolRecord {
        self.world.record(pool).clone()
    }

    fn history(&self) -> History {
        self.world.history().clone()
    }
}

/// The same machine, given the same answers, asks for the same calls and ends the same.
fn replay(mut machine: Machine, steps: &[(Vec<Call>, Vec<Answer>)], outcome: &Outcome) -> bool {
    let mut answers = Vec::new();
    for (calls, given) in steps {
        if machine.next(answers) != Step::Calls(calls.clone()) {
            return false;
        }
        answers = given.clone();
    }
    machine.next(answers) == Step::Done(outcome.clone())
}

/// A part of the answer is missing.
fn partial(mut answer: Answer) -> Answer {
    if let Answer::Activity(Ok(activity)) = &mut answer {
        activity.values_mut().for_each(halve);
    } else if let Answer::Logs(Ok(logs)) = &mut answer {
        logs.values_mut().for_each(halve);
    } else if let Answer::Samples(Ok(samples)) = &mut answer {
        samples.values_mut().for_each(|points| points.truncate(points.len().saturating_sub(3)));
    } else if let Answer::Beats(Ok(beats)) = &mut answer {
        beats.pop_first();
    }
    answer
}

fn halve(series: &mut Result<Series, Unread>) {
    if let Ok(series) = series {
        series.points.truncate(series.points.len() / 2);
        series.complete = false;
    }
}

fn caller() -> Caller {
    Caller { class: "iam:app".to_owned(), bucket: Some("app".to_owned()) }
}

/// What the wake function makes of an outcome, as far as callers act on it.
fn reply(outcome: &Outcome) -> Reply {
    let said = |status: u16, state: &str, node: Option<NodeId>| Reply { status, state: state.to_owned(), node };
    if outcome.too_many {
        return said(429, "too_many", None);
    }
    if outcome.not_found.is_some() {
        return said(404, "not_found", None);
    }
    if outcome.blind.is_some() {
        return said(503, "unknown", None);
    }
    match &outcome.lease {
        Some(LeaseAnswer::Held { node, .. }) => return said(200, "leased", Some(node.clone())),
        Some(LeaseAnswer::Over) => return said(204, "over", None),
        Some(LeaseAnswer::Ended) => return said(410, "ended", None),
        Some(LeaseAnswer::Foreign) => return said(409, "foreign", None),
        Some(LeaseAnswer::NotYet) | None => {}
    }
    let Some(answer) = outcome.answers.first() else { return said(503, "unknown", None) };
    let reason = answer.reason.as_str();
    let status = match reason {
        "already_ready" => 200,
        "already_starting"
        | "stopping_will_start"
        | "wanted"
        | "other_type"
        | "start_unresolved"
        | "stop_unresolved" => 202,
        "full" => 429,
        "gate_closed" => 403,
        _ => 503,
    };
    said(status, reason, answer.node.clone())
}

fn asleep(id: &NodeId, pool: &PoolName, kind: &str, start: Instant) -> NodeSeen {
    let code = "Client.UserInitiatedShutdown".to_owned();
    NodeSeen {
        id: id.clone(),
        name: Some(format!("{pool}-{id}")),
        pool: pool.clone(),
        tags: std::collections::BTreeMap::new(),
        state: NodeState::Stopped,
        launched_at: Some(start - TimeDelta::days(3)),
        state_reason: Some(StateReason { message: format!("{code}: User initiated shutdown"), code }),
        transition_at: Some(start - TimeDelta::days(2)),
        address: Some("10.0.0.5".to_owned()),
        public_address: None,
        spot: false,
        instance_type: InstanceType::new(kind).ok(),
    }
}

fn disk(start: Instant) -> Disk {
    Disk { kind: "gp3".to_owned(), gib: 100, iops: 3000, mibps: 125, created_at: Some(start - TimeDelta::days(30)) }
}
