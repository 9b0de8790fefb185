"""Subscription and metric filters of CloudWatch Logs as AWS keeps them. Neither passes anything on.

moto refuses to change a subscription of a group that has two, asks for no permission of the function, would run the
function in a container for each event, and keeps a metric filter as often as it was put.
"""

import re
from typing import Any

from moto.awslambda.models import lambda_backends
from moto.logs.exceptions import InvalidParameterException, LimitExceededException, ResourceNotFoundException
from moto.logs.models import LogGroup, LogsBackend, LogStream, SubscriptionFilter

from clock import VirtualClock

SUBSCRIPTIONS_PER_GROUP = 2


def install(clock: VirtualClock) -> None:
    _replace_subscriptions()
    _replace_metric_filters(clock)


# -- subscriptions


def _replace_subscriptions() -> None:
    moto_put, moto_send = LogsBackend.put_subscription_filter, LogStream._send_log_events

    def put(
        self: LogsBackend, log_group_name: str, filter_name: str, pattern: str, destination_arn: str, role_arn: str
    ) -> None:
        group = self.groups.get(log_group_name)
        if group and destination_arn.split(":")[2] == "lambda":
            _refuse_without_permission(group, destination_arn)
        moto_put(self, log_group_name, filter_name, pattern, destination_arn, role_arn)

    def keep(self: LogGroup, filter_name: str, filter_pattern: str, destination_arn: str, role_arn: str) -> None:
        found = self.subscription_filters.get(filter_name)
        if found:
            found.update(filter_pattern, destination_arn, role_arn)
            return
        if len(self.subscription_filters) >= SUBSCRIPTIONS_PER_GROUP:
            raise LimitExceededException
        made = SubscriptionFilter(filter_name, self.name, filter_pattern, destination_arn, role_arn)
        self.subscription_filters[filter_name] = made

    def send(self: LogStream, service: str, **what: Any) -> None:
        if service != "lambda":
            moto_send(self, service=service, **what)

    LogsBackend.put_subscription_filter = put
    LogGroup.put_subscription_filter = keep
    LogStream._send_log_events = send


def _refuse_without_permission(group: LogGroup, destination: str) -> None:
    """AWS invokes the function once when the subscription is made."""
    name = destination.split(":function:")[-1]
    functions = {one.function_name: one for one in lambda_backends[group.account_id][group.region].list_functions()}
    function = functions.get(name.split(":")[0])
    if function is None or not any(_permits(one, group) for one in function.policy.statements):
        raise InvalidParameterException(
            "Could not execute the lambda function. Make sure you have given CloudWatch Logs permission to execute "
            "your function."
        )


def _permits(statement: dict[str, Any], group: LogGroup) -> bool:
    condition = statement.get("Condition", {})
    principal = statement["Principal"]
    service = principal.get("Service") if isinstance(principal, dict) else None
    account = condition.get("StringEquals", {}).get("AWS:SourceAccount", group.account_id)
    source = condition.get("ArnLike", {}).get("AWS:SourceArn", "*")
    return (
        statement["Action"] in ("lambda:InvokeFunction", "lambda:*")
        and service in ("logs.amazonaws.com", f"logs.{group.region}.amazonaws.com")
        and account == group.account_id
        and _like(source, f"{group.arn}:*")
    )


def _like(pattern: str, arn: str) -> bool:
    """ArnLike: `*` is any text and `?` any letter."""
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, arn) is not None


# -- metric filters


def _replace_metric_filters(clock: VirtualClock) -> None:
    moto_put, moto_delete_group = LogsBackend.put_metric_filter, LogsBackend.delete_log_group

    def put(self: LogsBackend, filter_name: str, filter_pattern: str, log_group_name: str, what: Any) -> None:
        if log_group_name not in self.groups:
            raise ResourceNotFoundException
        self.filters.delete_filter(filter_name, log_group_name)
        moto_put(self, filter_name, filter_pattern, log_group_name, what)
        self.filters.metric_filters[-1]["creationTime"] = clock.now_ms

    def delete_group(self: LogsBackend, log_group_name: str) -> None:
        moto_delete_group(self, log_group_name)
        kept = [one for one in self.filters.metric_filters if one["logGroupName"] != log_group_name]
        self.filters.metric_filters = kept

    LogsBackend.put_metric_filter = put
    LogsBackend.delete_log_group = delete_group
