"""The wake function behind its URL on a local AWS whose clock stands: `front`, and what a scene needs of it."""

import ctypes
import datetime
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import boto3
import botocore.config

ROOT = pathlib.Path(__file__).parents[2]
TOKEN = "reveille-test-token"
TABLE, POOL = "reveille-ledger", "voice"
# Loading moto takes a second or two, on a busy machine a minute.
START_SECONDS = 240
ASK_SECONDS = 30
# Each call with a lease: so a node can be full.
PLACES = 12
REQUESTS = {
    "namespace": "AWS/ApplicationELB", "metric": "RequestCount",
    "dimensions": {"LoadBalancer": "app/voice/0123456789abcdef"},
}
POOLS = {
    POOL: {
        "requests": [REQUESTS],
        "calls": "leased",
        "calls_per_node": PLACES,
    }
}


def binary() -> str:
    """The built `front`; FRONT names another one."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return os.environ.get("FRONT", str(target / "debug" / "front"))


class Answer:
    """An HTTP answer, whatever its status."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def state(self):
        return self.json.get("state")

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"


def ask(url, method="GET", body=None, headers=None):
    """One request; an error status is an answer too, and no proxy of the environment's is asked."""
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    request = urllib.request.Request(url, data, headers or {}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=ASK_SECONDS) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


def ends_with_its_parent(by=signal.SIGINT):
    """For a child before it begins: it gets this signal where the test run is killed. Linux only."""
    try:
        ctypes.CDLL(None).prctl(1, by)
    except AttributeError:
        pass


class Front:
    """One `front` with one sleeping node `gpu-1`; `close` ends it and what it has started."""

    def __init__(self, **variables):
        variables = {"REVEILLE_POOLS": json.dumps(POOLS)} | variables
        more = [word for name, value in variables.items() for word in ("--set", f"{name}={value}")]
        self.process = subprocess.Popen(
            [binary(), "--port", "0", "--speed", "0", *more],
            stdout=subprocess.PIPE, text=True, preexec_fn=ends_with_its_parent,
        )
        lines = queue.Queue()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        try:
            self.aws = self._find(lines, r"The local AWS is at (http://[\d.]+:\d+)")
            self.url = self._find(lines, r"The wake function is at (http://[\d.]+:\d+)")
        except BaseException:
            self.close()
            raise
        self.ec2, self.ledger = self._client("ec2"), self._client("dynamodb")
        [self.node] = [node["InstanceId"] for node in self._nodes()]

    def _read(self, lines):
        for line in self.process.stdout:
            lines.put(line)
        lines.put(None)

    @staticmethod
    def _find(lines, pattern):
        while True:
            line = lines.get(timeout=START_SECONDS)
            if line is None:
                raise RuntimeError("front ended before it served; its standard error says why")
            if found := re.search(pattern, line):
                return found[1]

    def _client(self, service):
        return boto3.client(
            service, endpoint_url=self.aws, region_name="us-east-1",
            aws_access_key_id="person", aws_secret_access_key="person",
            config=botocore.config.Config(retries={"total_max_attempts": 1}, proxies={}),
        )

    def _nodes(self):
        found = self.ec2.describe_instances()["Reservations"]
        return [node for reservation in found for node in reservation["Instances"]]

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # What a caller does.

    def ask(self, method, path, body=None, **headers):
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"} | headers
        return ask(self.url + path, method, body, headers)

    def wake(self):
        return self.ask("POST", "/wake")

    def status(self, **headers):
        return self.ask("GET", "/status", **headers)

    def lease(self, name, **body):
        return self.ask("PUT", f"/leases/{name}", body)

    # What the world does.

    def admin(self, method, call, value=None):
        answer = ask(f"{self.aws}/local-aws/{call}", method, None if value is None else json.dumps(value).encode())
        if answer.status != 200:
            raise RuntimeError(f"the local AWS refused {method} {call}: {answer}")
        return answer.json

    def now(self):
        """The virtual time, as RFC 3339."""
        return instant(self.admin("GET", "clock")["now_ms"])

    def pass_seconds(self, seconds):
        self.admin("POST", "clock", {"advance_ms": seconds * 1000})

    def refuse(self, action, code):
        """EC2 refuses these calls until the next scene."""
        self.admin("POST", "faults", {"service": "ec2", "action": action, "code": code, "times": -1})

    def calls(self, action):
        return [call for call in self.admin("GET", "calls") if call["action"] == action]

    def update(self, expression, fact, names=None):
        """A person's hand in the pool's item; the claim counter moves, so that no START is under way on what was before."""
        self.ledger.update_item(
            TableName=TABLE, Key=KEY, UpdateExpression=f"{expression} ADD claims :one",
            ExpressionAttributeValues={":fact": {"M": fact}, ":one": {"N": "1"}},
            **({"ExpressionAttributeNames": names} if names else {}),
        )

    def item(self):
        """The pool's item of the ledger."""
        return self.ledger.get_item(TableName=TABLE, Key=KEY).get("Item", {})

    # Scenes: each begins with everything forgotten and the node asleep.

    def asleep(self):
        self.admin("DELETE", "faults")
        self.admin("POST", "config", {"instance": self.node, "no_capacity": False})
        self.ec2.create_tags(Resources=[self.node], Tags=[{"Key": "reveille:pool", "Value": POOL}])
        # A node that is pending cannot be stopped.
        self.pass_seconds(120)
        self.ec2.stop_instances(InstanceIds=[self.node])
        self.pass_seconds(120)
        self.ledger.delete_item(TableName=TABLE, Key=KEY)
        self.admin("DELETE", "calls")

    def starting(self):
        self.asleep()
        self.wake()
        self.pass_seconds(10)

    def ready(self):
        self.asleep()
        self.wake()
        self.pass_seconds(180)

    def full(self):
        self.ready()
        for place in range(PLACES):
            self.lease(f"full-{place}", ttl_seconds=3600)

    def going_down(self):
        """A person stops the node in the console."""
        self.ready()
        self.ec2.stop_instances(InstanceIds=[self.node])
        self.pass_seconds(5)

    def stopping(self):
        """Somebody wakes it while it goes down."""
        self.going_down()
        self.wake()

    def will_start(self):
        """EC2 throttles the START, and nobody has come to try again."""
        self.asleep()
        self.refuse("StartInstances", "RequestLimitExceeded")
        self.wake()
        self.admin("DELETE", "faults")

    def gate_closed(self, reason="closed for the audit"):
        """A person closes the gate, as ARCHITECTURE.md has it: one attribute of the pool's item."""
        self.asleep()
        gate = {"by": {"S": "person"}, "since": {"S": self.now()}, "reason": {"S": reason}, "drain": {"BOOL": False}}
        self.update("SET gate = :fact", gate)

    def too_many(self):
        """The wakes of this minute are used up."""
        self.asleep()
        minute = self.admin("GET", "clock")["now_ms"] // 60_000
        rate = {"minute": {"N": str(minute)}, "all": {"N": "100000"}, "by": {"M": {}}}
        self.update("SET rate = :fact", rate)

    def foreign(self):
        """Another caller holds the lease `theirs`."""
        self.ready()
        lease = {"by": {"S": "token:another"}, "at": {"S": self.now()}, "until": {"S": "2027-01-01T00:00:00Z"}}
        self.update("SET #leases = :fact", {"theirs": {"M": lease}}, {"#leases": f"leases#{self.node}"})

    def no_capacity(self):
        self.asleep()
        self.admin("POST", "config", {"instance": self.node, "no_capacity": True})
        self.wake()

    def fault(self):
        """The account's quota is used up."""
        self.asleep()
        self.refuse("StartInstances", "VcpuLimitExceeded")
        self.wake()

    def unknown(self):
        """The role has lost a permission."""
        self.asleep()
        self.refuse("DescribeInstances", "UnauthorizedOperation")

    def empty(self):
        """A person takes the pool's tag from its only node."""
        self.asleep()
        self.ec2.delete_tags(Resources=[self.node], Tags=[{"Key": "reveille:pool"}])

    def no_node(self):
        """And somebody wants it."""
        self.empty()
        self.wake()


KEY = {"pk": {"S": f"pool#{POOL}"}, "sk": {"S": "-"}}


def instant(ms):
    at = datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
