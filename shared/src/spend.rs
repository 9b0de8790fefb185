//! What nodes cost, from their launches, disks and addresses. Figures of AWS's own lag by 8 to 12 hours; this one does not.
//! It is computed anew from the whole of what is known, never added up run by run, so it cannot depend on how often or when
//! somebody looked.

use crate::domain::{Disk, InstanceType, Instant, Launch, NodeId, NodeSeen, NodeState, PublicAddress, Usd, merged};
use crate::prices::{GP3_IOPS, GP3_MIBPS, PUBLIC_IPV4, Prices};
use chrono::{Datelike, Months, NaiveTime, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};

const HOUR: i64 = 3600;
/// What gp3 includes.
const FREE_IOPS: i64 = 3000;
const FREE_MIBPS: i64 = 125;

/// What is known of one node's cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeCosts {
    /// The describe, where the node is still listed.
    pub seen: Option<NodeSeen>,
    /// Its launches, in any order; two records of one launch count once.
    pub launches: Vec<Launch>,
    /// Its volumes, where they could be read.
    pub disks: Vec<Disk>,
}

/// Every node's costs.
pub type Fleet = BTreeMap<NodeId, NodeCosts>;

/// Money of a span of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spend {
    /// Running seconds × the type's price; a minute at least for each start.
    pub compute: Usd,
    /// Volumes, for all hours.
    pub disk: Usd,
    /// Public addresses: an Elastic one for all hours, an automatic one while the node runs.
    pub address: Usd,
    /// Billed seconds of running, all nodes together.
    pub seconds: i64,
    /// What has no price: the sum is too low by it.
    pub unpriced: BTreeSet<String>,
}

impl Spend {
    /// All of it.
    pub fn total(&self) -> Usd {
        self.compute + self.disk + self.address
    }
}

/// A month in UTC, as AWS bills it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Month {
    /// Its first instant.
    pub from: Instant,
    /// The first instant of the next.
    pub to: Instant,
}

impl Month {
    /// The month that holds this instant.
    pub fn of(now: Instant) -> Month {
        let first = now.date_naive().with_day(1).unwrap_or(now.date_naive());
        let next = first.checked_add_months(Months::new(1)).unwrap_or(first);
        Month { from: first.and_time(NaiveTime::MIN).and_utc(), to: next.and_time(NaiveTime::MIN).and_utc() }
    }

    /// Such as `2026-11`.
    pub fn name(&self) -> String {
        self.from.format("%Y-%m").to_string()
    }
}

/// What these nodes cost in `[from, to)`, as of `now`; `to` is not after `now`. A node that runs goes on costing until it was
/// seen to stop, whether it can be looked at or not (field case 08).
pub fn spend(fleet: &Fleet, from: Instant, to: Instant, now: Instant, prices: &Prices) -> Spend {
    let mut spend = Spend::default();
    let mut seconds: BTreeMap<Option<InstanceType>, i64> = BTreeMap::new();
    for node in fleet.values() {
        for launch in merged(&node.launches) {
            let billed = launch.billed_seconds_within(from, to, now);
            *seconds.entry(launch.instance_type.clone()).or_default() += billed;
            spend.seconds += billed;
        }
        spend.disk = spend.disk + disks(node, from, to, prices, &mut spend.unpriced);
        spend.address = spend.address + address(node, from, to, now, prices, &mut spend.unpriced);
    }
    for (kind, seconds) in seconds {
        match kind.as_ref().and_then(|kind| prices.hour(kind)) {
            Some(price) => spend.compute = spend.compute + price.times(seconds, HOUR),
            None if seconds == 0 => {}
            None => {
                let name = kind.map_or_else(|| "an unknown type".to_owned(), |kind| kind.to_string());
                spend.unpriced.insert(format!("instance type {name}"));
            }
        }
    }
    spend
}

fn disks(node: &NodeCosts, from: Instant, to: Instant, prices: &Prices, unpriced: &mut BTreeSet<String>) -> Usd {
    node.disks.iter().map(|disk| one_disk(disk, from, to, prices, unpriced)).sum()
}

/// A volume's monthly price for its share of each month, by the month's own length.
fn one_disk(disk: &Disk, from: Instant, to: Instant, prices: &Prices, unpriced: &mut BTreeSet<String>) -> Usd {
    let Some(month) = month_of_disk(disk, prices) else {
        unpriced.insert(format!("{} volumes ({})", disk.kind, gib_item(disk)));
        return Usd::ZERO;
    };
    let (mut cost, mut start) = (Usd::ZERO, from.max(disk.created_at.unwrap_or(from)));
    while start < to {
        let of = Month::of(start);
        let end = of.to.min(to);
        cost = cost + month.times((end - start).num_seconds(), (of.to - of.from).num_seconds());
        start = end;
    }
    cost
}

/// Such as `gp3_gib`; the table has gp3, other kinds need the operator's own price.
fn gib_item(disk: &Disk) -> String {
    format!("{}_gib", disk.kind)
}

fn month_of_disk(disk: &Disk, prices: &Prices) -> Option<Usd> {
    let part = |item: &str, units: i64| prices.of(item).map(|price| price.times(units.max(0), 1));
    let size = part(&gib_item(disk), disk.gib)?;
    if disk.kind.starts_with("io") {
        return Some(size + part(&format!("{}_iops", disk.kind), disk.iops)?);
    }
    if disk.kind != "gp3" {
        return Some(size);
    }
    Some(size + part(GP3_IOPS, disk.iops - FREE_IOPS)? + part(GP3_MIBPS, disk.mibps - FREE_MIBPS)?)
}

fn address(
    node: &NodeCosts,
    from: Instant,
    to: Instant,
    now: Instant,
    prices: &Prices,
    unpriced: &mut BTreeSet<String>,
) -> Usd {
    let elastic = node.seen.as_ref().is_some_and(|seen| seen.public_address == Some(PublicAddress::Elastic));
    let launches = merged(&node.launches);
    let automatic = launches.iter().filter(|launch| launch.automatic_address && !elastic);
    let mut seconds: i64 = automatic.map(|launch| launch.seconds_within(from, to, now)).sum();
    if elastic {
        // Since the node's first disk, where it is known: nobody tells when the address was taken.
        let born = node.disks.iter().filter_map(|disk| disk.created_at).min();
        seconds = (to - from.max(born.unwrap_or(from))).num_seconds().max(0);
    }
    if seconds == 0 {
        return Usd::ZERO;
    }
    let Some(price) = prices.of(PUBLIC_IPV4) else {
        unpriced.insert(format!("public IPv4 addresses ({PUBLIC_IPV4})"));
        return Usd::ZERO;
    };
    price.times(seconds, HOUR)
}

/// What the fleet costs an hour as it is now: what runs, and what is paid for while everything sleeps.
/// None where something that runs has no price.
pub fn hourly(fleet: &Fleet, prices: &Prices) -> Option<Usd> {
    let seen = fleet.values().filter_map(|node| node.seen.as_ref());
    let running = seen.filter(|seen| matches!(seen.state, NodeState::Pending | NodeState::Running));
    running.map(|seen| prices.hour(seen.instance_type.as_ref()?)).sum()
}

/// How far back the forecast looks: a week holds every weekday once.
const RATE_OVER: TimeDelta = TimeDelta::days(7);
/// Less history than a day says nothing of the nights.
const SHORTEST_RATE: TimeDelta = TimeDelta::days(1);

/// From when on history is needed at `now`: the month, and the week that the forecast looks back on.
pub fn history_from(now: Instant) -> Instant {
    Month::of(now).from.min(now - RATE_OVER)
}

/// What the month will have cost at its end if it goes on as in the last seven days (or as long as launches are known, a day
/// at least): AWS's forecast needs about five weeks of data, this one a day. `since`: when launches began to be written down,
/// so that the quiet before the first one counts too.
pub fn forecast(fleet: &Fleet, since: Option<Instant>, now: Instant, prices: &Prices) -> Option<Usd> {
    let first = fleet.values().flat_map(|node| &node.launches).map(|launch| launch.launched_at).min();
    let from = first.into_iter().chain(since).min()?.max(now - RATE_OVER);
    let month = Month::of(now);
    if now - from < SHORTEST_RATE {
        return None;
    }
    let so_far = spend(fleet, month.from, now, now, prices).total();
    let lately = spend(fleet, from, now, now, prices).total();
    Some(so_far + lately.times((month.to - now).num_seconds(), (now - from).num_seconds()))
}
