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


def test_a_product_is_bound_by_compute():
    # 10^12 FLOPs at half of 10 TFLOP/s: 0.2 s.
    timing = op_time(make_op(flops=10**12, num_bytes=10**9), AMPERE, CONSTANTS, EXACT)
    assert timing.time_s == pytest.approx(FLOOR_S + 0.2)
    assert timing.constant == "gemm_fraction.fp32"


def test_a_thin_product_is_bound_by_memory():
    # 8 x 10^9 bytes at 80 % of 1 TB/s: 10 ms; its FLOPs would take 0.2 ms.
    timing = op_time(make_op(flops=10**9, num_bytes=8 * 10**9), AMPERE, CONSTANTS, EXACT)
    assert timing.time_s == pytest.approx(FLOOR_S + 0.01)
    assert timing.constant == "streaming_fraction"


def test_both_roofs_at_the_same_height_are_memory():
    # 5 x 10^9 FLOPs at 5 TFLOP/s and 8 x 10^8 bytes at 0.8 TB/s: 1 ms each, counted once.
    timing = op_time(make_op(flops=5 * 10**9, num_bytes=8 * 10**8), AMPERE, CONSTANTS, EXACT)
    assert timing.time_s == pytest.approx(FLOOR_S + 1e-3)
    assert timing.constant == "streaming_fraction"


def test_an_empty_operator_takes_a_launch():
    assert seconds(make_op(flops=0, num_bytes=0)) == pytest.approx(FLOOR_S)


def test_norms_read_twice_and_have_a_fraction_of_their_own():
    timing = op_time(make_op("aten::_softmax", flops=0, num_bytes=10**9), AMPERE, CONSTANTS, EXACT)
    assert timing.time_s == pytest.approx(FLOOR_S + 2e-3)
    assert timing.constant == "reduction_fraction"


@pytest.mark.parametrize("name", ["advisor::h2d_copy", "advisor::d2h_copy"])
def test_copies_cross_pcie_at_four_fifths_of_its_rate(name):
    # 12.8 GB over 80 % of 16 GB/s.
    timing = op_time(make_op(name, flops=10**12, num_bytes=128 * 10**8), AMPERE, CONSTANTS, EXACT)
    assert timing.time_s == pytest.approx(FLOOR_S + 1.0)
    assert timing.constant == ""


@pytest.mark.parametrize(
    ("is_causal", "share"), [(True, 0.5), (False, 1.0), (None, 1.0), ("yes", 1.0), (1, 1.0)]
)
def test_a_causal_mask_halves_the_work(is_causal, share):
    op = replace(make_op(FLASH, flops=10**12, num_bytes=0), attributes={"is_causal": is_causal})
    assert seconds(op) == pytest.approx(FLOOR_S + share * 0.2)


def test_a_mask_is_attentions_alone():
    op = replace(make_op(flops=10**12, num_bytes=0), attributes={"is_causal": True})
    assert seconds(op) == pytest.approx(FLOOR_S + 0.2)


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
    for name, kind, fraction in (("aten::mm", "gemm_fraction", 0.5), (CONV, "conv_fraction", 0.25)):
        rate = rate_of(make_op(name, dtype=dtype))
        assert rate.peak_flops_per_s == peak
        assert rate.flops_per_s == pytest.approx(fraction * peak)
        assert rate.constant == f"{kind}.{constant}"
        assert rate.note is None


def test_attention_runs_at_the_share_of_products():
    rate = rate_of(make_op(FLASH, dtype="bfloat16"))
    assert (rate.flops_per_s, rate.constant) == (pytest.approx(40e12), "gemm_fraction.bf16")


def test_recurrent_layers_of_unknown_sizes_get_three_tenths():
    op = make_op(RNN, dtype="float16", flops=12 * 10**12, num_bytes=0)
    rate = rate_of(op)
    assert rate.flops_per_s == pytest.approx(0.3 * 0.5 * 80e12)
    assert rate.constant == "gemm_fraction.fp16"
    assert op_time(op, AMPERE, CONSTANTS, EXACT) == RooflineTime(
        time_s=pytest.approx(FLOOR_S + 1.0), constant="gemm_fraction.fp16"
    )


def test_recurrent_layers_of_known_sizes_get_the_rate_of_products():
    rate = rate_of(make_layers(dtype="float16"))
    assert (rate.flops_per_s, rate.constant) == (pytest.approx(40e12), "gemm_fraction.fp16")


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
    assert steps is not None
    constants = step_constants()["tensor", steps.is_backward]
    return steps_time_s(steps, constants, AMPERE, AMPERE.tensor_flops_per_s["fp16"])


def test_what_recurrent_layers_read_and_write_at_once_counts_where_it_takes_longer():
    op = replace(make_layers(dtype="float16"), bytes=8 * 10**9)
    products = replace(op, bytes=0)
    steps = steps_of(op)
    assert steps is not None
    at_once_s = (op.flops - steps.flops) / 40e12
    assert seconds(op) == pytest.approx(seconds(products) - at_once_s + 0.01)


def test_other_families_compute_on_cuda_cores():
    for name in ("aten::add.Tensor", "aten::_softmax", "aten::embedding"):
        assert rate_of(make_op(name, dtype="bfloat16")).constant == "gemm_fraction.fp32"


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


def test_tf32_without_hardware_is_fp32_in_silence():
    rate = rate_of(make_op(), PASCAL, Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True))
    assert (rate.constant, rate.note) == ("gemm_fraction.fp32", None)


def test_fp16_without_tensor_cores_is_never_slower_than_fp32():
    slow = make_gpu(tensor_flops_per_s={}, vector_flops_per_s={"fp32": 10e12, "fp16": 0.15e12})
    # Halves that are computed in fp32 take what fp32 reaches of its peak.
    kept = rate_of(make_op(dtype="float16"), slow)
    assert (kept.peak_flops_per_s, kept.constant, kept.is_substitute) == (10e12, "gemm_fraction.fp32", True)
    assert kept.note == RatesFrom(of="cuda-cores")
    fast = rate_of(make_op(dtype="float16"), PASCAL)
    assert (fast.peak_flops_per_s, fast.constant) == (20e12, "gemm_fraction.fp16_vector")
    assert fast.note == RatesFrom(of="cuda-cores")


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_what_no_unit_computes_is_emulated_in_fp32_and_said(dtype):
    rate = rate_of(make_op(dtype=dtype), PASCAL)
    assert (rate.peak_flops_per_s, rate.constant) == (10e12, "gemm_fraction.fp32")
    assert rate.note is not None
    assert isinstance(rate.note, RatesFrom)
    assert rate.note.of == "emulated"


def test_tensor_cores_slower_than_cuda_cores_are_not_taken():
    odd = make_gpu(tensor_flops_per_s={"tf32": 8e12})
    precision = Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True)
    assert rate_of(make_op(), odd, precision).peak_flops_per_s == 10e12


def test_matrix_units_for_fp32_count_where_a_gpu_has_them():
    amd = make_gpu(tensor_flops_per_s={"fp32": 40e12})
    assert rate_of(make_op(), amd).peak_flops_per_s == 40e12


def test_fp64_takes_tensor_cores_where_there_are_any():
    rate = rate_of(make_op(dtype="float64"), make_gpu(tensor_flops_per_s={"fp64": 19.5e12}))
    assert rate.peak_flops_per_s == 19.5e12


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
