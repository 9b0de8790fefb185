//! Tests of the mapping between HTTP and payload format 2.0.

use super::*;
use crate::runtime_api::FunctionSpec;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn echo() -> FunctionSpec {
    let test = std::env::current_exe().unwrap();
    FunctionSpec {
        name: "echo".into(),
        // Beside this test's own directory; `cargo test` builds the examples, `cargo test --lib` alone does not.
        binary: test.ancestors().nth(2).unwrap().join("examples/echo"),
        env: BTreeMap::new(),
        timeout: Duration::from_secs(5),
        memory_mb: 128,
        max_instances: 1,
    }
}

async fn served(function: FunctionSpec, spec: FrontSpec) -> LocalServer {
    let function = Function::start(function).expect("cargo test builds examples/echo.rs");
    serve(Arc::new(function), spec).await.unwrap()
}

/// Sends the raw request and gives the raw answer.
async fn http(server: &LocalServer, request: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(request.replace('\n', "\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The event that the function was handed, as the echo shows it.
async fn event_of(server: &LocalServer, request: &str) -> Value {
    let answer = http(server, request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    serde_json::from_str::<Value>(body).unwrap()["event"].take()
}

#[tokio::test]
async fn a_request_is_handed_over_in_payload_format_2() {
    let server = served(echo(), FrontSpec::default()).await;
    let request = "POST /start/a%20b?node=one&tag=a%2Cb&node=t%20wo&flag HTTP/1.1\nHost: local\nUser-Agent: me\nX-Two: 1\n\
                   X-TWO: 2\nCookie: a=1; b=2\nCookie: c=3\nContent-Type: application/json\nContent-Length: 2\n\n{}";
    let event = event_of(&server, request).await;
    let context = &event["requestContext"];
    let rows = [
        ("version", &event["version"], json!("2.0")),
        ("route", &event["routeKey"], json!("$default")),
        ("path", &event["rawPath"], json!("/start/a%20b")),
        ("query", &event["rawQueryString"], json!("node=one&tag=a%2Cb&node=t%20wo&flag")),
        ("parameters", &event["queryStringParameters"], json!({"node": "one,t wo", "tag": "a,b", "flag": ""})),
        ("joined header", &event["headers"]["x-two"], json!("1,2")),
        ("cookies", &event["cookies"], json!(["a=1", "b=2", "c=3"])),
        ("no cookie among the headers", &event["headers"]["cookie"], Value::Null),
        ("method", &context["http"]["method"], json!("POST")),
        ("path again", &context["http"]["path"], json!("/start/a%20b")),
        ("protocol", &context["http"]["protocol"], json!("HTTP/1.1")),
        ("address", &context["http"]["sourceIp"], json!("127.0.0.1")),
        ("agent", &context["http"]["userAgent"], json!("me")),
        ("domain", &context["domainName"], json!("local.lambda-url.us-east-1.on.aws")),
        ("account", &context["accountId"], json!("anonymous")),
        ("authorizer", &context["authorizer"], Value::Null),
        ("body", &event["body"], json!("{}")),
        ("base64", &event["isBase64Encoded"], json!(false)),
    ];
    for (name, seen, expected) in rows {
        assert_eq!(*seen, expected, "{name}");
    }
    assert!(context["timeEpoch"].is_i64() && context["time"].as_str().unwrap().ends_with(" +0000"), "{context}");
    assert!(context["requestId"].is_string(), "{context}");
}

#[tokio::test]
async fn what_a_request_does_not_have_is_absent() {
    let server = served(echo(), FrontSpec::default()).await;
    let event = event_of(&server, "GET / HTTP/1.1\nHost: local\n\n").await;
    for field in ["body", "cookies", "queryStringParameters"] {
        assert_eq!(event.get(field), None, "{field}");
    }
    assert_eq!((&event["rawQueryString"], &event["isBase64Encoded"]), (&json!(""), &json!(false)));
}

#[test]
fn only_text_types_arrive_plain() {
    let rows = [
        ("application/json", false),
        ("application/json; charset=utf-8", false),
        ("Application/JSON", false),
        ("text/plain", false),
        ("application/xml", false),
        ("application/javascript", false),
        ("application/problem+json", true),
        ("application/jsonl", true),
        ("application/x-www-form-urlencoded", true),
        ("application/octet-stream", true),
        ("", true),
    ];
    for (kind, expected) in rows {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let text = if expected { "e30=" } else { "{}" };
        assert_eq!(event_body(&headers, b"{}"), (text.to_owned(), expected), "{kind}");
    }
    assert_eq!(event_body(&HeaderMap::new(), b"{}"), ("e30=".to_owned(), true), "no type at all");
    let json = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    assert_eq!(event_body(&json, &[0xff]), ("/w==".to_owned(), true), "a text that is none");
}

#[tokio::test]
async fn an_answer_is_translated_back() {
    let server = served(echo(), FrontSpec::default()).await;
    let answer = http(&server, "GET /made HTTP/1.1\nHost: local\n\n").await;
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    assert!(answer.contains("x-made: yes"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nmade"), "{answer}");
}

#[test]
fn headers_and_cookies_of_an_answer_are_sent() {
    let answer = json!({"statusCode": 401, "body": "no", "cookies": ["a=1", "b=2"],
        "headers": {"content-type": "text/plain", "retry-after": 5, "www-authenticate": "Bearer"}});
    let response = response(&answer).unwrap();
    let header = |name: &str| header_text(response.headers(), &HeaderName::try_from(name).unwrap());
    assert_eq!(response.status(), 401);
    assert_eq!(header("content-type").as_deref(), Some("text/plain"));
    assert_eq!(header("retry-after").as_deref(), Some("5"));
    assert_eq!(header("set-cookie").as_deref(), Some("a=1,b=2"));
    assert_eq!((header("www-authenticate"), header("x-amzn-remapped-www-authenticate")), (None, Some("Bearer".into())));
}

#[test]
fn an_answer_that_is_no_http_cannot_be_sent() {
    let rows = [
        json!({"statusCode": "200"}),
        json!({"statusCode": 99}),
        json!({"statusCode": 101}),
        json!({"statusCode": 70000}),
        json!({"statusCode": 200, "body": "%%%", "isBase64Encoded": true}),
        json!({"statusCode": 200, "headers": {"a b": "c"}}),
        json!({"statusCode": 200, "headers": {"a": "b\nc"}}),
    ];
    for answer in rows {
        assert!(response(&answer).is_none(), "{answer}");
    }
    assert_eq!(response(&json!({"any": 1})).unwrap().status(), 200, "an answer without a status is the body");
}

#[tokio::test]
async fn a_function_that_fails_is_a_502() {
    let env = BTreeMap::from([("EXIT_IN_INIT".into(), "4".into())]);
    let server = served(FunctionSpec { env, ..echo() }, FrontSpec::default()).await;
    let answer = http(&server, "GET / HTTP/1.1\nHost: local\n\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn a_busy_function_is_a_429_where_that_is_asked_for() {
    let spec = FrontSpec { when_busy: WhenBusy::Refuse, ..FrontSpec::default() };
    let server = served(FunctionSpec { max_instances: 0, ..echo() }, spec).await;
    let answer = http(&server, "GET / HTTP/1.1\nHost: local\n\n").await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
}

#[tokio::test]
async fn a_busy_function_is_waited_for_otherwise() {
    let server = served(echo(), FrontSpec::default()).await;
    let request = "GET /made HTTP/1.1\nHost: local\n\n";
    let answers = futures::future::join_all((0..5).map(|_| http(&server, request))).await;
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 201 ")), "{answers:?}");
}

#[tokio::test]
async fn a_payload_beyond_6_mb_is_a_413() {
    let server = served(echo(), FrontSpec::default()).await;
    let post = |kind: &str, bytes: usize| {
        let body = "x".repeat(bytes);
        format!("POST /made HTTP/1.1\nHost: local\nContent-Type: {kind}\nContent-Length: {bytes}\n\n{body}")
    };
    let rows = [
        ("text of 6 MB", post("text/plain", 6_000_000), "201"),
        ("text of 7 MB", post("text/plain", 7_000_000), "413"),
        ("5 MB that base64 makes 7", post("image/png", 5_000_000), "413"),
    ];
    for (name, request, status) in rows {
        let answer = http(&server, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
    }
}

#[tokio::test]
async fn with_iam_an_unsigned_request_stays_outside_and_a_signed_one_has_a_caller() {
    let user_arn = "arn:aws:sts::123456789012:assumed-role/front/me".to_owned();
    let spec = FrontSpec { auth: UrlAuth::Iam { user_arn }, ..FrontSpec::default() };
    let server = served(echo(), spec).await;
    for header in ["", "Authorization: Bearer x\n"] {
        let answer = http(&server, &format!("GET / HTTP/1.1\nHost: local\n{header}\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    let signed = "GET / HTTP/1.1\nHost: local\nAuthorization: AWS4-HMAC-SHA256 Credential=a\n\n";
    let context = event_of(&server, signed).await["requestContext"].take();
    assert_eq!(context["accountId"], "123456789012");
    assert_eq!(context["authorizer"]["iam"]["userArn"], "arn:aws:sts::123456789012:assumed-role/front/me");
}
