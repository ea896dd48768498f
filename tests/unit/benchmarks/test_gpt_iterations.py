"""Iterations of GPT on many GPUs: parts put together by hand, and what is published beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from advisor.core.values import Layout
from advisor.predict.exchange.collective_time import collective_time
from benchmarks.scaling import gpt2_large, gpt_iterations
from benchmarks.scaling.gpt_iterations import (
    Constants,
    Iteration,
    Parts,
    errors,
    fitted,
    parts_of,
    predicted_s,
)
from benchmarks.scaling.megatron import LayerShape
from tests.builders import make_op
from tests.shared import SHARED, needs_shared

SHAPE = LayerShape(hidden=1024, heads=16, length=1024, batch=4, ranks=2)
ONE = Iteration(
    tensor=2, data=4, pipeline=2, num_gpus=16, micro_batches=8, num_layers=24, shape=SHAPE, measured_s=1.0
)
PARTS = Parts(kernels_s=0.002, exchanges_s=0.001, logits_s=0.01, sends_s=0.003, gradients_s=0.05, step_s=0.02)
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


def test_ranks_of_a_tensor_stay_in_a_node_and_copies_share_its_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, float, Layout]] = []
    real = collective_time

    def spied(kind: str, num_bytes: float, layout: Layout, gpu: object) -> object:
        asked.append((kind, num_bytes, layout))
        return real(kind, num_bytes, layout, gpu)  # type: ignore[arg-type]

    monkeypatch.setattr(gpt_iterations, "collective_time", spied)
    monkeypatch.setattr(gpt_iterations, "_kernels_s", lambda _: 0.001)
    parts_of(ONE)
    states, sent, gradients = asked
    assert states[1] == sent[1] == 2 * 1024 * 4 * 1024
    assert (states[2].gpus_per_node, states[2].num_nodes) == (2, 1)
    # Four copies, two GPUs apart, fill a node of eight.
    assert (gradients[2].gpus_per_node, gradients[2].num_nodes) == (4, 1)
    asked.clear()
    parts_of(replace(ONE, tensor=8, data=2))
    assert (asked[2][2].gpus_per_node, asked[2][2].num_nodes) == (1, 2)
    assert asked[2][1] == pytest.approx(2 * (12 * 1024**2 * 12 + 51_200 * 1024))


def test_a_tensor_rank_has_a_quarter_of_the_vocabulary() -> None:
    logits = make_op(flops=4 * 10**9, num_bytes=4 * 10**6)
    shape = (4096, 50257)
    op = replace(logits, outputs=(replace(logits.outputs[0], shape=shape),))
    assert gpt2_large._has_words(op)
    assert not gpt2_large._has_words(logits)
    part = gpt2_large._split(op)
    assert (part.flops, part.bytes, part.outputs[0].shape) == (10**9, 10**6, (4096, 50257 // 4))


@needs_shared
def test_all_of_the_table_is_read() -> None:
    rows = list(gpt_iterations.read(SHARED / "measurements" / "published"))
    assert len(rows) == 1549
    assert Counter(row.num_gpus > 8 for row in rows) == {False: 1440, True: 109}
    assert 0.25 < sum(row.is_fitted for row in rows) / len(rows) < 0.4
    assert all(row.tensor * row.data * row.pipeline == row.num_gpus for row in rows)
