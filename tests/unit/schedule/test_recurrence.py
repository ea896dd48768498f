"""When schedules are due: cron text and what is wrong with it, clocks that change, what was missed."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from advisor.core.errors import InputError
from advisor.schedule.recurrence import MOST_MISSED, due, next_after, parse_cron, times_after, zone_of
from tests.schedules import AT, make_schedule

DAY_S = 86_400.0


def at(text: str) -> datetime:
    """A time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def following(text: str, after: str) -> datetime:
    """The next time of cron text in UTC."""
    return next(parse_cron(text).after(at(after), ZoneInfo("UTC")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 8 * * MON", "2026-11-23 08:00"),
        ("0 8 * * mon", "2026-11-23 08:00"),
        ("0 8 * * 1", "2026-11-23 08:00"),
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
def test_the_next_minute_is_that_of_cron(text, expected):
    assert following(text, "2026-11-22 12:00") == at(expected)


def test_the_minute_itself_is_past():
    assert following("30 8 * * *", "2026-11-22 08:29:59") == at("2026-11-22 08:30")
    assert following("30 8 * * *", "2026-11-22 08:30") == at("2026-11-23 08:30")
    assert following("30 8 * * *", "2026-11-22 08:30:59.999999") == at("2026-11-23 08:30")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 8 * * MON", "has 6 fields, it needs five: minute, hour, day of month, month, day of week. Sec"),
        ("0 8 * *", "has 4 fields, it needs five: minute, hour, day of month, month, day of week. Such as"),
        ("8", "has 1 field, it needs five"),
        ("", "has 0 fields, it needs five"),
        ("@weekly", "is a nickname: write '0 0 * * 0'."),
        ("61 * * * *", "minute '61' is not valid: write 0-59, '*', a range"),
        ("* 24 * * *", "hour '24' is not valid: write 0-23, "),
        ("* * 0 * *", "day of month '0' is not valid: write 1-31 "),
        ("* * * 13 *", "month '13' is not valid: write 1-12 or JAN-DEC, "),
        ("* * * * 8", "day of week '8' is not valid: write 0-7 or SUN-SAT "),
        ("* * * * MOON", "day of week 'MOON' is not valid: "),
        ("* * * * FRI-MON", "day of week 'FRI-MON' is not valid: "),
        ("*/0 * * * *", "minute '*/0' is not valid"),
        ("5/10 * * * *", "minute '5/10' is not valid"),
        ("1,,2 * * * *", "minute '1,,2' is not valid"),
        ("-1 * * * *", "minute '-1' is not valid"),
        ("* * L * *", "day of month 'L' is not valid"),
        ("* * LW * *", "day of month 'LW' is not valid"),
        ("* * * * 5L", "day of week '5L' is not valid"),
        ("* * * * 1#2", "day of week '1#2' is not valid"),
        ("? * * * *", "minute '?' is not valid"),
        ("\u0661 * * * *", "minute '\u0661' is not valid"),
        ("\u00df * * * *", "minute '\u00df' is not valid"),
        ("99999999999999999999 * * * *", "is not valid: write 0-59"),
        (f"*/{'9' * 5000} * * * *", "is not valid: write 0-59"),
        ("30 2 30 2 *", "day of month '30' is not valid: write 1-31 (a day that one of the months has)"),
        ("0 0 31 4,6,9,11 *", "day of month '31' is not valid"),
        ("0 8 */2 * MON", "crons disagree whether days of month '*/2' and days of week 'MON' must both hold"),
        ("0 8 13 * */2", "crons disagree"),
    ],
)
def test_what_cannot_be_is_told_with_what_can(text, words):
    with pytest.raises(InputError) as caught:
        parse_cron(text)
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)


def test_a_day_that_comes_by_its_weekday_alone_comes():
    assert following("30 2 30 2 MON", "2026-01-01 00:00") == at("2026-02-02 02:30")


def test_a_star_with_a_step_of_one_is_a_star():
    assert parse_cron("0 8 */1 * MON") == parse_cron("0 8 * * 1")


def test_a_list_of_all_days_is_not_any_day():
    """Either field is enough once both are given, as in any cron."""
    assert following("0 8 1-31 * MON", "2026-11-24 12:00") == at("2026-11-25 08:00")
    assert following("0 8 13 * 0-6", "2026-11-24 12:00") == at("2026-11-25 08:00")


def on_clock(cron: str, zone: str, start: str, number: int) -> list[str]:
    """The next times after a moment in UTC, as the zone's clock shows them."""
    schedule = make_schedule(cron=cron, zone=zone)
    after = datetime.fromisoformat(start).replace(tzinfo=UTC)
    moments = islice(times_after(schedule, after), number)
    return [f"{moment.astimezone(zone_of(zone)):%m-%d %H:%M %z}" for moment in moments]


def test_eight_is_eight_in_summer_and_in_winter():
    assert on_clock("0 8 * * MON", "Europe/Zurich", "2026-03-20", 2) == [
        "03-23 08:00 +0100",
        "03-30 08:00 +0200",
    ]


def test_a_time_that_does_not_exist_comes_once_when_the_clock_jumps():
    assert on_clock("30 2 * * *", "Europe/Zurich", "2026-03-28", 3) == [
        "03-28 02:30 +0100", "03-29 03:00 +0200", "03-30 02:30 +0200",
    ]  # fmt: skip
    # Both times of the jump are one moment.
    assert on_clock("0,30 2,3 29 3 *", "Europe/Zurich", "2026-03-28", 2) == [
        "03-29 03:00 +0200", "03-29 03:30 +0200",
    ]  # fmt: skip


def test_a_time_that_exists_twice_comes_once():
    assert on_clock("30 2 * * *", "Europe/Zurich", "2026-10-24", 3) == [
        "10-24 02:30 +0200", "10-25 02:30 +0200", "10-26 02:30 +0100",
    ]  # fmt: skip
    schedule = make_schedule(cron="30 2 * * *")
    between = datetime(2026, 10, 25, 0, 59, tzinfo=UTC)  # 02:59, an hour before the second 02:30
    assert next_after(schedule, between) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_what_comes_every_hour_follows_the_hours():
    assert on_clock("15 * * * *", "Europe/Zurich", "2026-10-24T23:59", 4) == [
        "10-25 02:15 +0200", "10-25 02:15 +0100", "10-25 03:15 +0100", "10-25 04:15 +0100",
    ]  # fmt: skip
    assert on_clock("15 * * * *", "Europe/Zurich", "2026-03-28T23:59", 3) == [
        "03-29 01:15 +0100", "03-29 03:15 +0200", "03-29 04:15 +0200",
    ]  # fmt: skip


def test_clocks_that_jump_elsewhere():
    # From 23:00 to midnight: the day before is the one that the time belongs to.
    assert on_clock("30 23 * * *", "America/Nuuk", "2026-03-28T12:00", 2) == [
        "03-29 00:00 -0100",
        "03-29 23:30 -0100",
    ]
    # A whole day that never was: its times come when it would have ended.
    assert on_clock("0 8 * * *", "Pacific/Apia", "2011-12-29", 2) == [
        "12-29 08:00 -1000",
        "12-31 00:00 +1400",
    ]
    # Half an hour.
    assert on_clock("15 2 * * *", "Australia/Lord_Howe", "2026-10-03", 2) == [
        "10-04 02:30 +1100", "10-05 02:15 +1100",
    ]  # fmt: skip
    # At midnight.
    assert on_clock("0 0 * * *", "America/Havana", "2026-03-07T12:00", 2) == [
        "03-08 01:00 -0400",
        "03-09 00:00 -0400",
    ]


def test_zones_that_are_none():
    with pytest.raises(InputError, match=r"no time zone 'Europe/Zuerich'.* Did you mean 'Europe/Zurich'\?"):
        zone_of("Europe/Zuerich")
    for name in ("", "../etc/passwd", "/etc/passwd", "Europe", "Europe/\0", "CEST", "x" * 5000):
        with pytest.raises(InputError, match="there is no time zone"):
            zone_of(name)


def test_nothing_is_due_before_its_time():
    schedule = make_schedule()  # Mondays at 07:00 UTC
    early = due(schedule, datetime(2026, 11, 23, 6, 59, 59, tzinfo=UTC), catch_up_s=DAY_S)
    assert (early.run_at, early.missed) == (None, ())
    in_time = due(schedule, datetime(2026, 11, 23, 7, tzinfo=UTC), catch_up_s=DAY_S)
    assert (in_time.run_at, in_time.missed) == (datetime(2026, 11, 23, 7, tzinfo=UTC), ())


def test_of_several_missed_times_the_latest_alone_is_caught_up():
    nightly = make_schedule(cron="0 3 * * *", zone="UTC")
    late = due(nightly, AT + timedelta(days=3), catch_up_s=DAY_S)
    assert late.run_at == datetime(2026, 11, 25, 3, tzinfo=UTC)
    assert late.missed == tuple(datetime(2026, 11, day, 3, tzinfo=UTC) for day in (23, 24))
    assert late.are_all


def test_what_is_too_old_is_missed():
    schedule = make_schedule()
    moment = datetime(2026, 11, 23, 7, tzinfo=UTC)
    just = due(schedule, moment + timedelta(days=1), catch_up_s=DAY_S)
    assert just.run_at == moment
    over = due(schedule, moment + timedelta(days=1, seconds=1), catch_up_s=DAY_S)
    assert (over.run_at, over.missed) == (None, (moment,))
    none = due(schedule, moment + timedelta(seconds=1), catch_up_s=0)
    assert (none.run_at, none.missed) == (None, (moment,))


def test_after_a_long_while_only_some_missed_times_are_listed():
    minutely = make_schedule(cron="* * * * *", zone="UTC")
    late = due(minutely, AT + timedelta(days=365, seconds=30), catch_up_s=DAY_S)
    assert late.run_at == AT + timedelta(days=365)
    assert late.missed == tuple(AT + timedelta(minutes=1 + n) for n in range(MOST_MISSED))
    assert not late.are_all


def test_a_rare_time_is_found_far_back():
    leap = make_schedule(cron="0 0 29 2 *", zone="UTC", settled_until=datetime(2024, 3, 1, tzinfo=UTC))
    late = due(leap, datetime(2029, 1, 1, tzinfo=UTC), catch_up_s=400 * DAY_S)
    assert late.run_at == datetime(2028, 2, 29, tzinfo=UTC)


def test_a_clock_that_was_put_back_settles_nothing_twice():
    schedule = make_schedule(settled_until=AT + timedelta(days=8))
    assert due(schedule, AT + timedelta(days=2), catch_up_s=DAY_S).run_at is None


def test_the_end_of_the_calendar_is_no_crash():
    assert next_after(make_schedule(), datetime(9999, 12, 31, 23, 58, tzinfo=UTC)) is None
