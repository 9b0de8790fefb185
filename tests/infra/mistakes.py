"""Mistakes of every kind, each tried on a copy: something of the above has to catch it. mistakes.py TERRAFORM WORK [WORD]

`validate` is asked first, then check.py, then the one test file that is named, or order.py. A mistake that nothing catches
fails, and so does one whose text is not found any more."""

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import order
from check import faults

CONTROLLER, NODE = "modules/controller", "modules/node"


@dataclass(frozen=True)
class Mistake:
    kind: str
    file: str
    old: str
    new: str
    test: str = ""

    @property
    def module(self) -> str:
        return NODE if self.file.startswith(NODE) else CONTROLLER


def in_controller(kind: str, file: str, old: str, new: str, test: str = "") -> Mistake:
    return Mistake(kind, f"{CONTROLLER}/{file}", old, new, test)


def in_node(kind: str, file: str, old: str, new: str, test: str = "node") -> Mistake:
    return Mistake(kind, f"{NODE}/{file}", old, new, test)


MISTAKES = [
    # What `validate` sees.
    in_controller("an argument misspelt", "ledger.tf", "billing_mode", "biling_mode"),
    in_controller("an argument missing", "alerts.tf", '  protocol  = "email"\n', ""),
    in_controller("a block misspelt", "functions.tf", "  environment {", "  enviroment {"),
    in_controller("a resource misspelt", "ledger.tf", '"aws_dynamodb_table"', '"aws_dynamo_table"'),
    in_controller("a variable that is not there", "functions.tf", "[var.architecture]", "[var.arch]"),
    in_controller("a resource that is not there", "triggers.tf", "aws_cloudwatch_event_rule.node_stopped.arn", "aws_cloudwatch_event_rule.stopped.arn"),
    in_controller("an attribute that is not there", "functions.tf", "aws_sqs_queue.failed_events.arn", "aws_sqs_queue.failed_events.amazon_name"),
    in_controller("a value of the wrong type", "functions.tf", "message_retention_seconds = 1209600", 'message_retention_seconds = "two weeks"'),
    in_controller("a runtime that is not there", "functions.tf", '"provided.al2023"', '"provided.al2024"'),
    in_controller("a number out of range", "functions.tf", "maximum_retry_attempts = 2", "maximum_retry_attempts = 3"),
    in_controller("a word of another list", "url.tf", '"AWS_IAM"', '"IAM"', "url"),
    in_controller("a comparison that is not there", "alarms.tf", '"LessThanThreshold"', '"LessThan"'),
    in_controller("a period that CloudWatch refuses", "alarms.tf", "= 86400", "= 86401", "watching"),
    in_controller("a name twice", "outputs.tf", 'output "table_arn"', 'output "table_name"'),
    in_controller("a bracket missing", "main.tf", "length(module.rules.faults) == 0", "length(module.rules.faults == 0"),
    in_controller("a key of a for_each resource forgotten", "functions.tf", 'aws_lambda_function.function["wake"].function_name', "aws_lambda_function.function.function_name"),
    in_node("a provider's word in the wrong case", "main.tf", 'http_tokens = "required"', 'http_tokens = "Required"'),
    in_node("a kind of volume that is not there", "main.tf", '"gp3"', '"gp4"'),
    # What it does not see.
    in_controller("a bad schedule expression", "triggers.tf", '"rate(${each.value} minutes)"', '"rate(${each.value} minute)"', "triggers"),
    in_controller("a service's name wrong", "triggers.tf", '"events.amazonaws.com"', '"event.amazonaws.com"', "triggers"),
    in_controller("who takes the roles wrong", "roles.tf", '"lambda.amazonaws.com"', '"lambda.aws.com"', "rights"),
    in_controller("a dropped depends_on", "triggers.tf", "  depends_on = [aws_lambda_permission.log_group, data.aws_cloudwatch_log_groups.wake]\n", ""),
    in_controller("rights that come after the function", "functions.tf", "[aws_iam_role_policy.function, terraform_data.settings]", "[terraform_data.settings]"),
    in_controller("an IAM action misspelt", "roles.tf", '"ec2:StartInstances"', '"ec2:StartInstance"', "rights"),
    in_controller("an IAM action too many", "roles.tf", '["ec2:StopInstances"]', '["ec2:StopInstances", "ec2:TerminateInstances"]', "rights"),
    in_controller("a resource widened", "roles.tf", "Resource = local.table_arn", 'Resource = "*"', "rights"),
    in_controller("a condition dropped", "roles.tf", "      Condition = { StringEquals = local.pool_tag }\n", "", "rights"),
    in_controller("the grant of a key forgotten (case 03)", "roles.tf", '"stop", "change", "grant"]', '"stop", "change"]', "rights"),
    in_controller("a publisher forgotten (case 39)", "alerts.tf", '    Budgets    = "budgets.amazonaws.com"\n', "", "alerts"),
    in_controller("a publisher of any account", "alerts.tf", "{ StringEquals = { \"aws:SourceAccount\" = local.account } }", "{}", "alerts"),
    in_controller("the budget's tag escaped away", "budget.tf", 'format("user:reveille:pool$%s", pool)', '"user:reveille:pool$${pool}"', "alerts"),
    in_controller("a caller's account in another form than Lambda's", "url.tf", ":root", ":user/root", "url"),
    in_controller("rules that a second apply overwrites", "triggers.tf", "  tags                = var.tags\n  depends_on          = [aws_iam_role.function]\n", "", "order"),
    in_controller("a queue that a second apply takes over", "functions.tf", "  depends_on                = [aws_iam_role.function]\n", "", "order"),
    in_node("a network that a second apply makes", "network.tf", "depends_on = [aws_iam_role.node]", "depends_on = []", "order"),
    in_controller("a URL that everybody may go round", "url.tf", "InvokedViaFunctionUrl", "SourceAccount", "url"),
    in_controller("the second permission of a URL forgotten", "url.tf", "count = length(local.callers) > 0 ? 1 : 0", "count = 0", "url"),
    in_controller("a scheduled run that is repeated (case 36)", "functions.tf", "maximum_retry_attempts       = 0", "maximum_retry_attempts       = 2", "functions"),
    in_controller("silence that is no alarm", "alarms.tf", '"breaching"', '"notBreaching"', "watching"),
    in_controller("an alarm that waits for more runs than there are", "alarms.tf", "2 * minutes > 15", "minutes > 15", "watching"),
    in_controller("an alarm that tells nobody", "alarms.tf", "to_people = [aws_sns_topic.alerts.arn]", "to_people = []", "watching"),
    in_controller("an alarm on another metric", "alarms.tf", '"StatusCheckFailed"', '"StatusCheck"', "watching"),
    in_controller("a setting of another name", "settings.tf", "    REVEILLE_IDLE_MINUTES ", "    REVEILLE_IDEL_MINUTES ", "functions"),
    in_controller("an expiry of another name", "ledger.tf", '"expires_at"', '"ttl"', "functions"),
    in_controller("a pattern of another state", "triggers.tf", '["stopped"]', '["stopping"]', "triggers"),
    in_controller("zips of another architecture", "functions.tf", "local.manifest.architecture == var.architecture", "local.manifest.architecture != null", "refusals"),
    in_controller("zips of another build", "functions.tf", "local.hashes[each.key] == local.manifest.functions[each.key].sha256", "local.hashes[each.key] != null", "refusals"),
    in_controller("a manifest in S3 that cannot be read", "functions.tf", "self.body != null", 'self.key != ""', "refusals"),
    in_controller("a log group that is not looked for", "triggers.tf", "contains(self.log_group_names, each.value)", "self.log_group_names != null", "refusals"),
    in_controller("rules that nobody asks", "main.tf", "length(module.rules.faults) == 0", "length(module.rules.faults) >= 0", "refusals"),
    in_controller("a refusal that refuses nothing", "settings.tf", "var.tick_minutes >= 5", "var.tick_minutes >= 0", "refusals"),
    in_controller("a refusal that does not say what to write", "variables.tf", "mail: write addresses such as", "mail: no address:"),
    in_node("an instance type that is made up", "main.tf", "length(self.instance_types) > 0", "self.instance_types != null"),
    in_node("an AMI that does not exist", "main.tf", "length(self.ids) == 1", "self.ids != null"),
    in_node("a beat that writes every key", "files/beat-policy.json", '"beat#INSTANCE_ID"', '"beat#*"'),
    in_node("a disk without encryption", "main.tf", "encrypted   = true", "encrypted   = false"),
    in_node("no way back from a peer", "network.tf", "for_each                  = local.routes_back", "for_each                  = {}"),
    in_node("a peering that accepts for others", "network.tf", "auto_accept   = contains(keys(local.own_peers), each.key)", "auto_accept   = true"),
]


# Terraform keeps one core busy.
WORKERS = 2


class Copy:
    """A copy of infra/, initialised once; a mistake is written into it and taken out again."""

    def __init__(self, terraform: str, work: Path, name: str):
        self.terraform = terraform
        self.root = work / name
        shutil.rmtree(self.root, ignore_errors=True)
        # With its .terraform folders: the modules' paths in them are relative.
        shutil.copytree(work / "infra", self.root, symlinks=True)

    def fails(self, module: str, *arguments: str) -> bool:
        ran = subprocess.run(
            ["timeout", "300", self.terraform, *arguments], cwd=self.root / module, capture_output=True, text=True
        )
        return ran.returncode != 0

    def caught_by(self, mistake: Mistake) -> str | None:
        path = self.root / mistake.file
        before = path.read_text()
        if mistake.old not in before:
            return None
        path.write_text(before.replace(mistake.old, mistake.new))
        try:
            if self.fails(mistake.module, "validate"):
                return "validate"
            if faults(self.root):
                return "check.py"
            if mistake.test == "order":
                return "order.py" if order.faults(self.terraform, self.root / mistake.module) else None
            if mistake.test and self.fails(mistake.module, "test", f"-filter=tests/{mistake.test}.tftest.hcl"):
                return f"terraform test, {mistake.test}"
            return None
        finally:
            path.write_text(before)


def unsaid(copy: Copy) -> list[str]:
    """The messages of the rules that no row of their tests asks for: each is blanked in turn."""
    module = f"{CONTROLLER}/rules"
    path = copy.root / module / "main.tf"
    before = path.read_text()
    # Messages are what ends as a sentence, but for the output's own description.
    messages = re.findall(r'"((?:[^"\\\n]|\\.)*[.?])"', before.split("\noutput ")[0])
    missed = []
    for message in messages:
        path.write_text(before.replace(f'"{message}"', '"-"'))
        if not copy.fails(module, "test"):
            missed.append(message)
    path.write_text(before)
    print(f"rules: {len(messages) - len(missed)} of {len(messages)} messages are asked for by a test")
    return missed


def tried(copy: Copy, mistakes: list[Mistake]) -> list[str]:
    """Those that nothing catches."""
    missed = []
    for mistake in mistakes:
        by = copy.caught_by(mistake)
        print(f"{'caught' if by else 'MISSED'}: {mistake.kind}{f' ({by})' if by else ''}", flush=True)
        missed += [] if by else [mistake.kind]
    return missed


def main() -> int:
    terraform, work, *word = sys.argv[1:]
    mistakes = [mistake for mistake in MISTAKES if not word or word[0] in mistake.kind]
    copies = [Copy(terraform, Path(work), f"mistakes-{n}") for n in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        shares = [pool.submit(tried, copy, mistakes[n::WORKERS]) for n, copy in enumerate(copies)]
        missed = [kind for share in shares for kind in share.result()]
    missed += [] if word else unsaid(copies[0])
    print("\n".join([f"mistakes: all {len(mistakes)} caught"] if not missed else ["mistakes that nothing catches:", *missed]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
