"""Which roof binds an operator, and which FLOP rate it gets; every figure by hand."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import RatesFrom
from advisor.core.values import FittedConstants, GpuSpec, Op, Precision, TensorSpec
from advisor.operators.family import Rate, RooflineTime, compute_rate, wanted_rate
from advisor.operators.gemm import GEMM
from advisor.operators.recurrent import step_constants, steps_of, steps_time_s
from advisor.operators.registry import family_of
from advisor.predict.roofline import op_time
from tests.builders import make_gpu, make_op
from tests.recurrent import make_layers

FLOOR_S = 2e-6
RATES = ("fp64", "fp32", "fp16_vector", "tf32", "fp16", "bf16", "fp8")
CONSTANTS = FittedConstants(
    fractions={
        "streaming_fraction": 0.8,
        "reduction_fraction": 0.5,
        **{f"gemm_fraction.{rate}": 0.5 for rate in RATES},
        **{f"conv_fraction.{rate}": 0.25 for rate in RATES},
    },
    measured=frozenset(),
    origin={},
)
EXACT = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)
TENSOR = {"tf32": 40e12, "fp16": 80e12, "bf16": 80e12, "fp8": 160e12}
AMPERE = make_gpu(tensor_flops_per_s=TENSOR)
PASCAL = make_gpu(tensor_flops_per_s={})
CONV, RNN = "aten::convolution", "aten::_cudnn_rnn"
FLASH = "aten::_scaled_dot_product_flash_attention"


def rate_of(op: Op, gpu: GpuSpec = AMPERE, precision: Precision = EXACT) -> Rate:
    return compute_rate(op, family_of(op), gpu, CONSTANTS, precision)


def seconds(op: Op, gpu: GpuSpec = AMPERE) -> float:
    return op_time(op, gpu, CONSTANTS, EXACT).time_s


def tensors(*specs: tuple[int, str]) -> tuple[TensorSpec, ...]:
    """By (number of dimensions, dtype)."""
    return tuple(TensorSpec(shape=(2,) * num_dims, dtype=dtype) for num_dims, dtype in specs)


@pytest.mark.parametrize(
    ("name", "flops", "num_bytes", "beyond_launch_s", "constant"),
    [
        # 10^12 FLOPs at half of 10 TFLOP/s; 8 x 10^9 bytes at 80 % of 1 TB/s; both 1 ms, counted once.
        ("aten::mm", 10**12, 10**9, 0.2, "gemm_fraction.fp32"),
        ("aten::mm", 10**9, 8 * 10**9, 0.01, "streaming_fraction"),
        ("aten::mm", 5 * 10**9, 8 * 10**8, 1e-3, "streaming_fraction"),
        ("aten::mm", 0, 0, 0.0, "streaming_fraction"),
        # Norms read twice and have a fraction of their own; copies cross 80 % of PCIe's 16 GB/s.
        ("aten::_softmax", 0, 10**9, 2e-3, "reduction_fraction"),
        ("advisor::h2d_copy", 10**12, 128 * 10**8, 1.0, ""),
        ("advisor::d2h_copy", 10**12, 128 * 10**8, 1.0, ""),
    ],
)
def test_the_higher_roof_counts_beyond_the_launch(name, flops, num_bytes, beyond_launch_s, constant):
    timing = op_time(make_op(name, flops=flops, num_bytes=num_bytes), AMPERE, CONSTANTS, EXACT)
    assert timing == RooflineTime(time_s=pytest.approx(FLOOR_S + beyond_launch_s), constant=constant)


@pytest.mark.parametrize(
    ("name", "is_causal", "share"),
    [(FLASH, True, 0.5), *((FLASH, odd, 1.0) for odd in (False, None, "yes", 1)), ("aten::mm", True, 1.0)],
)
def test_a_causal_mask_halves_the_work_of_attention_alone(name, is_causal, share):
    op = replace(make_op(name, flops=10**12, num_bytes=0), attributes={"is_causal": is_causal})
    assert seconds(op) == pytest.approx(FLOOR_S + share * 0.2)


@pytest.mark.parametrize(
    ("dtype", "peak", "constant"),
    [
        ("float64", 5e12, "fp64"),
        ("float32", 10e12, "fp32"),
        ("float16", 80e12, "fp16"),
        ("bfloat16", 80e12, "bf16"),
        ("float8_e4m3fn", 160e12, "fp8"),
        ("float8_e5m2", 160e12, "fp8"),
    ],
)
def test_each_dtype_has_its_peak(dtype, peak, constant):
    products = (("aten::mm", "gemm_fraction", 0.5), (FLASH, "gemm_fraction", 0.5))
    for name, kind, fraction in (*products, (CONV, "conv_fraction", 0.25)):
        rate = rate_of(make_op(name, dtype=dtype))
        assert rate.peak_flops_per_s == peak
        assert rate.flops_per_s == pytest.approx(fraction * peak)
        assert rate.constant == f"{kind}.{constant}"
        assert rate.note is None


def test_recurrent_layers_of_unknown_sizes_get_three_tenths():
    op = make_op(RNN, dtype="float16", flops=12 * 10**12, num_bytes=0)
    rate = rate_of(op)
    assert rate.flops_per_s == pytest.approx(0.3 * 0.5 * 80e12)
    assert rate.constant == "gemm_fraction.fp16"
    assert op_time(op, AMPERE, CONSTANTS, EXACT) == RooflineTime(
        time_s=pytest.approx(FLOOR_S + 1.0), constant="gemm_fraction.fp16"
    )


def test_recurrent_layers_are_products_of_all_inputs_and_then_steps():
    # 64 sequences of 10 steps of 512 units: at once 64 x 10 x 512 x 2048 multiply-adds at 40 TFLOP/s.
    at_once_s = 2 * 64 * 10 * 512 * 2048 / 40e12
    op = make_layers(steps=10, batch_size=64, width=512, hidden=512, dtype="float16")
    assert seconds(op) == pytest.approx(FLOOR_S + at_once_s + steps_s(op))
    # Gradients of all inputs and weights are three times the work; then the same steps from the other side.
    gradients = make_layers(steps=10, batch_size=64, width=512, hidden=512, dtype="float16", backward=True)
    assert seconds(gradients) == pytest.approx(FLOOR_S + 3 * at_once_s + steps_s(gradients))


def steps_s(op: Op) -> float:
    """By their own formula, at the data sheet's rate of the made-up GPU."""
    steps = steps_of(op)
    constants = step_constants()["tensor", steps.is_backward]
    return steps_time_s(steps, constants, AMPERE, AMPERE.tensor_flops_per_s["fp16"])


def test_what_recurrent_layers_read_and_write_at_once_counts_where_it_takes_longer():
    op = replace(make_layers(dtype="float16"), bytes=8 * 10**9)
    products = replace(op, bytes=0)
    steps = steps_of(op)
    at_once_s = (op.flops - steps.flops) / 40e12
    assert seconds(op) == pytest.approx(seconds(products) - at_once_s + 0.01)


@pytest.mark.parametrize(
    ("name", "matmul", "cudnn", "rate"),
    [
        ("aten::mm", True, False, "tf32"),
        ("aten::mm", False, True, "fp32"),
        (CONV, True, False, "fp32"),
        (CONV, False, True, "tf32"),
        (RNN, False, True, "tf32"),
        (RNN, True, False, "fp32"),
        (FLASH, True, False, "tf32"),
    ],
)
def test_products_and_cudnn_have_flags_of_their_own(name, matmul, cudnn, rate):
    op, precision = make_op(name), Precision(amp_dtype=None, tf32_matmul=matmul, tf32_cudnn=cudnn)
    assert wanted_rate(op, family_of(op), precision) == rate
    assert rate_of(op, precision=precision).peak_flops_per_s == (40e12 if rate == "tf32" else 10e12)


SLOW_HALVES = make_gpu(tensor_flops_per_s={}, vector_flops_per_s={"fp32": 10e12, "fp16": 0.15e12})


@pytest.mark.parametrize(
    ("op", "gpu", "peak_flops_per_s", "rate", "note"),
    [
        # TF32 without hardware is FP32 in silence.
        (make_op(), PASCAL, 10e12, "fp32", None),
        # Halves that are computed in FP32 take what that reaches of its peak.
        (make_op(dtype="float16"), SLOW_HALVES, 10e12, "fp32", "cuda-cores"),
        (make_op(dtype="float16"), PASCAL, 20e12, "fp16_vector", "cuda-cores"),
        (make_op(dtype="bfloat16"), PASCAL, 10e12, "fp32", "emulated"),
        (make_op(dtype="float8_e5m2"), PASCAL, 10e12, "fp32", "emulated"),
        # Tensor cores count where they are faster.
        (make_op(), make_gpu(tensor_flops_per_s={"tf32": 8e12}), 10e12, "fp32", None),
        (make_op(), make_gpu(tensor_flops_per_s={"fp32": 40e12}), 40e12, "fp32", None),
        (make_op(dtype="float64"), make_gpu(tensor_flops_per_s={"fp64": 19.5e12}), 19.5e12, "fp64", None),
        # Other families compute on CUDA cores.
        (make_op("aten::add.Tensor", dtype="bfloat16"), AMPERE, 10e12, "fp32", None),
        (make_op("aten::_softmax", dtype="bfloat16"), AMPERE, 10e12, "fp32", None),
        (make_op("aten::embedding", dtype="bfloat16"), AMPERE, 10e12, "fp32", None),
    ],
)
def test_what_a_gpu_s_units_can_compute(op, gpu, peak_flops_per_s, rate, note):
    found = rate_of(op, gpu, Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True))
    assert (found.peak_flops_per_s, found.constant) == (peak_flops_per_s, f"gemm_fraction.{rate}")
    assert (found.note.of if isinstance(found.note, RatesFrom) else found.note) == note
    assert found.is_substitute is (note is not None and rate == "fp32")


@pytest.mark.parametrize(
    ("inputs", "rate"),
    [
        (tensors((2, "float16"), (2, "float32")), "fp16"),
        (tensors((1, "float32"), (2, "bfloat16")), "bf16"),  # a bias goes first in addmm
        (tensors((1, "float16")), "fp16"),  # a dot product has vectors only
        (tensors((2, "int64"), (2, "float64")), "fp64"),
        (tensors((2, "int64")), "fp32"),
        ((), "fp32"),
    ],
)
def test_the_first_floating_matrix_decides(inputs, rate):
    op = replace(make_op(), inputs=inputs)
    assert wanted_rate(op, GEMM, EXACT) == rate
