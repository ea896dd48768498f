"""Machines that the catalog lacks, out of EC2's replies."""

from __future__ import annotations

from datetime import date

import pytest

from advisor.pricing.sources.aws import survey
from advisor.pricing.sources.aws.survey import described_machines


@pytest.mark.parametrize(
    ("gpu", "memory_mib", "name"), [("L4", 22888, "L4"), ("H200", 144384, "H200-SXM-141GB")]
)
def test_memory_in_mib_is_that_of_the_catalog_in_gib(
    monkeypatch: pytest.MonkeyPatch, gpu: str, memory_mib: int, name: str
) -> None:
    reply = {
        "InstanceType": "g99.xlarge",
        "GpuInfo": {
            "Gpus": [
                {"Name": gpu, "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": memory_mib}}
            ]
        },
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 16384},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
    }
    monkeypatch.setattr(survey, "items_of", lambda *_, **__: [reply])
    described = described_machines(None, ["g99.xlarge"], today=date(2026, 11, 22))
    assert (described.machines["g99.xlarge"].gpu, described.gaps) == (name, ())
