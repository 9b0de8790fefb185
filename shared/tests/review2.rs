//! Beats that cannot be true, boots that are learnt late, and leases of one id in two pools.

mod support;
mod support_rules;

use chrono::{DateTime, Utc};
use reveille::domain::{Beat, Lease, PoolName};
use reveille::run::LeaseAnswer;
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
