"""What IAM is asked when an AWS call arrives: which actions, on which resources, under which circumstances.

Every call that the functions, the node's agent and the operator's command make, by AWS's Service Authorization
Reference of 2026. What it leaves open is taken from how AWS words refusals, as public bug reports quote them; it
stands beside the line. A call that is not here cannot be judged, and says so.
"""

import json
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.dynamodb.exceptions import MockValidationException
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.parsing.key_condition_expression import parse_expression
from moto.ec2.models import ec2_backends
from moto.sns.models import sns_backends

import cbor
from protocols import Call, Request


class NotJudged(ValueError):
    """Something that this IAM does not know: it is refused by its name, never guessed."""


@dataclass
class Question:
    """May this action be done to this resource under these circumstances?"""

    action: str
    resource: str
    # A list where the key has many values; None where the key belongs to the action and this call does not have it.
    context: dict[str, str | list[str] | None] = field(default_factory=dict)
    families: tuple[str, ...] = ()  # beginnings of keys that belong to the action, `aws:ResourceTag/`

    def value(self, key: str) -> str | list[str] | None:
        """The names of condition keys, and of tags in them, are not case-sensitive."""
        for name, value in self.context.items():
            if name.lower() == key.lower():
                return value
        if key.lower().startswith(tuple(family.lower() for family in self.families)):
            return None
        raise NotJudged(f"condition key {key} of {self.action}")


@dataclass
class Asked:
    """A call with its parameters."""

    service: str
    action: str
    region: str
    given: dict[str, Any]

    @property
    def iam_action(self) -> str:
        return f"{self.service}:{self.action}"

    def arn(self, rest: str) -> str:
        return f"arn:aws:{self.service}:{self.region}:{ACCOUNT}:{rest}"

    def one(self, names: str) -> str:
        """The first of these parameters that was given."""
        for name in names.split():
            if isinstance(self.given.get(name), str):
                return self.given[name]
        raise NotJudged(f"{self.iam_action} without {names}")


def questions(call: Call, request: Request) -> list[Question]:
    """All of them have to be answered with yes."""
    mapped = CALLS.get((call.service, call.action))
    if mapped is None:
        raise NotJudged(f"no mapping of {call.service} {call.action}")
    if mapped is needs_nothing:
        return []
    found = list(mapped(Asked(call.service, call.action, request.signer.region, _parameters(call, request))))
    if not found:
        raise NotJudged(f"{call.service} {call.action} names no resource")
    return found


def _parameters(call: Call, request: Request) -> dict[str, Any]:
    if call.protocol == "cbor":
        return cbor.decode(request.body)
    if call.protocol == "json":
        return json.loads(request.body)
    return dict(urllib.parse.parse_qsl(request.body.decode(), keep_blank_values=True))


def needs_nothing(_asked: Asked) -> list[Question]:
    """GetCallerIdentity works without any permission, even against a Deny."""
    return []


def no_resource(asked: Asked) -> list[Question]:
    """The action knows no resource."""
    return [Question(asked.iam_action, "*")]


# -- EC2

TAGS = ("aws:ResourceTag/", "ec2:ResourceTag/")


def instances(asked: Asked) -> list[Question]:
    """Each instance has to be allowed. Start's license configurations are optional, and no node has one."""
    return [_instance(asked, value) for name, value in asked.given.items() if name.startswith("InstanceId.")]


def change(asked: Asked) -> list[Question]:
    """ec2:Attribute/NAME is the value that is to be set, ec2:InstanceType the type that the instance has."""
    given = {
        name: value for name, value in asked.given.items() if name not in ("Action", "Version", "DryRun", "InstanceId")
    }
    if set(given) == {"Attribute", "Value"}:
        given = {f"{given['Attribute']}.Value": given["Value"]}
    name, _, rest = next(iter(given), "").partition(".")
    if len(given) != 1 or rest != "Value":
        # Groups and disks are resources of their own.
        raise NotJudged(f"{asked.iam_action} of {', '.join(sorted(given)) or 'nothing'}")
    name = name[0].upper() + name[1:]
    question = _instance(asked, asked.one("InstanceId"))
    question.context |= {"ec2:Attribute": name, f"ec2:Attribute/{name}": next(iter(given.values()))}
    question.families += ("ec2:Attribute/",)
    return [question]


def attribute(asked: Asked) -> list[Question]:
    return [_instance(asked, asked.one("InstanceId"))]


def _instance(asked: Asked, instance_id: str) -> Question:
    """An instance that is not there has no tags."""
    context: dict[str, Any] = {"ec2:InstanceType": None}
    for instance in ec2_backends[ACCOUNT][asked.region].all_instances():
        if instance.id == instance_id:
            context["ec2:InstanceType"] = instance.instance_type
            context |= {family + tag["key"]: tag["value"] for tag in instance.get_tags() for family in TAGS}
    return Question(asked.iam_action, asked.arn(f"instance/{instance_id}"), context, TAGS)


# -- DynamoDB. LeadingKeys are the partition keys that the call names.


def item(asked: Asked) -> list[Question]:
    return [_items(asked, asked.action, asked.given["TableName"], [asked.given["Key"]])]


def put(asked: Asked) -> list[Question]:
    return [_items(asked, asked.action, asked.given["TableName"], [asked.given["Item"]])]


def batch(asked: Asked) -> list[Question]:
    return [_items(asked, asked.action, table, one["Keys"]) for table, one in asked.given["RequestItems"].items()]


def query(asked: Asked) -> list[Question]:
    given = asked.given
    if "IndexName" in given or "KeyConditionExpression" not in given:
        raise NotJudged("dynamodb Query of an index, or without KeyConditionExpression")
    names, values = given.get("ExpressionAttributeNames", {}), given.get("ExpressionAttributeValues", {})
    table = _table(asked, given["TableName"])
    try:
        keys = parse_expression(given["KeyConditionExpression"], values, names, table.schema)[0] if table else []
    except MockValidationException:
        keys = []  # moto refuses what it cannot read, by the same function
    return [_items(asked, "Query", given["TableName"], [{name: value} for name, value in keys])]


def transaction(asked: Asked) -> list[Question]:
    """There is no permission of this name: each part needs that of its own."""
    actions = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
    parts = [(actions[kind], part) for entry in asked.given["TransactItems"] for kind, part in entry.items()]
    return [_items(asked, action, part["TableName"], [part.get("Key") or part["Item"]]) for action, part in parts]


def _items(asked: Asked, action: str, table: str, items: Iterable[dict[str, Any]]) -> Question:
    known = _table(asked, table)
    keys = [one[known.hash_key_attr] for one in items if known.hash_key_attr in one] if known else []
    leading = [str(next(iter(key.values()))) for key in keys]
    resource = table if table.startswith("arn:") else asked.arn(f"table/{table}")
    return Question(f"dynamodb:{action}", resource, {"dynamodb:LeadingKeys": leading or None})


def _table(asked: Asked, table: str) -> Any:
    """moto's, by name or ARN; only it knows which attribute is the partition key. None where it is not there."""
    return dynamodb_backends[ACCOUNT][asked.region].tables.get(table.split("/")[-1])


# -- CloudWatch, Logs


def metrics(asked: Asked) -> list[Question]:
    return [Question(asked.iam_action, "*", {"cloudwatch:namespace": asked.one("Namespace")})]


def log_group(asked: Asked) -> list[Question]:
    """Refusals name `log-group:NAME:log-stream:`, with no stream behind it: a policy for `log-group:NAME` alone allows
    nothing, one for `log-group:NAME:*` does. How a group is named that is given as an ARN is not known."""
    return [Question(asked.iam_action, asked.arn(f"log-group:{asked.one('logGroupName')}:log-stream:"))]


def log_stream(asked: Asked) -> list[Question]:
    """The stream stands in refusals of CreateLogStream too, whose resource the reference calls the group."""
    [group] = log_group(asked)
    return [Question(group.action, group.resource + asked.one("logStreamName"))]


# -- Others


def topic(asked: Asked) -> list[Question]:
    """Who publishes to an encrypted topic needs its key, by SNS."""
    arn = asked.one("TopicArn TargetArn")
    found = [Question(asked.iam_action, arn)]
    region = arn.split(":")[3]
    known = sns_backends[ACCOUNT][region].topics.get(arn)
    key = known.kms_master_key_id if known else ""
    if key and not key.startswith("arn:"):
        raise NotJudged(f"the key {key} of a topic: only ARNs are known")
    by_sns = {"kms:ViaService": f"sns.{region}.amazonaws.com"}
    return found + [Question(f"kms:{action}", key, by_sns) for action in ("GenerateDataKey", "Decrypt") if key]


def told(asked: Asked) -> list[Question]:
    """Listing who is told reads nothing that is encrypted."""
    return [Question(asked.iam_action, asked.one("TopicArn"))]


def rule(asked: Asked) -> list[Question]:
    """A rule of the default bus has no bus in its ARN."""
    return [Question(asked.iam_action, asked.arn(f"rule/{asked.one('Name Rule')}"))]


def queue(asked: Asked) -> list[Question]:
    """A queue's URL ends in its account and name."""
    account, name = asked.one("QueueUrl").split("/")[-2:]
    return [Question(asked.iam_action, f"arn:aws:sqs:{asked.region}:{account}:{name}")]


def budget(asked: Asked) -> list[Question]:
    """The operations share two actions. What billing views and service-linked roles need besides is not asked."""
    given = asked.given
    name = given.get("BudgetName") or (given.get("Budget") or given["NewBudget"])["BudgetName"]
    resource = f"arn:aws:budgets::{given['AccountId']}:budget/{name}"
    actions = ["ViewBudget" if asked.action.startswith("Describe") else "ModifyBudget"]
    if given.get("ResourceTags"):
        actions.append("TagResource")
    return [Question(f"budgets:{action}", resource) for action in actions]


CALLS: dict[tuple[str, str], Callable[[Asked], Iterable[Question]]] = {
    (service, action): mapped
    for service, actions, mapped in [
        ("ec2", "DescribeInstances DescribeInstanceStatus DescribeVolumes DescribeSpotInstanceRequests", no_resource),
        ("ec2", "DescribeInstanceAttribute", attribute),
        ("ec2", "StartInstances StopInstances", instances),
        ("ec2", "ModifyInstanceAttribute", change),
        ("dynamodb", "GetItem UpdateItem DeleteItem", item),
        ("dynamodb", "PutItem", put),
        ("dynamodb", "BatchGetItem", batch),
        ("dynamodb", "Query", query),
        ("dynamodb", "TransactWriteItems", transaction),
        ("cloudwatch", "GetMetricData ListMetrics", no_resource),
        ("cloudwatch", "PutMetricData", metrics),
        ("logs", "FilterLogEvents", log_group),
        ("logs", "CreateLogStream PutLogEvents", log_stream),
        ("sns", "Publish", topic),
        ("sns", "ListSubscriptionsByTopic", told),
        ("events", "DescribeRule ListTargetsByRule", rule),
        ("sqs", "SendMessage", queue),
        ("sts", "GetCallerIdentity", needs_nothing),
        ("budgets", "DescribeBudget DescribeNotificationsForBudget DescribeSubscribersForNotification", budget),
        ("budgets", "CreateBudget UpdateBudget DeleteBudget", budget),
        ("budgets", "CreateNotification UpdateNotification DeleteNotification", budget),
        ("budgets", "CreateSubscriber UpdateSubscriber DeleteSubscriber", budget),
    ]
    for action in actions.split()
}
