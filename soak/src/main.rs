//! Plays many days, or one again: `soak --seeds 200`, `soak --seed 17`, `soak --day FILE`.

use clap::Parser;
use reveille_soak::day::Day;
use reveille_soak::faults::Struck;
use reveille_soak::memory::Memory;
use reveille_soak::play::{Report, describe, play};
use reveille_soak::shrink::shrink;
use reveille_soak::trace::Trace;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// From so many days on every pair of fault and call has to have been tried.
const ENOUGH: u64 = 200;

/// Random days with faults, and the promises held against what happened.
#[derive(Parser)]
struct Args {
    /// How many days.
    #[arg(long, default_value_t = 50)]
    seeds: u64,
    /// The first day's seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// One day again, with its timeline.
    #[arg(long, conflicts_with = "day")]
    seed: Option<u64>,
    /// A day from a file, with its timeline.
    #[arg(long)]
    day: Option<PathBuf>,
    /// Leaves a day that breaks a promise as long as it is.
    #[arg(long)]
    no_shrink: bool,
    /// Where the repository is.
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Where short days are written to.
    #[arg(long, default_value = "target/soak")]
    out: PathBuf,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let trace = Trace::open(&args.root)?;
    let one = match (&args.day, args.seed) {
        (Some(file), _) => Some(serde_json::from_str(&std::fs::read_to_string(file)?)?),
        (None, Some(seed)) => Some(Day::of(seed, &trace)),
        (None, None) => None,
    };
    match one {
        Some(day) => one_day(&day, &args),
        None => many_days(&args, &trace),
    }
}

fn report(day: &Day) -> Report {
    match Memory::new(&day.setup, day.seed) {
        Ok(mut stage) => play(day, &mut stage),
        Err(faults) => panic!("the day of seed {} is not configured right: {faults}", day.seed),
    }
}

fn one_day(day: &Day, args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let report = report(day);
    report.timeline.iter().for_each(|(at, text)| println!("{} {text}", at.format("%d %H:%M:%S")));
    let Some(violation) = &report.violation else {
        println!("seed={} runs={} faults={} violations=0", day.seed, report.runs, report.struck.total());
        return Ok(ExitCode::SUCCESS);
    };
    println!("{} VIOLATION {}: {}", violation.at.format("%d %H:%M:%S"), violation.promise, violation.what);
    tell_short(day, violation.promise, args)?;
    Ok(ExitCode::FAILURE)
}

fn tell_short(day: &Day, promise: &str, args: &Args) -> Result<(), Box<dyn Error>> {
    if args.no_shrink {
        return Ok(());
    }
    let short = shrink(day, |day| report(day).violation.is_some_and(|violation| violation.promise == promise));
    std::fs::create_dir_all(&args.out)?;
    let file = args.out.join(format!("seed-{}.json", day.seed));
    std::fs::write(&file, serde_json::to_string_pretty(&short)?)?;
    println!("\nseed {} in short: {} of {} happenings", day.seed, short.happenings.len(), day.happenings.len());
    println!("  configured: {}", serde_json::to_string(&short.setup)?);
    for happening in &short.happenings {
        println!("  {} {}", short.instant(happening.at).format("%d %H:%M:%S"), describe(&happening.what));
    }
    if let Some(violation) = report(&short).violation {
        println!("  {} {}: {}", violation.at.format("%d %H:%M:%S"), violation.promise, violation.what);
    }
    println!("  again: soak --day {}", file.display());
    Ok(())
}

fn many_days(args: &Args, trace: &Trace) -> Result<ExitCode, Box<dyn Error>> {
    let (next, end) = (AtomicU64::new(args.from), args.from + args.seeds);
    let (send, receive) = mpsc::channel();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    println!("seeds {} to {}", args.from, end - 1);
    thread::scope(|scope| {
        for _ in 0..workers {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let done = seed >= end || send.send((seed, report(&Day::of(seed, trace)))).is_err();
                    if done {
                        return;
                    }
                }
            });
        }
        drop(send);
        gather(args, trace, receive)
    })
}

fn gather(args: &Args, trace: &Trace, days: mpsc::Receiver<(u64, Report)>) -> Result<ExitCode, Box<dyn Error>> {
    let (mut struck, mut runs, mut done, mut broken) = (Struck::default(), 0, 0, Vec::new());
    for (seed, report) in days {
        struck.merge(&report.struck);
        runs += report.runs;
        done += 1;
        if done % 25 == 0 {
            println!("{done} days, {runs} invocations, {} faults, {} violations", struck.total(), broken.len());
        }
        if let Some(violation) = report.violation {
            println!("seed {seed}: {}: {}", violation.promise, violation.what);
            broken.push((seed, violation));
        }
    }
    broken.sort_by_key(|(seed, _)| *seed);
    if let Some((seed, violation)) = broken.first() {
        tell_short(&Day::of(*seed, trace), violation.promise, args)?;
    }
    println!("\n{struck}\n");
    let missing = struck.missing();
    let words: Vec<String> = missing.iter().map(|(kind, call)| format!("{} {call}", kind.as_str())).collect();
    if !missing.is_empty() {
        let note = if args.seeds >= ENOUGH { "never tried" } else { "not tried in so few days" };
        println!("{note}: {}", words.join(", "));
    }
    println!("invocations={runs}");
    println!("seeds={} faults={} violations={}", args.seeds, struck.total(), broken.len());
    let failed = !broken.is_empty() || (args.seeds >= ENOUGH && !missing.is_empty());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
