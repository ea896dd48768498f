"""Single operators: the cost of a call is found, and errors are those of the kernel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Z90
from advisor.predict.knowledge import shipped
from advisor.predict.roofline import KERNEL_FLOOR_S
from benchmarks.accuracy.kernels import kernel_errors, mean_of_seeds
from benchmarks.accuracy.op_predictions import errors_of_seeds, kernel_times
from research.tests.harness.builders import make_op, make_samples
from research.training.overhead import call_s, floors_of, observed_s
from research.training.samples import Samples
from tests.shared import SHARED, needs_shared

SIZES = np.arange(1, 201) * 1000
SECONDS_PER_BYTE = 1e-11


def true_s(ops, factor=1.0):
    """A launch, and a time for every byte."""
    return KERNEL_FLOOR_S + np.array([op.bytes for op in ops]) * SECONDS_PER_BYTE * factor


def perfect(ops, gpu, sigma=0.1):
    return true_s(ops), np.full(len(ops), sigma)


def measured(floor_s, factor=1.0, **options):
    call_s = KERNEL_FLOOR_S + SIZES * 12 * SECONDS_PER_BYTE * factor
    return make_samples(SIZES, observed_s(call_s, np.full(len(SIZES), floor_s)), **options)


@given(floor_s=st.floats(1e-6, 1e-3))
def test_a_perfect_predictor_has_no_error_whatever_the_floor(floor_s):
    for errors in kernel_errors(measured(floor_s), perfect, {("T4", "add"): floor_s}):
        assert errors.mean == pytest.approx(0.0, abs=1e-9)
        assert errors.coverage == 1.0


def test_groups_are_kinds_and_all_by_gpu_and_split():
    keys = (("add", "T4", "train"), ("mul", "T4", "train"), ("add", "T4", "test"), ("add", "P4", "train"))
    parts = [measured(1e-5, kind=kind, gpu=gpu, split=split) for kind, gpu, split in keys]
    samples = Samples.joined(parts)
    groups = kernel_errors(samples, perfect, floors_of(samples))
    assert [(e.gpu, e.split, e.kind, e.rows) for e in groups] == [
        ("P4", "train", "add", 200), ("P4", "train", "all", 200),
        ("T4", "test", "add", 200), ("T4", "test", "all", 200),
        ("T4", "train", "add", 200), ("T4", "train", "mul", 200), ("T4", "train", "element-wise", 400),
        ("T4", "train", "all", 400),
        ("all", "test", "add", 200), ("all", "test", "all", 200),
        ("all", "train", "add", 400), ("all", "train", "mul", 200), ("all", "train", "element-wise", 600),
        ("all", "train", "all", 600),
    ]  # fmt: skip
    floors = [errors for errors in groups if errors.floor_s is not None]
    assert {(errors.kind, errors.gpu) for errors in floors} == {("add", "T4"), ("mul", "T4"), ("add", "P4")}


def test_several_gpus_weigh_by_their_calls():
    """Half of them a fifth too slow, half of them right: nobody is 10 % off."""
    samples = Samples.joined([measured(0.0, gpu="T4"), measured(0.0, gpu="P4")])

    def predicted(ops, gpu):
        return true_s(ops, 1.2 if gpu.name == "P4" else 1.0), np.full(len(ops), 0.1)

    errors = kernel_errors(samples, predicted, {("T4", "add"): 0.0, ("P4", "add"): 0.0})
    means = {one.gpu: one.mean for one in errors if one.kind == "all"}
    assert means == pytest.approx({"P4": 0.2, "T4": 0.0, "all": 0.1})


@given(kernel_s=st.floats(1e-4, 1.0), floor_s=st.floats(0.0, 1e-4))
def test_a_call_is_found_again_in_what_a_measurement_shows(kernel_s, floor_s):
    observed = float(observed_s(np.array([KERNEL_FLOOR_S + kernel_s]), np.array([floor_s]))[0])
    assert call_s(observed, floor_s) == pytest.approx(KERNEL_FLOOR_S + kernel_s)


def test_the_launch_is_a_part_of_the_events_overhead():
    """A call of 2 us of launch and 1 ms of kernel, timed by events that take 45 % of 40 us."""
    assert observed_s(np.array([1.002e-3]), np.array([4e-5])) == pytest.approx([1.018e-3])


def test_calls_that_the_host_bounds_say_nothing_of_intervals():
    samples = measured(1.0, factor=3.0)
    (errors, _) = kernel_errors(samples, perfect, {("T4", "add"): 1.0})
    assert (errors.mean, errors.coverage) == (0.0, 1.0)


def test_bias_is_signed_and_errors_are_not():
    samples = measured(0.0, factor=2.0)
    (errors, _) = kernel_errors(samples, perfect, {("T4", "add"): 0.0})
    assert errors.bias == pytest.approx(-0.5)
    assert errors.median == errors.mean == errors.p90 == pytest.approx(0.5)


@pytest.mark.parametrize(("factor", "inside"), [(1.05, 1.0), (0.95, 1.0), (1.4, 0.0), (0.7, 0.0)])
def test_coverage_is_that_of_the_kernel_without_its_floor(factor, inside):
    samples = measured(1e-5, factor=factor)
    sigma = np.log(1.2) / Z90
    (errors, _) = kernel_errors(samples, lambda ops, gpu: perfect(ops, gpu, sigma), {("T4", "add"): 1e-5})
    assert errors.coverage == inside


def test_seeds_are_averaged():
    floors_s = {("T4", "add"): 0.0}
    members = [kernel_errors(measured(0.0, factor=factor), perfect, floors_s) for factor in (1.0, 2.0)]
    means = mean_of_seeds(members)
    assert [errors.mean for errors in means] == pytest.approx([0.25, 0.25])
    assert [errors.rows for errors in means] == [200, 200]


def test_the_product_times_equal_operators_once_and_alike():
    from advisor.core.gpus import resolve_gpu

    small, large = make_op(1000), make_op(10**8)
    p50_s, sigma = kernel_times([large, small, large], resolve_gpu("V100-PCIE-32GB"), shipped())
    assert p50_s[0] == p50_s[2] > p50_s[1] > 0
    # 1.2 GB at some 830 GB/s.
    assert p50_s[0] == pytest.approx(1.45e-3, rel=0.1)
    assert (sigma > 0).all()


@pytest.mark.shared
@needs_shared
def test_published_kernels_of_the_shipped_constants():
    from research.training.neusight import read_kernels

    samples = read_kernels(SHARED / "measurements" / "kernels", ("add", "gelu", "softmax", "ln"))
    floors_s = floors_of(samples)
    assert all(2e-5 < floor < 9e-5 for floor in floors_s.values())
    groups = errors_of_seeds(samples, [shipped()], floors_s)
    streaming = [e for e in groups if e.kind in ("add", "gelu") and e.split == "test" and e.gpu != "all"]
    assert len(streaming) == 11
    assert all(errors.median < 0.02 for errors in streaming), streaming
