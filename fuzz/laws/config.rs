//! Laws of the configuration.

use chrono::{DateTime, TimeDelta, Utc};
use reveille::config::{Config, SETTINGS};
use reveille::domain::{next_opening, wanted};
use reveille::policy::Policy;
use std::collections::BTreeMap;

const TOKENS: &str = "REVEILLE_TOKEN_SHA256";

/// A variable a line: `NAME=VALUE`. Read alone, and over a configuration that has what it needs.
pub(crate) fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let given: BTreeMap<String, String> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let least = [
        ("REVEILLE_POOLS", r#"{"voice": {"requests": [{"namespace": "N", "metric": "M"}], "calls": "unobserved"}}"#),
        ("REVEILLE_TABLE", "ledger"),
        ("REVEILLE_ALERT_TOPIC_ARN", "arn:aws:sns:eu-central-1:000000000000:alerts"),
    ];
    let mut whole: BTreeMap<_, _> =
        least.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    whole.extend(given.clone());
    for vars in [given, whole] {
        match Config::from_vars(&vars) {
            Ok(config) => is_valid(&config),
            Err(faults) => faults.0.iter().for_each(|fault| names_a_variable_and_no_token(fault, &vars)),
        }
        a_blank_is_a_default(&vars);
    }
}

fn names_a_variable_and_no_token(fault: &str, vars: &BTreeMap<String, String>) {
    let mut names = SETTINGS.iter().map(|setting| setting.name).chain(vars.keys().map(String::as_str));
    assert!(names.any(|name| fault.starts_with(name)), "{fault}");
    let tokens = vars.get(TOKENS).map(String::as_str).unwrap_or_default();
    let words = tokens.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() >= 12);
    let elsewhere = vars.iter().filter(|(name, _)| *name != TOKENS).flat_map(|(name, value)| [name, value]);
    let elsewhere: Vec<_> = elsewhere.collect();
    let is_elsewhere = |word: &str| elsewhere.iter().any(|text| text.contains(word));
    assert!(!words.into_iter().any(|word| fault.contains(word) && !is_elsewhere(word)), "{fault}");
}

fn a_blank_is_a_default(vars: &BTreeMap<String, String>) {
    let blank = SETTINGS.iter().filter(|setting| !vars.contains_key(setting.name));
    let mut more = vars.clone();
    more.extend(blank.map(|setting| (setting.name.to_owned(), " ".to_owned())));
    let policy = |vars| Config::from_vars(vars).map(|config| config.policy);
    assert_eq!(policy(&more), policy(vars));
}

fn is_valid(config: &Config) {
    is_within_its_ranges(&config.policy);
    assert!(!config.pools.is_empty() && !config.table.is_empty() && !config.account().is_empty());
    assert!(config.default_pool.as_ref().is_none_or(|name| config.pools.contains_key(name)));
    for (name, pool) in &config.pools {
        for group in &pool.log_groups {
            assert_eq!(config.pool_of_log_group(group).map(|(name, _)| name), Some(name), "{group} wakes its pool");
        }
        let windows = &pool.policy.rules.warm;
        let (now, lead) = (noon(), config.policy.boot);
        assert!(wanted(windows, now, lead).is_none_or(|wish| now < wish.until));
        assert!(next_opening(windows, now).is_none_or(|at| now < at));
    }
    if let Err(faults) = config.for_budget_guard() {
        assert!(faults.0.iter().all(|fault| fault.starts_with("REVEILLE_")), "{faults}");
    }
}

fn noon() -> DateTime<Utc> {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

fn is_within_its_ranges(policy: &Policy) {
    let minutes = |time: TimeDelta| time.num_minutes();
    assert!((10..=1440).contains(&minutes(policy.idle)) && (10..=1440).contains(&minutes(policy.prewarm)));
    assert!((5..=60).contains(&minutes(policy.tick)) && policy.idle >= policy.tick + TimeDelta::minutes(5));
    assert!(policy.boot < policy.ready_within && minutes(policy.ready_within) <= 60);
    assert!((5..=1440).contains(&minutes(policy.wish)) && (0..=120).contains(&minutes(policy.grace)));
    assert!((1..=23).contains(&policy.uptime.num_hours()) && (5..=120).contains(&minutes(policy.force_after)));
    assert!((1..=100_000).contains(&policy.wakes_each) && (1..=100_000).contains(&policy.wakes_all));
}
