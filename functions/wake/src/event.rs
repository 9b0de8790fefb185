//! Which of the four events this is.

use aws_lambda_events::lambda_function_urls::LambdaFunctionUrlRequest;
use reveille::operator::FIELD;
use serde_json::Value;

/// What woke the function.
pub(crate) enum Event {
    /// A request to the function URL.
    Request(Box<LambdaFunctionUrlRequest>),
    /// The `awslogs.data` of a subscription batch.
    LogBatch(String),
    /// EC2 says that a node is stopped.
    NodeStopped,
    /// EC2 says something that changes nothing here.
    OtherState(String),
    /// What an operator asks, by an invocation of its own kind.
    Operator(Value),
}

/// Names what is wrong with the event, and never repeats its contents.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventFault(pub(crate) String);

impl std::fmt::Display for EventFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event: {}", self.0)
    }
}

impl std::error::Error for EventFault {}

impl Event {
    /// Tells the event by its own marks.
    ///
    /// # Errors
    /// Names the field that is missing or of the wrong kind.
    pub(crate) fn read(mut event: Value) -> Result<Self, EventFault> {
        if let Some(logs) = event.get("awslogs") {
            let data = logs.get("data").and_then(Value::as_str);
            return data.map(|data| Self::LogBatch(data.to_owned())).ok_or_else(|| fault("awslogs.data: not a string"));
        }
        if event.pointer("/requestContext/http").is_some() {
            forget_nulls(&mut event);
            fill_in_unused(&mut event);
            let request = serde_json::from_value(event);
            return request.map(|request| Self::Request(Box::new(request))).map_err(|error| {
                // The classification is enough; serde's text may quote what a caller sent.
                fault(&format!("requestContext: not a function-URL request of payload 2.0 ({:?})", error.classify()))
            });
        }
        if event.get("detail-type").and_then(Value::as_str) == Some("EC2 Instance State-change Notification") {
            let state = event.pointer("/detail/state").and_then(Value::as_str);
            return match state {
                Some("stopped") => Ok(Self::NodeStopped),
                Some(other) => Ok(Self::OtherState(other.to_owned())),
                None => Err(fault("detail.state: not a string")),
            };
        }
        // Last: whatever a URL, a log or a rule hands on is that, whoever wrote what is in it.
        if let Some(asked) = event.get_mut(FIELD) {
            return Ok(Self::Operator(asked.take()));
        }
        Err(fault(
            "neither a function-URL request (requestContext.http), nor a log batch (awslogs), nor an EC2 state change (detail-type), nor an operator's (operator)",
        ))
    }
}

/// A field of null says nothing: the library's type would refuse it where it takes an absent one.
fn forget_nulls(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(forget_nulls);
    }
}

/// The library's type refuses an event without these two, which tools and tests leave out and nothing here uses.
fn fill_in_unused(event: &mut Value) {
    if let Some(context) = event["requestContext"].as_object_mut() {
        context.entry("timeEpoch").or_insert(Value::from(0));
    }
    if let Some(request) = event.as_object_mut() {
        request.entry("isBase64Encoded").or_insert(Value::from(false));
    }
}

fn fault(what: &str) -> EventFault {
    EventFault(what.to_owned())
}
