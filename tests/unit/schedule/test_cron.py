"""Cron text: what it means, and what is wrong with it, as typed."""

from __future__ import annotations

from datetime import datetime

import pytest

from advisor.core.errors import InputError
from advisor.schedule.cron import parse_cron


def at(text: str) -> datetime:
    """A time of the wall clock."""
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("text", "following"),
    [
        ("0 8 * * MON", "2026-11-23 08:00"),
        ("0 8 * * mon", "2026-11-23 08:00"),
        ("0 8 * * 1", "2026-11-23 08:00"),  # APScheduler's 1 is Tuesday
        ("0 8 * * 0", "2026-11-29 08:00"),
        ("0 8 * * 7", "2026-11-29 08:00"),
        ("0 8 * * SUN", "2026-11-29 08:00"),
        ("0 8 * * 5-7", "2026-11-27 08:00"),
        ("0 8 * * SUN-TUE", "2026-11-23 08:00"),
        ("0 8 * * */3", "2026-11-25 08:00"),  # SUN, WED, SAT
        ("*/15 * * * *", "2026-11-22 12:15"),
        ("5-50/20 12 * * *", "2026-11-22 12:05"),
        ("0 0 1 JAN *", "2027-01-01 00:00"),
        ("0 0 13 * FRI", "2026-11-27 00:00"),  # either is enough
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0  8\t* * 1,3-5", "2026-11-23 08:00"),
        ("59 23 31 12 *", "2026-12-31 23:59"),
    ],
)
def test_the_next_minute_is_that_of_cron(text: str, following: str) -> None:
    assert parse_cron(text).next_wall(at("2026-11-22 12:00")) == at(following)


def test_the_minute_itself_is_past() -> None:
    cron = parse_cron("30 8 * * *")
    assert cron.next_wall(at("2026-11-22 08:29:59")) == at("2026-11-22 08:30")
    assert cron.next_wall(at("2026-11-22 08:30")) == at("2026-11-23 08:30")
    assert cron.next_wall(at("2026-11-22 08:30:59.999999")) == at("2026-11-23 08:30")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 8 * * MON", "has 6 fields, it needs five: minute, hour, day of month, month, day of week. Sec"),
        ("0 8 * *", "has 4 fields, it needs five: minute, hour, day of month, month, day of week. Such as"),
        ("8", "has 1 field, it needs five"),
        ("", "has 0 fields, it needs five"),
        ("@weekly", "is a nickname: write '0 0 * * 0'."),
        ("61 * * * *", "minute '61' may be 0-59."),
        ("* 24 * * *", "hour '24' may be 0-23."),
        ("* * 0 * *", "day of month '0' may be 1-31."),
        ("* * * 13 *", "month '13' may be 1-12 or JAN-DEC."),
        ("* * * * 8", "day of week '8' may be 0-7 or SUN-SAT."),
        ("* * * * MOON", "day of week 'MOON' may be 0-7 or SUN-SAT."),
        ("* * * * FRI-MON", "day of week 'FRI-MON' goes backwards: write two ranges with a comma."),
        ("*/0 * * * *", "minute '*/0' cannot be read"),
        ("5/10 * * * *", "minute '5/10' cannot be read"),
        ("1,,2 * * * *", "minute '' cannot be read"),
        ("-1 * * * *", "minute '-1' cannot be read"),
        ("* * L * *", "day of month 'L' may be 1-31."),
        ("* * * * 1#2", "day of week '1#2' cannot be read"),
        ("? * * * *", "minute '?' cannot be read"),
        ("\u0661 * * * *", "minute '\u0661' cannot be read"),
        ("99999999999999999999 * * * *", "may be 0-59"),
        ("30 2 30 2 *", "never comes: no such month has a day 30."),
        ("0 0 31 4,6,9,11 *", "never comes: no such month has a day 31."),
        ("0 8 */2 * MON", "crons disagree whether days of month '*/2' and days of week 'MON' must both hold"),
        ("0 8 13 * */2", "crons disagree"),
    ],
)
def test_what_cannot_be_is_told_with_what_can(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_cron(text)
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)


def test_a_day_that_comes_by_its_weekday_alone_comes() -> None:
    assert parse_cron("30 2 30 2 MON").next_wall(at("2026-01-01 00:00")) == at("2026-02-02 02:30")


def test_a_star_with_a_step_of_one_is_a_star() -> None:
    assert parse_cron("0 8 */1 * MON") == parse_cron("0 8 * * 1")
