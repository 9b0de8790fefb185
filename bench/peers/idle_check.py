"""One tick in Python: looks at the nodes, the ledger and the metrics, and decides which node is idle."""

import json
import os
from datetime import datetime, timedelta, timezone

import boto3

TABLE = os.environ["REVEILLE_TABLE"]
POOLS = json.loads(os.environ["REVEILLE_POOLS"])
IDLE = timedelta(minutes=30)
LOOK_BACK = timedelta(minutes=45)

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
    answer = dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys, "ConsistentRead": True}})
    return {item["pk"]["S"]: item for item in answer["Responses"][TABLE]}


def queries():
    metrics = {}
    for pool in POOLS.values():
        for signal in pool["requests"] + pool["open"]:
            for metric in (signal, signal["alive"]):
                dimensions = [{"Name": name, "Value": value} for name, value in metric["dimensions"].items()]
                named = {"Namespace": metric["namespace"], "MetricName": metric["metric"], "Dimensions": dimensions}
                stat = "Sum" if metric["metric"] == "RequestCount" else "Maximum"
                metrics[metric["metric"]] = {"Metric": named, "Period": 60, "Stat": stat}
    return [{"Id": f"q{n}", "Label": name, "MetricStat": stat} for n, (name, stat) in enumerate(metrics.items())]


def series(now):
    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries(), StartTime=now - LOOK_BACK, EndTime=now
    )
    points = {}
    for page in pages:
        for result in page["MetricDataResults"]:
            points.setdefault(result["Label"], []).extend(zip(result["Timestamps"], result["Values"]))
    return points


def decide(node, points, now):
    if node["State"]["Name"] != "running":
        return "keep", "asleep"
    used = [at for name in ("RequestCount", "ActiveConnectionCount") for at, value in points.get(name, []) if value > 0]
    if not points.get("HealthyHostCount"):
        return "keep", "signals_unknown"
    if used and now - max(used) < IDLE:
        return "keep", "recent_use"
    return "mark", "first_reading"


def handle(event, context):
    now = datetime.now(timezone.utc)
    seen = list(nodes())
    records()
    points = series(now) if any(node["State"]["Name"] == "running" for node in seen) else {}
    for node in seen:
        action, reason = decide(node, points, now)
        print(json.dumps({"decided": True, "node": node["InstanceId"], "action": action, "reason": reason}))
    return {"nodes": len(seen), "failed": 0}
