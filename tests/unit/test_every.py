"""A test of every row fails for each that is wrong, and names them."""

import pytest

from tests.every import of_every


@of_every((1, 2, 3), name=str)
def test_none_is_wrong(number):
    assert number > 0


def test_all_that_are_wrong_are_named():
    @of_every((1, 2, 3, 4), name=lambda number: f"number {number}")
    def is_odd(number: int) -> None:
        """Odd."""
        assert number % 2 == 1

    assert (is_odd.__name__, is_odd.__doc__) == ("is_odd", "Odd.")
    with pytest.raises(ExceptionGroup, match="2 of 4 are wrong") as failed:
        is_odd()
    assert [error.__notes__ for error in failed.value.exceptions] == [["of number 2"], ["of number 4"]]


def test_nothing_to_look_at_is_a_failure():
    with pytest.raises(AssertionError):
        of_every((), name=str)(lambda _: None)()
