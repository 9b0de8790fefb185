//! Why a command did not do what it was asked, in one line, and the exit code that says of what kind it was.

use reveille::config::ConfigFaults;
use reveille::error::CallError;

/// The exit codes, as every `--help` shows them.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  done, or yes
  1  no: not ready, refused by the gate or the pool, or `doctor` found something
  2  the command line or the settings: a pool, node, function or table that is
     not there, no region, no credentials
  3  AWS refused or was not reached, so nothing is known";

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// Everything went well, and the answer is no.
    #[error("{0}")]
    No(String),
    /// The command line or the settings have to be changed.
    #[error("{0}")]
    Usage(String),
    /// AWS refused, or was not reached.
    #[error("{0}")]
    Aws(String),
}

impl Fault {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::No(_) => 1,
            Self::Usage(_) => 2,
            Self::Aws(_) => 3,
        }
    }
}

/// The codes that say who asks is not let in.
pub(crate) fn is_refusal(code: &str) -> bool {
    ["UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthorizationError"].contains(&code)
}

fn is_of_credentials(code: &str) -> bool {
    let codes = [
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "AuthFailure",
        "SignatureDoesNotMatch",
        "InvalidSignatureException",
        "RequestExpired",
    ];
    codes.contains(&code)
}

/// One line of whatever a service or the SDK says.
pub(crate) fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

/// Whether what was asked for is not there.
pub(crate) fn is_missing(error: &CallError) -> bool {
    ["ResourceNotFoundException", "NotFoundException", "NotFound"].contains(&error.code.as_str())
}

impl From<CallError> for Fault {
    fn from(error: CallError) -> Self {
        let todo = match error.code.as_str() {
            code if is_refusal(code) => "; docs/operator.md has the rights an operator needs",
            code if is_of_credentials(code) => "; sign in again, or look at the clock of this machine",
            "NoAnswer" | "Timeout" | "NoTime" => "; is the network there, and the region right?",
            _ => "",
        };
        Self::Aws(format!("{} failed: {}: {}{todo}", error.act, error.code, line(&error.message)))
    }
}

impl From<ConfigFaults> for Fault {
    fn from(faults: ConfigFaults) -> Self {
        Self::Usage(format!("the settings are wrong: {}", line(&faults.0.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille::error::{ErrorClass, TookEffect, class_of};

    fn failed(code: &str, message: &str) -> Fault {
        let class: ErrorClass = class_of(code);
        let (act, code) = ("describe nodes".to_owned(), code.to_owned());
        CallError { act, code, message: message.to_owned(), class, effect: TookEffect::No }.into()
    }

    #[test]
    fn a_refusal_is_one_line_and_says_where_the_rights_stand() {
        let fault = failed("UnauthorizedOperation", "You are not\nauthorized");
        let expected = "describe nodes failed: UnauthorizedOperation: You are not; docs/operator.md has the rights an operator needs";
        assert_eq!(fault, Fault::Aws(expected.to_owned()));
    }

    #[test]
    fn whoever_is_no_longer_signed_in_is_told_to_sign_in() {
        for code in ["ExpiredToken", "UnrecognizedClientException"] {
            assert!(failed(code, "x").to_string().contains("sign in again"), "{code}");
        }
    }

    #[test]
    fn what_a_service_says_is_cut_to_one_line() {
        assert_eq!(line("a\u{1b}[2Jb\nc"), "a [2Jb");
        assert_eq!(line(&"x".repeat(900)).len(), 200);
    }
}
