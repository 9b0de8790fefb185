//! Drives the day: an agenda on virtual time.

use super::trace::{self, Arrival};
use super::{CallSeen, DayLog};
use crate::report::Event;
use crate::runtime_api::Invocation;
use crate::stage::{LOG_GROUP, Stage, StageResult};
use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use reveille::domain::NodeId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Something that is due.
#[derive(Debug, Clone)]
enum Due {
    Minute,
    Tick,
    Prewarm { repeat_of: Option<&'static str> },
    Call(usize),
    Poll { call: usize, since: DateTime<Utc> },
    Batch(Vec<String>),
    StartByHand,
    Watch,
}

/// A caller polls `/status` this often and gives up after this long (the documented loop).
const POLL: TimeDelta = TimeDelta::seconds(5);
const PATIENCE: TimeDelta = TimeDelta::seconds(90);
/// Log lines reach the subscription this long after they were written.
const LOG_DELAY: TimeDelta = TimeDelta::seconds(6);
/// Metric points are visible this long after their minute has ended.
const METRIC_DELAY: TimeDelta = TimeDelta::minutes(1);

struct Day<'a> {
    stage: &'a Stage,
    node: NodeId,
    arrivals: Vec<Arrival>,
    agenda: BTreeMap<(DateTime<Utc>, u64), Due>,
    order: u64,
    log: DayLog,
    requests: BTreeMap<DateTime<Utc>, f64>,
    to: DateTime<Utc>,
    stops: u32,
    tell: &'a mut dyn FnMut(&Event),
}

/// Runs the day from midnight to midnight; `tell` is given each event as it happens.
///
/// # Errors
/// The stage refused something: a fault of the demo, not of the functions.
pub async fn run(
    stage: &Stage,
    node: &NodeId,
    arrivals: Vec<Arrival>,
    noise: &[String],
    to: DateTime<Utc>,
    tell: &mut dyn FnMut(&Event),
) -> StageResult<DayLog> {
    let from = stage.aws.now().await;
    let (agenda, log) = (BTreeMap::new(), DayLog::default());
    let (node, requests) = (node.clone(), BTreeMap::new());
    let mut day = Day { stage, node, arrivals, agenda, order: 0, log, requests, to, stops: 0, tell };
    day.plan(from, noise);
    day.log.states.insert(day.node.to_string(), vec![(from, "stopped".to_owned())]);
    stage.aws.clear_calls().await;
    while let Some(((at, _), due)) = day.agenda.pop_first() {
        if at > to {
            break;
        }
        day.pass_to(at).await;
        day.carry_out(due).await?;
    }
    day.count_calls().await;
    Ok(day.log)
}

impl Day<'_> {
    fn plan(&mut self, from: DateTime<Utc>, noise: &[String]) {
        let minutes = (self.to - from).num_minutes();
        for minute in 1..=minutes {
            self.due(from + TimeDelta::minutes(minute), Due::Minute);
            if minute % 5 == 0 {
                // EventBridge fires within the minute, several seconds late.
                self.due(from + TimeDelta::minutes(minute) + TimeDelta::seconds(7), Due::Tick);
            }
        }
        for (n, call) in self.arrivals.clone().into_iter().enumerate() {
            self.due(call.at, Due::Call(n));
            if let Some(lead) = call.announced {
                self.due(call.at - lead, Due::Prewarm { repeat_of: None });
            }
        }
        // Strangers come all day, some 50 lines every 20 minutes; at night too, when the node sleeps.
        for (n, lines) in (0_i64..).zip(noise.chunks(35)) {
            let at = from + TimeDelta::minutes(20 * n + 3);
            self.due(at, Due::Batch(trace::probe_lines(at).into_iter().chain(lines.iter().cloned()).collect()));
        }
        let quiet = longest_gap(&self.arrivals, from, self.to);
        self.due(quiet, Due::StartByHand);
    }

    fn due(&mut self, at: DateTime<Utc>, what: Due) {
        self.order += 1;
        self.agenda.insert((at, self.order), what);
    }

    /// Lets the world go on to this instant; each EC2 event is given to the wake function, as its rule does.
    async fn pass_to(&mut self, to: DateTime<Utc>) {
        for event in self.stage.aws.set_clock(to).await {
            let state = event["detail"]["state"].as_str().unwrap_or_default().to_owned();
            let node = event["detail"]["instance-id"].as_str().unwrap_or_default().to_owned();
            let at = event["time"].as_str().and_then(|at| at.parse().ok()).unwrap_or(to);
            self.log.states.entry(node.clone()).or_default().push((at, state.clone()));
            if state == "running" || state == "stopped" {
                self.say(at, "ec2", Some(node), &state, "state-change event");
            }
            let invocation = self.stage.wake.invoke(&event).await;
            self.read_logs(&invocation);
        }
    }

    async fn carry_out(&mut self, due: Due) -> StageResult<()> {
        let now = self.stage.aws.now().await;
        match due {
            Due::Minute => self.publish_minute(now).await?,
            Due::Tick => self.tick().await,
            Due::Prewarm { repeat_of } => self.prewarm(now, repeat_of).await,
            Due::Call(call) => self.arrive(now, call),
            Due::Poll { call, since } => self.poll(now, call, since).await,
            Due::Batch(lines) => {
                let invocation = self.stage.log_lines(LOG_GROUP, &lines).await;
                self.read_logs(&invocation);
            }
            Due::StartByHand => {
                self.log.started_by_hand = Some(now);
                self.say(now, "person", Some(self.node.to_string()), "person", "started by hand, for nobody's call");
                self.stage.start_by_hand(&self.node).await?;
            }
            Due::Watch => {}
        }
        Ok(())
    }

    /// The load balancer's points of the minute before last.
    async fn publish_minute(&mut self, now: DateTime<Utc>) -> StageResult<()> {
        let bucket = now - METRIC_DELAY - TimeDelta::minutes(1);
        let end = bucket + TimeDelta::minutes(1);
        let mut points = vec![("HealthyHostCount", bucket, 1.0)];
        let open = self
            .log
            .calls
            .iter()
            .filter(|call| call.connected.is_some_and(|at| at < end) && call.ended.is_none_or(|at| at > bucket));
        let open = open.count();
        // Absent, not zero, where nothing was open: as the load balancer does.
        if open > 0 {
            points.push(("ActiveConnectionCount", bucket, f64::from(u32::try_from(open).unwrap_or(u32::MAX))));
        }
        if let Entry::Occupied(requests) = self.requests.entry(bucket) {
            points.push(("RequestCount", bucket, *requests.get()));
        }
        self.stage.put_points(&points).await
    }

    async fn tick(&mut self) {
        // The day's second STOP fails once with a server error.
        if self.stops == 1 && !self.log.events.iter().any(|event| event.event == "stop_failed") {
            self.stage.aws.clear_faults().await;
            let fault = json!([{"service": "ec2", "action": "StopInstances", "code": "InternalError", "status": 500,
                "message": "An internal error has occurred", "times": 1}]);
            self.stage.aws.faults(fault).await;
        }
        let before = self.stops;
        let invocation = self.stage.tick().await;
        self.read_logs(&invocation);
        let now = self.stage.aws.now().await;
        if self.stops == 3 && before == 2 {
            // Somebody opens the app just as the node goes down.
            self.due(now + TimeDelta::seconds(12), Due::Prewarm { repeat_of: Some("stopping") });
        }
    }

    async fn prewarm(&mut self, now: DateTime<Utc>, repeat_of: Option<&str>) {
        self.log.prewarms.push(now);
        let (status, answer, invocation) = self.stage.prewarm(&Value::Null).await;
        self.read_logs(&invocation);
        let state = answer["state"].as_str().unwrap_or_default().to_owned();
        if status >= 500 || status == 0 {
            self.say(now, "wake", None, "refused", &format!("{status} {state}"));
        }
        if state == "stopping_will_start" && repeat_of.is_some() {
            self.log.met_stopping = Some(now);
        }
    }

    /// The caller asks the front for a call; its log line reaches the subscription a little later.
    fn arrive(&mut self, now: DateTime<Utc>, call: usize) {
        let announced = self.arrivals[call].announced.is_some();
        self.log.calls.push(CallSeen { at: now, connected: None, ended: None, announced });
        let call = self.log.calls.len() - 1;
        self.due(now, Due::Poll { call, since: now });
    }

    async fn poll(&mut self, now: DateTime<Utc>, call: usize, since: DateTime<Utc>) {
        let (status, _, invocation) = self.stage.status().await;
        self.read_logs(&invocation);
        if now == since {
            // The front's line: 200 where the node took the call, 503 where it slept.
            let line = trace::call_line(now, if status == 200 { 200 } else { 503 });
            self.due(now + LOG_DELAY, Due::Batch(vec![line]));
        }
        if status == 200 {
            let lasts = self.arrivals[call].lasts;
            self.log.calls[call].connected = Some(now);
            self.log.calls[call].ended = Some(now + lasts);
            let minute = now.with_second(0).and_then(|at| at.with_nanosecond(0)).unwrap_or(now);
            *self.requests.entry(minute).or_default() += 1.0;
            self.due(now + lasts, Due::Watch);
        } else if now - since < PATIENCE {
            self.due(now + POLL, Due::Poll { call, since });
        }
    }

    /// Effects and noise, as the functions' own logs tell them.
    fn read_logs(&mut self, invocation: &Invocation) {
        for line in &invocation.logs {
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            if line["effect"] == json!(true) {
                let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
                let at = text("at").parse().unwrap_or_default();
                let event = text("event");
                self.stops += u32::from(event == "stop");
                if event == "ready" {
                    self.log.states.entry(text("node")).or_default().push((at, event.clone()));
                }
                self.say(at, &text("function"), line["node"].as_str().map(str::to_owned), &event, &text("reason"));
            }
            self.read_noise(&line["batch"]);
        }
        if let Err(error) = &invocation.result {
            let now = self.log.events.last().map(|event| event.at).unwrap_or_default();
            self.say(now, "lambda", None, "refused", &error.to_string());
        }
    }

    fn read_noise(&mut self, batch: &Value) {
        let Some(noise) = batch["noise"].as_object().filter(|noise| !noise.is_empty()) else { return };
        let lines: u64 = noise.values().filter_map(Value::as_u64).sum();
        let at = batch["at"].as_str().and_then(|at| at.parse().ok()).unwrap_or_default();
        self.log.noise.push((at, lines));
        let reasons: Vec<String> = noise.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        self.say(at, "wake", None, "noise", &format!("{lines} lines wake nothing: {}", reasons.join(", ")));
    }

    fn say(&mut self, at: DateTime<Utc>, function: &str, node: Option<String>, event: &str, reason: &str) {
        let (function, event, reason) = (function.to_owned(), event.to_owned(), reason.to_owned());
        let said = Event { at, function, node, event, reason };
        (self.tell)(&said);
        self.log.events.push(said);
    }

    async fn count_calls(&mut self) {
        for call in self.stage.aws.calls().await {
            if call.action != "PutMetricData" {
                *self.log.aws_calls.entry(format!("{}:{}", call.service, call.action)).or_default() += 1;
            }
        }
    }
}

/// The middle of the longest time without a call between the first call and the end of the day.
fn longest_gap(arrivals: &[Arrival], from: DateTime<Utc>, to: DateTime<Utc>) -> DateTime<Utc> {
    let mut times: Vec<DateTime<Utc>> = arrivals.iter().map(|call| call.at).collect();
    times.push(to);
    let gap = times.windows(2).max_by_key(|pair| pair[1] - pair[0]);
    gap.map_or(from, |pair| pair[0] + (pair[1] - pair[0]) / 2)
}
