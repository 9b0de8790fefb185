"""What the local AWS promises, asked of a launched process with boto3 and raw HTTP."""

import concurrent.futures
import datetime
import email.utils
import gzip
import http.client
import json
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

import boto3
import botocore.config
import botocore.exceptions
import botocore.parsers
import botocore.serialize

import cbor

HERE = pathlib.Path(__file__).parent
START = datetime.datetime(2026, 11, 30, tzinfo=datetime.timezone.utc)
START_MS = int(START.timestamp() * 1000)
REGION = "eu-central-1"
MINUTE = datetime.timedelta(minutes=1)


class LocalAws:
    """A launched process and the admin calls on it."""

    def __init__(self, *options) -> None:
        command = [sys.executable, str(HERE / "launcher.py"), "--port", "0", "--region", REGION, "--exit-with-stdin"]
        self.process = subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def close(self) -> int:
        """Closes the launcher's standard input and waits for its end."""
        self.process.stdin.close()
        status = self.process.wait(timeout=10)
        self.process.stdout.close()
        return status

    def client(self, service, retries=0, region=REGION, **settings):
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=region,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=botocore.config.Config(
                retries={"total_max_attempts": retries + 1}, max_pool_connections=50, **settings
            ),
        )

    def admin(self, method, call, value=None):
        body = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(f"{self.url}/local-aws/{call}", method=method, data=body)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def advance(self, seconds, **more):
        return self.admin("POST", "clock", {"advance_ms": int(seconds * 1000)} | more)

    def config(self, **settings):
        return self.admin("POST", "config", settings)

    def fault(self, **fault):
        return self.admin("POST", "faults", [fault])


def setUpModule():
    global aws
    aws = LocalAws()


def tearDownModule():
    aws.close()


class Case(unittest.TestCase):
    def setUp(self):
        aws.admin("POST", "reset", {})

    def assert_refused(self, code, call, **parameters):
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            call(**parameters)
        self.assertEqual(code, caught.exception.response["Error"]["Code"])
        return caught.exception.response


class Ec2Case(Case):
    def setUp(self):
        super().setUp()
        self.ec2 = aws.client("ec2")

    def launch(self, running=True, **parameters):
        given = {"ImageId": "ami-0abcdef12", "MinCount": 1, "MaxCount": 1, "InstanceType": "g5.xlarge"} | parameters
        instance_id = self.ec2.run_instances(**given)["Instances"][0]["InstanceId"]
        if running:
            aws.advance(20)
        return instance_id

    def launch_stopped(self):
        instance_id = self.launch()
        self.ec2.stop_instances(InstanceIds=[instance_id])
        aws.advance(40)
        return instance_id

    def described(self, instance_id):
        return self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]

    def state(self, instance_id):
        return self.described(instance_id)["State"]["Name"]

    def start(self, *instance_ids):
        return self.ec2.start_instances(InstanceIds=list(instance_ids))["StartingInstances"]

    def stop(self, *instance_ids, **more):
        return self.ec2.stop_instances(InstanceIds=list(instance_ids), **more)["StoppingInstances"]


class Clock(Case):
    def test_stands_still_until_moved(self):
        self.assertEqual({"now_ms": START_MS}, aws.admin("GET", "clock"))
        self.assertEqual(START_MS + 1500, aws.advance(1.5)["now_ms"])
        self.assertEqual(START_MS + 9000, aws.admin("POST", "clock", {"now_ms": START_MS + 9000})["now_ms"])

    def test_goes_back_only_by_force(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            aws.admin("POST", "clock", {"now_ms": START_MS - 1})
        caught.exception.close()
        self.assertEqual(409, caught.exception.code)
        self.assertEqual(START_MS - 1, aws.admin("POST", "clock", {"now_ms": START_MS - 1, "force": True})["now_ms"])

    def test_is_moto_s_clock_too(self):
        aws.advance(3600)
        table = make_table(aws.client("dynamodb"))
        self.assertEqual(START + 60 * MINUTE, table["CreationDateTime"])
        volume = aws.client("ec2").create_volume(AvailabilityZone=f"{REGION}a", Size=8)
        self.assertEqual(START + 60 * MINUTE, volume["CreateTime"])

    def test_is_the_date_that_sts_tells_and_no_other(self):
        aws.advance(90)
        date = lambda answer: email.utils.parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
        self.assertEqual(START + datetime.timedelta(seconds=90), date(aws.client("sts").get_caller_identity()))
        elsewhere = date(aws.client("ec2").describe_instances()) - datetime.datetime.now(datetime.timezone.utc)
        self.assertLess(abs(elsewhere), datetime.timedelta(hours=1))


class LifeCycle(Ec2Case):
    def test_states_take_their_time(self):
        node = self.launch(running=False)
        self.assertEqual("pending", self.state(node))
        aws.advance(19.999)
        self.assertEqual("pending", self.state(node))
        aws.advance(0.001)
        self.assertEqual("running", self.state(node))
        self.stop(node)
        aws.advance(39.999)
        self.assertEqual("stopping", self.state(node))
        aws.advance(0.001)
        self.assertEqual("stopped", self.state(node))
        self.ec2.terminate_instances(InstanceIds=[node])
        self.assertEqual("shutting-down", self.state(node))
        aws.advance(20)
        self.assertEqual("terminated", self.state(node))

    def test_durations_can_be_set_for_all_and_for_one(self):
        aws.config(pending_seconds=0)
        first, second = self.launch(running=False), self.launch(running=False)
        self.assertEqual("running", self.state(first))
        aws.config(instance=first, stopping_seconds=3600)
        self.stop(first, second)
        aws.advance(3599)
        self.assertEqual(["stopping", "stopped"], [self.state(first), self.state(second)])

    def test_force_ends_a_hanging_stop_within_ten_seconds(self):
        node = self.launch()
        aws.config(instance=node, stopping_seconds=3600)
        self.stop(node)
        aws.advance(600)
        self.stop(node)
        aws.advance(10)
        self.assertEqual("stopping", self.state(node))
        self.stop(node, Force=True)
        aws.advance(10)
        self.assertEqual("stopped", self.state(node))

    def test_launch_time_moves_with_each_start(self):
        node = self.launch()
        self.assertEqual(START, self.described(node)["LaunchTime"])
        self.stop(node)
        aws.advance(40)
        self.start(node)
        self.assertEqual(START + MINUTE, self.described(node)["LaunchTime"])

    def test_reasons_are_set_by_a_stop_and_cleared_by_a_start(self):
        node = self.launch()
        self.stop(node)
        aws.advance(40)
        stopped = self.described(node)
        self.assertEqual("User initiated (2026-11-30 00:00:20 GMT)", stopped["StateTransitionReason"])
        expected = {
            "Code": "Client.UserInitiatedShutdown",
            "Message": "Client.UserInitiatedShutdown: User initiated shutdown",
        }
        self.assertEqual(expected, stopped["StateReason"])
        self.start(node)
        started = self.described(node)
        self.assertEqual("", started["StateTransitionReason"])
        self.assertNotIn("StateReason", started)

    def test_a_start_can_fall_back_to_stopped(self):
        node = self.launch_stopped()
        reason = {"code": "Client.InternalError", "message": "Client.InternalError: Client error on launch"}
        aws.config(instance=node, falls_back=reason | {"after_seconds": 5, "times": 1})
        change = self.start(node)[0]
        self.assertEqual(("stopped", "pending"), (change["PreviousState"]["Name"], change["CurrentState"]["Name"]))
        events = aws.advance(5)["events"]
        self.assertEqual(["stopped"], [event["detail"]["state"] for event in events])
        fallen = self.described(node)
        self.assertEqual("stopped", fallen["State"]["Name"])
        self.assertEqual({"Code": reason["code"], "Message": reason["message"]}, fallen["StateReason"])
        self.assertEqual("Client.InternalError", fallen["StateTransitionReason"])
        self.assertEqual(START + MINUTE, fallen["LaunchTime"])
        self.start(node)
        aws.advance(20)
        self.assertEqual("running", self.state(node))

    def test_an_instance_type_changes_only_while_stopped(self):
        node = self.launch()
        change = {"InstanceId": node, "InstanceType": {"Value": "g5.2xlarge"}}
        self.assert_refused("IncorrectInstanceState", self.ec2.modify_instance_attribute, **change)
        self.stop(node)
        aws.advance(40)
        self.ec2.modify_instance_attribute(**change)
        self.assertEqual("g5.2xlarge", self.described(node)["InstanceType"])
        unknown = {"InstanceId": node, "InstanceType": {"Value": "g5.tiny"}}
        self.assert_refused("InvalidInstanceAttributeValue", self.ec2.modify_instance_attribute, **unknown)
        self.ec2.modify_instance_attribute(InstanceId=node, Attribute="instanceType", Value="g6.xlarge")
        self.assertEqual("g6.xlarge", self.described(node)["InstanceType"])
        self.start(node)
        for seconds in (0, 20):  # pending, then running
            aws.advance(seconds)
            response = self.assert_refused("IncorrectInstanceState", self.ec2.modify_instance_attribute, **change)
            message = f"The instance '{node}' is not in the 'stopped' state."
            self.assertEqual(message, response["Error"]["Message"])

    def test_dry_run_changes_nothing(self):
        node = self.launch_stopped()
        self.assert_refused("DryRunOperation", self.ec2.start_instances, InstanceIds=[node], DryRun=True)
        self.assertEqual("stopped", self.state(node))

    def test_status_checks_begin_as_initializing(self):
        node = self.launch(running=False)
        self.assertEqual([], self.ec2.describe_instance_status()["InstanceStatuses"])
        every = self.ec2.describe_instance_status(IncludeAllInstances=True)["InstanceStatuses"]
        self.assertEqual("not-applicable", every[0]["InstanceStatus"]["Status"])
        aws.advance(59.999)
        status = self.ec2.describe_instance_status(InstanceIds=[node])["InstanceStatuses"][0]
        self.assertEqual("initializing", status["InstanceStatus"]["Status"])
        self.assertEqual("initializing", status["SystemStatus"]["Status"])
        aws.advance(0.001)
        status = self.ec2.describe_instance_status()["InstanceStatuses"][0]
        self.assertEqual(["ok", "ok"], [status["InstanceStatus"]["Status"], status["SystemStatus"]["Status"]])


class Legality(Ec2Case):
    def assert_message(self, message, response):
        self.assertEqual(message, response["Error"]["Message"])

    def test_start_of_pending_and_running_changes_nothing(self):
        node = self.launch(running=False)
        for state in ("pending", "running"):
            change = self.start(node)[0]
            self.assertEqual((state, state), (change["PreviousState"]["Name"], change["CurrentState"]["Name"]))
            aws.advance(20)
        self.assertEqual(START, self.described(node)["LaunchTime"])

    def test_start_of_stopping_is_refused(self):
        node = self.launch()
        self.stop(node)
        response = self.assert_refused("IncorrectInstanceState", self.ec2.start_instances, InstanceIds=[node])
        self.assert_message(f"The instance '{node}' is not in a state from which it can be started.", response)

    def test_start_and_stop_of_terminated_are_refused(self):
        node = self.launch()
        self.ec2.terminate_instances(InstanceIds=[node])
        for _ in ("shutting-down", "terminated"):
            self.assert_refused("IncorrectInstanceState", self.ec2.start_instances, InstanceIds=[node])
            response = self.assert_refused("IncorrectInstanceState", self.ec2.stop_instances, InstanceIds=[node])
            self.assert_message(f"This instance '{node}' is not in a state from which it can be stopped.", response)
            aws.advance(20)

    def test_stop_of_stopping_and_stopped_changes_nothing(self):
        node = self.launch()
        self.stop(node)
        for state in ("stopping", "stopped"):
            change = self.stop(node)[0]
            self.assertEqual((state, state), (change["PreviousState"]["Name"], change["CurrentState"]["Name"]))
            aws.advance(40)

    def test_stop_of_pending_is_refused_unless_configured_or_forced(self):
        first, second = self.launch(running=False), self.launch(running=False)
        self.assert_refused("IncorrectInstanceState", self.ec2.stop_instances, InstanceIds=[first])
        self.stop(first, Force=True)
        aws.config(stop_on_pending="accept")
        self.stop(second)
        self.assertEqual(["stopping", "stopping"], [self.state(first), self.state(second)])

    def test_one_bad_id_fails_the_whole_batch(self):
        stopped, stopping = self.launch_stopped(), self.launch()
        self.stop(stopping)
        batch = {"InstanceIds": [stopped, stopping]}
        self.assert_refused("IncorrectInstanceState", self.ec2.start_instances, **batch)
        batch = {"InstanceIds": [stopped, "i-00000000000000000"]}
        self.assert_refused("InvalidInstanceID.NotFound", self.ec2.start_instances, **batch)
        self.assertEqual("stopped", self.state(stopped))

    def test_stop_protection(self):
        by_launch, by_attribute, by_config = self.launch(DisableApiStop=True), self.launch(), self.launch()
        self.ec2.modify_instance_attribute(InstanceId=by_attribute, DisableApiStop={"Value": True})
        aws.config(instance=by_config, disable_api_stop=True)
        for node in (by_launch, by_attribute, by_config):
            response = self.assert_refused("OperationNotPermitted", self.ec2.stop_instances, InstanceIds=[node])
            self.assert_message(
                f"The instance '{node}' may not be stopped. "
                "Modify its 'disableApiStop' instance attribute and try again.",
                response,
            )
        self.ec2.modify_instance_attribute(InstanceId=by_launch, DisableApiStop={"Value": False})
        self.stop(by_launch)

    def test_one_time_spot_cannot_be_stopped(self):
        by_launch = self.launch(InstanceMarketOptions={"MarketType": "spot"})
        by_config = self.launch()
        aws.config(instance=by_config, spot=True)
        for node in (by_launch, by_config):
            self.assertEqual("spot", self.described(node)["InstanceLifecycle"])
            self.assert_refused("UnsupportedOperation", self.ec2.stop_instances, InstanceIds=[node])
        options = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "persistent"}}
        self.stop(self.launch(InstanceMarketOptions=options))


class Capacity(Ec2Case):
    def assert_no_capacity(self, *nodes):
        response = self.assert_refused(
            "InsufficientInstanceCapacity", self.ec2.start_instances, InstanceIds=list(nodes)
        )
        self.assertEqual(500, response["ResponseMetadata"]["HTTPStatusCode"])

    def test_can_be_missing_for_a_type(self):
        node, other = self.launch_stopped(), self.launch_stopped()
        self.ec2.modify_instance_attribute(InstanceId=other, InstanceType={"Value": "g6.xlarge"})
        aws.config(no_capacity_types=["g6.xlarge", "g6.2xlarge"])
        self.assert_no_capacity(other)
        self.assert_no_capacity(node, other)
        self.assertEqual(["stopped", "stopped"], [self.state(node), self.state(other)])
        self.ec2.modify_instance_attribute(InstanceId=other, InstanceType={"Value": "g5.2xlarge"})
        self.start(node, other)
        self.assertEqual(["pending", "pending"], [self.state(node), self.state(other)])

    def test_comes_back_with_an_empty_list(self):
        node = self.launch_stopped()
        aws.config(no_capacity_types=["g5.xlarge"])
        self.assert_no_capacity(node)
        aws.config(no_capacity_types=[])
        self.start(node)
        self.assertEqual("pending", self.state(node))

    def test_can_be_missing_for_one_instance(self):
        node, other = self.launch_stopped(), self.launch_stopped()
        aws.config(instance=node, no_capacity=True)
        self.assert_no_capacity(node)
        self.start(other)
        aws.config(instance=node, no_capacity=False)
        self.start(node)
        self.assertEqual(["pending", "pending"], [self.state(node), self.state(other)])

    def test_a_running_instance_needs_none(self):
        node = self.launch()
        aws.config(no_capacity_types=["g5.xlarge"])
        self.assertEqual("running", self.start(node)[0]["CurrentState"]["Name"])

    def test_types_are_a_list(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            aws.config(no_capacity_types="g6.xlarge")
        caught.exception.close()
        self.assertEqual(400, caught.exception.code)


class Disks(Ec2Case):
    def disks(self, node):
        """The node's volumes by device, looked up by their ids."""
        attached = self.described(node)["BlockDeviceMappings"]
        ids = {mapping["DeviceName"]: mapping["Ebs"]["VolumeId"] for mapping in attached}
        found = {one["VolumeId"]: one for one in self.ec2.describe_volumes(VolumeIds=list(ids.values()))["Volumes"]}
        return {device: found[volume_id] for device, volume_id in ids.items()}

    def test_are_what_run_instances_asks_for(self):
        aws.advance(60)
        fast = {"VolumeType": "gp3", "VolumeSize": 100, "Iops": 4000, "Throughput": 250}
        mappings = [
            {"DeviceName": "/dev/xvda", "Ebs": fast},
            {"DeviceName": "/dev/sdf", "Ebs": {"VolumeType": "gp3", "VolumeSize": 200}},
            {"DeviceName": "/dev/sdg", "Ebs": {"VolumeSize": 50}},
            {"DeviceName": "/dev/sdh", "Ebs": {"VolumeType": "io2", "VolumeSize": 10, "Iops": 500}},
        ]
        disks = self.disks(self.launch(BlockDeviceMappings=mappings))
        names = ("VolumeType", "Size", "Iops", "Throughput")
        seen = {device: tuple(disk.get(name) for name in names) for device, disk in disks.items()}
        expected = {
            "/dev/xvda": ("gp3", 100, 4000, 250),
            "/dev/sdf": ("gp3", 200, 3000, 125),
            "/dev/sdg": ("gp2", 50, 150, None),
            "/dev/sdh": ("io2", 10, 500, None),
        }
        self.assertEqual(expected, seen)
        self.assertEqual({START + MINUTE}, {disk["CreateTime"] for disk in disks.values()})

    def test_are_what_a_launch_template_asks_for(self):
        mapping = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeType": "gp3", "VolumeSize": 80, "Iops": 5000}}
        data = {"ImageId": "ami-0abcdef12", "BlockDeviceMappings": [mapping]}
        self.ec2.create_launch_template(LaunchTemplateName="node", LaunchTemplateData=data)
        disk = self.disks(self.launch(LaunchTemplate={"LaunchTemplateName": "node"}))["/dev/xvda"]
        self.assertEqual((80, 5000, 125), (disk["Size"], disk["Iops"], disk["Throughput"]))

    def test_stay_while_stopped(self):
        mapping = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeType": "gp3", "VolumeSize": 100}}
        node = self.launch(BlockDeviceMappings=[mapping])
        before = self.disks(node)
        self.stop(node)
        aws.advance(40)
        self.assertEqual(before, self.disks(node))

    def test_an_unknown_id_is_an_error(self):
        self.assert_refused("InvalidVolume.NotFound", self.ec2.describe_volumes, VolumeIds=["vol-0123456789abcdef0"])


class Interfaces(Ec2Case):
    def setUp(self):
        super().setUp()
        vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnet = self.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        self.group = self.ec2.create_security_group(GroupName="node", Description="node", VpcId=vpc)["GroupId"]

    def kept(self):
        return [one["NetworkInterfaceId"] for one in self.ec2.describe_network_interfaces()["NetworkInterfaces"]]

    def launched(self, **interface):
        asked = {"DeviceIndex": 0, "SubnetId": self.subnet, "Groups": [self.group]} | interface
        return self.launch(NetworkInterfaces=[asked])

    def test_goes_with_its_node(self):
        for parameters in ({"SubnetId": self.subnet, "SecurityGroupIds": [self.group]}, {}):
            node = self.launch(**parameters)
            self.assertEqual(1, len(self.kept()))
            self.ec2.terminate_instances(InstanceIds=[node])
            self.assertEqual([], self.kept())

    def test_outlives_its_node_where_it_was_said(self):
        node = self.launched(DeleteOnTermination=False)
        self.ec2.terminate_instances(InstanceIds=[node])
        self.assertEqual(1, len(self.kept()))

    def test_its_security_groups_are_the_node_s(self):
        for node in (self.launched(), self.launch(SubnetId=self.subnet, SecurityGroupIds=[self.group])):
            shown = self.described(node)
            both = [shown["SecurityGroups"], shown["NetworkInterfaces"][0]["Groups"]]
            self.assertEqual([[self.group]] * 2, [[one["GroupId"] for one in groups] for groups in both])

    def test_other_attributes_leave_the_security_groups_alone(self):
        node = self.launched()
        behaviour = {"Value": "terminate"}
        self.ec2.modify_instance_attribute(InstanceId=node, InstanceInitiatedShutdownBehavior=behaviour)
        asked = {"InstanceId": node, "Attribute": "instanceInitiatedShutdownBehavior"}
        shown = self.ec2.describe_instance_attribute(**asked)["InstanceInitiatedShutdownBehavior"]
        self.assertEqual(behaviour, shown)
        unknown = {"InstanceId": node, "EnaSupport": {"Value": True}}
        self.assert_refused("NotImplemented", self.ec2.modify_instance_attribute, **unknown)
        self.assertEqual([self.group], [one["GroupId"] for one in self.described(node)["SecurityGroups"]])


class Networks(Ec2Case):
    def test_a_vpc_goes_with_what_came_with_it(self):
        def parts():
            acls, groups = self.ec2.describe_network_acls(), self.ec2.describe_security_groups()
            return len(acls["NetworkAcls"]), len(groups["SecurityGroups"])

        before = parts()
        vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.assertNotEqual(before, parts())
        self.ec2.delete_vpc(VpcId=vpc)
        self.assertEqual(before, parts())


class Addresses(Ec2Case):
    def association(self, node):
        """PublicIpAddress and what the network interface says of it, None for nothing."""
        described = self.described(node)
        found = described["NetworkInterfaces"][0].get("Association", {})
        self.assertEqual(described.get("PublicIpAddress"), found.get("PublicIp"))
        return (found["PublicIp"], found["IpOwnerId"]) if found else None

    def give_elastic(self, node):
        address = self.ec2.allocate_address(Domain="vpc")
        self.ec2.associate_address(InstanceId=node, AllocationId=address["AllocationId"])
        return address["PublicIp"]

    def test_an_automatic_one_belongs_to_amazon_and_goes_with_a_stop(self):
        node = self.launch()
        address, owner = self.association(node)
        self.assertEqual("amazon", owner)
        self.stop(node)
        self.assertIsNone(self.association(node))
        aws.advance(40)
        self.assertIsNone(self.association(node))
        self.assertNotIn("Association", self.described(node)["NetworkInterfaces"][0])
        self.start(node)
        aws.advance(20)
        self.assertEqual("amazon", self.association(node)[1])
        self.assertNotEqual(address, self.association(node)[0])

    def test_an_elastic_one_belongs_to_the_account_and_stays(self):
        node = self.launch()
        address = self.give_elastic(node)
        self.assertFalse(address.startswith("127."))
        expected = (address, "123456789012")
        self.assertEqual(expected, self.association(node))
        self.stop(node)
        aws.advance(40)
        self.assertEqual(expected, self.association(node))
        self.start(node)
        aws.advance(20)
        self.assertEqual(expected, self.association(node))
        self.assertEqual(node, self.ec2.describe_addresses(PublicIps=[address])["Addresses"][0]["InstanceId"])

    def test_an_elastic_one_can_be_given_to_a_stopped_node(self):
        node = self.launch_stopped()
        address = self.give_elastic(node)
        self.start(node)
        aws.advance(20)
        self.assertEqual((address, "123456789012"), self.association(node))

    def test_an_automatic_one_comes_back_after_the_elastic_one(self):
        node = self.launch()
        address = self.give_elastic(node)
        self.ec2.disassociate_address(PublicIp=address)
        self.assertEqual("amazon", self.association(node)[1])
        self.assertNotEqual(address, self.association(node)[0])

    def test_an_elastic_one_outlives_its_node(self):
        node = self.launch()
        address = self.give_elastic(node)
        self.ec2.terminate_instances(InstanceIds=[node])
        self.assertIsNone(self.association(node))
        found = self.ec2.describe_addresses(PublicIps=[address])["Addresses"][0]
        self.assertFalse(found.get("AssociationId"))


class DescribeInstances(Ec2Case):
    def ids(self, **parameters):
        pages = list(self.ec2.get_paginator("describe_instances").paginate(**parameters))
        found = [node["InstanceId"] for page in pages for held in page["Reservations"] for node in held["Instances"]]
        return len(pages), found

    def test_pages(self):
        nodes = [self.launch() for _ in range(7)]
        self.assertEqual((2, nodes), self.ids(MaxResults=5))
        self.assertEqual((1, nodes), self.ids(MaxResults=7))

    def test_a_page_token_outlives_a_state_change(self):
        nodes = [self.launch() for _ in range(4)]
        running = [{"Name": "instance-state-name", "Values": ["running"]}]
        first = self.ec2.describe_instances(MaxResults=2, Filters=running)
        self.stop(nodes[1])
        second = self.ec2.describe_instances(MaxResults=2, Filters=running, NextToken=first["NextToken"])
        self.assertEqual(nodes[2:], [held["Instances"][0]["InstanceId"] for held in second["Reservations"]])

    def test_the_first_page_can_be_empty(self):
        node = self.launch()
        aws.config(empty_first_page=True)
        first = self.ec2.describe_instances()
        self.assertEqual([], first["Reservations"])
        self.assertTrue(first["NextToken"])
        self.assertEqual((2, [node]), self.ids())

    def test_filters_by_tag_and_state(self):
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "pool", "Value": "gpu"}]}]
        tagged, _other = self.launch(TagSpecifications=tags), self.launch()
        filters = [{"Name": "tag:pool", "Values": ["gpu"]}, {"Name": "instance-state-name", "Values": ["running"]}]
        self.assertEqual((1, [tagged]), self.ids(Filters=filters))
        reason = [{"Name": "state-reason-code", "Values": ["Client.UserInitiatedShutdown"]}]
        self.assertEqual((1, []), self.ids(Filters=reason))

    def test_an_unknown_id_is_an_error(self):
        self.assert_refused(
            "InvalidInstanceID.NotFound", self.ec2.describe_instances, InstanceIds=["i-00000000000000000"]
        )


class Events(Ec2Case):
    def test_each_transition_is_an_event_in_time_order(self):
        node = self.launch(running=False)
        aws.advance(60)
        self.stop(node)
        aws.advance(60)
        events = aws.admin("DELETE", "events")
        seen = [(event["detail"]["state"], event["time"][11:]) for event in events]
        expected = [
            ("pending", "00:00:00Z"),
            ("running", "00:00:20Z"),
            ("stopping", "00:01:00Z"),
            ("stopped", "00:01:40Z"),
        ]
        self.assertEqual(expected, seen)
        self.assertEqual([], aws.admin("GET", "events"))

    def test_has_the_shape_of_eventbridge(self):
        node = self.launch(running=False)
        event = aws.admin("GET", "events")[0]
        self.assertEqual(36, len(event.pop("id")))
        expected = {
            "version": "0",
            "detail-type": "EC2 Instance State-change Notification",
            "source": "aws.ec2",
            "account": "123456789012",
            "time": "2026-11-30T00:00:00Z",
            "region": REGION,
            "resources": [f"arn:aws:ec2:{REGION}:123456789012:instance/{node}"],
            "detail": {"instance-id": node, "state": "pending"},
        }
        self.assertEqual(expected, event)

    def test_moving_the_clock_answers_what_it_caused(self):
        slow, fast = self.launch(running=False), self.launch(running=False)
        aws.config(stopping_seconds=30)
        aws.advance(20)
        aws.config(instance=slow, stopping_seconds=50)
        self.stop(slow, fast)
        aws.admin("DELETE", "events")
        moved = aws.advance(60, drain=True)
        self.assertEqual([fast, slow], [event["detail"]["instance-id"] for event in moved["events"]])
        self.assertEqual([], aws.admin("GET", "events"))


def query(name="m", metric="RequestCount", namespace="AWS/ApplicationELB", dimensions=(), stat="Sum", period=60):
    named = {
        "Namespace": namespace,
        "MetricName": metric,
        "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions],
    }
    return {"Id": name, "MetricStat": {"Metric": named, "Period": period, "Stat": stat}}


class Metrics(Case):
    def setUp(self):
        super().setUp()
        self.cloudwatch = aws.client("cloudwatch")

    def put(self, value, minute=0, metric="RequestCount", dimensions=(), **more):
        datum = {
            "MetricName": metric,
            "Timestamp": START + minute * MINUTE,
            "Dimensions": [{"Name": key, "Value": one} for key, one in dimensions],
        }
        self.cloudwatch.put_metric_data(Namespace="AWS/ApplicationELB", MetricData=[datum | {"Value": value} | more])

    def get(self, *queries, first=0, last=60, **more):
        queries = list(queries) or [query()]
        return self.cloudwatch.get_metric_data(
            MetricDataQueries=queries, StartTime=START + first * MINUTE, EndTime=START + last * MINUTE, **more
        )

    def values(self, *queries, **more):
        return [result["Values"] for result in self.get(*queries, **more)["MetricDataResults"]]

    def test_start_is_inclusive_and_end_exclusive(self):
        for minute in (4, 5, 6, 7):
            self.put(minute, minute)
        self.assertEqual([[6, 5]], self.values(first=5, last=7))
        result = self.get(first=5, last=7, ScanBy="TimestampAscending")["MetricDataResults"][0]
        self.assertEqual([START + 5 * MINUTE, START + 6 * MINUTE], result["Timestamps"])

    def test_statistics(self):
        for value in (1.0, 5.0, 3.0):
            self.put(value)
        stats = ("Sum", "Maximum", "Minimum", "SampleCount", "Average", "p50")
        queries = [query(f"q{index}", stat=stat) for index, stat in enumerate(stats)]
        self.assertEqual([[9], [5], [1], [3], [3], [3]], self.values(*queries))

    def test_statistic_sets_and_value_lists(self):
        self.put(0, Value=0)
        data = {"MetricName": "RequestCount", "Timestamp": START, "Values": [2.0, 4.0], "Counts": [3.0, 1.0]}
        self.cloudwatch.put_metric_data(Namespace="AWS/ApplicationELB", MetricData=[data])
        stats = {"SampleCount": 2.0, "Sum": 9.0, "Minimum": 1.0, "Maximum": 8.0}
        data = {"MetricName": "RequestCount", "Timestamp": START, "StatisticValues": stats}
        self.cloudwatch.put_metric_data(Namespace="AWS/ApplicationELB", MetricData=[data])
        queries = [query("a"), query("b", stat="SampleCount"), query("c", stat="Maximum")]
        self.assertEqual([[19], [7], [8]], self.values(*queries))

    def test_longer_periods_gather_minutes(self):
        for minute in range(10):
            self.put(1, minute)
        self.assertEqual([[5, 5]], self.values(query(period=300)))

    def test_dimensions_match_exactly(self):
        self.put(1, dimensions=[("LoadBalancer", "app/a"), ("TargetGroup", "t")])
        self.put(2, dimensions=[("LoadBalancer", "app/a")])
        one = query("one", dimensions=[("LoadBalancer", "app/a")])
        both = query("both", dimensions=[("TargetGroup", "t"), ("LoadBalancer", "app/a")])
        self.assertEqual([[2], [1], []], self.values(one, both, query("none")))

    def test_no_points_is_complete_and_empty(self):
        result = self.get()["MetricDataResults"][0]
        self.assertEqual(([], [], "Complete"), (result["Values"], result["Timestamps"], result["StatusCode"]))

    def test_too_fine_a_period_for_old_data_is_empty(self):
        self.put(1)
        aws.advance(16 * 86400)
        self.assertEqual([[], [1]], self.values(query("minute"), query("five", period=300)))

    def test_pages_by_max_datapoints(self):
        for minute in range(5):
            self.put(1, minute)
        both = [query("a"), query("b", stat="SampleCount")]
        first = self.get(*both, MaxDatapoints=3)
        self.assertEqual(["PartialData", "PartialData"], [one["StatusCode"] for one in first["MetricDataResults"]])
        count, page = sum(len(one["Values"]) for one in first["MetricDataResults"]), first
        while "NextToken" in page:
            page = self.get(*both, MaxDatapoints=3, NextToken=page["NextToken"])
            count += sum(len(one["Values"]) for one in page["MetricDataResults"])
        self.assertEqual(10, count)
        self.assertEqual(["Complete", "Complete"], [one["StatusCode"] for one in page["MetricDataResults"]])

    def test_page_size_can_be_forced(self):
        for minute in range(5):
            self.put(1, minute)
        aws.config(datapoints_per_page=2)
        self.assertEqual("2", self.get()["NextToken"])

    def test_status_code_per_query_can_be_overridden(self):
        for minute in range(4):
            self.put(1, minute)
        aws.fault(service="cloudwatch", action="GetMetricData", body={"a": {"status_code": "InternalError"}})
        results = self.get(query("a"), query("b"))["MetricDataResults"]
        seen = [(one["StatusCode"], one["Values"]) for one in results]
        self.assertEqual([("InternalError", []), ("Complete", [1, 1, 1, 1])], seen)

    def test_partial_data_and_then_the_rest(self):
        for minute in range(4):
            self.put(minute, minute)
        aws.fault(action="GetMetricData", body={"status_code": "PartialData"})
        first = self.get()
        self.assertEqual(("PartialData", [3, 2]), status_and_values(first))
        self.assertEqual(("Complete", [1, 0]), status_and_values(self.get(NextToken=first["NextToken"])))
        aws.fault(action="GetMetricData", body={"status_code": "PartialData"})
        nothing = self.get(query(metric="Absent"))
        self.assertEqual(("PartialData", []), status_and_values(nothing))
        rest = self.get(query(metric="Absent"), NextToken=nothing["NextToken"])
        self.assertEqual(("Complete", []), status_and_values(rest))

    def test_lists_metrics(self):
        self.put(1, dimensions=[("LoadBalancer", "app/a")])
        self.put(1, metric="ActiveConnectionCount", dimensions=[("LoadBalancer", "app/a")])
        found = self.cloudwatch.list_metrics(Namespace="AWS/ApplicationELB", MetricName="RequestCount")["Metrics"]
        dimensions = [{"Name": "LoadBalancer", "Value": "app/a"}]
        expected = {"Namespace": "AWS/ApplicationELB", "MetricName": "RequestCount", "Dimensions": dimensions}
        self.assertEqual([expected], found)
        self.assertEqual([], self.cloudwatch.list_metrics(Dimensions=[{"Name": "ApiId"}])["Metrics"])

    def test_metric_statistics(self):
        self.put(7)
        found = self.cloudwatch.get_metric_statistics(
            Namespace="AWS/ApplicationELB",
            MetricName="RequestCount",
            StartTime=START,
            EndTime=START + MINUTE,
            Period=60,
            Statistics=["Sum", "SampleCount"],
        )["Datapoints"]
        self.assertEqual([(7, 1, START)], [(one["Sum"], one["SampleCount"], one["Timestamp"]) for one in found])

    def test_metric_math_says_that_it_is_missing(self):
        self.assert_refused(
            "NotImplemented",
            self.cloudwatch.get_metric_data,
            MetricDataQueries=[{"Id": "e", "Expression": "SUM(METRICS())"}],
            StartTime=START,
            EndTime=START + MINUTE,
        )

    def test_is_fast_with_many_points(self):
        data = [
            {"MetricName": f"m{index % 10}", "Timestamp": START + (index // 10) * MINUTE, "Value": 1.0}
            for index in range(10_000)
        ]
        aws.advance(1000 * 60)
        for begin in range(0, 10_000, 1000):
            self.cloudwatch.put_metric_data(Namespace="AWS/Many", MetricData=data[begin : begin + 1000])
        queries = [query(f"q{index}", metric=f"m{index}", namespace="AWS/Many") for index in range(4)]
        began = time.perf_counter()
        for _ in range(50):
            cbor_call("GetMetricData", MetricDataQueries=queries, StartTime=START, EndTime=START + 60 * MINUTE)
        self.assertLess((time.perf_counter() - began) / 50, 0.02)


def status_and_values(answer):
    result = answer["MetricDataResults"][0]
    return result["StatusCode"], result["Values"]


class StatusCheckMetrics(Ec2Case):
    def points(self, node, stat="SampleCount", period=60, metric="StatusCheckFailed", last=120):
        asked = query("m", metric, "AWS/EC2", [("InstanceId", node)], stat, period)
        return aws.client("cloudwatch").get_metric_data(
            MetricDataQueries=[asked], StartTime=START, EndTime=START + last * MINUTE, ScanBy="TimestampAscending"
        )["MetricDataResults"][0]

    def test_one_point_for_each_running_minute_with_passing_checks(self):
        node = self.launch()
        aws.advance(600)
        self.stop(node)
        aws.advance(600)
        found = self.points(node)
        # Running from 00:00:20 and checked from 00:01:00 until the stop at 00:10:20.
        self.assertEqual([START + minute * MINUTE for minute in range(1, 11)], found["Timestamps"])
        self.assertEqual([1.0] * 10, found["Values"])
        self.assertEqual([10.0], self.points(node, period=3600)["Values"])
        self.assertEqual({0.0}, set(self.points(node, stat="Maximum", metric="StatusCheckFailed_System")["Values"]))

    def test_a_stopped_node_has_none(self):
        node = self.launch()
        self.stop(node)
        aws.advance(3600)
        self.assertEqual([], self.points(node)["Values"])

    def test_begins_again_after_a_start(self):
        node = self.launch_stopped()
        self.start(node)
        aws.advance(180)
        self.assertEqual([START + 2 * MINUTE, START + 3 * MINUTE, START + 4 * MINUTE], self.points(node)["Timestamps"])

    def in_fives(self, node, days=2):
        """Minutes after START of each five-minute period with points, and its count."""
        found = self.points(node, period=300, last=days * 1440)
        return {(at - START) // MINUTE: count for at, count in zip(found["Timestamps"], found["Values"], strict=True)}

    def test_five_minute_counts_over_two_days(self):
        node = self.launch(running=False)
        aws.advance(10 * 3600 + 120)  # checked from 00:01, stopped at 10:02
        self.stop(node)
        aws.advance(20 * 3600)
        self.start(node)  # at 30:02, checked from 30:03
        aws.advance(3600)
        self.ec2.terminate_instances(InstanceIds=[node])  # at 31:02
        first = {0: 4.0} | {minute: 5.0 for minute in range(5, 600, 5)} | {600: 2.0}
        second = {1800: 2.0} | {minute: 5.0 for minute in range(1805, 1860, 5)} | {1860: 2.0}
        self.assertEqual(first | second, self.in_fives(node))
        aws.advance(3600)
        self.assertEqual("terminated", self.state(node))
        self.assertEqual(first | second, self.in_fives(node))

    def test_a_start_that_falls_back_has_no_points(self):
        node = self.launch_stopped()
        aws.config(instance=node, falls_back={"after_seconds": 5})
        self.start(node)
        aws.advance(3600)
        self.assertEqual({}, self.in_fives(node))

    def test_two_days_of_ten_nodes_are_fast(self):
        nodes = [self.launch(running=False) for _ in range(10)]
        aws.advance(2 * 86400)
        named = [("StatusCheckFailed", "AWS/EC2", [("InstanceId", node)], "SampleCount", 300) for node in nodes]
        queries = [query(f"q{index}", *parts) for index, parts in enumerate(named)]
        began = time.perf_counter()
        asked = {"MetricDataQueries": queries, "StartTime": START, "EndTime": START + 2880 * MINUTE}
        results = cbor_call("GetMetricData", **asked)[2]["MetricDataResults"]
        self.assertLess(time.perf_counter() - began, 1)
        # Each minute but the one before the first check.
        self.assertEqual([2879.0] * 10, [sum(one["Values"]) for one in results])


def cbor_call(action, *, zipped=False, key="test", **parameters):
    """A CloudWatch call as the Rust SDK makes it: (status, headers, answer or decoded error)."""
    operation = cbor.cloudwatch_operation(action)
    request = botocore.serialize.RpcV2CBORSerializer().serialize_to_request(parameters, operation)
    headers = dict(request["headers"]) | {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/20261130/{REGION}/monitoring/aws4_request, Signature=0"
    }
    body = bytes(request["body"])
    if zipped:
        headers["Content-Encoding"], body = "gzip", gzip.compress(body)
    connection = http.client.HTTPConnection("127.0.0.1", aws.port)
    path = f"/service/GraniteServiceVersion20100801/operation/{action}"
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    raw = answer.read()
    connection.close()
    if answer.status >= 300:
        return answer.status, answer.headers, cbor.decode(raw)
    parts = {"body": raw, "headers": answer.headers, "status_code": answer.status}
    return answer.status, answer.headers, botocore.parsers.RpcV2CBORParser().parse(parts, operation.output_shape)


class Cbor(Case):
    def test_metrics_there_and_back(self):
        datum = {"MetricName": "RequestCount", "Timestamp": START, "Value": 2.5}
        status, headers, _ = cbor_call("PutMetricData", zipped=True, Namespace="AWS/ApplicationELB", MetricData=[datum])
        self.assertEqual((200, "rpc-v2-cbor"), (status, headers["smithy-protocol"]))
        _, _, answer = cbor_call("GetMetricData", MetricDataQueries=[query()], StartTime=START, EndTime=START + MINUTE)
        result = answer["MetricDataResults"][0]
        self.assertEqual(([2.5], [START], "Complete"), (result["Values"], result["Timestamps"], result["StatusCode"]))
        _, _, answer = cbor_call("ListMetrics", Namespace="AWS/ApplicationELB")
        self.assertEqual("RequestCount", answer["Metrics"][0]["MetricName"])

    def test_decodes_maps_and_lists_of_no_stated_length(self):
        # As the Rust SDK writes them: {"a": [1.5, time 1.0]} closed by break bytes, times as doubles.
        time_one = b"\xc1\xfb\x3f\xf0" + bytes(6)
        body = b"\xbf\x61a\x9f\xfb\x3f\xf8" + bytes(6) + time_one + b"\xff\xff"
        value = cbor.decode(body)["a"]
        self.assertEqual([1.5, 1.0], [value[0], value[1].timestamp()])

    def test_other_calls_reach_moto(self):
        alarm = {"AlarmName": "up", "MetricName": "m", "Namespace": "n", "Period": 60, "EvaluationPeriods": 1}
        alarm |= {"Threshold": 1.0, "ComparisonOperator": "GreaterThanThreshold", "Statistic": "Sum"}
        self.assertEqual(200, cbor_call("PutMetricAlarm", **alarm)[0])
        _, _, answer = cbor_call("DescribeAlarms")
        self.assertEqual(["up"], [found["AlarmName"] for found in answer["MetricAlarms"]])

    def test_errors_carry_their_code(self):
        aws.fault(service="cloudwatch", code="Throttling", status=400, message="Rate exceeded")
        status, headers, error = cbor_call("ListMetrics")
        self.assertEqual((400, "Throttling;Sender"), (status, headers["x-amzn-query-error"]))
        self.assertEqual({"__type": "Throttling", "message": "Rate exceeded"}, error)
        status, _, error = cbor_call("ListMetrics", NextToken="nonsense")
        self.assertEqual((400, "InvalidNextToken"), (status, error["__type"]))

    def test_what_moto_lacks_is_501(self):
        status, _, error = cbor_call("ListMetricStreams")
        self.assertEqual((501, "NotImplemented"), (status, error["__type"]))


class Faults(Ec2Case):
    def test_a_throttle_is_spent_after_its_times(self):
        node = self.launch_stopped()
        aws.fault(service="ec2", action="StartInstances", code="RequestLimitExceeded", status=503, times=2)
        for _ in range(2):
            response = self.assert_refused("RequestLimitExceeded", self.ec2.start_instances, InstanceIds=[node])
            self.assertEqual(503, response["ResponseMetadata"]["HTTPStatusCode"])
        self.start(node)
        self.assertEqual([], aws.admin("GET", "faults"))

    def test_match_and_skip_choose_the_call(self):
        first, second = self.launch(), self.launch()
        aws.fault(action="StopInstances", code="InternalError", match=second, skip=1)
        self.stop(first)
        self.stop(second)
        self.assert_refused("InternalError", self.ec2.stop_instances, InstanceIds=[second])

    def test_capacity_and_delete(self):
        node = self.launch_stopped()
        message = "We currently do not have sufficient capacity."
        aws.fault(action="StartInstances", code="InsufficientInstanceCapacity", message=message, times=-1)
        response = self.assert_refused("InsufficientInstanceCapacity", self.ec2.start_instances, InstanceIds=[node])
        self.assertEqual(message, response["Error"]["Message"])
        self.assertEqual(1, len(aws.admin("GET", "faults")))
        self.assertEqual([], aws.admin("DELETE", "faults"))
        self.start(node)

    def test_a_delay_holds_up_only_its_call(self):
        node = self.launch()
        aws.fault(action="StopInstances", delay_ms=300)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            began = time.perf_counter()
            slow = pool.submit(self.stop, node)
            time.sleep(0.05)
            self.described(node)
            self.assertLess(time.perf_counter() - began, 0.25)
            self.assertEqual("stopping", slow.result()[0]["CurrentState"]["Name"])
        self.assertGreater(time.perf_counter() - began, 0.3)

    def test_did_it_and_lost_the_answer(self):
        node = self.launch_stopped()
        aws.fault(action="StartInstances", after=True)
        with self.assertRaises(botocore.exceptions.HTTPClientError):
            self.start(node)
        self.assertEqual("pending", self.state(node))
        lost = [call for call in aws.admin("GET", "calls") if call["action"] == "StartInstances"]
        self.assertEqual([0], [call["status"] for call in lost])

    def test_did_it_and_answered_an_error(self):
        node = self.launch_stopped()
        aws.fault(action="StartInstances", after=True, code="InternalError", status=500)
        self.assert_refused("InternalError", self.ec2.start_instances, InstanceIds=[node])
        self.assertEqual("pending", self.state(node))

    def test_an_sdk_retries_through_a_lost_answer(self):
        node = self.launch_stopped()
        aws.fault(action="StartInstances", after=True)
        change = aws.client("ec2", retries=1).start_instances(InstanceIds=[node])["StartingInstances"][0]
        self.assertEqual("pending", change["PreviousState"]["Name"])

    def test_describe_can_be_stale(self):
        node = self.launch_stopped()
        aws.advance(20)
        self.start(node)
        aws.advance(20)
        aws.fault(action="DescribeInstances", stale_ms=25_000)
        stale = self.described(node)
        self.assertEqual(("stopped", START), (stale["State"]["Name"], stale["LaunchTime"]))
        self.assertEqual("User initiated (2026-11-30 00:00:20 GMT)", stale["StateTransitionReason"])
        self.assertEqual("Client.UserInitiatedShutdown", stale["StateReason"]["Code"])
        present = self.described(node)
        restarted = START + datetime.timedelta(seconds=80)
        self.assertEqual(("running", restarted), (present["State"]["Name"], present["LaunchTime"]))

    def test_a_stale_answer_shows_a_terminated_node_as_it_was(self):
        node = self.launch()
        aws.advance(60)
        self.ec2.terminate_instances(InstanceIds=[node])
        aws.advance(10)
        aws.fault(action="DescribeInstances", stale_ms=15_000)
        self.assertEqual(["running", "shutting-down"], [self.state(node), self.state(node)])

    def test_a_misspelt_fault_is_refused(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            aws.fault(acton="StopInstances")
        caught.exception.close()
        self.assertEqual(400, caught.exception.code)

    def test_faults_fit_every_protocol(self):
        cases = {
            "sns": lambda client: client.list_topics(),
            "sqs": lambda client: client.list_queues(),
            "dynamodb": lambda client: client.list_tables(),
            "sts": lambda client: client.get_caller_identity(),
            "cloudwatch": lambda client: client.list_metrics(),
        }
        for service, call in cases.items():
            with self.subTest(service):
                aws.fault(service=service, code="Throttled", status=400)
                self.assert_refused("Throttled", call, client=aws.client(service))


class Calls(Ec2Case):
    def test_are_logged_with_virtual_time_and_target(self):
        node = self.launch()
        aws.admin("DELETE", "calls")
        self.stop(node)
        self.assert_refused("IncorrectInstanceState", self.ec2.start_instances, InstanceIds=[node])
        logged = {"at_ms": START_MS + 20_000, "service": "ec2", "target": node, "key": "test"}
        expected = [
            logged | {"action": "StopInstances", "status": 200},
            logged | {"action": "StartInstances", "status": 400},
        ]
        self.assertEqual(expected, aws.admin("GET", "calls"))

    def test_a_missing_action_is_501(self):
        response = self.assert_refused("NotImplemented", self.ec2.describe_ipam_pools)
        self.assertEqual(501, response["ResponseMetadata"]["HTTPStatusCode"])


def make_table(dynamodb):
    names = ("pk", "sk")
    return dynamodb.create_table(
        TableName="state",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    )["TableDescription"]


class DynamoDb(Case):
    KEY = {"pk": {"S": "node#i-1"}, "sk": {"S": "state"}}

    def setUp(self):
        super().setUp()
        self.dynamodb = aws.client("dynamodb")
        make_table(self.dynamodb)

    def update(self, expression, key=None, client=None, **more):
        client = client or self.dynamodb
        return client.update_item(TableName="state", Key=key or self.KEY, UpdateExpression=expression, **more)

    def test_two_hundred_counts_at_once_are_two_hundred(self):
        def count(_):
            values = {":zero": {"N": "0"}, ":one": {"N": "1"}}
            self.update("SET demand = if_not_exists(demand, :zero) + :one", ExpressionAttributeValues=values)

        with concurrent.futures.ThreadPoolExecutor(max_workers=50) as pool:
            list(pool.map(count, range(200)))
        item = self.dynamodb.get_item(TableName="state", Key=self.KEY, ConsistentRead=True)["Item"]
        self.assertEqual({"N": "200"}, item["demand"])

    def test_update_returns_the_new_item(self):
        values = {":one": {"N": "1"}}
        answer = self.update("ADD n :one", ExpressionAttributeValues=values, ReturnValues="ALL_NEW")
        self.assertEqual(self.KEY | {"n": {"N": "1"}}, answer["Attributes"])

    def test_a_failed_condition_returns_the_old_item(self):
        self.update("SET generation = :g", ExpressionAttributeValues={":g": {"N": "7"}})
        response = self.assert_refused(
            "ConditionalCheckFailedException",
            self.update,
            expression="SET generation = :new",
            ConditionExpression="generation = :old",
            ExpressionAttributeValues={":new": {"N": "9"}, ":old": {"N": "8"}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
        self.assertEqual(self.KEY | {"generation": {"N": "7"}}, response["Item"])

    def test_a_failed_put_and_delete_return_the_old_item(self):
        self.update("SET n = :n", ExpressionAttributeValues={":n": {"N": "1"}})
        condition = {
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        expected = self.KEY | {"n": {"N": "1"}}
        refused = "ConditionalCheckFailedException"
        response = self.assert_refused(refused, self.dynamodb.put_item, TableName="state", Item=self.KEY, **condition)
        self.assertEqual(expected, response["Item"])
        response = self.assert_refused(refused, self.dynamodb.delete_item, TableName="state", Key=self.KEY, **condition)
        self.assertEqual(expected, response["Item"])

    def test_a_condition_on_an_absent_item_fails_without_making_it(self):
        self.assert_refused(
            "ConditionalCheckFailedException",
            self.update,
            expression="SET n = :n",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":n": {"N": "1"}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
        self.assertNotIn("Item", self.dynamodb.get_item(TableName="state", Key=self.KEY))

    def test_attribute_names_may_hold_a_hash_sign(self):
        names, values = {"#lease": "lease#i-0abc"}, {":until": {"N": "5"}}
        for _ in range(2):
            answer = self.update(
                "SET #lease = if_not_exists(#lease, :until) REMOVE absent",
                ConditionExpression="attribute_not_exists(#lease) OR #lease = :until",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
            )
        self.assertEqual({"N": "5"}, answer["Attributes"]["lease#i-0abc"])

    def test_one_of_twenty_claims_wins(self):
        def claim(number):
            try:
                self.update(
                    "SET holder = :me",
                    ConditionExpression="attribute_not_exists(holder)",
                    ExpressionAttributeValues={":me": {"N": str(number)}},
                )
            except botocore.exceptions.ClientError:
                return False
            return True

        with concurrent.futures.ThreadPoolExecutor(max_workers=20) as pool:
            self.assertEqual(1, sum(pool.map(claim, range(20))))

    def test_batch_get_and_query(self):
        keys = [{"pk": {"S": "p"}, "sk": {"S": f"s#{number}"}} for number in range(3)]
        for key in keys:
            self.dynamodb.put_item(TableName="state", Item=key)
        wanted = {"state": {"Keys": [*keys, self.KEY], "ConsistentRead": True}}
        answer = self.dynamodb.batch_get_item(RequestItems=wanted)
        self.assertCountEqual(keys, answer["Responses"]["state"])
        self.assertEqual({}, answer["UnprocessedKeys"])
        found = self.dynamodb.query(
            TableName="state",
            KeyConditionExpression="pk = :p AND begins_with(sk, :s)",
            ExpressionAttributeValues={":p": {"S": "p"}, ":s": {"S": "s#"}},
            ConsistentRead=True,
        )["Items"]
        self.assertEqual(keys, found)

    def test_transactions_are_all_or_nothing(self):
        items = [
            {"Put": {"TableName": "state", "Item": self.KEY}},
            {
                "ConditionCheck": {
                    "TableName": "state",
                    "Key": {"pk": {"S": "absent"}, "sk": {"S": "x"}},
                    "ConditionExpression": "attribute_exists(pk)",
                }
            },
        ]
        self.assert_refused(
            "TransactionCanceledException", self.dynamodb.transact_write_items, TransactItems=items
        )
        self.assertNotIn("Item", self.dynamodb.get_item(TableName="state", Key=self.KEY))


class Messages(Case):
    def test_published_messages_can_be_read(self):
        sns = aws.client("sns")
        topic = sns.create_topic(Name="alerts")["TopicArn"]
        aws.advance(5)
        attributes = {"node": {"DataType": "String", "StringValue": "i-1"}}
        sns.publish(TopicArn=topic, Subject="Up", Message="20 h", MessageAttributes=attributes)
        expected = {"topic": topic, "subject": "Up", "message": "20 h", "attributes": {"node": "i-1"}}
        self.assertEqual([expected | {"at_ms": START_MS + 5000}], aws.admin("DELETE", "published"))
        self.assertEqual([], aws.admin("GET", "published"))

    def test_a_topic_feeds_a_queue_and_a_long_poll_returns_at_once(self):
        sns, sqs = aws.client("sns"), aws.client("sqs")
        topic = sns.create_topic(Name="alerts")["TopicArn"]
        queue = sqs.create_queue(QueueName="inbox")["QueueUrl"]
        began = time.perf_counter()
        self.assertNotIn("Messages", sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20))
        self.assertLess(time.perf_counter() - began, 2)
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        sns.publish(TopicArn=topic, Message="hello")
        message = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"][0]
        self.assertEqual("hello", json.loads(message["Body"])["Message"])

    def test_an_account_id_is_known(self):
        self.assertEqual("123456789012", aws.client("sts").get_caller_identity()["Account"])


class Reset(Ec2Case):
    def test_clears_everything(self):
        self.launch()
        make_table(aws.client("dynamodb"))
        aws.client("cloudwatch").put_metric_data(Namespace="n", MetricData=[{"MetricName": "m", "Value": 1.0}])
        aws.fault(action="Nothing", code="X")
        aws.config(pending_seconds=1)
        aws.admin("POST", "reset", {})
        self.assertEqual([], aws.admin("GET", "events"))
        self.assertEqual([], aws.admin("GET", "calls"))
        self.assertEqual([], aws.admin("GET", "faults"))
        self.assertEqual(20, aws.admin("GET", "config")["pending_seconds"])
        self.assertEqual({"now_ms": START_MS}, aws.admin("GET", "clock"))
        self.assertEqual([], self.ec2.describe_instances()["Reservations"])
        self.assertEqual([], aws.client("dynamodb").list_tables()["TableNames"])
        self.assertEqual([], aws.client("cloudwatch").list_metrics()["Metrics"])


class Process(unittest.TestCase):
    def test_keeps_connections_open(self):
        connection = http.client.HTTPConnection("127.0.0.1", aws.port)
        connection.connect()
        first = connection.sock
        for _ in range(3):
            connection.request("GET", "/local-aws/clock")
            connection.getresponse().read()
            self.assertIs(first, connection.sock)
        connection.close()

    def test_ends_with_its_standard_input(self):
        self.assertEqual(0, LocalAws().close())

    def test_knows_aws_s_own_policies_when_asked(self):
        with_policies = LocalAws("--managed-policies")
        self.addCleanup(with_policies.close)
        arn = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
        shown = with_policies.client("iam").get_policy(PolicyArn=arn)["Policy"]
        self.assertEqual("AmazonSSMManagedInstanceCore", shown["PolicyName"])
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            aws.client("iam").get_policy(PolicyArn=arn)
        self.assertEqual("NoSuchEntity", caught.exception.response["Error"]["Code"])

    def test_refuses_other_packages_than_the_pinned_ones(self):
        # -E ignores PYTHONPATH and -S the system's packages: nothing is left.
        command = [sys.executable, "-E", "-S", str(HERE / "launcher.py")]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(1, refused.returncode)
        self.assertIn("moto is missing", refused.stderr)


if __name__ == "__main__":
    unittest.main()
