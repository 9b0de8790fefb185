//! The day's faults as the local AWS plays them, and which of them struck.

use crate::wire::wire;
use reveille::domain::{Instant, NodeId};
use reveille::error::{ErrorClass, class_of};
use reveille_soak::draw;
use reveille_soak::faults::{Fault, Kind, Struck, can_strike, pairs};
use reveille_soak::stage::Strike;
use serde_json::{Value, json};

/// As `aws/mod.rs` sets it for all calls but START, STOP and the change of a type.
const ATTEMPTS: u32 = 3;
/// Longer than an attempt may take.
const NO_ANSWER_MS: u32 = 4_500;
/// Long enough to find and kill whoever waits for the answer.
const DEATH_MS: u32 = 1_500;
/// The local AWS knows no fault that stands until an hour of its clock.
const ALL: u32 = 1_000_000;
/// A describe is at most so old: the product takes EC2's word for settled after four minutes.
const MOST_STALE_MS: i64 = 220_000;

/// A refusal that stands, of one node or all, for a while or until it is taken back.
#[derive(Debug)]
struct Standing {
    until: Option<Instant>,
    node: Option<NodeId>,
    call: String,
    code: String,
}

/// A fault as it was given to the local AWS.
#[derive(Debug)]
struct Posted {
    strike: Strike,
    times: u32,
    armed: Option<Fault>,
}

/// The faults that wait.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    armed: Vec<Fault>,
    standing: Vec<Standing>,
    posted: Vec<Posted>,
    /// Those that struck, each counted once.
    pub(super) struck: Struck,
    /// When a node last changed its state: only then can a describe be stale.
    pub(super) moved: Option<Instant>,
}

impl Trouble {
    pub(super) fn arm(&mut self, fault: Fault) {
        if plays(fault.kind, &fault.call) {
            self.armed.push(fault);
        }
    }

    pub(super) fn outage(&mut self, until: Instant, call: String, code: String) {
        self.standing.push(Standing { until: Some(until), node: None, call, code });
    }

    /// STOPs of this node are refused with this code, or no longer.
    pub(super) fn refuse_stops(&mut self, node: NodeId, code: Option<String>) {
        self.standing.retain(|one| one.node.as_ref() != Some(&node));
        let standing = |code| Standing { until: None, node: Some(node), call: "stop".to_owned(), code };
        self.standing.extend(code.map(standing));
    }

    /// The faults for the invocations to come. An armed one is spent by them if it strikes.
    pub(super) fn post(&mut self, now: Instant, seed: u64) -> Vec<Value> {
        self.standing.retain(|one| one.until.is_none_or(|until| now < until));
        let mut faults = Vec::new();
        for one in &self.standing {
            let mut fault = refusal(&one.call, &one.code);
            fault["times"] = json!(ALL);
            if let Some(node) = &one.node {
                fault["match"] = json!(node.as_str());
            }
            let strike = Strike { kind: Kind::Refused, call: one.call.clone() };
            self.posted.push(Posted { strike, times: ALL, armed: None });
            faults.push(fault);
        }
        let since = self.moved.map_or(i64::MAX, |at| (now - at).num_milliseconds());
        let old = draw::between(seed, (now, "stale"), since.min(MOST_STALE_MS), MOST_STALE_MS + 1);
        let (fit, wait): (Vec<Fault>, _) =
            self.armed.drain(..).partition(|fault| fault.kind != Kind::Stale || since < MOST_STALE_MS);
        self.armed = wait;
        for armed in fit {
            let Some(fault) = spoilt(&armed, old) else { continue };
            let times = fault["times"].as_u64().and_then(|times| u32::try_from(times).ok()).unwrap_or(1);
            let strike = Strike { kind: armed.kind, call: armed.call.clone() };
            self.posted.push(Posted { strike, times, armed: Some(armed) });
            faults.push(fault);
        }
        // The message is free: it names the fault.
        faults.iter_mut().enumerate().for_each(|(n, fault)| fault["message"] = json!(name(n)));
        faults
    }

    pub(super) fn is_posted(&self) -> bool {
        !self.posted.is_empty()
    }

    /// Whether one that kills may strike.
    pub(super) fn may_kill(&self) -> bool {
        self.posted.iter().any(|one| one.strike.kind == Kind::Killed)
    }

    /// Whether one that kills has struck.
    pub(super) fn kills(&self, left: &[Value]) -> bool {
        let mut posted = self.posted.iter().enumerate();
        posted.any(|(n, one)| one.strike.kind == Kind::Killed && has_struck(n, one, left))
    }

    /// What struck, by what is left of the faults. The others wait on. One that was to kill counts only if a run died: one
    /// whose run had its answer before was a lost answer.
    pub(super) fn take_struck(&mut self, left: &[Value], died: bool) -> Vec<Strike> {
        let mut strikes = Vec::new();
        for (n, one) in std::mem::take(&mut self.posted).into_iter().enumerate() {
            if has_struck(n, &one, left) {
                if died || one.strike.kind != Kind::Killed {
                    self.struck.add(one.strike.kind, &one.strike.call);
                }
                strikes.push(one.strike);
            } else {
                self.armed.extend(one.armed);
            }
        }
        strikes
    }
}

fn has_struck(n: usize, posted: &Posted, left: &[Value]) -> bool {
    let waits = left.iter().find(|fault| fault["message"] == json!(name(n)));
    waits.is_none_or(|fault| fault["times"] != json!(posted.times))
}

fn name(n: usize) -> String {
    format!("soak-{n}")
}

/// Whether the local AWS can play this.
///
/// * A call that arrives late: a delay of the local AWS lies after the effect.
/// * A part of a log, or of some beats: it has no fault for either.
pub fn plays(kind: Kind, call: &str) -> bool {
    can_strike(kind, call) && kind != Kind::Late && (kind != Kind::Partial || ["activity", "samples"].contains(&call))
}

/// The pairs that are left out here, for people.
pub fn left_out() -> Vec<(Kind, &'static str)> {
    pairs().into_iter().filter(|(kind, call)| !plays(*kind, call)).collect()
}

/// None where it cannot be played.
fn spoilt(fault: &Fault, old_ms: i64) -> Option<Value> {
    let call = fault.call.as_str();
    let attempts = if is_sent_once(call) { 1 } else { ATTEMPTS };
    let with = |more: Value| {
        let mut fault = on_the_wire(call);
        let more = more.as_object().into_iter().flatten();
        more.for_each(|(name, value)| fault[name] = value.clone());
        fault
    };
    if !plays(fault.kind, call) {
        return None;
    }
    Some(match fault.kind {
        Kind::Refused => refusal(call, fault.code.as_deref().unwrap_or("RequestLimitExceeded")),
        Kind::Hangs => with(json!({"code": "InternalError", "delay_ms": NO_ANSWER_MS, "times": attempts})),
        Kind::Lost => with(json!({"after": true, "times": attempts})),
        Kind::Twice => with(json!({"after": true, "times": 1})),
        Kind::Killed => with(json!({"after": true, "delay_ms": DEATH_MS, "times": 1})),
        Kind::Stale => with(json!({"stale_ms": old_ms, "times": 1})),
        Kind::Partial => with(json!({"body": {"status_code": "InternalError"}, "times": 1})),
        Kind::Late => return None,
    })
}

fn refusal(call: &str, code: &str) -> Value {
    let mut fault = on_the_wire(call);
    let is_retried = class_of(code) == ErrorClass::Transient && !is_sent_once(call);
    fault["code"] = json!(code);
    fault["times"] = json!(if is_retried { ATTEMPTS } else { 1 });
    if ["InternalServiceError", "InternalErrorException"].contains(&code) {
        fault["status"] = json!(500);
    }
    fault
}

/// The day's metrics are of one namespace, and the samples of another.
fn on_the_wire(call: &str) -> Value {
    let mut fault = wire(call);
    if call == "activity" {
        fault["match"] = json!("Voice");
    }
    fault
}

fn is_sent_once(call: &str) -> bool {
    ["start", "stop", "resize"].contains(&call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        "2026-11-30T10:00:00Z".parse().unwrap()
    }

    fn fault(kind: Kind, call: &str) -> Fault {
        Fault { kind, call: call.to_owned(), code: None }
    }

    fn with(faults: &[Fault]) -> Trouble {
        let mut trouble = Trouble::default();
        faults.iter().for_each(|fault| trouble.arm(fault.clone()));
        trouble
    }

    #[test]
    fn every_pair_is_played_or_named_as_left_out() {
        let left_out = left_out();
        for (kind, call) in pairs() {
            let is_played = spoilt(&fault(kind, call), 5_000).is_some();
            assert_ne!(is_played, left_out.contains(&(kind, call)), "{kind:?} {call}");
        }
    }

    #[test]
    fn a_fault_that_struck_is_spent_and_one_that_did_not_waits_on() {
        let mut trouble = with(&[fault(Kind::Lost, "claim"), fault(Kind::Lost, "claim"), fault(Kind::Twice, "facts")]);
        let mut left = trouble.post(now(), 1);
        // The local AWS takes one away that is spent, and counts one down that is not yet.
        left.remove(2);
        left[0]["times"] = json!(1);
        let struck: Vec<_> = trouble.take_struck(&left, false).into_iter().map(|one| (one.kind, one.call)).collect();
        assert_eq!(struck, [(Kind::Lost, "claim".to_owned()), (Kind::Twice, "facts".to_owned())]);
        assert_eq!((trouble.post(now(), 1).len(), trouble.struck.total()), (1, 2));
    }

    #[test]
    fn a_fault_that_kills_counts_only_if_a_run_died() {
        for (died, count) in [(true, 1), (false, 0)] {
            let mut trouble = with(&[fault(Kind::Killed, "stop")]);
            trouble.post(now(), 1);
            trouble.take_struck(&[], died);
            assert_eq!(trouble.struck.total(), count, "died: {died}");
        }
    }

    #[test]
    fn an_outage_stands_for_its_time_and_a_stale_look_waits_for_a_change() {
        let mut trouble = with(&[fault(Kind::Stale, "describe")]);
        trouble.outage(now() + chrono::TimeDelta::minutes(5), "beats".to_owned(), "InternalServerError".to_owned());
        let posted = |trouble: &mut Trouble, seconds: i64| {
            let faults = trouble.post(now() + chrono::TimeDelta::seconds(seconds), 1);
            trouble.take_struck(&faults, false);
            faults.len()
        };
        assert_eq!((posted(&mut trouble, 0), posted(&mut trouble, 300)), (1, 0));
        trouble.moved = Some(now() + chrono::TimeDelta::seconds(290));
        assert_eq!(posted(&mut trouble, 300), 1);
    }
}
