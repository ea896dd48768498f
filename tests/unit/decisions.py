"""What cases with their arithmetic by hand share."""

import numpy as np

from advisor.core.values import (
    Interval,
    IterationEstimate,
    Job,
    Option,
    Plan,
    Quantiles,
    Recommendation,
    Trace,
)
from recommender.outcome.spot import SpotTerms
from tests.builders import HOUR_S, make_gpu, make_trace
from tests.findings import said
from tests.recommending import recommend

TOLERANCE = 1e-4


def around(seconds: float) -> Interval:
    """A prediction with an interval of +- 8 %."""
    return Interval(p10=0.92 * seconds, p50=seconds, p90=1.08 * seconds)


def decide(
    plans: list[Plan],
    estimates: list[IterationEstimate],
    job: Job,
    trace: Trace | None = None,
    spot: SpotTerms | None = None,
) -> Recommendation:
    return recommend(
        trace or make_trace(),
        {(e.gpu, e.layout): e for e in estimates},
        {e.gpu: make_gpu(e.gpu) for e in estimates},
        plans,
        job,
        rng=np.random.default_rng(0),
        spot=spot,
    )


def option_of(recommendation: Recommendation, plan_id: str) -> Option:
    option = recommendation.option(plan_id)
    assert option is not None, plan_id
    return option


def reasons(recommendation: Recommendation, plan_id: str) -> str:
    return said(option_of(recommendation, plan_id).reasons)


def time_h(recommendation: Recommendation, plan_id: str) -> Quantiles:
    option = option_of(recommendation, plan_id)
    return Quantiles(p50=option.time_s.p50 / HOUR_S, p90=option.time_s.p90 / HOUR_S)


def cost_usd(recommendation: Recommendation, plan_id: str) -> float:
    return option_of(recommendation, plan_id).cost_usd.p50
