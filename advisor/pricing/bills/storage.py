"""What disks, objects and data that leaves a cloud cost: ``catalogs/storage.csv``.

A region without a row is unknown, never free. Sizes are in GiB (2^30 bytes): both clouds bill by them, AWS
under the name of GB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from advisor.core.gpus import catalog_path
from advisor.pricing.catalog.csv_files import parse_date, positive, read_rows

COLUMNS = ("provider", "region", "kind", "up_to_gib", "usd", "unit", "source", "as_of")


class RateKind(StrEnum):
    """What is paid for.

    A block-storage rate is of the general-purpose SSD that a machine boots from; an egress-region rate is to
    another region of the same continent.
    """

    BLOCK_STORAGE = "block-storage"
    OBJECT_STORAGE = "object-storage"
    EGRESS_INTERNET = "egress-internet"
    EGRESS_REGION = "egress-region"

    @property
    def unit(self) -> str:
        """What one unit of it is: what is kept is paid by the month, what moves is paid once."""
        return "GiB-month" if self in (RateKind.BLOCK_STORAGE, RateKind.OBJECT_STORAGE) else "GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A price of one unit, and up to which amount it holds.

    Attributes:
        region: a name or glob such as ``"us-*"``.
        up_to_gib: infinite if there is no limit; the next tier goes on from there.
        usd: of one unit of the kind, before tax.
        as_of: when it was true; the start of the window where only a window is known.
    """

    provider: str
    region: str
    kind: RateKind
    up_to_gib: float
    usd: float
    source: str
    as_of: date


def usd_of(tiers: Sequence[Rate], gib: float) -> float | None:
    """Dollars for an amount (a month of it, for what is kept); None if the tiers do not reach that far.

    >>> usd_of([], 5.0) is None
    True
    """
    usd = below_gib = 0.0
    for tier in tiers:
        if gib <= below_gib:
            break
        usd += (min(gib, tier.up_to_gib) - below_gib) * tier.usd
        below_gib = tier.up_to_gib
    return usd if gib <= below_gib else None


def rates_at(rates: Sequence[Rate], kind: RateKind, provider: str, region: str) -> tuple[Rate, ...]:
    """The tiers of a region, lowest first, by the first glob that matches; empty if the catalog lacks it."""
    found = [
        rate
        for rate in rates
        if rate.kind is kind and rate.provider == provider and fnmatchcase(region, rate.region)
    ]
    return tuple(rate for rate in found if rate.region == found[0].region)


@cache
def load_rates() -> tuple[Rate, ...]:
    """The shipped rates.

    Raises:
        CatalogError: the file is missing or broken.
    """
    return read_rates(catalog_path("storage.csv"))


def read_rates(path: Path) -> tuple[Rate, ...]:
    """Rates of a file, in its order.

    Raises:
        CatalogError: the file is missing, a row is broken or double, or tiers do not ascend; it names
            file and line.
    """
    rates: list[Rate] = []
    reached: dict[tuple[str, ...], float] = {}

    def read_row(row: list[str]) -> None:
        rate, key = _rate(row), tuple(row[:3])
        if rate.up_to_gib <= reached.get(key, 0.0):
            raise ValueError(f"{' '.join(key)} is priced twice, or its tiers do not ascend")
        reached[key] = rate.up_to_gib
        rates.append(rate)

    read_rows(path, COLUMNS, read_row)
    return tuple(rates)


def _rate(row: Sequence[str]) -> Rate:
    provider, region, kind, up_to_gib, usd, unit, source, as_of = row
    if not all((provider, region, source)):
        raise ValueError("provider, region or source is empty")
    if unit != RateKind(kind).unit:
        raise ValueError(f"the unit of {kind} is {RateKind(kind).unit}, not {unit!r}")
    return Rate(
        provider=provider,
        region=region,
        kind=RateKind(kind),
        up_to_gib=positive("up_to_gib", float(up_to_gib)) if up_to_gib else math.inf,
        usd=positive("usd", float(usd)),
        source=source,
        as_of=parse_date(as_of),
    )
