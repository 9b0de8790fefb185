//! The agent on a GPU node: started each minute, it writes the node's beat into the ledger.
//!
//! While the node comes up, a run looks every few seconds, so that a caller who waits hears within seconds that it is
//! ready; once it stands, one look and one write a minute.

mod command;
mod lines;
mod look;
mod memory;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod web;

use clap::Parser;
use look::Looker;
use memory::{is_news, next};
use reveille::aws::{self, BeatWriter, Clock, ClockFault};
use reveille::domain::{Beat, NodeId};
use reveille::error::CallError;
use settings::Settings;
use std::io;
use std::process::ExitCode;
use std::time::Duration;
use store::{Kept, Store, StoreFault};
use tokio::time::{Instant as Moment, sleep};
use web::chain;

/// How long a run looks on. The timer comes each minute; a look takes 10 s at worst.
const FAST_FOR: Duration = Duration::from_secs(50);

/// Exit codes of the page: what could not be written is tried again in a minute, a fault of the settings waits for a person.
const NOT_WRITTEN: u8 = 1;
const MISCONFIGURED: u8 = 2;

#[derive(Debug, Parser)]
#[command(
    name = "reveille-beat",
    version,
    about = "Writes this node's beat into the ledger: whether it is ready and in use",
    after_help = "Examples:\n  reveille-beat           one run, as the timer starts it each minute\n  reveille-beat --print   what the settings see, on the node, without writing it\n\nExit codes: 0 done, 1 could not write, 2 configuration.",
    after_long_help = format!(
        "Examples:\n  reveille-beat\n      One run, as the timer starts it each minute\n  set -a; . /etc/reveille/beat.env; set +a; reveille-beat --print\n      What the settings see, on the node, without writing it\n\nExit codes: 0 done, 1 could not write, 2 configuration.\n\n{}",
        settings::help()
    )
)]
struct Args {
    /// Looks once and prints the beat as JSON; writes and remembers nothing
    #[arg(long)]
    print: bool,
}

/// What ends a run before it has done its work.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Store(#[from] StoreFault),
    #[error(transparent)]
    Clock(#[from] ClockFault),
    #[error("print the beat failed")]
    Print(#[source] serde_json::Error),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_target(false)
        .with_writer(io::stderr)
        .init();
    let settings = match Settings::from_env() {
        Ok(settings) => settings,
        Err(faults) => {
            tracing::error!("{faults}");
            return ExitCode::from(MISCONFIGURED);
        }
    };
    let done = if args.print { print(&settings).await.map(|()| true) } else { run(&settings).await };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_WRITTEN),
        Err(fault) => {
            tracing::error!("{}", chain(&fault));
            ExitCode::from(NOT_WRITTEN)
        }
    }
}

/// One look, from what is remembered.
async fn print(settings: &Settings) -> Result<(), Fault> {
    let mut kept = Store::new(&settings.state).load();
    let beat = beat(settings, &mut Looker::new(settings), &mut kept).await?;
    println!("{}", serde_json::to_string_pretty(&beat).map_err(Fault::Print)?);
    Ok(())
}

/// Looks until the node stands or the time is over; false where the newest of what there was to write was not written.
///
/// The state is kept before a write: a beat that does not get through loses no use.
async fn run(settings: &Settings) -> Result<bool, Fault> {
    let store = Store::new(&settings.state);
    let Some(_lock) = store.lock()? else {
        tracing::info!("another run is at work");
        return Ok(true);
    };
    let (mut kept, mut looker) = (store.load(), Looker::new(settings));
    let mut sender = None;
    let (started, mut written, mut is_written) = (Moment::now(), None, true);
    loop {
        let beat = beat(settings, &mut looker, &mut kept).await?;
        store.save(&kept)?;
        if is_news(written.as_ref(), &beat) {
            let sender = match &mut sender {
                Some(sender) => sender,
                None => sender.insert(Sender::new(settings).await),
            };
            is_written = match sender.send(&beat).await {
                Ok(()) => {
                    tracing::info!(
                        ready = beat.ready,
                        row = beat.row,
                        open = beat.open,
                        counted = beat.counted,
                        gpu = beat.gpu,
                        "beat"
                    );
                    kept.memory.written();
                    store.save(&kept)?;
                    true
                }
                Err(error) => {
                    tracing::error!(code = error.code, "{error}");
                    false
                }
            };
            written = is_written.then(|| beat.clone());
        }
        if beat.row >= settings.row || started.elapsed() + settings.fast > FAST_FOR {
            return Ok(is_written);
        }
        sleep(settings.fast).await;
    }
}

/// Looks once, and remembers it.
async fn beat(settings: &Settings, looker: &mut Looker<'_>, kept: &mut Kept) -> Result<Beat, Fault> {
    let sample = looker.look(&mut kept.trail).await;
    let now = Clock::new(settings.clock_url.as_deref()).now().await?;
    // Without a GPU there is no figure to compare.
    let gpu_use = settings.gpu.as_ref().map_or(u8::MAX, |gpu| gpu.percent);
    let (memory, beat) = next(&kept.memory, &sample, gpu_use, now);
    kept.memory = memory;
    Ok(beat)
}

/// The way to the ledger.
struct Sender {
    writer: BeatWriter,
    node: Option<NodeId>,
}

impl Sender {
    async fn new(settings: &Settings) -> Self {
        Self { writer: BeatWriter::new(&aws::sdk_config().await, &settings.table), node: settings.node.clone() }
    }

    /// Asks for the node's own name first, where it is not known yet.
    async fn send(&mut self, beat: &Beat) -> Result<(), CallError> {
        let node = match &mut self.node {
            Some(node) => node,
            None => self.node.insert(self.writer.this_node().await?),
        };
        self.writer.write(node, beat).await
    }
}
