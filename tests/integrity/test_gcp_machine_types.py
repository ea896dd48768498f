"""Every GCP machine type of the catalog: billed by what it has, in regions that exist, dated."""

import csv
import re
from datetime import date

import pytest

from advisor.core.gpus import catalog_path, resolve_gpu
from advisor.core.units import GB, GIB
from advisor.core.values import Market
from advisor.pricing.instance_types import load_instances
from advisor.pricing.sources.gcp.skus import (
    MACHINE_FILE,
    MachineType,
    SkuKind,
    components,
    kind_of,
    load_machines,
)
from advisor.pricing.sources.snapshot import read_offers
from tests.clouds.gcp_skus import rows
from tests.every import of_every
from tests.shared import needs_shared

MACHINES = {machine.instance.instance_type: machine for machine in load_machines()}
BY_MACHINE = of_every([*MACHINES.values()], name=lambda machine: machine.instance.instance_type)
REGION = re.compile(r"[a-z]+-[a-z]+\d+")
INSTANCES = load_instances()
SPOT_ONLY = {f"a3-highgpu-{n}g" for n in (1, 2, 4)}
NEVER_ON_DEMAND = {"a3-ultragpu-8g", "a3-ultragpu-8g-nolssd", "a4-highgpu-8g"}
# A GPU is billed by Google's name for it; ours also says how it is built.
GPU_NAMES = {
    "A100-40GB GPU": "A100-SXM-40GB",
    "A100-80GB GPU": "A100-SXM-80GB",
    "B200 slice": "B200-SXM-180GB",
    "H100-80GB GPU": "H100-SXM-80GB",
    "H100-80GB-Mega GPU": "H100-SXM-80GB",
    "H200-141GB GPU": "H200-SXM-141GB",
    "L4 GPU": "L4",
    "P100 GPU": "P100-PCIE-16GB",
    "P4 GPU": "P4",
    "RTX-PRO-6000 GPU": "RTX-PRO-6000-Server",
    "T4 GPU": "T4",
    "V100 GPU": "V100-SXM-16GB",
}


def kinds(machine: MachineType) -> list[SkuKind]:
    return [kind_of(component) for component in machine.needs]


@BY_MACHINE
def test_a_machine_is_billed_by_host_gpu_and_disks_or_by_slices(machine):
    disks = [SkuKind.SSD] if machine.instance.local_ssd_bytes else []
    assert kinds(machine) in ([SkuKind.CORE, SkuKind.RAM, SkuKind.GPU, *disks], [SkuKind.SLICE])
    (gpu,) = (name for name in machine.needs if kind_of(name) in (SkuKind.GPU, SkuKind.SLICE))
    assert resolve_gpu(GPU_NAMES[gpu]).name == machine.instance.gpu


@BY_MACHINE
def test_amounts_are_those_of_the_instance_type(machine):
    instance = machine.instance
    amounts = {kind_of(name): float(amount) for name, amount in machine.needs.items()}
    expected = {
        SkuKind.CORE: instance.vcpus,
        SkuKind.RAM: instance.memory_bytes / GIB,
        SkuKind.GPU: instance.num_gpus,
        SkuKind.SLICE: instance.num_gpus,
        SkuKind.SSD: instance.local_ssd_bytes / GB,  # what the tables call 375 GB is billed as 375 GiB
    }
    assert amounts == {kind: expected[kind] for kind in amounts}


@BY_MACHINE
def test_regions_are_regions(machine):
    assert len(set(machine.regions)) == len(machine.regions)
    assert list(machine.regions) == sorted(machine.regions)
    assert all(REGION.fullmatch(region) for region in machine.regions)


@BY_MACHINE
def test_host_and_family_agree(machine):
    family = machine.instance.instance_type.split("-")[0].upper()
    hosts = {name.split(" ")[0] for name in machine.needs if kind_of(name) in (SkuKind.CORE, SkuKind.RAM)}
    assert len(hosts) <= 1
    assert all(host.split("-")[0] == family for host in hosts)


def test_markets_are_limited_where_google_limits_them():
    limited = {name: m.markets for name, m in MACHINES.items() if m.markets != tuple(Market)}
    assert set(limited) == SPOT_ONLY | NEVER_ON_DEMAND
    for name, markets in limited.items():
        assert Market.ON_DEMAND not in markets
        assert Market.SPOT in markets
        assert (Market.COMMIT_1Y in markets) == (name in NEVER_ON_DEMAND)


def test_every_component_is_needed_by_some_machine():
    assert {name for machine in MACHINES.values() for name in machine.needs} == set(components())


def test_rows_have_source_and_date_and_are_sorted():
    with catalog_path(MACHINE_FILE).open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert all(date(2026, 1, 1) <= date.fromisoformat(row["as_of"]) <= date(2026, 11, 21) for row in table)
    assert all("@" in row["source"] for row in table)
    assert [row["machine_type"] for row in table] == sorted(MACHINES)


def test_the_snapshot_prices_machines_only_where_they_exist():
    for offer in read_offers(catalog_path("prices/gcp.csv"), INSTANCES):
        machine = MACHINES[offer.instance_type]
        assert offer.region in machine.regions, offer
        assert offer.market in machine.markets, offer


@pytest.mark.shared
@needs_shared
def test_regions_are_those_of_the_collected_tables():
    (column,) = (name for name in rows("gcp_machine_types.csv")[0] if name.startswith("regions_available"))
    for row in rows("gcp_machine_types.csv"):
        if machine := MACHINES.get(row["machine_type"]):
            assert "|".join(machine.regions) == row[column]
    zones = {(row["gpu"], row["region"]) for row in rows("gcp_attached_gpu.csv")}
    for name, machine in MACHINES.items():
        if "+" in name:
            gpu = name.rpartition("x")[2]
            assert set(machine.regions) == {region for model, region in zones if model == gpu}
