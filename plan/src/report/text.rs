//! As a table of 80 columns, as CSV and as Markdown.

use crate::answers::{Answer, Report};
use crate::plans::Standing;
use std::fmt::Write as _;

/// Columns of a terminal.
const WIDTH: usize = 80;
/// What is left of them beside the figures.
const NAME: usize = 31;

fn mark(standing: Standing) -> &'static str {
    match standing {
        Standing::Available => "",
        Standing::OutOfRange => "*",
        Standing::NotARule => "+",
        Standing::Bound => "=",
    }
}

fn meaning(standing: Standing) -> &'static str {
    match standing {
        Standing::Available => "",
        Standing::OutOfRange => "by the rules of the functions, with settings they do not take today",
        Standing::NotARule => {
            "by a rule the functions do not have: one reading is enough where every call holds a lease"
        }
        Standing::Bound => "a bound: it knows the future",
    }
}

/// For a terminal.
pub fn table(report: &Report) -> String {
    let mut out = String::new();
    let trace = &report.trace;
    let survey = &trace.survey;
    let found = format!("{}: {} calls in {} lines, {:.1} days", trace.file, survey.calls, survey.lines, trace.days);
    let of_day = format!("{} replayed, {:.1} a day", trace.calls_replayed, trace.calls_per_day);
    wrapped(&mut out, &format!("{found}; {of_day}"), 0);
    trace.repaired.iter().for_each(|sentence| wrapped(&mut out, &format!("  {sentence}"), 2));
    out.push('\n');
    line(&mut out, "plan", ["hours", "USD", "cold", "mean", "p50", "p95", "lost", "start", "USD"]);
    line(&mut out, "", ["/month", "/month", "%", "s", "s", "s", "%", "/day", "/call"]);
    report.plans.iter().for_each(|plan| row(&mut out, plan));
    out.push('\n');
    for standing in [Standing::OutOfRange, Standing::NotARule, Standing::Bound] {
        if report.plans.iter().any(|plan| plan.standing == standing) {
            wrapped(&mut out, &format!("{} {}", mark(standing), meaning(standing)), 2);
        }
    }
    wrapped(&mut out, "cold: waited for 95 % of a boot at least, or in vain; lost: never connected", 2);
    budget(&mut out, report);
    out.push_str("\nAssumptions (--format json names the sources):\n");
    report.assumptions.iter().for_each(|one| wrapped(&mut out, &format!("  {}: {}", one.what, one.value), 4));
    out
}

fn line(out: &mut String, name: &str, cells: [&str; 9]) {
    let [hours, month, cold, mean, median, high, lost, starts, call] = cells;
    let _ = writeln!(
        out,
        "{name:<NAME$}{hours:>6}{month:>7}{cold:>5}{mean:>5}{median:>4}{high:>4}{lost:>5}{starts:>6}{call:>7}"
    );
}

fn row(out: &mut String, plan: &Answer) {
    let name = format!("{}{}", plan.name, mark(plan.standing));
    let name = if name.chars().count() > NAME {
        let _ = writeln!(out, "{name}");
        String::new()
    } else {
        name
    };
    line(
        out,
        &name,
        [
            &format!("{:.1}", plan.node_hours_month),
            &format!("{:.2}", plan.cost_month_usd),
            &percent(plan.cold_share),
            &format!("{:.1}", plan.wait_mean_seconds),
            &plan.wait_p50_seconds.to_string(),
            &plan.wait_p95_seconds.to_string(),
            &percent(plan.unserved_share),
            &format!("{:.1}", plan.starts_per_day),
            &format!("{:.4}", plan.cost_per_call_usd),
        ],
    );
}

/// Four places, so that a column of five keeps its distance.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    if text == "100.0" { "100".to_owned() } else { text }
}

/// What a call costs in all, and how many of them the day's money pays for.
fn budget(out: &mut String, report: &Report) {
    if report.plans.iter().all(|plan| plan.whole_cost_per_call_usd.is_none()) {
        return;
    }
    let _ = writeln!(out, "\n{:<NAME$}{:>16}{:>16}{:>16}", "plan", "USD a call in all", "calls a day paid", "turns");
    for plan in &report.plans {
        let of = |figure: Option<i64>| figure.map_or_else(|| "-".to_owned(), |figure| figure.to_string());
        let whole = plan.whole_cost_per_call_usd.map_or_else(|| "-".to_owned(), |usd| format!("{usd:.4}"));
        let (calls, turns) = (of(plan.budget_calls_per_day), of(plan.budget_turns_per_day));
        let _ = writeln!(out, "{:<NAME$}{whole:>17}{calls:>16}{turns:>16}", plan.name);
    }
}

/// Words in lines of at most 80 columns, further lines indented by so much.
pub(crate) fn wrapped(out: &mut String, text: &str, indent: usize) {
    let mut length = 0;
    let start = text.len() - text.trim_start().len();
    out.push_str(&text[..start]);
    length += start;
    for (n, word) in text.split_whitespace().enumerate() {
        let long = word.chars().count();
        if n > 0 && length + 1 + long > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            length = indent;
        } else if n > 0 {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += long;
    }
    out.push('\n');
}

/// Every figure, for a spreadsheet.
pub fn csv(report: &Report) -> String {
    let mut out =
        "plan,standing,node_hours_month,cost_month_usd,compute_usd,disk_usd,address_usd,controller_usd,cold_share,\
        waited_share,wait_mean_seconds,wait_p50_seconds,wait_p95_seconds,unserved_share,starts_per_day,refused_starts_per_day,\
        calls_per_node_mean,calls_per_node_most,cost_per_call_usd,whole_cost_per_call_usd,budget_calls_per_day,\
        budget_turns_per_day\n"
            .replace(' ', "");
    for plan in &report.plans {
        let parts = &plan.cost_parts;
        let _ = write!(out, "\"{}\",{}", plan.name.replace('"', "'"), name_of(plan.standing));
        let money = [plan.cost_month_usd, parts.compute_usd, parts.disk_usd, parts.address_usd, parts.controller_usd];
        let _ = write!(out, ",{:.4}", plan.node_hours_month);
        for usd in money {
            let _ = write!(out, ",{usd:.6}");
        }
        let _ = write!(out, ",{:.6},{:.6},{:.3}", plan.cold_share, plan.waited_share, plan.wait_mean_seconds);
        let _ = write!(out, ",{},{},{:.6}", plan.wait_p50_seconds, plan.wait_p95_seconds, plan.unserved_share);
        let _ = write!(out, ",{:.4},{:.4}", plan.starts_per_day, plan.refused_starts_per_day);
        let _ = write!(out, ",{:.4},{}", plan.calls_per_node_mean, optional(plan.calls_per_node_most));
        let _ = write!(out, ",{:.6},", plan.cost_per_call_usd);
        let _ = write!(out, "{}", plan.whole_cost_per_call_usd.map_or_else(String::new, |usd| format!("{usd:.6}")));
        let (calls, turns) = (optional(plan.budget_calls_per_day), optional(plan.budget_turns_per_day));
        let _ = writeln!(out, ",{calls},{turns}");
    }
    out
}

fn optional<T: ToString>(figure: Option<T>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}

fn name_of(standing: Standing) -> &'static str {
    match standing {
        Standing::Available => "available",
        Standing::OutOfRange => "out_of_range",
        Standing::NotARule => "not_a_rule",
        Standing::Bound => "bound",
    }
}

/// For a page or a message.
pub fn markdown(report: &Report) -> String {
    let mut out =
        "| plan | hours a month | $ a month | cold | wait mean / p50 / p95 | unserved | starts a day | $ a call |\n\
        |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for plan in &report.plans {
        let _ = writeln!(
            out,
            "| {}{} | {:.1} | {:.2} | {:.1} % | {:.1} / {} / {} s | {:.1} % | {:.1} | {:.4} |",
            plan.name.replace('|', "/"),
            mark(plan.standing).replace('*', "\\*"),
            plan.node_hours_month,
            plan.cost_month_usd,
            plan.cold_share * 100.0,
            plan.wait_mean_seconds,
            plan.wait_p50_seconds,
            plan.wait_p95_seconds,
            plan.unserved_share * 100.0,
            plan.starts_per_day,
            plan.cost_per_call_usd,
        );
    }
    for standing in [Standing::OutOfRange, Standing::NotARule, Standing::Bound] {
        if report.plans.iter().any(|plan| plan.standing == standing) {
            let _ = write!(out, "\n{} {}.\n", mark(standing).replace('*', "\\*"), meaning(standing));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::report;

    #[test]
    fn a_whole_share_does_not_run_into_the_column_before_it() {
        for (share, text) in [(0.0, "0.0"), (0.0567, "5.7"), (0.999, "99.9"), (0.9999, "100"), (1.0, "100")] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn a_table_fits_a_terminal() {
        let table = table(&report());
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        assert!(table.contains("on-demand idle 30") && table.contains("Assumptions"));
        let name = "on-demand idle 1440, pre-warm 1440, tick 60, warm mon-fri 07:00-23:00";
        let mut long = report();
        long.plans[0].name = name.to_owned();
        assert!(super::table(&long).contains(&format!("{name}\n   ")), "a long name stands on a line of its own");
    }

    #[test]
    fn every_row_of_a_csv_has_the_header_s_cells() {
        let csv = csv(&report());
        let cells = |line: &str| {
            let outside = line.split('"').step_by(2);
            outside.map(|part| part.matches(',').count()).sum::<usize>()
        };
        let mut lines = csv.lines();
        let header = cells(lines.next().unwrap());
        assert!(lines.clone().count() > 3 && lines.all(|line| cells(line) == header), "{csv}");
    }

    #[test]
    fn every_row_of_a_markdown_table_has_its_cells() {
        let markdown = markdown(&report());
        let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.len() > 4 && rows.iter().all(|row| row.matches('|').count() == 9), "{markdown}");
        assert!(markdown.contains("\\* ") && markdown.contains("= a bound"));
    }

    #[test]
    fn what_a_budget_pays_for_is_shown_where_it_was_asked() {
        assert!(!table(&report()).contains("calls a day paid"));
        let mut asked = report();
        asked.plans[0].whole_cost_per_call_usd = Some(0.5);
        asked.plans[0].budget_calls_per_day = Some(40);
        let table = table(&asked);
        assert!(table.contains("calls a day paid") && table.contains("0.5000"));
    }
}
