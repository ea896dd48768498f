"""What a limit of power costs, from made-up epochs whose law is known."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from advisor.predict.constants import FACTOR, POWER
from advisor.predict.utilization import SIGMA_SHARE
from research.power_limits import FILE, fitted, limited_epochs, scatter
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
BOARD_W = 300.0
LIMITS_W = (120.0, 150.0, 200.0, 250.0, BOARD_W)


def write(folder: Path, *rows: tuple[object, ...]) -> None:
    with (folder / FILE).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


def job(
    name: str, factor: float, power: float, *, drawn_w: float = BOARD_W, gpu: str = "V100"
) -> list[tuple[object, ...]]:
    """Epochs of a job that a law slows down."""
    return [
        (gpu, "images", name, 64, "sgd", watts, 10 * (1 + factor * (BOARD_W / watts - 1) ** power),
         min(drawn_w, watts))
        for watts in LIMITS_W
    ]  # fmt: skip


@pytest.mark.parametrize(("factor", "power"), [(0.3, 1.2), (0.5, 1.75), (0.7, 2.4)])
def test_the_law_of_busy_jobs_is_found_again(tmp_path: Path, factor: float, power: float) -> None:
    write(tmp_path, *job("a", factor, power), *job("b", factor, power, drawn_w=280))
    epochs = limited_epochs(tmp_path)
    assert len(epochs) == 2 * (len(LIMITS_W) - 1)
    assert fitted(epochs) == pytest.approx((factor, power), rel=0.02)
    assert scatter(epochs, factor, power) == pytest.approx(0, abs=1e-9)


def test_jobs_that_no_limit_holds_back_tell_nothing(tmp_path: Path) -> None:
    write(
        tmp_path, *job("a", 0.5, 2), *job("idle", 0, 1, drawn_w=100), *job("b", 3, 1, drawn_w=90, gpu="A40")
    )
    epochs = limited_epochs(tmp_path)
    assert {epoch.gpu for epoch in epochs} == {"V100"}
    assert fitted(epochs) == pytest.approx((0.5, 2), rel=0.02)


def test_low_limits_do_not_count(tmp_path: Path) -> None:
    floor = ("V100", "images", "a", 64, "sgd", 100.0, 1e6, 100.0)
    write(tmp_path, *job("a", 0.5, 2), floor)
    assert min(epoch.share for epoch in limited_epochs(tmp_path)) == 0.4


def test_jobs_that_differ_scatter(tmp_path: Path) -> None:
    write(tmp_path, *job("a", 0.4, 2), *job("b", 0.6, 2))
    assert 0.1 < scatter(limited_epochs(tmp_path), 0.5, 2.0) < 0.3


@needs_shared
def test_what_ships_is_what_is_fitted() -> None:
    epochs = limited_epochs(SHARED / "measurements" / "published")
    assert {epoch.gpu for epoch in epochs} == {"A40", "Quadro RTX 6000", "V100"}
    assert fitted(epochs) == pytest.approx((FACTOR, POWER), rel=0.02)
    assert scatter(epochs, FACTOR, POWER) == pytest.approx(SIGMA_SHARE, rel=0.03)
