"""What a limit of power leaves of a GPU's speed, from made-up epochs whose law is known."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.power_limits import FILE, exponents, kept
from tests.shared import SHARED, needs_shared

COLUMNS = (
    "gpu",
    "dataset",
    "model",
    "batch_size",
    "optimizer",
    "power_limit_w",
    "time_per_epoch_s",
    "average_power_w",
)
LIMITS_W = (100.0, 200.0, 250.0, 300.0)


def write(folder: Path, *rows: tuple[object, ...]) -> None:
    with (folder / FILE).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


def job(name: str, exponent: float, *, drawn_w: float, gpu: str = "V100") -> list[tuple[object, ...]]:
    """Epochs of a job whose rate goes with a power of the limit."""
    return [
        (gpu, "images", name, 64, "sgd", watts, 10 * (watts / 300) ** -exponent, min(drawn_w, watts))
        for watts in LIMITS_W
    ]


def test_the_exponent_of_busy_jobs_is_found_again(tmp_path: Path) -> None:
    write(tmp_path, *job("a", 0.3, drawn_w=300), *job("b", 0.4, drawn_w=295), *job("c", 0.35, drawn_w=280))
    assert exponents(tmp_path) == pytest.approx({"V100": 0.35})


def test_jobs_that_no_limit_holds_back_tell_nothing(tmp_path: Path) -> None:
    write(
        tmp_path,
        *job("a", 0.3, drawn_w=300),
        *job("idle", 0.0, drawn_w=100),
        *job("b", 0.9, drawn_w=90, gpu="A40"),
    )
    assert exponents(tmp_path) == pytest.approx({"V100": 0.3})


def test_low_limits_do_not_count(tmp_path: Path) -> None:
    slow = [(*row[:6], 1e6, row[7]) if row[5] == 100.0 else row for row in job("a", 0.3, drawn_w=300)]
    write(tmp_path, *slow)
    assert exponents(tmp_path) == pytest.approx({"V100": 0.3})


@given(exponent=st.floats(0, 1), share=st.floats(0.1, 1), more=st.floats(1, 10))
def test_more_power_is_never_slower(exponent: float, share: float, more: float) -> None:
    assert kept(exponent, 100 * share, 100.0) <= kept(exponent, 100 * share * more, 100.0) + 1e-12
    assert kept(exponent, 100.0, 100.0) == 1.0


@needs_shared
def test_published_boards_keep_about_nine_tenths_at_five_sevenths_of_their_power() -> None:
    found = exponents(SHARED / "measurements" / "published")
    assert len(found) == 3
    assert all(0.87 <= kept(exponent, 500, 700) <= 0.93 for exponent in found.values())
