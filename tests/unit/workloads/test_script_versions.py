"""One workload for each GPU and layout that the plans name."""

from dataclasses import replace

import pytest

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Job, Variant
from advisor.predict.iteration import predict
from advisor.workloads.script_versions import Version, as_written, changed
from tests.builders import make_plan, make_trace

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
