"""All that an account holds, as the public API shows it: for a comparison of before and after."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

# What changes by itself, or by use: neither tells that something was left or taken.
VOLATILE = {
    "AttachTime", "CreateDate", "CreationTime", "LastModified", "LastModifiedTime", "LastUpdatedTime", "LaunchTime",
    "PublicDnsName", "PublicIp", "PublicIpAddress", "RevisionId", "RoleLastUsed", "State", "StateReason",
    "StateTransitionReason", "Status", "StatusTransitionReason", "creationTime", "storedBytes",
    "Association", "CalculatedSpend", "Monitoring", "StateValue", "StateUpdatedTimestamp",
}  # fmt: skip

# Under which kind it shows a type of Terraform's: a type that is not named here would be left unseen.
LISTED = {
    "aws_budgets_budget": "budget",
    "aws_cloudformation_stack": "stack",
    "aws_cloudwatch_dashboard": "dashboard",
    "aws_cloudwatch_event_rule": "rule",
    "aws_cloudwatch_event_target": "target",
    "aws_cloudwatch_log_group": "log-group",
    "aws_cloudwatch_log_metric_filter": "metric-filter",
    "aws_cloudwatch_log_subscription_filter": "subscription-filter",
    "aws_cloudwatch_metric_alarm": "alarm",
    "aws_dynamodb_table": "table",
    "aws_ec2_tag": "instance",
    "aws_iam_instance_profile": "instance-profile",
    "aws_iam_role": "role",
    "aws_iam_role_policy": "role-policy",
    "aws_iam_role_policy_attachment": "role-attachment",
    "aws_instance": "instance",
    "aws_internet_gateway": "internet-gateway",
    "aws_kms_key": "key",
    "aws_lambda_function": "function",
    "aws_lambda_function_event_invoke_config": "event-invoke-config",
    "aws_lambda_function_url": "function-url",
    "aws_lambda_permission": "function-policy",
    "aws_route": "route-table",
    "aws_route_table": "route-table",
    "aws_route_table_association": "route-table",
    "aws_security_group": "security-group",
    "aws_sns_topic": "topic",
    "aws_sns_topic_policy": "topic",
    "aws_sns_topic_subscription": "subscription",
    "aws_sqs_queue": "queue",
    "aws_subnet": "subnet",
    "aws_vpc": "vpc",
    "aws_vpc_endpoint": "vpc-endpoint",
    "aws_vpc_peering_connection": "peering",
    "aws_vpc_security_group_egress_rule": "security-group-rule",
    "aws_vpc_security_group_ingress_rule": "security-group-rule",
}

Found = dict[str, str]
Client = Callable[[str], Any]


def account(client: Client, number: str) -> Found:
    """Each thing by its kind and name, with what it is."""
    found: Found = {}
    for part in (_compute, _network, _identity, _functions, _events, _logs, _stores, _messages, _watching, _rest):
        for kind, name, what in part(client, number):
            found[f"{kind} {name}"] = json.dumps(_lasting(what), sort_keys=True, default=str)
    return found


def difference(before: Found, after: Found) -> list[str]:
    lines = [f"gone: {name}" for name in before if name not in after]
    lines += [f"left: {name}" for name in after if name not in before]
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            lines.append(f"changed: {name}\n  from {before[name]}\n  to   {after[name]}")
    return sorted(lines)


Things = Iterator[tuple[str, str, Any]]


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(one) for key, one in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return sorted((_lasting(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True, default=str))
    return value


def _all(client: Any, operation: str, key: str, **given: Any) -> Iterator[Any]:
    if client.can_paginate(operation):
        for page in client.get_paginator(operation).paginate(**given):
            yield from page.get(key, [])
    else:
        yield from getattr(client, operation)(**given).get(key, [])


def _compute(client: Client, _number: str) -> Things:
    ec2 = client("ec2")
    for reservation in _all(ec2, "describe_instances", "Reservations"):
        for one in reservation["Instances"]:
            if one["State"]["Name"] not in ("shutting-down", "terminated"):
                yield "instance", one["InstanceId"], one
    for one in _all(ec2, "describe_volumes", "Volumes"):
        yield "volume", one["VolumeId"], one
    for one in _all(ec2, "describe_snapshots", "Snapshots", OwnerIds=["self"]):
        yield "snapshot", one["SnapshotId"], one
    for one in _all(ec2, "describe_images", "Images", Owners=["self"]):
        yield "image", one["ImageId"], one


def _network(client: Client, _number: str) -> Things:
    ec2 = client("ec2")
    lists = {
        "vpc": ("describe_vpcs", "Vpcs", "VpcId"),
        "subnet": ("describe_subnets", "Subnets", "SubnetId"),
        "route-table": ("describe_route_tables", "RouteTables", "RouteTableId"),
        "internet-gateway": ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
        "nat-gateway": ("describe_nat_gateways", "NatGateways", "NatGatewayId"),
        "security-group": ("describe_security_groups", "SecurityGroups", "GroupId"),
        "security-group-rule": ("describe_security_group_rules", "SecurityGroupRules", "SecurityGroupRuleId"),
        "network-acl": ("describe_network_acls", "NetworkAcls", "NetworkAclId"),
        "network-interface": ("describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
        "address": ("describe_addresses", "Addresses", "AllocationId"),
        "dhcp-options": ("describe_dhcp_options", "DhcpOptions", "DhcpOptionsId"),
    }
    for kind, (operation, key, name) in lists.items():
        for one in _all(ec2, operation, key):
            yield kind, one[name], one
    for one in _all(ec2, "describe_vpc_endpoints", "VpcEndpoints"):
        if one["State"] != "deleted":
            yield "vpc-endpoint", one["VpcEndpointId"], one
    for one in _all(ec2, "describe_vpc_peering_connections", "VpcPeeringConnections"):
        if one["Status"]["Code"] != "deleted":
            yield "peering", one["VpcPeeringConnectionId"], one


def _identity(client: Client, _number: str) -> Things:
    iam = client("iam")
    for role in _all(iam, "list_roles", "Roles"):
        name = role["RoleName"]
        yield "role", name, iam.get_role(RoleName=name)["Role"]
        for one in _all(iam, "list_role_policies", "PolicyNames", RoleName=name):
            yield "role-policy", f"{name}/{one}", iam.get_role_policy(RoleName=name, PolicyName=one)["PolicyDocument"]
        for one in _all(iam, "list_attached_role_policies", "AttachedPolicies", RoleName=name):
            yield "role-attachment", f"{name}/{one['PolicyName']}", one
    for one in _all(iam, "list_instance_profiles", "InstanceProfiles"):
        yield "instance-profile", one["InstanceProfileName"], one
    for one in _all(iam, "list_policies", "Policies", Scope="Local"):
        yield "policy", one["PolicyName"], one
    for one in _all(iam, "list_users", "Users"):
        yield "user", one["UserName"], one
    kms = client("kms")
    aliases = [one for one in _all(kms, "list_aliases", "Aliases") if one.get("TargetKeyId")]
    # AWS makes its own at first use, such as aws/ebs, and keeps them.
    own = {one["TargetKeyId"] for one in aliases if one["AliasName"].startswith("alias/aws/")}
    for one in _all(kms, "list_keys", "Keys"):
        if one["KeyId"] in own:
            continue
        shown = kms.describe_key(KeyId=one["KeyId"])["KeyMetadata"]
        # A key is gone when its window is over; until then it can neither be used nor is it paid for.
        if shown["KeyState"] != "PendingDeletion":
            yield "key", one["KeyId"], shown


def _functions(client: Client, _number: str) -> Things:
    lambda_ = client("lambda")
    for one in _all(lambda_, "list_functions", "Functions"):
        name = one["FunctionName"]
        yield "function", name, one
        with contextlib.suppress(lambda_.exceptions.ResourceNotFoundException):
            policy = json.loads(lambda_.get_policy(FunctionName=name)["Policy"])
            yield "function-policy", name, policy["Statement"]
        with contextlib.suppress(lambda_.exceptions.ResourceNotFoundException):
            url = lambda_.get_function_url_config(FunctionName=name)
            yield "function-url", name, {key: url[key] for key in url if key != "ResponseMetadata"}
        for one in _all(lambda_, "list_function_event_invoke_configs", "FunctionEventInvokeConfigs", FunctionName=name):
            yield "event-invoke-config", name, one
    for one in _all(lambda_, "list_event_source_mappings", "EventSourceMappings"):
        yield "event-source-mapping", one["UUID"], one


def _events(client: Client, _number: str) -> Things:
    events = client("events")
    for rule in _all(events, "list_rules", "Rules"):
        yield "rule", rule["Name"], rule
        for one in _all(events, "list_targets_by_rule", "Targets", Rule=rule["Name"]):
            yield "target", f"{rule['Name']}/{one['Id']}", one


def _logs(client: Client, _number: str) -> Things:
    logs = client("logs")
    for group in _all(logs, "describe_log_groups", "logGroups"):
        name = group["logGroupName"]
        yield "log-group", name, group
        for one in _all(logs, "describe_subscription_filters", "subscriptionFilters", logGroupName=name):
            yield "subscription-filter", f"{name}/{one['filterName']}", one
    for one in _all(logs, "describe_metric_filters", "metricFilters"):
        yield "metric-filter", f"{one['logGroupName']}/{one['filterName']}", one


def _stores(client: Client, _number: str) -> Things:
    dynamodb = client("dynamodb")
    for name in _all(dynamodb, "list_tables", "TableNames"):
        shown = dynamodb.describe_table(TableName=name)["Table"]
        # How much it holds is the day's, not Terraform's.
        yield "table", name, {key: one for key, one in shown.items() if key not in ("ItemCount", "TableSizeBytes")}
    for one in client("s3").list_buckets()["Buckets"]:
        yield "bucket", one["Name"], {}
    for one in _all(client("ssm"), "describe_parameters", "Parameters"):
        yield "parameter", one["Name"], one


def _messages(client: Client, _number: str) -> Things:
    sns, sqs = client("sns"), client("sqs")
    for one in _all(sns, "list_topics", "Topics"):
        yield "topic", one["TopicArn"], sns.get_topic_attributes(TopicArn=one["TopicArn"])["Attributes"]
    for one in _all(sns, "list_subscriptions", "Subscriptions"):
        yield "subscription", one["SubscriptionArn"], one
    for url in _all(sqs, "list_queues", "QueueUrls"):
        asked = ["MessageRetentionPeriod", "SqsManagedSseEnabled", "Policy"]
        yield "queue", url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=asked).get("Attributes", {})


def _watching(client: Client, number: str) -> Things:
    cloudwatch, budgets = client("cloudwatch"), client("budgets")
    for key in ("MetricAlarms", "CompositeAlarms"):
        for one in _all(cloudwatch, "describe_alarms", key):
            yield "alarm", one["AlarmName"], one
    for one in _all(cloudwatch, "list_dashboards", "DashboardEntries"):
        yield "dashboard", one["DashboardName"], cloudwatch.get_dashboard(DashboardName=one["DashboardName"])["DashboardBody"]
    for one in _all(budgets, "describe_budgets", "Budgets", AccountId=number):
        name = one["BudgetName"]
        yield "budget", name, one
        told = {"AccountId": number, "BudgetName": name}
        for notice in _all(budgets, "describe_notifications_for_budget", "Notifications", **told):
            asked = {key: notice[key] for key in notice if key != "NotificationState"}
            listed = list(_all(budgets, "describe_subscribers_for_notification", "Subscribers", Notification=asked, **told))
            yield "budget-notification", f"{name}/{asked['NotificationType']}/{asked['Threshold']}", listed


def _rest(client: Client, _number: str) -> Things:
    for one in _all(client("cloudformation"), "list_stacks", "StackSummaries"):
        if one["StackStatus"] != "DELETE_COMPLETE":
            yield "stack", one["StackName"], one
