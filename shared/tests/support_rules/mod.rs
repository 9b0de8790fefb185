//! Builders for the tests of leases, readiness, holds and warm windows: a default pool with rules of its own, and runs over
//! it.
#![allow(dead_code, reason = "each test file uses its own part")]

use crate::support::*;
use reveille::domain::{
    Beat, Boots, Gate, GateKeeper, Lease, LeaseId, NodeRecord, PoolRecord, WakeSource, WarmWindow, WindowSpec,
};
use reveille::policy::{Policy, PoolRules, ReadySource};
use reveille::run::{
    Caller, Cause, Context, IdleRun, LeaseAnswer, LeaseRun, LeaseWish, MetricRef, Outcome, PoolAnswer, PoolPolicy,
    Target, WakeRun, WakeWish,
};
use reveille::world::World;
use std::collections::BTreeMap;

/// What the operator configured, for the tests that do not take the default.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) policy: Policy,
    pub(crate) pool: PoolPolicy,
}

/// The default limits, and a pool with metrics of requests and of open calls.
pub(crate) fn setup(rules: PoolRules) -> Setup {
    Setup { policy: Policy::default(), pool: PoolPolicy { rules, ..signals().into() } }
}

/// A pool whose app takes leases, so many calls a node.
pub(crate) fn calls_per_node(calls: u32) -> Setup {
    setup(PoolRules { calls_per_node: Some(calls), leased: true, ..PoolRules::default() })
}

/// A pool whose nodes are ready when two beats in a row say so; its use is read from metrics.
pub(crate) fn ready_by_beat() -> Setup {
    setup(PoolRules { ready: ReadySource::Beat(2), ..PoolRules::default() })
}

/// A pool of which nothing is known but the beats of its nodes.
pub(crate) fn beats_alone() -> Setup {
    let rules = PoolRules { ready: ReadySource::Beat(2), beat: true, ..PoolRules::default() };
    Setup { policy: Policy::default(), pool: PoolPolicy { rules, ..PoolPolicy::default() } }
}

/// The count of healthy hosts of the default pool's load balancer.
pub(crate) fn healthy_hosts() -> MetricRef {
    let dimensions = BTreeMap::from([("TargetGroup".to_owned(), "voice".to_owned())]);
    MetricRef { namespace: "AWS/ApplicationELB".to_owned(), metric: "HealthyHostCount".to_owned(), dimensions }
}

/// A pool whose nodes are ready when the load balancer counts them as healthy.
pub(crate) fn ready_by_hosts() -> Setup {
    let mut setup = setup(PoolRules { ready: ReadySource::HealthyHosts, ..PoolRules::default() });
    setup.pool.healthy_hosts = Some(healthy_hosts());
    setup
}

/// The load balancer counts so many in the minute of this clock.
pub(crate) fn healthy(world: &mut World, clock: &str, hosts: f64) {
    world.point(&healthy_hosts(), bucket(at(clock)), hosts);
}

/// A pool with warm windows, written as they are configured.
pub(crate) fn warm(windows: &[&str]) -> Setup {
    let window = |text: &&str| {
        let spec: WindowSpec = serde_json::from_str(text).expect("a window");
        WarmWindow::new(spec, chrono_tz::Tz::UTC).expect("a valid window")
    };
    setup(PoolRules { warm: windows.iter().map(window).collect(), ..PoolRules::default() })
}

impl Setup {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn context(&self, world: &World) -> Context {
        let mut context = context_with(world, self.policy.clone());
        context.pools.insert(voice(), self.pool.clone());
        context
    }

    pub(crate) fn idle_run(&self, world: &World) -> IdleRun {
        IdleRun::new(self.context(world))
    }

    pub(crate) fn tick(&self, world: &mut World) -> Outcome {
        let mut run = self.idle_run(world);
        world.drive(&mut run)
    }

    pub(crate) fn tick_at(&self, world: &mut World, clock: &str) -> Outcome {
        world.set_now(at(clock));
        self.tick(world)
    }

    /// A tick every five minutes, both ends included.
    pub(crate) fn ticks(&self, world: &mut World, from: &str, to: &str) -> Vec<Outcome> {
        self.ticks_after(world, from, to, |_| {})
    }

    /// The same, each after something else has happened.
    pub(crate) fn ticks_after(
        &self,
        world: &mut World,
        from: &str,
        to: &str,
        before: impl Fn(&mut World),
    ) -> Vec<Outcome> {
        let (mut now, to) = (at(from), at(to));
        let mut outcomes = Vec::new();
        while now <= to {
            world.set_now(now);
            before(world);
            outcomes.push(self.tick(world));
            now += minutes(5);
        }
        outcomes
    }

    pub(crate) fn wake(&self, world: &mut World, wish: WakeWish) -> Outcome {
        let ctx = self.context(world);
        world.drive(&mut WakeRun::new(ctx, Cause::Wishes(vec![wish])))
    }

    pub(crate) fn prewarm(&self, world: &mut World) -> Outcome {
        self.wake(world, WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm))
    }

    pub(crate) fn prewarm_at(&self, world: &mut World, clock: &str) -> PoolAnswer {
        world.set_now(at(clock));
        only_answer(&self.prewarm(world))
    }

    pub(crate) fn log_line(&self, world: &mut World) -> Outcome {
        self.wake(world, WakeWish::new(Target::Pool(voice()), WakeSource::LogLine))
    }

    pub(crate) fn status(&self, world: &mut World) -> PoolAnswer {
        let ctx = self.context(world);
        only_answer(&world.drive(&mut WakeRun::new(ctx, Cause::Status(Target::Pool(voice())))))
    }

    pub(crate) fn status_at(&self, world: &mut World, clock: &str) -> PoolAnswer {
        world.set_now(at(clock));
        self.status(world)
    }

    pub(crate) fn lease_run(&self, world: &World, wish: LeaseWish) -> LeaseRun {
        LeaseRun::new(self.context(world), wish)
    }

    pub(crate) fn lease(&self, world: &mut World, wish: LeaseWish) -> Outcome {
        let mut run = self.lease_run(world, wish);
        world.drive(&mut run)
    }

    /// A PUT of this lease by the app, now.
    pub(crate) fn put(&self, world: &mut World, id: &str) -> Outcome {
        self.lease(world, put(id))
    }
}

/// A caller with a bucket of its own.
pub(crate) fn caller(name: &str) -> Caller {
    Caller { class: format!("token:{name}"), bucket: Some(name.to_owned()) }
}

/// A PUT by the app, for three minutes.
pub(crate) fn put(id: &str) -> LeaseWish {
    LeaseWish {
        id: lease_id(id),
        target: Some(Target::Pool(voice())),
        lasts: Some(minutes(3)),
        renews: false,
        caller: caller("app"),
    }
}

/// A PUT that means a lease that is there already.
pub(crate) fn renew(id: &str) -> LeaseWish {
    LeaseWish { renews: true, ..put(id) }
}

/// A DELETE by the app; it need not name a pool.
pub(crate) fn end(id: &str) -> LeaseWish {
    LeaseWish { lasts: None, target: None, ..put(id) }
}

/// The node on which the caller was told that its lease is, or an empty text.
pub(crate) fn held_on(outcome: &Outcome) -> String {
    match &outcome.lease {
        Some(LeaseAnswer::Held { node, .. }) => node.to_string(),
        Some(LeaseAnswer::Over | LeaseAnswer::Ended | LeaseAnswer::Foreign | LeaseAnswer::NotYet) | None => {
            String::new()
        }
    }
}

/// Puts a lease of the app there, given at nine.
pub(crate) fn leased(world: &mut World, node: &str, id: &str, until: &str) {
    let lease = Lease { by: "token:app".to_owned(), at: at("09:00"), until: at(until) };
    facts(world, node).leases.insert(lease_id(id), lease);
}

/// What the ledger knows of a node, to look at or to change.
pub(crate) fn facts<'a>(world: &'a mut World, node: &str) -> &'a mut NodeRecord {
    world.record(&voice()).nodes.entry(id(node)).or_default()
}

/// The pool's item as it is.
pub(crate) fn item(world: &mut World) -> PoolRecord {
    world.record(&voice()).clone()
}

/// The leases of a node that are live now, in the order of their names.
pub(crate) fn live(world: &mut World, node: &str) -> Vec<String> {
    let now = world.now();
    facts(world, node).live_leases(now).map(|(id, _)| id.to_string()).collect()
}

/// The calls that wait, whether their wait is over or not.
pub(crate) fn waiting(world: &mut World) -> Vec<LeaseId> {
    world.record(&voice()).waiting.keys().cloned().collect()
}

/// Earlier boots of a node took so many seconds.
pub(crate) fn booted_in(world: &mut World, node: &str, seconds: &[u32]) {
    facts(world, node).boots = Some(Boots { seconds: seconds.to_vec() });
}

/// A gate that the budget closed at this clock, or that drains too.
pub(crate) fn close_gate(world: &mut World, clock: &str, drain: bool) {
    let (by, reason) = (GateKeeper::Budget, "the budget is spent".to_owned());
    world.record(&voice()).gate = Some(Gate { by, since: at(clock), reason, amount: None, until: None, drain });
}

/// A beat of a node without load: ready since a minute before, every minute of it proved.
pub(crate) fn beat(clock: &str) -> Beat {
    let at = at(clock);
    Beat {
        at,
        ready: true,
        row: 2,
        ready_since: Some(at - minutes(1)),
        open: Some(0),
        counted: Some(0),
        gpu: None,
        open_at: None,
        used_at: None,
        since: Some(at - minutes(1)),
    }
}

/// The node answers, and is not ready.
pub(crate) fn unready(clock: &str) -> Beat {
    Beat { ready: false, row: 0, ready_since: None, ..beat(clock) }
}

/// The node's newest beat.
pub(crate) fn beats(world: &mut World, node: &str, beat: Beat) {
    world.beats.insert(id(node), beat);
}
