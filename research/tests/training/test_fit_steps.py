"""What operators take in whole steps beyond what they take alone: found again, and as shipped."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from advisor.core.gpus import catalog_path
from advisor.predict.knowledge import STEPS, shipped
from research.training.fit_steps import KINDS, MeasuredStep, errors, fit, read_steps, render
from tests.shared import SHARED, needs_shared

TABLE = SHARED / "measurements" / "published" / "lambda_steps.csv"
OTHER = ""
TRUE = dict.fromkeys(KINDS, 0.3)


def made(lab: float) -> list[MeasuredStep]:
    """Each kind almost alone, and all together."""
    mixes = [{kind: 1.0, OTHER: 0.1} for kind in KINDS] + [dict.fromkeys((*KINDS, OTHER), 1.0)]
    steps = [
        MeasuredStep(network=str(i), gpu="A40", software="older", time_s=1.0, parts_s=mix)
        for i, mix in enumerate(mixes)
    ] * 4
    return [
        replace(step, time_s=math.exp(error + lab))
        for step, error in zip(steps, errors(steps, TRUE), strict=True)
    ]


@pytest.mark.parametrize("lab", [0.0, -0.05])
def test_factors_are_found_again_whatever_a_lab_adds(lab: float) -> None:
    assert fit(made(lab), of_kind=1.0) == pytest.approx(TRUE, abs=0.07)


def test_nothing_gets_faster_and_few_steps_say_little() -> None:
    steps = [replace(step, time_s=0.7 * step.time_s) for step in made(0.0)]
    assert min(fit(steps).values()) >= 0.0
    assert sum(fit(made(0.0)[4:5]).values()) < sum(TRUE.values()) / 2


@needs_shared
def test_what_ships_is_fitted_to_steps_and_boards_left_out_are_nearer_by_it() -> None:
    steps = list(read_steps(TABLE, replace(shipped(), excess={})))
    assert render(shipped().excess) == catalog_path(STEPS).read_text(encoding="utf-8")
    # The last digit follows every law of an operator, and moves a step by less than 0.1 %.
    assert fit(steps) == pytest.approx(dict(shipped().excess), abs=0.0015)
    left = {
        gpu: (fit([step for step in steps if step.gpu != gpu]), [step for step in steps if step.gpu == gpu])
        for gpu in {step.gpu for step in steps}
    }
    mean = np.mean([abs(math.expm1(error)) for fitted, own in left.values() for error in errors(own, fitted)])
    # 10.3 % without the fit.
    assert mean < 0.085
