"""Everything the local AWS remembers, and the one lock around it."""

import threading
from typing import Any

import moto.sns.models
import moto.sqs.models
from moto.moto_api._internal.models import moto_api_backend

import dynamodb
import ec2_moto
import event_patterns
import lambda_moto
import log_events
import log_filters
from budgets import Budgets
from clock import VirtualClock, give_clock_to_moto
from cloudwatch import CloudWatch
from config import GLOBAL_DEFAULTS, Config
from ec2_life import Ec2Life
from faults import Faults
from iam import Iam


class World:
    def __init__(self, start_ms: int) -> None:
        # moto reads, computes and writes without locks of its own: two calls at once lose updates.
        self.lock = threading.RLock()
        self.clock = VirtualClock(start_ms)
        self.config = Config()
        self.life = Ec2Life(self.clock, self.config)
        self.cloudwatch = CloudWatch(self.clock, self.config, self.life)
        self.budgets = Budgets(self.clock)
        self.faults = Faults()
        self.iam = Iam(self.clock)
        self.calls: list[dict[str, Any]] = []
        self.published: list[dict[str, Any]] = []
        give_clock_to_moto(self.clock)
        ec2_moto.install(self.life)
        lambda_moto.install(self.clock)
        log_events.install(self.clock, self.config)
        log_filters.install(self.clock)
        dynamodb.install()
        event_patterns.install()
        self._record_published()
        _answer_long_polls_at_once()

    def reset(self) -> None:
        """Back to an empty account at the time the launcher began with."""
        moto_api_backend.reset()
        self.life.lives.clear()
        self.life.events.clear()
        self.cloudwatch.reset()
        self.budgets.reset()
        self.faults.clear()
        self.iam.forget()
        self.calls.clear()
        self.published.clear()
        self.config.values = dict(GLOBAL_DEFAULTS)
        self.clock.now_ms = self.clock.start_ms

    def _record_published(self) -> None:
        topic_class = moto.sns.models.Topic
        moto_publish = topic_class.publish

        def publish(topic: Any, message: str, *args: Any, **kwargs: Any) -> str:
            message_id = moto_publish(topic, message, *args, **kwargs)
            _, _, subject, attributes, _ = topic.sent_notifications[-1]
            self.published.append(
                {
                    "topic": topic.arn,
                    "subject": subject,
                    "message": message,
                    "attributes": _plain_attributes(attributes),
                    "at_ms": self.clock.now_ms,
                }
            )
            return message_id

        topic_class.publish = publish


def _plain_attributes(attributes: dict[str, Any] | None) -> dict[str, str]:
    found = {}
    for name, attribute in (attributes or {}).items():
        value = attribute.get("Value", attribute.get("StringValue", "")) if isinstance(attribute, dict) else attribute
        found[name] = value if isinstance(value, str) else str(value)
    return found


def _answer_long_polls_at_once() -> None:
    """A long poll would hold the lock until a clock that stands still has moved on."""
    backend_class = moto.sqs.models.SQSBackend
    moto_receive = backend_class.receive_message

    def receive(self: Any, queue_name: str, count: int, wait_seconds_timeout: int, *args: Any, **kwargs: Any) -> Any:
        return moto_receive(self, queue_name, count, 0, *args, **kwargs)

    backend_class.receive_message = receive
