//! A tick over many nodes of one pool, from its first question to its end, on answers that were made before.

use crate::decisions::{look, now};
use chrono::TimeDelta;
use reveille::domain::{Launch, NodeId, NodeRecord, NodeSeen, NodeState, PoolName, PoolRecord, RunId};
use reveille::observation::{Series, SignalKind};
use reveille::policy::Policy;
use reveille::prices::Prices;
use reveille::run::{Activity, Answer, Call, Context, IdleRun, MetricRef, PoolPolicy, Run as _, Signal, Step};
use std::collections::BTreeMap;
use std::error::Error;

/// What the tick is given.
pub(crate) struct Tick {
    ctx: Context,
    nodes: Vec<NodeSeen>,
    ledger: BTreeMap<PoolName, PoolRecord>,
    requests: Series,
}

/// So many nodes of one pool that have been running and ready for an hour, with requests of every minute: nothing is to be
/// done.
pub(crate) fn tick(nodes: usize) -> Result<Tick, Box<dyn Error>> {
    let like = look(NodeState::Running);
    let pool = like.seen.pool.clone();
    let ids = (0..nodes).map(|n| NodeId::new(format!("i-{n:017x}")));
    let nodes: Vec<NodeSeen> =
        ids.map(|id| Ok(NodeSeen { id: id?, ..like.seen.clone() })).collect::<Result<_, Box<dyn Error>>>()?;
    let launched_at = like.seen.launched_at.ok_or("never launched")?;
    let launch = Launch { seen_at: now(), used: Some(true), ..Launch::at(launched_at) };
    let record = NodeRecord { launch: Some(launch), ..like.record };
    let records = nodes.iter().map(|node| (node.id.clone(), record.clone())).collect();
    let metric = MetricRef {
        namespace: "AWS/ApplicationELB".to_owned(),
        metric: "RequestCount".to_owned(),
        dimensions: BTreeMap::new(),
    };
    let signal = Signal { kind: SignalKind::Requests, metric, alive: None };
    let policy = Policy::default();
    let back = policy.look_back().num_minutes();
    let points = (1..=back).map(|minute| (now() - TimeDelta::minutes(minute), 3.0)).collect();
    let ctx = Context {
        run: RunId("run-1".to_owned()),
        now: now(),
        time_out: TimeDelta::seconds(60),
        policy,
        pools: BTreeMap::from([(pool.clone(), PoolPolicy::from(vec![signal]))]),
        prices: Prices::new("us-east-1", BTreeMap::new()),
    };
    let ledger = BTreeMap::from([(pool, PoolRecord { demand: 1, nodes: records, ..PoolRecord::default() })]);
    Ok(Tick { ctx, nodes, ledger, requests: Series { points, complete: true } })
}

impl Tick {
    pub(crate) fn run(&self) -> Result<(), Box<dyn Error>> {
        let mut run = IdleRun::new(self.ctx.clone());
        let mut answers = Vec::new();
        loop {
            match run.next(answers) {
                Step::Calls(calls) => answers = calls.iter().map(|call| self.answer(call)).collect::<Result<_, _>>()?,
                Step::Done(outcome) if outcome.decided.len() == self.nodes.len() => return Ok(()),
                Step::Done(outcome) => return Err(format!("{outcome:?}").into()),
            }
        }
    }

    /// A tick that changes nothing asks only these.
    #[expect(clippy::wildcard_enum_match_arm, reason = "of twenty calls three are answered")]
    fn answer(&self, call: &Call) -> Result<Answer, String> {
        let points = |metrics: &BTreeMap<MetricRef, SignalKind>| -> Activity {
            metrics.keys().map(|metric| (metric.clone(), Ok(self.requests.clone()))).collect()
        };
        match call {
            Call::DescribeNodes { .. } => Ok(Answer::Nodes(Ok(self.nodes.clone()))),
            Call::ReadLedger { .. } => Ok(Answer::Ledger(Ok(self.ledger.clone()))),
            Call::ReadActivity { metrics, .. } => Ok(Answer::Activity(Ok(points(metrics)))),
            other => Err(format!("a tick that changes nothing asked for {other:?}")),
        }
    }
}
