//! How long replays take, and that memory does not grow with the trace. Prints what it measures: `cargo bench -p reveille-plan`.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reveille::domain::{Disk, InstanceType, Usd};
use reveille::prices::Prices;
use reveille_plan::answers::CallPrices;
use reveille_plan::costs::{Address, Fleet};
use reveille_plan::plans::Setup;
use reveille_plan::replay::events::Announced;
use reveille_plan::run::{Comparison, Request};
use reveille_plan::trace::Reading;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

const CALLS_A_DAY: u32 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("reveille-bench-{}.csv", std::process::id()));
    let measured = measure(&file);
    std::fs::remove_file(&file)?;
    measured
}

fn measure(file: &Path) -> Result<(), Box<dyn Error>> {
    println!("{CALLS_A_DAY} calls a day; seconds of the clock, and of processors where the system tells them");
    // The peak of a process never falls: the shortest trace comes first.
    for (name, days) in [("a month", 30), ("a year", 365), ("ten years", 3650)] {
        write_trace(file, days)?;
        let took = replayed(file, grid(2, 2), 2)?;
        println!("{name:>9},   7 plans, two threads: {took}; peak memory {}", peak_memory());
    }
    write_trace(file, 365)?;
    let one = Setup { prewarms: Vec::new(), ..grid(1, 0) };
    println!("   a year, one plan beside 24/7:    {}", replayed(file, one, 1)?);
    println!("   a year, 501 plans, two threads: {}; peak memory {}", replayed(file, grid(20, 24), 2)?, peak_memory());
    Ok(())
}

/// Of so many idle times, alone and with each of so many expiries, beside 24/7.
fn grid(idles: i64, prewarms: i64) -> Setup {
    Setup {
        idles: (1..=idles).map(|n| 5 * n).collect(),
        prewarms: (1..=prewarms).map(|n| 5 * n).collect(),
        grid: true,
        ..Setup::default()
    }
}

/// Office hours, in a year of days.
fn write_trace(file: &Path, days: i64) -> std::io::Result<()> {
    let mut random = StdRng::seed_from_u64(7);
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    writeln!(out, "t,duration")?;
    for day in 0..days {
        // Two draws make the middle of the day the busiest.
        let mut of_day: Vec<i64> =
            (0..CALLS_A_DAY).map(|_| random.random_range(0..43_200) + random.random_range(0..43_200)).collect();
        of_day.sort_unstable();
        for second in of_day {
            writeln!(out, "{},{}", 1_767_225_600 + day * 86_400 + second, random.random_range(10..900))?;
        }
    }
    out.flush()
}

fn replayed(file: &Path, setup: Setup, threads: usize) -> Result<String, Box<dyn Error>> {
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let comparison = Comparison::open(request(file.to_owned(), setup, threads)?)?;
    let report = comparison.run(&mut |_| {})?;
    let took = began.elapsed().as_secs_f64();
    if report.plans.iter().any(|plan| plan.wait_mean_seconds.is_nan()) {
        return Err("a plan without calls".into());
    }
    let cpu = cpu.zip(cpu_seconds()).map_or_else(|| "?".to_owned(), |(before, after)| format!("{:.2}", after - before));
    Ok(format!("{took:6.2} s, {cpu:>6} s of processors"))
}

fn request(trace: PathBuf, setup: Setup, threads: usize) -> Result<Request, Box<dyn Error>> {
    Ok(Request {
        trace,
        reading: Reading::default(),
        thin: None,
        seed: 0,
        setup,
        announced: Announced::default(),
        fleet: Fleet {
            kind: InstanceType::new("g6.xlarge")?,
            nodes: 1,
            disk: Disk { kind: "gp3".to_owned(), gib: 100, iops: 3000, mibps: 125, created_at: None },
            address: Address::None,
            controller: Usd::ZERO,
        },
        prices: Prices::new("us-east-1", BTreeMap::new()),
        calls: CallPrices::default(),
        threads,
    })
}

/// Linux tells the most that a process has held.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or_else(|| "unknown".to_owned(), |peak| peak.trim().to_owned())
}

/// And the time of its threads on processors: fields 14 and 15, in hundredths of a second.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: Vec<f64> = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / 100.0)
}
