//! SDK errors to call errors. The classes of the codes stand in `error.rs`.

use crate::error::{CallError, ErrorClass, TookEffect, class_of, effect_of};
use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use std::error::Error;

/// Names the act, the code and what may be concluded.
pub fn call_error<E>(act: impl Into<String>, error: &SdkError<E, HttpResponse>) -> CallError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let answered = error.as_service_error();
    let status = error.raw_response().map(|response| response.status().as_u16());
    let code = match (answered.and_then(ProvideErrorMetadata::code), error) {
        (Some(code), _) => code.to_owned(),
        (None, SdkError::TimeoutError(_)) => "Timeout".to_owned(),
        (None, _) => "NoAnswer".to_owned(),
    };
    let message = answered.and_then(|error| error.message()).map_or_else(|| first_line(error), str::to_owned);
    CallError { act: act.into(), class: class_of(&code), effect: effect_of(&code, status), message, code }
}

fn first_line<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> String {
    DisplayErrorContext(error).to_string().chars().take(200).collect()
}

/// A request that could not even be built, or an answer that makes no sense.
pub(super) fn malformed(act: impl Into<String>, message: impl std::fmt::Display) -> CallError {
    CallError {
        act: act.into(),
        code: "Malformed".to_owned(),
        message: message.to_string(),
        class: ErrorClass::Unknown,
        effect: TookEffect::No,
    }
}

/// The last page of a list names no further one. The SDK's paginator also ends where a page names itself as the next, and such
/// a list is no list: what is not on it may be there all the same (field case 12).
///
/// # Errors
/// The last page names a next one.
pub fn whole(act: &str, names_a_next: bool) -> Result<(), CallError> {
    if names_a_next { Err(malformed(act, "a page names itself as the next one")) } else { Ok(()) }
}

/// Whether a page names a next one.
pub fn names_a_next(token: Option<&str>) -> bool {
    token.is_some_and(|token| !token.is_empty())
}
