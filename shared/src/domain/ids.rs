//! Names that were checked once, at the edge.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A name that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?}: {rule}")]
pub struct WordFault {
    what: &'static str,
    value: String,
    rule: &'static str,
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks the word: 1 to
            #[doc = concat!(stringify!($max), " letters, digits, `.`, `_` or `-`.")]
            ///
            /// # Errors
            /// Names the word and the rule it breaks.
            pub fn new(value: impl Into<String>) -> Result<Self, WordFault> {
                let value = value.into();
                let fits = (1..=$max).contains(&value.len())
                    && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
                if fits {
                    return Ok(Self(value));
                }
                let rule = concat!("must be 1 to ", stringify!($max), " letters, digits, '.', '_' or '-'");
                Err(WordFault { what: $what, value: value.chars().take(80).collect(), rule })
            }

            /// The word itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = WordFault;
            fn try_from(value: String) -> Result<Self, WordFault> {
                Self::new(value)
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> String {
                word.0
            }
        }
    };
}

word!(
    /// An EC2 instance id.
    NodeId,
    "node id",
    64
);
word!(
    /// A pool: the nodes with one value of the tag `reveille:pool`.
    PoolName,
    "pool",
    64
);
word!(
    /// An EC2 instance type, such as `g6.xlarge`.
    InstanceType,
    "instance type",
    32
);

word!(
    /// A lease: one call in progress, named by the app that holds it.
    LeaseId,
    "lease id",
    64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_checked_once_and_the_fault_names_it() {
        assert!(PoolName::new("voice-1.eu_west").is_ok());
        for bad in ["", "a b", "a#b", "ü", &"x".repeat(65)] {
            let fault = PoolName::new(bad).expect_err("must be refused").to_string();
            assert!(fault.starts_with("pool "), "{fault}");
        }
    }
}
