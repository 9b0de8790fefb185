//! What a replay adds up. It holds no list: waits are whole seconds up to a caller's patience, and are counted by second.

use super::watch::Watch;
use reveille::domain::{Instant, Launch};

/// A call is cold where it waits for nearly a whole boot: so many percent of it.
const COLD_PERCENT: i64 = 95;

/// The sums of one replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    from: i64,
    to: i64,
    boot: i64,
    patience: i64,
    /// How many calls waited for so many seconds; those that gave up are at the end.
    waits: Vec<u64>,
    /// Calls that were connected, or gave up.
    pub calls: u64,
    /// Calls that waited for nearly a boot, or in vain.
    pub cold: u64,
    /// Calls that were never connected.
    pub unserved: u64,
    /// Starts that EC2 accepted.
    pub starts: u64,
    /// Starts that EC2 refused.
    pub refused: u64,
    /// Billed seconds of all nodes.
    pub node_seconds: i64,
    /// Seconds of all calls on nodes.
    pub call_seconds: i64,
    /// The most calls at once on one node.
    pub most_calls: usize,
    /// What is looked at more closely.
    pub watch: Option<Box<Watch>>,
}

impl Tally {
    /// Nothing yet, of what counts from `from` to `to`.
    pub fn new(from: i64, to: i64, boot: i64, patience: i64) -> Self {
        let seconds = usize::try_from(patience).unwrap_or(0) + 1;
        Self {
            from,
            to,
            boot,
            patience,
            waits: vec![0; seconds],
            calls: 0,
            cold: 0,
            unserved: 0,
            starts: 0,
            refused: 0,
            node_seconds: 0,
            call_seconds: 0,
            most_calls: 0,
            watch: None,
        }
    }

    /// A call that came at this second was connected after so long.
    pub fn served(&mut self, at: i64, waited: i64, lasts: i64) {
        if let Some(watch) = &mut self.watch {
            watch.call(at, Some((waited, lasts)));
        }
        self.calls += 1;
        self.call_seconds += lasts;
        self.cold += u64::from(waited > 0 && waited * 100 >= self.boot * COLD_PERCENT);
        self.count(waited);
    }

    /// A call that came at this second gave up: it has waited as long as its caller's patience.
    pub fn gave_up(&mut self, at: i64) {
        if let Some(watch) = &mut self.watch {
            watch.call(at, None);
        }
        self.calls += 1;
        self.cold += 1;
        self.unserved += 1;
        self.count(self.patience);
    }

    fn count(&mut self, seconds: i64) {
        let place = usize::try_from(seconds).unwrap_or(0).min(self.waits.len() - 1);
        self.waits[place] += 1;
    }

    /// A node ran from its launch until it was stopped, or until what counts is over.
    pub fn ran(&mut self, launched: i64, stopped: i64) {
        let instant = |at| Instant::from_timestamp(at, 0).unwrap_or_default();
        let launch = Launch { ended_at: Some(instant(stopped)), ..Launch::at(instant(launched)) };
        if let Some(watch) = &mut self.watch {
            watch.ran(launched.max(self.from), stopped.min(self.to));
        }
        // The rule of the budget guard: a minute at least for each start.
        self.node_seconds += launch.billed_seconds_within(instant(self.from), instant(self.to), instant(self.to));
    }

    /// Calls that waited at all.
    pub fn waited(&self) -> u64 {
        self.calls - self.waits.first().copied().unwrap_or(0)
    }

    /// The mean wait in seconds.
    pub fn mean_wait(&self) -> f64 {
        let sum: u64 = (0..).zip(&self.waits).map(|(seconds, calls)| seconds * calls).sum();
        sum as f64 / self.calls.max(1) as f64
    }

    /// The wait that so many percent of the calls do not exceed, in seconds: the nearest rank.
    pub fn wait_at(&self, percent: u64) -> i64 {
        let rank = (self.calls * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = |calls: &u64| {
            seen += calls;
            seen >= rank
        };
        i64::try_from(self.waits.iter().position(reached).unwrap_or(0)).unwrap_or(0)
    }

    /// A share of the calls.
    pub fn share(&self, of: u64) -> f64 {
        of as f64 / self.calls.max(1) as f64
    }

    /// The span that counts, in seconds.
    pub fn span(&self) -> i64 {
        self.to - self.from
    }

    /// The first second that counts.
    pub fn from(&self) -> i64 {
        self.from
    }

    /// The end of what counts.
    pub fn to(&self) -> i64 {
        self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally() -> Tally {
        Tally::new(1000, 5000, 55, 90)
    }

    #[test]
    fn waits_are_exact_by_the_nearest_rank() {
        let mut tally = tally();
        (0..18).for_each(|_| tally.served(1, 0, 60));
        tally.served(1, 55, 60);
        tally.gave_up(1);
        assert_eq!((tally.calls, tally.cold, tally.unserved), (20, 2, 1));
        assert_eq!((tally.wait_at(50), tally.wait_at(90), tally.wait_at(95), tally.wait_at(100)), (0, 0, 55, 90));
        assert!((tally.mean_wait() - 145.0 / 20.0).abs() < 1e-9);
    }

    #[test]
    fn cold_is_nearly_a_whole_boot() {
        let mut tally = tally();
        [52, 53, 54].into_iter().for_each(|wait| tally.served(1, wait, 1));
        assert_eq!(tally.cold, 2, "95 % of 55 s are 52.25 s");
    }

    #[test]
    fn a_start_is_billed_for_a_minute_at_least_and_within_what_counts() {
        let mut tally = tally();
        tally.ran(2000, 2010);
        assert_eq!(tally.node_seconds, 60);
        tally.ran(900, 1100);
        tally.ran(4900, 9000);
        assert_eq!(tally.node_seconds, 60 + 100 + 100);
    }
}
