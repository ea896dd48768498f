"""Time zones, and the moment at which a zone's clock shows a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from advisor.core.errors import InputError, did_you_mean


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name.

    Raises:
        InputError: there is none of this name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a path, an empty name, a folder
        hint = did_you_mean(name, available_timezones(), most=1)
        raise InputError(
            f"there is no time zone {name!r}: give one such as Europe/Zurich or UTC.{hint}"
        ) from None


def wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """What the zone's clock shows, without a time zone."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def first_moment(shown: datetime, zone: ZoneInfo) -> datetime | None:
    """When the zone's clock first shows a time; where it leaves it out, the moment at which it jumps over it.

    Args:
        shown: without a time zone.
        zone: whose clock.

    Returns:
        In UTC; None if the clock leaves out the whole day.
    """
    moment = shown.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if wall(moment, zone) == shown:
        return moment
    # By PEP 495 the two readings of a time that is left out lie on both sides of the jump.
    before = shown.replace(tzinfo=zone, fold=1).astimezone(UTC)
    jump = change_between(before, moment, zone)
    is_day = wall(jump - timedelta(microseconds=1), zone).date() == shown.date()
    return jump if is_day or wall(jump, zone).date() == shown.date() else None


def change_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first moment, to the second, with the offset that the zone has at ``after``."""
    offset = after.astimezone(zone).utcoffset()
    low, high = int(before.timestamp()), int(after.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return datetime.fromtimestamp(high, UTC)
