"""Whether the policies of a role allow a call, and how often each of their permissions was the reason.

Identity policies only, read from moto at each call. What is not built is refused by its name.
"""

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.iam.models import iam_backends

from clock import VirtualClock
from iam_calls import NotJudged, Question, questions
from protocols import AwsError, Call, Request

# What a refusal looks like, by the service of the action: botocore's models and refusals in public bug reports. JSON
# services send 400.
REFUSALS = {
    "ec2": ("UnauthorizedOperation", 403),
    "sns": ("AuthorizationError", 403),
    "sqs": ("AccessDenied", 403),
    "cloudwatch": ("AccessDenied", 403),
    "kms": ("KMSAccessDenied", 400),  # as SNS passes it on
}
REFUSAL = ("AccessDeniedException", 400)


@dataclass
class Statement:
    """One statement of a policy, each element as a list."""

    policy: str
    sid: str
    effect: str
    actions: list[str]
    resources: list[str]
    conditions: list[tuple[str, str, list[str]]]  # operator, key, values


class Refused(Exception):
    """The answer to a question is no."""

    def __init__(self, question: Question, why: str) -> None:
        super().__init__(why)
        self.question = question


class Iam:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._roles: dict[str, str] = {}  # by access key id
        self._used: Counter[tuple[str, ...]] = Counter()
        self._refused: list[dict[str, Any]] = []

    def forget(self) -> None:
        self._roles.clear()
        self._used.clear()
        self._refused.clear()

    def act_as(self, given: dict[str, Any]) -> None:
        """Calls with these keys are judged from now on."""
        if set(given) != {"keys"}:
            raise ValueError("what is wanted is keys")
        for role in given["keys"].values():
            statements_of(role)
        self._roles.update(given["keys"])

    def report(self) -> dict[str, Any]:
        permissions = [
            {"role": role, "policy": one.policy, "sid": one.sid, "action": action}
            | {"used": self._used[role, one.policy, one.sid, action]}
            for role in sorted(set(self._roles.values()))
            for one in statements_of(role)
            if one.effect == "Allow"
            for action in one.actions
        ]
        return {"permissions": permissions, "refused": list(self._refused)}

    def judge(self, call: Call, request: Request) -> None:
        """Raises the refusal that AWS would answer."""
        role = self._roles.get(request.signer.key)
        if role is None:
            return
        used: set[tuple[str, str, str]] = set()
        try:
            statements = statements_of(role)
            for question in questions(call, request):
                used |= allowing(statements, question)
        except NotJudged as error:
            self._note(role, call, None, str(error))
            raise AwsError("NotImplemented", f"local AWS: IAM: {error}", 501) from None
        except Refused as refusal:
            asked = refusal.question
            self._note(role, call, asked, str(refusal))
            code, status = REFUSALS.get(asked.action.split(":")[0], REFUSAL)
            who = f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/local-aws"
            what = f"{who} is not authorized to perform: {asked.action} on resource: {asked.resource}"
            raise AwsError(code, f"User: {what} {refusal}", status) from None
        self._used.update((role, *permission) for permission in used)

    def _note(self, role: str, call: Call, asked: Question | None, why: str) -> None:
        self._refused.append(
            {
                "at_ms": self._clock.now_ms,
                "role": role,
                "service": call.service,
                "action": call.action,
                "iam_action": asked and asked.action,
                "resource": asked and asked.resource,
                "context": asked.context if asked else {},
                "why": why,
            }
        )


# -- Policies


def statements_of(role_name: str) -> list[Statement]:
    """All statements of the role as its policies are now."""
    role = next((role for role in iam_backends[ACCOUNT]["aws"].get_roles() if role.name == role_name), None)
    if role is None:
        raise NotJudged(f"no role {role_name}")
    if role.permissions_boundary_arn:
        raise NotJudged(f"the permissions boundary of {role_name}")
    documents = list(role.policies.items())
    for policy in role.managed_policies.values():
        documents.append((policy.arn, next(one.document for one in policy.versions if one.is_default_version)))
    return [statement for name, document in documents for statement in parsed(name, json.loads(document))]


def parsed(policy: str, document: dict[str, Any]) -> Iterator[Statement]:
    for number, entry in enumerate(_listed(document["Statement"])):
        sid = entry.get("Sid") or f"{policy.split('/')[-1]}[{number}]"
        unknown = set(entry) - {"Sid", "Effect", "Action", "Resource", "Condition"}
        missing = {"Effect", "Action", "Resource"} - set(entry)
        if unknown or missing:
            raise NotJudged(f"{sid} has {_names(unknown)} and lacks {_names(missing)}")
        if entry["Effect"] not in ("Allow", "Deny"):
            raise NotJudged(f"{sid} has the effect {entry['Effect']}")
        if "${" in json.dumps(entry):
            raise NotJudged(f"{sid} has a policy variable")
        conditions = [
            (operator, key, [_text(value) for value in _listed(values)])
            for operator, keys in entry.get("Condition", {}).items()
            for key, values in keys.items()
        ]
        for operator, _, _ in conditions:
            if not OPERATOR.fullmatch(operator):
                raise NotJudged(f"{sid} has the operator {operator}")
        yield Statement(policy, sid, entry["Effect"], _listed(entry["Action"]), _listed(entry["Resource"]), conditions)


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- Evaluation


def allowing(statements: list[Statement], question: Question) -> set[tuple[str, str, str]]:
    """The permissions (policy, statement, action) that allow it; raises Refused where none does or one denies."""
    found = set()
    for one in statements:
        actions = [action for action in one.actions if _pattern(action.lower()).fullmatch(question.action.lower())]
        if not actions or not any(_resource(resource).fullmatch(question.resource) for resource in one.resources):
            continue
        # All of them, so that one that is not known is named whatever the others say.
        if not all([holds(*condition, question) for condition in one.conditions]):
            continue
        if one.effect == "Deny":
            raise Refused(question, f"with an explicit deny in an identity-based policy ({one.policy}, {one.sid})")
        found |= {(one.policy, one.sid, action) for action in actions}
    if not found:
        raise Refused(question, f"because no identity-based policy allows the {question.action} action")
    return found


@functools.cache
def _pattern(text: str, letter: str = ".") -> re.Pattern[str]:
    wild = {"*": f"{letter}*", "?": letter}
    return re.compile("".join(wild.get(one) or re.escape(one) for one in text), re.DOTALL)


@functools.cache
def _resource(text: str) -> re.Pattern[str]:
    """A `*` stays within its segment of the ARN, unless it is the segment's last letter (IAM User Guide, "Resource").
    The last of the six segments may itself hold colons."""
    *segments, last = text.split(":", 5)
    parts = [_pattern(one.removesuffix("*"), "[^:]").pattern + ".*" * one.endswith("*") for one in segments]
    return re.compile(":".join([*parts, _pattern(last).pattern]), re.DOTALL)


def _arn(wanted: str, found: str) -> bool:
    """Segment by segment, unlike a resource."""
    pairs = list(zip(wanted.split(":", 5), found.split(":", 5)))
    return len(pairs) == 6 and all(_pattern(one).fullmatch(other) for one, other in pairs)


TESTS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda wanted, found: wanted == found,
    "StringLike": lambda wanted, found: _pattern(wanted).fullmatch(found) is not None,
    "Bool": lambda wanted, found: wanted.lower() == found.lower(),
    "ArnEquals": _arn,
    "ArnLike": _arn,  # the same, says AWS
}
OPERATOR = re.compile(rf"(ForAllValues:|ForAnyValue:)?({'|'.join(TESTS)})(IfExists)?|Null")


def holds(operator: str, key: str, wanted: list[str], question: Question) -> bool:
    found = question.value(key)
    if operator == "Null":
        return ("true" if found is None else "false") in wanted
    quantifier, test, if_exists = OPERATOR.fullmatch(operator).groups()
    values = found if isinstance(found, list) else [] if found is None else [found]
    passed = [any(TESTS[test](one, value) for one in wanted) for value in values]
    if found is None and if_exists:
        return True
    if quantifier == "ForAllValues:":
        return all(passed)  # true where there is none
    if quantifier is None and isinstance(found, list):
        raise NotJudged(f"{operator} of {key}, which has many values")
    return any(passed)
