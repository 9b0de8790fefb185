"""Which AWS call a request is, and what an error looks like in each AWS protocol."""

import gzip
import json
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.sax.saxutils import escape

import cbor

CREDENTIAL_SCOPE = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/")
CBOR_PATH = re.compile(r"^/service/([A-Za-z0-9_]+)/operation/([A-Za-z0-9]+)$")
INSTANCE_ID = re.compile(r"\bi-[0-9a-f]{8,17}\b")

# Services whose signing name is not the name everybody uses.
SERVICE_NAMES = {"monitoring": "cloudwatch"}


class Signer(NamedTuple):
    """What a request's signature says of itself; nobody checks it."""

    key: str  # the access key id
    region: str
    service: str


@dataclass
class Request:
    """An HTTP request whose body is read whole."""

    method: str
    path: str
    query: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    def unzip(self) -> None:
        """Undoes gzip once, so that faults can match and every service can read the body."""
        if self.headers.get("content-encoding") == "gzip":
            self.body = gzip.decompress(self.body)
            del self.headers["content-encoding"]

    @property
    def signer(self) -> Signer:
        found = CREDENTIAL_SCOPE.search(self.headers.get("authorization", ""))
        return Signer(*found.groups()) if found else Signer("?", "?", "?")


@dataclass
class Answer:
    """An HTTP answer; the server adds Content-Length."""

    status: int
    body: bytes
    content_type: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Call:
    """One AWS API call."""

    service: str
    action: str
    protocol: str  # "cbor", "json", "ec2", "query" or "rest"
    text: str  # the body in readable form, for matching

    @property
    def target(self) -> str | None:
        """The first instance id named in the call."""
        found = INSTANCE_ID.search(self.text)
        return found.group(0) if found else None


class AwsError(Exception):
    """A refusal in AWS's words, from a part that is not moto's."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class LostAnswer(Exception):
    """The connection closes without an answer."""


def identify(request: Request) -> Call:
    service = service_name(request.signer.service)
    text = request.body.decode("utf-8", errors="replace")
    if found := CBOR_PATH.match(request.path):
        return Call(service, found.group(2), "cbor", text)
    if target := request.headers.get("x-amz-target"):
        return Call(service, target.split(".")[-1], "json", text)
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        action = urllib.parse.parse_qs(text).get("Action", ["?"])[0]
        protocol = "ec2" if service == "ec2" else "query"
        return Call(service, action, protocol, urllib.parse.unquote_plus(text))
    return Call(service, f"{request.method} {request.path}", "rest", text)


def service_name(signing_name: str) -> str:
    return SERVICE_NAMES.get(signing_name, signing_name)


def error_answer(protocol: str, status: int, code: str, message: str) -> Answer:
    if protocol == "cbor":
        return Answer(status, cbor.encode_error(code, message), "application/cbor", cbor.headers(code, status))
    if protocol == "ec2":
        error = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
        body = f"<Response><Errors>{error}</Errors><RequestID>local-aws</RequestID></Response>"
        return Answer(status, body.encode(), "text/xml")
    if protocol == "query":
        fault = "Receiver" if status >= 500 else "Sender"
        error = f"<Type>{fault}</Type><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        body = f"<ErrorResponse><Error>{error}</Error><RequestId>local-aws</RequestId></ErrorResponse>"
        return Answer(status, body.encode(), "text/xml")
    # Both spellings: DynamoDB's model has "message", that of Budgets "Message".
    body = json.dumps({"__type": code, "message": message, "Message": message}).encode()
    return Answer(status, body, "application/x-amz-json-1.0", {"x-amzn-ErrorType": code})


def not_implemented(protocol: str, message: str) -> Answer:
    """501, which no SDK retries, where moto would send an HTML page with 500."""
    return error_answer(protocol, 501, "NotImplemented", f"local AWS: {message}"[:300])
