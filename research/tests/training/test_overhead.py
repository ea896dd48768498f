"""Floors of measurements, and what a kernel measures above them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.predict.roofline import KERNEL_FLOOR_S
from research.tests.training.values import make_samples
from research.training.overhead import EVENT_SHARE, event_shares, floors_of, observed_s

SECONDS = st.floats(0, 10)
Row = tuple[str, str, str, float]


def rows(gpu: str, kind: str, shortest_s: float, split: str = "train") -> list[Row]:
    """A hundred calls, the first the shortest."""
    return [(gpu, kind, split, shortest_s * (1 + i / 10)) for i in range(100)]


def small(gpu: str, shortest_s: float = 30e-6) -> list[Row]:
    return [row for kind in ("add", "mul", "relu") for row in rows(gpu, kind, shortest_s)]


def test_a_floor_is_the_shortest_call_of_a_gpu_and_kind() -> None:
    floors = floors_of(make_samples([*rows("T4", "add", 30e-6), *rows("T4", "mul", 40e-6)]))
    assert floors == {
        ("T4", "add"): pytest.approx(30e-6, rel=0.06),
        ("T4", "mul"): pytest.approx(40e-6, rel=0.06),
    }


def test_a_floor_is_what_calls_near_the_shortest_usually_take() -> None:
    times_s = [30e-6, *[31e-6] * 5, 32e-6, *[60e-6] * 90]
    floors = floors_of(make_samples([("T4", "add", "train", time_s) for time_s in times_s]))
    assert floors["T4", "add"] == 31e-6


def test_one_call_that_is_too_short_is_no_floor() -> None:
    many = [("T4", "add", "train", 30e-6)] * 999
    floors = floors_of(make_samples([("T4", "add", "train", 1e-9), *many]))
    assert floors["T4", "add"] == pytest.approx(30e-6)


def test_a_kind_of_large_calls_has_no_floor_of_its_own() -> None:
    floors = floors_of(make_samples([*small("T4"), *rows("T4", "conv", 5e-3)]))
    assert 30e-6 <= floors["T4", "conv"] <= 2.1 * 30e-6


def test_the_test_split_tells_nothing() -> None:
    train = small("T4")
    without = floors_of(make_samples(train))
    shorter = rows("T4", "add", 1e-6, "test")
    assert floors_of(make_samples([*train, *shorter])) == without


def test_a_kind_without_training_gets_the_floor_of_its_gpu() -> None:
    floors = floors_of(make_samples([*small("T4"), *rows("T4", "bmm", 5e-3, "test")]))
    assert floors["T4", "bmm"] == pytest.approx(30e-6, rel=0.06)


def test_a_gpu_without_training_gets_the_floor_of_the_others() -> None:
    known = [*small("T4", 20e-6), *small("P4", 30e-6), *small("A100-PCIE-40GB", 40e-6)]
    floors = floors_of(make_samples([*known, *rows("V100-PCIE-32GB", "add", 9e-3, "test")]))
    assert floors["V100-PCIE-32GB", "add"] == pytest.approx(30e-6, rel=0.06)


def test_without_any_training_there_are_no_floors() -> None:
    assert floors_of(make_samples(rows("T4", "add", 30e-6, "test"))) == {("T4", "add"): 0.0}


@pytest.mark.parametrize("recorded_s", [1e-9, 3e-6, 1.0])
def test_recordings_are_timed_without_the_host_and_tell_nothing_of_it(recorded_s: float) -> None:
    host = [*small("T4"), *rows("T4", "conv", 5e-3), *rows("P4", "add", 9e-3, "test")]
    recorded = [*rows("L4", "recorded add", recorded_s), *rows("T4", "recorded mm", recorded_s)]
    floors = floors_of(make_samples([*recorded, *host]))
    own = {("L4", "recorded add"): KERNEL_FLOOR_S, ("T4", "recorded mm"): KERNEL_FLOOR_S}
    assert floors == floors_of(make_samples(host)) | own


def test_recordings_alone_have_their_launches() -> None:
    samples = make_samples(rows("L4", "recorded add", 1e-3))
    assert floors_of(samples) == {("L4", "recorded add"): KERNEL_FLOOR_S}
    assert event_shares(samples).tolist() == [1.0] * 100


def test_every_gpu_and_kind_has_a_floor() -> None:
    samples = make_samples([*small("T4"), *rows("P4", "conv", 1e-3), *rows("P4", "ln", 1e-3, "test")])
    pairs = set(zip(samples.gpus.tolist(), samples.kinds.tolist(), strict=True))
    assert floors_of(samples).keys() == pairs


@given(st.lists(st.floats(1e-7, 1e-2), min_size=1, max_size=20))
def test_a_floor_is_never_far_above_the_shortest_calls(times_s: list[float]) -> None:
    floors = floors_of(make_samples([("T4", "add", "train", time_s) for time_s in times_s]))
    assert min(times_s) <= floors["T4", "add"] <= 1.1 * np.quantile(times_s, 0.005) * (1 + 1e-12)


@given(SECONDS, SECONDS, SECONDS)
def test_what_is_observed_grows_with_the_kernel_and_the_floor(
    kernel_s: float, floor_s: float, more: float
) -> None:
    base = seen(kernel_s, floor_s)
    assert base >= max(kernel_s, floor_s) * (1 - 1e-9) - 1e-15
    assert base <= (kernel_s + floor_s) * (1 + 1e-9) + 1e-15
    assert seen(kernel_s + more, floor_s) >= base
    assert seen(kernel_s, floor_s + more) >= base


def seen(kernel_s: float, floor_s: float) -> float:
    """What is observed of a launch and its kernel."""
    return float(observed_s(np.array([KERNEL_FLOOR_S + kernel_s]), np.array([floor_s]))[0])


@given(st.floats(1e-7, 1e-3))
def test_a_kernel_without_a_floor_is_seen_as_it_is(kernel_s: float) -> None:
    assert seen(kernel_s, 0.0) == pytest.approx(kernel_s)


def test_small_kernels_hide_below_the_floor_and_large_ones_add_their_events() -> None:
    floor_s = 30e-6
    edge_s = (1 - EVENT_SHARE) * floor_s
    times_seen = [seen(kernel_s, floor_s) for kernel_s in (0.0, edge_s, 1e-3)]
    assert times_seen == pytest.approx([floor_s, floor_s, 1e-3 + EVENT_SHARE * floor_s])
