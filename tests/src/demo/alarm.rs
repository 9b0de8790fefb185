//! What a CloudWatch alarm with an EC2 stop action would have done with the same requests, by its documented rule: alarm
//! actions run when the state changes, and are not repeated while the condition lasts ("Alarm actions", Amazon CloudWatch
//! User Guide). The alarm: Sum of requests below 1 in every minute of the idle time; missing points count as breaching.

use chrono::{DateTime, TimeDelta, Utc};

/// The instants at which the alarm goes over to ALARM, and so acts, looking once a minute.
pub(super) fn acts_at(
    requests: &[DateTime<Utc>],
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    idle: TimeDelta,
) -> Vec<DateTime<Utc>> {
    let minutes = (to - from).num_minutes();
    let mut acts = Vec::new();
    // Before the day nobody had called: the alarm stands in ALARM already, from the night.
    let mut was_in_alarm = true;
    for minute in 0..minutes {
        let now = from + TimeDelta::minutes(minute);
        let in_alarm = !requests.iter().any(|at| *at > now - idle && *at <= now);
        if in_alarm && !was_in_alarm {
            acts.push(now);
        }
        was_in_alarm = in_alarm;
    }
    acts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_once_a_transition_and_not_on_a_node_started_while_it_stands() {
        let at = |text: &str| format!("2026-11-30T{text}:00Z").parse::<DateTime<Utc>>().unwrap();
        let acts = acts_at(&[at("08:00"), at("08:20"), at("12:00")], at("00:00"), at("23:59"), TimeDelta::minutes(30));
        assert_eq!(acts, [at("08:50"), at("12:30")]);
    }
}
