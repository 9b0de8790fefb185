#![no_main]

#[path = "../laws/windows.rs"]
mod windows;

libfuzzer_sys::fuzz_target!(|data: &[u8]| windows::windows(data));
