//! What really happened, month by month: node hours, starts, waits, money against a node that always runs, and what woke it for
//! nothing.

use super::fault::{Fault, line};
use super::look::Looker;
use super::session::{Reach, Session};
use super::show;
use chrono::{Datelike as _, Months, NaiveDate};
use chrono_tz::Tz;
use clap::{Args, ValueEnum};
use reveille::domain::{Disk, Instant, NodeId, NodeSeen, NodeState, PoolName, PoolRecord, Usd};
use reveille::error::CallError;
use reveille::policy::KEPT;
use reveille::run::{Call, History, fleet, take_budget_note, take_disks, take_history, take_ledger, take_nodes};
use reveille_plan::history::{Known, Past, Terms, csv, markdown, past, table, with_readiness};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Whole months that the ledger's 400 days always hold, with the present one.
const MOST_MONTHS: u32 = 13;

/// What is asked.
#[derive(Debug, Clone, Args)]
pub(crate) struct Asked {
    /// So many months, with the present one; 13 at most
    #[arg(long, default_value_t = MOST_MONTHS, conflicts_with = "since")]
    months: u32,
    /// From this month on, such as 2026-09
    #[arg(long, value_name = "MONTH", value_parser = month)]
    since: Option<NaiveDate>,
    /// Only this pool
    #[arg(long)]
    pool: Option<String>,
    /// How the figures are shown
    #[arg(long, value_enum, default_value_t = Format::Table, conflicts_with = "json")]
    format: Format,
    /// What the controller costs a month, with its alarms and dashboard; 0.60 where it is lean
    #[arg(long, default_value = "4.10", value_parser = Usd::parse)]
    controller_usd: Usd,
    /// Hours of the daily window that is compared with
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=23))]
    window_hours: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a terminal, 80 columns wide
    Table,
    /// One object, as --json
    Json,
    /// Every figure of every month
    Csv,
    /// A table for a page or a message
    Md,
}

/// # Errors
/// Something cannot be read, or there is nothing to tell.
pub(crate) async fn show(reach: &Reach, asked: Asked) -> Result<String, Fault> {
    let session = Session::open(reach).await?;
    let (zone, now) = (session.config.policy.zone, session.now);
    let from = first_month(&asked, zone, now)?;
    let only = asked.pool.as_deref().map(|pool| session.pool(Some(pool))).transpose()?;
    let reading = Books::read(&session, only);
    let books = show::waiting("reading nodes, disks and the history of launches", reading).await?;
    let shares = i64::try_from(session.config.pools.len()).unwrap_or(1);
    let terms = Terms {
        from,
        zone,
        now,
        prices: &session.config.prices,
        controller_month: asked.controller_usd.times(1, shares),
        window_hours: asked.window_hours,
    };
    let pasts: Vec<Past> = books.pools().iter().map(|known| past(known, &terms)).collect();
    if pasts.iter().all(|past| past.months.is_empty()) {
        return Err(nothing(&pasts));
    }
    let format = if reach.json { Format::Json } else { asked.format };
    Ok(match format {
        Format::Table => {
            let at = now.with_timezone(&zone).format("%Y-%m-%d %H:%M %Z");
            format!("{} in {}, {at}\n\n{}", session.name, session.region, table(&pasts, zone))
        }
        Format::Json => show::json(&json!({
            "at": now, "name": session.name, "region": session.region, "zone": zone.name(), "pools": pasts,
        })),
        Format::Csv => csv(&pasts),
        Format::Md => markdown(&pasts),
    })
}

fn nothing(pasts: &[Past]) -> Fault {
    Fault::No(match pasts.iter().filter_map(|past| past.known_since).min() {
        Some(since) => format!("no launch is known of these months: launches are known since {}", since.format("%Y-%m-%d")),
        None => "no launch is written down yet: the first idle check that sees a node on writes it; `reveille wake` starts one, \
                 `reveille doctor` says whether the checks run"
            .to_owned(),
    })
}

fn month(text: &str) -> Result<NaiveDate, String> {
    let day = format!("{text}-01");
    NaiveDate::parse_from_str(&day, "%Y-%m-%d").map_err(|_| format!("{:?} is no month such as 2026-11", line(text)))
}

/// The first month that is asked for.
fn first_month(asked: &Asked, zone: Tz, now: Instant) -> Result<NaiveDate, Fault> {
    let today = now.with_timezone(&zone).date_naive();
    let this = today.with_day(1).unwrap_or(today);
    let before = |months: u32| this.checked_sub_months(Months::new(months)).unwrap_or(this);
    let oldest = before(MOST_MONTHS - 1);
    let (from, words) = match asked.since {
        Some(since) => (since, format!("--since {}", since.format("%Y-%m"))),
        None => (before(asked.months.saturating_sub(1)), format!("--months {}", asked.months)),
    };
    if from < oldest || asked.months == 0 {
        let days = KEPT.num_days();
        let (most, oldest) = (MOST_MONTHS, oldest.format("%Y-%m"));
        return Err(Fault::Usage(format!(
            "{words}: the ledger keeps a launch for {days} days: ask for 1 to {most} months, or since {oldest} or later"
        )));
    }
    if from > this {
        return Err(Fault::Usage(format!("{words} is in the future: it is {}", this.format("%Y-%m"))));
    }
    Ok(from)
}

/// What was read.
struct Books {
    pools: BTreeSet<PoolName>,
    nodes: Vec<NodeSeen>,
    records: BTreeMap<PoolName, PoolRecord>,
    history: History,
    disks: BTreeMap<NodeId, Vec<Disk>>,
    since: Option<Instant>,
    now: Instant,
}

impl Books {
    async fn read(session: &Session, only: Option<PoolName>) -> Result<Self, Fault> {
        let pools: BTreeSet<PoolName> = match only {
            Some(pool) => BTreeSet::from([pool]),
            None => session.config.pools.keys().cloned().collect(),
        };
        let now = session.now;
        let mut looker = Looker::new(&session.aws);
        // All of it, whatever is asked: when the books begin says what a month is compared with.
        let mut calls = vec![
            Call::DescribeNodes { pools: None },
            Call::ReadLedger { pools: pools.clone() },
            Call::ReadHistory { pools: pools.clone(), from: now - KEPT },
        ];
        let budget = session.config.budget.as_ref();
        calls.extend(budget.map(|budget| Call::ReadBudgetNote { name: budget.name.clone() }));
        let mut answers = looker.answer_all(&calls).await.into_iter();
        let nodes = take_nodes(answers.next())?;
        let records = take_ledger(answers.next()).map_err(|error| super::status::of_the_ledger(error, session))?;
        let history = take_history(answers.next())?;
        let since = answers.next().map(|note| take_budget_note(Some(note))).transpose()?.and_then(|note| note.since);
        let disks = disks_of(&mut looker, &nodes, &pools).await?;
        Ok(Self { pools, nodes, records, history, disks, since, now })
    }

    fn pools(&self) -> Vec<Known> {
        self.pools.iter().map(|pool| self.pool(pool)).collect()
    }

    fn pool(&self, pool: &PoolName) -> Known {
        let nodes: Vec<NodeSeen> = self.nodes.iter().filter(|seen| seen.pool == *pool).cloned().collect();
        let record = self.records.get(pool).cloned().unwrap_or_default();
        let known = BTreeMap::from([(pool.clone(), record)]);
        let is_here = |id: &NodeId| nodes.iter().any(|seen| seen.id == *id);
        let disks = self.disks.iter().filter(|(id, _)| is_here(id)).map(|(id, disks)| (id.clone(), disks.clone()));
        let mut fleet = fleet(&nodes, &known, &self.history, disks.collect(), self.now);
        let records = || known.values().flat_map(|record| &record.nodes);
        for (id, node) in records() {
            if let Some((launched_at, ready)) = node.ready.as_ref().and_then(|ready| Some((ready.launched_at?, ready)))
            {
                with_readiness(&mut fleet, id, launched_at, ready.at);
            }
        }
        let boots = records().filter_map(|(_, node)| node.boots.as_ref()).flat_map(|boots| boots.seconds.clone());
        Known { pool: pool.clone(), boots: boots.collect(), nodes: fleet, since: self.since }
    }
}

/// Of the nodes there are: nobody tells what a node cost that is gone.
async fn disks_of(
    looker: &mut Looker<'_>,
    nodes: &[NodeSeen],
    pools: &BTreeSet<PoolName>,
) -> Result<BTreeMap<NodeId, Vec<Disk>>, CallError> {
    let alive = nodes.iter().filter(|seen| seen.state != NodeState::Gone && pools.contains(&seen.pool));
    let ids: BTreeSet<NodeId> = alive.map(|seen| seen.id.clone()).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    take_disks(looker.answer_all(&[Call::ReadDisks { nodes: ids }]).await.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        text.parse().expect("a time")
    }

    fn asked(months: u32, since: Option<&str>) -> Asked {
        Asked {
            months,
            since: since.map(|text| month(text).expect("a month")),
            pool: None,
            format: Format::Table,
            controller_usd: Usd::ZERO,
            window_hours: 16,
        }
    }

    #[test]
    fn what_may_be_asked_is_kept() {
        for month in 0..48 {
            let this = NaiveDate::from_ymd_opt(2026, 1, 31).expect("a day") + Months::new(month);
            let last = this.and_hms_opt(23, 59, 59).expect("a time").and_utc();
            let from = first_month(&asked(MOST_MONTHS, None), Tz::UTC, last).expect("it may be asked");
            assert!((last.date_naive() - from).num_days() < KEPT.num_days(), "{this}");
        }
    }

    #[test]
    fn the_present_month_is_that_of_the_zone() {
        let now = at("2026-11-30T16:00:00Z");
        let of = |zone, asked: &Asked| first_month(asked, zone, now).map(|day| day.to_string());
        assert_eq!(of(Tz::UTC, &asked(1, None)), Ok("2026-11-01".to_owned()));
        assert_eq!(of(Tz::Asia__Seoul, &asked(1, None)), Ok("2026-12-01".to_owned()));
        assert_eq!(of(Tz::Asia__Seoul, &asked(13, Some("2026-12"))), Ok("2026-12-01".to_owned()));
        assert!(of(Tz::UTC, &asked(13, Some("2026-12"))).is_err(), "it is the future there");
        assert_eq!(of(Tz::UTC, &asked(13, Some("2025-11"))), Ok("2025-11-01".to_owned()));
        assert!(of(Tz::UTC, &asked(13, Some("2025-10"))).is_err());
        for text in ["2026", "2026-13", "November", "2026-11-30", ""] {
            assert!(month(text).is_err(), "{text}");
        }
    }
}
