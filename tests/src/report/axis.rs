//! Time over the width of a plot, and the box the plot stands in: what the day's picture and the month's chart share.

use super::{Clock, Day};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

/// The width of the names beside a plot, which stay in sight while it scrolls. style.css divides the box as 1 to 9.
pub(super) const NAMES: f64 = 120.0;
pub(super) const PLOT: f64 = 1080.0;
/// Room at both ends of the plot for a mark or an hour that sits on its edge.
pub(super) const EDGE: f64 = 18.0;

/// Time laid out over the plot's width.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) from: DateTime<Utc>,
    pub(super) seconds: f64,
    pub(super) clock: Clock,
}

impl Scale {
    pub(super) fn of(day: &Day) -> Self {
        let seconds = day.to.signed_duration_since(day.from).as_seconds_f64().max(1.0);
        Self { from: day.from, seconds, clock: Clock::of(day) }
    }

    /// The share of the day that is over `later` seconds after `at`, from 0 to 1.
    pub(super) fn share(self, at: DateTime<Utc>, later: f64) -> f64 {
        let passed = at.signed_duration_since(self.from).as_seconds_f64() + later.max(0.0);
        (passed / self.seconds).clamp(0.0, 1.0)
    }

    pub(super) fn x(self, at: DateTime<Utc>, later: f64) -> f64 {
        rounded(EDGE + self.share(at, later) * (PLOT - 2.0 * EDGE))
    }

    /// What the axis takes under the plot: hours; under them the dates, where there is more than one.
    pub(super) fn axis_height(self) -> f64 {
        if self.clock.dated { 38.0 } else { 24.0 }
    }
}

/// A tenth of a unit is finer than a screen shows and keeps the page small.
pub(super) fn rounded(units: f64) -> f64 {
    (units * 10.0).round() / 10.0
}

/// The hours at height `y`, and their lines from the top down to it.
pub(super) fn axis(scale: Scale, y: f64) -> Markup {
    html! {
        @for at in ticks(scale) {
            @let x = scale.x(at, 0.0);
            path.grid d={ "M" (x) " 0V" (y + 4.0) } {}
            text.tick x=(x) y=(y + 17.0) { (at.format("%H:%M")) }
            @if scale.clock.dated && at.format("%H:%M").to_string() == "00:00" {
                text.tick x=(x) y=(y + 31.0) { (at.format("%-d %b")) }
            }
        }
    }
}

/// Whole steps of the clock, at most 26 of them.
fn ticks(scale: Scale) -> Vec<DateTime<Utc>> {
    let steps = [60, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
    let week = 7 * 86_400;
    let step = steps.into_iter().find(|step| scale.seconds / f64::from(*step) <= 25.0).unwrap_or(week);
    let late = scale.from.timestamp().rem_euclid(i64::from(step));
    let first = scale.from + TimeDelta::seconds((i64::from(step) - late) % i64::from(step));
    (0..26)
        .map(|n| first + TimeDelta::seconds(n * i64::from(step)))
        .take_while(|at| at.signed_duration_since(scale.from).as_seconds_f64() <= scale.seconds)
        .collect()
}

/// What is said of a plot to those who do not see it.
pub(super) struct Spoken<'a> {
    /// Begins the names of its title and description: once in a page.
    pub(super) id: &'a str,
    /// The name of the box that scrolls.
    pub(super) region: &'a str,
    pub(super) title: &'a str,
    pub(super) desc: String,
}

/// A plot and the names beside it, in a box that scrolls sideways.
pub(super) fn scroll_box(spoken: &Spoken<'_>, height: f64, names: Markup, plot: Markup) -> Markup {
    let (title, desc) = (format!("{}-title", spoken.id), format!("{}-desc", spoken.id));
    html! {
        div.scroll tabindex="0" role="region" aria-label={ (spoken.region) ", scrolls sideways" } {
            div.canvas {
                svg.names viewBox={ "0 0 " (NAMES) " " (height) } aria-hidden="true" { (names) }
                svg.plot viewBox={ "0 0 " (PLOT) " " (height) } role="img" aria-labelledby={ (title) " " (desc) } {
                    title id=(title) { (spoken.title) }
                    desc id=(desc) { (spoken.desc) }
                    (plot)
                }
            }
        }
    }
}
