"""The uptime alarm in Python: who was up for more than 20 hours of a day, by the launches and by the status checks."""

import json
import os
from datetime import datetime, timedelta, timezone

import boto3

TABLE = os.environ["REVEILLE_TABLE"]
POOLS = json.loads(os.environ["REVEILLE_POOLS"])
LIMIT = timedelta(hours=20)

dynamodb = boto3.client("dynamodb")
ec2 = boto3.client("ec2")
cloudwatch = boto3.client("cloudwatch")


def nodes():
    wanted = [{"Name": "tag-key", "Values": ["reveille:pool"]}]
    for page in ec2.get_paginator("describe_instances").paginate(Filters=wanted):
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


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


def minutes(ids, since, now):
    def query(n, node):
        dimensions = [{"Name": "InstanceId", "Value": node}]
        metric = {"Namespace": "AWS/EC2", "MetricName": "StatusCheckFailed", "Dimensions": dimensions}
        return {"Id": f"q{n}", "MetricStat": {"Metric": metric, "Period": 300, "Stat": "SampleCount"}}

    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=[query(n, node) for n, node in enumerate(ids)], StartTime=since, EndTime=now
    )
    counted = dict.fromkeys(ids, 0.0)
    for page in pages:
        for result in page["MetricDataResults"]:
            counted[ids[int(result["Id"][1:])]] += sum(result["Values"])
    return counted


def note(node, now):
    fact = {"launched_at": {"S": node["LaunchTime"].isoformat()}, "seen_at": {"S": now.isoformat()}}
    dynamodb.update_item(
        TableName=TABLE,
        Key={"pk": {"S": f"peer#{next(iter(POOLS))}"}, "sk": {"S": "-"}},
        UpdateExpression="SET #launch = :fact",
        ExpressionAttributeNames={"#launch": f"launch#{node['InstanceId']}"},
        ExpressionAttributeValues={":fact": {"M": fact}},
    )


def handle(event, context):
    now = datetime.now(timezone.utc)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = midnight - timedelta(days=1)
    seen = list(nodes())
    records()
    for pool in POOLS:
        launches(pool, since)
    counted = minutes([node["InstanceId"] for node in seen], since, now) if seen else {}
    for node in seen:
        up = now - max(node["LaunchTime"], midnight) if node["State"]["Name"] == "running" else timedelta()
        up = max(up, timedelta(minutes=counted[node["InstanceId"]]))
        if node["State"]["Name"] == "running":
            note(node, now)
        reason = "uptime_over" if up > LIMIT else "uptime_within"
        print(json.dumps({"decided": True, "node": node["InstanceId"], "up_seconds": up.seconds, "reason": reason}))
    return {"node_days": len(seen), "failed": 0}
