"""CloudWatch Logs' FilterLogEvents and PutLogEvents on moto's groups and streams.

moto's filter returns every event for a pattern it does not know, and its put names the wrong
events as too old and too new.
"""

import bisect
import json
import re
from collections.abc import Iterator
from typing import Any

from moto.logs.exceptions import InvalidParameterException, ResourceNotFoundException
from moto.logs.models import LogEvent, LogGroup, LogsBackend, LogStream
from moto.logs.responses import LogsResponse

from clock import VirtualClock
from config import Config
from log_patterns import matcher

DAY_MS = 86_400_000
OLDEST_MS = 14 * DAY_MS
NEWEST_MS = DAY_MS // 12
LARGEST_COUNT = 10_000  # of one PutLogEvents, and of one page
LARGEST_BYTES = 1_048_576
BYTES_BESIDE_MESSAGE = 26

# Where an event stands among the others: time, time of ingestion, number.
Place = tuple[int, int, int]
BEFORE_ALL: Place = (-1, -1, -1)
TOKEN = re.compile(r"^after/(-?\d+)/(-?\d+)/(-?\d+)$")


def install(clock: VirtualClock, config: Config) -> None:
    def filter_events(self: Any) -> str:
        return json.dumps(_filter(self.logs_backend, json.loads(self.body), config.values))

    def put_events(
        self: Any, log_group_name: str, log_stream_name: str, log_events: list[dict[str, Any]]
    ) -> tuple[str, dict[str, int]]:
        return _put(_group(self, log_group_name), log_stream_name, log_events, clock.now_ms)

    LogsResponse.filter_log_events = filter_events
    LogsBackend.put_log_events = put_events


def _group(backend: LogsBackend, name: str) -> LogGroup:
    if name not in backend.groups:
        raise ResourceNotFoundException
    return backend.groups[name]


def _size(message: str) -> int:
    return len(message.encode()) + BYTES_BESIDE_MESSAGE


# -- PutLogEvents


def _put(group: LogGroup, stream: str, events: list[dict[str, Any]], now_ms: int) -> tuple[str, dict[str, int]]:
    """Keeps what is neither too old nor too new; tells moto's answer which were not kept."""
    times = [event["timestamp"] for event in events]
    _refuse_batch(events, times)
    too_old = bisect.bisect_left(times, now_ms - OLDEST_MS)
    kept_days = int(group.retention_in_days or 0)  # 0: for ever
    expired = bisect.bisect_left(times, now_ms - kept_days * DAY_MS) if kept_days else 0
    too_new = bisect.bisect_right(times, now_ms + NEWEST_MS)
    first = max(too_old, expired)
    if first < too_new and times[too_new - 1] - times[first] > DAY_MS:
        raise InvalidParameterException("The batch of log events in a single PutLogEvents request spans over 24 hours.")
    token = group.put_log_events(stream, events[first:too_new])
    rejected = {}
    if too_old:
        rejected["tooOldLogEventEndIndex"] = too_old
    if expired > too_old:
        rejected["expiredLogEventEndIndex"] = expired
    if too_new < len(times):
        rejected["tooNewLogEventStartIndex"] = too_new
    return token, rejected


def _refuse_batch(events: list[dict[str, Any]], times: list[int]) -> None:
    if not 1 <= len(events) <= LARGEST_COUNT:
        raise InvalidParameterException(
            constraint=f"Member must have length between 1 and {LARGEST_COUNT}",
            parameter="logEvents",
            value=len(events),
        )
    if times != sorted(times):
        raise InvalidParameterException("Log events in a single PutLogEvents request must be in chronological order.")
    size = sum(_size(event["message"]) for event in events)
    if size > LARGEST_BYTES:
        raise InvalidParameterException(f"Upload too large: {size} bytes exceeds limit of {LARGEST_BYTES}")


# -- FilterLogEvents


def _filter(backend: LogsBackend, request: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    passes = matcher(request.get("filterPattern"))
    group = _group(backend, _group_name(request))
    found = sorted(_within(_streams(group, request), request), key=_place)
    token, limit = request.get("nextToken"), _limit(request)
    after = _place_of(token)
    if token is None and settings["empty_first_log_page"]:
        return _answer([], BEFORE_ALL)
    rest = [entry for entry in found if _place(entry) > after and passes(entry[1].message)]
    page = _page(rest, min(limit, settings["filter_events_per_page"]))
    return _answer(page, _place(page[-1]) if len(page) < len(rest) else None)


def _group_name(request: dict[str, Any]) -> str:
    name, identifier = request.get("logGroupName"), request.get("logGroupIdentifier")
    if (name is None) == (identifier is None):
        raise InvalidParameterException("Give either logGroupName or logGroupIdentifier, and not both.")
    return name or identifier.removesuffix(":*").split(":log-group:")[-1]


def _streams(group: LogGroup, request: dict[str, Any]) -> list[LogStream]:
    names, prefix = request.get("logStreamNames"), request.get("logStreamNamePrefix")
    if names and prefix:
        raise InvalidParameterException("Give logStreamNames or logStreamNamePrefix, and not both.")
    if any(name not in group.streams for name in names or []):
        raise ResourceNotFoundException("The specified log stream does not exist.")
    if names:
        return [group.streams[name] for name in names]
    return [stream for name, stream in group.streams.items() if name.startswith(prefix or "")]


def _within(streams: list[LogStream], request: dict[str, Any]) -> Iterator[tuple[LogStream, LogEvent]]:
    """Both ends belong to the range: only an event *later* than endTime is left out."""
    start_ms, end_ms = request.get("startTime", 0), request.get("endTime", float("inf"))
    for stream in streams:
        for event in stream.events:
            if start_ms <= event.timestamp <= end_ms:
                yield stream, event


def _place(entry: tuple[LogStream, LogEvent]) -> Place:
    event = entry[1]
    return (event.timestamp, event.ingestion_time, event.event_id)


def _place_of(token: str | None) -> Place:
    """The token names the last event shown, so that events which come in later shift no page."""
    if token is None:
        return BEFORE_ALL
    found = TOKEN.match(token)
    if not found:
        raise InvalidParameterException("The specified nextToken is invalid.")
    time_ms, ingested_ms, number = (int(part) for part in found.groups())
    return (time_ms, ingested_ms, number)


def _limit(request: dict[str, Any]) -> int:
    limit = request.get("limit", LARGEST_COUNT)
    if not 1 <= limit <= LARGEST_COUNT:
        raise InvalidParameterException(
            constraint=f"Member must have value between 1 and {LARGEST_COUNT}", parameter="limit", value=limit
        )
    return limit


def _page(entries: list[tuple[LogStream, LogEvent]], count: int) -> list[tuple[LogStream, LogEvent]]:
    """As many as fit, at least one: else a reader would turn in a circle."""
    size = 0
    for index, (_, event) in enumerate(entries[:count]):
        size += _size(event.message)
        if index and size > LARGEST_BYTES:
            return entries[:index]
    return entries[:count]


def _answer(page: list[tuple[LogStream, LogEvent]], last: Place | None) -> dict[str, Any]:
    """AWS keeps searchedLogStreams empty."""
    events = [event.to_filter_dict() | {"logStreamName": stream.log_stream_name} for stream, event in page]
    answer: dict[str, Any] = {"events": events, "searchedLogStreams": []}
    if last is not None:
        answer["nextToken"] = "after/" + "/".join(str(part) for part in last)
    return answer
