"""What a price covers, in words."""

from __future__ import annotations

import pytest

from advisor.core.units import GB, GIB
from advisor.pricing.instance_types import price_includes


@pytest.mark.parametrize(("architecture", "cpus"), [("arm64", "72 vCPU (Arm)"), ("x86_64", "72 vCPU")])
def test_an_arm_host_is_named(architecture: str, cpus: str) -> None:
    parts = price_includes(
        vcpus=72, memory_bytes=480 * GIB, local_ssd_bytes=375 * GB, architecture=architecture
    )
    assert parts == (cpus, "480 GiB RAM", "375 GB local SSD")


def test_a_machine_without_disks_names_none() -> None:
    assert price_includes(vcpus=4, memory_bytes=GIB, local_ssd_bytes=0, architecture="x86_64") == (
        "4 vCPU",
        "1 GiB RAM",
    )
