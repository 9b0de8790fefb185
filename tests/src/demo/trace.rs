//! The day's log lines: real ones as noise, and the lines of calls and probes. Its calls come from the soak's trace.

use chrono::{DateTime, Utc};
use reveille_soak::trace::unzip;
use std::io;
use std::path::Path;

/// Real lines of a web server's log, none of them a call: what strangers, crawlers and feed readers ask for.
///
/// # Errors
/// The file is missing.
pub fn noise(root: &Path) -> io::Result<Vec<String>> {
    Ok(unzip(&root.join("tests/data/apache_combined_sample.log.gz"))?.lines().map(str::to_owned).collect())
}

/// The access-log line of a call in combined format.
pub fn call_line(at: DateTime<Utc>, status: u16) -> String {
    let at = at.format("%d/%b/%Y:%H:%M:%S +0000");
    format!("192.0.2.77 - - [{at}] \"POST /v1/calls HTTP/1.1\" {status} 312 \"-\" \"voice-app/3.1\"")
}

/// What scanners and health checks leave in the same log.
pub fn probe_lines(at: DateTime<Utc>) -> Vec<String> {
    let at = at.format("%d/%b/%Y:%H:%M:%S +0000");
    [
        format!("10.0.0.9 - - [{at}] \"GET /healthz HTTP/1.1\" 200 2 \"-\" \"ELB-HealthChecker/2.0\""),
        format!("198.51.100.4 - - [{at}] \"GET /.env HTTP/1.1\" 404 153 \"-\" \"curl/8.5.0\""),
        format!("198.51.100.4 - - [{at}] \"POST /v1/calls HTTP/1.1\" 404 153 \"-\" \"Mozilla/5.0\""),
        format!("198.51.100.9 - - [{at}] \"GET /v1/calls HTTP/1.1\" 200 2 \"-\" \"UptimeRobot/2.0\""),
        format!("203.0.113.8 - - [{at}] \"HEAD /v1/calls HTTP/1.1\" 200 0 \"-\" \"Mozilla/5.0\""),
        format!("203.0.113.8 - - [{at}] \"\\x16\\x03\\x01\" 400 0 \"-\" \"-\""),
    ]
    .into()
}
