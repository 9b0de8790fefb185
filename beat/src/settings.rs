//! The environment of the agent, read once. This is its only room that reads it. All faults are listed at once.

use hyper::Uri;
use reveille::access_log::{Filter, FilterSpec};
use reveille::config::{ConfigFaults, Kind, Setting};
use reveille::domain::NodeId;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

const TABLE: &str = "REVEILLE_TABLE";
const NODE: &str = "REVEILLE_BEAT_NODE";
const READY: &str = "REVEILLE_BEAT_READY_URL";
const OPEN_URL: &str = "REVEILLE_BEAT_OPEN_URL";
const OPEN_COMMAND: &str = "REVEILLE_BEAT_OPEN_COMMAND";
const LOG: &str = "REVEILLE_BEAT_LOG";
const LINES: &str = "REVEILLE_BEAT_LINES";
const GPU: &str = "REVEILLE_BEAT_GPU_PERCENT";
const NVIDIA_SMI: &str = "REVEILLE_BEAT_NVIDIA_SMI";
const ROW: &str = "REVEILLE_BEAT_ROW";
const FAST: &str = "REVEILLE_BEAT_FAST_SECONDS";
const STATE: &str = "REVEILLE_BEAT_STATE";
const CLOCK: &str = "REVEILLE_CLOCK_URL";

/// Every setting, in the order of the page.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: TABLE,
        default: None,
        kind: Kind::Text("a table's name"),
        doc: "The DynamoDB table of the ledger.",
    },
    Setting {
        name: READY,
        default: None,
        kind: Kind::Text("an http URL on loopback or a private address"),
        doc: "Where the model answers 2xx once it can serve. Asked at each look; 3 s.",
    },
    Setting {
        name: OPEN_URL,
        default: Some("none"),
        kind: Kind::Text("an http URL on loopback or a private address"),
        doc: "nginx's `stub_status`: open are the connections it reads from or writes to, without ours. This or the command has to be set.",
    },
    Setting {
        name: OPEN_COMMAND,
        default: Some("none"),
        kind: Kind::Text("a line for `sh -c`"),
        doc: "Prints how many calls are open, as a whole number; 5 s.",
    },
    Setting {
        name: LOG,
        default: Some("none"),
        kind: Kind::Text("a file"),
        doc: "The access log whose lines are use. Read through rotation by rename; after copytruncate one beat is incomplete.",
    },
    Setting {
        name: LINES,
        default: Some("none"),
        kind: Kind::Text("JSON, as a pool's `wake`"),
        doc: "Which of its lines are use, such as `{\"paths\": [\"/v1/\"]}`. Health checks, monitors and our own look never are.",
    },
    Setting {
        name: GPU,
        default: Some("10"),
        kind: Kind::Text("1 to 100 percent, or `off`"),
        doc: "From here on the busiest GPU counts as use.",
    },
    Setting {
        name: NVIDIA_SMI,
        default: Some("nvidia-smi"),
        kind: Kind::Text("a program"),
        doc: "What tells the GPU's use. Where it is absent there is no GPU; where it fails, the beat has no figure and a warning is logged.",
    },
    Setting {
        name: NODE,
        default: Some("the instance id, by IMDSv2"),
        kind: Kind::Text("a node id"),
        doc: "The node that the beat is of.",
    },
    Setting {
        name: ROW,
        default: Some("2"),
        kind: Kind::Number(1, 10, "answers"),
        doc: "Until so many answers in a row were ready, a run looks again and again, for up to 50 s. Not below the pool's `ready_beats`, or readiness is seen minutes late.",
    },
    Setting {
        name: FAST,
        default: Some("5"),
        kind: Kind::Number(1, 30, "seconds"),
        doc: "How long it waits between those looks.",
    },
    Setting {
        name: STATE,
        default: Some("/run/reveille-beat/state.json"),
        kind: Kind::Text("a file that a reboot removes"),
        doc: "What is remembered from beat to beat.",
    },
    Setting {
        name: CLOCK,
        default: Some("the real clock"),
        kind: Kind::Text("an http URL on loopback"),
        doc: "Virtual time for tests, as `{\"now_ms\": …}`. Refused on AWS, and where AWS_ENDPOINT_URL is not a local one.",
    },
];

/// The valid settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) table: String,
    /// Absent where IMDS is to tell.
    pub(crate) node: Option<NodeId>,
    pub(crate) ready: Uri,
    pub(crate) open: Open,
    pub(crate) log: Option<Log>,
    pub(crate) gpu: Option<Gpu>,
    pub(crate) row: u32,
    pub(crate) fast: Duration,
    pub(crate) state: PathBuf,
    pub(crate) clock_url: Option<String>,
}

/// What counts open calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Open {
    /// nginx's page.
    Url(Uri),
    /// The operator's own program.
    Command(String),
}

/// The access log.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) path: PathBuf,
    pub(crate) filter: Filter,
}

/// How the GPU is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpu {
    /// From here on it is use.
    pub(crate) percent: u8,
    pub(crate) nvidia_smi: String,
}

impl Settings {
    /// Reads the process environment.
    ///
    /// # Errors
    /// Every fault, each with the name of its variable.
    pub(crate) fn from_env() -> Result<Self, ConfigFaults> {
        #[expect(clippy::disallowed_methods, reason = "the one room that reads the environment")]
        let vars =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::from_vars(&vars.collect())
    }

    /// Reads these variables.
    pub(crate) fn from_vars(vars: &BTreeMap<String, String>) -> Result<Self, ConfigFaults> {
        let mut read = Read { vars, faults: Vec::new() };
        read.refuse_unknown_names();
        let table = read.required(TABLE);
        let (node, ready, open) = (read.node(), read.required_url(READY), read.open());
        let (log, gpu) = (read.log(), read.gpu());
        let (row, fast) = (read.number(ROW, 2, 1..=10), read.number(FAST, 5, 1..=30));
        let state = read.get(STATE).unwrap_or("/run/reveille-beat/state.json").into();
        let clock_url = read.clock_url();
        match (table, ready, open) {
            (Some(table), Some(ready), Some(open)) if read.faults.is_empty() => Ok(Self {
                table,
                node,
                ready,
                open,
                log,
                gpu,
                row,
                fast: Duration::from_secs(fast.into()),
                state,
                clock_url,
            }),
            _ => Err(ConfigFaults(read.faults)),
        }
    }
}

struct Read<'a> {
    vars: &'a BTreeMap<String, String>,
    faults: Vec<String>,
}

impl<'a> Read<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.vars.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Values are not repeated where they may hold a token.
    fn fault<T>(&mut self, name: &str, what: impl std::fmt::Display) -> Option<T> {
        self.faults.push(format!("{name}: {what}"));
        None
    }

    /// A misspelt setting would be a default that nobody chose.
    fn refuse_unknown_names(&mut self) {
        let known = |name: &str| SETTINGS.iter().any(|setting| setting.name == name);
        for name in self.vars.keys().filter(|name| name.starts_with("REVEILLE_BEAT_") && !known(name)) {
            self.faults.push(format!("{name}: is not a setting; see reveille-beat --help"));
        }
    }

    fn required(&mut self, name: &str) -> Option<String> {
        match self.get(name) {
            Some(value) => Some(value.to_owned()),
            None => self.fault(name, "is not set"),
        }
    }

    fn number(&mut self, name: &str, default: u32, range: std::ops::RangeInclusive<u32>) -> u32 {
        let Some(text) = self.get(name) else { return default };
        let value = text.parse().ok().filter(|value| range.contains(value));
        let rule = format_args!("{text:?} is not a whole number from {} to {}", range.start(), range.end()).to_string();
        value.or_else(|| self.fault(name, rule)).unwrap_or(default)
    }

    fn node(&mut self) -> Option<NodeId> {
        NodeId::new(self.get(NODE)?).map_err(|fault| self.fault::<NodeId>(NODE, fault)).ok()
    }

    fn required_url(&mut self, name: &str) -> Option<Uri> {
        let text = self.required(name)?;
        self.near_url(name, &text)
    }

    /// The agent runs on every node each minute: what it asks has to be the node itself, or its own network.
    fn near_url(&mut self, name: &str, text: &str) -> Option<Uri> {
        let url: Option<Uri> = text.parse().ok();
        let Some(url) = url.filter(|url| url.scheme_str() == Some("http") && url.authority().is_some()) else {
            return self.fault(name, "is not an http URL");
        };
        if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return self.fault(name, "holds a user name, which is not sent");
        }
        if url.host().is_some_and(is_near) {
            return Some(url);
        }
        self.fault(name, "is not localhost, nor a loopback or private address in digits")
    }

    fn open(&mut self) -> Option<Open> {
        match (self.get(OPEN_URL), self.get(OPEN_COMMAND)) {
            (Some(url), None) => self.near_url(OPEN_URL, url).map(Open::Url),
            (None, Some(line)) => Some(Open::Command(line.to_owned())),
            (None, None) => {
                self.fault(OPEN_URL, format_args!("set it or {OPEN_COMMAND}: nothing else sees a call in progress"))
            }
            (Some(_), Some(_)) => self.fault(OPEN_URL, format_args!("set either it or {OPEN_COMMAND}")),
        }
    }

    fn log(&mut self) -> Option<Log> {
        match (self.get(LOG), self.get(LINES)) {
            (None, None) => None,
            (Some(path), Some(lines)) => Some(Log { path: path.into(), filter: self.filter(lines)? }),
            (Some(_), None) => self.fault(LINES, format_args!("is not set: which lines of {LOG} are use?")),
            (None, Some(_)) => self.fault(LOG, format_args!("is not set: {LINES} are lines of which log?")),
        }
    }

    fn filter(&mut self, lines: &str) -> Option<Filter> {
        let spec: FilterSpec =
            serde_json::from_str(lines).map_err(|error| self.fault::<FilterSpec>(LINES, error)).ok()?;
        Filter::new(spec).map_err(|fault| self.fault::<Filter>(LINES, fault)).ok()
    }

    fn gpu(&mut self) -> Option<Gpu> {
        let nvidia_smi = self.get(NVIDIA_SMI).unwrap_or("nvidia-smi").to_owned();
        let percent = match self.get(GPU) {
            None => 10,
            Some("off") => return None,
            Some(text) => match text.parse() {
                Ok(percent @ 1..=100) => percent,
                Ok(_) | Err(_) => {
                    return self.fault(GPU, format_args!("{text:?} is neither a whole number from 1 to 100 nor off"));
                }
            },
        };
        Some(Gpu { percent, nvidia_smi })
    }

    /// As in the functions' configuration; and a beat with a virtual time never reaches the real ledger.
    fn clock_url(&mut self) -> Option<String> {
        let is_local = |url: &str| url.starts_with("http://127.0.0.1:") || url.starts_with("http://localhost:");
        let url = self.get(CLOCK)?.to_owned();
        if self.get("AWS_EXECUTION_ENV").is_some() || self.get("LAMBDA_TASK_ROOT") == Some("/var/task") {
            self.fault::<()>(CLOCK, "virtual time is for tests and refused on AWS");
        }
        if !self.get("AWS_ENDPOINT_URL").is_some_and(is_local) {
            self.fault::<()>(CLOCK, "virtual time is for tests and refused where AWS_ENDPOINT_URL is not on loopback");
        }
        if !is_local(&url) {
            self.fault::<()>(CLOCK, "must be an http URL on loopback");
        }
        Some(url)
    }
}

fn is_near(host: &str) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

/// The settings as `--help` shows them.
pub(crate) fn help() -> String {
    let mut text = String::from("Settings, by environment:\n");
    for Setting { name, default, kind, doc } in SETTINGS {
        let default = default.map_or("has to be set".to_owned(), |value| format!("default: {value}"));
        // Writing to a String cannot fail.
        let _ = write!(text, "  {name}  {}; {default}\n      {doc}\n", kind.range());
    }
    text
}

/// The settings as `docs/beat.md` shows them.
#[cfg(test)]
pub(crate) fn table() -> String {
    let mut page = String::from("\n| variable | range | default | what it does |\n|---|---|---|---|\n");
    for Setting { name, default, kind, doc } in SETTINGS {
        let default = default.map_or("has to be set".to_owned(), |value| format!("`{value}`"));
        let _ = writeln!(page, "| `{name}` | {} | {default} | {doc} |", kind.range());
    }
    page + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(more: &[(&str, &str)]) -> BTreeMap<String, String> {
        let least = [
            (TABLE, "reveille-ledger"),
            (READY, "http://127.0.0.1:8080/ready"),
            (OPEN_URL, "http://127.0.0.1:8080/status"),
        ];
        least.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn faults(more: &[(&str, &str)]) -> Vec<String> {
        Settings::from_vars(&vars(more)).map_or_else(|faults| faults.0, |settings| panic!("{settings:?}"))
    }

    #[test]
    fn the_least_that_has_to_be_set() {
        let settings = Settings::from_vars(&vars(&[])).unwrap();
        assert_eq!((settings.node, settings.row, settings.fast), (None, 2, Duration::from_secs(5)));
        assert_eq!(settings.gpu, Some(Gpu { percent: 10, nvidia_smi: "nvidia-smi".to_owned() }));
        assert_eq!(settings.state, PathBuf::from("/run/reveille-beat/state.json"));
        assert!(settings.log.is_none() && settings.clock_url.is_none());
    }

    #[test]
    fn all_faults_are_listed_at_once() {
        let vars = [(ROW, "0"), (GPU, "0"), ("REVEILLE_BEAT_OPEN", "x"), (LOG, "/l")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let faults = Settings::from_vars(&vars).unwrap_err().0;
        for name in [TABLE, READY, OPEN_URL, ROW, GPU, LINES, "REVEILLE_BEAT_OPEN"] {
            assert_eq!(faults.iter().filter(|fault| fault.starts_with(&format!("{name}:"))).count(), 1, "{faults:?}");
        }
        assert_eq!(faults.len(), 7);
    }

    #[test]
    fn each_fault_names_its_variable() {
        let rows: Vec<(&str, Vec<(&str, &str)>)> = vec![
            (READY, vec![(READY, "https://127.0.0.1/ready")]),
            (READY, vec![(READY, "http://example.com/ready")]),
            (READY, vec![(READY, "http://8.8.8.8/ready")]),
            (READY, vec![(READY, "http://169.254.169.254/latest")]),
            (READY, vec![(READY, "http://user:word@127.0.0.1/ready")]),
            (READY, vec![(READY, "/ready")]),
            (OPEN_URL, vec![(OPEN_COMMAND, "echo 0")]),
            (OPEN_URL, vec![(OPEN_URL, "")]),
            (LINES, vec![(LOG, "/var/log/nginx/access.log")]),
            (LINES, vec![(LOG, "/l"), (LINES, "{}")]),
            (LINES, vec![(LOG, "/l"), (LINES, r#"{"paths": ["v1"]}"#)]),
            (LOG, vec![(LINES, r#"{"paths": ["/v1"]}"#)]),
            (GPU, vec![(GPU, "101")]),
            (GPU, vec![(GPU, "on")]),
            (ROW, vec![(ROW, "11")]),
            (FAST, vec![(FAST, "2.5")]),
            (NODE, vec![(NODE, "i 1")]),
            (CLOCK, vec![(CLOCK, "http://127.0.0.1:1/clock")]),
            (CLOCK, vec![(CLOCK, "http://192.0.2.1/clock"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:1")]),
        ];
        for (name, more) in rows {
            let faults = faults(&more);
            assert!(faults.len() == 1 && faults[0].starts_with(name), "{more:?}: {faults:?}");
            assert!(!faults[0].contains("word"), "{faults:?}");
        }
    }

    #[test]
    fn virtual_time_is_refused_on_aws() {
        let local = [(CLOCK, "http://127.0.0.1:1/clock"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:1")];
        assert!(Settings::from_vars(&vars(&local)).is_ok());
        for (name, value) in [("AWS_EXECUTION_ENV", "AWS_ECS_EC2"), ("LAMBDA_TASK_ROOT", "/var/task")] {
            assert_eq!(faults(&[local[0], local[1], (name, value)]).len(), 1, "{name}");
        }
    }

    #[test]
    fn near_addresses_are_taken() {
        for host in ["localhost", "127.0.0.1:81", "10.1.2.3:8000", "172.31.0.9", "192.168.0.2", "[::1]:80", "[fd00::1]"]
        {
            assert!(Settings::from_vars(&vars(&[(READY, &format!("http://{host}/r"))])).is_ok(), "{host}");
        }
    }

    #[test]
    fn other_names_of_the_environment_are_left_alone() {
        let more = [("REVEILLE_POOLS", "{}"), (GPU, "off"), (LOG, "/l"), (LINES, r#"{"paths": ["/v1"]}"#)];
        let settings = Settings::from_vars(&vars(&more)).unwrap();
        assert!(settings.gpu.is_none() && settings.log.is_some());
    }
}
