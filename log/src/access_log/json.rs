//! Lines that are one JSON object. Names are compared without case and punctuation, so that `request_method`,
//! `RequestMethod` and `cs-method` need no list of spellings.

use super::reader::Reader;
use super::took::{self, Unit};
use super::{
    RequestLine, Stamp, combined, hex_byte, method_of, no_request, path_of, split_request, status_of, time_of,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

const METHOD: &[&str] = &["method", "requestmethod", "httpmethod", "verb", "csmethod"];
const PATH: &[&str] = &["path", "uri", "requesturi", "requestpath", "url", "requesturl", "csuristem", "resourcepath"];
const STATUS: &[&str] =
    &["status", "statuscode", "responsecode", "responsestatus", "httpstatus", "downstreamstatus", "scstatus"];
const AGENT: &[&str] = &["useragent", "httpuseragent", "requestuseragent", "agent", "ua", "csuseragent"];
/// Times of the end, as nginx, Caddy and Traefik write them; then times of the start, as Traefik and Envoy do.
const TIME: &[&str] =
    &["time", "timestamp", "timeiso8601", "timelocal", "msec", "ts", "starttime", "startutc", "startlocal"];
/// Times of an API gateway: all of the start.
const GATEWAY_TIME: &[&str] = &["requesttimeepoch", "requesttime", "time", "timestamp"];
/// Where log shippers and container runtimes put the line they carry.
const WRAPPED: &[&str] = &["log", "message"];

/// Smallest number that is a time in seconds since 1970 (1973-03-03); less is a duration.
const FIRST_TIME_SECONDS: f64 = 1e8;

/// Fields of an object in the order in which they stand, under their own names.
pub(super) type Pairs = Vec<(String, Value)>;

/// Reads an object, or what is wrapped in it; `wrappers` are those that may still be opened.
pub(super) fn read(line: &[u8], reader: &Reader, wrappers: u8) -> Option<RequestLine> {
    let pairs = pairs(&String::from_utf8_lossy(line));
    let mapped = reader.mapped(&pairs);
    let own = mapped.fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    let fields = plain(own.chain(pairs));
    let shape = Shape::of(&fields);
    let line = reader.takes(shape).then(|| request_line(&fields, shape).or_else(|| common_log(&fields))).flatten();
    match line {
        Some(line) => Some(overridden(line, mapped.took, mapped.at)),
        None => reader.read_in(text(&fields, WRAPPED)?.as_bytes(), wrappers.checked_sub(1)?),
    }
}

/// Duration and time under configured names stand above those that were recognised.
fn overridden(line: RequestLine, took: Option<TimeDelta>, at: Option<(DateTime<Utc>, Stamp)>) -> RequestLine {
    let (at, stamp) = at.map_or((line.at, line.stamp), |(at, stamp)| (Some(at), stamp));
    RequestLine { took: took.or(line.took), at, stamp, ..line }
}

fn request_line(fields: &Map<String, Value>, shape: Shape) -> Option<RequestLine> {
    let (method, path) = request(fields)?;
    let at = shape.at(fields);
    Some(RequestLine {
        method,
        path,
        status: STATUS.iter().find_map(|name| status(fields.get(*name)?))?,
        agent: agent(fields).filter(|agent| !matches!(*agent, "" | "-")).map(str::to_owned),
        at: at.map(|(at, _)| at),
        stamp: at.map_or(Stamp::End, |(_, stamp)| stamp),
        took: shape.took(fields),
    })
}

/// The text line that Caddy puts into its object if it is told to.
fn common_log(fields: &Map<String, Value>) -> Option<RequestLine> {
    let line = combined::read(text(fields, &["commonlog"])?.as_bytes(), combined::Kind::Any)?;
    Some(RequestLine { took: Shape::Caddy.took(fields), ..line })
}

/// Who wrote an object, as its fields tell. It decides what a name means that others use with another unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A nested `request` with `method` and `uri`.
    Caddy,
    /// Names of API Gateway's own variables, as in the examples of its pages.
    ApiGateway,
    /// `DownstreamStatus` beside `RequestMethod`.
    Traefik,
    /// `response_flags` beside `response_code`.
    Envoy,
    /// nginx, and all others.
    Other,
}

impl Shape {
    fn of(fields: &Map<String, Value>) -> Shape {
        let has = |name: &str| fields.contains_key(name);
        let is_caddy = |request: &Value| request.get("method").is_some() && request.get("uri").is_some();
        if fields.get("request").is_some_and(is_caddy) || has("commonlog") {
            return Shape::Caddy;
        }
        if ["httpmethod", "routekey", "resourcepath"].into_iter().any(has)
            && ["requestid", "extendedrequestid", "requesttime", "requesttimeepoch"].into_iter().any(has)
        {
            return Shape::ApiGateway;
        }
        if has("downstreamstatus") && has("requestmethod") {
            return Shape::Traefik;
        }
        if has("responseflags") && has("responsecode") { Shape::Envoy } else { Shape::Other }
    }

    /// Duration under a name whose unit is known for this shape, or that says its unit. A bare `duration` of an unknown
    /// writer is not read.
    fn took(self, fields: &Map<String, Value>) -> Option<TimeDelta> {
        let own: &[(&str, Unit)] = match self {
            Shape::Caddy => &[("duration", Unit::Seconds)],
            Shape::ApiGateway => &[("responselatency", Unit::Millis), ("integrationlatency", Unit::Millis)],
            Shape::Traefik => &[("duration", Unit::Nanos)],
            Shape::Envoy => &[("duration", Unit::Millis)],
            Shape::Other => &[("requesttime", Unit::Seconds)],
        };
        let named = [
            ("durationseconds", Unit::Seconds),
            ("durationms", Unit::Millis),
            ("durationus", Unit::Micros),
            ("durationns", Unit::Nanos),
        ];
        own.iter().chain(&named).find_map(|(name, unit)| took::of_value(fields.get(*name)?, *unit))
    }

    fn at(self, fields: &Map<String, Value>) -> Option<(DateTime<Utc>, Stamp)> {
        let names = if self == Shape::ApiGateway { GATEWAY_TIME } else { TIME };
        let (at, name) = names.iter().find_map(|name| Some((time(fields.get(*name)?)?, *name)))?;
        Some((at, if self == Shape::ApiGateway { Stamp::Start } else { stamp_of(name) }))
    }
}

/// Which end a time of this name is: the start if the name says so or is one of API Gateway's, else the end, because a
/// line is written when its request is over.
pub(super) fn stamp_of(name: &str) -> Stamp {
    let name = plain_name(name.rsplit('.').next().unwrap_or_default());
    let is_start = name.starts_with("start") || matches!(name.as_str(), "requesttime" | "requesttimeepoch");
    if is_start { Stamp::Start } else { Stamp::End }
}

/// Method and path from fields of their own, from the route of a gateway, from a request line, or from the object that
/// Caddy writes. Fields that are there but hold no HTTP request give `-`; without the fields the line is unread.
fn request(fields: &Map<String, Value>) -> Option<(String, String)> {
    if let (Some(method), Some(path)) = (text(fields, METHOD), text(fields, PATH)) {
        return Some(pair(method, path));
    }
    if let Some(route) = route(fields) {
        return Some(route);
    }
    let request = fields.get("request")?;
    match request.as_str() {
        Some(line) => Some(split_request(line).unwrap_or_else(no_request)),
        None => Some(pair(request.get("method")?.as_str()?, request.get("uri")?.as_str()?)),
    }
}

/// What `routeKey` ("POST /v1/calls") adds to the fields that are there. `ANY` is no method, `$default` no path.
fn route(fields: &Map<String, Value>) -> Option<(String, String)> {
    let (method, path) = fields.get("routekey")?.as_str()?.split_once(' ')?;
    let method = text(fields, METHOD).unwrap_or(method);
    (method != "ANY").then(|| pair(method, text(fields, PATH).unwrap_or(path)))
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

/// Text as in other formats, or seconds since 1970; a number too large for seconds is in milliseconds, one too small is
/// no time.
pub(super) fn time(value: &Value) -> Option<DateTime<Utc>> {
    let written = value.as_str();
    let number = || value.as_f64().or_else(|| written?.trim().parse().ok());
    written.and_then(time_of).or_else(|| {
        let number = number().filter(|number| *number >= FIRST_TIME_SECONDS)?;
        let millis = if number > 1e11 { number } else { number * 1000.0 };
        DateTime::from_timestamp_millis(millis as i64)
    })
}

/// First of the fields that holds text; `-` only if none holds any other.
fn text<'v>(fields: &'v Map<String, Value>, names: &[&str]) -> Option<&'v str> {
    let texts = || names.iter().filter_map(|name| fields.get(*name)?.as_str());
    texts().find(|text| *text != "-").or_else(|| texts().next())
}

/// Names without case and punctuation. Of two that become the same name the first stands; null is a field that is not
/// there.
fn plain(pairs: impl Iterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in pairs.filter(|(_, value)| !value.is_null()) {
        fields.entry::<String>(plain_name(&name)).or_insert(value);
    }
    fields
}

fn plain_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Fields of an object. Text that breaks off or is not JSON is repaired and read again; what stands before a break
/// counts, also the part of a text that is cut: a shipper that cuts long lines must not lose the call.
fn pairs(text: &str) -> Pairs {
    collect(text).or_else(|_| collect(&closed(&repaired(text)))).unwrap_or_else(|before_break| before_break)
}

fn collect(text: &str) -> Result<Pairs, Pairs> {
    let mut found = Pairs::new();
    let read = serde_json::Deserializer::from_str(text).deserialize_map(Collect(&mut found));
    if read.is_ok() { Ok(found) } else { Err(found) }
}

/// Closes the text, objects and lists that are open at the end.
fn closed(text: &str) -> String {
    let (mut open, mut in_text, mut escaped) = (Vec::new(), false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' if !in_text => open.push('}'),
            b'[' if !in_text => open.push(']'),
            b'}' | b']' if !in_text => drop(open.pop()),
            _ => {}
        }
    }
    let whole = &text[..text.len() - usize::from(escaped)];
    let quote = if in_text { "\"" } else { "" };
    [whole, quote].into_iter().map(str::to_owned).chain(open.into_iter().rev().map(String::from)).collect()
}

/// Puts what it reads where it stays when reading breaks off.
struct Collect<'m>(&'m mut Pairs);

impl<'de> Visitor<'de> for Collect<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(pair) = map.next_entry()? {
            self.0.push(pair);
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
    use crate::access_log::read;

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
    fn what_is_open_at_the_end_is_closed() {
        let rows = [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":"b"#, r#"{"a":"b"}"#),
            (r#"{"a":{"b":["c"#, r#"{"a":{"b":["c"]}}"#),
            (r#"{"a":"b\"#, r#"{"a":"b"}"#),
            (r#"{"a":"{[\"]"#, r#"{"a":"{[\"]"}"#),
            (r#"{"a":1}}"#, r#"{"a":1}}"#),
        ];
        for (text, expected) in rows {
            assert_eq!(closed(text), expected, "{text}");
        }
    }

    #[test]
    fn a_line_in_four_wrappers_is_read_and_in_five_is_not() {
        let request = r#"{"request":"GET /a HTTP/1.1","status":200}"#.to_owned();
        let wrapped =
            |times: usize| (0..times).fold(request.clone(), |line, _| serde_json::json!({"log": line}).to_string());
        assert_eq!(read(wrapped(4).as_bytes()).map(|line| line.path).as_deref(), Some("/a"));
        assert_eq!(read(wrapped(5).as_bytes()), None);
    }

    #[test]
    fn deep_nesting_is_no_danger() {
        let line = format!(r#"{{"a":{}"#, "[".repeat(100_000));
        assert_eq!(read(line.as_bytes()), None);
    }
}
