"""A permission is used or explained, and an explanation is true."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import rights

GRANT = {"sid": "GrantKeys", "action": "kms:CreateGrant", "reason": "EC2 asks for it"}


def permission(role: str, sid: str, action: str, used: int) -> dict:
    return {"role": role, "policy": "reveille", "sid": sid, "action": action, "used": used}


def answer(*more: dict, refused: tuple = ()) -> dict:
    """Two roles that may start nodes, and both did; each may grant keys, and neither did."""
    rows = [
        permission(role, sid, action, used)
        for role in ("wake", "idle-check")
        for sid, action, used in (("StartNodes", "ec2:StartInstances", 3), ("GrantKeys", "kms:CreateGrant", 0))
    ]
    return {"permissions": [*rows, *more], "refused": list(refused)}


class Rights(unittest.TestCase):
    def check(self, given: dict, reasons: list[dict], *expected: str):
        """The faults, and the same by the program's own answer: its exit code and what it prints."""
        self.assertEqual(list(expected), rights.faults(given, reasons))
        paths = [Path(tempfile.mkdtemp()) / name for name in ("reasons.json", "answer.json")]
        for path, value in zip(paths, (reasons, given)):
            path.write_text(json.dumps(value))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = rights.main(*map(str, paths))
        self.assertEqual(1 if expected else 0, code)
        for line in expected:
            self.assertIn(line, printed.getvalue())
        return printed.getvalue()

    def test_what_one_of_several_runs_used_was_used(self):
        unused = {"permissions": [one | {"used": 0} for one in answer()["permissions"]], "refused": []}
        self.assertEqual(answer(), rights.summed([unused, answer()]))

    def test_used_or_explained(self):
        printed = self.check(answer(), [GRANT])
        self.assertEqual(
            [
                "role        statement   action              used",
                "wake        StartNodes  ec2:StartInstances     3",
                "wake        GrantKeys   kms:CreateGrant        0  EC2 asks for it",
                "idle-check  StartNodes  ec2:StartInstances     3",
                "idle-check  GrantKeys   kms:CreateGrant        0  EC2 asks for it",
                "rights: 4 permissions, each used or explained; no call refused",
            ],
            printed.splitlines(),
        )

    def test_unused_without_a_reason(self):
        unused = permission("wake", "StopNodes", "ec2:StopInstances", 0)
        self.check(answer(unused), [GRANT], "never used: wake, StopNodes, ec2:StopInstances")
        expected = [
            "never used: wake, GrantKeys, kms:CreateGrant",
            "never used: idle-check, GrantKeys, kms:CreateGrant",
        ]
        self.check(answer(), [], *expected)

    def test_a_reason_for_another_action_or_statement_is_none(self):
        for other in ({"action": "kms:Decrypt"}, {"sid": "Grant"}):
            self.check(
                answer(),
                [GRANT | other],
                "never used: wake, GrantKeys, kms:CreateGrant",
                "never used: idle-check, GrantKeys, kms:CreateGrant",
                f"a reason for what is not there: {', '.join((GRANT | other)[name] for name in ('sid', 'action'))}",
            )

    def test_a_reason_for_what_was_used(self):
        reason = {"sid": "StartNodes", "action": "ec2:StartInstances", "reason": "nobody starts"}
        used = [
            f"a reason for what was used: {role}, StartNodes, ec2:StartInstances" for role in ("wake", "idle-check")
        ]
        self.check(answer(), [GRANT, reason], *used)
        self.check(answer(), [GRANT, reason | {"role": "wake"}], used[0])

    def test_a_reason_of_one_role_explains_no_other(self):
        self.check(answer(), [GRANT | {"role": "wake"}], "never used: idle-check, GrantKeys, kms:CreateGrant")
        self.check(answer(), [GRANT | {"role": "wake"}, GRANT | {"role": "idle-check"}])
        absent = "a reason for what is not there: uptime-alarm, GrantKeys, kms:CreateGrant"
        self.check(answer(), [GRANT, GRANT | {"role": "uptime-alarm"}], absent)

    def test_a_reason_without_an_action_stands_for_the_statement(self):
        session = [permission("node", "Session[0]", action, 0) for action in ("ssm:GetDocument", "ssm:PutInventory")]
        reason = {"sid": "Session[0]", "reason": "Session Manager's agent is not played"}
        self.check(answer(*session), [GRANT, reason])
        session[1]["used"] = 1
        self.check(answer(*session), [GRANT, reason], "a reason for what was used: node, Session[0], ssm:PutInventory")

    def test_a_refused_call(self):
        call = {"at_ms": 1, "role": "wake", "service": "ec2", "action": "StopInstances"}
        judged = {"iam_action": "ec2:StopInstances", "resource": "arn:x", "context": {"k": "v"}, "why": "because"}
        unknown = {"iam_action": None, "resource": None, "context": {}, "why": "no mapping"}
        self.check(
            answer(refused=(call | judged, call | unknown)),
            [GRANT],
            'refused: wake: ec2 StopInstances: ec2:StopInstances on arn:x {"k": "v"}: because',
            "refused: wake: ec2 StopInstances: not judged on ? {}: no mapping",
        )

    def test_nothing_is_no_proof(self):
        self.check({"permissions": [], "refused": []}, [], "no role was judged")

    def test_a_reason_says_what_it_is_for_and_why(self):
        path = Path(tempfile.mkdtemp()) / "reasons.json"
        for wrong in ({"sid": "A"}, {"reason": "b"}, {"sid": "A", "reason": " "}, GRANT | {"acton": "x"}):
            path.write_text(json.dumps([wrong]))
            with self.assertRaisesRegex(SystemExit, "a reason has sid"):
                rights.read_reasons(str(path))


if __name__ == "__main__":
    unittest.main()
