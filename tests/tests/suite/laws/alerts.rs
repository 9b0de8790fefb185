//! Messages to people: at least once, and not twice for nothing.

use crate::bench::{Bench, Told, id, minutes, morning, record, run, seconds, voice};
use reveille::domain::{AlertKey, Instant, PoolRecord, WakeSource};
use reveille::policy::Policy;
use reveille::prices::Prices;
use reveille::run::{
    Alert, AlertClaimed, AlertKind, Call, Cause, Context, PoolPolicy, Target, WakeRun, WakeWish, take_alert_claim,
    take_published, take_recorded,
};
use std::collections::BTreeMap;

fn key(occasion: &str) -> AlertKey {
    AlertKey(format!("alert#i-0123456789abcdef0#cannot_stop#{occasion}"))
}

async fn claim(bench: &mut impl Bench, key: &AlertKey, at: Instant) -> AlertClaimed {
    let call = Call::ClaimAlert { key: key.clone(), at };
    take_alert_claim(Some(bench.answer(&call).await)).expect("claim the alert")
}

async fn mark_published(bench: &mut impl Bench, key: &AlertKey) {
    take_recorded(Some(bench.answer(&Call::MarkPublished { key: key.clone() }).await)).expect("mark as published");
}

pub(crate) async fn an_alert_is_claimed_once(bench: &mut impl Bench) {
    assert_eq!(claim(bench, &key("2026-11-30"), morning()).await, AlertClaimed::Mine);
    assert_eq!(claim(bench, &key("2026-11-30"), morning()).await, AlertClaimed::Another);
    assert_eq!(claim(bench, &key("2026-11-30"), morning() + minutes(1)).await, AlertClaimed::Another);
    assert_eq!(
        claim(bench, &key("2026-12-01"), morning()).await,
        AlertClaimed::Mine,
        "another occasion is another alert"
    );
}

pub(crate) async fn an_alert_that_was_claimed_and_not_published_is_claimed_again_later(bench: &mut impl Bench) {
    let alert = key("2026-11-30");
    assert_eq!(claim(bench, &alert, morning()).await, AlertClaimed::Mine);
    assert_eq!(
        claim(bench, &alert, morning() + minutes(4) - seconds(1)).await,
        AlertClaimed::Another,
        "its run may be at it still"
    );
    assert_eq!(claim(bench, &alert, morning() + minutes(5)).await, AlertClaimed::Mine, "the next tick takes it up");
    assert_eq!(
        claim(bench, &alert, morning() + minutes(6)).await,
        AlertClaimed::Another,
        "a new claim counts from its own time"
    );
}

pub(crate) async fn an_alert_that_was_published_is_never_claimed_again(bench: &mut impl Bench) {
    let alert = key("2026-11-30");
    assert_eq!(claim(bench, &alert, morning()).await, AlertClaimed::Mine);
    mark_published(bench, &alert).await;
    assert_eq!(claim(bench, &alert, morning() + minutes(5)).await, AlertClaimed::Published);
    assert_eq!(claim(bench, &alert, morning() + minutes(60 * 24)).await, AlertClaimed::Published);
}

pub(crate) async fn an_alert_arrives_as_it_was_written(bench: &mut impl Bench) {
    let about_node = Alert {
        key: key("2026-11-30"),
        kind: AlertKind::CannotStop,
        pool: Some(voice()),
        node: Some(id("i-0123456789abcdef0")),
        subject: "Reveille: ".to_owned() + &"x".repeat(89),
        body: "It runs and is billed.\nTo do: äöü – \"stop\" & <look>.\n".to_owned(),
        attributes: BTreeMap::new(),
    };
    let about_pool = Alert { node: None, kind: AlertKind::Misconfigured, ..about_node.clone() };
    let of_threshold = [("threshold", "actual_80"), ("month", "2026-11")];
    let of_threshold = of_threshold.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let about_money = Alert { pool: None, kind: AlertKind::Budget, attributes: of_threshold, ..about_pool.clone() };
    for alert in [&about_node, &about_pool, &about_money] {
        let call = Call::Publish { alert: alert.clone() };
        take_published(Some(bench.answer(&call).await)).expect("publish");
    }
    let told = |attributes: &[(&str, &str)]| Told {
        subject: about_node.subject.clone(),
        body: about_node.body.clone(),
        attributes: attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    let expected = [
        told(&[("kind", "cannot_stop"), ("pool", "voice"), ("node", "i-0123456789abcdef0")]),
        told(&[("kind", "misconfigured"), ("pool", "voice")]),
        told(&[("kind", "budget"), ("threshold", "actual_80"), ("month", "2026-11")]),
    ];
    assert_eq!(bench.published().await, expected, "what an alert is not about is no attribute");
}

pub(crate) async fn a_message_that_is_kept_stands_with_its_pool_until_it_is_taken_away(bench: &mut impl Bench) {
    let call = |text: Option<&str>| {
        let (pool, key, text) = (voice(), key("2026-11-30"), text.map(str::to_owned));
        Call::KeepUntold { pool, key, text }
    };
    for text in [r#"{"subject": "gate closed", "body": "What: äöü\n"}"#, "the same, anew"] {
        take_recorded(Some(bench.answer(&call(Some(text))).await)).expect("keep it");
        assert_eq!(record(bench).await.untold, BTreeMap::from([(key("2026-11-30"), text.to_owned())]));
    }
    for _ in 0..2 {
        take_recorded(Some(bench.answer(&call(None)).await)).expect("take it away, also where it is gone");
        assert_eq!(record(bench).await, PoolRecord::default(), "and no counter has moved");
    }
}

pub(crate) async fn a_run_tells_a_person_once_in_a_subject_that_sns_takes(bench: &mut impl Bench) {
    for n in 0..2 {
        let context = Context {
            run: run(&format!("run-{n}")),
            now: bench.now().await,
            time_out: seconds(30),
            policy: Policy::default(),
            pools: BTreeMap::from([(voice(), PoolPolicy::default())]),
            prices: Prices::new("us-east-1", BTreeMap::new()),
        };
        let wish = WakeWish::new(Target::Pool(voice()), WakeSource::Prewarm);
        let outcome = bench.drive(&mut WakeRun::new(context, Cause::Wishes(vec![wish]))).await;
        assert!(outcome.failed.is_empty() && outcome.blind.is_none(), "{outcome:?}");
        bench.pass(minutes(10)).await;
    }
    let published = bench.published().await;
    let [told] = &published[..] else { panic!("{published:?}") };
    let attribute = |name: &str| told.attributes.get(name).map(String::as_str);
    assert_eq!((attribute("kind"), attribute("pool")), (Some("misconfigured"), Some("voice")), "no node to wake");
    assert!(told.subject.is_ascii() && told.subject.len() < 100, "{}", told.subject);
}
