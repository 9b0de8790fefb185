#![no_main]

#[path = "../laws/ledger.rs"]
mod ledger;

libfuzzer_sys::fuzz_target!(|data: &[u8]| ledger::ledger(data));
