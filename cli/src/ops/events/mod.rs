//! Every decision with its reason, from the functions' logs, and every launch, from the ledger.

mod parse;
mod rows;

use super::aws::{self, Part};
use super::fault::{Fault, is_missing};
use super::look::Looker;
use super::session::{Reach, Session};
use super::{FUNCTIONS, show};
use chrono::TimeDelta;
use parse::Event;
use reveille::domain::{Instant, NodeId, NodeSeen, PoolName};
use reveille::run::{Answer, Call};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The two kinds of lines that are read; a pattern leaves the rest where it is.
const PATTERN: &str = "?decided ?effect";

/// Of one log: a page has up to 10,000 lines, so this is more than a month of ticks.
const MOST_PAGES: usize = 400;

/// So long the ledger keeps a launch.
const KEPT: TimeDelta = TimeDelta::days(400);

/// What is asked.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) since: TimeDelta,
    pub(crate) node: Option<String>,
    pub(crate) pool: Option<String>,
    /// Each decision in a line of its own.
    pub(crate) each: bool,
}

/// # Errors
/// There is no log of this deployment, or none may be read.
pub(crate) async fn show(reach: &Reach, asked: Asked) -> Result<String, Fault> {
    if asked.since <= TimeDelta::zero() || asked.since > KEPT {
        return Err(Fault::Usage("--since has to be a time such as 12h or 3d, 400 days at most".to_owned()));
    }
    let session = Session::open(reach).await?;
    let pool = asked.pool.as_deref().map(|pool| session.pool(Some(pool))).transpose()?;
    let from = session.now - asked.since;
    let (mut events, mut unread) = of_logs(&session, from).await?;
    let (nodes, launches) = of_ledger(&session, from, &mut unread).await;
    events.extend(launches);
    if let Some(word) = &asked.node {
        let ids = meant(word, &nodes)?;
        events.retain(|event| event.node.as_ref().is_some_and(|node| ids.contains(node)));
    }
    events.retain(|event| pool.is_none() || event.pool == pool);
    events.sort_by_key(|event| (event.at, event.rank()));
    let zone = session.config.policy.zone;
    if reach.json {
        let value = json!({ "from": from, "to": session.now, "zone": zone.name(), "events": events, "unread": unread });
        return Ok(show::json(&value));
    }
    let names = nodes.into_iter().filter_map(|seen| Some((seen.id, seen.name?))).collect();
    Ok(rows::write(&events, &names, asked.each, (from, session.now), zone, &unread))
}

/// The ids that a word may mean; a node that is gone is known by its id.
fn meant(word: &str, nodes: &[NodeSeen]) -> Result<BTreeSet<NodeId>, Fault> {
    let mut ids: BTreeSet<NodeId> =
        nodes.iter().filter(|seen| seen.is_called(word)).map(|seen| seen.id.clone()).collect();
    ids.extend(NodeId::new(word).ok().filter(|id| id.as_str().starts_with("i-")));
    if ids.is_empty() {
        return Err(Fault::Usage(format!("no node is called {:?}", super::fault::line(word))));
    }
    Ok(ids)
}

async fn of_logs(session: &Session, from: Instant) -> Result<(Vec<Event>, Vec<String>), Fault> {
    let whole = u64::try_from(FUNCTIONS.len()).unwrap_or(1) * 1000;
    let bar = show::bar("reading the functions' logs [{bar:30}] {percent} %, {eta} left", whole);
    let (mut events, mut unread, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (n, function) in (0_u64..).zip(FUNCTIONS) {
        let group = format!("/aws/lambda/{}", session.functions.full_name(function));
        let part = Part { group: &group, pattern: Some(PATTERN), from, to: session.now, most_pages: MOST_PAGES };
        match aws::read_log(&session.sdk, part, |behind| bar.set_position(n * 1000 + behind)).await {
            Ok(lines) => {
                events.extend(lines.lines.iter().filter_map(|(_, line)| parse::line(line)));
                if !lines.complete {
                    let last = lines.lines.last().map(|(at, _)| at.to_rfc3339()).unwrap_or_default();
                    unread.push(format!("{group} has more after {last}: ask for less, such as --since 6h"));
                }
            }
            Err(error) => failed.push(error),
        }
        bar.set_position((n + 1) * 1000);
    }
    bar.finish_and_clear();
    if failed.len() == FUNCTIONS.len() {
        let (name, region) = (session.functions.full_name("*"), &session.region);
        let none = format!("no log group /aws/lambda/{name} in {region}: give --region or --name");
        let of_all = failed.iter().find(|error| !is_missing(error)).cloned();
        return Err(of_all.map_or(Fault::Usage(none), Fault::from));
    }
    unread.extend(failed.into_iter().map(|error| Fault::from(error).to_string()));
    Ok((events, unread))
}

/// The nodes, for their names, and the launches that reach into this time.
async fn of_ledger(session: &Session, from: Instant, unread: &mut Vec<String>) -> (Vec<NodeSeen>, Vec<Event>) {
    let pools: BTreeSet<PoolName> = session.config.pools.keys().cloned().collect();
    let calls = [
        Call::DescribeNodes { pools: None },
        Call::ReadLedger { pools: pools.clone() },
        Call::ReadHistory { pools, from },
    ];
    let mut looker = Looker::new(&session.aws);
    let answers = looker.answer_all(&calls).await;
    unread.extend(looker.failures().into_iter().map(|error| Fault::from(error).to_string()));
    let mut launches = BTreeMap::new();
    for answer in answers {
        if let Answer::History(Ok(history)) = answer {
            for (pool, ended) in history {
                launches.extend(
                    ended.into_iter().map(|(node, launch)| ((node, launch.launched_at), (pool.clone(), launch))),
                );
            }
        }
    }
    for (pool, record) in looker.records() {
        for (node, known) in record.nodes {
            if let Some(launch) = known.launch {
                launches.entry((node, launch.launched_at)).or_insert((pool.clone(), launch));
            }
        }
    }
    let events = launches.into_iter().flat_map(|((node, _), (pool, launch))| parse::launch(&pool, &node, &launch));
    let events = events.filter(|event| event.at >= from && event.at <= session.now).collect();
    (looker.nodes().to_vec(), events)
}
