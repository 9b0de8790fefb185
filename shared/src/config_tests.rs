//! Tests of the configuration.

use super::*;

fn vars(more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pools = r#"{"voice": {"requests": [{"namespace": "N", "metric": "M"}], "calls": "unobserved"}}"#;
    let least = [(POOLS, pools), (TABLE, "ledger"), (TOPIC, "arn:aws:sns:eu-central-1:000000000000:alerts")];
    least.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn faults(more: &[(&str, &str)]) -> Vec<String> {
    Config::from_vars(&vars(more)).map(|_| Vec::new()).unwrap_or_else(|faults| faults.0)
}

#[test]
fn the_least_configuration_has_the_documented_defaults() {
    let config = Config::from_vars(&vars(&[])).expect("valid");
    assert_eq!(config.policy, Policy::default());
    assert_eq!(config.default_pool, PoolName::new("voice").ok());
}

#[test]
fn every_fault_is_listed_at_once() {
    let found = Config::from_vars(&BTreeMap::from([
        (IDLE.to_owned(), "soon".to_owned()),
        ("REVEILLE_IDEL_MINUTES".to_owned(), "30".to_owned()),
    ]));
    let text = found.expect_err("must be refused").to_string();
    for name in [POOLS, TABLE, TOPIC, IDLE, "REVEILLE_IDEL_MINUTES"] {
        assert!(text.contains(name), "{name} in {text}");
    }
}

#[test]
fn numbers_are_held_to_their_ranges() {
    let rows = [
        ("below", IDLE, "9", 1),
        ("at the lower end", IDLE, "10", 0),
        ("at the upper end", IDLE, "1440", 0),
        ("above", IDLE, "1441", 1),
        ("not whole", IDLE, "30.5", 1),
        ("negative", BOOT, "-5", 1),
        ("blank is the default", IDLE, " ", 0),
        ("trimmed", IDLE, " 45 ", 0),
        ("no room for two readings", TICK, "30", 1),
    ];
    for (name, variable, value, wrong) in rows {
        assert_eq!(faults(&[(variable, value)]).len(), wrong, "{name}");
    }
}

#[test]
fn pools_are_refused_with_the_field_that_is_wrong() {
    let rows = [
        ("not JSON", "{", "EOF"),
        ("no pool", "{}", "names no pool"),
        (
            "bad name",
            r#"{"a b": {"requests": [{"namespace": "N", "metric": "M"}], "calls": "unobserved"}}"#,
            "pool \"a b\"",
        ),
        ("unknown field", r#"{"v": {"request": []}}"#, "unknown field `request`"),
        ("no signal", r#"{"v": {"calls": "unobserved"}}"#, "at least one signal"),
        ("calls not said", r#"{"v": {"requests": [{"namespace": "N", "metric": "M"}]}}"#, "\"calls\": \"unobserved\""),
        (
            "calls said twice",
            r#"{"v": {"open": [{"namespace": "N", "metric": "M"}], "calls": "unobserved"}}"#,
            "remove one",
        ),
        (
            "calls unknown word",
            r#"{"v": {"requests": [{"namespace": "N", "metric": "M"}], "calls": "seen"}}"#,
            "may only be",
        ),
        (
            "log without filter",
            r#"{"v": {"open": [{"namespace": "N", "metric": "M"}], "log_groups": ["/a"]}}"#,
            "go together",
        ),
        (
            "filter without paths",
            r#"{"v": {"open": [{"namespace": "N", "metric": "M"}], "log_groups": ["/a"], "wake": {"paths": []}}}"#,
            "paths",
        ),
        (
            "case 19: a load balancer by name",
            r#"{"v": {"open": [{"namespace": "AWS/ApplicationELB", "metric": "M", "dimensions": {"LoadBalancer": "my-alb"}}]}}"#,
            "app/NAME/HASH",
        ),
    ];
    for (name, pools, part) in rows {
        let text = faults(&[(POOLS, pools)]).join("; ");
        assert!(text.contains(part), "{name}: {text}");
    }
}

#[test]
fn a_log_group_wakes_one_pool_and_never_the_functions_own() {
    let shared = r#"{"a": {"open": [{"namespace": "N", "metric": "M"}], "log_groups": ["/x"], "wake": {"paths": ["/"]}},
                     "b": {"open": [{"namespace": "N", "metric": "M"}], "log_groups": ["/x"], "wake": {"paths": ["/"]}}}"#;
    assert!(faults(&[(POOLS, shared)]).join(";").contains("which one does it wake"));
    let own = r#"{"a": {"open": [{"namespace": "N", "metric": "M"}], "log_groups": ["/aws/lambda/wake"], "wake": {"paths": ["/"]}}}"#;
    let found = faults(&[(POOLS, own), ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/wake")]);
    assert!(found.join(";").contains("feed itself"), "{found:?}");
}

#[test]
fn virtual_time_is_refused_on_aws_and_off_loopback() {
    let clock = (CLOCK, "http://127.0.0.1:1/clock");
    assert!(faults(&[clock]).is_empty());
    assert!(faults(&[clock, ("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023")]).join("").contains("refused on AWS"));
    assert!(faults(&[(CLOCK, "http://example.com/clock")]).join("").contains("loopback"));
}
