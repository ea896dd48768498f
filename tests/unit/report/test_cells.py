"""Cells: a number is written by its kind, a text stands for itself."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Interval, Quantiles
from advisor.report import document as cells
from advisor.report.document import Kind, cell_lines, clock, dollars, rounded, short_times, with_rest


@pytest.mark.parametrize(
    ("kind", "cell", "text"),
    [
        (cells.COUNT, 1_234_567, "1,234,567"),
        (cells.COUNT, 10**18, "1,000,000,000,000,000,000"),
        (cells.PLAIN, 1234, "1234"),
        (cells.ROUNDED, 1999.5, "2,000"),
        (cells.FOUR_DIGITS, 989.4321, "989.4"),
        (cells.DECIMALS, 0.12345, "0.123"),
        (cells.SHARE, 0.0567, "5.7%"),
        (cells.MULTIPLE, 2.5, "2.50 x"),
        (cells.USD, 12345.6, "$12,346"),
        (cells.USD_PER_H, 1.23456, "1.2346"),
        (cells.BYTES, 16 * 2**30, "16 GiB"),
        (cells.DURATION, 3900.0, "1 h 5 min"),
        (cells.SHORT_DURATION, 3900.0, "1.1 h"),
        (cells.MICROSECONDS, 0.0012345, "1,234.5 us"),
        (cells.DAY, 0.0, "1970-01-01"),
        (cells.USD, None, "-"),
        (cells.USD, "unknown", "unknown"),
        (cells.TEXT, date(2026, 11, 1), "2026-11-01"),
        (cells.TEXT, datetime(2026, 11, 1, 23, tzinfo=UTC), "2026-11-01"),
        (cells.USD, Quantiles(p50=1.0, p90=2.0), "$1.00 ($2.00)"),
        (cells.USD, Quantiles(p50=1.0, p90=1.001), "$1.00"),
        (cells.USD, cells.Worded("~3.67, 111 d", 3.67), "~3.67, 111 d"),
        (cells.INTERVAL, Interval(p10=0.1, p50=0.2, p90=3.0), "100 ms .. 200 ms .. 3 s"),
    ],
)
def test_a_cell_in_words(kind, cell, text):
    assert cell_lines(cell, kind) == [text]


def test_numbers_stand_to_the_right_and_what_is_read_to_the_left():
    left = {name for name, kind in vars(cells).items() if isinstance(kind, Kind) and not kind.is_right}
    assert left == {"TEXT", "INTERVAL", "STEP", "DAY"}


def test_every_kind_has_a_name_of_its_own():
    kinds = [kind for kind in vars(cells).values() if isinstance(kind, Kind)]
    assert len({kind.name for kind in kinds}) == len(kinds)


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
