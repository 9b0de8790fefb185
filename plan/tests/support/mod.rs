//! Plans and events for the tests, on days from 30 November 2026 on.
#![allow(dead_code, reason = "each test file uses its own part")]

use chrono::TimeDelta;
use chrono_tz::Tz;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reveille::domain::{Instant, WarmWindow, WindowSpec};
use reveille::policy::{Policy, PoolRules, ReadySource};
use reveille_plan::replay::events::{Event, Outside};
use reveille_plan::replay::on_demand::OnDemand;

/// Midnight of 30 November 2026.
pub(crate) const FROM: i64 = 1_795_996_800;

pub(crate) fn instant(at: i64) -> Instant {
    Instant::from_timestamp(at, 0).expect("a time")
}

pub(crate) fn clock(at: i64) -> String {
    instant(at).format("%d %H:%M:%S").to_string()
}

/// On demand by these minutes, with a node that boots in 55 s and is told ready by its beat.
pub(crate) fn plan(idle: i64, prewarm: i64, tick: i64) -> OnDemand {
    let policy = Policy {
        idle: TimeDelta::minutes(idle),
        prewarm: TimeDelta::minutes(prewarm),
        tick: TimeDelta::minutes(tick),
        grace: TimeDelta::minutes((idle.min(prewarm) - tick).clamp(0, 10)),
        boot: TimeDelta::seconds(55),
        ..Policy::default()
    };
    let rules = PoolRules { ready: ReadySource::Beat(1), leased: true, beat: true, ..PoolRules::default() };
    OnDemand {
        policy,
        rules,
        nodes: 1,
        boot: 55,
        stop: 60,
        patience: 90,
        refusal: 0.0,
        prewarms: false,
        at_once: false,
        seed: 0,
    }
}

pub(crate) fn window(from: &str, to: &str) -> WarmWindow {
    let spec = WindowSpec { days: None, from: from.to_owned(), to: to.to_owned(), nodes: 1, zone: None };
    WarmWindow::new(spec, Tz::UTC).expect("a window")
}

/// About so many calls a day in bursts, most with an entry before them, and as many entries that lead nowhere.
pub(crate) fn random_events(seed: u64, days: i64, calls_a_day: i64) -> Vec<Event> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut events = Vec::new();
    for day in 0..days {
        for _ in 0..calls_a_day / 4 {
            let burst = FROM + day * 86_400 + random.random_range(3600..80_000);
            for _ in 0..4 {
                let at = burst + random.random_range(0..2400);
                let lasts = random.random_range(1..900);
                events.push(Event { at, what: Outside::Call { lasts } });
                if random.random_bool(0.8) {
                    events.push(Event { at: at - random.random_range(0..120), what: Outside::Entry });
                }
                if random.random_bool(0.5) {
                    events.push(Event { at: at + random.random_range(-3000..3000), what: Outside::Entry });
                }
            }
        }
    }
    events.sort();
    events
}
