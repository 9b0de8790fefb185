//! A day on virtual time of what was made: the rules fire when their expressions say, and the scripts of [`super::voice`] and
//! [`super::existing`] tell what people do.

use super::node::Node;
use super::services::{Repeat, Services, rate};
use super::wiring::Rule;
use crate::report::Check;
use crate::stage::{StageResult, url_event};
use aws_sdk_cloudwatch::primitives::DateTime as SdkDateTime;
use aws_sdk_cloudwatch::types::{Dimension, MetricDatum};
use aws_sdk_ec2::types::Tag;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// EventBridge is some seconds late.
const LATE: TimeDelta = TimeDelta::seconds(7);
/// What a person writes on a node that he wants to keep.
const HOLD: &str = "reveille:keep-until";
/// EC2 tells of a stop when it is done.
const STOPS: TimeDelta = TimeDelta::seconds(40);
/// A caller polls this often and gives up after this long.
const POLL: TimeDelta = TimeDelta::seconds(5);
const PATIENCE: TimeDelta = TimeDelta::seconds(180);
/// A call's lease, and how often it is renewed.
const LEASE_SECONDS: i64 = 120;
const RENEW: TimeDelta = TimeDelta::seconds(60);

/// What the nodes' signals are, and so what the day has to play each minute.
#[derive(Debug)]
pub(super) enum Signal {
    /// The agents on the nodes.
    Beats(Vec<Node>),
    /// The load balancer's metrics.
    Balancer {
        /// The load balancer, as its metrics name it.
        balancer: String,
        /// The target group of its healthy hosts.
        target_group: String,
        /// Calls that are open; none where the load balancer writes nothing at all.
        open: Option<u32>,
    },
}

/// A call as it went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// When the caller first asked.
    pub asked: DateTime<Utc>,
    /// When the node was ready for it.
    pub connected: DateTime<Utc>,
    /// When it ended.
    pub ended: DateTime<Utc>,
}

/// A change of a node's state.
#[derive(Debug, Clone)]
pub(super) struct Moved {
    /// When.
    pub at: DateTime<Utc>,
    /// The node.
    pub node: String,
    /// EC2's word.
    pub state: String,
}

#[derive(Debug, Clone)]
enum Due {
    Minute,
    Fire(usize),
    Repeat(Box<Repeat>),
}

/// The day.
#[derive(Debug)]
pub(super) struct Day {
    /// The account.
    pub services: Services,
    /// When it began.
    pub from: DateTime<Utc>,
    /// What EC2 did.
    pub moved: Vec<Moved>,
    /// What was looked for.
    pub checks: Vec<Check>,
    /// Beats that could not be written.
    pub lost_beats: Vec<(DateTime<Utc>, String)>,
    /// Times in which trouble was made, so that functions may fail.
    pub trouble: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    signal: Signal,
    agenda: BTreeMap<(DateTime<Utc>, u64), Due>,
    order: u64,
    now: DateTime<Utc>,
    caller: String,
}

impl Day {
    /// Begins the day.
    ///
    /// # Errors
    /// A rule has a schedule that is not known here, or nobody may call the URL.
    pub(super) async fn begin(services: Services, signal: Signal) -> StageResult<Self> {
        let now = services.aws.now().await;
        let caller = caller(&services)?;
        let (agenda, checks) = (BTreeMap::new(), Vec::new());
        let mut day = Self {
            services,
            from: now,
            moved: Vec::new(),
            checks,
            lost_beats: Vec::new(),
            trouble: Vec::new(),
            signal,
            agenda,
            order: 0,
            now,
            caller,
        };
        day.due(now + TimeDelta::minutes(1), Due::Minute);
        let rules = day.services.wiring.rules.clone();
        for (n, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.enabled) {
            if let Some(expression) = &rule.schedule {
                day.due(now + rate(expression)? + LATE, Due::Fire(n));
            }
        }
        Ok(day)
    }

    /// An instant of the day.
    pub(super) fn at(&self, hour: i64, minute: i64) -> DateTime<Utc> {
        self.from + TimeDelta::hours(hour) + TimeDelta::minutes(minute)
    }

    /// The present instant.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn due(&mut self, at: DateTime<Utc>, what: Due) {
        self.order += 1;
        self.agenda.insert((at, self.order), what);
    }

    fn again(&mut self, repeats: Vec<Repeat>) {
        for repeat in repeats {
            self.due(repeat.at, Due::Repeat(Box::new(repeat)));
        }
    }

    /// Lets the day go on to this instant.
    ///
    /// # Errors
    /// The local AWS refused something, or an agent could not write.
    pub(super) async fn until(&mut self, to: DateTime<Utc>) -> StageResult<()> {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= to) {
            let ((at, _), due) = entry.remove_entry();
            self.pass(at).await?;
            match due {
                Due::Minute => {
                    self.minute().await?;
                    self.due(at + TimeDelta::minutes(1), Due::Minute);
                }
                Due::Fire(n) => {
                    let rule: Rule = self.services.wiring.rules[n].clone();
                    let repeats = self.services.fire(&rule).await?;
                    self.again(repeats);
                    self.due(at + rate(rule.schedule.as_deref().unwrap_or_default())?, Due::Fire(n));
                }
                Due::Repeat(repeat) => {
                    let repeats = self.services.repeat(*repeat).await?;
                    self.again(repeats.into_iter().collect());
                }
            }
        }
        self.pass(to).await
    }

    async fn pass(&mut self, to: DateTime<Utc>) -> StageResult<()> {
        for event in self.services.aws.set_clock(to).await {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let moved = Moved {
                at: text(&event["time"]).parse()?,
                node: text(&event["detail"]["instance-id"]),
                state: text(&event["detail"]["state"]),
            };
            if let Signal::Beats(nodes) = &mut self.signal {
                nodes
                    .iter_mut()
                    .filter(|node| node.id == moved.node)
                    .for_each(|node| node.state(&moved.state, moved.at));
            }
            self.moved.push(moved);
            let repeats = self.services.publish(&event).await?;
            self.again(repeats);
        }
        self.now = to;
        Ok(())
    }

    async fn minute(&mut self) -> StageResult<()> {
        let now = self.now;
        match &self.signal {
            Signal::Beats(nodes) => {
                for node in nodes {
                    if let Err(fault) = node.beat(now).await {
                        self.lost_beats.push((now, fault.to_string()));
                    }
                }
            }
            Signal::Balancer { balancer, target_group, open } => {
                let Some(open) = open else { return Ok(()) };
                // Visible a minute after its own minute has ended.
                let bucket = now - TimeDelta::minutes(2);
                let mut points = vec![("HealthyHostCount", self.healthy(bucket), Some(target_group.as_str()))];
                if *open > 0 {
                    points.push(("ActiveConnectionCount", *open, None));
                }
                put_points(&self.services, balancer, bucket, &points).await?;
            }
        }
        Ok(())
    }

    /// Hosts that are up for a minute at this instant.
    fn healthy(&self, at: DateTime<Utc>) -> u32 {
        let mut states: BTreeMap<&str, (&str, DateTime<Utc>)> = self
            .services
            .wiring
            .nodes
            .iter()
            .map(|node| (node.id.as_str(), ("running", self.from - TimeDelta::hours(1))))
            .collect();
        for moved in self.moved.iter().filter(|moved| moved.at <= at) {
            states.insert(&moved.node, (&moved.state, moved.at));
        }
        let up = states
            .values()
            .filter(|(state, since)| *state == "running" && at - *since >= TimeDelta::minutes(1))
            .count();
        u32::try_from(up).unwrap_or(u32::MAX)
    }

    /// So many calls are open, on every node that there is.
    pub(super) fn set_open(&mut self, calls: u32) {
        match &mut self.signal {
            Signal::Beats(nodes) => nodes.iter().for_each(|node| node.set_open(calls)),
            Signal::Balancer { open, .. } => *open = Some(calls),
        }
    }

    /// The load balancer writes nothing any more, not even that it is alive.
    pub(super) fn silence(&mut self) {
        if let Signal::Balancer { open, .. } = &mut self.signal {
            *open = None;
        }
    }

    /// A request of the app's role; status and body.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn ask(&mut self, method: &str, path: &str, body: &Value) -> StageResult<(u16, Value)> {
        let caller = self.caller.clone();
        Ok(self.ask_as(&caller, method, path, body).await?.unwrap_or((403, Value::Null)))
    }

    /// The same by somebody; none where Lambda's front does not let him in.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn ask_as(
        &mut self,
        who: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> StageResult<Option<(u16, Value)>> {
        let mut event = url_event(method, path, body);
        event["headers"].as_object_mut().ok_or("an event without headers")?.remove("authorization");
        event["requestContext"]["authorizer"] = json!({"iam": {"accessKey": "app", "accountId": self.services.wiring.account,
            "callerId": "app", "cognitoIdentity": null, "principalOrgId": null, "userArn": who, "userId": "app"}});
        let Some(reply) = self.services.request("wake", who, &event).await? else { return Ok(None) };
        let status = reply["statusCode"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
        let body = reply["body"].as_str().and_then(|body| serde_json::from_str(body).ok()).unwrap_or(Value::Null);
        Ok(Some((status, body)))
    }

    /// Somebody opens the app, waits until a node is ready, and talks for so long. With `leased` the app holds a lease meanwhile.
    ///
    /// # Errors
    /// The node was not ready in time, the lease was refused, or the local AWS refused.
    pub(super) async fn call(&mut self, name: &str, lasts: TimeDelta, leased: bool) -> StageResult<Call> {
        let asked = self.now;
        let (status, answer) = self.ask("POST", "/wake", &Value::Null).await?;
        if !matches!(status, 200 | 202) {
            return Err(format!("{name}: POST /wake answered {status}: {answer}").into());
        }
        loop {
            let (status, answer) = self.ask("GET", "/status", &Value::Null).await?;
            if status == 200 {
                break;
            }
            if self.now - asked > PATIENCE {
                return Err(format!("{name}: not ready after {PATIENCE}: {status} {answer}").into());
            }
            self.until(self.now + POLL).await?;
        }
        let connected = self.now;
        let ended = connected + lasts;
        let lease = format!("/leases/{name}");
        self.set_open(1);
        let mut renew = false;
        while self.now < ended {
            if leased {
                let body = json!({"ttl_seconds": LEASE_SECONDS, "renew": renew});
                let (status, answer) = self.ask("PUT", &lease, &body).await?;
                if status != 200 {
                    return Err(format!("{name}: PUT {lease} answered {status}: {answer}").into());
                }
                renew = true;
            }
            self.until((self.now + RENEW).min(ended)).await?;
        }
        self.set_open(0);
        if leased {
            let (status, answer) = self.ask("DELETE", &lease, &Value::Null).await?;
            if status != 204 {
                return Err(format!("{name}: DELETE {lease} answered {status}: {answer}").into());
            }
        }
        Ok(Call { asked, connected, ended })
    }

    /// Messages of this kind to people so far.
    pub(super) async fn told(&self, kind: &str) -> usize {
        let told = self.services.aws.published().await;
        told.iter().filter(|message| message.attributes.get("kind").is_some_and(|one| one == kind)).count()
    }

    /// Notes and prints what was looked for.
    pub(super) fn check(&mut self, name: &str, ok: bool, detail: impl Into<String>) {
        let check = Check { name: name.to_owned(), ok, detail: detail.into() };
        println!("  {} {}: {}", if ok { "ok  " } else { "MISS" }, check.name, check.detail);
        self.checks.push(check);
    }

    /// Prints what happens.
    pub(super) fn tell(&self, what: &str) {
        println!("{}  {what}", self.now.to_rfc3339_opts(SecondsFormat::Secs, true));
    }

    /// The first instant from `since` on at which a node entered this state.
    pub(super) fn first(&self, state: &str, since: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.moved.iter().find(|moved| moved.at >= since && moved.state == state).map(|moved| moved.at)
    }

    /// Writes lines into a log group.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn log(&mut self, group: &str, lines: &[String]) -> StageResult<()> {
        let repeats = self.services.log(group, lines).await?;
        self.again(repeats);
        Ok(())
    }

    /// How long the longest-running node was up since the day began; each was running then.
    pub(super) fn up(&self) -> TimeDelta {
        let up = self.services.wiring.nodes.iter().map(|node| {
            let mut since = Some(self.from);
            let mut up = TimeDelta::zero();
            for moved in self.moved.iter().filter(|moved| moved.node == node.id) {
                if let Some(begin) = since.take() {
                    up += moved.at - begin;
                }
                since = (moved.state == "running").then_some(moved.at);
            }
            up + since.map_or(TimeDelta::zero(), |begin| self.now - begin)
        });
        up.max().unwrap_or_default()
    }

    /// Checks that the node went to sleep 30 to 40 minutes after its last use, and not before.
    pub(super) fn check_sleep(&mut self, what: &str, last_use: DateTime<Utc>) {
        let stopped = self.first("stopped", last_use);
        let minutes = stopped.map(|at| (at - STOPS - last_use).num_minutes());
        let ok = minutes.is_some_and(|minutes| (30..=40).contains(&minutes));
        let detail = minutes.map_or("never stopped".to_owned(), |minutes| format!("STOP after {minutes} minutes"));
        self.check(what, ok, detail);
    }

    /// Checks that no node was stopped between these instants.
    pub(super) fn check_kept(&mut self, what: &str, from: DateTime<Utc>, to: DateTime<Utc>) {
        let stopped = self.first("stopped", from).filter(|at| *at - STOPS < to);
        self.check(what, stopped.is_none(), stopped.map_or("kept".to_owned(), |at| format!("stopped at {at}")));
    }

    /// A person holds every node until then, by its tag.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn hold(&self, until: DateTime<Utc>) -> StageResult<()> {
        let tag =
            Tag::builder().key("reveille:keep-until").value(until.to_rfc3339_opts(SecondsFormat::Secs, true)).build();
        let nodes = self.services.wiring.nodes.iter().map(|node| node.id.clone()).collect();
        let ec2 = aws_sdk_ec2::Client::new(&self.services.sdk);
        ec2.create_tags().set_resources(Some(nodes)).tags(tag).send().await?;
        Ok(())
    }

    /// And takes his tag off again.
    ///
    /// # Errors
    /// The local AWS refused.
    pub(super) async fn take_tags_off(&self) -> StageResult<()> {
        let nodes = self.services.wiring.nodes.iter().map(|node| node.id.clone()).collect();
        let ec2 = aws_sdk_ec2::Client::new(&self.services.sdk);
        ec2.delete_tags().set_resources(Some(nodes)).tags(Tag::builder().key(HOLD).build()).send().await?;
        Ok(())
    }
}

/// A role that the URL's permissions name.
fn caller(services: &Services) -> StageResult<String> {
    let made = services.wiring.function("wake")?;
    let named = made.policy.iter().filter(|statement| statement["Action"] == "lambda:InvokeFunctionUrl");
    let mut names = named.filter_map(|statement| statement["Principal"]["AWS"].as_str());
    names
        .find(|name| name.contains(":role/"))
        .map(str::to_owned)
        .ok_or_else(|| "no role may call the URL: write url_callers".into())
}

async fn put_points(
    services: &Services,
    balancer: &str,
    at: DateTime<Utc>,
    points: &[(&str, u32, Option<&str>)],
) -> StageResult<()> {
    let data = points.iter().map(|(metric, value, target_group)| {
        let dimensions = [Some(("LoadBalancer", balancer)), target_group.map(|group| ("TargetGroup", group))];
        let dimensions =
            dimensions.into_iter().flatten().map(|(name, value)| Dimension::builder().name(name).value(value).build());
        MetricDatum::builder()
            .metric_name(*metric)
            .timestamp(SdkDateTime::from_secs(at.timestamp()))
            .value(f64::from(*value))
            .set_dimensions(Some(dimensions.collect()))
            .build()
    });
    let cloudwatch = aws_sdk_cloudwatch::Client::new(&services.sdk);
    cloudwatch.put_metric_data().namespace("AWS/ApplicationELB").set_metric_data(Some(data.collect())).send().await?;
    Ok(())
}
