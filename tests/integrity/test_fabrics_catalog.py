"""Every row of what boards and machines exchange over: dated, sourced, and of some machine."""

from datetime import UTC, date, datetime

import pytest

from advisor.core.fabrics import Board, RentedFabric, load_fabrics, machine_of
from advisor.core.globs import is_any
from advisor.core.gpus import load_gpus
from advisor.core.values import Link, Network
from advisor.pricing.instance_types import load_instances
from advisor.pricing.node_counts import fabric_of
from advisor.pricing.providers import load_providers

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
