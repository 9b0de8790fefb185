//! Who is told.

use aws_config::SdkConfig;
use aws_sdk_sns::Client;
use reveille::aws::{call_error, names_a_next, whole};
use reveille::error::CallError;

/// What SNS writes in place of an ARN until somebody confirms.
const PENDING: &str = "PendingConfirmation";

/// How many subscribers a topic has, confirmed and not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Subscribers {
    pub(crate) confirmed: usize,
    pub(crate) pending: usize,
}

/// # Errors
/// They cannot be listed.
pub(crate) async fn subscribers(sdk: &SdkConfig, topic: &str) -> Result<Subscribers, CallError> {
    let act = "list the topic's subscribers";
    let mut pages = Client::new(sdk).list_subscriptions_by_topic().topic_arn(topic).into_paginator().send();
    let (mut found, mut more) = (Subscribers::default(), false);
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| call_error(act, &error))?;
        more = names_a_next(page.next_token());
        for one in page.subscriptions() {
            if one.subscription_arn() == Some(PENDING) { found.pending += 1 } else { found.confirmed += 1 }
        }
    }
    whole(act, more)?;
    Ok(found)
}
