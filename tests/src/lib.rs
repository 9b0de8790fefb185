//! End to end: a local AWS, an emulator of the Runtime API and of a function URL, the built functions, the demo.

pub mod applied;
pub mod bench;
pub mod client;
pub mod demo;
pub mod front;
pub mod lambda_api;
pub mod local_aws;
pub mod operator;
pub mod report;
pub mod runtime_api;
pub mod soak;
pub mod stage;
pub mod wire;
