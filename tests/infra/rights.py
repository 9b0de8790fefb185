"""Holds what was called to what is allowed: no call was refused, and no permission is there that nothing used.

    python3 tests/infra/rights.py REASONS.json ANSWER.json...

ANSWER is what `GET /local-aws/iam` gave after a run; of several runs the uses are summed. REASONS is a list of `{"sid", "action", "reason"}`, each for a
permission that no call can use, as one that AWS uses on the caller's behalf. Without `action` it stands for the whole
statement, with `role` for that role's only. A reason has to be true: one for what was used, or is not there, is a fault.
"""

import json
import sys
from typing import Any

Row = dict[str, Any]
CHOOSES = ("role", "sid", "action")


def stands_for(reason: Row, permission: Row) -> bool:
    return all(reason[name] == permission[name] for name in CHOOSES if name in reason)


def faults(answer: Row, reasons: list[Row]) -> list[str]:
    permissions = answer["permissions"]
    found = [
        f"refused: {one['role']}: {one['service']} {one['action']}: {one['iam_action'] or 'not judged'}"
        f" on {one['resource'] or '?'} {json.dumps(one['context'])}: {one['why']}"
        for one in answer["refused"]
    ]
    found += [
        f"never used: {_named(one)}"
        for one in permissions
        if not one["used"] and not any(stands_for(reason, one) for reason in reasons)
    ]
    for reason in reasons:
        meant = [one for one in permissions if stands_for(reason, one)]
        if not meant:
            found.append(f"a reason for what is not there: {_named(reason)}")
        found += [f"a reason for what was used: {_named(one)}" for one in meant if one["used"]]
    if not permissions:
        found.append("no role was judged")
    return found


def table(answer: Row, reasons: list[Row]) -> str:
    rows = [("role", "statement", "action", "used", "")]
    for one in answer["permissions"]:
        said = [reason["reason"] for reason in reasons if stands_for(reason, one)]
        rows.append((one["role"], one["sid"], one["action"], str(one["used"]), "; ".join(said)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:{widths[2]}}  {row[3]:>{widths[3]}}  {row[4]}".rstrip()
        for row in rows
    )


def _named(row: Row) -> str:
    return ", ".join(row[name] for name in CHOOSES if name in row)


def read_reasons(path: str) -> list[Row]:
    with open(path) as file:
        reasons = json.load(file)
    for reason in reasons:
        if not {"sid", "reason"} <= set(reason) <= {"reason", *CHOOSES} or not reason["reason"].strip():
            raise SystemExit(f"{path}: a reason has sid, reason, and may have action and role: {json.dumps(reason)}")
    return reasons


def summed(answers: list[Row]) -> Row:
    """What was used in any of the runs was used."""
    permissions: dict[tuple[str, ...], Row] = {}
    for one in (permission for answer in answers for permission in answer["permissions"]):
        known = permissions.setdefault(tuple(one[name] for name in CHOOSES), one | {"used": 0})
        known["used"] += one["used"]
    return {"permissions": list(permissions.values()), "refused": [one for answer in answers for one in answer["refused"]]}


def read_answer(path: str) -> Row:
    with open(path) as file:
        return json.load(file)


def main(reasons_path: str, *answer_paths: str) -> int:
    answer = summed([read_answer(path) for path in answer_paths])
    reasons = read_reasons(reasons_path)
    found = faults(answer, reasons)
    print(table(answer, reasons))
    print(
        "\n".join(found) or f"rights: {len(answer['permissions'])} permissions, each used or explained; no call refused"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
