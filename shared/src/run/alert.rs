//! Messages to people: what, which node, since when, what was done, what to do.

use crate::domain::{AlertKey, Instant, NodeId, PoolName};
use crate::error::{CallError, ErrorClass};
use crate::observation::Unread;
use serde::Serialize;

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// A START was refused or fell back.
    StartFailed,
    /// A STOP was refused for a lasting cause.
    CannotStop,
    /// Signals have been unknown for too long.
    Blind,
    /// A node has been running for longer than a start may take and is not ready.
    NotReady,
    /// Nobody's pool: a node with a pool tag the configuration does not name, or a pool without a node.
    Misconfigured,
}

impl AlertKind {
    /// The word in message attributes and keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartFailed => "start_failed",
            Self::CannotStop => "cannot_stop",
            Self::Blind => "blind",
            Self::NotReady => "not_ready",
            Self::Misconfigured => "misconfigured",
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Sent once under this key.
    pub key: AlertKey,
    /// What it is about.
    pub kind: AlertKind,
    /// The pool.
    pub pool: PoolName,
    /// The node, where it is about one.
    pub node: Option<NodeId>,
    /// Under 100 ASCII characters, as SNS asks.
    pub subject: String,
    /// For a person at 3 a.m.
    pub body: String,
}

/// Whom an alert speaks of.
pub(super) struct About<'a> {
    pub(super) pool: &'a PoolName,
    pub(super) node: Option<&'a NodeId>,
    pub(super) now: Instant,
}

impl About<'_> {
    fn alert(&self, kind: AlertKind, occasion: &str, what: &str, body: String) -> Alert {
        let whom = self.node.map_or_else(|| format!("pool {}", self.pool), |node| format!("{node} ({})", self.pool));
        let place = self.node.map_or_else(|| self.pool.as_str().to_owned(), |node| node.as_str().to_owned());
        let subject: String = format!("Reveille: {what}: {whom}").chars().filter(char::is_ascii).take(99).collect();
        Alert {
            key: AlertKey(format!("alert#{place}#{}#{occasion}", kind.as_str())),
            kind,
            pool: self.pool.clone(),
            node: self.node.cloned(),
            subject,
            body,
        }
    }

    fn day(&self) -> String {
        self.now.format("%Y-%m-%d").to_string()
    }

    /// A START failed.
    pub(super) fn start_failed(&self, error: &CallError, since: Instant, retry_at: Instant) -> Alert {
        let todo = match error.class {
            ErrorClass::Capacity => "Nothing if it passes; else allow another instance type or zone.",
            ErrorClass::Quota => "Raise the account's quota for this instance family; retries are slow until then.",
            ErrorClass::Permanent if error.code == "Client.InternalError" => {
                "The volume's KMS key is the usual cause: let the starting role use kms:CreateGrant on it."
            }
            ErrorClass::Permanent => "Check the role's permissions and the node's settings.",
            ErrorClass::Transient | ErrorClass::Conflict | ErrorClass::NotFound | ErrorClass::Unknown => {
                "Look the code up in the EC2 console; the wake is kept and tried again."
            }
        };
        let body = format!(
            "Starting the node failed: {}: {}\nSince: {since}\nDone: the wake is kept; next try not before {retry_at}.\nTo do: {todo}\n",
            error.code, error.message
        );
        let occasion = format!("{}#{}", error.code, self.day());
        self.alert(AlertKind::StartFailed, &occasion, "start failed", body)
    }

    /// A STOP is refused for a lasting cause.
    pub(super) fn cannot_stop(&self, error: &CallError, since: Instant, retry_at: Instant) -> Alert {
        let todo = match error.code.as_str() {
            "OperationNotPermitted" => "Somebody set stop protection (disableApiStop); clear it if the node may sleep.",
            "UnsupportedOperation" => "A one-time spot node cannot be stopped; use a persistent request or on demand.",
            _ => "Look the code up and stop the node by hand if it is not needed.",
        };
        let body = format!(
            "The node is idle and cannot be stopped: {}: {}\nIt runs and is billed.\nSince: {since}\nDone: other nodes are not held up; next try not before {retry_at}.\nTo do: {todo}\n",
            error.code, error.message
        );
        self.alert(AlertKind::CannotStop, &self.day(), "idle node cannot be stopped", body)
    }

    /// The signals have been unknown for too long.
    pub(super) fn blind(&self, why: Unread, since: Instant, told: u32) -> Alert {
        let cause = match why {
            Unread::Failed => "the metrics or the node list could not be read (throttled, refused or down)",
            Unread::SourceSilent => "the request metric is empty and nothing proves that its source is alive",
            Unread::Partial => "CloudWatch says that points are missing",
            Unread::NoSignals => "the pool has no signals in REVEILLE_POOLS",
        };
        let body = format!(
            "Reveille cannot tell whether the node is used: {cause}.\nSince: {since}\nDone: it is kept running, and billed; unknown never stops a node.\nTo do: check the metric's name and dimensions and the function's permissions; stop the node by hand if it is not needed.\n"
        );
        self.alert(AlertKind::Blind, &format!("{since}#{told}"), "cannot see whether a node is used", body)
    }

    /// Nodes or ledger cannot be read at all.
    pub(super) fn cannot_look(&self, error: &CallError) -> Alert {
        let body = format!(
            "Reveille cannot work: {error}.\nDone: nothing is started or stopped; running nodes run on and are billed.\nTo do: check the functions' permissions, the table and the region; stop idle nodes by hand until then.\n"
        );
        self.alert(AlertKind::Blind, &self.now.format("%Y-%m-%dT%H").to_string(), "cannot look at anything", body)
    }

    /// A node that runs and does not become ready.
    pub(super) fn not_ready(&self, launched_at: Option<Instant>) -> Alert {
        let since = launched_at.map_or_else(|| "unknown".to_owned(), |at| at.to_string());
        let body = format!(
            "The node runs and is not ready: its EC2 status checks have not passed, or could not be read.\nSince: {since}\nDone: callers are told \"starting\"; it is stopped when it is idle.\nTo do: look at the node's status checks and system log.\n"
        );
        self.alert(AlertKind::NotReady, &since, "node does not become ready", body)
    }

    /// A running node whose pool the configuration does not name: nothing would ever stop it.
    pub(super) fn unknown_pool(&self) -> Alert {
        let body = format!(
            "The node runs with the tag reveille:pool={}, and REVEILLE_POOLS does not name that pool: nothing can tell whether it is used, so nothing will stop it.\nTo do: correct the tag, or add the pool.\n",
            self.pool
        );
        self.alert(AlertKind::Misconfigured, &self.day(), "node in an unknown pool", body)
    }

    /// A wake for a pool without a usable node.
    pub(super) fn no_node(&self) -> Alert {
        let body = format!(
            "Somebody wants a node of pool {}, and there is none: no instance has the tag reveille:pool={}, or every one is terminated.\nTo do: tag a stopped instance.\n",
            self.pool, self.pool
        );
        self.alert(AlertKind::Misconfigured, &self.day(), "no node to wake", body)
    }
}
