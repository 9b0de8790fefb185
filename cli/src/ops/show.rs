//! How things are written on a terminal of 80 columns.

use chrono_tz::Tz;
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use reveille::domain::{Instant, Usd};
use serde_json::Value;
use std::io::IsTerminal as _;

/// What every terminal has.
const WIDTH: u16 = 80;

/// A table with a header, broken to the width of a terminal.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = empty();
    table.set_header(header.to_vec());
    table.add_rows(plain_cells(rows));
    trimmed(&table.to_string())
}

/// Text broken to the width of a terminal, indented.
pub(crate) fn paragraph(text: &str) -> String {
    let mut table = empty();
    table.add_row(vec![String::new(), plain(text)]);
    trimmed(&table.to_string())
}

/// Names and texts beside each other.
pub(crate) fn pairs(rows: Vec<Vec<String>>) -> String {
    let mut table = empty();
    table.add_rows(plain_cells(rows));
    trimmed(&table.to_string())
}

/// Without what moves a cursor, colours, or turns the direction of writing: a tag, a note or a line of a log is anybody's.
pub(crate) fn plain(text: &str) -> String {
    let moves = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if moves(c) { ' ' } else { c }).collect()
}

fn plain_cells(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.into_iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect()
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
const TICK: std::time::Duration = std::time::Duration::from_millis(120);

/// A line on a terminal that moves while something is waited for; nothing where nobody looks.
pub(crate) fn bar(template: &str, whole: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(whole).with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

/// What is waited for, and for how long already.
pub(crate) async fn waiting<T>(what: &'static str, work: impl Future<Output = T>) -> T {
    let bar = bar("{spinner} {msg}, {elapsed}", 1).with_message(what);
    let done = work.await;
    bar.finish_and_clear();
    done
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
    fn nothing_that_steers_a_terminal_is_shown() {
        let name = "gpu-1\u{1b}[2J\u{9b}H\u{202e}\n\u{2066}x";
        let rows = || vec![vec![name.to_owned()]];
        for text in [table(&["node"], rows()), paragraph(name), pairs(rows())] {
            assert!(text.contains("gpu-1 [2J H   x"), "{text:?}");
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
