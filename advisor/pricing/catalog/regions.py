"""Regions of clouds, and which an account has to enable before it can start anything there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from advisor.core.gpus import catalog_path
from advisor.pricing.catalog.csv_files import parse_date, read_rows

REGION_COLUMNS = ("provider", "region", "is_opt_in", "source", "as_of")
REGION_FILE = "regions.csv"
_IS_OPT_IN = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of a cloud.

    Attributes:
        is_opt_in: closed to an account until it enables the region.
    """

    provider: str
    name: str
    is_opt_in: bool
    source: str
    as_of: date


@cache
def load_regions() -> Mapping[str, Region]:
    """The shipped regions by name; no two clouds here share one.

    Raises:
        CatalogError: the file is missing or broken.
    """
    return read_regions(catalog_path(REGION_FILE))


def read_regions(path: Path) -> dict[str, Region]:
    """Regions of a file by name.

    Raises:
        CatalogError: the file is missing or a row is broken or double; it names file and line.
    """
    regions: dict[str, Region] = {}

    def read_row(row: list[str]) -> None:
        provider, name, is_opt_in, source, as_of = row
        if not all(row):
            raise ValueError("a field is empty")
        if is_opt_in not in _IS_OPT_IN:
            raise ValueError(f"is_opt_in is {is_opt_in!r}: it must be yes or no")
        if name in regions:
            raise ValueError(f"{name} is listed twice")
        regions[name] = Region(
            provider=provider,
            name=name,
            is_opt_in=_IS_OPT_IN[is_opt_in],
            source=source,
            as_of=parse_date(as_of),
        )

    read_rows(path, REGION_COLUMNS, read_row)
    return regions
