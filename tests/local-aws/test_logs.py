"""What the local AWS promises of CloudWatch Logs, asked of a launched process with boto3."""

import test_launcher
from test_launcher import START_MS, Case

GROUP = "/aws/lambda/reveille-wake"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def setUpModule():
    global aws
    test_launcher.setUpModule()
    aws = test_launcher.aws


def tearDownModule():
    test_launcher.tearDownModule()


class LogsCase(Case):
    def setUp(self):
        super().setUp()
        self.logs = aws.client("logs")
        self.logs.create_log_group(logGroupName=GROUP)
        for stream in ("a", "b"):
            self.logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)

    def put(self, *messages, stream="a", at_ms=START_MS, step_ms=0):
        events = [{"timestamp": at_ms + index * step_ms, "message": text} for index, text in enumerate(messages)]
        return self.logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)

    def filter(self, pattern=None, **more):
        given = more if pattern is None else more | {"filterPattern": pattern}
        return self.logs.filter_log_events(**({"logGroupName": GROUP} | given))

    def messages(self, pattern=None, **more):
        return [event["message"] for event in self.filter(pattern, **more)["events"]]

    def pages(self, **more):
        """The messages of each page, to the end."""
        answer = self.filter(**more)
        found = [answer]
        while "nextToken" in answer:
            answer = self.filter(**more, nextToken=answer["nextToken"])
            found.append(answer)
        return [[event["message"] for event in page["events"]] for page in found]


class Put(LogsCase):
    def test_times_are_virtual(self):
        aws.advance(30 * 86400)
        now_ms = aws.admin("GET", "clock")["now_ms"]
        self.put("now", at_ms=now_ms)
        event = self.filter()["events"][0]
        self.assertEqual((now_ms, now_ms), (event["timestamp"], event["ingestionTime"]))

    def test_too_old_and_too_new_are_rejected_by_index(self):
        times = [-14 * DAY_MS - 1, -14 * DAY_MS, 2 * HOUR_MS, 2 * HOUR_MS + 1]
        for kept in (times[1], times[2]):  # apart: one batch spans a day at most
            events = [{"timestamp": START_MS + at_ms, "message": str(at_ms)} for at_ms in (times[0], kept, times[3])]
            answer = self.logs.put_log_events(logGroupName=GROUP, logStreamName="a", logEvents=events)
            expected = {"tooOldLogEventEndIndex": 1, "tooNewLogEventStartIndex": 2}
            self.assertEqual(expected, answer["rejectedLogEventsInfo"])
        self.assertEqual([str(times[1]), str(times[2])], self.messages())

    def test_older_than_the_retention_is_expired(self):
        self.logs.put_retention_policy(logGroupName=GROUP, retentionInDays=3)
        answer = self.put("old", "kept", at_ms=START_MS - 3 * DAY_MS - 1, step_ms=1)
        self.assertEqual({"expiredLogEventEndIndex": 1}, answer["rejectedLogEventsInfo"])
        self.assertEqual(["kept"], self.messages())

    def test_wrong_batches_are_refused(self):
        cases = {
            "against time": {"messages": ["a", "b"], "step_ms": -1},
            "more than a day": {"messages": ["a", "b"], "step_ms": DAY_MS + 1, "at_ms": START_MS - 2 * DAY_MS},
            "more than a megabyte": {"messages": ["a" * 600_000, "b" * 600_000]},
        }
        for name, wrong in cases.items():
            with self.subTest(name):
                messages = wrong.pop("messages")
                with self.assertRaises(self.logs.exceptions.InvalidParameterException):
                    self.put(*messages, **wrong)
        self.assertEqual([], self.messages())


class Filter(LogsCase):
    def test_without_a_pattern_everything_oldest_first_across_streams(self):
        self.put("one", "three", step_ms=2)
        self.put("two", "four", stream="b", at_ms=START_MS + 1, step_ms=2)
        answer = self.filter()
        seen = [(event["message"], event["logStreamName"]) for event in answer["events"]]
        self.assertEqual([("one", "a"), ("two", "b"), ("three", "a"), ("four", "b")], seen)
        self.assertEqual(4, len({event["eventId"] for event in answer["events"]}))
        self.assertEqual([], answer["searchedLogStreams"])
        self.assertNotIn("nextToken", answer)

    def test_both_ends_of_the_range_belong_to_it(self):
        self.put("0", "1", "2", "3", step_ms=1)
        self.assertEqual(["1", "2"], self.messages(startTime=START_MS + 1, endTime=START_MS + 2))

    def test_streams_by_name_and_by_prefix(self):
        self.put("in a")
        self.put("in b", stream="b")
        self.assertEqual(["in b"], self.messages(logStreamNames=["b"]))
        self.assertEqual(["in a"], self.messages(logStreamNamePrefix="a"))
        both = {"logGroupName": GROUP, "logStreamNames": ["a"], "logStreamNamePrefix": "a"}
        self.assert_refused("InvalidParameterException", self.logs.filter_log_events, **both)
        absent = {"logGroupName": GROUP, "logStreamNames": ["z"]}
        self.assert_refused("ResourceNotFoundException", self.logs.filter_log_events, **absent)

    def test_the_group_by_name_or_arn(self):
        self.put("hello")
        arn = self.logs.describe_log_groups()["logGroups"][0]["arn"]
        found = self.logs.filter_log_events(logGroupIdentifier=arn.removesuffix(":*"))["events"]
        self.assertEqual(["hello"], [event["message"] for event in found])
        both = {"logGroupName": GROUP, "logGroupIdentifier": GROUP}
        self.assert_refused("InvalidParameterException", self.logs.filter_log_events, **both)
        self.assert_refused("InvalidParameterException", self.logs.filter_log_events)

    def test_an_unknown_group_is_not_found(self):
        self.assert_refused("ResourceNotFoundException", self.logs.filter_log_events, logGroupName="absent")

    def test_faults_fit(self):
        aws.fault(service="logs", action="FilterLogEvents", code="ServiceUnavailableException")
        response = self.assert_refused("ServiceUnavailableException", self.logs.filter_log_events, logGroupName=GROUP)
        self.assertEqual(500, response["ResponseMetadata"]["HTTPStatusCode"])
        self.assertEqual([], self.messages())


class Patterns(LogsCase):
    LINES = ("GET /v1/chat 200", "POST /v1/chat 503 no node", "ERROR node lost", 'said "no node"')

    def setUp(self):
        super().setUp()
        self.put(*self.LINES, step_ms=1)

    def test_terms_phrases_exclusions_and_choices(self):
        get, post, error, said = self.LINES
        cases = {
            "": [get, post, error, said],
            "  ": [get, post, error, said],
            "node": [post, error, said],
            "Node": [],
            "node ERROR": [error],
            "-node": [get],
            "node -ERROR": [post, said],
            '"no node"': [post, said],
            'node -"no node"': [error],
            '"/v1/chat" -503': [get],
            "?GET ?ERROR": [get, error],
            '?GET ?"no node"': [get, post, said],
            r'"\"no node\""': [said],
        }
        for pattern, expected in cases.items():
            with self.subTest(pattern):
                self.assertEqual(expected, self.messages(pattern))

    def test_what_is_not_built_is_501(self):
        for pattern in ('{ $.level = "ERROR" }', "[ip, user, status=5*]", "%5\\d\\d%", "GET ?ERROR"):
            with self.subTest(pattern):
                asked = {"logGroupName": GROUP, "filterPattern": pattern}
                response = self.assert_refused("NotImplemented", self.logs.filter_log_events, **asked)
                self.assertEqual(501, response["ResponseMetadata"]["HTTPStatusCode"])
                self.assertIn("filter pattern", response["Error"]["Message"])

    def test_wrong_patterns_are_refused(self):
        for pattern in ("/v1/chat", '"open', 'no"node"', '""', "-"):
            with self.subTest(pattern):
                asked = {"logGroupName": GROUP, "filterPattern": pattern}
                self.assert_refused("InvalidParameterException", self.logs.filter_log_events, **asked)


class Pages(LogsCase):
    def test_by_limit(self):
        self.put(*"12345")
        self.assertEqual([["1", "2"], ["3", "4"], ["5"]], self.pages(limit=2))

    def test_page_size_can_be_forced(self):
        self.put(*"12345")
        aws.config(filter_events_per_page=3)
        self.assertEqual([["1", "2", "3"], ["4", "5"]], self.pages())
        self.assertEqual([["1", "2"], ["3", "4"], ["5"]], self.pages(limit=2))

    def test_a_page_holds_a_megabyte(self):
        for number in range(3):
            self.put(str(number) * 500_000, at_ms=START_MS + number)
        self.assertEqual([["0", "1"], ["2"]], [[text[0] for text in page] for page in self.pages()])

    def test_ten_thousand_events_are_the_most(self):
        self.put(*(["x"] * 10_000))
        self.put("y", at_ms=START_MS + 1)
        self.assertEqual([10_000, 1], [len(page) for page in self.pages()])

    def test_the_first_page_can_be_empty(self):
        self.put("1")
        aws.config(empty_first_log_page=True)
        self.assertEqual([[], ["1"]], self.pages())

    def test_a_late_event_shifts_no_page(self):
        self.put("1", "3", "5", step_ms=2)
        first = self.filter(limit=2)
        self.put("2", "4", stream="b", at_ms=START_MS + 1, step_ms=2)
        self.assertEqual(["4", "5"], self.messages(nextToken=first["nextToken"]))

    def test_a_wrong_token_is_refused(self):
        asked = {"logGroupName": GROUP, "nextToken": "x"}
        self.assert_refused("InvalidParameterException", self.logs.filter_log_events, **asked)
