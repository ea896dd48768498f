"""Training on tables small enough for a test: what it learns, and that a seed gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from advisor.operators.registry import rows
from advisor.predict.knowledge import OUTPUTS, LearnedNetwork, read_networks, write_networks

torch = pytest.importorskip("torch")
from research.training.fit import Table, fit  # noqa: E402 - it needs torch
from research.training.overhead import EVENT_SHARE  # noqa: E402

pytestmark = pytest.mark.torch
ROWS, UNITS, MEMBERS = 300, 96, 4
NUM_BOARD = rows().network["pointwise"][1].board.num_features
NUM_FEATURES = rows().network["pointwise"][1].num_features + NUM_BOARD


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def make_table(compute: float, memory: float, *, compute_share: float, floor_s: float = 1e-6) -> Table:
    """Calls from 0.1 to 100 ms that take ``exp(compute)`` and ``exp(memory)`` of their roofs."""
    rng = np.random.default_rng(0)
    work_s = np.exp(rng.uniform(math.log(1e-4), math.log(0.1), ROWS))
    compute_s, memory_s = compute_share * work_s, (1 - compute_share) * work_s
    return Table(
        features=rng.standard_normal((ROWS, NUM_FEATURES)).astype(np.float32),
        num_board=NUM_BOARD,
        compute_s=compute_s,
        memory_s=memory_s,
        floor_s=np.full(ROWS, floor_s),
        event_share=np.full(ROWS, EVENT_SHARE),
        time_s=compute_s * math.exp(compute) + memory_s * math.exp(memory),
        weight=np.ones(ROWS),
    )


def trained(table: Table, *, seed: int = 0, steps: int = 200, board_noise: float = 0.0) -> LearnedNetwork:
    return fit(
        table,
        seed=seed,
        steps=steps,
        units=UNITS,
        members=MEMBERS,
        board_noise=board_noise,
        say=lambda _text: None,
    )


def factors(network: LearnedNetwork, table: Table, which: int) -> np.ndarray:
    return np.exp(network.outputs(table.features)[..., which])


@pytest.mark.parametrize("penalty", [-0.3, 0.0, 0.8])
def test_a_constant_efficiency_of_compute_is_learned(penalty: float) -> None:
    table = make_table(penalty, 0.0, compute_share=1.0)
    efficiency = factors(trained(table), table, 0)
    assert np.median(efficiency) == pytest.approx(math.exp(penalty), rel=0.05)
    assert np.quantile(np.abs(efficiency / math.exp(penalty) - 1), 0.9) < 0.1


def test_a_constant_efficiency_of_memory_is_learned() -> None:
    table = make_table(0.0, 0.5, compute_share=0.0)
    efficiency = factors(trained(table), table, 1)
    assert np.quantile(np.abs(efficiency / math.exp(0.5) - 1), 0.9) < 0.1


def test_what_the_floor_hides_is_not_held_against_the_kernel() -> None:
    table = make_table(0.4, 0.0, compute_share=1.0, floor_s=2e-4)
    seen = np.maximum(table.floor_s, 0.45 * table.floor_s + table.time_s)
    hidden = Table(**{name: getattr(table, name) for name in Table.__slots__} | {"time_s": seen})
    large = table.compute_s > 1e-3
    efficiency = factors(trained(hidden), table, 0)[:, large]
    assert np.median(efficiency) == pytest.approx(math.exp(0.4), rel=0.05)


def test_a_launch_that_is_measured_with_the_kernel_is_not_held_against_it() -> None:
    table = make_table(0.4, 0.0, compute_share=1.0, floor_s=2e-4)
    facts = {"time_s": table.floor_s + table.time_s, "event_share": np.ones(ROWS)}
    launched = Table(**{name: getattr(table, name) for name in Table.__slots__} | facts)
    assert np.median(factors(trained(launched), table, 0)) == pytest.approx(math.exp(0.4), rel=0.05)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    table = make_table(0.2, 0.3, compute_share=0.5)

    def payload(seed: int) -> bytes:
        path = tmp_path / "learned.npz"
        write_networks({"pointwise": trained(table, seed=seed, steps=20)}, path)
        return path.read_bytes()

    assert payload(0) == payload(0)
    assert payload(0) != payload(1)


def test_networks_are_as_they_ship(tmp_path: Path) -> None:
    table = make_table(0.2, 0.3, compute_share=0.5)
    network = trained(table, steps=5)
    assert [w.shape for w in network.weights] == [
        (MEMBERS, NUM_FEATURES, UNITS),
        (MEMBERS, UNITS, UNITS),
        (MEMBERS, UNITS, OUTPUTS),
    ]
    assert [b.shape for b in network.biases] == [
        (MEMBERS, 1, UNITS),
        (MEMBERS, 1, UNITS),
        (MEMBERS, 1, OUTPUTS),
    ]
    write_networks({"pointwise": network}, tmp_path / "learned.npz")
    read = read_networks(tmp_path / "learned.npz")["pointwise"]
    assert (read.outputs(table.features) == network.outputs(table.features)).all()


def test_noise_on_the_board_makes_boards_near_each_other_alike() -> None:
    """Two boards, one three times as slow; between them what is learned changes less suddenly with noise."""
    table = make_table(0.0, 0.0, compute_share=1.0)
    board = np.sign(table.features[:, -1])
    features = np.concatenate([table.features[:, :-1], board[:, None]], axis=1)
    slow = replace(table, features=features, time_s=table.time_s * np.where(board > 0, 3.0, 1.0))

    def step(board_noise: float) -> float:
        network = trained(slow, steps=300, board_noise=board_noise)
        near = np.zeros((2, NUM_FEATURES), np.float32)
        near[:, -1] = (0.7, 1.0)
        outputs = network.outputs(near)[..., 0].mean(axis=0)
        return abs(float(outputs[1] - outputs[0]))

    assert slow.features.tolist() == features.tolist()  # the caller's table stays as it was
    assert step(0.5) < step(0.0)


def test_the_range_and_the_scale_are_those_of_the_table() -> None:
    table = make_table(0.2, 0.3, compute_share=0.5)
    network = trained(table, steps=1)
    assert (network.low == table.features.min(axis=0)).all()
    assert (network.high == table.features.max(axis=0)).all()
    assert network.mean == pytest.approx(table.features.mean(axis=0), abs=1e-6)
    assert network.scale == pytest.approx(table.features.std(axis=0), rel=1e-4)


def test_a_feature_that_never_changes_does_no_harm() -> None:
    table = make_table(0.4, 0.0, compute_share=1.0)
    table.features[:, 2] = 7.0
    network = trained(table, steps=50)
    elsewhere = table.features.copy()
    elsewhere[:, 2] = 1e6
    assert np.isfinite(network.outputs(table.features)).all()
    assert (network.outputs(elsewhere) == network.outputs(table.features)).all()


def test_members_start_apart() -> None:
    network = trained(make_table(0.2, 0.3, compute_share=0.5), steps=1)
    assert len({weight.tobytes() for weight in network.weights[0]}) == MEMBERS


def test_calls_without_weight_are_not_learned_from() -> None:
    right, wrong = make_table(0.4, 0.0, compute_share=1.0), make_table(1.5, 0.0, compute_share=1.0)
    half = np.arange(ROWS) < ROWS // 2
    mixed = Table(
        features=right.features,
        num_board=right.num_board,
        compute_s=right.compute_s,
        memory_s=right.memory_s,
        floor_s=right.floor_s,
        event_share=right.event_share,
        time_s=np.where(half, right.time_s, wrong.time_s),
        weight=np.where(half, 1.0, 0.0),
    )
    efficiency = factors(trained(mixed), right, 0)
    assert np.median(efficiency) == pytest.approx(math.exp(0.4), rel=0.1)


@pytest.mark.parametrize(("steps", "times"), [(1, 1), (5, 5), (20, 10)])
def test_the_loss_is_told_ten_times_or_at_each_step(steps: int, times: int) -> None:
    messages: list[str] = []
    fit(
        make_table(0.0, 0.0, compute_share=0.5),
        seed=0,
        steps=steps,
        units=UNITS,
        members=MEMBERS,
        board_noise=0.0,
        say=messages.append,
    )
    assert len(messages) == times
    assert messages[-1].startswith(f"step {steps} of {steps}: loss ")
