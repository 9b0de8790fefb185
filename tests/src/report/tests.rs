use super::*;
use chrono::{TimeDelta, TimeZone as _};
use reveille::run::EffectKind;

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
        messages: vec![],
        gates: vec![],
        spend: None,
    }
}

fn message(clock: &str, subject: &str, body: &str) -> Message {
    Message { at: at(clock), subject: subject.to_owned(), body: body.to_owned() }
}

fn gate(from: &str, to: Option<&str>, reason: &str) -> GateClosed {
    GateClosed { from: at(from), to: to.map(at), reason: reason.to_owned() }
}

/// A month of 120 dollars of which the own estimate goes from 90 to 113 in hourly steps.
fn spend() -> SpendLine {
    let hourly = |usd: fn(i32) -> f64| (0..24).map(|n| (at("00:00:00") + TimeDelta::hours(n.into()), usd(n))).collect();
    SpendLine {
        amount_usd: 120.0,
        thresholds: vec![80.0, 100.0, 50.0],
        own: hourly(|n| 90.0 + f64::from(n)),
        aws: hourly(|n| if n < 12 { 84.0 } else { 95.5 }),
    }
}

fn day_with_spend(spend: SpendLine) -> Day {
    Day { spend: Some(spend), ..empty() }
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
        let clock = format!("{:02}:{:02}:30", 7 + n * 40 / 60, n * 40 % 60);
        day.events.push(event(&clock, Some("gpu-a"), kind.name, &reason));
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
    day.messages = vec![
        message(
            "19:05:00",
            "node gpu-a hangs in stopping for longer than the force time",
            "What:  it hangs\nTo do: look\n",
        ),
        message("17:00:00", "the budget is spent", "What:  spent\n"),
    ];
    day.gates = vec![gate("17:00:00", Some("18:30:00"), "the budget is spent"), gate("23:00:00", None, "by a person")];
    day.spend = Some(spend());
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
    day.messages.iter_mut().for_each(|message| (message.subject, message.body) = (hostile(), hostile()));
    day.gates.iter_mut().for_each(|gate| gate.reason = hostile());
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
    for name in [
        "start",
        "stop",
        "start_failed",
        "stop_failed",
        "alert",
        "refused",
        "person",
        "idle_mark",
        "resized",
        "gate_closed",
        "gate_opened",
        "budget_repaired",
        "blind",
        "sees_again",
    ] {
        assert!(!events::kind(name).path.is_empty(), "{name}");
    }
}

#[test]
fn every_event_has_a_meaning_and_every_mark_is_in_the_legend() {
    let page = html(&empty());
    for kind in &events::KINDS {
        assert!(!kind.meaning.is_empty(), "{}", kind.name);
        let said = page.contains(kind.meaning) || page.contains("start or stop failed") && kind.class == "m-failed";
        assert!(said || kind.path.is_empty(), "{}", kind.name);
    }
}

#[test]
fn every_mark_has_a_style() {
    for kind in events::KINDS.iter().filter(|kind| !kind.path.is_empty()) {
        assert!(include_str!("style.css").contains(&format!("path.{}", kind.class)), "{}", kind.name);
    }
}

/// Every effect, and the one after it: a new one does not compile until it is here.
fn after(effect: EffectKind) -> Option<EffectKind> {
    use EffectKind::*;
    Some(match effect {
        Demand => Start,
        Start => StartFailed,
        StartFailed => Ready,
        Ready => Unready,
        Unready => Leased,
        Leased => LeaseEnded,
        LeaseEnded => IdleMark,
        IdleMark => Stop,
        Stop => StopFailed,
        StopFailed => Alert,
        Alert => Resized,
        Resized => Launched,
        Launched => Ended,
        Ended => GateClosed,
        GateClosed => GateOpened,
        GateOpened => Held,
        Held => Released,
        Released => BudgetRepaired,
        BudgetRepaired => SeesAgain,
        SeesAgain => return None,
    })
}

#[test]
fn the_report_knows_every_effect_of_the_functions() {
    for effect in std::iter::successors(Some(EffectKind::Demand), |effect| after(*effect)) {
        let word = serde_json::to_value(effect).expect("a word");
        assert_ne!(events::kind(word.as_str().expect("a word")).name, "unknown", "{word}");
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
    for way in ["http:", "https:", "src=", "<script", "<link", "@import"] {
        assert!(!page.contains(way), "{way}");
    }
    assert!(page.split("href=\"").skip(1).all(|rest| rest.starts_with('#')), "a link leaves the page");
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
        let spend = day.spend.as_mut().unwrap();
        (spend.own[n].1, spend.aws[n + 3].1, spend.thresholds[n]) = (odd, odd, odd);
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

#[test]
fn a_message_keeps_its_lines_and_starts_no_tag() {
    let mut day = empty();
    day.messages = vec![message("10:00:00", "a <b> & c", "\nWhat:  <script>alert(1)</script>\n\n  indented\n")];
    let page = html(&day);
    // The first line end is the one that HTML drops.
    let body = "\n\nWhat:  &lt;script&gt;alert(1)&lt;/script&gt;\n\n  indented\n</pre>";
    assert!(page.contains(&format!("<pre id=\"message-1\">{body}")));
    assert!(page.contains("<span class=\"subject\">a &lt;b&gt; &amp; c</span>"));
}

#[test]
fn messages_are_in_order_and_the_first_is_open() {
    let mut day = empty();
    day.messages = vec![message("11:00:00", "later", "b"), message("10:00:00", "sooner", "a")];
    let page = html(&day);
    assert!(page.contains("Messages (2)"));
    assert!(page.find("sooner") < page.find("later"));
    assert_eq!(page.matches("<details").count(), 2);
    assert_eq!(page.matches("<details class=\"message\" open").count(), 1);
}

#[test]
fn a_day_without_messages_says_so() {
    let page = html(&empty());
    assert!(page.contains("Messages (0)"));
    assert!(page.contains("No message was sent."));
    assert!(!page.contains("<details"));
}

#[test]
fn an_alert_links_to_its_message() {
    let mut day = empty();
    day.messages = vec![message("10:00:01", "it hangs", "a"), message("12:00:00", "it hangs", "b")];
    day.events = vec![event("12:00:00", None, "alert", "it hangs")];
    assert!(html(&day).contains("<a href=\"#message-2\">it hangs</a>"));
}

#[test]
fn what_is_no_alert_of_a_message_links_nowhere() {
    for (name, other) in [
        ("another subject", event("10:00:00", None, "alert", "it hangs still")),
        ("an hour later", event("11:00:00", None, "alert", "it hangs")),
        ("no alert", event("10:00:00", None, "person", "it hangs")),
    ] {
        let mut day = empty();
        day.messages = vec![message("10:00:00", "it hangs", "a")];
        day.events = vec![other];
        assert!(!html(&day).contains("<a "), "{name}");
    }
}

#[test]
fn a_day_with_an_open_gate_has_no_gate_lane() {
    let page = html(&day_with_spend(spend()));
    assert!(!page.contains("<title>Gate</title>"));
    assert!(!page.contains("The gate was closed"));
    assert!(!page.contains("class=\"closed\""));
}

#[test]
fn a_closed_gate_has_a_lane_and_shades_the_chart() {
    let mut day = day_with_spend(spend());
    day.gates = vec![gate("17:00:00", Some("18:30:00"), "spent"), gate("22:00:00", None, "by a person")];
    let page = html(&day);
    assert!(page.contains("<title>Gate</title>"));
    assert!(page.contains("<title>gate closed from 17:00:00 to 18:30:00: spent</title>"));
    assert!(page.contains("<title>gate closed from 22:00:00, still closed: by a person</title>"));
    assert!(page.contains("The gate was closed for 3 h 30 min: 17:00 to 18:30, 22:00 to the day's end."));
    assert_eq!(page.matches("class=\"closed\"").count(), 2);
    assert_eq!(page.matches(">gate closed</text>").count(), 2);
}

#[test]
fn gates_that_meet_are_counted_once() {
    let mut day = empty();
    day.gates = vec![gate("10:00:00", Some("12:00:00"), "a"), gate("11:00:00", Some("11:30:00"), "b")];
    assert_eq!(gates::closed(&day), [(at("10:00:00"), at("12:00:00"))]);
    assert_eq!(gates::closed_seconds(&day), 7200.0);
}

#[test]
fn words_of_short_closings_do_not_run_into_each_other() {
    let mut day = day_with_spend(spend());
    day.gates = vec![gate("10:00:00", Some("10:10:00"), "a"), gate("10:30:00", Some("10:40:00"), "b")];
    let page = html(&day);
    assert_eq!(page.matches("class=\"closed\"").count(), 2);
    assert_eq!(page.matches(">gate closed</text>").count(), 1);
}

#[test]
fn a_gate_of_another_day_names_no_hour_of_this_one() {
    let mut day = empty();
    day.from = at("08:00:00");
    day.gates = vec![gate("07:00:00", Some("09:00:00"), "spent")];
    assert!(html(&day).contains("<title>gate closed since before this day to 09:00:00: spent</title>"));
}

#[test]
fn the_chart_names_its_lines_and_thresholds() {
    let page = html(&day_with_spend(spend()));
    for text in ["own estimate $113.00", "AWS's figure $95.50", "50 % · $60.00", "80 % · $96.00", "100 % · $120.00"]
    {
        assert!(page.contains(&format!(">{text}</text>")), "{text}");
    }
    assert!(page.contains("Reveille's own estimate went from $90.00 to $113.00 (94 % of the budget) at 23:00."));
    assert!(page.contains("The newest figure of AWS, hours late, was $95.50 (80 % of the budget)."));
    assert!(page.contains("80 % · $96.00, reached at 06:00; 100 % · $120.00, not reached."));
}

#[test]
fn a_day_without_a_budget_guard_has_no_chart() {
    assert!(!html(&empty()).contains("Money of the month"));
}

#[test]
fn a_chart_of_nothing_says_so() {
    let none = SpendLine { amount_usd: 0.0, thresholds: vec![], own: vec![], aws: vec![] };
    let page = html(&day_with_spend(none));
    assert!(page.contains("The month has no budget amount. No estimate was made. AWS gave no figure.</p>"));
    assert_eq!(unclosed(&page), Vec::<String>::new());
}

#[test]
fn odd_money_reaches_no_coordinate_and_no_text() {
    for amount_usd in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9, 0.004, 1e300] {
        for points in [vec![], vec![amount_usd], vec![0.0, amount_usd, -3.0, f64::NEG_INFINITY]] {
            let line: Vec<_> = points.iter().map(|usd| (at("12:00:00"), *usd)).collect();
            let thresholds = vec![80.0, f64::NAN, -5.0, f64::INFINITY, 1e300];
            let page = html(&day_with_spend(SpendLine { amount_usd, thresholds, own: line.clone(), aws: line }));
            for odd in ["NaN", "inf ", "inf\"", ">inf", "inf%", "$inf", "-inf", "width=\"-"] {
                assert!(!page.contains(odd), "{odd} with {amount_usd} and {points:?}");
            }
        }
    }
}

#[test]
fn dollars_are_laid_from_zero_to_the_most() {
    for most in [0.0, 0.004, 0.7, 3.03, 120.0, 9999.0] {
        let money = dollars::Dollars::up_to(most);
        assert_eq!(money.y(0.0), dollars::BOTTOM, "{most}");
        assert!(money.y(most) > dollars::TOP || most == 0.0, "{most}");
        assert!((5..=12).contains(&money.ticks().count()), "{most}: {}", money.ticks().count());
    }
}

#[test]
fn writes_dollars() {
    for (usd, text) in [(0.0, "$0.00"), (-3.0, "-$3.00"), (0.004, "$0.0040"), (62.4, "$62.40"), (12_500.0, "$12500")] {
        assert_eq!(dollars::dollars(usd), text);
    }
}

#[test]
fn labels_of_near_thresholds_are_apart() {
    assert_eq!(labels::spread(&[100.0, 95.0, 20.0]), [100.0, 86.0, 20.0]);
}

#[test]
fn labels_keep_off_the_lines() {
    let line = vec![(20.0, 200.0), (900.0, 100.0)];
    let mut room = labels::Room { lines: vec![line.clone(), vec![(20.0, 90.0), (900.0, 90.0)]], limits: vec![] };
    // Over the line's end runs the other one, at 90; over the label's letters it comes from 110 up to 100.
    let label = room.label("own", Some("own estimate".to_owned()), &line).into_string();
    let base: f64 = label.split(" y=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().parse().unwrap();
    let (top, bottom) = (base - 11.0, base + 4.0);
    assert!(bottom < 90.0 || top > 110.0, "{base}");
}

#[test]
fn two_nodes_and_three_pools_have_their_marks() {
    let mut day = full_day();
    day.events.clear();
    for (n, pool) in ["voice", "transcribe", "batch"].into_iter().enumerate() {
        let name = ["gpu-a", "gpu-b-with-a-long-name"].get(n).copied();
        day.events.push(event("10:00:00", name, "start", pool));
        day.events.push(event("10:00:00", None, "refused", pool));
    }
    let page = html(&day);
    assert_eq!(page.matches("<title>10:00:00 start: ").count(), 3);
    assert_eq!(page.matches("<title>10:00:00 refused: ").count(), 3);
    // The marks of one instant stand under each other.
    let pool = &page[page.find("<title>10:00:00 refused: ").unwrap() - 60..];
    for row in ["8)", "24)", "40)", "56)"] {
        assert!(pool.contains(&format!(" {row}\"><title>10:00:00 ")), "{row}");
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
