"""A local AWS with an account that holds what an example presupposes, made by public calls."""

import base64
import contextlib
import hashlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.config

from account import Found, account, difference

REPO = Path(__file__).resolve().parents[2]
SMALL_PACKAGE = REPO / "infra/tests/package"
ACCOUNT = "123456789012"
CALLER = f"arn:aws:iam::{ACCOUNT}:role/app"
# The clock of the local AWS stands still while Terraform waits for an instance.
INSTANT = {"pending_seconds": 0, "stopping_seconds": 0, "shutting_down_seconds": 0}
USUAL = {"pending_seconds": 20, "stopping_seconds": 40, "shutting_down_seconds": 20}


class Wrong(Exception):
    """A promise that was not kept."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Wrong(what)


def require_same(before: Found, after: Found, when: str) -> None:
    require(before == after, f"{when}:\n" + "\n".join(difference(before, after)))


class Aws:
    """A local AWS in a process of its own, in one region."""

    def __init__(self, region: str) -> None:
        self.region = region
        launcher = REPO / "tests/local-aws/launcher.py"
        options = ["--port", "0", "--region", region, "--managed-policies", "--exit-with-stdin"]
        # Its end of standard input closes with this process, however it ends.
        self.process = subprocess.Popen(
            [sys.executable, launcher, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started = self.process.stdout.readline().split()
        require(len(started) > 0, "the local AWS did not start")
        self.url = started[-1]
        self.session = boto3.session.Session()  # boto3's own is not for several threads
        self.configure(**INSTANT)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=30)

    def configure(self, **settings: int) -> None:
        body = json.dumps(settings).encode()
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/local-aws/config", data=body)).close()

    def client(self, service: str) -> Any:
        return self.session.client(
            service,
            endpoint_url=self.url,
            region_name=self.region,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=botocore.config.Config(retries={"total_max_attempts": 1}),
        )

    def account(self) -> Found:
        return account(self.client, ACCOUNT)


@contextlib.contextmanager
def local_aws(region: str) -> Iterator[Aws]:
    aws = Aws(region)
    try:
        yield aws
    finally:
        aws.close()


# -- what there is before


def trust(service: str) -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def seed_caller(aws: Aws) -> None:
    aws.client("iam").create_role(RoleName="app", AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com"))


def seed_voice_node(aws: Aws) -> dict[str, Any]:
    """Callers in two VPCs, the request log of their front, and the AMI of the engine."""
    seed_caller(aws)
    ec2 = aws.client("ec2")
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 60, "VolumeType": "gp3"}}
    image = ec2.register_image(
        Name="engine", Architecture="x86_64", RootDeviceName="/dev/sda1", VirtualizationType="hvm", BlockDeviceMappings=[disk]
    )
    aws.client("ssm").put_parameter(Name="/voice/ami", Value=image["ImageId"], Type="String")
    aws.client("logs").create_log_group(logGroupName="/app/front")
    peers = {}
    for name, block in (("staging", "10.0.0.0/16"), ("prod", "10.1.0.0/16")):
        vpc = ec2.create_vpc(CidrBlock=block)["Vpc"]["VpcId"]
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        peers[name] = {"vpc_id": vpc, "cidr": block, "route_table_ids": [table]}
    return {
        "region": aws.region,
        "ami_parameter": "/voice/ami",
        "engine_command": "/opt/engine --port $PORT",
        "front_log_group": "/app/front",
        "peers": peers,
        "mail": ["ops@example.com"],
        "url_callers": [CALLER, ACCOUNT],
    }


def seed_existing_node(aws: Aws) -> dict[str, Any]:
    """A node that somebody made, with a disk, a tag and a key of its own."""
    seed_caller(aws)
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "gpu"}]}]
    launched = aws.client("ec2").run_instances(
        ImageId="ami-0abcdef12", MinCount=1, MaxCount=1, InstanceType="g6.xlarge",
        BlockDeviceMappings=[disk], TagSpecifications=tags,
    )  # fmt: skip
    return {
        "region": aws.region,
        "node_ids": {"gpu-1": launched["Instances"][0]["InstanceId"]},
        "load_balancer": f"arn:aws:elasticloadbalancing:{aws.region}:{ACCOUNT}:loadbalancer/app/gpu/0123456789abcdef",
        "target_group": "targetgroup/gpu/0123456789abcdef",
        "volume_kms_key_arns": [key],
        "mail": ["ops@example.com"],
        "url_callers": [CALLER],
    }


EXAMPLES = {
    "voice-node": ("ap-northeast-2", seed_voice_node),
    "existing-node": ("eu-central-1", seed_existing_node),
}


def seed_busy_log_group(aws: Aws) -> None:
    """/app/busy, with the two subscriptions that AWS takes."""
    made = aws.client("iam").create_role(RoleName="reader", AssumeRolePolicyDocument=trust("lambda.amazonaws.com"))
    role = made["Role"]["Arn"]
    code = {"ZipFile": (SMALL_PACKAGE / "wake/bootstrap.zip").read_bytes()}
    reader = aws.client("lambda").create_function(
        FunctionName="reader", Runtime="provided.al2023", Handler="bootstrap", Role=role, Code=code
    )
    aws.client("lambda").add_permission(
        FunctionName="reader", StatementId="logs", Action="lambda:InvokeFunction", Principal="logs.amazonaws.com"
    )
    logs = aws.client("logs")
    logs.create_log_group(logGroupName="/app/busy")
    for number in ("first", "second"):
        logs.put_subscription_filter(
            logGroupName="/app/busy", filterName=number, filterPattern="", destinationArn=reader["FunctionArn"]
        )


def seed_release(aws: Aws, number: str) -> str:
    """In the bucket; with the hash of its wake function."""
    manifest = json.loads((SMALL_PACKAGE / "manifest.json").read_text())
    for function, named in manifest["functions"].items():
        code = f"{function} {number}".encode()
        named["sha256"] = base64.b64encode(hashlib.sha256(code).digest()).decode()
        aws.client("s3").put_object(Bucket="artefacts", Key=f"{number}/{function}/bootstrap.zip", Body=code)
    text = {"Body": json.dumps(manifest), "ContentType": "application/json"}
    aws.client("s3").put_object(Bucket="artefacts", Key=f"{number}/manifest.json", **text)
    return manifest["functions"]["wake"]["sha256"]
