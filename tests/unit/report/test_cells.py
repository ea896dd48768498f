"""Cells: a number is written by its kind, a text stands for itself."""

from datetime import UTC, date, datetime

import pytest

from advisor.core.values import Interval, Quantiles
from advisor.report import document as cells
from advisor.report.document import Kind, cell_lines


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
    assert left == {"TEXT", "INTERVAL", "DAY"}


def test_every_kind_has_a_name_of_its_own():
    kinds = [kind for kind in vars(cells).values() if isinstance(kind, Kind)]
    assert len({kind.name for kind in kinds}) == len(kinds)
