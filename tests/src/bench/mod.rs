//! `make bench`: what a wake, a tick and a log batch cost, beside Python and boto3.

mod batch;
mod cold;
mod https;
mod money;
mod row;
mod sides;
mod size;
mod warm;

pub use row::{Row, results, table};

use crate::stage::{Stage, StageResult};
use chrono::TimeDelta;
use sides::Sides;
use std::path::{Path, PathBuf};

/// What is measured, and how often.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The project's folder.
    pub root: PathBuf,
    /// The built zips, `target/lambda`.
    pub package: PathBuf,
    /// Where what is made on the way is left.
    pub folder: PathBuf,
    /// The program that does one piece of work many times, built as the functions are.
    pub counted: PathBuf,
    /// Runs of each side of a comparison.
    pub runs: usize,
}

/// Measures everything; `say` is told how far it is.
///
/// # Errors
/// The package is missing, Python 3.11 is, or a function or its peer did not answer as it should.
pub async fn measure(plan: &Plan, say: &mut dyn FnMut(&str)) -> StageResult<Vec<Row>> {
    std::fs::create_dir_all(&plan.folder)?;
    let mut rows = size::rows(plan)?;
    sides::make_functions(plan)?;
    sides::make_peers(plan)?;
    say("log batch beside bare inflate and Python");
    rows.extend(batch::rows(plan)?);
    let hours_ago = crate::runtime_api::real_now() - TimeDelta::hours(sides::HOURS_BACK);
    let stage = Stage::open(hours_ago).await?;
    let sides = Sides::open(plan, &stage).await?;
    rows.extend(cold::rows(plan, &stage, &sides, say).await?);
    let (warm, counts) = warm::rows(plan, say).await?;
    rows.extend(warm);
    rows.extend(money::rows(&counts));
    Ok(rows)
}

/// Writes the table between its marks.
///
/// # Errors
/// The file or its marks are not there.
pub fn write_into(file: &Path, table: &str) -> StageResult<()> {
    const MARKS: [&str; 2] = ["<!-- table: generated, see make bench -->\n", "<!-- end of the table -->\n"];
    let text = std::fs::read_to_string(file)?;
    let [begins, ends] = MARKS.map(|mark| text.find(mark));
    let (begins, ends) =
        begins.zip(ends).ok_or_else(|| format!("{}: the marks of the table are missing", file.display()))?;
    let kept = text[..begins + MARKS[0].len()].to_owned();
    Ok(std::fs::write(file, kept + "\n" + table + "\n" + &text[ends..])?)
}
