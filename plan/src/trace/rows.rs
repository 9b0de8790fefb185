//! What one line of each format says. A CSV here is plain numbers and times, so it is split at its commas; quotes around a
//! whole cell are taken off.

use super::{Kind, Reading, What};
use chrono::{DateTime, NaiveDateTime};
use reveille::access_log::{self, Filter};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

const TIMES: [&str; 6] = ["t", "time", "timestamp", "at", "start", "arrival"];
const DURATIONS: [&str; 5] = ["duration", "dur", "lasts", "seconds", "duration_seconds"];
const COUNTS: [&str; 5] = ["requests", "count", "calls", "value", "counts"];
const USERS: [&str; 3] = ["user", "caller", "session"];
/// Numbered bins whose name tells how long each is.
const BINS: [(&str, Option<i64>); 4] = [("bin", None), ("second", Some(1)), ("minute", Some(60)), ("hour", Some(3600))];

/// The last instant of the year 9999.
const LATEST: f64 = 253_402_300_799.0;
/// No call lasts longer than a month.
const LONGEST_CALL: f64 = 31.0 * 86_400.0;

/// Where the cells of a CSV stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    /// The time of a call, or the start or number of a bin.
    at: usize,
    lasts: Option<usize>,
    user: Option<usize>,
    count: Option<usize>,
    /// The bins are numbered from the trace's start, and this is how long each lasts.
    numbered: Option<i64>,
    /// How long each bin lasts, by whatever way it is named.
    width: i64,
    /// Only rows with this text in this column.
    only: Option<(usize, String)>,
}

/// How the lines of a trace are read.
#[derive(Debug, Clone)]
pub(super) enum Reader {
    Csv { columns: Columns, has_header: bool },
    Log(Box<Filter>),
}

/// One line that holds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) at: i64,
    pub(super) what: What,
    /// Who it is, as a number; the same where nobody says.
    pub(super) user: u64,
    /// The file gives parts of a second.
    pub(super) has_fraction: bool,
}

/// What became of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Row(Row),
    /// It was read, and is not one of those that are asked for.
    Left,
    /// A log line in no format that is read, or without a time.
    Unread,
}

impl Reader {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Csv { columns, .. } if columns.count.is_some() => Kind::Counts,
            Self::Csv { .. } => Kind::Calls,
            Self::Log(_) => Kind::Log,
        }
    }

    /// Whether this line is the header that was read already.
    pub(super) fn is_header(&self, number: u64) -> bool {
        matches!(self, Self::Csv { has_header: true, .. }) && number == 1
    }

    /// Says what the first line of a CSV means; none where it is no CSV that can be read.
    ///
    /// # Errors
    /// It is a CSV, and something is missing.
    pub(super) fn of_first_line(line: &str, reading: &Reading) -> Result<Option<Self>, String> {
        let cells: Vec<String> = cells(line).map(str::to_ascii_lowercase).collect();
        let find = |names: &[&str]| cells.iter().position(|cell| names.contains(&cell.as_str()));
        let time = find(&TIMES);
        let bin = BINS.iter().find_map(|(name, width)| Some((find(&[name])?, *width)));
        let (at, numbered) = match (time, bin) {
            (Some(at), _) => (at, None),
            (None, Some((at, width))) => (at, Some(width)),
            (None, None) => return Self::without_header(&cells, reading),
        };
        let count = find(&COUNTS);
        if numbered.is_some() && count.is_none() {
            return Err(format!("a column {} and no count beside it: one of {}", cells[at], COUNTS.join(", ")));
        }
        let own_width = numbered.flatten().or(reading.bin_seconds);
        let width = match (count, own_width) {
            (Some(_), None) => {
                let hint = "how long a bin lasts is not in the file: say --bin-seconds, such as 300";
                return Err(format!("counts in bins named {:?}; {hint}", cells[at]));
            }
            (_, width) => width.unwrap_or(1),
        };
        let only = match &reading.only {
            None => None,
            Some((name, value)) => {
                let missing = || format!("no column {name:?} here: {}", cells.join(", "));
                Some((cells.iter().position(|cell| cell == name).ok_or_else(missing)?, value.clone()))
            }
        };
        let numbered = numbered.map(|_| width);
        let columns = Columns { at, lasts: find(&DURATIONS), user: find(&USERS), count, numbered, width, only };
        Ok(Some(Self::Csv { columns, has_header: true }))
    }

    fn without_header(cells: &[String], reading: &Reading) -> Result<Option<Self>, String> {
        if cells.first().is_none_or(|cell| time(cell).is_none()) {
            return Ok(None);
        }
        if reading.only.is_some() {
            return Err("--where needs a header that names the columns".to_owned());
        }
        let lasts = (cells.len() > 1).then_some(1);
        let columns = Columns { at: 0, lasts, user: None, count: None, numbered: None, width: 1, only: None };
        Ok(Some(Self::Csv { columns, has_header: false }))
    }

    /// Reads one line.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn read(&self, line: &[u8], reading: &Reading) -> Result<Read, String> {
        match self {
            Self::Csv { columns, .. } => columns.read(line, reading),
            Self::Log(filter) => Ok(of_log(filter, line, reading)),
        }
    }
}

impl Columns {
    fn read(&self, line: &[u8], reading: &Reading) -> Result<Read, String> {
        let line = std::str::from_utf8(line).map_err(|_| "is not text in UTF-8".to_owned())?;
        let cell = |n: usize| cells(line).nth(n).ok_or_else(|| format!("has no column {}: {}", n + 1, shown(line)));
        if let Some((n, value)) = &self.only
            && cell(*n)? != value
        {
            return Ok(Read::Left);
        }
        let (at, has_fraction) = self.at(cell(self.at)?, reading)?;
        let what = match (self.count, self.lasts) {
            (Some(n), _) => What::Bin { lasts: self.width, requests: count(cell(n)?)? },
            (None, Some(n)) => What::Call { lasts: duration(cells(line).nth(n).unwrap_or(""), reading)? },
            (None, None) => What::Call { lasts: reading.call_seconds },
        };
        let user = self.user.and_then(|n| cells(line).nth(n)).map_or(0, number_of);
        Ok(Read::Row(Row { at, what, user, has_fraction }))
    }

    fn at(&self, cell: &str, reading: &Reading) -> Result<(i64, bool), String> {
        let Some(width) = self.numbered else {
            let (at, has_fraction) = time(cell)
                .ok_or_else(|| format!("{} is no time: write seconds, or such as 2026-11-30T09:00:00Z", shown(cell)))?;
            return Ok((computable(at + reading.start, cell)?, has_fraction));
        };
        let bin: i64 = cell.parse().map_err(|_| format!("{} is no number of a bin", shown(cell)))?;
        let at = bin.checked_mul(width).and_then(|at| at.checked_add(reading.start));
        Ok((computable(at.unwrap_or(-1), cell)?, false))
    }
}

fn number_of(user: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    user.hash(&mut hasher);
    hasher.finish()
}

fn computable(at: i64, cell: &str) -> Result<i64, String> {
    if at < 0 {
        return Err(format!("the time {} is before 1970 or below zero", shown(cell)));
    }
    reveille::domain::is_computable(DateTime::from_timestamp(at, 0).unwrap_or_default()).then_some(at).ok_or_else(
        || format!("the time {} is after the year 9999: are these milliseconds? Seconds are read", shown(cell)),
    )
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|cell| {
        let cell = cell.trim();
        cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell)
    })
}

/// Whole seconds, and whether there was more. Times without a zone are taken as UTC.
fn time(cell: &str) -> Option<(i64, bool)> {
    if let Ok(seconds) = cell.parse::<i64>() {
        return Some((seconds, false));
    }
    if let Ok(seconds) = cell.parse::<f64>() {
        // Beyond what can be computed with it only has to stay beyond; NaN is no time.
        let whole = seconds.floor().clamp(-1.0, LATEST + 1.0);
        return (!seconds.is_nan()).then_some((whole as i64, seconds.fract() != 0.0));
    }
    let plain = |format| NaiveDateTime::parse_from_str(cell, format).map(|at| at.and_utc());
    let read = DateTime::parse_from_rfc3339(cell).map(|at| at.to_utc());
    let at = read.or_else(|_| plain("%Y-%m-%dT%H:%M:%S%.f")).or_else(|_| plain("%Y-%m-%d %H:%M:%S%.f")).ok()?;
    Some((at.timestamp(), at.timestamp_subsec_nanos() > 0))
}

/// A part of a second more is a second more: the node is held until the call is over.
fn duration(cell: &str, reading: &Reading) -> Result<i64, String> {
    if cell.is_empty() {
        return Ok(reading.call_seconds);
    }
    let seconds: f64 = cell.parse().map_err(|_| format!("{} is no duration in seconds", shown(cell)))?;
    if seconds < 0.0 {
        return Err(format!("the duration {} is below zero", shown(cell)));
    }
    if seconds.is_nan() || seconds > LONGEST_CALL {
        return Err(format!("the duration {} is over 31 days: are these milliseconds? Seconds are read", shown(cell)));
    }
    Ok(seconds.ceil() as i64)
}

fn count(cell: &str) -> Result<u64, String> {
    let number: f64 = cell.parse().map_err(|_| format!("{} is no count", shown(cell)))?;
    let is_count = number >= 0.0 && number.fract() == 0.0 && number <= 1e12;
    is_count.then_some(number as u64).ok_or_else(|| format!("{} is no count: a whole number from 0 on", shown(cell)))
}

/// From the start to the end of the request; a line without a duration is a call of the usual length that began then.
fn of_log(filter: &Filter, line: &[u8], reading: &Reading) -> Read {
    let Some(request) = filter.read(line) else { return Read::Unread };
    let Some((from, to)) = request.span(None) else { return Read::Unread };
    if !filter.is_use(&request) {
        return Read::Left;
    }
    let at = from.timestamp();
    let has_fraction = from.timestamp_subsec_nanos() > 0;
    let took = (to - from).num_seconds() + i64::from(request.took.is_some_and(|took| took.subsec_nanos() > 0));
    let lasts = if request.took.is_some() { took } else { reading.call_seconds };
    if at < 0 { Read::Unread } else { Read::Row(Row { at, what: What::Call { lasts }, user: 0, has_fraction }) }
}

/// Whether any of these lines is one of a log that is read.
pub(super) fn is_log(line: &[u8]) -> bool {
    access_log::read(line).is_some()
}

/// The beginning of what the file has, without control characters.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(header: &str, reading: &Reading) -> Reader {
        Reader::of_first_line(header, reading).unwrap().unwrap()
    }

    fn call(at: i64, lasts: i64) -> Result<Read, String> {
        Ok(Read::Row(Row { at, what: What::Call { lasts }, user: 0, has_fraction: false }))
    }

    #[test]
    fn a_call_is_a_time_and_perhaps_a_duration() {
        let reading = Reading::default();
        let rows = [
            ("t,duration", "1700000000,60", 1_700_000_000, 60),
            ("1700000000,60", "1700000000,60", 1_700_000_000, 60),
            ("t", "1700000000", 1_700_000_000, 300),
            ("who,dur,t", "7,12.2,90", 90, 13),
            ("timestamp", "2026-11-30T09:00:00+01:00", 1_796_025_600, 300),
            ("timestamp", "\"2026-11-30 08:00:00\"", 1_796_025_600, 300),
            ("t,duration", "90,", 90, 300),
        ];
        for (header, line, at, lasts) in rows {
            assert_eq!(reader(header, &reading).read(line.as_bytes(), &reading), call(at, lasts), "{header}: {line}");
        }
    }

    #[test]
    fn counts_are_bins_that_tell_or_are_told_how_long_they_last() {
        let reading = Reading { bin_seconds: Some(300), ..Reading::default() };
        let rows =
            [("bin,requests", "3,7", 900, 300), ("minute,requests", "3,7", 180, 60), ("t,count", "600,7", 600, 300)];
        for (header, line, at, lasts) in rows {
            let row = Row { at, what: What::Bin { lasts, requests: 7 }, user: 0, has_fraction: false };
            assert_eq!(reader(header, &reading).read(line.as_bytes(), &reading), Ok(Read::Row(row)), "{header}");
        }
        let fault = Reader::of_first_line("bin,requests", &Reading::default()).unwrap_err();
        assert!(fault.contains("--bin-seconds"), "{fault}");
    }

    #[test]
    fn one_column_chooses_the_rows() {
        let only = Some(("client".to_owned(), "7".to_owned()));
        let reading = Reading { bin_seconds: Some(600), only, ..Reading::default() };
        let reader = reader("client,bin,requests", &reading);
        assert_eq!(reader.read(b"8,0,1", &reading), Ok(Read::Left));
        assert!(matches!(reader.read(b"7,0,1", &reading), Ok(Read::Row(_))));
        assert!(Reader::of_first_line("t,duration", &reading).unwrap_err().contains("no column"));
    }

    #[test]
    fn what_cannot_be_is_told() {
        let reading = Reading { bin_seconds: Some(300), ..Reading::default() };
        let rows = [
            ("t,duration", "-5,1", "before 1970"),
            ("t,duration", "5,-1", "below zero"),
            ("t,duration", "1700000000000,1", "milliseconds"),
            ("t,duration", "5,300000000", "31 days"),
            ("t,duration", "noon,1", "no time"),
            ("t,duration", "nan,1", "no time"),
            ("t,duration", "5,nan", "31 days"),
            ("user,t", "5", "no column 2"),
            ("bin,requests", "-1,5", "below zero"),
            ("bin,requests", "1,-5", "no count"),
            ("bin,requests", "1,0.5", "no count"),
            ("bin,requests", "9223372036854775807,1", "below zero"),
        ];
        for (header, line, part) in rows {
            let fault = reader(header, &reading).read(line.as_bytes(), &reading).unwrap_err();
            assert!(fault.contains(part), "{line}: {fault}");
        }
        let t = reader("t", &reading);
        assert!(t.read(b"\xff\xfe", &reading).unwrap_err().contains("UTF-8"));
        assert_eq!(Reader::of_first_line("Listening on 0.0.0.0", &reading).map(|read| read.is_none()), Ok(true));
    }
}
