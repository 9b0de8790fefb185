"""What AWS makes or overwrites without asking comes after a role, whose name IAM refuses if it is there already.

So a second apply by mistake, from another checkout or state, ends before it touches anything of the first: what it took over it
would destroy later. order.py TERRAFORM ROOT..."""

import re
import subprocess
import sys
from pathlib import Path

# AWS refuses to make a second of these under the same name, so they may come at any time.
REFUSED = {
    "aws_budgets_budget",
    "aws_cloudwatch_log_group",
    "aws_dynamodb_table",
    "aws_iam_role",
    "terraform_data",  # no AWS at all
}


def graph(terraform: str, root: Path) -> dict[str, set[str]]:
    """What each resource waits for."""
    command = ["timeout", "120", terraform, "graph"]
    dot = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    found = {name: set() for name in re.findall(r'^\s*"([^"]+)" \[label', dot, re.M)}
    for name, needed in re.findall(r'^\s*"([^"]+)" -> "([^"]+)"', dot, re.M):
        found[name].add(needed)
    return found


def kind(address: str) -> str:
    return address.split(".")[-2]


def before(needs: dict[str, set[str]], address: str) -> set[str]:
    seen: set[str] = set()
    waiting = [address]
    while waiting:
        new = needs[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def faults(terraform: str, root: Path) -> list[str]:
    needs = graph(terraform, root)
    resources = [one for one in needs if ".data." not in f".{one}" and kind(one) not in REFUSED]
    return [
        f"{root}: {one} has to depend on a role, or a second apply by mistake makes or overwrites it"
        for one in resources
        if not any(kind(other) == "aws_iam_role" for other in before(needs, one))
    ]


if __name__ == "__main__":
    terraform, *roots = sys.argv[1:]
    found = [fault for root in roots for fault in faults(terraform, Path(root))]
    print("\n".join(found) or "orders: a second apply by mistake ends at the roles")
    sys.exit(1 if found else 0)
