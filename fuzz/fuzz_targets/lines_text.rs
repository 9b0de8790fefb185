#![no_main]

#[path = "../laws/lines.rs"]
mod lines;

libfuzzer_sys::fuzz_target!(|data: &[u8]| lines::text(data));
