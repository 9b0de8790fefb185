//! Is what was configured what was meant?

use super::{Case, Check, Finding};
use reveille::config::ConfigFaults;

/// Settings that no function starts with; without them nothing else can be checked.
pub(super) fn faults(faults: &ConfigFaults) -> Check {
    let finding = |fault: &String| {
        let name = fault.split([':', '.']).next().unwrap_or_default();
        Finding::new(
            fault,
            "every function ends at its start: nothing is woken, nothing is stopped, and what runs is paid for",
            format!("{name} of the functions, by its Terraform variable; docs/configuration.md has its range"),
        )
    };
    let not_checked = vec!["all other checks need valid settings".to_owned()];
    Check { findings: faults.0.iter().map(finding).collect(), not_checked, ..Check::new("settings") }
}

/// A pool whose calls nobody can see.
pub(super) fn calls(case: &Case<'_>) -> Check {
    let blind = case.config().pools.iter().filter(|(_, pool)| !pool.calls_observed);
    let idle = case.config().policy.idle.num_minutes();
    let finding = |name| {
        Finding::new(
            format!("pool {name} has \"calls\": \"unobserved\""),
            format!("a call longer than {idle} min, the idle time, is cut"),
            format!("REVEILLE_POOLS.{name}: an `open` signal, the `beat`, or \"calls\": \"leased\""),
        )
    };
    Check::of("observed calls", Ok(blind.map(|(name, _)| finding(name)).collect()))
}
