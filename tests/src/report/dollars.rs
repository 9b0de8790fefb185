//! Dollars over the height of the month's chart, and in letters.

use super::axis::rounded;

/// Room over the lines for the words "gate closed".
pub(super) const TOP: f64 = 26.0;
pub(super) const HEIGHT: f64 = 220.0;
pub(super) const BOTTOM: f64 = TOP + HEIGHT;
/// The most the axis shows: beyond it the steps of an `f64` would be larger than a cent.
const MOST_USD: f64 = 1e12;

/// Dollars laid out over the plot's height, from zero up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dollars {
    step: f64,
    top: f64,
}

impl Dollars {
    /// Steps of one, two or five of a power of ten, five to ten of them to a little above `most`.
    pub(super) fn up_to(most: f64) -> Self {
        // A millionth of a dollar is the least the guard counts in.
        let most = if most >= 1e-6 { most.min(MOST_USD) * 1.04 } else { 1.0 };
        let power = 10_f64.powf((most / 10.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| most / step <= 10.0);
        let step = step.unwrap_or(10.0 * power);
        Self { step, top: (most / step).ceil() * step }
    }

    pub(super) fn y(self, usd: f64) -> f64 {
        rounded(BOTTOM - (usd / self.top).clamp(0.0, 1.0) * HEIGHT)
    }

    pub(super) fn ticks(self) -> impl Iterator<Item = f64> {
        let count = (self.top / self.step).round() as u32;
        (0..=count).map(move |n| f64::from(n) * self.step)
    }

    /// With as many digits as the steps need.
    pub(super) fn tick(self, usd: f64) -> String {
        let cents = if self.step < 1.0 { (-self.step.log10()).ceil().max(2.0) as usize } else { 0 };
        format!("${usd:.cents$}")
    }
}

/// In cents; whole from a thousand dollars on, where a label has no room for more, and finer where a cent is too coarse.
pub(super) fn dollars(usd: f64) -> String {
    let size = usd.abs();
    let digits = if size >= 1000.0 {
        0
    } else if size > 0.0 && size < 0.01 {
        4
    } else {
        2
    };
    format!("{}${size:.digits$}", if usd < 0.0 { "-" } else { "" })
}
