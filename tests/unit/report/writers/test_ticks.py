"""Scales: every value is on them, and what stands beside an axis is few, in order, and in words."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from advisor.report.document import COUNT, DURATION, SHORT_DURATION, TEXT, USD, USD_PER_H, Axis
from advisor.report.writers.plot import scale_of

KINDS = st.sampled_from([USD, USD_PER_H, DURATION, SHORT_DURATION, COUNT, TEXT])
POSITIVE = st.lists(st.floats(1e-4, 1e9), min_size=1, max_size=20)
ANY = st.lists(st.floats(-1e6, 1e9), min_size=1, max_size=20)


@given(KINDS, POSITIVE)
def test_a_log_scale_holds_all_values_and_few_ticks(kind, values):
    scale = scale_of(Axis(kind), values, is_log=True)
    check(scale, values)
    assert scale.low > 0


@given(KINDS, ANY, st.booleans())
@example(USD, [5e-324], False)
def test_a_linear_scale_holds_all_values_and_few_ticks(kind, values, has_zero):
    scale = scale_of(Axis(kind), values, is_log=False, has_zero=has_zero)
    check(scale, values)
    assert len(scale.ticks) >= 2
    step = scale.ticks[1] - scale.ticks[0]
    steps = {round((later - tick) / step, 6) for tick, later in pairwise(scale.ticks)}
    assert steps == {1.0}
    if has_zero:
        assert scale.low <= 0 <= scale.high


def check(scale, values) -> None:
    assert scale.low <= min(values) <= max(values) <= scale.high
    assert len(scale.ticks) == len(scale.words) <= 8
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
    assert all(isinstance(word, str) for word in scale.words)


def words(axis: Axis, *values: float, is_log: bool = False) -> list[str]:
    return list(scale_of(axis, values, is_log=is_log).words)


def test_durations_are_cut_as_clocks_cut_them():
    assert words(Axis(SHORT_DURATION), 0.0, 5 * 3600.0) == [
        "0 ms", "1.0 h", "2.0 h", "3.0 h", "4.0 h", "5.0 h",
    ]  # fmt: skip
    assert words(Axis(SHORT_DURATION), 60.0, 3 * 86400.0, is_log=True) == [
        "1 min", "5 min", "30 min", "2.0 h", "12 h", "2.0 d",
    ]  # fmt: skip
    assert words(Axis(DURATION), 0.1, 1.8) == ["0 ms", "500 ms", "1 s", "1.5 s"]


def test_dollars_are_cut_in_tens():
    assert words(Axis(USD), 3.0, 4000.0, is_log=True) == ["$10.00", "$100.00", "$1,000"]
    assert words(Axis(USD), 0.0, 1000.0) == ["$0.00", "$200.00", "$400.00", "$600.00", "$800.00", "$1,000"]


def test_a_scale_far_from_zero_need_not_begin_there_but_bars_do():
    assert scale_of(Axis(USD), [90.0, 100.0], is_log=False).low > 80
    assert scale_of(Axis(USD), [90.0, 100.0], is_log=False, has_zero=True).low == 0
    assert scale_of(Axis(USD), [10.0, 100.0], is_log=False).low == 0


def test_the_least_value_may_have_a_name():
    scale = scale_of(Axis(USD, lowest="free"), [0.1, 10.0, 100.0], is_log=True)
    assert (scale.ticks[0], scale.words[0]) == (0.1, "free")
    assert "free" not in scale.words[1:]


def test_whole_numbers_are_counted_without_decimals():
    assert words(Axis(COUNT), 0.0, 10.0)[:3] == ["0", "2", "4"]
