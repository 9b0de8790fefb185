//! Demand of callers: capped by the minute, and remembered while a call waits for a node with room.

use crate::bench::{Bench, demand, demanded, id, lease_id, minutes, morning, record, recorded, seconds, voice, wake};
use chrono::TimeDelta;
use reveille::domain::{Gate, GateKeeper, Instant, LeaseId, NodeId, NodeRecord, PoolRecord, Rate, Wake, WakeSource};
use reveille::run::{Call, Cap, Demanded, Waiting, take_demand, take_gate_set, take_recorded};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

fn gpu() -> NodeId {
    id("i-0123456789abcdef0")
}

fn cap(caller: &str, each: u32, all: u32) -> Cap {
    Cap { caller: caller.to_owned(), each, all }
}

fn capped_at(at: Instant, cap: &Cap) -> Call {
    let (pool, wake, waiting) = (voice(), wake(at), Waiting::default());
    Call::RecordDemand { pool, node: None, wake, cap: Some(cap.clone()), waiting }
}

fn capped(cap: &Cap) -> Call {
    capped_at(morning(), cap)
}

fn rate(at: Instant, by: &[(&str, u32)]) -> Rate {
    Rate {
        minute: at.timestamp() / 60,
        all: by.iter().map(|(_, count)| count).sum(),
        by: by.iter().map(|(caller, count)| ((*caller).to_owned(), *count)).collect(),
    }
}

async fn is_too_many(bench: &mut impl Bench, call: &Call) {
    let before = record(bench).await;
    assert_eq!(demanded(bench, call).await, Demanded::TooMany);
    assert_eq!(record(bench).await, before, "nothing is recorded");
}

pub(crate) async fn a_caller_who_wakes_too_often_is_refused_and_the_others_are_not(bench: &mut impl Bench) {
    let (eager, calm) = (cap("b7", 3, 100), cap("b8.iam:role", 3, 100));
    for n in 1..=3 {
        let item = recorded(bench.answer(&capped(&eager)).await);
        let expected = PoolRecord {
            demand: n.into(),
            wake: Some(wake(morning())),
            rate: Some(rate(morning(), &[("b7", n)])),
            ..PoolRecord::default()
        };
        assert_eq!(item, expected);
        assert_eq!(record(bench).await, expected);
    }
    is_too_many(bench, &capped(&eager)).await;
    let item = recorded(bench.answer(&capped(&calm)).await);
    assert_eq!((item.demand, item.rate), (4, Some(rate(morning(), &[("b7", 3), ("b8.iam:role", 1)]))));
    is_too_many(bench, &capped(&eager)).await;
}

pub(crate) async fn all_callers_together_are_capped_whoever_asks(bench: &mut impl Bench) {
    for caller in ["b1", "b2", "b3"] {
        recorded(bench.answer(&capped(&cap(caller, 3, 3))).await);
    }
    for caller in ["b1", "b4"] {
        is_too_many(bench, &capped(&cap(caller, 3, 3))).await;
    }
    let raised = recorded(bench.answer(&capped(&cap("b1", 3, 4))).await);
    assert_eq!(raised.rate, Some(rate(morning(), &[("b1", 2), ("b2", 1), ("b3", 1)])), "a cap that was raised");
}

pub(crate) async fn the_next_minute_is_counted_anew(bench: &mut impl Bench) {
    let (cap, last) = (cap("b1", 1, 1), TimeDelta::milliseconds(59_999));
    recorded(bench.answer(&capped(&cap)).await);
    is_too_many(bench, &capped_at(morning() + last, &cap)).await;
    let next = morning() + minutes(1);
    let item = recorded(bench.answer(&capped_at(next, &cap)).await);
    assert_eq!((item.demand, item.rate, item.wake), (2, Some(rate(next, &[("b1", 1)])), Some(wake(next))));
    is_too_many(bench, &capped_at(next + last, &cap)).await;
    let item = recorded(bench.answer(&capped_at(next + minutes(60), &cap)).await);
    assert_eq!(item.rate, Some(rate(next + minutes(60), &[("b1", 1)])), "after an hour of silence");
}

pub(crate) async fn a_wake_of_the_minute_before_is_counted_in_the_newer_one(bench: &mut impl Bench) {
    let next = morning() + minutes(1);
    recorded(bench.answer(&capped_at(next, &cap("b1", 2, 2))).await);
    let item = recorded(bench.answer(&capped_at(morning() + seconds(59), &cap("b2", 2, 2))).await);
    assert_eq!((item.demand, item.rate), (2, Some(rate(next, &[("b1", 1), ("b2", 1)]))));
    is_too_many(bench, &capped_at(morning() + seconds(59), &cap("b3", 2, 2))).await;
}

pub(crate) async fn wakes_at_once_as_a_minute_ends_are_all_recorded(bench: &mut impl Bench) {
    let next = morning() + minutes(1);
    let call = |n: usize| capped_at(if n.is_multiple_of(2) { morning() } else { next }, &cap("b1", 600, 1200));
    let calls: Vec<Call> = (0..80).map(call).collect();
    let counted: BTreeSet<u64> =
        bench.answers(&calls).await.into_iter().map(|answer| recorded(answer).demand).collect();
    assert_eq!(counted, (1..=80).collect());
    let rate = record(bench).await.rate.expect("a count");
    assert_eq!((rate.minute, rate.by.get("b1")), (next.timestamp() / 60, Some(&rate.all)));
    assert!((40..=80).contains(&rate.all), "those of the newer minute, and the late ones: {rate:?}");
}

pub(crate) async fn two_hundred_wakes_at_once_are_all_counted(bench: &mut impl Bench) {
    let calls: Vec<Call> = (0..200).map(|n| capped(&cap(&format!("b{}", n % 4), 600, 1200))).collect();
    let counted: BTreeSet<u64> =
        bench.answers(&calls).await.into_iter().map(|answer| recorded(answer).demand).collect();
    assert_eq!(counted, (1..=200).collect(), "each answer is an item of its own");
    let item = record(bench).await;
    let each = rate(morning(), &[("b0", 50), ("b1", 50), ("b2", 50), ("b3", 50)]);
    assert_eq!((item.demand, item.rate), (200, Some(each)));
}

pub(crate) async fn caps_are_kept_to_the_wake_however_many_come_at_once(bench: &mut impl Bench) {
    let calls: Vec<Call> = (0..60).map(|n| capped(&cap(&format!("b{}", n % 2), 20, 35))).collect();
    let answers = bench.answers(&calls).await.into_iter();
    let answers = answers.map(|answer| take_demand(Some(answer)).expect("record demand"));
    let (taken, refused): (Vec<Demanded>, Vec<Demanded>) =
        answers.partition(|answer| matches!(answer, Demanded::Recorded(_)));
    assert_eq!(taken.len(), 35);
    assert!(refused.iter().all(|answer| *answer == Demanded::TooMany), "{refused:?}");
    let item = record(bench).await;
    let rate = item.rate.expect("a count");
    assert_eq!((item.demand, rate.all, rate.by.values().sum::<u32>()), (35, 35, 35));
    assert!(rate.by.values().all(|count| *count <= 20), "{rate:?}");
}

pub(crate) async fn lines_of_a_log_are_never_counted(bench: &mut impl Bench) {
    let eager = cap("b1", 1, 1);
    recorded(bench.answer(&capped(&eager)).await);
    let line = Wake::new(morning(), WakeSource::LogLine);
    let call =
        Call::RecordDemand { pool: voice(), node: None, wake: line.clone(), cap: None, waiting: Waiting::default() };
    for n in 2..=4 {
        let item = recorded(bench.answer(&call).await);
        let expected = (n, Some(line.clone()), Some(rate(morning(), &[("b1", 1)])));
        assert_eq!((item.demand, item.line_wake, item.rate), expected, "taken beside a full count");
    }
    is_too_many(bench, &capped(&eager)).await;
}

async fn set_gate(bench: &mut impl Bench, gate: Option<Gate>) {
    let call = Call::SetGate { pool: voice(), by: GateKeeper::Budget, gate, at: morning() };
    assert!(matches!(take_gate_set(Some(bench.answer(&call).await)), Ok(Some(_))));
}

pub(crate) async fn a_closed_gate_is_told_before_a_full_count(bench: &mut impl Bench) {
    let full = cap("b1", 1, 1);
    recorded(bench.answer(&capped(&full)).await);
    let gate = Gate {
        by: GateKeeper::Budget,
        since: morning(),
        reason: "spent".to_owned(),
        amount: None,
        until: None,
        drain: false,
    };
    set_gate(bench, Some(gate)).await;
    let answers = [demanded(bench, &capped(&full)).await, demanded(bench, &capped(&cap("b2", 9, 9))).await];
    let item = record(bench).await;
    assert_eq!(answers, [Demanded::Refused(item.clone()), Demanded::Refused(item.clone())]);
    assert_eq!((item.demand, item.rate), (1, Some(rate(morning(), &[("b1", 1)]))), "nor is it counted");
    set_gate(bench, None).await;
    is_too_many(bench, &capped(&full)).await;
}

pub(crate) async fn a_wake_keeps_who_asked_for_what_and_when(bench: &mut impl Bench) {
    let known = Wake {
        at: morning() + TimeDelta::milliseconds(1_250),
        source: WakeSource::LogLine,
        path: Some("/v1/calls".to_owned()),
        caller: Some("okhttp".to_owned()),
        line_at: Some(morning() - seconds(3)),
    };
    let call = Wake { source: WakeSource::Call, caller: Some("iam:role/app".to_owned()), ..known.clone() };
    let rows = [("a log line", None, known.clone()), ("a call", None, call.clone()), ("a node", Some(gpu()), call)];
    for (name, node, wake) in rows {
        let (pool, waiting) = (voice(), Waiting::default());
        let call = Call::RecordDemand { pool, node: node.clone(), wake: wake.clone(), cap: None, waiting };
        let item = recorded(bench.answer(&call).await);
        assert_eq!(record(bench).await, item, "{name}");
        let kept = match node {
            Some(node) => item.node(&node).wake,
            None if wake.source.is_log() => item.line_wake,
            None => item.wake,
        };
        assert_eq!(kept, Some(wake), "{name}");
    }
}

/// A wake by a call that finds no room.
fn waits(call: Option<(&str, Instant)>, over: &[&str]) -> Call {
    Call::RecordDemand {
        pool: voice(),
        node: None,
        wake: Wake::new(morning(), WakeSource::Call),
        cap: None,
        waiting: Waiting {
            call: call.map(|(word, until)| (lease_id(word), until)),
            over: over.iter().map(|word| lease_id(word)).collect(),
        },
    }
}

fn waiting(entries: &[(&str, Instant)]) -> BTreeMap<LeaseId, Instant> {
    entries.iter().map(|(word, until)| (lease_id(word), *until)).collect()
}

pub(crate) async fn a_call_that_waits_is_kept_until_its_wait_is_cleared(bench: &mut impl Bench) {
    let at = |n| morning() + seconds(n);
    let rows = [
        ("one waits", waits(Some(("call-1", at(180))), &[]), waiting(&[("call-1", at(180))])),
        ("another", waits(Some(("call.2_b", at(185))), &[]), waiting(&[("call-1", at(180)), ("call.2_b", at(185))])),
        (
            "the first asks again",
            waits(Some(("call-1", at(240))), &[]),
            waiting(&[("call-1", at(240)), ("call.2_b", at(185))]),
        ),
        ("no call", waits(None, &[]), waiting(&[("call-1", at(240)), ("call.2_b", at(185))])),
        (
            "a third, and one is over",
            waits(Some(("call-3", at(300))), &["call.2_b"]),
            waiting(&[("call-1", at(240)), ("call-3", at(300))]),
        ),
        (
            "one that is not there is over",
            waits(None, &["call-9"]),
            waiting(&[("call-1", at(240)), ("call-3", at(300))]),
        ),
        ("all are over", waits(None, &["call-1", "call-3"]), waiting(&[])),
    ];
    for (n, (name, call, expected)) in rows.into_iter().enumerate() {
        let item = recorded(bench.answer(&call).await);
        assert_eq!((item.demand, &item.waiting), (n as u64 + 1, &expected), "{name}");
        assert_eq!(record(bench).await, item, "{name}");
    }
}

pub(crate) async fn a_call_that_asks_again_as_its_wait_is_over_waits(bench: &mut impl Bench) {
    recorded(bench.answer(&waits(Some(("call-1", morning())), &[])).await);
    let later = morning() + seconds(180);
    let item = recorded(bench.answer(&waits(Some(("call-1", later)), &["call-1"])).await);
    assert_eq!(item.waiting, waiting(&[("call-1", later)]));
}

pub(crate) async fn a_call_that_is_refused_does_not_wait(bench: &mut impl Bench) {
    let full = cap("b1", 1, 1);
    recorded(bench.answer(&capped(&full)).await);
    let Call::RecordDemand { pool, node, wake, waiting, .. } = waits(Some(("call-1", morning() + seconds(180))), &[])
    else {
        panic!("a wake")
    };
    is_too_many(bench, &Call::RecordDemand { pool, node, wake, cap: Some(full), waiting }).await;
}

pub(crate) async fn a_wait_that_cannot_be_read_is_listed_and_hides_nothing(bench: &mut impl Bench) {
    recorded(bench.answer(&waits(Some(("call-1", morning() + seconds(180))), &[])).await);
    let before = record(bench).await;
    let too_late = json!("+262142-12-31T23:59:59Z");
    for (name, value) in [("wait#call-2", json!("soon")), ("wait#call-3", json!(7)), ("wait#call-4", too_late)] {
        bench.write_unreadable(name, value).await;
    }
    let mut item = record(bench).await;
    item.unread.sort();
    let unread = ["wait#call-2", "wait#call-3", "wait#call-4"].map(str::to_owned).to_vec();
    assert_eq!(item, PoolRecord { unread, ..before });
    assert_eq!(demand(bench).await.demand, 2, "and no wake is refused for it");
    let named = Call::RecordDemand {
        pool: voice(),
        node: Some(gpu()),
        wake: wake(morning()),
        cap: None,
        waiting: Waiting::default(),
    };
    let item = recorded(bench.answer(&named).await);
    assert_eq!(item.node(&gpu()), NodeRecord { wake: Some(wake(morning())), ..NodeRecord::default() });
}

pub(crate) async fn a_call_that_hangs_up_waits_no_more_and_changes_nothing_else(bench: &mut impl Bench) {
    let call = lease_id("call-1");
    let end = Call::StopWaiting { pool: voice(), id: call.clone() };
    take_recorded(Some(bench.answer(&end).await)).expect("no item is no wait");
    assert_eq!(record(bench).await, PoolRecord::default(), "and none is made");
    let waiting = Waiting { call: Some((call.clone(), morning() + minutes(3))), over: Vec::new() };
    let wake = wake(morning());
    bench.answer(&Call::RecordDemand { pool: voice(), node: None, wake, cap: None, waiting }).await;
    let mut expected = record(bench).await;
    assert!(expected.waiting.contains_key(&call));
    take_recorded(Some(bench.answer(&end).await)).expect("the end of a wait");
    take_recorded(Some(bench.answer(&end).await)).expect("twice is once");
    expected.waiting.remove(&call);
    assert_eq!(record(bench).await, expected);
}
