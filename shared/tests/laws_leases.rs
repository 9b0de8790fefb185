//! Laws of leases: two calls and an idle check in every order, call by call, with a fault here and there. Fixed seeds: a
//! failure is the same failure tomorrow.

mod support;
mod support_rules;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError};
use reveille::decide::Reason;
use reveille::domain::{LeaseId, Mark, NodeId, NodeState, RunId};
use reveille::run::{Answer, Call, IdleRun, LeaseAnswer, LeaseRun, LeaseWish, Outcome, Run, Step};
use reveille::world::{World, WorldFault};
use std::collections::BTreeSet;
use support::*;
use support_rules::*;

const NODES: [&str; 2] = ["i-a", "i-b"];

/// Two calls a node.
fn two() -> Setup {
    calls_per_node(2)
}

/// Up since nine and ready; marked idle where a tick is to stop it.
fn up(world: &mut World, marked: bool) {
    let mark = Mark { at: at("10:00"), launched_at: Some(at("09:00")) };
    facts(world, "i-a").mark = marked.then_some(mark);
}

/// How things stand at 10:05, and the leases that are there.
fn situation(which: usize) -> World {
    let ready = node("i-a").running_since("09:00").ready_since("09:01");
    let mut world = fleet("10:05", [ready, node("i-b")]);
    match which {
        // About to be stopped.
        0 => up(&mut world, true),
        // One place is left.
        1 => leased(&mut world, "i-a", "old", "10:30"),
        // No place is left.
        2 => ["old", "other"].iter().for_each(|id| leased(&mut world, "i-a", id, "10:30")),
        // Leases that ran out lie about, and the node is about to be stopped.
        3 => {
            up(&mut world, true);
            ["old", "other"].iter().for_each(|id| leased(&mut world, "i-a", id, "09:20"));
        }
        // Drained, and its last call ended eight minutes ago.
        4 => {
            up(&mut world, true);
            leased(&mut world, "i-a", "old", "09:57");
            close_gate(&mut world, "09:50", true);
        }
        // A STOP whose answer is not known, five minutes ago.
        5 => {
            up(&mut world, true);
            world = fleet("10:00", [node("i-a").running_since("09:00").ready_since("09:01"), node("i-b")]);
            facts(&mut world, "i-a").mark = Some(Mark { at: at("09:55"), launched_at: Some(at("09:00")) });
            fail(&mut world, "stop", "Timeout");
            two().tick(&mut world);
            world.set_now(at("10:05"));
        }
        // Nobody is up.
        _ => drop(world.stop(&id("i-a"), false)),
    }
    world
}

const SITUATIONS: usize = 7;

#[derive(Debug, Clone)]
enum Kind {
    Put(&'static str),
    Renew(&'static str),
    End(&'static str),
    Idle,
}

impl Kind {
    fn wish(&self) -> Option<LeaseWish> {
        match self {
            Self::Put(id) => Some(put(id)),
            Self::Renew(id) => Some(renew(id)),
            Self::End(id) => Some(end(id)),
            Self::Idle => None,
        }
    }
}

fn any_call() -> impl Strategy<Value = Kind> {
    let name = || select(vec!["new", "newer", "old"]);
    prop_oneof![5 => name().prop_map(Kind::Put), 1 => name().prop_map(Kind::Renew), 1 => name().prop_map(Kind::End)]
}

fn any_fault() -> impl Strategy<Value = WorldFault> {
    let call =
        select(vec!["give_lease", "renew_lease", "end_lease", "demand", "claim", "stop", "start", "record", "facts"]);
    (call, any::<bool>()).prop_map(|(call, after)| WorldFault { call, node: None, code: "Timeout", after, times: 1 })
}

/// A run of which any call of the present step may be made next.
struct Racer {
    kind: Kind,
    run: Box<dyn Run>,
    calls: Vec<(Call, Option<Answer>)>,
    outcome: Option<Outcome>,
}

impl Racer {
    fn new(kind: Kind, n: usize, world: &World) -> Self {
        let mut ctx = two().context(world);
        ctx.run = RunId(format!("racer-{n}"));
        let run: Box<dyn Run> = match kind.wish() {
            Some(wish) => Box::new(LeaseRun::new(ctx, wish)),
            None => Box::new(IdleRun::new(ctx)),
        };
        let mut racer = Self { kind, run, calls: Vec::new(), outcome: None };
        racer.go_on();
        racer
    }

    fn go_on(&mut self) {
        while self.outcome.is_none() && self.calls.iter().all(|(_, answer)| answer.is_some()) {
            let answers = std::mem::take(&mut self.calls).into_iter().filter_map(|(_, answer)| answer).collect();
            match self.run.next(answers) {
                Step::Calls(calls) => self.calls = calls.into_iter().map(|call| (call, None)).collect(),
                Step::Done(outcome) => self.outcome = Some(outcome),
            }
        }
    }

    fn step(&mut self, world: &mut World, which: usize) {
        let open: Vec<usize> = (0..self.calls.len()).filter(|n| self.calls[*n].1.is_none()).collect();
        if let Some(n) = open.get(which % open.len().max(1)) {
            self.calls[*n].1 = Some(world.answer(&self.calls[*n].0));
            self.go_on();
        }
    }

    /// The lease that the caller was told he holds, and where.
    fn held(&self) -> Option<(LeaseId, NodeId)> {
        match (&self.kind.wish(), self.outcome.as_ref().and_then(|outcome| outcome.lease.clone())) {
            (Some(wish), Some(LeaseAnswer::Held { node, .. })) => Some((wish.id.clone(), node)),
            _ => None,
        }
    }
}

struct Race {
    world: World,
    racers: Vec<Racer>,
}

/// The runs in this order, then each to its end; every law is checked after each call.
fn race(mut world: World, kinds: Vec<Kind>, order: Vec<(usize, usize)>) -> Result<Race, String> {
    let racers = kinds.into_iter().enumerate().map(|(n, kind)| Racer::new(kind, n, &world)).collect();
    let last = (0..3).flat_map(|n| std::iter::repeat_n((n, 0), 100));
    let (mut demand, mut effects) = (item(&mut world).demand, world.effects.len());
    let mut race = Race { world, racers };
    for (who, which) in order.into_iter().chain(last) {
        let later = race.world.now() + chrono::TimeDelta::milliseconds(20);
        race.world.set_now(later);
        let who = who % race.racers.len();
        race.racers[who].step(&mut race.world, which);
        race.check_room()?;
        demand = race.check_demand(demand)?;
        effects = race.check_stops(effects)?;
    }
    assert!(race.racers.iter().all(|racer| racer.outcome.is_some()), "every run ends");
    Ok(race)
}

impl Race {
    fn check_room(&mut self) -> Result<(), String> {
        let over = NODES.into_iter().find(|node| live(&mut self.world, node).len() > 2);
        over.map_or(Ok(()), |node| Err(format!("{node} has {:?}", live(&mut self.world, node))))
    }

    fn check_demand(&mut self, before: u64) -> Result<u64, String> {
        let demand = item(&mut self.world).demand;
        if demand < before { Err(format!("demand fell from {before} to {demand}")) } else { Ok(demand) }
    }

    /// No STOP is accepted for a node that has a live lease, told or not.
    fn check_stops(&mut self, before: usize) -> Result<usize, String> {
        for (_, effect, node) in self.world.effects.clone().into_iter().skip(before) {
            let leases = live(&mut self.world, node.as_str());
            if effect == "stop" && !leases.is_empty() {
                return Err(format!("{node} was stopped under {leases:?}"));
            }
        }
        Ok(self.world.effects.len())
    }

    /// Whoever was told that he holds a lease holds it, on a node that runs, unless it was ended; and holds it once.
    fn check_held(&mut self) -> Result<(), String> {
        let of_kind = |kind: &Kind| if let Kind::End(id) = kind { Some(lease_id(id)) } else { None };
        let ended: BTreeSet<LeaseId> = self.racers.iter().filter_map(|racer| of_kind(&racer.kind)).collect();
        let held: Vec<(LeaseId, NodeId)> = self.racers.iter().filter_map(Racer::held).collect();
        for (lease, node) in held.iter().filter(|(lease, _)| !ended.contains(lease)) {
            let is_live = live(&mut self.world, node.as_str()).contains(&lease.to_string());
            if !is_live || state(&self.world, node.as_str()) != NodeState::Running {
                return Err(format!(
                    "{lease} was told to be on {node}, which is {:?}",
                    state(&self.world, node.as_str())
                ));
            }
        }
        let all: Vec<String> = NODES.into_iter().flat_map(|node| live(&mut self.world, node)).collect();
        let once: BTreeSet<&String> = all.iter().collect();
        if once.len() == all.len() { Ok(()) } else { Err(format!("a lease is there twice: {all:?}")) }
    }

    /// A call that was told to wait finds a node with room when it asks each five minutes, or a person has been told.
    fn check_met(&mut self) -> Result<(), String> {
        // Not given and not refused, or it is not known which.
        let is_open = |outcome: &Outcome| {
            let closed = outcome.answers.iter().any(|answer| answer.reason == Reason::GateClosed);
            matches!(outcome.lease, Some(LeaseAnswer::NotYet) | None) && !closed
        };
        let waits = |racer: &&Racer| is_open(racer.outcome.as_ref().expect("an end"));
        let waiting: Vec<LeaseWish> = self.racers.iter().filter(waits).filter_map(|racer| racer.kind.wish()).collect();
        for wish in waiting {
            let is_met = ["10:10", "10:15", "10:20", "10:25"].into_iter().any(|clock| {
                two().tick_at(&mut self.world, clock);
                let later = self.world.now() + seconds(70);
                self.world.set_now(later);
                !is_open(&two().lease(&mut self.world, wish.clone()))
            });
            if !is_met {
                return Err(format!("{wish:?} is never met"));
            }
        }
        Ok(())
    }
}

fn laws(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(20_261_130), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(laws(400))]

    #[test]
    fn in_every_order_no_call_is_cut_no_node_is_overfull_and_every_call_is_met(
        which in 0..SITUATIONS,
        calls in (any_call(), any_call()),
        order in proptest::collection::vec((0_usize..3, 0_usize..3), 0..60),
        fault in proptest::option::of(any_fault()),
    ) {
        let mut world = situation(which);
        if let Some(fault) = fault {
            world.fail(fault);
        }
        let kept = race(world, vec![calls.0, calls.1, Kind::Idle], order).and_then(|mut race| {
            race.check_held()?;
            race.check_met()
        });
        kept.map_err(TestCaseError::fail)?;
    }
}
