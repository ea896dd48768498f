"""What disks, objects and data that leaves a cloud cost: ``catalogs/storage.csv``.

What has no row is unknown, never free: it costs the dearest rate of its kind that the provider is known to
ask. Sizes are in GiB (2^30 bytes): both clouds bill by them, AWS under the name of GB.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache

from advisor.core.errors import CatalogError
from advisor.core.globs import is_any, same_name
from advisor.core.gpus import catalog_path
from advisor.core.iterables import grouped
from advisor.pricing.instance_types import read_as


class RateKind(StrEnum):
    """What is paid for.

    A block-storage rate is of the general-purpose SSD that a machine boots from; an egress-region rate is to
    another region of the provider.
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
class StorageRate:
    """A price of one unit, and up to which amount it holds; a row of the file."""

    provider: str
    region: str
    """A name or glob such as ``"us-*"``."""
    kind: RateKind
    to_region: str = "*"
    """Where data goes, likewise; for egress between regions alone."""
    up_to_gib: float
    """Infinite if there is no limit; the next tier goes on from there."""
    usd: float
    """Of one unit of the kind, before tax."""
    source: str
    as_of: date
    """When it was true; the start of the window where only a window is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCharge:
    """What an amount costs."""

    usd: float
    rate: StorageRate
    """That the amount begins at."""
    stand_in: StorageRate | None
    """The dearest known rate, which what has no rate of its own costs; None where all has one."""


def charge(
    rates: Sequence[StorageRate],
    kind: RateKind,
    provider: str,
    region: str,
    *,
    gib: float,
    to_region: str = "",
) -> StorageCharge:
    """What an amount costs in a region (a month of what is kept); the dearest known where no rate reaches.

    An empty region is unknown; ``to_region`` is for egress between regions. Raises CatalogError: no rate of
    this kind is known at all.
    """
    tiers = rates_at(rates, kind, provider, region, to_region)
    reached_gib = min(gib, tiers[-1].up_to_gib) if tiers else 0.0
    usd = usd_of(tiers, reached_gib) or 0.0
    if tiers and reached_gib == gib:
        return StorageCharge(usd=usd, rate=tiers[0], stand_in=None)
    dearest = dearest_rate(rates, kind, provider)
    usd += (gib - reached_gib) * dearest.usd
    return StorageCharge(usd=usd, rate=tiers[0] if tiers else dearest, stand_in=dearest)


def dearest_rate(rates: Sequence[StorageRate], kind: RateKind, provider: str) -> StorageRate:
    """The dearest known of a provider, or else of all. Raises CatalogError: none of this kind is known."""
    known = [rate for rate in rates if rate.kind is kind]
    if not known:
        raise CatalogError(f"no rate of {kind} is known: install gpu-advisor anew, or pass load_rates().")
    own = [rate for rate in known if same_name(rate.provider, provider)]
    return max(own or known, key=lambda rate: rate.usd)


def usd_of(tiers: Sequence[StorageRate], gib: float) -> float | None:
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


def rates_at(
    rates: Sequence[StorageRate], kind: RateKind, provider: str, region: str, to_region: str = ""
) -> tuple[StorageRate, ...]:
    """The tiers of a region, lowest first, by the first glob that matches; empty if the catalog lacks it."""
    matching = (
        rate
        for rate in rates
        if rate.kind is kind
        and same_name(rate.provider, provider)
        and is_any([rate.region], region)
        and is_any([rate.to_region], to_region)
    )
    # What the tiers of one price have in common.
    series = grouped(matching, lambda rate: (rate.region, rate.to_region, rate.source))
    return tuple(next(iter(series.values()), ()))


@cache
def load_rates() -> tuple[StorageRate, ...]:
    """The shipped rates. Raises CatalogError: the file is missing or broken."""
    return read_as(catalog_path("storage.csv"), StorageRate)


DISKS_FILE = "disks.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRates:
    """What the general-purpose disk of a provider reads and writes."""

    provider: str
    disk: str
    base_bytes_per_s: float
    """Of any size."""
    bytes_per_s_of_a_gib: float
    """For each GiB more, up to ``most_bytes_per_s``."""
    most_bytes_per_s: float
    source: str
    as_of: date


def disk_bytes_per_s(provider: str, gib: float) -> float:
    """What the general-purpose disk of so many GiB reads and writes.

    The slowest disk where the provider's is unknown. Raises CatalogError: the file is missing or broken.
    """
    known = next((rate for rate in load_disks() if rate.provider == provider), None)
    if known is None:
        return min(rate.base_bytes_per_s for rate in load_disks())
    return min(known.base_bytes_per_s + known.bytes_per_s_of_a_gib * gib, known.most_bytes_per_s)


@cache
def load_disks() -> tuple[DiskRates, ...]:
    """The shipped disks. Raises CatalogError: the file is missing or broken."""
    return read_as(catalog_path(DISKS_FILE), DiskRates)
