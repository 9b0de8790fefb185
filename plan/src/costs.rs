//! What a plan costs a month: compute, disk, address and controller, by the dated price table.

use crate::replay::tally::Tally;
use chrono::TimeDelta;
use reveille::domain::{Disk, InstanceType, Instant, NodeId, Usd};
use reveille::prices::{PUBLIC_IPV4, Prices};
use reveille::spend::{Month, NodeCosts, spend};
use serde::Serialize;
use std::collections::BTreeMap;

/// Hours of a month: 365.25 days by twelve.
pub const MONTH_HOURS: f64 = 730.5;
/// The same in tenths, to be exact with.
const MONTH_TENTHS: i64 = 7305;

/// Whether the nodes have a public address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// None.
    None,
    /// One that is given back while the node is stopped.
    Automatic,
    /// An Elastic IP, which is billed for all hours.
    Elastic,
}

/// What the nodes are.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// The instance type.
    pub kind: InstanceType,
    /// How many nodes the pool has: each has a disk.
    pub nodes: usize,
    /// Of each node.
    pub disk: Disk,
    /// Of each node.
    pub address: Address,
    /// What the controller costs a month.
    pub controller: Usd,
}

/// What has no price in this region.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no price for {item} in {region}: say --price {item}=USD, or another --region")]
pub struct Unpriced {
    item: String,
    region: String,
}

/// The prices that a plan is reckoned with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rates {
    /// A node for an hour.
    pub hour: Usd,
    /// All disks for a month.
    pub disk_month: Usd,
    /// All addresses for a month, where they are billed for all hours.
    pub address_month: Usd,
    /// An address for an hour of running.
    pub address_hour: Usd,
    /// The controller for a month.
    pub controller_month: Usd,
}

impl Rates {
    /// Looks everything up.
    ///
    /// # Errors
    /// What has no price.
    pub fn of(fleet: &Fleet, prices: &Prices) -> Result<Self, Unpriced> {
        let missing = |item: &str| Unpriced { item: item.to_owned(), region: prices.region().to_owned() };
        let hour = prices.hour(&fleet.kind).ok_or_else(|| missing(fleet.kind.as_str()))?;
        let nodes = i64::try_from(fleet.nodes).unwrap_or(i64::MAX);
        let address = match fleet.address {
            Address::None => Usd::ZERO,
            Address::Automatic | Address::Elastic => prices.of(PUBLIC_IPV4).ok_or_else(|| missing(PUBLIC_IPV4))?,
        };
        let is_elastic = fleet.address == Address::Elastic;
        Ok(Self {
            hour,
            disk_month: disk_month(&fleet.disk, prices, &missing)?.times(nodes, 1),
            address_month: if is_elastic { address.times(nodes * MONTH_TENTHS, 10) } else { Usd::ZERO },
            address_hour: if is_elastic { Usd::ZERO } else { address },
            controller_month: fleet.controller,
        })
    }
}

/// By the rule of the budget guard: the disk for one whole month.
fn disk_month(disk: &Disk, prices: &Prices, missing: &dyn Fn(&str) -> Unpriced) -> Result<Usd, Unpriced> {
    let month = Month::of(Instant::UNIX_EPOCH);
    let node = NodeCosts { disks: vec![Disk { created_at: None, ..disk.clone() }], ..NodeCosts::default() };
    let id = NodeId::new("i-0000").map_err(|_| missing("disk"))?;
    let spent = spend(&BTreeMap::from([(id, node)]), month.from, month.to, month.to + TimeDelta::days(1), prices);
    match spent.unpriced.first() {
        Some(_) => Err(missing(&format!("{}_gib", disk.kind))),
        None => Ok(spent.disk),
    }
}

/// A month of a plan, in money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Running nodes.
    pub compute: Usd,
    /// Disks, for all hours.
    pub disk: Usd,
    /// Public addresses.
    pub address: Usd,
    /// The four functions, the ledger and what watches them; nothing where no plan of theirs runs.
    pub controller: Usd,
}

impl Cost {
    /// A month of what was replayed. `controlled`: the functions decide.
    pub fn of(tally: &Tally, rates: &Rates, controlled: bool) -> Self {
        // Seconds of the span, as hours of a month.
        let monthly = |hour: Usd| hour.times(tally.node_seconds * MONTH_TENTHS, tally.span().max(1) * 10);
        Self {
            compute: monthly(rates.hour),
            disk: rates.disk_month,
            address: rates.address_month + monthly(rates.address_hour),
            controller: if controlled { rates.controller_month } else { Usd::ZERO },
        }
    }

    /// All of it.
    pub fn total(&self) -> Usd {
        self.compute + self.disk + self.address + self.controller
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(address: Address) -> Fleet {
        Fleet {
            kind: InstanceType::new("g6.xlarge").unwrap(),
            nodes: 1,
            disk: Disk { kind: "gp3".to_owned(), gib: 100, iops: 4000, mibps: 250, created_at: None },
            address,
            controller: Usd::from_micro(600_000),
        }
    }

    fn prices() -> Prices {
        Prices::new("us-east-1", BTreeMap::new())
    }

    #[test]
    fn a_node_that_always_runs_costs_a_month_of_hours() {
        let rates = Rates::of(&fleet(Address::Elastic), &prices()).unwrap();
        let mut tally = Tally::new(0, 86_400, 55, 90);
        tally.ran(0, 86_400);
        let cost = Cost::of(&tally, &rates, false);
        assert_eq!(cost.compute, Usd::from_micro(587_906_400), "730.5 h at $0.8048");
        assert_eq!(cost.disk, Usd::from_micro(8_000_000 + 5_000_000 + 5_000_000), "100 GiB, 1000 IOPS, 125 MiB/s");
        assert_eq!(cost.address, Usd::from_micro(3_652_500));
        assert_eq!(cost.controller, Usd::ZERO);
    }

    #[test]
    fn an_automatic_address_is_billed_while_the_node_runs() {
        let rates = Rates::of(&fleet(Address::Automatic), &prices()).unwrap();
        let mut tally = Tally::new(0, 86_400, 55, 90);
        tally.ran(0, 43_200);
        assert_eq!(Cost::of(&tally, &rates, true).address, Usd::from_micro(1_826_250));
        assert_eq!(Cost::of(&tally, &rates, true).controller, Usd::from_micro(600_000));
    }

    #[test]
    fn what_has_no_price_is_named() {
        let missing = |fleet: Fleet, region: &str| {
            Rates::of(&fleet, &Prices::new(region, BTreeMap::new())).unwrap_err().to_string()
        };
        assert!(missing(fleet(Address::None), "mars-1").contains("g6.xlarge in mars-1"));
        let disk = Disk { kind: "st1".to_owned(), ..fleet(Address::None).disk };
        assert!(missing(Fleet { disk, ..fleet(Address::None) }, "us-east-1").contains("st1_gib"));
    }
}
