//! Wakes for nothing: a source of log lines that keeps starting a node which then serves nobody is told and no longer heeded
//! for the rest of the local day (field case 20), and looking at a status never wakes nor keeps a node (field case 22).

mod support;
mod support_money;

use chrono_tz::Tz;
use reveille::decide::Reason;
use reveille::domain::{Claim, ClaimKind, Launch, NodeState, Noise, WakeSource};
use reveille::policy::Policy;
use reveille::run::{Cause, IdleRun, Outcome, Target, WakeRun, WakeWish};
use reveille::world::World;
use support::*;
use support_money::*;

/// How a day of wakes for nothing goes: one begins every so many minutes, long enough for the node to sleep again.
const EVERY: i64 = 50;

struct Day {
    world: World,
    zone: Tz,
    /// How often each tick is delivered.
    deliveries: usize,
    /// EventBridge tells of each change of a node's state too.
    with_state_changes: bool,
}

impl Day {
    fn new() -> Self {
        let mut world = fleet("00:00", [node("i-a")]);
        prove_life(&mut world, "i-a", "00:00", "50:00");
        Self { world, zone: Tz::UTC, deliveries: 1, with_state_changes: false }
    }

    fn wake(&mut self, source: WakeSource) -> Outcome {
        let wish = WakeWish::new(Target::Pool(voice()), source);
        let ctx = context_with(&self.world, Policy { zone: self.zone, ..Policy::default() });
        self.world.drive(&mut WakeRun::new(ctx, Cause::Wishes(vec![wish])))
    }

    fn log_line(&mut self) -> Outcome {
        self.wake(WakeSource::LogLine)
    }

    fn tick(&mut self) {
        for _ in 0..self.deliveries {
            let ctx = context_with(&self.world, Policy { zone: self.zone, ..Policy::default() });
            self.world.drive(&mut IdleRun::new(ctx));
        }
    }

    /// Ticks every five minutes until before this minute of the day, with the state changes that they lead to.
    fn ticks_until(&mut self, minute: i64) {
        let mut now = self.world.now();
        while now < midnight() + minutes(minute) {
            self.world.set_now(now);
            self.tick();
            if self.with_state_changes {
                for after in [1, 25, 50] {
                    self.world.set_now(now + seconds(after));
                    state_change(&mut self.world);
                }
            }
            now += minutes(5);
        }
        self.world.set_now(now);
    }

    /// So many wakes by log lines from this minute on, each for nothing.
    fn wasted(&mut self, from: i64, times: i64) -> &mut Self {
        for n in 0..times {
            self.world.set_now(midnight() + minutes(from + EVERY * n));
            self.log_line();
            self.ticks_until(from + EVERY * (n + 1));
        }
        self
    }

    fn noise(&mut self) -> Option<Noise> {
        self.world.record(&voice()).node(&id("i-a")).noise
    }

    fn lines(&mut self) -> u32 {
        self.noise().map_or(0, |noise| noise.lines)
    }
}

// 20: unwanted look-ups keep starting the node.

#[test]
fn case_20_each_launch_that_served_nobody_is_counted_once() {
    let mut day = Day::new();
    for n in 1..=6 {
        day.wasted(EVERY * (n - 1), 1);
        assert_eq!(i64::from(day.lines()), n);
    }
    assert_eq!((told(&day.world), starts(&day.world).len()), (vec![], 6));
}

#[test]
fn case_20_six_are_borne_and_the_seventh_is_told_once() {
    let mut day = Day::new();
    day.wasted(0, 6);
    assert_eq!(told(&day.world), [""; 0]);
    day.wasted(6 * EVERY, 1);
    day.ticks_until(12 * 60);
    assert_eq!((day.lines(), told(&day.world)), (7, vec!["noise_wakes"]));
    let body = &day.world.published[0].body;
    assert!(body.contains("7 were caused by log lines") && body.contains("wake filter stricter"), "{body}");
}

/// Seven wakes for nothing, the last at 05:00; it is 05:50.
fn noisy() -> Day {
    let mut day = Day::new();
    day.wasted(0, 7);
    day
}

#[test]
fn case_20_after_the_seventh_no_log_line_starts_anything_until_the_day_ends() {
    let mut day = noisy();
    for hour in 6..24 {
        day.world.set_now(midnight() + hours(hour));
        let outcome = day.log_line();
        assert_eq!(only_answer(&outcome).reason, Reason::NotWanted, "{hour} h");
        day.ticks_until(hour * 60 + 15);
    }
    assert_eq!(starts(&day.world).len(), 7);
    assert_eq!(told(&day.world), ["noise_wakes"], "and nobody is told of it again");
}

#[test]
fn case_20_a_log_batch_that_cannot_be_read_is_a_log_line_too() {
    let mut day = noisy();
    day.world.set_now(at("06:00"));
    day.wake(WakeSource::UnreadableBatch);
    day.ticks_until(6 * 60 + 15);
    assert_eq!(starts(&day.world).len(), 7);
}

#[test]
fn case_20_a_prewarm_still_starts_the_node() {
    let mut day = noisy();
    day.world.set_now(at("06:00"));
    let answer = only_answer(&day.wake(WakeSource::Prewarm));
    assert_eq!(
        (answer.reason, starts(&day.world).last().cloned()),
        (Reason::AlreadyStarting, Some("06:00 i-a".to_owned()))
    );
}

#[test]
fn case_20_noisy_lines_do_not_keep_a_node_that_a_prewarm_has_started() {
    let mut day = noisy();
    day.world.set_now(at("06:00"));
    day.wake(WakeSource::Prewarm);
    while day.world.now() < at("06:45") {
        day.log_line();
        let next = (day.world.now() - midnight()).num_minutes() + 5;
        day.ticks_until(next);
    }
    assert_eq!(stops(&day.world).last().cloned(), Some("06:35 i-a".to_owned()));
}

#[test]
fn case_20_the_next_day_begins_anew() {
    let mut day = noisy();
    day.ticks_until(24 * 60);
    day.world.set_now(at("24:00"));
    let answer = only_answer(&day.log_line());
    assert_eq!((answer.reason, starts(&day.world).len()), (Reason::AlreadyStarting, 8));
    day.ticks_until(24 * 60 + EVERY);
    assert_eq!((day.lines(), told(&day.world)), (1, vec!["noise_wakes"]));
}

#[test]
fn case_20_a_line_of_the_noisy_day_is_not_started_after_midnight() {
    let mut day = noisy();
    day.ticks_until(23 * 60 + 50);
    day.log_line();
    day.ticks_until(24 * 60 + 45);
    assert_eq!(starts(&day.world).len(), 7);
}

#[test]
fn case_20_the_day_is_the_operator_s() {
    let mut day = Day { zone: zone("Asia/Seoul"), ..Day::new() };
    day.wasted(0, 7);
    assert_eq!(day.noise().map(|noise| noise.until), Some(at("15:00")), "midnight in Seoul");
    day.ticks_until(15 * 60 - 5);
    day.log_line();
    assert_eq!(starts(&day.world).len(), 7);
    day.world.set_now(at("15:00"));
    day.log_line();
    assert_eq!(starts(&day.world).len(), 8);
}

#[test]
fn case_20_a_launch_that_served_a_request_is_not_counted() {
    let mut day = Day::new();
    day.wasted(0, 3);
    request(&mut day.world, "i-a", "02:35");
    day.wasted(3 * EVERY, 1);
    assert_eq!((day.lines(), starts(&day.world).len()), (3, 4), "the fourth was used");
    day.wasted(5 * EVERY, 3);
    assert_eq!((day.lines(), told(&day.world)), (6, vec![]));
    day.world.set_now(midnight() + minutes(8 * EVERY));
    day.log_line();
    assert_eq!(starts(&day.world).len(), 8, "and the source is still heeded");
}

/// Launched at nine, and looked at twenty minutes later.
#[test]
fn whether_a_launch_was_used() {
    type Happens = fn(&mut World);
    let quiet: Happens = |_| {};
    let blind: Happens = |world| fail(world, "activity", "ThrottlingException");
    let leased: Happens = |world| {
        world.record(&voice()).nodes.entry(id("i-a")).or_default().leased = Some(at("09:00"));
    };
    let leased_before: Happens = |world| {
        world.record(&voice()).nodes.entry(id("i-a")).or_default().leased = Some(at("08:59"));
    };
    let rows = [
        ("nothing was counted", None, quiet, Some(false)),
        ("nothing was counted lately, and something before", Some(true), quiet, Some(true)),
        ("the request that woke it", None, |world: &mut World| request(world, "i-a", "09:00"), Some(false)),
        ("a request a minute later", Some(false), |world: &mut World| request(world, "i-a", "09:01"), Some(true)),
        ("a lease", Some(false), leased, Some(true)),
        ("a lease of before the launch", Some(false), leased_before, Some(false)),
        ("nothing can be read", Some(false), blind, None),
        ("nothing can be read, and something was counted before", Some(true), blind, Some(true)),
    ];
    for (name, before, happens, after) in rows {
        let mut world = fleet("09:20", [unused()]);
        let known = Launch { used: before, ..launch("g6.xlarge", at("09:00"), None) };
        world.record(&voice()).nodes.entry(id("i-a")).or_default().launch = Some(known);
        happens(&mut world);
        tick(&mut world);
        let noted = world.record(&voice()).node(&id("i-a")).launch.expect("a launch");
        assert_eq!(noted.used, after, "{name}");
    }
}

/// Launched at nine, and seen first at half past.
#[test]
fn which_start_caused_a_launch() {
    let (before, this) = (Some(at("05:00")), Some(at("09:00")));
    let rows = [
        ("claimed on the launch before", ClaimKind::Start, before, "08:59", Some(WakeSource::LogLine)),
        ("claimed on this launch, to settle a STOP", ClaimKind::Start, this, "09:10", None),
        ("a STOP", ClaimKind::Stop, before, "08:59", None),
        ("claimed twenty minutes before it", ClaimKind::Start, before, "08:40", Some(WakeSource::LogLine)),
        ("claimed longer before it", ClaimKind::Start, before, "08:39:59", None),
        ("claimed by a clock that is ahead", ClaimKind::Start, before, "09:20", Some(WakeSource::LogLine)),
        ("claimed by a clock that is too far ahead", ClaimKind::Start, before, "09:20:01", None),
    ];
    for (name, kind, launched_at, clock, source) in rows {
        let mut world = fleet("09:30", [unused()]);
        let known = world.record(&voice()).nodes.entry(id("i-a")).or_default();
        let path = Some("/v1/calls".to_owned());
        let wake = Some(at("08:30"));
        known.claim = Some(Claim { source: Some(WakeSource::LogLine), path, wake, ..claim(kind, clock, launched_at) });
        tick(&mut world);
        let noted = world.record(&voice()).node(&id("i-a")).launch.expect("a launch");
        assert_eq!(noted.source, source, "{name}");
        assert_eq!((noted.path.is_some(), noted.wanted_at.is_some()), (source.is_some(), source.is_some()), "{name}");
    }
}

/// For whoever asks later what a month was spent on: the ledger's own facts are the next launch's soon.
#[test]
fn a_launch_keeps_who_wanted_it_what_for_and_when_it_was_ready() {
    let mut day = Day::new();
    let wish = WakeWish::new(Target::Pool(voice()), WakeSource::LogLine);
    let wish = WakeWish { path: Some("/v1/calls".to_owned()), ..wish };
    let ctx = context_with(&day.world, Policy::default());
    day.world.drive(&mut WakeRun::new(ctx, Cause::Wishes(vec![wish])));
    day.ticks_until(EVERY);
    let launch = day.world.record(&voice()).node(&id("i-a")).launch.expect("a launch");
    assert!(launch.ended_at.is_some(), "{launch:?}");
    let wanted = (launch.source, launch.path.as_deref(), launch.wanted_at);
    assert_eq!(wanted, (Some(WakeSource::LogLine), Some("/v1/calls"), Some(midnight())));
    let ready = day.world.record(&voice()).node(&id("i-a")).ready.expect("it was ready");
    assert_eq!((Some(launch.launched_at), launch.ready_at), (ready.launched_at, Some(ready.at)));
    day.world.start(&id("i-a")).expect("a start by hand");
    day.ticks_until(2 * EVERY);
    let launch = day.world.record(&voice()).node(&id("i-a")).launch.expect("a launch");
    assert_eq!((launch.source, launch.path, launch.wanted_at), (None, None, None));
    assert!(launch.ready_at > Some(launch.launched_at), "by hand or not");
}

#[test]
fn case_20_a_launch_that_served_a_call_is_not_counted() {
    let mut day = Day::new();
    open_call(&mut day.world, "i-a", "00:03", "00:06");
    day.wasted(0, 1);
    assert_eq!((day.lines(), stops(&day.world).len()), (0, 1));
}

#[test]
fn case_20_a_launch_by_hand_is_not_counted() {
    let mut day = Day::new();
    day.world.start(&id("i-a")).expect("a start by hand");
    day.ticks_until(EVERY);
    assert_eq!((day.noise(), stops(&day.world).len()), (None, 1));
}

#[test]
fn case_20_prewarms_for_nothing_are_told_and_go_on_waking() {
    let mut day = Day::new();
    for n in 0..7 {
        day.world.set_now(midnight() + minutes(EVERY * n));
        day.wake(WakeSource::Prewarm);
        day.ticks_until(EVERY * (n + 1));
    }
    assert_eq!(told(&day.world), ["noise_wakes"]);
    assert!(day.world.published[0].body.contains("pre-warms go on waking"), "{}", day.world.published[0].body);
    day.wake(WakeSource::Prewarm);
    assert_eq!(starts(&day.world).len(), 8);
}

#[test]
fn case_20_prewarms_for_nothing_do_not_silence_the_log() {
    let mut day = Day::new();
    for n in 0..7 {
        day.world.set_now(midnight() + minutes(EVERY * n));
        day.wake(WakeSource::Prewarm);
        day.ticks_until(EVERY * (n + 1));
    }
    day.log_line();
    assert_eq!(starts(&day.world).len(), 8);
}

#[test]
fn case_20_a_tick_that_is_delivered_three_times_counts_once() {
    let mut day = Day { deliveries: 3, ..Day::new() };
    day.wasted(0, 6);
    assert_eq!((day.lines(), told(&day.world)), (6, vec![]));
}

#[test]
fn case_20_two_ticks_side_by_side_count_once() {
    let mut day = Day::new();
    day.log_line();
    day.ticks_until(35);
    day.world.stop(&id("i-a"), false).expect("a stop by hand");
    day.world.set_now(at("00:40"));
    let (mut one, mut other) = (tick_run(&day.world, "one"), tick_run(&day.world, "other"));
    while one.step(&mut day.world) | other.step(&mut day.world) {}
    assert_eq!(day.lines(), 1);
}

fn tick_run(world: &World, name: &str) -> Stepper<IdleRun> {
    Stepper::new(IdleRun::new(world.context(name, &context(world))))
}

/// EventBridge tells of every stop within seconds, long before the next tick.
#[test]
fn case_20_a_state_change_that_comes_before_the_tick_hides_nothing() {
    let mut day = Day { with_state_changes: true, ..Day::new() };
    day.wasted(0, 7);
    assert_eq!((day.lines(), told(&day.world)), (7, vec!["noise_wakes"]));
}

#[test]
fn case_20_a_run_of_the_uptime_alarm_that_comes_before_the_tick_hides_nothing() {
    let mut day = Day::new();
    day.log_line();
    day.ticks_until(40);
    assert_eq!((stops(&day.world), day.lines()), (vec!["00:35 i-a".to_owned()], 0));
    day.world.set_now(at("00:36"));
    uptime(&mut day.world);
    day.world.set_now(at("00:40"));
    day.tick();
    assert_eq!(day.lines(), 1);
}

#[test]
fn case_20_the_noise_of_two_nodes_adds_up() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b")]);
    for (name, lines) in [("i-a", 3), ("i-b", 4)] {
        let noise = Noise {
            lines,
            prewarms: 0,
            at: at("09:00"),
            line_times: vec![at("09:00"); lines as usize],
            launched_at: at("08:00"),
            until: at("24:00"),
        };
        world.record(&voice()).nodes.entry(id(name)).or_default().noise = Some(noise);
    }
    log_line(&mut world);
    tick(&mut world);
    assert_eq!((starts(&world), told(&world)), (vec![], vec!["noise_wakes"]));
}

#[test]
fn case_20_a_line_from_before_the_count_was_full_is_still_met() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.no_capacity(&id("i-a"), true);
    log_line(&mut world);
    world.no_capacity(&id("i-a"), false);
    let noise = Noise {
        lines: 7,
        prewarms: 0,
        at: at("10:04"),
        line_times: vec![at("10:04"); 7],
        launched_at: at("08:00"),
        until: at("24:00"),
    };
    world.record(&voice()).nodes.entry(id("i-a")).or_default().noise = Some(noise);
    tick_at(&mut world, "10:05");
    assert_eq!(starts(&world), ["10:05 i-a"]);
}

/// A stop by hand of a node whose use nobody could see says nothing of its use.
#[test]
fn case_20_a_launch_whose_use_could_not_be_seen_is_not_counted_as_unused() {
    let mut world = fleet("10:00", [node("i-a").without_proof_of_life()]);
    log_line(&mut world);
    ticks(&mut world, "10:05", "10:55");
    world.stop(&id("i-a"), false).expect("a stop by hand");
    ticks(&mut world, "11:00", "11:05");
    assert_eq!(world.record(&voice()).node(&id("i-a")).noise, None);
}

/// EC2 broke it off; nobody could have been served.
#[test]
fn case_20_a_start_that_fell_back_is_no_noise_of_the_source() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.fall_back(&id("i-a"), state_reason("Server.InternalError"));
    log_line(&mut world);
    tick_at(&mut world, "10:04");
    assert_eq!((told(&world), state(&world, "i-a")), (vec!["start_failed"], NodeState::Stopped));
    assert_eq!(world.record(&voice()).node(&id("i-a")).noise, None);
}

// 22: looking at the status page counts as use.

#[test]
fn case_22_status_looks_do_not_prolong_a_node_s_life() {
    let with_looks = |each: i64| {
        let mut world = fleet("10:00", [node("i-a")]);
        prewarm(&mut world);
        let mut second = 0;
        while second <= 50 * 60 {
            world.set_now(at("10:00") + seconds(second));
            if second % 300 == 0 {
                tick(&mut world);
            }
            if each > 0 && second % each == 0 {
                status(&mut world);
            }
            second += 5;
        }
        (starts(&world), stops(&world))
    };
    let (started, stopped) = with_looks(5);
    assert_eq!((started, stopped.clone()), (vec!["10:00 i-a".to_owned()], vec!["10:35 i-a".to_owned()]));
    assert_eq!(with_looks(0).1, stopped, "the same as with no look at all");
}

#[test]
fn case_22_status_looks_never_start_a_node() {
    let mut world = fleet("10:00", [node("i-a")]);
    for minute in 0..40 {
        let answer = status(past_ten(&mut world, minute));
        assert_eq!(answer.reason, Reason::NotWanted);
        if minute % 5 == 0 {
            tick(&mut world);
        }
    }
    assert_eq!((count(&world, "start"), count(&world, "claim"), state(&world, "i-a")), (0, 0, NodeState::Stopped));
}

#[test]
fn case_22_a_status_look_does_not_start_what_a_wake_still_wants() {
    let mut world = fleet("10:00", [node("i-a")]);
    world.no_capacity(&id("i-a"), true);
    prewarm(&mut world);
    world.no_capacity(&id("i-a"), false);
    world.set_now(at("10:04"));
    status(&mut world);
    assert_eq!(starts(&world), [""; 0]);
}

#[test]
fn case_22_a_status_look_writes_nothing() {
    let mut world = fleet("10:00", [node("i-a"), node("i-b").running_since("09:00")]);
    prewarm(&mut world);
    world.set_now(at("10:01"));
    let (before, calls) = (world.record(&voice()).clone(), world.calls.len());
    status(&mut world);
    assert_eq!(*world.record(&voice()), before);
    let reads = ["read_ledger", "describe", "readiness"];
    assert!(world.calls[calls..].iter().all(|call| reads.contains(call)), "{:?}", &world.calls[calls..]);
}
