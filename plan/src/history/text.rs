//! As a table of 80 columns, as CSV and as Markdown, as the planner's are.

use super::{CALLS, Figures, LastBoots, Past, launches};
use crate::report::wrapped;
use chrono_tz::Tz;
use reveille::domain::Instant;
use std::fmt::Write as _;

const LEGEND: &str = "cold: starts that a call or a request waited for; mean, p50 and p95 are from its wake to ready, as it \
                      was seen; vain: launches that ended and served nobody";

/// For a terminal.
pub fn table(pasts: &[Past], zone: Tz) -> String {
    let mut out = String::new();
    for past in pasts {
        if !out.is_empty() {
            out.push('\n');
        }
        one(&mut out, past, zone);
    }
    out.push('\n');
    wrapped(&mut out, LEGEND, 2);
    wrapped(&mut out, &format!("Not known: {CALLS}."), 2);
    out
}

fn one(out: &mut String, past: &Past, zone: Tz) {
    let Some((since, all)) = past.known_since.zip(past.all.as_ref()) else {
        let _ = writeln!(out, "Pool {}: no launch is known in these months", past.pool);
        return;
    };
    let to = all.to;
    let _ = writeln!(out, "Pool {}, launches known since {}, to {}", past.pool, clock(since, zone), clock(to, zone));
    out.push('\n');
    line(out, ["month", "hours", "starts", "cold", "mean", "p50", "p95", "vain", "USD", "24/7", "of"]);
    line(out, ["", "", "", "", "s", "s", "s", "", "", "USD", "24/7"]);
    past.months.iter().for_each(|figures| row(out, figures));
    if past.months.len() > 1 {
        row(out, all);
    }
    plans(out, all);
    causes(out, all);
    let notes = notes(past, all);
    if !notes.is_empty() {
        out.push('\n');
    }
    notes.iter().for_each(|note| wrapped(out, note, 2));
}

/// What has to be known to read the figures of this pool.
fn notes(past: &Past, all: &Figures) -> Vec<String> {
    let boots = past.last_boots.map(|LastBoots { boots, median_seconds, spread_seconds }| {
        format!(
            "Last boots: {boots}, median {median_seconds} s from START to ready, quartiles {spread_seconds} s apart."
        )
    });
    let presumed = (all.ends_presumed > 0).then(|| {
        format!("The end of {} was not seen: each counts 20 minutes too long at most.", launches(all.ends_presumed))
    });
    let unpriced =
        (!all.unpriced.is_empty()).then(|| format!("No price for {}: set REVEILLE_PRICES.", all.unpriced.join(", ")));
    let gaps = past.not_known.iter().filter(|gap| *gap != CALLS).map(|gap| format!("Not known: {gap}."));
    boots.into_iter().chain(presumed).chain(unpriced).chain(gaps).collect()
}

fn line(out: &mut String, cells: [&str; 11]) {
    let [month, hours, starts, cold, mean, median, high, vain, usd, always, share] = cells;
    let text = format!(
        "{month:<8}{hours:>8}{starts:>8}{cold:>6}{mean:>7}{median:>6}{high:>6}{vain:>6}{usd:>9}{always:>9}{share:>7}"
    );
    let _ = writeln!(out, "{}", text.trim_end());
}

fn row(out: &mut String, figures: &Figures) {
    line(
        out,
        [
            &figures.month,
            &format!("{:.1}", figures.node_hours),
            &figures.starts.to_string(),
            &figures.cold_starts.to_string(),
            &shown(figures.wait_mean_seconds, 1),
            &whole(figures.wait_p50_seconds),
            &whole(figures.wait_p95_seconds),
            &figures.for_nothing.to_string(),
            &shown(figures.cost_usd, 2),
            &shown(figures.plans.first().and_then(|plan| plan.cost_usd), 2),
            &percent(figures.share_of_always),
        ],
    );
}

fn plans(out: &mut String, all: &Figures) {
    let _ = writeln!(out, "\n{:<31}{:>9}{:>11}", "in all, plan", "hours", "USD");
    let _ = writeln!(out, "{:<31}{:>9.1}{:>11}", "as it was", all.node_hours, shown(all.cost_usd, 2));
    for plan in &all.plans {
        let _ = writeln!(out, "{:<31}{:>9.1}{:>11}", plan.name, plan.node_hours, shown(plan.cost_usd, 2));
    }
}

fn causes(out: &mut String, all: &Figures) {
    if all.causes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{:<47}{:>8}{:>8}{:>14}", "woken by", "starts", "vain", "hours in vain");
    for cause in &all.causes {
        let name = cause.source.unwrap_or("no wake: by hand, a window or calls");
        let path = cause.path.as_deref().map_or_else(String::new, |path| format!(" for {path}"));
        let name = format!("{name}{path}");
        if name.chars().count() > 46 {
            wrapped(out, &name, 2);
        } else {
            let _ = write!(out, "{name:<47}");
        }
        let indent = if name.chars().count() > 46 { 47 } else { 0 };
        let _ =
            writeln!(out, "{:indent$}{:>8}{:>8}{:>14.1}", "", cause.starts, cause.for_nothing, cause.for_nothing_hours);
    }
}

fn clock(at: Instant, zone: Tz) -> String {
    at.with_timezone(&zone).format("%Y-%m-%d %H:%M %Z").to_string()
}

fn shown(figure: Option<f64>, places: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.places$}"))
}

fn whole(figure: Option<i64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| figure.to_string())
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// Every figure of every month, for a spreadsheet. What is not known is an empty cell.
pub fn csv(pasts: &[Past]) -> String {
    let mut out = "pool,month,from,to,node_hours,nodes_at_once,starts,starts_per_day,cold_starts,waits_known,\
        wait_mean_seconds,wait_p50_seconds,wait_p95_seconds,for_nothing,for_nothing_hours,use_unknown,ends_presumed,\
        cost_usd,compute_usd,disk_usd,address_usd,controller_usd,always_usd,window_usd,share_of_always\n"
        .replace(' ', "");
    for (past, one) in pasts.iter().flat_map(|past| past.months.iter().map(move |month| (past, month))) {
        let parts = &one.cost_parts;
        let plan = |plan: Option<&super::Alternative>| cell(plan.and_then(|plan| plan.cost_usd), 6);
        let cells = [
            past.pool.to_string(),
            one.month.clone(),
            one.from.to_rfc3339(),
            one.to.to_rfc3339(),
            format!("{:.4}", one.node_hours),
            one.nodes_at_once.to_string(),
            one.starts.to_string(),
            format!("{:.4}", one.starts_per_day),
            one.cold_starts.to_string(),
            one.waits_known.to_string(),
            cell(one.wait_mean_seconds, 3),
            one.wait_p50_seconds.map_or_else(String::new, |seconds| seconds.to_string()),
            one.wait_p95_seconds.map_or_else(String::new, |seconds| seconds.to_string()),
            one.for_nothing.to_string(),
            format!("{:.4}", one.for_nothing_hours),
            one.use_unknown.to_string(),
            one.ends_presumed.to_string(),
            cell(one.cost_usd, 6),
            format!("{:.6}", parts.compute_usd),
            format!("{:.6}", parts.disk_usd),
            format!("{:.6}", parts.address_usd),
            format!("{:.6}", parts.controller_usd),
            plan(one.plans.first()),
            plan(one.plans.last()),
            cell(one.share_of_always, 6),
        ];
        let _ = writeln!(out, "{}", cells.join(","));
    }
    out
}

fn cell(figure: Option<f64>, places: usize) -> String {
    figure.map_or_else(String::new, |figure| format!("{figure:.places$}"))
}

/// For a page or a message.
pub fn markdown(pasts: &[Past]) -> String {
    let mut out =
        "| pool | month | hours | $ | $ at 24/7 | of 24/7 | starts | cold | wait mean / p50 / p95 | in vain |\n\
        |---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (past, one) in pasts.iter().flat_map(|past| past.months.iter().chain(&past.all).map(move |month| (past, month)))
    {
        let _ = writeln!(
            out,
            "| {} | {} | {:.1} | {} | {} | {} | {} | {} | {} / {} / {} s | {} |",
            past.pool,
            one.month,
            one.node_hours,
            shown(one.cost_usd, 2),
            shown(one.plans.first().and_then(|plan| plan.cost_usd), 2),
            percent(one.share_of_always),
            one.starts,
            one.cold_starts,
            shown(one.wait_mean_seconds, 1),
            whole(one.wait_p50_seconds),
            whole(one.wait_p95_seconds),
            one.for_nothing,
        );
    }
    out
}
