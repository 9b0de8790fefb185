"""CloudWatch's metric calls, answered here and not by moto, and EC2's status-check metrics."""

import datetime
from collections.abc import Callable
from typing import Any

from clock import VirtualClock, aware_utc
from config import Config
from ec2_life import Ec2Life
from metrics import (
    DAY_MS,
    MINUTE_MS,
    Aggregate,
    MetricName,
    MetricStore,
    finest_period_ms,
    in_periods,
    percentile_share,
)
from protocols import AwsError

STATUS_CHECK_METRICS = ("StatusCheckFailed", "StatusCheckFailed_Instance", "StatusCheckFailed_System")
PASSED_CHECK = Aggregate(1.0, 0.0, 0.0, 0.0, [(0.0, 1.0)])  # one for all points: nobody adds to a point
METRICS_PER_LIST_PAGE = 500
QUERIES_PER_CALL = 500
METRICS_PER_PUT = 1000


class CloudWatch:
    def __init__(self, clock: VirtualClock, config: Config, life: Ec2Life) -> None:
        self._clock = clock
        self._config = config
        self._life = life
        self._store = MetricStore()

    def operation(self, action: str) -> Callable[..., dict[str, Any]] | None:
        """The call by its AWS name; None: moto's."""
        return {
            "PutMetricData": self.put_metric_data,
            "GetMetricData": self.get_metric_data,
            "GetMetricStatistics": self.get_metric_statistics,
            "ListMetrics": self.list_metrics,
        }.get(action)

    def reset(self) -> None:
        self._store = MetricStore()

    # -- PutMetricData

    def put_metric_data(self, request: dict[str, Any]) -> dict[str, Any]:
        """Stores points. AWS refuses namespaces of its own ("AWS/…"); here a test plays those services."""
        data = request.get("MetricData", [])
        if len(data) > METRICS_PER_PUT:
            raise AwsError("InvalidParameterValue", f"MetricData holds more than {METRICS_PER_PUT} items.")
        stamped = [self._stamped(datum) for datum in data]
        for datum in stamped:
            self._store.put(request["Namespace"], datum, self._clock.now_ms)
        return {}

    def _stamped(self, datum: dict[str, Any]) -> dict[str, Any]:
        if "Timestamp" not in datum:
            return datum
        at_ms = epoch_ms(datum["Timestamp"])
        age = self._clock.now_ms - at_ms
        if age > 14 * DAY_MS or age < -DAY_MS // 12:
            raise AwsError(
                "InvalidParameterValue",
                "The parameter MetricData.member.1.Timestamp must specify a time no more than two weeks in the past "
                "and no more than two hours in the future.",
            )
        return datum | {"TimestampMs": at_ms}

    # -- GetMetricData

    def get_metric_data(self, request: dict[str, Any], override: dict[str, Any] | None = None) -> dict[str, Any]:
        """`override` is a fault: a StatusCode per query id, or for "*"."""
        queries = request.get("MetricDataQueries", [])
        if len(queries) > QUERIES_PER_CALL:
            raise AwsError("ValidationError", f"MetricDataQueries holds more than {QUERIES_PER_CALL} items.")
        start_ms, end_ms = _range(request)
        newest_first = request.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        results = []
        for query in queries:
            values = self._query_values(query, start_ms, end_ms)
            if query.get("ReturnData", True):
                results.append((query, values[::-1] if newest_first else values))
        page_size = request.get("MaxDatapoints") or self._config.values["datapoints_per_page"]
        return _metric_data_page(results, _offset(request.get("NextToken")), page_size, override or {})

    def _query_values(self, query: dict[str, Any], start_ms: int, end_ms: int) -> list[tuple[int, float]]:
        stat = query.get("MetricStat")
        if stat is None:
            raise NotImplementedError("metric math and Metrics Insights")
        metric = stat["Metric"]
        name = MetricName.of(metric["Namespace"], metric["MetricName"], metric.get("Dimensions"))
        periods = self._periods(name, start_ms, end_ms, stat["Period"], stat.get("Unit"))
        values = [(at_ms, aggregate.statistic(stat["Stat"])) for at_ms, aggregate in periods]
        return [(at_ms, value) for at_ms, value in values if value is not None]

    def _periods(
        self, name: MetricName, start_ms: int, end_ms: int, period: int, unit: str | None
    ) -> list[tuple[int, Aggregate]]:
        if period not in (1, 5, 10, 20, 30) and (period < 60 or period % 60):
            raise AwsError("ValidationError", f"Period {period} is not 1, 5, 10, 20, 30 or a multiple of 60.")
        finest = finest_period_ms(self._clock.now_ms - start_ms)
        start_ms = start_ms // max(finest, MINUTE_MS) * max(finest, MINUTE_MS)
        if period * 1000 % finest:
            return []
        points = self._store.between(name, start_ms, end_ms, unit)
        points += self._status_checks(name, start_ms, end_ms)
        return in_periods(points, start_ms, period * 1000)

    def _status_checks(self, name: MetricName, start_ms: int, end_ms: int) -> list[tuple[int, Aggregate]]:
        """0 for each minute of a running instance whose checks pass; nothing before and after."""
        if name.namespace != "AWS/EC2" or name.name not in STATUS_CHECK_METRICS:
            return []
        if len(name.dimensions) != 1 or name.dimensions[0][0] != "InstanceId":
            return []
        minutes = self._life.checked_minutes(name.dimensions[0][1], start_ms, end_ms)
        return [(at_ms, PASSED_CHECK) for at_ms in minutes]

    # -- GetMetricStatistics

    def get_metric_statistics(self, request: dict[str, Any]) -> dict[str, Any]:
        start_ms, end_ms = _range(request)
        name = MetricName.of(request["Namespace"], request["MetricName"], request.get("Dimensions"))
        periods = self._periods(name, start_ms, end_ms, request["Period"], request.get("Unit"))
        unit = request.get("Unit", "None")
        datapoints = [
            {"Timestamp": aware_utc(at_ms), "Unit": unit} | _statistics(request, found) for at_ms, found in periods
        ]
        return {"Label": request["MetricName"], "Datapoints": datapoints}

    # -- ListMetrics

    def list_metrics(self, request: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in self._store.names() + self._status_check_names() if _is_asked(name, request)]
        offset = _offset(request.get("NextToken"))
        answer: dict[str, Any] = {"Metrics": [_metric(name) for name in names[offset : offset + METRICS_PER_LIST_PAGE]]}
        if len(names) > offset + METRICS_PER_LIST_PAGE:
            answer["NextToken"] = str(offset + METRICS_PER_LIST_PAGE)
        return answer

    def _status_check_names(self) -> list[MetricName]:
        checked = [instance_id for instance_id, life in self._life.lives.items() if life.checked_spans]
        known = set(self._store.names())
        made = [
            MetricName("AWS/EC2", name, (("InstanceId", instance_id),))
            for instance_id in checked
            for name in STATUS_CHECK_METRICS
        ]
        return [name for name in made if name not in known]


def epoch_ms(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    return round(float(value) * 1000)


def _range(request: dict[str, Any]) -> tuple[int, int]:
    start_ms, end_ms = epoch_ms(request["StartTime"]), epoch_ms(request["EndTime"])
    if start_ms >= end_ms:
        raise AwsError("ValidationError", "The parameter StartTime must be less than the parameter EndTime.")
    return start_ms, end_ms


def _offset(token: str | None) -> int:
    if token is None:
        return 0
    if not token.isdigit():
        raise AwsError("InvalidNextToken", "The NextToken is not valid.")
    return int(token)


def _metric_data_page(
    results: list[tuple[dict[str, Any], list[tuple[int, float]]]], offset: int, size: int, override: dict[str, Any]
) -> dict[str, Any]:
    """One page of all results laid end to end; a query with points still to come is PartialData."""
    codes = {query["Id"]: _overridden(query["Id"], override) for query, _ in results}
    total = sum(len(values) for _, values in results)
    if "PartialData" in codes.values():
        size = min(size, total // 2)  # the rest comes with the token
    end = offset + size
    page, begin = [], 0
    for query, values in results:
        shown = values[max(offset - begin, 0) : max(end - begin, 0)]
        begin += len(values)
        code = codes[query["Id"]] or ("PartialData" if begin > end else "Complete")
        page.append(_result(query, [] if code in ("InternalError", "Forbidden") else shown, code))
    more = total > end or "PartialData" in codes.values()
    return {"MetricDataResults": page, "Messages": []} | ({"NextToken": str(end)} if more else {})


def _overridden(query_id: str, override: dict[str, Any]) -> str | None:
    found = override.get(query_id, override.get("*"))
    return found["status_code"] if found else None


def _result(query: dict[str, Any], values: list[tuple[int, float]], status_code: str) -> dict[str, Any]:
    return {
        "Id": query["Id"],
        "Label": query.get("Label") or query["MetricStat"]["Metric"]["MetricName"],
        "Timestamps": [aware_utc(at_ms) for at_ms, _ in values],
        "Values": [float(value) for _, value in values],
        "StatusCode": status_code,
    }


def _statistics(request: dict[str, Any], found: Aggregate) -> dict[str, Any]:
    answer: dict[str, Any] = {name: found.statistic(name) for name in request.get("Statistics", [])}
    if extended := request.get("ExtendedStatistics"):
        answer["ExtendedStatistics"] = {name: found.statistic(name) for name in extended if percentile_share(name)}
    return answer


def _metric(name: MetricName) -> dict[str, Any]:
    dimensions = [{"Name": key, "Value": value} for key, value in name.dimensions]
    return {"Namespace": name.namespace, "MetricName": name.name, "Dimensions": dimensions}


def _is_asked(name: MetricName, request: dict[str, Any]) -> bool:
    if request.get("Namespace", name.namespace) != name.namespace:
        return False
    if request.get("MetricName", name.name) != name.name:
        return False
    own = dict(name.dimensions)
    for wanted in request.get("Dimensions", []):
        if wanted["Name"] not in own or own[wanted["Name"]] != wanted.get("Value", own[wanted["Name"]]):
            return False
    return True
