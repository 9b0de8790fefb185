//! The plans that are compared, by name.

use crate::replay::Way;
use crate::replay::fixed::Hours;
use crate::replay::on_demand::OnDemand;
use chrono::TimeDelta;
use chrono_tz::Tz;
use reveille::config::{Kind, SETTINGS};
use reveille::domain::WarmWindow;
use reveille::policy::{Policy, PoolRules, ReadySource};
use serde::Serialize;

/// What the operator asks to be compared, and the model of the node.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// From START to ready, in seconds.
    pub boot: i64,
    /// From STOP to `stopped`, in seconds.
    pub stop: i64,
    /// How long a caller waits before giving up, in seconds.
    pub patience: i64,
    /// How often the idle check runs, in minutes, each with every idle time.
    pub ticks: Vec<i64>,
    /// Idle times in minutes.
    pub idles: Vec<i64>,
    /// How long a pre-warm that leads to no call keeps a node, in minutes, each with every idle time.
    pub prewarms: Vec<i64>,
    /// The nodes of the pool.
    pub nodes: usize,
    /// Calls that a node can take.
    pub calls_per_node: Option<u32>,
    /// The chance that a START meets no capacity.
    pub refusal: f64,
    /// Hours of the daily window.
    pub window_hours: u32,
    /// Windows that are given, with their names.
    pub windows: Vec<(String, WarmWindow)>,
    /// The zone of days.
    pub zone: Tz,
    /// Seed of the refusals.
    pub seed: u64,
    /// Every idle time with every expiry and tick, and nothing beside them but 24/7.
    pub grid: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            boot: 55,
            stop: 60,
            patience: 90,
            ticks: vec![5],
            idles: vec![10, 30, 60],
            prewarms: vec![30, 10],
            nodes: 1,
            calls_per_node: None,
            refusal: 0.0,
            window_hours: 16,
            windows: Vec::new(),
            zone: Tz::UTC,
            seed: 0,
            grid: false,
        }
    }
}

/// Whether it can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// By the settings of the functions, or without them.
    Available,
    /// By the rules of the functions, with settings outside the ranges that they take today.
    OutOfRange,
    /// By a rule that the functions do not have.
    NotARule,
    /// By nobody: it needs the future.
    Bound,
}

/// One plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Such as `on-demand idle 30`.
    pub name: String,
    /// How the nodes are run.
    pub way: Way,
    /// Whether it can be had.
    pub standing: Standing,
}

impl Plan {
    fn new(name: impl Into<String>, way: Way, standing: Standing) -> Self {
        Self { name: name.into(), way, standing }
    }

    /// Whether the functions decide.
    pub fn is_controlled(&self) -> bool {
        matches!(self.way, Way::OnDemand(_))
    }

    /// The settings that make it, to be copied.
    pub fn configuration(&self) -> Option<Vec<String>> {
        let Way::OnDemand(plan) = &self.way else { return None };
        let (policy, minutes) = (&plan.policy, |span: TimeDelta| span.num_minutes());
        let mut lines = vec![
            format!("REVEILLE_IDLE_MINUTES={}", minutes(policy.idle)),
            format!("REVEILLE_TICK_MINUTES={}", minutes(policy.tick)),
            format!("REVEILLE_GRACE_MINUTES={}", minutes(policy.grace)),
            format!("REVEILLE_BOOT_SECONDS={}", policy.boot.num_seconds()),
        ];
        if plan.prewarms {
            lines.insert(1, format!("REVEILLE_PREWARM_MINUTES={}", minutes(policy.prewarm)));
        }
        Some(lines)
    }
}

/// Every plan that is compared, the dearest first.
pub fn plans(setup: &Setup) -> Vec<Plan> {
    let mut plans = vec![Plan::new("24/7", Way::Always, Standing::Available)];
    if !setup.grid {
        let hours = Hours::Learnt(setup.window_hours, setup.zone);
        let name = format!("window {} h", setup.window_hours);
        plans.push(Plan::new(name, Way::ByTheClock(hours), Standing::Available));
        for (name, window) in &setup.windows {
            let hours = Hours::Given(window.clone());
            plans.push(Plan::new(format!("window {name}"), Way::ByTheClock(hours), Standing::Available));
        }
    }
    plans.extend(on_demand(setup));
    if !setup.grid {
        let at_once = OnDemand { at_once: true, prewarms: true, ..base(setup, 0, 3, 1) };
        plans.push(Plan::new("at once, pre-warm 3, tick 1", way(at_once), Standing::NotARule));
        for idle in &setup.idles {
            let name = format!("clairvoyant, gaps to {idle}");
            plans.push(Plan::new(name, Way::Kept(idle * 60), Standing::Bound));
        }
        plans.push(Plan::new("clairvoyant with pre-warm", Way::Foreseen, Standing::Bound));
    }
    plans
}

fn way(plan: OnDemand) -> Way {
    Way::OnDemand(Box::new(plan))
}

fn on_demand(setup: &Setup) -> Vec<Plan> {
    let mut plans = Vec::new();
    // Without a choice of ticks a name needs none.
    let of_tick = |tick: i64| if setup.ticks.len() > 1 { format!(", tick {tick}") } else { String::new() };
    for tick in &setup.ticks {
        for idle in &setup.idles {
            let plan = base(setup, *idle, *idle, *tick);
            let standing = standing(*idle, *idle, *tick);
            plans.push(Plan::new(format!("on-demand idle {idle}{}", of_tick(*tick)), way(plan), standing));
        }
        for (name, window) in setup.windows.iter().filter(|_| !setup.grid) {
            for idle in &setup.idles {
                let mut plan = base(setup, *idle, *idle, *tick);
                plan.rules.warm = vec![window.clone()];
                let name = format!("on-demand idle {idle}{}, warm {name}", of_tick(*tick));
                plans.push(Plan::new(name, way(plan), standing(*idle, *idle, *tick)));
            }
        }
        for idle in &setup.idles {
            for prewarm in &setup.prewarms {
                let plan = OnDemand { prewarms: true, ..base(setup, *idle, *prewarm, *tick) };
                let name = format!("on-demand idle {idle}, pre-warm {prewarm}{}", of_tick(*tick));
                plans.push(Plan::new(name, way(plan), standing(*idle, *prewarm, *tick)));
            }
        }
    }
    plans
}

/// A grace that delays no stop: shorter than what may stop a node by a tick, and no longer than the default.
fn grace(idle: i64, prewarm: i64, tick: i64) -> TimeDelta {
    let longest = Policy::default().grace.num_minutes();
    TimeDelta::minutes((idle.min(prewarm) - tick).clamp(0, longest))
}

fn base(setup: &Setup, idle: i64, prewarm: i64, tick: i64) -> OnDemand {
    let boot = TimeDelta::seconds(setup.boot);
    let policy = Policy {
        idle: TimeDelta::minutes(idle),
        prewarm: TimeDelta::minutes(prewarm),
        tick: TimeDelta::minutes(tick),
        grace: grace(idle, prewarm, tick),
        boot,
        ready_within: Policy::default().ready_within.max(boot + TimeDelta::minutes(5)),
        zone: setup.zone,
        ..Policy::default()
    };
    let rules = PoolRules {
        ready: ReadySource::Beat(1),
        calls_per_node: setup.calls_per_node,
        leased: true,
        beat: true,
        ..PoolRules::default()
    };
    OnDemand {
        policy,
        rules,
        nodes: setup.nodes,
        boot: setup.boot,
        stop: setup.stop,
        patience: setup.patience,
        refusal: setup.refusal,
        prewarms: false,
        at_once: false,
        seed: setup.seed,
    }
}

/// Whether the functions take these settings today.
fn standing(idle: i64, prewarm: i64, tick: i64) -> Standing {
    let takes = |name: &str, value: i64| {
        SETTINGS.iter().filter(|setting| setting.name == name).all(|setting| match setting.kind {
            Kind::Number(least, most, _) => (least..=most).contains(&value),
            Kind::Word(_) | Kind::Zone | Kind::Json | Kind::Text(_) => true,
        })
    };
    let is_long_enough = |minutes: i64| minutes >= tick + 5;
    let all = takes("REVEILLE_IDLE_MINUTES", idle)
        && takes("REVEILLE_PREWARM_MINUTES", prewarm)
        && takes("REVEILLE_TICK_MINUTES", tick)
        && is_long_enough(idle)
        && is_long_enough(prewarm);
    if all { Standing::Available } else { Standing::OutOfRange }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(setup: &Setup) -> Vec<String> {
        plans(setup).into_iter().map(|plan| plan.name).collect()
    }

    #[test]
    fn every_plan_is_named_once() {
        let setup = Setup { ticks: vec![5, 15], ..Setup::default() };
        for setup in [Setup::default(), setup.clone(), Setup { grid: true, ..setup }] {
            let mut names = names(&setup);
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }

    #[test]
    fn one_tick_needs_no_name() {
        let setup = Setup { idles: vec![30], prewarms: vec![10], ..Setup::default() };
        assert_eq!(
            names(&setup),
            [
                "24/7",
                "window 16 h",
                "on-demand idle 30",
                "on-demand idle 30, pre-warm 10",
                "at once, pre-warm 3, tick 1",
                "clairvoyant, gaps to 30",
                "clairvoyant with pre-warm",
            ]
        );
        let setup = Setup { ticks: vec![5, 10], grid: true, ..setup };
        assert_eq!(names(&setup)[1], "on-demand idle 30, tick 5");
    }

    #[test]
    fn what_the_functions_do_not_take_is_said() {
        assert_eq!(standing(30, 10, 5), Standing::Available);
        let rows = [(5, 10, 5), (30, 5, 5), (30, 30, 1), (10, 10, 10)];
        rows.into_iter().for_each(|(idle, prewarm, tick)| {
            assert_eq!(standing(idle, prewarm, tick), Standing::OutOfRange, "{idle} {prewarm} {tick}");
        });
    }

    #[test]
    fn a_plan_s_settings_can_be_copied() {
        let setup = Setup { idles: vec![30], prewarms: vec![10], ..Setup::default() };
        let plans = plans(&setup);
        let of = |name: &str| plans.iter().find(|plan| plan.name == name).unwrap().configuration();
        assert_eq!(of("24/7"), None);
        let lines = of("on-demand idle 30, pre-warm 10").unwrap();
        assert!(
            lines.contains(&"REVEILLE_PREWARM_MINUTES=10".to_owned())
                && lines.contains(&"REVEILLE_GRACE_MINUTES=5".to_owned())
        );
    }
}
