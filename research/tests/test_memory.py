"""What is predicted to fit, beside runs that were published or measured."""

from __future__ import annotations

import math
import tomllib
from statistics import NormalDist

import pytest

from advisor.core.gpus import catalog_path, resolve_gpu
from advisor.core.units import GIB
from advisor.core.values import Fit
from advisor.predict.iteration import predict
from research.memory.largest_batches import covered, fitted, networks, verdicts
from research.memory.points import Point, mpt_points, need_of_point, points, table, verdict
from research.memory.recording import MODELS
from research.published import Case
from tests.published import recorded_cases
from tests.shared import SHARED, needs_shared

MPT = SHARED / "measurements" / "third_party" / "mpt_llmfoundry_train.csv"
# It held at most 79 GiB; by which kernel of the optimizer nobody says.
MISSED = "Llama-3-8B full on one"
POINTS = [point for point in points() if point.name != MISSED]
# These models are the published ones; what else is predicted beside them differs in its loss or its batch.
SAME = ("BERT-large", "Transformer", "GNMT")


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name.replace(" ", "-"))
def test_a_published_run_fits_or_not_as_it_did(point: Point) -> None:
    assert (verdict(point) is not Fit.NO) == point.fits
    assert point.source


def test_there_are_enough_of_both_kinds() -> None:
    assert len(POINTS) >= 30
    assert sum(not point.fits for point in POINTS) >= 8


def test_the_one_that_is_missed_is_inside_its_interval() -> None:
    (point,) = (point for point in points() if point.name == MISSED)
    need = need_of_point(point)
    assert point.fits
    assert need.p10 <= resolve_gpu(point.gpu).memory_bytes < need.p50


def test_measured_sizes_are_met_as_far_as_libraries_of_their_time_allow() -> None:
    # nvidia-smi saw a context of 1.3 GiB, which today's libraries do not need, and torchtune chunks its loss.
    measured = [point for point in points() if point.measured_gib is not None]
    ratios = [need_of_point(point).p50 / GIB / (point.measured_gib or 1) for point in measured]
    assert len(ratios) == 5
    assert math.exp(sum(map(math.log, ratios)) / len(ratios)) == pytest.approx(1.0, abs=0.05)
    assert 0.84 < min(ratios) <= max(ratios) < 1.35


def test_the_table_has_a_row_for_each() -> None:
    assert len(list(table())) == 2 + len(list(points()))


def test_every_trace_is_of_a_model_that_can_be_recorded_again() -> None:
    assert {point.trace for point in points()} <= set(MODELS)


@pytest.mark.parametrize(
    "case",
    [case for case in recorded_cases() if case.name.startswith(SAME)],
    ids=lambda case: f"{case.name} {case.gpu}".replace(" ", "-"),
)
def test_what_nvidia_trained_fits(case: Case) -> None:
    assert predict(case.build(), resolve_gpu(case.gpu)).fits_memory


@needs_shared
def test_all_rows_of_mpt_fit() -> None:
    rows = list(mpt_points(MPT))
    assert len(rows) > 100
    assert [row.name for row in rows if verdict(row) is Fit.NO] == []


def test_largest_batches_of_families_that_fitted_nothing() -> None:
    judging = [network for network in networks() if network.only_judges]
    right = [one for network in judging for one in verdicts(network)]
    assert len(judging) >= 30
    assert sum(right) >= 0.95 * len(right)
    assert sum(map(covered, judging)) >= 0.9 * len(judging)


def test_fragmentation_ships_as_it_was_fitted() -> None:
    mean, sigma = fitted([network for network in networks() if not network.only_judges])
    shipped = tomllib.loads(catalog_path("memory.toml").read_text(encoding="utf-8"))["fragmentation"]["share"]
    levels = {"low": 0.1, "mid": 0.5, "high": 0.9}
    assert shipped == {
        name: pytest.approx(math.exp(NormalDist(mean, sigma).inv_cdf(p)), abs=5e-4)
        for name, p in levels.items()
    }
