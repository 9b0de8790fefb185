//! One page with everything in it: it fetches nothing and runs no script.

use super::{PageFault, charts};
use crate::answers::{Answer, Report};
use crate::plans::Standing;
use crate::replay::watch::Watch;
use chrono::DateTime;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");
/// Makes "fetches nothing" a rule the browser keeps.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The plan that is shown more closely where none is named: the cheapest that can be had and is decided by the functions, of those
/// in which at most a fifth of the calls are cold; else the one with the fewest.
pub fn chosen(report: &Report) -> Option<usize> {
    let plans = report.plans.iter().enumerate();
    let can_be_had = plans.filter(|(_, plan)| plan.standing == Standing::Available && plan.configuration.is_some());
    can_be_had
        .min_by(|(_, a), (_, b)| {
            let rank =
                |plan: &Answer| if plan.cold_share <= 0.2 { (0, plan.cost_month_usd) } else { (1, plan.cold_share) };
            let ((class_a, by_a), (class_b, by_b)) = (rank(a), rank(b));
            class_a.cmp(&class_b).then(by_a.total_cmp(&by_b))
        })
        .map(|(n, _)| n)
}

/// The page. `watch` is of the plan in this place.
///
/// # Errors
/// A chart cannot be drawn.
pub fn page(report: &Report, place: usize, watch: &Watch) -> Result<String, PageFault> {
    let Some(plan) = report.plans.get(place) else { return Err(PageFault::new("no such plan")) };
    let weeks = report.trace.days / 7.0;
    let charts = [charts::cost_against_wait(&report.plans)?, charts::one_day(watch)?, charts::week(watch, weeks)?];
    Ok(whole(report, plan, place, watch, &charts).into_string())
}

fn whole(report: &Report, plan: &Answer, place: usize, watch: &Watch, charts: &[String; 3]) -> Markup {
    let trace = &report.trace;
    let day = DateTime::from_timestamp(watch.day.0, 0).unwrap_or_default().format("%A %-d %B %Y, from %H:%M UTC on");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Plans for " (trace.file) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "What each plan costs, and whom it keeps waiting" }
                p {
                    (trace.file) ": " (trace.calls_replayed) " calls in " (format!("{:.1}", trace.days)) " days, "
                    (format!("{:.1}", trace.calls_per_day)) " a day."
                    @for sentence in &trace.repaired { " " (sentence) "." }
                }
                h2 { "Cost against wait" }
                figure {
                    (PreEscaped(&charts[0]))
                    figcaption {
                        "Numbers are the rows of the table. Blue can be had; the line joins those that no other beats. Orange \
                         needs settings or a rule that the functions do not have, grey needs the future."
                    }
                }
                (table(report, place))
                h2 { "One day of " (plan.name) }
                p { (day) }
                figure {
                    (PreEscaped(&charts[1]))
                    figcaption { "Each line is a call: blue found a ready node, orange waited, red was never connected." }
                }
                h2 { "Hours of the week of " (plan.name) }
                figure {
                    (PreEscaped(&charts[2]))
                    figcaption { "The darker, the more of that hour a node ran. Dots are calls." }
                }
                @if let Some(lines) = &plan.configuration {
                    h2 { "Settings of " (plan.name) }
                    pre { @for line in lines { (line) "\n" } }
                }
                h2 { "Assumptions" }
                table {
                    tr { th { "what" } th { "value" } th { "source" } }
                    @for one in &report.assumptions { tr { td { (one.what) } td { (one.value) } td { (one.source) } } }
                }
            }
        }
    }
}

fn table(report: &Report, place: usize) -> Markup {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    html! {
        table.figures {
            tr {
                th {} th { "plan" } th { "hours a month" } th { "USD a month" } th { "cold" } th { "mean wait" } th { "p50" }
                th { "p95" } th { "unserved" } th { "starts a day" } th { "USD a call" }
            }
            @for (n, plan) in report.plans.iter().enumerate() {
                tr.chosen[n == place] {
                    td { (n + 1) }
                    td { (plan.name) }
                    td { (format!("{:.1}", plan.node_hours_month)) }
                    td { (format!("{:.2}", plan.cost_month_usd)) }
                    td { (percent(plan.cold_share)) }
                    td { (format!("{:.1} s", plan.wait_mean_seconds)) }
                    td { (plan.wait_p50_seconds) " s" }
                    td { (plan.wait_p95_seconds) " s" }
                    td { (percent(plan.unserved_share)) }
                    td { (format!("{:.1}", plan.starts_per_day)) }
                    td { (format!("{:.4}", plan.cost_per_call_usd)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::Setup;
    use crate::replay::watched;
    use crate::report::example::comparison;

    fn shown() -> String {
        let (comparison, path) = comparison(Setup::default());
        let report = comparison.run(&mut |_| {}).unwrap();
        let place = chosen(&report).unwrap();
        let span = comparison.span();
        let watch = Watch::new((span.from, span.from + 86_400), chrono_tz::Tz::UTC);
        let way = &comparison.plans()[place].way;
        let tally = watched(comparison.stream().unwrap(), way, span, watch).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(tally.node_seconds as f64 / tally.span() as f64 * 730.5, report.plans[place].node_hours_month);
        page(&report, place, &tally.watch.unwrap()).unwrap()
    }

    #[test]
    fn the_page_has_everything_and_fetches_nothing() {
        let page = shown();
        assert_eq!(page.matches("<svg").count(), 3);
        for part in ["Cost against wait", "One day of", "Hours of the week", "REVEILLE_IDLE_MINUTES=", "Assumptions"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("<script") && !page.contains("href=") && !page.contains("src="));
        let foreign = page.match_indices("http").filter(|(n, _)| !page[*n..].starts_with("http://www.w3.org/2000/svg"));
        assert_eq!(foreign.filter(|(n, _)| !page[*n..].starts_with("http-equiv")).count(), 0);
    }

    #[test]
    fn what_a_file_is_called_is_escaped() {
        let (comparison, path) = comparison(Setup::default());
        let mut report = comparison.run(&mut |_| {}).unwrap();
        std::fs::remove_file(path).unwrap();
        report.trace.file = "<script>".to_owned();
        let page = page(&report, 0, &Watch::new((0, 86_400), chrono_tz::Tz::UTC)).unwrap();
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script"));
    }
}
