"""What a cloud bills besides the machine: disks and data that leaves; and the time data takes to arrive.

Gigabytes here are GiB (2^30 bytes), as clouds bill them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from advisor.core.arguments import check_kind, check_number
from advisor.core.limits import MAX_GB, MAX_PLANNED_S
from advisor.core.units import GIB, HOURS_PER_MONTH
from advisor.core.values import Quantiles
from advisor.pricing.bills.storage import Rate, RateKind, rates_at, usd_of
from recommender.availability.series import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudTerms:
    """What a job needs of any cloud machine.

    Attributes:
        startup_s: boot and installation.
        boot_disk_gib: disk that the machine has anyway.
        dataset_gib: data set, downloaded to a disk beside it before training starts.
        result_gib: what leaves over the internet at the end.
        download_bits_per_s: how fast the data set arrives.
        wait_s: until a machine is ours; None for what is known of machines of its class.
        history: what was seen of spot machines, by instance type; ``""`` is any.

    Raises:
        InputError: a figure is negative or no number; the download needs a speed above 0; the wait is no
            `Quantiles`.
    """

    startup_s: float
    boot_disk_gib: float = 0.0
    dataset_gib: float = 0.0
    result_gib: float = 0.0
    download_bits_per_s: float = 1e9
    wait_s: Quantiles | None = None
    history: Mapping[str, Watched] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_number("startup_s", self.startup_s, least=0, most=MAX_PLANNED_S)
        for name in ("boot_disk_gib", "dataset_gib", "result_gib"):
            check_number(name, getattr(self, name), least=0, most=MAX_GB)
        check_number("download_bits_per_s", self.download_bits_per_s, above=0)
        check_kind("wait_s", self.wait_s, Quantiles | None, "such as Quantiles(p50=60, p90=600)")

    @property
    def download_s(self) -> float:
        """Seconds until the data set is there."""
        return self.dataset_gib * GIB * 8 / self.download_bits_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """As in ``Plan``: None where the catalog has no rate, 0 where nothing is needed."""

    storage_usd_per_h: float | None
    egress_usd: float | None
    rates: Mapping[str, str]


def extras_at(provider: str, region: str, terms: CloudTerms, catalog: Sequence[Rate]) -> Extras:
    """What a job pays for disks and egress in a region."""
    disk_gib = terms.boot_disk_gib + terms.dataset_gib
    disks = rates_at(catalog, RateKind.BLOCK_STORAGE, provider, region)
    egress = rates_at(catalog, RateKind.EGRESS_INTERNET, provider, region)
    disk_usd_per_month = _usd_of(disks, disk_gib)
    return Extras(
        storage_usd_per_h=None if disk_usd_per_month is None else disk_usd_per_month / HOURS_PER_MONTH,
        egress_usd=_usd_of(egress, terms.result_gib),
        rates=_in_words("storage", disks, disk_gib) | _in_words("data transfer", egress, terms.result_gib),
    )


def _usd_of(tiers: Sequence[Rate], gib: float) -> float | None:
    return usd_of(tiers, gib) if gib else 0.0


def _in_words(name: str, tiers: Sequence[Rate], gib: float) -> dict[str, str]:
    """``"100 GiB at 0.08 USD per GiB-month; SOURCE, 2025-01-01"`` by name; nothing where nothing is known."""
    if _usd_of(tiers, gib) in (None, 0.0):
        return {}
    first = tiers[0]
    at = "from" if gib > first.up_to_gib else "at"
    return {name: f"{gib:g} GiB {at} {first.usd:g} USD per {first.kind.unit}; {first.source}, {first.as_of}"}
