"""Real logs of ../shared/traces as queues to simulate."""

from __future__ import annotations

import csv
import gzip
from itertools import islice
from pathlib import Path

import numpy as np

from advisor.native.arrays import Backfill, ClusterColumns, JobColumns, PriorityRules, Queue

TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"
UNITS = {"kth_sp2_1996": 100, "cea_curie_sample": 93_312, "metacentrum_wagap_2013": 2_176}
"""Units of each cluster, by its file."""


def rows_of(log: str, num_jobs: int | None = None) -> list[tuple[int, ...]]:
    """Jobs of a log as rows of `JobColumns`; one that ran longer than it asked for asked for that."""
    users: dict[str, int] = {}
    rows: list[tuple[int, ...]] = []
    with gzip.open(TRACES / f"{log}.csv.gz", "rt") as file:
        for row in islice(csv.DictReader(file), num_jobs):
            run_s = int(row["end_time"]) - int(row["start_time"])
            walltime_s = max(run_s, int(row["requested_walltime"]), 1)
            user = users.setdefault(row["user"], len(users))
            rows.append((int(row["submit_time"]), run_s, walltime_s, int(row["slots"]), 0, user))
    return rows


def queue_of(
    rows: list[tuple[int, ...]], units: int, backfill: Backfill, rules: PriorityRules | None = None
) -> Queue:
    """One partition, first come, first served unless rules say otherwise."""
    one = np.array([units])
    cluster = ClusterColumns(
        units_P=one, pool_P=0 * one, tier_P=0 * one, job_factor_P=np.zeros(1), units_Q=one
    )
    return Queue(
        jobs=JobColumns.of(rows),
        probes=JobColumns.of([]),
        cluster=cluster,
        rules=rules or PriorityRules(),
        backfill=backfill,
    )
