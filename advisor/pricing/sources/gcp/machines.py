"""GCP machine types: what each is billed by and where it exists (``catalogs/gcp_machine_types.csv``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

from advisor.core.gpus import catalog_path
from advisor.core.units import GIB
from advisor.core.values import Market
from advisor.pricing.catalog.rows import read_rows
from advisor.pricing.sources.gcp.skus import Kind, kind_of
from advisor.pricing.sources.snapshot import InstanceKey, InstanceType, read_instances

PROVIDER = "gcp"
MACHINE_FILE = "gcp_machine_types.csv"
MACHINE_COLUMNS = ("machine_type", "components", "local_ssd_gib", "markets", "regions", "source", "as_of")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine type that GCP rents.

    Attributes:
        needs: how much of each component it is billed for: cores, GiB, GPUs.
        markets: on what terms Google starts it.
        regions: where some zone has it.
    """

    instance: InstanceType
    needs: Mapping[str, Decimal]
    markets: tuple[Market, ...]
    regions: tuple[str, ...]


@cache
def load_machines() -> tuple[Machine, ...]:
    """The shipped machine types.

    Raises:
        CatalogError: a file is missing or a row is broken; it names file and line.
    """
    return read_machines(catalog_path(MACHINE_FILE), read_instances(catalog_path("instances.csv")))


def read_machines(path: Path, instances: Mapping[InstanceKey, InstanceType]) -> tuple[Machine, ...]:
    """Machine types of a file, joined to ``instances.csv``.

    Raises:
        CatalogError: the file is missing or a row is broken, double, or of a machine or component that
            nobody knows; it names file and line.
    """
    machines: dict[str, Machine] = {}

    def read_row(row: list[str]) -> None:
        if row[0] in machines:
            raise ValueError(f"{row[0]!r} is listed twice")
        machines[row[0]] = _machine(row, instances)

    read_rows(path, MACHINE_COLUMNS, read_row)
    return tuple(machines.values())


def _machine(row: list[str], instances: Mapping[InstanceKey, InstanceType]) -> Machine:
    name, components, local_ssd_gib, markets, regions, source, as_of = row
    instance = instances.get((PROVIDER, name))
    if instance is None:
        raise ValueError(f"{PROVIDER} {name!r} is not in instances.csv")
    if not (regions and source):
        raise ValueError("regions or source is empty")
    date.fromisoformat(as_of)
    return Machine(
        instance=instance,
        needs=_needs(components.split("|"), instance, Decimal(local_ssd_gib)),
        markets=tuple(map(Market, markets.split("|"))) if markets else tuple(Market),
        regions=tuple(regions.split("|")),
    )


def _needs(components: list[str], instance: InstanceType, ssd_gib: Decimal) -> dict[str, Decimal]:
    amounts = {
        Kind.CORE: Decimal(instance.vcpus),
        Kind.RAM: Decimal(instance.memory_bytes) / GIB,
        Kind.GPU: Decimal(instance.num_gpus),
        Kind.SLICE: Decimal(instance.num_gpus),
        Kind.SSD: ssd_gib,
    }
    needs = {component: amounts[kind_of(component)] for component in components}
    if not all(amount > 0 for amount in needs.values()):
        raise ValueError(f"{instance.instance_type} is billed by a component of which it has none")
    return needs
