//! A function URL on loopback: real HTTP requests become events of payload format 2.0, as Lambda makes them, and the
//! function's answers become HTTP responses.
//!
//! Not emulated: TLS, the check of a signature, CORS, the cap on requests a second, the headers that Lambda adds itself
//! (`x-forwarded-*`, `x-amzn-trace-id`), and the exact words of the URL's own 403, 413, 429 and 502.

use crate::runtime_api::{Function, FunctionError, LocalServer, PAYLOAD_LIMIT, REGION, real_now, request_id};
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A longer body is not even read to its end.
const MOST_READ: usize = 8 * PAYLOAD_LIMIT;
const DOMAIN_PREFIX: &str = "local";

/// How the URL is set up.
#[derive(Debug, Clone, Default)]
pub struct FrontSpec {
    /// The loopback port; 0 takes a free one.
    pub port: u16,
    /// What becomes of a request that meets no free instance.
    pub when_busy: WhenBusy,
    /// The URL's authorisation type.
    pub auth: UrlAuth,
}

/// What becomes of a request while all instances of the function are busy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// It waits in line: as if Lambda had more instances, later.
    #[default]
    Wait,
    /// It is answered 429, as with a reserved concurrency of that many instances.
    Refuse,
}

/// The URL's authorisation type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum UrlAuth {
    /// `NONE`: everybody reaches the function.
    #[default]
    None,
    /// `AWS_IAM`: a request without a signature is answered 403; one with any signature comes from this caller.
    Iam {
        /// The ARN of the role or user.
        user_arn: String,
    },
}

#[derive(Debug)]
struct Front {
    function: Arc<Function>,
    spec: FrontSpec,
}

/// Serves the function at a URL until the answer of this is dropped.
///
/// # Errors
/// The port cannot be had.
pub async fn serve(function: Arc<Function>, spec: FrontSpec) -> io::Result<LocalServer> {
    let port = spec.port;
    LocalServer::start(Router::new().fallback(request).with_state(Arc::new(Front { function, spec })), port).await
}

async fn request(
    State(front): State<Arc<Front>>,
    ConnectInfo(caller): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let mut response = front.answer(caller.ip(), request).await;
    // A connection kept open would hold the function after its server is dropped.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

impl Front {
    async fn answer(&self, caller: IpAddr, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let Ok(body) = axum::body::to_bytes(body, MOST_READ).await else {
            return own_answer(StatusCode::PAYLOAD_TOO_LARGE);
        };
        if self.spec.auth != UrlAuth::None && !is_signed(&parts.headers) {
            return own_answer(StatusCode::FORBIDDEN);
        }
        let event = event(&parts, &body, caller, &self.spec.auth, real_now());
        if event.to_string().len() > PAYLOAD_LIMIT {
            return own_answer(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let invocation = match self.spec.when_busy {
            WhenBusy::Wait => self.function.invoke(&event).await,
            WhenBusy::Refuse => self.function.invoke_now(&event).await,
        };
        match invocation.result {
            Ok(answer) => response(&answer).unwrap_or_else(|| own_answer(StatusCode::BAD_GATEWAY)),
            Err(FunctionError::Throttled) => own_answer(StatusCode::TOO_MANY_REQUESTS),
            Err(FunctionError::Unhandled { .. } | FunctionError::TimedOut | FunctionError::Exited { .. }) => {
                own_answer(StatusCode::BAD_GATEWAY)
            }
        }
    }
}

fn own_answer(status: StatusCode) -> Response {
    (status, axum::Json(json!({"Message": status.canonical_reason()}))).into_response()
}

fn is_signed(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"AWS4-HMAC-SHA256 "))
}

/// The event that Lambda makes of a request: payload format 2.0. What a request does not have is absent.
fn event(parts: &Parts, body: &[u8], caller: IpAddr, auth: &UrlAuth, now: DateTime<Utc>) -> Value {
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let mut event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": joined_headers(&parts.headers),
        "requestContext": {
            "accountId": "anonymous",
            "apiId": DOMAIN_PREFIX,
            "authentication": null,
            "domainName": format!("{DOMAIN_PREFIX}.lambda-url.{REGION}.on.aws"),
            "domainPrefix": DOMAIN_PREFIX,
            "http": {
                "method": parts.method.as_str(),
                "path": path,
                "protocol": format!("{:?}", parts.version),
                "sourceIp": caller,
                "userAgent": header_text(&parts.headers, &header::USER_AGENT),
            },
            "requestId": request_id(),
            "routeKey": "$default",
            "stage": "$default",
            "time": now.format("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            "timeEpoch": now.timestamp_millis(),
        },
        "isBase64Encoded": false,
    });
    if let UrlAuth::Iam { user_arn } = auth {
        let account = user_arn.split(':').nth(4);
        event["requestContext"]["accountId"] = json!(account);
        event["requestContext"]["authorizer"] = json!({"iam": {"accessKey": "local", "accountId": account,
            "callerId": "local", "cognitoIdentity": null, "principalOrgId": null, "userArn": user_arn, "userId": "local"}});
    }
    let cookies = cookies(&parts.headers);
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }
    if !query.is_empty() {
        event["queryStringParameters"] = json!(query_parameters(query));
    }
    if !body.is_empty() {
        let (text, is_base64_encoded) = event_body(&parts.headers, body);
        event["body"] = json!(text);
        event["isBase64Encoded"] = json!(is_base64_encoded);
    }
    event
}

/// All values of a header, joined with commas; absent where there is none.
fn header_text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values: Vec<_> = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Every header but the cookies, which have a place of their own.
fn joined_headers(headers: &HeaderMap) -> BTreeMap<&str, Option<String>> {
    let names = headers.keys().filter(|name| **name != header::COOKIE);
    names.map(|name| (name.as_str(), header_text(headers, name))).collect()
}

fn cookies(headers: &HeaderMap) -> Vec<String> {
    let texts =
        headers.get_all(header::COOKIE).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let each = texts.flat_map(|text| text.split("; ").map(str::to_owned).collect::<Vec<_>>());
    each.filter(|cookie| !cookie.is_empty()).collect()
}

/// Decoded; a name that comes again has its values joined with commas.
fn query_parameters(query: &str) -> BTreeMap<String, String> {
    let mut parameters: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        parameters
            .entry(name.into_owned())
            .and_modify(|values| {
                values.push(',');
                values.push_str(&value);
            })
            .or_insert_with(|| value.to_string());
    }
    parameters
}

/// The event's body and whether it is base64: all is, except the text types; one without a type is (field case 34).
fn event_body(headers: &HeaderMap, body: &[u8]) -> (String, bool) {
    let content_type = header_text(headers, &header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let is_text =
        kind.starts_with("text/") || ["application/json", "application/xml", "application/javascript"].contains(&kind);
    match std::str::from_utf8(body) {
        Ok(text) if is_text => (text.to_owned(), false),
        Ok(_) | Err(_) => (STANDARD.encode(body), true),
    }
}

/// Translates a function's answer; one without `statusCode` is itself the JSON body. `None` if it cannot be sent.
fn response(answer: &Value) -> Option<Response> {
    let Some(status) = answer.get("statusCode") else {
        return Some(axum::Json(answer).into_response());
    };
    let status = u16::try_from(status.as_u64()?).ok().filter(|status| *status >= 200)?;
    let body = answer["body"].as_str().unwrap_or_default();
    let body = if answer["isBase64Encoded"] == true { STANDARD.decode(body).ok()? } else { body.into() };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (StatusCode::from_u16(status).ok()?, kind, body).into_response();
    for (name, value) in answer["headers"].as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = sent_name(HeaderName::try_from(name).ok()?);
        response.headers_mut().insert(name, HeaderValue::try_from(value).ok()?);
    }
    for cookie in answer["cookies"].as_array().into_iter().flatten() {
        response.headers_mut().append(header::SET_COOKIE, HeaderValue::try_from(cookie.as_str()?).ok()?);
    }
    Some(response)
}

/// A function URL keeps this header for itself and hands on the function's own under another name.
fn sent_name(name: HeaderName) -> HeaderName {
    if name == header::WWW_AUTHENTICATE { HeaderName::from_static("x-amzn-remapped-www-authenticate") } else { name }
}

#[cfg(test)]
#[path = "front_tests.rs"]
mod tests;
