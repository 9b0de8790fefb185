//! The replay against a simulation that does nothing clever: it lives every second, and has the rules in its own words. Starts,
//! billed seconds and every wait agree to the digit.

mod support;

use reveille_plan::replay::events::{Event, Outside};
use reveille_plan::replay::on_demand::{OnDemand, Replay};
use reveille_plan::replay::tally::Tally;
use std::collections::BTreeSet;
use support::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Off,
    Booting { since: i64 },
    Ready { since: i64, at: i64 },
    Stopping { since: i64 },
}

struct Second {
    node: Node,
    /// Ends of the calls in progress.
    calls: Vec<i64>,
    /// Arrival and length of those who wait.
    waiting: Vec<(i64, i64)>,
    /// The newest wish, and whether it was an entry.
    wish: Option<(i64, bool)>,
    /// The wish that caused the launch was an entry.
    by_entry: bool,
    last_call: Option<i64>,
    reading: Option<i64>,
    starts: u64,
    billed: i64,
    waits: BTreeSet<(i64, Option<i64>)>,
    waited: Vec<i64>,
}

impl Second {
    fn live(plan: &OnDemand, events: &[Event], to: i64) -> Self {
        let (node, wish, last_call, reading) = (Node::Off, None, None, None);
        let mut world = Self {
            node,
            calls: Vec::new(),
            waiting: Vec::new(),
            wish,
            by_entry: false,
            last_call,
            reading,
            starts: 0,
            billed: 0,
            waits: BTreeSet::new(),
            waited: Vec::new(),
        };
        let mut events = events.iter().peekable();
        let mut now = FROM;
        while now < to || !world.waiting.is_empty() {
            world.second(plan, now);
            while now < to && events.peek().is_some_and(|event| event.at == now) {
                match events.next().map(|event| event.what) {
                    Some(Outside::Entry) if plan.prewarms => world.wanted(now, true),
                    Some(Outside::Call { lasts }) => world.arrives(plan, now, lasts),
                    Some(Outside::Entry) | None => {}
                }
            }
            if now < to && now % (plan.policy.tick.num_seconds()) == 0 {
                world.tick(plan, now);
            }
            if now < to && matches!(world.node, Node::Booting { .. } | Node::Ready { .. }) {
                world.billed += 1;
            }
            now += 1;
        }
        world
    }

    fn second(&mut self, plan: &OnDemand, now: i64) {
        match self.node {
            Node::Booting { since } if now == since + plan.boot => {
                self.node = Node::Ready { since, at: now };
                for (arrived, lasts) in std::mem::take(&mut self.waiting) {
                    self.connect(now, arrived, lasts);
                }
            }
            Node::Stopping { since } if now == since + plan.stop => {
                self.node = Node::Off;
                if let Some((at, by_entry)) = self.wish.filter(|(at, _)| now - at < 3600) {
                    let _ = at;
                    self.launch(now, by_entry);
                }
            }
            Node::Off | Node::Booting { .. } | Node::Ready { .. } | Node::Stopping { .. } => {}
        }
        if self.calls.contains(&now) {
            self.last_call = Some(now);
        }
        self.calls.retain(|end| *end > now);
        let (gone, waiting) = self.waiting.iter().partition(|(arrived, _)| now >= arrived + plan.patience);
        self.waiting = waiting;
        let gone: Vec<(i64, i64)> = gone;
        for (arrived, _) in gone {
            self.waits.insert((arrived, None));
            self.waited.push(plan.patience);
        }
    }

    fn launch(&mut self, now: i64, by_entry: bool) {
        self.node = Node::Booting { since: now };
        self.by_entry = by_entry;
        self.starts += 1;
    }

    fn wanted(&mut self, now: i64, by_entry: bool) {
        self.wish = Some((now, by_entry));
        if self.node == Node::Off {
            self.launch(now, by_entry);
        }
    }

    fn arrives(&mut self, _: &OnDemand, now: i64, lasts: i64) {
        if matches!(self.node, Node::Ready { .. }) {
            return self.connect(now, now, lasts);
        }
        self.waiting.push((now, lasts));
        self.wanted(now, false);
    }

    fn connect(&mut self, now: i64, arrived: i64, lasts: i64) {
        self.waits.insert((arrived, Some(now - arrived)));
        self.waited.push(now - arrived);
        self.calls.push(now + lasts);
        self.last_call = self.last_call.max(Some(now));
    }

    fn tick(&mut self, plan: &OnDemand, now: i64) {
        let (idle, prewarm) = (plan.policy.idle.num_seconds(), plan.policy.prewarm.num_seconds());
        let tick = plan.policy.tick.num_seconds();
        let (launched, ready) = match self.node {
            Node::Booting { since } => (since, None),
            Node::Ready { since, at } => (since, Some(at)),
            Node::Off | Node::Stopping { .. } => return,
        };
        // A call in progress or waiting keeps it, and so does its youth.
        if !self.calls.is_empty() || now - launched < plan.policy.grace.num_seconds() || !self.waiting.is_empty() {
            return;
        }
        let of = |by_entry: bool| if by_entry { prewarm } else { idle };
        let mut speaks = vec![(launched, of(self.by_entry))];
        speaks.extend(ready.map(|at| (at, of(self.by_entry))));
        speaks.extend(self.wish.map(|(at, by_entry)| (at, of(by_entry))));
        speaks.extend(self.last_call.filter(|at| *at >= launched).map(|at| (at, idle)));
        let newest = speaks.iter().map(|(at, _)| *at).max().unwrap_or(launched);
        let until = speaks.iter().map(|(at, stays)| at + stays).max().unwrap_or(launched);
        if until - now > tick {
            return;
        }
        match self.reading.filter(|at| *at >= newest) {
            None => self.reading = Some(now),
            Some(at) if now >= until && now - at >= 240 => {
                self.node = Node::Stopping { since: now };
                self.billed += (60 - (now - launched)).max(0);
                self.wish = None;
                self.reading = None;
            }
            Some(_) => {}
        }
    }
}

fn replayed(plan: &OnDemand, events: &[Event], to: i64) -> (BTreeSet<(i64, Option<i64>)>, Tally) {
    let mut replay = Replay::new(plan.clone(), FROM, to);
    replay.waits = Some(Vec::new());
    events.iter().for_each(|event| replay.take(*event));
    let (replay, tally) = replay.finish();
    (replay.waits.unwrap_or_default().into_iter().collect(), tally)
}

fn compare(name: &str, plan: &OnDemand, events: &[Event], to: i64) {
    let (waits, tally) = replayed(plan, events, to);
    let world = Second::live(plan, events, to);
    assert_eq!(waits, world.waits, "{name}: waits");
    assert_eq!((tally.starts, tally.node_seconds), (world.starts, world.billed), "{name}: starts and billed seconds");
    let mut sorted = world.waited.clone();
    sorted.sort_unstable();
    let calls = sorted.len();
    assert_eq!(tally.calls, calls as u64, "{name}: calls");
    let at = |percent: usize| sorted[(calls * percent).div_ceil(100).max(1) - 1];
    assert_eq!((tally.wait_at(50), tally.wait_at(95)), (at(50), at(95)), "{name}: p50 and p95");
    let mean = sorted.iter().sum::<i64>() as f64 / calls as f64;
    assert!((tally.mean_wait() - mean).abs() < 1e-9, "{name}: mean");
    let cold = sorted.iter().filter(|wait| **wait as f64 >= 0.95 * plan.boot as f64).count();
    assert_eq!(tally.cold, cold as u64, "{name}: cold");
}

#[test]
fn a_simulation_of_every_second_agrees_to_the_digit() {
    for seed in 0..4 {
        let events = random_events(100 + seed, 3, 12 + 8 * i64::try_from(seed).expect("a small number"));
        let to = FROM + 3 * 86_400;
        for (idle, prewarm, tick) in [(30, 30, 5), (10, 10, 5), (60, 15, 5), (20, 45, 15), (5, 5, 5), (10, 10, 1)] {
            let name = format!("seed {seed}, idle {idle}, tick {tick}");
            let without = plan(idle, idle, tick);
            compare(&name, &without, &events, to);
            let with = OnDemand { prewarms: true, ..plan(idle, prewarm, tick) };
            compare(&format!("{name}, pre-warm {prewarm}"), &with, &events, to);
            let slow = OnDemand { boot: 200, stop: 120, patience: 240, ..with };
            compare(&format!("{name}, slow"), &slow, &events, to);
        }
    }
}
