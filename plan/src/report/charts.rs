//! The page's charts, as SVG.

use super::PageFault;
use crate::answers::Answer;
use crate::plans::Standing;
use crate::replay::watch::{DayCall, WEEK, Watch};
use plotters::coord::Shift;
use plotters::prelude::*;

const WIDE: u32 = 900;
const INK: RGBColor = RGBColor(0x33, 0x3a, 0x45);
const FAINT: RGBColor = RGBColor(0xdd, 0xe1, 0xe7);
const BLUE: RGBColor = RGBColor(0x1f, 0x6f, 0xc4);
const ORANGE: RGBColor = RGBColor(0xc9, 0x5a, 0x12);
const GREY: RGBColor = RGBColor(0x8a, 0x93, 0xa0);
const FONT: (&str, u32) = ("sans-serif", 13);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn drawn(height: u32, draw: impl FnOnce(&Area<'_>) -> Result<(), PageFault>) -> Result<String, PageFault> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDE, height)).into_drawing_area();
        area.fill(&WHITE).map_err(PageFault::new)?;
        draw(&area)?;
        area.present().map_err(PageFault::new)?;
    }
    Ok(svg)
}

fn colour(plan: &Answer) -> RGBColor {
    match plan.standing {
        Standing::Available => BLUE,
        Standing::OutOfRange | Standing::NotARule => ORANGE,
        Standing::Bound => GREY,
    }
}

/// Of those that can be had, the plans that no other one beats in cost and mean wait both, the cheapest first.
pub(super) fn front(plans: &[Answer]) -> Vec<usize> {
    let mut all: Vec<usize> = (0..plans.len()).filter(|n| plans[*n].standing == Standing::Available).collect();
    all.sort_by(|a, b| plans[*a].cost_month_usd.total_cmp(&plans[*b].cost_month_usd));
    let mut least = f64::INFINITY;
    all.retain(|n| {
        let is_better = plans[*n].wait_mean_seconds < least;
        least = least.min(plans[*n].wait_mean_seconds);
        is_better
    });
    all
}

/// What each plan costs against how long it keeps callers waiting; numbers are the rows of the table.
pub(super) fn cost_against_wait(plans: &[Answer]) -> Result<String, PageFault> {
    let most = |of: fn(&Answer) -> f64| plans.iter().map(of).fold(1.0, f64::max) * 1.08;
    let (cost, wait) = (most(|plan| plan.cost_month_usd), most(|plan| plan.wait_mean_seconds));
    drawn(420, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(54)
            .build_cartesian_2d(0.0..cost, 0.0..wait)
            .map_err(PageFault::new)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style(FONT.into_font().color(&INK))
            .x_desc("USD a month")
            .y_desc("mean wait, seconds")
            .draw()
            .map_err(PageFault::new)?;
        let line = front(plans).into_iter().map(|n| (plans[n].cost_month_usd, plans[n].wait_mean_seconds));
        chart.draw_series(LineSeries::new(line, BLUE.stroke_width(2))).map_err(PageFault::new)?;
        let dots = plans
            .iter()
            .map(|plan| Circle::new((plan.cost_month_usd, plan.wait_mean_seconds), 5, colour(plan).filled()));
        chart.draw_series(dots).map_err(PageFault::new)?;
        let numbers = plans.iter().enumerate().map(|(n, plan)| {
            let place = EmptyElement::at((plan.cost_month_usd, plan.wait_mean_seconds));
            place + Text::new((n + 1).to_string(), (7, -14), FONT.into_font().color(&INK))
        });
        chart.draw_series(numbers).map_err(PageFault::new)?;
        Ok(())
    })
}

/// When the nodes ran on the day, and the calls below: those that waited are taller.
pub(super) fn one_day(watch: &Watch) -> Result<String, PageFault> {
    let (from, to) = watch.day;
    let hours = |at: i64| (at.clamp(from, to) - from) as f64 / 3600.0;
    let longest = (to - from) as f64 / 3600.0;
    drawn(230, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(30)
            .x_label_area_size(40)
            .y_label_area_size(54)
            .build_cartesian_2d(0.0..longest, 0.0..3.0)
            .map_err(PageFault::new)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style(FONT.into_font().color(&INK))
            .x_labels(13)
            .x_label_formatter(&|hour| format!("{hour:.0}:00"))
            .y_labels(0)
            .x_desc("hour of the day")
            .draw()
            .map_err(PageFault::new)?;
        let up = watch
            .runs
            .iter()
            .map(|(start, end)| Rectangle::new([(hours(*start), 2.0), (hours(*end), 2.6)], BLUE.mix(0.55).filled()));
        chart.draw_series(up).map_err(PageFault::new)?;
        let calls = watch.day_calls.iter().map(|call| {
            let (height, colour) = height_of(call);
            PathElement::new(vec![(hours(call.at), 0.2), (hours(call.at), height)], colour.stroke_width(2))
        });
        chart.draw_series(calls).map_err(PageFault::new)?;
        for (text, at) in [("node runs", 2.95), ("calls", 1.75)] {
            let style = FONT.into_font().color(&INK);
            let place = EmptyElement::at((0.0, at)) + Text::new(text, (4, 0), style);
            chart.draw_series(std::iter::once(place)).map_err(PageFault::new)?;
        }
        Ok(())
    })
}

fn height_of(call: &DayCall) -> (f64, RGBColor) {
    match call.served {
        Some((0, _)) => (0.7, BLUE),
        Some(_) => (1.2, ORANGE),
        None => (1.2, RED),
    }
}

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// A square an hour of the week: the darker, the more of that hour a node ran; a dot where calls came.
pub(super) fn week(watch: &Watch, weeks: f64) -> Result<String, PageFault> {
    drawn(270, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(30)
            .x_label_area_size(40)
            .y_label_area_size(54)
            .build_cartesian_2d(0.0..24.0, 0.0..7.0)
            .map_err(PageFault::new)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .axis_style(INK)
            .label_style(FONT.into_font().color(&INK))
            .x_labels(13)
            .x_label_formatter(&|hour| format!("{hour:.0}"))
            .y_labels(0)
            .x_desc("hour of the day")
            .draw()
            .map_err(PageFault::new)?;
        let names = DAYS.iter().enumerate().map(|(row, day)| {
            let style = FONT.into_font().color(&INK);
            EmptyElement::at((0.0, 6.5 - row as f64)) + Text::new(*day, (-38, -6), style)
        });
        chart.draw_series(names).map_err(PageFault::new)?;
        let corner = |hour: usize| ((hour % 24) as f64, (6 - hour / 24) as f64);
        let squares = (0..WEEK).map(|hour| {
            let ((x, y), seconds) = (corner(hour), watch.node_seconds[hour] as f64);
            let share = (seconds / weeks.max(1.0 / 7.0) / 3600.0).clamp(0.0, 1.0);
            Rectangle::new([(x + 0.04, y + 0.06), (x + 0.96, y + 0.94)], BLUE.mix(0.05 + 0.9 * share).filled())
        });
        chart.draw_series(squares).map_err(PageFault::new)?;
        let most = watch.calls.iter().copied().max().unwrap_or(1).max(1) as f64;
        let dots = (0..WEEK).filter(|hour| watch.calls[*hour] > 0).map(|hour| {
            let (x, y) = corner(hour);
            let size = 1.0 + 6.0 * (watch.calls[hour] as f64 / most).sqrt();
            Circle::new((x + 0.5, y + 0.5), size as i32, ORANGE.filled())
        });
        chart.draw_series(dots).map_err(PageFault::new)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::report;

    #[test]
    fn the_front_is_of_plans_that_none_beats() {
        let plans = report().plans;
        let front = front(&plans);
        assert!(front.len() > 1 && front.iter().all(|n| plans[*n].standing == Standing::Available));
        for pair in front.windows(2) {
            let (cheap, dear) = (&plans[pair[0]], &plans[pair[1]]);
            assert!(cheap.cost_month_usd <= dear.cost_month_usd && cheap.wait_mean_seconds > dear.wait_mean_seconds);
        }
        assert_eq!(plans[*front.last().unwrap()].wait_mean_seconds, 0.0, "somebody pays for no wait at all");
    }
}
