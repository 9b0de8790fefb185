"""TestEventPattern through the gateway."""

import json

from botocore.exceptions import ClientError

import test_launcher
from test_launcher import Case

EVENT = {
    "id": "1", "detail-type": "EC2 Instance State-change Notification", "source": "aws.ec2", "account": "123456789012",
    "time": "2026-01-05T10:00:00Z", "region": "us-east-1", "resources": [], "detail": {"instance-id": "i-1", "state": "stopped"},
}  # fmt: skip


def setUpModule():
    global aws
    test_launcher.setUpModule()
    aws = test_launcher.aws


def tearDownModule():
    test_launcher.tearDownModule()


class EventPatterns(Case):
    def matches(self, pattern, event=EVENT):
        return aws.client("events").test_event_pattern(EventPattern=json.dumps(pattern), Event=json.dumps(event))["Result"]

    def test_an_event_matches_where_every_field_is_in_its_list(self):
        self.assertTrue(self.matches({"source": ["aws.ec2"], "detail": {"state": ["running", "stopped"]}}))
        self.assertFalse(self.matches({"source": ["aws.ec2"], "detail": {"state": ["running"]}}))
        self.assertFalse(self.matches({"source": ["aws.s3"]}))
        self.assertFalse(self.matches({"detail": {"other": ["stopped"]}}))

    def test_what_is_no_event_is_refused(self):
        for name in EVENT:
            event = {key: value for key, value in EVENT.items() if key != name}
            with self.assertRaises(ClientError) as refused:
                self.matches({"source": ["aws.ec2"]}, event)
            self.assertEqual("ValidationException", refused.exception.response["Error"]["Code"])
