"""What a cluster that states no wait is assumed to have."""

from itertools import pairwise, product

import pytest

from advisor.core.gpus import catalog_path
from advisor.pricing.instance_types import read_as
from recommender.queue.waits import ANY, SIZES, WAITS_FILE, WALLTIMES, PooledWait, assumed_wait, class_of

HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("size", "walltime_s", "found"),
    [
        (1, None, ("1", "*")), (2, 4 * HOUR_S, ("2..8", "<=4h")), (8, 24 * HOUR_S, ("2..8", "<=1d")),
        (9, 25 * HOUR_S, (">8", ">1d")), (0.5, -1.0, ("1", "*")),
    ],
)  # fmt: skip
def test_jobs_have_classes(size, walltime_s, found):
    assert class_of(size, walltime_s) == found


@pytest.mark.parametrize("walltime_s", [None, HOUR_S, 12 * HOUR_S, 48 * HOUR_S])
def test_more_gpus_never_wait_less(walltime_s):
    for one, more in pairwise(assumed_wait(num_gpus, walltime_s)[0] for num_gpus in (1, 4, 32)):
        assert all(a <= b for a, b in zip(one.waits_s, more.waits_s, strict=True))


@pytest.mark.parametrize("num_gpus", [1, 4, 32])
def test_a_longer_run_never_waits_less(num_gpus):
    for short, long in pairwise(assumed_wait(num_gpus, hours * HOUR_S)[0] for hours in (1, 12, 48)):
        assert all(a <= b for a, b in zip(short.waits_s, long.waits_s, strict=True))


def test_it_says_what_it_rests_on():
    wait_s, note = assumed_wait(4, 2 * HOUR_S)
    assert wait_s.longest_s == wait_s.waits_s[-1] > wait_s.p90 > wait_s.p50
    assert note.facts["num_logs"] >= 2
    assert note.facts["walltime"] == "<=4h"


def test_every_class_is_in_the_file():
    known = {(row.size, row.walltime) for row in read_as(catalog_path(WAITS_FILE), PooledWait)}
    assert known == set(product(SIZES, (ANY, *WALLTIMES)))
