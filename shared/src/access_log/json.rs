//! Lines that are one JSON object. Names are compared without case and punctuation, so that `request_method`,
//! `RequestMethod` and `cs-method` need no list of spellings.

use super::{RequestLine, hex_byte, method_of, no_request, path_of, split_request, status_of, time_of};
use chrono::{DateTime, Utc};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

const METHOD: &[&str] = &["method", "requestmethod", "httpmethod", "verb", "csmethod"];
const PATH: &[&str] = &["path", "uri", "requesturi", "requestpath", "url", "requesturl", "csuristem"];
const STATUS: &[&str] =
    &["status", "statuscode", "responsecode", "responsestatus", "httpstatus", "downstreamstatus", "scstatus"];
const AGENT: &[&str] = &["useragent", "httpuseragent", "requestuseragent", "agent", "ua", "csuseragent"];
const TIME: &[&str] = &["time", "timestamp", "timeiso8601", "timelocal", "ts", "starttime"];
/// Where log shippers and container runtimes put the line they carry.
const WRAPPED: &[&str] = &["log", "message"];

pub(super) fn read(line: &[u8]) -> Option<RequestLine> {
    let found = fields(&String::from_utf8_lossy(line));
    request_line(&found).or_else(|| super::read(text(&found, WRAPPED)?.as_bytes()))
}

fn request_line(fields: &Map<String, Value>) -> Option<RequestLine> {
    let (method, path) = request(fields)?;
    Some(RequestLine {
        method,
        path,
        status: status(first(fields, STATUS)?)?,
        agent: agent(fields).filter(|agent| !matches!(*agent, "" | "-")).map(str::to_owned),
        at: first(fields, TIME).and_then(time),
    })
}

/// Method and path from fields of their own, from a request line, or from the object that Caddy writes. Fields that
/// are there but hold no HTTP request give `-`; without the fields the line is unread.
fn request(fields: &Map<String, Value>) -> Option<(String, String)> {
    if let (Some(method), Some(path)) = (text(fields, METHOD), text(fields, PATH)) {
        return Some(pair(method, path));
    }
    let request = fields.get("request")?;
    match request.as_str() {
        Some(line) => Some(split_request(line).unwrap_or_else(no_request)),
        None => Some(pair(request.get("method")?.as_str()?, request.get("uri")?.as_str()?)),
    }
}

fn pair(method: &str, path: &str) -> (String, String) {
    method_of(method).zip(path_of(path)).unwrap_or_else(no_request)
}

fn agent(fields: &Map<String, Value>) -> Option<&str> {
    let in_headers = || fields.get("request")?.get("headers")?.get("User-Agent")?.get(0)?.as_str();
    text(fields, AGENT).or_else(in_headers)
}

fn status(value: &Value) -> Option<Option<u16>> {
    match value.as_f64() {
        Some(number) => status_of(&format!("{number:03.0}")),
        None => status_of(value.as_str()?.trim()),
    }
}

/// Text as in other formats, or seconds since 1970; a number too large for seconds is in milliseconds.
fn time(value: &Value) -> Option<DateTime<Utc>> {
    let written = value.as_str();
    let number = || value.as_f64().or_else(|| written?.parse().ok());
    written.and_then(time_of).or_else(|| {
        let number = number()?;
        let millis = if number > 1e11 { number } else { number * 1000.0 };
        DateTime::from_timestamp_millis(millis as i64)
    })
}

fn first<'v>(fields: &'v Map<String, Value>, names: &[&str]) -> Option<&'v Value> {
    names.iter().find_map(|name| fields.get(*name))
}

fn text<'v>(fields: &'v Map<String, Value>, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| fields.get(*name)?.as_str())
}

/// Fields of an object, names in plain small letters. Text that breaks off or is not JSON is repaired and read again;
/// what stands before a break that stays still counts: a shipper that cuts long lines must not lose the call.
fn fields(text: &str) -> Map<String, Value> {
    collect(text).unwrap_or_else(|_| collect(&repaired(text)).unwrap_or_else(|before_break| before_break))
}

fn collect(text: &str) -> Result<Map<String, Value>, Map<String, Value>> {
    let mut found = Map::new();
    let read = serde_json::Deserializer::from_str(text).deserialize_map(Collect(&mut found));
    if read.is_ok() { Ok(found) } else { Err(found) }
}

/// Puts what it reads where it stays when reading breaks off.
struct Collect<'m>(&'m mut Map<String, Value>);

impl<'de> Visitor<'de> for Collect<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            let plain = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
            // Of two that become the same name the first stands; null is a field that is not there.
            if !value.is_null() {
                self.0.entry::<String>(plain).or_insert(value);
            }
        }
        Ok(())
    }
}

/// Makes JSON of nginx's default escaping, which writes the bytes of quotes, control and non-ASCII characters as
/// `\xNN` (field case 31), and of raw control characters.
fn repaired(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let length = match after {
            [b'x', high, low, ..] if *first == b'\\' => push_hex(&mut bytes, hex_byte(*high, *low)),
            [mark, ..] if *first == b'\\' && br#""\/bfnrtu"#.contains(mark) => push(&mut bytes, &[b'\\', *mark], 2),
            _ if *first == b'\\' => push(&mut bytes, br"\\", 1),
            _ if first.is_ascii_control() => push(&mut bytes, b" ", 1),
            _ => push(&mut bytes, &[*first], 1),
        };
        rest = &rest[length..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Appends, and gives back how many bytes of the input that stands for.
fn push(bytes: &mut Vec<u8>, text: &[u8], length: usize) -> usize {
    bytes.extend_from_slice(text);
    length
}

fn push_hex(bytes: &mut Vec<u8>, byte: Option<u8>) -> usize {
    match byte {
        Some(byte) if byte.is_ascii() => push(bytes, format!("\\u{byte:04x}").as_bytes(), 4),
        Some(byte) => push(bytes, &[byte], 4),
        None => push(bytes, br"\\", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_usual_field_names() {
        let rows = [
            ("plain", r#"{"method":"GET","path":"/v1/a?k=s","status":200,"user_agent":"a"}"#, Some(200)),
            (
                "nginx names",
                r#"{"request_method":"GET","request_uri":"/v1/a","status":"200","http_user_agent":"a"}"#,
                Some(200),
            ),
            ("other names", r#"{"verb":"get","url":"https://h/v1/a","response_code":200.0,"ua":"a"}"#, Some(200)),
            ("request line", r#"{"request":"GET /v1/a HTTP/1.1","status_code":200,"agent":"a"}"#, Some(200)),
            (
                "CloudFront",
                r#"{"cs-method":"GET","cs-uri-stem":"/v1/a","sc-status":"200","cs(User-Agent)":"a"}"#,
                Some(200),
            ),
            ("API Gateway", r#"{"httpMethod":"GET","path":"/v1/a","status":"200","userAgent":"a"}"#, Some(200)),
            (
                "Traefik",
                r#"{"RequestMethod":"GET","RequestPath":"/v1/a","DownstreamStatus":200,"request_User-Agent":"a"}"#,
                Some(200),
            ),
            (
                "Caddy",
                r#"{"request":{"method":"GET","uri":"/v1/a?b","headers":{"User-Agent":["a"]}},"status":200}"#,
                Some(200),
            ),
            (
                "wrapped text",
                r#"{"log":"h - - [30/Nov/2026:09:00:00 +0000] \"GET /v1/a HTTP/1.1\" 200 5 \"-\" \"a\"\n"}"#,
                Some(200),
            ),
            (
                "wrapped JSON",
                r#"{"log":"{\"method\":\"GET\",\"path\":\"/v1/a\",\"status\":200,\"ua\":\"a\"}"}"#,
                Some(200),
            ),
            ("null is absent", r#"{"uri":null,"method":"GET","path":"/v1/a","status":200,"ua":"a"}"#, Some(200)),
            ("cut off", r#"{"method":"GET","path":"/v1/a","status":200,"ua":"a","body":"no end"#, Some(200)),
            (
                "control character",
                "{\"method\":\"GET\",\"x\":\"a\tb\",\"path\":\"/v1/a\",\"status\":200,\"ua\":\"a\"}",
                Some(200),
            ),
            ("no status written", r#"{"method":"GET","path":"/v1/a","status":0,"ua":"a"}"#, None),
        ];
        for (name, line, status) in rows {
            let read = read(line.as_bytes()).unwrap_or_else(|| panic!("{name} is unread"));
            assert_eq!(
                (read.method.as_str(), read.path.as_str(), read.agent.as_deref()),
                ("GET", "/v1/a", Some("a")),
                "{name}"
            );
            assert_eq!(read.status, status, "{name}");
        }
    }

    #[test]
    fn a_line_without_a_request_has_method_dash() {
        let rows = [
            ("empty request", r#"{"request":"","status":"400"}"#),
            ("tls hello", r#"{"request":"\x16\x03\x01","status":"400"}"#),
            ("empty method", r#"{"request_method":"","uri":"","status":"400"}"#),
        ];
        for (name, line) in rows {
            assert_eq!(read(line.as_bytes()).unwrap().method, "-", "{name}");
        }
    }

    #[test]
    fn case_31_nginx_escaping_is_repaired() {
        let line = br#"{"time":"2026-11-30T09:00:00+00:00","request":"GET /a HTTP/1.1","status":"200","ua":"x \xC3\xA9 \x22y\x22"}"#;
        let read = read(line).unwrap();
        assert_eq!((read.path.as_str(), read.status), ("/a", Some(200)));
        assert_eq!(read.agent.as_deref(), Some("x é \"y\""));
    }

    #[test]
    fn a_repair_leaves_escaped_backslashes_alone() {
        assert_eq!(repaired(r#"\\x22 \x5c \e \xZZ"#), r#"\\x22 \u005c \\e \\xZZ"#);
    }

    #[test]
    fn deep_nesting_is_no_danger() {
        let line = format!(r#"{{"a":{}"#, "[".repeat(100_000));
        assert_eq!(read(line.as_bytes()), None);
    }
}
