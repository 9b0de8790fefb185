//! What the day has to show; one missing thing fails the demo.

use super::{AMOUNT_USD, DayLog, alarm};
use crate::report::{Check, Message};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeSet;

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
    /// When this happened to the node that serves the calls, or to its pool as a whole.
    fn times(&self, event: &str) -> Vec<DateTime<Utc>> {
        self.times_of(event, &self.voice)
    }

    fn times_of(&self, event: &str, node: &str) -> Vec<DateTime<Utc>> {
        let of_node = |seen: &&crate::report::Event| seen.node.as_deref().is_none_or(|other| other == node);
        self.events.iter().filter(|seen| seen.event == event).filter(of_node).map(|seen| seen.at).collect()
    }

    /// Intervals of the node that serves the calls from `running` to `stopping` (or the end of the day): what EC2 bills.
    pub fn running(&self, to: DateTime<Utc>) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
        let mut intervals = Vec::new();
        if let Some(states) = self.states.get(&self.voice) {
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
            self.leases_hold(),
            self.lease_of_the_dead_ends(),
            self.every_caller_served(),
            self.capacity_comes_back(),
            self.refused_key(),
            self.blindness(),
            self.open_call_keeps_the_job(),
            self.uptime_told_once(from),
            self.thresholds_told_once(),
            self.gate_closed_and_opened(),
            self.nothing_told_twice(),
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
        let starts = self.times_of("start", &self.voice);
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

    fn leases_hold(&self) -> Check {
        let connected = self.calls.iter().filter(|call| call.connected.is_some()).count();
        let detail = format!(
            "{} leases for {connected} calls, {} renewals, {} refused",
            self.leases, self.renewals, self.lost_leases
        );
        check(
            "every call holds a lease from its first second to its last",
            self.leases == connected && self.lost_leases == 0 && self.renewals > 0,
            detail,
        )
    }

    /// Nobody ended it: it ran out, and kept the node for no longer than the idle time and two ticks more.
    fn lease_of_the_dead_ends(&self) -> Check {
        let stop = self.died.and_then(|died| self.times("stop").into_iter().find(|stop| *stop > died));
        let detail = match (self.died, stop) {
            (Some(died), Some(stop)) => format!("died {}, stopped {}", clock(died), clock(stop)),
            (died, _) => format!("died {died:?}, never stopped after it"),
        };
        check("the lease of an app that died ends by itself", stop.is_some(), detail)
    }

    fn every_caller_served(&self) -> Check {
        let refused = self.calls.iter().filter(|call| call.refused).count();
        let unserved = self.calls.iter().filter(|call| call.connected.is_none() && !call.refused).count();
        let waits: Vec<i64> =
            self.calls.iter().filter_map(|call| Some((call.connected? - call.at).num_seconds())).collect();
        let waited = waits.iter().filter(|seconds| **seconds > 0).count();
        let longest = waits.iter().max().copied().unwrap_or(0);
        let detail = format!(
            "{} calls, {waited} waited, longest {longest} s, {refused} refused by the closed gate, {unserved} gave up",
            self.calls.len()
        );
        check("every caller is connected within 90 s, or told why not", unserved == 0, detail)
    }

    fn capacity_comes_back(&self) -> Check {
        let failed = self.failed_start("InsufficientInstanceCapacity");
        let started = failed.and_then(|failed| self.times_of("start", &self.lab).into_iter().find(|at| *at > failed));
        let asked = |failed: DateTime<Utc>, started: DateTime<Utc>| {
            self.events.iter().any(|seen| {
                seen.event == "demand"
                    && seen.function == "wake"
                    && seen.node.is_none()
                    && seen.at > failed
                    && seen.at <= started
                    && self.prewarms.contains(&seen.at)
                    && self.is_of_lab(seen.at)
            })
        };
        let ok = failed.zip(started).is_some_and(|(failed, started)| !asked(failed, started));
        let detail = failed.zip(started).map_or("never".to_owned(), |(failed, started)| {
            format!("refused {}, started {} by the tick, and nobody asked again", clock(failed), clock(started))
        });
        check("a START without capacity is met later with no further request", ok, detail)
    }

    /// The laboratory was opened at this instant.
    fn is_of_lab(&self, at: DateTime<Utc>) -> bool {
        self.events.iter().any(|seen| seen.at == at && seen.event == "person" && seen.reason.contains("laboratory"))
    }

    fn failed_start(&self, code: &str) -> Option<DateTime<Utc>> {
        let of_lab = self.events.iter().filter(|seen| seen.node.as_deref() == Some(&self.lab));
        of_lab.filter(|seen| seen.event == "start_failed" && seen.reason == code).map(|seen| seen.at).min()
    }

    fn refused_key(&self) -> Check {
        let failed = self.failed_start("Client.InternalError");
        let told = self.messages.iter().any(|message| message.body.contains("kms:CreateGrant"));
        let again = failed.and_then(|failed| self.times_of("start", &self.lab).into_iter().find(|at| *at > failed));
        let detail = failed.zip(again).map_or("never".to_owned(), |(failed, again)| {
            format!("fell back {}, told with the KMS grant to give, started again {}", clock(failed), clock(again))
        });
        check("a START that falls back is seen, told and tried again later", told && again.is_some(), detail)
    }

    fn blindness(&self) -> Check {
        let told = self.message("cannot see whether a node is used");
        let ended = self.message("sees again whether a node is used");
        let stopped = ended.and_then(|ended| self.times_of("stop", &self.lab).into_iter().find(|at| *at > ended.at));
        let ok = told.zip(ended).is_some_and(|(told, ended)| told.at < ended.at) && stopped.is_some();
        let detail = told.zip(ended).zip(stopped).map_or("never".to_owned(), |((told, ended), stopped)| {
            format!(
                "told {}, ended {}, stopped {} on what was seen since",
                clock(told.at),
                clock(ended.at),
                clock(stopped)
            )
        });
        check("a node that cannot be judged is kept and told, and judged again", ok, detail)
    }

    fn message(&self, words: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.subject.contains(words))
    }

    fn count_messages(&self, words: &str) -> usize {
        self.messages.iter().filter(|message| message.subject.contains(words)).count()
    }

    fn open_call_keeps_the_job(&self) -> Check {
        let stops = self.times_of("stop", &self.batch);
        let first = stops.first().copied();
        let ok = first.is_some_and(|at| at.format("%H:%M").to_string().as_str() >= "23:00");
        let detail = first.map_or("never".to_owned(), |at| {
            format!("no request all day; stopped {}, after its end at 22:30", clock(at))
        });
        check("a job with one open connection keeps its node until it ends", ok, detail)
    }

    /// The zone's day began at 23:00 UTC of the day before, so 20 hours are over at 19:00; it ends at 23:00, within this day.
    fn uptime_told_once(&self, from: DateTime<Utc>) -> Check {
        let told = self.message("up for more than 20 h");
        let (earliest, latest) = (from + TimeDelta::hours(19), from + TimeDelta::minutes(19 * 60 + 16));
        let in_time = told.is_some_and(|told| told.at >= earliest && told.at <= latest);
        let ok = in_time && self.count_messages("up for more than 20 h") == 1;
        let detail = told.map_or("never".to_owned(), |told| {
            format!(
                "at {}, 20 h after midnight in Berlin, and not again after the next midnight (23:00 UTC)",
                clock(told.at)
            )
        });
        check("more than 20 hours of uptime are told once", ok, detail)
    }

    fn thresholds_told_once(&self) -> Check {
        let of = |percent: u32, word: &str| -> Option<DateTime<Utc>> {
            let told: Vec<&Message> = self
                .messages
                .iter()
                .filter(|message| {
                    message.subject.contains(&format!("{percent} % of the 2026-11 budget"))
                        && message.subject.contains(word)
                })
                .collect();
            if let [one] = told.as_slice() { Some(one.at) } else { None }
        };
        let times: Option<Vec<DateTime<Utc>>> = [(50, "spent"), (80, "spent"), (100, "forecast"), (100, "spent")]
            .into_iter()
            .map(|(p, w)| of(p, w))
            .collect();
        let aws = times.as_ref().and_then(|times| times.last()).and_then(|at| {
            self.spend.iter().rfind(|(seen, _, _)| *seen <= *at + TimeDelta::minutes(1)).map(|(_, _, aws)| *aws)
        });
        // Shown only.
        let half = AMOUNT_USD as f64 / 2.0;
        let detail = match (&times, aws) {
            (Some(times), Some(aws)) => {
                let clocks: Vec<String> = times.iter().map(|at| clock(*at)).collect();
                format!(
                    "50 %, 80 %, forecast 100 %, 100 % at {}; AWS's own figure was ${aws:.2} of ${AMOUNT_USD} then",
                    clocks.join(", ")
                )
            }
            _ => "not each of 50, 80, 100 % and the forecast exactly once".to_owned(),
        };
        check("each budget threshold is told once, long before AWS's figure", aws.is_some_and(|aws| aws < half), detail)
    }

    fn gate_closed_and_opened(&self) -> Check {
        let gate = self.gates.first();
        let opened = gate.and_then(|gate| gate.to);
        let refused = self
            .refused_by_gate
            .as_ref()
            .filter(|(_, status, reason)| *status == 403 && reason.contains("the budget for 2026-11 is spent"));
        let started = gate.is_some_and(|gate| {
            self.events
                .iter()
                .any(|seen| seen.event == "start" && seen.at > gate.from && opened.is_none_or(|to| seen.at < to))
        });
        let ok = opened.is_some() && refused.is_some() && !started && self.gates.len() == 1;
        let detail = gate.zip(opened).zip(refused).map_or("never".to_owned(), |((gate, opened), (at, _, reason))| {
            format!(
                "closed {}, {} answered 403 \"{reason}\", opened {} with the new month",
                clock(gate.from),
                clock(*at),
                clock(opened)
            )
        });
        check("the gate closes at 100 % and opens with the new month", ok, detail)
    }

    fn nothing_told_twice(&self) -> Check {
        let all = self.messages.len();
        let different: BTreeSet<&String> = self.message_keys.iter().collect();
        let ok = all > 0 && different.len() == all;
        check("nothing is told twice", ok, format!("{all} messages about {} matters", different.len()))
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
