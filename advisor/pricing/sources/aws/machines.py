"""Which machines with GPUs there are: the catalog's, and newer ones as EC2 describes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from advisor.core.errors import UnknownGpuError
from advisor.core.gpus import load_gpus, provider_gpu
from advisor.core.units import GB, MIB
from advisor.pricing.catalog.includes import price_includes
from advisor.pricing.catalog.instance_types import InstanceType, load_instances
from advisor.pricing.sources.aws.calls import items_of
from advisor.pricing.sources.aws.reply_types import Gpu, InstanceTypeRow
from advisor.pricing.sources.aws.wording import listed

if TYPE_CHECKING:
    from botocore.client import BaseClient


ACTION = "ec2:DescribeInstanceTypes"
MINIMUM_BILLED_S = 60.0
"""Linux is billed by the second after a first minute (EC2 on-demand pricing)."""

_GPU_VENDORS = ("NVIDIA", "AMD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What EC2 says of types that the catalog lacks.

    Attributes:
        machines: those with whole GPUs, by instance type.
        gaps: what the others are, and GPUs that the catalog lacks, in words.
    """

    machines: Mapping[str, InstanceType]
    gaps: tuple[str, ...]


def catalog_machines() -> Mapping[str, InstanceType]:
    """AWS's instance types of the shipped catalog by name.

    Raises:
        CatalogError: the catalog is missing or broken.
    """
    return {name: machine for (provider, name), machine in load_instances().items() if provider == "aws"}


def described_machines(client: BaseClient, instance_types: Collection[str], *, today: date) -> Described:
    """Types that the catalog lacks, as EC2 describes them.

    Raises:
        CloudError: the call failed.
    """
    filters = [{"Name": "instance-type", "Values": sorted(instance_types)}]
    rows: list[InstanceTypeRow] = items_of(client, ACTION, "InstanceTypes", Filters=filters)
    replies = [reply for reply in rows if reply["InstanceType"] in instance_types]
    machines, fractions, others = {}, [], []
    for reply in replies:
        name = str(reply["InstanceType"])
        gpus = reply.get("GpuInfo", {}).get("Gpus", [])
        if any(gpu.get("GpuPartitionSize", 1.0) < 1 for gpu in gpus):
            fractions.append(name)
        elif len(gpus) == 1 and gpus[0].get("Manufacturer") in _GPU_VENDORS and gpus[0].get("Count", 0) > 0:
            machines[name] = _machine(reply, gpus[0], today)
        else:
            others.append(name)
    unknown = sorted(set(instance_types) - {reply["InstanceType"] for reply in replies})
    return Described(machines=machines, gaps=_gaps(machines, fractions, others, unknown))


def _machine(reply: InstanceTypeRow, gpu: Gpu, today: date) -> InstanceType:
    """The machine in our units; a GPU that the catalog lacks keeps AWS's name for it."""
    memory = f"{round(gpu['MemoryInfo']['SizeInMiB'] / 1024, 2):g} GiB"
    try:
        gpu_name = provider_gpu("aws", gpu["Name"], memory).name
    except UnknownGpuError:
        gpu_name = f"aws {gpu['Name']}"
    host = {
        "vcpus": int(reply["VCpuInfo"]["DefaultVCpus"]),
        "memory_bytes": int(reply["MemoryInfo"]["SizeInMiB"]) * MIB,
        "local_ssd_bytes": int(reply.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)) * GB,
    }
    architecture = reply["ProcessorInfo"]["SupportedArchitectures"][0]
    return InstanceType(
        provider="aws",
        instance_type=reply["InstanceType"],
        gpu=gpu_name,
        num_gpus=int(gpu["Count"]),
        gpu_memory=memory,
        architecture=architecture,
        minimum_billed_s=MINIMUM_BILLED_S,
        includes=price_includes(architecture=architecture, **host),
        source=ACTION,
        as_of=today,
        **host,
    )


def _gaps(
    machines: Mapping[str, InstanceType], fractions: list[str], others: list[str], unknown: list[str]
) -> tuple[str, ...]:
    ours = load_gpus()
    foreign = [f"{m.gpu} with {m.gpu_memory}" for m in machines.values() if m.gpu not in ours]
    reasons = (
        ("GPUs that the catalog lacks keep AWS's name", foreign),
        ("types with a fraction of a GPU are left out", fractions),
        ("types without GPUs of NVIDIA or AMD are left out", others),
        ("types that EC2 does not describe here are left out", unknown),
    )
    return tuple(f"{what}: {listed(names)}" for what, names in reasons if names)
