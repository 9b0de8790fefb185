//! How long a request lasted, in the units in which fronts write it.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// Longest duration that is believed, in seconds: 31 days. More is a number of another unit or a clock that was set, and
/// would make one line use of a whole month.
const LONGEST_SECONDS: f64 = 31.0 * 86_400.0;

/// Units of a duration as text, longer names first; what Go writes (Caddy, Traefik).
const NAMED: [(&str, f64); 8] =
    [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ns", 1e-9), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Unit of a number that stands without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    fn seconds(self) -> f64 {
        match self {
            Unit::Seconds => 1.0,
            Unit::Millis => 1e-3,
            Unit::Micros => 1e-6,
            Unit::Nanos => 1e-9,
        }
    }
}

/// A number in this unit, to the microsecond. Negative, not a number or over 31 days: `None`.
pub(super) fn of_number(number: f64, unit: Unit) -> Option<TimeDelta> {
    let seconds = number * unit.seconds();
    let is_believed = (0.0..=LONGEST_SECONDS).contains(&seconds);
    is_believed.then(|| TimeDelta::microseconds((seconds * 1e6).round() as i64))
}

/// A number as text in this unit, or a duration that names its own: `1.5s`, `120ms`, `1m30s`.
pub(super) fn of_text(text: &str, unit: Unit) -> Option<TimeDelta> {
    let text = text.trim();
    match text.parse() {
        Ok(number) => of_number(number, unit),
        Err(_) => with_units(text),
    }
}

/// A JSON number or text.
pub(super) fn of_value(value: &Value, unit: Unit) -> Option<TimeDelta> {
    value.as_f64().map_or_else(|| of_text(value.as_str()?, unit), |number| of_number(number, unit))
}

/// From one instant to another; `None` if the second is the earlier one.
pub(super) fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> Option<TimeDelta> {
    of_number(to.signed_duration_since(from).as_seconds_f64(), Unit::Seconds)
}

fn with_units(text: &str) -> Option<TimeDelta> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?);
        let (name, unit) = NAMED.iter().find(|(name, _)| tail.starts_with(name))?;
        seconds += number.parse::<f64>().ok()? * unit;
        rest = &tail[name.len()..];
    }
    (!text.is_empty()).then(|| of_number(seconds, Unit::Seconds))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_numbers_and_go_durations() {
        let rows = [
            ("0.250", Unit::Seconds, Some(250)),
            (" 3 ", Unit::Millis, Some(3)),
            ("1500000", Unit::Micros, Some(1_500)),
            ("2e9", Unit::Nanos, Some(2_000)),
            ("1.5s", Unit::Nanos, Some(1_500)),
            ("120ms", Unit::Seconds, Some(120)),
            ("1m30s", Unit::Seconds, Some(90_000)),
            ("1h0m0.5s", Unit::Seconds, Some(3_600_500)),
            ("5000µs", Unit::Seconds, Some(5)),
            ("744h", Unit::Seconds, Some(2_678_400_000)),
        ];
        for (text, unit, millis) in rows {
            assert_eq!(of_text(text, unit), millis.map(TimeDelta::milliseconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_none() {
        let rows = ["", "-", "-1", "-0.5s", "NaN", "inf", "1e400", "1.2.3s", "5x", "s", "1m30", "744h1s", "0.1, 0.2"];
        for text in rows {
            assert_eq!(of_text(text, Unit::Seconds), None, "{text}");
        }
        assert_eq!(of_value(&serde_json::json!({"s": 1}), Unit::Seconds), None);
        assert_eq!(of_value(&serde_json::json!(true), Unit::Seconds), None);
    }

    proptest! {
        #[test]
        fn no_text_gives_a_negative_or_an_endless_duration(text in r"[0-9.eE+\-]{0,12}(ms|s|m|h|µs)?") {
            if let Some(took) = of_text(&text, Unit::Seconds) {
                prop_assert!(took >= TimeDelta::zero() && took <= TimeDelta::days(31));
            }
        }
    }
}
