//! Tests of who is let in.

use super::*;
use crate::event::Event;
use serde_json::json;
use std::collections::BTreeSet;

const TOKEN: &str = "c2VjcmV0LXRva2VuLW9mLXRoZS1hcHA=";

fn tokens() -> Access {
    let hash = |token: &str| <[u8; 32]>::from(Sha256::digest(token));
    let hashes = [("app", hash(TOKEN)), ("app-2", hash("the-next-one")), ("cron", hash("x"))];
    Access::Token(hashes.into_iter().map(|(name, hash)| (name.to_owned(), hash)).collect())
}

fn request(headers: &Value, authorizer: &Value) -> LambdaFunctionUrlRequest {
    let event = json!({"version": "2.0", "rawPath": "/wake", "headers": headers, "requestContext": {
        "authorizer": authorizer, "http": {"method": "POST", "path": "/wake", "sourceIp": "192.0.2.7"}}});
    match Event::read(event) {
        Ok(Event::Request(request)) => *request,
        _ => panic!("not a request"),
    }
}

fn class(access: &Access, headers: &Value, authorizer: &Value) -> Option<String> {
    admit(access, &request(headers, authorizer)).ok().map(|caller| caller.class)
}

fn iam(arn: &str) -> Value {
    json!({"iam": {"accessKey": "AKIA", "accountId": "123456789012", "callerId": "AIDA", "userArn": arn, "userId": "AIDA"}})
}

#[test]
fn a_token_is_taken_if_it_is_the_one_bearer_token_of_the_request() {
    let bearer = |token: &str| json!({"authorization": format!("Bearer {token}")});
    let rows = [
        ("right", bearer(TOKEN), Some("token:app")),
        ("the next one", bearer("the-next-one"), Some("token:app-2")),
        ("the last one", bearer("x"), Some("token:cron")),
        ("scheme in small letters", json!({"authorization": format!("bearer {TOKEN}")}), Some("token:app")),
        ("scheme in capitals", json!({"authorization": format!("BEARER {TOKEN}")}), Some("token:app")),
        ("header's name in capitals", json!({"AUTHORIZATION": format!("Bearer {TOKEN}")}), Some("token:app")),
        ("several spaces", bearer(&format!("  {TOKEN}")), Some("token:app")),
        ("wrong", bearer("wrong"), None),
        ("one letter short", bearer(&TOKEN[1..]), None),
        ("one letter more", bearer(&format!("{TOKEN}=")), None),
        ("in another case", bearer(&TOKEN.to_lowercase()), None),
        (
            "the hash of a token",
            bearer(&Sha256::digest(TOKEN).iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            None,
        ),
        ("the name of a token", bearer("app"), None),
        ("missing", json!({}), None),
        ("empty header", json!({"authorization": ""}), None),
        ("no token", json!({"authorization": "Bearer"}), None),
        ("empty token", bearer(""), None),
        ("spaces for a token", bearer("   "), None),
        ("no scheme", json!({"authorization": TOKEN}), None),
        ("another scheme", json!({"authorization": format!("Basic {TOKEN}")}), None),
        ("two headers, joined", json!({"authorization": format!("Bearer {TOKEN},Bearer {TOKEN}")}), None),
        ("two headers, listed", json!({"authorization": [format!("Bearer {TOKEN}"), format!("Bearer {TOKEN}")]}), None),
        ("two tokens", bearer(&format!("{TOKEN} x")), None),
        ("beyond ASCII", bearer("ü"), None),
        ("over-long", bearer(&"a".repeat(LONGEST_AUTHORIZATION)), None),
        ("huge", bearer(&"a".repeat(1 << 20)), None),
        ("in another header", json!({"x-authorization": format!("Bearer {TOKEN}")}), None),
    ];
    for (name, headers, expected) in rows {
        assert_eq!(class(&tokens(), &headers, &Value::Null).as_deref(), expected, "{name}");
    }
}

#[test]
fn the_longest_header_is_read_to_its_last_byte() {
    let token = "a".repeat(LONGEST_AUTHORIZATION - "Bearer ".len());
    let access = Access::Token(BTreeMap::from([("long".to_owned(), Sha256::digest(&token).into())]));
    let headers = json!({"authorization": format!("Bearer {token}")});
    assert_eq!(class(&access, &headers, &Value::Null).as_deref(), Some("token:long"));
}

#[test]
fn every_refused_token_gets_the_same_answer() {
    let answers: BTreeSet<String> =
        [json!({}), json!({"authorization": "Basic x"}), json!({"authorization": "Bearer wrong"})]
            .iter()
            .map(|headers| admit(&tokens(), &request(headers, &Value::Null)).expect_err("refused").to_string())
            .collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let answer: Value = serde_json::from_str(answers.first().unwrap()).unwrap();
    assert_eq!(answer["statusCode"], 401);
    assert_eq!(answer["headers"]["www-authenticate"], "Bearer");
    assert_eq!(answer["headers"]["content-type"], "application/problem+json");
}

#[test]
fn iam_takes_whom_lambda_has_verified_and_shows_no_session_and_no_account() {
    let rows = [
        ("a user", iam("arn:aws:iam::123456789012:user/alice"), Some("iam:alice")),
        ("a user with a path", iam("arn:aws:iam::123456789012:user/eng/alice"), Some("iam:alice")),
        ("a role", iam("arn:aws:sts::123456789012:assumed-role/front/i-0abc"), Some("iam:front")),
        ("a role in China", iam("arn:aws-cn:sts::123456789012:assumed-role/front/me@example.com"), Some("iam:front")),
        ("the account's root", iam("arn:aws:iam::123456789012:root"), Some("iam:root")),
        ("a federated user", iam("arn:aws:sts::123456789012:federated-user/bob"), Some("iam:federated-user")),
        ("no ARN", iam("123456789012"), Some("iam:unnamed")),
        ("an odd name", iam("arn:aws:iam::123456789012:user/a\nb"), Some("iam:unnamed")),
        ("an id of a role", json!({"iam": {"userId": "AROAEXAMPLE:session"}}), Some("iam:AROAEXAMPLE")),
        ("an id of the account", json!({"iam": {"userId": "123456789012:bob"}}), Some("iam:unnamed")),
        ("nobody named", json!({"iam": {"userArn": "", "userId": ""}}), None),
        ("an empty block", json!({"iam": {}}), None),
        ("another authorizer", json!({"jwt": {"claims": {}}}), None),
        ("no block", json!({"iam": null}), None),
        ("no authorizer", Value::Null, None),
    ];
    for (name, authorizer, expected) in rows {
        assert_eq!(class(&Access::Iam, &json!({}), &authorizer).as_deref(), expected, "{name}");
    }
}

#[test]
fn one_kind_of_access_does_not_stand_in_for_the_other() {
    let token = json!({"authorization": format!("Bearer {TOKEN}")});
    let alice = iam("arn:aws:iam::123456789012:user/alice");
    let refused = admit(&Access::Iam, &request(&token, &Value::Null)).expect_err("nobody verified it");
    assert!(refused["body"].as_str().unwrap().contains("not behind AWS_IAM"), "{refused}");
    assert_eq!(class(&tokens(), &json!({}), &alice), None);
    assert_eq!(class(&tokens(), &token, &alice).as_deref(), Some("token:app"));
}

#[test]
fn callers_fall_into_a_bounded_number_of_buckets() {
    let caller = |class: &str, ip: usize| Caller { class: class.to_owned(), source_ip: Some(format!("192.0.2.{ip}")) };
    let keys: BTreeSet<u8> = (0..5000).map(|ip| caller("token:app", ip).rate_key()).collect();
    assert_eq!(keys, (0..RATE_KEYS).collect());
    assert_eq!(caller("token:app", 1).rate_key(), caller("token:app", 1).rate_key());
    let unknown = Caller { class: "token:app".to_owned(), source_ip: None };
    assert!(unknown.rate_key() < RATE_KEYS);
}
