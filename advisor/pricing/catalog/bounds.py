"""What a GPU may cost for an hour (``catalogs/price_bounds.csv``): a price far outside is never an offer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from advisor.core.gpus import catalog_path
from advisor.core.values import Offer, PricePoint
from advisor.pricing.catalog.csv_files import parse_date, positive, read_rows
from advisor.pricing.catalog.instance_types import InstanceType, load_instances

BOUNDS_FILE = "price_bounds.csv"
BOUNDS_COLUMNS = ("gpu", "lowest_usd_per_gpu_h", "highest_usd_per_gpu_h", "source", "as_of")
ANY_GPU = "*"
# The largest machine that a cloud rents, where nobody says how many GPUs a machine has.
MOST_GPUS = 16
_FEW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The least and the most that one GPU with its share of the machine may cost for an hour."""

    lowest_usd_per_gpu_h: float
    highest_usd_per_gpu_h: float


@cache
def load_bounds() -> Mapping[str, Bounds]:
    """The shipped bounds by GPU; `ANY_GPU` for all others.

    Raises:
        CatalogError: the file is missing or a row is broken; it names file and line.
    """
    return read_bounds(catalog_path(BOUNDS_FILE))


def read_bounds(path: Path) -> Mapping[str, Bounds]:
    """Bounds of a file by GPU.

    Raises:
        CatalogError: as `load_bounds`.
    """
    bounds: dict[str, Bounds] = {}

    def read_row(row: list[str]) -> None:
        gpu, lowest, highest, source, as_of = row
        if gpu in bounds or not source:
            raise ValueError(f"{gpu!r} is listed twice" if gpu in bounds else "source is empty")
        parse_date(as_of)
        low = positive("lowest_usd_per_gpu_h", float(lowest))
        high = positive("highest_usd_per_gpu_h", float(highest))
        if low >= high:
            raise ValueError("lowest_usd_per_gpu_h is not below highest_usd_per_gpu_h")
        bounds[gpu] = Bounds(lowest_usd_per_gpu_h=low, highest_usd_per_gpu_h=high)

    read_rows(path, BOUNDS_COLUMNS, read_row)
    return bounds


def is_possible(usd_per_h: float, gpu: str, num_gpus: int) -> bool:
    """Whether a machine with these GPUs may cost that; never so for NaN.

    >>> is_possible(55.04, "H100-SXM-80GB", 8), is_possible(0.00001, "H100-SXM-80GB", 8)
    (True, False)
    """
    bounds = load_bounds().get(gpu) or load_bounds()[ANY_GPU]
    return num_gpus * bounds.lowest_usd_per_gpu_h <= usd_per_h <= num_gpus * bounds.highest_usd_per_gpu_h


def has_possible_prices(offer: Offer) -> bool:
    """Whether all prices of an offer may be: as listed, after discounts, and what spot cost before."""
    spot = offer.spot_usd_per_h
    given = (offer.list_usd_per_h, offer.contracted_usd_per_h, offer.effective_usd_per_h)
    every = given if spot is None else (*given, spot.p10, spot.p50, spot.p90)
    return all(is_possible(usd, offer.gpu, offer.num_gpus) for usd in every if usd is not None)


def possible_points(points: Iterable[PricePoint], offers: Iterable[Offer] = ()) -> Iterator[PricePoint]:
    """Earlier prices that may have been.

    Args:
        points: they do not say what machine they are of.
        offers: they do; of other machines the catalog may know, or any size of machine is allowed.
    """
    offered = {(o.provider, o.instance_type): o for o in offers}
    for point in points:
        key = point.provider, point.instance_type
        machine = offered.get(key) or load_instances().get(key)
        if _is_possible_of(point.usd_per_h, machine):
            yield point


def _is_possible_of(usd_per_h: float, machine: Offer | InstanceType | None) -> bool:
    if machine is not None:
        return is_possible(usd_per_h, machine.gpu, machine.num_gpus)
    bounds = load_bounds()[ANY_GPU]
    return bounds.lowest_usd_per_gpu_h <= usd_per_h <= MOST_GPUS * bounds.highest_usd_per_gpu_h


def named(offers: Sequence[Offer]) -> str:
    """The first few offers with their prices, and a count of the others."""
    few = [f"{o.instance_type} {o.zone or o.region} {o.market} {o.usd_per_h:g} USD/h" for o in offers[:_FEW]]
    rest = f" and {len(offers) - _FEW} more" if len(offers) > _FEW else ""
    return ", ".join(few) + rest
