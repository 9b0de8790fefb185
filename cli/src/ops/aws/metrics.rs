//! Which metrics there are.

use aws_config::SdkConfig;
use aws_sdk_cloudwatch::Client;
use reveille::aws::call_error;
use reveille::error::CallError;
use std::collections::BTreeMap;

/// 500 metrics a page.
const MOST_PAGES: usize = 20;

/// The dimensions of every metric of this name that had a point in the last two weeks.
///
/// # Errors
/// They cannot be listed, or are too many.
pub(crate) async fn dimensions(
    sdk: &SdkConfig,
    namespace: &str,
    metric: &str,
) -> Result<Vec<BTreeMap<String, String>>, CallError> {
    let act = format!("list metrics {namespace} {metric}");
    let request = Client::new(sdk).list_metrics().namespace(namespace).metric_name(metric);
    let (mut found, mut token) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let sent = request.clone().set_next_token(token).send().await;
        let answer = sent.map_err(|error| call_error(&act, &error))?;
        for metric in answer.metrics() {
            let pairs = metric.dimensions().iter();
            found.push(pairs.filter_map(|one| Some((one.name()?.to_owned(), one.value()?.to_owned()))).collect());
        }
        token = answer.next_token;
        if token.is_none() {
            return Ok(found);
        }
    }
    Err(CallError::timed_out(act))
}
