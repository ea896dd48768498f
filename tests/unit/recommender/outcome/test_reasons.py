"""What has to change in a script, and which machines it is told of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.core.findings import Code, Finding
from advisor.core.units import HOUR_S
from advisor.core.values import Collective, Job, Market, Plan, Scaling, Split, Trace
from advisor.report.words import sentence
from recommender.outcome.reasons import changes_of, reasons_of
from recommender.outcome.spot import SpotTerms
from tests.builders import make_estimate, make_gpu, make_plan, make_trace
from tests.findings import sample
from tests.recommending import workloads_of

TRACE = make_trace()
TERMS = SpotTerms(preemptions_per_h=0.4, checkpoint_interval_h=0.5, checkpoint_h=0.02)
SPOT = make_plan("X", market=Market.SPOT)
GROUP = (Collective(kind="all_reduce", num_bytes=10**8, world_size=8, count=1),)


def changes(
    plan: Plan, terms: SpotTerms = TERMS, trace: Trace = TRACE, *, train_h: float = 10.0
) -> dict[Code, Finding]:
    estimate, job = make_estimate("X", num_gpus=plan.num_gpus), Job(iterations=1)
    (workload,) = workloads_of(trace, [estimate], {"X": make_gpu("X")}, job)
    found = changes_of(plan, workload, terms, train_h * HOUR_S)
    return {one.code: one for one in found}


def test_checkpoints_are_for_what_can_be_preempted() -> None:
    found = changes(SPOT)[Code.SAVE_CHECKPOINTS]
    assert found.facts["interval_s"] == pytest.approx(0.5 * HOUR_S)
    # Young's interval: sqrt(2 x 0.02 / 0.4) h.
    assert found.facts["best_interval_s"] == pytest.approx(0.31623 * HOUR_S, rel=1e-4)
    assert Code.SAVE_CHECKPOINTS not in changes(make_plan("X"))
    assert Code.SAVE_CHECKPOINTS not in changes(SPOT, replace(TERMS, preemptions_per_h=0.0))
    assert Code.SAVE_CHECKPOINTS in changes(SPOT, replace(TERMS, preemptions_per_h=0.01))


def test_a_job_of_one_interval_has_nothing_to_save() -> None:
    assert Code.SAVE_CHECKPOINTS not in changes(SPOT, train_h=0.5)
    assert Code.SAVE_CHECKPOINTS in changes(SPOT, train_h=0.51)
    assert Code.SAVE_CHECKPOINTS not in changes(SPOT, replace(TERMS, checkpoint_interval_h=None))


def test_several_gpus_need_a_group_that_one_has_not() -> None:
    two = make_plan("X", num_gpus=2)
    assert Code.WRAP_IN_DDP not in changes(make_plan("X"))
    assert Code.WRAP_IN_DDP in changes(two)
    assert Code.WRAP_IN_DDP not in changes(two, trace=replace(TRACE, collectives=GROUP))
    assert Code.USE_NO_SYNC not in changes(two)
    assert Code.USE_NO_SYNC in changes(two, trace=replace(TRACE, accumulation=2))


def test_sparse_gradients_are_no_matter_for_nccl() -> None:
    sparse, two = replace(TRACE, has_sparse_gradients=True), make_plan("X", num_gpus=2)
    assert Code.GATHER_SPARSE_GRADIENTS in changes(two, trace=sparse)
    assert Code.GATHER_SPARSE_GRADIENTS not in changes(make_plan("X"), trace=sparse)
    assert Code.GATHER_SPARSE_GRADIENTS not in changes(two)


def test_a_library_that_makes_a_script_parallel_wants_another_start_alone() -> None:
    trainer = replace(TRACE, parallel_by="transformers", accumulation=2)
    two = make_plan("X", num_gpus=2)
    assert changes(two, trace=trainer)[Code.START_WITH_TORCHRUN].facts == {"library": "transformers"}
    assert not {Code.WRAP_IN_DDP, Code.USE_NO_SYNC} & changes(two, trace=trainer).keys()
    assert Code.START_WITH_TORCHRUN not in changes(make_plan("X"), trace=trainer)
    assert Code.START_WITH_TORCHRUN not in changes(two, trace=replace(trainer, collectives=GROUP))


def test_lightning_starts_on_the_devices_that_the_script_names_alone() -> None:
    """Of torchrun's processes it refuses all but as many as devices and nodes make."""
    two = make_plan("X", num_gpus=2)
    words = {
        library: sentence(changes(two, trace=replace(TRACE, parallel_by=library))[Code.START_WITH_TORCHRUN])
        for library in ("lightning", "accelerate")
    }
    assert 'devices="auto"' in words["lightning"]
    assert "devices" not in words["accelerate"]


def test_a_larger_batch_wants_another_learning_rate() -> None:
    found = changes(make_plan("X", num_gpus=4))[Code.RETUNE_LEARNING_RATE]
    assert (found.facts["global_batch_size"], found.facts["batch_size"]) == (256, 64)
    assert Code.RETUNE_LEARNING_RATE not in changes(make_plan("X"))


def test_what_gpus_cannot_share_asks_for_no_change() -> None:
    alone = replace(TRACE, batch_size=None, warnings=(sample(Code.NO_DATA_LOADER),))
    two = make_plan("X", num_gpus=2)
    assert Code.WRAP_IN_DDP not in changes(two, trace=alone)
    assert Code.SHARING_UNKNOWN in reasons(2, Job(), alone)
    assert Code.SHARING_UNKNOWN not in reasons(1, Job(), alone)
    assert Code.SHARING_UNKNOWN not in reasons(2, Job(scaling=Scaling.UNSHARED), alone)
    # A divided model shares the step in another way.
    assert Code.SHARING_UNKNOWN not in reasons(2, Job(split=Split(tensor=2)), alone)


def reasons(num_gpus: int, job: Job, trace: Trace = TRACE) -> set[Code]:
    plan, estimate = make_plan("X", num_gpus=num_gpus), make_estimate("X", num_gpus=num_gpus)
    (workload,) = workloads_of(trace, [estimate], {"X": make_gpu("X")}, replace(job, iterations=1))
    found = reasons_of(plan, workload, estimate)
    return {one.code for one in found}


def test_how_it_scales_is_told_where_the_number_of_gpus_differs() -> None:
    held, assumed = Job(scaling=Scaling.STRONG), Job()
    unknown = replace(TRACE, batch_size=None)
    assert Code.GLOBAL_BATCH_HELD in reasons(2, held)
    assert Code.GLOBAL_BATCH_HELD not in reasons(1, held)
    assert Code.SCALING_ASSUMED in reasons(2, assumed, unknown)
    assert not reasons(2, assumed) & {Code.SCALING_ASSUMED, Code.GLOBAL_BATCH_HELD}
    assert Code.SCALING_ASSUMED not in reasons(1, assumed, unknown)
