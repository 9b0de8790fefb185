"""Makes moto's EC2 ask Ec2Life: the methods of moto that are replaced, and nothing else."""

import copy
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError, OperationDisableApiStopNotPermitted, OperationNotPermitted4
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.responses.instances import InstanceResponse

import ec2_attached
from ec2_life import Ec2Life, incorrect_state

FIRST_PAGE_TOKEN = "local-aws-after-empty-page"

# DescribeInstances without MaxResults; AWS caps a page at 1000.
LARGEST_PAGE = 1000


def install(life: Ec2Life) -> None:
    _replace_run(life)
    _replace_start_and_stop(life)
    _replace_terminate(life)
    _replace_reboot()
    _replace_describe_instances(life)
    _replace_status_checks(life)
    _replace_modify_attribute()
    _replace_delete_vpc()
    ec2_attached.install()


def _replace_run(life: Ec2Life) -> None:
    moto_run = InstanceBackend.run_instances
    moto_respond = InstanceResponse.run_instances

    def run_instances(self: Any, *args: Any, **kwargs: Any) -> Any:
        reservation = moto_run(self, *args, **kwargs)
        for instance in reservation.instances:
            # RunInstances asks for a one-time request unless it says "persistent".
            life.adopt(instance, one_time_spot=instance.lifecycle == "spot")
        return reservation

    def respond(self: Any) -> ActionResult:
        result = moto_respond(self)
        if self._get_param("InstanceMarketOptions.SpotOptions.SpotInstanceType") == "persistent":
            for instance in result.result.instances:
                life.lives[instance.id].one_time_spot = False
        return result

    InstanceBackend.run_instances = run_instances
    InstanceResponse.run_instances = respond


def _replace_start_and_stop(life: Ec2Life) -> None:
    def start(self: Any) -> ActionResult:
        self.error_on_dryrun()
        return _changes("StartingInstances", life.start(_named_instances(self)))

    def stop(self: Any) -> ActionResult:
        self.error_on_dryrun()
        force = self._get_bool_param("Force", False)
        return _changes("StoppingInstances", life.stop(_named_instances(self), force))

    InstanceResponse.start_instances = start
    InstanceResponse.stop_instances = stop


def _named_instances(response: Any) -> list[Instance]:
    return response.ec2_backend.get_multi_instances_by_id(response._get_param("InstanceIds", []))


def _changes(key: str, changed: list[tuple[Instance, Any]]) -> ActionResult:
    """moto names a fixed new state; a call that changed nothing must say so."""
    return ActionResult(
        {
            key: [
                {"InstanceId": instance.id, "CurrentState": instance._state, "PreviousState": previous}
                for instance, previous in changed
            ]
        }
    )


def _replace_terminate(life: Ec2Life) -> None:
    def terminate(self: Any) -> ActionResult:
        self.error_on_dryrun()
        instances = _named_instances(self)
        for instance in instances:
            if instance.disable_api_termination is True:
                raise OperationNotPermitted4(instance.id)
            if instance.disable_api_stop is True:  # stop protection also blocks terminate
                raise OperationDisableApiStopNotPermitted(instance.id)
        return _changes("TerminatingInstances", life.terminate(instances, _tear_down))

    InstanceResponse.terminate_instances = terminate


def _tear_down(instance: Instance) -> None:
    # moto writes "terminated" into the state, which the history of the instance shows to stale calls.
    instance._state = copy.copy(instance._state)
    ec2_attached.free_elastic_addresses(instance)
    instance.terminate()


def _replace_reboot() -> None:
    def reboot(self: Instance) -> None:
        if self._state.name != "running":
            raise incorrect_state(f"The instance '{self.id}' is not in a state from which it can be rebooted.")

    Instance.reboot = reboot


def _replace_describe_instances(life: Ec2Life) -> None:
    def describe(self: Any) -> ActionResult:
        self.error_on_dryrun()
        instance_ids = self._get_param("InstanceIds", [])
        filters = self._filters_from_querystring()
        if instance_ids:
            if self._get_param("MaxResults"):
                raise EC2ClientError(
                    "InvalidParameterCombination",
                    "The parameter instancesSet cannot be used with the parameter maxResults",
                )
            found = self.ec2_backend.get_reservations_by_instance_ids(instance_ids, filters=filters)
            return ActionResult({"Reservations": found})
        token = self._get_param("NextToken")
        if life.config.values["empty_first_page"] and not token:
            return ActionResult({"Reservations": [], "NextToken": FIRST_PAGE_TOKEN})
        page_size = int(self._get_param("MaxResults", LARGEST_PAGE))
        return ActionResult(_page(self.ec2_backend, filters, token, page_size))

    InstanceResponse.describe_instances = describe


def _page(backend: Any, filters: Any, token: str | None, size: int) -> dict[str, Any]:
    """The reservations after the one that `token` names, in order of launch.

    The token is looked up among all reservations: one that no longer passes the filter, since
    its instance changed state between two pages, must not end the listing.
    """
    order = {reservation_id: index for index, reservation_id in enumerate(backend.reservations)}
    if token in (None, FIRST_PAGE_TOKEN):
        after = -1
    elif token in order:
        after = order[token]
    else:
        raise EC2ClientError("InvalidNextToken", "The NextToken is not valid.")
    rest = [found for found in backend.describe_instances(filters=filters) if order[found.id] > after]
    next_token = rest[size - 1].id if len(rest) > size else None
    return {"Reservations": rest[:size], "NextToken": next_token}


def _replace_status_checks(life: Ec2Life) -> None:
    def status(self: Instance) -> dict[str, Any]:
        name = life.check_status(self.id)
        if name == "not-applicable":
            return {"Status": name}
        reachability = "passed" if name == "ok" else name
        return {"Status": name, "Details": [{"Name": "reachability", "Status": reachability}]}

    Instance.instance_status = property(status)
    Instance.system_status = property(status)


def _replace_modify_attribute() -> None:
    moto_modify = InstanceBackend.modify_instance_attribute

    def modify(self: Any, instance_id: str, key: str, value: Any) -> Instance:
        instance = self.get_instance(instance_id)
        if key in ("instance_type", "user_data") and instance._state.name != "stopped":
            raise incorrect_state(f"The instance '{instance_id}' is not in the 'stopped' state.")
        if key == "instance_type" and value not in INSTANCE_TYPES:
            raise EC2ClientError("InvalidInstanceAttributeValue", f"Invalid value '{value}' for instanceType.")
        if key in ("disable_api_stop", "disable_api_termination"):
            value = str(value).lower() == "true"
        return moto_modify(self, instance_id, key, value)

    InstanceBackend.modify_instance_attribute = modify
    _replace_modify_of_the_rest()


def _replace_modify_of_the_rest() -> None:
    """moto takes an attribute that it does not know for security groups, and takes those of the instance away."""
    moto_groups = InstanceResponse._security_grp_instance_attribute_handler

    def groups_or_behaviour(self: Any) -> bool:
        if self._get_param("Groups"):
            return moto_groups(self)
        behaviour = self._get_param("InstanceInitiatedShutdownBehavior.Value")
        if behaviour is None:
            raise NotImplementedError("this attribute")
        instance_id = self._get_param("InstanceId")
        self.ec2_backend.modify_instance_attribute(instance_id, "instance_initiated_shutdown_behavior", behaviour)
        return True

    InstanceResponse._security_grp_instance_attribute_handler = groups_or_behaviour


def _replace_delete_vpc() -> None:
    """A VPC's own network ACL goes with it, as its security group and route table do."""
    moto_delete = VPCBackend.delete_vpc

    def delete(self: Any, vpc_id: str) -> Any:
        deleted = moto_delete(self, vpc_id)
        acls = self.network_acls.items()
        self.network_acls = {acl_id: acl for acl_id, acl in acls if acl.vpc_id != vpc_id}
        return deleted

    VPCBackend.delete_vpc = delete
