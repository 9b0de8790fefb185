//! A few random days, and days on which something is tampered with: the observer has to see it.

use chrono::TimeDelta;
use reveille::domain::{ClaimKind, NodeId, PoolRecord};
use reveille::run::{Answer, Call};
use reveille::world::World;
use reveille_soak::day::{Day, Happening, What};
use reveille_soak::faults::{Struck, pairs};
use reveille_soak::memory::{Meddle, Memory};
use reveille_soak::play::play;
use reveille_soak::setup::{PoolSetup, ReadyBy, Setup};
use reveille_soak::shrink::shrink;
use reveille_soak::trace::Trace;
use std::path::Path;

fn trace() -> Trace {
    Trace::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("the trace")
}

fn broken(day: &Day, meddle: Option<Meddle>) -> Option<&'static str> {
    let stage = Memory::new(&day.setup, day.seed).expect("a valid configuration");
    let mut stage = match meddle {
        Some(meddle) => stage.meddled(meddle),
        None => stage,
    };
    play(day, &mut stage).violation.map(|violation| violation.promise)
}

/// Noon to midnight on a plain day: one pool, leases, a gauge, status checks.
fn plain(nodes: &[&str], happenings: &[(i64, What)]) -> Day {
    let pool = PoolSetup {
        name: "voice".to_owned(),
        nodes: nodes.iter().map(|id| (*id).to_owned()).collect(),
        ready: ReadyBy::Checks,
        requests: true,
        gauge: true,
        beat: false,
        logs: false,
        leased: true,
        per_node: None,
        fill_percent: None,
        warm: None,
        types: Vec::new(),
    };
    let setup = Setup {
        start: "2026-11-30T12:00:00Z".parse().expect("a date"),
        hours: 6,
        zone: "UTC".to_owned(),
        pools: vec![pool],
        budget: None,
        prewarm_minutes: None,
        uptime_hours: 20,
        boot_seconds: 45,
    };
    let happenings = happenings.iter().map(|(minute, what)| Happening { at: minute * 60, what: what.clone() });
    Day { seed: 1, setup, happenings: happenings.collect() }
}

fn call(minutes: i64) -> What {
    What::Call { pool: "voice".to_owned(), lasts: minutes * 60, announced: Some(60), dies: false }
}

#[test]
fn the_first_days_break_no_promise() {
    let trace = trace();
    for seed in 1..=6 {
        assert_eq!(broken(&Day::of(seed, &trace), None), None, "make soak SEED={seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_day_and_goes_the_same_way() {
    let day = Day::of(7, &trace());
    let went = || play(&day, &mut Memory::new(&day.setup, day.seed).expect("a configuration")).timeline;
    assert_eq!(day, Day::of(7, &trace()));
    assert_eq!(went(), went());
}

#[test]
fn a_day_is_written_to_a_file_and_read_back() {
    let day = Day::of(3, &trace());
    let text = serde_json::to_string(&day).expect("a text");
    assert_eq!(serde_json::from_str::<Day>(&text).expect("a day"), day);
}

#[test]
fn a_plain_day_breaks_no_promise() {
    assert_eq!(broken(&plain(&["i-a", "i-b"], &[(10, call(20)), (60, call(5)), (200, call(40))]), None), None);
}

/// The ledger's counters as they are now: no condition can fail.
fn grant_every_claim(world: &mut World, call: &Call) -> Option<Answer> {
    let Call::Claim { pool, node, permit, claim, .. } = call else { return None };
    let record = world.record(pool).clone();
    let mut permit = *permit;
    permit.claims = record.claims;
    permit.demand = permit.demand.map(|_| record.demand);
    let leased = record.node(node).leased;
    let call = Call::Claim { pool: pool.clone(), node: node.clone(), permit, leased, claim: claim.clone() };
    Some(world.answer(&call))
}

/// Whoever starts one node starts all.
fn start_all(world: &mut World, call: &Call) -> Option<Answer> {
    let Call::Start { node } = call else { return None };
    let others: Vec<NodeId> = world.node_ids().filter(|id| *id != node).cloned().collect();
    others.iter().for_each(|id| drop(world.start(id)));
    None
}

#[test]
fn bites_where_more_nodes_are_started_than_wanted() {
    let crowd = What::Crowd { pool: "voice".to_owned(), apps: 12 };
    let day = plain(&["i-a", "i-b"], &[(10, crowd.clone()), (80, crowd)]);
    assert_eq!(broken(&day, None), None);
    assert_eq!(broken(&day, Some(start_all)), Some("never more started than wanted"));
}

/// Whoever reads the ledger when a tick does sees no lease, and a STOP is claimed whatever was leased.
fn hide_leases(world: &mut World, call: &Call) -> Option<Answer> {
    if matches!(call, Call::Claim { claim, .. } if claim.kind == ClaimKind::Stop) {
        return grant_every_claim(world, call);
    }
    if !matches!(call, Call::ReadLedger { .. }) || world.now().timestamp() % 300 >= 5 {
        return None;
    }
    let Answer::Ledger(Ok(mut records)) = world.answer(call) else { return None };
    let hide = |record: &mut PoolRecord| {
        record.nodes.values_mut().for_each(|node| (node.leases, node.leased) = (Default::default(), None));
    };
    records.values_mut().for_each(hide);
    Some(Answer::Ledger(Ok(records)))
}

#[test]
fn bites_where_a_stop_ignores_leases() {
    let mut day = plain(&["i-a"], &[(10, call(120))]);
    day.setup.pools[0].gauge = false;
    assert_eq!(broken(&day, None), None);
    assert_eq!(broken(&day, Some(hide_leases)), Some("P3: no call is cut"));
}

/// No metric is ever read, and each is said to be zero.
fn call_unknown_quiet(world: &mut World, call: &Call) -> Option<Answer> {
    let Call::ReadActivity { metrics, from, to } = call else { return None };
    let minutes = || (0..).map(|n| *from + TimeDelta::minutes(n)).take_while(|at| at < to).map(|at| (at, 0.0));
    let zeros = || reveille::observation::Series { points: minutes().collect(), complete: true };
    let _ = world;
    Some(Answer::Activity(Ok(metrics.keys().map(|metric| (metric.clone(), Ok(zeros()))).collect())))
}

#[test]
fn bites_where_unknown_is_taken_for_quiet() {
    let dark = What::NoMetrics { node: "i-a".to_owned(), minutes: 300 };
    let day = plain(&["i-a"], &[(5, dark), (10, call(5))]);
    assert_eq!(broken(&day, None), None);
    assert_eq!(broken(&day, Some(call_unknown_quiet)), Some("P4: unknown never stops a node"));
}

/// STOP is answered, and never carried out.
fn swallow_stops(world: &mut World, call: &Call) -> Option<Answer> {
    let Call::Stop { node, .. } = call else { return None };
    let before = world.node(node)?.state;
    Some(Answer::Stop(Ok(reveille::run::Stopped { before })))
}

#[test]
fn bites_where_a_stop_is_swallowed_before_anybody_is_told() {
    assert_eq!(broken(&plain(&["i-a"], &[(10, call(5))]), Some(swallow_stops)), Some("P2: an idle node is stopped"));
}

/// START is answered, and never carried out.
fn swallow_starts(world: &mut World, call: &Call) -> Option<Answer> {
    let Call::Start { node } = call else { return None };
    let before = world.node(node)?.state;
    Some(Answer::Start(Ok(reveille::run::Started { before })))
}

#[test]
fn bites_where_a_start_is_swallowed() {
    let day = plain(&["i-a"], &[(10, call(5))]);
    assert_eq!(broken(&day, Some(swallow_starts)), Some("P1: a wanted node is starting"));
}

/// Messages are taken, and reach nobody.
fn swallow_messages(_: &mut World, call: &Call) -> Option<Answer> {
    matches!(call, Call::Publish { .. }).then_some(Answer::Published(Ok(())))
}

#[test]
fn bites_where_nobody_is_told_that_a_node_cannot_be_stopped() {
    let code = "OperationNotPermitted".to_owned();
    let refused = What::RefusesStop { node: "i-a".to_owned(), code, minutes: 300 };
    let day = plain(&["i-a"], &[(5, refused), (10, call(5))]);
    assert_eq!(broken(&day, None), None);
    assert_eq!(broken(&day, Some(swallow_messages)), Some("P2: an idle node is stopped"));
}

/// What was published is never marked, and anybody may send it again.
fn forget_messages(_: &mut World, call: &Call) -> Option<Answer> {
    matches!(call, Call::ClaimAlert { .. }).then_some(Answer::AlertClaim(Ok(reveille::run::AlertClaimed::Mine)))
}

#[test]
fn bites_where_messages_are_sent_twice() {
    let dark = What::NoMetrics { node: "i-a".to_owned(), minutes: 300 };
    let day = plain(&["i-a"], &[(5, dark), (10, call(5))]);
    assert_eq!(broken(&day, Some(forget_messages)), Some("no message twice"));
}

/// Every node is said to be ready.
fn call_all_ready(_: &mut World, call: &Call) -> Option<Answer> {
    let Call::ReadReadiness { nodes } = call else { return None };
    Some(Answer::Readiness(Ok(nodes.iter().cloned().collect::<std::collections::BTreeSet<NodeId>>())))
}

#[test]
fn bites_where_a_ready_answer_is_not_true() {
    let mut day = plain(&["i-a"], &[(10, call(5))]);
    day.setup.pools[0].leased = false;
    assert_eq!(broken(&day, Some(call_all_ready)), Some("a ready answer is true"));
}

#[test]
fn bites_where_ticks_do_not_come_for_an_hour() {
    let hand = What::HandStart { node: "i-a".to_owned() };
    let lost = (20..35).map(|minute| (minute, What::TickLost));
    let day = plain(&["i-a"], &[vec![(10, hand)], lost.collect()].concat());
    assert_eq!(broken(&day, None), Some("P2: an idle node is stopped"));
}

#[test]
fn a_day_is_shrunk_to_what_breaks_the_promise() {
    let noise = (0..40).map(|n| (n * 8, What::Status { pool: "voice".to_owned() }));
    let day = plain(&["i-a"], &[noise.collect(), vec![(90, call(5))]].concat());
    let short = shrink(&day, |day| broken(day, Some(swallow_starts)).is_some());
    assert_eq!(short.happenings, [Happening { at: 90 * 60, what: call(5) }]);
}

#[test]
fn every_pair_is_missed_until_it_struck() {
    let mut struck = Struck::default();
    assert_eq!(struck.missing(), pairs());
    pairs().iter().for_each(|(kind, call)| struck.add(*kind, call));
    assert!(struck.missing().is_empty());
}
