//! The dated price table: AWS's On-Demand list prices by region, with the operator's own prices before it. Nothing is
//! guessed: an item without a price has none, and whoever needs it says so.

use crate::domain::{InstanceType, Usd};
use std::collections::BTreeMap;

/// Rows of `region,item,usd,unit,source`; where they come from stands in `shared/data/README.md`.
const TABLE: &str = include_str!("../data/prices.csv");

/// The day the instance prices of the table were read; other items carry their own in `shared/data/README.md`.
pub const AS_OF: &str = "2026-08-26";

/// One gp3 operation a second above 3,000 for a month.
pub const GP3_IOPS: &str = "gp3_iops";
/// One gp3 MiB a second above 125 for a month.
pub const GP3_MIBPS: &str = "gp3_mibps";
/// A public IPv4 address for an hour.
pub const PUBLIC_IPV4: &str = "public_ipv4";

/// The prices of one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    region: String,
    own: BTreeMap<String, Usd>,
}

impl Prices {
    /// The table's prices of this region; `own` come first. Own prices are above zero.
    pub fn new(region: impl Into<String>, own: BTreeMap<String, Usd>) -> Self {
        Self { region: region.into(), own }
    }

    /// The region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The price of an item: an instance type's by the hour, or one of this module's items by its own unit.
    pub fn of(&self, item: &str) -> Option<Usd> {
        self.own.get(item).copied().or_else(|| self.listed(item))
    }

    /// An instance type's price for an hour.
    pub fn hour(&self, kind: &InstanceType) -> Option<Usd> {
        self.of(kind.as_str())
    }

    /// Whether anything can be priced in this region.
    pub fn is_known(&self) -> bool {
        !self.own.is_empty() || rows().any(|row| row.region == self.region)
    }

    /// Whether the price of an item is the operator's own.
    pub fn is_own(&self, item: &str) -> bool {
        self.own.contains_key(item)
    }

    fn listed(&self, item: &str) -> Option<Usd> {
        let row = rows().find(|row| row.region == self.region && row.item == item)?;
        Usd::parse(row.usd).ok()
    }
}

struct Row {
    region: &'static str,
    item: &'static str,
    usd: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    TABLE.lines().skip(1).filter_map(|line| {
        let mut cells = line.split(',');
        Some(Row { region: cells.next()?, item: cells.next()?, usd: cells.next()? })
    })
}

/// Every region of the table.
pub fn regions() -> Vec<&'static str> {
    let mut regions: Vec<_> = rows().map(|row| row.region).collect();
    regions.dedup();
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Option<Usd> {
        Usd::parse(text).ok()
    }

    #[test]
    fn every_row_is_a_price_above_zero_and_stands_once() {
        let mut seen = std::collections::BTreeSet::new();
        for row in rows() {
            let price = Usd::parse(row.usd).unwrap_or_else(|fault| panic!("{} {}: {fault}", row.region, row.item));
            assert!(price > Usd::ZERO, "{} {}", row.region, row.item);
            assert!(seen.insert((row.region, row.item)), "{} {} stands twice", row.region, row.item);
        }
        assert!(seen.len() > 10);
    }

    #[test]
    fn the_facts_sheet_is_in_it() {
        let rows = [
            ("us-east-1", "g6.xlarge", "0.8048"),
            ("ap-northeast-2", "g6.2xlarge", "1.20208"),
            ("us-east-1", "gp3_gib", "0.08"),
            ("ap-northeast-2", GP3_IOPS, "0.0057"),
        ];
        for (region, item, price) in rows {
            assert_eq!(Prices::new(region, BTreeMap::new()).of(item), usd(price), "{region} {item}");
        }
    }

    #[test]
    fn an_own_price_comes_first_and_an_unknown_region_has_none() {
        let own = BTreeMap::from([("g6.xlarge".to_owned(), Usd::from_micro(1))]);
        assert_eq!(Prices::new("us-east-1", own.clone()).of("g6.xlarge"), Some(Usd::from_micro(1)));
        assert!(Prices::new("mars-1", own).is_known());
        let unknown = Prices::new("mars-1", BTreeMap::new());
        assert_eq!((unknown.is_known(), unknown.of("g6.xlarge")), (false, None));
    }
}
