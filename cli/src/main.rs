//! The operator's command: see and steer a deployment (`ops`), check a configuration before it is deployed, see which lines of
//! a log would wake, and compare plans on a trace.

mod lines;
mod ops;
mod plan;

use clap::{CommandFactory as _, Parser, Subcommand};
use reveille::access_log::FilterSpec;
use reveille::config::{self, Access, Config};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(
    name = "reveille",
    max_term_width = 80,
    version,
    about = "Wakes a GPU node when somebody wants it, and puts it to sleep when nobody does",
    after_help = ops::exit_codes()
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Ops(ops::Command),
    /// Writes completions for a shell
    #[command(
        after_help = "Example:\n  reveille completions bash > ~/.local/share/bash-completion/completions/reveille"
    )]
    Completions {
        /// Which
        shell: clap_complete::Shell,
    },
    /// Checks the REVEILLE_ variables of this shell and lists every fault; exits 1 if there is one
    #[command(after_help = "Example:\n  set -a; . ./function.env; set +a; reveille config")]
    Config {
        /// Prints the reference of every setting instead
        #[arg(long)]
        reference: bool,
    },
    /// Reads an access log and says which lines would wake a node, and why the others would not
    #[command(
        after_help = "Examples:\n  reveille lines --path /v1/calls access.log\n  zcat access.log.gz | reveille lines --path /v1/calls -\n  reveille lines --path /v1 --each access.log"
    )]
    Lines {
        /// A prefix of the paths that are use; may be given several times
        #[arg(long = "path", required = true)]
        paths: Vec<String>,
        /// Statuses that count, such as 200-299 or 503; may be given several times
        #[arg(long = "status")]
        statuses: Vec<String>,
        /// Reads this format only: auto, combined, common, alb, json, apigateway or caddy
        #[arg(long)]
        format: Option<String>,
        /// Name of a field of JSON lines, such as path=url.path or duration_ms=took; may be given several times
        #[arg(long = "field", value_name = "KEY=NAME", value_parser = lines::field)]
        fields: Vec<(String, String)>,
        /// Shows the verdict and the duration of each line, not only the counts
        #[arg(long)]
        each: bool,
        /// The log, or - for standard input
        file: PathBuf,
    },
    /// Replays a trace through the decisions of the functions: what each plan costs, and whom it keeps waiting
    #[command(
        after_help = "Examples:\n  reveille plan --trace calls.csv\n  reveille plan --trace access.log.gz --path /v1/calls --zone Asia/Seoul\n  reveille plan --trace nab_elb_5min_counts.csv.gz --bin-seconds 300 --thin 20 --idle-minutes 10,30\n  reveille plan --trace calls.csv --grid --idle-minutes 10,20,30 --prewarm-minutes 10,30 --tick-minutes 5,10 --format csv"
    )]
    Plan(Box<plan::PlanArgs>),
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Ops(command) => ops::run(command),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "reveille", &mut std::io::stdout());
            ExitCode::SUCCESS
        }
        Command::Config { reference: true } => {
            print!("{}", config::reference());
            ExitCode::SUCCESS
        }
        Command::Config { reference: false } => check(),
        Command::Plan(args) => match plan::show(*args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => {
                eprintln!("reveille plan: {fault}");
                ExitCode::from(2)
            }
        },
        Command::Lines { paths, statuses, format, fields, each, file } => {
            let statuses = (!statuses.is_empty()).then_some(statuses);
            let fields = fields.into_iter().collect();
            let spec = FilterSpec { paths, statuses, format, fields, ..FilterSpec::default() };
            match lines::show(spec, each, &file) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("reveille lines: {error}");
                    ExitCode::from(2)
                }
            }
        }
    }
}

fn check() -> ExitCode {
    match Config::from_env() {
        Ok(config) => {
            for (name, pool) in &config.pools {
                let calls = if pool.calls_observed {
                    "observed"
                } else {
                    "UNOBSERVED: a call longer than the idle time can be cut"
                };
                println!(
                    "pool {name}: {} signals, {} request logs, calls {calls}",
                    pool.policy.signals.len(),
                    pool.log_groups.len()
                );
            }
            match &config.access {
                Access::Iam => println!("access: iam, the function URL has to be of the type AWS_IAM"),
                Access::Token(hashes) => {
                    println!("access: token, taken are {}", hashes.keys().cloned().collect::<Vec<_>>().join(", "));
                }
            }
            println!("no fault");
            ExitCode::SUCCESS
        }
        Err(faults) => {
            for fault in faults.0 {
                eprintln!("{fault}");
            }
            ExitCode::FAILURE
        }
    }
}
