//! Makes one call of the rows of one user that follow each other within a pause: who commits, clicks or asks again a few minutes
//! later was there all the while.

use super::Call;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The sessions under way. Those are held that are not over, or began after one that is not.
pub(super) struct Sessions {
    pause: i64,
    open: BTreeMap<u64, Call>,
    /// When each of them is over, unless its user comes again.
    over: BTreeSet<(i64, u64)>,
    /// When each of them began.
    began: BTreeSet<(i64, u64)>,
    closed: BinaryHeap<Reverse<(i64, i64)>>,
}

impl Sessions {
    pub(super) fn new(pause: i64) -> Self {
        let (open, over, began, closed) = Default::default();
        Self { pause, open, over, began, closed }
    }

    /// Takes a row in, in order of time.
    pub(super) fn put(&mut self, user: u64, row: Call) {
        self.close_before(row.at);
        let end = row.at + row.lasts;
        if let Some(session) = self.open.get_mut(&user) {
            let known = session.at + session.lasts;
            self.over.remove(&(known + self.pause, user));
            session.lasts = known.max(end) - session.at;
            self.over.insert((known.max(end) + self.pause, user));
            return;
        }
        self.open.insert(user, row);
        self.over.insert((end + self.pause, user));
        self.began.insert((row.at, user));
    }

    fn close_before(&mut self, at: i64) {
        while let Some((over, user)) = self.over.first().copied().filter(|(over, _)| *over < at) {
            self.over.remove(&(over, user));
            if let Some(session) = self.open.remove(&user) {
                self.began.remove(&(session.at, user));
                self.closed.push(Reverse((session.at, session.lasts)));
            }
        }
    }

    /// No row comes any more.
    pub(super) fn close(&mut self) {
        self.close_before(i64::MAX);
    }

    /// The next session that is over and began before all that are not.
    pub(super) fn take(&mut self) -> Option<Call> {
        let Reverse((at, _)) = self.closed.peek()?;
        if self.began.first().is_some_and(|(began, _)| began < at) {
            return None;
        }
        self.closed.pop().map(|Reverse((at, lasts))| Call { at, lasts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(rows: &[(u64, i64)]) -> Vec<(i64, i64)> {
        let mut sessions = Sessions::new(600);
        let mut all = Vec::new();
        for (user, at) in rows {
            sessions.put(*user, Call { at: *at, lasts: 300 });
            all.extend(std::iter::from_fn(|| sessions.take()));
        }
        sessions.close();
        all.extend(std::iter::from_fn(|| sessions.take()));
        all.into_iter().map(|call| (call.at, call.lasts)).collect()
    }

    #[test]
    fn a_pause_joins_and_a_longer_one_parts() {
        assert_eq!(sessions(&[(1, 0), (1, 900), (1, 1800)]), [(0, 2100)], "each pause is measured from the end");
        assert_eq!(sessions(&[(1, 0), (1, 901)]), [(0, 300), (901, 300)]);
    }

    #[test]
    fn users_are_apart_and_the_starts_stay_in_order() {
        assert_eq!(sessions(&[(1, 0), (2, 100), (1, 800), (3, 2000)]), [(0, 1100), (100, 300), (2000, 300)]);
    }
}
