"""Runs a handler as Lambda's Python runtime does, with less: the standard library's HTTP client, no error reports."""

import http.client
import json
import os
import sys
from types import SimpleNamespace


def serve(handle):
    api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    base = "/2018-06-01/runtime/invocation"
    while True:
        api.request("GET", f"{base}/next")
        event = api.getresponse()
        payload = json.loads(event.read())
        context = SimpleNamespace(aws_request_id=event.headers["lambda-runtime-aws-request-id"])
        answer = json.dumps(handle(payload, context))
        sys.stdout.flush()
        api.request("POST", f"{base}/{context.aws_request_id}/response", answer)
        api.getresponse().read()
