"""What a person is told about all options together: what counted as nothing."""

from __future__ import annotations

import numpy as np

from advisor.core.findings import Code
from advisor.core.values import Plan, Tier
from recommender.engine import recommend
from tests.builders import make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.findings import said, sample


def warnings(*plans: Plan) -> str:
    estimates = {(plan.gpu, plan.layout): make_estimate(plan.gpu) for plan in plans}
    gpus = {plan.gpu: make_gpu(plan.gpu) for plan in plans}
    answer = recommend(make_trace(), estimates, gpus, plans, make_job(), rng=np.random.default_rng(0))
    return said(answer.warnings)


def test_options_without_a_rate_of_their_own_are_counted() -> None:
    unknown = (sample(Code.RATE_UNKNOWN), sample(Code.RATE_UNKNOWN))
    text = warnings(make_plan("A", notes=unknown), make_plan("B"), make_plan("C", notes=unknown[:1]))
    assert "2 of 3 options pay the dearest known rate" in text


def test_what_costs_nothing_is_known_and_no_reason_to_warn() -> None:
    text = warnings(make_plan("A"), make_plan("B", 0.5, tier=Tier.CLUSTER))
    assert "dearest" not in text
    assert "hourly cost" not in text


def test_assumed_waits_are_counted() -> None:
    assumed, measured = sample(Code.WAIT_ASSUMED), sample(Code.WAIT_OF_STARTS)
    plans = [make_plan("A", notes=(assumed,)), make_plan("B", notes=(measured,)), make_plan("C")]
    assert "assumed for 1 of 3 rented options" in warnings(*plans)
    assert "the wait for a machine" not in warnings(*plans[1:])


def test_each_unknown_wait_and_cost_is_told() -> None:
    text = warnings(make_plan("B", None, tier=Tier.CLUSTER, wait_s=None))
    assert "no hourly cost is configured for lab" in text
    assert "no wait is configured for lab" in text
