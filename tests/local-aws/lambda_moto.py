"""Lambda's configuration as AWS shows it: who may invoke, URLs, asynchronous invocation, logging.

moto takes a statement twice and shows its conditions in its own words, leaves what a stack permits when the stack goes,
shows the first asynchronous settings for ever, and does not know where a function logs. Nothing invokes anything.
"""

import json
import re
import urllib.parse
from typing import Any

import moto.awslambda.models as models
from moto.awslambda.exceptions import (
    InvalidParameterValueException,
    LambdaClientError,
    PreconditionFailedException,
    UnknownEventConfig,
)
from moto.awslambda.models import EventInvokeConfig, FunctionUrlConfig, LambdaBackend, LambdaFunction, Permission
from moto.awslambda.policy import Policy
from moto.awslambda.responses import LambdaResponse
from moto.core.responses import ActionResult
from moto.iam.models import iam_backends
from moto.moto_api._internal import mock_random

from clock import VirtualClock, aware_utc

# What AddPermission asks, and the condition that GetPolicy shows of it.
CONDITIONS = {
    "SourceArn": ("ArnLike", "AWS:SourceArn"),
    "SourceAccount": ("StringEquals", "AWS:SourceAccount"),
    "PrincipalOrgID": ("StringEquals", "aws:PrincipalOrgID"),
    "EventSourceToken": ("StringEquals", "lambda:EventSourceToken"),
    "FunctionUrlAuthType": ("StringEquals", "lambda:FunctionUrlAuthType"),
    "InvokedViaFunctionUrl": ("Bool", "lambda:InvokedViaFunctionUrl"),
}
OWN_PRINCIPAL = re.compile(r"arn:[\w-]+:iam::(\d{12}):(?:role|user)/.+")


class Conflict(LambdaClientError):
    code = 409

    def __init__(self, message: str) -> None:
        super().__init__("ResourceConflictException", message)


def install(clock: VirtualClock) -> None:
    _show_statements()
    _keep_permissions_of_stacks()
    _replace_urls()
    _replace_asynchronous_settings(clock)
    _keep_logging()


# -- who may invoke


def _show_statements() -> None:
    moto_add = Policy.add_statement

    def add(self: Policy, raw: str, qualifier: str | None = None) -> tuple[Any, str]:
        if not isinstance(self.parent, LambdaFunction):
            return moto_add(self, raw, qualifier)
        asked = json.loads(raw)
        if asked.get("RevisionId", self.revision) != self.revision:
            raise PreconditionFailedException("The RevisionId provided does not match the latest RevisionId.")
        statement = _statement(self.parent, asked, qualifier)
        if any(one["Sid"] == statement["Sid"] for one in self.statements):
            raise Conflict(
                f"The statement id ({statement['Sid']}) provided already exists. "
                "Please provide a new statement id, or remove the existing statement."
            )
        self.statements.append(statement)
        self.revision = str(mock_random.uuid4())
        return statement, self.revision

    Policy.add_statement = add


def _statement(function: LambdaFunction, asked: dict[str, Any], qualifier: str | None) -> dict[str, Any]:
    arn = function.function_arn.removesuffix(":$LATEST")
    statement = {
        "Sid": asked["StatementId"],
        "Effect": "Allow",
        "Principal": _principal(function.account_id, asked["Principal"]),
        "Action": asked["Action"],
        "Resource": f"{arn}:{qualifier}" if qualifier else arn,
    }
    condition: dict[str, dict[str, str]] = {}
    for name, (operator, key) in CONDITIONS.items():
        # A Bool that is false asks for nothing.
        if value := asked.get(name):
            condition.setdefault(operator, {})[key] = "true" if operator == "Bool" else value
    return statement | ({"Condition": condition} if condition else {})


def _principal(account: str, asked: str) -> Any:
    if asked == "*":
        return asked
    if re.fullmatch(r"\d{12}", asked):
        return {"AWS": f"arn:aws:iam::{asked}:root"}
    if not asked.startswith("arn:"):
        return {"Service": asked}
    found = OWN_PRINCIPAL.fullmatch(asked)
    # Whether another account has it cannot be known here.
    if found and found[1] == account and asked not in _identities(account):
        raise InvalidParameterValueException(
            "The provided principal was invalid. Please check the principal and try again."
        )
    return {"AWS": asked}


def _identities(account: str) -> set[str]:
    backend = iam_backends[account]["aws"]
    return {one.arn for one in [*backend.get_roles(), *backend.users.values()]}


def _keep_permissions_of_stacks() -> None:
    """AWS::Lambda::Permission is made, replaced where anything of it changed, and taken away with its stack."""

    def create(
        cls: type[Permission], name: str, template: dict[str, Any], account_id: str, region: str, **_more: Any
    ) -> Permission:
        properties = template["Properties"]
        function = models.lambda_backends[account_id][region].get_function(properties["FunctionName"])
        function.policy.add_statement(json.dumps(properties | {"StatementId": name}))
        made = cls(region)
        made.physical_resource_id, made.function = name, function
        return made

    def update(
        cls: type[Permission],
        original_resource: Permission,
        new_resource_name: str,
        cloudformation_json: dict[str, Any],
        account_id: str,
        region_name: str,
    ) -> Permission:
        made = create(cls, new_resource_name, cloudformation_json, account_id, region_name)
        original_resource.delete(account_id, region_name)
        return made

    def delete(self: Permission, _account_id: str, _region: str) -> None:
        policy = self.function.policy
        policy.statements = [one for one in policy.statements if one["Sid"] != self.physical_resource_id]

    Permission.create_from_cloudformation_json = classmethod(create)
    Permission.update_from_cloudformation_json = classmethod(update)
    Permission.delete = delete


# -- URLs


def _replace_urls() -> None:
    moto_init, moto_show = FunctionUrlConfig.__init__, FunctionUrlConfig.to_dict
    moto_create = LambdaFunction.create_url_config

    def init(self: FunctionUrlConfig, function: LambdaFunction, config: dict[str, Any]) -> None:
        moto_init(self, function, config)
        self.url += "/"

    def create(self: LambdaFunction, config: dict[str, Any]) -> FunctionUrlConfig:
        if self.url_config:
            raise Conflict(
                f"Failed to create function url config for [functionArn = {self.function_arn}]. "
                "Error message:  FunctionUrlConfig exists for this Lambda function"
            )
        return moto_create(self, config)

    def show(self: FunctionUrlConfig) -> dict[str, Any]:
        shown = moto_show(self) | {"InvokeMode": self.config.get("InvokeMode") or "BUFFERED"}
        return shown if shown["Cors"] else {name: value for name, value in shown.items() if name != "Cors"}

    def update(self: FunctionUrlConfig, asked: dict[str, Any]) -> None:
        """What is not named stays; an empty Cors takes it away."""
        self.config |= {name: asked[name] for name in ("AuthType", "Cors", "InvokeMode") if name in asked}

    FunctionUrlConfig.__init__ = init
    FunctionUrlConfig.to_dict = show
    FunctionUrlConfig.update = update
    LambdaFunction.create_url_config = create


# -- asynchronous invocation


def _replace_asynchronous_settings(clock: VirtualClock) -> None:
    def put(self: LambdaBackend, function_name: str, config: dict[str, Any]) -> dict[str, Any]:
        function = self.get_function(function_name)
        made = EventInvokeConfig(f"{function.function_arn}:$LATEST", aware_utc(clock.now_ms), config)
        function.event_invoke_config = [made]
        return made.response()

    def update(self: LambdaBackend, function_name: str, config: dict[str, Any]) -> dict[str, Any]:
        """What is not named stays."""
        function = self.get_function(function_name)
        if not function.event_invoke_config:
            raise UnknownEventConfig(function.function_arn)
        return put(self, function_name, function.event_invoke_config[0].config | config)

    def show(self: EventInvokeConfig) -> dict[str, Any]:
        destinations = {"OnSuccess": {}, "OnFailure": {}} | self.config.get("DestinationConfig", {})
        shown = {"FunctionArn": self.arn, "LastModified": self.last_modified}
        return shown | self.config | {"DestinationConfig": destinations}

    # moto answers these two with a time in words, which newer SDKs do not read.
    def answer_update(self: LambdaResponse) -> ActionResult:
        return ActionResult(self.backend.update_function_event_invoke_config(_named(self, 1), self.json_body))

    def answer_list(self: LambdaResponse) -> ActionResult:
        return ActionResult(self.backend.list_function_event_invoke_configs(_named(self, 2)))

    LambdaBackend.put_function_event_invoke_config = put
    LambdaBackend.update_function_event_invoke_config = update
    EventInvokeConfig.response = show
    LambdaResponse.update_function_event_invoke_config = answer_update
    LambdaResponse.list_function_event_invoke_configs = answer_list


def _named(response: LambdaResponse, from_the_end: int) -> str:
    """The function's name, so many parts of the path before its last."""
    return urllib.parse.unquote(response.path.rstrip("/").split("/")[-1 - from_the_end])


# -- logging


def _keep_logging() -> None:
    moto_init, moto_show, moto_update = (
        LambdaFunction.__init__,
        LambdaFunction.get_configuration,
        LambdaFunction.update_configuration,
    )

    def init(self: LambdaFunction, account_id: str, spec: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        self.logging_config = spec.get("LoggingConfig", {})
        moto_init(self, account_id, spec, *args, **kwargs)

    def show(self: LambdaFunction, on_create: bool = False) -> dict[str, Any]:
        usual = {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{self.function_name}"}
        return moto_show(self, on_create) | {"LoggingConfig": usual | self.logging_config}

    def update(self: LambdaFunction, asked: dict[str, Any]) -> dict[str, Any]:
        self.logging_config = asked.get("LoggingConfig", self.logging_config)
        return moto_update(self, asked)

    LambdaFunction.__init__ = init
    LambdaFunction.get_configuration = show
    LambdaFunction.update_configuration = update
