//! Beats that cannot be true, boots that are learnt late, and leases of one id in two pools.

mod support;
mod support_rules;

use chrono::{DateTime, Utc};
use reveille::domain::{Beat, Lease, PoolName};
use reveille::run::LeaseAnswer;
use reveille::world::World;
use support::*;
use support_rules::*;

#[test]
fn a_beat_of_the_end_of_time_does_not_make_a_tick_fall() {
    let end = Some(DateTime::<Utc>::MAX_UTC);
    let of_a_wrong_clock = [
        Beat { open_at: end, ..beat("10:29:30") },
        Beat { used_at: end, ..beat("10:29:30") },
        Beat { since: end, ..beat("10:29:30") },
        Beat { ready_since: end, ..beat("10:29:30") },
        Beat { since: Some(DateTime::<Utc>::MIN_UTC), ..beat("10:29:30") },
        Beat { open_at: Some(DateTime::<Utc>::MIN_UTC), ..beat("10:29:30") },
        Beat { ready_since: Some(DateTime::<Utc>::MIN_UTC), ..beat("10:29:30") },
        Beat { at: DateTime::<Utc>::MAX_UTC, ..beat("10:29:30") },
        Beat { at: DateTime::<Utc>::MIN_UTC, ..beat("10:29:30") },
    ];
    for newest in of_a_wrong_clock {
        let mut world = fleet("10:30", [node("i-a").running_since("09:50").ready_since("09:52")]);
        beats(&mut world, "i-a", newest);
        beats_alone().tick(&mut world);
        beats_alone().status(&mut world);
    }
}

#[test]
fn a_tick_learns_a_boot_from_the_first_minute_in_which_the_host_was_healthy() {
    let mut world = fleet("10:05", [node("i-a").running_since("10:00")]);
    ["10:01", "10:02", "10:03", "10:04"].iter().for_each(|clock| healthy(&mut world, clock, 1.0));
    ready_by_hosts().tick(&mut world);
    assert_eq!(facts(&mut world, "i-a").boots.clone().unwrap_or_default().seconds, [60]);
}

#[test]
fn a_lease_is_ended_though_another_caller_has_its_id_in_another_pool() {
    let mut world = fleet("10:00", [node("i-b").running_since("09:00").ready_since("09:01")]);
    let other = PoolName::new("batch").unwrap();
    let foreign = Lease { by: "token:other".to_owned(), at: at("09:00"), until: at("12:00") };
    world.record(&other).nodes.entry(id("i-x")).or_default().leases.insert(lease_id("call-1"), foreign);
    leased(&mut world, "i-b", "call-1", "12:00");
    let mut ctx = ready_by_beat().context(&world);
    ctx.pools.insert(other, ready_by_beat().pool);
    let outcome = world.drive(&mut reveille::run::LeaseRun::new(ctx, end("call-1")));
    assert_eq!(outcome.lease, Some(LeaseAnswer::Over));
    assert!(live(&mut world, "i-b").is_empty());
}

#[test]
fn a_node_whose_agent_never_beats_is_kept_and_told_so() {
    let mut world = fleet("10:00", [node("i-a")]);
    beats_alone().prewarm(&mut world);
    beats_alone().ticks(&mut world, "10:05", "11:30");
    assert!(stops(&world).is_empty());
    let told = |kind: &str| {
        let of_kind = world.published.iter().find(|alert| alert.kind.as_str() == kind);
        of_kind.map(|alert| alert.body.clone()).unwrap_or_default()
    };
    let (late, blind) = (told("not_ready"), told("blind"));
    assert!(late.contains("it is kept") && !late.contains("stopped and"), "{late}");
    assert!(blind.contains("reveille-beat"), "{blind}");
}

/// Ready at 09:52; its engine is gone since 10:00, and callers ask each minute.
fn gone_engine(nodes: Vec<Node>) -> World {
    let mut world = fleet("10:00", nodes);
    let mut now = at("10:00");
    while now <= at("10:30") {
        world.set_now(now);
        let minute = now.format("%H:%M").to_string();
        beats(&mut world, "i-a", Beat { since: Some(at("09:50")), ..unready(&minute) });
        if now.timestamp() % 300 == 0 {
            ready_by_beat().tick(&mut world);
        }
        ready_by_beat().prewarm(&mut world);
        now += minutes(1);
    }
    world
}

#[test]
fn another_node_is_started_where_one_has_lost_its_readiness_for_long() {
    let world = gone_engine(vec![node("i-a").running_since("09:50").ready_since("09:52"), node("i-b")]);
    assert_eq!(starts(&world).first().map(String::as_str), Some("10:10 i-b"));
}

#[test]
fn a_readiness_that_is_lost_for_long_is_told_once() {
    let mut world = gone_engine(vec![node("i-a").running_since("09:50").ready_since("09:52")]);
    let told: Vec<_> = world.published.iter().filter(|alert| alert.kind.as_str() == "not_ready").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].body.contains("was ready") && !told[0].body.contains("started once more"), "{}", told[0].body);
    assert_eq!(ready_by_beat().status(&mut world).reason, reveille::decide::Reason::AlreadyStarting);
}
