//! What one run saw, and the two readings of it that every rule uses: the phase of a node and the use of a node.
//! A signal that could not be read is Unknown, never zero.

use crate::access_log::{Filter, line_use, minutes};
use crate::domain::{Beat, ClaimAnswer, ClaimKind, Instant, NodeRecord, NodeSeen, NodeState, Phase};
use crate::policy::{CLOCK_SKEW, FRESH_BEAT, LONGEST_GAP, STALE_LOOK, UNSETTLED};
use chrono::{DurationRound, TimeDelta};
use serde::Serialize;
use std::collections::BTreeMap;

/// The points of one metric in 1-minute buckets, each at the start of its minute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Bucket start and value, in any order.
    pub points: Vec<(Instant, f64)>,
    /// False if the service said that points may be missing (PartialData): what is there counts as use, silence proves
    /// nothing (field case 16).
    pub complete: bool,
}

/// Why a signal is Unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// The call failed, or the service answered an error for this metric.
    Failed,
    /// The answer is empty and nothing proves that the source is alive.
    SourceSilent,
    /// The service said that points are missing.
    Partial,
    /// The node's pool has no signals in the configuration.
    NoSignals,
    /// The source is alive, and was silent before: its silence is not proved for long enough.
    Gaps,
}

/// The points that lines of a request log make, each with the instant it was written at: above zero in the minutes in which
/// one was use, zero where a line only proves that the source is alive.
pub fn log_points<'a>(
    lines: impl IntoIterator<Item = (Instant, &'a [u8])>,
    filter: &Filter,
    from: Instant,
    to: Instant,
) -> Vec<(Instant, f64)> {
    let mut points: BTreeMap<Instant, f64> = BTreeMap::new();
    for (at, line) in lines {
        // The line itself proves that the source writes, used or not.
        *points.entry(at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)).or_default() += 0.0;
        for minute in minutes(line_use(filter, line, at), from, to) {
            *points.entry(minute).or_default() += 1.0;
        }
    }
    points.into_iter().filter(|(at, _)| *at >= from && *at < to).collect()
}

/// The beat, if it speaks of now and of this launch: not older than it may be, not of the future, not of an earlier boot.
pub fn fresh(beat: &Beat, launched_at: Option<Instant>, now: Instant) -> bool {
    now - beat.at <= FRESH_BEAT && beat.at - now <= CLOCK_SKEW && launched_at.is_none_or(|at| beat.at >= at)
}

/// A node's beat as two signals: the gauge of its open connections, and its counted use. Every minute from the beat's
/// `since` on is proved; what the agent remembers of use stands whether the newest beat is complete or not.
pub fn beat_signals(beat: Option<&Beat>, seen: &NodeSeen, now: Instant) -> [SignalReading; 2] {
    let beat = beat.filter(|beat| fresh(beat, seen.launched_at, now));
    let reading = |kind, newest: fn(&Beat) -> Option<Instant>| {
        let own = beat.ok_or(Unread::SourceSilent).map(|beat| {
            let proved = beat.since.into_iter().flat_map(|since| minutes_of(since.max(now - MOST_PROVED), beat.at));
            // What lies beyond the beat itself cannot be true, and no node's word makes a run fall.
            let used = newest(beat).map(|at| (whole_minute(at.min(beat.at)), 1.0));
            Series { points: proved.map(|at| (at, 0.0)).chain(used).collect(), complete: beat.since.is_some() }
        });
        SignalReading { kind, own, alive: None }
    };
    [reading(SignalKind::Open, |beat| beat.open_at), reading(SignalKind::Requests, |beat| beat.used_at)]
}

/// A beat proves at most so much: more than any idle time that can be configured.
const MOST_PROVED: TimeDelta = TimeDelta::hours(26);

fn minutes_of(from: Instant, to: Instant) -> impl Iterator<Item = Instant> {
    let first = whole_minute(from);
    (0..).map(move |n| first + TimeDelta::minutes(n)).take_while(move |at| *at <= to)
}

fn whole_minute(at: Instant) -> Instant {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)
}

/// What a signal counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignalKind {
    /// A Sum of requests.
    Requests,
    /// A gauge of open calls or connections.
    Open,
}

/// One configured signal as read: its own points and those of what proves it alive.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalReading {
    /// What it counts.
    pub kind: SignalKind,
    /// Its points, or why there are none.
    pub own: Result<Series, Unread>,
    /// The points of its proof of life; absent where none is configured, and then only its own zeros prove silence.
    pub alive: Option<Result<Series, Unread>>,
}

/// The use of one node, as far as it can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// The end of the newest bucket with a request or an open call.
    pub last_seen: Option<Instant>,
    /// The newest instant at which there may have been use: the last seen, or the start of the proven silence.
    pub last_possible: Instant,
    /// A call was open in the newest buckets.
    pub open_now: bool,
}

/// Use, or why it is Unknown.
pub type UseReading = Result<Use, Unread>;

/// Reads the use of a node launched at `since` from its signals. One busy signal is enough to be busy; silence needs every
/// signal. No signals at all: Unknown.
///
/// # Errors
/// The first reason why silence is not proved, where no signal shows use within `recent` before `now`.
pub fn read_use(signals: &[SignalReading], since: Instant, now: Instant, recent: TimeDelta) -> UseReading {
    let last_seen = signals.iter().filter_map(|signal| last_use(signal, now)).max();
    let open_now = signals.iter().any(|signal| is_open_now(signal, now));
    let silence = silence_from(signals, since, now);
    let recently = last_seen.is_some_and(|at| now - at < recent);
    match silence {
        Ok(from) => Ok(Use { last_seen, last_possible: last_seen.map_or(from, |at| at.max(from)), open_now }),
        Err(_) if recently => Ok(Use { last_seen, last_possible: last_seen.unwrap_or(now), open_now }),
        Err(why) => Err(why),
    }
}

/// The end of the newest bucket of at least one request or open call. Any value above zero counts, however small: a rate
/// that was averaged somewhere is still use (field case 17).
fn last_use(signal: &SignalReading, now: Instant) -> Option<Instant> {
    let series = signal.own.as_ref().ok()?;
    let bucket = series.points.iter().filter(|(_, value)| *value > 0.0).map(|(start, _)| *start).max()?;
    Some((bucket + TimeDelta::minutes(1)).min(now))
}

fn is_open_now(signal: &SignalReading, now: Instant) -> bool {
    let newest = now - UNSETTLED - TimeDelta::minutes(1);
    match (signal.kind, &signal.own) {
        (SignalKind::Open, Ok(series)) => series.points.iter().any(|(start, value)| *value > 0.0 && *start >= newest),
        (SignalKind::Open, Err(_)) | (SignalKind::Requests, _) => false,
    }
}

/// From when on every signal proves that it would have shown use.
fn silence_from(signals: &[SignalReading], since: Instant, now: Instant) -> Result<Instant, Unread> {
    if signals.is_empty() {
        return Err(Unread::NoSignals);
    }
    let mut from = since;
    for signal in signals {
        from = from.max(proved_from(signal, since, now)?);
    }
    Ok(from)
}

/// Walks back from the newest settled bucket over the points that prove the source alive, until a gap is too long.
fn proved_from(signal: &SignalReading, since: Instant, now: Instant) -> Result<Instant, Unread> {
    let own = signal.own.as_ref().map_err(|why| *why)?;
    if !own.complete {
        return Err(Unread::Partial);
    }
    // No count: nobody knows what such a metric means where it says nothing.
    if own.points.iter().any(|(_, value)| value.is_nan() || *value < 0.0) {
        return Err(Unread::Failed);
    }
    let mut proof: Vec<Instant> = own.points.iter().map(|(start, _)| *start).collect();
    match &signal.alive {
        Some(Ok(alive)) => proof.extend(alive.points.iter().map(|(start, _)| *start)),
        Some(Err(why)) => return Err(*why),
        None => {}
    }
    proof.sort_unstable();
    let mut covered = now - UNSETTLED;
    for start in proof.into_iter().rev() {
        if covered - (start + TimeDelta::minutes(1)) > LONGEST_GAP {
            break;
        }
        covered = covered.min(start);
    }
    // Nothing within the longest gap before the settled edge: the source is silent now.
    if covered == now - UNSETTLED && covered - since > LONGEST_GAP {
        return Err(Unread::SourceSilent);
    }
    // A launch is as good as a proof where the first point after it follows within the gap.
    if covered - since <= LONGEST_GAP { Ok(since) } else { Ok(covered) }
}

/// The phase of a node: the describe, corrected by the newest claim.
///
/// After a STOP claim a node that looks up is Stopping until the STOP was refused, a START claim replaced it, or EC2 shows
/// a LaunchTime newer than the one it was claimed at. After a START claim a node that looks down is Starting until the
/// START was refused, its LaunchTime moved (then it fell back or was stopped), or its effect is overdue.
pub fn phase(seen: &NodeSeen, record: &NodeRecord, now: Instant) -> Phase {
    let launched_since = |at: Option<Instant>| seen.launched_at > at;
    let claim = record
        .claim
        .as_ref()
        .filter(|claim| claim.answer != Some(ClaimAnswer::Refused) && !launched_since(claim.launched_at));
    let told = claim.map(|claim| (claim.kind, claim.answer.as_ref()));
    match (seen.state, told) {
        (NodeState::Gone, _) => Phase::Gone,
        (NodeState::Pending | NodeState::Running, Some((ClaimKind::Stop, _))) => Phase::Stopping,
        (NodeState::Running, Some((ClaimKind::Start, Some(ClaimAnswer::AlreadyRunning))) | None) => up(seen, record),
        (NodeState::Running, Some((ClaimKind::Start, _))) | (NodeState::Pending, _) => Phase::Starting,
        (NodeState::Stopping | NodeState::Stopped, Some((ClaimKind::Start, _))) if !is_overdue(record, now) => {
            Phase::Starting
        }
        (NodeState::Stopping, _) => Phase::Stopping,
        (NodeState::Stopped, _) => Phase::Stopped,
    }
}

fn up(seen: &NodeSeen, record: &NodeRecord) -> Phase {
    if record.is_ready(seen.launched_at) { Phase::Ready } else { Phase::Starting }
}

/// Whether the call under the newest claim can no longer be in flight and its effect would show by now.
pub fn is_overdue(record: &NodeRecord, now: Instant) -> bool {
    record.claim.as_ref().is_some_and(|claim| now >= claim.open_until && now - claim.at >= STALE_LOOK)
}
