//! The generated pages say what the code says. `UPDATE=1` (or `make reference`) writes them again.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

use reveille::config;
use reveille::decide::{Question, Reason};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

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
