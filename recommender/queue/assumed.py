"""How long a job waits for GPUs of a cluster that states no wait: what jobs of other clusters waited."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from advisor.core.errors import CatalogError
from advisor.core.findings import Finding
from advisor.core.findings.about_options import QueueAssumed
from advisor.core.gpus import catalog_path
from advisor.core.units import DAY_S, HOUR_S
from advisor.core.values import AssumedWait
from advisor.pricing.instance_types import parse_date, positive, read_rows

WAITS_FILE = "queue_waits.csv"
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
COLUMNS = (
    "size", "walltime", *(f"p{100 * level:g}_s" for level in LEVELS), "num_logs", "num_jobs",
    "source", "as_of",
)  # fmt: skip
SIZES = {"1": 1.0, "2..8": 8.0, ">8": math.inf}
"""The most GPUs of each class."""
WALLTIMES = {"<=4h": 4 * HOUR_S, "<=1d": DAY_S, ">1d": math.inf}
"""The longest run time that jobs of each class ask for."""
ANY = "*"
LONGEST = LEVELS.index(0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledWait:
    """Waits of jobs of a class, each cluster's counting alike."""

    wait_s: AssumedWait
    num_logs: int
    num_jobs: int


def class_of(size: float, walltime_s: float | None) -> tuple[str, str]:
    """The class of a job by its GPUs and the run time that it asks for, None where that is unknown."""
    of_size = next(name for name, most in SIZES.items() if size <= most)
    if walltime_s is None or walltime_s < 0:
        return of_size, ANY
    return of_size, next(name for name, most in WALLTIMES.items() if walltime_s <= most)


def assumed_wait(num_gpus: int, walltime_s: float | None) -> tuple[AssumedWait, Finding]:
    """What a job is assumed to wait, and what that rests on.

    Raises:
        CatalogError: the file is missing or broken.
    """
    size, walltime = class_of(num_gpus, walltime_s)
    pooled = _shipped()[size, walltime]
    note = QueueAssumed(
        num_jobs=pooled.num_jobs,
        num_logs=pooled.num_logs,
        size=size,
        walltime=None if walltime == ANY else walltime,
    )
    return pooled.wait_s, note


@cache
def _shipped() -> Mapping[tuple[str, str], PooledWait]:
    return read_waits(catalog_path(WAITS_FILE))


def read_waits(path: Path) -> dict[tuple[str, str], PooledWait]:
    """Waits by class.

    Raises:
        CatalogError: the file is missing, a row is broken, or a class is missing or double.
    """
    table: dict[tuple[str, str], PooledWait] = {}

    def read_row(row: list[str]) -> None:
        size, walltime, *texts, num_logs, num_jobs, source, as_of = row
        waits_s = tuple(float(text) for text in texts)
        parse_date(as_of)
        if size not in SIZES or walltime not in (ANY, *WALLTIMES) or (size, walltime) in table or not source:
            raise ValueError(f"{size} {walltime} is no class or listed twice, or source is empty")
        if not 0 <= waits_s[0] <= waits_s[-1] < math.inf or list(waits_s) != sorted(waits_s):
            raise ValueError("waits must be 0 or more, and ascend")
        wait_s = AssumedWait(
            p50=waits_s[LEVELS.index(0.5)], p90=waits_s[LEVELS.index(0.9)], levels=LEVELS, waits_s=waits_s
        )
        positive("num_jobs", float(num_jobs))
        table[size, walltime] = PooledWait(
            wait_s=wait_s, num_logs=int(positive("num_logs", float(num_logs))), num_jobs=int(num_jobs)
        )

    read_rows(path, COLUMNS, read_row)
    if missing := set(product(SIZES, (ANY, *WALLTIMES))) - table.keys():
        raise CatalogError(f"{path.name} lacks {', '.join(sorted(map(' '.join, missing)))}.")
    return table
