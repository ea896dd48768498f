"""What an hour will cost, and the record of how prices moved."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.values import Interval, Market, Offer, Price, QuoteKind
from advisor.pricing.expected_prices import (
    ANY,
    DRIFT_FILE,
    DriftRow,
    PriceDrift,
    PriceModel,
    _deciles,
    likely_prices,
    load_price_model,
)
from advisor.pricing.instance_types import read_as
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource, shipped_prices
from tests.builders import make_offer

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PLACE = ("aws", "x.xlarge", "us-east-1")
DRIFT = PriceDrift(age_days=(0.0, 100.0), weight=(1.0, 0.5), down=(0.0, -0.1), up=(0.0, 0.3))
MODEL = PriceModel(
    ratios={("aws", "X"): Interval(p10=0.25, p50=0.40, p90=0.65)},
    drift={("*", Market.SPOT): DRIFT},
    most_weight={QuoteKind.DERIVED: 0.2, QuoteKind.FLOOR: 0.0},
)


def spot(usd_per_h: float, age_days: float = 0.0, **changes: object) -> Offer:
    then = NOW - timedelta(days=age_days)
    return make_offer("X", usd_per_h, market=Market.SPOT, retrieved_at=then, **changes)


def price_of(offer: Offer, on_demand: float | None = 10.0) -> Price:
    known = {} if on_demand is None else {PLACE: on_demand}
    (price,) = likely_prices([offer], now=NOW, on_demand=known, model=MODEL)
    return price


@pytest.mark.parametrize(
    ("offer", "kind"),
    [
        (spot(4.0), QuoteKind.LIVE),
        (spot(1.0), QuoteKind.LIVE),
        (spot(4.0, 2.0), QuoteKind.DATED),
        (spot(1.0, 2.0), QuoteKind.FLOOR),
        (spot(4.0, source="derived from savings"), QuoteKind.DERIVED),
        (spot(4.0, 400.0, contracted_usd_per_h=3.0), QuoteKind.AGREED),
        (make_offer("X", 1.0, retrieved_at=NOW - timedelta(days=400)), QuoteKind.DATED),
    ],
)
def test_the_kind_of_a_quote(offer, kind):
    assert price_of(offer).kind is kind


def test_a_dated_quote_is_half_its_family_at_a_hundred_days():
    usd = price_of(spot(2.0, 100.0)).usd_per_h
    assert usd.p50 == pytest.approx(math.sqrt(2.0 * 4.0))
    apart = math.sqrt(1 - 0.5**2) * math.log(4.0 / 2.0)
    spread = math.hypot(math.hypot(0.5 * math.log(6.5 / 4.0), apart), 0.3)
    assert usd.p90 == pytest.approx(usd.p50 * math.exp(spread))
    assert usd.p10 == pytest.approx(usd.p50 / math.exp(math.hypot(0.5 * math.log(4.0 / 2.5), 0.1)))


def test_a_gpu_whose_prices_move_twice_as_far_has_twice_the_drift():
    model = replace(MODEL, moves={("aws", spot(4.0).gpu): 2.0})
    (price,) = likely_prices([spot(4.0, 100.0)], now=NOW, on_demand={PLACE: 10.0}, model=model)
    usd = price.usd_per_h
    assert usd.p90 == pytest.approx(usd.p50 * math.exp(math.hypot(0.5 * math.log(6.5 / 4.0), 2 * 0.3)))


PLACES = ("a", "b", "c", "d", "e", "f", "g")


def among(
    quotes: tuple[float, ...], *, on_demand: float | None = 10.0, zone: str | None = None
) -> dict[str, object]:
    """What a catalog lists for a machine: these quotes beside that of us-east-1."""
    places = {(place, ""): usd for place, usd in zip(PLACES, quotes, strict=False)}
    listed = (
        {} if on_demand is None else {("aws", "x.xlarge", place): on_demand for place in (*PLACES, PLACE[2])}
    )
    return {"on_demand": listed, "spot": {("aws", "x.xlarge"): {**places, (PLACE[2], zone or ""): 1.3}}}


def test_case_22_one_quote_among_its_like():
    """Half of what seven other regions ask counts: sqrt(1.3 x 5.0), and the p90 is above theirs."""
    model = replace(MODEL, family_places=0.0)
    catalog = among((4.8, 4.9, 5.0, 5.0, 5.1, 5.2, 5.3), on_demand=12.0)
    (price,) = likely_prices(
        [spot(1.3, 100.0)], now=NOW, model=replace(model, near_floor_weight=1.0, most_weight={}), **catalog
    )
    assert price.usd_per_h.p50 == pytest.approx(2.5495, abs=1e-4)
    assert price.usd_per_h.p90 > 5.0


def test_a_quote_counts_beside_its_other_places_and_its_record_by_their_number():
    """One other place at 8.0 and a record whose median is 4.0 that counts for three."""
    model = replace(MODEL, family_places=3.0)
    (price,) = likely_prices([spot(2.0, 100.0)], now=NOW, model=model, **among((8.0,)))
    centre = 0.25 * math.log(8.0) + 0.75 * math.log(4.0)
    assert price.usd_per_h.p50 == pytest.approx(math.exp(0.5 * math.log(2.0) + 0.5 * centre))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=40))
def test_quantiles_of_other_places_are_numpy_s(values):
    ordered = sorted(values)
    assert _deciles(ordered) == pytest.approx(np.quantile(ordered, (0.1, 0.5, 0.9)), abs=1e-12)


def test_without_any_list_price_other_places_stand_as_they_are():
    model = replace(MODEL, family_places=0.0)
    catalog = among((6.0, 6.0, 6.0), on_demand=None)
    (price,) = likely_prices([spot(2.0, 100.0)], now=NOW, model=model, **catalog)
    assert price.usd_per_h.p50 == pytest.approx(math.sqrt(2.0 * 6.0))


def test_near_its_floor_a_quote_counts_half_from_the_second_day():
    model = replace(MODEL, near_floor_weight=0.5)
    (live,) = likely_prices([spot(1.1)], now=NOW, on_demand={PLACE: 10.0}, model=model)
    (dated,) = likely_prices([spot(1.1, 1.0)], now=NOW, on_demand={PLACE: 10.0}, model=model)
    assert live.usd_per_h.p50 == pytest.approx(1.1)
    assert dated.usd_per_h.p50 == pytest.approx(math.sqrt(1.1 * 4.0))


def test_the_floor_of_a_machine_without_a_list_price_is_that_of_its_gpus():
    """Eight H100 are listed at 80 an hour; one of them is spot alone, and no price falls below 0.90."""
    one = make_offer(
        "H100-SXM-80GB",
        0.5,
        provider="gcp",
        instance_type="a3-highgpu-1g",
        market=Market.SPOT,
        retrieved_at=NOW - timedelta(days=2),
    )
    listed = {("gcp", "a3-highgpu-8g", "us-east-1"): 80.0}
    (price,) = likely_prices([one], now=NOW, on_demand=listed, model=PriceModel())
    assert price.kind is QuoteKind.FLOOR
    assert price.usd_per_h.p50 == pytest.approx(0.9)
    assert likely_prices([one], now=NOW, on_demand={}, model=PriceModel())[0].usd_per_h.p50 == 0.5


def test_a_quote_at_a_quarter_of_its_like_is_no_bargain_of_one_and_a_quarter():
    """The quote that led 8 of 23 answers: its p90 was 1.24 times the quote."""
    shipped = [offer for part in SnapshotSource().offers(OfferQuery()) for offer in part.offers]
    lucky = [
        o
        for o in shipped
        if (o.instance_type, o.region, o.market) == ("a3-highgpu-1g", "europe-north1", Market.SPOT)
    ]
    catalog = shipped_prices()
    (price,) = likely_prices(lucky, now=NOW, on_demand=catalog.on_demand, spot=catalog.spot)
    assert price.usd_per_h.p50 > 1.5 * lucky[0].usd_per_h
    assert price.usd_per_h.p90 > 2.5 * lucky[0].usd_per_h


def test_between_two_ages_the_weight_is_interpolated_and_beyond_the_last_nothing_more_is_known():
    assert price_of(spot(2.0, 50.0)).usd_per_h.p50 == pytest.approx(2.0**0.75 * 4.0**0.25)
    assert price_of(spot(2.0, 100.0)).usd_per_h == price_of(spot(2.0, 900.0)).usd_per_h


def test_a_quote_above_its_family_keeps_its_price():
    usd = price_of(spot(6.0, 100.0)).usd_per_h
    assert usd.p50 == 6.0
    assert usd.p10 < 6.0


def test_what_was_derived_at_the_floor_lies_between_its_family_and_on_demand():
    """The family's quantiles are 2.5, 4 and 6.5 USD: of machines that somebody bids for."""
    usd = price_of(spot(1.0, source="derived from savings")).usd_per_h
    assert usd.p50 == pytest.approx(math.sqrt(4.0 * 10.0))
    assert usd.p90 == pytest.approx(10.0)
    assert usd.p10 < 4.0
    assert price_of(spot(1.0, 2.0)).usd_per_h.p50 == pytest.approx(4.0), "what somebody quoted is its family"


def test_a_price_of_this_moment_moves_on_while_a_job_runs():
    """Over a run of 90 days a quote is 45 days old on average, and its p90 half as far off as after 90."""
    price = price_of(spot(2.0))
    assert price.usd_per_h.p90 == pytest.approx(2.0)
    over = 0.9 * DRIFT.up[-1] / 2
    assert price.p90_over(90.0) == pytest.approx(2.0 * math.exp(over))
    assert price.p90_over(0.0) < price.p90_over(10.0) < price.p90_over(90.0) == price.p90_over(900.0)


def test_what_was_agreed_is_exact_however_old_and_an_on_demand_quote_stands():
    agreed = price_of(spot(4.0, 900.0, contracted_usd_per_h=3.0)).usd_per_h
    assert agreed == Interval(p10=3.0, p50=3.0, p90=3.0)
    old = make_offer("X", 10.0, retrieved_at=NOW - timedelta(days=400))
    assert price_of(old).usd_per_h == Interval(p10=10.0, p50=10.0, p90=10.0)


def test_without_an_on_demand_price_a_quote_counts_as_a_lucky_one():
    usd = price_of(spot(2.0, 100.0), on_demand=None).usd_per_h
    assert usd.p50 == pytest.approx(2.0 * math.sqrt(0.40 / 0.25))
    assert usd.p90 > usd.p50


def test_a_history_of_its_own_counts_from_the_first_day():
    past = Interval(p10=1.5, p50=3.0, p90=5.0)
    usd = price_of(spot(2.0, spot_usd_per_h=past)).usd_per_h
    assert (usd.p10, usd.p50, usd.p90) == (pytest.approx(1.5), 2.0, pytest.approx(5.0))
    older = price_of(spot(2.0, 100.0, spot_usd_per_h=past)).usd_per_h
    assert older.p50 == pytest.approx(math.sqrt(2.0 * 3.0)), "its own past stands in for the family"
    fell = price_of(spot(6.0, spot_usd_per_h=past)).usd_per_h
    assert (fell.p50, fell.p90) == (6.0, pytest.approx(6.0))


def test_a_quote_from_the_future_has_no_age_and_nothing_offered_no_price():
    assert price_of(spot(2.0, -1.0)).age_days == 0.0
    assert likely_prices([], now=NOW, on_demand={}) == ()


def test_a_guess_counts_at_its_p90_and_a_quote_at_its_median():
    derived, dated = price_of(spot(1.0, source="derived from x")), price_of(spot(2.0, 100.0))
    assert derived.counted_usd_per_h == derived.usd_per_h.p90
    assert dated.counted_usd_per_h == dated.usd_per_h.p50


def test_the_shipped_files_tell_on_demand_prices():
    assert shipped_prices().on_demand["gcp", "a2-highgpu-1g", "us-central1"] == pytest.approx(3.673385)


def test_what_ships_names_gpus_of_the_catalog_and_knows_every_kind():
    model = load_price_model()
    assert {gpu for _, gpu in model.ratios} - {ANY} <= set(load_gpus())
    assert (ANY, ANY) in model.ratios
    assert set(model.most_weight) == {QuoteKind.DERIVED, QuoteKind.FLOOR}
    assert 0 < model.near_floor_weight < 1
    assert 0 < model.family_places < 1, "other places tell more than the record of the GPU"
    assert model.most_weight[QuoteKind.FLOOR] <= model.most_weight[QuoteKind.DERIVED] < 1
    assert model.drift_of("gcp", Market.SPOT).weight[-1] < 1


def test_of_what_nobody_knows_the_dearest_ratios_count():
    model = load_price_model()
    unknown = model.ratio_of("somebody", "X")
    assert unknown is not None
    providers = [ratio for (_, gpu), ratio in model.ratios.items() if gpu == ANY]
    assert unknown.p50 == max(ratio.p50 for ratio in providers)
    assert unknown.p90 == max(ratio.p90 for ratio in providers)


def test_the_nearest_family_is_taken():
    one, two, three = (Interval(p10=p, p50=p, p90=p) for p in (0.1, 0.2, 0.3))
    model = PriceModel(ratios={("aws", "X"): one, ("aws", ANY): two, (ANY, ANY): three})
    asked = [model.ratio_of("aws", "X"), model.ratio_of("aws", "Y"), model.ratio_of("gcp", "X")]
    assert asked == [one, two, three]
    assert PriceModel().ratio_of("aws", "X") is None
    assert PriceModel().drift_of("aws", Market.SPOT) == PriceDrift()


def test_an_older_quote_never_says_more():
    for (provider, market), drift in load_price_model().drift.items():
        ages = [*zip(drift.age_days, drift.weight, drift.down, drift.up, strict=True)]
        for younger, older in pairwise(ages):
            assert younger[0] < older[0], (provider, market)
            assert younger[1] >= older[1]
            assert younger[2] >= older[2]
            assert younger[3] <= older[3]
    weights = [row.weight for row in read_as(catalog_path(DRIFT_FILE), DriftRow)]
    assert all(0 <= weight <= 1 for weight in weights)
