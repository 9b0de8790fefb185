//! The gate of a pool: closed, it takes no wake; a person's is a person's.

use crate::bench::{
    Bench, any_demand, claim, claim_of, demand, demanded, id, minutes, morning, pool, record, seconds, voice, wake,
    write_facts,
};
use chrono::TimeDelta;
use reveille::domain::{
    ClaimKind, Gate, GateKeeper, Instant, Mark, NodeId, PoolName, PoolRecord, Usd, Wake, WakeSource,
};
use reveille::run::{Call, Claimed, Demanded, Fact, Permit, take_gate_set, take_ledger};
use std::collections::BTreeSet;

fn gpu() -> NodeId {
    id("i-0123456789abcdef0")
}

/// The budget's gate, to the end of the month.
fn spent() -> Gate {
    Gate {
        by: GateKeeper::Budget,
        since: morning(),
        reason: "the budget of $20.00 for 2026-11 is spent ($20.40)".to_owned(),
        amount: Some(Usd::from_micro(20_000_000)),
        until: Some(morning() + minutes(16 * 60)),
        drain: false,
    }
}

/// A gate that only a person opens.
fn held() -> Gate {
    Gate { by: GateKeeper::Person, reason: "maintenance".to_owned(), until: None, drain: true, ..spent() }
}

fn held_until(until: Instant) -> Gate {
    Gate { until: Some(until), ..held() }
}

async fn set(bench: &mut impl Bench, pool: &PoolName, gate: Option<Gate>, at: Instant) -> PoolRecord {
    let by = gate.as_ref().map_or(GateKeeper::Budget, |gate| gate.by);
    let call = Call::SetGate { pool: pool.clone(), by, gate, at };
    let before = item(bench, pool).await;
    if let Some(told) = take_gate_set(Some(bench.answer(&call).await)).expect("set the gate") {
        assert_eq!(told, before, "what stood before is told");
    }
    item(bench, pool).await
}

/// The gate of the pool `voice` is set now.
async fn set_gate(bench: &mut impl Bench, gate: Option<Gate>) -> PoolRecord {
    let now = bench.now().await;
    set(bench, &voice(), gate, now).await
}

async fn item(bench: &mut impl Bench, pool: &PoolName) -> PoolRecord {
    let call = Call::ReadLedger { pools: BTreeSet::from([pool.clone()]) };
    take_ledger(Some(bench.answer(&call).await)).expect("read ledger").remove(pool).expect("an item for each pool")
}

pub(crate) async fn a_closed_gate_refuses_every_wake_and_nothing_is_written(bench: &mut impl Bench) {
    let rows = [
        ("a spent budget's", "voice", spent()),
        ("a person's for good", "batch", held()),
        ("a person's for a second more", "other", held_until(morning() + seconds(1))),
    ];
    for (name, whose, gate) in rows {
        let pool = pool(whose);
        let first = Call::RecordDemand {
            pool: pool.clone(),
            node: None,
            wake: wake(morning()),
            cap: None,
            waiting: reveille::run::Waiting::default(),
        };
        demanded(bench, &first).await;
        let closed = set(bench, &pool, Some(gate.clone()), morning()).await;
        assert_eq!(closed.gate, Some(gate), "{name}");
        let line = Wake::new(morning(), WakeSource::LogLine);
        let wakes = [
            ("a caller", None, wake(morning())),
            ("a log line", None, line.clone()),
            ("a caller who names a node", Some(gpu()), wake(morning())),
            ("a log line that names a node", Some(gpu()), line),
        ];
        for (who, node, wake) in wakes {
            let call = Call::RecordDemand {
                pool: pool.clone(),
                node,
                wake,
                cap: None,
                waiting: reveille::run::Waiting::default(),
            };
            assert_eq!(demanded(bench, &call).await, Demanded::Refused(closed.clone()), "{name}, {who}");
        }
        assert_eq!(item(bench, &pool).await, closed, "{name}");
    }
}

pub(crate) async fn the_gate_of_one_pool_is_not_another_pools(bench: &mut impl Bench) {
    set(bench, &pool("batch"), Some(held()), morning()).await;
    let answered = demanded(bench, &any_demand(morning())).await;
    assert_eq!(answered, Demanded::Recorded(record(bench).await));
}

/// What a wake of now meets where the gate's end is a minute after the morning.
async fn wake_after(bench: &mut impl Bench, time: TimeDelta) -> Demanded {
    set_gate(bench, Some(held_until(morning() + minutes(1)))).await;
    bench.pass(time).await;
    let call = any_demand(bench.now().await);
    demanded(bench, &call).await
}

pub(crate) async fn a_gate_is_closed_to_the_second_before_its_end(bench: &mut impl Bench) {
    let answered = wake_after(bench, seconds(59)).await;
    assert_eq!(answered, Demanded::Refused(record(bench).await));
}

pub(crate) async fn a_gate_takes_wakes_from_its_end_on(bench: &mut impl Bench) {
    let answered = wake_after(bench, minutes(1)).await;
    let item = record(bench).await;
    assert_eq!(
        (item.demand, item.gate.is_some()),
        (1, true),
        "the end itself counts as passed; the gate stays written"
    );
    assert_eq!(answered, Demanded::Recorded(item));
    bench.pass(minutes(1)).await;
    assert_eq!(demand(bench).await.demand, 2, "long after");
}

pub(crate) async fn a_gate_takes_wakes_in_the_very_second_after_its_end(bench: &mut impl Bench) {
    let answered = wake_after(bench, minutes(1) + TimeDelta::milliseconds(400)).await;
    assert_eq!(answered, Demanded::Recorded(record(bench).await));
}

pub(crate) async fn the_end_of_a_gate_is_held_to_the_instant_of_the_call(bench: &mut impl Bench) {
    let end = morning() + minutes(1);
    set_gate(bench, Some(held_until(end))).await;
    let answered = demanded(bench, &any_demand(end)).await;
    assert_eq!(answered, Demanded::Recorded(record(bench).await), "a wake that is recorded as of the end");
    let replaced = set(bench, &voice(), Some(spent()), end).await;
    assert_eq!(replaced.gate, Some(spent()), "a gate that is set as of the end");
}

pub(crate) async fn a_gate_is_closed_replaced_and_opened_and_each_moves_the_claim_counter(bench: &mut impl Bench) {
    demand(bench).await;
    write_facts(bench, vec![(gpu(), Fact::Mark(Some(Mark { at: morning(), launched_at: None })))])
        .await
        .expect("a fact");
    let before = record(bench).await;
    let drains = Gate { drain: true, reason: "spent twice".to_owned(), ..spent() };
    let steps = [
        ("open already", None),
        ("closed", Some(spent())),
        ("replaced", Some(drains)),
        ("closed without an end", Some(Gate { until: None, ..spent() })),
        ("opened", None),
        ("closed again", Some(spent())),
    ];
    for (n, (name, gate)) in steps.into_iter().enumerate() {
        let expected = PoolRecord { gate: gate.clone(), claims: n as u64 + 1, ..before.clone() };
        assert_eq!(set_gate(bench, gate).await, expected, "{name}");
    }
}

pub(crate) async fn a_gate_that_was_opened_takes_wakes_again(bench: &mut impl Bench) {
    set_gate(bench, Some(spent())).await;
    let closed = demanded(bench, &any_demand(morning())).await;
    assert!(matches!(closed, Demanded::Refused(_)), "{closed:?}");
    set_gate(bench, None).await;
    assert_eq!(demand(bench).await.demand, 1);
}

pub(crate) async fn a_claim_that_was_decided_on_the_gate_before_is_lost(bench: &mut impl Bench) {
    for gate in [Some(spent()), None] {
        let before = Permit { claims: record(bench).await.claims, demand: None };
        let now = set_gate(bench, gate.clone()).await;
        let late = claim(bench, &gpu(), before, &claim_of(ClaimKind::Start, "run-1")).await;
        assert_eq!(late, Claimed::Lost(now.clone()), "{gate:?}");
        let permit = Permit { claims: now.claims, demand: None };
        let granted = claim(bench, &gpu(), permit, &claim_of(ClaimKind::Start, "run-2")).await;
        assert_eq!(granted, Claimed::Granted(record(bench).await), "{gate:?}");
    }
}

pub(crate) async fn a_persons_gate_is_neither_replaced_nor_opened_before_its_end(bench: &mut impl Bench) {
    let ahead = held_until(morning() + seconds(1));
    for (name, whose, gate) in [("for good", "voice", held()), ("for a second more", "batch", ahead)] {
        let standing = set(bench, &pool(whose), Some(gate), morning()).await;
        for change in [Some(spent()), None] {
            let after = set(bench, &pool(whose), change.clone(), morning()).await;
            assert_eq!(after, standing, "{name}: {change:?} writes nothing and moves no counter");
        }
    }
}

pub(crate) async fn a_person_opens_and_replaces_any_gate(bench: &mut impl Bench) {
    for (whose, standing) in [("voice", spent()), ("batch", held())] {
        set(bench, &pool(whose), Some(standing), morning()).await;
        let other = Gate { reason: "a demonstration is over".to_owned(), ..held() };
        for (n, gate) in [(2, Some(other)), (3, None)] {
            let call = Call::SetGate { pool: pool(whose), by: GateKeeper::Person, gate: gate.clone(), at: morning() };
            assert!(matches!(take_gate_set(Some(bench.answer(&call).await)), Ok(Some(_))), "{whose}");
            let now = item(bench, &pool(whose)).await;
            assert_eq!((now.gate, now.claims), (gate, n), "{whose}: the claim counter moves");
        }
    }
}

pub(crate) async fn a_persons_gate_whose_end_has_passed_is_replaced_and_opened(bench: &mut impl Bench) {
    let end = morning() + minutes(1);
    let rows = [("replaced at its end", "voice", Some(spent())), ("opened at its end", "batch", None)];
    for (_, whose, _) in &rows {
        set(bench, &pool(whose), Some(held_until(end)), morning()).await;
    }
    bench.pass(minutes(1)).await;
    for (name, whose, change) in rows {
        let after = set(bench, &pool(whose), change.clone(), end).await;
        assert_eq!((after.gate, after.claims), (change, 2), "{name}");
    }
}
