use super::*;
use chrono::{TimeDelta, TimeZone as _};

fn at(clock: &str) -> DateTime<Utc> {
    format!("2026-03-05T{clock}Z").parse().expect("a time of the day")
}

fn empty() -> Day {
    Day {
        title: "A day".to_owned(),
        from: at("00:00:00"),
        to: at("00:00:00") + TimeDelta::days(1),
        nodes: vec![],
        calls: vec![],
        prewarms: vec![],
        noise: vec![],
        events: vec![],
        checks: vec![],
        money: vec![],
    }
}

fn event(clock: &str, node: Option<&str>, event: &str, reason: &str) -> Event {
    Event {
        at: at(clock),
        function: "idle-check".to_owned(),
        node: node.map(str::to_owned),
        event: event.to_owned(),
        reason: reason.to_owned(),
    }
}

fn node(name: &str, states: &[(&str, &str)]) -> NodeDay {
    NodeDay {
        name: name.to_owned(),
        states: states.iter().map(|(clock, state)| (at(clock), (*state).to_owned())).collect(),
    }
}

/// A full day: two nodes, every state, every event, twenty calls and about three hundred events.
fn full_day() -> Day {
    let mut day = empty();
    day.title = "A weekday of the voice pool".to_owned();
    day.nodes = vec![
        node(
            "gpu-a",
            &[
                ("00:00:00", "stopped"),
                ("06:45:00", "pending"),
                ("06:46:10", "running"),
                ("06:50:30", "ready"),
                ("12:20:00", "stopping"),
                ("12:24:00", "stopped"),
                ("13:40:00", "pending"),
                ("13:41:00", "running"),
                ("13:45:10", "ready"),
                ("18:30:00", "stopping"),
                ("19:20:00", "stopped"),
            ],
        ),
        node(
            "gpu-b-with-a-long-name",
            &[
                ("00:00:00", "stopped"),
                ("09:02:00", "pending"),
                ("09:40:00", "running"),
                ("09:55:00", "ready"),
                ("10:50:00", "stopping"),
                ("10:53:00", "stopped"),
                ("21:00:00", "what"),
                ("22:00:00", "stopped"),
            ],
        ),
    ];
    for n in 0..20_i32 {
        let waited = if n % 6 == 0 { 185.0 + f64::from(n) } else { 0.0 };
        day.calls.push(Call {
            at: at("07:05:00") + TimeDelta::minutes(i64::from(n) * 31 % 620),
            seconds: f64::from(60 + n * 97 % 1900),
            node: (n != 13).then(|| if n % 3 == 0 { "gpu-b-with-a-long-name" } else { "gpu-a" }.to_owned()),
            waited_seconds: waited,
        });
    }
    day.prewarms = vec![at("06:45:00"), at("13:40:00")];
    day.noise =
        (0..280_u32).map(|n| (at("00:02:00") + TimeDelta::minutes(i64::from(n) * 5), u64::from(n * n % 37))).collect();
    for (n, kind) in events::KINDS.iter().enumerate() {
        let reason = format!("{} for a reason that takes a few words to say", kind.meaning);
        day.events.push(event(&format!("{:02}:12:30", 7 + n), Some("gpu-a"), kind.name, &reason));
    }
    for (clock, kind, reason) in [
        ("06:45:00", "start", "wanted"),
        ("09:02:00", "start_failed", "InsufficientInstanceCapacity"),
        ("09:02:05", "start", "wanted"),
        ("10:50:00", "stop", "idle for 20 min"),
        ("12:20:00", "stop", "idle for 20 min"),
    ] {
        day.events.push(event(clock, Some("gpu-b-with-a-long-name"), kind, reason));
    }
    day.events.push(event("19:05:00", None, "alert", "node gpu-a hangs in stopping for longer than the force time"));
    day.events.push(event("19:06:00", None, "person", "looked at the console"));
    day.events.push(event("19:07:00", None, "surprise", "a word of tomorrow"));
    for n in 0..40_u32 {
        let clock = format!("{:02}:{:02}:00", 10 + n / 12, n % 12 * 5);
        day.events.push(event(&clock, Some("gpu-a"), "idle_mark", "quiet"));
    }
    for n in 0..240_u32 {
        let reason = ["health check", "robots.txt", "scanner"][n as usize % 3];
        day.events.push(event(&format!("{:02}:{:02}:07", n / 10, n % 10 * 6), None, "noise", reason));
    }
    let check = |name: &str, ok, detail: &str| Check { name: name.to_owned(), ok, detail: detail.to_owned() };
    day.checks = vec![
        check("no call was cut", true, "20 calls, the shortest 60 s"),
        check("noise wakes nothing", true, "4986 lines, no start within a minute of one alone"),
        check("every stop followed twenty idle minutes", true, "2 stops"),
        check("no wait above five minutes", false, "one call at 09:02 waited 6 min 3 s: no capacity"),
        check("the hanging node was told", true, "one alert at 19:05"),
    ];
    let money = |plan: &str, node_hours, usd_day, note: &str| MoneyRow {
        plan: plan.to_owned(),
        node_hours,
        usd_day,
        note: note.to_owned(),
    };
    day.money = vec![
        money("24/7", 48.0, 60.48, "both nodes, all day"),
        money("16-hour window", 32.0, 40.32, "06:00 to 22:00, both nodes"),
        money("Reveille", 11.4, 14.41, "this day; functions, table and alarms included"),
    ];
    day
}

#[test]
fn escapes_every_text() {
    let hostile = || r#"<b x='1'>"&amp;"#.to_owned();
    let mut day = full_day();
    day.title = hostile();
    day.nodes.iter_mut().for_each(|node| {
        node.name = hostile();
        node.states.iter_mut().for_each(|(_, state)| *state = hostile());
    });
    day.calls.iter_mut().for_each(|call| call.node = Some(hostile()));
    day.events.iter_mut().for_each(|event| {
        (event.function, event.node, event.event, event.reason) = (hostile(), Some(hostile()), hostile(), hostile());
    });
    day.checks.iter_mut().for_each(|check| (check.name, check.detail) = (hostile(), hostile()));
    day.money.iter_mut().for_each(|row| (row.plan, row.note) = (hostile(), hostile()));
    let page = html(&day);
    assert!(!page.contains("<b "), "a text became a tag");
    assert!(page.contains("&lt;b x='1'&gt;&quot;&amp;amp;"), "a text is missing or half escaped");
    assert_eq!(unclosed(&page), Vec::<String>::new());
}

#[test]
fn every_event_has_a_row_and_those_with_a_mark_have_it_in_the_picture() {
    for kind in &events::KINDS {
        let mut day = empty();
        day.events.push(event("10:20:30", None, kind.name, "because"));
        let page = html(&day);
        assert!(page.contains("<td class=\"reason\">because</td>"), "{}: no row", kind.name);
        let hover = format!("<title>10:20:30 {}: because</title>", kind.name);
        assert_eq!(page.contains(&hover), !kind.path.is_empty(), "{}: mark", kind.name);
    }
}

#[test]
fn decisions_alerts_and_people_have_marks() {
    for name in ["start", "stop", "start_failed", "stop_failed", "alert", "refused", "person", "idle_mark"] {
        assert!(!events::kind(name).path.is_empty(), "{name}");
    }
}

#[test]
fn an_unknown_event_is_marked_and_in_the_legend() {
    let page = html(&full_day());
    assert!(page.contains("<title>19:07:00 surprise: a word of tomorrow</title>"));
    assert!(page.contains("an event this report does not know"));
}

#[test]
fn an_event_of_a_node_without_a_lane_is_in_the_pool_lane() {
    let mut day = empty();
    day.events.push(event("10:20:30", Some("gone"), "alert", "because"));
    assert!(html(&day).contains("<title>10:20:30 alert: because</title>"));
}

#[test]
fn fetches_nothing() {
    let page = html(&full_day());
    for way in ["http:", "https:", "src=", "href=", "<script", "<link", "@import"] {
        assert!(!page.contains(way), "{way}");
    }
    assert!(page.split("url(").skip(1).all(|rest| rest.starts_with('#')), "a url() leaves the page");
}

#[test]
fn tags_nest() {
    assert_eq!(unclosed(&html(&full_day())), Vec::<String>::new());
    assert_eq!(unclosed(&html(&empty())), Vec::<String>::new());
}

#[test]
fn no_name_is_given_twice() {
    let page = html(&full_day());
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn a_run_of_noise_is_one_row() {
    let mut day = empty();
    day.events = vec![
        event("10:03:00", None, "noise", "scanner"),
        event("10:01:00", None, "noise", "health check"),
        event("10:02:00", None, "noise", "health check"),
        event("10:04:00", Some("gpu-a"), "start", "wanted"),
        event("10:05:00", None, "noise", "scanner"),
    ];
    let page = html(&day);
    assert!(page.contains("5 events in 3 rows"));
    assert!(page.contains("noise × 3"));
    assert!(page.contains("health check × 2, scanner × 1"));
}

#[test]
fn idle_marks_do_not_end_a_run_of_noise() {
    let mut day = empty();
    day.events = vec![
        event("10:01:00", None, "noise", "scanner"),
        event("10:02:00", Some("gpu-a"), "idle_mark", "quiet"),
        event("10:03:00", None, "noise", "scanner"),
    ];
    assert!(html(&day).contains("3 events in 2 rows"));
}

#[test]
fn bills_running_and_ready_within_the_day() {
    let mut day = empty();
    day.from = at("08:00:00");
    day.to = at("12:00:00");
    day.nodes = vec![node("gpu-a", &[("09:30:00", "ready"), ("07:00:00", "running"), ("11:00:00", "stopping")])];
    assert_eq!(page::up_seconds(&day, &day.nodes[0]), 3.0 * 3600.0);
}

#[test]
fn an_empty_day_says_zero() {
    let mut day = empty();
    day.nodes = vec![node("gpu-a", &[("00:00:00", "stopped")])];
    let page = html(&day);
    assert!(page.contains("1 node ran for 0.0 node hours and met 0 calls; none of them waited for a node."));
    assert!(page.contains("0.0 h billed"));
}

#[test]
fn odd_numbers_reach_no_coordinate() {
    let mut day = full_day();
    for (n, odd) in [f64::NAN, f64::INFINITY, -1.0].into_iter().enumerate() {
        (day.calls[n].seconds, day.calls[n + 3].waited_seconds, day.money[n].usd_day) = (odd, odd, odd);
    }
    day.events.push(Event { at: Utc.timestamp_opt(0, 0).unwrap(), ..event("10:00:00", None, "alert", "early") });
    for to in [day.to, day.from, day.from - TimeDelta::hours(1)] {
        day.to = to;
        let page = html(&day);
        for odd in ["=\"NaN", "=\"inf", "=\"-inf", "width=\"-", " NaN ", " inf ", "(NaN", "(inf"] {
            assert!(!page.contains(odd), "{odd} with the end at {to}");
        }
    }
}

#[test]
fn a_picture_of_two_days_names_the_dates() {
    let mut day = empty();
    day.to = at("00:00:00") + TimeDelta::days(2);
    day.events.push(event("10:20:30", None, "alert", "because"));
    let page = html(&day);
    assert!(page.contains("<title>5 Mar 10:20:30 alert: because</title>"));
    assert!(page.contains(">6 Mar</text>"));
}

#[test]
fn writes_a_span_in_two_units() {
    for (seconds, text) in [
        (-3.0, "0 s"),
        (59.6, "1 min"),
        (192.0, "3 min 12 s"),
        (7200.0, "2 h"),
        (8880.0, "2 h 28 min"),
        (f64::NAN, "0 s"),
    ] {
        assert_eq!(span(seconds), text);
    }
}

/// Tags that are closed wrongly or never. A smoke check for a page whose texts are escaped; it reads no comments.
fn unclosed(page: &str) -> Vec<String> {
    let mut open: Vec<String> = vec![];
    for tag in page.split('<').skip(1).filter_map(|rest| rest.split_once('>').map(|(tag, _)| tag)) {
        let name = tag.split_whitespace().next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) if open.last().is_some_and(|last| last == name) => drop(open.pop()),
            Some(_) => return vec![tag.to_owned()],
            None if ["!DOCTYPE", "meta"].contains(&name) => {}
            None => open.push(name.to_owned()),
        }
    }
    open
}
