"""GNMT v2 as its description has it."""

import numpy as np
import pytest

from research.networks import GNMT_LENGTH, GNMT_TOKENS

torch = pytest.importorskip("torch")
from advisor.operators.recurrent import steps_of  # noqa: E402 - after torch
from research.gnmt import LENGTH, VOCABULARY, WIDTH, NormalisedAttention, Translator  # noqa: E402
from research.networks import gnmt  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_process")]
BATCH_SIZE = 8
# A layer of d inputs has 4 x 1024 x (d + 1024 + 2) parameters.
BOTH_WAYS, PLAIN, WITH_CONTEXT = 2 * 4096 * 2050, 4096 * 2050, 4096 * 3074


@pytest.fixture(scope="module")
def traces():
    return {amp: gnmt(amp, BATCH_SIZE) for amp in (False, True)}


def recurrent(trace, name="aten::_cudnn_rnn"):
    return [op for op in trace.ops for _ in range(op.count) if op.name == name]


def test_parameters_are_those_of_the_description():
    with torch.device("meta"):
        model = Translator(WIDTH, VOCABULARY)
    count = {name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()}
    assert count["embed"] == VOCABULARY * 1024
    assert count["encoder"] == BOTH_WAYS + WITH_CONTEXT + 2 * PLAIN
    attention = 2 * 1024**2 + 2 * 1024 + 1
    assert count["decoder"] == PLAIN + attention + 3 * WITH_CONTEXT
    assert count["classify"] == VOCABULARY * 1025


def test_eight_calls_of_recurrent_layers_one_of_them_both_ways(traces):
    for trace in traces.values():
        forward, backward = recurrent(trace), recurrent(trace, "aten::_cudnn_rnn_backward")
        assert len(forward) == len(backward) == 8
        assert sum(op.attributes["bidirectional"] for op in forward) == 1
        assert sorted(op.inputs[0].shape[-1] for op in forward) == [1024] * 4 + [2048] * 4
        for op in (*forward, *backward):
            steps = steps_of(op)
            passes = 2 if op.attributes["bidirectional"] else 1
            assert steps.num_by_rows == {BATCH_SIZE: LENGTH * passes}


def test_apex_halves_the_layers_and_not_the_logs_of_probabilities(traces):
    for amp, trace in traces.items():
        assert {op.inputs[0].dtype for op in recurrent(trace)} == {"float16" if amp else "float32"}
        (logs,) = (op for op in trace.ops if op.name == "aten::_log_softmax")
        assert (logs.inputs[0].dtype, logs.outputs[0].dtype) == ("float16" if amp else "float32", "float32")


def test_products_are_those_of_the_published_throughput(traces):
    """By hand: twice the weights that meet each token, three times for forward and backward."""
    layers = BOTH_WAYS + 4 * WITH_CONTEXT + 3 * PLAIN - 9 * 2 * 4096
    attended = 2 * 1024**2 + LENGTH * 2 * 1024
    tokens = BATCH_SIZE * LENGTH
    expected = 6 * tokens * (layers + VOCABULARY * 1024 + attended)
    names = (
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
        "aten::mv",
        "aten::_cudnn_rnn",
        "aten::_cudnn_rnn_backward",
    )
    total = sum(op.flops * op.count for op in traces[False].ops if op.name in names)
    assert total == pytest.approx(expected, rel=0.01)


def test_attention_is_additive_over_all_pairs():
    torch.manual_seed(0)
    attention = NormalisedAttention(4)
    queries, keys = torch.rand(2, 3, 4), torch.rand(2, 5, 4)
    weights = attention(queries, keys)
    vector = attention.scale * attention.scores / attention.scores.norm()
    for sample in range(2):
        for query in range(3):
            pairs = [attention.query(queries[sample, query]) + attention.key(key) for key in keys[sample]]
            scores = torch.stack([(vector * torch.tanh(pair + attention.bias)).sum() for pair in pairs])
            context = (scores.softmax(0)[:, None] * keys[sample]).sum(0)
            assert torch.allclose(weights[sample, query], context, atol=1e-6)


@pytest.mark.parametrize(("median", "sigma"), [(20, 0.6), (22, 0.7), (26, 0.5), (28, 0.6)])
def test_of_a_padded_batch_four_fifths_are_words(median: float, sigma: float) -> None:
    """Pairs of at most 50 tokens, in batches of one of five buckets of the longer sentence's length."""
    draw = np.random.default_rng(0)
    source = median * np.exp(sigma * draw.normal(size=100_000))
    pairs = 2 + np.stack([source, source * np.exp(0.2 * draw.normal(size=source.size))], 1).astype(int)
    pairs = pairs[pairs.max(1) <= 50]
    buckets = [pairs[np.minimum(pairs.max(1) // 10, 4) == bucket] for bucket in range(5)]
    padded = sum(len(own) * draw.choice(own, 256).max(0).sum() for own in buckets)
    assert pairs.sum() / padded == pytest.approx(GNMT_TOKENS / (2 * GNMT_LENGTH), abs=0.035)
