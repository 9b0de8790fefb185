//! Whether a resource's own policy lets somebody in: as much of IAM's language as such policies use, and what is beyond it is an
//! error, never a guess ("Policy evaluation logic" and "IAM JSON policy elements", AWS IAM User Guide).

use serde_json::Value;
use std::collections::BTreeMap;
use wildmatch::WildMatch;

/// Somebody who wants something.
#[derive(Debug, Clone)]
pub(super) struct Asks<'a> {
    /// Who: a service such as `events.amazonaws.com`, or a role's or user's ARN.
    pub who: &'a str,
    /// What: `lambda:InvokeFunction`.
    pub action: &'a str,
    /// The circumstances, by their condition keys in small letters.
    pub context: BTreeMap<&'static str, String>,
}

/// Whether a statement of the policy allows it.
///
/// # Errors
/// The policy has a statement that denies, an unknown operator or an unknown kind of principal.
pub(super) fn permits(policy: &[Value], asks: &Asks<'_>) -> Result<bool, String> {
    let mut permitted = false;
    for statement in policy {
        if statement["Effect"] != "Allow" {
            return Err(format!("a statement that does not allow: {statement}"));
        }
        permitted |= texts(&statement["Action"]).iter().any(|action| matches(action, asks.action))
            && is_principal(&statement["Principal"], asks.who)?
            && holds(&statement["Condition"], asks)?;
    }
    Ok(permitted)
}

fn matches(pattern: &str, text: &str) -> bool {
    WildMatch::new(pattern).matches(text)
}

/// One text or a list of them.
fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .map_or_else(|| value.as_str().into_iter().collect(), |all| all.iter().filter_map(Value::as_str).collect())
}

fn is_principal(principal: &Value, who: &str) -> Result<bool, String> {
    if principal == "*" {
        return Ok(true);
    }
    let kinds = principal.as_object().ok_or_else(|| format!("an unknown principal: {principal}"))?;
    let mut is = false;
    for (kind, names) in kinds {
        is |= match kind.as_str() {
            // The region's own form of a service is the same service.
            "Service" => texts(names).iter().any(|name| *name == who || without_region(name) == who),
            // An account, by its number or as `root`, lets nobody in by itself: his own policies have to, and here nobody has any.
            "AWS" => texts(names).iter().any(|name| *name == "*" || *name == who),
            _ => return Err(format!("an unknown kind of principal: {kind}")),
        };
    }
    Ok(is)
}

/// `logs.eu-central-1.amazonaws.com` is `logs.amazonaws.com`.
fn without_region(service: &str) -> String {
    let parts: Vec<&str> = service.split('.').collect();
    match parts.as_slice() {
        [name, _, rest @ ..] if rest.len() == 2 => format!("{name}.{}", rest.join(".")),
        _ => service.to_owned(),
    }
}

fn holds(condition: &Value, asks: &Asks<'_>) -> Result<bool, String> {
    let Some(operators) = condition.as_object() else { return Ok(true) };
    let mut all = true;
    for (operator, keys) in operators {
        for (key, wanted) in keys.as_object().ok_or_else(|| format!("an unknown condition: {keys}"))? {
            let given = asks.context.get(key.to_ascii_lowercase().as_str());
            let wanted = texts(wanted);
            let is =
                |test: fn(&str, &str) -> bool| given.is_some_and(|given| wanted.iter().any(|one| test(one, given)));
            all &= match operator.as_str() {
                "StringEquals" => is(|one, given| one == given),
                "StringLike" | "ArnLike" | "ArnEquals" => is(matches),
                "Bool" => is(|one, given| one.eq_ignore_ascii_case(given)),
                _ => return Err(format!("an unknown condition operator: {operator}")),
            };
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const RULE: &str = "arn:aws:events:us-east-1:123456789012:rule/tick";

    fn asks<'a>(who: &'a str, context: &[(&'static str, &str)]) -> Asks<'a> {
        let context = context.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        Asks { who, action: "lambda:InvokeFunction", context }
    }

    #[test]
    fn who_may_in_by_principal_and_condition() {
        let by_rule = json!({"Effect": "Allow", "Action": "lambda:InvokeFunction",
            "Principal": {"Service": "events.amazonaws.com"}, "Condition": {"ArnLike": {"AWS:SourceArn": RULE}}});
        let by_group = json!({"Effect": "Allow", "Action": "lambda:InvokeFunction", "Principal": {"Service": "logs.us-east-1.amazonaws.com"},
            "Condition": {"StringEquals": {"AWS:SourceAccount": "123456789012"}, "ArnLike": {"AWS:SourceArn": "arn:aws:logs:us-east-1:123456789012:log-group:/app:*"}}});
        let by_url = json!({"Effect": "Allow", "Action": "lambda:InvokeFunction", "Principal": {"AWS": "arn:aws:iam::123456789012:role/app"},
            "Condition": {"Bool": {"lambda:InvokedViaFunctionUrl": "true"}}});
        let account = ("aws:sourceaccount", "123456789012");
        let group = ("aws:sourcearn", "arn:aws:logs:us-east-1:123456789012:log-group:/app:*");
        let table = [
            (&by_rule, asks("events.amazonaws.com", &[("aws:sourcearn", RULE)]), true),
            (
                &by_rule,
                asks("events.amazonaws.com", &[("aws:sourcearn", "arn:aws:events:us-east-1:123456789012:rule/tock")]),
                false,
            ),
            (&by_rule, asks("events.amazonaws.com", &[]), false),
            (&by_rule, asks("logs.amazonaws.com", &[("aws:sourcearn", RULE)]), false),
            (&by_group, asks("logs.amazonaws.com", &[account, group]), true),
            (&by_group, asks("logs.amazonaws.com", &[("aws:sourceaccount", "1"), group]), false),
            (&by_url, asks("arn:aws:iam::123456789012:role/app", &[("lambda:invokedviafunctionurl", "true")]), true),
            (&by_url, asks("arn:aws:iam::123456789012:role/app", &[]), false),
            (&by_url, asks("arn:aws:iam::123456789012:role/other", &[("lambda:invokedviafunctionurl", "true")]), false),
        ];
        for (n, (statement, asks, permitted)) in table.into_iter().enumerate() {
            assert_eq!(permits(std::slice::from_ref(statement), &asks), Ok(permitted), "row {n}");
        }
        assert_eq!(permits(&[], &asks("events.amazonaws.com", &[])), Ok(false));
    }

    #[test]
    fn what_it_does_not_know_is_an_error() {
        let asks = asks("events.amazonaws.com", &[]);
        let allow = json!({"Effect": "Allow", "Action": "lambda:*", "Principal": "*", "Condition": {"IpAddress": {"aws:SourceIp": "192.0.2.1"}}});
        assert!(permits(&[allow], &asks).is_err());
        assert!(permits(&[json!({"Effect": "Deny", "Action": "*", "Principal": "*"})], &asks).is_err());
        let federated = json!({"Effect": "Allow", "Action": "lambda:*", "Principal": {"Federated": "x"}});
        assert!(permits(&[federated], &asks).is_err());
    }

    #[test]
    fn an_account_lets_in_nobody_whose_own_policies_do_not() {
        let root = json!({"Effect": "Allow", "Action": "lambda:InvokeFunction", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}});
        assert_eq!(permits(&[root], &asks("arn:aws:iam::123456789012:role/x", &[])), Ok(false));
    }
}
