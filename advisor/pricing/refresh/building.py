"""Live prices -> a dated snapshot of our own form, checked before it takes the place of the last one."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Market, Offer
from advisor.pricing.catalog.doubts import JUMP
from advisor.pricing.catalog.instance_types import INSTANCE_FILE, load_instances, read_instances
from advisor.pricing.sources.snapshot import PRICE_COLUMNS, read_offers, snapshot_files

LEAST_KEPT = 0.8
"""A snapshot that lost more than a fifth of the last one's prices is refused."""

Key = tuple[str, str, str, str | None, Market]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build wrote, and which machines it had to leave out, of some with the market."""

    folder: Path
    num_offers: int
    left_out: tuple[str, ...]


def build_snapshot(offers: Sequence[Offer], folder: Path, *, is_forced: bool = False) -> Built:
    """Write ``instances.csv`` and ``prices/PROVIDER.csv``, read them back, and swap them with ``folder``.

    Machines that ``instances.csv`` does not know are left out, since nobody told their host. So are capacity
    blocks: the files have no column for the least time and the steps in which they are billed.

    Args:
        offers: prices to keep, live ones.
        folder: where the snapshot goes; another snapshot there is replaced, anything else refused.
        is_forced: replace the last one even where the new one looks wrong beside it.

    Raises:
        CatalogError: nothing to write, the new one looks wrong, or the folder cannot be written; what was
            there stays.
    """
    instances = load_instances()
    known = [o for o in offers if (o.provider, o.instance_type) in instances and _is_told(o)]
    if not known:
        raise CatalogError("there are no live prices to build from: `advisor prices refresh` pulls them.")
    before = _before(folder)
    problems = _problems(known, before)
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
    left_out |= {f"{o.instance_type} {o.market}" for o in offers if not _is_told(o)}
    return Built(folder=folder, num_offers=len(known), left_out=tuple(sorted(left_out)))


def _is_told(offer: Offer) -> bool:
    """Whether a row of the files tells all of the offer that a bill needs."""
    return offer.market is not Market.CAPACITY_BLOCK


def _before(folder: Path) -> tuple[Offer, ...]:
    if not folder.exists():
        return ()
    if not (folder / INSTANCE_FILE).is_file():
        raise CatalogError(f"{str(folder)!r} holds something else than a snapshot: choose another `out`.")
    instances, prices = snapshot_files(folder)
    types = read_instances(instances)
    return tuple(offer for path in prices for offer in read_offers(path, types))


def _problems(offers: Sequence[Offer], before: Sequence[Offer]) -> list[str]:
    old = {_key(offer): offer.list_usd_per_h for offer in before}
    new = {_key(offer): offer.list_usd_per_h for offer in offers}
    jumps = [key for key, usd in new.items() if key in old and abs(usd / old[key] - 1) > JUMP]
    problems = []
    if len(new) < LEAST_KEPT * len(old):
        problems.append(f"it has {len(new)} prices, that one {len(old)}")
    # Spot prices move; list prices rarely do.
    jumped = sorted(f"{key[1]} {key[2]}" for key in jumps if key[4] is not Market.SPOT)
    if jumped:
        problems.append(f"{len(jumped)} list prices differ by more than {JUMP:.0%} ({', '.join(jumped[:3])})")
    return problems


def _key(offer: Offer) -> Key:
    return offer.provider, offer.instance_type, offer.region, offer.zone, offer.market


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
            _put_back(old, folder)
        raise
    finally:
        # Where it could not be put back, the old one is the only one.
        if folder.exists():
            shutil.rmtree(aside, ignore_errors=True)


def _put_back(old: Path, folder: Path) -> None:
    try:
        old.rename(folder)
    except OSError as error:
        raise CatalogError(
            f"the snapshot {str(folder)!r} could be neither replaced nor put back ({error.strerror}):"
            f" it is whole in {str(old)!r}, move it to its place."
        ) from error


def _csv(offers: Sequence[Offer]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(PRICE_COLUMNS)
    for offer in sorted(offers, key=lambda o: (o.instance_type, o.region, o.zone or "", o.market)):
        usd = f"{offer.list_usd_per_h:.6f}".rstrip("0").rstrip(".")
        place = (offer.region, offer.zone or "", offer.market)
        day = f"{offer.retrieved_at:%Y-%m-%d}"
        writer.writerow([offer.provider, offer.instance_type, *place, usd, day, offer.source])
    return out.getvalue()
