//! Who asks.

use aws_config::SdkConfig;
use reveille::aws::call_error;
use reveille::error::CallError;

/// The name of the role or user, without account and session. Nobody needs a right to ask it of himself.
///
/// # Errors
/// AWS does not know these credentials, or was not reached.
pub(crate) async fn whoami(sdk: &SdkConfig) -> Result<String, CallError> {
    let sent = aws_sdk_sts::Client::new(sdk).get_caller_identity().send().await;
    let identity = sent.map_err(|error| call_error("ask who this is", &error))?;
    Ok(name_in(identity.arn().unwrap_or_default()))
}

/// `arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION`, `arn:aws:iam::ACCOUNT:user/PATH/USER` or `arn:aws:iam::ACCOUNT:root`.
fn name_in(arn: &str) -> String {
    let resource = arn.splitn(6, ':').nth(5).unwrap_or_default();
    let parts: Vec<&str> = resource.split('/').collect();
    let name = match parts[..] {
        ["assumed-role", role, ..] => role,
        [.., last] => last,
        [] => "",
    };
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "+=,.@_-".contains(*c)).take(64).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_known_by_the_role_or_user() {
        let rows = [
            (
                "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Ops_0a1b/anna@example.com",
                "AWSReservedSSO_Ops_0a1b",
            ),
            ("arn:aws:iam::123456789012:user/people/anna", "anna"),
            ("arn:aws:iam::123456789012:root", "root"),
            ("arn:aws:sts::123456789012:federated-user/anna", "anna"),
            ("nonsense", "unknown"),
            ("", "unknown"),
        ];
        for (arn, name) in rows {
            assert_eq!(name_in(arn), name, "{arn}");
        }
    }
}
