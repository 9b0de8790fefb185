"""The calls under /local-aws/, by which a test moves the clock and asks for trouble."""

import json
from typing import Any

from protocols import Answer, Request
from world import World

PREFIX = "/local-aws/"


class Conflict(Exception):
    """Asked for what the present state forbids."""


def handle(world: World, request: Request) -> Answer:
    routes = {
        "budgets": budgets,
        "clock": clock,
        "config": config,
        "calls": calls,
        "events": events,
        "faults": faults,
        "iam": iam,
        "published": published,
        "reset": reset,
    }
    route = routes.get(request.path.removeprefix(PREFIX))
    if route is None:
        return _json(404, {"error": f"no such call: {request.path}"})
    try:
        given = json.loads(request.body) if request.body else None
        with world.lock:
            return _json(200, route(world, request.method, given))
    except Conflict as error:
        return _json(409, {"error": str(error)})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return _json(400, {"error": f"{type(error).__name__}: {error}"})


def clock(world: World, method: str, given: Any) -> Any:
    if method == "GET":
        return {"now_ms": world.clock.now_ms}
    _only(method, "POST")
    to_ms = int(given["now_ms"]) if "now_ms" in given else world.clock.now_ms + int(given["advance_ms"])
    if to_ms < world.clock.now_ms:
        if not given.get("force"):
            raise Conflict(f"{to_ms} is before now ({world.clock.now_ms}): pass force to turn the clock back")
        world.clock.now_ms = to_ms
        return {"now_ms": to_ms, "events": []}
    before = len(world.life.events)
    world.life.move_clock(to_ms)
    caused = world.life.events[before:]
    if given.get("drain"):
        del world.life.events[before:]
    return {"now_ms": world.clock.now_ms, "events": caused}


def config(world: World, method: str, given: Any) -> Any:
    if method == "POST":
        given = dict(given)
        instance_id = given.pop("instance", None)
        if instance_id is None:
            world.config.update(given)
        else:
            world.life.configure(instance_id, given)
    overrides = {instance_id: life.overrides for instance_id, life in world.life.lives.items() if life.overrides}
    return world.config.values | {"instances": overrides}


def budgets(world: World, method: str, given: Any) -> Any:
    """What billing found out, or everything that is there; AWS's own calls make and change budgets."""
    if method == "GET":
        return world.budgets.listed()
    _only(method, "POST")
    return world.budgets.set_spend(given)


def faults(world: World, method: str, given: Any) -> Any:
    if method == "POST":
        world.faults.add(given if isinstance(given, list) else [given])
    elif method == "DELETE":
        world.faults.clear()
    return world.faults.waiting()


def iam(world: World, method: str, given: Any) -> Any:
    """Whose keys are judged by which role; what its policies allowed and refused."""
    if method == "POST":
        world.iam.act_as(given)
    elif method == "DELETE":
        world.iam.forget()
    return world.iam.report()


def calls(world: World, method: str, _given: Any) -> Any:
    return _listed(world.calls, method)


def published(world: World, method: str, _given: Any) -> Any:
    return _listed(world.published, method)


def events(world: World, method: str, _given: Any) -> Any:
    return _listed(world.life.events, method)


def reset(world: World, method: str, _given: Any) -> Any:
    _only(method, "POST")
    world.reset()
    return {"now_ms": world.clock.now_ms}


def _listed(entries: list[Any], method: str) -> list[Any]:
    """The list; DELETE empties it after reading, so that nothing falls between two calls."""
    found = list(entries)
    if method == "DELETE":
        entries.clear()
    return found


def _only(method: str, allowed: str) -> None:
    if method != allowed:
        raise ValueError(f"{allowed} only")


def _json(status: int, value: Any) -> Answer:
    return Answer(status, json.dumps(value).encode(), "application/json")
