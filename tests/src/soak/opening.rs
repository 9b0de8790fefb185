//! A day made fit for the local AWS, and the stage set for it.

use super::Local;
use super::trouble::Trouble;
use crate::runtime_api::LocalServer;
use crate::stage::{Stage, StageResult, TABLE};
use aws_config::SdkConfig;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use chrono::TimeDelta;
use reveille::aws::{Aws, BeatWriter};
use reveille::domain::NodeId;
use reveille_soak::day::{Day, What};
use reveille_soak::setup::Setup;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The nodes have slept for so long when the day begins.
const BEFORE: TimeDelta = TimeDelta::days(3);

/// The stream of every log group.
pub(super) const STREAM: &str = "node-1";

/// What the functions' clock shows, in milliseconds.
pub(super) type ClockFace = Arc<AtomicI64>;

/// The same day within its first hours: later calls do not come, all else comes closer together.
pub fn shortened(day: &Day, hours: i64) -> Day {
    let mut short = day.clone();
    let whole = day.setup.hours.max(1);
    short.setup.hours = hours.min(whole);
    for one in &mut short.happenings {
        if !matches!(one.what, What::Call { .. }) {
            one.at = one.at * short.setup.hours / whole;
        }
    }
    short.happenings.retain(|one| one.at < short.setup.hours * 3600);
    short.happenings.sort_by_key(|one| one.at);
    short
}

/// The day with the ids that EC2 has given to its nodes.
fn renamed(day: &Day, ids: &BTreeMap<String, NodeId>) -> StageResult<Day> {
    let mut text = serde_json::to_string(day)?;
    for (drawn, given) in ids {
        text = text.replace(&json!(drawn).to_string(), &json!(given).to_string());
    }
    Ok(serde_json::from_str(&text)?)
}

impl Local {
    /// Sets the stage for a day, and gives the day with the nodes that EC2 made for it.
    ///
    /// # Errors
    /// The local AWS does not start or refuses, or a function is not built.
    pub fn open(day: &Day) -> StageResult<(Day, Self)> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let face = ClockFace::default();
        let (day, stage, front) = runtime.block_on(set(day, &face))?;
        let aws = Aws::with(&stage.sdk, &stage.config());
        let beats = BeatWriter::new(&stage.sdk, TABLE);
        let mut local = Self {
            aws,
            writer: beats,
            stage: Arc::new(stage),
            _front: front,
            face,
            seed: day.seed,
            now: day.setup.start,
            shown: day.setup.start,
            server: day.setup.start,
            off: TimeDelta::zero(),
            slow: 0,
            nodes: Vec::new(),
            records: None,
            out: Vec::new(),
            happened: VecDeque::new(),
            trouble: Trouble::default(),
            points: Vec::new(),
            beats: BTreeMap::new(),
            lines: Vec::new(),
            hanging: BTreeSet::new(),
            full_types: BTreeSet::new(),
            deaf: |_| false,
            wordy: false,
            runtime,
        };
        local.runtime.handle().clone().block_on(local.look());
        local.trouble.moved = None;
        Ok((day, local))
    }
}

async fn set(day: &Day, face: &ClockFace) -> StageResult<(Day, Stage, LocalServer)> {
    let front = Router::new().route("/clock", get(tell)).with_state(Arc::clone(face));
    let front = LocalServer::start(front, 0).await?;
    let vars = variables(&day.setup, &format!("http://{}/clock", front.address()));
    let pools = serde_json::from_str(&day.setup.environment()["REVEILLE_POOLS"])?;
    let more: Vec<(&str, &str)> = vars.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let stage = Stage::open_with(day.setup.start - BEFORE, &pools, &more).await?;
    let mut ids = BTreeMap::new();
    for pool in &day.setup.pools {
        for (n, drawn) in pool.nodes.iter().enumerate() {
            let name = format!("{}-{n}", pool.name);
            ids.insert(drawn.clone(), stage.add_node(&name, &pool.name, false).await?);
        }
        if pool.logs {
            add_log_group(&stage.sdk, &pool.log_group()).await?;
        }
    }
    stage.aws.set_clock(day.setup.start).await;
    stage.aws.clear_calls().await;
    Ok((renamed(day, &ids)?, stage, front))
}

/// The day's configuration, but for what the stage itself provides.
fn variables(setup: &Setup, clock: &str) -> BTreeMap<String, String> {
    let mut vars = setup.environment();
    for stages in ["REVEILLE_POOLS", "REVEILLE_TABLE", "REVEILLE_ALERT_TOPIC_ARN", "AWS_REGION"] {
        vars.remove(stages);
    }
    vars.entry("REVEILLE_BUDGET".to_owned()).or_default();
    vars.insert("REVEILLE_CLOCK_URL".to_owned(), clock.to_owned());
    vars
}

async fn tell(State(face): State<ClockFace>) -> String {
    json!({"now_ms": face.load(Ordering::SeqCst)}).to_string()
}

async fn add_log_group(sdk: &SdkConfig, group: &str) -> StageResult<()> {
    let logs = aws_sdk_cloudwatchlogs::Client::new(sdk);
    logs.create_log_group().log_group_name(group).send().await?;
    logs.create_log_stream().log_group_name(group).log_stream_name(STREAM).send().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::root;
    use reveille_soak::trace::Trace;

    #[test]
    fn a_short_day_has_the_early_calls_and_all_else_in_its_hours() {
        let day = Day::of(3, &Trace::open(&root()).unwrap());
        let short = shortened(&day, 8);
        let count =
            |day: &Day, wanted: fn(&What) -> bool| day.happenings.iter().filter(|one| wanted(&one.what)).count();
        let (call, other) =
            (|what: &What| matches!(what, What::Call { .. }), |what: &What| !matches!(what, What::Call { .. }));
        assert!(short.happenings.iter().all(|one| one.at < 8 * 3600));
        assert_eq!(count(&short, other), count(&day, other));
        assert!(count(&short, call) > 0 && count(&short, call) < count(&day, call));
    }
}
