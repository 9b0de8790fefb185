"""Does the wiring of the controller's Terraform fire? wiring.py TERRAFORM WORK FUNCTIONS

Applies it to MiniStack, in real time and with IAM in force, and lets the events happen. Each check prints ok or MISS,
and what MiniStack cannot do prints as `not here`. Exit code 1 on a MISS."""

import contextlib
import hashlib
import http.client
import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from account import ACCOUNT, BY_LOG, BY_URL, COUNTED_LOG, ENVIRONMENT, REGION, UP, WAKING_LOG, Account, within
from deploy import Terraform
from package import package
from server import Server, beyond_loopback, listeners, ministack

TOKEN = "a-token-for-make-wiring"
TICKS = {"idle-check": 5, "uptime-alarm": 15, "budget-guard": 60}
ALARMS = "aws_cloudwatch_metric_alarm"

# Beside what the checks themselves find missing.
NOT_HERE = [
    "the default subscription pattern: MiniStack asks that every word of a pattern occurs, so main.tf has one word",
    "the permissions of Logs and EventBridge to run a function: MiniStack delivers without them",
    "the permission limited to calls by the URL, at work: MiniStack keeps it and does not ask for it",
    "the URL's name and TLS: it is asked on loopback, under its host name",
    "pending, stopping, a new LaunchTime: MiniStack's nodes jump and keep the first, so one that is started stays so",
    "the schedules' own times: the module's rules, with their targets, were set to one minute and back",
    "a stop: no node is idle before ten minutes",
    "tries of a log batch or a rule's event: MiniStack tries those once; what was tried was sent by Lambda's own API",
    "the nodes' tag in the right to start: MiniStack's IAM knows no tags of instances; main.tf adds the right by id",
    "the rights to view the budget and to count log lines: MiniStack's IAM goes by other names; main.tf adds them",
    "the right to read metrics: MiniStack's IAM does not look at CloudWatch's CBOR",
    "the rights to write its own log and to send to the queue: MiniStack does both itself",
]


@dataclass
class Report:
    checks: int = 0
    missed: int = 0

    def check(self, what: str, holds: object, detail: str = "") -> None:
        self.checks += 1
        self.missed += 0 if holds else 1
        print(f"{'ok  ' if holds else 'MISS'} {what}{detail and f' ({detail})'}", flush=True)

    def not_here(self, *sentences: str) -> None:
        for sentence in sentences:
            print(f"not here: {sentence}", flush=True)


def access_line(request: str, status: int) -> str:
    at = datetime.now(timezone.utc).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'192.0.2.77 - - [{at}] "{request} HTTP/1.1" {status} 312 "-" "voice-app/3.1"'


def decisions(lines: list[dict[str, Any]], node: str | None = None) -> list[str]:
    of_node = [line for line in lines if line.get("decided") and node in (None, line["node"])]
    return [f"{line['action']}: {line['reason']}" for line in of_node]


def alerts(lines: list[dict[str, Any]]) -> list[str]:
    return [line["reason"] for line in lines if line.get("event") == "alert"]


def words(many: Iterable[str]) -> str:
    """Each once, in their order."""
    return ", ".join(dict.fromkeys(many))


def brief(error: str | None) -> str:
    """What failed, and as what it was refused."""
    return ":".join((error or "no error").split(":")[:2])


def noise_wakes_nothing(aws: Account, report: Report) -> None:
    noise = [("GET /healthz", 200), ("POST /healthz", 200), ("POST /v1/calls", 404)]
    aws.put_lines(*(access_line(request, status) for request, status in noise))
    lines, took = within(20, lambda: aws.new_lines("wake"))
    batches = [(one["batch"]["outcome"], one["batch"]["lines"]) for one in lines if "batch" in one]
    filtered = "noise: the subscription runs the wake function, with the lines of its pattern"
    report.check(filtered, batches == [("quiet", 2)], f"{took:.2f} s")
    later, _ = within(3, lambda: aws.new_lines("wake") or aws.state(BY_LOG) != "stopped")
    report.check("noise: nothing is started, three seconds on", not later and not decisions(lines))


def a_request_wakes(aws: Account, report: Report) -> None:
    aws.put_lines(access_line("POST /v1/calls", 503))
    woken, took = within(30, lambda: aws.state(BY_LOG) == "running")
    report.check("request line: its node runs", woken, f"{took:.2f} s after the line was written")
    lines, _ = within(10, lambda: aws.new_lines("wake"))
    report.check("request line: why", decisions(lines) == ["start: wanted"], words(decisions(lines)))
    report.check("request line: no other pool's node is started", aws.state(BY_URL) == "stopped")


def a_stopped_node_is_looked_at(aws: Account, report: Report) -> None:
    pattern = aws.rule("node-stopped")["EventPattern"]
    matched = [state for state in ("stopped", "running") if matches(aws, pattern, state)]
    report.check("state change: the rule takes stopped and not running", matched == ["stopped"], words(matched))

    aws.stop(BY_LOG)
    refused = put_event(aws, "aws.ec2").get("ErrorCode")
    own, _ = within(2, lambda: aws.new_lines("wake"))
    detail = refused or words(decisions(own))
    report.check("state change: MiniStack sends no such event and takes none from others", refused and not own, detail)
    report.not_here("EC2's own event: the next check sends one of another source, which its rule is set to take")
    from_here = json.dumps({**json.loads(pattern), "source": ["wiring"]})
    with aws.changed_rule("node-stopped", EventPattern=from_here):
        put_event(aws, "wiring")
        lines, took = within(20, lambda: aws.new_lines("wake"))
    detail = f"{words(decisions(lines))}; {took:.2f} s"
    report.check("state change: the rule runs the wake function, which decides", decisions(lines), detail)


def state_change(aws: Account, state: str, source: str) -> dict[str, Any]:
    node = aws.nodes[BY_LOG]
    return {
        "version": "0",
        "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "detail-type": "EC2 Instance State-change Notification",
        "source": source,
        "account": ACCOUNT,
        "time": "2026-11-30T09:00:00Z",
        "region": REGION,
        "resources": [f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{node}"],
        "detail": {"instance-id": node, "state": state},
    }


def matches(aws: Account, pattern: str, state: str) -> bool:
    event = json.dumps(state_change(aws, state, "aws.ec2"))
    return aws.of("events").test_event_pattern(EventPattern=pattern, Event=event)["Result"]


def put_event(aws: Account, source: str) -> dict[str, Any]:
    event = state_change(aws, "stopped", source)
    entry = {
        "Source": source,
        "DetailType": event["detail-type"],
        "Detail": json.dumps(event["detail"]),
        "Resources": event["resources"],
    }
    return aws.of("events").put_events(Entries=[entry])["Entries"][0]


@dataclass(frozen=True)
class Url:
    server: Server
    host: str

    def ask(self, method: str, path: str, token: str, body: dict[str, Any] | None = None) -> tuple[int, str | None]:
        """The status and the node's state."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        headers = {"Host": self.host, "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()).get("state")


def the_url_answers(aws: Account, url: Url, report: Report) -> None:
    def answers(what: str, got: tuple[int, str | None], wanted: tuple[int, str | None]) -> None:
        report.check(f"URL: {what}", got == wanted, f"{got[0]} {got[1] or ''}".strip())

    answers("GET /status of the node that is up", url.ask("GET", f"/status?pool={UP}", TOKEN), (200, "ready"))
    answers("GET /status of one that sleeps", url.ask("GET", f"/status?pool={BY_URL}", TOKEN), (503, "asleep"))
    answers("GET /status with a wrong token", url.ask("GET", f"/status?pool={UP}", "wrong"), (401, None))
    answers("POST /wake with a wrong token", url.ask("POST", "/wake", "wrong", {"pool": BY_URL}), (401, None))
    report.check("URL: nothing is started by these", aws.state(BY_URL) == "stopped")
    answers("POST /wake", url.ask("POST", "/wake", TOKEN, {"pool": BY_URL}), (202, "starting"))
    woken, took = within(30, lambda: aws.state(BY_URL) == "running")
    report.check("URL: its node runs", woken, f"{took:.2f} s after the answer")

    public = public_actions(aws)
    wanted = {
        ("lambda:InvokeFunctionUrl", "StringEquals lambda:FunctionUrlAuthType NONE"),
        ("lambda:InvokeFunction", "Bool lambda:InvokedViaFunctionUrl true"),
    }
    detail = words(f"{action} where {condition or 'nothing'}" for action, condition in public - wanted)
    report.check("URL: everybody may call the function by it, and not otherwise", public == wanted, detail)


def public_actions(aws: Account) -> set[tuple[str, str]]:
    """What the wake function's policy lets everybody do, and where."""
    policy = json.loads(aws.of("lambda").get_policy(FunctionName="reveille-wake")["Policy"])
    everybody = [one for one in policy["Statement"] if one["Principal"] in ("*", {"AWS": "*"})]
    return {(one["Action"], words(conditions(one))) for one in everybody}


def conditions(statement: dict[str, Any]) -> list[str]:
    given = statement.get("Condition", {}).items()
    return [f"{operator} {key} {value}" for operator, keys in given for key, value in keys.items()]


def the_schedules_run(aws: Account, report: Report) -> None:
    for function in TICKS:
        aws.new_messages(function)
    with contextlib.ExitStack() as rules:
        for function, minutes in TICKS.items():
            expression = aws.rule(function)["ScheduleExpression"]
            report.check(f"schedule: {function}", expression == f"rate({minutes} minutes)", expression)
            rules.enter_context(aws.changed_rule(function, ScheduleExpression="rate(1 minute)"))
        ran = {function: within(90, lambda: aws.new_lines(function))[0] for function in TICKS}
    for function, lines in ran.items():
        refused = [one["message"] for one in lines if one.get("level") in ("WARN", "ERROR")]
        detail = words(refused or decisions(lines))
        report.check(f"schedule: {function} ran and was refused nothing", decisions(lines) and not refused, detail)


def unknown_keeps(aws: Account, report: Report) -> None:
    with aws.denied("idle-check", "logs:FilterLogEvents"):
        error, lines = aws.invoke("idle-check")
    seen = decisions(lines, aws.nodes[UP])
    denied = "idle-check: denied a log that it counts, it keeps the node"
    report.check(denied, seen == ["keep: signals_unknown"], error or words(seen))
    report.check("idle-check: the node runs", aws.state(UP) == "running")
    aws.put_points(UP, "HealthyHostCount", "ActiveConnectionCount")
    error, lines = aws.invoke("idle-check")
    seen = decisions(lines, aws.nodes[UP])
    report.check("idle-check: with its rights it sees an open call", seen == ["keep: open_call"], error or words(seen))


def rights_are_asked_for(aws: Account, report: Report) -> None:
    """What makes the other checks a proof of the rights: IAM is in force for the functions."""
    with aws.denied("idle-check", "dynamodb:BatchGetItem"):
        error, _ = aws.invoke("idle-check")
    report.check("rights: denied the ledger, the idle check fails", error, brief(error))
    aws.hold(BY_URL, "whenever")
    with aws.denied("idle-check", "sns:Publish"):
        error, lines = aws.invoke("idle-check")
    report.check("rights: denied the topic, it cannot tell of a tag", error and not alerts(lines), brief(error))
    aws.hold(UP, "whenever")
    error, lines = aws.invoke("idle-check")
    detail = error or words(alerts(lines))
    report.check("rights: with the module's own it tells of one", not error and alerts(lines), detail)


def a_failed_event_is_kept(aws: Account, queue: str, report: Report) -> None:
    aws.new_messages("wake")
    event = state_change(aws, "stopped", "aws.ec2")
    with aws.denied("wake", "dynamodb:*"):
        aws.of("lambda").invoke(FunctionName="reveille-wake", InvocationType="Event", Payload=json.dumps(event))
        kept, took = within(30, lambda: aws.of("sqs").receive_message(QueueUrl=queue).get("Messages"))
    tries = sum(message.startswith("START ") for message in aws.new_messages("wake"))
    same = bool(kept) and json.loads(kept[0]["Body"])["requestPayload"] == event
    detail = f"{tries} times; {took:.2f} s"
    report.check("failed event: tried three times, then in the queue", same and tries == 3, detail)


def a_second_plan_is_empty(aws: Account, terraform: Terraform, report: Report) -> None:
    changes = terraform.changes()
    others = [address for kind, addresses in changes.items() if kind != ALARMS for address in addresses]
    report.check("second plan: no change but of alarms", not others, words(others))
    if ALARMS in changes:
        count = len(changes[ALARMS])
        report.not_here(f"alarms in the second plan: MiniStack gives {count} back without dimensions and actions")
    if not aws.of("cloudwatch").list_metrics(Namespace="Reveille")["Metrics"]:
        report.not_here("metrics out of the functions' logs: none, so the heartbeat's alarm has nothing to see")


def listens_on_loopback_only(server: Server, report: Report) -> None:
    found = listeners(server.session)
    holds = f"127.0.0.1:{server.port}" in found and not beyond_loopback(found)
    report.check("listening: MiniStack and the functions' runtimes, on loopback only", holds, words(sorted(found)))


def destroy_leaves_nothing(aws: Account, terraform: Terraform, added: int, report: Report) -> None:
    states, kinds = aws.states(), {one.split(":")[0] for one in aws.remains()}
    report.check("destroy: looked for in twelve services", len(kinds) == 12, words(sorted(kinds)))
    destroyed, took = terraform.timed("destroy", "destroyed")
    report.check("destroy: whatever was added", destroyed == added, f"{destroyed} resources; {took:.0f} s")
    report.check("destroy: nothing is left", not aws.remains(), words(aws.remains()))
    report.check("destroy: the nodes are as they were", aws.states() == states)


def run(program: str, work: Path, server: Server, functions: Path, report: Report) -> None:
    os.environ["AWS_ENDPOINT_URL"] = server.endpoint
    aws = Account()
    variables = {
        "package": str(package(functions, work / "package")),
        "nodes": aws.nodes,
        "logs": {
            BY_LOG: {"log_groups": [WAKING_LOG], "wake": {"paths": ["/v1/calls"]}},
            UP: {"logs": [{"group": COUNTED_LOG, "lines": {"paths": ["/v1/calls"]}}]},
        },
        "token_sha256": hashlib.sha256(TOKEN.encode()).hexdigest(),
    }
    terraform = Terraform.on_a_copy(program, work, variables)
    added, took = terraform.timed("apply", "added")
    print(f"apply: {added} resources; {took:.0f} s", flush=True)
    outputs = terraform.outputs()

    noise_wakes_nothing(aws, report)
    a_request_wakes(aws, report)
    a_stopped_node_is_looked_at(aws, report)
    the_url_answers(aws, Url(server, urlsplit(outputs["function_url"]).netloc), report)
    the_schedules_run(aws, report)
    unknown_keeps(aws, report)
    rights_are_asked_for(aws, report)
    a_failed_event_is_kept(aws, outputs["failed_events_queue"], report)
    a_second_plan_is_empty(aws, terraform, report)
    listens_on_loopback_only(server, report)
    destroy_leaves_nothing(aws, terraform, added, report)
    report.not_here(*NOT_HERE)


def main() -> int:
    program, work, functions = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    # So that a time-out ends MiniStack too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("wiring: ended from outside"))
    os.environ.update(ENVIRONMENT)
    report = Report()
    began = time.monotonic()
    with ministack(work, ENVIRONMENT) as server:
        print(f"MiniStack answers on {server.endpoint}; terraform init and apply (a minute)", flush=True)
        run(program, work, server, functions, report)
    print(f"{report.checks} checks, {report.missed} missed; {time.monotonic() - began:.0f} s")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
