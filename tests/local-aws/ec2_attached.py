"""Disks, network interfaces and public addresses of instances, where moto shows other than AWS does.

moto forgets what RunInstances asks of a disk and of an interface, leaves the interface of a terminated instance, and
takes an Elastic IP away with a stop.
"""

from typing import Any

import moto.ec2.models.elastic_ip_addresses as elastic_ip_addresses
from moto.ec2.models.elastic_block_store import EBSBackend, Volume
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.utils import random_public_ip

GP3_THROUGHPUT = 125  # MiB/s of a gp3 volume that asks for none


def install() -> None:
    _show_what_a_volume_does()
    _read_throughput()
    _keep_what_run_instances_asks_of_a_disk()
    _keep_what_run_instances_asks_of_an_interface()
    _keep_elastic_addresses()
    _give_an_automatic_address_back()
    _show_associations()


# -- disks


def _show_what_a_volume_does() -> None:
    moto_create = EBSBackend.create_volume

    def create(self: Any, *args: Any, **kwargs: Any) -> Volume:
        volume = moto_create(self, *args, **kwargs)
        if volume.volume_type == "gp3" and volume.throughput is None:
            volume.throughput = GP3_THROUGHPUT
        if volume.volume_type == "gp2":
            volume.iops = _gp2_iops(volume.size)
        return volume

    EBSBackend.create_volume = create


def _gp2_iops(size_gib: int) -> int:
    """Three for each GiB, within the bounds of a gp2 volume."""
    return min(max(3 * size_gib, 100), 16_000)


def _read_throughput() -> None:
    """moto reads every member of a mapping but this one."""
    moto_parse = InstanceResponse._parse_block_device_mapping

    def parse(self: Any) -> list[dict[str, Any]]:
        mappings = moto_parse(self)
        for mapping, given in zip(mappings, self._get_param("BlockDeviceMappings", []), strict=True):
            mapping["Ebs"]["Throughput"] = given.get("Ebs", {}).get("Throughput")
        return mappings

    InstanceResponse._parse_block_device_mapping = parse


def _keep_what_run_instances_asks_of_a_disk() -> None:
    """moto passes a disk's size and type on, but neither its IOPS nor its throughput."""
    moto_run = InstanceBackend.run_instances
    asked: dict[str, dict[str, Any]] = {}  # of the running call, by device; the world's lock guards it

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked.update(_asked_disks(self, kwargs))
        try:
            return moto_run(self, *args, **kwargs)
        finally:
            asked.clear()

    def add(
        self: Instance,
        size: int,
        device_path: str,
        snapshot_id: str | None,
        encrypted: bool,
        delete_on_termination: bool,
        kms_key_id: str | None,
        volume_type: str | None,
    ) -> None:
        ebs = asked.get(device_path, {})
        volume = self.ec2_backend.create_volume(
            size=size,
            zone_name=self._placement.zone,
            snapshot_id=snapshot_id,
            encrypted=encrypted,
            kms_key_id=kms_key_id,
            volume_type=volume_type,
            iops=ebs.get("Iops"),
            throughput=ebs.get("Throughput"),
        )
        self.ec2_backend.attach_volume(volume.id, self.id, device_path, delete_on_termination)

    InstanceBackend.run_instances = run
    Instance.add_block_device = add


def _asked_disks(backend: Any, kwargs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The call's own mappings, else those of its launch template, as moto chooses them."""
    mappings = kwargs.get("block_device_mappings")
    if mappings is None and kwargs.get("launch_template"):
        mappings = backend._get_template_from_args(kwargs["launch_template"]).data.get("BlockDeviceMappings")
    return {mapping["DeviceName"]: mapping.get("Ebs", {}) for mapping in mappings or []}


# -- network interfaces


def _keep_what_run_instances_asks_of_an_interface() -> None:
    """One that the call makes goes with its instance, unless it says otherwise, and shares its security groups."""
    moto_prepare = Instance.prep_nics

    def prepare(self: Instance, nic_spec: list[dict[str, Any]], *args: Any, **kwargs: Any) -> None:
        spec = nic_spec or [{"DeviceIndex": 0}]
        for interface in spec:
            if "NetworkInterfaceId" not in interface:
                interface.setdefault("DeleteOnTermination", True)
        moto_prepare(self, spec, *args, **kwargs)
        self.security_groups = self.security_groups or list(self.nics[0].group_set)

    Instance.prep_nics = prepare


# -- addresses


def _elastic_address(nic: NetworkInterface) -> ElasticAddress | None:
    return next((address for address in nic.ec2_backend.addresses if address.eni is nic), None)


def _keep_elastic_addresses() -> None:
    """A stop and a start change the automatic address; an Elastic IP stays in its place."""
    moto_stop, moto_check = NetworkInterface.stop, NetworkInterface.check_auto_public_ip

    def stop(self: NetworkInterface) -> None:
        if _elastic_address(self) is None:
            moto_stop(self)

    def check(self: NetworkInterface) -> None:
        if _elastic_address(self) is None:
            moto_check(self)

    NetworkInterface.stop = stop
    NetworkInterface.check_auto_public_ip = check
    # moto's Elastic IPs lie in 127.0.0.0/8, where a client would reach this machine.
    elastic_ip_addresses.random_ip = random_public_ip


def _give_an_automatic_address_back() -> None:
    """moto does so while the Elastic IP still counts as there; here it comes afterwards."""
    backend_class = elastic_ip_addresses.ElasticAddressBackend
    moto_disassociate = backend_class.disassociate_address

    def disassociate(self: Any, *args: Any, **kwargs: Any) -> None:
        nics = [address.eni for address in self.addresses if address.eni]
        moto_disassociate(self, *args, **kwargs)
        for nic in nics:
            if nic.public_ip is None and nic.instance and nic.instance._state.name == "running":
                nic.start()

    backend_class.disassociate_address = disassociate


def free_elastic_addresses(instance: Instance) -> None:
    """Terminating takes an Elastic IP off the instance; it stays allocated."""
    for nic in instance.nics.values():
        if address := _elastic_address(nic):
            instance.ec2_backend.disassociate_address(address=address.public_ip)


def _show_associations() -> None:
    NetworkInterface.association = property(_association)


def _association(nic: NetworkInterface) -> dict[str, Any] | None:
    """None without a public address: an empty element would read as an association."""
    if not nic.public_ip:
        return None
    address = _elastic_address(nic)
    return {
        "PublicIp": nic.public_ip,
        "PublicDnsName": nic.instance.public_dns_name if nic.instance else None,
        "IpOwnerId": nic.owner_id if address else "amazon",
        "AllocationId": address.allocation_id if address else None,
        "AssociationId": address.association_id if address else None,
    }
