"""What allowing TF32 for products makes of a trace."""

from dataclasses import replace

import pytest

from advisor.core.values import Precision
from advisor.predict.iteration import predict
from advisor.predict.what_if.precision import allow_tf32
from tests.builders import make_gpu, make_op, make_trace

AMPERE = make_gpu(
    compute_capability="8.0", tensor_flops_per_s={"tf32": 80e12, "fp16": 160e12, "bf16": 160e12}
)
FULL = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=True)


def test_only_the_flag_of_products_changes():
    trace = make_trace()
    assert allow_tf32(trace) == replace(trace, precision=replace(FULL, tf32_matmul=True))


def test_products_get_faster_on_ampere():
    trace = make_trace()
    changed = allow_tf32(trace)
    assert changed is not None
    assert predict(changed, AMPERE).iteration_s.p50 < predict(trace, AMPERE).iteration_s.p50 / 2


@pytest.mark.parametrize(
    "trace",
    [
        make_trace(precision=replace(FULL, tf32_matmul=True)),
        make_trace(ops=(make_op(dtype="bfloat16"),)),
        make_trace(ops=(make_op("aten::convolution"),)),
    ],
    ids=["allowed already", "no FP32 product", "convolutions have their own flag"],
)
def test_nothing_to_change(trace):
    assert allow_tf32(trace) is None


def test_measured_products_are_predicted_anew_and_nothing_else():
    product, norm = make_op(measured_s=1.0), make_op("aten::native_layer_norm", measured_s=2.0)
    changed = allow_tf32(make_trace(ops=(product, norm), iteration_s=4.0))
    assert [op.measured_s for op in changed.ops] == [None, 2.0]
    assert changed.iteration_s is None
