//! Do the configured logs have lines, are they read, and does a filter ever match?

use super::{Case, Check, Finding};
use crate::ops::aws::{self, Part};
use crate::ops::fault::Fault;
use chrono::TimeDelta;
use reveille::access_log::{Filter, Verdict, sample};
use reveille::domain::{Instant, PoolName};
use reveille::observation::log_points;
use std::collections::BTreeMap;

const WEEK: TimeDelta = TimeDelta::days(7);
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
    unread: usize,
    /// The shape of the first line that could not be read, without its words.
    shape: Option<String>,
    complete: bool,
}

/// What was read for each filter, or why not.
pub(super) type Read = Vec<(PoolName, String, bool, Result<Judged, String>)>;

/// Reads each log of the last week once.
pub(super) async fn read(case: &Case<'_>) -> Read {
    let (from, to) = (case.session.now - WEEK, case.session.now);
    let mut logs: BTreeMap<&str, Result<aws::Lines, String>> = BTreeMap::new();
    let mut read = Read::new();
    for one in uses(case) {
        if !logs.contains_key(one.group) {
            let part = Part { group: one.group, pattern: None, from, to, most_pages: MOST_PAGES };
            let lines = aws::read_log(&case.session.sdk, part, |_| ()).await;
            logs.insert(one.group, lines.map_err(|error| Fault::from(error).to_string()));
        }
        let judged = match logs.get(one.group) {
            Some(Ok(lines)) => Ok(judge(&one, lines, from, to)),
            Some(Err(why)) => Err(why.clone()),
            None => continue,
        };
        read.push((one.pool.clone(), one.group.to_owned(), one.wakes, judged));
    }
    read
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

fn judge(one: &Use<'_>, read: &aws::Lines, from: Instant, to: Instant) -> Judged {
    let mut judged = Judged { lines: read.lines.len(), complete: read.complete, ..Judged::default() };
    for (at, text) in &read.lines {
        let line = one.filter.read(text.as_bytes());
        if line.is_none() {
            judged.unread += 1;
            judged.shape.get_or_insert_with(|| sample(text));
        }
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

/// Filters that matched nothing in a week.
pub(super) fn matches(case: &Case<'_>, read: &Read) -> Check {
    let mut check = Check::of("log matches", Ok(Vec::new()));
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
pub(super) fn formats(_: &Case<'_>, read: &Read) -> Check {
    let mut check = Check::of("log formats", Ok(Vec::new()));
    for (pool, group, wakes, judged) in read {
        match judged {
            Ok(judged) if judged.unread * FEW > judged.lines => {
                let field = if *wakes { "wake" } else { "logs" };
                let shape = judged.shape.as_deref().unwrap_or_default();
                check.findings.push(Finding::new(
                    format!(
                        "{} of {} lines of {group} are in no known format, such as {shape}",
                        judged.unread, judged.lines
                    ),
                    "such a line neither wakes nor counts: a call may find a sleeping node, or lose a running one",
                    format!("REVEILLE_POOLS.{pool}.{field}: `format` and `fields`; docs/configuration.md lists them"),
                ));
            }
            Ok(_) => {}
            Err(why) => check.not_checked.push(why.clone()),
        }
    }
    check
}
