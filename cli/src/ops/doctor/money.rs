//! Is anybody told, and is everything priced and counted?

use super::{Case, Check, Finding};
use crate::ops::aws::{self, Subscribers};
use crate::ops::fault::is_missing;
use crate::ops::look::Looker;
use chrono::TimeDelta;
use reveille::domain::{InstanceType, Usd};
use reveille::run::{Call, take_budget};
use reveille::spend::{Month, spend};
use std::collections::BTreeSet;

/// A topic that tells nobody.
pub(super) async fn subscribers(case: &Case<'_>) -> Check {
    let topic = &case.config().topic_arn;
    let looked = match aws::subscribers(&case.session.sdk, topic).await {
        Ok(found) => Ok(judge_subscribers(topic, Some(found))),
        Err(error) if is_missing(&error) => Ok(judge_subscribers(topic, None)),
        Err(error) => Err(error),
    };
    Check::of("subscribers", looked.map(|finding| finding.into_iter().collect()))
}

/// None where there is no such topic.
fn judge_subscribers(topic: &str, found: Option<Subscribers>) -> Option<Finding> {
    let subscribe =
        format!("aws sns subscribe --topic-arn {topic} --protocol email --notification-endpoint WHO@EXAMPLE.COM");
    let (what, change) = match found {
        Some(Subscribers { confirmed: 1.., .. }) => return None,
        Some(Subscribers { pending: 0, .. }) => (format!("{topic} has no subscriber"), subscribe),
        Some(Subscribers { pending, .. }) => (
            format!("{pending} asked to be told by {topic}, and nobody has confirmed"),
            format!("the link in the mail that SNS has sent; to have it sent again: {subscribe}"),
        ),
        None => (format!("there is no topic {topic}"), "REVEILLE_ALERT_TOPIC_ARN: the topic that is there".to_owned()),
    };
    let costs = "no message reaches anybody: not the hours, not the budget, not a node that cannot be stopped";
    Some(Finding::new(what, costs, change))
}

/// What runs, or may run, without a price.
pub(super) async fn prices(case: &Case<'_>, looker: &mut Looker<'_>) -> Check {
    let config = case.config();
    let of_nodes = case.alive().filter_map(|seen| seen.instance_type.as_ref());
    let of_pools = config.pools.values().flat_map(|pool| &pool.policy.types);
    let kinds: BTreeSet<&InstanceType> = of_nodes.chain(of_pools).collect();
    let unpriced = kinds.into_iter().filter(|kind| config.prices.hour(kind).is_none());
    let mut items: BTreeSet<String> = unpriced.map(|kind| format!("instance type {kind}")).collect();
    let month = Month::of(case.session.now);
    let mut check = Check::new("prices");
    match looker.fleet(case.config(), month.from, case.session.now).await {
        Ok(fleet) => {
            items.extend(spend(&fleet, month.from, case.session.now, case.session.now, &config.prices).unpriced)
        }
        Err(error) => check.missed(error),
    }
    let region = config.prices.region();
    let finding = |item: &String| {
        // An item in brackets is its name in the table.
        let name = item.split(['(', ')']).nth(1).or_else(|| item.strip_prefix("instance type ")).unwrap_or(item);
        Finding::new(
            format!("no price is known of {item} in {region}"),
            "the estimate is too low by it: thresholds are told late, and the gate closes late",
            format!("REVEILLE_PRICES: {{\"{name}\": \"USD, by its unit\"}}"),
        )
    };
    check.findings.extend(items.iter().map(finding));
    check
}

/// AWS's figures are up to 12 hours late, and are renewed up to three times a day.
const AWS_LAG: TimeDelta = TimeDelta::days(1);
/// So much has to be spent before AWS's zero says anything.
const ENOUGH: Usd = Usd::from_micro(1_000_000);

/// AWS counts nothing for the tag though a dollar was spent a day ago: it is not active for cost allocation.
pub(super) async fn cost_tag(case: &Case<'_>, looker: &mut Looker<'_>) -> Check {
    let Some(budget) = &case.config().budget else {
        let costs = "nobody is told when the month's money goes";
        let change = "REVEILLE_BUDGET: {\"amount\": 200, \"currency\": \"USD\"}";
        return Check::of("cost tag", Ok(vec![Finding::new("no budget is configured", costs, change)]));
    };
    let read = Call::ReadBudget { name: budget.name.clone() };
    let seen = match take_budget(looker.answer_all(&[read]).await.into_iter().next()) {
        Ok(Some(seen)) => seen,
        Ok(None) => return Check::of("cost tag", Ok(vec![no_budget(case, &budget.name)])),
        Err(error) => return Check::not("cost tag", error),
    };
    if seen.actual.is_some_and(|actual| actual > Usd::ZERO) {
        return Check::new("cost tag");
    }
    let month = Month::of(case.session.now);
    let fleet = match looker.fleet(case.config(), month.from, case.session.now).await {
        Ok(fleet) => fleet,
        Err(error) => return Check::not("cost tag", error),
    };
    let until = (case.session.now - AWS_LAG).max(month.from);
    let own = spend(&fleet, month.from, until, case.session.now, &case.config().prices).total();
    if own < ENOUGH {
        let why = format!("AWS shows nothing, and less than {ENOUGH} of this month was spent by yesterday");
        return Check { undecided: vec![why], ..Check::new("cost tag") };
    }
    let finding = Finding::new(
        format!("the AWS budget {} shows nothing spent, and {own} were spent by yesterday", budget.name),
        "AWS's own figure, which confirms the estimate, stays at zero, and its mails never come",
        "aws ce update-cost-allocation-tags-status --cost-allocation-tags-status TagKey=reveille:pool,Status=Active (by the paying account; a day later it counts)",
    );
    Check::of("cost tag", Ok(vec![finding]))
}

/// The guard makes it where it is missing.
fn no_budget(case: &Case<'_>, name: &str) -> Finding {
    let guard = case.full_name("budget-guard");
    Finding::new(
        format!("there is no AWS budget {name}"),
        "AWS's own figure confirms no estimate, and its mails never come",
        format!("{guard} makes it at its next run; the log /aws/lambda/{guard} says why it did not"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The local AWS confirms every subscription, so nobody is pending there.
    #[test]
    fn one_who_has_confirmed_is_enough() {
        let of = |confirmed, pending| judge_subscribers("TOPIC", Some(Subscribers { confirmed, pending }));
        assert_eq!(of(1, 3), None);
        let pending = of(0, 2).expect("a finding");
        assert_eq!(pending.what, "2 asked to be told by TOPIC, and nobody has confirmed");
        assert!(pending.change.contains("the link in the mail"), "{pending:?}");
        assert_eq!(of(0, 0).map(|finding| finding.what).as_deref(), Some("TOPIC has no subscriber"));
    }
}
