//! What an operator sees and says. Every look is a run of the functions' own code that is kept from changing anything;
//! everything that is done is asked of the wake function.

mod aws;
mod doctor;
mod events;
mod fault;
mod look;
mod report;
mod session;
mod show;
mod status;
mod steer;
mod wait;

use chrono::TimeDelta;
use clap::{Args, Subcommand};
use fault::{EXIT_CODES, Fault};
use reveille::operator::Meant;
use serde_json::json;
use session::Reach;
use std::io::Write as _;
use std::process::ExitCode;

/// The functions of a deployment.
const FUNCTIONS: [&str; 4] = ["wake", "idle-check", "uptime-alarm", "budget-guard"];

/// The node or pool that is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// The node's Name tag or id; without one, the pool's only node
    node: Option<String>,
    /// The pool; needed only where there are several and none is the default
    #[arg(long)]
    pool: Option<String>,
}

impl From<Which> for Meant {
    fn from(which: Which) -> Self {
        Self { pool: which.pool, node: which.node }
    }
}

/// The operator's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Why a node is on, since when, what counted last, when it may stop, today's hours and money, the gate
    #[command(
        after_help = "Examples:\n  reveille status\n  reveille status --pool voice --json | jq '.pools[].nodes[].reason'"
    )]
    Status {
        /// Only this pool
        #[arg(long)]
        pool: Option<String>,
        #[command(flatten)]
        reach: Reach,
    },
    /// Wakes a node, as POST /wake does
    #[command(after_help = "Examples:\n  reveille wake\n  reveille wake gpu-1 --wait")]
    Wake {
        #[command(flatten)]
        which: Which,
        /// Waits until it is ready
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// Waits until a node is ready; wakes none
    #[command(after_help = "Example:\n  reveille wake && reveille wait --timeout 5m && ./run-the-tests")]
    Wait {
        #[command(flatten)]
        which: Which,
        /// Gives up after so long
        #[arg(long, default_value = "10m", value_parser = steer::duration)]
        timeout: TimeDelta,
        #[command(flatten)]
        reach: Reach,
    },
    /// Keeps a running node for a time, whatever the signals and the budget say; wakes none
    #[command(after_help = "Example:\n  reveille hold --for 2h --note 'demonstration at 15:00'")]
    Hold {
        #[command(flatten)]
        which: Which,
        /// For so long from now on: 2h, 90m, 3d; at most 31 days
        #[arg(long = "for", value_name = "TIME", value_parser = steer::duration)]
        lasts: Option<TimeDelta>,
        /// Why, for the next person
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        reach: Reach,
    },
    /// Ends a hold
    #[command(after_help = "Example:\n  reveille release gpu-1")]
    Release {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        reach: Reach,
    },
    /// Every decision with its reason, everything that was done, and every launch
    #[command(
        after_help = "Examples:\n  reveille events --since 12h\n  reveille events gpu-1 --since 1d --each\n  reveille events --json | jq '.events[] | select(.what == \"start\")'\n\nA star marks what was done or seen; the rest is what was decided."
    )]
    Events {
        /// Only this node, by its Name tag or id
        node: Option<String>,
        /// How far back: 12h, 1d, 2d 6h
        #[arg(long, default_value = "1d", value_name = "TIME", value_parser = steer::duration)]
        since: TimeDelta,
        /// Only this pool
        #[arg(long)]
        pool: Option<String>,
        /// A line for each decision; without, what stays the same from tick to tick is one
        #[arg(long)]
        each: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// What each month really took: node hours, starts, waits, money against 24/7, and what woke it for nothing
    #[command(
        after_help = "Examples:\n  reveille report\n  reveille report --months 3 --format md\n  reveille report --since 2026-09 --json | jq '.pools[].months[].node_hours'"
    )]
    Report {
        #[command(flatten)]
        asked: report::Asked,
        #[command(flatten)]
        reach: Reach,
    },
    /// Looks for what is wrong before it costs: rights, schedules, metrics, logs, tags, prices, clocks and more
    #[command(after_help = "Example:\n  reveille doctor --json | jq '.checks[] | select(.findings != [])'")]
    Doctor {
        #[command(flatten)]
        reach: Reach,
    },
    /// Closes or opens a pool's gate: behind a closed one no wake is taken and no node started
    Gate {
        #[command(subcommand)]
        to: GateTo,
    },
}

/// What becomes of the gate.
#[derive(Debug, Subcommand)]
pub(crate) enum GateTo {
    /// No wake is taken any more; what runs is stopped when it is idle
    #[command(after_help = "Example:\n  reveille gate close --for 2h --note 'the model is being moved'")]
    Close {
        /// The pool; needed only where there are several and none is the default
        #[arg(long)]
        pool: Option<String>,
        /// Opens by itself after so long; without, a person has to
        #[arg(long = "for", value_name = "TIME", value_parser = steer::duration)]
        lasts: Option<TimeDelta>,
        /// Stops running nodes too, each once it has no call
        #[arg(long)]
        drain: bool,
        /// Why; callers are told it
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        reach: Reach,
    },
    /// Wakes are taken again
    #[command(after_help = "Example:\n  reveille gate open --note 'it is moved'")]
    Open {
        /// The pool; needed only where there are several and none is the default
        #[arg(long)]
        pool: Option<String>,
        /// Why
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        reach: Reach,
    },
}

/// What a command has to say, and the exit code that goes with it.
#[derive(Debug)]
pub(crate) struct Said {
    text: String,
    code: u8,
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self { text, code: 0 }
    }
}

/// The exit codes, for the command's own help.
pub(crate) fn exit_codes() -> &'static str {
    EXIT_CODES
}

/// Runs one command to its end.
pub(crate) fn run(command: Command) -> ExitCode {
    let as_json = command.reach().json;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let said = match runtime {
        Ok(runtime) => runtime.block_on(carry_out(command)),
        Err(error) => Err(Fault::Usage(format!("no runtime: {error}"))),
    };
    match said {
        Ok(said) => {
            // Whoever closes the pipe has read enough.
            let _ = std::io::stdout().write_all(said.text.as_bytes());
            ExitCode::from(said.code)
        }
        Err(fault) => {
            let why = show::plain(fault.to_string().trim_end());
            eprintln!("reveille: {why}");
            if as_json {
                let value = json!({ "error": why, "exit_code": fault.code() });
                let _ = std::io::stdout().write_all(show::json(&value).as_bytes());
            }
            ExitCode::from(fault.code())
        }
    }
}

impl Command {
    fn reach(&self) -> &Reach {
        match self {
            Self::Status { reach, .. }
            | Self::Wake { reach, .. }
            | Self::Wait { reach, .. }
            | Self::Hold { reach, .. }
            | Self::Release { reach, .. }
            | Self::Events { reach, .. }
            | Self::Report { reach, .. }
            | Self::Doctor { reach }
            | Self::Gate { to: GateTo::Close { reach, .. } | GateTo::Open { reach, .. } } => reach,
        }
    }
}

/// What is waited for where a function is asked.
const ASKING: &str = "asking the wake function";

async fn carry_out(command: Command) -> Result<Said, Fault> {
    let said = match command {
        Command::Status { pool, reach } => status::show(&reach, pool.as_deref()).await?,
        Command::Wake { which, wait, reach } => {
            let woken = show::waiting(ASKING, steer::wake(&reach, which.clone().into())).await?;
            if wait { wait::wait(&reach, which.into(), TimeDelta::minutes(10)).await? } else { woken }
        }
        Command::Wait { which, timeout, reach } => wait::wait(&reach, which.into(), timeout).await?,
        Command::Hold { which, lasts, note, reach } => {
            show::waiting(ASKING, steer::hold(&reach, which.into(), lasts, note)).await?
        }
        Command::Release { which, reach } => show::waiting(ASKING, steer::release(&reach, which.into())).await?,
        Command::Events { node, since, pool, each, reach } => {
            events::show(&reach, events::Asked { since, node, pool, each }).await?
        }
        Command::Report { asked, reach } => report::show(&reach, asked).await?,
        Command::Doctor { reach } => return doctor::show(&reach).await,
        Command::Gate { to: GateTo::Close { pool, lasts, drain, note, reach } } => {
            show::waiting(ASKING, steer::close(&reach, pool, lasts, drain, note)).await?
        }
        Command::Gate { to: GateTo::Open { pool, note, reach } } => {
            show::waiting(ASKING, steer::open(&reach, pool, note)).await?
        }
    };
    Ok(said.into())
}
