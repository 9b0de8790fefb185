//! Laws of money and time: what is counted depends on what ran, never on when or how often somebody looked. Fixed seeds: a
//! failure is the same failure tomorrow.

mod support;
mod support_money;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed};
use reveille::domain::{Disk, Instant, Launch, PublicAddress, Usd, running_seconds};
use reveille::prices::Prices;
use reveille::run::{BudgetRun, Call, IdleRun, UptimeRun, WakeRun};
use reveille::spend::{Fleet, NodeCosts, Spend, forecast, spend};
use reveille::world::World;
use std::collections::BTreeMap;
use support::*;
use support_money::*;

fn laws(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(20_261_130), failure_persistence: None, ..Config::default() }
}

fn listed() -> Prices {
    Prices::new("us-east-1", BTreeMap::new())
}

// Any fleet.

const DAY: i64 = 86_400;

/// An instant of the last three days, or a few hours before the month.
fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![
        4 => (0..3 * DAY).prop_map(|second| on("2026-11-01 00:00") + seconds(second)),
        1 => (-DAY..0).prop_map(|second| on("2026-11-01 00:00") + seconds(second)),
    ]
}

fn kind() -> impl Strategy<Value = Option<&'static str>> {
    select(vec![Some("g6.xlarge"), Some("g6.2xlarge"), Some("g5.xlarge"), Some("x9.huge"), None])
}

/// Ended or open, seen to its end or not; of any length, a few seconds too.
fn any_launch() -> impl Strategy<Value = Launch> {
    let length = prop_oneof![1 => 0_i64..120, 3 => 0..DAY];
    (instant(), length, any::<bool>(), 0_i64..DAY, kind()).prop_map(|(from, length, ended, seen, kind)| Launch {
        launched_at: from,
        instance_type: kind.map(instance_type),
        seen_at: from + seconds(seen.min(length)),
        ended_at: ended.then_some(from + seconds(length)),
        used: Some(false),
        wanted_at: None,
        path: None,
        ready_at: None,
        automatic_address: false,
        presumed: false,
        source: None,
    })
}

fn any_disk() -> impl Strategy<Value = Disk> {
    (select(vec!["gp3", "gp3", "io2"]), 1_i64..500, 100_i64..6000, 100_i64..400, option::of(instant()))
        .prop_map(|(kind, gib, iops, mibps, created_at)| Disk { kind: kind.to_owned(), gib, iops, mibps, created_at })
}

fn any_node() -> impl Strategy<Value = NodeCosts> {
    let address = select(vec![None, Some(PublicAddress::Elastic), Some(PublicAddress::Automatic)]);
    (vec(any_launch(), 0..6), vec(any_disk(), 0..3), address).prop_map(|(launches, disks, address)| {
        let mut seen = off_since("i-a", "g6.xlarge", on("2026-11-01 00:00"), on("2026-11-01 01:00"));
        seen.public_address = address;
        NodeCosts { seen: Some(seen), launches, disks }
    })
}

fn any_fleet() -> impl Strategy<Value = Fleet> {
    vec(any_node(), 1..4).prop_map(|nodes| (0..).map(|n: i32| id(&format!("i-{n}"))).zip(nodes).collect())
}

/// Three instants in their order, and one at which it is looked at, after all of them.
fn cuts() -> impl Strategy<Value = (Instant, Instant, Instant, Instant)> {
    (instant(), instant(), instant(), 0_i64..DAY).prop_map(|(a, b, c, later)| {
        let mut all = [a, b, c];
        all.sort();
        let [a, b, c] = all;
        (a, b, c, c + seconds(later))
    })
}

/// Each of two amounts is rounded once, so that a cut moves a sum by a millionth an item at most.
fn nearly(one: Usd, other: Usd, items: usize) -> bool {
    (one.micro() - other.micro()).abs() <= i64::try_from(items).expect("few items")
}

proptest! {
    #![proptest_config(laws(400))]

    #[test]
    fn seconds_do_not_depend_on_where_a_span_is_cut(fleet in any_fleet(), (a, b, c, now) in cuts()) {
        let of = |from, to| spend(&fleet, from, to, now, &listed());
        prop_assert_eq!(of(a, c).seconds, of(a, b).seconds + of(b, c).seconds);
        for node in fleet.values() {
            let ran = |from, to| running_seconds(&node.launches, from, to, now);
            prop_assert_eq!(ran(a, c), ran(a, b) + ran(b, c));
        }
    }

    #[test]
    fn money_does_not_depend_on_where_a_span_is_cut(fleet in any_fleet(), (a, b, c, now) in cuts()) {
        let of = |from, to| spend(&fleet, from, to, now, &listed());
        let (whole, left, right) = (of(a, c), of(a, b), of(b, c));
        let disks: usize = fleet.values().map(|node| node.disks.len()).sum();
        // Four types, and each disk in two months.
        prop_assert!(nearly(whole.compute, left.compute + right.compute, 4), "{whole:?} {left:?} {right:?}");
        prop_assert!(nearly(whole.disk, left.disk + right.disk, 3 * disks), "{whole:?} {left:?} {right:?}");
        prop_assert!(nearly(whole.address, left.address + right.address, 2 * fleet.len()), "{whole:?}");
    }

    #[test]
    fn an_empty_span_costs_nothing(fleet in any_fleet(), at in instant()) {
        let none = spend(&fleet, at, at, at, &listed());
        prop_assert_eq!((none.total(), none.seconds), (Usd::ZERO, 0));
    }

    #[test]
    fn what_is_spent_never_falls(fleet in any_fleet(), (_, _, now, later) in cuts()) {
        let month = on("2026-11-01 00:00");
        prop_assume!(now >= month);
        let of = |now| spend(&fleet, month, now, now, &listed());
        prop_assert!(of(later).total() >= of(now).total());
        prop_assert!(of(later).seconds >= of(now).seconds);
    }

    #[test]
    fn a_forecast_is_not_below_what_is_spent(fleet in any_fleet(), (_, _, now, _) in cuts()) {
        let month = on("2026-11-01 00:00");
        prop_assume!(now >= month);
        if let Some(forecast) = forecast(&fleet, None, now, &listed()) {
            prop_assert!(forecast >= spend(&fleet, month, now, now, &listed()).total());
        }
    }

    #[test]
    fn the_order_of_launches_and_their_double_records_change_nothing(
        node in any_node(), (a, _, c, now) in cuts(), order in any::<prop::sample::Index>(),
    ) {
        let mut launches = node.launches.clone();
        launches.dedup_by_key(|launch| launch.launched_at);
        let sorted = |mut launches: Vec<Launch>| {
            launches.sort_by_key(|launch| launch.launched_at);
            launches.dedup_by_key(|launch| launch.launched_at);
            launches
        };
        let once = NodeCosts { launches: sorted(launches), ..node };
        let mut twice = once.clone();
        twice.launches.extend(once.launches.clone());
        if !twice.launches.is_empty() {
            let by = order.index(twice.launches.len());
            twice.launches.rotate_left(by);
        }
        let of = |node: NodeCosts| spend(&Fleet::from([(id("i-a"), node)]), a, c, now, &listed());
        prop_assert_eq!(of(once), of(twice));
    }

    #[test]
    fn a_node_never_runs_for_longer_than_there_is_time(node in any_node(), (a, _, c, now) in cuts()) {
        let ran = running_seconds(&node.launches, a, c, now);
        prop_assert!((0..=(c - a).num_seconds()).contains(&ran), "{ran}");
    }

    #[test]
    fn a_fleet_costs_what_its_nodes_cost(fleet in any_fleet(), (a, _, c, now) in cuts()) {
        let whole = spend(&fleet, a, c, now, &listed());
        let one = |(id, node): (&reveille::domain::NodeId, &NodeCosts)| {
            spend(&Fleet::from([(id.clone(), node.clone())]), a, c, now, &listed())
        };
        let parts: Vec<Spend> = fleet.iter().map(one).collect();
        let sum: Usd = parts.iter().map(Spend::total).sum();
        prop_assert!(nearly(whole.total(), sum, 4 * fleet.len()), "{whole:?} {parts:?}");
        prop_assert_eq!(whole.seconds, parts.iter().map(|part| part.seconds).sum::<i64>());
    }

    #[test]
    fn an_amount_is_read_back_as_it_was_written(micro in prop_oneof![0..=i64::MAX, 0_i64..10_000_000]) {
        let amount = Usd::from_micro(micro);
        prop_assert_eq!(Usd::parse(&amount.plain()), Ok(amount), "{}", amount.plain());
    }

    #[test]
    fn an_amount_is_read_digit_by_digit(whole in 0_i64..1_000_000_000, part in 0_i64..1_000_000, zeros in 0_usize..3) {
        let text = format!("{whole}.{part:06}{}", "0".repeat(zeros));
        prop_assert_eq!(Usd::parse(&text).map(Usd::micro), Ok(whole * 1_000_000 + part), "{}", text);
    }

    #[test]
    fn no_text_makes_the_reader_of_amounts_fail(text in "[-+0-9.eE ,_]{0,24}") {
        if let Ok(amount) = Usd::parse(&text) {
            prop_assert!(amount >= Usd::ZERO);
            prop_assert_eq!(Usd::parse(&amount.plain()), Ok(amount));
        }
    }

    #[test]
    fn a_part_of_a_price_is_within_half_a_millionth(price in 0_i64..100_000_000, units in 0_i64..3_000_000, per in 1_i64..10_000) {
        let part = Usd::from_micro(price).times(units, per);
        let off = i128::from(part.micro()) * i128::from(per) - i128::from(price) * i128::from(units);
        prop_assert!(2 * off.abs() <= i128::from(per), "{part:?}");
    }
}

// A day in the world, looked at in two ways.

/// What happens to one node: on and off in turn, in seconds; no pause is shorter than the longest time between two looks.
#[derive(Debug, Clone)]
struct Life {
    spans: Vec<(i64, i64, &'static str)>,
}

const LONGEST_GAP: i64 = 15 * 60;

fn any_life() -> impl Strategy<Value = Life> {
    let pause = LONGEST_GAP + 60..3 * 3600;
    let length = prop_oneof![1 => 30_i64..90, 2 => 90_i64..3600, 1 => 3600_i64..6 * 3600];
    vec((pause, length, select(vec!["g6.xlarge", "g6.2xlarge", "g5.xlarge"])), 1..8).prop_map(|spans| Life { spans })
}

/// A look: when, counted from the one before, and by which run.
type Looks = Vec<(i64, Look)>;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Look {
    Idle,
    Uptime,
    StateChange,
    Budget,
}

fn any_looks(most: i64) -> impl Strategy<Value = Looks> {
    let run = select(vec![Look::Idle, Look::Uptime, Look::StateChange]);
    let budget = prop_oneof![6 => Just(None), 1 => Just(Some(Look::Budget))];
    vec((most / 3..=most, run, budget), 100).prop_map(|looks| {
        // The guard only reads: it comes beside another look, not instead of one.
        looks
            .into_iter()
            .flat_map(|(gap, run, guard)| [Some((gap, run)), guard.map(|guard| (0, guard))])
            .flatten()
            .collect()
    })
}

/// Two nodes over a day, driven by people; open calls keep the idle check from having a say.
struct Theatre {
    world: World,
    /// Start, stop and type of each node in the order of time.
    plays: Vec<(Instant, &'static str, &'static str, &'static str)>,
    copies: usize,
}

const NODES: [&str; 2] = ["i-a", "i-b"];

fn theatre(lives: &[Life], copies: usize) -> Theatre {
    let mut world = fleet("00:00", NODES.map(node));
    let mut plays = Vec::new();
    for (name, life) in NODES.into_iter().zip(lives) {
        open_call(&mut world, name, "00:00", "30:00");
        let mut now = midnight();
        for (pause, length, kind) in &life.spans {
            let (from, to) = (now + seconds(*pause), now + seconds(pause + length));
            plays.extend([(from, "start", name, *kind), (to, "stop", name, *kind)]);
            now = to;
        }
    }
    plays.sort();
    plays.retain(|(at, ..)| *at < midnight() + hours(23));
    Theatre { world, plays, copies }
}

impl Theatre {
    /// Lets people do what they do until this instant.
    fn play_until(&mut self, now: Instant) {
        let due = self.plays.iter().take_while(|(at, ..)| *at <= now).count();
        for (at, what, name, kind) in self.plays.drain(..due).collect::<Vec<_>>() {
            self.world.set_now(at);
            if what == "start" {
                self.world.answer(&Call::Resize { node: id(name), to: instance_type(kind) });
                self.world.start(&id(name)).expect("a start by hand");
            } else {
                self.world.stop(&id(name), false).expect("a stop by hand");
            }
        }
        self.world.set_now(now);
    }

    fn look(&mut self, look: Look) {
        for _ in 0..self.copies {
            let ctx = context(&self.world);
            match look {
                Look::Idle => self.world.drive(&mut IdleRun::new(ctx)),
                Look::Uptime => self.world.drive(&mut UptimeRun::new(ctx)),
                Look::StateChange => self.world.drive(&mut WakeRun::new(ctx, reveille::run::Cause::StateChange)),
                Look::Budget => self.world.drive(&mut BudgetRun::new(ctx, budget("100000"))),
            };
        }
    }

    /// Goes through the day with these looks; the last is at its end.
    fn go(mut self, looks: &Looks) -> World {
        let mut now = midnight();
        for (gap, look) in looks {
            now += seconds(*gap);
            if now >= midnight() + hours(23) {
                break;
            }
            self.play_until(now);
            self.look(*look);
        }
        while now < midnight() + hours(23) {
            now = (now + seconds(LONGEST_GAP)).min(midnight() + hours(23));
            self.play_until(now);
            self.look(Look::Idle);
        }
        self.world
    }
}

/// What the world knows to be true: seconds billed of each type since midnight, from its accepted starts and stops.
fn truth(lives: &[Life]) -> (Usd, i64) {
    let end = midnight() + hours(23);
    let mut by_kind: BTreeMap<&str, i64> = BTreeMap::new();
    for life in lives {
        let mut now = midnight();
        for (pause, length, kind) in &life.spans {
            let from = now + seconds(*pause);
            now = from + seconds(*length);
            let billed = (now.max(from + seconds(60)).min(end) - from).num_seconds().max(0);
            *by_kind.entry(*kind).or_default() += billed;
        }
    }
    let cost = |(kind, seconds): (&&str, &i64)| listed().of(kind).expect("a price").times(*seconds, 3600);
    (by_kind.iter().map(cost).sum(), by_kind.values().sum())
}

/// What the guard estimates for 30 November alone.
fn estimated(world: &mut World) -> (Usd, i64) {
    let now = world.now();
    let ledger = world.record(&voice()).clone();
    let mut fleet = Fleet::new();
    for (id, launch) in world.history().get(&voice()).into_iter().flatten() {
        fleet.entry(id.clone()).or_default().launches.push(launch.clone());
    }
    for (id, node) in ledger.nodes {
        fleet.entry(id).or_default().launches.extend(node.launch);
    }
    let spent = spend(&fleet, midnight(), now, now, &listed());
    (spent.total(), spent.seconds)
}

/// What the guard itself says of the whole month.
fn guard_says(world: &mut World) -> Usd {
    let ctx = context(world);
    estimate(&world.drive(&mut BudgetRun::new(ctx, budget("100000"))))
}

/// The nodes of the builders ran for three hours of the day before; what a first look knows of that is written down too.
fn before_the_day(world: &World) -> Usd {
    let known = world.history().get(&voice()).into_iter().flatten();
    let old = known.filter(|(_, launch)| launch.launched_at < midnight());
    let seconds = old.map(|(_, launch)| (launch.ended_at.expect("an end") - launch.launched_at).num_seconds()).sum();
    listed().of("g6.xlarge").expect("a price").times(seconds, 3600)
}

fn lives() -> impl Strategy<Value = Vec<Life>> {
    vec(any_life(), 2)
}

proptest! {
    #![proptest_config(laws(16))]

    #[test]
    fn the_estimate_is_the_truth_however_finely_the_day_is_looked_at(
        lives in lives(), fine in any_looks(240), coarse in any_looks(LONGEST_GAP),
    ) {
        let (mut fine, mut coarse) = (theatre(&lives, 1).go(&fine), theatre(&lives, 1).go(&coarse));
        prop_assert_eq!(estimated(&mut fine), truth(&lives), "looked at every few minutes");
        prop_assert_eq!(estimated(&mut coarse), truth(&lives), "looked at every quarter of an hour");
    }

    #[test]
    fn the_guard_says_what_the_ledger_and_the_truth_say(lives in lives(), looks in any_looks(LONGEST_GAP)) {
        let mut world = theatre(&lives, 1).go(&looks);
        let said = guard_says(&mut world);
        let expected = truth(&lives).0 + before_the_day(&world);
        // The hours of the day before are rounded together with those of the day.
        prop_assert!(nearly(said, expected, 1), "{said:?} {expected:?}");
    }

    #[test]
    fn runs_that_are_delivered_twice_change_nothing(lives in lives(), looks in any_looks(LONGEST_GAP)) {
        let (mut once, mut thrice) = (theatre(&lives, 1).go(&looks), theatre(&lives, 3).go(&looks));
        prop_assert_eq!(estimated(&mut once), estimated(&mut thrice));
        prop_assert_eq!(once.history(), thrice.history());
        let keys = |world: &World| world.published.iter().map(|alert| alert.key.clone()).collect::<Vec<_>>();
        prop_assert_eq!(keys(&once), keys(&thrice));
        prop_assert_eq!(once.record(&voice()).nodes.clone(), thrice.record(&voice()).nodes.clone());
    }

    #[test]
    fn what_the_guard_says_never_falls_within_a_month(lives in lives(), looks in any_looks(LONGEST_GAP)) {
        let mut theatre = theatre(&lives, 1);
        let (mut now, mut last) = (midnight(), Usd::ZERO);
        // The first look writes down the day before.
        theatre.look(Look::Idle);
        for (gap, look) in looks.iter().take(60) {
            now += seconds(*gap);
            theatre.play_until(now);
            let before = guard_says(&mut theatre.world);
            theatre.look(*look);
            let after = guard_says(&mut theatre.world);
            prop_assert!(before >= last && after >= before, "{last:?} {before:?} {after:?} at {now}");
            last = after;
        }
    }
}

#[test]
fn the_days_are_not_empty() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::new(laws(1));
    let drawn: Vec<Vec<Life>> = (0..20).map(|_| lives().new_tree(&mut runner).expect("lives").current()).collect();
    let launches: usize = drawn.iter().flatten().map(|life| life.spans.len()).sum();
    let short = drawn.iter().flatten().flat_map(|life| &life.spans).filter(|(_, length, _)| *length < 60).count();
    assert!(launches > 100 && short > 5, "{launches} launches, {short} of them billed for more than they ran");
}
