//! What is on the stage before the day, and what the day's script adds to the calls: a long job, a laboratory, money.

use crate::stage::{LOAD_BALANCER, Stage, StageResult, pool_behind, voice_pools};
use chrono::{DateTime, TimeDelta, Utc};
use reveille::domain::NodeId;
use serde_json::json;

/// The month's amount in the demo.
pub const AMOUNT_USD: i64 = 45;

/// The load balancer of the long job's pool.
pub(super) const BATCH_BALANCER: &str = "app/batch/1123456789abcdef";
/// The load balancer of the laboratory's pool.
pub(super) const LAB_BALANCER: &str = "app/lab/2123456789abcdef";

/// Whose budgets the local AWS keeps.
pub(super) const ACCOUNT: &str = "123456789012";

/// The nodes of the day.
#[derive(Debug, Clone)]
pub struct Nodes {
    /// Serves the calls; asleep at midnight.
    pub voice: NodeId,
    /// Runs a job since the day before.
    pub batch: NodeId,
    /// Is tried out now and then; asleep at midnight.
    pub lab: NodeId,
}

/// Sets the stage for the day that begins at `midnight` (UTC): three pools of one node each, and the budget guard and the
/// uptime alarm at work since the day before.
///
/// # Errors
/// The local AWS does not start, or a function is not built.
pub async fn open(midnight: DateTime<Utc>) -> StageResult<(Stage, Nodes)> {
    let mut pools = voice_pools();
    pools["voice"]["calls"] = serde_json::json!("leased");
    pools["voice"]["calls_per_node"] = serde_json::json!(4);
    pools["batch"] = pool_behind(BATCH_BALANCER);
    pools["lab"] = pool_behind(LAB_BALANCER);
    let budget = json!({"amount": AMOUNT_USD, "currency": "USD", "enforce": "gate", "mail": ["ops@example.com"],
        "units": {"calls": "0.03"}});
    let more = [
        ("REVEILLE_DEFAULT_POOL", "voice"),
        ("REVEILLE_ZONE", "Europe/Berlin"),
        ("REVEILLE_BUDGET", &budget.to_string()),
    ];
    // The job began the morning before: not yet 20 hours of that day, and all of this one.
    let the_day_before = midnight - TimeDelta::hours(19) - TimeDelta::minutes(30);
    let stage = Stage::open_with(the_day_before - TimeDelta::minutes(10), &pools, &more).await?;
    let batch = stage.add_node("gpu-2", "batch", true).await?;
    let voice = stage.add_node("gpu-1", "voice", false).await?;
    let lab = stage.add_node("gpu-3", "lab", false).await?;
    stage.look_at_uptime().await;
    stage.look_at_budget().await;
    stage.aws.set_clock(midnight - TimeDelta::minutes(10)).await;
    for balancer in [LOAD_BALANCER, BATCH_BALANCER, LAB_BALANCER] {
        let points: Vec<_> =
            (0..10).map(|n| ("HealthyHostCount", midnight - TimeDelta::minutes(10 - n), 1.0)).collect();
        stage.put_points_of(balancer, &points).await?;
    }
    stage.look_at_uptime().await;
    stage.aws.set_clock(midnight).await;
    Ok((stage, Nodes { voice, batch, lab }))
}

/// What happens in the laboratory, and in AWS's billing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scene {
    /// EC2 has no machine for the laboratory's node, and somebody opens the laboratory.
    NoCapacity,
    /// There is a machine again; nobody asks a second time.
    CapacityBack,
    /// The laboratory's volume has a key that the starting role may not use, and somebody opens the laboratory.
    KeyRefused,
    /// AWS's figure of the month moves, hours late.
    Billed(&'static str),
}

/// The script of the day, in hours and minutes.
pub(super) fn script(midnight: DateTime<Utc>) -> Vec<(DateTime<Utc>, Scene)> {
    let at = |hour, minute| midnight + TimeDelta::hours(hour) + TimeDelta::minutes(minute);
    vec![
        (at(9, 31), Scene::NoCapacity),
        (at(9, 42), Scene::CapacityBack),
        (at(11, 20), Scene::Billed("8.10")),
        (at(15, 1), Scene::KeyRefused),
        (at(21, 10), Scene::Billed("17.60")),
    ]
}

/// Whether the laboratory's load balancer sends nothing, not even that it is alive.
pub(super) fn lab_is_silent(midnight: DateTime<Utc>, at: DateTime<Utc>) -> bool {
    let minutes = (at - midnight).num_minutes();
    (9 * 60 + 50..10 * 60 + 40).contains(&minutes)
}

/// When the long job ends.
pub(super) fn job_ends(midnight: DateTime<Utc>) -> DateTime<Utc> {
    midnight + TimeDelta::hours(22) + TimeDelta::minutes(30)
}

impl Scene {
    /// Plays it; true where somebody opens the laboratory now.
    pub(super) async fn play(self, stage: &Stage, nodes: &Nodes) -> bool {
        let lab = nodes.lab.as_str();
        match self {
            Self::NoCapacity => stage.aws.config(json!({"instance": lab, "no_capacity": true})).await,
            Self::CapacityBack => stage.aws.config(json!({"instance": lab, "no_capacity": false})).await,
            Self::KeyRefused => {
                let reason = json!({"code": "Client.InternalError", "message": "Client error on launch", "times": 1});
                stage.aws.config(json!({"instance": lab, "falls_back": reason})).await;
            }
            Self::Billed(actual) => stage.aws.bill(ACCOUNT, "reveille", actual, None).await,
        }
        matches!(self, Self::NoCapacity | Self::KeyRefused)
    }

    /// What people read of it.
    pub(super) fn told(self) -> String {
        match self {
            Self::NoCapacity => "opens the laboratory while EC2 has no machine for it".to_owned(),
            Self::CapacityBack => "EC2 has a machine again; nobody asks a second time".to_owned(),
            Self::KeyRefused => "opens the laboratory, whose volume key the role may not use".to_owned(),
            Self::Billed(actual) => format!("AWS's own figure of the month is ${actual} now"),
        }
    }
}
