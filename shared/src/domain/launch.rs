//! One launch of a node: from its start to its stop. The history of launches is what uptime and money are counted from, so
//! neither depends on when somebody looked.

use super::{InstanceType, Instant, NodeState, WakeSource};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// A launch that was last seen running this long ago, and that nobody saw end, is taken to have ended then: a little more
/// than the uptime alarm's schedule, which renews the sight. Too long by minutes rather than too short.
pub const UNSEEN: TimeDelta = TimeDelta::minutes(20);

/// EC2 bills every start for this long at least.
const SHORTEST_BILLED: TimeDelta = TimeDelta::seconds(60);

/// A launch as far as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Launch {
    /// EC2's LaunchTime.
    pub launched_at: Instant,
    /// The instance type it was launched as.
    pub instance_type: Option<InstanceType>,
    /// The newest instant at which it was written down as running.
    pub seen_at: Instant,
    /// When it stopped; absent while it runs. Stopping is not billed, so this is when the stop was asked for.
    pub ended_at: Option<Instant>,
    /// Whether a request or an open call was counted; absent where that could not be told.
    #[serde(default)]
    pub used: Option<bool>,
    /// The wake that caused it, where one did.
    pub source: Option<WakeSource>,
    /// When the newest wake came that its START had in view, where one caused it.
    #[serde(default)]
    pub wanted_at: Option<Instant>,
    /// The beginning of a path that this wake asked for.
    #[serde(default)]
    pub path: Option<String>,
    /// When it was first seen ready; written with its end.
    #[serde(default)]
    pub ready_at: Option<Instant>,
    /// Whether it had an automatic public address: billed while it ran, and not to be seen afterwards.
    #[serde(default)]
    pub automatic_address: bool,
    /// Nobody saw its end: the end is presumed, and void where the node is seen up again.
    #[serde(default)]
    pub presumed: bool,
}

impl Launch {
    /// A launch of which nothing is known but when: nobody has seen it since, and it runs.
    pub fn at(launched_at: Instant) -> Self {
        Self {
            launched_at,
            instance_type: None,
            seen_at: launched_at,
            ended_at: None,
            used: None,
            source: None,
            wanted_at: None,
            path: None,
            ready_at: None,
            automatic_address: false,
            presumed: false,
        }
    }

    /// When it was last running, as of `now`: an open launch runs on.
    pub fn end(&self, now: Instant) -> Instant {
        self.ended_at.unwrap_or(now).max(self.launched_at)
    }

    /// Seconds of running within `[from, to)`, as of `now`.
    pub fn seconds_within(&self, from: Instant, to: Instant, now: Instant) -> i64 {
        overlap(self.launched_at, self.end(now), from, to)
    }

    /// Seconds billed within `[from, to)`, as of `now`: each start counts for a minute at least.
    pub fn billed_seconds_within(&self, from: Instant, to: Instant, now: Instant) -> i64 {
        overlap(self.launched_at, self.end(now).max(self.launched_at + SHORTEST_BILLED), from, to)
    }

    /// The end of a launch of which only a newer one, or nothing at all, was seen afterwards.
    pub fn unseen_end(&self, no_later_than: Instant) -> Instant {
        (self.seen_at + UNSEEN).min(no_later_than).max(self.launched_at)
    }

    /// The end of this launch as EC2 shows it: the time of the transition where it has one, else the time it was seen.
    pub fn end_as_shown(&self, state: NodeState, transition_at: Option<Instant>, now: Instant) -> Option<Instant> {
        match state {
            NodeState::Pending | NodeState::Running => None,
            NodeState::Stopping | NodeState::Stopped | NodeState::Gone => {
                Some(transition_at.filter(|at| *at >= self.launched_at && *at <= now).unwrap_or(now))
            }
        }
    }
}

fn overlap(start: Instant, end: Instant, from: Instant, to: Instant) -> i64 {
    (end.min(to) - start.max(from)).num_seconds().max(0)
}

/// Seconds that one node ran within `[from, to)`, from its launches in any order; two records of the same launch count once.
pub fn running_seconds<'a>(
    launches: impl IntoIterator<Item = &'a Launch>,
    from: Instant,
    to: Instant,
    now: Instant,
) -> i64 {
    merged(launches).iter().map(|launch| launch.seconds_within(from, to, now)).sum()
}

/// One record a launch: of two with the same LaunchTime the one that says more. Launches that overlap (one whose end nobody
/// saw) end where the next begins.
pub fn merged<'a>(launches: impl IntoIterator<Item = &'a Launch>) -> Vec<Launch> {
    let mut sorted: Vec<Launch> = launches.into_iter().cloned().collect();
    // Seen to end says more than running, and running more than presumed to have ended.
    let rank = |launch: &Launch| if launch.presumed { 2 } else { u8::from(launch.ended_at.is_none()) };
    // Of two ends that were seen the earlier is true, of two that are presumed the later.
    let end = |launch: &Launch| {
        let at = launch.ended_at.map_or(0, |end| end.timestamp_millis());
        if launch.presumed { -at } else { at }
    };
    sorted.sort_by_key(|launch| (launch.launched_at, rank(launch), end(launch)));
    sorted.dedup_by_key(|launch| launch.launched_at);
    let next: Vec<Option<Instant>> =
        sorted.iter().skip(1).map(|launch| Some(launch.launched_at)).chain([None]).collect();
    for (launch, next) in sorted.iter_mut().zip(next) {
        let Some(next) = next else { continue };
        launch.ended_at = Some(launch.ended_at.map_or_else(|| launch.unseen_end(next), |end| end.min(next)));
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock: &str) -> Instant {
        format!("2026-11-30T{clock}Z").parse().expect("a time")
    }

    fn launch(from: &str, to: Option<&str>) -> Launch {
        Launch { ended_at: to.map(at), ..Launch::at(at(from)) }
    }

    #[test]
    fn a_start_is_billed_for_a_minute_and_runs_for_less() {
        let short = launch("10:00:00", Some("10:00:20"));
        let (from, to, now) = (at("00:00:00"), at("23:00:00"), at("12:00:00"));
        assert_eq!((short.seconds_within(from, to, now), short.billed_seconds_within(from, to, now)), (20, 60));
    }

    #[test]
    fn an_open_launch_runs_on_and_one_nobody_saw_end_does_not() {
        let (from, to, now) = (at("00:00:00"), at("23:00:00"), at("12:00:00"));
        assert_eq!(running_seconds([&launch("10:00:00", None)], from, to, now), 2 * 3600);
        let lost = [&launch("08:00:00", None), &launch("11:00:00", None)];
        assert_eq!(running_seconds(lost, from, to, now), 20 * 60 + 3600);
    }

    /// Written before a launch kept its wake and its readiness, or an address.
    #[test]
    fn a_launch_of_an_earlier_version_is_read() {
        let text = r#"{"launched_at": "2026-11-30T10:00:00Z", "instance_type": null, "seen_at": "2026-11-30T10:00:00Z",
            "ended_at": null, "source": null}"#;
        assert_eq!(serde_json::from_str::<Launch>(text).expect("a launch"), launch("10:00:00", None));
    }

    #[test]
    fn the_same_launch_written_twice_counts_once() {
        let twice = [&launch("10:00:00", Some("10:30:00")), &launch("10:00:00", Some("10:31:00"))];
        assert_eq!(running_seconds(twice, at("00:00:00"), at("23:00:00"), at("12:00:00")), 30 * 60);
    }
}
