"""What has to change in a script, and which machines it is told of."""

from dataclasses import replace

import pytest

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import (
    EditScript,
    RetuneLearningRate,
    SaveCheckpoints,
    StartWithTorchrun,
)
from advisor.core.findings.about_options import GlobalBatchHeld, ScalingAssumed, Unknown
from advisor.core.findings.about_traces import LengthUnknown
from advisor.core.units import HOUR_S
from advisor.core.values import Collective, Job, Market, Plan, Scaling, Split, Trace
from advisor.report.words import sentence
from recommender.outcome.reasons import changes_of, reasons_of
from recommender.outcome.spot import SpotTerms
from tests.builders import make_estimate, make_gpu, make_plan, make_trace
from tests.findings import among, sample
from tests.recommending import workloads_of

TRACE = make_trace()
TERMS = SpotTerms(preemptions_per_h=0.4, checkpoint_interval_h=0.5, checkpoint_h=0.02)
SPOT = make_plan("X", market=Market.SPOT)
GROUP = (Collective(kind="all_reduce", num_bytes=10**8, world_size=8, count=1),)


def changes(
    plan: Plan, terms: SpotTerms = TERMS, trace: Trace = TRACE, *, train_h: float = 10.0
) -> dict[object, Finding]:
    estimate, job = make_estimate("X", num_gpus=plan.num_gpus), Job(iterations=1)
    (workload,) = workloads_of(trace, [estimate], {"X": make_gpu("X")}, job)
    found = tuple(changes_of(plan, workload, terms, train_h * HOUR_S))
    return {type(one): one for one in found} | {one: one for one in found}


def test_checkpoints_are_for_what_can_be_preempted():
    found = changes(SPOT)[SaveCheckpoints]
    assert found.facts["interval_s"] == pytest.approx(0.5 * HOUR_S)
    # Young's interval: sqrt(2 x 0.02 / 0.4) h.
    assert found.facts["best_interval_s"] == pytest.approx(0.31623 * HOUR_S, rel=1e-4)
    assert SaveCheckpoints not in changes(make_plan("X"))
    assert SaveCheckpoints not in changes(SPOT, replace(TERMS, preemptions_per_h=0.0))
    assert SaveCheckpoints in changes(SPOT, replace(TERMS, preemptions_per_h=0.01))


def test_a_job_of_one_interval_has_nothing_to_save():
    assert SaveCheckpoints not in changes(SPOT, train_h=0.5)
    assert SaveCheckpoints in changes(SPOT, train_h=0.51)
    assert SaveCheckpoints not in changes(SPOT, replace(TERMS, checkpoint_interval_h=None))


def test_several_gpus_need_a_group_that_one_has_not():
    two = make_plan("X", num_gpus=2)
    assert EditScript(what="wrap-in-ddp") not in changes(make_plan("X"))
    assert EditScript(what="wrap-in-ddp") in changes(two)
    assert EditScript(what="wrap-in-ddp") not in changes(two, trace=replace(TRACE, collectives=GROUP))
    assert EditScript(what="use-no-sync") not in changes(two)
    assert EditScript(what="use-no-sync") in changes(two, trace=replace(TRACE, accumulation=2))


def test_sparse_gradients_are_no_matter_for_nccl():
    sparse, two = replace(TRACE, has_sparse_gradients=True), make_plan("X", num_gpus=2)
    assert EditScript(what="gather-sparse-gradients") in changes(two, trace=sparse)
    assert EditScript(what="gather-sparse-gradients") not in changes(make_plan("X"), trace=sparse)
    assert EditScript(what="use-no-sync") not in changes(two)


def test_a_library_that_makes_a_script_parallel_wants_another_start_alone():
    trainer = replace(TRACE, parallel_by="transformers", accumulation=2)
    two = make_plan("X", num_gpus=2)
    assert changes(two, trace=trainer)[StartWithTorchrun].facts == {"library": "transformers"}
    assert (
        not {EditScript(what="wrap-in-ddp"), EditScript(what="use-no-sync")}
        & changes(two, trace=trainer).keys()
    )
    assert StartWithTorchrun not in changes(make_plan("X"), trace=trainer)
    assert StartWithTorchrun not in changes(two, trace=replace(trainer, collectives=GROUP))


def test_lightning_starts_on_the_devices_that_the_script_names_alone():
    """Of torchrun's processes it refuses all but as many as devices and nodes make."""
    two = make_plan("X", num_gpus=2)
    words = {
        library: sentence(changes(two, trace=replace(TRACE, parallel_by=library))[StartWithTorchrun])
        for library in ("lightning", "accelerate")
    }
    assert 'devices="auto"' in words["lightning"]
    assert "devices" not in words["accelerate"]


def test_a_larger_batch_wants_another_learning_rate():
    found = changes(make_plan("X", num_gpus=4))[RetuneLearningRate]
    assert (found.facts["global_batch_size"], found.facts["batch_size"]) == (256, 64)
    assert RetuneLearningRate not in changes(make_plan("X"))


def test_what_gpus_cannot_share_asks_for_no_change():
    alone = replace(TRACE, batch_size=None, warnings=(sample(LengthUnknown, why="no-loader"),))
    two = make_plan("X", num_gpus=2)
    assert EditScript(what="wrap-in-ddp") not in changes(two, trace=alone)
    assert Unknown(what="sharing") in reasons(2, Job(), alone)
    assert Unknown(what="sharing") not in reasons(1, Job(), alone)
    assert Unknown(what="sharing") not in reasons(2, Job(scaling=Scaling.UNSHARED), alone)
    # A divided model shares the step in another way.
    assert Unknown(what="sharing") not in reasons(2, Job(split=Split(tensor=2)), alone)


def reasons(num_gpus: int, job: Job, trace: Trace = TRACE) -> set[object]:
    plan, estimate = make_plan("X", num_gpus=num_gpus), make_estimate("X", num_gpus=num_gpus)
    (workload,) = workloads_of(trace, [estimate], {"X": make_gpu("X")}, replace(job, iterations=1))
    found = reasons_of(plan, workload, estimate)
    return among(found)


def test_how_it_scales_is_told_where_the_number_of_gpus_differs():
    held, assumed = Job(scaling=Scaling.STRONG), Job()
    unknown = replace(TRACE, batch_size=None)
    assert GlobalBatchHeld in reasons(2, held)
    assert GlobalBatchHeld not in reasons(1, held)
    assert ScalingAssumed in reasons(2, assumed, unknown)
    assert not reasons(2, assumed) & {ScalingAssumed, GlobalBatchHeld}
    assert ScalingAssumed not in reasons(1, assumed, unknown)
