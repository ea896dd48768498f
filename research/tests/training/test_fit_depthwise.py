"""Rates of narrow groups are those of the H100's kernels."""

from pathlib import Path

from advisor.operators.convolution import NARROW, SIGMA_NARROW
from research.training.fit_depthwise import rates_of

KERNELS = Path(__file__).parents[2] / "measured" / "h100_sxm_2026-11" / "kernels.jsonl.gz"


def test_the_shipped_rates_are_the_fitted_ones() -> None:
    assert rates_of(KERNELS) == (NARROW, SIGMA_NARROW)
