"""Dated price files that ship with the package: ``instances.csv`` and ``prices/*.csv``.

Read by the csv module, since this lies on the path of ``recommend``'s start-up. Columns are listed
here by hand, so that the values can change without the format. A price of 0 is unknown, not free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Market, Offer
from advisor.formats.user_files import at_home
from advisor.pricing.catalog.rows import parse_date, positive, read_rows
from advisor.pricing.sources.protocol import (
    Capabilities,
    Credentials,
    Freshness,
    Part,
    check_options,
    freshness_of,
)
from advisor.pricing.sources.query import OfferQuery

INSTANCE_COLUMNS = (
    "provider", "instance_type", "gpu", "num_gpus", "vcpus", "memory_bytes", "gpu_memory",
    "network_bits_per_s", "local_ssd_bytes", "architecture", "minimum_billed_s", "includes",
    "source", "as_of",
)  # fmt: skip
PRICE_COLUMNS = (
    "provider", "instance_type", "region", "zone", "market", "usd_per_h", "retrieved_at", "source",
)  # fmt: skip
PRICE_FILES = ("prices/aws.csv", "prices/gcp.csv")

InstanceKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """A machine that a cloud rents, without its price.

    Attributes:
        gpu: catalog name.
        gpu_memory: of one GPU, as the cloud documents it (``"22.35 GiB"``).
        network_bits_per_s: baseline, None where the cloud documents none.
        local_ssd_bytes: disks whose price the machine's price includes.
        architecture: of the CPU, ``x86_64`` or ``arm64``.
        minimum_billed_s: least time billed.
        includes: what the price covers besides GPUs, in words.
    """

    provider: str
    instance_type: str
    gpu: str
    num_gpus: int
    vcpus: int
    memory_bytes: int
    gpu_memory: str
    network_bits_per_s: float | None
    local_ssd_bytes: int
    architecture: str
    minimum_billed_s: float
    includes: tuple[str, ...]
    source: str
    as_of: date


class SnapshotSource:
    """The shipped price files, or others of the same form.

    Args:
        folder: holds ``instances.csv`` and ``prices/*.csv``; None for what ships, or what
            ``advisor catalog build`` put in its place.
    """

    name = "snapshot"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def capabilities(self) -> Capabilities:
        """Whatever the files hold."""
        return Capabilities(providers=self._providers(), markets=tuple(Market))

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """Offers that match in the order of the files, a part for each provider.

        Raises:
            CatalogError: a file is missing or a row is broken; it names file and line.
        """
        for provider in self._providers():
            held = (offer for offer in self._all() if offer.provider == provider)
            yield Part(scope=provider, offers=tuple(filter(query.matches, held)))

    def freshness(self) -> tuple[Freshness, ...]:
        """Age of what is held, by provider."""
        return freshness_of(self._all())

    def credentials(self) -> Credentials:
        """Files need none."""
        return Credentials.NOT_NEEDED

    def _providers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(offer.provider for offer in self._all()))

    def _all(self) -> tuple[Offer, ...]:
        instances, prices = snapshot_files(self._folder)
        if not prices:
            raise CatalogError(f"{str(self._folder)!r} has no price files: name another folder.")
        return _read_all(instances, prices, tuple(map(_changed_at, (instances, *prices))))


def snapshot_source(options: Mapping[str, Any]) -> SnapshotSource:
    """The entry point: option ``folder`` names another snapshot than the shipped one.

    Raises:
        ConfigError: another option is given.
    """
    check_options("snapshot", options, ("folder",))
    folder = options.get("folder")
    return SnapshotSource(None if folder is None else at_home(str(folder)))


def snapshot_files(folder: Path | None) -> tuple[Path, tuple[Path, ...]]:
    """The file of instance types and the price files of a folder, or the shipped ones."""
    if folder is None:
        return catalog_path("instances.csv"), tuple(catalog_path(name) for name in PRICE_FILES)
    return folder / "instances.csv", tuple(sorted((folder / "prices").glob("*.csv")))


def _changed_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=4)
def _read_all(
    instances: Path,
    prices: tuple[Path, ...],
    changed_at: tuple[int | None, ...],  # noqa: ARG001
) -> tuple[Offer, ...]:
    """All offers, read once for as long as the files do not change."""
    known = read_instances(instances)
    return tuple(offer for path in prices for offer in read_offers(path, known))


def read_instances(path: Path) -> dict[InstanceKey, InstanceType]:
    """Instance types by provider and name.

    Raises:
        CatalogError: the file is missing or a row is broken or double; it names file and line.
    """
    types: dict[InstanceKey, InstanceType] = {}

    def read_row(row: list[str]) -> None:
        instance = _instance(row)
        key = (instance.provider, instance.instance_type)
        if key in types:
            raise ValueError(f"{key[1]!r} is listed twice")
        types[key] = instance

    read_rows(path, INSTANCE_COLUMNS, read_row)
    return types


def read_offers(path: Path, instances: Mapping[InstanceKey, InstanceType]) -> list[Offer]:
    """Offers of one price file, joined to their instance types.

    Raises:
        CatalogError: the file is missing or a row is broken, double, of an unknown instance type
            or not priced above 0; it names file and line.
    """
    offers: list[Offer] = []
    seen: set[tuple[str, ...]] = set()

    def read_row(row: list[str]) -> None:
        key = tuple(row[:5])
        if key in seen:
            raise ValueError(f"{' '.join(filter(None, key))} is priced twice")
        seen.add(key)
        offers.append(_offer(row, instances))

    read_rows(path, PRICE_COLUMNS, read_row)
    return offers


def _instance(row: Sequence[str]) -> InstanceType:
    (
        provider, name, gpu, num_gpus, vcpus, memory_bytes, gpu_memory, network, ssd_bytes,
        architecture, minimum_s, includes, source, as_of,
    ) = row  # fmt: skip
    if not all((provider, name, gpu, source)):
        raise ValueError("provider, instance_type, gpu or source is empty")
    return InstanceType(
        provider=provider,
        instance_type=name,
        gpu=gpu,
        num_gpus=int(positive("num_gpus", int(num_gpus))),
        vcpus=int(positive("vcpus", int(vcpus))),
        memory_bytes=int(positive("memory_bytes", int(memory_bytes))),
        gpu_memory=gpu_memory,
        network_bits_per_s=positive("network_bits_per_s", float(network)) if network else None,
        local_ssd_bytes=int(ssd_bytes),
        architecture=architecture,
        minimum_billed_s=positive("minimum_billed_s", float(minimum_s)),
        includes=tuple(includes.split(", ")),
        source=source,
        as_of=parse_date(as_of),
    )


def _offer(row: Sequence[str], instances: Mapping[InstanceKey, InstanceType]) -> Offer:
    provider, instance_type, region, zone, market, usd_per_h, retrieved_at, source = row
    instance = instances.get((provider, instance_type))
    if instance is None:
        raise ValueError(f"{provider} {instance_type!r} is not in instances.csv")
    if not (region and source):
        raise ValueError("region or source is empty")
    return Offer(
        provider=provider,
        instance_type=instance_type,
        region=region,
        zone=zone or None,
        gpu=instance.gpu,
        num_gpus=instance.num_gpus,
        market=Market(market),
        list_usd_per_h=positive("usd_per_h", float(usd_per_h)),
        includes=instance.includes,
        minimum_billed_s=instance.minimum_billed_s,
        num_vcpus=instance.vcpus,
        architecture=instance.architecture,
        retrieved_at=_midnight(retrieved_at),
        source=source,
    )


@cache
def _midnight(text: str) -> datetime:
    return datetime.combine(parse_date(text), datetime.min.time(), UTC)
