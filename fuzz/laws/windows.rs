//! Laws of warm windows.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use reveille::domain::{WarmWindow, WindowSpec, next_opening, wanted};

/// A line for the time it is, a line for the lead in seconds, a line for the zone, then a window a line, as JSON.
pub(crate) fn windows(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let now = lines.next().and_then(time).unwrap_or_else(noon);
    let lead = lines.next().and_then(|seconds| seconds.parse().ok()).and_then(TimeDelta::try_seconds);
    let lead = lead.unwrap_or_default();
    let zone: Tz = lines.next().and_then(|name| name.parse().ok()).unwrap_or(Tz::UTC);
    let specs = lines.filter_map(|line| serde_json::from_str::<WindowSpec>(line).ok());
    let windows: Vec<WarmWindow> = specs.take(4).filter_map(|spec| window(spec, zone)).collect();
    spans_hold_their_instants(&windows, now);
    what_is_wanted_is_in_force(&windows, now, lead);
    the_next_opening_opens(&windows, now);
}

fn noon() -> DateTime<Utc> {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

/// The clock tells no other times.
fn time(text: &str) -> Option<DateTime<Utc>> {
    let from: DateTime<Utc> = DateTime::UNIX_EPOCH;
    text.parse().ok().filter(|at| (from..from + TimeDelta::days(365 * 200)).contains(at))
}

fn window(spec: WindowSpec, zone: Tz) -> Option<WarmWindow> {
    let fault = match WarmWindow::new(spec, zone) {
        Ok(window) => return Some(window),
        Err(fault) => fault.to_string(),
    };
    let fields = ["days", "from", "to", "nodes", "zone"];
    assert!(fields.iter().any(|field| fault.starts_with(field)), "{fault}");
    None
}

fn spans_hold_their_instants(windows: &[WarmWindow], now: DateTime<Utc>) {
    let spans = windows.iter().filter_map(|window| Some((window, window.span_at(now)?)));
    for (window, (start, end)) in spans {
        assert!(start <= now && now < end && end - start <= TimeDelta::hours(50), "{window:?} {start} {end}");
        assert_eq!(window.span_at(start).map(|span| span.0), Some(start), "{window:?}");
    }
    let open = windows.iter().any(|window| window.span_at(now).is_some());
    assert_eq!(wanted(windows, now, TimeDelta::zero()).is_some(), open, "{windows:?} at {now}");
}

fn what_is_wanted_is_in_force(windows: &[WarmWindow], now: DateTime<Utc>, lead: TimeDelta) {
    let Some(wish) = wanted(windows, now, lead) else { return };
    let soon = now + lead.clamp(TimeDelta::zero(), TimeDelta::days(7));
    assert!(wish.from <= soon && now < wish.until && (1..=100).contains(&wish.nodes), "{wish:?}");
    let longer = wanted(windows, now, lead.clamp(TimeDelta::zero(), TimeDelta::days(7)) + TimeDelta::hours(1));
    assert!(longer.is_some_and(|longer| longer.nodes >= wish.nodes && longer.until >= wish.until), "{wish:?}");
}

fn the_next_opening_opens(windows: &[WarmWindow], now: DateTime<Utc>) {
    let Some(at) = next_opening(windows, now) else { return };
    assert!(now < at && at - now <= TimeDelta::days(17), "{at}");
    // Two spans of one window may overlap where the clocks are put back: the earlier one holds the instant too.
    assert!(windows.iter().any(|window| window.span_at(at).is_some_and(|(start, _)| start <= at)), "{at}");
    let before = at - TimeDelta::seconds(1);
    assert!(now >= before || next_opening(windows, before) == Some(at), "{at}");
}
