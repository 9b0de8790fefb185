//! One piece of work of the library, many times, without the AWS SDK: it is built in seconds, so that callgrind can count its
//! instructions in every test run, and in the profile of the functions, so that `make bench` can time it.

mod batch;
mod decisions;
mod tick;

use clap::{Parser, ValueEnum};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

/// Does one piece of work so many times, and prints `TIMES BYTES NANOSECONDS`.
#[derive(Debug, Parser)]
struct Args {
    /// What is done.
    #[arg(long, value_enum)]
    work: Work,
    /// How often.
    #[arg(long, default_value_t = 1)]
    times: u32,
    /// Lines of a log batch, or nodes of a tick.
    #[arg(long, default_value_t = 10_000)]
    size: usize,
    /// Where the batch of `write` goes, as Lambda's event has it: base64 around gzip.
    #[arg(long)]
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Work {
    /// Nothing: what it takes to start and to make the input of the others.
    Nothing,
    /// Writes the batch without a counted line, for another program to read.
    Write,
    /// Base64 and inflate alone, by the same libraries.
    Inflate,
    /// The log filter, with the counted line first.
    First,
    /// With the counted line last.
    Last,
    /// With none.
    Absent,
    /// The idle rule on a running node that was used lately.
    Idle,
    /// The wake rule on a sleeping node that is wanted.
    Wake,
    /// A whole tick over nodes that are used: what comes and goes over the network is made before.
    Tick,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let place = match args.work {
        Work::First => batch::Counted::First,
        Work::Last => batch::Counted::Last,
        Work::Nothing | Work::Write | Work::Inflate | Work::Absent | Work::Idle | Work::Wake | Work::Tick => {
            batch::Counted::Absent
        }
    };
    let (data, bytes) = batch::batch(args.size, place)?;
    let filter = batch::filter()?;
    let (idle, wake) = (decisions::idle(), decisions::wake());
    let tick = tick::tick(args.size)?;
    let began = Instant::now();
    for _ in 0..args.times {
        match args.work {
            Work::Nothing => {}
            Work::Write => std::fs::write(args.file.as_ref().ok_or("--file is missing")?, &data)?,
            Work::Inflate => batch::inflate(&data, bytes)?,
            Work::First | Work::Last => batch::read(&data, &filter, args.size, true)?,
            Work::Absent => batch::read(&data, &filter, args.size, false)?,
            Work::Idle => idle.decide()?,
            Work::Wake => wake.decide()?,
            Work::Tick => tick.run()?,
        }
    }
    println!("{} {bytes} {}", args.times, began.elapsed().as_nanos());
    Ok(())
}
