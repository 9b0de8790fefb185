//! One comparison from file to figures.

use crate::answers::{Answer, Assumption, CallPrices, Replayed, Report, answer};
use crate::costs::{Address, Fleet, Rates, Unpriced};
use crate::plans::{Plan, Setup, plans};
use crate::replay::events::{Announced, Events};
use crate::replay::watch::Watch;
use crate::replay::{Span, Way, replay, watched};
use crate::report::{PageFault, chosen, page};
use crate::trace::{Reading, Trace, TraceFault};
use chrono::{NaiveDate, NaiveTime, TimeZone as _};
use chrono_tz::Tz;
use reveille::prices::{AS_OF, Prices};
use std::path::PathBuf;

const DAY: i64 = 86_400;

/// What is to be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The trace.
    pub trace: PathBuf,
    /// How it is read.
    pub reading: Reading,
    /// To so many calls a day.
    pub thin: Option<f64>,
    /// Seed of all that is drawn.
    pub seed: u64,
    /// The plans, and the model of the node.
    pub setup: Setup,
    /// The entries.
    pub announced: Announced,
    /// What the nodes are.
    pub fleet: Fleet,
    /// What they cost.
    pub prices: Prices,
    /// What calls cost.
    pub calls: CallPrices,
    /// How many threads replay.
    pub threads: usize,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum RunFault {
    /// The trace.
    #[error(transparent)]
    Trace(#[from] TraceFault),
    /// The prices.
    #[error(transparent)]
    Price(#[from] Unpriced),
    /// A plan that is not compared.
    #[error("no plan is called {name:?}: there are {names}")]
    NoPlan {
        /// Its name.
        name: String,
        /// Those that are.
        names: String,
    },
    /// The page.
    #[error(transparent)]
    Page(#[from] PageFault),
    /// No distribution.
    #[error("the lead of {lead} s with a spread of {sigma} is no lognormal distribution")]
    Lead {
        /// Its median.
        lead: f64,
        /// Its sigma.
        sigma: f64,
    },
    /// Nothing was left.
    #[error("no call is left of {calls}: thin to more than {wanted} a day, or take another seed")]
    Nothing {
        /// Calls in the trace.
        calls: u64,
        /// Calls a day that were wanted.
        wanted: f64,
    },
}

/// A comparison that was read and not yet replayed.
pub struct Comparison {
    request: Request,
    trace: Trace,
    plans: Vec<Plan>,
    rates: Rates,
}

impl Comparison {
    /// Surveys the trace and looks up the prices.
    ///
    /// # Errors
    /// The trace cannot be read, or something has no price.
    pub fn open(request: Request) -> Result<Self, RunFault> {
        let rates = Rates::of(&request.fleet, &request.prices)?;
        let trace = Trace::open(&request.trace, request.reading.clone())?;
        let plans = plans(&request.setup);
        Ok(Self { request, trace, plans, rates })
    }

    /// About how many events a replay takes.
    pub fn events(&self) -> u64 {
        let calls = self.trace.survey().calls as f64;
        let wanted = self.request.thin.map_or(calls, |thin| (thin * self.trace.survey().days()).min(calls));
        let announced = self.request.announced;
        let entries = announced.share / (1.0 - announced.without_call).max(0.01);
        (wanted * (1.0 + entries)) as u64
    }

    /// The plans.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// What the figures are reckoned with.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// The trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What is compared.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// What counts, and the node.
    pub fn span(&self) -> Span {
        let (survey, setup) = (self.trace.survey(), &self.request.setup);
        Span { from: survey.from, to: survey.to, boot: setup.boot, patience: setup.patience }
    }

    /// The events from the trace's beginning.
    ///
    /// # Errors
    /// The file cannot be opened any more, or the lead is no distribution.
    pub fn stream(&self) -> Result<Events, RunFault> {
        let calls = self.trace.calls(self.request.thin, self.request.seed)?;
        let announced = self.request.announced;
        let (lead, sigma) = (announced.lead_seconds, announced.lead_sigma);
        let span = self.span();
        Events::new(calls, announced, (span.from, span.to), self.request.seed).ok_or(RunFault::Lead { lead, sigma })
    }

    /// Replays every plan. `progress` hears how many events more are done.
    ///
    /// # Errors
    /// The trace has changed since it was surveyed, or no call is left of it.
    pub fn run(&self, progress: &mut dyn FnMut(u64)) -> Result<Report, RunFault> {
        let ways: Vec<Way> = self.plans.iter().map(|plan| plan.way.clone()).collect();
        let tallies = replay(self.stream()?, &ways, self.span(), self.request.threads, progress)?;
        let calls_replayed = tallies.first().map_or(0, |tally| tally.calls);
        if calls_replayed == 0 {
            let (calls, wanted) = (self.trace.survey().calls, self.request.thin.unwrap_or(0.0));
            return Err(RunFault::Nothing { calls, wanted });
        }
        let answers = self.plans.iter().zip(&tallies);
        let plans: Vec<Answer> =
            answers.map(|(plan, tally)| answer(plan, tally, &self.rates, self.request.calls)).collect();
        let survey = self.trace.survey().clone();
        let trace = Replayed {
            file: self.request.trace.display().to_string(),
            days: survey.days(),
            calls_replayed,
            calls_per_day: calls_replayed as f64 / survey.days(),
            repaired: survey.repairs.sentences(),
            survey,
        };
        Ok(Report { trace, assumptions: self.assumptions(), plans })
    }

    /// The place of the plan with this name; without one that which is chosen.
    ///
    /// # Errors
    /// There is none of this name, or none to choose.
    pub fn place(&self, report: &Report, name: Option<&str>) -> Result<usize, RunFault> {
        let found = match name {
            Some(name) => report.plans.iter().position(|plan| plan.name == name),
            None => chosen(report).or((!report.plans.is_empty()).then_some(0)),
        };
        let names = || report.plans.iter().map(|plan| plan.name.as_str()).collect::<Vec<_>>().join("; ");
        found.ok_or_else(|| RunFault::NoPlan { name: name.unwrap_or("").to_owned(), names: names() })
    }

    /// The page of a report, which looks closely at one plan and one day; without a day at the busiest of the last four weeks.
    ///
    /// # Errors
    /// The trace has changed since it was surveyed, or a chart cannot be drawn.
    pub fn page(&self, report: &Report, place: usize, day: Option<NaiveDate>) -> Result<String, RunFault> {
        let zone = self.request.reading.zone;
        let start = match day {
            Some(day) => midnight_of(day, zone),
            None => self.busiest_day()?,
        };
        let watch = Watch::new((start, start + DAY), zone);
        let tally = watched(self.stream()?, &self.plans[place].way, self.span(), watch)?;
        let watch = tally.watch.map_or_else(|| Watch::new((start, start + DAY), zone), |watch| *watch);
        Ok(page(report, place, &watch)?)
    }

    /// Of the last four weeks only: what is in memory does not grow with the trace.
    fn busiest_day(&self) -> Result<i64, RunFault> {
        let survey = self.trace.survey();
        // The last day may only have begun.
        let days = ((survey.to - survey.from) / DAY).clamp(1, 28);
        let first = if (survey.to - survey.from) / DAY > 28 { survey.to - days * DAY } else { survey.from };
        let mut counts = vec![0_u64; usize::try_from(days).unwrap_or(1)];
        let mut calls = self.trace.calls(self.request.thin, self.request.seed)?;
        while let Some(call) = calls.next_call()? {
            let place = usize::try_from((call.at - first).div_euclid(DAY)).ok();
            if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
                *count += 1;
            }
        }
        let busiest = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count).map_or(0, |(n, _)| n);
        Ok(first + i64::try_from(busiest).unwrap_or(0) * DAY)
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let (request, setup, rates) = (&self.request, &self.request.setup, &self.rates);
        let (fleet, announced) = (&request.fleet, &request.announced);
        let mut all = Vec::new();
        let mut add = |what: &str, value: String, source: &str| {
            all.push(Assumption { what: what.to_owned(), value, source: source.to_owned() });
        };
        let model = "the model; docs/planner.md";
        add(
            "boot, from START to ready, billed",
            format!("{} s", setup.boot),
            "--boot-seconds; 55 s as a team measured it",
        );
        add(
            "stop, from STOP to stopped, not billed",
            format!("{} s", setup.stop),
            "--stop-seconds; what callers are told",
        );
        add(
            "least billed time of a start",
            "60 s".to_owned(),
            "AWS: Linux instances are billed by the second, a minute at least",
        );
        add("a caller gives up after", format!("{} s", setup.patience), "--patience-seconds; docs/calls.md");
        let length = format!("{} s where the trace does not say", request.reading.call_seconds);
        add("a call lasts", length, "--call-seconds");
        if let Some(pause) = request.reading.session_pause {
            add("one user's rows are one call within", format!("{pause} s"), "--session-minutes");
        }
        add("a call holds a lease from its first second to its last", "yes".to_owned(), "docs/calls.md");
        add("readings, marks and stops", "as in the functions".to_owned(), "shared/src/decide");
        let per_node =
            setup.calls_per_node.map_or("no limit but the ledger's 100".to_owned(), |calls| calls.to_string());
        add("nodes, and calls on each", format!("{}, {per_node}", setup.nodes), "--nodes, --calls-per-node");
        add("a START meets no capacity", format!("{} % of the time", setup.refusal * 100.0), "--start-failure");
        let entry = format!(
            "{} % of calls, a median of {} s ahead (sigma {}), {} % of entries without a call",
            announced.share * 100.0,
            announced.lead_seconds,
            announced.lead_sigma,
            announced.without_call * 100.0
        );
        add("entries announce", entry, "assumed until measured: --announced, --lead-seconds, --entries-without-call");
        add("cold is a wait of", "95 % of the boot or longer, or in vain".to_owned(), model);
        add("a month", "730.5 h".to_owned(), model);
        let hour = format!("{} an hour in {}", rates.hour.plain(), request.prices.region());
        add(&format!("price of {}", fleet.kind), format!("${hour}"), &format!("shared/data/prices.csv, as of {AS_OF}"));
        let disk = &fleet.disk;
        let disks = format!("{} GiB {}, {} IOPS, {} MiB/s", disk.gib, disk.kind, disk.iops, disk.mibps);
        let month = format!("{disks}: ${} a month for {} node(s)", rates.disk_month.plain(), fleet.nodes);
        add("disk", month, "the volume of infra/modules/node");
        let address = match fleet.address {
            Address::None => "none".to_owned(),
            Address::Automatic => format!("${} an hour of running", rates.address_hour.plain()),
            Address::Elastic => format!("${} a month", rates.address_month.plain()),
        };
        add("public address", address, "--address");
        add("controller", format!("${} a month", rates.controller_month.plain()), "infra/README.md, Cost");
        all
    }
}

fn midnight_of(day: NaiveDate, zone: Tz) -> i64 {
    let local = zone.from_local_datetime(&day.and_time(NaiveTime::MIN)).earliest();
    local.map_or_else(|| day.and_time(NaiveTime::MIN).and_utc().timestamp(), |at| at.timestamp())
}
