"""What a cluster that states no wait is assumed to have."""

from itertools import pairwise

import pytest

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from recommender.queue.waits import COLUMNS, WAITS_FILE, assumed_wait, class_of, read_waits

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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: ["3", *row[1:]], "no class"),
        (lambda row: [*row[:2], "9999999", *row[3:]], "ascend"),
        (lambda row: [*row[:9], "0", *row[10:]], "num_logs is 0"),
    ],
)
def test_a_broken_row_is_refused(tmp_path, change, words):
    import csv

    with catalog_path(WAITS_FILE).open() as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == COLUMNS
    with (tmp_path / "w.csv").open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], change(rows[1])])  # type: ignore[operator]
    with pytest.raises(CatalogError, match=words):
        read_waits(tmp_path / "w.csv")
