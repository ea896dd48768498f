"""Kernels in 16 bits: passes over their bytes, and what an SM does in a clock."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import GpuSpec, Op, Phase
from advisor.operators.cycles import parsed, stream_costs
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import Family
from advisor.operators.norm import NORM
from advisor.operators.registry import family_of
from advisor.predict.constants import constants_for
from advisor.predict.iteration import predict
from advisor.predict.roofline import KERNEL_FLOOR_S, op_time, roofs_of, time_under
from advisor.predict.streaming import stream_times
from tests.builders import make_trace
from tests.unit.predict.learned.values import EXACT, add, layer_norm, make_call, softmax

A100, L40S, V100 = resolve_gpu("A100-SXM-80GB"), resolve_gpu("L40S"), resolve_gpu("V100-SXM-16GB")
SIZES = st.integers(1, 2**14)
GPUS = st.sampled_from(sorted(load_gpus().values(), key=lambda gpu: gpu.name))


def half(op: Op, dtype: str = "bfloat16") -> Op:
    def tensors(some: tuple) -> tuple:
        return tuple(replace(tensor, dtype=dtype) for tensor in some)

    return replace(op, inputs=tensors(op.inputs), outputs=tensors(op.outputs), bytes=op.bytes // 2)


def gelu(rows: int, columns: int) -> Op:
    return make_call("gelu", [(rows, columns)], [(rows, columns)])


def rms_norm(rows: int, columns: int) -> Op:
    return make_call("_fused_rms_norm", [(rows, columns), (columns,)], [(rows, columns)])


def seconds(op: Op, gpu: GpuSpec = A100) -> float:
    return op_time(op, gpu, constants_for(gpu), EXACT).time_s


MAKERS = [add, gelu, layer_norm, rms_norm, softmax]


def test_a_gelu_by_hand() -> None:
    op, cost = half(gelu(8192, 4096)), stream_costs()["curve"]
    bytes_per_s = constants_for(A100).fractions["streaming_fraction"] * A100.memory_bytes_per_s
    cycles = cost.cycles_per_element * 8192 * 4096
    by_hand = (
        KERNEL_FLOOR_S
        + cost.passes * 2 * 2 * 8192 * 4096 / bytes_per_s
        + cycles / (A100.num_sms * A100.boost_clock_hz)
    )
    assert seconds(op) == pytest.approx(by_hand, rel=1e-9)


def test_rows_of_a_norm_are_what_is_normalised() -> None:
    wide, narrow = half(layer_norm(1024, 16384)), half(layer_norm(16384, 1024))
    cost = stream_costs()["layer norm forward"]
    more_rows_s = (16384 - 1024) * cost.cycles_per_row / (A100.num_sms * A100.boost_clock_hz)
    bytes_apart_s = (
        cost.passes
        * (wide.bytes - narrow.bytes)
        / roofs_of("bf16", NORM, A100, constants_for(A100)).bytes_per_s
    )
    assert seconds(narrow) - seconds(wide) == pytest.approx(more_rows_s - bytes_apart_s, rel=1e-6)


@pytest.mark.parametrize("make", MAKERS)
def test_half_the_bytes_take_from_a_third_of_the_time_to_all_of_it(make) -> None:
    full = predict(make_trace(ops=(make(8192, 4096),)), A100).iteration_s.p50
    halved = predict(make_trace(ops=(half(make(8192, 4096)),)), A100).iteration_s.p50
    assert 0.3 * full < halved < 1.3 * full


@pytest.mark.parametrize("family", [NORM, ELEMENTWISE], ids=lambda family: family.word)
def test_full_precision_is_a_roofline(family: Family) -> None:
    op = rms_norm(8192, 4096) if family is NORM else make_call("eq", [(8192, 4096)], [(8192, 4096)])
    assert family_of(op) is family
    roofs = roofs_of("fp32", family, A100, constants_for(A100))
    assert seconds(op) == pytest.approx(roofs.launch_s + op.bytes / roofs.bytes_per_s)
    assert time_under(roofs, op, family).sigma is None


def test_what_has_no_result_or_is_a_batch_norm_is_a_roofline() -> None:
    roofs = roofs_of("bf16", NORM, A100, constants_for(A100))
    batch_norm = half(make_call("cudnn_batch_norm", [(64, 256, 56, 56)], [(64, 256, 56, 56)]))
    assert time_under(roofs, batch_norm, NORM).sigma is None
    nothing = replace(half(add(8, 8)), outputs=())
    assert time_under(roofs, nothing, ELEMENTWISE).sigma is None


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=40)
@given(rows=SIZES, columns=SIZES, gpu=GPUS)
def test_more_rows_or_columns_are_never_faster(make, rows: int, columns: int, gpu: GpuSpec) -> None:
    one = seconds(half(make(rows, columns)), gpu)
    assert seconds(half(make(rows + 1, columns)), gpu) >= one
    assert seconds(half(make(2 * rows, 2 * columns)), gpu) >= one


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=40)
@given(rows=SIZES, columns=SIZES, more=st.floats(1.0, 8.0), gpu=GPUS)
def test_more_bandwidth_or_sms_are_never_slower(
    make, rows: int, columns: int, more: float, gpu: GpuSpec
) -> None:
    op = half(make(rows, columns))
    for better in (
        replace(gpu, memory_bytes_per_s=more * gpu.memory_bytes_per_s),
        replace(gpu, num_sms=math.ceil(more * gpu.num_sms)),
        replace(gpu, boost_clock_hz=more * gpu.boost_clock_hz),
    ):
        roofs = roofs_of("bf16", family_of(op), gpu, constants_for(gpu))
        bytes_per_s = roofs.bytes_per_s * better.memory_bytes_per_s / gpu.memory_bytes_per_s
        improved = replace(roofs, gpu=better, bytes_per_s=bytes_per_s)
        before_s = time_under(roofs, op, family_of(op)).time_s
        assert time_under(improved, op, family_of(op)).time_s <= before_s * (1 + 1e-12)


@pytest.mark.parametrize("kind", stream_costs())
def test_a_gpu_of_another_architecture_is_less_sure(kind: str) -> None:
    cost = stream_costs()[kind]
    assert cost.sigma_on(V100) == cost.unseen_sigma >= cost.sigma >= 0.1
    measured = next(gpu for gpu in load_gpus().values() if gpu.architecture in cost.architectures)
    assert cost.sigma_on(measured) == cost.sigma


def test_how_sure_a_call_is_reaches_the_interval() -> None:
    def ratio(gpu: GpuSpec) -> float:
        iteration_s = predict(make_trace(ops=(half(gelu(2**16, 2**14)),)), gpu).iteration_s
        return math.log(iteration_s.p90 / iteration_s.p50)

    cost = stream_costs()["curve"]
    assert ratio(A100) == pytest.approx(1.2816 * cost.sigma, rel=0.05)
    assert ratio(V100) == pytest.approx(1.2816 * cost.unseen_sigma, rel=0.05)


def test_backward_kinds_have_their_own_costs() -> None:
    sizes = (8192, 4096)
    backward = make_call("gelu_backward", [sizes, sizes], [sizes])
    assert seconds(half(replace(backward, phase=Phase.BACKWARD))) > seconds(half(gelu(*sizes)))


@pytest.mark.parametrize("text", ["[", '["a"]\npasses = 1.0', '["a"]\narchitectures = 3'])
def test_a_broken_file_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        parsed(text)


@settings(max_examples=40)
@given(
    sizes=st.lists(st.tuples(st.sampled_from(MAKERS), SIZES, SIZES, st.booleans()), min_size=1, max_size=6),
    gpu=GPUS,
)
def test_all_at_once_are_as_one_by_one(sizes: list, gpu: GpuSpec) -> None:
    ops = [
        half(make(rows, columns)) if is_half else make(rows, columns)
        for make, rows, columns, is_half in sizes
    ]
    at_once = stream_times(ops, gpu, constants_for(gpu))
    for op, time_s, sigma, (*_, is_half) in zip(
        ops, at_once.time_s.tolist(), at_once.sigma.tolist(), sizes, strict=True
    ):
        alone = op_time(op, gpu, constants_for(gpu), EXACT)
        assert (time_s, sigma) == (alone.time_s, alone.sigma) if is_half else math.isnan(time_s)
