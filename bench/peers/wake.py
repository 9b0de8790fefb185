"""POST /wake in Python: checks the token, records the wish, looks at the nodes, claims and starts one, and answers."""

import hashlib
import hmac
import json
import os
import time

import boto3

TABLE = os.environ["REVEILLE_TABLE"]
POOL = next(iter(json.loads(os.environ["REVEILLE_POOLS"])))
TOKENS = json.loads(os.environ["REVEILLE_TOKEN_SHA256"])
KEY = {"pk": {"S": f"peer#{POOL}"}, "sk": {"S": "-"}}

dynamodb = boto3.client("dynamodb")
ec2 = boto3.client("ec2")


def answer(status, body):
    return {"statusCode": status, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}


def allowed(event):
    token = event["headers"].get("authorization", "").removeprefix("Bearer ")
    given = hashlib.sha256(token.encode()).hexdigest()
    return any(hmac.compare_digest(given, known) for known in TOKENS.values())


def nodes():
    wanted = [{"Name": "tag:reveille:pool", "Values": [POOL]}]
    for page in ec2.get_paginator("describe_instances").paginate(Filters=wanted):
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def handle(event, context):
    if not allowed(event):
        return answer(401, {"field": "authorization"})
    record = dynamodb.update_item(
        TableName=TABLE,
        Key=KEY,
        UpdateExpression="SET demand = if_not_exists(demand, :zero) + :one, wake = :wake",
        ConditionExpression="attribute_not_exists(gate)",
        ExpressionAttributeValues={
            ":zero": {"N": "0"},
            ":one": {"N": "1"},
            ":wake": {"M": {"at": {"N": str(int(time.time()))}, "source": {"S": "prewarm"}}},
        },
        ReturnValues="ALL_NEW",
    )["Attributes"]
    seen = list(nodes())
    running = [node for node in seen if node["State"]["Name"] in ("running", "pending")]
    if running:
        return answer(200, {"state": "ready", "node": running[0]["InstanceId"]})
    asleep = [node for node in seen if node["State"]["Name"] == "stopped"]
    if not asleep:
        return answer(503, {"state": "no_node"})
    node = asleep[0]["InstanceId"]
    read = record.get("claims", {"N": "0"})
    dynamodb.update_item(
        TableName=TABLE,
        Key=KEY,
        UpdateExpression="SET claims = if_not_exists(claims, :zero) + :one, claim = :claim",
        ConditionExpression="attribute_not_exists(claims) OR claims = :read",
        ExpressionAttributeValues={
            ":zero": {"N": "0"},
            ":one": {"N": "1"},
            ":read": read,
            ":claim": {"M": {"node": {"S": node}, "run": {"S": context.aws_request_id}}},
        },
    )
    ec2.start_instances(InstanceIds=[node])
    print(json.dumps({"decided": True, "node": node, "action": "start", "reason": "wanted"}))
    return answer(202, {"state": "starting", "node": node, "ready_in_seconds": 60})
