//! A month's money: counted calls of each path by the dated list prices in `prices.csv`. The assumptions are those of the
//! cost table in `infra/README.md`.

use super::row::{Row, Target};
use super::warm::Counts;

const PRICES: &str = include_str!("prices.csv");
const MOST_USD: f64 = 0.10;

const HOURS: f64 = 730.0;
const TICKS_AN_HOUR: f64 = 12.0;
const UPTIME_LOOKS_AN_HOUR: f64 = 4.0;
/// On the high side: what is measured is a tenth of it, and Lambda bills by the millisecond.
const BILLED_SECONDS: f64 = 1.0;
const MEMORY_GB: f64 = 0.128;
/// What one run writes to its log.
const LOG_GB: f64 = 1.3e-6;

/// How a node is used in a month.
struct Month {
    name: &'static str,
    hours_up: f64,
    /// Pre-warms that find it asleep.
    starts: f64,
    /// Pre-warms that find it ready.
    wakes: f64,
    /// Calls that hold a lease.
    calls: f64,
    /// Each renewed so often.
    renewals: f64,
}

/// Five hours in which a few calls come.
const QUIET: Month =
    Month { name: "one quiet node", hours_up: 5.0, starts: 5.0, wakes: 5.0, calls: 10.0, renewals: 5.0 };
/// Twelve hours a day of calls of five minutes, each renewing its lease by the minute.
const BUSY: Month =
    Month { name: "200 calls a day", hours_up: 365.0, starts: 30.4, wakes: 6083.0, calls: 6083.0, renewals: 5.0 };

pub(super) fn rows(counts: &Counts) -> Vec<Row> {
    let row = |month: &Month| {
        let parts = parts(month, counts);
        let sum = parts.iter().map(|(_, usd)| usd).sum();
        let words: Vec<String> = parts.iter().map(|(part, usd)| format!("{part} {usd:.4}")).collect();
        Row::of(format!("a month of {}: calls, functions and table", month.name), sum, "USD").note(words.join(", "))
    };
    vec![row(&QUIET).target(Target::AtMost(MOST_USD)), row(&BUSY)]
}

fn parts(month: &Month, counts: &Counts) -> Vec<(&'static str, f64)> {
    let asleep = HOURS - month.hours_up;
    let paths = [
        ("tick, asleep", asleep * TICKS_AN_HOUR),
        ("tick, awake", month.hours_up * TICKS_AN_HOUR),
        ("uptime alarm, asleep", HOURS * UPTIME_LOOKS_AN_HOUR),
        ("budget guard, asleep", HOURS),
        ("wake, asleep", month.starts),
        ("wake, awake", month.wakes),
        ("lease given", month.calls),
        ("lease renewed", month.calls * month.renewals),
        ("lease ended", month.calls),
    ];
    let runs: f64 = paths.iter().map(|(_, times)| times).sum();
    let of = |actions: &[(&str, f64)]| -> f64 {
        let units = |path: &str| -> f64 {
            let count = |action: &str| counts.0[path].get(action).copied().unwrap_or_default() as f64;
            actions.iter().map(|(action, units)| count(action) * units).sum()
        };
        paths.iter().map(|(path, times)| units(path) * times).sum()
    };
    // A batch reads the pool's item and at most one beat; all items are below 4 KiB to read and 1 KiB to write.
    let reads = of(&[("BatchGetItem", 2.0), ("GetItem", 1.0), ("Query", 1.0)]);
    let writes = of(&[("UpdateItem", 1.0), ("PutItem", 1.0)]);
    // Three metrics of a load balancer at a tick; one of each node at a look at the uptime.
    let metrics = HOURS * UPTIME_LOOKS_AN_HOUR + 3.0 * month.hours_up * TICKS_AN_HOUR;
    vec![
        ("runs", runs * price("lambda_request")),
        ("their time", runs * BILLED_SECONDS * MEMORY_GB * price("lambda_gb_second")),
        ("metrics", metrics * price("get_metric_data")),
        ("ledger", reads * price("dynamodb_read") + writes * price("dynamodb_write")),
        ("logs", runs * LOG_GB * price("log_gb")),
    ]
}

/// In dollars for one.
fn price(item: &str) -> f64 {
    let row = PRICES.lines().find(|line| line.split(',').next() == Some(item));
    let cells: Vec<f64> =
        row.into_iter().flat_map(|row| row.split(',').skip(1).take(2)).filter_map(|cell| cell.parse().ok()).collect();
    match cells[..] {
        [usd, per] => usd / per,
        _ => panic!("prices.csv has no {item}"),
    }
}
