//! Replays of a trace on virtual time.

pub mod events;
pub mod fixed;
pub mod on_demand;
pub mod tally;
pub mod watch;

use crate::trace::TraceFault;
use events::{Event, Events, Outside};
use fixed::{ByTheClock, Clairvoyant, Hours};
use on_demand::{OnDemand, Replay};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use tally::Tally;
use watch::Watch;

/// A span of time.
pub type Seconds = i64;

/// How the nodes are run.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// A node that always runs.
    Always,
    /// A node that runs by the clock; calls outside its hours are not served.
    ByTheClock(Hours),
    /// By the decisions of the functions.
    OnDemand(Box<OnDemand>),
    /// The bound with a signal of each call: ready when the call comes, off over every gap that is longer than a boot.
    Foreseen,
    /// The bound without one: stays up over the gaps that are no longer than this.
    Kept(Seconds),
}

/// What every way is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first second that counts.
    pub from: i64,
    /// The end of what counts.
    pub to: i64,
    /// From START to ready.
    pub boot: Seconds,
    /// How long a caller waits before giving up.
    pub patience: Seconds,
}

enum Player {
    Always,
    ByTheClock(Box<ByTheClock>),
    OnDemand(Box<Replay>),
    Clairvoyant(Clairvoyant),
}

/// One way under way.
struct Playing {
    player: Player,
    tally: Tally,
}

impl Playing {
    fn new(way: &Way, span: Span, watch: Option<Watch>) -> Self {
        let mut tally = Tally::new(span.from, span.to, span.boot, span.patience);
        tally.watch = watch.map(Box::new);
        let player = match way {
            Way::Always => {
                tally.ran(span.from, span.to);
                Player::Always
            }
            Way::ByTheClock(hours) => {
                Player::ByTheClock(Box::new(ByTheClock::new(hours.clone(), span.boot, span.from)))
            }
            Way::OnDemand(plan) => {
                let mut replay = Replay::new((**plan).clone(), span.from, span.to);
                replay.watch(tally.watch.take());
                Player::OnDemand(Box::new(replay))
            }
            Way::Foreseen => Player::Clairvoyant(Clairvoyant::ahead(span.boot)),
            Way::Kept(gap) => Player::Clairvoyant(Clairvoyant::keeps(span.boot, *gap)),
        };
        Self { player, tally }
    }

    fn take(&mut self, event: Event) {
        match (&mut self.player, event.what) {
            (Player::Always, Outside::Call { lasts }) => self.tally.served(event.at, 0, lasts),
            (Player::Always, Outside::Entry) => {}
            (Player::ByTheClock(plan), _) => plan.take(&mut self.tally, event),
            (Player::OnDemand(replay), _) => replay.take(event),
            (Player::Clairvoyant(plan), _) => plan.take(&mut self.tally, event),
        }
    }

    fn finish(mut self) -> Tally {
        match self.player {
            Player::Always => self.tally,
            Player::ByTheClock(mut plan) => {
                plan.finish(&mut self.tally);
                self.tally
            }
            Player::OnDemand(replay) => replay.finish().1,
            Player::Clairvoyant(mut plan) => {
                plan.finish(&mut self.tally);
                self.tally
            }
        }
    }
}

/// Replays the events for one way, and looks at it more closely.
///
/// # Errors
/// The trace cannot be read to its end.
pub fn watched(mut events: Events, way: &Way, span: Span, watch: Watch) -> Result<Tally, TraceFault> {
    let mut playing = Playing::new(way, span, Some(watch));
    while let Some(event) = events.next_event()? {
        playing.take(event);
    }
    Ok(playing.finish())
}

/// So many events go from the reader to the replays at once, and so many such lots may wait: what is in memory does not grow
/// with the trace, and what has been read is nearly what has been replayed.
const LOT: usize = 512;
const LOTS: usize = 2;

/// Replays the events once for all ways, on so many threads. `progress` hears of every so many events.
///
/// # Errors
/// The trace cannot be read to its end.
pub fn replay(
    mut events: Events,
    ways: &[Way],
    span: Span,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Tally>, TraceFault> {
    let threads = threads.clamp(1, ways.len().max(1));
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        let mut lots: Vec<SyncSender<Arc<Vec<Event>>>> = Vec::new();
        for first in 0..threads {
            let (sender, receiver) = sync_channel::<Arc<Vec<Event>>>(LOTS);
            lots.push(sender);
            workers.push(scope.spawn(move || {
                let mine = ways.iter().enumerate().skip(first).step_by(threads);
                let mut playing: Vec<(usize, Playing)> =
                    mine.map(|(n, way)| (n, Playing::new(way, span, None))).collect();
                while let Ok(lot) = receiver.recv() {
                    for (_, way) in &mut playing {
                        lot.iter().for_each(|event| way.take(*event));
                    }
                }
                playing.into_iter().map(|(n, way)| (n, way.finish())).collect::<Vec<(usize, Tally)>>()
            }));
        }
        let read = feed(&mut events, &lots, progress);
        drop(lots);
        let mut tallies: Vec<(usize, Tally)> = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(done) => tallies.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        read?;
        tallies.sort_unstable_by_key(|(n, _)| *n);
        Ok(tallies.into_iter().map(|(_, tally)| tally).collect())
    })
}

fn feed(
    events: &mut Events,
    lots: &[SyncSender<Arc<Vec<Event>>>],
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceFault> {
    loop {
        let mut lot = Vec::with_capacity(LOT);
        while lot.len() < LOT
            && let Some(event) = events.next_event()?
        {
            lot.push(event);
        }
        if lot.is_empty() {
            return Ok(());
        }
        let (read, lot) = (u64::try_from(lot.len()).unwrap_or(0), Arc::new(lot));
        // A worker that is gone has panicked, and is heard when it is joined.
        lots.iter().for_each(|to| drop(to.send(Arc::clone(&lot))));
        progress(read);
    }
}
