//! The inputs that fuzzing has left, through the same laws (`make fuzz`, `fuzz/`): one test a target, and each past finding
//! is a file of `fuzz/crashes`. The target `http` is replayed by the wake function's own tests.

#[path = "../../fuzz/laws/batch.rs"]
mod batch;
#[path = "../../fuzz/laws/config.rs"]
mod config;
#[path = "../../fuzz/laws/ledger.rs"]
mod ledger;
#[path = "../../fuzz/laws/lines.rs"]
mod lines;
#[path = "../../fuzz/laws/replay.rs"]
mod replay;
#[path = "../../fuzz/laws/tags.rs"]
mod tags;
#[path = "../../fuzz/laws/windows.rs"]
mod windows;

fn replay(target: &str, law: fn(&[u8])) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project's folder");
    replay::each(root, target, law);
}

#[test]
fn batches_of_any_text() {
    replay("batch_data", batch::data);
}

#[test]
fn batches_of_any_json() {
    replay("batch_packed", batch::packed);
}

#[test]
fn lines_of_text() {
    replay("lines_text", lines::text);
}

#[test]
fn lines_of_json() {
    replay("lines_json", lines::json);
}

#[test]
fn filters() {
    replay("filter", lines::filter);
}

#[test]
fn configurations() {
    replay("config", config::config);
}

#[test]
fn tags_of_a_node() {
    replay("tags", tags::tags);
}

#[test]
fn warm_windows() {
    replay("windows", windows::windows);
}

#[test]
fn beats() {
    replay("beat", ledger::beat);
}

#[test]
fn items_of_the_ledger() {
    replay("ledger", ledger::ledger);
}
