//! What would each plan have cost on a trace, and whom would it have kept waiting?

use chrono::{DateTime, NaiveDate, NaiveTime};
use chrono_tz::Tz;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reveille::domain::{DaySpec, Disk, InstanceType, Usd, WarmWindow, WindowSpec};
use reveille::prices::Prices;
use reveille_plan::answers::CallPrices;
use reveille_plan::costs::{Address, Fleet};
use reveille_plan::plans::Setup;
use reveille_plan::replay::events::Announced;
use reveille_plan::report::{csv, markdown, table};
use reveille_plan::run::{Comparison, Request, RunFault};
use reveille_plan::trace::Reading;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Events of all plans together from which on a bar is worth its flicker: about a second.
const LONG: u64 = 2_000_000;
/// What a trace from a pipe is called.
const PIPED: &str = "standard input";

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The trace: a CSV `t[,duration]` or `bin,requests`, or an access log; plain or gzip; or - for standard input
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Keeps each call with the same chance, so that about so many a day are left
    #[arg(long, value_name = "CALLS", value_parser = positive)]
    thin: Option<f64>,
    /// Seed of all that is drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How the figures are shown
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Writes a page too: the front of cost against wait, one day, the hours of the week, settings to copy
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The plan that the page looks at; without it the cheapest in which at most a fifth of the calls are cold
    #[arg(long, value_name = "NAME", requires = "html")]
    plan: Option<String>,
    /// The day that the page looks at, such as 2026-11-30; without it the busiest of the last four weeks
    #[arg(long, requires = "html")]
    day: Option<NaiveDate>,

    /// From START to ready
    #[arg(long, default_value_t = 55, value_parser = clap::value_parser!(i64).range(1..=1800), help_heading = "Node")]
    boot_seconds: i64,
    /// From STOP to stopped
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(i64).range(0..=1800), help_heading = "Node")]
    stop_seconds: i64,
    /// How long a caller waits before giving up
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(i64).range(1..=7200), help_heading = "Node")]
    patience_seconds: i64,
    /// Nodes of the pool
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Node")]
    nodes: u8,
    /// Calls that one node can take; without it there is no limit but the ledger's 100
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Node")]
    calls_per_node: Option<u32>,
    /// The chance that a START meets no capacity
    #[arg(long, default_value_t = 0.0, value_parser = share, help_heading = "Node")]
    start_failure: f64,

    /// Idle times
    #[arg(long, value_delimiter = ',', default_value = "10,30,60", value_parser = clap::value_parser!(i64).range(0..=1440), help_heading = "Plans")]
    idle_minutes: Vec<i64>,
    /// How often the idle check runs
    #[arg(long, value_delimiter = ',', default_value = "5", value_parser = clap::value_parser!(i64).range(1..=60), help_heading = "Plans")]
    tick_minutes: Vec<i64>,
    /// How long a pre-warm that leads to no call keeps a node
    #[arg(long, value_delimiter = ',', default_value = "30,10", value_parser = clap::value_parser!(i64).range(0..=1440), help_heading = "Plans")]
    prewarm_minutes: Vec<i64>,
    /// Hours of the daily window, the best ones learnt on the past
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=23), help_heading = "Plans")]
    window_hours: u32,
    /// A warm window, such as "mon-fri 07:00-23:00"; may be given several times
    #[arg(long = "window", value_name = "WINDOW", help_heading = "Plans")]
    windows: Vec<String>,
    /// Compares every idle time with every expiry of a pre-warm and every tick
    #[arg(long, help_heading = "Plans")]
    grid: bool,

    /// The share of the calls that an entry to the app announces
    #[arg(long, default_value_t = 0.95, value_parser = share, help_heading = "Entries")]
    announced: f64,
    /// Half of the entries come at least so long before their call
    #[arg(long, default_value_t = 45.0, value_parser = positive, help_heading = "Entries")]
    lead_seconds: f64,
    /// The spread of the lead: the standard deviation of its logarithm
    #[arg(long, default_value_t = 0.6, value_parser = number, help_heading = "Entries")]
    lead_sigma: f64,
    /// The share of the entries that lead to no call
    #[arg(long, default_value_t = 0.5, value_parser = below_one, help_heading = "Entries")]
    entries_without_call: f64,

    /// How long a call lasts where the trace does not say
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(i64).range(1..=86_400), help_heading = "Trace")]
    call_seconds: i64,
    /// How long a bin of counts lasts
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=86_400), help_heading = "Trace")]
    bin_seconds: Option<i64>,
    /// Rows of one user (a CSV's column `user`) that follow each other within so many minutes are one call
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=1440), help_heading = "Trace")]
    session_minutes: Option<i64>,
    /// Only rows with this value in this column of a CSV
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = pair, help_heading = "Trace")]
    only: Option<(String, String)>,
    /// The day, or the instant, from which the times of a CSV count, where that is not 1970
    #[arg(long, value_parser = start, help_heading = "Trace")]
    start: Option<i64>,
    /// The zone of days, weeks and windows
    #[arg(long, default_value = "UTC", help_heading = "Trace")]
    zone: Tz,
    /// A prefix of the paths of a log that are calls; may be given several times
    #[arg(long = "path", default_value = "/", help_heading = "Trace")]
    paths: Vec<String>,
    /// Statuses of a log that are calls, such as 200-299; may be given several times
    #[arg(long = "status", help_heading = "Trace")]
    statuses: Vec<String>,
    /// The format of a log: auto, combined, common, alb, json, apigateway or caddy
    #[arg(long, help_heading = "Trace")]
    log_format: Option<String>,
    /// Name of a field of JSON lines; may be given several times
    #[arg(long = "field", value_name = "KEY=NAME", value_parser = pair, help_heading = "Trace")]
    fields: Vec<(String, String)>,

    /// Region of the price table
    #[arg(long, default_value = "us-east-1", help_heading = "Money")]
    region: String,
    /// Instance type of the nodes
    #[arg(long, default_value = "g6.xlarge", value_parser = |text: &str| InstanceType::new(text), help_heading = "Money")]
    instance_type: InstanceType,
    /// Size of each node's gp3 volume
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=65_536), help_heading = "Money")]
    disk_gib: i64,
    /// Operations a second of it
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(i64).range(3000..=80_000), help_heading = "Money")]
    disk_iops: i64,
    /// MiB a second of it
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(i64).range(125..=2000), help_heading = "Money")]
    disk_mibps: i64,
    /// Public IPv4 address of each node
    #[arg(long, value_enum, default_value_t = AddressArg::None, help_heading = "Money")]
    address: AddressArg,
    /// What the controller costs a month, with its alarms and dashboard; 0.60 where it is lean
    #[arg(long, default_value = "4.10", value_parser = Usd::parse, help_heading = "Money")]
    controller_usd: Usd,
    /// A price of your own, such as g6.xlarge=0.55; may be given several times
    #[arg(long = "price", value_name = "ITEM=USD", value_parser = price, help_heading = "Money")]
    prices: Vec<(String, Usd)>,
    /// What a call costs beside its node
    #[arg(long, value_parser = Usd::parse, help_heading = "Money")]
    price_per_call: Option<Usd>,
    /// What a day may cost in all; read as calls
    #[arg(long, value_parser = Usd::parse, requires = "price_per_call", help_heading = "Money")]
    daily_budget: Option<Usd>,
    /// Turns of a call: the budget is read as turns too
    #[arg(long, requires = "daily_budget", help_heading = "Money")]
    turns_per_call: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a terminal, 80 columns wide
    Table,
    /// One object with trace, assumptions and plans
    Json,
    /// Every figure of every plan
    Csv,
    /// A table for a page or a message
    Md,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AddressArg {
    /// None
    None,
    /// Given back while the node is stopped
    Automatic,
    /// Billed for all hours
    Elastic,
}

/// Compares and prints.
///
/// # Errors
/// What is wrong with the trace, the prices or a window, in one sentence.
pub(crate) fn show(mut args: PlanArgs) -> Result<(), String> {
    let piped = if args.trace == Path::new("-") { Some(spooled()?) } else { None };
    let Some(file) = &piped else { return compare(&args, None) };
    args.trace = file.path().to_owned();
    // Whoever piped it knows nothing of that file.
    compare(&args, Some(PIPED)).map_err(|fault| fault.replace(&*args.trace.to_string_lossy(), PIPED))
}

/// A trace is read twice, and a pipe can be read only once.
fn spooled() -> Result<NamedTempFile, String> {
    let fault = |error: std::io::Error| format!("cannot keep {PIPED} in {}: {error}", std::env::temp_dir().display());
    let mut file = NamedTempFile::new().map_err(fault)?;
    std::io::copy(&mut std::io::stdin().lock(), file.as_file_mut()).map_err(fault)?;
    Ok(file)
}

fn compare(args: &PlanArgs, name: Option<&str>) -> Result<(), String> {
    let request = request(args)?;
    let comparison = Comparison::open(request).map_err(|fault| chain(&fault))?;
    let bar = progress(&comparison);
    let report = comparison.run(&mut |events| bar.inc(events)).map_err(|fault| chain(&fault));
    bar.finish_and_clear();
    let mut report = report?;
    if let Some(name) = name {
        report.trace.file = name.to_owned();
    }
    if let Some(file) = &args.html {
        let place = comparison.place(&report, args.plan.as_deref()).map_err(|fault| chain(&fault))?;
        let page = comparison.page(&report, place, args.day).map_err(|fault| chain(&fault))?;
        std::fs::write(file, page).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    let text = match args.format {
        Format::Table => table(&report),
        Format::Json => serde_json::to_string_pretty(&report).map_err(|error| error.to_string())? + "\n",
        Format::Csv => csv(&report),
        Format::Md => markdown(&report),
    };
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever read enough has closed the pipe.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.to_string()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A bar for a replay that takes long; it hides itself where nobody looks at a terminal.
fn progress(comparison: &Comparison) -> ProgressBar {
    let steps = comparison.events();
    let bar = ProgressBar::new(steps);
    if steps.saturating_mul(comparison.plans().len() as u64) < LONG {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} % of the trace, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// With what caused it.
fn chain(fault: &RunFault) -> String {
    let causes = std::iter::successors(std::error::Error::source(fault), |cause| cause.source());
    std::iter::once(fault.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}

fn request(args: &PlanArgs) -> Result<Request, String> {
    let windows = args.windows.iter().map(|text| Ok((text.clone(), window(text, args.zone)?)));
    let setup = Setup {
        boot: args.boot_seconds,
        stop: args.stop_seconds,
        patience: args.patience_seconds,
        ticks: args.tick_minutes.clone(),
        idles: args.idle_minutes.clone(),
        prewarms: args.prewarm_minutes.clone(),
        nodes: usize::from(args.nodes),
        calls_per_node: args.calls_per_node,
        refusal: args.start_failure,
        window_hours: args.window_hours,
        windows: windows.collect::<Result<_, String>>()?,
        zone: args.zone,
        seed: args.seed,
        grid: args.grid,
    };
    let reading = Reading {
        call_seconds: args.call_seconds,
        bin_seconds: args.bin_seconds,
        session_pause: args.session_minutes.map(|minutes| minutes * 60),
        only: args.only.clone(),
        start: args.start.unwrap_or(0),
        paths: args.paths.clone(),
        statuses: args.statuses.clone(),
        format: args.log_format.clone(),
        fields: args.fields.iter().cloned().collect(),
        zone: args.zone,
    };
    let address = match args.address {
        AddressArg::None => Address::None,
        AddressArg::Automatic => Address::Automatic,
        AddressArg::Elastic => Address::Elastic,
    };
    let (gib, iops, mibps) = (args.disk_gib, args.disk_iops, args.disk_mibps);
    Ok(Request {
        trace: args.trace.clone(),
        reading,
        thin: args.thin,
        seed: args.seed,
        setup,
        announced: Announced {
            share: args.announced,
            lead_seconds: args.lead_seconds,
            lead_sigma: args.lead_sigma,
            without_call: args.entries_without_call,
        },
        fleet: Fleet {
            kind: args.instance_type.clone(),
            nodes: usize::from(args.nodes),
            disk: Disk { kind: "gp3".to_owned(), gib, iops, mibps, created_at: None },
            address,
            controller: args.controller_usd,
        },
        prices: Prices::new(&args.region, args.prices.iter().cloned().collect()),
        calls: CallPrices { call: args.price_per_call, daily_budget: args.daily_budget, turns: args.turns_per_call },
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    })
}

/// Such as `mon-fri 07:00-23:00`, `07:00-23:00` or `mon-fri 07:00-23:00 Asia/Seoul`.
fn window(text: &str, zone: Tz) -> Result<WarmWindow, String> {
    let wrong = || {
        format!("--window {text:?}: write such as \"mon-fri 07:00-23:00\", with a zone behind it where it has its own")
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let place = words.iter().position(|word| word.contains(':')).ok_or_else(wrong)?;
    let (from, to) = words[place].split_once('-').ok_or_else(wrong)?;
    let days: Vec<DaySpec> = words[..place].iter().map(|days| DaySpec::Names((*days).to_owned())).collect();
    let own = match &words[place + 1..] {
        [] => None,
        [zone] => Some((*zone).to_owned()),
        _ => return Err(wrong()),
    };
    let spec = WindowSpec {
        days: (!days.is_empty()).then_some(days),
        from: from.to_owned(),
        to: to.to_owned(),
        nodes: 1,
        zone: own,
    };
    WarmWindow::new(spec, zone).map_err(|fault| format!("--window {text:?}: {fault}"))
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(format!("{text} is not from 0 on")) }
}

fn positive(text: &str) -> Result<f64, String> {
    number(text).and_then(|number| if number > 0.0 { Ok(number) } else { Err("has to be above 0".to_owned()) })
}

fn share(text: &str) -> Result<f64, String> {
    number(text).and_then(|share| if share <= 1.0 { Ok(share) } else { Err(format!("{text} is not from 0 to 1")) })
}

fn below_one(text: &str) -> Result<f64, String> {
    share(text).and_then(|share| if share <= 0.99 { Ok(share) } else { Err(format!("{text} is over 0.99")) })
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("has to be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn price(text: &str) -> Result<(String, Usd), String> {
    let (item, usd) = pair(text)?;
    let usd = Usd::parse(&usd).map_err(|fault| fault.to_string())?;
    if usd > Usd::ZERO { Ok((item, usd)) } else { Err("a price is above 0".to_owned()) }
}

fn start(text: &str) -> Result<i64, String> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").map(|day| day.and_time(NaiveTime::MIN).and_utc());
    let at = day.or_else(|_| DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()));
    at.map(|at| at.timestamp()).map_err(|_| format!("{text:?} is no day such as 2026-11-30, nor an instant"))
}
