//! Laws that the rules keep for every input. Fixed seeds: a failure is the same failure tomorrow.

mod support;

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use reveille::decide::idle::{IdleAction, decide};
use reveille::decide::{Look, Reason, wake};
use reveille::domain::{
    Claim, ClaimAnswer, ClaimKind, Fault, FaultKind, Instant, Mark, NodeRecord, NodeState, Phase, PoolRecord,
    ReadyFact, RunId, Wake, WakeSource,
};
use reveille::error::ErrorClass;
use reveille::observation::{Series, SignalKind, SignalReading, Unread, Use, read_use};
use reveille::policy::{Policy, PoolRules};
use support::*;

fn laws(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(20_261_130), failure_persistence: None, ..Config::default() }
}

// Any look.

fn noon() -> Instant {
    at("12:00")
}

/// Instants from two hours ago to a little ahead, most on a minute, so that boundaries and equal instants are met.
fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![
        3 => (-120_i64..=2).prop_map(|minute| noon() + minutes(minute)),
        1 => (-7200_i64..=60).prop_map(|second| noon() + seconds(second)),
    ]
}

/// One of three launches, so that facts of the same and of other launches are met.
fn launch() -> impl Strategy<Value = Option<Instant>> {
    select(vec![None, Some(at("08:00")), Some(at("11:20")), Some(at("11:52"))])
}

fn state() -> impl Strategy<Value = NodeState> {
    let other = [NodeState::Pending, NodeState::Stopping, NodeState::Stopped, NodeState::Gone];
    prop_oneof![3 => Just(NodeState::Running), 2 => select(other.to_vec())]
}

fn unread() -> impl Strategy<Value = Unread> {
    select(vec![Unread::Failed, Unread::SourceSilent, Unread::Partial, Unread::NoSignals])
}

fn used() -> impl Strategy<Value = Result<Use, Unread>> {
    let seen = (proptest::option::of(instant()), instant(), proptest::bool::weighted(0.2));
    let known = seen.prop_map(|(last_seen, from, open_now)| {
        let last_seen = last_seen.map(|at| at.min(noon()));
        let last_possible = last_seen.map_or(from, |at| at.max(from)).min(noon());
        Ok(Use { last_seen, last_possible, open_now })
    });
    prop_oneof![3 => known, 1 => unread().prop_map(Err)]
}

fn any_claim() -> impl Strategy<Value = Claim> {
    let kind = select(vec![ClaimKind::Start, ClaimKind::Stop]);
    let answer =
        select(vec![None, Some(ClaimAnswer::Accepted), Some(ClaimAnswer::AlreadyRunning), Some(ClaimAnswer::Refused)]);
    (kind, instant(), launch(), 0_i64..900, proptest::option::of(instant()), 1_u32..4, answer).prop_map(
        |(kind, at, launched_at, open, wake, tries, answer)| Claim {
            kind,
            run: RunId("another".to_owned()),
            at,
            launched_at,
            open_until: at + seconds(open),
            wake,
            source: None,
            path: None,
            tries,
            answer,
        },
    )
}

fn any_fault() -> impl Strategy<Value = Fault> {
    (select(vec![FaultKind::Start, FaultKind::Stop]), instant(), 1_u32..4).prop_map(|(kind, retry_at, tries)| Fault {
        kind,
        class: ErrorClass::Permanent,
        code: "OperationNotPermitted".to_owned(),
        since: retry_at - minutes(15),
        tries,
        retry_at,
        types: Vec::new(),
        never_ready: None,
    })
}

fn any_record() -> impl Strategy<Value = NodeRecord> {
    let mark = (instant(), launch()).prop_map(|(at, launched_at)| Mark { at, launched_at });
    let ready = (instant(), launch()).prop_map(|(at, launched_at)| ReadyFact { at, launched_at, lost_at: None });
    use proptest::option::of;
    (of(any_claim()), of(mark), of(ready), of(any_fault())).prop_map(|(claim, mark, ready, fault)| NodeRecord {
        claim,
        mark,
        ready,
        fault,
        ..NodeRecord::default()
    })
}

fn any_look() -> impl Strategy<Value = Look> {
    (
        state(),
        launch(),
        any_record(),
        0_u64..3,
        proptest::option::of(instant()),
        used(),
        proptest::option::of(instant()),
        proptest::option::of(instant()),
    )
        .prop_map(|(state, launched_at, record, demand, wake, used, transition_at, drained_since)| {
            look()
                .with(|look| {
                    look.seen.state = state;
                    (look.seen.launched_at, look.seen.transition_at) = (launched_at, transition_at);
                    (look.record, look.demand, look.wake, look.used) = (record, demand, wake, used);
                    look.drained_since = drained_since;
                })
                .0
        })
}

/// A look that is one step from a stop: running, long ready, marked, quiet.
fn nearly_stopped() -> impl Strategy<Value = Look> {
    (any_look(), instant()).prop_map(|(other, marked)| {
        let mut look = idle_look().marked_at("11:55").demand(other.demand).0;
        look.record.mark = Some(Mark { at: marked, launched_at: look.seen.launched_at });
        (look.record.claim, look.used, look.wake) = (other.record.claim, other.used, other.wake);
        look
    })
}

fn stops_it(action: IdleAction) -> bool {
    match action {
        IdleAction::Stop | IdleAction::ForceStop => true,
        IdleAction::Keep | IdleAction::Mark | IdleAction::PutBack => false,
    }
}

fn shifted(look: &Look, by: TimeDelta) -> Look {
    let mut look = look.clone();
    let move_each = |instants: Vec<&mut Instant>| instants.into_iter().for_each(|at| *at += by);
    move_each(look.seen.launched_at.iter_mut().chain(look.seen.transition_at.iter_mut()).collect());
    move_each(look.wake.iter_mut().chain(look.drained_since.iter_mut()).chain([&mut look.now]).collect());
    if let Ok(used) = look.used.as_mut() {
        move_each(used.last_seen.iter_mut().chain([&mut used.last_possible]).collect());
    }
    let NodeRecord { claim, mark, ready, fault, .. } = &mut look.record;
    if let Some(claim) = claim {
        move_each(claim.launched_at.iter_mut().chain([&mut claim.at, &mut claim.open_until]).collect());
    }
    if let Some(mark) = mark {
        move_each(mark.launched_at.iter_mut().chain([&mut mark.at]).collect());
    }
    if let Some(ready) = ready {
        move_each(ready.launched_at.iter_mut().chain([&mut ready.at]).collect());
    }
    if let Some(fault) = fault {
        move_each(vec![&mut fault.since, &mut fault.retry_at]);
    }
    look
}

proptest! {
    #![proptest_config(laws(500))]

    #[test]
    fn unknown_never_stops_a_running_node(look in any_look(), why in unread()) {
        let look = Look { used: Err(why), ..look };
        let action = decide(&look, &Policy::default()).action;
        prop_assert!(look.seen.state != NodeState::Running || action == IdleAction::Keep, "{action:?}");
    }

    #[test]
    fn only_a_running_node_is_stopped_and_only_a_stopping_one_forced(look in any_look()) {
        match decide(&look, &Policy::default()).action {
            IdleAction::Stop | IdleAction::Mark => prop_assert_eq!(look.seen.state, NodeState::Running),
            IdleAction::ForceStop => prop_assert_eq!(look.seen.state, NodeState::Stopping),
            IdleAction::PutBack => prop_assert_eq!(look.seen.state, NodeState::Stopped),
            IdleAction::Keep => {}
        }
    }

    #[test]
    fn a_wake_newer_than_the_mark_voids_it(look in nearly_stopped(), after in 1_i64..5000) {
        let marked = look.record.mark.as_ref().map_or(look.now, |mark| mark.at);
        let look = Look { wake: Some((marked + seconds(after)).min(look.now)), ..look };
        prop_assume!(look.wake > Some(marked));
        prop_assert_ne!(decide(&look, &Policy::default()).reason, Reason::Idle);
    }

    #[test]
    fn a_wake_within_the_idle_time_is_never_followed_by_a_stop(look in nearly_stopped(), ago in 0_i64..1800) {
        let look = Look { wake: Some(noon() - seconds(ago)), ..look };
        let decision = decide(&look, &Policy::default());
        prop_assert!(!stops_it(decision.action), "{:?}", decision);
    }

    #[test]
    fn an_open_call_is_never_followed_by_a_stop(look in nearly_stopped()) {
        let used = Use { last_seen: Some(noon()), last_possible: noon(), open_now: true };
        let decision = decide(&Look { used: Ok(used), ..look }, &Policy::default());
        prop_assert!(!stops_it(decision.action), "{:?}", decision);
    }

    #[test]
    fn an_idle_stop_has_two_readings_at_least_four_minutes_apart(look in nearly_stopped()) {
        if decide(&look, &Policy::default()).reason == Reason::Idle {
            let mark = look.record.mark.expect("a first reading");
            prop_assert!(look.now - mark.at >= minutes(4));
        }
    }

    #[test]
    fn a_decision_depends_on_nothing_but_its_inputs(look in any_look()) {
        let mut renamed = look.clone();
        renamed.seen.name = Some("another".to_owned());
        renamed.seen.address = None;
        let decision = decide(&look, &Policy::default());
        prop_assert_eq!(decide(&look, &Policy::default()), decision);
        prop_assert_eq!(decide(&renamed, &Policy::default()), decision);
    }

    #[test]
    fn the_hour_of_the_day_decides_nothing(look in any_look(), by in -100_000_i64..100_000) {
        let (here, there) = (decide(&look, &Policy::default()), decide(&shifted(&look, seconds(by)), &Policy::default()));
        prop_assert_eq!((there.action, there.reason), (here.action, here.reason));
        prop_assert_eq!(there.stops_not_before, here.stops_not_before.map(|at| at + seconds(by)));
    }

    #[test]
    fn no_stop_falls_before_the_instant_that_was_told(look in nearly_stopped(), later in 1_i64..3600) {
        let now = decide(&look, &Policy::default());
        let mut then = look.clone();
        then.now += seconds(later);
        let next = decide(&then, &Policy::default());
        if let (Some(told), Reason::Idle) = (now.stops_not_before, next.reason) {
            prop_assert!(then.now >= told, "stopped at {} though told {told} ({:?})", then.now, now);
        }
    }

    #[test]
    fn a_wake_starts_only_what_is_down_or_in_doubt(looks in proptest::collection::vec(any_look(), 0..4), wake in instant()) {
        let (looks, record) = pool_of(looks, wake);
        let decision = wake::decide(&looks, &record, None, &Policy::default(), &PoolRules::default(), noon());
        if let wake::WakeAction::Start(id) = decision.action {
            let look = looks.iter().find(|look| look.seen.id == id).expect("a node of the pool");
            let down = look.phase() == Phase::Stopped;
            let in_doubt = look.seen.state == NodeState::Running && look.record.claim.is_some();
            prop_assert!(down || in_doubt, "{:?} {:?}", decision.reason, look);
        }
    }

    #[test]
    fn no_node_is_started_while_one_is_ready(looks in proptest::collection::vec(any_look(), 1..4), wake in instant()) {
        let (looks, record) = pool_of(looks, wake);
        let decision = wake::decide(&looks, &record, None, &Policy::default(), &PoolRules::default(), noon());
        if looks.iter().any(|look| look.phase() == Phase::Ready) {
            prop_assert_eq!(decision.action, wake::WakeAction::Nothing);
        }
    }
}

/// The laws above would hold of inputs that never lead to a stop, too: these do.
#[test]
fn the_generated_looks_reach_every_action() {
    let mut runner = TestRunner::new(laws(1));
    let mut draw = |strategy: &BoxedStrategy<Look>| strategy.new_tree(&mut runner).expect("a look").current();
    let (any, near) = (any_look().boxed(), nearly_stopped().boxed());
    let looks: Vec<Look> = (0..500).flat_map(|_| [draw(&any), draw(&near)]).collect();
    let count = |action| looks.iter().filter(|look| decide(look, &Policy::default()).action == action).count();
    for action in [IdleAction::Keep, IdleAction::Mark, IdleAction::Stop, IdleAction::ForceStop] {
        assert!(count(action) >= 10, "{action:?}: {}", count(action));
    }
}

/// These looks as one pool, woken at this instant, with one demand counter.
fn pool_of(looks: Vec<Look>, wake: Instant) -> (Vec<Look>, PoolRecord) {
    let demand = looks.first().map_or(0, |look| look.demand);
    let mut record = PoolRecord { demand, wake: Some(Wake::new(wake, WakeSource::Prewarm)), ..PoolRecord::default() };
    let looks: Vec<Look> = looks
        .into_iter()
        .enumerate()
        .map(|(n, mut look)| {
            look.seen.id = id(&format!("i-{n}"));
            look.demand = demand;
            record.nodes.insert(look.seen.id.clone(), look.record.clone());
            look
        })
        .collect();
    (looks, record)
}

// Any points.

fn points() -> impl Strategy<Value = Vec<(Instant, f64)>> {
    let value = prop_oneof![4 => Just(0.0), 1 => Just(1.0), 1 => Just(0.000_5)];
    proptest::collection::btree_map(-50_i64..=0, value, 0..50)
        .prop_map(|points| points.into_iter().map(|(minute, value)| (noon() + minutes(minute), value)).collect())
}

fn any_series() -> impl Strategy<Value = Result<Series, Unread>> {
    let known =
        (points(), proptest::bool::weighted(0.9)).prop_map(|(points, complete)| Ok(Series { points, complete }));
    prop_oneof![9 => known, 1 => unread().prop_map(Err)]
}

fn any_signal() -> impl Strategy<Value = SignalReading> {
    let kind = select(vec![SignalKind::Requests, SignalKind::Open]);
    (kind, any_series(), proptest::option::of(any_series())).prop_map(|(kind, own, alive)| SignalReading {
        kind,
        own,
        alive,
    })
}

fn any_signals() -> impl Strategy<Value = Vec<SignalReading>> {
    proptest::collection::vec(any_signal(), 0..4)
}

fn read(signals: &[SignalReading]) -> Result<Use, Unread> {
    read_use(signals, at("08:00"), noon(), minutes(30))
}

/// What is decided of a marked node with these signals.
fn decided_with(signals: &[SignalReading], look: &Look) -> IdleAction {
    decide(&Look { used: read(signals), ..look.clone() }, &Policy::default()).action
}

proptest! {
    #![proptest_config(laws(500))]

    #[test]
    fn a_request_within_the_idle_time_keeps_the_node_whatever_the_rest_says(
        signals in any_signals(), look in nearly_stopped(), minute in -29_i64..=0,
    ) {
        let bucket = noon() + minutes(minute - 1);
        let busy = SignalReading {
            kind: SignalKind::Requests,
            own: Ok(Series { points: vec![(bucket, 1.0)], complete: false }),
            alive: None,
        };
        let signals: Vec<_> = signals.into_iter().chain([busy]).collect();
        prop_assert!(!stops_it(decided_with(&signals, &look)));
    }

    #[test]
    fn an_open_call_in_the_newest_buckets_keeps_the_node_whatever_the_rest_says(
        signals in any_signals(), look in nearly_stopped(), minute in -3_i64..=0,
    ) {
        let busy = SignalReading {
            kind: SignalKind::Open,
            own: Ok(Series { points: vec![(noon() + minutes(minute), 1.0)], complete: false }),
            alive: None,
        };
        let signals: Vec<_> = signals.into_iter().chain([busy]).collect();
        prop_assert!(!stops_it(decided_with(&signals, &look)));
    }

    #[test]
    fn more_use_never_makes_a_stop_earlier(
        signals in any_signals(), look in nearly_stopped(), which in any::<prop::sample::Index>(), value in 0.001_f64..5.0,
    ) {
        let before = decided_with(&signals, &look);
        let mut busier = signals;
        let mut all: Vec<&mut f64> = busier
            .iter_mut()
            .filter_map(|signal| signal.own.as_mut().ok())
            .flat_map(|series| series.points.iter_mut().map(|(_, value)| value))
            .collect();
        if !all.is_empty() {
            let n = which.index(all.len());
            *all[n] += value;
            let after = decided_with(&busier, &look);
            prop_assert!(!stops_it(after) || stops_it(before), "{before:?} → {after:?}");
        }
    }

    #[test]
    fn a_signal_that_is_not_read_never_makes_a_stop(signals in any_signals(), look in nearly_stopped(), why in unread()) {
        let broken = SignalReading { kind: SignalKind::Requests, own: Err(why), alive: None };
        let signals: Vec<_> = signals.into_iter().chain([broken]).collect();
        prop_assert!(!stops_it(decided_with(&signals, &look)));
    }

    #[test]
    fn use_is_never_ahead_of_now_nor_proved_silence_before_the_launch(signals in any_signals()) {
        if let Ok(used) = read(&signals) {
            prop_assert!(used.last_possible <= noon() && used.last_possible >= at("08:00"));
            prop_assert!(used.last_seen.is_none_or(|at| at <= used.last_possible));
        }
    }
}
