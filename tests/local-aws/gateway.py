"""One AWS call from request to answer: log, fault, then moto or a part of our own."""

import contextlib
import io
import json
import time
from collections.abc import Callable
from typing import Any

from moto.core.responses import BaseResponse
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

import admin
import cbor
from protocols import Answer, AwsError, Call, LostAnswer, Request, error_answer, identify, not_implemented
from world import World


class Gateway:
    def __init__(self, world: World, default_region: str) -> None:
        self._world = world
        BaseResponse.default_region = default_region
        self._moto = DomainDispatcherApplication(create_backend_app)

    def handle(self, request: Request) -> Answer:
        """Raises LostAnswer where the connection must close without one."""
        request.unzip()
        if request.path.startswith(admin.PREFIX):
            return admin.handle(self._world, request)
        call = identify(request)
        with self._world.lock:
            entry = {"at_ms": self._world.clock.now_ms, "service": call.service, "action": call.action}
            entry["key"] = request.signer.key
            fault = self._world.faults.take(call)
        try:
            answer = self._with_fault(request, call, fault) if fault else self._carry_out(request, call, None)
        except LostAnswer:
            self._log(entry, 0, call)
            raise
        self._log(entry, answer.status, call)
        return answer

    def _log(self, entry: dict[str, Any], status: int, call: Call) -> None:
        """Status 0 is an answer that was lost."""
        with self._world.lock:
            self._world.calls.append(entry | {"status": status, "target": call.target})

    def _with_fault(self, request: Request, call: Call, fault: dict[str, Any]) -> Answer:
        answer = None
        if fault["after"] or not fault["code"]:
            answer = self._carry_out(request, call, fault)
        # Outside of the lock: a slow call must not hold up the others.
        time.sleep(fault["delay_ms"] / 1000)
        if fault["code"]:
            return error_answer(call.protocol, fault["status"], fault["code"], fault["message"])
        if fault["after"]:
            raise LostAnswer
        return answer

    def _carry_out(self, request: Request, call: Call, fault: dict[str, Any] | None) -> Answer:
        with self._world.lock:
            with self._view(call, fault):
                answer = self._guarded(request, call, fault)
            self._world.life.settle()
        return answer

    def _view(self, call: Call, fault: dict[str, Any] | None) -> contextlib.AbstractContextManager[None]:
        """Only reads can be stale: AWS carries out a change on the present state."""
        if fault and fault["stale_ms"] and call.action.startswith("Describe"):
            return self._world.life.as_of(self._world.clock.now_ms - fault["stale_ms"])
        return contextlib.nullcontext()

    def _guarded(self, request: Request, call: Call, fault: dict[str, Any] | None) -> Answer:
        name = f"{call.service} {call.action}"
        try:
            self._world.iam.judge(call, request)
            answer = self._dispatch(request, call, fault)
        except AwsError as error:
            return error_answer(call.protocol, error.status, error.code, error.message)
        except Exception as error:  # moto lacks it or trips over it: say so in the call's protocol
            return not_implemented(call.protocol, f"{name}: {type(error).__name__}: {error}")
        if answer.status >= 400 and answer.content_type.startswith("text/html"):
            return not_implemented(call.protocol, f"{name} is unknown to moto")
        return answer

    def _dispatch(self, request: Request, call: Call, fault: dict[str, Any] | None) -> Answer:
        if call.service == "budgets":
            return _answer_json(self._world.budgets.operation(call.action), request)
        if call.service != "cloudwatch":
            return self._ask_moto(request)
        if operation := self._world.cloudwatch.operation(call.action):
            return self._answer_metrics(operation, request, call, fault)
        if call.protocol == "cbor":
            return self._translate_to_moto(request, call)
        return self._ask_moto(request)

    # -- CloudWatch

    def _answer_metrics(self, operation: Any, request: Request, call: Call, fault: dict[str, Any] | None) -> Answer:
        extra = {"override": fault["body"]} if fault and fault["body"] and call.action == "GetMetricData" else {}
        if call.protocol == "cbor":
            value = operation(cbor.decode(request.body), **extra)
            body = cbor.encode(value, cbor.cloudwatch_operation(call.action).output_shape)
            return Answer(200, body, "application/cbor", cbor.headers())
        if call.protocol == "json":
            value = operation(json.loads(request.body), **extra)
            return Answer(200, json.dumps(cbor.to_json(value)).encode(), "application/x-amz-json-1.0")
        return not_implemented(call.protocol, "metric calls are answered in CBOR and JSON only")

    def _translate_to_moto(self, request: Request, call: Call) -> Answer:
        body = json.dumps(cbor.to_json(cbor.decode(request.body))).encode()
        headers = request.headers | {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"GraniteServiceVersion20100801.{call.action}",
        }
        answer = self._ask_moto(Request("POST", "/", "", headers, body))
        if answer.content_type.startswith("text/html"):
            return answer
        value = json.loads(answer.body) if answer.body else {}
        if answer.status != 200:
            code = str(value.get("__type", "InternalFailure")).split("#")[-1]
            return error_answer("cbor", answer.status, code, str(value.get("message", value.get("Message", ""))))
        shape = cbor.cloudwatch_operation(call.action).output_shape
        typed = cbor.from_json(value, shape) if shape else {}
        return Answer(200, cbor.encode(typed, shape), "application/cbor", cbor.headers())

    # -- moto

    def _ask_moto(self, request: Request) -> Answer:
        caught: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> None:
            caught["status"] = int(status.split()[0])
            caught["headers"] = {name.lower(): value for name, value in headers}

        parts = self._moto(self._environ(request), start_response)
        body = b"".join(parts)
        headers = caught["headers"]
        headers.pop("content-length", None)
        content_type = headers.pop("content-type", "application/octet-stream")
        return Answer(caught["status"], body, content_type, headers)

    def _environ(self, request: Request) -> dict[str, Any]:
        target = request.path + (f"?{request.query}" if request.query else "")
        environ = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query,
            "RAW_URI": target,
            "REQUEST_URI": target,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(request.body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in request.headers.items():
            if name not in ("content-type", "content-length"):
                environ["HTTP_" + name.upper().replace("-", "_")] = value
        return environ


def _answer_json(operation: Callable[..., dict[str, Any]], request: Request) -> Answer:
    return Answer(200, json.dumps(operation(json.loads(request.body))).encode(), "application/x-amz-json-1.1")
