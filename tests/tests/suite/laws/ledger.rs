//! The ledger protocol of the design: demand never loses, claims are conditional, facts stand beside each other.

use crate::bench::{
    Bench, any_demand, claim, claim_call, claim_of, demand, id, kind, minutes, morning, pool, record, recorded, run,
    seconds, voice, wake, write_facts,
};
use reveille::domain::{
    Blind, Boots, Claim, ClaimAnswer, ClaimKind, Fault, FaultKind, Mark, NodeId, NodeRecord, Noise, PoolRecord,
    ReadyFact, Wake, WakeSource,
};
use reveille::error::{ErrorClass, TookEffect};
use reveille::run::{Call, Claimed, Fact, Permit, take_claim, take_ledger, take_recorded};
use std::collections::{BTreeMap, BTreeSet};

fn gpu() -> NodeId {
    id("i-0123456789abcdef0")
}

fn other_gpu() -> NodeId {
    id("i-0123456789abcdef1")
}

pub(crate) async fn an_empty_ledger_reads_as_zero_records(bench: &mut impl Bench) {
    let pools = BTreeSet::from([voice(), pool("batch")]);
    let read = take_ledger(Some(bench.answer(&Call::ReadLedger { pools: pools.clone() }).await)).expect("read ledger");
    let empty: BTreeMap<_, _> = pools.into_iter().map(|pool| (pool, PoolRecord::default())).collect();
    assert_eq!(read, empty);
}

pub(crate) async fn demand_moves_its_counter_and_answers_the_new_item(bench: &mut impl Bench) {
    claim(bench, &gpu(), Permit { claims: 0, demand: None }, &claim_of(ClaimKind::Start, "run-1")).await;
    for n in 0..3 {
        let wake = wake(morning() + seconds(n));
        let call = Call::RecordDemand {
            pool: voice(),
            node: None,
            wake: wake.clone(),
            cap: None,
            waiting: reveille::run::Waiting::default(),
        };
        let answered = recorded(bench.answer(&call).await);
        assert_eq!((answered.demand, answered.claims, &answered.wake), (n as u64 + 1, 1, &Some(wake)));
        assert!(answered.node(&gpu()).claim.is_some(), "the whole item");
        assert_eq!(answered, record(bench).await);
    }
    let others = Call::ReadLedger { pools: BTreeSet::from([pool("batch")]) };
    let others = take_ledger(Some(bench.answer(&others).await)).expect("read ledger");
    assert_eq!(others[&pool("batch")], PoolRecord::default(), "another pool's item is its own");
}

pub(crate) async fn a_wake_of_a_named_node_is_kept_beside_the_pools_own(bench: &mut impl Bench) {
    demand(bench).await;
    let named = wake(morning() + minutes(1));
    let call = Call::RecordDemand {
        pool: voice(),
        node: Some(gpu()),
        wake: named.clone(),
        cap: None,
        waiting: reveille::run::Waiting::default(),
    };
    let answered = recorded(bench.answer(&call).await);
    assert_eq!((answered.demand, &answered.wake), (2, &Some(wake(morning()))));
    assert_eq!(answered.node(&gpu()), NodeRecord { wake: Some(named.clone()), ..NodeRecord::default() });
    assert_eq!(answered.last_wake(&gpu()), Some(&named));
    assert_eq!(answered.last_wake(&other_gpu()), Some(&wake(morning())));
}

pub(crate) async fn a_wake_by_a_log_is_kept_beside_a_callers(bench: &mut impl Bench) {
    let at = |n| morning() + seconds(n);
    let prewarm = |n| wake(at(n));
    let line = |n| Wake::new(at(n), WakeSource::LogLine);
    let batch = |n| Wake::new(at(n), WakeSource::UnreadableBatch);
    let rows = [
        ("the first line", line(1), None, Some(line(1))),
        ("a caller after it", prewarm(2), Some(prewarm(2)), Some(line(1))),
        ("a line after the caller", line(3), Some(prewarm(2)), Some(line(3))),
        ("a batch that cannot be read", batch(4), Some(prewarm(2)), Some(batch(4))),
        ("a later caller", prewarm(5), Some(prewarm(5)), Some(batch(4))),
    ];
    for (n, (name, wake, callers, logs)) in rows.into_iter().enumerate() {
        let call = Call::RecordDemand {
            pool: voice(),
            node: None,
            wake,
            cap: None,
            waiting: reveille::run::Waiting::default(),
        };
        let item = recorded(bench.answer(&call).await);
        assert_eq!((item.wake, item.line_wake, item.demand), (callers, logs, n as u64 + 1), "{name}");
    }
    let named = Call::RecordDemand {
        pool: voice(),
        node: Some(gpu()),
        wake: line(6),
        cap: None,
        waiting: reveille::run::Waiting::default(),
    };
    let item = recorded(bench.answer(&named).await);
    assert_eq!(
        (item.wake.clone(), item.line_wake.clone()),
        (Some(prewarm(5)), Some(batch(4))),
        "a named one is neither"
    );
    assert_eq!(item.node(&gpu()).wake, Some(line(6)));
}

pub(crate) async fn fifty_demands_at_once_count_fifty(bench: &mut impl Bench) {
    let answers = bench.answers(&vec![any_demand(morning()); 50]).await;
    let counted = answers.into_iter().map(|answer| recorded(answer).demand);
    assert_eq!(counted.collect::<BTreeSet<_>>(), (1..=50).collect(), "each answer is an item of its own");
    assert_eq!(record(bench).await.demand, 50);
}

pub(crate) async fn claims_are_conditional(bench: &mut impl Bench) {
    let first = claim_of(ClaimKind::Start, "run-1");
    let granted = claim(bench, &gpu(), Permit { claims: 0, demand: None }, &first).await;
    let item = PoolRecord {
        claims: 1,
        nodes: BTreeMap::from([(gpu(), NodeRecord { claim: Some(first), ..NodeRecord::default() })]),
        ..PoolRecord::default()
    };
    assert_eq!(granted, Claimed::Granted(item.clone()));
    for stale in [0, 2] {
        let permit = Permit { claims: stale, demand: None };
        let late = claim(bench, &other_gpu(), permit, &claim_of(ClaimKind::Start, "run-2")).await;
        assert_eq!(late, Claimed::Lost(item.clone()), "read at {stale}");
    }
    assert_eq!(record(bench).await, item, "a lost claim writes nothing");
    let second = claim_of(ClaimKind::Stop, "run-3");
    let granted = claim(bench, &gpu(), Permit { claims: 1, demand: Some(0) }, &second).await;
    let Claimed::Granted(item) = granted else { panic!("{granted:?}") };
    assert_eq!((item.claims, item.node(&gpu()).claim), (2, Some(second)), "the newest claim replaces the one before");
}

pub(crate) async fn one_of_twenty_claims_at_once_is_granted(bench: &mut impl Bench) {
    let claims: Vec<Claim> = (0..20).map(|n| claim_of(ClaimKind::Start, &format!("run-{n}"))).collect();
    let permit = Permit { claims: 0, demand: None };
    let calls: Vec<Call> = claims.iter().map(|claim| claim_call(&gpu(), permit, claim)).collect();
    let answers = bench.answers(&calls).await.into_iter().map(|answer| take_claim(Some(answer)).expect("claim"));
    let granted: Vec<usize> =
        answers.enumerate().filter(|(_, claimed)| matches!(claimed, Claimed::Granted(_))).map(|(n, _)| n).collect();
    assert_eq!(granted.len(), 1, "{granted:?}");
    let item = record(bench).await;
    assert_eq!((item.claims, item.node(&gpu()).claim.as_ref()), (1, claims.get(granted[0])));
}

pub(crate) async fn a_stop_is_claimed_only_where_demand_has_not_moved(bench: &mut impl Bench) {
    let seen = demand(bench).await.demand;
    let permit = Permit { claims: 0, demand: Some(seen) };
    demand(bench).await;
    let lost = claim(bench, &gpu(), permit, &claim_of(ClaimKind::Stop, "run-1")).await;
    assert_eq!(lost, Claimed::Lost(record(bench).await), "demand moved");
    let permit = Permit { demand: Some(0), ..permit };
    let lost = claim(bench, &gpu(), permit, &claim_of(ClaimKind::Stop, "run-1")).await;
    assert_eq!(lost, Claimed::Lost(record(bench).await), "read before there was any demand");
    let permit = Permit { demand: Some(2), ..permit };
    let granted = claim(bench, &gpu(), permit, &claim_of(ClaimKind::Stop, "run-1")).await;
    assert_eq!(granted, Claimed::Granted(record(bench).await));
}

pub(crate) async fn a_start_is_claimed_however_demand_moves(bench: &mut impl Bench) {
    let permit = Permit { claims: record(bench).await.claims, demand: None };
    demand(bench).await;
    let granted = claim(bench, &gpu(), permit, &claim_of(ClaimKind::Start, "run-1")).await;
    let Claimed::Granted(item) = granted else { panic!("{granted:?}") };
    assert_eq!((item.demand, item.claims), (1, 1));
}

fn refusal() -> Fault {
    Fault {
        kind: FaultKind::Start,
        class: ErrorClass::Capacity,
        code: "InsufficientInstanceCapacity".to_owned(),
        since: morning(),
        tries: 2,
        retry_at: morning() + minutes(4),
        types: vec![kind("g6.xlarge"), kind("g5.xlarge")],
        never_ready: None,
    }
}

async fn record_answer(bench: &mut impl Bench, by: &str, answer: ClaimAnswer, fault: Option<Fault>) {
    let call = Call::RecordAnswer { pool: voice(), node: gpu(), run: run(by), answer, fault };
    take_recorded(Some(bench.answer(&call).await)).expect("record the answer");
}

pub(crate) async fn an_answer_is_recorded_in_the_claim_and_moves_the_claim_counter(bench: &mut impl Bench) {
    for (n, answer) in
        [ClaimAnswer::Refused, ClaimAnswer::Accepted, ClaimAnswer::AlreadyRunning].into_iter().enumerate()
    {
        let before = record(bench).await.claims;
        let (by, fault) = (format!("run-{n}"), (answer == ClaimAnswer::Refused).then(refusal));
        let open = claim_of(ClaimKind::Start, &by);
        claim(bench, &gpu(), Permit { claims: before, demand: None }, &open).await;
        record_answer(bench, &by, answer.clone(), fault).await;
        let item = record(bench).await;
        let known = item.node(&gpu());
        assert_eq!((item.claims, known.fault), (before + 2, Some(refusal())));
        assert_eq!(known.claim, Some(Claim { answer: Some(answer), ..open }));
    }
}

pub(crate) async fn an_answer_without_a_fault_leaves_the_fault_that_stands(bench: &mut impl Bench) {
    write_facts(bench, vec![(gpu(), Fact::Fault(Some(refusal())))]).await.expect("a fact");
    claim(bench, &gpu(), Permit { claims: 0, demand: None }, &claim_of(ClaimKind::Start, "run-1")).await;
    record_answer(bench, "run-1", ClaimAnswer::Accepted, None).await;
    assert_eq!(record(bench).await.node(&gpu()).fault, Some(refusal()));
}

pub(crate) async fn an_answer_to_a_claim_of_another_run_changes_nothing(bench: &mut impl Bench) {
    record_answer(bench, "run-1", ClaimAnswer::Accepted, Some(refusal())).await;
    assert_eq!(record(bench).await, PoolRecord::default(), "there is no item");
    demand(bench).await;
    let before = record(bench).await;
    record_answer(bench, "run-1", ClaimAnswer::Accepted, Some(refusal())).await;
    assert_eq!(record(bench).await, before, "the node has no claim");
    claim(bench, &gpu(), Permit { claims: 0, demand: None }, &claim_of(ClaimKind::Start, "run-2")).await;
    let before = record(bench).await;
    record_answer(bench, "run-1", ClaimAnswer::Refused, Some(refusal())).await;
    assert_eq!(record(bench).await, before, "the claim is another run's");
}

fn facts() -> Vec<Fact> {
    let launched_at = Some(morning());
    vec![
        Fact::Mark(Some(Mark { at: morning() + minutes(25), launched_at })),
        Fact::Ready(Some(ReadyFact { at: morning() + seconds(61), launched_at, lost_at: None })),
        Fact::Fault(Some(refusal())),
        Fact::Blind(Some(Blind { since: morning(), at: morning() + minutes(5), ticks: 2, told: 0 })),
        Fact::Noise(Some(Noise {
            lines: 7,
            prewarms: 1,
            at: morning() + minutes(20),
            line_times: vec![morning() + minutes(19); 7],
            launched_at: morning(),
            until: morning() + minutes(900),
        })),
        Fact::Boots(Some(Boots { seconds: vec![44, 55] })),
    ]
}

fn removed(fact: &Fact) -> Fact {
    match fact {
        Fact::Mark(_) => Fact::Mark(None),
        Fact::Ready(_) => Fact::Ready(None),
        Fact::Fault(_) => Fact::Fault(None),
        Fact::Blind(_) => Fact::Blind(None),
        Fact::Noise(_) => Fact::Noise(None),
        Fact::Boots(_) => Fact::Boots(None),
    }
}

fn apply(node: &mut NodeRecord, fact: &Fact) {
    match fact.clone() {
        Fact::Mark(mark) => node.mark = mark,
        Fact::Ready(ready) => node.ready = ready,
        Fact::Fault(fault) => node.fault = fault,
        Fact::Blind(blind) => node.blind = blind,
        Fact::Noise(noise) => node.noise = noise,
        Fact::Boots(boots) => node.boots = boots,
    }
}

pub(crate) async fn facts_written_one_by_one_and_at_once_do_not_undo_each_other(bench: &mut impl Bench) {
    claim(bench, &gpu(), Permit { claims: 0, demand: None }, &claim_of(ClaimKind::Start, "run-1")).await;
    let mut expected = demand(bench).await;
    for fact in facts() {
        write_facts(bench, vec![(gpu(), fact.clone())]).await.expect("a fact");
        apply(expected.nodes.get_mut(&gpu()).expect("the node was claimed"), &fact);
        assert_eq!(record(bench).await, expected, "one by one; facts move no counter");
    }
    let both: Vec<_> = facts().into_iter().map(|fact| (other_gpu(), fact)).collect();
    both.iter().for_each(|(node, fact)| apply(expected.nodes.entry(node.clone()).or_default(), fact));
    write_facts(bench, both).await.expect("facts of one node");
    assert_eq!(record(bench).await, expected, "several at once");
    let blind = Fact::Blind(Some(Blind { since: morning(), at: morning() + minutes(10), ticks: 3, told: 1 }));
    let changes = vec![(gpu(), blind), (gpu(), Fact::Mark(None)), (other_gpu(), Fact::Ready(None))];
    changes.iter().for_each(|(node, fact)| apply(expected.nodes.entry(node.clone()).or_default(), fact));
    write_facts(bench, changes).await.expect("facts of two nodes, written and removed");
    assert_eq!(record(bench).await, expected, "written and removed at once");
}

pub(crate) async fn facts_are_removed_one_by_one_and_at_once(bench: &mut impl Bench) {
    let of_both = |facts: Vec<Fact>| facts.into_iter().flat_map(|fact| [(gpu(), fact.clone()), (other_gpu(), fact)]);
    write_facts(bench, of_both(facts()).collect()).await.expect("facts");
    for fact in facts() {
        write_facts(bench, vec![(gpu(), removed(&fact))]).await.expect("a removal");
    }
    let item = record(bench).await;
    assert_eq!(item.nodes.keys().collect::<Vec<_>>(), [&other_gpu()], "nothing is left of the first node");
    for _ in 0..2 {
        write_facts(bench, of_both(facts().iter().map(removed).collect()).collect()).await.expect("removals");
        assert_eq!(record(bench).await, PoolRecord::default(), "to remove what is not there does no harm");
    }
}

pub(crate) async fn a_write_of_no_fact_or_of_one_fact_twice_is_refused(bench: &mut impl Bench) {
    let [mark, ready, ..] = &facts()[..] else { panic!("five facts") };
    let twice = vec![(gpu(), mark.clone()), (gpu(), ready.clone()), (gpu(), removed(mark))];
    let error = write_facts(bench, twice).await.expect_err("a refusal");
    assert_eq!((error.code.as_str(), error.effect), ("ValidationException", TookEffect::No), "{error}");
    let error = write_facts(bench, vec![]).await.expect_err("nothing to write is no write");
    assert_eq!((error.code.as_str(), error.effect), ("ValidationException", TookEffect::No), "{error}");
    assert_eq!(record(bench).await, PoolRecord::default());
}
