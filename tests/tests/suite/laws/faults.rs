//! Calls that fail: what may be concluded from each.

use crate::bench::{
    Bench, Trouble, any_demand, claim_call, claim_of, id, kind, lease_id, minutes, morning, record, resize, run, start,
    state, stop, voice,
};
use crate::laws::budget::month;
use crate::laws::history::launch;
use reveille::domain::{AlertKey, ClaimAnswer, ClaimKind, GateKeeper, Lease, NodeState};
use reveille::error::{CallError, ErrorClass, TookEffect};
use reveille::observation::SignalKind;
use reveille::run::{Alert, AlertKind, Answer, Call, Fact, LeaseGround, MetricRef, Permit, notices};
use reveille::world::call_name;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

fn class_and_effect<T: std::fmt::Debug>(answer: Result<T, CallError>) -> (ErrorClass, TookEffect) {
    let error = answer.expect_err("the call was to fail");
    (error.class, error.effect)
}

/// Codes with the status that AWS sends with each: capacity 500, throttling 503, the others 400.
const REFUSALS: [(&str, ErrorClass); 7] = [
    ("InsufficientInstanceCapacity", ErrorClass::Capacity),
    ("RequestLimitExceeded", ErrorClass::Transient),
    ("VcpuLimitExceeded", ErrorClass::Quota),
    ("IncorrectInstanceState", ErrorClass::Conflict),
    ("UnauthorizedOperation", ErrorClass::Permanent),
    ("InvalidInstanceID.NotFound", ErrorClass::NotFound),
    ("SomethingNobodyHasClassed", ErrorClass::Unknown),
];

pub(crate) async fn refusals_are_classed_and_none_is_taken_for_an_effect(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    for (code, class) in REFUSALS {
        bench.fail("start", Trouble::Refused(code), 1).await;
        let error = start(bench, &node).await.expect_err(code);
        assert_eq!((error.code.as_str(), error.class, error.effect), (code, class, TookEffect::No));
        assert_eq!(error.act, format!("start node {node}"));
        assert_eq!(state(bench, &node).await, NodeState::Stopped, "{code}");
    }
    bench.fail("start", Trouble::Refused("RequestLimitExceeded"), 2).await;
    for _ in 0..2 {
        start(bench, &node).await.expect_err("trouble that lasts for two calls");
    }
    start(bench, &node).await.expect("the trouble is over");
}

pub(crate) async fn a_server_error_leaves_open_whether_the_node_was_started(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Stopped).await;
    for (trouble, after) in [
        (Trouble::Refused("InternalError"), NodeState::Stopped),
        (Trouble::FailedAfter("InternalError"), NodeState::Pending),
    ] {
        bench.fail("start", trouble, 1).await;
        assert_eq!(class_and_effect(start(bench, &node).await), (ErrorClass::Transient, TookEffect::Maybe));
        assert_eq!(state(bench, &node).await, after, "{trouble:?}");
    }
}

pub(crate) async fn an_answer_that_is_lost_leaves_the_effect_there(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    bench.fail("stop", Trouble::AnswerLost, 1).await;
    assert_eq!(class_and_effect(stop(bench, &node).await), (ErrorClass::Transient, TookEffect::Maybe));
    assert_eq!(state(bench, &node).await, NodeState::Stopping);
    bench.pass(minutes(2)).await;
    bench.fail("start", Trouble::AnswerLost, 1).await;
    assert_eq!(class_and_effect(start(bench, &node).await), (ErrorClass::Transient, TookEffect::Maybe));
    assert_eq!(state(bench, &node).await, NodeState::Pending);
}

pub(crate) async fn start_stop_and_resize_are_sent_once_whatever_fails(bench: &mut impl Bench) {
    let node = bench.add_node("gpu-1", "voice", NodeState::Running).await;
    let troubles = [
        "RequestLimitExceeded",
        "InternalError",
        "ServiceUnavailable",
        "InsufficientInstanceCapacity",
        "VcpuLimitExceeded",
    ];
    let troubles = troubles.map(Trouble::Refused).into_iter().chain([Trouble::AnswerLost]);
    for trouble in troubles {
        for call in ["start", "stop", "resize"] {
            bench.take_sent(call).await;
            bench.fail(call, trouble, 1).await;
            let error = match call {
                "start" => start(bench, &node).await.err(),
                "resize" => resize(bench, &node, "g5.xlarge").await.err(),
                _ => stop(bench, &node).await.err(),
            };
            assert!(error.is_some(), "{call}: {trouble:?}");
            assert_eq!(bench.take_sent(call).await, 1, "{call}: {trouble:?}");
        }
    }
}

/// One call of each kind but ReadLogs, which answers for each group by itself.
fn every_call() -> Vec<Call> {
    let (pool, node, pools) = (voice(), id("i-0123456789abcdef0"), BTreeSet::from([voice()]));
    let key = AlertKey("alert#voice#blind#1".to_owned());
    let alert = Alert {
        key: key.clone(),
        kind: AlertKind::Blind,
        pool: Some(pool.clone()),
        node: None,
        attributes: BTreeMap::new(),
        subject: "Reveille: a test".to_owned(),
        body: "Nothing to do.".to_owned(),
    };
    let (from, to) = (morning(), morning() + minutes(1));
    let lease = Lease { by: "token:app".to_owned(), at: morning(), until: to };
    let answered = ClaimAnswer::Accepted;
    let metric = MetricRef {
        namespace: "AWS/ApplicationELB".to_owned(),
        metric: "RequestCount".to_owned(),
        dimensions: BTreeMap::new(),
    };
    let (budget, nodes) = (month(), BTreeSet::from([node.clone()]));
    let (name, note, newest) =
        (budget.name.clone(), reveille::run::BudgetNote::default(), vec![(node.clone(), launch(0, None))]);
    vec![
        Call::DescribeNodes { pools: None },
        Call::ReadLedger { pools: pools.clone() },
        Call::ReadHistory { pools: pools.clone(), from },
        Call::ReadSamples { nodes: nodes.clone(), from, to },
        Call::ReadDisks { nodes },
        Call::Resize { node: node.clone(), to: kind("g5.xlarge") },
        Call::ReadBudget { name: name.clone() },
        Call::CreateBudget { budget: budget.clone(), pools: pools.clone() },
        Call::SetBudgetAmount { budget: budget.clone(), pools, note: note.clone() },
        Call::CreateNotices { notices: notices(&budget), budget },
        Call::ReadBudgetNote { name: name.clone() },
        Call::NoteBudget { name, note },
        Call::SetGate { pool: pool.clone(), by: GateKeeper::Budget, gate: None, at: morning() },
        Call::NoteLaunches { pool: pool.clone(), ended: Vec::new(), newest },
        any_demand(morning()),
        Call::ReadActivity { metrics: BTreeMap::from([(metric, SignalKind::Requests)]), from, to },
        Call::ReadReadiness { nodes: BTreeSet::from([node.clone()]) },
        claim_call(&node, Permit { claims: 0, demand: None }, &claim_of(ClaimKind::Start, "run-1")),
        Call::Start { node: node.clone() },
        Call::Stop { node: node.clone(), force: false },
        Call::RecordAnswer { pool: pool.clone(), node: node.clone(), run: run("run-1"), answer: answered, fault: None },
        Call::GiveLease {
            pool: pool.clone(),
            node: node.clone(),
            id: lease_id("call-1"),
            lease: lease.clone(),
            ground: LeaseGround { claim: None, most: 4, is_first: true, over: Vec::new(), was_waiting: false },
        },
        Call::RenewLease { pool: pool.clone(), node: node.clone(), id: lease_id("call-1"), lease },
        Call::EndLease {
            pool: pool.clone(),
            node: node.clone(),
            id: lease_id("call-1"),
            by: "token:app".to_owned(),
            at: morning(),
        },
        Call::SetHold { pool: pool.clone(), node: node.clone(), hold: None },
        Call::ReadBeats { nodes: BTreeSet::from([node.clone()]) },
        Call::WriteFacts { pool, facts: vec![(node, Fact::Mark(None))] },
        Call::ClaimAlert { key: key.clone(), at: morning() },
        Call::Publish { alert },
        Call::MarkPublished { key: key.clone() },
        Call::KeepUntold { pool: voice(), key, text: None },
    ]
}

fn error_of(answer: &Answer) -> Option<&CallError> {
    match answer {
        Answer::Nodes(answer) => answer.as_ref().err(),
        Answer::Ledger(answer) => answer.as_ref().err(),
        Answer::Demand(answer) => answer.as_ref().err(),
        Answer::Activity(answer) => answer.as_ref().err(),
        Answer::Readiness(answer) => answer.as_ref().err(),
        Answer::Claim(answer) => answer.as_ref().err(),
        Answer::Start(answer) => answer.as_ref().err(),
        Answer::Stop(answer) => answer.as_ref().err(),
        Answer::Recorded(answer) | Answer::Published(answer) => answer.as_ref().err(),
        Answer::AlertClaim(answer) => answer.as_ref().err(),
        Answer::Logs(answer) => answer.as_ref().err(),
        Answer::History(answer) => answer.as_ref().err(),
        Answer::Samples(answer) => answer.as_ref().err(),
        Answer::Disks(answer) => answer.as_ref().err(),
        Answer::Budget(answer) => answer.as_ref().err(),
        Answer::BudgetNote(answer) => answer.as_ref().err(),
        Answer::HoldSet(answer) => answer.as_ref().err(),
        Answer::GateSet(answer) => answer.as_ref().err(),
        Answer::Resized(answer) => answer.as_ref().err(),
        Answer::Lease(answer) => answer.as_ref().err(),
        Answer::Beats(answer) => answer.as_ref().err(),
    }
}

pub(crate) async fn every_call_that_fails_says_so_in_an_answer_of_its_own_kind(bench: &mut impl Bench) {
    let refusals = [
        ("ServiceUnavailable", ErrorClass::Transient, TookEffect::Maybe),
        ("ThrottlingException", ErrorClass::Transient, TookEffect::No),
        ("AccessDenied", ErrorClass::Permanent, TookEffect::No),
    ];
    for call in every_call() {
        let name = call_name(&call);
        let mut kinds = BTreeSet::new();
        for (code, class, effect) in refusals {
            bench.fail(name, Trouble::Refused(code), 1).await;
            let answer = bench.answer(&call).await;
            let error = error_of(&answer).unwrap_or_else(|| panic!("{name} with {code}: {answer:?}"));
            assert_eq!((error.code.as_str(), error.class, error.effect), (code, class, effect), "{name}");
            kinds.insert(format!("{:?}", discriminant(&answer)));
        }
        let healed = bench.answer(&call).await;
        kinds.insert(format!("{:?}", discriminant(&healed)));
        assert_eq!(kinds.len(), 1, "{name}: {kinds:?}");
        // The node of the calls was never there: EC2 alone says no.
        let is_ec2s = matches!(name, "start" | "stop" | "resize" | "readiness");
        assert_eq!(error_of(&healed).map(|error| error.class), is_ec2s.then_some(ErrorClass::NotFound), "{name}");
    }
}

pub(crate) async fn a_write_whose_answer_is_lost_stands(bench: &mut impl Bench) {
    let node = id("i-0123456789abcdef0");
    let open = claim_of(ClaimKind::Start, "run-1");
    let call = claim_call(&node, Permit { claims: 0, demand: None }, &open);
    for (name, call) in [("demand", any_demand(morning())), ("claim", call)] {
        bench.fail(name, Trouble::AnswerLost, 1).await;
        let answer = bench.answer(&call).await;
        let error = error_of(&answer).unwrap_or_else(|| panic!("{name}: {answer:?}"));
        assert_eq!((error.class, error.effect), (ErrorClass::Transient, TookEffect::Maybe), "{name}");
    }
    let item = record(bench).await;
    // A demand that is sent again counts again: one wake too many.
    assert!(item.demand >= 1 && item.wake.is_some(), "{item:?}");
    assert_eq!((item.claims, item.node(&node).claim), (1, Some(open)), "the run knows its own claim again");
}
