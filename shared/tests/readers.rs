//! What is read of one line of each format, whether it wakes, and what it is for the use of the node. All on one day; log
//! events carry 12:00:00.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use reveille::access_log::{self, Filter, LineUse, RequestLine, Stamp, Verdict, line_use, minutes};
use reveille::log_batch::{self, Outcome};
use std::io::Write as _;

/// Calls are below `/v1/`.
const STRICT: &str = r#"{"paths": ["/v1/"]}"#;

fn at(clock: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(&format!("2026-11-30T{clock}Z")).unwrap().to_utc()
}

fn noon() -> DateTime<Utc> {
    at("12:00:00")
}

fn filter(spec: &str) -> Filter {
    Filter::new(serde_json::from_str(spec).unwrap()).unwrap()
}

fn clock(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%S%.f").to_string()
}

/// `GET /v1/a 200 [agent] | end 12:00:00 | 250 ms`
fn parts(line: &RequestLine) -> String {
    let status = line.status.map_or("-".to_owned(), |status| status.to_string());
    let agent = line.agent.as_deref().unwrap_or("-");
    let stamp = match line.stamp {
        Stamp::Start => "start",
        Stamp::End => "end",
    };
    let time = line.at.map_or("no time".to_owned(), |at| format!("{stamp} {}", clock(at)));
    let took = line.took.map_or("-".to_owned(), |took| format!("{} ms", took.num_milliseconds()));
    format!("{} {} {status} [{agent}] | {time} | {took}", line.method, line.path)
}

/// `wakes | use 11:59:59-12:00:00`
fn meaning(filter: &Filter, line: &[u8]) -> String {
    let verdict = match filter.read(line).map(|line| filter.judge(&line)) {
        None => "unread",
        Some(Verdict::Wakes) => "wakes",
        Some(Verdict::Noise(reason)) => reason.as_str(),
    };
    let use_ = match line_use(filter, line, noon()) {
        LineUse::Use { from, to } => format!("use {}-{}", clock(from), clock(to)),
        LineUse::Alive => "alive".to_owned(),
    };
    format!("{verdict} | {use_}")
}

struct Row {
    name: &'static str,
    line: String,
    parts: &'static str,
    meaning: &'static str,
}

fn row(name: &'static str, line: impl Into<String>, parts: &'static str, meaning: &'static str) -> Row {
    Row { name, line: line.into(), parts, meaning }
}

const CALL: &str = "wakes | use 12:00:00-12:00:00";

fn text_rows() -> Vec<Row> {
    let nginx = |request: &str, rest: &str| {
        format!(r#"192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] "{request} HTTP/1.1" {rest}"#)
    };
    vec![
        row(
            "combined",
            nginx("GET /v1/a?k=s", r#"200 5 "http://r/" "curl/8""#),
            "GET /v1/a 200 [curl/8] | end 12:00:00 | -",
            CALL,
        ),
        row("common", nginx("POST /v1/a", "201 -"), "POST /v1/a 201 [-] | end 12:00:00 | -", CALL),
        row(
            "combined, IPv6, another zone",
            r#"2001:db8::7 - jo [30/Nov/2026:13:00:00 +0100] "GET /v1/a HTTP/2.0" 200 5 "-" "a""#,
            "GET /v1/a 200 [a] | end 12:00:00 | -",
            CALL,
        ),
        row(
            "a number behind a combined line has no unit",
            nginx("GET /v1/a", r#"200 5 "-" "a" 10800.000"#),
            "GET /v1/a 200 [a] | end 12:00:00 | -",
            CALL,
        ),
        row(
            "Traefik text names its unit, and its time is the start",
            nginx("GET /v1/a", r#"200 5 "-" "a" 17 "router@file" "http://10.0.0.5:80" 90000ms"#),
            "GET /v1/a 200 [a] | start 12:00:00 | 90000 ms",
            "ended_call | use 12:00:00-12:01:30",
        ),
        row(
            "an agent that looks like a duration",
            nginx("GET /v1/a", r#"200 5 "-" "90000ms""#),
            "GET /v1/a 200 [90000ms] | end 12:00:00 | -",
            CALL,
        ),
        row(
            "escapes",
            nginx(r"GET /v1/\xC3\xA9", r#"200 5 "-" "x \x22y\x22""#),
            r#"GET /v1/é 200 [x "y"] | end 12:00:00 | -"#,
            CALL,
        ),
        row(
            "no request",
            r#"h - - [30/Nov/2026:12:00:00 +0000] "-" 408 - "-" "-""#,
            "- - 408 [-] | end 12:00:00 | -",
            "method | alive",
        ),
        row("no status", nginx("GET /v1/a", r#"- - "-" "a""#), "GET /v1/a - [a] | end 12:00:00 | -", "status | alive"),
        row(
            "refused",
            nginx("GET /v1/a", r#"401 5 "-" "a""#),
            "GET /v1/a 401 [a] | end 12:00:00 | -",
            "status | alive",
        ),
        row("gave up", nginx("GET /v1/a", r#"499 0 "-" "a""#), "GET /v1/a 499 [a] | end 12:00:00 | -", CALL),
        row(
            "health check",
            nginx("GET /v1/a", r#"200 5 "-" "ELB-HealthChecker/2.0""#),
            "GET /v1/a 200 [ELB-HealthChecker/2.0] | end 12:00:00 | -",
            "health_check | alive",
        ),
        row(
            "crawler",
            nginx("GET /v1/a", r#"200 5 "-" "Googlebot/2.1""#),
            "GET /v1/a 200 [Googlebot/2.1] | end 12:00:00 | -",
            "crawler | alive",
        ),
    ]
}

/// A balancer line: type, client, the three durations, status, request, time of creation.
fn alb(kind: &str, client: &str, waits: &str, status: &str, request: &str, created: &str) -> String {
    format!(
        r#"{kind} 2026-11-30T12:00:00.000000Z app/lb/aa11 {client} 10.0.0.5:80 {waits} {status} 99 88 "{request} HTTP/1.1" "ua" - - arn:x "Root=1-a" "h.example" "-" 0 2026-11-30T{created}Z "forward" "-" "-" "10.0.0.5:80" "200" "-" "-""#
    )
}

fn balancer_rows() -> Vec<Row> {
    let (v4, waits, url) = ("198.51.100.7:4000", "0.001 0.248 0.001", "GET https://h.example:443/v1/a?k=s");
    vec![
        row(
            "balancer",
            alb("https", v4, waits, "200 200", url, "11:59:59.750000"),
            "GET /v1/a 200 [ua] | end 12:00:00 | 250 ms",
            "wakes | use 11:59:59.750-12:00:00",
        ),
        row(
            "a WebSocket of three hours, which has milliseconds to its first byte",
            alb("wss", v4, "0.001 0.003 0.000", "101 101", url, "09:00:00.000000"),
            "GET /v1/a 101 [ua] | end 12:00:00 | 10800000 ms",
            "ended_call | use 09:00:00-12:00:00",
        ),
        row(
            "ws and bare IPv6",
            alb("ws", "2001:db8::1", waits, "101 101", "GET http://h/v1/a", "11:00:00.000000"),
            "GET /v1/a 101 [ua] | end 12:00:00 | 3600000 ms",
            "ended_call | use 11:00:00-12:00:00",
        ),
        row(
            "h2 and IPv6 with a port",
            alb("h2", "[2001:db8::1]:4000", "0.000 20.000 0.000", "200 200", url, "11:59:40.000000"),
            "GET /v1/a 200 [ua] | end 12:00:00 | 20000 ms",
            "ended_call | use 11:59:40-12:00:00",
        ),
        row(
            "grpcs, somebody waited for a sleeping node",
            alb("grpcs", v4, "0.000 -1 -1", "503 -", "POST https://h/v1/a", "11:59:00.000000"),
            "POST /v1/a 503 [ua] | end 12:00:00 | 60000 ms",
            "wakes | use 11:59:00-12:00:00",
        ),
        row(
            "nothing was done for it",
            alb("http", v4, "-1 -1 -1", "502 -", url, "-"),
            "GET /v1/a 502 [ua] | end 12:00:00 | -",
            CALL,
        ),
        row(
            "created after its end",
            alb("http", v4, "-1 -1 -1", "502 -", url, "12:00:01.000000"),
            "GET /v1/a 502 [ua] | end 12:00:00 | -",
            CALL,
        ),
        row(
            "no request",
            alb("http", v4, "-1 -1 -1", "400 -", "- http://h:80- -", "12:00:00.000000"),
            "- - 400 [ua] | end 12:00:00 | 0 ms",
            "method | alive",
        ),
    ]
}

fn gateway_rows() -> Vec<Row> {
    vec![
        row(
            "REST API, the example of the page, with its latency",
            r#"{ "requestId":"a-1", "ip": "192.0.2.7", "caller":"-", "user":"-","requestTime":"30/Nov/2026:11:59:30 +0000", "httpMethod":"GET","resourcePath":"/v1/{proxy+}", "status":"200","protocol":"HTTP/1.1", "responseLength":"-","responseLatency":"29000" }"#,
            "GET /v1/{proxy+} 200 [-] | start 11:59:30 | 29000 ms",
            "ended_call | use 11:59:31-12:00:00",
        ),
        row(
            "HTTP API, the example of the page",
            r#"{ "requestId":"a-1", "ip": "192.0.2.7", "requestTime":"30/Nov/2026:12:00:00 +0000", "httpMethod":"POST","routeKey":"POST /v1/calls", "status":"201","protocol":"HTTP/1.1", "responseLength":"12" }"#,
            "POST /v1/calls 201 [-] | start 12:00:00 | -",
            CALL,
        ),
        row(
            "route alone, time in milliseconds, integration latency",
            r#"{"requestId":"a","requestTimeEpoch":1796039999500,"routeKey":"GET /v1/a","status":200,"integrationLatency":250}"#,
            "GET /v1/a 200 [-] | start 11:59:59.500 | 250 ms",
            "wakes | use 11:59:59.750-12:00:00",
        ),
        row(
            "a path stands above the template, unless it is a dash",
            r#"{"requestId":"a","requestTime":"30/Nov/2026:12:00:00 +0000","httpMethod":"GET","path":"-","resourcePath":"/v1/a","status":"200","responseLatency":"-","integrationLatency":"-"}"#,
            "GET /v1/a 200 [-] | start 12:00:00 | -",
            CALL,
        ),
        row(
            "a request time that is a duration is no time",
            r#"{"requestId":"a","requestTime":0.5,"httpMethod":"GET","path":"/v1/a","status":200}"#,
            "GET /v1/a 200 [-] | no time | -",
            CALL,
        ),
        row(
            "a request that ended after its event was stamped",
            r#"{"requestId":"a","requestTimeEpoch":"1796040000000","httpMethod":"GET","path":"/v1/a","status":"504","responseLatency":29000}"#,
            "GET /v1/a 504 [-] | start 12:00:00 | 29000 ms",
            "wakes | use 12:00:00-12:00:29",
        ),
    ]
}

fn json_rows() -> Vec<Row> {
    vec![
        row(
            "nginx",
            r#"{"time_iso8601":"2026-11-30T12:00:00+00:00","request_method":"GET","request_uri":"/v1/a?k=s","status":"200","request_time":"0.250","http_user_agent":"a"}"#,
            "GET /v1/a 200 [a] | end 12:00:00 | 250 ms",
            "wakes | use 11:59:59.750-12:00:00",
        ),
        row(
            "nginx, numbers, a long call",
            r#"{"msec":1796040000.000,"request":"GET /v1/a HTTP/1.1","status":101,"request_time":10800.5}"#,
            "GET /v1/a 101 [-] | end 12:00:00 | 10800500 ms",
            "ended_call | use 08:59:59.500-12:00:00",
        ),
        row(
            "a duration of an unknown writer",
            r#"{"method":"GET","path":"/v1/a","status":200,"duration":10800}"#,
            "GET /v1/a 200 [-] | no time | -",
            CALL,
        ),
        row(
            "a duration that names its unit",
            r#"{"method":"GET","path":"/v1/a","status":200,"duration_ms":10800,"responseLatency":1}"#,
            "GET /v1/a 200 [-] | no time | 10800 ms",
            "ended_call | use 11:59:49.200-12:00:00",
        ),
        row(
            "no duration: negative",
            r#"{"request":"GET /v1/a HTTP/1.1","status":200,"request_time":-1}"#,
            "GET /v1/a 200 [-] | no time | -",
            CALL,
        ),
        row(
            "no duration: not a number",
            r#"{"request":"GET /v1/a HTTP/1.1","status":200,"request_time":"NaN"}"#,
            "GET /v1/a 200 [-] | no time | -",
            CALL,
        ),
        row(
            "no duration: longer than a month",
            r#"{"request":"GET /v1/a HTTP/1.1","status":200,"request_time":1e300}"#,
            "GET /v1/a 200 [-] | no time | -",
            CALL,
        ),
        row(
            "Caddy",
            r#"{"level":"info","ts":1796040000.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"2001:db8::7","proto":"HTTP/2.0","method":"GET","host":"h","uri":"/v1/a?k=s","headers":{"User-Agent":["a"]}},"bytes_read":0,"duration":12.5,"size":10,"status":200}"#,
            "GET /v1/a 200 [a] | end 12:00:00.500 | 12500 ms",
            "ended_call | use 11:59:47.500-12:00:00",
        ),
        row(
            "Caddy with durations as text",
            r#"{"ts":"2026-11-30T12:00:00Z","request":{"method":"GET","uri":"/v1/a"},"duration":"1m30s","status":502}"#,
            "GET /v1/a 502 [-] | end 12:00:00 | 90000 ms",
            "wakes | use 11:58:30-12:00:00",
        ),
        row(
            "Caddy's text line in its object",
            r#"{"common_log":"192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] \"GET /v1/a HTTP/1.1\" 200 5","duration":0.25}"#,
            "GET /v1/a 200 [-] | end 12:00:00 | 250 ms",
            "wakes | use 11:59:59.750-12:00:00",
        ),
        row(
            "Traefik, nanoseconds",
            r#"{"DownstreamStatus":200,"Duration":12500000000,"RequestMethod":"GET","RequestPath":"/v1/a","StartUTC":"2026-11-30T11:59:47.5Z","time":"2026-11-30T12:00:00Z"}"#,
            "GET /v1/a 200 [-] | end 12:00:00 | 12500 ms",
            "ended_call | use 11:59:47.500-12:00:00",
        ),
        row(
            "Envoy, milliseconds, event stamped with the start",
            r#"{"start_time":"2026-11-30T12:00:00.000Z","method":"GET","path":"/v1/a","protocol":"HTTP/2","response_code":200,"response_flags":"-","duration":30000,"user_agent":"a"}"#,
            "GET /v1/a 200 [a] | start 12:00:00 | 30000 ms",
            "ended_call | use 12:00:00-12:00:30",
        ),
        row(
            "in the wrapper of a container runtime",
            r#"{"log":"{\"request\":\"GET /v1/a HTTP/1.1\",\"status\":200,\"request_time\":0.25}\n","time":"x"}"#,
            "GET /v1/a 200 [-] | no time | 250 ms",
            "wakes | use 11:59:59.750-12:00:00",
        ),
    ]
}

#[test]
fn each_format_is_read_judged_and_counted() {
    let filter = filter(STRICT);
    for row in [text_rows(), balancer_rows(), gateway_rows(), json_rows()].into_iter().flatten() {
        let line = access_log::read(row.line.as_bytes()).unwrap_or_else(|| panic!("{} is unread", row.name));
        assert_eq!(parts(&line), row.parts, "{}", row.name);
        assert_eq!(meaning(&filter, row.line.as_bytes()), row.meaning, "{}", row.name);
    }
}

#[test]
fn what_is_not_read_is_alive() {
    let rows = [
        ("words", "Listening on 0.0.0.0:80"),
        ("nothing", ""),
        ("a route that names no path", r#"{"requestId":"a","httpMethod":"GET","routeKey":"$default","status":"200"}"#),
        ("a route for any method", r#"{"requestId":"a","routeKey":"ANY /v1/a","status":"200"}"#),
        ("a WebSocket API", r#"{"requestId":"a","eventType":"CONNECT","routeKey":"$connect","status":"200"}"#),
    ];
    for (name, line) in rows {
        assert_eq!(meaning(&filter(STRICT), line.as_bytes()), "unread | alive", "{name}");
    }
}

#[test]
fn a_configured_format_reads_nothing_else() {
    let lines = [
        ("combined", text_rows()[0].line.clone()),
        ("common", text_rows()[1].line.clone()),
        ("alb", balancer_rows()[0].line.clone()),
        ("json", json_rows()[0].line.clone()),
        ("apigateway", gateway_rows()[0].line.clone()),
        ("caddy", json_rows()[7].line.clone()),
    ];
    for (format, _) in &lines {
        let filter = filter(&format!(r#"{{"paths": ["/v1/"], "format": "{format}"}}"#));
        for (name, line) in &lines {
            let expected = name == format || (*format == "json" && matches!(*name, "apigateway" | "caddy"));
            assert_eq!(filter.read(line.as_bytes()).is_some(), expected, "{name} read as {format}");
        }
    }
}

#[test]
fn a_wrapped_line_is_read_in_the_configured_format() {
    let wrapped = |line: &str| serde_json::json!({ "log": line }).to_string();
    let combined = filter(r#"{"paths": ["/v1/"], "format": "combined"}"#);
    assert!(combined.read(wrapped(&text_rows()[0].line).as_bytes()).is_some());
    assert!(combined.read(wrapped(&json_rows()[0].line).as_bytes()).is_none());
}

#[test]
fn configured_fields_stand_above_recognition() {
    let rows = [
        (
            "nested, all of them",
            r#"{"method": "http.request.method", "path": "url.path", "status": "http.response.status_code", "agent": "user_agent.original", "time": "@timestamp", "duration_ns": "event.duration"}"#,
            r#"{"@timestamp":"2026-11-30T12:00:00Z","http":{"request":{"method":"GET"},"response":{"status_code":200}},"url":{"path":"/v1/a"},"user_agent":{"original":"a"},"event":{"duration":250000000}}"#,
            "GET /v1/a 200 [a] | end 12:00:00 | 250 ms",
        ),
        (
            "dots in the names",
            r#"{"method": "http.request.method", "path": "url.path", "status": "code"}"#,
            r#"{"http.request.method":"GET","url.path":"/v1/a","code":"200"}"#,
            "GET /v1/a 200 [-] | no time | -",
        ),
        (
            "against other names that would be recognised",
            r#"{"path": "target", "status": "code", "duration_seconds": "wait", "time": "started"}"#,
            r#"{"method":"GET","path":"/x","target":"/v1/a","status":500,"code":200,"request_time":5,"wait":1,"time":"2026-11-30T12:00:00Z","started":"2026-11-30T11:00:00Z"}"#,
            "GET /v1/a 200 [-] | start 11:00:00 | 1000 ms",
        ),
        (
            "a request line against fields",
            r#"{"request": "line"}"#,
            r#"{"method":"rpc","path":"/x","line":"GET /v1/a b HTTP/1.1","status":200}"#,
            "GET /v1/a b 200 [-] | no time | -",
        ),
        (
            "Apache's microseconds",
            r#"{"duration_us": "D"}"#,
            r#"{"request":"GET /v1/a HTTP/1.1","status":"200","D":"250000"}"#,
            "GET /v1/a 200 [-] | no time | 250 ms",
        ),
        (
            "milliseconds of an unknown writer",
            r#"{"duration_ms": "duration"}"#,
            r#"{"method":"GET","path":"/v1/a","status":200,"duration":250}"#,
            "GET /v1/a 200 [-] | no time | 250 ms",
        ),
        (
            "absent, so recognised",
            r#"{"method": "m", "path": "p", "status": "s", "duration_ms": "d"}"#,
            r#"{"method":"GET","path":"/v1/a","status":200,"request_time":0.25,"m":null}"#,
            "GET /v1/a 200 [-] | no time | 250 ms",
        ),
        (
            "in another object",
            r#"{"path": "target"}"#,
            r#"{"message":"{\"method\":\"GET\",\"path\":\"/x\",\"target\":\"/v1/a\",\"status\":200}"}"#,
            "GET /v1/a 200 [-] | no time | -",
        ),
    ];
    for (name, fields, line, expected) in rows {
        let filter = filter(&format!(r#"{{"paths": ["/v1/"], "fields": {fields}}}"#));
        assert_eq!(filter.read(line.as_bytes()).as_ref().map(parts).as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn configured_fields_leave_text_lines_as_they_are() {
    let filter = filter(r#"{"paths": ["/v1/"], "fields": {"path": "target"}}"#);
    assert_eq!(meaning(&filter, text_rows()[0].line.as_bytes()), CALL);
}

#[test]
fn what_stands_before_a_cut_counts() {
    let long = "a".repeat(300 * 1024);
    let url = format!("GET https://h/v1/{long}");
    let balancer = alb("https", "192.0.2.7:1", "0.001 0.248 0.001", "200 200", &url, "11:00:00");
    let rows = [
        ("JSON cut in its last text", format!(r#"{{"status":200,"method":"GET","uri":"/v1/b","x":"{long}"}}"#), CALL),
        ("JSON cut in its URL", format!(r#"{{"status":200,"method":"GET","uri":"/v1/{long}"}}"#), CALL),
        (
            "JSON cut in a nested URL",
            format!(r#"{{"status":200,"request":{{"method":"GET","uri":"/v1/{long}"}}}}"#),
            CALL,
        ),
        (
            "JSON cut before its status",
            format!(r#"{{"method":"GET","uri":"/v1/{long}","status":200}}"#),
            "unread | alive",
        ),
        ("balancer line cut in its URL", balancer, "wakes | use 11:59:59.750-12:00:00"),
        (
            "combined line cut in its agent",
            format!(r#"h - - [30/Nov/2026:12:00:00 +0000] "GET /v1/b HTTP/1.1" 200 5 "-" "{long}""#),
            CALL,
        ),
        (
            "combined line cut in its URL",
            format!(r#"h - - [30/Nov/2026:12:00:00 +0000] "GET /v1/{long} HTTP/1.1" 200 5"#),
            "unread | alive",
        ),
    ];
    for (name, line, expected) in rows {
        assert_eq!(meaning(&filter(STRICT), line.as_bytes()), expected, "{name}");
    }
}

#[test]
fn the_span_is_told_by_the_event_or_by_the_line() {
    let line = |stamp, took| RequestLine {
        method: "GET".to_owned(),
        path: "/".to_owned(),
        status: Some(200),
        agent: None,
        at: Some(at("11:00:00")),
        stamp,
        took,
    };
    let minute = Some(TimeDelta::minutes(1));
    let rows = [
        ("an end", line(Stamp::End, minute), None, ("10:59:00", "11:00:00")),
        ("an end and its event", line(Stamp::End, minute), Some("12:00:00"), ("11:59:00", "12:00:00")),
        ("a start", line(Stamp::Start, minute), None, ("11:00:00", "11:01:00")),
        ("a start and its event", line(Stamp::Start, minute), Some("11:01:05"), ("11:00:05", "11:01:05")),
        ("an event stamped with the start", line(Stamp::Start, minute), Some("11:00:00"), ("11:00:00", "11:01:00")),
        ("an instant", line(Stamp::Start, None), None, ("11:00:00", "11:00:00")),
    ];
    for (name, line, event_at, (from, to)) in rows {
        assert_eq!(line.span(event_at.map(at)), Some((at(from), at(to))), "{name}");
    }
    assert_eq!(RequestLine { at: None, ..line(Stamp::End, minute) }.span(None), None);
}

fn nginx(request: &str, status: u16, agent: &str) -> String {
    format!(r#"192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] "{request} HTTP/1.1" {status} 5 "-" "{agent}""#)
}

#[test]
fn case_20_strangers_wake_nothing_and_are_no_use() {
    let strangers = [("GET /.env", 404), ("GET /wp-login.php", 404), ("HEAD /", 301), ("GET http://203.0.113.9/", 400)];
    for (request, status) in strangers {
        let meaning = meaning(&filter(STRICT), nginx(request, status, "Mozilla/5.0").as_bytes());
        assert!(meaning.ends_with("| alive") && !meaning.starts_with("wakes"), "{request}: {meaning}");
    }
}

#[test]
fn case_20_a_call_among_strangers_wakes() {
    assert_eq!(meaning(&filter(STRICT), nginx("POST /v1/calls", 503, "Mozilla/5.0").as_bytes()), CALL);
}

/// Half an hour of a health check each 10 s and of a monitor each minute.
fn pings() -> Vec<(DateTime<Utc>, String)> {
    let check = nginx("GET /healthz", 200, "ELB-HealthChecker/2.0");
    let monitor = nginx("HEAD /", 200, "UptimeMonitor");
    let every = |seconds: i64, line: String| {
        (0..1800 / seconds).map(move |n| (at("11:30:00") + TimeDelta::seconds(n * seconds), line.clone()))
    };
    every(10, check).chain(every(60, monitor)).collect()
}

#[test]
fn case_21_status_pings_are_no_use() {
    let everything = filter(r#"{"paths": ["/"]}"#);
    let lines = pings();
    assert_eq!(lines.len(), 210);
    assert!(lines.iter().all(|(at, line)| line_use(&everything, line.as_bytes(), *at) == LineUse::Alive));
}

#[test]
fn case_21_a_call_among_the_pings_is_use() {
    let everything = filter(r#"{"paths": ["/"]}"#);
    let mut lines = pings();
    lines.insert(100, (at("11:46:40"), nginx("GET /chat", 200, "curl/8")));
    let used: Vec<_> = lines
        .iter()
        .flat_map(|(at_, line)| minutes(line_use(&everything, line.as_bytes(), *at_), at("11:30:00"), noon()))
        .collect();
    assert_eq!(used, [at("11:46:00")]);
}

#[test]
fn case_22_reading_the_status_page_is_no_use() {
    let line = nginx("GET /status", 200, "Mozilla/5.0");
    assert_eq!(meaning(&filter(STRICT), line.as_bytes()), "path | alive");
}

#[test]
fn case_22_the_status_page_is_use_if_the_paths_say_so() {
    let line = nginx("GET /status", 200, "Mozilla/5.0");
    assert_eq!(meaning(&filter(r#"{"paths": ["/v1/", "/status"]}"#), line.as_bytes()), CALL);
}

#[test]
fn case_29_a_line_that_is_not_ascii_is_read_and_one_of_odd_bytes_is_alive() {
    let chinese = nginx("GET /v1/搜索?q=é", 200, "浏览器");
    assert_eq!(access_log::read(chinese.as_bytes()).unwrap().path, "/v1/搜索");
    assert_eq!(meaning(&filter(STRICT), chinese.as_bytes()), CALL);
    assert_eq!(meaning(&filter(STRICT), b"\xff\xfe"), "unread | alive");
}

#[test]
fn case_30_blank_inside_the_url() {
    let url = "GET https://h.example:443/v1/chat?q=a b c";
    let balancer = alb("https", "198.51.100.7:4000", "0.001 0.020 0.000", "200 200", url, "11:59:59.979000");
    let blank_in_path = nginx("GET /v1/my chat", 200, "ua");
    assert_eq!(access_log::read(balancer.as_bytes()).unwrap().path, "/v1/chat");
    assert_eq!(meaning(&filter(STRICT), balancer.as_bytes()), "wakes | use 11:59:59.979-12:00:00");
    assert_eq!(access_log::read(blank_in_path.as_bytes()).unwrap().path, "/v1/my chat");
}

#[test]
fn case_31_nginx_json_that_is_not_json() {
    let line = r#"{"time":"2026-11-30T12:00:00+00:00","request":"GET /v1/a HTTP/1.1","status":"200","request_time":"20.5","ua":"x \xC3\xA9 \x22y\x22"}"#;
    assert_eq!(
        parts(&access_log::read(line.as_bytes()).unwrap()),
        r#"GET /v1/a 200 [x é "y"] | end 12:00:00 | 20500 ms"#
    );
    assert_eq!(meaning(&filter(STRICT), line.as_bytes()), "ended_call | use 11:59:39.500-12:00:00");
}

#[test]
fn case_31_configured_fields_are_found_in_json_that_is_none() {
    let filter = filter(r#"{"paths": ["/v1/"], "fields": {"request": "r", "status": "s"}}"#);
    assert_eq!(meaning(&filter, br#"{"ua":"\x22y\x22","r":"GET /v1/a HTTP/1.1","s":"502"}"#), CALL);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Most memory this process has held so far, in KiB.
#[cfg(target_os = "linux")]
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn case_32_an_oversized_batch_is_a_wake_in_bounded_memory() {
    let head = r#"{"messageType":"DATA_MESSAGE","logGroup":"/front","logEvents":[{"message":""#;
    let strict = filter(STRICT);
    for (name, byte) in [("blanks behind the head", b' '), ("one endless line", b'x')] {
        let head = if byte == b' ' { &head[..head.len() - 13] } else { head };
        let bomb = [gzip(head.as_bytes()), gzip(&vec![byte; 1 << 20]).repeat(1024)].concat();
        let data = STANDARD.encode(bomb);
        let before = peak_kib();
        let batch = log_batch::read(&data, 8 << 20, noon(), |_| Some(&strict)).unwrap();
        assert_eq!(batch.outcome, Outcome::TooLarge, "{name}");
        assert!(peak_kib() - before < 40 * 1024, "{name}: {} KiB more", peak_kib() - before);
    }
}

#[test]
fn case_35_a_group_without_filter_is_not_looked_at() {
    let line = serde_json::json!({"messageType": "DATA_MESSAGE", "logGroup": "/aws/lambda/wake", "logEvents": [{"message": nginx("GET /v1/a", 200, "a")}]});
    let data = STANDARD.encode(gzip(line.to_string().as_bytes()));
    let strict = filter(STRICT);
    let ignored = log_batch::read(&data, 1 << 20, noon(), |_| None).unwrap();
    assert_eq!((ignored.outcome, ignored.unread_sample), (Outcome::Ignored, None));
    let other = log_batch::read(&data, 1 << 20, noon(), |_| Some(&strict)).unwrap();
    assert!(matches!(other.outcome, Outcome::Woken(_)));
}

const FORMATS: [&str; 7] = ["auto", "combined", "common", "alb", "json", "apigateway", "caddy"];

proptest! {
    #[test]
    fn no_line_makes_a_reader_panic(line in proptest::collection::vec(any::<u8>(), 0..200), format in 0_usize..7) {
        let filter = filter(&format!(r#"{{"paths": ["/"], "format": "{}"}}"#, FORMATS[format]));
        let _ = line_use(&filter, &line, noon());
    }

    #[test]
    fn no_number_as_duration_makes_use_outside_of_a_month(number in any::<f64>(), start in any::<i64>()) {
        let line = format!(r#"{{"request":"GET /v1/a HTTP/1.1","status":200,"request_time":{number},"starttime":{start}}}"#);
        if let LineUse::Use { from, to } = line_use(&filter(STRICT), line.as_bytes(), noon()) {
            prop_assert!(from <= to && to - from <= TimeDelta::days(31));
        }
    }

    #[test]
    fn a_cut_json_line_never_panics_and_never_invents_a_path(cut in 0_usize..100) {
        let line = r#"{"status":200,"ua":"x \x22y\x22 \u00e9","request":{"method":"GET","uri":"/v1/a?k=s","headers":{}}}"#;
        if let Some(read) = access_log::read(&line.as_bytes()[..cut.min(line.len())]) {
            prop_assert!(read.path == "-" || "/v1/a".starts_with(&read.path), "{}", read.path);
        }
    }
}
