"""EventBridge's TestEventPattern, which moto answers with nothing: whether an event matches, by moto's own matcher."""

import json
from typing import Any

from moto.events.exceptions import ValidationException
from moto.events.models import EventPattern
from moto.events.responses import EventsHandler

NEEDED = ("id", "detail-type", "source", "account", "time", "region", "resources", "detail")


def install() -> None:
    EventsHandler.test_event_pattern = lambda self: answer(self._get_param("EventPattern"), self._get_param("Event"))


def answer(pattern: str, event: str) -> str:
    try:
        read: dict[str, Any] = json.loads(event)
    except ValueError:
        raise ValidationException("Parameter Event is not valid.") from None
    # AWS refuses an event that EventBridge could not have sent.
    if missing := [name for name in NEEDED if name not in read]:
        raise ValidationException(f"Parameter Event is not valid. Reason: {missing[0]} is missing")
    return json.dumps({"Result": EventPattern.load(pattern).matches_event(read)})
