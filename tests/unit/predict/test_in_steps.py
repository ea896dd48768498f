"""What operators take in a whole step beyond what they take alone."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import GpuSpec, Op, Phase, Precision, TensorSpec
from advisor.predict.constants import constants_for
from advisor.predict.iteration import predict
from advisor.predict.knowledge import shipped
from advisor.predict.methods import in_a_step, op_times
from tests.builders import make_op, make_trace

A100, V100 = (resolve_gpu(name) for name in ("A100-SXM-40GB", "V100-SXM-16GB"))
EXCESS = {"gemm": 0.1, "element-wise": 0.2}


def product(dtype: str) -> Op:
    tensors = (TensorSpec(shape=(4096, 4096), dtype=dtype),) * 2
    return replace(make_op("aten::mm", flops=2 * 4096**3, num_bytes=10**8), inputs=tensors)


HALF, SINGLE = product("float16"), product("float32")
ADD = make_op("aten::add.Tensor", flops=1, num_bytes=10**8)
STEP = make_op("aten::add_.Tensor", flops=1, num_bytes=10**8, phase=Phase.OPTIMIZER)
NORM = make_op("aten::native_layer_norm", flops=1, num_bytes=10**8)
TRACE = make_trace(
    ops=(HALF, SINGLE, ADD, STEP, NORM),
    precision=Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True),
)


def factors(gpu: GpuSpec, excess: dict[str, float]) -> list[float]:
    alone = op_times(TRACE, gpu, constants_for(gpu), shipped())
    return (in_a_step(alone, excess).time_s / alone.time_s).tolist()  # type: ignore[no-any-return]


def test_each_kind_takes_its_factor_at_whatever_rate():
    streams = [math.exp(0.2)] * 2 + [1.0]
    for gpu in (A100, V100):
        assert factors(gpu, EXCESS) == pytest.approx([math.exp(0.1)] * 2 + streams)


def test_what_was_measured_in_a_step_stays():
    ops = tuple(replace(op, measured_s=1e-3) for op in TRACE.ops)
    measured = replace(TRACE, ops=ops, origin_gpu=A100.name, iteration_s=0.02)
    knowledge = [replace(shipped(), excess=excess) for excess in ({}, EXCESS)]
    before, after = (predict(measured, A100, knowledge=each).device_s.p50 for each in knowledge)
    assert before == after


@given(st.sampled_from([*load_gpus().values()]), st.floats(1, 3))
def test_nothing_is_faster_than_alone_whatever_the_board(gpu, more):
    excess = dict(shipped().excess)
    assert min(excess.values()) >= 0
    rates = {rate: more * own for rate, own in gpu.tensor_flops_per_s.items()}
    better = replace(gpu, tensor_flops_per_s=rates, memory_bytes_per_s=more * gpu.memory_bytes_per_s)
    assert factors(better, excess) == pytest.approx(factors(gpu, excess))
