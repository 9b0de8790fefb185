//! Plays a day on a stage: the callers, the nodes' apps, metrics and beats, people, schedules and events. What happens is
//! shown to the observer as it happens.

use crate::day::{Day, Fate, What};
use crate::draw;
use crate::faults::Struck;
use crate::setup::{ReadyBy, metric};
use crate::stage::{Ask, Change, Ended, Happened, Reply, RunKey, Stage};
use crate::watch::{Violation, Watch};
use chrono::{DurationRound as _, TimeDelta};
use reveille::domain::{Beat, Gate, GateKeeper, Hold, Instant, LeaseId, NodeId, NodeSeen, NodeState, PoolName};
use std::collections::BTreeMap;

/// Node states are looked at this often.
const LOOK: TimeDelta = TimeDelta::seconds(5);
/// How long a caller asks on.
const PATIENCE: TimeDelta = TimeDelta::seconds(90);
/// What an app asks for, and how often it renews.
const LEASE_SECONDS: i64 = 120;
const RENEWS: TimeDelta = TimeDelta::seconds(45);
/// How often Lambda tries a failed event again.
const RETRIES: u32 = 2;

/// How a day went.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was broken, the first of it: the day ends there.
    pub violation: Option<Violation>,
    /// The faults that struck.
    pub struck: Struck,
    /// What happened, for people.
    pub timeline: Vec<(Instant, String)>,
    /// How many invocations there were.
    pub runs: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Due {
    Happening(usize),
    Tick,
    Uptime,
    Budget,
    Ask(Ask, u32),
    Client(usize),
    Hangup(usize),
    Minute,
    Beat(NodeId),
    Later(Change),
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Waiting,
    Talking(NodeId),
    Over,
}

struct Client {
    pool: PoolName,
    id: LeaseId,
    leased: bool,
    lasts: TimeDelta,
    dies: bool,
    since: Instant,
    asked: bool,
    phase: Phase,
}

/// A node's app, its agent, and what its metrics will say of the minute.
#[derive(Default)]
struct App {
    state: Option<NodeState>,
    launched: Option<Instant>,
    /// When its app is up, if nothing keeps it.
    up_at: Option<Instant>,
    beat: Option<Beat>,
    beats: bool,
    requests: u32,
    open: u32,
    most_open: u32,
}

/// What holds for a node or all until an instant.
#[derive(Default)]
struct Spans {
    no_beats: BTreeMap<NodeId, Instant>,
    not_ready: BTreeMap<NodeId, Instant>,
    no_metrics: BTreeMap<NodeId, Instant>,
    late: BTreeMap<NodeId, (i64, Instant)>,
    events: Option<(Fate, Instant)>,
}

/// A day under way.
struct Play<'a, S: Stage> {
    day: &'a Day,
    stage: &'a mut S,
    watch: Watch,
    pool_of: BTreeMap<NodeId, PoolName>,
    queue: BTreeMap<(Instant, u64), Due>,
    queued: u64,
    runs: u64,
    keys: BTreeMap<String, u32>,
    clients: Vec<Client>,
    asking: BTreeMap<RunKey, usize>,
    tries: BTreeMap<RunKey, u32>,
    apps: BTreeMap<NodeId, App>,
    spans: Spans,
    ticks: Vec<What>,
    struck: Struck,
    timeline: Vec<(Instant, String)>,
}

/// Plays a day to its end, or to the first broken promise.
pub fn play(day: &Day, stage: &mut impl Stage) -> Report {
    let mut play = Play::new(day, stage);
    play.schedule();
    play.run();
    Report { violation: play.watch.violation, struck: play.struck, timeline: play.timeline, runs: play.runs }
}

impl<'a, S: Stage> Play<'a, S> {
    fn new(day: &'a Day, stage: &'a mut S) -> Self {
        let mut pool_of = BTreeMap::new();
        for pool in &day.setup.pools {
            let ids = pool.nodes.iter().filter_map(|id| NodeId::new(id.clone()).ok());
            pool_of.extend(ids.filter_map(|id| Some((id, pool.pool().ok()?))));
        }
        Self {
            watch: Watch::new(day),
            day,
            stage,
            apps: pool_of.keys().map(|id| (id.clone(), App::default())).collect(),
            pool_of,
            queue: BTreeMap::new(),
            queued: 0,
            runs: 0,
            keys: BTreeMap::new(),
            clients: Vec::new(),
            asking: BTreeMap::new(),
            tries: BTreeMap::new(),
            spans: Spans::default(),
            ticks: Vec::new(),
            struck: Struck::default(),
            timeline: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        self.stage.now()
    }

    fn due(&mut self, at: Instant, due: Due) {
        self.queued += 1;
        self.queue.insert((at, self.queued), due);
    }

    fn note(&mut self, text: impl Into<String>) {
        let at = self.now();
        self.timeline.push((at, text.into()));
    }

    fn schedule(&mut self) {
        let start = self.now();
        for (n, happening) in self.day.happenings.iter().enumerate() {
            let at = self.day.instant(happening.at);
            // The app is opened before the call.
            let lead = if let What::Call { announced: Some(lead), .. } = &happening.what { *lead } else { 0 };
            let lead = TimeDelta::seconds(lead);
            self.due((at - lead).max(start), Due::Happening(n));
        }
        for (after, due) in [(60, Due::Minute), (150, Due::Tick), (400, Due::Uptime)] {
            self.due(start + TimeDelta::seconds(after), due);
        }
        if self.day.setup.budget.is_some() {
            self.due(start + TimeDelta::seconds(700), Due::Budget);
        }
        self.look();
    }

    fn run(&mut self) {
        let end = self.day.end();
        while self.now() < end && self.watch.violation.is_none() {
            let next = self.queue.first_key_value().map_or(end, |((at, _), _)| *at);
            let to = next.min(self.now() + LOOK).min(end);
            while let Some(happened) = self.stage.advance(to) {
                self.look();
                self.happened(happened);
                if self.watch.violation.is_some() {
                    return;
                }
            }
            self.look();
            while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= self.stage.now()) {
                let due = entry.remove();
                self.fire(due);
                self.look();
            }
        }
        if self.watch.violation.is_none() {
            self.watch.finish(self.stage);
        }
    }

    /// Calls a function. Its name depends on what and when it is alone, so that other runs keep theirs.
    fn ask(&mut self, ask: Ask, tries: u32) -> RunKey {
        let word = match &ask {
            Ask::Wake(..) => "wake",
            Ask::Status(_) => "status",
            Ask::Lease(..) => "lease",
            Ask::Renew(..) => "renew",
            Ask::EndLease(_) => "end",
            Ask::LogLine(_) => "line",
            Ask::StateChange => "state",
            Ask::Idle => "idle",
            Ask::Uptime => "uptime",
            Ask::Budget => "budget",
        };
        let name = format!("{word}-{}", self.now().format("%d%H%M%S%3f"));
        let twin = self.keys.entry(name.clone()).or_default();
        *twin += 1;
        let key = RunKey(format!("{name}-{twin}"));
        self.runs += 1;
        self.tries.insert(key.clone(), tries);
        self.watch.began(self.stage, &key, &ask);
        self.stage.begin(key.clone(), ask);
        key
    }

    fn fire(&mut self, due: Due) {
        let now = self.now();
        match due {
            Due::Happening(n) => self.happen(n),
            Due::Tick => self.tick(),
            Due::Uptime => {
                self.ask(Ask::Uptime, 0);
                self.due(now + TimeDelta::minutes(15), Due::Uptime);
            }
            Due::Budget => {
                self.ask(Ask::Budget, 0);
                self.due(now + TimeDelta::minutes(60), Due::Budget);
            }
            Due::Ask(ask, tries) => drop(self.ask(ask, tries)),
            Due::Client(n) => self.client(n),
            Due::Hangup(n) => self.hang_up(n),
            Due::Minute => self.minute(),
            Due::Beat(node) => self.beat(&node),
            Due::Later(change) => self.change(change),
        }
    }

    fn change(&mut self, change: Change) {
        self.watch.changed(self.stage, &change);
        self.stage.change(change);
    }

    /// The schedule is on whole ticks; each comes some seconds later.
    fn tick(&mut self) {
        let now = self.now();
        let base = now.duration_trunc(TimeDelta::minutes(5)).unwrap_or(now) + TimeDelta::minutes(5);
        let jitter = draw::between(self.day.seed, (base.timestamp(), "tick"), 0, 4);
        self.due(base + TimeDelta::seconds(jitter), Due::Tick);
        let fate = if self.ticks.is_empty() { None } else { Some(self.ticks.remove(0)) };
        match fate {
            Some(What::TickLost) => self.watch.tick_lost(now),
            Some(What::TickLate { seconds }) => {
                self.watch.tick_lost(now);
                self.due(now + TimeDelta::seconds(seconds), Due::Ask(Ask::Idle, 0));
            }
            Some(What::TickTwice) => {
                self.ask(Ask::Idle, 0);
                self.due(now + TimeDelta::seconds(1), Due::Ask(Ask::Idle, 0));
            }
            Some(_) | None => drop(self.ask(Ask::Idle, 0)),
        }
    }

    fn happened(&mut self, happened: Happened) {
        match &happened {
            Happened::Struck(run, strike) => {
                self.struck.add(strike.kind, &strike.call);
                self.note(format!("  {}: {} {}", run.0, strike.call, strike.kind.as_str()));
            }
            Happened::Told(run, alert) => self.note(format!("  {}: told: {}", run.0, alert.subject)),
            Happened::Accepted(did) => self.note(format!("  {}: {:?} {}", did.run.0, did.act, did.node)),
            Happened::Ended(ended) => self.note_end(ended),
        }
        self.tell_ready();
        self.watch.happened(self.stage, &happened);
        if let Happened::Ended(ended) = happened {
            self.ended(ended);
        }
    }

    fn note_end(&mut self, ended: &Ended) {
        let word = if ended.died {
            "died"
        } else if ended.failed {
            "failed"
        } else {
            "done"
        };
        let lines = ended.decided.iter().map(|line| {
            let node = line.node.as_ref().map_or_else(|| line.pool.to_string(), ToString::to_string);
            format!("{node} {} {}", line.action, line.reason)
        });
        let lines: Vec<String> = lines.collect();
        let reply = ended.reply.as_ref().map(|reply| format!("; {} {}", reply.status, reply.state)).unwrap_or_default();
        self.note(format!("  {}: {word}: {}{reply}", ended.run.0, lines.join(", ")));
    }

    fn ended(&mut self, ended: Ended) {
        let tries = self.tries.remove(&ended.run).unwrap_or_default();
        if ended.ask.is_event() && ended.failed && tries < RETRIES {
            let after = TimeDelta::minutes(i64::from(tries) + 1);
            self.due(self.now() + after, Due::Ask(ended.ask, tries + 1));
            return;
        }
        if let Some(n) = self.asking.remove(&ended.run) {
            self.answered(n, ended.reply);
        }
    }

    // Callers.

    fn client(&mut self, n: usize) {
        let now = self.now();
        let Some(client) = self.clients.get_mut(n) else { return };
        let (pool, id, leased) = (client.pool.clone(), client.id.clone(), client.leased);
        let ask = match &client.phase {
            Phase::Over => return,
            Phase::Waiting if now - client.since > PATIENCE => {
                client.phase = Phase::Over;
                if leased {
                    self.ask(Ask::EndLease(id), 0);
                }
                return;
            }
            Phase::Waiting if leased => Ask::Lease(pool, id, LEASE_SECONDS),
            Phase::Waiting if client.asked => Ask::Status(pool),
            Phase::Waiting => Ask::Wake(pool, None),
            Phase::Talking(_) if client.dies => return,
            Phase::Talking(_) => Ask::Renew(pool, id, LEASE_SECONDS),
        };
        client.asked = true;
        let key = self.ask(ask, 0);
        self.asking.insert(key, n);
    }

    fn answered(&mut self, n: usize, reply: Option<Reply>) {
        let now = self.now();
        let Some(client) = self.clients.get_mut(n) else { return };
        let served = reply.as_ref().filter(|reply| reply.status == 200).and_then(|reply| reply.node.clone());
        match (&client.phase, served) {
            (Phase::Over, _) => {}
            (Phase::Waiting, Some(node)) => self.connect(n, &node),
            (Phase::Waiting, None) => {
                // One that never heard whether its wake arrived asks for it again.
                client.asked &= reply.is_some_and(|reply| reply.state != "unknown");
                self.due(now + TimeDelta::seconds(10), Due::Client(n));
            }
            (Phase::Talking(_), Some(_)) => self.due(now + RENEWS, Due::Client(n)),
            (Phase::Talking(node), None) => {
                let gone = reply.is_some_and(|reply| [404, 409, 410].contains(&reply.status));
                let node = node.clone();
                if gone {
                    client.phase = Phase::Over;
                    self.close(&node);
                } else {
                    self.due(now + TimeDelta::seconds(10), Due::Client(n));
                }
            }
        }
    }

    /// The call is put through; on a node that is not running it fails at once.
    fn connect(&mut self, n: usize, node: &NodeId) {
        let now = self.now();
        let running = self.apps.get(node).is_some_and(|app| app.state == Some(NodeState::Running));
        let Some(client) = self.clients.get_mut(n) else { return };
        if !running {
            client.phase = Phase::Over;
            return;
        }
        client.phase = Phase::Talking(node.clone());
        let (leased, ends) = (client.leased, now + client.lasts);
        if let Some(app) = self.apps.get_mut(node) {
            app.requests += 1;
            app.open += 1;
            app.most_open = app.most_open.max(app.open);
        }
        self.due(ends, Due::Hangup(n));
        if leased {
            self.due(now + RENEWS, Due::Client(n));
        }
    }

    fn close(&mut self, node: &NodeId) {
        if let Some(app) = self.apps.get_mut(node) {
            app.open = app.open.saturating_sub(1);
        }
    }

    fn hang_up(&mut self, n: usize) {
        let Some(client) = self.clients.get_mut(n) else { return };
        let Phase::Talking(node) = std::mem::replace(&mut client.phase, Phase::Over) else { return };
        let (leased, dies, id) = (client.leased, client.dies, client.id.clone());
        self.close(&node);
        self.log_line(&node);
        if leased && !dies {
            self.ask(Ask::EndLease(id), 0);
        }
    }

    /// The node's own log shows a call when it ends.
    fn log_line(&mut self, node: &NodeId) {
        let now = self.now();
        let running = self.apps.get(node).is_some_and(|app| app.state == Some(NodeState::Running));
        let pool = self
            .pool_of
            .get(node)
            .and_then(|name| self.day.setup.pools.iter().find(|pool| pool.name == name.as_str() && pool.logs));
        let Some(group) = pool.filter(|_| running).map(|pool| pool.log_group()) else { return };
        let at = now.format("%d/%b/%Y:%H:%M:%S +0000");
        let line = format!("192.0.2.77 - - [{at}] \"POST /v1/calls HTTP/1.1\" 200 312 \"-\" \"voice-app/3.1\"");
        self.change(Change::Log(group, now, line));
    }

    // Nodes.

    /// Takes in what has become of the nodes.
    fn look(&mut self) {
        for seen in self.stage.nodes() {
            let known = self.apps.get(&seen.id).map(|app| (app.state, app.launched));
            if known != Some((Some(seen.state), seen.launched_at)) {
                self.moved(&seen);
            }
        }
    }

    fn moved(&mut self, seen: &NodeSeen) {
        let now = self.now();
        let first = self.apps.get(&seen.id).is_none_or(|app| app.state.is_none());
        if !first {
            self.note(format!("{} is {:?}", seen.id, seen.state));
        }
        self.watch.moved(now, seen);
        let boot = TimeDelta::seconds(self.day.setup.boot_seconds);
        let app = self.apps.entry(seen.id.clone()).or_default();
        let was = app.state.replace(seen.state);
        app.launched = seen.launched_at;
        if seen.state == NodeState::Running {
            app.up_at = seen.launched_at.map(|at| at + boot);
            let beats = std::mem::replace(&mut app.beats, true);
            if !beats {
                self.due(now + TimeDelta::seconds(15), Due::Beat(seen.id.clone()));
            }
        } else {
            (app.up_at, app.beat, app.open) = (None, None, 0);
            self.drop_calls(&seen.id);
        }
        if seen.state == NodeState::Stopped && was.is_some_and(|was| was != NodeState::Stopped) {
            self.tell_of_stop(&seen.id);
        }
    }

    fn drop_calls(&mut self, node: &NodeId) {
        for client in &mut self.clients {
            if client.phase == Phase::Talking(node.clone()) {
                client.phase = Phase::Over;
            }
        }
    }

    /// EC2's event, if it comes.
    fn tell_of_stop(&mut self, node: &NodeId) {
        let now = self.now();
        let soon = now + TimeDelta::seconds(draw::between(self.day.seed, (node, now.timestamp(), "event"), 1, 4));
        let fate = self.spans.events.filter(|(_, until)| now < *until).map(|(fate, _)| fate);
        let ask = || Due::Ask(Ask::StateChange, 0);
        match fate {
            Some(Fate::Lost) => {}
            Some(Fate::Late) => self.due(now + TimeDelta::minutes(3), ask()),
            Some(Fate::Twice) => {
                self.due(soon, ask());
                self.due(soon + TimeDelta::seconds(1), ask());
            }
            None => self.due(soon, ask()),
        }
    }

    fn is_ready(&self, node: &NodeId) -> bool {
        let now = self.now();
        let kept = self.spans.not_ready.get(node).is_some_and(|until| now < *until);
        !kept && self.apps.get(node).and_then(|app| app.up_at).is_some_and(|at| at <= now)
    }

    /// What the last minute shows, each point a while after the minute's end.
    fn minute(&mut self) {
        let now = self.now();
        self.due(now + TimeDelta::minutes(1), Due::Minute);
        let bucket = now - TimeDelta::minutes(1);
        self.tell_ready();
        for node in self.pool_of.keys().cloned().collect::<Vec<_>>() {
            let ready = self.is_ready(&node);
            let Some(app) = self.apps.get_mut(&node) else { continue };
            let (requests, open) = (std::mem::take(&mut app.requests), app.most_open);
            app.most_open = app.open;
            let is_up = app.state == Some(NodeState::Running) && app.launched.is_some_and(|at| at <= bucket);
            if self.spans.no_metrics.get(&node).is_some_and(|until| now < *until) {
                continue;
            }
            let usual = draw::between(self.day.seed, (&node, bucket.timestamp(), "metric"), 5, 50);
            let late = self.spans.late.get(&node).filter(|(_, until)| now < *until).map_or(usual, |(late, _)| *late);
            let visible = now + TimeDelta::seconds(late);
            let points = [
                ("Healthy", is_up.then_some(f64::from(u8::from(ready)))),
                ("Requests", (requests > 0).then_some(f64::from(requests))),
                ("Open", (open > 0).then_some(f64::from(open))),
            ];
            for (name, value) in points.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                self.due(visible, Due::Later(Change::Point(metric(name, &node), bucket, value)));
            }
        }
        self.watch.minute(self.stage);
    }

    /// Which nodes are truly ready now.
    fn tell_ready(&mut self) {
        let now = self.now();
        for (node, pool) in &self.pool_of {
            let by_checks =
                self.day.setup.pools.iter().any(|known| known.name == pool.as_str() && known.ready == ReadyBy::Checks);
            let app = self.apps.get(node).filter(|app| app.state == Some(NodeState::Running));
            let checked = app.and_then(|app| app.launched).is_some_and(|at| now - at >= TimeDelta::seconds(60));
            let ready = if by_checks { checked } else { app.is_some() && self.is_ready(node) };
            self.watch.ready(node, ready, now);
        }
    }

    /// One beat of the node's agent: every ten seconds until it is ready, then once a minute.
    fn beat(&mut self, node: &NodeId) {
        let now = self.now();
        let ready = self.is_ready(node);
        let silent = self.spans.no_beats.get(node).is_some_and(|until| now < *until);
        let Some(app) = self.apps.get_mut(node) else { return };
        if app.state != Some(NodeState::Running) {
            app.beats = false;
            return;
        }
        let next = if app.beat.as_ref().is_some_and(|beat| beat.row >= 2) { 60 } else { 10 };
        if silent {
            // The agent is dead and begins anew.
            app.beat = None;
        } else {
            let old = app.beat.take();
            let before = old.as_ref();
            let row = if ready { before.map_or(0, |beat| beat.row) + 1 } else { 0 };
            let beat = Beat {
                at: now,
                ready,
                row,
                ready_since: if ready { before.and_then(|beat| beat.ready_since).or(Some(now)) } else { None },
                open: Some(app.open),
                counted: Some(0),
                gpu: None,
                open_at: if app.open > 0 { Some(now) } else { before.and_then(|beat| beat.open_at) },
                used_at: before.and_then(|beat| beat.used_at),
                since: before.and_then(|beat| beat.since).or(Some(now)),
            };
            app.beat = Some(beat.clone());
            self.change(Change::Beat(node.clone(), beat));
        }
        self.due(now + TimeDelta::seconds(next), Due::Beat(node.clone()));
    }

    // What the day brings.

    fn happen(&mut self, n: usize) {
        let Some(happening) = self.day.happenings.get(n) else { return };
        let what = happening.what.clone();
        self.note(describe(&what));
        let now = self.now();
        let after = |minutes: i64| now + TimeDelta::minutes(minutes);
        let node = |id: &str| NodeId::new(id).ok();
        let pool = |name: &str| PoolName::new(name).ok();
        match what {
            What::Call { pool: name, lasts, announced, dies } => {
                let Some(pool) = pool(&name) else { return };
                self.call(n, pool, lasts, announced, dies);
            }
            What::Prewarm { pool: name, node: id } => {
                let Some(pool) = pool(&name) else { return };
                self.ask(Ask::Wake(pool, id.and_then(|id| node(&id))), 0);
            }
            What::Crowd { pool: name, apps } => {
                let Some(pool) = pool(&name) else { return };
                (0..apps).for_each(|_| drop(self.ask(Ask::Wake(pool.clone(), None), 0)));
            }
            What::LogLine { pool: name } => {
                pool(&name).into_iter().for_each(|pool| drop(self.ask(Ask::LogLine(pool), 0)))
            }
            What::Status { pool: name } => {
                pool(&name).into_iter().for_each(|pool| drop(self.ask(Ask::Status(pool), 0)))
            }
            What::HandStart { node: id } => node(&id).into_iter().for_each(|id| self.change(Change::Start(id))),
            What::HandStop { node: id } => node(&id).into_iter().for_each(|id| self.change(Change::Stop(id))),
            What::Hold { pool: name, node: id, minutes } => {
                let hold = Hold { until: after(minutes), note: "a test".to_owned(), since: now };
                let (Some(pool), Some(node)) = (pool(&name), node(&id)) else { return };
                self.change(Change::Hold(pool, node, Some(hold)));
            }
            What::GateClosed { pool: name, minutes } => {
                let gate = Gate {
                    by: GateKeeper::Person,
                    since: now,
                    reason: "a person".to_owned(),
                    amount: None,
                    until: Some(after(minutes)),
                    drain: false,
                };
                pool(&name).into_iter().for_each(|pool| self.change(Change::Gate(pool, Some(gate.clone()))));
            }
            What::NoCapacity { node: id, minutes } => {
                let Some(node) = node(&id) else { return };
                self.change(Change::NoCapacity(node.clone(), true));
                self.due(after(minutes), Due::Later(Change::NoCapacity(node, false)));
            }
            What::NoCapacityType { kind, minutes } => {
                self.change(Change::NoCapacityType(kind.clone(), true));
                self.due(after(minutes), Due::Later(Change::NoCapacityType(kind, false)));
            }
            What::RefusesStop { node: id, code, minutes } => {
                let Some(node) = node(&id) else { return };
                self.change(Change::RefuseStop(node.clone(), Some(code)));
                self.due(after(minutes), Due::Later(Change::RefuseStop(node, None)));
            }
            What::Hangs { node: id } => node(&id).into_iter().for_each(|id| self.change(Change::Hang(id))),
            What::FallsBack { node: id, code } => {
                node(&id).into_iter().for_each(|id| self.change(Change::FallBack(id, code.clone())));
            }
            What::NoBeats { node: id, minutes } => {
                self.spans.no_beats.extend(node(&id).map(|id| (id, after(minutes))));
            }
            What::NotReady { node: id, minutes } => {
                self.spans.not_ready.extend(node(&id).map(|id| (id, after(minutes))));
            }
            What::NoMetrics { node: id, minutes } => {
                self.spans.no_metrics.extend(node(&id).map(|id| (id, after(minutes))));
            }
            What::MetricsLate { node: id, seconds, minutes } => {
                self.spans.late.extend(node(&id).map(|id| (id, (seconds, after(minutes)))));
            }
            What::ClockOff { seconds, minutes } => {
                self.change(Change::ClockOff(seconds));
                self.due(after(minutes), Due::Later(Change::ClockOff(0)));
            }
            What::Slow { seconds } => self.change(Change::Slow(seconds)),
            What::TickLost | What::TickTwice | What::TickLate { .. } => self.ticks.push(what),
            What::Events { fate, minutes } => self.spans.events = Some((fate, after(minutes))),
            What::Fault(fault) => self.stage.arm(fault),
            What::Outage { call, code, minutes } => self.change(Change::Outage(call, code, minutes * 60)),
            What::BudgetGone => self.change(Change::BudgetGone),
            What::NoticesGone => self.change(Change::NoticesGone),
            What::Amount { to } => self.change(Change::Amount(to)),
        }
    }

    fn call(&mut self, n: usize, pool: PoolName, lasts: i64, announced: Option<i64>, dies: bool) {
        let leased = self.day.setup.pools.iter().any(|known| known.name == pool.as_str() && known.leased);
        let Ok(id) = LeaseId::new(format!("call-{n}")) else { return };
        let since = self.now() + TimeDelta::seconds(announced.unwrap_or_default());
        if announced.is_some() {
            self.ask(Ask::Wake(pool.clone(), None), 0);
        }
        let lasts = TimeDelta::seconds(lasts);
        self.clients.push(Client { pool, id, leased, lasts, dies, since, asked: false, phase: Phase::Waiting });
        self.due(since, Due::Client(self.clients.len() - 1));
    }
}

/// In words, for the timeline.
pub fn describe(what: &What) -> String {
    let What::Fault(fault) = what else { return serde_json::to_string(what).unwrap_or_default() };
    let code = fault.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
    format!("fault: the next {} that fits: {}{code}", fault.call, fault.kind.as_str())
}
