//! The day of `examples/existing-node`.

use super::day::{Day, Signal};
use super::services::Services;
use crate::stage::StageResult;
use chrono::TimeDelta;
use serde_json::Value;

/// Plays it: a job for most of the day, then a call.
pub(super) async fn play(services: Services) -> StageResult<Day> {
    let (balancer, target_group) = balancer(&services)?;
    let mut day = Day::begin(services, Signal::Balancer { balancer, target_group, open: Some(1) }).await?;
    day.tell("a job holds one connection open, and sends no further request");
    day.until(day.at(10, 0)).await?;
    day.tell("a person holds the node by its tag until noon");
    day.hold(day.at(12, 0)).await?;
    day.until(day.at(13, 0)).await?;
    day.take_tags_off().await?;
    day.tell("the load balancer's metrics fail for forty minutes, and AWS shows 60 % of the budget as spent");
    day.silence();
    let account = day.services.wiring.account.clone();
    day.services.aws.bill(&account, "reveille", "120.00", None).await;
    day.until(day.at(13, 40)).await?;
    day.set_open(1);
    day.until(day.at(15, 0)).await?;
    for kind in ["blind", "budget"] {
        let told = day.told(kind).await;
        day.check(&format!("a person is told: {kind}"), told > 0, format!("{told} messages"));
    }
    day.until(day.at(21, 0)).await?;
    day.set_open(0);
    let job_ends = day.now();
    let began = day.from;
    day.check_kept("the job is not cut", began, job_ends);
    let told = day.services.aws.published().await;
    let uptime =
        told.iter().filter(|message| message.attributes.get("kind").is_some_and(|kind| kind == "uptime")).count();
    day.check("more than 20 hours up are told once", uptime == 1, format!("{uptime} messages of {}", told.len()));
    day.until(day.at(22, 0)).await?;
    day.check_sleep("the node sleeps after the job", job_ends);
    day.until(day.at(22, 30)).await?;
    day.tell("somebody opens the app and does not call");
    let (status, _) = day.ask("POST", "/wake", &Value::Null).await?;
    let asked = day.now();
    day.until(asked + TimeDelta::minutes(5)).await?;
    let (ready, _) = day.ask("GET", "/status", &Value::Null).await?;
    day.check(
        "POST /wake wakes the node, and the load balancer tells that it is ready",
        (status, ready) == (202, 200),
        format!("{status}, then {ready}"),
    );
    day.until(asked + TimeDelta::minutes(50)).await?;
    day.check_sleep("an entry without a call holds the node no longer than a request", asked);
    Ok(day)
}

/// The load balancer and its target group as CloudWatch names them, from the functions' own settings.
fn balancer(services: &Services) -> StageResult<(String, String)> {
    let pools: Value = serde_json::from_str(&services.wiring.function("idle-check")?.environment["REVEILLE_POOLS"])?;
    let pool = pools.as_object().and_then(|pools| pools.values().next()).ok_or("no pool")?;
    let named = |name: &str, mark: &str| {
        let value =
            pool["ready"]["dimensions"][name].as_str().ok_or_else(|| format!("no {name} tells what is ready"))?;
        let at = value.find(mark).ok_or_else(|| format!("{value} is no {name}"))?;
        StageResult::Ok(value[at..].to_owned())
    };
    Ok((named("LoadBalancer", "app/")?, named("TargetGroup", "targetgroup/")?))
}
