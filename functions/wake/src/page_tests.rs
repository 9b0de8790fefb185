use super::*;
use chrono::TimeDelta;
use reveille::decide::Reason;
use reveille::domain::PoolName;

fn answer(reason: Reason) -> PoolAnswer {
    PoolAnswer {
        pool: PoolName::new("voice").unwrap(),
        node: None,
        phase: None,
        reason,
        fault_code: None,
        fault_since: None,
        ready_in_seconds: None,
        boot_seconds: None,
        spread_seconds: None,
        fault_class: None,
        woken_by: None,
        calls: 0,
        retry_after_seconds: None,
        address: None,
        gate_reason: None,
        gate_until: None,
    }
}

fn shown(answer: PoolAnswer, target: Option<&str>) -> (u64, String) {
    let outcome = Outcome { answers: vec![answer], ..Outcome::default() };
    let reply = page(&outcome, "", target).unwrap();
    let body = reply["body"].as_str().unwrap().to_owned();
    assert!(body.len() < 15_000, "{} bytes", body.len());
    assert!(!body.contains("<script") && !body.contains("http://") && !body.contains("src="), "{body}");
    (reply["statusCode"].as_u64().unwrap(), body)
}

#[test]
fn every_state_has_its_status_its_words_and_its_next_look() {
    let table = [
        (Reason::AlreadyStarting, 202, "starting", "5; url=status"),
        (Reason::StoppingWillStart, 202, "stopping_will_start", "10; url=status"),
        (Reason::Wanted, 202, "will_start", "5; url=status"),
        (Reason::Full, 429, "full", "30; url=status"),
        (Reason::CoolingDown, 503, "fault", "60; url=status"),
        (Reason::NotWanted, 503, "asleep", "60; url=status"),
        (Reason::NoNode, 503, "no_node", "300; url=status"),
        (Reason::GateClosed, 403, "gate_closed", "60; url=status"),
        (Reason::CannotLook, 503, "unknown", "10; url=status"),
    ];
    for (reason, status, state, refresh) in table {
        let (told, body) = shown(answer(reason), Some("https://app.example.com/"));
        assert_eq!(told, status, "{reason:?}");
        assert!(body.contains(&format!("<main data-state=\"{state}\">")), "{reason:?}: {body}");
        assert!(body.contains(&format!("<meta http-equiv=\"refresh\" content=\"{refresh}\">")), "{reason:?}: {body}");
        assert_eq!(body.contains("<form"), state == "asleep", "{reason:?}");
    }
}

#[test]
fn the_node_is_named_with_its_phase() {
    let node = Some(reveille::domain::NodeId::new("i-0abc").unwrap());
    let stopping = PoolAnswer { node, phase: Some(Phase::Stopping), ..answer(Reason::StoppingWillStart) };
    assert!(shown(stopping, None).1.contains("Node i-0abc of voice: stopping."));
    assert!(!shown(answer(Reason::NoNode), None).1.contains("Node "));
}

#[test]
fn a_ready_node_leads_to_the_target_and_without_one_stays() {
    let (status, body) = shown(answer(Reason::AlreadyReady), Some("/talk"));
    assert_eq!(status, 200);
    assert!(body.contains("content=\"0; url=/talk\"") && body.contains("<a href=\"/talk\">"), "{body}");
    let (_, body) = shown(answer(Reason::AlreadyReady), None);
    assert!(!body.contains("refresh") && !body.contains("<a "), "{body}");
}

#[test]
fn a_page_that_was_asked_for_a_node_asks_for_it_again() {
    let outcome = Outcome { answers: vec![answer(Reason::NotWanted)], ..Outcome::default() };
    let reply = page(&outcome, "node=gpu-1&x=\"><b>", None).unwrap();
    let body = reply["body"].as_str().unwrap();
    assert!(body.contains("url=status?node=gpu-1&amp;x=&quot;&gt;&lt;b&gt;\""), "{body}");
    assert!(body.contains("action=\"wake?node=gpu-1&amp;x=&quot;"), "{body}");
    let waits = PoolAnswer { ready_in_seconds: Some(30), ..answer(Reason::AlreadyStarting) };
    let reply = page(&Outcome { answers: vec![waits], ..Outcome::default() }, "", None).unwrap();
    assert_eq!(reply["headers"]["retry-after"], "5");
}

#[test]
fn progress_is_what_has_passed_of_the_learnt_boot() {
    let starting = PoolAnswer { ready_in_seconds: Some(15), boot_seconds: Some(60), ..answer(Reason::AlreadyStarting) };
    let (_, body) = shown(starting.clone(), None);
    assert!(body.contains("<progress max=\"60\" value=\"45\""), "{body}");
    // A boot that takes longer than any before stands at its last five seconds.
    let late = PoolAnswer { ready_in_seconds: Some(90), ..starting };
    assert!(shown(late, None).1.contains("max=\"60\" value=\"0\""));
}

#[test]
fn what_people_wrote_is_text_and_never_markup() {
    let reason = Some("<b>spent</b> & \"gone\"".to_owned());
    let closed = PoolAnswer { gate_reason: reason, ..answer(Reason::GateClosed) };
    let (_, body) = shown(closed, None);
    assert!(body.contains("&lt;b&gt;spent&lt;/b&gt; &amp;"), "{body}");
    let until = "2026-12-01T00:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::hours(1);
    let closed = PoolAnswer { gate_until: Some(until), ..answer(Reason::GateClosed) };
    assert!(shown(closed, None).1.contains("opens by itself at 01:00 UTC on 1 December"));
}

#[test]
fn who_cannot_be_answered_by_a_page_gets_the_document() {
    assert!(page(&Outcome { too_many: true, ..Outcome::default() }, "", None).is_none());
    assert!(page(&Outcome::default(), "", None).unwrap()["body"].as_str().unwrap().contains("data-state=\"unknown\""));
}

#[test]
fn a_page_is_for_those_who_would_rather_have_one() {
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let table = [
        (Some(browser), true),
        (Some("text/html"), true),
        (Some("TEXT/HTML;q=0.5"), true),
        (Some("application/json, text/html;q=0.9"), false),
        (Some("application/json;q=0.1, text/html;q=0.9"), true),
        (Some("text/html;q=0"), false),
        (Some("text/html;q=x"), false),
        (Some("*/*"), false),
        (Some(""), false),
        (None, false),
    ];
    for (accept, page) in table {
        assert_eq!(prefers_page(accept), page, "{accept:?}");
    }
}
