//! The two decisions that are made most, on the inputs they are made on most.

use chrono::TimeDelta;
use reveille::decide::idle::{self, IdleAction};
use reveille::decide::wake::{self, WakeAction};
use reveille::decide::{Look, Readiness};
use reveille::domain::{
    Instant, NodeId, NodeRecord, NodeSeen, NodeState, PoolName, PoolRecord, ReadyFact, TagHold, Wake, WakeSource,
};
use reveille::observation::{Unread, Use};
use reveille::policy::{Policy, PoolRules};
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;

pub(crate) fn now() -> Instant {
    "2026-11-30T12:00:00Z".parse().expect("a date")
}

/// The idle rule on a running node.
pub(crate) struct Idle(Look, Policy);

/// Running and ready since eleven, with a request two minutes ago: the rule goes down to the use.
pub(crate) fn idle() -> Idle {
    let seen_at = now() - TimeDelta::minutes(2);
    let used = Use { last_seen: Some(seen_at), last_possible: seen_at, open_now: false };
    Idle(Look { used: Ok(used), ..look(NodeState::Running) }, Policy::default())
}

impl Idle {
    pub(crate) fn decide(&self) -> Result<(), Box<dyn Error>> {
        let decision = black_box(idle::decide(black_box(&self.0), &self.1));
        if decision.action == IdleAction::Keep { Ok(()) } else { Err(format!("{decision:?}").into()) }
    }
}

/// The wake rule on a sleeping node.
pub(crate) struct Wakes(Vec<Look>, PoolRecord, Policy, PoolRules);

/// Stopped, and woken this second.
pub(crate) fn wake() -> Wakes {
    let path = Some("/wake".to_owned());
    let wake = Wake { at: now(), source: WakeSource::Prewarm, path, caller: None, line_at: Some(now()) };
    let record = PoolRecord { demand: 1, wake: Some(wake), ..PoolRecord::default() };
    let look = Look { wake: Some(now()), wake_source: Some(WakeSource::Prewarm), ..look(NodeState::Stopped) };
    Wakes(vec![look], record, Policy::default(), PoolRules::default())
}

impl Wakes {
    pub(crate) fn decide(&self) -> Result<(), Box<dyn Error>> {
        let Self(looks, record, policy, rules) = self;
        let decision = black_box(wake::decide(black_box(looks), record, None, policy, rules, now()));
        match decision.action {
            WakeAction::Start(_) => Ok(()),
            WakeAction::Nothing | WakeAction::StartAs(..) => Err(format!("{decision:?}").into()),
        }
    }
}

/// A node as EC2 shows it, launched at eleven and ready a minute later.
pub(crate) fn look(state: NodeState) -> Look {
    let launched_at = Some(now() - TimeDelta::minutes(60));
    let ready = ReadyFact { at: now() - TimeDelta::minutes(59), launched_at, lost_at: None };
    let seen = NodeSeen {
        id: NodeId::new("i-0123456789abcdef0").expect("an id"),
        name: Some("gpu-1".to_owned()),
        pool: PoolName::new("voice").expect("a pool"),
        tags: BTreeMap::new(),
        state,
        launched_at,
        state_reason: None,
        transition_at: None,
        address: Some("10.0.0.5".to_owned()),
        spot: false,
        instance_type: None,
        public_address: None,
    };
    Look {
        wake_path: None,
        seen,
        record: NodeRecord { ready: Some(ready), ..NodeRecord::default() },
        demand: 1,
        wake: None,
        wake_source: None,
        used: Err(Unread::NoSignals),
        now: now(),
        drained_since: None,
        observes_calls: true,
        types: Vec::new(),
        readiness: Readiness::Unknown,
        tag_hold: TagHold::None,
        warm: false,
        reserve: false,
    }
}
