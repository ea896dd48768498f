"""The file of instance types, and what their prices include."""

import string
import tempfile
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.units import GB, GIB
from advisor.core.values import Interval, Market, Offer
from advisor.pricing.instance_types import (
    InstanceType,
    columns_of,
    load_instances,
    price_includes,
    read_as,
    read_instances,
)
from tests.unit.pricing.sources.test_snapshot import INSTANCE, write_csv
from tools.build_price_catalog import write_instances

G6 = InstanceType(
    provider="aws",
    instance_type="g6.xlarge",
    gpu="L4",
    num_gpus=1,
    vcpus=4,
    memory_bytes=16 * GIB,
    gpu_memory="22.35 GiB",
    network_bits_per_s=2.5e9,
    local_ssd_bytes=250 * GB,
    architecture="x86_64",
    minimum_billed_s=60.0,
    includes=("4 vCPU", "16 GiB RAM", "250 GB local SSD"),
    source="test",
    as_of=date(2026, 8, 2),
)

NAMES = st.text(string.ascii_letters + string.digits + '.-+ "', min_size=1, max_size=12)
INSTANCES = st.builds(
    InstanceType,
    provider=NAMES,
    instance_type=NAMES,
    gpu=NAMES,
    num_gpus=st.integers(1, 4096),
    vcpus=st.integers(1, 10**4),
    memory_bytes=st.integers(1, 2**53),
    gpu_memory=NAMES,
    network_bits_per_s=st.none() | st.floats(1e-3, 1e15),
    local_ssd_bytes=st.integers(0, 10**18),
    architecture=st.sampled_from(["x86_64", "arm64"]),
    minimum_billed_s=st.floats(1e-3, 1e9),
    includes=st.lists(NAMES, max_size=4).map(tuple),
    source=NAMES,
    as_of=st.dates(),
)


def test_a_row_becomes_an_instance_type(tmp_path):
    path = write_csv(tmp_path / "i.csv", columns_of(InstanceType), INSTANCE)
    assert read_instances(path) == {("aws", "g6.xlarge"): G6}


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        *(({column: ""}, "gpu or source is empty") for column in ("provider", "gpu", "source")),
        *(({column: "0"}, f"{column} is 0") for column in ("num_gpus", "vcpus", "memory_bytes")),
        ({"vcpus": ""}, "vcpus is 0"),
        ({"num_gpus": "-1"}, "num_gpus is -1"),
        ({"minimum_billed_s": "nan"}, "minimum_billed_s is nan"),
        ({"network_bits_per_s": "inf"}, "network_bits_per_s is inf"),
        ({}, "aws g6.xlarge is listed twice"),
    ],
)
def test_a_machine_that_cannot_be_names_file_and_line(tmp_path, cells, fault):
    path = write_csv(tmp_path / "i.csv", columns_of(InstanceType), INSTANCE, INSTANCE | cells)
    with pytest.raises(CatalogError, match=rf"i\.csv, line 3: .*{fault}"):
        read_instances(path)


@given(st.lists(INSTANCES, max_size=3, unique_by=lambda instance: instance.key))
def test_what_is_written_reads_back(instances):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "i.csv"
        write_instances(path, instances)
        assert list(read_instances(path).values()) == instances


def test_the_shipped_file_is_as_we_would_write_it(tmp_path):
    write_instances(tmp_path / "i.csv", load_instances().values())
    assert (tmp_path / "i.csv").read_bytes() == catalog_path("instances.csv").read_bytes()


def test_a_machine_at_a_price_is_an_offer():
    at = datetime(2026, 7, 20, tzinfo=UTC)
    spot = Interval(p10=0.2, p50=0.3, p90=0.4)
    assert G6.offer(
        region="us-east-1",
        zone="use1-az1",
        market=Market.SPOT,
        usd_per_h=0.3,
        spot_usd_per_h=spot,
        retrieved_at=at,
        source="a quote",
    ) == Offer(
        provider="aws",
        instance_type="g6.xlarge",
        region="us-east-1",
        zone="use1-az1",
        gpu="L4",
        num_gpus=1,
        market=Market.SPOT,
        list_usd_per_h=0.3,
        spot_usd_per_h=spot,
        includes=G6.includes,
        minimum_billed_s=60.0,
        num_vcpus=4,
        architecture="x86_64",
        retrieved_at=at,
        source="a quote",
    )


@pytest.mark.parametrize(("architecture", "cpus"), [("arm64", "72 vCPU (Arm)"), ("x86_64", "72 vCPU")])
@pytest.mark.parametrize(("disk_gb", "disks"), [(375, ("375 GB local SSD",)), (0, ())])
def test_an_arm_host_and_disks_are_named(architecture, cpus, disk_gb, disks):
    host = {"vcpus": 72, "memory_bytes": 480 * GIB, "local_ssd_bytes": disk_gb * GB}
    assert price_includes(**host, architecture=architecture) == (cpus, "480 GiB RAM", *disks)


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Paint:
    name: str
    tags: tuple[str, ...]
    colour: Colour
    litres: float
    is_old: bool
    as_of: date


ROW = "matt,for walls,red,2.5,yes,2026-11-01"


def paints(path: Path, *rows: str, header: str = "name,tags,colour,litres,is_old,as_of") -> tuple[Paint, ...]:
    path.write_text("\n".join((header, *rows)) + "\n")
    return read_as(path, Paint)


def test_a_cell_is_read_as_the_type_of_its_field(tmp_path):
    assert columns_of(Paint) == ("name", "tags", "colour", "litres", "is_old", "as_of")
    assert paints(tmp_path / "p.csv", ROW, ROW.replace("yes", "no"))[0] == Paint(
        name="matt",
        tags=("for", "walls"),
        colour=Colour.RED,
        litres=2.5,
        is_old=True,
        as_of=date(2026, 11, 1),
    )


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (ROW.replace("red", "blue"), "'blue' is not a valid Colour"),
        (ROW.replace("2.5", "much"), "could not convert string to float: 'much'"),
        (ROW.replace("yes", "maybe"), "not in tuple"),
        (ROW.replace("2026-11-01", "soon"), "Invalid isoformat string: 'soon'"),
        ("matt,for walls", "2 fields instead of 6"),
    ],
)
def test_a_broken_cell_names_file_and_line(tmp_path, row, fault):
    with pytest.raises(CatalogError, match=rf"p\.csv, line 3: .*{fault}"):
        paints(tmp_path / "p.csv", ROW, row)


def test_a_table_with_other_columns_is_refused(tmp_path):
    with pytest.raises(CatalogError, match="the columns are name, not name,tags"):
        paints(tmp_path / "p.csv", "matt", header="name")
