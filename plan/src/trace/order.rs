//! Puts rows in order of time as far as so many rows reach back, and refuses what lies further.

use super::rows::Row;
use super::{Repairs, What};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Rows that are looked at before the earliest is let go: a log is written at the end of each request, so its starts are out of
/// order. Enough for that, and a file of this size may be in any order.
const HELD: usize = 65_536;

/// A longer silence is a clock that jumped, or a line of another file.
const LONGEST_SILENCE: i64 = 400 * 86_400;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    at: i64,
    number: u64,
    what: What,
    user: u64,
}

/// The rows that are held back.
pub(super) struct Order {
    /// Those that came in order, which is nearly all of most files.
    held: VecDeque<Held>,
    /// Those that came after a later one.
    late: BinaryHeap<Reverse<Held>>,
    /// The newest row that was taken in, to tell that one came out of order.
    newest: i64,
    /// The row that was let go last.
    last: Option<Held>,
}

/// A row in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) at: i64,
    pub(super) what: What,
    pub(super) user: u64,
}

/// A fault, and its line.
pub(super) type Misplaced = (u64, String);

impl Default for Order {
    fn default() -> Self {
        // One more than that never is: grown by itself it would double.
        Self { held: VecDeque::with_capacity(HELD + 1), late: BinaryHeap::new(), newest: 0, last: None }
    }
}

impl Order {
    /// Takes a row in. Gives the earliest where enough are held.
    pub(super) fn put(&mut self, number: u64, row: Row, repairs: &mut Repairs) -> Result<Option<Placed>, Misplaced> {
        let held = Held { at: row.at, number, what: row.what, user: row.user };
        if row.at < self.newest {
            repairs.unsorted += 1;
            self.late.push(Reverse(held));
        } else {
            self.newest = row.at;
            self.held.push_back(held);
        }
        if self.held.len() + self.late.len() <= HELD { Ok(None) } else { self.take(repairs) }
    }

    /// Gives the earliest that is held; none when all are gone.
    pub(super) fn take(&mut self, repairs: &mut Repairs) -> Result<Option<Placed>, Misplaced> {
        let is_late = match (self.held.front(), self.late.peek()) {
            (Some(first), Some(Reverse(late))) => late < first,
            (first, _) => first.is_none(),
        };
        let next = if is_late { self.late.pop().map(|Reverse(late)| late) } else { self.held.pop_front() };
        let Some(next) = next else { return Ok(None) };
        if let Some(last) = &self.last {
            check(last, &next)?;
            repairs.repeated += u64::from(last.at == next.at && last.what == next.what);
        }
        let given = Placed { at: next.at, what: next.what, user: next.user };
        self.last = Some(next);
        Ok(Some(given))
    }
}

fn check(last: &Held, next: &Held) -> Result<(), Misplaced> {
    let (apart, line) = (next.at - last.at, last.number);
    if apart < 0 {
        let far = format!("lies {} s before that of line {line}, over {HELD} lines out of order", -apart);
        return Err((next.number, format!("its time {far}: sort the file by time")));
    }
    if apart > LONGEST_SILENCE {
        let (number, other) = (next.number.max(line), next.number.min(line));
        let days = apart / 86_400;
        return Err((number, format!("between its time and that of line {other} lie {days} days: did a clock jump?")));
    }
    match last.what {
        What::Bin { lasts, .. } if apart > 0 && apart < lasts => Err((
            next.number,
            format!("its bin overlaps that of line {line}: bins last {lasts} s, these begin {apart} s apart"),
        )),
        What::Bin { .. } | What::Call { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(rows: &[(i64, What)]) -> Result<(Vec<i64>, Repairs), Misplaced> {
        let (mut order, mut repairs, mut times) = (Order::default(), Repairs::default(), Vec::new());
        for (number, (at, what)) in (1..).zip(rows) {
            let row = Row { at: *at, what: *what, user: 0, has_fraction: false };
            times.extend(order.put(number, row, &mut repairs)?.map(|row| row.at));
        }
        while let Some(row) = order.take(&mut repairs)? {
            times.push(row.at);
        }
        Ok((times, repairs))
    }

    fn calls(times: impl IntoIterator<Item = i64>) -> Vec<(i64, What)> {
        times.into_iter().map(|at| (at, What::Call { lasts: 60 })).collect()
    }

    fn bins(times: &[i64]) -> Vec<(i64, What)> {
        times.iter().map(|at| (*at, What::Bin { lasts: 60, requests: 1 })).collect()
    }

    #[test]
    fn what_is_out_of_order_is_put_in_order_and_counted() {
        let (times, repairs) = ordered(&calls([30, 10, 20, 20])).unwrap();
        assert_eq!((times, repairs.unsorted, repairs.repeated), (vec![10, 20, 20, 30], 3, 1));
    }

    #[test]
    fn what_lies_too_far_back_is_told() {
        let far: Vec<i64> = (100..).take(HELD + 2).chain([5]).collect();
        let (line, fault) = ordered(&calls(far)).unwrap_err();
        assert_eq!(line, u64::try_from(HELD).unwrap() + 3);
        assert!(fault.contains("sort the file"), "{fault}");
    }

    #[test]
    fn a_clock_that_jumps_is_told() {
        let now = 1_796_029_200;
        for times in [vec![now, now + 60, 90], vec![now, now + 60, now + 40 * LONGEST_SILENCE]] {
            let (line, fault) = ordered(&calls(times)).unwrap_err();
            assert!(line == 3 && fault.contains("did a clock jump"), "{line}: {fault}");
        }
    }

    #[test]
    fn bins_may_repeat_and_may_not_overlap() {
        assert_eq!(ordered(&bins(&[0, 60, 60, 180])).map(|(times, _)| times), Ok(vec![0, 60, 60, 180]));
        assert!(ordered(&bins(&[0, 30])).unwrap_err().1.contains("overlaps"));
    }
}
