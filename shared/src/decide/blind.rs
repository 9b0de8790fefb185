//! Is a person to be told that a node cannot be judged?

use crate::domain::{Blind, Instant};
use crate::policy::BETWEEN_READINGS;
use chrono::TimeDelta;

/// Unknown ticks in a row before a person is told first.
const FIRST_TOLD_AT: u32 = 3;

/// The record after one more unknown tick: a person is told after 3 ticks, then after 1 h, 4 h and daily. The message of the
/// number in `told` is due as long as that is above zero; it goes out once for each number, whichever run gets it through.
pub fn one_more(earlier: Option<&Blind>, now: Instant) -> Blind {
    let mut blind = match earlier {
        // The same tick delivered again (field case 36).
        Some(blind) if now - blind.at < BETWEEN_READINGS => return blind.clone(),
        Some(blind) => blind.clone(),
        None => Blind { since: now, at: now, ticks: 0, told: 0 },
    };
    blind.at = now;
    blind.ticks = blind.ticks.saturating_add(1);
    if blind.ticks >= FIRST_TOLD_AT && now - blind.since >= due_after(blind.told) {
        blind.told += 1;
    }
    blind
}

fn due_after(told: u32) -> TimeDelta {
    match told {
        0 => TimeDelta::zero(),
        1 => TimeDelta::hours(1),
        2 => TimeDelta::hours(4),
        more => TimeDelta::days(i64::from(more) - 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_after_three_ticks_then_one_hour_four_hours_and_daily() {
        let start: Instant = "2026-11-30T00:00:00Z".parse().expect("a date");
        let mut blind = None;
        let mut told = Vec::new();
        for tick in 0..(3 * 24 * 12) {
            let next = one_more(blind.as_ref(), start + TimeDelta::minutes(5 * tick));
            if next.told > blind.as_ref().map_or(0, |blind: &Blind| blind.told) {
                told.push(5 * tick);
            }
            blind = Some(next);
        }
        assert_eq!(told, [10, 60, 240, 24 * 60, 48 * 60]);
    }

    #[test]
    fn a_tick_four_minutes_after_another_counts_and_a_sooner_one_is_the_same_again() {
        let start: Instant = "2026-11-30T00:00:00Z".parse().expect("a date");
        let first = one_more(None, start);
        let ticks_at = |seconds| one_more(Some(&first), start + TimeDelta::seconds(seconds)).ticks;
        assert_eq!((ticks_at(239), ticks_at(240)), (1, 2));
    }
}
