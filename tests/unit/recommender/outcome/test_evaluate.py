"""One plan for one job, in figures worked out by hand: iterations, time, money, odds, words."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advisor.core import values
from advisor.core.errors import InputError
from advisor.core.findings import Finding, about_options
from advisor.core.findings.about_estimates import EditScript, HostLaunches, RetuneLearningRate
from advisor.core.findings.about_traces import LengthUnknown
from advisor.core.units import GIB
from advisor.report.words import error_text, sentence
from recommender.outcome.draws import make_draws
from recommender.outcome.spot import SpotTerms, is_spot
from tests import builders
from tests.findings import among, said, sample
from tests.recommending import evaluate, num_iterations

WIDE = values.Interval(p10=0.05, p50=0.1, p90=0.2)
CALM = SpotTerms(preemptions_per_h=0.0)


def option_of(
    plan: values.Plan,
    *,
    iteration: float | values.Interval = 0.1,
    job: values.Job | None = None,
    trace: values.Trace | None = None,
    estimate: values.IterationEstimate | None = None,
    terms: SpotTerms | None = None,
    gpu: Any = None,
) -> values.Option:
    return evaluate(
        plan,
        estimate or builders.make_estimate(plan.gpu, iteration, num_gpus=plan.num_gpus),
        gpu or builders.make_gpu(plan.gpu, compute_capability="8.0"),
        trace or builders.make_trace(),
        job or builders.make_job(),
        make_draws(np.random.default_rng(0)),
        terms or SpotTerms(),
    )


@pytest.mark.parametrize(("num_gpus", "steps"), [(1, 10), (2, 5), (3, 4), (4, 3), (10, 1), (16, 1)])
def test_iterations_are_shared_and_rounded_up(num_gpus, steps):
    assert num_iterations(builders.make_trace(), builders.make_job(iterations=10), num_gpus) == steps


@pytest.mark.parametrize(
    ("epochs", "num_gpus", "steps"),
    [
        (1, 1, 10),
        (1, 4, 3),  # ceil(10 / 4)
        (5, 4, 15),  # every epoch ends with a short step: 5 x 3, not ceil(12.5)
        (0.5, 4, 2),  # ceil(1.5)
        (0.01, 1, 1),
    ],
)
def test_an_epoch_has_whole_steps(epochs, num_gpus, steps):
    trace = builders.make_trace(iterations_per_epoch=10)
    assert num_iterations(trace, builders.make_job(epochs=epochs), num_gpus) == steps


def test_the_job_knows_the_length_of_an_epoch_better_than_the_trace():
    job = builders.make_job(epochs=2, iterations_per_epoch=7)
    assert num_iterations(builders.make_trace(iterations_per_epoch=10), job, 1) == 14
    assert num_iterations(builders.make_trace(iterations_per_epoch=None), job, 1) == 14


def test_epochs_of_data_without_length_are_refused():
    trace = builders.make_trace(iterations_per_epoch=None, script="stream.py")
    with pytest.raises(InputError, match=r"stream\.py.*iterations_per_epoch"):
        num_iterations(trace, builders.make_job(epochs=1), 1)


def test_wait_counts_as_time_and_start_up_as_both():
    # 36,000 x 0.1 s = 1 h of training, 15 min of start-up, 2 h of waiting, 4 dollars an hour.
    plan = builders.make_plan("X", 4.0, startup_s=900.0, wait_s=values.Quantiles(p50=7200.0, p90=7200.0))
    option = option_of(plan, job=builders.make_job(iterations=36_000))
    assert option.train_s.p50 == pytest.approx(3600)
    assert option.time_s.p50 == pytest.approx(7200 + 900 + 3600)
    assert option.cost_usd.p50 == pytest.approx(4.0 * 1.25)
    assert option.cost_breakdown_usd == {"training": pytest.approx(4.0), "start-up": pytest.approx(1.0)}
    assert option.wait_s == plan.wait_s


def test_the_billing_minimum_includes_the_start_up():
    # 10 s of training + 20 s of start-up = 30 s, billed as 60 s at 36 dollars an hour: 60 cents.
    plan = builders.make_plan("X", 36.0, startup_s=20.0, minimum_billed_s=60.0)
    option = option_of(plan, job=builders.make_job(iterations=100))
    assert option.time_s.p50 == pytest.approx(30)
    assert option.cost_usd.p50 == pytest.approx(0.60)
    assert option.cost_breakdown_usd == {
        "training": pytest.approx(0.10),
        "start-up": pytest.approx(0.20),
        "billing minimum": pytest.approx(0.30),
    }


def test_quantiles_of_time_and_cost_follow_the_iteration_time():
    option = option_of(builders.make_plan("X", 3.6), iteration=WIDE, job=builders.make_job(iterations=1000))
    assert (option.time_s.p50, option.time_s.p90) == (pytest.approx(100), pytest.approx(200))
    assert (option.cost_usd.p50, option.cost_usd.p90) == (pytest.approx(0.1), pytest.approx(0.2))


def test_a_budget_counts_disks_and_egress():
    job = builders.make_job(iterations=36_000, budget_usd=4.5)
    assert option_of(builders.make_plan("X", 4.0), job=job).feasible
    assert not option_of(builders.make_plan("X", 4.0, storage_usd_per_h=0.6), job=job).feasible
    assert not option_of(builders.make_plan("X", 4.0, egress_usd=0.6), job=job).feasible


def test_time_is_billed_in_whole_steps():
    # 1 h 6 s are two hours where an hour is the step; 1 h is one.
    plan = builders.make_plan("X", 4.0, billed_step_s=3600.0)
    assert option_of(plan, job=builders.make_job(iterations=36_000)).cost_usd.p50 == pytest.approx(4.0)
    longer = option_of(plan, job=builders.make_job(iterations=36_060))
    assert longer.cost_usd.p50 == pytest.approx(8.0)
    assert longer.cost_breakdown_usd["billing step"] == pytest.approx(8.0 - 4.0 * 3606 / 3600)
    assert longer.time_s.p50 == pytest.approx(3606)


def codes_of(option: values.Option) -> set[object]:
    return among((*option.reasons, *option.script_changes))


def on_four(**changes: Any) -> values.Option:
    """What four GPUs make of a script; it is profiled by itself unless said otherwise."""
    scaling = changes.pop("scaling", None)
    job = builders.make_job(iterations=1000, scaling=scaling)
    return option_of(builders.make_plan("X", 4.0, num_gpus=4), job=job, trace=builders.make_trace(**changes))


def test_several_gpus_say_what_their_steps_rest_on():
    unknown = on_four(batch_size=None)
    assert about_options.ScalingAssumed in codes_of(unknown)
    assert "its profiled batch (of unknown size)" in said(unknown.reasons)
    assert unknown.iterations == 250
    distributed = on_four(world_size=8)
    assert "each of 4 GPUs takes 64 samples" in said(distributed.reasons)
    assert "a step takes 256 samples instead of 512" in said(distributed.script_changes)
    # The hint on the learning rate says it already.
    assert about_options.ScalingAssumed not in codes_of(on_four())
    assert about_options.ScalingAssumed not in codes_of(on_four(batch_size=None, scaling=values.Scaling.WEAK))


def test_as_many_gpus_as_were_profiled_assume_nothing():
    option = on_four(world_size=4)
    assert not codes_of(option) & {about_options.ScalingAssumed, RetuneLearningRate}


def test_who_holds_the_global_batch_retunes_nothing():
    option = on_four(scaling=values.Scaling.STRONG)
    assert option.iterations == 1000
    assert RetuneLearningRate not in codes_of(option)
    assert "holds its global batch of 64, 16 a GPU, as you said" in said(option.reasons)


def test_a_script_that_made_a_group_elsewhere_needs_no_wrapping():
    work = values.RankWork(world_size=2, batch_size=32, accumulation=1, flops=0)
    assert EditScript(what="wrap-in-ddp") in codes_of(on_four())
    assert EditScript(what="wrap-in-ddp") not in codes_of(on_four(work_elsewhere=work))


def test_notes_on_the_place_are_among_the_reasons():
    assert (
        sample(about_options.GpuInUse)
        in option_of(builders.make_plan(notes=(sample(about_options.GpuInUse),))).reasons
    )


def test_without_preemptions_spot_costs_its_work_and_checkpoints():
    # 1 h of work in two halves with a minute's checkpoint after each.
    plan = builders.make_plan("X", 6.0, market=values.Market.SPOT)
    option = option_of(plan, job=builders.make_job(iterations=36_000), terms=CALM)
    assert option.train_s.p50 == pytest.approx(builders.HOUR_S + 2 * 60, rel=1e-5)
    assert option.cost_usd.p50 == pytest.approx(6.0 * 62 / 60, rel=1e-5)
    assert option.cost_breakdown_usd["preemptions"] == pytest.approx(0.2, rel=1e-3)
    assert "billing minimum" not in option.cost_breakdown_usd


def test_a_preempted_machine_is_not_billed_while_it_is_away():
    plan = builders.make_plan("X", 1.0, market=values.Market.SPOT)
    soon = option_of(plan, terms=SpotTerms(preemptions_per_h=1.0, reacquire_h=0.1))
    late = option_of(plan, terms=SpotTerms(preemptions_per_h=1.0, reacquire_h=10.0))
    assert late.time_s.p50 > 2 * soon.time_s.p50
    assert late.cost_usd == soon.cost_usd


def test_how_often_a_machine_goes_is_uncertain_and_so_is_the_bill():
    # A long job without luck of its own: what spreads is the rate (log-normal, sigma 0.6).
    option = option_of(
        builders.make_plan("X", 1.0, market=values.Market.SPOT), job=builders.make_job(iterations=10**8)
    )
    billed_h, work_h = option.cost_usd, 10**8 * 0.1 / builders.HOUR_S
    assert (billed_h.p90 - work_h) / (billed_h.p50 - work_h) > 1.3


def test_how_long_a_machine_stays_away_is_uncertain():
    plan, job = builders.make_plan("X", 1.0, market=values.Market.SPOT), builders.make_job(iterations=10**8)
    option = option_of(plan, job=job, terms=SpotTerms(reacquire_h=20.0))
    away = option.time_s.p90 / option.time_s.p50
    assert away > 2.0  # sigma 0.6 and 0.8 together: exp(1.28 x 1.0) = 3.6 of the time away


@pytest.mark.parametrize(
    ("market", "spot"),
    [
        (values.Market.SPOT, True),
        (values.Market.ON_DEMAND, False),
        (values.Market.FLEX_START, False),
        (values.Market.COMMIT_1Y, False),
    ],
)
def test_only_spot_is_preempted(market, spot):
    assert is_spot(builders.make_plan(market=market)) == spot


def test_an_own_machine_is_never_preempted():
    assert not is_spot(builders.make_plan(tier=values.Tier.CLUSTER))


def test_odds_without_limits_are_unknown():
    option = option_of(builders.make_plan())
    assert (option.p_within_budget, option.p_within_deadline, option.removed_by) == (None, None, ())
    assert option.feasible


def test_the_median_is_met_by_half_of_the_draws_and_p90_by_nine_tenths():
    job = builders.make_job(iterations=36_000, deadline_s=3600.0, budget_usd=2.0, confidence=0.5)
    option = option_of(builders.make_plan("X", 1.0), iteration=WIDE, job=job)
    assert option.p_within_deadline == pytest.approx(0.5, abs=1e-3)
    assert option.p_within_budget == pytest.approx(0.9, abs=1e-3)


def test_a_limit_met_exactly_is_met():
    job = builders.make_job(iterations=36_000, deadline_s=3600.0, budget_usd=1.0)
    option = option_of(builders.make_plan("X", 1.0), job=job)
    assert (option.p_within_budget, option.p_within_deadline) == (1, 1)
    assert option.feasible


@pytest.mark.parametrize(("confidence", "feasible"), [(0.4, True), (0.6, False)])
def test_the_confidence_decides(confidence, feasible):
    job = builders.make_job(iterations=36_000, budget_usd=1.0, confidence=confidence)
    option = option_of(builders.make_plan("X", 1.0), iteration=WIDE, job=job)
    assert option.feasible == feasible
    assert option.removed_by == (() if feasible else (about_options.RemovedByBudget.code,))


def test_odds_equal_to_the_confidence_are_enough():
    job = builders.make_job(iterations=36_000, budget_usd=1.0)
    plan = builders.make_plan("X", 1.0)
    odds = option_of(plan, iteration=WIDE, job=job).p_within_budget
    assert odds is not None
    assert option_of(plan, iteration=WIDE, job=replace(job, confidence=odds)).feasible


def test_the_deadline_counts_wait_and_start_up():
    # 1 h of training after 20 min of waiting and 10 min of start-up.
    plan = builders.make_plan("X", 1.0, startup_s=600.0, wait_s=values.Quantiles(p50=1200.0, p90=1200.0))
    for deadline_s, odds in ((5399.0, 0), (5400.0, 1)):
        job = builders.make_job(iterations=36_000, deadline_s=deadline_s)
        assert option_of(plan, job=job).p_within_deadline == odds


def test_a_long_wait_and_a_slow_iteration_do_not_come_together():
    # Both have a p90 of twice the median; were they one draw, so would their sum.
    plan = builders.make_plan("X", 1.0, wait_s=values.Quantiles(p50=3600.0, p90=7200.0))
    time_s = option_of(plan, iteration=WIDE, job=builders.make_job(iterations=36_000)).time_s
    assert time_s.p90 < 1.9 * time_s.p50


def test_what_does_not_fit_is_told_with_need_and_limit():
    estimate = builders.make_estimate("X", 0.1, memory_bytes=20 * GIB, memory_limit_bytes=16 * GIB)
    text = said(option_of(builders.make_plan(), estimate=estimate).reasons)
    assert "20 GiB" in text
    assert "16 GiB" in text
    assert "fit" not in said(option_of(builders.make_plan()).reasons)


def test_every_limit_missed_is_named_in_order():
    estimate = builders.make_estimate("X", 0.1, memory_bytes=20 * GIB)
    job = builders.make_job(budget_usd=0.01, deadline_s=1.0)
    kepler = builders.make_gpu("X", compute_capability="3.7")
    option = option_of(builders.make_plan(), estimate=estimate, job=job, gpu=kepler)
    assert option.removed_by == (
        about_options.RemovedByMemory.code,
        about_options.RemovedBySoftware.code,
        about_options.RemovedByBudget.code,
        about_options.RemovedByDeadline.code,
    )
    assert not option.feasible


def test_attention_that_pytorch_would_refuse_removes():
    estimate = replace(
        builders.make_estimate("X", 0.1),
        assumptions=(sample(about_options.RemovedByAttention), sample(HostLaunches, of="step")),
    )
    option = option_of(builders.make_plan(), estimate=estimate)
    assert option.removed_by == (about_options.RemovedByAttention.code,)
    assert "sdpa_kernel" in said(option.reasons)


def test_what_is_missed_is_said_with_the_medians():
    # 1 h at 2 dollars expected; p90 would be 2 h and 4 dollars.
    job = builders.make_job(iterations=36_000, budget_usd=1.5, deadline_s=1800.0)
    text = said(option_of(builders.make_plan("X", 2.0), iteration=WIDE, job=job).reasons)
    assert "$2.00" in text
    assert "$1.50" in text
    assert "1 h" in text
    assert "30 min" in text
    assert "$4.00" not in text


def test_unknown_memory_removes_nothing_and_is_said():
    option = option_of(builders.make_plan(), estimate=builders.make_estimate(memory_bytes=None))
    assert option.feasible
    assert "memory unknown" in said(option.reasons)
    assert "memory unknown" not in said(option_of(builders.make_plan()).reasons)


def test_without_a_batch_size_nothing_is_said_of_samples():
    option = option_of(builders.make_plan("X", 1.0, num_gpus=4), trace=builders.make_trace(batch_size=None))
    assert "samples" not in said((*option.reasons, *option.script_changes))


def test_one_gpu_changes_nothing_in_the_script():
    assert option_of(builders.make_plan()).script_changes == ()


def test_several_gpus_need_data_parallelism_and_a_new_learning_rate():
    text = said(option_of(builders.make_plan("X", 1.0, num_gpus=4)).script_changes)
    assert "DistributedDataParallel" in text
    assert "256" in text
    assert "64" in text
    assert "no_sync" not in text


def test_a_script_that_already_communicates_is_not_wrapped_again():
    collective = values.Collective(kind="all_reduce", num_bytes=None, world_size=None, count=1)
    trace = builders.make_trace(collectives=(collective,), accumulation=4)
    text = said(option_of(builders.make_plan("X", 1.0, num_gpus=4), trace=trace).script_changes)
    assert "DistributedDataParallel" not in text
    assert "no_sync" not in text


@pytest.mark.parametrize(("num_gpus", "is_removed"), [(8, False), (4, True), (1, True)])
def test_a_share_of_a_model_says_nothing_about_another_number_of_ranks(num_gpus, is_removed):
    layers = values.Collective(kind="reduce_scatter", num_bytes=10**8, world_size=8, count=2)
    plan = builders.make_plan("X", 1.0, num_gpus=num_gpus)
    option = option_of(plan, trace=builders.make_trace(collectives=(layers,), world_size=8))
    assert option.removed_by == ((about_options.RemovedBySharding.code,) if is_removed else ())
    assert (f"--world {num_gpus}" in said(option.reasons)) == is_removed
    assert "memory unknown" not in said(option.reasons)


def test_accumulation_under_data_parallelism_needs_no_sync():
    trace = builders.make_trace(accumulation=4)
    assert "no_sync" in said(option_of(builders.make_plan("X", 1.0, num_gpus=2), trace=trace).script_changes)
    assert "no_sync" not in said(option_of(builders.make_plan(), trace=trace).script_changes)


def test_checkpoints_are_asked_for_where_a_run_can_be_preempted():
    # Young: sqrt(2 x 0.02 h / 0.04 per h) = 1 h.
    terms = SpotTerms(preemptions_per_h=0.04, checkpoint_interval_h=0.5, checkpoint_h=0.02)
    spot = option_of(builders.make_plan(market=values.Market.SPOT), terms=terms)
    assert "every 30 min" in said(spot.script_changes)
    assert "at 1 h" in said(spot.script_changes)
    assert "checkpoint" not in said(option_of(builders.make_plan(), terms=terms).script_changes)


def test_a_run_within_the_interval_and_one_that_saves_none_need_no_checkpoint():
    plan = builders.make_plan(market=values.Market.SPOT)
    short = option_of(plan, job=builders.make_job(iterations=18_000))  # 30 min, the interval itself
    assert "checkpoint" not in said(short.script_changes)
    longer = option_of(plan, job=builders.make_job(iterations=18_001))
    assert "checkpoint" in said(longer.script_changes)
    never = option_of(plan, terms=SpotTerms(checkpoint_interval_h=None))
    assert "checkpoint" not in said(never.script_changes)


def test_each_tier_has_its_risk():
    risks = {tier: option_of(builders.make_plan(tier=tier)).risk for tier in values.Tier}
    assert len(set(risks.values())) == 3
    assert risks[values.Tier.CLUSTER] == about_options.Risk(of="wait")
    spot = option_of(builders.make_plan(market=values.Market.SPOT), terms=SpotTerms(preemptions_per_h=0.25))
    assert "preemption" in sentence(spot.risk)
    assert "0.25" in sentence(spot.risk)


def test_unknown_wait_and_cost_are_said():
    unknown = said(option_of(builders.make_plan("X", None, tier=values.Tier.CLUSTER, wait_s=None)).reasons)
    assert "wait unknown" in unknown
    assert "cost unknown" in unknown
    known = said(option_of(builders.make_plan()).reasons)
    assert "unknown" not in known


def test_an_unknown_wait_counts_as_none():
    option = option_of(builders.make_plan(wait_s=None))
    assert option.wait_s is None
    assert option.time_s == option.train_s


@pytest.mark.parametrize(("source", "is_derived"), [("derived from x", True), ("list price", False)])
def test_a_price_nobody_quoted_is_said(source, is_derived):
    plan = builders.make_plan(offer=builders.make_offer(source=source))
    assert ("derived from x" in said(option_of(plan).reasons)) == is_derived


def fed_by(cpu_s: float, num_workers: int | None, iteration_s: float = 0.2) -> values.IterationEstimate:
    """An iteration of 64 samples that take so many CPU seconds together."""
    work = values.InputWork(
        cpu_s=builders.exactly(cpu_s), wait_s=0.0, num_workers=num_workers, num_samples=64
    )
    return builders.make_estimate("X", iteration_s, input=work)


def with_vcpus(num_vcpus: int | None) -> values.Plan:
    return builders.make_plan(offer=builders.make_offer(num_vcpus=num_vcpus))


def test_an_input_bound_option_says_so_with_every_figure():
    text = said(option_of(with_vcpus(16), estimate=fed_by(4.0, 8)).reasons)
    assert "input-bound: loading takes 500 ms per iteration (128 samples/s) with 8 workers" in text
    assert "4 s of CPU, the GPU 200 ms" in text
    assert "input-bound" not in said(option_of(with_vcpus(16), estimate=fed_by(4.0, 8, 5.0)).reasons)


def test_what_is_assumed_of_the_input_is_said_where_it_may_matter():
    def notes(iteration_s: float) -> tuple[Finding, ...]:
        fed = fed_by(1.0, 8, iteration_s)
        unsure = values.Interval(p10=0.5, p50=1.0, p90=2.0)
        assert fed.input is not None
        fed = replace(fed, input=replace(fed.input, cpu_s=unsure, kind="image"))
        return option_of(with_vcpus(8), estimate=fed).reasons

    for iteration_s, is_bound in ((0.1, [True]), (0.2, [False])):
        found = notes(iteration_s)
        assert [note.is_bound for note in found if isinstance(note, about_options.InputBound)] == is_bound
        assert any(isinstance(note, about_options.InputAssumed) for note in found)
    assert not any(isinstance(note, about_options.InputAssumed) for note in notes(0.3))


def test_the_machines_vcpus_decide_time_and_cost():
    few, many = (option_of(with_vcpus(n), estimate=fed_by(4.0, 8)) for n in (4, 8))
    assert few.estimate.iteration_s.p50 == pytest.approx(1.0)
    assert few.train_s.p50 == pytest.approx(2 * many.train_s.p50)
    assert few.cost_usd.p50 == pytest.approx(2 * many.cost_usd.p50)
    assert "4 vCPUs for each GPU" in said(few.reasons)


def test_where_nobody_knows_the_vcpus_eight_are_assumed_for_each_gpu():
    unknown, known = (option_of(with_vcpus(n), estimate=fed_by(4.0, 16)) for n in (None, 8))
    assert unknown.time_s == known.time_s
    own = builders.make_plan("X", None, tier=values.Tier.CLUSTER, num_vcpus=32)
    assert option_of(own, estimate=fed_by(4.0, 16)).estimate.iteration_s.p50 == pytest.approx(0.25)


def test_gpus_of_one_machine_share_its_vcpus():
    plan = builders.make_plan("X", num_gpus=8, offer=builders.make_offer(num_gpus=8, num_vcpus=32))
    assert plan.vcpus_per_gpu == 4
    option = option_of(plan, estimate=replace(fed_by(4.0, 8), layout=values.Layout(gpus_per_node=8)))
    assert option.estimate.iteration_s.p50 == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"backend": "kineto"}, "a profile does not show it"),
        ({"backend": "cuda", "num_workers": None}, "it uses no torch DataLoader"),
        ({"backend": "cpu", "num_workers": 0}, "its data has no length"),
        ({"num_workers": None}, "no torch DataLoader"),
        ({"num_workers": 0, "warnings": (LengthUnknown(why="no-loader"),)}, "no torch DataLoader"),
        ({}, "its data has no length"),
    ],
)
def test_an_epoch_of_unknown_length_names_the_reason_and_the_flag(changes, reason):
    trace = builders.make_trace(iterations_per_epoch=None, **changes)
    with pytest.raises(InputError) as caught:
        num_iterations(trace, builders.make_job(epochs=1.0), 1)
    assert re.search(rf"{reason}.*--iterations-per-epoch", error_text(caught.value))
    assert "--" not in str(caught.value)
