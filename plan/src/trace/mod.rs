//! Traces: when calls came, and how long each lasted. A file is read twice, once to survey it and once for the calls, and never
//! held: what is in memory does not grow with its length.

mod lines;
mod order;
mod rows;
mod sessions;
mod thin;

use chrono::DateTime;
use chrono_tz::Tz;
use lines::Lines;
use order::{Order, Placed};
use reveille::access_log::{Filter, FilterSpec};
use rows::{Read, Reader};
use serde::Serialize;
use sessions::Sessions;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use thin::Calls;

/// Longest line that is read. Of a longer log line the beginning is enough; a longer CSV line is a fault.
const LONGEST_LINE: usize = 256 * 1024;
/// In so many lines one has to be that of a log, where the first is no CSV.
const LOOKED_AT: u64 = 100;

const DAY: i64 = 86_400;

/// How a trace is to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// How long a call lasts where the trace does not say, in seconds.
    pub call_seconds: i64,
    /// How long a bin of counts lasts, in seconds; some files tell it.
    pub bin_seconds: Option<i64>,
    /// Rows of one user that follow each other within so many seconds are one call.
    pub session_pause: Option<i64>,
    /// Only rows with this value in the column of this name.
    pub only: Option<(String, String)>,
    /// What is added to each time of a CSV: the start of a trace that counts from its own midnight.
    pub start: i64,
    /// Beginnings of the paths of a log that are calls.
    pub paths: Vec<String>,
    /// Statuses of a log that are calls; none: those that wake.
    pub statuses: Vec<String>,
    /// The format of a log, where it is not to be recognised.
    pub format: Option<String>,
    /// Names of fields of JSON lines.
    pub fields: BTreeMap<String, String>,
    /// The zone whose days and weeks are meant.
    pub zone: Tz,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            call_seconds: 300,
            bin_seconds: None,
            session_pause: None,
            only: None,
            start: 0,
            paths: vec!["/".to_owned()],
            statuses: Vec::new(),
            format: None,
            fields: BTreeMap::new(),
            zone: Tz::UTC,
        }
    }
}

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One call a line.
    Calls,
    /// Counts of requests in bins.
    Counts,
    /// An access log.
    Log,
}

/// What one row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Call { lasts: i64 },
    Bin { lasts: i64, requests: u64 },
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// When the caller wants to talk, in seconds since 1970.
    pub at: i64,
    /// How long the call lasts once it is connected, in seconds.
    pub lasts: i64,
}

/// What was put right, each so many times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Repairs {
    /// Rows out of order, put in order.
    pub unsorted: u64,
    /// Rows that say the same as the one before: each is a call of its own, or added to the same bin.
    pub repeated: u64,
    /// Rows with parts of a second: a time is rounded down, a duration up.
    pub fractions: u64,
    /// Log lines in no format that is read, or without a time: passed over.
    pub unread: u64,
    /// Rows that were read and are not asked for: another column value, path, status or agent.
    pub left: u64,
}

impl Repairs {
    /// What was put right, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let all = [
            (self.unsorted, "out of order: put in order"),
            (self.repeated, "the same as the one before: each counts"),
            (self.fractions, "with parts of a second: times are rounded down"),
            (self.unread, "in no format that is read, or without a time: passed over"),
            (self.left, "not asked for: another value, path, status or agent"),
        ];
        let some = all.into_iter().filter(|(times, _)| *times > 0);
        some.map(|(times, what)| format!("{times} {} {what}", if times == 1 { "line" } else { "lines" })).collect()
    }
}

/// What a first reading of a trace found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// What kind of file it is.
    pub kind: Kind,
    /// Lines of the file.
    pub lines: u64,
    /// Calls, or requests.
    pub calls: u64,
    /// The first instant that counts, in seconds since 1970: the midnight before the first call, or the first bin.
    pub from: i64,
    /// The end of what counts: the midnight after the last call's end, or the end of the last bin.
    pub to: i64,
    /// What was put right.
    pub repairs: Repairs,
}

impl Survey {
    /// How long it is, in days.
    pub fn days(&self) -> f64 {
        (self.to - self.from) as f64 / DAY as f64
    }

    /// How many calls came a day.
    pub fn calls_a_day(&self) -> f64 {
        self.calls as f64 / self.days()
    }
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceFault {
    /// The file.
    #[error("cannot read {}", path.display())]
    Io {
        /// Its name.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A line of it.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// Its name.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// The filter of a log.
    #[error("{0}")]
    Filter(#[from] reveille::access_log::FilterFault),
}

/// A trace that was surveyed.
#[derive(Debug, Clone)]
pub struct Trace {
    path: PathBuf,
    reading: Reading,
    reader: Reader,
    survey: Survey,
}

impl Trace {
    /// Reads the file once.
    ///
    /// # Errors
    /// It cannot be read, is in no format that is known, or a line of it is wrong.
    pub fn open(path: &Path, reading: Reading) -> Result<Self, TraceFault> {
        let reader = recognise(path, &reading)?;
        let mut rows = Rows::open(path, &reading, &reader)?;
        let (mut calls, mut from, mut to) = (0_u64, i64::MAX, 0);
        while let Some((at, what)) = rows.next()? {
            let (lasts, more) = match what {
                What::Call { lasts } => (lasts, 1),
                What::Bin { lasts, requests } => (lasts, requests),
            };
            (from, to, calls) = (from.min(at), to.max(at + lasts), calls + more);
        }
        let (lines, repairs) = (rows.lines.number(), rows.repairs);
        if calls == 0 {
            let what = match lines {
                0 => "the file is empty".to_owned(),
                _ => "no call in the whole file".to_owned(),
            };
            return Err(TraceFault::Line { path: path.to_owned(), line: lines.max(1), what });
        }
        let kind = reader.kind();
        if kind != Kind::Counts {
            (from, to) = (midnight(from, reading.zone), next_midnight(to, reading.zone));
        }
        let survey = Survey { kind, lines, calls, from, to, repairs };
        Ok(Self { path: path.to_owned(), reading, reader, survey })
    }

    /// What the first reading found.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is read.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// The calls in order of time. With `calls_a_day` each is kept with the same chance, so that about so many are left and the
    /// shape of the bursts stays; the requests of a bin are spread over it. Both depend on nothing but the seed.
    ///
    /// # Errors
    /// The file cannot be opened any more.
    pub fn calls(&self, calls_a_day: Option<f64>, seed: u64) -> Result<Calls, TraceFault> {
        let rows = Rows::open(&self.path, &self.reading, &self.reader)?;
        let chance = calls_a_day.map_or(1.0, |wanted| wanted / self.survey.calls_a_day());
        Ok(Calls::new(rows, self.reading.call_seconds, chance, seed))
    }
}

fn midnight(at: i64, zone: Tz) -> i64 {
    let local = DateTime::from_timestamp(at, 0).unwrap_or_default().with_timezone(&zone);
    let since = i64::from(chrono::Timelike::num_seconds_from_midnight(&local));
    at - since
}

fn next_midnight(at: i64, zone: Tz) -> i64 {
    let start = midnight(at, zone);
    // Noon of the next day is in it, however long the day is.
    if start == at { at } else { midnight(start + DAY + DAY / 2, zone) }
}

fn recognise(path: &Path, reading: &Reading) -> Result<Reader, TraceFault> {
    let io = |source| TraceFault::Io { path: path.to_owned(), source };
    let fault = |line, what: String| TraceFault::Line { path: path.to_owned(), line, what };
    let mut lines = Lines::open(path, LONGEST_LINE).map_err(io)?;
    let mut is_first = true;
    while let Some(line) = lines.next().map_err(io)? {
        if line.text.is_empty() {
            continue;
        }
        if is_first {
            let text = String::from_utf8_lossy(line.text);
            if let Some(reader) = Reader::of_first_line(&text, reading).map_err(|what| fault(line.number, what))? {
                return Ok(reader);
            }
            is_first = false;
        }
        if rows::is_log(line.text) {
            return Ok(Reader::Log(Box::new(Filter::new(log_filter(reading))?)));
        }
        if line.number >= LOOKED_AT {
            break;
        }
    }
    let line = if is_first { lines.number().max(1) } else { 1 };
    let formats =
        "write a CSV `t,duration` or `bin,requests`, or give an access log (combined, common, ALB, JSON lines)";
    let what = if is_first { "the file is empty".to_owned() } else { format!("in no format that is read: {formats}") };
    Err(fault(line, what))
}

fn log_filter(reading: &Reading) -> FilterSpec {
    let statuses = (!reading.statuses.is_empty()).then(|| reading.statuses.clone());
    FilterSpec {
        paths: reading.paths.clone(),
        statuses,
        format: reading.format.clone(),
        fields: reading.fields.clone(),
        ..FilterSpec::default()
    }
}

/// The rows of a file in order of time.
struct Rows {
    path: PathBuf,
    reading: Reading,
    reader: Reader,
    lines: Lines,
    order: Order,
    sessions: Option<Sessions>,
    repairs: Repairs,
    is_over: bool,
}

impl Rows {
    fn open(path: &Path, reading: &Reading, reader: &Reader) -> Result<Self, TraceFault> {
        let io = |source| TraceFault::Io { path: path.to_owned(), source };
        let lines = Lines::open(path, LONGEST_LINE).map_err(io)?;
        let (order, repairs) = (Order::default(), Repairs::default());
        let (path, reading, reader) = (path.to_owned(), reading.clone(), reader.clone());
        let sessions = reading.session_pause.filter(|_| reader.kind() != Kind::Counts).map(Sessions::new);
        Ok(Self { path, reading, reader, lines, order, sessions, repairs, is_over: false })
    }

    /// The next call or bin.
    fn next(&mut self) -> Result<Option<(i64, What)>, TraceFault> {
        loop {
            if let Some(session) = self.sessions.as_mut().and_then(Sessions::take) {
                return Ok(Some((session.at, What::Call { lasts: session.lasts })));
            }
            let row = self.next_row()?;
            match (&mut self.sessions, row) {
                (None, row) => return Ok(row.map(|row| (row.at, row.what))),
                (Some(sessions), Some(Placed { at, what: What::Call { lasts }, user })) => {
                    sessions.put(user, Call { at, lasts });
                }
                (Some(_), Some(Placed { at, what, .. })) => return Ok(Some((at, what))),
                (Some(sessions), None) => {
                    sessions.close();
                    let last = sessions.take();
                    return Ok(last.map(|session| (session.at, What::Call { lasts: session.lasts })));
                }
            }
        }
    }

    fn next_row(&mut self) -> Result<Option<Placed>, TraceFault> {
        let Self { path, reading, reader, lines, order, repairs, is_over, .. } = self;
        let fault = |line, what| TraceFault::Line { path: path.clone(), line, what };
        while !*is_over {
            let line = lines.next().map_err(|source| TraceFault::Io { path: path.clone(), source })?;
            let Some(line) = line else {
                *is_over = true;
                break;
            };
            if line.text.is_empty() || reader.is_header(line.number) {
                continue;
            }
            if line.is_cut && reader.kind() != Kind::Log {
                return Err(fault(line.number, format!("longer than {LONGEST_LINE} bytes: this is no line of a CSV")));
            }
            let row = match reader.read(line.text, reading).map_err(|what| fault(line.number, what))? {
                Read::Row(row) => row,
                Read::Left => {
                    repairs.left += 1;
                    continue;
                }
                Read::Unread => {
                    repairs.unread += 1;
                    continue;
                }
            };
            repairs.fractions += u64::from(row.has_fraction);
            let first = order.put(line.number, row, repairs).map_err(|(line, what)| fault(line, what))?;
            if first.is_some() {
                return Ok(first);
            }
        }
        order.take(repairs).map_err(|(line, what)| fault(line, what))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
