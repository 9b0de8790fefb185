//! The thinnest whole path through the built functions.

use chrono::{DateTime, TimeDelta, Utc};
use reveille_tests::stage::Stage;
use serde_json::Value;

#[tokio::test]
async fn a_sleeping_node_is_woken_by_a_prewarm_and_stopped_when_idle() {
    let now: DateTime<Utc> = "2026-11-30T08:00:00Z".parse().unwrap();
    let stage = Stage::open(now).await.unwrap();
    let node = stage.add_node("gpu-1", "voice", false).await.unwrap();
    let (status, body, run) = stage.prewarm(&Value::Null).await;
    assert_eq!(status, 202, "{body} {run:?}");
    assert_eq!(stage.state(&node).await.unwrap(), "pending");
    for _ in 0..9 {
        stage.pass_with_events(TimeDelta::minutes(5)).await;
        stage.prove_alive(now).await.unwrap();
        let tick = stage.tick().await;
        println!("{:?} {:#?}", tick.result, tick.logs);
        assert!(tick.result.is_ok());
    }
    assert_eq!(stage.state(&node).await.unwrap(), "stopped");
    println!("{:?}", stage.aws.calls().await);
}
