"""The big Transformer, by its parameters and products."""

import pytest

torch = pytest.importorskip("torch")
from advisor.core.values import Phase  # noqa: E402
from advisor.operators.gemm import GEMM  # noqa: E402 - after torch
from advisor.operators.registry import family_of  # noqa: E402 - after torch
from research.translation import LENGTH, VOCABULARY, Transformer, transformer  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_process")]
# In units of 1024 x 1024: attention 4, feed-forward 8; a layer of the decoder attends twice.
LAYERS = (6 * 12 + 6 * 16) * 1024**2


def product_flops(trace):
    return sum(op.flops * op.count for op in trace.ops if family_of(op) is GEMM)


def test_parameters_are_those_of_the_paper():
    with torch.device("meta"):
        model = Transformer()
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(LAYERS + VOCABULARY * 1024, rel=2e-3)


def test_products_are_three_times_the_weights_of_each_token():
    tokens = 4 * LENGTH
    trace = transformer(False, tokens)
    assert product_flops(trace) == pytest.approx(6 * tokens * (LAYERS + VOCABULARY * 1024), rel=0.01)
    assert trace.batch_size == tokens
    assert [op for op in trace.ops if op.phase is Phase.OPTIMIZER]
    assert trace.precision.amp_dtype is None


def test_autocast_halves_the_operands_of_products():
    trace = transformer(True, 2 * LENGTH)
    assert {op.inputs[-1].dtype for op in trace.ops if family_of(op) is GEMM} == {"float16"}
