"""What an apply has made, read back through the AWS's own calls: wiring.py ENDPOINT REGION PACKAGE OUT > wiring.json

PACKAGE is the folder of the zips. Each function's zip is found by the hash that Lambda shows, and unpacked below OUT: what is
run later is what was deployed."""

import base64
import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

SETTINGS = Config(retries={"max_attempts": 1})


def absent_is_none(call: Any, **arguments: Any) -> dict[str, Any] | None:
    try:
        return call(**arguments)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("ResourceNotFoundException", "NoSuchEntity"):
            return None
        raise


def pages(client: Any, operation: str, key: str, **arguments: Any) -> list[Any]:
    if not client.can_paginate(operation):
        return getattr(client, operation)(**arguments)[key]
    return [item for page in client.get_paginator(operation).paginate(**arguments) for item in page[key]]


def unpacked(package: Path, out: Path, name: str, sha256: str) -> str:
    """The program in the zip of this hash."""
    for path in sorted(package.glob("*/bootstrap.zip")):
        if base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode() == sha256:
            folder = out / name
            folder.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(path) as archive:
                archive.extract("bootstrap", folder)
            (folder / "bootstrap").chmod(0o755)
            return str((folder / "bootstrap").resolve())
    raise SystemExit(f"wiring: no zip in {package} has the hash of {name}: {sha256}")


def functions(client: Any, package: Path, out: Path) -> list[dict[str, Any]]:
    made = []
    for function in pages(client("lambda"), "list_functions", "Functions"):
        name = function["FunctionName"]
        calls = client("lambda")
        policy = absent_is_none(calls.get_policy, FunctionName=name)
        invoke = absent_is_none(calls.get_function_event_invoke_config, FunctionName=name)
        url = absent_is_none(calls.get_function_url_config, FunctionName=name)
        made.append({
            "name": name,
            "arn": function["FunctionArn"],
            "role": function["Role"].split("/")[-1],
            "runtime": function["Runtime"],
            "architectures": function["Architectures"],
            "timeout_seconds": function["Timeout"],
            "memory_mb": function["MemorySize"],
            "environment": function.get("Environment", {}).get("Variables", {}),
            "log_group": function.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{name}"),
            "binary": unpacked(package, out, name, function["CodeSha256"]),
            "policy": json.loads(policy["Policy"])["Statement"] if policy else [],
            "invoke": invoke and {
                "retries": invoke.get("MaximumRetryAttempts", 2),
                "max_age_seconds": invoke.get("MaximumEventAgeInSeconds", 21600),
                "on_failure": invoke.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"),
            },
            "url": url and {"url": url["FunctionUrl"], "auth": url["AuthType"], "cors": url.get("Cors")},
        })
    return made


def rules(client: Any) -> list[dict[str, Any]]:
    events = client("events")
    return [
        {
            "name": rule["Name"],
            "arn": rule["Arn"],
            "enabled": rule["State"] == "ENABLED",
            "schedule": rule.get("ScheduleExpression"),
            "pattern": rule.get("EventPattern"),
            "targets": [
                {"arn": target["Arn"], "input": target.get("Input"), "retry": target.get("RetryPolicy")}
                for target in events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
            ],
        }
        for rule in events.list_rules()["Rules"]
    ]


def subscriptions(client: Any) -> list[dict[str, Any]]:
    logs = client("logs")
    groups = [group["logGroupName"] for group in pages(logs, "describe_log_groups", "logGroups")]
    return [
        {
            "name": one["filterName"],
            "group": group,
            "pattern": one["filterPattern"],
            "destination": one["destinationArn"],
        }
        for group in groups
        for one in logs.describe_subscription_filters(logGroupName=group)["subscriptionFilters"]
    ]


def alarms(client: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": alarm["AlarmName"],
            "namespace": alarm["Namespace"],
            "metric": alarm["MetricName"],
            "dimensions": {one["Name"]: one["Value"] for one in alarm.get("Dimensions", [])},
            "statistic": alarm["Statistic"],
            "period_seconds": alarm["Period"],
            "periods": alarm["EvaluationPeriods"],
            "comparison": alarm["ComparisonOperator"],
            "threshold": alarm["Threshold"],
            "missing": alarm.get("TreatMissingData", "missing"),
            "actions": alarm.get("AlarmActions", []),
        }
        for alarm in pages(client("cloudwatch"), "describe_alarms", "MetricAlarms")
    ]


def nodes(client: Any) -> list[dict[str, Any]]:
    ec2 = client("ec2")
    made = []
    for reservation in pages(ec2, "describe_instances", "Reservations"):
        for instance in reservation["Instances"]:
            if instance["State"]["Name"] == "terminated":
                continue
            attribute = ec2.describe_instance_attribute(InstanceId=instance["InstanceId"], Attribute="userData")
            data = attribute.get("UserData", {}).get("Value")
            profile = instance.get("IamInstanceProfile", {}).get("Arn")
            made.append({
                "id": instance["InstanceId"],
                "type": instance["InstanceType"],
                "tags": {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])},
                "profile": profile and profile.split("/")[-1],
                "role": profile and role_of(client, profile.split("/")[-1]),
                "user_data": data and base64.b64decode(data).decode(),
            })
    return made


def role_of(client: Any, profile: str) -> str:
    return client("iam").get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"][0]["RoleName"]


def topics(client: Any) -> list[dict[str, Any]]:
    sns = client("sns")
    made = []
    for topic in pages(sns, "list_topics", "Topics"):
        attributes = sns.get_topic_attributes(TopicArn=topic["TopicArn"])["Attributes"]
        made.append({
            "arn": topic["TopicArn"],
            "policy": json.loads(unquote(attributes["Policy"]))["Statement"],
            "key": attributes.get("KmsMasterKeyId"),
        })
    return made


def dashboards(client: Any) -> list[Any]:
    cloudwatch = client("cloudwatch")
    names = [entry["DashboardName"] for entry in pages(cloudwatch, "list_dashboards", "DashboardEntries")]
    return [json.loads(cloudwatch.get_dashboard(DashboardName=name)["DashboardBody"]) for name in names]


def queues(client: Any) -> dict[str, str]:
    sqs = client("sqs")
    urls = sqs.list_queues().get("QueueUrls", [])
    arn = lambda url: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]  # noqa: E731
    return {arn(url): url for url in urls}


def read(endpoint: str, region: str, package: Path, out: Path) -> dict[str, Any]:
    session = boto3.Session(aws_access_key_id="reader", aws_secret_access_key="reader", region_name=region)
    client = lambda service: session.client(service, endpoint_url=endpoint, config=SETTINGS)  # noqa: E731
    return {
        "region": region,
        "account": client("sts").get_caller_identity()["Account"],
        "functions": functions(client, package, out),
        "rules": rules(client),
        "subscriptions": subscriptions(client),
        "alarms": alarms(client),
        "dashboards": dashboards(client),
        "nodes": nodes(client),
        "topics": topics(client),
        "queues": queues(client),
    }


if __name__ == "__main__":
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    endpoint, region, package, out = sys.argv[1:]
    json.dump(read(endpoint, region, Path(package), Path(out)), sys.stdout, indent=1)
