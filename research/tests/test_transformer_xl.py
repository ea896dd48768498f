"""The base Transformer-XL, by its parameters, its products and its attention."""

import pytest

torch = pytest.importorskip("torch")
from advisor.operators.gemm import GEMM  # noqa: E402 - after torch
from advisor.operators.registry import family_of  # noqa: E402 - after torch
from research.transformer_xl import CUTOFFS, LAYERS, LENGTH, LanguageModel, _shifted, transformer_xl  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_process")]


def test_parameters_are_the_published_192_million():
    with torch.device("meta"):
        count = sum(p.numel() for p in LanguageModel().parameters())
    assert count == pytest.approx(192e6, rel=0.01)


def test_products_by_hand():
    """Twice the tokens are projected, once merged and fed; distances are projected once a batch."""
    batch, unit = 3, 512 * 512
    tokens = batch * LENGTH
    weights = LAYERS * unit * (2 * 3 * tokens + tokens + 2 * 4 * tokens + 2 * LENGTH)
    scores = LAYERS * tokens * 2 * LENGTH * 512 * 3
    words = tokens * 512 * (CUTOFFS[0] + 3 + 0.04 * 20_000 + 0.025 * 160_000 + 0.014 * 67_738)
    trace = transformer_xl(False, batch)
    total = sum(op.flops * op.count for op in trace.ops if family_of(op) is GEMM)
    # Positions and memories need no gradient.
    assert total == pytest.approx(6 * (weights + scores + words), rel=0.1)


def test_autocast_halves_the_operands_of_products():
    trace = transformer_xl(True, 1)
    assert {op.inputs[-1].dtype for op in trace.ops if family_of(op) is GEMM} == {"float16"}


def test_scores_by_distance_are_shifted_to_positions():
    """Query i meets key j at distance i + memory - j, which is column rows - 1 - i + j before the shift."""
    rows, columns = 3, 7
    scores = torch.rand(2, rows, columns)
    shifted = _shifted(scores)
    for i in range(rows):
        for j in range(columns - rows + i + 1):
            assert torch.equal(shifted[:, i, j], scores[:, i, rows - 1 - i + j])
