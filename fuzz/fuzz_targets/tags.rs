#![no_main]

#[path = "../laws/tags.rs"]
mod tags;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tags::tags(data));
