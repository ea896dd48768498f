"""Every row of what boards and machines exchange over: dated, sourced, and of some machine."""

import math
import re
from dataclasses import asdict
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from advisor.core.fabrics import Board, RentedFabric, load_fabrics, machine_of
from advisor.core.globs import is_any
from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.values import Link, Network
from advisor.pricing import providers
from advisor.pricing.expected_prices import RATIO_FILE, Ratio
from advisor.pricing.instance_types import INSTANCE_FILE, InstanceType, load_instances, read_as
from advisor.pricing.node_counts import fabric_of
from advisor.pricing.price_checks import BOUNDS_FILE, PriceBounds
from advisor.pricing.providers import PriceAccess, RowKind, load_forms, load_providers
from advisor.pricing.spot_odds import (
    INTERRUPTION_FILE,
    SPOT_ODDS_FILE,
    START_ODDS_FILE,
    Interruptions,
    SpotOdds,
    StartOdds,
)
from advisor.pricing.storage_rates import DISKS_FILE, DiskRates
from recommender.queue.waits import WAITS_FILE, PooledWait

FABRICS = load_fabrics()
# Several of the provider's own, which the catalog lists; of others it lists none.
LISTED = {provider for provider, _ in load_instances()}
# Named by Google's tables, and not in ours.
COMING = {"a4x-highgpu-4g"}


def name(row: Board | RentedFabric) -> str:
    return " ".join(row.gpus if isinstance(row, Board) else row.instance_types)


@pytest.mark.parametrize("row", [*FABRICS.boards, *FABRICS.machines], ids=name)
def test_every_row_is_dated_and_sourced(row):
    assert date(2020, 1, 1) <= row.as_of <= datetime.now(UTC).date()
    assert len(row.source) > 10


@pytest.mark.parametrize("board", FABRICS.boards, ids=name)
def test_boards_have_nvlink_or_are_read_over_pcie(board):
    is_bus = board.link is Link.PCIE
    for glob in board.gpus:
        members = [gpu for gpu in load_gpus().values() if is_any([glob], gpu.name)]
        assert members
        assert all(bool(gpu.nvlink_bytes_per_s) is not is_bus for gpu in members)
    assert board.peers == 1 if is_bus else 2 <= board.peers <= 8


@pytest.mark.parametrize("machine", FABRICS.machines, ids=name)
def test_machines_are_somebodys_and_counted_once(machine):
    assert machine.provider in load_providers()
    if machine.provider in LISTED:
        for glob in set(machine.instance_types) - COMING:
            types = [kind for owner, kind in load_instances() if owner == machine.provider]
            assert any(
                is_any([glob], kind) and machine_of(machine.provider, kind) is machine for kind in types
            )


@pytest.mark.parametrize("machine", FABRICS.machines, ids=name)
def test_rates_are_of_networks_that_there_are(machine):
    bits_per_s = machine.network_bits_per_s
    assert bits_per_s is None or 10e9 <= bits_per_s <= 6400e9
    if machine.network not in (Network.TCP, Network.EFA):
        assert bits_per_s is not None
        assert bits_per_s >= 56e9
    assert machine.link_bytes_per_s is None or 25e9 <= machine.link_bytes_per_s <= 1e12


def test_every_machine_with_several_gpus_has_a_network():
    """A layout over several nodes then rests on a rate that somebody documented."""
    without = [
        instance.key
        for instance in load_instances().values()
        if instance.num_gpus > 1
        and fabric_of(*instance.key, load_gpus()[instance.gpu]).network_bytes_per_s is None
    ]
    assert without == []


TABLES: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    BOUNDS_FILE: (PriceBounds, ("gpu",)),
    DISKS_FILE: (DiskRates, ("provider",)),
    providers.FORM_FILE: (providers.GpuForm, ("provider", "instance_types")),
    INSTANCE_FILE: (InstanceType, ("provider", "instance_type")),
    INTERRUPTION_FILE: (Interruptions, ("instance_type", "region")),
    providers.PROVIDER_FILE: (providers.Provider, ("name",)),
    providers.QUOTAS_FILE: (providers.NamedQuota, ("provider", "quota")),
    RATIO_FILE: (Ratio, ("provider", "gpu")),
    providers.REGION_FILE: (providers.Region, ("name",)),
    SPOT_ODDS_FILE: (SpotOdds, ("size", "age")),
    START_ODDS_FILE: (StartOdds, ("market", "size", "age")),
    WAITS_FILE: (PooledWait, ("size", "walltime")),
}
MAY_BE_0 = {"p10_s", "p25_s", "p50_s", "low_pct", "bytes_per_s_of_a_gib", "is_opt_in", "local_ssd_bytes"}
MAY_BE_EMPTY = {"left_out_locations", "community_locations", "spot_is"}
SHARES = {"p_at_once", "p90"}
ASCENDING = (
    ("low_pct", "high_pct"),
    ("base_bytes_per_s", "most_bytes_per_s"),
    ("lowest_usd_per_gpu_h", "highest_usd_per_gpu_h"),
    ("later_p50_s", "later_p90_s"),
    ("p10", "p50"),
    ("p50", "p90"),
    *pairwise(f"p{name}_s" for name in (10, 25, 50, 75, 90, 95, 99)),
)


@pytest.mark.parametrize(("file", "kind", "key"), [(file, *of) for file, of in TABLES.items()], ids=TABLES)
def test_each_row_is_whole_and_there_once(file, kind, key):
    rows = [asdict(row) for row in read_as(catalog_path(file), kind)]
    assert rows
    assert len({tuple(row[name] for name in key) for row in rows}) == len(rows)
    for row in rows:
        assert all(value not in ("", ()) for name, value in row.items() if name not in MAY_BE_EMPTY), row
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        assert all(math.isfinite(value) and value >= 0 for value in numbers.values()), row
        assert all(value > 0 for name, value in numbers.items() if name not in MAY_BE_0), row
        assert all(row[share] <= 1 for share in SHARES & row.keys()), row
        for low, high in ASCENDING:
            assert low not in row or row[low] <= row[high], row


RENTERS = load_providers()


@pytest.mark.parametrize("row", [*RENTERS.values(), *load_forms()], ids=lambda row: row.source[:20])
def test_every_provider_is_dated_and_sourced(row):
    assert date(2020, 1, 1) <= row.as_of <= datetime.now(UTC).date()
    assert len(row.source) > 10


@pytest.mark.parametrize("provider", RENTERS.values(), ids=lambda provider: provider.name)
def test_every_provider_bills_in_a_way_that_can_be(provider):
    assert provider.name == provider.name.lower()
    assert 1 <= provider.billed_step_s <= 3600
    assert 60 <= provider.minimum_billed_s <= 3600
    assert (provider.known_billed_step_s is None) is (provider.known_minimum_billed_s is None)
    assert provider.spot_floor_share is None or 0 < provider.spot_floor_share < 1


def test_names_mean_one_provider_each():
    assert len({provider.gpuhunt_name for provider in RENTERS.values()}) == len(RENTERS)
    foreign = {provider.gpuhunt_name for name, provider in RENTERS.items() if provider.gpuhunt_name != name}
    assert not foreign & RENTERS.keys()


def test_nobody_whose_terms_are_unknown_bills_less_than_anybody_whose_are_known():
    """What is not known never looks better than what is."""
    known = [provider for provider in RENTERS.values() if provider.known_minimum_billed_s is not None]
    for provider in (one for one in RENTERS.values() if one not in known):
        assert provider.minimum_billed_s == max(one.minimum_billed_s for one in known)
        assert provider.billed_step_s == max(one.billed_step_s for one in known)


def test_the_clouds_of_our_catalog_are_among_them():
    assert {provider for provider, _ in load_instances()} <= RENTERS.keys()


def test_hosts_of_a_marketplace_are_all_of_others():
    for provider in RENTERS.values():
        assert provider.machines is not RowKind.HOSTS or provider.community_locations == ("*",)


def test_forms_are_those_of_our_gpus_and_of_known_providers():
    words = {word for name in load_gpus() for word in name.split("-")}
    for row in load_forms():
        assert row.provider in RENTERS
        assert row.form in words & {"PCIE", "SXM", "NVL"}


def test_the_page_names_each_and_how_it_is_known():
    page = (Path(__file__).parents[2] / "docs/prices.md").read_text(encoding="utf-8")
    lines = {
        PriceAccess.PUBLISHED: next(
            line for line in page.splitlines() if "publishes a catalog a day" in line
        ),
        PriceAccess.ASKED: next(line for line in page.splitlines() if "asks them directly" in line),
    }
    for name, provider in RENTERS.items():
        assert re.search(rf"\b{name}\b", lines[provider.access]), name
