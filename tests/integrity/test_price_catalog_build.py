"""The build of the price catalog: what it keeps and drops, and that it can be repeated."""

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from advisor.core.errors import CatalogError, UnknownGpuError
from advisor.pricing.instance_types import InstanceType
from advisor.pricing.sources.gcp.skus import MACHINE_FILE
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import PRICE_FILES, SnapshotSource
from tools.build_price_catalog import summary, write
from tools.price_catalog_rows import ON_DEMAND, SPOT, CatalogRows, PriceRow, check_prices, instance_type

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"


def machine(**changes: Any) -> InstanceType:
    values: dict[str, Any] = {
        "provider": "aws", "name": "g6.xlarge", "gpu_name": "L4",
        "gpu_memory": "22.35 GiB", "num_gpus": 1, "vcpus": 4, "memory_gib": 16.0,
        "network_gbps": 2.5, "local_ssd_gb": 250, "architecture": "x86_64", "minimum_billed_s": 60,
        "source": "test", "as_of": date(2026, 8, 2),
    }  # fmt: skip
    return instance_type(**(values | changes))


def price(usd_per_h: str = "1.0", market: str = ON_DEMAND, **changes: str) -> PriceRow:
    values = {
        "provider": "aws", "instance_type": "g6.xlarge", "region": "us-east-1",
        "retrieved_at": "2026-07-20", "source": "test",
    }  # fmt: skip
    return PriceRow(market=market, usd_per_h=usd_per_h, **(values | changes))


def rows_of(*prices: PriceRow) -> CatalogRows:
    return CatalogRows(instances=[machine()], prices=list(prices))


def test_a_machine_is_converted_to_our_units_and_names():
    row = machine(local_ssd_gb=7600, architecture="arm64")
    assert row.gpu == "L4"
    assert row.memory_bytes == 16 * 2**30
    assert row.network_bits_per_s == 2_500_000_000
    assert row.local_ssd_bytes == 7_600 * 10**9
    assert row.includes == ("4 vCPU (Arm)", "16 GiB RAM", "7.6 TB local SSD")
    assert machine(network_gbps=None).network_bits_per_s is None


def test_a_machine_with_an_unknown_gpu_is_an_error():
    with pytest.raises(UnknownGpuError, match=r"'L5' with 22\.35 GiB"):
        machine(gpu_name="L5")


@pytest.mark.parametrize(
    ("spot", "reason"),
    [
        (price("1.1", SPOT), "above on-demand"),
        (price("0.1", SPOT), "at the floor"),
        (price("0.5", SPOT, region="eu-west-1"), "without an on-demand price"),
        (price("0.5", SPOT, instance_type="g7.2xlarge"), "types that the catalog does not hold"),
    ],
)
def test_misleading_spot_prices_are_dropped_with_the_reason(spot, reason):
    rows = rows_of(price(), spot)
    check_prices(rows)
    assert rows.prices == [price()]
    ((what, why),) = rows.dropped
    assert what.startswith(spot.instance_type)
    assert reason in why
    assert reason in summary(rows)


@pytest.mark.parametrize("usd_per_h", ["0.11", "0.5", "1.0", "1.000001"])
def test_a_spot_price_up_to_on_demand_is_kept(usd_per_h):
    rows = rows_of(price(), price(usd_per_h, SPOT, zone="use1-az1"))
    check_prices(rows)
    assert len(rows.prices) == 2


@pytest.mark.parametrize("usd_per_h", ["0", "-1", "nan"])
def test_a_price_of_0_stops_the_build(usd_per_h):
    with pytest.raises(ValueError, match="must be above 0"):
        check_prices(rows_of(price(usd_per_h)))


def test_a_price_that_is_there_twice_stops_the_build():
    with pytest.raises(ValueError, match="priced twice"):
        check_prices(rows_of(price(), price("1.2")))


def test_what_is_written_reads_back(tmp_path):
    write(rows_of(price(), price("0.5", SPOT)), tmp_path)
    parts = SnapshotSource(tmp_path).offers(OfferQuery())
    assert [offer.usd_per_h for part in parts for offer in part.offers] == [1.0, 0.5]
    files = ["gcp_machine_types.csv", "instances.csv", "prices"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_a_broken_catalog_replaces_nothing(tmp_path):
    write(rows_of(price()), tmp_path)
    before = (tmp_path / "prices/aws.csv").read_bytes()
    with pytest.raises(CatalogError, match="line 2: Invalid isoformat"):
        write(rows_of(price(retrieved_at="soon")), tmp_path)
    assert (tmp_path / "prices/aws.csv").read_bytes() == before


@pytest.mark.shared
def test_the_build_reproduces_the_committed_files_byte_for_byte(tmp_path):
    if not (SHARED / "prices").is_dir():
        pytest.skip("no ../shared/prices beside the checkout")
    script = ROOT / "tools" / "build_price_catalog.py"
    command = [sys.executable, str(script), "--shared", str(SHARED), "--out", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    for name in ("instances.csv", MACHINE_FILE, *PRICE_FILES):
        assert (tmp_path / name).read_bytes() == (ROOT / "catalogs" / name).read_bytes(), name
    for words in ("left out:", "government regions", "fraction of a GPU", "without any price"):
        assert words in run.stdout
