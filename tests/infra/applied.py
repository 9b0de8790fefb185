"""Both examples and the controller with everything, applied to a local AWS and destroyed; and what a user may do wrong.

applied.py TERRAFORM WORK PACKAGE (--day PROGRAM | --without-day) [--only WORD]

Each has an account of its own, which holds beforehand what it presupposes. After `destroy` the account has to be what it was.
The day is PROGRAM ENDPOINT EXAMPLE: it runs the functions that were applied, and no plan may see a difference
afterwards."""

import argparse
import concurrent.futures
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rights
from account import LISTED, Found, difference
from roots import Root, Tool
from stage import (
    EXAMPLES,
    INSTANT,
    REPO,
    SMALL_PACKAGE,
    USUAL,
    Aws,
    local_aws,
    require,
    require_same,
    seed_busy_log_group,
    seed_release,
    seed_voice_node,
)


@contextlib.contextmanager
def step(name: str, what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"{name}: {what}: {time.monotonic() - began:.0f} s", flush=True)


# -- an example, from nothing to nothing


def example(tool: Tool, name: str) -> None:
    region, seed = EXAMPLES[name]
    with local_aws(region) as aws:
        variables = seed(aws)
        before = aws.account()
        root = tool.root(f"infra/examples/{name}", name, aws, variables)
        with step(name, "apply"):
            root.apply()
            require_listed(root, before, aws.account())
            require_code_of(aws, tool.package)
        with step(name, "the plan after it is empty"):
            root.require_no_change("after the apply")
        with step(name, "a second apply by mistake makes and takes nothing"):
            a_second_apply_by_mistake(tool, name, aws, variables)
        with step(name, "the first's plan after that is empty"):
            root.require_no_change("after a second apply by mistake")
        if tool.day:
            with step(name, "the day"):
                a_day(tool.day, name, root)
            with step(name, "the plan after the day is empty"):
                root.require_no_change("after the day")
        with step(name, "destroy leaves and takes nothing"):
            root.destroy()
            require_same(before, aws.account(), f"{name}: after destroy the account is not what it was")


def require_listed(root: Root, before: Found, after: Found) -> None:
    """No kind of resource escapes the comparison that comes after destroy."""
    grown = {line.split(" ")[1] for line in difference(before, after)}
    for one in root.types() - {"terraform_data"}:
        require(one in LISTED, f"{root.name}: write where the account lists {one}, in LISTED of account.py")
        require(LISTED[one] in grown, f"{root.name}: the account shows no {LISTED[one]} of {one}")


def require_code_of(aws: Aws, package: Path) -> None:
    """Lambda has the zips that the manifest names."""
    named = json.loads((package / "manifest.json").read_text())["functions"]
    listed = aws.client("lambda").list_functions()["Functions"]
    shown = {one["FunctionName"]: one["CodeSha256"] for one in listed}
    require(shown == {f"reveille-{name}": one["sha256"] for name, one in named.items()}, f"other code than the package's: {shown}")


OTHER_SETTINGS = {"mail": ["other@example.com"], "budget_usd": 77}


def a_second_apply_by_mistake(tool: Tool, name: str, aws: Aws, variables: dict[str, Any]) -> None:
    """From a fresh checkout, with an empty state and other settings."""
    applied = aws.account()
    second = tool.root(f"infra/examples/{name}", f"{name}-second", aws, variables | OTHER_SETTINGS)
    second.refused("apply", "Role with name reveille-wake already exists", "Table already exists: reveille-ledger")
    require_same(applied, aws.account(), f"{name}: a second apply changed what the first had made")
    second.destroy()
    require_same(applied, aws.account(), f"{name}: destroying a second apply took from the first")


def a_day(program: Path, name: str, root: Root) -> None:
    root.aws.configure(**USUAL)
    out, package = day_folder(root.tool, name), root.tool.package
    command = [program, root.aws.url, name, "--region", root.aws.region, "--package", package, "--out", out]
    ran = subprocess.run(["timeout", "-k", "10", "1200", *command], check=False, capture_output=True, text=True)
    # In one piece: another part goes on beside it.
    print(f"== the day of {name}\n{ran.stdout}{ran.stderr}", flush=True)
    require(ran.returncode == 0, f"{name}: the day ended with {ran.returncode}")
    root.aws.configure(**INSTANT)


def day_folder(tool: Tool, name: str) -> Path:
    return tool.work / "day" / name


def require_rights(tool: Tool) -> None:
    """What the roles allow is what the functions did in one of the days, or explained."""
    answers = [str(day_folder(tool, name) / "iam.json") for name in EXAMPLES]
    require(rights.main(str(REPO / "tests/infra/reasons.json"), *answers) == 0, "the rights are not what was used")


# -- the controller with everything


def full(tool: Tool, name: str) -> None:
    """What the examples leave out: zips in S3, tokens, CORS, a key, metric filters; and new zips over the old ones."""
    with local_aws("us-east-1") as aws:
        aws.client("s3").create_bucket(Bucket="artefacts")
        releases = [seed_release(aws, number) for number in ("1.0", "1.1")]
        for group in ("/app/front", "/app/gateway", "/node/nginx"):
            aws.client("logs").create_log_group(logGroupName=group)
        before = aws.account()
        root = tool.root("tests/infra/full", name, aws, {"region": aws.region, "package": "s3://artefacts/1.0"})
        with step(name, "apply"):
            root.apply()
            require_listed(root, before, aws.account())
            require_wake_is(aws, releases[0])
        with step(name, "the plan after it is empty"):
            root.require_no_change("after the apply")
        with step(name, "an upgrade"):
            root.write({"region": aws.region, "package": "s3://artefacts/1.1"})
            root.apply()
            require_wake_is(aws, releases[1])
        with step(name, "the plan after the upgrade is empty"):
            root.require_no_change("after the upgrade")
        with step(name, "destroy leaves and takes nothing"):
            root.destroy()
            require_same(before, aws.account(), f"{name}: after destroy the account is not what it was")


def require_wake_is(aws: Aws, sha256: str) -> None:
    shown = aws.client("lambda").get_function_configuration(FunctionName="full-wake")["CodeSha256"]
    require(shown == sha256, f"the wake function is {shown} and not {sha256}")


# -- what a user may do wrong


def a_wrong_variable(root: Root, variables: dict[str, Any]) -> None:
    root.write(variables | {"budget_usd": 0})
    root.refused("apply", "budget: write an amount above zero for a month")


def a_log_group_that_is_missing(root: Root, variables: dict[str, Any]) -> None:
    root.write(variables | {"front_log_group": "/app/absent"})
    root.refused("apply", "Log group /app/absent is not in ap-northeast-2: create it first")


def an_ami_that_does_not_exist(root: Root, variables: dict[str, Any]) -> None:
    root.write(variables | {"ami_parameter": "/voice/old-ami"})
    root.refused("apply", "/voice/old-ami names ami-0123456789abcdef0", "copy it to this region, or write its owner in ami_owners")


def a_log_group_with_two_subscriptions(root: Root, variables: dict[str, Any]) -> None:
    """Nothing tells of them before; the error's address names the group, and what was half made can be destroyed."""
    before = root.aws.account()
    root.write(variables | {"front_log_group": "/app/busy"})
    root.refused("apply", 'aws_cloudwatch_log_subscription_filter.wake["/app/busy"]', "LimitExceededException")
    require(root.aws.account() != before, "an apply that failed at its end had made nothing")
    root.destroy()
    require_same(before, root.aws.account(), "after destroying what was half made")


AT_PLAN = [a_wrong_variable, a_log_group_that_is_missing, an_ami_that_does_not_exist]


def mistakes(tool: Tool, name: str) -> None:
    with local_aws("ap-northeast-2") as aws:
        variables = seed_voice_node(aws) | {"package": str(SMALL_PACKAGE)}
        aws.client("ssm").put_parameter(Name="/voice/old-ami", Value="ami-0123456789abcdef0", Type="String")
        seed_busy_log_group(aws)
        before = aws.account()
        root = tool.root("infra/examples/voice-node", name, aws, variables)
        for mistake in AT_PLAN:
            with step(name, mistake.__name__.replace("_", " ")):
                mistake(root, variables)
                require_same(before, aws.account(), f"{mistake.__name__}: something was made")
        with step(name, "a log group with two subscriptions"):
            a_log_group_with_two_subscriptions(root, variables)


# -- all of it


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("terraform")
    parser.add_argument("work", type=Path)
    parser.add_argument("package", type=Path)
    day = parser.add_mutually_exclusive_group(required=True)
    day.add_argument("--day", type=Path, help="the program that uses what was applied for a day")
    day.add_argument("--without-day", action="store_true")
    parser.add_argument("--only", default="", help="only what has this word in its name")
    return parser.parse_args()


def main() -> int:
    chosen = arguments()
    tool = Tool(chosen.terraform, chosen.work.resolve(), chosen.package.resolve(), chosen.day and chosen.day.resolve())
    parts = {name: example for name in EXAMPLES} | {"full": full, "mistakes": mistakes}
    asked = {name: part for name, part in parts.items() if chosen.only in name}
    began, failed = time.monotonic(), 0
    # Two at once: most of the time a provider waits between two looks.
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        running = {pool.submit(part, tool, name): name for name, part in asked.items()}
        for done in concurrent.futures.as_completed(running):
            if error := done.exception():
                failed += 1
                print(f"FAILED: {running[done]}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    if tool.day and not chosen.only and not failed:
        with step("rights", "each permission is used or explained"):
            require_rights(tool)
    print(f"applied: {len(asked) - failed} of {len(asked)} parts, {time.monotonic() - began:.0f} s")
    return 1 if failed or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
