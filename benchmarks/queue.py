"""A cluster's queue simulated, beside the reference: logs of KTH and Curie in ../shared/traces."""

from __future__ import annotations

import csv
import gzip
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from advisor import native
from advisor.native import Backfill, ClusterColumns, JobColumns, PriorityRules, Queue, queue_reference
from benchmarks.native import wall_s

TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"
LOGS = {"kth_sp2_1996": 100, "cea_curie_sample": 93_312, "metacentrum_wagap_2013": 2_176}
"""Units of each cluster, by its file."""
COPIES_IN_A_YEAR = 16
"""Curie's log covers 23 days."""


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


def main() -> None:
    """Check that both programs start every job at the same second, then print their ratio."""
    if not TRACES.is_dir():
        print("simulated queue: no ../shared/traces")
        return
    for log in ("kth_sp2_1996", "cea_curie_sample"):
        queue = queue_of(rows_of(log), LOGS[log], Backfill.EASY)
        for one, other in zip(
            native.simulate_queue(queue), queue_reference.simulate_queue(queue), strict=True
        ):
            np.testing.assert_array_equal(one, other)
        native_s = min(wall_s(partial(native.simulate_queue, queue)) for _ in range(5))
        reference_s = wall_s(partial(queue_reference.simulate_queue, queue))
        print(
            f"queue of {log}: native {native_s * 1e3:.0f} ms, {reference_s / native_s:6.1f} x the reference"
        )
    rows = rows_of("cea_curie_sample")
    span_s = rows[-1][0] - rows[0][0]
    year = [(row[0] + copy * span_s, *row[1:]) for copy in range(COPIES_IN_A_YEAR) for row in rows]
    for backfill in (Backfill.EASY, Backfill.CONSERVATIVE):
        queue = queue_of(year, LOGS["cea_curie_sample"], backfill)
        print(f"a year of it, {backfill}: {wall_s(partial(native.simulate_queue, queue)):.1f} s")


if __name__ == "__main__":
    main()
