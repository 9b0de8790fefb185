"""What terraform itself does not look at: that each refusal says what to write and is tried, and that nothing is made
before what it needs."""

import re
import sys
from pathlib import Path

# Orders that no reference makes, and that `validate` and a mocked apply do not miss.
ORDERS = {
    'aws_cloudwatch_log_subscription_filter" "wake': "aws_lambda_permission.log_group",
    'aws_cloudwatch_event_target" "schedule': "aws_budgets_budget.pools",
    'aws_lambda_function" "function': "aws_iam_role_policy.function",
    'aws_cloudformation_stack" "url': "aws_lambda_function.function",
}


def blocks(text: str, kind: str) -> dict[str, str]:
    """The top-level blocks of a kind by their labels; `terraform fmt` ends each with a brace in the first column."""
    found = re.findall(rf'^{kind} "([^\n]+)" \{{\n(.*?)^\}}', text, re.M | re.S)
    return dict(found)


def text_of(folder: Path, pattern: str) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.glob(pattern)))


def check_module(folder: Path) -> list[str]:
    """Each refusal begins with its variable's name, says what to write, and is expected by a test."""
    faults = []
    tried = set(re.findall(r"\bvar\.(\w+)", " ".join(re.findall(r"expect_failures\s*=\s*\[(.*?)\]", text_of(folder, "tests/*.hcl"), re.S))))
    for name, body in blocks(text_of(folder, "*.tf"), "variable").items():
        if "description" not in body:
            faults.append(f"{folder}: variable {name} has no description")
        messages = re.findall(r'error_message = "((?:[^"\\]|\\.)*)"', body)
        if messages and name not in tried:
            faults.append(f"{folder}: no test expects that variable {name} refuses anything")
        for message in messages:
            # "leave it out" and its like are advice too.
            if not message.startswith(f"{name}: ") or not re.search(r"\b(write|leave|count)\b", message):
                faults.append(f"{folder}: variable {name} refuses without saying what to write: {message}")
    return faults


def check_orders(folder: Path) -> list[str]:
    resources = blocks(text_of(folder, "*.tf"), "resource")
    faults = []
    for resource, needs in ORDERS.items():
        after = re.search(r"^  depends_on\s*=\s*\[([^\]]*)\]", resources.get(resource, ""), re.M)
        if after is None or needs not in after[1]:
            faults.append(f"{folder}: the resource \"{resource}\" has to depend on {needs}")
    return faults


def faults(infra: Path) -> list[str]:
    modules = [infra / "modules" / name for name in ("controller", "node")]
    return [fault for module in modules for fault in check_module(module)] + check_orders(modules[0])


if __name__ == "__main__":
    found = faults(Path(sys.argv[1]))
    print("\n".join(found) or "refusals and orders: as they should be")
    sys.exit(1 if found else 0)
