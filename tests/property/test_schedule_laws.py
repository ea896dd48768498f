"""Laws of schedules: cron as its manual has it, and clocks that change."""

from bisect import bisect_left
from datetime import UTC, datetime, time, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import example, given, settings
from hypothesis import strategies as st

from advisor.schedule.exports import in_utc
from advisor.schedule.recurrence import Cron, next_after, parse_cron, times_after
from tests.schedules import make_schedule, next_by_manual

ZONES = sorted(available_timezones() - {"Factory", "localtime"})
MONTHS = ["jan", "FEB", "Mar", *map(str, range(4, 13))]
WEEKDAYS = ["sun", "MON", "Tue", *map(str, range(3, 8))]
WINDOW = timedelta(days=3)


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    """A field of a list of numbers, ranges and steps."""
    number = st.integers(low, high)
    spans = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    steps = st.tuples(st.just("*") | spans, st.integers(1, 20)).map(lambda item: f"{item[0]}/{item[1]}")
    listed = st.lists(number.map(str) | spans, min_size=1, max_size=3).map(",".join)
    return st.just("*") | listed | steps


DAYS = st.lists(st.integers(1, 31).map(str), min_size=1, max_size=4).map(",".join)
NUMBERED_WEEKDAYS = numbers(0, 7).filter(lambda text: "*" not in text)
WEEKDAY_FIELDS = st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3).map(",".join) | NUMBERED_WEEKDAYS
CRONS = st.builds(
    "{} {} {} {} {}".format,
    numbers(0, 59),
    numbers(0, 23),
    st.just("*") | DAYS,
    st.just("*") | st.lists(st.sampled_from(MONTHS), min_size=1, max_size=9).map(",".join),
    st.just("*")
    | st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3).map(",".join)
    | numbers(0, 7).filter(lambda text: "*" not in text),
).filter(lambda text: not _never_comes(text))
WALLS = st.datetimes(datetime.fromisoformat("1999-01-01"), datetime.fromisoformat("2060-01-01"))


def next_wall(cron: Cron, after: datetime) -> datetime:
    """The next time on a clock that never changes."""
    return next(cron.after(after.replace(tzinfo=UTC), ZoneInfo("UTC"))).replace(tzinfo=None)


def _never_comes(text: str) -> bool:
    from advisor.core.errors import InputError

    try:
        parse_cron(text)
    except InputError as error:
        return "a day that one of the months has" in str(error)
    return False


@given(text=CRONS, after=WALLS)
@example(text="0 0 13 * FRI", after=datetime.fromisoformat("2026-11-22"))
@example(text="* 0-0/1 * * *", after=datetime.fromisoformat("2000-01-01 01:00"))
@example(text="*/7 * * * 7", after=datetime.fromisoformat("2026-11-22 23:59"))
def test_the_next_minute_is_the_first_that_matches_by_the_manual(text, after):
    ours = next_wall(parse_cron(text), after)
    expected = next_by_manual(text, after, most=WINDOW)
    assert ours == expected if expected is not None else ours > after + WINDOW - timedelta(minutes=1)


@settings(max_examples=40)
@given(text=CRONS)
def test_what_exports_write_means_the_same(text):
    assert parse_cron(parse_cron(text).text) == parse_cron(text)


@settings(max_examples=12)
@given(zone=st.sampled_from(ZONES), year=st.integers(1995, 2036), at=st.times())
@example(zone="Europe/Zurich", year=2026, at=time(2, 30))
@example(zone="Pacific/Apia", year=2011, at=time(8))
@example(zone="America/Nuuk", year=2026, at=time(23, 30))
@example(zone="America/St_Johns", year=2006, at=time(0, 0))
def test_a_daily_schedule_comes_once_a_local_day(zone, year, at):
    clock = ZoneInfo(zone)
    first, last = (datetime(y, 7, 1, 12, tzinfo=UTC) for y in (year - 1, year))
    hours = (first + timedelta(hours=n) for n in range(int((last - first) / timedelta(hours=1))))
    seen = sorted({hour.astimezone(clock).date() for hour in hours})[1:-1]
    # With a day that the zone left out: its time comes when it would have ended.
    days = [seen[0] + timedelta(days=n) for n in range((seen[-1] - seen[0]).days)]
    schedule = make_schedule(cron=f"{at.minute} {at.hour} * * *", zone=zone)
    begin, end = (datetime.combine(day, time(), tzinfo=clock) for day in (seen[0], seen[-1]))
    later = times_after(schedule, begin - timedelta(seconds=1))
    moments = list(takewhile(lambda moment: moment < end, later))
    shown = [moment.astimezone(clock).replace(tzinfo=None) for moment in moments]
    wanted = [datetime.combine(day, time(at.hour, at.minute)) for day in days]
    found = [bisect_left(shown, one) for one in wanted]
    assert sorted(set(found)) == [*range(len(moments))]
    for number, one in zip(found, wanted, strict=True):
        before = (moments[number] - timedelta(seconds=1)).astimezone(clock).replace(tzinfo=None)
        assert shown[number] == one or before < one < shown[number]


@settings(max_examples=25)
@given(text=CRONS, zone=st.sampled_from(ZONES), after=WALLS)
def test_times_go_forward_and_nothing_lies_between(text, zone, after):
    schedule = make_schedule(cron=text, zone=zone)
    moment = after.replace(tzinfo=UTC)
    following = next_after(schedule, moment)
    assert following > moment
    # From anywhere in between, it is still the next.
    for share in (0.25, 0.5, 0.999):
        assert next_after(schedule, moment + (following - moment) * share) == following


@settings(max_examples=40)
@given(
    minute=numbers(0, 59), hour=numbers(0, 23), weekdays=st.sampled_from(["*", "MON", "0,6", "2-4"]),
    offset=st.sampled_from([-720, -210, -60, 0, 60, 330, 345, 840]), after=WALLS,
)  # fmt: skip
def test_a_schedule_in_utc_comes_at_the_same_moments(minute, hour, weekdays, offset, after):
    cron = parse_cron(f"{minute} {hour} * * {weekdays}")
    behind = timedelta(minutes=offset)
    moved = list(in_utc(cron, behind, make_schedule()))
    utc = after
    for _ in range(4):
        shown = next_wall(cron, utc + behind)
        following = min(next_wall(one, utc) for one in moved)
        assert following == shown - behind
        utc = following
