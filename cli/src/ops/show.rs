//! How things are written on a terminal of 80 columns.

use chrono_tz::Tz;
use comfy_table::{ContentArrangement, Table, presets};
use reveille::domain::{Instant, Usd};
use serde_json::Value;
use std::io::IsTerminal as _;

/// What every terminal has.
const WIDTH: u16 = 80;

/// A table with a header, broken to the width of a terminal.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = empty();
    table.set_header(header.to_vec());
    table.add_rows(rows);
    trimmed(&table.to_string())
}

/// Text broken to the width of a terminal, indented.
pub(crate) fn paragraph(text: &str) -> String {
    let mut table = empty();
    table.add_row(vec![String::new(), text.to_owned()]);
    trimmed(&table.to_string())
}

/// Names and texts beside each other.
pub(crate) fn pairs(rows: Vec<Vec<String>>) -> String {
    let mut table = empty();
    table.add_rows(rows);
    trimmed(&table.to_string())
}

fn empty() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table
}

fn trimmed(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A time of the zone: without the date if it is the date of `now`.
pub(crate) fn clock(at: Instant, now: Instant, zone: Tz) -> String {
    let (at, now) = (at.with_timezone(&zone), now.with_timezone(&zone));
    let same_day = at.date_naive() == now.date_naive();
    at.format(if same_day { "%H:%M" } else { "%b %d %H:%M" }).to_string()
}

/// Hours and minutes.
pub(crate) fn hours(seconds: i64) -> String {
    format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60)
}

/// An amount as it was written plainly, to the cent.
pub(crate) fn dollars(plain: Option<&str>) -> String {
    plain.and_then(|plain| Usd::parse(plain).ok()).map_or_else(|| "an unknown amount".to_owned(), |usd| usd.to_string())
}

/// What a machine reads.
pub(crate) fn json(value: &Value) -> String {
    format!("{value:#}\n")
}

/// How often a line that waits moves.
pub(crate) const TICK: std::time::Duration = std::time::Duration::from_millis(120);

/// A line on a terminal that says what is waited for; nothing where nobody looks.
pub(crate) fn spinner(what: &'static str) -> indicatif::ProgressBar {
    let bar = if std::io::stderr().is_terminal() {
        indicatif::ProgressBar::new_spinner().with_message(what)
    } else {
        indicatif::ProgressBar::hidden()
    };
    bar.enable_steady_tick(TICK);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_a_terminal() {
        let long = "a sentence that goes on and on ".repeat(9);
        let rows = vec![vec!["gpu-1".to_owned(), long.clone(), long.clone()]];
        for text in [table(&["node", "why", "what"], rows), paragraph(&long)] {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert_eq!(text.matches("goes").count() % 9, 0, "nothing is lost: {text}");
        }
    }

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let at = |text: &str| -> Instant { text.parse().expect("a time") };
        let now = at("2026-11-30T16:00:00Z");
        assert_eq!(clock(at("2026-11-30T15:10:00Z"), now, Tz::UTC), "15:10");
        assert_eq!(clock(at("2026-11-30T14:50:00Z"), now, Tz::Asia__Seoul), "Nov 30 23:50", "it is the first there");
    }
}
