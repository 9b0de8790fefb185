//! How one run's points become the use of a node, and how describe and ledger become its phase. It is noon; the newest
//! settled bucket ends at 11:58.

mod support;

use reveille::domain::{ClaimAnswer, ClaimKind, Instant, NodeState, Phase};
use reveille::observation::{Series, SignalKind, SignalReading, Unread, Use, is_overdue, phase, read_use};
use support::*;

/// A point of this value in each minute of the clock's span, its end excluded.
fn each(span: &str, value: f64) -> Vec<(Instant, f64)> {
    let (from, to) = span.split_once('-').expect("from-to");
    let from = at(from);
    (0..).map(|n| from + minutes(n)).take_while(|minute| *minute < at(to)).map(|minute| (minute, value)).collect()
}

fn one(clock: &str, value: f64) -> Vec<(Instant, f64)> {
    vec![(at(clock), value)]
}

fn series(points: impl IntoIterator<Item = Vec<(Instant, f64)>>) -> Result<Series, Unread> {
    Ok(Series { points: points.into_iter().flatten().collect(), complete: true })
}

fn partial(points: Vec<(Instant, f64)>) -> Result<Series, Unread> {
    Ok(Series { points, complete: false })
}

/// Requests whose source is proved alive in each minute since 11:20.
fn requests(points: impl IntoIterator<Item = Vec<(Instant, f64)>>) -> SignalReading {
    with_proof(series(points), each("11:20-12:00", 1.0))
}

fn with_proof(own: Result<Series, Unread>, alive: Vec<(Instant, f64)>) -> SignalReading {
    SignalReading { kind: SignalKind::Requests, own, alive: Some(series([alive])) }
}

/// Requests with nothing beside them that proves their source.
fn unproved(own: Result<Series, Unread>) -> SignalReading {
    SignalReading { kind: SignalKind::Requests, own, alive: None }
}

fn open(points: impl IntoIterator<Item = Vec<(Instant, f64)>>) -> SignalReading {
    SignalReading { kind: SignalKind::Open, ..requests(points) }
}

/// The reading at noon of a node launched at 06:00 that is stopped after half an hour.
fn read(signals: &[SignalReading]) -> Result<Use, Unread> {
    read_use(signals, at("06:00"), at("12:00"), minutes(30))
}

fn quiet_since(clock: &str) -> Result<Use, Unread> {
    Ok(Use { last_seen: None, last_possible: at(clock), open_now: false })
}

fn used_until(clock: &str) -> Result<Use, Unread> {
    Ok(Use { last_seen: Some(at(clock)), last_possible: at(clock), open_now: false })
}

fn open_until(clock: &str) -> Result<Use, Unread> {
    Ok(Use { last_seen: Some(at(clock)), last_possible: at(clock), open_now: true })
}

fn assert_each(rows: Vec<(&str, Vec<SignalReading>, Result<Use, Unread>)>) {
    for (name, signals, expected) in rows {
        assert_eq!(read(&signals), expected, "{name}");
    }
}

#[test]
fn empty_zero_and_error_are_three_answers() {
    let silent = Err(Unread::SourceSilent);
    assert_each(vec![
        ("empty, and proved alive", vec![requests([])], quiet_since("11:20")),
        ("empty, and nothing to prove it with", vec![unproved(series([]))], silent),
        ("empty, and so is the proof", vec![with_proof(series([]), vec![])], silent),
        ("zeros prove themselves", vec![unproved(series([each("11:20-12:00", 0.0)]))], quiet_since("11:20")),
        ("an error", vec![unproved(Err(Unread::Failed))], Err(Unread::Failed)),
        (
            "an error, though proved alive",
            vec![with_proof(Err(Unread::Failed), each("11:20-12:00", 1.0))],
            Err(Unread::Failed),
        ),
        (
            "empty, and the proof is an error",
            vec![SignalReading { alive: Some(Err(Unread::Failed)), ..unproved(series([])) }],
            Err(Unread::Failed),
        ),
        ("no signals", vec![], Err(Unread::NoSignals)),
    ]);
}

#[test]
fn partial_points_count_as_use_and_prove_no_silence() {
    assert_each(vec![
        ("zeros, but some are missing", vec![unproved(partial(each("11:20-12:00", 0.0)))], Err(Unread::Partial)),
        ("a request", vec![unproved(partial(one("11:40", 3.0)))], used_until("11:41")),
        ("a request a minute inside the idle time", vec![unproved(partial(one("11:30", 1.0)))], used_until("11:31")),
        ("a request exactly the idle time ago", vec![unproved(partial(one("11:29", 1.0)))], Err(Unread::Partial)),
    ]);
}

#[test]
fn any_value_above_zero_is_use_until_the_end_of_its_bucket() {
    assert_each(vec![
        ("one request", vec![requests([one("11:37", 1.0)])], used_until("11:38")),
        (
            "many zeros and one request",
            vec![requests([each("11:20-12:00", 0.0), one("11:37", 1.0)])],
            used_until("11:38"),
        ),
        ("a rate averaged to 0.0005", vec![requests([one("11:37", 0.000_5)])], used_until("11:38")),
        ("the smallest number there is", vec![requests([one("11:37", f64::MIN_POSITIVE)])], used_until("11:38")),
        ("the newest of two", vec![requests([one("11:41", 1.0), one("11:37", 9.0)])], used_until("11:42")),
        ("a bucket that is not settled", vec![requests([one("11:59", 1.0)])], used_until("12:00")),
        ("a bucket that has just begun ends now", vec![requests([one("12:00", 1.0)])], used_until("12:00")),
        ("zero", vec![requests([one("11:37", 0.0)])], quiet_since("11:20")),
        ("less than zero is no count", vec![requests([one("11:37", -1.0)])], Err(Unread::Failed)),
        ("nor is what is no number", vec![requests([one("11:37", f64::NAN)])], Err(Unread::Failed)),
    ]);
}

#[test]
fn a_proof_of_life_reaches_back_over_gaps_of_five_minutes() {
    let silent = Err(Unread::SourceSilent);
    let proved = |spans: &[&str]| vec![with_proof(series([]), spans.iter().flat_map(|span| each(span, 1.0)).collect())];
    assert_each(vec![
        ("no gap", proved(&["11:20-12:00"]), quiet_since("11:20")),
        ("a gap of five minutes", proved(&["11:20-11:41", "11:46-12:00"]), quiet_since("11:20")),
        ("a gap of six minutes", proved(&["11:20-11:41", "11:47-12:00"]), quiet_since("11:47")),
        ("it stops five minutes before the settled edge", proved(&["11:20-11:53"]), quiet_since("11:20")),
        ("it stops six minutes before the settled edge", proved(&["11:20-11:52"]), silent),
        ("only buckets that are not settled", proved(&["11:58-12:00"]), silent),
        ("it begins with the newest settled bucket", proved(&["11:57-12:00"]), quiet_since("11:57")),
    ]);
}

#[test]
fn own_points_and_proof_fill_each_others_gaps() {
    let signal =
        with_proof(series([each("11:30-11:45", 0.0)]), [each("11:20-11:30", 1.0), each("11:45-12:00", 1.0)].concat());
    assert_eq!(read(&[signal]), quiet_since("11:20"));
}

#[test]
fn a_proof_that_stopped_after_a_use_still_leaves_the_use() {
    let stopped = with_proof(series([one("11:40", 1.0)]), each("11:20-11:45", 1.0));
    assert_eq!(read(&[stopped]), used_until("11:41"));
}

#[test]
fn the_launch_is_a_proof_where_the_first_point_follows_within_five_minutes() {
    let rows = [
        ("nothing yet, five minutes before the settled edge", "11:53", vec![], quiet_since("11:53")),
        ("nothing yet, a second more", "11:52:59", vec![], Err(Unread::SourceSilent)),
        ("the first point after five minutes", "11:25", each("11:30-12:00", 1.0), quiet_since("11:25")),
        ("the first point after a second more", "11:24:59", each("11:30-12:00", 1.0), quiet_since("11:30")),
        ("points from before the launch", "11:40", each("11:20-12:00", 1.0), quiet_since("11:40")),
    ];
    for (name, launched, alive, expected) in rows {
        let signals = [with_proof(series([]), alive)];
        assert_eq!(read_use(&signals, at(launched), at("12:00"), minutes(30)), expected, "{name}");
    }
}

#[test]
fn a_call_is_open_while_the_newest_settled_bucket_or_a_newer_one_says_so() {
    assert_each(vec![
        ("in the bucket that is being filled", vec![open([one("12:00", 1.0)])], open_until("12:00")),
        ("in a bucket that is not settled", vec![open([one("11:58", 2.0)])], open_until("11:59")),
        ("in the newest settled bucket", vec![open([one("11:57", 1.0)])], open_until("11:58")),
        ("in the bucket before it", vec![open([one("11:56", 1.0)])], used_until("11:57")),
        ("zero ever since", vec![open([each("11:20-11:50", 1.0), each("11:50-12:00", 0.0)])], used_until("11:50")),
        ("requests are no gauge", vec![requests([one("11:59", 1.0)])], used_until("12:00")),
    ]);
}

#[test]
fn one_busy_signal_is_busy_and_silence_needs_every_signal() {
    let broken = || unproved(Err(Unread::Failed));
    assert_each(vec![
        ("busy beside broken", vec![broken(), requests([one("11:40", 1.0)])], used_until("11:41")),
        ("open beside broken", vec![broken(), open([one("11:59", 1.0)])], open_until("12:00")),
        ("quiet beside broken", vec![requests([]), broken()], Err(Unread::Failed)),
        ("busy too long ago beside broken", vec![broken(), requests([one("11:25", 1.0)])], Err(Unread::Failed)),
        (
            "both quiet: the shorter proof counts",
            vec![requests([]), with_proof(series([]), each("11:35-12:00", 1.0))],
            quiet_since("11:35"),
        ),
        (
            "used, and then less silence is proved than since the use",
            vec![requests([one("11:25", 1.0)]), with_proof(series([]), each("11:35-12:00", 1.0))],
            Ok(Use { last_seen: Some(at("11:26")), last_possible: at("11:35"), open_now: false }),
        ),
    ]);
}

// Phases.

/// A node whose newest launch was at 11:00, in each state; ready or not where it runs.
fn in_state(state: &str) -> LookBuilder {
    let up = look().running_since("11:00");
    match state {
        "pending" => up.state(NodeState::Pending),
        "running" => up,
        "ready" => up.ready_at("11:01"),
        "stopping" => up.state(NodeState::Stopping),
        "stopped" => up.state(NodeState::Stopped),
        "gone" => up.state(NodeState::Gone),
        other => panic!("no state {other}"),
    }
}

type Claiming = fn(LookBuilder) -> LookBuilder;

#[test]
fn the_phase_is_the_describe_corrected_by_the_newest_claim() {
    use Phase::{Gone, Ready, Starting, Stopped, Stopping};
    let states = ["pending", "running", "ready", "stopping", "stopped", "gone"];
    let as_described = [Starting, Starting, Ready, Stopping, Stopped, Gone];
    let going_down = [Stopping, Stopping, Stopping, Stopping, Stopped, Gone];
    let coming_up = [Starting, Starting, Starting, Starting, Starting, Gone];
    let rows: [(&str, Claiming, [Phase; 6]); 12] = [
        ("no claim", |look| look, as_described),
        ("START, unanswered", |look| look.claimed(ClaimKind::Start, "11:59"), coming_up),
        (
            "START, overdue",
            |look| look.claimed(ClaimKind::Start, "11:56"),
            [Starting, Starting, Starting, Stopping, Stopped, Gone],
        ),
        (
            "START that found it running",
            |look| look.claimed(ClaimKind::Start, "11:59").answered(ClaimAnswer::AlreadyRunning),
            [Starting, Starting, Ready, Starting, Starting, Gone],
        ),
        (
            "START that found it running, overdue",
            |look| look.claimed(ClaimKind::Start, "11:56").answered(ClaimAnswer::AlreadyRunning),
            as_described,
        ),
        ("START, refused", |look| look.claimed(ClaimKind::Start, "11:59").answered(ClaimAnswer::Refused), as_described),
        (
            "START before the newest launch",
            |look| look.claimed(ClaimKind::Start, "10:59").claim(|claim| claim.launched_at = Some(at("09:00"))),
            as_described,
        ),
        ("STOP, unanswered", |look| look.claimed(ClaimKind::Stop, "11:59"), going_down),
        ("STOP, overdue", |look| look.claimed(ClaimKind::Stop, "11:30"), going_down),
        ("STOP, accepted", |look| look.claimed(ClaimKind::Stop, "11:30").answered(ClaimAnswer::Accepted), going_down),
        ("STOP, refused", |look| look.claimed(ClaimKind::Stop, "11:59").answered(ClaimAnswer::Refused), as_described),
        (
            "STOP before the newest launch",
            |look| look.claimed(ClaimKind::Stop, "10:58").claim(|claim| claim.launched_at = Some(at("09:00"))),
            as_described,
        ),
    ];
    for (name, claimed, phases) in rows {
        for (state, expected) in states.iter().zip(phases) {
            let look = claimed(in_state(state)).0;
            assert_eq!(phase(&look.seen, &look.record, at("12:00")), expected, "{state}, {name}");
        }
    }
}

#[test]
fn readiness_of_an_earlier_launch_is_no_readiness() {
    let look = in_state("ready").launched_at(Some(at("11:30"))).0;
    assert_eq!(phase(&look.seen, &look.record, at("12:00")), Phase::Starting);
}

#[test]
fn a_first_launch_is_newer_than_none() {
    let look = in_state("ready").claimed(ClaimKind::Stop, "10:59").claim(|claim| claim.launched_at = None).0;
    assert_eq!(phase(&look.seen, &look.record, at("12:00")), Phase::Ready);
}

#[test]
fn an_effect_is_overdue_after_four_minutes_and_the_run_s_time_out() {
    let rows = [
        ("four minutes", "11:56", "11:57", true),
        ("a second less", "11:56:01", "11:57", false),
        ("the time-out ends now", "11:45", "12:00", true),
        ("the time-out ends in a second", "11:45", "12:00:01", false),
    ];
    for (name, claimed, open, expected) in rows {
        let look = look().claimed(ClaimKind::Stop, claimed).claim(|claim| claim.open_until = at(open)).0;
        assert_eq!(is_overdue(&look.record, at("12:00")), expected, "{name}");
    }
}

#[test]
fn without_a_claim_nothing_is_overdue() {
    assert!(!is_overdue(&look().0.record, at("12:00")));
}
