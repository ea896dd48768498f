"""Laws of prices: older, derived or unknown is never better, and both forms of own rates say the same."""

import csv
import dataclasses
import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus
from advisor.core.values import Interval, Market, Offer, Price, QuoteKind
from advisor.pricing.expected_prices import PriceDrift, PriceModel, likely_prices, load_price_model
from advisor.pricing.sources.custom import read_rates
from recommender.outcome.bill import most_rise, price_rise, rent_over_median, rents_to_compare
from recommender.outcome.spot import SpotTerms
from recommender.plans.candidates import cheapest_plans, plans_of_offers
from recommender.plans.extras import CloudTerms
from tests.builders import make_estimate, make_gpu, make_job, make_offer, make_trace
from tests.recommending import recommend

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TERMS = CloudTerms(startup_s=0.0)
PLACE = ("aws", "x.xlarge", "us-east-1")
AGES = st.floats(0, 2000)
RATIOS = st.floats(0.05, 1.0)
MARKETS = st.sampled_from([Market.SPOT, Market.ON_DEMAND])


@st.composite
def models(draw: st.DrawFn) -> PriceModel:
    """Any model that a file may hold, or the shipped one."""
    if draw(st.booleans()):
        return load_price_model()
    p10, p50, p90 = sorted(draw(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3)))
    ages = sorted(draw(st.sets(st.integers(1, 900), min_size=2, max_size=4)))
    weights = sorted(draw(st.lists(st.floats(0, 1), min_size=len(ages), max_size=len(ages))), reverse=True)
    ups = sorted(draw(st.lists(st.floats(0, 1), min_size=len(ages), max_size=len(ages))))
    drift = PriceDrift(
        age_days=(0.0, *map(float, ages)),
        weight=(1.0, *weights),
        down=(0.0, *(-up for up in ups)),
        up=(0.0, *ups),
    )
    return PriceModel(
        ratios={("*", "*"): Interval(p10=p10, p50=p50, p90=p90)},
        drift={("*", Market.SPOT): drift},
        most_weight={QuoteKind.DERIVED: draw(st.floats(0, 1)), QuoteKind.FLOOR: draw(st.floats(0, 1))},
    )


def offer_of(ratio: float, age_days: float, market: Market = Market.SPOT, scale: float = 10.0) -> Offer:
    then = NOW - timedelta(days=age_days)
    return make_offer("X", ratio * scale, market=market, retrieved_at=then)


def price_of(offer: Offer, model: PriceModel, on_demand: float | None = 10.0) -> Price:
    known = {} if on_demand is None else {PLACE: on_demand}
    (price,) = likely_prices([offer], now=NOW, on_demand=known, model=model)
    return price


RUNS = st.floats(0, 400)


def among_of(offer: Offer, others: list[float], model: PriceModel) -> Price:
    """With other places of its machine, all listed at 10 dollars."""
    places = {("aws", "x.xlarge", f"r{i}"): 10.0 for i in range(len(others))}
    quotes = {(f"r{i}", ""): 10.0 * ratio for i, ratio in enumerate(others)}
    (price,) = likely_prices(
        [offer], now=NOW, on_demand={PLACE: 10.0, **places}, spot={("aws", "x.xlarge"): quotes}, model=model
    )
    return price


OTHERS = st.lists(RATIOS, min_size=1, max_size=5)


@given(models(), RATIOS, AGES, st.floats(0, 900), OTHERS)
def test_an_older_quote_among_others_is_never_the_better_one(model, ratio, age, more, others):
    newer, older = (among_of(offer_of(ratio, at), others, model) for at in (age, age + more))
    assert is_no_better(older, newer)


@given(models(), RATIOS, AGES, OTHERS)
def test_a_median_lies_between_the_quote_and_the_dearest_of_its_like_and_above_the_floor(
    model, ratio, age, others
):
    price = among_of(offer := offer_of(ratio, age), others, model)
    known = model.ratio_of("aws", "X")
    dearest = 10.0 * max(ratio, known.p50, 0.1, *others)
    assert offer.usd_per_h * (1 - 1e-12) <= price.usd_per_h.p50 <= dearest * (1 + 1e-9)
    assert price.kind is QuoteKind.LIVE or price.usd_per_h.p50 >= 1.0 * (1 - 1e-12), "AWS's floor"


def is_no_better(one: Price, other: Price) -> bool:
    """Wherever it counts: the median, the p90 and what is compared; a fall is never counted on."""
    pairs = (
        (one.usd_per_h.p50, other.usd_per_h.p50),
        (one.usd_per_h.p90, other.usd_per_h.p90),
        (one.counted_usd_per_h, other.counted_usd_per_h),
    )
    return all(a >= b * (1 - 1e-12) for a, b in pairs)


@given(models(), RATIOS, AGES, AGES, MARKETS)
def test_an_older_quote_is_never_the_better_one(model, ratio, age, more, market):
    newer, older = offer_of(ratio, age, market), offer_of(ratio, age + more, market)
    assert is_no_better(price_of(older, model), price_of(newer, model))


@given(models(), RATIOS, AGES, MARKETS, RUNS, RUNS)
def test_a_longer_run_is_never_the_surer_one(model, ratio, age, market, run_days, more):
    price = price_of(offer_of(ratio, age, market), model)
    shorter, longer = price.p90_over(run_days), price.p90_over(run_days + more)
    assert price.usd_per_h.p90 * (1 - 1e-12) <= shorter <= longer * (1 + 1e-12)
    assert price.p90_over(0.0) == price.usd_per_h.p90
    assert market is not Market.SPOT or longer <= 10.0 * (1 + 1e-12), "spot never exceeds on-demand"


@given(models(), RATIOS, AGES, AGES, RUNS)
def test_an_older_quote_is_never_the_better_one_for_a_run_of_any_length(model, ratio, age, more, run_days):
    newer, older = (price_of(offer_of(ratio, at), model) for at in (age, age + more))
    assert older.p90_over(run_days) >= newer.p90_over(run_days) * (1 - 1e-12)


@given(models(), RATIOS, AGES)
def test_a_derived_price_is_never_better_than_the_same_one_quoted(model, ratio, age):
    quoted = offer_of(ratio, age)
    derived = replace(quoted, source="derived from savings")
    assert is_no_better(price_of(derived, model), price_of(quoted, model))


@given(models(), st.floats(0.3, 1.0), AGES)
def test_a_price_of_unknown_standing_is_never_cheaper_than_a_usual_one(model, ratio, age):
    offer = offer_of(ratio, age)
    known = model.ratio_of("aws", "X")
    assume(known is not None and ratio >= known.p10)
    assert price_of(offer, model, on_demand=None).usd_per_h.p50 >= price_of(offer, model).usd_per_h.p50 * (
        1 - 1e-9
    )


@given(models(), RATIOS, AGES, MARKETS)
def test_quantiles_ascend_around_the_quote(model, ratio, age, market):
    usd = price_of(offer := offer_of(ratio, age, market), model).usd_per_h
    assert usd.p10 <= usd.p50 <= usd.p90
    assert usd.p50 >= offer.usd_per_h * (1 - 1e-12)
    assert market is not Market.SPOT or usd.p90 <= 10.0 * (1 + 1e-12), "spot never exceeds on-demand"


@given(models(), RATIOS, AGES, st.floats(0.01, 1000))
def test_prices_scale_with_their_currency(model, ratio, age, scale):
    assume(abs(ratio - 0.1001) > 1e-6)
    one = price_of(offer_of(ratio, age), model).usd_per_h
    other = price_of(offer_of(ratio, age, scale=10.0 * scale), model, on_demand=10.0 * scale).usd_per_h
    assert [other.p10, other.p50, other.p90] == pytest.approx(
        [v * scale for v in (one.p10, one.p50, one.p90)]
    )


@given(models(), RATIOS)
def test_a_quote_of_this_moment_is_the_price(model, ratio):
    price = price_of(offer := offer_of(ratio, 0.0), model)
    assert (price.kind, price.usd_per_h.p50) == (QuoteKind.LIVE, offer.usd_per_h)
    assert price.usd_per_h.p90 == pytest.approx(offer.usd_per_h)


@given(models(), st.lists(st.tuples(RATIOS, AGES, st.booleans()), min_size=1, max_size=6))
def test_what_else_is_offered_moves_no_price(model, drawn):
    offers = [
        replace(offer_of(ratio, age), source="derived from x" if is_derived else "a test")
        for ratio, age, is_derived in drawn
    ]
    together = likely_prices(offers, now=NOW, on_demand={PLACE: 10.0}, model=model)
    assert list(together) == pytest.approx([price_of(offer, model) for offer in offers])


@given(RATIOS, AGES, st.booleans(), st.floats(0, 200))
def test_no_draw_of_spot_costs_more_than_on_demand(ratio, age, is_derived, run_days):
    offer = replace(offer_of(ratio, age), source="derived from x" if is_derived else "a test")
    prices = likely_prices([offer], now=NOW, on_demand={PLACE: 10.0})
    (plan,) = plans_of_offers([offer], terms=TERMS, prices=prices)
    over = rent_over_median(np.linspace(-4.0, 4.0, 33), price_rise(plan, run_days), most_rise(plan))
    dearest_usd = max(*(plan.usd_per_h or 0.0) * over, *rents_to_compare(plan))
    assert 10.0 * ratio * (1 - 1e-9) <= dearest_usd <= 10.0 * (1 + 1e-9)


@given(RATIOS, AGES, AGES, st.booleans())
def test_an_older_or_derived_price_never_hides_a_newer_equal_one(ratio, age, more, is_derived):
    newer = replace(offer_of(ratio, age), region="zz")
    older = offer_of(ratio, age + more)
    if is_derived:
        older = replace(older, source="derived from x")
    on_demand = {PLACE: 10.0, ("aws", "x.xlarge", "zz"): 10.0}
    offers = [older, newer]
    prices = likely_prices(offers, now=NOW, on_demand=on_demand)
    kept = cheapest_plans(plans_of_offers(offers, terms=TERMS, prices=prices))
    is_worse = more >= 1 or is_derived
    assert "zz" in {plan.offer.region for plan in kept if plan.offer} or not is_worse


@given(
    st.lists(st.tuples(RATIOS, st.floats(0, 500), st.floats(1, 20)), min_size=2, max_size=4),
    st.floats(1, 900),
    st.booleans(),
    st.floats(0.1, 20),
)
def test_ageing_or_deriving_a_price_never_makes_its_machine_the_choice(
    machines, more, is_derived, value_usd_per_h
):
    offers = [
        replace(offer_of(ratio, age), gpu=f"G{i}", instance_type=f"m{i}")
        for i, (ratio, age, _) in enumerate(machines)
    ]
    first = offers[0]
    worse = replace(first, retrieved_at=first.retrieved_at - timedelta(days=more))
    if is_derived:
        worse = replace(worse, source="derived from x")
    hours = [hours for *_, hours in machines]
    before = choice(offers, hours, value_usd_per_h)
    after = choice([worse, *offers[1:]], hours, value_usd_per_h)
    assert after == before or (before or "").startswith("aws/m0/")


def choice(offers: list[Offer], hours: list[float], value_usd_per_h: float) -> str | None:
    """The recommended plan where the i-th machine takes so many hours."""
    on_demand = {(offer.provider, offer.instance_type, offer.region): 10.0 for offer in offers}
    prices = likely_prices(offers, now=NOW, on_demand=on_demand)
    estimates = [make_estimate(f"G{i}", h * 0.036) for i, h in enumerate(hours)]
    return recommend(
        make_trace(),
        {(e.gpu, e.layout): e for e in estimates},
        {e.gpu: make_gpu(e.gpu) for e in estimates},
        plans_of_offers(offers, terms=TERMS, prices=prices),
        make_job(value_of_time_usd_per_h=value_usd_per_h),
        spot=SpotTerms(preemptions_per_h=0.0, checkpoint_h=0.0),
    ).recommended


# Texts that neither form changes: no space at the ends, which is stripped, and no comma where it separates.
TEXTS = st.from_regex(r"[A-Za-zäß0-9_.:#'\"-]([A-Za-zäß0-9_.:#'\" -]{0,8}[A-Za-z0-9])?", fullmatch=True)
PRICES = st.floats(1e-6, 999_999.0)
NAMES = st.sampled_from([name for gpu in load_gpus().values() for name in (gpu.name, *gpu.aliases)])
RATES = st.fixed_dictionaries(
    {
        "provider": TEXTS,
        "instance_type": TEXTS,
        "gpu": NAMES,
        "num_gpus": st.integers(1, 4096),
        "as_of": st.dates(date(2000, 1, 1), date(2100, 1, 1)),
    },
    optional={
        "region": TEXTS,
        "zone": TEXTS,
        "market": st.sampled_from([str(market) for market in Market]),
        "minimum_billed_s": st.floats(0, 1e6),
        "billed_step_s": st.floats(1e-3, 1e6),
        "includes": st.lists(TEXTS, min_size=1, max_size=3).map(", ".join),
        "note": TEXTS,
        "currency": st.just("USD"),
    },
)


def read(row: dict[str, Any], suffix: str) -> Offer:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rates{suffix}"
        if suffix == ".csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, fieldnames=list(row))
                writer.writeheader()
                writer.writerow(row)
        else:
            path.write_text(yaml.safe_dump([row], allow_unicode=True), encoding="utf-8")
        (offer,) = read_rates([path])[path]
    return offer


@given(RATES, PRICES)
def test_both_forms_say_the_same(rate, usd_per_h):
    row = rate | {"usd_per_h": usd_per_h}
    in_yaml, in_csv = read(row, ".yaml"), read(row, ".csv")
    assert dataclasses.replace(in_yaml, source="") == dataclasses.replace(in_csv, source="")
    assert in_yaml.usd_per_h == usd_per_h
    assert in_yaml.gpu in load_gpus()
    assert (in_yaml.retrieved_at.date(), in_yaml.retrieved_at.utcoffset()) == (row["as_of"], timedelta(0))


@given(RATES, PRICES)
def test_the_price_of_one_gpu_times_their_number_is_the_machines(rate, usd):
    offer = read(rate | {"usd_per_gpu_h": usd}, ".csv")
    assert offer.usd_per_h == pytest.approx(usd * rate["num_gpus"])
    assert offer.list_usd_per_h == offer.contracted_usd_per_h
