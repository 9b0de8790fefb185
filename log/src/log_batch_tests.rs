//! Tests of the batch reader.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::Write;

const MIB: u64 = 1024 * 1024;
const GROUP: &str = "/front/access";
const CALL: &str = r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /v1/a?key=secret HTTP/1.1" 200 5 "-" "curl/8""#;
const PROBE: &str = r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /v1/a HTTP/1.1" 200 5 "-" "kube-probe/1.30""#;
const STRANGER: &str = r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /.env HTTP/1.1" 404 5 "-" "Mozilla/5.0""#;
const ENDED_CALL: &str = r#"{"request":"GET /v1/a HTTP/1.1","status":200,"request_time":10800}"#;
/// 2026-11-30T09:00:00Z.
const NINE: i64 = 1_796_029_200_000;

fn time(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(millis).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn pack(json: impl AsRef<[u8]>) -> String {
    STANDARD.encode(gzip(json.as_ref()))
}

fn event(line: &str, timestamp: i64) -> String {
    let message = serde_json::json!(line);
    format!(r#"{{"id":"{:056}","timestamp":{timestamp},"message":{message}}}"#, 1)
}

fn events(lines: &[&str]) -> String {
    lines.iter().map(|line| event(line, NINE)).collect::<Vec<_>>().join(",")
}

/// A batch in the order in which CloudWatch Logs writes it.
fn batch(events: &str) -> String {
    format!(
        r#"{{"messageType":"DATA_MESSAGE","owner":"0","logGroup":"{GROUP}","logStream":"s","subscriptionFilters":["f"],"logEvents":[{events}]}}"#
    )
}

fn filter() -> Filter {
    Filter::new(serde_json::from_str(r#"{"paths": ["/v1/"]}"#).unwrap()).unwrap()
}

fn read_capped(data: &str, max_inflated_bytes: u64) -> Result<Batch, BatchFault> {
    let filter = filter();
    read(data, max_inflated_bytes, time(NINE - 3_600_000), |group| (group == GROUP).then_some(&filter))
}

fn read_packed(json: impl AsRef<[u8]>) -> Batch {
    read_capped(&pack(json), MIB).unwrap()
}

fn call() -> Outcome {
    let (method, path) = ("GET".to_owned(), "/v1/a".to_owned());
    let (path_class, agent_class) = (Some("/v1/".to_owned()), Some("curl".to_owned()));
    Outcome::Woken(Woken { at: Some(time(NINE)), method, path, path_class, agent_class })
}

#[test]
fn stops_at_the_first_call_and_counts_what_came_before() {
    let read = read_packed(batch(&events(&[PROBE, STRANGER, STRANGER, "Listening?key=secret", CALL, PROBE])));
    let noise = BTreeMap::from([(NoiseReason::HealthCheck, 1), (NoiseReason::Path, 2)]);
    assert_eq!(read.outcome, call());
    assert_eq!(read.counts, Counts { read: 5, noise, unread: 1, late: 0 });
    assert_eq!((read.log_group.as_deref(), read.unread_sample.as_deref()), (Some(GROUP), Some("aaa…?…")));
}

#[test]
fn the_sample_of_an_unknown_line_shows_its_shape_alone() {
    let rows = [
        ("text", "login jo@example.org pwd=hunter2 ok?x=1", "aaa… aa@aaa….aaa aaa=aaa…9 aa?…"),
        ("JSON", r#"{"level":"info","said":"my PIN is 4711"}"#, r#"{"level": text, "said": text}"#),
    ];
    for (name, line, shape) in rows {
        let read = read_packed(batch(&events(&[line, "another"])));
        assert_eq!((read.counts.unread, read.unread_sample.as_deref()), (2, Some(shape)), "{name}");
    }
}

#[test]
fn the_end_of_a_long_call_is_quiet_and_a_call_behind_it_wakes() {
    let ended = read_packed(batch(&events(&[ENDED_CALL])));
    assert_eq!((ended.outcome, ended.counts.noise), (Outcome::Quiet, BTreeMap::from([(NoiseReason::EndedCall, 1)])));
    assert_eq!(read_packed(batch(&events(&[ENDED_CALL, CALL]))).outcome, call());
}

#[test]
fn lines_are_read_as_the_filter_of_their_group_says() {
    let line = r#"{"http":{"verb":"GET","target":"/v1/a"},"code":200}"#;
    let spec = r#"{"paths": ["/v1/"], "fields": {"method": "http.verb", "path": "http.target", "status": "code"}}"#;
    let mapped = Filter::new(serde_json::from_str(spec).unwrap()).unwrap();
    let data = pack(batch(&events(&[line])));
    let with_fields = read(&data, MIB, time(NINE), |_| Some(&mapped)).unwrap();
    let (method, path, path_class) = ("GET".to_owned(), "/v1/a".to_owned(), Some("/v1/".to_owned()));
    let woken = Woken { at: Some(time(NINE)), method, path, path_class, agent_class: None };
    assert_eq!(with_fields.outcome, Outcome::Woken(woken));
    let without = read_capped(&data, MIB).unwrap();
    assert_eq!((without.outcome, without.counts.unread), (Outcome::Quiet, 1));
}

#[test]
fn a_batch_without_calls_is_quiet() {
    let rows = [
        ("no line", events(&[])),
        ("noise", events(&[PROBE, STRANGER])),
        ("message null", r#"{"message":null}"#.to_owned()),
    ];
    for (name, events) in rows {
        assert_eq!(read_packed(batch(&events)).outcome, Outcome::Quiet, "{name}");
    }
}

#[test]
fn a_late_line_does_not_wake() {
    let oldest = NINE - 3_600_000;
    let late = read_packed(batch(&event(CALL, oldest - 1)));
    assert_eq!((late.outcome, late.counts.late, late.counts.read), (Outcome::Quiet, 1, 1));
    let on_time = read_packed(batch(&event(CALL, oldest)));
    assert!(matches!(on_time.outcome, Outcome::Woken(_)), "a line of exactly the oldest time is not late");
}

#[test]
fn an_event_without_time_takes_the_time_of_the_line() {
    let event = serde_json::json!({"message": CALL}).to_string();
    assert_eq!(read_packed(batch(&event)).outcome, call());
}

#[test]
fn keys_may_come_in_any_order() {
    let events = events(&[STRANGER, CALL]);
    let rows = [
        ("events first", format!(r#"{{"logEvents":[{events}],"logGroup":"{GROUP}","messageType":"DATA_MESSAGE"}}"#)),
        ("type last", format!(r#"{{"logGroup":"{GROUP}","logEvents":[{events}],"messageType":"DATA_MESSAGE"}}"#)),
        ("no type", format!(r#"{{"logGroup":"{GROUP}","logEvents":[{events}]}}"#)),
        ("broken behind the group", format!(r#"{{"logEvents":[{events}],"logGroup":"{GROUP}",]"#)),
        (
            "unknown keys",
            format!(r#"{{"x":[{{}}],"messageType":"DATA_MESSAGE","logGroup":"{GROUP}","logEvents":[{events}]}}"#),
        ),
    ];
    for (name, json) in rows {
        let read = read_packed(json);
        assert_eq!((read.outcome, read.counts.read), (call(), 2), "{name}");
    }
}

#[test]
fn control_and_group_are_seen_behind_the_events() {
    let events = events(&[CALL]);
    let control = format!(r#"{{"logEvents":[{events}],"logGroup":"{GROUP}","messageType":"CONTROL_MESSAGE"}}"#);
    assert_eq!(read_packed(control).outcome, Outcome::Control);
    let ignored = format!(r#"{{"logEvents":[{events}],"logGroup":"/other","messageType":"DATA_MESSAGE"}}"#);
    assert_eq!(read_packed(ignored).outcome, Outcome::Ignored);
}

#[test]
fn case_20_strangers_do_not_wake() {
    let requests = ["GET /.env 404", "GET /wp-login.php 404", "HEAD / 301", "GET http://203.0.113.9/ 400"];
    let line = |n: usize| {
        let (request, status) = requests[n % 4].rsplit_once(' ').unwrap();
        format!(r#"203.0.113.{n} - - [30/Nov/2026:09:00:00 +0000] "{request} HTTP/1.1" {status} 5 "-" "Mozilla/5.0""#)
    };
    let lines: Vec<String> = (0..40).map(line).collect();
    let read = read_packed(batch(&events(&lines.iter().map(String::as_str).collect::<Vec<_>>())));
    assert_eq!((read.outcome, read.counts.read), (Outcome::Quiet, 40));
}

#[test]
fn case_28_a_control_message_is_no_fault_and_no_wake() {
    let control = format!(
        r#"{{"messageType":"CONTROL_MESSAGE","owner":"CloudwatchLogs","logGroup":"","logStream":"","subscriptionFilters":[],"logEvents":[{}]}}"#,
        event(CALL, NINE)
    );
    let read = read_packed(control);
    assert_eq!((read.outcome, read.counts), (Outcome::Control, Counts::default()));
}

#[test]
fn case_29_one_odd_line_does_not_hide_the_others() {
    let message = |raw: &[u8]| [br#"{"id":"1","timestamp":1796029200000,"message":""#, raw, br#""}"#].concat();
    let odd: [(&str, &[u8]); 4] = [
        ("no UTF-8", b"\xff\xfe"),
        ("lone surrogate", br"\ud800 x"),
        ("raw control character", b"a\tb\x01"),
        ("not ASCII", "搜索 é".as_bytes()),
    ];
    for (name, raw) in odd {
        let events = [message(raw), b",".to_vec(), event(CALL, NINE).into_bytes()].concat();
        let json = [batch("").strip_suffix("]}").unwrap().as_bytes(), &events, b"]}"].concat();
        let read = read_packed(json);
        assert_eq!((read.outcome, read.counts.unread), (call(), 1), "{name}");
    }
    let chinese = r#"h - - [30/Nov/2026:09:00:00 +0000] "GET /v1/搜索?q=é HTTP/1.1" 200 5 "-" "-""#;
    assert!(
        matches!(read_packed(batch(&events(&[chinese]))).outcome, Outcome::Woken(woken) if woken.path == "/v1/搜索")
    );
}

#[test]
fn case_32_the_last_of_50_000_lines_wakes() {
    let filler = format!("{STRANGER} {}", "x".repeat(270));
    let mut lines = vec![filler.as_str(); 49_999];
    lines.push(CALL);
    let json = batch(&events(&lines));
    assert!(json.len() > 20_000_000);
    let read = read_capped(&pack(json), 64 * MIB).unwrap();
    assert_eq!((read.outcome, read.counts.read), (call(), 50_000));
}

#[test]
fn case_32_50_000_lines_without_a_call_are_quiet() {
    let filler = format!("{STRANGER} {}", "x".repeat(270));
    let mut lines = vec![filler.as_str(); 49_999];
    lines.push(ENDED_CALL);
    let read = read_capped(&pack(batch(&events(&lines))), 64 * MIB).unwrap();
    let noise = BTreeMap::from([(NoiseReason::Path, 49_999), (NoiseReason::EndedCall, 1)]);
    assert_eq!((read.outcome, read.counts.noise), (Outcome::Quiet, noise));
}

#[test]
fn a_second_type_behind_the_lines_does_not_make_them_a_control_message() {
    let whole = batch(&events(&[PROBE]));
    let twice = format!(r#"{},"messageType":"CONTROL_MESSAGE"}}"#, &whole[..whole.len() - 1]);
    let read = read_packed(twice);
    assert_eq!((read.outcome, read.counts.read), (Outcome::Quiet, 1));
}

/// One member of a gzip file may follow another: 1 GB that takes 1 MB to hold.
fn gigabyte_of(byte: u8) -> String {
    STANDARD.encode(gzip(&vec![byte; MIB as usize]).repeat(1024))
}

#[test]
fn case_32_a_gigabyte_of_zeros_ends_at_the_first_byte() {
    let fault = read_capped(&gigabyte_of(0), u64::MAX).unwrap_err();
    assert_eq!(fault.to_string(), "awslogs.data: not JSON at line 1, byte 1");
}

#[test]
fn case_32_what_is_too_large_to_read_is_not_quiet() {
    let quiet = batch(&events(&[PROBE, STRANGER]));
    let exact = quiet.len() as u64;
    assert_eq!(read_capped(&gigabyte_of(b' '), MIB).unwrap().outcome, Outcome::TooLarge);
    assert_eq!(read_capped(&pack(&quiet), exact - 1).unwrap().outcome, Outcome::TooLarge);
    assert_eq!(read_capped(&pack(&quiet), exact).unwrap().outcome, Outcome::Quiet);
    let huge_line = batch(&events(&[&"x".repeat(2 * MIB as usize)]));
    let read = read_capped(&pack(huge_line), MIB).unwrap();
    assert_eq!((read.outcome, read.log_group.as_deref()), (Outcome::TooLarge, Some(GROUP)));
}

#[test]
fn case_35_lines_of_a_group_without_filter_are_not_looked_at() {
    let own = batch(&events(&["GET /v1 200", CALL])).replace(GROUP, "/aws/lambda/wake");
    let read = read_packed(own);
    assert_eq!((read.outcome, read.counts, read.unread_sample), (Outcome::Ignored, Counts::default(), None));
    assert_eq!(read.log_group.as_deref(), Some("/aws/lambda/wake"));
}

#[test]
fn a_fault_names_the_field_and_the_place() {
    let quiet = batch(&events(&[PROBE]));
    let good = pack(&quiet);
    let mut wrong_sum = gzip(quiet.as_bytes());
    let sum = wrong_sum.len() - 8;
    wrong_sum[sum] ^= 1;
    let rows = [
        ("empty", String::new(), "awslogs.data: not gzip, or broken"),
        ("not base64", "%%%".to_owned(), "awslogs.data: not base64 at character 0"),
        ("base64 breaks", format!("{}%", &good[..40]), "awslogs.data: not base64 at character 40"),
        ("not gzip", STANDARD.encode(&quiet), "awslogs.data: not gzip, or broken"),
        ("gzip breaks off", good[..good.len() / 8 * 4].to_owned(), "awslogs.data: not gzip, or broken"),
        ("check sum wrong", STANDARD.encode(&wrong_sum), "awslogs.data: not gzip, or broken"),
        ("not JSON", pack("hello"), "awslogs.data: not JSON at line 1, byte 1"),
        ("JSON breaks off", pack(&quiet[..30]), "awslogs.data: not JSON at line 1, byte 30"),
        ("more behind it", pack(format!("{quiet}x")), "awslogs.data: not JSON at line 1, byte 322"),
        ("no batch", pack("[1]"), "awslogs.data: JSON of another shape than a log batch at line 1, byte 1"),
        ("no group", pack(r#"{"logEvents":[]}"#), "awslogs.data: logGroup is missing"),
        ("no events", pack(format!(r#"{{"logGroup":"{GROUP}"}}"#)), "awslogs.data: logEvents is missing"),
    ];
    for (name, data, message) in rows {
        assert_eq!(read_capped(&data, MIB).unwrap_err().to_string(), message, "{name}");
    }
}

#[test]
fn a_call_before_the_broken_place_wakes() {
    let json = batch(&events(&[CALL]));
    let data = pack(&json);
    let many =
        pack(batch(&events(&[CALL, PROBE, "some other text of a line, long enough to fill bytes", "and 1 more"])));
    let rows = [
        ("JSON breaks off", pack(&json[..json.len() - 2])),
        ("gzip breaks off", data[..data.len() - 16].to_owned()),
        ("other bytes behind the gzip", STANDARD.encode([&gzip(json.as_bytes())[..], b"no gzip"].concat())),
        ("base64 breaks", format!("{}%%%", &many[..many.len() - 12])),
        ("event of another shape", pack(batch(&format!("{},7", event(CALL, NINE))))),
    ];
    for (name, data) in rows {
        assert_eq!(read_capped(&data, MIB).unwrap().outcome, call(), "{name}");
    }
}

#[test]
fn bits_that_turn_in_the_second_half_do_not_hide_a_call_at_the_start() {
    let filler: Vec<String> = (0..400).map(|n| format!("line {} of some text", n * n * 7919)).collect();
    let lines: Vec<&str> = [CALL].into_iter().chain(filler.iter().map(String::as_str)).collect();
    let mut packed = gzip(batch(&events(&lines)).as_bytes());
    let middle = packed.len() / 2;
    packed[middle..].fill(0xff);
    assert_eq!(read_capped(&STANDARD.encode(packed), MIB).unwrap().outcome, call());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(data in ".{0,200}") {
        let _ = read_capped(&data, MIB);
    }

    #[test]
    fn no_packed_bytes_make_it_panic(json in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_capped(&pack(json), MIB);
    }

    #[test]
    fn no_turned_byte_makes_it_panic_or_stall(place in 0_usize..400, byte in any::<u8>()) {
        let mut packed = gzip(batch(&events(&[PROBE, STRANGER, CALL])).as_bytes());
        let place = place % packed.len();
        packed[place] = byte;
        let _ = read_capped(&STANDARD.encode(packed), MIB);
    }

    #[test]
    fn a_call_beside_any_lines_still_wakes(mut lines in proptest::collection::vec(".{0,80}", 0..20), place in 0_usize..20) {
        lines.insert(place.min(lines.len()), CALL.to_owned());
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        prop_assert!(matches!(read_packed(batch(&events(&lines))).outcome, Outcome::Woken(_)));
    }
}

/// What both ways through a batch say of it.
fn both_ways(json: &[u8], max_inflated_bytes: u64) -> [String; 2] {
    let (data, filter) = (pack(json), filter());
    let filter_for = |group: &str| (group == GROUP).then_some(&filter);
    let oldest = time(NINE - 3_600_000);
    let ways =
        [read(&data, max_inflated_bytes, oldest, filter_for), read_any(&data, max_inflated_bytes, oldest, &filter_for)];
    ways.map(|said| format!("{said:?}"))
}

proptest! {
    #[test]
    fn the_usual_way_finds_what_the_other_finds(
        lines in proptest::collection::vec(
            (prop::sample::select(vec![PROBE, STRANGER, ENDED_CALL, CALL, "no request", "\u{e9} \\ \"q\"", ""]), 0..4_i64), 0..12,
        ),
        cut in proptest::option::of(0..2_000_usize),
        spoilt in proptest::option::of((0..2_000_usize, any::<u8>())),
        most in prop::sample::select(vec![MIB, 700, 90]),
    ) {
        let events: Vec<String> = lines.iter().map(|(line, hours)| event(line, NINE - hours * 3_600_000)).collect();
        let mut json = batch(&events.join(",")).into_bytes();
        if let Some((place, byte)) = spoilt
            && let Some(old) = json.get_mut(place)
        {
            *old = byte;
        }
        json.truncate(cut.unwrap_or(usize::MAX));
        let [usual, other] = both_ways(&json, most);
        prop_assert_eq!(usual, other);
    }
}

#[test]
fn lines_in_two_lists_or_under_an_odd_name_are_left_to_the_other_way() {
    let (call, probe) = (event(CALL, NINE), event(PROBE, NINE));
    let head = format!(r#"{{"messageType":"DATA_MESSAGE","logGroup":"{GROUP}","#);
    let rests = [
        format!(r#""logEvents" :[{call}],"logEvents":[{probe}]}}"#),
        format!(r#""log\u0045vents":[{call}],"logEvents":[{probe}]}}"#),
        format!(r#""logEvents":null,"logEvents":[{probe}]}}"#),
        format!(r#""logEvents" :[{probe}],"logEvents":[{probe}]}}"#),
        format!(r#""\"logEvents":[{call}]}}"#),
        format!(r#""x\"logEvents":[{call}]}}"#),
        format!(r#""logEvents" :[],"\"logEvents":[{call}]}}"#),
        format!(r#""x,\"logEvents":[{call}]}}"#),
    ];
    for rest in rests {
        let [usual, other] = both_ways(format!("{head}{rest}").as_bytes(), MIB);
        assert_eq!(usual, other, "{rest}");
    }
}

/// Each piece of a batch that is zipped in many small ones comes alone.
#[test]
fn a_batch_in_many_small_pieces_is_read_in_one_go() {
    let long = format!("{STRANGER}{}", "a".repeat(100_000));
    let json = batch(&events(&[&long, CALL]));
    let pieces: Vec<u8> = json.as_bytes().chunks(7).flat_map(gzip).collect();
    let read = read_capped(&STANDARD.encode(pieces), MIB).unwrap();
    assert!(matches!(read.outcome, Outcome::Woken(_)), "{read:?}");
}

#[test]
fn the_usual_way_takes_a_usual_batch_of_any_length() {
    let filter = filter();
    for lines in [1, 1_000] {
        let data = pack(batch(&events(&vec![PROBE; lines])));
        let filter_for = |group: &str| (group == GROUP).then_some(&filter);
        let mut pass = Pass::new(time(NINE), &filter_for);
        assert_eq!((usual::run(&mut pass, &data, MIB), pass.counts.read), (Some(()), lines as u64));
    }
}
