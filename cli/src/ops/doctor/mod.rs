//! Finds what is wrong before it costs. Each check answers one question and finds nothing, something, or says why it could not
//! look; what was not checked is never taken for well.

mod clocks;
mod functions;
mod logs;
mod money;
mod nodes;
mod report;
mod settings;
mod signals;

use super::fault::Fault;
use super::look::Looker;
use super::session::{Connection, Reach, Session};
use super::{Said, show};
use indicatif::ProgressBar;
use report::Report;
use reveille::config::Config;
use reveille::domain::{NodeSeen, NodeState, PoolName, PoolRecord};
use reveille::error::CallError;
use reveille::run::IdleRun;
use serde::Serialize;
use std::collections::BTreeMap;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What.
    pub(crate) what: String,
    /// What it costs, in money or otherwise.
    pub(crate) costs: String,
    /// The line to change.
    pub(crate) change: String,
}

impl Finding {
    fn new(what: impl Into<String>, costs: impl Into<String>, change: impl Into<String>) -> Self {
        Self { what: what.into(), costs: costs.into(), change: change.into() }
    }
}

/// What became of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// Its name.
    pub(crate) check: &'static str,
    /// What it found.
    pub(crate) findings: Vec<Finding>,
    /// What it could not look at, and why.
    pub(crate) not_checked: Vec<String>,
    /// What nobody can tell yet, and why: no mistake, and not known to be well.
    pub(crate) undecided: Vec<String>,
}

impl Check {
    fn new(check: &'static str) -> Self {
        Self { check, findings: Vec::new(), not_checked: Vec::new(), undecided: Vec::new() }
    }

    fn of(check: &'static str, looked: Result<Vec<Finding>, CallError>) -> Self {
        match looked {
            Ok(findings) => Self { findings, ..Self::new(check) },
            Err(error) => Self::not(check, error),
        }
    }

    fn not(check: &'static str, why: impl Into<Fault>) -> Self {
        let mut not = Self::new(check);
        not.missed(why);
        not
    }

    /// One question of several that could not be asked; what the others found stands.
    fn missed(&mut self, why: impl Into<Fault>) {
        self.not_checked.push(why.into().to_string());
    }
}

/// What several checks look at.
pub(crate) struct Case<'a> {
    session: &'a Session,
    nodes: Vec<NodeSeen>,
    records: BTreeMap<PoolName, PoolRecord>,
}

impl Case<'_> {
    fn config(&self) -> &Config {
        &self.session.config
    }

    fn alive(&self) -> impl Iterator<Item = &NodeSeen> {
        self.nodes.iter().filter(|seen| seen.state != NodeState::Gone)
    }

    fn of_pool<'b>(&'b self, pool: &'b PoolName) -> impl Iterator<Item = &'b NodeSeen> {
        self.alive().filter(move |seen| seen.pool == *pool)
    }

    /// What a node costs while it runs.
    fn hour(&self, seen: &NodeSeen) -> String {
        let price = seen.instance_type.as_ref().and_then(|kind| self.config().prices.hour(kind));
        let price = price.map_or_else(|| "an unknown amount".to_owned(), |usd| format!("${}", usd.plain()));
        format!("{price} an hour")
    }

    fn full_name(&self, function: &str) -> String {
        self.session.functions.full_name(function)
    }
}

fn called(seen: &NodeSeen) -> String {
    seen.name.as_ref().map_or_else(|| seen.id.to_string(), |name| format!("{name} ({})", seen.id))
}

/// Beside the settings, which every command reads.
const CHECKS: u64 = 18;

/// # Errors
/// There is no deployment to look at: no region, no credentials, no function of that name.
pub(crate) async fn show(reach: &Reach) -> Result<Said, Fault> {
    let connection = Connection::open(reach).await?;
    let variables = connection.variables().await?;
    let config = match Config::from_vars(&variables) {
        Ok(config) => config,
        Err(faults) => return Ok(Report::new(vec![settings::faults(&faults)]).said(reach)),
    };
    let session = Session::with(connection, reach, config).await?;
    let bar = show::bar("{spinner} [{bar:20}] {pos} of {len} checks, {eta} left: {msg}", CHECKS);
    let checks = look(&session, &bar).await;
    bar.finish_and_clear();
    Ok(Report::new(checks).said(reach))
}

async fn look(session: &Session, bar: &ProgressBar) -> Vec<Check> {
    let mut looker = Looker::new(&session.aws);
    bar.set_message("nodes and ledger");
    looker.drive(&mut IdleRun::new(session.context())).await;
    let case = Case { session, nodes: looker.nodes().to_vec(), records: looker.records() };
    let mut checks = vec![Check::new("settings")];
    // What stands on a look that failed is not checked.
    let lost = looker.lost();
    let mut add = |check: Check| {
        bar.set_message(check.check);
        bar.inc(1);
        checks.push(check);
    };
    add(settings::calls(&case));
    add(functions::schedules(&case).await);
    add(functions::heartbeat(&case).await);
    add(functions::rights(&case).await);
    add(functions::refusals(&case).await);
    add(money::subscribers(&case).await);
    let read = logs::read(&case).await;
    add(logs::matches(&case, &read));
    add(logs::formats(&read));
    add(nodes::tags(&case).await);
    match lost {
        Some(error) => {
            let of_nodes = ["metrics", "counted requests", "shared nodes", "stop protection", "spot", "prices"];
            let names = of_nodes.into_iter().chain(["cost tag", "beats", "clocks"]);
            names.into_iter().for_each(|name| add(Check::not(name, error.clone())));
        }
        None => {
            let (metrics, missing) = signals::metrics(&case).await;
            add(metrics);
            add(signals::counted(&case, &mut looker, &missing).await);
            add(nodes::shared(&case).await);
            add(nodes::stop_protection(&case).await);
            add(nodes::spot(&case).await);
            add(money::prices(&case, &mut looker).await);
            add(money::cost_tag(&case, &mut looker).await);
            let read = clocks::read(&case).await;
            add(clocks::beats(&case, &read));
            add(clocks::clocks(&case, read));
        }
    }
    checks
}
