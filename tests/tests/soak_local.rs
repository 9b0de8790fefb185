//! The soak's days with the built functions: its checks bite there too.

use chrono::TimeDelta;
use reveille_soak::day::{Day, Happening, What};
use reveille_soak::play::{Report, play};
use reveille_soak::setup::{PoolSetup, ReadyBy, Setup};
use reveille_soak::stage::Ask;
use reveille_tests::soak::Local;

/// Two hours: one node is woken, and nobody calls.
fn day() -> Day {
    let voice = PoolSetup {
        name: "voice".to_owned(),
        nodes: vec!["i-voice0".to_owned()],
        ready: ReadyBy::Checks,
        requests: false,
        gauge: true,
        beat: false,
        logs: false,
        leased: false,
        per_node: None,
        fill_percent: None,
        warm: None,
        types: Vec::new(),
    };
    let setup = Setup {
        start: "2026-11-30T06:00:00Z".parse().expect("an instant"),
        hours: 2,
        zone: "UTC".to_owned(),
        pools: vec![voice],
        budget: None,
        prewarm_minutes: None,
        uptime_hours: 20,
        boot_seconds: 40,
    };
    let wake = What::Prewarm { pool: "voice".to_owned(), node: None };
    Day { seed: 1, setup, happenings: vec![Happening { at: 600, what: wake }] }
}

fn played(deaf: fn(&Ask) -> bool) -> (Day, Report) {
    let (day, stage) = Local::open(&day()).expect("the stage opens");
    let mut stage = stage.deaf_to(deaf);
    let report = play(&day, &mut stage);
    (day, report)
}

#[test]
fn a_calm_day_breaks_no_promise_and_its_node_is_started_and_stopped() {
    let (day, report) = played(|_| false);
    assert_eq!(report.violation, None, "{:#?}", report.timeline);
    let node = &day.setup.pools[0].nodes[0];
    for act in ["Start", "Stop"] {
        let done = report.timeline.iter().any(|(_, text)| text.ends_with(&format!("{act} {node}")));
        assert!(done, "{act}: {:#?}", report.timeline);
    }
}

#[test]
fn an_idle_check_that_is_never_called_breaks_the_promise_of_the_stop() {
    let (day, report) = played(|ask| *ask == Ask::Idle);
    let broken = report.violation.expect("a node that nobody stops");
    assert_eq!(broken.promise, "P2: an idle node is stopped");
    let woken = day.setup.start + TimeDelta::minutes(10);
    assert!(broken.at - woken > TimeDelta::minutes(40), "{broken:?}");
}
