"""Fitting constants of GPUs: known fractions are found again, and written so that they are read."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

import pytest

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Op
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import Knowledge
from advisor.report.words import sentence
from research.tests.training.values import make_samples
from research.training.constants import fit_constants, render
from research.training.samples import Samples
from tests.unit.predict.learned.values import add, convolution, layer_norm, mm, softmax

T4 = resolve_gpu("T4")
OVERHEAD_S = 20e-6
PEAK = T4.vector_flops_per_s["fp32"]
STREAMS = [add(4096, 2048 + 128 * i) for i in range(25)]
PRODUCTS = [mm(1, 1, 1), *(mm(2048, 2048, 1024 + 64 * i) for i in range(25))]
CONVOLUTIONS = [convolution(1, 1, 1, 1), *(convolution(32 + i, 128, 128, 56) for i in range(25))]


def streamed(ops: Sequence[Op], fraction: float, kind: str, split: str = "train", gpu: str = "T4") -> Samples:
    rate = fraction * load_gpus()[gpu].memory_bytes_per_s
    return make_samples([(gpu, kind, split, OVERHEAD_S + op.bytes / rate) for op in ops], ops)


def computed(ops: Sequence[Op], fraction: float, kind: str, split: str = "train") -> Samples:
    return make_samples([("T4", kind, split, OVERHEAD_S + op.flops / (fraction * PEAK)) for op in ops], ops)


@pytest.mark.parametrize("fraction", [0.3, 0.75, 0.95])
@pytest.mark.parametrize("kind", ["add", "mul", "div", "relu", "gelu", "tanh", "mulu"])
def test_the_share_of_bandwidth_is_found_whatever_the_overhead(kind: str, fraction: float) -> None:
    fitted = fit_constants(streamed(STREAMS, fraction, kind))
    assert fitted == {"T4": {"streaming_fraction": pytest.approx(fraction)}}


@pytest.mark.parametrize("kind", ["softmax", "ln"])
def test_reductions_have_a_share_of_their_own(kind: str) -> None:
    build = softmax if kind == "softmax" else layer_norm
    ops = [build(4096, 3072 + 128 * i) for i in range(25)]
    assert fit_constants(streamed(ops, 0.55, kind)) == {"T4": {"reduction_fraction": pytest.approx(0.55)}}


@pytest.mark.parametrize("fraction", [0.3, 0.8])
@pytest.mark.parametrize(
    ("kind", "name", "ops"),
    [
        ("linear", "gemm_fraction.fp32", PRODUCTS),
        ("bmm", "gemm_fraction.fp32", PRODUCTS),
        ("conv", "conv_fraction.fp32", CONVOLUTIONS),
    ],
)
def test_the_share_of_the_peak_is_found(kind: str, name: str, ops: Sequence[Op], fraction: float) -> None:
    assert fit_constants(computed(ops, fraction, kind)) == {"T4": {name: pytest.approx(fraction, rel=1e-2)}}


def test_convolutions_may_pass_the_peak() -> None:
    fitted = fit_constants(computed(CONVOLUTIONS, 1.4, "conv"))
    assert fitted["T4"]["conv_fraction.fp32"] == pytest.approx(1.4, rel=1e-2)


def test_kinds_and_splits_count_by_their_geometric_mean() -> None:
    parts = [
        streamed(STREAMS, 0.4, "add"),
        streamed(STREAMS, 0.9, "add", "test"),
        streamed(STREAMS * 3, 0.6, "relu"),
    ]
    fitted = fit_constants(Samples.joined(parts))
    assert fitted["T4"]["streaming_fraction"] == pytest.approx((0.4 * 0.9 * 0.6) ** (1 / 3))


def test_gpus_are_fitted_apart() -> None:
    both = Samples.joined([streamed(STREAMS, 0.4, "add"), streamed(STREAMS, 0.8, "add", gpu="P4")])
    assert {gpu: fitted["streaming_fraction"] for gpu, fitted in fit_constants(both).items()} == {
        "T4": pytest.approx(0.4),
        "P4": pytest.approx(0.8),
    }


@pytest.mark.parametrize(
    "samples",
    [
        streamed(STREAMS[:19], 0.5, "add"),
        streamed([add(8, 8)] * 50, 0.5, "add"),
        streamed(STREAMS, 0.5, "embedding"),
        computed([mm(8, 8, 8)] * 50, 0.5, "linear"),
    ],
    ids=["few", "small", "unknown kind", "small products"],
)
def test_too_few_kernels_tell_nothing(samples: Samples) -> None:
    assert fit_constants(samples) == {}


def test_a_wild_row_does_no_harm() -> None:
    samples = streamed(STREAMS, 0.5, "add")
    samples.time_s[3] *= 100
    streaming_fraction = fit_constants(samples)["T4"]["streaming_fraction"]
    assert streaming_fraction == pytest.approx(0.5, rel=0.1)


def test_what_is_written_is_read_back_to_three_digits() -> None:
    fitted = {
        "T4": {"streaming_fraction": 0.71237, "gemm_fraction.fp32": 0.4567},
        "P4": {"reduction_fraction": 0.5},
    }
    tables = tomllib.loads(render(fitted))
    one = constants_for(T4, Knowledge(tables=tables, networks={}))
    assert (one.fractions["streaming_fraction"], one.fractions["gemm_fraction.fp32"]) == (0.712, 0.457)
    assert one.measured == {"streaming_fraction", "gemm_fraction.fp32"}
    other = constants_for(resolve_gpu("P4"), Knowledge(tables=tables, networks={}))
    assert other.fractions["reduction_fraction"] == 0.5


def test_gpus_that_tell_no_constant_are_named_as_measured() -> None:
    fitted = {"T4": {"streaming_fraction": 0.7}}
    knowledge = Knowledge(tables=tomllib.loads(render(fitted, {"T4", "L4"})), networks={})
    constants = constants_for(resolve_gpu("L4"), knowledge)
    assert constants.is_measured
    assert constants.measured == frozenset()
    assert not constants_for(resolve_gpu("A10G"), knowledge).is_measured
    # A GPU without constants is no relative to take a median from; the T4 is of the same power class.
    assert sentence(constants.origin["streaming_fraction"]) == "median of the measured GPUs up to 75 W"
    assert render(fitted, {"T4"}) == render(fitted)


def test_without_a_fit_every_gpu_has_what_is_assumed() -> None:
    text = render({})
    # constants_for wants a table of fitted GPUs, which a fold always gives.
    knowledge = Knowledge(tables={"gpu": {}} | tomllib.loads(text), networks={})
    for gpu in load_gpus().values():
        constants = constants_for(gpu, knowledge)
        assert constants.measured == frozenset()
        assert 0 < constants.fractions["streaming_fraction"] <= 1


def test_the_text_does_not_depend_on_the_order_of_the_rows() -> None:
    samples = Samples.joined([streamed(STREAMS, 0.4, "add"), streamed(STREAMS, 0.8, "add", gpu="P4")])
    turned = Samples.joined([streamed(STREAMS, 0.8, "add", gpu="P4"), streamed(STREAMS, 0.4, "add")])
    assert render(fit_constants(samples)) == render(fit_constants(turned))
