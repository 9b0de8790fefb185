#![no_main]

// The wake function is a program: its own files, without the AWS SDK.
#[path = "../../functions/wake/src/access.rs"]
mod access;
#[path = "../../functions/wake/src/event.rs"]
mod event;
#[path = "../../functions/wake/src/http.rs"]
mod http;
#[path = "../laws/http.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|data: &[u8]| laws::http(data));
