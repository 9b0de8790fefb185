//! What people, nodes and AWS itself do on the local AWS.

use super::Local;
use super::opening::STREAM;
use aws_sdk_cloudwatch::primitives::DateTime as SdkDateTime;
use aws_sdk_cloudwatch::types::{Dimension, MetricDatum};
use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use chrono::TimeDelta;
use reveille::domain::{GateKeeper, Instant};
use reveille::run::{Call, MetricRef};
use reveille_soak::stage::Change;
use serde_json::{Value, json};
use std::sync::Arc;

/// The functions have 30 seconds.
const SLOWEST_SECONDS: i64 = 25;
/// Until somebody forces it.
const HANGS_SECONDS: u32 = 86_400;
/// PutMetricData takes 1000.
const MOST_POINTS: usize = 500;

impl Local {
    pub(super) async fn change_now(&mut self, change: Change) {
        let ec2 = aws_sdk_ec2::Client::new(&self.stage.sdk);
        match change {
            // What EC2 refuses a person is no change.
            Change::Start(node) => drop(ec2.start_instances().instance_ids(node.as_str()).send().await),
            Change::Stop(node) => drop(ec2.stop_instances().instance_ids(node.as_str()).send().await),
            Change::Hold(pool, node, hold) => drop(self.answer(&Call::SetHold { pool, node, hold }).await),
            Change::Gate(pool, gate) => {
                let call = Call::SetGate { pool, by: GateKeeper::Person, gate, at: self.now };
                self.answer(&call).await;
            }
            Change::NoCapacity(node, none) => self.set(&node, json!({"no_capacity": none})).await,
            Change::NoCapacityType(kind, none) => {
                if none {
                    self.full_types.insert(kind);
                } else {
                    self.full_types.remove(&kind);
                }
                self.stage.aws.config(json!({"no_capacity_types": self.full_types})).await;
            }
            Change::RefuseStop(node, code) => {
                // A person's STOP is refused by the protection too, which is the lasting cause that EC2 knows itself.
                let protected = code.as_deref() == Some("OperationNotPermitted");
                self.set(&node, json!({"disable_api_stop": protected})).await;
                self.trouble.refuse_stops(node, code.filter(|_| !protected));
            }
            Change::Hang(node) => {
                self.set(&node, json!({"stopping_seconds": HANGS_SECONDS})).await;
                self.hanging.insert(node);
            }
            Change::FallBack(node, code) => {
                let message = format!("{code}: the start fell back");
                self.set(&node, json!({"falls_back": {"code": code, "message": message}})).await;
            }
            Change::BudgetGone => self.delete_budget().await,
            Change::NoticesGone => self.delete_notices().await,
            Change::Amount(to) => self.give_amount(&to),
            Change::Point(metric, at, value) => self.points.push((metric, at, value)),
            Change::Beat(node, beat) => drop(self.beats.insert(node, beat)),
            Change::Log(group, at, line) => self.lines.push((group, at, line)),
            Change::ClockOff(seconds) => self.off = TimeDelta::seconds(seconds),
            Change::Outage(call, code, lasts) => self.trouble.outage(self.now + TimeDelta::seconds(lasts), call, code),
            Change::Slow(seconds) => self.slow = seconds.min(SLOWEST_SECONDS),
        }
    }

    async fn delete_budget(&self) {
        let config = self.stage.config();
        let Some(budget) = &config.budget else { return };
        let budgets = aws_sdk_budgets::Client::new(&self.stage.sdk);
        // None is there before the guard's first run.
        budgets.delete_budget().account_id(config.account()).budget_name(&budget.name).send().await.ok();
    }

    async fn delete_notices(&self) {
        let config = self.stage.config();
        let Some(budget) = &config.budget else { return };
        let (account, name) = (config.account(), budget.name.as_str());
        let budgets = aws_sdk_budgets::Client::new(&self.stage.sdk);
        let found = budgets.describe_notifications_for_budget().account_id(account).budget_name(name).send().await;
        for notice in found.ok().and_then(|found| found.notifications).unwrap_or_default() {
            let deleted = budgets.delete_notification().account_id(account).budget_name(name).notification(notice);
            deleted.send().await.expect("the local AWS deletes a notification");
        }
    }

    fn give_amount(&mut self, to: &str) {
        let stage = Arc::get_mut(&mut self.stage).expect("no invocation is out");
        let Ok(mut budget) = serde_json::from_str::<Value>(&stage.vars["REVEILLE_BUDGET"]) else { return };
        budget["amount"] = json!(to);
        stage.give_budget(&budget.to_string()).expect("the budget guard is built");
    }

    /// What the nodes have written meanwhile.
    pub(super) async fn flush(&mut self) {
        let points = std::mem::take(&mut self.points);
        let cloudwatch = aws_sdk_cloudwatch::Client::new(&self.stage.sdk);
        for some in points.chunks(MOST_POINTS) {
            let namespace = some.first().map(|(metric, ..)| metric.namespace.clone());
            let data = some.iter().map(datum).collect();
            let sent = cloudwatch.put_metric_data().set_namespace(namespace).set_metric_data(Some(data)).send().await;
            sent.expect("the local AWS takes points");
        }
        for (node, beat) in std::mem::take(&mut self.beats) {
            self.writer.write(&node, &beat).await.expect("the local AWS takes a beat");
        }
        let logs = aws_sdk_cloudwatchlogs::Client::new(&self.stage.sdk);
        for (group, at, line) in std::mem::take(&mut self.lines) {
            let event = InputLogEvent::builder().timestamp(at.timestamp_millis()).message(line).build();
            let put = logs.put_log_events().log_group_name(group).log_stream_name(STREAM);
            put.log_events(event.expect("a whole event")).send().await.expect("the local AWS takes a line");
        }
    }
}

fn datum((metric, at, value): &(MetricRef, Instant, f64)) -> MetricDatum {
    let dimension = |(name, value): (&String, &String)| Dimension::builder().name(name).value(value).build();
    MetricDatum::builder()
        .metric_name(&metric.metric)
        .set_dimensions(Some(metric.dimensions.iter().map(dimension).collect()))
        .timestamp(SdkDateTime::from_millis(at.timestamp_millis()))
        .value(*value)
        .build()
}
