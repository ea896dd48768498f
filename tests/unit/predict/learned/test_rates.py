"""Several networks of one family: which of them counts at which rate, and what its penalties are of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Op, Precision
from advisor.operators import registry
from advisor.operators.family import BoardInputs, Family, Learned, rate_for
from advisor.operators.gemm import GEMM
from advisor.operators.norm import NORM
from advisor.operators.registry import FAMILIES, joined
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import Knowledge, LearnedNetwork
from advisor.predict.learned import SIGMA_DAY, learned_times, shape_of
from advisor.predict.roofline import KERNEL_FLOOR_S
from tests.unit.predict.learned.values import EXACT, TABLES, mm, softmax

V100, A100 = resolve_gpu("V100-PCIE-32GB"), resolve_gpu("A100-PCIE-40GB")
MI300X, P100 = resolve_gpu("MI300X"), resolve_gpu("P100-PCIE-16GB")
TF32 = Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True)


def _columns(op: Op) -> tuple[float, ...]:
    return (float(op.inputs[-1].shape[-1]),)


def _waves(calls: NDArray[np.float32], gpu: GpuSpec) -> NDArray[np.float32]:
    """One number: columns over SMs."""
    return calls[:, :1] / np.float32(gpu.num_sms)


HALF = Learned(
    name="gemm of halves", names=frozenset({"mm"}), num_features=1, features=_columns, counts_flops=True,
    steps=1, units=1, rates=frozenset({"fp16", "bf16"}), is_of_fitted=True,
    measured_by=frozenset({"gemm_fraction.bf16"}), unseen_sigma=0.4,
    board=BoardInputs(num_features=1, features=_waves),
)  # fmt: skip
HALF_NORM = Learned(
    name="norm of halves", names=frozenset({"_softmax"}), num_features=1, features=_columns,
    counts_flops=False, steps=1, rates=frozenset({"fp16"}),
)  # fmt: skip


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    def with_halves(family: Family) -> Family:
        own = {GEMM.word: HALF, NORM.word: HALF_NORM}.get(family.word)
        return replace(family, learned=(own, *family.learned)) if own else family

    monkeypatch.setattr(registry, "_ROWS", joined(tuple(map(with_halves, FAMILIES))))
    registry._family.cache_clear()
    yield
    registry._family.cache_clear()


def linear(slope: float, num_features: int = 2) -> LearnedNetwork:
    """One member whose log-penalty of compute is nearly ``slope`` times its last feature; memory is free."""
    first = np.zeros((1, num_features, 1), np.float32)
    first[0, -1, 0] = 1.0
    last = np.array([[[slope, 0.0, 0.0]]], np.float32)
    return LearnedNetwork(
        low=np.full(num_features, -1e6, np.float32),
        high=np.full(num_features, 1e6, np.float32),
        mean=np.zeros(num_features, np.float32),
        scale=np.ones(num_features, np.float32),
        # SiLU is the identity far above zero.
        weights=(first, np.ones((1, 1, 1), np.float32), last),
        biases=(
            np.full((1, 1, 1), 100.0, np.float32),
            np.zeros((1, 1, 1), np.float32),
            np.array([[[-100.0 * slope, -4.0, -6.0]]], np.float32),
        ),
    )


def knowledge(**fitted: object) -> Knowledge:
    networks = {"gemm of halves": linear(0.1), "norm of halves": linear(0.0, 3)}
    return Knowledge(tables={**TABLES, "gpu": {**TABLES["gpu"], **fitted}}, networks=networks)


def half(op: Op, dtype: str = "float16") -> Op:
    return replace(op, inputs=tuple(replace(tensor, dtype=dtype) for tensor in op.inputs))


def seconds(op: Op, gpu: GpuSpec, precision: Precision = EXACT, known: Knowledge | None = None) -> float:
    known = known or knowledge()
    return float(learned_times([op], gpu, constants_for(gpu, known), precision, known).time_s[0])


PRODUCT = mm(4096, 1080, 4096)


def test_the_networks_of_halves_know_halves_alone():
    assert math.isnan(seconds(PRODUCT, A100))
    assert math.isnan(seconds(PRODUCT, A100, TF32))
    assert seconds(half(PRODUCT), A100) > 0
    assert seconds(half(PRODUCT, "bfloat16"), A100) > 0


def test_what_a_gpu_has_to_emulate_is_not_known():
    assert math.isnan(seconds(half(PRODUCT, "bfloat16"), V100))
    assert math.isnan(seconds(half(PRODUCT), P100))  # fp16 without tensor cores


def test_kernels_of_one_vendor_tell_nothing_of_another():
    assert math.isnan(seconds(half(PRODUCT), MI300X))


@pytest.mark.parametrize("gpu", [V100, A100], ids=lambda gpu: gpu.name)
def test_time_is_of_the_fitted_rate_with_the_penalty_of_its_waves(gpu):
    constants = constants_for(gpu, knowledge())
    reached = constants.fractions["gemm_fraction.fp16"] * constants.supply
    compute_s = PRODUCT.flops / (reached * gpu.tensor_flops_per_s["fp16"])
    memory_s = PRODUCT.bytes / gpu.memory_bytes_per_s * math.exp(-4)
    expected = KERNEL_FLOOR_S + compute_s * math.exp(0.1 * 1080 / gpu.num_sms) + memory_s
    assert seconds(half(PRODUCT), gpu) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("table", "sigma"),
    [
        ({"gemm_fraction": {"bf16": 0.7}}, SIGMA_DAY),
        ({}, SIGMA_DAY),  # learned from, though its kernels told no constant
        ({"gemm_fraction": {"fp32": 0.7}}, math.hypot(SIGMA_DAY, 0.4)),
    ],
)
def test_a_gpu_is_as_sure_as_what_was_measured_on_it(table, sigma):
    known = knowledge(**{A100.name: table})
    times = learned_times([half(PRODUCT)], A100, constants_for(A100, known), EXACT, known)
    assert times.sigma[0] == pytest.approx(sigma, rel=1e-3)


def test_of_several_networks_the_first_that_knows_the_dtype_counts():
    known = replace(knowledge(), networks={"norm": linear(0.0, 9), "norm of halves": linear(0.0, 3)})
    op = softmax(512, 4096)
    of_norm = replace(known, networks={"norm": known.networks["norm"]})
    assert seconds(op, A100, known=known) == seconds(op, A100, known=of_norm)
    of_halves = replace(known, networks={"norm of halves": known.networks["norm of halves"]})
    assert math.isnan(seconds(op, A100, known=of_halves))
    assert seconds(half(op), A100, known=known) == seconds(half(op), A100, known=of_halves)


def test_the_numbers_are_those_of_the_network_that_knows_the_rate():
    for rate, network in (("fp32", "gemm"), ("bf16", "gemm of halves")):
        shape = shape_of(PRODUCT, rate)
        assert shape.network == network
    assert shape_of(PRODUCT, "fp8") is None


H100, TENSOR = resolve_gpu("H100-SXM-80GB"), Knowledge(tables=TABLES, networks={})


def test_a_gpu_under_load_keeps_a_part_of_the_rate_of_bursts():
    hopper = dict(TABLES["assumed"][H100.architecture])
    del hopper["sustained_clock"]
    cool = replace(TENSOR, tables={**TABLES, "assumed": {**TABLES["assumed"], H100.architecture: hopper}})
    constants, bursts = (constants_for(H100, known) for known in (TENSOR, cool))
    assert 0.8 < constants.sustained_clock < 0.95
    assert bursts.sustained_clock == 1.0
    for wanted, peak in (
        ("bf16", H100.tensor_flops_per_s["bf16"]),
        ("fp32", H100.vector_flops_per_s["fp32"]),
    ):
        load, burst = (rate_for(wanted, GEMM, H100, known) for known in (constants, bursts))
        assert load.flops_per_s == pytest.approx(constants.sustained_clock * burst.flops_per_s)
        assert burst.peak_flops_per_s == peak


@pytest.mark.parametrize("gpu", [V100, A100, P100], ids=lambda gpu: gpu.name)
def test_gpus_whose_kernels_were_fitted_under_load_keep_their_rates(gpu):
    assert constants_for(gpu, TENSOR).sustained_clock == 1.0


def test_tf32_is_less_sure_than_what_was_measured():
    known = replace(knowledge(), networks={"tensor_gemm": linear(0.0, 37)})
    half_sigma, tf32_sigma = (
        learned_times([op], H100, constants_for(H100, known), precision, known).sigma[0]
        for op, precision in ((replace(PRODUCT, inputs=half(PRODUCT).inputs, name="aten::bmm"), EXACT),
                              (replace(PRODUCT, name="aten::bmm"), TF32))
    )  # fmt: skip
    assert tf32_sigma**2 == pytest.approx(half_sigma**2 + 0.15**2, rel=1e-3)


def test_a_calibration_leaves_what_is_a_call_s_own():
    known, gpu = replace(knowledge(), networks={"tensor_gemm": linear(0.0, 37)}), resolve_gpu("L4")
    product = replace(PRODUCT, inputs=half(PRODUCT).inputs, name="aten::bmm")
    shares: list[dict[str, float]] = [{}, {"tensor_gemm": 0.9}]
    seen, calibrated = (
        learned_times([product], gpu, replace(constants_for(gpu, known), learned_share=share), EXACT, known)
        for share in shares
    )
    assert calibrated.sigma < seen.sigma
    assert np.asarray(calibrated.own_sigma) == pytest.approx(np.asarray(seen.own_sigma))
