//! The month's money over the day: a chart over the same time as the day's picture.

use super::axis::{EDGE, NAMES, PLOT, Scale, Spoken, axis, rounded, scroll_box};
use super::dollars::{BOTTOM, Dollars, HEIGHT, TOP, dollars};
use super::labels::{LETTER_WIDTH, LETTERS, Line, Room, spread};
use super::{Day, SpendLine, gates};
use chrono::{DateTime, Utc};
use maud::{Markup, html};

const CLOSED: &str = "gate closed";

/// The figures of one source, in order of time, all of them numbers.
type Figures = Vec<(DateTime<Utc>, f64)>;

/// The section with the chart and its key figures.
pub(super) fn section(day: &Day, spend: &SpendLine) -> Markup {
    let chart = Chart::of(day, spend);
    let summary = chart.sentence(day);
    html! {
        section aria-labelledby="month" {
            h2 id="month" { "Money of the month" }
            figure { (chart.drawn(day, &summary)) figcaption { p { (summary) } } }
        }
    }
}

/// A line where people are told.
struct Threshold {
    percent: f64,
    usd: f64,
}

struct Chart {
    time: Scale,
    money: Dollars,
    /// In dollars, above zero.
    amount: Option<f64>,
    thresholds: Vec<Threshold>,
    own: Figures,
    aws: Figures,
}

impl Chart {
    fn of(day: &Day, spend: &SpendLine) -> Self {
        let (own, aws) = (figures(&spend.own), figures(&spend.aws));
        let amount = Some(spend.amount_usd).filter(|usd| usd.is_finite() && *usd > 0.0);
        let thresholds = amount.map(|usd| thresholds(usd, &spend.thresholds)).unwrap_or_default();
        let levels = thresholds.iter().map(|threshold| threshold.usd);
        let most = own.iter().chain(&aws).map(|(_, usd)| *usd).chain(levels).fold(0.0, f64::max);
        Self { time: Scale::of(day), money: Dollars::up_to(most), amount, thresholds, own, aws }
    }

    fn drawn(&self, day: &Day, summary: &str) -> Markup {
        let spoken = Spoken {
            id: "month-chart",
            region: "Chart of the month's money",
            title: "The money of the month over the day, in US dollars",
            desc: [summary.to_owned(), self.told()].join(" "),
        };
        scroll_box(&spoken, BOTTOM + self.time.axis_height(), self.gutter(), self.plot(day))
    }

    /// The dollars of the axis, and the thresholds in their place.
    fn gutter(&self) -> Markup {
        let wanted: Vec<f64> = self.thresholds.iter().map(|threshold| self.money.y(threshold.usd)).collect();
        let heights = spread(&wanted);
        html! {
            @for usd in self.money.ticks() {
                @let y = self.money.y(usd);
                @if heights.iter().all(|height| (height - y).abs() >= LETTERS) {
                    text.amount x=(NAMES - 12.0) y=(y + 4.0) { (self.money.tick(usd)) }
                }
            }
            @for ((threshold, wanted), height) in self.thresholds.iter().zip(&wanted).zip(&heights) {
                text class=(full("threshold", threshold)) x=(NAMES - 12.0) y=(height + 4.0) { (threshold.label()) }
                path.leader d={ "M" (NAMES - 9.0) " " (height) "L" (NAMES) " " (wanted) } {}
            }
        }
    }

    fn plot(&self, day: &Day) -> Markup {
        let (own, aws) = (self.straight(&self.own), self.stepped(&self.aws));
        html! {
            (axis(self.time, BOTTOM))
            (self.closed(day))
            @for usd in self.money.ticks() { path.grid d={ "M" (EDGE) " " (self.money.y(usd)) "H" (PLOT - EDGE) } {} }
            @for threshold in &self.thresholds { (self.limit(threshold)) }
            // The broken line is over the whole one, so that both are seen where they are one.
            (path("line own", &own))
            (path("line aws", &aws))
            (self.points("aws", "AWS's figure", &changes(&self.aws)))
            (self.points("own", "own estimate", &self.own))
            (self.ends(&own, &aws))
        }
    }

    /// The closed gate as shades, each with its word.
    fn closed(&self, day: &Day) -> Markup {
        let spans = gates::closed(day).into_iter().map(|(from, to)| (self.time.x(from, 0.0), self.time.x(to, 0.0)));
        let spans: Vec<(f64, f64)> = spans.collect();
        html! {
            @for (left, right) in &spans {
                rect.closed x=(left) y=(TOP) width=(rounded(right - left).max(0.8)) height=(HEIGHT) {}
            }
            @for x in words(&spans) { text.gate-word x=(x) y=(TOP - 8.0) { (CLOSED) } }
        }
    }

    fn limit(&self, threshold: &Threshold) -> Markup {
        let y = self.money.y(threshold.usd);
        html! {
            g {
                title { (threshold.label()) ", " (self.reached(threshold)) }
                path class=(full("limit", threshold)) d={ "M" (EDGE) " " (y) "H" (PLOT - EDGE) } {}
            }
        }
    }

    /// When the own estimate was first seen at a threshold or over it.
    fn reached(&self, threshold: &Threshold) -> String {
        match self.own.iter().position(|(_, usd)| *usd >= threshold.usd) {
            None => "not reached".to_owned(),
            Some(0) => "reached at the first look of the day".to_owned(),
            Some(n) => format!("reached at {}", self.time.clock.minute(self.own[n].0)),
        }
    }

    fn told(&self) -> String {
        let of = |threshold: &Threshold| format!("{}, {}", threshold.label(), self.reached(threshold));
        let thresholds: Vec<String> = self.thresholds.iter().map(of).collect();
        if thresholds.is_empty() { String::new() } else { format!("Thresholds: {}.", thresholds.join("; ")) }
    }

    fn at(&self, (at, usd): (DateTime<Utc>, f64)) -> (f64, f64) {
        (self.time.x(at, 0.0), self.money.y(usd))
    }

    fn straight(&self, figures: &Figures) -> Line {
        figures.iter().map(|figure| self.at(*figure)).collect()
    }

    /// A figure holds until the next one is read.
    fn stepped(&self, figures: &Figures) -> Line {
        let mut line: Line = Vec::new();
        for (x, y) in figures.iter().map(|figure| self.at(*figure)) {
            if let Some((_, before)) = line.last().copied() {
                line.push((x, before));
            }
            line.push((x, y));
        }
        line
    }

    fn points(&self, class: &str, name: &str, figures: &Figures) -> Markup {
        html! {
            @for (at, usd) in figures {
                @let (x, y) = self.at((*at, *usd));
                g transform={ "translate(" (x) " " (y) ")" } {
                    title { (self.time.clock.minute(*at)) " " (name) " " (dollars(*usd)) }
                    circle.hit r="9" {}
                    circle class={ "point " (class) } r="2.6" {}
                }
            }
        }
    }

    /// The name and the last figure of both lines, each at its end.
    fn ends(&self, own: &Line, aws: &Line) -> Markup {
        let limits = self.thresholds.iter().map(|threshold| self.money.y(threshold.usd));
        let mut room = Room { lines: vec![own.clone(), aws.clone()], limits: limits.collect() };
        let own = room.label("own", self.own.last().map(|(_, usd)| format!("own estimate {}", dollars(*usd))), own);
        let aws = room.label("aws", self.aws.last().map(|(_, usd)| format!("AWS's figure {}", dollars(*usd))), aws);
        html! { (own) (aws) }
    }

    fn sentence(&self, day: &Day) -> String {
        let amount = match self.amount {
            Some(usd) => format!("The budget of the month is {}.", dollars(usd)),
            None => "The month has no budget amount.".to_owned(),
        };
        let aws = match self.aws.last() {
            Some((_, usd)) => format!("The newest figure of AWS, hours late, was {}.", self.shared(*usd)),
            None => "AWS gave no figure.".to_owned(),
        };
        let gate = gates::sentence(day, self.time.clock).unwrap_or_default();
        [amount, self.estimated(), aws, gate].join(" ").trim_end().to_owned()
    }

    fn estimated(&self) -> String {
        let ([(_, first), ..], Some((at, last))) = (self.own.as_slice(), self.own.last()) else {
            return "No estimate was made.".to_owned();
        };
        let from = if self.own.len() > 1 { format!("went from {} to", dollars(*first)) } else { "was".to_owned() };
        format!("Reveille's own estimate {from} {} at {}.", self.shared(*last), self.time.clock.minute(*at))
    }

    /// With its share of the budget, where there is one.
    fn shared(&self, usd: f64) -> String {
        match self.amount {
            Some(amount) => format!("{} ({:.0} % of the budget)", dollars(usd), usd / amount * 100.0),
            None => dollars(usd),
        }
    }
}

impl Threshold {
    fn label(&self) -> String {
        format!("{} % · {}", self.percent, dollars(self.usd))
    }
}

/// The class, and a second one from the whole amount on.
fn full(class: &str, threshold: &Threshold) -> String {
    if threshold.percent >= 100.0 { format!("{class} full") } else { class.to_owned() }
}

fn figures(all: &[(DateTime<Utc>, f64)]) -> Figures {
    let mut figures: Figures = all.iter().copied().filter(|(_, usd)| usd.is_finite()).collect();
    figures.sort_by_key(|(at, _)| *at);
    figures
}

/// Those figures that differ from the one before.
fn changes(figures: &Figures) -> Figures {
    let mut changes = figures.clone();
    changes.dedup_by(|(_, usd), (_, before)| usd == before);
    changes
}

/// Rising, each once; what is not above zero is no threshold.
fn thresholds(amount: f64, percents: &[f64]) -> Vec<Threshold> {
    let mut percents: Vec<f64> = percents.iter().copied().filter(|percent| *percent > 0.0).collect();
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    let all = percents.into_iter().map(|percent| Threshold { percent, usd: amount * (percent / 100.0) });
    all.filter(|threshold| threshold.usd.is_finite()).collect()
}

/// The middles of the words over spans; one that would run into the word before it is left out.
fn words(spans: &[(f64, f64)]) -> Vec<f64> {
    let half = CLOSED.len() as f64 * LETTER_WIDTH / 2.0;
    let mut taken = 0.0;
    let mut middles: Vec<f64> = spans
        .iter()
        .map(|(left, right)| rounded(((left + right) / 2.0).clamp(EDGE + half, PLOT - EDGE - half)))
        .collect();
    middles.retain(|middle| {
        let free = middle - half >= taken;
        taken = if free { middle + half + LETTERS } else { taken };
        free
    });
    middles
}

fn path(class: &str, line: &Line) -> Markup {
    let corners: Vec<String> = line.iter().map(|(x, y)| format!("{x} {y}")).collect();
    html! { @if line.len() > 1 { path class=(class) d={ "M" (corners.join("L")) } {} } }
}
