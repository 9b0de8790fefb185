//! What really happened, month by month: the planner's figures, from the launches that the ledger has kept.

mod text;

pub use text::{csv, markdown, table};

use crate::answers::Parts;
use crate::costs::MONTH_HOURS;
use chrono::{Datelike as _, Months, NaiveDate, TimeDelta};
use chrono_tz::Tz;
use reveille::decide::uptime::LocalDay;
use reveille::domain::{
    BootTime, InstanceType, Instant, Launch, NodeId, NodeState, PoolName, PublicAddress, Usd, WakeSource, merged,
};
use reveille::prices::{PUBLIC_IPV4, Prices};
use reveille::spend::{Fleet, NodeCosts, spend};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is known of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The pool.
    pub pool: PoolName,
    /// Its nodes: those that are listed, and those that only the ledger remembers.
    pub nodes: Fleet,
    /// Since when launches are written down, where the ledger says so.
    pub since: Option<Instant>,
    /// Seconds of the last boots that were timed.
    pub boots: Vec<u32>,
}

/// What is asked, and what it is reckoned with.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Any day of the first month.
    pub from: NaiveDate,
    /// The zone of the months.
    pub zone: Tz,
    /// The instant up to which is counted.
    pub now: Instant,
    /// Today's prices.
    pub prices: &'a Prices,
    /// This pool's part of what the controller costs a month of 730.5 hours.
    pub controller_month: Usd,
    /// Hours a day of the window that is compared with.
    pub window_hours: u32,
}

/// One pool's past.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Past {
    /// The pool.
    pub pool: PoolName,
    /// Since when its launches are known; absent where none is.
    pub known_since: Option<Instant>,
    /// The months, the oldest first.
    pub months: Vec<Figures>,
    /// All of them together.
    pub all: Option<Figures>,
    /// What the last boots took, from START to ready.
    pub last_boots: Option<LastBoots>,
    /// What is not known, and why.
    pub not_known: Vec<String>,
}

/// The boots that the ledger remembers of each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LastBoots {
    /// How many.
    pub boots: usize,
    /// The median.
    pub median_seconds: i64,
    /// The distance of the quartiles.
    pub spread_seconds: i64,
}

/// The figures of one span.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Such as `2026-11`; `all` of the months together.
    pub month: String,
    /// The first instant that counts: the month's, or that from which launches are known.
    pub from: Instant,
    /// The first instant that does not count.
    pub to: Instant,
    /// Billed seconds of all nodes: a minute at least for each start.
    pub node_seconds: i64,
    /// The same in hours.
    pub node_hours: f64,
    /// The most nodes that ran at once.
    pub nodes_at_once: usize,
    /// Launches that began.
    pub starts: usize,
    /// The same a day.
    pub starts_per_day: f64,
    /// What caused the starts, the most wasteful first.
    pub causes: Vec<CauseFigures>,
    /// Starts that a call or a request waited for.
    pub cold_starts: usize,
    /// Cold starts of which the wait is known.
    pub waits_known: usize,
    /// From the wake to ready, of cold starts.
    pub wait_mean_seconds: Option<f64>,
    /// Half of them took no longer.
    pub wait_p50_seconds: Option<i64>,
    /// 95 % of them took no longer.
    pub wait_p95_seconds: Option<i64>,
    /// Launches that ended, in which no request, call or lease was counted.
    pub for_nothing: usize,
    /// Hours of those.
    pub for_nothing_hours: f64,
    /// Launches that ended, of which it cannot be told.
    pub use_unknown: usize,
    /// Launches whose end nobody saw: each is counted for 20 minutes too long at most.
    pub ends_presumed: usize,
    /// What it cost, with the controller; absent where something has no price.
    pub cost_usd: Option<f64>,
    /// The parts of it that have a price.
    pub cost_parts: Parts,
    /// What has no price.
    pub unpriced: Vec<String>,
    /// What other plans would have cost in the same time.
    pub plans: Vec<Alternative>,
    /// The cost as a share of one node's that always runs.
    pub share_of_always: Option<f64>,
}

/// A plan whose cost does not hang on when calls came.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Such as `24/7`, as the planner calls it.
    pub name: String,
    /// Its node hours.
    pub node_hours: f64,
    /// Its cost; absent where something has no price.
    pub cost_usd: Option<f64>,
}

/// The launches of one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseFigures {
    /// The source of the wake; absent where none caused it.
    pub source: Option<&'static str>,
    /// The beginning of a path that it asked for, where that is known.
    pub path: Option<String>,
    /// Launches.
    pub starts: usize,
    /// Those that ended and served nobody.
    pub for_nothing: usize,
    /// Hours of those.
    pub for_nothing_hours: f64,
}

/// The figures of one pool.
pub fn past(known: &Known, terms: &Terms<'_>) -> Past {
    let nodes = settled(&known.nodes, terms.now);
    let boot = BootTime::of(known.boots.iter().copied(), TimeDelta::zero());
    let known_since = known_since(&nodes, known.since).filter(|since| *since < terms.now);
    let months: Vec<Figures> = known_since.map(|since| months(&nodes, since, terms)).unwrap_or_default();
    let span = months.first().zip(months.last()).map(|(first, last)| (first.from, last.to));
    let all = span.map(|(from, to)| figures("all".to_owned(), &nodes, (from, to), terms));
    Past {
        pool: known.pool.clone(),
        known_since,
        not_known: all.as_ref().map(|all| not_known(all, &nodes)).unwrap_or_default(),
        months,
        all,
        last_boots: (boot.boots > 0).then(|| LastBoots {
            boots: boot.boots,
            median_seconds: boot.median.num_seconds(),
            spread_seconds: boot.spread.num_seconds(),
        }),
    }
}

/// One record a launch. One that is open on a node that is no longer listed ended when it was last seen, or a little later:
/// the uptime alarm says so at its next run.
fn settled(nodes: &Fleet, now: Instant) -> Fleet {
    let settle = |node: &NodeCosts| {
        let mut launches = merged(&node.launches);
        let lost = launches.last_mut().filter(|launch| launch.ended_at.is_none() && node.seen.is_none());
        if let Some(launch) = lost {
            (launch.ended_at, launch.presumed) = (Some(launch.unseen_end(now)), true);
        }
        NodeCosts { launches, ..node.clone() }
    };
    nodes.iter().map(|(id, node)| (id.clone(), settle(node))).collect()
}

/// From the first launch on, or from the day on which the books were opened: of a pool that came later, from its first disk.
fn known_since(nodes: &Fleet, since: Option<Instant>) -> Option<Instant> {
    let first = nodes.values().flat_map(|node| &node.launches).map(|launch| launch.launched_at).min();
    let born = nodes.values().flat_map(|node| &node.disks).filter_map(|disk| disk.created_at).min();
    let opened = since.map(|since| born.map_or(since, |born| born.max(since)));
    first.into_iter().chain(opened).min()
}

fn months(nodes: &Fleet, since: Instant, terms: &Terms<'_>) -> Vec<Figures> {
    let first = terms.from.with_day(1).unwrap_or(terms.from);
    let mut months = Vec::new();
    for month in (0..).map_while(|n| first.checked_add_months(Months::new(n))) {
        let next = month.checked_add_months(Months::new(1)).unwrap_or(month);
        let (from, to) = (LocalDay::on(terms.zone, month).from, LocalDay::on(terms.zone, next).from);
        if from >= terms.now || to <= from {
            break;
        }
        let (from, to) = (from.max(since), to.min(terms.now));
        if from < to {
            months.push(figures(month.format("%Y-%m").to_string(), nodes, (from, to), terms));
        }
    }
    months
}

/// From the wake to ready, sorted, of those that somebody waited for.
fn waits(begun: &[&Launch]) -> Vec<i64> {
    let wait = |launch: &&&Launch| Some((launch.ready_at? - launch.wanted_at?).num_seconds().max(0));
    let mut waits: Vec<i64> =
        begun.iter().filter(|launch| is_cold(launch)).filter_map(|launch| wait(&launch)).collect();
    waits.sort_unstable();
    waits
}

/// A pre-warm comes before its call; whoever calls or asks for a page is there.
fn is_cold(launch: &Launch) -> bool {
    launch.source.is_some_and(|source| match source {
        WakeSource::Call | WakeSource::LogLine | WakeSource::UnreadableBatch => true,
        WakeSource::Prewarm => false,
    })
}

fn is_for_nothing(launch: &Launch) -> bool {
    launch.ended_at.is_some() && launch.used == Some(false)
}

fn figures(month: String, nodes: &Fleet, (from, to): (Instant, Instant), terms: &Terms<'_>) -> Figures {
    let all = nodes.values().flat_map(|node| &node.launches);
    let begun: Vec<&Launch> = all.filter(|launch| launch.launched_at >= from && launch.launched_at < to).collect();
    let ended = || begun.iter().filter(|launch| launch.ended_at.is_some());
    let vain = || begun.iter().filter(|launch| is_for_nothing(launch));
    let spent = spend(nodes, from, to, terms.now, terms.prices);
    let seconds = (to - from).num_seconds();
    let controller = terms.controller_month.times(seconds, (MONTH_HOURS * 3600.0) as i64);
    let cost = spent.unpriced.is_empty().then(|| spent.total() + controller);
    let waits = waits(&begun);
    let rank = |percent: usize| waits.get((waits.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    let at_once = nodes_at_once(nodes, (from, to), terms.now);
    let plans = alternatives(nodes, (from, to), at_once, terms);
    let always = plans.first().and_then(|plan| plan.cost_usd).filter(|usd| *usd > 0.0);
    Figures {
        month,
        from,
        to,
        node_seconds: spent.seconds,
        node_hours: hours(spent.seconds),
        nodes_at_once: at_once,
        starts: begun.len(),
        starts_per_day: begun.len() as f64 / (seconds.max(1) as f64 / 86_400.0),
        causes: causes(&begun, terms.now),
        cold_starts: begun.iter().filter(|launch| is_cold(launch)).count(),
        waits_known: waits.len(),
        wait_mean_seconds: (!waits.is_empty()).then(|| waits.iter().sum::<i64>() as f64 / waits.len() as f64),
        wait_p50_seconds: rank(50),
        wait_p95_seconds: rank(95),
        for_nothing: vain().count(),
        for_nothing_hours: hours(vain().map(|launch| billed(launch, terms.now)).sum()),
        use_unknown: ended().filter(|launch| launch.used.is_none()).count(),
        ends_presumed: ended().filter(|launch| launch.presumed).count(),
        share_of_always: cost.map(dollars).zip(always).map(|(cost, always)| cost / always),
        cost_usd: cost.map(dollars),
        cost_parts: Parts {
            compute_usd: dollars(spent.compute),
            disk_usd: dollars(spent.disk),
            address_usd: dollars(spent.address),
            controller_usd: dollars(controller),
        },
        unpriced: spent.unpriced.into_iter().collect(),
        plans,
    }
}

/// All of a launch, in whichever month it ended.
fn billed(launch: &Launch, now: Instant) -> i64 {
    launch.billed_seconds_within(launch.launched_at, now + TimeDelta::days(1), now)
}

fn causes(launches: &[&Launch], now: Instant) -> Vec<CauseFigures> {
    let mut causes: BTreeMap<(Option<&'static str>, Option<&str>), Vec<&Launch>> = BTreeMap::new();
    for launch in launches {
        let cause = (launch.source.map(|source| source.as_str()), launch.path.as_deref());
        causes.entry(cause).or_default().push(launch);
    }
    let figures = causes.into_iter().map(|((source, path), launches)| {
        let vain = || launches.iter().filter(|launch| is_for_nothing(launch));
        CauseFigures {
            source,
            path: path.map(str::to_owned),
            starts: launches.len(),
            for_nothing: vain().count(),
            for_nothing_hours: hours(vain().map(|launch| billed(launch, now)).sum()),
        }
    });
    let mut figures: Vec<CauseFigures> = figures.collect();
    figures.sort_by(|one, other| other.for_nothing_hours.total_cmp(&one.for_nothing_hours));
    figures
}

/// The price of the type that ran longest; where none ran, of a node that is listed.
fn hour_price(nodes: &Fleet, (from, to): (Instant, Instant), terms: &Terms<'_>) -> Option<Usd> {
    let mut seconds: BTreeMap<&InstanceType, i64> = BTreeMap::new();
    for launch in nodes.values().flat_map(|node| &node.launches) {
        let Some(kind) = &launch.instance_type else { continue };
        *seconds.entry(kind).or_default() += launch.billed_seconds_within(from, to, terms.now);
    }
    let ran = seconds.into_iter().filter(|(_, seconds)| *seconds > 0).max_by_key(|(_, seconds)| *seconds);
    let listed = || nodes.values().find_map(|node| node.seen.as_ref()?.instance_type.as_ref());
    terms.prices.hour(ran.map(|(kind, _)| kind).or_else(listed)?)
}

/// The most nodes that ran at one instant of the span.
fn nodes_at_once(nodes: &Fleet, (from, to): (Instant, Instant), now: Instant) -> usize {
    let launches = nodes.values().flat_map(|node| &node.launches);
    let spans = launches.map(|launch| (launch.launched_at.max(from), launch.end(now).min(to)));
    let mut edges: Vec<(Instant, i64)> =
        spans.filter(|(start, end)| start < end).flat_map(|(start, end)| [(start, 1), (end, -1)]).collect();
    // An end before a start of the same instant: they do not overlap.
    edges.sort_unstable();
    let (mut running, mut most) = (0, 0);
    for (_, change) in edges {
        running += change;
        most = most.max(running);
    }
    usize::try_from(most).unwrap_or(0)
}

/// One node that always runs; as many as ran at once; a node that runs by the clock.
fn alternatives(nodes: &Fleet, span: (Instant, Instant), at_once: usize, terms: &Terms<'_>) -> Vec<Alternative> {
    let seconds = (span.1 - span.0).num_seconds();
    let running = Running::of(nodes, span, terms);
    let plan = |name: String, seconds: i64| Alternative {
        name,
        node_hours: hours(seconds),
        cost_usd: running.as_ref().map(|running| dollars(running.cost(seconds))),
    };
    let several = i64::try_from(at_once).unwrap_or(1);
    let of_day = i64::from(terms.window_hours);
    let always = plan("24/7".to_owned(), seconds);
    let all = (several > 1).then(|| plan(format!("24/7, {several} nodes"), seconds * several));
    let window = plan(format!("window {of_day} h"), seconds * of_day / 24);
    [always].into_iter().chain(all).chain([window]).collect()
}

/// What a node costs that runs for a given time of a span.
struct Running {
    /// An hour of running, with an address that it has only then.
    hour: Usd,
    /// Whatever runs: the disks there are, and addresses that are billed for all hours.
    standing: Usd,
}

impl Running {
    /// None where something has no price.
    fn of(nodes: &Fleet, (from, to): (Instant, Instant), terms: &Terms<'_>) -> Option<Self> {
        let asleep = |node: &NodeCosts| NodeCosts { launches: Vec::new(), ..node.clone() };
        let asleep: Fleet = nodes.iter().map(|(id, node)| (id.clone(), asleep(node))).collect();
        let standing = spend(&asleep, from, to, terms.now, terms.prices);
        let automatic = nodes.values().any(|node| {
            let address = node.seen.as_ref().and_then(|seen| seen.public_address);
            let had_one = node.launches.iter().any(|launch| launch.automatic_address);
            address != Some(PublicAddress::Elastic) && (had_one || address == Some(PublicAddress::Automatic))
        });
        let address = if automatic { terms.prices.of(PUBLIC_IPV4)? } else { Usd::ZERO };
        let hour = hour_price(nodes, (from, to), terms)? + address;
        standing.unpriced.is_empty().then(|| Self { hour, standing: standing.total() })
    }

    fn cost(&self, seconds: i64) -> Usd {
        self.hour.times(seconds, 3600) + self.standing
    }
}

/// What no launch tells.
const CALLS: &str = "the waits and the cold share of single calls, and the cost of a call: the ledger counts launches, not \
                     calls; `reveille plan --trace` has them for an access log";

fn launches(number: usize) -> String {
    format!("{number} {}", if number == 1 { "launch" } else { "launches" })
}

/// What cannot be told, and why.
fn not_known(all: &Figures, nodes: &Fleet) -> Vec<String> {
    let waits = (all.waits_known < all.cold_starts).then(|| {
        format!(
            "the waits of {} of {} cold starts: the launch has no time of its wake, or of its readiness",
            all.cold_starts - all.waits_known,
            all.cold_starts
        )
    });
    let used = (all.use_unknown > 0)
        .then(|| format!("whether {} served anybody: the signals could not be read", launches(all.use_unknown)));
    let is_gone = |node: &&NodeCosts| node.seen.as_ref().is_none_or(|seen| seen.state == NodeState::Gone);
    let gone = nodes.values().filter(is_gone).filter(|node| !node.launches.is_empty()).count();
    let gone = (gone > 0)
        .then(|| format!("the disks and Elastic addresses of nodes that are gone ({gone}): the sums are without them"));
    waits.into_iter().chain(used).chain(gone).chain([CALLS.to_owned()]).collect()
}

fn hours(seconds: i64) -> f64 {
    seconds as f64 / 3600.0
}

fn dollars(usd: Usd) -> f64 {
    usd.micro() as f64 / 1e6
}

/// Puts in when a launch was ready, where the ledger's own fact still says so.
pub fn with_readiness(nodes: &mut Fleet, id: &NodeId, launched_at: Instant, ready_at: Instant) {
    let launches = nodes.get_mut(id).into_iter().flat_map(|node| &mut node.launches);
    for launch in launches.filter(|launch| launch.launched_at == launched_at) {
        launch.ready_at = launch.ready_at.or(Some(ready_at));
    }
}
