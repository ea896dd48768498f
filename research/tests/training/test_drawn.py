"""What a hash of a text decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.training.drawn import fraction_of


@given(st.text())
def test_a_text_has_one_fraction(text: str) -> None:
    assert 0 <= fraction_of(text) < 1
    assert fraction_of(text) == fraction_of(text)


def test_a_known_one_stays_what_it_is() -> None:
    """SHA-256 of the empty text begins with e3b0c442: another hash would draw other judges."""
    assert int(fraction_of("") * 2**32) == 0xE3B0C442


def test_many_are_even() -> None:
    drawn = [fraction_of(str(number)) for number in range(4000)]
    for low in (0.0, 0.25, 0.5, 0.75):
        assert 0.22 < sum(low <= each < low + 0.25 for each in drawn) / 4000 < 0.28
