"""Faults that a test asks for, each spent on the calls it matches."""

from typing import Any

from protocols import Call, service_name

FOREVER = -1

DEFAULTS: dict[str, Any] = {
    "service": None,  # None: any
    "action": None,
    "match": None,  # text that the request's body must hold
    "skip": 0,  # matching calls let through first
    "times": 1,  # calls to spoil; -1: until cleared
    "code": None,
    "status": None,
    "message": "injected fault",
    "delay_ms": 0,  # real time
    "after": False,  # carried out, then the answer is lost
    "stale_ms": None,  # DescribeInstances answers as of that long ago
    "body": None,  # GetMetricData: {"<query id>" or "*": {"status_code": …}}
}

# Statuses AWS sends with these codes; anything else is 400 unless the test says so.
STATUS_OF_CODE = {
    "RequestLimitExceeded": 503,
    "InsufficientInstanceCapacity": 500,
    "InternalError": 500,
    "InternalServerError": 500,
    "InternalFailure": 500,
    "ServiceUnavailable": 503,
    "ServiceUnavailableException": 500,
    "Unavailable": 503,
}


class Faults:
    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []

    def add(self, given: list[dict[str, Any]]) -> None:
        self._waiting.extend([complete(fault) for fault in given])

    def waiting(self) -> list[dict[str, Any]]:
        return list(self._waiting)

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, call: Call) -> dict[str, Any] | None:
        """The fault for this call, if one waits for it; its count goes down by one."""
        for fault in self._waiting:
            if not _matches(fault, call):
                continue
            if fault["skip"] > 0:
                fault["skip"] -= 1
                continue
            if fault["times"] != FOREVER:
                fault["times"] -= 1
            if fault["times"] == 0:
                self._waiting.remove(fault)
            return fault
        return None


def complete(given: dict[str, Any]) -> dict[str, Any]:
    unknown = set(given) - set(DEFAULTS)
    if unknown:
        raise ValueError(f"unknown in a fault: {', '.join(sorted(unknown))}")
    fault = DEFAULTS | given
    if fault["times"] == 0 or fault["times"] < FOREVER:
        raise ValueError("times of a fault is 1 or more, or -1")
    if fault["service"]:
        fault["service"] = service_name(fault["service"])
    if fault["status"] is None:
        fault["status"] = STATUS_OF_CODE.get(fault["code"], 400)
    if fault["body"] and "status_code" in fault["body"]:
        fault["body"] = {"*": fault["body"]}
    return fault


def _matches(fault: dict[str, Any], call: Call) -> bool:
    return (
        fault["service"] in (None, call.service)
        and fault["action"] in (None, call.action)
        and (fault["match"] is None or fault["match"] in call.text)
    )
