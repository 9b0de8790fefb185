"""The life of EC2 instances on virtual time: states, reasons, events and running minutes.

moto jumps from one state to the next at once and refuses nothing. Here a transition waits for
the clock, and calls are refused as AWS refuses them. How moto is made to ask this module is in
ec2_moto.py.
"""

import contextlib
import copy
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instances import Instance, InstanceState, StateReason

import clock as clocks
from config import FALLS_BACK_DEFAULTS, INSTANCE_DEFAULTS, INSTANCE_ONLY, Config, refuse_unknown
from protocols import AwsError

STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

# A forced stop tries the graceful way first; how long AWS then takes is not documented.
FORCED_STOP_MS = 10_000

USER_SHUTDOWN = StateReason(
    message="Client.UserInitiatedShutdown: User initiated shutdown",
    code="Client.UserInitiatedShutdown",
)


@dataclass
class Transition:
    """A state that is reached when the clock gets there."""

    due_ms: int
    order: int  # of two at the same time, the one begun first goes first
    state: str
    transition_reason: str | None = None  # None: keeps the one set at the call
    state_reason: StateReason | None = None


@dataclass
class Moment:
    """What DescribeInstances would have shown from `at_ms` on."""

    at_ms: int
    state: InstanceState
    launch_time: Any
    transition_reason: str
    state_reason: StateReason | None


@dataclass
class Life:
    """One instance, as far as moto does not know it."""

    instance: Instance
    overrides: dict[str, Any] = field(default_factory=dict)
    falls_back: dict[str, Any] | None = None
    one_time_spot: bool = False
    no_capacity: bool = False
    transition: Transition | None = None
    history: list[Moment] = field(default_factory=list)
    launched_ms: int = 0
    # Spans in which status checks pass, as [from, until); until None: still.
    checked_spans: list[list[int | None]] = field(default_factory=list)

    @property
    def state(self) -> str:
        return self.instance._state.name


class Ec2Life:
    def __init__(self, clock: clocks.VirtualClock, config: Config) -> None:
        self.clock = clock
        self.config = config
        self.lives: dict[str, Life] = {}
        self.events: list[dict[str, Any]] = []
        self._counter = 0

    # -- what a test asks for

    def configure(self, instance_id: str, given: dict[str, Any]) -> None:
        """Settings and facts of one instance; transitions already begun keep their time."""
        refuse_unknown(given, [*INSTANCE_DEFAULTS, *INSTANCE_ONLY])
        life = self.lives.get(instance_id)
        if life is None:
            raise ValueError(f"no instance {instance_id}")
        given = dict(given)
        if "falls_back" in given:
            life.falls_back = _falls_back(given.pop("falls_back"))
        if "spot" in given:
            life.one_time_spot = given.pop("spot")
            life.instance.lifecycle = "spot" if life.one_time_spot else None
        if "disable_api_stop" in given:
            life.instance.disable_api_stop = given.pop("disable_api_stop")
        if "no_capacity" in given:
            life.no_capacity = bool(given.pop("no_capacity"))
        life.overrides.update(given)

    def setting(self, life: Life, name: str) -> Any:
        return life.overrides.get(name, self.config.values[name])

    def drain_events(self) -> list[dict[str, Any]]:
        drained, self.events = self.events, []
        return drained

    # -- time

    def move_clock(self, to_ms: int) -> None:
        """Moves the clock through every transition on the way, in time order."""
        while transitions := self._due(to_ms):
            life, transition = transitions[0]
            self.clock.now_ms = max(self.clock.now_ms, transition.due_ms)
            self._reach(life, transition)
        self.clock.now_ms = to_ms

    def settle(self) -> None:
        """Ends the transitions that are due now: those that take no time."""
        self.move_clock(self.clock.now_ms)

    def _due(self, by_ms: int) -> list[tuple[Life, Transition]]:
        waiting = [(life, life.transition) for life in self.lives.values() if life.transition]
        due = [pair for pair in waiting if pair[1].due_ms <= by_ms]
        return sorted(due, key=lambda pair: (pair[1].due_ms, pair[1].order))

    def _reach(self, life: Life, transition: Transition) -> None:
        life.transition = None
        if transition.transition_reason is not None:
            life.instance._reason = transition.transition_reason
            life.instance.state_reason = transition.state_reason
            _release_public_address(life.instance)
        self._enter(life, transition.state)

    # -- calls

    def adopt(self, instance: Instance, one_time_spot: bool = False) -> None:
        """Takes over an instance that moto just made."""
        life = Life(instance, one_time_spot=one_time_spot)
        self.lives[instance.id] = life
        self._launch(life)

    def start(self, instances: list[Instance]) -> list[tuple[Instance, InstanceState]]:
        """All or none: the first instance that may not be started fails the call."""
        for instance in instances:
            if instance._state.name not in ("pending", "running", "stopped"):
                raise incorrect_state(f"The instance '{instance.id}' is not in a state from which it can be started.")
        for instance in instances:
            self._refuse_without_capacity(self.lives[instance.id])
        return [(instance, self._start_one(self.lives[instance.id])) for instance in instances]

    def _refuse_without_capacity(self, life: Life) -> None:
        """Only a stopped instance asks for room: a start of a running one changes nothing."""
        missing = life.no_capacity or life.instance.instance_type in self.config.values["no_capacity_types"]
        if missing and life.state == "stopped":
            raise AwsError("InsufficientInstanceCapacity", "Insufficient capacity.", 500)

    def _start_one(self, life: Life) -> InstanceState:
        previous = copy.copy(life.instance._state)
        if previous.name == "stopped":
            for nic in life.instance.nics.values():
                nic.start()
            self._launch(life)
        return previous

    def stop(self, instances: list[Instance], force: bool) -> list[tuple[Instance, InstanceState]]:
        for instance in instances:
            self._refuse_stop(self.lives[instance.id], force)
        return [(instance, self._stop_one(self.lives[instance.id], force)) for instance in instances]

    def _refuse_stop(self, life: Life, force: bool) -> None:
        instance_id = life.instance.id
        if life.state in ("shutting-down", "terminated"):
            raise _cannot_stop(instance_id)
        if _is_true(life.instance.disable_api_stop):
            raise EC2ClientError(
                "OperationNotPermitted",
                f"The instance '{instance_id}' may not be stopped. "
                "Modify its 'disableApiStop' instance attribute and try again.",
            )
        if life.one_time_spot:
            raise EC2ClientError(
                "UnsupportedOperation",
                f"You can't stop the Spot Instance '{instance_id}' because it is associated with a one-time Spot "
                "Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests.",
            )
        if life.state == "pending" and not force and self.setting(life, "stop_on_pending") == "refuse":
            raise _cannot_stop(instance_id)

    def _stop_one(self, life: Life, force: bool) -> InstanceState:
        previous = copy.copy(life.instance._state)
        if previous.name in ("pending", "running"):
            self._shut_down(life, "stopping", "stopped", self.setting(life, "stopping_seconds"))
            _release_public_address(life.instance)
        elif previous.name == "stopping" and force and life.transition:
            life.transition.due_ms = min(life.transition.due_ms, self.clock.now_ms + FORCED_STOP_MS)
        return previous

    def terminate(self, instances: list[Instance], teardown: Any) -> list[tuple[Instance, InstanceState]]:
        """`teardown` is moto's own terminate, which frees addresses and volumes."""
        ended = []
        for instance in instances:
            life = self.lives[instance.id]
            previous = copy.copy(instance._state)
            if previous.name not in ("shutting-down", "terminated"):
                teardown(instance)
                self._shut_down(life, "shutting-down", "terminated", self.setting(life, "shutting_down_seconds"))
            ended.append((instance, previous))
        return ended

    # -- states

    def _launch(self, life: Life) -> None:
        """Begins `pending`, which ends in `running`, or in `stopped` if a test wants a fallback."""
        instance = life.instance
        instance.launch_time = self.clock.utcnow()
        instance._reason = ""
        instance.state_reason = None
        life.launched_ms = self.clock.now_ms
        self._enter(life, "pending")
        fallback = self._take_fallback(life)
        if fallback:
            reason = StateReason(message=fallback["message"], code=fallback["code"])
            self._schedule(life, fallback["after_seconds"], "stopped", fallback["code"], reason)
        else:
            self._schedule(life, self.setting(life, "pending_seconds"), "running")

    def _take_fallback(self, life: Life) -> dict[str, Any] | None:
        if not life.falls_back or life.falls_back["times"] < 1:
            return None
        life.falls_back["times"] -= 1
        return life.falls_back

    def _shut_down(self, life: Life, via: str, to: str, seconds: float) -> None:
        stamp = self.clock.utcnow().strftime("%Y-%m-%d %H:%M:%S")
        life.instance._reason = f"User initiated ({stamp} GMT)"
        life.instance.state_reason = USER_SHUTDOWN
        self._enter(life, via)
        self._schedule(life, seconds, to)

    def _schedule(self, life: Life, seconds: float, state: str, *reasons: Any) -> None:
        self._counter += 1
        due_ms = self.clock.now_ms + round(seconds * 1000)
        life.transition = Transition(due_ms, self._counter, state, *reasons)

    def _enter(self, life: Life, state: str) -> None:
        instance = life.instance
        instance._state = InstanceState(state, STATE_CODES[state])
        self._keep_checked_spans(life)
        life.history.append(
            Moment(self.clock.now_ms, instance._state, instance.launch_time, instance._reason, instance.state_reason)
        )
        self._emit(life)

    def _keep_checked_spans(self, life: Life) -> None:
        if life.checked_spans and life.checked_spans[-1][1] is None:
            life.checked_spans[-1][1] = self.clock.now_ms
        if life.state == "running":
            life.checked_spans.append([max(self.clock.now_ms, self._status_ok_ms(life)), None])

    def _emit(self, life: Life) -> None:
        """EC2's state-change event as EventBridge carries it."""
        instance = life.instance
        arn = f"arn:aws:ec2:{instance.region_name}:{instance.owner_id}:instance/{instance.id}"
        self._counter += 1
        self.events.append(
            {
                "version": "0",
                "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"event {self._counter}")),
                "detail-type": "EC2 Instance State-change Notification",
                "source": "aws.ec2",
                "account": instance.owner_id,
                "time": clocks.rfc3339(self.clock.now_ms),
                "region": instance.region_name,
                "resources": [arn],
                "detail": {"instance-id": instance.id, "state": life.state},
            }
        )

    # -- what others ask about an instance

    def _status_ok_ms(self, life: Life) -> int:
        return life.launched_ms + round(self.setting(life, "status_ok_seconds") * 1000)

    def check_status(self, instance_id: str) -> str:
        life = self.lives[instance_id]
        if life.state != "running":
            return "not-applicable"
        return "ok" if self.clock.now_ms >= self._status_ok_ms(life) else "initializing"

    def checked_minutes(self, instance_id: str, start_ms: int, end_ms: int) -> Iterator[int]:
        """Whole minutes in [start, end), not after now, in which a status check passed."""
        life = self.lives.get(instance_id)
        spans = life.checked_spans if life else []
        for begin, end in spans:
            last = min(end_ms, self.clock.now_ms + 1 if end is None else end)
            first = max(start_ms, begin)
            yield from range(-(-first // 60_000) * 60_000, last, 60_000)

    @contextlib.contextmanager
    def as_of(self, at_ms: int) -> Iterator[None]:
        """Shows every instance as it was at `at_ms`, or at its first moment if it is younger."""
        present = [(life, _moment_now(life)) for life in self.lives.values()]
        for life in self.lives.values():
            past = [moment for moment in life.history if moment.at_ms <= at_ms]
            _show(life.instance, past[-1] if past else life.history[0])
        try:
            yield
        finally:
            for life, moment in present:
                _show(life.instance, moment)


def incorrect_state(message: str) -> EC2ClientError:
    return EC2ClientError("IncorrectInstanceState", message)


def _cannot_stop(instance_id: str) -> EC2ClientError:
    return incorrect_state(f"This instance '{instance_id}' is not in a state from which it can be stopped.")


def _falls_back(given: dict[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    refuse_unknown(given, FALLS_BACK_DEFAULTS)
    return FALLS_BACK_DEFAULTS | given


def _release_public_address(instance: Instance) -> None:
    for nic in instance.nics.values():
        nic.stop()


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _moment_now(life: Life) -> Moment:
    instance = life.instance
    return Moment(0, instance._state, instance.launch_time, instance._reason, instance.state_reason)


def _show(instance: Instance, moment: Moment) -> None:
    instance._state = moment.state
    instance.launch_time = moment.launch_time
    instance._reason = moment.transition_reason
    instance.state_reason = moment.state_reason
