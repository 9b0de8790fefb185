"""docs/openapi.yaml against the running function: each documented answer is brought about, then schemathesis asks."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import jsonschema_rs
import requests
import schemathesis
import yaml
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import hooks
from front import ROOT, TOKEN, Front

HERE = pathlib.Path(__file__).parent
CONTRACT = ROOT / "docs" / "openapi.yaml"
CHECKS = [status_code_conformance, content_type_conformance, response_headers_conformance, response_schema_conformance]

GOOD = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
BAD = GOOD | {"Authorization": "Bearer wrong"}
LONG = '{"node": "' + "x" * 4096 + '"}'


def sent(path="", body=None, headers=None):
    return {"path": path, "body": body, "headers": headers or GOOD}


# scene, operation, what is sent, status, and the answer's `state` or `field`
ANSWERS = [
    ("ready", "wake", sent(), 200, "ready"),
    ("asleep", "wake", sent(), 202, "starting"),
    ("asleep", "wake", sent(body='{"node": "gpu-1"}'), 202, "starting"),
    ("going_down", "wake", sent(), 202, "stopping_will_start"),
    ("asleep", "wake", sent(body="pool=voice"), 400, "body"),
    ("asleep", "wake", sent(body='["voice", null]'), 400, "body"),
    ("asleep", "wake", sent(body='{"pool": "voice", "pool": "voice"}'), 400, "body"),
    ("asleep", "wake", sent(body='{"pool": "a b"}'), 400, "pool"),
    ("asleep", "wake", sent(body='{"node": ""}'), 400, "node"),
    ("asleep", "wake", sent(body='{"pool": "voice", "node": "gpu-1"}'), 400, "node"),
    ("asleep", "wake", sent("?pool=voice&node=gpu-1"), 400, "node"),
    ("asleep", "wake", sent("?node=gpu-1"), 202, "starting"),
    ("asleep", "wake", sent(headers=BAD), 401, "authorization"),
    ("gate_closed", "wake", sent(), 403, "gate_closed"),
    ("asleep", "wake", sent(body='{"pool": "nobody"}'), 404, "pool"),
    ("asleep", "wake", sent(body='{"node": "nobody"}'), 404, "node"),
    ("asleep", "wake", sent(body=json.dumps({"node": "ü" * 256})), 404, "node"),
    ("asleep", "wake", sent(body=LONG), 413, "body"),
    ("full", "wake", sent(), 429, "full"),
    ("too_many", "wake", sent(), 429, "rate"),
    ("no_capacity", "wake", sent(), 503, "no_capacity"),
    ("fault", "wake", sent(), 503, "fault"),
    ("unknown", "wake", sent(), 503, "unknown"),
    ("no_node", "wake", sent(), 503, "no_node"),
    ("ready", "status", sent(), 200, "ready"),
    ("starting", "status", sent(), 202, "starting"),
    ("stopping", "status", sent(), 202, "stopping_will_start"),
    ("will_start", "status", sent(), 202, "will_start"),
    ("asleep", "status", sent("?pool=a+b"), 400, "pool"),
    ("asleep", "status", sent("?node=" + "x" * 257), 400, "node"),
    ("asleep", "status", sent("?pool=voice&node=gpu-1"), 400, "node"),
    ("asleep", "status", sent(headers=BAD), 401, "authorization"),
    ("gate_closed", "status", sent(), 403, "gate_closed"),
    ("asleep", "status", sent("?pool=nobody"), 404, "pool"),
    ("asleep", "status", sent("?node=nobody"), 404, "node"),
    ("full", "status", sent(), 429, "full"),
    ("asleep", "status", sent(), 503, "asleep"),
    ("asleep", "status", sent("?pool=&node="), 503, "asleep"),
    ("empty", "status", sent(), 503, "asleep"),
    ("no_capacity", "status", sent(), 503, "no_capacity"),
    ("fault", "status", sent(), 503, "fault"),
    ("unknown", "status", sent(), 503, "unknown"),
    ("no_node", "status", sent(), 503, "no_node"),
    ("ready", "lease", sent("call-1"), 200, "leased"),
    ("ready", "lease", sent("call-1", '{"ttl_seconds": 120.0}'), 200, "leased"),
    ("asleep", "lease", sent("call-1"), 202, "starting"),
    ("going_down", "lease", sent("call-1"), 202, "stopping_will_start"),
    ("ready", "lease", sent("call-1", "ttl=1"), 400, "body"),
    ("ready", "lease", sent("call-1", '["voice", null, 60]'), 400, "body"),
    ("ready", "lease", sent("call-1", '{"pool": ""}'), 400, "pool"),
    ("ready", "lease", sent("call-1", '{"node": ""}'), 400, "node"),
    ("ready", "lease", sent("call-1", '{"ttl_seconds": 9}'), 400, "ttl_seconds"),
    ("ready", "lease", sent("call-1", '{"ttl_seconds": 3601}'), 400, "ttl_seconds"),
    ("ready", "lease", sent("call%201"), 400, "lease"),
    ("ready", "lease", sent("x" * 65), 400, "lease"),
    ("ready", "lease", sent("call-1", headers=BAD), 401, "authorization"),
    ("gate_closed", "lease", sent("call-1"), 403, "gate_closed"),
    ("ready", "lease", sent("call-1", '{"pool": "nobody"}'), 404, "pool"),
    ("ready", "lease", sent("call-1", '{"node": "nobody"}'), 404, "node"),
    ("foreign", "lease", sent("theirs"), 409, "lease"),
    ("ready", "lease", sent("call-1", '{"renew": true}'), 410, "lease"),
    ("ready", "lease", sent("call-1", LONG), 413, "body"),
    ("full", "lease", sent("call-1"), 429, "full"),
    ("too_many", "lease", sent("call-1"), 429, "rate"),
    ("no_capacity", "lease", sent("call-1"), 503, "no_capacity"),
    ("fault", "lease", sent("call-1"), 503, "fault"),
    ("unknown", "lease", sent("call-1"), 503, "unknown"),
    ("no_node", "lease", sent("call-1"), 503, "no_node"),
    ("full", "end_lease", sent("full-1"), 204, None),
    ("asleep", "end_lease", sent("never-given"), 204, None),
    ("ready", "end_lease", sent("call%201"), 400, "lease"),
    ("ready", "end_lease", sent("call-1?pool=a+b"), 400, "pool"),
    ("ready", "end_lease", sent("call-1?node=" + "x" * 257), 400, "node"),
    ("ready", "end_lease", sent("call-1", headers=BAD), 401, "authorization"),
    ("ready", "end_lease", sent("call-1?pool=nobody"), 404, "pool"),
    ("ready", "end_lease", sent("call-1?node=nobody"), 404, "node"),
    ("foreign", "end_lease", sent("theirs"), 409, "lease"),
    ("unknown", "end_lease", sent("call-1?node=gpu-1"), 503, "unknown"),
]

# What schemathesis asks in each scene. A valid request changes the scene, as it would anywhere; those that are refused
# whatever is asked need few cases.
RANDOM = {
    "asleep": ["--phases", "examples,coverage,fuzzing", "--max-examples", "40"],
    "ready": ["--phases", "examples,fuzzing,stateful", "--max-examples", "15"],
    "gate_closed": ["--phases", "examples,fuzzing", "--max-examples", "10"],
    "unknown": ["--phases", "examples,fuzzing", "--max-examples", "10"],
}


class Contract(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        load_all_checks()
        cls.raw = yaml.safe_load(CONTRACT.read_text(encoding="utf-8"))
        closed = yaml.safe_load(CONTRACT.read_text(encoding="utf-8"))
        hooks.close(closed)
        schema = schemathesis.openapi.from_dict(closed)
        schema.validate()
        found = (operation.ok() for operation in schema.get_all_operations())
        cls.operations = {operation.definition.raw["operationId"]: operation for operation in found}
        cls.front = Front()
        cls.addClassCleanup(cls.front.close)

    def test_each_documented_answer_is_given_and_no_other(self):
        given = set()
        for scene, name, what, status, word in ANSWERS:
            with self.subTest(scene=scene, operation=name, path=what["path"][:40], body=(what["body"] or "")[:40]):
                getattr(self.front, scene)()
                operation = self.operations[name]
                path = operation.path.replace("{id}", "") + what["path"]
                answer = requests.request(
                    operation.method, self.front.url + path, data=what["body"], headers=what["headers"], timeout=30
                )
                self.assertEqual(answer.status_code, status, answer.text)
                body = answer.json() if answer.content else {}
                self.assertEqual(body.get("state", body.get("field")), word, answer.text)
                case = operation.Case(path_parameters={"id": "call-1"} if "{id}" in operation.path else {})
                case.validate_response(answer, checks=CHECKS)
            given.add((name, status, word))
        documented = {
            (operation["operationId"], int(status), word)
            for path in self.raw["paths"].values()
            for operation in path.values() if isinstance(operation, dict)
            for status, response in operation["responses"].items()
            for word in self.words_of(response)
        }
        # 400 is one text for all operations; these have no such field.
        documented -= {("wake", 400, word) for word in ("lease", "ttl_seconds")}
        documented -= {("status", 400, word) for word in ("body", "lease", "ttl_seconds")}
        documented -= {("end_lease", 400, word) for word in ("body", "ttl_seconds")}
        self.assertEqual(given, documented)

    def words_of(self, response):
        content = self.resolved(response).get("content", {})
        schemas = [media["schema"] for kind, media in content.items() if kind.endswith("json")]
        return {word for schema in schemas for word in self.words(schema)} if content else {None}

    def words(self, schema):
        """The values of `state` or `field` that a schema lets through."""
        schema = self.resolved(schema)
        if "oneOf" in schema:
            return {word for one in schema["oneOf"] for word in self.words(one)}
        properties = schema.get("properties", {})
        word = properties.get("state", properties.get("field", {}))
        return set(word.get("enum", [word.get("const")]))

    def resolved(self, what):
        while "$ref" in what:
            _, *names = what["$ref"].split("/")
            what = self.raw
            for name in names:
                what = what[name]
        return what

    def test_each_example_fits_its_schema(self):
        count = 0
        for media in self.medias(self.raw):
            schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **self.raw, **media["schema"]}
            validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
            examples = [self.resolved(example)["value"] for example in media.get("examples", {}).values()]
            examples += [media["example"]] if "example" in media else []
            for example in examples:
                with self.subTest(example=example):
                    validator.validate(example)
                    count += 1
        self.assertGreater(count, 20)

    def medias(self, part):
        if isinstance(part, dict):
            for kind, media in part.get("content", {}).items():
                if kind.endswith("json"):
                    yield media
            for value in part.values():
                yield from self.medias(value)

    def test_the_limits_of_the_contract_are_the_functions(self):
        self.front.ready()
        schemas, parameters = self.raw["components"]["schemas"], self.raw["components"]["parameters"]
        ttl = schemas["LeaseWish"]["properties"]["ttl_seconds"]
        rows = [
            (ttl["minimum"], -1, lambda number: ("PUT", "/leases/call-1", {"ttl_seconds": number}), 200),
            (ttl["maximum"], 1, lambda number: ("PUT", "/leases/call-1", {"ttl_seconds": number}), 200),
            (schemas["LeaseId"]["maxLength"], 1, lambda number: ("DELETE", "/leases/" + "x" * number, None), 204),
            (schemas["PoolWish"]["maxLength"], 1, lambda number: ("POST", "/wake", {"pool": "x" * number}), 404),
            (schemas["NodeWish"]["maxLength"], 1, lambda number: ("POST", "/wake", {"node": "x" * number}), 404),
            (parameters["pool"]["schema"]["maxLength"], 1, lambda number: ("GET", "/status?pool=" + "x" * number), 404),
            (parameters["node"]["schema"]["maxLength"], 1, lambda number: ("GET", "/status?node=" + "x" * number), 404),
        ]
        for limit, beyond, request, within in rows:
            with self.subTest(request=str(request(limit))[:60]):
                self.assertEqual(self.front.ask(*request(limit)).status, within)
                self.assertEqual(self.front.ask(*request(limit + beyond)).status, 400)

    def test_another_path_and_another_method_are_refused(self):
        self.front.asleep()
        rows = [(f"/{path}", 404, None) for path in ("", "admin", "leases", "favicon.ico", "wake/x", "status/x")]
        rows += [("/wake", 405, "POST"), ("/status", 405, "GET"), ("/leases/call-1", 405, "PUT, DELETE")]
        for path, status, allowed in rows:
            others = set("GET HEAD POST PUT PATCH DELETE OPTIONS".split()) - set((allowed or "").split(", "))
            for method in others if allowed else ["GET", "POST", "DELETE"]:
                with self.subTest(path=path, method=method):
                    answer = self.front.ask(method, path)
                    self.assertEqual((answer.status, answer.headers["allow"]), (status, allowed))
                    self.assertEqual(answer.headers["content-type"], "application/problem+json")
                    if method != "HEAD":
                        self.assertEqual(answer.json["field"], "method" if allowed else "path")
        self.assertEqual(self.front.calls("StartInstances"), [])


def at_random(scene):
    def test(self):
        getattr(self.front, scene)()
        place = ROOT / "target" / "web" / "schemathesis"
        place.mkdir(parents=True, exist_ok=True)
        variables = os.environ | {"TOKEN": TOKEN, "HOOKS": str(HERE / "hooks.py")}
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "contract.toml")]
        run = subprocess.run(
            [*command, "run", str(CONTRACT), "--url", self.front.url, *RANDOM[scene]],
            cwd=place, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
        )
        (place / f"{scene}.txt").write_text(run.stdout, encoding="utf-8")
        self.assertEqual(run.returncode, 0, run.stdout)
    return test


for scene_asked in RANDOM:
    setattr(Contract, f"test_asked_at_random_{scene_asked}", at_random(scene_asked))


if __name__ == "__main__":
    unittest.main()
