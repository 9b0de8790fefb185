//! What the tests of this crate share, and the pages and files that have to say what the code says.

use crate::settings::{SETTINGS, Settings, table};
use reveille::domain::Beat;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const BEGIN: &str = "<!-- settings: generated, see make reference -->\n";
const END: &str = "<!-- end of the settings -->\n";

/// A folder of one test; it goes with it.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("reveille-beat-{}-{number}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn node_file(name: &str) -> String {
    fs::read_to_string(root().join("infra/modules/node/files").join(name)).unwrap()
}

/// The variables of an environment file, as systemd reads it: comments, and values that may stand in single quotes.
fn variables(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once('=').unwrap_or_else(|| panic!("{line:?} sets nothing")));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned())).collect()
}

#[test]
fn the_page_s_settings_are_the_code_s_own() {
    let page = fs::read_to_string(root().join("docs/beat.md")).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("docs/beat.md has the mark of the settings' begin");
    let (_, tail) = rest.split_once(END).expect("docs/beat.md has the mark of the settings' end");
    let wanted = format!("{head}{BEGIN}{}{END}{tail}", table());
    #[expect(clippy::disallowed_methods, reason = "a switch of this test, not of the product")]
    let is_update = std::env::var_os("UPDATE").is_some();
    if is_update {
        fs::write(root().join("docs/beat.md"), wanted).unwrap();
    } else {
        assert!(page == wanted, "docs/beat.md does not say what the code says: run `make reference`");
    }
}

#[test]
fn the_example_of_an_environment_is_valid() {
    let example = node_file("beat.env.example");
    Settings::from_vars(&variables(&example)).unwrap();
    let commented: String = example
        .lines()
        .map(|line| line.strip_prefix('#').unwrap_or(line))
        .fold(String::new(), |all, line| if line.starts_with("REVEILLE_") { all + line + "\n" } else { all });
    for name in variables(&commented).keys() {
        assert!(SETTINGS.iter().any(|setting| setting.name == name), "{name}");
    }
}

#[test]
fn the_units_keep_the_state_and_the_devices() {
    let service = node_file("reveille-beat.service");
    let has = |line: &str| service.lines().any(|one| one == line);
    for line in [
        "Type=oneshot",
        "EnvironmentFile=/etc/reveille/beat.env",
        "DynamicUser=yes",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "PrivateTmp=yes",
        "RuntimeDirectory=reveille-beat",
        // Without it each run begins anew, and no silence is ever proved.
        "RuntimeDirectoryPreserve=yes",
        "SupplementaryGroups=adm",
    ] {
        assert!(has(line), "{line}");
    }
    let closes_devices = |line: &str| {
        ["PrivateDevices=", "ProtectClock=", "DevicePolicy=", "DeviceAllow="].iter().any(|name| line.starts_with(name))
    };
    assert!(!service.lines().any(closes_devices), "nvidia-smi needs /dev/nvidia*");
    let state = SETTINGS.iter().find(|setting| setting.name == "REVEILLE_BEAT_STATE").unwrap();
    assert!(state.default.unwrap().starts_with("/run/reveille-beat/"), "the unit's RuntimeDirectory");

    let timer = node_file("reveille-beat.timer");
    for line in ["OnBootSec=5s", "OnUnitActiveSec=60s", "AccuracySec=1s", "WantedBy=timers.target"] {
        assert!(timer.lines().any(|one| one == line), "{line}");
    }
}

#[test]
fn the_policy_allows_one_key_and_demands_that_there_is_one() {
    let policy: Value = serde_json::from_str(&node_file("beat-policy.json")).unwrap();
    let [statement] = policy["Statement"].as_array().unwrap().as_slice() else { panic!("one statement") };
    assert_eq!((&statement["Effect"], &statement["Action"]), (&json!("Allow"), &json!("dynamodb:PutItem")));
    assert_eq!(
        statement["Condition"],
        json!({"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["beat#INSTANCE_ID"]},
               "Null": {"dynamodb:LeadingKeys": "false"}})
    );
}

#[test]
fn a_beat_is_one_write_request_unit() {
    let at = "2026-11-30T10:00:00.123456789Z".parse().unwrap();
    let beat = Beat {
        at,
        ready: true,
        row: u32::MAX,
        ready_since: Some(at),
        open: Some(u32::MAX),
        counted: Some(u32::MAX),
        gpu: Some(100),
        open_at: Some(at),
        used_at: Some(at),
        since: Some(at),
    };
    let item = json!({"pk": format!("beat#{}", "i".repeat(64)), "sk": "-", "beat": beat, "expires_at": i64::MAX});
    assert!(item.to_string().len() < 1024, "{}", item.to_string().len());
}
