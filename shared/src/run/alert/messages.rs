//! Every message, one function each.

use super::{About, Alert, AlertKind, BudgetText, Cost, Text, hours, shown};
use crate::decide::Look;
use crate::decide::uptime::LocalDay;
use crate::domain::{Gate, Instant, MOST_NOISE_WAKES, PoolName};
use crate::error::{CallError, ErrorClass};
use crate::observation::Unread;

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
        self.alert(Text {
            kind: AlertKind::Blind,
            occasion: format!("{since}#{told}"),
            subject: if told > 1 { "still cannot see whether a node is used" } else { "cannot see whether a node is used" },
            what: format!("whether the node is used cannot be told: {cause}"),
            since: Some(since),
            cost: Cost::Running,
            done: "it is kept running: unknown never stops a node".to_owned(),
            todo: "check the metric's name and dimensions and the function's permissions; stop the node by hand if it is not needed".to_owned(),
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

    /// A node that runs and does not become ready.
    pub(in crate::run) fn not_ready(&self, launched_at: Option<Instant>) -> Alert {
        self.alert(Text {
            kind: AlertKind::NotReady,
            occasion: launched_at.map_or_else(|| "unknown".to_owned(), |at| at.to_string()),
            subject: "node does not become ready",
            what: "the node runs and is not ready: its EC2 status checks have not passed, or could not be read"
                .to_owned(),
            since: launched_at,
            cost: Cost::Running,
            done: "callers are told \"starting\"; it is stopped when it is idle".to_owned(),
            todo: "look at the node's status checks and system log".to_owned(),
        })
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
        let done = if lines > MOST_NOISE_WAKES {
            "lines of the request log wake nothing more until the end of the day; pre-warms still do"
        } else {
            "nothing: pre-warms go on waking"
        };
        self.alert(Text {
            kind: AlertKind::NoiseWakes,
            occasion: format!("{}#{}", self.day(), if lines > MOST_NOISE_WAKES { "lines" } else { "prewarms" }),
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

    /// A drain that waits for calls past its deadline.
    pub(in crate::run) fn drain_waits(&self, look: &Look, since: Instant) -> Alert {
        self.alert(Text {
            kind: AlertKind::CannotStop,
            occasion: format!("drain#{since}"),
            subject: "drained node still has calls",
            what: "the budget is spent and the node is to stop, but a call is open or cannot be ruled out".to_owned(),
            since: Some(since),
            cost: Cost::Running,
            done: "its calls are left; it is stopped when none is open".to_owned(),
            todo: format!("stop {} by hand if its calls may be cut, or raise the budget", look.seen.id),
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
        alert.attributes.insert("threshold", told.threshold.clone());
        alert.attributes.insert("month", told.month.clone());
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
