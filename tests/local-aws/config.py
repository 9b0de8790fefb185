"""Settings a test can change while the local AWS runs, for all instances or for one."""

from typing import Any

# Per instance these override the global value.
INSTANCE_DEFAULTS: dict[str, Any] = {
    "pending_seconds": 20,
    "stopping_seconds": 40,
    "shutting_down_seconds": 20,
    "status_ok_seconds": 60,  # from launch until the status checks pass
    # What AWS answers to a stop while pending is not documented; tools report the refusal.
    "stop_on_pending": "refuse",  # or "accept"
}

GLOBAL_DEFAULTS: dict[str, Any] = INSTANCE_DEFAULTS | {
    "empty_first_page": False,  # DescribeInstances begins with an empty page and a token
    "datapoints_per_page": 100_800,  # GetMetricData's page when the caller names none
    "no_capacity_types": [],  # StartInstances finds no room for these
    "empty_first_log_page": False,  # FilterLogEvents begins with an empty page and a token
    "filter_events_per_page": 10_000,  # FilterLogEvents' page when the caller names no smaller one
}

# Not settings but facts about one instance.
INSTANCE_ONLY = ("falls_back", "spot", "disable_api_stop", "no_capacity")

FALLS_BACK_DEFAULTS: dict[str, Any] = {
    "code": "Client.InternalError",
    "message": "Client.InternalError: Client error on launch",
    "after_seconds": 5,
    "times": 1,
}


class Config:
    def __init__(self) -> None:
        self.values = dict(GLOBAL_DEFAULTS)

    def update(self, given: dict[str, Any]) -> None:
        refuse_unknown(given, GLOBAL_DEFAULTS)
        _refuse_no_list(given.get("no_capacity_types", []))
        self.values.update(given)


def _refuse_no_list(types: Any) -> None:
    """A bare "g6.xlarge" would be taken for a list of letters, and nothing would ever match."""
    if not isinstance(types, list) or not all(isinstance(name, str) for name in types):
        raise ValueError("no_capacity_types is a list of instance types")


def refuse_unknown(given: dict[str, Any], known: Any) -> None:
    unknown = set(given) - set(known)
    if unknown:
        raise ValueError(f"unknown setting: {', '.join(sorted(unknown))}")
