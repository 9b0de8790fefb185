//! The ledger's item of one pool: demand, claims and the few facts that EC2 cannot tell.

use super::{BootTime, Boots, Hold, InstanceType, Instant, Launch, Lease, LeaseId, NodeId, Usd};
use crate::error::{CallError, ErrorClass};
use crate::policy::{LEFT_STOPPED, WAITING};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of a function: the Lambda request id. A claim carries it, so that a run knows its own claim again when the
/// answer to the write was lost.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

/// The item `pool#NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PoolRecord {
    /// Moved by every wake; a STOP is claimed only if it has not moved since the decision's look.
    pub demand: u64,
    /// Moved by every claim and every recorded answer.
    pub claims: u64,
    /// The newest wake by a caller that asked for any node of the pool.
    pub wake: Option<Wake>,
    /// The newest wake by a line of a request log; it is not heeded while the source is noisy.
    pub line_wake: Option<Wake>,
    /// A closed gate: no wake is taken. Absent: open.
    pub gate: Option<Gate>,
    /// Calls that found no node with room, each until when it is taken to wait: they want nodes of their own.
    pub waiting: BTreeMap<LeaseId, Instant>,
    /// The wakes of the newest minute in which one came.
    pub rate: Option<Rate>,
    /// Messages that could not be sent, as text, each until a tick gets it out: what they are about may have passed.
    pub untold: BTreeMap<AlertKey, String>,
    /// What is known of each node.
    pub nodes: BTreeMap<NodeId, NodeRecord>,
    /// Attributes that could not be read. They count as absent, except that a node with an unreadable claim is Unknown.
    pub unread: Vec<String>,
}

impl PoolRecord {
    /// The record of one node; an absent one is empty.
    pub fn node(&self, id: &NodeId) -> NodeRecord {
        self.nodes.get(id).cloned().unwrap_or_default()
    }

    /// The newest wake of the pool that is heeded.
    pub fn newest_wake(&self) -> Option<&Wake> {
        let line = self.line_wake.as_ref().filter(|wake| !self.is_noise(wake.at));
        [self.wake.as_ref(), line].into_iter().flatten().max_by_key(|wake| wake.at)
    }

    /// The newest wake that may mean this node.
    pub fn last_wake(&self, id: &NodeId) -> Option<&Wake> {
        self.wakes(id).max_by_key(|wake| wake.at)
    }

    /// The newest wakes of each kind that may mean this node and are heeded.
    pub fn wakes(&self, id: &NodeId) -> impl Iterator<Item = &Wake> {
        let line = self.line_wake.as_ref().filter(|wake| !self.is_noise(wake.at));
        let named = self.nodes.get(id).and_then(|node| node.wake.as_ref());
        [self.wake.as_ref(), line, named].into_iter().flatten()
    }

    /// The gate, if it is closed at this instant.
    pub fn closed_gate(&self, now: Instant) -> Option<&Gate> {
        self.gate.as_ref().filter(|gate| gate.until.is_none_or(|until| now < until))
    }

    /// Calls that still wait for a node with room.
    pub fn calls_waiting(&self, now: Instant) -> usize {
        self.waiting.values().filter(|until| now < **until).count()
    }

    /// What a boot of this node is expected to take: by its own last boots, else by those of the pool's other nodes, else
    /// the configured guess.
    pub fn boot_time(&self, node: Option<&NodeId>, guess: TimeDelta) -> BootTime {
        let of =
            |node: &NodeRecord| node.boots.iter().flat_map(|boots| boots.seconds.iter().copied()).collect::<Vec<u32>>();
        let own = node.and_then(|id| self.nodes.get(id)).map(of).unwrap_or_default();
        let all = || self.nodes.values().flat_map(of).collect();
        BootTime::of(if own.is_empty() { all() } else { own }, guess)
    }

    /// Takes out, and lists as unread, each fact that is dated after `latest`: the clock was off that wrote it, or a person's
    /// hand slipped, and it would keep a node, or a wish, until that day comes.
    pub fn forget_later_than(&mut self, latest: Instant) {
        let of_pool = [("wake", &mut self.wake), ("line_wake", &mut self.line_wake)];
        let late = of_pool.into_iter().filter_map(|(name, wake)| forget(name, wake, |wake| wake.at > latest));
        let late: Vec<&str> = late.collect();
        self.unread.extend(late.into_iter().map(str::to_owned));
        for (id, node) in &mut self.nodes {
            self.unread.extend(node.forget_later_than(latest).map(|kind| format!("{kind}#{id}")));
        }
        self.waiting.retain(|_, until| *until <= latest + WAITING);
    }

    /// Whether a log line's wake at this instant came when the source had woken too often for nothing (field case 20).
    pub fn is_noise(&self, at: Instant) -> bool {
        let of_day = self.nodes.values().filter_map(|node| node.noise.as_ref()).filter(|noise| at < noise.until);
        let mut counted: Vec<Instant> = of_day.flat_map(|noise| noise.line_times.iter().copied()).collect();
        counted.sort_unstable();
        // From the instant on at which the count became full; later counts do not move it.
        counted.get(MOST_NOISE_WAKES as usize).is_some_and(|full_at| at >= *full_at)
    }
}

fn forget<T>(name: &'static str, fact: &mut Option<T>, is_late: impl FnOnce(&T) -> bool) -> Option<&'static str> {
    fact.take_if(|fact| is_late(fact)).map(|_| name)
}

/// The facts of one node. Each is an attribute of its own, so that writers of different facts never undo each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NodeRecord {
    /// The newest wake that named this node.
    pub wake: Option<Wake>,
    /// The newest claim; it ends by evidence, not by time.
    pub claim: Option<Claim>,
    /// The first of the two idle readings.
    pub mark: Option<Mark>,
    /// Readiness seen since a launch.
    pub ready: Option<ReadyFact>,
    /// The newest refusal, with its backoff.
    pub fault: Option<Fault>,
    /// How long the signals have been unknown.
    pub blind: Option<Blind>,
    /// The newest launch that was seen.
    pub launch: Option<Launch>,
    /// Launches of today that served nobody.
    pub noise: Option<Noise>,
    /// Its calls in progress, and those whose lease ran out and was not cleared away yet.
    pub leases: BTreeMap<LeaseId, Lease>,
    /// When a lease was last given, renewed or ended.
    pub leased: Option<Instant>,
    /// An operator's hold.
    pub hold: Option<Hold>,
    /// What its last boots took.
    pub boots: Option<Boots>,
}

impl NodeRecord {
    fn forget_later_than(&mut self, latest: Instant) -> impl Iterator<Item = &'static str> {
        let mut leased = self.leases.values().any(|lease| lease.at > latest).then(|| std::mem::take(&mut self.leases));
        [
            forget("wake", &mut self.wake, |wake| wake.at > latest),
            forget("claim", &mut self.claim, |claim| claim.at > latest),
            forget("ready", &mut self.ready, |ready| ready.at > latest),
            forget("fault", &mut self.fault, |fault| fault.since > latest || fault.retry_at > latest + LEFT_STOPPED),
            forget("blind", &mut self.blind, |blind| blind.at > latest),
            forget("leased", &mut self.leased, |at| *at > latest),
            forget("leases", &mut leased, |_| true),
        ]
        .into_iter()
        .flatten()
    }

    /// Its calls in progress.
    pub fn live_leases(&self, now: Instant) -> impl Iterator<Item = (&LeaseId, &Lease)> {
        self.leases.iter().filter(move |(_, lease)| lease.is_live(now))
    }

    /// How many calls are in progress.
    pub fn calls(&self, now: Instant) -> usize {
        self.live_leases(now).count()
    }

    /// The newest instant at which a lease held it, as of `now`.
    pub fn last_leased(&self, now: Instant) -> Option<Instant> {
        let ends = self.leases.values().map(|lease| lease.until.min(now));
        ends.chain(self.leased).max()
    }

    /// Whether it is ready as far as the ledger knows: it was, since its launch, and nothing has taken it back.
    pub fn is_ready(&self, launched_at: Option<Instant>) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.launched_at == launched_at && ready.lost_at.is_none())
    }

    /// Whether it was ever ready since its launch.
    pub fn was_ready(&self, launched_at: Option<Instant>) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.launched_at == launched_at)
    }
}

/// Wakes counted in one minute, so that whoever can wake cannot flood: whoever can wake can spend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// Minutes since 1970.
    pub minute: i64,
    /// All wakes by callers.
    pub all: u32,
    /// Those of each caller's bucket.
    pub by: BTreeMap<String, u32>,
}

/// A source that wakes for nothing more often than this in a day is told (design: "more than 6 times a day"), and its log
/// lines wake nothing more that day.
pub const MOST_NOISE_WAKES: u32 = 6;

/// Launches of one day in which no request was counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Noise {
    /// How many were caused by log lines.
    pub lines: u32,
    /// How many were caused by pre-warms.
    pub prewarms: u32,
    /// When the newest was counted.
    pub at: Instant,
    /// When each that was caused by a log line was counted.
    #[serde(default)]
    pub line_times: Vec<Instant>,
    /// The launch that was counted last, so that none counts twice.
    pub launched_at: Instant,
    /// The end of the local day, which ends the count.
    pub until: Instant,
}

/// Who closed a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKeeper {
    /// The budget guard, which opens it again.
    Budget,
    /// A person; nothing but a person opens it before its end.
    Person,
}

/// A closed gate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gate {
    /// Who closed it.
    pub by: GateKeeper,
    /// Since when.
    pub since: Instant,
    /// Why, for callers: without figures.
    pub reason: String,
    /// The budget's amount that was spent; absent where a person closed it.
    #[serde(default)]
    pub amount: Option<Usd>,
    /// It opens by itself at this instant, in whole seconds; the budget's at the end of its month.
    pub until: Option<Instant>,
    /// Running nodes are drained too: stopped once no call is left.
    pub drain: bool,
}

/// Somebody wants a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wake {
    /// When the demand was recorded.
    pub at: Instant,
    /// Where it came from.
    pub source: WakeSource,
    /// The beginning of a path, out of the configured ones, that the line asked for; `/wake` or `/leases` of a caller.
    #[serde(default)]
    pub path: Option<String>,
    /// The class of the caller: a token's or a role's name, or the product in a log line's user agent.
    #[serde(default)]
    pub caller: Option<String>,
    /// When the line was written; of a caller the time of its call.
    #[serde(default)]
    pub line_at: Option<Instant>,
}

impl Wake {
    /// A wake of which no more is known.
    pub fn new(at: Instant, source: WakeSource) -> Self {
        Self { at, source, path: None, caller: None, line_at: None }
    }
}

/// Where a wake came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeSource {
    /// `POST /wake`, the app's call on entry.
    Prewarm,
    /// `PUT /leases/{id}` that found no node with room: a call is waiting.
    Call,
    /// A line of a request log.
    LogLine,
    /// A log batch too big to read: one wake too many costs half an hour, one too few costs a call.
    UnreadableBatch,
}

impl WakeSource {
    /// The word in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prewarm => "prewarm",
            Self::Call => "call",
            Self::LogLine => "log_line",
            Self::UnreadableBatch => "unreadable_batch",
        }
    }

    /// Whether it came by a log, and not by a caller.
    pub fn is_log(self) -> bool {
        match self {
            Self::Prewarm | Self::Call => false,
            Self::LogLine | Self::UnreadableBatch => true,
        }
    }
}

/// What a claim is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// One START is sent under it.
    Start,
    /// One STOP is sent under it; until it is proved void the node is read as Stopping.
    Stop,
}

/// The right to send one START or STOP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// START or STOP.
    pub kind: ClaimKind,
    /// The run that claimed.
    pub run: RunId,
    /// When it claimed.
    pub at: Instant,
    /// The LaunchTime it saw. A newer one means that somebody started the node since.
    pub launched_at: Option<Instant>,
    /// The end of the run's time-out: until then an unanswered call may still be in flight.
    pub open_until: Instant,
    /// The newest wake that a STOP's decision had in view: that wake is spent, a later one is not.
    pub wake: Option<Instant>,
    /// Where that wake came from.
    #[serde(default)]
    pub source: Option<WakeSource>,
    /// The beginning of a path that it asked for.
    #[serde(default)]
    pub path: Option<String>,
    /// How many times in a row this call was claimed without effect, from 1.
    pub tries: u32,
    /// What EC2 answered; absent while unanswered, and after an accepted START (the LaunchTime is its evidence).
    pub answer: Option<ClaimAnswer>,
}

/// What EC2 answered to the call under a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimAnswer {
    /// Done or on its way.
    Accepted,
    /// A START found the node running: no earlier STOP took effect.
    AlreadyRunning,
    /// EC2 said no, or the start fell back: the claim is void.
    Refused,
}

/// The first idle reading: the node was idle at this instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// When the reading was made; a later wake or use voids it.
    pub at: Instant,
    /// The launch the reading belongs to; a later launch voids it.
    pub launched_at: Option<Instant>,
}

/// Readiness was seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReadyFact {
    /// When it was seen first.
    pub at: Instant,
    /// The launch it belongs to; a later launch voids it.
    pub launched_at: Option<Instant>,
    /// Since when it is not ready any more.
    #[serde(default)]
    pub lost_at: Option<Instant>,
}

/// Which call keeps failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// START refused, or accepted and fallen back.
    Start,
    /// STOP refused.
    Stop,
}

/// A refusal that is waited out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fault {
    /// Which call.
    pub kind: FaultKind,
    /// The class, which sets the backoff.
    pub class: ErrorClass,
    /// The service's code.
    pub code: String,
    /// When the first of this row of refusals came.
    pub since: Instant,
    /// How many in a row, from 1.
    pub tries: u32,
    /// No call of this kind before; another instance type is tried at once.
    pub retry_at: Instant,
    /// The instance types that had no capacity since the row's last wait.
    #[serde(default)]
    pub types: Vec<InstanceType>,
    /// The row of launches that did not become ready. Other refusals in between do not end it.
    #[serde(default)]
    pub never_ready: Option<NeverReady>,
}

/// Launches in a row that were stopped, or are to be, because the node did not become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NeverReady {
    /// How many, from 1.
    pub times: u32,
    /// The newest of them, which counts once however often its STOP is tried.
    pub launched_at: Option<Instant>,
}

impl Fault {
    /// The fault after one more refusal: the row goes on if `earlier` is of the same kind. `node` only spreads the waits.
    pub fn next(kind: FaultKind, earlier: Option<&Fault>, node: &NodeId, error: &CallError, now: Instant) -> Fault {
        let row = earlier.filter(|fault| fault.kind == kind);
        // Another type tried within the same wait is the same try.
        let same_try = row.is_some_and(|fault| !fault.types.is_empty() && now < fault.retry_at);
        let tries = row.map_or(1, |fault| fault.tries.saturating_add(u32::from(!same_try)));
        Fault {
            kind,
            class: error.class,
            code: error.code.clone(),
            since: row.map_or(now, |fault| fault.since),
            tries,
            retry_at: now + spread(error.class.backoff(tries), node, tries),
            types: row.filter(|_| same_try).map(|fault| fault.types.clone()).unwrap_or_default(),
            never_ready: earlier.and_then(|fault| fault.never_ready),
        }
    }

    /// The same, with one more instance type that had no capacity.
    pub fn with_type(mut self, tried: Option<&InstanceType>) -> Fault {
        let new = tried.filter(|tried| self.class == ErrorClass::Capacity && !self.types.contains(tried));
        self.types.extend(new.cloned());
        self
    }
}

/// Jitter: takes up to a fifth off a wait, the same for the same node and try, so that nodes refused together do not come
/// back together. Never longer, so that the quick waits still end before the next tick.
fn spread(wait: TimeDelta, node: &NodeId, tries: u32) -> TimeDelta {
    let hash = node
        .as_str()
        .bytes()
        .fold(u64::from(tries), |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let most = u64::try_from(wait.num_seconds()).unwrap_or(0) / 5;
    wait - TimeDelta::seconds(i64::try_from((hash >> 8) % (most + 1)).unwrap_or(0))
}

/// How long a node's signals have been unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Blind {
    /// The first unknown tick.
    pub since: Instant,
    /// The newest unknown tick.
    pub at: Instant,
    /// Unknown ticks in a row, from 1.
    pub ticks: u32,
    /// How many times a person has been told.
    pub told: u32,
}

/// Names one alert: it is sent once for each (node, rule, day or occasion).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AlertKey(pub String);
