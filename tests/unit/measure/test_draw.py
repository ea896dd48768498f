"""Sizes are spread evenly, stay in their bounds, and are the same each time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.operators.case import Draw, radical_inverse, shrunk


@given(st.integers(1, 10_000), st.sampled_from([2, 3, 5, 7]))
def test_the_inverse_is_a_fraction_that_no_other_number_has(index, base):
    inverse = radical_inverse(index, base)
    assert 0 < inverse < 1
    assert inverse != radical_inverse(index + 1, base)


@pytest.mark.parametrize("base", [2, 3, 5])
def test_the_first_powers_of_the_base_hit_each_part_once(base):
    parts = {int(radical_inverse(index, base) * base**3 + 1e-9) for index in range(base**3)}
    assert parts == set(range(base**3))


@given(st.text(max_size=20), st.integers(0, 500))
def test_a_draw_is_the_same_each_time(name, index):
    def drawn() -> list[object]:
        draw = Draw(name, index)
        return [draw.fraction(), draw.choice("abc"), draw.size(16, 4096, 8)]

    assert drawn() == drawn()


@given(st.integers(0, 500), st.integers(1, 64), st.integers(1, 1000), st.sampled_from([1, 8, 64]))
def test_sizes_are_multiples_in_their_bounds(index, low, times, multiple):
    high = low * times
    size = Draw("any", index).size(low, high, multiple)
    assert size % multiple == 0
    assert size >= multiple
    assert low - multiple / 2 <= size <= high + multiple / 2 or size == multiple


def test_each_octave_gets_as_many_sizes():
    octaves = [int(math.log2(Draw("octaves", index).size(16, 4095))) for index in range(800)]
    counts = [octaves.count(octave) for octave in range(4, 12)]
    assert all(80 <= count <= 120 for count in counts), counts


def test_each_option_is_taken_equally_often():
    taken = [Draw("options", index).choice("abcd") for index in range(400)]
    assert all(95 <= taken.count(option) <= 105 for option in "abcd")


def test_operators_do_not_share_their_sizes():
    assert Draw("mm", 0).fraction() != Draw("bmm", 0).fraction()


@given(st.tuples(*[st.integers(1, 10_000)] * 3), st.integers(1, 10**9), st.integers(1, 16))
def test_what_is_shrunk_fits_or_cannot_shrink_more(sizes, limit, least):
    sizes_left = shrunk(sizes, lambda a, b, c: a * b * c <= limit, least)
    assert math.prod(sizes_left) <= limit or max(sizes_left) <= least
    assert all(after <= before for after, before in zip(sizes_left, sizes, strict=True))
    if math.prod(sizes) <= limit:
        assert sizes_left == sizes
