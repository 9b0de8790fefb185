//! The figures of docs/planner.md come from the traces in the project, and those of earlier work are met within the noise of the
//! sampling. `UPDATE=1` (or `make plan-figures`) writes the tables again.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use reveille::domain::{Disk, InstanceType, Usd};
use reveille::prices::Prices;
use reveille_plan::answers::{Answer, CallPrices};
use reveille_plan::costs::{Address, Fleet};
use reveille_plan::plans::Setup;
use reveille_plan::replay::events::Announced;
use reveille_plan::run::{Comparison, Request};
use reveille_plan::trace::Reading;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const PAGE: &str = "docs/planner.md";
/// Each figure is the mean of so many draws.
const SEEDS: u64 = 3;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A trace as it is read.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    file: &'static str,
    reading: fn() -> Reading,
}

fn counts(bin_seconds: i64, client: Option<&str>) -> Reading {
    let only = client.map(|client| ("client".to_owned(), client.to_owned()));
    Reading { bin_seconds: Some(bin_seconds), only, ..Reading::default() }
}

fn sessions() -> Reading {
    Reading { session_pause: Some(3600), ..Reading::default() }
}

const NASA: Workload =
    Workload { name: "NASA", file: "plan/data/nasa1995_minute_counts.csv.gz", reading: || counts(60, None) };
const NAB: Workload = Workload {
    name: "NAB load balancer",
    file: "tests/data/nab_elb_5min_counts.csv.gz",
    reading: || counts(300, None),
};
const DSTACK: Workload =
    Workload { name: "team dstack", file: "plan/data/team_dstack_commits.csv.gz", reading: sessions };
const SVIX: Workload = Workload { name: "team svix", file: "plan/data/team_svix_commits.csv.gz", reading: sessions };
const DEVPOD: Workload =
    Workload { name: "team devpod", file: "plan/data/team_devpod_commits.csv.gz", reading: sessions };
const SABLIER: Workload =
    Workload { name: "team sablier", file: "plan/data/team_sablier_commits.csv.gz", reading: sessions };
const SERVEGEN_1: Workload = Workload {
    name: "ServeGen client 1",
    file: "plan/data/servegen_sparse_clients_10min.csv.gz",
    reading: || counts(600, Some("1")),
};
const SERVEGEN_3: Workload = Workload { name: "ServeGen client 3", reading: || counts(600, Some("3")), ..SERVEGEN_1 };

/// What is asked of a workload.
#[derive(Debug, Clone)]
struct Asked {
    workload: Workload,
    thin: Option<f64>,
    setup: Setup,
    announced: Announced,
}

fn asked(workload: Workload, thin: Option<f64>) -> Asked {
    let setup = Setup { idles: vec![5, 10, 30, 60], prewarms: vec![30, 10], ..Setup::default() };
    Asked { workload, thin, setup, announced: Announced::default() }
}

/// The mean figures of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Mean {
    hours: f64,
    cost: f64,
    cold: f64,
    waited: f64,
    wait: f64,
    unserved: f64,
    starts: f64,
    per_call: f64,
    a_day: f64,
}

type Means = BTreeMap<String, Mean>;

fn means(asked: &Asked) -> Means {
    let mut means = Means::new();
    let draws = if asked.thin.is_some() { SEEDS } else { 1 };
    for seed in 0..draws {
        let request = Request {
            trace: root().join(asked.workload.file),
            reading: (asked.workload.reading)(),
            thin: asked.thin,
            seed,
            setup: Setup { seed, ..asked.setup.clone() },
            announced: asked.announced,
            fleet: Fleet {
                kind: InstanceType::new("g6.xlarge").unwrap(),
                nodes: asked.setup.nodes,
                disk: Disk { kind: "gp3".to_owned(), gib: 100, iops: 4000, mibps: 250, created_at: None },
                address: Address::None,
                controller: Usd::parse("4.10").unwrap(),
            },
            prices: Prices::new("us-east-1", BTreeMap::new()),
            calls: CallPrices::default(),
            threads: 2,
        };
        let report = Comparison::open(request).unwrap().run(&mut |_| {}).unwrap();
        for plan in &report.plans {
            means.entry(plan.name.clone()).or_default().add(plan, report.trace.calls_per_day, draws);
        }
    }
    means
}

impl Mean {
    fn add(&mut self, plan: &Answer, a_day: f64, draws: u64) {
        let part = |figure: f64| figure / draws as f64;
        self.hours += part(plan.node_hours_month);
        self.cost += part(plan.cost_month_usd);
        self.cold += part(plan.cold_share);
        self.waited += part(plan.waited_share);
        self.wait += part(plan.wait_mean_seconds);
        self.unserved += part(plan.unserved_share);
        self.starts += part(plan.starts_per_day);
        self.per_call += part(plan.cost_per_call_usd);
        self.a_day += part(a_day);
    }
}

const DAY_24: &str = "24/7";
const IDLE_30: &str = "on-demand idle 30";
const WINDOW: &str = "window 16 h";
const ENTRY_30: &str = "on-demand idle 30, pre-warm 30";
const ENTRY_10: &str = "on-demand idle 10, pre-warm 10";
const AT_ONCE: &str = "at once, pre-warm 3, tick 1";
const FORESEEN: &str = "clairvoyant with pre-warm";

const RATES: [f64; 5] = [5.0, 10.0, 20.0, 50.0, 200.0];

/// Every workload at the rates that it can be thinned to.
fn all() -> &'static Vec<(Workload, Option<f64>, Means)> {
    static ALL: OnceLock<Vec<(Workload, Option<f64>, Means)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let thinned = [(NASA, &RATES[..]), (NAB, &RATES), (SERVEGEN_1, &RATES[2..]), (SERVEGEN_3, &RATES[2..])];
        let thinned =
            thinned.into_iter().flat_map(|(workload, rates)| rates.iter().map(move |rate| (workload, Some(*rate))));
        let whole = [DSTACK, SVIX, DEVPOD].map(|workload| (workload, None));
        let of = |(workload, thin): (Workload, Option<f64>)| (workload, thin, means(&asked(workload, thin)));
        thinned.chain(whole).map(of).collect()
    })
}

fn of(workload: Workload, rate: Option<f64>) -> &'static Means {
    let found = all().iter().find(|(other, thin, _)| other.name == workload.name && *thin == rate);
    &found.unwrap_or_else(|| panic!("{} at {rate:?} is replayed", workload.name)).2
}

/// Hours a month and percent of cold calls, as an earlier prototype found them with three draws.
struct Reference {
    workload: Workload,
    rate: Option<f64>,
    idle: [(f64, f64); 4],
    window: (f64, f64),
    foreseen: f64,
}

#[rustfmt::skip]
const REFERENCES: [Reference; 5] = [
    Reference { workload: NASA, rate: Some(5.0), idle: [(32.0, 93.0), (43.0, 91.0), (86.0, 84.0), (144.0, 74.0)], window: (487.0, 18.0), foreseen: 15.0 },
    Reference { workload: NASA, rate: Some(20.0), idle: [(119.0, 78.0), (156.0, 72.0), (278.0, 51.0), (402.0, 33.0)], window: (487.0, 17.0), foreseen: 58.0 },
    Reference { workload: NASA, rate: Some(50.0), idle: [(246.0, 56.0), (310.0, 47.0), (475.0, 23.0), (588.0, 10.0)], window: (487.0, 18.0), foreseen: 131.0 },
    Reference { workload: NAB, rate: Some(20.0), idle: [(116.0, 81.0), (154.0, 75.0), (281.0, 55.0), (413.0, 36.0)], window: (487.0, 22.0), foreseen: 56.0 },
    Reference { workload: DSTACK, rate: None, idle: [(48.0, 84.0), (57.0, 82.0), (89.0, 74.0), (132.0, 64.0)], window: (487.0, 7.0), foreseen: 35.0 },
];

/// 62 days at 5 calls a day are 310 calls: their number alone varies by 6 %, and a share of them by 2 to 3 points, in each of
/// two sets of three draws; calls come in bursts, which makes that more.
fn is_near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= (wanted * 0.08).max(2.0)
}

#[test]
fn earlier_figures_are_met_within_the_noise_of_the_sampling() {
    for Reference { workload, rate, idle, window, foreseen } in REFERENCES {
        let found = of(workload, rate);
        let name = format!("{} at {rate:?}", workload.name);
        for (minutes, (hours, cold)) in [5, 10, 30, 60].into_iter().zip(idle) {
            let mean = found[&format!("on-demand idle {minutes}")];
            assert!(is_near(mean.hours, hours), "{name}, idle {minutes}: {:.1} h, {hours} wanted", mean.hours);
            let percent = mean.cold * 100.0;
            assert!((percent - cold).abs() <= 5.0, "{name}, idle {minutes}: {percent:.1} % cold, {cold} wanted");
        }
        // The best hours are learnt on the past here, and were chosen in hindsight there.
        let by_the_clock = found[WINDOW];
        assert!(is_near(by_the_clock.hours, window.0), "{name}: {:.1} h by the clock", by_the_clock.hours);
        assert!((by_the_clock.cold * 100.0 - window.1).abs() <= 8.0, "{name}: {:.3} outside", by_the_clock.cold);
        assert!(is_near(found[FORESEEN].hours, foreseen), "{name}: {:.1} h foreseen", found[FORESEEN].hours);
    }
}

/// Cost against idle 30, of compute alone, by rate: an entry that holds 30 minutes; one that expires after 5 under idle 10; stop
/// at once with one that expires after 3.
#[test]
fn what_an_entry_costs_is_met_too() {
    for (rate, held, expired, at_once) in [(5.0, 1.71, 0.74, 0.31), (20.0, 1.44, 0.79, 0.37), (50.0, 1.24, 0.87, 0.50)]
    {
        let mut of = asked(NASA, Some(rate));
        of.setup = Setup { boot: 44, idles: vec![10, 30], prewarms: vec![30, 5], ..of.setup };
        let found = means(&of);
        let ratio = |name: &str| found[name].hours / found[IDLE_30].hours;
        for (name, wanted) in [(ENTRY_30, held), ("on-demand idle 10, pre-warm 5", expired), (AT_ONCE, at_once)] {
            assert!(
                (ratio(name) - wanted).abs() <= 0.12 * wanted,
                "{rate} a day, {name}: {:.2}, {wanted} wanted",
                ratio(name)
            );
        }
        let waits = found[ENTRY_30].wait / found[IDLE_30].wait;
        assert!((0.05..=0.25).contains(&waits), "{rate} a day: mean wait {waits:.2} of idle 30");
    }
}

#[test]
fn a_fifth_of_24_7_by_a_time_out_alone_is_a_matter_of_few_calls() {
    for workload in [NASA, NAB] {
        let share = |rate| of(workload, Some(rate))[IDLE_30].hours / of(workload, Some(rate))[DAY_24].hours;
        assert!(share(5.0) < 0.2 && share(20.0) > 0.25 && share(50.0) > 0.35, "{}", workload.name);
        assert!(of(workload, Some(10.0))[IDLE_30].cold > 0.38, "{}: and most wait", workload.name);
    }
}

/// The goal of entries, at 30 calls a day or fewer: half of the ratios of cost are at most the first; then, everywhere, cost, cold
/// calls and mean wait against idle 30 without entries, and cost against the bound with them. Cost is node hours.
const HALF: f64 = 0.40;
const GOAL: [f64; 4] = [0.55, 0.20, 0.65, 2.0];
/// As a team measured it, and after its change of the disk.
const BOOTS: [i64; 2] = [55, 44];

type OfBoot = (i64, Workload, Option<f64>, Means);

/// Every trace of the project, whole or thinned, with 30 calls a day or fewer, by boot.
fn few() -> &'static [OfBoot] {
    static FEW: OnceLock<Vec<OfBoot>> = OnceLock::new();
    FEW.get_or_init(|| {
        let thinned = [NASA, NAB, SERVEGEN_1, SERVEGEN_3];
        let thinned =
            thinned.into_iter().flat_map(|workload| RATES[..3].iter().map(move |rate| (workload, Some(*rate))));
        let whole = [DSTACK, SVIX, DEVPOD, SABLIER].map(|workload| (workload, None));
        let of = |boot: i64, (workload, thin): (Workload, Option<f64>)| {
            let mut of = asked(workload, thin);
            of.setup = Setup { boot, idles: vec![10, 30], ..of.setup };
            (boot, workload, thin, means(&of))
        };
        let all: Vec<_> = thinned.chain(whole).collect();
        BOOTS.into_iter().flat_map(|boot| all.iter().map(move |one| of(boot, *one)).collect::<Vec<_>>()).collect()
    })
}

/// In the order of the goal.
fn ratios(means: &Means, name: &str) -> [f64; 4] {
    let (plan, base, bound) = (means[name], means[IDLE_30], means[FORESEEN]);
    [plan.hours / base.hours, plan.cold / base.cold, plan.wait / base.wait, plan.hours / bound.hours]
}

fn median_cost(boot: i64, name: &str) -> f64 {
    let of_boot = few().iter().filter(|(of, ..)| *of == boot);
    let mut costs: Vec<f64> = of_boot.map(|(.., means)| ratios(means, name)[0]).collect();
    costs.sort_by(f64::total_cmp);
    costs[(costs.len() - 1) / 2].midpoint(costs[costs.len() / 2])
}

#[test]
fn what_the_goal_asks_of_entries_is_met_by_no_rule_of_today_and_by_one_reading() {
    for boot in BOOTS {
        assert!(median_cost(boot, AT_ONCE) <= HALF, "boot {boot}: {}", median_cost(boot, AT_ONCE));
        for name in [ENTRY_30, ENTRY_10] {
            assert!(median_cost(boot, name) > GOAL[0], "boot {boot}, {name}: {}", median_cost(boot, name));
        }
    }
    let missed = few().iter().flat_map(|(boot, workload, rate, means)| {
        let parts = ["cost", "cold", "mean wait", "bound"].into_iter().zip(ratios(means, AT_ONCE)).zip(GOAL);
        let missed = parts.filter(|((_, found), most)| found > most);
        missed.map(move |((part, _), _)| (*boot, workload.name, *rate, part))
    });
    // Half of the leads are shorter than that boot, and its bursts leave idle 30 hardly a wait.
    assert_eq!(missed.collect::<Vec<_>>(), [(55, SERVEGEN_3.name, Some(20.0), "mean wait")]);
}

#[expect(clippy::disallowed_methods, reason = "a switch of this test, not of the product")]
fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// What stands between the marks of this name is what the code says.
fn held_to(page: &str, name: &str, wanted: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (begin, end) =
        (format!("<!-- {name}: generated, see make plan-figures -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{page} has the mark {begin}"));
    let (found, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{page} has the mark {end}"));
    if is_update() {
        fs::write(&path, format!("{before}{begin}{wanted}{end}{after}")).unwrap();
    } else {
        assert!(found == wanted, "{page} does not say what the code says: run `make plan-figures`\n{wanted}");
    }
}

#[test]
fn the_tables_of_the_page_are_the_code_s_own() {
    held_to(PAGE, "figures", &figures());
    held_to(PAGE, "claims", &claims());
    held_to(PAGE, "entries", &entries());
    held_to(PAGE, "goal", &goal());
    held_to(PAGE, "leads", &leads());
    held_to(PAGE, "calls on a node", &calls_on_a_node());
}

#[test]
fn the_table_of_the_readme_is_the_code_s_own() {
    held_to("README.md", "plans", &plans_in_short());
}

/// What a team that has to choose wants to know first, at 20 calls a day.
fn plans_in_short() -> String {
    let mut table = "\n| plan, 20 calls a day | node hours a month | calls that wait for a whole boot | mean wait |\n|---|---|---|---|\n".to_owned();
    let rows = [
        (DAY_24, "24/7"),
        (WINDOW, "16 hours by the clock"),
        (IDLE_30, "on demand, 30 idle minutes"),
        (ENTRY_30, "the same, woken at the app's entry"),
        (ENTRY_10, "10 idle minutes, woken at entry"),
        (FORESEEN, "nothing better is possible"),
    ];
    let of = [of(NASA, Some(20.0)), of(NAB, Some(20.0))];
    for (name, words) in rows {
        let both = |of_plan: fn(&Mean) -> String| of.each_ref().map(|means| of_plan(&means[name])).join(" / ");
        let (hours, cold) =
            (both(|plan| format!("{:.0}", plan.hours)), both(|plan| format!("{:.0} %", plan.cold * 100.0)));
        let wait = both(|plan| format!("{:.0} s", plan.wait));
        writeln!(table, "| {words} | {hours} | {cold} | {wait} |").unwrap();
    }
    table + "\n"
}

fn rate(rate: Option<f64>, means: &Means) -> String {
    rate.map_or_else(|| format!("{:.1} (all)", means[DAY_24].a_day), |rate| format!("{rate:.0}"))
}

fn figures() -> String {
    let mut table = "\nHours a month / share of cold calls, boot 55 s:\n\n\
        | trace | calls a day | idle 5 | 10 | 30 (today) | 60 | 16 h by the clock | idle 10, entry expires after 10 | at once, entry expires after 3 | clairvoyant with pre-warm |\n\
        |---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let shown = |thin: &Option<f64>| thin.is_none_or(|rate| [5.0, 20.0, 50.0].contains(&rate));
    for (workload, thin, means) in all().iter().filter(|(_, thin, _)| shown(thin)) {
        write!(table, "| {} | {} ", workload.name, rate(*thin, means)).unwrap();
        let idle = ["on-demand idle 5", "on-demand idle 10", IDLE_30, "on-demand idle 60"];
        for name in idle.into_iter().chain([WINDOW, ENTRY_10, AT_ONCE, FORESEEN]) {
            write!(table, "| {:.0} / {:.0} % ", means[name].hours, means[name].cold * 100.0).unwrap();
        }
        table.push_str("|\n");
    }
    table + "\n"
}

fn claims() -> String {
    let mut table = "\nNode hours against 24/7 and share of cold calls, by a time-out of 30 minutes alone and with pre-warms:\n\n\
        | trace | calls a day | idle 30 alone | entry holds 30 | idle 10, entry expires after 10 | at once, entry expires after 3 |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    for (workload, thin, means) in all() {
        write!(table, "| {} | {} ", workload.name, rate(*thin, means)).unwrap();
        for name in [IDLE_30, ENTRY_30, ENTRY_10, AT_ONCE] {
            let share = means[name].hours / means[DAY_24].hours;
            write!(table, "| {share:.2}, {:.0} % cold ", means[name].cold * 100.0).unwrap();
        }
        table.push_str("|\n");
    }
    table + "\n"
}

fn entries() -> String {
    let mut table = "\nAgainst idle 30 without entries, boot 44 s, NASA:\n\n\
        | plan | calls a day | node hours | cold | mean wait | starts a day |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for rate in [5.0, 20.0, 50.0, 200.0] {
        let mut of = asked(NASA, Some(rate));
        of.setup = Setup { boot: 44, idles: vec![10, 30], prewarms: vec![30, 10], ..of.setup };
        let means = means(&of);
        let base = means[IDLE_30];
        for (name, words) in [
            (ENTRY_30, "idle 30, entry holds 30 minutes"),
            (ENTRY_10, "idle 10, unused entry expires after 10"),
            (AT_ONCE, "at once, unused entry expires after 3, 1-minute checks"),
        ] {
            let plan = means[name];
            let (hours, cold, wait) = (plan.hours / base.hours, plan.cold / base.cold, plan.wait / base.wait);
            writeln!(table, "| {words} | {rate:.0} | {hours:.2} | {cold:.2} | {wait:.2} | {:.1} |", plan.starts)
                .unwrap();
        }
    }
    table + "\n"
}

fn goal() -> String {
    let both = |of: fn(i64) -> String| BOOTS.map(of).join(" / ");
    let [cost, cold, wait, bound] = GOAL;
    let mut table = format!(
        "\nStop at once, an unused entry expires after 3 minutes, 1-minute checks, against idle 30 without entries; boot {} s:\n\n\
        | trace | calls a day | node hours | cold | mean wait | node hours against the bound with entries |\n|---|---|---|---|---|---|\n\
        | to be met everywhere | up to 30 | {cost:.2} | {cold:.2} | {wait:.2} | {bound:.2} |\n",
        both(|boot| boot.to_string())
    );
    let of_boot = |boot: i64| few().iter().filter(move |(of, ..)| *of == boot);
    for ((_, workload, thin, means), (.., faster)) in of_boot(BOOTS[0]).zip(of_boot(BOOTS[1])) {
        let shown =
            |found: f64, most: f64| if found <= most { format!("{found:.2}") } else { format!("**{found:.2}**") };
        let cells = ratios(means, AT_ONCE).into_iter().zip(ratios(faster, AT_ONCE)).zip(GOAL);
        let cells = cells.map(|((one, other), most)| format!("{} / {}", shown(one, most), shown(other, most)));
        writeln!(table, "| {} | {} | {} |", workload.name, rate(*thin, means), cells.collect::<Vec<_>>().join(" | "))
            .unwrap();
    }
    let rows =
        [(AT_ONCE, "this plan"), (ENTRY_10, "idle 10, entry expires after 10"), (ENTRY_30, "idle 30, entry holds 30")];
    let medians = rows.map(|(name, words)| {
        let of_each = BOOTS.map(|boot| format!("{:.2}", median_cost(boot, name))).join(" / ");
        format!("{of_each} for {words}")
    });
    table + &format!("\nMedian of the node hours, {HALF:.2} to be met: {}.\n\n", medians.join(", "))
}

fn leads() -> String {
    let mut table = "\nIdle 30 with an entry that holds 30 minutes, NASA at 20 a day, boot 55 s, each entry exactly so long ahead:\n\n\
        | lead | wait at all | cold | mean wait | against no entries: cold, mean wait |\n|---|---|---|---|---|\n"
        .to_owned();
    let base = of(NASA, Some(20.0))[IDLE_30];
    for lead in [2.0, 15.0, 30.0, 45.0, 60.0] {
        let mut of = asked(NASA, Some(20.0));
        of.setup = Setup { idles: vec![30], prewarms: vec![30], ..of.setup };
        // No entries that lead nowhere: they would warm the node for calls of others.
        of.announced = Announced { share: 1.0, lead_seconds: lead, lead_sigma: 0.0, without_call: 0.0 };
        let plan = means(&of)[ENTRY_30];
        let (cold, wait) = (plan.cold / base.cold, plan.wait / base.wait);
        let (waited, percent) = (plan.waited * 100.0, plan.cold * 100.0);
        writeln!(table, "| {lead:.0} s | {waited:.0} % | {percent:.0} % | {:.1} s | {cold:.2}, {wait:.2} |", plan.wait)
            .unwrap();
    }
    table + "\n"
}

fn calls_on_a_node() -> String {
    let mut table = "\nFour nodes with idle 30, NASA, by how many calls a node can take:\n\n\
        | calls a day | calls on a node | node hours a month | cost of a call | cold | never connected |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for rate in [50.0, 200.0, 1000.0] {
        for calls in [1, 4] {
            let mut of = asked(NASA, Some(rate));
            of.setup = Setup { nodes: 4, calls_per_node: Some(calls), idles: vec![30], prewarms: vec![], ..of.setup };
            let plan = means(&of)[IDLE_30];
            let (cold, lost) = (plan.cold * 100.0, plan.unserved * 100.0);
            writeln!(
                table,
                "| {rate:.0} | {calls} | {:.0} | ${:.3} | {cold:.0} % | {lost:.1} % |",
                plan.hours, plan.per_call
            )
            .unwrap();
        }
    }
    table + "\n"
}
