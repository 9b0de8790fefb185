//! AWS Budgets: one global endpoint, signed for us-east-1; the SDK knows.

use super::Aws;
use super::errors::{call_error, malformed, names_a_next, whole};
use crate::decide::budget::{Basis, BudgetPolicy};
use crate::domain::{PoolName, Usd};
use crate::error::{CallError, ErrorClass};
use crate::run::{BudgetSeen, Notice, notices};
use aws_sdk_budgets::types::{
    Budget, BudgetType, ComparisonOperator, Notification, NotificationType, NotificationWithSubscribers, Spend,
    Subscriber, SubscriptionType, ThresholdType, TimeUnit,
};
use std::collections::BTreeSet;

/// The cost-allocation tag, as Budgets writes it: `user:` before the key, `$` before the value. It has to be activated in
/// the billing console, else AWS's figure stays at zero.
const TAG_FILTER: &str = "TagKeyValue";

impl Aws {
    /// The budget and its percentage notifications; none where there is no such budget.
    pub(super) async fn read_budget(&self, name: &str) -> Result<Option<BudgetSeen>, CallError> {
        let sent = self.budgets.describe_budget().account_id(&self.account).budget_name(name).send().await;
        let budget = match sent.map_err(|error| call_error("read budget", &error)) {
            Ok(answer) => answer.budget,
            Err(error) if is_missing(&error) => None,
            Err(error) => return Err(error),
        };
        let Some(budget) = budget else { return Ok(None) };
        let limit = budget.budget_limit().ok_or_else(|| malformed("read budget", "it has no fixed amount"))?;
        let spend = budget.calculated_spend();
        Ok(Some(BudgetSeen {
            amount: limit.amount().to_owned(),
            unit: limit.unit().to_owned(),
            actual: spend.and_then(|spend| spend.actual_spend()).and_then(usd),
            forecast: spend.and_then(|spend| spend.forecasted_spend()).and_then(usd),
            notices: self.read_notices(name).await?,
        }))
    }

    async fn read_notices(&self, name: &str) -> Result<BTreeSet<Notice>, CallError> {
        let request = self.budgets.describe_notifications_for_budget().account_id(&self.account).budget_name(name);
        let mut pages = request.into_paginator().send();
        let (mut found, mut more) = (BTreeSet::new(), false);
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| call_error("read the budget's notifications", &error))?;
            more = names_a_next(page.next_token());
            found.extend(page.notifications().iter().filter_map(notice));
        }
        whole("read the budget's notifications", more)?;
        Ok(found)
    }

    /// One that somebody has made meanwhile is as good.
    pub(super) async fn create_budget(
        &self,
        budget: &BudgetPolicy,
        pools: &BTreeSet<PoolName>,
    ) -> Result<(), CallError> {
        let act = "create budget";
        let mut request = self.budgets.create_budget().account_id(&self.account).budget(made(budget, pools)?);
        for one in notices(budget) {
            let with = NotificationWithSubscribers::builder()
                .notification(notification(one)?)
                .set_subscribers(Some(subscribers(budget)?))
                .build();
            request = request.notifications_with_subscribers(with.map_err(|error| malformed(act, error))?);
        }
        unless_it_exists(request.send().await.map(|_| ()).map_err(|error| call_error(act, &error)))
    }

    /// Replaces all but the name; notifications stay.
    pub(super) async fn set_budget_amount(
        &self,
        budget: &BudgetPolicy,
        pools: &BTreeSet<PoolName>,
    ) -> Result<(), CallError> {
        let sent = self.budgets.update_budget().account_id(&self.account).new_budget(made(budget, pools)?).send().await;
        sent.map(|_| ()).map_err(|error| call_error("set the budget's amount", &error))
    }

    pub(super) async fn create_notices(
        &self,
        budget: &BudgetPolicy,
        notices: &BTreeSet<Notice>,
    ) -> Result<(), CallError> {
        for one in notices {
            let sent = self
                .budgets
                .create_notification()
                .account_id(&self.account)
                .budget_name(&budget.name)
                .notification(notification(*one)?)
                .set_subscribers(Some(subscribers(budget)?))
                .send()
                .await;
            unless_it_exists(sent.map(|_| ()).map_err(|error| call_error("create a budget notification", &error)))?;
        }
        Ok(())
    }
}

fn is_missing(error: &CallError) -> bool {
    error.code == "NotFoundException" && error.class == ErrorClass::NotFound
}

fn unless_it_exists(made: Result<(), CallError>) -> Result<(), CallError> {
    made.or_else(|error| if error.code == "DuplicateRecordException" { Ok(()) } else { Err(error) })
}

/// A monthly cost budget of what carries the pools' tags.
#[expect(
    deprecated,
    reason = "how the newer FilterExpression writes a user's tag key is not documented; this form is seen at work"
)]
fn made(budget: &BudgetPolicy, pools: &BTreeSet<PoolName>) -> Result<Budget, CallError> {
    let act = "describe the wanted budget";
    let limit = Spend::builder().amount(budget.amount.plain()).unit("USD").build();
    let tags = pools.iter().map(|pool| format!("user:reveille:pool${pool}")).collect();
    Budget::builder()
        .budget_name(&budget.name)
        .budget_type(BudgetType::Cost)
        .time_unit(TimeUnit::Monthly)
        .budget_limit(limit.map_err(|error| malformed(act, error))?)
        .cost_filters(TAG_FILTER, tags)
        .build()
        .map_err(|error| malformed(act, error))
}

fn notification(notice: Notice) -> Result<Notification, CallError> {
    let kind = match notice.basis {
        Basis::Actual => NotificationType::Actual,
        Basis::Forecast => NotificationType::Forecasted,
    };
    Notification::builder()
        .notification_type(kind)
        .comparison_operator(ComparisonOperator::GreaterThan)
        .threshold(f64::from(notice.percent))
        .threshold_type(ThresholdType::Percentage)
        .build()
        .map_err(|error| malformed("describe a budget notification", error))
}

/// Mail only: SNS messages would come a second time, hours late.
fn subscribers(budget: &BudgetPolicy) -> Result<Vec<Subscriber>, CallError> {
    let subscriber = |mail: &String| {
        let made = Subscriber::builder().subscription_type(SubscriptionType::Email).address(mail).build();
        made.map_err(|error| malformed("describe a budget subscriber", error))
    };
    budget.mail.iter().map(subscriber).collect()
}

/// One of the kind that is made here; others are a person's and left alone.
fn notice(notification: &Notification) -> Option<Notice> {
    let kind = notification.notification_type();
    let forecast = (*kind == NotificationType::Forecasted).then_some(Basis::Forecast);
    let basis = (*kind == NotificationType::Actual).then_some(Basis::Actual).or(forecast)?;
    let percentage = matches!(notification.threshold_type(), None | Some(ThresholdType::Percentage));
    let over = *notification.comparison_operator() == ComparisonOperator::GreaterThan;
    let threshold = notification.threshold();
    let whole = (threshold.fract() == 0.0 && (1.0..=1000.0).contains(&threshold)).then_some(threshold as u32)?;
    (percentage && over).then_some(Notice { basis, percent: whole })
}

/// A figure in dollars; one in another currency is none.
fn usd(spend: &Spend) -> Option<Usd> {
    // AWS writes more decimals than a micro-dollar has; what is behind them is nothing.
    let amount = spend.amount();
    let cut = amount.split_once('.').map_or(amount.len(), |(whole, part)| whole.len() + 1 + part.len().min(6));
    Some(spend.unit()).filter(|unit| *unit == "USD").and_then(|_| Usd::parse(amount.get(..cut)?).ok())
}
