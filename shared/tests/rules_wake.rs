//! The wake rule, row by row: every reason, and both sides of every boundary. It is noon; a wake stands for 60 minutes, and
//! two wakes were counted so far.

mod support;

use reveille::decide::wake::{WakeAction, decide, is_for_wake, nodes_for_calls};
use reveille::decide::{Look, Question, Readiness, Reason};
use reveille::domain::{ClaimAnswer, ClaimKind, FaultKind, Gate, GateKeeper, NodeState, PoolRecord, Wake, WakeSource};
use reveille::policy::{Policy, PoolRules};
use support::*;

struct Row {
    name: &'static str,
    wake: Option<&'static str>,
    named: Option<&'static str>,
    looks: Vec<LookBuilder>,
    starts: Option<&'static str>,
    reason: Reason,
    gate: Option<Gate>,
}

impl Row {
    fn behind(self, gate: Gate) -> Self {
        Self { gate: Some(gate), ..self }
    }

    fn woken_at(self, clock: &'static str) -> Self {
        Self { wake: Some(clock), ..self }
    }

    fn never_woken(self) -> Self {
        Self { wake: None, ..self }
    }

    /// The wake named this node.
    fn named(self, node: &'static str) -> Self {
        Self { named: Some(node), ..self }
    }

    fn decided(&self) -> (Reason, Option<String>) {
        let looks: Vec<Look> = self.looks.iter().map(|look| look.0.clone()).collect();
        let mut record = PoolRecord { demand: 2, gate: self.gate.clone(), ..PoolRecord::default() };
        for look in &looks {
            record.nodes.insert(look.seen.id.clone(), look.record.clone());
        }
        let wake = self.wake.map(|clock| Wake::new(at(clock), WakeSource::Prewarm));
        let target = self.named.map(id);
        match &target {
            Some(node) => record.nodes.entry(node.clone()).or_default().wake = wake,
            None => record.wake = wake,
        }
        let decision = decide(&looks, &record, target.as_ref(), &Policy::default(), &PoolRules::default(), at("12:00"));
        let started = match decision.action {
            WakeAction::Start(id) => Some(id.to_string()),
            WakeAction::StartAs(id, kind) => Some(format!("{id} as {kind}")),
            WakeAction::Nothing => None,
        };
        (decision.reason, started)
    }
}

/// Woken a minute ago.
fn row(name: &'static str, looks: impl IntoIterator<Item = LookBuilder>, reason: Reason) -> Row {
    Row { name, wake: Some("11:59"), named: None, looks: looks.into_iter().collect(), starts: None, reason, gate: None }
}

fn starts(name: &'static str, node: &'static str, looks: impl IntoIterator<Item = LookBuilder>, reason: Reason) -> Row {
    Row { starts: Some(node), ..row(name, looks, reason) }
}

fn asleep(node_id: &str) -> LookBuilder {
    look_at(node(node_id)).demand(2)
}

fn ready(node_id: &str) -> LookBuilder {
    asleep(node_id).running_since("11:00").ready_at("11:01")
}

/// Running, with a STOP claim from before the newest wake.
fn stop_claimed(node_id: &str, clock: &str) -> LookBuilder {
    ready(node_id).claimed(ClaimKind::Stop, clock)
}

/// Asleep, with a START claim of this wake.
fn start_claimed(node_id: &str, clock: &str) -> LookBuilder {
    asleep(node_id).claimed(ClaimKind::Start, clock)
}

fn wishes() -> Vec<Row> {
    use Reason::{NotWanted, Wanted};
    let by_hand = |clock: &str| asleep("i-a").stopped_by_hand_at(clock);
    vec![
        row("never woken", [asleep("i-a")], NotWanted).never_woken(),
        row("woken exactly the wish time ago", [asleep("i-a")], NotWanted).woken_at("11:00"),
        starts("woken a second less than the wish time ago", "i-a", [asleep("i-a")], Wanted).woken_at("11:00:01"),
        starts("woken by a clock that is ahead", "i-a", [asleep("i-a")], Wanted).woken_at("12:05"),
        row(
            "a stop decision has seen the wake",
            [asleep("i-a").claimed(ClaimKind::Stop, "11:59:30").claim(|claim| claim.wake = Some(at("11:59")))],
            NotWanted,
        ),
        starts(
            "the wake is newer than the stop decision",
            "i-a",
            [asleep("i-a").claimed(ClaimKind::Stop, "11:30")],
            Wanted,
        ),
        row("stopped by hand since the wake", [by_hand("11:59:01")], NotWanted),
        starts("stopped by hand at the instant of the wake", "i-a", [by_hand("11:59")], Wanted),
        starts("stopped by hand before the wake", "i-a", [by_hand("11:58")], Wanted),
        starts(
            "stopped by us since the wake, with an older demand in view",
            "i-a",
            [by_hand("11:59:30").claimed(ClaimKind::Stop, "11:58")],
            Wanted,
        ),
        row(
            "stopped by hand since the wake, and our claim is of an earlier launch",
            [by_hand("11:59:30").claimed(ClaimKind::Stop, "08:00").claim(|claim| {
                claim.launched_at = Some(at("05:00"));
            })],
            NotWanted,
        ),
        starts(
            "our own STOP landed just after the wake, and the START that replaced its claim was refused",
            "i-a",
            [by_hand("11:59:30").claimed(ClaimKind::Start, "11:59:40").answered(ClaimAnswer::Refused)],
            Wanted,
        ),
        row(
            "stopped by hand after our START of this wake",
            [by_hand("11:59:50").claimed(ClaimKind::Start, "11:59:10").claim(|claim| claim.launched_at = None)],
            NotWanted,
        ),
        starts(
            "stopped since the wake for a cause nobody asked for",
            "i-a",
            [by_hand("11:59:30").with(|look| look.seen.state_reason = Some(state_reason("Server.InternalError")))],
            Wanted,
        ),
        starts(
            "stopped by hand, EC2 tells no time",
            "i-a",
            [by_hand("11:59:30").with(|look| look.seen.transition_at = None)],
            Wanted,
        ),
    ]
}

fn met() -> Vec<Row> {
    use Reason::{AlreadyReady, AlreadyStarting, NoNode};
    let running = || asleep("i-a").running_since("11:55");
    vec![
        row("an empty pool", [], NoNode),
        row("every node is terminated", [asleep("i-a").state(NodeState::Gone)], NoNode),
        row("ready", [ready("i-a")], AlreadyReady),
        row("one ready beside one asleep", [asleep("i-a"), ready("i-b")], AlreadyReady),
        row("one ready beside one starting", [running(), ready("i-b")], AlreadyReady),
        row(
            "a START found it running",
            [ready("i-a").claimed(ClaimKind::Start, "11:58").answered(ClaimAnswer::AlreadyRunning)],
            AlreadyReady,
        ),
        row("a refused STOP is void", [stop_claimed("i-a", "11:58").answered(ClaimAnswer::Refused)], AlreadyReady),
        row(
            "started by hand since the STOP claim",
            [stop_claimed("i-a", "11:50").launched_at(Some(at("11:55"))).ready_at("11:56")],
            AlreadyReady,
        ),
        row("pending", [asleep("i-a").state(NodeState::Pending)], AlreadyStarting),
        row("running, not seen ready", [running()], AlreadyStarting),
        row(
            "running, seen ready in an earlier launch only",
            [running().ready_at("11:00").with(|look| {
                look.record.ready.as_mut().expect("readiness").launched_at = Some(at("10:59"));
            })],
            AlreadyStarting,
        ),
        row(
            "one starting beside one asleep",
            [asleep("i-a"), running().with(|look| look.seen.id = id("i-b"))],
            AlreadyStarting,
        ),
        row("a START claimed a second less than four minutes ago", [start_claimed("i-a", "11:56:01")], AlreadyStarting),
        row(
            "a START whose run's time-out ends in a second",
            [start_claimed("i-a", "11:45").claim(|claim| claim.open_until = at("12:00:01"))],
            AlreadyStarting,
        ),
        row(
            "a START is claimed, and the describe still says stopping",
            [start_claimed("i-a", "11:58").state(NodeState::Stopping)],
            AlreadyStarting,
        ),
    ]
}

fn unresolved() -> Vec<Row> {
    use Reason::{AlreadyStarting, CoolingDown, StartUnresolved, StopUnresolved, StoppingWillStart, Wanted};
    vec![
        starts("a STOP without effect after four minutes", "i-a", [stop_claimed("i-a", "11:56")], StopUnresolved),
        row("a STOP without effect a second earlier", [stop_claimed("i-a", "11:56:01")], StoppingWillStart),
        starts(
            "an accepted STOP without effect after four minutes",
            "i-a",
            [stop_claimed("i-a", "11:56").answered(ClaimAnswer::Accepted)],
            StopUnresolved,
        ),
        row(
            "a STOP whose run's time-out ends in a second",
            [stop_claimed("i-a", "11:45").claim(|claim| claim.open_until = at("12:00:01"))],
            StoppingWillStart,
        ),
        starts(
            "a STOP without effect is settled before another node is started",
            "i-b",
            [asleep("i-a"), stop_claimed("i-b", "11:56")],
            StopUnresolved,
        ),
        starts(
            "while a STOP is on its way the next node is started",
            "i-b",
            [stop_claimed("i-a", "11:58"), asleep("i-b")],
            Wanted,
        ),
        starts("a START without effect after four minutes", "i-a", [start_claimed("i-a", "11:56")], StartUnresolved),
        starts(
            "a START without effect is repeated on the same node, never on the next candidate",
            "i-b",
            [asleep("i-a"), start_claimed("i-b", "11:56")],
            StartUnresolved,
        ),
        starts(
            "a START sent to settle a STOP, unanswered for four minutes, the node running",
            "i-a",
            [ready("i-a").claimed(ClaimKind::Start, "11:56")],
            StartUnresolved,
        ),
        row(
            "a START sent to settle a STOP, unanswered for a second less",
            [ready("i-a").claimed(ClaimKind::Start, "11:56:01")],
            AlreadyStarting,
        ),
        starts(
            "a START sent to settle one STOP is repeated before the STOP of another node is settled",
            "i-b",
            [stop_claimed("i-a", "11:50"), ready("i-b").claimed(ClaimKind::Start, "11:56")],
            StartUnresolved,
        ),
        starts(
            "a START of an earlier launch is resolved",
            "i-a",
            [start_claimed("i-a", "11:30").claim(|claim| claim.launched_at = None)],
            Wanted,
        ),
        starts(
            "a refused START is resolved",
            "i-a",
            [start_claimed("i-a", "11:58").answered(ClaimAnswer::Refused)],
            Wanted,
        ),
        row(
            "a START without effect and a code nobody knows is waited out",
            [start_claimed("i-a", "11:50").refused(FaultKind::Start, "SomethingNew", "12:00:01")],
            CoolingDown,
        ),
        starts(
            "a START without effect and a code nobody knows, its wait over",
            "i-a",
            [start_claimed("i-a", "11:50").refused(FaultKind::Start, "SomethingNew", "12:00")],
            StartUnresolved,
        ),
        row(
            "one on its way is enough, though a STOP of another is unresolved",
            [stop_claimed("i-a", "11:50"), start_claimed("i-b", "11:59")],
            AlreadyStarting,
        ),
    ]
}

fn candidates() -> Vec<Row> {
    use Reason::{CoolingDown, StoppingWillStart, Wanted};
    let refused =
        |node: &str, retry: &str| asleep(node).refused(FaultKind::Start, "InsufficientInstanceCapacity", retry);
    let stopped_unanswered = |open_until: &str| {
        asleep("i-a").claimed(ClaimKind::Stop, "11:59").claim(|claim| {
            claim.open_until = at(open_until);
        })
    };
    vec![
        starts("asleep", "i-a", [asleep("i-a")], Wanted),
        starts("the first that is free", "i-a", [asleep("i-a"), asleep("i-b")], Wanted),
        starts(
            "terminated nodes are passed over",
            "i-b",
            [asleep("i-a").state(NodeState::Gone), asleep("i-b")],
            Wanted,
        ),
        starts("refused nodes are passed over", "i-b", [refused("i-a", "12:01"), asleep("i-b")], Wanted),
        starts("refused, and its wait is over now", "i-a", [refused("i-a", "12:00")], Wanted),
        row("refused, and its wait is over in a second", [refused("i-a", "12:00:01")], CoolingDown),
        row("every candidate is refused", [refused("i-a", "12:01"), refused("i-b", "12:02")], CoolingDown),
        starts(
            "a refused STOP holds up no START",
            "i-a",
            [asleep("i-a").refused(FaultKind::Stop, "OperationNotPermitted", "13:00")],
            Wanted,
        ),
        row("stopping", [asleep("i-a").state(NodeState::Stopping)], StoppingWillStart),
        row(
            "stopping beside a refused one",
            [refused("i-a", "12:01"), asleep("i-b").state(NodeState::Stopping)],
            StoppingWillStart,
        ),
        starts("stopping beside one asleep", "i-b", [asleep("i-a").state(NodeState::Stopping), asleep("i-b")], Wanted),
        row(
            "stopped, and the STOP may be in flight for a second more",
            [stopped_unanswered("12:00:01")],
            StoppingWillStart,
        ),
        starts("stopped, and the STOP is in flight no more", "i-a", [stopped_unanswered("12:00")], Wanted),
        starts(
            "stopped, and the STOP is answered",
            "i-a",
            [stopped_unanswered("12:00:30").answered(ClaimAnswer::Accepted)],
            Wanted,
        ),
        starts("a named node is started though another is ready", "i-b", [ready("i-a"), asleep("i-b")], Wanted)
            .named("i-b"),
        row("a named node waits though another is free", [asleep("i-a"), refused("i-b", "12:01")], CoolingDown)
            .named("i-b"),
    ]
}

/// Refused for capacity, with these types tried; the pool allows three.
fn full(node_id: &str, tried: &[&str]) -> LookBuilder {
    asleep(node_id).refused(FaultKind::Start, "InsufficientInstanceCapacity", "12:02").with(|look| {
        look.types = ["g6.xlarge", "g5.xlarge", "g4dn.xlarge"].map(instance_type).to_vec();
        let fault = look.record.fault.as_mut().expect("a fault");
        fault.types = tried.iter().map(|kind| instance_type(kind)).collect();
    })
}

fn other_types() -> Vec<Row> {
    use Reason::{CoolingDown, GateClosed, OtherType, StoppingWillStart, Wanted};
    let quota = full("i-a", &[]).refused(FaultKind::Start, "VcpuLimitExceeded", "12:02");
    let closed = |until: Option<&str>| Gate {
        by: GateKeeper::Budget,
        since: at("11:00"),
        reason: "spent".to_owned(),
        amount: None,
        until: until.map(at),
        drain: false,
    };
    vec![
        starts("no capacity, the next type", "i-a as g5.xlarge", [full("i-a", &["g6.xlarge"])], OtherType),
        starts("two without capacity", "i-a as g4dn.xlarge", [full("i-a", &["g6.xlarge", "g5.xlarge"])], OtherType),
        row("every type was tried", [full("i-a", &["g6.xlarge", "g5.xlarge", "g4dn.xlarge"])], CoolingDown),
        starts(
            "free, and of the second type since a night without capacity",
            "i-a as g6.xlarge",
            [full("i-a", &[]).with(|look| {
                look.record.fault = None;
                look.seen.instance_type = Some(instance_type("g5.xlarge"));
            })],
            Wanted,
        ),
        starts("another node comes before another type", "i-b", [full("i-a", &["g6.xlarge"]), asleep("i-b")], Wanted),
        row("no other type for a quota", [quota], CoolingDown),
        row(
            "no other type while it stops",
            [full("i-a", &["g6.xlarge"]).state(NodeState::Stopping)],
            StoppingWillStart,
        ),
        row("the gate is closed", [asleep("i-a")], GateClosed).behind(closed(None)),
        row("the gate is closed for a second more", [asleep("i-a")], GateClosed).behind(closed(Some("12:00:01"))),
        row("the gate is closed before a ready node too", [ready("i-a")], GateClosed).behind(closed(None)),
        starts("the gate's end has come", "i-a", [asleep("i-a")], Wanted).behind(closed(Some("12:00"))),
    ]
}

/// It was ready in this launch, is not any more since this clock, and that is known. Ten minutes are given.
fn lost(node_id: &str, clock: &str) -> LookBuilder {
    ready(node_id).with(|look| {
        look.record.ready.as_mut().expect("readiness").lost_at = Some(at(clock));
        look.readiness = Readiness::NotReady;
    })
}

fn no_supply() -> Vec<Row> {
    use Reason::{AlreadyStarting, Wanted};
    vec![
        starts("ready no more for ten minutes", "i-b", [lost("i-a", "11:50"), asleep("i-b")], Wanted),
        row("ready no more for a second less", [lost("i-a", "11:50:01"), asleep("i-b")], AlreadyStarting),
        row(
            "ready no more for long, and what it is now could not be read",
            [lost("i-a", "11:00").with(|look| look.readiness = Readiness::Unknown), asleep("i-b")],
            AlreadyStarting,
        ),
        row("ready no more for long, and there is no other", [lost("i-a", "11:00")], AlreadyStarting),
    ]
}

fn rows() -> Vec<Row> {
    [wishes(), met(), unresolved(), candidates(), other_types(), no_supply()].into_iter().flatten().collect()
}

#[test]
fn every_row_is_decided_as_it_says() {
    for row in rows() {
        let expected = (row.reason, row.starts.map(str::to_owned));
        assert_eq!(row.decided(), expected, "{}", row.name);
    }
}

#[test]
fn every_wake_reason_has_a_row() {
    let of_question = Reason::ALL.iter().filter(|reason| reason.question() == Question::Wake);
    let missing: Vec<_> = of_question.filter(|reason| rows().iter().all(|row| row.reason != **reason)).collect();
    assert_eq!(missing, [&Reason::Wanted; 0]);
}

#[test]
fn every_row_has_a_name_of_its_own() {
    let mut names: Vec<_> = rows().iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows().len());
}

#[test]
fn a_start_is_for_the_wake_where_that_stands_and_has_no_node_yet() {
    let starting = || asleep("i-a").running_since("11:59");
    let rows = [
        ("woken, and asleep", Some("11:59"), None, asleep("i-a"), true),
        ("woken, and a node is ready", Some("11:59"), None, ready("i-a"), false),
        ("woken, and a node is on its way", Some("11:59"), None, starting(), false),
        ("woken, and what runs will not become ready", Some("11:59"), None, lost("i-a", "11:00"), true),
        ("never woken", None, None, asleep("i-a"), false),
        ("woken longer ago than a wish stands", Some("10:59"), None, asleep("i-a"), false),
        ("a named node, whatever the pool has", None, Some(id("i-b")), ready("i-a"), true),
    ];
    for (name, wake, target, look, expected) in rows {
        let wake = wake.map(|clock| Wake::new(at(clock), WakeSource::Prewarm));
        let record = PoolRecord { wake, ..PoolRecord::default() };
        let policy = Policy::default();
        assert_eq!(is_for_wake(&[look.0], &record, target.as_ref(), &policy, at("12:00")), expected, "{name}");
    }
}

/// Four calls a node.
#[test]
fn calls_want_nodes_unless_the_node_they_are_on_is_no_supply() {
    let on = |look: LookBuilder| look.leased_until("12:01").0;
    let rows = [
        ("on a ready node", on(ready("i-a")), 0, 1),
        ("on a node that comes up again", on(asleep("i-a").running_since("11:59")), 0, 1),
        ("on a node that is going down", on(asleep("i-a").state(NodeState::Stopping)), 0, 0),
        ("on a node that is ready no more", on(lost("i-a", "11:00")), 0, 0),
        ("on a ready node, and four wait", on(ready("i-a")), 4, 2),
        ("on a node that is going down, and four wait", on(asleep("i-a").state(NodeState::Stopping)), 4, 1),
        ("nobody", ready("i-a").0, 0, 0),
    ];
    for (name, look, waiting, nodes) in rows {
        let waiting = (0..waiting).map(|n| (lease_id(&format!("w-{n}")), at("12:03"))).collect();
        let record = PoolRecord { waiting, ..PoolRecord::default() };
        let rules = PoolRules { calls_per_node: Some(4), leased: true, ..PoolRules::default() };
        assert_eq!(nodes_for_calls(&[&look], &record, &Policy::default(), &rules, at("12:00")), nodes, "{name}");
    }
}
