"""What the local AWS promises of Lambda's configuration and of what refers to it, asked with boto3."""

import base64
import hashlib
import io
import json
import zipfile

import test_launcher
from test_launcher import REGION, START, Case

ACCOUNT = "123456789012"
NAME = "reveille-wake"
ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{NAME}"
GROUP = "/app/front"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed"
OTHER_ACCOUNT = "111122223333"


def setUpModule():
    global aws
    test_launcher.setUpModule()
    aws = test_launcher.aws


def tearDownModule():
    test_launcher.tearDownModule()


def trust(service):
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def zipped(program):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("bootstrap", program)
    return archive.getvalue()


class LambdaCase(Case):
    def setUp(self):
        super().setUp()
        self.lambda_ = aws.client("lambda")
        role = aws.client("iam").create_role(RoleName="app", AssumeRolePolicyDocument=trust("lambda.amazonaws.com"))
        self.role = role["Role"]["Arn"]
        self.made = self.create()

    def create(self, **more):
        given = {"FunctionName": NAME, "Runtime": "provided.al2023", "Handler": "bootstrap", "Role": self.role}
        return self.lambda_.create_function(**given | {"Code": {"ZipFile": zipped(b"one")}} | more)

    def permit(self, principal, sid="one", **more):
        given = {"FunctionName": NAME, "StatementId": sid, "Action": "lambda:InvokeFunction", "Principal": principal}
        return self.lambda_.add_permission(**given | more)

    def statements(self):
        return json.loads(self.lambda_.get_policy(FunctionName=NAME)["Policy"])["Statement"]

    def permit_logs(self, group=GROUP, **more):
        source = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:*"
        self.permit(f"logs.{REGION}.amazonaws.com", **{"SourceArn": source, "SourceAccount": ACCOUNT} | more)


class Function(LambdaCase):
    def test_shows_the_hash_of_its_zip(self):
        for program in (b"one", b"two"):
            code = zipped(program)
            self.lambda_.update_function_code(FunctionName=NAME, ZipFile=code)
            shown = self.lambda_.get_function_configuration(FunctionName=NAME)["CodeSha256"]
            self.assertEqual(base64.b64encode(hashlib.sha256(code).digest()).decode(), shown)

    def test_logs_where_it_was_told_and_else_under_its_name(self):
        self.assertEqual({"LogFormat": "Text", "LogGroup": f"/aws/lambda/{NAME}"}, self.made["LoggingConfig"])
        self.lambda_.update_function_configuration(FunctionName=NAME, LoggingConfig={"LogGroup": "/other"})
        shown = self.lambda_.get_function(FunctionName=NAME)["Configuration"]["LoggingConfig"]
        self.assertEqual({"LogFormat": "Text", "LogGroup": "/other"}, shown)

    def test_a_name_is_taken_once(self):
        self.assert_refused("ResourceConflictException", self.create)


class Permissions(LambdaCase):
    def test_each_condition_is_shown_in_aws_s_words(self):
        source = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/tick"
        self.permit("events.amazonaws.com", SourceArn=source, SourceAccount=ACCOUNT)
        self.permit(self.role, "url", Action="lambda:InvokeFunctionUrl", FunctionUrlAuthType="AWS_IAM")
        self.permit("*", "via", InvokedViaFunctionUrl=True)
        expected = [
            ("one", {"Service": "events.amazonaws.com"}, "lambda:InvokeFunction", {
                "ArnLike": {"AWS:SourceArn": source},
                "StringEquals": {"AWS:SourceAccount": ACCOUNT},
            }),
            ("url", {"AWS": self.role}, "lambda:InvokeFunctionUrl", {
                "StringEquals": {"lambda:FunctionUrlAuthType": "AWS_IAM"},
            }),
            ("via", "*", "lambda:InvokeFunction", {"Bool": {"lambda:InvokedViaFunctionUrl": "true"}}),
        ]
        self.assertEqual(
            [
                {"Sid": sid, "Effect": "Allow", "Principal": who, "Action": action, "Resource": ARN, "Condition": when}
                for sid, who, action, when in expected
            ],
            self.statements(),
        )

    def test_conditions_of_one_operator_stand_together(self):
        self.permit("s3.amazonaws.com", SourceAccount=ACCOUNT, PrincipalOrgID="o-a1b2c3d4e5")
        both = {"AWS:SourceAccount": ACCOUNT, "aws:PrincipalOrgID": "o-a1b2c3d4e5"}
        self.assertEqual({"StringEquals": both}, self.statements()[0]["Condition"])

    def test_an_account_becomes_its_root(self):
        self.permit(OTHER_ACCOUNT)
        self.assertEqual({"AWS": f"arn:aws:iam::{OTHER_ACCOUNT}:root"}, self.statements()[0]["Principal"])
        self.assertNotIn("Condition", self.statements()[0])

    def test_a_role_that_is_not_there_is_refused(self):
        absent = {"FunctionName": NAME, "StatementId": "x", "Action": "lambda:InvokeFunction"}
        absent["Principal"] = f"arn:aws:iam::{ACCOUNT}:role/absent"
        self.assert_refused("InvalidParameterValueException", self.lambda_.add_permission, **absent)
        self.permit(f"arn:aws:iam::{OTHER_ACCOUNT}:role/absent")  # another account's are not looked up

    def test_a_statement_is_taken_once_and_is_gone_when_removed(self):
        self.permit(OTHER_ACCOUNT)
        again = {"FunctionName": NAME, "StatementId": "one", "Action": "lambda:InvokeFunction", "Principal": "*"}
        self.assert_refused("ResourceConflictException", self.lambda_.add_permission, **again)
        self.lambda_.remove_permission(FunctionName=NAME, StatementId="one")
        self.assert_refused("ResourceNotFoundException", self.lambda_.get_policy, FunctionName=NAME)


class Stacks(LambdaCase):
    """CloudFormation's AWS::Lambda::Permission."""

    def template(self, *principals):
        properties = {"FunctionName": NAME, "Action": "lambda:InvokeFunction", "InvokedViaFunctionUrl": True}
        return json.dumps({
            "Resources": {
                f"Caller{n}": {"Type": "AWS::Lambda::Permission", "Properties": properties | {"Principal": principal}}
                for n, principal in enumerate(principals)
            }
        })

    def permitted(self):
        return [(one["Principal"]["AWS"], one["Condition"]) for one in self.statements()]

    def test_permit_change_and_take_away(self):
        stacks = aws.client("cloudformation")
        self.permit("events.amazonaws.com")
        via_url = {"Bool": {"lambda:InvokedViaFunctionUrl": "true"}}
        stacks.create_stack(StackName="url", TemplateBody=self.template(self.role))
        made = self.statements()[1]
        self.assertEqual(({"AWS": self.role}, via_url), (made["Principal"], made["Condition"]))
        self.assertTrue(made["Sid"].startswith("url-Caller0-"), made["Sid"])

        other = f"arn:aws:iam::{OTHER_ACCOUNT}:role/app"
        stacks.update_stack(StackName="url", TemplateBody=self.template(other, self.role))
        self.assertEqual([other, self.role], sorted(one["Principal"]["AWS"] for one in self.statements()[1:]))

        stacks.delete_stack(StackName="url")
        self.assertEqual(["one"], [one["Sid"] for one in self.statements()])


class Urls(LambdaCase):
    def url(self, call, **more):
        return getattr(self.lambda_, f"{call}_function_url_config")(FunctionName=NAME, **more)

    def test_is_made_once_changed_and_taken_away(self):
        cors = {"AllowOrigins": ["https://app.example.com"], "AllowMethods": ["POST"], "MaxAge": 60}
        made = self.url("create", AuthType="AWS_IAM", Cors=cors)["FunctionUrl"]
        self.assertRegex(made, rf"^https://[a-z0-9]+\.lambda-url\.{REGION}\.on\.aws/$")
        shown = self.url("get")
        self.assertEqual((made, ARN, "AWS_IAM", cors, "BUFFERED"), tuple(
            shown[name] for name in ("FunctionUrl", "FunctionArn", "AuthType", "Cors", "InvokeMode")
        ))
        second = {"FunctionName": NAME, "AuthType": "NONE"}
        self.assert_refused("ResourceConflictException", self.lambda_.create_function_url_config, **second)
        self.url("update", InvokeMode="RESPONSE_STREAM")
        shown = self.url("get")
        self.assertEqual(("AWS_IAM", cors, "RESPONSE_STREAM"), (shown["AuthType"], shown["Cors"], shown["InvokeMode"]))
        self.url("update", Cors={})
        self.assertNotIn("Cors", self.url("get"))
        self.url("delete")
        self.assert_refused("ResourceNotFoundException", self.lambda_.get_function_url_config, FunctionName=NAME)


class AsynchronousInvocation(LambdaCase):
    def settings(self, call, **more):
        return getattr(self.lambda_, f"{call}_function_event_invoke_config")(FunctionName=NAME, **more)

    def shown(self):
        shown = self.settings("get")
        return shown.get("MaximumRetryAttempts"), shown.get("MaximumEventAgeInSeconds"), shown["DestinationConfig"]

    def test_the_last_settings_hold(self):
        failed = {"OnFailure": {"Destination": QUEUE}}
        self.settings("put", MaximumRetryAttempts=2, MaximumEventAgeInSeconds=60, DestinationConfig=failed)
        self.assertEqual((2, 60, {"OnSuccess": {}} | failed), self.shown())
        self.settings("update", MaximumRetryAttempts=1)
        self.assertEqual((1, 60, {"OnSuccess": {}} | failed), self.shown())
        self.settings("put", MaximumRetryAttempts=0)
        self.assertEqual((0, None, {"OnSuccess": {}, "OnFailure": {}}), self.shown())
        listed = self.lambda_.list_function_event_invoke_configs(FunctionName=NAME)["FunctionEventInvokeConfigs"]
        self.assertEqual([(f"{ARN}:$LATEST", START)], [(one["FunctionArn"], one["LastModified"]) for one in listed])
        self.settings("delete")
        self.assert_refused(
            "ResourceNotFoundException", self.lambda_.get_function_event_invoke_config, FunctionName=NAME
        )

    def test_none_can_be_changed_where_there_are_none(self):
        update = self.lambda_.update_function_event_invoke_config
        self.assert_refused("ResourceNotFoundException", update, FunctionName=NAME, MaximumRetryAttempts=1)


class Subscriptions(LambdaCase):
    def setUp(self):
        super().setUp()
        self.logs = aws.client("logs")
        self.logs.create_log_group(logGroupName=GROUP)

    def subscribe(self, name="wake", pattern="?POST", arn=ARN):
        return {"logGroupName": GROUP, "filterName": name, "filterPattern": pattern, "destinationArn": arn}

    def subscribed(self):
        found = self.logs.describe_subscription_filters(logGroupName=GROUP)["subscriptionFilters"]
        return [(one["filterName"], one["filterPattern"], one["destinationArn"]) for one in found]

    def test_need_the_function_s_permission_for_this_group(self):
        put, refused = self.logs.put_subscription_filter, "InvalidParameterException"
        self.assert_refused(refused, put, **self.subscribe())
        self.permit_logs(group="/app/other")
        self.permit_logs(sid="elsewhere", SourceAccount=OTHER_ACCOUNT)
        self.permit("events.amazonaws.com", "another-service")
        self.permit("*", "everybody-by-url", InvokedViaFunctionUrl=True)
        self.assert_refused(refused, put, **self.subscribe())
        self.permit_logs(sid="this")
        put(**self.subscribe())
        self.assertEqual([("wake", "?POST", ARN)], self.subscribed())
        self.assert_refused(refused, put, **self.subscribe(name="absent", arn=f"{ARN}-absent"))

    def test_two_are_the_most_and_each_may_be_changed(self):
        self.permit_logs()
        for name in ("one", "two"):
            self.logs.put_subscription_filter(**self.subscribe(name))
        self.assert_refused(
            "LimitExceededException", self.logs.put_subscription_filter, **self.subscribe("three")
        )
        self.logs.put_subscription_filter(**self.subscribe("two", pattern=""))
        self.assertEqual([("one", "?POST", ARN), ("two", "", ARN)], self.subscribed())

    def test_pass_nothing_on_by_themselves(self):
        self.permit_logs()
        self.logs.put_subscription_filter(**self.subscribe())
        self.logs.create_log_stream(logGroupName=GROUP, logStreamName="a")
        event = {"timestamp": test_launcher.START_MS, "message": "POST /v1/calls"}
        self.logs.put_log_events(logGroupName=GROUP, logStreamName="a", logEvents=[event])
        groups = self.logs.describe_log_groups()["logGroups"]
        self.assertEqual([GROUP], [group["logGroupName"] for group in groups])


class MetricFilters(Case):
    METRIC = {"metricName": "Calls", "metricNamespace": "Reveille", "metricValue": "1", "defaultValue": 0.0}

    def setUp(self):
        super().setUp()
        self.logs = aws.client("logs")
        self.logs.create_log_group(logGroupName=GROUP)

    def put(self, pattern="POST", group=GROUP):
        given = {"logGroupName": group, "filterName": "calls", "filterPattern": pattern}
        return given | {"metricTransformations": [self.METRIC]}

    def shown(self):
        names = ("filterName", "logGroupName", "filterPattern", "metricTransformations")
        return [tuple(one[name] for name in names) for one in self.logs.describe_metric_filters()["metricFilters"]]

    def test_are_kept_once_and_go_with_their_group(self):
        for pattern in ("POST", "GET"):
            self.logs.put_metric_filter(**self.put(pattern))
        self.assertEqual([("calls", GROUP, "GET", [self.METRIC])], self.shown())
        self.logs.delete_metric_filter(logGroupName=GROUP, filterName="calls")
        self.assertEqual([], self.shown())
        self.logs.put_metric_filter(**self.put())
        self.logs.delete_log_group(logGroupName=GROUP)
        self.assertEqual([], self.shown())

    def test_need_a_group(self):
        self.assert_refused("ResourceNotFoundException", self.logs.put_metric_filter, **self.put(group="/absent"))


class Targets(Case):
    def test_of_a_rule_are_shown_as_given(self):
        events = aws.client("events")
        events.put_rule(Name="tick", ScheduleExpression="rate(5 minutes)")
        retry = {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 300}
        target = {"Id": "idle-check", "Arn": ARN, "RetryPolicy": retry}
        events.put_targets(Rule="tick", Targets=[target])
        self.assertEqual([target], events.list_targets_by_rule(Rule="tick")["Targets"])
