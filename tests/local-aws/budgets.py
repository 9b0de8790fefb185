"""AWS Budgets: cost budgets in US dollars with their notifications and subscribers.

What was spent is not computed: a test sets it, with the delay that billing would have had.
"""

import copy
import datetime
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import botocore.model
import botocore.session

from clock import VirtualClock, aware_utc
from config import refuse_unknown
from protocols import AwsError

# The model names five in one place and ten in another: a caller must get by with five.
NOTIFICATIONS_PER_BUDGET = 5
SUBSCRIBERS_PER_NOTIFICATION = {"SNS": 1, "EMAIL": 10}
ITEMS_PER_PAGE = 100

AMOUNT = re.compile(r"([0-9]*\.)?[0-9]+")
NAME = re.compile(r"(?![^:\\]*/action/|(?i:.*<script>.*</script>.*))[^:\\]+")
ACCOUNT = re.compile(r"\d{12}")
ARN = re.compile(r"arn:aws[a-z-]*:budgets::(\d{12}):budget/(.+)")
ADDRESSES = {"SNS": re.compile(r"arn:aws[a-z-]*:sns:[^:\s]+:\d{12}:\S+"), "EMAIL": re.compile(r"[^@\s]+@[^@\s]+")}

# 2087-06-15T00:00:00Z, the end of a budget that names none.
LAST_END = 3_706_473_600

OLD_FILTERS = ("CostFilters", "CostTypes")
NEW_FILTERS = ("FilterExpression", "Metrics")
COST_TYPES = {
    "IncludeTax": True,
    "IncludeSubscription": True,
    "UseBlended": False,
    "IncludeRefund": True,
    "IncludeCredit": True,
    "IncludeUpfront": True,
    "IncludeRecurring": True,
    "IncludeOtherSubscription": True,
    "IncludeSupport": True,
    "IncludeDiscount": True,
    "UseAmortized": False,
}


@dataclass
class Notification:
    kind: str  # "ACTUAL" or "FORECASTED"
    operator: str
    threshold: Decimal
    threshold_type: str
    subscribers: list[dict[str, str]] = field(default_factory=list)

    @staticmethod
    def of(given: dict[str, Any]) -> "Notification":
        return Notification(
            given["NotificationType"],
            given["ComparisonOperator"],
            Decimal(str(given["Threshold"])),
            given.get("ThresholdType", "PERCENTAGE"),
        )

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from the others of its budget; its state does not."""
        return (self.kind, self.operator, self.threshold, self.threshold_type)


@dataclass
class Budget:
    settings: dict[str, Any]  # as AWS shows them, without the spend
    notifications: list[Notification] = field(default_factory=list)
    tags: list[dict[str, str]] = field(default_factory=list)
    actual: str = "0"
    forecast: str | None = None

    def shown(self, with_expression: bool) -> dict[str, Any]:
        spend = {"ActualSpend": _dollars(self.actual)}
        if self.forecast is not None:
            spend["ForecastedSpend"] = _dollars(self.forecast)
        shown = copy.deepcopy(self.settings) | {"CalculatedSpend": spend}
        if not with_expression:
            shown.pop("FilterExpression", None)
        return shown

    def shown_notification(self, notification: Notification) -> dict[str, Any]:
        return {
            "NotificationType": notification.kind,
            "ComparisonOperator": notification.operator,
            "Threshold": float(notification.threshold),
            "ThresholdType": notification.threshold_type,
            "NotificationState": "ALARM" if self._is_crossed(notification) else "OK",
        }

    def _is_crossed(self, notification: Notification) -> bool:
        """Without a forecast no forecast notification is in alarm."""
        spent = self.actual if notification.kind == "ACTUAL" else self.forecast
        if spent is None:
            return False
        bound = notification.threshold
        if notification.threshold_type == "PERCENTAGE":
            bound = bound * Decimal(self.settings["BudgetLimit"]["Amount"]) / 100
        compared = {
            "GREATER_THAN": Decimal(spent) > bound,
            "LESS_THAN": Decimal(spent) < bound,
            "EQUAL_TO": Decimal(spent) == bound,
        }
        return compared[notification.operator]


class Budgets:
    """All budgets by account and name: one global endpoint, whatever region signs the call."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._budgets: dict[tuple[str, str], Budget] = {}

    def operation(self, action: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """The call by its AWS name."""
        found = {
            "CreateBudget": self.create_budget,
            "DescribeBudget": self.describe_budget,
            "DescribeBudgets": self.describe_budgets,
            "UpdateBudget": self.update_budget,
            "DeleteBudget": self.delete_budget,
            "CreateNotification": self.create_notification,
            "UpdateNotification": self.update_notification,
            "DeleteNotification": self.delete_notification,
            "DescribeNotificationsForBudget": self.describe_notifications,
            "CreateSubscriber": self.create_subscriber,
            "UpdateSubscriber": self.update_subscriber,
            "DeleteSubscriber": self.delete_subscriber,
            "DescribeSubscribersForNotification": self.describe_subscribers,
            "ListTagsForResource": self.list_tags,
            "TagResource": self.tag,
            "UntagResource": self.untag,
        }.get(action)
        if found is None:
            raise NotImplementedError("not built")

        def checked(request: dict[str, Any]) -> dict[str, Any]:
            _refuse_misshapen(request, action)
            return found(request)

        return checked

    def reset(self) -> None:
        self._budgets.clear()

    # -- what a test asks for

    def set_spend(self, given: dict[str, Any]) -> dict[str, Any]:
        refuse_unknown(given, ("account", "name", "actual", "forecast"))
        budget = self._budgets.get((given["account"], given["name"]))
        if budget is None:
            raise ValueError(f"no budget {given['name']} in account {given['account']}")
        actual, forecast = given["actual"], given.get("forecast")
        for amount in (actual, forecast):
            if amount is not None and not AMOUNT.fullmatch(amount):
                raise ValueError(f"{amount} is not an amount")
        budget.actual, budget.forecast = actual, forecast
        return _listed(given["account"], budget)

    def listed(self) -> list[dict[str, Any]]:
        return [_listed(account, budget) for (account, _), budget in self._budgets.items()]

    # -- budgets

    def create_budget(self, request: dict[str, Any]) -> dict[str, Any]:
        key = (request["AccountId"], request["Budget"]["BudgetName"])
        if key in self._budgets:
            raise AwsError("DuplicateRecordException", f"Error creating budget: {key[1]} - the budget already exists.")
        budget = Budget(self._settings(request["Budget"]), tags=request.get("ResourceTags", []))
        for pair in request.get("NotificationsWithSubscribers", []):
            _add_notification(budget, pair["Notification"], pair["Subscribers"])
        self._budgets[key] = budget
        return {}

    def describe_budget(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"Budget": self._budget(request).shown(request.get("ShowFilterExpression", False))}

    def describe_budgets(self, request: dict[str, Any]) -> dict[str, Any]:
        own = [budget for (account, _), budget in self._budgets.items() if account == request["AccountId"]]
        return _page(request, "Budgets", [budget.shown(request.get("ShowFilterExpression", False)) for budget in own])

    def update_budget(self, request: dict[str, Any]) -> dict[str, Any]:
        """Replaces all but the name; what was spent is unknown until billing looks again."""
        given = request["NewBudget"]
        budget = self._budget({"AccountId": request["AccountId"], "BudgetName": given["BudgetName"]})
        budget.settings = self._settings(given)
        budget.actual, budget.forecast = "0", None
        return {}

    def delete_budget(self, request: dict[str, Any]) -> dict[str, Any]:
        self._budget(request)
        del self._budgets[request["AccountId"], request["BudgetName"]]
        return {}

    def _budget(self, request: dict[str, Any]) -> Budget:
        budget = self._budgets.get((request["AccountId"], request["BudgetName"]))
        if budget is None:
            message = f"Unable to find budget: {request['BudgetName']} - the budget doesn't exist."
            raise AwsError("NotFoundException", message)
        return budget

    def _settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """The budget as AWS keeps it: the defaults filled in, what only AWS may set left out."""
        _refuse_what_is_not_built(given)
        _refuse_limit(given.get("BudgetLimit"))
        _refuse_mixed_filters(given)
        only_aws = ("CalculatedSpend", "LastUpdatedTime", "HealthStatus")
        settings = {name: copy.deepcopy(value) for name, value in given.items() if name not in only_aws}
        if not any(name in given for name in NEW_FILTERS):
            settings["CostTypes"] = COST_TYPES | given.get("CostTypes", {})
        settings["TimePeriod"] = self._period(given)
        settings["LastUpdatedTime"] = self._clock.now_ms / 1000
        return settings

    def _period(self, given: dict[str, Any]) -> dict[str, float]:
        asked = given.get("TimePeriod", {})
        start = asked["Start"] if "Start" in asked else _period_start(given["TimeUnit"], self._clock.now_ms)
        period = {"Start": start, "End": asked.get("End", LAST_END)}
        if period["Start"] >= period["End"]:
            raise _invalid("The start of TimePeriod must come before its end.")
        return period

    # -- notifications

    def create_notification(self, request: dict[str, Any]) -> dict[str, Any]:
        _add_notification(self._budget(request), request["Notification"], request["Subscribers"])
        return {}

    def update_notification(self, request: dict[str, Any]) -> dict[str, Any]:
        """The subscribers stay."""
        budget = self._budget(request)
        old = _notification(budget, request["OldNotification"])
        new = Notification.of(request["NewNotification"])
        new.subscribers = old.subscribers
        if new.key != old.key:
            _refuse_duplicate(budget, new)
        budget.notifications[budget.notifications.index(old)] = new
        return {}

    def delete_notification(self, request: dict[str, Any]) -> dict[str, Any]:
        budget = self._budget(request)
        budget.notifications.remove(_notification(budget, request["Notification"]))
        return {}

    def describe_notifications(self, request: dict[str, Any]) -> dict[str, Any]:
        budget = self._budget(request)
        return _page(request, "Notifications", [budget.shown_notification(one) for one in budget.notifications])

    # -- subscribers

    def create_subscriber(self, request: dict[str, Any]) -> dict[str, Any]:
        _add_subscriber(_notification(self._budget(request), request["Notification"]), request["Subscriber"])
        return {}

    def update_subscriber(self, request: dict[str, Any]) -> dict[str, Any]:
        notification = _notification(self._budget(request), request["Notification"])
        index = notification.subscribers.index(_subscriber(notification, request["OldSubscriber"]))
        others = copy.copy(notification)
        others.subscribers = notification.subscribers[:index] + notification.subscribers[index + 1 :]
        _refuse_subscriber(others, request["NewSubscriber"])
        notification.subscribers[index] = request["NewSubscriber"]
        return {}

    def delete_subscriber(self, request: dict[str, Any]) -> dict[str, Any]:
        """With its last subscriber a notification goes too."""
        budget = self._budget(request)
        notification = _notification(budget, request["Notification"])
        notification.subscribers.remove(_subscriber(notification, request["Subscriber"]))
        if not notification.subscribers:
            budget.notifications.remove(notification)
        return {}

    def describe_subscribers(self, request: dict[str, Any]) -> dict[str, Any]:
        return _page(request, "Subscribers", _notification(self._budget(request), request["Notification"]).subscribers)

    # -- tags

    def list_tags(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"ResourceTags": self._named_by_arn(request).tags}

    def tag(self, request: dict[str, Any]) -> dict[str, Any]:
        budget, given = self._named_by_arn(request), request["ResourceTags"]
        keys = {one["Key"] for one in given}
        budget.tags = [one for one in budget.tags if one["Key"] not in keys] + given
        return {}

    def untag(self, request: dict[str, Any]) -> dict[str, Any]:
        budget = self._named_by_arn(request)
        budget.tags = [one for one in budget.tags if one["Key"] not in request["ResourceTagKeys"]]
        return {}

    def _named_by_arn(self, request: dict[str, Any]) -> Budget:
        found = ARN.fullmatch(request["ResourceARN"])
        if found is None:
            raise _invalid(f"{request['ResourceARN']} is no ARN of a budget.")
        return self._budget({"AccountId": found[1], "BudgetName": found[2]})


def _invalid(message: str) -> AwsError:
    return AwsError("InvalidParameterException", message)


def _dollars(amount: str) -> dict[str, str]:
    return {"Amount": amount, "Unit": "USD"}


def _listed(account: str, budget: Budget) -> dict[str, Any]:
    notifications = [
        {"notification": budget.shown_notification(one), "subscribers": one.subscribers} for one in budget.notifications
    ]
    shown = budget.shown(with_expression=True)
    return {"account": account, "budget": shown, "notifications": notifications, "tags": budget.tags}


def _page(request: dict[str, Any], key: str, items: list[Any]) -> dict[str, Any]:
    token, size = request.get("NextToken", "0"), request.get("MaxResults", ITEMS_PER_PAGE)
    if not token.isdigit():
        raise AwsError("InvalidNextTokenException", "The NextToken is not valid.")
    end = int(token) + size
    return {key: items[int(token) : end]} | ({"NextToken": str(end)} if end < len(items) else {})


# -- what makes a budget


def _refuse_what_is_not_built(given: dict[str, Any]) -> None:
    if given["BudgetType"] != "COST":
        raise NotImplementedError(f"budgets of type {given['BudgetType']}")
    for name in ("PlannedBudgetLimits", "AutoAdjustData"):
        if name in given:
            raise NotImplementedError(f"budgets with {name}")


def _refuse_limit(limit: dict[str, str] | None) -> None:
    if limit is None:
        raise _invalid("A cost budget needs a BudgetLimit.")
    if limit["Unit"] != "USD":
        raise _invalid(f"The unit of a cost budget is USD, not {limit['Unit']}.")
    if not AMOUNT.fullmatch(limit["Amount"]):
        raise _invalid(f"{limit['Amount']} is not an amount.")


def _refuse_mixed_filters(given: dict[str, Any]) -> None:
    if any(name in given for name in OLD_FILTERS) and any(name in given for name in NEW_FILTERS):
        raise _invalid("Give either FilterExpression and Metrics or CostFilters and CostTypes, not both.")


def _period_start(unit: str, now_ms: int) -> float:
    day = aware_utc(now_ms).replace(hour=0, minute=0, second=0, microsecond=0)
    starts: dict[str, datetime.datetime] = {
        "DAILY": day,
        "MONTHLY": day.replace(day=1),
        "QUARTERLY": day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1),
        "ANNUALLY": day.replace(day=1, month=1),
    }
    if unit not in starts:
        raise NotImplementedError(f"a {unit} budget without a start")
    return starts[unit].timestamp()


# -- what makes a notification


def _notification(budget: Budget, given: dict[str, Any]) -> Notification:
    key = Notification.of(given).key
    found = next((one for one in budget.notifications if one.key == key), None)
    if found is None:
        raise AwsError("NotFoundException", "Unable to find notification - the notification doesn't exist.")
    return found


def _add_notification(budget: Budget, given: dict[str, Any], subscribers: list[dict[str, str]]) -> None:
    notification = Notification.of(given)
    _refuse_duplicate(budget, notification)
    if len(budget.notifications) >= NOTIFICATIONS_PER_BUDGET:
        raise AwsError(
            "CreationLimitExceededException", f"A budget has no more than {NOTIFICATIONS_PER_BUDGET} notifications."
        )
    for subscriber in subscribers:
        _add_subscriber(notification, subscriber)
    budget.notifications.append(notification)


def _refuse_duplicate(budget: Budget, notification: Notification) -> None:
    if any(one.key == notification.key for one in budget.notifications):
        raise AwsError("DuplicateRecordException", "The notification already exists.")


def _subscriber(notification: Notification, given: dict[str, str]) -> dict[str, str]:
    if given not in notification.subscribers:
        raise AwsError("NotFoundException", "Unable to find subscriber - the subscriber doesn't exist.")
    return given


def _add_subscriber(notification: Notification, given: dict[str, str]) -> None:
    _refuse_subscriber(notification, given)
    notification.subscribers.append(given)


def _refuse_subscriber(notification: Notification, given: dict[str, str]) -> None:
    kind = given["SubscriptionType"]
    if not ADDRESSES[kind].fullmatch(given["Address"]):
        raise _invalid(f"The address does not fit a subscriber of type {kind}.")
    if given in notification.subscribers:
        raise AwsError("DuplicateRecordException", "The subscriber already exists.")
    most = SUBSCRIBERS_PER_NOTIFICATION[kind]
    if sum(one["SubscriptionType"] == kind for one in notification.subscribers) >= most:
        raise AwsError("CreationLimitExceededException", f"A notification has no more than {most} {kind} subscribers.")


# -- what botocore's model says of a request


@functools.cache
def _model() -> botocore.model.ServiceModel:
    return botocore.session.get_session().get_service_model("budgets")


def _refuse_misshapen(request: dict[str, Any], action: str) -> None:
    """Required members, lengths, ranges and enumerations; a client in Rust checks none of them."""
    fault = _fault(request, _model().operation_model(action).input_shape, "request")
    if fault is None and "AccountId" in request and not ACCOUNT.fullmatch(request["AccountId"]):
        fault = "AccountId is twelve digits"
    budget = request.get("Budget") or request.get("NewBudget") or request
    name = budget.get("BudgetName")
    if fault is None and name is not None and not NAME.fullmatch(name):
        fault = f"{name} is no name for a budget"
    if fault is not None:
        raise _invalid(f"1 validation error detected: {fault}")


def _fault(value: Any, shape: botocore.model.Shape, where: str) -> str | None:
    """The first thing wrong with `value`, None if it fits the shape."""
    if shape.type_name == "structure":
        return _structure_fault(value, shape, where)
    if shape.type_name == "list":
        faults = [_fault(item, shape.member, f"{where}.{index}") for index, item in enumerate(value)]
        return next(filter(None, faults), None) or _range_fault(len(value), shape, where)
    if shape.type_name == "string":
        if shape.enum and value not in shape.enum:
            return f"Value '{value}' at '{where}' is none of {', '.join(shape.enum)}"
        return _range_fault(len(value), shape, where)
    if shape.type_name in ("integer", "long", "double"):
        return _range_fault(value, shape, where)
    return None


def _structure_fault(value: dict[str, Any], shape: botocore.model.Shape, where: str) -> str | None:
    for name in shape.required_members:
        if value.get(name) is None:
            return f"Value null at '{where}.{name}' must not be null"
    for name, item in value.items():
        if name not in shape.members:
            return f"'{where}.{name}' is unknown"
        if fault := _fault(item, shape.members[name], f"{where}.{name}"):
            return fault
    return None


def _range_fault(size: float, shape: botocore.model.Shape, where: str) -> str | None:
    low, high = shape.metadata.get("min", size), shape.metadata.get("max", size)
    return None if low <= size <= high else f"'{where}' must be between {low} and {high}, not {size}"
