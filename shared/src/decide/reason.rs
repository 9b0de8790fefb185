//! Every reason a decision can have. The decision table of ARCHITECTURE.md is generated from here.

use serde::Serialize;

/// Which question a reason answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// Can anything be decided at all?
    Look,
    /// Is a node to be started, and what is the caller told?
    Wake,
    /// May a call have a node?
    Lease,
    /// Is a node to be stopped?
    Idle,
    /// Has a node been up for too long today?
    Uptime,
    /// Is the budget spent, and what becomes of the gate?
    Budget,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident, $word:literal, $question:ident, $action:literal, $rule:literal;)*) => {
        /// Why a decision fell as it did: one of a closed set.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Reason {
            $(#[doc = $rule] $name,)*
        }

        impl Reason {
            /// Every reason, in the order in which its question's rules are asked.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The word in logs and answers.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The question it answers.
            pub fn question(self) -> Question {
                match self { $(Self::$name => Question::$question,)* }
            }

            /// What is done.
            pub fn action(self) -> &'static str {
                match self { $(Self::$name => $action,)* }
            }

            /// When it applies, in a sentence.
            pub fn rule(self) -> &'static str {
                match self { $(Self::$name => $rule,)* }
            }
        }
    };
}

reasons! {
    CannotLook, "cannot_look", Look, "nothing; a person or the caller is told",
        "The nodes or the ledger could not be read, or a wake could not be recorded: nothing is started, stopped, opened or closed. What was recorded is met by a later run.";

    GateClosed, "gate_closed", Wake, "nothing, refused",
        "The gate is closed, by the budget or by a person: no wake is taken and nothing is started.";
    NotWanted, "not_wanted", Wake, "nothing",
        "Nobody wants a node: no wake is newer than the last stop decision or the wish time, no call is in progress or waiting, no warm window is in force.";
    NoNode, "no_node", Wake, "nothing, told",
        "The pool has no node, or every node of it is terminated.";
    AlreadyReady, "already_ready", Wake, "nothing",
        "As many nodes are ready or on their way as are wanted, and one is ready.";
    AlreadyStarting, "already_starting", Wake, "nothing",
        "As many nodes as are wanted are on their way up, or a START is claimed for them. One that was ready and has not been for as long as a start may take does not count, and where there is no other it is waited for.";
    StartUnresolved, "start_unresolved", Wake, "start",
        "A START shows no effect and its effect is overdue: it is repeated on the same node, never on the next candidate.";
    StopUnresolved, "stop_unresolved", Wake, "start",
        "A STOP had no answer, its effect is overdue and the node is wanted: START tells for certain, and is harmless where the node still runs.";
    Wanted, "wanted", Wake, "start",
        "More nodes are wanted than are up (by a wake, by calls in progress and waiting, or by a warm window), and this one is stopped and free of a refusal that is waited out.";
    OtherType, "other_type", Wake, "change the type and start",
        "A node is wanted, no candidate has capacity, and this stopped one may be tried as another instance type of the pool's list.";
    StoppingWillStart, "stopping_will_start", Wake, "nothing",
        "The node is going down: EC2 refuses a START until it is stopped; the wake is kept and met then.";
    CoolingDown, "cooling_down", Wake, "nothing",
        "Every candidate was refused lately (capacity, quota, fault); it is tried again when its wait is over, with no further request.";

    Full, "full", Lease, "nothing, told to wait",
        "Every ready node has as many calls as it can take: no lease is given, and one more node is wanted.";

    Terminated, "terminated", Idle, "keep",
        "The node is terminated: neither started nor stopped.";
    PutBack, "put_back", Idle, "change the type",
        "The node is stopped, unwanted, and not of the pool's preferred instance type: it is put back for the next start.";
    Asleep, "asleep", Idle, "keep",
        "The node is stopped.";
    StillPending, "still_pending", Idle, "keep",
        "EC2 says pending: a stop may be refused or not, so none is planned.";
    HangsInStopping, "hangs_in_stopping", Idle, "force stop",
        "The node has been stopping for longer than the force time.";
    GoingDown, "going_down", Idle, "keep",
        "The node is stopping, or a STOP is claimed whose effect is not overdue.";
    StopHadNoEffect, "stop_had_no_effect", Idle, "stop",
        "A STOP was claimed, its effect is overdue, and the node was neither wanted nor used for the idle time: it is sent again.";
    Leased, "leased", Idle, "keep",
        "A lease is live on it: a call is in progress.";
    OpenCall, "open_call", Idle, "keep",
        "A call or connection is open.";
    Held, "held", Idle, "keep",
        "A person holds it, by the tag `reveille:keep-until` or in the ledger; a tag that cannot be read holds it too, and is told.";
    WarmWindow, "warm_window", Idle, "keep",
        "A warm window wants it now, or will by the time a boot takes.";
    BootGrace, "boot_grace", Idle, "keep",
        "The node was launched less than the grace time ago.";
    SignalsUnknown, "signals_unknown", Idle, "keep",
        "A signal could not be read, or its silence is not proved: unknown never stops a node.";
    Drain, "drain", Idle, "stop",
        "The pool is drained: the budget is spent, no call is open, and two readings say so.";
    Draining, "draining", Idle, "keep or mark",
        "The pool is drained, and the node waits for its calls to end, or for the second reading.";
    NeverReady, "never_ready", Idle, "mark, then stop and start once more; told",
        "It runs, is known not to be ready and never was since its launch, for longer than a start may take: wakes and requests do not hold it.";
    Reserve, "reserve", Idle, "keep",
        "The calls in progress and waiting want it beside the nodes they are on: stopped, it would be started again.";
    RecentWake, "recent_wake", Idle, "keep",
        "Somebody woke the node less than the idle time ago; by a pre-warm, less than the pre-warm time ago.";
    RecentUse, "recent_use", Idle, "keep",
        "A request was counted less than the idle time ago, or silence is proved for less than that.";
    RecentLease, "recent_lease", Idle, "keep",
        "A lease was live less than the idle time ago.";
    RecentStart, "recent_start", Idle, "keep",
        "The node was started or became ready less than the idle time ago; by a pre-warm, less than the pre-warm time ago.";
    StopRefused, "stop_refused", Idle, "keep, told",
        "EC2 refused the last STOP for a lasting cause (stop protection, a one-time spot request); it is tried again later.";
    FirstReading, "first_reading", Idle, "mark",
        "The node is idle, or will be within one tick, and this is the first reading that says so.";
    ReadingsTooClose, "readings_too_close", Idle, "keep",
        "The first reading is younger than four minutes: a repeated event is not a second reading.";
    Idle, "idle", Idle, "stop",
        "The node has been idle for the idle time and two readings say so.";

    UptimeUnknown, "uptime_unknown", Uptime, "told",
        "Neither the launches nor the status checks of the day could be read.";
    UptimeOver, "uptime_over", Uptime, "told, once a node and day",
        "The node ran for longer than the limit in the local day, by the larger of its launches and its status checks.";
    UptimeWithin, "uptime_within", Uptime, "nothing",
        "The node ran for no longer than the limit.";

    GateHeldByPerson, "gate_held_by_person", Budget, "nothing",
        "A person closed the gate: only a person opens it before its end.";
    GateOpens, "gate_opens", Budget, "open the gate",
        "The budget closed the gate, and the month, the amount or the setting has changed.";
    BudgetWithin, "budget_within", Budget, "nothing",
        "The month's amount is not spent, or the budget only tells; every threshold crossed is told once a month.";
    GateStaysClosed, "gate_stays_closed", Budget, "nothing",
        "The month's amount is spent and the gate is closed already.";
    GateCloses, "gate_closes", Budget, "close the gate, told",
        "The month's amount is spent and the setting is gate or stop: no wake is taken until the month ends.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_its_own_and_matches_its_json() {
        let mut words: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        for reason in Reason::ALL {
            let json = serde_json::to_string(reason).expect("a word");
            assert_eq!(json.trim_matches('"'), reason.as_str());
        }
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Reason::ALL.len());
    }
}
