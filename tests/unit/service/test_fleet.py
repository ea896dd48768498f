"""What a sweep says of a fleet, against all choices there are."""

import itertools
import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.values import Market
from advisor.report.printing import SweepView
from advisor.report.sweeps import sweep_document
from advisor.service.fleet import fleet_of, picks_of, pools_of, spending_of
from advisor.service.sweeping import Advice, Choice, Grid, SweepJob, Swept
from advisor.store.ledger import Run

GRID = Grid(subjects=("*",))
CHOICE = Choice(
    plan="aws/g6.xlarge/us-east-1/on-demand", gpu="L4", num_gpus=1, instance_type="g6.xlarge", num_nodes=1,
    market="on-demand", usd_per_h=1.0, step_s=0.1, time_p50_s=3600.0, time_p90_s=7200.0, cost_p50_usd=1.0,
    cost_p90_usd=2.0, held_s=3600.0, counted_usd=1.0, work_usd=0.0,
)  # fmt: skip
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def choice(usd, hours, **facts):
    costs = {"cost_p50_usd": usd, "counted_usd": usd}
    return replace(CHOICE, **{**costs, "time_p50_s": 3600 * hours, "held_s": 3600 * hours} | facts)


def swept(subject, *choices, options=("--epochs", "1"), **job):
    advice = Advice(take=choices[0], frontier=choices, script=subject, batch_size=8)
    job = SweepJob(subject=subject, arguments=job.get("arguments", ""), options=options)
    return Swept(job=job, advice=advice, before=None, is_new=True)


def test_batches_and_places_are_one_job_and_deadlines_are_another():
    dear, cheap = choice(3.0, 1.0), choice(1.0, 2.0)
    limited = swept("a.py", dear, options=("--epochs", "1", "--deadline", "2h"))
    tried = (
        swept("a.py", dear, arguments="--batch-size 64"),
        swept("a.py", cheap, arguments="--amp", options=("--epochs", "1", "--gpu", "L4:1", "--gpu", "T4:1")),
        limited,
    )
    picks = picks_of(tried, Grid(subjects=("*",), runs_per_month={"b*": 2, "a*": 10}))
    assert [(pick.num_tried, pick.usd(pick.best)) for pick in picks] == [(1, 30.0), (2, 10.0)]
    assert picks[1].best.job.arguments == "--amp"
    assert [one.choice for one in picks[1].candidates] == [cheap, dear]


def test_what_is_dearer_and_slower_is_no_candidate():
    (pick,) = picks_of(
        [swept("a.py", choice(1.0, 2.0), choice(2.0, 3.0), choice(2.0, 2.0), choice(3.0, 1.0))], GRID
    )
    assert [one.choice.cost_p50_usd for one in pick.candidates] == [1.0, 3.0]


def test_the_cheapest_is_that_of_recommend():
    """Not one's own of unknown cost, a guess at its median, or one that needs work first."""
    known, unknown = choice(4.0, 1.0), choice(0.0, 0.5, usd_per_h=None)
    guessed, untouched = choice(1.0, 2.0, counted_usd=5.0), choice(1.0, 2.0, work_usd=50.0)
    (pick,) = picks_of([swept("a.py", unknown, guessed, untouched, known)], GRID)
    assert (pick.best.choice, pick.usd(pick.best)) == (known, 4.0)
    # Work is done once, so it pays over many runs.
    (pick,) = picks_of([swept("a.py", untouched, known)], Grid(subjects=("*",), runs_per_month={"*": 20}))
    assert (pick.best.choice, pick.usd(pick.best)) == (untouched, 70.0)
    document = sweep_document(
        fleet_of([swept("a.py", untouched)], Grid(subjects=("*",), runs_per_month={"*": 20}), None),
        SweepView.BEST,
    )
    assert document.blocks[-1].lines[0].endswith("$70.00 a month, $50.00 of it once, for work on scripts.")
    only = [swept("a.py", unknown)]
    assert not picks_of(only, GRID)
    document = sweep_document(fleet_of(only, GRID, None), SweepView.JOBS)
    assert "cost is not known" in document.blocks[-1].lines[1]
    assert document.sheet.rows[0].cells[3] is None


def test_scripts_of_one_name_are_told_apart_by_their_folders():
    fleet = fleet_of([swept("jobs/a/train.py", CHOICE), swept("jobs/b/train.py", CHOICE)], GRID, None)
    rows = sweep_document(fleet, SweepView.BEST).blocks[0].rows
    assert sorted(row.cells[0] for row in rows) == ["a/train.py --epochs 1", "b/train.py --epochs 1"]


@pytest.mark.parametrize(
    ("pattern", "fits"), [("train.py", 1), ("s/train.py", 1), ("*", 2), ("s/*.py", 2), ("rain.py", 0)]
)
def test_a_pattern_fits_whole_parts_of_a_path(pattern, fits):
    tried = [swept("jobs/s/train.py", CHOICE), swept("jobs/s/pretrain.py", CHOICE)]
    picks = picks_of(tried, Grid(subjects=("*",), runs_per_month={pattern: 7}))
    assert sum(pick.runs_per_month == 7 for pick in picks) == fits


@pytest.mark.parametrize("seed", range(20))
def test_a_month_is_as_short_as_it_says(seed):
    """Against all choices: what is promised of the best one holds, and a hull's corner is the best."""
    rng = random.Random(seed)  # noqa: S311
    tried = []
    for job in range(4):
        usd, hours = rng.uniform(1, 5), rng.uniform(5, 50)
        choices = [choice(usd * factor, hours / factor ** rng.uniform(0.2, 1.5)) for factor in (1, 1.5, 2, 4)]
        tried.append(swept(f"{job}.py", *choices))
    picks = picks_of(tried, GRID)
    cheapest, whole = spending_of(picks, 0.0), spending_of(picks, None)

    def best_hours(budget):
        every = itertools.product(*(pick.candidates for pick in picks))
        return min(
            sum(one.choice.time_p50_s / 3600 for one in chosen)
            for chosen in every
            if sum(one.choice.cost_p50_usd for one in chosen) <= budget + 1e-9
        )

    for share in (0.1, 0.35, 0.7, 1.0):
        budget = cheapest.cheapest_usd + share * (whole.usd - cheapest.cheapest_usd)
        spent = spending_of(picks, budget)
        assert spent.usd <= budget + 1e-9
        assert best_hours(budget) - 1e-9 <= spent.hours <= best_hours(budget) + spent.hours_above_best + 1e-9
    corner = spending_of(picks, cheapest.cheapest_usd + sum(move.usd for move in whole.moves[:2]) + 1e-9)
    assert corner.hours == pytest.approx(best_hours(corner.budget_usd))
    assert corner.moves[:2] == whole.moves[:2]
    assert not cheapest.moves
    assert whole.hours_above_best == 0


def run(start_h, hours, **facts):
    start = NOW - timedelta(days=100) + timedelta(hours=start_h)
    given = {"market": Market.ON_DEMAND, "instance_type": "g6.xlarge", "usd_per_h": 2.0} | facts
    return Run(
        project="", script="a.py", provider="aws", gpu="L4", num_gpus=1, started_at=start,
        duration_s=3600 * hours, cost_usd=None, **given,
    )  # fmt: skip


def test_a_machine_that_is_busy_more_than_it_costs_is_committed_to():
    """One machine in use for 1,800 of 2,400 hours, a second for 600; spot and other years do not count."""
    runs = [run(0, 1800), run(100, 600), run(0, 2400, market=Market.SPOT), run(-9000, 50)]
    (pool,) = pools_of((), runs, {12: 0.3, 36: 0.5}, NOW)
    assert pool.busy == pytest.approx((0.75, 0.25))
    assert (pool.months, pool.num) == (36, 1)
    assert pool.idle == pytest.approx(0.25)
    assert pool.next_pays_from == pytest.approx(0.75)
    assert pool.saved_usd_per_month == pytest.approx(0.25 * 2.0 * 730)
    (none,) = pools_of((), runs, {12: 0.2}, NOW)
    assert (none.months, none.num, none.next_pays_from) == (None, 0, pytest.approx(0.25))


def test_a_few_days_of_runs_are_no_year():
    """A run of the last two hours says nothing of three years; one of a hundred days ago does."""
    assert not pools_of((), [run(2398, 2)], {36: 0.5}, NOW)
    (pool,) = pools_of((), [run(0, 2)], {36: 0.5}, NOW)
    assert (pool.months, pool.source) == (None, "1 run in 100 days")


def test_without_recorded_runs_planned_ones_begin_at_random_moments():
    """730 hours a month: as many run at any moment as a Poisson distribution of mean 1 says."""
    picks = picks_of([swept("a.py", choice(1.0, 73.0))], Grid(subjects=("*",), runs_per_month={"*": 10}))
    (pool,) = pools_of(picks, (), {}, NOW)
    assert pool.busy == pytest.approx((0.632, 0.264, 0.080), abs=1e-3)
    assert pool.machine == "aws/g6.xlarge (1 x L4)"
    many = Grid(subjects=("*",), runs_per_month={"*": 10_000})
    (pool,) = pools_of(picks_of([swept("a.py", choice(1.0, 73.0))], many), (), {}, NOW)
    assert 1000 < len(pool.busy) < 1100
    assert not pools_of(picks_of([swept("a.py", choice(1.0, 1.0, market="spot"))], GRID), (), {}, NOW)


def poisson(mean, num):
    return math.exp(-mean) * mean**num / math.factorial(num)


def test_a_planned_run_holds_all_its_machines_but_not_while_it_waits():
    """One on four machines is there at any moment in the mean, and a tenth of one on one machine."""
    gang = choice(1.0, 99.0, held_s=73 * 3600, num_gpus=4, num_nodes=4, usd_per_h=4.0)
    grid = Grid(subjects=("*",), runs_per_month={"b.py": 1, "*": 10})
    (pool,) = pools_of(picks_of([swept("a.py", gang), swept("b.py", choice(1.0, 73.0))], grid), (), {}, NOW)
    exactly = [sum(poisson(0.1, k - 4 * n) * poisson(1, n) for n in range(k // 4 + 1)) for k in range(8)]
    assert pool.busy[:8] == pytest.approx([1 - below for below in itertools.accumulate(exactly)])
    assert pool.usd_per_h == 1.0
