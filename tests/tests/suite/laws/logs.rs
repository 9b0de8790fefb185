//! Use as it stands in request logs.

use crate::bench::{Bench, Trouble, minutes, morning, seconds, voice};
use crate::local::Local;
use chrono::TimeDelta;
use reveille::access_log::{Filter, FilterSpec};
use reveille::domain::{Instant, PoolName};
use reveille::observation::{Series, Unread};
use reveille::run::{Call, LogActivity, LogSource, take_logs};
use std::collections::BTreeMap;

const FRONT: &str = "/app/front";
const BACK: &str = "/app/back";
const CALL: &str = r#"{"request":"POST /v1/calls HTTP/1.1","status":200}"#;
const PROBE: &str = r#"{"request":"GET /v1/calls HTTP/1.1","status":200,"user_agent":"ELB-HealthChecker/2.0"}"#;
const ELSEWHERE: &str = r#"{"request":"GET /favicon.ico HTTP/1.1","status":200}"#;
const UNREADABLE: &str = "Traceback (most recent call last):";

fn source(group: &str) -> LogSource {
    let spec = FilterSpec { paths: vec!["/v1/".to_owned()], ..FilterSpec::default() };
    LogSource { pool: voice(), group: group.to_owned(), filter: Filter::new(spec).expect("a filter"), alive: None }
}

fn key(group: &str) -> (PoolName, String) {
    source(group).key()
}

async fn read(bench: &mut impl Bench, groups: &[&str], from: Instant, to: Instant) -> LogActivity {
    let call = Call::ReadLogs { sources: groups.iter().map(|group| source(group)).collect(), from, to };
    take_logs(Some(bench.answer(&call).await)).expect("an answer, whatever a group says")
}

/// What was counted in each minute after the morning; pages may each give the same minute a point.
fn by_minute(series: &Series) -> BTreeMap<i64, f64> {
    let mut counted = BTreeMap::new();
    for (at, value) in &series.points {
        assert_eq!(at.timestamp_millis() % 60_000, 0, "each point stands at the start of its minute");
        *counted.entry((*at - morning()).num_minutes()).or_default() += *value;
    }
    counted
}

/// The group `/app/front` in `[from, to)` minutes after the morning, read whole.
async fn front(bench: &mut impl Bench, from: i64, to: i64) -> BTreeMap<i64, f64> {
    let activity = read(bench, &[FRONT], morning() + minutes(from), morning() + minutes(to)).await;
    let Ok(series) = &activity[&key(FRONT)] else { panic!("{activity:?}") };
    assert!(series.complete, "{series:?}");
    by_minute(series)
}

/// Opens `/app/front` at 8:30.
async fn open_front(bench: &mut impl Bench) {
    bench.add_log_group(FRONT).await;
    bench.pass(minutes(30)).await;
}

pub(crate) async fn a_counted_line_is_use_and_any_other_proves_life(bench: &mut impl Bench) {
    open_front(bench).await;
    for (at, line) in [
        (190, CALL),
        (230, CALL),
        (235, PROBE),
        (300, PROBE),
        (360, ELSEWHERE),
        (420, UNREADABLE),
        (480, CALL),
        (481, UNREADABLE),
    ] {
        bench.log(FRONT, morning() + seconds(at), line).await;
    }
    let expected = BTreeMap::from([(3, 2.0), (5, 0.0), (6, 0.0), (7, 0.0), (8, 1.0)]);
    assert_eq!(front(bench, 0, 30).await, expected);
}

pub(crate) async fn a_group_without_lines_is_read_and_empty(bench: &mut impl Bench) {
    open_front(bench).await;
    assert_eq!(front(bench, 0, 30).await, BTreeMap::new(), "without any line");
    bench.log(FRONT, morning() + minutes(1), CALL).await;
    assert_eq!(front(bench, 10, 30).await, BTreeMap::new(), "without one in the span");
}

pub(crate) async fn the_span_of_a_log_includes_its_start_and_not_its_end(bench: &mut impl Bench) {
    open_front(bench).await;
    let millisecond = TimeDelta::milliseconds(1);
    let (from, to) = (morning() + minutes(5), morning() + minutes(10));
    for (name, at, expected) in [
        ("before the start", from - millisecond, None),
        ("at the start", from, Some(5)),
        ("before the end", to - millisecond, Some(9)),
        ("at the end", to, None),
    ] {
        bench.log(FRONT, at, PROBE).await;
        let found = front(bench, 5, 10).await;
        let minute = (at - morning()).num_minutes();
        assert_eq!(found.contains_key(&minute).then_some(minute), expected, "{name}: {found:?}");
    }
}

pub(crate) async fn a_long_call_that_ended_is_use_from_its_start(bench: &mut impl Bench) {
    open_front(bench).await;
    let ten_minutes = r#"{"request":"POST /v1/calls HTTP/1.1","status":200,"request_time":600}"#;
    bench.log(FRONT, morning() + minutes(15) + seconds(30), ten_minutes).await;
    let minutes_of =
        |range: std::ops::RangeInclusive<i64>| range.map(|minute| (minute, 1.0)).collect::<BTreeMap<_, _>>();
    assert_eq!(front(bench, 0, 30).await, minutes_of(5..=15), "from its start to its end");
    assert_eq!(front(bench, 12, 30).await, minutes_of(12..=15), "within the span");
    assert_eq!(front(bench, 16, 30).await, BTreeMap::new(), "over before the span");
}

pub(crate) async fn a_group_that_is_not_there_is_unknown_and_holds_up_no_other(bench: &mut impl Bench) {
    open_front(bench).await;
    bench.log(FRONT, morning() + minutes(1), CALL).await;
    let groups = ["/app/a-typing-error", FRONT, "/app/zzz"];
    let activity = read(bench, &groups, morning(), morning() + minutes(30)).await;
    assert_eq!(activity.len(), groups.len(), "an answer for each");
    for missing in [groups[0], groups[2]] {
        assert_eq!(activity[&key(missing)], Err(Unread::Failed), "{missing}");
    }
    assert_eq!(activity[&key(FRONT)].as_ref().map(by_minute), Ok(BTreeMap::from([(1, 1.0)])));
}

pub(crate) async fn logs_of_one_call_are_told_apart_by_their_group(bench: &mut impl Bench) {
    open_front(bench).await;
    bench.add_log_group(BACK).await;
    bench.log(FRONT, morning() + minutes(1), CALL).await;
    bench.log(BACK, morning() + minutes(2), PROBE).await;
    let activity = read(bench, &[FRONT, BACK], morning(), morning() + minutes(30)).await;
    assert_eq!(activity[&key(FRONT)].as_ref().map(by_minute), Ok(BTreeMap::from([(1, 1.0)])));
    assert_eq!(activity[&key(BACK)].as_ref().map(by_minute), Ok(BTreeMap::from([(2, 0.0)])));
    assert_eq!(read(bench, &[], morning(), morning() + minutes(30)).await, LogActivity::new(), "no group, no answer");
}

pub(crate) async fn two_pools_count_their_own_lines_of_one_log(bench: &mut impl Bench) {
    open_front(bench).await;
    bench.log(FRONT, morning() + minutes(1), CALL).await;
    let none_of_it = FilterSpec { paths: vec!["/batch/".to_owned()], ..FilterSpec::default() };
    let batch = PoolName::new("batch").expect("a pool");
    let other = LogSource { pool: batch, filter: Filter::new(none_of_it).expect("a filter"), ..source(FRONT) };
    let sources = vec![source(FRONT), other.clone()];
    let call = Call::ReadLogs { sources, from: morning(), to: morning() + minutes(30) };
    let activity = take_logs(Some(bench.answer(&call).await)).expect("an answer");
    assert_eq!(activity[&key(FRONT)].as_ref().map(by_minute), Ok(BTreeMap::from([(1, 1.0)])));
    assert_eq!(activity[&other.key()].as_ref().map(by_minute), Ok(BTreeMap::from([(1, 0.0)])));
}

pub(crate) async fn every_page_is_read_also_after_an_empty_one(bench: &mut impl Bench) {
    open_front(bench).await;
    bench.page_logs_small().await;
    for second in [60, 70, 80, 130, 140] {
        bench.log(FRONT, morning() + seconds(second), CALL).await;
    }
    bench.log(FRONT, morning() + minutes(7), PROBE).await;
    bench.log(FRONT, morning() + minutes(8), CALL).await;
    let expected = BTreeMap::from([(1, 3.0), (2, 2.0), (7, 0.0), (8, 1.0)]);
    assert_eq!(front(bench, 0, 30).await, expected);
}

pub(crate) async fn a_log_that_cannot_be_read_is_unknown_and_the_next_is_read(bench: &mut impl Bench) {
    open_front(bench).await;
    bench.add_log_group(BACK).await;
    bench.log(BACK, morning() + minutes(1), CALL).await;
    bench.log(FRONT, morning() + minutes(1), CALL).await;
    bench.fail("logs", Trouble::Refused("AccessDeniedException"), 1).await;
    let refused = read(bench, &[FRONT], morning(), morning() + minutes(30)).await;
    assert_eq!(refused[&key(FRONT)], Err(Unread::Failed));
    assert_eq!(front(bench, 0, 30).await, BTreeMap::from([(1, 1.0)]), "the trouble is over");
}

/// The executor gives up after 20 pages: one group must not hold up a run.
pub(crate) async fn a_log_of_too_many_pages_is_use_and_no_proof_of_silence(bench: &mut Local) {
    open_front(bench).await;
    bench.page_logs_by(1).await;
    for second in 0..21 {
        bench.log(FRONT, morning() + seconds(second * 60), if second == 0 { CALL } else { PROBE }).await;
    }
    let activity = read(bench, &[FRONT], morning(), morning() + minutes(30)).await;
    let Ok(series) = &activity[&key(FRONT)] else { panic!("{activity:?}") };
    assert!(!series.complete, "silence is not proved");
    let counted = by_minute(series);
    assert_eq!((counted.len(), counted[&0]), (20, 1.0), "what was read counts");
}
