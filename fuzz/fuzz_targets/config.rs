#![no_main]

#[path = "../laws/config.rs"]
mod config;

libfuzzer_sys::fuzz_target!(|data: &[u8]| config::config(data));
