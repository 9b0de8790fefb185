//! Who asks: the one question before any other, for every path and method.

use crate::http::{problem, with_header};
use aws_lambda_events::http::header::AUTHORIZATION;
use aws_lambda_events::lambda_function_urls::LambdaFunctionUrlRequest;
use reveille::config::Access;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

/// A longer header is no token of ours, and is not worth a hash.
const LONGEST_AUTHORIZATION: usize = 512;
/// How many buckets callers fall into.
const RATE_KEYS: u8 = 64;

/// Somebody who may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// `token:NAME`, or `iam:` and the name of a role or user. No secret, no account and no session: it may be logged.
    pub(crate) class: String,
    /// Where the request came from, as Lambda saw it; a header of the caller's cannot set it.
    pub(crate) source_ip: Option<String>,
}

impl Caller {
    /// The bucket that this caller is counted in, 0 to 63: the number of buckets stays bounded however many addresses ask.
    /// Two callers may share one; then a cap counts them together and is stricter, never looser.
    pub(crate) fn rate_key(&self) -> u8 {
        // No class holds a line break, so no two pairs read the same.
        let text = format!("{}\n{}", self.class, self.source_ip.as_deref().unwrap_or_default());
        Sha256::digest(text)[0] % RATE_KEYS
    }

    /// What a run has to know of it.
    pub(crate) fn of_run(&self) -> reveille::run::Caller {
        reveille::run::Caller { class: self.class.clone(), bucket: Some(format!("c{:02}", self.rate_key())) }
    }
}

/// Lets the caller in, or gives the answer that keeps it out: the same one whatever is wrong with a token.
pub(crate) fn admit(access: &Access, request: &LambdaFunctionUrlRequest) -> Result<Caller, Value> {
    let class = match access {
        Access::Iam => verified_class(request).ok_or_else(|| {
            unauthorized(
                "the function URL is not behind AWS_IAM, and no other access is configured",
                "AWS4-HMAC-SHA256",
            )
        }),
        Access::Token(hashes) => bearer_token(request)
            .and_then(|token| name_of(token, hashes))
            .map(|name| format!("token:{name}"))
            .ok_or_else(|| unauthorized("needs the header `Authorization: Bearer` with a valid token", "Bearer")),
    }?;
    Ok(Caller { class, source_ip: request.request_context.http.source_ip.clone() })
}

fn unauthorized(detail: &str, scheme: &str) -> Value {
    // A function URL hands it on as `x-amzn-remapped-www-authenticate`.
    with_header(problem(401, "authorization", detail), "www-authenticate", scheme)
}

/// The token of the one `Authorization` header. Lambda joins several with a comma, which no token holds.
fn bearer_token(request: &LambdaFunctionUrlRequest) -> Option<&str> {
    let mut headers = request.headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (headers.next(), headers.next()) else { return None };
    let text = only.to_str().ok().filter(|text| text.len() <= LONGEST_AUTHORIZATION)?;
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim_matches(' ');
    // The characters of RFC 6750.
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.bytes().all(is_of_token)).then_some(token)
}

/// The name of the token with this hash. Every stored hash is compared, each in constant time, so that the time taken tells
/// neither how much of a hash was right nor which one it was.
fn name_of<'a>(token: &str, hashes: &'a BTreeMap<String, [u8; 32]>) -> Option<&'a str> {
    let hash = Sha256::digest(token);
    let mut place = 0_u32;
    for (candidate, known) in (1_u32..).zip(hashes.values()) {
        place.conditional_assign(&candidate, hash.as_slice().ct_eq(known));
    }
    let found = (1_u32..).zip(hashes.keys()).find(|(candidate, _)| *candidate == place);
    found.map(|(_, name)| name.as_str())
}

/// `iam:NAME` of the caller whose signature Lambda has verified; none where nobody verified one.
fn verified_class(request: &LambdaFunctionUrlRequest) -> Option<String> {
    let iam = request.request_context.authorizer.as_ref()?.iam.as_ref()?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let name = match (given(&iam.user_arn), given(&iam.user_id)) {
        (Some(arn), _) => name_in_arn(&arn).map(str::to_owned),
        // The unique id of a role or user; what follows the colon is a session's name.
        (None, Some(id)) => id.split(':').next().map(str::to_owned).filter(|id| !is_account(id)),
        (None, None) => return None,
    };
    Some(format!("iam:{}", name.filter(|name| is_plain(name)).unwrap_or_else(|| "unnamed".to_owned())))
}

/// The role or user of an ARN such as `arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION` or
/// `arn:aws:iam::ACCOUNT:user/PATH/USER`; a federated user's name is a session's.
fn name_in_arn(arn: &str) -> Option<&str> {
    let resource = arn.splitn(6, ':').nth(5)?;
    match resource.split_once('/') {
        Some(("assumed-role", rest)) => rest.split('/').next(),
        Some(("user" | "role", rest)) => rest.rsplit('/').next(),
        Some((kind, _)) => Some(kind),
        None => Some(resource),
    }
}

fn is_account(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_digit())
}

/// What IAM allows in the name of a role or user.
fn is_plain(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_of_name)
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
