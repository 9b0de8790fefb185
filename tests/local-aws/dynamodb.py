"""DynamoDB's comparisons, sizes and document paths, where moto's differ.

moto trips over values of different types and over the size of what is absent, writes into texts and
numbers as if they were maps, shares a map between two attributes, looks for paths that overlap after
the condition and by placeholder, takes expressions of any length, and keeps half of an update that
fails.
"""

import copy
from typing import Any

from moto.dynamodb import comparisons
from moto.dynamodb.exceptions import (
    ExpressionAttributeNameNotDefined,
    InvalidUpdateExpression,
    ItemSizeToUpdateTooLarge,
    MockValidationException,
    ProvidedKeyDoesNotExist,
)
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import Table
from moto.dynamodb.parsing import ast_nodes, validators
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.responses import DynamoHandler

ORDERED_TYPES = ("S", "N", "B")
LARGEST_ITEM = 400 * 1024
LONGEST_EXPRESSION = 4 * 1024
ACTIONS = [
    ast_nodes.UpdateExpressionSetAction,
    ast_nodes.UpdateExpressionAddAction,
    ast_nodes.UpdateExpressionRemoveAction,
    ast_nodes.UpdateExpressionDeleteAction,
]


def install() -> None:
    _replace_size()
    _replace_comparisons()
    _replace_paths()
    _replace_overlaps()
    _check_before_the_condition()
    _limit_expressions()
    _undo_what_fails()
    _replace_keys()


# -- Conditions


def _replace_size() -> None:
    """What has no size compares as what is absent does."""
    moto_size = comparisons.FuncSize.expr

    def get_type(self: Any, item: Any) -> str | None:
        sized = self.attr.get_type(item) not in (None, "N", "BOOL", "NULL")
        return "N" if sized else None

    def size(self: Any, item: Any) -> int | None:
        return moto_size(self, item) if self.get_type(item) else None

    comparisons.FuncSize.get_type = get_type
    comparisons.FuncSize.expr = size


def _replace_comparisons() -> None:
    """Values of different types are neither equal nor in any order; to Python, 1 and true are equal."""

    def ordered(operator: Any) -> Any:
        moto_compare = operator.expr

        def compare(self: Any, item: Any) -> bool:
            return _same_type(self, item, ORDERED_TYPES) and moto_compare(self, item)

        return compare

    for operator in (
        comparisons.OpLessThan,
        comparisons.OpLessThanOrEqual,
        comparisons.OpGreaterThan,
        comparisons.OpGreaterThanOrEqual,
    ):
        operator.expr = ordered(operator)
    moto_equal = comparisons.OpEqual.expr

    def equal(self: Any, item: Any) -> bool:
        return _same_type(self, item) and moto_equal(self, item)

    comparisons.OpEqual.expr = equal
    comparisons.OpNotEqual.expr = lambda self, item: not equal(self, item)


def _same_type(operator: Any, item: Any, among: tuple[str, ...] | None = None) -> bool:
    found = operator.lhs.get_type(item)
    return found == operator.rhs.get_type(item) and (among is None or found in among)


# -- Document paths


def _replace_paths() -> None:
    resolver, processor = validators.ExpressionPathResolver, validators.ExpressionAttributeResolvingProcessor
    moto_resolve, moto_read = resolver.resolve_expression_path_nodes, processor.resolve_expression_path

    def resolve(self: Any, item: Any, nodes: list[Any]) -> Any:
        """A key can be made in a map only: moto passes over one in a text or a number."""
        found = moto_resolve(self, item, nodes)
        absent = isinstance(found, validators.NoneExistingPath) and found.is_creatable()
        if absent and len(nodes) > 1 and not isinstance(nodes[-1], ast_nodes.ExpressionSelector):
            parent = moto_resolve(self, item, nodes[:-2])  # without the dot and the key
            if not parent.get_value().is_map():
                return validators.NoneExistingPath()
        return found

    def read(self: Any, node: Any) -> Any:
        """A copy: what is set to it must not change with it."""
        return copy.deepcopy(moto_read(self, node))

    resolver.resolve_expression_path_nodes = resolve
    processor.resolve_expression_path = read


def _replace_overlaps() -> None:
    def check(self: Any, node: Any) -> Any:
        paths: list[list[str]] = []
        for action in node.find_clauses(ACTIONS):
            path = _names_on(action.children[0], self.expression_attribute_names or {})
            for other in paths:
                shorter = min(len(path), len(other))
                if path[:shorter] == other[:shorter]:
                    raise InvalidUpdateExpression(
                        "Two document paths overlap with each other; must remove or rewrite one of these paths; "
                        f"path one: [{', '.join(other)}], path two: [{', '.join(path)}]"
                    )
            paths.append(path)
        return node

    validators.OverlappingPathsValidator.check_for_overlapping_paths = check


def _names_on(path: Any, names: dict[str, str]) -> list[str]:
    found = []
    for node in path.children:
        if isinstance(node, ast_nodes.ExpressionAttributeName):
            placeholder = node.get_attribute_name_placeholder()
            if placeholder not in names:
                raise ExpressionAttributeNameNotDefined(placeholder)
            found.append(names[placeholder])
        elif not isinstance(node, ast_nodes.ExpressionPathDescender):
            found.append(node.to_str())
    return found


def _check_before_the_condition() -> None:
    """A wrong expression is refused as such even where the condition would be lost."""
    moto_update = DynamoDBBackend.update_item

    def update(
        self: Any,
        table_name: str,
        key: Any,
        update_expression: str,
        expression_attribute_names: dict[str, str],
        expression_attribute_values: dict[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        names, values = expression_attribute_names, expression_attribute_values
        if update_expression:
            keys = self.get_table(table_name).table_key_attrs
            expression = UpdateExpressionParser.make(update_expression)
            for check in (
                validators.ActionCountValidator(),
                validators.OverlappingPathsValidator(names),
                validators.UpdateHashRangeKeyValidator(keys, names or {}),
                validators.ExpressionAttributeValueProcessor(values),
            ):
                expression = check.traverse(expression)
        return moto_update(self, table_name, key, update_expression, names, values, *args, **kwargs)

    DynamoDBBackend.update_item = update


def _limit_expressions() -> None:
    """moto takes expressions of any length."""
    moto_update = DynamoHandler.update_item

    def update(self: Any) -> Any:
        for name in ("UpdateExpression", "ConditionExpression"):
            size = len(self.body.get(name, "").encode())
            if size > LONGEST_EXPRESSION:
                raise MockValidationException(
                    f"Invalid {name}: Expression size has exceeded the maximum allowed size; expression size: {size}"
                )
        return moto_update(self)

    DynamoHandler.update_item = update


def _undo_what_fails() -> None:
    """moto leaves the first half of an update that fails in its second, and lets maps grow without end."""
    moto_update = DynamoDBBackend.update_item

    def update(self: Any, table_name: str, key: Any, *args: Any, **kwargs: Any) -> Any:
        before = copy.deepcopy(self.get_item(table_name, key))
        try:
            item = moto_update(self, table_name, key, *args, **kwargs)
            if item.size() > LARGEST_ITEM:
                raise ItemSizeToUpdateTooLarge
        except Exception:
            if before is None:
                self.delete_item(table_name, key)
            else:
                self.get_item(table_name, key).attrs = before.attrs
            raise
        return item

    DynamoDBBackend.update_item = update


# -- Keys


def _replace_keys() -> None:
    moto_keys, moto_batch_get = DynamoDBBackend.get_keys_value, DynamoHandler.batch_get_item

    def keys(self: Any, table: Table, given: dict[str, Any]) -> Any:
        types = {one["AttributeName"]: one["AttributeType"] for one in table.attr}
        wanted = {name: types[name] for name in table.table_key_attrs}
        if {name: next(iter(value)) for name, value in given.items()} != wanted:
            raise ProvidedKeyDoesNotExist
        return moto_keys(self, table, given)

    def batch_get(self: Any) -> Any:
        if not all(wanted["Keys"] for wanted in self.body["RequestItems"].values()):
            raise MockValidationException(
                "1 validation error detected: Value at 'requestItems.member.keys' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1"
            )
        return moto_batch_get(self)

    DynamoDBBackend.get_keys_value = keys
    DynamoHandler.batch_get_item = batch_get
