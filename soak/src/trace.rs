//! Arrivals of a public trace, thinned to a small staging node.

use chrono::{DateTime, TimeDelta, Utc};
use flate2::read::GzDecoder;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::io::{self, Read as _};
use std::path::Path;

const BINS_A_DAY: usize = 24 * 12;

/// One call of the day.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// When the caller wants to talk.
    pub at: DateTime<Utc>,
    /// How long the call lasts.
    pub lasts: TimeDelta,
    /// How long before the call the app was opened; absent where the app did not announce it.
    pub announced: Option<TimeDelta>,
}

/// Counts of requests in bins of five minutes, from a midnight on.
#[derive(Debug, Clone)]
pub struct Trace(Vec<u32>);

impl Trace {
    /// The load-balancer trace of the repository at `root`.
    ///
    /// # Errors
    /// The file is missing or is no such trace.
    pub fn open(root: &Path) -> io::Result<Self> {
        let text = unzip(&root.join("tests/data/nab_elb_5min_counts.csv.gz"))?;
        let count = |line: &str| line.split_once(',').and_then(|(_, count)| count.trim().parse().ok());
        let counts = text
            .lines()
            .skip(1)
            .map(|line| count(line).ok_or_else(|| io::Error::other(format!("no count in {line:?}"))));
        Ok(Self(counts.collect::<io::Result<_>>()?))
    }

    /// How many whole days it has.
    pub fn days(&self) -> usize {
        self.0.len() / BINS_A_DAY
    }

    /// The calls of one day, each request kept with the same chance so that about `wanted` are left: the shape of the bursts
    /// stays. None for a day that it does not have.
    pub fn arrivals(&self, day: usize, wanted: f64, midnight: DateTime<Utc>, seed: u64) -> Option<Vec<Arrival>> {
        let bins = self.0.get(day * BINS_A_DAY..(day + 1) * BINS_A_DAY)?;
        let chance = (wanted / bins.iter().map(|count| f64::from(*count)).sum::<f64>().max(1.0)).min(1.0);
        let mut random = StdRng::seed_from_u64(seed);
        let mut calls = Vec::new();
        for (bin, count) in (0_i64..).zip(bins) {
            let kept = (0..*count).filter(|_| random.random_bool(chance)).count();
            for _ in 0..kept {
                let at = midnight + TimeDelta::seconds(bin * 300 + random.random_range(0..300));
                calls.push(Arrival {
                    at,
                    lasts: TimeDelta::seconds(random.random_range(120..480)),
                    announced: random.random_bool(0.7).then(|| TimeDelta::seconds(random.random_range(30..150))),
                });
            }
        }
        calls.sort_by_key(|call| call.at);
        Some(calls)
    }
}

/// The text of a gzip file.
///
/// # Errors
/// The file is missing, or is no gzip of UTF-8.
pub fn unzip(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot open {}: {error}", path.display())))?;
    GzDecoder::new(file).read_to_string(&mut text)?;
    Ok(text)
}
