//! A function and its peer, under the same Runtime API, with the same variables, on the same local AWS behind TLS.

use super::Plan;
use super::https::Https;
use crate::runtime_api::{Function, FunctionSpec, Invocation};
use crate::stage::{Stage, StageResult};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The local AWS's clock stands behind the real one, which the built functions go by, so that what is begun on it can end.
pub(super) const HOURS_BACK: i64 = 12;

/// Of the log of a run that failed.
const LINES_TOLD: usize = 5;

pub(super) const FUNCTIONS: [&str; 4] = ["wake", "idle-check", "uptime-alarm", "budget-guard"];

/// What makes the functions of both sides.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) https: Https,
    vars: BTreeMap<String, String>,
    functions: PathBuf,
    peers: PathBuf,
}

impl Sides {
    /// # Errors
    /// No port, no roots, or no Python 3.11.
    pub(super) async fn open(plan: &Plan, stage: &Stage) -> StageResult<Self> {
        let https = Https::open(stage.aws.endpoint(), &plan.folder).await?;
        let mut vars = stage.vars.clone();
        // The virtual clock would be one request more, which no deployed function makes.
        vars.remove("REVEILLE_CLOCK_URL");
        vars.remove("AWS_ENDPOINT_URL");
        vars.extend(https.vars());
        Ok(Self { https, vars, functions: plan.folder.join("functions"), peers: plan.folder.join("peers") })
    }

    /// The function as it is deployed.
    pub(super) fn own(&self, name: &str) -> StageResult<Function> {
        self.function(name, self.functions.join(name), None)
    }

    /// The Python handler of the same work.
    pub(super) fn peer(&self, name: &str) -> StageResult<Function> {
        self.function(name, self.peers.join(name), None)
    }

    /// The function where it has one root certificate to read.
    pub(super) fn own_with_one_root(&self, name: &str) -> StageResult<Function> {
        self.function(name, self.functions.join(name), Some(self.https.one_root()))
    }

    fn function(&self, name: &str, binary: PathBuf, more: Option<(String, String)>) -> StageResult<Function> {
        Ok(Function::start(FunctionSpec {
            name: name.to_owned(),
            binary,
            env: self.vars.clone().into_iter().chain(more).collect(),
            timeout: Duration::from_secs(60),
            memory_mb: 128,
            max_instances: 1,
        })?)
    }
}

/// The packaged programs, which a zip's unpacker may have left without the right to be run.
pub(super) fn make_functions(plan: &Plan) -> StageResult<()> {
    let folder = plan.folder.join("functions");
    std::fs::create_dir_all(&folder)?;
    for name in FUNCTIONS {
        let (from, to) = (plan.package.join(name).join("bootstrap"), folder.join(name));
        std::fs::copy(&from, &to).map_err(|e| format!("{}: {e}; `make package` makes it", from.display()))?;
        std::fs::set_permissions(&to, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Programs that start the handlers of `bench/peers/`, with boto3 compiled as Lambda's image has it.
pub(super) fn make_peers(plan: &Plan) -> StageResult<()> {
    let python = python()?;
    let (sources, packages) = (plan.root.join("bench/peers"), plan.root.join(".tools/python"));
    let folder = plan.folder.join("peers");
    std::fs::create_dir_all(&folder)?;
    let compiled = folder.join("compiled");
    for name in ["boto3", "botocore", "dateutil", "jmespath", "s3transfer", "urllib3", "six.py"] {
        copy(&packages.join(name), &compiled.join(name))?;
    }
    for entry in std::fs::read_dir(&sources)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "py") {
            std::fs::copy(&path, compiled.join(path.file_name().unwrap_or_default()))?;
        }
    }
    let status = Command::new(&python)
        .args(["-m", "compileall", "-q"])
        .arg(&compiled)
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .status()?;
    if !status.success() {
        return Err("compiling the peers failed".into());
    }
    for name in FUNCTIONS {
        let program = folder.join(name);
        let module = name.replace('-', "_");
        let text = format!(
            "#!{}\nimport sys\nsys.path.insert(0, {:?})\nimport runtime\nfrom {module} import handle\nruntime.serve(handle)\n",
            python.display(),
            compiled.display().to_string()
        );
        std::fs::write(&program, text)?;
        std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The interpreter itself: a version manager's shim in front of it would be counted too.
pub(super) fn python() -> StageResult<PathBuf> {
    let asked = Command::new("python3.11").args(["-c", "import sys; print(sys.executable)"]).output();
    let out =
        asked.map_err(|e| format!("start python3.11 failed: {e}; the peers are written for Lambda's Python 3.11"))?;
    if !out.status.success() {
        return Err(format!("python3.11: {}", String::from_utf8_lossy(&out.stderr)).into());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        std::fs::create_dir_all(to.parent().unwrap_or(to))?;
        return std::fs::copy(from, to).map(drop);
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The answer, or why there is none, with what was logged.
pub(super) fn answered(side: &str, invocation: &Invocation) -> StageResult<()> {
    match &invocation.result {
        Ok(_) => Ok(()),
        Err(error) => {
            let last = invocation.logs.iter().rev().take(LINES_TOLD).rev().map(String::as_str).collect::<Vec<_>>();
            Err(format!("{side}: {error}\n{}", last.join("\n")).into())
        }
    }
}
