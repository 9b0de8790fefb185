//! How calls fail: the kinds of faults, the calls that each can strike, and the count of those that did.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The service says no, with a code that fits it.
    Refused,
    /// It never arrives, and there is no answer.
    Hangs,
    /// It is carried out, and the answer is lost.
    Lost,
    /// There is no answer, and it is carried out a while later, within the run's time-out.
    Late,
    /// It is carried out twice, as a client does that repeats it by itself; the second answer counts.
    Twice,
    /// It is carried out, and the run dies.
    Killed,
    /// The answer is of some minutes ago.
    Stale,
    /// A part of the answer is missing, and the service says so where it can.
    Partial,
}

impl Kind {
    /// Every kind, in the order of the table.
    pub const ALL: [Kind; 8] =
        [Self::Refused, Self::Hangs, Self::Lost, Self::Late, Self::Twice, Self::Killed, Self::Stale, Self::Partial];

    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Hangs => "hangs",
            Self::Lost => "lost",
            Self::Late => "late",
            Self::Twice => "twice",
            Self::Killed => "killed",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// A fault that waits for the next call it fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What goes wrong.
    pub kind: Kind,
    /// With which call, by the name that [`reveille::world::call_name`] gives it.
    pub call: String,
    /// The service's code, where it says no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// One call that runs make: what it is called, whether it writes, and how its service says no.
struct Call {
    name: &'static str,
    writes: bool,
    codes: &'static [&'static str],
}

const EC2: &[&str] = &["RequestLimitExceeded", "Unavailable", "InternalError"];
const START: &[&str] = &[
    "InsufficientInstanceCapacity",
    "VcpuLimitExceeded",
    "RequestLimitExceeded",
    "IncorrectInstanceState",
    "UnauthorizedOperation",
    "InternalError",
    "SomethingNew",
];
const STOP: &[&str] = &["OperationNotPermitted", "IncorrectInstanceState", "RequestLimitExceeded", "InternalError"];
const RESIZE: &[&str] = &["InvalidInstanceAttributeValue", "IncorrectInstanceState", "RequestLimitExceeded"];
const TABLE: &[&str] = &["ProvisionedThroughputExceededException", "InternalServerError", "AccessDeniedException"];
const METRICS: &[&str] = &["Throttling", "InternalServiceError", "AccessDenied"];
const LOGS: &[&str] = &["ThrottlingException", "ServiceUnavailableException", "ResourceNotFoundException"];
const TOPIC: &[&str] = &["ThrottledException", "InternalError", "AuthorizationError"];
const BUDGETS: &[&str] = &["ThrottlingException", "AccessDeniedException", "InternalErrorException"];

const fn read(name: &'static str, codes: &'static [&'static str]) -> Call {
    Call { name, writes: false, codes }
}

const fn write(name: &'static str, codes: &'static [&'static str]) -> Call {
    Call { name, writes: true, codes }
}

/// Every call a run makes. A hold is set by the command line for a person, who sees it fail: it is left out.
const CALLS: &[Call] = &[
    read("describe", EC2),
    read("readiness", EC2),
    read("disks", EC2),
    write("start", START),
    write("stop", STOP),
    write("resize", RESIZE),
    read("read_ledger", TABLE),
    read("history", TABLE),
    read("beats", TABLE),
    read("budget_note", TABLE),
    write("demand", TABLE),
    write("give_lease", TABLE),
    write("renew_lease", TABLE),
    write("end_lease", TABLE),
    write("stop_waiting", TABLE),
    write("claim", TABLE),
    write("record", TABLE),
    write("facts", TABLE),
    write("launches", TABLE),
    write("set_gate", TABLE),
    write("note_budget", TABLE),
    write("claim_alert", TABLE),
    write("mark_published", TABLE),
    read("activity", METRICS),
    read("samples", METRICS),
    read("logs", LOGS),
    write("publish", TOPIC),
    read("budget", BUDGETS),
    write("create_budget", BUDGETS),
    write("set_budget_amount", BUDGETS),
    write("create_notices", BUDGETS),
];

/// Whether a kind of fault can strike a call.
///
/// * Any call can be refused, hang, or be the last of its run.
/// * Only what writes can lose its answer after it was carried out, arrive late, or be carried out twice: to a read that
///   makes no difference.
/// * START and STOP are never repeated by a client: they go out once a claim.
/// * EC2 alone answers with an older state; the ledger is read consistently.
/// * Metrics, samples and logs may come in part, and a beat may be unreadable.
pub fn can_strike(kind: Kind, call: &str) -> bool {
    let writes = CALLS.iter().any(|known| known.name == call && known.writes);
    match kind {
        Kind::Refused | Kind::Hangs | Kind::Killed => true,
        Kind::Lost | Kind::Late => writes,
        Kind::Twice => writes && !["start", "stop"].contains(&call),
        Kind::Stale => ["describe", "readiness"].contains(&call),
        Kind::Partial => ["activity", "logs", "samples", "beats"].contains(&call),
    }
}

/// Every pair that can be.
pub fn pairs() -> Vec<(Kind, &'static str)> {
    let of = |call: &'static Call| Kind::ALL.into_iter().map(move |kind| (kind, call.name));
    CALLS.iter().flat_map(of).filter(|(kind, call)| can_strike(*kind, call)).collect()
}

/// How the service of a call says no.
pub fn codes(call: &str) -> &'static [&'static str] {
    CALLS.iter().find(|known| known.name == call).map_or(EC2, |known| known.codes)
}

/// How often each kind struck each call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Struck(BTreeMap<(Kind, String), u64>);

impl Struck {
    /// Counts one more.
    pub fn add(&mut self, kind: Kind, call: &str) {
        *self.0.entry((kind, call.to_owned())).or_default() += 1;
    }

    /// Takes in another day's.
    pub fn merge(&mut self, other: &Struck) {
        for (pair, count) in &other.0 {
            *self.0.entry(pair.clone()).or_default() += count;
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    fn count(&self, kind: Kind, call: &str) -> u64 {
        self.0.get(&(kind, call.to_owned())).copied().unwrap_or_default()
    }

    /// The pairs that can be and never were.
    pub fn missing(&self) -> Vec<(Kind, &'static str)> {
        pairs().into_iter().filter(|(kind, call)| self.count(*kind, call) == 0).collect()
    }
}

impl fmt::Display for Struck {
    /// A row a call, a column a kind; a dot where the pair cannot be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:18}", "call")?;
        Kind::ALL.iter().try_for_each(|kind| write!(f, "{:>9}", kind.as_str()))?;
        for call in CALLS {
            write!(f, "\n{:18}", call.name)?;
            for kind in Kind::ALL {
                let can = can_strike(kind, call.name);
                let cell = if can { self.count(kind, call.name).to_string() } else { ".".to_owned() };
                write!(f, "{cell:>9}")?;
            }
        }
        Ok(())
    }
}
