//! `make model`: the same worlds with more that goes wrong, for minutes. Each is explored whole or cut where it says so.

use crate::report::explore;
use crate::scenario::Scenario;
use crate::scenarios::*;

/// States that are seen at most of one scenario, the same ones counted again.
const MOST: usize = 250_000;

fn worlds() -> Vec<Scenario> {
    let in_any_order = |scenario: Scenario| scenario.with(|scenario| scenario.any_order = true);
    // Twice as long as the rules take a look to be stale at most: what is said and cut must hold all the same.
    let long_stale = |scenario: Scenario| scenario.with(|scenario| scenario.stale_for = chrono::TimeDelta::minutes(11));
    vec![
        two_wakes().faults(2).deaths(1).repeats(1),
        in_any_order(a_wake_beside_a_stop().faults(1).deaths(1).stale(1)),
        a_wake_beside_a_stop().faults(2).deaths(1).stale(1).repeats(1),
        start_race().faults(1).deaths(1).stale(1),
        lost_stop().faults(2).deaths(1).stale(1),
        long_stale(lost_stop().stale(2)),
        slow_stop().faults(1).stale(1),
        same_event().faults(1).stale(1),
        drain().faults(1).stale(1),
        by_hand().faults(1).stale(1),
        by_hand_beside_a_stop().faults(1).stale(1),
        late_counts().faults(1).deaths(1).stale(1),
        lease_runs_out().faults(1).deaths(1).repeats(1),
        renewals().faults(1).deaths(1).stale(1).repeats(1),
        no_capacity().faults(1).deaths(1),
        two_guards().deaths(1).repeats(1),
        leases().faults(1),
        gate().faults(1).deaths(1),
        same_message().repeats(1),
        same_message().faults(1),
        all_four().faults(1).deaths(1),
        all_four_at_once(),
        stop_race(),
    ]
}

#[test]
#[ignore = "takes minutes: make model"]
fn deep() {
    let begun = std::time::Instant::now();
    let states: usize = worlds().into_iter().map(|scenario| explore(scenario, MOST, true).unique_states).sum();
    println!("{states} states in {:.0} s: every law holds", begun.elapsed().as_secs_f32());
}
