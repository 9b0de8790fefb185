//! Who may ask the wake function.

use super::{ACCESS, Read, TOKEN_SHA256};
use std::collections::BTreeMap;

/// The longest name of a token.
const LONGEST_NAME: usize = 32;
/// SHA-256 of no bytes at all: what a hash of an unset variable is.
const HASH_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Who may ask the wake function over HTTP: whoever can wake can spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The function URL is of the kind AWS_IAM: Lambda verifies each caller's signature, and no token is read.
    Iam,
    /// A bearer token: the SHA-256 of each that is taken, by its name. Several, so that one can replace another.
    Token(BTreeMap<String, [u8; 32]>),
}

impl Read<'_> {
    /// The setting's values are secrets or close to it: a fault says which variable and what is wrong, and repeats nothing.
    pub(super) fn access(&mut self) -> Access {
        match self.get(ACCESS).unwrap_or("iam") {
            "iam" => {
                if self.get(TOKEN_SHA256).is_some() {
                    self.fault(TOKEN_SHA256, format_args!("is read with {ACCESS}=token only: set that, or remove it"));
                }
                Access::Iam
            }
            "token" => Access::Token(self.token_hashes()),
            _ => {
                self.fault(ACCESS, "is neither `iam` nor `token`");
                Access::Iam
            }
        }
    }

    fn token_hashes(&mut self) -> BTreeMap<String, [u8; 32]> {
        let Some(text) = self.get(TOKEN_SHA256) else {
            self.fault(TOKEN_SHA256, format_args!("is not set, and {ACCESS}=token needs it"));
            return BTreeMap::new();
        };
        let Ok(given) = serde_json::from_str::<BTreeMap<String, String>>(text) else {
            self.fault(TOKEN_SHA256, "is not a JSON object of names and hashes, each hash a text");
            return BTreeMap::new();
        };
        if given.is_empty() {
            self.fault(TOKEN_SHA256, "names no token: nobody could wake anything");
        }
        let mut hashes = BTreeMap::new();
        for (place, (name, hash)) in (1..).zip(given) {
            match token_hash(&name, &hash) {
                Ok(hash) if hashes.values().any(|known| *known == hash) => {
                    self.fault(TOKEN_SHA256, format_args!("token {place}, by name: has the hash of another one"));
                }
                Ok(hash) => {
                    hashes.insert(name, hash);
                }
                Err(what) => self.fault(TOKEN_SHA256, format_args!("token {place}, by name: {what}")),
            }
        }
        hashes
    }
}

fn token_hash(name: &str, text: &str) -> Result<[u8; 32], &'static str> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(is_word) {
        return Err("its name has to be a word of 1 to 32 letters, digits, '.', '_' and '-'");
    }
    if text.eq_ignore_ascii_case(HASH_OF_NOTHING) {
        return Err("its hash is that of an empty text; was the variable set?");
    }
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash).map_err(|_| "its hash has to be 64 hexadecimal digits")?;
    Ok(hash)
}
