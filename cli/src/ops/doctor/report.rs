//! What was found, as people and machines read it.

use super::Check;
use crate::ops::session::Reach;
use crate::ops::{Said, show};
use serde_json::json;

/// All checks.
#[derive(Debug)]
pub(super) struct Report {
    checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(checks: Vec<Check>) -> Self {
        Self { checks }
    }

    /// A finding is a no; where nothing was found and something was not checked, nothing is known.
    pub(super) fn said(&self, reach: &Reach) -> Said {
        let text = if reach.json { show::json(&json!({ "checks": self.checks })) } else { self.text() };
        let code = match (self.findings(), self.not_checked()) {
            (0, 0) => 0,
            (0, _) => 3,
            (_, _) => 1,
        };
        Said { text, code }
    }

    fn findings(&self) -> usize {
        self.checks.iter().map(|check| check.findings.len()).sum()
    }

    fn not_checked(&self) -> usize {
        self.checks.iter().filter(|check| !check.not_checked.is_empty()).count()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            for finding in &check.findings {
                let rows = [(check.check, &finding.what), ("  costs", &finding.costs), ("  change", &finding.change)];
                let rows = rows.into_iter().map(|(name, text)| vec![name.to_owned(), text.clone()]);
                text += &show::pairs(rows.collect());
                text.push('\n');
            }
        }
        for check in &self.checks {
            for why in &check.not_checked {
                text += &show::pairs(vec![vec![check.check.to_owned(), format!("not checked: {why}")]]);
            }
        }
        for check in &self.checks {
            for why in &check.undecided {
                text += &show::pairs(vec![vec![check.check.to_owned(), format!("not told yet: {why}")]]);
            }
        }
        let well: Vec<&str> = self.checks.iter().filter(|check| is_well(check)).map(|check| check.check).collect();
        if !well.is_empty() {
            text += &show::pairs(vec![vec!["well".to_owned(), well.join(", ")]]);
        }
        text += &format!(
            "\n{} checks: {} found something in all, {} not checked\n",
            self.checks.len(),
            self.findings(),
            self.not_checked()
        );
        text
    }
}

fn is_well(check: &Check) -> bool {
    check.findings.is_empty() && check.not_checked.is_empty() && check.undecided.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::doctor::Finding;

    fn reach() -> Reach {
        Reach { name: None, region: None, profile: None, json: false }
    }

    fn check(check: &'static str, findings: usize, not_checked: &[&str]) -> Check {
        let long = "a long sentence of what is wrong here, ".repeat(4);
        Check {
            findings: vec![Finding::new(long, "$0.80 an hour", "aws events enable-rule"); findings],
            not_checked: not_checked.iter().map(|why| (*why).to_owned()).collect(),
            ..Check::new(check)
        }
    }

    #[test]
    fn the_exit_code_says_found_well_or_not_known() {
        let code = |checks| Report::new(checks).said(&reach()).code;
        assert_eq!(code(vec![check("a", 0, &[])]), 0);
        assert_eq!(code(vec![check("a", 0, &["refused"])]), 3);
        assert_eq!(code(vec![check("a", 1, &["refused"])]), 1);
    }

    #[test]
    fn what_nobody_can_tell_yet_is_no_mistake_and_not_well() {
        let tag = Check { undecided: vec!["it is the first of the month".to_owned()], ..Check::new("cost tag") };
        let said = Report::new(vec![tag]).said(&reach());
        assert_eq!(said.code, 0);
        assert!(said.text.contains("cost tag  not told yet: it is the first"), "{}", said.text);
        assert!(!said.text.contains("well"), "{}", said.text);
    }

    #[test]
    fn the_text_fits_a_terminal_and_names_every_check() {
        let report =
            Report::new(vec![check("subscribers", 2, &[]), check("metrics", 0, &["refused"]), check("spot", 0, &[])]);
        let text = report.said(&reach()).text;
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for name in ["subscribers", "not checked: refused", "spot", "3 checks: 2 found something in all, 1 not checked"]
        {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}
