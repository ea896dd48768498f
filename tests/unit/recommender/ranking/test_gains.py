"""What a change brings on the recommended machine, how sure that is, and in which order."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_estimates import DivideLayers, EditScript, NoGain, ShardModel, Supposed
from advisor.core.findings.about_options import RemovedByDeadline
from advisor.core.gpus import load_gpus
from advisor.core.units import GIB
from advisor.core.values import (
    Z90,
    IterationEstimate,
    Layout,
    Option,
    PickName,
    Plan,
    Recommendation,
    Sharding,
    Split,
    Trace,
    Variant,
)
from advisor.predict.interval import spread
from recommender.ranking.what_ifs import WhatIfGain, best_what_if, saved_share
from tests.builders import make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.findings import sample
from tests.recommendations import make_option, removed
from tests.recommending import estimates_for, make_script, recommend, with_changes, with_divisions
from tests.unit.predict.footprint.scripts import make_transformer
from tests.unit.predict.split.transformers import transformer

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


# At 2 USD an hour: 20 USD, 28 and 70 in all.
A, B, C = make_option("A", 5.0, 10.0), make_option("B", 4.0, 20.0), make_option("C", 1.0, 68.0)


def changed(name: str, change: str, hours: float, usd: float) -> Option:
    return make_option(name, hours, usd, plan=make_plan(name, id=f"{name}+{change}"), what_if=change)


def best(*what_ifs: Option, recommended: str | None = "A", pick: PickName | None = None) -> WhatIfGain | None:
    options = (A, B, C)
    if recommended is None:
        options = tuple(removed(option, RemovedByDeadline) for option in options)
    return best_what_if(
        Recommendation(
            script=make_script(),
            job=make_job(pick=pick),
            options=options,
            frontier=(),
            recommended=recommended,
            rule=None,
            warnings=(),
            what_ifs=what_ifs,
        )
    )


def test_of_several_changes_the_one_of_least_total_on_the_same_machine():
    tf32, bf16 = changed("A", "tf32", 4.0, 8.0), changed("A", "bf16", 3.0, 6.0)
    assert best(tf32, bf16) == WhatIfGain(change="bf16", same=bf16, instead=None)


def test_a_gain_on_the_same_machine_goes_before_a_move():
    tf32, fp16 = changed("A", "tf32", 4.0, 8.0), changed("B", "fp16", 1.0, 1.0)
    assert best(fp16, tf32) == WhatIfGain(change="tf32", same=tf32, instead=None)
    assert best(fp16) == WhatIfGain(change="fp16", same=None, instead=fp16)


def test_another_machine_is_named_only_where_it_would_be_recommended():
    same, other = changed("A", "bf16", 3.0, 6.0), changed("B", "bf16", 2.0, 9.0)
    assert best(same, other) == WhatIfGain(change="bf16", same=same, instead=None)
    cheaper = changed("B", "bf16", 2.0, 7.0)
    assert best(same, cheaper) == WhatIfGain(change="bf16", same=same, instead=cheaper)


def test_what_helps_nowhere_is_not_told():
    assert best(changed("C", "bf16", 0.9, 60.0)) is None
    assert best() is None


def test_of_a_policys_pick_that_decides_what_would_be_recommended():
    fast = changed("C", "bf16", 0.5, 34.0)
    change = best(fast, recommended="C", pick=PickName.FASTEST)
    assert change == WhatIfGain(change="bf16", same=fast, instead=None)
    cheap = changed("A", "bf16", 3.0, 6.0)
    assert best(fast, cheap, recommended="A", pick=PickName.CHEAPEST) == WhatIfGain(
        change="bf16", same=cheap, instead=None
    )


def test_where_nothing_is_feasible_the_best_of_what_would_be():
    late, early = changed("A", "bf16", 3.0, 6.0), changed("C", "bf16", 0.5, 1.0)
    assert best(late, early, recommended=None) == WhatIfGain(change="bf16", same=None, instead=early)


def test_half_an_hour_for_a_second_gpu_counts_here_too():
    one, two = changed("A", "bf16", 3.0, 6.0), changed("B", "bf16", 2.9, 5.5)
    assert best(one, two) == WhatIfGain(change="bf16", same=one, instead=two)
    wrapped = replace(two, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    assert best(one, wrapped) == WhatIfGain(change="bf16", same=one, instead=None)


# 22 GiB and what a process takes besides: too much for one GPU, and for each of eight copies.
GPUS = {"X": make_gpu("X", memory_bytes=23 * GIB, nvlink_bytes_per_s=300e9)}
TRACE = make_transformer(iterations_per_epoch=100)


def plan_of(num_gpus: int, **changes: object) -> Plan:
    return make_plan("X", num_gpus=num_gpus, **{"id": f"{num_gpus}x", **changes})


def divided(plans: Sequence[Plan], *, trace: Trace = TRACE, **of_job: object) -> Recommendation:
    job = make_job(**of_job)
    estimates = estimates_for(trace, plans, GPUS, job)
    answer = recommend(trace, estimates, GPUS, plans, job)
    return with_divisions(answer, GPUS, trace)


def test_eight_gpus_run_what_none_of_them_holds():
    answer = divided([plan_of(1), plan_of(8)])
    assert answer.recommended is None
    assert {option.plan.id for option in answer.what_ifs} == {"8x+zero-1", "8x+zero-2", "8x+zero-3"}
    for option in answer.what_ifs:
        assert option.feasible
        assert ShardModel in [type(change) for change in option.script_changes]
        assert EditScript(what="wrap-in-ddp") not in option.script_changes
    assert not {option.plan.id for option in answer.options} & {o.plan.id for o in answer.what_ifs}


def test_the_best_of_them_speaks_for_all():
    answer = divided([plan_of(8)])
    best = best_what_if(answer)
    assert best is not None
    assert best.option in answer.what_ifs


def test_a_hybrid_is_for_several_nodes():
    layout = Layout(gpus_per_node=8, num_nodes=2)
    names = {option.what_if for option in divided([plan_of(8, layout=layout)]).what_ifs}
    assert names == {"zero-1", "zero-2", "zero-3", "hybrid"}


def test_what_runs_as_it_is_needs_no_division():
    large = replace(GPUS["X"], memory_bytes=80 * GIB)
    plans, job = [plan_of(8)], make_job()
    estimates = estimates_for(TRACE, plans, {"X": large}, job)
    answer = recommend(TRACE, estimates, {"X": large}, plans, job)
    assert with_divisions(answer, {"X": large}, TRACE) is answer


def test_a_division_lifts_no_other_limit():
    assert divided([plan_of(8)], budget_usd=1e-6).what_ifs == ()


@pytest.mark.parametrize("num_gpus", [8, 16])
def test_the_figures_are_those_of_the_supposition(num_gpus):
    """The hint costs and takes what `--suppose` would rank."""
    plans, split = [plan_of(num_gpus)], Split(sharding=Sharding.ZERO_3)
    hint = next(option for option in divided(plans).what_ifs if option.what_if == split.name)
    job = make_job(split=split)
    estimates = estimates_for(TRACE, plans, GPUS, job)
    supposed = recommend(TRACE, estimates, GPUS, plans, job)
    chosen = supposed.chosen
    assert chosen is not None
    assert (chosen.time_s, chosen.cost_usd) == (hint.time_s, hint.cost_usd)
    assert Supposed in [type(warning) for warning in supposed.warnings]


def test_copies_of_a_divided_model_take_one_batch_each():
    def iterations(split: Split) -> int:
        plans, job = [plan_of(8)], make_job(split=split)
        estimates = estimates_for(TRACE, plans, GPUS, job)
        option: Option = recommend(TRACE, estimates, GPUS, plans, job).options[0]
        return option.iterations

    assert iterations(Split(sharding=Sharding.ZERO_3)) == iterations(Split())


def test_layers_are_divided_where_sharding_is_not_enough():
    """Activations alone fill a GPU, and no level of ZeRO has less of them."""
    trace = transformer(iterations_per_epoch=100)
    activations = 22 * GIB
    memory = replace(
        trace.memory,
        activation_bytes=activations,
        pass_activation_bytes=activations,
        peak_bytes=(trace.memory.peak_bytes or 0) + activations,
        pass_peak_bytes=(trace.memory.pass_peak_bytes or 0) + activations,
    )
    answer = divided([plan_of(8)], trace=replace(trace, memory=memory))
    names = {option.what_if for option in answer.what_ifs}
    assert "tensor-8" in names
    assert not names & {one.value for one in Sharding}
    codes = [type(change) for option in answer.what_ifs for change in option.script_changes]
    assert DivideLayers in codes


def test_a_model_without_layers_is_shared_or_not_at_all():
    flat = replace(TRACE, ops=TRACE.ops[2:], memory=replace(TRACE.memory, activation_bytes=90 * GIB))
    huge = replace(flat.memory, peak_bytes=100 * GIB)
    assert divided([plan_of(8)], trace=replace(flat, memory=huge)).what_ifs == ()
