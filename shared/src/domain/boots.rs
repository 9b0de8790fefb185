//! How long a node takes from START to ready, learnt from its last boots.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// So many boots are remembered: enough for a median that one slow boot does not move, and few enough to follow a change
/// of disk or model within days.
const REMEMBERED: usize = 8;

/// Seconds from START to ready of the newest boots, the newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Boots {
    /// At most eight.
    pub seconds: Vec<u32>,
}

/// What a boot is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootTime {
    /// The median.
    pub median: TimeDelta,
    /// Half of the boots lay within so much of one another (the distance of the quartiles).
    pub spread: TimeDelta,
    /// From how many boots it was learnt; zero where it is the configured guess.
    pub boots: usize,
}

impl Boots {
    /// The same, with one more.
    pub fn with(mut self, took: TimeDelta) -> Self {
        self.seconds.push(u32::try_from(took.num_seconds().max(0)).unwrap_or(u32::MAX));
        let surplus = self.seconds.len().saturating_sub(REMEMBERED);
        self.seconds.drain(..surplus);
        self
    }
}

impl BootTime {
    /// Learnt from these boots; the guess where there are none.
    pub fn of(seconds: impl IntoIterator<Item = u32>, guess: TimeDelta) -> Self {
        let mut sorted: Vec<u32> = seconds.into_iter().collect();
        sorted.sort_unstable();
        // The nearest rank: with one boot all three are that boot.
        let quartile = |n: usize| sorted.get((sorted.len() * n).div_ceil(4).saturating_sub(1)).copied();
        let (Some(low), Some(median), Some(high)) = (quartile(1), quartile(2), quartile(3)) else {
            return Self { median: guess, spread: TimeDelta::zero(), boots: 0 };
        };
        let of = |seconds: u32| TimeDelta::seconds(i64::from(seconds));
        Self { median: of(median), spread: of(high - low), boots: sorted.len() }
    }

    /// By when nearly every boot is through: what a warm window starts ahead.
    pub fn safe(&self) -> TimeDelta {
        self.median + self.spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(seconds: &[u32]) -> (i64, i64, usize) {
        let time = BootTime::of(seconds.iter().copied(), TimeDelta::seconds(60));
        (time.median.num_seconds(), time.spread.num_seconds(), time.boots)
    }

    #[test]
    fn the_median_and_the_spread_are_of_what_was_seen() {
        assert_eq!(learnt(&[]), (60, 0, 0), "the guess");
        assert_eq!(learnt(&[44]), (44, 0, 1));
        assert_eq!(learnt(&[44, 55]), (44, 11, 2));
        assert_eq!(learnt(&[50, 44, 300, 46]), (46, 6, 4), "one slow boot moves neither");
    }

    #[test]
    fn only_the_newest_eight_count() {
        let boots = (1..=10).fold(Boots::default(), |boots, n| boots.with(TimeDelta::seconds(n)));
        assert_eq!(boots.seconds, [3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(Boots::default().with(TimeDelta::seconds(-3)).seconds, [0], "a clock that is off is not a boot");
    }
}
