"""What the local AWS promises of Budgets, asked of a launched process with boto3."""

import urllib.error

import test_launcher
from test_launcher import START, START_MS, Case

ACCOUNT = "123456789012"
NAME = "reveille-daily"
OVER_80 = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80.0}
FORECAST_100 = {"NotificationType": "FORECASTED", "ComparisonOperator": "GREATER_THAN", "Threshold": 100.0}
TOPIC = {"SubscriptionType": "SNS", "Address": f"arn:aws:sns:us-east-1:{ACCOUNT}:alerts"}
PERSON = {"SubscriptionType": "EMAIL", "Address": "ops@example.com"}


def setUpModule():
    global aws
    test_launcher.setUpModule()
    aws = test_launcher.aws


def tearDownModule():
    test_launcher.tearDownModule()


def person(number):
    return {"SubscriptionType": "EMAIL", "Address": f"person-{number}@example.com"}


def over(percent):
    return OVER_80 | {"Threshold": float(percent)}


class BudgetsCase(Case):
    def setUp(self):
        super().setUp()
        self.budgets = aws.client("budgets")

    def create(self, notifications=(), **more):
        limit = {"Amount": "10", "Unit": "USD"}
        budget = {"BudgetName": NAME, "BudgetType": "COST", "TimeUnit": "DAILY", "BudgetLimit": limit} | more
        pairs = [{"Notification": one, "Subscribers": [PERSON]} for one in notifications]
        self.budgets.create_budget(AccountId=ACCOUNT, Budget=budget, NotificationsWithSubscribers=pairs)

    def of(self, call, **parameters):
        return getattr(self.budgets, call)(AccountId=ACCOUNT, BudgetName=NAME, **parameters)

    def refused(self, code, call, **parameters):
        return self.assert_refused(code, getattr(self.budgets, call), AccountId=ACCOUNT, **parameters)

    def described(self, **more):
        return self.of("describe_budget", **more)["Budget"]

    def states(self):
        found = self.of("describe_notifications_for_budget")["Notifications"]
        return [(one["NotificationType"], one["NotificationState"]) for one in found]

    def subscribers(self, notification=OVER_80):
        return self.of("describe_subscribers_for_notification", Notification=notification)["Subscribers"]

    def spend(self, actual, forecast=None, name=NAME):
        given = {"account": ACCOUNT, "name": name, "actual": actual, "forecast": forecast}
        return aws.admin("POST", "budgets", given)


class Budgets(BudgetsCase):
    def test_a_new_budget_is_shown_with_its_defaults(self):
        aws.advance(3600)
        self.create(CostFilters={"TagKeyValue": ["user:project$reveille"]}, CostTypes={"IncludeCredit": False})
        shown = self.described()
        self.assertEqual({"Amount": "10", "Unit": "USD"}, shown["BudgetLimit"])
        self.assertEqual({"TagKeyValue": ["user:project$reveille"]}, shown["CostFilters"])
        self.assertEqual([False, True], [shown["CostTypes"][f"Include{one}"] for one in ("Credit", "Tax")])
        self.assertEqual({"ActualSpend": {"Amount": "0", "Unit": "USD"}}, shown["CalculatedSpend"])
        self.assertEqual(START, shown["TimePeriod"]["Start"])
        self.assertEqual(2087, shown["TimePeriod"]["End"].year)
        self.assertEqual(START_MS / 1000 + 3600, shown["LastUpdatedTime"].timestamp())

    def test_the_period_begins_with_its_unit(self):
        begins = {}
        for unit in ("DAILY", "MONTHLY", "QUARTERLY", "ANNUALLY"):
            self.create(BudgetName=unit, TimeUnit=unit)
            found = self.budgets.describe_budget(AccountId=ACCOUNT, BudgetName=unit)["Budget"]
            begins[unit] = found["TimePeriod"]["Start"].strftime("%m-%d")
        self.assertEqual({"DAILY": "11-30", "MONTHLY": "11-01", "QUARTERLY": "10-01", "ANNUALLY": "01-01"}, begins)

    def test_the_filter_expression_is_shown_on_request(self):
        expression = {"Tags": {"Key": "project", "Values": ["reveille"], "MatchOptions": ["EQUALS"]}}
        self.create(FilterExpression=expression, Metrics=["UnblendedCost"])
        plain, full = self.described(), self.described(ShowFilterExpression=True)
        self.assertNotIn("FilterExpression", plain)
        self.assertEqual((expression, ["UnblendedCost"]), (full["FilterExpression"], full["Metrics"]))
        self.assertNotIn("CostTypes", full)

    def test_wrong_budgets_are_refused(self):
        limit = {"Amount": "10", "Unit": "EUR"}
        cases = {
            "another currency": {"BudgetLimit": limit},
            "no amount": {"BudgetLimit": {"Amount": "ten", "Unit": "USD"}},
            "a colon in the name": {"BudgetName": "a:b"},
            "a backslash in the name": {"BudgetName": "a\\b"},
            "an action in the name": {"BudgetName": "a/action/b"},
            "a name too long": {"BudgetName": "a" * 101},
            "an unknown unit": {"TimeUnit": "HOURLY"},
            "both kinds of filters": {"CostFilters": {}, "Metrics": ["UnblendedCost"]},
            "two metrics": {"Metrics": ["UnblendedCost", "BlendedCost"]},
            "an end before the start": {"TimePeriod": {"Start": START, "End": START}},
        }
        for name, wrong in cases.items():
            with self.subTest(name):
                good = {"BudgetName": NAME, "BudgetType": "COST", "TimeUnit": "DAILY"}
                budget = good | {"BudgetLimit": {"Amount": "10", "Unit": "USD"}} | wrong
                self.refused("InvalidParameterException", "create_budget", Budget=budget)
        self.assertEqual([], aws.admin("GET", "budgets"))

    def test_what_is_not_built_is_501(self):
        usage = {"BudgetName": NAME, "BudgetType": "USAGE", "TimeUnit": "DAILY"}
        response = self.refused("NotImplemented", "create_budget", Budget=usage)
        self.assertEqual(501, response["ResponseMetadata"]["HTTPStatusCode"])
        self.refused("NotImplemented", "describe_budget_actions_for_account")

    def test_a_name_is_taken_once_per_account(self):
        self.create()
        with self.assertRaises(self.budgets.exceptions.DuplicateRecordException) as caught:
            self.create()
        self.assertIn("already exists", caught.exception.response["Message"])
        limit = {"Amount": "1", "Unit": "USD"}
        other = {"BudgetName": NAME, "BudgetType": "COST", "TimeUnit": "DAILY", "BudgetLimit": limit}
        self.budgets.create_budget(AccountId="210987654321", Budget=other)
        self.assertEqual("10", self.described()["BudgetLimit"]["Amount"])

    def test_an_unknown_budget_is_not_found(self):
        limit = {"Amount": "1", "Unit": "USD"}
        budget = {"BudgetName": NAME, "BudgetType": "COST", "TimeUnit": "DAILY", "BudgetLimit": limit}
        self.refused("NotFoundException", "update_budget", NewBudget=budget)
        named = ("describe_budget", "delete_budget", "describe_notifications_for_budget")
        for call in named:
            self.refused("NotFoundException", call, BudgetName=NAME)
        notification = {"Notification": OVER_80, "Subscribers": [PERSON]}
        self.refused("NotFoundException", "create_notification", BudgetName=NAME, **notification)

    def test_an_update_replaces_all_and_forgets_what_was_spent(self):
        self.create([OVER_80], CostFilters={"Region": ["eu-central-1"]})
        self.spend("9.00", "12.50")
        aws.advance(60)
        limit = {"Amount": "20", "Unit": "USD"}
        budget = {"BudgetName": NAME, "BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": limit}
        self.budgets.update_budget(AccountId=ACCOUNT, NewBudget=budget)
        shown = self.described()
        self.assertEqual(("MONTHLY", limit), (shown["TimeUnit"], shown["BudgetLimit"]))
        self.assertNotIn("CostFilters", shown)
        self.assertEqual({"ActualSpend": {"Amount": "0", "Unit": "USD"}}, shown["CalculatedSpend"])
        self.assertEqual(START_MS / 1000 + 60, shown["LastUpdatedTime"].timestamp())
        self.assertEqual([("ACTUAL", "OK")], self.states())

    def test_a_deleted_budget_is_gone_with_its_notifications(self):
        self.create([OVER_80])
        self.of("delete_budget")
        self.create()
        self.assertEqual([], self.states())

    def test_budgets_come_in_pages(self):
        for number in range(5):
            self.create(BudgetName=f"b{number}")
        first = self.budgets.describe_budgets(AccountId=ACCOUNT, MaxResults=3)
        self.assertEqual(["b0", "b1", "b2"], [one["BudgetName"] for one in first["Budgets"]])
        rest = self.budgets.describe_budgets(AccountId=ACCOUNT, MaxResults=3, NextToken=first["NextToken"])
        self.assertEqual(["b3", "b4"], [one["BudgetName"] for one in rest["Budgets"]])
        self.assertNotIn("NextToken", rest)
        self.refused("InvalidNextTokenException", "describe_budgets", NextToken="x")

    def test_any_signing_region_sees_the_same_budgets(self):
        self.create()
        for region in ("us-east-1", "ap-northeast-2"):
            elsewhere = aws.client("budgets", region=region)
            self.assertEqual(1, len(elsewhere.describe_budgets(AccountId=ACCOUNT)["Budgets"]))

    def test_calls_are_logged_and_faults_fit(self):
        aws.fault(service="budgets", action="DescribeBudget", code="ThrottlingException")
        self.refused("ThrottlingException", "describe_budget", BudgetName=NAME)
        self.refused("NotFoundException", "describe_budget", BudgetName=NAME)
        seen = [(call["service"], call["action"], call["status"]) for call in aws.admin("GET", "calls")]
        self.assertEqual([("budgets", "DescribeBudget", 400)] * 2, seen)


class Spend(BudgetsCase):
    def test_is_what_the_test_sets(self):
        self.create()
        self.spend("3.00", "9.50")
        actual, forecast = {"Amount": "3.00", "Unit": "USD"}, {"Amount": "9.50", "Unit": "USD"}
        self.assertEqual({"ActualSpend": actual, "ForecastedSpend": forecast}, self.described()["CalculatedSpend"])
        self.spend("4.00")
        self.assertNotIn("ForecastedSpend", self.described()["CalculatedSpend"])

    def test_decides_the_state_of_notifications(self):
        self.create([OVER_80, FORECAST_100])
        self.spend("8.00", "10.00")
        self.assertEqual([("ACTUAL", "OK"), ("FORECASTED", "OK")], self.states())
        self.spend("8.01", "10.01")
        self.assertEqual([("ACTUAL", "ALARM"), ("FORECASTED", "ALARM")], self.states())
        self.spend("8.01")
        self.assertEqual([("ACTUAL", "ALARM"), ("FORECASTED", "OK")], self.states())

    def test_absolute_thresholds_are_dollars(self):
        self.create([OVER_80 | {"Threshold": 3.0, "ThresholdType": "ABSOLUTE_VALUE"}])
        self.spend("3.5")
        self.assertEqual([("ACTUAL", "ALARM")], self.states())

    def test_mistakes_are_refused(self):
        self.create()
        good = {"account": ACCOUNT, "name": NAME, "actual": "1"}
        for wrong in ({"name": "other"}, {"actual": "a lot"}, {"actual": 1.5}, {"spent": "1"}):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                aws.admin("POST", "budgets", good | wrong)
            caught.exception.close()
            self.assertEqual(400, caught.exception.code)

    def test_everything_can_be_listed(self):
        expression = {"Tags": {"Key": "project", "Values": ["reveille"]}}
        self.create([OVER_80], FilterExpression=expression, Metrics=["UnblendedCost"])
        listed = aws.admin("GET", "budgets")
        self.assertEqual([self.spend("0")], listed)
        self.assertEqual((ACCOUNT, expression), (listed[0]["account"], listed[0]["budget"]["FilterExpression"]))
        notification = OVER_80 | {"ThresholdType": "PERCENTAGE", "NotificationState": "OK"}
        self.assertEqual([{"notification": notification, "subscribers": [PERSON]}], listed[0]["notifications"])

    def test_a_reset_clears_it(self):
        self.create()
        aws.admin("POST", "reset", {})
        self.assertEqual([], aws.admin("GET", "budgets"))


class Notifications(BudgetsCase):
    def notify(self, notification=OVER_80, subscribers=(PERSON,)):
        self.of("create_notification", Notification=notification, Subscribers=list(subscribers))

    def refuse(self, code, notification=OVER_80, subscribers=(PERSON,)):
        parameters = {"Notification": notification, "Subscribers": list(subscribers)}
        self.refused(code, "create_notification", BudgetName=NAME, **parameters)

    def setUp(self):
        super().setUp()
        self.create()

    def test_the_same_twice_is_a_duplicate(self):
        self.notify()
        self.refuse("DuplicateRecordException")
        self.refuse("DuplicateRecordException", OVER_80 | {"ThresholdType": "PERCENTAGE"})
        self.notify(OVER_80 | {"ThresholdType": "ABSOLUTE_VALUE"})

    def test_five_are_the_most(self):
        for percent in (50, 60, 70, 80, 90):
            self.notify(over(percent))
        self.refuse("CreationLimitExceededException", over(100))
        self.of("delete_budget")
        with self.assertRaises(self.budgets.exceptions.CreationLimitExceededException):
            self.create([over(percent) for percent in range(6)])
        self.assertEqual([], aws.admin("GET", "budgets"))

    def test_subscribers_are_one_to_eleven(self):
        everybody = [TOPIC, *map(person, range(10))]
        self.refuse("InvalidParameterException", subscribers=[*everybody, PERSON])
        self.refuse("CreationLimitExceededException", subscribers=map(person, range(11)))
        self.refuse("DuplicateRecordException", subscribers=[PERSON, PERSON])
        self.refuse("InvalidParameterException", subscribers=[PERSON | {"SubscriptionType": "SNS"}])
        self.assertEqual([], self.states())
        self.notify(subscribers=everybody)
        self.assertEqual(everybody, self.subscribers())

    def test_none_without_subscribers(self):
        # boto3 asks for one by itself; other SDKs leave that to AWS.
        client = aws.client("budgets", parameter_validation=False)
        parameters = {"AccountId": ACCOUNT, "BudgetName": NAME, "Notification": OVER_80, "Subscribers": []}
        self.assert_refused("InvalidParameterException", client.create_notification, **parameters)

    def test_an_update_keeps_the_subscribers(self):
        self.notify()
        self.notify(over(90))
        self.of("update_notification", OldNotification=OVER_80, NewNotification=over(85))
        self.assertEqual([PERSON], self.subscribers(over(85)))
        taken = {"OldNotification": over(85), "NewNotification": over(90)}
        self.refused("DuplicateRecordException", "update_notification", BudgetName=NAME, **taken)
        gone = {"OldNotification": OVER_80, "NewNotification": over(70)}
        self.refused("NotFoundException", "update_notification", BudgetName=NAME, **gone)

    def test_deleted_ones_are_gone(self):
        self.notify()
        self.of("delete_notification", Notification=OVER_80)
        self.assertEqual([], self.states())
        self.refused("NotFoundException", "delete_notification", BudgetName=NAME, Notification=OVER_80)

    def test_come_in_pages(self):
        for percent in (50, 60, 70):
            self.notify(over(percent))
        first = self.of("describe_notifications_for_budget", MaxResults=2)
        rest = self.of("describe_notifications_for_budget", MaxResults=2, NextToken=first["NextToken"])
        both = first["Notifications"] + rest["Notifications"]
        self.assertEqual([50.0, 60.0, 70.0], [one["Threshold"] for one in both])


class Subscribers(BudgetsCase):
    def setUp(self):
        super().setUp()
        self.create([OVER_80])

    def test_are_added_changed_and_removed(self):
        self.of("create_subscriber", Notification=OVER_80, Subscriber=TOPIC)
        self.of("update_subscriber", Notification=OVER_80, OldSubscriber=PERSON, NewSubscriber=person(1))
        self.assertEqual([person(1), TOPIC], self.subscribers())
        self.of("delete_subscriber", Notification=OVER_80, Subscriber=person(1))
        self.assertEqual([TOPIC], self.subscribers())

    def test_the_last_one_takes_the_notification_with_it(self):
        self.of("delete_subscriber", Notification=OVER_80, Subscriber=PERSON)
        self.assertEqual([], self.states())

    def test_doubles_and_too_many_are_refused(self):
        asked = {"BudgetName": NAME, "Notification": OVER_80}
        self.refused("DuplicateRecordException", "create_subscriber", Subscriber=PERSON, **asked)
        self.of("create_subscriber", Notification=OVER_80, Subscriber=TOPIC)
        second = TOPIC | {"Address": f"arn:aws:sns:us-east-1:{ACCOUNT}:other"}
        self.refused("CreationLimitExceededException", "create_subscriber", Subscriber=second, **asked)
        doubled = {"OldSubscriber": TOPIC, "NewSubscriber": PERSON}
        self.refused("DuplicateRecordException", "update_subscriber", **doubled, **asked)
        self.of("update_subscriber", Notification=OVER_80, OldSubscriber=TOPIC, NewSubscriber=second)

    def test_an_unknown_notification_or_subscriber_is_not_found(self):
        unknown = {"BudgetName": NAME, "Notification": over(1)}
        self.refused("NotFoundException", "describe_subscribers_for_notification", **unknown)
        absent = {"BudgetName": NAME, "Notification": OVER_80, "Subscriber": TOPIC}
        self.refused("NotFoundException", "delete_subscriber", **absent)


class Tags(BudgetsCase):
    ARN = f"arn:aws:budgets::{ACCOUNT}:budget/{NAME}"

    def tags(self):
        found = self.budgets.list_tags_for_resource(ResourceARN=self.ARN)["ResourceTags"]
        return {one["Key"]: one["Value"] for one in found}

    def test_are_given_replaced_and_taken_away(self):
        self.create()
        self.budgets.tag_resource(ResourceARN=self.ARN, ResourceTags=[{"Key": key, "Value": "1"} for key in ("a", "b")])
        self.budgets.tag_resource(ResourceARN=self.ARN, ResourceTags=[{"Key": "b", "Value": "2"}])
        self.assertEqual({"a": "1", "b": "2"}, self.tags())
        self.budgets.untag_resource(ResourceARN=self.ARN, ResourceTagKeys=["a", "z"])
        self.assertEqual({"b": "2"}, self.tags())

    def test_need_a_budget_and_its_arn(self):
        wrong = {"NotFoundException": self.ARN, "InvalidParameterException": f"budget/{NAME}"}
        for code, arn in wrong.items():
            self.assert_refused(code, self.budgets.list_tags_for_resource, ResourceARN=arn)
