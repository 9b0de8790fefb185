//! Runs an exploration to its end and says what it saw.

use crate::carry::{How, carry};
use crate::explore::{Action, Explore};
use crate::laws::Event;
use crate::process::Process;
use crate::scenario::Scenario;
use crate::state::{Law, State};
use crate::support::clock;
use reveille::run::{Answer, Call};
use reveille::world::{World, call_name};
use stateright::report::{ReportData, ReportDiscovery, Reporter};
use stateright::{Checker, HasDiscoveries, Model};
use std::collections::BTreeMap;
use std::time::Duration;

/// Explores the whole state space: no law is broken, and every event was met on the way.
pub(crate) fn check(scenario: Scenario, events: &[Event]) {
    let name = scenario.name;
    let explored = explore(scenario, usize::MAX, false);
    let missed: Vec<_> = events.iter().filter(|event| !explored.met.contains(event)).collect();
    assert!(missed.is_empty(), "{name}: never met: {missed:?}");
}

/// What an exploration saw.
pub(crate) struct Explored {
    pub(crate) unique_states: usize,
    pub(crate) met: Vec<Event>,
}

/// Explores so many states at most, and fails where a law is broken.
pub(crate) fn explore(scenario: Scenario, most: usize, shows_progress: bool) -> Explored {
    let (name, bounds) = (scenario.name, bounds(&scenario));
    let begun = std::time::Instant::now();
    let checker = Explore::new(scenario).checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.threads(if shows_progress { 2 } else { 1 }).target_state_count(most).spawn_dfs();
    let checker = if shows_progress { checker.join_and_report(&mut Progress(name)) } else { checker.join() };
    let (unique_states, seen, depth) = (checker.unique_state_count(), checker.state_count(), checker.max_depth());
    let whole = if seen < most { "complete" } else { "cut" };
    let seconds = begun.elapsed().as_secs_f32();
    println!("{name} · {bounds} · {unique_states} unique states of {seen}, depth {depth} · {whole} · {seconds:.1} s");
    if let Some((law, path)) = checker.discoveries().into_iter().next() {
        panic!("{name}: broken: {law}\n{}", trace(checker.model(), path.into_vec()));
    }
    Explored { unique_states, met: checker.model().events() }
}

/// A line now and then.
struct Progress(&'static str);

impl Reporter<Explore> for Progress {
    fn report_checking(&mut self, data: ReportData) {
        if !data.done {
            let (states, unique, seconds) = (data.total_states, data.unique_states, data.duration.as_secs());
            println!("  {}: {states} states, {unique} unique, depth {}, {seconds} s", self.0, data.max_depth);
        }
    }

    fn report_discoveries(&mut self, _: &Explore, _: BTreeMap<&'static str, ReportDiscovery<Explore>>) {}

    fn delay(&self) -> Duration {
        Duration::from_secs(5)
    }
}

/// Explores until a law is broken: this law, which nothing else would keep.
pub(crate) fn find(scenario: Scenario, law: Law) {
    let name = scenario.name;
    let checker = Explore::new(scenario).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries().into_values().next();
    let path = found.unwrap_or_else(|| panic!("{name}: nothing is broken in {} states", checker.unique_state_count()));
    let broken = path.last_state().book.broken;
    println!(
        "{name}: {broken:?} after {} states\n{}",
        checker.unique_state_count(),
        trace(checker.model(), path.into_vec())
    );
    assert_eq!(broken, Some(law), "{name}");
}

fn bounds(scenario: &Scenario) -> String {
    let runs: Vec<String> = scenario
        .schedule
        .iter()
        .map(|(at, arrivals)| {
            let words: Vec<_> = arrivals.iter().map(|arrival| arrival.word()).collect();
            format!("{} {}", clock(*at), words.join("+"))
        })
        .collect();
    let b = scenario.budget;
    format!("{}; faults {}, deaths {}, stale {}, repeats {}", runs.join(", "), b.faults, b.deaths, b.stale, b.repeats)
}

/// The steps, one a line.
fn trace(model: &Explore, path: Vec<(State, Option<Action>)>) -> String {
    let lines = path.iter().filter_map(|(state, action)| Some(line(model, state, action.as_ref()?)));
    lines.collect::<Vec<_>>().join("\n")
}

fn line(model: &Explore, state: &State, action: &Action) -> String {
    let what = match action {
        Action::Make { run, slot, how } => made(model, state, *run, *slot, *how),
        Action::Die { run } => format!("{} dies", state.live[*run].name),
        Action::Land { flight } => {
            format!("late, of {}: {}", state.flights[*flight].by, call_name(&state.flights[*flight].call))
        }
        Action::Hand(n) => format!("by hand: {:?}", model.scenario.hands[*n]),
        Action::Advance => "time moves on".to_owned(),
        Action::Calm => "calm ticks".to_owned(),
    };
    format!("  {} {what}", clock(state.world.now()))
}

fn made(model: &Explore, state: &State, run: usize, slot: usize, how: How) -> String {
    let mut process = Process::clone(&state.live[run]);
    carry(&model.scenario, &mut World::clone(&state.world), &mut process, slot, how, &state.views);
    let name = process.name.clone();
    let slot = &process.slots[slot];
    let how = if how == How::Plain { String::new() } else { format!(" {how:?}") };
    format!("{name}: {}{}{how}{}", call_name(&slot.call), subject(&slot.call), said(slot.answer.as_ref()))
}

fn subject(call: &Call) -> String {
    match call {
        Call::Claim { node, claim, .. } => format!(" {:?} {node}", claim.kind),
        Call::Start { node } | Call::Stop { node, .. } | Call::GiveLease { node, .. } => format!(" {node}"),
        Call::RecordAnswer { node, answer, .. } => format!(" {node} {answer:?}"),
        Call::WriteFacts { facts, .. } => format!(" {}", words(&format!("{facts:?}"), 40)),
        Call::ClaimAlert { key, .. } | Call::MarkPublished { key } => format!(" {}", key.0),
        Call::Publish { alert } => format!(" {}", alert.key.0),
        _ => String::new(),
    }
}

/// What was answered, as far as it is worth a line.
fn said(answer: Option<&Answer>) -> String {
    let Some(answer) = answer else { return " (no answer yet)".to_owned() };
    let text = format!("{answer:?}");
    let error = text.split("code: \"").nth(1).filter(|_| text.contains("(Err(CallError")).map(|rest| words(rest, 24));
    match answer {
        _ if error.is_some() => format!(" => {}", error.unwrap_or_default()),
        Answer::Nodes(Ok(nodes)) => {
            let states: Vec<_> = nodes.iter().map(|node| format!("{} {:?}", node.id, node.state)).collect();
            format!(" => {}", states.join(", "))
        }
        Answer::Readiness(_) | Answer::Start(_) | Answer::Stop(_) | Answer::AlertClaim(_) => format!(" => {text}"),
        Answer::Claim(_) | Answer::Lease(_) | Answer::Demand(_) => format!(" => {}", words(&text, 17)),
        _ => String::new(),
    }
}

fn words(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
