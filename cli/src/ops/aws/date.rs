//! What time it is at AWS: the `Date` of an answer.

use aws_config::SdkConfig;
use aws_sdk_sts::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_sts::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sts::error::BoxError;
use chrono::DateTime;
use reveille::aws::call_error;
use reveille::domain::Instant;
use reveille::error::CallError;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, Default)]
struct ReadDate(Arc<Mutex<Option<Instant>>>);

impl Intercept for ReadDate {
    fn name(&self) -> &'static str {
        "ReadDate"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date").and_then(|text| DateTime::parse_from_rfc2822(text).ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date.map(|date| date.to_utc());
        Ok(())
    }
}

/// None where the answer has no date.
///
/// # Errors
/// AWS was not reached.
pub(crate) async fn date(sdk: &SdkConfig) -> Result<Option<Instant>, CallError> {
    let read = ReadDate::default();
    let request = aws_sdk_sts::Client::new(sdk).get_caller_identity().customize().interceptor(read.clone());
    request.send().await.map_err(|error| call_error("ask for the time", &error))?;
    let date = *read.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(date)
}
