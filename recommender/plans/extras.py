"""What a cloud bills besides the machine: disks and data that moves; and the time data takes to arrive.

Data that lies in the machine's region is read where it is: it takes no money and no disk of its own. What
each epoch takes to read is part of the iteration (recommender/outcome/feeding.py).
Any other data is copied once to a disk of the machine, which stays while a spot machine is away. What leaves
a cloud is billed where it leaves, to another region or to the internet; sending data in costs nothing.
Gigabytes here are GiB (2^30 bytes), as clouds bill them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from advisor.core.findings import Finding
from advisor.core.findings.about_options import DataMoved, RateUnknown
from advisor.core.units import GIB, HOURS_PER_MONTH
from advisor.core.values import DataPlace, Quantiles
from advisor.pricing.storage_rates import RateKind, StorageRate, charge
from recommender.outcome.bill import MOVING, RESULT, STORAGE
from recommender.outcome.spot_history import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudTerms:
    """What a job needs of any cloud machine."""

    startup_s: float
    """Boot and installation."""
    boot_disk_gib: float = 0.0
    """Disk that the machine has anyway."""
    dataset_gib: float = 0.0
    """Data set, copied to a disk beside it before training starts."""
    result_gib: float = 0.0
    """What leaves over the internet at the end."""
    download_bits_per_s: float = 1e9
    """How fast the data set arrives."""
    wait_s: Quantiles | None = None
    """Until a machine is ours; None for what is known of machines of its class."""
    data: DataPlace | None = None
    """Where it lies; None if unknown, which counts as outside the clouds."""
    history: Mapping[str, Watched] = field(default_factory=dict)
    """What was seen of spot machines, by instance type; ``""`` is any."""

    def download_s(self, gib: float) -> float:
        """Seconds until so many GiB are there."""
        return gib * GIB * 8 / self.download_bits_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """As in ``Plan``, of a machine at one place."""

    storage_usd_per_h: float = 0.0
    egress_usd: float = 0.0
    transfer_usd: float = 0.0
    transfer_gib: float = 0.0
    download_s: float = 0.0
    rates: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()
    """What moved, and which rates stand in for unknown ones."""


def extras_at(
    provider: str, region: str, terms: CloudTerms, catalog: Sequence[StorageRate], num_nodes: int = 1
) -> Extras:
    """What a job pays in a region of a cloud for disks and for data that moves.

    Each node has a disk and a copy of the data of its own; the result leaves once.

    Raises CatalogError: something is needed of which no rate is known at all.
    """
    data = terms.data
    is_there = data is not None and data.is_at(provider, region)
    each_gib = 0.0 if is_there else terms.dataset_gib
    moved_gib, disk_gib = each_gib * num_nodes, (terms.boot_disk_gib + each_gib) * num_nodes
    # A cloud serves all nodes at once; over a line of one's own the copies come one after the other.
    at_once = data is not None and data.provider is not None
    needs = (
        _Need(STORAGE, RateKind.BLOCK_STORAGE, disk_gib, provider, region),
        _Need(RESULT, RateKind.EGRESS_INTERNET, terms.result_gib, provider, region),
        *_moving(data, moved_gib, provider, region),
    )
    download_s = terms.download_s(each_gib if at_once else moved_gib)
    return _extras(needs, terms, moved_gib, catalog, download_s=download_s)


def extras_of_own(terms: CloudTerms, catalog: Sequence[StorageRate]) -> Extras:
    """What data costs that comes from a cloud to a machine of one's own; any other data is there already.

    Raises CatalogError: no rate of egress is known at all.
    """
    data = terms.data
    moved_gib = 0.0 if data is None or data.provider is None else terms.dataset_gib
    needs = _moving(data, moved_gib)
    return _extras(needs, terms, moved_gib, catalog, download_s=terms.download_s(moved_gib))


class _Need(NamedTuple):
    """A line of the bill before it has a price."""

    name: str
    kind: RateKind
    gib: float
    provider: str
    region: str | None
    to_region: str = ""


def _moving(
    data: DataPlace | None, gib: float, provider: str = "", to_region: str = ""
) -> tuple[()] | tuple[_Need]:
    """What the cloud of the data is paid for; nothing where the data lies with its owner."""
    if data is None or data.provider is None:
        return ()
    kind = RateKind.EGRESS_REGION if data.provider == provider else RateKind.EGRESS_INTERNET
    return (_Need(MOVING, kind, gib, data.provider, data.region, to_region),)


def _extras(
    needs: Sequence[_Need],
    terms: CloudTerms,
    moved_gib: float,
    catalog: Sequence[StorageRate],
    *,
    download_s: float,
) -> Extras:
    paid = [
        (one, charge(catalog, one.kind, one.provider, one.region or "", gib=one.gib, to_region=one.to_region))
        for one in needs
        if one.gib
    ]
    usd = {need.name: charged.usd for need, charged in paid}
    moved_usd = usd.get(MOVING, 0.0)
    notes: list[Finding] = [
        RateUnknown(
            line=need.name,
            provider=need.provider,
            region=need.region,
            usd=stand_in.usd,
            unit=stand_in.kind.unit,
            dearest_provider=stand_in.provider,
            dearest_region=stand_in.region,
        )
        for need, charged in paid
        if (stand_in := charged.stand_in) is not None
    ]
    if terms.data is not None and terms.dataset_gib:
        notes.append(DataMoved(place=terms.data.name, gib=moved_gib, usd=moved_usd, time_s=download_s))
    return Extras(
        storage_usd_per_h=usd.get(STORAGE, 0.0) / HOURS_PER_MONTH,
        egress_usd=usd.get(RESULT, 0.0),
        transfer_usd=moved_usd,
        transfer_gib=moved_gib,
        download_s=download_s,
        rates={need.name: _in_words(need.gib, charged.rate) for need, charged in paid},
        notes=tuple(notes),
    )


def _in_words(gib: float, rate: StorageRate) -> str:
    """``"100 GiB at 0.08 USD per GiB-month; SOURCE, 2025-01-01"``."""
    at = "from" if gib > rate.up_to_gib else "at"
    return f"{gib:g} GiB {at} {rate.usd:g} USD per {rate.kind.unit}; {rate.source}, {rate.as_of}"
