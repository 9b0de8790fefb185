//! Makes a day short that breaks a promise: takes out whatever it breaks without.

use crate::day::Day;

/// The shortest day found that still `fails`, by taking out ever smaller runs of happenings. It is a day of its own: it may
/// break the promise in another way than the first.
pub fn shrink(day: &Day, fails: impl Fn(&Day) -> bool) -> Day {
    let mut best = day.clone();
    let mut size = best.happenings.len().div_ceil(2);
    while size > 0 {
        let before = best.happenings.len();
        best = without_runs_of(size, best, &fails);
        // What was needed for something that is gone now may go as well.
        size = if size == 1 && best.happenings.len() < before { 1 } else { size / 2 };
    }
    best
}

fn without_runs_of(size: usize, mut best: Day, fails: &impl Fn(&Day) -> bool) -> Day {
    let mut from = 0;
    while from < best.happenings.len() {
        let mut shorter = best.clone();
        let to = (from + size).min(shorter.happenings.len());
        shorter.happenings.drain(from..to);
        if fails(&shorter) {
            best = shorter;
        } else {
            from += size;
        }
    }
    best
}
