"""Errors of all predictors of a table, by group."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy.summary import (
    below_p90,
    cell,
    coverage,
    error_of,
    errors,
    errors_of,
    mean_summary,
    summarise,
    table,
)
from tests.shared import SHARED, needs_shared

MEASUREMENTS = SHARED / "measurements"


def row(gpu="T4", mode="inf", measured=100.0, predicted=110.0, p10=90.0, p90=120.0, other="105"):
    return {"gpu": gpu, "mode": mode, "measured_ms": str(measured), "predicted_ms": predicted, "p10_ms": p10,
            "p90_ms": p90, "other_ms": other, "forward_ms": "1"}  # fmt: skip


def test_errors_are_absolute_and_ranked():
    rows = [row(predicted=100 + error) for error in (-30, 0, 10, 20)]
    summary = errors(rows, "predicted_ms")
    assert summary == {
        "rows": 4,
        "mean": pytest.approx(0.15),
        "median": pytest.approx(0.15),
        "p90": pytest.approx(0.3),
        "max": pytest.approx(0.3),
    }


def test_rows_that_others_did_not_predict_are_not_held_against_them():
    summary = errors([row(other=""), row(other="150")], "other_ms")
    assert (summary["rows"], summary["mean"]) == (1, pytest.approx(0.5))
    assert errors([row(other="")], "other_ms")["mean"] is None


def test_coverage_counts_what_lies_within():
    rows = [row(), row(measured=89.9), row(measured=120.0), row(measured=121.0)]
    assert coverage(rows) == 0.5
    assert below_p90(rows) == 0.75


def test_groups_are_gpus_modes_and_all():
    rows = [row(), row(gpu="V100", mode="train", other="")]
    summary = summarise(rows)
    assert set(summary) == {"T4", "V100", "all inf", "all train", "all"}
    assert list(summary["all"]) == ["advisor", "other"]
    text = table(summary)
    assert "| V100 | 1 | 10.0 / 10.0 / 10 / 10 | - | 100% | 100% |" in text
    assert "| all | 2 | 10.0 / 10.0 / 10 / 10 | 5.0 / 5.0 / 5 / 5 | 100% | 100% |" in text


def test_clean_rows_are_groups_of_their_own_and_come_last():
    rows = [row() | {"label": "clean"}, row() | {"label": "noisy"}, row(mode="train") | {"label": "unknown"}]
    summary = summarise(rows)
    assert list(summary) == ["T4", "all", "all inf", "all train", "clean T4", "clean", "clean inf"]
    counts = [summary[group]["advisor"]["rows"] for group in ("all", "clean", "clean T4", "clean inf")]
    assert counts == [3, 1, 1, 1]


def test_errors_are_signed_until_they_are_summed():
    assert error_of(row(predicted=90), "predicted_ms") == pytest.approx(-0.1)
    assert error_of(row(other=""), "other_ms") is None


@given(st.lists(st.floats(-1, 10), min_size=1, max_size=50))
def test_figures_are_in_order_and_within_the_errors(relative):
    summary = errors_of(relative)
    largest = max(abs(value) for value in relative)
    assert summary["median"] <= summary["p90"] <= summary["max"] == largest
    assert 0 <= summary["mean"] <= largest * (1 + 1e-9)
    assert errors_of([-value for value in relative]) == summary


def test_the_mean_of_seeds():
    summaries = [summarise([row(predicted=predicted, other="")]) for predicted in (100, 120, 140)]
    mean = mean_summary(summaries)
    assert mean["all"]["advisor"]["mean"] == pytest.approx(0.2)
    assert mean["all"]["advisor"]["rows"] == 1
    assert mean["all"]["advisor"]["coverage"] == 1.0
    assert mean["all"]["other"]["mean"] is None
    assert cell(mean["all"]["other"]) == "-"
    assert mean_summary(summaries[:1]) == summaries[0]


@needs_shared
def test_published_predictors_have_their_published_errors():
    with (MEASUREMENTS / "end_to_end.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # measurements/README.md: mean / median of 48 rows.
    expected = {
        "neusight": (9.3, 5.8),
        "habitat": (15.9, 9.8),
        "micro": (23.3, 21.0),
        "roofline": (26.7, 25.0),
    }
    for name, (mean, median) in expected.items():
        summary = errors(rows, f"{name}_ms")
        assert (100 * summary["mean"], 100 * summary["median"]) == pytest.approx((mean, median), abs=0.05)
