//! A day of what Terraform has made: the functions of the deployed zips, driven by the rules, filters and permissions that were
//! read back, each under its own role.

mod after;
mod alarms;
mod day;
mod existing;
mod node;
mod policy;
mod services;
mod voice;
mod wiring;

use crate::local_aws::LocalAws;
use crate::report::Check;
use crate::stage::StageResult;
use chrono::TimeDelta;
use clap::ValueEnum;
use services::Services;
use std::path::Path;
use wiring::Wiring;

/// Which example was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Example {
    /// A node of its own, seen by its beats.
    VoiceNode,
    /// A node that was there before, seen by its load balancer.
    ExistingNode,
}

/// Plays the day on the local AWS at `endpoint`, where the example was applied with the zips in `package`. What IAM allowed is
/// written into `out`, as iam.json.
///
/// # Errors
/// The local AWS refused something that a person or AWS itself did: a fault of the script.
pub async fn play(
    endpoint: &str,
    region: &str,
    example: Example,
    package: &Path,
    out: &Path,
) -> StageResult<Vec<Check>> {
    std::fs::create_dir_all(out)?;
    let wiring = Wiring::read(endpoint, region, package, &out.join("functions"))?;
    let services = Services::start(LocalAws::attach(endpoint), wiring).await?;
    let mut day = match example {
        Example::VoiceNode => voice::play(services, out).await?,
        Example::ExistingNode => existing::play(services).await?,
    };
    day.until(day.from + TimeDelta::days(1)).await?;
    after::checks(&mut day).await?;
    let used = day.services.aws.iam_used().await;
    std::fs::write(out.join("iam.json"), serde_json::to_string_pretty(&used)?)?;
    Ok(day.checks)
}
