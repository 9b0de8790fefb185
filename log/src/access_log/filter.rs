//! Decides whether a request wakes a node.

use super::RequestLine;
use super::reader::{FIELD_KEYS, Reader, format_names};
use chrono::TimeDelta;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

/// Methods of calls. HEAD and OPTIONS only ask whether somebody is there (field case 21).
const DEFAULT_METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const NEVER_A_CALL: [&str; 2] = ["HEAD", "OPTIONS"];

/// 101 opens a stream; 499 is a caller who gave up waiting; 502-504 is what a front answers for a sleeping node. Other
/// 4xx are strangers at the door (field case 20): a node they could wake runs all day.
const DEFAULT_STATUSES: [&str; 4] = ["101", "200-299", "499", "502-504"];

/// Statuses of a caller who was served: only a call that ended well is no reason to start a node.
const SERVED: [RangeInclusive<u16>; 2] = [101..=101, 200..=299];

/// From here on a request that was served is a call that ended, in seconds. A node takes minutes to start, so a request
/// that took 10 s and was answered found one that ran.
const DEFAULT_LONG_CALL_SECONDS: i64 = 10;
const LONG_CALL_SECONDS: RangeInclusive<i64> = 1..=3600;

/// What probes call themselves, in small letters. A part of a name is enough.
#[rustfmt::skip]
const HEALTH_CHECKS: [&str; 41] = [
    // Load balancers, orchestrators, DNS.
    "elb-healthchecker", "kube-probe", "googlehc", "amazon-route53-health-check-service", "envoy/hc",
    "load balancer agent", "edge health probe", "azure traffic manager", "cloudflare-traffic-manager",
    "healthcheck", "health-check", "health check",
    // Monitors; "uptime" alone covers UptimeRobot, Uptime-Kuma, Better Uptime, Uptime.com and their like.
    "uptime", "pingdom", "statuscake", "site24x7", "nodeping", "updown.io", "freshping", "hetrixtools", "checkly",
    "catchpoint", "cloudwatchsynthetics", "newrelicpinger", "newrelic-synthetics", "datadog", "dynatrace synthetic",
    "montastic", "monitis", "jetmon", "prtg", "gatus",
    // Self-hosted.
    "check_http", "nagios", "icinga", "zabbix", "blackbox", "prometheus", "grafana-synthetic", "wormly",
    "hetzner-monitor",
];

/// What crawlers and feed readers call themselves, in small letters, beside the names that end in "bot".
#[rustfmt::skip]
const CRAWLERS: [&str; 28] = [
    "crawl", "spider", "slurp", "archiver", "facebookexternalhit", "bingpreview", "google favicon", "yandeximages",
    "mediapartners-google", "siteexplorer", "whatsapp/", "embedly",
    "feedfetcher", "feed fetcher", "feedparser", "feed parser", "simplepie", "feedburner", "feedbin",
    "feedly", "newsblur", "inoreader", "tt-rss",
    // Scanners that say who they are.
    "censys", "zgrab", "masscan", "nuclei", "internet-measurement",
];

/// A filter as it is configured.
///
/// ```json
/// {"paths": ["/v1/"], "methods": ["GET", "POST"], "statuses": ["200-299", "499"], "ignore_agents": ["acme-probe"]}
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterSpec {
    /// Beginnings of paths that are calls; one at least, each with a leading `/`. Compared as they are: `/v1` also takes
    /// `/v1beta`, `/v1/` does not take `/v1`.
    pub paths: Vec<String>,
    /// Methods that are calls; default GET, POST, PUT, PATCH and DELETE. HEAD and OPTIONS are refused.
    #[serde(default)]
    pub methods: Option<Vec<String>>,
    /// Statuses, or ranges with both ends included, that are calls; default 101, 200-299, 499, 502-504.
    #[serde(default)]
    pub statuses: Option<Vec<String>>,
    /// Parts of the names of user agents that are not calls, in any case; added to those that are known.
    #[serde(default)]
    pub ignore_agents: Vec<String>,
    /// From this many seconds on a request that was served (101, 2xx) is a call that ended, not one that wants a node;
    /// 1 to 3600, default 10. It counts as use all the same.
    #[serde(default)]
    pub long_call_seconds: Option<i64>,
    /// The only format that is read: `auto` (default: each that is recognised), `combined`, `common`, `alb`, `json`,
    /// `apigateway` or `caddy`.
    #[serde(default)]
    pub format: Option<String>,
    /// Names under which a JSON line has its parts: `method`, `path`, `status`, `agent`, `time`, `request` (a request
    /// line), and one of `duration_seconds`, `duration_ms`, `duration_us`, `duration_ns`. Exact names, with dots for
    /// nested objects. A part that is absent under its name is recognised as without.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

/// What is wrong with a [`FilterSpec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterFault {
    /// A list without an entry, which would never wake anything.
    #[error("{field}: empty, nothing would ever wake the node")]
    Empty {
        /// Field of the spec.
        field: &'static str,
    },
    /// A path that no path of a request can begin with.
    #[error("paths: {value:?} has no leading / or has a query")]
    Path {
        /// The entry as written.
        value: String,
    },
    /// A word that is no method, or HEAD or OPTIONS, which never count.
    #[error("methods: {value:?} is not a method that can be a call")]
    Method {
        /// The entry as written.
        value: String,
    },
    /// Neither a status of 100 to 599 nor a range from a lower to a higher one.
    #[error("statuses: {value:?} is not a status such as \"499\" or a range such as \"200-299\"")]
    Status {
        /// The entry as written.
        value: String,
    },
    /// A blank agent, which would match every call.
    #[error("ignore_agents: {value:?} would match every agent")]
    Agent {
        /// The entry as written.
        value: String,
    },
    /// A length of 0 or less, or of over an hour.
    #[error("long_call_seconds: {value} is not from 1 to 3600")]
    LongCall {
        /// The number as written.
        value: i64,
    },
    /// No format that is known.
    #[error("format: {value:?} is not one of {}", format_names())]
    Format {
        /// The format as written.
        value: String,
    },
    /// A part of a request that is not read.
    #[error("fields: {key:?} is not one of {}", FIELD_KEYS.join(", "))]
    UnknownField {
        /// The key as written.
        key: String,
    },
    /// An empty name, or an empty part between dots.
    #[error("fields.{key}: {value:?} is not the name of a field")]
    FieldName {
        /// Key of `fields`.
        key: String,
        /// The name as written.
        value: String,
    },
    /// One duration in two units.
    #[error("fields.{other}: fields.{one} names the duration already")]
    TwoDurations {
        /// Key of `fields`.
        one: String,
        /// Another key of `fields`.
        other: String,
    },
    /// Names of JSON fields for a format that has none.
    #[error("fields: only JSON lines have named fields, and format says that no JSON is read")]
    FieldsWithoutJson,
}

/// Reads the lines of one log and says which requests wake a node. A value of this type is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    paths: Vec<String>,
    /// No path has a blank or anything but ASCII: then a target begins with one where its path does, whatever stands behind it.
    has_plain_paths: bool,
    methods: Vec<String>,
    statuses: Vec<RangeInclusive<u16>>,
    ignore_agents: Vec<String>,
    long_call: TimeDelta,
    reader: Reader,
}

/// What a request means for the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A call: the node is wanted.
    Wakes,
    /// Not a call, and why.
    Noise(NoiseReason),
}

/// Why a request does not wake; the first that applies, in this order. An agent is only named where it asked for what is
/// counted: who looks why a call did not wake is not shown every crawler of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoiseReason {
    /// The method is not one of `methods`, or no HTTP request was sent.
    Method,
    /// The path begins with none of `paths`.
    Path,
    /// The agent is a known health check or monitor.
    HealthCheck,
    /// The agent calls itself a bot, crawler or feed reader. A program of one's own that does so has to be renamed.
    Crawler,
    /// The agent is one of `ignore_agents`.
    Agent,
    /// The status is not one of `statuses`, or none was written.
    Status,
    /// A call of `long_call_seconds` or more that was served: whoever made it is gone. It was use, from its start to its
    /// end.
    EndedCall,
}

impl NoiseReason {
    /// Name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            NoiseReason::HealthCheck => "health_check",
            NoiseReason::Crawler => "crawler",
            NoiseReason::Agent => "agent",
            NoiseReason::Method => "method",
            NoiseReason::Path => "path",
            NoiseReason::Status => "status",
            NoiseReason::EndedCall => "ended_call",
        }
    }
}

impl Filter {
    /// Checks a spec and makes a filter of it.
    ///
    /// # Errors
    /// The first entry that is wrong, named with its field.
    pub fn new(spec: FilterSpec) -> Result<Filter, FilterFault> {
        let methods = spec.methods.unwrap_or_else(|| DEFAULT_METHODS.map(str::to_owned).to_vec());
        let statuses = spec.statuses.unwrap_or_else(|| DEFAULT_STATUSES.map(str::to_owned).to_vec());
        let paths = each("paths", spec.paths, path)?;
        Ok(Filter {
            has_plain_paths: paths.iter().all(|path| path.bytes().all(|b| b.is_ascii_graphic())),
            paths,
            methods: each("methods", methods, method)?,
            statuses: each("statuses", statuses, status)?,
            ignore_agents: spec.ignore_agents.into_iter().map(agent).collect::<Result<_, _>>()?,
            long_call: long_call(spec.long_call_seconds)?,
            reader: Reader::new(spec.format, spec.fields)?,
        })
    }

    /// Reads one line in the format and with the field names of this filter; else as [`read`](super::read).
    pub fn read(&self, line: &[u8]) -> Option<RequestLine> {
        self.reader.read(line)
    }

    /// Says whether a request wakes. In doubt it does not: a status that was not written is noise. A long call that ended
    /// in 499 or 502-504 does: somebody gave up waiting.
    pub fn judge(&self, line: &RequestLine) -> Verdict {
        self.verdict(line, |agent| self.agent_noise(agent))
    }

    /// The same for a line of many: programs that ask often are looked at once.
    pub(crate) fn judge_known(&self, line: &RequestLine, known: &mut KnownAgents) -> Verdict {
        self.verdict(line, |agent| known.noise(agent, |agent| self.agent_noise(agent)))
    }

    fn verdict(&self, line: &RequestLine, of_agent: impl FnOnce(&str) -> Option<NoiseReason>) -> Verdict {
        let noise = self.target_noise(line.method.as_bytes(), line.path.as_bytes());
        match noise.or_else(|| of_agent(line.agent())).or_else(|| self.status_noise(line)) {
            Some(reason) => Verdict::Noise(reason),
            None if self.is_ended_call(line) => Verdict::Noise(NoiseReason::EndedCall),
            None => Verdict::Wakes,
        }
    }

    /// Says whether a request is use: all that wake, and the long calls that ended.
    pub fn is_use(&self, line: &RequestLine) -> bool {
        matches!(self.judge(line), Verdict::Wakes | Verdict::Noise(NoiseReason::EndedCall))
    }

    /// `None` where the agent is not UTF-8.
    pub(super) fn known_agent_noise(&self, agent: &[u8], known: &mut KnownAgents) -> Option<Option<NoiseReason>> {
        match known.0.get(agent) {
            Some(found) => Some(*found),
            None => Some(known.noise(std::str::from_utf8(agent).ok()?, |agent| self.agent_noise(agent))),
        }
    }

    /// Whether a line of this beginning may be judged by what stands in it, taken as it stands.
    pub(super) fn may_glance(&self, head: &[u8]) -> bool {
        self.has_plain_paths && self.reader.reads_as_combined(head)
    }

    fn is_ended_call(&self, line: &RequestLine) -> bool {
        let was_served = line.status.is_some_and(|status| SERVED.iter().any(|range| range.contains(&status)));
        was_served && line.took.is_some_and(|took| took >= self.long_call)
    }

    /// The longest configured beginning that the line's path has.
    pub fn path_class(&self, line: &RequestLine) -> Option<&str> {
        let fitting = self.paths.iter().filter(|prefix| line.path.starts_with(prefix.as_str()));
        fitting.max_by_key(|prefix| prefix.len()).map(String::as_str)
    }

    fn agent_noise(&self, agent: &str) -> Option<NoiseReason> {
        let agent = Agent::new(agent);
        if agent.names_any(HEALTH_CHECKS) {
            return Some(NoiseReason::HealthCheck);
        }
        if agent.names_any(CRAWLERS) || agent.names_bot() {
            return Some(NoiseReason::Crawler);
        }
        if agent.names_any(&self.ignore_agents) {
            return Some(NoiseReason::Agent);
        }
        None
    }

    /// What the method and the path alone tell.
    pub(super) fn target_noise(&self, method: &[u8], target: &[u8]) -> Option<NoiseReason> {
        if !self.methods.iter().any(|taken| taken.as_bytes() == method) {
            return Some(NoiseReason::Method);
        }
        if !self.paths.iter().any(|prefix| target.starts_with(prefix.as_bytes())) {
            return Some(NoiseReason::Path);
        }
        None
    }

    fn status_noise(&self, line: &RequestLine) -> Option<NoiseReason> {
        let is_taken = |status: u16| self.statuses.iter().any(|range| range.contains(&status));
        (!line.status.is_some_and(is_taken)).then_some(NoiseReason::Status)
    }
}

/// What agents of one batch were found to be, by one filter. A name is looked for seventy names; a log has few agents and
/// many lines.
#[derive(Debug, Default)]
pub(crate) struct KnownAgents(HashMap<Vec<u8>, Option<NoiseReason>, foldhash::fast::RandomState>);

impl KnownAgents {
    /// Whoever writes into a log may write any number of names, of any length.
    const MOST: usize = 512;
    const LONGEST: usize = 512;

    fn noise(&mut self, agent: &str, judge: impl Fn(&str) -> Option<NoiseReason>) -> Option<NoiseReason> {
        if let Some(known) = self.0.get(agent.as_bytes()) {
            return *known;
        }
        let found = judge(agent);
        if agent.len() <= Self::LONGEST && self.0.len() < Self::MOST {
            self.0.insert(agent.into(), found);
        }
        found
    }
}

/// An agent in small letters, and which pairs of neighbouring bytes it has: a name with another pair is not in it. That is
/// quicker than to look for a hundred names.
struct Agent {
    name: String,
    pairs: [bool; 1024],
}

impl Agent {
    fn new(name: &str) -> Self {
        let name = name.to_lowercase();
        let mut pairs = [false; 1024];
        name.as_bytes().windows(2).for_each(|pair| pairs[Self::place(pair)] = true);
        Self { name, pairs }
    }

    /// Two pairs may share one.
    fn place(pair: &[u8]) -> usize {
        pair.iter().fold(0, |place, b| (place << 5 ^ usize::from(*b)) & 1023)
    }

    fn names_any(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> bool {
        let may_name = |name: &str| name.as_bytes().windows(2).all(|pair| self.pairs[Self::place(pair)]);
        names.into_iter().any(|name| may_name(name.as_ref()) && self.name.contains(name.as_ref()))
    }

    /// A word that ends in "bot" or "bots": Googlebot/2.1, archive.org_bot; not botocore, nor the phones of Cubot.
    fn names_bot(&self) -> bool {
        self.name.match_indices("bot").any(|(start, _)| {
            let after = self.name[start + 3..].trim_start_matches('s');
            !after.starts_with(char::is_alphanumeric) && !self.name[..start].ends_with("cu")
        })
    }
}

fn each<T>(
    field: &'static str,
    values: Vec<String>,
    check: fn(String) -> Result<T, FilterFault>,
) -> Result<Vec<T>, FilterFault> {
    if values.is_empty() {
        return Err(FilterFault::Empty { field });
    }
    values.into_iter().map(check).collect()
}

fn path(value: String) -> Result<String, FilterFault> {
    let can_match = value.starts_with('/') && !value.contains(['?', '#']);
    if can_match { Ok(value) } else { Err(FilterFault::Path { value }) }
}

fn method(value: String) -> Result<String, FilterFault> {
    match super::method_of(&value) {
        Some(method) if !NEVER_A_CALL.contains(&method.as_str()) => Ok(method),
        _ => Err(FilterFault::Method { value }),
    }
}

fn status(value: String) -> Result<RangeInclusive<u16>, FilterFault> {
    let (low, high) = value.split_once('-').unwrap_or((&value, &value));
    match (low.trim().parse(), high.trim().parse()) {
        (Ok(low), Ok(high)) if 100 <= low && low <= high && high <= 599 => Ok(low..=high),
        _ => Err(FilterFault::Status { value }),
    }
}

fn agent(value: String) -> Result<String, FilterFault> {
    if value.trim().is_empty() { Err(FilterFault::Agent { value }) } else { Ok(value.trim().to_lowercase()) }
}

fn long_call(seconds: Option<i64>) -> Result<TimeDelta, FilterFault> {
    let value = seconds.unwrap_or(DEFAULT_LONG_CALL_SECONDS);
    if LONG_CALL_SECONDS.contains(&value) {
        Ok(TimeDelta::seconds(value))
    } else {
        Err(FilterFault::LongCall { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::read;

    fn filter(spec: &str) -> Filter {
        Filter::new(serde_json::from_str(spec).unwrap()).unwrap()
    }

    fn strict() -> Filter {
        filter(r#"{"paths": ["/v1/"], "ignore_agents": ["Acme-Probe"]}"#)
    }

    fn verdict(request: &str, status: &str, agent: &str) -> Verdict {
        let line = format!(r#"192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] "{request}" {status} 5 "-" "{agent}""#);
        strict().judge(&read(line.as_bytes()).unwrap())
    }

    #[test]
    fn a_call_wakes() {
        let rows = [
            ("GET /v1/models HTTP/1.1", "200", "curl/8.5"),
            ("POST /v1/chat?key=a HTTP/2.0", "201", "-"),
            ("GET /v1/stream HTTP/1.1", "101", "Mozilla/5.0"),
            ("POST /v1/chat HTTP/1.1", "499", "python-requests/2.31"),
            ("POST /v1/chat HTTP/1.1", "502", "Boto3/1.34 Botocore/1.34"),
            ("POST /v1/chat HTTP/1.1", "504", "Mozilla/5.0 (Linux; Android 13; CUBOT P80)"),
            ("DELETE http://h.example/v1/x HTTP/1.1", "204", "a"),
        ];
        for (request, status, agent) in rows {
            assert_eq!(verdict(request, status, agent), Verdict::Wakes, "{request} {status} {agent}");
        }
    }

    #[test]
    fn noise_names_its_reason() {
        let call = "GET /v1/models HTTP/1.1";
        let rows = [
            (call, "200", "kube-probe/1.30", NoiseReason::HealthCheck),
            (
                call,
                "200",
                "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
                NoiseReason::HealthCheck,
            ),
            (call, "200", "PINGDOM.com_bot_version_1.4", NoiseReason::HealthCheck),
            (call, "200", "Blackbox Exporter/0.25.0", NoiseReason::HealthCheck),
            (
                call,
                "200",
                "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
                NoiseReason::Crawler,
            ),
            (call, "200", "Mozilla/5.0 (compatible; archive.org_bot)", NoiseReason::Crawler),
            (call, "200", "Feedbin - 1 subscribers", NoiseReason::Crawler),
            (call, "200", "ACME-probe/2", NoiseReason::Agent),
            ("HEAD /v1/models HTTP/1.1", "200", "a", NoiseReason::Method),
            ("OPTIONS /v1/models HTTP/1.1", "204", "a", NoiseReason::Method),
            (r"\x16\x03\x01", "400", "-", NoiseReason::Method),
            // What was asked for comes before who asked.
            ("GET /v1 HTTP/1.1", "200", "kube-probe/1.30", NoiseReason::Path),
            ("GET /x?/v1/ HTTP/1.1", "200", "a", NoiseReason::Path),
            (call, "401", "a", NoiseReason::Status),
            (call, "301", "a", NoiseReason::Status),
            (call, "500", "a", NoiseReason::Status),
            (call, "-", "a", NoiseReason::Status),
        ];
        for (request, status, agent, reason) in rows {
            assert_eq!(verdict(request, status, agent), Verdict::Noise(reason), "{request} {status} {agent}");
        }
    }

    #[test]
    fn case_20_strangers_do_not_wake() {
        let rows = [
            ("GET /.env HTTP/1.1", "404"),
            ("GET /wp-login.php HTTP/1.1", "404"),
            ("HEAD / HTTP/1.1", "301"),
            ("GET http://203.0.113.9/ HTTP/1.1", "400"),
            ("GET /v1/../../etc/passwd HTTP/1.1", "400"),
            ("POST /v1/chat HTTP/1.1", "403"),
            ("CONNECT example.org:443 HTTP/1.1", "405"),
            ("GET / HTTP/1.1", "200"),
        ];
        for (request, status) in rows {
            assert_ne!(verdict(request, status, "Mozilla/5.0"), Verdict::Wakes, "{request} {status}");
        }
    }

    #[test]
    fn case_21_status_pings_do_not_wake() {
        let everything = filter(r#"{"paths": ["/"]}"#);
        let rows = [
            ("GET /healthz HTTP/1.1", "ELB-HealthChecker/2.0", NoiseReason::HealthCheck),
            ("GET / HTTP/1.1", "UptimeMonitor", NoiseReason::HealthCheck),
            ("HEAD / HTTP/1.1", "UptimeMonitor", NoiseReason::Method),
            ("HEAD /status HTTP/1.1", "curl/8.5", NoiseReason::Method),
        ];
        for (request, agent, reason) in rows {
            let line = format!(r#"h - - [30/Nov/2026:09:00:00 +0000] "{request}" 200 5 "-" "{agent}""#);
            let verdict = everything.judge(&read(line.as_bytes()).unwrap());
            assert_eq!(verdict, Verdict::Noise(reason), "{request} {agent}");
        }
    }

    fn after(seconds: &str, status: u16, spec: &str) -> Verdict {
        let line = format!(r#"{{"request":"GET /v1/call HTTP/1.1","status":{status},"request_time":{seconds}}}"#);
        filter(spec).judge(&read(line.as_bytes()).unwrap())
    }

    #[test]
    fn the_end_of_a_long_call_wakes_nobody() {
        let rows = [
            ("10.0", 200, Verdict::Noise(NoiseReason::EndedCall)),
            ("10800", 101, Verdict::Noise(NoiseReason::EndedCall)),
            ("9.999", 200, Verdict::Wakes),
            ("9.999", 101, Verdict::Wakes),
            ("-1", 200, Verdict::Wakes),
            ("null", 200, Verdict::Wakes),
            ("60.0", 499, Verdict::Wakes),
            ("60.0", 502, Verdict::Wakes),
            ("60.0", 504, Verdict::Wakes),
            ("60.0", 500, Verdict::Noise(NoiseReason::Status)),
        ];
        for (seconds, status, verdict) in rows {
            assert_eq!(after(seconds, status, r#"{"paths": ["/v1/"]}"#), verdict, "{status} after {seconds} s");
        }
    }

    #[test]
    fn what_a_long_call_is_can_be_set() {
        let hour = r#"{"paths": ["/"], "long_call_seconds": 3600}"#;
        assert_eq!(after("3599.9", 200, hour), Verdict::Wakes);
        assert_eq!(after("3600", 200, hour), Verdict::Noise(NoiseReason::EndedCall));
        let second = r#"{"paths": ["/"], "long_call_seconds": 1}"#;
        assert_eq!(after("1", 200, second), Verdict::Noise(NoiseReason::EndedCall));
    }

    #[test]
    fn a_long_call_that_ended_is_use_and_noise_is_none() {
        let use_of = |request: &str, status: u16| {
            let line = format!(r#"{{"request":"{request}","status":{status},"request_time":60}}"#);
            strict().is_use(&read(line.as_bytes()).unwrap())
        };
        assert!(use_of("GET /v1/call HTTP/1.1", 200));
        assert!(use_of("GET /v1/call HTTP/1.1", 504));
        assert!(!use_of("HEAD /v1/call HTTP/1.1", 200));
        assert!(!use_of("GET /status HTTP/1.1", 200));
        assert!(!use_of("GET /v1/call HTTP/1.1", 401));
    }

    #[test]
    fn configured_lists_replace_the_defaults() {
        let filter = filter(r#"{"paths": ["/a"], "methods": ["post"], "statuses": ["401", "300-302"]}"#);
        let judge = |line: &str| filter.judge(&read(line.as_bytes()).unwrap());
        assert_eq!(judge(r#""POST /a HTTP/1.1" 302 0"#), Verdict::Wakes);
        assert_eq!(judge(r#""POST /a HTTP/1.1" 401 0"#), Verdict::Wakes);
        assert_eq!(judge(r#""POST /a HTTP/1.1" 200 0"#), Verdict::Noise(NoiseReason::Status));
        assert_eq!(judge(r#""GET /a HTTP/1.1" 302 0"#), Verdict::Noise(NoiseReason::Method));
    }

    /// What is accepted today has to be tomorrow: a function that does not start stops no node.
    #[test]
    fn an_odd_path_that_may_be_configured_already_is_no_fault() {
        for path in ["/v1 ", "/v1\u{a0}", "/v1 beta", "/\u{fffd}", "/\u{e9}", "/v1\t"] {
            let spec = serde_json::json!({"paths": [path]}).to_string();
            assert!(Filter::new(serde_json::from_str(&spec).unwrap()).is_ok(), "{path:?}");
        }
    }

    #[test]
    fn a_wrong_spec_is_refused_and_named() {
        let rows = [
            (r#"{"paths": []}"#, "paths: empty, nothing would ever wake the node"),
            (r#"{"paths": ["v1"]}"#, r#"paths: "v1" has no leading / or has a query"#),
            (r#"{"paths": ["/v1?a"]}"#, r#"paths: "/v1?a" has no leading / or has a query"#),
            (r#"{"paths": ["/"], "methods": []}"#, "methods: empty, nothing would ever wake the node"),
            (r#"{"paths": ["/"], "methods": ["head"]}"#, r#"methods: "head" is not a method that can be a call"#),
            (r#"{"paths": ["/"], "methods": ["G T"]}"#, r#"methods: "G T" is not a method that can be a call"#),
            (
                r#"{"paths": ["/"], "statuses": ["2xx"]}"#,
                r#"statuses: "2xx" is not a status such as "499" or a range such as "200-299""#,
            ),
            (
                r#"{"paths": ["/"], "statuses": ["299-200"]}"#,
                r#"statuses: "299-200" is not a status such as "499" or a range such as "200-299""#,
            ),
            (
                r#"{"paths": ["/"], "statuses": ["200-999"]}"#,
                r#"statuses: "200-999" is not a status such as "499" or a range such as "200-299""#,
            ),
            (r#"{"paths": ["/"], "ignore_agents": [" "]}"#, r#"ignore_agents: " " would match every agent"#),
            (r#"{"paths": ["/"], "long_call_seconds": 0}"#, "long_call_seconds: 0 is not from 1 to 3600"),
            (r#"{"paths": ["/"], "long_call_seconds": 3601}"#, "long_call_seconds: 3601 is not from 1 to 3600"),
            (
                r#"{"paths": ["/"], "format": "nginx"}"#,
                r#"format: "nginx" is not one of auto, combined, common, alb, json, apigateway, caddy"#,
            ),
            (
                r#"{"paths": ["/"], "fields": {"verb": "m"}}"#,
                r#"fields: "verb" is not one of method, path, status, agent, time, request, duration_seconds, duration_ms, duration_us, duration_ns"#,
            ),
            (r#"{"paths": ["/"], "fields": {"path": ""}}"#, r#"fields.path: "" is not the name of a field"#),
            (
                r#"{"paths": ["/"], "fields": {"path": "http..path"}}"#,
                r#"fields.path: "http..path" is not the name of a field"#,
            ),
            (
                r#"{"paths": ["/"], "fields": {"duration_ms": "a", "duration_seconds": "b"}}"#,
                "fields.duration_seconds: fields.duration_ms names the duration already",
            ),
            (
                r#"{"paths": ["/"], "format": "alb", "fields": {"path": "p"}}"#,
                "fields: only JSON lines have named fields, and format says that no JSON is read",
            ),
        ];
        for (spec, message) in rows {
            let fault = Filter::new(serde_json::from_str(spec).unwrap()).unwrap_err();
            assert_eq!(fault.to_string(), message, "{spec}");
        }
    }

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(serde_json::from_str::<FilterSpec>(r#"{"paths": ["/"], "path": "/"}"#).is_err());
        assert!(serde_json::from_str::<FilterSpec>("{}").is_err());
    }
}
