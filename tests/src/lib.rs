//! End to end: a local AWS, an emulator of the Runtime API, the built functions, the demo.

pub mod demo;
pub mod local_aws;
pub mod report;
pub mod runtime_api;
pub mod stage;
