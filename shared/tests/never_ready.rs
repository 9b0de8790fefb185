//! A node that runs and does not become ready: told, stopped, started once more, and left.

mod support;
mod support_rules;

use reveille::decide::Reason;
use reveille::domain::{Beat, Hold, Instant, NodeState, WakeSource};
use reveille::run::{Call, Outcome, Target, WakeWish};
use reveille::world::World;
use support::*;
use support_rules::*;

/// What the callers of the case do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Callers {
    /// `POST /wake` again and again.
    Wake,
    /// Lines of the app's log, and requests that the load balancer answers with 502.
    Lines,
    /// Nobody asks any more.
    None,
}

/// A broken driver: status checks pass, and the readiness endpoint never answers. `cured_at`: from then on it does.
struct Broken {
    setup: Setup,
    world: World,
    callers: Callers,
    cured_at: Option<Instant>,
}

fn broken(callers: Callers) -> Broken {
    Broken { setup: ready_by_beat(), world: fleet("10:00", [node("i-a")]), callers, cured_at: None }
}

impl Broken {
    /// From now to then: callers retry every 20 seconds, a tick comes each five minutes.
    fn until(&mut self, clock: &str) -> Vec<Outcome> {
        let mut ticks = Vec::new();
        while self.world.now() < at(clock) {
            let now = self.world.now();
            self.beat();
            if now.timestamp() % 300 == 0 {
                ticks.push(self.setup.tick(&mut self.world));
            }
            match self.callers {
                Callers::Wake => drop(self.setup.prewarm(&mut self.world)),
                Callers::Lines => self.line(),
                Callers::None => {}
            }
            self.world.set_now(now + seconds(20));
        }
        ticks
    }

    fn line(&mut self) {
        self.setup.log_line(&mut self.world);
        if state(&self.world, "i-a") == NodeState::Running {
            self.world.point(&request_metric("i-a"), bucket(self.world.now()), 1.0);
        }
    }

    /// Each running node's agent beats.
    fn beat(&mut self) {
        let now = self.world.now();
        let cured = self.cured_at.is_some_and(|at| now >= at);
        for word in ["i-a", "i-b"] {
            let Some(seen) = self.world.node(&id(word)).filter(|seen| seen.state == NodeState::Running) else {
                continue;
            };
            let since = seen.launched_at;
            let newest = if cured { beat("10:00") } else { unready("10:00") };
            let ready_since = newest.ready_since.and(Some(now));
            beats(&mut self.world, word, Beat { at: now, since, ready_since, ..newest });
        }
    }

    fn not_ready_told(&self) -> Vec<String> {
        let of_kind = self.world.published.iter().filter(|alert| alert.kind.as_str() == "not_ready");
        of_kind.map(|alert| alert.attributes["at"][11..16].to_owned()).collect()
    }
}

// 42: `running`, but the GPU is not there.

#[test]
fn case_42_retries_alone_do_not_keep_it_awake() {
    for callers in [Callers::Wake, Callers::Lines] {
        let mut broken = broken(callers);
        broken.until("10:26");
        assert_eq!(stops(&broken.world), ["10:15 i-a"], "{callers:?}: marked at 10:10, stopped at the second reading");
    }
}

#[test]
fn case_42_a_person_is_told_once_at_the_deadline() {
    for callers in [Callers::Wake, Callers::Lines] {
        let mut broken = broken(callers);
        broken.until("10:16");
        assert_eq!(broken.not_ready_told(), ["10:10"], "{callers:?}");
        let alert = &broken.world.published[0];
        assert!(alert.body.contains("beat") && alert.body.contains("started once more"), "{}", alert.body);
    }
}

#[test]
fn case_42_status_says_running_and_not_ready() {
    let mut broken = broken(Callers::Wake);
    broken.until("10:09");
    let answer = broken.setup.status(&mut broken.world);
    assert_eq!((answer.reason, answer.address), (Reason::AlreadyStarting, None));
}

#[test]
fn case_42_it_is_started_once_more_and_then_left_with_a_fault_for_a_day() {
    for callers in [Callers::Wake, Callers::Lines] {
        let mut broken = broken(callers);
        broken.until("12:00");
        assert_eq!(stops(&broken.world).len(), 2, "{callers:?}: {:?}", broken.world.effects);
        assert_eq!(starts(&broken.world).len(), 2, "{callers:?}: {:?}", broken.world.effects);
        assert_eq!(broken.not_ready_told().len(), 2, "{callers:?}");
        let answer = only_answer(&broken.setup.prewarm(&mut broken.world));
        assert_eq!((answer.reason, answer.fault_code.as_deref()), (Reason::CoolingDown, Some("NeverReady")));
        assert_eq!(answer.fault_since, Some(at("10:00")), "{callers:?}: since the first of the two launches");
    }
}

#[test]
fn case_42_the_second_message_says_that_it_is_left() {
    let mut broken = broken(Callers::Wake);
    broken.until("12:00");
    let second = broken.world.published.iter().rfind(|alert| alert.kind.as_str() == "not_ready").expect("a message");
    assert!(second.body.contains("left stopped until a person starts it or a day has passed"), "{}", second.body);
}

#[test]
fn case_42_after_a_day_it_is_tried_again_and_left_again() {
    let mut broken = broken(Callers::Wake);
    broken.until("12:00");
    prove_life(&mut broken.world, "i-a", "30:00", "40:00");
    let left_at = broken.world.effects.last().expect("a stop").0;
    broken.world.set_now(left_at + minutes(24 * 60 - 5));
    broken.until("34:25");
    assert_eq!(starts(&broken.world).len(), 2, "not within the day: {:?}", broken.world.effects);
    broken.until("36:30");
    assert_eq!((starts(&broken.world).len(), stops(&broken.world).len()), (3, 3), "{:?}", broken.world.effects);
}

#[test]
fn a_node_that_nobody_wants_any_more_is_stopped_and_not_started_again() {
    let mut broken = broken(Callers::Wake);
    broken.until("10:01");
    broken.callers = Callers::None;
    broken.setup.policy.wish = minutes(15);
    broken.until("12:00");
    assert_eq!((starts(&broken.world).len(), stops(&broken.world)), (1, vec!["10:15 i-a".to_owned()]));
}

#[test]
fn a_wake_of_before_the_stop_is_met_by_the_second_start() {
    let mut broken = broken(Callers::Wake);
    broken.until("10:01");
    broken.callers = Callers::None;
    broken.until("10:25");
    assert_eq!(starts(&broken.world), ["10:00 i-a", "10:20 i-a"]);
}

#[test]
fn a_node_that_is_cured_by_the_second_start_has_no_fault_any_more() {
    let mut broken = broken(Callers::Wake);
    broken.cured_at = Some(at("10:16"));
    broken.until("10:31");
    assert_eq!((starts(&broken.world).len(), facts(&mut broken.world, "i-a").fault.clone()), (2, None));
    assert_eq!(broken.setup.status(&mut broken.world).reason, Reason::AlreadyReady);
}

#[test]
fn a_start_by_a_person_is_respected_and_ends_the_fault_once_it_is_ready() {
    let mut broken = broken(Callers::Wake);
    broken.until("12:00");
    broken.world.start(&id("i-a")).expect("a start by hand");
    broken.cured_at = Some(at("12:05"));
    broken.until("12:40");
    assert_eq!((stops(&broken.world).len(), state(&broken.world, "i-a")), (2, NodeState::Running));
    assert_eq!(facts(&mut broken.world, "i-a").fault, None);
    assert_eq!(broken.setup.status(&mut broken.world).reason, Reason::AlreadyReady);
}

#[test]
fn a_start_by_a_person_has_its_whole_time_to_become_ready() {
    let mut broken = broken(Callers::Wake);
    broken.until("12:00");
    broken.world.start(&id("i-a")).expect("a start by hand");
    broken.until("12:14:40");
    assert_eq!(stops(&broken.world).len(), 2);
}

#[test]
fn the_other_node_is_started_while_one_is_stuck() {
    let mut broken = broken(Callers::Wake);
    broken.until("10:05");
    broken.world.add_node(node("i-b").seen());
    prove_life(&mut broken.world, "i-b", "10:00", "30:00");
    broken.until("10:10");
    assert_eq!(starts(&broken.world), ["10:00 i-a"], "not before the deadline");
    broken.until("10:11");
    assert_eq!(starts(&broken.world), ["10:00 i-a", "10:10 i-b"]);
}

#[test]
fn the_next_candidate_is_tried_at_once_beside_a_stuck_node() {
    // The other node has no capacity: the third has its turn in the same run, as if the stuck one were off.
    let mut broken = broken(Callers::Lines);
    broken.until("10:05");
    for word in ["i-b", "i-c"] {
        broken.world.add_node(node(word).seen());
        prove_life(&mut broken.world, word, "10:00", "30:00");
    }
    broken.world.no_capacity(&id("i-b"), true);
    broken.until("10:11");
    assert_eq!(starts(&broken.world), ["10:00 i-a", "10:10 i-c"]);
}

// What it is not.

#[test]
fn readiness_that_cannot_be_read_never_stops_a_node() {
    let mut broken = broken(Callers::Wake);
    fail_times(&mut broken.world, "beats", "RequestLimitExceeded", 10_000);
    broken.until("12:00");
    assert_eq!(
        (stops(&broken.world), broken.not_ready_told()),
        (vec![], vec!["10:10".to_owned()]),
        "told all the same"
    );
}

#[test]
fn checks_that_cannot_be_read_never_stop_a_node_that_is_woken_at_the_last_moment() {
    // The second look of a tick knows no more of readiness than the first.
    let mut world = fleet("09:00", [node("i-a").running_since("09:00")]);
    fail_times(&mut world, "readiness", "RequestLimitExceeded", 10_000);
    ticks(&mut world, "09:05", "09:25");
    world.set_now(at("09:30"));
    let mut idle = Stepper::new(reveille::run::IdleRun::new(context(&world)));
    idle.run_until(&mut world, "claim");
    log_line(&mut world);
    let outcome = idle.finish(&mut world);
    assert_eq!((stops(&world), reason(&outcome, "i-a")), (vec![], Reason::RecentWake));
}

#[test]
fn a_call_or_a_hold_keeps_a_node_that_does_not_become_ready() {
    type Keep = fn(&mut World);
    let keeps: [(&str, Keep); 3] = [
        ("a lease", |world| leased(world, "i-a", "call", "12:00")),
        ("an open call", |world| open_call(world, "i-a", "10:05", "12:00")),
        ("a hold", |world| {
            let hold = Hold { until: at("12:00"), note: "debugging".to_owned(), since: at("10:00") };
            world.answer(&Call::SetHold { pool: voice(), node: id("i-a"), hold: Some(hold) });
        }),
    ];
    for (name, keep) in keeps {
        let mut broken = broken(Callers::Wake);
        broken.until("10:05");
        keep(&mut broken.world);
        broken.until("10:45");
        assert_eq!((stops(&broken.world), broken.not_ready_told().len()), (vec![], 1), "{name}");
    }
}

#[test]
fn a_node_that_is_ready_before_the_second_reading_is_kept() {
    let mut broken = broken(Callers::Wake);
    broken.cured_at = Some(at("10:14"));
    broken.until("10:40");
    assert_eq!(stops(&broken.world), [""; 0]);
}

#[test]
fn a_node_that_was_ready_once_is_not_stuck_but_judged_by_its_use_and_told() {
    let mut broken = broken(Callers::Lines);
    broken.cured_at = Some(at("10:01"));
    broken.until("10:06");
    broken.cured_at = None;
    broken.until("11:00");
    assert_eq!((stops(&broken.world), broken.not_ready_told()), (vec![], vec!["10:20".to_owned()]));
}

#[test]
fn a_warm_window_does_not_keep_a_node_that_never_becomes_ready() {
    let mut broken = broken(Callers::None);
    broken.setup.pool.rules.warm = warm(&[r#"{"from": "09:00", "to": "18:00"}"#]).pool.rules.warm;
    broken.until("12:00");
    assert_eq!((starts(&broken.world).len(), stops(&broken.world).len()), (2, 2), "{:?}", broken.world.effects);
}

#[test]
fn a_drained_pool_stops_a_stuck_node_and_starts_none() {
    let mut broken = broken(Callers::Wake);
    broken.until("10:05");
    close_gate(&mut broken.world, "10:05", true);
    broken.until("12:00");
    assert_eq!((starts(&broken.world).len(), stops(&broken.world).len()), (1, 1), "{:?}", broken.world.effects);
}

// What goes wrong on the way.

#[test]
fn a_stop_or_start_that_fails_on_the_way_makes_no_third_start() {
    let rows = [("stop", "RequestLimitExceeded"), ("stop", "Timeout"), ("start", "InsufficientInstanceCapacity")];
    for (call, code) in rows {
        let mut broken = broken(Callers::Wake);
        broken.until("10:12");
        // The first START is through: this meets the first STOP, or the second START.
        fail(&mut broken.world, call, code);
        broken.until("13:00");
        assert_eq!(starts(&broken.world).len(), 2, "{call} {code}: {:?}", broken.world.effects);
        assert_eq!(state(&broken.world, "i-a"), NodeState::Stopped, "{call} {code}");
    }
}

#[test]
fn a_failure_of_the_second_stop_does_not_begin_the_row_anew() {
    for (code, after) in [("RequestLimitExceeded", false), ("Timeout", false), ("Timeout", true)] {
        let mut broken = broken(Callers::Wake);
        broken.until("10:25");
        broken.world.fail(reveille::world::WorldFault { call: "stop", node: None, code, after, times: 1 });
        broken.until("13:00");
        assert_eq!(starts(&broken.world).len(), 2, "{code}, {after}: {:?}", broken.world.effects);
    }
}

#[test]
fn a_named_wake_is_met_by_the_second_start_too() {
    let mut broken = broken(Callers::None);
    let wish = WakeWish::new(Target::Node("i-a".to_owned()), WakeSource::Prewarm);
    broken.setup.wake(&mut broken.world, wish);
    broken.until("12:00");
    assert_eq!((starts(&broken.world).len(), stops(&broken.world).len()), (2, 2));
}
