//! A virtual day of what Terraform has made on a local AWS: what tests/infra/applied.py runs between apply and destroy.

use aws_sdk_ec2::error::DisplayErrorContext;
use clap::Parser;
use reveille_tests::applied::{Example, play};
use std::path::PathBuf;
use std::process::ExitCode;

/// Drives the functions that were deployed by what the applied resources say, for a day, and checks what has to hold.
#[derive(Debug, Parser)]
#[command(
    after_help = "Example:\n  applied_day http://127.0.0.1:43211 voice-node --region ap-northeast-2 --package target/infra/package --out target/infra/day"
)]
struct Args {
    /// The local AWS.
    endpoint: String,
    /// What was applied.
    example: Example,
    /// Where.
    #[arg(long)]
    region: String,
    /// The folder of the zips that were deployed.
    #[arg(long)]
    package: PathBuf,
    /// Where the programs are unpacked, and iam.json is written.
    #[arg(long)]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match play(&args.endpoint, &args.region, args.example, &args.package, &args.out).await {
        Ok(checks) => {
            let missed = checks.iter().filter(|check| !check.ok).count();
            println!("\n{} checks, {missed} missed", checks.len());
            if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("applied_day: {}", DisplayErrorContext(&*error));
            ExitCode::FAILURE
        }
    }
}
