//! What the command `reveille` asks of a function, by an invocation of its own kind: `{"operator": {"by": "cli:anna", "ask":
//! {"wake": {"pool": "voice"}}}}`. Only who may invoke the function itself can send it: a function URL, a rule and a
//! subscription wrap what they hand on.

use crate::domain::NodeId;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// The field of the event.
pub const FIELD: &str = "operator";

/// A hold may last so long at most: one that nobody has to renew is forgotten.
pub const LONGEST_HOLD: TimeDelta = TimeDelta::days(31);
/// So long at most is a gate closed that opens by itself.
pub const LONGEST_GATE: TimeDelta = TimeDelta::days(400);
/// The longest note, in characters.
pub const LONGEST_NOTE: usize = 200;
/// What a caller is who has invoked the function itself.
pub const CLASS: &str = "cli:";
/// The longest name of somebody who asks.
const LONGEST_NAME: usize = 80;

/// Who asks for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// A name for the log and the next person, by the caller's own word: IAM has let him in.
    pub by: String,
    /// What.
    pub ask: Ask,
}

/// Which node or pool; with neither, the only one there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meant {
    /// The pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The node's name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// A wake, as `POST /wake`.
    Wake(Meant),
    /// Keeps a node.
    Hold {
        /// Which.
        #[serde(default)]
        meant: Meant,
        /// For so long.
        seconds: u32,
        /// Why.
        note: String,
    },
    /// Ends a hold.
    Release(Meant),
    /// Takes no wake any more.
    CloseGate {
        /// The pool.
        #[serde(default)]
        pool: Option<String>,
        /// For so long; absent: until a person opens it.
        #[serde(default)]
        seconds: Option<u32>,
        /// Running nodes are stopped once no call is left.
        #[serde(default)]
        drain: bool,
        /// Why: callers are told it.
        note: String,
    },
    /// Takes wakes again.
    OpenGate {
        /// The pool.
        #[serde(default)]
        pool: Option<String>,
        /// Why.
        note: String,
    },
    /// Whether the function's role may do what it hardly ever does: EC2's dry runs. Nothing is done.
    Rights,
}

/// What a dry run said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Right {
    /// The action, as IAM names it.
    pub act: String,
    /// On which node.
    pub node: NodeId,
    /// The code of the refusal; none where it may.
    pub refused: Option<String>,
}

impl Asked {
    /// Checks what has a length.
    ///
    /// # Errors
    /// Names the field and its rule, and never repeats what was sent.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let of_name = |c: char| c.is_ascii_alphanumeric() || "+=,.@_:-".contains(c);
        // A caller of the URL is `token:…` or `iam:…`: nobody is taken for one.
        let name = self.by.strip_prefix(CLASS).unwrap_or_default();
        if name.is_empty() || self.by.len() > LONGEST_NAME || !name.chars().all(of_name) {
            return Err(("by", "must be cli: and a name, up to 80 letters, digits or any of + = , . @ _ : -"));
        }
        match &self.ask {
            Ask::Hold { seconds, note, .. } => {
                check_note(note)?;
                if *seconds == 0 || TimeDelta::seconds(i64::from(*seconds)) > LONGEST_HOLD {
                    return Err(("seconds", "must be 1 second to 31 days"));
                }
                Ok(())
            }
            Ask::CloseGate { seconds: Some(seconds), .. }
                if *seconds == 0 || TimeDelta::seconds(i64::from(*seconds)) > LONGEST_GATE =>
            {
                Err(("seconds", "must be 1 second to 400 days; without, a person has to open it"))
            }
            Ask::CloseGate { note, .. } | Ask::OpenGate { note, .. } => check_note(note),
            Ask::Wake(_) | Ask::Release(_) | Ask::Rights => Ok(()),
        }
    }
}

/// A note is read by people, in a line of a log or of a terminal.
fn check_note(note: &str) -> Result<(), (&'static str, &'static str)> {
    let fits = (1..=LONGEST_NOTE).contains(&note.trim().chars().count());
    if fits && !note.contains(char::is_control) {
        return Ok(());
    }
    Err(("note", "must have 1 to 200 characters, in one line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<Asked, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn hold(by: &str, seconds: u32, note: &str) -> Asked {
        Asked { by: by.to_owned(), ask: Ask::Hold { meant: Meant::default(), seconds, note: note.to_owned() } }
    }

    #[test]
    fn an_order_reads_back_as_it_was_written() {
        let meant = Meant { pool: None, node: Some("gpu-1".to_owned()) };
        let all = [
            Ask::Wake(Meant::default()),
            Ask::Hold { meant: meant.clone(), seconds: 7200, note: "demo".to_owned() },
            Ask::Release(meant),
            Ask::CloseGate { pool: None, seconds: None, drain: true, note: "moving".to_owned() },
            Ask::OpenGate { pool: Some("voice".to_owned()), note: "moved".to_owned() },
            Ask::Rights,
        ];
        for ask in all {
            let one = Asked { by: "cli:anna".to_owned(), ask };
            assert_eq!(asked(&serde_json::to_string(&one).unwrap()), Ok(one));
        }
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        for text in [
            r#"{"by": "cli:anna", "ask": {"wake": {"pol": "voice"}}}"#,
            r#"{"by": "cli:anna", "ask": {"hold": {"minutes": 5, "note": "x"}}}"#,
            r#"{"by": "cli:anna", "ask": "stop"}"#,
            r#"{"ask": "rights"}"#,
        ] {
            assert!(asked(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_hold_has_an_end_and_a_note() {
        let month = 31 * 86_400;
        assert_eq!(hold("cli:anna", month, "x").check(), Ok(()));
        assert_eq!(hold("cli:anna", 1, &"x".repeat(200)).check(), Ok(()));
        let rows = [
            (hold("cli:anna", 0, "x"), "seconds"),
            (hold("cli:anna", month + 1, "x"), "seconds"),
            (hold("cli:anna", 60, " "), "note"),
            (hold("cli:anna", 60, &"x".repeat(201)), "note"),
            (hold("cli:anna", 60, "two\nlines"), "note"),
            (hold("", 60, "x"), "by"),
            (hold("cli:anna b", 60, "x"), "by"),
            (hold("cli:", 60, "x"), "by"),
            (hold("token:app", 60, "x"), "by"),
        ];
        for (asked, field) in rows {
            assert_eq!(asked.check().map_err(|(field, _)| field), Err(field), "{asked:?}");
        }
    }
}
