"""Rounding that keeps the sum, and how units of time and money are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.report.document import clock, dollars, rounded, short_times, with_rest

PARTS = st.dictionaries(st.text(max_size=3), st.floats(-1e6, 1e6), min_size=1, max_size=8)


@given(PARTS, st.sampled_from([1.0, 0.01, 0.001]))
def test_parts_add_up_to_the_rounded_total_and_none_is_off_by_a_unit(parts, unit):
    total = sum(parts.values())
    shares = rounded(parts, total, unit)
    assert list(shares) == list(parts)
    assert sum(shares.values()) == round(total / unit)
    for name, units in shares.items():
        assert abs(units - parts[name] / unit) <= 1


@given(st.dictionaries(st.text(max_size=3), st.integers(-(10**6), 10**6), min_size=1))
def test_what_is_whole_stays(parts):
    exact = {name: float(part) for name, part in parts.items()}
    assert rounded(exact, float(sum(parts.values())), 1.0) == parts


@given(PARTS, st.floats(-1e7, 1e7))
def test_with_the_rest_everything_is_there(parts, total):
    shares = with_rest(parts, total, 1.0, "the rest")
    assert set(shares) - {"the rest"} == set(parts)
    assert sum(shares.values()) == pytest.approx(total, abs=0.5)


def test_a_rest_of_nothing_is_no_line():
    assert with_rest({"a": 1.0, "b": 2.0}, 3.004, 0.01, "rest") == {"a": 1.0, "b": 2.0}
    assert with_rest({}, 0.0, 0.01, "rest") == {"rest": 0.0}


@pytest.mark.parametrize(
    ("total", "units", "text"),
    [(60, 60, "0:01:00"), (90, -10, "-0:00:10"), (1e7, 4_000_000, "1,111:06:40"), (59, 1500, "1.500 s")],
)
def test_times_of_a_day(total, units, text):
    assert clock(total)[1](units) == text


@pytest.mark.parametrize(
    ("total", "units", "text"),
    [(5, 501, "$5.01"), (1e6, -123456, "-$1,234.56"), (0.5, 87, "$0.0087"), (0.0, 0, "$0.0000")],
)
def test_cents_or_less(total, units, text):
    assert dollars(total)[1](units) == text


@pytest.mark.parametrize(
    ("total_s", "text"),
    [(0.2, "200.0 ms"), (0.01234567, "12.35 ms"), (12.3456, "12.35 s"), (1e-5, "0.01000 ms")],
)
def test_an_iteration_has_four_digits(total_s, text):
    unit, words = short_times(total_s)
    assert words(round(total_s / unit)) == text
