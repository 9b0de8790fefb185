//! What really happened, from launches: months of any zone, and launches of every awkward kind.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed};
use reveille::domain::{
    Disk, InstanceType, Instant, Launch, NodeId, NodeSeen, NodeState, PoolName, PublicAddress, Usd, WakeSource, merged,
};
use reveille::prices::Prices;
use reveille::spend::{Fleet, NodeCosts};
use reveille_plan::history::{Figures, Known, Past, Terms, csv, markdown, past, table};
use std::collections::BTreeMap;

/// Such as `2026-10-31 23:00`, in UTC.
fn at(text: &str) -> Instant {
    let text = if text.len() == 16 { format!("{text}:00") } else { text.to_owned() };
    text.replace(' ', "T").parse::<chrono::NaiveDateTime>().unwrap().and_utc()
}

fn kind(word: &str) -> Option<InstanceType> {
    Some(InstanceType::new(word).unwrap())
}

fn launch(from: &str, to: Option<&str>) -> Launch {
    Launch { instance_type: kind("g6.xlarge"), ended_at: to.map(at), used: Some(true), ..Launch::at(at(from)) }
}

/// Woken by this so many seconds before its start, and ready so many after it.
fn woken(from: &str, to: &str, source: WakeSource, before: i64, ready: Option<i64>) -> Launch {
    let plain = launch(from, Some(to));
    let ready_at = ready.map(|seconds| plain.launched_at + TimeDelta::seconds(seconds));
    let wanted_at = Some(plain.launched_at - TimeDelta::seconds(before));
    Launch { source: Some(source), wanted_at, ready_at, ..plain }
}

fn seen(id: &str) -> NodeSeen {
    NodeSeen {
        id: NodeId::new(id).unwrap(),
        name: None,
        pool: PoolName::new("voice").unwrap(),
        tags: BTreeMap::new(),
        state: NodeState::Stopped,
        launched_at: None,
        state_reason: None,
        transition_at: None,
        address: None,
        spot: false,
        instance_type: kind("g6.xlarge"),
        public_address: None,
    }
}

/// Nodes that are listed, without disks.
fn nodes(launches: Vec<Vec<Launch>>) -> Fleet {
    let node = |n: usize, launches| {
        let id = format!("i-{n}");
        (NodeId::new(&id).unwrap(), NodeCosts { seen: Some(seen(&id)), launches, disks: Vec::new() })
    };
    launches.into_iter().enumerate().map(|(n, launches)| node(n, launches)).collect()
}

fn gp3(created: &str) -> Disk {
    Disk { kind: "gp3".to_owned(), gib: 100, iops: 3000, mibps: 125, created_at: Some(at(created)) }
}

fn known(nodes: Fleet) -> Known {
    Known { pool: PoolName::new("voice").unwrap(), nodes, since: None, boots: Vec::new() }
}

fn told(known: &Known, zone: &str, now: &str) -> Past {
    let prices = Prices::new("us-east-1", BTreeMap::new());
    past(known, &terms(&prices, zone.parse().unwrap(), at(now)))
}

fn terms(prices: &Prices, zone: Tz, now: Instant) -> Terms<'_> {
    let from = NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
    Terms { from, zone, now, prices, controller_month: Usd::ZERO, window_hours: 16 }
}

fn of_utc(launches: Vec<Launch>, now: &str) -> Past {
    told(&known(nodes(vec![launches])), "UTC", now)
}

fn by_month<T>(past: &Past, figure: impl Fn(&Figures) -> T) -> Vec<(&str, T)> {
    past.months.iter().map(|month| (month.month.as_str(), figure(month))).collect()
}

#[test]
fn a_launch_over_midnight_is_split_between_its_months_and_starts_once() {
    let over = launch("2026-10-31 22:00", Some("2026-11-01 03:00"));
    let rows = [
        ("UTC", [("2026-10", (2.0, 1)), ("2026-11", (3.0, 0))]),
        ("Europe/Berlin", [("2026-10", (1.0, 1)), ("2026-11", (4.0, 0))]),
        // Still the evening before.
        ("America/New_York", [("2026-10", (5.0, 1)), ("2026-11", (0.0, 0))]),
    ];
    for (zone, expected) in rows {
        let past = told(&known(nodes(vec![vec![over.clone()]])), zone, "2026-11-10 00:00");
        assert_eq!(by_month(&past, |month| (month.node_hours, month.starts)), expected, "{zone}");
    }
}

#[test]
fn a_month_in_which_the_clocks_are_moved_is_an_hour_longer_or_shorter() {
    let past = told(&known(nodes(vec![vec![launch("2026-02-15 00:00", None)]])), "Europe/Berlin", "2026-11-15 00:00");
    let hours = by_month(&past, |month| (month.node_hours, month.plans[0].node_hours));
    for (month, days, moved) in [("2026-03", 31.0, -1.0), ("2026-04", 30.0, 0.0), ("2026-10", 31.0, 1.0)] {
        let expected = days * 24.0 + moved;
        assert!(hours.contains(&(month, (expected, expected))), "{month}: {hours:?}");
    }
}

#[test]
fn a_launch_that_runs_counts_up_to_now_and_is_judged_later() {
    let running = Launch { used: Some(false), ..launch("2026-11-30 08:00", None) };
    let past = of_utc(vec![running], "2026-11-30 09:30");
    assert_eq!(by_month(&past, |month| (month.node_hours, month.for_nothing)), [("2026-11", (1.5, 0))]);
    assert_eq!(past.months[0].share_of_always, Some(1.0), "there was nothing else since");
}

#[test]
fn an_end_that_nobody_saw_is_presumed_and_said() {
    // A newer launch of the same node; or the node is gone.
    let replaced = of_utc(
        vec![launch("2026-11-01 08:00", None), launch("2026-11-02 08:00", Some("2026-11-02 09:00"))],
        "2026-11-30 00:00",
    );
    assert_eq!(replaced.all.unwrap().node_seconds, 20 * 60 + 3600);
    let mut gone = nodes(vec![vec![launch("2026-11-01 08:00", None)]]);
    gone.values_mut().for_each(|node| node.seen = None);
    let past = told(&known(gone), "UTC", "2026-11-30 00:00");
    let all = past.all.as_ref().unwrap();
    assert_eq!((all.node_seconds, all.ends_presumed), (20 * 60, 1));
    assert!(past.not_known.iter().any(|gap| gap.contains("nodes that are gone")), "{:?}", past.not_known);
    assert!(table(&[past], Tz::UTC).contains("was not seen"));
}

#[test]
fn a_start_of_a_few_seconds_is_billed_for_a_minute() {
    let past = of_utc(vec![launch("2026-11-01 08:00", Some("2026-11-01 08:00:07"))], "2026-11-30 00:00");
    assert_eq!(past.all.unwrap().node_seconds, 60);
}

#[test]
fn nodes_that_run_at_once_are_counted_and_compared_with_as_many() {
    let rows = [("one after the other", "2026-11-01 10:00", 1), ("at once", "2026-11-01 09:59", 2)];
    for (name, second, at_once) in rows {
        let two = nodes(vec![
            vec![launch("2026-11-01 08:00", Some("2026-11-01 10:00"))],
            vec![launch(second, Some("2026-11-01 12:00"))],
        ]);
        let all = told(&known(two), "UTC", "2026-11-02 08:00").all.unwrap();
        assert_eq!(all.nodes_at_once, at_once, "{name}");
        let names: Vec<&str> = all.plans.iter().map(|plan| plan.name.as_str()).collect();
        let expected =
            if at_once == 2 { vec!["24/7", "24/7, 2 nodes", "window 16 h"] } else { vec!["24/7", "window 16 h"] };
        assert_eq!(names, expected, "{name}");
        assert_eq!((all.plans[0].node_hours, all.plans[0].cost_usd), (24.0, Some(19.3152)), "one node for a day");
    }
}

#[test]
fn another_type_is_paid_by_its_own_price_and_the_longest_is_compared_with() {
    let larger = Launch { instance_type: kind("g6.2xlarge"), ..launch("2026-11-01 10:00", Some("2026-11-01 11:00")) };
    let all =
        of_utc(vec![launch("2026-11-01 00:00", Some("2026-11-01 10:00")), larger], "2026-11-02 00:00").all.unwrap();
    assert_eq!(all.cost_parts.compute_usd, 8.048 + 0.9776);
    assert_eq!(all.plans[0].cost_usd, Some(19.3152));
}

#[test]
fn what_has_no_price_makes_no_sum() {
    let odd = Launch { instance_type: kind("x9.huge"), ..launch("2026-11-01 00:00", Some("2026-11-01 10:00")) };
    let past = of_utc(vec![odd.clone()], "2026-11-02 00:00");
    let all = past.all.as_ref().unwrap();
    assert_eq!((all.cost_usd, all.share_of_always, all.node_hours), (None, None, 10.0));
    assert_eq!(all.unpriced, ["instance type x9.huge"]);
    let text = table(&[past], Tz::UTC);
    assert!(text.contains("No price for instance type x9.huge: set REVEILLE_PRICES."), "{text}");
    let mut disk = nodes(vec![vec![launch("2026-11-01 00:00", Some("2026-11-01 10:00"))]]);
    disk.values_mut().for_each(|node| node.disks = vec![Disk { kind: "st1".to_owned(), ..gp3("2026-11-01 00:00") }]);
    let all = told(&known(disk), "UTC", "2026-11-02 00:00").all.unwrap();
    assert_eq!((all.cost_usd, all.plans[0].cost_usd), (None, None), "neither sum is told without the disk");
}

#[test]
fn disks_and_addresses_are_part_of_every_plan() {
    let rows = [
        (None, false, 0.0, 0.0),
        (Some(PublicAddress::Elastic), false, 24.0, 24.0),
        (Some(PublicAddress::Automatic), true, 6.0, 24.0),
    ];
    for (address, automatic, hours, always) in rows {
        let ran = Launch { automatic_address: automatic, ..launch("2026-11-01 00:00", Some("2026-11-01 06:00")) };
        let mut fleet = nodes(vec![vec![ran]]);
        for node in fleet.values_mut() {
            node.seen.as_mut().unwrap().public_address = address;
            node.disks = vec![gp3("2026-10-01 00:00")];
        }
        let all = told(&known(fleet), "UTC", "2026-11-02 00:00").all.unwrap();
        let close = |one: f64, other: f64| (one - other).abs() < 2e-6;
        let disk = 8.0 / 30.0;
        assert!(close(all.cost_usd.unwrap(), 6.0 * 0.8048 + disk + hours * 0.005), "{address:?} {all:?}");
        assert!(close(all.plans[0].cost_usd.unwrap(), 24.0 * 0.8048 + disk + always * 0.005), "{address:?} {all:?}");
    }
}

#[test]
fn waits_are_those_of_starts_that_somebody_waited_for() {
    let day = |n: i64, source, before, ready| {
        let (from, to) = (format!("2026-11-{n:02} 08:00"), format!("2026-11-{n:02} 09:00"));
        woken(&from, &to, source, before, ready)
    };
    let past = of_utc(
        vec![
            day(1, WakeSource::Call, 2, Some(50)),
            day(2, WakeSource::LogLine, 10, Some(60)),
            day(3, WakeSource::UnreadableBatch, 0, Some(300)),
            // Written by an earlier version; and a pre-warm, whose call comes later.
            day(4, WakeSource::Call, 2, None),
            day(5, WakeSource::Prewarm, 2, Some(900)),
        ],
        "2026-12-01 00:00",
    );
    let all = past.all.as_ref().unwrap();
    assert_eq!((all.starts, all.cold_starts, all.waits_known), (5, 4, 3));
    let waits = (all.wait_mean_seconds, all.wait_p50_seconds, all.wait_p95_seconds);
    assert_eq!(waits, (Some((52.0 + 70.0 + 300.0) / 3.0), Some(70), Some(300)));
    assert!(past.not_known[0].starts_with("the waits of 1 of 4 cold starts"), "{:?}", past.not_known);
    let none = of_utc(vec![launch("2026-11-01 08:00", Some("2026-11-01 09:00"))], "2026-12-01 00:00");
    assert_eq!(none.all.as_ref().unwrap().wait_mean_seconds, None);
    assert!(none.not_known.iter().any(|gap| gap.contains("counts launches, not calls")));
}

#[test]
fn what_woke_it_for_nothing_is_named_by_source_and_path() {
    let by = |from: &str, to: &str, source, path: Option<&str>, used| Launch {
        source,
        path: path.map(str::to_owned),
        used,
        ..launch(from, Some(to))
    };
    let line = Some(WakeSource::LogLine);
    let past = of_utc(
        vec![
            by("2026-11-01 08:00", "2026-11-01 08:40", line, Some("/docs"), Some(false)),
            by("2026-11-02 08:00", "2026-11-02 08:40", line, Some("/docs"), Some(false)),
            by("2026-11-03 08:00", "2026-11-03 08:30", line, Some("/v1/calls"), Some(true)),
            by("2026-11-04 08:00", "2026-11-04 08:30", line, Some("/v1/calls"), Some(false)),
            by("2026-11-05 08:00", "2026-11-05 08:30", Some(WakeSource::Prewarm), None, None),
            by("2026-11-06 08:00", "2026-11-06 08:06", None, None, Some(false)),
        ],
        "2026-12-01 00:00",
    );
    let all = past.all.as_ref().unwrap();
    let causes: Vec<_> =
        all.causes.iter().map(|one| (one.source, one.path.as_deref(), one.starts, one.for_nothing)).collect();
    let expected = [
        (Some("log_line"), Some("/docs"), 2, 2),
        (Some("log_line"), Some("/v1/calls"), 2, 1),
        (None, None, 1, 1),
        (Some("prewarm"), None, 1, 0),
    ];
    assert_eq!(causes, expected);
    assert_eq!((all.for_nothing, all.use_unknown), (4, 1));
    assert!((all.for_nothing_hours - 116.0 / 60.0).abs() < 1e-9);
    let text = table(&[past], Tz::UTC);
    assert!(text.contains("log_line for /docs") && text.contains("no wake: by hand"), "{text}");
}

#[test]
fn a_month_is_compared_from_when_launches_are_known() {
    let ran = || nodes(vec![vec![launch("2026-10-20 00:00", Some("2026-10-20 12:00"))]]);
    let from = |since: Option<&str>, born: Option<&str>| {
        let mut nodes = ran();
        nodes.values_mut().for_each(|node| node.disks = born.map(gp3).into_iter().collect());
        let past = told(&Known { since: since.map(at), ..known(nodes) }, "UTC", "2026-11-02 00:00");
        by_month(&past, |month| month.plans[0].node_hours).first().map(|(name, hours)| ((*name).to_owned(), *hours))
    };
    let row = |month: &str, days: f64| Some((month.to_owned(), days * 24.0));
    assert_eq!(from(None, None), row("2026-10", 12.0), "from its first launch");
    assert_eq!(from(Some("2026-10-15 00:00"), None), row("2026-10", 17.0), "a quiet beginning counts");
    assert_eq!(from(Some("2026-09-29 00:00"), None), row("2026-09", 2.0));
    assert_eq!(
        from(Some("2026-09-29 00:00"), Some("2026-10-16 00:00")),
        row("2026-10", 16.0),
        "a pool that came later"
    );
    assert_eq!(from(Some("2026-11-01 00:00"), None), row("2026-10", 12.0), "a launch that was known before");
}

#[test]
fn a_pool_without_a_launch_has_no_month_unless_its_books_are_open() {
    let past = of_utc(Vec::new(), "2026-11-02 00:00");
    assert_eq!((past.known_since, past.months.len(), past.all.is_none()), (None, 0, true));
    assert!(table(&[past], Tz::UTC).contains("no launch is known"));
    let open = Known { since: Some(at("2026-11-01 00:00")), ..known(nodes(vec![Vec::new()])) };
    let all = told(&open, "UTC", "2026-11-02 00:00").all.unwrap();
    assert_eq!((all.node_hours, all.starts, all.share_of_always), (0.0, 0, Some(0.0)), "it slept");
}

#[test]
fn the_controller_is_paid_for_the_time_that_counts() {
    let prices = Prices::new("us-east-1", BTreeMap::new());
    let month = Usd::from_micro(7_305_000);
    let terms = Terms { controller_month: month, ..terms(&prices, Tz::UTC, at("2026-11-02 01:00")) };
    let ran = known(nodes(vec![vec![launch("2026-11-02 00:00", Some("2026-11-02 00:10"))]]));
    assert_eq!(past(&ran, &terms).all.unwrap().cost_parts.controller_usd, 0.01, "an hour of 730.5");
}

#[test]
fn every_way_to_show_it_has_its_cells_and_its_width() {
    let long = Launch {
        source: Some(WakeSource::LogLine),
        path: Some("/a/path/that/is/longer/than/its/column/can/hold/at/all".to_owned()),
        ..launch("2026-10-03 08:00", Some("2026-11-29 08:30"))
    };
    let known = Known { boots: vec![44, 55, 60], ..known(nodes(vec![vec![long]])) };
    let pasts = [told(&known, "Asia/Seoul", "2026-11-30 00:00")];
    let text = table(&pasts, Tz::Asia__Seoul);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("Last boots: 3, median 55 s"), "{text}");
    let rows = csv(&pasts);
    let commas: Vec<usize> = rows.lines().map(|line| line.matches(',').count()).collect();
    assert_eq!(commas, [24; 3], "{rows}");
    let page = markdown(&pasts);
    assert!(page.lines().all(|line| line.matches('|').count() == 11) && page.lines().count() == 5, "{page}");
}

// Any launches.

const DAY: i64 = 86_400;

fn any_launch() -> impl Strategy<Value = Launch> {
    let length = prop_oneof![1 => 0_i64..120, 3 => 0..DAY, 1 => 0..60 * DAY];
    let source = select(vec![None, Some(WakeSource::Prewarm), Some(WakeSource::Call), Some(WakeSource::LogLine)]);
    let used = select(vec![None, Some(true), Some(false)]);
    (0..200 * DAY, length, any::<bool>(), source, used, select(vec!["g6.xlarge", "g5.xlarge", "x9.huge"])).prop_map(
        |(from, length, ended, source, used, word)| {
            let launched_at = at("2026-02-01 00:00") + TimeDelta::seconds(from);
            let end = launched_at + TimeDelta::seconds(length);
            let instance_type = kind(word);
            let ended_at = ended.then_some(end);
            Launch {
                launched_at,
                seen_at: end,
                ended_at,
                source,
                used,
                instance_type,
                ..launch("2026-02-01 00:00", None)
            }
        },
    )
}

fn any_zone() -> impl Strategy<Value = Tz> {
    select(vec![
        Tz::UTC,
        Tz::Europe__Berlin,
        Tz::America__Havana,
        Tz::Asia__Kolkata,
        Tz::Pacific__Apia,
        Tz::Africa__Cairo,
    ])
}

proptest! {
    #![proptest_config(Config { cases: 400, rng_seed: RngSeed::Fixed(20_261_130), failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_months_are_together_what_the_launches_are(
        all in vec(vec(any_launch(), 0..8), 1..4), zone in any_zone(), later in 0..90 * DAY,
    ) {
        let now = at("2026-06-01 00:00") + TimeDelta::seconds(later);
        let all: Vec<Vec<Launch>> = all.into_iter()
            .map(|node| node.into_iter().filter(|launch| launch.launched_at < now).collect())
            .collect();
        let prices = Prices::new("us-east-1", BTreeMap::new());
        let past = past(&known(nodes(all.clone())), &terms(&prices, zone, now));
        let (mut seconds, mut starts) = (0, 0);
        for launch in all.iter().flat_map(merged) {
            let end = launch.ended_at.unwrap_or(now).max(launch.launched_at + TimeDelta::minutes(1)).min(now);
            seconds += (end - launch.launched_at).num_seconds();
            starts += 1;
        }
        let sum = |figure: &dyn Fn(&Figures) -> i64| past.months.iter().map(figure).sum::<i64>();
        prop_assert_eq!(sum(&|month| month.node_seconds), seconds);
        prop_assert_eq!(sum(&|month| month.starts as i64), starts);
        let caused = |month: &Figures| month.causes.iter().map(|cause| cause.starts as i64).sum::<i64>();
        prop_assert_eq!(sum(&caused), starts);
        let vain = |month: &Figures| month.causes.iter().map(|cause| cause.for_nothing as i64).sum::<i64>();
        prop_assert_eq!(sum(&vain), sum(&|month| month.for_nothing as i64));
        if let Some(whole) = &past.all {
            prop_assert_eq!(whole.node_seconds, seconds);
            prop_assert!(past.months.windows(2).all(|pair| pair[0].to == pair[1].from), "no gap and no overlap");
            prop_assert_eq!(past.months.last().unwrap().to, now);
            let most = past.months.iter().map(|month| month.nodes_at_once).max();
            prop_assert_eq!(Some(whole.nodes_at_once), most);
            prop_assert!(whole.nodes_at_once <= all.len());
        }
    }
}
