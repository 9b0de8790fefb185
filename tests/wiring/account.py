"""The account on MiniStack, as a person with all rights sees it."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import botocore.session

ACCOUNT, REGION = "000000000000", "eu-central-1"
ENVIRONMENT = {
    # MiniStack's root.
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    # The provider would repeat a call that MiniStack has not for ten minutes.
    "AWS_MAX_ATTEMPTS": "3",
    "AWS_EC2_METADATA_DISABLED": "true",
    # No address of another service out of a person's own settings.
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}
# Pools, each with one node: one that a log wakes, one that the URL wakes, and one that is up.
BY_LOG, BY_URL, UP = "voice", "chat", "batch"
WAKING_LOG, COUNTED_LOG, STREAM = "/app/front", "/app/batch", "front-1"


class Account:
    """Seeded with the nodes and log groups that the controller finds."""

    def __init__(self) -> None:
        self._session = botocore.session.get_session()
        self._clients: dict[str, Any] = {}
        self._read: dict[str, int] = {}
        for group in (WAKING_LOG, COUNTED_LOG):
            self.of("logs").create_log_group(logGroupName=group)
            self.of("logs").create_log_stream(logGroupName=group, logStreamName=STREAM)
        self.nodes = {pool: self._launch(pool) for pool in (BY_LOG, BY_URL, UP)}
        self.stop(BY_LOG, BY_URL)

    def of(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._session.create_client(service)
        return self._clients[service]

    def _launch(self, pool: str) -> str:
        tags = [{"Key": "reveille:pool", "Value": pool}, {"Key": "Name", "Value": f"{pool}-1"}]
        launched = self.of("ec2").run_instances(
            ImageId="ami-12c6146b",
            InstanceType="g6.xlarge",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )
        return launched["Instances"][0]["InstanceId"]

    def stop(self, *pools: str) -> None:
        self.of("ec2").stop_instances(InstanceIds=[self.nodes[pool] for pool in pools])

    def state(self, pool: str) -> str:
        found = self.of("ec2").describe_instances(InstanceIds=[self.nodes[pool]])
        return found["Reservations"][0]["Instances"][0]["State"]["Name"]

    def states(self) -> dict[str, str]:
        return {pool: self.state(pool) for pool in self.nodes}

    def hold(self, pool: str, until: str) -> None:
        tag = {"Key": "reveille:keep-until", "Value": until}
        self.of("ec2").create_tags(Resources=[self.nodes[pool]], Tags=[tag])

    def put_lines(self, *lines: str) -> None:
        now = int(time.time() * 1000)
        events = [{"timestamp": now, "message": line} for line in lines]
        self.of("logs").put_log_events(logGroupName=WAKING_LOG, logStreamName=STREAM, logEvents=events)

    def put_points(self, pool: str, *metrics: str) -> None:
        """One in this minute and in the last, of the pool's load balancer."""
        now = int(time.time()) // 60 * 60
        balancer = [{"Name": "LoadBalancer", "Value": f"app/{pool}/0123456789abcdef"}]
        data = [
            {"MetricName": metric, "Dimensions": balancer, "Timestamp": at, "Value": 1.0}
            for metric in metrics
            for at in (now - 60, now)
        ]
        self.of("cloudwatch").put_metric_data(Namespace="AWS/ApplicationELB", MetricData=data)

    def new_messages(self, function: str) -> list[str]:
        """What the function's log has more than the last time that this was asked."""
        found = self.of("logs").filter_log_events(logGroupName=f"/aws/lambda/reveille-{function}")["events"]
        new = found[self._read.get(function, 0) :]
        self._read[function] = len(found)
        return [event["message"] for event in new]

    def new_lines(self, function: str) -> list[dict[str, Any]]:
        """Of these the function's own, which are JSON."""
        return [json.loads(message) for message in self.new_messages(function) if message.startswith("{")]

    def invoke(self, function: str) -> tuple[str | None, list[dict[str, Any]]]:
        """The error of a run by Lambda's own API, and what it has logged."""
        self.new_messages(function)
        answer = self.of("lambda").invoke(FunctionName=f"reveille-{function}", Payload=b"{}")
        told = json.loads(answer["Payload"].read())
        lines, _ = within(10, lambda: self.new_lines(function))
        return answer.get("FunctionError") and told["errorMessage"], lines

    @contextlib.contextmanager
    def denied(self, function: str, *actions: str) -> Iterator[None]:
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": actions, "Resource": "*"}]}
        names = {"RoleName": f"reveille-{function}", "PolicyName": "wiring"}
        self.of("iam").put_role_policy(**names, PolicyDocument=json.dumps(policy))
        yield
        self.of("iam").delete_role_policy(**names)

    def rule(self, name: str) -> dict[str, Any]:
        return self.of("events").describe_rule(Name=f"reveille-{name}")

    @contextlib.contextmanager
    def changed_rule(self, name: str, **changes: str) -> Iterator[None]:
        """The module's own rule with its own target, otherwise for a while."""
        kept = ("Name", "EventPattern", "ScheduleExpression", "Description")
        own = {key: value for key, value in self.rule(name).items() if key in kept}
        self.of("events").put_rule(**{**own, **changes})
        yield
        self.of("events").put_rule(**own)

    def remains(self) -> list[str]:
        """Whatever is there beside the nodes and their log groups, as KIND: NAME."""
        groups = [group["logGroupName"] for group in self.of("logs").describe_log_groups()["logGroups"]]
        filters = self.of("logs").describe_subscription_filters(logGroupName=WAKING_LOG)["subscriptionFilters"]
        stacks = self.of("cloudformation").list_stacks()["StackSummaries"]
        budgets = self.of("budgets").describe_budgets(AccountId=ACCOUNT).get("Budgets", [])
        dashboards = self.of("cloudwatch").list_dashboards()["DashboardEntries"]
        alarms = self.of("cloudwatch").describe_alarms()["MetricAlarms"]
        found = {
            "function": [one["FunctionName"] for one in self.of("lambda").list_functions()["Functions"]],
            "log group": [name for name in groups if name not in (WAKING_LOG, COUNTED_LOG)],
            "subscription": [one["filterName"] for one in filters],
            "rule": [one["Name"] for one in self.of("events").list_rules()["Rules"]],
            "role": [one["RoleName"] for one in self.of("iam").list_roles()["Roles"]],
            "table": self.of("dynamodb").list_tables()["TableNames"],
            "topic": [one["TopicArn"] for one in self.of("sns").list_topics()["Topics"]],
            "queue": self.of("sqs").list_queues().get("QueueUrls", []),
            "alarm": [one["AlarmName"] for one in alarms],
            "dashboard": [one["DashboardName"] for one in dashboards],
            "stack": [one["StackName"] for one in stacks if one["StackStatus"] != "DELETE_COMPLETE"],
            "budget": [one["BudgetName"] for one in budgets],
        }
        return [f"{kind}: {name}" for kind, names in found.items() for name in names]


def within(seconds: float, probe: Callable[[], Any]) -> tuple[Any, float]:
    """What the probe gives as soon as it gives something, and how long that took."""
    began = time.monotonic()
    while True:
        found = probe()
        took = time.monotonic() - began
        if found or took > seconds:
            return found, took
        time.sleep(0.05)
