"""What jobs waited in the open logs of clusters, pooled: ``python -m research.pooled_waits [--write]``.

Writes catalogs/queue_waits.csv, which stands in for a cluster whose wait nobody stated. Reads the logs of
``../shared/traces`` that hold whole streams of jobs: those of Cedar hold only jobs that were pending at noon,
that of Alibaba only pods that found a GPU, half of them within two seconds. A core tells little of a GPU, so
nodes of 16 cores count as one. Each log counts alike in a class of which it has enough jobs, and a burst of
equal jobs once: the spread of a class is that between clusters as well.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from advisor.core.files import write_atomically
from advisor.pricing.instance_types import columns_of
from advisor.site_files.job_logs import read_job_log
from recommender.queue.waits import (
    ANY,
    LEVELS,
    SIZES,
    WAITS_FILE,
    WALLTIMES,
    Bursts,
    PooledWait,
    QueuedJob,
    class_of,
)
from research.chosen.fit import weighted_quantiles
from research.chosen.panels import Array
from research.queue_waits import LOGS

ROOT = Path(__file__).resolve().parents[1]
CORES_OF_A_NODE = 16
UNITS_OF_A_NODE = {"CEA Curie 2011": CORES_OF_A_NODE, "MetaCentrum wagap 2013": CORES_OF_A_NODE}
"""Slots that count as one GPU, by log; one where none is said."""
BIASED = "Alibaba openb 2023, GPU pods"
LEAST_JOBS = 50
"""Of a log, for it to count in a class: its p90 rests on five."""
SOURCE = "job logs of KTH SP2, CEA Curie, MetaCentrum, MIT SuperCloud"
AS_OF = "2026-11-26"

Waits = Mapping[tuple[str, str], tuple[Array, ...]]
"""By class: what jobs of each log waited, in seconds."""


def main() -> None:
    """Print, or write the catalog."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="folder of the records")
    parser.add_argument("--write", action="store_true", help=f"write catalogs/{WAITS_FILE}")
    asked = parser.parse_args()
    text = catalog(pooled(asked.shared / "traces"))
    if asked.write:
        write_atomically(ROOT / "catalogs" / WAITS_FILE, text.encode())
    print(text, end="")


def pooled(traces: Path) -> Waits:
    """Of every log, by class; a class of any run time holds all of its size."""
    waits: dict[tuple[str, str], list[Array]] = {}
    for name, file in LOGS.items():
        if name == BIASED:
            continue
        of_log: dict[tuple[str, str], list[float]] = {}
        for job in _counting(traces / f"{file}.csv.gz", UNITS_OF_A_NODE.get(name, 1)):
            size, walltime = class_of(job.size, job.walltime_s)
            for key in {(size, walltime), (size, ANY)}:
                of_log.setdefault(key, []).append(job.wait_s)
        for key, seconds in of_log.items():
            if len(seconds) >= LEAST_JOBS:
                waits.setdefault(key, []).append(np.array(seconds))
    return {key: tuple(logs) for key, logs in waits.items()}


def _counting(path: Path, units: int) -> Iterator[QueuedJob]:
    bursts = Bursts()
    for job in sorted(read_job_log(path).jobs, key=lambda job: job.start_s):
        if bursts.is_new(job):
            yield replace(job, size=math.ceil(job.size / units))


def quantiles_of(logs: tuple[Array, ...]) -> Array:
    """At `LEVELS`, each log with the same weight."""
    weights = [np.full(waits.size, 1 / waits.size) for waits in logs]
    return weighted_quantiles(np.concatenate(logs), np.concatenate(weights), LEVELS)


def catalog(waits: Waits) -> str:
    """The file; a class that too few logs know has the waits of its size at any run time.

    What asks for more never waits less: where the logs say so, others than these clusters' users waited.
    """
    least: dict[tuple[str, str], Array] = {}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns_of(PooledWait))
    sizes, walltimes = list(SIZES), list(WALLTIMES)
    for size, walltime in product(sizes, (ANY, *walltimes)):
        logs = waits.get((size, walltime), ())
        logs = logs if len(logs) > 1 else waits[size, ANY]
        smaller = sizes[: sizes.index(size)][-1:]
        shorter = [] if walltime == ANY else walltimes[: walltimes.index(walltime)][-1:]
        below = [least[one, walltime] for one in smaller] + [least[size, one] for one in shorter]
        least[size, walltime] = np.maximum.reduce([quantiles_of(logs), *below])
        seconds = [round(float(wait_s)) for wait_s in least[size, walltime]]
        num_jobs = sum(one.size for one in logs)
        writer.writerow([size, walltime, *seconds, len(logs), num_jobs, SOURCE, AS_OF])
    return out.getvalue()


if __name__ == "__main__":
    main()
