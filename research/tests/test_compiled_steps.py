"""Compiled over eager steps that were published, against what is predicted of them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

import pytest

from advisor.core.values import Z90
from advisor.predict.interval import SIGMA_COMPILED
from research.compiled_steps import MODELS, RECORDED, SHARES, judges, made, measured, off_by, seconds, traces
from tests.shared import SHARED, needs_shared

MOST_OFF = 0.125
FOLDER = SHARED / "measurements" / "published"


@pytest.fixture(scope="module")
def off() -> Mapping[str, float]:
    figures = measured(FOLDER)
    recorded = dict(traces(figures, RECORDED))
    return off_by(figures, {name: seconds(made(trace)) / seconds(trace) for name, trace in recorded.items()})


@pytest.mark.shared
@needs_shared
def test_models_that_judge_are_within_an_eighth_on_average(off: Mapping[str, float]) -> None:
    judged = [abs(value) for name, value in off.items() if judges(name)]
    assert len(judged) == 19
    assert mean(judged) < MOST_OFF


@pytest.mark.shared
@needs_shared
def test_the_width_holds_four_of_five(off: Mapping[str, float]) -> None:
    most = Z90 * SIGMA_COMPILED
    inside = [name for name, value in off.items() if abs(value) < most]
    assert len(inside) / len(off) >= 0.8


@pytest.mark.shared
@needs_shared
def test_each_model_was_measured_in_both_ways() -> None:
    figures = measured(FOLDER)
    assert figures.keys() >= MODELS.keys()
    assert figures["BartForConditionalGeneration"].ratio == pytest.approx(96.2898 / 143.4957)
    assert figures["yolov3"].ratio == pytest.approx(1 / 1.26, rel=1e-3)


def test_every_model_is_recorded_and_both_parts_have_some() -> None:
    assert {path.name.removesuffix(".json.gz") for path in RECORDED.glob("*.json.gz")} == MODELS.keys()
    assert 10 < sum(map(judges, MODELS)) < len(MODELS) - 10
    assert 1.0 in SHARES
