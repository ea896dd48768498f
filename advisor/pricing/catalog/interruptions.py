"""How often AWS takes spot machines back, from the dated table of the Spot Advisor.

The table has buckets of the share of machines that were taken back within a month. It is a floor: over
hours instead of months, measured rates were up to thousands of times higher (AWS V100 0.31 to 0.74 per
hour in 2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from advisor.core.gpus import catalog_path
from advisor.core.units import HOURS_PER_MONTH
from advisor.pricing.catalog.csv_files import read_rows

INTERRUPTION_COLUMNS = ("instance_type", "region", "low_pct", "high_pct", "as_of", "source")
INTERRUPTION_FILE = "interruptions.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """The bucket of an AWS instance type in a region.

    Attributes:
        low_pct: at least this share of machines was taken back within a month, in percent.
        high_pct: at most this share.
    """

    instance_type: str
    region: str
    low_pct: int
    high_pct: int
    as_of: date
    source: str

    @property
    def least_preemptions_per_h(self) -> float:
        """Per running hour, from the lower end of the bucket: a floor, 0 for the lowest bucket."""
        return preemptions_per_h(self.low_pct)


def preemptions_per_h(monthly_pct: float) -> float:
    """The constant rate per hour at which this share is taken back within a month.

    With p the share, ``L = -ln(1 - p) / 730 h``.

    Args:
        monthly_pct: 0 or more and below 100.

    Raises:
        ValueError: no rate takes so many.

    >>> f"{preemptions_per_h(5):.1e}"
    '7.0e-05'
    """
    if not 0 <= monthly_pct < 100:
        raise ValueError(f"{monthly_pct!r} % in a month has no rate: it must be from 0 to below 100")
    return 0.0 - math.log1p(-monthly_pct / 100) / HOURS_PER_MONTH  # never -0.0


@cache
def load_interruptions() -> Mapping[tuple[str, str], Interruptions]:
    """The shipped table by instance type and region.

    Raises:
        CatalogError: the file is missing or broken.
    """
    return read_interruptions(catalog_path(INTERRUPTION_FILE))


def read_interruptions(path: Path) -> dict[tuple[str, str], Interruptions]:
    """A table by instance type and region.

    Raises:
        CatalogError: the file is missing or a row is broken or double; it names file and line.
    """
    table: dict[tuple[str, str], Interruptions] = {}

    def read_row(row: list[str]) -> None:
        bucket = _bucket(row)
        key = (bucket.instance_type, bucket.region)
        if key in table:
            raise ValueError(f"{' '.join(key)} is listed twice")
        table[key] = bucket

    read_rows(path, INTERRUPTION_COLUMNS, read_row)
    return table


def _bucket(row: Sequence[str]) -> Interruptions:
    instance_type, region, low, high, as_of, source = row
    if not (instance_type and region and source):
        raise ValueError("instance_type, region or source is empty")
    if not 0 <= int(low) < int(high) <= 100:
        raise ValueError(f"{low} to {high} % is no bucket within 0 to 100")
    return Interruptions(
        instance_type=instance_type,
        region=region,
        low_pct=int(low),
        high_pct=int(high),
        as_of=date.fromisoformat(as_of),
        source=source,
    )
