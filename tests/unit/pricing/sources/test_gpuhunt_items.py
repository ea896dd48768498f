"""Rows of gpuhunt's catalogs: the offers they become, under our GPU names, and gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpuhunt
import pytest

from advisor.core.gpus import load_gpus
from advisor.core.units import GB, GIB
from advisor.core.values import GpuSpec, Market
from advisor.pricing.catalog.renters import load_renters
from advisor.pricing.sources.gpuhunt_items import Retrieval, matching_gpus, offers_of
from tests.gpuhunt_catalogs import WRITTEN, gpuhunt_version, item, part_of

# gpuhunt leaves files and answers to the garbage collector, which then complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


RETRIEVAL = Retrieval(at=WRITTEN, source="a test")
LAMBDA = load_renters()["lambda"]

# --- Rows -------------------------------------------------------------------------------------------


def test_a_row_becomes_an_offer(tmp_path: Path) -> None:
    part = part_of(tmp_path, item("gpu_2x_a10", 1.5, gpu_count=2))
    (offer,) = part.offers
    assert (part.scope, part.failure, part.gaps, part.history) == ("lambda", None, (), ())
    assert (offer.provider, offer.instance_type, offer.region, offer.zone) == (
        "lambda", "gpu_2x_a10", "us-west-1", None,
    )  # fmt: skip
    assert (offer.gpu, offer.num_gpus, offer.market) == ("A10", 2, Market.ON_DEMAND)
    assert (offer.list_usd_per_h, offer.num_vcpus) == (1.5, 30)
    assert offer.includes == ("30 vCPU", "200 GB RAM", "1400 GB disk")
    assert offer.retrieved_at == WRITTEN
    assert offer.source == f"gpuhunt {gpuhunt_version()}"


def test_spot_and_a_place_without_a_name() -> None:
    row = item(spot=True, location="", disk_size=None)
    (offer,), gaps = offers_of([row], LAMBDA, RETRIEVAL)
    assert (offer.market, offer.region, offer.includes) == (Market.SPOT, "any", ("30 vCPU", "200 GB RAM"))
    assert (offer.retrieved_at, offer.source, gaps) == (WRITTEN, "a test", ())


def test_what_a_row_does_not_tell_of_its_host_is_unknown() -> None:
    (offer,), gaps = offers_of([item(cpu=None, memory=None, disk_size=None)], LAMBDA, RETRIEVAL)
    assert (offer.num_vcpus, offer.includes, gaps) == (None, (), ())


@pytest.mark.parametrize(
    ("changes", "gap"),
    [
        ({"price": None}, "no price"),
        ({"price": "1"}, "no price"),
        ({"gpu_count": None}, "no name or no number of GPUs"),
        ({"instance_name": None}, "no name or no number of GPUs"),
        ({"gpu_memory": "much"}, "cannot be read"),
    ],
)
def test_a_bad_row_is_a_gap_and_the_others_are_offers(changes: dict[str, Any], gap: str) -> None:
    bad = item(**({"instance_name": "bad", "price": 0.5} | changes))
    offers, gaps = offers_of([bad, item(provider_data=None)], LAMBDA, RETRIEVAL)
    assert [offer.instance_type for offer in offers] == ["gpu_1x_a10"]
    assert gaps == (f"{gap} (1 of 2 rows)",)


def test_machines_without_a_gpu_are_no_offers(tmp_path: Path) -> None:
    cpu_only = item("cpu", gpu_count=0, gpu_name=None, gpu_memory=None, gpu_vendor=None)
    part = part_of(tmp_path, item(), cpu_only)
    assert [offer.instance_type for offer in part.offers] == ["gpu_1x_a10"]
    assert part.gaps == ()


@pytest.mark.parametrize(
    ("name", "memory_gb", "instance_name", "gpu"),
    [
        ("A100", 40.0, "gpu_8x_a100_40gb_sxm4", "A100-SXM-40GB"),
        ("A100", 80.0, "gpu_8x_a100_80gb_sxm4", "A100-SXM-80GB"),
        ("A100", 80.0, "NVIDIA A100 80GB PCIe", "A100-PCIE-80GB"),
        ("H100", 80.0, "gpu_1x_h100_pcie", "H100-PCIE-80GB"),
        ("H100", 94.0, "Standard_NC40ads_H100_v5", "H100-NVL-94GB"),
        ("H100NVL", 94.0, "x", "H100-NVL-94GB"),
        ("H200", 141.0, "gpu-h200-sxm 8gpu", "H200-SXM-141GB"),
        ("B200", 180.0, "x", "B200-SXM-180GB"),
        ("B300", 270.0, "x", "B300-SXM-288GB"),
        ("V100", 16.0, "1V100-SXM2.6V", "V100-SXM-16GB"),
        ("RTX4090", 24.0, "x", "RTX-4090"),
        ("RTX3090Ti", 24.0, "x", "RTX-3090-Ti"),
        ("RTX4060Ti", 16.0, "x", "RTX-4060-Ti-16GB"),
        ("A6000", 48.0, "x", "RTX-A6000"),
        ("RTX6000Ada", 48.0, "x", "RTX-6000-Ada"),
        ("L40S", 48.0, "x", "L40S"),
        ("T4", 16.0, "Standard_NC4as_T4_v3", "T4"),
        ("MI300X", 192.0, "x", "MI300X"),
        ("A10", None, "x", "A10"),
    ],
)
def test_gpus_are_known_by_name_memory_and_form(
    tmp_path: Path, name: str, memory_gb: float | None, instance_name: str, gpu: str
) -> None:
    part = part_of(tmp_path, item(instance_name, gpu_name=name, gpu_memory=memory_gb))
    assert ([offer.gpu for offer in part.offers], part.gaps) == ([gpu], ())


@pytest.mark.parametrize(
    ("name", "memory_gb", "kept_as", "reason"),
    [
        ("B400", 500.0, "B400 500 GB", "is not in the catalog"),
        ("A10", 6.0, "A10 6 GB", "is not in the catalog"),  # a slice of one
        ("RTX3060", 8.0, "RTX3060 8 GB", "is not in the catalog"),
        ("Strange", None, "Strange", "is not in the catalog"),
        ("A100", 80.0, "A100 80 GB", "may be A100-PCIE-80GB or A100-SXM-80GB"),
    ],
)
def test_other_gpus_are_kept_under_their_own_name_and_told(
    tmp_path: Path, name: str, memory_gb: float | None, kept_as: str, reason: str
) -> None:
    rows = [item(place, gpu_name=name, gpu_memory=memory_gb, location=place) for place in ("a", "b")]
    part = part_of(tmp_path, *rows)
    assert {offer.gpu for offer in part.offers} == {f"lambda {kept_as}"}
    assert part.gaps == (f"lambda {kept_as} {reason}, so no time can be predicted (2 of 2 rows)",)


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan"), float("inf")])
def test_a_row_without_a_price_is_a_gap(tmp_path: Path, price: float) -> None:
    part = part_of(tmp_path, item(), item("free", price))
    assert [offer.instance_type for offer in part.offers] == ["gpu_1x_a10"]
    assert part.gaps == ("no price (1 of 2 rows)",)


def test_what_is_rented_in_clusters_only_is_a_gap(tmp_path: Path) -> None:
    part = part_of(tmp_path, item(), item("pods", provider_data={"pod_counts": [2, 3]}))
    assert len(part.offers) == 1
    assert part.gaps == ("rented only as a cluster of several machines (1 of 2 rows)",)


def test_a_name_that_stands_for_several_sizes_gets_the_size(tmp_path: Path) -> None:
    """RunPod calls every machine as its GPU."""
    sizes = [item("NVIDIA L4", 0.4 * count, gpu_name="L4", gpu_count=count) for count in (1, 4)]
    part = part_of(tmp_path, *sizes, item())
    assert [offer.instance_type for offer in part.offers] == ["1x NVIDIA L4", "gpu_1x_a10", "4x NVIDIA L4"]


def test_the_cheapest_of_equal_rows_is_kept(tmp_path: Path) -> None:
    rows = [item(price=0.8), item(price=0.7, disk_size=10.0), item(price=0.9), item(price=0.5, spot=True)]
    assert [(o.market, o.usd_per_h) for o in part_of(tmp_path, *rows).offers] == [
        (Market.SPOT, 0.5), (Market.ON_DEMAND, 0.7),
    ]  # fmt: skip


def test_rows_that_gpuhunt_skips_are_gaps(tmp_path: Path) -> None:
    part = part_of(tmp_path, item(), more="broken,us-west-1,cheap,1,1,1,A10,24,False,1,nvidia,,x86,{}\n")
    assert len(part.offers) == 1
    (gap,) = part.gaps
    assert gap.startswith(
        "Skipping malformed row in lambdalabs catalog at line 3: Cannot parse field 'price'"
    )


def test_many_messages_are_counted(tmp_path: Path) -> None:
    bad = "broken,us-west-1,cheap,1,1,1,A10,24,False,1,nvidia,,x86,{}\n"
    part = part_of(tmp_path, item(), more=8 * bad)
    assert len(part.gaps) == 4
    assert part.gaps[-1] == "... and 5 more messages of gpuhunt"


# --- GPUs -------------------------------------------------------------------------------------------


def test_every_gpu_that_gpuhunt_knows_means_one_of_ours_or_none() -> None:
    """Never one of another memory; of several forms, only those."""
    known = {}
    for accelerator in gpuhunt.KNOWN_ACCELERATORS:
        members = matching_gpus(accelerator.name, float(accelerator.memory) or None, "x")
        known[accelerator.name, accelerator.memory] = [gpu.name for gpu in members]
        memories = {gpu.memory_bytes for gpu in members}
        assert not memories or max(memories) / min(memories) < 1.01, accelerator
    assert known["A100", 40] == ["A100-PCIE-40GB", "A100-SXM-40GB"]
    assert known["RTX6000", 24] == known["RTX3060", 8] == []
    assert sum(len(names) == 1 for names in known.values()) > 30


@pytest.mark.parametrize("gpu", load_gpus().values(), ids=lambda gpu: gpu.name)
def test_every_gpu_of_ours_is_found_by_its_full_name_and_memory(gpu: GpuSpec) -> None:
    assert matching_gpus(gpu.name, gpu.memory_bytes / GIB, "x") == (gpu,)
    assert matching_gpus(gpu.name.replace("-", ""), gpu.memory_bytes / GB, "x") == (gpu,)
    assert matching_gpus(gpu.name, gpu.memory_bytes / GIB / 2, "x") == ()
