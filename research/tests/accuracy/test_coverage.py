"""Coverage by source: the share of steps that intervals hold, and whose choice of figures counts."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Interval
from research import lambda_steps
from research.accuracy import coverage
from research.accuracy.coverage import Figures, Step, chosen, held, ratios, using
from research.lambda_steps import Judged, Row, Work
from tests.shared import SHARED, needs_shared

MEASUREMENTS = SHARED / "measurements"
TABLES = MEASUREMENTS / "published"


def test_a_source_has_no_vote_where_it_is_judged() -> None:
    narrow, wide = Figures(lab=0.01), Figures(lab=0.2)
    shares = {narrow: {"a": 0.8, "b": 0.7, "c": 0.2}, wide: {"a": 0.95, "b": 0.9, "c": 0.8}}
    assert chosen(shares, "c") == narrow
    assert chosen(shares, "a") == chosen(shares, "b") == wide


def test_a_step_is_held_by_the_figures_of_the_moment() -> None:
    def at(row: Row) -> Interval:
        return lambda_steps.judge([row])[0].predicted

    row = Row(
        work=Work("resnet50", "fp16"), gpu=resolve_gpu("A100-SXM-40GB"), batch=64, step_s=1.0, software=""
    )
    shipped = at(row)
    outside = Step(1.05 * shipped.p90, lambda: at(row))
    assert not outside.is_held
    assert [held([outside], Figures(lab=lab)) for lab in (0.05, 0.5)] == [0.0, 1.0]
    with using(Figures(left=0.8, lab=0.3)):
        wider = at(row)
    assert (wider.p50, wider.p90 > shipped.p90, wider.p10 < shipped.p10) == (shipped.p50, True, True)
    assert at(row) == shipped


def test_ratios_are_of_two_boards_on_the_same_work() -> None:
    def judged(gpu: str, measured_s: float, work: Work) -> Judged:
        row = Row(work=work, gpu=resolve_gpu(gpu), batch=1, step_s=measured_s, software="")
        return Judged(row=row, predicted=Interval(p10=0.9, p50=1.0, p90=1.1))

    one, other = Work("gnmt", "o2"), Work("gnmt", "tf32")
    # Both twice as slow: each is outside of its interval, their ratio is right.
    alike = [judged("A40", 2.0, one), judged("RTX-A6000", 2.1, one)]
    assert ratios([*alike, judged("V100-SXM-16GB", 1.0, other)]) == [True]
    assert ratios([judged("A40", 1.0, one), judged("RTX-A6000", 1.3, one)]) == [False]
    assert ratios([judged("A40", 1.0, one), judged("A40", 1.0, one)]) == []


@needs_shared
@pytest.mark.parametrize(
    ("steps", "rows"),
    [
        (lambda: coverage.lambda_labs(TABLES), 140),
        (lambda: coverage.dashboards(TABLES), 35),
        (lambda: coverage.training_runs(MEASUREMENTS), 140),
    ],
)
def test_intervals_hold_about_four_fifths_of_a_source(steps, rows: int) -> None:
    own = list(steps())
    assert len(own) >= rows
    assert 0.74 <= held(own, Figures()) <= 0.86


@needs_shared
def test_ratios_of_boards_are_held_as_often() -> None:
    found = ratios(lambda_steps.judge(lambda_steps.read_rows(TABLES / "lambda_steps.csv")))
    assert len(found) > 1000
    assert 0.76 <= statistics.fmean(found) <= 0.86


def test_the_page_is_of_the_command() -> None:
    page = (Path(coverage.__file__).parents[1] / "docs" / "accuracy" / "coverage.md").read_text()
    assert page.startswith(coverage._HEAD)
    assert page.count("%") >= 14
