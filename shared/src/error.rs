//! Failed calls and what may be concluded from each.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// What kind of trouble a service reported; it decides who acts and when the call is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Throttling, time-outs, 5xx: tried again at the next tick.
    Transient,
    /// No machine of this type is free just now.
    Capacity,
    /// An account limit: a person has to raise it.
    Quota,
    /// The node is in another state than was thought: look again.
    Conflict,
    /// The node or item does not exist.
    NotFound,
    /// A deliberate or lasting refusal: stop protection, a one-time spot request, a missing permission.
    Permanent,
    /// A code nobody has classed: the wish is kept, the call repeated, a person told (field case 06).
    Unknown,
}

impl ErrorClass {
    /// How long to wait before try number `tries` + 1. The first two waits of the quick classes are shorter than a tick of
    /// 5 minutes, so that the next tick tries again.
    pub fn backoff(self, tries: u32) -> TimeDelta {
        let doubled = |first: i64, most: i64| {
            TimeDelta::minutes(first.saturating_mul(1 << tries.saturating_sub(1).min(10)).min(most))
        };
        match self {
            Self::Transient | Self::Conflict => TimeDelta::zero(),
            Self::Capacity | Self::Unknown => doubled(2, 30),
            Self::Quota | Self::NotFound | Self::Permanent => doubled(15, 120),
        }
    }

    /// Whether a person is told at the first refusal. Transient trouble and lost races are repaired by the next tick.
    pub fn tells_at_once(self) -> bool {
        match self {
            Self::Transient | Self::Conflict => false,
            Self::Capacity | Self::Quota | Self::NotFound | Self::Permanent | Self::Unknown => true,
        }
    }
}

/// Whether the failed call may have been carried out all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TookEffect {
    /// The service refused it.
    No,
    /// No answer, or a server error: it may have happened, or may happen yet.
    Maybe,
}

/// A call that failed: which, how, and what that proves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{act} failed: {code}: {message}")]
pub struct CallError {
    /// The act in words, such as `start node i-0abc`.
    pub act: String,
    /// The service's code, or `Timeout`, `NoAnswer`, `NoTime`.
    pub code: String,
    /// The service's sentence.
    pub message: String,
    /// The class of the code.
    pub class: ErrorClass,
    /// Whether it may have taken effect.
    pub effect: TookEffect,
}

impl CallError {
    /// It was sent, and there was no answer in the time that the run could wait.
    pub fn timed_out(act: impl Into<String>) -> Self {
        let message = "no answer in the time that the run could wait".to_owned();
        Self::of_time(act, "Timeout", message, TookEffect::Maybe)
    }

    /// It was never sent: too little of the run's time was left for an answer.
    pub fn not_sent(act: impl Into<String>) -> Self {
        let message = "not sent: the run's time was over".to_owned();
        Self::of_time(act, "NoTime", message, TookEffect::No)
    }

    fn of_time(act: impl Into<String>, code: &str, message: String, effect: TookEffect) -> Self {
        Self { act: act.into(), code: code.to_owned(), message, class: class_of(code), effect }
    }

    /// An executor answered another call than was asked: a fault of the program, read as Unknown.
    pub fn wrong_answer(act: &str) -> Self {
        Self {
            act: act.to_owned(),
            code: "WrongAnswer".to_owned(),
            message: "the executor answered another call".to_owned(),
            class: ErrorClass::Unknown,
            effect: TookEffect::Maybe,
        }
    }
}

/// Classes the error codes of the services. The one place where a code decides anything; sources: the AWS error lists and
/// the field cases named beside each.
pub fn class_of(code: &str) -> ErrorClass {
    match code {
        "ReservationCapacityExceeded" => ErrorClass::Capacity,
        "MaxSpotInstanceCountExceeded" => ErrorClass::Quota,
        // Field cases 01, 02: "not now".
        "IncorrectInstanceState" | "IncorrectState" => ErrorClass::Conflict,
        // Field case 08.
        "RequestLimitExceeded"
        | "BandwidthLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "TooManyRequestsException"
        | "ProvisionedThroughputExceededException"
        | "RequestThrottled"
        | "InternalError"
        | "InternalFailure"
        | "InternalServerError"
        | "InternalServiceError"
        | "ServerInternal"
        | "Server.InternalError"
        | "ServiceUnavailable"
        | "Unavailable"
        | "ServiceUnavailableException"
        | "LimitExceededException"
        | "TransactionConflictException"
        | "TransactionInProgressException"
        | "Timeout"
        | "NoTime"
        | "NoAnswer" => ErrorClass::Transient,
        "InvalidInstanceID.NotFound"
        | "InvalidInstanceID.Malformed"
        | "ResourceNotFoundException"
        | "NotFound"
        | "NotFoundException" => ErrorClass::NotFound,
        // Field cases 03 (KMS), 10 (one-time spot), 11 (stop protection).
        "OperationNotPermitted"
        | "UnsupportedOperation"
        | "IncorrectSpotRequestState"
        | "IncorrectSpotInstanceRequestState"
        | "UnauthorizedOperation"
        | "AccessDenied"
        | "AccessDeniedException"
        | "AuthorizationError"
        | "AuthFailure"
        | "Unsupported"
        | "InvalidInstanceAttributeValue"
        | "OptInRequired"
        | "PendingVerification"
        | "Blocked"
        | "Client.InternalError" => ErrorClass::Permanent,
        // Field cases 05, 06: of an instance, a host, a reservation, a volume, an address. EC2 sends them as 500, and one that
        // was taken for a server error would leave open whether the node was started.
        code if code.contains("Insufficient") && code.contains("Capacity") => ErrorClass::Capacity,
        // Field case 07: of vCPUs, instances, volumes, addresses.
        code if code.ends_with("LimitExceeded") => ErrorClass::Quota,
        _ => ErrorClass::Unknown,
    }
}

/// Whether a call that failed with this code, and this HTTP status where there was an answer, may have been carried out.
/// Only a server error of no known meaning, or no answer at all, leaves that open: EC2 sends its capacity refusals as 500
/// and its throttling as 503.
pub fn effect_of(code: &str, status: Option<u16>) -> TookEffect {
    let throttled = code.contains("LimitExceeded") || code.contains("Throttl") || code == "TooManyRequestsException";
    let refused = status.is_some_and(|status| (400..500).contains(&status));
    match class_of(code) {
        ErrorClass::Transient | ErrorClass::Unknown if !throttled && !refused => TookEffect::Maybe,
        ErrorClass::Transient
        | ErrorClass::Unknown
        | ErrorClass::Capacity
        | ErrorClass::Quota
        | ErrorClass::Conflict
        | ErrorClass::NotFound
        | ErrorClass::Permanent => TookEffect::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_nobody_has_classed_is_unknown_and_told() {
        assert_eq!(class_of("SomethingNew"), ErrorClass::Unknown);
        assert!(ErrorClass::Unknown.tells_at_once());
    }

    /// EC2's own list of server errors, and what else a START or STOP may be refused with.
    #[test]
    fn case_06_case_07_a_refusal_of_a_known_kind_is_classed_and_is_no_effect() {
        let rows = [
            ("InsufficientInstanceCapacity", 500, ErrorClass::Capacity),
            ("InsufficientHostCapacity", 500, ErrorClass::Capacity),
            ("InsufficientReservedInstanceCapacity", 500, ErrorClass::Capacity),
            ("InsufficientVolumeCapacity", 500, ErrorClass::Capacity),
            ("InsufficientAddressCapacity", 500, ErrorClass::Capacity),
            ("InsufficientCapacity", 500, ErrorClass::Capacity),
            ("InsufficientCapacityOnHost", 400, ErrorClass::Capacity),
            ("Server.InsufficientInstanceCapacity", 500, ErrorClass::Capacity),
            ("VcpuLimitExceeded", 400, ErrorClass::Quota),
            ("InstanceLimitExceeded", 400, ErrorClass::Quota),
            ("AddressLimitExceeded", 400, ErrorClass::Quota),
            ("ResourceLimitExceeded", 400, ErrorClass::Quota),
            ("Client.VolumeLimitExceeded", 400, ErrorClass::Quota),
            ("MaxSpotInstanceCountExceeded", 400, ErrorClass::Quota),
            ("RequestLimitExceeded", 503, ErrorClass::Transient),
            ("BandwidthLimitExceeded", 503, ErrorClass::Transient),
            ("PendingVerification", 400, ErrorClass::Permanent),
            ("Blocked", 403, ErrorClass::Permanent),
            ("IncorrectSpotInstanceRequestState", 400, ErrorClass::Permanent),
        ];
        for (code, status, class) in rows {
            assert_eq!((class_of(code), effect_of(code, Some(status))), (class, TookEffect::No), "{code}");
        }
        assert_eq!(effect_of("ServerInternal", Some(500)), TookEffect::Maybe);
        assert_eq!(class_of("ServerInternal"), ErrorClass::Transient);
    }

    #[test]
    fn what_was_sent_may_have_happened_and_what_was_not_has_not() {
        let (sent, unsent) = (CallError::timed_out("start"), CallError::not_sent("start"));
        assert_eq!((sent.effect, unsent.effect), (TookEffect::Maybe, TookEffect::No));
        assert_eq!((sent.class, unsent.class), (ErrorClass::Transient, ErrorClass::Transient));
    }

    #[test]
    fn the_first_two_waits_for_capacity_end_before_the_next_tick() {
        assert!(ErrorClass::Capacity.backoff(1) < TimeDelta::minutes(5));
        assert!(ErrorClass::Capacity.backoff(2) < TimeDelta::minutes(5));
        assert_eq!(ErrorClass::Capacity.backoff(200), TimeDelta::minutes(30));
    }
}
