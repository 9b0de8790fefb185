//! GETs to the node's own server: bounded in time and length.

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::USER_AGENT;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::error::Error;
use std::time::Duration;
use tokio::time::timeout;

const LONGEST: Duration = Duration::from_secs(3);
const MOST_BYTES: usize = 64 * 1024;

/// Every access-log filter takes a health check for what it is: our own look is no use.
const AGENT: &str = concat!("reveille-beat/", env!("CARGO_PKG_VERSION"), " (health-check)");

/// Why there was no answer. Never names the address, which may hold a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebFault {
    /// It did not answer, or broke off, or said too much.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// It answered something else than 200.
    #[error("the answer is {0}")]
    Status(StatusCode),
    /// It took too long.
    #[error("no answer within {} s", LONGEST.as_secs())]
    TooLate,
}

/// The client.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl Web {
    pub(crate) fn new() -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Whether the answer is 2xx; its body is left unread.
    pub(crate) async fn is_ready(&self, url: &Uri) -> Result<(), WebFault> {
        let answer = timeout(LONGEST, self.get(url)).await.map_err(|_| WebFault::TooLate)??;
        if answer.status().is_success() { Ok(()) } else { Err(WebFault::Status(answer.status())) }
    }

    /// The page behind a 200.
    pub(crate) async fn page(&self, url: &Uri) -> Result<String, WebFault> {
        let read = async {
            let answer = self.get(url).await?;
            if answer.status() != StatusCode::OK {
                return Err(WebFault::Status(answer.status()));
            }
            let body = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
            Ok(body.map_err(|error| WebFault::NoAnswer(error.to_string()))?.to_bytes())
        };
        let body = timeout(LONGEST, read).await.map_err(|_| WebFault::TooLate)??;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    async fn get(&self, url: &Uri) -> Result<Response<Incoming>, WebFault> {
        let request = Request::get(url.clone()).header(USER_AGENT, AGENT).body(Empty::new());
        let request = request.map_err(|error| WebFault::NoAnswer(error.to_string()))?;
        self.client.request(request).await.map_err(|error| WebFault::NoAnswer(chain(&error)))
    }
}

/// An error with what caused it.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
