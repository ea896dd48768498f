"""A cluster's queue simulated, beside the reference: logs of ../shared/traces."""

from __future__ import annotations

from functools import partial

import numpy as np

from advisor import native
from advisor.native import reference
from advisor.native.arrays import Backfill
from benchmarks.native import wall_s
from research.queue_logs import TRACES, UNITS, queue_of, rows_of

COPIES_IN_A_YEAR = 16
"""Curie's log covers 23 days."""


def main() -> None:
    """Check that both programs start every job at the same second, then print their ratio."""
    if not TRACES.is_dir():
        print("simulated queue: no ../shared/traces")
        return
    for log in UNITS:
        queue = queue_of(rows_of(log), UNITS[log], Backfill.EASY)
        for one, other in zip(native.simulate_queue(queue), reference.simulate_queue(queue), strict=True):
            np.testing.assert_array_equal(one, other)
        native_s = min(wall_s(partial(native.simulate_queue, queue)) for _ in range(5))
        reference_s = wall_s(partial(reference.simulate_queue, queue))
        print(
            f"queue of {log}: native {native_s * 1e3:.0f} ms, {reference_s / native_s:6.1f} x the reference"
        )
    rows = rows_of("cea_curie_sample")
    span_s = rows[-1][0] - rows[0][0]
    year = [(row[0] + copy * span_s, *row[1:]) for copy in range(COPIES_IN_A_YEAR) for row in rows]
    for backfill in (Backfill.EASY, Backfill.CONSERVATIVE):
        queue = queue_of(year, UNITS["cea_curie_sample"], backfill)
        print(f"a year of it, {backfill}: {wall_s(partial(native.simulate_queue, queue)):.1f} s")


if __name__ == "__main__":
    main()
