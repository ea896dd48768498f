"""Dated price files that ship with the package: ``instances.csv`` and ``prices/*.csv``.

Columns are listed here by hand, so that the values can change without the format. A price of 0 is unknown,
not free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Market, Offer
from advisor.formats.user_files import at_home
from advisor.pricing.catalog.csv_files import parse_date, positive, read_rows
from advisor.pricing.catalog.instance_types import INSTANCE_FILE, InstanceKey, InstanceType, read_instances
from advisor.pricing.sources.protocol import (
    Capabilities,
    Credentials,
    Freshness,
    Part,
    check_options,
    freshness_of,
)
from advisor.pricing.sources.query import OfferQuery

PRICE_COLUMNS = (
    "provider", "instance_type", "region", "zone", "market", "usd_per_h", "retrieved_at", "source",
)  # fmt: skip
PRICE_FILES = ("prices/aws.csv", "prices/gcp.csv")


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


def snapshot_source(options: Mapping[str, object]) -> SnapshotSource:
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
        return catalog_path(INSTANCE_FILE), tuple(catalog_path(name) for name in PRICE_FILES)
    return folder / INSTANCE_FILE, tuple(sorted((folder / "prices").glob("*.csv")))


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


def _offer(row: Sequence[str], instances: Mapping[InstanceKey, InstanceType]) -> Offer:
    provider, instance_type, region, zone, market, usd_per_h, retrieved_at, source = row
    instance = instances.get((provider, instance_type))
    if instance is None:
        raise ValueError(f"{provider} {instance_type!r} is not in {INSTANCE_FILE}")
    if not (region and source):
        raise ValueError("region or source is empty")
    return instance.offer(
        region=region,
        zone=zone or None,
        market=Market(market),
        usd_per_h=positive("usd_per_h", float(usd_per_h)),
        retrieved_at=_midnight(retrieved_at),
        source=source,
    )


@cache
def _midnight(text: str) -> datetime:
    return datetime.combine(parse_date(text), datetime.min.time(), UTC)
