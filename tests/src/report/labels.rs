//! Where the letters of the month's chart stand, so that they cover neither a line nor each other.

use super::axis::{EDGE, rounded};
use super::dollars::{BOTTOM, TOP};
use maud::{Markup, html};

/// Letters of 11 to 12 units, and what they keep from each other.
pub(super) const LETTERS: f64 = 14.0;
/// A letter of the labels, which are bold: wider than the 6.6 units of the picture's.
pub(super) const LETTER_WIDTH: f64 = 7.2;

/// Corners of a line in units of the plot, from left to right.
pub(super) type Line = Vec<(f64, f64)>;

/// Heights of labels that want these heights, the lowest first: each is moved up as far as it must.
pub(super) fn spread(wanted: &[f64]) -> Vec<f64> {
    let mut least = f64::MAX;
    wanted
        .iter()
        .map(|wanted| {
            let height = wanted.min(least);
            least = height - LETTERS;
            height
        })
        .collect()
}

/// Where a label may stand.
pub(super) struct Room {
    /// What a label must not cover: the lines, and the labels so far.
    pub(super) lines: Vec<Line>,
    /// Heights it keeps clear of where it can.
    pub(super) limits: Vec<f64>,
}

impl Room {
    /// A label at the line's end, as near to it as is free; nothing without a text.
    pub(super) fn label(&mut self, class: &str, text: Option<String>, line: &Line) -> Markup {
        let (Some(text), Some((x, y))) = (text, line.last().copied()) else { return html! {} };
        let width = text.chars().count() as f64 * LETTER_WIDTH;
        let after = x - width < EDGE;
        let (left, right) = if after { (x, x + width) } else { (x - width, x) };
        let base = self.base(left, right, y);
        let (top, bottom) = (base - 11.0, base + 4.0);
        self.lines.push(vec![(left, bottom), (left, top), (right, top), (right, bottom), (left, bottom)]);
        let class = format!("end {class}{}", if after { " from" } else { "" });
        html! { text class=(class) x=(x) y=(rounded(base)) { (text) } }
    }

    /// The baseline nearest to `y` that is free, over it rather than under it; just over it when nothing is.
    fn base(&self, left: f64, right: f64, y: f64) -> f64 {
        let steps = (0..12).flat_map(|n| [y - 8.0 - 8.0 * f64::from(n), y + 17.0 + 8.0 * f64::from(n)]);
        let inside: Vec<f64> = steps.filter(|base| *base - 11.0 >= TOP && *base + 6.0 <= BOTTOM).collect();
        let clear = |base: &&f64| self.lines.iter().all(|line| !meets(line, left, right, **base - 13.0, **base + 6.0));
        let between_limits = |base: &&f64| self.limits.iter().all(|y| *y < **base - 12.0 || *y > **base + 7.0);
        let best = inside.iter().filter(clear).find(between_limits).or_else(|| inside.iter().find(clear));
        best.copied().unwrap_or(y - 8.0)
    }
}

/// Whether the line passes through the box.
fn meets(line: &Line, left: f64, right: f64, top: f64, bottom: f64) -> bool {
    let dot = line.iter().any(|(x, y)| (left..=right).contains(x) && (top..=bottom).contains(y));
    dot || line.windows(2).any(|ends| piece_meets(ends[0], ends[1], left, right, top, bottom))
}

fn piece_meets(a: (f64, f64), b: (f64, f64), left: f64, right: f64, top: f64, bottom: f64) -> bool {
    let (a, b) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    if b.0 < left || a.0 > right {
        return false;
    }
    let height = |x: f64| if b.0 > a.0 { a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0) } else { a.1 };
    let ends = if b.0 > a.0 { (height(a.0.max(left)), height(b.0.min(right))) } else { (a.1, b.1) };
    ends.0.min(ends.1) <= bottom && ends.0.max(ends.1) >= top
}
