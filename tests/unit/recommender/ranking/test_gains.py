"""What a change brings on the recommended machine, how sure that is, and in which order."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_estimates import NoGain
from advisor.core.gpus import load_gpus
from advisor.core.values import Z90, IterationEstimate, Recommendation, Variant
from advisor.predict.interval import spread
from recommender.ranking.what_ifs import saved_share
from tests.builders import make_estimate, make_job, make_plan, make_trace
from tests.recommending import estimates_for, recommend, with_changes

CATALOG = load_gpus()


def change(**facts: Any) -> Variant:
    return Variant(name="tf32", **facts)


def estimate(sigma: float, **seconds: float) -> IterationEstimate:
    interval = spread(sum(seconds.values()), sigma)
    return make_estimate(iteration=interval, by_family=seconds, communication_s=0.0)


def test_what_stays_has_the_same_error_before_and_after():
    share, p = saved_share(estimate(0.5, gemm=1.0, norm=1.0), estimate(0.5, gemm=1.0, norm=0.8), change())
    assert share.p50 == pytest.approx(0.1)
    # Only the 0.2 seconds that went are unsure.
    assert share.p90 - share.p50 == pytest.approx(Z90 * 0.5 * 0.2 / 2)
    assert p == pytest.approx(0.5 * (1 + math.erf(1 / 0.5 / math.sqrt(2))))


def test_new_kernels_are_wrong_in_their_own_way():
    before, after = estimate(0.3, gemm=1.0, norm=1.0), estimate(0.3, gemm=0.8, norm=1.0)
    other, _ = saved_share(before, after, change(new_kernels=frozenset({"gemm"})))
    same, _ = saved_share(before, after, change())
    assert other.p50 == same.p50
    assert other.p90 - other.p50 == pytest.approx(Z90 * 0.3 * math.hypot(1.0, 0.8) / 2)
    assert other.p10 < same.p10


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0.0, 1), st.floats(0.01, 0.5))
def test_nothing_unknown_counts_as_nothing(before_s, after_s, sigma, own):
    before, after = estimate(sigma, gemm=before_s), estimate(sigma, gemm=after_s)
    share, p = saved_share(before, after, change(sigma=own))
    wider, _ = saved_share(before, after, change(sigma=2 * own))
    assert share.p10 < share.p50 < share.p90
    assert wider.p10 < share.p10
    assert (p > 0.5) == (after_s < before_s) or before_s == pytest.approx(after_s)


def test_a_larger_step_is_compared_by_the_sample():
    share, _ = saved_share(estimate(0.1, gemm=1.0), estimate(0.1, gemm=1.5), change(samples=2))
    assert share.p50 == pytest.approx(0.25)


def answered(*names: str, gpu: str = "A100-SXM-80GB", **limits: Any) -> Recommendation:
    trace, gpus = make_trace(), {gpu: CATALOG[gpu]}
    plans = [make_plan(gpu, 2.0)]
    estimates, job = estimates_for(trace, plans, gpus), make_job(**limits)
    answer = recommend(trace, estimates, gpus, plans, job)
    return with_changes(answer, gpus, trace, names)


def test_the_surest_saving_comes_first_and_what_does_not_apply_last():
    gains = answered("flash", "fp16", "tf32", "bf16").gains
    surely = [-math.inf if gain.saved_share is None else gain.saved_share.p10 for gain in gains]
    assert surely == sorted(surely, reverse=True)
    assert {gain.change for gain in gains[:2]} == {"tf32", "bf16"}
    codes = {gain.change: gain.why_not.facts["why"] for gain in gains if gain.why_not is not None}
    assert codes == {"flash": "nothing", "fp16": "bf16-instead"}


def test_time_and_rent_follow_from_the_step():
    answer = answered("bf16")
    (gain,), chosen = answer.gains, answer.chosen
    assert chosen is not None
    assert gain.option is not None
    assert gain.saved_s is not None
    assert gain.saved_share is not None
    train_s = chosen.iterations * chosen.estimate.iteration_s.p50
    assert gain.saved_s == pytest.approx(train_s * gain.saved_share.p50)
    assert gain.saved_usd == pytest.approx(gain.saved_s / 3600 * 2.0)
    assert gain.option.plan.id == f"{answer.recommended}+bf16"
    assert gain.p_faster is not None
    assert gain.p_faster > 0.9


def test_a_gpu_that_cannot_says_so_and_where_nothing_is_recommended_that():
    (gain,) = answered("bf16", gpu="P100-PCIE-16GB").gains
    assert gain.why_not is not None
    assert isinstance(gain.why_not, NoGain)
    assert gain.why_not.why == "no-rate"
    (late,) = answered("bf16", deadline_s=1.0).gains
    assert late.why_not is not None
    assert isinstance(late.why_not, NoGain)
    assert late.why_not.why == "no-machine"
    assert late.option is None


@pytest.mark.parametrize(
    ("instance_type", "gib", "code"),
    [
        ("p5.48xlarge", 3000.0, "copied"),
        ("p3.16xlarge", 3000.0, "not-copied"),
        ("p5.48xlarge", 0.0, "not-fed"),
    ],
)
@pytest.mark.parametrize("wait_s", [0.0, 1e-3])
def test_a_copy_on_local_disks_is_the_plans_matter(instance_type, gib, code, wait_s):
    """Whether its workers waited for a disk where it was profiled or not."""
    loads = {"loader_cpu_s_per_sample": 1e-5, "data_loading_s": 64e-5 + wait_s, "num_workers": 4}
    trace, gpus = make_trace(**loads, iterations_per_epoch=1000), {"A100-SXM-80GB": CATALOG["A100-SXM-80GB"]}
    plan = make_plan("A100-SXM-80GB", 2.0, num_gpus=8, read_gib=gib)
    assert plan.offer is not None
    plan = replace(plan, offer=replace(plan.offer, instance_type=instance_type, num_vcpus=192))
    estimates, job = estimates_for(trace, [plan], gpus), make_job(iterations=90_000)
    answer = recommend(trace, estimates, gpus, [plan], job)
    (gain,) = with_changes(answer, gpus, trace, ("nvme",)).gains
    assert gain.why_not is not None
    assert gain.why_not.facts["why"] == code
