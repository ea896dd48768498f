"""Laws of fused attention on every GPU: more work is never faster, a better GPU never slower."""

from dataclasses import replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec
from advisor.operators import attention_kernels
from advisor.operators.attention import ATTENTION
from tests.attention import make_attention

GPUS = st.sampled_from(
    [gpu for gpu in load_gpus().values() if gpu.vendor == "NVIDIA" and "bf16" in gpu.tensor_flops_per_s]
)
KERNELS = st.sampled_from(sorted(attention_kernels.kernels().items())).map(lambda item: item[1])
CALLS = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 64),
        "heads": st.integers(1, 64),
        "queries": st.integers(1, 9000),
        "keys": st.integers(1, 9000),
        "size": st.sampled_from([32, 40, 64, 80, 96, 128, 160, 192, 256]),
        "is_causal": st.booleans(),
        "backward": st.booleans(),
    }
)
MORE = st.integers(0, 3000)


def called(call: dict[str, Any]) -> attention_kernels.AttentionCall:
    known = attention_kernels.attention_call(make_attention(**call))
    assert known is not None
    return known


def time_s(call: dict[str, Any], kernel: Any, gpu: GpuSpec) -> float:
    return attention_kernels.seconds(
        called(call), kernel, gpu, attention_kernels.rate_flops_per_s(kernel, gpu, "bf16")
    )


def no_less(more_s: float, less_s: float) -> bool:
    return more_s >= less_s * (1 - 1e-12)


@given(CALLS, KERNELS, GPUS, MORE, MORE)
def test_longer_sequences_are_never_faster(call, kernel, gpu, queries, keys):
    longer = {**call, "queries": call["queries"] + queries, "keys": call["keys"] + keys}
    if call["is_causal"]:  # further queries see further keys: of both as many
        call = {**call, "keys": call["queries"]}
        longer = {**call, "queries": call["queries"] + queries, "keys": call["queries"] + queries}
    assert no_less(time_s(longer, kernel, gpu), time_s(call, kernel, gpu))


@given(CALLS, KERNELS, GPUS)
def test_causal_is_never_slower_than_full(call, kernel, gpu):
    full, causal = {**call, "is_causal": False}, {**call, "is_causal": True}
    assert no_less(time_s(full, kernel, gpu), time_s(causal, kernel, gpu))


@given(CALLS, KERNELS, GPUS, st.integers(1, 8))
def test_more_heads_are_never_faster(call, kernel, gpu, more):
    assert no_less(time_s({**call, "heads": call["heads"] + more}, kernel, gpu), time_s(call, kernel, gpu))


@given(CALLS, KERNELS, GPUS, st.integers(1, 200), st.floats(1, 10))
def test_more_sms_and_bandwidth_are_never_slower(call, kernel, gpu, more, bandwidth):
    factor = (gpu.num_sms + more) / gpu.num_sms
    better = replace(
        gpu,
        num_sms=gpu.num_sms + more,
        memory_bytes_per_s=bandwidth * gpu.memory_bytes_per_s,
        tensor_flops_per_s={name: factor * rate for name, rate in gpu.tensor_flops_per_s.items()},
    )
    assert no_less(time_s(call, kernel, gpu), time_s(call, kernel, better))


@given(CALLS, KERNELS, GPUS)
def test_nothing_is_faster_than_its_flops_at_the_peak(call, kernel, gpu):
    full = {**call, "is_causal": False}
    op = make_attention(**full)
    assert no_less(time_s(full, kernel, gpu), op.flops / gpu.tensor_flops_per_s["bf16"])


@given(CALLS, GPUS)
def test_every_call_has_a_time_on_every_gpu_that_runs_it(call, gpu):
    op = make_attention(**call)
    known = attention_kernels.attention_call(op)
    backend = attention_kernels.backend_of(known, gpu)
    assume((backend, known.is_backward) in attention_kernels.kernels())
    formula = ATTENTION.fitted(op)
    assert formula is not None
    time = formula(gpu)
    assert time.time_s > 0
    assert time.sigma > 0


@given(CALLS, KERNELS, GPUS)
def test_within_a_tile_lengths_cost_the_same_tiles(call, kernel, gpu):
    """What differs is bytes: a part of a tile is computed whole. Blocks that are not full start sooner."""
    whole = {
        **call,
        "queries": -(-call["queries"] // attention_kernels.TILE) * attention_kernels.TILE,
        "keys": -(-call["keys"] // attention_kernels.TILE) * attention_kernels.TILE,
    }
    bytes_apart = kernel.traffic * (called(whole).num_bytes - called(call).num_bytes)
    apart_s = time_s(whole, kernel, gpu) - time_s(call, kernel, gpu)
    tiles_apart_s = apart_s - bytes_apart / gpu.memory_bytes_per_s
    rounding_s = 1e-9 * time_s(whole, kernel, gpu)
    assert tiles_apart_s >= -rounding_s
    if call["keys" if call["backward"] else "queries"] > attention_kernels.TILE - attention_kernels.HEAD_STEP:
        assert tiles_apart_s <= rounding_s
