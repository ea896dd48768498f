"""What a person is told about all options together: what counted as nothing."""

from dataclasses import replace

from advisor.core.findings.about_options import RateUnknown, WaitAssumed, WaitOfStarts
from advisor.core.findings.about_traces import LengthUnknown, ProfileLacks
from advisor.core.values import Job, Plan, Recommendation, Scaling, Tier, Trace
from recommender.queue.waits import assumed_wait
from tests.builders import make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.findings import said, sample
from tests.recommending import recommend


def answer_of(*plans: Plan, trace: Trace | None = None, job: Job | None = None) -> Recommendation:
    estimates = {(plan.gpu, plan.layout): make_estimate(plan.gpu, num_gpus=plan.num_gpus) for plan in plans}
    gpus = {plan.gpu: make_gpu(plan.gpu) for plan in plans}
    trace, job = trace or make_trace(), job or make_job()
    return recommend(trace, estimates, gpus, plans, job)


def warnings(*plans: Plan, trace: Trace | None = None, job: Job | None = None) -> str:
    return said(answer_of(*plans, trace=trace, job=job).warnings)


def recommended(*plans: Plan, trace: Trace, job: Job) -> str | None:
    return answer_of(*plans, trace=trace, job=job).recommended


def test_a_length_that_was_given_is_not_asked_for():
    trace = make_trace(
        warnings=(sample(LengthUnknown, why="no-loader"), sample(ProfileLacks, what="dtypes")),
        iterations_per_epoch=9,
    )
    job = make_job(iterations=None, epochs=2.0)
    plan = make_plan("A")
    assert "give --iterations" in warnings(plan, trace=trace, job=job)
    for given in (make_job(iterations=10), replace(job, iterations_per_epoch=10)):
        text = warnings(plan, trace=trace, job=given)
        assert "give --iterations" not in text
        assert "no dtypes" in text


def test_gpus_that_may_not_share_a_step_neither_win_nor_pass_in_silence():
    trace = make_trace(batch_size=None, warnings=(sample(LengthUnknown, why="no-loader"),))
    one, eight = make_plan("A", 1.0), make_plan("B", 4.0, num_gpus=8)
    assert "no DataLoader shows how several GPUs would share a step" in warnings(one, eight, trace=trace)
    assert "DataLoader" not in warnings(one, trace=trace)
    assert "DataLoader" not in warnings(one, eight, trace=trace, job=make_job(scaling=Scaling.WEAK))
    long = {"iterations": 10**6, "change_usd": 0.0}
    assert recommended(one, eight, trace=trace, job=make_job(**long)) == one.id
    assert recommended(one, eight, trace=trace, job=make_job(**long, scaling=Scaling.WEAK)) == eight.id


def test_options_without_a_rate_of_their_own_are_counted():
    unknown = (sample(RateUnknown), sample(RateUnknown))
    text = warnings(make_plan("A", notes=unknown), make_plan("B"), make_plan("C", notes=unknown[:1]))
    assert "2 of 3 options pay the dearest known rate" in text


def test_what_costs_nothing_is_known_and_no_reason_to_warn():
    text = warnings(make_plan("A"), make_plan("B", 0.5, tier=Tier.CLUSTER))
    assert "dearest" not in text
    assert "hourly cost" not in text


def test_assumed_waits_are_counted():
    assumed, measured = sample(WaitAssumed), sample(WaitOfStarts)
    plans = [make_plan("A", notes=(assumed,)), make_plan("B", notes=(measured,)), make_plan("C")]
    assert "assumed for 1 of 3 rented options" in warnings(*plans)
    assert "the wait for a machine" not in warnings(*plans[1:])


def test_each_unknown_wait_and_cost_is_told():
    assumed_s, _ = assumed_wait(1, None)
    text = warnings(make_plan("B", None, tier=Tier.CLUSTER, wait_s=assumed_s))
    assert "no hourly cost is configured for lab" in text
    assert "no wait is configured for lab" in text
