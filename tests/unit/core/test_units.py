"""Durations, bytes and money in and out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.units import (
    DAY_S,
    GIB,
    HOUR_S,
    exact_duration,
    format_bytes,
    format_duration,
    format_duration_short,
    format_usd,
    parse_duration_s,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400),
        ("12h", 12 * HOUR_S),
        ("1d6h", 30 * HOUR_S),
        ("1.5h", 5400),
        ("2 d", 2 * DAY_S),
        ("250ms", 0.25),
        ("1W", 7 * DAY_S),
    ],
)
def test_parse_duration(text, seconds):
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "12", "h", "12x", "-3h", "3h and", "1h 30", "1e3s"])
def test_parse_duration_refuses(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration_s(text)


@given(st.integers(1, 10**6), st.sampled_from(["s", "m", "h", "d"]))
def test_parse_duration_is_linear(number, unit):
    assert parse_duration_s(f"{number}{unit}") == pytest.approx(number * parse_duration_s(f"1{unit}"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.183, "183 ms"),
        (0.9996, "1 s"),
        (59.99, "1 min"),
        (42, "42 s"),
        (3540, "59 min"),
        (3599, "1 h"),
        (12 * 3600 + 300, "12 h 5 min"),
        (86_399, "1 d"),
        (273_900, "3 d 4 h"),
        (math.inf, "never"),
    ],
)
def test_format_duration(seconds, text):
    assert format_duration(seconds) == text


@given(st.floats(60, 1e8))
def test_a_formatted_duration_reads_back_within_its_rounding(seconds):
    back = parse_duration_s(format_duration(seconds).replace("min", "m"))
    assert back == pytest.approx(seconds, rel=0.03, abs=30)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0142, "14.2 ms"),
        (59.4, "59.4 s"),
        (59.6, "1 min"),
        (3480, "58 min"),
        (3590, "1.0 h"),
        (4020, "1.1 h"),
        (20 * 3600, "20 h"),
        (47.4 * 3600, "47 h"),
        (47.6 * 3600, "2.0 d"),
        (570_000, "6.6 d"),
        (1e9, "11,574 d"),
        (math.inf, "never"),
    ],
)
def test_format_duration_short(seconds, text):
    assert format_duration_short(seconds) == text


@given(st.integers(0, 10**9))
def test_an_exact_duration_reads_back_to_the_millisecond(milliseconds):
    assert parse_duration_s(exact_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


def test_format_bytes_is_binary():
    assert format_bytes(5 * GIB) == "5 GiB"
    assert format_bytes(1536) == "1.5 KiB"
    assert format_bytes(12) == "12 B"
    assert format_bytes(1010 * 2**20) == "0.986 GiB"
    assert format_bytes(1000 * 2**20 - 1) == "0.977 GiB"
    assert format_bytes(900 * 2**20) == "900 MiB"


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (8.3333, "$8.33"),
        (999.99, "$999.99"),
        (12_345.6, "$12,346"),
        (0.002, "$0.0020"),
        (0.00004, "<$0.0001"),
        (0, "$0.00"),
    ],
)
def test_format_usd(usd, text):
    assert format_usd(usd) == text


def test_format_usd_of_a_hopeless_plan():
    assert format_usd(math.inf) == "unbounded"
