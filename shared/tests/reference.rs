//! The generated pages say what the code says. `UPDATE=1` (or `make reference`) writes them again.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use reveille::config::{self, Kind, Setting};
use reveille::decide::{Question, Reason};
use reveille::prices::regions;
use reveille::run::Outcome;
use reveille::telemetry;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BEGIN: &str = "<!-- decision table: generated, see make reference -->\n";
const END: &str = "<!-- end of the decision table -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "a switch of this test, not of the product")]
fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

fn decision_table() -> String {
    let mut table = String::new();
    let questions = [
        (Question::Look, "all: can anything be decided?"),
        (Question::Wake, "wake: is a node to be started?"),
        (Question::Lease, "lease: may a call have a node?"),
        (Question::Idle, "idle: is a node to be stopped?"),
        (Question::Uptime, "uptime: has a node been up for too long today?"),
        (Question::Budget, "budget: what becomes of the gate?"),
    ];
    for (question, title) in questions {
        writeln!(table, "\n**{title}** First that applies wins.\n\n| reason | action | when |\n|---|---|---|").unwrap();
        for reason in Reason::ALL.iter().filter(|reason| reason.question() == question) {
            writeln!(table, "| `{}` | {} | {} |", reason.as_str(), reason.action(), reason.rule()).unwrap();
        }
    }
    table + "\n"
}

fn held_to(path: &str, wanted: &str, found: &str) {
    if is_update() {
        fs::write(root().join(path), wanted).unwrap();
    } else {
        assert!(
            found == wanted,
            "{path} does not say what the code says: run `make reference` and look at the difference"
        );
    }
}

#[test]
fn the_configuration_page_is_the_code_s_own() {
    let found = fs::read_to_string(root().join("docs/configuration.md")).unwrap_or_default();
    held_to("docs/configuration.md", &config::reference(), &found);
}

#[test]
fn the_decision_table_is_the_code_s_own() {
    let found = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (head, rest) = found.split_once(BEGIN).expect("ARCHITECTURE.md has the mark of the table's begin");
    let (_, tail) = rest.split_once(END).expect("ARCHITECTURE.md has the mark of the table's end");
    held_to("ARCHITECTURE.md", &format!("{head}{BEGIN}{}{END}{tail}", decision_table()), &found);
}

/// Settings that the module fills in itself or that are for tests: no variable.
const NO_VARIABLE: [&str; 3] = ["REVEILLE_TABLE", "REVEILLE_ALERT_TOPIC_ARN", "REVEILLE_CLOCK_URL"];

fn variable_name(setting: &Setting) -> String {
    setting.name.trim_start_matches("REVEILLE_").to_lowercase()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace("${", "$${"))
}

/// Type, default as written, and the validation's condition and advice.
fn variable_parts(setting: &Setting) -> (&'static str, Option<String>, Option<(String, String)>) {
    let name = variable_name(setting);
    let default = setting.default.unwrap_or_default();
    match setting.kind {
        Kind::Number(least, most, unit) => {
            let within = format!("var.{name} >= {least} && var.{name} <= {most} && floor(var.{name}) == var.{name}");
            let advice = format!("write a whole number from {least} to {most} ({unit})");
            match default.parse::<i64>() {
                Ok(default) => ("number", Some(default.to_string()), Some((within, advice))),
                Err(_) => {
                    let or_none = format!("var.{name} == null ? true : {within}");
                    ("number", Some("null".to_owned()), Some((or_none, format!("{advice}, or leave it out"))))
                }
            }
        }
        Kind::Word(words) => {
            let listed: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let within = format!("contains([{}], var.{name})", listed.join(", "));
            ("string", Some(quoted(default)), Some((within, format!("write {}", listed.join(" or ")))))
        }
        Kind::Zone => {
            let within = format!("contains(split(\"\\n\", file(\"${{path.module}}/zones.txt\")), var.{name})");
            let advice = "write an IANA zone such as \"Asia/Seoul\"; zones.txt in this module lists them";
            ("string", Some(quoted(default)), Some((within, advice.to_owned())))
        }
        Kind::Json => ("any", setting.default.map(|_| "null".to_owned()), None),
        Kind::Text(_) => ("string", setting.default.map(|_| "null".to_owned()), None),
    }
}

fn variable(setting: &Setting) -> String {
    let name = variable_name(setting);
    let (kind, default, validation) = variable_parts(setting);
    let range = match setting.kind {
        Kind::Json => "see docs/configuration.md".to_owned(),
        Kind::Number(..) | Kind::Word(_) | Kind::Zone | Kind::Text(_) => setting.kind.range(),
    };
    let said = setting.default.map_or(String::new(), |default| format!("; default {default}"));
    let mut block = format!("\nvariable \"{name}\" {{\n");
    writeln!(block, "  description = {}", quoted(&format!("{} ({range}{said})", setting.doc))).unwrap();
    writeln!(block, "  type        = {kind}").unwrap();
    if let Some(default) = default {
        // Without this, a null given on purpose would pass the range.
        let nullable = if default == "null" { "" } else { "  nullable    = false\n" };
        write!(block, "  default     = {default}\n{nullable}").unwrap();
    }
    if let Some((condition, advice)) = validation {
        let message = quoted(&format!("{name}: {advice}."));
        writeln!(block, "  validation {{\n    condition     = {condition}\n    error_message = {message}\n  }}")
            .unwrap();
    }
    block + "}\n"
}

fn environment_value(setting: &Setting) -> String {
    let name = variable_name(setting);
    let nullable = variable_parts(setting).1.as_deref() == Some("null");
    let written = match setting.kind {
        Kind::Json => format!("jsonencode(var.{name})"),
        Kind::Number(..) => format!("tostring(var.{name})"),
        Kind::Word(_) | Kind::Zone | Kind::Text(_) => return format!("var.{name}"),
    };
    if nullable { format!("var.{name} == null ? null : {written}") } else { written }
}

fn terraform_settings() -> String {
    let variables: Vec<&Setting> = config::SETTINGS.iter().filter(|one| !NO_VARIABLE.contains(&one.name)).collect();
    let mut page =
        String::from("# Generated from shared/src/config.rs: change the settings there, then `make reference`.\n");
    for setting in &variables {
        page += &variable(setting);
    }
    page += "\nlocals {\n  # A setting that is null is left to the functions' own default.\n  settings = {\n";
    let widest = variables.iter().map(|setting| setting.name.len()).max().unwrap();
    for setting in &variables {
        writeln!(page, "    {:widest$} = {}", setting.name, environment_value(setting)).unwrap();
    }
    page + "  }\n}\n"
}

#[test]
fn the_variables_of_the_terraform_module_are_the_code_s_own() {
    let path = "infra/modules/controller/settings.tf";
    held_to(path, &terraform_settings(), &fs::read_to_string(root().join(path)).unwrap_or_default());
}

#[test]
fn the_zones_of_the_terraform_module_are_the_code_s_own() {
    let path = "infra/modules/controller/zones.txt";
    let zones: String = chrono_tz::TZ_VARIANTS.iter().map(|zone| format!("{zone}\n")).collect();
    held_to(path, &zones, &fs::read_to_string(root().join(path)).unwrap_or_default());
}

/// The fields that the code takes, as its own refusal of another one lists them.
fn fields(variable: &str, value: &str) -> Vec<String> {
    let faults = config::Config::from_vars(&[(variable.to_owned(), value.to_owned())].into()).unwrap_err().to_string();
    let (_, listed) = faults.split_once("expected one of ").expect("an unknown field is refused");
    let listed = listed.split(" at line").next().unwrap();
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_fields_of_the_terraform_module_are_the_code_s_own() {
    let path = "infra/modules/controller/rules/fields.tf";
    let listed = [
        ("pool_fields", fields("REVEILLE_POOLS", r#"{"a": {"-": 1}}"#)),
        ("filter_fields", fields("REVEILLE_POOLS", r#"{"a": {"wake": {"-": 1}}}"#)),
        ("signal_fields", fields("REVEILLE_POOLS", r#"{"a": {"open": [{"-": 1}]}}"#)),
        ("log_fields", fields("REVEILLE_POOLS", r#"{"a": {"logs": [{"-": 1}]}}"#)),
        ("window_fields", fields("REVEILLE_POOLS", r#"{"a": {"warm": [{"-": 1}]}}"#)),
        ("budget_fields", fields("REVEILLE_BUDGET", r#"{"-": 1}"#)),
        ("price_regions", regions().into_iter().map(str::to_owned).collect()),
    ];
    let mut page = String::from("# Generated from shared/src/config.rs: `make reference`.\nlocals {\n");
    for (name, fields) in listed {
        let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        writeln!(page, "  {name:13} = [{}]", fields.join(", ")).unwrap();
    }
    held_to(path, &(page + "}\n"), &fs::read_to_string(root().join(path)).unwrap_or_default());
}

/// An alarm on a metric that nobody writes would be in ALARM for ever, or never.
#[test]
fn the_alarm_s_heartbeat_is_the_one_that_a_tick_writes() {
    let lines =
        telemetry::lines("idle-check", "2026-11-30T10:00:00Z".parse().unwrap(), &Outcome::default(), Duration::ZERO);
    let metrics: Value = serde_json::from_str(lines.last().expect("a tick that did its job says so")).unwrap();
    let written = &metrics["_aws"]["CloudWatchMetrics"][0];
    let alarms = fs::read_to_string(root().join("infra/modules/controller/alarms.tf")).unwrap();
    for (local, value) in [("namespace", &written["Namespace"]), ("heartbeat", &written["Metrics"][0]["Name"])] {
        assert!(alarms.contains(&format!("  {local} = {value}\n")), "{local} is {value} in the code");
    }
    assert_eq!(written["Dimensions"], serde_json::json!([[]]), "the alarm has no dimension");
}
