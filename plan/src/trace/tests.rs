use super::*;

struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn file(name: &str, content: impl AsRef<[u8]>) -> File {
    let path = std::env::temp_dir().join(format!("reveille-trace-{}-{name}", std::process::id()));
    std::fs::write(&path, content).unwrap();
    File(path)
}

fn open(name: &str, content: impl AsRef<[u8]>) -> Result<Trace, TraceFault> {
    let file = file(name, content);
    Trace::open(&file.0, Reading::default())
}

fn all(trace: &Trace, calls_a_day: Option<f64>, seed: u64) -> Vec<Call> {
    let mut calls = trace.calls(calls_a_day, seed).unwrap();
    std::iter::from_fn(|| calls.next_call().unwrap()).collect()
}

#[test]
fn every_bad_file_is_told_with_its_line() {
    let now = 1_796_029_200;
    let rows = [
        ("empty", String::new(), 1, "empty"),
        ("blank", "\n\n".to_owned(), 2, "empty"),
        ("only-a-header", "t,duration\n".to_owned(), 1, "no call"),
        ("words", "hello\nworld\n".to_owned(), 1, "no format that is read"),
        ("json", "{\"a\": 1}\n".to_owned(), 1, "no format that is read"),
        ("negative", format!("t,duration\n{now},5\n-3,5\n"), 3, "before 1970"),
        ("negative-duration", format!("t,duration\n{now},-5\n"), 2, "below zero"),
        ("jump-ahead", format!("t\n{now}\n{}\n", now + 500 * DAY), 3, "did a clock jump"),
        ("jump-back", format!("t\n{now}\n1000\n"), 3, "did a clock jump"),
        ("milliseconds", format!("t\n{now}000\n"), 2, "milliseconds"),
        ("overlapping-bins", "minute,requests\n0,1\n".to_owned() + "0.5,1\n", 3, "no number of a bin"),
        ("no-width", "bin,requests\n0,1\n".to_owned(), 1, "--bin-seconds"),
        ("endless", format!("t,duration\n{now},5\n{}", "9".repeat(300 * 1024)), 3, "longer than"),
        ("another-format-below", format!("t,duration\n{now},5\nGET / HTTP/1.1\n"), 3, "no time"),
    ];
    for (name, content, line, part) in rows {
        match open(name, content) {
            Err(TraceFault::Line { line: found, what, .. }) => {
                assert!(found == line && what.contains(part), "{name}: line {found}: {what}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(matches!(Trace::open(Path::new("/no/such/file"), Reading::default()), Err(TraceFault::Io { .. })));
}

#[test]
fn what_can_be_put_right_is_and_is_told() {
    let file = file("repairs", "t,duration\n200,10\n100.7,5\n100.2,5\n");
    let trace = Trace::open(&file.0, Reading::default()).unwrap();
    let calls: Vec<_> = all(&trace, None, 0).iter().map(|call| (call.at, call.lasts)).collect();
    assert_eq!(calls, [(100, 5), (100, 5), (200, 10)]);
    let repairs = Repairs { unsorted: 2, repeated: 1, fractions: 2, ..Repairs::default() };
    assert_eq!(trace.survey().repairs, repairs);
    assert_eq!(repairs.sentences().len(), 3);
}

#[test]
fn calls_count_in_whole_days_of_the_zone_and_bins_as_they_are() {
    let day = |zone: Tz| {
        let file = file(&format!("days-{}", zone.name().len()), "t\n1796029200\n1796115600\n");
        let reading = Reading { zone, ..Reading::default() };
        let survey = Trace::open(&file.0, reading).unwrap().survey().clone();
        (survey.from % DAY, survey.days())
    };
    assert_eq!(day(Tz::UTC), (0, 2.0));
    assert_eq!(day(Tz::Asia__Seoul), (15 * 3600, 2.0), "midnight in Seoul is 15:00 UTC");
    let bins = open("bins", "hour,requests\n3,1\n5,2\n").unwrap();
    assert_eq!((bins.survey().from, bins.survey().to, bins.survey().calls), (3 * 3600, 6 * 3600, 3));
}

#[test]
fn a_log_line_is_a_call_from_its_start_to_its_end() {
    let balancer = |at: &str, took: &str| {
        format!(
            "https {at} app/lb/aa11 198.51.100.7:4000 10.0.0.5:80 0.000 {took} 0.000 200 200 99 88 \"GET https://h.example:443/v1/chat HTTP/1.1\" \"ua\" - - arn:x \"Root=1-a\" \"h.example\" \"-\" 0 {at} \"forward\" \"-\" \"-\" \"10.0.0.5:80\" \"200\" \"-\" \"-\"\n"
        )
    };
    let lines =
        [balancer("2026-11-30T09:10:00Z", "600.000"), balancer("2026-11-30T09:10:01Z", "1.000"), "noise\n".into()];
    let file = file("log", lines.concat());
    let trace = Trace::open(&file.0, Reading::default()).unwrap();
    let calls: Vec<_> = all(&trace, None, 0).iter().map(|call| (call.at - 1_796_029_200, call.lasts)).collect();
    assert_eq!(calls, [(0, 600), (600, 1)]);
    assert_eq!((trace.survey().kind, trace.survey().repairs.unread), (Kind::Log, 1));
    let reading = Reading { paths: vec!["/v2".to_owned()], ..Reading::default() };
    assert!(matches!(Trace::open(&file.0, reading), Err(TraceFault::Line { .. })), "no line is meant");
}

#[test]
fn a_thinned_trace_keeps_about_as_many_as_are_wanted_and_the_same_each_time() {
    let content: String = (0..100).map(|minute| format!("{minute},10000\n")).collect();
    let file = file("thin", "minute,requests\n".to_owned() + &content);
    let trace = Trace::open(&file.0, Reading::default()).unwrap();
    let a_day = 400.0 * 24.0 * 60.0 / 100.0;
    let calls = all(&trace, Some(a_day), 7);
    assert!((300..500).contains(&calls.len()), "{}", calls.len());
    assert!(calls.is_sorted_by_key(|call| call.at) && calls.iter().all(|call| (0..6000).contains(&call.at)));
    let late = calls.iter().filter(|call| call.at >= 3000).count();
    assert!((130..270).contains(&late), "about half in each half: {late}");
    assert_eq!(all(&trace, Some(a_day), 7), calls);
    assert_ne!(all(&trace, Some(a_day), 8), calls);
    assert_eq!(all(&trace, None, 7).len(), 1_000_000, "each is one");
}

#[test]
fn requests_of_a_bin_are_spread_evenly_over_it() {
    let file = file("spread", "hour,requests\n0,36000\n");
    let trace = Trace::open(&file.0, Reading::default()).unwrap();
    let calls = all(&trace, None, 1);
    for part in 0..6 {
        let within = calls.iter().filter(|call| call.at / 600 == part).count();
        assert!((5500..6500).contains(&within), "{part}: {within}");
    }
}
