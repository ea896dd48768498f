"""GCP machine types: what each is billed by and where it exists (``catalogs/gcp_machine_types.csv``)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

from advisor.core.gpus import catalog_path
from advisor.core.units import GIB
from advisor.core.values import Market
from advisor.pricing.catalog.csv_files import parse_date, read_rows
from advisor.pricing.catalog.instance_types import INSTANCE_FILE, InstanceKey, InstanceType, load_instances
from advisor.pricing.sources.gcp.skus import Kind, kind_of

PROVIDER = "gcp"
MACHINE_FILE = "gcp_machine_types.csv"
MACHINE_COLUMNS = ("machine_type", "components", "local_ssd_gib", "markets", "regions", "source", "as_of")
_SEPARATOR = "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """How Google bills an instance type, and where.

    Attributes:
        needs: how much of each component it is billed for: cores, GiB, GPUs.
        local_ssd_gib: disks it comes with, billed as a component of their own or with the rest.
        markets: on what terms Google starts it.
        regions: where some zone has it.
        source: of the regions, as is the date.
    """

    instance: InstanceType
    needs: Mapping[str, Decimal]
    local_ssd_gib: int
    markets: tuple[Market, ...]
    regions: tuple[str, ...]
    source: str
    as_of: date


@cache
def load_machines() -> tuple[MachineType, ...]:
    """The shipped machine types.

    Raises:
        CatalogError: a file is missing or a row is broken; it names file and line.
    """
    return read_machines(catalog_path(MACHINE_FILE), load_instances())


def read_machines(path: Path, instances: Mapping[InstanceKey, InstanceType]) -> tuple[MachineType, ...]:
    """Machine types of a file, joined to ``instances.csv``.

    Raises:
        CatalogError: the file is missing or a row is broken, double, or of a machine or component that
            nobody knows; it names file and line.
    """
    machines: dict[str, MachineType] = {}

    def read_row(row: list[str]) -> None:
        if row[0] in machines:
            raise ValueError(f"{row[0]!r} is listed twice")
        machines[row[0]] = _machine(row, instances)

    read_rows(path, MACHINE_COLUMNS, read_row)
    return tuple(machines.values())


def write_machines(path: Path, machines: Iterable[MachineType]) -> None:
    """Write a file that `read_machines` reads; terms that are not limited are left empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(MACHINE_COLUMNS)
        for machine in machines:
            markets = () if machine.markets == tuple(Market) else machine.markets
            lists = (_SEPARATOR.join(markets), _SEPARATOR.join(machine.regions))
            billed = (machine.instance.instance_type, _SEPARATOR.join(machine.needs), machine.local_ssd_gib)
            writer.writerow([*billed, *lists, machine.source, machine.as_of])


def _machine(row: list[str], instances: Mapping[InstanceKey, InstanceType]) -> MachineType:
    name, components, local_ssd_gib, markets, regions, source, as_of = row
    instance = instances.get((PROVIDER, name))
    if instance is None:
        raise ValueError(f"{PROVIDER} {name!r} is not in {INSTANCE_FILE}")
    if not (regions and source):
        raise ValueError("regions or source is empty")
    return MachineType(
        instance=instance,
        needs=needs_of(components.split(_SEPARATOR), instance, int(local_ssd_gib)),
        local_ssd_gib=int(local_ssd_gib),
        markets=tuple(map(Market, markets.split(_SEPARATOR))) if markets else tuple(Market),
        regions=tuple(regions.split(_SEPARATOR)),
        source=source,
        as_of=parse_date(as_of),
    )


def needs_of(components: Iterable[str], instance: InstanceType, local_ssd_gib: int) -> Mapping[str, Decimal]:
    """How much of each component a machine is billed for; what is unknown counts as none.

    Raises:
        ValueError: a component is unknown, or the machine has none of it.
    """
    amounts = {
        Kind.CORE: Decimal(instance.vcpus or 0),
        Kind.RAM: Decimal(instance.memory_bytes or 0) / GIB,
        Kind.GPU: Decimal(instance.num_gpus),
        Kind.SLICE: Decimal(instance.num_gpus),
        Kind.SSD: Decimal(local_ssd_gib),
    }
    needs = {component: amounts[kind_of(component)] for component in components}
    if not all(amount > 0 for amount in needs.values()):
        raise ValueError(f"{instance.instance_type} is billed by a component of which it has none")
    return needs
