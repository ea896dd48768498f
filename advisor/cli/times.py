"""Times and durations as people type them."""

from __future__ import annotations

from datetime import UTC, datetime

from advisor.core.errors import InputError
from advisor.core.limits import MAX_PLANNED_S
from advisor.core.units import exact_duration, parse_duration_s


def duration_s(flag: str, text: str) -> float:
    """Seconds of a duration with a unit.

    Raises:
        InputError: it is none.
    """
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise InputError(f"{flag}: {error}.") from error


def deadline_s(flag: str, text: str | None) -> float | None:
    """Seconds from now.

    Raises:
        InputError: it is no duration, lies in the past, or further ahead than anybody plans.
    """
    if text is None:
        return None
    if text.lstrip().startswith("-"):
        raise InputError(f"{flag} {text!r} lies in the past: give the time from now on, such as 12h.")
    seconds = duration_s(flag, text)
    if seconds > MAX_PLANNED_S:
        raise InputError(f"{flag} must be at most {exact_duration(MAX_PLANNED_S)}, got {text!r}.")
    return seconds


def moment(flag: str, text: str) -> datetime:
    """A moment with a time zone, UTC where none is written.

    Raises:
        InputError: it is none.
    """
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InputError(
            f"{flag}: {text!r} is no time: write 2026-11-01 or 2026-11-01T09:30 (both UTC),"
            " or 2026-11-01T09:30+01:00."
        ) from error
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def moment_or_duration_s(flag: str, text: str) -> datetime | float:
    """A moment, or seconds.

    Raises:
        InputError: it is neither.
    """
    try:
        return parse_duration_s(text)
    except ValueError:
        return moment(flag, text)
