//! One line of a function's log, or one launch, as events.

use reveille::domain::{Instant, Launch, NodeId, PoolName, WakeSource};
use serde::{Deserialize, Serialize};

/// Something that was decided, done or seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) kind: Kind,
    /// Which function; none of a launch, which the ledger knows.
    pub(crate) function: Option<String>,
    pub(crate) pool: Option<PoolName>,
    pub(crate) node: Option<NodeId>,
    /// The action or effect.
    pub(crate) what: String,
    /// Why.
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stops_not_before: Option<Instant>,
}

/// Which kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A decision, also one to do nothing.
    Decided,
    /// Something was done, or seen first.
    Effect,
    /// A launch began or ended, by EC2's own time.
    Launch,
}

impl Event {
    /// Of what has one instant, what comes first: the wish, the decision, what was done, what EC2 tells of it.
    pub(crate) fn rank(&self) -> u8 {
        match self.kind {
            Kind::Effect if self.what == "demand" => 0,
            Kind::Decided => 1,
            Kind::Effect => 2,
            Kind::Launch => 3,
        }
    }
}

/// The fields of both lines that are read; others may come.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(default)]
    decided: bool,
    #[serde(default)]
    effect: bool,
    function: String,
    at: Instant,
    pool: Option<PoolName>,
    node: Option<NodeId>,
    action: Option<String>,
    event: Option<String>,
    reason: String,
    stops_not_before: Option<Instant>,
}

/// None of any other line. The beginning and end of a launch stand in the ledger, with EC2's own times.
pub(crate) fn line(text: &str) -> Option<Event> {
    let line: Line = serde_json::from_str(text.trim()).ok()?;
    let (kind, what) = match (line.decided, line.effect) {
        (true, _) => (Kind::Decided, line.action?),
        (false, true) => (Kind::Effect, line.event?),
        (false, false) => return None,
    };
    if kind == Kind::Effect && ["launched", "ended"].contains(&what.as_str()) {
        return None;
    }
    let Line { function, at, pool, node, reason, stops_not_before, .. } = line;
    Some(Event { at, kind, function: Some(function), pool, node, what, reason, stops_not_before })
}

/// Its beginning, and its end where it has one.
pub(crate) fn launch(pool: &PoolName, node: &NodeId, launch: &Launch) -> Vec<Event> {
    let event = |at, what: &str, reason| Event {
        at,
        kind: Kind::Launch,
        function: None,
        pool: Some(pool.clone()),
        node: Some(node.clone()),
        what: what.to_owned(),
        reason,
        stops_not_before: None,
    };
    let kind = launch.instance_type.as_ref().map_or("of unknown type", |kind| kind.as_str());
    let cause = launch.source.map_or("by no wake: by hand, a window or calls", WakeSource::as_str);
    let began = event(launch.launched_at, "launched", format!("{kind}, {cause}"));
    let ended = launch.ended_at.map(|at| {
        let minutes = (at - launch.launched_at).num_minutes();
        let used = match launch.used {
            Some(true) => "used",
            Some(false) => "nobody used it",
            None => "use unknown",
        };
        let presumed = if launch.presumed { ", its end was not seen" } else { "" };
        event(at, "ended", format!("ran {minutes} min, {used}{presumed}"))
    });
    [began].into_iter().chain(ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille::decide::Reason;
    use reveille::run::{Decided, Effect, EffectKind, Outcome};
    use reveille::telemetry::lines;

    fn now() -> Instant {
        "2026-11-30T10:00:00Z".parse().expect("a time")
    }

    fn outcome() -> Outcome {
        let pool = PoolName::new("voice").expect("a pool");
        let effect = |event, reason: &str| Effect {
            event,
            pool: Some(pool.clone()),
            node: NodeId::new("i-a").ok(),
            reason: reason.to_owned(),
        };
        let decided = Decided {
            pool: pool.clone(),
            node: NodeId::new("i-a").ok(),
            action: "keep".to_owned(),
            reason: Reason::Held,
            inputs: serde_json::json!({}),
            stops_not_before: Some(now()),
            generation: 7,
        };
        let effects = vec![
            effect(EffectKind::Start, "wanted"),
            effect(EffectKind::Launched, "x"),
            effect(EffectKind::Ended, "x"),
        ];
        Outcome { decided: vec![decided], effects, ..Outcome::default() }
    }

    #[test]
    fn the_lines_that_the_functions_write_are_read() {
        let written = lines("idle-check", now(), &outcome(), std::time::Duration::ZERO);
        let read: Vec<Event> = written.iter().filter_map(|text| line(text)).collect();
        let words: Vec<(Kind, &str, &str)> =
            read.iter().map(|event| (event.kind, event.what.as_str(), event.reason.as_str())).collect();
        assert_eq!(words, [(Kind::Decided, "keep", "held"), (Kind::Effect, "start", "wanted")], "and no metrics");
        assert_eq!((read[0].at, read[0].stops_not_before), (now(), Some(now())));
        assert_eq!(
            (read[0].function.as_deref(), read[0].node.as_ref().map(NodeId::as_str)),
            (Some("idle-check"), Some("i-a"))
        );
    }

    #[test]
    fn other_lines_are_no_events() {
        for text in ["", "START RequestId: decided", "{}", r#"{"decided": true}"#, r#"{"effect": 1, "at": "soon"}"#] {
            assert_eq!(line(text), None, "{text}");
        }
    }

    #[test]
    fn a_launch_tells_its_cause_and_whether_anybody_used_it() {
        let (pool, node) = (PoolName::new("voice").expect("a pool"), NodeId::new("i-a").expect("an id"));
        let open = Launch { source: Some(WakeSource::LogLine), ..Launch::at(now()) };
        let over = Launch {
            ended_at: Some(now() + chrono::TimeDelta::minutes(65)),
            used: Some(false),
            source: None,
            ..open.clone()
        };
        let said = |one| launch(&pool, &node, one).into_iter().map(|event| event.reason).collect::<Vec<_>>();
        assert_eq!(said(&open), ["of unknown type, log_line"]);
        assert_eq!(said(&over)[1], "ran 65 min, nobody used it");
    }
}
