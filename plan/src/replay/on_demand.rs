//! Replays events through the decision code of the functions. Between two events only those ticks are run at which a decision can
//! differ from the one before; `tests/machines.rs` holds it to every tick of the step machines.

use super::Seconds;
use super::events::{Event, Outside};
use super::tally::Tally;
use super::watch::Watch;
use chrono::TimeDelta;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reveille::decide::idle::{self, IdleAction, IdleDecision};
use reveille::decide::lease::{self, LeaseAsk, LeaseDecision};
use reveille::decide::wake::{self, WakeAction};
use reveille::decide::{Look, Readiness, Reason};
use reveille::domain::{
    Claim, ClaimAnswer, ClaimKind, Fault, FaultKind, Instant, Launch, Lease, LeaseId, Mark, NodeId, NodeRecord,
    NodeSeen, NodeState, Phase, PoolName, PoolRecord, ReadyFact, RunId, StateReason, TagHold, Wake, WakeSource,
};
use reveille::error::{CallError, ErrorClass, TookEffect};
use reveille::observation::Use;
use reveille::policy::{BETWEEN_READINGS, MOST_TRIES, MOST_WAITING, Policy, PoolRules, WAITING};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// Who takes the leases.
const CALLER: &str = "trace";
/// How long a claim's call may be in flight.
const TIME_OUT: TimeDelta = TimeDelta::seconds(60);

/// What a replay on demand is given.
#[derive(Debug, Clone, PartialEq)]
pub struct OnDemand {
    /// The limits, as the functions have them.
    pub policy: Policy,
    /// The pool, as the functions have it.
    pub rules: PoolRules,
    /// How many nodes the pool has.
    pub nodes: usize,
    /// From START to ready.
    pub boot: Seconds,
    /// From STOP to `stopped`.
    pub stop: Seconds,
    /// How long a caller waits before giving up.
    pub patience: Seconds,
    /// The chance that a START meets no capacity.
    pub refusal: f64,
    /// Whether the app's entry sends a pre-warm.
    pub prewarms: bool,
    /// A rule that the functions do not have: one reading is enough, and a lease's end ends the use.
    pub at_once: bool,
    /// Seed of the refusals.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Ready,
    Stopped,
}

struct Waiting {
    seat: usize,
    arrived: i64,
    lasts: i64,
}

/// A lease to be used by one call after the other: a name costs more to make than a decision.
struct Seat {
    id: LeaseId,
    /// What the ledger holds while a call has it.
    entry: Option<(LeaseId, Lease)>,
}

/// The order of what happens in one second: what comes from outside lies between `Retry` and `Tick`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Node,
    End,
    GiveUp,
    Retry,
    Tick,
}

/// A replay under way.
pub struct Replay {
    plan: OnDemand,
    looks: Vec<Look>,
    pool: PoolRecord,
    /// What each node does next by itself.
    due: Vec<Option<(i64, Due)>>,
    ends: BinaryHeap<Reverse<(i64, usize, usize)>>,
    seats: Vec<Seat>,
    free: Vec<usize>,
    waiting: VecDeque<Waiting>,
    next_tick: Option<i64>,
    /// When a caller who waits asks again.
    retry: Option<i64>,
    decisions: Vec<IdleDecision>,
    random: StdRng,
    tally: Tally,
    /// Every START and STOP that EC2 accepted, where somebody wants to see them.
    pub effects: Option<Vec<(i64, &'static str, usize)>>,
    /// The wait of each call, in the order in which it ended; absent where the caller gave up.
    pub waits: Option<Vec<(i64, Option<i64>)>>,
}

fn instant(at: i64) -> Instant {
    Instant::from_timestamp(at, 0).unwrap_or_default()
}

fn seconds(at: Instant) -> i64 {
    at.timestamp()
}

fn asleep(number: usize, since: i64) -> Look {
    let seen = NodeSeen {
        id: NodeId::new(format!("i-{number:04}")).expect("digits make an id"),
        name: None,
        pool: PoolName::new("trace").expect("a word is a name"),
        tags: Default::default(),
        state: NodeState::Stopped,
        launched_at: Some(instant(since)),
        state_reason: None,
        transition_at: None,
        address: None,
        spot: false,
        instance_type: None,
        public_address: None,
    };
    Look {
        seen,
        record: NodeRecord::default(),
        demand: 0,
        wake: None,
        wake_source: None,
        wake_path: None,
        used: Ok(Use { last_seen: None, last_possible: instant(since), open_now: false }),
        now: instant(since),
        drained_since: None,
        observes_calls: true,
        types: Vec::new(),
        readiness: Readiness::Unknown,
        tag_hold: TagHold::None,
        warm: false,
        reserve: false,
    }
}

impl Replay {
    /// Everything sleeps. What counts is from `from` to `to`.
    pub fn new(plan: OnDemand, from: i64, to: i64) -> Self {
        let tally = Tally::new(from, to, plan.boot, plan.patience);
        let before = from.saturating_sub(86_400).max(0);
        let mut replay = Self {
            looks: (0..plan.nodes).map(|number| asleep(number, before)).collect(),
            pool: PoolRecord::default(),
            due: vec![None; plan.nodes],
            ends: BinaryHeap::new(),
            seats: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            next_tick: None,
            retry: None,
            decisions: Vec::new(),
            random: StdRng::seed_from_u64(plan.seed),
            tally,
            effects: None,
            waits: None,
            plan,
        };
        if !replay.plan.rules.warm.is_empty() {
            replay.want_tick(from);
        }
        replay
    }

    /// Looks more closely from now on.
    pub fn watch(&mut self, watch: Option<Box<Watch>>) {
        self.tally.watch = watch;
    }

    /// Takes in what happens next from outside.
    pub fn take(&mut self, event: Event) {
        self.advance((event.at, Rank::Tick));
        match event.what {
            Outside::Entry if self.plan.prewarms => self.entry(event.at),
            Outside::Entry => {}
            Outside::Call { lasts } => self.call(event.at, lasts),
        }
    }

    /// Goes on to the end of what counts, and until nobody waits any more.
    pub fn finish(mut self) -> (Self, Tally) {
        self.advance((self.tally.to(), Rank::Node));
        while !self.waiting.is_empty() && self.step((i64::MAX, Rank::Node)) {}
        let to = self.tally.to();
        for look in &self.looks {
            if let (NodeState::Running, Some(at)) = (look.seen.state, look.seen.launched_at) {
                self.tally.ran(seconds(at), to.max(seconds(at)));
            }
        }
        let tally = self.tally.clone();
        (self, tally)
    }

    fn advance(&mut self, before: (i64, Rank)) {
        while self.step(before) {}
    }

    /// Does what is due next before this; false where nothing is.
    fn step(&mut self, before: (i64, Rank)) -> bool {
        let Some((at, rank)) = self.next_due().filter(|next| *next < before) else { return false };
        match rank {
            Rank::Node => self.node_moves(at),
            Rank::End => self.call_ends(at),
            Rank::GiveUp => self.gives_up(),
            Rank::Retry => {
                self.retry = self.next_retry(at);
                self.wake_run(at);
            }
            Rank::Tick => self.tick(at),
        }
        true
    }

    fn next_due(&self) -> Option<(i64, Rank)> {
        let node = self.due.iter().flatten().map(|(at, _)| *at).min().map(|at| (at, Rank::Node));
        let end = self.ends.peek().map(|Reverse((at, ..))| (*at, Rank::End));
        let give_up = self.waiting.front().map(|first| (first.arrived + self.plan.patience, Rank::GiveUp));
        let retry = self.retry.filter(|_| !self.waiting.is_empty()).map(|at| (at, Rank::Retry));
        let tick = self.next_tick.map(|at| (at, Rank::Tick));
        [node, end, give_up, retry, tick].into_iter().flatten().min()
    }

    fn node_moves(&mut self, at: i64) {
        for n in 0..self.looks.len() {
            let Some((_, due)) = self.due[n].filter(|(due, _)| *due == at) else { continue };
            self.due[n] = None;
            match due {
                Due::Ready => self.becomes_ready(n, at),
                Due::Stopped => {
                    self.looks[n].seen.state = NodeState::Stopped;
                    self.wake_run(at);
                }
            }
        }
    }

    fn becomes_ready(&mut self, n: usize, at: i64) {
        let look = &mut self.looks[n];
        let launched_at = look.seen.launched_at;
        look.record.ready = Some(ReadyFact { at: instant(at), launched_at, lost_at: None });
        look.readiness = Readiness::Ready(Some(instant(at)));
        look.record.fault = None;
        self.retry = self.next_retry(at);
        self.serve_waiting(at);
        self.want_tick(at);
    }

    fn entry(&mut self, at: i64) {
        self.demand(at, WakeSource::Prewarm);
        self.wake_run(at);
    }

    /// Where every node runs, one more wake of the same source only speaks for longer: no decision comes sooner by it than
    /// the tick that is already wanted.
    fn demand(&mut self, at: i64, source: WakeSource) {
        let now = instant(at);
        self.pool.wake = Some(Wake::new(now, source));
        let mut is_more_of_the_same = true;
        for look in &mut self.looks {
            is_more_of_the_same &= look.seen.state == NodeState::Running && look.wake_source == Some(source);
            (look.wake, look.wake_source) = (Some(now), Some(source));
        }
        if !is_more_of_the_same {
            self.want_tick(at);
        }
    }

    fn call(&mut self, at: i64, lasts: i64) {
        let seat = self.seat();
        if self.waiting.is_empty()
            && let Some(n) = self.node_with_room(seat, at)
        {
            return self.connect(n, seat, at, at, lasts);
        }
        if self.pool.calls_waiting(instant(at)) < MOST_WAITING {
            let until = instant(at) + WAITING.max(TimeDelta::seconds(self.plan.patience + 1));
            self.pool.waiting.insert(self.seats[seat].id.clone(), until);
        }
        if self.waiting.is_empty() {
            self.retry = self.next_retry(at);
        }
        self.waiting.push_back(Waiting { seat, arrived: at, lasts });
        self.demand(at, WakeSource::Call);
        self.wake_run(at);
    }

    fn seat(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            let id = LeaseId::new(format!("c{}", self.seats.len())).expect("a letter and digits make an id");
            let lease = Lease { by: CALLER.to_owned(), at: Instant::default(), until: Instant::default() };
            self.seats.push(Seat { id: id.clone(), entry: Some((id, lease)) });
            self.seats.len() - 1
        })
    }

    fn node_with_room(&self, seat: usize, at: i64) -> Option<usize> {
        let ask = LeaseAsk { id: &self.seats[seat].id, by: CALLER, renews: false, target: None };
        match lease::decide(&self.looks, &self.pool, &ask, &self.plan.rules, instant(at)) {
            LeaseDecision::Give(node) => self.place(&node),
            LeaseDecision::Renew(_)
            | LeaseDecision::Ended
            | LeaseDecision::Foreign
            | LeaseDecision::GateClosed
            | LeaseDecision::NoRoom => None,
        }
    }

    fn place(&self, node: &NodeId) -> Option<usize> {
        self.looks.iter().position(|look| look.seen.id == *node)
    }

    fn connect(&mut self, n: usize, seat: usize, at: i64, arrived: i64, lasts: i64) {
        let record = &mut self.looks[n].record;
        let now = instant(at);
        if let Some((id, lease)) = self.seats[seat].entry.take() {
            // Renewed each minute while the call lasts, and ended by DELETE at its end.
            let until = instant(at + lasts) + TimeDelta::minutes(1);
            record.leases.insert(id, Lease { at: now, until, ..lease });
        }
        record.leased = Some(now);
        self.tally.most_calls = self.tally.most_calls.max(record.leases.len());
        self.ends.push(Reverse((at + lasts, n, seat)));
        self.tally.served(arrived, at - arrived, lasts);
        if let Some(waits) = &mut self.waits {
            waits.push((arrived, Some(at - arrived)));
        }
    }

    fn serve_waiting(&mut self, at: i64) {
        while let Some(n) = self.waiting.front().and_then(|first| self.node_with_room(first.seat, at)) {
            let Some(Waiting { seat, arrived, lasts }) = self.waiting.pop_front() else { return };
            self.pool.waiting.remove(&self.seats[seat].id);
            self.connect(n, seat, at, arrived, lasts);
        }
    }

    fn call_ends(&mut self, at: i64) {
        let Some(Reverse((_, n, place))) = self.ends.pop() else { return };
        let (record, seat) = (&mut self.looks[n].record, &mut self.seats[place]);
        seat.entry = record.leases.remove_entry(&seat.id);
        self.free.push(place);
        record.leased = Some(instant(at));
        // As long as another lease holds the node, nothing else is decided about it, and fewer calls want no more nodes.
        let is_last = record.leases.is_empty();
        self.serve_waiting(at);
        if is_last {
            self.want_tick(at);
        }
    }

    /// The app hangs up and says so: nothing waits for the call any more.
    fn gives_up(&mut self) {
        let Some(Waiting { seat, arrived, .. }) = self.waiting.pop_front() else { return };
        self.pool.waiting.remove(&self.seats[seat].id);
        self.free.push(seat);
        self.tally.gave_up(arrived);
        if let Some(waits) = &mut self.waits {
            waits.push((arrived, None));
        }
    }

    /// Whether a node is to be started now. Each is tried once a run, as the functions do.
    fn wake_run(&mut self, at: i64) {
        if self.all_run() {
            return;
        }
        self.set_now(at);
        self.start_what_is_wanted(at, &mut BTreeSet::new());
    }

    /// Nothing can be started where everything runs.
    fn all_run(&self) -> bool {
        self.looks.iter().all(|look| look.seen.state == NodeState::Running)
    }

    fn set_now(&mut self, at: i64) {
        let now = instant(at);
        debug_assert!(self.looks.iter().all(|look| look.now <= now), "time does not go back");
        self.looks.iter_mut().for_each(|look| look.now = now);
    }

    fn start_what_is_wanted(&mut self, at: i64, tried: &mut BTreeSet<usize>) {
        while tried.len() < MOST_TRIES {
            let Some((n, source)) = self.wanted(at).filter(|(n, _)| tried.insert(*n)) else { return };
            self.start(n, source, at);
        }
    }

    /// The node that is to be started, and the wake that causes it.
    fn wanted(&mut self, at: i64) -> Option<(usize, Option<WakeSource>)> {
        let (policy, rules, now) = (&self.plan.policy, &self.plan.rules, instant(at));
        let decision = wake::decide(&self.looks, &self.pool, None, policy, rules, now);
        if matches!(decision.reason, Reason::CoolingDown | Reason::StoppingWillStart) {
            self.want_tick(at);
        }
        let WakeAction::Start(id) = decision.action else { return None };
        let by_wake = wake::is_for_wake(&self.looks, &self.pool, None, &self.plan.policy, now);
        let n = self.place(&id)?;
        Some((n, self.looks[n].wake_source.filter(|_| by_wake)))
    }

    fn start(&mut self, n: usize, source: Option<WakeSource>, at: i64) {
        let is_refused = self.plan.refusal > 0.0 && self.random.random_bool(self.plan.refusal);
        let look = &mut self.looks[n];
        let (now, before) = (instant(at), look.seen.launched_at);
        let claim = claim(ClaimKind::Start, look, source);
        if is_refused {
            look.record.claim = Some(Claim { answer: Some(ClaimAnswer::Refused), ..claim });
            let fault = Fault::next(FaultKind::Start, look.record.fault.as_ref(), &look.seen.id, &no_capacity(), now);
            look.record.fault = Some(fault);
            self.retry = self.next_retry(at);
            self.tally.refused += 1;
            return self.want_tick(at);
        }
        debug_assert!(before < Some(now), "EC2 shows a newer LaunchTime at every start");
        look.record.claim = Some(claim);
        look.seen.state = NodeState::Running;
        look.seen.launched_at = Some(now);
        (look.seen.state_reason, look.seen.transition_at) = (None, None);
        look.readiness = Readiness::NotReady;
        look.used = Ok(Use { last_seen: None, last_possible: now, open_now: false });
        look.record.launch = Some(Launch { source, ..Launch::at(now) });
        self.due[n] = Some((at + self.plan.boot, Due::Ready));
        self.tally.starts += 1;
        self.note(at, "start", n);
        self.want_tick(at);
    }

    fn stop(&mut self, n: usize, at: i64) {
        let look = &mut self.looks[n];
        let launched = look.seen.launched_at.unwrap_or(look.now);
        let claim = claim(ClaimKind::Stop, look, look.wake_source);
        look.record.claim = Some(Claim { answer: Some(ClaimAnswer::Accepted), ..claim });
        look.seen.state = NodeState::Stopping;
        look.seen.transition_at = Some(instant(at));
        let code = "Client.UserInitiatedShutdown".to_owned();
        look.seen.state_reason = Some(StateReason { message: String::new(), code });
        look.readiness = Readiness::Unknown;
        self.due[n] = Some((at + self.plan.stop, Due::Stopped));
        self.tally.ran(seconds(launched), at);
        self.note(at, "stop", n);
    }

    fn note(&mut self, at: i64, what: &'static str, n: usize) {
        if let Some(effects) = &mut self.effects {
            effects.push((at, what, n));
        }
    }

    /// When the first node that had no capacity is tried again, after this instant.
    fn next_retry(&self, after: i64) -> Option<i64> {
        let faults = self.looks.iter().filter_map(|look| look.record.fault.as_ref());
        faults.map(|fault| seconds(fault.retry_at)).filter(|at| *at > after).min()
    }

    /// A tick at or after this instant is to be run.
    fn want_tick(&mut self, at: i64) {
        let tick = self.plan.policy.tick.num_seconds();
        let next = at.div_euclid(tick) * tick;
        let next = if next < at { next + tick } else { next };
        self.next_tick = Some(self.next_tick.map_or(next, |known| known.min(next)));
    }

    fn tick(&mut self, at: i64) {
        self.next_tick = None;
        self.set_now(at);
        self.keep_wanted();
        let mut decisions = std::mem::take(&mut self.decisions);
        decisions.clear();
        decisions.extend((0..self.looks.len()).map(|n| self.decide(n, at)));
        // The wakes are decided on the same look, before anything is done about it.
        let start = if self.all_run() { None } else { self.wanted(at) };
        for (n, decision) in decisions.iter().enumerate() {
            match decision.action {
                IdleAction::Mark => {
                    let look = &mut self.looks[n];
                    look.record.mark = Some(Mark { at: look.now, launched_at: look.seen.launched_at });
                }
                IdleAction::Stop => self.stop(n, at),
                // Nothing hangs here, and there is one type.
                IdleAction::Keep | IdleAction::ForceStop | IdleAction::PutBack => {}
            }
            self.next_tick_for(n, decision, at);
        }
        self.decisions = decisions;
        if let Some((n, source)) = start {
            self.start(n, source, at);
            self.start_what_is_wanted(at, &mut BTreeSet::from([n]));
        }
        // A window may open at any tick.
        if !self.plan.rules.warm.is_empty() {
            self.want_tick(at + 1);
        }
        self.next_tick = self.next_tick.map(|next| next.max(at + self.plan.policy.tick.num_seconds()));
    }

    fn decide(&self, n: usize, at: i64) -> IdleDecision {
        if self.plan.at_once { self.decide_at_once(n, at) } else { idle::decide(&self.looks[n], &self.plan.policy) }
    }

    /// Not a rule of the functions: a node without a live lease is stopped as soon as its pre-warm has expired.
    fn decide_at_once(&self, n: usize, at: i64) -> IdleDecision {
        let look = &self.looks[n];
        let keep = |reason, until| IdleDecision { action: IdleAction::Keep, reason, stops_not_before: until };
        if look.seen.state != NodeState::Running {
            return keep(Reason::Asleep, None);
        }
        if !look.record.leases.is_empty() {
            return keep(Reason::Leased, None);
        }
        if look.warm || look.reserve {
            return keep(Reason::Reserve, None);
        }
        let policy = &self.plan.policy;
        let by = |source| if source == Some(WakeSource::Prewarm) { policy.prewarm } else { policy.idle };
        let started = by(look.record.launch.as_ref().and_then(|launch| launch.source));
        let ready = look.record.ready.as_ref().filter(|ready| ready.launched_at == look.seen.launched_at);
        let speaks = [
            look.seen.launched_at.map(|launched| launched + started),
            ready.map(|ready| ready.at + started),
            look.wake.map(|wake| wake + by(look.wake_source)),
            look.record.leased.map(|leased| leased + policy.idle),
        ];
        match speaks.into_iter().flatten().max().filter(|until| *until > instant(at)) {
            Some(until) => keep(Reason::RecentWake, Some(until)),
            None => IdleDecision { action: IdleAction::Stop, reason: Reason::Idle, stops_not_before: None },
        }
    }

    /// As the idle check does: the nodes that a warm window or calls want are kept, those with calls first, those that are
    /// ready before those that boot, and the oldest first.
    fn keep_wanted(&mut self) {
        for look in &mut self.looks {
            (look.warm, look.reserve) = (false, false);
        }
        let has_calls = !self.waiting.is_empty() || self.looks.iter().any(|look| !look.record.leases.is_empty());
        if !has_calls && self.plan.rules.warm.is_empty() {
            return;
        }
        let (policy, rules) = (&self.plan.policy, &self.plan.rules);
        let Some(now) = self.looks.first().map(|look| look.now) else { return };
        let warm = wake::warm_wish(rules, &self.pool, policy, now).map_or(0, |wish| wish.nodes as usize);
        let all: Vec<&Look> = self.looks.iter().collect();
        let by_calls = wake::nodes_for_calls(&all, &self.pool, policy, rules, now);
        let is_up = |look: &Look| matches!(look.phase(), Phase::Ready | Phase::Starting) && !look.is_of_no_use(policy);
        let mut up: Vec<usize> = (0..self.looks.len()).filter(|n| is_up(&self.looks[*n])).collect();
        up.sort_by_key(|n| {
            let look = &self.looks[*n];
            (Reverse(look.record.calls(now)), look.phase() != Phase::Ready, look.seen.launched_at, look.seen.id.clone())
        });
        for (place, n) in up.into_iter().enumerate() {
            (self.looks[n].warm, self.looks[n].reserve) = (place < warm, place < by_calls);
        }
    }

    /// The next tick at which the decision about a node can be another one, if nothing happens before.
    fn next_tick_for(&mut self, n: usize, decision: &IdleDecision, at: i64) {
        let look = &self.looks[n];
        let tick = self.plan.policy.tick;
        let far = tick + BETWEEN_READINGS;
        let reason = decision.reason;
        // The end of a call, a start or a stop is an event.
        if matches!(reason, Reason::Asleep | Reason::GoingDown | Reason::Idle | Reason::Leased) {
            return;
        }
        let next = at + 1;
        if reason == Reason::BootGrace {
            let over = look.seen.launched_at.unwrap_or(look.now) + self.plan.policy.grace;
            return self.want_tick(seconds(over).max(next));
        }
        if self.plan.at_once {
            return self.want_tick(decision.stops_not_before.map_or(next, |until| seconds(until).max(next)));
        }
        // Beyond the reach of a mark it is the end of what speaks for the node, and the first reading may be made one tick
        // before.
        match decision.stops_not_before.filter(|until| *until - look.now > far) {
            Some(until) => self.want_tick(seconds(until - tick)),
            None => self.want_tick(next),
        }
    }
}

fn claim(kind: ClaimKind, look: &Look, source: Option<WakeSource>) -> Claim {
    Claim {
        kind,
        run: RunId(String::new()),
        at: look.now,
        launched_at: look.seen.launched_at,
        open_until: look.now + TIME_OUT,
        wake: look.wake,
        source,
        path: None,
        tries: 1,
        answer: None,
    }
}

fn no_capacity() -> CallError {
    CallError {
        act: String::new(),
        code: "InsufficientInstanceCapacity".to_owned(),
        message: String::new(),
        class: ErrorClass::Capacity,
        effect: TookEffect::No,
    }
}
