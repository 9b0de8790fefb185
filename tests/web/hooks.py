"""Loaded by schemathesis."""

import schemathesis


@schemathesis.hook
def before_load_schema(context, schema):
    close(schema)


@schemathesis.hook
def filter_case(context, case):
    """OpenAPI 3.1 cannot say that two parameters exclude each other; test_contract.py asks for both by itself."""
    query = case.query or {}
    return not (query.get("pool") and query.get("node"))


@schemathesis.deserializer("text/html")
def page(context, response):
    """A page is a text to the contract; test_page.py looks at it."""
    return response.text


def close(schema):
    """A field that the contract does not name is a fault here, though callers are told that more may come."""
    responses = list(schema["components"]["responses"].values())
    for path in schema["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict):
                responses += operation["responses"].values()
    for response in responses:
        for kind, media in response.get("content", {}).items():
            if kind.endswith("json"):
                media["schema"]["unevaluatedProperties"] = False
