//! Drives the day: an agenda on virtual time.

use super::scenes::{BATCH_BALANCER, LAB_BALANCER, Nodes, Scene, job_ends, lab_is_silent, script};
use super::trace;
use super::{CallSeen, DayLog};
use crate::report::{Event, GateClosed, Message};
use crate::runtime_api::Invocation;
use crate::stage::{LOAD_BALANCER, LOG_GROUP, Stage, StageResult};
use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use reveille_soak::trace::Arrival;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Something that is due.
#[derive(Debug, Clone)]
enum Due {
    Minute,
    Tick,
    UptimeLook,
    BudgetLook,
    Scene(Scene),
    Prewarm(Occasion),
    Call(usize),
    Poll { call: usize, since: DateTime<Utc> },
    Renew(usize),
    HangUp(usize),
    Batch(Vec<String>),
    StartByHand,
}

/// Why somebody opens the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// A call follows.
    Call,
    /// The node is going down just now.
    Stopping,
    /// The gate is closed.
    Gate,
    /// The laboratory is opened.
    Lab,
}

/// A caller polls `/status` this often and gives up after this long (the documented loop).
const POLL: TimeDelta = TimeDelta::seconds(5);
const PATIENCE: TimeDelta = TimeDelta::seconds(90);
/// A call's lease lasts so long, and is renewed this often while the call lasts.
const LEASE: TimeDelta = TimeDelta::seconds(120);
const RENEW: TimeDelta = TimeDelta::seconds(60);
/// The app of this call dies in the middle of it: nobody renews its lease, and nobody ends it.
const DIES_IN_CALL: usize = 4;
/// Log lines reach the subscription this long after they were written.
const LOG_DELAY: TimeDelta = TimeDelta::seconds(6);
/// The gate opens with the new month, at the guard's first look.
const AFTER_MIDNIGHT: TimeDelta = TimeDelta::minutes(6);
/// Metric points are visible this long after their minute has ended.
const METRIC_DELAY: TimeDelta = TimeDelta::minutes(1);

struct Day<'a> {
    stage: &'a Stage,
    nodes: &'a Nodes,
    from: DateTime<Utc>,
    arrivals: Vec<Arrival>,
    agenda: BTreeMap<(DateTime<Utc>, u64), Due>,
    order: u64,
    log: DayLog,
    requests: BTreeMap<DateTime<Utc>, f64>,
    to: DateTime<Utc>,
    stops: u32,
    tell: &'a mut dyn FnMut(&Event),
}

/// Runs the day from midnight to midnight, and on until the first looks of the new day; `tell` is given each event as it
/// happens.
///
/// # Errors
/// The stage refused something: a fault of the demo, not of the functions.
pub async fn run(
    stage: &Stage,
    nodes: &Nodes,
    arrivals: Vec<Arrival>,
    noise: &[String],
    to: DateTime<Utc>,
    tell: &mut dyn FnMut(&Event),
) -> StageResult<DayLog> {
    let from = stage.aws.now().await;
    let (agenda, log, requests) = (BTreeMap::new(), DayLog::default(), BTreeMap::new());
    let mut day = Day { stage, nodes, from, arrivals, agenda, order: 0, log, requests, to, stops: 0, tell };
    day.plan(from, noise);
    day.log.voice = nodes.voice.to_string();
    day.log.batch = nodes.batch.to_string();
    day.log.lab = nodes.lab.to_string();
    for (node, state) in [(&nodes.voice, "stopped"), (&nodes.batch, "running"), (&nodes.lab, "stopped")] {
        day.log.states.insert(node.to_string(), vec![(from, state.to_owned())]);
    }
    stage.aws.clear_calls().await;
    while let Some(((at, _), due)) = day.agenda.pop_first() {
        if at > to + AFTER_MIDNIGHT {
            break;
        }
        day.pass_to(at).await;
        day.carry_out(due).await?;
    }
    day.count_calls().await;
    day.take_messages().await;
    Ok(day.log)
}

impl Day<'_> {
    fn plan(&mut self, from: DateTime<Utc>, noise: &[String]) {
        let minutes = (self.to + AFTER_MIDNIGHT - from).num_minutes();
        for minute in 1..=minutes {
            let at = from + TimeDelta::minutes(minute);
            self.due(at, Due::Minute);
            // EventBridge fires within the minute, several seconds late.
            let looks = [(5, 7, Due::Tick), (15, 9, Due::UptimeLook), (60, 11, Due::BudgetLook)];
            for (_, seconds, look) in looks.into_iter().filter(|(every, _, _)| minute % every == 0) {
                self.due(at + TimeDelta::seconds(seconds), look);
            }
        }
        for (at, scene) in script(from) {
            self.due(at, Due::Scene(scene));
        }
        for (n, call) in self.arrivals.clone().into_iter().enumerate() {
            self.due(call.at, Due::Call(n));
            if let Some(lead) = call.announced {
                self.due(call.at - lead, Due::Prewarm(Occasion::Call));
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
            Due::UptimeLook => {
                let invocation = self.stage.look_at_uptime().await;
                self.read_logs(&invocation);
            }
            Due::BudgetLook => {
                let invocation = self.stage.look_at_budget().await;
                self.read_logs(&invocation);
                self.read_spend(now, &invocation);
            }
            Due::Scene(scene) => self.play(now, scene).await,
            Due::Prewarm(occasion) => self.prewarm(now, occasion).await,
            Due::Call(call) => self.arrive(now, call),
            Due::Poll { call, since } => self.poll(now, call, since).await,
            Due::Renew(call) => self.renew(now, call).await,
            Due::HangUp(call) => self.hang_up(call).await,
            Due::Batch(lines) => {
                let invocation = self.stage.log_lines(LOG_GROUP, &lines).await;
                self.read_logs(&invocation);
            }
            Due::StartByHand => {
                self.log.started_by_hand = Some(now);
                let voice = self.nodes.voice.to_string();
                self.say(now, "person", Some(voice), "person", "started by hand, for nobody's call");
                self.stage.start_by_hand(&self.nodes.voice).await?;
            }
        }
        Ok(())
    }

    /// The load balancers' points of the minute before last.
    async fn publish_minute(&mut self, now: DateTime<Utc>) -> StageResult<()> {
        let bucket = now - METRIC_DELAY - TimeDelta::minutes(1);
        let alive = ("HealthyHostCount", bucket, 1.0);
        if !lab_is_silent(self.from, bucket) {
            self.stage.put_points_of(LAB_BALANCER, &[alive]).await?;
        }
        // The job holds one connection open and sends no further request.
        let job = ("ActiveConnectionCount", bucket, 1.0);
        let of_job: Vec<_> = [alive].into_iter().chain((bucket < job_ends(self.from)).then_some(job)).collect();
        self.stage.put_points_of(BATCH_BALANCER, &of_job).await?;
        let end = bucket + TimeDelta::minutes(1);
        let mut points = vec![alive];
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
        self.stage.put_points_of(LOAD_BALANCER, &points).await
    }

    async fn tick(&mut self) {
        // The day's second STOP fails once with a server error.
        if self.stops == 1 && !self.log.events.iter().any(|event| event.event == "stop_failed") {
            self.stage.aws.clear_faults().await;
            let fault = json!([{"service": "ec2", "action": "StopInstances", "code": "InternalError", "status": 500,
                "message": "An internal error has occurred", "times": 1, "match": self.nodes.voice.as_str()}]);
            self.stage.aws.faults(fault).await;
        }
        let before = self.stops;
        let invocation = self.stage.tick().await;
        self.read_logs(&invocation);
        let now = self.stage.aws.now().await;
        if self.stops == 3 && before == 2 {
            // Somebody opens the app just as the node goes down.
            self.due(now + TimeDelta::seconds(12), Due::Prewarm(Occasion::Stopping));
        }
    }

    async fn prewarm(&mut self, now: DateTime<Utc>, occasion: Occasion) {
        self.log.prewarms.push(now);
        let body = if occasion == Occasion::Lab { json!({"pool": "lab"}) } else { Value::Null };
        let (status, answer, invocation) = self.stage.prewarm(&body).await;
        self.read_logs(&invocation);
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        if status >= 400 || status == 0 {
            let why = [text("fault"), text("gate")].concat();
            self.say(now, "wake", None, "refused", &format!("{status} {}: {why}", text("state")));
        }
        match occasion {
            Occasion::Stopping if text("state") == "stopping_will_start" => self.log.met_stopping = Some(now),
            Occasion::Gate => self.log.refused_by_gate = Some((now, status, text("gate"))),
            Occasion::Stopping | Occasion::Call | Occasion::Lab => {}
        }
    }

    async fn play(&mut self, now: DateTime<Utc>, scene: Scene) {
        let who = if matches!(scene, Scene::Billed(_) | Scene::CapacityBack) { "aws" } else { "person" };
        self.say(now, who, None, "person", &scene.told());
        if scene.play(self.stage, self.nodes).await {
            self.prewarm(now, Occasion::Lab).await;
        }
    }

    /// The guard's own words of what the month has cost so far.
    fn read_spend(&mut self, now: DateTime<Utc>, invocation: &Invocation) {
        let lines = invocation.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let Some(line) = lines.into_iter().find(|line| line["decided"] == json!(true)) else { return };
        let dollars = |name: &str| line["inputs"][name].as_str().and_then(|text| text.parse().ok()).unwrap_or(0.0);
        self.log.spend.push((now, dollars("own_estimate"), dollars("aws_actual")));
    }

    async fn take_messages(&mut self) {
        for message in self.stage.aws.published().await {
            let at = DateTime::from_timestamp_millis(message.at_ms).unwrap_or_default();
            let subject = message.subject.unwrap_or_default();
            self.log.message_keys.extend(message.attributes.get("key").cloned());
            self.log.messages.push(Message { at, subject, body: message.message });
        }
    }

    /// The gates of all pools close and open together; the first to say so stands for all.
    fn read_gate(&mut self, at: DateTime<Utc>, event: &str, reason: &str) {
        let open = self.log.gates.iter_mut().find(|gate| gate.to.is_none());
        match (event, open) {
            ("gate_closed", None) => {
                self.log.gates.push(GateClosed { from: at, to: None, reason: reason.to_owned() });
                self.due(at + TimeDelta::minutes(10), Due::Prewarm(Occasion::Gate));
            }
            ("gate_opened", Some(gate)) => gate.to = Some(at),
            _ => {}
        }
    }

    /// The caller asks the front for a call; its log line reaches the subscription a little later.
    fn arrive(&mut self, now: DateTime<Utc>, call: usize) {
        let announced = self.arrivals[call].announced.is_some();
        self.log.calls.push(CallSeen { at: now, connected: None, ended: None, announced, refused: false });
        let call = self.log.calls.len() - 1;
        self.due(now, Due::Poll { call, since: now });
    }

    async fn poll(&mut self, now: DateTime<Utc>, call: usize, since: DateTime<Utc>) {
        let (status, _, invocation) = self.stage.status().await;
        self.read_logs(&invocation);
        if now == since {
            // The front's line: 200 where the node took the call, 503 where it slept.
            let answered = if matches!(status, 200 | 403) { status } else { 503 };
            let line = trace::call_line(now, answered);
            self.due(now + LOG_DELAY, Due::Batch(vec![line]));
        }
        if status == 200 && self.lease(call, false).await == 200 {
            let lasts = self.arrivals[call].lasts;
            let dies = call == DIES_IN_CALL;
            let end = now + if dies { lasts / 2 } else { lasts };
            self.log.calls[call].connected = Some(now);
            self.log.calls[call].ended = Some(end);
            let minute = now.with_second(0).and_then(|at| at.with_nanosecond(0)).unwrap_or(now);
            *self.requests.entry(minute).or_default() += 1.0;
            self.due(now + RENEW, Due::Renew(call));
            if dies {
                self.log.died = Some(end);
            } else {
                self.due(end, Due::HangUp(call));
            }
        } else if status == 403 {
            self.log.calls[call].refused = true;
        } else if now - since < PATIENCE {
            self.due(now + POLL, Due::Poll { call, since });
        }
    }

    /// `PUT /leases/{id}`: taken when the call is connected, renewed while it lasts.
    async fn lease(&mut self, call: usize, renew: bool) -> u16 {
        let body = json!({"ttl_seconds": LEASE.num_seconds(), "renew": renew});
        let (status, _, invocation) = self.stage.request("PUT", &format!("/leases/call-{call}"), &body).await;
        self.read_logs(&invocation);
        self.log.leases += usize::from(status == 200 && !renew);
        self.log.renewals += usize::from(status == 200 && renew);
        status
    }

    async fn renew(&mut self, now: DateTime<Utc>, call: usize) {
        if self.log.calls[call].ended.is_some_and(|end| now < end) {
            self.log.lost_leases += usize::from(self.lease(call, true).await != 200);
            self.due(now + RENEW, Due::Renew(call));
        }
    }

    async fn hang_up(&mut self, call: usize) {
        let (status, _, invocation) = self.stage.request("DELETE", &format!("/leases/call-{call}"), &Value::Null).await;
        self.read_logs(&invocation);
        self.log.lost_leases += usize::from(status != 204);
    }

    /// Effects and noise, as the functions' own logs tell them.
    fn read_logs(&mut self, invocation: &Invocation) {
        for line in &invocation.logs {
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            if line["effect"] == json!(true) {
                let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
                let at = text("at").parse().unwrap_or_default();
                let event = text("event");
                self.stops += u32::from(event == "stop" && text("node") == self.nodes.voice.as_str());
                self.read_gate(at, &event, &text("reason"));
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
