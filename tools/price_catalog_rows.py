"""Rows of the price catalog while it is built, and the checks on prices."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from advisor.core.gpus import provider_gpu
from advisor.core.units import GB, GIB
from advisor.pricing.instance_types import InstanceType, price_includes
from advisor.pricing.sources.gcp.skus import MachineType

ON_DEMAND, SPOT = "on-demand", "spot"
# AWS lets no spot price fall below a tenth of on-demand: a quote there says that nobody asked.
FLOOR_FRACTION = 0.1001
# Sources round spot prices to four decimals: that much above on-demand is still equal to it.
ROUNDING = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """One row of prices/PROVIDER.csv; fields are its columns."""

    provider: str
    instance_type: str
    region: str
    zone: str = ""
    market: str
    usd_per_h: str
    retrieved_at: str
    source: str

    @property
    def what(self) -> str:
        """The row in words, for the list of what was left out."""
        return f"{self.instance_type} {self.zone or self.region}"


@dataclass(slots=True)
class CatalogRows:
    """What is being built; ``dropped`` holds pairs of what was left out and why."""

    instances: list[InstanceType] = field(default_factory=list)
    machines: list[MachineType] = field(default_factory=list)
    prices: list[PriceRow] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)

    def drop(self, what: str, reason: str) -> None:
        """Notes that something was left out."""
        self.dropped.append((what, reason))


def read_csv(path: Path) -> list[dict[str, str]]:
    """All rows of a CSV file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def instance_type(
    *,
    provider: str,
    name: str,
    gpu_name: str,
    gpu_memory: str,
    num_gpus: int,
    vcpus: int,
    memory_gib: float,
    network_gbps: float | None = None,
    local_ssd_gb: int = 0,
    architecture: str = "x86_64",
    minimum_billed_s: float,
    source: str,
    as_of: date,
) -> InstanceType:
    """A machine from a cloud's own units and names.

    Raises:
        UnknownGpuError: the catalog does not know the GPU.
    """
    memory_bytes, local_ssd_bytes = round(memory_gib * GIB), local_ssd_gb * GB
    return InstanceType(
        provider=provider,
        instance_type=name,
        gpu=provider_gpu(provider, gpu_name, gpu_memory).name,
        num_gpus=num_gpus,
        vcpus=vcpus,
        memory_bytes=memory_bytes,
        gpu_memory=gpu_memory,
        network_bits_per_s=None if network_gbps is None else round(network_gbps * 1e9),
        local_ssd_bytes=local_ssd_bytes,
        architecture=architecture,
        minimum_billed_s=minimum_billed_s,
        includes=price_includes(
            vcpus=vcpus, memory_bytes=memory_bytes, local_ssd_bytes=local_ssd_bytes, architecture=architecture
        ),
        source=source,
        as_of=as_of,
    )


def check_prices(rows: CatalogRows) -> None:
    """Drops, with the reason, prices that would mislead: they must not win a ranking.

    Raises:
        ValueError: a price is not above 0 or is there twice.
    """
    known = {instance.key for instance in rows.instances}
    on_demand = {
        (row.provider, row.instance_type, row.region): float(row.usd_per_h)
        for row in rows.prices
        if row.market == ON_DEMAND
    }
    kept = []
    for row in rows.prices:
        if not float(row.usd_per_h) > 0:
            raise ValueError(f"price of {row.what} is {row.usd_per_h}: it must be above 0")
        reason = _fault(row, on_demand.get((row.provider, row.instance_type, row.region)))
        if (row.provider, row.instance_type) not in known:
            reason = f"{row.provider} prices of types that the catalog does not hold"
        if reason:
            rows.drop(row.what, reason)
        else:
            kept.append(row)
    _refuse_doubles(kept)
    rows.prices[:] = kept


def _fault(row: PriceRow, on_demand_usd_per_h: float | None) -> str | None:
    if row.market != SPOT:
        return None
    if on_demand_usd_per_h is None:
        return f"{row.provider} spot prices without an on-demand price to check against"
    fraction = float(row.usd_per_h) / on_demand_usd_per_h
    if fraction > 1 + ROUNDING:
        return f"{row.provider} spot prices above on-demand"
    if row.provider == "aws" and fraction <= FLOOR_FRACTION:
        return "aws spot prices at the floor of 10 % of on-demand (no demand)"
    return None


def _refuse_doubles(rows: Sequence[PriceRow]) -> None:
    keys = Counter((r.provider, r.instance_type, r.region, r.zone, r.market) for r in rows)
    if doubles := [key for key, count in keys.items() if count > 1]:
        raise ValueError(f"priced twice: {doubles}")
