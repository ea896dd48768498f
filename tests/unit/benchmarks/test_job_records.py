"""Regret by records: what a pick costs on a trace of a spot machine, and at later prices."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Job, Market, Work
from advisor.pricing.expected_prices import PriceModel
from advisor.service.recommend.pipeline import recommendation_of
from benchmarks.job_records import Records, at_later_prices, on_traces
from recommender.outcome.spot_history import Stretch
from research.chosen.panels import Panel
from research.spot_replay import ring_of
from tests.builders import make_plan, make_trace
from tests.recommending import places

A100 = resolve_gpu("A100-SXM-40GB")
THERE = places(
    [make_plan(A100.name, 4.0, id="lasting"), make_plan(A100.name, 1.0, id="spot", market=Market.SPOT)],
    {A100.name: A100},
    Job(iterations=10_000_000),
)


def ring(up_h: float, down_h: float) -> tuple[Stretch, ...]:
    stretches = [
        Stretch(start_h=0.0, hours=up_h, is_up=True),
        Stretch(start_h=up_h, hours=down_h, is_up=False),
    ]
    return tuple(ring_of(stretches))


@pytest.mark.parametrize(
    ("chosen", "up_h", "is_best"),
    [("spot", 10_000.0, True), ("lasting", 10_000.0, False), ("spot", 0.3, False), ("lasting", 0.3, True)],
)
def test_on_a_trace_the_pick_costs_what_the_machine_of_the_trace_lets_it(chosen, up_h, is_best):
    answer = recommendation_of(make_trace(), THERE)
    work = {option.plan.id: option.work for option in answer.options}
    assert work["spot"] in ((), (Work.CHECKPOINTS,))
    regret = on_traces(replace(answer, recommended=chosen), THERE, [ring(up_h, 100.0)])
    assert regret == 0 if is_best else regret > 0.1


def panel(*usd_per_h: tuple[float, float]) -> Panel:
    """One machine on spot in two regions, at two dates half a year apart."""
    regions = ("europe-west4", "us-central1")
    return Panel(
        provider="gcp",
        days=np.array([date(2025, 1, 1).toordinal(), date(2025, 7, 1).toordinal()]),
        machines=tuple(("a2-highgpu-1g", region) for region in regions),
        regions=regions,
        gpus=(A100.name, A100.name),
        spot=np.array(usd_per_h).T,
        on_demand=np.full((2, 2), 20.0),
    )


@pytest.mark.parametrize(
    ("later", "is_best"), [((4.0, 8.0), True), ((9.0, 16.0), True), ((16.0, 8.0), False)]
)
def test_at_later_prices_the_place_that_was_cheaper_is_paid(later, is_best):
    records = Records(panel=panel((4.0, 8.0), later), moments=((0, 1, PriceModel()),), rings={})
    (regret,) = at_later_prices(make_trace(), THERE, records)
    assert regret == pytest.approx(0) if is_best else regret > 0.1
