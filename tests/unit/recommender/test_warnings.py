"""What a person is told about all options together: what counted as nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from advisor.core.findings import Code
from advisor.core.values import Job, Plan, Tier, Trace
from recommender.engine import recommend
from tests.builders import make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.findings import said, sample


def warnings(*plans: Plan, trace: Trace | None = None, job: Job | None = None) -> str:
    estimates = {(plan.gpu, plan.layout): make_estimate(plan.gpu) for plan in plans}
    gpus = {plan.gpu: make_gpu(plan.gpu) for plan in plans}
    trace, job = trace or make_trace(), job or make_job()
    answer = recommend(trace, estimates, gpus, plans, job, rng=np.random.default_rng(0))
    return said(answer.warnings)


def test_a_length_that_was_given_is_not_asked_for() -> None:
    trace = make_trace(warnings=(sample(Code.NO_DATA_LOADER), sample(Code.NO_DTYPES)), iterations_per_epoch=9)
    job = make_job(iterations=None, epochs=2.0)
    plan = make_plan("A")
    assert "give --iterations" in warnings(plan, trace=trace, job=job)
    for given in (make_job(iterations=10), replace(job, iterations_per_epoch=10)):
        text = warnings(plan, trace=trace, job=given)
        assert "give --iterations" not in text
        assert "no dtypes" in text


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
