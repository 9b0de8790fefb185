"""Smithy rpc-v2-cbor for CloudWatch, which newer SDKs speak and moto does not.

The codec is botocore's own. Its functions are private, hence the pinned version.
"""

import datetime
import functools
from typing import Any

import botocore.model
import botocore.parsers
import botocore.serialize
import botocore.session

_SERIALIZER = botocore.serialize.RpcV2CBORSerializer()
_PARSER = botocore.parsers.RpcV2CBORParser()


@functools.cache
def cloudwatch_operation(action: str) -> botocore.model.OperationModel:
    model = botocore.session.get_session().get_service_model("cloudwatch")
    return model.operation_model(action)


def headers(error_code: str | None = None, status: int = 200) -> dict[str, str]:
    answer = {"smithy-protocol": "rpc-v2-cbor"}
    if error_code:
        # CloudWatch is "query compatible": SDKs take the error code from this header.
        fault = "Receiver" if status >= 500 else "Sender"
        answer["x-amzn-query-error"] = f"{error_code};{fault}"
    return answer


def decode(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    return _PARSER.parse_data_item(_PARSER.get_peekable_stream_from_bytes(body))


def encode(value: dict[str, Any], shape: botocore.model.Shape | None) -> bytes:
    if shape is None:
        return b"\xa0"  # an empty map
    out = bytearray()
    _SERIALIZER._serialize_data_item(out, value, shape)
    return bytes(out)


def encode_error(code: str, message: str) -> bytes:
    two_pairs = b"\xa2"
    return two_pairs + _text("__type") + _text(code) + _text("message") + _text(message)


def _text(value: str) -> bytes:
    raw = value.encode()
    if len(raw) < 24:
        return bytes([0x60 | len(raw)]) + raw
    return b"\x79" + len(raw).to_bytes(2, "big") + raw


def to_json(value: Any) -> Any:
    """Decoded CBOR as awsJson has it: times as epoch seconds, nothing for null."""
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, datetime.datetime):
        return value.timestamp()
    return value


def from_json(value: Any, shape: botocore.model.Shape) -> Any:
    """An awsJson answer as the serializer takes it; members unknown to the model are dropped."""
    kind = shape.type_name
    if kind == "structure":
        known = {key: item for key, item in value.items() if item is not None and key in shape.members}
        return {key: from_json(item, shape.members[key]) for key, item in known.items()}
    if kind == "list":
        return [from_json(item, shape.member) for item in value]
    if kind == "map":
        return {key: from_json(item, shape.value) for key, item in value.items()}
    if kind == "timestamp" and isinstance(value, (int, float)):
        return datetime.datetime.fromtimestamp(value, datetime.timezone.utc)
    if kind in ("double", "float"):
        return float(value)
    if kind in ("integer", "long"):
        return int(value)
    return value
