//! The replay against the step machines of the functions: every tick, every wake and every lease over the in-memory world. The
//! starts, the stops and the waits are the same to the second.

mod support;

use chrono::TimeDelta;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reveille::domain::{Beat, LeaseId, NodeId, NodeSeen, NodeState, PoolName, RunId, WakeSource};
use reveille::prices::Prices;
use reveille::run::{
    Answer, Call, Caller, Cause, Context, IdleRun, LeaseAnswer, LeaseRun, LeaseWish, Outcome, PoolPolicy, Run, Step,
    Target, WakeRun, WakeWish,
};
use reveille::world::{World, WorldFault};
use reveille_plan::replay::events::{Event, Outside};
use reveille_plan::replay::on_demand::{OnDemand, Replay};
use std::collections::{BTreeMap, BTreeSet};
use support::*;

/// What happened: starts and stops by node, and each call's arrival and wait.
#[derive(Debug, PartialEq, Eq)]
struct Happened {
    effects: Vec<(i64, &'static str, usize)>,
    waits: BTreeSet<(i64, Option<i64>)>,
}

fn replayed(plan: &OnDemand, events: &[Event], to: i64) -> Happened {
    let mut replay = Replay::new(plan.clone(), FROM, to);
    (replay.effects, replay.waits) = (Some(Vec::new()), Some(Vec::new()));
    events.iter().for_each(|event| replay.take(*event));
    let (replay, _) = replay.finish();
    let before_the_end =
        |effects: Vec<(i64, &'static str, usize)>| effects.into_iter().filter(|(at, ..)| *at < to).collect();
    Happened {
        effects: before_the_end(replay.effects.unwrap_or_default()),
        waits: replay.waits.unwrap_or_default().into_iter().collect(),
    }
}

/// The same by the functions' own runs, second by second where anything is due, and with every tick.
struct Machines {
    world: World,
    plan: OnDemand,
    random: StdRng,
    runs: u64,
    ends: BTreeMap<(i64, u64), ()>,
    waiting: Vec<(u64, i64, i64)>,
    ready_at: BTreeMap<NodeId, i64>,
    waits: BTreeSet<(i64, Option<i64>)>,
}

fn node_id(number: usize) -> NodeId {
    NodeId::new(format!("i-{number:04}")).expect("an id")
}

fn pool() -> PoolName {
    PoolName::new("trace").expect("a name")
}

fn caller() -> Caller {
    Caller { class: "trace".to_owned(), bucket: None }
}

impl Machines {
    fn new(plan: &OnDemand) -> Self {
        let mut world = World::at(instant(FROM));
        (world.pending, world.stopping) = (TimeDelta::zero(), TimeDelta::seconds(plan.stop));
        for number in 0..plan.nodes {
            world.add_node(NodeSeen {
                id: node_id(number),
                name: None,
                pool: pool(),
                tags: BTreeMap::new(),
                state: NodeState::Stopped,
                launched_at: Some(instant(FROM - 86_400)),
                state_reason: None,
                transition_at: None,
                address: None,
                spot: false,
                instance_type: None,
                public_address: None,
            });
        }
        Self {
            world,
            plan: plan.clone(),
            random: StdRng::seed_from_u64(plan.seed),
            runs: 0,
            ends: BTreeMap::new(),
            waiting: Vec::new(),
            ready_at: BTreeMap::new(),
            waits: BTreeSet::new(),
        }
    }

    fn context(&mut self) -> Context {
        self.runs += 1;
        let policy = PoolPolicy { rules: self.plan.rules.clone(), ..PoolPolicy::default() };
        Context {
            run: RunId(format!("run-{}", self.runs)),
            now: self.world.now(),
            time_out: TimeDelta::seconds(60),
            policy: self.plan.policy.clone(),
            pools: BTreeMap::from([(pool(), policy)]),
            prices: Prices::new("us-east-1", BTreeMap::new()),
        }
    }

    /// Carries a run out; a START may meet no capacity.
    fn drive(&mut self, run: &mut impl Run) -> Outcome {
        let mut answers: Vec<Answer> = Vec::new();
        loop {
            match run.next(std::mem::take(&mut answers)) {
                Step::Done(outcome) => return outcome,
                Step::Calls(calls) => {
                    for call in calls {
                        let is_start = matches!(call, Call::Start { .. });
                        if is_start && self.plan.refusal > 0.0 && self.random.random_bool(self.plan.refusal) {
                            let code = "InsufficientInstanceCapacity";
                            self.world.fail(WorldFault { call: "start", node: None, code, after: false, times: 1 });
                        }
                        answers.push(self.world.answer(&call));
                        // Nothing is pending here.
                        self.world.set_now(self.world.now());
                    }
                }
            }
        }
    }

    /// The node's own word, newest now.
    fn beat(&mut self) {
        let now = self.world.now();
        for number in 0..self.plan.nodes {
            let id = node_id(number);
            let Some(seen) = self.world.node(&id).filter(|seen| seen.state == NodeState::Running).cloned() else {
                continue;
            };
            let launched = seen.launched_at.expect("it runs");
            let ready_since = launched + TimeDelta::seconds(self.plan.boot);
            let ready = now >= ready_since;
            self.ready_at.insert(id.clone(), ready_since.timestamp());
            let beat = Beat {
                at: now,
                ready,
                row: u32::from(ready),
                ready_since: ready.then_some(ready_since),
                open: None,
                counted: None,
                gpu: None,
                open_at: None,
                used_at: None,
                since: Some(launched),
            };
            self.world.beats.insert(id, beat);
        }
    }

    fn lease(&mut self, id: u64, lasts: Option<i64>) -> Option<LeaseAnswer> {
        let ctx = self.context();
        let wish = LeaseWish {
            id: LeaseId::new(format!("c{id}")).expect("an id"),
            target: lasts.map(|_| Target::Pool(pool())),
            lasts: lasts.map(|lasts| TimeDelta::seconds(lasts + 60)),
            renews: false,
            caller: caller(),
        };
        self.drive(&mut LeaseRun::new(ctx, wish)).lease
    }

    /// Asks for a lease; whether it was given.
    fn connects(&mut self, id: u64, arrived: i64, lasts: i64) -> bool {
        let now = self.world.now().timestamp();
        let is_given = matches!(self.lease(id, Some(lasts)), Some(LeaseAnswer::Held { .. }));
        if is_given {
            self.waits.insert((arrived, Some(now - arrived)));
            self.ends.insert((now + lasts, id), ());
        }
        is_given
    }

    fn looks_again(&mut self) {
        let ctx = self.context();
        self.drive(&mut WakeRun::new(ctx, Cause::StateChange));
    }

    fn has_room(&mut self) -> bool {
        let now = self.world.now();
        let rules = self.plan.rules.clone();
        (0..self.plan.nodes).any(|number| {
            let id = node_id(number);
            let seen = self.world.node(&id).cloned().expect("a node");
            let ready = self.ready_at.get(&id).is_some_and(|at| *at <= now.timestamp());
            let calls = self.world.record(&pool()).node(&id).calls(now);
            seen.state == NodeState::Running && ready && rules.has_room(calls)
        })
    }

    fn serve_waiting(&mut self) {
        while let Some((id, arrived, lasts)) = self.waiting.first().copied().filter(|_| self.has_room()) {
            self.waiting.remove(0);
            assert!(self.connects(id, arrived, lasts), "there is room");
        }
    }

    fn play(mut self, events: &[Event], to: i64) -> Happened {
        let mut calls = 0;
        let mut next = events.iter().peekable();
        let mut states: Vec<NodeState> = vec![NodeState::Stopped; self.plan.nodes];
        let tick = self.plan.policy.tick.num_seconds();
        let mut now = FROM;
        while now < to || !self.waiting.is_empty() {
            self.world.set_now(instant(now));
            self.beat();
            let is_ready = self.ready_at.values().any(|at| *at == now);
            let now_states: Vec<NodeState> =
                (0..self.plan.nodes).map(|number| self.world.node(&node_id(number)).expect("a node").state).collect();
            if is_ready {
                self.serve_waiting();
            }
            if states.iter().zip(&now_states).any(|(a, b)| *a == NodeState::Stopping && *b == NodeState::Stopped) {
                self.looks_again();
            }
            while let Some(((end, id), ())) =
                self.ends.first_key_value().map(|(key, ())| (*key, ())).filter(|((end, _), ())| *end <= now)
            {
                self.ends.remove(&(end, id));
                self.lease(id, None);
                self.serve_waiting();
            }
            while let Some((id, arrived, _)) =
                self.waiting.first().copied().filter(|(_, arrived, _)| arrived + self.plan.patience <= now)
            {
                self.waiting.remove(0);
                self.lease(id, None);
                self.waits.insert((arrived, None));
            }
            if !self.waiting.is_empty() && self.is_retry_due(now) {
                self.looks_again();
            }
            if now < to {
                while let Some(event) = next.next_if(|event| event.at <= now) {
                    self.outside(event, &mut calls);
                }
                if now % tick == 0 {
                    let ctx = self.context();
                    self.drive(&mut IdleRun::new(ctx));
                }
            }
            states =
                (0..self.plan.nodes).map(|number| self.world.node(&node_id(number)).expect("a node").state).collect();
            now += 1;
        }
        let number =
            |id: &NodeId| (0..self.plan.nodes).find(|number| node_id(*number) == *id).expect("a node of the plan");
        let effects = self.world.effects.iter().map(|(at, what, id)| (at.timestamp(), *what, number(id)));
        Happened { effects: effects.filter(|(at, ..)| *at < to).collect(), waits: self.waits }
    }

    fn is_retry_due(&mut self, now: i64) -> bool {
        let record = self.world.record(&pool()).clone();
        record.nodes.values().filter_map(|node| node.fault.as_ref()).any(|fault| fault.retry_at.timestamp() == now)
    }

    fn outside(&mut self, event: &Event, calls: &mut u64) {
        match event.what {
            Outside::Entry if self.plan.prewarms => {
                let ctx = self.context();
                let wish = WakeWish::new(Target::Pool(pool()), WakeSource::Prewarm);
                self.drive(&mut WakeRun::new(ctx, Cause::Wishes(vec![wish])));
            }
            Outside::Entry => {}
            Outside::Call { lasts } => {
                *calls += 1;
                // First come, first served.
                let has_turn = self.waiting.is_empty() || !self.has_room();
                assert!(has_turn, "who waits is served as soon as there is room");
                if !self.connects(*calls, event.at, lasts) {
                    self.waiting.push((*calls, event.at, lasts));
                }
            }
        }
    }
}

fn compare(name: &str, plan: &OnDemand, events: &[Event], to: i64) {
    let (fast, slow) = (replayed(plan, events, to), Machines::new(plan).play(events, to));
    let pairs = fast.effects.iter().zip(&slow.effects);
    if let Some((fast, slow)) = pairs.clone().find(|(fast, slow)| fast != slow) {
        let (ours, theirs) = (clock(fast.0), clock(slow.0));
        panic!("{name}: {ours} {fast:?} by the replay, {theirs} {slow:?} by the machines");
    }
    assert_eq!(fast, slow, "{name}");
    assert!(!fast.effects.is_empty(), "{name}: something happens");
}

#[test]
fn the_replay_is_the_machines_with_every_tick() {
    let (day, events) = (86_400, random_events(1, 2, 20));
    let base = plan(30, 30, 5);
    let rows = [
        ("idle 30", base.clone()),
        ("idle 10", plan(10, 10, 5)),
        ("idle 5 without grace", plan(5, 5, 5)),
        ("idle 60, tick 15", plan(60, 60, 15)),
        ("pre-warm 10 under idle 30", OnDemand { prewarms: true, ..plan(30, 10, 5) }),
        ("pre-warm 30 over idle 10", OnDemand { prewarms: true, ..plan(10, 30, 5) }),
        ("pre-warm, tick 1", OnDemand { prewarms: true, ..plan(10, 5, 1) }),
        ("a short pre-warm under a long idle time", OnDemand { prewarms: true, ..plan(60, 5, 5) }),
        ("slow boot and stop", OnDemand { boot: 240, stop: 200, patience: 600, ..base.clone() }),
        ("impatient callers", OnDemand { boot: 120, patience: 60, prewarms: true, ..base.clone() }),
        ("no capacity half of the time", OnDemand { refusal: 0.5, seed: 3, ..base.clone() }),
        (
            "no capacity, patient callers",
            OnDemand { refusal: 0.7, seed: 4, patience: 900, prewarms: true, ..plan(10, 10, 5) },
        ),
    ];
    for (name, plan) in rows {
        compare(name, &plan, &events, FROM + 2 * day);
    }
}

#[test]
fn on_a_busy_day_too() {
    let events = random_events(11, 1, 250);
    for (name, plan) in [
        ("idle 5", OnDemand { prewarms: true, ..plan(5, 5, 5) }),
        ("pre-warm 10 under idle 30", OnDemand { prewarms: true, ..plan(30, 10, 5) }),
        ("pre-warm 30 over idle 10", OnDemand { prewarms: true, ..plan(10, 30, 5) }),
        ("impatient callers", OnDemand { prewarms: true, boot: 120, patience: 60, ..plan(10, 5, 1) }),
    ] {
        compare(name, &plan, &events, FROM + 86_400);
    }
}

/// A caller's wake speaks for longer than the pre-warm that replaces it after the caller has given up.
#[test]
fn a_pre_warm_may_take_time_back() {
    let plan = OnDemand { prewarms: true, boot: 120, patience: 30, ..plan(60, 5, 5) };
    let events = [(36_000, Outside::Entry), (36_010, Outside::Call { lasts: 60 }), (37_200, Outside::Entry)];
    compare("an hour and five minutes", &plan, &events.map(|(at, what)| Event { at: FROM + at, what }), FROM + 86_400);
}

/// Refused nodes are tried again while somebody waits, and not in the past.
#[test]
fn with_callers_who_wait_for_no_capacity_too() {
    let events = random_events(21, 1, 120);
    for (nodes, patience) in [(1, 20), (2, 20), (3, 170)] {
        let mut plan = OnDemand { nodes, refusal: 0.6, patience, seed: 8, ..plan(10, 10, 5) };
        plan.rules.calls_per_node = Some(1);
        compare(&format!("{nodes} nodes, patience of {patience} s"), &plan, &events, FROM + 86_400);
    }
}

#[test]
fn with_several_nodes_too() {
    let day = 86_400;
    for (name, nodes, per_node, calls, refusal, plan) in [
        ("two for one call each", 2, 1, 60, 0.0, plan(10, 10, 5)),
        ("three for two calls each", 3, 2, 150, 0.0, plan(10, 10, 5)),
        ("with refusals", 3, 1, 60, 0.3, plan(10, 10, 5)),
        ("a busy day with refusals and a check each minute", 3, 2, 300, 0.3, plan(7, 6, 1)),
    ] {
        let mut plan = OnDemand { nodes, refusal, prewarms: true, patience: 120, ..plan };
        plan.rules.calls_per_node = Some(per_node);
        compare(name, &plan, &random_events(9, 1, calls), FROM + day);
    }
}

#[test]
fn with_warm_windows_too() {
    let mut plan = plan(30, 30, 5);
    plan.rules.warm = vec![window("09:00", "12:30")];
    compare("a window in the morning", &plan, &random_events(5, 2, 12), FROM + 2 * 86_400);
}
