"""Laws of the prediction: a better GPU is never slower, more work never faster, sums add up."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus
from advisor.core.input_time import fed
from advisor.core.values import FittedConstants, GpuSpec, Op, Phase, Precision
from advisor.predict.iteration import predict, predict_counts
from advisor.predict.loading import assumed_cpu_s
from advisor.predict.roofline import op_time
from tests.builders import make_op, make_trace

NAMES = [
    "aten::mm",
    "aten::convolution",
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_cudnn_rnn",
    "aten::native_layer_norm",
    "aten::add.Tensor",
    "aten::embedding",
    "aten::_foreach_add_.List",
    "advisor::h2d_copy",
    "mylib::custom",
]
OPS = st.builds(
    make_op,
    st.sampled_from(NAMES),
    flops=st.integers(0, 10**13),
    num_bytes=st.integers(0, 10**11),
    count=st.integers(1, 100),
    dtype=st.sampled_from(["float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "int64"]),
    phase=st.sampled_from(Phase),
)
GPUS = st.sampled_from(list(load_gpus().values()))
PRECISIONS = st.builds(Precision, amp_dtype=st.none(), tf32_matmul=st.booleans(), tf32_cudnn=st.booleans())
FASTER = st.floats(1, 10)
RATES = ("fp64", "fp32", "fp16_vector", "tf32", "fp16", "bf16", "fp8")
CONSTANTS = FittedConstants(
    fractions={
        "streaming_fraction": 0.8,
        "reduction_fraction": 0.6,
        **{f"gemm_fraction.{rate}": 0.7 for rate in RATES},
        **{f"conv_fraction.{rate}": 0.6 for rate in RATES},
    },
    measured=frozenset(),
    origin={},
)


def seconds(op: Op, gpu: GpuSpec, constants: FittedConstants, precision: Precision) -> float:
    return op_time(op, gpu, constants, precision).time_s


def scaled(gpu: GpuSpec, *, bandwidth: float = 1, compute: float = 1) -> GpuSpec:
    return replace(
        gpu,
        memory_bytes_per_s=gpu.memory_bytes_per_s * bandwidth,
        pcie_bytes_per_s=gpu.pcie_bytes_per_s * bandwidth,
        vector_flops_per_s={k: v * compute for k, v in gpu.vector_flops_per_s.items()},
        tensor_flops_per_s={k: v * compute for k, v in gpu.tensor_flops_per_s.items()},
    )


@given(OPS, GPUS, PRECISIONS, FASTER, FASTER)
def test_a_better_gpu_is_never_slower(op, gpu, precision, bandwidth, compute):
    better = scaled(gpu, bandwidth=bandwidth, compute=compute)
    before = seconds(op, gpu, CONSTANTS, precision)
    assert seconds(op, better, CONSTANTS, precision) <= before * (1 + 1e-12)


@given(OPS, GPUS, PRECISIONS, st.integers(0, 10**12), st.integers(0, 10**10))
def test_more_work_is_never_faster(op, gpu, precision, flops, num_bytes):
    more = replace(op, flops=op.flops + flops, bytes=op.bytes + num_bytes)
    before = seconds(op, gpu, CONSTANTS, precision)
    assert seconds(more, gpu, CONSTANTS, precision) >= before


@given(OPS, GPUS)
def test_tf32_is_never_slower_than_fp32(op, gpu):
    exact = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)
    loose = Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True)
    exact_s = seconds(op, gpu, CONSTANTS, exact)
    loose_s = seconds(op, gpu, CONSTANTS, loose)
    assert loose_s <= exact_s * (1 + 1e-12)


@given(st.lists(OPS, min_size=1, max_size=10), GPUS, st.sampled_from([1, 2, 4, 8]))
def test_an_estimate_adds_up(ops, gpu, num_gpus):
    estimate = predict(make_trace(ops=tuple(ops)), gpu, num_gpus)
    families, methods = sum(estimate.by_family.values()), sum(estimate.by_method.values())
    p50_s = estimate.iteration_s.p50
    assert families + estimate.communication_s == pytest.approx(p50_s, rel=1e-9)
    assert methods == pytest.approx(families, rel=1e-9)
    assert sum(estimate.by_operator.values()) == pytest.approx(families, rel=1e-9)
    assert 0 < estimate.iteration_s.p10 <= p50_s <= estimate.iteration_s.p90


LOADING_S = st.floats(0, 100)
WORKERS = st.integers(0, 64)


@given(st.lists(OPS, min_size=1, max_size=6), GPUS, LOADING_S, WORKERS, st.sampled_from([1, 4]))
def test_waiting_for_data_is_part_of_the_sum(ops, gpu, loading_s, workers, num_gpus):
    trace = make_trace(ops=tuple(ops), data_loading_s=loading_s, num_workers=workers)
    estimate = predict(trace, gpu, num_gpus)
    p50_s = estimate.iteration_s.p50
    alone_s = predict(make_trace(ops=tuple(ops), data_loading_s=0.0), gpu, num_gpus).iteration_s.p50
    assert p50_s >= alone_s * (1 - 1e-12)
    for parts in (estimate.by_family, estimate.by_method, estimate.by_operator):
        assert sum(parts.values()) + estimate.communication_s == pytest.approx(p50_s, rel=1e-9)
    assert estimate.loading_s == pytest.approx(p50_s - alone_s, rel=1e-9, abs=1e-9 * p50_s)
    assert 0 < estimate.iteration_s.p10 <= p50_s <= estimate.iteration_s.p90


@given(st.lists(OPS, min_size=1, max_size=6), GPUS, LOADING_S, WORKERS, st.integers(1, 8))
def test_more_workers_are_never_slower_and_more_loading_never_faster(ops, gpu, loading_s, workers, more):
    def p50_s(seconds: float, count: int) -> float:
        trace = make_trace(ops=tuple(ops), data_loading_s=seconds, num_workers=count)
        return predict(trace, gpu).iteration_s.p50

    base_s = p50_s(loading_s, workers)
    assert p50_s(loading_s, workers + more) <= base_s * (1 + 1e-12)
    assert p50_s(loading_s * more, workers) >= base_s * (1 - 1e-12)


@given(st.lists(OPS, min_size=1, max_size=6), GPUS, WORKERS)
def test_no_loading_changes_nothing(ops, gpu, workers):
    without = make_trace(ops=tuple(ops), data_loading_s=0.0, num_workers=None)
    trace = make_trace(ops=tuple(ops), data_loading_s=0.0, num_workers=workers)
    assert predict(trace, gpu) == predict(without, gpu)


@given(st.lists(OPS, min_size=1, max_size=6), GPUS, st.one_of(st.none(), WORKERS), st.floats(0.25, 256))
def test_an_unknown_loader_is_never_faster_than_its_kind(ops, gpu, workers, vcpus):
    trace = make_trace(ops=tuple(ops), data_loading_s=None, num_workers=workers)
    assumed = assumed_cpu_s(trace)
    estimate = fed(predict(trace, gpu), vcpus)
    assert (estimate.input is None) == (assumed is None)
    if assumed is not None:
        cores = min(vcpus, max(1, vcpus if workers is None else workers))
        assert estimate.iteration_s.p50 >= assumed[1].p50 / cores * (1 - 1e-12)
        assert estimate.iteration_s.p90 >= assumed[1].p90 / cores * (1 - 1e-12)


@given(st.lists(OPS, min_size=1, max_size=6), GPUS)
def test_counts_agree_with_single_predictions(ops, gpu):
    trace = make_trace(ops=tuple(ops))
    assert predict_counts(trace, gpu, [1, 4]) == (predict(trace, gpu, 1), predict(trace, gpu, 4))
