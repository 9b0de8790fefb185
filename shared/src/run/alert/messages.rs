//! Every message, one function each.

use super::{About, Alert, AlertKind, BudgetText, Cost, Text, hours, shown};
use crate::decide::uptime::LocalDay;
use crate::decide::{Look, Readiness, Reason};
use crate::domain::{Gate, Instant, MOST_NOISE_WAKES, PoolName, TagHold};
use crate::error::{CallError, ErrorClass};
use crate::observation::Unread;
use crate::policy::{Policy, ReadySource};

impl About<'_> {
    /// A START failed.
    pub(in crate::run) fn start_failed(&self, error: &CallError, since: Instant, retry_at: Instant) -> Alert {
        let todo = match error.class {
            ErrorClass::Capacity => {
                "nothing if it passes; else add a node in another zone, or `instance_types` to the pool"
            }
            ErrorClass::Quota => {
                "raise the account's vCPU quota for this instance family; it is tried rarely until then"
            }
            ErrorClass::Permanent if error.code == "Client.InternalError" => {
                "the volume's KMS key is the usual cause: let the starting role use kms:CreateGrant on it"
            }
            ErrorClass::Permanent => "check the role's permissions and the node's settings",
            ErrorClass::Transient | ErrorClass::Conflict | ErrorClass::NotFound | ErrorClass::Unknown => {
                "look the code up in the EC2 console"
            }
        };
        self.alert(Text {
            kind: AlertKind::StartFailed,
            occasion: format!("{}#{}", error.code, self.day()),
            subject: &format!("start failed ({})", error.code),
            what: format!("somebody wants the node, and starting it failed: {}: {}", error.code, error.message),
            since: Some(since),
            cost: Cost::Stopped,
            done: format!(
                "the wake is kept; other nodes and types of the pool are tried; this one not before {}",
                self.shown(retry_at)
            ),
            todo: todo.to_owned(),
        })
    }

    /// A STOP is refused for a lasting cause.
    pub(in crate::run) fn cannot_stop(&self, error: &CallError, since: Instant, retry_at: Instant) -> Alert {
        let todo = match error.code.as_str() {
            "OperationNotPermitted" => "somebody set stop protection (disableApiStop); clear it if the node may sleep",
            "UnsupportedOperation" => "a one-time spot node cannot be stopped; use a persistent request or on demand",
            _ => "look the code up; stop the node by hand if it is not needed",
        };
        self.alert(Text {
            kind: AlertKind::CannotStop,
            occasion: self.day(),
            subject: "idle node cannot be stopped",
            what: format!("the node is idle and cannot be stopped: {}: {}", error.code, error.message),
            since: Some(since),
            cost: Cost::Running,
            done: format!("other nodes are not held up; tried again not before {}", self.shown(retry_at)),
            todo: todo.to_owned(),
        })
    }

    /// The signals have been unknown for too long.
    pub(in crate::run) fn blind(&self, why: Unread, since: Instant, told: u32) -> Alert {
        let cause = match why {
            Unread::Failed => "the metrics, the log or the node list could not be read (throttled, refused or down)",
            Unread::SourceSilent => "its source of requests is silent and nothing proves that it is alive",
            Unread::Partial => "CloudWatch says that points are missing",
            Unread::NoSignals => "the pool has no signals in REVEILLE_POOLS",
            Unread::Gaps => "its source has gaps, and silence is not proved for long enough since the last one",
        };
        let beats =
            self.whom.pool.as_ref().and_then(|pool| self.ctx.pools.get(pool)).is_some_and(|pool| pool.rules.beat);
        let what = if beats {
            "on the node whether its beats come, complete (`journalctl -u reveille-beat`), and the other signals' names, dimensions and permissions"
        } else {
            "the metric's name and dimensions and the function's permissions"
        };
        self.alert(Text {
            kind: AlertKind::Blind,
            occasion: format!("{since}#{told}"),
            subject: if told > 1 {
                "still cannot see whether a node is used"
            } else {
                "cannot see whether a node is used"
            },
            what: format!("whether the node is used cannot be told: {cause}"),
            since: Some(since),
            cost: Cost::Running,
            done: "it is kept running: unknown never stops a node".to_owned(),
            todo: format!("check {what}; stop the node by hand if it is not needed"),
        })
    }

    /// The signals are known again, after somebody was told that they are not.
    pub(in crate::run) fn sees_again(&self, since: Instant) -> Alert {
        self.alert(Text {
            kind: AlertKind::Blind,
            occasion: format!("{since}#ended"),
            subject: "sees again whether a node is used",
            what: "whether the node is used can be told again".to_owned(),
            since: Some(since),
            cost: Cost::Running,
            done: "it is judged as usual, and stopped when it is idle".to_owned(),
            todo: "nothing".to_owned(),
        })
    }

    /// Nodes or ledger cannot be read at all.
    pub(in crate::run) fn cannot_look(&self, error: &CallError) -> Alert {
        self.alert(Text {
            kind: AlertKind::ControllerFault,
            occasion: self.ctx.now.format("%Y-%m-%dT%H").to_string(),
            subject: "cannot look at anything",
            what: format!("Reveille cannot work: {error}"),
            since: Some(self.ctx.now),
            cost: Cost::Unknown,
            done: "nothing is started or stopped; running nodes run on".to_owned(),
            todo: "check the functions' permissions, the table and the region; stop idle nodes by hand until then"
                .to_owned(),
        })
    }

    /// Something of the controller's own work fails, and the rest goes on.
    pub(in crate::run) fn cannot_do(&self, error: &CallError, consequence: &str) -> Alert {
        self.alert(Text {
            kind: AlertKind::ControllerFault,
            occasion: format!("{}#{}#{}", error.act, error.code, self.day()),
            subject: "a part of the work fails",
            what: error.to_string(),
            since: Some(self.ctx.now),
            cost: Cost::Unknown,
            done: consequence.to_owned(),
            todo: "check the function's permissions; it is tried again at every run".to_owned(),
        })
    }

    /// A node that runs and does not become ready. `tries`: so often it was stopped for that before, in a row.
    pub(in crate::run) fn not_ready(&self, look: &Look, tries: u32, policy: &Policy) -> Alert {
        let launched_at = look.seen.launched_at;
        let (what, todo) = self.why_not_ready(look);
        let done = match (look.readiness, tries) {
            _ if look.used.is_err() => {
                "callers are told \"starting\"; whether it is used is unknown, and unknown never stops a node: it is kept until that is known"
                    .to_owned()
            }
            (Readiness::NotReady, 0) => {
                "callers are told \"starting\"; it is stopped and, if it is still wanted, started once more".to_owned()
            }
            (Readiness::NotReady, _) => {
                "it is stopped, and left stopped until a person starts it or a day has passed; other nodes of the pool are started".to_owned()
            }
            (Readiness::Ready(_) | Readiness::Unknown, _) => {
                "callers are told \"starting\"; it is stopped when it is idle".to_owned()
            }
        };
        self.alert(Text {
            kind: AlertKind::NotReady,
            occasion: launched_at.map_or_else(|| "unknown".to_owned(), |at| at.to_string()),
            subject: "node does not become ready",
            what: format!(
                "the node runs for longer than {} min and is not ready: {what}",
                policy.ready_within.num_minutes()
            ),
            since: launched_at,
            cost: Cost::Running,
            done,
            todo: todo.to_owned(),
        })
    }

    /// A node that was ready and has not been for as long as a start may take.
    pub(in crate::run) fn ready_no_more(&self, look: &Look, lost_at: Instant, policy: &Policy) -> Alert {
        let (what, todo) = self.why_not_ready(look);
        self.alert(Text {
            kind: AlertKind::NotReady,
            occasion: format!("lost#{lost_at}"),
            subject: "node is not ready any more",
            what: format!("the node was ready, and has not been for {} min: {what}", policy.ready_within.num_minutes()),
            since: Some(lost_at),
            cost: Cost::Running,
            done: "callers are told \"starting\", and other nodes of the pool are started for them; it is stopped when it is idle"
                .to_owned(),
            todo: format!("{todo}; stop it by hand to have it started afresh"),
        })
    }

    fn why_not_ready(&self, look: &Look) -> (&'static str, &'static str) {
        match self.ctx.pools.get(&look.seen.pool).map(|pool| pool.rules.ready) {
            Some(ReadySource::Beat(_)) => (
                "its beat does not say that it is ready, or does not come",
                "look at `systemctl status reveille-beat`, at the readiness endpoint and at the GPU (nvidia-smi) on the node",
            ),
            Some(ReadySource::HealthyHosts) => (
                "the load balancer does not count it as healthy",
                "look at the target group's health check and at the node's engines",
            ),
            Some(ReadySource::Checks) | None => (
                "its EC2 status checks have not passed, or could not be read",
                "look at the node's status checks and system log",
            ),
        }
    }

    /// A tag that holds a running node and that cannot be followed; none where it can.
    pub(in crate::run) fn strange_hold(&self, hold: &TagHold) -> Option<Alert> {
        let example = "reveille:keep-until=2026-12-24T18:00Z";
        let (what, todo) = match hold {
            TagHold::None | TagHold::Until(_) => return None,
            TagHold::NoEnd => (
                "its tag reveille:keep-until holds it without an end".to_owned(),
                format!("give it an end, such as {example}, or remove the tag"),
            ),
            TagHold::Unreadable { key, value } => (
                format!("its tag {key}={value} cannot be read as a time"),
                format!(
                    "write it like {example} (or a local time with a zone: 2026-12-24 18:00 Europe/Berlin), or remove it"
                ),
            ),
            TagHold::NearMiss { key, value } => (
                format!("its tag {key}={value} looks like a hold, and the key of a hold is reveille:keep-until"),
                format!("rename it to {example}, or remove it"),
            ),
        };
        Some(self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: format!("hold#{}", self.day()),
            subject: "a tag keeps the node running",
            what,
            since: Some(self.ctx.now),
            cost: Cost::Running,
            done: "the node is kept: whoever set it meant something".to_owned(),
            todo,
        }))
    }

    /// A running node whose pool the configuration does not name: nothing would ever stop it.
    pub(in crate::run) fn unknown_pool(&self, launched_at: Option<Instant>) -> Alert {
        let pool = self.whom.pool.as_ref().map(PoolName::to_string).unwrap_or_default();
        self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: self.day(),
            subject: "node in an unknown pool",
            what: format!(
                "the node runs with the tag reveille:pool={pool}, and REVEILLE_POOLS does not name that pool"
            ),
            since: launched_at,
            cost: Cost::Running,
            done: "nothing: nothing can tell whether it is used, so nothing will stop it".to_owned(),
            todo: "correct the tag, or add the pool".to_owned(),
        })
    }

    /// A node that was seen running and is no longer listed.
    pub(in crate::run) fn vanished(&self, launched_at: Instant, seen_at: Instant) -> Alert {
        self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: format!("vanished#{launched_at}#{seen_at}"),
            subject: "a running node is no longer listed",
            what: "the node was seen running and is no longer listed: it was terminated, or its tag reveille:pool was removed".to_owned(),
            since: Some(launched_at),
            cost: Cost::Running,
            done: "its time is counted to when it was last seen; a node without the tag is never stopped".to_owned(),
            todo: "if it still runs, put the tag back".to_owned(),
        })
    }

    /// A wake for a pool without a usable node.
    pub(in crate::run) fn no_node(&self) -> Alert {
        let pool = self.whom.pool.as_ref().map(PoolName::to_string).unwrap_or_default();
        self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: self.day(),
            subject: "no node to wake",
            what: format!(
                "somebody wants a node, and none has the tag reveille:pool={pool}, or every one is terminated"
            ),
            since: Some(self.ctx.now),
            cost: Cost::Stopped,
            done: "the wake is kept".to_owned(),
            todo: "tag a stopped instance".to_owned(),
        })
    }

    /// A source that wakes for nothing.
    pub(in crate::run) fn noise_wakes(&self, lines: u32, prewarms: u32, since: Instant) -> Alert {
        let by_lines = lines > MOST_NOISE_WAKES;
        let done = if by_lines {
            "lines of the request log wake nothing more until the end of the day; pre-warms still do"
        } else {
            "nothing: pre-warms go on waking"
        };
        self.alert(Text {
            kind: AlertKind::NoiseWakes,
            occasion: format!("{}#{}", self.day(), if by_lines { "lines" } else { "prewarms" }),
            subject: "woken for nothing too often",
            what: format!(
                "{} launches of today served no request: {lines} were caused by log lines, {prewarms} by pre-warms",
                lines + prewarms
            ),
            since: Some(since),
            cost: Cost::Stopped,
            done: done.to_owned(),
            todo: "make the wake filter stricter (paths, methods, statuses), or let the app pre-warm with its token instead of waking by log lines".to_owned(),
        })
    }

    /// A node up for too long in a day.
    pub(in crate::run) fn uptime(&self, day: LocalDay, seconds: i64, launched_at: Option<Instant>) -> Alert {
        let limit = hours(self.ctx.policy.uptime.num_seconds());
        self.alert(Text {
            kind: AlertKind::Uptime,
            occasion: day.date.to_string(),
            subject: &format!("up for more than {} h on {}", self.ctx.policy.uptime.num_hours(), day.date),
            what: format!(
                "the node ran for {} on {} ({}), the limit is {limit}",
                hours(seconds),
                day.date,
                self.ctx.policy.zone
            ),
            since: launched_at,
            cost: Cost::Running,
            done: "nothing: this only tells; the node is stopped when it is idle".to_owned(),
            todo:
                "see what keeps it up (the newest `decided` line names the reason); stop it by hand if it is not needed"
                    .to_owned(),
        })
    }

    /// A node of whose uptime nothing could be read.
    pub(in crate::run) fn uptime_unknown(&self, day: LocalDay) -> Alert {
        self.alert(Text {
            kind: AlertKind::Uptime,
            occasion: format!("unknown#{}", day.date),
            subject: "uptime cannot be read",
            what: format!(
                "how long the node ran on {} can be read neither from the ledger nor from its status checks",
                day.date
            ),
            since: Some(self.ctx.now),
            cost: Cost::Running,
            done: "nothing: the next run looks again".to_owned(),
            todo: "check the function's permissions, and by hand whether the node runs".to_owned(),
        })
    }

    /// A drain that waits for calls past its deadline, or that a hold or a warm window holds up.
    pub(in crate::run) fn drain_waits(&self, look: &Look, since: Instant, reason: Reason) -> Alert {
        let until = look.record.hold.as_ref().map(|hold| hold.until).max(look.tag_hold.until());
        let until = until.map_or_else(String::new, |at| format!(" until {}", self.shown(at)));
        let note = look.record.hold.as_ref().map_or_else(String::new, |hold| format!(" ({})", hold.note));
        let (subject, what, done, todo) = if reason == Reason::Held {
            (
                "drained node is held",
                format!("the budget is spent and the node is to stop, but a person holds it{until}{note}"),
                "it runs on: a hold goes before the budget".to_owned(),
                format!("remove the hold of {} if the budget is to win", look.seen.id),
            )
        } else if reason == Reason::WarmWindow {
            (
                "drained node is in a warm window",
                "the budget is spent and the node is to stop, but a warm window wants it".to_owned(),
                "it runs on to the window's end: a window goes before the budget; none is started".to_owned(),
                format!("stop {} by hand, or take the window out of REVEILLE_POOLS", look.seen.id),
            )
        } else {
            (
                "drained node still has calls",
                "the budget is spent and the node is to stop, but a call is open or cannot be ruled out".to_owned(),
                "its calls are left; it is stopped when none is open".to_owned(),
                format!("stop {} by hand if its calls may be cut, or raise the budget", look.seen.id),
            )
        };
        self.alert(Text {
            kind: AlertKind::CannotStop,
            occasion: format!("drain#{since}#{subject}"),
            subject,
            what,
            since: Some(since),
            cost: Cost::Running,
            done,
            todo,
        })
    }

    /// A threshold of the budget. `lines` are what is spent and left.
    pub(in crate::run) fn budget(&self, told: &BudgetText) -> Alert {
        let mut alert = self.alert(Text {
            kind: AlertKind::Budget,
            occasion: told.occasion.clone(),
            subject: &told.subject,
            what: told.what.clone(),
            since: Some(told.since),
            cost: Cost::Fleet(told.hourly),
            done: told.done.clone(),
            todo: told.todo.clone(),
        });
        alert.body.push_str(&told.left);
        alert.attributes.insert("threshold".to_owned(), told.threshold.clone());
        alert.attributes.insert("month".to_owned(), told.month.clone());
        alert
    }

    /// The gates were closed or opened by the budget; the same closing is one matter, whichever run gets it out.
    pub(in crate::run) fn gate(&self, gate: Option<&Gate>) -> Alert {
        let (zone, since) = (self.ctx.policy.zone, gate.map_or(self.ctx.now, |gate| gate.since));
        let until =
            gate.and_then(|gate| gate.until).map_or_else(String::new, |at| format!(" until {}", shown(at, zone)));
        let (subject, what, done) = match gate {
            Some(gate) if gate.drain => (
                "gate closed, nodes drained",
                &gate.reason,
                format!("no wake is taken{until}, and each running node is stopped once it has no call"),
            ),
            Some(gate) => {
                ("gate closed", &gate.reason, format!("no wake is taken{until}; what runs is stopped when it is idle"))
            }
            None => ("gate open again", &"the budget has room again".to_owned(), "wakes are taken as usual".to_owned()),
        };
        self.alert(Text {
            kind: AlertKind::Budget,
            occasion: format!("gate#{}#{since}", if gate.is_some() { "closed" } else { "opened" }),
            subject,
            what: what.clone(),
            since: Some(since),
            cost: Cost::Unknown,
            done,
            todo: if gate.is_some() { "raise the amount in REVEILLE_BUDGET if calls are to go on" } else { "nothing" }
                .to_owned(),
        })
    }

    /// Something about the AWS budget, or a price, that a person has to put right; told once an occasion.
    pub(in crate::run) fn budget_fault(
        &self,
        occasion: &str,
        subject: &str,
        what: String,
        done: &str,
        todo: &str,
    ) -> Alert {
        self.alert(Text {
            kind: AlertKind::Misconfigured,
            occasion: occasion.to_owned(),
            subject,
            what,
            since: Some(self.ctx.now),
            cost: Cost::Unknown,
            done: done.to_owned(),
            todo: todo.to_owned(),
        })
    }
}
