//! Calls, wakes and windows that meet: what one of them wants is never laid at another's door, and never cut by it.

mod support;
mod support_rules;

use reveille::domain::{Hold, NodeState, Wake, WakeSource};
use support::*;
use support_rules::*;

/// Up since nine and ready.
fn up(word: &str) -> Node {
    node(word).running_since("09:00").ready_since("09:01")
}

fn four() -> Setup {
    calls_per_node(4)
}

// Launches for calls are no noise of the log.

#[test]
fn spare_nodes_for_calls_that_nobody_used_do_not_make_the_log_noisy() {
    let setup = four().with(|setup| setup.pool.rules.fill_percent = 75);
    let mut world = fleet("09:50", [up("i-a"), node("i-b")]);
    world.record(&voice()).line_wake = Some(Wake::new(at("09:00"), WakeSource::LogLine));
    let hold = Hold { until: at("17:00"), note: "the day".to_owned(), since: at("09:00") };
    facts(&mut world, "i-a").hold = Some(hold);
    for cycle in 0..8 {
        for call in 1..=4 {
            let until = at("10:10") + minutes(55 * cycle);
            leased(&mut world, "i-a", &format!("call-{call}"), &clock(until));
        }
        let from = at("10:00") + minutes(55 * cycle);
        setup.ticks(&mut world, &clock(from), &clock(from + minutes(50)));
    }
    assert_eq!(starts(&world).len(), 8, "a spare node each time: {:?}", world.effects);
    setup.ticks(&mut world, "17:20", "18:30");
    assert_eq!((state(&world, "i-a"), state(&world, "i-b")), (NodeState::Stopped, NodeState::Stopped));
    setup.log_line(&mut world);
    assert_eq!(starts(&world).len(), 9, "the line of a person who waits");
    assert!(!told(&world).contains(&"noise_wakes"), "{:?}", told(&world));
}
