//! The demo's day, held to its own checks: what `make demo` shows stays true.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use chrono::{DateTime, TimeDelta, Utc};
use reveille_soak::trace::Trace;
use reveille_tests::demo::{self, trace};
use reveille_tests::operator::Operated;
use reveille_tests::stage::{Stage, root};

#[tokio::test]
async fn the_day_of_the_demo_shows_all_it_has_to_show() {
    let midnight: DateTime<Utc> = "2026-11-30T00:00:00Z".parse().unwrap();
    let to = midnight + TimeDelta::days(1);
    let (stage, nodes) = demo::open(midnight).await.unwrap();
    // Another day of the trace than the demo's, so that the checks do not hold by one lucky seed.
    let arrivals = Trace::open(&root()).unwrap().arrivals(6, 20.0, midnight, 3).unwrap();
    let noise = trace::noise(&root()).unwrap();
    let log = demo::run(&stage, &nodes, arrivals, &noise, to, &mut |_| {}).await.unwrap();
    for check in log.checks(midnight, to) {
        assert!(check.ok, "{}: {}", check.name, check.detail);
    }
    let words = [
        "demand",
        "noise",
        "start",
        "start_failed",
        "running",
        "ready",
        "leased",
        "lease_ended",
        "idle_mark",
        "stop",
        "stop_failed",
        "stopped",
        "alert",
        "refused",
        "person",
        "launched",
        "ended",
        "gate_closed",
        "gate_opened",
        "budget_repaired",
        "sees_again",
    ];
    for event in &log.events {
        assert!(words.contains(&event.event.as_str()), "{event:?}");
    }
    let (seconds, starts) = (log.money(midnight, to)[0].seconds, log.running(to).len());
    answers_its_operator(stage, seconds, starts).await;
}

/// The commands that the demo prints at its end.
async fn answers_its_operator(stage: Stage, seconds: i64, starts: usize) {
    let operated = Operated::on(stage).await.unwrap();
    operated.keep_logs().await.unwrap();
    let status = operated.reveille(&["status"]).await;
    assert_eq!((status.code, status.err.as_str()), (0, ""), "{status:?}");
    let events = operated.reveille(&["events", "--since", "1d"]).await;
    assert_eq!((events.code, events.err.as_str()), (0, ""), "{events:?}");
    for text in ["* demand", "* start_failed", "* stop", "* gate_closed", "* launched", "* ended"] {
        assert!(events.out.contains(text), "{text}: {}", events.out);
    }
    let doctor = operated.reveille(&["doctor"]).await;
    assert_eq!((doctor.code, doctor.err.as_str()), (1, ""), "nothing calls its functions by itself: {doctor:?}");
    let report = operated.reveille(&["report"]).await;
    assert_eq!((report.code, report.err.as_str()), (0, ""), "{report:?}");
    let figures = operated.reveille(&["report", "--json"]).await.json();
    let voice = figures["pools"].as_array().unwrap().iter().find(|pool| pool["pool"] == "voice").unwrap();
    // The day's own count is of states as they were seen, a launch's is EC2's; and there was one before the day.
    let all = &voice["all"];
    assert_eq!(all["starts"], starts + 1, "{all}");
    let apart = (all["node_seconds"].as_i64().unwrap() - seconds).abs();
    assert!(apart <= 60 * i64::try_from(starts).unwrap(), "{apart} s from {seconds}: {all}");
    assert!(all["cold_starts"].as_i64().unwrap() > 0 && all["waits_known"] == all["cold_starts"], "{all}");
    for text in [&status, &events, &doctor, &report].map(|said| &said.out) {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
