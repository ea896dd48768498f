"""Which days belong to a period, its weeks and its month."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from advisor.review.budgets import Period, Scope, monday_of, month_of
from tests.team import MONDAY, WEEK


def test_the_end_does_not_belong_to_a_period():
    assert WEEK.holds(WEEK.since)
    assert not WEEK.holds(WEEK.until)
    assert WEEK.holds(WEEK.until - timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("since", "until", "mondays"),
    [(0.0, 7.0, [2]), (0.0, 7.001, [2, 9]), (-0.001, 7.0, [-5, 2]), (6.9, 14.0, [2, 9])],
)
def test_weeks_begin_on_mondays_and_none_is_left_out(since, until, mondays):
    period = Period(since=MONDAY + timedelta(days=since), until=MONDAY + timedelta(days=until))
    assert list(period.weeks()) == [date(2026, 11, 1) + timedelta(days=day - 1) for day in mondays]


def test_a_week_is_that_of_utc():
    here = timezone(timedelta(hours=2))
    assert monday_of(datetime(2026, 11, 2, 1, tzinfo=here)) == date(2026, 10, 26)


@pytest.mark.parametrize(
    ("moment", "first"),
    [
        (datetime(2026, 11, 1, 0, 0, 1, tzinfo=UTC), date(2026, 11, 1)),
        (datetime(2026, 12, 1, tzinfo=UTC), date(2026, 11, 1)),
        (datetime(2027, 1, 31, 12, tzinfo=UTC), date(2027, 1, 1)),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), date(2024, 2, 1)),
    ],
)
def test_a_month_ends_where_the_next_begins(moment, first):
    month = month_of(moment)
    assert month.since.date() == first
    assert month.until.day == 1
    assert 28 <= month.days <= 31


def test_a_team_is_its_projects():
    assert Scope().holds("anything")
    assert Scope().holds(None)
    vision = Scope(team="vision", projects=frozenset({"resnet"}))
    assert vision.holds("resnet")
    assert not vision.holds("bert")
    assert not vision.holds(None)
