//! The inputs that fuzzing has left for the target `http`, through the same laws.

#[path = "../../../fuzz/laws/http.rs"]
mod laws;
#[path = "../../../fuzz/laws/replay.rs"]
mod replay;

#[test]
fn events_and_requests() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the project's folder");
    replay::each(root, "http", laws::http);
}
