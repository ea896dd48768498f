"""How prices moved: of the machines and places that runs used, weighted by time."""

from datetime import timedelta

from advisor.core.values import Interval, Market, PricePoint
from advisor.pricing.price_history import spot_quantiles
from advisor.review.budgets import Period
from advisor.review.team_review import MOST_PLACES, MOST_STEPS, PriceMove, PriceMoves, price_moves
from advisor.store.ledger import Run
from tests.team import MONDAY, WEEK, at, make_point, make_run

SPOT = make_run(market=Market.SPOT)


def moved(*points: PricePoint, runs: tuple[Run, ...] = (SPOT,), period: Period = WEEK) -> PriceMoves:
    return price_moves({"A10G": points}, runs, period)


def only(*points: PricePoint, period: Period = WEEK) -> PriceMove:
    (move,) = moved(*points, period=period).moves
    return move


def test_a_price_that_doubled_for_the_last_day():
    move = only(make_point(0, 1.0), make_point(6, 2.0))
    assert (move.first_usd_per_h, move.last_usd_per_h, move.series.change) == (1.0, 2.0, 1.0)
    assert (move.series.lowest_usd_per_h, move.series.highest_usd_per_h) == (1.0, 2.0)
    assert move.usd_per_h == Interval(p10=1.0, p50=1.0, p90=2.0)
    assert [step.usd_per_h.p50 for step in move.steps] == [1.0] * 6 + [2.0]


def test_steps_are_what_held_in_them():
    points = [make_point(hour / 7, 1.0 + hour % 5) for hour in range(49)]
    move = only(*points)
    for step in move.steps:
        end = step.since + timedelta(days=1)
        assert step.usd_per_h == spot_quantiles(points, start=step.since, end=end)


def test_a_long_period_has_longer_steps():
    year = Period(since=MONDAY, until=MONDAY + timedelta(days=365))
    move = only(make_point(0, 1.0), make_point(100, 2.0), period=year)
    assert len(move.steps) <= MOST_STEPS + 1
    assert {step.usd_per_h.p50 for step in move.steps} == {1.0, 2.0}


def test_what_is_remembered_from_later_on_begins_there():
    assert only(make_point(3.5, 1.0)).steps[0].since == at(3)


def test_places_that_runs_used_go_before_cheaper_ones():
    points = make_point(0, 3.0), make_point(0, 1.0, region="eu-west-1")
    (move,) = moved(*points).moves
    assert (move.series.region, move.is_used) == ("us-east-1", True)


def test_where_nobody_knows_the_place_the_cheapest_are_shown():
    points = [make_point(0, 3.0 - number, region=f"r{number}") for number in range(3)]
    moves = moved(*points, runs=(make_run(market=Market.SPOT, region=None),)).moves
    assert [move.series.region for move in moves] == ["r2", "r1"][:MOST_PLACES]
    assert not any(move.is_used for move in moves)


def test_markets_that_nobody_used_are_left_out_and_gpus_without_prices_named():
    found = moved(make_point(0, 1.0), runs=(make_run(), make_run(gpu="L4"), make_run(market=None, gpu="T4")))
    assert found.moves == ()
    assert found.unknown_gpus == ("A10G", "L4")
