"""Laws of a simulated queue. More units or shorter jobs may delay others: such anomalies are real, no law."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor import native
from advisor.native import reference
from advisor.native.arrays import Backfill, PriorityRules
from tests.unit.native.test_queue import CLASSIC, RANKED, cluster_of, queue_of

UNITS = 8
# Partitions: all nodes, half of them, and two nodes of their own.
CLUSTER = replace(
    cluster_of(UNITS, 4, 2, pool=UNITS), pool_P=np.array([0, 0, 1]), units_Q=np.array([UNITS, 2])
)


@st.composite
def jobs(draw, *, partitions=(0, 1, 2), exact=False):
    rows = []
    submit_s = 0
    for _ in range(draw(st.integers(1, 14))):
        submit_s += draw(st.integers(0, 30))
        walltime_s = draw(st.integers(1, 60))
        run_s = walltime_s if exact else draw(st.integers(0, walltime_s))
        partition = draw(st.sampled_from(partitions))
        size = draw(st.integers(1, int(CLUSTER.units_P[partition])))
        rows.append((submit_s, run_s, walltime_s, size, partition, draw(st.integers(0, 2))))
    return rows


RULES = st.sampled_from(
    [PriorityRules(), replace(RANKED, period_s=7, half_life_s=50.0), replace(CLASSIC, period_s=7)]
)
BACKFILL = st.sampled_from(list(Backfill))


def starts_of(rows, backfill, rules=None):
    starts, _ = native.simulate_queue(queue_of(*rows, backfill=backfill, rules=rules, cluster=CLUSTER))
    return starts.tolist()


@given(jobs(), jobs(), RULES, BACKFILL)
def test_both_programs_give_one_schedule(rows, probes, rules, backfill):
    queue = queue_of(*rows, probes=probes, rules=rules, backfill=backfill, cluster=CLUSTER)
    for one, other in zip(native.simulate_queue(queue), reference.simulate_queue(queue), strict=True):
        assert one.tolist() == other.tolist()


@given(jobs(), RULES, BACKFILL)
def test_units_suffice_and_no_job_starts_before_its_submission(rows, rules, backfill):
    starts = starts_of(rows, backfill, rules)
    assert all(start_s >= row[0] for start_s, row in zip(starts, rows, strict=True))
    for now_s in starts:
        in_use = np.zeros(3, dtype=int)
        for start_s, (_, run_s, _, size, partition, _) in zip(starts, rows, strict=True):
            in_use[partition] += size if start_s <= now_s < start_s + run_s else 0
        assert (in_use <= CLUSTER.units_P).all()
        assert in_use[:2].sum() <= UNITS


@given(jobs(partitions=(0,)))
def test_without_backfill_jobs_start_in_order_of_submission(rows):
    starts = starts_of(rows, Backfill.NONE)
    assert starts == sorted(starts)


@given(jobs(exact=True), BACKFILL)
def test_a_job_that_may_start_at_once_is_not_held(rows, backfill):
    """The first of all, and one that is submitted when all before it have ended."""
    starts = starts_of(rows, backfill)
    idle_s = max(start_s + row[2] for start_s, row in zip(starts, rows, strict=True)) + 1
    assert starts_of([*rows, (idle_s, 1, 1, UNITS, 0, 0)], backfill) == [*starts, idle_s]


@given(jobs(partitions=(0,)), jobs(partitions=(0,)))
def test_no_conservative_reservation_is_ever_put_off(rows, later):
    reserved = starts_of(_as_planned(rows, Backfill.CONSERVATIVE), Backfill.CONSERVATIVE)
    starts = starts_of(_with(rows, later), Backfill.CONSERVATIVE)
    assert all(start_s <= at_s for start_s, at_s in zip(starts, reserved, strict=False))


@given(jobs(partitions=(0,)), jobs(partitions=(0,)))
def test_easy_backfill_never_puts_off_the_reservation_of_the_first(rows, later):
    reserved = starts_of(_as_planned(rows, Backfill.EASY), Backfill.EASY)
    first = next((i for i, at_s in enumerate(reserved) if at_s > rows[-1][0]), None)
    if first is not None:
        assert starts_of(_with(rows, later), Backfill.EASY)[first] <= reserved[first]


def _as_planned(rows, backfill):
    """What has not ended at the last submission takes the time it asks for: what is reserved then."""
    now_s = rows[-1][0]
    return [
        row if start_s + row[1] <= now_s else (row[0], row[2], *row[2:])
        for start_s, row in zip(starts_of(rows, backfill), rows, strict=True)
    ]


def _with(rows, later):
    return [*rows, *((rows[-1][0] + submit_s, *rest) for submit_s, *rest in later)]
