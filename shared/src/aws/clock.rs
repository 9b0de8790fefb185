//! The one place that tells the time: the real clock, or a local AWS's virtual one.

use crate::domain::Instant;
use chrono::Utc;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;

const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The virtual clock did not answer.
#[derive(Debug, thiserror::Error)]
#[error("virtual clock {url} failed: {what}")]
pub struct ClockFault {
    url: String,
    what: String,
}

/// Tells the time of decisions. Deadlines and time-outs never use it.
#[derive(Debug, Clone)]
pub struct Clock {
    virtual_one: Option<(String, Client<HttpConnector, Empty<Bytes>>)>,
}

impl Clock {
    /// The real clock, or the virtual one at this URL.
    pub fn new(url: Option<&str>) -> Self {
        Self { virtual_one: url.map(|url| (url.to_owned(), Client::builder(TokioExecutor::new()).build_http())) }
    }

    /// The instant it is.
    ///
    /// # Errors
    /// The virtual clock gave no answer within two seconds, or none that is a time.
    pub async fn now(&self) -> Result<Instant, ClockFault> {
        let Some((url, client)) = &self.virtual_one else { return Ok(real_now()) };
        let fault = |what: String| ClockFault { url: url.clone(), what };
        let body = tokio::time::timeout(LONGEST_WAIT, get(client, url)).await;
        let body = body.map_err(|_| fault("no answer".to_owned()))?.map_err(fault)?;
        let millis = serde_json::from_slice::<serde_json::Value>(&body).ok().and_then(|value| value["now_ms"].as_i64());
        millis.and_then(Instant::from_timestamp_millis).ok_or_else(|| fault("no now_ms in the answer".to_owned()))
    }
}

async fn get(client: &Client<HttpConnector, Empty<Bytes>>, url: &str) -> Result<Bytes, String> {
    let url = url.parse().map_err(|error| format!("{error}"))?;
    let answer = client.get(url).await.map_err(|error| error.to_string())?;
    Ok(answer.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes())
}

#[expect(clippy::disallowed_methods, reason = "the one room that reads the clock")]
pub(super) fn real_now() -> Instant {
    Utc::now()
}
