//! The idle rule, row by row: every reason, and both sides of every boundary. It is noon; a node is stopped after 30 idle
//! minutes, looked at every 5, left alone for 10 after its launch and forced after 10 in `stopping`.

mod support;

use reveille::decide::idle::{IdleAction, decide};
use reveille::decide::{Question, Readiness, Reason};
use reveille::domain::{ClaimAnswer, ClaimKind, FaultKind, Launch, Mark, NodeState, TagHold, WakeSource};
use reveille::observation::Unread;
use reveille::policy::Policy;
use support::*;

struct Row {
    name: &'static str,
    look: LookBuilder,
    action: IdleAction,
    reason: Reason,
}

fn keeps(name: &'static str, reason: Reason, look: LookBuilder) -> Row {
    Row { name, look, action: IdleAction::Keep, reason }
}

fn marks(name: &'static str, look: LookBuilder) -> Row {
    Row { name, look, action: IdleAction::Mark, reason: Reason::FirstReading }
}

fn stops(name: &'static str, reason: Reason, look: LookBuilder) -> Row {
    Row { name, look, action: IdleAction::Stop, reason }
}

fn forces(name: &'static str, look: LookBuilder) -> Row {
    Row { name, look, action: IdleAction::ForceStop, reason: Reason::HangsInStopping }
}

/// Idle since 06:01, and marked as idle at the tick before.
fn marked() -> LookBuilder {
    idle_look().marked_at("11:55")
}

/// Idle, and a STOP was claimed at 11:50 that shows no effect.
fn stop_claimed(clock: &str) -> LookBuilder {
    idle_look().claimed(ClaimKind::Stop, clock)
}

fn not_running() -> Vec<Row> {
    use Reason::{Asleep, StillPending, Terminated};
    vec![
        keeps("a terminated node", Terminated, look().state(NodeState::Gone)),
        keeps(
            "a terminated node with a STOP claim that is overdue",
            Terminated,
            look().state(NodeState::Gone).claimed(ClaimKind::Stop, "11:00"),
        ),
        keeps("a stopped node", Asleep, look()),
        keeps("a stopped node that is wanted", Asleep, look().woken_at("11:59")),
        keeps("a stopped node with a START on its way", Asleep, look().claimed(ClaimKind::Start, "11:59")),
        keeps("a stopped node with an unanswered STOP", Asleep, look().claimed(ClaimKind::Stop, "11:00")),
        keeps("a node in pending", StillPending, idle_look().state(NodeState::Pending)),
        keeps("a node in pending, marked long ago", StillPending, marked().state(NodeState::Pending)),
        keeps(
            "a node in pending with a STOP claim that is overdue",
            StillPending,
            stop_claimed("11:50").state(NodeState::Pending),
        ),
    ]
}

fn going_down() -> Vec<Row> {
    use Reason::GoingDown;
    let stopping = |asked: &str| idle_look().stopping_since(asked);
    vec![
        forces("stopping for exactly ten minutes", stopping("11:50")),
        keeps("stopping for a second less than ten minutes", GoingDown, stopping("11:50:01")),
        forces("stopping for long, whatever the signals", stopping("11:50").unknown(Unread::Failed)),
        forces("stopping for long though wanted", stopping("11:50").woken_at("11:59")),
        forces(
            "stopping, forced exactly ten minutes ago without effect",
            stopping("11:00").claimed(ClaimKind::Stop, "11:50"),
        ),
        keeps("stopping, forced a tick ago", GoingDown, stopping("11:00").claimed(ClaimKind::Stop, "11:55")),
        forces(
            "stopping since our claim of ten minutes ago, where EC2 tells no time",
            stopping("11:50").with(|look| look.seen.transition_at = None).claimed(ClaimKind::Stop, "11:50"),
        ),
        keeps(
            "stopping with no time to measure from",
            GoingDown,
            stopping("11:00").with(|look| look.seen.transition_at = None),
        ),
        keeps(
            "stopping, and only a claim of an earlier launch to measure from",
            GoingDown,
            stopping("11:00")
                .with(|look| look.seen.transition_at = None)
                .claimed(ClaimKind::Stop, "11:00")
                .claim(|claim| claim.launched_at = Some(at("05:00"))),
        ),
    ]
}

fn claimed_stops() -> Vec<Row> {
    use Reason::{BootGrace, GoingDown, StopHadNoEffect};
    vec![
        stops("running four minutes after the STOP claim", StopHadNoEffect, stop_claimed("11:56")),
        keeps("running a second less than four minutes after the STOP claim", GoingDown, stop_claimed("11:56:01")),
        stops(
            "running four minutes after an accepted STOP",
            StopHadNoEffect,
            stop_claimed("11:56").answered(ClaimAnswer::Accepted),
        ),
        stops(
            "running after a STOP whose run's time-out ends now",
            StopHadNoEffect,
            stop_claimed("11:45").claim(|claim| claim.open_until = at("12:00")),
        ),
        keeps(
            "running after a STOP whose run's time-out ends in a second",
            GoingDown,
            stop_claimed("11:45").claim(|claim| claim.open_until = at("12:00:01")),
        ),
        keeps(
            "claimed for a STOP, overdue, wanted a second less than the idle time ago",
            GoingDown,
            stop_claimed("11:00").with(|look| look.demand += 1).woken_at("11:30:01"),
        ),
        stops(
            "claimed for a STOP, overdue, wanted since, and by nobody for exactly the idle time",
            StopHadNoEffect,
            stop_claimed("11:00").with(|look| look.demand += 1).woken_at("11:30"),
        ),
        keeps("claimed for a STOP, overdue, and used since", GoingDown, stop_claimed("11:50").used_at("11:52")),
        keeps(
            "claimed for a STOP, overdue, and a use from before was counted late",
            GoingDown,
            stop_claimed("11:50").used_at("11:45"),
        ),
        keeps(
            "claimed for a STOP, overdue, used a second less than the idle time ago",
            GoingDown,
            stop_claimed("11:00").used_at("11:30:01"),
        ),
        stops(
            "claimed for a STOP, overdue, used since, and idle again for exactly the idle time",
            StopHadNoEffect,
            stop_claimed("11:00").used_at("11:30"),
        ),
        keeps("claimed for a STOP, overdue, a call open", GoingDown, stop_claimed("11:00").open_now()),
        keeps(
            "claimed for a STOP, overdue, signals unknown",
            GoingDown,
            stop_claimed("11:00").unknown(Unread::SourceSilent),
        ),
        marks("a refused STOP is void: judged anew", stop_claimed("11:50").answered(ClaimAnswer::Refused)),
        keeps(
            "somebody started it again since the STOP claim: judged anew",
            BootGrace,
            stop_claimed("11:50").launched_at(Some(at("11:55"))),
        ),
    ]
}

fn kept_running() -> Vec<Row> {
    use Reason::{BootGrace, OpenCall, RecentStart, SignalsUnknown};
    let launched = |clock: &str| look().running_since(clock).quiet_since(clock);
    vec![
        keeps("launched a second less than the grace time ago", BootGrace, launched("11:50:01")),
        keeps("launched exactly the grace time ago", RecentStart, launched("11:50")),
        keeps("in its grace time with a call open", OpenCall, launched("11:55").open_now()),
        keeps("in its grace time, signals unknown", BootGrace, launched("11:55").unknown(Unread::Failed)),
        keeps("a call that failed", SignalsUnknown, marked().unknown(Unread::Failed)),
        keeps("a source nobody proves alive", SignalsUnknown, marked().unknown(Unread::SourceSilent)),
        keeps("points are missing", SignalsUnknown, marked().unknown(Unread::Partial)),
        keeps("no signals configured", SignalsUnknown, marked().unknown(Unread::NoSignals)),
        keeps("a call is open", OpenCall, marked().open_now()),
        keeps("launch time not told", RecentStart, idle_look().launched_at(None)),
    ]
}

/// Calls and people come before every signal, and before the budget.
fn spoken_for() -> Vec<Row> {
    use Reason::{BootGrace, GoingDown, Held, Idle, Leased, OpenCall, RecentLease, SignalsUnknown, WarmWindow};
    let drained = |look: LookBuilder| look.with(|look| look.drained_since = Some(at("08:00")));
    let tagged = |hold: TagHold| marked().with(|look| look.tag_hold = hold);
    let warm = |look: LookBuilder| look.with(|look| look.warm = true);
    let left = |clock: &str| marked().with(|look| look.record.leased = Some(at(clock)));
    vec![
        keeps("a lease is live for a second more", Leased, marked().leased_until("12:00:01")),
        stops("a lease of long ago ran out", Idle, marked().leased_until("11:30")),
        keeps("a lease ran out just now", RecentLease, marked().leased_until("12:00")),
        keeps(
            "a lease is live, and the signals are unknown",
            Leased,
            marked().unknown(Unread::Failed).leased_until("12:01"),
        ),
        keeps("a lease is live on a drained node", Leased, drained(marked()).leased_until("12:01")),
        keeps(
            "a lease is live, held, warm, open: the call is named",
            Leased,
            warm(marked()).held_until("13:00").open_now().leased_until("12:01"),
        ),
        keeps("a lease ended a second less than the idle time ago", RecentLease, left("11:30:01")),
        stops("a lease ended exactly the idle time ago", Idle, left("11:30")),
        keeps(
            "a STOP is claimed, overdue, and a lease is live",
            GoingDown,
            stop_claimed("11:00").leased_until("12:01"),
        ),
        keeps("a STOP is claimed, overdue, and held", GoingDown, stop_claimed("11:00").held_until("13:00")),
        keeps("a call is open, and held", OpenCall, marked().open_now().held_until("13:00")),
        keeps("held for a second more", Held, marked().held_until("12:00:01")),
        stops("the hold is over", Idle, marked().held_until("12:00")),
        keeps("held, and the signals are unknown", Held, marked().unknown(Unread::Failed).held_until("13:00")),
        keeps("held, and the budget is spent", Held, drained(marked()).held_until("13:00")),
        keeps("held by its tag", Held, tagged(TagHold::Until(at("12:00:01")))),
        stops("the tag's end has passed", Idle, tagged(TagHold::Until(at("12:00")))),
        keeps("held by a tag without an end", Held, tagged(TagHold::NoEnd)),
        keeps(
            "held by a tag nobody can read",
            Held,
            tagged(TagHold::Unreadable { key: "k".to_owned(), value: "v".to_owned() }),
        ),
        keeps(
            "held by a tag that is nearly ours",
            Held,
            tagged(TagHold::NearMiss { key: "k".to_owned(), value: "v".to_owned() }),
        ),
        keeps("a warm window wants it", WarmWindow, warm(marked())),
        keeps("a warm window wants it, and the budget is spent", WarmWindow, drained(warm(marked()))),
        keeps(
            "a warm window wants it, and the signals are unknown",
            WarmWindow,
            warm(marked()).unknown(Unread::Failed),
        ),
        keeps("young, and nothing else speaks for it", BootGrace, look().running_since("11:55").quiet_since("11:55")),
        keeps("nothing speaks for it, and the signals are unknown", SignalsUnknown, marked().unknown(Unread::Failed)),
    ]
}

/// Idle and marked, and wanted by calls beside the nodes that they are on.
fn in_reserve() -> Vec<Row> {
    use Reason::{Drain, Leased, NeverReady, Reserve, SignalsUnknown};
    let spare = |look: LookBuilder| look.with(|look| look.reserve = true);
    vec![
        keeps("calls want it", Reserve, spare(marked())),
        keeps("calls want it, and no reading was made", Reserve, spare(idle_look())),
        keeps("calls want it, and one is on it", Leased, spare(marked()).leased_until("12:01")),
        keeps("calls want it, and the signals are unknown", SignalsUnknown, spare(marked()).unknown(Unread::Failed)),
        stops("calls want it, and the pool is drained", Drain, spare(drained().marked_at("11:56"))),
        stops(
            "calls want it, and it never becomes ready",
            NeverReady,
            spare(look().running_since("11:45").quiet_since("11:45").never_ready().marked_at("11:55")),
        ),
    ]
}

/// Launched at 11:45 or so, and known never to have been ready: ten minutes are given.
fn never_ready() -> Vec<Row> {
    use Reason::{BootGrace, Held, Leased, NeverReady, OpenCall, RecentUse, RecentWake, SignalsUnknown};
    let late = || look().running_since("11:45").quiet_since("11:45").never_ready().woken_at("11:59:50");
    let marks = |name, look| Row { name, look, action: IdleAction::Mark, reason: NeverReady };
    vec![
        keeps(
            "not ready a second less than ten minutes after its launch",
            BootGrace,
            late().running_since("11:50:01").marked_at("11:55"),
        ),
        marks("not ready ten minutes after its launch, however fresh the wake", late().running_since("11:50")),
        marks("not ready though requests keep coming", late().used_at("11:59")),
        stops("not ready, and marked a tick ago", NeverReady, late().marked_at("11:55").used_at("11:59")),
        stops("not ready, and marked exactly four minutes ago", NeverReady, late().marked_at("11:56")),
        keeps("not ready, and marked a second less than four minutes ago", NeverReady, late().marked_at("11:56:01")),
        marks(
            "not ready, and marked in an earlier launch",
            late().with(|look| look.record.mark = Some(Mark { at: at("11:55"), launched_at: Some(at("09:00")) })),
        ),
        keeps("not ready, a lease is live", Leased, late().marked_at("11:55").leased_until("12:01")),
        keeps("not ready, a call is open", OpenCall, late().marked_at("11:55").open_now()),
        keeps("not ready, held", Held, late().marked_at("11:55").held_until("13:00")),
        keeps(
            "not ready, and nothing is known of its use",
            SignalsUnknown,
            late().marked_at("11:55").unknown(Unread::SourceSilent),
        ),
        keeps(
            "whether it is ready could not be read",
            RecentUse,
            late().marked_at("11:55").used_at("11:59:55").with(|look| look.readiness = Readiness::Unknown),
        ),
        keeps("it was ready once in this launch", RecentWake, late().marked_at("11:55").ready_at("11:47")),
        keeps(
            "its STOP was refused",
            NeverReady,
            late().marked_at("11:55").refused(FaultKind::Stop, "OperationNotPermitted", "12:10"),
        ),
    ]
}

/// A pre-warm that leads to no call keeps a node for 15 minutes here, everything else for 30.
#[test]
fn a_prewarm_that_leads_to_no_call_expires_by_its_own_time() {
    let policy = Policy { prewarm: minutes(15), ..Policy::default() };
    let prewarmed = |clock: &str| {
        let launched = at(clock);
        let launch = Launch { used: Some(false), source: Some(WakeSource::Prewarm), ..Launch::at(launched) };
        look().running_since(clock).quiet_since(clock).ready_at(clock).woken_at(clock).with(|look| {
            look.wake_source = Some(WakeSource::Prewarm);
            look.record.launch = Some(launch);
        })
    };
    let rows = [
        ("a second less than its time", prewarmed("11:45:01").marked_at("11:55"), IdleAction::Keep),
        ("its time", prewarmed("11:45").marked_at("11:55"), IdleAction::Stop),
        ("its time, and a request came", prewarmed("11:40").used_at("11:46").marked_at("11:55"), IdleAction::Keep),
        (
            "its time, and a lease was there",
            prewarmed("11:40").with(|look| look.record.leased = Some(at("11:44"))).marked_at("11:55"),
            IdleAction::Keep,
        ),
        (
            "woken by a line since",
            prewarmed("11:40")
                .woken_at("11:44")
                .with(|look| look.wake_source = Some(WakeSource::LogLine))
                .marked_at("11:55"),
            IdleAction::Keep,
        ),
        (
            "launched by a line, pre-warmed long ago",
            prewarmed("11:40")
                .with(|look| look.record.launch.as_mut().expect("a launch").source = Some(WakeSource::LogLine))
                .marked_at("11:55"),
            IdleAction::Keep,
        ),
        (
            "launched by a person",
            prewarmed("11:40").with(|look| look.record.launch = None).marked_at("11:55"),
            IdleAction::Keep,
        ),
        (
            "pre-warmed again, after use",
            prewarmed("09:00").used_at("11:31").woken_at("11:50").marked_at("11:55"),
            IdleAction::Keep,
        ),
        (
            "the use is over, the pre-warm too",
            prewarmed("09:00").used_at("11:30").woken_at("11:45").marked_at("11:55"),
            IdleAction::Stop,
        ),
    ];
    for (name, look, action) in rows {
        let decision = decide(&look.0, &policy);
        assert_eq!(decision.action, action, "{name}: {:?}", decision.reason);
    }
}

fn idle_ages() -> Vec<Row> {
    use Reason::{Idle, RecentStart, RecentUse, RecentWake};
    let launched = |clock: &str| look().running_since(clock).quiet_since(clock);
    vec![
        keeps("woken a second less than idle − tick ago", RecentWake, idle_look().woken_at("11:35:01")),
        marks("woken exactly idle − tick ago", idle_look().woken_at("11:35")),
        keeps("marked, woken a second less than the idle time ago", RecentWake, marked().woken_at("11:30:01")),
        stops("marked, woken exactly the idle time ago", Idle, marked().woken_at("11:30")),
        keeps("woken by a clock that is ahead", RecentWake, marked().woken_at("12:05")),
        keeps("used a second less than idle − tick ago", RecentUse, idle_look().used_at("11:35:01")),
        marks("used exactly idle − tick ago", idle_look().used_at("11:35")),
        keeps("marked, used a second less than the idle time ago", RecentUse, marked().used_at("11:30:01")),
        stops("marked, used exactly the idle time ago", Idle, marked().used_at("11:30")),
        keeps("silence proved for less than the idle time", RecentUse, marked().quiet_since("11:30:01")),
        stops("silence proved for exactly the idle time", Idle, marked().quiet_since("11:30")),
        keeps("launched a second less than idle − tick ago", RecentStart, launched("11:35:01")),
        marks("launched exactly idle − tick ago", launched("11:35")),
        keeps(
            "marked, launched a second less than the idle time ago",
            RecentStart,
            launched("11:30:01").marked_at("11:56"),
        ),
        stops("marked, launched exactly the idle time ago", Idle, launched("11:30").marked_at("11:55")),
        keeps("marked, ready a second less than the idle time ago", RecentStart, marked().ready_at("11:30:01")),
        stops("marked, ready exactly the idle time ago", Idle, marked().ready_at("11:30")),
        stops(
            "readiness of an earlier launch is no recent start",
            Idle,
            marked().ready_at("11:59").with(|look| {
                look.record.ready.as_mut().expect("readiness").launched_at = Some(at("05:00"));
            }),
        ),
        stops("a node that was never ready and never used", Idle, launched("06:00").marked_at("11:55")),
    ]
}

fn readings() -> Vec<Row> {
    use Reason::{Idle, ReadingsTooClose, StopRefused};
    vec![
        marks("no first reading yet", idle_look()),
        stops("marked exactly four minutes ago", Idle, idle_look().marked_at("11:56")),
        keeps("marked a second less than four minutes ago", ReadingsTooClose, idle_look().marked_at("11:56:01")),
        keeps("the same tick again", ReadingsTooClose, idle_look().marked_at("12:00")),
        stops("a wake of another node since the mark does not void it", Idle, marked().with(|look| look.demand += 1)),
        marks("a mark of an earlier launch is void", marked().launched_at(Some(at("05:30"))).ready_at("06:01")),
        marks("a mark from before the last use is void", idle_look().marked_at("11:20").used_at("11:25")),
        stops(
            "a mark at the very instant of the last use stands",
            Idle,
            idle_look().marked_at("11:25").used_at("11:25"),
        ),
        marks("a mark by a clock that is ahead is void", idle_look().marked_at("12:00:01")),
        keeps(
            "protected, and its wait is over in a second",
            StopRefused,
            marked().refused(FaultKind::Stop, "OperationNotPermitted", "12:00:01"),
        ),
        stops(
            "protected, and its wait is over now",
            Idle,
            marked().refused(FaultKind::Stop, "OperationNotPermitted", "12:00"),
        ),
        stops(
            "a refused START is no reason to keep",
            Idle,
            marked().refused(FaultKind::Start, "VcpuLimitExceeded", "13:00"),
        ),
    ]
}

fn drained() -> LookBuilder {
    idle_look().used_at("11:52").with(|look| look.drained_since = Some(at("11:30")))
}

/// Drained, with use so near that only the drain speaks for a stop.
fn draining() -> Vec<Row> {
    let late = |clock: &str| drained().used_at(clock);
    let unobserved = |clock: &str| late(clock).with(|look| look.observes_calls = false);
    vec![
        Row {
            action: IdleAction::Mark,
            ..keeps("drained, quiet for long enough, unmarked", Reason::Draining, drained())
        },
        stops("drained and marked", Reason::Drain, drained().marked_at("11:56")),
        keeps("drained, marked a moment ago", Reason::Draining, drained().marked_at("11:56:01")),
        Row {
            action: IdleAction::Mark,
            ..keeps("drained, marked before the drain", Reason::Draining, drained().marked_at("11:29"))
        },
        stops("drained, quiet for seven minutes", Reason::Drain, late("11:53").marked_at("11:55")),
        keeps("drained, quiet for a second less", Reason::Draining, late("11:53:01").marked_at("11:55")),
        stops("drained, and woken a minute ago", Reason::Drain, drained().woken_at("11:59").marked_at("11:56")),
        keeps("drained, with a call", Reason::OpenCall, drained().open_now().marked_at("11:56")),
        keeps("drained, unknown", Reason::SignalsUnknown, drained().unknown(Unread::Failed).marked_at("11:56")),
        stops(
            "drained, calls unobserved, quiet for the idle time",
            Reason::Drain,
            unobserved("11:30").marked_at("11:55"),
        ),
        keeps(
            "drained, calls unobserved, quiet for a second less",
            Reason::Draining,
            unobserved("11:30:01").marked_at("11:55"),
        ),
        keeps(
            "drained, and its STOP was refused",
            Reason::StopRefused,
            drained().marked_at("11:56").refused(FaultKind::Stop, "OperationNotPermitted", "12:00:01"),
        ),
        keeps("drained, in its boot grace", Reason::BootGrace, drained().launched_at(Some(at("11:51")))),
    ]
}

fn types() -> Vec<Row> {
    let of = |kind: &str| {
        look().with(|look| {
            look.types = vec![instance_type("g6.xlarge"), instance_type("g5.xlarge")];
            look.seen.instance_type = Some(instance_type(kind));
        })
    };
    let back = |name, look| Row { name, reason: Reason::PutBack, action: IdleAction::PutBack, look };
    vec![
        back("asleep, of the second type", of("g5.xlarge")),
        keeps("asleep, of the first type", Reason::Asleep, of("g6.xlarge")),
        keeps("asleep, of a type that is not on the list", Reason::Asleep, of("g4dn.xlarge")),
        keeps("asleep, of the second type, and wanted", Reason::Asleep, of("g5.xlarge").woken_at("11:59")),
        back("asleep, of the second type, its wish over", of("g5.xlarge").woken_at("11:00")),
        keeps(
            "asleep, of the second type, a START under way",
            Reason::Asleep,
            of("g5.xlarge").claimed(ClaimKind::Start, "11:59:30").answered(ClaimAnswer::Refused),
        ),
        back(
            "asleep, of the second type, a START whose run's time-out ends now",
            of("g5.xlarge").claimed(ClaimKind::Start, "11:59").answered(ClaimAnswer::Refused),
        ),
    ]
}

fn rows() -> Vec<Row> {
    [
        not_running(),
        going_down(),
        claimed_stops(),
        kept_running(),
        spoken_for(),
        in_reserve(),
        never_ready(),
        idle_ages(),
        readings(),
        draining(),
        types(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_row_is_decided_as_it_says() {
    for row in rows() {
        let decision = decide(&row.look.0, &Policy::default());
        assert_eq!((decision.reason, decision.action), (row.reason, row.action), "{}", row.name);
    }
}

#[test]
fn every_idle_reason_has_a_row() {
    let of_question = Reason::ALL.iter().filter(|reason| reason.question() == Question::Idle);
    let missing: Vec<_> = of_question.filter(|reason| rows().iter().all(|row| row.reason != **reason)).collect();
    assert_eq!(missing, [&Reason::Idle; 0]);
}

#[test]
fn every_row_has_a_name_of_its_own() {
    let mut names: Vec<_> = rows().iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows().len());
}

#[test]
fn the_earliest_stop_is_told_where_one_is_in_sight() {
    let rows = [
        ("a recent use, and the idle time from there", idle_look().used_at("11:50"), Some("12:20")),
        ("idle, not marked: four minutes from now", idle_look(), Some("12:04")),
        ("marked, but used too lately", idle_look().used_at("11:32").marked_at("11:57:30"), Some("12:02")),
        ("idle in two minutes, but marked just now", idle_look().used_at("11:32").marked_at("11:59"), Some("12:03")),
        ("readings too close", idle_look().marked_at("11:58"), Some("12:02")),
        ("in its grace time", look().running_since("11:55").quiet_since("11:55"), Some("12:25")),
        ("protected", marked().refused(FaultKind::Stop, "OperationNotPermitted", "12:10"), Some("12:10")),
        ("a stop", marked(), Some("12:00")),
        ("a forced stop", idle_look().stopping_since("11:00"), Some("12:00")),
        ("a lease, and the idle time from its end", marked().leased_until("12:10"), Some("12:40")),
        ("held, until the hold ends", marked().held_until("13:00"), Some("13:00")),
        ("drained, quiet for too short a time", drained().used_at("11:58"), Some("12:05")),
        ("drained, and not marked", drained(), Some("12:04")),
        (
            "never ready, and not marked",
            look().running_since("11:45").quiet_since("11:45").never_ready(),
            Some("12:04"),
        ),
        ("a warm window ends when it ends", marked().with(|look| look.warm = true), None),
        ("an open call ends when it ends", idle_look().open_now(), None),
        ("unknown", idle_look().unknown(Unread::Failed), None),
        ("asleep", look(), None),
        ("going down", idle_look().stopping_since("11:59"), None),
    ];
    for (name, look, earliest) in rows {
        assert_eq!(decide(&look.0, &Policy::default()).stops_not_before, earliest.map(at), "{name}");
    }
}

#[test]
fn other_limits_move_the_boundaries() {
    let policy = Policy {
        idle: minutes(60),
        tick: minutes(10),
        grace: minutes(0),
        force_after: minutes(3),
        ..Policy::default()
    };
    let rows = [
        ("a second before idle − tick", idle_look().used_at("11:10:01"), Reason::RecentUse),
        ("idle − tick", idle_look().used_at("11:10"), Reason::FirstReading),
        ("a second before the idle time", idle_look().used_at("11:00:01").marked_at("11:50:01"), Reason::RecentUse),
        ("the idle time", idle_look().used_at("11:00").marked_at("11:50"), Reason::Idle),
        ("no grace time", look().running_since("12:00").quiet_since("12:00"), Reason::RecentStart),
        ("a second before the force time", idle_look().stopping_since("11:57:01"), Reason::GoingDown),
        ("the force time", idle_look().stopping_since("11:57"), Reason::HangsInStopping),
    ];
    for (name, look, reason) in rows {
        assert_eq!(decide(&look.0, &policy).reason, reason, "{name}");
    }
}
