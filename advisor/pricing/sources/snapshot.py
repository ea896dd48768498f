"""The dated snapshot of prices: reading it, and building a new one from live prices."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.iterables import grouped
from advisor.core.values import Market, Offer
from advisor.formats.user_files import at_home
from advisor.pricing.instance_types import (
    INSTANCE_FILE,
    InstanceKey,
    InstanceType,
    load_instances,
    parse_date,
    positive,
    read_instances,
    read_rows,
)
from advisor.pricing.price_checks import JUMP
from advisor.pricing.price_history import key_of
from advisor.pricing.sources import protocol

if TYPE_CHECKING:
    from advisor.pricing.expected_prices import PriceList

PRICE_COLUMNS = (
    "provider", "instance_type", "region", "zone", "market", "usd_per_h", "retrieved_at", "source",
)  # fmt: skip
PRICE_FILES = ("prices/aws.csv", "prices/gcp.csv")


class SnapshotSource:
    """The price files of a folder (``instances.csv`` and ``prices/*.csv``); None for the shipped ones."""

    name = "snapshot"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def capabilities(self) -> protocol.Capabilities:
        """Whatever the files hold."""
        return protocol.Capabilities(providers=tuple(self._by_provider()), markets=tuple(Market))

    def offers(self, query: protocol.OfferQuery) -> Iterator[protocol.Part]:
        """Offers that match, in order, a part for each provider. Raises CatalogError: as `read_offers`."""
        for provider, held in self._by_provider().items():
            yield protocol.Part(scope=provider, offers=tuple(filter(query.matches, held)))

    def freshness(self) -> tuple[protocol.Freshness, ...]:
        """Age of what is held, by provider."""
        return protocol.freshness_of([*chain.from_iterable(self._by_provider().values())])

    def credentials(self) -> protocol.Credentials:
        """Files need none."""
        return protocol.Credentials.NOT_NEEDED

    def _by_provider(self) -> Mapping[str, Sequence[Offer]]:
        files = snapshot_files(self._folder)
        if len(files) == 1:
            raise CatalogError(f"{str(self._folder)!r} has no price files: name another folder.")
        return _read_all(files, tuple(path.stat().st_mtime_ns if path.is_file() else None for path in files))


def snapshot_source(options: Mapping[str, object]) -> SnapshotSource:
    """The entry point: ``folder`` names another snapshot. Raises ConfigError: another option is given."""
    protocol.check_options("snapshot", options, ("folder",))
    folder = options.get("folder")
    return SnapshotSource(None if folder is None else at_home(str(folder)))


def snapshot_files(folder: Path | None) -> tuple[Path, ...]:
    """The file of instance types and the price files of a folder, or the shipped ones."""
    if folder is None:
        return tuple(map(catalog_path, (INSTANCE_FILE, *PRICE_FILES)))
    return folder / INSTANCE_FILE, *sorted((folder / "prices").glob("*.csv"))


@lru_cache(maxsize=4)
def _read_all(
    files: tuple[Path, ...],
    changed_at: tuple[int | None, ...],  # noqa: ARG001
) -> Mapping[str, Sequence[Offer]]:
    """All offers by provider, read once for as long as the files do not change."""
    known = read_instances(files[0])
    return grouped((one for path in files[1:] for one in read_offers(path, known)), attrgetter("provider"))


def read_offers(path: Path, instances: Mapping[InstanceKey, InstanceType]) -> list[Offer]:
    """Offers of one price file, joined to their instance types.

    Raises CatalogError: names file and line; a row is broken, double, of no known type, or not above 0.
    """
    offers: list[Offer] = []
    seen: set[tuple[str, ...]] = set()

    def read_row(row: list[str]) -> None:
        provider, instance_type, region, zone, market, usd_per_h, retrieved_at, source = row
        key = tuple(row[:5])
        if key in seen:
            raise ValueError(f"{' '.join(filter(None, key))} is priced twice")
        seen.add(key)
        instance = instances.get((provider, instance_type))
        if instance is None:
            raise ValueError(f"{provider} {instance_type!r} is not in {INSTANCE_FILE}")
        if not (region and source):
            raise ValueError("region or source is empty")
        offer = instance.offer(
            region=region,
            zone=zone or None,
            market=Market(market),
            usd_per_h=positive("usd_per_h", float(usd_per_h)),
            retrieved_at=_midnight(retrieved_at),
            source=source,
        )
        offers.append(offer)

    read_rows(path, PRICE_COLUMNS, read_row)
    return offers


@cache
def _midnight(text: str) -> datetime:
    return datetime.combine(parse_date(text), datetime.min.time(), UTC)


LEAST_KEPT = 0.8
"""A snapshot that lost more than a fifth of the last one's prices is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build wrote, and which machines it had to leave out, of some with the market."""

    folder: Path
    num_offers: int
    left_out: tuple[str, ...]


def build_snapshot(offers: Sequence[Offer], folder: Path, *, is_forced: bool = False) -> Built:
    """Write ``instances.csv`` and ``prices/PROVIDER.csv``, read them back, and swap them with ``folder``.

    Machines that ``instances.csv`` does not know are left out, since their host is unknown. So are capacity
    blocks: the files have no column for the least time and the steps in which they are billed.

    Args:
        folder: where the snapshot goes; another snapshot there is replaced, anything else refused.
        is_forced: replace the last one even where the new one looks wrong beside it.

    Raises CatalogError: nothing to write, the new one looks wrong, or the folder cannot be written; what was
    there stays.
    """
    instances = load_instances()
    # Rows of the files tell all that a bill needs, but of capacity blocks.
    told = (o for o in offers if o.market is not Market.CAPACITY_BLOCK)
    known = [o for o in told if (o.provider, o.instance_type) in instances]
    if not known:
        raise CatalogError("there are no live prices to build from: `advisor prices refresh` pulls them.")
    problems = _problems(known, _before(folder))
    if problems and not is_forced:
        raise CatalogError(
            f"the new snapshot looks wrong beside the one in {str(folder)!r}, which stays:"
            f" {'; '.join(problems)}. Look at `advisor prices check`; `force` replaces it all the same."
        )
    try:
        _replace(folder, known)
    except OSError as error:
        raise CatalogError(
            f"cannot write the snapshot to {str(folder)!r}: {error.strerror}. What was there stays."
        ) from error
    left_out = {o.instance_type for o in offers if (o.provider, o.instance_type) not in instances}
    left_out |= {f"{o.instance_type} {o.market}" for o in offers if o.market is Market.CAPACITY_BLOCK}
    return Built(folder=folder, num_offers=len(known), left_out=tuple(sorted(left_out)))


def _before(folder: Path) -> tuple[Offer, ...]:
    if not folder.exists():
        return ()
    if not (folder / INSTANCE_FILE).is_file():
        raise CatalogError(f"{str(folder)!r} holds something else than a snapshot: choose another `out`.")
    instances, *prices = snapshot_files(folder)
    types = read_instances(instances)
    return tuple(offer for path in prices for offer in read_offers(path, types))


def _problems(offers: Sequence[Offer], before: Sequence[Offer]) -> list[str]:
    old = {key_of(offer): offer.list_usd_per_h for offer in before}
    new = {key_of(offer): offer.list_usd_per_h for offer in offers}
    problems = []
    if len(new) < LEAST_KEPT * len(old):
        problems.append(f"it has {len(new)} prices, that one {len(old)}")
    # Spot prices move; list prices rarely do.
    lists = [key for key in new if key in old and key[4] is not Market.SPOT]
    if jumped := sorted(f"{key[1]} {key[2]}" for key in lists if abs(new[key] / old[key] - 1) > JUMP):
        problems.append(f"{len(jumped)} list prices differ by more than {JUMP:.0%} ({', '.join(jumped[:3])})")
    return problems


def _replace(folder: Path, offers: Sequence[Offer]) -> None:
    """Write beside the folder, read back, then swap."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        fresh = Path(temporary) / "new"
        (fresh / "prices").mkdir(parents=True)
        shutil.copyfile(catalog_path(INSTANCE_FILE), fresh / INSTANCE_FILE)
        for provider in sorted({offer.provider for offer in offers}):
            path = fresh / "prices" / f"{provider}.csv"
            path.write_text(_csv([o for o in offers if o.provider == provider]), encoding="utf-8")
            read_offers(path, read_instances(fresh / INSTANCE_FILE))
        _swap(fresh, folder)


def _swap(fresh: Path, folder: Path) -> None:
    """Put ``fresh`` in the place of ``folder``; whatever interrupts it, the old one is put back.

    A process that is killed between the renames leaves the old one in a folder beside, ``NAME.old.*``.
    """
    if not folder.exists():
        fresh.rename(folder)
        return
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}.old."))
    old = aside / folder.name
    try:
        folder.rename(old)
        fresh.rename(folder)
    except BaseException:  # An interrupt, too.
        if not folder.exists():
            try:
                old.rename(folder)
            except OSError as error:
                raise CatalogError(
                    f"the snapshot {str(folder)!r} could be neither replaced nor put back ({error.strerror}):"
                    f" it is whole in {str(old)!r}, move it to its place."
                ) from error
        raise
    finally:
        # Where it could not be put back, the old one is the only one.
        if folder.exists():
            shutil.rmtree(aside, ignore_errors=True)


def _csv(offers: Sequence[Offer]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(PRICE_COLUMNS)
    for offer in sorted(offers, key=lambda o: (o.instance_type, o.region, o.zone or "", o.market)):
        usd, day = f"{offer.list_usd_per_h:.6f}".rstrip("0").rstrip("."), f"{offer.retrieved_at:%Y-%m-%d}"
        *machine, zone, market = key_of(offer)
        writer.writerow([*machine, zone or "", market, usd, day, offer.source])
    return out.getvalue()


@cache
def shipped_prices() -> PriceList:
    """Prices of the files that ship; derived ones are no spot quotes. Raises CatalogError: bad files."""
    # Late, for numpy.
    from advisor.pricing.expected_prices import PriceList

    on_demand: dict[tuple[str, str, str], float] = {}
    spot: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    parts = SnapshotSource().offers(protocol.OfferQuery(markets=(Market.ON_DEMAND, Market.SPOT)))
    for offer in (offer for part in parts for offer in part.offers):
        if offer.market is Market.ON_DEMAND:
            on_demand[offer.provider, offer.instance_type, offer.region] = offer.list_usd_per_h
        elif not offer.source.startswith(protocol.DERIVED):
            places = spot.setdefault((offer.provider, offer.instance_type), {})
            places[offer.region, offer.zone or ""] = offer.list_usd_per_h
    return PriceList(on_demand=on_demand, spot=spot)
