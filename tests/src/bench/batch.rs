//! The log filter: bytes a second of a batch, beside bare inflate of the same bytes and beside Python.

use super::Plan;
use super::row::{Row, Target};
use super::sides::python;
use crate::stage::StageResult;
use std::path::Path;
use std::process::Command;

const WITHIN_INFLATE: f64 = 1.3;
/// Long enough for a clock, short enough to alternate often.
const TIMES: u32 = 5;

pub(super) fn rows(plan: &Plan) -> StageResult<Vec<Row>> {
    let file = plan.folder.join("batch.base64");
    std::fs::create_dir_all(&plan.folder)?;
    counted(&plan.counted, "write", 1, &["--file", &file.display().to_string()])?;
    let python = python()?;
    let script = plan.root.join("bench/peers/log_batch.py");
    let works = ["inflate", "first", "last", "absent"];
    let mut speeds: [Vec<f64>; 5] = Default::default();
    for _ in 0..plan.runs {
        for (work, speeds) in works.iter().zip(&mut speeds) {
            speeds.push(counted(&plan.counted, work, TIMES, &[])?);
        }
        let out = Command::new(&python).arg(&script).arg(&file).arg("1").output()?;
        speeds[4].push(speed("log_batch.py", &out)?);
    }
    let [inflate, first, last, absent, peer] = speeds;
    let within = |what: &str, own: &[f64]| {
        Row::beside(what, "MB/s", own, "bare inflate", &inflate).target(Target::Within(WITHIN_INFLATE))
    };
    Ok(vec![
        within("log batch of 10,000 lines, counted line first", &first).note("reading stops there"),
        within("log batch of 10,000 lines, counted line last", &last),
        within("log batch of 10,000 lines, no counted line", &absent),
        Row::beside(
            "log batch of 10,000 lines, no counted line, beside Python",
            "MB/s",
            &absent,
            "Python gzip and re",
            &peer,
        ),
    ])
}

fn counted(program: &Path, work: &str, times: u32, more: &[&str]) -> StageResult<f64> {
    let out = Command::new(program).args(["--work", work, "--times", &times.to_string()]).args(more).output();
    let out = out.map_err(|e| format!("{}: {e}; `make bench` builds it", program.display()))?;
    speed(work, &out)
}

/// `TIMES BYTES NANOSECONDS` as megabytes of inflated text a second.
fn speed(what: &str, out: &std::process::Output) -> StageResult<f64> {
    let text = String::from_utf8_lossy(&out.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [times, bytes, nanoseconds] if out.status.success() => Ok(times * bytes / nanoseconds * 1e3),
        _ => Err(format!("{what}: {text}{}", String::from_utf8_lossy(&out.stderr)).into()),
    }
}
