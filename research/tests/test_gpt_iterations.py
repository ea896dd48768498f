"""Iterations of GPT on many GPUs: parts put together by hand, and what is published beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Phase
from advisor.predict.exchange.collective_time import collective_time
from research.scaling import gpt_iterations
from research.scaling.gpt_iterations import Constants, Iteration, Parts, errors, fitted, parts_of, predicted_s
from research.scaling.megatron import LayerShape
from tests.shared import SHARED, needs_shared
from tests.unit.predict.split.transformers import transformer

SHAPE = LayerShape(hidden=1024, heads=16, length=1024, batch=4, ranks=2)
ONE = Iteration(
    tensor=2, data=4, pipeline=2, num_gpus=16, micro_batches=8, num_layers=24, shape=SHAPE, measured_s=1.0
)
PARTS = Parts(
    kernels_s=0.002,
    exchanges_s=0.001,
    logits_s=0.01,
    sends_s=0.003,
    gradients_s=0.05,
    step_s=0.02,
    unfitted_s=0.9,
)
PLAIN = Constants(kernels=1.0, host_s=0.0, exchanges=1.0, logits=1.0)


def test_a_pipeline_takes_a_turn_more_for_each_stage_but_the_first() -> None:
    stage_s = 12 * (0.002 + 0.001)
    assert predicted_s(ONE, PARTS, PLAIN) == pytest.approx(9 * (stage_s + 0.003) + 8 * 0.01 + 0.05 + 0.02)


def test_one_stage_sends_nothing() -> None:
    alone = replace(ONE, pipeline=1)
    assert predicted_s(alone, PARTS, PLAIN) == pytest.approx(8 * 24 * 0.003 + 8 * 0.01 + 0.07)


def test_a_layer_takes_no_less_than_the_host() -> None:
    slow_host = replace(PLAIN, host_s=0.004)
    added_s = predicted_s(ONE, PARTS, slow_host) - predicted_s(ONE, PARTS, PLAIN)
    assert added_s == pytest.approx(9 * 12 * 0.001)


def test_constants_are_fitted_to_the_rows_that_fit_alone() -> None:
    truth = Constants(kernels=1.3, host_s=0.003, exchanges=2, logits=1)
    rows = []
    for micro_batches in range(1, 40):
        iteration = replace(ONE, micro_batches=micro_batches)
        seconds = predicted_s(iteration, PARTS, truth) if iteration.is_fitted else 1e-6
        rows.append((replace(iteration, measured_s=seconds), PARTS))
    assert 5 <= sum(iteration.is_fitted for iteration, _ in rows) <= 22
    found = fitted(rows)
    assert max(errors([row for row in rows if row[0].is_fitted], found)) < 0.01


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One layer that nobody has to profile: heads of 64, 4 sequences of 1,024 tokens, no words."""
    one = transformer(layers=1, heads=16, length=1024, words=1)
    ops = tuple(op for op in one.ops if op.phase is not Phase.OPTIMIZER and 1 not in op.outputs[0].shape)
    monkeypatch.setattr(gpt_iterations, "_layer", lambda _shape, _folder: replace(one, ops=ops))


@pytest.mark.usefixtures("layers")
def test_parts_are_those_of_the_product() -> None:
    gpu, parts = resolve_gpu(gpt_iterations.GPU), parts_of(ONE, None)
    stream_bytes = 2 * 1024 * 4 * 1024
    tensor = replace(ONE.layout, gpus_per_node=2, num_nodes=1)
    reduce_s = collective_time("all_reduce", stream_bytes, tensor, gpu).seconds
    # Of two ranks each sends a half, and gathers the other's in its node.
    send_s = collective_time("send", stream_bytes / 2, ONE.layout, gpu).seconds
    send_s += collective_time("all_gather", stream_bytes, tensor, gpu).seconds
    assert parts.exchanges_s == pytest.approx(4 * reduce_s)
    assert parts.sends_s == pytest.approx(2 * send_s)
    assert parts.gradients_s > 0
    # Twice the GPUs for a layer, and no less than half of its time each.
    wider = parts_of(replace(ONE, tensor=4, data=2, shape=replace(SHAPE, ranks=4)), None)
    assert parts.kernels_s / 2 <= wider.kernels_s < parts.kernels_s


@pytest.mark.usefixtures("layers")
def test_without_constants_the_parts_make_the_plan() -> None:
    parts = parts_of(ONE, None)
    # But for stragglers, what hides, and words that are all-reduced twice.
    assert parts.unfitted_s == pytest.approx(predicted_s(ONE, parts, PLAIN), rel=0.15)
    assert errors([(replace(ONE, measured_s=parts.unfitted_s), parts)], None) == [0.0]


@needs_shared
def test_all_of_the_table_is_read() -> None:
    rows = list(gpt_iterations.read(SHARED / "measurements" / "published"))
    assert len(rows) == 1549
    assert Counter(row.num_gpus > 8 for row in rows) == {False: 1440, True: 109}
    assert 0.25 < sum(row.is_fitted for row in rows) / len(rows) < 0.4
    assert all(row.tensor * row.data * row.pipeline == row.num_gpus for row in rows)
