//! Do the configured logs have lines, are they read, and does a filter ever match?

use super::{Case, Check, Finding};
use crate::ops::aws::{self, Part};
use crate::ops::fault::Fault;
use chrono::TimeDelta;
use reveille::access_log::{Filter, Verdict, sample};
use reveille::domain::{Instant, PoolName};
use reveille::error::CallError;
use reveille::observation::log_points;
use std::collections::BTreeMap;

const WEEK: TimeDelta = TimeDelta::days(7);
/// Where a week is more than is read: pages come oldest first, and a format changes today.
const NEWEST: TimeDelta = TimeDelta::hours(1);
/// Of one log: at most 10,000 lines a page.
const MOST_PAGES: usize = 30;

/// One configured filter on one log.
#[derive(Debug)]
struct Use<'a> {
    pool: &'a PoolName,
    group: &'a str,
    filter: &'a Filter,
    /// Its lines wake; else they are counted.
    wakes: bool,
}

/// What was made of the lines.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    lines: usize,
    matched: usize,
    complete: bool,
    format: Format,
}

/// In which format they are: the lines of the week, or the newest of them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Format {
    lines: usize,
    unread: usize,
    /// The shape of the first line that could not be read, without its words.
    shape: Option<String>,
    complete: bool,
}

/// A log: the week, and the newest lines where that is too much.
struct Log {
    week: aws::Lines,
    newest: Option<aws::Lines>,
}

/// What was read for each filter, or why not.
pub(super) type Read = Vec<(PoolName, String, bool, Result<Judged, String>)>;

/// Reads each log of the last week once.
pub(super) async fn read(case: &Case<'_>) -> Read {
    let (from, to) = (case.session.now - WEEK, case.session.now);
    let mut logs: BTreeMap<&str, Result<Log, String>> = BTreeMap::new();
    let mut read = Read::new();
    for one in uses(case) {
        if !logs.contains_key(one.group) {
            let log = read_log(case, one.group).await;
            logs.insert(one.group, log.map_err(|error| Fault::from(error).to_string()));
        }
        let judged = match logs.get(one.group) {
            Some(Ok(log)) => Ok(judge(&one, log, from, to)),
            Some(Err(why)) => Err(why.clone()),
            None => continue,
        };
        read.push((one.pool.clone(), one.group.to_owned(), one.wakes, judged));
    }
    read
}

async fn read_log(case: &Case<'_>, group: &str) -> Result<Log, CallError> {
    let to = case.session.now;
    let part = |from| Part { group, pattern: None, from, to, most_pages: MOST_PAGES };
    let week = aws::read_log(&case.session.sdk, part(to - WEEK), |_| ()).await?;
    let newest = match week.complete {
        true => None,
        false => Some(aws::read_log(&case.session.sdk, part(to - NEWEST), |_| ()).await?),
    };
    Ok(Log { week, newest })
}

fn uses<'a>(case: &'a Case<'_>) -> Vec<Use<'a>> {
    let pools = case.config().pools.iter();
    pools
        .flat_map(|(pool, settings)| {
            let wake = settings.wake.as_ref();
            let waking = settings
                .log_groups
                .iter()
                .filter_map(move |group| Some(Use { pool, group, filter: wake?, wakes: true }));
            let counted = settings.policy.logs.iter();
            waking.chain(counted.map(move |log| Use { pool, group: &log.group, filter: &log.filter, wakes: false }))
        })
        .collect()
}

fn judge(one: &Use<'_>, log: &Log, from: Instant, to: Instant) -> Judged {
    let (week, format) = (&log.week, format(one, log.newest.as_ref().unwrap_or(&log.week)));
    let mut judged = Judged { lines: week.lines.len(), complete: week.complete, matched: 0, format };
    for (at, text) in &week.lines {
        let line = one.filter.read(text.as_bytes());
        let matches = if one.wakes {
            line.is_some_and(|line| one.filter.judge(&line) == Verdict::Wakes)
        } else {
            let points = log_points([(*at, text.as_bytes())], one.filter, from, to + TimeDelta::minutes(1));
            points.iter().any(|(_, value)| *value > 0.0)
        };
        judged.matched += usize::from(matches);
    }
    judged
}

fn format(one: &Use<'_>, read: &aws::Lines) -> Format {
    let mut format = Format { lines: read.lines.len(), complete: read.complete, ..Format::default() };
    for (_, text) in &read.lines {
        if one.filter.read(text.as_bytes()).is_none() {
            format.unread += 1;
            format.shape.get_or_insert_with(|| sample(text));
        }
    }
    format
}

/// Filters that matched nothing in a week.
pub(super) fn matches(case: &Case<'_>, read: &Read) -> Check {
    let mut check = Check::new("log matches");
    for (pool, group, wakes, judged) in read {
        let judged = match judged {
            Ok(judged) => judged,
            Err(why) => {
                check.not_checked.push(why.clone());
                continue;
            }
        };
        if judged.matched > 0 {
            continue;
        }
        if !judged.complete {
            check.not_checked.push(format!(
                "{group} has more lines than are read: none of the first {} of the week matches",
                judged.lines
            ));
            continue;
        }
        check.findings.push(finding(case, pool, group, *wakes, judged.lines));
    }
    check
}

fn finding(case: &Case<'_>, pool: &PoolName, group: &str, wakes: bool, lines: usize) -> Finding {
    let (field, costs) = if wakes {
        ("wake", "no line of it ever wakes a node: callers wait for nothing unless the app pre-warms")
    } else {
        ("logs", "no request of it is ever counted: a node that is used is stopped as idle")
    };
    let what = match lines {
        0 => format!("the log {group} of pool {pool} had no line in a week"),
        lines => format!("no line of {group} matched `{field}` of pool {pool} in a week, of {lines}"),
    };
    let change = match lines {
        0 => format!("REVEILLE_POOLS.{pool}: the log that the front writes in {}", case.session.region),
        _ => format!("REVEILLE_POOLS.{pool}.{field}: try paths and statuses with `reveille lines --path … FILE`"),
    };
    Finding::new(what, costs, change)
}

/// So many lines that nobody can read are a format that nobody knows: one in ten.
const FEW: usize = 10;

/// Logs in no known format.
pub(super) fn formats(read: &Read) -> Check {
    let mut check = Check::new("log formats");
    for (pool, group, wakes, judged) in read {
        match judged.as_ref().map(|judged| &judged.format) {
            Ok(format) if format.unread * FEW > format.lines => {
                let field = if *wakes { "wake" } else { "logs" };
                let shape = format.shape.as_deref().unwrap_or_default();
                check.findings.push(Finding::new(
                    format!(
                        "{} of {} lines of {group} are in no known format, such as {shape}",
                        format.unread, format.lines
                    ),
                    "such a line neither wakes nor counts: a call may find a sleeping node, or lose a running one",
                    format!("REVEILLE_POOLS.{pool}.{field}: `format` and `fields`; docs/configuration.md lists them"),
                ));
            }
            Ok(format) if !format.complete => check.not_checked.push(format!(
                "{group} has more lines in its newest hour than are read: the first {} are in a known format",
                format.lines
            )),
            Ok(_) => {}
            Err(why) => check.not_checked.push(why.clone()),
        }
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The local AWS would need 300,000 lines.
    #[test]
    fn a_format_of_which_only_the_oldest_lines_were_read_is_not_known() {
        let of = |format: Format| {
            let pool = PoolName::new("voice").expect("a name");
            formats(&vec![(pool, "/app/front".to_owned(), true, Ok(Judged { format, ..Judged::default() }))])
        };
        let well = Format { lines: 100, unread: 0, shape: None, complete: true };
        assert_eq!(of(well.clone()), Check::new("log formats"));
        let part = of(Format { complete: false, ..well.clone() });
        assert!(part.findings.is_empty() && part.not_checked[0].contains("newest hour"), "{part:?}");
        assert_eq!(of(Format { unread: 11, complete: false, ..well }).findings.len(), 1);
    }
}
