//! Tests of the configuration.

use super::*;
use crate::decide::budget::Enforce;
use crate::policy::{PoolRules, ReadySource};

fn vars(more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pools = r#"{"voice": {"requests": [{"namespace": "N", "metric": "M"}], "calls": "unobserved"}}"#;
    let least = [(POOLS, pools), (TABLE, "ledger"), (TOPIC, "arn:aws:sns:eu-central-1:000000000000:alerts")];
    least.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn faults(more: &[(&str, &str)]) -> Vec<String> {
    Config::from_vars(&vars(more)).map(|_| Vec::new()).unwrap_or_else(|faults| faults.0)
}

fn config(more: &[(&str, &str)]) -> Config {
    Config::from_vars(&vars(more)).expect("valid")
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
        ("a boot that takes longer than it may", BOOT, "600", 1),
        ("a boot that may take just longer", BOOT, "599", 0),
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
        ("calls not said", r#"{"v": {"requests": [{"namespace": "N", "metric": "M"}]}}"#, "or \"unobserved\""),
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
    ];
    for (name, pools, part) in rows {
        let text = faults(&[(POOLS, pools)]).join("; ");
        assert!(text.contains(part), "{name}: {text}");
    }
}

#[test]
fn case_19_a_load_balancer_is_taken_by_its_arn_and_by_nothing_that_would_never_have_a_point() {
    let arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/app/my-alb/0123456789abcdef";
    let group = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/gpu/0123456789abcdef";
    let rows = [
        ("a name", "ApplicationELB", r#""LoadBalancer": "my-alb""#, Err("must be app/NAME/HASH")),
        ("a listener", "ApplicationELB", r#""LoadBalancer": "app/my-alb/0123/4567""#, Err("must be app/NAME/HASH")),
        ("no hash", "ApplicationELB", r#""LoadBalancer": "app/my-alb/""#, Err("must be app/NAME/HASH")),
        ("a network one", "ApplicationELB", r#""LoadBalancer": "net/my-nlb/0123""#, Err("must be app/NAME/HASH")),
        ("an application's", "NetworkELB", r#""LoadBalancer": "app/my-alb/0123""#, Err("must be net/NAME/HASH")),
        ("a group's name", "ApplicationELB", r#""TargetGroup": "gpu""#, Err("must be targetgroup/NAME/HASH")),
        ("in another case", "ApplicationELB", r#""loadBalancer": "app/a/0""#, Err("no dimension \"loadBalancer\"")),
        ("its ARN", "ApplicationELB", &format!(r#""LoadBalancer": "{arn}""#), Ok("app/my-alb/0123456789abcdef")),
        ("its resource", "ApplicationELB", r#""LoadBalancer": "loadbalancer/app/a/0""#, Ok("app/a/0")),
        (
            "as it is",
            "ApplicationELB",
            r#""LoadBalancer": "app/my-alb/0123456789abcdef""#,
            Ok("app/my-alb/0123456789abcdef"),
        ),
        (
            "a group's ARN",
            "ApplicationELB",
            &format!(r#""TargetGroup": "{group}""#),
            Ok("targetgroup/gpu/0123456789abcdef"),
        ),
        ("another service's", "ContainerInsights", r#""LoadBalancer": "my-alb""#, Ok("my-alb")),
    ];
    for (name, namespace, dimension, expected) in rows {
        let metric = format!(r#"{{"namespace": "AWS/{namespace}", "metric": "M", "dimensions": {{{dimension}}}}}"#);
        let pools = [
            format!(r#"{{"v": {{"open": [{metric}]}}}}"#),
            format!(r#"{{"v": {{"beat": true, "ready": {metric}}}}}"#),
            format!(
                r#"{{"v": {{"beat": true, "logs": [{{"group": "/a", "lines": {{"paths": ["/"]}}, "alive": {metric}}}]}}}}"#
            ),
        ];
        for pools in pools {
            match expected {
                Err(part) => {
                    let found = faults(&[(POOLS, &pools)]).join("; ");
                    assert!(found.contains(part), "{name}: {found}");
                }
                Ok(value) => {
                    let policy = config(&[(POOLS, &pools)]).pools[&PoolName::new("v").unwrap()].policy.clone();
                    let of_logs = policy.logs.iter().filter_map(|log| log.alive.as_ref());
                    let metrics = policy.signals.iter().map(|signal| &signal.metric).chain(&policy.healthy_hosts);
                    let found = metrics.chain(of_logs).next().unwrap().dimensions.values().next().cloned();
                    assert_eq!(found.as_deref(), Some(value), "{name}: {pools}");
                }
            }
        }
    }
}

#[test]
fn case_19_a_proof_of_life_of_another_balancer_proves_nothing() {
    let metric = |name: &str, of: &str| {
        format!(r#""namespace": "AWS/ApplicationELB", "metric": "{name}", "dimensions": {{"LoadBalancer": "{of}"}}"#)
    };
    let pools = |alive: &str| {
        let (own, alive) = (metric("ActiveConnectionCount", "app/v/0"), metric("HealthyHostCount", alive));
        format!(r#"{{"v": {{"open": [{{{own}, "alive": {{{alive}}}}}]}}}}"#)
    };
    assert_eq!(faults(&[(POOLS, &pools("app/v/0"))]), [""; 0]);
    let found = faults(&[(POOLS, &pools("app/v/1"))]).join("; ");
    assert!(found.contains("`alive` is of load balancer \"app/v/1\""), "{found}");
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

#[test]
fn case_41_a_budget_says_its_currency_and_it_is_usd() {
    let rows = [
        ("as it should be", r#"{"amount": 20, "currency": "USD"}"#, ""),
        ("text and cents", r#"{"amount": "20.50", "currency": "USD"}"#, ""),
        ("another currency", r#"{"amount": 20, "currency": "EUR"}"#, "AWS budgets in USD only"),
        ("in small letters", r#"{"amount": 20, "currency": "usd"}"#, "AWS budgets in USD only"),
        ("none", r#"{"amount": 20}"#, "`currency` is missing"),
        ("no amount", r#"{"currency": "USD"}"#, "amount"),
        ("nothing", r#"{"amount": 0, "currency": "USD"}"#, "the price of amount is zero"),
        ("below nothing", r#"{"amount": -5, "currency": "USD"}"#, "is not an amount"),
        ("falling thresholds", r#"{"amount": 20, "currency": "USD", "actual": [80, 50]}"#, "has to rise"),
        ("equal thresholds", r#"{"amount": 20, "currency": "USD", "forecast": [100, 100]}"#, "has to rise"),
        (
            "a threshold of nothing",
            r#"{"amount": 20, "currency": "USD", "actual": [0, 50]}"#,
            "percentages from 1 to 1000",
        ),
        ("no threshold", r#"{"amount": 20, "currency": "USD", "actual": []}"#, "nobody would ever be told"),
        ("an unknown enforcement", r#"{"amount": 20, "currency": "USD", "enforce": "kill"}"#, "kill"),
        ("a word too many", r#"{"amount": 20, "currency": "USD", "limit": 1}"#, "limit"),
        ("a name that AWS refuses", r#"{"amount": 20, "currency": "USD", "name": "a:b"}"#, "without ':'"),
        ("no mail address", r#"{"amount": 20, "currency": "USD", "mail": ["ops"]}"#, "addresses"),
        (
            "more thresholds than AWS has notifications",
            r#"{"amount": 20, "currency": "USD", "actual": [10, 20, 30, 40, 50], "mail": ["a@b"]}"#,
            "at most 5 thresholds",
        ),
        (
            "a unit of nothing",
            r#"{"amount": 20, "currency": "USD", "units": {"calls": 0}}"#,
            "the price of calls is zero",
        ),
    ];
    for (name, budget, named) in rows {
        let found = faults(&[(BUDGET, budget)]).join("; ");
        assert_eq!(found.is_empty(), named.is_empty(), "{name}: {found}");
        assert!(found.contains(named), "{name}: {found}");
    }
}

#[test]
fn a_budget_has_the_documented_defaults() {
    let config = Config::from_vars(&vars(&[(BUDGET, r#"{"amount": 20, "currency": "USD"}"#)])).expect("valid");
    let budget = config.budget.expect("a budget");
    assert_eq!((budget.actual, budget.forecast), (vec![50, 80, 100], vec![100]));
    assert_eq!((budget.name.as_str(), budget.enforce, budget.mail.len()), ("reveille", Enforce::Alert, 0));
}

#[test]
fn a_target_is_a_url_or_a_path() {
    for target in ["https://app.example.com/talk?x=1", "http://10.0.0.1:8080", "/talk", "/"] {
        let config = Config::from_vars(&vars(&[(TARGET_URL, target)])).expect("valid");
        assert_eq!(config.target_url.as_deref(), Some(target));
    }
}

#[test]
fn the_guard_needs_a_budget_and_a_region_with_prices() {
    let budget = (BUDGET, r#"{"amount": 20, "currency": "USD"}"#);
    let rows = [
        ("all there", vec![budget, (REGION, "us-east-1")], ""),
        ("no budget", vec![(REGION, "us-east-1")], "REVEILLE_BUDGET: is not set"),
        ("an unknown region", vec![budget, (REGION, "mars-north-1")], "\"mars-north-1\" is not in the price table"),
        ("no region", vec![budget], "is not in the price table"),
        ("own prices", vec![budget, (REGION, "mars-north-1"), (PRICES, r#"{"g6.xlarge": "0.7"}"#)], ""),
    ];
    for (name, more, named) in rows {
        let config = Config::from_vars(&vars(&more)).expect("valid for the other functions");
        let found = config.for_budget_guard().err().map(|faults| faults.to_string()).unwrap_or_default();
        assert_eq!(found.is_empty(), named.is_empty(), "{name}: {found}");
        assert!(found.contains(named), "{name}: {found}");
    }
}

#[test]
fn prices_zones_types_and_logs_are_refused_by_name() {
    let pool = |field: &str| {
        format!(r#"{{"voice": {{"requests": [{{"namespace": "N", "metric": "M"}}], "calls": "unobserved", {field}}}}}"#)
    };
    let lines = r#""lines": {"paths": ["/v1/"]}"#;
    let rows = [
        (PRICES, r#"{"g6.xlarge": 0}"#.to_owned(), "the price of g6.xlarge is zero"),
        (PRICES, r#"{"g6.xlarge": "cheap"}"#.to_owned(), "\"cheap\" is not an amount"),
        (PRICES, "0.8".to_owned(), "REVEILLE_PRICES"),
        (ZONE, "Europe/Atlantis".to_owned(), "is not an IANA zone"),
        (TARGET_URL, "app.example.com".to_owned(), "is not a URL such as"),
        (TARGET_URL, "//elsewhere".to_owned(), "is not a URL such as"),
        (TARGET_URL, "javascript:alert(1)".to_owned(), "is not a URL such as"),
        (TARGET_URL, "https://a/\"><script>".to_owned(), "is not a URL such as"),
        (UPTIME, "24".to_owned(), "from 1 to 23"),
        (POOLS, pool(r#""instance_types": ["g6.xlarge", "g5g.xlarge"]"#), "mixes Arm and x86"),
        (TOPIC, "arn:aws:sns:us-east-1:000000000000:a.fifo".to_owned(), "a FIFO topic"),
        (
            BUDGET,
            r#"{"amount": 20, "currency": "USD", "enforce": "gate", "actual": [50]}"#.to_owned(),
            "has to hold 100",
        ),
        (POOLS, pool(r#""instance_types": ["g6"]"#), "g6 is not a type"),
        (POOLS, pool(r#""instance_types": ["g6.xlarge", "g6.xlarge"]"#), "names g6.xlarge twice"),
        (POOLS, pool(&format!(r#""logs": [{{"group": "", {lines}}}]"#)), "names no `group`"),
        (POOLS, pool(r#""logs": [{"group": "/a", "lines": {"paths": []}}]"#), "logs./a.lines"),
        (POOLS, pool(&format!(r#""logs": [{{"group": "/a", {lines}}}, {{"group": "/a", {lines}}}]"#)), "a group twice"),
        (TOPIC, "arn:aws:sns:us-east-1".to_owned(), "is not a topic's ARN"),
    ];
    for (setting, value, named) in rows {
        let found = faults(&[(setting, &value)]).join("; ");
        assert!(found.contains(named), "{setting}={value}: {found}");
    }
    let own = [(POOLS, pool(&format!(r#""logs": [{{"group": "/own", {lines}}}]"#)))];
    let more: Vec<(&str, &str)> = own
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain([("AWS_LAMBDA_LOG_GROUP_NAME", "/own")])
        .collect();
    assert!(faults(&more).join("; ").contains("this function's own"));
}

/// A test's hash of 64 digits.
fn hash(digit: char) -> String {
    digit.to_string().repeat(64)
}

#[test]
fn access_is_iam_unless_tokens_are_asked_for() {
    let access = |more: &[(&str, &str)]| Config::from_vars(&vars(more)).map(|config| config.access);
    assert_eq!(access(&[]), Ok(Access::Iam));
    assert_eq!(access(&[(ACCESS, "iam")]), Ok(Access::Iam));
    let two = format!(r#"{{"app": "{}", "app-2": "{}"}}"#, hash('a'), hash('B'));
    let hashes = BTreeMap::from([("app".to_owned(), [0xaa; 32]), ("app-2".to_owned(), [0xbb; 32])]);
    assert_eq!(access(&[(ACCESS, "token"), (TOKEN_SHA256, &two)]), Ok(Access::Token(hashes)));
}

#[test]
fn faults_of_access_name_the_variable_and_repeat_no_value() {
    let secret = "my-secret-value";
    let token = |given: &str| vec![(ACCESS, "token".to_owned()), (TOKEN_SHA256, given.to_owned())];
    let one = |name: &str, hash: &str| token(&format!(r#"{{"{name}": "{hash}"}}"#));
    let rows = [
        ("an unknown kind", vec![(ACCESS, secret.to_owned())], "REVEILLE_ACCESS: is neither"),
        ("another case", vec![(ACCESS, "Token".to_owned())], "REVEILLE_ACCESS: is neither"),
        ("no hash", vec![(ACCESS, "token".to_owned())], "REVEILLE_TOKEN_SHA256: is not set"),
        ("a hash with iam", vec![(TOKEN_SHA256, secret.to_owned())], "REVEILLE_ACCESS=token only"),
        ("no JSON", token(secret), "REVEILLE_TOKEN_SHA256: is not a JSON object"),
        ("a list", token(&format!(r#"["{secret}"]"#)), "is not a JSON object"),
        ("a number", token(r#"{"app": 7}"#), "is not a JSON object"),
        ("no token", token("{}"), "names no token"),
        ("the token itself", one("app", secret), "64 hexadecimal digits"),
        ("too short a hash", one("app", &hash('a')[1..]), "64 hexadecimal digits"),
        ("a bad digit", one("app", &hash('g')), "64 hexadecimal digits"),
        ("no name", one("", &hash('a')), "has to be a word"),
        ("a name with a space", one("my-secret-value 2", &hash('a')), "has to be a word"),
        ("too long a name", one(&"n".repeat(33), &hash('a')), "has to be a word"),
        (
            "the hash of nothing",
            one("app", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            "an empty text",
        ),
        (
            "one hash twice",
            token(&format!(r#"{{"a": "{0}", "b": "{0}"}}"#, hash('a'))),
            "token 2, by name: has the hash of another",
        ),
    ];
    for (name, given, named) in rows {
        let given: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let found = faults(&given).join("; ");
        assert!(found.contains(named), "{name}: {found}");
        assert!(!found.contains(secret), "{name}: {found}");
        assert!(!found.contains(&hash('a')[..40]), "{name}: {found}");
    }
}

#[test]
fn a_pool_says_how_calls_readiness_and_windows_are_meant() {
    let pool = r#"{"v": {"beat": true, "calls": "leased", "calls_per_node": 4, "fill_percent": 75, "ready_beats": 3,
        "warm": [{"days": ["mon-fri"], "from": "07:00", "to": "23:00"}]}}"#;
    let rules = config(&[(POOLS, pool), (ZONE, "Asia/Seoul")]).pools[&PoolName::new("v").unwrap()].policy.rules.clone();
    assert_eq!(rules.ready, ReadySource::Beat(3));
    assert_eq!((rules.calls_per_node, rules.leased, rules.beat), (Some(4), true, true));
    assert_eq!(
        [0, 1, 3, 4, 6, 7].map(|calls| rules.nodes_for(calls)),
        [0, 1, 1, 2, 2, 3],
        "a node more at three of four"
    );
    // Monday 07:00 in Seoul is Sunday 22:00 UTC.
    let at = |time: &str| format!("2026-11-29T{time}Z").parse().unwrap();
    let wanted = |time: &str| crate::domain::wanted(&rules.warm, at(time), TimeDelta::zero()).is_some();
    assert!(!wanted("21:59:59") && wanted("22:00:00"), "the window is in the configured zone");
    let plain = PoolRules::default();
    assert_eq!([0, 1, 9].map(|calls| plain.nodes_for(calls)), [0, 1, 1], "nobody said how many a node can take");
}

#[test]
fn readiness_is_read_from_what_the_pool_says() {
    let with = |fields: &str| format!(r#"{{"v": {{"requests": [{{"namespace": "N", "metric": "M"}}], {fields}}}}}"#);
    let hosts = r#""calls": "unobserved", "ready": {"namespace": "AWS/ApplicationELB", "metric": "HealthyHostCount",
        "dimensions": {"LoadBalancer": "app/v/0123456789abcdef"}}"#;
    let rows = [
        (r#""calls": "unobserved""#, ReadySource::Checks),
        (r#""beat": true"#, ReadySource::Beat(2)),
        (r#""beat": true, "ready": "checks""#, ReadySource::Checks),
        (r#""calls": "unobserved", "ready": "beat""#, ReadySource::Beat(2)),
        (hosts, ReadySource::HealthyHosts),
    ];
    for (fields, ready) in rows {
        let config = config(&[(POOLS, &with(fields))]);
        assert_eq!(config.pools[&PoolName::new("v").unwrap()].policy.rules.ready, ready, "{fields}");
    }
}

#[test]
fn calls_readiness_and_windows_that_say_nothing_are_refused_by_name() {
    let with = |fields: &str| format!(r#"{{"v": {{"beat": true, {fields}}}}}"#);
    let rows = [
        (r#""calls": "unobserved""#, "`calls` is \"unobserved\""),
        (r#""calls": "counted""#, "may only be"),
        (r#""calls_per_node": 4"#, "`calls_per_node` counts leases"),
        (r#""calls": "leased", "calls_per_node": 0"#, "from 1 to 100"),
        (r#""calls": "leased", "calls_per_node": 101"#, "from 1 to 100"),
        (r#""calls": "leased", "fill_percent": 50"#, "`calls_per_node`, which is not set"),
        (r#""calls": "leased", "calls_per_node": 4, "fill_percent": 101"#, "from 1 to 100"),
        (r#""ready": "soon""#, "`ready` may be"),
        (r#""ready": "checks", "ready_beats": 3"#, "`ready_beats` says nothing"),
        (r#""ready_beats": 11"#, "from 1 to 10"),
        (
            r#""ready": {"namespace": "AWS/ApplicationELB", "metric": "HealthyHostCount", "dimensions": {"LoadBalancer": "v"}}"#,
            "app/NAME/HASH",
        ),
        (r#""warm": [{"days": ["moonday"], "from": "07:00", "to": "23:00"}]"#, "days"),
        (r#""warm": [{"from": "7", "to": "23:00"}]"#, "from"),
        (r#""warm": [{"from": "07:00", "to": "07:00"}]"#, "warm"),
        (r#""warm": [{"from": "07:00", "to": "23:00", "nodes": 0}]"#, "nodes"),
        (r#""warm": [{"from": "07:00", "to": "23:00", "zone": "Mars/Base"}]"#, "zone"),
    ];
    for (fields, expected) in rows {
        let found = faults(&[(POOLS, &with(fields))]);
        assert!(
            found.iter().any(|fault| fault.contains(expected) && fault.starts_with("REVEILLE_POOLS.v")),
            "{fields}: {found:?}"
        );
        assert_eq!(found.len(), 1, "{fields}: {found:?}");
    }
}

#[test]
fn a_prewarm_lasts_as_long_as_the_idle_time_unless_it_is_said() {
    let prewarm = |vars: &[(&str, &str)]| config(vars).policy.prewarm.num_minutes();
    assert_eq!(prewarm(&[]), 30);
    assert_eq!(prewarm(&[(IDLE, "60")]), 60);
    assert_eq!(prewarm(&[(IDLE, "60"), (PREWARM, "15")]), 15);
    assert_eq!(faults(&[(TICK, "15"), (PREWARM, "15")]).len(), 1, "no room for two readings");
}

#[test]
fn a_default_that_is_a_number_is_within_its_range_and_the_one_that_is_taken() {
    for setting in SETTINGS {
        let (Some((least, most)), Some(Ok(default))) = (range(setting.name), setting.default.map(str::parse::<i64>))
        else {
            continue;
        };
        assert!((least..=most).contains(&default), "{}", setting.name);
        let said = config(&[(setting.name, &default.to_string())]);
        assert_eq!(said.policy, Policy::default(), "{}: {default} is not what is taken without it", setting.name);
    }
}
