"""Laws of recurrent layers on every GPU: a better one is never slower, more work never faster."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec, Op, Precision
from advisor.operators.recurrent import steps_of
from advisor.predict.constants import constants_for
from advisor.predict.roofline import op_time
from tests.recurrent import make_layers

GPUS = st.sampled_from(list(load_gpus().values()))
PRECISIONS = st.builds(Precision, amp_dtype=st.none(), tf32_matmul=st.booleans(), tf32_cudnn=st.booleans())
SIZES: dict[str, Any] = {
    "steps": st.integers(1, 200),
    "batch_size": st.integers(1, 512),
    "width": st.integers(0, 3000),
    "hidden": st.integers(1, 3000),
    "layers": st.integers(1, 4),
    "mode": st.integers(0, 3),
    "proj_size": st.just(0) | st.integers(1, 3000),
    "bidirectional": st.booleans(),
    "backward": st.booleans(),
    "dtype": st.sampled_from(["float32", "float16", "bfloat16", "float64"]),
}
CALLS = st.fixed_dictionaries(SIZES)
# Nothing to do is no work either: the last batch of a sharded data set, say.
EMPTY = {name: st.just(0) | SIZES[name] for name in ("steps", "batch_size", "width", "hidden", "proj_size")}
MAYBE_EMPTY = st.fixed_dictionaries(SIZES | EMPTY)
FACTOR = st.floats(1, 10)
LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=40)


def seconds(op: Op, gpu: GpuSpec, precision: Precision) -> float:
    return op_time(op, gpu, constants_for(gpu), precision).time_s


def no_less(more_s: float, less_s: float) -> bool:
    return more_s >= less_s * (1 - 1e-12)


@given(CALLS, GPUS, PRECISIONS, FACTOR, FACTOR)
def test_more_bandwidth_and_a_higher_clock_are_never_slower(call, gpu, precision, bandwidth, clock):
    better = replace(
        gpu,
        memory_bytes_per_s=gpu.memory_bytes_per_s * bandwidth,
        boost_clock_hz=gpu.boost_clock_hz * clock,
        vector_flops_per_s={name: rate * clock for name, rate in gpu.vector_flops_per_s.items()},
        tensor_flops_per_s={name: rate * clock for name, rate in gpu.tensor_flops_per_s.items()},
    )
    op = make_layers(**call)
    assert no_less(seconds(op, gpu, precision), seconds(op, better, precision))


@given(CALLS, GPUS, PRECISIONS, st.integers(1, 200))
def test_more_of_the_same_sms_are_never_slower(call, gpu, precision, more):
    factor = (gpu.num_sms + more) / gpu.num_sms
    larger = replace(
        gpu,
        num_sms=gpu.num_sms + more,
        vector_flops_per_s={name: rate * factor for name, rate in gpu.vector_flops_per_s.items()},
        tensor_flops_per_s={name: rate * factor for name, rate in gpu.tensor_flops_per_s.items()},
    )
    op = make_layers(**call)
    assert no_less(seconds(op, gpu, precision), seconds(op, larger, precision))


@given(
    MAYBE_EMPTY,
    GPUS,
    PRECISIONS,
    st.sampled_from(["steps", "batch_size", "width", "hidden"]),
    st.integers(1, 999),
)
def test_longer_wider_and_larger_is_never_faster(call, gpu, precision, size, more):
    larger = {**call, size: call[size] + more}
    assert no_less(
        seconds(make_layers(**larger), gpu, precision), seconds(make_layers(**call), gpu, precision)
    )


@given(CALLS)
def test_steps_are_known_of_whatever_has_rows_and_states(call):
    assert steps_of(make_layers(**call)) is not None


@given(CALLS, GPUS, PRECISIONS)
def test_another_layer_and_the_other_direction_are_never_faster(call, gpu, precision):
    one_way = {**call, "bidirectional": False}
    base_s = seconds(make_layers(**one_way), gpu, precision)
    deeper = make_layers(**{**one_way, "layers": call["layers"] + 1})
    both_ways = make_layers(**{**call, "bidirectional": True})
    assert seconds(deeper, gpu, precision) > base_s
    assert seconds(both_ways, gpu, precision) > base_s


@given(CALLS, GPUS)
def test_tf32_is_never_slower_than_fp32(call, gpu):
    exact = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)
    op = make_layers(**call)
    assert no_less(seconds(op, gpu, exact), seconds(op, gpu, replace(exact, tf32_cudnn=True)))


@given(CALLS, GPUS, PRECISIONS, st.integers(0, 10**12), st.integers(0, 10**11))
def test_more_flops_and_bytes_are_never_faster(call, gpu, precision, flops, num_bytes):
    op = make_layers(**call)
    more = replace(op, flops=op.flops + flops, bytes=op.bytes + num_bytes)
    assert no_less(seconds(more, gpu, precision), seconds(op, gpu, precision))


@given(CALLS, GPUS, PRECISIONS, LENGTHS)
def test_packed_sequences_are_never_slower_than_padded_ones(call, gpu, precision, lengths):
    """Of equal length they are the same."""
    longest = max(lengths)
    packed = tuple(sum(length > step for length in lengths) for step in range(longest))
    padded = {**call, "steps": longest, "batch_size": len(lengths)}
    padded_s = seconds(make_layers(**padded), gpu, precision)
    assert no_less(padded_s, seconds(make_layers(**call, batch_sizes=packed), gpu, precision))


@given(CALLS, GPUS, PRECISIONS)
def test_steps_never_take_less_than_their_flops_and_weights(call, gpu, precision):
    """The roofline of the whole is a lower bound."""
    op = make_layers(**call)
    steps = steps_of(op)
    rereads_s = sum(steps.num_by_rows.values()) * steps.weight_bytes / gpu.memory_bytes_per_s
    fastest = max([*gpu.vector_flops_per_s.values(), *gpu.tensor_flops_per_s.values()])
    assert seconds(op, gpu, precision) >= max(op.flops / fastest, rereads_s) * (1 - 1e-12)
