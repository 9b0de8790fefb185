#![no_main]

#[path = "../laws/batch.rs"]
mod batch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch::data(data));
