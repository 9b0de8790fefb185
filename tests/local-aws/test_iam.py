"""What a role's policies allow: its evaluation by tables, its enforcement asked of a launched process with boto3."""

import json
import pathlib
import re
import unittest
import urllib.error
import urllib.request

import boto3
import botocore
import botocore.config
import botocore.session

import test_launcher
from iam import Refused, allowing, parsed
from iam_calls import CALLS, TAGS, NotJudged, Question
from test_launcher import REGION, START, START_MS, Case, Ec2Case, make_table

ROOT = pathlib.Path(__file__).parents[2]
BEAT_POLICY = ROOT / "infra/modules/node/files/beat-policy.json"
WHO_AM_I = ("sts", "GetCallerIdentity")
ACCOUNT = "123456789012"
KEY = "AKIAWAKE000000000000"
ROLE = "reveille-wake"
NODE = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-0abc"
TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/state"
GROUP = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:alerts"
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})


def setUpModule():
    global aws
    test_launcher.setUpModule()
    aws = test_launcher.aws


def tearDownModule():
    test_launcher.tearDownModule()


def statement(action, resource="*", condition=None, effect="Allow", **more):
    found = {"Effect": effect, "Action": action, "Resource": resource} | more
    return found | ({"Condition": condition} if condition else {})


def policy(*statements):
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allows(statements, question):
    """Asked of the evaluation alone."""
    try:
        return bool(allowing(list(parsed("p", policy(*statements))), question))
    except Refused:
        return False


class Evaluation(unittest.TestCase):
    def check(self, rows, question):
        """A row: its name, its statements, whether they allow the question."""
        for name, statements, expected in rows:
            with self.subTest(name):
                self.assertIs(expected, allows(statements, question))

    def test_actions_and_effects(self):
        start = "ec2:StartInstances"
        rows = [
            ("nothing", [], False),
            ("the action", [statement(start)], True),
            ("in other letters", [statement("EC2:startinstances")], True),
            ("one of several", [statement(["ec2:StopInstances", start])], True),
            ("another action", [statement("ec2:StopInstances")], False),
            ("a longer action", [statement("ec2:StartInstancesNow")], False),
            ("a beginning", [statement("ec2:Start")], False),
            ("any text", [statement("ec2:Start*")], True),
            ("any text in other letters", [statement("EC2:sTART*")], True),
            ("any text of nothing", [statement("ec2:StartInstances*")], True),
            ("one letter", [statement("ec2:?tartInstances")], True),
            ("one letter too many", [statement("ec2:?StartInstances")], False),
            ("everything", [statement("*")], True),
            ("another service", [statement("s3:*")], False),
            ("denied", [statement(start), statement(start, effect="Deny")], False),
            ("denied first", [statement(start, effect="Deny"), statement("*")], False),
            ("another is denied", [statement(start), statement("ec2:StopInstances", effect="Deny")], True),
            ("only not denied", [statement("ec2:StopInstances", effect="Deny")], False),
        ]
        self.check(rows, Question(start, NODE))

    def test_resources(self):
        def of(resource):
            return [statement("*", resource)]

        rows = [
            ("itself", of(NODE), True),
            ("one of several", of([TABLE, NODE]), True),
            ("another", of(NODE + "d"), False),
            ("in other letters", of(NODE.upper()), False),
            ("everything", of("*"), True),
            ("every instance", of(NODE.replace("i-0abc", "*")), True),
            ("one letter", of(NODE.replace("0abc", "0ab?")), True),
            ("a letter too few", of(NODE.replace("0abc", "0abc?")), False),
            ("another region", of(NODE.replace(REGION, "eu-west-1")), False),
            ("a region's beginning", of(NODE.replace(REGION, "eu-*")), True),
            ("no region", of(NODE.replace(REGION, "")), False),
            ("within its segment", of(NODE.replace(REGION, "eu-*-1")), True),
            ("not beyond its segment", of("arn:aws:e*2:instance/i-0abc"), False),
            ("beyond it at its end", of("arn:aws:ec2:*:instance/i-0abc"), True),
            ("not only a colon more", of("arn:aws:ec2:?*?:instance/i-0abc"), False),
        ]
        self.check(rows, Question("ec2:StartInstances", NODE))

    def test_a_call_without_a_resource_needs_a_star(self):
        rows = [
            ("a star", [statement("*", "*")], True),
            ("instances", [statement("*", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/*")], False),
            ("an ARN of stars", [statement("*", "arn:aws:ec2:*:*:*")], False),
        ]
        self.check(rows, Question("ec2:DescribeInstances", "*"))

    def test_log_groups(self):
        group, stream = f"{GROUP}:/a/b:log-stream:", f"{GROUP}:/a/b:log-stream:2026/11/30/[1]x"
        rows = [
            (f"{GROUP}:/a/b:*", True, True),
            (f"{GROUP}:/a/b", False, False),
            (f"{GROUP}:/a/b*", True, True),
            (f"{GROUP}:/a/*:*", True, True),
            (f"{GROUP}:/a/bc:*", False, False),
            (f"{GROUP}:/a:*", False, False),
            (f"{GROUP}:*", True, True),
            (f"{GROUP}:/a/b:log-stream:2026/*", False, True),
            (f"{GROUP}:*:log-stream:*", True, True),
        ]
        for resource, of_group, of_stream in rows:
            self.check([(resource, [statement("logs:*", resource)], of_group)], Question("logs:FilterLogEvents", group))
            self.check([(resource, [statement("logs:*", resource)], of_stream)], Question("logs:PutLogEvents", stream))

    def test_conditions(self):
        """Each operator on a key with one value: its value, absent, and what the policy wants."""
        arn = "arn:aws:sns:eu-central-1:1:alerts"
        rows = [
            ("StringEquals", "voice", "voice", True),
            ("StringEquals", "voice", ["batch", "voice"], True),
            ("StringEquals", "voice", "batch", False),
            ("StringEquals", "voice", "Voice", False),
            ("StringEquals", "voice", "v*", False),
            ("StringEquals", None, "voice", False),
            ("StringEquals", "true", True, True),
            ("StringEquals", "9", 9, True),
            ("StringEqualsIfExists", "voice", "voice", True),
            ("StringEqualsIfExists", "voice", "batch", False),
            ("StringEqualsIfExists", None, "voice", True),
            ("StringLike", "voice", "v*e", True),
            ("StringLike", "voice", "voic?", True),
            ("StringLike", "voice", "V*", False),
            ("StringLike", "voice", "v?", False),
            ("StringLike", None, "*", False),
            ("Bool", "true", "true", True),
            ("Bool", "true", "True", True),
            ("Bool", "true", True, True),
            ("Bool", "false", False, True),
            ("Bool", "false", True, False),
            ("Bool", "false", "true", False),
            ("Bool", None, "false", False),
            ("Null", "voice", "false", True),
            ("Null", "voice", "true", False),
            ("Null", None, "true", True),
            ("Null", None, "false", False),
            ("Null", None, True, True),
            *(
                (operator, *row)
                for operator in ("ArnLike", "ArnEquals")
                for row in [
                    (arn, arn, True),
                    (arn, "arn:aws:sns:*:1:a*", True),
                    (arn, "arn:aws:sns:*:alerts", False),
                    (arn, "arn:aws:sns:eu-central-1:1:alert", False),
                    ("no arn", "*", False),
                    (None, arn, False),
                ]
            ),
        ]
        for operator, value, wanted, expected in rows:
            with self.subTest(operator=operator, value=value, wanted=wanted):
                question = Question("ec2:StartInstances", NODE, {"some:key": value})
                self.assertIs(expected, allows([statement("*", condition={operator: {"some:key": wanted}})], question))
                denied = [statement("*"), statement("*", effect="Deny", condition={operator: {"some:key": wanted}})]
                self.assertIs(not expected, allows(denied, question))

    def test_conditions_on_many_values(self):
        rows = [
            ("ForAllValues:StringEquals", ["a"], ["a", "b"], True),
            ("ForAllValues:StringEquals", ["a", "b"], ["a", "b"], True),
            ("ForAllValues:StringEquals", ["a", "c"], ["a", "b"], False),
            ("ForAllValues:StringEquals", None, ["a"], True),
            ("ForAllValues:StringLike", ["ab", "ac"], "a*", True),
            ("ForAllValues:StringLike", ["ab", "bc"], "a*", False),
            ("ForAnyValue:StringEquals", ["a", "c"], ["a", "b"], True),
            ("ForAnyValue:StringEquals", ["c"], ["a", "b"], False),
            ("ForAnyValue:StringEquals", None, ["a"], False),
            ("Null", ["a"], "false", True),
            ("Null", None, "false", False),
        ]
        for operator, values, wanted, expected in rows:
            with self.subTest(operator=operator, values=values):
                question = Question("dynamodb:PutItem", TABLE, {"some:key": values})
                self.assertIs(expected, allows([statement("*", condition={operator: {"some:key": wanted}})], question))

    def test_conditions_of_a_statement_all_have_to_hold(self):
        both = {"StringEquals": {"k:a": "1", "k:b": "2"}, "Bool": {"k:c": "true"}}
        for a, b, c, expected in [
            ("1", "2", "true", True),
            ("0", "2", "true", False),
            ("1", "0", "true", False),
            ("1", "2", "false", False),
        ]:
            question = Question("ec2:StartInstances", NODE, {"k:a": a, "k:b": b, "k:c": c})
            self.assertIs(expected, allows([statement("*", condition=both)], question), (a, b, c))

    def test_names_of_keys_are_not_case_sensitive(self):
        question = Question("ec2:StartInstances", NODE, {"aws:ResourceTag/reveille:pool": "voice"}, TAGS)
        for key, expected in (("AWS:resourcetag/Reveille:Pool", True), ("aws:ResourceTag/reveille:pools", False)):
            self.assertIs(expected, allows([statement("*", condition={"StringEquals": {key: "voice"}})], question), key)

    def test_what_is_not_known_is_named(self):
        rows = [
            ("NotAction", {"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}),
            ("NotResource", {"Effect": "Deny", "Action": "s3:*", "NotResource": "*"}),
            ("Principal", statement("*", Principal="*")),
            ("Resource", {"Effect": "Allow", "Action": "*"}),
            ("allow", statement("*", effect="allow")),
            ("policy variable", statement("*", "arn:aws:ec2:*:*:instance/${aws:username}")),
            ("StringNotEquals", statement("s3:*", condition={"StringNotEquals": {"some:key": "a"}})),
            ("NullIfExists", statement("s3:*", condition={"NullIfExists": {"some:key": "true"}})),
            ("some:other", statement("*", condition={"StringEquals": {"some:other": "a"}})),
            ("some:other", statement("*", condition={"StringEqualsIfExists": {"some:other": "a"}})),
            ("some:other", statement("*", condition={"Null": {"some:other": "true"}})),
            ("some:other", statement("*", condition={"StringEquals": {"some:key": "b", "some:other": "a"}})),
            ("many values", statement("*", condition={"StringEquals": {"some:many": "a"}})),
            ("some:other", statement("*", effect="Deny", condition={"StringEquals": {"some:other": "a"}})),
        ]
        question = Question("ec2:StartInstances", NODE, {"some:key": "a", "some:many": ["a"]})
        for name, wrong in rows:
            with self.subTest(name, statement=wrong), self.assertRaisesRegex(NotJudged, name):
                allowing(list(parsed("p", policy(statement("*"), wrong))), question)

    def test_an_unknown_key_of_another_action_is_nobody_s_trouble(self):
        other = statement("s3:*", condition={"StringEquals": {"s3:prefix": "a"}})
        self.assertTrue(allows([other, statement("ec2:*")], Question("ec2:StartInstances", NODE)))

    def test_one_statement_needs_no_list(self):
        [only] = parsed("p", {"Version": "2012-10-17", "Statement": statement("*", Sid="A")})
        self.assertEqual(
            ("A", "Allow", ["*"], ["*"], []), (only.sid, only.effect, only.actions, only.resources, only.conditions)
        )

    def test_all_that_allow_are_named(self):
        statements = [
            statement(["ec2:*", "ec2:StartInstances", "s3:*"], Sid="A"),
            statement("ec2:Start*"),
            statement("s3:*", Sid="C"),
        ]
        found = allowing(list(parsed("p", policy(*statements))), Question("ec2:StartInstances", NODE))
        self.assertEqual({("p", "A", "ec2:*"), ("p", "A", "ec2:StartInstances"), ("p", "p[1]", "ec2:Start*")}, found)

    def test_the_grant_of_a_volume_s_key(self):
        """As roles.tf writes it. EC2 asks for it; no call of a function does."""
        condition = {
            "Bool": {"kms:GrantIsForAWSResource": "true"},
            "StringEquals": {"kms:ViaService": "ec2.eu-central-1.amazonaws.com"},
        }
        granting = [statement("kms:CreateGrant", condition=condition)]
        for resource, via, expected in [
            ("true", "ec2", True),
            ("false", "ec2", False),
            ("true", "sns", False),
            (None, None, False),
        ]:
            context = {
                "kms:GrantIsForAWSResource": resource,
                "kms:ViaService": via and f"{via}.eu-central-1.amazonaws.com",
            }
            self.assertIs(expected, allows(granting, Question("kms:CreateGrant", "arn:aws:kms:::key/1", context)))


class RoleCase(Case):
    """One role, acted as by KEY."""

    def setUp(self):
        super().setUp()
        self.iam = aws.client("iam")
        self.iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=TRUST)
        aws.admin("POST", "iam", {"keys": {KEY: ROLE}})

    def may(self, *statements, name="reveille"):
        self.iam.put_role_policy(RoleName=ROLE, PolicyName=name, PolicyDocument=json.dumps(policy(*statements)))

    def client(self, service, key=KEY, region=REGION):
        config = botocore.config.Config(retries={"total_max_attempts": 1})
        return boto3.client(
            service,
            endpoint_url=aws.url,
            region_name=region,
            aws_access_key_id=key,
            aws_secret_access_key="s",
            config=config,
        )

    def last_refused(self):
        return aws.admin("GET", "iam")["refused"][-1]

    def used(self):
        return {(one["sid"], one["action"]): one["used"] for one in aws.admin("GET", "iam")["permissions"]}

    def assert_denied(self, code, status, call, **parameters):
        response = self.assert_refused(code, call, **parameters)
        self.assertEqual(status, response["ResponseMetadata"]["HTTPStatusCode"])
        return response["Error"]["Message"]


BUDGET = {
    "BudgetName": "reveille",
    "BudgetType": "COST",
    "TimeUnit": "MONTHLY",
    "BudgetLimit": {"Amount": "9", "Unit": "USD"},
}
NOTICE = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80.0}
MAIL = {"SubscriptionType": "EMAIL", "Address": "ops@example.com"}
OF_BUDGET = f"arn:aws:budgets::{ACCOUNT}:budget/reveille"
NAMED = {"AccountId": ACCOUNT, "BudgetName": "reveille"}
NOTED = NAMED | {"Notification": NOTICE}
KEYS = {"pk": {"S": "pool#voice"}, "sk": {"S": "-"}}
BOTH_KEYS = [KEYS, KEYS | {"pk": {"S": "x"}}]
PUT = {"TableName": "state", "Item": KEYS}
ITEM = {"TableName": "state", "Key": KEYS}
UPDATE = ITEM | {"UpdateExpression": "REMOVE n"}
CHECK = ITEM | {"ConditionExpression": "attribute_exists(pk)"}
LEADING = {"dynamodb:LeadingKeys": ["pool#voice"]}
NO_LEADING = {"dynamodb:LeadingKeys": None}
OF_NODE = {"ec2:InstanceType": None}
QUEUE_URL = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/failed"
LINES = [{"timestamp": START_MS, "message": "m"}]


def asked(service, resource, context, *calls):
    """Rows of service, operation, parameters and what IAM is asked; the action is the operation unless it is named."""
    return [
        (service, operation, given, f"{service}:{action[0] if action else operation}", resource, context)
        for operation, given, *action in calls
    ]


def keyed(expression, **names):
    values = {":p": {"S": "pool#voice"}, ":f": {"S": "1"}}
    found = {"TableName": "state", "KeyConditionExpression": expression, "ExpressionAttributeValues": values}
    return found | ({"ExpressionAttributeNames": {f"#{name}": of for name, of in names.items()}} if names else {})


ASKED = [
    *asked(
        "ec2",
        "*",
        {},
        ("DescribeInstances", {}),
        ("DescribeInstanceStatus", {"InstanceIds": ["i-0abc"]}),
        ("DescribeVolumes", {}),
        ("DescribeSpotInstanceRequests", {}),
    ),
    *asked(
        "ec2",
        NODE,
        OF_NODE,
        ("StartInstances", {"InstanceIds": ["i-0abc"]}),
        ("StopInstances", {"InstanceIds": ["i-0abc"], "Force": True}),
        ("DescribeInstanceAttribute", {"InstanceId": "i-0abc", "Attribute": "disableApiStop"}),
    ),
    *asked(
        "ec2",
        NODE,
        OF_NODE | {"ec2:Attribute": "InstanceType", "ec2:Attribute/InstanceType": "g6.xlarge"},
        ("ModifyInstanceAttribute", {"InstanceId": "i-0abc", "InstanceType": {"Value": "g6.xlarge"}}),
        ("ModifyInstanceAttribute", {"InstanceId": "i-0abc", "Attribute": "instanceType", "Value": "g6.xlarge"}),
    ),
    *asked(
        "ec2",
        NODE,
        OF_NODE | {"ec2:Attribute": "UserData", "ec2:Attribute/UserData": "cm0="},
        ("ModifyInstanceAttribute", {"InstanceId": "i-0abc", "UserData": {"Value": b"rm"}}),
    ),
    *asked(
        "dynamodb",
        TABLE,
        LEADING,
        ("GetItem", ITEM),
        ("GetItem", ITEM | {"TableName": TABLE}),
        ("PutItem", PUT),
        ("UpdateItem", UPDATE),
        ("DeleteItem", ITEM),
        ("Query", keyed("pk = :p AND sk >= :f")),
        ("Query", keyed("begins_with(sk, :f) AND pk = :p")),
        ("Query", keyed("#k = :p", k="pk")),
        ("TransactWriteItems", {"TransactItems": [{"Put": PUT}]}, "PutItem"),
        ("TransactWriteItems", {"TransactItems": [{"Update": UPDATE}]}, "UpdateItem"),
        ("TransactWriteItems", {"TransactItems": [{"Delete": ITEM}]}, "DeleteItem"),
        ("TransactWriteItems", {"TransactItems": [{"ConditionCheck": CHECK}]}, "ConditionCheckItem"),
    ),
    *asked(
        "dynamodb",
        TABLE,
        {"dynamodb:LeadingKeys": ["pool#voice", "x"]},
        ("BatchGetItem", {"RequestItems": {"state": {"Keys": BOTH_KEYS}}}),
    ),
    *asked("dynamodb", TABLE, NO_LEADING, ("Query", keyed("sk = :f"))),
    *asked("dynamodb", f"{TABLE}-absent", NO_LEADING, ("GetItem", ITEM | {"TableName": "state-absent"})),
    *asked(
        "cloudwatch",
        "*",
        {},
        ("GetMetricData", {"MetricDataQueries": [], "StartTime": START, "EndTime": START}),
        ("ListMetrics", {}),
    ),
    *asked(
        "cloudwatch",
        "*",
        {"cloudwatch:namespace": "Voice"},
        ("PutMetricData", {"Namespace": "Voice", "MetricData": []}),
    ),
    *asked("logs", f"{GROUP}:/a/b:log-stream:", {}, ("FilterLogEvents", {"logGroupName": "/a/b"})),
    *asked(
        "logs",
        f"{GROUP}:/a/b:log-stream:s",
        {},
        ("CreateLogStream", {"logGroupName": "/a/b", "logStreamName": "s"}),
        ("PutLogEvents", {"logGroupName": "/a/b", "logStreamName": "s", "logEvents": LINES}),
    ),
    *asked(
        "sns",
        TOPIC,
        {},
        ("Publish", {"TopicArn": TOPIC, "Message": "m"}),
        ("Publish", {"TargetArn": TOPIC, "Message": "m"}),
        ("ListSubscriptionsByTopic", {"TopicArn": TOPIC}),
    ),
    *asked(
        "events",
        f"arn:aws:events:{REGION}:{ACCOUNT}:rule/tick",
        {},
        ("DescribeRule", {"Name": "tick"}),
        ("ListTargetsByRule", {"Rule": "tick"}),
    ),
    *asked(
        "sqs",
        f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed",
        {},
        ("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "m"}),
    ),
    *asked(
        "budgets",
        OF_BUDGET,
        {},
        ("DescribeBudget", NAMED, "ViewBudget"),
        ("DescribeNotificationsForBudget", NAMED, "ViewBudget"),
        ("DescribeSubscribersForNotification", NOTED, "ViewBudget"),
        ("CreateBudget", {"AccountId": ACCOUNT, "Budget": BUDGET}, "ModifyBudget"),
        ("UpdateBudget", {"AccountId": ACCOUNT, "NewBudget": BUDGET}, "ModifyBudget"),
        ("DeleteBudget", NAMED, "ModifyBudget"),
        ("CreateNotification", NOTED | {"Subscribers": [MAIL]}, "ModifyBudget"),
        ("UpdateNotification", NAMED | {"OldNotification": NOTICE, "NewNotification": NOTICE}, "ModifyBudget"),
        ("DeleteNotification", NOTED, "ModifyBudget"),
        ("CreateSubscriber", NOTED | {"Subscriber": MAIL}, "ModifyBudget"),
        ("UpdateSubscriber", NOTED | {"OldSubscriber": MAIL, "NewSubscriber": MAIL}, "ModifyBudget"),
        ("DeleteSubscriber", NOTED | {"Subscriber": MAIL}, "ModifyBudget"),
    ),
]


class Mapping(RoleCase):
    def setUp(self):
        super().setUp()
        make_table(aws.client("dynamodb"))

    def test_each_call_asks_for_its_action_and_resource(self):
        codes = {
            "ec2": ("UnauthorizedOperation", 403),
            "cloudwatch": ("AccessDenied", 403),
            "sns": ("AuthorizationError", 403),
            "sqs": ("AccessDenied", 403),
        }
        clients = {service: self.client(service) for service in {row[0] for row in ASKED}}
        for service, operation, given, action, resource, context in ASKED:
            with self.subTest(operation, given=given):
                code, status = codes.get(service, ("AccessDeniedException", 400))
                call = getattr(clients[service], botocore.xform_name(operation))
                message = self.assert_denied(code, status, call, **given)
                self.assertIn(f"not authorized to perform: {action} on resource: {resource} because", message)
                found = [self.last_refused()[name] for name in ("action", "iam_action", "resource", "context")]
                self.assertEqual([operation, action, resource, context], found)

    def test_every_mapping_has_a_row(self):
        self.assertEqual(set(CALLS), {(service, operation) for service, operation, *_ in ASKED} | {WHO_AM_I})

    def test_every_call_in_the_source_is_mapped(self):
        rooms = [path for room in ("shared/src/aws", "cli/src/ops/aws") for path in sorted((ROOT / room).glob("*.rs"))]
        source = "".join(path.read_text() for path in rooms)
        found = set()
        for service in ("ec2", "cloudwatch", "logs", "budgets", "dynamodb", "sns", "events"):
            names = botocore.session.get_session().get_service_model(service).operation_names
            found |= {(service, name) for name in names if f".{botocore.xform_name(name)}()" in source}
        self.assertLessEqual({("ec2", "StopInstances"), ("dynamodb", "Query"), ("sns", "Publish")}, found)
        self.assertLessEqual(found, set(CALLS))

    def test_every_action_in_the_modules_is_asked_for(self):
        """But what no call asks for: EC2 asks for the grant, SNS for the topic's key (tested below)."""
        roles = (ROOT / "infra/modules/controller/roles.tf").read_text()
        lists = re.findall(r"^ +Action += (\[.*\])$", roles, re.MULTILINE)
        actions = {action for one in lists for action in json.loads(one)}
        actions |= {one["Action"] for one in json.loads(BEAT_POLICY.read_text())["Statement"]}
        self.assertGreater(len(actions), 15)
        self.assertEqual({"kms:CreateGrant", "kms:GenerateDataKey", "kms:Decrypt"}, actions - {row[3] for row in ASKED})

    def test_who_am_i_needs_no_permission(self):
        self.may(statement("*", effect="Deny"))
        self.assertEqual(ACCOUNT, self.client("sts").get_caller_identity()["Account"])
        self.assertEqual([], aws.admin("GET", "iam")["refused"])

    def test_a_call_without_a_mapping_is_named(self):
        self.may(statement("*"))
        rows = [
            ("ec2", "terminate_instances", {"InstanceIds": ["i-0abc"]}, "no mapping of ec2 TerminateInstances"),
            ("sns", "list_topics", {}, "no mapping of sns ListTopics"),
            ("lambda", "list_functions", {}, "no mapping of lambda GET /2015-03-31/functions"),
            ("ec2", "start_instances", {"InstanceIds": []}, "ec2 StartInstances names no resource"),
            ("ec2", "modify_instance_attribute", {"InstanceId": "i-0abc", "Groups": ["sg-1"]}, "GroupId.1"),
            ("ec2", "modify_instance_attribute", {"InstanceId": "i-0abc"}, "of nothing"),
            (
                "ec2",
                "modify_instance_attribute",
                {"InstanceId": "i-0abc", "EbsOptimized": {"Value": True}, "UserData": {"Value": b""}},
                "EbsOptimized.Value, UserData.Value",
            ),
            ("sns", "publish", {"PhoneNumber": "+1", "Message": "m"}, "sns:Publish without TopicArn TargetArn"),
            ("logs", "filter_log_events", {"logGroupIdentifier": "/a/b"}, "logs:FilterLogEvents without logGroupName"),
            ("dynamodb", "query", keyed("pk = :p") | {"IndexName": "other"}, "Query of an index"),
        ]
        for service, call, given, reason in rows:
            with self.subTest(call, given=given):
                message = self.assert_denied("NotImplemented", 501, getattr(self.client(service), call), **given)
                self.assertIn(reason, message)
                refused = self.last_refused()
                self.assertIsNone(refused["iam_action"])
                self.assertIn(reason, refused["why"])

    def test_a_transaction_needs_what_its_parts_need(self):
        put, update, check = ({"pk": {"S": name}, "sk": {"S": "-"}} for name in ("put", "update", "check"))
        parts = [
            {"Put": PUT | {"Item": put}},
            {"Update": UPDATE | {"Key": update}},
            {"ConditionCheck": CHECK | {"Key": check, "ConditionExpression": "attribute_not_exists(pk)"}},
        ]
        needed = ["dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem"]
        write = self.client("dynamodb").transact_write_items
        for missing in needed:
            self.may(statement([action for action in needed if action != missing], TABLE))
            self.assert_denied("AccessDeniedException", 400, write, TransactItems=parts)
            self.assertEqual(missing, self.last_refused()["iam_action"])
        self.assertEqual(0, aws.client("dynamodb").scan(TableName="state")["Count"])
        self.assertEqual([0, 0], list(self.used().values()), "a call that was refused used nothing")
        self.may(statement(needed, TABLE, Sid="Write"))
        write(TransactItems=parts)
        self.assertEqual({("Write", action): 1 for action in needed}, self.used())

    def test_an_encrypted_topic_needs_its_key_by_sns(self):
        key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
        topic = aws.client("sns").create_topic(Name="alerts", Attributes={"KmsMasterKeyId": key})["TopicArn"]
        publish = statement("sns:Publish", topic, Sid="Tell")
        keys = statement(
            ["kms:GenerateDataKey", "kms:Decrypt"],
            key,
            {"StringEquals": {"kms:ViaService": f"sns.{REGION}.amazonaws.com"}},
            Sid="Encrypt",
        )
        self.may(publish)
        self.assert_denied("KMSAccessDenied", 400, self.client("sns").publish, TopicArn=topic, Message="m")
        self.assertEqual(
            ("kms:GenerateDataKey", key), (self.last_refused()["iam_action"], self.last_refused()["resource"])
        )
        self.may(publish, keys)
        self.client("sns").publish(TopicArn=topic, Message="m")
        self.assertEqual(
            {("Tell", "sns:Publish"): 1, ("Encrypt", "kms:GenerateDataKey"): 1, ("Encrypt", "kms:Decrypt"): 1},
            self.used(),
        )
        aws.client("sns").set_topic_attributes(
            TopicArn=topic, AttributeName="KmsMasterKeyId", AttributeValue="alias/mine"
        )
        self.assert_denied("NotImplemented", 501, self.client("sns").publish, TopicArn=topic, Message="m")


class Nodes(RoleCase, Ec2Case):
    """The statements of roles.tf, on nodes of a launched EC2."""

    OWN = {"StringEquals": {"aws:ResourceTag/reveille:pool": ["batch", "voice"]}}
    NODES = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/*"

    def setUp(self):
        super().setUp()
        self.own, self.other, self.bare = self.stopped("voice"), self.stopped("video"), self.launch_stopped()
        self.role_ec2 = self.client("ec2")

    def stopped(self, pool):
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "reveille:pool", "Value": pool}]}]
        node = self.launch(TagSpecifications=tags)
        self.ec2.stop_instances(InstanceIds=[node])
        aws.advance(40)
        return node

    def test_a_refused_start_has_no_effect(self):
        self.may(statement("ec2:StartInstances", self.NODES, self.OWN, Sid="StartOwnNodes"))
        aws.admin("DELETE", "events")
        for nodes in ([self.other], [self.bare], [self.own, self.other], [self.bare, self.own]):
            self.assert_denied("UnauthorizedOperation", 403, self.role_ec2.start_instances, InstanceIds=nodes)
            aws.advance(60)
            self.assertEqual(["stopped"] * 3, [self.state(node) for node in (self.own, self.other, self.bare)])
        self.assertEqual([], aws.admin("GET", "events"))
        self.role_ec2.start_instances(InstanceIds=[self.own])
        self.assertEqual("pending", self.state(self.own))
        self.assertEqual({("StartOwnNodes", "ec2:StartInstances"): 1}, self.used())

    def test_several_nodes_are_one_call(self):
        second = self.stopped("batch")
        self.may(statement("ec2:StartInstances", self.NODES, self.OWN, Sid="StartOwnNodes"))
        self.role_ec2.start_instances(InstanceIds=[self.own, second])
        self.assertEqual(["pending", "pending"], [self.state(self.own), self.state(second)])
        self.assertEqual({("StartOwnNodes", "ec2:StartInstances"): 1}, self.used())

    def test_a_node_that_is_not_there_is_no_own_node(self):
        absent = "i-00000000000000000"
        self.may(statement("ec2:StopInstances", self.NODES, self.OWN))
        self.assert_denied("UnauthorizedOperation", 403, self.role_ec2.stop_instances, InstanceIds=[absent])
        self.may(statement("ec2:StopInstances", self.NODES))
        self.assert_refused("InvalidInstanceID.NotFound", self.role_ec2.stop_instances, InstanceIds=[absent])

    def test_a_tag_counts_as_it_is_now(self):
        self.may(statement("ec2:StartInstances", self.NODES, self.OWN))
        self.ec2.create_tags(Resources=[self.bare], Tags=[{"Key": "reveille:pool", "Value": "batch"}])
        self.role_ec2.start_instances(InstanceIds=[self.bare])
        self.assertEqual("pending", self.state(self.bare))

    def test_only_the_type_and_only_to_these(self):
        types = {"StringEquals": self.OWN["StringEquals"] | {"ec2:Attribute/InstanceType": ["g5.2xlarge", "g6.xlarge"]}}
        self.may(statement("ec2:ModifyInstanceAttribute", self.NODES, types))
        change = self.role_ec2.modify_instance_attribute
        for node, given in [
            (self.own, {"InstanceType": {"Value": "p4d.24xlarge"}}),
            (self.own, {"UserData": {"Value": b"rm"}}),
            (self.own, {"Attribute": "instanceType", "Value": "p4d.24xlarge"}),
            (self.other, {"InstanceType": {"Value": "g6.xlarge"}}),
        ]:
            self.assert_denied("UnauthorizedOperation", 403, change, InstanceId=node, **given)
        self.assertEqual("g5.xlarge", self.described(self.own)["InstanceType"])
        change(InstanceId=self.own, InstanceType={"Value": "g6.xlarge"})
        self.assertEqual("g6.xlarge", self.described(self.own)["InstanceType"])

    def test_other_keys_of_a_node(self):
        now = {"StringEquals": {"ec2:InstanceType": "g5.xlarge", "ec2:ResourceTag/reveille:pool": "voice"}}
        self.may(statement("ec2:StopInstances", self.NODES, now))
        self.role_ec2.stop_instances(InstanceIds=[self.own])
        self.assert_denied("UnauthorizedOperation", 403, self.role_ec2.stop_instances, InstanceIds=[self.other])
        self.may(statement("ec2:StopInstances", self.NODES, {"StringEquals": {"ec2:Tenancy": "default"}}))
        message = self.assert_denied("NotImplemented", 501, self.role_ec2.stop_instances, InstanceIds=[self.own])
        self.assertIn("condition key ec2:Tenancy of ec2:StopInstances", message)

    def test_a_trial_run_is_judged_too(self):
        self.assert_denied(
            "UnauthorizedOperation", 403, self.role_ec2.start_instances, InstanceIds=[self.own], DryRun=True
        )
        self.may(statement("ec2:StartInstances", self.NODES))
        self.assert_refused("DryRunOperation", self.role_ec2.start_instances, InstanceIds=[self.own], DryRun=True)

    def test_a_fault_after_a_refused_call_had_no_effect(self):
        aws.fault(action="StartInstances", after=True, code="InternalError", status=500)
        self.assert_refused("InternalError", self.role_ec2.start_instances, InstanceIds=[self.own])
        self.assertEqual("stopped", self.state(self.own))
        self.assertEqual("StartInstances", self.last_refused()["action"])

    def test_a_call_that_a_fault_spoils_before_its_effect_is_not_judged(self):
        aws.fault(action="StartInstances", code="RequestLimitExceeded")
        self.assert_refused("RequestLimitExceeded", self.role_ec2.start_instances, InstanceIds=[self.own])
        self.assertEqual([], aws.admin("GET", "iam")["refused"])


class Beat(RoleCase):
    """The policy that the node's module gives, as it stands in its file."""

    def setUp(self):
        super().setUp()
        make_table(aws.client("dynamodb"))
        text = BEAT_POLICY.read_text()
        for name, value in {"REGION": REGION, "ACCOUNT": ACCOUNT, "TABLE": "state", "INSTANCE_ID": "i-0abc"}.items():
            text = text.replace(name, value)
        self.iam.put_role_policy(RoleName=ROLE, PolicyName="beat", PolicyDocument=text)
        self.dynamodb = self.client("dynamodb")

    def put(self, pk):
        return {"TableName": "state", "Item": {"pk": {"S": pk}, "sk": {"S": "-"}}}

    def test_a_node_writes_its_own_beat_and_nothing_else(self):
        self.dynamodb.put_item(**self.put("beat#i-0abc"))
        self.assertEqual({("WriteOwnBeat", "dynamodb:PutItem"): 1}, self.used())
        refused = "AccessDeniedException"
        for pk in ("beat#i-0abcd", "beat#i-0ab", "pool#voice", "Beat#i-0abc"):
            self.assert_denied(refused, 400, self.dynamodb.put_item, **self.put(pk))
        self.assert_denied(refused, 400, self.dynamodb.put_item, **self.put("beat#i-0abc") | {"TableName": "other"})
        own = {"pk": {"S": "beat#i-0abc"}, "sk": {"S": "-"}}
        self.assert_denied(refused, 400, self.dynamodb.get_item, TableName="state", Key=own)
        self.assert_denied(refused, 400, self.dynamodb.delete_item, TableName="state", Key=own)
        self.assertEqual([own], aws.client("dynamodb").scan(TableName="state")["Items"])

    def test_what_the_policy_would_allow_without_its_second_condition(self):
        """ForAllValues holds where there is no key at all."""
        table = TABLE.replace("state", "other")
        leading = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["beat#i-0abc"]}}
        for null, code in (
            ({}, "ResourceNotFoundException"),
            ({"Null": {"dynamodb:LeadingKeys": "false"}}, "AccessDeniedException"),
        ):
            self.may(statement("dynamodb:PutItem", table, leading | null))
            self.assert_refused(code, self.dynamodb.put_item, **self.put("beat#i-0abc") | {"TableName": "other"})


class Enforcement(RoleCase):
    def test_in_every_protocol(self):
        topic = aws.client("sns").create_topic(Name="alerts")["TopicArn"]
        make_table(aws.client("dynamodb"))
        rows = [
            ("ec2", "UnauthorizedOperation", "describe_instances", {}, "ec2:DescribeInstances", "*"),
            ("sns", "AuthorizationError", "publish", {"TopicArn": topic, "Message": "m"}, "sns:Publish", topic),
            (
                "dynamodb",
                "AccessDeniedException",
                "put_item",
                {"TableName": "state", "Item": KEYS},
                "dynamodb:PutItem",
                TABLE,
            ),
            (
                "cloudwatch",
                "AccessDenied",
                "put_metric_data",
                {"Namespace": "n", "MetricData": [{"MetricName": "m", "Value": 1.0}]},
                "cloudwatch:PutMetricData",
                "*",
            ),
        ]
        for service, code, call, given, action, resource in rows:
            with self.subTest(service):
                self.may(statement("s3:*"))
                self.assert_refused(code, getattr(self.client(service), call), **given)
                self.may(statement(action, resource))
                getattr(self.client(service), call)(**given)
        self.assertEqual(1, len(aws.admin("GET", "published")))

    def test_in_cbor(self):
        """As the Rust SDK asks; boto3 asks CloudWatch in JSON."""
        given = {"Namespace": "Voice", "MetricData": [{"MetricName": "m", "Value": 1.0}]}
        for namespace, expected in (("Front", (403, "AccessDenied")), ("Voice", (200, None))):
            self.may(
                statement("cloudwatch:PutMetricData", condition={"StringEquals": {"cloudwatch:namespace": namespace}})
            )
            status, headers, answer = test_launcher.cbor_call("PutMetricData", zipped=True, key=KEY, **given)
            self.assertEqual(expected, (status, answer.get("__type")))
        self.assertEqual({"cloudwatch:namespace": "Voice"}, self.last_refused()["context"])
        self.assertEqual(["m"], [one["MetricName"] for one in aws.client("cloudwatch").list_metrics()["Metrics"]])

    def test_the_budget_is_signed_for_another_region(self):
        self.may(statement("budgets:ModifyBudget", OF_BUDGET))
        budgets = self.client("budgets", region="us-east-1")
        budgets.create_budget(AccountId=ACCOUNT, Budget=BUDGET)
        tags = [{"Key": "a", "Value": "b"}]
        self.assert_denied(
            "AccessDeniedException", 400, budgets.create_budget, AccountId=ACCOUNT, Budget=BUDGET, ResourceTags=tags
        )
        self.assertEqual("budgets:TagResource", self.last_refused()["iam_action"])
        self.assert_denied(
            "AccessDeniedException", 400, budgets.describe_budget, AccountId=ACCOUNT, BudgetName="reveille"
        )

    def test_other_keys_are_not_judged(self):
        self.client("ec2", key="AKIAUNKNOWN").describe_instances()
        self.assertEqual([], aws.admin("GET", "iam")["refused"])

    def test_policies_count_as_they_are_now(self):
        self.may(statement("ec2:DescribeInstances"))
        self.client("ec2").describe_instances()
        self.iam.delete_role_policy(RoleName=ROLE, PolicyName="reveille")
        self.assert_refused("UnauthorizedOperation", self.client("ec2").describe_instances)

    def test_attached_policies_count_in_their_present_version(self):
        def document(action):
            return json.dumps(policy(statement(action)))

        arn = self.iam.create_policy(PolicyName="look", PolicyDocument=document("ec2:DescribeInstances"))["Policy"][
            "Arn"
        ]
        self.assert_refused("UnauthorizedOperation", self.client("ec2").describe_instances)
        self.iam.attach_role_policy(RoleName=ROLE, PolicyArn=arn)
        self.client("ec2").describe_instances()
        self.assertEqual({("look[0]", "ec2:DescribeInstances"): 1}, self.used())
        self.iam.create_policy_version(PolicyArn=arn, PolicyDocument=document("ec2:DescribeVolumes"), SetAsDefault=True)
        self.assert_refused("UnauthorizedOperation", self.client("ec2").describe_instances)
        self.client("ec2").describe_volumes()

    def test_a_deny_of_one_policy_beats_an_allow_of_another(self):
        self.may(statement("*"), name="all")
        self.may(statement("ec2:DescribeVolumes", effect="Deny", Sid="NoDisks"), name="less")
        self.client("ec2").describe_instances()
        self.assert_refused("UnauthorizedOperation", self.client("ec2").describe_volumes)
        self.assertIn("explicit deny", self.last_refused()["why"])
        self.assertEqual({("all[0]", "*"): 1}, self.used(), "what denies is no permission")

    def test_a_permissions_boundary_is_named(self):
        arn = self.iam.create_policy(PolicyName="edge", PolicyDocument=json.dumps(policy(statement("*"))))["Policy"][
            "Arn"
        ]
        self.may(statement("*"))
        self.iam.put_role_permissions_boundary(RoleName=ROLE, PermissionsBoundary=arn)
        message = self.assert_denied("NotImplemented", 501, self.client("ec2").describe_instances)
        self.assertIn("permissions boundary", message)


class Report(RoleCase):
    def test_counts_by_role_statement_and_action(self):
        self.iam.create_role(RoleName="reveille-idle-check", AssumeRolePolicyDocument=TRUST)
        aws.admin("POST", "iam", {"keys": {"AKIAIDLE": "reveille-idle-check"}})
        look = statement(["ec2:DescribeInstances", "ec2:DescribeVolumes"], Sid="SeeNodes")
        for role in (ROLE, "reveille-idle-check"):
            self.iam.put_role_policy(RoleName=role, PolicyName="reveille", PolicyDocument=json.dumps(policy(look)))
        for key, times in ((KEY, 2), ("AKIAIDLE", 1)):
            for _ in range(times):
                self.client("ec2", key=key).describe_instances()

        def row(role, action, used):
            return {"role": role, "policy": "reveille", "sid": "SeeNodes", "action": action, "used": used}

        expected = [
            row("reveille-idle-check", "ec2:DescribeInstances", 1),
            row("reveille-idle-check", "ec2:DescribeVolumes", 0),
            row(ROLE, "ec2:DescribeInstances", 2),
            row(ROLE, "ec2:DescribeVolumes", 0),
        ]
        self.assertEqual({"permissions": expected, "refused": []}, aws.admin("GET", "iam"))

    def test_a_refused_call_is_told_whole(self):
        aws.advance(5)
        self.assert_refused("AuthorizationError", self.client("sns").publish, TopicArn=TOPIC, Message="m")
        expected = {
            "at_ms": START_MS + 5000,
            "role": ROLE,
            "service": "sns",
            "action": "Publish",
            "iam_action": "sns:Publish",
            "resource": TOPIC,
            "context": {},
            "why": "because no identity-based policy allows the sns:Publish action",
        }
        self.assertEqual([expected], aws.admin("GET", "iam")["refused"])

    def test_is_forgotten_with_the_keys(self):
        empty = {"permissions": [], "refused": []}
        for forget in (("DELETE", "iam"), ("POST", "reset", {})):
            self.may(statement("ec2:DescribeInstances", Sid="SeeNodes"))
            self.client("ec2").describe_instances()
            self.assert_refused("UnauthorizedOperation", self.client("ec2").describe_volumes)
            aws.admin(*forget)
            self.assertEqual(empty, aws.admin("GET", "iam"))
            self.client("ec2").describe_volumes()
            self.assertEqual(empty, aws.admin("GET", "iam"))
            if forget[1] == "iam":
                aws.admin("POST", "iam", {"keys": {KEY: ROLE}})
                self.assertEqual({("SeeNodes", "ec2:DescribeInstances"): 0}, self.used())

    def test_the_log_of_calls_names_the_key(self):
        aws.admin("DELETE", "calls")
        self.assert_refused("UnauthorizedOperation", self.client("ec2").describe_instances)
        aws.client("ec2").describe_instances()
        self.assertEqual(
            [(KEY, 403), ("test", 200)], [(call["key"], call["status"]) for call in aws.admin("GET", "calls")]
        )

    def test_wrong_calls_are_refused(self):
        for given in (
            {"keys": {KEY: "reveille-woke"}},
            {"key": {KEY: ROLE}},
            {"keys": [KEY]},
            {},
            {"keys": {}, "more": 1},
        ):
            with self.subTest(given=given), self.assertRaises(urllib.error.HTTPError) as caught:
                aws.admin("POST", "iam", given)
            caught.exception.close()
            self.assertEqual(400, caught.exception.code)
        self.assertEqual({"permissions": [], "refused": []}, aws.admin("GET", "iam"))

    def test_a_role_that_is_gone_is_named(self):
        self.iam.delete_role(RoleName=ROLE)
        message = self.assert_denied("NotImplemented", 501, self.client("ec2").describe_instances)
        self.assertIn(f"no role {ROLE}", message)
        with self.assertRaises(urllib.error.HTTPError) as caught:
            aws.admin("GET", "iam")
        self.assertIn(f"no role {ROLE}", caught.exception.read().decode())
        caught.exception.close()


if __name__ == "__main__":
    unittest.main()
