"""What would run if the script divided its model: only where memory alone stands against every plan."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import DivideLayers, EditScript, ShardModel, Supposed
from advisor.core.units import GIB
from advisor.core.values import Layout, Option, Plan, Recommendation, Sharding, Split, Trace
from recommender.ranking.what_ifs import best_what_if
from tests.builders import make_gpu, make_job, make_plan
from tests.recommending import estimates_for, recommend, with_divisions
from tests.unit.predict.footprint.scripts import make_transformer
from tests.unit.predict.split.transformers import transformer

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
