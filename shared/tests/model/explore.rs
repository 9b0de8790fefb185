//! The state space: what may happen next in a state, and what becomes of it.

use crate::carry::{How, carry, is_effect, is_private, spend, ways};
use crate::laws::{Before, Event, Moment, is_told_of_node, is_told_of_wish, is_up};
use crate::process::{Arrival, Keyed, Process};
use crate::scenario::{Hand, Scenario};
use crate::state::{Book, Flight, Law, State, View};
use crate::support::{id, minutes, voice};
use reveille::domain::{Instant, NodeId, NodeSeen, NodeState, PoolRecord};
use reveille::run::Call;
use reveille::world::World;
use stateright::{Model, Property};
use std::sync::atomic::{AtomicU32, Ordering};

/// What happens next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// A run's call is made.
    Make { run: usize, slot: usize, how: How },
    /// A run dies.
    Die { run: usize },
    /// A call that was not answered takes effect after all.
    Land { flight: usize },
    /// A person starts or stops a node.
    Hand(usize),
    /// The next instant of the schedule comes.
    Advance,
    /// The schedule is over: calm ticks follow.
    Calm,
}

/// Calm ticks after the schedule; nothing goes wrong any more.
const CALM_TICKS: i32 = 8;

/// A wish is met by so many of them.
const MET_WITHIN: i32 = 3;

/// One exploration.
pub(crate) struct Explore {
    pub(crate) scenario: Scenario,
    /// The events that were met, a bit each.
    met: AtomicU32,
}

/// What one action changes.
struct Change {
    world: World,
    book: Book,
    views: Vec<View>,
}

impl Explore {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self { scenario, met: AtomicU32::new(0) }
    }

    /// What was met so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        let bits = self.met.load(Ordering::Relaxed);
        Event::ALL.iter().copied().filter(|event| bits & (1 << *event as u32) != 0).collect()
    }

    fn meet(&self, events: impl IntoIterator<Item = Event>) {
        let bits = events.into_iter().fold(0, |bits, event| bits | (1 << event as u32));
        self.met.fetch_or(bits, Ordering::Relaxed);
    }

    fn process(&self, arrival: &Arrival, n: usize, now: Instant) -> Keyed<Process> {
        let name = format!("{}-{}", arrival.word(), if matches!(arrival, Arrival::TickAgain) { n - 1 } else { n });
        let ctx = self.scenario.context(&name, now);
        Keyed::new(Process::new(arrival.clone(), name, ctx))
    }

    /// The runs that begin at an instant of the schedule.
    fn arrivals(&self, instant: usize) -> impl Iterator<Item = Keyed<Process>> + '_ {
        let earlier = self.scenario.schedule[..instant].iter().map(|(_, arrivals)| arrivals.len()).sum::<usize>();
        let (now, arrivals) = &self.scenario.schedule[instant];
        arrivals.iter().enumerate().map(move |(n, arrival)| self.process(arrival, earlier + n + 1, *now))
    }

    /// Makes one call; true once the run is over.
    fn make(&self, change: &mut Change, process: &mut Process, n: usize, how: How) -> bool {
        let call = process.slots[n].call.clone();
        let before = Before::new(&mut change.world, Some(&call));
        carry(&self.scenario, &mut change.world, process, n, how, &change.views);
        if matches!(call, Call::ReadActivity { .. }) && how == How::Refused {
            process.is_blind = true;
            self.meet([Event::Blind]);
        }
        let record = change.world.record(&voice()).clone();
        let (scenario, after) = (&self.scenario, &change.world);
        let moment = Moment { scenario, before: &before, after, record: &record };
        self.meet(moment.judge(&call, process, n, how, &mut change.book));
        let outcome = process.go_on();
        if let Some(outcome) = &outcome {
            self.meet(moment.judge_end(process, outcome, &mut change.book));
        }
        self.tidy(&before, change);
        outcome.is_some()
    }

    /// What EC2 showed before may be shown on for a while; logs that nothing reads are dropped.
    fn tidy(&self, before: &Before, change: &mut Change) {
        let (world, views) = (&mut change.world, &mut change.views);
        world.calls.clear();
        world.published.clear();
        world.effects.clear();
        if self.scenario.budget.stale == 0 {
            return;
        }
        let now = world.now();
        for was in before.changed(world) {
            views.retain(|view| view.seen != *was && Some(&view.seen) != world.node(&was.id));
            views.push(View { seen: was.clone(), ended: now });
        }
        views.retain(|view| now - view.ended < self.scenario.stale_for);
    }

    fn change(&self, state: &State) -> Change {
        Change { world: World::clone(&state.world), book: Book::clone(&state.book), views: state.views.clone() }
    }

    fn take(&self, state: &mut State, change: Change) {
        let Change { world, mut book, views } = change;
        // What is too long ago to matter is forgotten, or no two histories would ever meet.
        book.ready.retain(|_, at| world.now() - *at < self.scenario.policy.prewarm);
        (state.world, state.views) = (Keyed::new(world), views);
        if *state.book != book {
            state.book = Keyed::new(book);
        }
    }

    fn made(&self, state: &State, run: usize, n: usize, how: How) -> State {
        let mut next = state.clone();
        let (mut change, mut process) = (self.change(state), Process::clone(&state.live[run]));
        let call = process.slots[n].call.clone();
        if matches!(how, How::Stale(_)) {
            self.meet([Event::StaleLook]);
        }
        spend(&mut next.left, how);
        let is_over = self.make(&mut change, &mut process, n, how);
        if how == How::Late {
            let until = process.born + self.scenario.context("", process.born).time_out;
            next.flights.push(Flight { call, by: process.name.clone(), until });
        }
        if is_over {
            next.live.remove(run);
        } else {
            next.live[run] = Keyed::new(process);
        }
        self.take(&mut next, change);
        next
    }

    fn landed(&self, state: &State, flight: usize) -> State {
        let mut next = state.clone();
        let flight = next.flights.remove(flight);
        let mut change = self.change(state);
        let before = Before::new(&mut change.world, None);
        change.world.answer(&flight.call);
        let record = change.world.record(&voice()).clone();
        let (scenario, after) = (&self.scenario, &change.world);
        let moment = Moment { scenario, before: &before, after, record: &record };
        if let Call::Start { node } | Call::Stop { node, .. } = &flight.call
            && moment.effect_on(node, &mut change.book).is_some()
        {
            self.meet([Event::LateEffect]);
        }
        self.tidy(&before, &mut change);
        self.take(&mut next, change);
        next
    }

    fn acted_by_hand(&self, state: &State, n: usize) -> Option<State> {
        let mut next = state.clone();
        next.hands &= !(1 << n);
        let mut change = self.change(state);
        let before = Before::new(&mut change.world, None);
        let node = match self.scenario.hands[n] {
            Hand::Start(node) => change.world.start(&id(node)).map(|_| node),
            Hand::Stop(node) => change.world.stop(&id(node), false).map(|_| node),
        };
        let node = id(node.ok()?);
        before.changed(&change.world).next()?;
        if matches!(self.scenario.hands[n], Hand::Stop(_)) {
            // Whoever stops a node by hand takes the wakes back, and what was said of it.
            change.book.unmet.clear();
            change.book.ready.remove(&node);
        }
        change.book.by_hand.insert(node);
        self.meet([Event::ByHand]);
        self.tidy(&before, &mut change);
        self.take(&mut next, change);
        Some(next)
    }

    fn dies_at(&self, process: &Process, now: Instant) -> bool {
        process.born + self.scenario.context("", process.born).time_out <= now
    }

    /// How many runs the next instant ends.
    fn ended_by_time(&self, state: &State) -> Option<usize> {
        let (now, _) = self.scenario.schedule.get(state.next)?;
        Some(state.live.iter().filter(|process| self.dies_at(process, *now)).count())
    }

    fn advanced(&self, state: &State) -> Option<State> {
        let mut next = state.clone();
        let killed = u8::try_from(self.ended_by_time(state)?).ok()?;
        next.left.deaths = state.left.deaths.checked_sub(killed)?;
        let (now, _) = self.scenario.schedule.get(state.next)?;
        let mut change = self.change(state);
        change.book.crashed |= killed > 0;
        self.pass_time(&mut change, *now);
        next.live.retain(|process| !self.dies_at(process, *now));
        next.flights.retain(|flight| flight.until > *now);
        next.live.extend(self.arrivals(state.next));
        next.next += 1;
        self.take(&mut next, change);
        Some(next)
    }

    fn pass_time(&self, change: &mut Change, now: Instant) {
        let before = Before::new(&mut change.world, None);
        change.world.set_now(now);
        let record = change.world.record(&voice()).clone();
        if record.nodes.keys().any(|node| is_up(&change.world, &record, node)) {
            change.book.unmet.clear();
        }
        self.tidy(&before, change);
    }

    /// Ticks without a fault until all sleep and nothing is wanted; what is left then is broken.
    fn calmed(&self, state: &State) -> State {
        let mut change = self.change(state);
        let start = change.world.now();
        for tick in 1..=CALM_TICKS {
            self.pass_time(&mut change, start + minutes(5) * tick);
            let record = change.world.record(&voice()).clone();
            let is_wanting = !change.book.unmet.is_empty() && !is_told_of_wish(&change.book);
            if is_wanting && tick > MET_WITHIN {
                change.book.broken.get_or_insert(Law::Wanted);
            }
            let is_asleep = awake(&change.world, &record).next().is_none();
            if change.book.broken.is_some() || (change.book.unmet.is_empty() && is_asleep) {
                break;
            }
            self.meet((!change.book.unmet.is_empty()).then_some(Event::MetAfterWait));
            let mut process = Process::clone(&self.process(&Arrival::Tick, 100, change.world.now()));
            while change.book.broken.is_none() {
                let n = process.open().next().expect("a call that is to be made");
                if self.make(&mut change, &mut process, n, How::Plain) {
                    break;
                }
            }
        }
        let record = change.world.record(&voice()).clone();
        if awake(&change.world, &record).any(|node| !is_told_of_node(&change.book, &node)) {
            change.book.broken.get_or_insert(Law::Idle);
        }
        // All that is left to tell apart is what was broken.
        State {
            world: Keyed::new(World::at(change.world.now())),
            live: Vec::new(),
            next: 0,
            flights: Vec::new(),
            views: Vec::new(),
            left: Default::default(),
            hands: 0,
            book: Keyed::new(Book { broken: change.book.broken, ..Book::default() }),
            is_over: true,
        }
    }

    fn died(&self, state: &State, run: usize) -> State {
        let mut next = state.clone();
        next.live.remove(run);
        next.left.deaths -= 1;
        next.book = state.book.with(|book| book.crashed = true);
        next
    }

    fn offer(&self, state: &State, run: usize, slot: usize, actions: &mut Vec<Action>) {
        let ways = ways(&state.live[run].slots[slot], state.left, &state.views);
        actions.extend(ways.into_iter().map(|how| Action::Make { run, slot, how }));
    }

    fn offer_death(&self, state: &State, run: usize, actions: &mut Vec<Action>) {
        // Whether it dies before or after a read nobody can tell.
        let process = &state.live[run];
        let may_act = process.open().any(|n| is_effect(&process.slots[n].call));
        actions.extend((state.left.deaths > 0 && may_act).then_some(Action::Die { run }));
    }
}

fn awake<'a>(world: &'a World, record: &'a PoolRecord) -> impl Iterator<Item = NodeId> + 'a {
    let is_awake = |id: &&NodeId| world.node(id).is_some_and(|seen: &NodeSeen| seen.state != NodeState::Stopped);
    record.nodes.keys().filter(is_awake).cloned()
}

impl Model for Explore {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let scenario = &self.scenario;
        let mut world = scenario.start.clone();
        world.calls.clear();
        world.published.clear();
        world.effects.clear();
        let views = scenario.views.iter().map(|(seen, ended)| View { seen: seen.clone(), ended: *ended });
        vec![State {
            world: Keyed::new(world),
            live: self.arrivals(0).collect(),
            next: 1,
            flights: Vec::new(),
            views: views.collect(),
            left: scenario.budget,
            hands: (0..scenario.hands.len()).fold(0, |bits, n| bits | (1 << n)),
            book: Keyed::new(Book::default()),
            is_over: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.is_over || state.book.broken.is_some() {
            return;
        }
        let private = |(run, process): (usize, &Keyed<Process>)| {
            process.open().find(|n| is_private(&process.slots[*n].call)).map(|slot| (run, slot))
        };
        if let Some((run, slot)) = state.live.iter().enumerate().find_map(private) {
            self.offer(state, run, slot, actions);
            return self.offer_death(state, run, actions);
        }
        for (run, process) in state.live.iter().enumerate() {
            let most = if self.scenario.any_order { usize::MAX } else { 1 };
            process.open().take(most).for_each(|slot| self.offer(state, run, slot, actions));
            self.offer_death(state, run, actions);
        }
        actions.extend((0..state.flights.len()).map(|flight| Action::Land { flight }));
        let hands = (0..self.scenario.hands.len()).filter(|n| state.hands & (1 << n) != 0);
        actions.extend(hands.map(Action::Hand));
        let ended = self.ended_by_time(state);
        actions.extend(ended.filter(|ended| *ended <= usize::from(state.left.deaths)).map(|_| Action::Advance));
        let is_through = state.next == self.scenario.schedule.len() && state.live.is_empty();
        actions.extend(is_through.then_some(Action::Calm));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        match action {
            Action::Make { run, slot, how } => Some(self.made(state, run, slot, how)),
            Action::Die { run } => Some(self.died(state, run)),
            Action::Land { flight } => Some(self.landed(state, flight)),
            Action::Hand(n) => self.acted_by_hand(state, n),
            Action::Advance => self.advanced(state),
            Action::Calm => Some(self.calmed(state)),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nobody who was told ready loses the node", |_, state| holds(state, Law::Ready)),
            Property::always("no live lease loses its node", |_, state| holds(state, Law::Lease)),
            Property::always("unknown stops no node", |_, state| holds(state, Law::Unknown)),
            Property::always("one reading that lags stops no node", |_, state| holds(state, Law::Readings)),
            Property::always("no more STARTs than wanted less supply", |_, state| holds(state, Law::Supply)),
            Property::always("no message twice without a crash", |_, state| holds(state, Law::Twice)),
            Property::always("every wanted node ends started or told", |_, state| holds(state, Law::Wanted)),
            Property::always("every idle node ends stopped or told", |_, state| holds(state, Law::Idle)),
        ]
    }
}

fn holds(state: &State, law: Law) -> bool {
    state.book.broken != Some(law)
}
