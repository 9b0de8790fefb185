"""The one clock of the local AWS: it stands still until a test moves it."""

import datetime
import sys

import moto.core.utils

DEFAULT_START = "2026-11-30T00:00:00Z"


class VirtualClock:
    """Milliseconds since the epoch, moved by hand."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.now_ms = start_ms

    def utcnow(self) -> datetime.datetime:
        """The time as moto wants it: in UTC and without a zone."""
        return naive_utc(self.now_ms)


def naive_utc(at_ms: int) -> datetime.datetime:
    return aware_utc(at_ms).replace(tzinfo=None)


def aware_utc(at_ms: int) -> datetime.datetime:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return epoch + datetime.timedelta(milliseconds=at_ms)


def rfc3339(at_ms: int) -> str:
    """Whole seconds with a Z, as EventBridge writes `time`."""
    return aware_utc(at_ms).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError(f"{text} names no time zone")
    return round(moment.timestamp() * 1000)


def give_clock_to_moto(clock: VirtualClock) -> None:
    """Makes every moto module ask `clock`.

    moto's modules copy `utcnow` by `from … import`, and importing moto.core.utils already loads
    some of them: those get their copy replaced, all later ones copy the new function.
    """
    original = moto.core.utils.utcnow
    for name, module in list(sys.modules.items()):
        if name.startswith("moto") and getattr(module, "utcnow", None) is original:
            module.utcnow = clock.utcnow
