//! `reveille plan` as it is called: what it prints, and how it fails.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn file(name: &str, content: &str) -> File {
    let path = std::env::temp_dir().join(format!("reveille-cli-{}-{name}", std::process::id()));
    std::fs::write(&path, content).unwrap();
    File(path)
}

/// Three calls on one day: at nine, twenty minutes later, and at three.
fn day() -> String {
    "t,duration\n1796029200,300\n1796030400,300\n1796050800,60\n".to_owned()
}

fn plan(trace: &File, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reveille"));
    command.args(["plan", "--trace"]).arg(&trace.0).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_json_is_what_was_agreed() {
    let trace = file("json", &day());
    let args = ["--boot-seconds", "55", "--tick-minutes", "5", "--idle-minutes", "30,60", "--format", "json"];
    let output = plan(&trace, &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["trace"].is_object() && !report["assumptions"].as_array().unwrap().is_empty());
    let plans = report["plans"].as_array().unwrap();
    let of = |name: &str| plans.iter().find(|plan| plan["name"] == name).unwrap_or_else(|| panic!("{name}"));
    let figures = [
        "node_hours_month",
        "cold_share",
        "wait_mean_seconds",
        "wait_p50_seconds",
        "wait_p95_seconds",
        "unserved_share",
        "starts_per_day",
        "cost_month_usd",
        "cost_per_call_usd",
    ];
    for name in ["24/7", "on-demand idle 30", "on-demand idle 60"] {
        assert!(figures.iter().all(|figure| of(name)[*figure].is_number()), "{name}");
    }
    let idle_30 = of("on-demand idle 30");
    // 09:00:00 to 09:55, the tick after 09:25 + 30; 15:00 to 15:35, the tick after 15:01:55 + 30.
    let hours = f64::from((55 + 35) * 60) / 3600.0 * 730.5 / 24.0;
    assert!((idle_30["node_hours_month"].as_f64().unwrap() - hours).abs() < 1e-9, "{idle_30}");
    assert_eq!(idle_30["wait_p95_seconds"], 55);
    assert!((idle_30["wait_mean_seconds"].as_f64().unwrap() - 110.0 / 3.0).abs() < 1e-9);
    assert_eq!(idle_30["starts_per_day"], 2.0);
}

#[test]
fn a_bad_line_is_told_with_its_number_and_fails() {
    let trace = file("bad", "t,duration\n1796029200,300\n-5,300\n");
    let output = plan(&trace, &[]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(text(&output.stderr).contains("line 3"), "{}", text(&output.stderr));
}

#[test]
fn a_trace_may_come_by_a_pipe() {
    let piped = |content: &str, args: &[&str]| {
        let trace = file("piped", content);
        let mut command = Command::new(env!("CARGO_BIN_EXE_reveille"));
        let stdin = std::fs::File::open(&trace.0).unwrap();
        (command.args(["plan", "--trace", "-"]).args(args).stdin(stdin).output().unwrap(), plan(&trace, args))
    };
    let plans = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap()["plans"].clone();
    let (by_pipe, by_name) = piped(&day(), &["--format", "json"]);
    assert_eq!(plans(&by_pipe), plans(&by_name));
    assert!(text(&by_pipe.stdout).contains("\"file\": \"standard input\""), "{}", text(&by_pipe.stdout));
    let (output, _) = piped("t,duration\n1796029200,300\n-5,300\n", &[]);
    assert!(text(&output.stderr).contains("standard input, line 3"), "{}", text(&output.stderr));
}

#[test]
fn what_cannot_be_asked_is_told() {
    let trace = file("asked", &day());
    let rows: [(&[&str], &str); 6] = [
        (&["--region", "mars-1"], "no price"),
        (&["--window", "always"], "mon-fri 07:00-23:00"),
        (&["--html", "/no/such/folder/page.html"], "cannot write"),
        (&["--html", "/tmp/x.html", "--plan", "none"], "no plan is called"),
        (&["--thin", "0"], "above 0"),
        (&["--announced", "2"], "from 0 to 1"),
    ];
    for (args, part) in rows {
        let output = plan(&trace, args);
        assert!(!output.status.success() && text(&output.stderr).contains(part), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn every_format_has_every_plan() {
    let trace = file("formats", &day());
    for format in ["table", "csv", "md", "json"] {
        let output = text(&plan(&trace, &["--format", format, "--window", "mon-fri 08:00-18:00"]).stdout);
        for name in ["24/7", "on-demand idle 30", "clairvoyant with pre-warm", "warm mon-fri 08:00-18:00"] {
            assert!(output.contains(name), "{format}: {name}\n{output}");
        }
    }
}

#[test]
fn the_page_is_written() {
    let (trace, page) = (file("page", &day()), file("page.html", ""));
    let args = ["--html", page.0.to_str().unwrap(), "--plan", "on-demand idle 60", "--day", "2026-11-30"];
    let output = plan(&trace, &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(&page.0).unwrap();
    assert!(page.contains("One day of on-demand idle 60") && page.contains("REVEILLE_IDLE_MINUTES=60"));
}
