//! The calls of a trace: each kept with the same chance, those of a bin spread over it.

use super::{Call, Rows, TraceFault, What};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The calls of a trace in order of time.
pub struct Calls {
    rows: Rows,
    call_seconds: i64,
    chance: f64,
    random: StdRng,
    /// So many more are passed over before the next is kept.
    passed: u64,
    bin: Bin,
}

/// What is left of a bin.
#[derive(Default)]
struct Bin {
    at: f64,
    end: f64,
    left: u64,
}

impl Calls {
    pub(super) fn new(rows: Rows, call_seconds: i64, chance: f64, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let passed = to_pass(chance, &mut random);
        Self { rows, call_seconds, chance, random, passed, bin: Bin::default() }
    }

    /// The next call.
    ///
    /// # Errors
    /// As for [`super::Trace::open`]; a file that has not changed since has none.
    pub fn next_call(&mut self) -> Result<Option<Call>, TraceFault> {
        loop {
            if self.bin.left > 0 {
                return Ok(Some(self.of_bin()));
            }
            let Some((at, what)) = self.rows.next()? else { return Ok(None) };
            match what {
                What::Call { lasts } if self.kept(1) == 1 => return Ok(Some(Call { at, lasts })),
                What::Call { .. } => {}
                What::Bin { lasts, requests } => {
                    let left = self.kept(requests);
                    self.bin = Bin { at: at as f64, end: (at + lasts) as f64, left };
                }
            }
        }
    }

    /// How many of so many are kept. The distance from one to the next is drawn, so that millions of requests cost no more
    /// than the few that are kept.
    fn kept(&mut self, of: u64) -> u64 {
        if self.chance >= 1.0 {
            return of;
        }
        let (mut left, mut kept) = (of, 0);
        while left > self.passed {
            left -= self.passed + 1;
            kept += 1;
            self.passed = to_pass(self.chance, &mut self.random);
        }
        self.passed -= left;
        kept
    }

    /// The earliest of those that are left of the bin, each as likely at any second of it: drawn one after the other, so that
    /// none has to be kept.
    fn of_bin(&mut self) -> Call {
        let draw: f64 = self.random.random();
        let first = 1.0 - draw.powf(1.0 / self.bin.left as f64);
        self.bin.at += (self.bin.end - self.bin.at) * first;
        self.bin.left -= 1;
        Call { at: (self.bin.at as i64).min(self.bin.end as i64 - 1), lasts: self.call_seconds }
    }
}

/// How many are passed over before the next is kept: geometric.
fn to_pass(chance: f64, random: &mut StdRng) -> u64 {
    if chance >= 1.0 {
        return 0;
    }
    // In (0, 1], whose logarithm is finite.
    let draw = 1.0 - random.random::<f64>();
    (draw.ln() / (1.0 - chance).ln()) as u64
}
