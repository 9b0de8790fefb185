"""CloudWatch metrics in memory: an index by metric and minute, in place of moto's list."""

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 86_400_000


@dataclass(frozen=True)
class MetricName:
    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]  # sorted: AWS does not mind the order, but each pair

    @staticmethod
    def of(namespace: str, name: str, dimensions: list[dict[str, str]] | None) -> "MetricName":
        pairs = [(pair["Name"], pair["Value"]) for pair in dimensions or []]
        return MetricName(namespace, name, tuple(sorted(pairs)))


@dataclass
class Aggregate:
    """A statistic set, with the single values where they were sent."""

    count: float = 0.0
    total: float = 0.0
    low: float = float("inf")
    high: float = float("-inf")
    values: list[tuple[float, float]] = field(default_factory=list)  # (value, times)

    def add_value(self, value: float, times: float) -> None:
        self.add(Aggregate(times, value * times, value, value, [(value, times)]))

    def add(self, other: "Aggregate") -> None:
        self.count += other.count
        self.total += other.total
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)
        self.values.extend(other.values)

    def statistic(self, name: str) -> float | None:
        """None where the sent data cannot tell, as a percentile of statistic sets."""
        plain = {"SampleCount": self.count, "Sum": self.total, "Minimum": self.low, "Maximum": self.high}
        if name in plain:
            return plain[name]
        if name == "Average":
            return self.total / self.count if self.count else None
        return self._percentile(name)

    def _percentile(self, name: str) -> float | None:
        share = percentile_share(name)
        reached = 0.0
        for value, times in sorted(self.values):
            reached += times
            if reached >= share * self.count:
                return value
        return None


def percentile_share(name: str) -> float:
    """0.99 for "p99". Other extended statistics are not built."""
    if not name.startswith("p"):
        raise NotImplementedError(f"statistic {name}")
    return float(name[1:]) / 100


class Series:
    """The points of one metric, one aggregate per time and unit."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._points: dict[int, dict[str, Aggregate]] = {}

    def add(self, at_ms: int, unit: str, aggregate: Aggregate) -> None:
        if at_ms not in self._points:
            bisect.insort(self._times, at_ms)
            self._points[at_ms] = {}
        self._points[at_ms].setdefault(unit, Aggregate()).add(aggregate)

    def between(self, start_ms: int, end_ms: int, unit: str | None) -> Iterable[tuple[int, Aggregate]]:
        """Points in [start, end), in time order."""
        first = bisect.bisect_left(self._times, start_ms)
        last = bisect.bisect_left(self._times, end_ms)
        for at_ms in self._times[first:last]:
            for point_unit, aggregate in self._points[at_ms].items():
                if unit in (None, point_unit):
                    yield at_ms, aggregate


class MetricStore:
    def __init__(self) -> None:
        self._series: dict[MetricName, Series] = {}

    def put(self, namespace: str, datum: dict[str, Any], now_ms: int) -> None:
        """Stores one MetricDatum; without a high resolution it belongs to its whole minute."""
        at_ms = datum.get("TimestampMs", now_ms)
        step = 1000 if datum.get("StorageResolution") == 1 else MINUTE_MS
        name = MetricName.of(namespace, datum["MetricName"], datum.get("Dimensions"))
        series = self._series.setdefault(name, Series())
        series.add(at_ms // step * step, datum.get("Unit", "None"), _aggregate(datum))

    def names(self) -> list[MetricName]:
        return list(self._series)

    def between(self, name: MetricName, start_ms: int, end_ms: int, unit: str | None) -> list[tuple[int, Aggregate]]:
        series = self._series.get(name)
        return list(series.between(start_ms, end_ms, unit)) if series else []


def _aggregate(datum: dict[str, Any]) -> Aggregate:
    aggregate = Aggregate()
    if "StatisticValues" in datum:
        sent = datum["StatisticValues"]
        aggregate.add(Aggregate(sent["SampleCount"], sent["Sum"], sent["Minimum"], sent["Maximum"]))
    elif "Values" in datum:
        counts = datum.get("Counts") or [1.0] * len(datum["Values"])
        for value, times in zip(datum["Values"], counts, strict=True):
            aggregate.add_value(value, times)
    else:
        aggregate.add_value(datum["Value"], 1.0)
    return aggregate


def in_periods(points: Iterable[tuple[int, Aggregate]], start_ms: int, period_ms: int) -> list[tuple[int, Aggregate]]:
    """Points gathered into periods counted from `start_ms`, each named by its beginning."""
    periods: dict[int, Aggregate] = {}
    for at_ms, aggregate in points:
        begin = start_ms + (at_ms - start_ms) // period_ms * period_ms
        if begin not in periods:  # setdefault would make an aggregate for each point
            periods[begin] = Aggregate()
        periods[begin].add(aggregate)
    return sorted(periods.items())


def finest_period_ms(age_ms: int) -> int:
    """What is still kept of data that old: a query whose period is no multiple of it gets nothing."""
    if age_ms <= 3 * HOUR_MS:
        return 1000
    if age_ms <= 15 * DAY_MS:
        return MINUTE_MS
    if age_ms <= 63 * DAY_MS:
        return 5 * MINUTE_MS
    return HOUR_MS
