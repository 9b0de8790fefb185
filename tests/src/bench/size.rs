//! The zips.

use super::Plan;
use super::row::{Row, Target};
use super::sides::FUNCTIONS;
use crate::stage::StageResult;

const MOST_MB: f64 = 3.0;

pub(super) fn rows(plan: &Plan) -> StageResult<Vec<Row>> {
    let row = |name: &str| {
        let zip = plan.package.join(name).join("bootstrap.zip");
        let bytes =
            std::fs::metadata(&zip).map_err(|e| format!("{}: {e}; `make package` makes it", zip.display()))?.len();
        Ok(Row::of(format!("zip of {name}"), bytes as f64 / 1e6, "MB").target(Target::AtMost(MOST_MB)))
    };
    FUNCTIONS.iter().map(|name| row(name)).collect()
}
