//! Plays a node that was made: its engine and nginx's counts on loopback, and the built agent, run each minute with the variables
//! that the node's first boot writes, under the node's own role.

use super::services::node_key;
use super::wiring::{NodeMade, Wiring};
use crate::runtime_api::LocalServer;
use crate::stage::{StageResult, binary};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::process::Command;

/// From `running` until the model is loaded.
const LOADS: TimeDelta = TimeDelta::seconds(40);
const ENV_FILE: &str = "/etc/reveille/beat.env";

#[derive(Debug, Default)]
struct Face {
    ready: AtomicBool,
    open: AtomicU32,
}

/// A node at work.
#[derive(Debug)]
pub(super) struct Node {
    /// Its id.
    pub id: String,
    vars: BTreeMap<String, String>,
    folder: PathBuf,
    face: Arc<Face>,
    running_since: Option<DateTime<Utc>>,
    _server: LocalServer,
}

impl Node {
    /// Sets up what the agent will see; `since` where the node runs already.
    ///
    /// # Errors
    /// The node's user data has no file for the agent, or a port cannot be had.
    pub(super) async fn new(
        made: &NodeMade,
        wiring: &Wiring,
        endpoint: &str,
        out: &Path,
        since: Option<DateTime<Utc>>,
    ) -> StageResult<Self> {
        let face = Arc::new(Face::default());
        let router = Router::new()
            .route("/ready", get(ready))
            .route("/connections", get(connections))
            .with_state(Arc::clone(&face));
        let server = LocalServer::start(router, 0).await?;
        let folder = out.join(&made.id);
        fs::create_dir_all(&folder)?;
        let mut vars = made.env_file(ENV_FILE)?;
        // Only where it looks is moved: the ports and files of this machine stand for the node's.
        for (name, path) in [("REVEILLE_BEAT_READY_URL", "/ready"), ("REVEILLE_BEAT_OPEN_URL", "/connections")] {
            let made = vars.get(name).ok_or_else(|| format!("{ENV_FILE} does not set {name}"))?;
            if !made.ends_with(path) {
                return Err(format!("{name} asks for another page than nginx has: {made}").into());
            }
            vars.insert(name.to_owned(), format!("http://{}{path}", server.address()));
        }
        let file = |name: &str| folder.join(name).display().to_string();
        for (name, value) in [
            ("REVEILLE_BEAT_LOG", file("access.log")),
            ("REVEILLE_BEAT_STATE", file("state.json")),
            ("REVEILLE_BEAT_NODE", made.id.clone()),
            ("REVEILLE_BEAT_FAST_SECONDS", "1".to_owned()),
            ("REVEILLE_BEAT_NVIDIA_SMI", "/no/such/nvidia-smi".to_owned()),
            ("REVEILLE_CLOCK_URL", format!("{endpoint}/local-aws/clock")),
            ("AWS_ENDPOINT_URL", endpoint.to_owned()),
            ("AWS_REGION", wiring.region.clone()),
            ("AWS_ACCESS_KEY_ID", node_key(&made.id)),
            ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ] {
            vars.insert(name.to_owned(), value);
        }
        fs::write(folder.join("access.log"), "")?;
        Ok(Self { id: made.id.clone(), vars, folder, face, running_since: since, _server: server })
    }

    /// EC2 says that the node's state is another now.
    pub(super) fn state(&mut self, state: &str, at: DateTime<Utc>) {
        self.running_since = (state == "running").then_some(at);
        if self.running_since.is_none() {
            // A reboot empties /run; absent where no beat was written.
            fs::remove_file(self.folder.join("state.json")).ok();
        }
    }

    /// Whether the model is loaded.
    pub(super) fn is_ready(&self, now: DateTime<Utc>) -> bool {
        self.running_since.is_some_and(|since| now >= since + LOADS)
    }

    /// So many calls are open.
    pub(super) fn set_open(&self, calls: u32) {
        self.face.open.store(calls, Ordering::Relaxed);
    }

    /// What the timer starts each minute. Before the model is loaded nothing is run: what the agent says then is tested elsewhere,
    /// and it would look on for 50 real seconds.
    ///
    /// # Errors
    /// The agent could not write its beat.
    pub(super) async fn beat(&self, now: DateTime<Utc>) -> StageResult<()> {
        let ready = self.is_ready(now);
        self.face.ready.store(ready, Ordering::Relaxed);
        if !ready {
            return Ok(());
        }
        let ran = Command::new(binary("reveille-beat")?)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(&self.vars)
            .stdin(Stdio::null())
            .output()
            .await?;
        if ran.status.success() {
            return Ok(());
        }
        Err(format!("the beat of {} failed: {}", self.id, String::from_utf8_lossy(&ran.stderr)).into())
    }
}

async fn ready(State(face): State<Arc<Face>>) -> StatusCode {
    if face.ready.load(Ordering::Relaxed) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// nginx's stub_status; the agent's own request is one of those that are written to.
async fn connections(State(face): State<Arc<Face>>) -> String {
    let open = face.open.load(Ordering::Relaxed);
    let writing = open + 1;
    format!(
        "Active connections: {writing} \nserver accepts handled requests\n 9 9 9 \nReading: 0 Writing: {writing} Waiting: 0 \n"
    )
}
