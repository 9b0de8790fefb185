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

impl Subscribers {
    /// Whoever confirmed has an ARN; one who unsubscribed is still listed for a while, as `Deleted`.
    fn count(&mut self, arn: &str) {
        self.confirmed += usize::from(arn.starts_with("arn:"));
        self.pending += usize::from(arn == PENDING);
    }
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
            found.count(one.subscription_arn().unwrap_or_default());
        }
    }
    whole(act, more)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The local AWS confirms at once and forgets at once.
    #[test]
    fn one_who_unsubscribed_is_told_nothing() {
        let mut found = Subscribers::default();
        for arn in ["Deleted", PENDING, "", "arn:aws:sns:us-east-1:123456789012:alerts:0a1b"] {
            found.count(arn);
        }
        assert_eq!(found, Subscribers { confirmed: 1, pending: 1 });
    }
}
