//! A caller of the function URL over real HTTP.

use crate::runtime_api::LocalServer;
use crate::stage::TOKEN;
use axum::body::Bytes;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; null where it is no JSON.
    pub body: Value,
}

/// One request.
///
/// # Panics
/// The front is not there: a test has lost its stage.
pub async fn ask(url: &LocalServer, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let request = Request::builder().method(method).uri(format!("http://{}{path}", url.address()));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).expect("a request");
    let response =
        Client::builder(TokioExecutor::new()).build_http().request(request).await.expect("the front answers");
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.into_body().collect().await.expect("a whole answer").to_bytes();
    Answer { status, headers, body: serde_json::from_slice(&body).unwrap_or_default() }
}

/// The stage's token, as a header's value.
pub fn bearer() -> String {
    format!("Bearer {TOKEN}")
}
