"""One test about every row of a catalog: it reports all that are wrong at once, and counts as one."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def of_every(
    values: Sequence[T], name: Callable[[T], str]
) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Decorate a test that takes one of the values.

    Args:
        values: rows of a catalog.
        name: what to call one in the report.
    """

    def decorate(check: Callable[[T], None]) -> Callable[[], None]:
        def test():
            assert values
            faults = [fault for value in values if (fault := _fault(check, value, name)) is not None]
            if faults:
                raise ExceptionGroup(f"{len(faults)} of {len(values)} are wrong", faults)

        # Not functools.wraps, by which pytest would look for a fixture of the parameter's name.
        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate


def _fault(check: Callable[[T], None], value: T, name: Callable[[T], str]) -> Exception | None:
    try:
        check(value)
    except Exception as error:  # noqa: BLE001 - reported with all others
        error.add_note(f"of {name(value)}")
        return error
    return None
