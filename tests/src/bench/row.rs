//! The rows, as JSON and as a table.

use serde_json::{Value, json};
use std::fmt::Write as _;

/// One thing measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    target: Option<Target>,
    peer: Option<Peer>,
    spread: Option<(f64, f64)>,
    note: Option<String>,
}

/// What a row is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// The value is this or less.
    AtMost(f64),
    /// The ratio is this or more.
    Times(f64),
    /// The ratio is this or less.
    Within(f64),
}

/// What a row is compared with.
#[derive(Debug, Clone, PartialEq)]
struct Peer {
    name: &'static str,
    value: f64,
    ratio: f64,
}

impl Row {
    pub(crate) fn of(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, target: None, peer: None, spread: None, note: None }
    }

    /// The medians of two sides whose runs alternated, run by run the ratio peer ÷ own, and how far the middle half of the
    /// ratios reaches.
    pub(crate) fn beside(
        name: impl Into<String>,
        unit: &'static str,
        own: &[f64],
        peer: &'static str,
        others: &[f64],
    ) -> Self {
        let ratios: Vec<f64> = own.iter().zip(others).map(|(own, other)| other / own).collect();
        let peer = Peer { name: peer, value: median(others), ratio: median(&ratios) };
        let spread = Some((quantile(&ratios, 0.25), quantile(&ratios, 0.75)));
        Self { peer: Some(peer), spread, ..Self::of(name, median(own), unit) }
    }

    pub(crate) fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// Whether it is what it is held to; none where it is held to nothing.
    pub fn met(&self) -> Option<bool> {
        self.target.map(|_| self.of_target().is_some_and(|share| share <= 1.0))
    }

    /// How much of what it may take it takes; over one, the target is missed.
    fn of_target(&self) -> Option<f64> {
        let ratio = self.peer.as_ref().map(|peer| peer.ratio);
        match self.target? {
            Target::AtMost(most) => Some(self.value / most),
            Target::Times(least) => Some(least / ratio?),
            Target::Within(most) => Some(ratio? / most),
        }
    }

    fn json(&self) -> Value {
        json!({
            "row": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "target": self.target.map(|target| target.words(self.unit)),
            "peer": self.peer.as_ref().map(|peer| json!({"name": peer.name, "value": rounded(peer.value)})),
            "ratio": self.peer.as_ref().map(|peer| rounded(peer.ratio)),
            "spread": self.spread.map(|(low, high)| [rounded(low), rounded(high)]),
            "of_target": self.of_target().map(rounded),
            "met": self.met(),
            "note": self.note,
        })
    }
}

impl Target {
    fn words(self, unit: &str) -> String {
        match self {
            Self::AtMost(most) => format!("at most {} {unit}", figure(most)),
            Self::Times(least) => format!("ratio at least {}", figure(least)),
            Self::Within(most) => format!("ratio at most {}", figure(most)),
        }
    }
}

/// All rows as one JSON array.
pub fn results(rows: &[Row]) -> Value {
    rows.iter().map(Row::json).collect()
}

/// All rows as a table in Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut text =
        "| what | value | peer | ratio (middle half) | target | of the target | met |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for row in rows {
        let peer = row.peer.as_ref().map(|peer| format!("{} {} {}", figure(peer.value), row.unit, peer.name));
        let ratio = row.peer.as_ref().map(|peer| match row.spread {
            Some((low, high)) => format!("{} ({}-{})", figure(peer.ratio), figure(low), figure(high)),
            None => figure(peer.ratio),
        });
        let share = row.of_target().map(|share| format!("{:.0} %", 100.0 * share));
        let met = row.met().map(|met| if met { "yes" } else { "**no**" });
        let target = row.target.map(|target| target.words(row.unit));
        let note = row.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        writeln!(
            text,
            "| {}{note} | {} {} | {} | {} | {} | {} | {} |",
            row.name,
            figure(row.value),
            row.unit,
            peer.unwrap_or_default(),
            ratio.unwrap_or_default(),
            target.unwrap_or_default(),
            share.unwrap_or_default(),
            met.unwrap_or_default()
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// The middle one.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Between the two nearest, as far as it lies between them.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * sorted.len().saturating_sub(1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (place - place.floor())
}

/// Three digits that count.
fn figure(value: f64) -> String {
    let value = rounded(value);
    format!("{value}")
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(digits.max(0));
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_run_by_run() {
        let row = Row::beside("a", "ms", &[1.0, 2.0, 4.0], "Python", &[10.0, 30.0, 80.0]).target(Target::Times(12.0));
        let json = row.json();
        assert_eq!((json["value"].as_f64(), json["ratio"].as_f64()), (Some(2.0), Some(15.0)));
        assert_eq!((&json["spread"], &json["met"]), (&json!([12.5, 17.5]), &json!(true)));
        assert_eq!(json["of_target"], json!(0.8));
    }

    #[test]
    fn a_row_without_a_target_is_neither_met_nor_missed() {
        assert_eq!(Row::of("a", 3.0, "calls").met(), None);
        assert_eq!(Row::of("a", 5.0, "calls").target(Target::AtMost(4.0)).met(), Some(false));
        assert_eq!(Row::of("a", 4.0, "calls").target(Target::Times(4.0)).met(), Some(false), "compared with nothing");
        assert_eq!(Row::of("a", 4.0, "calls").target(Target::AtMost(4.0)).met(), Some(true));
    }

    #[test]
    fn figures_keep_three_digits() {
        for (value, text) in [(0.012_345, "0.0123"), (1.234_5, "1.23"), (123.4, "123"), (12_345.6, "12346"), (0.0, "0")]
        {
            assert_eq!(figure(value), text);
        }
    }
}
