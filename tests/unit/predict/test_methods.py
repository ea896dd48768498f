"""The order of methods, equal operators and calls that are counted, and the iteration as a whole."""

from dataclasses import replace

import pytest

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import GpuSpec, Kernel, Method, Op, Phase, Precision, Trace
from advisor.operators.gemm import GEMM
from advisor.operators.optimizer import OPTIMIZER
from advisor.predict.constants import constants_for
from advisor.predict.distinct import Same, asked_rates, columns_of, merged, shared
from advisor.predict.interval import SIGMA_ROOFLINE_ASSUMED, SIGMA_ROOFLINE_FITTED
from advisor.predict.iteration import predict
from advisor.predict.knowledge import shipped
from advisor.predict.methods import Called, op_times, operator_times
from advisor.predict.roofline import op_times_s
from advisor.predict.step_time import HOST
from tests.builders import make_op, make_trace

V100, T4 = resolve_gpu("V100-PCIE-32GB"), resolve_gpu("T4")
KERNEL = Kernel(
    name="k", grid=(10_000, 1, 1), block=(256, 1, 1), registers_per_thread=32, shared_bytes=0, duration_s=1e-3
)


def measured(**changes: object) -> Op:
    return replace(make_op("aten::sum", flops=0, measured_s=1e-3), kernels=(KERNEL,), **changes)


def trace_of(*ops: Op, **changes: object) -> Trace:
    return make_trace(ops=ops, **({"origin_gpu": V100.name} | changes))


def methods(trace: Trace, gpu: GpuSpec) -> list[Method]:
    return [time.method for time in op_times(trace, gpu, constants_for(gpu), shipped())]


# Operators that no network knows: sums, and products without their second operand.
def test_measured_at_home_waves_abroad_and_roofline_for_the_rest():
    trace = trace_of(measured(), make_op(measured_s=1e-3), make_op())
    assert methods(trace, V100) == [Method.MEASURED, Method.MEASURED, Method.ROOFLINE]
    assert methods(trace, T4) == [Method.WAVE, Method.ROOFLINE, Method.ROOFLINE]


def test_an_unmeasured_operator_at_home_is_not_scaled_to_itself():
    assert methods(trace_of(measured(measured_s=None)), V100) == [Method.ROOFLINE]


def test_without_an_origin_nothing_was_measured():
    assert methods(trace_of(measured(), origin_gpu=None), V100) == [Method.ROOFLINE]


@pytest.mark.parametrize("gpu", [V100, T4])
@pytest.mark.parametrize("op", [measured(), make_op()])
def test_equal_calls_add_up(gpu, op):
    (once,) = op_times(trace_of(op), gpu, constants_for(gpu), shipped())
    (thrice,) = op_times(trace_of(replace(op, count=3)), gpu, constants_for(gpu), shipped())
    assert thrice.time_s == pytest.approx(3 * once.time_s)
    assert thrice.method is once.method


def test_the_ridge_point_takes_the_peak_of_the_data_sheet():
    # 10 FLOP/byte, below the T4's ridge point at either rate: what it reaches of its peak must not count.
    op = measured(flops=10**7, bytes=10**6)
    peak = T4.vector_flops_per_s["fp32"]
    (expected_s,) = op_times_s([op], V100, T4, lambda _op, _gpu: peak)
    (timing,) = op_times(trace_of(op), T4, constants_for(T4), shipped())
    assert timing.time_s == pytest.approx(expected_s)
    (lower_s,) = op_times_s([op], V100, T4, lambda _op, _gpu: peak / 2)
    assert timing.time_s != pytest.approx(lower_s)


def test_only_the_roofline_rests_on_a_constant():
    trace = trace_of(measured(), make_op("aten::sum", flops=0, num_bytes=10**9))
    scaled, roofline = op_times(trace, T4, constants_for(T4), shipped())
    assert (scaled.constant, roofline.constant) == ("", "streaming_fraction")


@pytest.mark.parametrize(
    ("name", "gpu", "sigma"),
    [
        ("aten::sum", "T4", SIGMA_ROOFLINE_FITTED),
        ("aten::sum", "B200-SXM", SIGMA_ROOFLINE_ASSUMED),
        # It rests on the link alone, which is the same for all.
        ("advisor::h2d_copy", "B200-SXM", SIGMA_ROOFLINE_FITTED),
    ],
)
def test_a_roofline_is_surer_where_its_constant_was_fitted(name, gpu, sigma):
    spec = resolve_gpu(gpu)
    trace = trace_of(make_op(name, flops=0, num_bytes=10**9), origin_gpu=None)
    (found,) = op_times(trace, spec, constants_for(spec), shipped())
    assert (found.method, found.sigma) == (Method.ROOFLINE, sigma)


def test_each_time_knows_its_operator_and_family():
    ops = (make_op("aten::mm"), make_op("aten::mul_", phase=Phase.OPTIMIZER))
    times = op_times(trace_of(*ops), T4, constants_for(T4), shipped())
    assert tuple(time.op for time in times) == ops
    assert [time.family for time in times] == [GEMM, OPTIMIZER]


def test_what_the_kernels_leave_of_a_measured_iteration_is_the_host():
    estimate = predict(trace_of(measured(), iteration_s=0.004), V100)
    assert estimate.iteration_s.p50 == pytest.approx(0.004)
    assert estimate.by_family[HOST] == pytest.approx(0.003)


def test_overlapping_kernels_leave_nothing_to_the_host():
    estimate = predict(trace_of(measured(), iteration_s=0.0005), V100)
    assert estimate.iteration_s.p50 == pytest.approx(0.001)
    assert HOST not in estimate.by_family


def test_a_measured_iteration_of_a_busy_gpu_says_nothing_of_another():
    alone, with_iteration = trace_of(measured()), trace_of(measured(), iteration_s=0.0011)
    assert predict(with_iteration, T4).iteration_s == predict(alone, T4).iteration_s


def test_operators_and_families_come_largest_first():
    ops = (
        make_op("aten::mul"),
        make_op("aten::mm", flops=10**13),
        make_op("aten::_softmax", num_bytes=10**9),
    )
    estimate = predict(trace_of(*ops, origin_gpu=None), T4)
    assert list(estimate.by_family)[:2] == ["gemm", "norm and softmax"]
    for parts in (estimate.by_family, estimate.by_operator):
        assert list(parts.values()) == sorted(parts.values(), reverse=True)


def test_overloads_of_one_operator_are_one_line():
    ops = (make_op("aten::sum.dim"), make_op("aten::sum.all"), make_op("aten::cumsum_.dim"))
    by_operator = predict(trace_of(*ops, origin_gpu=None), T4).by_operator
    assert set(by_operator) - {HOST} == {"sum (roofline)", "cumsum_ (roofline)"}
    assert by_operator["sum (roofline)"] == pytest.approx(2 * by_operator["cumsum_ (roofline)"])


GPU = load_gpus()["A100-SXM-80GB"]


def test_they_add_up_to_the_estimate():
    trace = make_trace()
    times = operator_times(trace, GPU)
    estimate = predict(trace, GPU)
    waits = sum(s for name, s in estimate.by_operator.items() if name.startswith("waiting"))
    assert abs(sum(calls.time_s for calls in times.values()) - (estimate.device_s.p50 - waits)) < 1e-9


def test_calls_are_counted_by_phase():
    ops = (
        make_op("aten::add", phase=Phase.FORWARD, count=3),
        make_op("aten::add", phase=Phase.FORWARD, count=2),
        make_op("aten::add", phase=Phase.BACKWARD, count=1),
    )
    times = operator_times(make_trace(ops=ops), GPU)
    counts = {called: calls.count for called, calls in times.items()}
    assert counts == {Called("add", Phase.FORWARD): 5, Called("add", Phase.BACKWARD): 1}
    one, other = times[Called("add", Phase.FORWARD)], times[Called("add", Phase.BACKWARD)]
    assert one.flops == 5 * other.flops


FULL = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=True)
ONE, OTHER = make_op("aten::mm", count=2), make_op("aten::add", count=3)
OPS = (ONE, OTHER, replace(ONE, count=5), OTHER)


def test_counts_of_equal_operators_add_up():
    assert merged(OPS) == (replace(ONE, count=7), replace(OTHER, count=6))
    assert merged((ONE, OTHER)) == (ONE, OTHER)


def test_shared_operators_are_equal_in_their_counts_too():
    again = tuple(replace(op) for op in OPS)
    found = shared((*OPS, *again))
    assert found == (*OPS, *again)
    assert len({id(op) for op in found}) == 3


def test_what_is_kept_is_kept_for_one_sequence():
    again = tuple(replace(op) for op in OPS)
    assert merged(OPS) is merged(OPS) is not merged(again)
    assert asked_rates(OPS, FULL) is asked_rates(OPS, FULL)
    assert columns_of(OPS) is columns_of(OPS) is not columns_of(again)
    assert Same(OPS) == Same(OPS) != Same(again)
    assert Same(OPS) != OPS


def test_a_custom_operator_is_named_once():
    ops = (*OPS, make_op("mine::kernel"), make_op("mine::kernel", count=4), make_op("ours::kernel"))
    columns = columns_of(ops)
    assert [columns.names[i] for i in columns.name_index] == ["mm", "add", "mm", "add", *["kernel"] * 3]
    assert columns.custom == ("kernel",)
    assert columns.counts.tolist() == [2, 3, 5, 3, 1, 4, 1]
