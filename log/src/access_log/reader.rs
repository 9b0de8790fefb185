//! Which formats a line is read as, and under which names the fields of a JSON line stand.

use super::combined::Kind;
use super::json::{Pairs, Shape};
use super::took::{self, Unit};
use super::{FilterFault, MAX_LINE_BYTES, RequestLine, Stamp, balancer, combined, json, split_request};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys of `fields`.
pub(super) const FIELD_KEYS: [&str; 10] = [
    "method",
    "path",
    "status",
    "agent",
    "time",
    "request",
    "duration_seconds",
    "duration_ms",
    "duration_us",
    "duration_ns",
];

const DURATIONS: [(&str, Unit); 4] = [
    ("duration_seconds", Unit::Seconds),
    ("duration_ms", Unit::Millis),
    ("duration_us", Unit::Micros),
    ("duration_ns", Unit::Nanos),
];

/// Values of `format`, in the order in which the fault lists them.
const FORMATS: [(&str, Format); 7] = [
    ("auto", Format::Auto),
    ("combined", Format::Combined),
    ("common", Format::Common),
    ("alb", Format::Alb),
    ("json", Format::Json),
    ("apigateway", Format::ApiGateway),
    ("caddy", Format::Caddy),
];

/// Objects around a line that are opened, one in the other: a container runtime's in a shipper's in a collector's. Each
/// costs as much as the line is long, and whoever may write a text into a log may nest hundreds.
const MOST_WRAPPERS: u8 = 4;

/// The formats by name, for the fault and the reference.
pub(super) fn format_names() -> String {
    FORMATS.map(|(name, _)| name).join(", ")
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Format {
    /// Whatever is recognised.
    #[default]
    Auto,
    Combined,
    Common,
    Alb,
    Json,
    ApiGateway,
    Caddy,
}

impl Format {
    fn takes(self, shape: Shape) -> bool {
        match self {
            Format::Auto | Format::Json => true,
            Format::ApiGateway => shape == Shape::ApiGateway,
            Format::Caddy => shape == Shape::Caddy,
            Format::Combined | Format::Common | Format::Alb => false,
        }
    }

    fn is_json(self) -> bool {
        match self {
            Format::Auto | Format::Json | Format::ApiGateway | Format::Caddy => true,
            Format::Combined | Format::Common | Format::Alb => false,
        }
    }
}

/// Reads lines as they are configured. The default reads every format that is recognised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reader {
    format: Format,
    fields: FieldMap,
}

impl Reader {
    /// # Errors
    /// The format or a field that is wrong.
    pub(super) fn new(format: Option<String>, fields: BTreeMap<String, String>) -> Result<Reader, FilterFault> {
        let format = format.map_or(Ok(Format::Auto), format_of)?;
        if !format.is_json() && !fields.is_empty() {
            return Err(FilterFault::FieldsWithoutJson);
        }
        Ok(Reader { format, fields: FieldMap::new(fields)? })
    }

    /// Reads one line, of which only the first 256 KiB are looked at. An object that only wraps another line (`log`,
    /// `message`) is opened in every format.
    pub(super) fn read(&self, line: &[u8]) -> Option<RequestLine> {
        self.read_in(line, MOST_WRAPPERS)
    }

    /// Opens so many wrappers at most.
    pub(super) fn read_in(&self, line: &[u8], wrappers: u8) -> Option<RequestLine> {
        let line = line[..line.len().min(MAX_LINE_BYTES)].trim_ascii();
        if line.starts_with(b"{") { json::read(line, self, wrappers) } else { self.read_text(line) }
    }

    /// Whether a line of this beginning, a request in quotes behind it, is read as a combined one.
    pub(super) fn reads_as_combined(&self, head: &[u8]) -> bool {
        let is_text = head.first().is_some_and(|first| !first.is_ascii_whitespace() && *first != b'{');
        match self.format {
            Format::Auto => is_text && !balancer::may_begin(head),
            Format::Combined => is_text && combined::has_time(head),
            Format::Common | Format::Alb | Format::Json | Format::ApiGateway | Format::Caddy => false,
        }
    }

    fn read_text(&self, line: &[u8]) -> Option<RequestLine> {
        match self.format {
            Format::Auto => balancer::read(line).or_else(|| combined::read(line, Kind::Any)),
            Format::Combined => combined::read(line, Kind::Combined),
            Format::Common => combined::read(line, Kind::Common),
            Format::Alb => balancer::read(line),
            Format::Json | Format::ApiGateway | Format::Caddy => None,
        }
    }

    /// Whether JSON lines of this shape are read.
    pub(super) fn takes(&self, shape: Shape) -> bool {
        self.format.takes(shape)
    }

    /// What the configured names give of a JSON line.
    pub(super) fn mapped(&self, pairs: &Pairs) -> Mapped {
        self.fields.read(pairs)
    }
}

fn format_of(value: String) -> Result<Format, FilterFault> {
    let found = FORMATS.iter().find(|(name, _)| *name == value);
    found.map(|(_, format)| *format).ok_or(FilterFault::Format { value })
}

/// Where the parts of a request stand in a JSON line: key of `fields` to name. A value of this type is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FieldMap(BTreeMap<String, String>);

/// What the configured names gave. Each part that is absent is left to recognition.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    /// Method, path, status and agent under the names that recognition tries first.
    pub(super) fields: Vec<(&'static str, Value)>,
    pub(super) took: Option<TimeDelta>,
    pub(super) at: Option<(DateTime<Utc>, Stamp)>,
}

impl FieldMap {
    fn new(names: BTreeMap<String, String>) -> Result<FieldMap, FilterFault> {
        for (key, name) in &names {
            if !FIELD_KEYS.contains(&key.as_str()) {
                return Err(FilterFault::UnknownField { key: key.clone() });
            }
            if name.split('.').any(|part| part.trim().is_empty()) {
                return Err(FilterFault::FieldName { key: key.clone(), value: name.clone() });
            }
        }
        let mut durations = names.keys().filter(|key| key.starts_with("duration_"));
        match (durations.next(), durations.next()) {
            (Some(one), Some(other)) => Err(FilterFault::TwoDurations { one: one.clone(), other: other.clone() }),
            (Some(_) | None, _) => Ok(FieldMap(names)),
        }
    }

    fn read(&self, pairs: &Pairs) -> Mapped {
        let own = [("method", "method"), ("path", "path"), ("status", "status"), ("agent", "useragent")];
        let mut fields: Vec<_> =
            own.iter().filter_map(|(key, name)| Some((*name, self.get(key, pairs)?.clone()))).collect();
        fields.extend(self.request(pairs).into_iter().flatten());
        let took = DURATIONS.iter().find_map(|(key, unit)| took::of_value(self.get(key, pairs)?, *unit));
        Mapped { fields, took, at: self.at(pairs) }
    }

    /// Method and path out of a request line; `-` both if it holds no request.
    fn request(&self, pairs: &Pairs) -> Option<[(&'static str, Value); 2]> {
        let request = self.get("request", pairs)?.as_str()?;
        let (method, path) = split_request(request).unwrap_or_else(super::no_request);
        Some([("method", method.into()), ("path", path.into())])
    }

    fn at(&self, pairs: &Pairs) -> Option<(DateTime<Utc>, Stamp)> {
        let at = json::time(self.get("time", pairs)?)?;
        Some((at, json::stamp_of(self.0.get("time")?)))
    }

    fn get<'v>(&self, key: &str, pairs: &'v Pairs) -> Option<&'v Value> {
        value_at(pairs, self.0.get(key)?)
    }
}

/// The field of exactly this name; else, along its dots, the one inside of nested objects. Of a list the first entry.
fn value_at<'v>(pairs: &'v Pairs, name: &str) -> Option<&'v Value> {
    let top = |name: &str| pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value);
    let nested = || {
        let (head, tail) = name.split_once('.')?;
        tail.split('.').try_fold(top(head)?, |value, part| value.get(part))
    };
    top(name).or_else(nested).map(|value| value.get(0).unwrap_or(value)).filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pairs(value: Value) -> Pairs {
        value.as_object().unwrap().clone().into_iter().collect()
    }

    #[test]
    fn a_name_is_looked_up_whole_then_along_its_dots() {
        let rows = [
            ("top", json!({"a": 1}), "a", Some(json!(1))),
            ("other case", json!({"A": 1}), "a", None),
            ("dot in the name", json!({"a.b": 1, "a": {"b": 2}}), "a.b", Some(json!(1))),
            ("nested", json!({"a": {"b": {"c": 3}}}), "a.b.c", Some(json!(3))),
            ("list", json!({"a": {"User-Agent": ["x", "y"]}}), "a.User-Agent", Some(json!("x"))),
            ("null", json!({"a": null}), "a", None),
            ("no object on the way", json!({"a": 1}), "a.b", None),
        ];
        for (name, object, wanted, found) in rows {
            assert_eq!(value_at(&pairs(object), wanted).cloned(), found, "{name}");
        }
    }
}
