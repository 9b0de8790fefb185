//! The bounded worlds.

use crate::process::Arrival::{EndLease, Guard, Lease, StateChange, Tick, TickAgain, Uptime, Wake};
use crate::scenario::{Hand, Scenario, brisk};
use crate::support::*;
use crate::support_money::{budget, enforcing, launch, person_gate};
use reveille::decide::budget::Enforce;
use reveille::domain::{Gate, Lease as Given};
use reveille::run::{Call, Context, IdleRun};
use reveille::world::World;

/// The nodes stopped, as the ledger knows them.
fn asleep() -> World {
    of("10:00", node("i-a"))
}

/// `i-a` ready and unused for long, and marked idle at the tick before; `i-b` stopped.
fn idle() -> World {
    let mut world = of("09:55", node("i-a").running_since("09:00").ready_since("09:01"));
    let scenario = Scenario::new("", world.clone());
    let ctx = Context { policy: brisk(), ..scenario.context("before", at("09:55")) };
    world.drive(&mut IdleRun::new(ctx));
    world.set_now(at("10:00"));
    world
}

/// `i-a` as it is, `i-b` stopped, and of both the ledger knows and signals for as long as any run looks.
fn of(clock: &str, first: Node) -> World {
    let mut world = fleet(clock, [first, node("i-b")].map(Node::without_proof_of_life));
    for word in ["i-a", "i-b"] {
        prove_life(&mut world, word, "09:30", "11:00");
        world.record(&voice()).nodes.entry(id(word)).or_default();
    }
    world
}

/// Two callers find one node stopped.
pub(crate) fn two_wakes() -> Scenario {
    Scenario::new("two wakes", asleep()).at("10:00", [Wake, Wake])
}

pub(crate) fn a_wake_beside_a_stop() -> Scenario {
    Scenario::new("a wake beside a STOP", idle()).at("10:00", [Tick, Wake])
}

/// `i-a` has just arrived at `stopped`, and EC2 may still show it on its way.
pub(crate) fn start_race() -> Scenario {
    let mut world = of("09:59", node("i-a").running_since("09:00").ready_since("09:01"));
    world.stop(&id("i-a"), false).expect("a stop");
    let stopping = world.node(&id("i-a")).expect("a node").clone();
    world.set_now(at("10:00"));
    let race = Scenario::new("two wakes and a tick for two stopped nodes", world).at("10:00", [Wake, Wake, Tick]);
    race.at("10:01", [StateChange]).with(|race| race.views = vec![(stopping, at("09:59:40"))])
}

/// Two deliveries of a tick, a wake, and EC2's hint when the STOP is through.
pub(crate) fn stop_race() -> Scenario {
    let race = Scenario::new("two ticks and a wake for an idle node", idle()).at("10:00", [Tick, Tick, Wake]);
    race.at("10:00:45", [StateChange]).at("10:05", [Tick])
}

/// What becomes of a STOP that nobody has an answer to.
pub(crate) fn lost_stop() -> Scenario {
    let lost = Scenario::new("a STOP whose answer is lost", idle()).at("10:00", [Tick]).at("10:00:20", [Wake]);
    lost.at("10:05", [Tick]).at("10:06", [Wake])
}

/// Calls come and go beside the ticks; one node takes one call.
pub(crate) fn leases() -> Scenario {
    let leases = Scenario::new("leases beside a STOP", idle()).at("10:00", [Tick, Lease("call-1", 4)]);
    let leases = leases.at("10:00:30", [Lease("call-2", 4)]).at("10:03", [Lease("call-1", 4)]);
    leases.at("10:05", [Tick]).with(|leases| leases.rules.calls_per_node = Some(1))
}

/// A lease is given, renewed, and runs out around the tick that would stop its node.
pub(crate) fn lease_runs_out() -> Scenario {
    let leases = Scenario::new("a lease that runs out", idle()).at("10:00", [Tick, Lease("call-1", 2)]);
    let leases = leases.at("10:01:30", [Lease("call-1", 2), EndLease("call-1")]).at("10:05", [Tick]);
    leases.at("10:15", [Tick, Lease("call-2", 2)])
}

/// The month's money is spent, and the guard closes the gate while a node is asked for.
pub(crate) fn gate() -> Scenario {
    let budget = enforcing(Enforce::Gate, "0.10");
    let ended = vec![(id("i-b"), launch("g6.xlarge", at("06:00"), Some(at("08:00"))))];
    let mut world = asleep();
    world.answer(&Call::NoteLaunches { pool: voice(), ended, newest: Vec::new() });
    let gate = Scenario::new("a gate that closes", world).at("10:00", [Wake, Guard(budget.clone()), Tick]);
    gate.at("10:01", [Wake]).at("10:05", [Tick])
}

/// Two ticks have the same to tell: no node of the pool can be started.
pub(crate) fn same_message() -> Scenario {
    let mut world = asleep();
    world.no_capacity(&id("i-a"), true);
    world.no_capacity(&id("i-b"), true);
    let alerts = Scenario::new("the same message from two runs", world).at("10:00", [Wake, Tick]);
    alerts.at("10:05", [Tick, Tick])
}

/// All four functions, two at a time.
pub(crate) fn all_four() -> Scenario {
    let four = Scenario::new("all four functions", idle()).at("10:00", [Tick, Uptime]);
    four.at("10:02", [Wake, Guard(budget("1"))]).at("10:05", [Tick])
}

/// All four functions at once.
pub(crate) fn all_four_at_once() -> Scenario {
    let four = Scenario::new("all four functions at once", idle());
    four.at("10:00", [Tick, Wake, Uptime, Guard(budget("100"))]).at("10:05", [Tick])
}

/// Requests that are counted late: one reading may miss them.
pub(crate) fn late_counts() -> Scenario {
    let mut world = of("10:00", node("i-a").running_since("09:00").ready_since("09:01"));
    let mut used = Vec::new();
    for clock in ["09:44", "09:59", "10:06"] {
        request(&mut world, "i-a", clock);
        used.push((id("i-a"), at(clock) + minutes(1)));
    }
    let late = Scenario::new("requests that are counted late", world).at("10:00", [Tick]).at("10:05", [Tick, Tick]);
    late.at("10:10", [Tick]).at("10:15", [Tick]).with(|late| late.used = used)
}

/// A person starts and stops the nodes between the runs.
pub(crate) fn by_hand() -> Scenario {
    let hands = Scenario::new("a person starts and stops nodes by hand", asleep()).at("10:00", [Wake, Tick]);
    hands
        .at("10:05", [Tick])
        .with(|hands| hands.hands = vec![Hand::Start("i-a"), Hand::Stop("i-a"), Hand::Start("i-b")])
}

/// The same beside a STOP of ours.
pub(crate) fn by_hand_beside_a_stop() -> Scenario {
    let hands = Scenario::new("a person acts beside a STOP", idle()).at("10:00", [Tick]).at("10:00:45", [Wake]);
    let hands = hands.at("10:05", [Tick]);
    hands.with(|hands| hands.hands = vec![Hand::Stop("i-a"), Hand::Start("i-a"), Hand::Start("i-b")])
}

/// A call is renewed beside the ticks until it ends.
pub(crate) fn renewals() -> Scenario {
    let calls = Scenario::new("a call that is renewed", idle()).at("10:00", [Lease("call-1", 2), Tick]);
    calls
        .at("10:01", [Lease("call-1", 2)])
        .at("10:05", [Tick])
        .at("10:10", [Tick])
        .at("10:15", [Tick, Lease("call-2", 6)])
}

/// A node takes long to stop, and is woken about when it would be forced.
pub(crate) fn slow_stop() -> Scenario {
    let mut world = idle();
    world.stopping = seconds(450);
    let slow = Scenario::new("a STOP that takes long", world).at("10:00", [Tick]).at("10:08", [Wake]);
    slow.at("10:09:30", [Wake]).at("10:10", [Tick]).at("10:15", [Tick])
}

/// The event of a tick is delivered twice, with the same request id.
pub(crate) fn same_event() -> Scenario {
    let twice = Scenario::new("the same event twice", idle()).at("10:00", [Tick]).at("10:00:01", [TickAgain]);
    twice.at("10:00:02", [Wake]).at("10:05", [Tick])
}

/// The pool is drained while a call goes on.
pub(crate) fn drain() -> Scenario {
    let mut world = idle();
    let lease = Given { by: "token:app".to_owned(), at: at("09:59"), until: at("10:02") };
    let record = world.record(&voice());
    record.gate = Some(Gate { drain: true, ..person_gate(None) });
    let node = record.nodes.entry(id("i-a")).or_default();
    (node.leases, node.leased) = ([(lease_id("call-1"), lease)].into(), Some(at("09:59")));
    let drain =
        Scenario::new("a drain beside a call", world).at("10:00", [Tick]).at("10:01", [Lease("call-1", 2), Wake]);
    drain.at("10:05", [Tick, Lease("call-2", 2)]).at("10:10", [Tick]).at("10:15", [Tick, Lease("call-1", 2)])
}

/// The guard and the uptime alarm, each twice at once, with something to tell.
pub(crate) fn two_guards() -> Scenario {
    let (spent, mut world) = (budget("0.50"), idle());
    world.answer(&Call::CreateBudget { budget: spent.clone(), pools: [voice()].into() });
    let twice = Scenario::new("guards and alarms twice", world).at("10:00", [Guard(spent.clone()), Guard(spent)]);
    twice.at("10:05", [Uptime, Uptime]).with(|twice| twice.policy.uptime = minutes(30))
}

/// The first node has no capacity, and the second has.
pub(crate) fn no_capacity() -> Scenario {
    let mut world = asleep();
    world.no_capacity(&id("i-a"), true);
    Scenario::new("a node without capacity", world).at("10:00", [Wake, Wake]).at("10:05", [Tick, Wake])
}
