//! A day: what is configured and what happens when, drawn from a seed.

use crate::faults::{self, Fault, Kind};
use crate::setup::{BudgetSetup, PoolSetup, ReadyBy, Setup};
use crate::trace::Trace;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use reveille::decide::uptime::LocalDay;
use serde::{Deserialize, Serialize};

/// What becomes of EC2's events for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// None comes.
    Lost,
    /// Each comes three minutes late.
    Late,
    /// Each comes twice.
    Twice,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields are pools, nodes, seconds, minutes and codes, as their names say")]
pub enum What {
    /// Somebody wants to talk for so many seconds; announced is how long before the app was opened. An app that dies
    /// renews and ends nothing.
    Call { pool: String, lasts: i64, announced: Option<i64>, dies: bool },
    /// The app is opened, and nobody calls.
    Prewarm { pool: String, node: Option<String> },
    /// So many apps are opened at once.
    Crowd { pool: String, apps: u32 },
    /// A line of the front's log.
    LogLine { pool: String },
    /// Somebody looks at the status.
    Status { pool: String },
    /// A person starts a node.
    HandStart { node: String },
    /// A person stops a node.
    HandStop { node: String },
    /// A person holds a node.
    Hold { pool: String, node: String, minutes: i64 },
    /// A person closes the gate.
    GateClosed { pool: String, minutes: i64 },
    /// EC2 has no capacity for a node.
    NoCapacity { node: String, minutes: i64 },
    /// EC2 has no capacity for a type.
    NoCapacityType { kind: String, minutes: i64 },
    /// EC2 refuses to stop a node.
    RefusesStop { node: String, code: String, minutes: i64 },
    /// The node's next stop hangs.
    Hangs { node: String },
    /// The node's next start falls back.
    FallsBack { node: String, code: String },
    /// The node's beats do not come.
    NoBeats { node: String, minutes: i64 },
    /// The node's app is not ready.
    NotReady { node: String, minutes: i64 },
    /// The node's metrics come late.
    MetricsLate { node: String, seconds: i64, minutes: i64 },
    /// The node's metrics do not come.
    NoMetrics { node: String, minutes: i64 },
    /// The functions' clock is off.
    ClockOff { seconds: i64, minutes: i64 },
    /// The next invocation is slow.
    Slow { seconds: i64 },
    /// The next tick does not come.
    TickLost,
    /// The next tick comes twice.
    TickTwice,
    /// The next tick is late.
    TickLate { seconds: i64 },
    /// EC2's events, for a while.
    Events { fate: Fate, minutes: i64 },
    /// A fault waits for its call.
    Fault(Fault),
    /// Every such call is refused for a while.
    Outage { call: String, code: String, minutes: i64 },
    /// A person deletes the AWS budget.
    BudgetGone,
    /// A person deletes its notifications.
    NoticesGone,
    /// The operator configures another amount.
    Amount { to: String },
}

/// One thing and its second of the day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    /// Seconds from the day's start.
    pub at: i64,
    /// What.
    pub what: What,
}

/// A whole day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    /// What it was drawn from; the time that calls take is drawn from it too.
    pub seed: u64,
    /// What is configured.
    pub setup: Setup,
    /// What happens, in order.
    pub happenings: Vec<Happening>,
}

/// Zones and dates: nights on which clocks change among them, the end of a month and of a year.
const DATES: &[(&str, &str)] = &[
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Pacific/Auckland", "2026-04-05"),
    ("Pacific/Auckland", "2026-09-27"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Asia/Kolkata", "2026-06-10"),
    ("Asia/Seoul", "2026-11-30"),
    ("UTC", "2026-11-30"),
    ("America/Los_Angeles", "2026-12-31"),
];

impl Day {
    /// The day of a seed.
    pub fn of(seed: u64, trace: &Trace) -> Day {
        let mut draw = Draw { random: StdRng::seed_from_u64(seed), happenings: Vec::new() };
        let pairs = draw.pairs(seed);
        let mut setup = draw.setup(&pairs);
        draw.traffic(&setup, trace, seed);
        draw.trouble(&setup);
        draw.faults(&mut setup, &pairs);
        let mut happenings = draw.happenings;
        happenings.retain(|one| one.at < setup.hours * 3600);
        happenings.sort_by_key(|one| one.at);
        Day { seed, setup, happenings }
    }

    /// The instant of a happening.
    pub fn instant(&self, at: i64) -> DateTime<Utc> {
        self.setup.start + TimeDelta::seconds(at)
    }

    /// When the day is over.
    pub fn end(&self) -> DateTime<Utc> {
        self.setup.start + TimeDelta::hours(self.setup.hours)
    }
}

struct Draw {
    random: StdRng,
    happenings: Vec<Happening>,
}

type Pair = (Kind, &'static str);

impl Draw {
    fn one_of<T: Copy>(&mut self, of: &[T], fallback: T) -> T {
        of.choose(&mut self.random).copied().unwrap_or(fallback)
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_ratio(percent.min(100), 100)
    }

    fn between(&mut self, from: i64, to: i64) -> i64 {
        self.random.random_range(from..to)
    }

    fn add(&mut self, at: i64, what: What) {
        self.happenings.push(Happening { at, what });
    }

    fn anywhen(&mut self, hours: i64, what: What) {
        let at = self.between(600, hours * 3600 - 3600);
        self.add(at, what);
    }

    /// The faults of the day: some in turn, so that every one is tried, and some at random. Every fourth day is nearly calm.
    fn pairs(&mut self, seed: u64) -> Vec<Pair> {
        let all = faults::pairs();
        let many = if seed.is_multiple_of(4) { 3 } else { self.between(6, 22) as usize };
        let first = usize::try_from(seed).unwrap_or_default().wrapping_mul(5) % all.len();
        let mut chosen: Vec<Pair> = all.iter().cycle().skip(first).take(many.min(6)).copied().collect();
        while chosen.len() < many {
            let (fallback, random) = (all[0], all.choose(&mut self.random).copied());
            chosen.push(random.unwrap_or(fallback));
        }
        chosen
    }

    fn setup(&mut self, pairs: &[Pair]) -> Setup {
        let (zone, date) = self.one_of(DATES, ("UTC", "2026-11-30"));
        let tz: Tz = zone.parse().unwrap_or(Tz::UTC);
        let date: NaiveDate = date.parse().unwrap_or_default();
        let day = LocalDay::on(tz, date);
        let is_hit = |calls: &[&str]| pairs.iter().any(|(_, call)| calls.contains(call));
        let two = self.chance(35);
        let pools = if two { vec!["voice", "batch"] } else { vec!["voice"] };
        let mut left = self.between(pools.len() as i64, 4);
        let pools: Vec<PoolSetup> = pools
            .iter()
            .enumerate()
            .map(|(n, name)| {
                let nodes = if two && n == 0 { self.between(1, left) } else { left };
                left -= nodes;
                self.pool(name, nodes, pairs)
            })
            .collect();
        let with_budget =
            is_hit(&["budget", "budget_note", "create_budget", "set_budget_amount", "create_notices", "note_budget"])
                || is_hit(&["set_gate", "disks"])
                || self.chance(50);
        let gate = is_hit(&["set_gate"]);
        let amount = if gate { self.between(9, 14) } else { self.between(9, 200) };
        let enforce =
            if gate { self.one_of(&["gate", "stop"], "gate") } else { self.one_of(&["alert", "gate", "stop"], "gate") };
        Setup {
            start: day.from,
            hours: (day.to - day.from).num_hours() + 2,
            zone: zone.to_owned(),
            pools,
            budget: with_budget.then(|| BudgetSetup { amount: amount.to_string(), enforce: enforce.to_owned() }),
            prewarm_minutes: self.chance(25).then_some(10),
            uptime_hours: self.one_of(&[2, 6, 20], 20),
            boot_seconds: self.between(30, 150),
        }
    }

    fn pool(&mut self, name: &str, nodes: i64, pairs: &[Pair]) -> PoolSetup {
        let is_hit = |calls: &[&str]| pairs.iter().any(|(_, call)| calls.contains(call));
        let first = name == "voice";
        let needs = |calls: &[&str]| first && is_hit(calls);
        let beat = needs(&["beats"]) || self.chance(35);
        let leased = needs(&["give_lease", "renew_lease", "end_lease", "stop_waiting"]) || self.chance(50);
        let logs = needs(&["logs"]) || self.chance(20);
        let gauge = needs(&["activity"]) || self.chance(60);
        let requests = !(gauge || beat || logs) || self.chance(60);
        let mut ready = self.one_of(&[ReadyBy::Checks, ReadyBy::Hosts], ReadyBy::Checks);
        if needs(&["readiness"]) {
            ready = ReadyBy::Checks;
        } else if beat && self.chance(70) {
            ready = ReadyBy::Beat;
        }
        let per_node = (leased && self.chance(60)).then(|| self.between(1, 5) as u32);
        let kinds = ["g6.xlarge", "g5.xlarge"];
        let typed = needs(&["resize"]) || self.chance(20);
        PoolSetup {
            name: name.to_owned(),
            nodes: (0..nodes).map(|n| format!("i-{name}{n}")).collect(),
            ready,
            requests,
            gauge,
            beat,
            logs,
            leased,
            per_node,
            fill_percent: per_node.filter(|_| self.chance(30)).map(|_| 75),
            warm: self.chance(20).then(|| self.window(nodes)),
            types: if typed { kinds.map(str::to_owned).to_vec() } else { Vec::new() },
        }
    }

    /// Some windows lie over the hours in which clocks change.
    fn window(&mut self, nodes: i64) -> (String, String, u32) {
        let (from, to) = self.one_of(&[("01:30", "03:30"), ("07:00", "10:00"), ("22:00", "00:30")], ("07:00", "10:00"));
        (from.to_owned(), to.to_owned(), self.between(1, nodes + 1) as u32)
    }

    fn traffic(&mut self, setup: &Setup, trace: &Trace, seed: u64) {
        for (n, pool) in setup.pools.iter().enumerate() {
            let wanted = self.one_of(&[3.0, 12.0, 30.0, 80.0], 12.0);
            let day = self.random.random_range(0..trace.days().max(1));
            let calls = trace.arrivals(day, wanted, setup.start, seed.wrapping_add(n as u64)).unwrap_or_default();
            for call in calls {
                let announced = call.announced.map(|lead| lead.num_seconds());
                let long = if self.chance(8) { 8 } else { 1 };
                let (lasts, dies) = (call.lasts.num_seconds() * long, self.chance(6));
                let what = What::Call { pool: pool.name.clone(), lasts, announced, dies };
                self.add((call.at - setup.start).num_seconds(), what);
            }
        }
    }

    /// What people, nodes and AWS do besides.
    fn trouble(&mut self, setup: &Setup) {
        let hours = setup.hours;
        for _ in 0..self.between(4, 16) {
            let Some(pool) = setup.pools.choose(&mut self.random).cloned() else { return };
            let Some(node) = pool.nodes.choose(&mut self.random).cloned() else { return };
            let what = self.one_trouble(pool, node, setup);
            self.anywhen(hours, what);
        }
    }

    fn one_trouble(&mut self, pool: PoolSetup, node: String, setup: &Setup) -> What {
        let pool = pool.name;
        match self.between(0, 24) {
            0 => What::Prewarm { pool, node: self.chance(40).then_some(node) },
            1 => What::Crowd { pool, apps: self.between(2, 12) as u32 },
            2 | 3 => What::LogLine { pool },
            4 => What::Status { pool },
            5 => What::HandStart { node },
            6 => What::HandStop { node },
            7 => What::Hold { pool, node, minutes: self.between(10, 300) },
            8 => What::GateClosed { pool, minutes: self.between(5, 120) },
            9 => What::NoCapacity { node, minutes: self.between(3, 360) },
            10 => What::NoCapacityType { kind: "g6.xlarge".to_owned(), minutes: self.between(3, 360) },
            11 => {
                let code = self.one_of(&["OperationNotPermitted", "IncorrectInstanceState"], "OperationNotPermitted");
                What::RefusesStop { node, code: code.to_owned(), minutes: self.between(10, 240) }
            }
            12 => What::Hangs { node },
            13 => {
                let code = self.one_of(&["Client.InternalError", "Server.InternalError"], "Client.InternalError");
                What::FallsBack { node, code: code.to_owned() }
            }
            14 => What::NoBeats { node, minutes: self.between(2, 120) },
            15 => What::NotReady { node, minutes: self.between(1, 90) },
            16 => What::MetricsLate { node, seconds: self.between(60, 900), minutes: self.between(10, 180) },
            17 => What::NoMetrics { node, minutes: self.between(3, 150) },
            18 => What::ClockOff { seconds: self.between(-20, 21), minutes: self.between(5, 120) },
            19 => What::Slow { seconds: self.between(5, 50) },
            20 => match self.between(0, 3) {
                0 => What::TickLost,
                1 => What::TickTwice,
                _ => What::TickLate { seconds: self.between(20, 200) },
            },
            21 => What::Events {
                fate: self.one_of(&[Fate::Lost, Fate::Late, Fate::Twice], Fate::Lost),
                minutes: self.between(30, 300),
            },
            22 => {
                let call = self.one_of(&["activity", "describe", "read_ledger", "beats", "publish"], "activity");
                let code = self.one_of(faults::codes(call), "Throttling");
                What::Outage { call: call.to_owned(), code: code.to_owned(), minutes: self.between(2, 90) }
            }
            _ if setup.budget.is_some() => match self.between(0, 3) {
                0 => What::BudgetGone,
                1 => What::NoticesGone,
                _ => What::Amount { to: self.between(9, 300).to_string() },
            },
            _ => What::LogLine { pool },
        }
    }

    /// Each fault at a random time, and what its call needs to be made at all.
    fn faults(&mut self, setup: &mut Setup, pairs: &[Pair]) {
        let hours = setup.hours;
        for (kind, call) in pairs {
            let code =
                (*kind == Kind::Refused).then(|| self.one_of(faults::codes(call), "RequestLimitExceeded").to_owned());
            let drawn = self.between(0, hours * 3600 * 2 / 3);
            // The note is written with the budget, which the first look of the day makes.
            let at = if *call == "note_budget" { 0 } else { drawn };
            self.occasion(setup, call, at);
            self.add(at, What::Fault(Fault { kind: *kind, call: (*call).to_owned(), code }));
        }
    }

    /// Rare calls are given a reason, a while after the fault is there.
    fn occasion(&mut self, setup: &Setup, call: &str, at: i64) {
        let Some(pool) = setup.pools.first() else { return };
        let (name, nodes) = (pool.name.clone(), pool.nodes.clone());
        let after = at + self.between(60, 3600);
        match call {
            "set_budget_amount" | "note_budget" => {
                let to = self.between(150, 400).to_string();
                self.add(after, What::Amount { to });
            }
            "create_notices" => self.add(after, What::NoticesGone),
            "create_budget" => self.add(after, What::BudgetGone),
            "resize" => {
                self.add(after, What::NoCapacityType { kind: "g6.xlarge".to_owned(), minutes: 200 });
                self.add(after + 60, What::Prewarm { pool: name, node: None });
            }
            "claim_alert" | "publish" | "mark_published" => {
                for node in nodes {
                    self.add(after, What::NoCapacity { node, minutes: 30 });
                }
                self.add(after + 60, What::LogLine { pool: name });
            }
            "give_lease" | "renew_lease" | "end_lease" | "stop_waiting" | "stop" | "start" | "claim" | "beats"
            | "logs" => {
                let lasts = self.between(200, 900);
                self.add(after, What::Call { pool: name, lasts, announced: Some(200), dies: false });
            }
            _ => {}
        }
    }
}
