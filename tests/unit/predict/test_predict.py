"""One prediction in hand arithmetic, and what it says about itself."""

import math
from dataclasses import replace

import pytest

from advisor.core.errors import InputError, UnknownGpuError
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Kernel, Method, Precision, TensorSpec
from advisor.predict.constants import constants_for
from advisor.predict.host import HostCall, host_costs
from advisor.predict.iteration import predict, predict_counts
from advisor.predict.knowledge import shipped
from advisor.predict.roofline import KERNEL_FLOOR_S
from advisor.predict.step_time import HOST
from tests.builders import make_op, make_trace
from tests.findings import said

V100 = resolve_gpu("V100-PCIE-32GB")
KERNEL = Kernel(
    name="k", grid=(1_000_000, 1, 1), block=(256, 1, 1), registers_per_thread=32, shared_bytes=0,
    duration_s=1e-3,
)  # fmt: skip


def only(*ops: object, **changes: object):  # type: ignore[no-untyped-def]
    return make_trace(ops=ops, **changes)


def test_a_large_product_runs_at_the_fitted_share_of_peak():
    op = make_op("aten::mm", flops=10**13, num_bytes=10**6)
    estimate = predict(only(op), V100)
    fraction = constants_for(V100).fractions["gemm_fraction.fp32"]
    expected_s = KERNEL_FLOOR_S + 10**13 / (fraction * V100.vector_flops_per_s["fp32"])
    assert estimate.iteration_s.p50 == pytest.approx(expected_s)
    assert estimate.by_family == {"gemm": pytest.approx(expected_s)}
    assert estimate.by_method == {Method.ROOFLINE: pytest.approx(expected_s)}


def test_a_large_sum_runs_at_the_fitted_share_of_bandwidth():
    op = make_op("aten::sum", flops=10**6, num_bytes=10**10)
    fraction = constants_for(V100).fractions["streaming_fraction"]
    alone_s = KERNEL_FLOOR_S + 10**10 / (fraction * V100.memory_bytes_per_s)
    expected_s = alone_s * math.exp(shipped().excess["element-wise"])
    assert predict(only(op), V100).iteration_s.p50 == pytest.approx(expected_s)


def test_a_copy_from_the_host_crosses_pcie():
    copy = make_op("advisor::h2d_copy", flops=0, num_bytes=10**9)
    estimate = predict(only(copy), V100)
    assert estimate.iteration_s.p50 > 10**9 / V100.pcie_bytes_per_s
    # Whoever copies has loaded before, however little.
    assert set(estimate.by_family) == {"host transfer", "waiting for data"}
    assert estimate.loading_s < 1e-6


def test_tiny_operators_wait_for_the_host():
    op = make_op("aten::add.Tensor", flops=1, num_bytes=4, count=1000)
    estimate = predict(only(op), V100)
    assert estimate.iteration_s.p50 == pytest.approx(host_costs().seconds({HostCall.FORWARD: 1000}))
    assert HOST in estimate.by_family
    assert "bound by the host" in said(estimate.assumptions)


def test_measured_beats_everything_on_the_origin():
    op = make_op(flops=10**13, measured_s=0.5)
    here = predict(only(op, origin_gpu=V100.name), V100)
    assert here.iteration_s.p50 == pytest.approx(0.5)
    assert here.by_method == {Method.MEASURED: pytest.approx(0.5)}
    elsewhere = predict(only(op, origin_gpu=V100.name), resolve_gpu("T4"))
    assert set(elsewhere.by_method) == {Method.ROOFLINE}


def test_a_custom_operator_is_named():
    estimate = predict(only(make_op("mylib::frobnicate")), V100)
    assert "frobnicate" in said(estimate.assumptions)


def test_constants_are_measured_relatives_or_assumed_and_say_so():
    assert "streaming_fraction" in constants_for(V100).measured
    sibling = constants_for(resolve_gpu("V100-SXM-32GB"))
    assert sibling.measured == frozenset()
    assert "measured Volta" in said(sibling.origin.values())
    hopper = constants_for(resolve_gpu("H100-SXM-80GB"))
    assert "assumed" in {whence.facts["of"] for whence in hopper.origin.values()}


def test_the_interval_is_wider_where_nothing_was_measured():
    op = make_op("aten::add.Tensor", num_bytes=10**11)

    def width(name: str) -> float:
        interval = predict(only(op), resolve_gpu(name)).iteration_s
        return interval.p90 / interval.p10

    assert width("V100-PCIE-32GB") < width("H100-SXM-80GB")


def test_data_parallel_adds_communication_and_says_so():
    one, eight = predict_counts(make_trace(), resolve_gpu("T4"), [1, 8])
    assert one.communication_s == 0
    assert eight.communication_s > 0
    assert eight.memory_bytes > one.memory_bytes
    assert "all-reduce" in said(eight.assumptions)


def test_a_trace_without_operators_is_refused():
    with pytest.raises(InputError, match="operators"):
        predict(make_trace(ops=()), V100, 1)


def test_measured_kernels_are_wave_scaled_elsewhere():
    op = replace(make_op("aten::sum", flops=0, measured_s=1e-3), kernels=(KERNEL,))
    trace = only(op, origin_gpu=V100.name)
    a100 = resolve_gpu("A100-PCIE-40GB")
    estimate = predict(trace, a100)
    # Unknown intensity: memory-bound, and so many waves that only the bandwidth counts.
    expected_s = 1e-3 * V100.memory_bytes_per_s / a100.memory_bytes_per_s
    assert estimate.by_method == {Method.WAVE: pytest.approx(expected_s)}
    assert "occupancy" not in said(estimate.assumptions)
    unknown = replace(op, kernels=(replace(KERNEL, registers_per_thread=None),))
    estimate = predict(only(unknown, origin_gpu=V100.name), a100)
    assert "occupancy" in said(estimate.assumptions)


def test_unknown_memory_is_said_and_excludes_nothing():
    memory = replace(make_trace().memory, optimizer_bytes=None, activation_bytes=None, peak_bytes=None)
    estimate = predict(make_trace(memory=memory), V100)
    assert estimate.memory_bytes is None
    assert estimate.fits_memory is None
    assert "does not show" in said(estimate.assumptions)


def test_an_auxiliary_fp32_input_does_not_make_attention_an_fp32_operator():
    """The backward of flash attention takes the fp32 logarithms of its sums along."""
    a100 = resolve_gpu("A100-SXM-80GB")
    query = TensorSpec(shape=(8, 12, 1024, 64), dtype="bfloat16")
    sums = TensorSpec(shape=(8, 12, 1024), dtype="float32")
    name = "aten::_scaled_dot_product_flash_attention_backward"
    half = replace(make_op(name, flops=10**13), inputs=(query, query, query, query, query))
    mixed = replace(half, inputs=(*half.inputs, sums))
    assert predict(only(mixed), a100).iteration_s == predict(only(half), a100).iteration_s


def test_tf32_is_no_fitted_rate_where_only_fp32_was_measured():
    a100 = resolve_gpu("A100-PCIE-80GB")
    conv = make_op("aten::convolution", flops=10**13)

    def width(tf32: bool) -> float:
        precision = Precision(amp_dtype=None, tf32_matmul=tf32, tf32_cudnn=tf32)
        interval = predict(only(conv, precision=precision), a100).iteration_s
        return interval.p90 / interval.p50

    assert width(tf32=True) > width(tf32=False)


def test_an_unknown_origin_is_an_error_that_names_it():
    with pytest.raises(UnknownGpuError, match="Z9"):
        predict(only(make_op(), origin_gpu="Z9"), V100)


@pytest.mark.parametrize(
    ("block", "registers", "gpu"),
    [(1024, 255, "T4"), (32, 32, "MI300X")],
    ids=["does-not-fit-its-own-origin", "without-cuda"],
)
def test_where_there_are_no_waves_the_roofline_tells(block, registers, gpu):
    kernel = replace(KERNEL, grid=(9, 1, 1), block=(block, 1, 1), registers_per_thread=registers)
    op = replace(make_op(measured_s=1e-3), kernels=(kernel,))
    assert set(predict(only(op, origin_gpu=V100.name), resolve_gpu(gpu)).by_method) == {Method.ROOFLINE}
