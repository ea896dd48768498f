"""What volumes reach is what the H100's kernels say."""

import math
from pathlib import Path

import pytest

from advisor.operators.convolution import SIGMA_VOLUMES, VOLUME_RATES, VolumeRates
from research.training.fit_volumes import fitted

KERNELS = Path(__file__).parents[2] / "measured" / "h100_sxm_2026-11" / "kernels.jsonl.gz"


def test_the_shipped_rates_are_the_fitted_ones() -> None:
    rates, sigma, number = fitted(KERNELS)
    assert number == 81
    for name in VolumeRates.__slots__:
        assert getattr(rates, name) == pytest.approx(getattr(VOLUME_RATES, name), rel=0.01)
    assert math.hypot(sigma, 0.35) == pytest.approx(SIGMA_VOLUMES, abs=0.005)
