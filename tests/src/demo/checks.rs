//! What the day has to show; one missing thing fails the demo.

use super::{DayLog, alarm};
use crate::report::Check;
use chrono::{DateTime, TimeDelta, Utc};

/// On-demand price of a g6.xlarge in us-east-1, Linux, in micro-dollars an hour (AWS price list as of 2026-07-20).
const MICRO_USD_AN_HOUR: i64 = 804_800;

/// One plan's hours and money for the day.
#[derive(Debug, Clone)]
pub struct Money {
    /// The plan.
    pub plan: String,
    /// Billed seconds.
    pub seconds: i64,
    /// What stands behind the figure.
    pub note: String,
}

impl Money {
    /// Node hours.
    pub fn hours(&self) -> f64 {
        TimeDelta::seconds(self.seconds).as_seconds_f64() / 3600.0
    }

    /// Micro-dollars, compute only.
    pub fn micro_usd(&self) -> i64 {
        self.seconds * MICRO_USD_AN_HOUR / 3600
    }
}

fn check(name: &str, ok: bool, detail: impl Into<String>) -> Check {
    Check { name: name.to_owned(), ok, detail: detail.into() }
}

fn clock(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%S").to_string()
}

impl DayLog {
    fn times(&self, event: &str) -> Vec<DateTime<Utc>> {
        self.events.iter().filter(|seen| seen.event == event).map(|seen| seen.at).collect()
    }

    /// Intervals from `running` to `stopping` (or the end of the day): what EC2 bills.
    pub fn running(&self, to: DateTime<Utc>) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
        let mut intervals = Vec::new();
        for states in self.states.values() {
            let mut since = None;
            for (at, state) in states {
                match (state.as_str(), since) {
                    ("running", None) => since = Some(*at),
                    ("stopping" | "stopped", Some(start)) => {
                        intervals.push((start, *at));
                        since = None;
                    }
                    _ => {}
                }
            }
            intervals.extend(since.map(|start| (start, to)));
        }
        intervals
    }

    /// The newest use before `at`: a request, a call's end, a wake, a start by hand.
    fn last_use(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let ends = self.calls.iter().filter_map(|call| call.ended);
        let starts = self.times("demand").into_iter().chain(self.started_by_hand);
        ends.chain(starts).filter(|used| *used <= at).max()
    }

    /// Every check of the day.
    pub fn checks(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<Check> {
        vec![
            self.woken_by_a_log_line(),
            self.prewarmed(),
            self.noise_wakes_nothing(),
            self.stops_within_40_minutes(),
            self.hand_started_node_is_stopped(from, to),
            self.failed_stop_is_repeated(),
            self.wake_meets_stopping(),
            self.no_call_cut(),
            self.every_caller_served(),
        ]
    }

    fn woken_by_a_log_line(&self) -> Check {
        let calls = self.calls.iter().filter(|call| !call.announced);
        let woken = calls.filter_map(|call| {
            let starts = self.times("start");
            starts.into_iter().find(|at| *at > call.at && *at - call.at < TimeDelta::seconds(20))
        });
        let first = woken.min();
        check("a line of the request log wakes the node", first.is_some(), first.map_or("never".to_owned(), clock))
    }

    fn prewarmed(&self) -> Check {
        let early = self.calls.iter().filter(|call| call.announced).find_map(|call| {
            let start =
                self.times("start").into_iter().find(|at| *at < call.at && call.at - *at < TimeDelta::minutes(3))?;
            Some((start, call.at, call.connected? - call.at))
        });
        let detail = early.map_or("never".to_owned(), |(start, at, wait)| {
            format!("started {}, called {}, waited {} s", clock(start), clock(at), wait.num_seconds())
        });
        check("a pre-warm starts the node before its call comes", early.is_some(), detail)
    }

    fn noise_wakes_nothing(&self) -> Check {
        let lines: u64 = self.noise.iter().map(|(_, lines)| lines).sum();
        let starts = self.times("start");
        let near = |at: &DateTime<Utc>| starts.iter().any(|start| start == at);
        let woken = self.noise.iter().filter(|(at, _)| near(at)).count();
        let ok = lines > 1000 && woken == 0;
        check(
            "noise wakes nothing",
            ok,
            format!("{lines} lines of noise in {} batches, {woken} starts", self.noise.len()),
        )
    }

    fn stops_within_40_minutes(&self) -> Check {
        let ages: Vec<i64> =
            self.times("stop").into_iter().filter_map(|at| Some((at - self.last_use(at)?).num_seconds())).collect();
        let longest = ages.iter().max().copied().unwrap_or(i64::MAX);
        let ok = !ages.is_empty() && longest <= 40 * 60;
        check(
            "each STOP is accepted within 40 minutes of the last use",
            ok,
            format!("{} stops, longest {} min", ages.len(), longest / 60),
        )
    }

    fn hand_started_node_is_stopped(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Check {
        let name = "a node started by hand is stopped again";
        let Some(start) = self.started_by_hand else { return check(name, false, "nobody started it") };
        let stop = self.times("stop").into_iter().find(|at| *at > start);
        let requests: Vec<DateTime<Utc>> = self.calls.iter().filter_map(|call| call.connected).collect();
        let alarm = alarm::acts_at(&requests, from, to, TimeDelta::minutes(30)).into_iter().find(|at| *at > start);
        let alarm = alarm.map_or("not before the end of the day".to_owned(), |at| format!("at {}", clock(at)));
        let ok = stop.is_some_and(|at| at - start <= TimeDelta::minutes(45));
        let stopped = stop.map_or("never".to_owned(), clock);
        check(
            name,
            ok,
            format!(
                "started {}, stopped {stopped}; an alarm's stop action, already in ALARM, would act {alarm}",
                clock(start)
            ),
        )
    }

    fn failed_stop_is_repeated(&self) -> Check {
        let failed = self.times("stop_failed").first().copied();
        let again = failed.and_then(|failed| self.times("stop").into_iter().find(|at| *at > failed));
        let ok = failed.zip(again).is_some_and(|(failed, again)| again - failed <= TimeDelta::minutes(6));
        let detail = failed.zip(again).map_or("no failure seen".to_owned(), |(failed, again)| {
            format!("failed {}, repeated {}", clock(failed), clock(again))
        });
        check("a STOP that fails once is repeated by the next tick", ok, detail)
    }

    fn wake_meets_stopping(&self) -> Check {
        let start =
            self.met_stopping.and_then(|met| self.times("start").into_iter().find(|at| *at > met).map(|at| (met, at)));
        let ok = start.is_some_and(|(met, at)| at - met <= TimeDelta::minutes(2));
        let detail = start.map_or("no wake met stopping".to_owned(), |(met, at)| {
            format!("woken {} while stopping, started {}", clock(met), clock(at))
        });
        check("a wake that meets `stopping` is kept and met", ok, detail)
    }

    fn no_call_cut(&self) -> Check {
        let stops = self.times("stop");
        let cut = self.calls.iter().filter(|call| {
            let talk = call.connected.zip(call.ended);
            talk.is_some_and(|(from, to)| stops.iter().any(|stop| *stop >= from && *stop < to))
        });
        let cut = cut.count();
        check("no call is cut", cut == 0 && !self.calls.is_empty(), format!("{} calls, {cut} cut", self.calls.len()))
    }

    fn every_caller_served(&self) -> Check {
        let unserved = self.calls.iter().filter(|call| call.connected.is_none()).count();
        let waits: Vec<i64> =
            self.calls.iter().filter_map(|call| Some((call.connected? - call.at).num_seconds())).collect();
        let waited = waits.iter().filter(|seconds| **seconds > 0).count();
        let longest = waits.iter().max().copied().unwrap_or(0);
        let detail = format!("{} calls, {waited} waited, longest {longest} s, {unserved} gave up", self.calls.len());
        check("every caller is connected within 90 s", unserved == 0, detail)
    }

    /// Hours and money of the day against the two plans without a controller.
    pub fn money(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<Money> {
        // Each start is billed for a minute at least.
        let billed = self.running(to).iter().map(|(start, end)| (*end - *start).num_seconds().max(60)).sum();
        let outside = self.calls.iter().filter(|call| {
            let hour = (call.at - from).num_hours();
            !(7..23).contains(&hour)
        });
        let outside = outside.count();
        let row = |plan: &str, seconds, note: String| Money { plan: plan.to_owned(), seconds, note };
        vec![
            row("Reveille, idle 30 min", billed, format!("{} starts", self.running(to).len())),
            row(
                "16-hour window, 07:00 to 23:00",
                16 * 3600,
                format!("{outside} of {} calls fall outside", self.calls.len()),
            ),
            row("24/7", (to - from).num_seconds(), "nobody waits".to_owned()),
        ]
    }
}
