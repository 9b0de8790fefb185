"""Reads the plans that `terraform test -json -verbose` prints, and lints each policy in them."""

import json
import sys
from collections.abc import Iterator

import parliament

# Trust and resource policies have principals, which parliament leaves to others; the tests assert theirs.
LINTED = {"aws_iam_role_policy": "policy"}


def policies(path: str) -> Iterator[tuple[str, str]]:
    for line in open(path):
        plan = json.loads(line).get("test_plan") or {}
        for change in plan.get("resource_changes", []):
            after = change["change"]["after"] or {}
            if policy := after.get(LINTED.get(change["type"], "")):
                yield change["address"], policy


def findings(policy: str) -> list[str]:
    return [f"{found.issue}: {found.detail or found.location}" for found in parliament.analyze_policy_string(policy).findings]


if __name__ == "__main__":
    seen = set(policies(sys.argv[1]))
    faults = [f"{address}: {finding}" for address, policy in sorted(seen) for finding in findings(policy)]
    print("\n".join(faults) or f"policy lint: {len(seen)} policies of {len({address for address, _ in seen})} roles, nothing found")
    sys.exit(1 if faults or not seen else 0)
