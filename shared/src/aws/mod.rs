//! Carries out calls over the AWS SDK. SDK types end in this folder; `errors.rs` maps service codes to classes.

mod beat;
mod budgets;
mod clock;
mod cloudwatch;
mod controller;
mod deadline;
mod demand;
mod ec2;
mod errors;
mod expression;
mod item;
mod lambda;
mod ledger;
mod logs;
mod rights;
mod sns;

pub use beat::BeatWriter;
pub use clock::{Clock, ClockFault};
pub use controller::Controller;
pub use errors::{call_error, names_a_next, whole};

use crate::config::Config;
use crate::run::{Answer, Call};
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_sdk_ec2::config::SharedHttpClient;
use aws_smithy_http_client::tls;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant as Moment;

/// The SDK has no time-outs of its own (field case 43). One attempt, then a whole operation with its retries; what bounds the
/// sum of them is in `deadline.rs`.
const CONNECT: Duration = Duration::from_secs(2);
const ATTEMPT: Duration = Duration::from_secs(4);
const OPERATION: Duration = Duration::from_secs(9);

/// The executor over AWS.
#[derive(Debug, Clone)]
pub struct Aws {
    ec2: aws_sdk_ec2::Client,
    cloudwatch: aws_sdk_cloudwatch::Client,
    logs: aws_sdk_cloudwatchlogs::Client,
    budgets: aws_sdk_budgets::Client,
    dynamodb: aws_sdk_dynamodb::Client,
    sns: aws_sdk_sns::Client,
    table: String,
    topic_arn: String,
    account: String,
}

impl Aws {
    /// Clients from the function's environment: credentials, region and, in tests, the endpoint.
    pub fn from_vars(vars: &BTreeMap<String, String>, config: &Config) -> Self {
        Self::with(&lambda::sdk_config(vars), config)
    }

    /// Clients from an SDK configuration.
    pub fn with(sdk: &SdkConfig, config: &Config) -> Self {
        Self {
            ec2: aws_sdk_ec2::Client::new(sdk),
            cloudwatch: aws_sdk_cloudwatch::Client::new(sdk),
            logs: aws_sdk_cloudwatchlogs::Client::new(sdk),
            budgets: aws_sdk_budgets::Client::new(sdk),
            dynamodb: aws_sdk_dynamodb::Client::new(sdk),
            sns: aws_sdk_sns::Client::new(sdk),
            table: config.table.clone(),
            topic_arn: config.topic_arn.clone(),
            account: config.account().to_owned(),
        }
    }

    /// Carries out one call. What takes many requests, as reading logs, gives what it has when the time is over.
    pub async fn answer(&self, call: &Call, until: Moment) -> Answer {
        match call {
            Call::DescribeNodes { pools } => Answer::Nodes(ec2::describe(&self.ec2, pools.as_ref()).await),
            Call::ReadReadiness { nodes } => Answer::Readiness(ec2::readiness(&self.ec2, nodes).await),
            Call::Start { node } => Answer::Start(ec2::start(&self.ec2, node).await),
            Call::Stop { node, force } => Answer::Stop(ec2::stop(&self.ec2, node, *force).await),
            Call::ReadActivity { metrics, from, to } => {
                Answer::Activity(cloudwatch::activity(&self.cloudwatch, metrics, *from, *to).await)
            }
            Call::ReadLedger { pools } => Answer::Ledger(self.read_ledger(pools).await),
            Call::RecordDemand { pool, node, wake, cap, waiting } => {
                Answer::Demand(self.record_demand(pool, node.as_ref(), wake, cap.as_ref(), waiting).await)
            }
            Call::GiveLease { pool, node, id, lease, ground } => {
                Answer::Lease(self.give_lease(pool, node, id, lease, ground).await)
            }
            Call::RenewLease { pool, node, id, lease } => Answer::Lease(self.renew_lease(pool, node, id, lease).await),
            Call::EndLease { pool, node, id, by, at } => Answer::Lease(self.end_lease(pool, node, id, by, *at).await),
            Call::StopWaiting { pool, id } => Answer::Recorded(self.stop_waiting(pool, id).await),
            Call::ReadBeats { nodes } => Answer::Beats(self.read_beats(nodes).await),
            Call::SetHold { pool, node, hold } => Answer::HoldSet(self.set_hold(pool, node, hold.as_ref()).await),
            Call::Claim { pool, node, permit, leased, claim } => {
                Answer::Claim(self.claim(pool, node, *permit, *leased, claim).await)
            }
            Call::RecordAnswer { pool, node, run, answer, fault } => {
                Answer::Recorded(self.record_answer(pool, node, run, answer, fault.as_ref()).await)
            }
            Call::WriteFacts { pool, facts } => Answer::Recorded(self.write_facts(pool, facts).await),
            Call::ClaimAlert { key, at } => Answer::AlertClaim(self.claim_alert(key, *at).await),
            Call::MarkPublished { key } => Answer::Recorded(self.mark_published(key).await),
            Call::KeepUntold { pool, key, text } => {
                Answer::Recorded(self.keep_untold(pool, key, text.as_deref()).await)
            }
            Call::ReadLogs { sources, from, to } => {
                Answer::Logs(Ok(logs::activity(&self.logs, sources, *from, *to, until).await))
            }
            Call::ReadHistory { pools, from } => Answer::History(self.read_history(pools, *from).await),
            Call::ReadSamples { nodes, from, to } => {
                Answer::Samples(cloudwatch::samples(&self.cloudwatch, nodes, *from, *to).await)
            }
            Call::ReadDisks { nodes } => Answer::Disks(ec2::disks(&self.ec2, nodes).await),
            Call::Resize { node, to } => Answer::Resized(ec2::resize(&self.ec2, node, to).await),
            Call::ReadBudget { name } => Answer::Budget(self.read_budget(name).await),
            Call::CreateBudget { budget, pools } => Answer::Recorded(self.create_budget(budget, pools).await),
            Call::SetBudgetAmount { budget, pools, note } => {
                let set = self.set_budget_amount(budget, pools).await;
                Answer::Recorded(if set.is_ok() { self.note_budget(&budget.name, note).await } else { set })
            }
            Call::CreateNotices { budget, notices } => Answer::Recorded(self.create_notices(budget, notices).await),
            Call::ReadBudgetNote { name } => Answer::BudgetNote(self.read_budget_note(name).await),
            Call::NoteBudget { name, note } => Answer::Recorded(self.note_budget(name, note).await),
            Call::SetGate { pool, by, gate, at } => Answer::GateSet(self.set_gate(pool, *by, gate.as_ref(), *at).await),
            Call::NoteLaunches { pool, ended, newest } => {
                Answer::Recorded(self.note_launches(pool, ended, newest).await)
            }
            Call::Publish { alert } => Answer::Published(sns::publish(&self.sns, &self.topic_arn, alert).await),
        }
    }
}

/// The SDK configuration of every client outside of Lambda.
pub async fn sdk_config() -> SdkConfig {
    sdk_loader().load().await
}

/// What it is loaded with: ring, time-outs, three attempts (START and STOP have one).
pub fn sdk_loader() -> ConfigLoader {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        .timeout_config(time_outs())
        .retry_config(retries())
}

fn http_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https()
}

fn time_outs() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .read_timeout(ATTEMPT)
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(OPERATION)
        .build()
}

fn retries() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(100))
}
