//! The runs' calls on the wire, for faults that are to strike one kind of call.

use serde_json::{Value, json};

/// How the launcher knows a call: service, action and, where several calls share an action, a piece of its body.
///
/// # Panics
/// No call has this name.
pub fn wire(call: &str) -> Value {
    let (service, action, piece) = match call {
        "describe" => ("ec2", "DescribeInstances", None),
        "readiness" => ("ec2", "DescribeInstanceStatus", None),
        "start" => ("ec2", "StartInstances", None),
        "stop" => ("ec2", "StopInstances", None),
        "resize" => ("ec2", "ModifyInstanceAttribute", None),
        "disks" => ("ec2", "DescribeVolumes", None),
        "activity" => ("cloudwatch", "GetMetricData", None),
        "samples" => ("cloudwatch", "GetMetricData", Some("StatusCheckFailed")),
        "logs" => ("logs", "FilterLogEvents", None),
        "budget" => ("budgets", "DescribeBudget", None),
        "create_budget" => ("budgets", "CreateBudget", None),
        "set_budget_amount" => ("budgets", "UpdateBudget", None),
        "create_notices" => ("budgets", "CreateNotification", None),
        "read_ledger" => ("dynamodb", "BatchGetItem", Some("pool#")),
        "beats" => ("dynamodb", "BatchGetItem", Some("beat#")),
        "history" => ("dynamodb", "Query", None),
        "budget_note" => ("dynamodb", "GetItem", None),
        "note_budget" => ("dynamodb", "UpdateItem", Some("#note = :note")),
        "set_gate" => ("dynamodb", "UpdateItem", Some(r##""#n1":"gate""##)),
        "launches" => ("dynamodb", "UpdateItem", Some("#l0 = :l0")),
        "claim_alert" => ("dynamodb", "PutItem", Some("claimed_at <= :stale")),
        "demand" => ("dynamodb", "UpdateItem", Some(r##""#n2":"demand"##)),
        "give_lease" => ("dynamodb", "UpdateItem", Some("size(")),
        "renew_lease" => ("dynamodb", "UpdateItem", Some(" > :v")),
        "end_lease" => ("dynamodb", "UpdateItem", Some("REMOVE #n0.#n1")),
        "stop_waiting" => ("dynamodb", "UpdateItem", Some("(attribute_exists(#n0))")),
        "hold" => ("dynamodb", "UpdateItem", Some("\"hold#")),
        "claim" => ("dynamodb", "UpdateItem", Some("#claim = :claim")),
        "record" => ("dynamodb", "UpdateItem", Some("#claim.#answer = :answer")),
        "facts" => ("dynamodb", "UpdateItem", Some("#f0")),
        "mark_published" => ("dynamodb", "UpdateItem", Some("published = :yes")),
        "untold" => ("dynamodb", "UpdateItem", Some("#untold")),
        "publish" => ("sns", "Publish", None),
        other => panic!("no call is named {other}"),
    };
    json!({"service": service, "action": action, "match": piece})
}
