"""Rows of gpuhunt's catalogs: the offers they become, under our GPU names, and gaps."""

from typing import Any

import gpuhunt
import pytest

from advisor.core.gpus import load_gpus
from advisor.core.units import GB, GIB
from advisor.core.values import Market, Offer
from advisor.pricing.instance_types import load_instances
from advisor.pricing.providers import is_community_host, load_providers
from advisor.pricing.sources.gpuhunt import Retrieval, matching_gpus, offers_of
from tests.gpuhunt_catalogs import WRITTEN, gpuhunt_version, item, part_of

# gpuhunt leaves files and answers to the garbage collector, which then complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


RETRIEVAL = Retrieval(at=WRITTEN, source="a test")
LAMBDA = load_providers()["lambda"]

# --- Rows -------------------------------------------------------------------------------------------


def test_a_row_becomes_an_offer(tmp_path):
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


def test_spot_a_place_without_a_name_and_an_unknown_host():
    row = item(spot=True, location="", cpu=None, memory=200.0, disk_size=None)
    (offer,), gaps = offers_of([row], LAMBDA, RETRIEVAL)
    assert (offer.market, offer.region, offer.includes) == (Market.SPOT, "any", ("200 GB RAM",))
    assert (offer.num_vcpus, offer.retrieved_at, offer.source, gaps) == (None, WRITTEN, "a test", ())


@pytest.mark.parametrize(
    ("changes", "gap"),
    [
        *(({"price": price}, "no price") for price in (None, "1", 0.0, -1.0, float("nan"), float("inf"))),
        ({"provider_data": {"pod_counts": [2, 3]}}, "rented only as a cluster of several machines"),
        ({"gpu_count": None}, "no name or no number of GPUs"),
        ({"instance_name": None}, "no name or no number of GPUs"),
        ({"gpu_memory": "much"}, "cannot be read"),
    ],
)
def test_a_bad_row_is_a_gap_and_the_others_are_offers(changes, gap):
    bad = item(**({"instance_name": "bad", "price": 0.5} | changes))
    offers, gaps = offers_of([bad, item(provider_data=None)], LAMBDA, RETRIEVAL)
    assert [offer.instance_type for offer in offers] == ["gpu_1x_a10"]
    assert gaps == (f"{gap} (1 of 2 rows)",)


def test_machines_without_a_gpu_are_no_offers(tmp_path):
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
def test_gpus_are_known_by_name_memory_and_form(tmp_path, name, memory_gb, instance_name, gpu):
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
def test_other_gpus_are_kept_under_their_own_name_and_told(tmp_path, name, memory_gb, kept_as, reason):
    rows = [item(place, gpu_name=name, gpu_memory=memory_gb, location=place) for place in ("a", "b")]
    part = part_of(tmp_path, *rows)
    assert {offer.gpu for offer in part.offers} == {f"lambda {kept_as}"}
    assert part.gaps == (f"lambda {kept_as} {reason}, so no time can be predicted (2 of 2 rows)",)


def test_a_name_that_stands_for_several_sizes_gets_the_size(tmp_path):
    """RunPod calls every machine as its GPU."""
    sizes = [item("NVIDIA L4", 0.4 * count, gpu_name="L4", gpu_count=count) for count in (1, 4)]
    part = part_of(tmp_path, *sizes, item())
    assert [offer.instance_type for offer in part.offers] == ["1x NVIDIA L4", "gpu_1x_a10", "4x NVIDIA L4"]


def test_the_cheapest_of_equal_rows_is_kept(tmp_path):
    rows = [item(price=0.8), item(price=0.7, disk_size=10.0), item(price=0.9), item(price=0.5, spot=True)]
    assert [(o.market, o.usd_per_h) for o in part_of(tmp_path, *rows).offers] == [
        (Market.SPOT, 0.5), (Market.ON_DEMAND, 0.7),
    ]  # fmt: skip


def test_rows_that_gpuhunt_skips_are_gaps_and_many_are_counted(tmp_path):
    bad = "broken,us-west-1,cheap,1,1,1,A10,24,False,1,nvidia,,x86,{}\n"
    part = part_of(tmp_path, item(), more=8 * bad)
    assert len(part.offers) == 1
    first, _, _, more = part.gaps
    assert first.startswith(
        "Skipping malformed row in lambdalabs catalog at line 3: Cannot parse field 'price'"
    )
    assert more == "... and 5 more messages of gpuhunt"


# --- Clouds whose machines our catalog has ------------------------------------------------------------


def of(provider: str, *items: gpuhunt.CatalogItem) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    return offers_of(items, load_providers()[provider], RETRIEVAL)


def aws(name: str = "p5.48xlarge", price: float = 55.04, **changes: Any) -> gpuhunt.CatalogItem:
    facts = {
        "provider": "aws",
        "location": "us-east-1",
        "gpu_name": "H100",
        "gpu_memory": 80.0,
        "gpu_count": 8,
    }
    return item(name, price, **(facts | changes))


def gcp(name: str, price: float = 1.0, **changes: Any) -> gpuhunt.CatalogItem:
    return item(name, price, provider="gcp", **({"location": "us-central1-a"} | changes))


def test_a_machine_of_our_catalog_is_the_one_that_other_sources_price():
    """H100 of 80 GB may be a PCIe board; a p5's is not, and its host is known."""
    (offer,), gaps = of("aws", aws(cpu=1, memory=1.0))
    assert (offer.gpu, offer.num_vcpus, offer.minimum_billed_s, gaps) == ("H100-SXM-80GB", 192, 60.0, ())
    known = load_instances()["aws", "p5.48xlarge"]
    assert (offer.includes, offer.architecture) == (known.includes, known.architecture)


def test_zones_of_one_price_are_one_region():
    rows = [gcp("g2-standard-4", 0.7, gpu_name="L4", location=f"us-central1-{zone}") for zone in "abc"]
    (offer,), _ = of("gcp", *rows)
    assert (offer.region, offer.zone, offer.instance_type) == ("us-central1", None, "g2-standard-4")


def test_gpus_attached_to_a_host_have_our_name_for_both():
    attached = [
        gcp("n1-standard-8", 0.5 * n, gpu_name="T4", gpu_memory=16.0, gpu_count=n) for n in (1, 2, 4)
    ] + [gcp("n1-highmem-2", 0.4, gpu_name="T4", gpu_memory=16.0, gpu_count=n) for n in (1, 2)]
    offers, gaps = of("gcp", *attached)
    names = {offer.instance_type for offer in offers}
    assert names == {"n1-standard-8+1xT4", "n1-standard-8+2xT4"}
    assert gaps == ("GPUs attached to a host that the catalog lacks (3 of 5 rows)",)


def test_calendar_mode_is_no_price_of_today():
    """It passes as on-demand: a third of the true price of an a3-highgpu-8g."""
    booked = gcp("a3-highgpu-8g", 30.0, gpu_count=8, provider_data={"is_dws_calendar_mode": True})
    true = gcp("a3-highgpu-8g", 88.49, gpu_count=8, provider_data={"is_dws_calendar_mode": False})
    (offer,), gaps = of("gcp", booked, true)
    assert offer.usd_per_h == 88.49
    assert gaps == ("rented only for days booked ahead (calendar mode) (1 of 2 rows)",)


def test_spot_of_aws_is_of_its_cheapest_zone_and_never_at_the_floor():
    spot = aws(price=20.0, spot=True)
    floor = aws("g5.xlarge", 0.1006, spot=True, gpu_name="A10G", gpu_count=1)
    listed = aws("g5.xlarge", 1.006, gpu_name="A10G", gpu_count=1)
    offers, gaps = of("aws", spot, floor, listed)
    assert {(o.instance_type, o.market): o.source for o in offers} == {
        ("p5.48xlarge", Market.SPOT): "a test, cheapest zone",
        ("g5.xlarge", Market.ON_DEMAND): "a test",
    }
    assert gaps == ("spot quotes at the floor of 10% of on-demand (no demand) (1 of 3 rows)",)


@pytest.mark.parametrize("place", ["us-west-2-lax-1", "us-east-1-wl1-bos-wlz-1", "us-gov-west-1"])
def test_places_that_are_no_regions_of_everybodys_are_left_out(place):
    offers, gaps = of("aws", aws(location=place), aws(location="ap-southeast-1"))
    assert [offer.region for offer in offers] == ["ap-southeast-1"]
    assert gaps == ("in a place that is no region of everybody's (1 of 2 rows)",)


def test_a_machine_that_is_newer_than_our_catalog_is_as_its_row_tells():
    (offer,), _ = of("aws", aws("p9.48xlarge", gpu_name="B200", gpu_memory=180.0))
    assert (offer.instance_type, offer.gpu, offer.num_gpus) == ("p9.48xlarge", "B200-SXM-180GB", 8)


# --- Who lets it, and on what terms -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "name", "memory_gb", "instance_name", "gpu"),
    [
        ("azure", "A100", 80.0, "Standard_ND96amsr_A100_v4", "A100-SXM-80GB"),
        ("azure", "A100", 80.0, "Standard_NC24ads_A100_v4", "A100-PCIE-80GB"),
        ("azure", "H100", 80.0, "Standard_ND96isr_H100_v5", "H100-SXM-80GB"),
        ("azure", "H100", 94.0, "Standard_NC40ads_H100_v5", "H100-NVL-94GB"),
        ("azure", "V100", 16.0, "Standard_NC6s_v3", "V100-PCIE-16GB"),
        ("oci", "A100", 40.0, "BM.GPU4.8", "A100-SXM-40GB"),
        ("runpod", "H100", 80.0, "NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
        ("runpod", "H100", 80.0, "NVIDIA H100 PCIe", "H100-PCIE-80GB"),
        ("verda", "A100", 80.0, "8A100.176V", "A100-SXM-80GB"),
        ("vast", "A100", 80.0, "4711", "vast A100 80 GB"),
    ],
)
def test_the_form_of_a_gpu_may_be_written_down(provider, name, memory_gb, instance_name, gpu):
    (offer,), _ = of(provider, item(instance_name, gpu_name=name, gpu_memory=memory_gb))
    assert offer.gpu == gpu


def test_known_billing_terms_count_and_unknown_ones_are_the_dearest_known():
    (known,), gaps = of("lambda", item())
    assert (known.minimum_billed_s, known.billed_step_s, gaps) == (60.0, 60.0, ())
    (unknown,), (gap,) = of("nebius", item())
    assert (unknown.minimum_billed_s, unknown.billed_step_s) == (3600.0, 600.0)
    assert gap == (
        "billing terms are not known: at least 1 h in steps of 10 min assumed, the dearest known of others"
    )


@pytest.mark.parametrize(
    ("provider", "place", "is_marked"),
    [
        ("runpod", "CA", True),
        ("runpod", "CA-MTL-1", False),
        ("vast", "us-texas", True),
        ("vast", "", True),
        ("lambda", "CA", False),
    ],
)
def test_a_strangers_host_is_marked(provider, place, is_marked):
    (offer,), _ = of(provider, item(location=place))
    assert offer.source.endswith(", community host") == is_marked
    assert is_community_host(offer.provider, offer.region) == is_marked


def test_hosts_of_a_marketplace_are_kinds_of_machines():
    """A number of today's host names nothing tomorrow, and its history would be of one price each."""
    rows = [item(str(4711 + n), 0.5 + n, provider="vastai", gpu_name="A10") for n in range(5)]
    (offer,), _ = of("vast", *rows)
    assert (offer.instance_type, offer.usd_per_h) == ("1x A10", 0.5)


# --- GPUs -------------------------------------------------------------------------------------------


def test_every_gpu_that_gpuhunt_knows_means_one_of_ours_or_none():
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
def test_every_gpu_of_ours_is_found_by_its_full_name_and_memory(gpu):
    assert matching_gpus(gpu.name, gpu.memory_bytes / GIB, "x") == (gpu,)
    assert matching_gpus(gpu.name.replace("-", ""), gpu.memory_bytes / GB, "x") == (gpu,)
    assert matching_gpus(gpu.name, gpu.memory_bytes / GIB / 2, "x") == ()
