//! Reads lines of an access log and says which of them are calls that wake a node, and which are use of it.
//!
//! Read are: nginx and Apache (combined, common), whatever else has a quoted request followed by a status, load
//! balancer lines, and JSON lines. [`read`] and [`Filter::read`] observe; [`Filter::judge`] decides about the wake,
//! [`line_use`] about use.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use reveille_log::access_log::{self, Filter, Verdict};
//!
//! let filter = Filter::new(serde_json::from_str(r#"{"paths": ["/v1/"]}"#)?)?;
//! let line = br#"192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] "GET /v1/chat?q=a HTTP/1.1" 200 5 "-" "curl/8""#;
//! let verdict = access_log::read(line).map(|line| filter.judge(&line));
//! assert_eq!(verdict, Some(Verdict::Wakes));
//! # Ok(())
//! # }
//! ```

mod activity;
mod balancer;
mod combined;
mod fields;
mod filter;
mod glance;
mod json;
mod reader;
mod sample;
mod took;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

pub use activity::{LineUse, line_use, minutes};
pub(crate) use filter::KnownAgents;
pub use filter::{Filter, FilterFault, FilterSpec, NoiseReason, Verdict};
pub use sample::sample;
pub(crate) use sample::shown;

/// Longest part of a line that is looked at. CloudWatch Logs delivers events of up to 1 MB; method, path, status and
/// agent stand well before this mark, what follows is only copied for nothing.
pub(crate) const MAX_LINE_BYTES: usize = 256 * 1024;

/// What stands for method and path when the client sent no HTTP request (a port scan, a TLS hello to a plain port).
const NO_REQUEST: &str = "-";

/// One request as an access log tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    /// In capitals; `-` if the front logged a connection that sent no HTTP request.
    pub method: String,
    /// Without query and fragment, which may hold secrets; `/path` too when the client sent `http://host/path`.
    pub path: String,
    /// Status that was answered, from 100; `None` if the front wrote none (`-`, `000`).
    pub status: Option<u16>,
    /// User agent as the client named itself.
    pub agent: Option<String>,
    /// Time the front wrote, if the line has one that is understood.
    pub at: Option<DateTime<Utc>>,
    /// Which end of the request `at` is.
    pub stamp: Stamp,
    /// How long the request lasted, where the format says so and its unit is sure; 0 to 31 days, else `None`.
    pub took: Option<TimeDelta>,
}

impl RequestLine {
    /// The agent's name, empty where the line has none.
    fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or_default()
    }

    /// The first product that the user agent names, such as `okhttp` of `okhttp/4.9 (…)`: letters, digits, `-`, `_` and `.`
    /// up to 32. It says what kind of program asked, and not who.
    pub fn agent_class(&self) -> Option<String> {
        let is_of_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let product: String = self.agent.as_deref()?.trim().chars().take_while(is_of_name).take(32).collect();
        Some(product).filter(|product| !product.is_empty() && product != "-")
    }
}

/// Which end of its request a line's own time is.
///
/// The end: load balancer (response generated, WebSocket closed), nginx, Caddy, Traefik's `time`. The start: API Gateway
/// (`requestTime`), Traefik's text lines, Traefik's and Envoy's fields named `start…`. Apache's `%t` is a start that
/// cannot be told from nginx's end and is given as an end; such lines have no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// When the request arrived.
    Start,
    /// When it was over.
    End,
}

impl RequestLine {
    /// When the request was over by the line's own time; a start without a duration is taken for it.
    pub fn ended_at(&self) -> Option<DateTime<Utc>> {
        match (self.stamp, self.took) {
            (Stamp::Start, Some(took)) => self.at?.checked_add_signed(took),
            (Stamp::Start | Stamp::End, _) => self.at,
        }
    }

    /// From when to when the request lasted; one instant if there is no duration, `None` if there is no time.
    ///
    /// The end is the time of the log event, because a line is written when its request is over. It is later if the line
    /// tells a start and a duration that end later: then the event carries the start, and the request would be put
    /// before its own beginning. Without an event the line's own end counts.
    pub fn span(&self, event_at: Option<DateTime<Utc>>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let to = match (event_at, self.stamp) {
            (Some(event_at), Stamp::End) => event_at,
            (event_at, Stamp::Start | Stamp::End) => event_at.max(self.ended_at())?,
        };
        Some((to.checked_sub_signed(self.took.unwrap_or_default())?, to))
    }
}

/// Reads one line in whichever format it is; only its first 256 KiB are looked at.
///
/// `None` means that the format is not understood: no request, or none with a status. Such a line never wakes, so
/// count and show it: a source in which every line is unread wakes nothing. A line that is understood but holds no
/// HTTP request is given with method `-`. Bytes that are not UTF-8 are replaced (field case 29). Of a line that is cut
/// the part before the cut counts: enough if the status stands in it, as in a balancer's or JSON line that is cut in
/// its URL, but not in a combined line cut there.
pub fn read(line: &[u8]) -> Option<RequestLine> {
    reader::Reader::default().read(line)
}

/// Method and path of `GET /a b?c HTTP/1.1`: split from the left and from the right, because a logged URL may hold
/// blanks (field case 30).
fn split_request(request: &str) -> Option<(String, String)> {
    let (method, rest) = request.trim().split_once(' ')?;
    let target = match rest.rsplit_once(' ') {
        Some((target, protocol)) if protocol.starts_with("HTTP/") => target,
        _ => rest,
    };
    Some((method_of(method)?, path_of(target)?))
}

fn method_of(text: &str) -> Option<String> {
    let is_method =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-') && text != NO_REQUEST;
    is_method.then(|| text.to_ascii_uppercase())
}

/// Path of a request target, which is `/path`, `http://host/path` (what clients of a proxy send) or `*`.
fn path_of(target: &str) -> Option<String> {
    let target = target.split(['?', '#']).next().unwrap_or_default();
    if target.starts_with('/') || target == "*" {
        return Some(target.to_owned());
    }
    let (_scheme, rest) = target.split_once("://")?;
    Some(rest.find('/').map_or("/", |slash| &rest[slash..]).to_owned())
}

fn no_request() -> (String, String) {
    (NO_REQUEST.to_owned(), NO_REQUEST.to_owned())
}

/// `Some(None)` for "none was written", `None` for text that is no status.
fn status_of(text: &str) -> Option<Option<u16>> {
    if text == "-" {
        return Some(None);
    }
    let three_digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    let status: u16 = three_digits.then(|| text.parse().ok())??;
    Some(Some(status).filter(|status| *status >= 100))
}

/// Reads `30/Nov/2026:09:00:00 +0100` and RFC 3339.
fn time_of(text: &str) -> Option<DateTime<Utc>> {
    if let Some(at) = plain_log_time(text) {
        return Some(at);
    }
    let read = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_str(text, "%d/%b/%Y:%H:%M:%S %z"));
    read.ok().map(|at| at.to_utc())
}

/// `30/Nov/2026:09:00:00 +0100` as almost every line has it, and nothing else: chrono's reader of formats takes ten times as
/// long, and takes what is left over.
fn plain_log_time(text: &str) -> Option<DateTime<Utc>> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let text: &[u8; 26] = text.as_bytes().try_into().ok()?;
    let marks = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    if marks.iter().any(|(place, mark)| text[*place] != *mark) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0_u32, |sum, b| b.is_ascii_digit().then(|| sum * 10 + u32::from(b - b'0')))
    };
    let month = (1..).zip(MONTHS).find(|(_, name)| *name == &text[3..6])?.0;
    let date = NaiveDate::from_ymd_opt(i32::try_from(number(7, 11)?).ok()?, month, number(0, 2)?)?;
    let local = date.and_hms_opt(number(12, 14)?, number(15, 17)?, number(18, 20)?)?;
    let (hours, minutes) = (number(22, 24)?, number(24, 26)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let ahead = TimeDelta::minutes(i64::from(hours * 60 + minutes));
    match text[21] {
        b'+' => local.checked_sub_signed(ahead),
        b'-' => local.checked_add_signed(ahead),
        _ => None,
    }
    .map(|at| at.and_utc())
}

/// Byte that `\xNN` stands for, given its two digits.
fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Option<DateTime<Utc>> {
        Some(DateTime::parse_from_rfc3339(text).unwrap().to_utc())
    }

    /// A line in short: method, path, status, agent.
    fn short(line: &str) -> Option<(String, String, Option<u16>, Option<String>)> {
        read(line.as_bytes()).map(|line| (line.method, line.path, line.status, line.agent))
    }

    fn expect(
        method: &str,
        path: &str,
        status: u16,
        agent: Option<&str>,
    ) -> Option<(String, String, Option<u16>, Option<String>)> {
        let status = (status > 0).then_some(status);
        Some((method.to_owned(), path.to_owned(), status, agent.map(str::to_owned)))
    }

    #[test]
    fn reads_the_usual_text_formats() {
        let time = "[30/Nov/2026:09:00:00 +0100]";
        let rows = [
            (
                "combined",
                format!(r#"192.0.2.7 - - {time} "GET /v1/a?k=s HTTP/1.1" 200 5 "http://r/" "curl/8""#),
                expect("GET", "/v1/a", 200, Some("curl/8")),
            ),
            (
                "common",
                format!(r#"192.0.2.7 - - {time} "POST /v1/a HTTP/1.0" 201 -"#),
                expect("POST", "/v1/a", 201, None),
            ),
            (
                "no agent",
                format!(r#"192.0.2.7 - - {time} "GET / HTTP/1.1" 200 5 "-" "-""#),
                expect("GET", "/", 200, None),
            ),
            (
                "IPv6 with port",
                format!(r#"[2001:db8::1]:443 2001:db8::7 - - {time} "GET / HTTP/2.0" 304 0 "-" "a""#),
                expect("GET", "/", 304, Some("a")),
            ),
            (
                "fields after the agent",
                format!(r#"192.0.2.7 - - {time} "GET / HTTP/1.1" 200 5 "-" "a" "10.0.0.1" 0.003"#),
                expect("GET", "/", 200, Some("a")),
            ),
            (
                "escaped quotes",
                format!(r#"192.0.2.7 - - {time} "GET /a\"b\x22c HTTP/1.1" 200 5 "-" "x \"y\" \x22z\x22 \\""#),
                expect("GET", "/a\"b\"c", 200, Some("x \"y\" \"z\" \\")),
            ),
            (
                "absolute target",
                format!(r#"192.0.2.7 - - {time} "GET http://h.example:80/v1/a?b HTTP/1.1" 200 5 "-" "a""#),
                expect("GET", "/v1/a", 200, Some("a")),
            ),
            (
                "absolute target, no path",
                format!(r#"192.0.2.7 - - {time} "GET http://203.0.113.9 HTTP/1.1" 400 0 "-" "-""#),
                expect("GET", "/", 400, None),
            ),
            ("HTTP/0.9", format!(r#"192.0.2.7 - - {time} "GET /a b" 200 5"#), expect("GET", "/a b", 200, None)),
            (
                "user with blanks",
                format!(r#"192.0.2.7 - jo [x] do {time} "GET / HTTP/1.1" 401 5"#),
                expect("GET", "/", 401, None),
            ),
            (
                "no status",
                format!(r#"192.0.2.7 - - {time} "GET / HTTP/1.1" - - "-" "a""#),
                expect("GET", "/", 0, Some("a")),
            ),
            (
                "status 000",
                format!(r#"192.0.2.7 - - {time} "GET / HTTP/1.1" 000 0 "-" "a""#),
                expect("GET", "/", 0, Some("a")),
            ),
            (
                "envoy",
                r#"[2026-11-30T09:00:00.000Z] "GET /v1 HTTP/1.1" 200 - 0 1 2 3 "192.0.2.7" "a" "id""#.to_owned(),
                expect("GET", "/v1", 200, Some("a")),
            ),
            (
                "uvicorn",
                r#"INFO:     192.0.2.7:5000 - "POST /v1/chat HTTP/1.1" 200 OK"#.to_owned(),
                expect("POST", "/v1/chat", 200, None),
            ),
            ("lower case", format!(r#"h - - {time} "get /a HTTP/1.1" 200 1"#), expect("GET", "/a", 200, None)),
            (
                "tls hello",
                format!(r#"h - - {time} "\x16\x03\x01\x02\x00 \xFC" 400 150 "-" "-""#),
                expect("-", "-", 400, None),
            ),
            ("client went away", format!(r#"h - - {time} "-" 408 - "-" "-""#), expect("-", "-", 408, None)),
            ("empty request", format!(r#"h - - {time} "" 400 0 "-" "-""#), expect("-", "-", 400, None)),
        ];
        for (name, line, expected) in rows {
            assert_eq!(short(&line), expected, "{name}");
        }
    }

    #[test]
    fn leaves_other_text_unread() {
        let rows = [
            ("empty", ""),
            ("words", "Listening on 0.0.0.0:80"),
            (
                "nginx error log",
                r#"2026/11/30 09:00:00 [error] 7#7: *1 refused, request: "GET /v1/a HTTP/1.1", upstream: "http://h/""#,
            ),
            ("key=value", r#"level=info msg="GET /v1/a HTTP/1.1" status=200"#),
            ("no request in quotes", r#"job "night run" 200 ok"#),
            ("cut in the request", r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /v1/a"#),
            ("json without method", r#"{"level":"info","path":"/v1/a","status":200}"#),
            ("json without status", r#"{"method":"GET","path":"/v1/a"}"#),
            ("json with a word as status", r#"{"method":"GET","path":"/v1/a","status":"info"}"#),
            ("json that is none", r#"{GET /v1/a HTTP/1.1} 200"#),
        ];
        for (name, line) in rows {
            assert_eq!(short(line), None, "{name}");
        }
    }

    #[test]
    fn a_time_or_request_in_the_user_name_is_not_believed() {
        let line = r#"192.0.2.7 - [01/Jan/2020:00:00:00 +0000] \"GET /v1/a HTTP/1.1\" 200 [30/Nov/2026:09:00:00 +0000] "GET /x HTTP/1.1" 401 5"#;
        let read = read(line.as_bytes()).unwrap();
        assert_eq!((read.path.as_str(), read.status, read.at), ("/x", Some(401), at("2026-11-30T09:00:00Z")));
    }

    #[test]
    fn reads_the_time_with_its_zone() {
        let rows = [
            ("clf", r#"h - - [30/Nov/2026:09:00:00 +0100] "GET / HTTP/1.1" 200 1"#, at("2026-11-30T08:00:00Z")),
            ("no such day", r#"h - - [31/Nov/2026:09:00:00 +0100] "GET / HTTP/1.1" 200 1"#, None),
            ("huge year", r#"h - - [30/Nov/99999999999:09:00:00 +0100] "GET / HTTP/1.1" 200 1"#, None),
            (
                "json text",
                r#"{"request":"GET / HTTP/1.1","status":200,"time":"2026-11-30T09:00:00+01:00"}"#,
                at("2026-11-30T08:00:00Z"),
            ),
            (
                "json seconds",
                r#"{"request":"GET / HTTP/1.1","status":200,"ts":1796029200.5}"#,
                at("2026-11-30T09:00:00.500Z"),
            ),
            (
                "json milliseconds",
                r#"{"request":"GET / HTTP/1.1","status":200,"timestamp":1796029200500}"#,
                at("2026-11-30T09:00:00.500Z"),
            ),
            (
                "json seconds as text",
                r#"{"request":"GET / HTTP/1.1","status":200,"ts":"1796029200"}"#,
                at("2026-11-30T09:00:00Z"),
            ),
        ];
        for (name, line, expected) in rows {
            assert_eq!(read(line.as_bytes()).unwrap().at, expected, "{name}");
        }
    }

    #[test]
    fn case_29_bytes_that_are_not_utf8_are_replaced() {
        let line = b"h - - [30/Nov/2026:09:00:00 +0000] \"GET /\xff\xfe?q=\xe9 HTTP/1.1\" 200 5 \"-\" \"a\xff\"";
        let read = read(line).unwrap();
        assert_eq!((read.path.as_str(), read.agent.as_deref()), ("/\u{fffd}\u{fffd}", Some("a\u{fffd}")));
        assert_eq!(super::read(b"\xff\xfe"), None);
    }

    #[test]
    fn case_30_a_url_with_blanks_is_read() {
        let combined = r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /v1/my chat?q=a b c HTTP/1.1" 200 5 "-" "ua""#;
        assert_eq!(short(combined), expect("GET", "/v1/my chat", 200, Some("ua")));
        let balancer = concat!(
            "https 2026-11-30T09:00:00.000000Z app/lb/aa11 198.51.100.7:4000 10.0.0.5:80 0.001 0.020 0.000 200 200 99 88",
            r#" "GET https://h.example:443/v1/chat?q=a b c HTTP/1.1" "ua" - - arn:x "Root=1-a" "h.example" "-" 0"#,
            r#" 2026-11-30T09:00:00.000000Z "forward" "-" "-" "10.0.0.5:80" "200" "Acceptable" "SpaceInUri""#,
        );
        assert_eq!(short(balancer), expect("GET", "/v1/chat", 200, Some("ua")));
        assert_eq!(read(balancer.as_bytes()).unwrap().at, at("2026-11-30T09:00:00Z"));
    }

    #[test]
    fn a_line_over_256_kib_is_cut_and_read() {
        let long = "a".repeat(2 * MAX_LINE_BYTES);
        let agent = format!(r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /v1/a HTTP/1.1" 200 5 "-" "{long}"#);
        assert_eq!(read(agent.as_bytes()).unwrap().path, "/v1/a");
        let body = format!(r#"{{"method":"GET","uri":"/v1/a","status":200,"body":"{long}"}}"#);
        assert_eq!(read(body.as_bytes()).unwrap().path, "/v1/a");
        let path = format!(r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /{long} HTTP/1.1" 200 5"#);
        assert_eq!(read(path.as_bytes()), None);
    }

    proptest! {
        #[test]
        fn a_plain_time_is_what_chrono_reads(
            text in "[0-3][0-9]/(Jan|Feb|Jun|Dec|dec)/[0-9]{4}:[0-2][0-9]:[0-6][0-9]:[0-6][0-9] [+-][0-2][0-9][0-6][0-9]",
        ) {
            if let Some(at) = plain_log_time(&text) {
                let read = DateTime::parse_from_str(&text, "%d/%b/%Y:%H:%M:%S %z");
                prop_assert_eq!(read.map(|at| at.to_utc()), Ok(at));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&line);
        }

        #[test]
        fn no_text_of_the_usual_marks_makes_it_panic(line in r#"[\[\]"\\xA-Z0-9/:{},?# +\-é]{0,80}"#) {
            let _ = read(line.as_bytes());
            let _ = read(format!(r#"{{"request":"{line}","status":200}}"#).as_bytes());
        }

        #[test]
        fn no_query_is_ever_shown(query in "[a-z =&]{1,20}") {
            let line = format!(r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /a?{query} HTTP/1.1" 200 5"#);
            prop_assert_eq!(read(line.as_bytes()).unwrap().path, "/a");
        }
    }
}
