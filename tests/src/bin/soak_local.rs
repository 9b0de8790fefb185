//! Plays days of the soak with the built functions on the local AWS: `soak_local --seeds 5`, `soak_local --seed 17`.

use clap::Parser;
use reveille_soak::day::Day;
use reveille_soak::faults::{Kind, Struck};
use reveille_soak::play::{Report, play};
use reveille_soak::trace::Trace;
use reveille_tests::soak::{Local, left_out, plays, shortened};
use reveille_tests::stage::{StageResult, root};
use std::process::ExitCode;
use std::time::Instant;

/// Random days with faults, played with the built functions; the promises are held against what happened.
#[derive(Debug, Parser)]
struct Args {
    /// How many days.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// The first day's seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// One day again, with its timeline.
    #[arg(long)]
    seed: Option<u64>,
    /// A day's length; what a whole day brings, but for the later calls, comes closer together.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(i64).range(8..=27))]
    hours: i64,
    /// Shows every line of the functions too.
    #[arg(long)]
    lines: bool,
}

fn main() -> StageResult<ExitCode> {
    let args = Args::parse();
    let trace = Trace::open(&root())?;
    let (from, seeds) = args.seed.map_or((args.from, args.seeds), |seed| (seed, 1));
    println!(
        "seeds {from} to {}, days of {} hours, the built functions on the local AWS",
        from + seeds - 1,
        args.hours
    );
    let (mut struck, mut broken, mut invocations) = (Struck::default(), 0, 0);
    for seed in from..from + seeds {
        let day = shortened(&Day::of(seed, &trace), args.hours);
        let began = Instant::now();
        let (report, of_day) = one_day(&day, args.lines)?;
        struck.merge(&of_day);
        broken += u64::from(report.violation.is_some());
        invocations += report.runs;
        tell(&report, seed, &of_day, began, args.seed.is_some());
    }
    println!("\n{struck}\n");
    println!("not played on the local AWS: {}; nor are decisions replayed", words(&left_out()));
    let missing: Vec<_> = struck.missing().into_iter().filter(|(kind, call)| plays(*kind, call)).collect();
    if !missing.is_empty() {
        println!("not tried in so few days: {}", words(&missing));
    }
    println!("invocations={invocations}");
    println!("seeds={seeds} faults={} violations={broken}", struck.total());
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn one_day(day: &Day, lines: bool) -> StageResult<(Report, Struck)> {
    let (day, stage) = Local::open(day)?;
    let mut stage = if lines { stage.wordy() } else { stage };
    let report = play(&day, &mut stage);
    Ok((report, stage.struck().clone()))
}

fn tell(report: &Report, seed: u64, struck: &Struck, began: Instant, whole: bool) {
    if whole || report.violation.is_some() {
        report.timeline.iter().for_each(|(at, text)| println!("{} {text}", at.format("%d %H:%M:%S")));
    }
    let seconds = began.elapsed().as_secs();
    let end = match &report.violation {
        None => "no promise broken".to_owned(),
        Some(broken) => format!("{} VIOLATION {}: {}", broken.at.format("%d %H:%M:%S"), broken.promise, broken.what),
    };
    println!("seed {seed}: {} invocations, {} faults, {seconds} s: {end}", report.runs, struck.total());
}

fn words(pairs: &[(Kind, &str)]) -> String {
    let words: Vec<String> = pairs.iter().map(|(kind, call)| format!("{} {call}", kind.as_str())).collect();
    words.join(", ")
}
