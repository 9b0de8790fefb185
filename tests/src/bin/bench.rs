//! What a wake, a tick and a log batch cost, beside Python and boto3: `target/bench/results.json` and a table.

use clap::Parser;
use reveille_tests::bench::{self, Plan};
use reveille_tests::stage::{StageResult, root};
use std::path::{PathBuf, absolute};
use std::process::ExitCode;

/// Measures the packaged functions on a local AWS and writes what it finds.
#[derive(Debug, Parser)]
struct Args {
    /// The zips of `make package`, unpacked beside them.
    #[arg(long, default_value = "target/lambda")]
    package: PathBuf,
    /// The program of `bench/`, built in the functions' profile.
    #[arg(long)]
    counted: PathBuf,
    /// Where results.json and table.md go.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    /// Runs of each side of a comparison.
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// Writes the table between its marks in docs/performance.md.
    #[arg(long)]
    docs: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measured(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let causes = std::iter::successors(error.source(), |cause| cause.source());
            eprintln!("bench: {error}{}", causes.map(|cause| format!(": {cause}")).collect::<String>());
            ExitCode::FAILURE
        }
    }
}

async fn measured(args: &Args) -> StageResult<()> {
    let (root, runs) = (root(), args.runs);
    let plan = Plan {
        package: absolute(&args.package)?,
        folder: absolute(&args.out)?,
        counted: absolute(&args.counted)?,
        root: root.clone(),
        runs,
    };
    let rows = bench::measure(&plan, &mut |what| eprintln!("bench: {what}")).await?;
    std::fs::write(plan.folder.join("results.json"), format!("{:#}\n", bench::results(&rows)))?;
    let table = bench::table(&rows);
    std::fs::write(plan.folder.join("table.md"), &table)?;
    print!("{table}");
    if args.docs {
        bench::write_into(&root.join("docs/performance.md"), &table)?;
    }
    Ok(())
}
