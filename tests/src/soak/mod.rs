//! The soak's stage over the local AWS: the built functions, in processes of their own, on random days.
//!
//! What is called at one instant of the virtual clock runs truly at once; time goes on when all of it is over. So nothing
//! happens between the calls of one run but what another run, or a fault, does.
//!
//! * A fault is offered to the invocations of one instant, until it strikes. Which of them it struck is not known: it is
//!   charged to all of them. Where several run at once it may be shared out so that each gets through by repeating.
//! * A slow run reads the clock so many seconds before its calls go out; at most 25, since the functions have 30.
//! * Decisions are not replayed here: the answers that a run got stay in its process.
//! * What cannot be played is named by [`left_out`].

mod change;
mod opening;
mod said;
mod trouble;

pub use opening::shortened;
pub use trouble::{left_out, plays};

use crate::local_aws::Published;
use crate::runtime_api::{Invocation, LocalServer};
use crate::stage;
use chrono::TimeDelta;
use futures::future::join_all;
use opening::ClockFace;
use reveille::aws::{Aws, BeatWriter};
use reveille::domain::{AlertKey, Beat, Instant, NodeId, NodeSeen, NodeState, PoolName, PoolRecord};
use reveille::run::{Alert, AlertKind, Answer, Call, History, MetricRef};
use reveille_soak::faults::{Fault, Struck};
use reveille_soak::stage::{Accepted, Act, Ask, Change, Ended, Happened, RunKey, Stage, Strike};
use said::Said;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant as Moment;
use trouble::Trouble;

/// No call of the stage itself takes so long.
const LONGEST: Duration = Duration::from_secs(60);
/// A fault that kills is looked for so often; its answer is held back for much longer.
const LOOK_FOR_DEATH: Duration = Duration::from_millis(50);
/// The local AWS's own.
const STOPPING_SECONDS: u32 = 40;
/// These change nodes.
const CHANGES: [&str; 3] = ["StartInstances", "StopInstances", "ModifyInstanceAttribute"];

/// An invocation that is out.
#[derive(Debug)]
struct Sent {
    key: RunKey,
    ask: Ask,
    task: JoinHandle<Invocation>,
}

/// An invocation that is over.
#[derive(Debug)]
struct Done {
    key: RunKey,
    ask: Ask,
    said: Said,
}

/// The stage.
#[derive(Debug)]
pub struct Local {
    stage: Arc<stage::Stage>,
    aws: Aws,
    writer: BeatWriter,
    _front: LocalServer,
    face: ClockFace,
    seed: u64,
    now: Instant,
    /// What the clock of the functions shows.
    shown: Instant,
    /// What the local AWS's clock shows.
    server: Instant,
    off: TimeDelta,
    slow: i64,
    nodes: Vec<NodeSeen>,
    /// The ledger, as long as nobody writes it.
    records: Option<BTreeMap<PoolName, PoolRecord>>,
    out: Vec<Sent>,
    happened: VecDeque<Happened>,
    trouble: Trouble,
    points: Vec<(MetricRef, Instant, f64)>,
    beats: BTreeMap<NodeId, Beat>,
    lines: Vec<(String, Instant, String)>,
    hanging: BTreeSet<NodeId>,
    full_types: BTreeSet<String>,
    deaf: fn(&Ask) -> bool,
    wordy: bool,
    runtime: Runtime,
}

impl Local {
    /// The same, where some are never called; for tests that the checks bite.
    pub fn deaf_to(self, deaf: fn(&Ask) -> bool) -> Self {
        Self { deaf, ..self }
    }

    /// The same, which shows every line of the functions.
    pub fn wordy(self) -> Self {
        Self { wordy: true, ..self }
    }

    /// The faults that struck, each counted once.
    pub fn struck(&self) -> &Struck {
        &self.trouble.struck
    }

    async fn answer(&self, call: &Call) -> Answer {
        self.aws.answer(call, Moment::now() + LONGEST).await
    }

    /// Lets the local AWS's clock catch up, and sees what has become of the nodes.
    async fn sync(&mut self) {
        if self.server == self.now {
            return;
        }
        self.server = self.now;
        if !self.stage.aws.set_clock(self.now).await.is_empty() {
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let Answer::Nodes(Ok(nodes)) = self.answer(&Call::DescribeNodes { pools: None }).await else {
            panic!("the local AWS does not describe its nodes");
        };
        if nodes != self.nodes {
            self.trouble.moved = Some(self.now);
        }
        self.nodes = nodes;
        let is_down = |id: &NodeId| self.nodes.iter().any(|node| node.id == *id && node.state == NodeState::Stopping);
        for id in self.hanging.iter().filter(|id| is_down(id)).cloned().collect::<Vec<_>>() {
            self.hanging.remove(&id);
            self.set(&id, json!({"stopping_seconds": STOPPING_SECONDS})).await;
        }
    }

    async fn set(&self, node: &NodeId, mut settings: Value) {
        settings["instance"] = json!(node);
        self.stage.aws.config(settings).await;
    }

    async fn records(&mut self) -> &BTreeMap<PoolName, PoolRecord> {
        if self.records.is_none() {
            let pools = self.stage.config().pools.keys().cloned().collect();
            let Answer::Ledger(Ok(records)) = self.answer(&Call::ReadLedger { pools }).await else {
                panic!("the local AWS does not read the ledger");
            };
            self.records = Some(records);
        }
        self.records.as_ref().expect("read just now")
    }

    /// Before the first invocation of an instant: the world is as it is then.
    async fn prepare(&mut self) {
        self.sync().await;
        self.flush().await;
        self.records().await;
        let faults = self.trouble.post(self.now, self.seed);
        if !faults.is_empty() {
            self.stage.aws.faults(json!(faults)).await;
        }
        self.shown = self.now + self.off - TimeDelta::seconds(std::mem::take(&mut self.slow));
        self.face.store(self.shown.timestamp_millis(), Ordering::SeqCst);
    }

    /// Waits for all that are out, and tells what happened.
    async fn join(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let before = self.nodes.clone();
        let (sent, killed) = self.ends().await;
        let left = if self.trouble.is_posted() { self.stage.aws.take_faults().await } else { Vec::new() };
        let strikes = self.trouble.take_struck(&left, sent.iter().any(|run| run.said.died));
        let calls = self.stage.aws.take_calls().await;
        // A call whose caller was killed is listed when its answer is lost, that is later.
        if killed || calls.iter().any(|call| CHANGES.contains(&call.action.as_str())) {
            self.look().await;
        }
        self.records = None;
        let told = self.stage.aws.take_published().await;
        self.report(&sent, &strikes, &before, told);
    }

    async fn ends(&mut self) -> (Vec<Done>, bool) {
        let (mut keys, mut tasks) = (Vec::new(), Vec::new());
        for Sent { key, ask, task } in std::mem::take(&mut self.out) {
            keys.push((key, ask));
            tasks.push(task);
        }
        let mut ends = pin!(join_all(tasks));
        let mut every = tokio::time::interval(LOOK_FOR_DEATH);
        let (may_kill, mut killed) = (self.trouble.may_kill(), false);
        let ends = loop {
            tokio::select! {
                ends = &mut ends => break ends,
                _ = every.tick(), if may_kill && !killed => {
                    killed = self.trouble.kills(&self.stage.aws.waiting_faults().await);
                    if killed {
                        let stage = &self.stage;
                        [&*stage.wake, &stage.idle, &stage.uptime, &stage.budget].iter().for_each(|one| one.kill_busy());
                    }
                }
            }
        };
        let done = keys.into_iter().zip(ends).map(|((key, ask), end)| {
            let invocation = end.expect("an invocation does not panic");
            self.show(&key, &invocation);
            Done { said: Said::by(&ask, &invocation), key, ask }
        });
        (done.collect(), killed)
    }

    fn show(&self, key: &RunKey, invocation: &Invocation) {
        if self.wordy {
            println!("{} {}: {:?}", self.now.format("%d %H:%M:%S"), key.0, invocation.result);
            invocation.logs.iter().for_each(|line| println!("    {line}"));
        }
    }

    fn report(&mut self, done: &[Done], strikes: &[Strike], before: &[NodeSeen], told: Vec<Published>) {
        for run in done {
            let struck = strikes.iter().map(|strike| Happened::Struck(run.key.clone(), strike.clone()));
            self.happened.extend(struck);
        }
        for (act, node) in acts(before, &self.nodes) {
            let word = if act == Act::Start { "start" } else { "stop" };
            let Some(run) = whose(done, |run| run.said.tells(word, &node)) else { continue };
            self.happened.push_back(Happened::Accepted(Accepted {
                run: run.key.clone(),
                act,
                node,
                clock: self.shown,
                // What becomes visible at this very instant may come before it or after.
                read_at: Some(self.now - TimeDelta::milliseconds(1)),
                // Of several it is not known whose reading was spoilt.
                struck: if done.len() == 1 { strikes.to_vec() } else { Vec::new() },
            }));
        }
        for message in told {
            let subject = message.subject.clone().unwrap_or_default();
            let tells = |run: &&Done| run.said.did.iter().any(|did| did.event == "alert" && did.reason == subject);
            let Some(run) = whose(done, |run| tells(&run)) else { continue };
            self.happened.push_back(Happened::Told(run.key.clone(), alert(message)));
        }
        for run in done {
            self.happened.push_back(Happened::Ended(self.ended(run, strikes)));
        }
    }

    fn ended(&self, run: &Done, strikes: &[Strike]) -> Ended {
        let said = &run.said;
        Ended {
            run: run.key.clone(),
            ask: run.ask.clone(),
            began: self.now,
            clock: self.shown,
            died: said.died,
            failed: said.failed,
            // Nothing is left of what a dead run knew.
            decided: if said.died { Vec::new() } else { said.decided.clone() },
            demanded: said.demanded(),
            reply: said.reply.clone(),
            struck: strikes.to_vec(),
            replays: None,
        }
    }

    async fn begin_now(&mut self, key: RunKey, ask: Ask) {
        if self.out.is_empty() {
            self.prepare().await;
        }
        let (stage, event, asked) = (Arc::clone(&self.stage), said::event(&ask, self.now), ask.clone());
        let task = tokio::spawn(async move { said::function(&stage, &asked).invoke(&event).await });
        self.out.push(Sent { key, ask, task });
    }
}

impl Stage for Local {
    fn now(&self) -> Instant {
        self.now
    }

    fn begin(&mut self, run: RunKey, ask: Ask) {
        if !(self.deaf)(&ask) {
            self.runtime.handle().clone().block_on(self.begin_now(run, ask));
        }
    }

    fn advance(&mut self, to: Instant) -> Option<Happened> {
        let handle = self.runtime.handle().clone();
        handle.block_on(self.join());
        if let Some(happened) = self.happened.pop_front() {
            return Some(happened);
        }
        self.now = to;
        // Only a node on its way changes by itself.
        if self.nodes.iter().any(|node| [NodeState::Pending, NodeState::Stopping].contains(&node.state)) {
            handle.block_on(self.sync());
        }
        None
    }

    fn arm(&mut self, fault: Fault) {
        self.trouble.arm(fault);
    }

    fn change(&mut self, change: Change) {
        // What a node writes is seen by the next invocations.
        let waits = matches!(
            change,
            Change::Point(..)
                | Change::Beat(..)
                | Change::Log(..)
                | Change::ClockOff(_)
                | Change::Outage(..)
                | Change::Slow(_)
        );
        let handle = self.runtime.handle().clone();
        handle.block_on(async {
            if !waits {
                self.join().await;
                self.sync().await;
            }
            self.change_now(change).await;
            if !waits {
                self.records = None;
                self.look().await;
            }
        });
    }

    fn nodes(&self) -> Vec<NodeSeen> {
        self.nodes.clone()
    }

    fn record(&mut self, pool: &PoolName) -> PoolRecord {
        let handle = self.runtime.handle().clone();
        handle.block_on(self.records()).get(pool).cloned().unwrap_or_default()
    }

    fn history(&self) -> History {
        let pools = self.stage.config().pools.keys().cloned().collect();
        let call = Call::ReadHistory { pools, from: self.now - TimeDelta::days(30) };
        let answer = self.runtime.handle().block_on(self.answer(&call));
        let Answer::History(Ok(history)) = answer else {
            panic!("the local AWS does not read the history: {answer:?}")
        };
        history
    }
}

/// What was done to nodes while the clock stood: only calls change them then.
fn acts(before: &[NodeSeen], after: &[NodeSeen]) -> Vec<(Act, NodeId)> {
    let act = |(was, is): (&NodeSeen, &NodeSeen)| match (was.state, is.state) {
        (NodeState::Stopped, NodeState::Pending) => Some((Act::Start, is.id.clone())),
        (NodeState::Running, NodeState::Stopping) => Some((Act::Stop, is.id.clone())),
        _ => None,
    };
    before.iter().zip(after).filter_map(act).collect()
}

/// Who did it: who says so, else who cannot say anything any more, else whoever it was.
fn whose(done: &[Done], says: impl Fn(&Done) -> bool) -> Option<&Done> {
    let dead = || done.iter().find(|run| run.said.died);
    let failed = || done.iter().find(|run| run.said.did.iter().any(|did| did.event.ends_with("_failed")));
    done.iter().find(|run| says(run)).or_else(dead).or_else(failed).or(done.first())
}

fn alert(message: Published) -> Alert {
    let attribute = |name: &str| message.attributes.get(name).cloned().unwrap_or_default();
    let word = attribute("kind");
    let kind = AlertKind::ALL.iter().find(|kind| kind.as_str() == word).copied();
    Alert {
        key: AlertKey(attribute("key")),
        kind: kind.unwrap_or_else(|| panic!("no kind of message is {word:?}: {message:?}")),
        pool: PoolName::new(attribute("pool")).ok(),
        node: NodeId::new(attribute("node")).ok(),
        subject: message.subject.unwrap_or_default(),
        body: message.message,
        attributes: BTreeMap::new(),
    }
}
