//! One run as a process: its step machine, the calls of its present step, and what each was answered.

use crate::support::{lease_id, voice};
use reveille::decide::budget::BudgetPolicy;
use reveille::domain::{Instant, WakeSource};
use reveille::run::{
    Answer, BudgetRun, Call, Caller, Cause, Context, IdleRun, LeaseRun, LeaseWish, Outcome, Run, Step, Target,
    UptimeRun, WakeRun, WakeWish,
};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Why a run begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arrival {
    /// `POST /wake` for the pool.
    Wake,
    /// EC2's hint that a node changed its state.
    StateChange,
    /// The idle check.
    Tick,
    /// The same event of the arrival before delivered once more: the same request id.
    TickAgain,
    /// `PUT /leases/{id}` for so many minutes.
    Lease(&'static str, i64),
    /// `DELETE /leases/{id}`.
    EndLease(&'static str),
    /// The uptime alarm.
    Uptime,
    /// The budget guard.
    Guard(BudgetPolicy),
}

impl Arrival {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Wake => "wake",
            Self::StateChange => "state-change",
            Self::Tick | Self::TickAgain => "tick",
            Self::Lease(..) => "lease",
            Self::EndLease(_) => "end-lease",
            Self::Uptime => "uptime",
            Self::Guard(_) => "guard",
        }
    }

    /// Somebody waits for the answer.
    pub(crate) fn has_caller(&self) -> bool {
        matches!(self, Self::Wake | Self::Lease(..))
    }

    fn machine(&self, ctx: Context) -> Machine {
        let lease = |id: &str, lasts| {
            let caller = Caller { class: "token:app".to_owned(), bucket: None };
            LeaseWish { id: lease_id(id), target: Some(Target::Pool(voice())), lasts, renews: false, caller }
        };
        match self {
            Self::Wake => {
                let wish = WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm);
                Machine::Wake(WakeRun::new(ctx, Cause::Wishes(vec![wish])))
            }
            Self::StateChange => Machine::Wake(WakeRun::new(ctx, Cause::StateChange)),
            Self::Tick | Self::TickAgain => Machine::Idle(IdleRun::new(ctx)),
            Self::Lease(id, minutes) => {
                Machine::Lease(LeaseRun::new(ctx, lease(id, Some(chrono::TimeDelta::minutes(*minutes)))))
            }
            Self::EndLease(id) => Machine::Lease(LeaseRun::new(ctx, lease(id, None))),
            Self::Uptime => Machine::Uptime(UptimeRun::new(ctx)),
            Self::Guard(budget) => Machine::Budget(BudgetRun::new(ctx, budget.clone())),
        }
    }
}

/// A run's step machine that can be copied.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "each stands behind an Arc of its own")]
enum Machine {
    Wake(WakeRun),
    Idle(IdleRun),
    Lease(LeaseRun),
    Uptime(UptimeRun),
    Budget(BudgetRun),
}

impl Machine {
    fn next(&mut self, answers: Vec<Answer>) -> Step {
        match self {
            Self::Wake(run) => run.next(answers),
            Self::Idle(run) => run.next(answers),
            Self::Lease(run) => run.next(answers),
            Self::Uptime(run) => run.next(answers),
            Self::Budget(run) => run.next(answers),
        }
    }
}

/// A call of the present step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    pub(crate) call: Call,
    pub(crate) answer: Option<Answer>,
    /// It was carried out once, and is sent again.
    pub(crate) again: bool,
    /// What an update will be answered, where the item is read apart from its write (a sabotage).
    pub(crate) read: Option<Answer>,
    /// The hash of all it was answered.
    key: u64,
}

/// A run under way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Process {
    pub(crate) arrival: Arrival,
    pub(crate) name: String,
    pub(crate) born: Instant,
    machine: Machine,
    pub(crate) slots: Vec<Slot>,
    /// Its signals could not be read.
    pub(crate) is_blind: bool,
    /// All that it was answered in earlier steps.
    trail: u64,
}

impl Process {
    pub(crate) fn new(arrival: Arrival, name: String, ctx: Context) -> Self {
        let (born, machine) = (ctx.now, arrival.machine(ctx));
        let mut process = Self { arrival, name, born, machine, slots: Vec::new(), is_blind: false, trail: 0 };
        assert!(process.go_on().is_none(), "a run asks for something");
        process
    }

    /// Takes the next step once every call is answered; the outcome once the run is over.
    pub(crate) fn go_on(&mut self) -> Option<Outcome> {
        while self.slots.iter().all(|slot| slot.answer.is_some()) {
            self.trail = key_of(&(self.trail, self.keys()));
            let answers = std::mem::take(&mut self.slots).into_iter().filter_map(|slot| slot.answer).collect();
            match self.machine.next(answers) {
                Step::Done(outcome) => return Some(outcome),
                Step::Calls(calls) => {
                    let open = |call| Slot { call, answer: None, again: false, read: None, key: 0 };
                    self.slots = calls.into_iter().map(open).collect();
                }
            }
        }
        None
    }

    fn keys(&self) -> Vec<(u64, bool)> {
        self.slots.iter().map(|slot| (slot.key, slot.again)).collect()
    }

    /// Takes an answer, or what an answer will be.
    pub(crate) fn answer(&mut self, n: usize, answer: Answer, is_final: bool) {
        let slot = &mut self.slots[n];
        slot.key = key_of(&(is_final, format!("{answer:?}")));
        if is_final { slot.answer = Some(answer) } else { slot.read = Some(answer) }
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.slots.len()).filter(|n| self.slots[*n].answer.is_none())
    }
}

/// A machine is a fold over its answers: where it began, what it was answered and what it waits for is all there is to it.
impl Hash for Process {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.born, self.trail, self.keys(), self.is_blind).hash(state);
    }
}

pub(crate) fn key_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A part of a state that is shared between the states that have it, with its hash beside it.
#[derive(Clone)]
pub(crate) struct Keyed<T> {
    value: Arc<T>,
    key: u64,
}

impl<T: Hash + Clone> Keyed<T> {
    pub(crate) fn new(value: T) -> Self {
        let key = key_of(&value);
        Self { value: Arc::new(value), key }
    }

    /// This part after a change.
    pub(crate) fn with(&self, change: impl FnOnce(&mut T)) -> Self {
        let mut value = T::clone(&self.value);
        change(&mut value);
        Self::new(value)
    }
}

impl<T> std::ops::Deref for Keyed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Hash for Keyed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl<T> PartialEq for Keyed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> std::fmt::Debug for Keyed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.key)
    }
}
