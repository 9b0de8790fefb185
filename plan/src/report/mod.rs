//! A comparison as people and programs read it.

mod charts;
mod html;
mod text;

pub use html::{chosen, page};
pub(crate) use text::wrapped;
pub use text::{csv, markdown, table};

/// Why the page cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the page: {0}")]
pub struct PageFault(String);

impl PageFault {
    fn new(fault: impl std::fmt::Display) -> Self {
        Self(fault.to_string())
    }
}

#[cfg(test)]
pub(crate) mod example {
    use crate::answers::{CallPrices, Report};
    use crate::costs::{Address, Fleet};
    use crate::plans::Setup;
    use crate::replay::events::Announced;
    use crate::run::{Comparison, Request};
    use crate::trace::Reading;
    use reveille::domain::{Disk, InstanceType, Usd};
    use reveille::prices::Prices;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Two weeks with a call at nine, at two and at half past two.
    pub(crate) fn comparison(setup: Setup) -> (Comparison, PathBuf) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("reveille-report-{}-{number}", std::process::id()));
        let hours = [9.0, 14.0, 14.5];
        let calls =
            (0..14).flat_map(|day| hours.map(|hour| 1_795_996_800.0 + f64::from(day) * 86_400.0 + hour * 3600.0));
        let lines: String = calls.map(|at| format!("{at},300\n")).collect();
        std::fs::write(&path, format!("t,duration\n{lines}")).unwrap();
        let request = Request {
            trace: path.clone(),
            reading: Reading::default(),
            thin: None,
            seed: 0,
            setup,
            announced: Announced::default(),
            fleet: Fleet {
                kind: InstanceType::new("g6.xlarge").unwrap(),
                nodes: 1,
                disk: Disk { kind: "gp3".to_owned(), gib: 100, iops: 3000, mibps: 125, created_at: None },
                address: Address::None,
                controller: Usd::from_micro(4_100_000),
            },
            prices: Prices::new("us-east-1", BTreeMap::new()),
            calls: CallPrices::default(),
            threads: 2,
        };
        (Comparison::open(request).unwrap(), path)
    }

    pub(crate) fn report() -> Report {
        let (comparison, path) = comparison(Setup { idles: vec![5, 30], ..Setup::default() });
        let report = comparison.run(&mut |_| {}).unwrap();
        std::fs::remove_file(path).unwrap();
        report
    }
}
