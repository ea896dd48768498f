"""Steps of a job on more GPUs, and one workload for each GPU and layout of the plans."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from advisor.core.findings.about_traces import LengthUnknown
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Collective, Job, RankWork, Scaling, ScalingSource, Trace, Variant
from advisor.predict.iteration import predict
from advisor.workloads.script_versions import Version, as_written, changed
from advisor.workloads.step_counts import seen_scaling, steps_of
from tests.builders import make_op, make_plan, make_trace
from tests.findings import sample
from tests.recommending import iterations_as_profiled, num_iterations


def in_worlds(
    world_size: int, batch_size: int | None, other: int, other_batch: int | None, **changes: Any
) -> Trace:
    work = RankWork(world_size=other, batch_size=other_batch, accumulation=1, flops=0)
    facts = {"world_size": world_size, "batch_size": batch_size, "work_elsewhere": work} | changes
    return make_trace(**facts)


@pytest.mark.parametrize(
    ("worlds", "scaling"),
    [
        ((8, 32, 1, 256), Scaling.STRONG),
        ((8, 32, 1, 32), Scaling.WEAK),
        ((1, 256, 2, 128), Scaling.STRONG),
        ((1, 64, 2, 64), Scaling.WEAK),
        ((8, 12, 1, 100), Scaling.STRONG),  # 100 / 8, rounded down
        ((8, 90, 1, 256), None),  # divided by its root: neither
    ],
)
def test_two_worlds_show_what_a_script_holds(worlds, scaling):
    assert seen_scaling(in_worlds(*worlds)) is scaling


@pytest.mark.parametrize(("flops_elsewhere", "scaling"), [(8, Scaling.STRONG), (1, Scaling.WEAK)])
def test_without_samples_its_flops_show_it(flops_elsewhere, scaling):
    # Accumulation divided by the world's size: 40 passes alone, 5 in eight processes.
    ops = (make_op(flops=10**9, count=5),)
    work = RankWork(world_size=1, batch_size=None, accumulation=40, flops=5 * 10**9 * flops_elsewhere)
    trace = make_trace(batch_size=None, world_size=8, ops=ops, work_elsewhere=work)
    assert seen_scaling(trace) is scaling


def test_one_world_shows_nothing():
    assert seen_scaling(make_trace(world_size=8)) is None
    assert seen_scaling(in_worlds(8, None, 1, None)) is None


def test_the_user_goes_before_what_was_seen_and_that_before_what_is_assumed():
    strong = in_worlds(8, 32, 1, 256)
    given = steps_of(strong, Job(epochs=1, scaling=Scaling.WEAK))
    assert (given.scaling, given.source) == (Scaling.WEAK, ScalingSource.GIVEN)
    seen = steps_of(strong, Job(epochs=1))
    assert (seen.scaling, seen.source, seen.num_ranks) == (Scaling.STRONG, ScalingSource.SEEN, 8)
    assumed = steps_of(make_trace(), Job(epochs=1))
    assert (assumed.scaling, assumed.source, assumed.num_ranks) == (Scaling.WEAK, ScalingSource.ASSUMED, 1)


def without_loader(**changes: Any) -> Trace:
    facts: dict[str, Any] = {"batch_size": None, "warnings": (sample(LengthUnknown, why="no-loader"),)}
    return make_trace(**facts | changes)


def test_where_nothing_shows_batches_no_gpu_is_assumed_to_take_one():
    assumed = steps_of(without_loader(), Job(epochs=1))
    assert (assumed.scaling, assumed.source) == (Scaling.UNSHARED, ScalingSource.ASSUMED)
    assert {assumed.share(count) for count in (1, 2, 8)} == {1.0}
    job = Job(iterations=1000)
    assert [num_iterations(without_loader(), job, count) for count in (1, 4, 8)] == [1000, 1000, 1000]


@pytest.mark.parametrize(
    "shown",
    [
        {"batch_size": 64},
        {"world_size": 1},
        {"parallel_by": "transformers"},
        {"collectives": (Collective(kind="all_reduce", num_bytes=4, world_size=2, count=1),)},
        # A profiler's export does not tell whether there is a loader.
        {"warnings": ()},
    ],
)
def test_anything_that_shows_them_is_believed(shown):
    assert steps_of(without_loader(**shown), Job(epochs=1)).scaling is Scaling.WEAK


@pytest.mark.parametrize("scaling", list(Scaling))
def test_a_user_knows_better_than_a_missing_loader(scaling):
    told = steps_of(without_loader(), Job(epochs=1, scaling=scaling))
    assert (told.scaling, told.source) == (scaling, ScalingSource.GIVEN)


def test_what_a_gpu_takes_and_a_step_holds():
    strong = steps_of(in_worlds(8, 32, 1, 256), Job(epochs=1))
    assert [strong.share(count) for count in (1, 4, 8, 16)] == [8.0, 2.0, 1.0, 0.5]
    assert {strong.global_batch_size(count) for count in (1, 4, 8, 16)} == {256}
    weak = steps_of(in_worlds(8, 32, 1, 32), Job(epochs=1))
    assert {weak.share(count) for count in (1, 8)} == {1.0}
    assert [weak.global_batch_size(count) for count in (1, 8)] == [32, 256]
    assert steps_of(make_trace(batch_size=None), Job(epochs=1)).global_batch_size(8) is None


def test_a_gpu_takes_a_sample_at_least():
    pairs = steps_of(make_trace(batch_size=2), Job(epochs=1, scaling=Scaling.STRONG))
    assert [pairs.share(count) for count in (1, 2, 8)] == [1.0, 0.5, 0.5]
    assert [pairs.global_batch_size(count) for count in (1, 2, 8)] == [2, 2, 8]


@pytest.mark.parametrize(
    ("scaling", "steps"),
    [
        (Scaling.WEAK, [1000, 250, 125]),
        (Scaling.STRONG, [1000, 1000, 1000]),
        (Scaling.UNSHARED, [1000, 1000, 1000]),
    ],
)
def test_steps_that_were_given(scaling, steps):
    job = Job(iterations=1000, scaling=scaling)
    assert [num_iterations(make_trace(), job, count) for count in (1, 4, 8)] == steps


@given(st.integers(1, 64), st.integers(1, 10**6), st.sampled_from(list(Scaling)))
def test_as_many_gpus_as_were_profiled_take_the_steps_that_were_asked_for(num_ranks, asked, scaling):
    trace = make_trace(world_size=num_ranks, iterations_per_epoch=None)
    by_steps = Job(iterations=asked, scaling=scaling)
    by_epochs = Job(epochs=3, iterations_per_epoch=asked, scaling=scaling)
    assert num_iterations(trace, by_steps, num_ranks) == asked
    assert num_iterations(trace, by_epochs, num_ranks) == 3 * asked
    assert iterations_as_profiled(trace, by_epochs) == asked


@given(st.integers(1, 64), st.integers(1, 10**6), st.integers(1, 512), st.sampled_from(list(Scaling)))
def test_other_numbers_of_gpus_take_as_many_samples(num_ranks, asked, num_gpus, scaling):
    trace, job = make_trace(world_size=num_ranks), Job(iterations=asked, scaling=scaling)
    of_step = steps_of(trace, job).global_batch_size(num_gpus)
    wanted = asked * num_ranks * 64
    # The last step is whole.
    assert wanted <= num_iterations(trace, job, num_gpus) * of_step < wanted + of_step


def test_a_hundred_thousand_steps_of_eight_gpus():
    trace, job = make_trace(world_size=8), Job(iterations=100_000)
    assert [num_iterations(trace, job, count) for count in (1, 4, 8, 16)] == [
        800_000,
        200_000,
        100_000,
        50_000,
    ]


def test_the_length_of_an_epoch_is_told_as_profiled():
    eight = make_trace(world_size=8, iterations_per_epoch=20_019)
    assert iterations_as_profiled(eight, Job(epochs=1)) == 2_503
    assert iterations_as_profiled(make_trace(iterations_per_epoch=20_019), Job(epochs=1)) == 20_019
    assert iterations_as_profiled(make_trace(iterations_per_epoch=None), Job(epochs=1)) is None


@given(st.integers(1, 64), st.integers(1, 10**6), st.floats(0.1, 100), st.sampled_from(list(Scaling)))
def test_more_gpus_never_take_more_steps_and_only_weak_ones_fewer(num_ranks, per_epoch, epochs, scaling):
    trace = make_trace(world_size=num_ranks, iterations_per_epoch=per_epoch)
    steps = [num_iterations(trace, Job(epochs=epochs, scaling=scaling), count) for count in (1, 2, 4, 64)]
    assert steps == sorted(steps, reverse=True)
    if scaling is not Scaling.WEAK:
        weak = num_iterations(trace, Job(epochs=epochs, scaling=Scaling.WEAK), num_ranks)
        assert set(steps) == {weak}, "as profiled both are one"


T4, V100 = resolve_gpu("T4"), resolve_gpu("V100-SXM-16GB")
GPUS = {T4.name: T4, V100.name: V100}
JOB = Job(epochs=2)


def test_each_pair_of_gpu_and_count_has_its_own_workload():
    plans = [
        make_plan(T4.name, num_gpus=4),
        make_plan(T4.name, num_gpus=1),
        make_plan(T4.name, num_gpus=4),
        make_plan(V100.name, num_gpus=8),
    ]
    workloads = as_written(make_trace(), GPUS, JOB).workloads(plans)
    assert [(one.gpu.name, one.layout.num_gpus) for one in workloads] == [
        (T4.name, 4),
        (T4.name, 1),
        (V100.name, 8),
    ]
    for one in workloads:
        assert one.estimate == predict(make_trace(), one.gpu, one.layout)
        assert one.variant.name is None


def test_no_plans_need_no_workloads():
    assert as_written(make_trace(), GPUS, JOB).workloads([]) == []


def test_a_length_that_is_unknown_shows_before_anything_is_predicted():
    endless = make_trace(iterations_per_epoch=None, ops=())
    with pytest.raises(InputError, match="how many iterations an epoch"):
        as_written(endless, GPUS, JOB).workloads([make_plan(T4.name)])


def test_a_larger_step_takes_as_many_samples_in_all():
    trace, plan = make_trace(iterations_per_epoch=1001), make_plan(T4.name)
    version = changed("accumulate", replace(trace, batch_size=64), GPUS, JOB)
    assert isinstance(version, Variant | Version)
    (written,) = as_written(trace, GPUS, JOB).workloads([plan])
    assert written.iterations == 2002


def test_a_change_that_does_not_apply_says_why():
    variant = changed("flash", make_trace(), GPUS, JOB)
    assert isinstance(variant, Variant)
    assert variant.why_not is not None
    assert variant.name == "flash"
