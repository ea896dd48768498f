"""The simulated queue: cases by hand, and the compiled module beside the reference, start by start."""

from dataclasses import replace

import numpy as np
import pytest

from advisor import native
from advisor.native import reference
from advisor.native.arrays import Backfill, ClusterColumns, JobColumns, PriorityRules, Queue
from research.queue_logs import UNITS, rows_of
from tests.shared import needs_shared
from tests.unit.native.samples import needs_compiled

RANKED = PriorityRules(
    age_weight=1e3, size_weight=100, fair_share_weight=1e4, partition_weight=500, favors_small=True
)
CLASSIC = replace(RANKED, is_fair_tree=False, half_life_s=0, favors_small=False)


def cluster_of(*units: int, pool: int | None = None) -> ClusterColumns:
    """Partitions of these units, on nodes of their own or together in one pool."""
    alone = pool is None
    return ClusterColumns(
        units_P=np.array(units, dtype=np.int64),
        pool_P=np.arange(len(units)) if alone else np.zeros(len(units), dtype=np.int64),
        tier_P=np.zeros(len(units), dtype=np.int64),
        job_factor_P=np.arange(len(units)) / max(len(units), 1),
        units_Q=np.array(units if alone else [pool], dtype=np.int64),
    )


def queue_of(*jobs, backfill=Backfill.EASY, cluster=None, rules=None, probes=()) -> Queue:
    """Jobs are (submit, run, walltime, size[, partition[, user]])."""

    def filled(rows):
        return JobColumns.of([(*row, *(0,) * (6 - len(row))) for row in rows])

    return Queue(
        jobs=filled(jobs),
        probes=filled(probes),
        cluster=cluster or cluster_of(4),
        rules=rules or PriorityRules(),
        backfill=backfill,
    )


def both(queue: Queue) -> tuple[list[int], list[int]]:
    """Starts of jobs and probes, by two programs."""
    starts = tuple(column.tolist() for column in reference.simulate_queue(queue))
    assert starts == tuple(column.tolist() for column in native.simulate_queue(queue))
    return starts


BLOCKED = ((0, 100, 100, 3), (1, 50, 50, 4), (2, 60, 60, 1), (3, 200, 200, 1))
"""The second waits for all; the third ends before, the fourth does not."""


@pytest.mark.parametrize(
    ("jobs", "backfill", "starts"),
    [
        (BLOCKED, "none", [0, 100, 150, 150]),
        (BLOCKED, "easy", [0, 100, 2, 150]),
        (BLOCKED, "conservative", [0, 100, 2, 150]),
        # The last would not delay the first that waits, but the second.
        ((*BLOCKED[:1], (1, 50, 50, 3), (2, 50, 50, 2), (3, 120, 120, 1)), "easy", [0, 100, 150, 3]),
        ((*BLOCKED[:1], (1, 50, 50, 3), (2, 50, 50, 2), (3, 120, 120, 1)), "conservative", [0, 100, 150, 3]),
        ((*BLOCKED[:1], (1, 50, 50, 2), (2, 50, 50, 4), (3, 120, 120, 1)), "easy", [0, 100, 150, 3]),
        ((*BLOCKED[:1], (1, 50, 50, 2), (2, 50, 50, 4), (3, 170, 170, 1)), "easy", [0, 100, 173, 3]),
        (
            (*BLOCKED[:1], (1, 50, 50, 2), (2, 50, 50, 4), (3, 170, 170, 1)),
            "conservative",
            [0, 100, 150, 200],
        ),
        # It ends earlier than planned, and all move forward.
        (((0, 10, 100, 3), *BLOCKED[1:]), "conservative", [0, 62, 2, 112]),
        (((0, 0, 100, 4), (0, 0, 1, 4)), "easy", [0, 0]),
    ],
)
def test_who_starts_when(jobs, backfill, starts):
    assert both(queue_of(*jobs, backfill=Backfill(backfill)))[0] == starts


def test_a_full_partition_stops_itself_alone():
    """Partition 1 may use 2 of the 4 units that partition 0 has as well."""
    jobs = ((0, 100, 100, 2, 1), (1, 10, 10, 1, 1), (2, 10, 10, 1, 0), (3, 10, 10, 1, 1))
    for backfill in Backfill:
        queue = queue_of(*jobs, backfill=backfill, cluster=cluster_of(4, 2, pool=4))
        assert both(queue)[0] == [0, 100, 2, 100]


@pytest.mark.parametrize(
    ("rules", "starts"),
    [
        (PriorityRules(), [0, 100, 200]),
        (PriorityRules(size_weight=1000), [0, 200, 100]),
        (PriorityRules(size_weight=1000, favors_small=True), [0, 100, 200]),
        (PriorityRules(fair_share_weight=1000, period_s=10), [0, 200, 100]),
        (PriorityRules(fair_share_weight=1000), [0, 100, 200]),
        (PriorityRules(fair_share_weight=1000, is_fair_tree=False, half_life_s=0, period_s=9), [0, 200, 100]),
        (PriorityRules(fair_share_weight=1000, age_weight=1e9, period_s=10), [0, 100, 200]),
    ],
)
def test_priority(rules, starts):
    """The second is of the user who has used the cluster, smaller and older than the third."""
    jobs = ((0, 100, 100, 4, 0, 0), (1, 100, 100, 3, 0, 0), (50, 100, 100, 4, 0, 1))
    assert both(queue_of(*jobs, rules=rules))[0] == starts


def test_times_before_the_epoch_are_as_those_after_it():
    """Decayed usage of nobody is none, however long ago."""
    jobs = ((0, 100, 100, 4, 0, 0), (1, 100, 100, 3, 0, 0), (50, 100, 100, 4, 0, 1))
    early = [(row[0] - 2**39, *row[1:]) for row in jobs]
    rules = PriorityRules(fair_share_weight=1000, period_s=10)
    assert both(queue_of(*early, rules=rules))[0] == [at_s - 2**39 for at_s in (0, 200, 100)]


def test_a_higher_tier_comes_first():
    cluster = replace(cluster_of(4, 4, pool=4), tier_P=np.array([1, 2]))
    jobs = ((0, 100, 100, 4, 0), (1, 10, 10, 4, 0), (2, 10, 10, 4, 1))
    assert both(queue_of(*jobs, cluster=cluster))[0] == [0, 110, 100]


def test_probes_do_not_see_each_other():
    probes = ((1, 50, 50, 4), (1, 50, 50, 4), (5, 10, 10, 1))
    jobs, starts = both(queue_of(*BLOCKED, probes=probes))
    assert jobs == [0, 100, 2, 150]
    assert starts == [150, 150, 62]


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        (((0, 1, 1, 5),), "job 0 never fits its partition"),
        (((0, 1, 1, 1), (0, 2, 1, 1)), "job 1 runs longer than it asks for"),
        (((1, 1, 1, 1), (0, 1, 1, 1)), "job 0 is submitted after the next one"),
        (((0, 1, 1, 1, 1),), "job 0 names no partition"),
        (((0, 1, 1, 1, 0, -1),), "job 0 has no user"),
    ],
)
def test_what_cannot_be_is_refused(jobs, words):
    with pytest.raises(ValueError, match=words):
        queue_of(*jobs)


@needs_compiled
@needs_shared
@pytest.mark.parametrize("rules", [PriorityRules(), RANKED, CLASSIC], ids=["fifo", "fair-tree", "classic"])
@pytest.mark.parametrize("log", UNITS)
def test_schedules_of_real_logs_are_identical(log, rules):
    """The first 300 jobs, with a cluster so small that they wait; whole ones: make bench."""
    rows = rows_of(log, 300)
    units = max(UNITS[log] // 8, *(row[3] for row in rows))
    for backfill in Backfill:
        jobs, probes = both(
            queue_of(*rows, backfill=backfill, rules=rules, cluster=cluster_of(units), probes=rows[150:152])
        )
        assert len(jobs) == 300
        assert max(np.array(jobs) - np.array([row[0] for row in rows])) > 0
        assert len(probes) == 2
