//! Which lines of a log would wake a node?

use reveille::access_log::{Filter, FilterFault, FilterSpec, Verdict};
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
pub(crate) fn show(spec: FilterSpec, each: bool, file: &Path) -> Result<(), LinesFault> {
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
        let (verdict, took) = judged(&filter, &line);
        *counts.entry(verdict).or_default() += 1;
        if each {
            writeln!(out, "{verdict:<12} {took:>10} {}", String::from_utf8_lossy(&line)).map_err(named)?;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (verdict, count) in counts {
        writeln!(out, "{count:>8} {verdict}").map_err(named)?;
    }
    Ok(())
}

/// Reads `KEY=NAME`; the filter says whether the key is known.
///
/// # Errors
/// There is no `=`.
pub(crate) fn field(text: &str) -> Result<(String, String), String> {
    let (key, name) = text.split_once('=').ok_or("has to be KEY=NAME, such as path=url.path")?;
    Ok((key.to_owned(), name.to_owned()))
}

/// The verdict, and how long the request took, `-` if the line does not say.
fn judged(filter: &Filter, line: &[u8]) -> (&'static str, String) {
    let Some(line) = filter.read(line) else { return ("unread", "-".to_owned()) };
    let took = line.took.map_or("-".to_owned(), |took| format!("{:.3}s", took.as_seconds_f64()));
    match filter.judge(&line) {
        Verdict::Wakes => ("wakes", took),
        Verdict::Noise(reason) => (reason.as_str(), took),
    }
}
