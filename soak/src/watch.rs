//! The observer: a notebook of what truly happened, and the promises held against it. It is written from the promises, not
//! from the rules of the code.
//!
//! What loosens a promise, and nothing else does:
//!
//! * *Trouble.* A tick that was lost, or in which a fault struck, that died or failed. The first in a row of idleness is
//!   what "whichever call failed on the way" speaks of; each further one gives P2 one more tick, three at most: after that
//!   somebody has to be told.
//! * *Told.* Once a person was told that a node cannot be stopped, judged or made ready, P2's clock starts again when the
//!   reason is gone from the ledger, or twenty minutes later.
//! * *Dark.* Where nothing can be told of a node's use, the telling is due at the third tick at which that matters, and the
//!   first is up to five minutes after the idle time: P2 has one more tick.
//!   Where messages do not get out the function fails visibly, and P2 waits until they do. A matter is told once a day.
//! * *Fair ticks.* Where a wake meets a node that is going down, or a claim whose call may be in flight or not visible yet,
//!   P1's one run is the first tick without trouble after that.
//! * *Visible.* Use counts from the moment on at which its metric shows it; a node started by hand for another, from five
//!   minutes after, since a describe may be as old.
//! * *Clocks.* A minute is left to clocks that differ, to the schedule's jitter and to calls that wait for their answers.
//! * *The dead leave no line.* A run that was killed has its claim in the ledger, and no decided line.

use crate::day::Day;
use crate::faults::Kind;
use crate::setup::{PoolSetup, ReadyBy, Setup};
use crate::stage::{Accepted, Act, Ask, Change, Ended, Happened, RunKey, Stage, Strike};
use chrono::TimeDelta;
use reveille::config::Config;
use reveille::domain::{
    Beat, ClaimAnswer, ClaimKind, FaultKind, Instant, NodeId, NodeRecord, NodeSeen, NodeState, PoolName, PoolRecord,
    WakeSource, merged, wanted,
};
use reveille::policy::{FRESH_BEAT, LONGEST_GAP, Policy, PoolRules, UNSETTLED};
use reveille::run::{Alert, AlertKind};
use std::collections::{BTreeMap, BTreeSet};

/// For clocks that differ, jitter and waiting calls.
const SLACK: TimeDelta = TimeDelta::minutes(1);
/// From the last counted use to the accepted STOP.
const STOPPED_WITHIN: TimeDelta = TimeDelta::minutes(40);
/// From the last counted use to `stopped`.
const DOWN_WITHIN: TimeDelta = TimeDelta::minutes(50);
const TICK: TimeDelta = TimeDelta::minutes(5);
/// A describe may be so old.
const STALE: TimeDelta = TimeDelta::minutes(4);

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When it showed.
    pub at: Instant,
    /// Which.
    pub promise: &'static str,
    /// What was seen.
    pub what: String,
}

/// The points of one metric: value, and when they became visible.
type Points = BTreeMap<Instant, (f64, Instant)>;

/// What truly is of one node.
#[derive(Debug, Default)]
struct Book {
    pool: Option<PoolName>,
    state: Option<NodeState>,
    since: Option<Instant>,
    launched: Option<Instant>,
    /// Each launch, and when it was asked to end.
    launches: Vec<(Instant, Option<Instant>)>,
    first_ready: Option<Instant>,
    last_ready: Option<Instant>,
    requests: Points,
    open: Points,
    healthy: Points,
    lines: Points,
    beat: Option<(Beat, Instant)>,
    hand_started: Option<Instant>,
    hand_stopped: Option<Instant>,
    /// A STOP of ours was accepted in this launch.
    our_stop: Option<Instant>,
    /// Until when P2's clock stands.
    excused: Option<Instant>,
    /// The first of the ticks in a row at which nothing could be told of its use.
    dark_since: Option<Instant>,
    dark_ticks: u32,
    /// Those at which it may not have been possible.
    dim_ticks: u32,
    /// Its stop began when nothing had spoken for it since this instant.
    idle_since: Option<Instant>,
}

#[derive(Debug)]
struct Told {
    at: Instant,
    key: String,
    kind: AlertKind,
    pool: Option<PoolName>,
    node: Option<NodeId>,
}

/// A recorded wake that no node has met yet.
#[derive(Debug, Clone)]
struct Wish {
    at: Instant,
    pool: PoolName,
    node: Option<NodeId>,
    /// Nothing stands in its way: it is met by the end of its run.
    plain_until: Option<Instant>,
}

/// What was true when a run stopped a node.
#[derive(Debug)]
struct Stopping {
    did: Accepted,
    last_use: Option<Instant>,
    last_open: Option<Instant>,
    proved_from: Option<Instant>,
    last_lease: Option<Instant>,
    last_wake: Option<(Instant, WakeSource)>,
    launched: Option<Instant>,
}

#[derive(Debug, Default)]
struct RunBook {
    began: Option<Instant>,
    plain: BTreeSet<PoolName>,
    fair: BTreeSet<PoolName>,
    stopped: Vec<Stopping>,
    started: Vec<NodeId>,
}

/// The observer.
#[derive(Debug)]
pub struct Watch {
    /// What was broken first.
    pub violation: Option<Violation>,
    setup: Setup,
    policy: Policy,
    rules: BTreeMap<PoolName, PoolRules>,
    books: BTreeMap<NodeId, Book>,
    told: Vec<Told>,
    keys: BTreeMap<String, RunKey>,
    /// Runs whose messages may go out twice.
    unsure: BTreeSet<RunKey>,
    wishes: Vec<Wish>,
    runs: BTreeMap<RunKey, RunBook>,
    trouble: Vec<Instant>,
    /// How many calls there were of each pool.
    calls: Vec<(Instant, PoolName, usize)>,
    /// When a message last did not get out.
    mute_at: Option<Instant>,
}

impl Watch {
    /// An observer of this day.
    pub fn new(day: &Day) -> Self {
        let config: Option<Config> = day.setup.config().ok();
        let policy = config.as_ref().map(|config| config.policy.clone()).unwrap_or_default();
        let pools = config.map(|config| config.pool_policies()).unwrap_or_default();
        Self {
            violation: None,
            setup: day.setup.clone(),
            policy,
            rules: pools.into_iter().map(|(name, pool)| (name, pool.rules)).collect(),
            books: BTreeMap::new(),
            told: Vec::new(),
            keys: BTreeMap::new(),
            unsure: BTreeSet::new(),
            wishes: Vec::new(),
            runs: BTreeMap::new(),
            trouble: Vec::new(),
            calls: Vec::new(),
            mute_at: None,
        }
    }

    fn broken(&mut self, at: Instant, promise: &'static str, what: String) {
        self.violation.get_or_insert(Violation { at, promise, what });
    }

    fn pool_setup(&self, pool: &PoolName) -> Option<&PoolSetup> {
        self.setup.pools.iter().find(|known| known.name == pool.as_str())
    }

    fn nodes_of(&self, pool: &PoolName) -> impl Iterator<Item = (&NodeId, &Book)> {
        self.books.iter().filter(move |(_, book)| book.pool.as_ref() == Some(pool))
    }

    // What is seen.

    /// A function is about to be called.
    pub fn began(&mut self, stage: &mut impl Stage, run: &RunKey, ask: &Ask) {
        let now = stage.now();
        let mut book = RunBook { began: Some(now), ..RunBook::default() };
        for pool in self.rules.keys() {
            let record = stage.record(pool);
            if self.is_settled(pool, &record, now) {
                book.fair.insert(pool.clone());
                let waits = record.nodes.values().any(|node| {
                    node.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Start && now < fault.retry_at)
                });
                let asleep = self.nodes_of(pool).all(|(_, book)| book.state == Some(NodeState::Stopped));
                if !waits && asleep && !matches!(ask, Ask::Idle) {
                    book.plain.insert(pool.clone());
                }
            }
        }
        self.runs.insert(run.clone(), book);
    }

    /// Nothing of this pool is on its way down, and no claim waits for its evidence.
    fn is_settled(&self, pool: &PoolName, record: &PoolRecord, now: Instant) -> bool {
        let moving = self.nodes_of(pool).any(|(_, book)| book.state == Some(NodeState::Stopping));
        let in_doubt = record
            .nodes
            .values()
            .filter_map(|node| node.claim.as_ref())
            .any(|claim| claim.answer.is_none() && now - claim.at < TICK + SLACK);
        !moving && !in_doubt
    }

    /// A node changed its state.
    pub fn moved(&mut self, now: Instant, seen: &NodeSeen) {
        let book = self.books.entry(seen.id.clone()).or_default();
        book.pool = Some(seen.pool.clone());
        let was = book.state.replace(seen.state);
        book.since = Some(now);
        if book.launched != seen.launched_at {
            (book.first_ready, book.last_ready, book.our_stop, book.dark_since) = (None, None, None, None);
            book.dark_ticks = 0;
            (book.excused, book.idle_since) = (None, None);
            if was.is_some() {
                book.launches.extend(seen.launched_at.map(|at| (at, None)));
            }
        }
        book.launched = seen.launched_at;
        let ended = [NodeState::Stopping, NodeState::Stopped].contains(&seen.state);
        if let Some((_, end)) = book.launches.last_mut().filter(|(_, end)| ended && end.is_none()) {
            *end = Some(seen.transition_at.unwrap_or(now));
        }
        if was == Some(NodeState::Pending) && seen.state == NodeState::Stopped && book.hand_started.is_none() {
            let wish = Wish { at: now, pool: seen.pool.clone(), node: None, plain_until: None };
            self.wishes.push(wish);
        }
        if was == Some(NodeState::Stopped) && seen.state == NodeState::Pending {
            book.hand_stopped = None;
        }
    }

    /// Whether a node is ready, each minute.
    pub fn ready(&mut self, node: &NodeId, ready: bool, now: Instant) {
        let Some(book) = self.books.get_mut(node).filter(|_| ready) else { return };
        book.first_ready.get_or_insert(now);
        book.last_ready = Some(now);
    }

    /// A tick did not come.
    pub fn tick_lost(&mut self, now: Instant) {
        self.trouble.push(now);
    }

    /// Something changes.
    pub fn changed(&mut self, stage: &mut impl Stage, change: &Change) {
        let now = stage.now();
        match change {
            Change::Start(node) => {
                let book = self.books.entry(node.clone()).or_default();
                book.hand_started = Some(now);
            }
            Change::Stop(node) => self.stopped_by_hand(node, now),
            Change::Point(metric, at, value) => {
                self.point(metric.metric.as_str(), metric.dimensions.get("Node"), *at, *value, now)
            }
            Change::Beat(node, beat) => {
                self.books.entry(node.clone()).or_default().beat = Some((beat.clone(), now));
            }
            Change::Log(group, at, _) => self.line(group, *at, now),
            Change::ClockOff(_)
            | Change::Outage(..)
            | Change::Hold(..)
            | Change::Gate(..)
            | Change::NoCapacity(..)
            | Change::NoCapacityType(..)
            | Change::RefuseStop(..)
            | Change::Hang(_)
            | Change::FallBack(..)
            | Change::BudgetGone
            | Change::NoticesGone
            | Change::Amount(_)
            | Change::Slow(_) => {}
        }
    }

    /// Whoever stops a node takes back the wakes before.
    fn stopped_by_hand(&mut self, node: &NodeId, now: Instant) {
        let Some(book) = self.books.get_mut(node) else { return };
        book.hand_stopped = Some(now);
        let pool = book.pool.clone();
        self.wishes.retain(|wish| Some(&wish.pool) != pool.as_ref());
    }

    fn point(&mut self, name: &str, node: Option<&String>, at: Instant, value: f64, now: Instant) {
        let Some(node) = node.and_then(|id| NodeId::new(id.clone()).ok()) else { return };
        let book = self.books.entry(node).or_default();
        let points = match name {
            "Requests" => &mut book.requests,
            "Open" => &mut book.open,
            _ => &mut book.healthy,
        };
        points.insert(at, (value, now));
    }

    /// A line of a pool's log is use of each of its nodes.
    fn line(&mut self, group: &str, at: Instant, now: Instant) {
        let pools = self.setup.pools.iter().filter(|pool| pool.log_group() == group);
        let nodes: Vec<NodeId> =
            pools.flat_map(|pool| &pool.nodes).filter_map(|id| NodeId::new(id.clone()).ok()).collect();
        let minute = at - TimeDelta::seconds(at.timestamp().rem_euclid(60));
        for node in nodes {
            self.books.entry(node).or_default().lines.insert(minute, (1.0, now));
        }
    }

    /// Something happened in the functions.
    pub fn happened(&mut self, stage: &mut impl Stage, happened: &Happened) {
        match happened {
            Happened::Accepted(did) if did.act == Act::Start => self.started(stage, did),
            Happened::Accepted(did) => self.stopped(stage, did),
            Happened::Told(run, alert) => self.told(stage.now(), run, alert),
            Happened::Struck(run, strike) => self.struck(stage.now(), run, strike),
            Happened::Ended(ended) => self.ended(stage, ended),
        }
        self.drop_met(stage);
    }

    fn struck(&mut self, now: Instant, run: &RunKey, strike: &Strike) {
        if strike.call == "publish" {
            self.mute_at = Some(now);
        }
        if ["claim_alert", "publish", "mark_published"].contains(&strike.call.as_str()) || strike.kind == Kind::Killed {
            self.unsure.insert(run.clone());
        }
    }

    /// No message goes out twice, unless its run died, or lost an answer, on the way.
    fn told(&mut self, now: Instant, run: &RunKey, alert: &Alert) {
        if let Some(before) = self.keys.insert(alert.key.0.clone(), run.clone()) {
            let excused = [&before, run].iter().any(|run| self.unsure.contains(run));
            if !excused {
                let what = format!("{:?} was sent by {} and again by {}", alert.key.0, before.0, run.0);
                self.broken(now, "no message twice", what);
            }
        }
        let (kind, pool, node) = (alert.kind, alert.pool.clone(), alert.node.clone());
        self.told.push(Told { at: now, key: alert.key.0.clone(), kind, pool, node });
    }

    fn was_told(&self, since: Instant, kinds: &[AlertKind], pool: &PoolName, node: Option<&NodeId>) -> Option<Instant> {
        let about = |told: &&Told| {
            let pool_fits = told.pool.as_ref().is_none_or(|of| of == pool);
            let node_fits = told.node.is_none() || node.is_none() || told.node.as_ref() == node;
            told.at >= since && kinds.contains(&told.kind) && pool_fits && node_fits
        };
        self.told.iter().rev().find(about).map(|told| told.at)
    }

    // P5, and what the ends of runs say.

    fn ended(&mut self, stage: &mut impl Stage, ended: &Ended) {
        let now = stage.now();
        let Some(run) = self.runs.remove(&ended.run) else { return };
        let slow = now - ended.began > TimeDelta::seconds(20);
        let calm = ended.struck.is_empty() && !ended.died && !ended.failed && !slow;
        if ended.died {
            self.unsure.insert(ended.run.clone());
        }
        if ended.ask == Ask::Idle && !calm {
            self.trouble.push(now);
        }
        if ended.replays == Some(false) {
            self.broken(now, "P5: deciding again gives the same", format!("{} does not replay", ended.run.0));
        }
        self.check_lines(now, ended, &run);
        for stopping in &run.stopped {
            self.check_stop(now, ended, stopping);
        }
        self.note_calls(stage);
        self.note_wishes(stage, ended, &run, calm);
        self.check_reply(stage, ended, &run);
        if ended.ask == Ask::Idle && calm {
            self.check_wishes(stage, ended, &run);
            self.check_sight(stage, ended);
        }
    }

    /// P5: what was done stands in a decided line with its reason.
    fn check_lines(&mut self, now: Instant, ended: &Ended, run: &RunBook) {
        if ended.died {
            return;
        }
        let has = |node: &NodeId, words: &[&str]| {
            ended.decided.iter().any(|line| line.node.as_ref() == Some(node) && words.contains(&line.action.as_str()))
        };
        for node in &run.started {
            if !has(node, &["start", "change_type_and_start", "nothing"]) {
                self.broken(
                    now,
                    "P5: every START has its line",
                    format!("{} started {node} without a line", ended.run.0),
                );
            }
        }
        for stopping in &run.stopped {
            if !has(&stopping.did.node, &["stop", "force_stop"]) {
                let what = format!("{} stopped {} without a line", ended.run.0, stopping.did.node);
                self.broken(now, "P5: every STOP has its line", what);
            }
        }
    }

    // P3 and P4.

    fn stopped(&mut self, stage: &mut impl Stage, did: &Accepted) {
        let now = stage.now();
        let Some(pool) = self.books.get(&did.node).and_then(|book| book.pool.clone()) else { return };
        let record = stage.record(&pool);
        let known = record.node(&did.node);
        if did.act == Act::Stop {
            let live = known.live_leases(now + SLACK).next().map(|(id, _)| id.to_string());
            if let Some(id) = live {
                self.broken(
                    now,
                    "P3: no call is cut",
                    format!("{} stopped {} with the live lease {id}", did.run.0, did.node),
                );
            }
        }
        let setup = self.pool_setup(&pool).cloned();
        let Some(book) = self.books.get_mut(&did.node) else { return };
        if did.act == Act::Force {
            return;
        }
        book.our_stop = Some(now);
        let read_at = did.read_at.unwrap_or(now);
        let stopping = Stopping {
            did: did.clone(),
            last_use: book.last_use(setup.as_ref(), read_at, false),
            last_open: book.last_use(setup.as_ref(), read_at, true),
            proved_from: book.proved_from(setup.as_ref(), read_at, did.clock),
            last_lease: known.last_leased(did.clock),
            last_wake: record.last_wake(&did.node).map(|wake| (wake.at, wake.source)),
            launched: book.launched,
        };
        if let Some(run) = self.runs.get_mut(&did.run) {
            run.stopped.push(stopping);
        }
    }

    fn check_stop(&mut self, now: Instant, ended: &Ended, stopping: &Stopping) {
        let (node, clock) = (&stopping.did.node, stopping.did.clock);
        let unread = stopping.did.struck.iter().any(|strike| {
            self.is_use_of(node, &strike.call) && [Kind::Refused, Kind::Hangs, Kind::Partial].contains(&strike.kind)
        });
        if stopping.proved_from.is_none() || unread {
            let what = format!("{} stopped {node} though its use could not be known", ended.run.0);
            self.broken(now, "P4: unknown never stops a node", what);
        }
        if stopping.last_open.is_some_and(|at| clock - at < UNSETTLED) {
            let what = format!("{} stopped {node} with an open call in sight", ended.run.0);
            self.broken(now, "P3: no call is cut", what);
        }
        let line = ended.decided.iter().find(|line| line.node.as_ref() == Some(node));
        let reason = line.map(|line| line.reason.clone()).unwrap_or_default();
        if !["idle", "stop_had_no_effect"].contains(&reason.as_str()) {
            return;
        }
        let early =
            |at: Option<Instant>, stays: TimeDelta| at.is_some_and(|at| clock - at < stays - TimeDelta::seconds(1));
        // A wake that comes while the STOP is on its way is met by a START after it.
        let wake = stopping.last_wake.filter(|(at, _)| *at <= clock - SLACK);
        let wake_stays = wake.map_or(self.policy.idle, |(_, source)| self.stays(source));
        let proved = stopping
            .proved_from
            .is_some_and(|from| Some(from) > stopping.launched && clock - from < self.policy.idle - SLACK);
        let spoke = [
            (early(stopping.last_use, self.policy.idle), "counted use"),
            (early(stopping.last_lease, self.policy.idle), "a lease"),
            (early(wake.map(|(at, _)| at), wake_stays), "a wake"),
            (proved, "unproved silence"),
        ];
        for (_, what) in spoke.into_iter().filter(|(early, _)| *early) {
            let what = format!("{} stopped {node} ({reason}) with {what} within the idle time", ended.run.0);
            self.broken(now, "P3: what is used is kept", what);
        }
    }

    /// Whether the use of this node is read by such a call.
    fn is_use_of(&self, node: &NodeId, call: &str) -> bool {
        let pool = self.books.get(node).and_then(|book| book.pool.as_ref()).and_then(|pool| self.pool_setup(pool));
        pool.is_some_and(|pool| match call {
            "activity" => pool.requests || pool.gauge,
            "logs" => pool.logs,
            // In part: it may be another node's beat that is missing.
            "beats" => pool.beat && self.books.len() == 1,
            _ => false,
        })
    }

    fn stays(&self, source: WakeSource) -> TimeDelta {
        if source == WakeSource::Prewarm { self.policy.prewarm } else { self.policy.idle }
    }

    // P1.

    fn started(&mut self, stage: &mut impl Stage, did: &Accepted) {
        let now = stage.now();
        let Some(pool) = self.books.get(&did.node).and_then(|book| book.pool.clone()) else { return };
        let record = stage.record(&pool);
        if let Some(run) = self.runs.get_mut(&did.run) {
            run.started.push(did.node.clone());
        }
        if let Some(book) = self.books.get_mut(&did.node) {
            book.hand_started = None;
        }
        let named = record.node(&did.node).wake.is_some_and(|wake| now - wake.at < self.policy.wish + SLACK);
        let up = self.supply(&pool, &record, &did.node, now);
        let most = self.most_wanted(&pool, &record, now);
        if !named && up >= most {
            let what = format!("{} started {}: {most} wanted, {up} up before", did.run.0, did.node);
            self.broken(now, "never more started than wanted", what);
        }
    }

    /// The other nodes that are up and of use.
    fn supply(&self, pool: &PoolName, record: &PoolRecord, but: &NodeId, now: Instant) -> usize {
        // One whose beats do not come says nothing of being ready.
        let by_beat = self.pool_setup(pool).is_some_and(|pool| pool.ready == ReadyBy::Beat);
        let is_up = |(id, book): &(&NodeId, &Book)| {
            let up = [Some(NodeState::Pending), Some(NodeState::Running)].contains(&book.state);
            let claimed = is_going(&record.node(id), book.launched);
            let unseen = book.hand_started.is_some_and(|at| now - at < TICK);
            let late = self.policy.ready_within - SLACK;
            let ready = if by_beat {
                book.beat.as_ref().map(|(beat, _)| beat.at).min(book.last_ready)
            } else {
                book.last_ready
            };
            let no_use = ready.or(book.launched).is_some_and(|at| now - at >= late);
            up && !claimed && !unseen && !no_use && *id != but
        };
        self.nodes_of(pool).filter(is_up).count()
    }

    /// The most nodes that may have been wanted in the last minutes.
    fn most_wanted(&self, pool: &PoolName, record: &PoolRecord, now: Instant) -> usize {
        let Some(rules) = self.rules.get(pool) else { return 0 };
        let woken = [record.wake.as_ref(), record.line_wake.as_ref()].into_iter().flatten();
        let by_wake = usize::from(woken.clone().any(|wake| now - wake.at < self.policy.wish + SLACK));
        let recent = self.calls.iter().filter(|(at, of, _)| of == pool && now - *at < TimeDelta::minutes(3));
        let calls = recent.map(|(_, _, calls)| *calls).max().unwrap_or_default().max(calls_of(record, now));
        let by_window = wanted(&rules.warm, now, TimeDelta::minutes(20)).map_or(0, |wish| wish.nodes as usize);
        by_wake.max(rules.nodes_for(calls)).max(by_window)
    }

    fn note_calls(&mut self, stage: &mut impl Stage) {
        let now = stage.now();
        for pool in self.rules.keys() {
            self.calls.push((now, pool.clone(), calls_of(&stage.record(pool), now)));
        }
        self.calls.retain(|(at, ..)| now - *at < TICK);
    }

    fn note_wishes(&mut self, stage: &mut impl Stage, ended: &Ended, run: &RunBook, calm: bool) {
        let now = stage.now();
        for (pool, node) in &ended.demanded {
            let plain = calm && run.plain.contains(pool) && node.is_none();
            let plain_until = plain.then_some(now + TimeDelta::seconds(20));
            self.wishes.push(Wish { at: ended.began, pool: pool.clone(), node: node.clone(), plain_until });
        }
    }

    fn drop_met(&mut self, stage: &mut impl Stage) {
        let now = stage.now();
        let mut wishes = std::mem::take(&mut self.wishes);
        wishes.retain(|wish| {
            let record = stage.record(&wish.pool);
            let up = self.nodes_of(&wish.pool).any(|(id, book)| {
                let meant = wish.node.as_ref().is_none_or(|node| node == id);
                let up = [Some(NodeState::Pending), Some(NodeState::Running)].contains(&book.state);
                meant && up && !is_going(&record.node(id), book.launched)
            });
            let closed = record.closed_gate(now).is_some();
            let over = now - wish.at >= self.policy.wish;
            !up && !closed && !over
        });
        self.wishes = wishes;
        let late = self.wishes.iter().find(|wish| wish.plain_until.is_some_and(|until| now > until)).cloned();
        if let Some(wish) = late.filter(|wish| self.excuse_of(stage, wish).is_none()) {
            let what =
                format!("the wake of {} for {} is not met and nobody was told", wish.at.format("%H:%M:%S"), wish.pool);
            self.broken(now, "P1: a wanted node is starting", what);
        }
    }

    /// A person was told why a wish is not met, since then or, of the same cause, on the same day.
    fn excuse_of(&self, stage: &mut impl Stage, wish: &Wish) -> Option<Instant> {
        let now = stage.now();
        let record = stage.record(&wish.pool);
        let kinds = [
            AlertKind::StartFailed,
            AlertKind::NotReady,
            AlertKind::Misconfigured,
            AlertKind::ControllerFault,
            AlertKind::Budget,
        ];
        let faults = record.nodes.iter().filter_map(|(id, node)| Some((id, node.fault.as_ref()?)));
        let of_day = faults.filter(|(_, fault)| fault.kind == FaultKind::Start).filter_map(|(id, fault)| {
            let same = |told: &&Told| {
                let cause = told.key.contains(&format!("#{}#", fault.code)) || told.kind == AlertKind::NotReady;
                told.node.as_ref() == Some(id) && cause && now - told.at < TimeDelta::hours(25)
            };
            self.told.iter().rev().find(same).map(|told| told.at)
        });
        of_day.max().or_else(|| self.was_told(wish.at - SLACK, &kinds, &wish.pool, None))
    }

    /// After a tick without trouble and with nothing in its way no wish is left that nobody was told of.
    fn check_wishes(&mut self, stage: &mut impl Stage, ended: &Ended, run: &RunBook) {
        let now = stage.now();
        let unmet: Vec<Wish> = self
            .wishes
            .iter()
            .filter(|wish| wish.at < ended.began - SLACK && run.fair.contains(&wish.pool))
            .cloned()
            .collect();
        for wish in unmet {
            let record = stage.record(&wish.pool);
            if !self.is_settled(&wish.pool, &record, now) || self.excuse_of(stage, &wish).is_some() {
                continue;
            }
            // A wake of log lines that were too often for nothing is not heeded, and a spent one is spent.
            let heeded = record.newest_wake().is_some_and(|wake| wake.at >= wish.at - SLACK) || wish.node.is_some();
            let judged =
                record.nodes.values().filter_map(|node| node.claim.as_ref()).any(|claim| {
                    claim.kind == ClaimKind::Stop && claim.wake.is_some_and(|seen| seen >= wish.at - SLACK)
                });
            if heeded && !judged {
                let what = format!(
                    "the wake of {} for {} is not met after the tick {}",
                    wish.at.format("%H:%M:%S"),
                    wish.pool,
                    ended.run.0
                );
                self.broken(now, "P1: a wanted node is starting", what);
            }
        }
    }

    /// A caller is told what is true.
    fn check_reply(&mut self, stage: &mut impl Stage, ended: &Ended, run: &RunBook) {
        let (now, Some(reply)) = (stage.now(), &ended.reply) else { return };
        let began = run.began.unwrap_or(now);
        let is_stale = ended.struck.iter().any(|strike| strike.kind == Kind::Stale);
        let old = if is_stale { STALE } else { TimeDelta::seconds(2) };
        let Some(book) = reply.node.as_ref().and_then(|node| self.books.get(node)) else { return };
        if reply.status != 200 {
            return;
        }
        let down = book.state != Some(NodeState::Running) && book.since.is_some_and(|since| since < began - old);
        let ours = book.our_stop.is_some_and(|at| at < began - TimeDelta::seconds(2));
        let renews = matches!(ended.ask, Ask::Renew(..)) || reply.state == "leased";
        let unready = !renews && book.last_ready.is_none_or(|at| at < began - TimeDelta::minutes(6));
        let faults = [(down, "is down"), (ours, "was stopped by us"), (unready, "is not ready")];
        for (_, what) in faults.into_iter().filter(|(wrong, _)| *wrong) {
            let node = reply.node.as_ref().map(ToString::to_string).unwrap_or_default();
            let what = format!("{} was told {} of {node}, which {what}", ended.run.0, reply.state);
            self.broken(now, "a ready answer is true", what);
        }
    }

    // P4: unknown for too long is told; and only what is unknown is called so.

    fn check_sight(&mut self, stage: &mut impl Stage, ended: &Ended) {
        let now = stage.now();
        for pool in self.rules.keys().cloned().collect::<Vec<_>>() {
            let (record, setup) = (stage.record(&pool), self.pool_setup(&pool).cloned());
            for id in self.nodes_of(&pool).map(|(id, _)| id.clone()).collect::<Vec<_>>() {
                self.check_sight_of(now, ended, &pool, &id, &record, setup.as_ref());
            }
        }
    }

    fn check_sight_of(
        &mut self,
        now: Instant,
        ended: &Ended,
        pool: &PoolName,
        id: &NodeId,
        record: &PoolRecord,
        setup: Option<&PoolSetup>,
    ) {
        let reason = ended.decided.iter().find(|line| line.node.as_ref() == Some(id)).map(|line| line.reason.clone());
        let Some(book) = self.books.get_mut(id) else { return };
        let up_for = book.launched.map_or(TimeDelta::zero(), |at| now - at);
        let judged = book.state == Some(NodeState::Running) && up_for > self.policy.grace + SLACK;
        let known = record.node(id);
        let kept = known.calls(now) > 0 || known.hold.is_some() || book.our_stop.is_some();
        let proved = book.proof(setup, ended.began, ended.clock, -SLACK);
        let surely_dark = book.is_surely_dark(setup, ended.began, ended.clock);
        if judged && !kept && surely_dark {
            book.dark_since.get_or_insert(now);
            book.dark_ticks += 1;
        } else {
            (book.dark_since, book.dark_ticks) = (None, 0);
        }
        let maybe_dark = book.proof(setup, ended.began, ended.clock, TimeDelta::zero()) != book.launched;
        book.dim_ticks = if judged && maybe_dark { book.dim_ticks + 1 } else { 0 };
        let (since, ticks) = (book.dark_since, book.dark_ticks);
        let last = book.last_use(setup, ended.began, false);
        let kinds = [AlertKind::Blind, AlertKind::ControllerFault];
        if let Some(since) = since.filter(|_| ticks >= 4)
            && last.is_none_or(|at| at < since - self.policy.idle)
            && self.was_told(since - TICK * 3, &kinds, pool, Some(id)).is_none()
            && !self.is_warm(pool, now)
        {
            let what = format!("nobody was told that {id} cannot be judged since {}", since.format("%H:%M:%S"));
            self.broken(now, "P4: unknown for too long is told", what);
        }
        let clear = proved.is_some_and(|from| Some(from) == self.books.get(id).and_then(|book| book.launched));
        if clear && reason.as_deref() == Some("signals_unknown") {
            let what = format!("{} calls the use of {id} unknown, and every minute of it is known", ended.run.0);
            self.broken(now, "what is known is not called unknown", what);
        }
    }

    fn is_warm(&self, pool: &PoolName, now: Instant) -> bool {
        self.rules.get(pool).is_some_and(|rules| wanted(&rules.warm, now, TimeDelta::minutes(20)).is_some())
    }

    // P2.

    /// Once a minute.
    pub fn minute(&mut self, stage: &mut impl Stage) {
        let now = stage.now();
        self.drop_met(stage);
        for pool in self.rules.keys().cloned().collect::<Vec<_>>() {
            let record = stage.record(&pool);
            for id in self.nodes_of(&pool).map(|(id, _)| id.clone()).collect::<Vec<_>>() {
                self.check_idle(now, &pool, &id, &record);
                self.check_boot(now, &pool, &id);
            }
        }
    }

    fn troubles(&self, from: Instant, to: Instant) -> i32 {
        let many = self.trouble.iter().filter(|at| **at > from && **at <= to).count();
        i32::try_from(many).unwrap_or(i32::MAX)
    }

    fn check_idle(&mut self, now: Instant, pool: &PoolName, id: &NodeId, record: &PoolRecord) {
        let speaks = self.speaks_until(now, pool, id, record);
        let Some(book) = self.books.get_mut(id) else { return };
        let within = match book.state {
            Some(NodeState::Running) => {
                book.idle_since = book.idle_since.max(speaks);
                STOPPED_WITHIN
            }
            Some(NodeState::Stopping) => DOWN_WITHIN,
            Some(NodeState::Pending | NodeState::Stopped | NodeState::Gone) | None => return,
        };
        // A person may have stopped it long before it was idle.
        let begun = book.since.filter(|_| within == DOWN_WITHIN).map(|since| since - STOPPED_WITHIN);
        let mute = self.mute_at.is_some_and(|at| now - at < TICK * 2 + SLACK);
        let base = book.idle_since.max(begun);
        let Some(anchor) = base.max(book.excused) else { return };
        let dim = i32::from(book.dim_ticks > 0);
        let more = TICK * ((self.troubles(anchor, now) - 1).clamp(0, 3) + dim);
        if mute || now <= anchor + within + more + SLACK {
            return;
        }
        let kinds = [AlertKind::CannotStop, AlertKind::Blind, AlertKind::NotReady, AlertKind::ControllerFault];
        let told = base.and_then(|base| self.was_told(base, &kinds, pool, Some(id)));
        let told = told.or_else(|| self.told_before(now, pool, id, &record.node(id)));
        let until = told.map(|told| excused_until(now, told, &record.node(id)));
        let Some(book) = self.books.get_mut(id) else { return };
        if until > Some(anchor) {
            book.excused = until;
            return;
        }
        let (state, idle) = (book.state, (now - anchor).num_minutes());
        let what = format!("{id} is {state:?}, {idle} minutes after the last that spoke for it, and nobody was told");
        self.broken(now, "P2: an idle node is stopped", what);
    }

    /// A trouble that stands, and of which a person was told before the node was last used: it is told once a day, or by the
    /// schedule of what is unknown.
    fn told_before(&self, now: Instant, pool: &PoolName, id: &NodeId, known: &NodeRecord) -> Option<Instant> {
        let refused = known.fault.as_ref().filter(|fault| fault.kind == FaultKind::Stop);
        let of_day =
            refused.and_then(|_| self.was_told(now - TimeDelta::hours(25), &[AlertKind::CannotStop], pool, Some(id)));
        let of_row =
            known.blind.as_ref().and_then(|blind| self.was_told(blind.since, &[AlertKind::Blind], pool, Some(id)));
        of_day.or(of_row)
    }

    /// The newest instant that speaks for a node.
    fn speaks_until(&self, now: Instant, pool: &PoolName, id: &NodeId, record: &PoolRecord) -> Option<Instant> {
        let book = self.books.get(id)?;
        let known = record.node(id);
        let ready = known.ready.as_ref().filter(|ready| ready.launched_at == book.launched).map(|ready| ready.at);
        let held = known.hold.as_ref().map(|hold| hold.until.min(now));
        let up = self
            .nodes_of(pool)
            .filter(|(_, book)| [Some(NodeState::Pending), Some(NodeState::Running)].contains(&book.state));
        let needed = self.most_wanted_now(pool, record, now) >= up.count();
        [
            book.launched,
            ready,
            book.first_ready,
            book.last_use(self.pool_setup(pool), now, false),
            record.last_wake(id).map(|wake| wake.at),
            known.last_leased(now),
            held,
            needed.then_some(now),
        ]
        .into_iter()
        .flatten()
        .max()
    }

    /// As many nodes as windows and calls want, whoever woke last.
    fn most_wanted_now(&self, pool: &PoolName, record: &PoolRecord, now: Instant) -> usize {
        let Some(rules) = self.rules.get(pool) else { return 0 };
        let by_window = wanted(&rules.warm, now, TimeDelta::minutes(20)).map_or(0, |wish| wish.nodes as usize);
        rules.nodes_for(calls_of(record, now)).max(by_window)
    }

    /// A node that does not become ready is told.
    fn check_boot(&mut self, now: Instant, pool: &PoolName, id: &NodeId) {
        let Some(book) = self.books.get(id) else { return };
        let Some(launched) =
            book.launched.filter(|_| book.state == Some(NodeState::Running) && book.first_ready.is_none())
        else {
            return;
        };
        let more = TICK * self.troubles(launched, now);
        let kinds = [AlertKind::NotReady, AlertKind::ControllerFault, AlertKind::Blind];
        let late = now - launched > self.policy.ready_within + TICK + SLACK + more;
        if late && book.our_stop.is_none() && self.was_told(launched, &kinds, pool, Some(id)).is_none() {
            let what = format!("{id} runs since {} and is not ready, and nobody was told", launched.format("%H:%M:%S"));
            self.broken(now, "P1: a node that does not become ready is told", what);
        }
    }

    // Money and uptime.

    /// At the day's end: the launches in the ledger are the true ones.
    pub fn finish(&mut self, stage: &mut impl Stage) {
        let (now, history) = (stage.now(), stage.history());
        for pool in self.rules.keys().cloned().collect::<Vec<_>>() {
            let record = stage.record(&pool);
            for (id, launches) in
                self.nodes_of(&pool).map(|(id, book)| (id.clone(), book.launches.clone())).collect::<Vec<_>>()
            {
                let of_history = history.get(&pool).into_iter().flatten().filter(|(node, _)| *node == id);
                let newest = record.nodes.get(&id).and_then(|node| node.launch.clone());
                let known: Vec<_> = of_history.map(|(_, launch)| launch.clone()).chain(newest).collect();
                self.check_launches(now, &id, &launches, &known);
            }
        }
    }

    fn check_launches(
        &mut self,
        now: Instant,
        id: &NodeId,
        truth: &[(Instant, Option<Instant>)],
        known: &[reveille::domain::Launch],
    ) {
        for launch in merged(known) {
            let end = truth.iter().find(|(at, _)| *at == launch.launched_at).map(|(_, end)| *end);
            let right = match (end, launch.ended_at) {
                (None, _) => launch.launched_at < self.setup.start,
                (Some(_), _) if launch.presumed => true,
                (Some(Some(end)), Some(written)) => (end - written).abs() < TICK + SLACK,
                (Some(Some(end)), None) => now - end < TICK * 3,
                (Some(None), Some(_)) => false,
                (Some(None), None) => true,
            };
            if !right {
                let what = format!(
                    "{id}: launch {} is written to end {:?} and ended {end:?}",
                    launch.launched_at, launch.ended_at
                );
                self.broken(now, "launches are the true ones", what);
            }
        }
        for (at, end) in truth {
            let long = end.unwrap_or(now) - *at > TICK * (2 + self.troubles(*at, end.unwrap_or(now)));
            if long && !known.iter().any(|launch| launch.launched_at == *at) {
                self.broken(now, "launches are the true ones", format!("{id}: the launch of {at} is not written"));
            }
        }
    }
}

/// A person knows: the clock starts again when the reason is gone, or a while later.
fn excused_until(now: Instant, told: Instant, known: &NodeRecord) -> Instant {
    let refused = known.fault.as_ref().filter(|fault| fault.kind == FaultKind::Stop).map(|fault| fault.retry_at);
    let blind = known.blind.as_ref().map(|_| now);
    (told + TimeDelta::minutes(20)).max(refused.unwrap_or(told)).max(blind.unwrap_or(told))
}

/// A STOP was claimed for this launch and not refused.
fn is_going(known: &NodeRecord, launched: Option<Instant>) -> bool {
    known.claim.as_ref().is_some_and(|claim| {
        claim.kind == ClaimKind::Stop && claim.answer != Some(ClaimAnswer::Refused) && claim.launched_at == launched
    })
}

fn calls_of(record: &PoolRecord, now: Instant) -> usize {
    record.nodes.values().map(|node| node.calls(now)).sum::<usize>() + record.calls_waiting(now)
}

impl Book {
    /// The end of the newest minute with use, or with an open call, as far as it was visible at an instant.
    fn last_use(&self, setup: Option<&PoolSetup>, visible_at: Instant, open_only: bool) -> Option<Instant> {
        let setup = setup?;
        let of = |points: &Points, counts: bool| {
            let seen = points.iter().rev().find(|(_, (value, visible))| *value > 0.0 && *visible <= visible_at);
            seen.filter(|_| counts).map(|(at, _)| *at + TimeDelta::minutes(1))
        };
        let beat = self.beat.as_ref().filter(|_| setup.beat).map(|(beat, _)| beat);
        let beat = beat.filter(|beat| self.launched.is_none_or(|at| beat.at >= at));
        [
            of(&self.open, setup.gauge),
            of(&self.requests, setup.requests && !open_only),
            of(&self.lines, setup.logs && !open_only),
            beat.and_then(|beat| beat.open_at),
        ]
        .into_iter()
        .flatten()
        .filter(|at| self.launched.is_none_or(|launched| *at >= launched))
        .max()
    }

    /// From when on every signal shows that it would have shown use; none where one does not now. The launch itself where
    /// that holds since then.
    fn proved_from(&self, setup: Option<&PoolSetup>, visible_at: Instant, clock: Instant) -> Option<Instant> {
        self.proof(setup, visible_at, clock, SLACK)
    }

    /// Silent for longer than a gap may be, whatever the clocks say.
    fn is_surely_dark(&self, setup: Option<&PoolSetup>, visible_at: Instant, clock: Instant) -> bool {
        self.proof(setup, visible_at, clock, SLACK * 2).is_none()
    }

    fn proof(
        &self,
        setup: Option<&PoolSetup>,
        visible_at: Instant,
        clock: Instant,
        slack: TimeDelta,
    ) -> Option<Instant> {
        let (setup, launched) = (setup?, self.launched?);
        let own = |points: &Points| {
            let of = points.iter().chain(&self.healthy).filter(|(_, (_, visible))| *visible <= visible_at);
            covered(of.map(|(at, _)| *at).collect(), launched, clock, slack)
        };
        let mut from = launched;
        for points in [
            setup.requests.then_some(&self.requests),
            setup.gauge.then_some(&self.open),
            setup.logs.then_some(&self.lines),
        ]
        .into_iter()
        .flatten()
        {
            from = from.max(own(points)?);
        }
        if setup.beat {
            let (beat, _) = self.beat.as_ref().filter(|(beat, _)| beat.at >= launched)?;
            let since = beat.since.filter(|_| clock - beat.at <= FRESH_BEAT + slack)?;
            from = from.max(if since - launched <= LONGEST_GAP + slack { launched } else { since });
        }
        Some(from)
    }
}

/// From when on points follow each other without a gap that is too long, up to the minutes that are not settled.
fn covered(mut points: Vec<Instant>, launched: Instant, clock: Instant, slack: TimeDelta) -> Option<Instant> {
    points.sort_unstable();
    let edge = clock - UNSETTLED;
    let gap = LONGEST_GAP + slack;
    let mut from = edge;
    for at in points.into_iter().rev() {
        if from - (at + TimeDelta::minutes(1)) > gap {
            break;
        }
        from = from.min(at);
    }
    if from - launched <= gap {
        return Some(launched);
    }
    (from < edge).then_some(from)
}
