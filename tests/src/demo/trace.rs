//! The day's input: arrivals of a public trace thinned to a small staging node, and real log lines as noise.

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

/// The calls of day `day` of the load-balancer trace, each request kept with the same chance so that about `wanted` are
/// left: the shape of the bursts stays.
///
/// # Errors
/// The file is missing or is no such trace.
pub fn arrivals(root: &Path, day: usize, wanted: f64, midnight: DateTime<Utc>, seed: u64) -> io::Result<Vec<Arrival>> {
    let counts = counts(&root.join("tests/data/nab_elb_5min_counts.csv.gz"))?;
    let bins =
        counts.get(day * BINS_A_DAY..(day + 1) * BINS_A_DAY).ok_or_else(|| io::Error::other("the trace is shorter"))?;
    let chance = wanted / bins.iter().map(|count| f64::from(*count)).sum::<f64>();
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
    Ok(calls)
}

fn counts(path: &Path) -> io::Result<Vec<u32>> {
    let text = unzip(path)?;
    let count = |line: &str| line.split_once(',').and_then(|(_, count)| count.trim().parse().ok());
    text.lines()
        .skip(1)
        .map(|line| count(line).ok_or_else(|| io::Error::other(format!("no count in {line:?}"))))
        .collect()
}

/// Real lines of a web server's log, none of them a call: what strangers, crawlers and feed readers ask for.
///
/// # Errors
/// The file is missing.
pub fn noise(root: &Path) -> io::Result<Vec<String>> {
    Ok(unzip(&root.join("tests/data/apache_combined_sample.log.gz"))?.lines().map(str::to_owned).collect())
}

fn unzip(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot open {}: {error}", path.display())))?;
    GzDecoder::new(file).read_to_string(&mut text)?;
    Ok(text)
}

/// The access-log line of a call in combined format.
pub fn call_line(at: DateTime<Utc>, status: u16) -> String {
    let at = at.format("%d/%b/%Y:%H:%M:%S +0000");
    format!("192.0.2.77 - - [{at}] \"POST /v1/calls HTTP/1.1\" {status} 312 \"-\" \"voice-app/3.1\"")
}

/// What scanners and health checks leave in the same log.
pub fn probe_lines(at: DateTime<Utc>) -> Vec<String> {
    let at = at.format("%d/%b/%Y:%H:%M:%S +0000");
    [
        format!("10.0.0.9 - - [{at}] \"GET /healthz HTTP/1.1\" 200 2 \"-\" \"ELB-HealthChecker/2.0\""),
        format!("198.51.100.4 - - [{at}] \"GET /.env HTTP/1.1\" 404 153 \"-\" \"curl/8.5.0\""),
        format!("198.51.100.4 - - [{at}] \"POST /v1/calls HTTP/1.1\" 404 153 \"-\" \"Mozilla/5.0\""),
        format!("198.51.100.9 - - [{at}] \"GET /v1/calls HTTP/1.1\" 200 2 \"-\" \"UptimeRobot/2.0\""),
        format!("203.0.113.8 - - [{at}] \"HEAD /v1/calls HTTP/1.1\" 200 0 \"-\" \"Mozilla/5.0\""),
        format!("203.0.113.8 - - [{at}] \"\\x16\\x03\\x01\" 400 0 \"-\" \"-\""),
    ]
    .into()
}
