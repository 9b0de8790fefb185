//! Which lines of a log would wake a node?

use reveille::access_log::{self, Filter, FilterFault, FilterSpec, Verdict};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;

/// Why the log cannot be judged.
#[derive(Debug)]
pub(crate) enum LinesFault {
    /// The filter.
    Filter(FilterFault),
    /// The file.
    Io(String, io::Error),
}

impl std::fmt::Display for LinesFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Filter(fault) => write!(f, "{fault}"),
            Self::Io(file, error) => write!(f, "{file}: {error}"),
        }
    }
}

/// Judges each line of the file and prints the counts, most first.
///
/// # Errors
/// The filter is malformed, or the file cannot be read.
pub(crate) fn show(paths: Vec<String>, statuses: Vec<String>, each: bool, file: &Path) -> Result<(), LinesFault> {
    let statuses = (!statuses.is_empty()).then_some(statuses);
    let spec = FilterSpec { paths, methods: None, statuses, ignore_agents: Vec::new() };
    let filter = Filter::new(spec).map_err(LinesFault::Filter)?;
    let named = |error| LinesFault::Io(file.display().to_string(), error);
    let input: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(file).map_err(named)?))
    };
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut out = io::stdout().lock();
    for line in input.split(b'\n') {
        let line = line.map_err(named)?;
        if line.is_empty() {
            continue;
        }
        let verdict = verdict(&filter, &line);
        *counts.entry(verdict).or_default() += 1;
        if each {
            writeln!(out, "{verdict:<12} {}", String::from_utf8_lossy(&line)).map_err(named)?;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (verdict, count) in counts {
        writeln!(out, "{count:>8} {verdict}").map_err(named)?;
    }
    Ok(())
}

fn verdict(filter: &Filter, line: &[u8]) -> &'static str {
    match access_log::read(line).map(|line| filter.judge(&line)) {
        None => "unread",
        Some(Verdict::Wakes) => "wakes",
        Some(Verdict::Noise(reason)) => reason.as_str(),
    }
}
