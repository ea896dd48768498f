"""The fit finds the constants that made the data, overhead and wild rows notwithstanding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.training import slopes

BANDWIDTH, PEAK, OVERHEAD_S = 1e12, 1e13, 4e-5


def streaming(fraction: float, count: int = 200) -> slopes.MeasuredKernels:
    num_bytes = np.linspace(1e6, 1e9, count)
    time_s = OVERHEAD_S + num_bytes / (fraction * BANDWIDTH)
    return slopes.MeasuredKernels(time_s=time_s, flops=num_bytes * 0, num_bytes=num_bytes)


@given(st.floats(0.3, 1.0))
def test_bandwidth(fraction):
    assert slopes.fit_bandwidth_fraction(streaming(fraction), BANDWIDTH) == pytest.approx(fraction, rel=1e-6)


def test_wild_rows_do_no_harm():
    kernels = streaming(0.8)
    kernels.time_s[::10] *= 5
    assert slopes.fit_bandwidth_fraction(kernels, BANDWIDTH) == pytest.approx(0.8, rel=0.05)


@given(st.floats(0.2, 1.2))
def test_compute(fraction):
    flops = np.logspace(6, 12, 200)
    kernels = slopes.MeasuredKernels(
        time_s=OVERHEAD_S + flops / (fraction * PEAK), flops=flops, num_bytes=np.full(200, 1e3)
    )
    assert slopes.fit_compute_fraction(kernels, PEAK, BANDWIDTH) == pytest.approx(fraction, rel=1e-3)


def test_too_few_rows():
    with pytest.raises(ValueError, match="20 needed"):
        slopes.fit_bandwidth_fraction(streaming(0.8, count=10), BANDWIDTH)
    with pytest.raises(ValueError, match="20 needed"):
        slopes.fit_compute_fraction(streaming(0.8), PEAK, BANDWIDTH)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_median_slope_of_a_line(slope, offset):
    x = np.arange(50.0)
    assert slopes.median_slope(x, slope * x + offset) == pytest.approx(slope, abs=1e-6)
